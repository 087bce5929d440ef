//! The port that every store backend implements: use cases, not tables.
//!
//! Each method is one atomic step. A method that changes something returns only once the change is durable
//! (it survives a power loss as far as the backend's medium does) and visible to every other process on the store.
//! Times come from the caller, so that tests can move them.

use std::{future::Future, num::NonZeroU32, pin::Pin};

use thiserror::Error;
use tokio_postgres::error::SqlState;

use super::{
    record::{AccessToken, Consumer, ConsumerUpdate, OutsideUser, RequestToken, Session, User},
    remote::StillDown,
    seal::Unopened,
    transfer::{Export, Import, ImportList},
};
use crate::{
    clock::UnixTime,
    names::{ConsumerKey, UserId},
    nonce::{NonceUse, SharedWindow},
    secret::Secret,
};

/// What a store method returns: a future that may move between threads.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A fault of the store: nothing is known about the record asked for, and nothing was changed, unless the
/// store was just making the change durable when the caller stopped waiting for it.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The backend cannot be reached, is full, or is too slow.
    #[error("the store is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What the backend returned is not a record of ours.
    #[error("the store holds a broken record: {0}")]
    Broken(&'static str),
    /// A secret is sealed with a key that this process does not have.
    #[error(transparent)]
    Unopened(Box<Unopened>),
}

impl From<Unopened> for StoreError {
    fn from(error: Unopened) -> Self {
        Self::Unopened(error.into())
    }
}

/// Whether this is one of many errors of an outage, whose beginning and end the store logs: to be logged at most for
/// debugging.
#[must_use]
pub fn is_of_logged_outage(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<StillDown>())
}

/// Whether the engine's disk takes no more.
#[must_use]
pub fn is_disk_full(error: &(dyn std::error::Error + 'static)) -> bool {
    use rusqlite::ErrorCode::{DiskFull, SystemIoFailure};
    let is_full = |error: &(dyn std::error::Error + 'static)| {
        let sqlite = error.downcast_ref::<rusqlite::Error>();
        let sqlite = sqlite.and_then(rusqlite::Error::sqlite_error_code);
        let postgres = error.downcast_ref::<tokio_postgres::Error>();
        matches!(sqlite, Some(DiskFull | SystemIoFailure))
            || postgres.and_then(tokio_postgres::Error::code) == Some(&SqlState::DISK_FULL)
    };
    std::iter::successors(Some(error), |error| error.source()).any(is_full)
}

/// The outcome of registering something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// It is registered.
    Added,
    /// The key, id or name is taken, or an id that was used before.
    Taken,
}

/// The outcome of [`Store::update_consumer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Updated {
    /// The consumer as it is now.
    Consumer(Box<Consumer>),
    /// It would be restricted to its RSA key and have none, see [`Consumer::can_sign`]; nothing changed.
    CannotSign,
    /// There is no such consumer.
    Unknown,
}

/// The outcome of [`Store::admit_user`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admitted {
    /// The user as recorded now, disabled ones too.
    User(User),
    /// The id is one of a removed user; nothing changed.
    Removed,
    /// The name is another user's; nothing changed.
    NameTaken,
}

/// The user's decision on the consent page.
#[derive(Debug, Clone)]
pub enum Decision {
    /// The user lets the consumer act.
    Allow {
        /// What the consumer must show at the exchange.
        verifier: Secret,
        /// Dialect `legacy`: the token put on the redirect.
        redirect_token: Option<String>,
        /// Until when the exchange may happen.
        expires_at: UnixTime,
    },
    /// The user refuses.
    Deny,
}

/// The outcome of [`Store::decide`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// The decision stands.
    Recorded,
    /// The token was decided, voided or exchanged before; nothing changed.
    AlreadyDecided,
    /// The token is expired; nothing changed.
    Expired,
    /// There is no such token or session, or the consumer or the user is gone or disabled.
    Unknown,
}

