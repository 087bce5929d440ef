//! `mode=auth_req_token`: a user decides about a request token (RFC 5849 §2.2).
//!
//! The steps: login form unless there is a session, consent form, redirect to the callback or a page with the
//! verifier. A request token that cannot be decided never leads to a redirect: its callback is not to be trusted then.

use std::time::Duration;

use percent_encoding::utf8_percent_encode;

use super::{
    AUTHORIZE_ALIAS, LoggedIn, OwnResponse, PageRequest, Pages, cookies,
    csrf::{self, FormPurpose},
    displayed,
    error::PageError,
    fields::{self, Form},
    guard::{Act, act},
    login::LoginPlace,
    view,
};
use crate::{
    issue::{
        callback::{self, ESCAPED},
        random,
    },
    language::Texts,
    names::Permission,
    secret::Secret,
    store::{
        port::{Decided, Decision},
        record::{Callback, Consumer, Dialect, RequestToken, RequestTokenState},
    },
    telemetry::redact::RedactedToken,
};

/// A longer one was never issued.
const MAX_TOKEN_BYTES: usize = 255;

/// A request token, and who asks.
struct Asked {
    token: RequestToken,
    consumer: Consumer,
}

impl Asked {
    /// A request token that waits for a decision.
    fn undecided(self) -> Result<Self, PageError> {
        if self.token.state == RequestTokenState::Issued {
            Ok(self)
        } else {
            Err(PageError::TokenUsed)
        }
    }
}

impl Pages {
    /// Answers the user authorization page.
    ///
    /// # Cancel safety
    ///
    /// A decision is recorded whole or not at all; one that is recorded after the browser went away cannot be repeated.
    pub async fn authorize(&self, request: PageRequest<'_>) -> OwnResponse {
        self.answer(&request, self.try_authorize(&request).await)
    }

    async fn try_authorize(&self, request: &PageRequest<'_>) -> Result<OwnResponse, PageError> {
        let act = act(request, &self.params.origin)?;
        let broken = PageError::Malformed("error-malformed-no-request");
        let Ok(Some(token)) = fields::parameter(request.query, "oauth_token") else {
            return Err(broken);
        };
        if token.is_empty() {
            return Err(broken);
        }
        let here = self.here(request, &token);
        match act {
            Act::Show => {
                let asked = self.found(&token, request).await?;
                if let RequestTokenState::Authorized { user, verifier, .. } = &asked.token.state {
                    return match self.user(request).await? {
                        Some(caller) if caller.id == *user => {
                            self.show_verifier(request, &asked, verifier)
                        }
                        _ => Err(PageError::TokenUsed),
                    };
                }
                let asked = asked.undecided()?;
                match self.logged_in(request).await? {
                    Some(caller) => {
                        let page = self.consent(request, &here, &token, &caller, &asked)?;
                        Ok(self.with_session(page, &caller))
                    }
                    None => self.show_login(request, &Self::place(&here, &asked)),
                }
            }
            Act::Submit(form)
                if form.field("decision").is_some() || form.field("switch").is_some() =>
            {
                // The form's own value comes first: a browser that does not have it learns nothing of the token.
                let sender = self.sender(request, &form, FormPurpose::Decide, &token, &here);
                let caller = sender.await?;
                if form.field("switch").is_some() {
                    return self.log_out(&caller, here, request).await;
                }
                let asked = self.found(&token, request).await?.undecided();
                let asked = asked.map_err(|_| PageError::StaleForm(here.clone()))?;
                self.decide(request, &form, &here, &caller, asked).await
            }
            Act::Submit(form) => {
                let asked = self.found(&token, request).await?.undecided()?;
                let place = Self::place(&here, &asked);
                self.log_in(request, &form, &place).await
            }
        }
    }

    /// The path and query by which the browser came, for the forms to come back to.
    fn here(&self, request: &PageRequest<'_>, token: &str) -> String {
        let token = utf8_percent_encode(token, ESCAPED);
        let path = if request.path == AUTHORIZE_ALIAS {
            format!("{AUTHORIZE_ALIAS}?oauth_token={token}")
        } else {
            format!(
                "{}?mode=auth_req_token&oauth_token={token}",
                self.params.path
            )
        };
        self.in_same_language(request, path)
    }

