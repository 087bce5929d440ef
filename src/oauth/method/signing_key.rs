//! The key of a shared-secret signature, RFC 5849 §3.4.2, and HMAC from states that are prepared once.

use std::{fmt, sync::OnceLock};

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{
    EagerHash, Hmac, KeyInit, Mac,
    block_api::HmacCore,
    digest::block_api::{Buffer, CoreProxy},
};
use md5::{Digest as _, Md5};
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use zeroize::Zeroizing;

use crate::{
    base::secret::Secret,
    oauth::{percent, sink::Message},
};

/// The HMAC states of one key, each prepared when its method is first used; 32 bytes, and 56 for HMAC-SHA1, which nearly all
/// consumers use; 48 for the other methods together, and 48 to 160 for each of them in use.
///
/// HMAC hashes a block of key before each message and one after it. Here both are hashed once, so that a request costs its own
/// blocks and one more.
#[derive(Default)]
pub struct KeyStates {
    sha1: OnceLock<Box<HmacCore<Sha1>>>,
    others: OnceLock<Box<OtherStates>>,
}

#[derive(Default)]
struct OtherStates {
    md5: OnceLock<Box<HmacCore<Md5>>>,
    sha256: OnceLock<Box<HmacCore<Sha256>>>,
    sha512: OnceLock<Box<HmacCore<Sha512>>>,
}

/// A key to sign and to verify with. Its secrets are joined only to prepare a method.
#[derive(Clone, Copy)]
pub struct Key<'a> {
    /// The consumer's secret.
    pub consumer_secret: &'a [u8],
    /// The token's secret, empty without a token; `None`: the key is the consumer's secret as it is and nothing else, as
    /// the service's description has it for the request token call.
    pub token_secret: Option<&'a [u8]>,
    /// The states of this key and no other.
    pub states: &'a KeyStates,
}

impl Key<'_> {
    /// The key itself (§3.4.2), which is also PLAINTEXT's signature (§3.4.4): both secrets encoded, with "an '&' character,
    /// which MUST be included even when either secret is empty" between them.
    pub(in crate::oauth) fn text(&self) -> Zeroizing<Vec<u8>> {
        let Some(token_secret) = self.token_secret else {
            return Zeroizing::new(self.consumer_secret.to_vec());
        };
        // Room for the longest outcome at once: growing would leave copies of the secret in memory.
        let room = 3 * (self.consumer_secret.len() + token_secret.len()) + 1;
        let mut text = Zeroizing::new(Vec::with_capacity(room));
        percent::encode_to(&mut *text, self.consumer_secret);
        text.push(b'&');
        percent::encode_to(&mut *text, token_secret);
        text
    }
}

/// A [`Key`] that owns its secrets.
#[derive(Debug)]
pub struct SigningKey {
    consumer_secret: Secret,
    token_secret: Option<Secret>,
    states: KeyStates,
}

impl SigningKey {
    /// The key of RFC 5849 §3.4.2. Without a token its secret is empty.
    pub fn new(consumer_secret: &Secret, token_secret: &Secret) -> Self {
        Self {
            token_secret: Some(token_secret.clone()),
            ..Self::consumer_secret_alone(consumer_secret)
        }
    }

    /// The key that the service's description gives the request token call: the consumer secret as it is, and nothing else.
    pub fn consumer_secret_alone(consumer_secret: &Secret) -> Self {
        Self {
            consumer_secret: consumer_secret.clone(),
            token_secret: None,
            states: KeyStates::default(),
        }
    }
}

impl<'a> From<&'a SigningKey> for Key<'a> {
    fn from(key: &'a SigningKey) -> Self {
        Self {
            consumer_secret: key.consumer_secret.expose(),
            token_secret: key.token_secret.as_ref().map(Secret::expose),
            states: &key.states,
        }
    }
}

/// The length of the base64 text of a SHA-512 digest, the longest.
pub(in crate::oauth) const LONGEST_BASE64: usize = 88;

/// The hash of an HMAC method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::oauth) enum HmacHash {
    Md5,
    Sha1,
    Sha256,
    Sha512,
}

impl HmacHash {
    pub(in crate::oauth) fn digest(self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Md5 => Md5::digest(message).to_vec(),
            Self::Sha1 => Sha1::digest(message).to_vec(),
            Self::Sha256 => Sha256::digest(message).to_vec(),
            Self::Sha512 => Sha512::digest(message).to_vec(),
        }
    }
}

/// Writes the base64 text of the HMAC over `message` into `out`.
pub(in crate::oauth) fn hmac_base64<'o>(
    hash: HmacHash,
    key: Key<'_>,
    message: &impl Message,
    out: &'o mut [u8; LONGEST_BASE64],
) -> Option<&'o [u8]> {
    let others = || key.states.others.get_or_init(Box::default);
    match hash {
        HmacHash::Md5 => write_hmac(&others().md5, key, message, out),
        HmacHash::Sha1 => write_hmac(&key.states.sha1, key, message, out),
        HmacHash::Sha256 => write_hmac(&others().sha256, key, message, out),
        HmacHash::Sha512 => write_hmac(&others().sha512, key, message, out),
    }
}

fn write_hmac<'o, D: EagerHash>(
    state: &OnceLock<Box<HmacCore<D>>>,
    key: Key<'_>,
    message: &impl Message,
    out: &'o mut [u8],
) -> Option<&'o [u8]> {
    let prepared = state.get_or_init(|| prepare(key));
    let mut hmac = Hmac::<D>::compose((**prepared).clone(), Buffer::<HmacCore<D>>::default());
    message.feed(|bytes| hmac.update(bytes));
    let length = STANDARD
        .encode_slice(hmac.finalize().into_bytes(), out)
        .ok()?;
    out.get(..length)
}

#[cold]
fn prepare<D: EagerHash>(key: Key<'_>) -> Box<HmacCore<D>> {
    #[expect(
        clippy::expect_used,
        reason = "HMAC takes a key of any length (RFC 2104 §2); the error is for other MACs"
    )]
    Box::new(HmacCore::new_from_slice(&key.text()).expect("HMAC takes keys of any length"))
}

impl fmt::Debug for KeyStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}
