//! Bearer tokens (RFC 6750): those of our exchange, and those of the operator's own OAuth 2 servers (RFC 9068, RFC 7662).
//!
//! A token is proved by the signature of its issuer, or by the issuer's word. Nothing is looked up, and no server is asked,
//! for what a token says of itself before that.

mod issuer;
mod keys;
mod rejection;
pub mod settings;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::StatusCode;
use jsonwebtoken::dangerous::insecure_decode;
use thiserror::Error;

pub use self::rejection::BearerRejection;
use self::{
    issuer::{Check, Claims, Issuer},
    keys::KeySource,
    settings::IssuerSettings,
};
use crate::{
    base::{clock::UnixTime, cold::cold_from},
    records::{
        credentials::{BearerToken, Cached},
        values::{ExternalFault, StoreError},
    },
    wire::{outbound::OutboundError, server::tls::TlsError},
};

/// The longest token, in bytes.
const MAX_TOKEN_BYTES: usize = 8 << 10;

/// The name of the scheme in Authorization.
const SCHEME: &[u8] = b"Bearer";

/// The rules by which Bearer tokens are verified. A reload makes new ones.
pub struct BearerTokens {
    issuers: Vec<Issuer>,
    /// A number that no other value of this type has: tokens that others have verified do not count.
    number: u64,
}

/// The tokens of our exchange.
pub struct OwnTokens<'a> {
    /// Their issuer.
    pub issuer: String,
    /// Their audience.
    pub audience: &'a str,
    /// Their type.
    pub token_type: &'static str,
    /// The keys that sign them.
    pub jwk_set: &'a [u8],
}

/// Why tokens cannot be verified.
#[derive(Debug, Error)]
pub enum SetupError {
    /// A file of TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Another file.
    #[error("bearer.issuer.{key}: {}: {problem}", path.display())]
    File {
        /// The key.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Our own keys.
    #[error("bearer.own: {0}")]
    Own(IssuerFault),
}

impl SetupError {
    fn file(key: &'static str, path: &Path, problem: String) -> Self {
        let path = path.to_owned();
        Self::File { key, path, problem }
    }
}

/// Why an issuer cannot be asked.
#[derive(Debug, Error)]
pub enum IssuerFault {
    /// It has no response.
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    /// Its response has another status.
    #[error("responded {0}, and only 200 counts; redirects are not followed")]
    Status(StatusCode),
    /// It has no JWK set there.
    #[error("not a JWK set")]
    NotKeys,
    /// Its JWK set is of no use.
    #[error("the JWK set has no public key that can verify tokens")]
    NoKey,
    /// It has something else than the description of a token there.
    #[error("not the JSON object of RFC 7662")]
    NotClaims,
    /// Its keys were not read in time: the cause.
    #[error("{0}")]
    Unread(String),
}

/// Why a token is not verified.
#[derive(Debug)]
pub enum BearerError {
    /// A mistake of the caller.
    Rejection(BearerRejection),
    /// The issuer cannot be asked, or the store fails.
    Fault(StoreError),
}

cold_from!(BearerError {
    BearerRejection as it => Self::Rejection(it),
    StoreError as it => Self::Fault(it),
    IssuerFault as it => Self::Fault(it.into()),
});

impl From<IssuerFault> for StoreError {
    fn from(fault: IssuerFault) -> Self {
        let key = "bearer.issuer";
        Self::External(Arc::new(ExternalFault(key, fault.into())))
    }
}

/// The token of an Authorization field with the scheme Bearer; `None`: it has another one.
///
/// # Errors
/// [`BearerRejection::Request`]: it is not one token (RFC 6750 §2.1).
pub fn token(authorization: &[u8]) -> Option<Result<&[u8], BearerRejection>> {
    let (scheme, rest) = authorization.split_at_checked(SCHEME.len())?;
    let is_bearer = scheme.eq_ignore_ascii_case(SCHEME)
        && rest.first().is_none_or(|it| matches!(it, b' ' | b'\t'));
    is_bearer.then(|| {
        let token = rest.trim_ascii();
        let end = token
            .iter()
            .rposition(|&byte| byte != b'=')
            .map_or(0, |last| last + 1);
        let is_token_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(byte);
        match end > 0 && token[..end].iter().all(is_token_byte) {
            true if token.len() > MAX_TOKEN_BYTES => Err(BearerRejection::Request(
                "the Bearer token has more than 8192 bytes",
            )),
            true => Ok(token),
            false => Err(BearerRejection::Request(
                "Authorization has no token after Bearer, or something else with it",
            )),
        }
    })
}

/// Whether a token begins like a JWT or a JWE, with a JSON object, whatever is in it.
fn has_json_head(token: &[u8]) -> bool {
    let head = token.split(|&byte| byte == b'.').next();
    let head = head.filter(|head| head.len() < token.len());
    let text = head.and_then(|head| {
        // The bytes of whole groups are clear, however the last one is cut.
        let groups = head
            .chunks_exact(4)
            .flat_map(|group| URL_SAFE_NO_PAD.decode(group));
        let whole = URL_SAFE_NO_PAD.decode(head).ok();
        whole.or_else(|| Some(groups.flatten().collect()))
    });
    text.is_some_and(|text| text.trim_ascii_start().starts_with(b"{"))
}

impl BearerTokens {
    /// Accepts the tokens of these issuers; `None`: there are none. `before` are the rules that a reload replaces.
    ///
    /// # Errors
    /// [`SetupError`] names the key at fault.
    pub fn new(
        own: Option<&OwnTokens<'_>>,
        issuers: &[IssuerSettings],
        before: Option<&Self>,
    ) -> Result<Option<Self>, SetupError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let own = own.map(Issuer::own).transpose().map_err(SetupError::Own)?;
        let others = issuers.iter().map(|settings| {
            let before = before.and_then(|before| before.named(&settings.issuer.0));
            Issuer::new(settings, before)
        });
        let issuers = own.into_iter().map(Ok).chain(others);
        let issuers = issuers.collect::<Result<Vec<_>, _>>()?;
        Ok((!issuers.is_empty()).then(|| Self {
            issuers,
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
        }))
    }

