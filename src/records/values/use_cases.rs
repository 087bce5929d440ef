//! The arguments and results of the use cases of a store.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    record::{AccessToken, User},
    seal::Unopened,
};
use crate::{
    base::{
        clock::UnixTime,
        secret::Secret,
        text::names::{ConsumerKey, Permission, UserId},
    },
    telemetry::audit::CommandRecord,
};

/// Where a record was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// In the store, whose feed reports its changes.
    Store,
    /// In the application of `store.lookup.url`, which need not report its changes.
    External,
}

/// The outcome of registering something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// It is registered.
    Added,
    /// The key, id or name is taken, or an id that was used before.
    Taken,
}

/// The most consumers that users may ask for.
#[derive(Debug, Clone, Copy)]
pub struct RegistrationBounds {
    /// Those that one user has at once, and asks for within 24 hours.
    pub per_user: u32,
    /// Those that all users ask for within 24 hours.
    pub per_day: u32,
}

/// The outcome of [`Store::ask_for_consumer`](crate::records::store::Store::ask_for_consumer).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// It is registered.
    Registered,
    /// There is a consumer with the key, or there was one.
    Before,
    /// Another consumer has the name.
    NameTaken,
    /// A bound is reached.
    TooMany,
}

/// Looks at a record in the transaction that changes it; if it returns `false`, nothing is changed.
pub type Guard<'a, T> = Option<&'a (dyn Fn(&T) -> bool + Sync)>;

/// The outcome of [`Store::update_consumer`](crate::records::store::Store::update_consumer) and
/// [`Store::update_user`](crate::records::store::Store::update_user).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Updated<T> {
    /// The record as it is now.
    Updated(Box<T>),
    /// The change is not wanted, or would leave a consumer that cannot sign, see
    /// [`Consumer::can_sign`](super::record::Consumer::can_sign), or a user with the name of another one; nothing changed.
    Refused,
    /// There is no such record.
    Unknown,
}

/// The outcome of [`Store::admit_user`](crate::records::store::Store::admit_user).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admitted {
    /// The user as recorded now, disabled ones too.
    User(User),
    /// The id is that of a removed user; nothing changed.
    Removed,
}

/// The outcome of [`Store::issue_own_token`](crate::records::store::Store::issue_own_token).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnToken {
    /// It is kept, and these own tokens before it have ended.
    Issued(Vec<String>),
    /// Its identifier is in use or was before; nothing changed.
    Taken,
    /// The session has ended, the consumer is gone or disabled, or the guard rejects it; nothing changed.
    Refused,
}

/// The outcome of [`Store::issue_request_token`](crate::records::store::Store::issue_request_token).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Issued {
    /// The token is kept.
    Issued,
    /// The consumer has too many open ones; nothing changed.
    TooManyOpen,
}

/// The user's decision on the consent page.
#[derive(Debug, Clone)]
pub enum ConsentDecision {
    /// The user lets the consumer act.
    Allow {
        /// The permissions on the page; those that the token does not ask for are left out.
        permissions: Vec<Permission>,
        /// [`Consumer::shown`](super::record::Consumer::shown) of the consumer on the page; `None`: the user is asked each time.
        shown: Option<String>,
        /// The user is not asked: they have a token that they allowed this consumer, as it is now, with these permissions
        /// or more.
        earlier: Option<Earlier>,
        /// The verifier that the consumer must send at the exchange.
        verifier: Secret,
        /// Dialect `legacy`: the token put on the redirect.
        redirect_token: Option<String>,
        /// The time until which the exchange may happen.
        expires_at: UnixTime,
    },
    /// The user refuses.
    Deny,
}

/// The tokens by which a question is not needed.
#[derive(Debug, Clone, Copy)]
pub struct Earlier {
    /// They were used or issued after this time.
    pub used_after: Option<UnixTime>,
    /// The consumer has got the display name of the user with them.
    pub with_display_name: bool,
}

