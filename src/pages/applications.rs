//! `mode=applications`: the applications that can act for a user, each with a button that ends it.

use std::{cmp::Reverse, collections::BTreeMap};

use askama::Template;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use percent_encoding::utf8_percent_encode;

use super::{
    LoggedIn, PageError, Shown, Visit, Worded, consent, cookies,
    csrf::{self, FormPurpose},
    login::LoginForm,
};
use crate::{
    clock::UnixTime,
    issue::callback::ESCAPED,
    names::{ConsumerKey, UserId},
    respond::{Failure, OwnResponse, look::Frame},
    store::{
        port::TokenFilter,
        record::{AccessToken, Session, User},
    },
};

/// Applications on one page.
const SHOWN: usize = 50;
/// Sessions on the page, in addition to the one of this browser.
const SHOWN_SESSIONS: usize = 10;
/// Tokens read from the store at once.
const BATCH: u32 = 200;
/// Batches read for one page: a user with thousands of ended tokens gets a page with a link to more.
const BATCHES: usize = 10;

#[derive(Template)]
#[template(path = "applications.html")]
struct ApplicationsPage<'a> {
    frame: Frame<'a>,
    user: &'a User,
    logout_csrf: &'a str,
    /// The newest, this one first.
    sessions: &'a [ShownSession],
    open_sessions: u64,
    /// Whether there is a page that changes the password.
    has_password: bool,
    notice: Option<&'a str>,
    applications: &'a [Application],
    more: Option<String>,
}

/// A browser in which the user is logged in.
struct ShownSession {
    /// Its name, where it is known.
    browser: String,
    since: Shown,
    /// The id of the session and the value of the form that ends it; `None` for this browser.
    end: Option<(String, String)>,
}

/// The access tokens of the user that one consumer has.
struct Application {
    consumer: ConsumerKey,
    name: String,
    /// The colour of its sign.
    hue: u8,
    permissions: Vec<Worded>,
    permission_count: u64,
    connections: u64,
    used_at: UnixTime,
    issued_at: Shown,
    last_used_at: Option<Shown>,
}

/// The question before the access of a consumer ends.
#[derive(Template)]
#[template(path = "withdraw.html")]
struct WithdrawPage<'a> {
    frame: Frame<'a>,
    csrf: &'a str,
    consumer: &'a str,
    name: &'a str,
}

