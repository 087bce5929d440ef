//! `mode=auth_req_token`: a user decides about a request token (RFC 5849 §2.2).
//!
//! The steps: login form unless there is a session, consent form, redirect to the callback or a page with the
//! verifier. A request token that cannot be decided never leads to a redirect, because its callback is then not trusted.

pub(super) mod preview;

use std::{borrow::Cow, time::Duration};

use askama::Template;
use zeroize::Zeroizing;

use super::{
    LoggedIn, PageError, PageRequest, Worded, Wording, browser,
    login::LoginForm,
    settings::{DEMANDS, Remember},
};
use crate::{
    base::{
        language::{self, MessagePart},
        secret::random,
        text::{
            longest,
            names::{ConsumerKey, Permission},
            percent_encoded,
        },
    },
    oauth::ProtocolParameter,
    provider::{
        issue::callback::{self, Destination},
        pages::{
            browser::cookies,
            form::csrf::{self, FormPurpose},
        },
        respond::{Failure, OwnResponse, duration::in_words},
        theme::frame::Frame,
    },
    records::values::{
        record::{
            AccessToken, Callback, Consumer, Dialect, RequestToken, RequestTokenState,
            TokenBeginning, User,
        },
        use_cases::{ConsentDecision, Decided, Earlier},
    },
    telemetry::redact::RedactedToken,
};

/// What is decided about a request token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// The user allows it.
    Allow,
    /// The user denies it.
    Deny,
    /// The user is not asked, because they allowed the same before.
    Repeat,
}

/// The notice after a denial.
const DENIED: &str = "denied-text";

/// A request token, and the consumer that asks.
struct Asked {
    token: RequestToken,
    consumer: Consumer,
}

#[derive(Template)]
#[template(path = "consent.html")]
pub(super) struct ConsentPage<'a> {
    frame: Frame<'a>,
    /// The target of the forms and the value in them; `None`: there are no forms.
    form: Option<(&'a str, String)>,
    consumer: &'a Consumer,
    user: &'a User,
    /// The date on which the user first allowed the access that the consumer has now.
    allowed_at: Option<String>,
    /// The number of facts and permissions that are new.
    more: u64,
    /// The number of permissions that are sensitive.
    sensitive: u64,
    /// The message about the facts that the consumer learns of the user.
    identity: &'static str,
    /// The user allowed the consumer something earlier, and it has not learnt all of these facts.
    identity_is_new: bool,
    permissions: Vec<AskedPermission>,
    /// The description of the consumer.
    description: Option<Worded>,
    /// The date of its registration.
    since: String,
    /// The sentence about the end of access.
    holds: Vec<MessagePart>,
    /// The sentence about its end without use.
    ends_unused: Option<String>,
    /// The digest of the consumer, for a user who is not asked again.
    shown: Option<String>,
    /// The target of the decision: a web site or an application on the user's device; `None`: a page with the verifier.
    destination: Option<Destination>,
}

/// A permission that is asked for.
struct AskedPermission {
    title: Worded,
    description: Worded,
    is_sensitive: bool,
    /// The user allowed the consumer something earlier, and not this.
    is_new: bool,
}

#[derive(Template)]
#[template(path = "decided.html")]
struct DecidedPage<'a> {
    frame: Frame<'a>,
    consumer: &'a str,
    /// The message about the decision.
    title: &'static str,
    /// The access that a denial leaves.
    still: Option<RemainingAccess>,
    /// Out of band: the verifier, and the time for which it can be used.
    verifier: Option<(Zeroizing<String>, String)>,
    /// The target of the link on the page, and its host if it leads to a web site.
    next: Option<&'a str>,
    site: Option<String>,
    /// The message below the title, if there is neither a code nor a link.
    text: &'static str,
}

/// The access of a consumer that a denial does not end.
struct RemainingAccess {
    /// The message about the time and the way in which it came to be.
    allowed: &'static str,
    date: String,
    csrf: String,
    consumer: String,
}

