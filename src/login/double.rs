//! A store in memory for the tests of logins and pages and for the fuzz targets: what they use, as the port describes it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use crate::{
    clock::UnixTime,
    names::{ConsumerKey, UserId},
    secret::Secret,
    store::{
        Store, StoreError, StoreFuture,
        port::{
            Account, Added, Admitted, Changes, Decided, Decision, Exchange, Exchanged,
            OpenSessions, ResealFrom, Resealed, TokenFilter, Updated, VerifiedPassword,
        },
        record::{
            AccessToken, Consumer, ConsumerUpdate, OutsideUser, RequestToken, RequestTokenState,
            Session, User, password_cost,
        },
        transfer::{Export, Import, ImportList},
    },
};

/// An enabled user without a password, whose id is `id-` and the name.
pub fn user(name: &str) -> User {
    User {
        id: format!("id-{name}").parse().unwrap(),
        name: name.to_owned(),
        display_name: None,
        password_hash: None,
        enabled: true,
        created_at: UnixTime(0),
    }
}

/// The store.
#[derive(Default)]
pub struct MemoryStore {
    records: Mutex<Records>,
    fails: AtomicBool,
    calls: AtomicUsize,
}

/// What a store keeps.
#[derive(Default)]
#[allow(missing_docs, reason = "each is what it is called")]
pub struct Records {
    pub consumers: BTreeMap<ConsumerKey, Consumer>,
    pub users: BTreeMap<UserId, User>,
    pub request_tokens: BTreeMap<String, RequestToken>,
    pub access_tokens: BTreeMap<String, AccessToken>,
    pub sessions: BTreeMap<[u8; 32], Session>,
}

impl Records {
    fn user_by_name(&self, name: &str) -> Option<User> {
        let mut users = self.users.values();
        let user = users.find(|user| user.name.eq_ignore_ascii_case(name));
        user.cloned()
    }
}

impl MemoryStore {
    /// What is kept, to look at and to change.
    pub fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap()
    }

    /// From now on every call fails, or none.
    pub fn fail(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
    }

    /// How many calls there were.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Keeps a user.
    pub fn put_user(&self, user: User) {
        self.records().users.insert(user.id.clone(), user);
    }

    /// The user of this name, who must be there.
    pub fn user_named(&self, name: &str) -> User {
        self.records().user_by_name(name).unwrap()
    }

    fn answer<'a, T: Send + 'a>(
        &'a self,
        what: impl FnOnce(&mut Records) -> T + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            if self.fails.load(Ordering::SeqCst) {
                return Err(StoreError::Unavailable("switched off".into()));
            }
            Ok(what(&mut self.records()))
        })
    }
}

/// Use cases that the double does not know.
macro_rules! unknown {
    ($( fn $use_case:ident($($argument:ty),*) -> $result:ty; )*) => {
        $(fn $use_case<'a>(&'a self, $(_: $argument),*) -> StoreFuture<'a, $result> {
            Box::pin(async { Err(StoreError::Broken("the double does not know this use case")) })
        })*
    };
}

