//! The calls that were rejected or failed, in memory, for the operator.
//!
//! Each registered consumer has its own last calls and its own counts, so that other consumers cannot push them out. A call
//! that proves nothing replaces only its like. Calls that name no registered consumer share one list, and our own faults
//! another. A consumer that was never rejected takes no memory; one that was takes at most [`MOST_BYTES`]. Anybody can send
//! the keys of consumers, so at most `MOST_UNPROVED` consumers are kept of which no call proves anything.

mod base_strings;
mod observed;
mod reason_count;

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use serde::Serialize;

pub use self::{
    base_strings::{BaseStrings, MarkedText},
    observed::ObservedCalls,
    reason_count::{ReasonCount, sort},
};
use self::{observed::ObservedDay, reason_count::Counts};
use crate::{
    base::clock::{Clock, UnixTime},
    records::store::feed::RemembersConsumers,
    telemetry::{last_day::LastDay, metrics::Verdict},
};

/// The last calls that are kept of each registered consumer.
const OF_CONSUMER: usize = 20;

/// The consumers that are kept although no call proves anything; those that came first are forgotten.
const MOST_UNPROVED: usize = 10_000;

/// The reasons that are counted for each registered consumer. The one with the oldest last call is forgotten, of those that
/// prove nothing if there are any.
const REASONS: usize = 16;

/// The last calls that are kept without a registered consumer, and the last faults.
const OF_OTHERS: usize = 1_000;

/// The longest text of a rejection, in bytes.
const MAX_TEXT: usize = 256;

/// The texts of a rejection.
const TEXTS: usize = 9;

/// The most bytes that one consumer takes.
pub const MOST_BYTES: usize = size_of::<LastDay>()
    + (OF_CONSUMER + REASONS) * (size_of::<RecordedRejection>() + TEXTS * MAX_TEXT + 32)
    + REASONS * (size_of::<ReasonCount>() + base_strings::MOST_BYTES);

/// What a call proves about its sender.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum SenderProof {
    /// Its signature is right.
    Verified,
    /// Its signature is wrong, and made with the consumer's secret: the diagnosis found the mistake.
    Secrets,
    /// Nothing: anybody can send the key of a consumer.
    #[default]
    None,
}

/// The diagnosis of a wrong signature that was not examined, or not to the end.
pub const SKIPPED: &str = "skipped";

/// The diagnosis of a signature that is made with the secret before the last rotation, whose grace has ended or never began.
pub const REPLACED_SECRET: &str = "previous_secret";

/// A call that was rejected or failed, or that enforcing would reject. Serde writes the members of `/v1/rejections`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RecordedRejection {
    /// Its number among all rejections of this process.
    #[serde(skip)]
    pub number: u64,
    /// The time at which the response ended.
    pub time: UnixTime,
    /// The id of the request; `None` if its head could not be read.
    pub request_id: Option<String>,
    /// The method; `None` if the head could not be read.
    pub method: Option<String>,
    /// The operation, as in the access log.
    pub operation: String,
    /// The consumer that the call names.
    pub consumer: Option<String>,
    /// Whether it is registered.
    #[serde(skip)]
    pub is_registered: bool,
    /// What the call proves of that consumer.
    pub proof: SenderProof,
    /// It is signed with the consumer's previous secret, during its grace.
    pub previous_secret: bool,
    /// The first 8 characters of the token that the call names.
    pub token: Option<String>,
    /// The verdict of the access log: of an observed call `observed`, or why it failed then.
    pub verdict: &'static str,
    /// Enforcing would reject it. It went on to the API, or would have.
    #[serde(rename = "observed")]
    pub is_observed: bool,
    /// The known mistake that makes the wrong signature; [`SKIPPED`] if it was not looked for. For an observed call without one, the verdict that enforcing
    /// would give.
    pub diagnosis: Option<&'static str>,
    /// The names of the parameters that are missing or not acceptable, percent-encoded and joined by `&`.
    pub parameters: Option<String>,
    /// What the response says is wrong with them, or with the method, the consumer, the token or the body.
    #[serde(rename = "problem")]
    pub parameters_problem: Option<String>,
    /// The status of the response; 0 without one.
    pub status: u16,
    /// The address of the caller, as trusted proxies name it.
    pub address: Option<String>,
    /// The verdict; for an observed call, the one that enforcing would give.
    #[serde(skip)]
    pub reason: &'static str,
    /// This program or the API is at fault for the reason.
    #[serde(skip)]
    pub is_fault: bool,
    /// The seconds by which the consumer's clock is ahead, if that is the reason.
    #[serde(skip)]
    pub skew_seconds: Option<i64>,
    /// The permission that is missing, if that is the reason.
    #[serde(skip)]
    pub missing_permission: Option<String>,
    /// The key of the other rule of the operation that denied the call, if that is the reason.
    #[serde(skip)]
    pub denied_by: Option<&'static str>,
    /// The calls of the consumer that were accepted before it, in this process.
    #[serde(skip)]
    pub accepted_before: u64,
    /// The base strings, if the signature is wrong. Only those of the last call of each reason are kept.
    #[serde(skip)]
    pub base_strings: Option<Box<BaseStrings>>,
}

