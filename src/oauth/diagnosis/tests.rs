use std::collections::HashSet;

use aws_lc_rs::{
    encoding::AsDer,
    rand::SystemRandom,
    rsa::{KeyPair, KeySize},
    signature::{KeyPair as _, RSA_PKCS1_SHA256},
};
use base64::{Engine, engine::general_purpose::STANDARD};

use super::*;
use crate::oauth::{MethodSet, SigningKey, signature::sign_text};

const CONSUMER_SECRET: &str = "c+s";
const TOKEN_SECRET: &str = "t s";
const PREVIOUS_SECRET: &str = "old";
const CALLBACK: &str = "https://consumer.example/cb";

/// What a consumer sends.
#[derive(Clone)]
struct Sent {
    authority: &'static str,
    path: &'static str,
    query: &'static str,
    form: &'static str,
    other_body: &'static str,
    /// In front of the path, in the public URL.
    prefix: &'static str,
    token_secret: &'static str,
    signature_method: SignatureMethod,
}

/// An alias of the service, and the API behind it.
fn other_urls() -> [OtherUrl; 2] {
    [
        OtherUrl {
            scheme: Scheme::Https,
            host: "alias.example.com".into(),
            port: 443,
            prefix: String::new(),
            internal: false,
        },
        OtherUrl {
            scheme: Scheme::Http,
            host: "10.0.0.5".into(),
            port: 9000,
            prefix: "/v1".into(),
            internal: true,
        },
    ]
}

impl Default for Sent {
    fn default() -> Self {
        Self {
            authority: "Api.Example.com:8443",
            path: "/photos/a%20b",
            query: "size=big+one&b=2&B=1&tag=x&tag=w&empty=&m=it's&t=~&%C3%A9=1",
            form: "c=x%26y",
            other_body: "",
            prefix: "",
            token_secret: TOKEN_SECRET,
            signature_method: SignatureMethod::HmacSha1,
        }
    }
}

/// What a consumer signs, as text: the right base string of [`Sent::default`] until a test bends it.
#[derive(Clone)]
struct Signed {
    method: String,
    uri: String,
    normalized: String,
    key: String,
}

impl Default for Signed {
    fn default() -> Self {
        Self {
            method: "POST".into(),
            uri: "https://api.example.com:8443/photos/a%20b".into(),
            normalized: "%C3%A9=1&B=1&b=2&c=x%26y&empty=&m=it%27s&oauth_consumer_key=ck&oauth_nonce=n&\
                         oauth_signature_method=HMAC-SHA1&oauth_timestamp=1&oauth_token=tk&size=big%20one&t=~&tag=w&tag=x"
                .into(),
            key: "c%2Bs&t%20s".into(),
        }
    }
}

const OAUTH: &str = "oauth_consumer_key=ck&oauth_nonce=n&oauth_signature_method=HMAC-SHA1&oauth_timestamp=1&oauth_token=tk";

impl Signed {
    fn base_string(&self) -> String {
        format!(
            "{}&{}&{}",
            self.method,
            encode(&self.uri),
            encode(&self.normalized)
        )
    }

    fn sign(&self) -> String {
        hmac(SignatureMethod::HmacSha1, &self.key, &self.base_string())
    }

    fn normalized(text: impl Into<String>) -> Self {
        Self {
            normalized: text.into(),
            ..Self::default()
        }
    }

    fn replaced(from: &str, to: &str) -> Self {
        let right = Self::default().normalized;
        assert!(right.contains(from), "{from}");
        Self::normalized(right.replace(from, to))
    }

    fn uri(text: &str) -> Self {
        Self {
            uri: text.into(),
            ..Self::default()
        }
    }

    fn key(text: &str) -> Self {
        Self {
            key: text.into(),
            ..Self::default()
        }
    }
}

