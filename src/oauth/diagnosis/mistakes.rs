//! The known mistakes: each has a fixed name, a sentence that names the fix, and a function that makes it.
//!
//! Those without a source were seen in many libraries. A source is the report of a library or provider, as
//! `owner/repository#number` on GitHub.

use std::{borrow::Cow, collections::HashSet, fmt, rc::Rc};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use sha1::{Digest, Sha1};
use strum::VariantArray;

use super::{
    MAX_CALLBACKS, MAX_PATHS, MAX_URLS,
    recipe::{Bytes, Coding, Pair, Recipe, encoded, mac, prefix_of},
};
use crate::oauth::{
    base_string::origin::Scheme,
    method::SignatureMethod,
    parameters::{fields, name::OAUTH_PREFIX, shape::ParameterLocation},
    percent,
};

/// Defines [`Mistake`] from one row a mistake.
macro_rules! table {
    ($($(#[$attribute:meta])* $name:ident: $advice:literal => $make:expr;)*) => {
        /// A mistake that consumers are known to make when they sign. Its name in snake case is a label of metrics and logs.
        ///
        /// They are tried in this order. Where two lead to the same signature, the one that assumes less comes first: one that
        /// breaks a rule before one that breaks it for some parameters only, and both before one that needs a guessed value.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
        #[strum(serialize_all = "snake_case")]
        pub enum Mistake {
            $(#[doc = concat!("Advice: `` ", $advice, " ``.")] $(#[$attribute])* $name,)*
        }

        impl Mistake {
            /// The advice for the consumer's author, in one sentence.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self {
                    $(Self::$name => $advice,)*
                }
            }

            /// Makes the mistake: returns the ways to sign that it may lead to.
            pub(super) fn make<'a>(self, right: &Recipe<'a>) -> Vec<Recipe<'a>> {
                let make: for<'r> fn(&Recipe<'r>) -> Vec<Recipe<'r>> = match self {
                    $(Self::$name => $make,)*
                };
                make(right)
            }
        }
    };
}

impl Mistake {
    /// All of them.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Its name.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// Whether only somebody who knows the consumer's secret can have made it. An earlier secret proves nothing: it may have
    /// been replaced because others knew it.
    #[must_use]
    pub const fn proves_secret(self) -> bool {
        !matches!(
            self,
            Self::ConsumerSecretMissing
                | Self::KeyInsteadOfSecret
                | Self::PreviousSecret
                | Self::HashWithoutKey
        )
    }
}

impl fmt::Display for Mistake {
    /// `word: advice`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.word(), self.advice())
    }
}

