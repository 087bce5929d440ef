//! The advice that a response carries when the signature is wrong: the known mistake that would have made it. It has
//! nothing of a secret in it.
//!
//! Finding the mistake takes as long as some two hundred checks. It helps people who write consumers, a few at a time:
//! large requests are not diagnosed, and only a limited number per second are, so that wrong signatures cannot keep the
//! proxy busy.

use std::{
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{Credential, Params, base_string};
use crate::{
    clock::UnixTime,
    oauth::{
        Selection,
        diagnosis::{Attempt, Mistake, diagnose},
    },
    parse::signed::SignedRequest,
    secret::Secret,
};

/// What a response to a wrong signature says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Advice {
    /// Nothing.
    Off,
    /// The known mistake that would match.
    Hint,
    /// Also the base string as computed here.
    Full,
}

/// A body that was not read, because no signature covers it: a consumer may have signed it by mistake.
pub trait UnreadBody {
    /// Reads it, if its announced length is at most `limit` bytes.
    fn read(&mut self, limit: usize) -> Pin<Box<dyn Future<Output = Option<&[u8]>> + '_>>;
}

/// How many requests are diagnosed in a second.
const MAX_IN_A_SECOND: u64 = 20;

/// A request with more bytes in its path, query, parameters and body together is not diagnosed. Each mistake is computed
/// from all of them, so this limit and the next bound one diagnosis to a few milliseconds.
const MAX_BYTES: usize = 4 * 1024;

/// A request with more parameters is not diagnosed: some mistakes are searched in each pair of them.
const MAX_PARAMETERS: usize = 64;

/// The advice if no known mistake matches, or none was searched.
const GENERAL: &str = "compare the base string by `countersign explain`, and both secrets with those that were issued";

/// The advice if the secret is right and the consumer is restricted to its RSA key.
pub const RSA_ONLY: &str =
    "this consumer is restricted to its RSA key: sign with RSA-SHA1, RSA-SHA256 or RSA-SHA512";

/// Finds the mistake behind a wrong signature.
#[derive(Debug, Default)]
pub(super) struct Adviser {
    /// The second that is counted in the lower half, how many were diagnosed in it in the upper half.
    counted: AtomicU64,
}

impl Adviser {
    /// The advice for a request whose signature does not hold, as far as `signature.advice` allows it, and the mistake
    /// that it names.
    #[cold]
    pub(super) async fn advise(
        &self,
        params: &Params,
        request: &SignedRequest<'_>,
        unread: Option<&mut dyn UnreadBody>,
        credential: &Credential,
        now: UnixTime,
    ) -> (Option<String>, Option<Mistake>) {
        if params.advice == Advice::Off {
            return (None, None);
        }
        let bytes = bytes_if_small(request);
        let small = bytes.is_some();
        let mistake = match bytes.filter(|_| self.may_diagnose(now)) {
            None => None,
            Some(bytes) => match unread {
                Some(unread) if request.body.is_none() => {
                    let body = unread.read(MAX_BYTES.saturating_sub(bytes)).await;
                    diagnosed(params, request, body.unwrap_or_default(), credential, now)
                }
                _ => diagnosed(
                    params,
                    request,
                    request.body.unwrap_or_default(),
                    credential,
                    now,
                ),
            },
        };
        let advice = mistake.map_or(GENERAL, Mistake::advice);
        if params.advice == Advice::Hint || !small {
            return (Some(advice.to_owned()), mistake);
        }
        let base = base_string(request, Selection::Rfc5849).to_vec();
        let advice = format!(
            "{advice}; the base string here is {}",
            String::from_utf8_lossy(&base)
        );
        (Some(advice), mistake)
    }

    /// Counts one more in this second, if there is room for it.
    fn may_diagnose(&self, now: UnixTime) -> bool {
        let second = now.0 & u64::from(u32::MAX);
        let counted = |state: u64| {
            let used = if state & u64::from(u32::MAX) == second {
                state >> 32
            } else {
                0
            };
            (used < MAX_IN_A_SECOND).then_some((used + 1) << 32 | second)
        };
        self.counted
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted)
            .is_ok()
    }
}

/// The bytes of the request, unless it is too large to be diagnosed.
fn bytes_if_small(request: &SignedRequest<'_>) -> Option<usize> {
    let sent = request.path.len() + request.query.len() + request.body.map_or(0, <[u8]>::len);
    if sent > MAX_BYTES {
        return None;
    }
    let first = request.parameters.iter().take(MAX_PARAMETERS + 1);
    let (count, bytes) = first.fold((0, sent), |(count, bytes), parameter| {
        (
            count + 1,
            bytes + parameter.name.len() + parameter.value.len(),
        )
    });
    (count <= MAX_PARAMETERS && bytes <= MAX_BYTES).then_some(bytes)
}

fn diagnosed(
    params: &Params,
    request: &SignedRequest<'_>,
    body: &[u8],
    credential: &Credential,
    now: UnixTime,
) -> Option<Mistake> {
    let token_secret = credential.token_secret().unwrap_or(Secret::from(""));
    let consumer = credential.consumer();
    let previous = consumer.previous_secret();
    let expired = previous.filter(|(_, until)| now >= *until);
    let diagnosis = diagnose(&Attempt {
        method: request.method,
        scheme: request.url.origin.scheme,
        authority: &request.url.origin.authority(),
        path: request.path,
        query: request.query,
        parameters: request.parameters,
        other_body: body,
        prefix: &request.url.prefix,
        other_urls: &params.other_urls,
        callbacks: consumer.callbacks(),
        previous_secret: expired.map(|(secret, _)| secret),
        consumer_secret: &consumer.secret,
        token_secret: &token_secret,
        rsa: consumer.rsa(),
        signature_method: request.credentials.signature_method,
        signature: request.credentials.signature,
    })?;
    diagnosis.mistakes.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnoses_so_many_in_a_second_and_no_more() {
        let adviser = Adviser::default();
        for second in [1000, 1001] {
            let allowed = (0..200)
                .filter(|_| adviser.may_diagnose(UnixTime(second)))
                .count();
            assert_eq!(allowed as u64, MAX_IN_A_SECOND);
        }
    }
}
