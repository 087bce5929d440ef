//! Export, page by page: one step that reads everything would hold up all others for minutes.
//!
//! So records may change meanwhile. Each is exported as it was when it was read, and the export stays one that an
//! import takes: a token's consumer and user are in it, and no two users have one name.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, RandomState},
};

use super::{RedisFault, RedisStore};
use crate::{
    names::{ConsumerKey, UserId},
    store::{
        Store, StoreError,
        port::TokenFilter,
        record::{AccessToken, Consumer, User},
        rows::name,
        rules::folded,
        transfer::{Part, Record, Sender},
    },
};

const PAGE: u32 = 500;

/// What was exported so far, by hash: 8 bytes each, and nothing for a token.
#[derive(Default)]
struct Exported {
    hasher: RandomState,
    consumers: HashSet<u64>,
    /// Whether the user was enabled.
    users: HashMap<u64, bool>,
    names: HashSet<u64>,
}

impl Exported {
    fn consumer(&mut self, consumer: Consumer) -> Record {
        self.consumers.insert(self.hasher.hash_one(&consumer.key));
        Record::Consumer(consumer)
    }

    fn user(&mut self, user: User) -> Result<Record, StoreError> {
        if !self.names.insert(self.hasher.hash_one(folded(&user.name))) {
            // One was renamed and another has got the name since.
            return Err(RedisFault::Contended.into());
        }
        self.users
            .insert(self.hasher.hash_one(&user.id), user.enabled);
        Ok(Record::User(user))
    }

    fn has_consumer(&self, key: &ConsumerKey) -> bool {
        self.consumers.contains(&self.hasher.hash_one(key))
    }

    fn is_enabled(&self, user: &UserId) -> Option<bool> {
        self.users.get(&self.hasher.hash_one(user)).copied()
    }
}

impl RedisStore {
    pub(super) async fn export_all(&self, to: &Sender<Record>) -> Result<(), StoreError> {
        self.sweep().await?;
        let mut exported = Exported::default();
        let mut after: Option<ConsumerKey> = None;
        loop {
            let page = self.consumers(after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            let records = page.into_iter().map(|consumer| exported.consumer(consumer));
            to.send(Part::Records(records.collect())).await?;
        }
        let mut after: Option<UserId> = None;
        loop {
            let page = self.users(after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id.clone());
            let records = page.into_iter().map(|user| exported.user(user));
            to.send(Part::Records(records.collect::<Result<_, _>>()?))
                .await?;
        }
        let mut after: Option<String> = None;
        loop {
            let page = self
                .access_tokens(&TokenFilter::default(), after.as_deref(), PAGE)
                .await?;
            let Some(last) = page.last() else { break };
            after = Some(last.token.clone());
            let mut records = Vec::with_capacity(page.len());
            for token in page {
                self.export_token(token, &mut exported, &mut records)
                    .await?;
            }
            to.send(Part::Records(records)).await?;
        }
        // Tokens that went with their consumer meanwhile are marked as removed, too.
        self.sweep().await?;
        self.export_names("gone-users", to, |id| Ok(Record::RemovedUser(name(&id)?)))
            .await?;
        self.export_names("gone-tokens", to, |token| Ok(Record::RemovedToken(token)))
            .await?;
        Ok(to.send(Part::End).await?)
    }

    /// Exports a token, and before it the consumer and user that were added since theirs were exported.
    async fn export_token(
        &self,
        token: AccessToken,
        exported: &mut Exported,
        records: &mut Vec<Record>,
    ) -> Result<(), StoreError> {
        if !exported.has_consumer(&token.consumer) {
            match self.consumer(&token.consumer).await? {
                Some(consumer) => records.push(exported.consumer(consumer)),
                None => return Ok(()),
            }
        }
        if token.revoked_at.is_none() {
            if exported.is_enabled(&token.user).is_none()
                && let Some(user) = self.user(&token.user).await?
            {
                records.push(exported.user(user)?);
            }
            // Removed meanwhile, which has revoked the token; or enabled meanwhile, and then the token is newer than that.
            if exported.is_enabled(&token.user) != Some(true) {
                return Ok(());
            }
        }
        records.push(Record::AccessToken(token));
        Ok(())
    }

    async fn export_names(
        &self,
        index: &str,
        to: &Sender<Record>,
        record: impl Fn(String) -> Result<Record, StoreError> + Send,
    ) -> Result<(), StoreError> {
        let mut after = String::new();
        loop {
            let step = self.step("keys_behind").arg(index).arg(&after).number(PAGE);
            let names: Vec<String> = self.run(step).await?;
            let Some(last) = names.last() else {
                return Ok(());
            };
            after.clone_from(last);
            let records = names.into_iter().map(&record).collect::<Result<_, _>>()?;
            to.send(Part::Records(records)).await?;
        }
    }
}
