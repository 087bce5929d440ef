//! The protocol parameters of a request as typed values, RFC 5849 §3.1.

use std::fmt;

use super::{
    method::{MethodSet, SignatureMethod},
    parameters::Parameters,
};
use crate::{
    base::findings::{Findings, First},
    oauth::parameters::{
        name::{ParameterNames, ProtocolParameter},
        shape::{LocationRule, ShapeError},
    },
};

/// The protocol parameters that were sent, each in its right shape, each once, all in their locations.
///
/// None of them is demanded yet; see [`Protocol::demand`].
#[derive(Debug, Clone, Copy)]
pub struct Protocol<'a> {
    parameters: &'a Parameters,
    /// `oauth_signature_method`; the spelling that was sent is what was signed.
    pub signature_method: Option<SignatureMethod>,
    /// `oauth_timestamp`
    pub timestamp: Option<Timestamp>,
    /// `oauth_nonce`
    pub nonce: Option<Nonce<'a>>,
}

/// The protocol parameters without which a signed request cannot be verified.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// `oauth_consumer_key`, not empty.
    pub consumer_key: &'a [u8],
    /// `oauth_token`, if it was sent and is not empty: OAuth Core 1.0 demanded the parameter, so consumers without a token send
    /// it empty.
    pub token: Option<&'a [u8]>,
    /// `oauth_signature_method`, one of those that are switched on.
    pub signature_method: SignatureMethod,
    /// `oauth_signature`, not empty.
    pub signature: &'a [u8],
    /// `oauth_timestamp` and `oauth_nonce`; missing only with [`SignatureMethod::Plaintext`], which needs neither (§3.1).
    pub freshness: Option<Freshness<'a>>,
    /// `oauth_callback`, if it was sent; not empty.
    pub callback: Option<&'a [u8]>,
    /// `oauth_verifier`, if it was sent; not empty.
    pub verifier: Option<&'a [u8]>,
    /// `oauth_body_hash`, if it was sent; not empty.
    pub body_hash: Option<&'a [u8]>,
}

/// Timestamp and nonce, which make a signed request unique, §3.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness<'a> {
    /// The time at which the consumer says it signed.
    pub timestamp: Timestamp,
    /// The nonce, which is not sent again with that timestamp.
    pub nonce: Nonce<'a>,
}

/// `oauth_timestamp`: seconds since 1970-01-01 00:00:00 UTC, greater than zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Reads ASCII digits without sign, space or leading zero, at most [`u64::MAX`].
    pub fn from_wire(value: &[u8]) -> Option<Self> {
        if value.is_empty() || value.starts_with(b"0") {
            return None;
        }
        let append = |number: u64, byte: &u8| {
            let digit = char::from(*byte).to_digit(10)?;
            number.checked_mul(10)?.checked_add(digit.into())
        };
        value.iter().try_fold(0, append).map(Self)
    }

    /// The seconds.
    pub fn seconds(self) -> u64 {
        self.0
    }
}

/// `oauth_nonce`: 1 to [`Nonce::MAX_LENGTH`] visible ASCII characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nonce<'a>(&'a [u8]);

impl<'a> Nonce<'a> {
    /// The longest nonce, in bytes. RFC 5849 sets no limit; a server has to bound what it keeps.
    pub const MAX_LENGTH: usize = 255;

    /// Checks a decoded value.
    pub fn from_wire(value: &'a [u8]) -> Option<Self> {
        let length = (1..=Self::MAX_LENGTH).contains(&value.len());
        // No early end: so the compiler can look at many bytes at once.
        let visible = value
            .iter()
            .fold(true, |visible, byte| visible & byte.is_ascii_graphic());
        (length && visible).then_some(Self(value))
    }

    /// The bytes.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

impl Parameters {
    /// The protocol parameters, typed. `methods` are the signature methods that are switched on, and `rule` says where the
    /// parameters may be.
    ///
    /// # Errors
    ///
    /// In this order: the error of a `read_` function; a name that begins with `oauth_` and is repeated, is outside the `rule`,
    /// or is empty (all but `oauth_token`); a name that can be read as one of these; [`ShapeError::VersionRejected`];
    /// [`ShapeError::MethodRejected`]; a timestamp and a nonce that are not valid.
    pub fn protocol(
        &self,
        methods: MethodSet,
        rule: LocationRule,
    ) -> Result<Protocol<'_>, ShapeError> {
        self.protocol_with(methods, rule, &mut First)
    }

    /// [`Parameters::protocol`] where `findings` decides whether the first error ends it; a value that is not valid is absent.
    ///
    /// # Errors
    /// The error that ends it.
    pub fn protocol_with(
        &self,
        methods: MethodSet,
        rule: LocationRule,
        findings: &mut impl Findings<ShapeError>,
    ) -> Result<Protocol<'_>, ShapeError> {
        self.check_oauth_names(rule, findings)?;

