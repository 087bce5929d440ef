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

/// A consumer's secret and a token's, joined and ready for use.
///
/// Made once and kept with the credentials: HMAC hashes a block of key before each message and one after it, and here both are
/// hashed when a method is first used, so that a request costs its own blocks and one more.
pub struct SigningKey {
    text: Zeroizing<Box<[u8]>>,
    sha1: OnceLock<HmacCore<Sha1>>,
    // Of a million cached keys few are used with these.
    md5: OnceLock<Box<HmacCore<Md5>>>,
    sha256: OnceLock<Box<HmacCore<Sha256>>>,
    sha512: OnceLock<Box<HmacCore<Sha512>>>,
}

impl SigningKey {
    /// The key of RFC 5849 §3.4.2: both secrets encoded, with "an '&' character, which MUST be included even when either secret is
    /// empty" between them. Without a token its secret is empty.
    #[must_use]
    pub fn new(consumer_secret: &Secret, token_secret: &Secret) -> Self {
        // Room for the longest outcome at once: growing would leave copies of the secret behind.
        let room = 3 * (consumer_secret.expose().len() + token_secret.expose().len()) + 1;
        let mut text = Zeroizing::new(Vec::with_capacity(room));
        percent::encode_into(&mut text, consumer_secret.expose());
        text.push(b'&');
        percent::encode_into(&mut text, token_secret.expose());
        Self::from_text(&text)
    }

    /// The key that the service's description gives the request token call: the consumer secret as it is, and nothing else.
    #[must_use]
    pub fn consumer_secret_alone(consumer_secret: &Secret) -> Self {
        Self::from_text(consumer_secret.expose())
    }

    pub(super) fn from_text(text: &[u8]) -> Self {
        Self {
            text: Zeroizing::new(text.into()),
            sha1: OnceLock::new(),
            md5: OnceLock::new(),
            sha256: OnceLock::new(),
            sha512: OnceLock::new(),
        }
    }

    /// The key itself, which is PLAINTEXT's signature (§3.4.4).
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn hmac_sha1(&self, message: &impl Message) -> Output<Sha1> {
        digest(self.sha1.get_or_init(|| self.prepare()), message)
    }

    pub(super) fn hmac_md5(&self, message: &impl Message) -> Output<Md5> {
        digest(self.md5.get_or_init(|| Box::new(self.prepare())), message)
    }

    pub(super) fn hmac_sha256(&self, message: &impl Message) -> Output<Sha256> {
        digest(
            self.sha256.get_or_init(|| Box::new(self.prepare())),
            message,
        )
    }

    pub(super) fn hmac_sha512(&self, message: &impl Message) -> Output<Sha512> {
        digest(
            self.sha512.get_or_init(|| Box::new(self.prepare())),
            message,
        )
    }

    #[cold]
    fn prepare<D: EagerHash>(&self) -> HmacCore<D> {
        #[expect(
            clippy::expect_used,
            reason = "HMAC takes a key of any length (RFC 2104 §2); the error is for other MACs"
        )]
        HmacCore::new_from_slice(&self.text).expect("HMAC takes keys of any length")
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

/// What is hashed.
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
