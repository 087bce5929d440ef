//! The planned end of OAuth 1.0a: fields that announce it to consumers, and brown-outs before it.

pub mod settings;

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header};

use self::settings::{BrownOutSettings, SunsetSettings};
use super::PolicyRejection;
use crate::{
    base::{clock::Clock, text::names::ConsumerKey},
    request::route::TokenCall,
};

static DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
static SUNSET: HeaderName = HeaderName::from_static("sunset");

/// The end of OAuth 1.0a here.
#[derive(Debug)]
pub struct Sunset {
    /// As it is written.
    written: SunsetSettings,
    /// The periods before it in which consumers get 503, so that those that still call notice.
    brown_outs: Vec<BrownOutSettings>,
    clock: Clock,
    /// The value of `Deprecation` (RFC 9745 §2).
    deprecation: HeaderValue,
    /// The value of `Sunset` (RFC 8594 §3).
    sunset: Option<HeaderValue>,
    /// The value of `Link` (RFC 8594 §6).
    link: Option<HeaderValue>,
}

impl Sunset {
    /// Whether developers may still ask for consumers.
    pub const fn new_consumers(&self) -> bool {
        self.written.new_consumers
    }

    /// A page about it.
    pub fn page(&self) -> Option<String> {
        self.written.link.as_ref().map(|page| page.0.clone())
    }

    fn concerns(&self, consumer: &str) -> bool {
        is_among(&self.written.consumers, consumer)
    }

    /// Rejects a call of a consumer during a brown-out.
    ///
    /// # Errors
    /// [`PolicyRejection::BrownOut`]
    pub fn check(&self, consumer: &ConsumerKey) -> Result<(), PolicyRejection> {
        if self.brown_outs.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        let is_on = |one: &&BrownOutSettings| {
            let consumers = match one.consumers.as_slice() {
                [] => &self.written.consumers,
                consumers => consumers,
            };
            (one.from.0..one.until.0).contains(&now) && is_among(consumers, consumer.as_str())
        };
        let ends = self.brown_outs.iter().filter(is_on);
        match ends.map(|one| one.until.0).max() {
            None => Ok(()),
            Some(end) => Err(PolicyRejection::BrownOut {
                retry_after: Duration::from_secs(end.0.saturating_sub(now.0)),
            }),
        }
    }

    /// Rejects what would give a token to a consumer that no longer gets any.
    ///
    /// # Errors
    /// [`PolicyRejection::GrantsEnded`]
    pub fn check_grant(&self, consumer: &str) -> Result<(), PolicyRejection> {
        match self.written.new_grants || !self.concerns(consumer) {
            true => Ok(()),
            false => Err(PolicyRejection::GrantsEnded { page: self.page() }),
        }
    }

    /// Rejects a signed call of a consumer that may no longer make it: a token call, or one to the API, which may be a grant
    /// there.
    ///
    /// # Errors
    /// [`PolicyRejection::GrantsEnded`] for a call that leads to a new token, and [`PolicyRejection::SignaturesEnded`] for
    /// another call to the API.
    pub fn check_signed(
        &self,
        consumer: &str,
        call: Option<TokenCall>,
        may_be_grant: impl FnOnce() -> bool,
    ) -> Result<(), PolicyRejection> {
        match call {
            Some(call) if call.is_grant() => self.check_grant(consumer),
            None if !self.written.signatures && self.concerns(consumer) => {
                Err(PolicyRejection::SignaturesEnded { page: self.page() })
            }
            Some(_) | None => match self.check_grant(consumer) {
                Err(ended) if may_be_grant() => Err(ended),
                _ => Ok(()),
            },
        }
    }

    /// The rejection of a token call of an unknown consumer, if no others are to be registered.
    pub fn of_unknown_consumer(&self) -> Option<PolicyRejection> {
        (!self.new_consumers()).then(|| PolicyRejection::ConsumersEnded { page: self.page() })
    }

    /// Adds the fields to the response to a call with a right signature of this consumer.
    pub fn announce(&self, headers: &mut HeaderMap, consumer: &str) {
        if !self.concerns(consumer) {
            return;
        }
        // The field has one value: the API's own would contradict this one.
        headers.insert(&DEPRECATION, self.deprecation.clone());
        if let Some(sunset) = &self.sunset {
            headers.insert(&SUNSET, sunset.clone());
        }
        if let Some(link) = &self.link {
            headers.append(header::LINK, link.clone());
        }
    }
}

/// Whether it is one of these consumers; no keys mean all.
fn is_among(consumers: &[ConsumerKey], consumer: &str) -> bool {
    consumers.is_empty() || consumers.iter().any(|key| key.as_str() == consumer)
}
