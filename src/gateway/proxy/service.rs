//! The responses to requests that do not go to the API: token calls, pages, OPTIONS, and the public keys.

use http::{Method, Response, header};

use super::{Live, RequestRecord, Served, Worker};
use crate::{
    base::http_fields::SEC_FETCH_MODE,
    provider::{
        endpoints::TokenOutcome,
        respond::{self, Failure, OwnResponse},
    },
    request::{
        parse::{
            head::{self, Head},
            signed::Collected,
            target::RequestTarget,
        },
        route::{self, ApiCall, Page, Route, TokenCall},
    },
    telemetry::{metrics::Verdict, request_id::X_REQUEST_ID},
    wire::server::{request::RequestBody, response::ResponseBody},
};

impl Worker {
    /// Responds to a token call that its parameters or its form name; the parameters of a call to the API come back.
    pub(super) async fn respond_or_collect(
        &self,
        live: &Live,
        head: &Head<'_>,
        call: &ApiCall<'_, '_>,
        body: &mut RequestBody,
        record: &mut RequestRecord,
    ) -> Result<Result<Response<ResponseBody>, Collected>, Failure> {
        let method = head.parts.method.as_str().as_bytes();
        let found = live.authorizer.operations.find(call.path, method);
        // A call to the API that is only observed goes on, whatever its head has.
        let is_enforced = found.map_or(true, |found| live.authorizer.is_enforced(&found));
        let responding = token(live, None, head, (body, is_enforced), record);
        let responded = self.deciding(responding).await??;
        Ok(match responded {
            TokenOutcome::Responded(response) => {
                Ok(own_response(response, &head.parts.method, record))
            }
            TokenOutcome::NotTokenCall(collected) => Err(collected),
        })
    }

    /// Responds to a request that does not go to the API.
    pub(super) async fn respond_itself(
        &self,
        live: &Live,
        target: Route<'_, '_>,
        head: &Head<'_>,
        body: RequestBody,
        record: &mut RequestRecord,
    ) -> Result<Response<ResponseBody>, Failure> {
        let parts = head.parts;
        match target {
            // Somebody has typed the address of the token endpoint.
            Route::Token(None)
                if head.target.query.is_none()
                    && !parts.headers.contains_key(header::AUTHORIZATION)
                    && parts.headers.contains_key(&SEC_FETCH_MODE)
                    && respond::is_navigation(&parts.method, &parts.headers) =>
            {
                page(live, Page::Home, head, body, record).await
            }
            Route::Token(named) => {
                let mut body = body;
                let responding = token(live, named, head, (&mut body, true), record);
                let responded = self.deciding(responding).await??;
                match responded {
                    TokenOutcome::Responded(response) => {
                        Ok(own_response(response, &parts.method, record))
                    }
                    TokenOutcome::NotTokenCall(_) => Err(route::RouteRejection::ModeNotOnce.into()),
                }
            }
            Route::JwkSet => {
                record.served = Served::Page;
                let set = jwk_set(live).ok_or(route::RouteRejection::NotFound(None))?;
                Ok(own_response(set, &parts.method, record))
            }
            Route::Page(page) => {
                let responding = self::page(live, page, head, body, record);
                self.deciding(responding).await?
            }
            Route::Api(_) | Route::TokenOrApi(_) => {
                Err(route::RouteRejection::NotFound(None).into())
            }
        }
    }
}

/// Responds to a token call, as [`Endpoints::token`](crate::provider::endpoints::Endpoints::token) does.
async fn token(
    live: &Live,
    named: Option<TokenCall>,
    head: &Head<'_>,
    body: (&mut RequestBody, bool),
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
    page: Page,
    head: &Head<'_>,
    mut body: RequestBody,
    record: &mut RequestRecord,
) -> Result<Response<ResponseBody>, Failure> {
    record.served = Served::Page;
    let pages = &live.authorizer.pages;
    let page = pages.respond(&live.route, page, head, &mut body);
    Ok(own_response(page.await?, &head.parts.method, record))
}

/// A response of this program as HTTP, and in the record.
fn own_response(
    mut response: OwnResponse,
    method: &Method,
    record: &mut RequestRecord,
) -> Response<ResponseBody> {
    (record.verdict, record.status) = (response.verdict, response.status);
    if response.status >= 400 {
        let id = record.request_id.as_str().to_owned();
        response.fields.push((X_REQUEST_ID.as_str(), id));
    }
    response.into_response(method)
}
