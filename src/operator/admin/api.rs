//! The admin API: JSON under `/v1/`, over the use cases of [`crate::operator::manage`].

mod input;
mod operations;
mod problem;
mod records;

use aws_lc_rs::digest::{SHA256, digest};
use http::{Method, Request, header};
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::{
    input::Query,
    operations::{DOCUMENT, FORGET, OPERATIONS, allow},
    problem::ApiError,
};
use super::{Admin, Backend, admin_actor, tokens::TokenKind};
use crate::{
    base::{
        network::http_fields::{all, list},
        text::hexadecimal::hexadecimal,
    },
    oauth::percent,
    operator::manage::{Operator, Tool},
    provider::respond::OwnResponse,
    telemetry::metrics::Verdict,
    wire::server::request::RequestBody,
};

/// Responds to a request under `/v1/`.
pub(super) async fn respond(
    admin: &Admin,
    backend: &Backend,
    request: &mut Request<RequestBody>,
) -> OwnResponse {
    match answer(admin, backend, request).await {
        Ok(response) => response,
        Err(error) => error.response(),
    }
}

async fn answer(admin: &Admin, backend: &Backend, request: &mut Request<RequestBody>) -> ApiResult {
    let peer = request.body().caller().peer;
    let guard = admin.control.token_guard();
    let holder = guard.authenticate(&backend.tokens, request.headers(), peer.address)?;
    let path = request.uri().path().to_owned();
    let found = OPERATIONS.iter();
    let found = found.filter_map(|operation| Some((operation, operation.segment(&path)?)));
    let mut found = Vec::from_iter(found);
    if found.is_empty() {
        return Err(ApiError::NotFound);
    }
    let method = match request.method() {
        &Method::HEAD => Method::GET,
        method => method.clone(),
    };
    let index = found.iter().position(|(one, _)| one.method == method);
    let index = index.ok_or_else(|| ApiError::Method(allow(&found)))?;
    let (operation, segment) = found.swap_remove(index);
    match holder.kind {
        TokenKind::Read if operation.writes() => return Err(ApiError::ReadOnly),
        TokenKind::Lookup if operation.id != FORGET => return Err(ApiError::LookupOnly),
        TokenKind::Write | TokenKind::Read | TokenKind::Lookup => {}
    }
    let query = Query::read(request.uri().query().unwrap_or_default(), operation.query)?;
    let body = input::body(request, operation).await?;
    let conditions: Vec<String> = all(request.headers(), &header::IF_MATCH)
        .flat_map(list)
        .map(|tag| String::from_utf8_lossy(tag).into_owned())
        .collect();
    let mut call = Call {
        admin,
        backend,
        operator: (backend.manage).operator(admin_actor(Tool::Api, &holder, peer.address)),
        segment,
        query,
        body,
        conditions: request
            .headers()
            .contains_key(header::IF_MATCH)
            .then_some(conditions),
    };
    (operation.action)(&mut call).await
}

/// The response to a call.
type ApiResult = Result<OwnResponse, ApiError>;

/// A permitted request, with all of its input.
struct Call<'a> {
    admin: &'a Admin,
    backend: &'a Backend,
    /// Changes records as the holder of the token.
    operator: Operator<'a>,
    /// The variable part of the path, decoded; empty if it has none.
    segment: String,
    query: Query,
    /// The members of the body; empty without one.
    body: Map<String, Value>,
    /// The entity tags of `If-Match`; `None` without that field.
    conditions: Option<Vec<String>>,
}

impl Call<'_> {
    #[expect(clippy::unused_async, reason = "as the other actions")]
    async fn describe_api(&self) -> ApiResult {
        Ok(json_text(200, DOCUMENT))
    }

    /// Whether a record with this tag is the one that the request is for.
    fn is_expected(&self, tag: &str) -> bool {
        let expects = |condition: &String| condition == "*" || condition == tag;
        let conditions = self.conditions.as_ref();
        conditions.is_none_or(|conditions| conditions.iter().any(expects))
    }
}

/// The entity tag of a record: a hash of the record as GET shows it, without its last use.
fn tag(record: &impl Serialize) -> String {
    let mut members = json!(record);
    if let Some(members) = members.as_object_mut() {
        for name in ["last_used_at", "last_used_from"] {
            members.remove(name);
        }
    }
    let hash = digest(&SHA256, members.to_string().as_bytes());
    format!("\"{}\"", hexadecimal(&hash.as_ref()[..16]))
}

/// A response with this body.
fn json_response(status: u16, body: impl Serialize) -> OwnResponse {
    json_text(status, json!(body).to_string())
}

fn json_text(status: u16, text: impl Into<bytes::Bytes>) -> OwnResponse {
    OwnResponse::new(status, "application/json", text, Verdict::Page).never_stored()
}

/// The response to a change that leaves nothing to show.
fn no_content() -> OwnResponse {
    OwnResponse::empty(204, Verdict::Page).never_stored()
}

/// The URL of a record.
fn record_url(collection: &str, name: &str) -> String {
    format!("/v1/{collection}/{}", percent::encode(name.as_bytes()))
}

/// A page of a list; `next` is the cursor after a record.
fn paged<T>(
    mut records: Vec<T>,
    limit: u32,
    view: impl Fn(&T) -> Value,
    next: impl Fn(&T) -> String,
) -> OwnResponse {
    // One more than asked for was read.
    let has_more = records.len() > limit as usize;
    records.truncate(limit as usize);
    let next = records.last().filter(|_| has_more).map(next);
    let items: Vec<Value> = records.iter().map(view).collect();
    json_response(200, json!({ "items": items, "next": next }))
}
