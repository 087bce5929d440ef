//! The request that the API sees, made in one pass over the head that the caller sent.

use std::{borrow::Cow, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Version, header,
    request::Parts,
    uri::{self, PathAndQuery, Uri},
};
use http_body::Body;

use super::{ForwardFault, ForwardParams, HostMode, pool::UpstreamBody};
use crate::{
    base::network::http_fields::{self, all, is_hop_by_hop, list},
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
        traces::{TRACEPARENT, ToApi},
    },
    wire::{server::caller::stream::CallerStream, written_head::WrittenHead},
};

/// See [`X_FORWARDED_FOR`].
static X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// The field that lists the processes of this program that a request has passed.
static COUNTERSIGN_HOP: HeaderName = HeaderName::from_static("countersign-hop");

/// The origin of the request, in the form of the fields that the API gets.
#[derive(Debug)]
pub struct ReceivedAs {
    authority: HeaderValue,
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
        let sent = received
            .host
            .filter(|sent| is_written(&received.authority, sent.as_bytes()));
        let forwarded_for = match caller.address() {
            Some(peer) if params.forwarded => Some(forwarded_for(headers, received, caller, peer)?),
            _ => None,
        };
        Ok(Self {
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

/// The head of a permitted call as the API gets it, in any version of HTTP.
pub struct UpstreamHead<'a> {
    /// The head as the caller sent it.
    pub parts: &'a Parts,
    /// The names of the fields that came.
    pub names: &'a FieldNames,
    /// The rules by which it is rewritten.
    pub params: &'a ForwardParams,
    /// The proof.
    pub permit: &'a Permit,
    /// The id of the request.
    pub request_id: &'a HeaderValue,
    /// Path and query to ask for, with the API's own path in front.
    pub target: PathAndQuery,
    /// The origin of the request.
    pub received: ReceivedAs,
    /// The prefix that was taken off its path.
    pub prefix: Option<&'a HeaderValue>,
    /// The signed statement about the caller.
    pub assertion: Option<HeaderValue>,
    /// The trace that the API is to go on with.
    pub trace: Option<ToApi>,
    /// The time that the API has for the head of its response.
    pub response_timeout: Duration,
    /// It begins a handshake of WebSocket.
    pub websocket: bool,
}

impl UpstreamHead<'_> {
    /// The head over HTTP/1.1 of a request without a body, in `memory`.
    ///
    /// # Errors
    /// [`ForwardFault::Internal`]: the caller cannot be described to the API.
    pub fn written_head(&self, memory: Vec<u8>) -> Result<WrittenHead, ForwardFault> {
        let mut head = WrittenHead::begin(memory, &self.parts.method, &self.target);
        self.fields(Some(0), |name, value| head.push(name, value))?;
        Ok(head.end())
    }

    /// The request in the form of HTTP/1.1.
    ///
    /// # Errors
    /// As [`UpstreamHead::written_head`].
    pub fn over_http1(&self, body: UpstreamBody) -> Result<Request<UpstreamBody>, ForwardFault> {
        let mut headers = self.room();
        self.fields(body.size_hint().exact(), |name, value| {
            headers.append(name, value.clone());
        })?;
        let uri = Uri::from(self.target.clone());
        Ok(self.request(uri, headers, body))
    }

    /// The request in the form of HTTP/2 (RFC 9113 §8.2.2, §8.3.1).
    ///
    /// # Errors
    /// As [`UpstreamHead::written_head`]; a value of Host is always an authority.
    pub fn over_http2(
        &self,
        body: UpstreamBody,
        secure: bool,
    ) -> Result<Request<UpstreamBody>, ForwardFault> {
        let (mut headers, mut host) = (self.room(), HeaderValue::from_static(""));
        self.fields(body.size_hint().exact(), |name, value| {
            if *name == header::HOST {
                host = value.clone();
            } else if *name != header::TRANSFER_ENCODING {
                headers.append(name, value.clone());
            }
        })?;
        // gRPC demands it, and trailers do go on to callers of HTTP/2.
        headers.insert(header::TE, constant("trailers"));
        let mut parts = uri::Parts::default();
        parts.scheme = Some(if secure {
            uri::Scheme::HTTPS
        } else {
            uri::Scheme::HTTP
        });
        parts.authority = Some(host.as_bytes().try_into().map_err(internal)?);
        parts.path_and_query = Some(self.target.clone());
        let uri = Uri::from_parts(parts).map_err(internal)?;
        let mut request = self.request(uri, headers, body);
        *request.version_mut() = Version::HTTP_2;
        Ok(request)
    }

    /// A map with room for all fields.
    fn room(&self) -> HeaderMap {
        /// More than are added to the caller's own, those of the operation aside.
        const ADDED: usize = 16;
        HeaderMap::with_capacity(self.parts.headers.len() + ADDED)
    }

    fn request(&self, uri: Uri, headers: HeaderMap, body: UpstreamBody) -> Request<UpstreamBody> {
        let mut request = Request::new(body);
        *request.method_mut() = self.parts.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        // The spelling of the names is among them, where it is preserved. A caller that sends a field of ours would spell ours.
        let mut ours = self.params.identity.names();
        if !ours.any(|name| self.names.present.has(&self.parts.headers, name)) {
            *request.extensions_mut() = self.parts.extensions.clone();
        }
        request
    }

    /// Gives `put` each field that the API gets, in the form of HTTP/1.1; `length` is that of the body.
    ///
    /// # Errors
    /// [`ForwardFault::Internal`]: the caller cannot be described to the API.
    fn fields(
        &self,
        length: Option<u64>,
        mut put: impl FnMut(&HeaderName, &HeaderValue),
    ) -> Result<(), ForwardFault> {
        let (params, received, headers) = (self.params, &self.received, &self.parts.headers);
        let present = self.names.present;
        let host = match &params.host {
            HostMode::Public => &received.authority,
            HostMode::Fixed(host) => host,
        };
        put(&header::HOST, host);
        let has_cookies = present.has(headers, &header::COOKIE);
        for (name, value) in headers {
            if self.passes(name) && !(has_cookies && *name == header::COOKIE) {
                put(name, value);
            }
        }
        if has_cookies
            && self.passes(&header::COOKIE)
            && let Some(cookies) = cookies(headers, params)
        {
            put(&header::COOKIE, &cookies);
        }
        // The body is framed again: by its length where that is known, else by chunks.
        match length {
            Some(0) if !present.has(headers, &header::CONTENT_LENGTH) => {}
            Some(length) => put(&header::CONTENT_LENGTH, &length.into()),
            None => put(&header::TRANSFER_ENCODING, &constant("chunked")),
        }
        if self.websocket {
            put(&header::CONNECTION, &constant("Upgrade"));
            put(&header::UPGRADE, &constant("websocket"));
        }
        if params.forwarded {
            if let Some(addresses) = &received.forwarded_for {
                put(&X_FORWARDED_FOR, addresses);
            }
            let scheme = if received.secure { "https" } else { "http" };
            put(&X_FORWARDED_PROTO, &constant(scheme));
            put(&X_FORWARDED_HOST, &received.authority);
            if let Some(prefix) = self.prefix {
                put(&X_FORWARDED_PREFIX, prefix);
            }
        }
        // Not `Via`: nginx and others do not compress responses to requests that have it.
        put(&COUNTERSIGN_HOP, &params.hop);
        put(&X_REQUEST_ID, self.request_id);
        if let Some(trace) = &self.trace {
            put(&TRACEPARENT, &trace.traceparent);
        }
        // Only ours: callers' copies in any spelling have been dropped.
        let assertion = self.assertion.as_ref();
        Ok(params.identity.fields(self.permit, assertion, put)?)
    }

    /// Whether the API sees the caller's field as it is. The operator's drop list wins, even for fields that would otherwise
    /// be forwarded. Fields that are written here are not among them.
    fn passes(&self, name: &HeaderName) -> bool {
        let (params, received, text) = (self.params, &self.received, name.as_str());
        let passes = match text {
            // Always written here.
            "host" | "x-request-id" => false,
            // These have rules of their own: a drop list that has only the beginning of the name does not apply.
            "x-forwarded-for" | "x-forwarded-host" | "x-forwarded-prefix" | "x-forwarded-proto" => {
                !params.dropped.contains_itself(text.as_bytes())
                    && received.believed == Some(ForwardedFamily::XForwarded)
                    && (!params.forwarded || text == "x-forwarded-prefix" && self.prefix.is_none())
            }
            _ if params.dropped.contains(text.as_bytes()) => false,
            "content-length" | "expect" => false,
            "authorization" => match self.permit.kind() {
                // Observed: unchanged.
                None => true,
                Some(CallerKind::Consumer | CallerKind::Application) => {
                    params.forwards_authorization(self.permit)
                }
                // The scheme is another one, or the call would have been a signed one.
                Some(CallerKind::Anonymous) => true,
                Some(CallerKind::User) => false,
            },
            "forwarded" => received.believed == Some(ForwardedFamily::Forwarded),
            // `Connection` cannot remove fields that change how the API reads a body that is signed.
            "content-type" | "content-encoding" => return true,
            "cookie" => true,
            "traceparent" => self.trace.is_none(),
            "tracestate" => self.trace.as_ref().is_none_or(|trace| trace.keeps_state),
            _ => !is_hop_by_hop(name) && !params.lookalikes.contains(text.as_bytes()),
        };
        passes && !self.names.in_connection.contains(name)
    }
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

/// The cookies that the API gets, if any: all but our own. Over HTTP/2 a Cookie may come in several lines, which are joined for
/// HTTP/1.1 (RFC 9113 §8.2.3).
fn cookies(headers: &HeaderMap, params: &ForwardParams) -> Option<HeaderValue> {
    let mut lines = headers.get_all(header::COOKIE).iter();
    let first = lines.next()?;
    let whole = lines.fold(Cow::Borrowed(first.as_bytes()), |mut whole, line| {
        whole.to_mut().extend_from_slice(b"; ");
        whole.to_mut().extend_from_slice(line.as_bytes());
        whole
    });
    let remaining = match (without_ours(&whole, params), whole) {
        (None, Cow::Borrowed(_)) => return Some(first.clone()),
        (None, Cow::Owned(whole)) => whole,
        (Some(without), _) => without,
    };
    let remaining = HeaderValue::try_from(remaining).ok();
    remaining.filter(|cookies| !cookies.is_empty())
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

#[cfg(test)]
mod tests;
