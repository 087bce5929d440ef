mod made;

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    rc::Rc,
};

use aws_lc_rs::{
    encoding::AsDer,
    rand::SystemRandom,
    rsa::{KeyPair, KeySize},
    signature::{KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaSignatureEncoding},
};
use base64::{Engine, engine::general_purpose::STANDARD};

use self::made::made;
use super::{recipe::Recipe, *};
use crate::oauth::{Authority, SigningKey, signature::sign};

/// The request of a consumer, and the secrets that it should have signed with.
#[derive(Clone)]
struct Sent {
    authority: &'static str,
    path: &'static str,
    query: &'static str,
    form: &'static str,
    other_body: &'static str,
    prefix: &'static str,
    /// Further parameters of the Authorization header field.
    oauth: &'static str,
    secrets: [&'static str; 2],
    method: SignatureMethod,
}

const SENT: Sent = Sent {
    authority: "Api.Example.com:8443",
    path: "/photos/a%20b",
    query: "size=big+one&b=2&B=1&tag=x&tag=w&empty=&m=it's&t=~&%C3%A9=1",
    form: "c=x%26y",
    other_body: "",
    prefix: "",
    oauth: "",
    secrets: ["c+s", "t s"],
    method: SignatureMethod::HmacSha1,
};

/// The texts that a consumer signs: the right ones for [`SENT`] until a test changes them.
#[derive(Clone)]
struct Signed {
    method: String,
    uri: String,
    normalized: String,
    key: String,
}

const URI: &str = "https://api.example.com:8443/photos/a%20b";
const OAUTH: &str = "oauth_consumer_key=ck&oauth_nonce=n&oauth_signature_method=HMAC-SHA1&oauth_timestamp=1&oauth_token=tk";

impl Default for Signed {
    fn default() -> Self {
        Self {
            method: "POST".into(),
            uri: URI.into(),
            normalized: format!(
                "%C3%A9=1&B=1&b=2&c=x%26y&empty=&m=it%27s&{OAUTH}&size=big%20one&t=~&tag=w&tag=x"
            ),
            key: "c%2Bs&t%20s".into(),
        }
    }
}

impl Signed {
    fn base_string(&self) -> String {
        let (uri, normalized) = (encode(&self.uri), encode(&self.normalized));
        format!("{}&{uri}&{normalized}", self.method)
    }