table! {
    // The key.
    TokenSecretMissing: "put the token secret after the '&' of the key"
        => |r| r.one(|r| r.secrets[1].clear());
    AmpersandMissing: "join the two secrets with '&', even if the token secret is empty"
        => |r| r.joins([
            |consumer, token| [encoded(consumer), encoded(token)].concat(),
            |consumer, token| [consumer, token].concat(),
            |consumer, _| consumer.to_vec(),
        ]);
    SecretsNotEncoded: "percent-encode the consumer secret and the token secret before joining them"
        => |r| r.joins([|consumer, token| [consumer, b"&", token].concat()]);
    ConsumerSecretMissing: "put the consumer secret before the '&' of the key"
        => |r| r.one(|r| r.secrets[0].clear());
    SecretsSwapped: "put the consumer secret before the '&' and the token secret after it"
        => |r| r.one(|r| r.secrets.reverse());
    KeyEncodedWhole: "percent-encode the two secrets separately and leave the '&' between them as it is"
        => |r| r.joins([
            |consumer, token| encoded(&[consumer, b"&", token].concat()),
            |consumer, token| encoded(&[&*encoded(consumer), b"&", &encoded(token)].concat()),
        ]);
    SecretsEncodedTwice: "percent-encode the secrets once, not twice"
        => |r| r.each_secret(|secret| vec![encoded(secret)]);
    SecretsDecoded: "use the secrets as they were issued: they were percent-decoded, or decoded from base64 or hexadecimal digits"
        => |r| r.each_secret(|secret| {
            let decoded = [percent::decode(secret), percent::decode_form(secret)].map(|text| Some(text.ok()?.into_owned()));
            decoded.into_iter().chain([STANDARD.decode(secret).ok(), unhex(secret)]).flatten().collect()
        });
    KeyInsteadOfSecret: "make the key of the consumer secret and the token secret, not of the consumer key or the token that are sent"
        => |r| {
            let value = |name: &[u8]| r.pairs.iter().find(|pair| pair.name == name).map(|pair| &*pair.value);
            let (key, token) = (value(b"oauth_consumer_key"), value(b"oauth_token"));
            r.with_secrets([[None, token], [key, None], [key, token]])
        };
    // gitterHQ/gitter-demo-app#5, strimzi/strimzi-kafka-oauth#70: `set NAME=value &&`, and a file that ends with a line break.
    WhiteSpaceAroundSecret: "take white space, line breaks and quotation marks off both ends of the secrets, unless they were issued with them"
        => |r| {
            const WHITE: [&str; 8] = ["", " ", "\n", "\r\n", "\t", "\r", "\u{a0}", "\u{feff}"];
            let around = |secret: &[u8]| {
                let pairs = WHITE.into_iter().flat_map(|before| WHITE.map(|after| [before, after]));
                let pairs = pairs.chain([["\"", "\""], ["'", "'"]]);
                let added = pairs.map(|[before, after]| [before.as_bytes(), secret, after.as_bytes()].concat());
                let trimmed = [secret.trim_ascii().to_vec(), String::from_utf8_lossy(secret).trim().into()];
                added.chain(trimmed).filter(|changed| changed != secret).collect()
            };
            let plain = r.joins([|consumer, token| [consumer, b"&", token].concat()]);
            plain.iter().chain([r]).flat_map(|r| r.each_secret(around)).collect()
        };
    // lorenbrichter/OAuthCore#4
    SecretIsNull: "leave the token secret empty where there is none; the text null, None or undefined was put in its place"
        => |r| {
            let texts: [&[u8]; 7] = [b"null", b"undefined", b"None", b"nil", b"(null)", b"NULL", b"false"];
            let texts = texts.into_iter().filter(|_| r.attempt.token_secret.is_empty());
            r.with_secrets(texts.map(|text| [None, Some(text)]))
        };
    PreviousSecret: "sign with the consumer secret that was issued last: the one before is no longer accepted"
        => |r| r.with_secrets(r.attempt.previous_secret.iter().map(|previous| [Some(previous.expose()), None]));
    // The signed parameters.
    QueryUnsigned: "sign the parameters of the query together with the oauth_ parameters"
        => |r| r.keep(|pair| is_oauth(pair) || pair.location != ParameterLocation::Query);
    BodyUnsigned: "sign the parameters of a form-encoded body together with the oauth_ parameters"
        => |r| r.keep(|pair| is_oauth(pair) || pair.location != ParameterLocation::Body);
    OnlyOauthSigned: "sign the parameters of query and form-encoded body together with the oauth_ parameters"
        => |r| r.keep(is_oauth);
    OauthUnsigned: "sign the oauth_ parameters too, all but oauth_signature"
        => |r| r.keep(|pair| !is_oauth(pair));
    OauthParameterUnsigned: "sign every oauth_ parameter that is sent, all but oauth_signature"
        => |r| without_one(r, is_oauth);
    UnsentParameterSigned: "send every oauth_ parameter that is signed, and sign none that is not sent"
        => |r| {
            let body_hash = STANDARD.encode(Sha1::digest(&r.attempt.other_body));
            let unsent = [
                ("oauth_version", "1.0"),
                ("oauth_token", ""),
                ("oauth_callback", "oob"),
                ("oauth_callback", ""),
                ("oauth_verifier", ""),
                ("oauth_version", "1.0a"),
                ("scope", ""),
                ("oauth_body_hash", &body_hash),
                // jupyterhub/ltiauthenticator#139
                ("oauth_callback", "about:blank"),
            ];
            let callbacks = r.attempt.callbacks.iter().take(MAX_CALLBACKS);
            let unsent = unsent.into_iter().chain(callbacks.map(|callback| ("oauth_callback", &**callback)));
            let unsent = unsent.filter(|(name, _)| r.pairs.iter().all(|pair| pair.name != name.as_bytes()));
            unsent.flat_map(|(name, value)| r.add(name.as_bytes(), value.as_bytes())).collect()
        };
    SignatureSigned: "leave oauth_signature out of what is signed, even while it is empty"
        => |r| r.add(b"oauth_signature", b"");
    OauthPrefixMissing: "sign the oauth_ parameters under their whole names"
        => |r| r.each_pair(|pair| {
            pair.name = pair.name.strip_prefix(OAUTH_PREFIX).unwrap_or(&pair.name).to_vec();
        });
    RealmSigned: "leave realm out of what is signed"
        => |r| r.attempt.realm.iter().flat_map(|realm| r.add(b"realm", realm)).collect();
    BodySigned: "leave a body out of what is signed unless its Content-Type is application/x-www-form-urlencoded"
        => |r| match &*r.attempt.other_body {
            b"" => Vec::new(),
            body => [
                r.with_pairs(|pairs| pairs.extend(pairs_of_form(body))),
                r.with_pairs(|pairs| pairs.extend(members_of_json(body))),
                r.with_pairs(|pairs| pairs.extend(parts_of_multipart(body))),
                r.add(body, b""),
                r.add(b"body", body),
            ]
            .concat(),
        };
    EmptyValuesUnsigned: "sign parameters with an empty value too"
        => |r| r.keep(|pair| !pair.value.is_empty());
    EqualsMissing: "write the '=' of a parameter with an empty value too"
        => |r| r.one(|r| r.bare_names = true);
    RepeatedNamesUnsigned: "sign a parameter that is sent several times as often as it is sent"
        => |r| {
            let first = |pairs: &mut Vec<Pair>| {
                let mut known = HashSet::new();
                pairs.retain(|pair| known.insert(pair.name.clone()));
            };
            let last = |pairs: &mut Vec<Pair>| {
                pairs.reverse();
                first(pairs);
                pairs.reverse();
            };
            // postmanlabs/postman-app-support#404
            let joined = |pairs: &mut Vec<Pair>| {
                first(pairs);
                for pair in pairs.iter_mut() {
                    let same = r.pairs.iter().filter(|other| other.name == pair.name);
                    pair.value = same.map(|other| &*other.value).collect::<Vec<_>>().join(&b',');
                }
            };
            [r.with_pairs(first), r.with_pairs(last), r.with_pairs(joined)].concat()
        };
    // woocommerce/wc-api-node#39: once from the URL and once from the parameters of the call.
    SignedTwice: "sign each parameter as often as it is sent; those of query or body, or the oauth_ ones, were signed twice"
        => |r| {
            let kinds: [fn(&&Pair) -> bool; 3] = [|pair| !is_oauth(pair), |pair| is_oauth(pair), |_| true];
            let repeated = kinds.map(|kind| r.pairs.iter().filter(kind).cloned());
            repeated.into_iter().flat_map(|repeated| r.with_pairs(|pairs| pairs.extend(repeated))).collect()
        };
    // tradegecko/woocommerce_api#55
    IndexesChanged: "sign the names of repeated parameters as they are sent: a[] and a[0] are different names"
        => |r| {
            let numbered = r.with_pairs(|pairs| {
                for at in (0..pairs.len()).rev() {
                    let before = pairs[..at].iter().filter(|pair| pair.name == pairs[at].name).count();
                    if let Some(name) = pairs[at].name.strip_suffix(b"[]") {
                        pairs[at].name = [name, format!("[{before}]").as_bytes()].concat();
                    }
                }
            });
            let others = ["[]", ""].into_iter().flat_map(|index| r.each_pair(|pair| write_index(pair, index)));
            numbered.into_iter().chain(others).collect()
        };
    // scribejava/scribejava#85: a parameter is added after the signature was made.
    ParameterUnsigned: "sign each parameter of query and form-encoded body; one that is sent was left out"
        => |r| without_one(r, |pair| !is_oauth(pair));
    // scribejava/scribejava#497: the clock is read for the signature and again for the header.
    OtherTimestamp: "take the time once: the oauth_timestamp that is signed is not the one that is sent"
        => |r| {
            let near = |sent: &[u8], off| str::from_utf8(sent).ok()?.parse::<u64>().ok()?.checked_add_signed(off);
            let signed = |off| r.each_pair(|pair| {
                if let Some(signed) = near(&pair.value, off).filter(|_| pair.name == b"oauth_timestamp") {
                    pair.value = signed.to_string().into();
                }
            });
            [-1, 1, -2, 2].map(signed).concat()
        };
    // A browser sends each line break of a form as CR LF, whatever was signed (LTI launches).
    LineBreaksChanged: "sign line breaks as they are sent: forms send CR LF"
        => |r| {
            let with = |line_break: &[u8]| r.each_pair(|pair| {
                let lines = pair.value.split(|&byte| byte == b'\n');
                let lines: Vec<&[u8]> = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect();
                pair.value = lines.join(line_break);
            });
            [with(b"\n"), with(b"\r\n")].concat()
        };
    // The order of the parameters.
    Unsorted: "sort the parameters by name, then by value, after encoding them"
        => |r| {
            use ParameterLocation::{Body, Header, Query};
            let locations = [
                [Header, Query, Body],
                [Header, Body, Query],
                [Query, Header, Body],
                [Query, Body, Header],
                [Body, Header, Query],
                [Body, Query, Header],
            ];
            // Mastercard/oauth1-signer-nodejs#3: the parts are sorted, and not the whole. [oauth_, others]
            let sorted = [[false, false], [true, true], [true, false], [false, true]];
            let orders = locations.into_iter().flat_map(|locations| sorted.map(|sorted| (locations, sorted)));
            let oauth = r.pairs.iter().find(|pair| is_oauth(pair)).map(|pair| pair.location);
            let mut ways = r.each(orders, |r, (locations, sorted)| {
                Rc::make_mut(&mut r.pairs).sort_by_cached_key(|pair| {
                    let is_sorted = sorted[usize::from(Some(pair.location) != oauth)];
                    let encoded = is_sorted.then(|| [&pair.name, &pair.value].map(|text| encoded(text)));
                    (locations.iter().position(|location| *location == pair.location), encoded)
                });
                r.order = |_, _| Default::default();
            });
            let mut known = HashSet::new();
            ways.retain(|way| known.insert(Rc::clone(&way.pairs)));
            ways
        };
    SortedBeforeEncoding: "percent-encode names and values first and then sort them"
        => |r| r.sorted(|pair, _| [pair.name.clone(), pair.value.clone()]);
    SortedByNameOnly: "sort parameters of equal name by their encoded value"
        => |r| r.sorted(|_, [name, _]| [name.clone(), Vec::new()]);
    SortedIgnoringCase: "sort by bytes: upper-case letters come before lower-case ones"
        => |r| r.sorted(|_, both| both.each_ref().map(|text| text.to_ascii_lowercase()));
    // jdg/oauthconsumer#8, javaee/jersey#1105
    SortedAfterJoining: "sort parameters by name and equal names by value, not by the joined text name=value"
        => |r| r.sorted(|_, both| [both.join(&b'='), Vec::new()]);
    // OpenMage/magento-lts#721, OAuthSwift/OAuthSwift#283
    SortedByNumber: "sort by bytes: the name id_10 comes before id_2"
        => |r| r.sorted(|_, both| both.each_ref().map(|text| zero_padded(text)));
    // The encoding of the parameters.
    LowerCaseEscapes: "write the letters of escapes in upper case, %2F rather than %2f"
        => |r| {
            const LOWER: Coding = Coding { lower: true, ..Coding::RIGHT };
            let parts = [([LOWER; 2], r.outer), (r.codings, [LOWER; 2]), ([LOWER; 2], [LOWER; 2])];
            let parts = r.each(parts, |r, (codings, outer)| (r.codings, r.outer) = (codings, outer));
            // .NET's HttpUtility.
            [parts, r.coded(LOWER, [["!*()", ""], ["!*()", "~"]])].concat()
        };
    PlusForSpace: "encode a space as %20, not as '+'"
        => |r| {
            let plus = Coding { plus: true, ..Coding::RIGHT };
            // Java's URLEncoder, PHP's and Python 2's urlencode, .NET's HttpUtility.
            let upper = r.coded(plus, [["", ""], ["*", "~"], ["", "~"], ["!*'()", ""]]);
            let lower = r.coded(Coding { lower: true, ..plus }, [["", ""], ["!*()", ""], ["!*()", "~"]]);
            let has_space = r.pairs.iter().any(|pair| [&pair.name, &pair.value].iter().any(|text| text.contains(&b' ')));
            upper.into_iter().chain(lower).filter(|_| has_space).collect()
        };
    PlusSentBare: "send '+' as %2B in a query or form: a bare '+' is a space there"
        => |r| r.each_pair(|pair| {
            let written = [&mut pair.name, &mut pair.value].into_iter().filter(|_| pair.location != ParameterLocation::Header);
            written.flatten().filter(|byte| **byte == b' ').for_each(|byte| *byte = b'+');
        });
    EncodedTwice: "decode what the query or body has before encoding it for the base string, and encode it once"
        => |r| [
            r.coded(Coding { bytes: encoded, ..Coding::RIGHT }, [["", ""]]),
            r.each_pair(|pair| if !is_oauth(pair) {
                (pair.name, pair.value) = (encoded(&pair.name), encoded(&pair.value));
            }),
            r.each_pair(|pair| if is_oauth(pair) {
                pair.value = encoded(&pair.value);
            }),
            r.with_pairs(|pairs| {
                pairs.retain(|pair| pair.location != ParameterLocation::Query);
                let raw = split_form(&r.attempt.query).filter(|(name, _)| *name != b"oauth_signature");
                pairs.extend(raw.map(|(name, value)| Pair::new(ParameterLocation::Query, name, value)));
            }),
            // WP-API/OAuth1#92: a callback that has a query of its own.
            r.each(0..r.pairs.len(), |r, at| {
                let pair = &mut Rc::make_mut(&mut r.pairs)[at];
                pair.value = encoded(&pair.value);
            }),
        ]
        .concat();
    DecodedTwice: "decode each parameter once before encoding it for the base string: what it says after that is its value"
        => |r| r.each_pair(|pair| {
            let decoded = |text: &[u8]| percent::decode(text).map_or_else(|_| text.to_vec(), Cow::into_owned);
            (pair.name, pair.value) = (decoded(&pair.name), decoded(&pair.value));
        });
    NotEncoded: "percent-encode each name and value before joining them, and then the joined text once more"
        => |r| {
            let (plain, right) = (Coding::PLAIN, Coding::RIGHT);
            r.each([[plain, plain], [plain, right], [right, plain]], |r, codings| r.codings = codings)
        };
    // AsyncHttpClient/async-http-client#1216 leaves '*' alone. JavaScript's encodeURIComponent leaves them all.
    MarksNotEncoded: "percent-encode ! * ' ( ) as well"
        => |r| r.leaving("!*'() * ! ' () !*() !'() !*'");
    // CORDEA/oauth#4, chrhansen/simple-oauth1#8, WP-API/OAuth1#127. encodeURI leaves most of them, Python's quote the slash.
    ReservedNotEncoded: "percent-encode '/', ':', ',', '[', ']' and every other reserved character in names and values too"
        => |r| r.leaving("/ : , @ [] ; $ + = & ? | :/ :, @: !*'();/?:@&=+$,# ;/?:@&=+$,# !*'();/?:@&=+$,#[] !$&'()*+,;=:@/? $!*'(),");
    // joestump/python-oauth2#15, request/oauth-sign#4
    UnreservedEncoded: "leave letters, digits, '-', '.', '_' and '~' as they are"
        => |r| r.coded(
            Coding::RIGHT,
            [["", "~"], ["*", "~"], ["/", "~"], ["@*+/", "~"], ["", "."], ["", "_"], ["", "-"], ["", "._-"], ["", "._-~"]],
        );
    // restsharp/RestSharp#1945, carlos-emr/carlos#3007
    #[strum(serialize = "utf_8_twice")]
    Utf8Twice: "encode text as UTF-8 once: its UTF-8 was taken for ISO 8859-1 and encoded again"
        => |r| {
            let twice_encoded = |text: &[u8]| text.iter().copied().map(char::from).collect::<String>().into_bytes();
            r.coded(Coding { bytes: twice_encoded, ..Coding::RIGHT }, [["", ""]])
        };
    #[strum(serialize = "not_utf_8")]
    NotUtf8: "encode text as UTF-8 before percent-encoding it"
        => |r| {
            let ways: [Bytes; 2] = [latin1, |text| String::from_utf8_lossy(text).replace(|it: char| !it.is_ascii(), "?").into_bytes()];
            ways.map(|bytes| r.coded(Coding { bytes, ..Coding::RIGHT }, [["", ""]])).concat()
        };
    // The base string.
    ParametersNotEncoded: "percent-encode the joined parameters once more when they go into the base string"
        => |r| r.one(|r| r.outer[1] = Coding::PLAIN);
    UriNotEncoded: "percent-encode the URI when it goes into the base string"
        => |r| r.each([r.outer[1], Coding::PLAIN], |r, parameters| r.outer = [Coding::PLAIN, parameters]);
    OtherMethod: "sign the method that is sent, in upper case"
        => |r| {
            let lower = r.method.to_ascii_lowercase();
            let mut capital = lower.clone();
            capital[..1.min(lower.len())].make_ascii_uppercase();
            let others = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", ""].map(Into::into);
            r.each(others.into_iter().chain([lower, capital, r.attempt.method.clone()]), |r, method| r.method = method)
        };
    // WP-API/OAuth1#60, ucfopen/UDOIT#167
    OtherScheme: "sign the scheme of the public URL: https where it is called by https, and http or https for a WebSocket, not ws or wss"
        => |r| {
            let (ours, other) = match r.scheme {
                "http://" => (Scheme::Http, Scheme::Https),
                _ => (Scheme::Https, Scheme::Http),
            };
            let shown = r.port.or(Some(ours.default_port()));
            let ports = [r.port, None, shown, Some(other.default_port())];
            let http = r.each(ports, |r, port| (r.scheme, r.port) = (prefix_of(other), port));
            let web_socket = ["ws://", "wss://"].into_iter().flat_map(|scheme| [r.port, shown].map(|port| (scheme, port)));
            let web_socket = r.each(web_socket, |r, (scheme, port)| (r.scheme, r.port) = (scheme, port));
            [http, web_socket].concat()
        };
    // postmanlabs/postman-app-support#123
    UriNotAbsolute: "sign the absolute URI, scheme and host included"
        => |r| [
            r.each(["", "//"], |r, scheme| r.scheme = scheme),
            r.one(|r| (r.scheme, r.host, r.port) = ("", String::new(), None)),
        ]
        .concat();
    // ciaranj/connect-auth#28
    DefaultPortSigned: "leave the port out of the URI if it is the default one, 80 for http and 443 for https"
        => |r| match r.port {
            None => r.one(|r| r.port = Some(r.attempt.scheme.default_port())),
            Some(_) => Vec::new(),
        };
    // instructure/ims-lti#67
    PortMissing: "keep the port in the URI if it is not the default one"
        => |r| r.one(|r| r.port = None);
    // pelle/oauth#1, bitnami/bitnami-docker-moodle#171: the port on which a container or a gateway listens.
    OtherPort: "sign the port that is called, not the one on which a container or a gateway listens"
        => |r| {
            let urls = SCHEMES.into_iter().flat_map(|scheme| ports().map(move |port| (scheme, port)));
            r.each(urls, |r, (scheme, port)| (r.scheme, r.port) = (scheme, port))
        };
    HostNotLowered: "write the host in lower case"
        => |r| r.one(|r| r.host = r.attempt.host.clone());
    // mitodl/pylti#52
    TrailingSlash: "sign the path as it is sent, with its slash at the end if there is one, else without"
        => |r| r.one(|r| match r.path.strip_suffix(b"/") {
            Some(path) => r.path = path.to_vec(),
            None => r.path.push(b'/'),
        });
    // litl/rauth#1, Kong/insomnia#4238
    QueryInUri: "leave the query out of the URI; its parameters go to the other parameters"
        => |r| {
            let query = [b"?", &*r.attempt.query].concat();
            let unsigned = r.keep(|pair| is_oauth(pair) || pair.location != ParameterLocation::Query);
            let bases = [r].into_iter().chain(&unsigned);
            bases.flat_map(|r| r.one(|r| r.uri_query.clone_from(&query))).collect()
        };
    PathMissing: "sign the whole URL, path included"
        => |r| r.paths(["/", ""]);
    PathDecoded: "sign the path with the escapes that it is sent with"
        => |r| r.paths(percent::decode(&r.path));
    PathEscapesChanged: "sign the escapes in the path as they are sent: %2f and %2F, or %7E and ~, are different here"
        => |r| {
            let ways: [WriteEscape; 4] = [
                |byte, _| format!("%{byte:02X}").into_bytes(),
                |byte, _| format!("%{byte:02x}").into_bytes(),
                |byte, sent| if percent::is_unreserved(byte) { vec![byte] } else { sent.to_vec() },
                |byte, _| encoded(&[byte]),
            ];
            r.paths(ways.map(|write| with_escapes(&r.path, write)))
        };
    // bytespider/jsOAuth#22, owncloud/ocis#10237
    PathEncodedAgain: "sign the path as it is sent; its characters were percent-encoded for the signature alone"
        => |r| {
            let encoded_again = |text: &[u8]| text.split(|&byte| byte == b'/').map(encoded).collect::<Vec<_>>().join(&b'/');
            let once = percent::decode(&r.path).into_iter().map(|plain| encoded_again(&plain));
            r.paths(once.chain([encoded_again(&r.path)]).filter(|path| *path != r.path))
        };
    PathLowered: "sign the path in the case in which it is sent: only scheme and host are written in lower case"
        => |r| r.one(|r| r.path.make_ascii_lowercase());
    SlashesMerged: "sign the path with as many slashes as it is sent with"
        => |r| [
            r.one(|r| r.path.dedup_by(|next, last| *next == b'/' && *last == b'/')),
            r.one(|r| r.path.insert(0, b'/')),
        ]
        .concat();
    // A gateway that decodes the path before it forwards the request.
    SlashDecoded: "the path was signed with %2F and arrives with '/': let the gateway in front forward the path as it is sent"
        => |r| {
            let slashes = r.path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
            let escaped = |at: usize, escape: &[u8]| [&r.path[..at], escape, &r.path[at + 1..]].concat();
            r.paths(slashes.take(8).flat_map(|at| [escaped(at, b"%2F"), escaped(at, b"%2f")]))
        };
    // AFNetworking/AFOAuth1Client#91, jaredhanson/passport-http-oauth#17: a gateway has removed the prefix.
    PathPrefixMissing: "sign the whole path, with what precedes the API's own path"
        => |r| {
            let slashes = r.path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/');
            let ends = slashes.map(|(at, _)| &r.path[at..]).take(3).filter(|end| end.len() > 1);
            r.paths(below(&r.path, &r.attempt.prefix).into_iter().chain(ends))
        };
    // WP-API/OAuth1#68: a subfolder is put in front twice.
    PathPrefixAdded: "sign the path that is called; a prefix was signed that the public URL does not have"
        => |r| {
            let first = r.path.iter().skip(1).position(|byte| *byte == b'/').map(|end| &r.path[..=end]);
            let others = r.attempt.other_urls.iter().take(MAX_URLS).map(|url| url.prefix.as_bytes());
            let usual = ["/index.php", "/api", "/rest", "/v1"].map(str::as_bytes);
            let prefixes = others.chain([r.attempt.prefix.as_bytes()]).chain(first).chain(usual);
            r.paths(prefixes.filter(|prefix| !prefix.is_empty()).map(|prefix| [prefix, &r.path].concat()))
        };
    TokenPathRewritten: "sign the path that arrives: another token path of this service was signed, as when a gateway changes the path"
        => |r| {
            let without_query = r.keep(|pair| is_oauth(pair) || pair.location != ParameterLocation::Query);
            let paths = r.attempt.token_paths.iter().take(MAX_PATHS).filter(|path| path.as_bytes() != r.path);
            let ways = paths.flat_map(|path| [r].into_iter().chain(&without_query).map(move |r| (path, r)));
            ways.flat_map(|(path, r)| {
                let (path, query) = path.split_once('?').unwrap_or((path, ""));
                r.one(|r| {
                    r.path = path.into();
                    Rc::make_mut(&mut r.pairs).extend(pairs_of_form(query.as_bytes()));
                })
            })
            .collect()
        };
    // WP-API/OAuth1#246
    OtherPublicUrl: "sign the URL that is called; another URL of this service was signed"
        => |r| with_urls(r, false);
    // Apereo-Learning-Analytics-Initiative/OpenLRS#21
    InternalUrl: "sign the public URL that is called, not the address at which this service listens or that of the API"
        => |r| with_urls(r, true);
    // WP-API/OAuth1#58
    OtherHost: "sign the host that is called: with or without www. in front or a dot at the end it is another one"
        => |r| {
            let other = r.host.strip_prefix("www.").map_or_else(|| format!("www.{}", r.host), str::to_owned);
            let dotted = r.host.strip_suffix('.').map_or_else(|| format!("{}.", r.host), str::to_owned);
            r.each([other, dotted], |r, host| r.host = host)
        };
    LocalAddress: "sign the URL that is called, not a local address such as localhost, 127.0.0.1 or that of a container"
        => |r| {
            let hosts = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0", "host.docker.internal"];
            let urls = [r.port].into_iter().chain(ports()).flat_map(|port| SCHEMES.map(|scheme| (scheme, port)));
            let urls = urls.flat_map(|(scheme, port)| hosts.map(|host| (scheme, host, port)));
            r.each(urls, |r, (scheme, host, port)| (r.scheme, r.host, r.port) = (scheme, host.to_owned(), port))
        };
    BaseStringWithLineBreak: "take the line break off the end of the base string"
        => |r| {
            let endings: [Bytes; 2] = [|text| [text, b"\n"].concat(), |text| [text, b"\r\n"].concat()];
            r.each(endings, |r, ending| r.whole = ending)
        };
    BaseStringLowered: "keep the case of the base string: the method and the escapes are in upper case, and values as they are sent"
        => |r| r.one(|r| r.whole = <[u8]>::to_ascii_lowercase);
    // The signature.
    Hex: "send base64 of the digest's bytes, not hexadecimal digits"
        => |r| {
            let digits = [Some(r.attempt.signature.clone()), STANDARD.decode(&r.attempt.signature).ok()];
            r.meant(digits.into_iter().filter_map(|digits| Some(STANDARD.encode(unhex(&digits?)?).into())))
        };
    Unpadded: "keep the '=' at the end of the base64 text"
        => |r| r.meant([padded(&r.attempt.signature)]);
    UrlSafe: "use the base64 alphabet with '+' and '/', not the URL-safe one"
        => |r| r.meant([padded(&exchanged(&exchanged(&r.attempt.signature, b'-', b'+'), b'_', b'/'))]);
    SignatureEncodedTwice: "percent-encode the signature once when it is put into the request"
        => |r| r.meant(percent::decode(&r.attempt.signature).map(Cow::into_owned));
    SignatureNotEncoded: "percent-encode the signature when it is put into the request, '+' as %2B"
        => |r| r.meant([exchanged(&r.attempt.signature, b' ', b'+')]);
    SignatureWithLineBreak: "take out the line breaks that the base64 encoder puts into the signature or after it"
        => |r| {
            let rest = r.attempt.signature.trim_ascii_end().iter().filter(|byte| !matches!(byte, b'\r' | b'\n'));
            r.meant([rest.copied().collect()])
        };
    OtherHash: "sign with the method that oauth_signature_method names"
        => |r| r.each(SignatureMethod::ALL, |r, method| r.signature_method = *method);
    KeyAndTextSwapped: "give HMAC the joined secrets as its key and the base string as its text"
        => |r| r.one(|r| r.mac = |method, key, text| mac(method, text, key));
    HashWithoutKey: "use HMAC with the joined secrets as its key, not the plain hash"
        => |r| r.one(|r| r.mac = |method, _, text| Some(method.digest(text)));
}

