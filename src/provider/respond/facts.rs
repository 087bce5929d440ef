//! What is known about a call after the decision on it.

use std::time::Duration;

use crate::{
    oauth::DeviationSet,
    provider::respond::Failure,
    request::{parse::claimed::Claimed, policy::rate_limit::Quota, verify::Sender},
};

/// The facts about a call, for logs and metrics.
#[derive(Debug, Default)]
pub struct Facts {
    /// The consumer and token that a signed call names, unless its permit has them.
    pub claimed: Option<Box<Claimed>>,
    /// The consumer that it names, as far as that was looked up.
    pub sender: Sender,
    /// It has a Bearer token, and these are accepted.
    pub is_bearer: bool,
    /// The deviations from RFC 5849 that were accepted from its consumer.
    pub deviations: DeviationSet,
    /// The duration of the verification, if it took place.
    pub verify: Option<Duration>,
    /// The seconds that the consumer's clock is ahead of ours.
    pub skew_seconds: Option<i64>,
    /// The rate of its consumer, if it has one, and what is left of it.
    pub quota: Option<Quota>,
    /// The failure that would have rejected a call that is only observed.
    pub observed: Option<Box<Failure>>,
}
