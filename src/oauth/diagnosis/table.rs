//! The known mistakes: for each a fixed word, a sentence that names the fix, and how it is made.
//!
//! Those without a source were seen in many libraries. A source is the report of a library or provider, as
//! `owner/repository#number` on GitHub.

use std::rc::Rc;

use base64::{Engine, engine::general_purpose::STANDARD};
use sha1::{Digest, Sha1};
use zeroize::Zeroizing;

use super::{
    Attempt, MAX_CALLBACKS, MAX_URLS,
    recipe::{
        Bytes, Coding, Hash, Join, Order, Pair, Recipe, Spelling, Text, encoded, prefix_of,
        replaced, unhex,
    },
};
use crate::oauth::{
    method::SignatureMethod,
    name::OAUTH_PREFIX,
    origin::{Scheme, split_authority},
    parameters::fields,
    percent,
    shape::Place,
};

/// A known mistake.
pub(super) struct Row {
    /// The fixed word for it, a label of metrics and logs.
    pub(super) word: &'static str,
    /// The advice for the consumer's author, in one sentence.
    pub(super) advice: &'static str,
    /// Makes the mistake: the ways to sign that it may lead to.
    pub(super) make: fn(&Recipe, &Attempt) -> Vec<Recipe>,
}

/// Defines the table from one row a mistake.
macro_rules! table {
    ($($word:literal: $advice:literal => $make:expr;)*) => {
        /// All mistakes, in the order in which they are tried. Where two lead to the same signature, the one that assumes less comes
        /// first: one that breaks a rule before one that breaks it for some parameters only, and both before one that needs a guessed
        /// value.
        pub(super) static TABLE: &[Row] = &[$(Row { word: $word, advice: $advice, make: $make }),*];
    };
}

