//! The records of the store, as plain data, and which of their fields are columns.

use std::{net::IpAddr, time::Duration};

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize, Serializer};

use super::{
    Result,
    value::{ColumnType, Row, Value, columns, words},
};
use crate::{
    base::{
        clock::UnixTime,
        network::Network,
        rate::Rate,
        secret::Secret,
        text::{
            hexadecimal::hexadecimal,
            names::{ConsumerKey, Permission, UserId},
        },
    },
    oauth::{Deviation, Pinned},
    telemetry::calls::facts::Door,
};

/// The base string with which a consumer signs protected calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// RFC 5849 §3.4.1: every query and form parameter is signed.
    #[default]
    Rfc5849,
    /// Base strings with `oauth_` and form body parameters alone, as old services describe them, and those of RFC 5849.
    Legacy,
}

/// Whether a body that is not a form has to have an `oauth_body_hash`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BodyHash {
    /// It may have one, which is then verified.
    Optional,
    /// A request without one is rejected.
    Required,
}

/// The decision on a consumer that a user has asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registration {
    /// An operator has yet to decide.
    Waiting,
    /// No operator has to decide, and none has.
    Unchecked,
    /// An operator approved it.
    Approved,
    /// An operator declined it.
    Declined,
}

words! { Dialect BodyHash Registration TokenBeginning }

/// An application that calls the API on a user's behalf (RFC 5849 §1.1: the client).
///
/// Serde writes and reads the members of an export, without the secrets, which are written and read where they are
/// meant to be. To keep more about a consumer or a [`User`], add a field here and to its columns, a column to both
/// schemas, and a row to `manage::record_fields`, from which options, forms, help and schemas follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumer {
    /// Its public identifier.
    pub key: ConsumerKey,
    /// The shared secret.
    #[serde(skip)]
    pub secret: Secret,
    /// Its name on the consent page.
    pub name: String,
    /// The places to send users after deciding: absolute URIs, or oob.
    #[serde(default)]
    pub callbacks: Vec<String>,
    /// The permissions that it may ask for.
    #[serde(default)]
    pub permissions: Vec<Permission>,
    /// The base string with which it signs protected calls; without one it follows `signature.default_dialect`.
    pub dialect: Option<Dialect>,
    /// Its description on the consent page.
    pub description: Option<String>,
    /// Its web page, to which the consent page links.
    pub website: Option<String>,
    /// The mail address or the web page of its developer, for operators.
    pub contact: Option<String>,
    /// Its public key for the RSA methods, as PEM.
    pub rsa_public_key: Option<String>,
    /// Accept only the RSA methods from it, never its secret.
    #[serde(default)]
    pub rsa_only: bool,
    /// The deviations from RFC 5849 that it is allowed: callback_absent, repeats_once, key_without_ampersand, empty_secret or
    /// values_unencoded. The documentation says what each of them risks.
    #[serde(default)]
    pub accept: Vec<Deviation>,
    /// The signed parameters that its calls to the API have to have, each NAME=VALUE with escapes as in a query; several
    /// values of one name are alternatives.
    #[serde(default)]
    pub pinned: Vec<Pinned>,
    /// Required: a body that is not a form needs an oauth_body_hash in its calls to the API, whatever the operation says.
    pub body_hash: Option<BodyHash>,
    /// The networks from which it may call; empty: from anywhere.
    #[serde(default)]
    pub from: Vec<Network>,
    /// Its own limit on requests, such as "100 per 1s", instead of limits.requests_per_consumer.
    pub rate: Option<Rate>,
    /// Enforce its calls even where the configuration only observes.
    #[serde(default)]
    pub enforce: bool,
    /// A disabled consumer is refused.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// The user who asked for it and manages it; `None`: operators registered it.
    pub owner: Option<UserId>,
    /// The decision on it; `None` without an owner. It is not enabled while it waits, or after it was declined.
    pub registration: Option<Registration>,
    /// The sentence of the operator who decided, for its owner.
    pub decision: Option<String>,
    /// The callbacks that its owner asks for instead of those that it has, until an operator decides; empty: none.
    #[serde(default)]
    pub asked_callbacks: Vec<String>,
    /// Its registration time.
    pub created_at: UnixTime,
    /// The previous secret and the time until which it also verifies.
    #[serde(
        rename = "previous_secret_until",
        serialize_with = "until",
        skip_deserializing
    )]
    pub previous_secret: Option<(Secret, UnixTime)>,
}

columns! {
    Consumer: key name callbacks permissions dialect description website contact rsa_public_key rsa_only accept pinned
        body_hash from rate enforce enabled owner registration decision asked_callbacks created_at; secret: Secret, previous_secret: Option<(Secret, UnixTime)>
}

const fn enabled() -> bool {
    true
}

fn until<S: Serializer>(
    previous: &Option<(Secret, UnixTime)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let until = previous.as_ref().map(|(_, until)| until);
    until.serialize(serializer)
}

impl Consumer {
    /// The previous secret and the end of its grace, while it also verifies.
    pub fn graced_secret(&self, now: UnixTime) -> Option<&(Secret, UnixTime)> {
        let previous = self.previous_secret.as_ref();
        previous.filter(|(_, until)| now < *until)
    }

