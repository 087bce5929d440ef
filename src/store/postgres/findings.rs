//! Settings of the server that lose what was acknowledged.

use super::tx::PostgresTx;
use crate::store::{StoreError, sql::Tx as _};

impl PostgresTx {
    /// Settings of the server that lose what was acknowledged.
    pub(super) async fn findings(&mut self) -> Result<Vec<String>, StoreError> {
        let mut findings = Vec::new();
        let settings = "SELECT name, setting AS value FROM pg_settings
             WHERE name IN ('synchronous_commit', 'fsync', 'full_page_writes') ORDER BY name";
        let settings = self.rows(settings, &[], |row, _| {
            Ok((row.text("name")?, row.text("value")?))
        });
        for (name, value) in settings.await? {
            let loses = match (name.as_deref(), value.as_deref()) {
                (Some("synchronous_commit"), Some("off")) => {
                    "the server acknowledges before it has written, so its crash revives a used token or a revoked one"
                }
                (Some("fsync"), Some("off")) => "a power loss can destroy the whole database",
                (Some("full_page_writes"), Some("off")) => {
                    "a power loss can damage pages of the database"
                }
                _ => continue,
            };
            let name = name.unwrap_or_default();
            findings.push(format!("{name} is off: {loses}; set {name} = on"));
        }
        // A write can only reach the primary; this is true while a failover is under way.
        let standby = "SELECT 1 WHERE pg_is_in_recovery()";
        if self.has_row(standby, &[]).await? {
            findings.push(
                "the server is a standby, which takes no writes; name the primary, or all hosts"
                    .to_owned(),
            );
        }
        Ok(findings)
    }
}
