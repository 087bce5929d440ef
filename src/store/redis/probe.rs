//! Settings of Redis with which it loses what it has acknowledged.

use std::collections::HashMap;

use redis::cmd;

use super::{link::Link, step};
use crate::store::StoreError;

/// What is lost by each setting.
pub(super) struct Losses {
    /// By a restart without the file.
    restart: &'static str,
    /// By a power loss.
    power: &'static str,
    /// When memory is full.
    memory: &'static str,
}

/// Of a store.
pub(super) const RECORDS: Losses = Losses {
    restart: "a restart loses what was written since the last snapshot, revocations too",
    power: "a power loss loses what the system has not written yet",
    memory: "it deletes records, revocations too",
};

/// Of nonces.
pub(super) const NONCES: Losses = Losses {
    restart: "a restart loses used nonces, and signed requests get 503 until their timestamps have left the window",
    power: "a power loss loses the nonces that the system has not written yet",
    memory: "it deletes used nonces, and their requests can be replayed",
};

/// Reads the settings and says what is unwise.
pub(super) async fn findings(link: &Link, losses: &Losses) -> Result<Vec<String>, StoreError> {
    let mut command = cmd("CONFIG");
    command
        .arg("GET")
        .arg(&["appendonly", "appendfsync", "maxmemory", "maxmemory-policy"]);
    let Ok(settings) = link.call(command).await else {
        // Services that run Redis for others forbid the command.
        return Ok(vec![
            "Redis does not let this user read its settings; see to it that appendonly is yes, appendfsync always or everysec, and maxmemory-policy noeviction".to_owned(),
        ]);
    };
    let settings: HashMap<String, String> = step::read(settings)?;
    let is = |name: &str, value: &str| settings.get(name).is_some_and(|found| found == value);
    let Losses {
        restart,
        power,
        memory,
    } = losses;
    let mut warnings = Vec::new();
    if !is("appendonly", "yes") {
        warnings.push(format!(
            "Redis has appendonly no: {restart}; set appendonly yes"
        ));
    } else if is("appendfsync", "no") {
        warnings.push(format!(
            "Redis has appendfsync no: {power}; set appendfsync always or everysec"
        ));
    }
    if let Some(policy) = settings
        .get("maxmemory-policy")
        .filter(|policy| *policy != "noeviction")
    {
        warnings.push(format!(
            "Redis has maxmemory-policy {policy}: when its memory is full {memory}; set noeviction"
        ));
    }
    Ok(warnings)
}