    fn sign(&self) -> String {
        hmac(SignatureMethod::HmacSha1, &self.key, &self.base_string())
    }
}

/// The signature with these normalized parameters.
fn normalized(text: impl Into<String>) -> String {
    let normalized = text.into();
    let right = Signed::default();
    Signed {
        normalized,
        ..right
    }
    .sign()
}

/// The signature with other parameters, sorted.
fn replaced(from: &str, to: &str) -> String {
    let right = Signed::default().normalized;
    assert!(right.contains(from), "{from}");
    let wrong = right.replace(from, to);
    let mut pairs: Vec<&str> = wrong.split('&').filter(|pair| !pair.is_empty()).collect();
    pairs.sort_by_key(|pair| pair.split_once('=').unwrap_or((pair, "")));
    normalized(pairs.join("&"))
}

/// The signature with this URI.
fn uri(text: &str) -> String {
    let (uri, right) = (text.into(), Signed::default());
    Signed { uri, ..right }.sign()
}

/// The signature by this key.
fn key(text: &str) -> String {
    let (key, right) = (text.into(), Signed::default());
    Signed { key, ..right }.sign()
}

fn encode(text: &str) -> String {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let bytes = text.bytes().map(|byte| match unreserved(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    bytes.collect()
}

fn hmac(method: SignatureMethod, key: &str, message: &str) -> String {
    let key = SigningKey::consumer_secret_alone(&key.into());
    sign(method, &key, &message.as_bytes()).unwrap()
}

fn attempt(sent: &Sent, signature: &str) -> WrongSignature {
    let header = format!(
        "OAuth realm=\"R\", oauth_consumer_key=\"ck\", oauth_token=\"tk\", oauth_signature_method=\"{}\", \
         oauth_timestamp=\"1\", oauth_nonce=\"n\", oauth_signature=\"x\"{}",
        sent.method, sent.oauth
    );
    let mut parameters = Parameters::new();
    parameters.read_header(header.as_bytes()).unwrap();
    parameters.read_query(sent.query.as_bytes()).unwrap();
    parameters.read_body(sent.form.as_bytes()).unwrap();
    let url = |scheme, host: &str, port, prefix: &str, internal| OtherUrl {
        scheme,
        host: host.into(),
        port,
        prefix: prefix.into(),
        internal,
    };
    let Authority { host, port } = Authority::parse(sent.authority.as_bytes()).unwrap();
    WrongSignature {
        method: b"POST".to_vec(),
        scheme: Scheme::Https,
        host: host.into(),
        port,
        path: sent.path.into(),
        query: sent.query.into(),
        prefix: sent.prefix.into(),
        parameters: pairs(&parameters),
        realm: parameters.realm().map(<[u8]>::to_vec),
        other_body: sent.other_body.into(),
        consumer_secret: sent.secrets[0].into(),
        previous_secret: Some("old".into()),
        token_secret: sent.secrets[1].into(),
        rsa: None,
        other_urls: vec![
            url(Scheme::Https, "alias.example.com", 443, "", false),
            url(Scheme::Http, "10.0.0.5", 9001, "/v1", true),
        ],
        token_paths: vec!["/oauth/initiate".into(), "/oauth?mode=ask".into()],
        callbacks: vec!["https://consumer.example/cb".into()],
        signature_method: sent.method,
        signature: signature.into(),
    }
}

/// The names of the mistakes that are found, joined.
fn found(attempt: &WrongSignature) -> String {
    let found = diagnose(attempt, &|| true).unwrap();
    let mistakes = found.map_or_else(Vec::new, |found| found.mistakes);
    mistakes
        .iter()
        .map(|mistake| mistake.word())
        .collect::<Vec<_>>()
        .join("+")
}

#[test]
fn finds_each_mistake() {
    let made = made();
    let named = made
        .iter()
        .map(|(word, signature, sent)| [*word, found(&attempt(sent, signature)).leak()]);
    let wrong: Vec<[&str; 2]> = named.filter(|[made, found]| made != found).collect();
    assert!(wrong.is_empty(), "[made, found]: {wrong:?}");
    let made: HashSet<&str> = made.iter().map(|(word, ..)| *word).collect();
    for mistake in Mistake::ALL.iter().copied() {
        assert!(made.contains(mistake.word()), "{mistake}");
    }
}

#[test]
fn the_right_signature_needs_no_diagnosis() {
    let attempt = attempt(&SENT, "");
    let right = Recipe::right(&attempt);
    let signed = Signed::default();
    assert_eq!(right.base_string(), signed.base_string().as_bytes());
    assert_eq!(STANDARD.encode(right.signature().unwrap()), signed.sign());
}

/// Requests of different kinds, for which different mistakes have the same outcome.
fn requests() -> Vec<Sent> {
    let plain = Sent {
        authority: "api.example.com",
        path: "/v2/Photos//a%2fb%7E",
        query: "",
        form: "",
        secrets: ["consumersecret", "tokensecret"],
        ..SENT
    };
    let all = "a%20b=c+d&list[]=1&list[]=2&id_10=1&id_2=~*!'()&A=1&B=/:@,;|&b=&text=1%0A2&%C3%A9=%E2%82%AC&n[0]=1&n[1]=2&x=%2541&z=1&z=0&z1=2";
    vec![
        SENT,
        plain.clone(),
        Sent {
            query: all,
            path: "/a/B;c/",
            authority: "www.Example.com:8080",
            ..plain.clone()
        },
        Sent {
            form: all,
            prefix: "/v2",
            secrets: [" a%2Fb+c== ", "MTIzNDU2"],
            ..plain.clone()
        },
        Sent {
            other_body: "{\"a\": [1]}",
            oauth: ", oauth_callback=\"https%3A%2F%2Fh%2F%3Fa%3Db\", oauth_version=\"1.0\"",
            ..plain.clone()
        },
        Sent {
            query: "size=original&file=vacation.jpg",
            secrets: ["consumer", ""],
            ..plain
        },
    ]
}

/// Every way to make each mistake is named as that mistake, or as an earlier one of the table that is listed here: it leads
/// to the very same base string and key for that request, and says no less.
#[test]
fn tells_every_mistake_from_all_others() {
    const SAME: &[[&str; 2]] = &[
        // The place of the parameters is known: the request has no others.
        ["only_oauth_signed", "body_unsigned"],
        ["only_oauth_signed", "query_unsigned"],
        // The kind of the parameter is known.
        ["parameter_unsigned", "body_unsigned"],
        ["parameter_unsigned", "empty_values_unsigned"],
        ["parameter_unsigned", "repeated_names_unsigned"],
        // The port is the default one, or is missing.
        ["other_port", "default_port_signed"],
        ["other_port", "other_scheme"],
        ["other_port", "port_missing"],
        // The path has nothing that would have to be encoded again.
        ["path_encoded_again", "path_decoded"],
        // The characters that are not encoded are known: the request has no others.
        ["reserved_not_encoded", "marks_not_encoded"],
        ["reserved_not_encoded", "not_encoded"],
        ["unreserved_encoded", "reserved_not_encoded"],
    ];
    let mut confused: Vec<[&str; 2]> = Vec::new();
    for sent in requests() {
        let attempt = attempt(&sent, "");
        let right = Recipe::right(&attempt);
        let mut known = HashMap::from([(right.signature(), "right")]);
        for mistake in Mistake::ALL.iter().copied() {
            for wrong in mistake.make(&right) {
                if Rc::ptr_eq(&wrong.readings, &right.readings) {
                    let first = *known.entry(wrong.signature()).or_insert(mistake.word());
                    confused.push([mistake.word(), first]);
                }
            }
        }
    }
    confused.retain(|[made, first]| made != first && *first != "right");
    confused.sort_unstable();
    confused.dedup();
    let mut same = SAME.to_vec();
    same.sort_unstable();
    assert_eq!(confused, same);
}

#[test]
fn finds_two_mistakes_made_together() {
    let wrong = Signed {
        uri: "https://api.example.com/photos/a%20b".into(),
        key: "c+s&t s".into(),
        ..Signed::default()
    };
    let attempt = attempt(&SENT, &wrong.sign());
    assert_eq!(found(&attempt), "");
    let found = diagnose_thoroughly(&attempt).unwrap();
    let words: Vec<&str> = found
        .mistakes
        .iter()
        .map(|mistake| mistake.word())
        .collect();
    assert_eq!(words, ["secrets_not_encoded", "port_missing"]);
    assert_eq!(found.base_string, wrong.base_string().as_bytes());
}

#[test]
fn admits_that_it_does_not_know_and_stops_when_told() {
    for signature in [
        "AAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "%",
        "not base64",
        "\u{fe}",
        "&",
    ] {
        let mut attempt = attempt(&SENT, signature);
        assert_eq!(diagnose(&attempt, &|| true), Ok(None), "{signature}");
        (attempt.host, attempt.path) = (String::new(), Vec::new());
        (attempt.query, attempt.other_body) = (b"&=&%00".to_vec(), b"\0[".to_vec());
        assert_eq!(diagnose(&attempt, &|| true), Ok(None), "{signature}");
    }
    let asked = Cell::new(0);
    let a_few = || asked.replace(asked.get() + 1) < 5;
    let attempt = attempt(&SENT, "AAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    assert_eq!(diagnose(&attempt, &a_few), Err(Stopped));
    assert_eq!(asked.get(), 6);
}

#[test]
fn examines_plaintext_keys() {
    let sent = Sent {
        method: SignatureMethod::Plaintext,
        ..SENT
    };
    for (signature, word) in [
        ("c%2Bs&", "token_secret_missing"),
        ("c+s&t s", "secrets_not_encoded"),
        ("c%2Bs&t%20s\n", "signature_with_line_break"),
    ] {
        assert_eq!(found(&attempt(&sent, signature)), word);
    }
}

#[test]
fn examines_only_rsa_signatures_by_the_key_of_the_consumer() {
    let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
    let spki: aws_lc_rs::encoding::PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
    let spki = STANDARD.encode(spki.as_ref());
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{spki}\n-----END PUBLIC KEY-----\n");
    let examine_signed = |encoding, method, base: &str, damage: u8| {
        let mut signature = vec![0; pair.public_modulus_len()];
        let random = SystemRandom::new();
        pair.sign(encoding, &random, base.as_bytes(), &mut signature)
            .unwrap();
        signature[9] ^= damage;
        let mut attempt = attempt(&Sent { method, ..SENT }, &STANDARD.encode(signature));
        attempt.rsa = Some(RsaPublicKey::from_pem(&pem).unwrap());
        let asked = Cell::new(0);
        let found = diagnose(&attempt, &|| asked.replace(asked.get() + 1) < u32::MAX).unwrap();
        (found.map(|found| found.mistakes[0].word()), asked.get() > 0)
    };
    let pkcs1: &RsaSignatureEncoding = &RSA_PKCS1_SHA256;
    let examine = |method, base: &str, damage| examine_signed(pkcs1, method, base, damage);
    let base = |method: &str| {
        let normalized = Signed::default().normalized.replace("HMAC-SHA1", method);
        Signed {
            normalized,
            ..Signed::default()
        }
        .base_string()
    };
    let wrong = base("RSA-SHA256").replace("POST&", "GET&");
    let other_method = (Some("other_method"), true);
    assert_eq!(examine(SignatureMethod::RsaSha256, &wrong, 0), other_method);
    let sha512 = base("RSA-SHA512");
    assert_eq!(
        examine(SignatureMethod::RsaSha512, &sha512, 0),
        (Some("other_hash"), true)
    );
    let pss = |method, base: &str, damage| examine_signed(&RSA_PSS_SHA256, method, base, damage);
    let wrong_pss = base("RSA-PSS").replace("POST&", "GET&");
    assert_eq!(pss(SignatureMethod::RsaPss, &wrong_pss, 0), other_method);
    assert_eq!(
        pss(SignatureMethod::RsaSha256, &base("RSA-SHA256"), 0),
        (Some("other_hash"), true)
    );
    assert_eq!(pss(SignatureMethod::RsaPss, &wrong_pss, 1), (None, false));
    // Another key's signature: no base string explains it, so none is made.
    assert_eq!(
        examine(SignatureMethod::RsaSha256, &wrong, 1),
        (None, false)
    );
}

#[test]
fn words_are_words_and_advice_is_one_sentence() {
    let mut words = HashSet::new();
    for mistake in Mistake::ALL.iter().copied() {
        let is_word = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
        assert!(mistake.word().bytes().all(is_word), "{mistake}");
        assert!(words.insert(mistake.word()), "{mistake}");
        assert!(!mistake.advice().ends_with('.'), "{mistake}");
    }
}