    /// Gives it another secret. The earlier one also verifies during `grace`; without one it is kept for the diagnosis of
    /// signatures alone.
    pub fn replace_secret(&mut self, secret: Secret, now: UnixTime, grace: Option<Duration>) {
        // The clock of another replica may be slow, and the earlier secret must not verify there either.
        let ended = || now.before(Duration::from_secs(24 * 3600));
        let until = grace.map_or_else(ended, |grace| now.after(grace));
        let before = std::mem::replace(&mut self.secret, secret);
        let is_kept = grace.is_some() || !before.is_empty();
        self.previous_secret = is_kept.then_some((before, until));
    }

    /// An enabled consumer with nothing but these.
    pub const fn new(key: ConsumerKey, secret: Secret, name: String, created_at: UnixTime) -> Self {
        Self {
            key,
            secret,
            name,
            callbacks: Vec::new(),
            permissions: Vec::new(),
            dialect: None,
            description: None,
            website: None,
            contact: None,
            rsa_public_key: None,
            rsa_only: false,
            accept: Vec::new(),
            pinned: Vec::new(),
            body_hash: None,
            from: Vec::new(),
            rate: None,
            enforce: false,
            enabled: true,
            owner: None,
            registration: None,
            decision: None,
            asked_callbacks: Vec::new(),
            created_at,
            previous_secret: None,
        }
    }

    /// A consumer with this key and the simplest value of every other field, for tests.
    ///
    /// # Panics
    /// `key` is not a consumer key.
    #[doc(hidden)]
    #[expect(clippy::expect_used, reason = "tests write the key")]
    pub fn for_tests(key: &str) -> Self {
        let secret = Secret::from(format!("secret of {key}"));
        let created_at = UnixTime(1_700_000_000);
        let name = key.to_owned();
        Self::new(
            key.parse().expect("a consumer key"),
            secret,
            name,
            created_at,
        )
    }

    /// Whether it can sign at all: one that is restricted to its RSA key needs one.
    #[must_use]
    pub const fn can_sign(&self) -> bool {
        !self.rsa_only || self.rsa_public_key.is_some()
    }

    /// Whether no operator has approved it yet, or one has declined it. It is disabled then.
    #[must_use]
    pub const fn is_unapproved(&self) -> bool {
        use Registration::{Declined, Waiting};

        matches!(self.registration, Some(Waiting | Declined))
    }

    /// Whether it can be enabled: operators registered it, or have approved it.
    #[must_use]
    pub const fn may_be_enabled(&self) -> bool {
        matches!(self.registration, None | Some(Registration::Approved))
    }

    /// Whether its secret proves something, or need not: it signs with its RSA key alone, or without a secret.
    pub fn may_have_its_secret(&self) -> bool {
        !self.secret.is_empty() || self.rsa_only || self.accepts_empty_secret()
    }

    /// The digest of what a user trusts on the consent page: its name, its callbacks and all of its permissions.
    pub fn shown(&self) -> String {
        let trusted = serde_json::json!([self.name, self.callbacks, self.permissions]);
        hexadecimal(digest(&SHA256, trusted.to_string().as_bytes()).as_ref())
    }

    /// Whether it is allowed a secret that proves nothing.
    pub fn accepts_empty_secret(&self) -> bool {
        self.accept.contains(&Deviation::EmptySecret)
    }
}

/// The method of a use by a Bearer token.
pub const BEARER: &str = "Bearer";

/// The last verified call of a consumer by one door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerUse {
    /// The consumer.
    pub consumer: ConsumerKey,
    /// The time of it; uses are written in batches.
    pub last_used_at: UnixTime,
    /// The signature method, in its registered spelling, or [`BEARER`]; `None`, here and below, if the use comes from an
    /// imported token.
    pub method: Option<String>,
    /// The base string that was signed.
    pub dialect: Option<Dialect>,
}

impl ConsumerUse {
    /// The door by which the call came.
    pub fn door(&self) -> Door {
        match self.method.as_deref() {
            Some(BEARER) => Door::Bearer,
            _ => Door::Signature,
        }
    }
}

/// A user with a local account (RFC 5849 §1.1: the resource owner). Serde leaves the password hash out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The id that the API sees.
    pub id: UserId,
    /// The name to log in with, unique without regard to ASCII case.
    pub name: String,
    /// The name of the user on pages.
    pub display_name: Option<String>,
    /// The hash of the password: argon2id in PHC form, or one that another system made; `None` for a user
    /// of an outside login.
    #[serde(skip)]
    pub password_hash: Option<Secret>,
    /// The user can do nothing after a login before another password is chosen.
    #[serde(default)]
    pub must_change_password: bool,
    /// A disabled user can neither log in nor be acted for.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// The time of its creation.
    pub created_at: UnixTime,
}

columns! { User: id name display_name must_change_password enabled created_at; password_hash: Option<Secret> }

impl User {
    /// An enabled user with nothing but these, and no password.
    pub const fn new(id: UserId, name: String, created_at: UnixTime) -> Self {
        Self {
            id,
            name,
            display_name: None,
            password_hash: None,
            must_change_password: false,
            enabled: true,
            created_at,
        }
    }
}

