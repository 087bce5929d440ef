//! What each use case decides once its records have been read, the same for every backend. A backend reads the records
//! and writes the outcome in one atomic step.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use super::{
    port::{Exchange, Exchanged},
    record::{AccessToken, Consumer, OutsideUser, RequestToken, RequestTokenState, User},
    rows::digest,
    transfer::{Conflict, Imported, Record, same_access_token, same_consumer, same_user},
};
use crate::{
    clock::UnixTime,
    names::{ConsumerKey, UserId},
};

/// How long a change is reported to caches.
pub(super) const KEEP_CHANGES: Duration = Duration::from_secs(3600);
/// How long request tokens and sessions are kept past their end, so that a late caller learns what became of them.
pub(super) const KEEP_ENDED: Duration = Duration::from_secs(24 * 3600);
/// Changes that are reported one by one at most; above that it is cheaper to read every record again.
pub(super) const MOST_CHANGES: i64 = 10_000;

/// The record of a user that an outside login vouches for.
pub(super) fn admitted(found: Option<&User>, outside: OutsideUser, now: UnixTime) -> User {
    let OutsideUser {
        id,
        name,
        display_name,
    } = outside;
    match found {
        Some(found) if !found.enabled => found.clone(),
        Some(found) => User {
            name: name.unwrap_or_else(|| found.name.clone()),
            display_name: display_name.or_else(|| found.display_name.clone()),
            ..found.clone()
        },
        None => User {
            name: name.unwrap_or_else(|| id.to_string()),
            id,
            display_name,
            password_hash: None,
            enabled: true,
            created_at: now,
        },
    }
}

/// Decides an exchange. `user` is the one who authorized the token, if there is one.
///
/// [`Exchanged::WrongVerifier`] is still to be counted, and what [`Exchanged::Exchanged`] names is still to be kept.
pub(super) fn exchange(
    found: Option<&RequestToken>,
    user: Option<User>,
    exchange: &Exchange,
) -> Exchanged {
    let Some(found) = found.filter(|found| found.consumer == exchange.consumer) else {
        return Exchanged::Unknown;
    };
    let is_expired = exchange.now >= found.expires_at;
    let (user, verifier) = match (&found.state, user.filter(|user| user.enabled)) {
        (RequestTokenState::Authorized { verifier, .. }, Some(user)) => (user, verifier),
        (RequestTokenState::Voided | RequestTokenState::Authorized { .. }, _) => {
            return Exchanged::Unknown;
        }
        _ if is_expired => return Exchanged::Expired,
        (RequestTokenState::Exchanged, _) => return Exchanged::Used,
        (RequestTokenState::Issued, _) => return Exchanged::Undecided,
        (RequestTokenState::Denied, _) => return Exchanged::Denied,
    };
    if is_expired {
        return Exchanged::Expired;
    }
    if *verifier != exchange.verifier {
        return Exchanged::WrongVerifier;
    }
    Exchanged::Exchanged {
        access_token: AccessToken {
            token: exchange.access_token.clone(),
            secret: exchange.access_secret.clone(),
            consumer: found.consumer.clone(),
            user: user.id.clone(),
            permissions: found.permissions.clone(),
            issued_at: exchange.now,
            expires_at: exchange.expires_at,
            last_used_at: None,
            revoked_at: None,
        },
        user: Box::new(user),
    }
}

/// What an import does with one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Keep it.
    Add,
    /// It is here already.
    Unchanged,
    /// Revoke the token that is here, at the time of the record, else now.
    Revoke,
    /// It was removed here before: do not restore it.
    Skip,
}

/// What the store has under the keys that some records of an import touch.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) consumers: HashMap<ConsumerKey, Consumer>,
    pub(super) users: HashMap<UserId, User>,
    /// The [`digest`] of a hash that a login has replaced by the one that the user has now.
    pub(super) replaced_hashes: HashMap<UserId, Vec<u8>>,
    pub(super) tokens: HashMap<String, AccessToken>,
    /// Keys, ids and identifiers that were removed, and so are never used again.
    pub(super) removed_consumers: BTreeSet<String>,
    pub(super) removed_users: BTreeSet<String>,
    pub(super) removed_tokens: BTreeSet<String>,
    /// Login names, as [`folded`] makes them.
    pub(super) names: BTreeSet<String>,
}

