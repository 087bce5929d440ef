//! The known mistakes: for each a fixed word, a sentence that names the fix, and how it is made.
//!
//! The ones without a source have been seen in many libraries. A source is the report of a library or provider, as
//! `owner/repository#number` on GitHub.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use sha1::{Digest, Sha1};

use super::{
    Attempt, MAX_CALLBACKS, MAX_URLS,
    coding::{Coding, Spelling},
    recipe::{Hash, Order, Outer, Pair, Recipe, Start, encoded, joined},
};
use crate::oauth::{
    method::SignatureMethod,
    name::OAUTH_PREFIX,
    origin::{Scheme, split_authority},
    percent,
    shape::Place,
};

/// Defines [`Mistake`] from one row a mistake, in the order in which they are tried. Where the outcome of two can be the same, the
/// one that assumes less comes first: one that breaks a rule before one that breaks it for some parameters only, and both before one
/// that needs a value guessed.
macro_rules! mistakes {
    ($( $name:ident $word:literal $advice:literal $make:expr; )*) => {
        /// A mistake that consumers are known to make when they sign.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Mistake {
            $( #[doc = concat!("`", $word, "`: ", $advice)] $name, )*
        }

        impl Mistake {
            /// All of them.
            pub const ALL: &[Self] = &[$( Self::$name, )*];

            /// The fixed word for it.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $( Self::$name => $word, )* }
            }

            /// What the consumer's author has to do, in one sentence.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self { $( Self::$name => $advice, )* }
            }

            /// Makes it: the ways to sign that it may lead to.
            pub(super) fn make(self, recipe: &Recipe, attempt: &Attempt<'_>) -> Vec<Recipe> {
                let make: fn(&Recipe, &Attempt<'_>) -> Vec<Recipe> = match self { $( Self::$name => $make, )* };
                make(recipe, attempt)
            }
        }
    };
}

