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
use serde_json::json;

pub use self::{
    base_strings::{BaseStrings, MarkedText},
    observed::ObservedCalls,
    reason_count::{ReasonCount, sort},
};
use self::{observed::ObservedDay, reason_count::Counts};
use crate::{
    base::clock::{Clock, UnixTime},
    telemetry::calls::{
        facts::SenderProof, last_day::LastDay, record::CallRecord, verdict::Verdict,
    },
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

/// The texts of a rejection: it names one consumer and one token.
const TEXTS: usize = 10;

/// The most bytes that one consumer takes.
pub const MOST_BYTES: usize = size_of::<LastDay>()
    + (OF_CONSUMER + REASONS) * (size_of::<KeptCall>() + TEXTS * MAX_TEXT + 32)
    + REASONS * (size_of::<ReasonCount>() + base_strings::MOST_BYTES);

/// A call that was rejected or failed, or that enforcing would reject. Serde writes the members of `/v1/rejections`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptCall {
    /// Its number among all rejections of this process.
    pub number: u64,
    /// The time at which the response ended.
    pub time: UnixTime,
    /// Its facts. The user is the account to which a login failed.
    pub call: CallRecord<'static>,
    /// Whether the consumer that it names is registered.
    pub is_registered: bool,
    /// The calls of the consumer that were accepted before it, in this process.
    pub accepted_before: u64,
    /// The base strings, if the signature is wrong. Only those of the last call of each reason are kept.
    pub base_strings: Option<Box<BaseStrings>>,
}

impl From<CallRecord<'_>> for KeptCall {
    /// Keeps the facts that the lists show, and cuts long texts.
    fn from(call: CallRecord<'_>) -> Self {
        let is_login = call.verdict == Verdict::LoginFailed;
        let shown = CallRecord {
            user: call.user.filter(|_| is_login),
            host: None,
            upstream: None,
            cause: None,
            ..call
        };
        Self {
            call: shown.into_owned(MAX_TEXT),
            ..Self::default()
        }
    }
}

impl KeptCall {
    fn proves_nothing(&self) -> bool {
        self.call.proof.unwrap_or_default() == SenderProof::None
    }
}

impl Serialize for KeptCall {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let call = &self.call;
        let members = json!({
            "time": self.time,
            "request_id": call.request_id,
            "method": call.method,
            "path": call.path,
            "operation": call.operation.as_deref().unwrap_or_default(),
            "consumer": call.named_consumer(),
            "proof": call.proof.unwrap_or_default(),
            "previous_secret": call.secret.is_some(),
            "token": call.named_token(),
            "verdict": call.verdict.as_str(),
            "observed": call.observed().is_some(),
            "diagnosis": call.shown_diagnosis(),
            "parameters": call.parameters,
            "problem": call.problem,
            "status": call.status,
            "address": call.caller_address(),
        });
        members.serialize(serializer)
    }
}

/// The last calls, the newest first.
#[derive(Debug, Default)]
struct Ring(VecDeque<Arc<KeptCall>>);

impl Ring {
    /// Adds a call, and returns the one that leaves, which is freed without the lock: the oldest that proves nothing, else
    /// the oldest.
    fn add(&mut self, one: Arc<KeptCall>, most: usize) -> Option<Arc<KeptCall>> {
        self.0.push_front(one);
        if self.0.len() <= most {
            return None;
        }
        let unproved = self.0.iter().rposition(|one| one.proves_nothing());
        self.0.remove(unproved.unwrap_or(most))
    }
}

#[derive(Debug, Default)]
struct ConsumerRejections {
    last: Ring,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Kept {
    /// The number of the last one.
    number: u64,
    consumers: HashMap<String, ConsumerRejections>,
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
    fn make_room(&mut self) -> Option<ConsumerRejections> {
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

    /// Adds a rejection of this moment.
    pub fn add(&self, mut rejection: KeptCall) {
        rejection.time = self.clock.now();
        let base_strings = rejection.base_strings.take().map(Arc::from);
        let is_fault = rejection.call.is_fault();
        let consumer = rejection.call.named_consumer().map(str::to_owned);
        let consumer = consumer.filter(|_| rejection.is_registered && !is_fault);
        let mut kept = self.kept.lock();
        kept.number += 1;
        rejection.number = kept.number;
        let one = Arc::new(rejection);
        if one.call.observed().is_some() {
            kept.observed.add(&one);
        }
        let mut forgotten = None;
        let oldest = match consumer {
            Some(key) => {
                if !kept.consumers.contains_key(&key) && one.proves_nothing() {
                    forgotten = kept.make_room();
                    kept.unproved.push_back(key.clone());
                }
                let of = kept.consumers.entry(key).or_default();
                of.counts.add(&one, base_strings);
                of.last.add(one, OF_CONSUMER)
            }
            None if is_fault => kept.faults.add(one, OF_OTHERS),
            None => {
                if one.call.named_consumer().is_none() {
                    kept.unsigned.add(&one, None);
                }
                kept.others.add(one, OF_OTHERS)
            }
        };
        drop(kept);
        drop((oldest, forgotten));
    }

    /// Those that are kept, the newest first.
    pub fn newest(&self) -> Vec<Arc<KeptCall>> {
        let kept = self.kept.lock();
        let of_consumers = kept.consumers.values().map(|of| &of.last);
        let rings = of_consumers.chain([&kept.others, &kept.faults]);
        let mut all = Vec::from_iter(rings.flat_map(|ring| ring.0.iter().cloned()));
        drop(kept);
        all.sort_unstable_by_key(|one| std::cmp::Reverse(one.number));
        all
    }

    /// The calls of a registered consumer that were rejected in the last 24 hours, or that enforcing would reject, by the hour.
    pub fn last_day(&self, consumer: &str) -> LastDay {
        let kept = self.kept.lock();
        let of = kept.consumers.get(consumer);
        of.map(|of| of.counts.day.clone()).unwrap_or_default()
    }

    /// The last calls of a registered consumer, the newest first.
    pub fn newest_of(&self, consumer: &str) -> Vec<Arc<KeptCall>> {
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
        let would_break = |one: &ReasonCount| one.would_break(now);
        let consumers = reasons.filter(|all| all.iter().any(would_break)).count();
        kept.observed.sums(now, consumers)
    }

    /// Whether a rejection of this consumer is kept.
    pub fn has(&self, consumer: &str) -> bool {
        self.kept.lock().consumers.contains_key(consumer)
    }

    /// Forgets the rejections of a consumer that was removed.
    pub fn forget(&self, consumer: &str) {
        let forgotten = self.kept.lock().consumers.remove(consumer);
        // Freed without the lock.
        drop(forgotten);
    }
}

#[cfg(test)]
mod tests;