table! {
    // The key.
    "token_secret_missing": "put the token secret after the '&' of the key"
        => |recipe, _| keys(recipe, [()], |key, ()| key.secrets[1].clear());
    "ampersand_missing": "join the two secrets with '&', even if the token secret is empty"
        => |recipe, _| {
            joins(
                recipe,
                &[
                    |consumer, token| [encoded(consumer), encoded(token)].concat(),
                    |consumer, token| [consumer, token].concat(),
                    |consumer, _| consumer.to_vec(),
                ],
            )
        };
    "secrets_not_encoded": "percent-encode the consumer secret and the token secret before joining them"
        => |recipe, _| joins(recipe, &[|consumer, token| [consumer, b"&", token].concat()]);
    "consumer_secret_missing": "put the consumer secret before the '&' of the key"
        => |recipe, _| keys(recipe, [()], |key, ()| key.secrets[0].clear());
    "secrets_swapped": "put the consumer secret before the '&' and the token secret after it"
        => |recipe, _| keys(recipe, [()], |key, ()| key.secrets.reverse());
    "key_encoded_whole": "percent-encode the two secrets separately and leave the '&' between them as it is"
        => |recipe, _| {
            joins(
                recipe,
                &[
                    |consumer, token| encoded(&[consumer, b"&", token].concat()),
                    |consumer, token| encoded(&[&*encoded(consumer), b"&", &encoded(token)].concat()),
                ],
            )
        };
    "secrets_encoded_twice": "percent-encode the secrets once, not twice"
        => |recipe, _| each_secret(recipe, |secret| vec![encoded(secret)]);
    "secrets_decoded": "use the secrets as they were issued: they were percent-decoded, or decoded from base64 or hexadecimal digits"
        => |recipe, _| {
            each_secret(recipe, |secret| {
                let decoded = [percent::decode(secret), percent::decode_form(secret)].into_iter().flatten();
                let bytes = [STANDARD.decode(secret).ok(), unhex(secret)].into_iter().flatten();
                decoded.map(|text| text.into_owned()).chain(bytes).collect()
            })
        };
    "key_instead_of_secret": "make the key of the consumer secret and the token secret, not of the consumer key or the token that are sent"
        => |recipe, _| {
            let value =
                |name: &[u8]| recipe.text.pairs.iter().find(|pair| pair.name == name).map(|pair| pair.value.clone());
            let (key, token) = (value(b"oauth_consumer_key"), value(b"oauth_token"));
            keys(recipe, [(None, token.clone()), (key.clone(), None), (key, token)], |wrong, sent| {
                for (secret, sent) in wrong.secrets.iter_mut().zip([sent.0, sent.1]) {
                    if let Some(sent) = sent {
                        *secret = Zeroizing::new(sent);
                    }
                }
            })
        };
    // gitterHQ/gitter-demo-app#5, strimzi/strimzi-kafka-oauth#70: `set NAME=value &&`, and a file that ends with a line break.
    "white_space_around_secret": "take white space, line breaks and quotation marks off both ends of the secrets, unless they were issued with them"
        => |recipe, _| {
            let around = |secret: &[u8]| {
                const WHITE: [&str; 8] = ["", " ", "\n", "\r\n", "\t", "\r", "\u{a0}", "\u{feff}"];
                let pairs = WHITE.iter().flat_map(|before| WHITE.iter().map(move |after| (*before, *after))).skip(1);
                let pairs = pairs.chain([("\"", "\""), ("'", "'")]);
                let mut around: Vec<Vec<u8>> =
                    pairs.map(|(before, after)| [before.as_bytes(), secret, after.as_bytes()].concat()).collect();
                around.push(secret.trim_ascii().to_vec());
                around.push(String::from_utf8_lossy(secret).trim().as_bytes().to_vec());
                around.retain(|changed| changed != secret);
                around
            };
            let plain = joins(recipe, &[|consumer, token| [consumer, b"&", token].concat()]);
            plain.iter().chain([recipe]).flat_map(|recipe| each_secret(recipe, around)).collect()
        };
    // lorenbrichter/OAuthCore#4
    "secret_is_null": "leave the token secret empty where there is none; the text null, None or undefined was put in its place"
        => |recipe, attempt| match attempt.secrets.token.is_empty() {
            false => Vec::new(),
            true => keys(recipe, ["null", "undefined", "None", "nil", "(null)", "NULL", "false"], |key, text| {
                key.secrets[1] = Zeroizing::new(text.as_bytes().to_vec());
            }),
        };
    "previous_secret": "sign with the consumer secret that was issued last: the one before is no longer accepted"
        => |recipe, attempt| {
            keys(recipe, &attempt.secrets.previous, |key, previous| {
                key.secrets[0] = Zeroizing::new(previous.expose().to_vec());
            })
        };
    // Which parameters are signed.
    "query_unsigned": "sign the parameters of the query together with the oauth_ parameters"
        => |recipe, _| keep(recipe, |pair| is_oauth(pair) || pair.place != Place::Query);
    "body_unsigned": "sign the parameters of a form-encoded body together with the oauth_ parameters"
        => |recipe, _| keep(recipe, |pair| is_oauth(pair) || pair.place != Place::Body);
    "only_oauth_signed": "sign the parameters of query and form-encoded body together with the oauth_ parameters"
        => |recipe, _| keep(recipe, is_oauth);
    "oauth_unsigned": "sign the oauth_ parameters too, all but oauth_signature"
        => |recipe, _| keep(recipe, |pair| !is_oauth(pair));
    "oauth_parameter_unsigned": "sign every oauth_ parameter that is sent, all but oauth_signature"
        => |recipe, _| {
            let oauth = recipe.text.pairs.iter().filter(|pair| is_oauth(pair));
            oauth.flat_map(|left_out| keep(recipe, |pair| pair != left_out)).collect()
        };
    "unsent_parameter_signed": "send every oauth_ parameter that is signed, and sign none that is not sent"
        => |recipe, attempt| {
            let body_hash = STANDARD.encode(Sha1::digest(&attempt.other_body));
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
            let callbacks =
                attempt.callbacks.iter().take(MAX_CALLBACKS).map(|callback| ("oauth_callback", &**callback));
            let is_unsent = |name: &str| recipe.text.pairs.iter().all(|pair| pair.name != name.as_bytes());
            let unsent = unsent.into_iter().chain(callbacks).filter(|(name, _)| is_unsent(name));
            unsent.flat_map(|(name, value)| add(recipe, [(name.into(), value.into())])).collect()
        };
    "signature_signed": "leave oauth_signature out of what is signed, even while it is empty"
        => |recipe, _| add(recipe, [(b"oauth_signature".to_vec(), Vec::new())]);
    "oauth_prefix_missing": "sign the oauth_ parameters under their whole names"
        => |recipe, _| {
            values(recipe, |pair| {
                if let Some(rest) = pair.name.strip_prefix(OAUTH_PREFIX) {
                    pair.name = rest.to_vec();
                }
            })
        };
    "realm_signed": "leave realm out of what is signed"
        => |recipe, attempt| {
            attempt.realm.iter().flat_map(|realm| add(recipe, [(b"realm".to_vec(), realm.clone())])).collect()
        };
    "body_signed": "leave a body out of what is signed unless its Content-Type is application/x-www-form-urlencoded"
        => |recipe, attempt| match &*attempt.other_body {
            b"" => Vec::new(),
            body => [
                add(recipe, pairs_of_form(body)),
                add(recipe, members_of_json(body)),
                add(recipe, [(body.to_vec(), Vec::new())]),
                add(recipe, [(b"body".to_vec(), body.to_vec())]),
            ]
            .concat(),
        };
    "empty_values_unsigned": "sign parameters with an empty value too"
        => |recipe, _| keep(recipe, |pair| !pair.value.is_empty());
    "equals_missing": "write the '=' of a parameter with an empty value too"
        => |recipe, _| texts(recipe, [()], |text, ()| text.bare_names = true);
    "repeated_names_unsigned": "sign a parameter that is sent several times as often as it is sent"
        => |recipe, _| {
            let (all, mut first, mut last) = (&recipe.text.pairs, Vec::new(), Vec::new());
            let known = |pairs: &[Pair], pair: &Pair| pairs.iter().any(|other| other.name == pair.name);
            for (pair, from_end) in all.iter().zip(all.iter().rev()) {
                first.extend((!known(&first, pair)).then(|| pair.clone()));
                last.extend((!known(&last, from_end)).then(|| from_end.clone()));
            }
            // postmanlabs/postman-app-support#404
            let mut joined = first.clone();
            for pair in &mut joined {
                let same = all.iter().filter(|other| other.name == pair.name);
                pair.value = same.map(|other| &*other.value).collect::<Vec<_>>().join(&b',');
            }
            with_pairs(recipe, [first, last, joined].into_iter().filter(|pairs| pairs.len() < all.len()))
        };
    // woocommerce/wc-api-node#39: once from the URL and once from the parameters of the call.
    "signed_twice": "sign each parameter as often as it is sent; those of query or body, or the oauth_ ones, were signed twice"
        => |recipe, _| {
            let kinds: [fn(&Pair) -> bool; 3] = [|pair| !is_oauth(pair), is_oauth, |_| true];
            texts(recipe, kinds, |text, kind| {
                let again: Vec<Pair> = text.pairs.iter().filter(|pair| kind(pair)).cloned().collect();
                Rc::make_mut(&mut text.pairs).extend(again);
            })
        };
    // tradegecko/woocommerce_api#55
    "indexes_changed": "sign the names of repeated parameters as they are sent: a[] and a[0] are different names"
        => |recipe, _| {
            let numbered: fn(&mut Vec<Pair>) = |pairs| {
                for at in (0..pairs.len()).rev() {
                    let before = pairs[..at].iter().filter(|pair| pair.name == pairs[at].name).count();
                    if let Some(name) = pairs[at].name.strip_suffix(b"[]") {
                        pairs[at].name = [name, format!("[{before}]").as_bytes()].concat();
                    }
                }
            };
            let bare: fn(&mut Vec<Pair>) = |pairs| each_indexed(pairs, b"");
            let unnumbered: fn(&mut Vec<Pair>) = |pairs| each_indexed(pairs, b"[]");
            texts(recipe, [numbered, unnumbered, bare], |text, change| change(Rc::make_mut(&mut text.pairs)))
        };
    // scribejava/scribejava#85: a parameter is added after the signature was made.
    "parameter_unsigned": "sign each parameter of query and form-encoded body; one that is sent was left out"
        => |recipe, _| {
            let others = recipe.text.pairs.iter().enumerate().filter(|(_, pair)| !is_oauth(pair));
            texts(recipe, others, |text, (at, _)| drop(Rc::make_mut(&mut text.pairs).remove(at)))
        };
    // scribejava/scribejava#497: the clock is read for the signature and again for the header.
    "other_timestamp": "take the time once: the oauth_timestamp that is signed is not the one that is sent"
        => |recipe, _| {
            let at = recipe.text.pairs.iter().position(|pair| pair.name == b"oauth_timestamp");
            let sent = at.and_then(|at| std::str::from_utf8(&recipe.text.pairs[at].value).ok()?.parse().ok());
            let Some((at, sent)) = at.zip(sent) else {
                return Vec::new();
            };
            let near = [-1, 1, -2, 2].into_iter().filter_map(|off| u64::checked_add_signed(sent, off));
            texts(recipe, near, |text, signed| {
                Rc::make_mut(&mut text.pairs)[at].value = signed.to_string().into_bytes()
            })
        };
    // A browser sends each line break of a form as CR LF, whatever was signed (LTI launches).
    "line_breaks_changed": "sign line breaks as they are sent: forms send CR LF"
        => |recipe, _| {
            let ways: [Bytes; 2] = [
                |value| replaced(value, b"\r\n", b"\n"),
                |value| replaced(&replaced(value, b"\r\n", b"\n"), b"\n", b"\r\n"),
            ];
            ways.iter().flat_map(|way| values(recipe, |pair| pair.value = way(&pair.value))).collect()
        };
    // The order of the parameters.
    "unsorted": "sort the parameters by name, then by value, after encoding them"
        => |recipe, _| {
            use Place::{Body, Header, Query};
            let places = [
                [Header, Query, Body],
                [Header, Body, Query],
                [Query, Header, Body],
                [Query, Body, Header],
                [Body, Header, Query],
                [Body, Query, Header],
            ];
            let mut orders: Vec<Vec<Pair>> = Vec::new();
            for places in places {
                // Mastercard/oauth1-signer-nodejs#3: the parts are sorted, and not the whole. [oauth_, others]
                for sorted in [[false, false], [true, true], [true, false], [false, true]] {
                    let mut pairs = Vec::new();
                    for place in places {
                        let mut part: Vec<Pair> =
                            recipe.text.pairs.iter().filter(|pair| pair.place == place).cloned().collect();
                        if sorted[usize::from(!part.first().is_some_and(is_oauth))] {
                            part.sort_by_cached_key(|pair| [&pair.name, &pair.value].map(|text| encoded(text)));
                        }
                        pairs.extend(part);
                    }
                    if !orders.contains(&pairs) {
                        orders.push(pairs);
                    }
                }
            }
            texts(recipe, orders, |text, pairs| {
                text.pairs = Rc::new(pairs);
                text.order = |_, _| Default::default();
            })
        };
    "sorted_before_encoding": "percent-encode names and values first and then sort them"
        => |recipe, _| sorted(recipe, |pair, _| [pair.name.clone(), pair.value.clone()]);
    "sorted_by_name_only": "sort parameters of equal name by their encoded value"
        => |recipe, _| sorted(recipe, |_, [name, _]| [name.clone(), Vec::new()]);
    "sorted_ignoring_case": "sort by bytes: upper-case letters come before lower-case ones"
        => |recipe, _| sorted(recipe, |_, both| both.clone().map(|text| text.to_ascii_lowercase()));
    // jdg/oauthconsumer#8, javaee/jersey#1105
    "sorted_after_joining": "sort parameters by name and equal names by value, not by the joined text name=value"
        => |recipe, _| sorted(recipe, |_, both| [both.join(&b'='), Vec::new()]);
    // OpenMage/magento-lts#721, OAuthSwift/OAuthSwift#283
    "sorted_by_number": "sort by bytes: the name id_10 comes before id_2"
        => |recipe, _| sorted(recipe, |_, both| both.clone().map(|text| zero_padded(&text)));
    // The encoding of the parameters.
    "lower_case_escapes": "write the letters of escapes in upper case, %2F rather than %2f"
        => |recipe, _| {
            const LOWER: Coding = Coding { lower: true, ..Coding::RIGHT };
            let ways = [([LOWER; 2], recipe.text.outer), (recipe.text.codings, [LOWER; 2]), ([LOWER; 2], [LOWER; 2])];
            let mut all = texts(recipe, ways, |text, way| (text.codings, text.outer) = way);
            // .NET's HttpUtility.
            all.extend(coded(recipe, LOWER, [("!*()", ""), ("!*()", "~")]));
            all
        };
    "plus_for_space": "encode a space as %20, not as '+'"
        => |recipe, _| {
            let has_space = recipe.text.pairs.iter().any(|pair| [&pair.name, &pair.value].iter().any(|text| text.contains(&b' ')));
            let plus = Coding { plus: true, ..Coding::RIGHT };
            // Java's URLEncoder, PHP's and Python 2's urlencode, .NET's HttpUtility.
            let mut all = coded(recipe, plus, [("", ""), ("*", "~"), ("", "~"), ("!*'()", "")]);
            all.extend(coded(recipe, Coding { lower: true, ..plus }, [("", ""), ("!*()", ""), ("!*()", "~")]));
            all.retain(|_| has_space);
            all
        };
    "plus_sent_bare": "send '+' as %2B in a query or form: a bare '+' is a space there"
        => |recipe, _| {
            values(recipe, |pair| {
                if pair.place != Place::Header {
                    pair.name = replaced(&pair.name, b" ", b"+");
                    pair.value = replaced(&pair.value, b" ", b"+");
                }
            })
        };
    "encoded_twice": "decode what the query or body has before encoding it for the base string, and encode it once"
        => |recipe, attempt| {
            [
                coded(recipe, Coding { times: 2, ..Coding::RIGHT }, [("", "")]),
                values(recipe, |pair| {
                    if !is_oauth(pair) {
                        (pair.name, pair.value) = (encoded(&pair.name), encoded(&pair.value));
                    }
                }),
                values(recipe, |pair| {
                    if is_oauth(pair) {
                        pair.value = encoded(&pair.value)
                    }
                }),
                with_raw_query(recipe, attempt),
                // WP-API/OAuth1#92: a callback that has a query of its own.
                texts(recipe, 0..recipe.text.pairs.len(), |text, at| {
                    let pair = &mut Rc::make_mut(&mut text.pairs)[at];
                    pair.value = encoded(&pair.value);
                }),
            ]
            .concat()
        };
    "decoded_twice": "decode each parameter once before encoding it for the base string: what it says after that is its value"
        => |recipe, _| {
            let decoded =
                |text: &[u8]| percent::decode(text).map_or_else(|_| text.to_vec(), |text| text.into_owned());
            values(recipe, |pair| (pair.name, pair.value) = (decoded(&pair.name), decoded(&pair.value)))
        };
    "not_encoded": "percent-encode each name and value before joining them, and then the joined text once more"
        => |recipe, _| {
            texts(
                recipe,
                [[Coding::PLAIN; 2], [Coding::PLAIN, Coding::RIGHT], [Coding::RIGHT, Coding::PLAIN]],
                |text, coding| {
                    text.codings = coding;
                },
            )
        };
    // AsyncHttpClient/async-http-client#1216 leaves '*' alone. JavaScript's encodeURIComponent leaves them all.
    "marks_not_encoded": "percent-encode ! * ' ( ) as well"
        => |recipe, _| leaving(recipe, "!*'() * ! ' () !*() !'() !*'");
    // CORDEA/oauth#4, chrhansen/simple-oauth1#8, WP-API/OAuth1#127. encodeURI leaves most of them, Python's quote the slash.
    "reserved_not_encoded": "percent-encode '/', ':', ',', '[', ']' and every other reserved character in names and values too"
        => |recipe, _| leaving(recipe, "/ : , @ [] ; $ + = & ? | :/ :, @: !*'();/?:@&=+$,# ;/?:@&=+$,# !*'();/?:@&=+$,#[] !$&'()*+,;=:@/? $!*'(),");
    // joestump/python-oauth2#15, request/oauth-sign#4
    "unreserved_encoded": "leave letters, digits, '-', '.', '_' and '~' as they are"
        => |recipe, _| coded(
            recipe,
            Coding::RIGHT,
            [("", "~"), ("*", "~"), ("/", "~"), ("@*+/", "~"), ("", "."), ("", "_"), ("", "-"), ("", "._-"), ("", "._-~")],
        );
    // restsharp/RestSharp#1945, carlos-emr/carlos#3007
    "utf_8_twice": "encode text as UTF-8 once: its UTF-8 was taken for ISO 8859-1 and encoded again"
        => |recipe, _| {
            let again = |text: &[u8]| text.iter().copied().map(char::from).collect::<String>().into_bytes();
            coded(recipe, Coding { bytes: again, ..Coding::RIGHT }, [("", "")])
        };
    "not_utf_8": "encode text as UTF-8 before percent-encoding it"
        => |recipe, _| {
            let ways = [latin1, questioned].into_iter();
            ways.flat_map(|bytes| coded(recipe, Coding { bytes, ..Coding::RIGHT }, [("", "")])).collect()
        };
    // The base string.
    "parameters_not_encoded": "percent-encode the joined parameters once more when they go into the base string"
        => |recipe, _| texts(recipe, [()], |text, ()| text.outer[1] = Coding::PLAIN);
    "uri_not_encoded": "percent-encode the URI when it goes into the base string"
        => |recipe, _| {
            texts(recipe, [recipe.text.outer[1], Coding::PLAIN], |text, parameters| {
                text.outer = [Coding::PLAIN, parameters];
            })
        };
    "other_method": "sign the method that is sent, in upper case"
        => |recipe, attempt| {
            let lower = recipe.text.method.to_ascii_lowercase();
            let mut capital = lower.clone();
            capital[..1.min(lower.len())].make_ascii_uppercase();
            let others = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", ""]
                .map(|other| other.as_bytes().to_vec());
            let methods = others.into_iter().chain([lower, capital, attempt.method.clone()]);
            texts(recipe, methods, |text, method| text.method = method)
        };
    // WP-API/OAuth1#60, ucfopen/UDOIT#167
    "other_scheme": "sign the scheme of the public URL: https where it is called by https"
        => |recipe, _| {
            let (ours, other) = match recipe.text.scheme {
                "http://" => (Scheme::Http, Scheme::Https),
                _ => (Scheme::Https, Scheme::Http),
            };
            let shown = recipe.text.port.or(Some(ours.default_port()));
            let ports = [recipe.text.port, None, shown, Some(other.default_port())];
            texts(recipe, ports, |text, port| (text.scheme, text.port) = (prefix_of(other), port))
        };
    // postmanlabs/postman-app-support#123
    "uri_not_absolute": "sign the absolute URI, scheme and host included"
        => |recipe, _| {
            texts(recipe, [("", false), ("//", false), ("", true)], |text, (scheme, path_only)| {
                text.scheme = scheme;
                if path_only {
                    (text.host, text.port) = (String::new(), None);
                }
            })
        };
    // ciaranj/connect-auth#28
    "default_port_signed": "leave the port out of the URI if it is the default one, 80 for http and 443 for https"
        => |recipe, attempt| match recipe.text.port {
            None => texts(recipe, [attempt.url.scheme.default_port()], |text, port| text.port = Some(port)),
            Some(_) => Vec::new(),
        };
    // instructure/ims-lti#67
    "port_missing": "keep the port in the URI if it is not the default one"
        => |recipe, _| texts(recipe, [()], |text, ()| text.port = None);
    // pelle/oauth#1, bitnami/bitnami-docker-moodle#171: the port on which a container or a gateway listens.
    "other_port": "sign the port that is called, not the one on which a container or a gateway listens"
        => |recipe, _| {
            let schemes = ["http://", "https://"].into_iter();
            let ports = schemes.flat_map(|scheme| PORTS.map(|port| (scheme, port)));
            texts(recipe, ports, |text, (scheme, port)| (text.scheme, text.port) = (scheme, port))
        };
    "host_not_lowered": "write the host in lower case"
        => |recipe, attempt| {
            let host = split_authority(&attempt.url.authority).map_or("", |(host, _)| host);
            texts(recipe, [host], |text, host| text.host = host.to_owned())
        };
    // mitodl/pylti#52
    "trailing_slash": "sign the path as it is sent, with its slash at the end if there is one, else without"
        => |recipe, _| {
            let path = &recipe.text.path;
            paths(recipe, [path.strip_suffix(b"/").map_or_else(|| [path, &b"/"[..]].concat(), <[u8]>::to_vec)])
        };
    // litl/rauth#1, Kong/insomnia#4238
    "query_in_uri": "leave the query out of the URI; its parameters go to the other parameters"
        => |recipe, attempt| {
            let query = [b"?", &*attempt.url.query].concat();
            let unsigned = keep(recipe, |pair| is_oauth(pair) || pair.place != Place::Query);
            let bases = [recipe].into_iter().chain(&unsigned);
            bases.flat_map(|base| texts(base, [()], |text, ()| text.uri_query.clone_from(&query))).collect()
        };
    "path_missing": "sign the whole URL, path included"
        => |recipe, _| paths(recipe, [&b"/"[..], b""]);
    "path_decoded": "sign the path with the escapes that it is sent with"
        => |recipe, _| paths(recipe, percent::decode(&recipe.text.path));
    "path_escapes_changed": "sign the escapes in the path as they are sent: %2f and %2F, or %7E and ~, are different here"
        => |recipe, _| {
            let path = &recipe.text.path;
            let with = |write: fn(u8, &[u8]) -> Vec<u8>| {
                let mut parts = path.split(|&byte| byte == b'%');
                let mut out = parts.next().unwrap_or_default().to_vec();
                for part in parts {
                    let byte = part.first_chunk().and_then(|digits| percent::escaped(*digits).ok());
                    out.extend(byte.map_or_else(
                        || [b"%", part].concat(),
                        |byte| [&*write(byte, &part[..2]), &part[2..]].concat(),
                    ));
                }
                out
            };
            paths(
                recipe,
                [
                    with(|byte, _| format!("%{byte:02X}").into_bytes()),
                    with(|byte, _| format!("%{byte:02x}").into_bytes()),
                    with(
                        |byte, digits| {
                            if percent::is_unreserved(byte) { vec![byte] } else { [b"%", digits].concat() }
                        },
                    ),
                    with(|byte, _| encoded(&[byte])),
                ],
            )
        };
    // bytespider/jsOAuth#22, owncloud/ocis#10237
    "path_encoded_again": "sign the path as it is sent; its characters were percent-encoded for the signature alone"
        => |recipe, _| {
            let again = |text: &[u8]| text.split(|&byte| byte == b'/').map(encoded).collect::<Vec<_>>().join(&b'/');
            let once = percent::decode(&recipe.text.path).into_iter().map(|plain| again(&plain));
            paths(recipe, once.chain([again(&recipe.text.path)]).filter(|path| *path != recipe.text.path))
        };
    "path_lowered": "sign the path in the case in which it is sent: only scheme and host are written in lower case"
        => |recipe, _| paths(recipe, [recipe.text.path.to_ascii_lowercase()]);
    "slashes_merged": "sign the path with as many slashes as it is sent with"
        => |recipe, _| {
            let mut merged = recipe.text.path.clone();
            merged.dedup_by(|next, last| *next == b'/' && *last == b'/');
            paths(recipe, [merged, [&b"/"[..], &recipe.text.path].concat()])
        };
    // AFNetworking/AFOAuth1Client#91, jaredhanson/passport-http-oauth#17: a gateway has removed the prefix.
    "path_prefix_missing": "sign the whole path, with what precedes the API's own path"
        => |recipe, attempt| {
            let path = &recipe.text.path;
            let slashes = path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/');
            let ends = slashes.map(|(at, _)| &path[at..]).take(3).filter(|end| end.len() > 1);
            paths(recipe, below(path, &attempt.url.prefix).into_iter().chain(ends))
        };
    // WP-API/OAuth1#68: a subfolder is put in front twice.
    "path_prefix_added": "sign the path that is called; a prefix was signed that the public URL does not have"
        => |recipe, attempt| {
            let path = &recipe.text.path;
            let first = path.iter().skip(1).position(|byte| *byte == b'/').map(|end| &path[..=end]);
            let others = attempt.other_urls.iter().take(MAX_URLS).map(|url| url.prefix.as_bytes());
            let usual = ["/index.php", "/api", "/rest", "/v1"].map(str::as_bytes);
            let prefixes = others
                .chain([attempt.url.prefix.as_bytes()])
                .chain(first)
                .chain(usual)
                .filter(|prefix| !prefix.is_empty());
            paths(recipe, prefixes.map(|prefix| [prefix, path].concat()))
        };
    // WP-API/OAuth1#246
    "other_public_url": "sign the URL that is called; another URL of this service was signed"
        => |recipe, attempt| with_urls(recipe, attempt, false);
    // Apereo-Learning-Analytics-Initiative/OpenLRS#21
    "internal_url": "sign the public URL that is called, not the address of the API behind it"
        => |recipe, attempt| with_urls(recipe, attempt, true);
    // WP-API/OAuth1#58
    "other_host": "sign the host that is called: with or without www. in front or a dot at the end it is another one"
        => |recipe, _| {
            let host = &recipe.text.host;
            let other = host.strip_prefix("www.").map_or_else(|| format!("www.{host}"), str::to_owned);
            let dotted = host.strip_suffix('.').map_or_else(|| format!("{host}."), str::to_owned);
            texts(recipe, [other, dotted], |text, host| text.host = host)
        };
    "local_address": "sign the URL that is called, not a local address such as localhost, 127.0.0.1 or that of a container"
        => |recipe, _| {
            let hosts = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0", "host.docker.internal"];
            let ports = [recipe.text.port].into_iter().chain(PORTS);
            let all = ports.flat_map(|port| ["http://", "https://"].map(|scheme| (scheme, port)));
            let all = all.flat_map(|(scheme, port)| hosts.map(|host| (scheme, host, port)));
            texts(recipe, all, |text, (scheme, host, port)| {
                (text.scheme, text.host, text.port) = (scheme, host.to_owned(), port)
            })
        };
    // The signature.
    "hex": "send base64 of the digest's bytes, not hexadecimal digits"
        => |recipe, _| spelt(recipe, Spelling::Hex);
    "unpadded": "keep the '=' at the end of the base64 text"
        => |recipe, _| spelt(recipe, Spelling::Unpadded);
    "url_safe": "use the base64 alphabet with '+' and '/', not the URL-safe one"
        => |recipe, _| spelt(recipe, Spelling::UrlSafe);
    "signature_encoded_twice": "percent-encode the signature once when it is put into the request"
        => |recipe, _| spelt(recipe, Spelling::EncodedTwice);
    "signature_not_encoded": "percent-encode the signature when it is put into the request, '+' as %2B"
        => |recipe, _| spelt(recipe, Spelling::NotEncoded);
    "signature_with_line_break": "take out the line breaks that the base64 encoder puts into the signature or after it"
        => |recipe, _| spelt(recipe, Spelling::LineBreak);
    "other_hash": "sign with the method that oauth_signature_method names"
        => |recipe, _| keys(recipe, SignatureMethod::ALL, |wrong, method| wrong.hash = Hash::Method(method));
    "key_and_text_swapped": "give HMAC the joined secrets as its key and the base string as its text"
        => |recipe, attempt| {
            keys(recipe, [attempt.signature_method], |wrong, method| wrong.hash = Hash::Swapped(method))
        };
    "hash_without_key": "use HMAC with the joined secrets as its key, not the plain hash"
        => |recipe, attempt| {
            keys(recipe, [attempt.signature_method], |wrong, method| wrong.hash = Hash::Keyless(method))
        };
}

