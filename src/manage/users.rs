//! Local accounts.

use super::{Actor, ManageError, Management};
use crate::{
    clock::UnixTime,
    issue::random,
    names::UserId,
    secret::Secret,
    store::{port::Added, record::User},
    telemetry::audit::CommandRecord,
};

/// An enabled account that is not in the store yet and has no password. The id is random unless given.
///
/// # Errors
/// The random generator fails.
pub fn new_user(
    id: Option<UserId>,
    name: String,
    display_name: Option<String>,
    now: UnixTime,
) -> Result<User, ManageError> {
    Ok(User {
        id: id.map_or_else(random::name, Ok)?,
        name,
        display_name,
        password_hash: None,
        enabled: true,
        created_at: now,
    })
}

impl Management {
    /// Makes an account.
    ///
    /// # Errors
    /// [`ManageError::UserExists`], [`ManageError::UserIdTaken`], or the store fails.
    pub async fn add_user(&self, by: &Actor, user: &User) -> Result<(), ManageError> {
        if self.store.add_user(user.clone()).await? == Added::Added {
            self.audit_user(by, "user_added", &user.id).await;
            return Ok(());
        }
        self.check_name(&user.name).await?;
        Err(ManageError::UserIdTaken(user.id.clone()))
    }

    /// Checks that no user has this login name, without regard to ASCII case.
    ///
    /// # Errors
    /// [`ManageError::UserExists`], or the store fails.
    pub async fn check_name(&self, name: &str) -> Result<(), ManageError> {
        match self.store.user_by_name(name).await? {
            Some(_) => Err(ManageError::UserExists(name.to_owned())),
            None => Ok(()),
        }
    }

    /// Finds a user by login name or id.
    ///
    /// # Errors
    /// [`ManageError::UserUnknown`], [`ManageError::UserAmbiguous`], or the store fails.
    pub async fn user(&self, name_or_id: &str) -> Result<User, ManageError> {
        let by_name = self.store.user_by_name(name_or_id).await?;
        let by_id = match name_or_id.parse() {
            Ok(id) => self.store.user(&id).await?,
            Err(_) => None,
        };
        match (by_name, by_id) {
            (Some(named), Some(other)) if named.id != other.id => {
                Err(ManageError::UserAmbiguous(name_or_id.to_owned()))
            }
            (named, other) => named
                .or(other)
                .ok_or_else(|| ManageError::UserUnknown(name_or_id.to_owned())),
        }
    }

    /// Lists users by their ids, from after `after`, at most `limit`.
    ///
    /// # Errors
    /// The store fails.
    pub async fn users(
        &self,
        after: Option<&UserId>,
        limit: u32,
    ) -> Result<Vec<User>, ManageError> {
        Ok(self.store.users(after, limit).await?)
    }

    /// Sets the password hash of a user, and ends the user's sessions.
    ///
    /// # Errors
    /// [`ManageError::UserUnknown`], or the store fails.
    pub async fn set_password(
        &self,
        by: &Actor,
        user: &User,
        hash: Secret,
    ) -> Result<(), ManageError> {
        let is_done = self.store.set_password(&user.id, hash).await?;
        self.done(by, is_done, "password_changed", user).await
    }

    /// Enables or disables a user. Disabling ends sessions and access tokens; they stay ended.
    ///
    /// # Errors
    /// [`ManageError::UserUnknown`], or the store fails.
    pub async fn set_user_enabled(
        &self,
        by: &Actor,
        mut user: User,
        enabled: bool,
    ) -> Result<User, ManageError> {
        let event = if enabled {
            "user_enabled"
        } else {
            "user_disabled"
        };
        let now = self.clock.now();
        let is_done = self.store.set_user_enabled(&user.id, enabled, now).await?;
        self.done(by, is_done, event, &user).await?;
        user.enabled = enabled;
        Ok(user)
    }

    /// Removes a user with sessions and access tokens. The id is never used again.
    ///
    /// # Errors
    /// [`ManageError::UserUnknown`], or the store fails.
    pub async fn remove_user(&self, by: &Actor, user: &User) -> Result<(), ManageError> {
        let is_done = self.store.remove_user(&user.id, self.clock.now()).await?;
        self.done(by, is_done, "user_removed", user).await
    }

    /// Records the event, unless the user was removed since it was found.
    async fn done(
        &self,
        by: &Actor,
        is_done: bool,
        event: &str,
        user: &User,
    ) -> Result<(), ManageError> {
        if !is_done {
            return Err(ManageError::UserUnknown(user.name.clone()));
        }
        self.audit_user(by, event, &user.id).await;
        Ok(())
    }

    async fn audit_user(&self, by: &Actor, event: &str, id: &UserId) {
        let about = CommandRecord {
            event: event.to_owned(),
            user: Some(id.to_string()),
            ..CommandRecord::default()
        };
        self.audit(by, about).await;
    }
}
