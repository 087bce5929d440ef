//! Conditions: problems that last. The log has one line at the beginning of each and one at its end.

use std::{collections::BTreeMap, time::Duration};

use parking_lot::Mutex;

use crate::base::clock::{Clock, UnixTime};

/// A problem of this process or its surroundings that lasts until it is resolved; those that stop signed calls first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Condition {
    /// The store does not answer.
    Store,
    /// Nonces cannot be recorded, or those of an earlier run are lost.
    Nonces,
    /// The nonce window has no room.
    NonceWindowFull,
    /// The clock of this machine differs from the clocks of consumers.
    Clock,
    /// A secret in the store is encrypted with a key that this process does not have.
    KeyMissing,

    /// The nonce window is nearly full.
    NonceWindowFilling,
    /// The disk of the store is full: nothing can be issued or revoked.
    DiskFull,
    /// The application with external records does not answer well: its credentials get 503 unless they are cached.
    Lookup,
    /// The keys of an issuer of Bearer tokens cannot be read: its tokens get 503 once the known keys are too old.
    Issuer,
    /// The API does not answer: calls get 502 or 504.
    Upstream,
    /// A worker does not run, and its connections hang.
    WorkerHung,
    /// A certificate is outside its dates.
    CertificateExpired,
    /// A certificate expires within days.
    CertificateExpiring,
    /// Changes that other processes make in the store are not noticed.
    StoreChanges,
    /// Last uses of tokens are not written.
    LastUses,
    /// Records that ended long ago are not deleted.
    Purge,
    /// It is not known whether another process imports records into the store.
    Imports,
    /// The store does not record how far nonces are accepted.
    NonceMark,
    /// The log is not read, and lines are dropped.
    LogStalled,
}

impl Condition {
    /// Its name in metrics, logs and `/readyz`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether signed calls cannot be served while it lasts, so that the process is not ready.
    #[must_use]
    pub const fn stops_signed_calls(self) -> bool {
        matches!(
            self,
            Self::Store | Self::Nonces | Self::NonceWindowFull | Self::Clock | Self::KeyMissing
        )
    }

    /// Whether an operator has to act at once, so that its beginning is an error in the log.
    const fn needs_attention(self) -> bool {
        self.stops_signed_calls()
            || matches!(
                self,
                Self::DiskFull | Self::Upstream | Self::WorkerHung | Self::CertificateExpired
            )
    }
}

/// The cause of [`Condition::NonceWindowFull`].
pub const WINDOW_FULL: &str = "the nonce window has no room: signed calls get 503 until the oldest nonces leave it; raise \
                               nonce.max_entries, or make room on the disk of nonce.path";

/// A condition that lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Active {
    /// The time at which it was noticed.
    pub since: UnixTime,
    /// The cause, and the fix where there is one.
    pub cause: String,
    /// The time at which it was last noted.
    pub noted: UnixTime,
    is_logged: bool,
}

/// See [`Conditions::end_if_quiet`].
const QUIET: Duration = Duration::from_secs(5);

/// The conditions of this process.
#[derive(Debug)]
pub struct Conditions {
    clock: Clock,
    active: Mutex<BTreeMap<Condition, Active>>,
    /// The end of the last one that stopped signed calls.
    stopped_until: Mutex<Option<UnixTime>>,
}

impl Conditions {
    /// No condition lasts.
    pub const fn new(clock: Clock) -> Self {
        Self {
            clock,
            active: Mutex::new(BTreeMap::new()),
            stopped_until: Mutex::new(None),
        }
    }

    /// The time by the clock of the conditions.
    pub fn now(&self) -> UnixTime {
        self.clock.now()
    }

    /// Notes that the condition lasts for the `cause` given, or has ended if there is none. Its beginning and its end
    /// are logged.
    pub fn set(&self, condition: Condition, cause: Option<String>) {
        self.note(condition, cause, true);
    }

    /// As [`Self::set`], for a condition whose beginning and end are logged elsewhere.
    pub fn set_logged_elsewhere(&self, condition: Condition, cause: String) {
        self.note(condition, Some(cause), false);
    }

