//! Export and import.

use std::collections::BTreeSet;

use tokio::time::timeout;
use tokio_postgres::Row;

use super::{STEP_PATIENCE, Trouble, tx::Tx};
use crate::{
    clock::UnixTime,
    store::{
        StoreError,
        port::Change,
        rows::{self, Columns, name, needed, seconds},
        rules::{self, Here, Take, World},
        seal::Seal,
        transfer::{
            BATCH, Import, ImportRefusal, Imported, MAX_PASSWORD_COSTS, Numbered, Part, Receiver,
            Record, Sender,
        },
    },
};

/// Pages of one kind, the key by which they are ordered, and how a row is read.
type Kind = (
    &'static str,
    &'static str,
    fn(&Row, &Seal) -> Result<Record, StoreError>,
);

const KINDS: [Kind; 5] = [
    (
        "SELECT * FROM consumers WHERE key > $1 ORDER BY key LIMIT $2",
        "key",
        |row, seal| rows::consumer(row, seal).map(Record::Consumer),
    ),
    (
        "SELECT * FROM users WHERE id > $1 ORDER BY id LIMIT $2",
        "id",
        |row, seal| rows::user(row, seal).map(Record::User),
    ),
    (
        "SELECT * FROM access_tokens WHERE token > $1 ORDER BY token LIMIT $2",
        "token",
        |row, seal| rows::access_token(row, seal).map(Record::AccessToken),
    ),
    (
        "SELECT id FROM removed_users WHERE id > $1 ORDER BY id LIMIT $2",
        "id",
        |row, _| Ok(Record::RemovedUser(name(&needed(row.text("id")?)?)?)),
    ),
    (
        "SELECT token FROM removed_tokens WHERE token > $1 ORDER BY token LIMIT $2",
        "token",
        |row, _| Ok(Record::RemovedToken(needed(row.text("token")?)?)),
    ),
];

impl Tx {
    pub(super) async fn export_to(&mut self, to: &Sender<Record>) -> Result<(), StoreError> {
        let count = self
            .first(
                "SELECT (SELECT count(*) FROM consumers) + (SELECT count(*) FROM users)
                     + (SELECT count(*) FROM access_tokens) + (SELECT count(*) FROM removed_users)
                     + (SELECT count(*) FROM removed_tokens) AS count",
                &[],
            )
            .await?;
        let count = needed(needed(count)?.integer("count")?)?;
        to.send(Part::Count(count.unsigned_abs())).await?;
        for (sql, key, read) in KINDS {
            let mut after = String::new();
            loop {
                let rows = self.all(sql, &[&after, &(BATCH as i64)]).await?;
                let Some(last) = rows.last() else { break };
                after = needed(last.text(key)?)?;
                let records = rows
                    .iter()
                    .map(|row| read(row, &self.seal))
                    .collect::<Result<_, _>>()?;
                to.send(Part::Records(records)).await?;
            }
        }
        Ok(to.send(Part::End).await?)
    }

    pub(super) async fn import(
        &mut self,
        mut records: Receiver<Numbered>,
    ) -> Result<Import, StoreError> {
        self.conn.client().batch_execute("SAVEPOINT import").await?;
        let import = self.take_all(&mut records).await?;
        if matches!(import, Import::Refused { .. }) {
            let undo = "ROLLBACK TO SAVEPOINT import";
            self.conn.client().batch_execute(undo).await?;
            self.forget_changes();
        }
        Ok(import)
    }

    /// Takes all records in, or rejects them; a rejection leaves changes behind, which the caller rolls back.
    async fn take_all(&mut self, records: &mut Receiver<Numbered>) -> Result<Import, StoreError> {
        let mut imported = Imported::default();
        loop {
            let batch = match records.receive().await? {
                Part::Count(_) => continue,
                Part::Records(batch) => batch,
                Part::End => return Ok(Import::Imported(imported)),
            };
            let taken = timeout(STEP_PATIENCE, self.take_batch(&batch, &mut imported)).await;
            if let Some((index, refusal)) = taken.map_err(|_| Trouble::TimedOut)?? {
                return Ok(Import::Refused { index, refusal });
            }
            self.drop_changes();
        }
    }

    /// Takes some records in; returns the one that is rejected.
    async fn take_batch(
        &mut self,
        batch: &[Numbered],
        imported: &mut Imported,
    ) -> Result<Option<(usize, ImportRefusal)>, StoreError> {
        // Of tokens there are many, and one round trip for each question about each of them would take hours.
        let first_token =
            batch.partition_point(|(_, record)| !matches!(record, Record::AccessToken(_)));
        let (others, tokens) = batch.split_at(first_token);
        for (index, record) in others {
            match self.take(record).await? {
                Ok(take) => {
                    if take == Take::Add
                        && matches!(record, Record::User(_))
                        && self.password_costs().await?.len() > MAX_PASSWORD_COSTS
                    {
                        return Ok(Some((*index, ImportRefusal::TooManyCosts)));
                    }
                    imported.count(take);
                }
                Err(refusal) => return Ok(Some((*index, refusal))),
            }
        }
        self.take_tokens(tokens, imported).await
    }