    fn named(&self, name: &str) -> Option<&Issuer> {
        self.issuers.iter().find(|issuer| issuer.name == name)
    }

    /// The number of these rules, for [`Cached::bearer`].
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The cause, while an issuer cannot be asked for its keys.
    pub async fn trouble(&self) -> Option<String> {
        for issuer in &self.issuers {
            if let Check::Keys(KeySource::Remote(keys)) = &issuer.check
                && let Some(cause) = keys.trouble().await
            {
                return Some(format!("bearer.issuer: {}: {cause}", issuer.url));
            }
        }
        None
    }

    /// Verifies a token that is not in the cache, and keeps it there.
    ///
    /// # Errors
    /// [`BearerRejection`], and the faults of the issuer.
    pub async fn verify(
        &self,
        token: &[u8],
        cached: &Cached,
        now: UnixTime,
    ) -> Result<Arc<BearerToken>, BearerError> {
        let unknown = BearerRejection::Token(
            "the Bearer token is not one of an issuer that this service accepts",
        );
        // What a token says of itself only chooses the issuer whose keys have to prove it.
        let jwt = insecure_decode::<Claims>(token).ok();
        let issuer = match &jwt {
            Some(jwt) => jwt
                .claims
                .get("iss")
                .and_then(|iss| self.named(iss.as_str()?)),
            // Another server may accept it: no issuer sees a token that can be one of another.
            None if has_json_head(token) => None,
            None => self
                .issuers
                .iter()
                .find(|it| matches!(it.check, Check::Asked(..))),
        };
        let issuer = issuer.ok_or(unknown)?;
        match (&issuer.check, jwt) {
            (Check::Keys(keys), Some(jwt)) => {
                let claims = issuer.claims_of(token, jwt.header, keys, now).await?;
                let claims = issuer.read(&claims, self.number)?;
                Ok(cached.keep_bearer(token, claims, now))
            }
            (Check::Keys(_), None) => Err(unknown.into()),
            (Check::Asked(service, authorization), _) => {
                let ask = |is_refresh| async move {
                    let asking = issuer.ask(token, (service, authorization), is_refresh);
                    let claims = asking.await?;
                    Ok(claims.and_then(|claims| {
                        let claims = issuer.read(&claims, self.number);
                        claims.inspect_err(|problem| tracing::info!(issuer = issuer.name, %problem, "a token is not used")).ok()
                    }))
                };
                let found = cached.bearer_from(token, now, ask).await?;
                let found = found.filter(|found| found.claims.rules == self.number);
                let unknown = "the issuer of the Bearer token does not vouch for it";
                Ok(found.ok_or(BearerRejection::Token(unknown))?)
            }
        }
    }
}
