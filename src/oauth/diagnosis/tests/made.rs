//! A signature with each mistake of the table.

use super::*;

/// Each mistake as a consumer makes it, apart from the code that makes it: the name, the signature, and the request.
pub(super) fn made() -> Vec<(&'static str, String, Sent)> {
    let right = Signed::default();
    let base = right.base_string();
    let based = |base: String| hmac(SignatureMethod::HmacSha1, &right.key, &base);
    let digest = STANDARD.decode(right.sign()).unwrap();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let lower = |text: &str| text.replace("%C3%A9", "%c3%a9");
    let query = |query| Sent {
        query,
        form: "",
        ..SENT
    };
    let path = |path| Sent { path, ..SENT };
    let secrets = |one, two| Sent {
        secrets: [one, two],
        ..SENT
    };
    let other_body = |other_body| Sent {
        form: "",
        other_body,
        ..SENT
    };
    let authority = |authority| Sent { authority, ..SENT };
    let sha1 = |key: &str, text: &str| hmac(SignatureMethod::HmacSha1, key, text);
    let at = |path: &str| uri(&format!("https://api.example.com:8443{path}"));
    // A signature with both characters that the URL-safe alphabet lacks.
    let (url_safe, elsewhere) = (0..500)
        .map(|number| {
            let path: &'static str = format!("/{number}").leak();
            (at(path), Sent { path, ..SENT })
        })
        .find(|(signature, _)| signature.contains('+') && signature.contains('/'))
        .unwrap();
    let dashed = url_safe.replace('+', "-").replace('/', "_");
    let mut made: Vec<(&'static str, String, Sent)> = vec![
        (
            "white_space_around_secret",
            key("cs&ts"),
            secrets(" cs\n", "ts "),
        ),
        (
            "secrets_decoded",
            key("consumer&t"),
            secrets("Y29uc3VtZXI=", "t"),
        ),
        ("secret_is_null", key("c%2Bs&null"), secrets("c+s", "")),
        (
            "secret_is_null",
            key("c%2Bs&%28null%29"),
            secrets("c+s", ""),
        ),
        (
            "body_signed",
            replaced("c=x%26y", "%7B%22a%22%3A1%7D="),
            other_body("{\"a\":1}"),
        ),
        (
            "body_signed",
            replaced("c=x%26y", "a=1&c=d%20e"),
            other_body("{\"c\": \"d e\", \"a\":1}"),
        ),
        ("body_signed", right.sign(), other_body("c=x%26y")),
        (
            "unreserved_encoded",
            normalized(format!(
                "a=b%2Dc&{}",
                OAUTH.replace("HMAC-SHA1", "HMAC%2DSHA1")
            )),
            query("a=b-c"),
        ),
        ("path_encoded_again", at("/xcal%3Ball"), path("/xcal;all")),
        ("path_encoded_again", at("/photos/a%2520b"), SENT),
        ("path_escapes_changed", at("/a%2Fb"), path("/a%2fb")),
        ("path_escapes_changed", at("/~a%20b"), path("/%7Ea%20b")),
        ("path_lowered", at("/members/a"), path("/Members/a")),
        ("slashes_merged", at("//photos/a%20b"), SENT),
        ("slashes_merged", at("/photos/a"), path("/photos//a")),
        ("slash_decoded", at("/photos/a%2Fb"), path("/photos/a/b")),
        ("slash_decoded", at("/a%2fb"), path("/a/b")),
        ("trailing_slash", at("/photos/a%20b/"), SENT),
        ("trailing_slash", at("/photos"), path("/photos/")),
        (
            "path_prefix_missing",
            at("/x"),
            Sent {
                path: "/v2/x",
                prefix: "/v2",
                ..SENT
            },
        ),
        ("path_prefix_missing", at("/c"), path("/a/b/c")),
        (
            "other_host",
            uri("https://example.com/photos/a%20b"),
            authority("www.example.com"),
        ),
        (
            "local_address",
            uri("https://localhost:8443/photos/a%20b"),
            authority("127.0.0.1:8443"),
        ),
        (
            "default_port_signed",
            uri("https://api.example.com:443/photos/a%20b"),
            authority("api.example.com"),
        ),
        (
            "default_port_signed",
            uri("https://api.example.com:443/photos/a%20b"),
            authority("api.example.com:443"),
        ),
        ("url_safe", dashed.clone(), elsewhere.clone()),
        ("url_safe", dashed.replace('=', ""), elsewhere.clone()),
        (
            "signature_not_encoded",
            url_safe.replace('+', " "),
            elsewhere,
        ),
    ];
    // Parameters that are signed and, as a query, sent.
    let queries = [
        (
            "indexes_changed",
            "a%5B0%5D=x&a%5B1%5D=y&OAUTH",
            "a[]=x&a[]=y",
        ),
        (
            "indexes_changed",
            "a%5B%5D=x&a%5B%5D=y&OAUTH",
            "a[0]=x&a[1]=y",
        ),
        ("line_breaks_changed", "a=x%0Ay&OAUTH", "a=x%0D%0Ay"),
        ("line_breaks_changed", "a=x%0D%0Ay&OAUTH", "a=x%0Ay"),
        ("sorted_ignoring_case", "a=1&B=2&OAUTH", "B=2&a=1"),
        ("sorted_after_joining", "a1=2&a=1&OAUTH", "a=1&a1=2"),
        (
            "sorted_by_number",
            "id_1=z&id_2=x&id_10=y&OAUTH",
            "id_10=y&id_2=x&id_1=z",
        ),
        (
            "sorted_before_encoding",
            "a=1&b=1&OAUTH&%C3%A9=1",
            "a=1&b=1&%C3%A9=1",
        ),
        (
            "reserved_not_encoded",
            "next=/a%3Ab%2Cc&OAUTH",
            "next=/a:b,c",
        ),
        (
            "reserved_not_encoded",
            "next=/a:b,c&OAUTH&s=a%20b",
            "next=/a:b,c&s=a+b",
        ),
        ("marks_not_encoded", "a=*&b=%21&OAUTH", "a=*&b=!"),
        ("plus_sent_bare", "OAUTH&tel=%2B49%2F1", "tel=+49/1"),
        ("encoded_twice", "a=%252C&b=%3D&OAUTH", "a=%2C&b=%3D"),
        ("decoded_twice", "a=b%26c&OAUTH", "a=b%2526c"),
    ];
    made.extend(queries.map(|(word, signed, sent)| {
        let signed = signed.replace("OAUTH", OAUTH);
        (word, normalized(signed), query(sent))
    }));
    let usual = [
        ("token_secret_missing", key("c%2Bs&")),
        ("ampersand_missing", key("c%2Bst%20s")),
        ("ampersand_missing", key("c+s")),
        ("secrets_not_encoded", key("c+s&t s")),
        ("consumer_secret_missing", key("&t%20s")),
        ("secrets_swapped", key("t%20s&c%2Bs")),
        ("key_encoded_whole", key("c%2Bs%26t%20s")),
        ("secrets_encoded_twice", key("c%252Bs&t%2520s")),
        ("secrets_encoded_twice", key("c%2Bs&t%2520s")),
        ("key_instead_of_secret", key("ck&t%20s")),
        ("key_instead_of_secret", key("c%2Bs&tk")),
        ("white_space_around_secret", key("c%2Bs%0A&t%20s")),
        ("white_space_around_secret", key("c+s&t s\n")),
        ("white_space_around_secret", key("%20c%2Bs%20&t%20s")),
        ("white_space_around_secret", key("c%2Bs%0D%0A&t%20s%0D%0A")),
        ("white_space_around_secret", key("c%2Bs&%22t%20s%22")),
        ("white_space_around_secret", key("c%2Bs%C2%A0&t%20s")),
        ("previous_secret", key("old&t%20s")),
        ("query_unsigned", normalized(format!("c=x%26y&{OAUTH}"))),
        ("body_unsigned", replaced("c=x%26y", "")),
        ("only_oauth_signed", normalized(OAUTH)),
        ("oauth_unsigned", replaced(OAUTH, "")),
        ("oauth_parameter_unsigned", replaced("oauth_token=tk", "")),
        (
            "unsent_parameter_signed",
            replaced("oauth_token=tk", "oauth_token=tk&oauth_version=1.0"),
        ),
        (
            "unsent_parameter_signed",
            replaced(
                OAUTH,
                &format!("{OAUTH}&oauth_callback=https%3A%2F%2Fconsumer.example%2Fcb"),
            ),
        ),
        (
            "unsent_parameter_signed",
            replaced(
                OAUTH,
                &format!("{OAUTH}&oauth_body_hash=2jmj7l5rSw0yVb%2FvlWAYkK%2FYBwk%3D"),
            ),
        ),
        (
            "signature_signed",
            replaced(OAUTH, &format!("{OAUTH}&oauth_signature=")),
        ),
        (
            "oauth_prefix_missing",
            replaced(OAUTH, &OAUTH.replace("oauth_", "")),
        ),
        ("realm_signed", replaced("&size=", "&realm=R&size=")),
        ("empty_values_unsigned", replaced("empty=", "")),
        ("equals_missing", replaced("empty=", "empty")),
        ("repeated_names_unsigned", replaced("&tag=w", "")),
        ("repeated_names_unsigned", replaced("&tag=x", "")),
        (
            "repeated_names_unsigned",
            replaced("tag=w&tag=x", "tag=x%2Cw"),
        ),
        ("signed_twice", replaced(OAUTH, &format!("{OAUTH}&{OAUTH}"))),
        ("parameter_unsigned", replaced("b=2", "")),
        (
            "other_timestamp",
            replaced("oauth_timestamp=1", "oauth_timestamp=2"),
        ),
        // The query sorted, then the oauth_ parameters, then the body; and the query as it is sent.
        (
            "unsorted",
            normalized(format!(
                "%C3%A9=1&B=1&b=2&empty=&m=it%27s&size=big%20one&t=~&tag=w&tag=x&{OAUTH}&c=x%26y"
            )),
        ),
        (
            "unsorted",
            normalized(format!(
                "size=big%20one&b=2&B=1&tag=x&tag=w&empty=&m=it%27s&t=~&%C3%A9=1&{OAUTH}&c=x%26y"
            )),
        ),
        (
            "sorted_by_name_only",
            normalized(right.normalized.replace("tag=w&tag=x", "tag=x&tag=w")),
        ),
        ("plus_for_space", replaced("big%20one", "big+one")),
        ("plus_for_space", replaced("big%20one&t=~", "big+one&t=%7E")),
        (
            "not_encoded",
            normalized(
                right
                    .normalized
                    .replace("%20", " ")
                    .replace("%27", "'")
                    .replace("%26", "&")
                    .replace("%C3%A9=1&", "")
                    .replace("tag=x", "tag=x&é=1"),
            ),
        ),
        ("lower_case_escapes", normalized(lower(&right.normalized))),
        (
            "lower_case_escapes",
            based(
                base.replace("%3A", "%3a")
                    .replace("%2F", "%2f")
                    .replace("%3D", "%3d"),
            ),
        ),
        ("marks_not_encoded", replaced("it%27s", "it's")),
        ("unreserved_encoded", replaced("t=~", "t=%7E")),
        ("utf_8_twice", replaced("%C3%A9", "%C3%83%C2%A9")),
        ("not_utf_8", replaced("%C3%A9", "%E9")),
        (
            "parameters_not_encoded",
            based(format!("POST&{}&{}", encode(URI), right.normalized)),
        ),
        (
            "uri_not_encoded",
            based(format!("POST&{URI}&{}", encode(&right.normalized))),
        ),
        (
            "uri_not_encoded",
            based(format!("POST&{URI}&{}", right.normalized)),
        ),
        ("other_method", based(base.replace("POST&", "GET&"))),
        ("other_method", based(base.replace("POST&", "post&"))),
        (
            "other_scheme",
            uri("http://api.example.com:8443/photos/a%20b"),
        ),
        ("other_scheme", uri("http://api.example.com/photos/a%20b")),
        (
            "other_scheme",
            uri("wss://api.example.com:8443/photos/a%20b"),
        ),
        (
            "other_scheme",
            uri("ws://api.example.com:8443/photos/a%20b"),
        ),
        ("uri_not_absolute", uri("api.example.com:8443/photos/a%20b")),
        (
            "uri_not_absolute",
            uri("//api.example.com:8443/photos/a%20b"),
        ),
        ("uri_not_absolute", uri("/photos/a%20b")),
        ("port_missing", uri("https://api.example.com/photos/a%20b")),
        (
            "other_port",
            uri("http://api.example.com:8080/photos/a%20b"),
        ),
        (
            "other_port",
            uri("https://api.example.com:3000/photos/a%20b"),
        ),
        (
            "host_not_lowered",
            uri("https://Api.Example.com:8443/photos/a%20b"),
        ),
        ("query_in_uri", uri(&format!("{URI}?{}", SENT.query))),
        (
            "query_in_uri",
            Signed {
                uri: format!("{URI}?{}", SENT.query),
                normalized: format!("c=x%26y&{OAUTH}"),
                ..right.clone()
            }
            .sign(),
        ),
        ("path_missing", at("/")),
        ("path_missing", at("")),
        ("path_decoded", at("/photos/a b")),
        ("path_prefix_added", at("/v1/photos/a%20b")),
        (
            "other_host",
            uri("https://www.api.example.com:8443/photos/a%20b"),
        ),
        ("local_address", uri("http://localhost:8080/photos/a%20b")),
        (
            "other_public_url",
            uri("https://alias.example.com/photos/a%20b"),
        ),
        ("internal_url", uri("http://10.0.0.5:9001/v1/photos/a%20b")),
        (
            "token_path_rewritten",
            uri("https://api.example.com:8443/oauth/initiate"),
        ),
        (
            "token_path_rewritten",
            Signed {
                uri: "https://api.example.com:8443/oauth".into(),
                normalized: format!("c=x%26y&mode=ask&{OAUTH}"),
                ..Signed::default()
            }
            .sign(),
        ),
        (
            "base_string_with_line_break",
            sha1(&right.key, &format!("{base}\n")),
        ),
        (
            "base_string_with_line_break",
            sha1(&right.key, &format!("{base}\r\n")),
        ),
        (
            "base_string_lowered",
            sha1(&right.key, &base.to_lowercase()),
        ),
        ("hex", hex.clone()),
        ("hex", STANDARD.encode(hex)),
        ("unpadded", right.sign().trim_end_matches('=').to_owned()),
        ("signature_encoded_twice", encode(&right.sign())),
        ("signature_with_line_break", right.sign() + "\r\n"),
        (
            "other_hash",
            hmac(SignatureMethod::HmacSha256, &right.key, &base),
        ),
        ("other_hash", right.key.clone()),
        ("key_and_text_swapped", sha1(&base, &right.key)),
        ("hash_without_key", {
            use sha1::{Digest, Sha1};
            STANDARD.encode(Sha1::digest(&base))
        }),
    ];
    made.extend(usual.map(|(word, signature)| (word, signature, SENT)));
    made
}
