//! Local accounts.

use serde_json::{Map, Value};

use super::{
    ManageError, Management, Operator, USER_FIELDS,
    change::{changed, guarded},
    check_members,
    input::{merged, take_name},
};
use crate::{
    base::{
        clock::UnixTime,
        secret::{Secret, random},
        text::names::UserId,
    },
    records::values::{
        record::User,
        use_cases::{Added, Guard},
    },
    telemetry::audit::CommandRecord,
};

/// An account with these members, which is not in the store yet and has no password. The id is random unless given.
///
/// # Errors
/// [`ManageError::Invalid`], or the random generator fails.
pub fn new_user(mut members: Map<String, Value>, now: UnixTime) -> Result<User, ManageError> {
    let id = take_name(&mut members, "id")?;
    let id = id.map_or_else(random::name, Ok)?;
    patched(&User::new(id, String::new(), now), members)
}

/// A user after a JSON Merge Patch (RFC 7396); id and password stay. Only what is given is checked.
fn patched(user: &User, mut members: Map<String, Value>) -> Result<User, ManageError> {
    check_members(USER_FIELDS, &mut members)?;
    Ok(User {
        password_hash: user.password_hash.clone(),
        ..merged(user, members, &["id", "created_at"])?
    })
}

impl Operator<'_> {
    /// Makes an account, as [`new_user`] describes it.
    ///
    /// # Errors
    /// [`ManageError::UserExists`], [`ManageError::UserIdTaken`], or the store fails.
    pub async fn add_user(&self, user: &User) -> Result<(), ManageError> {
        if self.manage.store.add_user(user.clone()).await? == Added::Added {
            self.audit_user("user_added", &user.id).await;
            return Ok(());
        }
        self.manage.check_name(&user.name).await?;
        Err(ManageError::UserIdTaken(user.id.clone()))
    }

    /// Sets the password hash of a user, and whether the user has to choose another password, and ends the user's sessions.
    ///
    /// # Errors
    /// [`ManageError::UserUnknown`], [`ManageError::Stale`], or the store fails.
    pub async fn set_password(
        &self,
        user: &User,
        guard: Guard<'_, User>,
        hash: Secret,
        must_change: bool,
    ) -> Result<(), ManageError> {
        let store = &self.manage.store;
        let set = async |guard: Guard<'_, User>| {
            store.set_password(&user.id, hash, must_change, guard).await
        };
        if !guarded(guard, set).await? {
            return Err(ManageError::UserUnknown(user.name.clone()));
        }
        self.audit_user("password_changed", &user.id).await;
        Ok(())
    }

    /// Changes a user by a JSON Merge Patch (RFC 7396) of the members of its view. Disabling ends sessions and
    /// access tokens; they stay ended.
    ///
    /// # Errors
    /// [`ManageError::UserUnknown`], [`ManageError::UserExists`], [`ManageError::Invalid`], [`ManageError::Stale`], or the
    /// store fails.
    pub async fn patch_user(
        &self,
        id: &UserId,
        guard: Guard<'_, User>,
        members: &Map<String, Value>,
    ) -> Result<User, ManageError> {
        let patch = |user: &mut User| {
            *user = patched(user, members.clone())?;
            Ok(())
        };
        let (store, now) = (&self.manage.store, self.manage.clock.now());
        let update = async |apply: &(dyn Fn(&mut User) -> bool + Sync)| {
            store.update_user(id, now, apply).await
        };
        let name = members.get("name").and_then(Value::as_str);
        let taken = || ManageError::UserExists(name.unwrap_or_default().to_owned());
        let changed = changed(guard, &patch, update, taken).await?;
        let unknown = || ManageError::UserUnknown(id.to_string());
        let (user, (changed, changes)) = changed.ok_or_else(unknown)?;
        let event = match (&changed[..], user.enabled) {
            ([one], true) if one == "enabled" => "user_enabled",
            ([one], false) if one == "enabled" => "user_disabled",
            _ => "user_changed",
        };
        let about = CommandRecord {
            event: event.to_owned(),
            user: Some(id.to_string()),
            members: (event == "user_changed").then(|| changed.join(" ")),
            changes: (event == "user_changed").then_some(changes),
            ..CommandRecord::default()
        };
        self.audit(about).await;
        Ok(user)
    }

    /// Enables or disables a user, as [`Self::patch_user`] does.
    ///
    /// # Errors
    /// [`ManageError::UserUnknown`], [`ManageError::Stale`], or the store fails.
    pub async fn set_user_enabled(
        &self,
        id: &UserId,
        guard: Guard<'_, User>,
        enabled: bool,
    ) -> Result<User, ManageError> {
        let members = Map::from_iter([("enabled".to_owned(), enabled.into())]);
        self.patch_user(id, guard, &members).await
    }

    /// Removes a user with sessions and access tokens. The id is never used again.
    ///
    /// # Errors
    /// [`ManageError::UserUnknown`], [`ManageError::Stale`], or the store fails.
    pub async fn remove_user(
        &self,
        user: &User,
        guard: Guard<'_, User>,
    ) -> Result<(), ManageError> {
        let (store, now) = (&self.manage.store, self.manage.clock.now());
        let remove = async |guard: Guard<'_, User>| store.remove_user(&user.id, now, guard).await;
        if !guarded(guard, remove).await? {
            return Err(ManageError::UserUnknown(user.name.clone()));
        }
        self.audit_user("user_removed", &user.id).await;
        Ok(())
    }

    /// Ends all sessions of a user.
    ///
    /// # Errors
    /// [`ManageError::Stale`], or the store fails.
    pub async fn end_sessions(
        &self,
        user: &UserId,
        guard: Guard<'_, User>,
    ) -> Result<(), ManageError> {
        if !self.manage.store.close_sessions(user, None, guard).await? {
            return Err(ManageError::Stale);
        }
        self.audit_user("sessions_ended", user).await;
        Ok(())
    }

    /// Ends the pauses in which failed logins have put an account, at every address. `report` is the one of
    /// [`Throttle::report_of_end`](crate::provider::login::Throttle::report_of_end).
    ///
    /// # Errors
    /// The store fails.
    pub async fn end_login_pauses(&self, user: &UserId, report: String) -> Result<(), ManageError> {
        self.manage.store.record_end_of_login_pauses(report).await?;
        self.audit_user("login_pauses_ended", user).await;
        Ok(())
    }

    async fn audit_user(&self, event: &str, id: &UserId) {
        let about = CommandRecord {
            event: event.to_owned(),
            user: Some(id.to_string()),
            ..CommandRecord::default()
        };
        self.audit(about).await;
    }
}

impl Management {
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

    /// Finds a user by id.
    ///
    /// # Errors
    /// [`ManageError::UserUnknown`], or the store fails.
    pub async fn user_of_id(&self, id: &UserId) -> Result<User, ManageError> {
        let found = self.store.user(id).await?;
        found.ok_or_else(|| ManageError::UserUnknown(id.to_string()))
    }
}
