//! The store in one SQLite file: for one machine, with nothing else to run.
//!
//! `serve` and the commands open the same file at the same time. Every use case is a method of `Tx`, one
//! transaction, run on the threads of `threads`; what is here only hands it there.

use std::{path::PathBuf, sync::Arc};

use thiserror::Error;

use crate::{
    clock::UnixTime,
    names::{ConsumerKey, UserId},
    secret::Secret,
    store::{
        Store, StoreError, StoreFuture,
        port::{
            Account, Added, Admitted, Change, Changes, Decided, Decision, Exchange, Exchanged,
            OpenSessions, ResealFrom, Resealed, TokenFilter, VerifiedPassword,
        },
        record::{AccessToken, Consumer, ConsumerUpdate, OutsideUser, RequestToken, Session, User},
        seal::SealKey,
        transfer::{Import, Record, Sender, Source},
    },
};

mod answer;
mod changes;
mod consumers;
mod flow;
mod open;
mod queue;
mod rows;
mod schema;
mod sealing;
mod sessions;
mod threads;
mod tokens;
mod transfer;
mod tx;
mod users;

pub use open::OpenError;

use threads::{LONG_PATIENCE, PATIENCE, Threads};

/// Where the store is and how it keeps secrets.
#[derive(Debug)]
pub struct Params {
    /// The file.
    pub path: PathBuf,
    /// The keys that open secrets, the first of which seals; none: secrets are kept in clear.
    pub keys: Vec<SealKey>,
    /// Whether a file that has secrets in clear, or under another key, is sealed with the first key from now on. Otherwise
    /// it stays as it is, for whoever serves from it without that key could not go on.
    pub begins_sealing: bool,
}

/// A store in an SQLite file.
pub struct SqliteStore {
    threads: Threads,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the file, makes it if it is not there, and migrates it. Blocks, at worst for some seconds while
    /// another process holds the file.
    ///
    /// # Errors
    /// [`OpenError`] tells why; the file is as it was before then.
    pub fn open(params: Params) -> Result<Self, OpenError> {
        let connections = open::open(&params)?;
        let threads =
            Threads::start(connections).map_err(|error| open::failed(&params.path, error))?;
        Ok(Self { threads })
    }
}

/// Why the store did not answer, other than SQLite's own reasons.
#[derive(Debug, Error)]
enum Trouble {
    #[error("the store did not answer in time")]
    TimedOut,
    #[error("too many callers wait for the store")]
    Overloaded,
    #[error("the store's thread gave no answer")]
    Stopped,
    #[error("another process has migrated or encrypted the store since it was opened; restart")]
    Replaced,
    #[error("the transaction failed")]
    Group(#[source] Arc<StoreError>),
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        Self::Unavailable(Box::new(trouble))
    }
}

/// Uses that are written in one transaction: the writer is not held up for long.
const USES: usize = 5_000;

