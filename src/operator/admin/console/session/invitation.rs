//! Addresses that open one session of the console: the demo prints one.
//!
//! The token is in the query, because the console works without JavaScript. It is taken by the first GET, whose response
//! gives the cookie of a session and leads to an address without it; so what a history, a Referer or a log of a proxy may
//! keep opens nothing.

use std::time::Duration;

use parking_lot::Mutex;

use crate::{
    base::{
        clock::UnixTime,
        secret::{
            Secret,
            random::{self, NoRandomness},
        },
    },
    provider::pages::browser::cookies::id_hash,
};

/// The parameter of the token.
pub(crate) const PARAMETER: &str = "once";

/// An unused invitation ends after this time.
pub const LIFETIME: Duration = Duration::from_secs(15 * 60);

/// The invitation that is open, if there is one: the SHA-256 of its token, and its end.
#[derive(Default)]
pub(crate) struct Invitation(Mutex<Option<([u8; 32], UnixTime)>>);

impl Invitation {
    /// Makes the token of a new one, which replaces the one before it.
    pub(crate) fn open(&self, now: UnixTime) -> Result<Secret, NoRandomness> {
        let token = random::secret()?;
        *self.0.lock() = Some((id_hash(&token), now.after(LIFETIME)));
        Ok(token)
    }

    /// Whether this was its token, which is used once. Hashes are compared, so the time tells nothing about the token.
    pub(crate) fn take(&self, token: &str, now: UnixTime) -> bool {
        let hash = id_hash(&Secret::from(token));
        let taken = self.0.lock().take_if(|(expected, _)| *expected == hash);
        taken.is_some_and(|(_, until)| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_accepted_once_in_its_time_and_a_wrong_one_ends_none() {
        let invitation = Invitation::default();
        assert!(!invitation.take("", UnixTime(1)));
        let token = invitation.open(UnixTime(1)).unwrap();
        let token = token.expose_text();
        for wrong in ["", "x", &token[1..], &format!("{}x", *token)] {
            assert!(!invitation.take(wrong, UnixTime(1)), "{wrong}");
        }
        assert!(invitation.take(&token, UnixTime(900)));
        assert!(!invitation.take(&token, UnixTime(900)));

        let late = invitation.open(UnixTime(1)).unwrap();
        assert!(!invitation.take(&late.expose_text(), UnixTime(901)));
        assert!(!invitation.take(&late.expose_text(), UnixTime(1)));

        let first = invitation.open(UnixTime(1)).unwrap();
        let second = invitation.open(UnixTime(1)).unwrap();
        assert!(!invitation.take(&first.expose_text(), UnixTime(1)));
        assert!(invitation.take(&second.expose_text(), UnixTime(1)));
    }
}
