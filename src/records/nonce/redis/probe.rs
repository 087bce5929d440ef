//! Settings of Redis by which it loses nonces that it has acknowledged.

use std::collections::HashMap;

use redis::cmd;

use super::{link::Link, script::read};
use crate::records::values::Result;

/// Reads the settings, and returns a warning for each that loses nonces.
pub(super) async fn findings(link: &Link) -> Result<Vec<String>> {
    let mut command = cmd("CONFIG");
    command.arg("GET").arg(&["appendonly", "appendfsync"]);
    let Ok(settings) = link.call(command).await else {
        // Services that run Redis for others forbid the command.
        return Ok(vec![
            "Redis does not let this user read its settings; make sure that appendonly is yes, and appendfsync always or everysec".to_owned(),
        ]);
    };
    let settings: HashMap<String, String> = read(settings)?;
    let is = |name: &str, value: &str| settings.get(name).is_some_and(|found| found == value);
    let mut warnings = Vec::new();
    if !is("appendonly", "yes") {
        warnings.push(
            "Redis has appendonly no: a restart loses used nonces, and signed requests get 503 until their timestamps have left the window; set appendonly yes".to_owned(),
        );
    } else if is("appendfsync", "no") {
        warnings.push(
            "Redis has appendfsync no: a power loss loses the nonces that the system has not written yet; set appendfsync always or everysec".to_owned(),
        );
    }
    Ok(warnings)
}
