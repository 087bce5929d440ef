//! Browser sessions.

use super::tx::Tx;
use crate::{
    clock::UnixTime,
    names::UserId,
    secret::Secret,
    store::{
        StoreError,
        port::{Change, OpenSessions, VerifiedPassword},
        record::{Session, User},
        rows::{self, seconds},
    },
};

impl Tx {
    pub(super) async fn open_session(
        &mut self,
        session: &Session,
        verified: &VerifiedPassword,
    ) -> Result<bool, StoreError> {
        let id = &session.user;
        // Of two logins that hash the password anew, one does.
        if verified.rehashed.is_some() {
            self.exists(
                "SELECT 1 FROM users WHERE id = $1 FOR NO KEY UPDATE",
                &[&id.as_str()],
            )
            .await?;
        }
        // The user may have been removed or disabled, or the password changed, while the password was checked.
        let user = self.user(id).await?.filter(|user| user.enabled);
        if user.is_none_or(|user| user.password_hash != verified.hash) {
            return Ok(false);
        }
        if let Some(rehashed) = &verified.rehashed {
            self.put_hash(id, rehashed, verified.hash.as_ref()).await?;
            self.changed(Change::User(id.clone()));
        }
        self.insert_session(session).await?;
        Ok(true)
    }

    pub(super) async fn change_password(
        &mut self,
        session: &Session,
        verified: &Secret,
        hash: &Secret,
    ) -> Result<bool, StoreError> {
        let user = self.user(&session.user).await?.filter(|user| user.enabled);
        if user.is_none_or(|user| user.password_hash.as_ref() != Some(verified)) {
            return Ok(false);
        }
        self.set_password(&session.user, hash).await?;
        self.insert_session(session).await?;
        Ok(true)
    }

    async fn insert_session(&mut self, session: &Session) -> Result<(), StoreError> {
        self.run(
            r#"INSERT INTO sessions (id_hash, "user", created_at, expires_at) VALUES ($1, $2, $3, $4)"#,
            &[
                &session.id_hash.as_slice(),
                &session.user.as_str(),
                &seconds(session.created_at),
                &seconds(session.expires_at),
            ],
        )
        .await?;
        Ok(())
    }

    pub(super) async fn session(
        &mut self,
        id_hash: &[u8; 32],
        now: UnixTime,
    ) -> Result<Option<(Session, User)>, StoreError> {
        let row = self
            .first(
                "SELECT * FROM sessions WHERE id_hash = $1 AND expires_at > $2",
                &[&id_hash.as_slice(), &seconds(now)],
            )
            .await?;
        let Some(session) = row.as_ref().map(rows::session).transpose()? else {
            return Ok(None);
        };
        let user = self.user(&session.user).await?;
        Ok(user.filter(|user| user.enabled).map(|user| (session, user)))
    }

    pub(super) async fn close_session(&mut self, id_hash: &[u8; 32]) -> Result<(), StoreError> {
        self.run(
            "DELETE FROM sessions WHERE id_hash = $1",
            &[&id_hash.as_slice()],
        )
        .await?;
        Ok(())
    }

    pub(super) async fn open_sessions(
        &mut self,
        user: &UserId,
        now: UnixTime,
    ) -> Result<OpenSessions, StoreError> {
        let found = self
            .first(
                r#"SELECT count(*), min(created_at) FROM sessions WHERE "user" = $1 AND expires_at > $2"#,
                &[&user.as_str(), &seconds(now)],
            )
            .await?;
        let row = found.ok_or(StoreError::Broken("there is no count of sessions"))?;
        rows::open_sessions(row.try_get(0)?, row.try_get(1)?)
    }

    pub(super) async fn close_sessions(&mut self, user: &UserId) -> Result<(), StoreError> {
        self.run(
            r#"DELETE FROM sessions WHERE "user" = $1"#,
            &[&user.as_str()],
        )
        .await?;
        Ok(())
    }
}
