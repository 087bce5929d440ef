//! `mode=auth_req_token`: a user decides about a request token (RFC 5849 §2.2).
//!
//! The steps: login form unless there is a session, consent form, redirect to the callback or a page with the
//! verifier. A request token that cannot be decided never leads to a redirect, because its callback is then not trusted.

use std::time::Duration;

use askama::Template;
use percent_encoding::utf8_percent_encode;

use super::{
    LoggedIn, PageError, PermissionText, Visit, cookies,
    csrf::{self, FormPurpose},
    login::LoginForm,
};
use crate::{
    issue::{
        callback::{self, Destination, ESCAPED},
        random,
        registration::MAX_TOKEN_BYTES,
    },
    language::Texts,
    names::Permission,
    respond::{Failure, OwnResponse, look::Frame},
    secret::Secret,
    store::{
        port::{Decided, Decision},
        record::{Callback, Consumer, Dialect, RequestToken, RequestTokenState, User},
    },
    telemetry::redact::RedactedToken,
};

/// The alias of this page, if `service.aliases` is on.
const ALIAS: &str = "/oauth/authorize";

/// A request token, and the consumer that asks.
struct Asked {
    token: RequestToken,
    consumer: Consumer,
}

#[derive(Template)]
#[template(path = "consent.html")]
struct ConsentPage<'a> {
    frame: Frame<'a>,
    action: &'a str,
    csrf: &'a str,
    consumer: &'a Consumer,
    user: &'a User,
    permissions: &'a [PermissionText],
    /// Where the decision leads: to a web site or to an application on the user's device; `None`: to a page with the
    /// verifier.
    destination: Option<Destination>,
}

#[derive(Template)]
#[template(path = "verifier.html")]
struct VerifierPage<'a> {
    frame: Frame<'a>,
    consumer: &'a str,
    verifier: &'a str,
    lifetime: &'a str,
}

#[derive(Template)]
#[template(path = "decided.html")]
struct DecidedPage<'a> {
    frame: Frame<'a>,
    consumer: &'a str,
    /// The message that says what was decided.
    title: &'static str,
    /// Where the page leads.
    next: Option<&'a str>,
}

