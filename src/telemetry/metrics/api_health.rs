//! Whether the API answers, told from the calls: a failure among answered calls is one of that call, and not an outage.

use std::time::Duration;

use parking_lot::Mutex;

use crate::base::clock::UnixTime;

/// So many failures without an answered call between them are an outage, as outlier detection in proxies usually has it.
const IN_A_ROW: u32 = 5;

/// An API that has answered nothing for this long and cannot be reached is away, however few calls there are.
const SILENT: Duration = Duration::from_secs(5);

/// Decides whether a call that failed because of the API is part of an outage.
#[derive(Debug, Default)]
pub(super) struct ApiHealth(Mutex<Answers>);

#[derive(Debug, Default)]
struct Answers {
    /// All responses of the API when they were last counted.
    count: u64,
    /// The time at which there were more than before.
    last: Option<UnixTime>,
    /// The failures since then.
    failures: u32,
}

impl Answers {
    fn look(&mut self, count: u64, now: UnixTime) {
        if count > self.count {
            (self.count, self.last, self.failures) = (count, Some(now), 0);
        }
    }
}

impl ApiHealth {
    /// Notes a call that failed because of the API, which has sent this many responses, and says whether the API is away.
    pub(super) fn failed(&self, answers: u64, is_unreachable: bool, now: UnixTime) -> bool {
        let mut known = self.0.lock();
        known.look(answers, now);
        known.failures = known.failures.saturating_add(1);
        let is_silent = known.last.is_none_or(|last| last.after(SILENT) <= now);
        known.failures >= IN_A_ROW || is_unreachable && is_silent
    }

    /// Whether the API, which has sent this many responses, has answered since the last failure.
    pub(super) fn answers(&self, answers: u64, now: UnixTime) -> bool {
        let mut known = self.0.lock();
        known.look(answers, now);
        known.failures == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_among_answered_calls_are_no_outage() {
        let api = ApiHealth::default();
        let at = UnixTime;
        // An operation that always times out, and that answers each fifth time.
        for call in 1..100 {
            assert!(!api.failed(call, false, at(call)), "{call}");
            assert!(!api.failed(call, true, at(call)), "{call}");
            assert!(!api.answers(call, at(call)));
            assert!(api.answers(call + 1, at(call)));
        }
    }

    #[test]
    fn five_failures_in_a_row_are_an_outage_until_a_response() {
        let api = ApiHealth::default();
        assert!(api.answers(1, UnixTime(1)));
        let failed = |_| api.failed(1, false, UnixTime(2));
        let found = [(); 6].map(failed);
        assert_eq!(found, [false, false, false, false, true, true]);
        assert!(!api.answers(1, UnixTime(3)));
        assert!(api.answers(2, UnixTime(4)));
        assert!(!api.failed(2, false, UnixTime(60)), "a slow call");
    }

    #[test]
    fn an_api_that_cannot_be_reached_and_was_silent_is_away_at_once() {
        let api = ApiHealth::default();
        assert!(api.failed(0, true, UnixTime(1)), "it never answered");
        assert!(api.answers(1, UnixTime(10)));
        assert!(!api.failed(1, true, UnixTime(14)), "it has just answered");
        assert!(api.failed(1, true, UnixTime(15)));
    }
}
