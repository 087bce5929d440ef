//! The advice that a response carries when the signature is wrong: the known mistake that would have made it. It contains
//! nothing of a secret.
//!
//! Finding the mistake takes as long as several hundred checks. It helps people who write consumers, a few at a time. So it
//! happens on a thread of its own, one request after the other, and never takes more than a twentieth of a core: wrong
//! signatures cannot delay other requests.

pub mod clock;

use std::{sync::Arc, time::Duration};

use http_body::Body as _;
use rustix::time::{ClockId, clock_gettime};
use tokio::{
    sync::{Mutex, Semaphore},
    task::spawn_blocking,
    time::Instant,
};

use super::{Advised, ComparedTexts, Credential, Purpose, SignedCall, VerifyRules};
use crate::{
    base::{clock::UnixTime, secret::Secret},
    oauth::{
        BaseString, Deviation, ParameterLocation, Parameters, Selection, SignatureMethod,
        diagnosis::{self, Diagnosed, Mistake, WrongSignature, diagnose},
    },
    records::credentials::{AccessCredentials, LocalAccess},
    request::parse::{origin::PublicUrl, signed::SignedRequest},
    wire::server::request::RequestBody,
};

/// The amount of advice in a response to a wrong signature.
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
#[derive(Clone, Copy)]
pub struct UnreadBody<'b> {
    /// The body.
    pub body: &'b RequestBody,
    /// It consists of parts (RFC 7578), which no signature covers.
    pub is_multipart: bool,
}

impl<'b> UnreadBody<'b> {
    /// Reads it, if its announced length is at most `limit` bytes.
    async fn read(self, limit: usize) -> Option<&'b [u8]> {
        let length = usize::try_from(self.body.size_hint().exact()?).ok()?;
        match length <= limit {
            true => self.body.hold().await.ok(),
            false => None,
        }
    }
}

/// Diagnoses take at most one part in this many of a core's time, in the whole process; one part in 20 suffices for some ten
/// of them a second. Code that is not optimized is slow, and tests still have to see each mistake named.
const SHARE: u32 = if cfg!(debug_assertions) { 2 } else { 20 };

/// A diagnosis does not begin with less time than this, in which that of a small request ends.
const SMALLEST_SHARE: Duration = Duration::from_millis(200 / SHARE as u64);

/// The most requests that wait for their diagnosis; any further one is not diagnosed.
const QUEUE: usize = 16;

/// A request with more bytes in its path, query, parameters and body together is not diagnosed.
const MAX_BYTES: usize = 4 * 1024;

/// A request with more parameters is not diagnosed: some mistakes are tried for each of them.
const MAX_PARAMETERS: usize = 64;

/// A longer beginning of the base string is not shown as a hint.
const MAX_BEGINNING_BYTES: usize = 400;

/// The advice if the secret is right and the consumer is restricted to its RSA key.
pub fn rsa_only() -> String {
    let methods = SignatureMethod::names(SignatureMethod::is_rsa);
    format!("this consumer is restricted to its RSA key: sign with {methods}")
}

/// The advice where no mistake is found and the body is too large to look for it there.
const MULTIPART: &str = "the parts of a multipart/form-data body are never signed (RFC 5849 section 3.4.1.3.1): sign the query \
                         and the oauth_ parameters alone, and put the oauth_ parameters into the Authorization header";

/// Why no mistake is named.
const UNKNOWN: &str = "no known mistake makes this signature";
/// See [`UNKNOWN`].
const TOO_LARGE: &str = "a request of this size is not diagnosed: sign a smaller one first";
/// See [`UNKNOWN`].
const NOT_NOW: &str = "not diagnosed, because too many signatures are wrong at present: send the request again in a few seconds";

/// The addition for a mistake that is made with the previous secret.
const BY_PREVIOUS: &str = "the previous consumer secret was used, whose grace still lasts: change to the one that was issued last";

/// Finds the mistake that caused a wrong signature.
#[derive(Debug)]
pub(super) struct Adviser {
    started: Instant,
    queue: Semaphore,
    /// Locked while a diagnosis runs, so that there is one at a time.
    budget: Arc<Mutex<Budget>>,
}

