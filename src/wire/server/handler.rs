//! What a listener asks of the code that answers its requests.

use std::{net::IpAddr, rc::Rc, time::Duration};

use http::{Request, Response};

use super::{
    request::RequestBody,
    response::{Gone, ResponseBody},
};
use crate::{
    base::network::peer::Peer,
    wire::server::{caller::stream::Limits, tls::HandshakeFailure},
};

/// What happens to a connection.
#[derive(Debug, Clone, Copy)]
pub enum ConnectionEvent {
    /// It has begun.
    Opened,
    /// It has ended.
    Closed,
    /// It had no permitted request, and was closed to make room for another one.
    Evicted,
    /// It was one too many.
    Refused,
    /// Its TLS handshake has failed, so it has not begun.
    HandshakeFailed(HandshakeFailure),
}

/// Answers the requests of connections.
pub trait Handler: 'static {
    /// The bounds to keep now.
    fn limits(&self) -> Rc<Limits>;
    /// Whether responses say `Connection: close`, and connections without a request are closed soon.
    fn is_draining(&self) -> bool {
        false
    }
    /// Ready once [`Handler::is_draining`].
    fn draining(&self) -> impl Future<Output = ()> {
        std::future::pending()
    }
    /// Whether requests are no longer taken: connections that wait for one are closed at once.
    fn is_leaving(&self) -> bool {
        false
    }
    /// Whether an address is one of `listen.trusted_proxies`.
    fn is_trusted(&self, _peer: IpAddr) -> bool {
        false
    }
    /// Notes what happens to connections.
    fn note(&self, _event: ConnectionEvent) {}

    /// Answers a request.
    ///
    /// # Errors
    /// [`Gone`] if the caller has gone: the connection is reset.
    fn answer(
        self: Rc<Self>,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, Gone>>;
    /// A head was malformed or took too long: it was answered with `status`, and the connection is closed.
    fn rejected(&self, _peer: Peer, _status: u16, _reason: &str) {}
}

/// While draining, a connection without a request is kept for this long. Its caller may have sent the next one before
/// it could learn of the end, and HTTP/1.1 can announce it only with a response that says `Connection: close`; closed
/// at once, that request would be lost (RFC 9112 §9.3.1 lets callers repeat only some). A head that has begun has the
/// same time.
pub const LAST_REQUEST: Duration = Duration::from_secs(1);
