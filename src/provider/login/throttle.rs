//! Slows down the guessing of passwords: `login.max_failures`.
//!
//! Failures are counted by account together with address, and at ten times the limit by address; never by account alone, or an
//! unauthenticated caller could cause a lockout. At the limit there is a pause of 30 seconds, after it one attempt, and each
//! further failure doubles the pause, up to the period. A whole period after the last pause, or after the first failure if there
//! was none, everything is forgotten. An IPv6 address counts by its /64, which is what one host gets.
//!
//! An attempt is counted as a failure when it begins, and the count is taken back when the password is right, so that a
//! hundred attempts at once count a hundred.
//!
//! # Several processes
//!
//! Each process counts in its own table, and there counts the failures of the others too: a failure is written into the
//! store's feed of changes as a [report](Attempt::report) and [read](Throttle::apply_report) by all. So an attacker gains
//! only the attempts that are under way, at other processes, before the report of a failure has arrived, and each of these
//! lengthens the pause. A rejected attempt is not reported: a caller cannot write more reports than the limits admit
//! attempts. A success is not reported either: the other processes go on counting the failures before it. While the store
//! is away each process counts for itself.
//!
//! An operator can [end the pauses of an account](Throttle::report_of_end), which all processes read in the same way.
//!
//! A report holds hashes under a key that all processes derive from the store's first sealing key. A reader of the store
//! cannot guess what was typed as a name. A store that is not sealed has no such key. It then holds
//! secrets in clear anyway, and the hash is as good as unkeyed.
//!
//! # Memory limit
//!
//! The table has 16,384 sets of 8 entries, some 5 MiB when full. A key (a keyed hash, so that its set cannot be chosen)
//! belongs to one set. In a set that is full of entries that still count, the new one replaces the entry with the fewest
//! failures, and never one that is in its pause. An attacker who wants to push out nine failures has to fill their set
//! with as many, and, not knowing which set it is, every set. If all of a set is in its pause, the attempt is rejected for
//! the first pause: that fails closed, and only for the keys of that set. To do so to a tenth of the sets, some thirteen
//! thousand pairs must be in their pause, each with ten failures that a password hash was computed for.
//!
//! This is not a moka cache. With a capacity, moka chooses what it evicts and may reject the new entry, so an attacker
//! could end a pause, or guess without being counted. Without one, the memory grows with the addresses of callers.

mod folded;
mod pauses;

use std::{
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    time::Duration,
};

use aws_lc_rs::hmac;
use parking_lot::Mutex;

use self::folded::folded;
pub use self::pauses::{PausedAccount, PausedAccounts};
use crate::base::{clock::UnixTime, network::peer::network, rate::Rate, secret::Secret};

/// Sets of the table.
const SETS: usize = 16_384;
/// Entries of a set.
const WAYS: usize = 8;
/// The first pause.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
/// The limit of an address over all accounts, as a multiple of the limit of one account.
const ADDRESS_FACTOR: u32 = 10;

/// Counts failed logins. One for the process; it outlives a reload, which only [sets a new limit](Self::set_limit).
#[derive(Debug)]
pub struct Throttle {
    keys: RandomState,
    shared_key: hmac::Key,
    table: Mutex<Table>,
}

/// An attempt that has begun. Unless it is given back it stays a failure.
#[derive(Debug)]
#[must_use]
pub struct Attempt {
    /// To the account from this address, and to the address.
    charges: [Charge; 2],
    report: String,
}

impl Attempt {
    /// The report to other processes if the attempt fails: this process, a hash of the account, one of account and address, and
    /// one of the address.
    pub fn report(&self) -> &str {
        &self.report
    }
}

impl Throttle {
    /// Counts nothing yet. `limit` has the failures of one account from one address and the time in which they count,
    /// which is the longest pause too. Processes with the same `shared_key` can read each other's reports.
    pub fn new(limit: Rate, shared_key: &Secret) -> Self {
        Self {
            keys: RandomState::new(),
            shared_key: hmac::Key::new(hmac::HMAC_SHA256, shared_key.expose()),
            table: Mutex::new(Table {
                limit,
                sets: Vec::new(),
            }),
        }
    }

    /// Changes the limit; existing counts stay.
    pub fn set_limit(&self, limit: Rate) {
        self.table.lock().limit = limit;
    }

