//! The decision on a call to the API. It waits only in boxes: for a body that the signature covers, for credentials that are
//! not in the thread-local cache, for a nonce that is also recorded elsewhere, and for what a rejection needs.

mod receive;

use http_body::Body as _;

use crate::{
    gateway::{
        authorize::{Authorizer, Sent},
        launch::Launch,
        live::{Conventions, Live, Served, Waiting},
        record::RequestRecord,
    },
    provider::respond::Failure,
    request::{
        forward::{ForwardRejection, websocket::Handshake},
        parse::{
            ParseRejection,
            signed::{Collected, is_form},
            target,
            unseen_body::UnseenBody,
        },
        policy::{
            PolicyRejection,
            access::CallerKind,
            call::{Call, CallBody},
            conventions,
            operations::Found,
            permit::Permit,
        },
        route::{ApiCall, RouteRejection},
        verify::Verification,
    },
    wire::server::{
        caller::{buffered::API_FORMS, stream::CallerStream},
        rejection::BodyRejection,
    },
};

pub use self::receive::{Received, receive};

/// Begins a call: finds its operation, which it notes in the record, and the parameters in its head, unless these were
/// `collected` before, to find that it is for the API.
///
/// # Errors
/// A path that leads out of what is public, breaks an enforced convention, or could be read as another one, and the errors of
/// [`Collected::from_head`].
pub fn begin<'c>(
    live: &'c Live,
    received: &'c Received<'c>,
    api: ApiCall<'c, 'c>,
    caller: &CallerStream,
    body: CallBody<'c>,
    collected: Option<Collected>,
    record: &mut RequestRecord,
) -> Result<Call<'c>, Failure> {
    let (head, operations) = (&received.head, &live.authorizer.operations);
    let parts = head.parts;
    check_path(live, &api, &body)?;
    let found = operations.find(api.path, parts.method.as_str().as_bytes());
    record.served = Served::by(&found);
    record.launch = Launch::begun_by(parts, &found);
    let limits = caller.limits();
    let collected = match collected {
        Some(collected) => Ok(collected),
        None => {
            let memory = caller.reserve(&API_FORMS);
            Collected::from_head(&parts.headers, &head.target, memory, &limits)
        }
    };
    let is_enforced = live.authorizer.is_enforced(&found, &head.target);
    let token_call = match found {
        Found::Unlisted(_) => live.authorizer.flow.guarded_token_call(&head.target),
        _ => None,
    };
    let (collected, malformed) = match collected {
        Ok(collected) => (collected, None),
        Err(rejection) if is_enforced => return Err(rejection.into()),
        Err(rejection) => {
            let unread = Collected::unread(caller.reserve(&API_FORMS));
            (unread, Some(rejection))
        }
    };
    Ok(Call {
        head,
        names: &received.names,
        url: api.url,
        path: api.path,
        signed_path: api.signed_path(head.target.path),
        operations,
        found,
        token_call,
        is_enforced,
        malformed,
        collected,
        body,
    })
}

/// The handshake of WebSocket that a call begins, where its operation admits one.
///
/// # Errors
/// [`ForwardRejection::Handshake`]: no server could accept it.
pub fn handshake(call: &Call<'_>) -> Result<Option<Handshake>, ForwardRejection> {
    let parts = call.head.parts;
    match &call.body {
        _ if call.found.rules().is_none_or(|it| it.upgrade.is_empty()) => Ok(None),
        CallBody::Received(body) => Handshake::begun_by(parts, !body.is_end_stream()),
        CallBody::Shown(_) => Handshake::described_by(parts, true),
        CallBody::Unseen(unseen) => {
            Handshake::described_by(parts, !matches!(unseen, UnseenBody::Absent))
        }
    }
}

/// Decides on a call, and notes in the record what is known about it.
///
/// # Errors
/// Why it is not permitted.
pub async fn decide(
    live: &Live,
    call: &mut Call<'_>,
    caller: &CallerStream,
    waiting: &Waiting,
    record: &mut RequestRecord,
) -> Result<Permit, Failure> {
    let authorizer = &live.authorizer;
    record.facts.is_bearer = authorizer.bearer.is_some() && call.collected.bearer;
    let read = match call.malformed.take() {
        Some(rejection) => Err(rejection.into()),
        None => read_covered_body(authorizer, call, caller, waiting).await,
    };
    authorizer.apply_method_parameter(call, read.is_ok());
    record.served = Served::by(&call.found);
    let call = &*call;
    if call.held()?.is_some() {
        // The time until now was spent on the body.
        record.stopwatch.lap();
    }
    if let Some(launch) = &mut record.launch {
        launch.read_locale(&call.collected);
    }
    let permitted = match read.and_then(|()| authorizer.sent(call)) {
        Err(Failure::Ending) => return Err(Failure::Ending),
        Ok(Some(sent)) => {
            let waits = (caller, waiting);
            verify(authorizer, call, &sent, waits, record).await?
        }
        Ok(None) => {
            let permitting = authorizer.permit_unsigned(call);
            let permitted = waiting.decided(caller, permitting).await?;
            let checked = call.collected.parameters.check_unsigned();
            permitted.and_then(|permit| Ok(checked.map(|()| permit)?))
        }
        Err(failure) => Err(failure),
    };
    let permitted = match permitted {
        Ok(permit) if call.is_enforced => Ok(permit),
        permitted => {
            let settling = authorizer.reject_or_observe(permitted, call, &mut record.facts);
            waiting.decided(caller, settling).await?
        }
    };
    if record.facts.verify.is_none() {
        // The time until now is not the API's.
        record.stopwatch.lap();
    }
    if let (Some(launch), Some(operation)) = (&mut record.launch, call.found.operation())
        && record.facts.sender.is_verified()
        && let Err(failure) = &permitted
    {
        launch.read_return_url(&call.collected, operation, failure);
    }
    // In observe mode the call goes on to the API: with its whole body, or not at all.
    call.held()?;
    permitted
}

