//! Every use case as a transaction: beside which others it runs, and how long its caller waits.

use std::{num::NonZeroU32, pin::Pin};

use super::{Engine, Mode, Tx, consumers, feed, flow, sealing, sessions, tokens, transfer, users};
use crate::{
    clock::UnixTime,
    names::{ConsumerKey, UserId},
    nonce::{NonceUse, SharedWindow},
    secret::Secret,
    store::{
        Store, StoreFuture,
        port::{
            Account, Added, Admitted, Change, Changes, Decided, Decision, Exchange, Exchanged,
            NoncesKept, OpenSessions, ResealFrom, Resealed, TokenFilter, Updated, VerifiedPassword,
        },
        record::{AccessToken, Consumer, ConsumerUpdate, OutsideUser, RequestToken, Session, User},
        transfer::{Export, Import, ImportList},
    },
};

/// Uses that are written in one transaction: others are not held up for long.
const USES: usize = 5_000;

/// Runs `$work`, a use case with owned arguments.
macro_rules! ask {
    ($store:ident, $mode:ident, $timeout:ident, $tx:ident => $work:expr) => {
        $store.ask(Mode::$mode, E::$timeout, move |$tx| {
            Box::pin(async move { $work.await })
        })
    };
}

impl<E: Engine> Store for E {
    fn ping(&self) -> StoreFuture<'_, ()> {
        ask!(self, Single, TIMEOUT, tx => async { tx.has_row("SELECT 1 FROM meta", &[]).await.map(drop) })
    }

    fn findings(&self) -> StoreFuture<'_, Vec<String>> {
        Engine::findings(self)
    }

    fn notified(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Engine::notified(self)
    }

    fn shared_window(&self) -> Option<Box<dyn SharedWindow>> {
        Engine::shared_window(self)
    }

    fn nonce_used<'a>(&'a self, nonce: NonceUse<'a>) -> StoreFuture<'a, Option<bool>> {
        Engine::nonce_used(self, nonce)
    }

    fn nonces_kept(&self) -> StoreFuture<'_, NoncesKept> {
        Engine::nonces_kept(self)
    }

    fn keep_nonces_elsewhere(&self) -> StoreFuture<'_, ()> {
        Engine::keep_nonces_elsewhere(self)
    }

    fn consumer<'a>(&'a self, key: &'a ConsumerKey) -> StoreFuture<'a, Option<Consumer>> {
        let key = key.clone();
        ask!(self, Single, TIMEOUT, tx => consumers::find_anywhere(tx, &key))
    }

    fn access_token<'a>(&'a self, token: &'a str) -> StoreFuture<'a, Option<AccessToken>> {
        let token = token.to_owned();
        ask!(self, Single, TIMEOUT, tx => tokens::find_anywhere(tx, &token))
    }

    fn request_token<'a>(&'a self, token: &'a str) -> StoreFuture<'a, Option<RequestToken>> {
        let token = token.to_owned();
        ask!(self, Single, TIMEOUT, tx => flow::find(tx, &token))
    }

    fn issue_request_token(&self, token: RequestToken) -> StoreFuture<'_, ()> {
        ask!(self, Shared, TIMEOUT, tx => flow::issue(tx, &token))
    }

    fn decide<'a>(
        &'a self,
        token: &'a str,
        session: &'a [u8; 32],
        decision: Decision,
        now: UnixTime,
    ) -> StoreFuture<'a, Decided> {
        let (token, session) = (token.to_owned(), *session);
        ask!(self, Shared, TIMEOUT, tx => flow::decide(tx, &token, &session, &decision, now))
    }

    fn exchange(&self, exchange: Exchange) -> StoreFuture<'_, Exchanged> {
        ask!(self, Shared, TIMEOUT, tx => flow::exchange(tx, &exchange))
    }

    fn issue_access_token(&self, token: AccessToken) -> StoreFuture<'_, Added> {
        ask!(self, Shared, TIMEOUT, tx => tokens::issue(tx, &token))
    }

    fn revoke_access_token<'a>(&'a self, token: &'a str, now: UnixTime) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let own = token.to_owned();
            let revoke = ask!(self, Shared, TIMEOUT, tx => tokens::revoke(tx, &own, now));
            Ok(revoke.await? || self.revoke_outside(token).await?)
        })
    }

    fn revoke_access_tokens<'a>(
        &'a self,
        filter: &'a TokenFilter,
        now: UnixTime,
    ) -> StoreFuture<'a, u64> {
        let filter = filter.clone();
        ask!(self, Alone, ADMIN_TIMEOUT, tx => tokens::revoke_all(tx, &filter, now))
    }

    fn access_tokens<'a>(
        &'a self,
        filter: &'a TokenFilter,
        after: Option<&'a str>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<AccessToken>> {
        let (filter, after) = (filter.clone(), after.map(str::to_owned));
        ask!(self, Single, TIMEOUT, tx => tokens::list(tx, &filter, after.as_deref(), limit))
    }

    /// Writes many uses in several transactions: each is written or not, and all can be written again.
    fn record_uses(&self, mut uses: Vec<(String, UnixTime)>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            while !uses.is_empty() {
                let some = uses.split_off(uses.len().saturating_sub(USES));
                ask!(self, Shared, ADMIN_TIMEOUT, tx => tx.record_uses(&some)).await?;
            }
            Ok(())
        })
    }

    fn add_consumer(&self, consumer: Consumer) -> StoreFuture<'_, Added> {
        ask!(self, Alone, ADMIN_TIMEOUT, tx => consumers::add(tx, &consumer))
    }

    fn update_consumer<'a>(
        &'a self,
        key: &'a ConsumerKey,
        update: ConsumerUpdate,
    ) -> StoreFuture<'a, Updated> {
        let key = key.clone();
        ask!(self, Alone, ADMIN_TIMEOUT, tx => consumers::update(tx, &key, update))
    }

    fn rotate_consumer_secret<'a>(
        &'a self,
        key: &'a ConsumerKey,
        secret: Secret,
        previous_until: Option<UnixTime>,
    ) -> StoreFuture<'a, Option<Consumer>> {
        let key = key.clone();
        ask!(self, Alone, ADMIN_TIMEOUT, tx => consumers::rotate(tx, &key, secret, previous_until))
    }

    fn remove_consumer<'a>(&'a self, key: &'a ConsumerKey) -> StoreFuture<'a, bool> {
        let key = key.clone();
        ask!(self, Alone, ADMIN_TIMEOUT, tx => consumers::remove(tx, &key))
    }

    fn consumers<'a>(
        &'a self,
        after: Option<&'a ConsumerKey>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Consumer>> {
        let after = after.cloned();
        ask!(self, Single, TIMEOUT, tx => consumers::list(tx, after.as_ref(), limit))
    }

    fn unused_consumers<'a>(
        &'a self,
        since: UnixTime,
        after: Option<&'a ConsumerKey>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Consumer>> {
        let after = after.cloned();
        ask!(self, Single, ADMIN_TIMEOUT, tx => consumers::unused(tx, since, after.as_ref(), limit))
    }

    fn add_user(&self, user: User) -> StoreFuture<'_, Added> {
        ask!(self, Alone, ADMIN_TIMEOUT, tx => users::add(tx, &user))
    }

    fn admit_user(&self, user: OutsideUser, now: UnixTime) -> StoreFuture<'_, Admitted> {
        Box::pin(async move {
            // Most logins change nothing: they need not wait for, and hold up, everybody who writes.
            let outside = user.clone();
            let known =
                ask!(self, Single, TIMEOUT, tx => users::admitted_unchanged(tx, outside, now));
            match known.await? {
                Some(admitted) => Ok(admitted),
                None => ask!(self, Alone, TIMEOUT, tx => users::admit(tx, user, now)).await,
            }
        })
    }

    fn user<'a>(&'a self, id: &'a UserId) -> StoreFuture<'a, Option<User>> {
        let id = id.clone();
        ask!(self, Single, TIMEOUT, tx => users::find(tx, &id))
    }

    fn user_by_name<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<User>> {
        let name = name.to_owned();
        ask!(self, Single, TIMEOUT, tx => users::find_by_name(tx, &name))
    }

    fn account<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Account> {
        let name = name.to_owned();
        ask!(self, Snapshot, TIMEOUT, tx => users::account(tx, &name))
    }

    fn set_password<'a>(&'a self, id: &'a UserId, hash: Secret) -> StoreFuture<'a, bool> {
        let id = id.clone();
        ask!(self, Alone, ADMIN_TIMEOUT, tx => users::set_password(tx, &id, &hash))
    }

    fn set_user_enabled<'a>(
        &'a self,
        id: &'a UserId,
        enabled: bool,
        now: UnixTime,
    ) -> StoreFuture<'a, bool> {
        let id = id.clone();
        ask!(self, Alone, ADMIN_TIMEOUT, tx => users::set_enabled(tx, &id, enabled, now))
    }

    fn remove_user<'a>(&'a self, id: &'a UserId, now: UnixTime) -> StoreFuture<'a, bool> {
        let id = id.clone();
        ask!(self, Alone, ADMIN_TIMEOUT, tx => users::remove(tx, &id, now))
    }

    fn users<'a>(&'a self, after: Option<&'a UserId>, limit: u32) -> StoreFuture<'a, Vec<User>> {
        let after = after.cloned();
        ask!(self, Single, TIMEOUT, tx => users::list(tx, after.as_ref(), limit))
    }

    fn open_session(
        &self,
        session: Session,
        verified: VerifiedPassword,
        most: NonZeroU32,
    ) -> StoreFuture<'_, bool> {
        ask!(self, Shared, TIMEOUT, tx => sessions::open(tx, &session, &verified, most))
    }

    fn change_password(
        &self,
        session: Session,
        verified: Secret,
        hash: Secret,
    ) -> StoreFuture<'_, bool> {
        ask!(self, Alone, TIMEOUT, tx => sessions::change_password(tx, &session, &verified, &hash))
    }

    fn session<'a>(
        &'a self,
        id_hash: &'a [u8; 32],
        now: UnixTime,
    ) -> StoreFuture<'a, Option<(Session, User)>> {
        let id_hash = *id_hash;
        ask!(self, Snapshot, TIMEOUT, tx => sessions::find(tx, &id_hash, now))
    }

    fn close_session<'a>(&'a self, id_hash: &'a [u8; 32]) -> StoreFuture<'a, ()> {
        let id_hash = *id_hash;
        ask!(self, Shared, TIMEOUT, tx => sessions::close(tx, &id_hash))
    }

    fn open_sessions<'a>(
        &'a self,
        user: &'a UserId,
        now: UnixTime,
    ) -> StoreFuture<'a, OpenSessions> {
        let user = user.clone();
        ask!(self, Single, TIMEOUT, tx => sessions::count(tx, &user, now))
    }

    fn close_sessions<'a>(&'a self, user: &'a UserId) -> StoreFuture<'a, ()> {
        let user = user.clone();
        ask!(self, Shared, TIMEOUT, tx => sessions::close_all(tx, &user))
    }

    fn export(&self) -> StoreFuture<'_, Export> {
        ask!(self, Snapshot, LONG_TIMEOUT, tx => transfer::export(tx))
    }

    fn import(&self, list: ImportList) -> StoreFuture<'_, Import> {
        ask!(self, Alone, LONG_TIMEOUT, tx => transfer::import(tx, &list))
    }

    fn reseal(&self, from: ResealFrom, look: bool) -> StoreFuture<'_, Resealed> {
        Box::pin(async move {
            // To look changes nothing, and holds up nobody.
            let mode = if look { Mode::Snapshot } else { Mode::Shared };
            let batch = self.ask(mode, E::ADMIN_TIMEOUT, move |tx| {
                Box::pin(async move {
                    let resealed = sealing::reseal(tx, &from, look).await?;
                    Ok((resealed, tx.seal().has_met_clear()))
                })
            });
            let (resealed, has_met_clear) = batch.await?;
            if has_met_clear && !look && resealed.next.is_none() {
                self.wipe().await?;
            }
            Ok(resealed)
        })
    }

    fn record_command(&self, record: String) -> StoreFuture<'_, ()> {
        let record = Change::Command(record);
        ask!(self, Shared, TIMEOUT, tx => async { tx.changed(record) })
    }

    fn record_failed_login(&self, report: String) -> StoreFuture<'_, ()> {
        Engine::record_failed_login(self, report)
    }

    fn changes_since(&self, position: u64) -> StoreFuture<'_, Changes> {
        ask!(self, Snapshot, TIMEOUT, tx => feed::changes_since(tx, position))
    }

    fn local_nonces_until(&self) -> StoreFuture<'_, Option<UnixTime>> {
        ask!(self, Single, TIMEOUT, tx => feed::local_nonces_until(tx))
    }

    fn set_local_nonces_until(&self, until: UnixTime) -> StoreFuture<'_, ()> {
        ask!(self, Shared, TIMEOUT, tx => feed::set_local_nonces_until(tx, until))
    }

    fn imported_nonces_until(&self) -> StoreFuture<'_, Option<UnixTime>> {
        ask!(self, Single, TIMEOUT, tx => feed::imported_nonces_until(tx))
    }

    fn purge(&self, now: UnixTime) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            while !ask!(self, Shared, ADMIN_TIMEOUT, tx => feed::purge(tx, now)).await? {}
            Ok(())
        })
    }
}
