use base64::{Engine, engine::general_purpose::STANDARD};
use proptest::prelude::*;

use super::*;
use crate::{
    base::secret::Secret,
    oauth::{DeviationSet, EncodedOrigin, Parameters, Scheme, Selection, SigningKey},
};

/// HMAC by RFC 2104's definition, on nothing but the hash.
mod model {
    use md5::{Digest, Md5};
    use sha1::Sha1;
    use sha2::{Sha256, Sha512};

    use super::SignatureMethod;

    pub(super) fn hmac(method: SignatureMethod, key: &[u8], message: &[u8]) -> Vec<u8> {
        match method {
            SignatureMethod::HmacSha1 => with::<Sha1>(64, key, message),
            SignatureMethod::HmacMd5 => with::<Md5>(64, key, message),
            SignatureMethod::HmacSha256 => with::<Sha256>(64, key, message),
            SignatureMethod::HmacSha512 => with::<Sha512>(128, key, message),
            other => panic!("{other} is no HMAC"),
        }
    }

    fn with<D: Digest>(block: usize, key: &[u8], message: &[u8]) -> Vec<u8> {
        let mut padded = if key.len() > block {
            D::digest(key).to_vec()
        } else {
            key.to_vec()
        };
        padded.resize(block, 0);
        let keyed = |pad: u8, rest: &[u8]| {
            let mut whole: Vec<u8> = padded.iter().map(|byte| byte ^ pad).collect();
            whole.extend_from_slice(rest);
            D::digest(&whole).to_vec()
        };
        keyed(0x5c, &keyed(0x36, message))
    }
}

const HMAC_METHODS: [SignatureMethod; 4] = [
    SignatureMethod::HmacSha1,
    SignatureMethod::HmacMd5,
    SignatureMethod::HmacSha256,
    SignatureMethod::HmacSha512,
];

/// Calls `check` with a request that has `query`.
fn with_base<T>(query: &str, check: impl FnOnce(&BaseString<'_>) -> T) -> T {
    let mut parameters = Parameters::new();
    parameters.read_query(query.as_bytes()).unwrap();
    let origin = EncodedOrigin::new(Scheme::Https, "h", None);
    check(&BaseString {
        method: b"GET",
        origin: &origin,
        path: b"/",
        parameters: &parameters,
        selection: Selection::Rfc5849,
        deviations: DeviationSet::NONE,
    })
}

fn key(consumer_secret: &str, token_secret: &str) -> SigningKey {
    SigningKey::new(&Secret::from(consumer_secret), &Secret::from(token_secret))
}

#[test]
fn joins_the_secrets_encoded_with_an_ampersand() {
    let text = |key: SigningKey| String::from_utf8(Key::from(&key).text().to_vec()).unwrap();
    assert_eq!(text(key("", "")), "&");
    assert_eq!(text(key("cs", "")), "cs&");
    assert_eq!(text(key("", "ts")), "&ts");
    assert_eq!(text(key("a&b %", "é~")), "a%26b%20%25&%C3%A9~");
    let alone = SigningKey::consumer_secret_alone(&Secret::from("a&b %"));
    assert_eq!(text(alone), "a&b %");
}

#[test]
fn keys_and_proofs_print_no_secret() {
    let printed = format!("{:?}", key("hunter2", "hunter3"));
    assert!(!printed.contains("hunter"), "{printed}");
}

#[test]
fn plaintext_is_the_key_and_nothing_else() {
    let key = key("a b", "c");
    with_base("x=1", |base| {
        let check =
            |sent: &[u8]| verify(SignatureMethod::Plaintext, &key, None, base, sent).is_ok();
        assert_eq!(
            sign(SignatureMethod::Plaintext, &key, base).unwrap(),
            "a%20b&c"
        );
        assert!(check(b"a%20b&c"));
        for wrong in [
            &b""[..],
            b"a%20b&",
            b"a%20b&c ",
            b"a b&c",
            b"a%20b%26c",
            b"A%20b&c",
        ] {
            assert!(!check(wrong));
        }
    });
}

#[test]
fn an_rsa_method_without_an_rsa_key_never_holds() {
    with_base("x=1", |base| {
        let all = SignatureMethod::ALL.iter().copied();
        for method in all.filter(|method| method.is_rsa()) {
            assert!(sign(method, &key("a", "b"), base).is_none());
            for other in HMAC_METHODS {
                let sent = sign(other, &key("a", "b"), base).unwrap();
                assert!(verify(method, &key("a", "b"), None, base, sent.as_bytes()).is_err());
            }
            assert!(verify(method, &key("a", "b"), None, base, b"").is_err());
        }
    });
}

#[test]
fn a_signature_holds_with_its_own_method_only() {
    let key = key("consumer", "token");
    with_base("x=1", |base| {
        for signed_with in HMAC_METHODS {
            let sent = sign(signed_with, &key, base).unwrap();
            for &method in SignatureMethod::ALL {
                let holds = verify(method, &key, None, base, sent.as_bytes()).is_ok();
                assert_eq!(holds, method == signed_with, "{signed_with} as {method}");
            }
        }
    });
}

proptest! {
    #[test]
    fn signs_as_the_model_signs(
        consumer_secret in ".{0,80}",
        token_secret in "[ -~]{0,80}",
        query in "[a-f=&]{0,1500}",
    ) {
        let key = key(&consumer_secret, &token_secret);
        with_base(&query, |base| {
            for method in HMAC_METHODS {
                let expected = STANDARD.encode(model::hmac(method, &Key::from(&key).text(), &base.to_vec()));
                // Twice, since the first use prepares the key.
                for _ in 0..2 {
                    prop_assert_eq!(sign(method, &key, base).unwrap(), expected.as_str());
                    prop_assert!(verify(method, &key, None, base, expected.as_bytes()).is_ok());
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn takes_the_one_padded_base64_spelling(
        consumer_secret in "[a-z]{0,8}",
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        method in prop::sample::select(&HMAC_METHODS[..]),
    ) {
        let key = key(&consumer_secret, "");
        with_base("a=1", |base| {
            let right = sign(method, &key, base).unwrap();
            let mut wrong = right.as_bytes().to_vec();
            let at = at.index(wrong.len());
            wrong[at] = byte;
            let same = wrong == right.as_bytes();
            prop_assert_eq!(verify(method, &key, None, base, &wrong).is_ok(), same);

            let unpadded = right.trim_end_matches('=');
            let wrapped = format!("{right}\n");
            let doubled = format!("{right}=");
            let url_safe = right.replace('+', "-").replace('/', "_");
            for other in [unpadded, &wrapped, &doubled, &url_safe, ""] {
                prop_assert_eq!(verify(method, &key, None, base, other.as_bytes()).is_ok(), other == right);
            }
            Ok(())
        })?;
    }
}
