//! The pauses, as operators see them.

use std::{cmp::Reverse, collections::HashMap, net::IpAddr};

use super::{NO_ACCOUNT, Throttle, folded};
use crate::base::clock::UnixTime;

/// The accounts that are in a pause, each from some addresses.
#[derive(Debug, Default)]
pub struct PausedAccounts(HashMap<u64, PausedAccount>);

/// The pauses of one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PausedAccount {
    /// The number of addresses from which it is in a pause.
    pub addresses: u64,
    /// The end of the last of these pauses.
    pub until: UnixTime,
}

/// A pause of an account at one address, or of an address for all accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// The account, as [`Throttle::paused_account`] has it; `None`: the address failed with many accounts.
    pub account: Option<u64>,
    /// The address, or the first one of its network; `None`: all of the failures were at other processes, whose reports
    /// have hashes alone.
    pub address: Option<IpAddr>,
    /// Its end.
    pub until: UnixTime,
}

impl Throttle {
    /// All pauses, the last to end first.
    pub fn pauses(&self, now: UnixTime) -> Vec<Pause> {
        let table = self.table.lock();
        let entries = table.sets.iter().flatten();
        let paused = entries.filter(|entry| entry.pause(now).is_some());
        let mut pauses = Vec::from_iter(paused.map(|entry| Pause {
            account: (entry.account != NO_ACCOUNT).then_some(entry.account),
            address: entry.address(),
            until: entry.paused_until,
        }));
        drop(table);
        pauses.sort_by_key(|it| (Reverse(it.until), it.address, it.account));
        pauses
    }

    /// What stands for the account of this name in a [`Pause`].
    pub fn paused_account(&self, name: &str) -> u64 {
        self.key(self.digest(&folded(name)))
    }

    /// The accounts that are in a pause now.
    pub fn paused(&self, now: UnixTime) -> PausedAccounts {
        let mut paused: HashMap<u64, PausedAccount> = HashMap::new();
        let table = self.table.lock();
        let entries = table.sets.iter().flatten();
        for entry in entries.filter(|it| it.account != NO_ACCOUNT && it.pause(now).is_some()) {
            let account = paused.entry(entry.account).or_insert(PausedAccount {
                addresses: 0,
                until: entry.paused_until,
            });
            account.addresses += 1;
            account.until = account.until.max(entry.paused_until);
        }
        PausedAccounts(paused)
    }

    /// The pauses of `account`, if it is in one.
    pub fn pauses_of(&self, account: &str, paused: &PausedAccounts) -> Option<PausedAccount> {
        paused.0.get(&self.paused_account(account)).copied()
    }
}
