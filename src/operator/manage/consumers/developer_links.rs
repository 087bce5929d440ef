//! Links by which the developer of a consumer sees its rejected calls.

use std::time::Duration;

use crate::{
    base::{
        clock::UnixTime,
        secret::{Secret, random},
        text::names::ConsumerKey,
    },
    operator::manage::{ManageError, Operator},
    provider::pages::{browser::cookies::id_hash, developer},
    request::{
        route::{FlowPaths, Page, ServiceCall},
        verify::Advice,
    },
};

/// The lifetime of a link.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// A link that has just been made. It is shown once: the store has only its hash.
pub struct NewLink {
    value: Secret,
    /// Its end.
    pub until: UnixTime,
}

impl NewLink {
    /// Its URL; `base` is the beginning of the service's own URLs.
    pub fn url(&self, base: &str, flow: &FlowPaths) -> String {
        let page = flow.best_of(ServiceCall::Page(Page::Developer));
        let value = self.value.expose_text();
        format!("{base}{page}&{}={}", developer::PARAMETER, *value)
    }
}

impl Operator<'_> {
    /// Makes the link of a consumer, which replaces the one before it.
    ///
    /// # Errors
    /// [`ManageError::ConsumerUnknown`], [`ManageError::ConsumerDisabled`], [`ManageError::AdviceOff`], a failure of the random
    /// generator, or the store fails.
    pub async fn make_developer_link(&self, key: &ConsumerKey) -> Result<NewLink, ManageError> {
        if self.manage.signature.advice == Advice::Off {
            return Err(ManageError::AdviceOff);
        }
        if !self.manage.consumer(key).await?.enabled {
            return Err(ManageError::ConsumerDisabled(key.clone()));
        }
        let value = random::secret()?;
        let until = self.manage.clock.now().after(LIFETIME);
        let hash = id_hash(&value);
        self.manage
            .store
            .put_developer_link(key, &hash, until)
            .await?;
        self.audit_consumer("developer_link_made", key).await;
        Ok(NewLink { value, until })
    }

    /// Ends the link of a consumer.
    ///
    /// # Errors
    /// [`ManageError::LinkUnknown`], or the store fails.
    pub async fn revoke_developer_link(&self, key: &ConsumerKey) -> Result<(), ManageError> {
        let now = self.manage.clock.now();
        if !self.manage.store.remove_developer_link(key, now).await? {
            return Err(ManageError::LinkUnknown(key.clone()));
        }
        self.audit_consumer("developer_link_revoked", key).await;
        Ok(())
    }
}