/// The ports on which containers and gateways usually listen, and none.
const PORTS: [Option<u16>; 10] = [
    None,
    Some(80),
    Some(443),
    Some(8080),
    Some(8443),
    Some(3000),
    Some(5000),
    Some(8000),
    Some(8888),
    Some(9000),
];

fn is_oauth(pair: &Pair) -> bool {
    pair.name.starts_with(OAUTH_PREFIX)
}

/// One recipe with another base string for each value.
fn texts<V>(
    recipe: &Recipe,
    values: impl IntoIterator<Item = V>,
    change: impl Fn(&mut Text, V),
) -> Vec<Recipe> {
    let values = values.into_iter();
    values
        .map(|value| recipe.with_text(|text| change(text, value)))
        .collect()
}

/// One recipe with the same base string for each value.
fn keys<V>(
    recipe: &Recipe,
    values: impl IntoIterator<Item = V>,
    change: impl Fn(&mut Recipe, V),
) -> Vec<Recipe> {
    let _ = recipe.base_string();
    let changed = values.into_iter().map(|value| {
        let mut changed = recipe.clone();
        change(&mut changed, value);
        changed
    });
    changed.collect()
}

fn joins(recipe: &Recipe, joins: &[Join]) -> Vec<Recipe> {
    keys(recipe, joins, |key, join| key.join = *join)
}

