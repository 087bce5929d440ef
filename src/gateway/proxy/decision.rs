//! The decision on a call to the API, on one screen. It waits only in boxes: for a body that the signature covers, for
//! credentials that are not at hand, for a nonce that is also recorded elsewhere, and for what a rejection needs.

use std::{borrow::Cow, pin::Pin};

use http::{HeaderMap, HeaderValue, Method, header, request::Parts};
use http_body::Body as _;

use super::{
    Conventions, Live,
    record::{RequestRecord, Served},
};
use crate::{
    gateway::{authorize::Subject, launch::Launch},
    oauth::LocationRule,
    provider::respond::{Failure, facts::Facts},
    request::{
        forward::{ForwardRejection, websocket::Handshake},
        identity::AssertedCall,
        parse::{
            ParseRejection,
            claimed::Claimed,
            head::{FieldNames, Head},
            signed::{Collected, is_form, is_multipart},
            target,
            unseen_body::UnseenBody,
        },
        policy::{
            self, conventions,
            permit::{JudgedCall, Permit},
        },
        route::{self, ApiCall},
        verify::{Purpose, UnreadBody, Verification},
    },
    wire::server::{
        buffered::{API_FORMS, BufferedBody},
        caller_stream::CallerStream,
        rejection::BodyRejection,
        request::RequestBody,
    },
};

/// A call that is permitted.
pub struct Permitted {
    /// The proof.
    pub permit: Permit,
    /// The value of the field with the assertion, if it has one.
    pub assertion: Option<HeaderValue>,
    /// The handshake of WebSocket that it begins, where its operation admits one.
    pub handshake: Option<Handshake>,
    /// Its parameters, and its body where that was read.
    pub(super) collected: Collected,
}

/// A call that is to be decided.
pub struct IncomingCall<'a> {
    /// Its head.
    pub head: &'a Head<'a>,
    /// The public URL and the path.
    pub call: ApiCall<'a, 'a>,
    /// The names of its fields.
    pub names: &'a FieldNames,
    /// The connection that it came by.
    pub caller: &'a CallerStream,
    /// Its body.
    pub body: CallBody<'a>,
    /// Its parameters, where they were needed to find that it is for the API.
    pub collected: Option<Box<Collected>>,
}

/// The body of a call.
pub enum CallBody<'a> {
    /// This process received it, and forwards it if the call is permitted.
    Received(&'a mut RequestBody),
    /// Another proxy describes the call and forwards it; the description came with the whole body.
    Shown(&'a mut RequestBody),
    /// Another proxy describes the call and forwards it, without the body or with one that may not be the whole.
    Unseen(UnseenBody),
}

impl CallBody<'_> {
    /// The body, if it can be read here.
    fn readable(&mut self) -> Option<&mut RequestBody> {
        match self {
            Self::Received(body) | Self::Shown(body) => Some(body),
            Self::Unseen(_) => None,
        }
    }

    /// Whether there are bytes that were not read. A description without a body does not say whether the request has one: it
    /// counts as one where it has a type, and where the method gives a body a meaning (RFC 9110 §9.3).
    fn is_present(&self, parts: &Parts) -> bool {
        match self {
            Self::Received(body) | Self::Shown(body) => !body.is_end_stream(),
            Self::Unseen(UnseenBody::Cut | UnseenBody::NoLength | UnseenBody::TooLarge { .. }) => {
                true
            }
            Self::Unseen(UnseenBody::Absent) => {
                let is_bodiless = matches!(
                    parts.method,
                    Method::GET | Method::HEAD | Method::DELETE | Method::OPTIONS
                );
                !is_bodiless || parts.headers.contains_key(header::CONTENT_TYPE)
            }
        }
    }

    /// The handshake of WebSocket that a call with this body begins.
    fn handshake(&self, parts: &Parts) -> Result<Option<Handshake>, ForwardRejection> {
        match self {
            Self::Received(body) => Handshake::begun_by(parts, !body.is_end_stream()),
            Self::Shown(_) => Handshake::described_by(parts, true),
            Self::Unseen(unseen) => {
                Handshake::described_by(parts, !matches!(unseen, UnseenBody::Absent))
            }
        }
    }
}

