//! Consumers: registered, changed, removed.

pub(crate) mod developer_links;
pub(crate) mod registrations;

use std::collections::BTreeMap;

use super::{EXCLUSIVE, LIST, READ, Store, is_removed, passes, retire, tx::Tx};
use crate::{
    base::{clock::UnixTime, text::names::ConsumerKey},
    records::{
        store::sql::tx::{filter::condition, rows},
        values::{
            Result,
            record::{Consumer, ConsumerUse},
            seal::field,
            transfer::BATCH,
            use_cases::{Added, Change, Guard, RecordFilter, Source, Updated},
            value::{json, seconds},
        },
    },
    telemetry::calls::facts::Door,
};

impl Store {
    /// Finds a consumer, disabled ones too: one that is registered here, else one of the application, unless a consumer
    /// with this key was removed here.
    pub async fn consumer(&self, key: &ConsumerKey) -> Result<Option<Consumer>> {
        let found = self.consumer_from(key, false).await?;
        Ok(found.map(|(found, _)| found))
    }

    /// As [`Self::consumer`], with where it was found. `is_refresh`: it was found before.
    pub async fn consumer_from(
        &self,
        key: &ConsumerKey,
        is_refresh: bool,
    ) -> Result<Option<(Consumer, Source)>> {
        let (found, is_elsewhere) = self.consumer_here(key).await?;
        match &self.external {
            Some(external) if is_elsewhere => {
                let found = external.consumer(key, is_refresh);
                let found = self.counted("lookup_consumer", found).await?;
                Ok(found.map(|found| (found, Source::External)))
            }
            _ => Ok(found.map(|found| (found, Source::Store))),
        }
    }

    /// Whether no consumer has this key, as far as the store knows without the application.
    pub(crate) async fn has_lost_consumer(&self, key: &ConsumerKey) -> Result<bool> {
        Ok(matches!(self.consumer_here(key).await?, (None, false)))
    }

    /// Finds a consumer that is registered here, and says whether the application may have one.
    async fn consumer_here(&self, key: &ConsumerKey) -> Result<(Option<Consumer>, bool)> {
        self.run("consumer", READ, async |tx| {
            let found = find(tx, key).await?;
            let is_elsewhere = found.is_none()
                && self.has_external()
                && !is_removed(tx, "consumer", key.as_str()).await?;
            Ok((found, is_elsewhere))
        })
        .await
    }

    /// Registers a consumer.
    pub async fn add_consumer(&self, consumer: Consumer) -> Result<Added> {
        self.run("add_consumer", EXCLUSIVE, async |tx| {
            let key = consumer.key.as_str();
            if is_removed(tx, "consumer", key).await? || find(tx, &consumer.key).await?.is_some() {
                return Ok(Added::Taken);
            }
            put(tx, &consumer).await?;
            Ok(Added::Added)
        })
        .await
    }

