//! The settings of the token calls.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use super::{
    exchange::{BearerExchange, TOKEN_TYPE},
    user_field::UserField,
};
use crate::{
    base::settings::{LONGEST, Reason, Text, distinct, plain_values, seconds, section},
    provider::endpoints::scope::{PARAMETER, is_parameter},
    request::{identity::keys::Keys, policy::operations::Operations},
};

section! {
    /// The response with an access token.
    TokenResponseSettings["tokens"] {
        /// The user id's name in the access token response.
        user_id_parameter: String = "user_id", reload;
        /// The same for the user's name.
        screen_name_parameter: String = "screen_name", reload;
        /// Further facts on the user there, for every consumer: "id", "name" or "display_name", also under another name, as in
        /// "fullname=display_name".
        #[serde(deserialize_with = "distinct")] profile: Vec<ProfileParameter> = [], reload;
        /// Gives out a token again if the user has allowed the consumer one with the same permissions, and half of its life is
        /// left. Programs that share the key share it.
        reuse: bool = false, reload;
    }
}

section! {
    /// The exchange for OAuth 2: with mode=exchange a consumer gets an access token (RFC 9068). See docs/leaving.md.
    ExchangeSettings["exchange"] {
        /// The claim aud. It needs identity.assertion.key_files.
        audience: Option<String> [else "none: no exchange": "https://api.example.com"], reload;
        /// The lifetime of such a token, at most that of the token that signs.
        #[serde(deserialize_with = "seconds::<LONGEST, _>")] ttl: Duration = "15m", reload;
    }
}

section! {
    /// The limits on tokens.
    #[derive(Copy)]
    TokenLimitSettings["limits"] {
        /// Unused request tokens of one consumer; 429 past it.
        request_tokens_per_consumer: NonZeroU32 = 10_000, reload;
        /// Access tokens that one user allows one consumer; past it those unused for longest end. Issued and imported ones do
        /// not count.
        tokens_per_user: Option<NonZeroU32> [else "none": 10], reload;
    }
}

/// A parameter of the access token response that describes the user: its name, and the field of the user that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileParameter(pub String, pub UserField);

plain_values!(ProfileParameter);

impl Text for ProfileParameter {
    const EXPECTED: &'static str = "\"id\", \"name\" or \"display_name\", also under another name as in \"fullname=display_name\"";

    fn parse(text: &str) -> Result<Self, Reason> {
        let (name, field) = text.split_once('=').unwrap_or((text, text));
        let field = field.parse().map_err(|_| "")?;
        if !is_parameter(name) {
            return Err(format!("the other name is not {PARAMETER}").into());
        }
        Ok(Self(name.to_owned(), field))
    }
}

impl TokenResponseSettings {
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

    /// Consumers learn the display name of a user.
    #[must_use]
    pub fn gives_display_name(&self) -> bool {
        let mut profile = self.profile.iter();
        profile.any(|ProfileParameter(_, field)| *field == UserField::DisplayName)
    }
}

impl ExchangeSettings {
    /// The exchange, if there is one. The first of the keys signs its tokens, which name the ones that they are given for
    /// if they are accepted here.
    pub fn exchange(
        &self,
        keys: &Keys,
        names_token: bool,
        operations: &Arc<Operations>,
    ) -> Option<BearerExchange> {
        Some(BearerExchange {
            audience: self.audience.clone()?,
            ttl: self.ttl,
            signer: keys.signer(TOKEN_TYPE),
            names_token,
            operations: Arc::clone(operations),
        })
    }
}