impl RecordedRejection {
    /// The mistake in the signature, else the verdict.
    pub fn mistake(&self) -> &'static str {
        self.diagnosis.unwrap_or(self.reason)
    }

    /// Its consumer was disabled. Such a verdict without that is of a call that lacks a pinned value.
    pub fn is_of_disabled(&self) -> bool {
        self.reason == Verdict::ConsumerKeyRefused.as_str() && self.parameters_problem.is_none()
    }

    /// Its token was rejected because it names none.
    pub fn lacks_token(&self) -> bool {
        let is_empty = self.token.as_deref().unwrap_or_default().is_empty();
        is_empty && self.reason == Verdict::TokenRejected.as_str()
    }

    fn texts(&mut self) -> [Option<&mut String>; TEXTS] {
        [
            self.request_id.as_mut(),
            self.method.as_mut(),
            Some(&mut self.operation),
            self.consumer.as_mut(),
            self.token.as_mut(),
            self.parameters.as_mut(),
            self.parameters_problem.as_mut(),
            self.address.as_mut(),
            self.missing_permission.as_mut(),
        ]
    }
}

/// The last calls, the newest first.
#[derive(Debug, Default)]
struct Ring(VecDeque<Arc<RecordedRejection>>);

impl Ring {
    /// Adds a call, and returns the one that leaves, which is freed without the lock: the oldest that proves nothing, else
    /// the oldest.
    fn add(&mut self, one: Arc<RecordedRejection>, most: usize) -> Option<Arc<RecordedRejection>> {
        self.0.push_front(one);
        if self.0.len() <= most {
            return None;
        }
        let unproved = self
            .0
            .iter()
            .rposition(|one| one.proof == SenderProof::None);
        self.0.remove(unproved.unwrap_or(most))
    }
}

#[derive(Debug, Default)]
struct OfConsumer {
    last: Ring,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Kept {
    /// The number of the last one.
    number: u64,
    consumers: HashMap<String, OfConsumer>,
    /// The consumers whose first call proved nothing, the oldest first.
    unproved: VecDeque<String>,
    others: Ring,
    /// Those that name no consumer.
    unsigned: Counts,
    faults: Ring,
    observed: ObservedDay,
}

impl Kept {
    /// Forgets the oldest consumer of which no call proves anything, if there are [`MOST_UNPROVED`].
    fn make_room(&mut self) -> Option<OfConsumer> {
        if self.unproved.len() < MOST_UNPROVED {
            return None;
        }
        let oldest = self.unproved.pop_front()?;
        // One whose later call proved something stays.
        let known = self.consumers.get(&oldest)?;
        let reasons = &known.counts.reasons;
        let proves_nothing = reasons.iter().all(ReasonCount::proves_nothing);
        proves_nothing.then(|| self.consumers.remove(&oldest))?
    }
}

/// The rejections of this process.
#[derive(Debug)]
pub struct Rejections {
    clock: Clock,
    /// The start of this process.
    pub since: UnixTime,
    kept: Mutex<Kept>,
}

impl Rejections {
    /// Nothing was rejected yet.
    pub fn new(clock: Clock) -> Self {
        Self {
            since: clock.now(),
            clock,
            kept: Mutex::default(),
        }
    }