const SCHEMES: [&str; 2] = ["http://", "https://"];

/// The ports on which containers and gateways usually listen.
const PORTS: [u16; 9] = [80, 443, 8080, 8443, 3000, 5000, 8000, 8888, 9000];

/// No port, and [`PORTS`].
fn ports() -> impl Iterator<Item = Option<u16>> {
    [None].into_iter().chain(PORTS.map(Some))
}

fn is_oauth(pair: &Pair) -> bool {
    pair.name.starts_with(OAUTH_PREFIX)
}

/// Each of the pairs left out.
fn without_one<'a>(r: &Recipe<'a>, is_left_out: fn(&Pair) -> bool) -> Vec<Recipe<'a>> {
    let at = (0..r.pairs.len()).filter(|&at| is_left_out(&r.pairs[at]));
    at.flat_map(|at| r.with_pairs(|pairs| drop(pairs.remove(at))))
        .collect()
}

/// Writes `index` instead of the `[0]` at the end of a name.
fn write_index(pair: &mut Pair, index: &str) {
    let rest = pair.name.strip_suffix(b"]").unwrap_or_default();
    let digits = rest.iter().rev().take_while(|it| it.is_ascii_digit());
    if let Some(name) = rest[..rest.len() - digits.count()].strip_suffix(b"[") {
        pair.name = [name, index.as_bytes()].concat();
    }
}

