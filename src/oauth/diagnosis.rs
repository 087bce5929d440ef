//! Finds the known mistake of a consumer that makes the signature that was sent.
//!
//! A wrong signature looks like random bytes, and the consumer's author cannot see what was expected. But the mistakes are few:
//! each of them is tried here, one after the other, and the one that makes the signature that was sent is reported.
//! This takes as long as several hundred checks, so it is for rejected requests only, and the caller bounds its time.

mod mistakes;
mod recipe;
#[cfg(test)]
mod tests;

pub use self::recipe::Pair;
use self::recipe::Recipe;
use super::{method::SignatureMethod, parameters::Parameters};
pub use crate::oauth::diagnosis::mistakes::Mistake;
use crate::{
    base::secret::Secret,
    oauth::{
        base_string::origin::Scheme, method::rsa::RsaPublicKey, parameters::name::ProtocolParameter,
    },
};

/// A request whose signature is wrong, and the secrets that it should have been signed with. Nothing in it is borrowed, so that
/// another thread can examine it.
#[derive(Debug, Clone)]
pub struct WrongSignature {
    /// The request method as sent.
    pub method: Vec<u8>,
    /// The scheme of the URL for which the request should have been signed.
    pub scheme: Scheme,
    /// Its host, in any case.
    pub host: String,
    /// Its port, if it has one.
    pub port: Option<u16>,
    /// Its path as sent.
    pub path: Vec<u8>,
    /// Its query as sent; empty if there is none.
    pub query: Vec<u8>,
    /// The path prefix of the public URL, where `path` begins with it; else empty.
    pub prefix: String,
    /// The parameters, decoded, in the order in which they came; without `oauth_signature`.
    pub parameters: Vec<Pair>,
    /// The realm of the Authorization header field.
    pub realm: Option<Vec<u8>>,
    /// A body that is not a form; empty if there is none.
    pub other_body: Vec<u8>,
    /// The consumer's secret.
    pub consumer_secret: Secret,
    /// The secret that the consumer had before, if it verifies no longer.
    pub previous_secret: Option<Secret>,
    /// The token's secret; empty without a token.
    pub token_secret: Secret,
    /// The consumer's public key.
    pub rsa: Option<RsaPublicKey>,
    /// Other URLs of this service and of the API behind it; the first [`MAX_URLS`] are tried.
    pub other_urls: Vec<OtherUrl>,
    /// The paths of token calls, each with the query that it needs, where the request came to one of them; the first
    /// [`MAX_PATHS`] are tried.
    pub token_paths: Vec<String>,
    /// The callbacks that are registered for the consumer; the first [`MAX_CALLBACKS`] are tried.
    pub callbacks: Vec<String>,
    /// `oauth_signature_method`
    pub signature_method: SignatureMethod,
    /// `oauth_signature`, decoded.
    pub signature: Vec<u8>,
}

/// A URL that a consumer may have signed instead of the one that it called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherUrl {
    /// The scheme.
    pub scheme: Scheme,
    /// The host in lower case, an IPv6 address in brackets.
    pub host: String,
    /// The port, also if it is the scheme's default.
    pub port: u16,
    /// The path before the API's own, without a slash at its end; mostly empty.
    pub prefix: String,
    /// It is the API's own, or that of the listener, which consumers do not call.
    pub internal: bool,
}

/// The word of a wrong signature that was not examined, or not to the end.
const SKIPPED: &str = "skipped";

/// At most this many of [`WrongSignature::other_urls`] are tried.
pub const MAX_URLS: usize = 8;

/// At most this many of [`WrongSignature::token_paths`] are tried.
pub const MAX_PATHS: usize = 12;

/// At most this many of [`WrongSignature::callbacks`] are tried.
pub const MAX_CALLBACKS: usize = 4;

/// The parameters of a request as [`WrongSignature::parameters`] holds them.
pub fn pairs(parameters: &Parameters) -> Vec<Pair> {
    let signature = ProtocolParameter::Signature.as_str().as_bytes();
    let signed = parameters.iter().filter(|it| it.name != signature);
    signed
        .map(|it| Pair::new(it.location, it.name, it.value))
        .collect()
}

/// The search for the mistake that made a wrong signature.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Diagnosed {
    /// This mistake made it.
    Known(Mistake),
    /// No known mistake made it, or none is looked for.
    #[default]
    Unknown,
    /// It was not looked for, or not to the end: the request is too large, or too many signatures are wrong at present.
    Skipped,
}

impl Diagnosed {
    /// The mistake, if it was found.
    #[must_use]
    pub const fn mistake(self) -> Option<Mistake> {
        match self {
            Self::Known(mistake) => Some(mistake),
            Self::Unknown | Self::Skipped => None,
        }
    }

    /// The word of logs and metrics.
    #[must_use]
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::Known(mistake) => Some(mistake.word()),
            Self::Skipped => Some(SKIPPED),
            Self::Unknown => None,
        }
    }

    /// Reads a [`word`](Self::word); [`Diagnosed::Unknown`] if it is not one.
    #[must_use]
    pub fn from_word(word: &str) -> Self {
        match word {
            SKIPPED => Self::Skipped,
            word => word.parse().map_or(Self::Unknown, Self::Known),
        }
    }
}

/// The explanation of the signature that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The mistakes, one or two.
    pub mistakes: Vec<Mistake>,
    /// The base string that the consumer signed.
    pub base_string: Vec<u8>,
}

/// The search ended before it had tried everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

/// Finds the one mistake that explains the signature. `may_go_on` is asked repeatedly, at most some ten microseconds of work
/// apart for a small request.
///
/// # Errors
/// [`Stopped`] once `may_go_on` returns false.
pub fn diagnose(
    attempt: &WrongSignature,
    may_go_on: &dyn Fn() -> bool,
) -> Result<Option<Diagnosis>, Stopped> {
    search(&Recipe::right(attempt), None, usize::MAX, may_go_on)
}

/// Finds one mistake, or else two that were made together; takes some fifty times as long as [`diagnose`].
pub fn diagnose_thoroughly(attempt: &WrongSignature) -> Option<Diagnosis> {
    /// The most ways to make a mistake that are tried together with another mistake.
    const WAYS: usize = 3;

    let right = Recipe::right(attempt);
    let search = |from: &_, made, ways| search(from, made, ways, &|| true).ok().flatten();
    search(&right, None, usize::MAX).or_else(|| {
        Mistake::ALL.iter().find_map(|&first| {
            let wrong = first.make(&right);
            let mut ways = wrong.iter().take(WAYS);
            ways.find_map(|wrong| search(wrong, Some(first), WAYS))
        })
    })
}

/// Finds the mistake that leads from `recipe` to the signature that was sent, other than the `first` one. Of each mistake
/// this many `ways` are tried.
fn search(
    recipe: &Recipe<'_>,
    first: Option<Mistake>,
    ways: usize,
    may_go_on: &dyn Fn() -> bool,
) -> Result<Option<Diagnosis>, Stopped> {
    for mistake in Mistake::ALL.iter().copied().filter(|it| Some(*it) != first) {
        let wrong = mistake.make(recipe);
        // No recipe leads to a signature that no key of this consumer can have made.
        let possible = wrong.iter().take(ways).filter(|it| !it.readings.is_empty());
        for wrong in possible {
            if !may_go_on() {
                return Err(Stopped);
            }
            if wrong.leads_to_sent() {
                return Ok(Some(Diagnosis {
                    mistakes: first.into_iter().chain([mistake]).collect(),
                    base_string: wrong.base_string().to_vec(),
                }));
            }
        }
    }
    Ok(None)
}
