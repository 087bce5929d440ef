//! The admin API: JSON under `/v1/`, over the use cases of [`crate::operator::manage`].

mod input;
mod openapi;
mod operations;
mod problem;
mod records;

use aws_lc_rs::digest::{SHA256, digest};
use http::{Method, Request, header};
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::{
    input::{Page, Query},
    operations::{Act, OPERATIONS, Operation, allow},
    problem::ApiError,
};
use super::{Admin, Backend, tokens::TokenKind};
use crate::{
    base::{
        fields::{all, list},
        peer::Peer,
    },
    oauth::percent,
    operator::manage::Actor,
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

async fn answer(
    admin: &Admin,
    backend: &Backend,
    request: &mut Request<RequestBody>,
) -> Result<OwnResponse, ApiError> {
    let peer = request.body().caller().peer;
    let gate = admin.control.gate();
    let kind = gate.authenticate(&backend.tokens, request.headers(), peer.address)?;
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
    let place = found.iter().position(|(one, _)| one.method == method);
    let place = place.ok_or_else(|| ApiError::Method(allow(&found)))?;
    let (operation, segment) = found.swap_remove(place);
    if operation.writes() && kind == TokenKind::Read {
        return Err(ApiError::ReadOnly);
    }
    let query = Query::read(request.uri().query().unwrap_or_default(), operation.query)?;
    let body = input::body(request, operation).await?;
    let conditions: Vec<String> = all(request.headers(), &header::IF_MATCH)
        .flat_map(list)
        .map(|tag| String::from_utf8_lossy(tag).into_owned())
        .collect();
    let call = Call {
        admin,
        backend,
        actor: actor(kind, peer),
        segment,
        query,
        body,
        conditions: request
            .headers()
            .contains_key(header::IF_MATCH)
            .then_some(conditions),
    };
    call.act(operation).await
}

/// The operator who sent a request, for the audit record.
fn actor(kind: TokenKind, peer: Peer) -> Actor {
    let host = rustix::system::uname();
    Actor {
        by: "api".to_owned(),
        admin_token: Some(<&str>::from(kind).to_owned()),
        address: peer
            .address
            .map(|address| address.to_canonical().to_string()),
        host: host.nodename().to_string_lossy().into_owned(),
        pid: std::process::id(),
        ..Actor::default()
    }
}

/// A permitted request, with all of its input.
struct Call<'a> {
    admin: &'a Admin,
    backend: &'a Backend,
    actor: Actor,
    /// The variable part of the path, decoded; empty if it has none.
    segment: String,
    query: Query,
    /// The members of the body; empty without one.
    body: Map<String, Value>,
    /// The entity tags of `If-Match`; `None` without that field.
    conditions: Option<Vec<String>>,
}

impl Call<'_> {
    async fn act(mut self, operation: &Operation) -> Result<OwnResponse, ApiError> {
        match operation.act {
            Act::ListConsumers => self.list_consumers().await,
            Act::RegisterConsumer => self.register_consumer().await,
            Act::ShowConsumer => self.show_consumer().await,
            Act::ChangeConsumer => self.change_consumer().await,
            Act::RemoveConsumer => self.remove_consumer().await,
            Act::RotateSecret => self.rotate_secret().await,
            Act::EndGrace => self.end_grace().await,
            Act::ListUsers => self.list_users().await,
            Act::AddUser => self.add_user().await,
            Act::ShowUser => self.show_user().await,
            Act::ChangeUser => self.change_user().await,
            Act::RemoveUser => self.remove_user().await,
            Act::SetPassword => self.set_password().await,
            Act::ListSessions => self.list_sessions().await,
            Act::EndSessions => self.end_sessions().await,
            Act::ListTokens => self.list_tokens().await,
            Act::IssueToken => self.issue_token().await,
            Act::RevokeTokens => self.revoke_tokens().await,
            Act::ShowToken => self.show_token().await,
            Act::RevokeToken => self.revoke_token().await,
            Act::ListRejections => self.list_rejections(),
            Act::Explain => self.explain().await,
            Act::DescribeApi => Ok(written(200, openapi::document())),
        }
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
        members.remove("last_used_at");
    }
    let hash = digest(&SHA256, members.to_string().as_bytes());
    let hexadecimal = hash.as_ref().iter().take(16);
    let hexadecimal: String = hexadecimal.map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hexadecimal}\"")
}

/// A response with this body.
fn written(status: u16, body: impl Serialize) -> OwnResponse {
    let body = json!(body).to_string();
    OwnResponse::new(status, "application/json", body, Verdict::Page).never_stored()
}

/// The response to a change that leaves nothing to show.
fn done() -> OwnResponse {
    OwnResponse {
        status: 204,
        fields: Vec::new(),
        body: bytes::Bytes::new(),
        verdict: Verdict::Page,
    }
    .never_stored()
}

/// The place of a record.
fn place(collection: &str, name: &str) -> String {
    format!("/v1/{collection}/{}", percent::encode(name.as_bytes()))
}

/// A page of a list; `next` is the cursor after a record.
fn paged<T>(
    mut records: Vec<T>,
    page: Page<'_>,
    view: impl Fn(&T) -> Value,
    next: impl Fn(&T) -> String,
) -> OwnResponse {
    // One more than asked for was read.
    let has_more = records.len() > page.limit as usize;
    records.truncate(page.limit as usize);
    let next = records.last().filter(|_| has_more).map(next);
    let items: Vec<Value> = records.iter().map(view).collect();
    written(200, json!({ "items": items, "next": next }))
}