    /// Changes a consumer, unless `change` returns `false`, or it could no longer sign, or would be enabled and not approved.
    pub async fn update_consumer(
        &self,
        key: &ConsumerKey,
        change: &(dyn for<'c> Fn(&'c mut Consumer) -> bool + Sync),
    ) -> Result<Updated<Consumer>> {
        self.run("update_consumer", EXCLUSIVE, async |tx| {
            let Some(mut consumer) = find(tx, key).await? else {
                return Ok(Updated::Unknown);
            };
            let before = consumer.clone();
            let is_wanted = change(&mut consumer);
            if !is_wanted || !consumer.can_sign() || consumer.enabled && consumer.is_unapproved() {
                return Ok(Updated::Refused);
            }
            replace(tx, &before, &consumer).await?;
            Ok(Updated::Updated(Box::new(consumer)))
        })
        .await
    }

    /// Removes a consumer with its request tokens and access tokens; `false` if there is none or `guard` rejects that.
    pub async fn remove_consumer(
        &self,
        key: &ConsumerKey,
        guard: Guard<'_, Consumer>,
    ) -> Result<bool> {
        self.run("remove_consumer", EXCLUSIVE, async |tx| {
            if !passes(guard, find(tx, key).await?) {
                return Ok(false);
            }
            remove(tx, key).await?;
            Ok(true)
        })
        .await
    }

    /// Lists consumers in the order of their keys, after `after`, at most `limit`.
    pub async fn consumers(
        &self,
        filter: &RecordFilter,
        after: Option<&ConsumerKey>,
        limit: u32,
    ) -> Result<Vec<Consumer>> {
        let mut condition = condition(filter, "key", after.map_or("", ConsumerKey::as_str));
        if let Some(since) = filter.unused_since {
            let unused = "created_at <= ? AND NOT EXISTS (SELECT 1 FROM countersign.consumer_uses
                 WHERE consumer = consumers.key AND last_used_at > ?)";
            condition.and(unused, since);
        }
        if let Some(since) = filter.signed_since {
            let signed = "EXISTS (SELECT 1 FROM countersign.consumer_uses
                 WHERE consumer = consumers.key AND door = 'signature' AND last_used_at > ?)";
            condition.and(signed, since);
        }
        let (list, params) = condition.list("consumers", "key", limit);
        self.rows("consumers", LIST, &list, &params, rows::consumer)
            .await
    }

    /// Lists the consumers whose previous secret verifies after `now`, by the end of the grace, at most `limit`.
    pub async fn consumers_in_grace(&self, now: UnixTime, limit: u32) -> Result<Vec<Consumer>> {
        let list = "SELECT * FROM countersign.consumers WHERE previous_until > $1 ORDER BY previous_until LIMIT $2";
        let params = [now.into(), i64::from(limit).into()];
        self.rows("consumers_in_grace", READ, list, &params, rows::consumer)
            .await
    }

    /// Finds the last uses of consumers, one by each door; one that was never used has none.
    pub async fn consumer_uses(&self, keys: &[ConsumerKey]) -> Result<Vec<ConsumerUse>> {
        let keys: Vec<_> = keys.iter().map(ConsumerKey::as_str).collect();
        self.run("consumer_uses", READ, async |tx| {
            tx.rows_among(
                "countersign.consumer_uses",
                "consumer",
                &keys,
                rows::consumer_use,
            )
            .await
        })
        .await
    }

    /// Writes last uses of consumers that are registered here; an earlier time never replaces a later one. Not reported by
    /// the feed. Many uses are written in several transactions: each is written or not, and all can be written again.
    pub async fn record_consumer_uses(&self, mut uses: Vec<ConsumerUse>) -> Result<()> {
        uses.sort_by_key(|used| used.last_used_at);
        // The last use of each by each door, in one order: otherwise two processes could wait for each other.
        let last: BTreeMap<(_, &str), _> = uses
            .iter()
            .map(|used| {
                let at = seconds(used.last_used_at);
                let door = (&used.consumer, used.door().into());
                (door, (at, &used.method, used.dialect))
            })
            .collect();
        let last = last.into_iter().collect();
        self.record_in_parts("record_consumer_uses", last, |_| RECORD_USES.to_owned())
            .await
    }
}

/// Records last uses: of each consumer its key and the door, and the time, the method and the dialect.
const RECORD_USES: &str = "INSERT INTO countersign.consumer_uses (consumer, door, last_used_at, method, dialect)
     SELECT consumers.key, value -> 0 ->> 1, CAST(value -> 1 ->> 0 AS bigint), value -> 1 ->> 1, value -> 1 ->> 2
     FROM countersign.json_each($1) JOIN countersign.consumers ON consumers.key = value -> 0 ->> 0 WHERE true ORDER BY 1, 2
     ON CONFLICT (consumer, door) DO UPDATE SET last_used_at = excluded.last_used_at,
         method = excluded.method, dialect = excluded.dialect
     WHERE consumer_uses.last_used_at < excluded.last_used_at";