fn encode(text: &str) -> String {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| {
            if unreserved(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

fn hmac(method: SignatureMethod, key: &str, message: &str) -> String {
    sign_text(
        method,
        &SigningKey::from_text(key.as_bytes()),
        message.as_bytes(),
    )
    .unwrap()
}

/// Looks for the mistake in a request with that signature.
fn examine<T>(sent: &Sent, signature: &str, look: impl FnOnce(&Attempt<'_>) -> T) -> T {
    examine_with(sent, signature, None, look)
}

fn examine_with<T>(
    sent: &Sent,
    signature: &str,
    rsa: Option<&RsaPublicKey>,
    look: impl FnOnce(&Attempt<'_>) -> T,
) -> T {
    let method = sent.signature_method;
    let mut parameters = Parameters::new();
    let header = format!(
        "OAuth realm=\"R\", oauth_consumer_key=\"ck\", oauth_token=\"tk\", oauth_signature_method=\"{method}\", \
         oauth_timestamp=\"1\", oauth_nonce=\"n\", oauth_signature=\"{}\"",
        encode(signature)
    );
    parameters.read_header(header.as_bytes()).unwrap();
    parameters.read_query(sent.query.as_bytes()).unwrap();
    parameters.read_body(sent.form.as_bytes()).unwrap();
    let protocol = parameters.protocol(MethodSet::ALL).unwrap();
    look(&Attempt {
        method: b"POST",
        scheme: Scheme::Https,
        authority: sent.authority,
        path: sent.path.as_bytes(),
        query: sent.query.as_bytes(),
        parameters: &parameters,
        other_body: sent.other_body.as_bytes(),
        prefix: sent.prefix,
        other_urls: &other_urls(),
        callbacks: &[CALLBACK.to_owned()],
        consumer_secret: &Secret::from(CONSUMER_SECRET),
        previous_secret: Some(&Secret::from(PREVIOUS_SECRET)),
        token_secret: &Secret::from(sent.token_secret),
        rsa,
        signature_method: method,
        signature: protocol.signature.unwrap(),
    })
}

/// Each mistake as a consumer makes it: the signature, and what was sent with it if it is not the usual request.
fn made() -> Vec<(Mistake, String, Sent)> {
    use Mistake::*;

    let usual = Sent::default();
    let right = Signed::default();
    let signed = |mistake, signed: Signed| (mistake, signed.sign(), Sent::default());
    let text = |mistake, signature: String| (mistake, signature, Sent::default());
    let without_token = |text: &str| {
        let sent = Sent {
            token_secret: "",
            ..Sent::default()
        };
        (
            SecretIsNull,
            Signed::key(&format!("c%2Bs&{text}")).sign(),
            sent,
        )
    };
    let base = right.base_string();
    let based = |base: String| hmac(SignatureMethod::HmacSha1, &right.key, &base);
    let digest = STANDARD.decode(right.sign()).unwrap();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let lower = |text: &str| {
        [
            "%C3%A9",
            "%2F",
            "%3A",
            "%3D",
            "%26",
            "%25C3%25A9",
            "C3%25A9",
        ]
        .iter()
        .fold(text.to_owned(), |text, escape| {
            text.replace(escape, &escape.to_lowercase())
        })
    };
    // A signature with both letters that the URL-safe alphabet has not.
    let (url_safe_path, url_safe) = (0..500)
        .map(|at| {
            let uri = format!("https://api.example.com:8443/{at}");
            let path: &'static str = format!("/{at}").leak();
            (path, Signed::uri(&uri).sign())
        })
        .find(|(_, signature)| signature.contains('+') && signature.contains('/'))
        .unwrap();
    let elsewhere = Sent {
        path: url_safe_path,
        ..usual.clone()
    };

    vec![
        signed(TokenSecretMissing, Signed::key("c%2Bs&")),
        signed(AmpersandMissing, Signed::key("c%2Bst%20s")),
        signed(AmpersandMissing, Signed::key("c+s")),
        signed(SecretsNotEncoded, Signed::key("c+s&t s")),
        signed(ConsumerSecretMissing, Signed::key("&t%20s")),
        signed(SecretsSwapped, Signed::key("t%20s&c%2Bs")),
        signed(KeyEncodedWhole, Signed::key("c%2Bs%26t%20s")),
        signed(SecretsEncodedTwice, Signed::key("c%252Bs&t%2520s")),
        signed(KeyInsteadOfSecret, Signed::key("ck&t%20s")),
        signed(KeyInsteadOfSecret, Signed::key("c%2Bs&tk")),
        signed(SecretWithLineBreak, Signed::key("c%2Bs%0A&t%20s")),
        signed(SecretWithLineBreak, Signed::key("c+s&t s\n")),
        signed(SecretWithLineBreak, Signed::key("c%2Bs%0D%0A&t%20s")),
        signed(SecretWithLineBreak, Signed::key("c%2Bs&t%20s%20")),
        without_token("null"),
        without_token("undefined"),
        without_token("(null)"),
        signed(PreviousSecret, Signed::key("old&t%20s")),
        signed(
            QueryUnsigned,
            Signed::normalized(format!("c=x%26y&{OAUTH}")),
        ),
        signed(BodyUnsigned, Signed::replaced("c=x%26y&", "")),
        signed(OnlyOauthSigned, Signed::normalized(OAUTH)),
        signed(OauthUnsigned, Signed::replaced(&format!("&{OAUTH}"), "")),
        signed(
            OauthParameterUnsigned,
            Signed::replaced("&oauth_token=tk", ""),
        ),
        signed(
            UnsentParameterSigned,
            Signed::replaced("oauth_token=tk", "oauth_token=tk&oauth_version=1.0"),
        ),
        signed(
            UnsentParameterSigned,
            Signed::replaced(
                "oauth_consumer_key=ck",
                "oauth_callback=https%3A%2F%2Fconsumer.example%2Fcb&oauth_consumer_key=ck",
            ),
        ),
        signed(
            UnsentParameterSigned,
            Signed::replaced(
                "oauth_consumer_key=ck",
                "oauth_body_hash=2jmj7l5rSw0yVb%2FvlWAYkK%2FYBwk%3D&oauth_consumer_key=ck",
            ),
        ),
        signed(
            SignatureSigned,
            Signed::replaced(
                "&oauth_signature_method",
                "&oauth_signature=&oauth_signature_method",
            ),
        ),
        signed(
            OauthPrefixMissing,
            Signed::normalized(
                "%C3%A9=1&B=1&b=2&c=x%26y&consumer_key=ck&empty=&m=it%27s&nonce=n&signature_method=HMAC-SHA1&size=big%20one&\
                 t=~&tag=w&tag=x&timestamp=1&token=tk",
            ),
        ),
        signed(RealmSigned, Signed::replaced("&size=", "&realm=R&size=")),
        (
            BodySigned,
            Signed::replaced("c=x%26y", "%7B%22a%22%3A1%7D=").sign_sorted(),
            Sent {
                form: "",
                other_body: "{\"a\":1}",
                ..usual.clone()
            },
        ),
        (
            BodySigned,
            Signed::replaced("c=x%26y", "member=some%20text&n=1").sign_sorted(),
            Sent {
                form: "",
                other_body: "{\"member\": \"some text\", \"n\":1}",
                ..usual.clone()
            },
        ),
        (
            BodySigned,
            Signed::replaced("c=x%26y", "c=x%26y").sign(),
            Sent {
                form: "",
                other_body: "c=x%26y",
                ..usual.clone()
            },
        ),
        signed(EmptyValuesUnsigned, Signed::replaced("empty=&", "")),
        signed(EqualsMissing, Signed::replaced("empty=", "empty")),
        signed(RepeatedNamesUnsigned, Signed::replaced("&tag=w", "")),
        signed(RepeatedNamesUnsigned, Signed::replaced("&tag=x", "")),
        signed(
            RepeatedNamesUnsigned,
            Signed::replaced("tag=w&tag=x", "tag=x%2Cw"),
        ),
        signed(ParameterUnsigned, Signed::replaced("b=2&", "")),
        signed(ParameterUnsigned, Signed::replaced("&size=big%20one", "")),
        signed(
            OtherTimestamp,
            Signed::replaced("oauth_timestamp=1", "oauth_timestamp=2"),
        ),
        // The query sorted, then the oauth_ parameters, then the body.
        signed(
            Unsorted,
            Signed::normalized(
                right
                    .normalized
                    .replace("c=x%26y&", "")
                    .replace(&format!("{OAUTH}&"), "")
                    + "&"
                    + OAUTH
                    + "&c=x%26y",
            ),
        ),
        // The oauth_ parameters sorted, the query as it is sent.
        signed(
            Unsorted,
            Signed::normalized(format!(
                "size=big%20one&b=2&B=1&tag=x&tag=w&empty=&m=it%27s&t=~&%C3%A9=1&{OAUTH}&c=x%26y"
            )),
        ),
        (
            SortedAfterJoining,
            Signed::normalized(format!("a1=2&a=1&c=x%26y&{OAUTH}")).sign(),
            Sent {
                query: "a=1&a1=2",
                ..usual.clone()
            },
        ),
        (
            SortedByNumber,
            Signed::normalized(format!("c=x%26y&id_1=z&id_2=x&id_10=y&{OAUTH}")).sign(),
            Sent {
                query: "id_10=y&id_2=x&id_1=z",
                ..usual.clone()
            },
        ),
        (
            ReservedNotEncoded,
            Signed::normalized(format!("c=x%26y&next=/a%3Ab%2Cc&{OAUTH}")).sign(),
            Sent {
                query: "next=/a:b,c",
                ..usual.clone()
            },
        ),
        (
            ReservedNotEncoded,
            Signed::normalized(format!("c=x&next=/a:b,c&{OAUTH}&s=a%20b")).sign(),
            Sent {
                query: "next=/a:b,c&s=a+b",
                form: "c=x",
                ..usual.clone()
            },
        ),
        signed(Utf8Twice, Signed::replaced("%C3%A9", "%C3%83%C2%A9")),
        signed(
            UriNotAbsolute,
            Signed::uri("api.example.com:8443/photos/a%20b"),
        ),
        signed(
            UriNotAbsolute,
            Signed::uri("//api.example.com:8443/photos/a%20b"),
        ),
        signed(UriNotAbsolute, Signed::uri("/photos/a%20b")),
        (
            PathEncodedAgain,
            Signed::uri("https://api.example.com:8443/xcal%3Ball").sign(),
            Sent {
                path: "/xcal;all",
                ..usual.clone()
            },
        ),
        signed(
            PathEncodedAgain,
            Signed::uri("https://api.example.com:8443/photos/a%2520b"),
        ),
        signed(
            SlashesMerged,
            Signed::uri("https://api.example.com:8443//photos/a%20b"),
        ),
        (
            SlashesMerged,
            Signed::uri("https://api.example.com:8443/photos/a").sign(),
            Sent {
                path: "/photos//a",
                ..usual.clone()
            },
        ),
        signed(
            OtherHost,
            Signed::uri("https://www.api.example.com:8443/photos/a%20b"),
        ),
        (
            OtherHost,
            Signed::uri("https://example.com/photos/a%20b").sign(),
            Sent {
                authority: "www.example.com",
                ..usual.clone()
            },
        ),
        (
            OtherHost,
            Signed::uri("https://localhost:8443/photos/a%20b").sign(),
            Sent {
                authority: "127.0.0.1:8443",
                ..usual.clone()
            },
        ),
        signed(
            PathPrefixMissing,
            Signed::uri("https://api.example.com:8443/a%20b"),
        ),
        (
            PathPrefixMissing,
            Signed::uri("https://api.example.com:8443/x").sign(),
            Sent {
                path: "/a/b/c/d/e/x",
                prefix: "/a/b/c/d/e",
                ..usual.clone()
            },
        ),
        signed(
            PathPrefixAdded,
            Signed::uri("https://api.example.com:8443/v1/photos/a%20b"),
        ),
        signed(
            PathPrefixAdded,
            Signed::uri("https://api.example.com:8443/photos/photos/a%20b"),
        ),
        signed(
            OtherPublicUrl,
            Signed::uri("https://alias.example.com/photos/a%20b"),
        ),
        (
            OtherPublicUrl,
            Signed::uri("https://alias.example.com/x").sign(),
            Sent {
                path: "/api/x",
                prefix: "/api",
                ..usual.clone()
            },
        ),
        signed(
            InternalUrl,
            Signed::uri("http://10.0.0.5:9000/photos/a%20b"),
        ),
        signed(
            InternalUrl,
            Signed::uri("http://10.0.0.5:9000/v1/photos/a%20b"),
        ),
        signed(
            Unsorted,
            Signed::normalized(
                "oauth_consumer_key=ck&oauth_token=tk&oauth_signature_method=HMAC-SHA1&oauth_timestamp=1&oauth_nonce=n&\
                 size=big%20one&b=2&B=1&tag=x&tag=w&empty=&m=it%27s&t=~&%C3%A9=1&c=x%26y",
            ),
        ),
        signed(
            SortedBeforeEncoding,
            Signed::normalized(right.normalized.replace("%C3%A9=1&", "") + "&%C3%A9=1"),
        ),
        signed(
            SortedByNameOnly,
            Signed::replaced("tag=w&tag=x", "tag=x&tag=w"),
        ),
        (
            SortedIgnoringCase,
            Signed::replaced("B=1&b=2", "b=1&B=2").sign(),
            Sent {
                query: "size=big+one&b=1&B=2&tag=x&tag=w&empty=&m=it's&t=~&%C3%A9=1",
                ..usual.clone()
            },
        ),
        signed(
            EncodedTwice,
            Signed::normalized(right.normalized.replace('%', "%25")),
        ),
        signed(
            EncodedTwice,
            Signed::normalized(
                right
                    .normalized
                    .replace("%C3%A9=1", "%25C3%25A9=1")
                    .replace("big%20one", "big%2Bone"),
            ),
        ),
        signed(
            NotEncoded,
            Signed::normalized(
                right
                    .normalized
                    .replace("%C3%A9=1&", "")
                    .replace("x%26y", "x&y")
                    .replace("it%27s", "it's")
                    .replace("big%20one", "big one")
                    + "&é=1",
            ),
        ),
        signed(PlusForSpace, Signed::replaced("big%20one", "big+one")),
        signed(LowerCaseEscapes, Signed::replaced("%C3%A9", "%c3%a9")),
        text(LowerCaseEscapes, based(lower(&base))),
        signed(MarksNotEncoded, Signed::replaced("it%27s", "it's")),
        signed(TildeEncoded, Signed::replaced("t=~", "t=%7E")),
        signed(NotUtf8, Signed::replaced("%C3%A9", "%E9")),
        text(
            ParametersNotEncoded,
            based(format!("POST&{}&{}", encode(&right.uri), right.normalized)),
        ),
        text(
            UriNotEncoded,
            based(format!("POST&{}&{}", right.uri, encode(&right.normalized))),
        ),
        text(
            UriNotEncoded,
            based(format!("POST&{}&{}", right.uri, right.normalized)),
        ),
        signed(
            OtherMethod,
            Signed {
                method: "GET".into(),
                ..right.clone()
            },
        ),
        signed(
            OtherMethod,
            Signed {
                method: "post".into(),
                ..right.clone()
            },
        ),
        signed(
            OtherScheme,
            Signed::uri("http://api.example.com:8443/photos/a%20b"),
        ),
        signed(
            OtherScheme,
            Signed::uri("http://api.example.com/photos/a%20b"),
        ),
        (
            DefaultPortSigned,
            Signed::uri("https://api.example.com:443/photos/a%20b").sign(),
            Sent {
                authority: "api.example.com",
                ..usual.clone()
            },
        ),
        (
            DefaultPortSigned,
            Signed::uri("https://api.example.com:443/photos/a%20b").sign(),
            Sent {
                authority: "api.example.com:443",
                ..usual.clone()
            },
        ),
        signed(
            PortMissing,
            Signed::uri("https://api.example.com/photos/a%20b"),
        ),
        signed(
            HostNotLowered,
            Signed::uri("https://Api.Example.com:8443/photos/a%20b"),
        ),
        signed(
            TrailingSlash,
            Signed::uri("https://api.example.com:8443/photos/a%20b/"),
        ),
        (
            TrailingSlash,
            Signed::uri("https://api.example.com:8443/photos").sign(),
            Sent {
                path: "/photos/",
                ..usual.clone()
            },
        ),
        signed(
            QueryInUri,
            Signed::uri(&format!(
                "https://api.example.com:8443/photos/a%20b?{}",
                usual.query
            )),
        ),
        signed(
            QueryInUri,
            Signed {
                uri: format!("{}?{}", right.uri, usual.query),
                normalized: format!("c=x%26y&{OAUTH}"),
                ..right.clone()
            },
        ),
        signed(
            PathDecoded,
            Signed::uri("https://api.example.com:8443/photos/a b"),
        ),
        signed(PathMissing, Signed::uri("https://api.example.com:8443/")),
        signed(PathMissing, Signed::uri("https://api.example.com:8443")),
        text(Hex, hex.clone()),
        text(Hex, STANDARD.encode(hex)),
        text(Unpadded, right.sign().trim_end_matches('=').to_owned()),
        (
            UrlSafe,
            url_safe.replace('+', "-").replace('/', "_"),
            elsewhere.clone(),
        ),
        (
            UrlSafe,
            url_safe
                .replace('+', "-")
                .replace('/', "_")
                .replace('=', ""),
            elsewhere.clone(),
        ),
        text(SignatureEncodedTwice, encode(&right.sign())),
        (SignatureNotEncoded, url_safe.replace('+', " "), elsewhere),
        text(SignatureWithLineBreak, right.sign() + "\n"),
        text(
            OtherHash,
            hmac(SignatureMethod::HmacSha256, &right.key, &base),
        ),
        text(OtherHash, right.key.clone()),
        text(
            KeyAndTextSwapped,
            hmac(SignatureMethod::HmacSha1, &base, &right.key),
        ),
        text(HashWithoutKey, {
            use sha1::{Digest, Sha1};
            STANDARD.encode(Sha1::digest(&base))
        }),
    ]
}

impl Signed {
    /// Signs what an edit has put out of order.
    fn sign_sorted(mut self) -> String {
        let mut pairs: Vec<&str> = self.normalized.split('&').collect();
        pairs.sort_unstable();
        self.normalized = pairs.join("&");
        self.sign()
    }
}

#[test]
fn the_right_signature_needs_no_diagnosis() {
    let sent = Sent::default();
    examine(&sent, &Signed::default().sign(), |attempt| {
        assert!(Recipe::right(attempt).makes(attempt));
        assert_eq!(
            Recipe::right(attempt).base_string(),
            Signed::default().base_string().as_bytes()
        );
    });
}

#[test]
fn finds_each_mistake() {
    for (mistake, signature, sent) in made() {
        let found = examine(&sent, &signature, diagnose);
        assert_eq!(
            found.map(|found| found.mistakes),
            Some(vec![mistake]),
            "{mistake}: {signature}"
        );
    }
}

/// Every mistake of the table that makes this signature, in the order of the table.
fn explanations(attempt: &Attempt<'_>) -> Vec<Mistake> {
    let right = Recipe::right(attempt);
    let explains = |mistake: &&Mistake| {
        let wrong = mistake.make(&right, attempt);
        wrong.iter().any(|wrong| wrong.makes(attempt))
    };
    Mistake::ALL.iter().filter(explains).copied().collect()
}

/// The only ones that share an outcome: the second one breaks the same rule for fewer parameters.
#[test]
fn keeps_each_mistake_apart_from_all_others() {
    use Mistake::*;

    let same = [
        [EmptyValuesUnsigned, ParameterUnsigned],
        [RepeatedNamesUnsigned, ParameterUnsigned],
        [BodyUnsigned, ParameterUnsigned],
    ];
    for (mistake, signature, sent) in made() {
        let found = examine(&sent, &signature, explanations);
        let alone = found == [mistake];
        let listed = same.iter().any(|pair| pair[0] == mistake && found == *pair);
        assert!(alone || listed, "{mistake}: {found:?}");
    }
}

#[test]
fn names_the_mistake_that_assumes_less() {
    use Mistake::*;

    let one = |query| Sent {
        query,
        form: "",
        ..Sent::default()
    };
    for (signed, sent, named, other) in [
        // All of the query, rather than one of its parameters or the empty ones.
        (
            Signed::normalized(OAUTH),
            one("x=1"),
            QueryUnsigned,
            ParameterUnsigned,
        ),
        (
            Signed::normalized(OAUTH),
            one("x="),
            QueryUnsigned,
            EmptyValuesUnsigned,
        ),
        // A name that is sent twice, rather than one parameter.
        (
            Signed::normalized(format!("{OAUTH}&x=1")),
            one("x=1&x=2"),
            RepeatedNamesUnsigned,
            ParameterUnsigned,
        ),
        // The parts of the request in their order, rather than numbers in names.
        (
            Signed::normalized(format!("id_2=x&id_10=y&{OAUTH}")),
            one("id_2=x&id_10=y"),
            Unsorted,
            SortedByNumber,
        ),
    ] {
        let found = examine(&sent, &signed.sign(), explanations);
        assert_eq!(found.first(), Some(&named), "{found:?}");
        assert!(found[1..].contains(&other), "{found:?}");
    }
}

#[test]
fn every_mistake_is_made_in_the_tests() {
    let made: HashSet<Mistake> = made().into_iter().map(|(mistake, ..)| mistake).collect();
    for mistake in Mistake::ALL {
        assert!(made.contains(mistake), "{mistake}");
    }
}

#[test]
fn words_are_words_and_advice_is_one_sentence() {
    let mut words = HashSet::new();
    for mistake in Mistake::ALL {
        assert!(
            mistake
                .word()
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        );
        assert!(words.insert(mistake.word()), "{mistake}");
        assert!(!mistake.advice().ends_with('.'), "{mistake}");
    }
}

#[test]
fn shows_the_base_string_that_was_signed() {
    let wrong = Signed::uri("http://api.example.com/photos/a%20b");
    let found = examine(&Sent::default(), &wrong.sign(), diagnose).unwrap();
    assert_eq!(found.base_string, wrong.base_string().as_bytes());
}

#[test]
fn finds_two_mistakes_made_together() {
    let wrong = Signed {
        uri: "https://api.example.com/photos/a%20b".into(),
        ..Signed::key("c+s&t s")
    };
    examine(&Sent::default(), &wrong.sign(), |attempt| {
        assert_eq!(diagnose(attempt), None);
        let found = diagnose_thoroughly(attempt).unwrap();
        assert_eq!(
            found.mistakes,
            [Mistake::SecretsNotEncoded, Mistake::PortMissing]
        );
        assert_eq!(found.base_string, wrong.base_string().as_bytes());
    });
}

#[test]
fn admits_that_it_does_not_know() {
    for signature in ["AAAAAAAAAAAAAAAAAAAAAAAAAAA=", "%", "not base64", "\u{fe}"] {
        assert_eq!(
            examine(&Sent::default(), signature, diagnose_thoroughly),
            None,
            "{signature}"
        );
    }
}

#[test]
fn examines_plaintext_keys_and_rsa_base_strings() {
    let sent = Sent {
        signature_method: SignatureMethod::Plaintext,
        ..Sent::default()
    };
    for (signature, mistake) in [
        ("c%2Bs&", Mistake::TokenSecretMissing),
        ("c+s&t s", Mistake::SecretsNotEncoded),
    ] {
        let found = examine(&sent, signature, diagnose).unwrap();
        assert_eq!(found.mistakes, [mistake]);
    }

    let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
    let spki: aws_lc_rs::encoding::PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        STANDARD.encode(spki.as_ref())
    );
    let rsa = RsaPublicKey::from_pem(&pem).unwrap();
    let wrong = Signed {
        method: "GET".into(),
        ..Signed::replaced("HMAC-SHA1", "RSA-SHA256")
    };
    let mut signature = vec![0; pair.public_modulus_len()];
    pair.sign(
        &RSA_PKCS1_SHA256,
        &SystemRandom::new(),
        wrong.base_string().as_bytes(),
        &mut signature,
    )
    .unwrap();
    let sent = Sent {
        signature_method: SignatureMethod::RsaSha256,
        ..Sent::default()
    };
    let found = examine_with(&sent, &STANDARD.encode(signature), Some(&rsa), diagnose).unwrap();
    assert_eq!(found.mistakes, [Mistake::OtherMethod]);
}

#[test]
fn an_exotic_request_makes_nothing_panic() {
    let sent = Sent {
        authority: "",
        path: "",
        query: "&=&%00",
        form: "",
        other_body: "\u{0}[",
        ..Sent::default()
    };
    assert_eq!(examine(&sent, "AAAA", diagnose_thoroughly), None);
}