    fn note(&self, condition: Condition, cause: Option<String>, logs: bool) {
        let (name, mut active) = (condition.as_str(), self.active.lock());
        let Some(cause) = cause else {
            let ended = active.remove(&condition);
            if ended.is_some() && condition.stops_signed_calls() {
                *self.stopped_until.lock() = Some(self.clock.now());
            }
            if let Some(ended) = ended.filter(|ended| ended.is_logged) {
                let seconds = self.clock.now().0.saturating_sub(ended.since.0);
                tracing::info!(condition = name, seconds, "condition ended");
            }
            return;
        };
        let known = active.entry(condition).or_insert_with(|| Active {
            since: self.clock.now(),
            cause: String::new(),
            noted: UnixTime(0),
            is_logged: false,
        });
        if logs && !known.is_logged {
            known.is_logged = true;
            match condition.needs_attention() {
                true => tracing::error!(condition = name, cause, "condition began"),
                false => tracing::warn!(condition = name, cause, "condition began"),
            }
        }
        (known.cause, known.noted) = (cause, self.clock.now());
    }

    /// Whether the condition lasts.
    #[must_use]
    pub fn lasts(&self, condition: Condition) -> bool {
        self.active.lock().contains_key(&condition)
    }

    /// Ends a condition that only requests and periodic work notice, once it was not noted for some seconds.
    pub fn end_if_quiet(&self, condition: Condition) {
        let noted = self.noted(condition);
        if noted.is_some_and(|noted| noted.after(QUIET) <= self.clock.now()) {
            self.set(condition, None);
        }
    }

    /// Ends a condition that has not been noted since a search for it began.
    pub fn end_unless_noted_since(&self, condition: Condition, begun: UnixTime) {
        let noted = self.noted(condition);
        if noted.is_some_and(|noted| noted < begun) {
            self.set(condition, None);
        }
    }

    /// The time at which a condition that lasts was last noted.
    fn noted(&self, condition: Condition) -> Option<UnixTime> {
        let active = self.active.lock();
        active.get(&condition).map(|active| active.noted)
    }

    /// The end of the last condition that stopped signed calls, if there was one.
    pub fn stopped_until(&self) -> Option<UnixTime> {
        *self.stopped_until.lock()
    }

    /// All that last, those that stop signed calls first.
    pub fn active(&self) -> Vec<(Condition, Active)> {
        let active = self.active.lock();
        let pairs = active.iter();
        pairs
            .map(|(condition, active)| (*condition, active.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::{super::tests::logged, *};

    #[test]
    fn the_log_has_the_beginning_and_the_end_and_since_stays() {
        let clock = Clock::manual(UnixTime(1_000));
        let conditions = Conditions::new(clock.clone());
        let lines = logged(|| {
            for cause in ["first", "second"] {
                conditions.set(Condition::NonceWindowFull, Some(cause.to_owned()));
                clock.advance(Duration::from_secs(5));
            }
            let [(Condition::NonceWindowFull, active)] = &conditions.active()[..] else {
                panic!("one lasts");
            };
            assert_eq!((active.since, &*active.cause), (UnixTime(1_000), "second"));
            assert_eq!(conditions.stopped_until(), None);
            conditions.set(Condition::NonceWindowFull, None);
            assert!(conditions.stopped_until().is_some());
            conditions.set(Condition::NonceWindowFull, None);
        });
        assert_eq!(lines.len(), 2, "{lines:#?}");
        assert!(lines[0].contains("ERROR") && lines[0].contains("nonce_window_full"));
        assert!(lines[1].contains("INFO") && lines[1].contains("seconds=10"));
        assert_eq!(conditions.active(), []);
    }

    #[test]
    fn logs_no_condition_that_is_logged_elsewhere() {
        let conditions = Conditions::new(Clock::manual(UnixTime(1_000)));
        let lines = logged(|| {
            conditions.set_logged_elsewhere(Condition::Store, "gone".to_owned());
            conditions.set(Condition::Store, None);
        });
        assert_eq!(lines, Vec::<String>::new());
    }

    #[test]
    fn those_that_stop_signed_calls_come_first() {
        let stops = Condition::VARIANTS
            .iter()
            .map(|one| one.stops_signed_calls());
        assert!(stops.is_sorted_by(|one, next| one >= next));
    }
}