        let sent = |parameter| self.protocol_value(parameter);
        // node-oauth's own example says `1.0A`, and the library sends it as it is given.
        let version = sent(ProtocolParameter::Version);
        if !matches!(version, None | Some(b"1.0" | b"1.0a" | b"1.0A")) {
            findings.add(ShapeError::VersionRejected)?;
        }
        let method = |name| {
            let method =
                SignatureMethod::from_wire(name).filter(|method| methods.contains(*method));
            method.ok_or(ShapeError::MethodRejected { accepted: methods })
        };
        let timestamp = |value| {
            let rejected = || rejected(ProtocolParameter::Timestamp, not_a_timestamp(value));
            Timestamp::from_wire(value).ok_or_else(rejected)
        };
        let nonce = |value| {
            let reason = "not 1 to 255 visible ASCII characters";
            let rejected = || rejected(ProtocolParameter::Nonce, reason);
            Nonce::from_wire(value).ok_or_else(rejected)
        };
        let signature_method = sent(ProtocolParameter::SignatureMethod).map(method);
        let timestamp = sent(ProtocolParameter::Timestamp).map(timestamp);
        let nonce = sent(ProtocolParameter::Nonce).map(nonce);
        Ok(Protocol {
            parameters: self,
            signature_method: findings.take(signature_method.transpose())?.flatten(),
            timestamp: findings.take(timestamp.transpose())?.flatten(),
            nonce: findings.take(nonce.transpose())?.flatten(),
        })
    }
}

/// Why a value is not a timestamp.
#[cold]
fn not_a_timestamp(value: &[u8]) -> &'static str {
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let first = |byte| value.iter().position(|it| *it == byte);
    match (first(b'.'), first(b'-')) {
        (Some(at), _) if is_number(&value[..at]) => {
            "not a whole number of seconds: send it without the fraction"
        }
        (_, Some(at @ 1..)) if is_number(&value[..at]) => {
            "a date, not a number of seconds: send the seconds since 1970-01-01 00:00:00 UTC"
        }
        _ => "not a positive number of seconds",
    }
}

fn rejected(parameter: ProtocolParameter, reason: &'static str) -> ShapeError {
    ShapeError::Rejected {
        names: ParameterNames::from_iter([parameter]),
        reason,
    }
}

impl<'a> Protocol<'a> {
    /// The value of a parameter, decoded. `oauth_token` may be empty, which counts as absent.
    pub fn value(&self, parameter: ProtocolParameter) -> Option<&'a [u8]> {
        self.parameters.protocol_value(parameter)
    }

    /// The credentials that were sent with this signature method; what is missing is empty.
    pub fn credentials(&self, signature_method: SignatureMethod) -> Credentials<'a> {
        let value = |parameter| self.value(parameter);
        let freshness = self.timestamp.zip(self.nonce);
        Credentials {
            consumer_key: value(ProtocolParameter::ConsumerKey).unwrap_or_default(),
            token: value(ProtocolParameter::Token).filter(|token| !token.is_empty()),
            signature_method,
            signature: value(ProtocolParameter::Signature).unwrap_or_default(),
            freshness: freshness.map(|(timestamp, nonce)| Freshness { timestamp, nonce }),
            callback: value(ProtocolParameter::Callback),
            verifier: value(ProtocolParameter::Verifier),
            body_hash: value(ProtocolParameter::BodyHash),
        }
    }

    /// Demands the parameters that every signed request needs, and those in `also`.
    ///
    /// An empty `oauth_token` counts as absent here.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Absent`] with all the names that are missing.
    pub fn demand(&self, also: &[ProtocolParameter]) -> Result<Credentials<'a>, ShapeError> {
        if let Some(signature_method) = self.signature_method {
            let credentials = self.credentials(signature_method);
            let is_fresh =
                credentials.freshness.is_some() || signature_method == SignatureMethod::Plaintext;
            if is_fresh
                && !credentials.consumer_key.is_empty()
                && !credentials.signature.is_empty()
                && also.iter().all(|&parameter| self.has(parameter))
            {
                return Ok(credentials);
            }
        }
        Err(ShapeError::Absent(self.missing(also)))
    }

    #[cold]
    fn missing(&self, also: &[ProtocolParameter]) -> ParameterNames {
        use ProtocolParameter::{ConsumerKey, Nonce, Signature, SignatureMethod, Timestamp};

        let is_plaintext = self.signature_method == Some(super::SignatureMethod::Plaintext);
        let is_needed = |parameter: &ProtocolParameter| match parameter {
            ConsumerKey | SignatureMethod | Signature => true,
            Timestamp | Nonce if !is_plaintext => true,
            other => also.contains(other),
        };
        let needed = ProtocolParameter::ALL.iter().copied().filter(is_needed);
        needed.filter(|&parameter| !self.has(parameter)).collect()
    }

    fn has(&self, parameter: ProtocolParameter) -> bool {
        self.value(parameter).is_some_and(|value| !value.is_empty())
    }
}

impl fmt::Debug for Credentials<'_> {
    /// Leaves out the signature, which PLAINTEXT makes of the secrets, and the verifier.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("signature_method", &self.signature_method)
            .field("freshness", &self.freshness)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
