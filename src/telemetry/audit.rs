//! Audit records of commands, which every `serve` logs as well.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The act of a command and the account that ran it. The feed of changes brings it to every `serve` on the store, and each
/// logs it; copies of one record have one id. It holds no secret, and only the part of a token that a log may show.
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
    /// How many records the command has added, left unchanged, and so on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
    /// The account that ran the command.
    pub os_user: String,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
}

impl CommandRecord {
    /// A record of `event` with what the command counted, under the names that [`Self::log`] knows.
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

    /// Logs what the feed held.
    pub fn log_text(text: &str) {
        match serde_json::from_str::<Self>(text) {
            Ok(record) => record.log(),
            Err(error) => tracing::warn!(%error, "an audit record of a command cannot be read"),
        }
    }

    /// Logs the record.
    pub fn log(&self) {
        let count = |name: &str| self.counts.get(name).copied();
        // Those that the store holds are checked names. What the machine says of itself may be anything.
        tracing::info!(
            target: "audit", event = self.event.as_str(), by = "command",
            consumer = self.consumer.as_ref().map(tracing::field::display),
            user = self.user.as_ref().map(tracing::field::display),
            token = self.token.as_ref().map(tracing::field::display),
            added = count("added"), unchanged = count("unchanged"), revoked = count("revoked"),
            not_restored = count("not_restored"), rekeyed = count("rekeyed"), unopened = count("unopened"),
            os_user = self.os_user.as_str(), host = self.host.as_str(), pid = self.pid, audit_id = %self.id,
        );
    }
}
