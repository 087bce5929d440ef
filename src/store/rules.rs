//! What each use case decides once its records have been read, the same for every backend. A backend reads the records
//! and writes the outcome in one atomic step.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use super::{
    port::{Decided, Exchange, Exchanged},
    record::{AccessToken, Consumer, OutsideUser, RequestToken, RequestTokenState, User},
    rows::digest,
    transfer::{
        ImportRefusal, Imported, Numbered, Record, same_access_token, same_consumer, same_user,
    },
};
use crate::{
    clock::UnixTime,
    names::{ConsumerKey, UserId},
    secret::Secret,
};

/// How long a change is reported to caches.
pub(super) const KEEP_CHANGES: Duration = Duration::from_secs(3600);
/// How long request tokens and sessions are kept past their end, so that a late caller learns what became of them.
pub(super) const KEEP_ENDED: Duration = Duration::from_secs(24 * 3600);
/// Changes that are reported one by one; with more, reading every record anew is cheaper.
pub(super) const MOST_CHANGES: i64 = 10_000;

/// Whether a decision may be recorded.
///
/// `user` is the one of a session that has not ended.
///
/// # Errors
/// The outcome, if it may not.
pub(super) fn may_decide(
    token: &RequestToken,
    consumer: Option<&Consumer>,
    user: Option<&User>,
    now: UnixTime,
) -> Result<(), Decided> {
    if !consumer.is_some_and(|consumer| consumer.enabled) || !user.is_some_and(|user| user.enabled)
    {
        return Err(Decided::Unknown);
    }
    if token.state != RequestTokenState::Issued {
        return Err(Decided::AlreadyDecided);
    }
    if now >= token.expires_at {
        return Err(Decided::Expired);
    }
    Ok(())
}

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
pub(super) enum Take {
    /// Keep it.
    Add,
    /// It is here already.
    Unchanged,
    /// Revoke the token that is here, at the time of the record, else now.
    Revoke,
    /// Leave it out.
    KeepOut,
}

/// What of a record's environment an import has to know.
#[derive(Debug, Default)]
pub(super) struct Here<'a> {
    /// The consumer of the record's key; for a token its consumer.
    pub(super) consumer: Option<&'a Consumer>,
    /// The user of the record's id; for a token its user.
    pub(super) user: Option<&'a User>,
    /// The token of the record's identifier.
    pub(super) token: Option<&'a AccessToken>,
    /// The id or the identifier of the record was removed.
    pub(super) is_removed: bool,
    /// The record's user was removed; for tokens.
    pub(super) is_user_removed: bool,
    /// Another user has the record's login name.
    pub(super) is_name_taken: bool,
    /// A login has replaced the record's password hash by the one that is here.
    pub(super) is_hash_replaced: bool,
}

/// What the store has under the keys that some records of an import touch.
#[derive(Default)]
pub(super) struct World {
    pub(super) consumers: HashMap<ConsumerKey, Consumer>,
    pub(super) users: HashMap<UserId, User>,
    pub(super) replaced_hashes: HashMap<UserId, Vec<u8>>,
    pub(super) tokens: HashMap<String, AccessToken>,
    pub(super) removed_users: BTreeSet<String>,
    pub(super) removed_tokens: BTreeSet<String>,
    /// Login names, as [`folded`] makes them.
    pub(super) names: BTreeSet<String>,
    pub(super) costs: BTreeSet<String>,
}

impl World {
    /// Forgets what records that still come do not depend on: the tokens, and of the consumers and users of `records` all
    /// but their names and whether they are enabled.
    pub(super) fn forget_details(&mut self, records: &[Numbered]) {
        self.tokens.clear();
        self.replaced_hashes.clear();
        for (_, record) in records {
            let (consumer, user) = match record {
                Record::Consumer(consumer) => (Some(&consumer.key), None),
                Record::User(User { id, .. }) | Record::RemovedUser(id) => (None, Some(id)),
                Record::AccessToken(token) => (Some(&token.consumer), Some(&token.user)),
                Record::RemovedToken(_) => (None, None),
            };
            if let Some(consumer) = consumer.and_then(|key| self.consumers.get_mut(key)) {
                *consumer = Consumer {
                    key: consumer.key.clone(),
                    secret: Secret::from(""),
                    previous_secret: None,
                    rsa_public_key: None,
                    name: String::new(),
                    description: None,
                    website: None,
                    callbacks: Vec::new(),
                    permissions: Vec::new(),
                    ..*consumer
                };
            }
            if let Some(user) = user.and_then(|id| self.users.get_mut(id)) {
                user.password_hash = None;
                user.display_name = None;
                user.name = String::new();
            }
        }
    }

