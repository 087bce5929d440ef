//! Sessions of the console: in memory, opened by an admin token, and ended when that token is replaced.

pub(super) mod invitation;
pub(super) mod login;

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    time::Duration,
};

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    digest::{SHA256, digest},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::HeaderMap;
use parking_lot::Mutex;

use crate::{
    base::{
        clock::UnixTime,
        secret::{
            Secret,
            random::{self, NoRandomness},
        },
    },
    operator::{
        admin::tokens::{TokenHolder, Tokens},
        manage::Tool,
    },
    provider::pages::browser::cookies::{self, id_hash},
};

/// The lifetime of a session.
const LIFETIME: Duration = Duration::from_secs(8 * 3600);

/// The most sessions of each token. Another one ends the oldest of that token.
const MAX_SESSIONS: usize = 1_000;

/// The name of the cookie under a loopback host, where a browser speaks plain HTTP.
pub const COOKIE: &str = "countersign-console";
/// The name of the cookie under any other host: only https sets it, and only for this host.
pub const SECURE_COOKIE: &str = "__Host-countersign-console";

/// A session of an operator.
#[derive(Clone)]
pub(super) struct OperatorSession {
    /// The value of the cookie.
    pub(super) id: Secret,
    /// The holder of the token that opened it.
    pub(super) holder: TokenHolder,
}

impl OperatorSession {
    /// A text that this session alone reads again. Identifiers of tokens are not secret, but they are most of a
    /// credential, and an address stays in the history of the browser and in the logs of proxies.
    pub(super) fn sealed(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        let key = self.key();
        let nonce = key.and_then(|key| {
            let nonce = key.seal_in_place_append_tag(Aad::empty(), &mut bytes);
            nonce.ok()
        });
        let sealed = nonce.map(|nonce| [&nonce.as_ref()[..], &bytes].concat());
        URL_SAFE_NO_PAD.encode(sealed.unwrap_or_default())
    }

    /// The text that [`Self::sealed`] was given; `None` if this session has not sealed it.
    pub(super) fn opened(&self, sealed: &str) -> Option<String> {
        let mut bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, text) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let text = self.key()?.open_in_place(nonce, Aad::empty(), text).ok()?;
        String::from_utf8(text.to_vec()).ok()
    }

    /// Logs that it begins or ends.
    pub(super) fn audit(&self, event: &str, peer: Option<IpAddr>) {
        let token: &str = self.holder.kind.into();
        let (name, address) = (
            self.holder.name.as_deref(),
            peer.map(tracing::field::display),
        );
        tracing::info!(target: "audit", event, by = Tool::Console.name(), admin_token = token, admin_name = name, address);
    }

    fn key(&self) -> Option<RandomizedNonceKey> {
        let key = [b"sealed\0", self.id.expose()].concat();
        RandomizedNonceKey::new(&AES_256_GCM, digest(&SHA256, &key).as_ref()).ok()
    }
}

struct Opened {
    holder: TokenHolder,
    /// The hash of the token that opened it.
    token: Secret,
    until: UnixTime,
}

/// All sessions, by the SHA-256 of the cookie's value.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<[u8; 32], Opened>>);

impl Sessions {
    /// Opens a session for a token that was checked.
    pub(super) fn open(
        &self,
        tokens: &Tokens,
        holder: TokenHolder,
        now: UnixTime,
    ) -> Result<OperatorSession, NoRandomness> {
        let id = random::secret()?;
        let token = tokens.hash(&holder).cloned().unwrap_or_default();
        let mut sessions = self.0.lock();
        sessions.retain(|_, session| now < session.until);
        let alike = sessions
            .iter()
            .filter(|(_, session)| session.holder == holder);
        if alike.clone().count() >= MAX_SESSIONS
            && let Some((&oldest, _)) = alike.min_by_key(|(_, session)| session.until)
        {
            sessions.remove(&oldest);
        }
        let until = now.after(LIFETIME);
        let opened = Opened {
            holder: holder.clone(),
            token,
            until,
        };
        sessions.insert(id_hash(&id), opened);
        Ok(OperatorSession { id, holder })
    }

    /// Finds the session of a cookie. One whose token was replaced is ended.
    pub(super) fn find(
        &self,
        tokens: &Tokens,
        id: Secret,
        now: UnixTime,
    ) -> Option<OperatorSession> {
        let mut sessions = self.0.lock();
        let found = sessions.get(&id_hash(&id))?;
        if now < found.until && tokens.hash(&found.holder) == Some(&found.token) {
            let holder = found.holder.clone();
            return Some(OperatorSession { id, holder });
        }
        sessions.remove(&id_hash(&id));
        None
    }

    /// Ends those whose token was replaced; without tokens, all.
    pub(super) fn purge(&self, tokens: Option<&Tokens>) {
        let is_current = |session: &Opened| {
            tokens.is_some_and(|tokens| tokens.hash(&session.holder) == Some(&session.token))
        };
        self.0.lock().retain(|_, session| is_current(session));
    }

    pub(super) fn close(&self, session: &OperatorSession) {
        self.0.lock().remove(&id_hash(&session.id));
    }
}

/// The value of `Set-Cookie` that notes, for ten minutes, that the browser was sent to the console's own host name. It opens
/// no session.
pub(super) fn arrival_cookie(id: &Secret) -> String {
    let id = id.expose_text();
    format!(
        "{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age=600",
        *id
    )
}

/// The browsers that arrived at the console's own host name, the latest ones, by the SHA-256 of the id that they were sent
/// with.
#[derive(Default)]
pub(super) struct Arrivals(Mutex<VecDeque<[u8; 32]>>);

impl Arrivals {
    const MAX: usize = 100;

