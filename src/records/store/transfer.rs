//! The contents of an export, and the outcome of an import.

use super::record::{AccessToken, Consumer, User};
use crate::base::{
    clock::UnixTime,
    names::{ConsumerKey, UserId},
};

/// The most records that an export or an import handles in one step.
pub const BATCH: usize = 500;

/// The most problems that an import reports.
pub const MAX_PROBLEMS: usize = 100;

/// The most milliseconds that the costs of all password hashes in a store may take together, after an import: every
/// login takes the time of each of them.
pub const MAX_PASSWORD_MILLISECONDS: u32 = 1_000;

/// One record of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A consumer.
    Consumer(Consumer),
    /// A user.
    User(User),
    /// An access token; a revoked one too, so that it stays revoked in every store.
    AccessToken(AccessToken),
    /// The key of a removed consumer, never to be used again.
    RemovedConsumer(ConsumerKey),
    /// The id of a removed user, never to be used again.
    RemovedUser(UserId),
    /// The identifier of an access token that was removed with its consumer, never to be used again.
    RemovedToken(String),
}

impl Record {
    /// Its kind, and its key, id or identifier.
    pub fn identity(&self) -> (&'static str, &str) {
        match self {
            Self::Consumer(consumer) => ("consumer", consumer.key.as_str()),
            Self::User(user) => ("user", user.id.as_str()),
            Self::AccessToken(token) => ("token", &token.token),
            Self::RemovedConsumer(key) => ("removed_consumer", key.as_str()),
            Self::RemovedUser(id) => ("removed_user", id.as_str()),
            Self::RemovedToken(token) => ("removed_token", token),
        }
    }

    /// Its name in messages, which no other record has.
    pub fn name(&self) -> String {
        let (kind, key) = self.identity();
        name(kind, key)
    }

    /// The keys of the record and of the records that it names, each with the column that has it.
    pub(super) fn keys(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Consumer(Consumer { key, .. }) | Self::RemovedConsumer(key) => {
                vec![("key", key.as_str())]
            }
            Self::User(User { id, .. }) | Self::RemovedUser(id) => vec![("id", id.as_str())],
            Self::AccessToken(AccessToken {
                token,
                consumer,
                user,
                ..
            }) => {
                vec![
                    ("key", consumer.as_str()),
                    ("id", user.as_str()),
                    ("token", token),
                ]
            }
            Self::RemovedToken(token) => vec![("token", token)],
        }
    }
}

/// The name of a record in messages.
pub fn name(kind: &str, key: &str) -> String {
    format!("{kind} {key:?}")
}

/// The store that an export is from, and the requests that it may have accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The random name of the store; empty if it is not known.
    pub store: String,
    /// The last timestamp of a request that the store may have accepted; 1970 if it has accepted none. A store that
    /// imports its records knows none of the nonces up to it, and so must accept no such request.
    pub accepted_until: UnixTime,
}

/// The contents of an export, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The store.
    pub origin: Origin,
    /// Its records: consumers, users, access tokens, and the marks of removed ones.
    pub records: Vec<Record>,
}

/// A record and its line in the file that it is from.
pub type Numbered = (usize, Record);

/// The records to import.
#[derive(Debug, Clone)]
pub struct ImportList {
    /// The records, each key of a kind once; a record comes after those that it names.
    pub records: Vec<Numbered>,
    /// The store that they are from, if it is one of ours.
    pub origin: Option<Origin>,
    /// `true`: find the problems and change nothing.
    pub dry_run: bool,
    /// The milliseconds that a password hash of this cost takes.
    pub milliseconds: fn(&str) -> u32,
}

impl ImportList {
    /// Records in any order; none comes twice. `milliseconds` is the time that a password hash of a given cost
    /// takes; a cost is what [`password_cost`](super::password_cost::password_cost) returns.
    pub fn new(mut records: Vec<Numbered>, milliseconds: fn(&str) -> u32) -> Self {
        let rank = |record: &Record| match record {
            Record::RemovedConsumer(_) | Record::RemovedUser(_) | Record::RemovedToken(_) => 0,
            Record::Consumer(_) => 1,
            Record::User(_) => 2,
            Record::AccessToken(_) => 3,
        };
        // In place: an import may have millions.
        records.sort_unstable_by_key(|(line, record)| (rank(record), *line));
        Self {
            records,
            origin: None,
            dry_run: false,
            milliseconds,
        }
    }
}

/// The outcome of [`Store::import`](super::Store::import).
///
/// Times of registration, issue and last use are not compared; the store keeps its own. A password hash
/// that a login has replaced by one of the same password is not compared either.
/// Revocation goes one way: a token that is revoked here stays revoked, and one that is revoked in the list is revoked
/// here too. A record that was removed here is not restored, nor is a token of a removed consumer or an active one of a removed user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Import {
    /// All was imported, or with [`ImportList::dry_run`] could be.
    Imported(Imported),
    /// Nothing was imported. At most [`MAX_PROBLEMS`], in the order of the import; problems that only follow from
    /// another one are left out.
    Rejected(Vec<ImportProblem>),
}

/// The problem of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportProblem {
    /// The line of the record.
    pub line: usize,
    /// Its name in messages.
    pub record: String,
    /// The problem.
    pub conflict: Conflict,
}

/// The numbers of records in an import, by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Imported {
    /// New here.
    pub added: u64,
    /// Here already.
    pub unchanged: u64,
    /// Tokens that were active here and are revoked now.
    pub revoked: u64,
    /// Removed here before, and so not restored.
    pub not_restored: u64,
}

/// Why a record cannot be imported, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// There is a record of this key with other content.
    #[error("is in the store with other content; make the two alike, or remove the line")]
    Differs,
    /// Another user has the login name.
    #[error("has the name of another user; rename one of the two, or remove the line")]
    NameTaken,
    /// The costs of all password hashes would take more than [`MAX_PASSWORD_MILLISECONDS`].
    #[error(
        "has a password hash of another cost, and all costs in the store together would take more than a second of \
         every login; leave password_hash out and set a password"
    )]
    PasswordCosts,
    /// A token's consumer is neither in the store nor in the list.
    #[error(
        "names consumer {0:?}, which is neither in the file nor in the store; add a line with it"
    )]
    ConsumerUnknown(ConsumerKey),
    /// An active token's user is neither in the store nor in the list.
    #[error(
        "names user {0:?}, who is neither in the file nor in the store; add a line with this user"
    )]
    UserUnknown(UserId),
    /// An active token's user is disabled.
    #[error(
        "is active although its user is disabled; enable the user, or give the token a revoked_at"
    )]
    UserDisabled,
}

impl Conflict {
    /// The name of the missing record, if one is missing.
    pub fn missing(&self) -> Option<String> {
        match self {
            Self::ConsumerUnknown(key) => Some(name("consumer", key.as_str())),
            Self::UserUnknown(id) => Some(name("user", id.as_str())),
            _ => None,
        }
    }
}
