use super::*;

const SPKI: &str = include_str!("testdata/spki.pem");
const PKCS1: &str = include_str!("testdata/pkcs1.pem");
const CERTIFICATE: &str = include_str!("testdata/certificate.pem");
const EC: &str = include_str!("testdata/ec.pem");

/// The message that the private key of [`SPKI`] signed; that key was not kept.
const MESSAGE: &[u8] = b"GET&http%3A%2F%2Fh%2F&a%3D1";
const SIGNATURES: [(RsaHash, &str); RsaHash::VARIANTS.len()] = [
    (RsaHash::Sha1, include_str!("testdata/sha1.signature")),
    (RsaHash::Sha256, include_str!("testdata/sha256.signature")),
    (RsaHash::Sha512, include_str!("testdata/sha512.signature")),
    (RsaHash::PssSha256, include_str!("testdata/pss.signature")),
];

fn refusal(pem: &str) -> InvalidRsaKey {
    RsaPublicKey::from_pem(pem).unwrap_err()
}

#[test]
fn reads_the_key_in_each_wrapping() {
    for pem in [
        SPKI,
        PKCS1,
        CERTIFICATE,
        &SPKI.replace('\n', "\r\n"),
        &format!("a comment\n{SPKI}{EC}"),
    ] {
        let key = RsaPublicKey::from_pem(pem).unwrap();
        assert_eq!(key.bits(), 2048);
        for (method, signature) in SIGNATURES {
            assert!(
                key.verifies(method, &MESSAGE, signature.trim_end().as_bytes()),
                "{method:?}"
            );
        }
    }
}

#[test]
fn a_signature_holds_for_its_own_method_and_message_only() {
    let key = RsaPublicKey::from_pem(SPKI).unwrap();
    for (signed_with, signature) in SIGNATURES {
        let signature = signature.trim_end().as_bytes();
        for &method in RsaHash::VARIANTS {
            assert_eq!(
                key.verifies(method, &MESSAGE, signature),
                method == signed_with,
                "{method:?}"
            );
        }
        assert!(!key.verifies(signed_with, &&b"GET&http%3A%2F%2Fh%2F&a%3D2"[..], signature));
    }
}

#[test]
fn takes_one_spelling_of_the_signature() {
    let key = RsaPublicKey::from_pem(SPKI).unwrap();
    let (method, line) = SIGNATURES[0];
    let right = line.trim_end();
    assert!(key.verifies(method, &MESSAGE, right.as_bytes()));
    let body = right.trim_end_matches('=');
    for wrong in [
        String::new(),
        body.to_owned(),
        format!("{right}="),
        format!("{right}\n"),
        format!(" {right}"),
        right.replace(['+', '/'], "-"),
        format!("{}\n{}", &right[..64], &right[64..]),
        // The same bytes with spare bits set: 256 bytes leave two base64 digits and four spare bits at the end.
        format!("{}B==", &body[..body.len() - 1]),
        "A".repeat(10_000),
    ] {
        assert_ne!(wrong, right);
        assert!(!key.verifies(method, &MESSAGE, wrong.as_bytes()), "{wrong}");
    }
}

#[test]
fn tells_what_is_wrong_with_a_file() {
    assert_eq!(refusal(""), InvalidRsaKey::NoPem);
    assert_eq!(
        refusal("-----BEGIN PUBLIC KEY-----\nAAAA\n"),
        InvalidRsaKey::NoPem
    );
    assert_eq!(
        refusal(&SPKI.replace("END PUBLIC", "END RSA")),
        InvalidRsaKey::NoPem
    );
    assert_eq!(
        refusal(&SPKI.replace("PUBLIC", "ENCRYPTED PRIVATE")),
        InvalidRsaKey::PrivateKey
    );
    assert_eq!(
        refusal(&SPKI.replace("PUBLIC KEY", "X509 CRL")),
        InvalidRsaKey::Kind
    );
    assert_eq!(refusal(&SPKI.replace('A', "*")), InvalidRsaKey::Base64);
    assert_eq!(refusal(EC), InvalidRsaKey::NotRsa);
    assert_eq!(
        refusal(include_str!("testdata/512.pem")),
        InvalidRsaKey::Size(512)
    );
    assert_eq!(
        refusal(include_str!("testdata/1023.pem")),
        InvalidRsaKey::Size(1023)
    );
}

#[test]
fn opens_what_the_private_key_signed_and_nothing_else() {
    let key = RsaPublicKey::from_pem(SPKI).unwrap();
    for (at, (method, signature)) in SIGNATURES.into_iter().enumerate() {
        let mut signature = STANDARD.decode(signature.trim_end()).unwrap();
        let opened = key.open(&signature).unwrap();
        assert_eq!(
            (opened.hash, opened.digest.len()),
            (method, [20, 32, 64, 32][at])
        );
        assert_eq!(opened.digest_of(MESSAGE), opened.digest);
        assert_ne!(opened.digest_of(&MESSAGE[1..]), opened.digest);
        signature[100] ^= 1;
        assert_eq!(key.open(&signature), None);
        assert_eq!(key.open(&signature[1..]), None);
    }
}

#[test]
fn no_cut_or_bent_file_makes_it_panic() {
    let (_, certificate) = first_block(CERTIFICATE).unwrap();
    let certificate = certificate.unwrap();
    let read = |der: &[u8]| {
        let pem = STANDARD.encode(der);
        let pem = format!("-----BEGIN CERTIFICATE-----{pem}-----END CERTIFICATE-----");
        let _ = RsaPublicKey::from_pem(&pem);
    };
    for end in 0..certificate.len() {
        read(&certificate[..end]);
        let mut bent = certificate.clone();
        bent[end] ^= 0x80;
        read(&bent);
    }
}