/// What [`Store::exchange`] is asked.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The request token, or for dialect `legacy` the token of the redirect.
    pub token: String,
    /// The consumer that signed.
    pub consumer: ConsumerKey,
    /// The verifier as the consumer sent it; for an out-of-band token already without spaces and hyphens.
    pub verifier: Secret,
    /// The time now.
    pub now: UnixTime,
    /// The identifier of the access token to give out.
    pub access_token: String,
    /// Its secret.
    pub access_secret: Secret,
    /// From when on it is expired.
    pub expires_at: Option<UnixTime>,
}

/// The outcome of [`Store::exchange`], checked in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exchanged {
    /// This consumer has no such request token, or too many wrong verifiers voided it, or its user is gone or disabled.
    Unknown,
    /// The request token is expired.
    Expired,
    /// It was exchanged before.
    Used,
    /// The user has not decided.
    Undecided,
    /// The user refused.
    Denied,
    /// The verifier is wrong; counted, and the fifth voids the token.
    WrongVerifier,
    /// The access token is given out, the request token used up.
    Exchanged {
        /// What was given out.
        access_token: AccessToken,
        /// The user it acts for.
        user: Box<User>,
    },
}

/// Wrong verifiers, under a right signature, after which a request token is void.
pub const MAX_WRONG_VERIFIERS: u32 = 5;

/// What has been changed in the store, for caches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A consumer was added, changed or removed.
    Consumer(ConsumerKey),
    /// An access token was given out, revoked or removed; one that went with its consumer is covered by the
    /// change of the consumer, one that ended with its user is named beside the change of the user.
    AccessToken(String),
    /// A user was changed or removed: its sessions may have ended.
    User(UserId),
    /// No change: a command has left a record for the log, see [`Store::record_command`].
    Command(String),
    /// No change: a login has failed at some process, see [`Store::record_failed_login`].
    FailedLogin(String),
}

/// The answer of [`Store::changes_since`].
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The position to ask from next time.
    pub position: u64,
    /// What changed, oldest first.
    pub changes: Vec<Change>,
    /// `true`: changes before these have been dropped already, so every cached record is in doubt.
    pub incomplete: bool,
}

/// The password that a login has verified, for [`Store::open_session`].
#[derive(Debug, Clone, Default)]
pub struct VerifiedPassword {
    /// The user's password hash as it was read for the check; `None` if the user had none, because somebody else
    /// vouches for the login.
    pub hash: Option<Secret>,
    /// The same password hashed at our own cost, to take the place of `hash`.
    pub rehashed: Option<Secret>,
}

/// The sessions of one user that are not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenSessions {
    /// How many there are.
    pub count: u64,
    /// When the oldest was opened; `None` if there is none.
    pub since: Option<UnixTime>,
}

/// What a login needs to know of the accounts, as of one moment.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// The user of that name, disabled ones too.
    pub user: Option<User>,
    /// The costs of all stored password hashes, each once: of every hash the part in front of its salt.
    pub costs: Vec<String>,
}

/// Which window the nonces that replicas share were kept in last, as the store has noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoncesKept {
    /// None yet.
    Nowhere,
    /// The store's own.
    Here,
    /// Another one.
    Elsewhere,
}

/// Which access tokens [`Store::access_tokens`] lists and [`Store::revoke_access_tokens`] revokes.
#[derive(Debug, Clone, Default)]
pub struct TokenFilter {
    /// Only those of this user.
    pub user: Option<UserId>,
    /// Only those of this consumer.
    pub consumer: Option<ConsumerKey>,
    /// Only those whose last use, or issue if there was no use, was at this time or before.
    pub unused_since: Option<UnixTime>,
}

/// Where a batch of [`Store::reseal`] begins; the default is the beginning.
#[derive(Debug, Clone, Default)]
pub struct ResealFrom {
    /// The place in the list of columns that hold secrets.
    pub column: usize,
    /// The last record of the batch before, as the backend names it; empty for none.
    pub after: String,
}