impl PageRequest<'_> {
    /// Responds to the user authorization page.
    pub(super) async fn authorize(&self) -> Result<OwnResponse, Failure> {
        let token = self.page_parameter(ProtocolParameter::Token)?;
        let token = token.filter(|token| !token.is_empty());
        let token = token.ok_or(PageError::Malformed("error-malformed-no-request"))?;
        let here = self.here(&token)?;
        let (decision, switch) = (self.field("decision"), self.field("switch"));
        if self.form.is_none() {
            return self.show(&here, &token).await;
        }
        if decision.is_none() && switch.is_none() {
            let asked = self.found(&token).await?.undecided()?;
            return self.log_in(&self.login_for(&asked, &here)).await;
        }
        // The form's own value comes first: a browser that does not have it learns nothing of the token.
        let caller = self.sender(FormPurpose::Decide, &token, &here).await?;
        match decision {
            _ if switch.is_some() => self.log_out(&caller, here).await,
            Some("allow") => self.decide(&caller, &token, Choice::Allow).await,
            Some("deny") => self.decide(&caller, &token, Choice::Deny).await,
            _ => Err(PageError::Malformed("error-malformed-decision").into()),
        }
    }

    /// The path and query by which the browser came, for the forms to come back to.
    fn here(&self, token: &str) -> Result<String, PageError> {
        let token = percent_encoded(token);
        let mut here = match self.path {
            Some(path) => {
                let separator = if path.has_query() { '&' } else { '?' };
                let path = format!("{path}{separator}oauth_token={token}");
                self.frame.in_same_language(path)
            }
            None => format!("{}&oauth_token={token}", self.frame.link("auth_req_token")),
        };
        for (name, value) in self.scope()?.into_iter().chain(self.demands()?) {
            let value = percent_encoded(&value);
            here.push_str(&format!("&{name}={value}"));
        }
        Ok(here)
    }

    /// The parameters of the address by which the consumer demands that the user is asked, if it matters.
    fn demands(&self) -> Result<Vec<(&'static str, String)>, PageError> {
        let mut demands = Vec::new();
        if self.pages.rules.consent.remember == Remember::Same {
            for (name, unless) in DEMANDS {
                let value = self.parameter(name)?.filter(|value| value != unless);
                demands.extend(value.map(|value| (name, value)));
            }
        }
        Ok(demands)
    }

    /// The parameter of the address that names permissions.
    fn scope(&self) -> Result<Option<(&str, String)>, PageError> {
        let mut scope = None;
        for name in self.pages.rules.scope.names() {
            if let Some(value) = self.parameter(name)?
                && scope.replace((name, value)).is_some()
            {
                return Err(PageError::Malformed("error-malformed-twice"));
            }
        }
        Ok(scope)
    }

    /// Shows the request for a decision, or the user's decision.
    async fn show(&self, here: &str, token: &str) -> Result<OwnResponse, Failure> {
        let asked = self.found(token).await?;
        if let RequestTokenState::Authorized { user, .. } = &asked.token.state {
            let caller = self.user().await?;
            if caller.is_none_or(|caller| caller.id != *user) {
                return Err(PageError::TokenUsed.about(&asked.consumer));
            }
            return self.decided(&asked, None).await;
        }
        if asked.token.state == RequestTokenState::Denied
            && let Some(caller) = self.logged_in().await?
            && let Some((DENIED, denied)) = self.proven_notice(&caller.id)?
            && denied == token
        {
            return self.decided(&asked, Some(&caller)).await;
        }
        if asked.token.state == RequestTokenState::Exchanged
            && asked.token.callback == Callback::Oob
        {
            return self.decided(&asked, None).await;
        }
        let asked = asked.undecided()?;
        match self.logged_in().await? {
            Some(caller) => self.consent(here, &caller, &asked).await,
            None => self.login_form(&self.login_for(&asked, here), "", None),
        }
    }

    /// The login form that leads back to `here`, and from there to the callback if the user is not asked. Browsers check
    /// `form-action` against that redirect too.
    fn login_for<'a>(&self, asked: &'a Asked, here: &'a str) -> LoginForm<'a> {
        let Asked { token, consumer } = asked;
        let words = self.wording();
        let is_remembered = words.is_remembered(consumer, &token.callback, &token.permissions);
        LoginForm {
            consumer: Some(&consumer.name),
            further: if is_remembered { " https:" } else { "" },
            ..LoginForm::leading_back_to(here)
        }
    }

    /// Finds the request token and its consumer.
    async fn found(&self, token: &str) -> Result<Asked, Failure> {
        if token.len() > longest::TOKEN {
            return Err(PageError::TokenUnknown.into());
        }
        let token = self.store().request_token(token).await?;
        let token = token.filter(|token| token.state != RequestTokenState::Voided);
        let mut token = token.ok_or(PageError::TokenUnknown)?;
        let named = self.page_parameter(ProtocolParameter::ConsumerKey)?;
        if named.is_some_and(|named| named != token.consumer.as_str()) {
            return Err(PageError::TokenUnknown.into());
        }
        let consumer = self.store().consumer(&token.consumer).await?;
        let consumer = consumer.ok_or(PageError::TokenUnknown)?;
        if self.now >= token.expires_at {
            return Err(PageError::TokenExpired.about(&consumer));
        }
        if !consumer.enabled {
            return Err(PageError::ConsumerDisabled.about(&consumer));
        }
        if let Some(sunset) = &self.pages.rules.sunset
            && sunset.check_grant(consumer.key.as_str()).is_err()
        {
            return Err(PageError::GrantsEnded.about(&consumer));
        }
        // The registration may have changed since the token was issued; the present one counts. The request may come from
        // somebody other than the consumer, so the error does not name it.
        let sent = match &token.callback {
            Callback::Oob => callback::OOB,
            Callback::Uri(uri) => uri,
        };
        callback::accept(&consumer.callbacks, sent.as_bytes())
            .map_err(|_| PageError::CallbackRefused)?;
        if let Some((_, scope)) = self.scope()? {
            let none = std::iter::empty();
            let rules = &self.pages.rules.scope;
            let narrowed = rules.narrow(&token.permissions, none, Some(scope.as_bytes()));
            let unknown = PageError::Malformed("error-malformed-permission");
            token.permissions = narrowed.map_err(|_| unknown.about(&consumer))?;
        }
        Ok(Asked { token, consumer })
    }

    async fn consent(
        &self,
        here: &str,
        caller: &LoggedIn,
        asked: &Asked,
    ) -> Result<OwnResponse, Failure> {
        let Asked { token, consumer } = asked;
        // What the operator issued or imported, the user was not asked for.
        let mut earlier = self.live_tokens_of(&caller.user, &consumer.key).await?;
        earlier.retain(|token| token.began == TokenBeginning::Consent);
        if let Some(response) = self.repeat(caller, asked, &earlier).await? {
            return Ok(response);
        }
        let csrf = csrf::value(&caller.id, FormPurpose::Decide, &token.token);
        let asking = Asking {
            consumer,
            user: &caller.user,
            permissions: &token.permissions,
            callback: &token.callback,
            earlier: &earlier,
        };
        let (template, further) = asking.page(self.wording(), Some((here, csrf)))?;
        Ok(OwnResponse::page(self.frame, 200, &template, &further))
    }

    /// Sends the user on without the question, if they allowed the same before and the browser goes to this page: a frame, a
    /// picture, a script and a prefetch decide nothing. `None`: the user has to be asked.
    async fn repeat(
        &self,
        caller: &LoggedIn,
        asked: &Asked,
        earlier: &[AccessToken],
    ) -> Result<Option<OwnResponse>, Failure> {
        let Asked { token, consumer } = asked;
        let words = self.wording();
        let has_all = |held: &AccessToken| {
            let mut wanted = token.permissions.iter();
            wanted.all(|it| held.permissions.contains(it))
        };
        // The store decides; this only saves the users who are asked anyway a change of the store.
        if !words.is_remembered(consumer, &token.callback, &token.permissions)
            || !earlier.iter().any(has_all)
            || !self.demands()?.is_empty()
            || !browser::goes_to(self.head.parts)
            || !self.record(asked, caller, Choice::Repeat).await?
        {
            return Ok(None);
        }
        let response = self.after_decision(caller, &token.token, true);
        response.await.map(Some)
    }

    /// Records the decision and sends the user on. The same decision sent again gets the same response.
    async fn decide(
        &self,
        caller: &LoggedIn,
        token: &str,
        choice: Choice,
    ) -> Result<OwnResponse, Failure> {
        let asked = self.found(token).await?;
        if asked.token.state == RequestTokenState::Issued {
            self.record(&asked, caller, choice).await?;
        }
        let allows = choice == Choice::Allow;
        self.after_decision(caller, token, allows).await
    }

    /// Sends the user on after their decision.
    async fn after_decision(
        &self,
        caller: &LoggedIn,
        token: &str,
        allows: bool,
    ) -> Result<OwnResponse, Failure> {
        let asked = self.found(token).await?;
        match &asked.token.state {
            RequestTokenState::Authorized { user, .. } if allows && *user == caller.user.id => {}
            RequestTokenState::Denied if !allows => {}
            _ => return Err(PageError::AlreadyDecided.about(&asked.consumer)),
        }
        if asked.token.callback == Callback::Oob {
            // The page comes by GET, so that it can be loaded again. That of a denial shows nothing of the token.
            let notice = match allows {
                true => String::new(),
                false => self.notice_parameters(&caller.id, DENIED, token),
            };
            return Ok(OwnResponse::see_other(self.here(token)? + &notice));
        }
        let mut page = self.decided(&asked, Some(caller)).await?;
        if let Some(next) = asked.next() {
            page.status = 303;
            page = page.field("Location", next);
        }
        Ok(page)
    }

    /// Records a decision, unless one was recorded in the meantime; `false`: the user has to be asked.
    async fn record(
        &self,
        asked: &Asked,
        caller: &LoggedIn,
        choice: Choice,
    ) -> Result<bool, Failure> {
        let rules = &self.pages.rules;
        let is_oob = asked.token.callback == Callback::Oob;
        let dialect = asked.consumer.dialect;
        let dialect = dialect.unwrap_or(rules.default_dialect);
        let is_renamed = dialect == Dialect::Legacy && !is_oob;
        let shown = Some(asked.consumer.shown());
        let (event, shown) = match choice {
            // The form says what the user saw: if the consumer has changed since, they are asked the next time.
            Choice::Allow => (
                "consent_granted",
                shown.filter(|shown| self.field("shown") == Some(shown)),
            ),
            Choice::Repeat => ("consent_repeated", shown),
            Choice::Deny => ("consent_denied", None),
        };
        let decision = match choice {
            Choice::Deny => ConsentDecision::Deny,
            _ => ConsentDecision::Allow {
                permissions: asked.token.permissions.clone(),
                shown,
                earlier: (choice == Choice::Repeat).then(|| Earlier {
                    used_after: rules.tokens.access_idle.0.map(|idle| self.now.before(idle)),
                    with_display_name: rules.gives_display_name,
                }),
                verifier: match is_oob {
                    true => random::oob_verifier()?,
                    false => random::verifier()?,
                },
                redirect_token: is_renamed.then(random::token).transpose()?,
                expires_at: self.now.after(rules.tokens.request_ttl),
            },
        };
        let (token, session) = (&asked.token.token, cookies::id_hash(&caller.id));
        let deciding = self
            .store()
            .record_decision(token, &session, decision, self.now);
        match deciding.await? {
            Decided::Recorded => {}
            Decided::AlreadyDecided => return Ok(true),
            Decided::NotAllowedBefore => return Ok(false),
            Decided::Expired => return Err(PageError::TokenExpired.about(&asked.consumer)),
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
        Ok(true)
    }

    /// The access that a consumer keeps although the user has denied it more: when and how its newest token came to be, and the
    /// form that ends it.
    async fn remaining(
        &self,
        caller: &LoggedIn,
        consumer: &Consumer,
    ) -> Result<Option<RemainingAccess>, Failure> {
        let tokens = self.live_tokens_of(&caller.user, &consumer.key).await?;
        let newest = tokens.iter().max_by_key(|token| token.issued_at);
        Ok(newest.map(|token| RemainingAccess {
            allowed: beginning(token.began),
            date: self.wording().date(token.issued_at),
            csrf: csrf::value(&caller.id, FormPurpose::Revoke, consumer.key.as_str()),
            consumer: consumer.key.to_string(),
        }))
    }

    /// The page about a decision. Browsers follow a redirect and do not show the page in it; others do ("a short hypertext
    /// note with a hyperlink to the same URI", RFC 9110 §15.4.4).
    async fn decided(
        &self,
        asked: &Asked,
        caller: Option<&LoggedIn>,
    ) -> Result<OwnResponse, Failure> {
        let token = &asked.token;
        let still = match (&token.state, caller) {
            (RequestTokenState::Denied, Some(caller)) => {
                self.remaining(caller, &asked.consumer).await?
            }
            _ => None,
        };
        let (title, verifier) = match &token.state {
            RequestTokenState::Authorized { verifier, .. } => ("verifier-title", Some(verifier)),
            RequestTokenState::Denied => ("denied-title", None),
            RequestTokenState::Exchanged => ("verifier-taken", None),
            _ => return Err(PageError::TokenUsed.about(&asked.consumer)),
        };
        // Whole minutes, but for the last.
        let remaining = match token.expires_at.0.saturating_sub(self.now.0) {
            seconds @ 0..=60 => seconds,
            more => more.next_multiple_of(60),
        };
        let lifetime = in_words(self.frame.texts, Duration::from_secs(remaining));
        let verifier = verifier.filter(|_| token.callback == Callback::Oob);
        Ok(self.page(&DecidedPage {
            frame: self.frame,
            consumer: &asked.consumer.name,
            title,
            verifier: verifier.map(|verifier| (random::in_groups(verifier), lifetime)),
            still,
            next: asked.next().as_deref(),
            site: match &token.callback {
                Callback::Uri(uri) => callback::destination(uri).and_then(|it| it.site),
                Callback::Oob => None,
            },
            text: match token.state {
                RequestTokenState::Exchanged => "verifier-taken-text",
                _ => "denied-text",
            },
        }))
    }
}

