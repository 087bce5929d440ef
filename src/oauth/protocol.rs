//! The protocol parameters of a request as typed values, RFC 5849 §3.1.

use std::fmt;

use super::{
    method::{MethodSet, SignatureMethod},
    name::{ParameterNames, ProtocolParameter},
    parameters::Parameters,
    shape::{Reason, ShapeError},
};

/// The protocol parameters that were sent, each in its right shape, each once, all in one place.
///
/// None of them is demanded yet; see [`Protocol::demand`].
#[derive(Clone, Copy, Default)]
pub struct Protocol<'a> {
    /// `oauth_consumer_key`
    pub consumer_key: Option<&'a [u8]>,
    /// `oauth_token`; may be empty, and what that means is the call's to say.
    pub token: Option<&'a [u8]>,
    /// `oauth_signature_method`; the spelling that was sent is what was signed.
    pub signature_method: Option<SignatureMethod>,
    /// `oauth_signature`
    pub signature: Option<&'a [u8]>,
    /// `oauth_timestamp`
    pub timestamp: Option<Timestamp>,
    /// `oauth_nonce`
    pub nonce: Option<Nonce<'a>>,
    /// `oauth_callback`
    pub callback: Option<&'a [u8]>,
    /// `oauth_verifier`
    pub verifier: Option<&'a [u8]>,
    /// `oauth_body_hash`
    pub body_hash: Option<&'a [u8]>,
}

/// The protocol parameters without which a signed request cannot be verified.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// `oauth_consumer_key`, not empty.
    pub consumer_key: &'a [u8],
    /// `oauth_token`, if it was sent; may be empty.
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
    /// When the consumer says it signed.
    pub timestamp: Timestamp,
    /// The nonce, which is not sent again with that timestamp.
    pub nonce: Nonce<'a>,
}

/// `oauth_timestamp`: seconds since 1970-01-01 00:00:00 UTC, greater than zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Reads ASCII digits without sign, space or leading zero, at most [`u64::MAX`].
    #[must_use]
    pub fn from_wire(value: &[u8]) -> Option<Self> {
        if value.is_empty() || value.starts_with(b"0") {
            return None;
        }
        let seconds = value.iter().try_fold(0u64, |seconds, &byte| {
            let digit = byte.wrapping_sub(b'0');
            let room = seconds.checked_mul(10).filter(|_| digit < 10);
            room?.checked_add(u64::from(digit))
        });
        seconds.map(Self)
    }

    /// The seconds.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// `oauth_nonce`: 1 to [`Nonce::MAX_LENGTH`] visible ASCII characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nonce<'a>(&'a [u8]);

impl<'a> Nonce<'a> {
    /// The longest nonce, in bytes. RFC 5849 sets no limit; a server has to bound what it keeps.
    pub const MAX_LENGTH: usize = 255;

    /// Checks a decoded value.
    #[must_use]
    pub fn from_wire(value: &'a [u8]) -> Option<Self> {
        let length = (1..=Self::MAX_LENGTH).contains(&value.len());
        // No early end: so the compiler can look at many bytes at once.
        let visible = value
            .iter()
            .fold(true, |visible, byte| visible & byte.is_ascii_graphic());
        (length && visible).then_some(Self(value))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

impl fmt::Debug for Nonce<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.0))
    }
}

impl Parameters {
    /// The protocol parameters, typed. `methods` are the signature methods that are switched on.
    ///
    /// # Errors
    ///
    /// In this order: what a `read_` function failed with; [`Reason::Repeated`], [`Reason::Scattered`] and [`Reason::Empty`]
    /// (all but `oauth_token`) for any name that begins with `oauth_`; [`ShapeError::VersionRejected`];
    /// [`ShapeError::MethodRejected`]; [`Reason::Timestamp`]; [`Reason::Nonce`].
    pub fn protocol(&self, methods: MethodSet) -> Result<Protocol<'_>, ShapeError> {
        self.check_oauth_names()?;