/// The path below `prefix`; nothing if there is no prefix.
fn below<'p>(path: &'p [u8], prefix: &str) -> Option<&'p [u8]> {
    let rest = path.strip_prefix(prefix.as_bytes())?;
    (rest.first() == Some(&b'/') && !prefix.is_empty()).then_some(rest)
}

/// Writes a byte, given with its escape as it is sent.
type WriteEscape = fn(u8, &[u8]) -> Vec<u8>;

/// The path with each escape written in another way.
fn with_escapes(path: &[u8], write: WriteEscape) -> Vec<u8> {
    let mut parts = path.split(|&byte| byte == b'%');
    let first = parts.next().unwrap_or_default().to_vec();
    let rest = parts.flat_map(|part| {
        let byte = part.first_chunk().map(|digits| percent::escaped(*digits));
        let Some(Ok(byte)) = byte else {
            return [b"%", part].concat();
        };
        let (digits, part) = part.split_at(2);
        [write(byte, &[b"%", digits].concat()), part.to_vec()].concat()
    });
    first.into_iter().chain(rest).collect()
}

/// The request at another origin: with the path as it is, and with the prefix of that URL instead of ours.
fn with_urls<'a>(r: &Recipe<'a>, internal: bool) -> Vec<Recipe<'a>> {
    let below_prefix = below(&r.path, &r.attempt.prefix).unwrap_or(&r.path);
    let urls = r.attempt.other_urls.iter();
    let urls = urls.filter(|url| url.internal == internal).take(MAX_URLS);
    let all = urls.flat_map(|url| {
        let prefixed = [url.prefix.as_bytes(), below_prefix].concat();
        let mut paths = vec![r.path.clone(), below_prefix.to_vec(), prefixed];
        paths.dedup();
        paths.into_iter().map(move |path| (url, path))
    });
    r.each(all, |r, (url, path)| {
        r.scheme = prefix_of(url.scheme);
        r.host.clone_from(&url.host);
        r.port = Some(url.port).filter(|port| *port != url.scheme.default_port());
        r.path = path;
    })
}

