//! The store in PostgreSQL: for several replicas, on an engine that operators run already.
//!
//! Every use case is a method of `Tx`, one transaction on one connection; what is here only chooses how it runs
//! beside others. Nothing is retried: the locks of `tx::Mode` leave no serialization failures and no deadlocks.

use std::{pin::Pin, sync::Arc, time::Duration};

use thiserror::Error;
use tokio::time::timeout;

use crate::{
    clock::UnixTime,
    names::{ConsumerKey, UserId},
    nonce::{NonceUse, OnLost, SharedWindow},
    secret::Secret,
    store::{
        Store, StoreError, StoreFuture,
        port::{
            Account, Added, Admitted, Change, Changes, Decided, Decision, Exchange, Exchanged,
            NoncesKept, OpenSessions, ResealFrom, Resealed, TokenFilter, VerifiedPassword,
        },
        record::{AccessToken, Consumer, ConsumerUpdate, OutsideUser, RequestToken, Session, User},
        remote::Remote,
        rows::seconds,
        seal::Seal,
        transfer::{Import, Record, Sender, Source},
    },
};

mod changes;
mod consumers;
mod flow;
mod lookup;
mod nonces;
mod open;
mod pool;
mod schema;
mod sessions;
mod tls;
mod tokens;
mod transfer;
mod tx;
mod url;
mod users;

pub use lookup::{Lookup, LookupError};
pub use open::{OpenError, Params};
pub use url::{Url, UrlError};

use pool::Pool;
use tx::{Mode, Tx};

/// A store in PostgreSQL.
pub struct PostgresStore {
    remote: Remote,
    pool: Arc<Pool>,
    seal: Arc<Seal>,
    lookup: Lookup,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}

/// Why the store did not answer, other than PostgreSQL's own reasons.
#[derive(Debug, Error)]
enum Trouble {
    #[error("PostgreSQL did not answer in time")]
    TimedOut,
    #[error("too many callers wait for PostgreSQL")]
    Overloaded,
    #[error("another process has migrated or encrypted the store since it was opened; restart")]
    Replaced,
    #[error(transparent)]
    Connect(#[from] tokio_postgres::Error),
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        Self::Unavailable(Box::new(trouble))
    }
}

/// How long a caller waits: with the wait for a connection, less than a second.
const PATIENCE: Duration = Duration::from_millis(700);
/// How long a caller waits for a change of a consumer or user, which may touch many tokens.
const ADMIN_PATIENCE: Duration = Duration::from_secs(5);
/// How long a caller waits for an export or an import, which may have any length: whoever began it sees its progress.
const LONG_PATIENCE: Duration = Duration::from_secs(7 * 86_400);
/// How long a step of an export or an import may take.
const STEP_PATIENCE: Duration = Duration::from_secs(600);
/// Uses that are written in one statement.
const USES: usize = 5_000;

type Work<'t, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 't>>;

impl PostgresStore {
    /// Runs a use case. If the future is dropped or its time is up, the connection is closed and the transaction with it.
    fn ask<T: Send + 'static>(
        &self,
        mode: Mode,
        patience: Duration,
        work: impl for<'t> FnOnce(&'t mut Tx) -> Work<'t, T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let (pool, seal) = (Arc::clone(&self.pool), Arc::clone(&self.seal));
        self.remote.run(async move {
            let attempt = async {
                let _permit = pool.permit().await?;
                let done = async {
                    let mut tx = Tx::new(pool.take().await?, seal);
                    tx.begin(mode, patience).await?;
                    let value = work(&mut tx).await?;
                    tx.commit(mode).await?;
                    // After an error the transaction ends with its connection, which is then not used again.
                    pool.put_back(tx.conn);
                    Ok(value)
                };
                timeout(patience, done)
                    .await
                    .unwrap_or_else(|_| Err(Trouble::TimedOut.into()))
            };
            attempt.await.map_err(|error| pool.failed(error))
        })
    }
}