    fn place<'a>(here: &'a str, asked: &'a Asked) -> LoginPlace<'a> {
        LoginPlace {
            consumer: Some(&asked.consumer.name),
            ..LoginPlace::of(here)
        }
    }

    /// Finds what is to be decided or was decided.
    async fn found(&self, token: &str, request: &PageRequest<'_>) -> Result<Asked, PageError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(PageError::TokenUnknown);
        }
        let store = &self.services.store;
        let token = store.request_token(token).await?;
        let token = token.ok_or(PageError::TokenUnknown)?;
        let consumer = store.consumer(&token.consumer).await?;
        let consumer = consumer.ok_or(PageError::TokenUnknown)?;
        if token.state == RequestTokenState::Voided {
            return Err(PageError::TokenUnknown);
        }
        if request.now >= token.expires_at {
            return Err(PageError::TokenExpired);
        }
        if !consumer.enabled {
            return Err(PageError::ConsumerDisabled);
        }
        // The registration may have changed since the token was given out; what counts is what it is now.
        let sent: &[u8] = match &token.callback {
            Callback::Oob => callback::OOB.as_bytes(),
            Callback::Uri(uri) => uri.as_bytes(),
        };
        callback::accept(&consumer.callbacks, sent).map_err(|_| PageError::CallbackRefused)?;
        Ok(Asked { token, consumer })
    }

    fn consent(
        &self,
        request: &PageRequest<'_>,
        here: &str,
        token: &str,
        caller: &LoggedIn,
        asked: &Asked,
    ) -> Result<OwnResponse, PageError> {
        let permissions = asked.token.permissions.iter();
        let permissions: Vec<_> = permissions.map(|it| self.described(it)).collect();
        // Browsers hold `form-action` against every redirect that follows the form, the callback's own to other hosts
        // included: naming the callback's host would break consumers that send the user on. Its scheme is named.
        let (destination, further) = match &asked.token.callback {
            Callback::Oob => (None, String::new()),
            Callback::Uri(uri) => {
                let destination = callback::destination(uri).ok_or(PageError::CallbackRefused)?;
                let further = format!(" {}:", destination.scheme);
                (Some(destination), further)
            }
        };
        let frame = self.frame(request);
        let template = view::ConsentPage {
            frame,
            applications: &self.applications_path(request),
            action: here,
            csrf: &csrf::value(&caller.id, FormPurpose::Decide, token),
            consumer: &asked.consumer.name,
            description: asked.consumer.description.as_deref(),
            website: asked.consumer.website.as_deref(),
            user: &displayed(&caller.user),
            permissions: &permissions,
            destination,
        };
        OwnResponse::with_forms_to(frame, 200, &template, &further)
    }

    async fn decide(
        &self,
        request: &PageRequest<'_>,
        form: &Form,
        here: &str,
        caller: &LoggedIn,
        asked: Asked,
    ) -> Result<OwnResponse, PageError> {
        let is_oob = asked.token.callback == Callback::Oob;
        let decision = match form.field("decision") {
            Some("allow") => {
                let dialect = asked
                    .consumer
                    .dialect
                    .unwrap_or(self.params.default_dialect);
                let is_renamed = dialect == Dialect::Legacy && !is_oob;
                Decision::Allow {
                    verifier: if is_oob {
                        random::oob_verifier()?
                    } else {
                        random::verifier()?
                    },
                    redirect_token: is_renamed.then(random::token).transpose()?,
                    expires_at: request.now.after(self.params.request_ttl),
                }
            }
            Some("deny") => Decision::Deny,
            _ => {
                return Err(PageError::Malformed("error-malformed-decision"));
            }
        };
        let (token, session) = (&asked.token.token, cookies::id_hash(&caller.id));
        let store = &self.services.store;
        let deciding = store.decide(token, &session, decision.clone(), request.now);
        match deciding.await? {
            Decided::Recorded => {}
            Decided::AlreadyDecided => return Err(PageError::StaleForm(here.to_owned())),
            Decided::Expired => return Err(PageError::TokenExpired),
            Decided::Unknown => return Err(PageError::TokenUnknown),
        }
        audit_decision(request, &asked, caller, &decision);
        self.lead_on(request, &asked, &decision, here)
    }

    /// Sends the user on to the consumer after the decision was recorded. Browsers follow the redirect and do not show the
    /// page in it; others do ("a short hypertext note with a hyperlink to the same URI", RFC 9110 §15.4.4).
    fn lead_on(
        &self,
        request: &PageRequest<'_>,
        asked: &Asked,
        decision: &Decision,
        here: &str,
    ) -> Result<OwnResponse, PageError> {
        let token = asked.token.token.as_str();
        let (title, next) = match (&asked.token.callback, decision) {
            (
                Callback::Uri(uri),
                Decision::Allow {
                    verifier,
                    redirect_token,
                    ..
                },
            ) => {
                let token = redirect_token.as_deref().unwrap_or(token);
                let parameters = [
                    ("oauth_token", token),
                    ("oauth_verifier", &verifier.expose_text()),
                ];
                ("verifier-title", Some(callback::redirect(uri, &parameters)))
            }
            (Callback::Uri(uri), Decision::Deny) => {
                let parameters = [
                    ("oauth_token", token),
                    ("oauth_problem", "permission_denied"),
                    ("denied", token),
                ];
                ("denied-title", Some(callback::redirect(uri, &parameters)))
            }
            // The page comes by GET, so that it can be loaded again.
            (Callback::Oob, Decision::Allow { .. }) => {
                return Ok(OwnResponse::see_other(here.to_owned()));
            }
            (Callback::Oob, Decision::Deny) => ("denied-title", None),
        };
        let frame = self.frame(request);
        let template = view::DecidedPage {
            frame,
            applications: &self.applications_path(request),
            consumer: &asked.consumer.name,
            title,
            next: next.as_deref(),
        };
        let mut page = OwnResponse::html(frame, if next.is_some() { 303 } else { 200 }, &template)?;
        if let Some(next) = next {
            page.set("Location", next);
        }
        Ok(page)
    }

    /// Shows an out-of-band verifier, as long as it can be used, to the user who agreed.
    fn show_verifier(
        &self,
        request: &PageRequest<'_>,
        asked: &Asked,
        verifier: &Secret,
    ) -> Result<OwnResponse, PageError> {
        if asked.token.callback != Callback::Oob {
            return Err(PageError::TokenUsed);
        }
        let left = asked.token.expires_at.0.saturating_sub(request.now.0);
        // Whole minutes, but for the last.
        let left = if left > 60 {
            left.next_multiple_of(60)
        } else {
            left
        };
        let frame = self.frame(request);
        let template = view::VerifierPage {
            frame,
            applications: &self.applications_path(request),
            consumer: &asked.consumer.name,
            verifier: &random::shown(verifier),
            lifetime: &in_words(frame.texts, Duration::from_secs(left)),
        };
        OwnResponse::html(frame, 200, &template)
    }
}

fn audit_decision(
    request: &PageRequest<'_>,
    asked: &Asked,
    caller: &LoggedIn,
    decision: &Decision,
) {
    let event = match decision {
        Decision::Allow { .. } => "consent_granted",
        Decision::Deny => "consent_denied",
    };
    let permissions = asked.token.permissions.iter().map(Permission::as_str);
    tracing::info!(
        target: "audit",
        event,
        consumer = %asked.consumer.key,
        user = %caller.user.id,
        token = %RedactedToken(&asked.token.token),
        permissions = Vec::from_iter(permissions).join(" "),
        address = %request.peer,
    );
}

/// A duration in the largest unit that says it whole: `10 minutes`.
pub(super) fn in_words(texts: Texts<'_>, duration: Duration) -> String {
    match duration.as_secs().max(1) {
        hours if hours % 3600 == 0 => texts.counted("duration-hours", hours / 3600),
        minutes if minutes % 60 == 0 => texts.counted("duration-minutes", minutes / 60),
        seconds => texts.counted("duration-seconds", seconds),
    }
}
