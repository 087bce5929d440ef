//! The head of the request that the API sees: the caller's own, changed in place.

use std::{borrow::Cow, mem};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Version, header,
    request::Parts,
    uri::{self, PathAndQuery, Uri},
};
use http_body::Body;

use super::{ForwardFault, ForwardParams, HostMode, pool::UpstreamBody, websocket::Handshake};
use crate::{
    base::http_fields::{self, all, is_hop_by_hop, list, retain},
    oauth::Authority,
    request::{
        parse::{
            head::FieldNames,
            origin::{
                ForwardedFamily, RequestOrigin, X_FORWARDED_FOR, X_FORWARDED_HOST,
                X_FORWARDED_PROTO,
            },
        },
        policy::{access::CallerKind, permit::Permit},
    },
    telemetry::{
        request_id::X_REQUEST_ID,
        traces::{TRACEPARENT, TRACESTATE, ToApi},
    },
    wire::server::caller_stream::CallerStream,
};

/// The field that lists the processes of this program that a request has passed.
static COUNTERSIGN_HOP: HeaderName = HeaderName::from_static("countersign-hop");

/// The origin of the request, in the form of the fields that the API gets.
#[derive(Debug)]
pub struct ReceivedAs {
    authority: HeaderValue,
    /// It is the value of Host as sent.
    is_host: bool,
    secure: bool,
    /// The forwarded fields that a trusted proxy wrote, if any.
    believed: Option<ForwardedFamily>,
    /// The value of `X-Forwarded-For`, if the API gets one from here.
    forwarded_for: Option<HeaderValue>,
}

impl ReceivedAs {
    /// Keeps the part of `received` that the API gets; `headers` are those of the request.
    ///
    /// # Errors
    /// [`ForwardFault::Internal`]: a host that has been checked is always a field value.
    pub fn new(
        received: &RequestOrigin<'_>,
        headers: &HeaderMap,
        caller: &CallerStream,
        params: &ForwardParams,
    ) -> Result<Self, ForwardFault> {
        let (host, port) = (received.authority.host, received.authority.port);
        let sent = headers.get(header::HOST);
        let sent = sent.filter(|sent| is_written(&received.authority, sent.as_bytes()));
        let forwarded_for = match caller.address() {
            Some(peer) if params.forwarded => Some(forwarded_for(headers, received, caller, peer)?),
            _ => None,
        };
        Ok(Self {
            is_host: sent.is_some(),
            authority: match (sent, port) {
                (Some(sent), _) => sent.clone(),
                (None, None) => value(host.to_owned())?,
                (None, Some(port)) => value(format!("{host}:{port}"))?,
            },
            secure: received.secure,
            believed: received.trusted.then_some(received.family),
            forwarded_for,
        })
    }
}

/// The addresses of `X-Forwarded-For`, `peer` last; those from a trusted proxy stay in front.
fn forwarded_for(
    headers: &HeaderMap,
    received: &RequestOrigin<'_>,
    caller: &CallerStream,
    peer: HeaderValue,
) -> Result<HeaderValue, ForwardFault> {
    let mut addresses = Vec::new();
    if received.trusted && received.family == ForwardedFamily::XForwarded {
        for hops in all(headers, &X_FORWARDED_FOR) {
            addresses.extend_from_slice(hops);
            addresses.extend_from_slice(b", ");
        }
    } else if let Some(named) = received.nearest_address
        && received.nearest_address != caller.peer.address
    {
        // As a trusted proxy named it in `Forwarded`.
        addresses.extend_from_slice(named.to_canonical().to_string().as_bytes());
        addresses.extend_from_slice(b", ");
    }
    if addresses.is_empty() {
        return Ok(peer);
    }
    addresses.extend_from_slice(peer.as_bytes());
    value(addresses)
}

/// Whether `host` is the text of the authority.
pub(super) fn is_written(authority: &Authority<'_>, host: &[u8]) -> bool {
    match (authority.port, host.strip_prefix(authority.host.as_bytes())) {
        (None, Some(rest)) => rest.is_empty(),
        (Some(port), Some([b':', digits @ ..])) => {
            let digits = str::from_utf8(digits).unwrap_or_default();
            !digits.starts_with(['0', '+']) && digits.parse() == Ok(port)
        }
        _ => false,
    }
}

/// A permitted call on its way to the API.
pub struct UpstreamCall {
    /// The signed statement about the caller.
    pub assertion: Option<HeaderValue>,
    /// Path and query to ask for, with the API's own path in front.
    pub target: PathAndQuery,
    /// The names of the fields that came.
    pub names: FieldNames,
    /// The origin of the request.
    pub received: ReceivedAs,
    /// The id of the request.
    pub request_id: HeaderValue,
    /// The trace that the API is to go on with.
    pub trace: Option<ToApi>,
    /// The WebSocket handshake that it begins.
    pub handshake: Option<Handshake>,
    /// The body.
    pub body: UpstreamBody,
}

