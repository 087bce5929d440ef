//! Browser sessions.

use std::num::NonZeroU32;

use super::{CHANGE, READ, SNAPSHOT, Store, WRITE, passes, tx::Tx, users};
use crate::{
    base::{clock::UnixTime, secret::Secret, text::names::UserId},
    records::{
        store::sql::tx::rows,
        values::{
            Result,
            record::{Session, User},
            use_cases::{Change, Guard, VerifiedPassword},
        },
    },
};

impl Store {
    /// Keeps a session, if its user is enabled and still has the password hash that was verified; else changes nothing
    /// and returns `false`. Also keeps [`VerifiedPassword::rehashed`], if there is one, without ending sessions. Until
    /// another password is set, an import regards the replaced hash as the same content.
    ///
    /// The user has at most `most` sessions afterwards: the oldest are ended.
    ///
    /// The check is part of this step: otherwise a login under way while the password changes would leave a session.
    pub async fn open_session(
        &self,
        session: Session,
        verified: VerifiedPassword,
        most: NonZeroU32,
    ) -> Result<bool> {
        self.run("open_session", WRITE, async |tx| {
            let id = &session.user;
            // Logins of one user are counted one after the other, and one of them replaces the hash. The user may have been
            // removed or disabled, or the password changed, while the password was checked.
            let find = format!(
                "SELECT * FROM countersign.users WHERE id = $1 {}",
                tx.statements().lock
            );
            let user = tx.row(&find, &[id.as_str().into()], rows::user).await?;
            let is_same = |user: &User| user.enabled && user.password_hash == verified.hash;
            let Some(user) = user.filter(is_same) else {
                return Ok(false);
            };
            if let Some(rehashed) = &verified.rehashed {
                let must_change = user.must_change_password;
                users::put_hash(tx, id, rehashed, must_change, verified.hash.as_ref()).await?;
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
    pub async fn change_password(
        &self,
        session: Session,
        verified: Secret,
        hash: Secret,
    ) -> Result<bool> {
        self.run("change_password", CHANGE, async |tx| {
            let user = users::find(tx, &session.user).await?;
            let is_same =
                |user: User| user.enabled && user.password_hash.as_ref() == Some(&verified);
            if !user.is_some_and(is_same) {
                return Ok(false);
            }
            users::set_password(tx, &session.user, &hash, false).await?;
            insert(tx, &session).await
        })
        .await
    }

    /// Finds the session that is not ended at `now`, with its enabled user.
    pub async fn session(
        &self,
        id_hash: &[u8; 32],
        now: UnixTime,
    ) -> Result<Option<(Session, User)>> {
        self.run("session", SNAPSHOT, async |tx| find(tx, id_hash, now).await)
            .await
    }

    /// Ends a session; a missing session is not an error.
    pub async fn close_session(&self, id_hash: &[u8; 32]) -> Result<()> {
        let delete = "DELETE FROM countersign.sessions WHERE id_hash = $1";
        self.run("close_session", WRITE, async |tx| {
            tx.execute(delete, &[id_hash.to_vec().into()])
                .await
                .map(drop)
        })
        .await
    }

    /// Lists a user's sessions that are not ended at `now`, the newest first.
    pub async fn sessions_of(&self, user: &UserId, now: UnixTime) -> Result<Vec<Session>> {
        let list = r#"SELECT * FROM countersign.sessions WHERE "user" = $1 AND expires_at > $2
             ORDER BY created_at DESC, id_hash"#;
        let params = [user.as_str().into(), now.into()];
        self.rows("sessions_of", READ, list, &params, rows::session)
            .await
    }

    /// Ends the session with this hash if it is one of the user's; `false`: it is not.
    pub async fn close_session_of(&self, user: &UserId, id_hash: &[u8; 32]) -> Result<bool> {
        let delete = r#"DELETE FROM countersign.sessions WHERE "user" = $1 AND id_hash = $2"#;
        self.run("close_session_of", WRITE, async |tx| {
            let params = [user.as_str().into(), id_hash.to_vec().into()];
            Ok(tx.execute(delete, &params).await? > 0)
        })
        .await
    }

    /// Ends all sessions of a user, except the one with the hash `except`; a missing session or user is not an error.
    /// `false`: `guard` rejects that, or there is a guard and no such user.
    pub async fn close_sessions(
        &self,
        user: &UserId,
        except: Option<&[u8; 32]>,
        guard: Guard<'_, User>,
    ) -> Result<bool> {
        self.run("close_sessions", WRITE, async |tx| {
            let is_wanted = guard.is_none() || passes(guard, users::find(tx, user).await?);
            if is_wanted {
                users::close_sessions(tx, user, except).await?;
            }
            Ok(is_wanted)
        })
        .await
    }
}

pub(super) async fn insert(tx: &mut Tx, session: &Session) -> Result<bool> {
    let mut columns = session.columns()?;
    columns.push(("id_hash", session.id_hash.to_vec().into()));
    Ok(tx.insert("sessions", columns, "").await? > 0)
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