/// The mistake that makes a wrong signature.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    mistake: Mistake,
    /// The index of the attempt.
    by: usize,
    /// The base string that was signed.
    base_string: Vec<u8>,
}

/// The time, since any fixed moment, at which diagnoses will have taken at most their share.
#[derive(Debug, Default)]
struct Budget(Duration);

impl Budget {
    /// The computing time that may be spent at `now`.
    fn remaining(&self, now: Duration) -> Duration {
        const SECOND: Duration = Duration::from_secs(1);
        (now + SECOND).saturating_sub(self.0).min(SECOND) / SHARE
    }

    fn spend(&mut self, now: Duration, spent: Duration) {
        self.0 = self.0.max(now) + spent * SHARE;
    }
}

impl Default for Adviser {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            queue: Semaphore::new(QUEUE),
            budget: Arc::default(),
        }
    }
}

impl Adviser {
    /// The advice for a request whose signature does not hold, as far as `signature.advice` allows it. While the grace of a
    /// previous secret lasts, a mistake is looked for under both secrets.
    #[cold]
    pub(super) async fn advise(
        &self,
        call: SignedCall<'_>,
        unread: Option<UnreadBody<'_>>,
        credential: &Credential,
    ) -> Advised {
        let SignedCall { rules, request, .. } = call;
        if rules.signature.advice == Advice::Off {
            return Advised::default();
        }
        let Some(bytes) = bytes_if_small(request) else {
            return Advised {
                advice: Some(general(request, TOO_LARGE)),
                diagnosis: Diagnosed::Skipped,
                ..Advised::default()
            };
        };
        let is_multipart = unread.is_some_and(|unread| unread.is_multipart);
        let mut parameters = request.parameters.iter();
        let is_form = parameters.any(|parameter| parameter.location == ParameterLocation::Body);
        let body = match unread {
            Some(unread) if request.body.is_none() => {
                unread.read(MAX_BYTES.saturating_sub(bytes)).await
            }
            _ => request.body.filter(|_| !is_form),
        };
        let body = body.unwrap_or_default();
        let wrong = || WrongCall {
            attempts: attempts(call, body, credential),
            signed: DetachedCall::new(call, credential),
        };
        let (found, needs) = self.examine(wrong).await;
        let advice = match &found {
            Ok(Found { mistake, by: 0, .. }) => mistake.advice().to_owned(),
            Ok(Found { mistake, .. }) => format!("{}; {BY_PREVIOUS}", mistake.advice()),
            Err(UNKNOWN) if is_multipart => MULTIPART.to_owned(),
            Err(reason) => general(request, reason),
        };
        let right = request.base_string(Selection::Rfc5849).to_vec();
        let advice = match rules.signature.advice {
            Advice::Full => {
                let base = String::from_utf8_lossy(&right);
                format!("{advice}; the base string here is {base}")
            }
            Advice::Off | Advice::Hint => advice,
        };
        let (diagnosis, previous_secret, signed) = match found {
            Ok(found) => {
                let diagnosis = Diagnosed::Known(found.mistake);
                (diagnosis, found.by > 0, Some(found.base_string))
            }
            Err(UNKNOWN) => (Diagnosed::Unknown, false, None),
            Err(_) => (Diagnosed::Skipped, false, None),
        };
        let base_strings =
            (diagnosis != Diagnosed::Skipped).then(|| Box::new(ComparedTexts { right, signed }));
        Advised {
            advice: Some(advice),
            diagnosis,
            previous_secret,
            base_strings,
            needs,
            ..Advised::default()
        }
    }

