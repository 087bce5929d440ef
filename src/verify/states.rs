//! The states of consumers and tokens, told only under a right signature.

use super::Params;
use crate::{
    clock::UnixTime,
    refusal::Refusal,
    secret::Secret,
    store::{
        cached::{AccessCredentials, ConsumerCredentials},
        record::Consumer,
    },
};

/// Whether the consumer may call at all.
///
/// # Errors
/// [`Refusal::ConsumerDisabled`]
pub fn check_consumer(consumer: &ConsumerCredentials) -> Result<(), Refusal> {
    if consumer.consumer.enabled {
        Ok(())
    } else {
        Err(Refusal::ConsumerDisabled)
    }
}

/// Whether the access token is in force.
///
/// # Errors
/// [`Refusal::TokenExpired`], then [`Refusal::TokenRevoked`].
pub fn check_access(
    params: &Params,
    access: &AccessCredentials,
    now: UnixTime,
) -> Result<(), Refusal> {
    let token = &access.token;
    let expired = token.expires_at.is_some_and(|at| now >= at);
    if expired || is_idle(params, access, now) {
        return Err(Refusal::TokenExpired);
    }
    if token.revoked_at.is_some() {
        return Err(Refusal::TokenRevoked);
    }
    Ok(())
}

/// Whether the access token has not been used for too long, as far as is known here.
#[must_use]
pub fn is_idle(params: &Params, access: &AccessCredentials, now: UnixTime) -> bool {
    let last_used = access.last_used().unwrap_or(access.token.issued_at);
    params
        .access_idle
        .is_some_and(|idle| now >= last_used.after(idle))
}

/// The secrets that verify now: the current one, and the one before while its grace lasts.
pub fn secrets(consumer: &Consumer, now: UnixTime) -> impl Iterator<Item = &Secret> {
    let previous = consumer
        .previous_secret
        .as_ref()
        .filter(move |(_, until)| now < *until)
        .map(|(secret, _)| secret);
    std::iter::once(&consumer.secret).chain(previous)
}