mistakes! {
    // The key.
    TokenSecretMissing "token_secret_missing"
        "put the token secret behind the '&' of the key"
        |recipe, attempt| with_key(recipe, &[&encoded(attempt.consumer_secret.expose()), b"&"]);
    AmpersandMissing "ampersand_missing"
        "join the two secrets with '&', also when the token secret is empty"
        |recipe, attempt| {
            let (consumer, token) = (attempt.consumer_secret.expose(), attempt.token_secret.expose());
            let alone = with_key(recipe, &[consumer]);
            [with_key(recipe, &[&encoded(consumer), &encoded(token)]), with_key(recipe, &[consumer, token]), alone].concat()
        };
    SecretsNotEncoded "secrets_not_encoded"
        "percent-encode the consumer secret and the token secret before joining them"
        |recipe, attempt| with_key(recipe, &[attempt.consumer_secret.expose(), b"&", attempt.token_secret.expose()]);
    ConsumerSecretMissing "consumer_secret_missing"
        "put the consumer secret in front of the '&' of the key"
        |recipe, attempt| with_key(recipe, &[b"&", &encoded(attempt.token_secret.expose())]);
    SecretsSwapped "secrets_swapped"
        "put the consumer secret before the '&' and the token secret behind it"
        |recipe, attempt| {
            let (consumer, token) = (attempt.consumer_secret.expose(), attempt.token_secret.expose());
            with_key(recipe, &[&encoded(token), b"&", &encoded(consumer)])
        };
    KeyEncodedWhole "key_encoded_whole"
        "encode the two secrets one by one and leave the '&' between them as it is"
        |recipe, attempt| {
            let (consumer, token) = (attempt.consumer_secret.expose(), attempt.token_secret.expose());
            let whole = joined(&[consumer, b"&", token]);
            [with_key(recipe, &[&encoded(&whole)]), with_key(recipe, &[&encoded(&recipe.key)])].concat()
        };
    SecretsEncodedTwice "secrets_encoded_twice"
        "percent-encode the secrets once, not twice"
        |recipe, attempt| {
            let twice = |secret: &[u8]| Coding::Twice.encode(secret);
            with_key(recipe, &[&twice(attempt.consumer_secret.expose()), b"&", &twice(attempt.token_secret.expose())])
        };
    KeyInsteadOfSecret "key_instead_of_secret"
        "make the key of the consumer secret and the token secret, not of the consumer key or the token that are sent"
        |recipe, attempt| {
            let value = |name: &[u8]| {
                let found = recipe.pairs.iter().find(|pair| pair.name == name);
                found.map_or_else(Vec::new, |pair| encoded(&pair.value))
            };
            let (key, token) = (value(b"oauth_consumer_key"), value(b"oauth_token"));
            let consumer_secret = encoded(attempt.consumer_secret.expose());
            [
                with_key(recipe, &[&consumer_secret, b"&", &token]),
                with_key(recipe, &[&key, b"&", &encoded(attempt.token_secret.expose())]),
                with_key(recipe, &[&key, b"&", &token]),
            ]
            .concat()
        };
    SecretWithLineBreak "secret_with_line_break"
        "cut the line break or space off the end of the secret"
        |recipe, attempt| {
            let (consumer, token) = (attempt.consumer_secret.expose(), attempt.token_secret.expose());
            let ends: [&[u8]; 3] = [b"\n", b"\r\n", b" "];
            let keys = ends.iter().flat_map(|end| [[*end, b""], [b"", *end], [*end, *end]]).collect::<Vec<_>>();
            keys.iter()
                .flat_map(|[after_consumer, after_token]| {
                    let (consumer, token) = (joined(&[consumer, after_consumer]), joined(&[token, after_token]));
                    [
                        with_key(recipe, &[&encoded(&consumer), b"&", &encoded(&token)]),
                        with_key(recipe, &[&consumer, b"&", &token]),
                    ]
                    .concat()
                })
                .collect()
        };
    // lorenbrichter/OAuthCore#4
    SecretIsNull "secret_is_null"
        "leave the token secret empty where there is none; the text null, None or undefined was put in its place"
        |recipe, attempt| {
            if !attempt.token_secret.expose().is_empty() {
                return Vec::new();
            }
            let consumer = encoded(attempt.consumer_secret.expose());
            let texts: [&[u8]; 6] = [b"null", b"undefined", b"None", b"nil", b"(null)", b"%28null%29"];
            texts.iter().flat_map(|text| with_key(recipe, &[&consumer, b"&", text])).collect()
        };
    PreviousSecret "previous_secret"
        "sign with the consumer secret that was issued last: the one before is no longer accepted"
        |recipe, attempt| match attempt.previous_secret {
            Some(previous) => with_key(recipe, &[&encoded(previous.expose()), b"&", &encoded(attempt.token_secret.expose())]),
            None => Vec::new(),
        };

    // Which parameters are signed.
    QueryUnsigned "query_unsigned"
        "sign the parameters of the query together with the oauth_ parameters"
        |recipe, _| keep(recipe, |pair| is_oauth(pair) || pair.place != Place::Query);
    BodyUnsigned "body_unsigned"
        "sign the parameters of a form-encoded body together with the oauth_ parameters"
        |recipe, _| keep(recipe, |pair| is_oauth(pair) || pair.place != Place::Body);
    OnlyOauthSigned "only_oauth_signed"
        "sign the parameters of query and form-encoded body together with the oauth_ parameters"
        |recipe, _| keep(recipe, is_oauth);
    OauthUnsigned "oauth_unsigned"
        "sign the oauth_ parameters too, all but oauth_signature"
        |recipe, _| keep(recipe, |pair| !is_oauth(pair));
    OauthParameterUnsigned "oauth_parameter_unsigned"
        "sign every oauth_ parameter that is sent, all but oauth_signature"
        |recipe, _| {
            let oauth = recipe.pairs.iter().filter(|pair| is_oauth(pair));
            oauth.flat_map(|left_out| keep(recipe, |pair| pair != left_out)).collect()
        };
    UnsentParameterSigned "unsent_parameter_signed"
        "send every oauth_ parameter that is signed, and sign none that is not sent"
        |recipe, attempt| {
            let body_hash = STANDARD.encode(Sha1::digest(attempt.other_body));
            let unsent: [(&[u8], &[u8]); 8] = [
                (b"oauth_version", b"1.0"),
                (b"oauth_token", b""),
                (b"oauth_callback", b"oob"),
                (b"oauth_callback", b""),
                (b"oauth_verifier", b""),
                (b"oauth_version", b"1.0a"),
                (b"scope", b""),
                (b"oauth_body_hash", body_hash.as_bytes()),
            ];
            let callbacks = attempt.callbacks.iter().take(MAX_CALLBACKS);
            let callbacks = callbacks.map(|callback| (&b"oauth_callback"[..], callback.as_bytes()));
            unsent
                .into_iter()
                .chain(callbacks)
                .filter(|(name, _)| recipe.pairs.iter().all(|pair| pair.name != *name))
                .flat_map(|(name, value)| add(recipe, &[(name.to_vec(), value.to_vec())]))
                .collect()
        };
    SignatureSigned "signature_signed"
        "leave oauth_signature out of what is signed, also while it is empty"
        |recipe, _| add(recipe, &[(b"oauth_signature".to_vec(), Vec::new())]);
    OauthPrefixMissing "oauth_prefix_missing"
        "sign the oauth_ parameters under their whole names"
        |recipe, _| change_pairs(recipe, |pair| {
            if let Some(rest) = pair.name.strip_prefix(OAUTH_PREFIX) {
                pair.name = rest.to_vec();
            }
        });
    RealmSigned "realm_signed"
        "leave realm out of what is signed"
        |recipe, attempt| match attempt.parameters.realm() {
            Some(realm) => add(recipe, &[(b"realm".to_vec(), realm.to_vec())]),
            None => Vec::new(),
        };
    BodySigned "body_signed"
        "leave a body out of what is signed unless its Content-Type is application/x-www-form-urlencoded"
        |recipe, attempt| {
            let body = attempt.other_body;
            if body.is_empty() {
                return Vec::new();
            }
            [
                add(recipe, &pairs_of_form(body)),
                add(recipe, &members_of_json(body)),
                add(recipe, &[(body.to_vec(), Vec::new())]),
                add(recipe, &[(b"body".to_vec(), body.to_vec())]),
            ]
            .concat()
        };
    EmptyValuesUnsigned "empty_values_unsigned"
        "sign parameters with an empty value too"
        |recipe, _| keep(recipe, |pair| !pair.value.is_empty());
    EqualsMissing "equals_missing"
        "write the '=' of a parameter with an empty value too"
        |recipe, _| change(recipe, |wrong| wrong.bare_names = true);
    RepeatedNamesUnsigned "repeated_names_unsigned"
        "sign a parameter that is sent several times as often as it is sent"
        |recipe, _| {
            let kept = |mut pairs: Vec<Pair>| {
                let mut seen = Vec::new();
                pairs.retain(|pair| {
                    let first = !seen.contains(&pair.name);
                    seen.push(pair.name.clone());
                    first
                });
                pairs
            };
            let reversed = recipe.pairs.iter().rev().cloned().collect();
            // postmanlabs/postman-app-support#404
            let joined = |mut pairs: Vec<Pair>| {
                let mut at = 0;
                while at < pairs.len() {
                    let name = pairs[at].name.clone();
                    let same = pairs.extract_if(at + 1.., |pair| pair.name == name).collect::<Vec<_>>();
                    let values = same.into_iter().map(|pair| pair.value);
                    let values = std::iter::once(std::mem::take(&mut pairs[at].value)).chain(values);
                    pairs[at].value = values.collect::<Vec<_>>().join(&b',');
                    at += 1;
                }
                pairs
            };
            let first_or_last = [recipe.pairs.clone(), reversed].into_iter().map(kept);
            let all = first_or_last.chain([joined(recipe.pairs.clone())]);
            with_pairs(recipe, all.filter(|pairs| pairs.len() < recipe.pairs.len()))
        };
    // scribejava/scribejava#85: a parameter is added when the signature is made already.
    ParameterUnsigned "parameter_unsigned"
        "sign each parameter of query and form-encoded body; one that is sent was left out"
        |recipe, _| {
            let others = recipe.pairs.iter().enumerate().filter(|(_, pair)| !is_oauth(pair));
            each(recipe, others, |wrong, (at, _)| drop(wrong.pairs.remove(at)))
        };
    // scribejava/scribejava#497: the clock is read for the signature and again for the header.
    OtherTimestamp "other_timestamp"
        "take the time once: the oauth_timestamp that is signed is another than the one that is sent"
        |recipe, _| {
            let seconds = |pair: &Pair| std::str::from_utf8(&pair.value).ok()?.parse::<u64>().ok();
            let at = recipe.pairs.iter().position(|pair| pair.name == b"oauth_timestamp");
            let sent = at.and_then(|at| seconds(&recipe.pairs[at]));
            let (Some(at), Some(sent)) = (at, sent) else {
                return Vec::new();
            };
            let near = [sent.checked_sub(1), sent.checked_add(1), sent.checked_sub(2), sent.checked_add(2)];
            each(recipe, near.into_iter().flatten(), |wrong, signed| wrong.pairs[at].value = signed.to_string().into_bytes())
        };

    // The order of the parameters.
    Unsorted "unsorted"
        "sort the parameters by name, then by value, after encoding them"
        |recipe, _| {
            use Place::{Body, Header, Query};
            let places =
                [[Header, Query, Body], [Header, Body, Query], [Query, Header, Body], [Query, Body, Header], [Body, Header, Query], [Body, Query, Header]];
            let mut orders: Vec<Vec<Pair>> = Vec::new();
            for places in places {
                // Mastercard/oauth1-signer-nodejs#3: the parts are sorted, and not the whole. [oauth_, others]
                for sorted in [[false, false], [true, true], [true, false], [false, true]] {
                    let mut pairs = Vec::new();
                    for place in places {
                        let mut part: Vec<Pair> = recipe.pairs.iter().filter(|pair| pair.place == place).cloned().collect();
                        let is_protocol = part.first().is_some_and(is_oauth);
                        if sorted[usize::from(!is_protocol)] {
                            part.sort_by_cached_key(|pair| (encoded(&pair.name), encoded(&pair.value)));
                        }
                        pairs.extend(part);
                    }
                    if !orders.contains(&pairs) {
                        orders.push(pairs);
                    }
                }
            }
            each(recipe, orders, |wrong, pairs| (wrong.pairs, wrong.order) = (pairs, Order::AsListed))
        };
    SortedBeforeEncoding "sorted_before_encoding"
        "percent-encode names and values first and sort them then"
        |recipe, _| change(recipe, |wrong| wrong.order = Order::Decoded);
    SortedByNameOnly "sorted_by_name_only"
        "sort parameters of equal name by their encoded value"
        |recipe, _| change(recipe, |wrong| wrong.order = Order::NameOnly);
    SortedIgnoringCase "sorted_ignoring_case"
        "sort by bytes: capital letters come before small ones"
        |recipe, _| change(recipe, |wrong| wrong.order = Order::IgnoringCase);
    // jdg/oauthconsumer#8, javaee/jersey#1105
    SortedAfterJoining "sorted_after_joining"
        "sort parameters by name and equal names by value, not by the joined text name=value"
        |recipe, _| change(recipe, |wrong| wrong.order = Order::Joined);
    // OpenMage/magento-lts#721, OAuthSwift/OAuthSwift#283
    SortedByNumber "sorted_by_number"
        "sort by bytes: the name id_10 comes before id_2"
        |recipe, _| change(recipe, |wrong| wrong.order = Order::Numbers);

    // The encoding of the parameters.
    EncodedTwice "encoded_twice"
        "decode what the query or body has before encoding it for the base string, and encode it once"
        |recipe, attempt| [
            change(recipe, |wrong| wrong.coding = Coding::Twice),
            change_pairs(recipe, |pair| {
                if !is_oauth(pair) {
                    (pair.name, pair.value) = (encoded(&pair.name), encoded(&pair.value));
                }
            }),
            with_raw_query(recipe, attempt),
        ]
        .concat();
    NotEncoded "not_encoded"
        "percent-encode each name and value before joining them, beside encoding the joined text"
        |recipe, _| change(recipe, |wrong| wrong.coding = Coding::Plain);
    PlusForSpace "plus_for_space"
        "encode a space as %20, not as '+'"
        |recipe, _| with_codings(recipe, [Coding::Form, Coding::JavaForm]);
    LowerCaseEscapes "lower_case_escapes"
        "write the letters of escapes in upper case, %2F rather than %2f"
        |recipe, _| {
            let (inner, outer) = (Coding::LowerCase, Outer::LowerCase);
            let ways = [(inner, recipe.outer), (recipe.coding, outer), (inner, outer)];
            each(recipe, ways, |wrong, way| (wrong.coding, wrong.outer) = way)
        };
    MarksNotEncoded "marks_not_encoded"
        "percent-encode ! * ' ( ) as well"
        |recipe, _| with_codings(recipe, [Coding::LeavesMarks]);
    TildeEncoded "tilde_encoded"
        "leave '~' as it is"
        |recipe, _| with_codings(recipe, [Coding::EncodesTilde]);
    // CORDEA/oauth#4, chrhansen/simple-oauth1#8
    ReservedNotEncoded "reserved_not_encoded"
        "percent-encode '/', ':', ',' and every other reserved character in names and values too"
        |recipe, _| with_codings(recipe, [Coding::LeavesSlash, Coding::LeavesReserved]);
    // restsharp/RestSharp#1945, carlos-emr/carlos#3007
    Utf8Twice "utf_8_twice"
        "encode text as UTF-8 once: its UTF-8 was taken for ISO 8859-1 and encoded again"
        |recipe, _| with_codings(recipe, [Coding::Utf8Twice]);
    NotUtf8 "not_utf_8"
        "encode text as UTF-8 before percent-encoding it"
        |recipe, _| with_codings(recipe, [Coding::Latin1]);

    // The base string.
    ParametersNotEncoded "parameters_not_encoded"
        "percent-encode the joined parameters once more when they go into the base string"
        |recipe, _| change(recipe, |wrong| wrong.outer = Outer::PlainParameters);
    UriNotEncoded "uri_not_encoded"
        "percent-encode the URI when it goes into the base string"
        |recipe, _| each(recipe, [Outer::PlainUri, Outer::Plain], |wrong, outer| wrong.outer = outer);
    OtherMethod "other_method"
        "sign the method that is sent, in upper case"
        |recipe, _| {
            let methods = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"];
            let mut signed: Vec<Vec<u8>> = methods.iter().map(|method| method.as_bytes().to_vec()).collect();
            let lower = recipe.method.to_ascii_lowercase();
            let mut capital = lower.clone();
            capital[..1.min(lower.len())].make_ascii_uppercase();
            signed.extend([lower, capital, Vec::new()]);
            each(recipe, signed, |wrong, method| wrong.method = method)
        };
    OtherScheme "other_scheme"
        "sign the scheme of the public URL: https where it is called by https"
        |recipe, _| {
            let other = if recipe.scheme == Scheme::Http { Scheme::Https } else { Scheme::Http };
            let shown = recipe.port.or(Some(recipe.scheme.default_port()));
            let ports = [recipe.port, None, shown, Some(other.default_port())];
            each(recipe, ports, |wrong, port| (wrong.scheme, wrong.port) = (other, port))
        };
    // postmanlabs/postman-app-support#123
    UriNotAbsolute "uri_not_absolute"
        "sign the absolute URI, scheme and host included"
        |recipe, _| each(recipe, [Start::Host, Start::Slashes, Start::Path], |wrong, start| wrong.start = start);
    DefaultPortSigned "default_port_signed"
        "leave the port out of the URI if it is the default one, 80 for http and 443 for https"
        |recipe, _| match recipe.port {
            None => change(recipe, |wrong| wrong.port = Some(wrong.scheme.default_port())),
            Some(_) => Vec::new(),
        };
    PortMissing "port_missing"
        "keep the port in the URI if it is not the default one"
        |recipe, _| change(recipe, |wrong| wrong.port = None);
    HostNotLowered "host_not_lowered"
        "write the host in small letters"
        |recipe, attempt| {
            let host = split_authority(attempt.authority).map_or("", |(host, _)| host);
            change(recipe, |wrong| wrong.host = host.to_owned())
        };
    TrailingSlash "trailing_slash"
        "sign the path as it is sent, with its slash at the end if there is one, else without"
        |recipe, _| {
            let path = &recipe.path;
            let other = match path.strip_suffix(b"/") {
                Some(bare) => bare.to_vec(),
                None => [path, &b"/"[..]].concat(),
            };
            with_paths(recipe, [other])
        };
    QueryInUri "query_in_uri"
        "leave the query out of the URI; its parameters go to the other parameters"
        |recipe, attempt| {
            let query = [b"?", attempt.query].concat();
            let both = change(recipe, |wrong| wrong.uri_query = query.clone());
            let unsigned = keep(recipe, |pair| is_oauth(pair) || pair.place != Place::Query);
            let moved = unsigned.iter().flat_map(|unsigned| change(unsigned, |wrong| wrong.uri_query = query.clone()));
            both.into_iter().chain(moved).collect()
        };
    PathDecoded "path_decoded"
        "sign the path with the escapes that it is sent with"
        |recipe, _| with_paths(recipe, percent::decode(&recipe.path));
    PathMissing "path_missing"
        "sign the whole URL, path included"
        |recipe, _| with_paths(recipe, [&b"/"[..], b""]);
    // bytespider/jsOAuth#22, owncloud/ocis#10237
    PathEncodedAgain "path_encoded_again"
        "sign the path as it is sent; its characters were percent-encoded for the signature alone"
        |recipe, _| {
            let again = |text: &[u8]| text.split(|&byte| byte == b'/').map(encoded).collect::<Vec<_>>().join(&b'/');
            let once = percent::decode(&recipe.path).into_iter().map(|plain| again(&plain));
            with_paths(recipe, once.chain([again(&recipe.path)]).filter(|path| *path != recipe.path))
        };
    SlashesMerged "slashes_merged"
        "sign the path with as many slashes as it is sent with"
        |recipe, _| {
            let mut merged = recipe.path.clone();
            merged.dedup_by(|next, last| *next == b'/' && *last == b'/');
            let more = [&b"/"[..], &recipe.path].concat();
            with_paths(recipe, [merged, more])
        };
    // WP-API/OAuth1#58
    OtherHost "other_host"
        "sign the host that is called: www. in front and localhost for 127.0.0.1 make it another"
        |recipe, _| {
            let other = match recipe.host.strip_prefix("www.") {
                _ if recipe.host == "localhost" => "127.0.0.1".to_owned(),
                _ if recipe.host == "127.0.0.1" => "localhost".to_owned(),
                Some(bare) => bare.to_owned(),
                None => format!("www.{}", recipe.host),
            };
            change(recipe, |wrong| wrong.host = other)
        };
    // AFNetworking/AFOAuth1Client#91, jaredhanson/passport-http-oauth#17
    PathPrefixMissing "path_prefix_missing"
        "sign the whole path, with what stands in front of the API's own path"
        |recipe, attempt| {
            let own = below(&recipe.path, attempt.prefix).filter(|_| !attempt.prefix.is_empty());
            let slashes = recipe.path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/');
            let ends = slashes.map(|(at, _)| &recipe.path[at..]).take(3);
            with_paths(recipe, own.into_iter().chain(ends.filter(|end| end.len() > 1)))
        };
    // WP-API/OAuth1#68: a subfolder is put in front twice.
    PathPrefixAdded "path_prefix_added"
        "sign the path that is called; a prefix was signed that the public URL has not"
        |recipe, attempt| {
            let first = recipe.path.iter().skip(1).position(|byte| *byte == b'/').map(|end| &recipe.path[..=end]);
            let others = attempt.other_urls.iter().take(MAX_URLS).map(|url| url.prefix.as_bytes());
            let prefixes = others.chain([attempt.prefix.as_bytes()]).chain(first).filter(|prefix| !prefix.is_empty());
            with_paths(recipe, prefixes.map(|prefix| [prefix, &recipe.path].concat()))
        };
    // WP-API/OAuth1#246
    OtherPublicUrl "other_public_url"
        "sign the URL that is called; another URL of this service was signed"
        |recipe, attempt| with_urls(recipe, attempt, false);
    // pelle/oauth#1, Apereo-Learning-Analytics-Initiative/OpenLRS#21
    InternalUrl "internal_url"
        "sign the public URL that is called, not the address of the API behind it"
        |recipe, attempt| with_urls(recipe, attempt, true);

    // What is made of it.
    Hex "hex"
        "send base64 of the digest's bytes, not hexadecimal digits"
        |recipe, _| with_spellings(recipe, [Spelling::Hex, Spelling::HexBase64]);
    Unpadded "unpadded"
        "keep the '=' at the end of the base64 text"
        |recipe, _| with_spellings(recipe, [Spelling::Unpadded]);
    UrlSafe "url_safe"
        "use the base64 alphabet with '+' and '/', not the URL-safe one"
        |recipe, _| with_spellings(recipe, [Spelling::UrlSafe, Spelling::UrlSafeUnpadded]);
    SignatureEncodedTwice "signature_encoded_twice"
        "percent-encode the signature once when it is put into the request"
        |recipe, _| with_spellings(recipe, [Spelling::EncodedTwice]);
    SignatureNotEncoded "signature_not_encoded"
        "percent-encode the signature when it is put into the request, '+' as %2B"
        |recipe, _| with_spellings(recipe, [Spelling::NotEncoded]);
    SignatureWithLineBreak "signature_with_line_break"
        "cut the line break off that the base64 encoder puts behind the signature"
        |recipe, _| with_spellings(recipe, [Spelling::LineBreak]);
    OtherHash "other_hash"
        "sign with the method that oauth_signature_method names"
        |recipe, _| {
            let hmacs = SignatureMethod::ALL.into_iter().filter(|method| !method.is_rsa());
            with_hashes(recipe, hmacs.map(Hash::Method))
        };
    KeyAndTextSwapped "key_and_text_swapped"
        "give HMAC the joined secrets as its key and the base string as its text"
        |recipe, attempt| with_hashes(recipe, [Hash::Swapped(attempt.signature_method)]);
    HashWithoutKey "hash_without_key"
        "use HMAC with the joined secrets as its key, not the plain hash"
        |recipe, attempt| with_hashes(recipe, [Hash::Keyless(attempt.signature_method)]);
}

