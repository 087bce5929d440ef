//! How a use case runs: steps of the script, what they find, and records as the fields that they take.

use std::sync::Arc;

use redis::{FromRedisValue, cmd};

use super::{
    META, RedisStore,
    link::RedisFault,
    open,
    step::{self, Args, Fields, Row, Step, hex},
};
use crate::{
    names::ConsumerKey,
    secret::Secret,
    store::{
        StoreError,
        port::VerifiedPassword,
        record::{AccessToken, Consumer, Session, User, password_cost},
        rows::{self, Read, dialect_word, digest, json},
        seal::field,
    },
};

/// How often a use case starts anew because another has changed what it had read.
pub(super) const TRIES: u32 = 20;
/// Entries that one run of the script takes or deletes at most: it holds up all others.
pub(super) const CHUNK: usize = 500;

impl RedisStore {
    pub(super) fn step(&self, use_case: &str) -> Step {
        Step::new(open::SCHEMA, &self.sealed.load(), use_case)
    }

    pub(super) async fn run<T: FromRedisValue>(&self, step: Step) -> Result<T, StoreError> {
        let step = Arc::new(step);
        step::read(match self.link.call(Arc::clone(&step)).await {
            Err(error) if self.follows(&error).await => {
                let step = step.sealed(&self.sealed.load());
                self.link.call(Arc::new(step)).await?
            }
            reply => reply?,
        })
    }

    pub(super) async fn run_long<T: FromRedisValue>(&self, step: Step) -> Result<T, StoreError> {
        let step = Arc::new(step);
        step::read(match self.link.long_call(Arc::clone(&step)).await {
            Err(error) if self.follows(&error).await => {
                let step = step.sealed(&self.sealed.load());
                self.link.long_call(Arc::new(step)).await?
            }
            reply => reply?,
        })
    }

    /// Whether a call failed only because another of our keys seals now.
    pub(super) async fn follows(&self, error: &StoreError) -> bool {
        if !step::is_of_stamp(error) {
            return false;
        }
        let mut question = cmd("HMGET");
        question.arg(META).arg("schema").arg("sealed");
        let stamp = self.link.call(question).await.and_then(step::read);
        let Ok((Some(open::SCHEMA), Some(word))) =
            stamp as Result<(Option<u64>, Option<Vec<u8>>), _>
        else {
            return false;
        };
        let follows = self.seal.follows(Some(&word));
        if follows {
            self.sealed.store(Arc::new(word));
        }
        follows
    }

    pub(super) async fn find(
        &self,
        use_case: &str,
        key_column: &'static str,
        key: &str,
    ) -> Result<Option<Row>, StoreError> {
        let fields: Option<Fields> = self.run(self.step(use_case).arg(key)).await?;
        Ok(fields.map(|fields| Row {
            key_column,
            key: key.to_owned(),
            fields,
        }))
    }

    pub(super) async fn list<T>(
        &self,
        step: Step,
        key_column: &'static str,
        read: Read<T>,
    ) -> Result<Vec<T>, StoreError> {
        let found: Vec<(String, Fields)> = self.run(step).await?;
        let rows = found.into_iter().map(|found| row(key_column, found));
        rows.map(|row| read(&row, &self.seal)).collect()
    }

    /// Deletes what belonged to removed consumers.
    pub(super) async fn sweep(&self) -> Result<(), StoreError> {
        while !self.run(self.step("sweep").number(CHUNK as u64)).await? {}
        Ok(())
    }

    pub(super) async fn replace_consumer(
        &self,
        key: &ConsumerKey,
        change: impl Fn(&mut Consumer),
    ) -> Result<Option<Consumer>, StoreError> {
        for _ in 0..TRIES {
            let Some(row) = self.find("consumer", "key", key.as_str()).await? else {
                return Ok(None);
            };
            let mut consumer = rows::consumer(&row, &self.seal)?;
            change(&mut consumer);
            let version = row.fields.get("version").map_or(&b""[..], Vec::as_slice);
            let step = self.step("replace_consumer").arg(version).arg(key.as_str());
            if self
                .run(step.args(self.consumer_fields(&consumer)?))
                .await?
            {
                return Ok(Some(consumer));
            }
        }
        Err(RedisFault::Contended.into())
    }