impl Visit<'_> {
    /// Responds to the user authorization page.
    pub(super) async fn authorize(&self) -> Result<OwnResponse, Failure> {
        let token = self.parameter("oauth_token");
        let token = token.ok().flatten().filter(|token| !token.is_empty());
        let token = token.ok_or(PageError::Malformed("error-malformed-no-request"))?;
        let here = self.here(&token);
        let (decision, switch) = (self.field("decision"), self.field("switch"));
        if self.form.is_none() {
            return self.show(&here, &token).await;
        }
        if decision.is_none() && switch.is_none() {
            let asked = self.found(&token).await?.undecided()?;
            return self.log_in(&asked.login(&here)).await;
        }
        // The form's own value comes first: a browser that does not have it learns nothing of the token.
        let caller = self.sender(FormPurpose::Decide, &token, &here).await?;
        match decision {
            _ if switch.is_some() => self.log_out(&caller, here).await,
            Some("allow") => self.decide(&here, &caller, &token, true).await,
            Some("deny") => self.decide(&here, &caller, &token, false).await,
            _ => Err(PageError::Malformed("error-malformed-decision").into()),
        }
    }

    /// The path and query by which the browser came, for the forms to come back to.
    fn here(&self, token: &str) -> String {
        let token = utf8_percent_encode(token, ESCAPED);
        if self.head.target.path == ALIAS.as_bytes() {
            let path = format!("{ALIAS}?oauth_token={token}");
            self.frame.in_same_language(path)
        } else {
            format!("{}&oauth_token={token}", self.frame.link("auth_req_token"))
        }
    }

    /// Shows what there is to decide, or what the user has decided.
    async fn show(&self, here: &str, token: &str) -> Result<OwnResponse, Failure> {
        let asked = self.found(token).await?;
        if let RequestTokenState::Authorized { user, .. } = &asked.token.state {
            let caller = self.user().await?;
            if caller.is_none_or(|caller| caller.id != *user) {
                return Err(PageError::TokenUsed.into());
            }
            return Ok(self.decided(&asked)?);
        }
        let asked = asked.undecided()?;
        match self.logged_in().await? {
            Some(caller) => Ok(self.consent(here, &caller, &asked)?),
            None => self.login_form(&asked.login(here), "", None),
        }
    }

    /// Finds what is to be decided or was decided.
    async fn found(&self, token: &str) -> Result<Asked, Failure> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(PageError::TokenUnknown.into());
        }
        let token = self.store().request_token(token).await?;
        let token = token.filter(|token| token.state != RequestTokenState::Voided);
        let token = token.ok_or(PageError::TokenUnknown)?;
        let consumer = self.store().consumer(&token.consumer).await?;
        let consumer = consumer.ok_or(PageError::TokenUnknown)?;
        if self.now >= token.expires_at {
            return Err(PageError::TokenExpired.into());
        }
        if !consumer.enabled {
            return Err(PageError::ConsumerDisabled.into());
        }
        // The registration may have changed since the token was issued; the present one counts.
        let sent = match &token.callback {
            Callback::Oob => callback::OOB,
            Callback::Uri(uri) => uri,
        };
        callback::accept(&consumer.callbacks, sent.as_bytes())
            .map_err(|_| PageError::CallbackRefused)?;
        Ok(Asked { token, consumer })
    }

    fn consent(
        &self,
        here: &str,
        caller: &LoggedIn,
        asked: &Asked,
    ) -> Result<OwnResponse, PageError> {
        let permissions = asked.token.permissions.iter();
        let permissions: Vec<_> = permissions.map(|it| self.pages.described(it)).collect();
        // Browsers check `form-action` against every redirect that follows the form, also those of the callback to other
        // hosts. The callback's host alone would break consumers that send the user on, so its scheme is named.
        let (destination, further) = match &asked.token.callback {
            Callback::Oob => (None, String::new()),
            Callback::Uri(uri) => {
                let destination = callback::destination(uri).ok_or(PageError::CallbackRefused)?;
                let further = format!(" {}:", destination.scheme);
                (Some(destination), further)
            }
        };
        let template = ConsentPage {
            frame: self.frame,
            action: here,
            csrf: &csrf::value(&caller.id, FormPurpose::Decide, &asked.token.token),
            consumer: &asked.consumer,
            user: &caller.user,
            permissions: &permissions,
            destination,
        };
        Ok(OwnResponse::page(self.frame, 200, &template, &further))
    }

    /// Records the decision and sends the user on. The same decision sent again gets the same response.
    async fn decide(
        &self,
        here: &str,
        caller: &LoggedIn,
        token: &str,
        allows: bool,
    ) -> Result<OwnResponse, Failure> {
        let mut asked = self.found(token).await?;
        if asked.token.state == RequestTokenState::Issued {
            self.record(&asked, caller, allows).await?;
            asked = self.found(token).await?;
        }
        match &asked.token.state {
            RequestTokenState::Authorized { user, .. } if allows && *user == caller.user.id => {}
            RequestTokenState::Denied if !allows => {}
            _ => return Err(PageError::AlreadyDecided.into()),
        }
        if allows && asked.token.callback == Callback::Oob {
            // The page with the verifier comes by GET, so that it can be loaded again.
            return Ok(OwnResponse::see_other(here.to_owned()));
        }
        let mut page = self.decided(&asked)?;
        if let Some(next) = asked.next() {
            page.status = 303;
            page = page.field("Location", next);
        }
        Ok(page)
    }

    /// Records a decision, unless one was recorded in the meantime.
    async fn record(&self, asked: &Asked, caller: &LoggedIn, allows: bool) -> Result<(), Failure> {
        let is_oob = asked.token.callback == Callback::Oob;
        let dialect = asked.consumer.dialect;
        let dialect = dialect.unwrap_or(self.pages.params.default_dialect);
        let is_renamed = dialect == Dialect::Legacy && !is_oob;
        let (event, decision) = if allows {
            let decision = Decision::Allow {
                verifier: match is_oob {
                    true => random::oob_verifier()?,
                    false => random::verifier()?,
                },
                redirect_token: is_renamed.then(random::token).transpose()?,
                expires_at: self.now.after(self.pages.params.request_ttl),
            };
            ("consent_granted", decision)
        } else {
            ("consent_denied", Decision::Deny)
        };
        let (token, session) = (&asked.token.token, cookies::id_hash(&caller.id));
        let deciding = self.store().decide(token, &session, decision, self.now);
        match deciding.await? {
            Decided::Recorded => {}
            Decided::AlreadyDecided => return Ok(()),
            Decided::Expired => return Err(PageError::TokenExpired.into()),
            Decided::Unknown => return Err(PageError::TokenUnknown.into()),
        }
        let permissions = asked.token.permissions.iter().map(Permission::as_str);
        tracing::info!(
            target: "audit",
            event,
            consumer = %asked.consumer.key,
            user = %caller.user.id,
            token = %RedactedToken(token),
            permissions = Vec::from_iter(permissions).join(" "),
            address = %self.address,
        );
        Ok(())
    }

    /// The page about a decision. Browsers follow a redirect and do not show the page in it; others do ("a short hypertext
    /// note with a hyperlink to the same URI", RFC 9110 §15.4.4).
    fn decided(&self, asked: &Asked) -> Result<OwnResponse, PageError> {
        let title = match (&asked.token.callback, &asked.token.state) {
            (Callback::Oob, RequestTokenState::Authorized { verifier, .. }) => {
                return Ok(self.verifier_page(asked, verifier));
            }
            (_, RequestTokenState::Authorized { .. }) => "verifier-title",
            (_, RequestTokenState::Denied) => "denied-title",
            _ => return Err(PageError::TokenUsed),
        };
        Ok(self.page(&DecidedPage {
            frame: self.frame,
            consumer: &asked.consumer.name,
            title,
            next: asked.next().as_deref(),
        }))
    }

    fn verifier_page(&self, asked: &Asked, verifier: &Secret) -> OwnResponse {
        // Whole minutes, but for the last.
        let left = match asked.token.expires_at.0.saturating_sub(self.now.0) {
            left @ 0..=60 => left,
            more => more.next_multiple_of(60),
        };
        self.page(&VerifierPage {
            frame: self.frame,
            consumer: &asked.consumer.name,
            verifier: &random::shown(verifier),
            lifetime: &in_words(self.frame.texts, Duration::from_secs(left)),
        })
    }
}

