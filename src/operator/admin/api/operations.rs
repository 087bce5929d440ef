//! The operations of the API: this table routes and checks requests, and a test writes the OpenAPI document from it.

#[cfg(test)]
mod tests;

use std::pin::Pin;

use http::Method;
use percent_encoding::percent_decode_str;

use super::{ApiResult, Call};

/// The OpenAPI 3.1 document.
pub(super) const DOCUMENT: &str = include_str!("openapi.json");

/// An operation: what a method does on a path.
pub(super) struct ApiOperation {
    /// The method; HEAD is served as GET.
    pub(super) method: Method,
    /// The path as OpenAPI writes it, with at most one variable segment.
    pub(super) path: &'static str,
    /// Its `operationId`.
    pub(super) id: &'static str,
    /// The function that carries it out.
    pub(super) action: Action,
    /// A short description.
    pub(super) summary: &'static str,
    /// The names of its query parameters.
    pub(super) query: &'static [&'static str],
    /// The schema of its body.
    pub(super) body: Option<&'static str>,
    /// The status of its success, and the schema of that response.
    pub(super) success: (u16, Option<&'static str>),
    /// The statuses of other responses than 401, 403, 421, 422, 429, 500 and 503.
    pub(super) failures: &'static [u16],
}

/// Carries out a call.
type Action = for<'c> fn(&'c mut Call<'_>) -> Pin<Box<dyn Future<Output = ApiResult> + 'c>>;

const fn operation(
    method: Method,
    path: &'static str,
    id: &'static str,
    action: Action,
) -> ApiOperation {
    ApiOperation {
        method,
        path,
        id,
        action,
        summary: "",
        query: &[],
        body: None,
        success: (204, None),
        failures: &[],
    }
}

impl ApiOperation {
    const fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    const fn query(mut self, names: &'static [&'static str]) -> Self {
        self.query = names;
        self
    }

    const fn takes(mut self, schema: &'static str) -> Self {
        self.body = Some(schema);
        self
    }

    const fn shows(mut self, status: u16, schema: &'static str) -> Self {
        self.success = (status, Some(schema));
        self
    }

    const fn fails(mut self, statuses: &'static [u16]) -> Self {
        self.failures = statuses;
        self
    }

    /// Whether it needs the token that writes.
    pub(super) fn writes(&self) -> bool {
        self.method != Method::GET
    }

    /// The variable segment of a path that matches this operation, decoded; empty if there is none.
    pub(super) fn segment(&self, path: &str) -> Option<String> {
        let Some((before, rest)) = self.path.split_once('{') else {
            return (self.path == path).then(String::new);
        };
        let after = rest.split_once('}').map_or("", |(_, after)| after);
        let segment = path.strip_prefix(before)?.strip_suffix(after)?;
        if segment.is_empty() || segment.contains('/') {
            return None;
        }
        let decoded = percent_decode_str(segment).decode_utf8();
        // Bytes that are not UTF-8 name no record.
        Some(decoded.map_or_else(|_| "\u{fffd}".to_owned(), Into::into))
    }
}

/// The value of `Allow` where a path has these operations.
pub(super) fn allow(operations: &[(&ApiOperation, String)]) -> String {
    let methods = operations.iter().map(|(one, _)| one.method.as_str());
    let methods: Vec<&str> = methods.collect();
    methods.join(", ").replacen("GET", "GET, HEAD", 1)
}

/// The bodies that may be left out.
pub(super) const OPTIONAL: [&str; 2] = ["Approve", "Rotation"];

/// The operation that a token with the scope `lookup` may call.
pub(super) const FORGET: &str = "forgetLookup";

const PAGE: [&str; 2] = ["limit", "cursor"];