/// What a user is asked.
pub(super) struct Asking<'a> {
    pub(super) consumer: &'a Consumer,
    pub(super) user: &'a User,
    pub(super) permissions: &'a [Permission],
    pub(super) callback: &'a Callback,
    /// The tokens that the user allowed the consumer earlier.
    pub(super) earlier: &'a [AccessToken],
}

impl<'a> Asking<'a> {
    /// The page, and the CSP sources to which its forms lead on.
    pub(super) fn page(
        &self,
        words: Wording<'a>,
        form: Option<(&'a str, String)>,
    ) -> Result<(ConsentPage<'a>, String), PageError> {
        let (consumer, earlier) = (self.consumer, self.earlier);
        let is_allowed = |permission| earlier.iter().any(|it| it.permissions.contains(permission));
        let permissions = self.permissions.iter().map(|permission| {
            let (title, description, is_sensitive) = words.described(permission);
            AskedPermission {
                title,
                description,
                is_sensitive,
                is_new: !earlier.is_empty() && !is_allowed(permission),
            }
        });
        let mut permissions = Vec::from_iter(permissions);
        permissions.sort_by_key(|permission| permission.is_sensitive);
        // Browsers check `form-action` against every redirect that follows the form, also those of the callback to other
        // hosts. The callback's host alone would break consumers that send the user on, so its scheme is named.
        let (destination, further) = match self.callback {
            Callback::Oob => (None, String::new()),
            Callback::Uri(uri) => {
                let destination = callback::destination(uri).ok_or(PageError::CallbackRefused)?;
                let further = format!(" {}:", destination.scheme);
                (Some(destination), further)
            }
        };
        let (rules, texts) = (words.rules, words.frame.texts);
        let translated = texts.in_this_language(&language::consumer_id(&consumer.key), None);
        let description = translated
            .map(Cow::into_owned)
            .or(consumer.description.clone());
        let applications = texts.text("applications-title");
        let holds = match rules.tokens.access_ttl.0 {
            None => texts.parts("consent-holds", &[("page", &*applications)]),
            Some(ttl) => {
                let duration = in_words(texts, ttl);
                texts.parts(
                    "consent-holds-for",
                    &[("duration", &*duration), ("page", &*applications)],
                )
            }
        };
        let ends_unused = rules.tokens.access_idle.0.map(|idle| {
            texts.title(
                "consent-ends-unused",
                &[("duration", in_words(texts, idle))],
            )
        });
        let identity_is_new = rules.gives_display_name
            && !earlier.is_empty()
            && !earlier.iter().any(|token| token.with_display_name);
        let allowed_at = earlier.iter().map(|token| token.issued_at).min();
        let is_remembered = words.is_remembered(consumer, self.callback, self.permissions);
        let page = ConsentPage {
            frame: words.frame,
            form,
            consumer,
            user: self.user,
            allowed_at: allowed_at.map(|time| words.date(time)),
            more: counted(&permissions, |permission| permission.is_new)
                + u64::from(identity_is_new),
            sensitive: counted(&permissions, |permission| permission.is_sensitive),
            identity: match rules.gives_display_name {
                true => "consent-identity-full",
                false => "consent-identity-name",
            },
            identity_is_new,
            permissions,
            description: description.map(|text| Worded { text, lang: None }),
            since: words.date(consumer.created_at),
            holds,
            ends_unused,
            shown: is_remembered.then(|| consumer.shown()),
            destination,
        };
        Ok((page, further))
    }
}

fn counted(permissions: &[AskedPermission], is_meant: fn(&AskedPermission) -> bool) -> u64 {
    permissions.iter().filter(|it| is_meant(it)).count() as u64
}

impl Asked {
    fn undecided(self) -> Result<Self, Failure> {
        match self.token.state {
            RequestTokenState::Issued => Ok(self),
            _ => Err(PageError::TokenUsed.about(&self.consumer)),
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

/// The message about the way in which a token came to be.
pub(super) const fn beginning(began: TokenBeginning) -> &'static str {
    match began {
        TokenBeginning::Issued => "applications-given",
        TokenBeginning::Own => "applications-own",
        TokenBeginning::Consent | TokenBeginning::Imported => "applications-allowed",
    }
}

/// The colour of a consumer's sign, one of six.
pub(super) fn hue(key: &ConsumerKey) -> u8 {
    key.as_str().bytes().fold(0, u8::wrapping_add) % 6
}
