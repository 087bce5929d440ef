//! The store in Redis or Valkey: for several replicas that share one truth.
//!
//! Every use case is one run of `script.lua`, which Redis carries out alone: it checks first and writes last. Secrets
//! are sealed here, so what depends on one is compared here, and the script checks that it is still the one that was
//! compared; if not, the use case starts anew.
//!
//! An acknowledged change is as durable as Redis is set up to be: `appendfsync always` keeps it over a power loss,
//! `everysec` may lose the last second, and a failover loses what the new primary had not received yet.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::{
    clock::UnixTime,
    names::{ConsumerKey, UserId},
    nonce::{NonceUse, OnLost, SharedWindow},
    secret::Secret,
    store::{
        Store, StoreFuture,
        port::{
            Account, Added, Admitted, Changes, Decided, Decision, Exchange, Exchanged,
            MAX_WRONG_VERIFIERS, OpenSessions, ResealFrom, Resealed, TokenFilter, VerifiedPassword,
        },
        record::{
            AccessToken, Consumer, ConsumerUpdate, OutsideUser, RequestToken, RequestTokenState,
            Session, User, password_cost,
        },
        rows::{self, callback_text, json, state_word},
        rules::{self, KEEP_CHANGES, KEEP_ENDED, MOST_CHANGES, folded},
        seal::{Seal, field},
        transfer::{Import, Record, Sender, Source},
    },
};

mod export;
mod import;
mod link;
mod nonces;
mod open;
mod probe;
mod run;
mod step;
mod target;

pub use nonces::{check_nonces, nonce_used, open_nonces};
pub use open::{OpenError, Params};
pub use target::Target;

use link::{Link, RedisFault};
use run::{CHUNK, TRIES, row};
use step::{Args, Fields, hex};

/// The record that every version of the schema has; its hash tag is that of all keys.
const META: &str = "cs:{store}";

/// A store in Redis.
pub struct RedisStore {
    link: Arc<Link>,
    /// Seals secrets.
    seal: Seal,
    /// The word by which the store recognises its key, empty if secrets are kept in clear.
    sealed: ArcSwap<Vec<u8>>,
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore").finish_non_exhaustive()
    }
}

const fn added(is_added: bool) -> Added {
    if is_added { Added::Added } else { Added::Taken }
}