/// Takes a call through the steps up to the decision, which it notes in the record.
///
/// # Errors
/// Why it is not permitted.
///
/// All that the decision looks at is in one box, whose memory the decision before it has just used. In the future of the
/// connection it would be in memory that has left the processor's caches since the last request.
pub fn decide(
    live: &Live,
    incoming: IncomingCall<'_>,
    record: &mut RequestRecord,
) -> Pin<Box<impl Future<Output = Result<Permitted, Failure>>>> {
    Box::pin(deciding(live, incoming, record))
}

/// As [`decide`], in a future that has its arguments once.
pub(super) fn deciding(
    live: &Live,
    incoming: IncomingCall<'_>,
    record: &mut RequestRecord,
) -> impl Future<Output = Result<Permitted, Failure>> {
    let IncomingCall {
        head,
        call,
        names,
        caller,
        mut body,
        collected,
    } = incoming;
    async move {
        let (authorizer, parts) = (&live.authorizer, head.parts);
        check_path(live, &call, &body)?;
        let method = parts.method.as_str().as_bytes();
        let found = authorizer.operations.find(call.path, method)?;
        record.served = Served::by(&found);
        record.launch = Launch::begun_by(parts, &found);
        let handshake = match found.operation() {
            Some(operation) if operation.websocket => body.handshake(parts)?,
            _ => None,
        };
        let judged = JudgedCall {
            operations: &authorizer.operations,
            found: &found,
            caller: head.received.facts,
        };
        let (memory, limits) = (caller.reserve(&API_FORMS), caller.limits());
        let mut collected = match collected {
            Some(collected) => *collected,
            None => Collected::of_head(&parts.headers, &head.target, memory, &limits)?,
        };
        if let Some(body) = body.readable()
            && let covered = CoveredBody::of(live, head, &collected, body)
            && !matches!(covered, Ok(None))
        {
            let facts = &mut record.facts;
            let reading = covered_body(live, covered, &judged, &mut collected, body, facts);
            record.worker.deciding(reading).await??;
        }
        if let Some(launch) = &mut record.launch {
            launch.read_locale(&collected);
        }
        if collected.held.is_some() {
            // The time until now was spent on the body.
            record.stopwatch.lap();
        }
        let signed_path = call.signed_path(head.target.path);
        let subject = Subject {
            head,
            judged,
            url: call.url,
            path: Cow::Borrowed(&signed_path),
            collected: &collected,
            has_body: body.is_present(parts),
            is_described: !matches!(body, CallBody::Received(_)),
            unseen: match body {
                CallBody::Unseen(unseen) => Some(unseen),
                CallBody::Received(_) | CallBody::Shown(_) => None,
            },
        };
        // A caller that waits for `100 Continue` is not asked for a body that would be dropped.
        let is_readable = subject.has_body && !names.present.has(&parts.headers, &header::EXPECT);
        let mut unsigned = body.readable().map(|body| BodyForAdvice {
            body,
            headers: &parts.headers,
            held: None,
        });
        let unread = unsigned.as_mut().filter(|_| is_readable);
        let unread = unread.map(|unread| unread as &mut dyn UnreadBody);
        let signed = authorizer.signed_request(&subject);
        let permitted = match signed {
            Ok(Some(ref request)) => {
                let (verifier, rules) = (&authorizer.verifier, &authorizer.verify);
                let verified = match verifier.verify(rules, Purpose::Api, request, unread) {
                    Verification::Ended(verified) => verified,
                    Verification::Waits(rest) => record.worker.deciding(rest).await?,
                };
                record.facts.verify = Some(record.stopwatch.lap());
                authorizer.permit_signed(&subject, verified, &mut record.facts)
            }
            Ok(None) => {
                let deciding = authorizer.permit_unsigned(&subject);
                record.worker.deciding(deciding).await?
            }
            Err(failure) => Err(failure),
        };
        let permitted = match permitted {
            Ok(permit) if authorizer.is_enforced(&found) => Ok(permit),
            other => {
                let settling = authorizer.reject_or_observe(other, &subject, &mut record.facts);
                record.worker.deciding(settling).await?
            }
        };
        if record.facts.verify.is_none() {
            // The time until now is not the API's.
            record.stopwatch.lap();
        }
        if let (Some(launch), Some(operation)) = (&mut record.launch, found.operation())
            && record.facts.sender.is_verified()
            && let Err(failure) = &permitted
        {
            launch.read_return_url(&collected, operation, failure);
        }
        // In observe mode the call goes on to the API: with its whole body, or not at all.
        if let Some(held) = unsigned.and_then(|unsigned| unsigned.held) {
            collected.held = Some(held?);
        }
        let permit = permitted?;
        let asserted = AssertedCall {
            method: &parts.method,
            origin: &call.url.origin,
            path: &signed_path,
        };
        let assertion = live.forward.identity.assertion(&permit, &asserted)?;
        Ok(Permitted {
            permit,
            assertion,
            handshake,
            collected,
        })
    }
}

