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
        /// "local": accounts of the store (argon2id); "http": the credentials are posted to login.url; "header": a trusted proxy
        /// in front has authenticated the user.
        backend: LoginMethod = "local", restart;
        /// The URL that checks them; its response has the user's id. https unless its host is loopback.
        url: Option<EndpointUrl> [else "none": "https://accounts.example.com/check"], restart;
        /// The format of name and password there: "form" or "json".
        request: Encoding = "form", restart;
        /// The name of the field that has the user name.
        username_field: String = "username", restart;
        /// The name of the field that has the password.
        password_field: String = "password", restart;
        /// The user's id in the JSON object of the response, a text or a whole number; "user.id" is in an inner object.
        id_field: String = "id", restart;
        /// The user's name there. Without it the id is the name.
        name_field: String = "name", restart;
        /// The name there that pages show.
        display_name_field: String = "display_name", restart;
        /// A member that must be true there, for an endpoint that responds 200 with an id to wrong passwords too.
        success_field: Option<String> [else "none": "success"], restart;
        /// The time a login may take there, all in all.
        #[serde(deserialize_with = "duration::<1, LONGEST, _>")] timeout: Duration = "5s", restart;
        /// The authorities to trust there, PEM.
        #[serde(default, deserialize_with = "distinct")] ca: Vec<PathBuf> [else "the system's": "accounts-ca.pem"], restart;
    }
}

section! {
    /// Logged-in users.
    LoginSettings["login"] {
        /// The field in which a proxy in front names the user's id, on every request to pages and operations of users. It counts
        /// only from listen.trusted_proxies; the proxy must drop a caller's own field.
        #[serde(default, deserialize_with = "optional")]
        user_header: Option<HeaderName> [else "none": "X-Auth-Request-User"], reload;
        /// The field with the name that pages show.
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
