//! Prepared transactions: what an import or the sealing of a store changes is prepared here from what was read, staged
//! in Redis, and made in one run of the script, if everything that it depends on is still as it was read.

use std::{
    collections::BTreeSet,
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use aws_lc_rs::rand;
use redis::Value;
use sha2::{Digest, Sha256};

use super::{
    CHUNK, RedisFault, RedisStore, TRIES,
    open::SCHEMA,
    row,
    step::{self, Step},
};
use crate::{
    clock::{Clock, UnixTime},
    store::{
        StoreError,
        record::password_cost,
        rows,
        rules::{self, MOST_CHANGES, Take, World, folded},
        transfer::{
            BATCH, Import, ImportRefusal, Imported, MAX_PASSWORD_COSTS, Numbered, Receiver, Record,
            Source,
        },
    },
};

/// Records that are taken in by one run of the script at most: a tenth of a second or so, in which Redis serves nobody.
const AT_ONCE: usize = 10_000;

/// How long a part waits for a Redis that is away.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause before it is attempted again.
const PAUSE: Duration = Duration::from_millis(200);

/// What tells an import from others: the same records come to the same digest.
#[derive(Default)]
struct Whole {
    count: u64,
    digest: Sha256,
}

impl Whole {
    fn note(&mut self, records: &[Numbered]) {
        self.count += records.len() as u64;
        for key in records
            .iter()
            .filter_map(|(_, record)| keys_of(record).into_iter().next())
        {
            self.digest.update(key);
            self.digest.update("\n");
        }
    }
}

/// Steps of a prepared transaction: a name that the script knows, and its arguments.
#[derive(Default)]
pub(super) struct Prepared(Vec<Vec<u8>>);

impl Prepared {
    pub(super) fn push<T: AsRef<[u8]>>(&mut self, name: &str, args: impl IntoIterator<Item = T>) {
        let args: Vec<T> = args.into_iter().collect();
        // MessagePack: an array of strings, with their lengths in four bytes.
        let mut packed = vec![0xdd];
        let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
        packed.extend(length(args.len() + 1));
        for part in std::iter::once(name.as_bytes()).chain(args.iter().map(AsRef::as_ref)) {
            packed.push(0xdb);
            packed.extend(length(part.len()));
            packed.extend(part);
        }
        self.0.push(packed);
    }
}

impl RedisStore {
    /// Takes records in: up to [`AT_ONCE`] in one step. Of more, all are checked first and then taken in by parts, so
    /// that Redis is not held up for minutes; a part is taken in whole or not at all. A note is there from the first part
    /// to the last, so that an import that was interrupted is known.
    pub(super) async fn import_from(&self, source: &Source) -> Result<Import, StoreError> {
        let mut records = source();
        let mut first = Vec::new();
        while first.len() <= AT_ONCE {
            match records.next().await? {
                Some(batch) => first.extend(batch),
                None => return self.import_all(&first).await,
            }
        }
        let mut whole = Whole::default();
        if let Some((index, refusal)) = self.check_all(&first, &mut records, &mut whole).await? {
            return Ok(Import::Refused { index, refusal });
        }
        drop((first, records));
        let (count, digest) = (whole.count, whole.digest.finalize());
        let begin = self.step("begin_import").arg(digest);
        let now = Clock::system().now();
        self.run::<()>(begin.number(count).time(now)).await?;
        let mut imported = Imported::default();
        let parts = async {
            let mut records = source();
            while let Some(batch) = records.next().await? {
                match self.patiently(|| self.import_all(&batch)).await? {
                    Import::Imported(part) => imported.add(part),
                    Import::Refused { refusal, .. } => return Err(refusal.into()),
                }
                // Caches that miss changes take every record for changed.
                let trim = || self.step("trim").number(MOST_CHANGES.unsigned_abs());
                self.patiently(|| self.run::<()>(trim())).await?;
            }
            let end = || self.step("end_import").arg(digest);
            self.patiently(|| self.run::<()>(end())).await?;
            Ok::<_, Box<dyn Error + Send + Sync>>(())
        };
        match parts.await {
            Ok(()) => Ok(Import::Imported(imported)),
            Err(error) => Err(RedisFault::Partly(imported.total(), count, error).into()),
        }
    }

    /// Attempts a part again while Redis is away. A part whose reply was lost is there then, and counts as unchanged.
    async fn patiently<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, StoreError> {
        let begun = Instant::now();
        loop {
            match attempt().await {
                Err(StoreError::Unavailable(_)) if begun.elapsed() < PATIENCE => {
                    self.link.pause(PAUSE).await?;
                }
                result => return result,
            }
        }
    }

    pub(super) async fn unended(&self) -> Result<Vec<String>, StoreError> {
        let imports: Vec<(u64, u64)> = self.run(self.step("unended_imports")).await?;
        let sentences = imports.into_iter().map(|(count, began)| {
            format!(
                "an import of {count} records that began at {} has not ended; if it does not run any more, only a \
                 part of them is there, and the same import completes it",
                UnixTime(began)
            )
        });
        Ok(sentences.collect())
    }

    /// Checks records as if they were taken in; returns the one that is rejected.
    async fn check_all(
        &self,
        first: &[Numbered],
        rest: &mut Receiver<Numbered>,
        whole: &mut Whole,
    ) -> Result<Option<(usize, ImportRefusal)>, StoreError> {
        self.sweep().await?;
        // What the records change is remembered. Of a consumer or user it takes 750 bytes, of a token nothing.
        let mut world = World::default();
        let mut batch = first.to_vec();
        loop {
            whole.note(&batch);
            for some in batch.chunks(BATCH) {
                self.look_around(some, &mut world, &mut Prepared::default())
                    .await?;
                let checked = self.take_all(some, &mut world, &mut Prepared::default())?;
                if let Import::Refused { index, refusal } = checked {
                    return Ok(Some((index, refusal)));
                }
                world.forget_details(some);
            }
            match rest.next().await? {
                Some(next) => batch = next,
                None => return Ok(None),
            }
        }
    }

    async fn import_all(&self, records: &[Numbered]) -> Result<Import, StoreError> {
        for _ in 0..TRIES {
            self.sweep().await?;
            let sealed = self.sealed.load_full();
            let mut prepared = Prepared::default();
            prepared.push("count", ["orphans", "0"]);
            let mut world = World::default();
            self.look_around(records, &mut world, &mut prepared).await?;
            let checks = prepared.0.len();
            let import = self.take_all(records, &mut world, &mut prepared)?;
            let changes_nothing =
                matches!(import, Import::Refused { .. }) || prepared.0.len() == checks;
            if changes_nothing || self.commit(prepared, &sealed).await? {
                return Ok(import);
            }
        }
        Err(RedisFault::Contended.into())
    }

    /// Makes a prepared transaction; `false`: something that it depends on has changed, so nothing was done.
    /// `sealed` is the word of the store for which it was prepared.
    pub(super) async fn commit(
        &self,
        prepared: Prepared,
        sealed: &[u8],
    ) -> Result<bool, StoreError> {
        let mut name = [0; 16];
        rand::fill(&mut name).map_err(|_| StoreError::Broken("there is no randomness"))?;
        let name = step::hex(&name);
        for some in prepared.0.chunks(CHUNK) {
            let step = self.step("stage").arg(&name);
            let step = some.iter().fold(step, |step, packed| step.arg(packed));
            self.run::<()>(step).await?;
        }
        let step = Step::new(SCHEMA, sealed, "commit").arg(&name);
        let step = step.number(prepared.0.len() as u64);
        match self.link.long_call(Arc::new(step)).await {
            // What was prepared is sealed with the former key.
            Err(error) if self.follows(&error).await => Ok(false),
            reply => step::read(reply?),
        }
    }

    /// Reads all that the import depends on, and prepares the checks that it is still so.
    async fn look_around(
        &self,
        records: &[Numbered],
        world: &mut World,
        prepared: &mut Prepared,
    ) -> Result<(), StoreError> {
        let keys: Vec<String> = records
            .iter()
            .flat_map(|(_, record)| keys_of(record))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        for some in keys.chunks(CHUNK) {
            let step = self.step("look");
            let step = some.iter().fold(step, |step, key| step.arg(key));
            let found: Vec<Value> = self.run(step).await?;
            if found.len() != some.len() {
                return Err(StoreError::Broken("a reply has another form"));
            }
            for (key, found) in some.iter().zip(found) {
                self.note(key, found, world, prepared)?;
            }
        }
        let step = self.step("account").arg("");
        let (_, costs): (Value, BTreeSet<String>) = self.run(step).await?;
        prepared.push("costs", [costs.len().to_string()]);
        world.costs.extend(costs);
        Ok(())
    }

    fn note(
        &self,
        key: &str,
        found: Value,
        world: &mut World,
        prepared: &mut Prepared,
    ) -> Result<(), StoreError> {
        let (kind, name) = key.split_once(':').unwrap_or((key, ""));
        match kind {
            "gone-users" | "gone-tokens" => {
                let is_gone = found != Value::Nil;
                prepared.push("member", [kind, name, if is_gone { "1" } else { "0" }]);
                if is_gone && kind == "gone-users" {
                    world.removed_users.insert(name.to_owned());
                } else if is_gone {
                    world.removed_tokens.insert(name.to_owned());
                }
                return Ok(());
            }
            "name" => {
                let id: Option<String> = step::read(found)?;
                prepared.push("name", [name, id.as_deref().unwrap_or_default()]);
                if id.is_some() {
                    world.names.insert(name.to_owned());
                }
                return Ok(());
            }
            _ => {}
        }
        let fields: Option<step::Fields> = step::read(found)?;
        let fields = fields.unwrap_or_default();
        let compared: &[&str] = match kind {
            "c" => &["version"],
            "u" => &["enabled", "password_hash"],
            _ => &["consumer", "revoked_at"],
        };
        for field in compared {
            let value = fields.get(*field).map_or(&b""[..], Vec::as_slice);
            prepared.push("field", [key.as_bytes(), field.as_bytes(), value]);
        }
        if fields.is_empty() {
            return Ok(());
        }
        let found = (name.to_owned(), fields);
        match kind {
            "c" => {
                let consumer = rows::consumer(&row("key", found), &self.seal)?;
                world.consumers.insert(consumer.key.clone(), consumer);
            }
            "u" => {
                let row = row("id", found);
                let user = rows::user(&row, &self.seal)?;
                if let Some(hash) = row.fields.get("replaced_hash") {
                    world.replaced_hashes.insert(user.id.clone(), hash.clone());
                }
                world.users.insert(user.id.clone(), user);
            }
            _ => {
                let token = rows::access_token(&row("token", found), &self.seal)?;
                world.tokens.insert(token.token.clone(), token);
            }
        }
        Ok(())
    }

    fn take_all(
        &self,
        records: &[Numbered],
        world: &mut World,
        prepared: &mut Prepared,
    ) -> Result<Import, StoreError> {
        let mut imported = Imported::default();
        for (index, record) in records {
            let index = *index;
            let take = match rules::take(record, world) {
                Ok(take) => take,
                Err(refusal) => return Ok(Import::Refused { index, refusal }),
            };
            match take {
                Take::Add => self.add(record, world, prepared)?,
                Take::Revoke => revoke(record, world, prepared),
                Take::Unchanged | Take::KeepOut => {}
            }
            if world.costs.len() > MAX_PASSWORD_COSTS
                && take == Take::Add
                && matches!(record, Record::User(_))
            {
                let refusal = ImportRefusal::TooManyCosts;
                return Ok(Import::Refused { index, refusal });
            }
            imported.count(take);
        }
        Ok(Import::Imported(imported))
    }

    /// Prepares that a record is kept, and keeps it in `world` for the records behind it.
    fn add(
        &self,
        record: &Record,
        world: &mut World,
        prepared: &mut Prepared,
    ) -> Result<(), StoreError> {
        let with = |first: &[&str], fields: step::Args| {
            let first = first.iter().map(|arg| arg.as_bytes().to_vec());
            first.chain(fields.0).collect::<Vec<_>>()
        };
        match record {
            Record::RemovedUser(id) => {
                prepared.push("gone_user", [id.as_str()]);
                world.removed_users.insert(id.to_string());
            }
            Record::RemovedToken(token) => {
                prepared.push("gone_token", [token]);
                world.removed_tokens.insert(token.clone());
            }
            Record::Consumer(consumer) => {
                let fields = self.consumer_fields(consumer)?;
                prepared.push("consumer", with(&[consumer.key.as_str()], fields));
                world
                    .consumers
                    .insert(consumer.key.clone(), consumer.clone());
            }
            Record::User(user) => {
                let folded = folded(&user.name);
                let fields = self.user_fields(user)?;
                prepared.push("user", with(&[user.id.as_str(), &folded], fields));
                world
                    .costs
                    .extend(user.password_hash.as_ref().map(password_cost));
                world.names.insert(folded);
                world.users.insert(user.id.clone(), user.clone());
            }
            Record::AccessToken(token) => {
                let keys = [&*token.token, token.consumer.as_str(), token.user.as_str()];
                prepared.push("token", with(&keys, self.token_fields(token)?));
                world.tokens.insert(token.token.clone(), token.clone());
            }
        }
        Ok(())
    }
}

/// Prepares that a token is revoked, at the time of the record, else now.
fn revoke(record: &Record, world: &mut World, prepared: &mut Prepared) {
    let (token, at) = match record {
        Record::AccessToken(token) => (&token.token, token.revoked_at),
        Record::RemovedToken(token) => (token, None),
        _ => return,
    };
    let at = at.unwrap_or_else(|| Clock::system().now());
    prepared.push("revoke", [&**token, &at.0.to_string()]);
    if let Some(here) = world.tokens.get_mut(token) {
        here.revoked_at = Some(at);
    }
}

/// The keys that decide what becomes of a record.
fn keys_of(record: &Record) -> Vec<String> {
    match record {
        Record::RemovedUser(id) => vec![format!("u:{id}"), format!("gone-users:{id}")],
        Record::RemovedToken(token) => vec![format!("a:{token}"), format!("gone-tokens:{token}")],
        Record::Consumer(consumer) => vec![format!("c:{}", consumer.key)],
        Record::User(user) => vec![
            format!("u:{}", user.id),
            format!("gone-users:{}", user.id),
            format!("name:{}", folded(&user.name)),
        ],
        Record::AccessToken(token) => vec![
            format!("a:{}", token.token),
            format!("gone-tokens:{}", token.token),
            format!("c:{}", token.consumer),
            format!("u:{}", token.user),
            format!("gone-users:{}", token.user),
        ],
    }
}
