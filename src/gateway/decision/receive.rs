//! The first step: the head of a request is checked, and its target found.

use http::request::Parts;

use crate::{
    gateway::{live::Live, record::RequestRecord},
    provider::respond::Failure,
    request::{
        forward::{ForwardRejection, request},
        parse::{
            ParseRejection,
            head::{self, FieldNames, Head},
            origin::RequestOrigin,
            target::RequestTarget,
        },
        route::{self, Route},
    },
    wire::server::caller::stream::CallerStream,
};

/// A head that keeps the rules of HTTP.
pub struct Received<'r> {
    /// The head.
    pub head: Head<'r>,
    /// The names of its fields.
    pub names: FieldNames,
}

/// Checks the head of a request and finds what it is for. `origin` finds where it came from.
///
/// # Errors
/// The rejections of [`head::check`], `origin` and [`route::route`], and [`ForwardRejection::LoopDetected`].
pub fn receive<'l, 'r>(
    live: &'l Live,
    parts: &'r Parts,
    body_bytes: u64,
    caller: &CallerStream,
    record: &mut RequestRecord,
    origin: impl FnOnce(&RequestTarget<'r>) -> Result<RequestOrigin<'r>, ParseRejection>,
) -> Result<(Received<'r>, Route<'l, 'r>), Failure> {
    let names = head::check(parts, body_bytes, &live.limits)?;
    if request::is_back(&parts.headers, &names, &live.forward) {
        return Err(ForwardRejection::LoopDetected.into());
    }
    let head = Head::read(parts, origin)?;
    caller.count_as(head.received.nearest_address);
    record.address = head.received.nearest_address;
    let route = route::route(&live.route, &live.origins, &head)?;
    Ok((Received { head, names }, route))
}
