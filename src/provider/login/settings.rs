//! The settings of logins.

use std::{path::PathBuf, time::Duration};

use http::HeaderName;

use super::header::UserHeaders;
use crate::{
    base::{
        rate::Rate,
        settings::{LONGEST, choices, distinct, duration, optional, seconds, section},
    },
    wire::address::EndpointUrl,
};

section! {
    /// The login of users.
    PasswordCheckSettings["login"] {
        /// "local": accounts of the store (argon2id); "http": login.url checks passwords; "header": a trusted proxy
        /// authenticates users.
        backend: LoginMethod = "local", restart;
        /// The URL that checks them, and responds with the user's id. https unless its host is loopback.
        url: Option<EndpointUrl> [else "none": "https://accounts.example.com/check"], restart;
        /// The format of name and password there: "form" or "json".
        request: Encoding = "form", restart;
        /// The field of the user name.
        username_field: String = "username", restart;
        /// The field of the password.
        password_field: String = "password", restart;
        /// The user's id in the response's JSON object, a text or a whole number; "user.id" is in an inner object.
        id_field: String = "id", restart;
        /// The user's name there, else the id.
        name_field: String = "name", restart;
        /// The name that pages show.
        display_name_field: String = "display_name", restart;
        /// A member that must be true there, for an endpoint that responds 200 with an id to wrong passwords.
        success_field: Option<String> [else "none": "success"], restart;
        /// Time for a login there, all in all.
        #[serde(deserialize_with = "duration::<1, LONGEST, _>")] timeout: Duration = "5s", restart;
        /// The authorities to trust there, PEM.
        #[serde(default, deserialize_with = "distinct")] ca: Vec<PathBuf> [else "the system's": "accounts-ca.pem"], restart;
    }
}

section! {
    /// Logged-in users.
    LoginSettings["login"] {
        /// The field in which a proxy of listen.trusted_proxies names the user's id, on every request to pages and operations
        /// of users. The proxy must drop a caller's own.
        #[serde(default, deserialize_with = "optional")]
        user_header: Option<HeaderName> [else "none": "X-Auth-Request-User"], reload;
        /// The field of the name that pages show.
        #[serde(default, deserialize_with = "optional")]
        display_name_header: Option<HeaderName> [else "none": "X-Auth-Request-Preferred-Username"], reload;
        /// The time a browser stays logged in.
        #[serde(deserialize_with = "seconds::<LONGEST, _>")] session_ttl: Duration = "12h", reload;
        /// Failed logins of one account from one address before 429; ten times that for an address alone.
        max_failures: Rate = "10 per 15m", reload;
    }
}

impl PasswordCheckSettings {
    /// The fields by which a proxy in front names the user, if one does.
    pub fn user_headers(&self, login: &LoginSettings) -> Option<UserHeaders> {
        let user = login.user_header.clone();
        user.filter(|_| self.backend == LoginMethod::Header)
            .map(|user| UserHeaders {
                user,
                display_name: login.display_name_header.clone(),
            })
    }
}

/// The check of a user's password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoginMethod {
    /// The store's own accounts.
    Local,
    /// An HTTP endpoint.
    Http,
    /// No check here: a proxy in front has checked the user.
    Header,
}

/// The encoding of name and password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// `application/x-www-form-urlencoded`.
    Form,
    /// A JSON object.
    Json,
}

choices!(Encoding, LoginMethod);
