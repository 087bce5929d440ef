//! Settings with a few possible values, for which no other module has a type.

use std::collections::BTreeMap;

use serde::de::{Deserialize, Deserializer, Error as _};

use super::{
    Tokens,
    text::{self, PARAMETER, Reason, Text, is_parameter, texts},
};
use crate::{
    oauth::ProtocolParameter,
    provider::endpoints::UserField,
    request::{
        policy::operations::{Kind, ParameterHeader},
        route::FlowPath,
    },
};

/// The treatment of protected calls that fail verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Enforcement {
    /// They are rejected.
    Enforce,
    /// They are counted, logged and forwarded, without any identity.
    Observe,
}

/// The place of used nonces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoginBackend {
    /// The store's own accounts.
    Local,
    /// An HTTP endpoint.
    Http,
    /// No check here: a proxy in front has checked the user.
    Header,
}

/// The kinds of caller who may call what no `[[operation]]` lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unlisted(pub Vec<Kind>);

impl<'de> Deserialize<'de> for Unlisted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let kinds: Vec<UnlistedKind> = text::distinct(deserializer)?;
        match kinds.as_slice() {
            [UnlistedKind(None)] => Ok(Self(Vec::new())),
            kinds => {
                let kinds: Option<Vec<Kind>> = kinds.iter().map(|kind| kind.0).collect();
                let mixed = "\"nobody\" stands alone; leave it out, or leave the kinds out";
                kinds.map(Self).ok_or_else(|| D::Error::custom(mixed))
            }
        }
    }
}

/// One item of [`Unlisted`]; `None`: nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UnlistedKind(Option<Kind>);

/// Other names of parameters in the address of the authorization page, each with the parameter that it stands for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageParameters(pub Vec<(String, ProtocolParameter)>);

impl<'de> Deserialize<'de> for PageParameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = BTreeMap::<String, String>::deserialize(deserializer);
        let expected = "expected a table of names, such as { token = \"oauth_token\" }";
        let written = written.map_err(|_| D::Error::custom(expected))?;
        let pairs = written.into_iter().map(|(name, meant)| {
            let meant = match meant.as_str() {
                "oauth_token" => ProtocolParameter::Token,
                "oauth_consumer_key" => ProtocolParameter::ConsumerKey,
                _ => {
                    let message = format!(
                        "{name:?} stands for {meant:?}; expected \"oauth_token\" or \"oauth_consumer_key\""
                    );
                    return Err(D::Error::custom(message));
                }
            };
            if !is_parameter(&name) || name == "mode" {
                let message = format!("{name:?} cannot stand for {}; expected {PARAMETER}", meant.as_str());
                return Err(D::Error::custom(message));
            }
            Ok((name, meant))
        });
        pairs.collect::<Result<_, _>>().map(Self)
    }
}

/// Header fields that have the values of signed parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParameterHeaders(pub Vec<ParameterHeader>);

impl<'de> Deserialize<'de> for ParameterHeaders {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = BTreeMap::<String, String>::deserialize(deserializer);
        let expected = "expected a table of names, such as { X-LTI-Context = \"context_id\" }";
        let written = written.map_err(|_| D::Error::custom(expected))?;
        let headers = written.into_iter().map(|(name, parameter)| {
            let invalid = |_| format!("{name:?} is not the name of a header field");
            let name = name.parse().map_err(invalid)?;
            match parameter.as_str() {
                "" => Err(format!("{name}: name the parameter that it has")),
                oauth if oauth.starts_with("oauth_") => {
                    let fix = "identity.consumer_header has the consumer key, and forward_authorization = true keeps the credentials";
                    Err(format!("{name}: {oauth} is one of the credentials; {fix}"))
                }
                _ => Ok(ParameterHeader { name, parameter }),
            }
        });
        let headers: Result<_, String> = headers.collect();
        headers.map(Self).map_err(D::Error::custom)
    }
}

/// A protocol that an operation may switch to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpgradeProtocol {
    /// RFC 6455.
    Websocket,
}

texts! {
    FlowPath: "a path such as \"/oauth/initiate\", with or without a query" => |text: &str| text.parse::<FlowPath>();
    UnlistedKind: "\"consumer\", \"application\", \"user\", \"anonymous\" or \"nobody\"" => |text| match text {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preflight {
    /// It is rejected like any other call without credentials.
    Reject,
    /// The API gets it as an anonymous call.
    Forward,
}
