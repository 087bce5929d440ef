//! Decides what an import does with a record.

use std::collections::{BTreeSet, HashMap};

use super::{
    super::{tx::Tx, users},
    TABLES,
};
use crate::{
    base::clock::UnixTime,
    records::values::{
        Result, StoreError,
        record::{AccessToken, Consumer, User},
        transfer::{Conflict, Existing, MUST_CHANGE, Numbered, Record, name},
    },
};

/// The action of an import for one record.
#[derive(Debug)]
pub(super) enum Action {
    /// Keep it.
    Add(Box<Record>),
    /// Change the record that is here to this one.
    Change(Box<Record>),
    /// It is here already.
    Leave,
    /// Revoke the token that is here, at this time, else now.
    Revoke(Option<UnixTime>),
    /// It was removed here before: do not restore it.
    Skip,
}

/// The records that the store has under the keys that some records of an import touch, by their names.
pub(super) type Seen = HashMap<String, Record>;

pub(super) async fn look_up(tx: &mut Tx, batch: &[Numbered]) -> Result<Seen> {
    let keys: BTreeSet<_> = batch.iter().flat_map(|one| one.record.keys()).collect();
    let mut seen = Seen::new();
    for (table, column, read) in TABLES {
        let keys = keys.iter().filter(|(of, _)| *of == column);
        let keys: Vec<&str> = keys.map(|(_, key)| *key).collect();
        if keys.is_empty() {
            continue;
        }
        let found = tx.rows_among(table, column, &keys, read).await?;
        seen.extend(found.into_iter().map(|record| (record.name(), record)));
    }
    Ok(seen)
}

/// Decides on the action for a record. The caller counts the costs of password hashes.
pub(super) async fn action(
    tx: &mut Tx,
    given: &Numbered,
    existing: Existing,
    seen: &Seen,
) -> Result<Result<Action, Conflict>> {
    let record = &given.record;
    let (kind, key) = record.identity();
    if let Some(found) = seen.get(&record.name()) {
        let after = after(tx, found, given, existing).await?;
        let revoked_at = match record {
            Record::AccessToken(token) => token.revoked_at,
            _ => None,
        };
        return Ok(if after == *found {
            Ok(match (found, revoked_at) {
                (Record::AccessToken(found), Some(_)) => revoke(found, revoked_at),
                _ => Action::Leave,
            })
        } else if may_change(existing, record) {
            check(tx, changed(after, revoked_at), seen, Action::Change).await?
        } else {
            Err(Conflict::Differs(found.differing(&after)))
        });
    }
    if let Some(kind) = kind.strip_prefix("removed_") {
        return Ok(match seen.get(&name(kind, key)) {
            Some(Record::AccessToken(found)) => Ok(revoke(found, None)),
            // Only an operator may decide to remove a consumer or a user, not a mark in a file.
            Some(_) => Err(Conflict::NotRemoved),
            None => Ok(Action::Add(Box::new(record.clone()))),
        });
    }
    if is_removed(seen, kind, key) {
        return Ok(Ok(Action::Skip));
    }
    if let Record::Consumer(consumer) = record {
        if given.lacks("name") {
            return Ok(Err(Conflict::Incomplete("name")));
        }
        if given.lacks("secret") && !consumer.may_have_its_secret() {
            return Ok(Err(Conflict::Incomplete("secret")));
        }
    }
    check(tx, record.clone(), seen, Action::Add).await
}

/// Whether the record of the file takes the place of one with other content.
fn may_change(existing: Existing, record: &Record) -> bool {
    match existing {
        Existing::Reject => false,
        Existing::Replace => true,
        Existing::Update => matches!(record, Record::Consumer(_)),
    }
}

/// The record with its revocation, if the file has one and the store has none.
fn changed(mut after: Record, revoked_at: Option<UnixTime>) -> Record {
    if let Record::AccessToken(token) = &mut after {
        token.revoked_at = token.revoked_at.or(revoked_at);
    }
    after
}

/// Checks what a record needs that is added or changed.
async fn check(
    tx: &mut Tx,
    record: Record,
    seen: &Seen,
    action: fn(Box<Record>) -> Action,
) -> Result<Result<Action, Conflict>> {
    match &record {
        Record::Consumer(consumer) if !consumer.can_sign() => return Ok(Err(Conflict::CannotSign)),
        Record::Consumer(consumer)
            if consumer.enabled
                && (consumer.is_unapproved()
                    || !consumer.may_be_enabled() && is_disabled(seen, &record.name())) =>
        {
            return Ok(Err(Conflict::Unapproved));
        }
        Record::Consumer(consumer) if !consumer.may_have_its_secret() => {
            return Ok(Err(Conflict::Incomplete("secret")));
        }
        Record::User(user) => {
            let namesake = users::find_by_name(tx, &user.name).await?;
            if namesake.is_some_and(|other| other.id != user.id) {
                return Ok(Err(Conflict::NameTaken));
            }
        }
        Record::AccessToken(token) => match owners(token, seen) {
            Ok(true) => {}
            Ok(false) => return Ok(Ok(Action::Skip)),
            Err(conflict) => return Ok(Err(conflict)),
        },
        _ => {}
    }
    Ok(Ok(action(Box::new(record))))
}

