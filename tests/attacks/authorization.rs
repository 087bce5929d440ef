//! Credentials given twice or in two places, and forms that a signature does not cover (RFC 5849 §3.2, §3.4.1.3, §3.5).
//!
//! Promise (Signatures): Credentials in two places, and a form that the signature does not cover, are rejected.

use crate::{
    attacks::{
        case::{Case, Stage, answered, passes, refused},
        script::{form, post},
    },
    support::rows,
};

#[test]
fn credentials_stand_once_and_in_one_place() {
    let stage = Stage::new("");
    let request =
        |target: &str, lines: &str| format!("GET {target} HTTP/1.1\r\nHost: $H\r\n{lines}\r\n\r\n");
    let value = "$V[GET /x]";
    let mut cases: Vec<Case> = rows(
        r#"
        two equal lines       | Authorization: $V[GET /x]\r\nAuthorization: $V[GET /x]
        a wrong line behind   | Authorization: $V[GET /x]\r\nAuthorization: OAuth oauth_token="x"
        a wrong line in front | Authorization: OAuth oauth_token="x"\r\nAuthorization: $V[GET /x]
        an empty line behind  | Authorization: $V[GET /x]\r\nAuthorization:
        Basic in front        | Authorization: Basic YTpi\r\nAuthorization: $V[GET /x]
        Basic behind          | Authorization: $V[GET /x]\r\nAUTHORIZATION: Basic YTpi
        Bearer behind         | Authorization: $V[GET /x]\r\nauthorization: Bearer x
    "#,
    )
    .iter()
    .map(|[name, lines]| refused(name, "RFC 9110 §11.6.2, §5.3", 400, request("/x", lines)))
    .collect();
    for [name, lines] in rows(
        r#"
        two OAuth schemes with a comma | Authorization: $V[GET /x], $V[GET /x]
        OAuth, then Basic with a comma | Authorization: $V[GET /x], Basic YTpi
        a token twice                  | Authorization: $V[GET /x], oauth_token="x"
        a signature twice              | Authorization: $V[GET /x], oauth_signature="x"
        a nonce twice, escaped         | Authorization: $V[GET /x], oauth%5Fnonce="x"
        an unknown one twice           | Authorization: $V[GET /x], oauth_x="1", oauth_x="1"
        no quotes                      | Authorization: $V[GET /x], oauth_x=1
        an open quote                  | Authorization: $V[GET /x], oauth_x="1
        single quotes                  | Authorization: $V[GET /x], oauth_x='1'
        a space before the equals sign | Authorization: $V[GET /x], oauth_x ="1"
        a semicolon between            | Authorization: $V[GET /x]; oauth_x="1"
        nothing between                | Authorization: $V[GET /x] oauth_x="1"
        an invalid escape              | Authorization: $V[GET /x], oauth_x="%4"
        a name alone                   | Authorization: $V[GET /x], oauth_x
        no name                        | Authorization: $V[GET /x], ="x"
        the scheme alone               | Authorization: OAuth
        the scheme and a comma         | Authorization: OAuth ,
        two schemes                    | Authorization: OAuth OAuth oauth_token="x"
        a space after the equals sign  | Authorization: $V[GET /x], oauth_x= "1"
        a realm without quotes         | Authorization: $V[GET /x], realm=x
        an open realm                  | Authorization: $V[GET /x], realm="1
        a realm that ends in an escape | Authorization: $V[GET /x], realm="1\\
        one quote too many             | Authorization: $V[GET /x], oauth_x="1""
        a bracket in a name            | Authorization: $V[GET /x], oauth(x="1"
        a name in quotes               | Authorization: $V[GET /x], "oauth_x"
        an invalid escape in a name    | Authorization: $V[GET /x], oauth_%4="1"
        an escaped quote               | Authorization: $V[GET /x], oauth_x="1\\""
    "#,
    ) {
        cases.push(answered(name, "RFC 5849 §3.5.1", 400, request("/x", lines)));
    }
    for (name, target) in [
        ("a token in the query too", "/x?oauth_token=x"),
        ("a signature in the query too", "/x?oauth_signature=x"),
        ("an unknown one in the query too", "/x?oauth_unknown=x"),
        ("an escaped one in the query too", "/x?oauth%5Ftoken=x"),
        ("a whole set in the query too", "/x?$Q[GET /x]"),
    ] {
        cases.push(answered(
            name,
            "RFC 5849 §3.5, §3.2",
            400,
            request(target, &format!("Authorization: {value}")),
        ));
    }
    for (name, target) in [
        ("a set twice in the query", "/x?$Q[GET /x]&$Q[GET /x]"),
        ("a token twice in the query", "/x?$Q[GET /x]&oauth_token=x"),
        (
            "a token twice in the query, escaped",
            "/x?$Q[GET /x]&%6fauth_token=x",
        ),
    ] {
        cases.push(answered(
            name,
            "RFC 5849 §3.2",
            400,
            request(target, "X-A: b"),
        ));
    }
    // Some providers search the whole field for their parameters.
    cases.push(refused(
        "OAuth behind Basic",
        "RFC 9110 §11.6.1",
        400,
        request("/x", &format!("Authorization: Basic YTpi, {value}")),
    ));
    // An empty element of the list, so these are credentials.
    cases.push(answered(
        "OAuth with a comma for a space",
        "RFC 9110 §5.6.1.2",
        400,
        request("/x", "Authorization: OAuth,oauth_token=\"x\""),
    ));
    for (name, lines) in [
        ("Basic", "Authorization: Basic YTpi".to_owned()),
        ("Bearer", "Authorization: Bearer x".to_owned()),
        ("OAuth2", "Authorization: OAuth2 x".to_owned()),
        ("empty", "Authorization:".to_owned()),
        (
            "Proxy-Authorization",
            format!("Proxy-Authorization: {value}"),
        ),
        ("Authorization_", format!("Authorization_: {value}")),
        ("X-Authorization", format!("X-Authorization: {value}")),
        (
            "X-Original-Authorization",
            format!("X-Original-Authorization: {value}"),
        ),
    ] {
        cases.push(answered(
            name,
            "RFC 9110 §11.6.2",
            401,
            request("/x", &lines),
        ));
    }
    stage.play(52, &cases);
}

#[test]
fn credentials_may_have_any_spelling_of_the_grammar() {
    let stage = Stage::new("");
    let request =
        |value: &str| format!("GET /x HTTP/1.1\r\nHost: $H\r\nAuthorization: {value}\r\n\r\n");
    stage.play(
        4,
        &[
            passes(
                "the scheme in capitals",
                "RFC 9110 §11.1",
                "GET /x",
                request("OAUTH $P[GET /x]"),
            ),
            passes(
                "an empty element",
                "RFC 9110 §5.6.1.2",
                "GET /x",
                request("$V[GET /x],"),
            ),
            passes(
                "a realm",
                "RFC 5849 §3.5.1",
                "GET /x",
                request("$V[GET /x], realm=\"a, oauth_token=\\\"x\\\"\""),
            ),
            passes(
                "in the query",
                "RFC 5849 §3.5.3",
                "GET /x?",
                "GET /x?$Q[GET /x] HTTP/1.1\r\nHost: $H\r\n\r\n",
            ),
        ],
    );
}

#[test]
fn a_form_that_the_signature_does_not_cover_never_passes() {
    let stage = Stage::new("");
    // Signed without the form: an API that parses the body would read parameters that are not signed.
    let unsigned =
        |content_type: &str| post(&format!("{content_type}\r\nContent-Length: $L"), "admin=1");
    let mut cases = Vec::new();
    for [name, source, lines] in rows(
        r#"
        plain | RFC 5849 §3.4.1.3.1 | Content-Type: application/x-www-form-urlencoded
        capitals | RFC 9110 §8.3.1 | Content-Type: APPLICATION/X-WWW-FORM-URLENCODED
        mixed | RFC 9110 §8.3.1 | content-type: Application/x-WWW-form-urlencoded
        a charset | RFC 9110 §8.3.2 | Content-Type: application/x-www-form-urlencoded; charset=UTF-8
        another charset | RFC 9110 §8.3.2 | Content-Type: application/x-www-form-urlencoded;charset=iso-8859-1
        a space before the semicolon | RFC 9110 §8.3.1 | Content-Type: application/x-www-form-urlencoded ; a=b
        a tab before the semicolon | RFC 9110 §8.3.1 | Content-Type: application/x-www-form-urlencoded\t;a=b
        a tab in front | RFC 9110 §5.5 | Content-Type:\tapplication/x-www-form-urlencoded
        a semicolon alone | RFC 9110 §5.6.6 | Content-Type: application/x-www-form-urlencoded;
        two semicolons | RFC 9110 §5.6.6 | Content-Type: application/x-www-form-urlencoded;;
        a word behind | PHP reads up to a space | Content-Type: application/x-www-form-urlencoded x
        a word behind a tab | PHP reads up to a space | Content-Type: application/x-www-form-urlencoded\tx
        a list, the form first | PHP reads up to a comma | Content-Type: application/x-www-form-urlencoded, text/plain
        a list, the form last | RFC 9110 §5.3 | Content-Type: text/plain, application/x-www-form-urlencoded
        a list without white space | RFC 9110 §5.3 | Content-Type: text/plain,application/x-www-form-urlencoded
        a list of multipart and the form | RFC 9110 §5.3 | Content-Type: multipart/form-data; boundary=x, application/x-www-form-urlencoded
        a no-break space behind | Python's str.strip | Content-Type: application/x-www-form-urlencoded\u{a0}
        a no-break space in front | Python's str.strip | Content-Type: \u{a0}application/x-www-form-urlencoded
        a next-line character behind | Python's str.strip | Content-Type: application/x-www-form-urlencoded\u{85}
        a no-break space of UTF-8 behind | .NET's Trim | Content-Type: application/x-www-form-urlencoded\u{c2}\u{a0}
        quotes | a lenient reader | Content-Type: "application/x-www-form-urlencoded"
        behind another type's semicolon | a lenient reader | Content-Type: text/plain; application/x-www-form-urlencoded
        the other name                                 | Werkzeug up to 2.2 and MooTools | Content-Type: application/x-url-encoded
        the other name, in capitals and with a charset | Werkzeug up to 2.2 and MooTools | Content-Type: Application/X-URL-Encoded;charset=utf-8
        other separators | a lenient reader | Content-Type: application/x_www_form url_encoded
        a tab within | a lenient reader | Content-Type: application/x-www-form-url\tencoded
        a soft hyphen within | a lenient reader | Content-Type: application/x-www-form-url\u{ad}encoded
    "#,
    ) {
        cases.push(answered(name, source, 401, unsigned(lines)));
    }
    for [name, lines] in rows(
        r"
        two lines, the form first | Content-Type: application/x-www-form-urlencoded\r\nContent-Type: text/plain
        two lines, the form last  | Content-Type: text/plain\r\nContent-Type: application/x-www-form-urlencoded
        two equal lines | Content-Type: application/x-www-form-urlencoded\r\nContent-Type: application/x-www-form-urlencoded
        a line and an empty one   | Content-Type: application/x-www-form-urlencoded\r\nContent-Type:
    ",
    ) {
        cases.push(refused(name, "RFC 9110 §5.3, §8.3", 400, unsigned(lines)));
        cases.push(refused(
            &format!("{name}, signed"),
            "RFC 9110 §5.3, §8.3",
            400,
            form(lines, "a=1"),
        ));
    }
    for (name, coding) in [
        ("gzip", "Content-Encoding: gzip"),
        ("deflate", "content-encoding: Deflate"),
        ("br behind identity", "Content-Encoding: identity, br"),
        (
            "two lines",
            "Content-Encoding: identity\r\nContent-Encoding: gzip",
        ),
        ("unknown", "Content-Encoding: x"),
    ] {
        let lines = format!("Content-Type: application/x-www-form-urlencoded\r\n{coding}");
        cases.push(refused(
            &format!("a form under {name}"),
            "RFC 9110 §8.4",
            400,
            form(&lines, "a=1"),
        ));
    }
    for method in ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "X"] {
        cases.push(answered(
            &format!("{method} with a form"),
            "RFC 5849 §3.4.1.3.1",
            401,
            format!("{method} /x HTTP/1.1\r\nHost: $H\r\n$A[{method} /x]\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: $L\r\n\r\nadmin=1"),
        ));
    }
    let head = "POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /x a=1]\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    for (name, rest) in [
        ("another value", "Content-Length: $L\r\n\r\na=2"),
        ("one more pair", "Content-Length: $L\r\n\r\na=1&b=2"),
        ("one pair less", "Content-Length: 0\r\n\r\n"),
        ("the pair twice", "Content-Length: $L\r\n\r\na=1&a=1"),
        (
            "one more pair in chunks",
            "Transfer-Encoding: chunked\r\n\r\n3\r\na=1\r\n4\r\n&b=2\r\n0\r\n\r\n",
        ),
    ] {
        cases.push(answered(
            name,
            "RFC 5849 §3.4.1.3.1",
            401,
            format!("{head}{rest}"),
        ));
    }
    cases.push(answered(
        "a pair moved from the form to the query",
        "RFC 5849 §3.4.1.3",
        401,
        "POST /x?b=2 HTTP/1.1\r\nHost: $H\r\n$A[POST /x a=1]\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: $L\r\n\r\na=1",
    ));
    stage.play(53, &cases);
}

