//! Export and import.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Tx, consumers, maintenance, tokens, users};
use crate::store::{
    StoreError,
    port::Change,
    record::password_cost,
    rows::{self, Read, digest, name, needed, unix_time},
    rules::{self, Action, Seen, folded},
    transfer::{
        BATCH, Conflict, Export, Import, ImportList, Imported, MAX_PASSWORD_MILLISECONDS,
        MAX_PROBLEMS, Numbered, Origin, Problem, Record,
    },
};

/// Pages of each kind of record, and how a row is read.
const KINDS: [(&str, Read<Record>); 6] = [
    (
        "SELECT * FROM consumers WHERE key > $1 ORDER BY key LIMIT $2",
        |row, seal| rows::consumer(row, seal).map(Record::Consumer),
    ),
    (
        "SELECT * FROM users WHERE id > $1 ORDER BY id LIMIT $2",
        |row, seal| rows::user(row, seal).map(Record::User),
    ),
    (
        "SELECT * FROM access_tokens WHERE token > $1 ORDER BY token LIMIT $2",
        |row, seal| rows::access_token(row, seal).map(Record::AccessToken),
    ),
    (
        "SELECT key FROM removed_consumers WHERE key > $1 ORDER BY key LIMIT $2",
        |row, _| Ok(Record::RemovedConsumer(name(&needed(row.text("key")?)?)?)),
    ),
    (
        "SELECT id FROM removed_users WHERE id > $1 ORDER BY id LIMIT $2",
        |row, _| Ok(Record::RemovedUser(name(&needed(row.text("id")?)?)?)),
    ),
    (
        "SELECT token FROM removed_tokens WHERE token > $1 ORDER BY token LIMIT $2",
        |row, _| Ok(Record::RemovedToken(needed(row.text("token")?)?)),
    ),
];

pub(super) async fn export(tx: &mut Tx) -> Result<Export, StoreError> {
    let origin = origin(tx).await?;
    let mut records: Vec<Record> = Vec::new();
    for (page, read) in KINDS {
        let mut after = String::new();
        loop {
            let next = tx.rows(page, &[&after, &(BATCH as i64)], read).await?;
            let Some(last) = next.last() else { break };
            last.identity().1.clone_into(&mut after);
            records.extend(next);
        }
    }
    Ok(Export { origin, records })
}

/// Which store this is, and up to which timestamp it may have accepted requests.
async fn origin(tx: &mut Tx) -> Result<Origin, StoreError> {
    let read: Read<_> = |row, _| {
        Ok(Origin {
            store: needed(row.text("id")?)?,
            accepted_until: unix_time(row.integer("accepted_until")?.unwrap_or(0))?,
        })
    };
    needed(tx.row(tx.statements().origin, &[], read).await?)
}

