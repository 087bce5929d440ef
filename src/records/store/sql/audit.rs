//! The audit records of operators' acts.

use super::{LIST, Store, WRITE};
use crate::{
    base::clock::UnixTime,
    records::store::{
        Result,
        port::{AuditEntry, AuditFilter, Change},
        seal::Seal,
        value::{ColumnType as _, Row, Value},
    },
    telemetry::audit::CommandRecord,
};

impl Store {
    /// Keeps the record of an act at `now`, and reports it to all that follow the feed.
    pub async fn record_command(&self, now: UnixTime, record: &CommandRecord) -> Result<()> {
        let text = record.to_text();
        self.run("record_command", WRITE, async |tx| {
            let columns = vec![
                ("id", record.id.write()?),
                ("at", now.into()),
                ("event", record.event.write()?),
                ("actor", record.actor.by.write()?),
                ("consumer", record.consumer.write()?),
                ("user", record.user.write()?),
                ("record", text.write()?),
            ];
            tx.insert("audit", columns, "ON CONFLICT (id) DO NOTHING")
                .await?;
            tx.changed(Change::Command(text.clone()));
            Ok(())
        })
        .await
    }

    /// Lists the records of a filter, the newest first, before the position `before`, at most `limit`. A record that cannot be read is
    /// left out.
    pub async fn audit_records(
        &self,
        filter: &AuditFilter,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>> {
        let (mut condition, mut params) = ("true".to_owned(), Vec::<Value>::new());
        let names = [
            ("consumer", &filter.consumer),
            ("\"user\"", &filter.user),
            ("actor", &filter.actor),
            ("event", &filter.event),
        ];
        for (column, value) in names {
            if let Some(value) = value {
                params.push(value.write()?);
                condition += &format!(" AND {column} = ${}", params.len());
            }
        }
        if let Some(position) = before {
            params.push(position.into());
            condition += &format!(" AND position < ${}", params.len());
        }
        params.push(i64::from(limit).into());
        let list = format!(
            "SELECT position, at, record FROM countersign.audit WHERE {condition} ORDER BY position DESC LIMIT ${}",
            params.len()
        );
        let read = |row: &Row, _: &Seal| {
            let record: String = row.get("record")?;
            let (position, at) = (row.get("position")?, row.get("at")?);
            Ok(serde_json::from_str(&record).ok().map(|record| AuditEntry {
                position,
                at,
                record,
            }))
        };
        let found = self.run("audit_records", LIST, async |tx| {
            tx.rows::<Option<AuditEntry>>(&list, &params, read).await
        });
        Ok(found.await?.into_iter().flatten().collect())
    }
}
