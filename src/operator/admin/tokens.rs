//! The bearer tokens of the admin API and the console (RFC 6750 §2.1), and the limit of failed ones.

use std::{
    net::{IpAddr, Ipv4Addr},
    num::NonZeroU32,
    path::Path,
    sync::Arc,
    time::Duration,
};

use aws_lc_rs::digest::{SHA256, digest};
use http::{HeaderMap, header};
use thiserror::Error;

pub use super::token_file::TokenFileError;
use super::token_file::{self, Entry, FileProblem};
use crate::{
    base::{
        clock::Clock,
        network::{http_fields::single, peer::network},
        rate::Rate,
        secret::Secret,
    },
    provider::login::Throttle,
};

/// The rights that a token gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum TokenKind {
    /// To read and to change everything.
    Write,
    /// To read.
    Read,
    /// To report changes of the records of `store.lookup`, and nothing else.
    Lookup,
}

/// Whose a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenHolder {
    /// The rights.
    pub kind: TokenKind,
    /// The name in front of the token in its file; `None`: the file has one token and no names.
    pub name: Option<Arc<str>>,
}

/// The tokens. Only their SHA-256 is kept, so that a comparison takes the same time whatever the length.
pub struct Tokens(Vec<(TokenHolder, Secret)>);

impl Tokens {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TokenFileError`] names the key, the file, the line and the fix.
    pub fn read(write: &Path, read: Option<&Path>) -> Result<Self, TokenFileError> {
        let mut tokens = Self(Vec::new());
        tokens.add(TokenKind::Write, "admin.token_file", write)?;
        if let Some(read) = read {
            tokens.add(TokenKind::Read, "admin.read_token_file", read)?;
        }
        Ok(tokens)
    }

    /// The first token of the file of a key that can read.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn first(key: &'static str, path: &Path) -> Result<Secret, TokenFileError> {
        let entries = token_file::read(path).map(Vec::into_iter);
        let first = entries.map(|mut entries| entries.find(|entry| !entry.is_for_lookup));
        let first = first.map(|entry| entry.map(|entry| entry.token).unwrap_or_default());
        first.map_err(|problem| TokenFileError::new(key, path, problem))
    }

    fn add(
        &mut self,
        kind: TokenKind,
        key: &'static str,
        path: &Path,
    ) -> Result<(), TokenFileError> {
        let failed = |problem| TokenFileError::new(key, path, problem);
        for Entry {
            name,
            is_for_lookup,
            token,
        } in token_file::read(path).map_err(failed)?
        {
            let kind = if is_for_lookup {
                TokenKind::Lookup
            } else {
                kind
            };
            let hash = hash(token.expose());
            // Another token of the same file is another problem, which reading it has found.
            if self.0.iter().any(|(_, known)| *known == hash) {
                return Err(failed(FileProblem::Same));
            }
            self.0.push((TokenHolder { kind, name }, hash));
        }
        Ok(())
    }

    /// The holder of a token; `None`: it is not valid.
    pub fn check(&self, presented: &[u8]) -> Option<TokenHolder> {
        let presented = hash(presented);
        // All are compared, whatever a comparison finds.
        let found = self
            .0
            .iter()
            .fold(None, |found, (holder, token)| match presented == *token {
                true => Some(holder),
                false => found,
            });
        found.cloned()
    }

    /// The SHA-256 of a holder's token, if it still is one. A session ends once the hash of its token has changed.
    pub fn hash(&self, holder: &TokenHolder) -> Option<&Secret> {
        let found = self.0.iter().find(|(known, _)| known == holder);
        found.map(|(_, hash)| hash)
    }

    /// The number of tokens of a kind.
    pub fn count(&self, kind: TokenKind) -> usize {
        self.0
            .iter()
            .filter(|(holder, _)| holder.kind == kind)
            .count()
    }

    /// The kinds whose file has one token, with a name that looks like the first half of a token that has a colon in it.
    pub fn doubtful_names(&self) -> impl Iterator<Item = TokenKind> {
        let is_one = |kind| kind != TokenKind::Lookup && self.count(kind) == 1;
        let doubtful = self.0.iter().filter(move |(holder, _)| {
            let name = holder.name.as_deref();
            is_one(holder.kind) && name.is_some_and(token_file::is_like_token)
        });
        doubtful.map(|(holder, _)| holder.kind)
    }

    /// A holder whose rights are those of `admin.token_file`.
    pub fn any_writer(&self) -> TokenHolder {
        let mut holders = self.0.iter().map(|(holder, _)| holder);
        let writer = holders.find(|holder| holder.kind == TokenKind::Write);
        writer.cloned().unwrap_or(TokenHolder {
            kind: TokenKind::Write,
            name: None,
        })
    }
}

fn hash(token: &[u8]) -> Secret {
    digest(&SHA256, token).as_ref().to_vec().into()
}

/// Why a request is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Denied {
    /// The request has no bearer token.
    #[error("a bearer token is needed")]
    Missing,
    /// The token is not one of the files.
    #[error("the bearer token is wrong")]
    Wrong,
    /// It is wrong too, and the address has failed too often: it must wait this long.
    #[error("too many wrong tokens")]
    Throttled(Duration),
}

/// Failed tokens of one address (an IPv6 /64), and the time in which they count.
const FAILURES: Rate = Rate {
    count: NonZeroU32::new(30).unwrap(),
    period: Duration::from_secs(15 * 60),
};

/// Counts wrong tokens by address. Past the limit the address must wait. A right token is accepted all the same: else a
/// tool with an old token, or another caller at the same proxy, could lock all operators out. No limit is needed to make
/// guessing hopeless, since a token has at least 32 characters.
pub struct AdminTokenGuard {
    failures: Throttle,
    clock: Clock,
}

impl AdminTokenGuard {
    /// Counts nothing yet.
    pub fn new(clock: Clock) -> Self {
        Self {
            failures: Throttle::new(FAILURES, &Secret::default()),
            clock,
        }
    }

    /// Checks the token of a request by its `Authorization`.
    ///
    /// # Errors
    /// [`Denied`]
    pub fn authenticate(
        &self,
        tokens: &Tokens,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
    ) -> Result<TokenHolder, Denied> {
        let field = single(headers, &header::AUTHORIZATION).ok().flatten();
        let field = field.and_then(|field| field.split_at_checked(7));
        let field = field.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"Bearer "));
        let (_, token) = field.ok_or(Denied::Missing)?;
        self.check(tokens, token, peer)
    }

    /// Checks a token.
    ///
    /// # Errors
    /// [`Denied::Wrong`], and [`Denied::Throttled`] for an address that has presented too many wrong ones.
    pub fn check(
        &self,
        tokens: &Tokens,
        presented: &[u8],
        peer: Option<IpAddr>,
    ) -> Result<TokenHolder, Denied> {
        if let Some(holder) = tokens.check(presented) {
            return Ok(holder);
        }
        // All callers on a Unix socket count as one.
        let address = peer.map_or(Ipv4Addr::UNSPECIFIED.into(), network);
        let throttled = self.failures.begin("", address, self.clock.now()).err();
        if let Some(retry_after) = throttled {
            return Err(Denied::Throttled(retry_after));
        }
        tracing::warn!(%address, "wrong admin token");
        Err(Denied::Wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::UnixTime;

    const WRITE: &[u8] = b"the token that writes";
    const READ: &[u8] = b"the token that reads";
    const GOOD: &str = "a-token-of-32-characters-0123456";

    fn tokens() -> Tokens {
        let holder = |kind, name: Option<&str>| TokenHolder {
            kind,
            name: name.map(Arc::from),
        };
        Tokens(vec![
            (holder(TokenKind::Write, None), hash(WRITE)),
            (holder(TokenKind::Read, Some("alice")), hash(READ)),
            (holder(TokenKind::Read, Some("bob")), hash(b"another")),
        ])
    }

    #[test]
    fn tells_the_tokens_apart_and_takes_no_other() {
        let tokens = tokens();
        let check = |token: &[u8]| {
            let holder = tokens.check(token)?;
            Some((holder.kind, holder.name.as_deref().map(str::to_owned)))
        };
        assert_eq!(check(WRITE), Some((TokenKind::Write, None)));
        let name = |name: &str| Some((TokenKind::Read, Some(name.to_owned())));
        assert_eq!(check(READ), name("alice"));
        assert_eq!(check(b"another"), name("bob"));
        for wrong in [
            &b""[..],
            b"the token",
            b"the token that writes ",
            &READ[1..],
            b"alice:the token that reads",
        ] {
            assert_eq!(check(wrong), None);
        }
    }

    #[test]
    fn a_token_of_both_files_is_rejected() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let good = write("good", GOOD);
        let holder = Tokens::read(&good, None).unwrap().check(GOOD.as_bytes());
        assert_eq!(holder.unwrap().kind, TokenKind::Write);
        for same in [GOOD.to_owned(), format!("alice:{GOOD}\n")] {
            let path = write("same", &same);
            let error = Tokens::read(&good, Some(&path)).err().unwrap().to_string();
            assert!(error.starts_with("admin.read_token_file: "), "{error}");
            assert!(error.contains("has a token of admin.token_file"), "{error}");
        }
        // One that can only report changes opens nothing else.
        let file = write(
            "scoped",
            &format!("shop:{GOOD} lookup\nalice:{:x<32}", "alice"),
        );
        let tokens = Tokens::read(&file, None).unwrap();
        assert_eq!(
            tokens.check(GOOD.as_bytes()).unwrap().kind,
            TokenKind::Lookup
        );
        assert_eq!(tokens.any_writer().name.as_deref(), Some("alice"));
        let first = Tokens::first("admin.token_file", &file).unwrap();
        assert_eq!(*first.expose_text(), format!("{:x<32}", "alice"));
        // One person may have both.
        let [one, other] = ["write", "read"].map(|kind| write(kind, &format!("alice:{kind:x<32}")));
        let tokens = Tokens::read(&one, Some(&other)).unwrap();
        let kinds = ["write", "read"].map(|kind| {
            let holder = tokens.check(format!("{kind:x<32}").as_bytes()).unwrap();
            (holder.kind, holder.name.as_deref() == Some("alice"))
        });
        assert_eq!(kinds, [(TokenKind::Write, true), (TokenKind::Read, true)]);
    }

    #[test]
    fn an_address_that_guesses_waits_but_a_right_token_does_not() {
        let clock = Clock::manual(UnixTime(1_700_000_000));
        let (guard, tokens) = (AdminTokenGuard::new(clock.clone()), tokens());
        let peer = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        let guess = |last| guard.check(&tokens, b"guess", peer(last));
        for number in 0..30 {
            assert_eq!(guess(1), Err(Denied::Wrong), "{number}");
        }
        let pause = Duration::from_secs(30);
        assert_eq!(guess(1), Err(Denied::Throttled(pause)));
        assert_eq!(
            guard.check(&tokens, READ, peer(1)).unwrap().kind,
            TokenKind::Read
        );
        assert_eq!(guess(1), Err(Denied::Throttled(pause)), "it ends no pause");
        assert_eq!(guess(2), Err(Denied::Wrong), "another address");
        clock.advance(pause);
        assert_eq!(guess(1), Err(Denied::Wrong));
        assert_eq!(guess(1), Err(Denied::Throttled(2 * pause)));
    }
}
