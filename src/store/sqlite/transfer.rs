//! Export and import.

use rusqlite::params;

use super::tx::Tx;
use crate::{
    clock::UnixTime,
    store::{
        StoreError,
        port::Change,
        record::AccessToken,
        rows::{self, name, seconds},
        rules::{self, Here, Take},
        transfer::{Import, ImportRefusal, Imported, MAX_PASSWORD_COSTS, Record},
    },
};

impl Tx<'_> {
    pub(super) fn export(&self) -> Result<Vec<Record>, StoreError> {
        let mut records = self.all("SELECT * FROM consumers ORDER BY key", [], |row| {
            rows::consumer(row, self.seal).map(Record::Consumer)
        })?;
        records.extend(self.all("SELECT * FROM users ORDER BY id", [], |row| {
            rows::user(row, self.seal).map(Record::User)
        })?);
        records.extend(
            self.all("SELECT * FROM access_tokens ORDER BY token", [], |row| {
                rows::access_token(row, self.seal).map(Record::AccessToken)
            })?,
        );
        records.extend(
            self.all("SELECT id FROM removed_users ORDER BY id", [], |row| {
                Ok(Record::RemovedUser(name(&row.get::<_, String>(0)?)?))
            })?,
        );
        records.extend(self.all(
            "SELECT token FROM removed_tokens ORDER BY token",
            [],
            |row| Ok(Record::RemovedToken(row.get(0)?)),
        )?);
        Ok(records)
    }

    pub(super) fn import(&self, records: &[Record]) -> Result<Import, StoreError> {
        self.run("SAVEPOINT import", [])?;
        let import = self.take_all(records)?;
        if matches!(import, Import::Refused { .. }) {
            self.run("ROLLBACK TO import", [])?;
        }
        self.run("RELEASE import", [])?;
        Ok(import)
    }

    /// Takes all records in, or rejects them; a rejection leaves changes behind, which the caller rolls back.
    fn take_all(&self, records: &[Record]) -> Result<Import, StoreError> {
        let mut imported = Imported::default();
        let mut order: Vec<(usize, &Record)> = records.iter().enumerate().collect();
        order.sort_by_key(|(_, record)| rules::import_order(record));
        for (index, record) in order {
            let refused = |refusal| Ok(Import::Refused { index, refusal });
            match self.take(record)? {
                Ok(take) => {
                    if take == Take::Add
                        && matches!(record, Record::User(_))
                        && self.password_costs()?.len() > MAX_PASSWORD_COSTS
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

    fn take(&self, record: &Record) -> Result<Result<Take, ImportRefusal>, StoreError> {
        let (consumer, user, token);
        let mut here = Here::default();
        match record {
            Record::RemovedUser(id) => {
                user = self.user(id)?;
                here.user = user.as_ref();
                here.is_removed = self.is_user_removed(id)?;
            }
            Record::RemovedToken(id) => {
                token = self.access_token(id)?;
                here.token = token.as_ref();
                here.is_removed = self.is_access_token_taken(id)?;
            }
            Record::Consumer(new) => {
                consumer = self.consumer(&new.key)?;
                here.consumer = consumer.as_ref();
            }
            Record::User(new) => {
                user = self.user(&new.id)?;
                here.user = user.as_ref();
                here.is_removed = self.is_user_removed(&new.id)?;
                here.is_name_taken = self.user_by_name(&new.name)?.is_some();
                here.is_hash_replaced = match &new.password_hash {
                    Some(hash) => self.is_replaced_hash(&new.id, hash)?,
                    None => false,
                };
            }
            Record::AccessToken(new) => {
                token = self.access_token(&new.token)?;
                here.token = token.as_ref();
                here.is_removed = self.is_access_token_taken(&new.token)?;
                consumer = self.consumer(&new.consumer)?;
                here.consumer = consumer.as_ref();
                user = self.user(&new.user)?;
                here.user = user.as_ref();
                here.is_user_removed = self.is_user_removed(&new.user)?;
            }
        }
        let take = match rules::take(record, &here) {
            Ok(take) => take,
            Err(refusal) => return Ok(Err(refusal)),
        };
        match (take, record) {
            (Take::Add, Record::RemovedUser(id)) => self.retire_user(id)?,
            (Take::Add, Record::RemovedToken(token)) => {
                self.run("INSERT INTO removed_tokens (token) VALUES (?1)", [token])?;
                self.changed(&Change::AccessToken(token.clone()))?;
            }
            (Take::Add, Record::Consumer(consumer)) => self.put_consumer(consumer)?,
            (Take::Add, Record::User(user)) => self.insert_user(user)?,
            (Take::Add, Record::AccessToken(token)) => self.insert_access_token(token)?,
            (Take::Revoke, Record::RemovedToken(token)) => self.revoke_taken(token, None)?,
            (
                Take::Revoke,
                Record::AccessToken(AccessToken {
                    token, revoked_at, ..
                }),
            ) => {
                self.revoke_taken(token, *revoked_at)?;
            }
            _ => {}
        }
        Ok(Ok(take))
    }

    /// Revokes a token at the time that the list says, else now.
    fn revoke_taken(&self, token: &str, at: Option<UnixTime>) -> Result<(), StoreError> {
        self.run(
            "UPDATE access_tokens SET revoked_at = coalesce(?2, unixepoch()) WHERE token = ?1",
            params![token, at.map(seconds)],
        )?;
        self.changed(&Change::AccessToken(token.to_owned()))
    }
}
