//! The contents of an export, and the outcome of an import.

use std::{collections::BTreeMap, io};

use serde_json::{Map, Value, json};

use super::{
    StoreError,
    record::{AccessToken, Consumer, User},
};
use crate::base::{
    clock::UnixTime,
    text::names::{ConsumerKey, UserId},
};

/// The members that are of the time since a record was made.
const NOT_COMPARED: [&str; 4] = ["created_at", "issued_at", "last_used_at", "last_used_from"];

/// The most records that an export or an import handles in one step.
pub const BATCH: usize = 500;

/// The most problems that an import reports.
pub const MAX_PROBLEMS: usize = 100;

/// The numbers of problems that are alike: their texts differ in quoted names and in numbers alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alike(BTreeMap<String, u64>);

impl Alike {
    /// What all problems like this one have in common.
    #[must_use]
    pub fn kind(problem: &str) -> String {
        let (mut kind, mut quoted, mut escaped) = (String::new(), false, false);
        for letter in problem.chars() {
            let is_quote = letter == '"' && !escaped;
            escaped = quoted && letter == '\\' && !escaped;
            match letter {
                _ if is_quote => {
                    kind.push_str(if quoted { "…\"" } else { "\"" });
                    quoted = !quoted;
                }
                _ if quoted => {}
                '0'..='9' if kind.ends_with('…') => {}
                '0'..='9' => kind.push('…'),
                letter => kind.push(letter),
            }
        }
        kind
    }

    /// Counts a problem, and returns how many like it there are; 0 if it is one of too many kinds.
    pub fn add(&mut self, problem: &str) -> u64 {
        let (kind, has_room) = (Self::kind(problem), self.0.len() < MAX_PROBLEMS);
        match self.0.get_mut(&kind) {
            Some(count) => {
                *count += 1;
                *count
            }
            None => has_room.then(|| self.0.insert(kind, 1)).map_or(0, |_| 1),
        }
    }

    /// Each kind of both, with its number.
    #[must_use]
    pub fn with(&self, other: &Self) -> BTreeMap<String, u64> {
        let mut all = self.0.clone();
        for (kind, count) in &other.0 {
            *all.entry(kind.clone()).or_default() += count;
        }
        all
    }
}

/// The most milliseconds that the costs of all password hashes in a store may take together, after an import: every
/// login takes the time of each of them.
pub const MAX_PASSWORD_MILLISECONDS: u32 = 1_000;

/// The kinds of records in the order of an import: a record comes after those that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// A name that is never to be used again.
    Removed,
    /// A consumer.
    Consumer,
    /// A user.
    User,
    /// An access token.
    AccessToken,
}

