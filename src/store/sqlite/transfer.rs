//! Export and import.

use rusqlite::params;

use super::{
    rows::{name, seconds},
    tx::Tx,
};
use crate::{
    names::UserId,
    store::{
        StoreError,
        port::Change,
        record::{AccessToken, Consumer, User},
        transfer::{
            Import, ImportRefusal, Imported, MAX_PASSWORD_COSTS, Record, same_access_token,
            same_consumer, same_user,
        },
    },
};

/// What became of one record.
enum Taken {
    Added,
    Unchanged,
    Revoked,
    KeptOut,
}

type Step = Result<Result<Taken, ImportRefusal>, StoreError>;

impl Tx<'_> {
    pub(super) fn export(&self) -> Result<Vec<Record>, StoreError> {
        let mut records = self.all("SELECT * FROM consumers ORDER BY key", [], |row| {
            self.read_consumer(row).map(Record::Consumer)
        })?;
        records.extend(self.all("SELECT * FROM users ORDER BY id", [], |row| {
            self.read_user(row).map(Record::User)
        })?);
        records.extend(
            self.all("SELECT * FROM access_tokens ORDER BY token", [], |row| {
                self.read_access_token(row).map(Record::AccessToken)
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

    /// Takes all records in, or refuses; a refusal leaves changes behind, which the caller rolls back.
    fn take_all(&self, records: &[Record]) -> Result<Import, StoreError> {
        let mut imported = Imported::default();
        let mut order: Vec<usize> = (0..records.len()).collect();
        order.sort_by_key(|index| match &records[*index] {
            Record::RemovedUser(_) | Record::RemovedToken(_) => 0,
            Record::Consumer(_) => 1,
            Record::User(_) => 2,
            Record::AccessToken(_) => 3,
        });
        for index in order {
            let taken = match &records[index] {
                Record::RemovedUser(id) => self.take_removed_user(id),
                Record::RemovedToken(token) => self.take_removed_token(token),
                Record::Consumer(consumer) => self.take_consumer(consumer),
                Record::User(user) => self.take_user(user),
                Record::AccessToken(token) => self.take_access_token(token),
            };
            match taken? {
                Ok(Taken::Added) => imported.added += 1,
                Ok(Taken::Unchanged) => imported.unchanged += 1,
                Ok(Taken::Revoked) => imported.revoked += 1,
                Ok(Taken::KeptOut) => imported.kept_out += 1,
                Err(refusal) => return Ok(Import::Refused { index, refusal }),
            }
        }
        Ok(Import::Imported(imported))
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

    fn take_removed_user(&self, id: &UserId) -> Step {
        if self.is_user_removed(id)? {
            return Ok(Ok(Taken::Unchanged));
        }
        // To remove a user is for a person to decide, not for a file.
        if self.user(id)?.is_some() {
            return Ok(Err(ImportRefusal::Differs));
        }
        self.retire_user(id)?;
        Ok(Ok(Taken::Added))
    }

    fn take_removed_token(&self, token: &str) -> Step {
        if let Some(here) = self.access_token(token)? {
            return Ok(Ok(self.revoke_taken(&here, None)?));
        }
        let is_new = self.run(
            "INSERT INTO removed_tokens (token) VALUES (?1) ON CONFLICT DO NOTHING",
            [token],
        )? > 0;
        if is_new {
            self.changed(&Change::AccessToken(token.to_owned()))?;
            return Ok(Ok(Taken::Added));
        }
        Ok(Ok(Taken::Unchanged))
    }

    fn take_consumer(&self, consumer: &Consumer) -> Step {
        match self.consumer(&consumer.key)? {
            Some(here) if same_consumer(&here, consumer) => Ok(Ok(Taken::Unchanged)),
            Some(_) => Ok(Err(ImportRefusal::Differs)),
            None => {
                self.put_consumer(consumer)?;
                Ok(Ok(Taken::Added))
            }
        }
    }

    fn take_user(&self, user: &User) -> Step {
        if self.is_user_removed(&user.id)? {
            return Ok(Ok(Taken::KeptOut));
        }
        if let Some(mut here) = self.user(&user.id)? {
            // A login may have hashed the same password anew since the list was made.
            if let Some(hash) = &user.password_hash
                && self.is_replaced_hash(&user.id, hash)?
            {
                here.password_hash = Some(hash.clone());
            }
            return Ok(if same_user(&here, user) {
                Ok(Taken::Unchanged)
            } else {
                Err(ImportRefusal::Differs)
            });
        }
        if self.user_by_name(&user.name)?.is_some() {
            return Ok(Err(ImportRefusal::NameTaken));
        }
        self.insert_user(user)?;
        if self.password_costs()?.len() > MAX_PASSWORD_COSTS {
            return Ok(Err(ImportRefusal::TooManyCosts));
        }
        Ok(Ok(Taken::Added))
    }

    fn take_access_token(&self, token: &AccessToken) -> Step {
        if let Some(here) = self.access_token(&token.token)? {
            if !same_access_token(&here, token) {
                return Ok(Err(ImportRefusal::Differs));
            }
            if token.revoked_at.is_some() {
                return Ok(Ok(self.revoke_taken(&here, Some(token))?));
            }
            return Ok(Ok(Taken::Unchanged));
        }
        if self.is_access_token_taken(&token.token)? {
            return Ok(Ok(Taken::KeptOut));
        }
        if self.consumer(&token.consumer)?.is_none() {
            return Ok(Err(ImportRefusal::ConsumerUnknown));
        }
        if token.revoked_at.is_none() {
            match self.user(&token.user)? {
                Some(user) if user.enabled => {}
                Some(_) => return Ok(Err(ImportRefusal::UserDisabled)),
                None if self.is_user_removed(&token.user)? => return Ok(Ok(Taken::KeptOut)),
                None => return Ok(Err(ImportRefusal::UserUnknown)),
            }
        }
        self.insert_access_token(token)?;
        Ok(Ok(Taken::Added))
    }

    /// Revokes a token that is here, at the time that the list tells, else now.
    fn revoke_taken(
        &self,
        here: &AccessToken,
        listed: Option<&AccessToken>,
    ) -> Result<Taken, StoreError> {
        if here.revoked_at.is_some() {
            return Ok(Taken::Unchanged);
        }
        let at = listed.and_then(|listed| listed.revoked_at).map(seconds);
        self.run(
            "UPDATE access_tokens SET revoked_at = coalesce(?2, unixepoch()) WHERE token = ?1",
            params![here.token, at],
        )?;
        self.changed(&Change::AccessToken(here.token.clone()))?;
        Ok(Taken::Revoked)
    }
}
