//! The audit records of operators' acts.

use super::{LIST, Store, WRITE, tx::filter::Condition};
use crate::{
    base::clock::UnixTime,
    records::values::{
        Result,
        seal::Seal,
        use_cases::{AuditEntry, AuditFilter, Change},
        value::{ColumnType as _, Row},
    },
    telemetry::audit::{Actor, CommandRecord},
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

    /// Lists the records of a filter, the newest first, before the position `before`, at most `limit`. Of a
    /// record that cannot be read, which another version may have written, there is what its columns say.
    pub async fn audit_records(
        &self,
        filter: &AuditFilter,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>> {
        let mut condition = Condition::new("true", Vec::new());
        for (part, value) in [
            ("consumer = ?", &filter.consumer),
            ("\"user\" = ?", &filter.user),
            ("actor = ?", &filter.actor),
            ("event = ?", &filter.event),
        ] {
            if let Some(value) = value {
                condition.and(part, value.write()?);
            }
        }
        for (part, time) in [("at >= ?", filter.since), ("at < ?", filter.until)] {
            if let Some(time) = time {
                condition.and(part, time);
            }
        }
        if let Some(position) = before {
            condition.and("position < ?", position);
        }
        let (list, params) = condition.list("audit", "position DESC", limit);
        let read = |row: &Row, _: &Seal| {
            let text: String = row.get("record")?;
            let record = match serde_json::from_str(&text) {
                Ok(record) => record,
                Err(_) => CommandRecord {
                    id: row.get("id")?,
                    event: row.get("event")?,
                    consumer: row.get("consumer")?,
                    user: row.get("user")?,
                    actor: Actor {
                        by: row.get("actor")?,
                        ..Actor::default()
                    },
                    ..CommandRecord::default()
                },
            };
            Ok(AuditEntry {
                position: row.get("position")?,
                at: row.get("at")?,
                record,
            })
        };
        self.rows("audit_records", LIST, &list, &params, read).await
    }

    /// The kinds of the records that are kept, in their order.
    pub async fn audit_events(&self) -> Result<Vec<String>> {
        let list = "SELECT DISTINCT event FROM countersign.audit ORDER BY event";
        let read = |row: &Row, _: &Seal| row.get("event");
        self.rows("audit_records", LIST, list, &[], read).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::store::sql::test_double::TestStore;

    #[tokio::test]
    async fn a_record_of_another_version_hides_no_older_one() {
        let setup = TestStore::default();
        let store = setup.store();
        for number in 0..3 {
            let record = CommandRecord {
                id: format!("id-{number}"),
                event: "consumer_registered".to_owned(),
                consumer: Some("shop".to_owned()),
                ..CommandRecord::default()
            };
            store
                .record_command(UnixTime(number), &record)
                .await
                .unwrap();
        }
        setup.sql("UPDATE countersign.audit SET record = '[]' WHERE id = 'id-2'");
        let listed = store.audit_records(&AuditFilter::default(), None, 2).await;
        let [newest, older] = &listed.unwrap()[..] else {
            panic!("two were asked for");
        };
        assert_eq!(newest.record.id, "id-2");
        assert_eq!(newest.record.event, "consumer_registered");
        assert_eq!(newest.record.consumer.as_deref(), Some("shop"));
        assert_eq!(older.record.id, "id-1");
    }
}