/// Checks the consumer and the user of a token; `false`: one of the two was removed here.
fn owners(token: &AccessToken, seen: &Seen) -> Result<bool, Conflict> {
    let consumer = token.consumer.as_str();
    if is_removed(seen, "consumer", consumer) {
        return Ok(false);
    }
    if !seen.contains_key(&name("consumer", consumer)) {
        return Err(Conflict::ConsumerUnknown(token.consumer.clone()));
    }
    match seen.get(&name("user", token.user.as_str())) {
        _ if token.revoked_at.is_some() => Ok(true),
        Some(Record::User(user)) if user.enabled => Ok(true),
        Some(_) => Err(Conflict::UserDisabled),
        None if is_removed(seen, "user", token.user.as_str()) => Ok(false),
        None => Err(Conflict::UserUnknown(token.user.clone())),
    }
}

/// Whether there is a consumer of this name, and it is disabled.
fn is_disabled(seen: &Seen, name: &str) -> bool {
    matches!(seen.get(name), Some(Record::Consumer(found)) if !found.enabled)
}

fn is_removed(seen: &Seen, kind: &str, key: &str) -> bool {
    seen.contains_key(&name(&format!("removed_{kind}"), key))
}

fn revoke(found: &AccessToken, at: Option<UnixTime>) -> Action {
    match found.revoked_at {
        Some(_) => Action::Leave,
        None => Action::Revoke(at),
    }
}

/// The record that takes the place of `found`: that of the file, with the times of registration, issue, last use and
/// revocation that the store has.
async fn after(
    tx: &mut Tx,
    found: &Record,
    given: &Numbered,
    existing: Existing,
) -> Result<Record> {
    Ok(match (found, given.record.clone()) {
        (Record::Consumer(found), Record::Consumer(consumer)) => {
            let consumer = match existing {
                Existing::Update => updated(found, &consumer, given)?,
                Existing::Reject | Existing::Replace => consumer,
            };
            Record::Consumer(Consumer {
                created_at: found.created_at,
                // A file that does not know of the request is no decision on it.
                owner: consumer.owner.clone().or_else(|| found.owner.clone()),
                registration: consumer.registration.or(found.registration),
                ..consumer
            })
        }
        (Record::User(found), Record::User(user)) => {
            let says_nothing = given.lacks(MUST_CHANGE);
            let keeps_password = match &user.password_hash {
                Some(hash) if says_nothing && found.password_hash.as_ref() == Some(hash) => true,
                // A login may have replaced the hash of the same password since the export.
                Some(hash) => users::is_replaced_hash(tx, &user.id, hash).await?,
                // A file without a password says nothing about one that was set since.
                None => true,
            };
            let of = if keeps_password { found } else { &user };
            Record::User(User {
                password_hash: of.password_hash.clone(),
                must_change_password: of.must_change_password,
                created_at: found.created_at,
                ..user
            })
        }
        (Record::AccessToken(found), Record::AccessToken(token)) => {
            Record::AccessToken(AccessToken {
                issued_at: found.issued_at,
                last_used_at: found.last_used_at,
                last_used_from: found.last_used_from,
                revoked_at: found.revoked_at,
                began: found.began,
                with_display_name: found.with_display_name,
                ..token
            })
        }
        (_, record) => record,
    })
}

/// A consumer with the members of a line, and the others that it has in the store.
fn updated(found: &Consumer, consumer: &Consumer, given: &Numbered) -> Result<Consumer> {
    let broken = |_| StoreError::Broken("a consumer cannot be written as JSON");
    let mut members = serde_json::to_value(consumer).map_err(broken)?;
    let there = serde_json::to_value(found).map_err(broken)?;
    for (name, value) in there.as_object().into_iter().flatten() {
        if given.lacks(name) {
            members[name] = value.clone();
        }
    }
    let of = |name: &str| if given.lacks(name) { found } else { consumer };
    Ok(Consumer {
        secret: of("secret").secret.clone(),
        previous_secret: of("previous_secret").previous_secret.clone(),
        ..serde_json::from_value(members).map_err(broken)?
    })
}
