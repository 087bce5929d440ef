//! Prepared transactions: what an import or the sealing of a store changes is prepared here from what was read, staged
//! in Redis, and made in one run of the script, if everything that it depends on is still as it was read.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use aws_lc_rs::rand;
use redis::Value;

use super::{
    CHUNK, RedisStore, TRIES, Trouble, folded,
    open::SCHEMA,
    row,
    step::{self, Step},
};
use crate::{
    clock::Clock,
    names::{ConsumerKey, UserId},
    store::{
        StoreError,
        record::{AccessToken, Consumer, User, password_cost},
        rows::{self, digest},
        rules::{self, Here, Take},
        transfer::{Import, ImportRefusal, Imported, MAX_PASSWORD_COSTS, Record},
    },
};

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

/// What the store has under the keys that an import touches.
#[derive(Default)]
struct World {
    consumers: HashMap<ConsumerKey, Consumer>,
    users: HashMap<UserId, User>,
    replaced_hashes: HashMap<UserId, Vec<u8>>,
    tokens: HashMap<String, AccessToken>,
    removed_users: BTreeSet<String>,
    removed_tokens: BTreeSet<String>,
    names: BTreeSet<String>,
    costs: BTreeSet<String>,
}

impl RedisStore {
    pub(super) async fn import_all(&self, records: Vec<Record>) -> Result<Import, StoreError> {
        for _ in 0..TRIES {
            self.sweep().await?;
            let sealed = self.sealed.load_full();
            let mut prepared = Prepared::default();
            prepared.push("count", ["orphans", "0"]);
            let mut world = self.look_around(&records, &mut prepared).await?;
            let checks = prepared.0.len();
            let import = self.take_all(&records, &mut world, &mut prepared)?;
            let changes_nothing =
                matches!(import, Import::Refused { .. }) || prepared.0.len() == checks;
            if changes_nothing || self.commit(prepared, &sealed).await? {
                return Ok(import);
            }
        }
        Err(Trouble::Contended.into())
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
        let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
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
        records: &[Record],
        prepared: &mut Prepared,
    ) -> Result<World, StoreError> {
        let keys: Vec<String> = records
            .iter()
            .flat_map(keys_of)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let mut world = World::default();
        for some in keys.chunks(CHUNK) {
            let step = self.step("look");
            let step = some.iter().fold(step, |step, key| step.arg(key));
            let found: Vec<Value> = self.run(step).await?;
            if found.len() != some.len() {
                return Err(StoreError::Broken("a reply has another form"));
            }
            for (key, found) in some.iter().zip(found) {
                self.note(key, found, &mut world, prepared)?;
            }
        }
        let step = self.step("account").arg("");
        let (_, costs): (Value, BTreeSet<String>) = self.run(step).await?;
        prepared.push("costs", [costs.len().to_string()]);
        world.costs = costs;
        Ok(world)
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
        records: &[Record],
        world: &mut World,
        prepared: &mut Prepared,
    ) -> Result<Import, StoreError> {
        let mut imported = Imported::default();
        let mut order: Vec<(usize, &Record)> = records.iter().enumerate().collect();
        order.sort_by_key(|(_, record)| rules::import_order(record));
        for (index, record) in order {
            let take = match rules::take(record, &world.here(record)) {
                Ok(take) => take,
                Err(refusal) => return Ok(Import::Refused { index, refusal }),
            };
            match take {
                Take::Add => self.add(record, world, prepared)?,
                Take::Revoke => world.revoke(record, prepared),
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

impl World {
    fn here(&self, record: &Record) -> Here<'_> {
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

    /// Prepares that a token is revoked, at the time of the record, else now.
    fn revoke(&mut self, record: &Record, prepared: &mut Prepared) {
        let (token, at) = match record {
            Record::AccessToken(token) => (&token.token, token.revoked_at),
            Record::RemovedToken(token) => (token, None),
            _ => return,
        };
        let at = at.unwrap_or_else(|| Clock::system().now());
        prepared.push("revoke", [&**token, &at.0.to_string()]);
        if let Some(here) = self.tokens.get_mut(token) {
            here.revoked_at = Some(at);
        }
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
