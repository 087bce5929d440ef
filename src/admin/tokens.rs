//! The bearer tokens of the admin API and the console (RFC 6750 §2.1), and the limit of failed ones.

use std::{
    fs::File,
    io::Read as _,
    net::{IpAddr, Ipv4Addr},
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::Duration,
};

use aws_lc_rs::digest::{SHA256, digest};
use http::{HeaderMap, header};
use moka::sync::Cache;
use thiserror::Error;

use crate::{
    clock::Clock, fields::single, login::Throttle, peer::network, policy::rate::Rate,
    secret::Secret,
};

/// The longest token, in bytes.
const MAX_TOKEN_BYTES: usize = 1024;

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
        "expected one line of 1 to 1024 visible ASCII characters; make one with openssl rand -hex 32"
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
        let mut content = zeroize::Zeroizing::new(Vec::with_capacity(2 * MAX_TOKEN_BYTES));
        let longest = MAX_TOKEN_BYTES as u64 + 3;
        File::open(path)?.take(longest).read_to_end(&mut content)?;
        let line = content.strip_suffix(b"\n").unwrap_or(&content);
        let token = line.strip_suffix(b"\r").unwrap_or(line);
        let is_token = (1..=MAX_TOKEN_BYTES).contains(&token.len());
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
    /// The address has failed too often, and its tokens are not checked for this long.
    #[error("too many wrong tokens")]
    Throttled(Duration),
}

/// Failed tokens of one address (an IPv6 /64), and the time in which they count.
const FAILURES: Rate = Rate {
    count: NonZeroU32::new(30).unwrap(),
    period: Duration::from_secs(15 * 60),
};

/// The factor by which the limit is higher for an address from which a right token has come.
const KNOWN: NonZeroU32 = NonZeroU32::new(10).unwrap();

/// Counts wrong tokens by address. Past the limit the address must wait, and none of its tokens is checked. The limit
/// is higher for an address from which a right token has come within the last day: a tool with an old token must not
/// lock out an operator at the same address at once.
pub struct Gate {
    failures: Throttle,
    failures_of_known: Throttle,
    known: Cache<IpAddr, ()>,
    clock: Clock,
}

impl Gate {
    /// Counts nothing yet.
    pub fn new(clock: Clock) -> Self {
        Self {
            failures: Throttle::new(FAILURES, &Secret::default()),
            failures_of_known: Throttle::new(
                Rate {
                    count: FAILURES.count.saturating_mul(KNOWN),
                    ..FAILURES
                },
                &Secret::default(),
            ),
            known: Cache::builder()
                .max_capacity(1_000)
                .time_to_idle(Duration::from_secs(86_400))
                .build(),
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
        // All callers on a Unix socket count as one.
        let address = peer.map_or(Ipv4Addr::UNSPECIFIED.into(), network);
        let now = self.clock.now();
        let failures = match self.known.contains_key(&address) {
            true => &self.failures_of_known,
            false => &self.failures,
        };
        let attempt = failures
            .begin("", address, now)
            .map_err(|throttled| Denied::Throttled(throttled.retry_after))?;
        let Some(kind) = tokens.check(presented) else {
            tracing::warn!(%address, "wrong admin token");
            return Err(Denied::Wrong);
        };
        failures.succeeded(&attempt, now);
        self.known.insert(address, ());
        Ok(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::UnixTime;

    const WRITE: &[u8] = b"the token that writes";
    const READ: &[u8] = b"the token that reads";

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
        let good = write("good", "a-token\n");
        assert_eq!(
            Tokens::read(&good, None).unwrap().check(b"a-token"),
            Some(TokenKind::Write)
        );
        let long = "x".repeat(1025);
        for (content, problem) in [
            ("", "expected one line"),
            ("\n", "expected one line"),
            ("two\nlines\n", "expected one line"),
            ("a b", "expected one line"),
            ("é", "expected one line"),
            (&long, "expected one line"),
            ("a-token", "has the token of admin.token_file"),
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
    fn an_address_that_guesses_waits_and_one_that_knew_a_token_guesses_more() {
        let clock = Clock::manual(UnixTime(1_700_000_000));
        let (gate, tokens) = (Gate::new(clock.clone()), tokens());
        let peer = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        let guess = |last| gate.check(&tokens, b"guess", peer(last));
        let right = |last| gate.check(&tokens, READ, peer(last));
        assert_eq!(right(1), Ok(TokenKind::Read));
        for (last, limit) in [(1, 300), (2, 30)] {
            for number in 0..limit {
                assert_eq!(guess(last), Err(Denied::Wrong), "{number}");
            }
            assert!(matches!(guess(last), Err(Denied::Throttled(_))));
            assert!(
                matches!(right(last), Err(Denied::Throttled(_))),
                "not even the right one"
            );
        }
        assert_eq!(right(3), Ok(TokenKind::Read), "another address");
        clock.advance(Duration::from_secs(31));
        assert_eq!(right(2), Ok(TokenKind::Read));
        for _ in 0..60 {
            assert_eq!(guess(2), Err(Denied::Wrong));
        }
        assert_eq!(right(2), Ok(TokenKind::Read), "a known address has more");
    }
}