    /// Begins an attempt on `account` (known or not) from `address`, and counts it as failed. Spellings that an account
    /// system may take for one name count as one.
    ///
    /// # Errors
    ///
    /// The time until the next attempt may be made, whole seconds and at least one, while the account from this address,
    /// or the address, is in its pause. The attempt has not been counted then.
    pub fn begin(
        &self,
        account: &str,
        address: IpAddr,
        now: UnixTime,
    ) -> Result<Attempt, Duration> {
        let (network, folded) = (network(address), folded(account));
        let by_address = self.digest(&network.to_string());
        let by_account = self.digest(&format!("{network} {folded}"));
        let whole = self.digest(&folded);
        let entries = self.entries(whole, by_account, by_address);
        let mut table = self.table.lock();
        // Both are checked before either is counted: a rejected attempt is not counted.
        let pauses = entries.map(|of| table.pause(of.entry, now));
        if let Some(retry_after) = pauses.into_iter().max().flatten() {
            return Err(retry_after);
        }
        Ok(Attempt {
            charges: entries.map(|of| table.charge(of, now)),
            report: format!(
                "{:x} {whole:x} {by_account:x} {by_address:x}",
                self.process()
            ),
        })
    }

    /// The entries of an account from one address, and of the address over all accounts.
    fn entries(&self, whole: u128, by_account: u128, by_address: u128) -> [EntryKey; 2] {
        let account = self.key(whole);
        let of_address = (by_address, NO_ACCOUNT, ADDRESS_FACTOR);
        [(by_account, account, 1), of_address].map(|(digest, account, factor)| EntryKey {
            entry: self.key(digest),
            account,
            factor,
        })
    }

    /// The report by which all processes forget the failures of `account`, from every address. The failures of the
    /// addresses stay: they are those of other accounts too.
    pub fn report_of_end(&self, account: &str) -> String {
        let whole = self.digest(&folded(account));
        format!("{:x} {whole:x}", self.process())
    }

    /// Counts a failure that another process has reported; also in a pause, which it lengthens. Forgets the failures of an
    /// account whose pauses an operator has ended, here or elsewhere.
    pub fn apply_report(&self, report: &str, now: UnixTime) {
        let numbers = report.split(' ').map(|hex| u128::from_str_radix(hex, 16));
        let numbers: Result<Vec<u128>, _> = numbers.collect();
        match numbers.as_deref() {
            Ok(&[process, _, _, _]) if process == u128::from(self.process()) => {}
            Ok(&[_, whole, by_account, by_address]) => {
                let mut table = self.table.lock();
                for of in self.entries(whole, by_account, by_address) {
                    table.drop_ended(of.entry, now);
                    let _ = table.charge(of, now);
                }
            }
            Ok(&[_, whole]) => {
                let account = self.key(whole);
                let mut table = self.table.lock();
                for set in &mut table.sets {
                    set.retain(|entry| entry.account != account);
                }
            }
            _ => tracing::warn!("the report of a failed login cannot be read"),
        }
    }

    /// Identifies this process in reports. It reveals nothing about the keys.
    fn process(&self) -> u64 {
        self.keys.hash_one("process")
    }

    fn key(&self, digest: u128) -> u64 {
        self.keys.hash_one(digest).max(NO_ACCOUNT + 1)
    }

    /// The digest of a name, the same in all processes. It has 128 bits, so that two names with the same one cannot be found.
    fn digest(&self, text: &str) -> u128 {
        let tag = hmac::sign(&self.shared_key, text.as_bytes());
        let first = tag.as_ref().first_chunk().copied();
        u128::from_be_bytes(first.unwrap_or_default())
    }

    /// The password was right: the account's failures from this address are forgotten. The address's other failures stay,
    /// or anybody with an account could guess the passwords of others for ever.
    pub fn succeeded(&self, attempt: &Attempt, now: UnixTime) {
        let mut table = self.table.lock();
        let [by_account, by_address] = &attempt.charges;
        table.forget(by_account);
        table.give_back(by_address, now);
    }

    /// The attempt was not checked: its count is taken back.
    pub fn withdrawn(&self, attempt: &Attempt, now: UnixTime) {
        let mut table = self.table.lock();
        for charge in &attempt.charges {
            table.give_back(charge, now);
        }
    }
}

/// Replaces the account of an entry that counts an address over all accounts.
const NO_ACCOUNT: u64 = 0;

/// The entry of an account from one address, or of an address.
#[derive(Debug, Clone, Copy)]
struct EntryKey {
    entry: u64,
    /// The account from all addresses, or [`NO_ACCOUNT`].
    account: u64,
    /// Its limit, as a multiple of the limit of one account.
    factor: u32,
}