/// Makes the request that the API sees from the received one, and takes its fields. `websocket`: it begins a handshake.
///
/// # Errors
/// [`ForwardFault::Internal`] if a name or target is not valid after all; both have been checked.
pub fn rewrite(
    parts: &mut Parts,
    params: &ForwardParams,
    permit: &Permit,
    call: &mut UpstreamCall,
    websocket: bool,
) -> Result<Request<UpstreamBody>, ForwardFault> {
    let (origin, names) = (&call.received, &call.names);
    let had_length = names.present.has(&parts.headers, &header::CONTENT_LENGTH);
    let mut request = Request::new(mem::take(&mut call.body));
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = Uri::from(call.target.clone());
    *request.headers_mut() = mem::take(&mut parts.headers);
    *request.extensions_mut() = mem::take(&mut parts.extensions);
    let length = request.body().size_hint().exact();
    let headers = request.headers_mut();
    retain(headers, |name| {
        // `Connection` cannot remove Host, nor fields that change how the API reads a body that is signed.
        let stays = matches!(
            *name,
            header::HOST | header::CONTENT_TYPE | header::CONTENT_ENCODING
        );
        passes(params, origin, permit, name) && (stays || !names.in_connection.contains(name))
    });
    if names.present.may_have(&header::COOKIE) {
        cookies(headers, params);
    }
    match &params.host {
        HostMode::Public if origin.is_host => {}
        HostMode::Public => set(headers, &header::HOST, origin.authority.clone()),
        HostMode::Fixed(host) => set(headers, &header::HOST, host.clone()),
    }
    // The body is framed again: by its length where that is known, else by chunks.
    match length {
        Some(0) if !had_length => {}
        Some(length) => set(headers, &header::CONTENT_LENGTH, length.into()),
        None => set(headers, &header::TRANSFER_ENCODING, constant("chunked")),
    }
    if websocket {
        set(headers, &header::CONNECTION, constant("Upgrade"));
        set(headers, &header::UPGRADE, constant("websocket"));
    }
    if params.forwarded {
        if let Some(addresses) = &origin.forwarded_for {
            set(headers, &X_FORWARDED_FOR, addresses.clone());
        }
        let scheme = if origin.secure { "https" } else { "http" };
        set(headers, &X_FORWARDED_PROTO, constant(scheme));
        set(headers, &X_FORWARDED_HOST, origin.authority.clone());
    }
    // Not `Via`: nginx and others do not compress responses to requests that have it.
    headers.append(&COUNTERSIGN_HOP, params.hop.clone());
    set(headers, &X_REQUEST_ID, call.request_id.clone());
    if let Some(trace) = call.trace.take() {
        set(headers, &TRACEPARENT, trace.traceparent);
        if !trace.keeps_state {
            headers.remove(&TRACESTATE);
        }
    }
    // Only ours: callers' copies in any spelling have been dropped.
    let assertion = call.assertion.take();
    let put = |name: &HeaderName, value| set(headers, name, value);
    params.identity.fields(permit, assertion, put)?;
    Ok(request)
}

/// Whether this process has forwarded the request before, so that `upstream.api_url` leads back to it. The names of other
/// processes stay in the request: any of them may be the one it comes back to.
#[must_use]
pub fn is_back(headers: &HeaderMap, names: &FieldNames, params: &ForwardParams) -> bool {
    names.present.may_have(&COUNTERSIGN_HOP)
        && all(headers, &COUNTERSIGN_HOP)
            .flat_map(list)
            .any(|hop| params.hop == hop)
}

/// Puts a path and a query together.
///
/// # Errors
/// [`ForwardFault::Internal`]: parts of a target that has been checked make another.
pub fn path_and_query(path: &[&[u8]], query: Option<&[u8]>) -> Result<PathAndQuery, ForwardFault> {
    let mut bytes = path.concat();
    if let Some(query) = query {
        bytes.push(b'?');
        bytes.extend_from_slice(query);
    }
    PathAndQuery::from_maybe_shared(Bytes::from(bytes)).map_err(internal)
}

/// Brings a request into the form of HTTP/2 (RFC 9113 §8.2.2, §8.3.1).
///
/// # Errors
/// [`ForwardFault::Internal`]: a value of Host is always an authority.
pub fn into_http2<B>(request: &mut Request<B>, secure: bool) -> Result<(), ForwardFault> {
    if request.version() == Version::HTTP_2 {
        return Ok(());
    }
    let host = request.headers_mut().remove(header::HOST);
    request.headers_mut().remove(header::TRANSFER_ENCODING);
    // gRPC demands it, and trailers do go on to callers of HTTP/2.
    let trailers = HeaderValue::from_static("trailers");
    request.headers_mut().insert(header::TE, trailers);
    let mut parts = mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(if secure {
        uri::Scheme::HTTPS
    } else {
        uri::Scheme::HTTP
    });
    let host = host.unwrap_or(HeaderValue::from_static(""));
    parts.authority = Some(host.as_bytes().try_into().map_err(internal)?);
    *request.uri_mut() = Uri::from_parts(parts).map_err(internal)?;
    *request.version_mut() = Version::HTTP_2;
    Ok(())
}