impl Store for SqliteStore {
    fn ping(&self) -> StoreFuture<'_, ()> {
        self.threads.read(PATIENCE, |tx| {
            tx.exists("SELECT 1 FROM meta", []).map(|_| ())
        })
    }

    fn consumer<'a>(&'a self, key: &'a ConsumerKey) -> StoreFuture<'a, Option<Consumer>> {
        let key = key.clone();
        self.threads.read(PATIENCE, move |tx| tx.consumer(&key))
    }

    fn access_token<'a>(&'a self, token: &'a str) -> StoreFuture<'a, Option<AccessToken>> {
        let token = token.to_owned();
        self.threads
            .read(PATIENCE, move |tx| tx.access_token(&token))
    }

    fn request_token<'a>(&'a self, token: &'a str) -> StoreFuture<'a, Option<RequestToken>> {
        let token = token.to_owned();
        self.threads
            .read(PATIENCE, move |tx| tx.request_token(&token))
    }

    fn issue_request_token(&self, token: RequestToken) -> StoreFuture<'_, ()> {
        self.threads
            .write(PATIENCE, move |tx| tx.issue_request_token(&token))
    }

    fn decide<'a>(
        &'a self,
        token: &'a str,
        session: &'a [u8; 32],
        decision: Decision,
        now: UnixTime,
    ) -> StoreFuture<'a, Decided> {
        let (token, session) = (token.to_owned(), *session);
        self.threads.write(PATIENCE, move |tx| {
            tx.decide(&token, &session, &decision, now)
        })
    }

    fn exchange(&self, exchange: Exchange) -> StoreFuture<'_, Exchanged> {
        self.threads
            .write(PATIENCE, move |tx| tx.exchange(&exchange))
    }

    fn issue_access_token(&self, token: AccessToken) -> StoreFuture<'_, Added> {
        self.threads
            .write(PATIENCE, move |tx| tx.issue_access_token(&token))
    }

    fn revoke_access_token<'a>(&'a self, token: &'a str, now: UnixTime) -> StoreFuture<'a, bool> {
        let token = token.to_owned();
        self.threads
            .write(PATIENCE, move |tx| tx.revoke_access_token(&token, now))
    }

    fn access_tokens<'a>(
        &'a self,
        filter: &'a TokenFilter,
        after: Option<&'a str>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<AccessToken>> {
        let (filter, after) = (filter.clone(), after.map(str::to_owned));
        self.threads.read(PATIENCE, move |tx| {
            tx.access_tokens(&filter, after.as_deref(), limit)
        })
    }

    /// Writes many uses in several transactions: each is written or not, and all can be written again.
    fn record_uses(&self, mut uses: Vec<(String, UnixTime)>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            while !uses.is_empty() {
                let some = uses.split_off(uses.len().saturating_sub(USES));
                self.threads
                    .write(PATIENCE, move |tx| tx.record_uses(&some))
                    .await?;
            }
            Ok(())
        })
    }

    fn add_consumer(&self, consumer: Consumer) -> StoreFuture<'_, Added> {
        self.threads
            .write(PATIENCE, move |tx| tx.add_consumer(&consumer))
    }

    fn update_consumer<'a>(
        &'a self,
        key: &'a ConsumerKey,
        update: ConsumerUpdate,
    ) -> StoreFuture<'a, Option<Consumer>> {
        let key = key.clone();
        self.threads
            .write(PATIENCE, move |tx| tx.update_consumer(&key, update))
    }

    fn rotate_consumer_secret<'a>(
        &'a self,
        key: &'a ConsumerKey,
        secret: Secret,
        previous_until: Option<UnixTime>,
    ) -> StoreFuture<'a, Option<Consumer>> {
        let key = key.clone();
        self.threads.write(PATIENCE, move |tx| {
            tx.rotate_consumer_secret(&key, secret, previous_until)
        })
    }

    fn remove_consumer<'a>(&'a self, key: &'a ConsumerKey) -> StoreFuture<'a, bool> {
        let key = key.clone();
        self.threads
            .write(PATIENCE, move |tx| tx.remove_consumer(&key))
    }

    fn consumers<'a>(
        &'a self,
        after: Option<&'a ConsumerKey>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Consumer>> {
        let after = after.cloned();
        self.threads
            .read(PATIENCE, move |tx| tx.consumers(after.as_ref(), limit))
    }

    fn add_user(&self, user: User) -> StoreFuture<'_, Added> {
        self.threads.write(PATIENCE, move |tx| tx.add_user(&user))
    }

    fn admit_user(&self, user: OutsideUser, now: UnixTime) -> StoreFuture<'_, Admitted> {
        self.threads
            .write(PATIENCE, move |tx| tx.admit_user(user, now))
    }

    fn user<'a>(&'a self, id: &'a UserId) -> StoreFuture<'a, Option<User>> {
        let id = id.clone();
        self.threads.read(PATIENCE, move |tx| tx.user(&id))
    }

    fn user_by_name<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<User>> {
        let name = name.to_owned();
        self.threads
            .read(PATIENCE, move |tx| tx.user_by_name(&name))
    }

    fn account<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Account> {
        let name = name.to_owned();
        self.threads.read(PATIENCE, move |tx| tx.account(&name))
    }

    fn set_password<'a>(&'a self, id: &'a UserId, hash: Secret) -> StoreFuture<'a, bool> {
        let id = id.clone();
        self.threads
            .write(PATIENCE, move |tx| tx.set_password(&id, &hash))
    }

    fn set_user_enabled<'a>(
        &'a self,
        id: &'a UserId,
        enabled: bool,
        now: UnixTime,
    ) -> StoreFuture<'a, bool> {
        let id = id.clone();
        self.threads
            .write(PATIENCE, move |tx| tx.set_user_enabled(&id, enabled, now))
    }

    fn remove_user<'a>(&'a self, id: &'a UserId, now: UnixTime) -> StoreFuture<'a, bool> {
        let id = id.clone();
        self.threads
            .write(PATIENCE, move |tx| tx.remove_user(&id, now))
    }

    fn users<'a>(&'a self, after: Option<&'a UserId>, limit: u32) -> StoreFuture<'a, Vec<User>> {
        let after = after.cloned();
        self.threads
            .read(PATIENCE, move |tx| tx.users(after.as_ref(), limit))
    }

    fn open_session(&self, session: Session, verified: VerifiedPassword) -> StoreFuture<'_, bool> {
        self.threads
            .write(PATIENCE, move |tx| tx.open_session(&session, &verified))
    }

    fn change_password(
        &self,
        session: Session,
        verified: Secret,
        hash: Secret,
    ) -> StoreFuture<'_, bool> {
        self.threads.write(PATIENCE, move |tx| {
            tx.change_password(&session, &verified, &hash)
        })
    }

    fn session<'a>(
        &'a self,
        id_hash: &'a [u8; 32],
        now: UnixTime,
    ) -> StoreFuture<'a, Option<(Session, User)>> {
        let id_hash = *id_hash;
        self.threads
            .read(PATIENCE, move |tx| tx.session(&id_hash, now))
    }

    fn close_session<'a>(&'a self, id_hash: &'a [u8; 32]) -> StoreFuture<'a, ()> {
        let id_hash = *id_hash;
        self.threads
            .write(PATIENCE, move |tx| tx.close_session(&id_hash))
    }

    fn open_sessions<'a>(
        &'a self,
        user: &'a UserId,
        now: UnixTime,
    ) -> StoreFuture<'a, OpenSessions> {
        let user = user.clone();
        self.threads
            .read(PATIENCE, move |tx| tx.open_sessions(&user, now))
    }

    fn close_sessions<'a>(&'a self, user: &'a UserId) -> StoreFuture<'a, ()> {
        let user = user.clone();
        self.threads
            .write(PATIENCE, move |tx| tx.close_sessions(&user))
    }

    fn export_to(&self, to: Sender<Record>) -> StoreFuture<'_, ()> {
        self.threads
            .read(LONG_PATIENCE, move |tx| tx.export_to(&to))
    }

    fn import_from(&self, source: Source) -> StoreFuture<'_, Import> {
        Box::pin(async move {
            let records = source();
            let import = self.threads.write(LONG_PATIENCE, |tx| tx.import(records));
            import.await
        })
    }

    fn reseal(&self, from: ResealFrom, look: bool) -> StoreFuture<'_, Resealed> {
        match look {
            true => self
                .threads
                .read(PATIENCE, move |tx| sealing::reseal(tx, &from, look)),
            false => self
                .threads
                .write(PATIENCE, move |tx| sealing::reseal(tx, &from, look)),
        }
    }

    fn record_command(&self, record: String) -> StoreFuture<'_, ()> {
        let record = Change::Command(record);
        self.threads.write(PATIENCE, move |tx| tx.changed(&record))
    }

    fn changes_since(&self, position: u64) -> StoreFuture<'_, Changes> {
        self.threads
            .read(PATIENCE, move |tx| tx.changes_since(position))
    }

    fn local_nonces_until(&self) -> StoreFuture<'_, Option<UnixTime>> {
        self.threads.read(PATIENCE, |tx| tx.local_nonces_until())
    }

    fn set_local_nonces_until(&self, until: UnixTime) -> StoreFuture<'_, ()> {
        self.threads
            .write(PATIENCE, move |tx| tx.set_local_nonces_until(until))
    }

    fn purge(&self, now: UnixTime) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            while !self
                .threads
                .write(PATIENCE, move |tx| tx.purge(now))
                .await?
            {}
            Ok(())
        })
    }
}