#[derive(Debug)]
struct Table {
    limit: Rate,
    /// [`SETS`], or none before the first attempt: most processes have several tables and count in one at most.
    sets: Vec<Vec<Failures>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Failures {
    key: u64,
    account: u64,
    failures: u32,
    pauses: u32,
    first_failure: UnixTime,
    paused_until: UnixTime,
}

/// The change by one attempt to one entry.
#[derive(Debug)]
struct Charge {
    key: u64,
    /// The number of the pause that it began, if it did.
    pause: Option<u32>,
}

impl Table {
    fn set(&mut self, key: u64) -> &mut Vec<Failures> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the remainder is below SETS"
        )]
        let index = (key % SETS as u64) as usize;
        if self.sets.is_empty() {
            self.sets.resize_with(SETS, Vec::new);
        }
        &mut self.sets[index]
    }

    fn entry(&mut self, key: u64) -> Option<&mut Failures> {
        self.set(key).iter_mut().find(|entry| entry.key == key)
    }

    /// Drops entries that no longer count from the set of `key`.
    fn drop_ended(&mut self, key: u64, now: UnixTime) -> &mut Vec<Failures> {
        let period = self.limit.period;
        let set = self.set(key);
        set.retain(|entry| entry.counts(now, period));
        set
    }

    /// The time for which `key` must wait; drops entries that no longer count.
    fn pause(&mut self, key: u64, now: UnixTime) -> Option<Duration> {
        let set = self.drop_ended(key, now);
        match set.iter().find(|entry| entry.key == key) {
            Some(entry) => entry.pause(now),
            None if set.len() == WAYS && set.iter().all(|entry| entry.pause(now).is_some()) => {
                Some(FIRST_PAUSE)
            }
            None => None,
        }
    }

    /// Counts a failure; from the limit on a pause begins, or begins again.
    fn charge(&mut self, of: EntryKey, now: UnixTime) -> Charge {
        let longest = self.limit.period;
        let limit = self.limit.count.get().saturating_mul(of.factor);
        let key = of.entry;
        let Some(entry) = self.entry_or_new(of, now) else {
            // The account's charge of this very attempt took the last entry that was in no pause: it is counted there.
            return Charge { key, pause: None };
        };
        entry.failures = entry.failures.saturating_add(1);
        let pause = (entry.failures >= limit).then(|| {
            let doubled = FIRST_PAUSE.saturating_mul(1 << entry.pauses.min(20));
            entry.pauses = entry.pauses.saturating_add(1);
            entry.paused_until = now.after(doubled.min(longest).max(Duration::from_secs(1)));
            entry.pauses
        });
        Charge { key, pause }
    }

    /// The entry of `key`. In a full set a new one replaces the weakest; `None` if all of the set are in their pause.
    fn entry_or_new(&mut self, of: EntryKey, now: UnixTime) -> Option<&mut Failures> {
        let key = of.entry;
        if self.entry(key).is_none() {
            let set = self.set(key);
            if set.len() == WAYS {
                let weakest = (0..WAYS)
                    .filter(|&at| set[at].pause(now).is_none())
                    .min_by_key(|&at| (set[at].failures, set[at].first_failure))?;
                set.swap_remove(weakest);
            }
            set.push(Failures {
                key,
                account: of.account,
                first_failure: now,
                ..Failures::default()
            });
        }
        self.entry(key)
    }

    fn give_back(&mut self, charge: &Charge, now: UnixTime) {
        if let Some(entry) = self.entry(charge.key) {
            entry.failures = entry.failures.saturating_sub(1);
            if let Some(number) = charge.pause {
                // A pause that a later failure began stays.
                if entry.pauses == number {
                    entry.paused_until = entry.paused_until.min(now);
                }
                entry.pauses = entry.pauses.saturating_sub(1);
            }
            if entry.failures == 0 {
                self.forget(charge);
            }
        }
    }

    fn forget(&mut self, charge: &Charge) {
        self.set(charge.key).retain(|entry| entry.key != charge.key);
    }
}

impl Failures {
    fn pause(&self, now: UnixTime) -> Option<Duration> {
        (self.paused_until > now).then(|| Duration::from_secs(self.paused_until.0 - now.0))
    }

    /// Whether it still counts. One that lies more than a period ahead was made before the clock was set back: it would
    /// pause for as long as the clock had been wrong.
    fn counts(&self, now: UnixTime, period: Duration) -> bool {
        let last = self.first_failure.max(self.paused_until);
        let pause = period.max(Duration::from_secs(1));
        now < last.after(period) && last <= now.after(pause)
    }
}

#[cfg(test)]
mod tests;