/// Changes one secret or both, to each of the texts that `change` makes of it.
fn each_secret(recipe: &Recipe, change: impl Fn(&[u8]) -> Vec<Vec<u8>>) -> Vec<Recipe> {
    let [consumer, token] = [0, 1].map(|at| change(&recipe.secrets[at]));
    let both = consumer.iter().zip(&token);
    let all = both.map(|(consumer, token)| [Some(consumer), Some(token)]);
    let all = all.chain(consumer.iter().map(|changed| [Some(changed), None]));
    let all = all.chain(token.iter().map(|changed| [None, Some(changed)]));
    keys(recipe, all, |key, changed| {
        for (secret, changed) in key.secrets.iter_mut().zip(changed) {
            if let Some(changed) = changed {
                *secret = Zeroizing::new(changed.clone());
            }
        }
    })
}

fn spelt(recipe: &Recipe, spelling: Spelling) -> Vec<Recipe> {
    keys(recipe, [spelling], |wrong, spelling| {
        wrong.spelling = spelling;
    })
}

/// Names and values encoded in that way, but for characters that are left as they are and unreserved ones that are not.
fn coded(
    recipe: &Recipe,
    coding: Coding,
    characters: impl IntoIterator<Item = (&'static str, &'static str)>,
) -> Vec<Recipe> {
    texts(recipe, characters, |text, (left, escaped)| {
        let coding = Coding {
            left,
            escaped,
            ..coding
        };
        text.codings = [coding; 2];
    })
}