    /// What of it decides about a record.
    pub(super) fn here(&self, record: &Record) -> Here<'_> {
        let is_user_removed = |id: &UserId| self.removed_users.contains(id.as_str());
        let is_token_removed = |token: &str| self.removed_tokens.contains(token);
        match record {
            Record::RemovedUser(id) => Here {
                user: self.users.get(id),
                is_removed: is_user_removed(id),
                ..Here::default()
            },
            Record::RemovedToken(token) => Here {
                token: self.tokens.get(token),
                is_removed: is_token_removed(token),
                ..Here::default()
            },
            Record::Consumer(consumer) => Here {
                consumer: self.consumers.get(&consumer.key),
                ..Here::default()
            },
            Record::User(user) => Here {
                user: self.users.get(&user.id),
                is_removed: is_user_removed(&user.id),
                is_name_taken: self.names.contains(&folded(&user.name)),
                is_hash_replaced: user
                    .password_hash
                    .as_ref()
                    .is_some_and(|hash| self.replaced_hashes.get(&user.id) == Some(&digest(hash))),
                ..Here::default()
            },
            Record::AccessToken(token) => Here {
                consumer: self.consumers.get(&token.consumer),
                user: self.users.get(&token.user),
                token: self.tokens.get(&token.token),
                is_removed: is_token_removed(&token.token),
                is_user_removed: is_user_removed(&token.user),
                ..Here::default()
            },
        }
    }
}

/// A login name as it is compared: without regard to ASCII case.
pub(super) fn folded(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// Decides what becomes of a record. The costs of password hashes are the caller's to count.
///
/// # Errors
/// Why the import is refused.
pub(super) fn take(record: &Record, here: &Here<'_>) -> Result<Take, ImportRefusal> {
    match record {
        Record::RemovedUser(_) if here.is_removed => Ok(Take::Unchanged),
        // To remove a user is for a person to decide, not for a file.
        Record::RemovedUser(_) if here.user.is_some() => Err(ImportRefusal::Differs),
        Record::RemovedUser(_) => Ok(Take::Add),
        Record::RemovedToken(_) => Ok(match here.token {
            Some(token) => revoke(token),
            None if here.is_removed => Take::Unchanged,
            None => Take::Add,
        }),
        Record::Consumer(consumer) => match here.consumer {
            Some(same) if same_consumer(same, consumer) => Ok(Take::Unchanged),
            Some(_) => Err(ImportRefusal::Differs),
            None => Ok(Take::Add),
        },
        Record::User(user) => take_user(user, here),
        Record::AccessToken(token) => take_access_token(token, here),
    }
}

fn take_user(user: &User, here: &Here<'_>) -> Result<Take, ImportRefusal> {
    if here.is_removed {
        return Ok(Take::KeepOut);
    }
    let Some(found) = here.user else {
        return if here.is_name_taken {
            Err(ImportRefusal::NameTaken)
        } else {
            Ok(Take::Add)
        };
    };
    let mut found = found.clone();
    // A login may have hashed the same password anew since the list was made.
    if here.is_hash_replaced {
        found.password_hash.clone_from(&user.password_hash);
    }
    if same_user(&found, user) {
        Ok(Take::Unchanged)
    } else {
        Err(ImportRefusal::Differs)
    }
}

fn take_access_token(token: &AccessToken, here: &Here<'_>) -> Result<Take, ImportRefusal> {
    if let Some(found) = here.token {
        return match token.revoked_at {
            _ if !same_access_token(found, token) => Err(ImportRefusal::Differs),
            Some(_) => Ok(revoke(found)),
            None => Ok(Take::Unchanged),
        };
    }
    if here.is_removed {
        return Ok(Take::KeepOut);
    }
    if here.consumer.is_none() {
        return Err(ImportRefusal::ConsumerUnknown);
    }
    match here.user {
        _ if token.revoked_at.is_some() => Ok(Take::Add),
        Some(user) if user.enabled => Ok(Take::Add),
        Some(_) => Err(ImportRefusal::UserDisabled),
        None if here.is_user_removed => Ok(Take::KeepOut),
        None => Err(ImportRefusal::UserUnknown),
    }
}

fn revoke(found: &AccessToken) -> Take {
    if found.revoked_at.is_some() {
        Take::Unchanged
    } else {
        Take::Revoke
    }
}

impl Imported {
    /// Adds another count to this.
    pub(super) const fn add(&mut self, other: Self) {
        self.added += other.added;
        self.unchanged += other.unchanged;
        self.revoked += other.revoked;
        self.kept_out += other.kept_out;
    }

    /// The records that were met.
    pub(super) const fn total(&self) -> u64 {
        self.added + self.unchanged + self.revoked + self.kept_out
    }

    /// Counts a record by what becomes of it.
    pub(super) const fn count(&mut self, take: Take) {
        let counter = match take {
            Take::Add => &mut self.added,
            Take::Unchanged => &mut self.unchanged,
            Take::Revoke => &mut self.revoked,
            Take::KeepOut => &mut self.kept_out,
        };
        *counter += 1;
    }
}
