//! The records of the store, as plain data.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use crate::{
    base::{
        clock::UnixTime,
        names::{ConsumerKey, Permission, UserId},
        secret::Secret,
    },
    oauth::{Deviation, Pinned},
};

/// The base string with which a consumer signs protected calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// RFC 5849 §3.4.1: every query and form parameter is signed.
    #[default]
    Rfc5849,
    /// Base strings with `oauth_` and form body parameters alone, as old services describe them, and those of RFC 5849.
    Legacy,
}

/// Whether a body that is not a form has to have an `oauth_body_hash`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BodyHash {
    /// It may have one, which is then verified.
    Optional,
    /// A request without one is rejected.
    Required,
}

/// An application that calls the API on a user's behalf (RFC 5849 §1.1: the client).
///
/// Serde writes and reads the members of an export, without the secrets, which are written and read where they are
/// meant to be. To keep more about a consumer, add a field here and a column of the same name: options, forms and schemas
/// are made from the fields and their doc comments (`manage::fields`), so keep each to one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
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
    /// Its public key for the RSA methods, as PEM.
    pub rsa_public_key: Option<String>,
    /// Accept only the RSA methods from it, never its secret.
    #[serde(default)]
    pub rsa_only: bool,
    /// The deviations from RFC 5849 that it is allowed: callback_absent, repeats_once, key_without_ampersand, empty_secret or
    /// hash_unencoded. The documentation says what each of them risks.
    #[serde(default)]
    pub accept: Vec<Deviation>,
    /// The signed parameters that its calls to the API have to have, each NAME=VALUE with escapes as in a query; several values of one
    /// name are alternatives.
    #[serde(default)]
    pub pinned: Vec<Pinned>,
    /// Required: a body that is not a form needs an oauth_body_hash in its calls to the API, whatever the operation says.
    pub body_hash: Option<BodyHash>,
    /// Enforce its calls even where the configuration only observes.
    #[serde(default)]
    pub enforce: bool,
    /// A disabled consumer is refused.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// Its registration time.
    pub created_at: UnixTime,
    /// The previous secret and the time until which it also verifies.
    #[serde(
        rename = "previous_secret_until",
        serialize_with = "until",
        skip_deserializing
    )]
    #[schema(value_type = Option<UnixTime>)]
    pub previous_secret: Option<(Secret, UnixTime)>,
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
    /// An enabled consumer with nothing but these.
    #[expect(clippy::expect_used, reason = "serde fills in every other field")]
    pub fn new(key: ConsumerKey, secret: Secret, name: String, created_at: UnixTime) -> Self {
        let members = json!({ "key": key, "name": name, "created_at": created_at });
        let consumer: Self = serde_json::from_value(members).expect("a consumer");
        Self { secret, ..consumer }
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

    /// Whether its secret proves something, or it is allowed not to.
    pub fn may_have_its_secret(&self) -> bool {
        !self.secret.is_empty() || self.accepts_empty_secret()
    }

    /// Whether it is allowed a secret that proves nothing.
    pub fn accepts_empty_secret(&self) -> bool {
        self.accept.contains(&Deviation::EmptySecret)
    }
}

/// The last verified call of a consumer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerUse {
    /// The consumer.
    pub consumer: ConsumerKey,
    /// The time of it; uses are written in batches.
    pub last_used_at: UnixTime,
    /// The signature method, in its registered spelling; `None`, here and below, if the use comes from an imported token.
    pub method: Option<String>,
    /// The base string that was signed.
    pub dialect: Option<Dialect>,
}

/// A person with a local account (RFC 5849 §1.1: the resource owner). Serde leaves the password hash out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
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
    /// A disabled user can neither log in nor be acted for.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// The time of its creation.
    pub created_at: UnixTime,
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

/// The iterations to which PBKDF2's are rounded up for its cost: systems that have raised the iterations with each
/// release hold hashes of ten numbers, and a login does the work of every cost there is.
pub const PBKDF2_STEPS: [u32; 3] = [75_000, 300_000, 1_200_000];