/// Verifies a call with the credentials of a consumer, and permits it or returns why not.
///
/// # Errors
/// [`Failure::Ending`]
async fn verify(
    authorizer: &Authorizer,
    call: &Call<'_>,
    sent: &Sent<'_>,
    (caller, waiting): (&CallerStream, &Waiting),
    record: &mut RequestRecord,
) -> Result<Result<Permit, Failure>, Failure> {
    let (verifier, rules) = (&authorizer.verifier, &authorizer.verify);
    let mut verification = match sent {
        Sent::Signature(request) => {
            verifier.verify(rules, call.purpose(), request, call.unread_body())
        }
        Sent::Bearer(request) => verifier.verify_bearer(rules, *request),
    };
    let verified = loop {
        verification = match verification {
            Verification::Ended(verified) => break verified,
            Verification::Waits(rest) => waiting.decided(caller, rest).await?,
            Verification::Proved(rest) => {
                caller.prove();
                break waiting.decided(caller, rest).await?;
            }
        }
    };
    record.facts.verify = Some(record.stopwatch.lap());
    Ok(authorizer.permit_verified(call, verified, &mut record.facts))
}

/// Checks that the path stays below what is public, and that it keeps the conventions.
fn check_path(live: &Live, call: &ApiCall<'_, '_>, body: &CallBody<'_>) -> Result<(), Failure> {
    // The path of the API, or that of the public URL where the other proxy keeps it.
    let below = match body {
        CallBody::Received(_) => &live.forward.api_path,
        CallBody::Shown(_) | CallBody::Unseen(_) => &call.url.prefix,
    };
    if !below.is_empty() && target::climbs(call.path) {
        return Err(RouteRejection::PathAbovePrefix.into());
    }
    if live.conventions != Conventions::Off
        && let Some(rule) = conventions::broken_rule(call.path)
    {
        if live.conventions == Conventions::Enforce {
            return Err(PolicyRejection::Convention(rule).into());
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
    /// The kind of the body, if the signature covers it and it can be read here, and was not read yet.
    fn find(authorizer: &Authorizer, call: &Call<'_>) -> Result<Option<Self>, ParseRejection> {
        let Some(body) = call.body.readable() else {
            return Ok(None);
        };
        if !body.is_end_stream() && is_form(&call.head.parts.headers)? {
            return Ok(Some(Self::Form));
        }
        // Malformed parameters are rejected without the body.
        let methods = authorizer.verify.signature.methods;
        let needs_body = call.collected.needs_body(methods, call.location_rule());
        Ok((needs_body == Ok(true)).then_some(Self::Hashed))
    }
}

/// Whether a form that is too large to be verified may go on as an unsigned one: its head has no credentials of OAuth 1.0a,
/// and has a Bearer token, or its operation admits a caller without credentials. The form may have a parameter `_method`
/// that names a method of which more is asked. In observe mode it goes on anyway.
fn may_go_unsigned(authorizer: &Authorizer, call: &Call<'_>) -> bool {
    let access = call.found.access();
    let has_session = || {
        authorizer
            .pages
            .has_session_cookie(&call.head.parts.headers)
    };
    let may_be_other = |own| call.operations.has_stricter_method(own);
    let has_token = authorizer.bearer.is_some() && call.collected.bearer;
    call.is_enforced
        && !call.is_described()
        && !call.found.operation().is_some_and(may_be_other)
        && !call.collected.signed
        && (has_token
            || access.admits(CallerKind::Anonymous)
            || access.admits(CallerKind::User) && has_session())
}

/// Reads a body that the signature covers, if the path fits the operation.
async fn read_covered_body(
    authorizer: &Authorizer,
    call: &mut Call<'_>,
    caller: &CallerStream,
    waiting: &Waiting,
) -> Result<(), Failure> {
    call.found.check_path()?;
    let Some(covered) = CoveredBody::find(authorizer, call)? else {
        return Ok(());
    };
    let reading = async {
        if matches!(covered, CoveredBody::Form) {
            authorizer.check_before_form(call).await?;
        }
        let may_go_on = matches!(covered, CoveredBody::Form) && may_go_unsigned(authorizer, call);
        let Call {
            body, collected, ..
        } = call;
        let Some(body) = body.readable() else {
            return Ok(());
        };
        let read = match body.hold().await {
            Ok(bytes) if matches!(covered, CoveredBody::Form) => {
                collected.read_form(bytes, &body.caller().limits())
            }
            read => read.map(drop),
        };
        match read {
            Err(BodyRejection::TooLarge) if may_go_on => Ok(body.go_on_unsigned()?),
            read => Ok(read?),
        }
    };
    waiting.decided(caller, reading).await?
}