impl Store for MemoryStore {
    fn ping(&self) -> StoreFuture<'_, ()> {
        self.answer(|_| ())
    }
    fn consumer<'a>(&'a self, key: &'a ConsumerKey) -> StoreFuture<'a, Option<Consumer>> {
        self.answer(|records| records.consumers.get(key).cloned())
    }
    fn access_token<'a>(&'a self, token: &'a str) -> StoreFuture<'a, Option<AccessToken>> {
        self.answer(|records| records.access_tokens.get(token).cloned())
    }
    fn request_token<'a>(&'a self, token: &'a str) -> StoreFuture<'a, Option<RequestToken>> {
        self.answer(|records| records.request_tokens.get(token).cloned())
    }
    fn issue_request_token(&self, token: RequestToken) -> StoreFuture<'_, ()> {
        self.answer(|records| drop(records.request_tokens.insert(token.token.clone(), token)))
    }
    fn decide<'a>(
        &'a self,
        token: &'a str,
        session: &'a [u8; 32],
        decision: Decision,
        now: UnixTime,
    ) -> StoreFuture<'a, Decided> {
        self.answer(move |records| {
            let session = records.sessions.get(session);
            let user = session
                .filter(|session| now < session.expires_at)
                .and_then(|session| records.users.get(&session.user))
                .filter(|user| user.enabled);
            let (Some(user), Some(token)) = (user, records.request_tokens.get_mut(token)) else {
                return Decided::Unknown;
            };
            if token.state != RequestTokenState::Issued {
                return Decided::AlreadyDecided;
            }
            if now >= token.expires_at {
                return Decided::Expired;
            }
            token.state = match decision {
                Decision::Deny => RequestTokenState::Denied,
                Decision::Allow {
                    verifier,
                    redirect_token,
                    expires_at,
                } => {
                    token.expires_at = expires_at;
                    RequestTokenState::Authorized {
                        user: user.id.clone(),
                        verifier,
                        redirect_token,
                    }
                }
            };
            Decided::Recorded
        })
    }
    fn revoke_access_token<'a>(&'a self, token: &'a str, now: UnixTime) -> StoreFuture<'a, bool> {
        self.answer(move |records| match records.access_tokens.get_mut(token) {
            Some(token) => {
                token.revoked_at.get_or_insert(now);
                true
            }
            None => false,
        })
    }
    fn access_tokens<'a>(
        &'a self,
        filter: &'a TokenFilter,
        after: Option<&'a str>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<AccessToken>> {
        self.answer(move |records| {
            let TokenFilter { user, consumer, .. } = filter;
            let tokens = records.access_tokens.values().filter(|token| {
                after.is_none_or(|after| token.token.as_str() > after)
                    && user.as_ref().is_none_or(|user| token.user == *user)
                    && consumer.as_ref().is_none_or(|key| token.consumer == *key)
            });
            tokens.take(limit as usize).cloned().collect()
        })
    }
    fn admit_user(&self, user: OutsideUser, now: UnixTime) -> StoreFuture<'_, Admitted> {
        self.answer(move |records| {
            let name = user.name.unwrap_or_else(|| user.id.to_string());
            let namesake = |other: &User| other.id != user.id && other.name == name;
            if records.users.values().any(namesake) {
                return Admitted::NameTaken;
            }
            let record = records.users.entry(user.id.clone()).or_insert(User {
                id: user.id,
                name: String::new(),
                display_name: None,
                password_hash: None,
                enabled: true,
                created_at: now,
            });
            record.name = name;
            record.display_name = user.display_name;
            Admitted::User(record.clone())
        })
    }
    fn user<'a>(&'a self, id: &'a UserId) -> StoreFuture<'a, Option<User>> {
        self.answer(|records| records.users.get(id).cloned())
    }
    fn user_by_name<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<User>> {
        self.answer(|records| records.user_by_name(name))
    }
    fn account<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Account> {
        self.answer(|records| {
            let hashes = records.users.values();
            let costs: BTreeSet<_> = hashes
                .filter_map(|user| user.password_hash.as_ref().map(password_cost))
                .collect();
            Account {
                user: records.user_by_name(name),
                costs: costs.into_iter().collect(),
            }
        })
    }
    fn set_password<'a>(&'a self, id: &'a UserId, hash: Secret) -> StoreFuture<'a, bool> {
        self.answer(move |records| {
            let Some(user) = records.users.get_mut(id) else {
                return false;
            };
            user.password_hash = Some(hash);
            records.sessions.retain(|_, session| session.user != *id);
            true
        })
    }
    fn open_session(
        &self,
        session: Session,
        verified: VerifiedPassword,
        _most: std::num::NonZeroU32,
    ) -> StoreFuture<'_, bool> {
        self.answer(move |records| {
            let user = records.users.get_mut(&session.user);
            let Some(user) =
                user.filter(|user| user.enabled && user.password_hash == verified.hash)
            else {
                return false;
            };
            if verified.rehashed.is_some() {
                user.password_hash = verified.rehashed;
            }
            records.sessions.insert(session.id_hash, session);
            true
        })
    }
    fn change_password(
        &self,
        session: Session,
        verified: Secret,
        hash: Secret,
    ) -> StoreFuture<'_, bool> {
        self.answer(move |records| {
            let user = records.users.get_mut(&session.user);
            let verified = Some(verified);
            let Some(user) = user.filter(|user| user.enabled && user.password_hash == verified)
            else {
                return false;
            };
            user.password_hash = Some(hash);
            let ended = session.user.clone();
            records.sessions.retain(|_, session| session.user != ended);
            records.sessions.insert(session.id_hash, session);
            true
        })
    }
    fn session<'a>(
        &'a self,
        id_hash: &'a [u8; 32],
        now: UnixTime,
    ) -> StoreFuture<'a, Option<(Session, User)>> {
        self.answer(move |records| {
            let session = records.sessions.get(id_hash)?;
            let user = records.users.get(&session.user)?;
            let is_open = now < session.expires_at && user.enabled;
            is_open.then(|| (session.clone(), user.clone()))
        })
    }
    fn close_session<'a>(&'a self, id_hash: &'a [u8; 32]) -> StoreFuture<'a, ()> {
        self.answer(|records| drop(records.sessions.remove(id_hash)))
    }
    fn open_sessions<'a>(
        &'a self,
        user: &'a UserId,
        now: UnixTime,
    ) -> StoreFuture<'a, OpenSessions> {
        self.answer(move |records| {
            let sessions = records.sessions.values();
            let open = sessions.filter(|session| session.user == *user && now < session.expires_at);
            OpenSessions {
                count: open.clone().count() as u64,
                since: open.map(|session| session.created_at).min(),
            }
        })
    }
    fn close_sessions<'a>(&'a self, user: &'a UserId) -> StoreFuture<'a, ()> {
        self.answer(move |records| records.sessions.retain(|_, session| session.user != *user))
    }
    unknown! {
        fn exchange(Exchange) -> Exchanged;
        fn issue_access_token(AccessToken) -> Added;
        fn record_uses(Vec<(String, UnixTime)>) -> ();
        fn add_consumer(Consumer) -> Added;
        fn update_consumer(&'a ConsumerKey, ConsumerUpdate) -> Updated;
        fn rotate_consumer_secret(&'a ConsumerKey, Secret, Option<UnixTime>) -> Option<Consumer>;
        fn remove_consumer(&'a ConsumerKey) -> bool;
        fn consumers(Option<&'a ConsumerKey>, u32) -> Vec<Consumer>;
        fn unused_consumers(UnixTime, Option<&'a ConsumerKey>, u32) -> Vec<Consumer>;
        fn revoke_access_tokens(&'a TokenFilter, UnixTime) -> u64;
        fn add_user(User) -> Added;
        fn set_user_enabled(&'a UserId, bool, UnixTime) -> bool;
        fn remove_user(&'a UserId, UnixTime) -> bool;
        fn users(Option<&'a UserId>, u32) -> Vec<User>;
        fn export() -> Export;
        fn import(ImportList) -> Import;
        fn record_command(String) -> ();
        fn changes_since(u64) -> Changes;
        fn local_nonces_until() -> Option<UnixTime>;
        fn set_local_nonces_until(UnixTime) -> ();
        fn reseal(ResealFrom, bool) -> Resealed;
        fn purge(UnixTime) -> ();
    }
}
