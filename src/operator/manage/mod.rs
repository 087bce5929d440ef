//! The use cases of operators with consumers, users and access tokens: the rules, the audit record, and the view of each record.
//!
//! [`Management`] has one function for each thing that an operator can do. The command line, the admin API and the console
//! are fronts of it: they read arguments, call a function and show a [`view`]. A function that changes one record takes a
//! [`Guard`], which looks at the record in the transaction of the change.

mod consumers;
mod fields;
mod input;
pub mod setting;
mod tokens;
mod users;
pub mod view;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde::Serialize;
use thiserror::Error;

pub use self::{
    consumers::{check_secret, patched},
    fields::{CONSUMER_FIELDS, FieldKind, RecordField, USER_FIELDS, check_members},
    input::{InvalidInput, distinct_members, members, read},
    users::new_user,
};
pub use crate::telemetry::audit::Actor;
use crate::{
    base::{
        clock::{Clock, UnixTime},
        names::{ConsumerKey, Permission, UserId},
        random::{self, NoRandomness},
    },
    provider::issue::registration,
    records::store::{
        Store, StoreError,
        feed::ChangeHub,
        port::{Guard, Updated},
        record::Dialect,
    },
    telemetry::{audit::CommandRecord, causes::causes},
};

/// The settings of the configuration for new records.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// `signature.default_dialect`
    pub default_dialect: Dialect,
    /// `tokens.access_ttl`; `None`: tokens do not expire.
    pub access_ttl: Option<Duration>,
}

/// Why something cannot be done. Nothing was changed then.
#[derive(Debug, Error)]
pub enum ManageError {
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system gives no randomness.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// A member of the input is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidInput),
    /// The record is not the one that the change is for.
    #[error("the record has changed since it was read; read it again")]
    Stale,
    /// The key of a new consumer is taken.
    #[error("there is a consumer with the key {0:?}; give another key, or change that consumer")]
    ConsumerExists(ConsumerKey),
    /// The key of a new consumer belonged to a removed one.
    #[error(
        "the key {0:?} belonged to a removed consumer and is never used again; give another key, or none for a random one"
    )]
    ConsumerRemoved(ConsumerKey),
    /// No consumer has this key.
    #[error("no consumer has the key {0:?}; list the consumers to find it")]
    ConsumerUnknown(ConsumerKey),
    /// The consumer is one of the existing system.
    #[error(
        "the consumer {0:?} is one of store.lookup.consumer_sql, which is changed where it is kept"
    )]
    ConsumerElsewhere(ConsumerKey),
    /// The consumer would be restricted to the RSA methods and has no RSA key.
    #[error(
        "a consumer that is restricted to the RSA methods needs an RSA key; give the key, or lift the restriction"
    )]
    CannotSign,
    /// The secret is empty, and the consumer is not allowed that.
    #[error(
        "an empty secret proves nothing; leave it out for a random one, or accept the deviation empty_secret"
    )]
    EmptySecret,
    /// The given secret is too long.
    #[error(
        "a secret has at most {} bytes; give a shorter one, or leave it out for a random one",
        registration::MAX_SECRET_BYTES
    )]
    LongSecret,
    /// The login name of a new user is taken.
    #[error("there is a user {0:?}; choose another name (upper and lower case count as the same)")]
    UserExists(String),
    /// The id of a new user is taken, or belonged to a removed user.
    #[error("the id {0:?} is taken or was before; give another id, or none for a random one")]
    UserIdTaken(UserId),
    /// No user has this name or id.
    #[error("there is no user {0:?}; list the users to find the name")]
    UserUnknown(String),
    /// One user has this name and another one this id.
    #[error(
        "{0:?} is the name of one user and the id of another one; give the id of the first or the name of the second"
    )]
    UserAmbiguous(String),
    /// The user is disabled.
    #[error("the user {0:?} is disabled; enable the user first")]
    UserDisabled(String),
    /// The consumer does not have a permission that a token should grant.
    #[error(
        "the consumer {consumer:?} does not have the permission {permission}; ask for another one, or give it to the consumer first"
    )]
    PermissionMissing {
        /// The consumer.
        consumer: ConsumerKey,
        /// The permission.
        permission: Permission,
    },
    /// The consumer or the user of a new token was removed or disabled meanwhile.
    #[error("the consumer or the user has just been removed or disabled; look again")]
    Gone,
    /// There is no such access token.
    #[error("there is no such access token; list the tokens to find it")]
    TokenUnknown,
    /// The first characters of a token are those of several tokens.
    #[error("several access tokens begin with {0:?}; give the whole token")]
    TokenAmbiguous(String),
}

/// Everything that operators can do with the records of a store.
pub struct Management {
    store: Arc<Store>,
    clock: Clock,
    settings: Settings,
    feed: Option<Arc<ChangeHub>>,
    unrecorded: Mutex<Option<StoreError>>,
    has_changed: AtomicBool,
}