/// A user as an outside login describes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideUser {
    /// The id that the API sees.
    pub id: UserId,
    /// The name; `None` keeps the one that is known, and makes the id the name of a new user.
    pub name: Option<String>,
    /// The name of the user on pages; `None` keeps the known one.
    pub display_name: Option<String>,
}

/// The place to which the user is sent after deciding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Callback {
    /// Out of band: the verifier is shown to the user.
    Oob,
    /// The absolute URI that the consumer gave, checked against its registration.
    Uri(String),
}

impl ColumnType for Callback {
    fn read(value: &Value) -> Option<Self> {
        Option::read(value).map(|uri: Option<_>| uri.map_or(Self::Oob, Self::Uri))
    }

    fn write(&self) -> Result<Value> {
        match self {
            Self::Oob => Ok(Value::Null),
            Self::Uri(uri) => uri.write(),
        }
    }
}

/// The state of a request token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestTokenState {
    /// Given out; the user has not decided.
    Issued,
    /// The user agreed; waits for the exchange.
    Authorized {
        /// The user who agreed.
        user: UserId,
        /// The verifier that the consumer must send.
        verifier: Secret,
        /// Dialect `legacy`: the other token by which the exchange may name it.
        redirect_token: Option<String>,
    },
    /// The user refused.
    Denied,
    /// An access token was given for it.
    Exchanged,
    /// Too many wrong verifiers.
    Voided,
}

/// A request token (RFC 5849 §1.1: temporary credentials).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestToken {
    /// The identifier.
    pub token: String,
    /// The shared secret.
    pub secret: Secret,
    /// The one consumer that it belongs to.
    pub consumer: ConsumerKey,
    /// The place to which the user is sent after deciding.
    pub callback: Callback,
    /// The permissions that the consent page asks for.
    pub permissions: Vec<Permission>,
    /// The time when it was given out.
    pub issued_at: UnixTime,
    /// The time from which it is expired; set again when the user agrees.
    pub expires_at: UnixTime,
    /// The user's decision, and what followed.
    pub state: RequestTokenState,
    /// Wrong verifiers shown so far, under a right signature.
    pub wrong_verifiers: u32,
}

columns! {
    RequestToken: token consumer callback permissions issued_at expires_at wrong_verifiers;
        secret: Secret, state: RequestTokenState
}

/// How an access token came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenBeginning {
    /// Its user allowed it on the consent page.
    Consent,
    /// The operator issued it, without asking the user.
    Issued,
    /// The owner of the consumer made it for themselves.
    Own,
    /// It is from another system.
    #[default]
    Imported,
}

/// An access token (RFC 5849 §1.1: token credentials). Serde leaves the secret out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessToken {
    /// The identifier.
    pub token: String,
    /// The shared secret.
    #[serde(skip)]
    pub secret: Secret,
    /// The one consumer that it belongs to.
    pub consumer: ConsumerKey,
    /// The user it acts for.
    pub user: UserId,
    /// The permissions that it grants.
    #[serde(default)]
    pub permissions: Vec<Permission>,
    /// The time of its issue.
    pub issued_at: UnixTime,
    /// From this time on it is expired; `None`: never.
    pub expires_at: Option<UnixTime>,
    /// The last use that has reached the store; uses are written in batches.
    pub last_used_at: Option<UnixTime>,
    /// The address of the caller then, as trusted proxies name it.
    #[serde(default)]
    pub last_used_from: Option<IpAddr>,
    /// The revocation time.
    pub revoked_at: Option<UnixTime>,
    /// How it came to be.
    #[serde(default)]
    pub began: TokenBeginning,
    /// The response that gave it to its consumer had the display name of its user.
    #[serde(default)]
    pub with_display_name: bool,
}

impl AccessToken {
    /// The time of its last use; of its issue if there was no use.
    pub fn last_use(&self) -> UnixTime {
        self.last_used_at.unwrap_or_default().max(self.issued_at)
    }
}

/// The last verified call with an access token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenUse {
    /// [`AccessToken::token`]
    pub token: String,
    /// [`AccessToken::last_used_at`]
    pub last_used_at: UnixTime,
    /// [`AccessToken::last_used_from`]
    pub last_used_from: Option<IpAddr>,
}

/// A browser session of a logged-in user. Serde leaves out the user and the cookie's hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Session {
    /// SHA-256 of the session id in the cookie, so that a read of the store opens no session.
    #[serde(skip)]
    pub id_hash: [u8; 32],
    /// The user who is logged in.
    #[serde(skip)]
    pub user: UserId,
    /// The time of login.
    pub created_at: UnixTime,
    /// From this time on it is ended.
    pub expires_at: UnixTime,
    /// The address of the login.
    pub address: IpAddr,
    /// The browser that logged in, one of a few names; `None`: it is not known.
    pub browser: Option<String>,
    /// The system on which the browser runs, one of a few names.
    pub system: Option<String>,
}

columns! { Session: user created_at expires_at address browser system; id_hash: [u8; 32] }