impl Asked {
    fn undecided(self) -> Result<Self, PageError> {
        match self.token.state {
            RequestTokenState::Issued => Ok(self),
            _ => Err(PageError::TokenUsed),
        }
    }

    /// The login form that leads back to `here`.
    fn login<'a>(&'a self, here: &'a str) -> LoginForm<'a> {
        LoginForm {
            consumer: Some(&self.consumer.name),
            ..LoginForm::of(here)
        }
    }

    /// The callback with the user's decision; `None` out of band.
    fn next(&self) -> Option<String> {
        let Callback::Uri(uri) = &self.token.callback else {
            return None;
        };
        let token = self.token.token.as_str();
        match &self.token.state {
            RequestTokenState::Authorized {
                verifier,
                redirect_token,
                ..
            } => {
                let token = redirect_token.as_deref().unwrap_or(token);
                let verifier = verifier.expose_text();
                let parameters = [("oauth_token", token), ("oauth_verifier", &verifier)];
                Some(callback::redirect(uri, &parameters))
            }
            RequestTokenState::Denied => {
                let problem = ("oauth_problem", "permission_denied");
                let parameters = [("oauth_token", token), problem, ("denied", token)];
                Some(callback::redirect(uri, &parameters))
            }
            _ => None,
        }
    }
}

/// A duration in the largest unit that divides it: `10 minutes`.
pub(super) fn in_words(texts: Texts<'_>, duration: Duration) -> String {
    match duration.as_secs().max(1) {
        hours if hours % 3600 == 0 => texts.counted("duration-hours", hours / 3600),
        minutes if minutes % 60 == 0 => texts.counted("duration-minutes", minutes / 60),
        seconds => texts.counted("duration-seconds", seconds),
    }
}
