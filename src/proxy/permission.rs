//! Decides whether a call to the API is permitted, as the kind of caller that its credentials make it.

use std::cell::Cell;

use http::{HeaderValue, Method, header, request::Parts};
use http_body::Body as _;
use percent_encoding::utf8_percent_encode;

use crate::{
    endpoints::page::{SEC_FETCH_DEST, SEC_FETCH_MODE, SEC_FETCH_SITE},
    fields::{all, single},
    forward::{
        body::UpstreamBody,
        credentials,
        request::{self, ReceivedAs},
        websocket::Handshake,
    },
    issue::callback::ESCAPED,
    oauth::{Place, ProtocolParameter},
    parse::{
        head::Head,
        origin::PublicUrl,
        signed::{Collected, SignedRequest},
    },
    policy::{
        Rejection,
        operations::{Found, Kind},
        permit::Permit,
    },
    respond::{Failure, Format},
    route::ApiCall,
    server::{caller::Caller, request::RequestBody},
    verify::{Purpose, UnreadBody},
};

use super::{Live, Worker, nanoseconds, stopwatch::Stopwatch};

/// The longest path and query that a login leads back to, in bytes.
const MAX_RETURN_BYTES: usize = 2_048;

/// A call on its way to the API.
pub(super) struct PendingCall<'o, 'r> {
    pub(super) live: &'o Live,
    pub(super) head: &'r Head<'r>,
    pub(super) call: ApiCall<'o, 'r>,
    pub(super) found: Found<'o>,
    pub(super) stopwatch: &'r Stopwatch,
    pub(super) caller: &'r Caller,
    pub(super) request_id: &'r HeaderValue,
    /// The call is signed with a replaced secret, during its grace.
    pub(super) previous_secret: Cell<bool>,
}

/// A permitted call, ready to be forwarded.
pub(super) struct Outgoing<'o> {
    pub(super) permit: Permit,
    pub(super) body: UpstreamBody,
    pub(super) origin: ReceivedAs,
    pub(super) changes: request::Changes,
    pub(super) handshake: Option<Handshake>,
    /// The public URL of the request.
    pub(super) url: &'o PublicUrl,
    /// The call is not signed, so that the time up to now is not yet measured.
    pub(super) unsigned: bool,
}

impl<'o> PendingCall<'o, '_> {
    /// The path for which the call was signed.
    fn signed_path(&self) -> std::borrow::Cow<'_, [u8]> {
        let (prefix, path) = (self.call.restored_prefix, self.head.target.path);
        if prefix.is_empty() {
            path.into()
        } else {
            [prefix.as_bytes(), path].concat().into()
        }
    }

    /// What becomes of a request without a session: a browser that navigates to what a user may open is sent to the login.
    fn or_login(&self, rejection: Rejection) -> Rejection {
        let parts = self.head.parts;
        let says = |name, value: &[u8]| {
            single(&parts.headers, name).is_ok_and(|sent| sent.is_none_or(|sent| sent == value))
        };
        // An old browser sends none of these fields, and accepts HTML first only where it navigates.
        let navigates = says(&SEC_FETCH_MODE, b"navigate")
            && (parts.headers.contains_key(&SEC_FETCH_MODE) || says(&SEC_FETCH_SITE, b"none"));
        let is_open_to_users = match self.found {
            Found::Operation(_) | Found::Unlisted(_) => self.found.access().admits(Kind::User),
            Found::OtherMethod { .. } => false,
        };
        let is_navigation = matches!(parts.method, Method::GET | Method::HEAD)
            && !parts.headers.contains_key(header::UPGRADE)
            && navigates
            && says(&SEC_FETCH_DEST, b"document")
            && Format::preferred_by(&parts.headers) == Format::Html;
        if rejection != Rejection::NoCredentials
            || !is_open_to_users
            || !is_navigation
            || !self.live.origins.is_base(&self.head.received)
        {
            return rejection;
        }
        let mut location = format!("{}?mode=login", self.live.route.path);
        let (path, query) = (self.signed_path(), self.head.target.query);
        let back = [
            &path,
            query.map_or("", |_| "?").as_bytes(),
            query.unwrap_or_default(),
        ]
        .concat();
        // The login page checks where it leads; a longer one would be too long a target with its escapes.
        if let Ok(back) = std::str::from_utf8(&back)
            && back.len() <= MAX_RETURN_BYTES
        {
            location.push_str("&return_to=");
            location.extend(utf8_percent_encode(back, ESCAPED));
        }
        Rejection::LoginNeeded { location }
    }

    /// Prepares a permitted call for the API, its credentials removed.
    pub(super) fn outgoing(
        &self,
        named: Vec<http::HeaderName>,
        permit: Permit,
        collected: Collected,
        body: RequestBody,
    ) -> Result<Outgoing<'o>, Failure> {
        let params = &self.live.forward;
        let strip = collected.signed && permit.kind().is_some() && !params.forward_authorization;
        let strip_in = |place| strip && collected.parameters.has_oauth_name_in(place);
        let query = self.head.target.query;
        let stripped = query
            .filter(|_| strip_in(Place::Query))
            .and_then(credentials::strip);
        let in_body = strip_in(Place::Body);
        let handshake = match self.found {
            Found::Operation(operation) if operation.websocket => {
                Handshake::begun_by(self.head.parts, !body.is_end_stream())?
            }
            _ => None,
        };
        let unsigned = !collected.signed;
        let body = match collected.held {
            Some(mut held) => {
                if in_body
                    && collected.form
                    && let Some(form) = credentials::strip(&held)
                {
                    held.replace(form);
                }
                UpstreamBody::Held(bytes::Bytes::from_owner(held))
            }
            None if body.is_end_stream() => UpstreamBody::Empty,
            None => UpstreamBody::Streamed(body),
        };
        let path = self.call.path;
        let target = match (self.head.parts.uri.path_and_query(), &stripped) {
            (Some(sent), None) if params.api_path.is_empty() && sent.path().len() == path.len() => {
                sent.clone()
            }
            _ => {
                let path = [params.api_path.as_bytes(), path];
                request::path_and_query(&path, stripped.as_deref().or(query))?
            }
        };
        Ok(Outgoing {
            permit,
            body,
            origin: ReceivedAs::of(&self.head.received, self.caller)?,
            changes: request::Changes {
                target,
                named,
                websocket: handshake.is_some(),
                request_id: self.request_id.clone(),
            },
            handshake,
            url: self.call.url,
            unsigned,
        })
    }
}