/// Runs `$work`, a method of `Tx` with owned arguments, as a use case.
macro_rules! ask {
    ($store:ident, $mode:ident, $patience:expr, |$tx:ident| $work:expr) => {
        $store.ask(Mode::$mode, $patience, move |$tx| {
            Box::pin(async move { $work.await })
        })
    };
}

impl Store for PostgresStore {
    fn ping(&self) -> StoreFuture<'_, ()> {
        ask!(self, Single, PATIENCE, |tx| tx.ping())
    }

    fn findings(&self) -> StoreFuture<'_, Vec<String>> {
        ask!(self, Single, PATIENCE, |tx| tx.findings())
    }

    fn notified(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.pool.changed.notified())
    }

    fn shared_window(&self, on_lost: OnLost) -> Option<Box<dyn SharedWindow>> {
        Some(self.open_window(on_lost))
    }

    fn nonce_used<'a>(&'a self, nonce: NonceUse<'a>) -> StoreFuture<'a, Option<bool>> {
        let (second, digest) = (seconds(UnixTime(nonce.timestamp)), nonce.digest());
        ask!(self, Single, PATIENCE, |tx| tx.nonce_used(second, digest))
    }

    fn nonces_kept(&self) -> StoreFuture<'_, NoncesKept> {
        ask!(self, Single, PATIENCE, |tx| tx.nonces_kept())
    }

    fn keep_nonces_elsewhere(&self) -> StoreFuture<'_, ()> {
        ask!(self, Shared, PATIENCE, |tx| tx.keep_nonces_elsewhere())
    }

    fn consumer<'a>(&'a self, key: &'a ConsumerKey) -> StoreFuture<'a, Option<Consumer>> {
        let (key, lookup) = (key.clone(), self.lookup);
        ask!(self, Single, PATIENCE, |tx| tx
            .consumer_anywhere(lookup, &key))
    }

    fn access_token<'a>(&'a self, token: &'a str) -> StoreFuture<'a, Option<AccessToken>> {
        let (token, lookup) = (token.to_owned(), self.lookup);
        ask!(self, Single, PATIENCE, |tx| tx
            .access_token_anywhere(lookup, &token))
    }

    fn request_token<'a>(&'a self, token: &'a str) -> StoreFuture<'a, Option<RequestToken>> {
        let token = token.to_owned();
        ask!(self, Single, PATIENCE, |tx| tx.request_token(&token))
    }

    fn issue_request_token(&self, token: RequestToken) -> StoreFuture<'_, ()> {
        let lookup = self.lookup;
        ask!(self, Shared, PATIENCE, |tx| tx
            .issue_request_token_to(lookup, &token))
    }

    fn decide<'a>(
        &'a self,
        token: &'a str,
        session: &'a [u8; 32],
        decision: Decision,
        now: UnixTime,
    ) -> StoreFuture<'a, Decided> {
        let (token, session) = (token.to_owned(), *session);
        ask!(self, Shared, PATIENCE, |tx| tx
            .decide(&token, &session, &decision, now))
    }

    fn exchange(&self, exchange: Exchange) -> StoreFuture<'_, Exchanged> {
        ask!(self, Shared, PATIENCE, |tx| tx.exchange(&exchange))
    }

    fn issue_access_token(&self, token: AccessToken) -> StoreFuture<'_, Added> {
        ask!(self, Shared, PATIENCE, |tx| tx.issue_access_token(&token))
    }

    fn revoke_access_token<'a>(&'a self, token: &'a str, now: UnixTime) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let own = token.to_owned();
            let is_revoked = ask!(self, Shared, PATIENCE, |tx| tx
                .revoke_access_token(&own, now))
            .await?;
            if is_revoked || self.lookup.token_sql.is_none() {
                return Ok(is_revoked);
            }
            let is_found = self.access_token(token).await?.is_some();
            if is_found {
                let outside = token.to_owned();
                ask!(self, Shared, PATIENCE, |tx| tx.revoke_outside(&outside)).await?;
            }
            Ok(is_found)
        })
    }

    fn access_tokens<'a>(
        &'a self,
        filter: &'a TokenFilter,
        after: Option<&'a str>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<AccessToken>> {
        let (filter, after) = (filter.clone(), after.map(str::to_owned));
        ask!(self, Single, PATIENCE, |tx| tx.access_tokens(
            &filter,
            after.as_deref(),
            limit
        ))
    }

    /// Writes many uses in several transactions: each is written or not, and all can be written again.
    fn record_uses(&self, mut uses: Vec<(String, UnixTime)>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            while !uses.is_empty() {
                let some = uses.split_off(uses.len().saturating_sub(USES));
                ask!(self, Shared, ADMIN_PATIENCE, |tx| tx.record_uses(&some)).await?;
            }
            Ok(())
        })
    }

    fn add_consumer(&self, consumer: Consumer) -> StoreFuture<'_, Added> {
        ask!(self, Alone, ADMIN_PATIENCE, |tx| tx.add_consumer(&consumer))
    }

    fn update_consumer<'a>(
        &'a self,
        key: &'a ConsumerKey,
        update: ConsumerUpdate,
    ) -> StoreFuture<'a, Option<Consumer>> {
        let key = key.clone();
        ask!(self, Alone, ADMIN_PATIENCE, |tx| tx
            .change_consumer(&key, |consumer| update.apply(consumer)))
    }

    fn rotate_consumer_secret<'a>(
        &'a self,
        key: &'a ConsumerKey,
        secret: Secret,
        previous_until: Option<UnixTime>,
    ) -> StoreFuture<'a, Option<Consumer>> {
        let key = key.clone();
        ask!(self, Alone, ADMIN_PATIENCE, |tx| tx
            .change_consumer(&key, |consumer| consumer
                .rotate_secret(secret, previous_until)))
    }

    fn remove_consumer<'a>(&'a self, key: &'a ConsumerKey) -> StoreFuture<'a, bool> {
        let key = key.clone();
        ask!(self, Alone, ADMIN_PATIENCE, |tx| tx.remove_consumer(&key))
    }

    fn consumers<'a>(
        &'a self,
        after: Option<&'a ConsumerKey>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Consumer>> {
        let after = after.cloned();
        ask!(self, Single, PATIENCE, |tx| tx
            .consumers(after.as_ref(), limit))
    }

    fn add_user(&self, user: User) -> StoreFuture<'_, Added> {
        ask!(self, Alone, ADMIN_PATIENCE, |tx| tx.add_user(&user))
    }

    fn admit_user(&self, user: OutsideUser, now: UnixTime) -> StoreFuture<'_, Admitted> {
        ask!(self, Alone, PATIENCE, |tx| tx.admit_user(user, now))
    }

    fn user<'a>(&'a self, id: &'a UserId) -> StoreFuture<'a, Option<User>> {
        let id = id.clone();
        ask!(self, Single, PATIENCE, |tx| tx.user(&id))
    }

    fn user_by_name<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<User>> {
        let name = name.to_owned();
        ask!(self, Single, PATIENCE, |tx| tx.user_by_name(&name))
    }

    fn account<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Account> {
        let name = name.to_owned();
        ask!(self, Snapshot, PATIENCE, |tx| tx.account(&name))
    }

    fn set_password<'a>(&'a self, id: &'a UserId, hash: Secret) -> StoreFuture<'a, bool> {
        let id = id.clone();
        ask!(self, Alone, ADMIN_PATIENCE, |tx| tx
            .set_password(&id, &hash))
    }

    fn set_user_enabled<'a>(
        &'a self,
        id: &'a UserId,
        enabled: bool,
        now: UnixTime,
    ) -> StoreFuture<'a, bool> {
        let id = id.clone();
        ask!(self, Alone, ADMIN_PATIENCE, |tx| tx
            .set_user_enabled(&id, enabled, now))
    }

    fn remove_user<'a>(&'a self, id: &'a UserId, now: UnixTime) -> StoreFuture<'a, bool> {
        let id = id.clone();
        ask!(self, Alone, ADMIN_PATIENCE, |tx| tx.remove_user(&id, now))
    }

    fn users<'a>(&'a self, after: Option<&'a UserId>, limit: u32) -> StoreFuture<'a, Vec<User>> {
        let after = after.cloned();
        ask!(self, Single, PATIENCE, |tx| tx.users(after.as_ref(), limit))
    }

    fn open_session(&self, session: Session, verified: VerifiedPassword) -> StoreFuture<'_, bool> {
        ask!(self, Shared, PATIENCE, |tx| tx
            .open_session(&session, &verified))
    }

    fn change_password(
        &self,
        session: Session,
        verified: Secret,
        hash: Secret,
    ) -> StoreFuture<'_, bool> {
        ask!(self, Alone, PATIENCE, |tx| tx
            .change_password(&session, &verified, &hash))
    }

    fn session<'a>(
        &'a self,
        id_hash: &'a [u8; 32],
        now: UnixTime,
    ) -> StoreFuture<'a, Option<(Session, User)>> {
        let id_hash = *id_hash;
        ask!(self, Snapshot, PATIENCE, |tx| tx.session(&id_hash, now))
    }

    fn close_session<'a>(&'a self, id_hash: &'a [u8; 32]) -> StoreFuture<'a, ()> {
        let id_hash = *id_hash;
        ask!(self, Shared, PATIENCE, |tx| tx.close_session(&id_hash))
    }

    fn open_sessions<'a>(
        &'a self,
        user: &'a UserId,
        now: UnixTime,
    ) -> StoreFuture<'a, OpenSessions> {
        let user = user.clone();
        ask!(self, Single, PATIENCE, |tx| tx.open_sessions(&user, now))
    }

    fn close_sessions<'a>(&'a self, user: &'a UserId) -> StoreFuture<'a, ()> {
        let user = user.clone();
        ask!(self, Shared, PATIENCE, |tx| tx.close_sessions(&user))
    }

    fn export_to(&self, to: Sender<Record>) -> StoreFuture<'_, ()> {
        ask!(self, Snapshot, LONG_PATIENCE, |tx| tx.export_to(&to))
    }

    fn import_from(&self, source: Source) -> StoreFuture<'_, Import> {
        ask!(self, Alone, LONG_PATIENCE, |tx| tx.import(source()))
    }

    fn reseal(&self, from: ResealFrom, look: bool) -> StoreFuture<'_, Resealed> {
        ask!(self, Shared, ADMIN_PATIENCE, |tx| tx.reseal(&from, look))
    }

    fn record_command(&self, record: String) -> StoreFuture<'_, ()> {
        let record = Change::Command(record);
        ask!(self, Shared, PATIENCE, |tx| async {
            tx.changed(record);
            Ok(())
        })
    }

    fn record_failed_login(&self, report: String) -> StoreFuture<'_, ()> {
        let report = Change::FailedLogin(report);
        ask!(self, Shared, PATIENCE, |tx| async {
            tx.changed(report);
            Ok(())
        })
    }

    fn changes_since(&self, position: u64) -> StoreFuture<'_, Changes> {
        ask!(self, Snapshot, PATIENCE, |tx| tx.changes_since(position))
    }

    fn local_nonces_until(&self) -> StoreFuture<'_, Option<UnixTime>> {
        ask!(self, Single, PATIENCE, |tx| tx.local_nonces_until())
    }

    fn set_local_nonces_until(&self, until: UnixTime) -> StoreFuture<'_, ()> {
        ask!(self, Shared, PATIENCE, |tx| tx
            .set_local_nonces_until(until))
    }

    fn purge(&self, now: UnixTime) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            while !ask!(self, Shared, ADMIN_PATIENCE, |tx| tx.purge(now)).await? {}
            Ok(())
        })
    }
}
