//! The credentials that sign a call, and whether they are in force.

use std::{net::IpAddr, sync::Arc};

use crate::{
    base::{clock::UnixTime, findings::Findings, secret::Secret},
    oauth::{LocationRule, ProtocolParameter, Selection},
    records::{
        credentials::{AccessCredentials, BearerCredentials, ConsumerCredentials, LocalAccess},
        values::record::{Dialect, RequestToken},
    },
    request::{
        route::TokenCall,
        verify::{VerifyRejection, VerifyRules},
    },
};

/// The purpose of a call, which decides which [`Credential`] has to sign it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A call to the API, with an access token or without a token.
    Api,
    /// The revocation of the access token that signs the call.
    OwnToken,
    /// The exchange of the access token that signs the call, or of the consumer's own right without a token.
    Exchange,
    /// A request token call (RFC 5849 §2.1).
    RequestToken,
    /// An access token call (RFC 5849 §2.3).
    AccessToken,
}

impl Purpose {
    /// That of a token call.
    pub const fn from_call(call: TokenCall) -> Self {
        match call {
            TokenCall::RequestToken => Self::RequestToken,
            TokenCall::AccessToken => Self::AccessToken,
            TokenCall::RevokeToken => Self::OwnToken,
            TokenCall::Exchange => Self::Exchange,
        }
    }

    /// Where the protocol parameters of such a call may be.
    pub const fn location_rule(self) -> LocationRule {
        match self {
            Self::Api | Self::OwnToken | Self::Exchange => LocationRule::OneLocation,
            Self::RequestToken | Self::AccessToken => LocationRule::FlowApart,
        }
    }

    /// The protocol parameters that such a call needs in addition to those of every signed request.
    pub const fn needed(self) -> &'static [ProtocolParameter] {
        match self {
            Self::Api | Self::RequestToken | Self::Exchange => &[],
            Self::OwnToken => &[ProtocolParameter::Token],
            Self::AccessToken => &[ProtocolParameter::Token, ProtocolParameter::Verifier],
        }
    }

    /// Whether the token of such a call is an access token, if it has one.
    pub(crate) const fn takes_access_token(self) -> bool {
        matches!(self, Self::Api | Self::OwnToken | Self::Exchange)
    }

    /// The base strings that such a call may be signed with, by a consumer of `dialect`.
    pub(crate) fn selections(
        self,
        rules: &VerifyRules,
        dialect: Option<Dialect>,
    ) -> &'static [Selection] {
        let either = match self {
            Self::Api => dialect.unwrap_or(rules.signature.default_dialect) == Dialect::Legacy,
            Self::OwnToken | Self::Exchange => false,
            Self::RequestToken | Self::AccessToken => rules.signature.accept_description,
        };
        if either {
            &[Selection::Rfc5849, Selection::Description]
        } else {
            &[Selection::Rfc5849]
        }
    }
}

/// The credentials that sign a call. An access token is one of this thread, or one that threads share.
#[derive(Debug, Clone)]
pub enum Credential<A = LocalAccess> {
    /// A consumer with an access token, for [`Purpose::Api`], [`Purpose::OwnToken`] and [`Purpose::Exchange`].
    AccessToken(A),
    /// A consumer alone, for [`Purpose::Api`] and [`Purpose::Exchange`].
    Application(Arc<ConsumerCredentials>),
    /// A consumer alone, for [`Purpose::RequestToken`].
    Consumer(Arc<ConsumerCredentials>),
    /// A consumer with a request token, for [`Purpose::AccessToken`].
    RequestToken(Box<RequestTokenCredentials>),
    /// A Bearer token, for [`Purpose::Api`]. It signs nothing.
    Bearer(Arc<BearerCredentials>),
}

/// A request token with its consumer. The states of the token are checked where it is exchanged, in one
/// step with that.
#[derive(Debug, Clone)]
pub struct RequestTokenCredentials {
    /// The record.
    pub token: RequestToken,
    /// The consumer that it belongs to.
    pub consumer: Arc<ConsumerCredentials>,
}

impl<A> Credential<A> {
    /// The same credentials with the access token in another form.
    pub(crate) fn with_access<B>(self, form: impl FnOnce(A) -> B) -> Credential<B> {
        match self {
            Self::AccessToken(access) => Credential::AccessToken(form(access)),
            Self::Application(consumer) => Credential::Application(consumer),
            Self::Consumer(consumer) => Credential::Consumer(consumer),
            Self::RequestToken(signer) => Credential::RequestToken(signer),
            Self::Bearer(bearer) => Credential::Bearer(bearer),
        }
    }
}

impl Credential {
    /// The consumer, alone or with its token.
    pub fn consumer(&self) -> &Arc<ConsumerCredentials> {
        match self {
            Self::AccessToken(access) => &access.consumer,
            Self::Application(consumer) | Self::Consumer(consumer) => consumer,
            Self::RequestToken(request) => &request.consumer,
            Self::Bearer(bearer) => &bearer.consumer,
        }
    }

    /// The access token that it has, or was exchanged for.
    fn access(&self) -> Option<&AccessCredentials> {
        match self {
            Self::AccessToken(access) => Some(access),
            Self::Bearer(bearer) => bearer.access.as_deref(),
            Self::Application(_) | Self::Consumer(_) | Self::RequestToken(_) => None,
        }
    }

    pub(crate) fn token_secret(&self) -> Option<Secret> {
        match self {
            Self::AccessToken(access) => Some(access.secret.clone()),
            Self::Application(_) | Self::Consumer(_) | Self::Bearer(_) => None,
            Self::RequestToken(request) => Some(request.token.secret.clone()),
        }
    }

    /// Checks that the consumer may call from the address of the caller. A disabled one is rejected as such.
    ///
    /// # Errors
    /// [`VerifyRejection::ConsumerOutside`]
    pub(crate) fn check_address(&self, address: Option<IpAddr>) -> Result<(), VerifyRejection> {
        let consumer = self.consumer();
        match consumer.enabled && !consumer.may_call_from(address) {
            true => Err(VerifyRejection::ConsumerOutside),
            false => Ok(()),
        }
    }

    /// Checks that the credentials are in force. A caller learns it only after the signature and the nonce are checked.
    ///
    /// # Errors
    /// [`VerifyRejection::ConsumerDisabled`], [`VerifyRejection::TokenExpired`] and [`VerifyRejection::TokenRevoked`], in
    /// this order, as far as `findings` ends the check.
    pub(crate) fn check_states(
        &self,
        rules: &VerifyRules,
        now: UnixTime,
        findings: &mut impl Findings<VerifyRejection>,
    ) -> Result<(), VerifyRejection> {
        if !self.consumer().enabled {
            findings.add(VerifyRejection::ConsumerDisabled)?;
        }
        let Some(access) = self.access() else {
            return Ok(());
        };
        let expired = access.expires_at.is_some_and(|at| now >= at);
        if expired || is_idle(rules, access, now) {
            findings.add(VerifyRejection::TokenExpired)?;
        }
        if access.is_revoked {
            findings.add(VerifyRejection::TokenRevoked)?;
        }
        Ok(())
    }
}

/// Whether the access token has not been used for longer than `tokens.access_idle`, as far as this process knows.
pub(crate) fn is_idle(rules: &VerifyRules, access: &AccessCredentials, now: UnixTime) -> bool {
    rules.tokens.access_idle.0.is_some_and(|idle| {
        let last_used = access.last_used().unwrap_or(access.issued_at);
        now >= last_used.after(idle)
    })
}
