//! The pauses, as operators see them.

use std::collections::HashMap;

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

impl Throttle {
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
        let account = self.key(self.digest(&folded(account)));
        paused.0.get(&account).copied()
    }
}