/// Brings a request back from the form of HTTP/2, which a connection did not take.
///
/// # Errors
/// [`ForwardFault::Internal`]: an authority is always a value of Host.
pub fn into_http1<B: Body>(request: &mut Request<B>) -> Result<(), ForwardFault> {
    if request.version() != Version::HTTP_2 {
        return Ok(());
    }
    let parts = mem::take(request.uri_mut()).into_parts();
    let authority = parts.authority.as_ref().map_or("", uri::Authority::as_str);
    let is_chunked = request.body().size_hint().exact().is_none();
    let headers = request.headers_mut();
    headers.remove(header::TE);
    set(headers, &header::HOST, value(authority)?);
    if is_chunked {
        set(headers, &header::TRANSFER_ENCODING, constant("chunked"));
    }
    *request.uri_mut() = parts.path_and_query.map_or_else(Uri::default, Uri::from);
    *request.version_mut() = Version::HTTP_11;
    Ok(())
}

/// Whether the API sees the caller's field. The operator's drop list wins, even for fields that would otherwise be forwarded;
/// only Host is always sent.
fn passes(params: &ForwardParams, origin: &ReceivedAs, permit: &Permit, name: &HeaderName) -> bool {
    let text = name.as_str();
    match text {
        "host" => true,
        // These have rules of their own: a drop list that has only the beginning of the name does not apply.
        "x-forwarded-for" | "x-forwarded-host" | "x-forwarded-prefix" | "x-forwarded-proto" => {
            !params.dropped.contains_itself(text.as_bytes())
                && origin.believed == Some(ForwardedFamily::XForwarded)
                && (!params.forwarded || text == "x-forwarded-prefix")
        }
        _ if params.dropped.contains(text.as_bytes()) => false,
        "content-length" | "expect" => false,
        "authorization" => match permit.kind() {
            // Observed: unchanged.
            None => true,
            Some(CallerKind::Consumer | CallerKind::Application) => {
                params.forwards_authorization(permit)
            }
            // The scheme is another one, or the call would have been a signed one.
            Some(CallerKind::Anonymous) => true,
            Some(CallerKind::User) => false,
        },
        "forwarded" => origin.believed == Some(ForwardedFamily::Forwarded),
        "content-type" | "content-encoding" | "cookie" => true,
        _ => !is_hop_by_hop(name) && !params.lookalikes.contains(text.as_bytes()),
    }
}

/// Removes our own cookies. Over HTTP/2 a Cookie may come in several lines, which are joined for HTTP/1.1 (RFC 9113 §8.2.3).
fn cookies(headers: &mut HeaderMap, params: &ForwardParams) {
    let header::Entry::Occupied(mut entry) = headers.entry(header::COOKIE) else {
        return;
    };
    let mut crumbs = entry.iter().map(HeaderValue::as_bytes);
    let first = crumbs.next().unwrap_or_default();
    let whole = crumbs.fold(Cow::Borrowed(first), |mut whole, crumb| {
        whole.to_mut().extend_from_slice(b"; ");
        whole.to_mut().extend_from_slice(crumb);
        whole
    });
    let without = without_ours(&whole, params);
    if without.is_none() && matches!(whole, Cow::Borrowed(_)) {
        return;
    }
    let remaining = without.unwrap_or_else(|| whole.into_owned());
    match HeaderValue::try_from(remaining) {
        Ok(cookies) if !cookies.is_empty() => {
            entry.insert(cookies);
        }
        _ => {
            entry.remove();
        }
    }
}

/// The cookies of one line without our own; `None` if none of ours is among them.
pub(super) fn without_ours(value: &[u8], params: &ForwardParams) -> Option<Vec<u8>> {
    if !http_fields::cookies(value).any(|(name, _)| params.is_reserved_cookie(name)) {
        return None;
    }
    let remaining =
        http_fields::cookies(value).filter(|(name, _)| !params.is_reserved_cookie(name));
    let remaining: Vec<&[u8]> = remaining.map(|(_, cookie)| cookie).collect();
    Some(remaining.join(&b"; "[..]))
}

/// Sets a field.
// Not inlined: fifteen inlined copies hurt the instruction cache (measured).
#[inline(never)]
fn set(headers: &mut HeaderMap, name: &HeaderName, value: HeaderValue) {
    headers.insert(name, value);
}

const fn constant(text: &'static str) -> HeaderValue {
    HeaderValue::from_static(text)
}

fn value<T>(bytes: T) -> Result<HeaderValue, ForwardFault>
where
    HeaderValue: TryFrom<T>,
    <HeaderValue as TryFrom<T>>::Error: Into<http::Error>,
{
    HeaderValue::try_from(bytes).map_err(internal)
}

fn internal(error: impl Into<http::Error>) -> ForwardFault {
    let error = error.into();
    tracing::debug!(%error, "a request cannot be composed");
    ForwardFault::Internal("a checked field value or target is not valid")
}
