//! The settings of the pages of users.

use std::{collections::BTreeMap, num::NonZeroU32};

use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::json;

use crate::{
    base::{
        settings::{choices, one_of, plain_values, section, text},
        text::names::Permission,
    },
    oauth::ProtocolParameter,
    provider::endpoints::scope::{PARAMETER, ScopeSettings, is_parameter},
    request::route::{FlowPath, settings::FlowSettings},
};

/// The parameters in the address of the authorization page by which a consumer demands that the user is asked, each with
/// the value that does not: OpenID Connect's, X's and that of USOS and OKAPI.
pub const DEMANDS: [(&str, &str); 3] = [
    ("prompt", "none"),
    ("force_login", "false"),
    ("interactivity", "minimal"),
];

section! {
    /// The authorization page.
    AuthorizePageSettings["service"] {
        /// Further names of oauth_token and oauth_consumer_key in the URL of the authorization page, each with the name of the
        /// parameter.
        page_parameters: PageParameters = {}, reload;
    }
}

section! {
    /// The question whether a consumer may act for a user.
    #[derive(Copy)]
    ConsentSettings["consent"] {
        /// "never": asked each time; "same": not again, if the logged-in user has a valid token of the consumer with the same
        /// permissions or more. docs/pages.md has the exceptions.
        remember: Remember = "never", reload;
    }
}

section! {
    /// A permission for consumers, as the consent page shows it.
    PermissionSettings["permission", list] {
        /// Its name in operations, consumers and tokens.
        #[serde(deserialize_with = "text")] name: Permission [required: "members.read"], reload;
        /// Its name for users.
        title: Option<String> [else "the name": "Read your profile"], reload;
        /// Its meaning, in a sentence.
        description: Option<String> [else "none": "Your name and your picture, no addresses."], reload;
        /// The consent page marks it and lists it last.
        sensitive: bool = false, reload;
    }
}

/// Whether users get consumers that they ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RegistrationMode {
    /// There is no page for it.
    Closed,
    /// An operator decides on each.
    Approval,
    /// They work at once, unless they ask for a sensitive permission: then as with approval.
    Open,
}

choices! { RegistrationMode }

section! {
    /// Consumers that users ask for on a page (mode=register). See docs/registration.md.
    #[derive(Copy)]
    RegistrationSettings["registration"] {
        /// "approval": an operator decides on each. "open": one works at once, unless it asks for a sensitive permission.
        /// "closed": no such page.
        mode: RegistrationMode = "closed", reload;
        /// Consumers of one user at once, and asked for within 24 hours.
        per_user: NonZeroU32 = 5, reload;
        /// Consumers that all users ask for within 24 hours.
        per_day: NonZeroU32 = 100, reload;
        /// The owner of a working consumer gets an access token for themselves, without the consent page.
        own_token: bool = false, reload;
    }
}

section! {
    /// The limit on sessions.
    #[derive(Copy)]
    SessionSettings["limits"] {
        /// Browser sessions of one user; past it the oldest ends.
        sessions_per_user: NonZeroU32 = 100, reload;
    }
}

/// The earlier consents that count for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Remember {
    /// None.
    Never,
    /// Those to the same consumer, as it was then, for the same permissions or more.
    Same,
}

choices!(Remember);

impl AuthorizePageSettings {
    /// The parameters of the authorization page that the configuration names.
    pub fn parameters(&self, flow: &FlowSettings, scope: &ScopeSettings) -> Vec<String> {
        let demanded = flow.authorize_paths.iter().flat_map(FlowPath::names);
        let renamed = self.page_parameters.0.iter().map(|(name, _)| &**name);
        let asking = DEMANDS.map(|(name, _)| name);
        let named = demanded.chain(renamed).chain(scope.names()).chain(asking);
        named.map(str::to_owned).collect()
    }
}

impl PermissionSettings {
    /// The warning of a consumer's permission that is not one of the `declared` ones. A service that declares none has nothing
    /// to warn of.
    pub fn undeclared(declared: &[Self], permission: &Permission) -> Option<String> {
        let is_undeclared =
            !declared.is_empty() && declared.iter().all(|entry| entry.name != *permission);
        is_undeclared.then(|| {
            format!("{permission}: the configuration has no [[permission]] of that name, so no operation can need it")
        })
    }
}

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

plain_values!(PageParameters: json!({
    "type": "object",
    "additionalProperties": one_of(&[ProtocolParameter::Token, ProtocolParameter::ConsumerKey].map(ProtocolParameter::as_str)),
}));
