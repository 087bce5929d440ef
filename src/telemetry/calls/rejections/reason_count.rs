//! How many calls were rejected for each reason, since the first one and in the last day.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use super::{BaseStrings, KeptCall, REASONS};
use crate::{
    base::clock::UnixTime,
    telemetry::calls::{facts::SenderProof, last_day::LastDay, verdict::Verdict},
};

/// The calls of one consumer that were rejected for one reason.
#[derive(Debug, Clone)]
pub struct ReasonCount {
    /// The last of them.
    pub newest: Arc<KeptCall>,
    /// The time of the first one since this process started.
    pub first: UnixTime,
    /// Their number.
    pub count: u64,
    /// The number of those in the last day.
    day: LastDay,
    /// The number of those with each [`SenderProof`], in the order of its variants.
    pub proofs: [u64; 3],
    /// Between two of them other calls of the consumer were accepted: it makes the mistake in some of its calls.
    pub is_in_some_calls: bool,
    /// The base strings of the last call that has some.
    pub base_strings: Option<Arc<BaseStrings>>,
    /// The number of that call.
    pub base_strings_of: u64,
}

impl ReasonCount {
    /// The first call of its kind.
    pub fn new(first: &Arc<KeptCall>) -> Self {
        let mut begun = Self {
            newest: Arc::clone(first),
            first: first.time,
            count: 0,
            day: LastDay::default(),
            proofs: [0; 3],
            is_in_some_calls: false,
            base_strings: None,
            base_strings_of: 0,
        };
        begun.add(first);
        begun
    }

    /// Adds a call, mostly a later one; the logs of several replicas may be read one after the other.
    pub fn add(&mut self, next: &Arc<KeptCall>) {
        self.is_in_some_calls |= next.accepted_before > self.newest.accepted_before;
        if next.time >= self.newest.time {
            self.newest = Arc::clone(next);
        }
        self.first = self.first.min(next.time);
        self.count += 1;
        self.day.add(next.time, 1);
        self.proofs[next.call.proof.unwrap_or_default() as usize] += 1;
    }

    /// The number of those in the last 24 hours, counted by the hour.
    pub fn last_day(&self, now: UnixTime) -> u64 {
        self.day.sum(now)
    }

    /// Whether anybody could have sent all of them.
    pub(super) fn proves_nothing(&self) -> bool {
        self.proofs[SenderProof::None as usize] == self.count
    }

    /// The least is dropped first. What enforcing would break is for the operator to see, whatever keys unauthenticated callers
    /// invent meanwhile.
    fn rank(&self, now: UnixTime) -> (bool, bool, u64) {
        (
            !self.proves_nothing(),
            self.would_break(now),
            self.newest.number,
        )
    }

    /// Adds calls of the same reason, which may be earlier.
    pub fn merge(&mut self, other: Self) {
        if other.newest.number > self.newest.number {
            self.newest = other.newest;
        }
        self.first = self.first.min(other.first);
        self.count += other.count;
        self.day.merge(other.day);
        self.is_in_some_calls |= other.is_in_some_calls;
        for (mine, others) in self.proofs.iter_mut().zip(other.proofs) {
            *mine += others;
        }
    }

    /// Whether a call has the same reason. The rule of the operation that denies a call is a part of the reason.
    pub fn is_of(&self, other: &KeptCall) -> bool {
        let (newest, other) = (&self.newest.call, &other.call);
        newest.mistake() == other.mistake()
            && newest.observed().is_some() == other.observed().is_some()
            && newest.is_rejected_by_api() == other.is_rejected_by_api()
            && newest.denied_by == other.denied_by
            && newest.missing_permission == other.missing_permission
            && newest.names_disabled_consumer() == other.names_disabled_consumer()
            && newest.lacks_token() == other.lacks_token()
            && newest.is_from_page() == other.is_from_page()
            && newest.is_unlisted() == other.is_unlisted()
    }

    /// Whether calls of the last day passed that enforcing would reject.
    pub fn would_break(&self, now: UnixTime) -> bool {
        self.is_observed() && !self.newest.call.is_rejected_by_api() && self.last_day(now) > 0
    }

    /// The calls went to the API although enforcing would reject them.
    pub fn is_observed(&self) -> bool {
        self.newest.call.observed().is_some()
    }
}

/// Serde writes the members of `/v1/rejections/summary`.
impl Serialize for ReasonCount {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let [verified, secrets, none] = self.proofs;
        let members = json!({
            "consumer": self.newest.call.named_consumer(),
            "reason": self.newest.call.mistake(),
            "verdict": match self.is_observed() {
                true => Verdict::Observed.as_str(),
                false => self.newest.call.verdict.as_str(),
            },
            "count": self.count,
            "first": self.first,
            "last": self.newest.time,
            "proof": { "verified": verified, "secrets": secrets, "none": none },
            "previous_secret": self.newest.call.secret.is_some(),
        });
        members.serialize(serializer)
    }
}

/// The counts of the calls of one sender.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) reasons: Vec<ReasonCount>,
    pub(super) day: LastDay,
}

impl Counts {
    pub(super) fn add(&mut self, one: &Arc<KeptCall>, base_strings: Option<Arc<BaseStrings>>) {
        self.day.add(one.time, 1);
        match self.reasons.iter_mut().find(|known| known.is_of(one)) {
            Some(known) => {
                known.add(one);
                if base_strings.is_some() {
                    (known.base_strings, known.base_strings_of) = (base_strings, one.number);
                }
            }
            None => {
                let known = self.reasons.iter().enumerate();
                let oldest = known.min_by_key(|(_, known)| known.rank(one.time));
                if let (REASONS, Some((oldest, _))) = (self.reasons.len(), oldest) {
                    self.reasons.swap_remove(oldest);
                }
                self.reasons.push(ReasonCount {
                    base_strings,
                    base_strings_of: one.number,
                    ..ReasonCount::new(one)
                });
            }
        }
    }
}

/// Sorts reasons: the most frequent first, and among equal ones the last.
pub fn sort(reasons: &mut [ReasonCount]) {
    reasons.sort_by_key(|one| std::cmp::Reverse((one.count, one.newest.number)));
}
