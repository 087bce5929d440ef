//! Browser sessions.

use rusqlite::params;

use super::tx::Tx;
use crate::{
    clock::UnixTime,
    names::UserId,
    secret::Secret,
    store::{
        StoreError,
        port::{OpenSessions, VerifiedPassword},
        record::{Session, User},
        rows::{self, seconds},
    },
};

impl Tx<'_> {
    pub(super) fn open_session(
        &self,
        session: &Session,
        verified: &VerifiedPassword,
    ) -> Result<bool, StoreError> {
        // The user may have been removed or disabled, or the password changed, while the password was checked.
        let user = self.enabled_user(&session.user)?;
        if user.is_none_or(|user| user.password_hash != verified.hash) {
            return Ok(false);
        }
        if let Some(rehashed) = &verified.rehashed {
            self.replace_hash(&session.user, verified.hash.as_ref(), rehashed)?;
        }
        self.insert_session(session)?;
        Ok(true)
    }

    pub(super) fn change_password(
        &self,
        session: &Session,
        verified: &Secret,
        hash: &Secret,
    ) -> Result<bool, StoreError> {
        let user = self.enabled_user(&session.user)?;
        if user.is_none_or(|user| user.password_hash.as_ref() != Some(verified)) {
            return Ok(false);
        }
        self.set_password(&session.user, hash)?;
        self.insert_session(session)?;
        Ok(true)
    }

    fn insert_session(&self, session: &Session) -> Result<(), StoreError> {
        self.run(
            "INSERT INTO sessions (id_hash, user, created_at, expires_at) VALUES (?1, ?2, ?3, ?4)",
            params![
                session.id_hash,
                session.user.as_str(),
                seconds(session.created_at),
                seconds(session.expires_at),
            ],
        )?;
        Ok(())
    }

    pub(super) fn session(
        &self,
        id_hash: &[u8; 32],
        now: UnixTime,
    ) -> Result<Option<(Session, User)>, StoreError> {
        let session = self.first(
            "SELECT * FROM sessions WHERE id_hash = ?1 AND expires_at > ?2",
            params![id_hash, seconds(now)],
            |row| rows::session(row),
        )?;
        let Some(session) = session else {
            return Ok(None);
        };
        let user = self.user(&session.user)?.filter(|user| user.enabled);
        Ok(user.map(|user| (session, user)))
    }

    pub(super) fn close_session(&self, id_hash: &[u8; 32]) -> Result<(), StoreError> {
        self.run("DELETE FROM sessions WHERE id_hash = ?1", [id_hash])?;
        Ok(())
    }

    pub(super) fn open_sessions(
        &self,
        user: &UserId,
        now: UnixTime,
    ) -> Result<OpenSessions, StoreError> {
        let found = self.first(
            "SELECT count(*), min(created_at) FROM sessions WHERE user = ?1 AND expires_at > ?2",
            params![user.as_str(), seconds(now)],
            |row| rows::open_sessions(row.get(0)?, row.get(1)?),
        )?;
        found.ok_or(StoreError::Broken("there is no count of sessions"))
    }

    pub(super) fn close_sessions(&self, user: &UserId) -> Result<(), StoreError> {
        self.run("DELETE FROM sessions WHERE user = ?1", [user.as_str()])?;
        Ok(())
    }
}