/// Names and values with characters left as they are: one of the words after the other.
fn leaving(recipe: &Recipe, words: &'static str) -> Vec<Recipe> {
    coded(
        recipe,
        Coding::RIGHT,
        words.split(' ').map(|left| (left, "")),
    )
}

fn sorted(recipe: &Recipe, order: Order) -> Vec<Recipe> {
    texts(recipe, [order], |text, order| text.order = order)
}

fn with_pairs(recipe: &Recipe, lists: impl IntoIterator<Item = Vec<Pair>>) -> Vec<Recipe> {
    texts(recipe, lists, |text, pairs| text.pairs = Rc::new(pairs))
}

fn paths<P: AsRef<[u8]>>(recipe: &Recipe, paths: impl IntoIterator<Item = P>) -> Vec<Recipe> {
    texts(recipe, paths, |text, path| {
        text.path = path.as_ref().to_vec();
    })
}

fn keep(recipe: &Recipe, kept: impl Fn(&Pair) -> bool) -> Vec<Recipe> {
    texts(recipe, [()], |text, ()| {
        Rc::make_mut(&mut text.pairs).retain(&kept);
    })
}

fn values(recipe: &Recipe, change: impl Fn(&mut Pair)) -> Vec<Recipe> {
    texts(recipe, [()], |text, ()| {
        Rc::make_mut(&mut text.pairs).iter_mut().for_each(&change);
    })
}