/// The outcome of [`Store::record_decision`](crate::records::store::Store::record_decision).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// The decision is recorded.
    Recorded,
    /// The token was decided, voided or exchanged before; nothing changed.
    AlreadyDecided,
    /// The token is expired; nothing changed.
    Expired,
    /// The user has to be asked: no [`Earlier`] token has what this one asks for; nothing changed.
    NotAllowedBefore,
    /// There is no such token or session, or the consumer or the user is gone or disabled.
    Unknown,
}

/// The arguments of [`Store::exchange`](crate::records::store::Store::exchange).
#[derive(Debug, Clone)]
pub struct TokenExchange {
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
    /// The time from which it is expired.
    pub expires_at: Option<UnixTime>,
    /// The response has the display name of its user.
    pub with_display_name: bool,
    /// Give out the token again that the user has already allowed the consumer, with these permissions.
    pub reuse: bool,
    /// The most tokens that one user allows one consumer; past it those that were unused for longest end.
    pub most: Option<NonZeroU32>,
    /// The time after which unused tokens expire.
    pub idle: Option<Duration>,
}

/// The outcome of [`Store::exchange`](crate::records::store::Store::exchange), checked in this order.
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
        /// The new token, or one that is given out again.
        access_token: AccessToken,
        /// The user it acts for.
        user: Box<User>,
    },
}

/// Wrong verifiers, under a right signature, after which a request token is void.
pub const MAX_WRONG_VERIFIERS: u32 = 5;

/// A change in the store, for caches; serde writes and reads the columns `kind` and `key`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "key", rename_all = "snake_case")]
pub enum Change {
    /// A consumer was added, changed or removed.
    Consumer(ConsumerKey),
    /// An access token was given out, revoked or removed. The change of a consumer covers its tokens; tokens that ended
    /// with their user are reported in addition to the change of the user.
    AccessToken(String),
    /// A user was changed or removed: its sessions may have ended.
    User(UserId),
    /// No change: a command has left a record for the log, see
    /// [`Store::record_command`](crate::records::store::Store::record_command).
    Command(String),
    /// No change: a login has failed at some process, see
    /// [`Store::record_failed_login`](crate::records::store::Store::record_failed_login).
    FailedLogin(String),
}

/// The answer of [`Store::changes_since`](crate::records::store::Store::changes_since).
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The position to ask from next time.
    pub position: u64,
    /// The changes, oldest first.
    pub changes: Vec<Change>,
    /// `true`: changes before these have been dropped already, so any cached record may be out of date.
    pub incomplete: bool,
}

/// The password that a login has verified, for [`Store::open_session`](crate::records::store::Store::open_session).
#[derive(Debug, Clone, Default)]
pub struct VerifiedPassword {
    /// The user's password hash as it was read for the check; `None` if the user had none, because somebody else
    /// vouches for the login.
    pub hash: Option<Secret>,
    /// The same password hashed at our own cost, to take the place of `hash`.
    pub rehashed: Option<Secret>,
}

/// The facts about accounts that a login needs, as of one moment.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// The user of that name, disabled ones too.
    pub user: Option<User>,
    /// The costs of all stored password hashes, each once: of every hash the part in front of its salt.
    pub costs: Vec<String>,
}

/// The numbers of records that were removed because they had ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// Access tokens.
    pub access_tokens: u64,
    /// Request tokens, without undecided ones.
    pub request_tokens: u64,
    /// Sessions.
    pub sessions: u64,
}

/// The window that last kept the nonces of all replicas, as the store has noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NonceLocation {
    /// None yet.
    Nowhere,
    /// The store's own.
    Here,
    /// Another one, with this id.
    Elsewhere(String),
}

/// The consumers and users to list.
#[derive(Debug, Clone, Default)]
pub struct RecordFilter {
    /// Only those with this text in the key, the id or a name, in any ASCII case.
    pub q: Option<String>,
    /// Only enabled ones, or only disabled ones.
    pub enabled: Option<bool>,
    /// Only consumers with a contact that has this text in it, in any ASCII case.
    pub contact: Option<String>,
    /// Only consumers that were registered at this time or before and have signed no call later.
    pub unused_since: Option<UnixTime>,
    /// Only consumers that have signed a call later than this.
    pub signed_since: Option<UnixTime>,
}