impl Management {
    /// Manages the records of `store`. `feed`: this process follows the store's feed, which logs the audit records, its own
    /// among them, and makes changes take effect here at once.
    pub fn new(
        store: Arc<Store>,
        clock: Clock,
        settings: Settings,
        feed: Option<Arc<ChangeHub>>,
    ) -> Self {
        Self {
            store,
            clock,
            settings,
            feed,
            unrecorded: Mutex::default(),
            has_changed: AtomicBool::new(false),
        }
    }

    /// Why the last change has no audit record, if it has none. Asking resets it.
    pub fn take_unrecorded(&self) -> Option<StoreError> {
        self.unrecorded.lock().take()
    }

    /// Whether anything was recorded as done, which nearly always is a change of the store.
    pub fn has_changed(&self) -> bool {
        self.has_changed.load(Ordering::Relaxed)
    }

    /// Records what `by` did, for the log of every `serve` on the store. `about` has the event and what it concerns.
    ///
    /// The change has happened by then, so a failure is kept for [`Management::take_unrecorded`].
    pub async fn audit(&self, by: &Actor, about: CommandRecord) {
        let record = CommandRecord {
            id: random::identifier().unwrap_or_default(),
            actor: by.clone(),
            ..about
        };
        self.has_changed.store(true, Ordering::Relaxed);
        if self.feed.is_none() {
            record.log();
        }
        if let Err(error) = self.store.record_command(record.to_text()).await {
            tracing::warn!(
                error = causes(&error),
                "the audit record is not kept for other processes"
            );
            if self.feed.is_some() {
                record.log();
            }
            *self.unrecorded.lock() = Some(error);
        }
        if let Some(feed) = &self.feed
            && let Err(error) = feed.follow().await
        {
            tracing::debug!(%error, "the change is noticed a little later");
        }
    }

    /// The latest last use of a record that is unused for this long.
    fn unused_since(&self, unused_for: Option<Duration>) -> Option<UnixTime> {
        unused_for.map(|duration| self.clock.now().before(duration))
    }
}

/// A change in the store: `change` says why a record is not changed, and that is returned.
struct Change<'a, T> {
    guard: Guard<'a, T>,
    change: &'a (dyn Fn(&mut T) -> Result<(), ManageError> + Sync),
    refused: Mutex<Option<ManageError>>,
    members: Mutex<Vec<String>>,
}

impl<'a, T: Serialize> Change<'a, T> {
    fn new(
        guard: Guard<'a, T>,
        change: &'a (dyn Fn(&mut T) -> Result<(), ManageError> + Sync),
    ) -> Self {
        Self {
            guard,
            change,
            refused: Mutex::new(None),
            members: Mutex::default(),
        }
    }

    /// Changes the record in the transaction; `false`: it is not wanted.
    fn apply(&self, record: &mut T) -> bool {
        let is_stale = self.guard.is_some_and(|guard| !guard(record));
        let before = view::members(record);
        let changed = match is_stale {
            true => Err(ManageError::Stale),
            false => (self.change)(record),
        };
        let after = view::members(record).into_iter();
        let differ = after.filter(|(name, value)| before.get(name) != Some(value));
        *self.members.lock() = differ.map(|(name, _)| name).collect();
        let refused = changed.err();
        let is_wanted = refused.is_none();
        *self.refused.lock() = refused;
        is_wanted
    }

    /// The record after the change, or why it was not changed: `unknown`, what `change` said, or `otherwise`.
    fn result(
        self,
        updated: Updated<T>,
        unknown: impl FnOnce() -> ManageError,
        otherwise: impl FnOnce() -> ManageError,
    ) -> Result<T, ManageError> {
        match updated {
            Updated::Updated(record) => Ok(*record),
            Updated::Unknown => Err(unknown()),
            Updated::Refused => Err(self.refused.into_inner().unwrap_or_else(otherwise)),
        }
    }
}

/// Notes whether a guard has found another record than the change is for.
struct Watched<'a, T> {
    guard: Guard<'a, T>,
    is_stale: AtomicBool,
}

impl<'a, T> Watched<'a, T> {
    const fn new(guard: Guard<'a, T>) -> Self {
        Self {
            guard,
            is_stale: AtomicBool::new(false),
        }
    }

    fn check(&self, record: &T) -> bool {
        let passes = self.guard.is_none_or(|guard| guard(record));
        self.is_stale.store(!passes, Ordering::Relaxed);
        passes
    }

    /// That the record is another one, if that is why nothing was changed.
    fn refusal(&self) -> Option<ManageError> {
        let is_stale = self.is_stale.load(Ordering::Relaxed);
        is_stale.then_some(ManageError::Stale)
    }
}
