//! Audit records of operators' acts, by a command, the admin API or the console, and of upkeep. Every `serve` on the store
//! logs them.

use std::collections::BTreeMap;

use rustix::system::uname;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An act and its actor. The feed of changes brings it to every `serve` on the store, and each logs it; copies of one
/// record have one id. It holds no secret, and only the part of a token that a log may show.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// Random.
    pub id: String,
    /// The act, `event` in the log.
    pub event: String,
    /// The consumer concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    /// The user concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The beginning of the token concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The names of the members of a record that have changed, separated by spaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<String>,
    /// The members that have changed, each with its value before and after. It is not in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<String>,
    /// The numbers of records that were added, left unchanged, and so on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
    /// The actor.
    #[serde(flatten)]
    pub actor: Actor,
}

/// The actor and the tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// The tool: the name of a `Tool` of `operator/manage/audit.rs`.
    pub by: String,
    /// The account that ran the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_user: Option<String>,
    /// The kind of the admin token, `write`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_token: Option<String>,
    /// The name of the admin token, if its file has names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_name: Option<String>,
    /// The address that the request came from; `None` for a Unix socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
}

impl Actor {
    /// This process, which runs the tool `by`.
    pub fn of_process(by: &str) -> Self {
        Self {
            by: by.to_owned(),
            host: uname().nodename().to_string_lossy().into_owned(),
            pid: std::process::id(),
            ..Self::default()
        }
    }
}

impl CommandRecord {
    /// A record of `event` with the counts of the command, under the names that [`Self::log`] knows.
    pub fn counting<const N: usize>(event: &str, counts: [(&str, u64); N]) -> Self {
        Self {
            event: event.to_owned(),
            counts: counts.map(|(name, count)| (name.to_owned(), count)).into(),
            ..Self::default()
        }
    }

    /// The record as the feed holds it.
    pub fn to_text(&self) -> String {
        // Strings and numbers under fixed names: all of them can be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Logs a record from the feed.
    pub fn log_text(text: &str) {
        match serde_json::from_str::<Self>(text) {
            Ok(record) => record.log(),
            Err(error) => tracing::warn!(%error, "an audit record cannot be read"),
        }
    }

    /// Logs the record.
    pub fn log(&self) {
        let count = |name: &str| self.counts.get(name).copied();
        let text = tracing::field::display::<&String>;
        let actor = &self.actor;
        // Names from the store have been checked. Names from the machine may contain anything.
        tracing::info!(
            target: "audit", event = self.event.as_str(), by = actor.by.as_str(),
            consumer = self.consumer.as_ref().map(text), user = self.user.as_ref().map(text),
            token = self.token.as_ref().map(text), members = self.members.as_deref(),
            added = count("added"), unchanged = count("unchanged"), changed = count("changed"), removed = count("removed"), revoked = count("revoked"),
            access_tokens = count("access_tokens"), request_tokens = count("request_tokens"), sessions = count("sessions"),
            not_restored = count("not_restored"), rekeyed = count("rekeyed"), unopened = count("unopened"),
            os_user = actor.os_user.as_deref(), admin_token = actor.admin_token.as_deref(), admin_name = actor.admin_name.as_deref(), address = actor.address.as_ref().map(text),
            host = actor.host.as_str(), pid = actor.pid, audit_id = %self.id,
        );
    }
}

/// A member or a setting with its value before and after.
pub fn changed(name: &str, before: &str, after: &str) -> String {
    format!("{name}: {before} → {after}")
}

/// A member of a record with its value before and after.
pub fn changed_value(name: &str, before: &Value, after: &Value) -> String {
    changed(name, &shown(before), &shown(after))
}

/// The value of a member in an audit record, with at most this many characters.
fn shown(value: &Value) -> String {
    const MOST: usize = 200;

    let text = match value {
        Value::Null => String::new(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => Vec::from_iter(items.iter().map(shown)).join(", "),
        other => other.to_string(),
    };
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None if text.is_empty() => "none".to_owned(),
        None => text,
    }
}