impl fmt::Display for Mistake {
    /// `word: advice`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.word(), self.advice())
    }
}

fn is_oauth(pair: &Pair) -> bool {
    pair.name.starts_with(OAUTH_PREFIX)
}

fn change(recipe: &Recipe, make: impl FnOnce(&mut Recipe)) -> Vec<Recipe> {
    let mut wrong = recipe.clone();
    make(&mut wrong);
    vec![wrong]
}

/// One change for each value.
fn each<V>(
    recipe: &Recipe,
    values: impl IntoIterator<Item = V>,
    make: impl Fn(&mut Recipe, V),
) -> Vec<Recipe> {
    let values = values.into_iter();
    values
        .flat_map(|value| change(recipe, |wrong| make(wrong, value)))
        .collect()
}

fn with_key(recipe: &Recipe, parts: &[&[u8]]) -> Vec<Recipe> {
    change(recipe, |wrong| wrong.key = joined(parts))
}

fn with_codings<const N: usize>(recipe: &Recipe, codings: [Coding; N]) -> Vec<Recipe> {
    each(recipe, codings, |wrong, coding| wrong.coding = coding)
}

fn with_spellings<const N: usize>(recipe: &Recipe, spellings: [Spelling; N]) -> Vec<Recipe> {
    each(recipe, spellings, |wrong, spelling| {
        wrong.spelling = spelling
    })
}

