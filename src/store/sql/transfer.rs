//! Export and import.

use super::{Rejected, Tx, consumers, tokens, users};
use crate::store::{
    StoreError,
    port::Change,
    record::AccessToken,
    rows::{self, Read, digest, name, needed, seconds, unix_time},
    rules::{self, Take, World, folded},
    transfer::{
        BATCH, Import, ImportRefusal, Imported, MAX_PASSWORD_COSTS, Numbered, Origin, Part,
        Receiver, Record, Sender,
    },
};

/// Pages of each kind of record, and how a row is read.
const KINDS: [(&str, Read<Record>); 5] = [
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
        "SELECT id FROM removed_users WHERE id > $1 ORDER BY id LIMIT $2",
        |row, _| Ok(Record::RemovedUser(name(&needed(row.text("id")?)?)?)),
    ),
    (
        "SELECT token FROM removed_tokens WHERE token > $1 ORDER BY token LIMIT $2",
        |row, _| Ok(Record::RemovedToken(needed(row.text("token")?)?)),
    ),
];

pub(super) async fn export_to(tx: &mut impl Tx, to: &Sender<Record>) -> Result<(), StoreError> {
    let count = tx
        .row(
            "SELECT (SELECT count(*) FROM consumers) + (SELECT count(*) FROM users)
                 + (SELECT count(*) FROM access_tokens) + (SELECT count(*) FROM removed_users)
                 + (SELECT count(*) FROM removed_tokens) AS count",
            &[],
            |row, _| needed(row.integer("count")?),
        )
        .await?;
    to.send(Part::Origin(origin(tx).await?)).await?;
    to.send(Part::Count(needed(count)?.unsigned_abs())).await?;
    for (page, read) in KINDS {
        let mut after = String::new();
        loop {
            let records = tx.rows(page, &[&after, &(BATCH as i64)], read).await?;
            let Some(last) = records.last() else { break };
            after = last.key().to_owned();
            to.send(Part::Records(records)).await?;
        }
    }
    Ok(to.send(Part::End).await?)
}

async fn origin<T: Tx>(tx: &mut T) -> Result<Origin, StoreError> {
    let read: Read<_> = |row, _| {
        Ok(Origin {
            store: needed(row.text("id")?)?,
            accepted_until: unix_time(row.integer("accepted_until")?.unwrap_or(0))?,
        })
    };
    needed(tx.row(T::STATEMENTS.origin, &[], read).await?)
}

pub(super) async fn import(
    tx: &mut impl Tx,
    mut records: Receiver<Numbered>,
) -> Result<Import, StoreError> {
    tx.execute("SAVEPOINT import", &[]).await?;
    let import = take_all(tx, &mut records).await?;
    if matches!(import, Import::Refused { .. }) {
        tx.execute("ROLLBACK TO SAVEPOINT import", &[]).await?;
        tx.forget_changes();
    }
    tx.execute("RELEASE SAVEPOINT import", &[]).await?;
    Ok(import)
}

/// Takes all records in, or rejects them; a rejection leaves changes behind, which the caller rolls back.
async fn take_all<T: Tx>(
    tx: &mut T,
    records: &mut Receiver<Numbered>,
) -> Result<Import, StoreError> {
    let mut imported = Imported::default();
    loop {
        let batch = match records.receive().await? {
            Part::Origin(from) => {
                note_origin(tx, &from).await?;
                continue;
            }
            Part::Count(_) => continue,
            Part::Records(batch) => batch,
            Part::End => break,
        };
        if let Some((index, refusal)) = T::in_time(take_batch(tx, &batch, &mut imported)).await? {
            return Ok(Import::Refused { index, refusal });
        }
        tx.drop_changes()?;
    }
    Ok(Import::Imported(imported))
}

/// Notes up to which timestamp the nonces of the imported records are unknown, unless they are from this very store.
async fn note_origin<T: Tx>(tx: &mut T, from: &Origin) -> Result<(), StoreError> {
    if from.store != origin(tx).await?.store {
        let raise = T::STATEMENTS.raise_imported_nonces_until;
        tx.execute(raise, &[&seconds(from.accepted_until)]).await?;
    }
    Ok(())
}