/// An import under way.
struct State {
    imported: Imported,
    problems: Vec<Problem>,
    /// Kind and key of records with a problem: that others name them is no further problem.
    rejected: HashSet<(&'static str, String)>,
    /// The costs of all password hashes.
    costs: BTreeSet<String>,
    milliseconds: fn(&str) -> u32,
}

pub(super) async fn import(tx: &mut Tx, list: &ImportList) -> Result<Import, StoreError> {
    tx.execute("SAVEPOINT import", &[]).await?;
    if let Some(from) = &list.origin
        && from.store != origin(tx).await?.store
    {
        maintenance::raise_mark(tx, maintenance::IMPORTED, from.accepted_until).await?;
    }
    let mut state = State {
        imported: Imported::default(),
        problems: Vec::new(),
        rejected: HashSet::new(),
        costs: users::password_costs(tx).await?.into_iter().collect(),
        milliseconds: list.milliseconds,
    };
    for batch in list.records.chunks(BATCH) {
        import_batch(tx, batch, &mut state).await?;
        if state.problems.len() >= MAX_PROBLEMS {
            break;
        }
        tx.drop_changes();
    }
    if list.dry_run || !state.problems.is_empty() {
        tx.execute("ROLLBACK TO SAVEPOINT import", &[]).await?;
        tx.changes.clear();
        tx.skipped_changes = 0;
    }
    tx.execute("RELEASE SAVEPOINT import", &[]).await?;
    state.problems.truncate(MAX_PROBLEMS);
    Ok(match state.problems.is_empty() {
        true => Import::Imported(state.imported),
        false => Import::Rejected(state.problems),
    })
}

/// Imports some records; a problem leaves changes, which the caller rolls back.
async fn import_batch(
    tx: &mut Tx,
    batch: &[Numbered],
    state: &mut State,
) -> Result<(), StoreError> {
    let mut seen = look_up(tx, batch).await?;
    let mut new_tokens = Vec::new();
    for (line, record) in batch {
        if let Record::User(user) = record {
            if users::find_by_name(tx, &user.name).await?.is_some() {
                seen.names.insert(folded(&user.name));
            }
            if let Some(hash) = &user.password_hash
                && users::is_replaced_hash(tx, &user.id, hash).await?
            {
                seen.replaced_hashes.insert(user.id.clone(), digest(hash));
            }
        }
        let action = rules::action(record, &seen)
            .and_then(|action| state.check_costs(record, action).map(|()| action));
        let action = match action {
            Ok(action) => action,
            Err(conflict) => {
                state.reject(*line, record, conflict);
                continue;
            }
        };
        state.imported.count(action);
        match (action, record) {
            (Action::Add, Record::RemovedConsumer(key)) => {
                consumers::retire(tx, key).await?;
                seen.removed_consumers.insert(key.to_string());
            }
            (Action::Add, Record::RemovedUser(id)) => {
                users::retire(tx, id).await?;
                seen.removed_users.insert(id.to_string());
            }
            (Action::Add, Record::RemovedToken(token)) => {
                let insert = "INSERT INTO removed_tokens (token) VALUES ($1)";
                tx.execute(insert, &[token]).await?;
                tx.changed(Change::AccessToken(token.clone()));
                seen.removed_tokens.insert(token.clone());
            }
            (Action::Add, Record::Consumer(consumer)) => {
                consumers::put(tx, consumer).await?;
                seen.consumers
                    .insert(consumer.key.clone(), consumer.clone());
            }
            (Action::Add, Record::User(user)) => {
                users::insert(tx, user).await?;
                seen.users.insert(user.id.clone(), user.clone());
            }
            (Action::Add, Record::AccessToken(token)) => new_tokens.push(token),
            (Action::Revoke, Record::RemovedToken(token)) => {
                tokens::revoke_at(tx, token, None).await?;
            }
            (Action::Revoke, Record::AccessToken(token)) => {
                tokens::revoke_at(tx, &token.token, token.revoked_at).await?;
            }
            _ => {}
        }
    }
    if new_tokens.is_empty() || tokens::insert(tx, &new_tokens).await? {
        Ok(())
    } else {
        Err(StoreError::Broken("a token comes twice in the import"))
    }
}

impl State {
    /// Adds the cost of a new user's password hash to the others, unless together they take too long.
    fn check_costs(&mut self, record: &Record, action: Action) -> Result<(), Conflict> {
        let (Action::Add, Record::User(user)) = (action, record) else {
            return Ok(());
        };
        let Some(cost) = user.password_hash.as_ref().map(password_cost) else {
            return Ok(());
        };
        if self.costs.contains(&cost) {
            return Ok(());
        }
        let costs = self.costs.iter().chain([&cost]);
        let all: u32 = costs.map(|cost| (self.milliseconds)(cost)).sum();
        if all > MAX_PASSWORD_MILLISECONDS {
            return Err(Conflict::PasswordCosts);
        }
        self.costs.insert(cost);
        Ok(())
    }

    fn reject(&mut self, line: usize, record: &Record, conflict: Conflict) {
        let named = match &conflict {
            Conflict::ConsumerUnknown(key) => Some(("consumer", key.to_string())),
            Conflict::UserUnknown(id) => Some(("user", id.to_string())),
            _ => None,
        };
        let (kind, key) = record.identity();
        self.rejected.insert((kind, key.to_owned()));
        if !named.is_some_and(|named| self.rejected.contains(&named)) {
            self.problems.push(Problem {
                line,
                record: record.name(),
                conflict,
            });
        }
    }
}

/// Reads what the store has under the keys of some records.
async fn look_up<'l>(tx: &mut Tx, batch: &'l [Numbered]) -> Result<Seen, StoreError> {
    let (mut keys, mut ids, mut tokens) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (_, record) in batch {
        let (consumer, user, token) = record.names();
        keys.extend(consumer.map(|key| key.as_str()));
        ids.extend(user.map(|id| id.as_str()));
        tokens.extend(token.map(String::as_str));
    }
    let list = |set: BTreeSet<&'l str>| set.into_iter().collect::<Vec<_>>();
    let (keys, ids, tokens) = (list(keys), list(ids), list(tokens));
    let consumers = tx.rows_among("consumers", "key", &keys, rows::consumer);
    let consumers = consumers.await?;
    let users = tx.rows_among("users", "id", &ids, rows::user).await?;
    let read: Read<_> = |row, _| needed(row.text("key")?);
    let removed_consumers = tx.rows_among("removed_consumers", "key", &keys, read);
    let removed_consumers = removed_consumers.await?;
    let read: Read<_> = |row, _| needed(row.text("id")?);
    let removed_users = tx.rows_among("removed_users", "id", &ids, read).await?;
    let found = tx.rows_among("access_tokens", "token", &tokens, rows::access_token);
    let found = found.await?;
    let removed_tokens = tx.rows_among("removed_tokens", "token", &tokens, rows::token);
    let removed_tokens = removed_tokens.await?;
    Ok(Seen {
        consumers: by(consumers, |consumer| consumer.key.clone()),
        users: by(users, |user| user.id.clone()),
        tokens: by(found, |token| token.token.clone()),
        removed_consumers: removed_consumers.into_iter().collect(),
        removed_users: removed_users.into_iter().collect(),
        removed_tokens: removed_tokens.into_iter().collect(),
        ..Seen::default()
    })
}

fn by<K: std::hash::Hash + Eq, T>(records: Vec<T>, key: impl Fn(&T) -> K) -> HashMap<K, T> {
    let keyed = |record| (key(&record), record);
    records.into_iter().map(keyed).collect()
}
