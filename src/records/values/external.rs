//! Records that an application of the provider keeps: found there when they are not registered here, and never written.

use async_trait::async_trait;

use super::{
    Result,
    record::{AccessToken, Consumer},
};
use crate::base::text::names::ConsumerKey;

/// Finds records that an application keeps. `is_refresh`: the record was found before, so no unauthenticated caller has made
/// its name up.
///
/// What is found has exactly the name asked for, and a secret. An error says nothing about the record.
#[async_trait]
pub trait ExternalRecords: Send + Sync + 'static {
    /// Finds a consumer.
    async fn consumer(&self, key: &ConsumerKey, is_refresh: bool) -> Result<Option<Consumer>>;

    /// Finds an access token, which `consumer` has sent, or for which an operator asks.
    async fn access_token(
        &self,
        token: &str,
        consumer: Option<&ConsumerKey>,
        is_refresh: bool,
    ) -> Result<Option<AccessToken>>;
}