    /// Adds a rejection of this moment. Long texts are cut.
    pub fn add(&self, mut rejection: RecordedRejection) {
        rejection.time = self.clock.now();
        for text in rejection.texts().into_iter().flatten() {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            text.shrink_to_fit();
        }
        let base_strings = rejection.base_strings.take().map(Arc::from);
        let is_fault = rejection.is_fault;
        let consumer = rejection.consumer.clone();
        let consumer = consumer.filter(|_| rejection.is_registered && !is_fault);
        let mut kept = self.kept.lock();
        kept.number += 1;
        rejection.number = kept.number;
        let one = Arc::new(rejection);
        if one.is_observed {
            kept.observed.add(&one);
        }
        let mut forgotten = None;
        let oldest = match consumer {
            Some(key) => {
                if !kept.consumers.contains_key(&key) && one.proof == SenderProof::None {
                    forgotten = kept.make_room();
                    kept.unproved.push_back(key.clone());
                }
                let of = kept.consumers.entry(key).or_default();
                of.counts.add(&one, base_strings);
                of.last.add(one, OF_CONSUMER)
            }
            None if is_fault => kept.faults.add(one, OF_OTHERS),
            None => {
                if one.consumer.is_none() {
                    kept.unsigned.add(&one, None);
                }
                kept.others.add(one, OF_OTHERS)
            }
        };
        drop(kept);
        drop((oldest, forgotten));
    }

    /// Those that are kept, the newest first.
    pub fn newest(&self) -> Vec<Arc<RecordedRejection>> {
        let kept = self.kept.lock();
        let of_consumers = kept.consumers.values().map(|of| &of.last);
        let rings = of_consumers.chain([&kept.others, &kept.faults]);
        let mut all = Vec::from_iter(rings.flat_map(|ring| ring.0.iter().cloned()));
        drop(kept);
        all.sort_unstable_by_key(|one| std::cmp::Reverse(one.number));
        all
    }

    /// The number of calls of a registered consumer that were rejected in the last 24 hours, counted by the hour, or that enforcing
    /// would reject.
    pub fn last_day(&self, consumer: &str) -> u64 {
        let kept = self.kept.lock();
        let of = kept.consumers.get(consumer);
        of.map_or(0, |of| of.counts.day.sum(self.clock.now()))
    }

    /// The last calls of a registered consumer, the newest first.
    pub fn newest_of(&self, consumer: &str) -> Vec<Arc<RecordedRejection>> {
        let kept = self.kept.lock();
        let of = kept.consumers.get(consumer);
        of.map(|of| of.last.0.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// The reasons for which calls of registered consumers were rejected, the most frequent first: of all consumers, or of one.
    pub fn reasons(&self, consumer: Option<&str>) -> Vec<ReasonCount> {
        let kept = self.kept.lock();
        let mut reasons = match consumer {
            Some(key) => kept
                .consumers
                .get(key)
                .map(|of| of.counts.reasons.clone())
                .unwrap_or_default(),
            None => {
                let all = kept.consumers.values();
                all.flat_map(|of| of.counts.reasons.iter().cloned())
                    .collect()
            }
        };
        drop(kept);
        sort(&mut reasons);
        reasons
    }

    /// The reasons for which calls that name no consumer were rejected, the most frequent first.
    pub fn reasons_of_unsigned(&self) -> Vec<ReasonCount> {
        let mut reasons = self.kept.lock().unsigned.reasons.clone();
        sort(&mut reasons);
        reasons
    }

    /// The calls of the last 24 hours, counted by the hour, that enforcing would reject.
    pub fn observed_in_last_day(&self) -> ObservedCalls {
        let now = self.clock.now();
        let kept = self.kept.lock();
        let reasons = kept.consumers.values().map(|of| &of.counts.reasons);
        let is_observed = |one: &ReasonCount| one.is_observed() && one.last_day(now) > 0;
        let consumers = reasons.filter(|all| all.iter().any(is_observed)).count();
        kept.observed.sums(now, consumers)
    }
}

impl RemembersConsumers for Rejections {
    fn has(&self, consumer: &str) -> bool {
        self.kept.lock().consumers.contains_key(consumer)
    }

    fn forget(&self, consumer: &str) {
        let forgotten = self.kept.lock().consumers.remove(consumer);
        // Freed without the lock.
        drop(forgotten);
    }
}

#[cfg(test)]
mod tests;