    /// Finds the mistake of a call and the deviation that it needs, on a thread that serves no requests, if there is time
    /// left for it. All that only explains a rejection is computed here.
    ///
    /// # Errors
    /// Why no mistake is named.
    async fn examine(
        &self,
        call: impl FnOnce() -> WrongCall,
    ) -> (Result<Found, &'static str>, Option<Deviation>) {
        const SKIPPED: (Result<Found, &str>, Option<Deviation>) = (Err(NOT_NOW), None);
        let Ok(_place) = self.queue.try_acquire() else {
            return SKIPPED;
        };
        let mut budget = Arc::clone(&self.budget).lock_owned().await;
        let now = self.started.elapsed();
        let remaining = budget.remaining(now);
        if remaining < SMALLEST_SHARE {
            return SKIPPED;
        }
        let call = call();
        // The thread holds the budget: a caller that goes away does not make room for another diagnosis.
        let examined = spawn_blocking(move || {
            let begun = computing_time();
            let spent = || computing_time().saturating_sub(begun);
            let may_go_on = || spent() < remaining;
            let attempts = call.attempts.iter().enumerate();
            let diagnosed = attempts.map(|(index, attempt)| {
                let found = diagnose(attempt, &may_go_on).map_err(|_| NOT_NOW)?;
                Ok(found.and_then(|found| {
                    Some(Found {
                        mistake: found.mistakes.first().copied()?,
                        by: index,
                        base_string: found.base_string,
                    })
                }))
            });
            let found = diagnosed.filter_map(Result::transpose).next();
            let needs = call.signed.needed_deviation(&may_go_on);
            budget.spend(now, spent());
            (found.unwrap_or(Err(UNKNOWN)), needs)
        });
        examined.await.unwrap_or(SKIPPED)
    }
}

/// A call whose signature is wrong, as it is examined.
struct WrongCall {
    attempts: Vec<WrongSignature>,
    signed: DetachedCall,
}

/// A small call with its credentials, apart from its request.
struct DetachedCall {
    rules: VerifyRules,
    purpose: Purpose,
    method: Vec<u8>,
    url: PublicUrl,
    path: Vec<u8>,
    parameters: Parameters,
    is_described: bool,
    credential: Credential<Arc<AccessCredentials>>,
    now: UnixTime,
}

impl DetachedCall {
    fn new(call: SignedCall<'_>, credential: &Credential) -> Self {
        let SignedCall { rules, request, .. } = call;
        Self {
            rules: VerifyRules {
                signature: rules.signature,
                tokens: rules.tokens,
                other_urls: Vec::new(),
                token_paths: Vec::new(),
            },
            purpose: call.purpose,
            method: request.method.to_vec(),
            url: request.url.clone(),
            path: request.path.to_vec(),
            parameters: request.parameters.clone(),
            is_described: request.is_described,
            credential: credential.clone().with_access(|it| Arc::clone(&it)),
            now: call.now,
        }
    }

    /// The deviation that it needs, if it is found while `may_go_on`.
    fn needed_deviation(self, may_go_on: &dyn Fn() -> bool) -> Option<Deviation> {
        let (rules, purpose) = (&self.rules, self.purpose);
        let protocol = self
            .parameters
            .protocol(rules.signature.methods, purpose.location_rule());
        let request = SignedRequest {
            method: &self.method,
            url: &self.url,
            path: &self.path,
            query: &[],
            parameters: &self.parameters,
            credentials: protocol.ok()?.demand(&[]).ok()?,
            body: None,
            caller: None,
            own_address: None,
            // It was when the signature was found wrong.
            secure: true,
            is_described: self.is_described,
            window: None,
        };
        let credential = self.credential.with_access(LocalAccess::from);
        let call = SignedCall {
            rules,
            purpose,
            request: &request,
            now: self.now,
        };
        call.needed_deviation(&credential, may_go_on)
    }
}

/// The advice for the author of the consumer where no mistake is named, for this `reason`.
fn general(request: &SignedRequest<'_>, reason: &str) -> String {
    let beginning = BaseString {
        parameters: &Parameters::new(),
        ..request.base_string(Selection::Rfc5849)
    };
    let beginning = String::from_utf8_lossy(&beginning.to_vec()).into_owned();
    let beginning = match beginning.len() {
        0..=MAX_BEGINNING_BYTES => format!(" begin with {beginning} and"),
        _ => String::new(),
    };
    let no_token = match request.credentials.token {
        Some(_) => "",
        None => {
            "; no oauth_token was sent, or an empty one, so the token secret of the key has to be empty"
        }
    };
    format!(
        "{reason}{no_token}; print the base string that your library signs: it has to{beginning} contain every parameter of the query, \
         of a form body and of the Authorization header but realm and oauth_signature, sorted, as RFC 5849 section 3.4.1 says; \
         and compare the consumer secret and the token secret byte by byte with those that were issued"
    )
}

