//! Settings with a few possible values, for which no other module has a type.

use serde::Deserialize;

use super::{
    Tokens,
    text::{PARAMETER, Reason, Text, is_parameter, texts},
};
use crate::{endpoints::UserField, policy::operations::Kind};

/// The treatment of protected calls that fail verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Enforcement {
    /// They are rejected.
    Enforce,
    /// They are counted, logged and forwarded, without any identity.
    Observe,
}

/// The place of used nonces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NonceScope {
    /// In this process.
    Local,
    /// In the store, for several replicas.
    Shared,
}

/// The kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreBackend {
    /// A file.
    Sqlite,
    /// A PostgreSQL server.
    Postgres,
}

/// The check of a user's password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoginBackend {
    /// The store's own accounts.
    Local,
    /// An HTTP endpoint.
    Http,
    /// No check here: a proxy in front has checked the user.
    Header,
}

/// The kind of caller who may call what no `[[operation]]` lists; `None`: nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unlisted(pub Option<Kind>);

/// A protocol that an operation may switch to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpgradeProtocol {
    /// RFC 6455.
    Websocket,
}

texts! {
    Unlisted: "\"consumer\", \"application\", \"user\", \"anonymous\" or \"nobody\"" => |text| match text {
        "nobody" => Ok(Self(None)),
        kind => Kind::parse(kind).map(|kind| Self(Some(kind))).map_err(|_| ""),
    };
    StoreBackend: "\"sqlite\" or \"postgres\"" => |text| match text {
        "sqlite" => Ok(Self::Sqlite),
        "postgres" => Ok(Self::Postgres),
        "redis" => Err("Redis keeps shared nonces only (nonce.url): records live in SQLite or PostgreSQL"),
        _ => Err(""),
    };
    UpgradeProtocol: "\"websocket\"" => |text| if text == "websocket" { Ok(Self::Websocket) } else { Err("") };
}

/// A parameter of the access token response that describes the user: its name, and the field of the user that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileParameter(pub String, pub UserField);

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
        Ok(Self(name.to_owned(), field))
    }
}

impl Tokens {
    /// All parameters of the access token response that describe the user, by their names.
    pub fn user_parameters(&self) -> Vec<(String, UserField)> {
        let always = [
            (self.user_id_parameter.clone(), UserField::Id),
            (self.screen_name_parameter.clone(), UserField::Name),
        ];
        let profile = self.profile.iter();
        let profile = profile.map(|ProfileParameter(name, field)| (name.clone(), *field));
        always.into_iter().chain(profile).collect()
    }
}

/// The treatment of an unsigned CORS preflight on a path that an operation lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preflight {
    /// It is rejected like any other call without credentials.
    Reject,
    /// The API gets it as an anonymous call.
    Forward,
}
