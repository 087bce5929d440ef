//! Finds the known mistake of a consumer that makes the signature that was sent.
//!
//! A wrong signature looks like random bytes, and the consumer's author cannot see what was expected. But the mistakes are few:
//! each of them is made here on purpose, one after the other, and the one that leads to the signature that was sent is the one that
//! was made. This takes as long as several hundred checks, so it is for rejected requests only, and the caller bounds its time.

mod recipe;
mod table;
#[cfg(test)]
mod tests;

use std::{cell::Cell, fmt};

pub use self::recipe::Pair;
use self::{
    recipe::{Recipe, Target},
    table::TABLE,
};
use super::{
    method::SignatureMethod, name::ProtocolParameter, origin::Scheme, parameters::Parameters,
    rsa::RsaPublicKey,
};
use crate::secret::Secret;

/// A request whose signature is wrong, and the secrets that it should have been signed with. Nothing in it is borrowed, so that
/// another thread can examine it.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The request method as sent.
    pub method: Vec<u8>,
    /// The URL for which the request should have been signed.
    pub url: CalledUrl,
    /// The parameters, decoded, in the order in which they came; without `oauth_signature`.
    pub parameters: Vec<Pair>,
    /// The realm of the Authorization header field.
    pub realm: Option<Vec<u8>>,
    /// A body that is not a form; empty if there is none.
    pub other_body: Vec<u8>,
    /// The secrets and the key of the consumer.
    pub secrets: Secrets,
    /// Other URLs of this service and of the API behind it; the first [`MAX_URLS`] are tried.
    pub other_urls: Vec<OtherUrl>,
    /// The callbacks that are registered for the consumer; the first [`MAX_CALLBACKS`] are tried.
    pub callbacks: Vec<String>,
    /// `oauth_signature_method`
    pub signature_method: SignatureMethod,
    /// `oauth_signature`, decoded.
    pub signature: Vec<u8>,
}

/// The URL of an [`Attempt`].
#[derive(Debug, Clone)]
pub struct CalledUrl {
    /// The scheme.
    pub scheme: Scheme,
    /// Host and port, in any case.
    pub authority: String,
    /// The path as sent.
    pub path: Vec<u8>,
    /// The query as sent; empty if there is none.
    pub query: Vec<u8>,
    /// The path prefix of the public URL, where `path` begins with it; else empty.
    pub prefix: String,
}

/// The secrets of an [`Attempt`].
#[derive(Debug, Clone)]
pub struct Secrets {
    /// The consumer's secret.
    pub consumer: Secret,
    /// The secret that the consumer had before, if it verifies no longer.
    pub previous: Option<Secret>,
    /// The token's secret; empty without a token.
    pub token: Secret,
    /// The consumer's public key.
    pub rsa: Option<RsaPublicKey>,
}

/// A URL that a consumer may have signed in place of the one that it called.
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
    /// It is the API's own, which consumers do not call.
    pub internal: bool,
}

/// How many of [`Attempt::other_urls`] are tried.
pub const MAX_URLS: usize = 8;

/// How many of [`Attempt::callbacks`] are tried.
pub const MAX_CALLBACKS: usize = 4;

/// The parameters of a request as [`Attempt::parameters`] holds them.
#[must_use]
pub fn pairs(parameters: &Parameters) -> Vec<Pair> {
    let signature = ProtocolParameter::Signature.as_str().as_bytes();
    let signed = parameters
        .iter()
        .filter(|parameter| parameter.name != signature);
    let pair = signed.map(|parameter| Pair {
        place: parameter.place,
        name: parameter.name.to_vec(),
        value: parameter.value.to_vec(),
    });
    pair.collect()
}

/// A mistake that consumers are known to make when they sign: a row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mistake(usize);

impl Mistake {
    /// All of them, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..TABLE.len()).map(Self)
    }

    /// The fixed word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        TABLE[self.0].word
    }

    /// The advice for the consumer's author, in one sentence.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        TABLE[self.0].advice
    }

    /// Makes it: the ways to sign that it may lead to.
    fn make(self, recipe: &Recipe, attempt: &Attempt) -> Vec<Recipe> {
        (TABLE[self.0].make)(recipe, attempt)
    }
}

impl fmt::Display for Mistake {
    /// `word: advice`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.word(), self.advice())
    }
}

impl fmt::Debug for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// How the signature that was sent came about.
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

/// Finds the one mistake that explains the signature. `may_go_on` is asked again and again, at most some ten microseconds of work
/// apart for a small request.
///
/// # Errors
/// [`Stopped`] once `may_go_on` says no.
pub fn diagnose(
    attempt: &Attempt,
    may_go_on: &dyn Fn() -> bool,
) -> Result<Option<Diagnosis>, Stopped> {
    let search = Search::new(attempt, may_go_on);
    let found = search.one(&Recipe::right(attempt), None, usize::MAX);
    search.result(found)
}

/// Finds one mistake, or else two that were made together; takes some fifty times as long as [`diagnose`].
#[must_use]
pub fn diagnose_thoroughly(attempt: &Attempt) -> Option<Diagnosis> {
    /// How many ways to make a mistake are tried together with another mistake.
    const WAYS: usize = 3;

    let search = Search::new(attempt, &|| true);
    let right = Recipe::right(attempt);
    search.one(&right, None, usize::MAX).or_else(|| {
        Mistake::all().find_map(|first| {
            let wrong = first.make(&right, attempt);
            let mut ways = wrong.iter().take(WAYS);
            ways.find_map(|wrong| search.one(wrong, Some(first), WAYS))
        })
    })
}

struct Search<'a> {
    attempt: &'a Attempt,
    /// The bytes that a way to sign has to lead to, for each reading of the signature.
    targets: Vec<Target>,
    may_go_on: &'a dyn Fn() -> bool,
    stopped: Cell<bool>,
}

impl<'a> Search<'a> {
    fn new(attempt: &'a Attempt, may_go_on: &'a dyn Fn() -> bool) -> Self {
        Self {
            attempt,
            targets: Target::all(attempt),
            may_go_on,
            stopped: Cell::new(false),
        }
    }

    fn result(&self, found: Option<Diagnosis>) -> Result<Option<Diagnosis>, Stopped> {
        match found {
            None if self.stopped.get() => Err(Stopped),
            found => Ok(found),
        }
    }

    /// Finds the mistake that leads from `recipe` to the signature, other than the one that led to `recipe`; of each mistake this
    /// many `ways` are tried.
    fn one(&self, recipe: &Recipe, made: Option<Mistake>, ways: usize) -> Option<Diagnosis> {
        // Nothing explains what no key of this consumer can have made.
        if self.targets.is_empty() {
            return None;
        }
        let mut others = Mistake::all().filter(|mistake| Some(*mistake) != made);
        others.find_map(|mistake| {
            let wrong = mistake.make(recipe, self.attempt);
            let mut wrong = wrong.iter().take(ways);
            let found = wrong.find(|wrong| self.matches(wrong))?;
            Some(Diagnosis {
                mistakes: made.into_iter().chain([mistake]).collect(),
                base_string: found.base_string().to_vec(),
            })
        })
    }

    fn matches(&self, recipe: &Recipe) -> bool {
        if self.stopped.get() || !(self.may_go_on)() {
            self.stopped.set(true);
            return false;
        }
        self.targets.iter().any(|target| recipe.leads_to(target))
    }
}
