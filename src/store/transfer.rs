//! What export gives and import takes, how it is streamed, and the rules by which a store takes it.

use std::sync::Arc;

use thiserror::Error;
use tokio::sync::mpsc;

use super::{
    Store, StoreError,
    record::{AccessToken, Consumer, User},
};
use crate::{
    clock::UnixTime,
    names::{ConsumerKey, UserId},
};

/// Records that are handed on at once, at most.
pub const BATCH: usize = 500;
/// Batches that wait at most: a store and a file are seldom equally fast.
const WAITING: usize = 4;

/// One record of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A consumer.
    Consumer(Consumer),
    /// A user.
    User(User),
    /// An access token; a revoked one too, so that it stays revoked wherever it is taken.
    AccessToken(AccessToken),
    /// The id of a removed user, never to be used again.
    RemovedUser(UserId),
    /// The identifier of an access token that was removed with its consumer, never to be used again.
    RemovedToken(String),
}

impl Record {
    /// The consumer, the user and the access token that it is or names.
    pub(super) const fn names(&self) -> (Option<&ConsumerKey>, Option<&UserId>, Option<&String>) {
        match self {
            Self::Consumer(consumer) => (Some(&consumer.key), None, None),
            Self::User(User { id, .. }) | Self::RemovedUser(id) => (None, Some(id), None),
            Self::AccessToken(token) => {
                let AccessToken {
                    consumer,
                    user,
                    token,
                    ..
                } = token;
                (Some(consumer), Some(user), Some(token))
            }
            Self::RemovedToken(token) => (None, None, Some(token)),
        }
    }

    /// Its key, id or identifier.
    pub(super) fn key(&self) -> &str {
        match self {
            Self::Consumer(consumer) => consumer.key.as_str(),
            Self::User(User { id, .. }) | Self::RemovedUser(id) => id.as_str(),
            Self::AccessToken(AccessToken { token, .. }) | Self::RemovedToken(token) => token,
        }
    }
}

/// A record and its number in the place that it comes from: in a file its line.
pub type Numbered = (usize, Record);

/// The position of a record in the order in which an import takes them: what others name comes before them.
#[must_use]
pub const fn import_order(record: &Record) -> usize {
    match record {
        Record::RemovedUser(_) | Record::RemovedToken(_) => 0,
        Record::Consumer(_) => 1,
        Record::User(_) => 2,
        Record::AccessToken(_) => 3,
    }
}

/// Which store an export is from, and which requests it may have accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The random name of the store; empty if it is not known.
    pub store: String,
    /// The last timestamp of a request that the store may have accepted; 1970 if it has accepted none. A store that imports its records knows none of
    /// the nonces up to it, and so must accept no such request.
    pub accepted_until: UnixTime,
}

/// What an export hands on, and what an import receives.
#[derive(Debug)]
pub enum Part<T> {
    /// Where the records are from, before all of them. Without it they are not from a store of ours.
    Origin(Origin),
    /// How many records there will be, where that is known beforehand.
    Count(u64),
    /// Some records.
    Records(Vec<T>),
    /// There are no more. An import that is not told so takes nothing in.
    End,
}

/// Makes a stream of records. It holds few at a time, so who sends waits for who receives.
#[must_use]
pub fn stream<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Sender(sender), Receiver(receiver))
}

/// The end of a stream that is given records.
#[derive(Debug)]
pub struct Sender<T>(mpsc::Sender<Part<T>>);

/// The end of a stream from which records are taken.
#[derive(Debug)]
pub struct Receiver<T>(mpsc::Receiver<Part<T>>);

/// The other end of a stream was dropped.
#[derive(Debug, Error)]
#[error("the records are not read or not written to their end")]
pub struct Cut;

impl From<Cut> for StoreError {
    fn from(cut: Cut) -> Self {
        Self::Unavailable(Box::new(cut))
    }
}

impl<T> Sender<T> {
    /// Sends a part.
    ///
    /// # Errors
    /// [`Cut`]
    pub async fn send(&self, part: Part<T>) -> Result<(), Cut> {
        self.0.send(part).await.map_err(|_| Cut)
    }

    /// As [`Self::send`], outside of a runtime.
    ///
    /// # Errors
    /// [`Cut`]
    pub fn blocking_send(&self, part: Part<T>) -> Result<(), Cut> {
        self.0.blocking_send(part).map_err(|_| Cut)
    }
}

