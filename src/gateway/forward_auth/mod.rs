//! Forward-auth: decides on requests that another proxy describes and forwards itself, such as nginx with `auth_request`.
//!
//! The steps are those of a request that this process forwards, up to the `Permit`; its identity headers are in the response.
//! The listener is for the proxy in front alone: a description is believed.

mod body;
mod description;

use std::{cell::RefCell, net::IpAddr, rc::Rc, time::Duration};

use http::{HeaderMap, HeaderValue, Request, Response, header, request::Parts};
use http_body::Body as _;

use self::description::{Described, WAYS, Way};
use crate::{
    base::network::peer::Peer,
    gateway::{
        decision,
        live::{Live, Waiting},
        proxy::Worker,
        record::RequestRecord,
    },
    provider::respond::{Failure, Format, OwnResponse},
    request::{
        parse::{
            self,
            head::Head,
            signed::{Collected, is_form},
        },
        policy::{
            call::{Call, CallBody},
            permit::Permit,
        },
        route::{Route, RouteRejection},
    },
    telemetry::request_id::X_REQUEST_ID,
    wire::{
        server::{
            caller::{
                buffered::API_FORMS,
                stream::{CallerStream, Limits},
            },
            handler::{ConnectionEvent, Handler},
            request::RequestBody,
            response::{Gone, ResponseBody},
        },
        url::origin::Scheme,
    },
};

/// The fields that a description may add to a head.
const DESCRIPTION_FIELDS: usize = 20;

/// The bytes that they may add, without the target.
const DESCRIPTION_BYTES: usize = 8 << 10;

/// The wait for the rest of a body that is not verified. A proxy that asks with a body has all of it.
const DISCARD_WITHIN: Duration = Duration::from_secs(1);

/// Answers the proxy in front.
pub struct ForwardAuthHandler {
    worker: Rc<Worker>,
    /// The limits of the worker, and those of descriptions that follow from them.
    limits: RefCell<(Rc<Limits>, Rc<Limits>)>,
}

impl ForwardAuthHandler {
    /// Decides as this worker does.
    pub fn new(worker: Rc<Worker>) -> Self {
        let limits = worker.limits();
        let of_descriptions = Rc::new(limits_of_descriptions(&limits));
        let limits = RefCell::new((limits, of_descriptions));
        Self { worker, limits }
    }
}

fn limits_of_descriptions(limits: &Limits) -> Limits {
    Limits {
        head_bytes: limits.head_bytes + limits.target_bytes + DESCRIPTION_BYTES,
        head_fields: limits.head_fields + DESCRIPTION_FIELDS,
        streams: None,
        ..limits.clone()
    }
}

/// Decides on a described request; `parts` are its head. Returns the fields of the response too: every identity header,
/// empty if it does not apply, so that the proxy in front overwrites what the caller sent.
async fn permit_described(
    live: &Live,
    parts: &Parts,
    described: &Described,
    body: &RequestBody,
    waiting: &Waiting,
    record: &mut RequestRecord,
) -> Result<(Permit, HeaderMap), Failure> {
    let caller = &**body.caller();
    if description::head_bytes(parts) > live.limits.head_bytes {
        return Err(parse::ParseRejection::HeadTooLarge.into());
    }
    let authority = described.authority()?;
    let scheme = described.scheme(&live.origins, &authority)?;
    let receive = |_: &_| {
        let secure = scheme == Scheme::Https;
        let origins = &live.origins;
        origins.describe(&parts.headers, caller.peer, authority, secure)
    };
    let body_bytes = body.size_hint().lower();
    let (received, route) = decision::receive(live, parts, body_bytes, caller, record, receive)?;
    let head = &received.head;
    let body = match body::check(&parts.headers, body, live.described_body_bytes) {
        Ok(()) => CallBody::Shown(body),
        Err(unseen) => CallBody::Unseen(unseen),
    };
    let (api, collected) = match route {
        Route::Api(api) => (api, None),
        Route::TokenOrApi(api) => (
            api,
            Some(collect(live, head, &body, caller, waiting).await?),
        ),
        _ => return Err(RouteRejection::NotForApi.into()),
    };
    let mut call = decision::begin(live, &received, api, caller, body, collected, record)?;
    let handshake = decision::handshake(&call)?;
    let permit = decision::decide(live, &mut call, caller, waiting, record).await?;
    // The proxy in front would pass any upgrade on.
    if parts.headers.contains_key(header::UPGRADE) && handshake.is_none() {
        return Err(live.authorizer.operations.forbidden(None).into());
    }
    let fields = fields_of(live, &call, &permit, record)?;
    Ok((permit, fields))
}

