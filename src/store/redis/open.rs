//! Opening the store: that it is ours, of our schema, and how it keeps secrets.

use std::{error::Error, io, sync::Arc};

use arc_swap::ArcSwap;
use thiserror::Error;

use super::{
    CHUNK, RedisStore, TRIES,
    import::Prepared,
    link::{Link, PATIENCE, RedisFault},
    step::{self, Fields, Step},
    target::Target,
};
use crate::store::{
    Opening, StoreError,
    port::{ResealFrom, Resealed},
    seal::{self, COLUMNS, Column, Mismatch, Seal, SealKey, Settled},
    tls::TlsFileError,
};

/// The schema that this program knows.
pub(super) const SCHEMA: u64 = 1;

/// What other stores call the table, the index of its records, and the kind that is in front of their keys.
const INDEXES: [(&str, &str, &str); 4] = [
    ("consumers", "consumers", "c"),
    ("users", "users", "u"),
    ("access_tokens", "tokens", "a"),
    ("request_tokens", "r-ends", "r"),
];

/// Where the store is and how it keeps secrets.
#[derive(Debug)]
pub struct Params {
    /// The servers.
    pub target: Target,
    /// The keys that open secrets, the first of which seals; none: secrets are kept in clear.
    pub keys: Vec<SealKey>,
    /// What the store is opened for.
    pub opening: Opening,
}

/// Why a store cannot be opened. Each names the servers and the fix; nothing was changed.
#[derive(Debug, Error)]
pub enum OpenError {
    /// A file of the connection's TLS.
    #[error(transparent)]
    Tls(#[from] TlsFileError),
    /// No primary answers and lets us in.
    #[error("{place}: cannot be reached; see the cause, and correct the URL or start Redis")]
    Unreachable {
        /// The servers.
        place: String,
        /// What went wrong.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A newer countersign has migrated the store.
    #[error(
        "{place}: has schema {found}, made by a newer countersign, and this one knows {known}; update this one"
    )]
    NewerSchema {
        /// The servers.
        place: String,
        /// What is there.
        found: String,
        /// What this program knows.
        known: u64,
    },
    /// There is no store in Redis.
    #[error("{0}: has no store in it yet; countersign serve makes it")]
    Missing(String),
    /// The store is sealed and there is no key.
    #[error("{0}: is encrypted; set store.encryption_key_file to its key")]
    KeyMissing(String),
    /// The store is sealed with another key.
    #[error("{0}: is encrypted with another key; correct store.encryption_key_file")]
    WrongKey(String),
    /// Somebody changes the store while it is being encrypted.
    #[error(
        "{0}: is written to by a process without store.encryption_key_file; stop that process, so that the store can be encrypted"
    )]
    Busy(String),
    /// Something else.
    #[error("{place}: cannot be opened")]
    Failed {
        /// The servers.
        place: String,
        /// What went wrong.
        #[source]
        source: StoreError,
    },
    /// The system gives no more threads.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

impl RedisStore {
    /// Connects, makes the store if there is none and `params` allow it, and finds how it keeps secrets. Blocks the
    /// thread, for some seconds at worst.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(params: Params) -> Result<Self, OpenError> {
        let Params {
            target,
            keys,
            opening,
        } = params;
        let place = target.to_string();
        let tls = target.client_config()?;
        let link = Arc::new(Link::new("redis", target, tls).map_err(OpenError::Thread)?);
        let unreachable = |fault: RedisFault| OpenError::Unreachable {
            place: place.clone(),
            source: fault.into(),
        };
        link.connect().map_err(unreachable)?;
        let (opening_link, at) = (Arc::clone(&link), place.clone());
        let settled =
            link.wait_for(async move { settle(&opening_link, &at, &keys, opening).await });
        settled.map_err(unreachable)?
    }
}

fn failed(place: &str, source: StoreError) -> OpenError {
    OpenError::Failed {
        place: place.to_owned(),
        source,
    }
}