impl Visit<'_> {
    /// Responds to the page of a user's applications.
    pub(super) async fn applications(&self) -> Result<OwnResponse, Failure> {
        let here = self.frame.link("applications");
        if let Some(consumer) = self.field("revoke") {
            return self.revoke(consumer, &here).await;
        }
        match self.caller_or_form(&LoginForm::of(&here)).await? {
            Ok(caller) => self.list(&here, &caller).await,
            Err(login) => Ok(login),
        }
    }

    /// Revokes all tokens of the user that a consumer has.
    async fn revoke(&self, consumer: &str, here: &str) -> Result<OwnResponse, Failure> {
        let sender = self.sender(FormPurpose::Revoke, consumer, here);
        let caller = sender.await?;
        let key = consumer.parse();
        let key: ConsumerKey = key.map_err(|_| PageError::ApplicationUnknown)?;
        let filter = tokens_of(&caller.user.id, Some(key.clone()));
        let count = self
            .store()
            .revoke_access_tokens(&filter, self.now, u32::MAX)
            .await?;
        // The tokens are rejected from now on, not only after the next read of the feed.
        self.pages.services.feed.follow().await?;
        tracing::info!(
            target: "audit",
            event = "tokens_revoked",
            consumer = %key,
            user = %caller.user.id,
            count,
            address = %self.address,
        );
        let notice = self.notice_parameters(&caller.id, "applications-withdrawn", consumer);
        Ok(OwnResponse::see_other(format!("{here}{notice}")))
    }

    async fn list(&self, here: &str, caller: &LoggedIn) -> Result<OwnResponse, Failure> {
        if let Some(consumer) = self.parameter("withdraw")? {
            return self.withdraw(caller, &consumer).await;
        }
        let (tokens, more) = self.live_tokens(caller, self.parameter("after")?).await?;
        let texts = self.frame.texts;
        let notice = match self.proven_notice(&caller.id)? {
            Some((id @ "applications-withdrawn", consumer)) => {
                let name = self.consumer_name(&consumer).await?.unwrap_or(consumer);
                Some(texts.filled(id, &[("consumer", name)]))
            }
            notice => notice.map(|(id, _)| texts.text(id).into_owned()),
        };
        let mut applications = Vec::with_capacity(tokens.len());
        for (key, tokens) in tokens {
            let name = self.consumer_name(key.as_str()).await?;
            applications.push(self.application(key, name, &tokens));
        }
        applications.sort_by_key(|application| Reverse(application.used_at));
        let open = self.store().sessions_of(&caller.user.id, self.now).await?;
        let own = cookies::id_hash(&caller.id);
        let (this, others): (Vec<_>, Vec<_>) = open.iter().partition(|it| it.id_hash == own);
        let shown = this
            .into_iter()
            .chain(others.into_iter().take(SHOWN_SESSIONS));
        let sessions = shown.map(|session| self.session(session, caller, &own));
        Ok(self.page(&ApplicationsPage {
            frame: self.frame,
            user: &caller.user,
            logout_csrf: &csrf::value(&caller.id, FormPurpose::LogOut, ""),
            sessions: &sessions.collect::<Vec<_>>(),
            open_sessions: open.len() as u64,
            has_password: self.pages.services.passwords.is_some(),
            notice: notice.as_deref(),
            applications: &applications,
            more: more.map(|last| format!("{here}&after={}", utf8_percent_encode(&last, ESCAPED))),
        }))
    }

    fn session(&self, session: &Session, caller: &LoggedIn, own: &[u8; 32]) -> ShownSession {
        let texts = self.frame.texts;
        let id = URL_SAFE_NO_PAD.encode(session.id_hash);
        let end = csrf::value(&caller.id, FormPurpose::EndSession, &id);
        ShownSession {
            browser: match (&session.browser, &session.system) {
                (Some(browser), Some(system)) => texts.title(
                    "sessions-browser",
                    &[("browser", browser), ("system", system)],
                ),
                (Some(name), None) | (None, Some(name)) => name.clone(),
                (None, None) => texts.text("sessions-unknown").into_owned(),
            },
            since: self.shown(session.created_at),
            end: (session.id_hash != *own).then_some((id, end)),
        }
    }

    /// Asks whether the access of a consumer is to end.
    async fn withdraw(&self, caller: &LoggedIn, consumer: &str) -> Result<OwnResponse, Failure> {
        let name = self.consumer_name(consumer).await?;
        Ok(self.page(&WithdrawPage {
            frame: self.frame,
            csrf: &csrf::value(&caller.id, FormPurpose::Revoke, consumer),
            consumer,
            name: &name.ok_or(PageError::ApplicationUnknown)?,
        }))
    }

    /// The caller's valid tokens by consumer, and the token after which there may be more.
    async fn live_tokens(
        &self,
        caller: &LoggedIn,
        mut after: Option<String>,
    ) -> Result<(BTreeMap<ConsumerKey, Vec<AccessToken>>, Option<String>), Failure> {
        let filter = tokens_of(&caller.user.id, None);
        let mut live = BTreeMap::<ConsumerKey, Vec<AccessToken>>::new();
        for _ in 0..BATCHES {
            let reading = self.store().access_tokens(&filter, after.as_deref(), BATCH);
            let batch = reading.await?;
            let is_last = u32::try_from(batch.len()).is_ok_and(|length| length < BATCH);
            for token in batch {
                let last = token.token.clone();
                if self.is_live(&token) {
                    if live.len() == SHOWN && !live.contains_key(&token.consumer) {
                        return Ok((live, after));
                    }
                    live.entry(token.consumer.clone()).or_default().push(token);
                }
                after = Some(last);
            }
            if is_last {
                return Ok((live, None));
            }
        }
        Ok((live, after))
    }

    fn is_live(&self, token: &AccessToken) -> bool {
        let last_use = token.last_used_at.unwrap_or_default().max(token.issued_at);
        let idle = self.pages.params.access_idle;
        token.revoked_at.is_none()
            && token
                .expires_at
                .is_none_or(|expires_at| self.now < expires_at)
            && idle.is_none_or(|idle| self.now < last_use.after(idle))
    }

    /// The valid tokens of the user that a consumer has.
    pub(super) async fn live_tokens_of(
        &self,
        user: &User,
        consumer: &ConsumerKey,
    ) -> Result<Vec<AccessToken>, Failure> {
        let filter = tokens_of(&user.id, Some(consumer.clone()));
        let mut tokens = self.store().access_tokens(&filter, None, BATCH).await?;
        tokens.retain(|token| self.is_live(token));
        Ok(tokens)
    }

    async fn consumer_name(&self, key: &str) -> Result<Option<String>, Failure> {
        let Ok(key) = key.parse() else {
            return Ok(None);
        };
        let consumer = self.store().consumer(&key).await?;
        Ok(consumer.map(|consumer| consumer.name))
    }

    fn application(
        &self,
        consumer: ConsumerKey,
        name: Option<String>,
        tokens: &[AccessToken],
    ) -> Application {
        let mut names = Vec::new();
        for permission in tokens.iter().flat_map(|token| &token.permissions) {
            if !names.contains(&permission) {
                names.push(permission);
            }
        }
        let permission_count = names.len() as u64;
        let permissions = names.into_iter().map(|name| self.described(name).0);
        let issued_at = tokens.iter().map(|token| token.issued_at).min();
        let issued_at = issued_at.unwrap_or_default();
        let last_used_at = tokens.iter().filter_map(|token| token.last_used_at).max();
        Application {
            name: name.unwrap_or_else(|| consumer.to_string()),
            hue: consent::hue(&consumer),
            consumer,
            permissions: permissions.collect(),
            permission_count,
            connections: tokens.len() as u64,
            used_at: last_used_at.unwrap_or_default().max(issued_at),
            issued_at: self.shown(issued_at),
            last_used_at: last_used_at.map(|time| self.shown(time)),
        }
    }
}

fn tokens_of(user: &UserId, consumer: Option<ConsumerKey>) -> TokenFilter {
    TokenFilter {
        user: Some(user.clone()),
        consumer,
        ..TokenFilter::default()
    }
}