impl<T> Receiver<T> {
    /// Receives a part.
    ///
    /// # Errors
    /// [`Cut`]
    pub async fn receive(&mut self) -> Result<Part<T>, Cut> {
        self.0.recv().await.ok_or(Cut)
    }

    /// Receives some records; `None`: there are no more. What comes before the records is left out.
    ///
    /// # Errors
    /// [`Cut`]
    pub async fn next(&mut self) -> Result<Option<Vec<T>>, Cut> {
        loop {
            match self.receive().await? {
                Part::Count(_) | Part::Origin(_) => {}
                Part::Records(records) => return Ok(Some(records)),
                Part::End => return Ok(None),
            }
        }
    }
}

/// What an import reads: each call begins a stream of the same records, in the order of [`import_order`].
pub type Source = Arc<dyn Fn() -> Receiver<Numbered> + Send + Sync>;

/// All that an export holds, for [`Store::export`].
pub(super) async fn collect<S: Store + ?Sized>(store: &S) -> Result<Vec<Record>, StoreError> {
    let (sender, mut receiver) = stream();
    let collect = async {
        let mut all = Vec::new();
        while let Some(records) = receiver.next().await? {
            all.extend(records);
        }
        Ok(all)
    };
    let (exported, all) = tokio::join!(store.export_to(sender), collect);
    exported.and(all)
}

/// A list in any order as a source, for [`Store::import`].
pub(super) fn listed(records: Vec<Record>) -> Source {
    let mut records: Vec<Numbered> = records.into_iter().enumerate().collect();
    records.sort_by_key(|(_, record)| import_order(record));
    Arc::new(move || {
        let (sender, receiver) = stream();
        let parts: Vec<_> = records.chunks(BATCH).map(<[_]>::to_vec).collect();
        tokio::spawn(async move {
            for part in parts {
                sender.send(Part::Records(part)).await?;
            }
            sender.send(Part::End).await
        });
        receiver
    })
}

/// The outcome of [`import_from`](super::port::Store::import_from).
///
/// When something was registered, issued or last used is not compared: what the store knows stays. A password hash
/// that a login has replaced by one of the same password is not compared either.
/// Revocation goes one way: a token that is revoked here stays so, one that is revoked in the list is revoked
/// here too. What was removed here is kept out, and an active token of a removed user with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Import {
    /// All was taken in.
    Imported(Imported),
    /// Nothing was taken in.
    Refused {
        /// The number of the record at fault.
        index: usize,
        /// What is wrong with it.
        refusal: ImportRefusal,
    },
}

/// How many records an import met of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Imported {
    /// New here.
    pub added: u64,
    /// Here already.
    pub unchanged: u64,
    /// Tokens that were active here and are revoked now.
    pub revoked: u64,
    /// Removed here before, and so left out.
    pub kept_out: u64,
}

/// The most different costs of password hashes to which an import may bring a store.
pub const MAX_PASSWORD_COSTS: usize = 4;

/// Why an import was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ImportRefusal {
    /// There is a record of this key with other content.
    #[error("is in the store with other content")]
    Differs,
    /// Another user has the login name.
    #[error("has the name of another user in the store")]
    NameTaken,
    /// The store would hold password hashes of more than [`MAX_PASSWORD_COSTS`] costs.
    #[error("has a password hash of a fifth cost, and every login takes the time of all costs")]
    TooManyCosts,
    /// A token's consumer is neither in the store nor in the list.
    #[error("names a consumer that is neither in the file nor in the store")]
    ConsumerUnknown,
    /// An active token's user is neither in the store nor in the list.
    #[error("names a user that is neither in the file nor in the store")]
    UserUnknown,
    /// An active token's user is disabled.
    #[error("is active although its user is disabled")]
    UserDisabled,
}

/// Whether two consumers are the same but for the time of registration.
#[must_use]
pub fn same_consumer(left: &Consumer, right: &Consumer) -> bool {
    let mut left = left.clone();
    left.created_at = right.created_at;
    left == *right
}

/// Whether two users are the same but for the time of registration.
#[must_use]
pub fn same_user(left: &User, right: &User) -> bool {
    let mut left = left.clone();
    left.created_at = right.created_at;
    left == *right
}

/// Whether two access tokens are the same but for the times of issue, last use and revocation.
#[must_use]
pub fn same_access_token(left: &AccessToken, right: &AccessToken) -> bool {
    let mut left = left.clone();
    left.issued_at = right.issued_at;
    left.last_used_at = right.last_used_at;
    left.revoked_at = right.revoked_at;
    left == *right
}