fn split_form(raw: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    fields(raw).map(|pair| {
        let mut parts = pair.splitn(2, |&byte| byte == b'=');
        let mut part = || parts.next().unwrap_or_default();
        (part(), part())
    })
}

fn pairs_of_form(body: &[u8]) -> impl Iterator<Item = Pair> {
    let plain = |text| percent::decode_form(text).unwrap_or(Cow::Borrowed(text));
    split_form(body)
        .map(move |(name, value)| Pair::new(ParameterLocation::Body, &plain(name), &plain(value)))
}

/// The members of a JSON object, each as its text.
fn members_of_json(body: &[u8]) -> impl Iterator<Item = Pair> {
    let members: serde_json::Map<String, Value> = serde_json::from_slice(body).unwrap_or_default();
    members.into_iter().map(|(name, value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        Pair::new(ParameterLocation::Body, name.as_bytes(), value.as_bytes())
    })
}

/// The parts of a `multipart/form-data` body (RFC 7578) that are no files, each as its name and its text.
fn parts_of_multipart(body: &[u8]) -> impl Iterator<Item = Pair> {
    let end = memchr::memmem::find(body, b"\r\n").unwrap_or_default();
    let delimiter = body[..end].strip_prefix(b"--").filter(|it| !it.is_empty());
    let delimiter = delimiter.map(|boundary| [b"\r\n--", boundary].concat());
    let mut ends: Vec<usize> = Vec::new();
    if let Some(delimiter) = &delimiter {
        ends.extend(memchr::memmem::find_iter(body, delimiter));
    }
    let skipped = delimiter.map_or(0, |delimiter| delimiter.len());
    let mut start = end;
    ends.into_iter().filter_map(move |end| {
        let part = body.get(start..end);
        start = end + skipped;
        let part = part?;
        let head = memchr::memmem::find(part, b"\r\n\r\n")?;
        let (head, text) = (str::from_utf8(&part[..head]).ok()?, &part[head + 4..]);
        let (_, name) = head.split_once("; name=\"")?;
        let (name, _) = name.split_once('"')?;
        let is_file = head.contains("filename");
        (!is_file).then(|| Pair::new(ParameterLocation::Body, name.as_bytes(), text))
    })
}

