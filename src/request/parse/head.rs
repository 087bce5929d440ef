//! The head of a request, and the rules of HTTP that hold for every request.

use http::{HeaderMap, HeaderName, header, request::Parts};

use super::{ParseRejection, origin::RequestOrigin, target::RequestTarget};
use crate::{
    base::network::http_fields::{NameFilter, all, named_by_connection, single},
    wire::server::caller::stream::Limits,
};

/// The head of a request as the steps read it.
#[derive(Debug)]
pub struct Head<'r> {
    /// Method, target and fields as sent.
    pub parts: &'r Parts,
    /// The target, split.
    pub target: RequestTarget<'r>,
    /// The origin of the request, as the connection or a trusted proxy reports it.
    pub received: RequestOrigin<'r>,
}

impl<'r> Head<'r> {
    /// Reads the head of a request; `receive` tells where it came from.
    ///
    /// # Errors
    /// [`ParseRejection::Malformed`]: the target, and the error of `receive`.
    pub fn read(
        parts: &'r Parts,
        receive: impl FnOnce(&RequestTarget<'r>) -> Result<RequestOrigin<'r>, ParseRejection>,
    ) -> Result<Self, ParseRejection> {
        let target = RequestTarget::split(&parts.uri)?;
        let received = receive(&target)?;
        Ok(Self {
            parts,
            target,
            received,
        })
    }

    /// The fields, if a trusted proxy sent them.
    pub fn trusted_fields(&self) -> Option<&'r HeaderMap> {
        self.received.trusted.then_some(&self.parts.headers)
    }
}

/// The largest Content-Length, in bytes: 18 digits, since beyond them some recipient's integer overflows.
const MAX_LENGTH: u64 = 999_999_999_999_999_999;

/// The allowed methods where no operation lists any.
pub const KNOWN_METHODS: &str = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT";

/// The fewest hops that a request may still take (RFC 9110 §7.6.2).
static MAX_FORWARDS: HeaderName = HeaderName::from_static("max-forwards");

/// Counts this hop in the `Max-Forwards` of a request with OPTIONS. Returns whether it was the last one: "If this value is
/// zero (0), the intermediary MUST NOT forward the request; instead, the intermediary MUST respond as the final recipient."
///
/// # Errors
/// [`ParseRejection::Malformed`]: it is not one number.
pub fn is_last_hop(headers: &mut HeaderMap) -> Result<bool, ParseRejection> {
    let invalid = ParseRejection::Malformed("Max-Forwards is not one number");
    let hops = match single(headers, &MAX_FORWARDS) {
        Ok(None) => return Ok(false),
        Ok(Some(hops)) if !hops.is_empty() && hops.iter().all(u8::is_ascii_digit) => hops,
        _ => return Err(invalid),
    };
    // A number without end is a large one.
    let hops = str::from_utf8(hops).ok().and_then(|hops| hops.parse().ok());
    let Some(remaining) = hops.unwrap_or(u32::MAX).checked_sub(1) else {
        return Ok(true);
    };
    headers.insert(MAX_FORWARDS.clone(), remaining.into());
    Ok(false)
}

/// The field names of a head that has been checked.
#[derive(Debug)]
pub struct FieldNames {
    /// The names of the fields themselves.
    pub present: NameFilter,
    /// The names in `Connection`.
    pub in_connection: Vec<HeaderName>,
}

/// The lines of Cookie after the first, which are joined for the API (RFC 9113 §8.2.3).
#[cold]
fn further_cookies(headers: &HeaderMap) -> usize {
    all(headers, &header::COOKIE).skip(1).count()
}

/// Checks a head whose body has at least `body_bytes` bytes.
///
/// # Errors
/// Every [`ParseRejection`] but `Misdirected` and `Body`.
pub fn check(
    parts: &Parts,
    body_bytes: u64,
    limits: &Limits,
) -> Result<FieldNames, ParseRejection> {
    // hyper bounds the bytes of a head over HTTP/2, but not its fields. Browsers send each cookie in a line of its own there.
    if parts.headers.len() > limits.head_fields
        && parts.headers.len() - further_cookies(&parts.headers) > limits.head_fields
    {
        return Err(ParseRejection::HeadTooLarge);
    }
    // In lower case they are other methods (RFC 9110 §9.1), but not to every API, and a signature covers both alike.
    let method = parts.method.as_str();
    if method.eq_ignore_ascii_case("CONNECT") || method.eq_ignore_ascii_case("TRACE") {
        return Err(ParseRejection::MethodNotAllowed {
            allow: KNOWN_METHODS,
        });
    }
    let target = parts.uri.path_and_query();
    if target.is_some_and(|target| target.as_str().len() > limits.target_bytes) {
        return Err(ParseRejection::TargetTooLong);
    }
    let present = NameFilter::new(&parts.headers);
    if present.may_have(&header::EXPECT)
        && all(&parts.headers, &header::EXPECT).any(|it| !it.eq_ignore_ascii_case(b"100-continue"))
    {
        return Err(ParseRejection::Malformed(
            "an expectation other than 100-continue",
        ));
    }
    // hyper checks that chunked is the last coding. The API would not see others, since the body is framed again
    // (RFC 9112 §6.1).
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    if present.may_have(&header::TRANSFER_ENCODING)
        && !single(&parts.headers, &header::TRANSFER_ENCODING)
            .is_ok_and(|coding| coding.is_none_or(is_chunked))
    {
        return Err(ParseRejection::Malformed(
            "Transfer-Encoding is not a single chunked",
        ));
    }
    if body_bytes > MAX_LENGTH {
        return Err(ParseRejection::Malformed("Content-Length is too large"));
    }
    let in_connection = match present.may_have(&header::CONNECTION) {
        true => named_by_connection(&parts.headers)?,
        false => Vec::new(),
    };
    Ok(FieldNames {
        present,
        in_connection,
    })
}
