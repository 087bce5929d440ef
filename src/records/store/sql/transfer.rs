//! Export and import.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{
    Store, consumers, maintenance, retire,
    rows::{self, Read},
    tokens,
    tx::Tx,
    users,
};
use crate::records::store::{
    Result, StoreError,
    engine::{Deadline, Isolation},
    password_cost::password_cost,
    port::Change,
    record::{AccessToken, Consumer, User},
    transfer::{
        BATCH, Conflict, Export, Import, ImportList, ImportProblem, Imported,
        MAX_PASSWORD_MILLISECONDS, MAX_PROBLEMS, Numbered, Origin, Record, name,
    },
    value::needed,
};

impl Store {
    /// Reads the contents of an export, as of one moment.
    pub async fn export(&self) -> Result<Export> {
        self.run("export", (Isolation::Snapshot, Deadline::Transfer), export)
            .await
    }

    /// Imports all of the records or none. The rules are documented at [`Import`].
    pub async fn import(&self, list: ImportList) -> Result<Import> {
        self.run(
            "import",
            (Isolation::Exclusive, Deadline::Transfer),
            async |tx| import(tx, &list).await,
        )
        .await
    }
}

/// The tables of all kinds of records, each with the column of its key and how a row is read.
const TABLES: [(&str, &str, Read<Record>); 6] = [
    ("countersign.consumers", "key", |row, seal| {
        rows::consumer(row, seal).map(Record::Consumer)
    }),
    ("countersign.users", "id", |row, seal| {
        rows::user(row, seal).map(Record::User)
    }),
    ("countersign.access_tokens", "token", |row, seal| {
        rows::access_token(row, seal).map(Record::AccessToken)
    }),
    (
        "(SELECT key FROM countersign.removed WHERE kind = 'consumer') AS removed",
        "key",
        |row, _| row.get("key").map(Record::RemovedConsumer),
    ),
    (
        "(SELECT key AS id FROM countersign.removed WHERE kind = 'user') AS removed",
        "id",
        |row, _| row.get("id").map(Record::RemovedUser),
    ),
    (
        "(SELECT key AS token FROM countersign.removed WHERE kind = 'token') AS removed",
        "token",
        |row, _| row.get("token").map(Record::RemovedToken),
    ),
];

pub(super) async fn export(tx: &mut Tx) -> Result<Export> {
    let origin = origin(tx).await?;
    let mut records: Vec<Record> = Vec::new();
    for (table, key, read) in TABLES {
        let page = format!("SELECT * FROM {table} WHERE {key} > $1 ORDER BY {key} LIMIT $2");
        let mut after = String::new();
        loop {
            let params = [after.as_str().into(), (BATCH as i64).into()];
            let next = tx.rows(&page, &params, read).await?;
            let Some(last) = next.last() else { break };
            last.identity().1.clone_into(&mut after);
            records.extend(next);
        }
    }
    Ok(Export { origin, records })
}

/// The identity of this store, and the timestamp up to which it may have accepted requests.
async fn origin(tx: &mut Tx) -> Result<Origin> {
    let read: Read<_> = |row, _| {
        Ok(Origin {
            store: row.get("id")?,
            accepted_until: row.get::<Option<_>>("accepted_until")?.unwrap_or_default(),
        })
    };
    let find = format!(
        "SELECT id, (SELECT max(until) FROM {}) AS accepted_until FROM countersign.meta",
        tx.statements().accepted
    );
    needed(tx.row(&find, &[], read).await?)
}

/// An import under way.
struct State {
    imported: Imported,
    problems: Vec<ImportProblem>,
    /// The names of records with a problem; a record that names one of them is not rejected for that.
    rejected: HashSet<String>,
    /// The costs of all password hashes.
    costs: BTreeSet<String>,
    milliseconds: fn(&str) -> u32,
}

