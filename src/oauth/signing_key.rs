//! The key of a shared-secret signature, RFC 5849 §3.4.2, and HMAC from states that are prepared once.

use std::{fmt, sync::OnceLock};

use hmac::{
    EagerHash, Hmac, KeyInit, Mac,
    block_api::HmacCore,
    digest::{
        Output,
        block_api::{Buffer, CoreProxy},
    },
};
use md5::Md5;
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use zeroize::Zeroizing;

use super::{base_string::BaseString, percent, sink::Chunked};
use crate::secret::Secret;

/// The HMAC states of one key, each prepared when its method is first used; 32 bytes, and 24 to 144 for each method in use.
///
/// HMAC hashes a block of key before each message and one after it. Here both are hashed once, so that a request costs its own
/// blocks and one more.
#[derive(Default)]
pub struct KeyStates {
    sha1: OnceLock<Box<HmacCore<Sha1>>>,
    md5: OnceLock<Box<HmacCore<Md5>>>,
    sha256: OnceLock<Box<HmacCore<Sha256>>>,
    sha512: OnceLock<Box<HmacCore<Sha512>>>,
}

/// A key to sign and to verify with.
pub trait Key {
    /// The key itself (§3.4.2), which is also PLAINTEXT's signature (§3.4.4).
    fn text(&self) -> Zeroizing<Vec<u8>>;
    /// Its states.
    fn states(&self) -> &KeyStates;
}

impl<K: Key> Key for &K {
    fn text(&self) -> Zeroizing<Vec<u8>> {
        (**self).text()
    }

    fn states(&self) -> &KeyStates {
        (**self).states()
    }
}

/// A key whose secrets are kept with the credentials: joined only to prepare a method.
#[derive(Clone, Copy)]
pub struct KeptKey<'a> {
    /// The consumer's secret.
    pub consumer_secret: &'a [u8],
    /// The token's secret, empty without a token; `None`: the key is the consumer's secret alone, as the service's
    /// description has it.
    pub token_secret: Option<&'a [u8]>,
    /// The states of this key and no other.
    pub states: &'a KeyStates,
}

impl Key for KeptKey<'_> {
    fn text(&self) -> Zeroizing<Vec<u8>> {
        match self.token_secret {
            Some(token_secret) => joined(self.consumer_secret, token_secret),
            None => Zeroizing::new(self.consumer_secret.to_vec()),
        }
    }

    fn states(&self) -> &KeyStates {
        self.states
    }
}

/// A consumer's secret and a token's, joined and ready for use.
pub struct SigningKey {
    text: Zeroizing<Vec<u8>>,
    states: KeyStates,
}

impl Key for SigningKey {
    fn text(&self) -> Zeroizing<Vec<u8>> {
        self.text.clone()
    }

    fn states(&self) -> &KeyStates {
        &self.states
    }
}

fn joined(consumer_secret: &[u8], token_secret: &[u8]) -> Zeroizing<Vec<u8>> {
    // Room for the longest outcome at once: growing would leave copies of the secret behind.
    let room = 3 * (consumer_secret.len() + token_secret.len()) + 1;
    let mut text = Zeroizing::new(Vec::with_capacity(room));
    percent::encode_to(&mut *text, consumer_secret);
    text.push(b'&');
    percent::encode_to(&mut *text, token_secret);
    text
}

impl SigningKey {
    /// The key of RFC 5849 §3.4.2: both secrets encoded, with "an '&' character, which MUST be included even when either secret is
    /// empty" between them. Without a token its secret is empty.
    #[must_use]
    pub fn new(consumer_secret: &Secret, token_secret: &Secret) -> Self {
        Self::of(joined(consumer_secret.expose(), token_secret.expose()))
    }

    /// The key that the service's description gives the request token call: the consumer secret as it is, and nothing else.
    #[must_use]
    pub fn consumer_secret_alone(consumer_secret: &Secret) -> Self {
        Self::from_text(consumer_secret.expose())
    }

    pub(super) fn from_text(text: &[u8]) -> Self {
        Self::of(Zeroizing::new(text.to_vec()))
    }

    fn of(text: Zeroizing<Vec<u8>>) -> Self {
        Self {
            text,
            states: KeyStates::default(),
        }
    }
}

pub(super) fn hmac_sha1(key: &impl Key, message: &impl Message) -> Output<Sha1> {
    digest(key.states().sha1.get_or_init(|| prepare(key)), message)
}

pub(super) fn hmac_md5(key: &impl Key, message: &impl Message) -> Output<Md5> {
    digest(key.states().md5.get_or_init(|| prepare(key)), message)
}

pub(super) fn hmac_sha256(key: &impl Key, message: &impl Message) -> Output<Sha256> {
    digest(key.states().sha256.get_or_init(|| prepare(key)), message)
}

pub(super) fn hmac_sha512(key: &impl Key, message: &impl Message) -> Output<Sha512> {
    digest(key.states().sha512.get_or_init(|| prepare(key)), message)
}

#[cold]
fn prepare<D: EagerHash>(key: &impl Key) -> Box<HmacCore<D>> {
    #[expect(
        clippy::expect_used,
        reason = "HMAC takes a key of any length (RFC 2104 §2); the error is for other MACs"
    )]
    Box::new(HmacCore::new_from_slice(&key.text()).expect("HMAC takes keys of any length"))
}

macro_rules! redacted {
    ($($type:ty),*) => {$(
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("<redacted>")
            }
        }
    )*};
}

redacted!(SigningKey, KeptKey<'_>, KeyStates);

/// The text that is hashed.
pub(super) trait Message {
    /// Hands the bytes over, in pieces.
    fn feed(&self, receive: impl FnMut(&[u8]));
}

impl Message for BaseString<'_> {
    fn feed(&self, receive: impl FnMut(&[u8])) {
        let mut chunked = Chunked::new(receive);
        self.write_to(&mut chunked);
        chunked.finish();
    }
}

impl Message for &[u8] {
    fn feed(&self, mut receive: impl FnMut(&[u8])) {
        receive(self);
    }
}

fn digest<D: EagerHash>(prepared: &HmacCore<D>, message: &impl Message) -> Output<Hmac<D>> {
    let mut hmac = Hmac::<D>::compose(prepared.clone(), Buffer::<HmacCore<D>>::default());
    message.feed(|bytes| hmac.update(bytes));
    hmac.finalize().into_bytes()
}