    async fn take_tokens(
        &mut self,
        batch: &[Numbered],
        imported: &mut Imported,
    ) -> Result<Option<(usize, ImportRefusal)>, StoreError> {
        let tokens = || {
            batch.iter().filter_map(|(index, record)| match record {
                Record::AccessToken(token) => Some((*index, token, record)),
                _ => None,
            })
        };
        let ids: Vec<&str> = tokens().map(|(_, token, _)| &*token.token).collect();
        let consumers: BTreeSet<&str> = tokens()
            .map(|(_, token, _)| token.consumer.as_str())
            .collect();
        let users: BTreeSet<&str> = tokens().map(|(_, token, _)| token.user.as_str()).collect();
        let (consumers, users): (Vec<_>, Vec<_>) =
            (consumers.into_iter().collect(), users.into_iter().collect());
        let mut here = World::default();
        for row in self
            .all("SELECT * FROM access_tokens WHERE token = ANY($1)", &[&ids])
            .await?
        {
            let token = rows::access_token(&row, &self.seal)?;
            here.tokens.insert(token.token.clone(), token);
        }
        for row in self
            .all(
                "SELECT token FROM removed_tokens WHERE token = ANY($1)",
                &[&ids],
            )
            .await?
        {
            here.removed_tokens.insert(needed(row.text("token")?)?);
        }
        for row in self
            .all("SELECT * FROM consumers WHERE key = ANY($1)", &[&consumers])
            .await?
        {
            let consumer = rows::consumer(&row, &self.seal)?;
            here.consumers.insert(consumer.key.clone(), consumer);
        }
        for row in self
            .all("SELECT * FROM users WHERE id = ANY($1)", &[&users])
            .await?
        {
            let user = rows::user(&row, &self.seal)?;
            here.users.insert(user.id.clone(), user);
        }
        for row in self
            .all("SELECT id FROM removed_users WHERE id = ANY($1)", &[&users])
            .await?
        {
            here.removed_users.insert(needed(row.text("id")?)?);
        }
        let mut new = Vec::new();
        for (index, token, record) in tokens() {
            let take = match rules::take(record, &here.here(record)) {
                Ok(take) => take,
                Err(refusal) => return Ok(Some((index, refusal))),
            };
            match take {
                Take::Add => new.push(token),
                Take::Revoke => self.revoke_taken(&token.token, token.revoked_at).await?,
                Take::Unchanged | Take::KeepOut => {}
            }
            imported.count(take);
        }
        if self.insert_access_tokens(&new).await? < new.len() as u64 {
            return Err(StoreError::Broken("a token comes twice in the import"));
        }
        for token in new {
            self.changed(Change::AccessToken(token.token.clone()));
        }
        Ok(None)
    }

    /// Takes a record in that is no access token.
    async fn take(&mut self, record: &Record) -> Result<Result<Take, ImportRefusal>, StoreError> {
        let (consumer, user, token);
        let mut here = Here::default();
        match record {
            Record::RemovedUser(id) => {
                user = self.user(id).await?;
                here.user = user.as_ref();
                here.is_removed = self.is_user_removed(id).await?;
            }
            Record::RemovedToken(id) => {
                token = self.access_token(id).await?;
                here.token = token.as_ref();
                here.is_removed = self.is_access_token_taken(id).await?;
            }
            Record::Consumer(new) => {
                consumer = self.consumer(&new.key).await?;
                here.consumer = consumer.as_ref();
            }
            Record::User(new) => {
                user = self.user(&new.id).await?;
                here.user = user.as_ref();
                here.is_removed = self.is_user_removed(&new.id).await?;
                here.is_name_taken = self.user_by_name(&new.name).await?.is_some();
                here.is_hash_replaced = match &new.password_hash {
                    Some(hash) => self.is_replaced_hash(&new.id, hash).await?,
                    None => false,
                };
            }
            Record::AccessToken(_) => {}
        }
        let take = match rules::take(record, &here) {
            Ok(take) => take,
            Err(refusal) => return Ok(Err(refusal)),
        };
        match (take, record) {
            (Take::Add, Record::RemovedUser(id)) => self.retire_user(id).await?,
            (Take::Add, Record::RemovedToken(token)) => {
                self.run("INSERT INTO removed_tokens (token) VALUES ($1)", &[token])
                    .await?;
                self.changed(Change::AccessToken(token.clone()));
            }
            (Take::Add, Record::Consumer(consumer)) => self.put_consumer(consumer).await?,
            (Take::Add, Record::User(user)) => self.insert_user(user).await?,
            (Take::Revoke, Record::RemovedToken(token)) => self.revoke_taken(token, None).await?,
            _ => {}
        }
        Ok(Ok(take))
    }

    /// Revokes a token at the time that the list says, else now.
    async fn revoke_taken(&mut self, token: &str, at: Option<UnixTime>) -> Result<(), StoreError> {
        self.run(
            "UPDATE access_tokens
             SET revoked_at = coalesce($2, extract(epoch FROM clock_timestamp())::bigint)
             WHERE token = $1",
            &[&token, &at.map(seconds)],
        )
        .await?;
        self.changed(Change::AccessToken(token.to_owned()));
        Ok(())
    }
}