/// Takes some records in; returns the one that is rejected.
async fn take_batch(
    tx: &mut impl Tx,
    batch: &[Numbered],
    imported: &mut Imported,
) -> Result<Rejected, StoreError> {
    let first_token =
        batch.partition_point(|(_, record)| !matches!(record, Record::AccessToken(_)));
    let (others, tokens) = batch.split_at(first_token);
    match take_each(tx, others, imported).await? {
        None => tx.take_tokens(tokens, imported).await,
        rejected => Ok(rejected),
    }
}

/// Takes records in one after the other; returns the one that is rejected.
pub(in crate::store) async fn take_each(
    tx: &mut impl Tx,
    records: &[Numbered],
    imported: &mut Imported,
) -> Result<Rejected, StoreError> {
    for (index, record) in records {
        match take(tx, record).await? {
            Ok(take) => {
                if take == Take::Add
                    && matches!(record, Record::User(_))
                    && users::password_costs(tx).await?.len() > MAX_PASSWORD_COSTS
                {
                    return Ok(Some((*index, ImportRefusal::TooManyCosts)));
                }
                imported.count(take);
            }
            Err(refusal) => return Ok(Some((*index, refusal))),
        }
    }
    Ok(None)
}

async fn take(
    tx: &mut impl Tx,
    record: &Record,
) -> Result<Result<Take, ImportRefusal>, StoreError> {
    let world = look_around(tx, record).await?;
    let take = match rules::take(record, &world) {
        Ok(take) => take,
        Err(refusal) => return Ok(Err(refusal)),
    };
    match (take, record) {
        (Take::Add, Record::RemovedUser(id)) => users::retire(tx, id).await?,
        (Take::Add, Record::RemovedToken(token)) => {
            let insert = "INSERT INTO removed_tokens (token) VALUES ($1)";
            tx.execute(insert, &[token]).await?;
            tx.changed(Change::AccessToken(token.clone()))?;
        }
        (Take::Add, Record::Consumer(consumer)) => consumers::put(tx, consumer).await?,
        (Take::Add, Record::User(user)) => users::insert(tx, user).await?,
        (Take::Add, Record::AccessToken(token)) => {
            let is_new = tokens::insert(tx, token).await?;
            if !is_new {
                return Err(StoreError::Broken("a token comes twice in the import"));
            }
        }
        (Take::Revoke, Record::RemovedToken(token)) => tokens::revoke_at(tx, token, None).await?,
        (
            Take::Revoke,
            Record::AccessToken(AccessToken {
                token, revoked_at, ..
            }),
        ) => tokens::revoke_at(tx, token, *revoked_at).await?,
        _ => {}
    }
    Ok(Ok(take))
}

/// Reads all that decides what becomes of a record.
async fn look_around(tx: &mut impl Tx, record: &Record) -> Result<World, StoreError> {
    let mut world = World::default();
    let (consumer, user, token) = record.names();
    if let Some(key) = consumer {
        let found = consumers::find(tx, key).await?;
        world
            .consumers
            .extend(found.map(|found| (key.clone(), found)));
    }
    if let Some(id) = user {
        let found = users::find(tx, id).await?;
        world.users.extend(found.map(|found| (id.clone(), found)));
        if users::is_removed(tx, id).await? {
            world.removed_users.insert(id.to_string());
        }
    }
    if let Some(token) = token {
        let found = tokens::find(tx, token).await?;
        world
            .tokens
            .extend(found.map(|found| (token.clone(), found)));
        if tokens::is_taken(tx, token).await? {
            world.removed_tokens.insert(token.clone());
        }
    }
    if let Record::User(user) = record {
        if users::find_by_name(tx, &user.name).await?.is_some() {
            world.names.insert(folded(&user.name));
        }
        if let Some(hash) = &user.password_hash
            && users::is_replaced_hash(tx, &user.id, hash).await?
        {
            world.replaced_hashes.insert(user.id.clone(), digest(hash));
        }
    }
    Ok(world)
}
