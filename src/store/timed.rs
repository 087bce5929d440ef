//! Times every use case of a store, under its name.

use std::{num::NonZeroU32, pin::Pin, sync::Arc, time::Instant};

use super::{
    Store, StoreFuture,
    port::{
        Account, Added, Admitted, Changes, Decided, Decision, Exchange, Exchanged, NoncesKept,
        OpenSessions, ResealFrom, Resealed, TokenFilter, Updated, VerifiedPassword,
    },
    record::{AccessToken, Consumer, ConsumerUpdate, OutsideUser, RequestToken, Session, User},
    transfer::{Export, Import, ImportList},
};
use crate::{
    clock::UnixTime,
    names::{ConsumerKey, UserId},
    nonce::SharedWindow,
    secret::Secret,
    telemetry::metrics::Metrics,
};

/// A store whose use cases are timed.
pub struct Timed {
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
}

impl Timed {
    /// Times `store`.
    #[must_use]
    pub const fn new(store: Arc<dyn Store>, metrics: Arc<Metrics>) -> Self {
        Self { store, metrics }
    }

    fn time<'a, T: Send + 'a>(
        &'a self,
        use_case: &'static str,
        work: StoreFuture<'a, T>,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let begun = Instant::now();
            let result = work.await;
            self.metrics
                .store(use_case, begun.elapsed(), result.is_err());
            result
        })
    }
}

/// Passes each use case on under its own name.
macro_rules! timed {
    ($(fn $name:ident$(<$life:lifetime>)?(&$($self_life:lifetime)? self $(, $argument:ident: $type:ty)* $(,)?) -> $output:ty;)*) => {
        impl Store for Timed {
            fn notified(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
                self.store.notified()
            }

            fn shared_window(&self) -> Option<Box<dyn SharedWindow>> {
                self.store.shared_window()
            }

            $(fn $name$(<$life>)?(&$($self_life)? self $(, $argument: $type)*) -> $output {
                self.time(stringify!($name), self.store.$name($($argument),*))
            })*
        }
    };
}

timed! {
    fn ping(&self) -> StoreFuture<'_, ()>;
    fn findings(&self) -> StoreFuture<'_, Vec<String>>;
    fn nonces_kept(&self) -> StoreFuture<'_, NoncesKept>;
    fn keep_nonces_elsewhere(&self) -> StoreFuture<'_, ()>;
    fn consumer<'a>(&'a self, key: &'a ConsumerKey) -> StoreFuture<'a, Option<Consumer>>;
    fn access_token<'a>(&'a self, token: &'a str) -> StoreFuture<'a, Option<AccessToken>>;
    fn request_token<'a>(&'a self, token: &'a str) -> StoreFuture<'a, Option<RequestToken>>;
    fn issue_request_token(&self, token: RequestToken) -> StoreFuture<'_, ()>;
    fn decide<'a>(&'a self, token: &'a str, session: &'a [u8; 32], decision: Decision, now: UnixTime) -> StoreFuture<'a, Decided>;
    fn exchange(&self, exchange: Exchange) -> StoreFuture<'_, Exchanged>;
    fn issue_access_token(&self, token: AccessToken) -> StoreFuture<'_, Added>;
    fn revoke_access_token<'a>(&'a self, token: &'a str, now: UnixTime) -> StoreFuture<'a, bool>;
    fn revoke_access_tokens<'a>(&'a self, filter: &'a TokenFilter, now: UnixTime) -> StoreFuture<'a, u64>;
    fn access_tokens<'a>(&'a self, filter: &'a TokenFilter, after: Option<&'a str>, limit: u32) -> StoreFuture<'a, Vec<AccessToken>>;
    fn record_uses(&self, uses: Vec<(String, UnixTime)>) -> StoreFuture<'_, ()>;
    fn add_consumer(&self, consumer: Consumer) -> StoreFuture<'_, Added>;
    fn update_consumer<'a>(&'a self, key: &'a ConsumerKey, update: ConsumerUpdate) -> StoreFuture<'a, Updated>;
    fn rotate_consumer_secret<'a>(&'a self, key: &'a ConsumerKey, secret: Secret, previous_until: Option<UnixTime>) -> StoreFuture<'a, Option<Consumer>>;
    fn remove_consumer<'a>(&'a self, key: &'a ConsumerKey) -> StoreFuture<'a, bool>;
    fn consumers<'a>(&'a self, after: Option<&'a ConsumerKey>, limit: u32) -> StoreFuture<'a, Vec<Consumer>>;
    fn unused_consumers<'a>(&'a self, since: UnixTime, after: Option<&'a ConsumerKey>, limit: u32) -> StoreFuture<'a, Vec<Consumer>>;
    fn add_user(&self, user: User) -> StoreFuture<'_, Added>;
    fn admit_user(&self, user: OutsideUser, now: UnixTime) -> StoreFuture<'_, Admitted>;
    fn user<'a>(&'a self, id: &'a UserId) -> StoreFuture<'a, Option<User>>;
    fn user_by_name<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<User>>;
    fn account<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Account>;
    fn set_password<'a>(&'a self, id: &'a UserId, hash: Secret) -> StoreFuture<'a, bool>;
    fn set_user_enabled<'a>(&'a self, id: &'a UserId, enabled: bool, now: UnixTime) -> StoreFuture<'a, bool>;
    fn remove_user<'a>(&'a self, id: &'a UserId, now: UnixTime) -> StoreFuture<'a, bool>;
    fn users<'a>(&'a self, after: Option<&'a UserId>, limit: u32) -> StoreFuture<'a, Vec<User>>;
    fn open_session(&self, session: Session, verified: VerifiedPassword, most: NonZeroU32) -> StoreFuture<'_, bool>;
    fn change_password(&self, session: Session, verified: Secret, hash: Secret) -> StoreFuture<'_, bool>;
    fn session<'a>(&'a self, id_hash: &'a [u8; 32], now: UnixTime) -> StoreFuture<'a, Option<(Session, User)>>;
    fn close_session<'a>(&'a self, id_hash: &'a [u8; 32]) -> StoreFuture<'a, ()>;
    fn open_sessions<'a>(&'a self, user: &'a UserId, now: UnixTime) -> StoreFuture<'a, OpenSessions>;
    fn close_sessions<'a>(&'a self, user: &'a UserId) -> StoreFuture<'a, ()>;
    fn export(&self) -> StoreFuture<'_, Export>;
    fn import(&self, list: ImportList) -> StoreFuture<'_, Import>;
    fn reseal(&self, from: ResealFrom, look: bool) -> StoreFuture<'_, Resealed>;
    fn record_command(&self, record: String) -> StoreFuture<'_, ()>;
    fn record_failed_login(&self, report: String) -> StoreFuture<'_, ()>;
    fn changes_since(&self, position: u64) -> StoreFuture<'_, Changes>;
    fn local_nonces_until(&self) -> StoreFuture<'_, Option<UnixTime>>;
    fn set_local_nonces_until(&self, until: UnixTime) -> StoreFuture<'_, ()>;
    fn imported_nonces_until(&self) -> StoreFuture<'_, Option<UnixTime>>;
    fn purge(&self, now: UnixTime) -> StoreFuture<'_, ()>;
}