fn add(recipe: &Recipe, added: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Vec<Recipe> {
    let mut pairs = recipe.text.pairs.to_vec();
    pairs.extend(added.into_iter().map(|(name, value)| Pair {
        place: Place::Body,
        name,
        value,
    }));
    with_pairs(recipe, [pairs])
}

/// Writes `index` in place of each `[0]` at the end of a name.
fn each_indexed(pairs: &mut [Pair], index: &[u8]) {
    for pair in pairs {
        let Some(rest) = pair.name.strip_suffix(b"]") else {
            continue;
        };
        let digits = rest.iter().rev().take_while(|byte| byte.is_ascii_digit());
        let rest = &rest[..rest.len() - digits.count()];
        if let Some(name) = rest.strip_suffix(b"[") {
            pair.name = [name, index].concat();
        }
    }
}

/// The path below `prefix`; nothing if there is no prefix.
fn below<'p>(path: &'p [u8], prefix: &str) -> Option<&'p [u8]> {
    let rest = path.strip_prefix(prefix.as_bytes())?;
    (rest.first() == Some(&b'/') && !prefix.is_empty()).then_some(rest)
}

/// The request at another origin: with the path as it is, and with the prefix of that URL in place of ours.
fn with_urls(recipe: &Recipe, attempt: &Attempt, internal: bool) -> Vec<Recipe> {
    let path = &recipe.text.path;
    let own = below(path, &attempt.url.prefix).unwrap_or(path);
    let urls = attempt.other_urls.iter();
    let urls = urls.filter(|url| url.internal == internal).take(MAX_URLS);
    let all = urls.flat_map(|url| {
        let mut paths = vec![
            path.clone(),
            own.to_vec(),
            [url.prefix.as_bytes(), own].concat(),
        ];
        paths.dedup();
        paths.into_iter().map(move |path| (url, path))
    });
    texts(recipe, all, |text, (url, path)| {
        text.scheme = prefix_of(url.scheme);
        text.host.clone_from(&url.host);
        text.port = Some(url.port).filter(|port| *port != url.scheme.default_port());
        text.path = path;
    })
}

