//! The planned end of OAuth 1.0a: fields that announce it to consumers, and brown-outs before it.

pub mod settings;

use std::{ops::Range, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::PolicyRejection;
use crate::{
    base::{
        clock::{Clock, UnixTime},
        text::names::ConsumerKey,
    },
    request::route::TokenCall,
};

static DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
static SUNSET: HeaderName = HeaderName::from_static("sunset");

/// The consumers concerned; an empty list means all.
#[derive(Debug, Clone, Default)]
pub struct Concerned(pub Vec<ConsumerKey>);

impl Concerned {
    fn has(&self, consumer: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|key| key.as_str() == consumer)
    }
}

/// A planned period in which consumers get 503, so that those that still call notice.
#[derive(Debug, Clone)]
pub struct BrownOut {
    /// The period.
    pub during: Range<UnixTime>,
    /// The consumers concerned.
    pub consumers: Concerned,
}

/// The end of OAuth 1.0a here.
#[derive(Debug)]
pub struct Sunset {
    /// The consumers concerned.
    pub consumers: Concerned,
    /// The brown-outs before it.
    pub brown_outs: Vec<BrownOut>,
    /// Developers may still ask for consumers.
    pub new_consumers: bool,
    new_grants: bool,
    signatures: bool,
    /// A page about it.
    pub page: Option<String>,
    /// The clock.
    pub clock: Clock,
    /// The value of `Deprecation` (RFC 9745 §2).
    deprecation: HeaderValue,
    /// The value of `Sunset` (RFC 8594 §3).
    sunset: Option<HeaderValue>,
    /// The value of `Link` (RFC 8594 §6).
    link: Option<HeaderValue>,
}

impl Sunset {
    /// Rejects a call of a consumer during a brown-out.
    ///
    /// # Errors
    /// [`PolicyRejection::BrownOut`]
    pub fn check(&self, consumer: &ConsumerKey) -> Result<(), PolicyRejection> {
        if self.brown_outs.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        let is_on =
            |one: &&BrownOut| one.during.contains(&now) && one.consumers.has(consumer.as_str());
        let ends = self
            .brown_outs
            .iter()
            .filter(is_on)
            .map(|one| one.during.end);
        match ends.max() {
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
        match self.new_grants || !self.consumers.has(consumer) {
            true => Ok(()),
            false => Err(PolicyRejection::GrantsEnded {
                page: self.page.clone(),
            }),
        }
    }

    /// Rejects a signed call of a consumer that may no longer make it: a token call, or one to the API.
    ///
    /// # Errors
    /// [`PolicyRejection::GrantsEnded`] for a token call that leads to a new token, and [`PolicyRejection::SignaturesEnded`]
    /// for a call to the API.
    pub fn check_signed(
        &self,
        consumer: &str,
        call: Option<TokenCall>,
    ) -> Result<(), PolicyRejection> {
        match call {
            Some(call) if call.is_grant() => self.check_grant(consumer),
            None if !self.signatures && self.consumers.has(consumer) => {
                Err(PolicyRejection::SignaturesEnded {
                    page: self.page.clone(),
                })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The rejection of a token call of an unknown consumer, if no others are to be registered.
    pub fn of_unknown_consumer(&self) -> Option<PolicyRejection> {
        (!self.new_consumers).then(|| PolicyRejection::ConsumersEnded {
            page: self.page.clone(),
        })
    }

    /// Adds the fields to the response to a call with a right signature of this consumer.
    pub fn announce(&self, headers: &mut HeaderMap, consumer: &str) {
        if !self.consumers.has(consumer) {
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
