//! Export and import.

use rusqlite::{Row, params};

use super::tx::Tx;
use crate::{
    clock::UnixTime,
    store::{
        StoreError,
        port::Change,
        record::AccessToken,
        rows::{self, name, seconds},
        rules::{self, Here, MOST_CHANGES, Take},
        transfer::{
            BATCH, Import, ImportRefusal, Imported, MAX_PASSWORD_COSTS, Numbered, Part, Receiver,
            Record, Sender,
        },
    },
};

impl Tx<'_> {
    pub(super) fn export_to(&self, to: &Sender<Record>) -> Result<(), StoreError> {
        type Read<'s> = &'s dyn Fn(&Row<'_>) -> Result<Record, StoreError>;
        let kinds: [(&str, &str, Read<'_>); 5] = [
            ("consumers", "key", &|row| {
                rows::consumer(row, self.seal).map(Record::Consumer)
            }),
            ("users", "id", &|row| {
                rows::user(row, self.seal).map(Record::User)
            }),
            ("access_tokens", "token", &|row| {
                rows::access_token(row, self.seal).map(Record::AccessToken)
            }),
            ("removed_users", "id", &|row| {
                Ok(Record::RemovedUser(name(&row.get::<_, String>("id")?)?))
            }),
            ("removed_tokens", "token", &|row| {
                Ok(Record::RemovedToken(row.get("token")?))
            }),
        ];
        let mut count = 0;
        for (table, ..) in kinds {
            let counted = self.first(&format!("SELECT count(*) FROM {table}"), [], |row| {
                Ok(row.get::<_, i64>(0)?.unsigned_abs())
            })?;
            count += counted.unwrap_or(0);
        }
        to.blocking_send(Part::Count(count))?;
        for (table, key, read) in kinds {
            let mut batch = Vec::with_capacity(BATCH);
            self.each(&format!("SELECT * FROM {table} ORDER BY {key}"), |row| {
                batch.push(read(row)?);
                if batch.len() == BATCH {
                    to.blocking_send(Part::Records(std::mem::take(&mut batch)))?;
                }
                Ok(())
            })?;
            to.blocking_send(Part::Records(batch))?;
        }
        Ok(to.blocking_send(Part::End)?)
    }

    pub(super) fn import(&self, mut records: Receiver<Numbered>) -> Result<Import, StoreError> {
        self.run("SAVEPOINT import", [])?;
        let import = self.take_all(&mut records)?;
        if matches!(import, Import::Refused { .. }) {
            self.run("ROLLBACK TO import", [])?;
        }
        self.run("RELEASE import", [])?;
        Ok(import)
    }

    /// Takes all records in, or rejects them; a rejection leaves changes behind, which the caller rolls back.
    fn take_all(&self, records: &mut Receiver<Numbered>) -> Result<Import, StoreError> {
        let mut imported = Imported::default();
        loop {
            let batch = match records.blocking_receive()? {
                Part::Count(_) => continue,
                Part::Records(batch) => batch,
                Part::End => return Ok(Import::Imported(imported)),
            };
            for (index, record) in batch {
                let refused = |refusal| Ok(Import::Refused { index, refusal });
                match self.take(&record)? {
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
            // Caches that find so many changes, or a gap, take every record for changed.
            self.run(
                "DELETE FROM changes WHERE id < (SELECT seq FROM sqlite_sequence WHERE name = 'changes') - ?1",
                [MOST_CHANGES],
            )?;
        }
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