/// Checks that the path stays below what is public, and that it keeps the conventions.
fn check_path(live: &Live, call: &ApiCall<'_, '_>, body: &CallBody<'_>) -> Result<(), Failure> {
    // The path of the API, or that of the public URL where the other proxy keeps it.
    let below = match body {
        CallBody::Received(_) => &live.forward.api_path,
        CallBody::Shown(_) | CallBody::Unseen(_) => &call.url.prefix,
    };
    if !below.is_empty() && target::climbs(call.path) {
        return Err(route::RouteRejection::PathAbovePrefix.into());
    }
    if live.conventions != Conventions::Off
        && let Some(rule) = conventions::broken_rule(call.path)
    {
        if live.conventions == Conventions::Enforce {
            return Err(policy::PolicyRejection::Convention(rule).into());
        }
        let path = String::from_utf8_lossy(call.path);
        tracing::info!(%path, rule, "path convention broken");
    }
    Ok(())
}

/// A body that the signature covers.
#[derive(Clone, Copy)]
enum CoveredBody {
    /// Its parameters are part of the base string.
    Form,
    /// Its hash is.
    Hashed,
}

impl CoveredBody {
    /// The kind of the body, if the signature covers it and it was not read yet.
    fn of(
        live: &Live,
        head: &Head<'_>,
        collected: &Collected,
        body: &RequestBody,
    ) -> Result<Option<Self>, ParseRejection> {
        let methods = live.authorizer.verify.signature.methods;
        if !body.is_end_stream() && is_form(&head.parts.headers)? {
            return Ok(Some(Self::Form));
        }
        // Malformed parameters are rejected without the body.
        let is_hashed = collected.needs_body(methods, LocationRule::OneLocation) == Ok(true);
        Ok(is_hashed.then_some(Self::Hashed))
    }
}

/// Reads a body that the signature covers. If that fails, the facts name the consumer all the same.
async fn covered_body(
    live: &Live,
    covered: Result<Option<CoveredBody>, ParseRejection>,
    call: &JudgedCall<'_>,
    collected: &mut Collected,
    body: &mut RequestBody,
    facts: &mut Facts,
) -> Result<(), Failure> {
    let authorizer = &live.authorizer;
    let reading = async {
        match covered? {
            Some(CoveredBody::Form) => {
                authorizer.check_before_form(collected, call).await?;
                let form = body.read_whole().await?;
                collected.hold_form(form, &body.caller().limits())?;
            }
            Some(CoveredBody::Hashed) => collected.held = Some(body.read_whole().await?),
            None => {}
        }
        Ok(())
    };
    let read = reading.await;
    if read.is_err() {
        facts.claimed = Claimed::by_signed(collected);
        if collected.signed {
            let parameters = &collected.parameters;
            facts.sender.is_registered =
                authorizer.verifier.is_consumer_registered(parameters).await;
        }
    }
    read
}

/// A body that the signature does not cover, and that the advice may need.
struct BodyForAdvice<'b> {
    body: &'b mut RequestBody,
    headers: &'b HeaderMap,
    /// The body, if it was read for the advice: it is missing from `body` then.
    held: Option<Result<BufferedBody, BodyRejection>>,
}

impl UnreadBody for BodyForAdvice<'_> {
    fn is_multipart(&self) -> bool {
        is_multipart(self.headers)
    }

    fn read(&mut self, limit: usize) -> Pin<Box<dyn Future<Output = Option<&[u8]>> + '_>> {
        Box::pin(async move {
            let length = usize::try_from(self.body.size_hint().exact()?).ok()?;
            if length > limit {
                return None;
            }
            let held = self.held.insert(self.body.read_whole().await);
            held.as_deref().ok()
        })
    }
}