impl Store for RedisStore {
    fn ping(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.run(self.step("ping")))
    }

    fn findings(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(probe::findings(&self.link, &probe::RECORDS))
    }

    fn shared_window(&self, on_lost: OnLost) -> Option<Box<dyn SharedWindow>> {
        Some(self.open_window(on_lost))
    }

    fn nonce_used<'a>(&'a self, nonce: NonceUse<'a>) -> StoreFuture<'a, Option<bool>> {
        Box::pin(async move { nonces::has_nonce(&self.link, nonce).await.map(Some) })
    }

    fn consumer<'a>(&'a self, key: &'a ConsumerKey) -> StoreFuture<'a, Option<Consumer>> {
        Box::pin(async move {
            let row = self.find("consumer", "key", key.as_str()).await?;
            row.map(|row| rows::consumer(&row, &self.seal)).transpose()
        })
    }

    fn access_token<'a>(&'a self, token: &'a str) -> StoreFuture<'a, Option<AccessToken>> {
        Box::pin(async move {
            let row = self.find("access_token", "token", token).await?;
            row.map(|row| rows::access_token(&row, &self.seal))
                .transpose()
        })
    }

    fn request_token<'a>(&'a self, token: &'a str) -> StoreFuture<'a, Option<RequestToken>> {
        Box::pin(async move {
            let step = self.step("request_token").arg(token);
            let found: Option<(String, Fields)> = self.run(step).await?;
            let found = found.map(|found| rows::request_token(&row("token", found), &self.seal));
            found.transpose()
        })
    }

    fn issue_request_token(&self, token: RequestToken) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let close = |field, secret: &Secret| self.seal.close(field, &token.token, secret);
            let (user, verifier, redirect_token) = match &token.state {
                RequestTokenState::Authorized {
                    user,
                    verifier,
                    redirect_token,
                } => (
                    user.as_str(),
                    Some(close(field::VERIFIER, verifier)?),
                    redirect_token.as_deref(),
                ),
                _ => ("", None, None),
            };
            let fields = Args::default()
                .field("secret", close(field::REQUEST_TOKEN, &token.secret)?)
                .optional("callback", callback_text(&token.callback))
                .field("permissions", json(&token.permissions)?)
                .time("issued_at", token.issued_at)
                .field("state", state_word(&token.state))
                .optional("verifier", verifier)
                .field("wrong_verifiers", token.wrong_verifiers.to_string());
            let step = self
                .step("issue_request_token")
                .arg(&token.token)
                .arg(token.consumer.as_str())
                .time(token.expires_at)
                .arg(user)
                .arg(redirect_token.unwrap_or_default());
            self.run(step.args(fields)).await
        })
    }

    fn decide<'a>(
        &'a self,
        token: &'a str,
        session: &'a [u8; 32],
        decision: Decision,
        now: UnixTime,
    ) -> StoreFuture<'a, Decided> {
        Box::pin(async move {
            let step = self.step("decide").arg(token).arg(hex(session)).time(now);
            let step = match decision {
                Decision::Allow {
                    verifier,
                    redirect_token,
                    expires_at,
                } => step
                    .arg(self.seal.close(field::VERIFIER, token, &verifier)?)
                    .arg(redirect_token.unwrap_or_default())
                    .time(expires_at),
                Decision::Deny => step.arg("").arg("").arg(""),
            };
            match &*self.run::<String>(step).await? {
                "recorded" => Ok(Decided::Recorded),
                "already decided" => Ok(Decided::AlreadyDecided),
                "expired" => Ok(Decided::Expired),
                _ => Ok(Decided::Unknown),
            }
        })
    }

    fn exchange(&self, exchange: Exchange) -> StoreFuture<'_, Exchanged> {
        Box::pin(async move {
            for _ in 0..TRIES {
                let step = self.step("exchangeable").arg(&exchange.token);
                type Found = (String, Fields, Option<(String, Fields)>);
                let Some((token, fields, user)) = self.run::<Option<Found>>(step).await? else {
                    return Ok(Exchanged::Unknown);
                };
                let token_row = row("token", (token, fields));
                let found = rows::request_token(&token_row, &self.seal)?;
                let user = user.filter(|(_, fields)| !fields.is_empty());
                let user = user.map(|user| rows::user(&row("id", user), &self.seal));
                let outcome = rules::exchange(Some(&found), user.transpose()?, &exchange);
                let seen = token_row.fields.get("verifier");
                let seen = seen.map_or(&b""[..], Vec::as_slice);
                let step = match &outcome {
                    Exchanged::WrongVerifier => self
                        .step("count_wrong_verifier")
                        .arg(&found.token)
                        .arg(seen)
                        .number(MAX_WRONG_VERIFIERS),
                    Exchanged::Exchanged { access_token, .. } => self
                        .step("exchange")
                        .arg(&found.token)
                        .arg(seen)
                        .arg(&access_token.token)
                        .arg(access_token.consumer.as_str())
                        .arg(access_token.user.as_str())
                        .args(self.token_fields(access_token)?),
                    _ => return Ok(outcome),
                };
                if self.run(step).await? {
                    return Ok(outcome);
                }
            }
            Err(RedisFault::Contended.into())
        })
    }

    fn issue_access_token(&self, token: AccessToken) -> StoreFuture<'_, Added> {
        Box::pin(async move {
            let step = self
                .step("issue_access_token")
                .arg(&token.token)
                .arg(token.consumer.as_str())
                .arg(token.user.as_str())
                .args(self.token_fields(&token)?);
            self.run(step).await.map(added)
        })
    }

    fn revoke_access_token<'a>(&'a self, token: &'a str, now: UnixTime) -> StoreFuture<'a, bool> {
        Box::pin(self.run(self.step("revoke_access_token").arg(token).time(now)))
    }

    fn access_tokens<'a>(
        &'a self,
        filter: &'a TokenFilter,
        after: Option<&'a str>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<AccessToken>> {
        let step = self
            .step("access_tokens")
            .arg(filter.user.as_ref().map_or("", UserId::as_str))
            .arg(filter.consumer.as_ref().map_or("", ConsumerKey::as_str))
            .arg(after.unwrap_or_default())
            .number(limit);
        Box::pin(self.list(step, "token", rows::access_token))
    }

    /// Writes many uses in several runs: each use is written or not, and all can be written again.
    fn record_uses(&self, uses: Vec<(String, UnixTime)>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            for some in uses.chunks(CHUNK) {
                let step = self.step("record_uses");
                let step = some
                    .iter()
                    .fold(step, |step, (token, at)| step.arg(token).time(*at));
                self.run::<()>(step).await?;
            }
            Ok(())
        })
    }

    fn add_consumer(&self, consumer: Consumer) -> StoreFuture<'_, Added> {
        Box::pin(async move {
            loop {
                let step = self.step("add_consumer").arg(consumer.key.as_str());
                let step = step.args(self.consumer_fields(&consumer)?);
                match &*self.run::<String>(step).await? {
                    "sweep" => self.sweep().await?,
                    outcome => return Ok(added(outcome == "added")),
                }
            }
        })
    }

    fn update_consumer<'a>(
        &'a self,
        key: &'a ConsumerKey,
        update: ConsumerUpdate,
    ) -> StoreFuture<'a, Option<Consumer>> {
        Box::pin(self.replace_consumer(key, move |consumer| update.clone().apply(consumer)))
    }

    fn rotate_consumer_secret<'a>(
        &'a self,
        key: &'a ConsumerKey,
        secret: Secret,
        previous_until: Option<UnixTime>,
    ) -> StoreFuture<'a, Option<Consumer>> {
        Box::pin(self.replace_consumer(key, move |consumer| {
            consumer.rotate_secret(secret.clone(), previous_until);
        }))
    }

    fn remove_consumer<'a>(&'a self, key: &'a ConsumerKey) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let is_removed = self
                .run(self.step("remove_consumer").arg(key.as_str()))
                .await?;
            if is_removed {
                // What fails here does not undo the removal; `purge` goes on with it.
                let _ = self.sweep().await;
            }
            Ok(is_removed)
        })
    }

    fn consumers<'a>(
        &'a self,
        after: Option<&'a ConsumerKey>,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Consumer>> {
        let after = after.map_or("", ConsumerKey::as_str);
        let step = self.step("consumers").arg(after).number(limit);
        Box::pin(self.list(step, "key", rows::consumer))
    }

    fn add_user(&self, user: User) -> StoreFuture<'_, Added> {
        Box::pin(async move {
            let step = self.step("add_user").arg(user.id.as_str());
            let step = step.arg(folded(&user.name)).args(self.user_fields(&user)?);
            self.run(step).await.map(added)
        })
    }

    fn admit_user(&self, user: OutsideUser, now: UnixTime) -> StoreFuture<'_, Admitted> {
        Box::pin(async move {
            let id = user.id.as_str();
            let name = user.name.as_deref().unwrap_or(id);
            let step = self
                .step("admit_user")
                .arg(id)
                .flag(user.name.is_some())
                .arg(name)
                .arg(folded(name))
                .time(now)
                .args(Args::default().optional("display_name", user.display_name.as_ref()));
            let (outcome, fields) = self.run::<(String, Fields)>(step).await?;
            match &*outcome {
                "removed" => Ok(Admitted::Removed),
                "name taken" => Ok(Admitted::NameTaken),
                _ => {
                    rows::user(&row("id", (id.to_owned(), fields)), &self.seal).map(Admitted::User)
                }
            }
        })
    }

    fn user<'a>(&'a self, id: &'a UserId) -> StoreFuture<'a, Option<User>> {
        Box::pin(async move {
            let row = self.find("user", "id", id.as_str()).await?;
            row.map(|row| rows::user(&row, &self.seal)).transpose()
        })
    }

    fn user_by_name<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<User>> {
        Box::pin(async move { Ok(self.account(name).await?.user) })
    }

    fn account<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Account> {
        Box::pin(async move {
            let step = self.step("account").arg(folded(name));
            type Found = (Option<(String, Fields)>, Vec<String>);
            let (user, mut costs) = self.run::<Found>(step).await?;
            costs.sort_unstable();
            let user = user.map(|user| rows::user(&row("id", user), &self.seal));
            Ok(Account {
                user: user.transpose()?,
                costs,
            })
        })
    }

    fn set_password<'a>(&'a self, id: &'a UserId, hash: Secret) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let kept = self.seal.close(field::USER, id.as_str(), &hash)?;
            let step = self.step("set_password").arg(id.as_str());
            self.run(step.arg(kept).arg(password_cost(&hash))).await
        })
    }

    fn set_user_enabled<'a>(
        &'a self,
        id: &'a UserId,
        enabled: bool,
        now: UnixTime,
    ) -> StoreFuture<'a, bool> {
        let step = self.step("set_user_enabled").arg(id.as_str());
        Box::pin(self.run_long(step.flag(enabled).time(now)))
    }

    fn remove_user<'a>(&'a self, id: &'a UserId, now: UnixTime) -> StoreFuture<'a, bool> {
        Box::pin(self.run_long(self.step("remove_user").arg(id.as_str()).time(now)))
    }

    fn users<'a>(&'a self, after: Option<&'a UserId>, limit: u32) -> StoreFuture<'a, Vec<User>> {
        let after = after.map_or("", UserId::as_str);
        let step = self.step("users").arg(after).number(limit);
        Box::pin(self.list(step, "id", rows::user))
    }

    fn open_session(&self, session: Session, verified: VerifiedPassword) -> StoreFuture<'_, bool> {
        Box::pin(self.keep_session(session, verified, false))
    }

    fn change_password(
        &self,
        session: Session,
        verified: Secret,
        hash: Secret,
    ) -> StoreFuture<'_, bool> {
        let verified = VerifiedPassword {
            hash: Some(verified),
            rehashed: Some(hash),
        };
        Box::pin(self.keep_session(session, verified, true))
    }

    fn session<'a>(
        &'a self,
        id_hash: &'a [u8; 32],
        now: UnixTime,
    ) -> StoreFuture<'a, Option<(Session, User)>> {
        Box::pin(async move {
            let step = self.step("session").arg(hex(id_hash)).time(now);
            type Found = (String, Fields, Fields);
            let Some((id, mut session, user)) = self.run::<Option<Found>>(step).await? else {
                return Ok(None);
            };
            session.insert("id_hash".to_owned(), id_hash.to_vec());
            let session = rows::session(&row("", (String::new(), session)))?;
            let user = rows::user(&row("id", (id, user)), &self.seal)?;
            Ok(Some((session, user)))
        })
    }

    fn close_session<'a>(&'a self, id_hash: &'a [u8; 32]) -> StoreFuture<'a, ()> {
        Box::pin(self.run(self.step("close_session").arg(hex(id_hash))))
    }

    fn open_sessions<'a>(
        &'a self,
        user: &'a UserId,
        now: UnixTime,
    ) -> StoreFuture<'a, OpenSessions> {
        Box::pin(async move {
            let step = self.step("open_sessions").arg(user.as_str()).time(now);
            let (count, since) = self.run(step).await?;
            rows::open_sessions(count, since)
        })
    }

    fn close_sessions<'a>(&'a self, user: &'a UserId) -> StoreFuture<'a, ()> {
        Box::pin(self.run(self.step("close_sessions").arg(user.as_str())))
    }

    /// Each record is as it stood at some moment meanwhile; what was issued meanwhile may be missing.
    fn export_to(&self, to: Sender<Record>) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.export_all(&to).await })
    }

    /// Up to 10,000 records are taken in by one atomic step. Of more, all are checked first and then taken in by
    /// parts: if Redis is away for long meanwhile, or others change the same records, a part is in.
    fn import_from(&self, source: Source) -> StoreFuture<'_, Import> {
        Box::pin(async move { self.import_from(&source).await })
    }

    fn unended_imports(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(self.unended())
    }

    fn reseal(&self, from: ResealFrom, look: bool) -> StoreFuture<'_, Resealed> {
        Box::pin(self.reseal_some(from, look))
    }

    fn record_command(&self, record: String) -> StoreFuture<'_, ()> {
        Box::pin(self.run(self.step("record_command").arg(record)))
    }

    fn record_failed_login(&self, report: String) -> StoreFuture<'_, ()> {
        Box::pin(self.run(self.step("record_failed_login").arg(report)))
    }

    fn changes_since(&self, position: u64) -> StoreFuture<'_, Changes> {
        Box::pin(async move {
            let step = self.step("changes_since").number(position);
            let step = step.number(MOST_CHANGES.unsigned_abs());
            type Told = (u64, Vec<(u64, String, String)>);
            let (head, told) = self.run::<Told>(step).await?;
            let now = Changes {
                position: head,
                ..Changes::default()
            };
            if position == 0 || position == head {
                return Ok(now);
            }
            // The entry that was read last shows that none behind it is missing, neither purged nor lost in a failover.
            let is_complete = told.first().is_some_and(|(first, ..)| *first == position)
                && told.len() as u64 <= MOST_CHANGES.unsigned_abs() + 1;
            if !is_complete {
                return Ok(Changes {
                    incomplete: true,
                    ..now
                });
            }
            let changes = told.into_iter().skip(1).map(|(_, kind, key)| {
                let kind = Fields::from([("kind".to_owned(), kind.into_bytes())]);
                rows::change(&row("key", (key, kind)))
            });
            Ok(Changes {
                changes: changes.collect::<Result<_, _>>()?,
                ..now
            })
        })
    }

    fn local_nonces_until(&self) -> StoreFuture<'_, Option<UnixTime>> {
        Box::pin(async move {
            let until: Option<u64> = self.run(self.step("local_nonces_until")).await?;
            Ok(until.map(UnixTime))
        })
    }

    fn set_local_nonces_until(&self, until: UnixTime) -> StoreFuture<'_, ()> {
        Box::pin(self.run(self.step("set_local_nonces_until").time(until)))
    }

    fn purge(&self, now: UnixTime) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.sweep().await?;
            let told = now.before(KEEP_CHANGES).0.saturating_mul(1_000_000);
            loop {
                let step = self.step("purge").time(now.before(KEEP_ENDED));
                let step = step.number(told).number(CHUNK as u64);
                if self.run(step).await? {
                    return Ok(());
                }
            }
        })
    }
}