/// The query's parameters as they were sent, not decoded.
fn with_raw_query(recipe: &Recipe, attempt: &Attempt) -> Vec<Recipe> {
    let mut pairs = recipe.text.pairs.to_vec();
    pairs.retain(|pair| pair.place != Place::Query);
    pairs.extend(split_form(&attempt.url.query).map(|(name, value)| Pair {
        place: Place::Query,
        name: name.to_vec(),
        value: value.to_vec(),
    }));
    pairs.retain(|pair| pair.name != b"oauth_signature");
    with_pairs(recipe, [pairs])
}

fn split_form(raw: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    fields(raw).map(|pair| {
        let at = pair.iter().position(|&byte| byte == b'=');
        at.map_or((pair, &b""[..]), |at| (&pair[..at], &pair[at + 1..]))
    })
}

fn pairs_of_form(body: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let plain = |text: &[u8]| {
        percent::decode_form(text).map_or_else(|_| text.to_vec(), |text| text.into_owned())
    };
    let pairs = split_form(body);
    pairs
        .map(|(name, value)| (plain(name), plain(value)))
        .collect()
}

/// The members of a JSON object, each as its text.
fn members_of_json(body: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Ok(serde_json::Value::Object(members)) = serde_json::from_slice(body) else {
        return Vec::new();
    };
    let text = |value: serde_json::Value| match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    };
    let members = members.into_iter();
    members
        .map(|(name, value)| (name.into_bytes(), text(value).into_bytes()))
        .collect()
}

/// Text in which each number has as many digits, so that sorting by bytes sorts by numbers.
fn zero_padded(text: &[u8]) -> Vec<u8> {
    const ZEROS: &[u8; 10] = b"0000000000";

    let runs = text.chunk_by(|left, right| left.is_ascii_digit() == right.is_ascii_digit());
    let padded = runs.flat_map(|run| {
        let is_number = run.first().is_some_and(u8::is_ascii_digit);
        let zeros = ZEROS.get(run.len()..).filter(|_| is_number);
        [zeros.unwrap_or_default(), run].concat()
    });
    padded.collect()
}

/// The text in ISO 8859-1; characters that it lacks keep their UTF-8.
fn latin1(text: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(text) else {
        return text.to_vec();
    };
    let mut out = Vec::with_capacity(text.len());
    for character in text.chars() {
        match u8::try_from(u32::from(character)) {
            Ok(byte) => out.push(byte),
            Err(_) => out.extend(character.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    out
}

/// The text in ASCII, a question mark for each other character.
fn questioned(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    text.chars()
        .map(|character| {
            u8::try_from(character)
                .ok()
                .filter(u8::is_ascii)
                .unwrap_or(b'?')
        })
        .collect()
}