impl Worker {
    /// Rejects a call with a form, before the form is read, if its head shows that no form can help it. Credentials may
    /// still come in the form; where they are all in the head, they must exist.
    ///
    /// # Errors
    /// What the call would be rejected for. Only who names an existing token learns that an operation does not exist.
    pub(super) async fn check_before_form(
        &self,
        live: &Live,
        found: &Found<'_>,
        collected: &Collected,
    ) -> Result<(), Failure> {
        let enforced = match found {
            Found::Operation(operation) => operation.enforce,
            Found::OtherMethod { .. } | Found::Unlisted(_) => None,
        };
        if !enforced.unwrap_or(live.enforce) {
            return Ok(());
        }
        if !collected.signed {
            if found.is_closed() {
                Permit::for_anonymous(found)?;
            }
            return Ok(());
        }
        let protocol = collected.protocol(live.endpoints.verify.methods);
        let Some(named) = protocol.ok().and_then(|protocol| protocol.demand(&[]).ok()) else {
            return Ok(());
        };
        self.shared
            .verifier
            .check_head(Purpose::Api, &named)
            .await?;
        if found.is_closed() {
            if named.token.is_none() {
                return Err(Rejection::TokenMissing.into());
            }
            found.check_method()?;
            return Err(live.operations.forbidden(None).into());
        }
        Ok(())
    }

    /// Permits the call, or returns why not; in observe mode nearly every call is permitted, and what would have rejected
    /// it is returned too.
    pub(super) async fn permit(
        &self,
        pending: &PendingCall<'_, '_>,
        collected: &mut Collected,
        body: &mut RequestBody,
    ) -> Result<(Permit, Option<Failure>), Failure> {
        let enforced = match pending.found {
            Found::Operation(operation) => operation.enforce,
            Found::OtherMethod { .. } | Found::Unlisted(_) => None,
        };
        let outcome = self.permit_enforced(pending, collected, body).await;
        if enforced.unwrap_or(pending.live.enforce) {
            return outcome.map(|permit| (permit, None));
        }
        match outcome {
            // The rules of HTTP and the limits hold whether or not signatures are enforced.
            Err(
                failure @ (Failure::Parse(_)
                | Failure::Body(_)
                | Failure::Policy(Rejection::TooManyRequests { .. })),
            ) => Err(failure),
            Err(failure) if self.is_always_enforced(collected).await => Err(failure),
            outcome => Ok((Permit::danger_for_observed_call(), outcome.err())),
        }
    }

