//! `mode=applications`: the applications that can act for a user, each with a button that ends it, and the user's sessions.

use std::{cmp::Reverse, collections::BTreeMap};

use askama::Template;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use super::{
    LoggedIn, PageError, PageRequest, Worded, consent, login::LoginForm, settings::RegistrationMode,
};
use crate::{
    base::text::{
        names::{ConsumerKey, UserId},
        percent_encoded,
    },
    provider::{
        pages::{
            browser::cookies,
            form::csrf::{self, FormPurpose},
        },
        respond::{Failure, OwnResponse},
        theme::frame::Frame,
    },
    records::values::{
        record::{AccessToken, Session, TokenBeginning, User},
        use_cases::TokenFilter,
    },
};

/// The most bytes of a page with a list, which has only as many entries as fit: with its head it arrives in the first ten
/// segments of a connection (RFC 6928).
const MAX_PAGE: usize = 13 * 1024;
/// The most entries of a list on one page.
const SHOWN: usize = 25;
/// Sessions below the applications; all of them are on a page of their own.
const SHOWN_SESSIONS: usize = 3;
/// Tokens read from the store at once.
const BATCH: u32 = 250;
/// Batches read for one list: a user with more tokens gets a page with a link to the applications of the others.
const BATCHES: usize = 8;

#[derive(Template)]
#[template(path = "applications.html")]
struct ApplicationsPage<'a> {
    frame: Frame<'a>,
    user: &'a User,
    logout_csrf: &'a str,
    /// This one first, then the newest; empty from the second page of applications on.
    sessions: &'a [ShownSession],
    /// All of them.
    open: u64,
    /// Whether there is a page that changes the password.
    has_password: bool,
    /// The page of all sessions, if there are more, and the text of the link.
    all: Option<(String, String)>,
    notice: Option<&'a str>,
    applications: &'a [Application],
    more: Option<String>,
    /// Whether there is a page on which users ask for consumers.
    registers: bool,
}

/// All sessions of the user, where there are more than fit below the applications.
#[derive(Template)]
#[template(path = "sessions.html")]
struct SessionsPage<'a> {
    frame: Frame<'a>,
    sessions: &'a [ShownSession],
    open: u64,
    has_password: bool,
    /// The page of further ones, and the text of the link.
    all: Option<(String, String)>,
}

/// A browser in which the user is logged in.
struct ShownSession {
    /// Its name, where it is known.
    browser: String,
    since: String,
    /// The address of the login, by which browsers of one name are told apart.
    address: String,
    /// The id of the session and the value of the form that ends it; `None` for this browser.
    end: Option<(String, String)>,
}