/// Every operation; those of one path follow each other.
pub(super) static OPERATIONS: [ApiOperation; 32] = [
    operation(Method::GET, "/v1/openapi.json", "describeApi", |call| Box::pin(call.describe_api()))
        .summary("Describes this API")
        .shows(200, "Document"),
    operation(Method::GET, "/v1/consumers", "listConsumers", |call| Box::pin(call.list_consumers()))
        .summary("Lists consumers by their keys")
        .query(&["q", "enabled", "unused_for", "signed_within", "contact", PAGE[0], PAGE[1]])
        .shows(200, "ConsumerPage"),
    operation(Method::POST, "/v1/consumers", "registerConsumer", |call| Box::pin(call.register_consumer()))
        .summary("Registers a consumer, and shows its secret this once")
        .takes("NewConsumer")
        .shows(201, "IssuedConsumer")
        .fails(&[409]),
    operation(Method::GET, "/v1/consumers/{key}", "showConsumer", |call| Box::pin(call.show_consumer()))
        .summary("Shows a consumer")
        .shows(200, "Consumer")
        .fails(&[404]),
    operation(Method::PATCH, "/v1/consumers/{key}", "changeConsumer", |call| Box::pin(call.change_consumer()))
        .summary("Changes a consumer by a JSON Merge Patch")
        .takes("ConsumerPatch")
        .shows(200, "Consumer")
        .fails(&[404, 409, 412]),
    operation(Method::DELETE, "/v1/consumers/{key}", "removeConsumer", |call| Box::pin(call.remove_consumer()))
        .summary("Removes a consumer with all its tokens; its key is never used again")
        .fails(&[404, 412]),
    operation(Method::POST, "/v1/consumers/{key}/secret", "rotateSecret", |call| Box::pin(call.rotate_secret()))
        .summary("Gives a consumer a new secret, and shows it this once")
        .takes("Rotation")
        .shows(200, "IssuedConsumer")
        .fails(&[404, 412]),
    operation(Method::DELETE, "/v1/consumers/{key}/secret/previous", "endGrace", |call| Box::pin(call.end_grace()))
        .summary("Ends the grace of the previous secret")
        .fails(&[404, 412]),
    operation(Method::POST, "/v1/consumers/{key}/link", "makeDeveloperLink", |call| Box::pin(call.make_developer_link()))
        .summary("Makes the link by which the developer of a consumer sees its rejected calls for 24 hours, and shows it this once; the one \
                  before it ends")
        .shows(201, "DeveloperLink")
        .fails(&[404, 409]),
    operation(Method::DELETE, "/v1/consumers/{key}/link", "revokeDeveloperLink", |call| Box::pin(call.revoke_developer_link()))
        .summary("Ends the link of the developer of a consumer")
        .fails(&[404]),
    operation(Method::GET, "/v1/registrations", "listRegistrations", |call| Box::pin(call.list_registrations()))
        .summary("Lists the consumers on which an operator has to decide, by their keys")
        .query(&PAGE)
        .shows(200, "ConsumerPage"),
    operation(Method::POST, "/v1/consumers/{key}/approve", "approveConsumer", |call| Box::pin(call.approve_consumer()))
        .summary("Enables a consumer that a user has asked for, or gives it the callbacks that the user asks for")
        .takes("Approve")
        .shows(200, "Consumer")
        .fails(&[404, 409, 412]),
    operation(Method::POST, "/v1/consumers/{key}/decline", "declineConsumer", |call| Box::pin(call.decline_consumer()))
        .summary("Declines what a user has asked for, with a sentence for the user")
        .takes("Decline")
        .shows(200, "Consumer")
        .fails(&[404, 409, 412]),
    operation(Method::GET, "/v1/users", "listUsers", |call| Box::pin(call.list_users()))
        .summary("Lists users by their ids")
        .query(&["q", "enabled", PAGE[0], PAGE[1]])
        .shows(200, "UserPage"),
    operation(Method::POST, "/v1/users", "addUser", |call| Box::pin(call.add_user()))
        .summary("Makes an account, with or without a password")
        .takes("NewUser")
        .shows(201, "User")
        .fails(&[409]),
    operation(Method::GET, "/v1/users/{id}", "showUser", |call| Box::pin(call.show_user()))
        .summary("Shows a user")
        .shows(200, "User")
        .fails(&[404]),
    operation(Method::PATCH, "/v1/users/{id}", "changeUser", |call| Box::pin(call.change_user()))
        .summary("Changes a user by a JSON Merge Patch; disabling ends sessions and access tokens for good")
        .takes("UserPatch")
        .shows(200, "User")
        .fails(&[404, 409, 412]),
    operation(Method::DELETE, "/v1/users/{id}", "removeUser", |call| Box::pin(call.remove_user()))
        .summary("Removes a user with sessions and access tokens; the id is never used again")
        .fails(&[404, 412]),
    operation(Method::PUT, "/v1/users/{id}/password", "setPassword", |call| Box::pin(call.set_password()))
        .summary("Sets a password and ends the user's sessions")
        .takes("NewPassword")
        .fails(&[404, 412]),
    operation(Method::GET, "/v1/users/{id}/sessions", "listSessions", |call| Box::pin(call.list_sessions()))
        .summary("Lists the open sessions of a user, the newest first")
        .query(&PAGE)
        .shows(200, "SessionPage")
        .fails(&[404]),
    operation(Method::DELETE, "/v1/users/{id}/sessions", "endSessions", |call| Box::pin(call.end_sessions()))
        .summary("Ends all sessions of a user")
        .fails(&[404, 412]),
    operation(Method::DELETE, "/v1/users/{id}/login-pauses", "endLoginPauses", |call| Box::pin(call.end_login_pauses()))
        .summary("Ends the pauses after failed logins of a user")
        .fails(&[404]),
    operation(Method::GET, "/v1/tokens", "listTokens", |call| Box::pin(call.list_tokens()))
        .summary("Lists access tokens that are not revoked, the longest unused first")
        .query(&["consumer", "user", "unused_for", "ends_within", PAGE[0], PAGE[1]])
        .shows(200, "TokenPage"),
    operation(Method::POST, "/v1/tokens", "issueToken", |call| Box::pin(call.issue_token()))
        .summary("Issues an access token without the browser flow, and shows its secret this once")
        .takes("NewToken")
        .shows(201, "IssuedToken")
        .fails(&[404, 409]),
    operation(Method::DELETE, "/v1/tokens", "revokeTokens", |call| Box::pin(call.revoke_tokens()))
        .summary("Revokes the access tokens of a consumer, of a user, or unused ones; needs one of these at least")
        .query(&["consumer", "user", "unused_for"])
        .shows(200, "Revoked"),
    operation(Method::GET, "/v1/tokens/{token}", "showToken", |call| Box::pin(call.show_token()))
        .summary("Shows an access token, named whole or by its first 8 characters")
        .shows(200, "Token")
        .fails(&[404, 409]),
    operation(Method::DELETE, "/v1/tokens/{token}", "revokeToken", |call| Box::pin(call.revoke_token()))
        .summary("Revokes an access token for good")
        .fails(&[404, 409, 412]),
    operation(Method::POST, "/v1/lookup/forget", FORGET, |call| Box::pin(call.forget_lookup()))
        .summary("Forgets what was read about a consumer or an access token of store.lookup, in every process within a second")
        .takes("ChangedRecord"),
    operation(Method::GET, "/v1/rejections", "listRejections", |call| Box::pin(call.list_rejections()))
        .summary("Lists the last rejected or failed calls of this process, the newest first: 20 of each registered consumer, \
                  1,000 of other callers, and 1,000 faults")
        .query(&PAGE)
        .shows(200, "RejectionPage"),
    operation(Method::GET, "/v1/rejections/summary", "summarizeRejections", |call| Box::pin(call.summarize_rejections()))
        .summary("Counts the rejected calls of each registered consumer by reason, since this process started, and says what to do; \
                  or those of one consumer, registered or not")
        .query(&["consumer", PAGE[0], PAGE[1]])
        .shows(200, "RejectionSummaryPage"),
    operation(Method::GET, "/v1/audit", "listAudit", |call| Box::pin(call.list_audit()))
        .summary("Lists what operators did, the newest first, for the time of audit.keep")
        .query(&["consumer", "user", "actor", "kind", "limit", "cursor"])
        .shows(200, "AuditPage"),
    operation(Method::POST, "/v1/explain", "explain", |call| Box::pin(call.explain()))
        .summary("Explains how a request has to be signed, and what is wrong with its signature")
        .takes("RawRequest")
        .shows(200, "Explanation"),
];
