//! Export and import.

use super::tx::Tx;
use crate::{
    clock::UnixTime,
    store::{
        StoreError,
        port::Change,
        record::AccessToken,
        rows::{self, Columns, name, needed, seconds},
        rules::{self, Here, Take},
        transfer::{Import, ImportRefusal, Imported, MAX_PASSWORD_COSTS, Record},
    },
};

impl Tx {
    pub(super) async fn export(&mut self) -> Result<Vec<Record>, StoreError> {
        let mut records = Vec::new();
        for row in self
            .all("SELECT * FROM consumers ORDER BY key", &[])
            .await?
        {
            records.push(Record::Consumer(rows::consumer(&row, &self.seal)?));
        }
        for row in self.all("SELECT * FROM users ORDER BY id", &[]).await? {
            records.push(Record::User(rows::user(&row, &self.seal)?));
        }
        for row in self
            .all("SELECT * FROM access_tokens ORDER BY token", &[])
            .await?
        {
            records.push(Record::AccessToken(rows::access_token(&row, &self.seal)?));
        }
        for row in self
            .all("SELECT id FROM removed_users ORDER BY id", &[])
            .await?
        {
            records.push(Record::RemovedUser(name(&needed(row.text("id")?)?)?));
        }
        for row in self
            .all("SELECT token FROM removed_tokens ORDER BY token", &[])
            .await?
        {
            records.push(Record::RemovedToken(needed(row.text("token")?)?));
        }
        Ok(records)
    }

    pub(super) async fn import(&mut self, records: &[Record]) -> Result<Import, StoreError> {
        self.conn.client().batch_execute("SAVEPOINT import").await?;
        let import = self.take_all(records).await?;
        if matches!(import, Import::Refused { .. }) {
            let undo = "ROLLBACK TO SAVEPOINT import";
            self.conn.client().batch_execute(undo).await?;
            self.forget_changes();
        }
        Ok(import)
    }

    /// Takes all records in, or rejects them; a rejection leaves changes behind, which the caller rolls back.
    async fn take_all(&mut self, records: &[Record]) -> Result<Import, StoreError> {
        let mut imported = Imported::default();
        let mut order: Vec<(usize, &Record)> = records.iter().enumerate().collect();
        order.sort_by_key(|(_, record)| rules::import_order(record));
        for (index, record) in order {
            let refused = |refusal| Ok(Import::Refused { index, refusal });
            match self.take(record).await? {
                Ok(take) => {
                    if take == Take::Add
                        && matches!(record, Record::User(_))
                        && self.password_costs().await?.len() > MAX_PASSWORD_COSTS
                    {
                        return refused(ImportRefusal::TooManyCosts);
                    }
                    imported.count(take);
                }
                Err(refusal) => return refused(refusal),
            }
        }
        Ok(Import::Imported(imported))
    }

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
            Record::AccessToken(new) => {
                token = self.access_token(&new.token).await?;
                here.token = token.as_ref();
                here.is_removed = self.is_access_token_taken(&new.token).await?;
                consumer = self.consumer(&new.consumer).await?;
                here.consumer = consumer.as_ref();
                user = self.user(&new.user).await?;
                here.user = user.as_ref();
                here.is_user_removed = self.is_user_removed(&new.user).await?;
            }
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
            (Take::Add, Record::AccessToken(token)) => {
                self.insert_access_token(token).await?;
            }
            (Take::Revoke, Record::RemovedToken(token)) => self.revoke_taken(token, None).await?,
            (
                Take::Revoke,
                Record::AccessToken(AccessToken {
                    token, revoked_at, ..
                }),
            ) => {
                self.revoke_taken(token, *revoked_at).await?;
            }
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
