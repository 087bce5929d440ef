//! The last calls that were rejected or failed, in memory, for the operator.

use std::collections::VecDeque;

use parking_lot::Mutex;
use serde::Serialize;

use crate::base::clock::{Clock, UnixTime};

/// The number of rejections that are newest_first.
const KEPT: usize = 1_000;

/// The longest text of a rejection, in bytes. With [`KEPT`] it bounds the memory of all.
const MAX_TEXT: usize = 256;

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
    /// Whether the signature proves that it is this consumer.
    pub verified: bool,
    /// The first 8 characters of the token that the call names.
    pub token: Option<String>,
    /// The verdict of the access log: `observed` if the call went to the API although enforcing would reject it.
    pub verdict: &'static str,
    /// The known mistake that makes the wrong signature. For an observed call without one, the verdict that enforcing
    /// would give.
    pub diagnosis: Option<&'static str>,
    /// The names of the parameters that are missing or not acceptable, percent-encoded and joined by `&`.
    pub parameters: Option<String>,
    /// What is wrong with them.
    #[serde(skip)]
    pub parameters_problem: Option<String>,
    /// The status of the response; 0 without one.
    pub status: u16,
    /// The address of the caller, as trusted proxies name it.
    pub address: Option<String>,
    /// The verdict; for an observed call, the one that enforcing would give.
    #[serde(skip)]
    pub reason: &'static str,
    /// The seconds by which the consumer's clock is ahead, if that is the reason.
    #[serde(skip)]
    pub skew_seconds: Option<i64>,
    /// The permission that is missing, if that is the reason.
    #[serde(skip)]
    pub missing_permission: Option<String>,
    /// The key of the other rule of the operation that denied the call, if that is the reason.
    #[serde(skip)]
    pub denied_by: Option<&'static str>,
}

/// The last rejections of this process.
#[derive(Debug)]
pub struct Rejections {
    clock: Clock,
    /// The newest first.
    newest_first: Mutex<VecDeque<RecordedRejection>>,
}

impl Rejections {
    /// Nothing was rejected yet.
    pub const fn new(clock: Clock) -> Self {
        Self {
            clock,
            newest_first: Mutex::new(VecDeque::new()),
        }
    }

    /// Adds a rejection of this moment, and forgets the oldest one if there are 1,000. Long texts are cut.
    pub fn add(&self, mut rejection: RecordedRejection) {
        rejection.time = self.clock.now();
        let RecordedRejection {
            request_id,
            method,
            operation,
            consumer,
            token,
            missing_permission,
            parameters,
            parameters_problem,
            ..
        } = &mut rejection;
        let texts = [
            request_id,
            method,
            consumer,
            token,
            missing_permission,
            parameters,
            parameters_problem,
        ];
        for text in texts.into_iter().flatten().chain([operation]) {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            text.shrink_to_fit();
        }
        let mut newest_first = self.newest_first.lock();
        rejection.number = newest_first.front().map_or(1, |newest| newest.number + 1);
        let oldest = (newest_first.len() == KEPT).then(|| newest_first.pop_back());
        newest_first.push_front(rejection);
        drop(newest_first);
        // Freed without the lock.
        drop(oldest);
    }

    /// Those that are kept, the newest first.
    pub fn newest(&self) -> Vec<RecordedRejection> {
        self.newest_first.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn keeps_the_newest_thousand_and_cuts_long_texts() {
        let clock = Clock::manual(UnixTime(1_000));
        let rejections = Rejections::new(clock.clone());
        for number in 0..KEPT + 5 {
            clock.advance(Duration::from_secs(1));
            rejections.add(RecordedRejection {
                request_id: Some(format!("id-{number}")),
                method: Some("é".repeat(1_000)),
                operation: "o".repeat(257),
                ..RecordedRejection::default()
            });
        }
        let newest = rejections.newest();
        assert_eq!(newest.len(), KEPT);
        let ids = [&newest[0], &newest[KEPT - 1]].map(|one| one.request_id.as_deref());
        assert_eq!(ids, [Some("id-1004"), Some("id-5")]);
        assert_eq!(newest[0].time, UnixTime(1_000 + KEPT as u64 + 5));
        assert_eq!(newest[0].method.as_ref().unwrap(), &"é".repeat(128));
        assert_eq!(newest[0].operation.len(), MAX_TEXT);
    }

    #[test]
    fn has_the_members_of_the_api_alone() {
        let members = serde_json::to_value(RecordedRejection::default()).unwrap();
        let names: Vec<&String> = members.as_object().unwrap().keys().collect();
        let expected = "time request_id method operation consumer verified token verdict diagnosis parameters status address";
        assert_eq!(names, expected.split(' ').collect::<Vec<_>>());
    }
}
