//! Sessions of the console: in memory, opened by an admin token, and ended when that token is replaced.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::HeaderMap;

use crate::{
    admin::tokens::{TokenKind, Tokens},
    clock::UnixTime,
    issue::random::{self, NoRandomness},
    pages::cookies::{self, id_hash},
    secret::Secret,
};

/// How long a session lasts.
const LIFETIME: Duration = Duration::from_secs(8 * 3600);

/// How many sessions there are at most. Another one ends the oldest.
const MAX_SESSIONS: usize = 1_000;

/// The name of the cookie on a loopback listener, where a browser speaks plain HTTP.
pub const COOKIE: &str = "countersign-console";
/// The name of the cookie on any other listener: only https sets it, and only for this host.
pub const SECURE_COOKIE: &str = "__Host-countersign-console";

/// A session of an operator.
#[derive(Clone)]
pub(super) struct Session {
    /// The value of the cookie.
    pub(super) id: Secret,
    /// The kind of the token that opened it.
    pub(super) kind: TokenKind,
}

struct Opened {
    kind: TokenKind,
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
        kind: TokenKind,
        now: UnixTime,
    ) -> Result<Session, NoRandomness> {
        let id = random::secret()?;
        let token = tokens.hash(kind).cloned().unwrap_or_default();
        let mut sessions = self.lock();
        sessions.retain(|_, session| now < session.until);
        if sessions.len() >= MAX_SESSIONS
            && let Some(oldest) = sessions.iter().min_by_key(|(_, session)| session.until)
        {
            let oldest = *oldest.0;
            sessions.remove(&oldest);
        }
        let until = now.after(LIFETIME);
        sessions.insert(id_hash(&id), Opened { kind, token, until });
        Ok(Session { id, kind })
    }

    /// Finds the session of a cookie. One whose token was replaced is ended.
    pub(super) fn find(&self, tokens: &Tokens, id: Secret, now: UnixTime) -> Option<Session> {
        let mut sessions = self.lock();
        let found = sessions.get(&id_hash(&id))?;
        if now < found.until && tokens.hash(found.kind) == Some(&found.token) {
            let kind = found.kind;
            return Some(Session { id, kind });
        }
        sessions.remove(&id_hash(&id));
        None
    }

    pub(super) fn close(&self, session: &Session) {
        self.lock().remove(&id_hash(&session.id));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Opened>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The cookie that a request has; `None` also for two.
pub(super) fn cookie(headers: &HeaderMap, is_secure: bool) -> Option<Secret> {
    cookies::read(headers, name(is_secure)).ok().flatten()
}

/// The value of `Set-Cookie` that gives the browser its session, or takes it away.
pub(super) fn set_cookie(session: Option<&Session>, is_secure: bool) -> String {
    let (name, secure) = (name(is_secure), if is_secure { "; Secure" } else { "" });
    let value = session.map(|session| session.id.expose_text());
    let value = value.as_deref().map_or("", |value| &**value);
    let age = session.map_or(0, |_| LIFETIME.as_secs());
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{secure}")
}

const fn name(is_secure: bool) -> &'static str {
    if is_secure { SECURE_COOKIE } else { COOKIE }
}