/// The parameters of a described call whose path is also that of token calls.
///
/// # Errors
/// [`RouteRejection::NotForApi`] if it is a token call, and those of reading its form.
async fn collect(
    live: &Live,
    head: &Head<'_>,
    body: &CallBody<'_>,
    caller: &CallerStream,
    waiting: &Waiting,
) -> Result<Collected, Failure> {
    let (headers, limits) = (&head.parts.headers, caller.limits());
    let memory = caller.reserve(&API_FORMS);
    let mut collected = Collected::from_head(headers, &head.target, memory, &limits)?;
    let mut form = &[][..];
    if let CallBody::Shown(body) = body
        && is_form(headers)?
    {
        form = waiting.decided(caller, body.hold()).await??;
        collected.read_form(form, &limits)?;
    }
    let parameters = &collected.parameters;
    match live.route.token_call(None, head, form, parameters)? {
        Some(_) => Err(RouteRejection::NotForApi.into()),
        None => Ok(collected),
    }
}

/// The fields of the response for a permitted call.
///
/// # Errors
/// The caller cannot be described to the API.
fn fields_of(
    live: &Live,
    call: &Call<'_>,
    permit: &Permit,
    record: &RequestRecord,
) -> Result<HeaderMap, Failure> {
    let identity = &live.forward.identity;
    let empty = identity.names().cloned();
    let mut fields: HeaderMap = empty
        .map(|name| (name, HeaderValue::from_static("")))
        .collect();
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Instead of the caller's, so that the logs of both sides have the same.
    fields.insert(&X_REQUEST_ID, record.request_id.value().clone());
    let assertion = identity.assertion(permit, call)?;
    identity.fields(permit, assertion.as_ref(), |name, value| {
        fields.insert(name, value.clone());
    })?;
    Ok(fields)
}

/// The response to a failure, for the proxy that described the call.
fn rejected(
    failure: Failure,
    headers: &HeaderMap,
    way: Option<Way>,
    record: &mut RequestRecord,
) -> OwnResponse {
    let is_nginx = way == Some(Way::Nginx);
    let format = is_nginx.then_some(Format::Challenge);
    let mut response = record.fail(failure, headers, format);
    // The connection is that of the proxy in front, for many callers.
    response.fields.retain(|(name, _)| *name != "Connection");
    match is_nginx {
        true => for_nginx(response),
        false => response,
    }
}

/// The response to nginx, for which every status but 2xx, 401 and 403 is an error.
fn for_nginx(mut response: OwnResponse) -> OwnResponse {
    let status = response.status.to_string();
    response.status = match response.status {
        303 | 400 | 401 => 401,
        _ => 403,
    };
    response.field("X-Countersign-Status", status)
}

impl Handler for ForwardAuthHandler {
    fn limits(&self) -> Rc<Limits> {
        let limits = self.worker.limits();
        let mut known = self.limits.borrow_mut();
        if !Rc::ptr_eq(&known.0, &limits) {
            let of_descriptions = Rc::new(limits_of_descriptions(&limits));
            *known = (limits, of_descriptions);
        }
        Rc::clone(&known.1)
    }

    fn is_draining(&self) -> bool {
        self.worker.is_draining()
    }

    fn is_leaving(&self) -> bool {
        self.worker.is_leaving()
    }

    async fn draining(&self) {
        self.worker.draining().await;
    }

    /// The listener is for the proxy in front alone.
    fn is_trusted(&self, _peer: IpAddr) -> bool {
        true
    }

    fn note(&self, event: ConnectionEvent) {
        self.worker.note(event);
    }

    fn rejected(&self, peer: Peer, status: u16, reason: &str) {
        self.worker.rejected(peer, status, reason);
    }

    async fn answer(
        self: Rc<Self>,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, Gone> {
        let (worker, current) = (&self.worker, self.worker.current());
        let live = &*current.live;
        let (mut parts, body) = request.into_parts();
        let asked = parts.method.clone();
        let way = Way::by_path(&parts.uri);
        let described = match way {
            Some(way) => way.read(&mut parts).map_err(Failure::from),
            None => Err(RouteRejection::NoDescription { ways: WAYS }.into()),
        };
        // Its request id and its place in a trace are the caller's.
        let (mut record, admitted) = worker.begin(&current, &parts, body.caller(), false);
        let outcome = match (admitted, described) {
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
            (Ok(()), Ok(described)) => {
                permit_described(
                    live,
                    &parts,
                    &described,
                    &body,
                    &worker.waiting,
                    &mut record,
                )
                .await
            }
        };
        // The proxy in front sends all of it at once; with a rest left unread the connection would have to end.
        if body
            .size_hint()
            .upper()
            .is_some_and(|bytes| bytes <= live.limits.form_bytes as u64)
        {
            body.discard(DISCARD_WITHIN).await;
        }
        let mut response = match outcome {
            Ok((permit, fields)) => {
                record.permit = Some(permit);
                record.passed(200);
                let mut response = Response::new(ResponseBody::none());
                *response.headers_mut() = fields;
                response
            }
            Err(failure) => {
                rejected(failure, &parts.headers, way, &mut record).into_response(&asked)
            }
        };
        record.respond(&mut response, &parts.headers);
        Ok(response)
    }
}
