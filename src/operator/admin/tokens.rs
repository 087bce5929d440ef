//! The bearer tokens of the admin API and the console (RFC 6750 §2.1), and the limit of failed ones.

use std::{
    fs::File,
    io::Read as _,
    net::{IpAddr, Ipv4Addr},
    num::NonZeroU32,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use aws_lc_rs::digest::{SHA256, digest};
use http::{HeaderMap, header};
use thiserror::Error;

use crate::{
    base::{clock::Clock, http_fields::single, peer::network, rate::Rate, secret::Secret},
    provider::login::{Throttle, throttle::Throttled},
};

/// The length of a token, in bytes. A shorter one could be guessed: a right token is accepted at any rate.
const TOKEN_BYTES: RangeInclusive<usize> = 32..=1024;

/// The rights that a token gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum TokenKind {
    /// To read and to change everything.
    Write,
    /// To read.
    Read,
}

/// Why the file of a token cannot be used.
#[derive(Debug, Error)]
#[error("{key}: {}: {problem}", path.display())]
pub struct TokenFileError {
    key: &'static str,
    path: PathBuf,
    #[source]
    problem: FileProblem,
}

#[derive(Debug, Error)]
enum FileProblem {
    #[error("cannot read the file; check the path and its rights")]
    Read(#[from] std::io::Error),
    #[error(
        "expected one line of 32 to 1024 visible ASCII characters; make one with openssl rand -hex 32"
    )]
    Shape,
    #[error(
        "has the token of admin.token_file, with which everything can be changed; write another"
    )]
    Same,
}

/// The tokens. Only their SHA-256 is kept, so that a comparison takes the same time whatever the length.
pub struct Tokens {
    write: Secret,
    read: Option<Secret>,
}

impl Tokens {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TokenFileError`] names the key, the file and the fix.
    pub fn read(write: &Path, read: Option<&Path>) -> Result<Self, TokenFileError> {
        let write = hash_of_file("admin.token_file", write)?;
        let read = read.map(|path| {
            let (key, path) = ("admin.read_token_file", path.to_owned());
            match hash_of_file(key, &path)? {
                same if same == write => {
                    let problem = FileProblem::Same;
                    Err(TokenFileError { key, path, problem })
                }
                hash => Ok(hash),
            }
        });
        Ok(Self {
            read: read.transpose()?,
            write,
        })
    }

    /// The kind of a token; `None`: it is not valid.
    pub fn check(&self, presented: &[u8]) -> Option<TokenKind> {
        let presented = hash(presented);
        // Both are compared, whatever the first comparison finds.
        let (is_write, is_read) = (
            presented == self.write,
            Some(&presented) == self.read.as_ref(),
        );
        match (is_write, is_read) {
            (true, _) => Some(TokenKind::Write),
            (_, true) => Some(TokenKind::Read),
            _ => None,
        }
    }

    /// The SHA-256 of the token of a kind, if there is one. A session ends once the hash of its token has changed.
    pub const fn hash(&self, kind: TokenKind) -> Option<&Secret> {
        match kind {
            TokenKind::Write => Some(&self.write),
            TokenKind::Read => self.read.as_ref(),
        }
    }
}

fn hash(token: &[u8]) -> Secret {
    digest(&SHA256, token).as_ref().to_vec().into()
}

fn hash_of_file(key: &'static str, path: &Path) -> Result<Secret, TokenFileError> {
    let read = || -> Result<Secret, FileProblem> {
        // Never grown, so that no copy of the token is left in freed memory.
        let mut content = zeroize::Zeroizing::new(Vec::with_capacity(2 * TOKEN_BYTES.end()));
        let longest = *TOKEN_BYTES.end() as u64 + 3;
        File::open(path)?.take(longest).read_to_end(&mut content)?;
        let line = content.strip_suffix(b"\n").unwrap_or(&content);
        let token = line.strip_suffix(b"\r").unwrap_or(line);
        let is_token = TOKEN_BYTES.contains(&token.len());
        match is_token && token.iter().all(u8::is_ascii_graphic) {
            true => Ok(hash(token)),
            false => Err(FileProblem::Shape),
        }
    };
    read().map_err(|problem| TokenFileError {
        key,
        path: path.to_owned(),
        problem,
    })
}

/// Why a request is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Denied {
    /// The request has no bearer token.
    #[error("a bearer token is needed")]
    Missing,
    /// The token is neither the write token nor the read token.
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
/// tool with an old token, or a stranger at the same proxy, could lock all operators out. No limit is needed to make
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
    ) -> Result<TokenKind, Denied> {
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
    ) -> Result<TokenKind, Denied> {
        if let Some(kind) = tokens.check(presented) {
            return Ok(kind);
        }
        // All callers on a Unix socket count as one.
        let address = peer.map_or(Ipv4Addr::UNSPECIFIED.into(), network);
        let throttled = self.failures.begin("", address, self.clock.now()).err();
        if let Some(Throttled { retry_after }) = throttled {
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
        Tokens {
            write: hash(WRITE),
            read: Some(hash(READ)),
        }
    }

    #[test]
    fn tells_the_tokens_apart_and_takes_no_other() {
        let tokens = tokens();
        assert_eq!(tokens.check(WRITE), Some(TokenKind::Write));
        assert_eq!(tokens.check(READ), Some(TokenKind::Read));
        for wrong in [
            &b""[..],
            b"the token",
            b"the token that writes ",
            &READ[1..],
        ] {
            assert_eq!(tokens.check(wrong), None);
        }
    }

    #[test]
    fn reads_one_line_of_visible_characters() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let good = write("good", &format!("{GOOD}\n"));
        assert_eq!(
            Tokens::read(&good, None).unwrap().check(GOOD.as_bytes()),
            Some(TokenKind::Write)
        );
        let long = "x".repeat(1025);
        for (content, problem) in [
            ("", "expected one line"),
            ("\n", "expected one line"),
            (&GOOD[1..], "expected one line of 32"),
            (&format!("{GOOD}\n{GOOD}\n"), "expected one line"),
            (&format!("{GOOD} b"), "expected one line"),
            (&format!("{GOOD}é"), "expected one line"),
            (&long, "expected one line"),
            (GOOD, "has the token of admin.token_file"),
        ] {
            let path = write("bad", content);
            let error = Tokens::read(&good, Some(&path)).err().unwrap().to_string();
            assert!(error.starts_with("admin.read_token_file: "), "{error}");
            assert!(error.contains(problem), "{content:?}: {error}");
        }
        let error = Tokens::read(&directory.path().join("none"), None);
        assert!(error.err().unwrap().to_string().contains("cannot read"));
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
        assert_eq!(guard.check(&tokens, READ, peer(1)), Ok(TokenKind::Read));
        assert_eq!(guess(1), Err(Denied::Throttled(pause)), "it ends no pause");
        assert_eq!(guess(2), Err(Denied::Wrong), "another address");
        clock.advance(pause);
        assert_eq!(guess(1), Err(Denied::Wrong));
        assert_eq!(guess(1), Err(Denied::Throttled(2 * pause)));
    }
}
