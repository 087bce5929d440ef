//! `mode=register&token=KEY`: the owner of a consumer makes an access token of it for themselves.
//!
//! The page that asks lists what the token will permit, as the consent page does. Its form names the token that it makes, so that
//! a form that is sent twice makes one; a new one ends the one before.

use askama::Template;

use crate::{
    base::secret::random,
    provider::{
        pages::{
            LoggedIn, PageError, PageRequest, Worded,
            browser::cookies,
            form::csrf::{self, FormPurpose},
        },
        respond::{Failure, OwnResponse},
        theme::frame::Frame,
    },
    records::values::{
        record::{AccessToken, Consumer, TokenBeginning},
        use_cases::OwnToken,
    },
    telemetry::{audit::CommandRecord, redact::RedactedToken},
};

/// The question, or the token that was made.
#[derive(Template)]
#[template(path = "own-token.html")]
struct OwnTokenPage<'a> {
    frame: Frame<'a>,
    consumer: &'a Consumer,
    /// The titles of its permissions, and whether each is sensitive.
    permissions: Vec<(Worded, bool)>,
    state: State<'a>,
}

enum State<'a> {
    /// The value of the form, and the number of the token in it.
    Asked(String, String),
    /// The token and its secret.
    Issued(&'a str, &'a str),
}

impl PageRequest<'_> {
    /// Whether the owner of a consumer can make a token of it.
    pub(crate) fn makes_own_token(&self, consumer: &Consumer) -> bool {
        let rules = &self.pages.rules;
        let sunset = rules.sunset.as_ref();
        let may_begin = sunset.is_none_or(|it| it.check_grant(consumer.key.as_str()).is_ok());
        rules.registration.own_token && consumer.enabled && may_begin
    }

    /// Asks whether to make a token.
    pub(crate) fn ask_own_token(
        &self,
        caller: &LoggedIn,
        consumer: &Consumer,
    ) -> Result<OwnResponse, Failure> {
        self.check_own_token(consumer)?;
        let number = random::identifier()?;
        let csrf = self.value(caller, &making(&number, consumer), consumer.key.as_str());
        Ok(self.page(&OwnTokenPage {
            frame: self.frame,
            consumer,
            permissions: self.permissions_of(consumer),
            state: State::Asked(csrf, number),
        }))
    }

    fn check_own_token(&self, consumer: &Consumer) -> Result<(), Failure> {
        match self.makes_own_token(consumer) {
            true => Ok(()),
            false if consumer.enabled => Err(PageError::ApplicationUnknown.into()),
            false => Err(PageError::ConsumerDisabled.about(consumer)),
        }
    }

    /// Makes a token, shows it this once, and ends those before it.
    pub(crate) async fn make_own_token(&self, key: &str) -> Result<OwnResponse, Failure> {
        // The form names what it asks for: sent again after that has changed, it makes nothing.
        let number = self.field("number").unwrap_or_default();
        let act = |consumer: &Consumer| making(number, consumer);
        let (caller, consumer) = self.owner_of(act, key).await?;
        self.check_own_token(&consumer)?;
        // The user has no choice of the token: another number is in another form.
        let subject = format!("token of {number} {key}");
        let mut token = csrf::value(&caller.id, FormPurpose::Register, &subject);
        token.truncate(random::TOKEN_LENGTH);
        let lifetime = self.pages.rules.tokens.access_ttl.0;
        let new = AccessToken {
            token,
            secret: random::secret()?,
            consumer: consumer.key.clone(),
            user: caller.user.id.clone(),
            permissions: consumer.permissions.clone(),
            issued_at: self.now,
            expires_at: lifetime.map(|lifetime| self.now.after(lifetime)),
            last_used_at: None,
            last_used_from: None,
            revoked_at: None,
            began: TokenBeginning::Own,
            with_display_name: false,
        };
        let is_same = |found: &Consumer| {
            found.owner == consumer.owner && found.permissions == consumer.permissions
        };
        let session = cookies::id_hash(&caller.id);
        let issuing = self
            .store()
            .issue_own_token(new.clone(), &session, Some(&is_same));
        let ended = match issuing.await? {
            OwnToken::Issued(ended) => ended,
            // The same form again.
            OwnToken::Taken => {
                let page = self.frame.link_with("register", "of", key);
                return Ok(OwnResponse::see_other(page));
            }
            OwnToken::Refused => return Err(self.stale(false, &self.frame.link("register"))),
        };
        let record = |event, token| -> Result<_, Failure> {
            Ok(CommandRecord {
                token: Some(RedactedToken(token).to_string()),
                ..self.record_of(event, &caller, &consumer)?
            })
        };
        self.keep(record("access_token_issued", &new.token)?)
            .await?;
        for before in &ended {
            self.keep(record("token_revoked", before)?).await?;
        }
        Ok(self.page(&OwnTokenPage {
            frame: self.frame,
            consumer: &consumer,
            permissions: Vec::new(),
            state: State::Issued(&new.token, &new.secret.expose_text()),
        }))
    }

    /// The permissions of a consumer as pages name them, and whether each is sensitive.
    fn permissions_of(&self, consumer: &Consumer) -> Vec<(Worded, bool)> {
        let described = consumer.permissions.iter().map(|permission| {
            let (title, _, is_sensitive) = self.wording().described(permission);
            (title, is_sensitive)
        });
        described.collect()
    }
}

/// The act that makes a token with the permissions that a consumer has.
fn making(number: &str, consumer: &Consumer) -> String {
    format!("token {number} {}", consumer.shown())
}