impl RecordFilter {
    /// Those with this text; an empty one is no condition.
    pub fn containing(text: impl Into<String>) -> Self {
        Self {
            q: Some(text.into()).filter(|text: &String| !text.is_empty()),
            ..Self::default()
        }
    }
}

/// An audit record in its place among all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number in the order of the acts.
    pub position: i64,
    /// When it was kept.
    pub at: UnixTime,
    /// The act.
    pub record: CommandRecord,
}

/// The audit records to list; a part that is `None` matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only those about this consumer.
    pub consumer: Option<String>,
    /// Only those about this user.
    pub user: Option<String>,
    /// Only acts by this tool: `command`, `api` or `console`.
    pub actor: Option<String>,
    /// Only acts of this kind.
    pub event: Option<String>,
    /// Only acts at this time or later.
    pub since: Option<UnixTime>,
    /// Only acts before this time.
    pub until: Option<UnixTime>,
}

impl AuditFilter {
    /// Those about this consumer.
    pub fn for_consumer(key: &str) -> Self {
        Self {
            consumer: Some(key.to_owned()),
            ..Self::default()
        }
    }

    /// Those about this user.
    pub fn for_user(id: &str) -> Self {
        Self {
            user: Some(id.to_owned()),
            ..Self::default()
        }
    }
}

/// A consumer as lists of other things name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedConsumer {
    /// Its name.
    pub name: String,
    /// Whether its calls are accepted.
    pub enabled: bool,
    /// The contact of its developer.
    pub contact: Option<String>,
}

/// The access tokens that [`Store::access_tokens`](crate::records::store::Store::access_tokens) lists and
/// [`Store::revoke_access_tokens`](crate::records::store::Store::revoke_access_tokens) revokes.
#[derive(Debug, Clone, Default)]
pub struct TokenFilter {
    /// Only those of this user.
    pub user: Option<UserId>,
    /// Only those of this consumer.
    pub consumer: Option<ConsumerKey>,
    /// Only those whose last use, or issue if there was no use, was at this time or before.
    pub unused_since: Option<UnixTime>,
    /// Only those that are not revoked.
    pub live: bool,
    /// Only those that are not revoked and end after the first time, at the second one at the latest.
    pub ends: Option<(UnixTime, UnixTime)>,
}

impl TokenFilter {
    /// Those of this consumer.
    pub fn for_consumer(key: &ConsumerKey) -> Self {
        Self {
            consumer: Some(key.clone()),
            ..Self::default()
        }
    }

    /// Those of this user.
    pub fn for_user(id: &UserId) -> Self {
        Self {
            user: Some(id.clone()),
            ..Self::default()
        }
    }
}

/// The beginning of a batch of [`Store::reseal`](crate::records::store::Store::reseal); the default is the first secret.
#[derive(Debug, Clone, Default)]
pub struct ResealFrom {
    /// The place in the list of columns that hold secrets.
    pub column: usize,
    /// The last record of the batch before, as the backend names it; empty for none.
    pub after: String,
}

/// The result of one batch of [`Store::reseal`](crate::records::store::Store::reseal).
#[derive(Debug, Default)]
pub struct Resealed {
    /// Secrets that were looked at.
    pub seen: u64,
    /// Those among them that were not sealed with that key before the batch.
    pub older: u64,
    /// Those sealed with a key that this process does not have, which were left as they are. One error is kept.
    pub unopened: Option<(u64, Arc<Unopened>)>,
    /// The beginning of the next batch; `None`: all secrets have been looked at.
    pub next: Option<ResealFrom>,
}

impl Resealed {
    /// Adds the result of another batch, and returns the beginning of the next one.
    pub fn add(&mut self, batch: Self) -> Option<ResealFrom> {
        self.seen += batch.seen;
        self.older += batch.older;
        if let Some((count, error)) = batch.unopened {
            let before = self.unopened.take().map_or(0, |(before, _)| before);
            self.unopened = Some((before + count, error));
        }
        batch.next
    }

    /// The number of secrets that were left as they are.
    pub fn unopened_count(&self) -> u64 {
        self.unopened.as_ref().map_or(0, |(count, _)| *count)
    }
}