/// What one batch of [`Store::reseal`] did.
#[derive(Debug, Default)]
pub struct Resealed {
    /// Secrets that were looked at.
    pub seen: u64,
    /// Of these: not sealed with that key, before the batch.
    pub older: u64,
    /// Of these: sealed with a key that this process does not have, so left as they were. One error is kept.
    pub unopened: Option<(u64, Box<Unopened>)>,
    /// Where the next batch begins; `None`: all secrets have been looked at.
    pub next: Option<ResealFrom>,
}

impl Resealed {
    /// Adds what another batch did, and returns where the next one begins.
    pub fn add(&mut self, batch: Self) -> Option<ResealFrom> {
        self.seen += batch.seen;
        self.older += batch.older;
        if let Some((count, error)) = batch.unopened {
            let before = self.unopened.take().map_or(0, |(before, _)| before);
            self.unopened = Some((before + count, error));
        }
        batch.next
    }
}

pub(super) const NO_OTHER_WINDOW: StoreError =
    StoreError::Broken("this store has no note of where nonces are kept");

/// A token backend.
pub trait Store: Send + Sync + 'static {
    /// Whether the store answers; for readiness.
    fn ping(&self) -> StoreFuture<'_, ()>;
    /// Settings of the engine by which what was acknowledged may be lost, one sentence each.
    fn findings(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    /// The nonce window that all processes on this store share; `None`: the store is for one machine. It lives as long
    /// as the store.
    fn shared_window(&self) -> Option<Box<dyn SharedWindow>> {
        None
    }
    /// Whether a nonce is in [`Self::shared_window`]; `None`: the store has none.
    fn nonce_used<'a>(&'a self, _nonce: NonceUse<'a>) -> StoreFuture<'a, Option<bool>> {
        Box::pin(async { Ok(None) })
    }

    /// Which window was noted last: what it kept is missing in another one.
    fn nonces_kept(&self) -> StoreFuture<'_, NoncesKept> {
        Box::pin(async { Err(NO_OTHER_WINDOW) })
    }
    /// Notes that nonces are kept in a window outside the store from now on; should the store's own be used again, it takes
    /// them for lost.
    fn keep_nonces_elsewhere(&self) -> StoreFuture<'_, ()> {
        Box::pin(async { Err(NO_OTHER_WINDOW) })
    }

    // What verification reads.

    /// Finds a consumer, disabled ones too.
    fn consumer<'a>(&'a self, key: &'a ConsumerKey) -> StoreFuture<'a, Option<Consumer>>;
    /// Finds an access token, expired and revoked ones too.
    fn access_token<'a>(&'a self, token: &'a str) -> StoreFuture<'a, Option<AccessToken>>;
    /// Finds a request token by its identifier or by the token of its redirect, whatever its state.
    fn request_token<'a>(&'a self, token: &'a str) -> StoreFuture<'a, Option<RequestToken>>;

    // The token flow.

    /// Keeps a new request token.
    fn issue_request_token(&self, token: RequestToken) -> StoreFuture<'_, ()>;
    /// Records the decision of the user of a session; of two racing decisions one is recorded. `Unknown` if the session
    /// has ended, or a decision under way while the password changes would outlive it.
    fn decide<'a>(
        &'a self,
        token: &'a str,
        session: &'a [u8; 32],
        decision: Decision,
        now: UnixTime,
    ) -> StoreFuture<'a, Decided>;
    /// Exchanges a request token for an access token; of two racing calls one gets it, the other `Used`.
    fn exchange(&self, exchange: Exchange) -> StoreFuture<'_, Exchanged>;
    /// Keeps an access token that was issued without the flow; `Taken` if the identifier is in use or was before,
    /// or the consumer is unknown, or the user is unknown or disabled.
    fn issue_access_token(&self, token: AccessToken) -> StoreFuture<'_, Added>;
    /// Revokes an access token for good; `false` if there is none. Revoking twice keeps the first time.
    fn revoke_access_token<'a>(&'a self, token: &'a str, now: UnixTime) -> StoreFuture<'a, bool>;
    /// Revokes the access tokens of a user, a consumer or both; returns how many were not revoked before. A filter with
    /// neither revokes nothing.
    fn revoke_access_tokens<'a>(
        &'a self,
        filter: &'a TokenFilter,
        now: UnixTime,
    ) -> StoreFuture<'a, u64>;
    /// Lists access tokens in the order of their identifiers, after `after`, at most `limit`.
    fn access_tokens<'a>(
        &'a self,
        filter: &'a TokenFilter,
        after: Option<&'a str>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<AccessToken>>;
    /// Writes last uses in one batch; an earlier time never replaces a later one. Not reported by `changes_since`.
    fn record_uses(&self, uses: Vec<(String, UnixTime)>) -> StoreFuture<'_, ()>;

    // Consumers.

    /// Registers a consumer.
    fn add_consumer(&self, consumer: Consumer) -> StoreFuture<'_, Added>;
    /// Changes a consumer, unless it could not sign any more.
    fn update_consumer<'a>(
        &'a self,
        key: &'a ConsumerKey,
        update: ConsumerUpdate,
    ) -> StoreFuture<'a, Updated>;
    /// Replaces the secret; the old one verifies until `previous_until`, if given. `None` if there is no consumer.
    fn rotate_consumer_secret<'a>(
        &'a self,
        key: &'a ConsumerKey,
        secret: Secret,
        previous_until: Option<UnixTime>,
    ) -> StoreFuture<'a, Option<Consumer>>;
    /// Removes a consumer with its request tokens and access tokens; `false` if there is none.
    fn remove_consumer<'a>(&'a self, key: &'a ConsumerKey) -> StoreFuture<'a, bool>;
    /// Lists consumers in the order of their keys, after `after`, at most `limit`.
    fn consumers<'a>(
        &'a self,
        after: Option<&'a ConsumerKey>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Consumer>>;
    /// Lists those consumers, in the same way, that were registered at `since` or before and have no access token that was
    /// used or issued later. Calls without a token leave no trace in the store.
    fn unused_consumers<'a>(
        &'a self,
        since: UnixTime,
        after: Option<&'a ConsumerKey>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Consumer>>;

    // Users.

    /// Registers a user; `Taken` also for the id of a removed user.
    fn add_user(&self, user: User) -> StoreFuture<'_, Added>;
    /// Registers a user that an outside login vouches for, or brings the names of one up to date; a disabled user is left
    /// as it is.
    fn admit_user(&self, user: OutsideUser, now: UnixTime) -> StoreFuture<'_, Admitted>;
    /// Finds a user by id.
    fn user<'a>(&'a self, id: &'a UserId) -> StoreFuture<'a, Option<User>>;
    /// Finds a user by login name, without regard to ASCII case.
    fn user_by_name<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<User>>;
    /// Finds who logs in by a name, as [`Store::user_by_name`] does, and what all passwords cost to check.
    fn account<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Account>;
    /// Sets the password hash and ends the user's sessions; `false` if there is no such user.
    fn set_password<'a>(&'a self, id: &'a UserId, hash: Secret) -> StoreFuture<'a, bool>;
    /// Enables or disables a user. Disabling ends sessions, revokes access tokens and voids request tokens that
    /// the user authorized; enabling brings none of them back. `false` if there is no such user.
    fn set_user_enabled<'a>(
        &'a self,
        id: &'a UserId,
        enabled: bool,
        now: UnixTime,
    ) -> StoreFuture<'a, bool>;
    /// Removes a user, as disabling does, and retires the id; `false` if there is no such user.
    fn remove_user<'a>(&'a self, id: &'a UserId, now: UnixTime) -> StoreFuture<'a, bool>;
    /// Lists users in the order of their ids, after `after`, at most `limit`.
    fn users<'a>(&'a self, after: Option<&'a UserId>, limit: u32) -> StoreFuture<'a, Vec<User>>;

    // Browser sessions.

    /// Keeps a session, if its user is enabled and still has the password hash that was verified; else changes nothing
    /// and returns `false`. Together with it, the hash is replaced by [`VerifiedPassword::rehashed`]: sessions go on, and
    /// [`Store::import`] takes the replaced hash for the same content until another password is set.
    ///
    /// The user has at most `most` sessions afterwards: the oldest are ended.
    ///
    /// This is one step with the check, or a login under way while the password changes would leave a session.
    fn open_session(
        &self,
        session: Session,
        verified: VerifiedPassword,
        most: NonZeroU32,
    ) -> StoreFuture<'_, bool>;
    /// Sets another password and keeps a session, which is then the only one of its user, if the user is enabled and still
    /// has the hash `verified`; else changes nothing and returns `false`. Access tokens stay.
    ///
    /// This is one step with the check: of two changes at once, by whomever, neither is lost unnoticed.
    fn change_password(
        &self,
        session: Session,
        verified: Secret,
        hash: Secret,
    ) -> StoreFuture<'_, bool>;
    /// Finds the session that is not ended at `now`, with its enabled user.
    fn session<'a>(
        &'a self,
        id_hash: &'a [u8; 32],
        now: UnixTime,
    ) -> StoreFuture<'a, Option<(Session, User)>>;
    /// Ends a session; one that is not there is no error.
    fn close_session<'a>(&'a self, id_hash: &'a [u8; 32]) -> StoreFuture<'a, ()>;
    /// Counts a user's sessions that are not ended at `now`.
    fn open_sessions<'a>(
        &'a self,
        user: &'a UserId,
        now: UnixTime,
    ) -> StoreFuture<'a, OpenSessions>;
    /// Ends all sessions of a user; no session or no such user is no error.
    fn close_sessions<'a>(&'a self, user: &'a UserId) -> StoreFuture<'a, ()>;

    // Transfer.

    /// Reads all that an export holds, as of one moment.
    fn export(&self) -> StoreFuture<'_, Export>;
    /// Imports all of the records or none. The rules are documented at [`Import`].
    fn import(&self, list: ImportList) -> StoreFuture<'_, Import>;

    // Upkeep.

    /// Seals secrets with the first key, in one short batch; none that changes meanwhile is put back. With `look` those are
    /// counted that are not sealed with the first key.
    fn reseal(&self, from: ResealFrom, look: bool) -> StoreFuture<'_, Resealed>;
    /// Waits until the engine reports that a process may have changed something since the last call; never completes
    /// where the engine reports nothing. A report may be lost: [`Store::changes_since`] is the truth.
    fn notified(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }
    /// Reports what a command did to everyone who follows the feed. It is kept as long as the feed's other entries are.
    fn record_command(&self, record: String) -> StoreFuture<'_, ()>;
    /// Reports a failed login to every process that follows the feed, this one too. A store for one machine, where one
    /// process serves, keeps nothing.
    fn record_failed_login(&self, _report: String) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
    /// What this and every other process changed since `position` (0: only where the feed stands now).
    fn changes_since(&self, position: u64) -> StoreFuture<'_, Changes>;
    /// Up to which time a process that kept its nonces in a local window may have accepted requests;
    /// `None` if there was none yet.
    fn local_nonces_until(&self) -> StoreFuture<'_, Option<UnixTime>>;
    /// Writes that mark; an earlier time never replaces a later one.
    fn set_local_nonces_until(&self, until: UnixTime) -> StoreFuture<'_, ()>;
    /// Up to which timestamp another store, whose records were imported here, may have accepted requests; `None` if none
    /// was imported. Nonces up to it are unknown here.
    fn imported_nonces_until(&self) -> StoreFuture<'_, Option<UnixTime>> {
        Box::pin(async { Ok(None) })
    }
    /// Deletes request tokens and sessions that ended over a day before `now`, and old change records.
    fn purge(&self, now: UnixTime) -> StoreFuture<'_, ()>;
}