impl Seen {
    fn is_consumer_removed(&self, key: &ConsumerKey) -> bool {
        self.removed_consumers.contains(key.as_str())
    }

    fn is_user_removed(&self, id: &UserId) -> bool {
        self.removed_users.contains(id.as_str())
    }
}

/// A login name as it is compared: without regard to ASCII case.
pub(super) fn folded(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// Decides what becomes of a record. The costs of password hashes are the caller's to count.
///
/// # Errors
/// [`Conflict`]
pub(super) fn action(record: &Record, seen: &Seen) -> Result<Action, Conflict> {
    match record {
        Record::RemovedConsumer(key) if seen.is_consumer_removed(key) => Ok(Action::Unchanged),
        // To remove a consumer or a user is for a person to decide, not for a file.
        Record::RemovedConsumer(key) if seen.consumers.contains_key(key) => Err(Conflict::Differs),
        Record::RemovedConsumer(_) => Ok(Action::Add),
        Record::RemovedUser(id) if seen.is_user_removed(id) => Ok(Action::Unchanged),
        Record::RemovedUser(id) if seen.users.contains_key(id) => Err(Conflict::Differs),
        Record::RemovedUser(_) => Ok(Action::Add),
        Record::RemovedToken(token) => Ok(match seen.tokens.get(token) {
            Some(token) => revoke(token),
            None if seen.removed_tokens.contains(token) => Action::Unchanged,
            None => Action::Add,
        }),
        Record::Consumer(consumer) => match seen.consumers.get(&consumer.key) {
            Some(same) if same_consumer(same, consumer) => Ok(Action::Unchanged),
            Some(_) => Err(Conflict::Differs),
            None if seen.is_consumer_removed(&consumer.key) => Ok(Action::Skip),
            None => Ok(Action::Add),
        },
        Record::User(user) => user_action(user, seen),
        Record::AccessToken(token) => token_action(token, seen),
    }
}

fn user_action(user: &User, seen: &Seen) -> Result<Action, Conflict> {
    if seen.is_user_removed(&user.id) {
        return Ok(Action::Skip);
    }
    let Some(found) = seen.users.get(&user.id) else {
        return if seen.names.contains(&folded(&user.name)) {
            Err(Conflict::NameTaken)
        } else {
            Ok(Action::Add)
        };
    };
    let mut found = found.clone();
    // A login may have replaced the hash of the same password since the export.
    let hash = user.password_hash.as_ref();
    if hash.is_some_and(|hash| seen.replaced_hashes.get(&user.id) == Some(&digest(hash))) {
        found.password_hash.clone_from(&user.password_hash);
    }
    if same_user(&found, user) {
        Ok(Action::Unchanged)
    } else {
        Err(Conflict::Differs)
    }
}

fn token_action(token: &AccessToken, seen: &Seen) -> Result<Action, Conflict> {
    if let Some(found) = seen.tokens.get(&token.token) {
        return match token.revoked_at {
            _ if !same_access_token(found, token) => Err(Conflict::Differs),
            Some(_) => Ok(revoke(found)),
            None => Ok(Action::Unchanged),
        };
    }
    if seen.removed_tokens.contains(&token.token) || seen.is_consumer_removed(&token.consumer) {
        return Ok(Action::Skip);
    }
    if !seen.consumers.contains_key(&token.consumer) {
        return Err(Conflict::ConsumerUnknown(token.consumer.clone()));
    }
    match seen.users.get(&token.user) {
        _ if token.revoked_at.is_some() => Ok(Action::Add),
        Some(user) if user.enabled => Ok(Action::Add),
        Some(_) => Err(Conflict::UserDisabled),
        None if seen.is_user_removed(&token.user) => Ok(Action::Skip),
        None => Err(Conflict::UserUnknown(token.user.clone())),
    }
}

fn revoke(found: &AccessToken) -> Action {
    if found.revoked_at.is_some() {
        Action::Unchanged
    } else {
        Action::Revoke
    }
}

impl Imported {
    /// Counts a record by what becomes of it.
    pub(super) const fn count(&mut self, action: Action) {
        let counter = match action {
            Action::Add => &mut self.added,
            Action::Unchanged => &mut self.unchanged,
            Action::Revoke => &mut self.revoked,
            Action::Skip => &mut self.not_restored,
        };
        *counter += 1;
    }
}
