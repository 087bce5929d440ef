//! Browser sessions.

use std::num::NonZeroU32;

use async_trait::async_trait;

use super::{Engine, Mode, Pace, READ, SNAPSHOT, Tx, WRITE, passes, run, users};
use crate::{
    base::{clock::UnixTime, names::UserId, secret::Secret},
    records::store::{
        Result,
        port::{Change, Guard, VerifiedPassword},
        record::{Session, User},
        rows,
    },
};

/// Browser sessions.
#[async_trait]
pub trait Sessions: Engine {
    /// Keeps a session, if its user is enabled and still has the password hash that was verified; else changes nothing
    /// and returns `false`. Also keeps [`VerifiedPassword::rehashed`], if there is one, without ending sessions. Until
    /// another password is set, an import regards the replaced hash as the same content.
    ///
    /// The user has at most `most` sessions afterwards: the oldest are ended.
    ///
    /// The check is part of this step: otherwise a login under way while the password changes would leave a session.
    async fn open_session(
        &self,
        session: Session,
        verified: VerifiedPassword,
        most: NonZeroU32,
    ) -> Result<bool> {
        run(self, "open_session", WRITE, async |tx| {
            let id = &session.user;
            // Logins of one user are counted one after the other, and one of them replaces the hash. The user may have been
            // removed or disabled, or the password changed, while the password was checked.
            let find = format!(
                "SELECT * FROM countersign.users WHERE id = $1 {}",
                tx.statements().lock
            );
            let user = tx.row(&find, &[id.as_str().into()], rows::user).await?;
            if user.is_none_or(|user| !user.enabled || user.password_hash != verified.hash) {
                return Ok(false);
            }
            if let Some(rehashed) = &verified.rehashed {
                users::put_hash(tx, id, rehashed, verified.hash.as_ref()).await?;
                tx.changed(Change::User(id.clone()));
            }
            // Before the insertion: sessions of the same second have no order, and the new one must stay.
            tx.execute(
                r#"DELETE FROM countersign.sessions WHERE id_hash IN
                     (SELECT id_hash FROM countersign.sessions WHERE "user" = $1
                      ORDER BY created_at DESC LIMIT 1000000 OFFSET $2)"#,
                &[id.as_str().into(), i64::from(most.get() - 1).into()],
            )
            .await?;
            insert(tx, &session).await
        })
        .await
    }

    /// Sets another password and keeps a session, which is then the only one of its user, if the user is enabled and still
    /// has the hash `verified`; else changes nothing and returns `false`. Access tokens stay.
    ///
    /// The check is part of this step: if two changes race, neither is lost unnoticed.
    async fn change_password(
        &self,
        session: Session,
        verified: Secret,
        hash: Secret,
    ) -> Result<bool> {
        run(
            self,
            "change_password",
            (Mode::Alone, Pace::Request),
            async |tx| {
                let user = users::find(tx, &session.user).await?;
                let is_same =
                    |user: &User| user.enabled && user.password_hash.as_ref() == Some(&verified);
                if !user.is_some_and(|user| is_same(&user)) {
                    return Ok(false);
                }
                users::set_password(tx, &session.user, &hash).await?;
                insert(tx, &session).await
            },
        )
        .await
    }

    /// Finds the session that is not ended at `now`, with its enabled user.
    async fn session(&self, id_hash: &[u8; 32], now: UnixTime) -> Result<Option<(Session, User)>> {
        run(self, "session", SNAPSHOT, async |tx| {
            find(tx, id_hash, now).await
        })
        .await
    }

    /// Ends a session; a missing session is not an error.
    async fn close_session(&self, id_hash: &[u8; 32]) -> Result<()> {
        let delete = "DELETE FROM countersign.sessions WHERE id_hash = $1";
        run(self, "close_session", WRITE, async |tx| {
            tx.execute(delete, &[id_hash.to_vec().into()])
                .await
                .map(drop)
        })
        .await
    }

    /// Lists a user's sessions that are not ended at `now`, the newest first.
    async fn sessions_of(&self, user: &UserId, now: UnixTime) -> Result<Vec<Session>> {
        let list = r#"SELECT * FROM countersign.sessions WHERE "user" = $1 AND expires_at > $2
             ORDER BY created_at DESC, id_hash"#;
        run(self, "sessions_of", READ, async |tx| {
            let params = [user.as_str().into(), now.into()];
            tx.rows(list, &params, rows::session).await
        })
        .await
    }

    /// Ends the session with this hash if it is one of the user's; `false`: it is not.
    async fn close_session_of(&self, user: &UserId, id_hash: &[u8; 32]) -> Result<bool> {
        let delete = r#"DELETE FROM countersign.sessions WHERE "user" = $1 AND id_hash = $2"#;
        run(self, "close_session_of", WRITE, async |tx| {
            let params = [user.as_str().into(), id_hash.to_vec().into()];
            Ok(tx.execute(delete, &params).await? > 0)
        })
        .await
    }

    /// Ends all sessions of a user, except the one with the hash `kept`; a missing session or user is not an error.
    /// `false`: `guard` rejects that, or there is a guard and no such user.
    async fn close_sessions(
        &self,
        user: &UserId,
        kept: Option<&[u8; 32]>,
        guard: Guard<'_, User>,
    ) -> Result<bool> {
        run(self, "close_sessions", WRITE, async |tx| {
            let is_wanted = guard.is_none() || passes(guard, users::find(tx, user).await?);
            if is_wanted {
                close_all(tx, user, kept).await?;
            }
            Ok(is_wanted)
        })
        .await
    }
}

impl<E: Engine + ?Sized> Sessions for E {}

pub(super) async fn insert(tx: &mut Tx, session: &Session) -> Result<bool> {
    let insert = r#"INSERT INTO countersign.sessions (id_hash, "user", created_at, expires_at, browser, system)
             VALUES ($1, $2, $3, $4, $5, $6)"#;
    let params = [
        session.id_hash.to_vec().into(),
        session.user.as_str().into(),
        session.created_at.into(),
        session.expires_at.into(),
        session.browser.as_deref().into(),
        session.system.as_deref().into(),
    ];
    Ok(tx.execute(insert, &params).await? > 0)
}

pub(super) async fn find(
    tx: &mut Tx,
    id_hash: &[u8; 32],
    now: UnixTime,
) -> Result<Option<(Session, User)>> {
    let find = "SELECT * FROM countersign.sessions WHERE id_hash = $1 AND expires_at > $2";
    let params = [id_hash.to_vec().into(), now.into()];
    let Some(session) = tx.row(find, &params, rows::session).await? else {
        return Ok(None);
    };
    let user = users::find(tx, &session.user).await?;
    Ok(user.filter(|user| user.enabled).map(|user| (session, user)))
}

pub(super) async fn close_all(tx: &mut Tx, user: &UserId, kept: Option<&[u8; 32]>) -> Result<()> {
    let delete = r#"DELETE FROM countersign.sessions WHERE "user" = $1 AND id_hash <> $2"#;
    // No hash is empty.
    let kept = kept.map_or_else(Vec::new, |kept| kept.to_vec());
    let params = [user.as_str().into(), kept.into()];
    tx.execute(delete, &params).await.map(drop)
}
