//! Records as operators see them: one shape for each, whose JSON names are those of `--json`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::{
    clock::UnixTime,
    names::{ConsumerKey, Permission, UserId},
    secret::Secret,
    store::record::{AccessToken, Consumer, Dialect, User},
};

/// A consumer.
#[derive(Serialize)]
pub struct ConsumerView<'a> {
    key: &'a ConsumerKey,
    #[serde(flatten)]
    secret: SecretView<'a>,
    name: &'a str,
    callbacks: &'a [String],
    permissions: &'a [Permission],
    dialect: Dialect,
    description: Option<&'a str>,
    website: Option<&'a str>,
    has_rsa_public_key: bool,
    rsa_only: bool,
    enforce: bool,
    enabled: bool,
    created_at: UnixTime,
    previous_secret_until: Option<UnixTime>,
}

impl<'a> ConsumerView<'a> {
    /// The consumer without its secret; `default` is the dialect of one that was registered without.
    #[must_use]
    pub fn new(consumer: &'a Consumer, default: Dialect) -> Self {
        Self {
            key: &consumer.key,
            secret: SecretView::Hidden,
            name: &consumer.name,
            callbacks: &consumer.callbacks,
            permissions: &consumer.permissions,
            dialect: consumer.dialect.unwrap_or(default),
            description: consumer.description.as_deref(),
            website: consumer.website.as_deref(),
            has_rsa_public_key: consumer.rsa_public_key.is_some(),
            rsa_only: consumer.rsa_only,
            enforce: consumer.enforce,
            enabled: consumer.enabled,
            created_at: consumer.created_at,
            previous_secret_until: consumer.previous_secret.as_ref().map(|(_, until)| *until),
        }
    }

    /// Shows the secret too: only where it has just been made or given.
    #[must_use]
    pub fn with_secret(mut self, consumer: &'a Consumer) -> Self {
        self.secret = SecretView::Shown("secret", "secret_base64", &consumer.secret);
        self
    }
}

/// A user.
#[derive(Serialize)]
pub struct UserView<'a> {
    id: &'a UserId,
    name: &'a str,
    display_name: Option<&'a str>,
    enabled: bool,
    created_at: UnixTime,
}

impl<'a> From<&'a User> for UserView<'a> {
    fn from(user: &'a User) -> Self {
        Self {
            id: &user.id,
            name: &user.name,
            display_name: user.display_name.as_deref(),
            enabled: user.enabled,
            created_at: user.created_at,
        }
    }
}

/// An access token.
#[derive(Serialize)]
pub struct TokenView<'a> {
    token: &'a str,
    #[serde(flatten)]
    secret: SecretView<'a>,
    consumer: &'a ConsumerKey,
    user: &'a UserId,
    permissions: &'a [Permission],
    issued_at: UnixTime,
    expires_at: Option<UnixTime>,
    last_used_at: Option<UnixTime>,
    revoked_at: Option<UnixTime>,
}

impl<'a> From<&'a AccessToken> for TokenView<'a> {
    /// The token without its secret.
    fn from(token: &'a AccessToken) -> Self {
        Self {
            token: &token.token,
            secret: SecretView::Hidden,
            consumer: &token.consumer,
            user: &token.user,
            permissions: &token.permissions,
            issued_at: token.issued_at,
            expires_at: token.expires_at,
            last_used_at: token.last_used_at,
            revoked_at: token.revoked_at,
        }
    }
}

impl<'a> TokenView<'a> {
    /// The token that has just been issued, with its secret.
    #[must_use]
    pub fn issued(token: &'a AccessToken) -> Self {
        let secret = SecretView::Shown("token_secret", "token_secret_base64", &token.secret);
        Self {
            secret,
            ..token.into()
        }
    }
}

/// A secret under the first name; one that is not UTF-8 as base64 under the second name, so that the base64 is not taken
/// for the secret.
enum SecretView<'a> {
    Hidden,
    Shown(&'static str, &'static str, &'a Secret),
}

impl Serialize for SecretView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Self::Shown(text, base64, secret) = self {
            match std::str::from_utf8(secret.expose()) {
                Ok(secret) => map.serialize_entry(text, secret)?,
                Err(_) => map.serialize_entry(base64, &STANDARD.encode(secret.expose()))?,
            }
        }
        map.end()
    }
}