/// The cost of computing a hash, as the hash itself names it: everything before its salt, in one spelling for each
/// form. Not a secret. Empty for a text that is not a hash.
pub fn password_cost(hash: &Secret) -> String {
    let text = String::from_utf8_lossy(hash.expose());
    let parts: Vec<&str> = text.split('$').collect();
    match parts[..] {
        ["", "2a" | "2b" | "2y", cost, ..] => format!("$2b${cost}"),
        ["", "P" | "H", rest, ..] => format!("$P${}", rest.chars().next().unwrap_or_default()),
        ["", "S", rest, ..] => format!("$S${}", rest.chars().next().unwrap_or_default()),
        // SHA-crypt names its rounds only if they are not 5,000.
        ["", name @ ("5" | "6"), first, ..] => {
            let rounds = first.strip_prefix("rounds=").unwrap_or("5000");
            format!("${name}$rounds={}", rounds.parse().unwrap_or(0_u32))
        }
        ["", name @ ("pbkdf2-sha256" | "pbkdf2-sha512"), rounds, ..]
        | [name @ ("pbkdf2_sha256" | "pbkdf2_sha512"), rounds, ..] => {
            let iterations = pbkdf2_iterations(rounds).unwrap_or_default();
            let step = PBKDF2_STEPS.into_iter().find(|step| iterations <= *step);
            let name = name.replace('_', "-");
            format!("${name}${}", step.unwrap_or(iterations))
        }
        // The PHC form, whose salt is base64 without padding.
        ["", algorithm, ref rest @ ..] => {
            let params = rest.iter().take_while(|part| part.contains('='));
            params.fold(format!("${algorithm}"), |cost, part| {
                format!("{cost}${part}")
            })
        }
        _ => String::new(),
    }
}

/// Reads `29000`, or `i=29000` with or without `l=32` after it.
pub fn pbkdf2_iterations(text: &str) -> Option<u32> {
    let digits = match text.strip_prefix("i=") {
        Some(params) => params.split(",l=").next()?,
        None => text,
    };
    digits.parse().ok().filter(|iterations| *iterations > 0)
}

/// The place to which the user is sent after deciding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<String>", into = "Option<String>")]
pub enum Callback {
    /// Out of band: the verifier is shown to the user.
    Oob,
    /// The absolute URI that the consumer gave, checked against its registration.
    Uri(String),
}

impl From<Option<String>> for Callback {
    fn from(uri: Option<String>) -> Self {
        uri.map_or(Self::Oob, Self::Uri)
    }
}

impl From<Callback> for Option<String> {
    fn from(callback: Callback) -> Self {
        match callback {
            Callback::Oob => None,
            Callback::Uri(uri) => Some(uri),
        }
    }
}

/// The state of a request token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum RequestTokenState {
    /// Given out; the user has not decided.
    Issued,
    /// The user agreed; waits for the exchange.
    Authorized {
        /// The user who agreed.
        user: UserId,
        /// The verifier that the consumer must send.
        #[serde(skip)]
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

/// A request token (RFC 5849 §1.1: temporary credentials). Serde leaves the secrets out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestToken {
    /// The identifier.
    pub token: String,
    /// The shared secret.
    #[serde(skip)]
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
    #[serde(flatten)]
    pub state: RequestTokenState,
    /// Wrong verifiers shown so far, under a right signature.
    pub wrong_verifiers: u32,
}

/// An access token (RFC 5849 §1.1: token credentials). Serde leaves the secret out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
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
    /// The revocation time.
    pub revoked_at: Option<UnixTime>,
}

/// A browser session of a logged-in user. Serde leaves out the user and the cookie's hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
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
    /// The browser that logged in, one of a few names; `None`: it is not known.
    pub browser: Option<String>,
    /// The system on which the browser runs, one of a few names.
    pub system: Option<String>,
}
