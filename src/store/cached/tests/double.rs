//! A store that can be held up and made to fail.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};

use tokio::sync::{Notify, Semaphore};

use crate::{
    clock::UnixTime,
    names::{ConsumerKey, UserId},
    secret::Secret,
    store::{
        Store, StoreError, StoreFuture,
        port::{
            Account, Added, Admitted, Change, Changes, Decided, Decision, Exchange, Exchanged,
            OpenSessions, ResealFrom, Resealed, TokenFilter, Updated, VerifiedPassword,
        },
        record::{AccessToken, Consumer, ConsumerUpdate, OutsideUser, RequestToken, Session, User},
        transfer::{Export, Import, ImportList},
    },
};

pub(super) struct Double {
    records: Mutex<Records>,
    fails: AtomicBool,
    held: AtomicBool,
    gate: Semaphore,
    /// Told when a read is at the gate.
    pub(super) arrived: Notify,
    pub(super) consumer_reads: AtomicUsize,
    pub(super) token_reads: AtomicUsize,
}

#[derive(Default)]
pub(super) struct Records {
    pub(super) consumers: BTreeMap<ConsumerKey, Consumer>,
    pub(super) tokens: BTreeMap<String, AccessToken>,
    pub(super) changes: Vec<Change>,
    pub(super) incomplete: bool,
    pub(super) uses: Vec<Vec<(String, UnixTime)>>,
}

impl Double {
    pub(super) fn new() -> Self {
        Self {
            records: Mutex::default(),
            fails: AtomicBool::new(false),
            held: AtomicBool::new(false),
            gate: Semaphore::new(0),
            arrived: Notify::new(),
            consumer_reads: AtomicUsize::new(0),
            token_reads: AtomicUsize::new(0),
        }
    }

    pub(super) fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap()
    }

    pub(super) fn fail(&self, fails: bool) {
        self.fails.store(fails, SeqCst);
    }

    pub(super) fn fails(&self) -> bool {
        self.fails.load(SeqCst)
    }

    /// From now on reads come to their answer and then wait at the gate.
    pub(super) fn hold(&self) {
        self.held.store(true, SeqCst);
    }

    /// Reads that come from now on do not wait; those at the gate still do.
    pub(super) fn let_new_ones_pass(&self) {
        self.held.store(false, SeqCst);
    }

    /// Lets everything through.
    pub(super) fn release(&self) {
        self.let_new_ones_pass();
        self.gate.add_permits(1_000);
    }

    fn answer<'a, T: Send + 'a>(
        &'a self,
        what: impl FnOnce(&mut Records) -> T + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let answer = what(&mut self.records());
            let fails = self.fails.load(SeqCst);
            if self.held.load(SeqCst) {
                self.arrived.notify_one();
                self.gate.acquire().await.unwrap().forget();
            }
            if fails {
                return Err(StoreError::Unavailable("switched off".into()));
            }
            Ok(answer)
        })
    }
}

macro_rules! unused {
    ($(fn $name:ident$(<$life:lifetime>)?(&$($self_life:lifetime)? self $(, $type:ty)*) -> $output:ty;)*) => {
        $(fn $name$(<$life>)?(&$($self_life)? self $(, _: $type)*) -> $output {
            Box::pin(async { Err(StoreError::Broken("the double does not know this use case")) })
        })*
    };
}

