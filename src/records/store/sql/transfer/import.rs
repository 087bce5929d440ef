//! Imports records in one transaction.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    hash::{BuildHasher as _, RandomState},
    io,
};

use super::{
    super::{consumers, maintenance, retire, tokens, tx::Tx, users},
    action::{Action, Seen, action, look_up},
    origin,
};
use crate::{
    base::text::names::ConsumerKey,
    records::values::{
        Result, StoreError,
        password_cost::password_cost,
        record::AccessToken,
        transfer::{
            Alike, BATCH, Conflict, Difference, Import, ImportList, ImportProblem, Imported,
            MAX_PASSWORD_MILLISECONDS, MAX_PROBLEMS, Numbered, Record, name,
        },
        use_cases::Change,
        value::seconds,
    },
};

/// The most consumers whose last uses are held until they are written.
const MOST_USES: usize = 10_000;

/// An import under way.
struct State<'a> {
    list: ImportList<'a>,
    imported: Imported,
    problems: Vec<ImportProblem>,
    problem_count: u64,
    alike: Alike,
    rejected: Rejected,
    /// The costs of all password hashes.
    costs: BTreeSet<String>,
    /// The last uses of consumers that are not written yet.
    uses: BTreeMap<ConsumerKey, i64>,
}

/// The names of records with a problem; a record that names one of them is not rejected for that. Only their hashes are
/// kept: two names with one hash hide a problem beside another one.
#[derive(Default)]
struct Rejected {
    hashes: HashSet<u64>,
    random: RandomState,
}

impl Rejected {
    fn insert(&mut self, name: &str) {
        self.hashes.insert(self.random.hash_one(name));
    }

    fn contains(&self, name: &str) -> bool {
        self.hashes.contains(&self.random.hash_one(name))
    }
}

/// Imports; the inner error is that of the records.
pub(super) async fn import(tx: &mut Tx, list: ImportList<'_>) -> Result<io::Result<Import>> {
    tx.execute("SAVEPOINT import", &[]).await?;
    if let Some(from) = &list.origin
        && from.store != origin(tx).await?.store
    {
        maintenance::raise_high_water_mark(tx, maintenance::IMPORTED, from.accepted_until).await?;
    }
    let mut state = State {
        list,
        imported: Imported::default(),
        problems: Vec::new(),
        problem_count: 0,
        alike: Alike::default(),
        rejected: Rejected::default(),
        costs: users::password_costs(tx).await?.into_iter().collect(),
        uses: BTreeMap::new(),
    };
    let indexes = drop_indexes(tx).await?;
    let read = import_all(tx, &mut state).await?;
    let is_kept = !state.list.dry_run && state.problem_count == 0 && read.is_ok();
    for (_, index) in indexes.iter().filter(|_| is_kept) {
        tx.batch(index).await?;
    }
    let is_expected = (state.list.is_expected)();
    if !is_kept || !is_expected {
        tx.execute("ROLLBACK TO SAVEPOINT import", &[]).await?;
        tx.clear_changes();
    }
    tx.execute("RELEASE SAVEPOINT import", &[]).await?;
    Ok(read.map(|()| match state.problem_count {
        0 if !is_expected => Import::Unexpected,
        0 => Import::Imported(state.imported),
        count => Import::Rejected(state.problems, count, state.alike),
    }))
}

async fn import_all(tx: &mut Tx, state: &mut State<'_>) -> Result<io::Result<()>> {
    prune(tx, state).await?;
    loop {
        let batch: io::Result<Vec<Numbered>> = state.list.records.by_ref().take(BATCH).collect();
        match batch {
            Err(error) => return Ok(Err(error)),
            Ok(batch) if batch.is_empty() => break,
            Ok(batch) => import_batch(tx, batch, state).await?,
        }
        tx.drop_changes();
        if state.uses.len() > MOST_USES {
            consumers::record_imported_uses(tx, &std::mem::take(&mut state.uses)).await?;
        }
    }
    consumers::record_imported_uses(tx, &state.uses).await?;
    Ok(Ok(()))
}

/// Drops the indexes of the tokens that are made again at the end, and returns them by their names.
async fn drop_indexes(tx: &mut Tx) -> Result<Vec<(String, String)>> {
    let find = tx.statements().late_indexes;
    if find.is_empty() {
        return Ok(Vec::new());
    }
    let indexes = tx.rows(find, &[], |row, _| Ok((row.get("name")?, row.get("sql")?)));
    let indexes: Vec<(String, String)> = indexes.await?;
    for (name, _) in &indexes {
        tx.batch(&format!("DROP INDEX {name}")).await?;
    }
    Ok(indexes)
}

/// Removes the consumers that the list does not keep.
async fn prune(tx: &mut Tx, state: &mut State<'_>) -> Result<()> {
    let Some(keeps) = &state.list.keeps else {
        return Ok(());
    };
    let page = "SELECT key FROM countersign.consumers WHERE key > $1 ORDER BY key LIMIT $2";
    let mut after = String::new();
    loop {
        let params = [after.as_str().into(), (BATCH as i64).into()];
        let keys: Vec<ConsumerKey> = tx.rows(page, &params, |row, _| row.get("key")).await?;
        let Some(last) = keys.last() else {
            return Ok(());
        };
        last.as_str().clone_into(&mut after);
        for key in keys.iter().filter(|key| !keeps(key)) {
            let tokens = consumers::remove(tx, key).await?;
            state.imported.removed += 1;
            (state.list.differences)(Difference::Removed(key, tokens));
        }
        tx.drop_changes();
    }
}