/// Text in which each number has as many digits, so that sorting by bytes sorts by numbers.
fn zero_padded(text: &[u8]) -> Vec<u8> {
    let runs = text.chunk_by(|left, right| left.is_ascii_digit() == right.is_ascii_digit());
    let padded = runs.flat_map(|run| match run {
        [b'0'..=b'9', ..] => [&b"0000000000"[run.len().min(10)..], run].concat(),
        _ => run.to_vec(),
    });
    padded.collect()
}

/// The text in ISO 8859-1; characters that it lacks keep their UTF-8.
fn latin1(text: &[u8]) -> Vec<u8> {
    let Ok(text) = str::from_utf8(text) else {
        return text.to_vec();
    };
    let bytes = text.chars().flat_map(|it| match u8::try_from(it) {
        Ok(byte) => vec![byte],
        Err(_) => it.to_string().into_bytes(),
    });
    bytes.collect()
}

/// The bytes of hexadecimal digits.
fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_chunks();
    let bytes = pairs.iter().map(|&digits| percent::escaped(digits).ok());
    bytes.collect::<Option<_>>().filter(|_| rest.is_empty())
}

/// Base64 text with the padding that it lacks.
fn padded(text: &[u8]) -> Vec<u8> {
    [text, &b"=="[..text.len().wrapping_neg() % 4 % 3]].concat()
}

fn exchanged(text: &[u8], from: u8, to: u8) -> Vec<u8> {
    let bytes = text.iter();
    bytes
        .map(|&byte| if byte == from { to } else { byte })
        .collect()
}