/// One record of an export.
#[expect(
    clippy::large_enum_variant,
    reason = "at most a batch of them is in memory"
)]
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

    /// The place of its kind in the order of an import.
    pub const fn rank(&self) -> Rank {
        match self {
            Self::RemovedConsumer(_) | Self::RemovedUser(_) | Self::RemovedToken(_) => {
                Rank::Removed
            }
            Self::Consumer(_) => Rank::Consumer,
            Self::User(_) => Rank::User,
            Self::AccessToken(_) => Rank::AccessToken,
        }
    }

    /// The members in which an import compares two records of one kind, without secrets.
    pub fn compared(&self) -> Map<String, Value> {
        let record = match self {
            Self::Consumer(consumer) => json!(consumer),
            Self::User(user) => json!(user),
            Self::AccessToken(token) => json!(token),
            _ => Value::Null,
        };
        let Value::Object(mut members) = record else {
            return Map::new();
        };
        members.retain(|name, _| !NOT_COMPARED.contains(&&**name));
        members
    }

    /// The names of the members in which it differs from another record of its kind.
    pub fn differing(&self, other: &Self) -> Vec<String> {
        let secrets = match (self, other) {
            (Self::Consumer(one), Self::Consumer(other)) => {
                let previous = |it: &Consumer| it.previous_secret.clone().map(|(secret, _)| secret);
                vec![
                    ("secret", one.secret != other.secret),
                    ("previous_secret", previous(one) != previous(other)),
                ]
            }
            (Self::User(one), Self::User(other)) => {
                vec![("password_hash", one.password_hash != other.password_hash)]
            }
            (Self::AccessToken(one), Self::AccessToken(other)) => {
                vec![("token_secret", one.secret != other.secret)]
            }
            _ => vec![],
        };
        let secrets = secrets.into_iter().filter(|(_, differs)| *differs);
        let others = other.compared();
        let members = self.compared().into_iter();
        let members = members.filter(|(name, value)| others.get(name) != Some(value));
        let secrets = secrets.map(|(name, _)| name.to_owned());
        secrets.chain(members.map(|(name, _)| name)).collect()
    }

    /// Its name in messages, which no other record has.
    pub fn name(&self) -> String {
        let (kind, key) = self.identity();
        name(kind, key)
    }

    /// The keys of the record and of the records that it names, each with the column that has it.
    pub(in crate::records) fn keys(&self) -> Vec<(&'static str, &str)> {
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
pub struct ExportOrigin {
    /// The random name of the store; empty if it is not known.
    pub store: String,
    /// The last timestamp of a request that the store may have accepted; 1970 if it has accepted none. A store that
    /// imports its records knows none of the nonces up to it, and so must accept no such request.
    pub accepted_until: UnixTime,
}

/// A part of an export, in this order: the head, then its records. All are of one moment.
#[derive(Debug)]
pub enum Exported {
    /// The store, and the number of records that follow.
    Head(ExportOrigin, u64),
    /// Some records: consumers, users, access tokens, and the marks of removed ones.
    Records(Vec<Record>),
}

/// Why an export or an import failed. An import has changed nothing then.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file: its records cannot be read or written.
    #[error(transparent)]
    File(#[from] io::Error),
}

/// The member of a user who has to choose another password.
pub const MUST_CHANGE: &str = "must_change_password";

/// A record and its line in the file that it is from.
#[derive(Debug, Clone)]
pub struct Numbered {
    /// The line.
    pub line: usize,
    /// The record.
    pub record: Record,
    /// The members that the line leaves out: of a user [`MUST_CHANGE`], which is kept with the same password; of a consumer, with
    /// [`Existing::Update`], all those that are kept.
    pub left_out: Vec<String>,
}

impl Numbered {
    /// Whether the line leaves a member out, as [`Self::left_out`] says.
    pub(in crate::records) fn lacks(&self, member: &str) -> bool {
        self.left_out.iter().any(|name| name == member)
    }
}

/// What an import does with a record that is in the store with other content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// It is a problem.
    #[default]
    Reject,
    /// The record becomes that of the file.
    Replace,
    /// A consumer gets the members that its line has; a record of another kind is a problem.
    Update,
}

