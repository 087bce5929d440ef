//! Records as operators see them. Their members are those of `--json`, in this order.
//!
//! Users and access tokens are seen as serde writes them, which is without their secrets.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    base::{clock::UnixTime, secret::Secret},
    records::values::record::{Consumer, ConsumerUse, Dialect},
    telemetry::calls::facts::Door,
};

/// The members that serde writes of a record.
pub fn members(record: &impl Serialize) -> Map<String, Value> {
    match json!(record) {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// A consumer; `default` is the dialect of one that was registered without.
pub fn consumer(consumer: &Consumer, default: Dialect) -> Map<String, Value> {
    let view = members(consumer)
        .into_iter()
        .map(|(name, value)| match &*name {
            "dialect" if value.is_null() => (name, json!(default)),
            "rsa_public_key" => ("has_rsa_public_key".to_owned(), json!(!value.is_null())),
            _ => (name, value),
        });
    view.collect()
}

/// Adds the last verified call of a consumer, of those by each door.
pub fn with_uses<'u>(
    mut members: Map<String, Value>,
    uses: impl Iterator<Item = &'u ConsumerUse> + Clone,
) -> Map<String, Value> {
    let used = uses.clone().max_by_key(|used| used.last_used_at);
    let mut signed = uses.filter(|used| used.door() == Door::Signature);
    let signed = signed.next().map(|used| used.last_used_at);
    for (name, value) in [
        ("last_used_at", json!(used.map(|used| used.last_used_at))),
        ("last_method", json!(used.map(|used| &used.method))),
        ("last_dialect", json!(used.map(|used| used.dialect))),
        ("last_signed_at", json!(signed)),
    ] {
        members.insert(name.to_owned(), value);
    }
    members
}

/// Adds the time at which the application of `store.lookup.url` had the record, if it is one of it.
pub fn with_lookup(
    mut members: Map<String, Value>,
    looked_up_at: Option<UnixTime>,
) -> Map<String, Value> {
    if let Some(at) = looked_up_at {
        members.insert("looked_up_at".to_owned(), json!(at));
    }
    members
}

/// Adds a secret after the first member: only where it has just been made or given, and to an export. One that is not
/// UTF-8 is written as base64 under another name, so that the base64 is not taken for the secret.
pub fn with_secret(
    mut members: Map<String, Value>,
    name: &str,
    secret: &Secret,
) -> Map<String, Value> {
    let (name, text) = match str::from_utf8(secret.expose()) {
        Ok(text) => (name.to_owned(), text.to_owned()),
        Err(_) => (format!("{name}_base64"), STANDARD.encode(secret.expose())),
    };
    members.shift_insert(1, name, text.into());
    members
}
