//! `mode=applications`: the applications that can act for a user, each with a button that ends it.

use std::collections::{BTreeMap, btree_map::Entry};

use percent_encoding::utf8_percent_encode;

use super::{
    LoggedIn, OwnResponse, PageRequest, Pages,
    csrf::{self, FormPurpose},
    displayed,
    error::PageError,
    fields::{self, Form},
    guard::{Act, act},
    login::LoginPlace,
    view,
};
use crate::{
    clock::UnixTime,
    issue::callback::ESCAPED,
    names::ConsumerKey,
    store::{
        port::{Change, TokenFilter},
        record::AccessToken,
    },
    telemetry::redact::RedactedToken,
};

/// Applications on one page.
const SHOWN: usize = 50;
/// Tokens read from the store at once.
const BATCH: u32 = 200;
/// Batches read for one page: a user with thousands of ended tokens gets a page with a link to more.
const BATCHES: usize = 10;

impl Pages {
    /// Answers the page of a user's applications.
    pub async fn applications(&self, request: PageRequest<'_>) -> OwnResponse {
        self.answer(&request, self.try_applications(&request).await)
    }

    /// Leads from `/` to the page of a user's applications.
    #[must_use]
    pub fn home(&self) -> OwnResponse {
        OwnResponse::see_other(format!("{}?mode=applications", self.params.path))
    }

    pub(super) fn applications_path(&self, request: &PageRequest<'_>) -> String {
        self.in_same_language(request, format!("{}?mode=applications", self.params.path))
    }

    async fn try_applications(&self, request: &PageRequest<'_>) -> Result<OwnResponse, PageError> {
        let here = self.applications_path(request);
        let place = LoginPlace::of(&here);
        match act(request, &self.params.origin)? {
            Act::Show => match self.logged_in(request).await? {
                Some(caller) => {
                    let page = self.list(request, &here, &caller).await?;
                    Ok(self.with_session(page, &caller))
                }
                None => self.show_login(request, &place),
            },
            Act::Submit(form) => match form.field("revoke") {
                Some(token) => self.revoke(request, &form, token, &here).await,
                None => self.log_in(request, &form, &place).await,
            },
        }
    }

    async fn revoke(
        &self,
        request: &PageRequest<'_>,
        form: &Form,
        token: &str,
        here: &str,
    ) -> Result<OwnResponse, PageError> {
        let sender = self.sender(request, form, FormPurpose::Revoke, token, here);
        let caller = sender.await?;
        let store = &self.services.store;
        // No form of ours names a token of another user; this holds even if one did.
        let token = store.access_token(token).await?;
        let token = token
            .filter(|token| token.user == caller.user.id)
            .ok_or(PageError::ApplicationUnknown)?;
        store.revoke_access_token(&token.token, request.now).await?;
        // It is rejected from now on, not only after the feed of changes was read.
        let changes = [Change::AccessToken(token.token.clone())];
        self.services.credentials.forget(&changes).await;
        tracing::info!(
            target: "audit",
            event = "token_revoked",
            consumer = %token.consumer,
            user = %caller.user.id,
            token = %RedactedToken(&token.token),
            address = %request.peer,
        );
        Ok(OwnResponse::see_other(format!("{here}&revoked=1")))
    }

    async fn list(
        &self,
        request: &PageRequest<'_>,
        here: &str,
        caller: &LoggedIn,
    ) -> Result<OwnResponse, PageError> {
        let broken = |_| PageError::Malformed("error-malformed-twice");
        let after = fields::parameter(request.query, "after").map_err(broken)?;
        let mut notice = None;
        for (done, text) in [
            ("revoked", "applications-withdrawn"),
            ("changed", "password-changed"),
        ] {
            let is_done = fields::parameter(request.query, done).map_err(broken)?;
            notice = notice.or(is_done.map(|_| text));
        }
        let (tokens, more) = self.live_tokens(caller, after, request.now).await?;
        let mut names = BTreeMap::new();
        let mut applications = Vec::with_capacity(tokens.len());
        for token in tokens {
            let name = match names.entry(token.consumer.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.consumer_name(&token.consumer).await?),
            };
            applications.push(self.application(caller, name.clone(), token));
        }
        let store = &self.services.store;
        let open = store.open_sessions(&caller.user.id, request.now).await?;
        let since = open.since.unwrap_or(request.now);
        let frame = self.frame(request);
        let template = view::ApplicationsPage {
            frame,
            action: here,
            user: &displayed(&caller.user),
            logout_action: &format!("{}?mode=logout", self.params.path),
            logout_csrf: &csrf::value(&caller.id, FormPurpose::LogOut, ""),
            everywhere_csrf: &csrf::value(&caller.id, FormPurpose::LogOutEverywhere, ""),
            open_sessions: open.count,
            oldest_session: shown(since),
            password: self.password_path(request),
            notice,
            applications: &applications,
            more: more.map(|last| format!("{here}&after={}", utf8_percent_encode(&last, ESCAPED))),
        };
        OwnResponse::html(frame, 200, &template)
    }

    /// The caller's tokens that still open something, and behind which token there may be more.
    async fn live_tokens(
        &self,
        caller: &LoggedIn,
        mut after: Option<String>,
        now: UnixTime,
    ) -> Result<(Vec<AccessToken>, Option<String>), PageError> {
        let filter = TokenFilter {
            unused_since: None,
            user: Some(caller.user.id.clone()),
            consumer: None,
        };
        let mut live = Vec::new();
        for _ in 0..BATCHES {
            let store = &self.services.store;
            let batch = store
                .access_tokens(&filter, after.as_deref(), BATCH)
                .await?;
            let is_last = u32::try_from(batch.len()).is_ok_and(|length| length < BATCH);
            for token in batch {
                if live.len() == SHOWN {
                    return Ok((live, after));
                }
                after = Some(token.token.clone());
                if self.is_live(&token, now) {
                    live.push(token);
                }
            }
            if is_last {
                return Ok((live, None));
            }
        }
        Ok((live, after))
    }

    fn is_live(&self, token: &AccessToken, now: UnixTime) -> bool {
        let last_use = token.last_used_at.unwrap_or_default().max(token.issued_at);
        let idle = self.params.access_idle;
        token.revoked_at.is_none()
            && token.expires_at.is_none_or(|expires_at| now < expires_at)
            && idle.is_none_or(|idle| now < last_use.after(idle))
    }

    async fn consumer_name(&self, key: &ConsumerKey) -> Result<String, PageError> {
        let consumer = self.services.store.consumer(key).await?;
        Ok(consumer.map_or_else(|| key.to_string(), |consumer| consumer.name))
    }

    fn application(
        &self,
        caller: &LoggedIn,
        name: String,
        token: AccessToken,
    ) -> view::ListedApplication {
        let permissions = token
            .permissions
            .iter()
            .map(|name| self.described(name).title);
        view::ListedApplication {
            csrf: csrf::value(&caller.id, FormPurpose::Revoke, &token.token),
            name,
            permissions: permissions.collect(),
            issued_at: shown(token.issued_at),
            last_used_at: token.last_used_at.map(shown),
            token: token.token,
        }
    }
}

/// A time as RFC 3339 has it, and its date alone, in UTC: `2026-01-31`.
fn shown(time: UnixTime) -> view::Shown {
    let text = time.to_string();
    let date = text.split('T').next().unwrap_or_default().to_owned();
    (text, date)
}
