//! The use cases of a store on an SQL engine, the same for SQLite and PostgreSQL.
//!
//! A use case is a function over [`Tx`], one transaction; [`Engine`] runs many of them beside each other. Statements have
//! their parameters as `$1`, in both engines; those that the engines word differently are in [`Statements`].

use std::{borrow::Cow, pin::Pin, time::Duration};

use super::{
    StoreError, StoreFuture,
    port::{Change, NO_OTHER_WINDOW, NoncesKept},
    record::{AccessToken, Consumer},
    rows::Read,
    seal::Seal,
};
use crate::{
    clock::UnixTime,
    names::ConsumerKey,
    nonce::{NonceUse, SharedWindow},
};

mod consumers;
mod feed;
mod flow;
pub(super) mod sealing;
mod sessions;
mod store;
pub(super) mod tokens;
mod transfer;
pub(super) mod users;

pub(super) use flow::FIND_REQUEST_TOKEN;

/// A statement's parameter.
pub(super) trait Param: rusqlite::ToSql + tokio_postgres::types::ToSql + Sync {}
impl<T: rusqlite::ToSql + tokio_postgres::types::ToSql + Sync> Param for T {}

/// The parameters of a statement.
pub(super) type Params<'p> = &'p [&'p dyn Param];

/// Statements that engines word differently.
pub(super) struct Statements {
    /// Finds the user of the login name `$1`, without regard to ASCII case.
    pub(super) user_by_name: &'static str,
    /// Keeps others from writing the user `$1` until the transaction ends.
    pub(super) lock_user: &'static str,
    /// [`FIND_REQUEST_TOKEN`], which keeps others from deciding on the token until the transaction ends.
    pub(super) lock_request_token: &'static str,
    /// Inserts an access token whose identifier is not in use. On an engine without [`Tx::is_token_removed`] it also checks
    /// that the identifier was not in use before.
    pub(super) insert_token: &'static str,
    /// Revokes the token `$1` at the time `$2`, else now.
    pub(super) revoke_at: &'static str,
    /// Finds the `position` of the last change.
    pub(super) feed: &'static str,
    /// Finds the time `local_nonces_until`.
    pub(super) local_nonces_until: &'static str,
    /// Raises that time to `$1`.
    pub(super) raise_local_nonces_until: &'static str,
    /// Finds the time `imported_nonces_until`.
    pub(super) imported_nonces_until: &'static str,
    /// Raises that time to `$1`.
    pub(super) raise_imported_nonces_until: &'static str,
    /// Finds the `id` of the store and the last timestamp that may have been accepted, as `accepted_until`.
    pub(super) origin: &'static str,
    /// Deletes at most `$2` request tokens, sessions and changes from before `$1`; the oldest changes first, so that the
    /// feed never has a hole that a reader takes for an end.
    pub(super) purge: [&'static str; 3],
}

/// A transaction under way.
pub(super) trait Tx: Send {
    /// The statements of the engine.
    const STATEMENTS: Statements;

    /// How secrets are kept.
    fn seal(&self) -> &Seal;

    /// Runs a statement; returns how many rows it touched.
    fn execute(
        &mut self,
        sql: &'static str,
        params: Params<'_>,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Reads all rows.
    fn rows<T: Send>(
        &mut self,
        sql: &'static str,
        params: Params<'_>,
        read: Read<T>,
    ) -> impl Future<Output = Result<Vec<T>, StoreError>> + Send;

    /// Reads the only row.
    fn row<T: Send>(
        &mut self,
        sql: &'static str,
        params: Params<'_>,
        read: Read<T>,
    ) -> impl Future<Output = Result<Option<T>, StoreError>> + Send;

    /// Whether the statement, which returns at most one row, returns it.
    fn has_row(
        &mut self,
        sql: &'static str,
        params: Params<'_>,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        async move { Ok(self.row(sql, params, |_, _| Ok(())).await?.is_some()) }
    }

    /// Reports a change to every cache on the store, with the commit.
    fn changed(&mut self, change: Change) -> Result<(), StoreError>;

    /// Keeps no more changes than are reported one by one: caches that find so many, or a gap, take every record for
    /// changed.
    fn drop_changes(&mut self) -> Result<(), StoreError>;

    /// Forgets the changes of a part that was rolled back.
    fn forget_changes(&mut self) {}

    /// Writes last uses.
    fn record_uses(
        &mut self,
        uses: &[(String, UnixTime)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Reads the rows of `sql` whose key, compared by `= ANY($1)`, is one of `keys`.
    fn rows_among<T: Send>(
        &mut self,
        sql: &'static str,
        keys: &[String],
        read: Read<T>,
    ) -> impl Future<Output = Result<Vec<T>, StoreError>> + Send;

    /// Keeps access tokens; `false` if an identifier is in use or was before.
    fn insert_tokens(
        &mut self,
        tokens: &[&AccessToken],
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Whether the identifier of an access token was in use before, if that is not for [`Statements::insert_token`] to find.
    fn is_token_removed(&self, _token: &str) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Gives a step of an import its time.
    fn in_time<T: Send>(
        step: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        step
    }

    /// Whether a caller's text can be in a column.
    fn is_text(_text: &str) -> bool {
        true
    }

    /// A name as a column holds it.
    fn kept_text(name: &str) -> Cow<'_, str> {
        Cow::Borrowed(name)
    }

    /// Finds a consumer of an existing system in the same database.
    fn consumer_outside(
        &mut self,
        _key: &ConsumerKey,
    ) -> impl Future<Output = Result<Option<Consumer>, StoreError>> + Send {
        async { Ok(None) }
    }

    /// Finds an access token of an existing system in the same database.
    fn access_token_outside(
        &mut self,
        _token: &str,
    ) -> impl Future<Output = Result<Option<AccessToken>, StoreError>> + Send {
        async { Ok(None) }
    }

    /// Succeeds if a request token may be dropped because its consumer has been removed.
    fn check_consumer_outside(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// How use cases run beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// One statement, or several that need not see the same state; writes nothing that others rely on.
    Single,
    /// Several statements that see one state.
    Snapshot,
    /// Writes tokens or sessions: beside others of its kind, which lock the rows they decide on, and never beside
    /// [`Mode::Alone`]. So consumers and users do not change while it looks at them.
    Shared,
    /// Changes consumers or users, or many records: alone among the writers of all processes.
    Alone,
}

/// A use case under way.
pub(super) type Work<'t, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 't>>;

/// A store on an SQL engine. What is not documented here is as in [`Store`](super::Store).
pub(super) trait Engine: Send + Sync + 'static {
    /// Its transactions.
    type Tx: Tx;
    /// How long a caller waits.
    const TIMEOUT: Duration;
    /// How long a caller waits for a change of a consumer or user, which may touch many tokens.
    const ADMIN_TIMEOUT: Duration;
    /// How long a caller waits for an export or an import. They may take long, and the command shows its progress.
    const LONG_TIMEOUT: Duration = Duration::from_secs(7 * 86_400);

    /// Runs a use case in a transaction that is durable when the future is ready. A fault changes nothing.
    fn ask<T: Send + 'static>(
        &self,
        mode: Mode,
        timeout: Duration,
        work: impl for<'t> FnOnce(&'t mut Self::Tx) -> Work<'t, T> + Send + 'static,
    ) -> StoreFuture<'_, T>;

    /// Overwrites what the engine's files still hold of secrets that were in clear.
    fn wipe(&self) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Revokes an access token of an existing system; `false` if there is none.
    fn revoke_outside<'a>(&'a self, _token: &'a str) -> StoreFuture<'a, bool> {
        Box::pin(async { Ok(false) })
    }

    fn findings(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn shared_window(&self) -> Option<Box<dyn SharedWindow>> {
        None
    }

    fn nonce_used<'a>(&'a self, _nonce: NonceUse<'a>) -> StoreFuture<'a, Option<bool>> {
        Box::pin(async { Ok(None) })
    }

    fn nonces_kept(&self) -> StoreFuture<'_, NoncesKept> {
        Box::pin(async { Err(NO_OTHER_WINDOW) })
    }

    fn keep_nonces_elsewhere(&self) -> StoreFuture<'_, ()> {
        Box::pin(async { Err(NO_OTHER_WINDOW) })
    }

    fn notified(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn record_failed_login(&self, _report: String) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}
