//! Which known mistake of a consumer would make the signature that was sent.
//!
//! A wrong signature looks like random bytes, and the consumer's author has no way to see what was expected. But the mistakes are
//! few: each of them is made here on purpose, one after the other, and the one whose outcome is the signature that was sent is the
//! one that was made. That takes about as long as two hundred checks; it is for a request that has been rejected already.

mod coding;
mod recipe;
mod table;
#[cfg(test)]
mod tests;

use self::recipe::Recipe;
pub use self::table::Mistake;
use super::{method::SignatureMethod, origin::Scheme, parameters::Parameters, rsa::RsaPublicKey};
use crate::secret::Secret;

/// A request whose signature did not hold, and the secrets that it should have been signed with.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The request method as sent.
    pub method: &'a [u8],
    /// The scheme of the base string URI.
    pub scheme: Scheme,
    /// Host and port of the base string URI, in any case.
    pub authority: &'a str,
    /// The path as sent.
    pub path: &'a [u8],
    /// The query as sent; empty if there is none.
    pub query: &'a [u8],
    /// All parameters that were read.
    pub parameters: &'a Parameters,
    /// A body that was not read as a form; empty if there is none.
    pub other_body: &'a [u8],
    /// The prefix of the public URL, where `path` begins with it.
    pub prefix: &'a str,
    /// Other URLs of this service and of the API behind it; the first [`MAX_URLS`] count.
    pub other_urls: &'a [OtherUrl],
    /// The callbacks that are registered for the consumer; the first [`MAX_CALLBACKS`] count.
    pub callbacks: &'a [String],
    /// The consumer's secret.
    pub consumer_secret: &'a Secret,
    /// The secret that the consumer had before, if it verifies no longer.
    pub previous_secret: Option<&'a Secret>,
    /// The token's secret; empty without a token.
    pub token_secret: &'a Secret,
    /// The consumer's public key.
    pub rsa: Option<&'a RsaPublicKey>,
    /// `oauth_signature_method`
    pub signature_method: SignatureMethod,
    /// `oauth_signature`, decoded.
    pub signature: &'a [u8],
}

/// A URL that a consumer may have signed in place of the one that it called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherUrl {
    /// The scheme.
    pub scheme: Scheme,
    /// The host in lower case, an IPv6 address in brackets.
    pub host: String,
    /// The port, the scheme's own included.
    pub port: u16,
    /// The path in front of the API's own, without a slash at its end; mostly empty.
    pub prefix: String,
    /// It is the API's own, which consumers do not call.
    pub internal: bool,
}

/// How many of [`Attempt::other_urls`] are tried.
pub const MAX_URLS: usize = 8;

/// How many of [`Attempt::callbacks`] are tried.
pub const MAX_CALLBACKS: usize = 4;

/// How the signature that was sent came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The mistakes, one or two.
    pub mistakes: Vec<Mistake>,
    /// The base string that the consumer signed.
    pub base_string: Vec<u8>,
}

/// Finds the one mistake that explains the signature.
#[must_use]
pub fn diagnose(attempt: &Attempt<'_>) -> Option<Diagnosis> {
    search(&Recipe::right(attempt), attempt, &[])
}

/// Finds one mistake, or else two that were made together; takes some hundred times as long as [`diagnose`].
#[must_use]
pub fn diagnose_thoroughly(attempt: &Attempt<'_>) -> Option<Diagnosis> {
    let right = Recipe::right(attempt);
    search(&right, attempt, &[]).or_else(|| {
        Mistake::ALL.iter().find_map(|&first| {
            first
                .make(&right, attempt)
                .iter()
                .find_map(|wrong| search(wrong, attempt, &[first]))
        })
    })
}

fn search(recipe: &Recipe, attempt: &Attempt<'_>, made: &[Mistake]) -> Option<Diagnosis> {
    Mistake::ALL
        .iter()
        .filter(|mistake| !made.contains(mistake))
        .find_map(|&mistake| {
            let wrong = mistake.make(recipe, attempt);
            let found = wrong.iter().find(|wrong| wrong.makes(attempt))?;
            Some(Diagnosis {
                mistakes: made.iter().copied().chain([mistake]).collect(),
                base_string: found.base_string(),
            })
        })
}
