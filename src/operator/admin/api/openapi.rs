//! The OpenAPI 3.1 document, from the table of operations and the types that they read and write.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use utoipa::PartialSchema;

use super::{
    operations::{Act, OPERATIONS, OPTIONAL, Operation},
    problem::Problem,
    records::{NewPassword, NewToken, RawRequest, Revoked, Rotation},
};
use crate::{
    base::{
        clock::UnixTime,
        names::{ConsumerKey, Permission, UserId},
    },
    oauth::{Deviation, Pinned},
    operator::{
        explain::View,
        manage::{InvalidInput, Kind, fields},
    },
    provider::issue::registration::MAX_SECRET_BYTES,
    records::store::record::{AccessToken, BodyHash, Consumer, Dialect, Session, User},
    telemetry::rejections::Rejection,
    wire::web_page::MAX_WEB_PAGE_BYTES,
};

/// The document.
pub(super) fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
        let mut paths = Map::new();
        for operation in &OPERATIONS {
            let path = paths
                .entry(operation.path)
                .or_insert_with(|| path(operation.path));
            path[operation.method.as_str().to_lowercase()] = described(operation);
        }
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "countersign admin API",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Manages consumers, users and access tokens. A change is an audit record, and takes effect \
                    within a second on every replica. A field If-Match with the ETag of a record makes a change conditional (412).",
            },
            "security": [{ "token": [] }],
            "paths": paths,
            "components": {
                "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
                "schemas": schemas(),
            },
        })
    });
    &DOCUMENT
}

/// The common part of all operations of a path: its variable segment.
fn path(path: &str) -> Value {
    let Some((_, name)) = path.split_once('{') else {
        return json!({});
    };
    let name = name.split('}').next().unwrap_or_default();
    let schema = match name {
        "key" => reference("ConsumerKey"),
        "id" => reference("UserId"),
        _ => json!({ "type": "string", "pattern": "^[!-~]{1,255}$" }),
    };
    json!({ "parameters": [{ "name": name, "in": "path", "required": true, "schema": schema }] })
}