    pub(super) fn note(&self, id: &Secret) {
        let id = id_hash(id);
        let mut arrivals = self.0.lock();
        if !arrivals.contains(&id) {
            arrivals.truncate(Self::MAX - 1);
            arrivals.push_front(id);
        }
    }

    pub(super) fn has(&self, id: &Secret) -> bool {
        self.0.lock().contains(&id_hash(id))
    }
}

/// The cookie that a request has; `None` also for two.
pub(super) fn cookie(headers: &HeaderMap, is_secure: bool) -> Option<Secret> {
    cookies::read(headers, name(is_secure)).ok().flatten()
}

/// The value of `Set-Cookie` that gives the browser its session, or takes it away.
pub(super) fn set_cookie(session: Option<&OperatorSession>, is_secure: bool) -> String {
    let (name, secure) = (name(is_secure), if is_secure { "; Secure" } else { "" });
    let value = session.map(|session| session.id.expose_text());
    let value = value.as_deref().map_or("", |value| &**value);
    let age = session.map_or(0, |_| LIFETIME.as_secs());
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{secure}")
}

const fn name(is_secure: bool) -> &'static str {
    if is_secure { SECURE_COOKIE } else { COOKIE }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;
    use crate::operator::admin::tokens::TokenKind;

    const WRITE: TokenHolder = TokenHolder {
        kind: TokenKind::Write,
        name: None,
    };
    const READ: TokenHolder = TokenHolder {
        kind: TokenKind::Read,
        name: None,
    };

    /// Tokens that begin with these letters.
    fn tokens(write: &str, read: &str) -> Tokens {
        let folder = tempfile::tempdir().unwrap();
        let [write, read] = [("write", write), ("read", read)].map(|(name, token)| {
            let path = folder.path().join(name);
            fs::write(&path, format!("{token:x<32}")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            path
        });
        Tokens::read(&write, Some(&read)).unwrap()
    }

    #[test]
    fn a_session_reads_again_what_it_sealed_and_nothing_else() {
        let (sessions, tokens, now) = (Sessions::default(), tokens("w", "r"), UnixTime(1));
        let [one, other] = [(); 2].map(|()| sessions.open(&tokens, READ, now).unwrap());
        for text in ["", "9.a-token", "\u{fc}"] {
            let sealed = one.sealed(text);
            assert_eq!(one.opened(&sealed).as_deref(), Some(text));
            assert_ne!(one.sealed(text), sealed);
            assert_eq!(other.opened(&sealed), None);
            for wrong in [&sealed[1..], &format!("{sealed}A"), "", "a-token", "\u{fc}"] {
                assert_eq!(one.opened(wrong), None, "{wrong}");
            }
        }
    }

    #[test]
    fn sessions_of_the_read_token_end_no_session_of_the_other_one() {
        let (sessions, tokens, now) = (Sessions::default(), tokens("w", "r"), UnixTime(1));
        let writer = sessions.open(&tokens, WRITE, now).unwrap();
        let reader = sessions.open(&tokens, READ, now).unwrap();
        for _ in 0..MAX_SESSIONS {
            sessions.open(&tokens, READ, UnixTime(2)).unwrap();
        }
        assert!(sessions.find(&tokens, writer.id, now).is_some());
        assert!(sessions.find(&tokens, reader.id, now).is_none());
    }

    #[test]
    fn a_session_ends_after_eight_hours_for_good() {
        let (sessions, tokens) = (Sessions::default(), tokens("w", "r"));
        let opened = sessions.open(&tokens, WRITE, UnixTime(1));
        let id = opened.unwrap().id;
        for (now, is_open) in [(8 * 3600, true), (8 * 3600 + 1, false), (1, false)] {
            let found = sessions.find(&tokens, id.clone(), UnixTime(now));
            assert_eq!(found.is_some(), is_open, "{now}");
        }
    }

    #[test]
    fn a_token_that_comes_back_revives_no_session() {
        let (sessions, before, now) = (Sessions::default(), tokens("w", "r"), UnixTime(1));
        let writer = sessions.open(&before, WRITE, now).unwrap();
        let reader = sessions.open(&before, READ, now).unwrap();
        sessions.purge(Some(&tokens("other", "r")));
        assert!(sessions.find(&before, writer.id, now).is_none());
        assert!(sessions.find(&before, reader.id.clone(), now).is_some());
        sessions.purge(None);
        assert!(sessions.find(&before, reader.id, now).is_none());
    }

    #[test]
    fn session_ends_with_its_operators_token_or_name_alone() {
        let folder = tempfile::tempdir().unwrap();
        let read = |lines: &[&str]| {
            let path = folder.path().join("write");
            let lines = lines.iter().map(|line| format!("{line:x<40}\n"));
            fs::write(&path, lines.collect::<String>()).unwrap();
            Tokens::read(&path, None).unwrap()
        };
        let (sessions, before, now) = (
            Sessions::default(),
            read(&["alice:a", "bob:b"]),
            UnixTime(1),
        );
        let session = |name: &str| {
            let name = Some(name.into());
            let kind = TokenKind::Write;
            sessions
                .open(&before, TokenHolder { kind, name }, now)
                .unwrap()
        };
        let is_open = |tokens: &Tokens, session: &OperatorSession| {
            sessions.find(tokens, session.id.clone(), now).is_some()
        };
        let (alice, bob) = (session("alice"), session("bob"));
        assert!(is_open(&before, &alice) && is_open(&before, &bob));
        // Another token of bob; then alice's token has another name.
        assert!(!is_open(&read(&["alice:a", "bob:other"]), &bob));
        assert!(is_open(&before, &alice));
        assert!(!is_open(&read(&["alicia:a"]), &alice));
    }
}