/// Imports some records; a problem leaves changes, which the caller rolls back.
async fn import_batch(tx: &mut Tx, batch: Vec<Numbered>, state: &mut State<'_>) -> Result<()> {
    let mut seen = look_up(tx, &batch).await?;
    let mut new_tokens = Vec::new();
    for given in batch {
        if let Record::AccessToken(token) = &given.record {
            let used = seconds(token.last_used_at.unwrap_or(token.issued_at));
            let last = state.uses.entry(token.consumer.clone()).or_default();
            *last = used.max(*last);
        }
        let action = action(tx, &given, state.list.existing, &seen).await?;
        match action.and_then(|action| state.check_costs(action)) {
            Err(conflict) => state.reject(&given, conflict),
            Ok(action) => {
                let record = given.record;
                perform(tx, (record, action), &mut seen, &mut new_tokens, state).await?;
            }
        }
    }
    if new_tokens.is_empty() || tokens::insert(tx, &new_tokens).await? {
        Ok(())
    } else {
        Err(StoreError::Broken("a token comes twice in the import"))
    }
}

async fn perform(
    tx: &mut Tx,
    (record, action): (Record, Action),
    seen: &mut Seen,
    new_tokens: &mut Vec<AccessToken>,
    state: &mut State<'_>,
) -> Result<()> {
    let found = seen.get(&record.name());
    match action {
        Action::Leave => state.imported.unchanged += 1,
        Action::Skip => state.imported.not_restored += 1,
        Action::Revoke(at) => {
            state.imported.revoked += 1;
            if let Some(Record::AccessToken(found)) = seen.get(&name("token", record.identity().1))
            {
                let mut after = found.clone();
                after.revoked_at = Some(at.unwrap_or(state.list.now));
                let before = Record::AccessToken(found.clone());
                (state.list.differences)(Difference::Changed(&before, &Record::AccessToken(after)));
            }
            tokens::revoke_at(tx, record.identity().1, at).await?;
        }
        Action::Add(after) => {
            state.imported.added += 1;
            (state.list.differences)(Difference::Added(&after));
            match &*after {
                Record::Consumer(consumer) => consumers::put(tx, consumer).await?,
                Record::User(user) => users::insert(tx, user).await?,
                Record::AccessToken(token) => new_tokens.push(token.clone()),
                removed => {
                    let (kind, key) = removed.identity();
                    retire(tx, kind.trim_start_matches("removed_"), key).await?;
                    if let Record::RemovedToken(token) = removed {
                        tx.changed(Change::AccessToken(token.clone()));
                    }
                }
            }
            seen.insert(after.name(), *after);
        }
        Action::Change(after) => {
            state.imported.changed += 1;
            if let Some(before) = found {
                (state.list.differences)(Difference::Changed(before, &after));
            }
            match (&*after, found) {
                (Record::Consumer(consumer), Some(Record::Consumer(before))) => {
                    consumers::replace(tx, before, consumer).await?;
                }
                (Record::Consumer(consumer), _) => consumers::put(tx, consumer).await?,
                (Record::User(user), Some(Record::User(before))) => {
                    users::replace(tx, before, user, state.list.now).await?;
                }
                (Record::AccessToken(token), _) => {
                    let delete = "DELETE FROM countersign.access_tokens WHERE token = $1";
                    tx.execute(delete, &[token.token.as_str().into()]).await?;
                    new_tokens.push(token.clone());
                }
                _ => {}
            }
            seen.insert(after.name(), *after);
        }
    }
    Ok(())
}

impl State<'_> {
    /// Adds the cost of a new password hash to the others, unless together they take too long.
    fn check_costs(&mut self, action: Action) -> Result<Action, Conflict> {
        let (Action::Add(after) | Action::Change(after)) = &action else {
            return Ok(action);
        };
        let Record::User(user) = &**after else {
            return Ok(action);
        };
        let Some(cost) = user.password_hash.as_ref().map(password_cost) else {
            return Ok(action);
        };
        if self.costs.contains(&cost) {
            return Ok(action);
        }
        let costs = self.costs.iter().chain([&cost]);
        let all: u32 = costs.map(|cost| (self.list.milliseconds)(cost)).sum();
        if all > MAX_PASSWORD_MILLISECONDS {
            return Err(Conflict::PasswordCosts);
        }
        self.costs.insert(cost);
        Ok(action)
    }

    fn reject(&mut self, given: &Numbered, conflict: Conflict) {
        let name = given.record.name();
        self.rejected.insert(&name);
        let follows =
            |missing: &String| self.rejected.contains(missing) || (self.list.has_problem)(missing);
        if conflict.missing().as_ref().is_some_and(follows) {
            return;
        }
        self.problem_count += 1;
        self.alike.add(&format!("{name} {conflict}"));
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(ImportProblem {
                line: given.line,
                record: name,
                conflict,
            });
        }
    }
}