pub(super) async fn import(tx: &mut Tx, list: &ImportList) -> Result<Import> {
    tx.execute("SAVEPOINT import", &[]).await?;
    if let Some(from) = &list.origin
        && from.store != origin(tx).await?.store
    {
        maintenance::raise_high_water_mark(tx, maintenance::IMPORTED, from.accepted_until).await?;
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
    if state.problems.is_empty() {
        consumers::record_imported_uses(tx, &list.records).await?;
    }
    if list.dry_run || !state.problems.is_empty() {
        tx.execute("ROLLBACK TO SAVEPOINT import", &[]).await?;
        tx.clear_changes();
    }
    tx.execute("RELEASE SAVEPOINT import", &[]).await?;
    state.problems.truncate(MAX_PROBLEMS);
    Ok(match state.problems.is_empty() {
        true => Import::Imported(state.imported),
        false => Import::Rejected(state.problems),
    })
}

/// The action of an import for one record.
#[derive(Debug, Clone, Copy)]
enum Action {
    /// Keep it.
    Add,
    /// It is here already.
    Leave,
    /// Revoke the token that is here, at the time of the record, else now.
    Revoke,
    /// It was removed here before: do not restore it.
    Skip,
}

/// Imports some records; a problem leaves changes, which the caller rolls back.
async fn import_batch(tx: &mut Tx, batch: &[Numbered], state: &mut State) -> Result<()> {
    let mut seen = look_up(tx, batch).await?;
    let mut new_tokens = Vec::new();
    for (line, record) in batch {
        let action = action(tx, record, &seen).await?;
        let action = match action.and_then(|action| state.check_costs(record, action)) {
            Ok(action) => action,
            Err(conflict) => {
                state.reject(*line, record, conflict);
                continue;
            }
        };
        let counter = match action {
            Action::Add => &mut state.imported.added,
            Action::Leave => &mut state.imported.unchanged,
            Action::Revoke => &mut state.imported.revoked,
            Action::Skip => &mut state.imported.not_restored,
        };
        *counter += 1;
        match (action, record) {
            (Action::Add, Record::Consumer(consumer)) => consumers::put(tx, consumer).await?,
            (Action::Add, Record::User(user)) => users::insert(tx, user).await?,
            (Action::Add, Record::AccessToken(token)) => new_tokens.push(token),
            (Action::Add, removed) => {
                let (kind, key) = removed.identity();
                retire(tx, kind.trim_start_matches("removed_"), key).await?;
                if let Record::RemovedToken(token) = removed {
                    tx.changed(Change::AccessToken(token.clone()));
                }
            }
            (Action::Revoke, Record::AccessToken(token)) => {
                tokens::revoke_at(tx, &token.token, token.revoked_at).await?;
            }
            (Action::Revoke, record) => tokens::revoke_at(tx, record.identity().1, None).await?,
            (Action::Leave | Action::Skip, _) => {}
        }
        if matches!(action, Action::Add) {
            seen.insert(record.name(), record.clone());
        }
    }
    if new_tokens.is_empty() || tokens::insert(tx, &new_tokens).await? {
        Ok(())
    } else {
        Err(StoreError::Broken("a token comes twice in the import"))
    }
}

/// The records that the store has under the keys that some records of an import touch, by their names.
type Seen = HashMap<String, Record>;

async fn look_up(tx: &mut Tx, batch: &[Numbered]) -> Result<Seen> {
    let keys: BTreeSet<_> = batch.iter().flat_map(|(_, record)| record.keys()).collect();
    let mut seen = Seen::new();
    for (table, column, read) in TABLES {
        let keys = keys.iter().filter(|(of, _)| *of == column);
        let keys: Vec<&str> = keys.map(|(_, key)| *key).collect();
        let found = tx.rows_among(table, column, &keys, read).await?;
        seen.extend(found.into_iter().map(|record| (record.name(), record)));
    }
    Ok(seen)
}

/// Decides on the action for a record. The caller counts the costs of password hashes.
async fn action(tx: &mut Tx, record: &Record, seen: &Seen) -> Result<Result<Action, Conflict>> {
    let (kind, key) = record.identity();
    let is_removed = |kind: &str, key: &str| {
        let removed = name(&format!("removed_{kind}"), key);
        seen.contains_key(&removed)
    };
    if let Some(found) = seen.get(&record.name()) {
        return Ok(match (found, record) {
            _ if !is_same(tx, found, record).await? => Err(Conflict::Differs),
            (Record::AccessToken(found), Record::AccessToken(token))
                if token.revoked_at.is_some() =>
            {
                Ok(revoke(found))
            }
            _ => Ok(Action::Leave),
        });
    }
    if let Some(kind) = kind.strip_prefix("removed_") {
        return Ok(match seen.get(&name(kind, key)) {
            Some(Record::AccessToken(found)) => Ok(revoke(found)),
            // Only a person may decide to remove a consumer or a user, not a file.
            Some(_) => Err(Conflict::Differs),
            None => Ok(Action::Add),
        });
    }
    Ok(match record {
        _ if is_removed(kind, key) => Ok(Action::Skip),
        Record::User(user) if users::find_by_name(tx, &user.name).await?.is_some() => {
            Err(Conflict::NameTaken)
        }
        Record::AccessToken(AccessToken { consumer, .. })
            if is_removed("consumer", consumer.as_str()) =>
        {
            Ok(Action::Skip)
        }
        Record::AccessToken(AccessToken { consumer, .. })
            if !seen.contains_key(&name("consumer", consumer.as_str())) =>
        {
            Err(Conflict::ConsumerUnknown(consumer.clone()))
        }
        Record::AccessToken(token) => match seen.get(&name("user", token.user.as_str())) {
            _ if token.revoked_at.is_some() => Ok(Action::Add),
            Some(Record::User(user)) if user.enabled => Ok(Action::Add),
            Some(_) => Err(Conflict::UserDisabled),
            None if is_removed("user", token.user.as_str()) => Ok(Action::Skip),
            None => Err(Conflict::UserUnknown(token.user.clone())),
        },
        _ => Ok(Action::Add),
    })
}

fn revoke(found: &AccessToken) -> Action {
    match found.revoked_at {
        Some(_) => Action::Leave,
        None => Action::Revoke,
    }
}

/// Whether two records of one key are the same, but for the times of registration, issue, last use and revocation.
async fn is_same(tx: &mut Tx, found: &Record, record: &Record) -> Result<bool> {
    Ok(match (found.clone(), record) {
        (Record::Consumer(found), Record::Consumer(consumer)) => {
            let created_at = consumer.created_at;
            Consumer {
                created_at,
                ..found
            } == *consumer
        }
        (Record::User(mut found), Record::User(user)) => {
            // A login may have replaced the hash of the same password since the export.
            if let Some(hash) = &user.password_hash
                && users::is_replaced_hash(tx, &user.id, hash).await?
            {
                found.password_hash = Some(hash.clone());
            }
            let created_at = user.created_at;
            User {
                created_at,
                ..found
            } == *user
        }
        (Record::AccessToken(found), Record::AccessToken(token)) => {
            let found = AccessToken {
                issued_at: token.issued_at,
                last_used_at: token.last_used_at,
                revoked_at: token.revoked_at,
                ..found
            };
            found == *token
        }
        (found, record) => found == *record,
    })
}

impl State {
    /// Adds the cost of a new user's password hash to the others, unless together they take too long.
    fn check_costs(&mut self, record: &Record, action: Action) -> Result<Action, Conflict> {
        let (Action::Add, Record::User(user)) = (action, record) else {
            return Ok(action);
        };
        let Some(cost) = user.password_hash.as_ref().map(password_cost) else {
            return Ok(action);
        };
        if self.costs.contains(&cost) {
            return Ok(action);
        }
        let costs = self.costs.iter().chain([&cost]);
        let all: u32 = costs.map(|cost| (self.milliseconds)(cost)).sum();
        if all > MAX_PASSWORD_MILLISECONDS {
            return Err(Conflict::PasswordCosts);
        }
        self.costs.insert(cost);
        Ok(action)
    }

    fn reject(&mut self, line: usize, record: &Record, conflict: Conflict) {
        self.rejected.insert(record.name());
        let missing = conflict.missing();
        if !missing.is_some_and(|missing| self.rejected.contains(&missing)) {
            self.problems.push(ImportProblem {
                line,
                record: record.name(),
                conflict,
            });
        }
    }
}