fn described(operation: &Operation) -> Value {
    let path = operation.path;
    let tag = path.split('/').nth(2).unwrap_or_default();
    let parameters = operation.query.iter().map(|name| {
        let schema = query(path, name);
        json!({ "name": name, "in": "query", "schema": schema })
    });
    let parameters: Vec<Value> = match operation.act {
        Act::RevokeTokens => vec![at_least_one(path, operation.query)],
        _ => parameters.collect(),
    };
    let (status, shown) = operation.success;
    let mut success = json!({ "description": operation.summary });
    if let Some(shown) = shown {
        success["content"] = json!({ "application/json": { "schema": reference(shown) } });
    }
    let of_body: &[u16] = match operation.body {
        Some(_) => &[408, 413, 415],
        None => &[],
    };
    let of_write: &[u16] = if operation.writes() { &[403] } else { &[] };
    let always = [401, 421, 422, 429, 500, 503];
    let failures = always
        .iter()
        .chain(operation.failures)
        .chain(of_body)
        .chain(of_write);
    let mut responses = Map::from_iter([(status.to_string(), success)]);
    responses.extend(failures.map(|status| (status.to_string(), failure(*status))));
    let mut described = json!({
        "operationId": <&str>::from(operation.act),
        "tags": [tag.trim_end_matches(".json")],
        "summary": operation.summary,
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(body) = operation.body {
        let content = json!({ "schema": reference(body) });
        let kind = match operation.method.as_str() {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let content = Map::from_iter([(kind.to_owned(), content)]);
        described["requestBody"] = json!({ "required": body != OPTIONAL, "content": content });
    }
    described
}

fn failure(status: u16) -> Value {
    let description = match status {
        401 => "The token is missing or wrong.",
        403 => "The token can only read.",
        404 => "There is no such record.",
        408 => "The body did not arrive in time.",
        409 => "The name is taken, or the state of a record forbids it.",
        412 => "The record is not the one of If-Match.",
        413 => "The body is larger than 64 KiB.",
        415 => "The body is not JSON.",
        421 => "The Host is not one of the listener.",
        422 => "The input is invalid; errors says where.",
        429 => "Too many wrong tokens came from this address.",
        503 => "The store is unavailable.",
        _ => "A fault of countersign, which its log describes.",
    };
    let schema = reference("Problem");
    json!({ "description": description, "content": { "application/problem+json": { "schema": schema } } })
}

fn query(path: &str, name: &str) -> Value {
    match name {
        "limit" => json!({ "type": "integer", "minimum": 1, "maximum": 1000, "default": 100 }),
        "enabled" => json!({ "type": "boolean" }),
        "unused_for" => duration(
            "Only those that were registered or issued, and last used, at least this long ago, such as 90d.",
        ),
        "consumer" => reference("ConsumerKey"),
        "user" => reference("UserId"),
        "cursor" => match path {
            "/v1/consumers" => reference("ConsumerKey"),
            "/v1/users" => reference("UserId"),
            "/v1/tokens" => json!({ "type": "string", "pattern": "^[0-9]{1,18}\\.[!-~]{0,255}$" }),
            _ => json!({ "type": "string", "pattern": "^[0-9]{1,18}$" }),
        },
        _ => {
            json!({ "type": "string", "description": "Only those with this text in the key, the id, a name or the description." })
        }
    }
}

/// Query parameters that cannot all be left out: the members of one object.
fn at_least_one(path: &str, names: &[&str]) -> Value {
    let property = |name: &&str| {
        let mut schema = query(path, name);
        if *name == "unused_for" {
            let one_second = "^([1-9][0-9]{0,3}d|[1-9][0-9]{0,4}h|[1-9][0-9]{0,6}m|[1-9][0-9]{0,8}s|[1-9][0-9]{3,11}ms)$";
            schema["pattern"] = json!(one_second);
        }
        ((*name).to_owned(), schema)
    };
    let properties = names.iter().map(property);
    let schema = json!({
        "type": "object",
        "minProperties": 1,
        "properties": Map::from_iter(properties),
        "additionalProperties": false,
    });
    json!({ "name": "which", "in": "query", "required": true, "style": "form", "explode": true, "schema": schema })
}

fn duration(description: &str) -> Value {
    let pattern = "^([0-9]{1,4}d|[0-9]{1,5}h|[0-9]{1,7}m|[0-9]{1,9}s|[0-9]{1,12}ms)$";
    json!({ "type": "string", "pattern": pattern, "description": description })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// A reference or null.
fn optional(name: &str) -> Value {
    json!({ "oneOf": [{ "type": "null" }, reference(name)] })
}

fn of<T: PartialSchema>() -> Value {
    json!(T::schema())
}

/// The schema of an object with some other members; all are needed but those of `optional`.
fn object(base: Value, removed: &[&str], added: Value, optional: &[&str]) -> Value {
    let mut schema = base;
    if let (Some(members), Value::Object(added)) = (schema["properties"].as_object_mut(), added) {
        members.retain(|name, _| !removed.contains(&name.as_str()));
        members.extend(added);
        let needed = members
            .keys()
            .filter(|name| !optional.contains(&name.as_str()));
        schema["required"] = json!(Vec::from_iter(needed));
    }
    schema
}

/// The schema of an object that has no other members than it says.
fn closed(mut schema: Value, needed: &[&str]) -> Value {
    schema["required"] = json!(needed);
    if needed.is_empty()
        && let Some(schema) = schema.as_object_mut()
    {
        schema.remove("required");
    }
    schema["additionalProperties"] = json!(false);
    schema
}

/// A request as it goes over the wire, with its Host first.
const HTTP: &str = r"^[A-Z]{1,20} /[A-Za-z0-9/._~%?&=-]{0,2000} HTTP/1\.1\r?\nHost: [a-z][a-z0-9.-]{0,250}(:[1-9][0-9]{0,3})?\r?\n([A-Za-z][A-Za-z-]{0,60}: [ -~]{0,2000}\r?\n){0,90}\r?\n[\s\S]*$";

/// The pattern of web pages; names of hosts are in ASCII.
fn web_page() -> String {
    let label = "(?!xn--)[a-z]([a-z0-9-]{0,60}[a-z0-9])?";
    let host = format!(r"({label}(\.{label}){{0,6}}|127\.0\.0\.1|\[::1\])");
    format!(
        r"https?://{host}(:[1-9][0-9]{{0,3}})?(/[A-Za-z0-9_~-]{{1,60}}){{0,8}}/?(\?[A-Za-z0-9_~=&-]{{0,200}})?"
    )
}

/// The pattern of callbacks: web pages, addresses of applications, and oob.
fn callback() -> String {
    let others =
        "https?|ftp|wss?|javascript|data|file|blob|vbscript|about|filesystem|view-source|jar";
    let application = format!(
        r"(?!({others}):)[a-z][a-z0-9+.-]{{0,60}}:/(/[a-z][a-z0-9]{{0,60}})?(/[A-Za-z0-9_~-]{{1,60}}){{0,8}}"
    );
    format!("^(oob|{}|{application})$", web_page())
}

/// The pattern of RSA keys with the exponent 65537 in PEM files: lines of 64 characters, an odd modulus of the whole length.
fn rsa_public_key() -> String {
    let key = |first: &str, lines: u8, last: &str| {
        format!(r"{first}[g-z0-9+/][A-Za-z0-9+/]{{19}}\n([A-Za-z0-9+/]{{64}}\n){{{lines}}}{last}")
    };
    let keys = [
        key(
            "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA",
            5,
            "[A-Za-z0-9+/][Qw]IDAQAB",
        ),
        key(
            "MIIBojANBgkqhkiG9w0BAQEFAAOCAY8AMIIBigKCAYEA",
            7,
            "[A-Za-z0-9+/]{43}[BDFHJLNPRTVXZbdfhjlnprtvxz13579/]AgMBAAE=",
        ),
        key(
            "MIICIjANBgkqhkiG9w0BAQEFAAOCAg8AMIICCgKCAgEA",
            10,
            "[A-Za-z0-9+/]{22}[EMUcks08]CAwEAAQ==",
        ),
    ];
    let keys = keys.join("|");
    format!(r"^([\s\S]*\n)?-----BEGIN PUBLIC KEY-----\n({keys})\n-----END PUBLIC KEY-----[\s\S]*$")
}

fn page(item: &str) -> Value {
    json!({
        "type": "object",
        "required": ["items", "next"],
        "properties": {
            "items": { "type": "array", "items": reference(item) },
            "next": {
                "type": ["string", "null"],
                "description": "The cursor of what follows; null at the end.",
            },
        },
    })
}

fn schemas() -> Value {
    const READ_ONLY: [&str; 2] = ["created_at", "previous_secret_until"];
    // A name has no characters that are invisible or cannot be typed, and no white space at its ends.
    const HIDDEN: &str =
        r"\u0000-\u001f\u007f-\u009f\u00ad\u200b\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb";
    const SPACE: &str = r"\u0020\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000";
    let pattern = format!("^[^{HIDDEN}{SPACE}](?:[^{HIDDEN}]{{0,253}}[^{HIDDEN}{SPACE}])?$");
    let text = json!({ "type": "string", "pattern": pattern });
    let text_or_null = json!({ "type": ["string", "null"], "pattern": pattern });
    let secret = json!({ "type": "string", "minLength": 1 });
    let secret_or_null =
        json!({ "type": ["string", "null"], "minLength": 1, "maxLength": MAX_SECRET_BYTES });

    let consumer = object(
        of::<Consumer>(),
        &["rsa_public_key"],
        json!({
            "dialect": reference("Dialect"),
            "has_rsa_public_key": { "type": "boolean" },
            "last_used_at": optional("UnixTime"),
            "last_method": { "type": ["string", "null"] },
            "last_dialect": optional("Dialect"),
        }),
        &["last_used_at", "last_method", "last_dialect"],
    );
    let issued_consumer = object(
        consumer.clone(),
        &[],
        json!({ "secret": secret, "secret_base64": secret }),
        &[
            "last_used_at",
            "last_method",
            "last_dialect",
            "secret",
            "secret_base64",
        ],
    );
    let mut given = object(of::<Consumer>(), &READ_ONLY, json!({}), &[]);
    for field in fields() {
        let member = &mut given["properties"][&field.name];
        match (&*field.name, &field.kind) {
            ("callbacks", _) => {
                member["items"] =
                    json!({ "type": "string", "maxLength": 4096, "pattern": callback() });
            }
            ("website", _) => {
                member["pattern"] = json!(format!("^{}$", web_page()));
                member["maxLength"] = json!(MAX_WEB_PAGE_BYTES);
            }
            (_, Kind::File) => member["pattern"] = json!(rsa_public_key()),
            (_, Kind::Text) => member["pattern"] = json!(pattern),
            _ => {}
        }
        if matches!(field.kind, Kind::List | Kind::Flag) {
            // Removing it gives it the value of a new consumer.
            member["type"] = json!([member["type"], "null"]);
        }
    }
    let new = json!({ "key": optional("ConsumerKey"), "secret": secret_or_null });
    let mut new_consumer = object(given.clone(), &[], new, &[]);
    new_consumer["if"] =
        json!({ "properties": { "rsa_only": { "const": true } }, "required": ["rsa_only"] });
    new_consumer["then"] = json!({
        "properties": { "rsa_public_key": { "type": "string" } },
        "required": ["rsa_public_key"],
    });
    let consumer_patch = object(given, &["key"], json!({}), &[]);
    let names = json!({ "name": text, "display_name": text_or_null });
    let user = object(of::<User>(), &[], json!({}), &[]);
    let given = object(user.clone(), &READ_ONLY, names, &[]);
    let password = json!({ "type": ["string", "null"], "minLength": 1, "maxLength": 1024 });
    let new = json!({ "id": optional("UserId"), "password": password });
    let new_user = object(given.clone(), &[], new, &[]);
    let token = object(of::<AccessToken>(), &[], json!({}), &[]);
    let issued_token = object(token.clone(), &[], json!({ "token_secret": secret }), &[]);
    let mut grace = duration("How long the previous secret also verifies, such as 24h.");
    grace["type"] = json!(["string", "null"]);
    let rotation = object(
        of::<Rotation>(),
        &[],
        json!({ "grace": grace, "secret": secret_or_null }),
        &[],
    );
    let raw_request = object(
        of::<RawRequest>(),
        &[],
        json!({ "request": { "type": "string", "pattern": HTTP } }),
        &[],
    );
    json!({
        "ConsumerKey": of::<ConsumerKey>(),
        "UserId": of::<UserId>(),
        "Permission": of::<Permission>(),
        "UnixTime": of::<UnixTime>(),
        "Dialect": of::<Dialect>(),
        "Deviation": of::<Deviation>(),
        "Pinned": of::<Pinned>(),
        "BodyHash": of::<BodyHash>(),
        "Consumer": consumer,
        "IssuedConsumer": issued_consumer,
        "NewConsumer": closed(new_consumer, &["name"]),
        "ConsumerPatch": closed(consumer_patch, &[]),
        "ConsumerPage": page("Consumer"),
        "Rotation": closed(rotation, &[]),
        "User": user,
        "NewUser": closed(new_user, &["name"]),
        "UserPatch": closed(object(given, &["id"], json!({}), &[]), &[]),
        "UserPage": page("User"),
        "NewPassword": closed(of::<NewPassword>(), &["password"]),
        "OpenSession": of::<Session>(),
        "SessionPage": page("OpenSession"),
        "Token": token,
        "IssuedToken": issued_token,
        "NewToken": closed(of::<NewToken>(), &["consumer", "user"]),
        "TokenPage": page("Token"),
        "Rejection": of::<Rejection>(),
        "RejectionPage": page("Rejection"),
        "Revoked": of::<Revoked>(),
        "RawRequest": closed(raw_request, &["request"]),
        "Explanation": of::<View>(),
        "InvalidInput": of::<InvalidInput>(),
        "Problem": of::<Problem>(),
        "Document": { "type": "object" },
    })
}
