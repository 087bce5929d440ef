//! The responses to requests that do not go to the API: token calls, pages, OPTIONS, and the public keys.

use std::rc::Rc;

use http::{Method, Response, header};

use crate::{
    base::network::http_fields::SEC_FETCH_MODE,
    gateway::{
        live::{Live, Served, Waiting},
        record::RequestRecord,
    },
    provider::{
        endpoints::TokenOutcome,
        respond::{self, Failure, OwnResponse},
    },
    request::{
        parse::{
            head::{self, Head},
            target::RequestTarget,
        },
        route::{ApiCall, Page, Route, RouteRejection, TokenCall},
    },
    telemetry::{metrics::Verdict, request_id::X_REQUEST_ID},
    wire::server::{request::RequestBody, response::ResponseBody},
};

/// Responds to a token call that its parameters or its form name; the parameters of a call to the API come back.
pub(super) async fn respond_or_collect(
    live: &Live,
    waiting: &Waiting,
    head: &Head<'_>,
    call: &ApiCall<'_, '_>,
    body: &RequestBody,
    record: &mut RequestRecord,
) -> Result<TokenOutcome, Failure> {
    let method = head.parts.method.as_str().as_bytes();
    let found = live.authorizer.operations.find(call.path, method);
    // A call to the API that is only observed goes on, whatever its head has.
    let is_enforced = live.authorizer.is_enforced(&found, &head.target);
    let responding = token(live, None, head, (body, is_enforced), record);
    waiting.decided(body.caller(), responding).await?
}

/// Responds to a request that does not go to the API.
pub(super) async fn respond(
    live: &Live,
    waiting: &Waiting,
    route: Route<'_, '_>,
    head: &Head<'_>,
    body: RequestBody,
    record: &mut RequestRecord,
) -> Result<Response<ResponseBody>, Failure> {
    let parts = head.parts;
    match route {
        // Somebody has typed the address of the token endpoint.
        Route::Token(None) | Route::TokenOrApi(_)
            if head.target.query.is_none()
                && !parts.headers.contains_key(header::AUTHORIZATION)
                && parts.headers.contains_key(&SEC_FETCH_MODE)
                && respond::is_navigation(&parts.method, &parts.headers) =>
        {
            page(live, waiting, Page::Home, head, body, record).await
        }
        Route::Token(named) => {
            respond_to_token_call(live, waiting, named, head, &body, record).await
        }
        // Without an API, all that comes to this path is a token call.
        Route::TokenOrApi(_) => {
            respond_to_token_call(live, waiting, None, head, &body, record).await
        }
        Route::JwkSet => {
            record.served = Served::Page;
            let set = jwk_set(live).ok_or(RouteRejection::NotFound(None))?;
            Ok(own_response(set, &parts.method, record))
        }
        Route::Page(page) => self::page(live, waiting, page, head, body, record).await,
        Route::Api(_) => Err(RouteRejection::NotFound(None).into()),
    }
}

async fn respond_to_token_call(
    live: &Live,
    waiting: &Waiting,
    named: Option<TokenCall>,
    head: &Head<'_>,
    body: &RequestBody,
    record: &mut RequestRecord,
) -> Result<Response<ResponseBody>, Failure> {
    let responding = token(live, named, head, (body, true), record);
    match waiting.decided(body.caller(), responding).await?? {
        TokenOutcome::Responded(response) => Ok(own_response(response, &head.parts.method, record)),
        TokenOutcome::NotTokenCall(_) => Err(RouteRejection::ModeNotOnce.into()),
    }
}

/// Responds to a token call, as [`Endpoints::token`](crate::provider::endpoints::Endpoints::token) does.
async fn token(
    live: &Live,
    named: Option<TokenCall>,
    head: &Head<'_>,
    body: (&RequestBody, bool),
    record: &mut RequestRecord,
) -> Result<TokenOutcome, Failure> {
    let endpoints = &live.endpoints;
    let mut call = None;
    let noted = (&mut call, &mut record.facts);
    let responded = endpoints.token(&live.route, named, head, body, noted).await;
    record.served = call.map_or(Served::Unknown, Served::Token);
    responded
}

/// The target of a request with OPTIONS that is for the server as a whole (RFC 9110 §9.3.7).
pub(super) const ASTERISK: RequestTarget<'static> = RequestTarget {
    absolute: None,
    path: b"*",
    query: None,
};

/// Responds to OPTIONS for this process itself. It tells nothing of the API or its operations, so it needs no credentials.
pub(super) fn options(method: &Method, record: &mut RequestRecord) -> Response<ResponseBody> {
    let response = OwnResponse::empty(204, Verdict::Page).field("Allow", head::KNOWN_METHODS);
    own_response(response, method, record)
}

/// The public keys with which others verify our signatures, if anything is signed here.
pub fn jwk_set(live: &Live) -> Option<OwnResponse> {
    let set = live.jwk_set.clone()?;
    let set = OwnResponse::new(200, "application/jwk-set+json", set, Verdict::Page);
    Some(set.field("Cache-Control", "max-age=300"))
}

/// Responds with a page.
async fn page(
    live: &Live,
    waiting: &Waiting,
    page: Page,
    head: &Head<'_>,
    mut body: RequestBody,
    record: &mut RequestRecord,
) -> Result<Response<ResponseBody>, Failure> {
    record.served = Served::Page;
    let (pages, caller) = (&live.authorizer.pages, Rc::clone(body.caller()));
    let responding = pages.respond(&live.route, page, head, &mut body);
    let page = waiting.decided(&caller, responding).await??;
    Ok(own_response(page, &head.parts.method, record))
}

/// A response of this program as HTTP, and in the record.
pub(super) fn own_response(
    mut response: OwnResponse,
    method: &Method,
    record: &mut RequestRecord,
) -> Response<ResponseBody> {
    (record.verdict, record.status) = (response.verdict, response.status);
    record.account = response.account.take();
    if response.status >= 400 {
        let id = record.request_id.as_str().to_owned();
        response.fields.push((X_REQUEST_ID.as_str(), id));
    }
    response.into_response(method)
}