fn with_hashes(recipe: &Recipe, hashes: impl IntoIterator<Item = Hash>) -> Vec<Recipe> {
    each(recipe, hashes, |wrong, hash| wrong.hash = hash)
}

fn with_pairs(recipe: &Recipe, lists: impl IntoIterator<Item = Vec<Pair>>) -> Vec<Recipe> {
    each(recipe, lists, |wrong, pairs| wrong.pairs = pairs)
}

fn with_paths<P: AsRef<[u8]>>(recipe: &Recipe, paths: impl IntoIterator<Item = P>) -> Vec<Recipe> {
    each(recipe, paths, |wrong, path| {
        wrong.path = path.as_ref().to_vec()
    })
}

fn keep(recipe: &Recipe, kept: impl Fn(&Pair) -> bool) -> Vec<Recipe> {
    change(recipe, |wrong| wrong.pairs.retain(kept))
}

fn change_pairs(recipe: &Recipe, make: impl Fn(&mut Pair)) -> Vec<Recipe> {
    change(recipe, |wrong| wrong.pairs.iter_mut().for_each(make))
}

fn add(recipe: &Recipe, added: &[(Vec<u8>, Vec<u8>)]) -> Vec<Recipe> {
    change(recipe, |wrong| {
        wrong.pairs.extend(added.iter().map(|(name, value)| Pair {
            place: Place::Body,
            name: name.clone(),
            value: value.clone(),
        }));
    })
}