/// The access tokens of the user that one consumer has.
struct Application {
    name: String,
    /// The page that asks whether to end its access.
    withdraw: String,
    /// The colour of its sign.
    hue: u8,
    permissions: Vec<Worded>,
    permission_count: u64,
    connections: u64,
    /// The message about the time and the way in which it got access.
    allowed: &'static str,
    issued_at: String,
    last_used_at: Option<String>,
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

impl PageRequest<'_> {
    /// Responds to the page of a user's applications.
    pub(super) async fn applications(&self) -> Result<OwnResponse, Failure> {
        let here = self.frame.link("applications");
        if let Some(consumer) = self.field("revoke") {
            return self.revoke(consumer, &here).await;
        }
        match self
            .caller_or_form(&LoginForm::leading_back_to(&here))
            .await?
        {
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
        let open = self.store().sessions_of(&caller.user.id, self.now).await?;
        let current = cookies::id_hash(&caller.id);
        let (this, others): (Vec<_>, Vec<_>) = open.iter().partition(|it| it.id_hash == current);
        let sessions = this.into_iter().chain(others);
        let sessions = sessions.map(|session| self.session(session, caller, &current));
        let has_password = self.pages.services.passwords.is_some();
        if let Some(from) = self.parameter("sessions")? {
            let from = from.parse().unwrap_or(0);
            let sessions = Vec::from_iter(sessions.skip(from).take(SHOWN + 1));
            return Ok(fitted(&sessions, |sessions, is_cut| {
                let next = from + sessions.len();
                self.page(&SessionsPage {
                    frame: self.frame,
                    sessions,
                    open: open.len() as u64,
                    has_password,
                    all: is_cut.then(|| {
                        let more = self.frame.texts.text("applications-more");
                        (format!("{here}&sessions={next}"), more.into_owned())
                    }),
                })
            }));
        }
        let after = self.parameter("after")?;
        let from = self.parameter("from")?.and_then(|from| from.parse().ok());
        let from = from.unwrap_or(0);
        let filter = tokens_of(&caller.user.id, None);
        let (tokens, rest) = self.live_tokens(&filter, after.clone()).await?;
        let of = |token: &str| self.frame.link_with("applications", "after", token);
        let rest = rest.map(|last| of(&last));
        let mut live = BTreeMap::<ConsumerKey, Vec<AccessToken>>::new();
        for token in tokens {
            live.entry(token.consumer.clone()).or_default().push(token);
        }
        let mut live = Vec::from_iter(live);
        live.sort_by_key(|(_, tokens)| Reverse(tokens.iter().map(AccessToken::last_use).max()));
        let mut applications = Vec::new();
        for (key, tokens) in live.into_iter().skip(from).take(SHOWN + 1) {
            let name = self.consumer_name(key.as_str()).await?;
            applications.push(self.application(key, name, &tokens));
        }
        if applications.is_empty() && from > 0 {
            return Ok(OwnResponse::see_other(here.to_owned()));
        }
        let texts = self.frame.texts;
        let notice = match self.proven_notice(&caller.id)? {
            Some((id @ "applications-withdrawn", consumer)) => {
                let key = consumer.parse();
                let key = key.map_err(|_| PageError::ApplicationUnknown)?;
                // The user may load the page again after allowing it again.
                let is_gone = self.live_tokens_of(&caller.user, &key).await?.is_empty();
                let name = self.consumer_name(&consumer).await?.unwrap_or(consumer);
                is_gone.then(|| texts.filled(id, &[("consumer", name)]))
            }
            notice => notice.map(|(id, _)| texts.text(id).into_owned()),
        };
        let is_first = after.is_none() && from == 0;
        let shown = if is_first { SHOWN_SESSIONS } else { 0 };
        let mut sessions = Vec::from_iter(sessions.take(shown));
        let logout_csrf = csrf::value(&caller.id, FormPurpose::LogOut, "");
        let this = after.as_deref().map_or_else(|| here.to_owned(), of);
        loop {
            let all = (sessions.len() < open.len()).then(|| {
                let text = texts.counted("sessions-all", open.len() as u64);
                (format!("{here}&sessions=0"), text)
            });
            let page = fitted(&applications, |applications, is_cut| {
                let next = from + applications.len();
                self.page(&ApplicationsPage {
                    frame: self.frame,
                    user: &caller.user,
                    logout_csrf: &logout_csrf,
                    sessions: &sessions,
                    open: open.len() as u64,
                    has_password,
                    all: all.clone(),
                    notice: notice.as_deref(),
                    applications,
                    registers: self.pages.rules.registration.mode != RegistrationMode::Closed,
                    more: match is_cut {
                        true => Some(format!("{this}&from={next}")),
                        false => rest.clone(),
                    },
                })
            });
            // Names may be so long that there is room for fewer sessions.
            if page.body.len() <= MAX_PAGE || sessions.pop().is_none() {
                return Ok(page);
            }
        }
    }

    fn session(&self, session: &Session, caller: &LoggedIn, current: &[u8; 32]) -> ShownSession {
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
            since: self.wording().date_and_time(session.created_at),
            address: session.address.to_string(),
            end: (session.id_hash != *current).then_some((id, end)),
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

    fn is_live(&self, token: &AccessToken) -> bool {
        let idle = self.pages.rules.tokens.access_idle.0;
        token
            .expires_at
            .is_none_or(|expires_at| self.now < expires_at)
            && idle.is_none_or(|idle| self.now < token.last_use().after(idle))
    }

    /// The valid tokens of the user that a consumer has.
    pub(super) async fn live_tokens_of(
        &self,
        user: &User,
        consumer: &ConsumerKey,
    ) -> Result<Vec<AccessToken>, Failure> {
        let filter = tokens_of(&user.id, Some(consumer.clone()));
        Ok(self.live_tokens(&filter, None).await?.0)
    }

    /// The valid tokens after `after`, and the token after which there may be more.
    async fn live_tokens(
        &self,
        filter: &TokenFilter,
        mut after: Option<String>,
    ) -> Result<(Vec<AccessToken>, Option<String>), Failure> {
        let mut live = Vec::new();
        for _ in 0..BATCHES {
            let reading = self.store().access_tokens(filter, after.as_deref(), BATCH);
            let batch = reading.await?;
            let is_last = batch.len() < BATCH as usize;
            after = batch.last().map(|token| token.token.clone()).or(after);
            live.extend(batch.into_iter().filter(|token| self.is_live(token)));
            if is_last {
                return Ok((live, None));
            }
        }
        Ok((live, after))
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
        let permissions = names
            .into_iter()
            .map(|name| self.wording().described(name).0);
        // What the user was asked for comes before what the operator gave, and that before what they made themselves.
        let place = |it: &&AccessToken| {
            let (is_own, is_given) = (
                it.began == TokenBeginning::Own,
                it.began == TokenBeginning::Issued,
            );
            (is_own, is_given, it.issued_at)
        };
        let first = tokens.iter().min_by_key(place);
        let (began, issued_at) = first.map(|it| (it.began, it.issued_at)).unwrap_or_default();
        let last_used_at = tokens.iter().filter_map(|token| token.last_used_at).max();
        let withdraw = percent_encoded(consumer.as_str());
        let withdraw = format!("?mode=applications&withdraw={withdraw}");
        Application {
            name: name.unwrap_or_else(|| consumer.to_string()),
            hue: consent::hue(&consumer),
            withdraw: self.frame.in_same_language(withdraw),
            permissions: permissions.collect(),
            permission_count,
            connections: tokens.len() as u64,
            allowed: consent::beginning(began),
            issued_at: self.wording().date(issued_at),
            last_used_at: last_used_at.map(|time| self.wording().date(time)),
        }
    }
}

/// The page of as many entries as fit into [`MAX_PAGE`], at most [`SHOWN`] and at least one; `page` makes it, with a
/// flag whether entries are left.
fn fitted<T>(entries: &[T], page: impl Fn(&[T], bool) -> OwnResponse) -> OwnResponse {
    let mut shown = SHOWN.min(entries.len());
    loop {
        let page = page(&entries[..shown], shown < entries.len());
        let surplus = page.body.len().saturating_sub(MAX_PAGE);
        if surplus == 0 || shown <= 1 {
            return page;
        }
        // Removes only the necessary entries: the page has other bytes too.
        shown -= (surplus * shown / page.body.len()).max(1);
    }
}

/// The tokens of a user that are not revoked.
fn tokens_of(user: &UserId, consumer: Option<ConsumerKey>) -> TokenFilter {
    TokenFilter {
        user: Some(user.clone()),
        consumer,
        live: true,
        ..TokenFilter::default()
    }
}