    async fn permit_enforced(
        &self,
        pending: &PendingCall<'_, '_>,
        collected: &mut Collected,
        body: &mut RequestBody,
    ) -> Result<Permit, Failure> {
        let operations = &pending.live.operations;
        if collected.signed {
            let params = &pending.live.endpoints.verify;
            if collected.needs_body(params.methods)? {
                collected.held = Some(body.read_whole().await?);
            }
            let credentials = collected.protocol(params.methods)?.demand(&[])?;
            if credentials.token.is_some_and(<[u8]>::is_empty) {
                let names = [ProtocolParameter::Token].into_iter().collect();
                return Err(crate::oauth::ShapeError::Absent(names).into());
            }
            let path = pending.signed_path();
            let request = SignedRequest {
                method: pending.head.parts.method.as_str().as_bytes(),
                url: pending.call.url,
                path: &path,
                query: pending.head.target.query.unwrap_or_default(),
                parameters: &collected.parameters,
                credentials,
                body: collected.held.as_deref(),
                secure: pending.head.received.secure,
            };
            if request.body.is_some() {
                // The time until now was spent on the body.
                pending.stopwatch.lap();
            }
            let verifier = &self.shared.verifier;
            // A caller that waits for `100 Continue` is not asked for a body that would be dropped.
            let readable = request.body.is_none()
                && !body.is_end_stream()
                && !pending.head.parts.headers.contains_key(header::EXPECT);
            let mut unread = readable.then_some(UnreadBody { body, held: None });
            let verified = verifier
                .verify(params, Purpose::Api, &request, unread.as_mut())
                .await;
            // In observe mode the call goes on to the API: with its whole body, or not at all.
            if let Some(held) = unread.and_then(|unread| unread.held) {
                collected.held = Some(held?);
            }
            self.metrics()
                .verify_nanoseconds(nanoseconds(pending.stopwatch.lap()));
            let verified = verified?;
            pending
                .previous_secret
                .set(verified.is_by_previous_secret());
            if let Some(skew) = verified.skew_seconds() {
                self.metrics().clock_skew_seconds(skew);
            }
            // A call that is not permitted counts too: in observe mode it goes on to the API.
            if let Some(rate) = &pending.live.rate {
                rate.count(
                    &verified.credential().consumer().key,
                    self.shared.started.elapsed(),
                )
                .map_err(|retry_after| Rejection::TooManyRequests { retry_after })?;
            }
            return Ok(Permit::for_signed(verified, operations, &pending.found)?);
        }
        let pages = &pending.live.endpoints.pages;
        let cookies: Vec<&[u8]> = all(&pending.head.parts.headers, &header::COOKIE).collect();
        if !pages.has_session_cookie(&cookies) {
            let parts = pending.head.parts;
            let permit =
                if pending.live.forward_preflights && is_preflight(parts) && body.is_end_stream() {
                    Permit::for_preflight(&pending.found)
                } else {
                    Permit::for_anonymous(&pending.found)
                };
            return Ok(permit.map_err(|rejection| pending.or_login(rejection))?);
        }
        check_same_origin(pending)?;
        let session = pages
            .session(
                &cookies,
                pending.head.trusted_fields(),
                pending.live.endpoints.clock.now(),
            )
            .await?;
        let (_, user) = session.ok_or_else(|| pending.or_login(Rejection::NoCredentials))?;
        Ok(Permit::for_session(user.id, operations, &pending.found)?)
    }

    /// Whether the consumer that the call names is enforced even in observe mode.
    async fn is_always_enforced(&self, collected: &Collected) -> bool {
        let Some(key) = collected.parameters.find("oauth_consumer_key").next() else {
            return false;
        };
        match self
            .shared
            .verifier
            .credentials()
            .consumer(&key.value)
            .await
        {
            Ok(Some(consumer)) => consumer.enforce,
            Ok(None) => false,
            // Unknown: fail closed.
            Err(_) => true,
        }
    }
}

/// Whether a browser sends this by itself before a request of another origin (Fetch, CORS-preflight request): it never has
/// credentials.
fn is_preflight(parts: &Parts) -> bool {
    let has = |name| single(&parts.headers, name).is_ok_and(|sent| sent.is_some());
    parts.method == Method::OPTIONS
        && has(&header::ORIGIN)
        && has(&header::ACCESS_CONTROL_REQUEST_METHOD)
        && !parts.headers.contains_key(header::AUTHORIZATION)
}

/// A session opens an operation only to the service's own pages.
fn check_same_origin(pending: &PendingCall<'_, '_>) -> Result<(), Rejection> {
    let headers = &pending.head.parts.headers;
    let single = |name| single(headers, name).map_err(|_| Rejection::CrossSite);
    if !pending.live.origins.is_base(&pending.head.received) {
        return Err(Rejection::CrossSite);
    }
    match single(&SEC_FETCH_SITE)? {
        Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(Rejection::CrossSite),
        None if matches!(pending.head.parts.method, Method::GET | Method::HEAD)
            && !headers.contains_key(header::UPGRADE) =>
        {
            Ok(())
        }
        None => match single(&header::ORIGIN)? {
            Some(origin) if origin == pending.live.origins.base.origin.to_string().as_bytes() => {
                Ok(())
            }
            _ => Err(Rejection::CrossSite),
        },
    }
}