impl Store for Double {
    fn consumer<'a>(&'a self, key: &'a ConsumerKey) -> StoreFuture<'a, Option<Consumer>> {
        self.consumer_reads.fetch_add(1, SeqCst);
        self.answer(|records| records.consumers.get(key).cloned())
    }
    fn access_token<'a>(&'a self, token: &'a str) -> StoreFuture<'a, Option<AccessToken>> {
        self.token_reads.fetch_add(1, SeqCst);
        self.answer(|records| records.tokens.get(token).cloned())
    }
    fn record_uses(&self, uses: Vec<(String, UnixTime)>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.answer(|_| ()).await?;
            self.records().uses.push(uses);
            Ok(())
        })
    }
    /// Two changes an answer; the feed begins at 1.
    fn changes_since(&self, position: u64) -> StoreFuture<'_, Changes> {
        self.answer(move |records| {
            let newest = records.changes.len() + 1;
            if position == 0 || records.incomplete {
                let incomplete = position != 0 && std::mem::take(&mut records.incomplete);
                return Changes {
                    position: newest as u64,
                    changes: Vec::new(),
                    incomplete,
                };
            }
            let from = usize::try_from(position).unwrap() - 1;
            let changes: Vec<Change> = records.changes.iter().skip(from).take(2).cloned().collect();
            let position = position + changes.len() as u64;
            Changes {
                position,
                changes,
                incomplete: false,
            }
        })
    }
    unused! {
        fn record_command(&self, String) -> StoreFuture<'_, ()>;
        fn ping(&self) -> StoreFuture<'_, ()>;
        fn request_token<'a>(&'a self, &'a str) -> StoreFuture<'a, Option<RequestToken>>;
        fn issue_request_token(&self, RequestToken) -> StoreFuture<'_, ()>;
        fn decide<'a>(&'a self, &'a str, &'a [u8; 32], Decision, UnixTime) -> StoreFuture<'a, Decided>;
        fn exchange(&self, Exchange) -> StoreFuture<'_, Exchanged>;
        fn issue_access_token(&self, AccessToken) -> StoreFuture<'_, Added>;
        fn revoke_access_token<'a>(&'a self, &'a str, UnixTime) -> StoreFuture<'a, bool>;
        fn access_tokens<'a>(&'a self, &'a TokenFilter, Option<&'a str>, u32) -> StoreFuture<'a, Vec<AccessToken>>;
        fn add_consumer(&self, Consumer) -> StoreFuture<'_, Added>;
        fn update_consumer<'a>(&'a self, &'a ConsumerKey, ConsumerUpdate) -> StoreFuture<'a, Updated>;
        fn rotate_consumer_secret<'a>(&'a self, &'a ConsumerKey, Secret, Option<UnixTime>) -> StoreFuture<'a, Option<Consumer>>;
        fn remove_consumer<'a>(&'a self, &'a ConsumerKey) -> StoreFuture<'a, bool>;
        fn consumers<'a>(&'a self, Option<&'a ConsumerKey>, u32) -> StoreFuture<'a, Vec<Consumer>>;
        fn unused_consumers<'a>(&'a self, UnixTime, Option<&'a ConsumerKey>, u32) -> StoreFuture<'a, Vec<Consumer>>;
        fn revoke_access_tokens<'a>(&'a self, &'a TokenFilter, UnixTime) -> StoreFuture<'a, u64>;
        fn add_user(&self, User) -> StoreFuture<'_, Added>;
        fn admit_user(&self, OutsideUser, UnixTime) -> StoreFuture<'_, Admitted>;
        fn user<'a>(&'a self, &'a UserId) -> StoreFuture<'a, Option<User>>;
        fn user_by_name<'a>(&'a self, &'a str) -> StoreFuture<'a, Option<User>>;
        fn account<'a>(&'a self, &'a str) -> StoreFuture<'a, Account>;
        fn set_password<'a>(&'a self, &'a UserId, Secret) -> StoreFuture<'a, bool>;
        fn set_user_enabled<'a>(&'a self, &'a UserId, bool, UnixTime) -> StoreFuture<'a, bool>;
        fn remove_user<'a>(&'a self, &'a UserId, UnixTime) -> StoreFuture<'a, bool>;
        fn users<'a>(&'a self, Option<&'a UserId>, u32) -> StoreFuture<'a, Vec<User>>;
        fn open_session(&self, Session, VerifiedPassword, std::num::NonZeroU32) -> StoreFuture<'_, bool>;
        fn change_password(&self, Session, Secret, Secret) -> StoreFuture<'_, bool>;
        fn session<'a>(&'a self, &'a [u8; 32], UnixTime) -> StoreFuture<'a, Option<(Session, User)>>;
        fn close_session<'a>(&'a self, &'a [u8; 32]) -> StoreFuture<'a, ()>;
        fn open_sessions<'a>(&'a self, &'a UserId, UnixTime) -> StoreFuture<'a, OpenSessions>;
        fn close_sessions<'a>(&'a self, &'a UserId) -> StoreFuture<'a, ()>;
        fn export(&self) -> StoreFuture<'_, Export>;
        fn import(&self, ImportList) -> StoreFuture<'_, Import>;
        fn local_nonces_until(&self) -> StoreFuture<'_, Option<UnixTime>>;
        fn set_local_nonces_until(&self, UnixTime) -> StoreFuture<'_, ()>;
        fn reseal(&self, ResealFrom, bool) -> StoreFuture<'_, Resealed>;
        fn purge(&self, UnixTime) -> StoreFuture<'_, ()>;
    }
}