        let sent = |parameter| self.protocol_value(parameter);
        // node-oauth's own example says `1.0A`, and the library sends it as it is given.
        if !matches!(
            sent(ProtocolParameter::Version),
            None | Some(b"1.0" | b"1.0a" | b"1.0A")
        ) {
            return Err(ShapeError::VersionRejected);
        }
        let signature_method = match sent(ProtocolParameter::SignatureMethod) {
            None => None,
            Some(name) => match SignatureMethod::from_wire(name) {
                Some(method) if methods.contains(method) => Some(method),
                _ => return Err(ShapeError::MethodRejected { accepted: methods }),
            },
        };
        let timestamp = match sent(ProtocolParameter::Timestamp) {
            None => None,
            Some(value) => Some(
                Timestamp::from_wire(value)
                    .ok_or_else(|| rejected(ProtocolParameter::Timestamp, Reason::Timestamp))?,
            ),
        };
        let nonce = match sent(ProtocolParameter::Nonce) {
            None => None,
            Some(value) => Some(
                Nonce::from_wire(value)
                    .ok_or_else(|| rejected(ProtocolParameter::Nonce, Reason::Nonce))?,
            ),
        };
        Ok(Protocol {
            consumer_key: sent(ProtocolParameter::ConsumerKey),
            token: sent(ProtocolParameter::Token),
            signature_method,
            signature: sent(ProtocolParameter::Signature),
            timestamp,
            nonce,
            callback: sent(ProtocolParameter::Callback),
            verifier: sent(ProtocolParameter::Verifier),
            body_hash: sent(ProtocolParameter::BodyHash),
        })
    }
}

fn rejected(parameter: ProtocolParameter, reason: Reason) -> ShapeError {
    ShapeError::Rejected {
        names: ParameterNames::from_iter([parameter]),
        reason,
    }
}

impl<'a> Protocol<'a> {
    /// Demands the parameters that every signed request needs, and those in `also`.
    ///
    /// An empty `oauth_token` counts as absent here.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Absent`] with all the names that are missing.
    pub fn demand(&self, also: &[ProtocolParameter]) -> Result<Credentials<'a>, ShapeError> {
        if let (Some(consumer_key), Some(signature_method), Some(signature)) =
            (self.consumer_key, self.signature_method, self.signature)
        {
            let freshness = match (self.timestamp, self.nonce) {
                (Some(timestamp), Some(nonce)) => Some(Freshness { timestamp, nonce }),
                _ => None,
            };
            let fresh = freshness.is_some() || signature_method == SignatureMethod::Plaintext;
            if fresh && also.iter().all(|&parameter| self.has(parameter)) {
                return Ok(Credentials {
                    consumer_key,
                    token: self.token,
                    signature_method,
                    signature,
                    freshness,
                    callback: self.callback,
                    verifier: self.verifier,
                    body_hash: self.body_hash,
                });
            }
        }
        Err(ShapeError::Absent(self.missing(also)))
    }

    #[cold]
    fn missing(&self, also: &[ProtocolParameter]) -> ParameterNames {
        let stamps = self.signature_method != Some(SignatureMethod::Plaintext);
        ProtocolParameter::ALL
            .into_iter()
            .filter(|parameter| match parameter {
                ProtocolParameter::ConsumerKey
                | ProtocolParameter::SignatureMethod
                | ProtocolParameter::Signature => true,
                ProtocolParameter::Timestamp | ProtocolParameter::Nonce if stamps => true,
                other => also.contains(other),
            })
            .filter(|&parameter| !self.has(parameter))
            .collect()
    }

    fn has(&self, parameter: ProtocolParameter) -> bool {
        match parameter {
            ProtocolParameter::ConsumerKey => self.consumer_key.is_some(),
            ProtocolParameter::Token => self.token.is_some_and(|token| !token.is_empty()),
            ProtocolParameter::SignatureMethod => self.signature_method.is_some(),
            ProtocolParameter::Signature => self.signature.is_some(),
            ProtocolParameter::Timestamp => self.timestamp.is_some(),
            ProtocolParameter::Nonce => self.nonce.is_some(),
            // Optional everywhere, and checked when it is there.
            ProtocolParameter::Version => true,
            ProtocolParameter::Callback => self.callback.is_some(),
            ProtocolParameter::Verifier => self.verifier.is_some(),
            ProtocolParameter::BodyHash => self.body_hash.is_some(),
        }
    }
}

impl fmt::Debug for Protocol<'_> {
    /// Leaves out the signature, which PLAINTEXT makes of the secrets, and the verifier.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protocol")
            .field("signature_method", &self.signature_method)
            .field("timestamp", &self.timestamp)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Credentials<'_> {
    /// Leaves out the same as [`Protocol`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("signature_method", &self.signature_method)
            .field("freshness", &self.freshness)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