/// Records the last uses of imported access tokens, or else their issue, as uses of their consumers; none in the future, which
/// would hide every use until then.
pub(super) async fn record_imported_uses(
    tx: &mut Tx,
    uses: &BTreeMap<ConsumerKey, i64>,
) -> Result<()> {
    let door: &str = Door::Signature.into();
    let uses = uses.iter().map(|(key, at)| ((key, door), [at]));
    let uses = Vec::from_iter(uses);
    let past = "WHERE CAST(value -> 1 ->> 0 AS bigint) <= countersign.unixepoch()";
    let record = RECORD_USES.replace("WHERE true", past);
    for some in uses.chunks(BATCH) {
        tx.execute(&record, &[json(some)?.into()]).await?;
    }
    Ok(())
}

/// Ends the link of a consumer.
pub(super) const END_LINK: &str = "DELETE FROM countersign.developer_links WHERE consumer = $1";

/// Removes a consumer that is registered here with all that it has; returns the number of its access tokens.
pub(super) async fn remove(tx: &mut Tx, key: &ConsumerKey) -> Result<u64> {
    let params = [key.as_str().into()];
    let retire_tokens = "INSERT INTO countersign.removed (kind, key)
        SELECT 'token', token FROM countersign.access_tokens WHERE consumer = $1";
    let tokens = tx.execute(retire_tokens, &params).await?;
    for statement in [
        "DELETE FROM countersign.access_tokens WHERE consumer = $1",
        "DELETE FROM countersign.request_tokens WHERE consumer = $1",
        "DELETE FROM countersign.consumer_uses WHERE consumer = $1",
        END_LINK,
        "DELETE FROM countersign.consumers WHERE key = $1",
    ] {
        tx.execute(statement, &params).await?;
    }
    retire(tx, "consumer", key.as_str()).await?;
    tx.changed(Change::Consumer(key.clone()));
    Ok(tokens)
}

/// Finds a consumer that is registered here.
pub(super) async fn find(tx: &mut Tx, key: &ConsumerKey) -> Result<Option<Consumer>> {
    let find = "SELECT * FROM countersign.consumers WHERE key = $1";
    tx.row(find, &[key.as_str().into()], rows::consumer).await
}

/// Changes a consumer. Its developer's link ends with a secret or key that is replaced at once, and with a grace that is
/// ended: others may know the secret, and the link may be where they found it.
pub(super) async fn replace(tx: &mut Tx, before: &Consumer, after: &Consumer) -> Result<()> {
    put(tx, after).await?;
    let is_replaced =
        before.secret != after.secret || before.rsa_public_key != after.rsa_public_key;
    let is_cut = before.previous_secret.is_some() && after.previous_secret.is_none();
    if is_replaced || is_cut {
        let previous = after.previous_secret.as_ref();
        let until = previous.map_or(UnixTime(0), |(_, until)| *until);
        let end = "DELETE FROM countersign.developer_links
            WHERE consumer = $1 AND $2 <= countersign.unixepoch()";
        let params = [after.key.as_str().into(), until.into()];
        tx.execute(end, &params).await?;
    }
    Ok(())
}

/// Inserts or replaces a consumer.
pub(super) async fn put(tx: &mut Tx, consumer: &Consumer) -> Result<()> {
    let key = consumer.key.as_str();
    let secret = tx.seal().close(field::CONSUMER, key, &consumer.secret)?;
    let previous = consumer.previous_secret.as_ref();
    let close = |(secret, _): &_| tx.seal().close(field::CONSUMER_PREVIOUS, key, secret);
    let previous_secret = previous.map(close).transpose()?;
    let mut columns = consumer.columns()?;
    columns.extend([
        ("secret", secret.into()),
        ("previous_secret", previous_secret.into()),
        ("previous_until", previous.map(|(_, until)| *until).into()),
    ]);
    let replaced: Vec<_> = columns
        .iter()
        .map(|(name, _)| format!("\"{name}\" = excluded.\"{name}\""))
        .collect();
    let ending = format!("ON CONFLICT (key) DO UPDATE SET {}", replaced.join(", "));
    tx.insert("consumers", columns, &ending).await?;
    if !consumer.enabled {
        // The link does not come back with the consumer.
        tx.execute(END_LINK, &[key.into()]).await?;
    }
    tx.changed(Change::Consumer(consumer.key.clone()));
    Ok(())
}
