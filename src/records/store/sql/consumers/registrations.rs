//! Consumers that users ask for: their bounds, those of one user, and those on which an operator has to decide.

use std::time::Duration;

use crate::{
    base::{
        clock::UnixTime,
        text::names::{ConsumerKey, UserId},
    },
    records::{
        store::sql::{
            CHANGE, LIST, READ, Store, consumers, is_removed,
            tx::{Tx, rows},
        },
        values::{
            Result,
            record::Consumer,
            use_cases::{Asked, RegistrationBounds},
            value::{Value, needed},
        },
    },
};

/// The period of the bounds.
const DAY: Duration = Duration::from_secs(86_400);

/// The condition of the consumers on which an operator has to decide, as the index has it.
const UNDECIDED: &str = "(registration = 'waiting' OR asked_callbacks <> '[]')";

impl Store {
    /// Registers a consumer that its owner asks for.
    pub async fn ask_for_consumer(
        &self,
        consumer: Consumer,
        owner: &UserId,
        bounds: RegistrationBounds,
        now: UnixTime,
    ) -> Result<Asked> {
        self.run("ask_for_consumer", CHANGE, async |tx| {
            let (key, user) = (consumer.key.as_str(), owner.as_str());
            if is_removed(tx, "consumer", key).await?
                || consumers::find(tx, &consumer.key).await?.is_some()
            {
                return Ok(Asked::Before);
            }
            let old = "DELETE FROM countersign.registrations WHERE at <= $1";
            tx.execute(old, &[now.before(DAY).into()]).await?;
            let own = "SELECT count(*) AS count FROM countersign.consumers WHERE owner = $1";
            let of_day =
                r#"SELECT count(*) AS count FROM countersign.registrations WHERE "user" = $1"#;
            let of_all = "SELECT count(*) AS count FROM countersign.registrations";
            for (sql, params, most) in [
                (own, &[user.into()][..], bounds.per_user),
                (of_day, &[user.into()], bounds.per_user),
                (of_all, &[], bounds.per_day),
            ] {
                if count(tx, sql, params).await? >= most.into() {
                    return Ok(Asked::TooMany);
                }
            }
            let namesake = "SELECT 1 FROM countersign.consumers WHERE lower(name) = lower($1)";
            if tx
                .has_row(namesake, &[consumer.name.as_str().into()])
                .await?
            {
                return Ok(Asked::NameTaken);
            }
            consumers::put(tx, &consumer).await?;
            let columns = vec![
                ("consumer", key.into()),
                ("user", user.into()),
                ("at", now.into()),
            ];
            tx.insert("registrations", columns, "").await?;
            Ok(Asked::Registered)
        })
        .await
    }

    /// Lists the consumers that a user manages by their keys, at most `limit`.
    pub async fn consumers_of_owner(&self, owner: &UserId, limit: u32) -> Result<Vec<Consumer>> {
        let list = "SELECT * FROM countersign.consumers WHERE owner = $1 ORDER BY key LIMIT $2";
        let params = [owner.as_str().into(), i64::from(limit).into()];
        self.rows("consumers_of_owner", READ, list, &params, rows::consumer)
            .await
    }

    /// Lists the consumers on which an operator has to decide by their keys, after `after`, at most `limit`.
    pub async fn undecided_consumers(
        &self,
        after: Option<&ConsumerKey>,
        limit: u32,
    ) -> Result<Vec<Consumer>> {
        let list = format!(
            "SELECT * FROM countersign.consumers WHERE {UNDECIDED} AND key > $1 ORDER BY key LIMIT $2"
        );
        let after = after.map_or("", ConsumerKey::as_str);
        let params = [after.into(), i64::from(limit).into()];
        self.rows("undecided_consumers", LIST, &list, &params, rows::consumer)
            .await
    }

    /// Lists the consumers of users that work and that no operator has approved.
    pub async fn unchecked_consumers(&self) -> Result<Vec<Consumer>> {
        let list =
            "SELECT * FROM countersign.consumers WHERE registration = 'unchecked' ORDER BY key";
        self.rows("unchecked_consumers", LIST, list, &[], rows::consumer)
            .await
    }

    /// Counts the consumers on which an operator has to decide.
    pub async fn count_undecided(&self) -> Result<u64> {
        let sql = format!("SELECT count(*) AS count FROM countersign.consumers WHERE {UNDECIDED}");
        let count = self.run("count_undecided", READ, async |tx| {
            count(tx, &sql, &[]).await
        });
        Ok(count.await?.try_into().unwrap_or(0))
    }
}

async fn count(tx: &mut Tx, sql: &str, params: &[Value]) -> Result<i64> {
    needed(tx.row(sql, params, |row, _| row.get("count")).await?)
}