/// Makes the store if there is none, and finds or changes how it keeps secrets.
async fn settle(
    link: &Arc<Link>,
    place: &str,
    keys: &[SealKey],
    opening: Opening,
) -> Result<RedisStore, OpenError> {
    let fail = |error: StoreError| failed(place, error);
    let mismatch = |mismatch| match mismatch {
        Mismatch::KeyMissing => OpenError::KeyMissing(place.to_owned()),
        Mismatch::WrongKey => OpenError::WrongKey(place.to_owned()),
        Mismatch::Store(error) => fail(error),
    };
    // A new store is sealed from its first record on.
    let word = match seal::settle(None, keys).map_err(mismatch)? {
        Settled::With(_) => Vec::new(),
        Settled::Older(_, word) | Settled::Unsealed(_, word) => word,
    };
    // Several processes may begin at once.
    for _ in 0..TRIES {
        let begin = Step::new(SCHEMA, b"", "begin").number(SCHEMA).arg(&word);
        let begin = begin.flag(opening != Opening::Check);
        let stamp: Option<(String, Vec<u8>)> =
            step::read(link.call(Arc::new(begin)).await.map_err(fail)?).map_err(fail)?;
        let Some((schema, sealed)) = stamp else {
            return Err(OpenError::Missing(place.to_owned()));
        };
        if schema != SCHEMA.to_string() {
            return Err(OpenError::NewerSchema {
                place: place.to_owned(),
                found: schema,
                known: SCHEMA,
            });
        }
        let found = Some(&*sealed).filter(|sealed| !sealed.is_empty());
        let store = |seal, sealed| RedisStore {
            link: Arc::clone(link),
            seal,
            sealed: ArcSwap::from_pointee(sealed),
        };
        match seal::settle(found, keys).map_err(mismatch)? {
            Settled::With(seal) => return Ok(store(seal, sealed)),
            Settled::Older(seal, _) if !opening.begins_sealing() => {
                return Ok(store(seal, sealed));
            }
            Settled::Older(seal, new) => {
                let older = store(seal, sealed);
                let mut prepared = Prepared::default();
                prepared.push("sealed", [&new]);
                older
                    .commit(prepared, &older.sealed.load())
                    .await
                    .map_err(fail)?;
            }
            Settled::Unsealed(seal, new) => {
                let plain = store(Seal::plain(), sealed);
                let (mut prepared, has_secrets) =
                    plain.prepare_sealing(&seal).await.map_err(fail)?;
                if has_secrets && !opening.begins_sealing() {
                    return Ok(plain);
                }
                prepared.push("sealed", [&new]);
                if !plain
                    .commit(prepared, &plain.sealed.load())
                    .await
                    .map_err(fail)?
                {
                    return Err(OpenError::Busy(place.to_owned()));
                }
            }
        }
    }
    Err(OpenError::Busy(place.to_owned()))
}

impl RedisStore {
    /// A batch of [`Store::reseal`](crate::store::Store::reseal).
    pub(super) async fn reseal_some(
        &self,
        from: ResealFrom,
        look: bool,
    ) -> Result<Resealed, StoreError> {
        if !look && from.column == 0 && from.after.is_empty() {
            // Calls that were under way when the word was replaced may still write under the former key.
            self.link.pause(PATIENCE).await?;
        }
        let Column {
            table, name, field, ..
        } = &COLUMNS[from.column];
        let mut indexes = INDEXES.iter();
        let (_, index, kind) = indexes
            .find(|(of, ..)| of == table)
            .ok_or(StoreError::Broken("a table has no index"))?;
        let cursor = if from.after.is_empty() {
            "0"
        } else {
            &*from.after
        };
        let step = self.step("scan_field").arg(index).arg(kind).arg(name);
        let step = step.arg(cursor).number(CHUNK as u64);
        let (cursor, found): (String, Vec<(String, Vec<u8>)>) = self.run(step).await?;
        let mut resealed = Resealed {
            next: match &*cursor {
                "0" => ResealFrom::behind(from.column),
                _ => Some(ResealFrom {
                    after: cursor,
                    ..from
                }),
            },
            ..Resealed::default()
        };
        let mut step = self.step("replace_field").arg(kind).arg(name);
        for (key, kept) in &found {
            if let Some(sealed) = resealed.count(&self.seal, field, key, kept, look)? {
                step = step.arg(key).arg(kept).arg(sealed);
            }
        }
        if !look {
            self.run::<()>(step).await?;
        }
        Ok(resealed)
    }

    /// Prepares that every secret of a plain store is sealed; and whether there is any.
    async fn prepare_sealing(&self, seal: &Seal) -> Result<(Prepared, bool), StoreError> {
        let mut prepared = Prepared::default();
        let mut has_secrets = false;
        for (table, index, kind) in INDEXES {
            let keys: Vec<String> = self.run_long(self.step("keys").arg(index)).await?;
            prepared.push("count", [index, &*keys.len().to_string()]);
            for some in keys.chunks(CHUNK) {
                let step = self.step("look");
                let step = some
                    .iter()
                    .fold(step, |step, key| step.arg(format!("{kind}:{key}")));
                let records: Vec<Option<Fields>> = self.run(step).await?;
                for (key, fields) in some.iter().zip(records) {
                    let fields = fields.unwrap_or_default();
                    for Column { name, field, .. } in
                        COLUMNS.iter().filter(|column| column.table == table)
                    {
                        let Some(kept) = fields.get(*name) else {
                            continue;
                        };
                        has_secrets = true;
                        let record = format!("{kind}:{key}");
                        let secret = self.seal.open(field, key, kept)?;
                        let sealed = seal.close(field, key, &secret)?;
                        let (record, name) = (record.as_bytes(), name.as_bytes());
                        prepared.push("field", [record, name, kept]);
                        prepared.push("set", [record, name, &sealed]);
                    }
                }
            }
        }
        Ok((prepared, has_secrets))
    }
}