/// A change that an import makes.
#[derive(Debug, Clone, Copy)]
pub enum Difference<'r> {
    /// A record is new.
    Added(&'r Record),
    /// A record is changed, from the first to the second.
    Changed(&'r Record, &'r Record),
    /// A consumer is removed with this many access tokens.
    Removed(&'r ConsumerKey, u64),
}

/// Whether a consumer stays.
pub type Keeps<'a> = Box<dyn Fn(&ConsumerKey) -> bool + 'a>;

/// The records to import.
pub struct ImportList<'a> {
    /// The records, each key of a kind once, in the order of [`Record::rank`]: a record comes after those that it names.
    pub records: Box<dyn Iterator<Item = io::Result<Numbered>> + 'a>,
    /// The store that they are from, if it is one of ours.
    pub origin: Option<ExportOrigin>,
    /// The time of the import.
    pub now: UnixTime,
    /// `true`: find the problems and change nothing.
    pub dry_run: bool,
    /// What happens to records that are in the store with other content.
    pub existing: Existing,
    /// Whether a consumer stays; the others are removed. `None`: all stay.
    pub keeps: Option<Keeps<'a>>,
    /// Whether a record of this name has a problem that is known already: a record that names it is not reported again.
    pub has_problem: Box<dyn Fn(&str) -> bool + 'a>,
    /// Receives each change, also in a dry run.
    pub differences: Box<dyn FnMut(Difference<'_>) + 'a>,
    /// Whether all changes are those that were announced; otherwise none is made.
    pub is_expected: Box<dyn Fn() -> bool + 'a>,
    /// The milliseconds that a password hash of this cost takes.
    pub milliseconds: fn(&str) -> u32,
}

impl<'a> ImportList<'a> {
    /// Records in the order of their ranks; none comes twice. `milliseconds` is the time that a password hash of a given cost
    /// takes; a cost is what [`password_cost`](super::password_cost::password_cost) returns.
    pub fn new(
        records: impl Iterator<Item = io::Result<Numbered>> + 'a,
        now: UnixTime,
        milliseconds: fn(&str) -> u32,
    ) -> Self {
        Self {
            records: Box::new(records),
            origin: None,
            now,
            dry_run: false,
            existing: Existing::Reject,
            keeps: None,
            has_problem: Box::new(|_| false),
            differences: Box::new(|_| {}),
            is_expected: Box::new(|| true),
            milliseconds,
        }
    }
}

/// The outcome of [`Store::import`](crate::records::store::Store::import).
///
/// Times of registration, issue and last use are not compared; the store keeps its own. A password hash
/// that a login has replaced by one of the same password is not compared either.
/// Revocation goes one way: a token that is revoked here stays revoked, and one that is revoked in the list is revoked
/// here too. A record that was removed here is not restored, nor is a token of a removed consumer or an active one of a
/// removed user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Import {
    /// All was imported, or with [`ImportList::dry_run`] could be.
    Imported(Imported),
    /// Nothing was imported. The first problems, at most [`MAX_PROBLEMS`], in the order of the import, the number of all, and
    /// those of each kind. Problems that only follow from another one are left out.
    Rejected(Vec<ImportProblem>, u64, Alike),
    /// Nothing was imported: [`ImportList::is_expected`] says no.
    Unexpected,
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
    /// Here with other content, and changed.
    pub changed: u64,
    /// Consumers that were removed, because the file does not have them.
    pub removed: u64,
    /// Tokens that were active here and are revoked now.
    pub revoked: u64,
    /// Removed here before, and so not restored.
    pub not_restored: u64,
}

impl Imported {
    /// Each number with its name.
    pub const fn counts(self) -> [(&'static str, u64); 6] {
        [
            ("added", self.added),
            ("unchanged", self.unchanged),
            ("changed", self.changed),
            ("removed", self.removed),
            ("revoked", self.revoked),
            ("not_restored", self.not_restored),
        ]
    }
}

/// Why a record cannot be imported, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// There is a record of this key with other content, in these members.
    #[error(
        "is in the store with other content ({}); make the two alike, remove the line, or change the record with --replace",
        .0.join(", ")
    )]
    Differs(Vec<String>),
    /// The mark of a removed consumer or user that is in the store.
    #[error("is in the store and not removed; remove it there, or remove the line")]
    NotRemoved,
    /// A new consumer, whose line has only the members to change.
    #[error("is not in the store, and a new consumer needs {0}; add it to the line")]
    Incomplete(&'static str),
    /// A consumer that could not sign with these members.
    #[error(
        "would have rsa_only without rsa_public_key, and so could not sign; add the key, or set rsa_only to false"
    )]
    CannotSign,
    /// The consumer would be enabled without approval.
    #[error(
        "would be enabled, and no operator has approved it; set enabled to false, or registration to approved"
    )]
    Unapproved,
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
        "names consumer {0:?}, which is neither in the file nor in the store; import it before, or add a line with it"
    )]
    ConsumerUnknown(ConsumerKey),
    /// An active token's user is neither in the store nor in the list.
    #[error(
        "names user {0:?}, who is neither in the file nor in the store; import the user before, or add a line"
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
