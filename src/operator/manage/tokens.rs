//! Access tokens without the browser flow, and revocation.

use std::time::Duration;

use super::{InvalidInput, ManageError, Management, Operator, change::guarded};
use crate::{
    base::{clock::UnixTime, secret::random, text::names::Permission},
    records::values::{
        record::{AccessToken, Consumer, TokenBeginning, User},
        use_cases::{Added, Guard, TokenFilter},
    },
    telemetry::{
        audit::CommandRecord,
        redact::{RedactedToken, SHOWN_TOKEN_CHARS},
    },
};

impl Operator<'_> {
    /// Issues an access token; without `permissions` it grants all that the consumer has.
    ///
    /// # Errors
    /// [`ManageError::UserDisabled`], [`ManageError::PermissionMissing`], [`ManageError::Gone`], a failure of the store or of
    /// the random generator.
    pub async fn issue_token(
        &self,
        consumer: &Consumer,
        user: &User,
        mut permissions: Vec<Permission>,
    ) -> Result<AccessToken, ManageError> {
        if !user.enabled {
            return Err(ManageError::UserDisabled(user.name.clone()));
        }
        let missing = permissions
            .iter()
            .find(|asked| !consumer.permissions.contains(asked));
        if let Some(permission) = missing {
            return Err(ManageError::PermissionMissing {
                consumer: consumer.key.clone(),
                permission: permission.clone(),
            });
        }
        if permissions.is_empty() {
            permissions.clone_from(&consumer.permissions);
        } else {
            permissions.sort();
            permissions.dedup();
        }
        let (now, lifetime) = (self.manage.clock.now(), self.manage.tokens.access_ttl.0);
        let token = AccessToken {
            token: random::token()?,
            secret: random::secret()?,
            permissions,
            consumer: consumer.key.clone(),
            user: user.id.clone(),
            issued_at: now,
            expires_at: lifetime.map(|lifetime| now.after(lifetime)),
            last_used_at: None,
            last_used_from: None,
            revoked_at: None,
            began: TokenBeginning::Issued,
            with_display_name: false,
        };
        if self.manage.store.issue_access_token(token.clone()).await? == Added::Taken {
            return Err(ManageError::Gone);
        }
        self.audit(about("access_token_issued", &token)).await;
        Ok(token)
    }

    /// Revokes an access token for good; revoking twice keeps the first time.
    ///
    /// # Errors
    /// [`ManageError::TokenUnknown`], [`ManageError::Stale`], or the store fails.
    pub async fn revoke_token(
        &self,
        token: &AccessToken,
        guard: Guard<'_, AccessToken>,
    ) -> Result<(), ManageError> {
        let (store, now) = (&self.manage.store, self.manage.clock.now());
        let revoke = async |guard: Guard<'_, AccessToken>| {
            store.revoke_access_token(&token.token, now, guard).await
        };
        if !guarded(guard, revoke).await? {
            return Err(ManageError::TokenUnknown);
        }
        self.audit(about("token_revoked", token)).await;
        Ok(())
    }

    /// Revokes all access tokens that a filter finds, some in each transaction, so that others who write are not held up;
    /// returns how many were not revoked before. A filter that finds all revokes nothing.
    ///
    /// # Errors
    /// [`ManageError::Invalid`] if all that the filter says is that they are unused for less than a second. The store fails;
    /// then some may be revoked, which is recorded.
    pub async fn revoke_tokens(
        &self,
        filter: TokenFilter,
        unused_for: Option<Duration>,
    ) -> Result<u64, ManageError> {
        /// How many are revoked in one transaction.
        const AT_ONCE: u32 = 10_000;
        /// The shortest time by which alone tokens are found.
        const SHORTEST: Duration = Duration::from_secs(1);

        if filter.user.is_none()
            && filter.consumer.is_none()
            && unused_for.is_some_and(|duration| duration < SHORTEST)
        {
            let problem = "less than 1s finds all tokens; give a longer time, or name a consumer or a user too";
            return Err(InvalidInput::member("unused_for", problem).into());
        }
        let mut about = CommandRecord::counting("tokens_revoked", []);
        about.user = filter.user.as_ref().map(ToString::to_string);
        about.consumer = filter.consumer.as_ref().map(ToString::to_string);
        let filter = TokenFilter {
            unused_since: self.manage.unused_since(unused_for),
            ..filter
        };
        let (mut all, now) = (0, self.manage.clock.now());
        let last = loop {
            let revoked = self
                .manage
                .store
                .revoke_access_tokens(&filter, now, AT_ONCE);
            match revoked.await {
                Ok(revoked) => {
                    all += revoked;
                    if revoked < u64::from(AT_ONCE) {
                        break Ok(all);
                    }
                }
                Err(error) => break Err(error),
            }
        };
        about.counts.insert("revoked".to_owned(), all);
        self.audit(about).await;
        Ok(last?)
    }
}

impl Management {
    /// Finds an access token by itself or by the first characters that the log shows of it; with `live` only one that is not
    /// revoked.
    ///
    /// # Errors
    /// [`ManageError::TokenUnknown`], [`ManageError::TokenAmbiguous`], or the store fails.
    pub async fn token(&self, token: &str, live: bool) -> Result<AccessToken, ManageError> {
        Ok(self.token_found(token, live).await?.0)
    }

    /// As [`Self::token`], with the time at which the application had it, if it is one of the application.
    ///
    /// # Errors
    /// As [`Self::token`].
    pub async fn token_found(
        &self,
        token: &str,
        live: bool,
    ) -> Result<(AccessToken, Option<UnixTime>), ManageError> {
        // A line of the log ends them so.
        let token = token.strip_suffix('…').unwrap_or(token);
        if let Some((found, source)) = self.store.access_token_from(token, None, false).await? {
            let is_wanted = !live || found.revoked_at.is_none();
            let found = (found, self.looked_up_at(source));
            return is_wanted.then_some(found).ok_or(ManageError::TokenUnknown);
        }
        if token.chars().count() != SHOWN_TOKEN_CHARS || token.contains('\0') {
            return Err(ManageError::TokenUnknown);
        }
        // Identifiers are listed in their order, so those that begin with these characters come next.
        let filter = TokenFilter {
            live,
            ..TokenFilter::default()
        };
        let mut next = self.store.access_tokens(&filter, Some(token), 2).await?;
        next.retain(|next| next.token.starts_with(token));
        match (next.pop(), next.pop()) {
            (Some(found), None) => Ok((found, None)),
            (None, _) => Err(ManageError::TokenUnknown),
            (Some(_), Some(_)) => Err(ManageError::TokenAmbiguous(token.to_owned())),
        }
    }

    /// The times at which a token ends that has not ended, and does within this time.
    pub fn ends_within(&self, time: Duration) -> (UnixTime, UnixTime) {
        let now = self.clock.now();
        (now, now.after(time))
    }
}

fn about(event: &str, token: &AccessToken) -> CommandRecord {
    CommandRecord {
        event: event.to_owned(),
        consumer: Some(token.consumer.to_string()),
        user: Some(token.user.to_string()),
        token: Some(RedactedToken(&token.token).to_string()),
        ..CommandRecord::default()
    }
}