#[test]
fn credentials_in_a_form_are_nowhere_else() {
    let stage = Stage::new("");
    let request = |target: &str, lines: &str, body: &str| {
        format!(
            "POST {target} HTTP/1.1\r\nHost: $H\r\n{lines}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: $L\r\n\r\n{body}"
        )
    };
    let body = "$B[POST /x a=1]";
    stage.play(10, &[
        passes("in the form", "RFC 5849 §3.5.2", "POST /x | a=1", request("/x", "", body)),
        answered("a token in the query too", "RFC 5849 §3.5", 400, request("/x?oauth_token=x", "", body)),
        answered("a token in the header too", "RFC 5849 §3.5", 400, request("/x", "Authorization: OAuth oauth_token=\"x\"\r\n", body)),
        answered("the scheme in the header too", "RFC 5849 §3.5", 401, request("/x", "Authorization: Basic YTpi\r\n", "a=1")),
        answered("a token twice", "RFC 5849 §3.2", 400, request("/x", "", &format!("{body}&oauth_token=x"))),
        answered("a token twice, escaped", "RFC 5849 §3.2", 400, request("/x", "", &format!("{body}&%6Fauth%5ftoken=x"))),
        answered("in the form and the header", "RFC 5849 §3.5", 400, request("/x", "$A[POST /x a=1]\r\n", body)),
        answered("an invalid escape behind", "RFC 3986 §2.1", 400, request("/x", "", &format!("{body}&b=%zz"))),
        // A body that is not a form to RFC 5849 has no parameters: this request is unsigned.
        answered("in multipart", "RFC 5849 §3.4.1.3.1", 401, format!("POST /x HTTP/1.1\r\nHost: $H\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: $L\r\n\r\n{body}")),
        answered("in plain text", "RFC 5849 §3.4.1.3.1", 401, format!("POST /x HTTP/1.1\r\nHost: $H\r\nContent-Type: text/plain\r\nContent-Length: $L\r\n\r\n{body}")),
    ].map(|case| if case.is(401) && !case.name().contains("header") { case.closed() } else { case }));
}

#[test]
fn a_signed_form_passes_in_every_spelling() {
    let stage = Stage::new("");
    stage.play(6, &[
        passes("plain", "RFC 5849 §3.4.1.3.1", "POST /x | a=1&b=%20+", form("Content-Type: application/x-www-form-urlencoded", "a=1&b=%20+")),
        passes("capitals", "RFC 9110 §8.3.1", "POST /x | a=1", form("Content-Type: APPLICATION/X-WWW-FORM-URLENCODED", "a=1")),
        passes("a charset", "RFC 9110 §8.3.2", "POST /x | a=1", form("Content-Type: application/x-www-form-urlencoded; charset=UTF-8", "a=1")),
        passes("identity", "RFC 9110 §8.4.1", "POST /x | a=1", form("Content-Type: application/x-www-form-urlencoded\r\nContent-Encoding: identity", "a=1")),
        passes("chunked", "RFC 9112 §7.1", "POST /x | a=1", "POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /x a=1]\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\n=1\r\n0\r\n\r\n"),
        passes("another type is not signed", "RFC 5849 §3.4.1.3.1", "POST /x | a=1", post("Content-Type: text/plain\r\nContent-Length: 3", "a=1")),
    ]);
}