/// The path below `prefix`.
fn below<'p>(path: &'p [u8], prefix: &str) -> Option<&'p [u8]> {
    path.strip_prefix(prefix.as_bytes())
        .filter(|rest| rest.first() == Some(&b'/'))
}

/// The request at another origin: with the path as it is, and with the prefix of that URL in place of ours.
fn with_urls(recipe: &Recipe, attempt: &Attempt<'_>, internal: bool) -> Vec<Recipe> {
    let own = below(&recipe.path, attempt.prefix).unwrap_or(&recipe.path);
    let urls = attempt
        .other_urls
        .iter()
        .filter(|url| url.internal == internal);
    let at_each = urls.take(MAX_URLS).flat_map(|url| {
        let prefixed = [url.prefix.as_bytes(), own].concat();
        let mut paths = vec![recipe.path.clone(), own.to_vec(), prefixed];
        paths.dedup();
        each(recipe, paths, |wrong, path| {
            wrong.scheme = url.scheme;
            wrong.host.clone_from(&url.host);
            wrong.port = Some(url.port).filter(|port| *port != url.scheme.default_port());
            wrong.path = path;
        })
    });
    at_each.collect()
}

/// The query's parameters as they were sent, not decoded.
fn with_raw_query(recipe: &Recipe, attempt: &Attempt<'_>) -> Vec<Recipe> {
    let mut pairs = recipe.pairs.clone();
    pairs.retain(|pair| pair.place != Place::Query);
    pairs.extend(split_form(attempt.query).map(|(name, value)| Pair {
        place: Place::Query,
        name: name.to_vec(),
        value: value.to_vec(),
    }));
    pairs.retain(|pair| pair.name != b"oauth_signature");
    with_pairs(recipe, [pairs])
}

fn split_form(raw: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    raw.split(|&byte| byte == b'&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let at = pair.iter().position(|&byte| byte == b'=');
            at.map_or((pair, &b""[..]), |at| (&pair[..at], &pair[at + 1..]))
        })
}

fn pairs_of_form(body: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let plain = |text: &[u8]| {
        percent::decode_form(text).map_or_else(|_| text.to_vec(), |text| text.into_owned())
    };
    split_form(body)
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
    members
        .into_iter()
        .map(|(name, value)| (name.into_bytes(), text(value).into_bytes()))
        .collect()
}
