//! Settings that are one word out of a few and that no other module has a type for.

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IntoDeserializer as _},
};

use super::{
    Tokens,
    text::{PARAMETER, Reason, Text, is_parameter, texts},
};
use crate::{endpoints::UserField, policy::operations::Kind};

/// What happens to protected calls that fail verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Enforcement {
    /// They are rejected.
    Enforce,
    /// They are counted, logged and forwarded, without any identity.
    Observe,
}

/// Where nonces are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NonceScope {
    /// In this process.
    Local,
    /// In the store, for several replicas.
    Shared,
}

/// The kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreBackend {
    /// A file.
    Sqlite,
    /// A PostgreSQL server.
    Postgres,
}

/// Reads a [`StoreBackend`]; Redis, which was one once, gets a message of its own.
pub(super) fn backend<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<StoreBackend, D::Error> {
    let word = String::deserialize(deserializer)?;
    if word == "redis" {
        return Err(D::Error::custom(
            "Redis keeps shared nonces only (nonce.url): records live in SQLite or PostgreSQL; write \"sqlite\" or \"postgres\"",
        ));
    }
    StoreBackend::deserialize(word.into_deserializer())
}

/// Who checks a user's password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoginBackend {
    /// The store's own accounts.
    Local,
    /// An HTTP endpoint.
    Http,
    /// Nobody here: a proxy in front has done so.
    Header,
}

/// Who may call what no `[[operation]]` lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unlisted {
    /// A signed call with an access token.
    Consumer,
    /// A consumer's signature without a token.
    Application,
    /// A user logged in directly.
    User,
    /// Anyone.
    Anonymous,
    /// No caller at all.
    Nobody,
}

impl Unlisted {
    /// The kind of caller that is admitted, `None` for nobody.
    #[must_use]
    pub fn kind(self) -> Option<Kind> {
        match self {
            Self::Consumer => Some(Kind::Consumer),
            Self::Application => Some(Kind::Application),
            Self::User => Some(Kind::User),
            Self::Anonymous => Some(Kind::Anonymous),
            Self::Nobody => None,
        }
    }
}

/// A protocol that an operation may switch to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpgradeProtocol {
    /// RFC 6455.
    Websocket,
}

texts! {
    UpgradeProtocol: "\"websocket\"" => |text| if text == "websocket" { Ok(Self::Websocket) } else { Err("") };
}

/// A parameter of the access token response that describes the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileParameter {
    /// Its name.
    pub name: String,
    /// What it says.
    pub field: UserField,
}

impl Text for ProfileParameter {
    const EXPECTED: &'static str = "\"id\", \"name\" or \"display_name\", also under another name as in \"fullname=display_name\"";

    fn parse(text: &str) -> Result<Self, Reason> {
        let (name, field) = text.split_once('=').unwrap_or((text, text));
        let field = match field {
            "id" => UserField::Id,
            "name" => UserField::Name,
            "display_name" => UserField::DisplayName,
            _ => return Err("".into()),
        };
        if !is_parameter(name) {
            return Err(format!("the other name is not {PARAMETER}").into());
        }
        let name = name.to_owned();
        Ok(Self { name, field })
    }
}

impl Tokens {
    /// All parameters of the access token response that describe the user, by their names.
    #[must_use]
    pub fn user_parameters(&self) -> Vec<(String, UserField)> {
        let always = [
            (self.user_id_parameter.clone(), UserField::Id),
            (self.screen_name_parameter.clone(), UserField::Name),
        ];
        let profile = self.profile.iter();
        let profile = profile.map(|parameter| (parameter.name.clone(), parameter.field));
        always.into_iter().chain(profile).collect()
    }
}

/// What happens to an unsigned CORS preflight on a path that an operation lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preflight {
    /// It is rejected like any other call without credentials.
    Reject,
    /// The API gets it as an anonymous call.
    Forward,
}

/// The status of the response to a call that is not permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u16")]
pub enum ForbiddenStatus {
    /// 404: hides what the caller may not see.
    NotFound,
    /// 403.
    Forbidden,
}

impl TryFrom<u16> for ForbiddenStatus {
    type Error = &'static str;

    fn try_from(status: u16) -> Result<Self, Self::Error> {
        match status {
            404 => Ok(Self::NotFound),
            403 => Ok(Self::Forbidden),
            _ => Err("expected 404 or 403"),
        }
    }
}