    /// Opens a session and writes the new hash, if there is one; `is_changed`: it is of another password.
    pub(super) async fn keep_session(
        &self,
        session: Session,
        verified: VerifiedPassword,
        is_changed: bool,
    ) -> Result<bool, StoreError> {
        let id = session.user.as_str();
        for _ in 0..TRIES {
            let Some(row) = self.find("user", "id", id).await? else {
                return Ok(false);
            };
            if rows::user(&row, &self.seal)?.password_hash != verified.hash {
                return Ok(false);
            }
            let seen = row.fields.get("password_hash");
            let step = self
                .step("open_session")
                .arg(hex(&session.id_hash))
                .arg(id)
                .time(session.created_at)
                .time(session.expires_at)
                .arg(seen.map_or(&b""[..], Vec::as_slice))
                .flag(is_changed);
            let step = match &verified.rehashed {
                None => step.arg("").arg("").arg(""),
                Some(hash) => step
                    .arg(self.seal.close(field::USER, id, hash)?)
                    .arg(password_cost(hash))
                    .arg(verified.hash.as_ref().map(digest).unwrap_or_default()),
            };
            match &*self.run::<String>(step).await? {
                "opened" => return Ok(true),
                "again" => {}
                _ => return Ok(false),
            }
        }
        Err(RedisFault::Contended.into())
    }

    pub(super) fn consumer_fields(&self, consumer: &Consumer) -> Result<Args, StoreError> {
        let key = consumer.key.as_str();
        let close = |field, secret: &Secret| self.seal.close(field, key, secret);
        let previous = consumer.previous_secret.as_ref();
        let previous_secret = previous
            .map(|(secret, _)| close(field::CONSUMER_PREVIOUS, secret))
            .transpose()?;
        Ok(Args::default()
            .field("secret", close(field::CONSUMER, &consumer.secret)?)
            .optional("previous_secret", previous_secret)
            .time("previous_until", previous.map(|(_, until)| *until))
            .optional("rsa_public_key", consumer.rsa_public_key.as_ref())
            .field("name", &consumer.name)
            .optional("description", consumer.description.as_ref())
            .optional("website", consumer.website.as_ref())
            .field("callbacks", json(&consumer.callbacks)?)
            .field("permissions", json(&consumer.permissions)?)
            .optional("dialect", dialect_word(consumer.dialect))
            .flag("enforce", consumer.enforce)
            .flag("rsa_only", consumer.rsa_only)
            .flag("enabled", consumer.enabled)
            .time("created_at", consumer.created_at))
    }

    pub(super) fn user_fields(&self, user: &User) -> Result<Args, StoreError> {
        let hash = user.password_hash.as_ref();
        let kept = hash.map(|hash| self.seal.close(field::USER, user.id.as_str(), hash));
        Ok(Args::default()
            .field("name", &user.name)
            .optional("display_name", user.display_name.as_ref())
            .optional("password_hash", kept.transpose()?)
            .optional("password_cost", hash.map(password_cost))
            .flag("enabled", user.enabled)
            .time("created_at", user.created_at))
    }

    /// All but consumer and user, which the script takes as arguments.
    pub(super) fn token_fields(&self, token: &AccessToken) -> Result<Args, StoreError> {
        let secret = self
            .seal
            .close(field::ACCESS_TOKEN, &token.token, &token.secret)?;
        Ok(Args::default()
            .field("secret", secret)
            .field("permissions", json(&token.permissions)?)
            .time("issued_at", token.issued_at)
            .time("expires_at", token.expires_at)
            .time("last_used_at", token.last_used_at)
            .time("revoked_at", token.revoked_at))
    }
}

pub(super) fn row(key_column: &'static str, (key, fields): (String, Fields)) -> Row {
    Row {
        key_column,
        key,
        fields,
    }
}