/// The computing time of this thread.
fn computing_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.try_into().unwrap_or_default()
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

/// The request as signed with the consumer's secret, and during a grace also with the previous one.
fn attempts(call: SignedCall<'_>, body: &[u8], credential: &Credential) -> Vec<WrongSignature> {
    let (rules, request, now) = (call.rules, call.request, call.now);
    let consumer = credential.consumer();
    let previous = consumer.previous_secret.as_ref();
    let expired = previous.filter(|(_, until)| now >= *until);
    let graced = previous.filter(|(_, until)| now < *until);
    let current = WrongSignature {
        method: request.method.to_vec(),
        scheme: request.url.origin.scheme,
        host: request.url.origin.host.clone(),
        port: Some(request.url.origin.port),
        path: request.path.to_vec(),
        query: request.query.to_vec(),
        prefix: request.url.prefix.clone(),
        parameters: diagnosis::pairs(request.parameters),
        realm: request.parameters.realm().map(<[u8]>::to_vec),
        other_body: body.to_vec(),
        consumer_secret: consumer.secret.clone(),
        previous_secret: expired.map(|(secret, _)| secret.clone()),
        token_secret: credential.token_secret().unwrap_or(Secret::from("")),
        rsa: consumer.rsa.as_deref().cloned(),
        other_urls: rules.other_urls.clone(),
        token_paths: rules.token_paths_for(request.path),
        callbacks: consumer.callbacks.to_vec(),
        signature_method: request.credentials.signature_method,
        signature: request.credentials.signature.to_vec(),
    };
    let by_previous = graced.map(|(secret, _)| WrongSignature {
        consumer_secret: secret.clone(),
        ..current.clone()
    });
    [current].into_iter().chain(by_previous).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Duration = Duration::from_millis(1_000 / SHARE as u64);

    #[test]
    fn spends_at_most_the_budget_in_a_second() {
        let adviser = Adviser::default();
        let mut budget = adviser.budget.try_lock().unwrap();
        for second in 0..5 {
            // A diagnosis is asked for every 10 ms. Each would take half of the budget.
            let asked = (0..100).map(|at| Duration::from_millis(1_000 * second + 10 * at));
            let spent = asked.map(|now| {
                let remaining = budget.remaining(now);
                let spent = if remaining < SMALLEST_SHARE {
                    Duration::ZERO
                } else {
                    remaining.min(BUDGET / 2)
                };
                budget.spend(now, spent);
                spent
            });
            let spent: Duration = spent.sum();
            // The first second also spends the time that was saved up.
            let most = BUDGET * if second == 0 { 2 } else { 1 };
            assert!((most / 2..=most).contains(&spent), "{second}: {spent:?}");
        }
        // Unused time is not kept for later.
        let later = Duration::from_secs(1_000);
        assert_eq!(budget.remaining(later), BUDGET);
        // Time that goes back refills nothing.
        budget.spend(later, BUDGET);
        assert_eq!(budget.remaining(Duration::from_secs(1)), Duration::ZERO);
    }

    #[tokio::test]
    async fn diagnoses_nothing_without_time_or_place() {
        let adviser = Adviser::default();
        let never = || -> WrongCall { unreachable!("not diagnosed") };
        let places = (0..QUEUE).map(|_| adviser.queue.try_acquire().unwrap());
        let places: Vec<_> = places.collect();
        assert_eq!(adviser.examine(never).await, (Err(NOT_NOW), None));
        drop(places);
        tokio::time::pause();
        let now = adviser.started.elapsed();
        adviser.budget.lock().await.spend(now, BUDGET);
        assert_eq!(adviser.examine(never).await, (Err(NOT_NOW), None));
    }
}
