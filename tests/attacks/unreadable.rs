//! In front of an API that keeps its own check, a request that some provider could read as a signed one passes only if it was
//! verified here.

use crate::{
    attacks::{
        case::{Case, Stage, answered, passes, refused},
        script,
    },
    support::{Call, Reply, Upstream, rows, upstream::After},
};

const GUARD: &str = "service.role = 'guard'";

fn get(target: &str, line: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: $H\r\n{line}\r\n\r\n")
}

#[test]
fn credentials_in_an_odd_spelling_are_rejected() {
    let stage = Stage::new(GUARD);
    let mut cases: Vec<Case> = rows(
        r#"
        a semicolon after the scheme   | Magento 2 skips one character      | OAuth;$P[GET /x]
        an equals sign after it        | Magento 2 skips one character      | OAuth=$P[GET /x]
        a colon after it               | Magento 2 skips one character      | OAuth: $P[GET /x]
        no space after it              | PECL oauth searches for names      | OAuth$P[GET /x]
        an escaped space after it      | PECL oauth searches for names      | OAuth%20$P[GET /x]
        a no-break space after it      | Python's str.split                 | OAuth\u{a0}$P[GET /x]
        the next version               | PECL oauth searches for names      | OAuth2 $P[GET /x]
        a version                      | PECL oauth searches for names      | OAuth/1.0 $P[GET /x]
        a letter before it             | older python-oauth: a substring    | XOAuth $P[GET /x]
        quotes around it               | a lenient reader                   | "OAuth" $P[GET /x]
        a space in it                  | a lenient reader                   | O Auth $P[GET /x]
        no scheme                      | a lenient reader                   | $P[GET /x]
        after Basic                    | RFC 9110 §11.6.1, a list           | Basic YTpi, OAuth $P[GET /x]
        after Bearer                   | older python-oauth: a substring    | Bearer x OAuth $P[GET /x]
        in another scheme              | PECL oauth searches for names      | Digest a="b", oauth_token="x"
        in capitals                    | a lenient reader                   | OAuth1 OAUTH_TOKEN="x"
        an escaped name                | RFC 5849 §3.5.1                    | OAuth1 oauth%5Ftoken="x"
    "#,
    )
    .iter()
    .map(|[name, source, value]| {
        refused(name, source, 400, get("/x", &format!("Authorization: {value}")))
    })
    .collect();
    for [name, source, target] in rows(
        r"
        after a semicolon              | Rack 2, Python before 3.9.2        | /x?a=1;oauth_token=x
        after a semicolon, escaped     | Rack 2, Python before 3.9.2        | /x?a;%6fauth%5Ftoken=x
        a whole set after a semicolon  | Rack 2, Python before 3.9.2        | /x?a=1;$Q[GET /x]
        a set between semicolons       | Rack 2, Python before 3.9.2        | /x?a;oauth_consumer_key=k;oauth_token=t
        an open bracket                | PHP                                | /x?oauth[token=x
        a dot                          | PHP                                | /x?oauth.token=x
        a space in front               | PHP                                | /x?%20oauth_token=x
        a plus in front                | PHP                                | /x?+oauth_token=x
        an index                       | PHP, Rack                          | /x?oauth_token[]=x
        a bracket in front             | qs of Express                      | /x?[oauth_token]=x
        NUL after it                   | PHP                                | /x?oauth_token%00=x
        capitals                       | ASP.NET                            | /x?OAuth_Token=x
        an escaped name                | RFC 3986 §2.1                      | /x?%6f%61uth_token=x
        a lone name                    | RFC 5849 §3.4.1.3.1                | /x?oauth_token
    ",
    ) {
        cases.push(answered(name, source, 400, get(target, "X-A: b")));
    }
    for [name, value] in rows(
        r#"
        the scheme alone               | OAuth
        a realm alone                  | OAuth realm="x"
        names of a lenient search      | OAuth xoauth_consumer_key="k", xoauth_token="t"
        a parameter twice              | $V[GET /x], oauth_token="x"
        a capital name                 | OAuth OAUTH_TOKEN="x"
        others in the realm            | OAuth realm="oauth_token=t", $P[GET /x]
    "#,
    ) {
        let line = format!("Authorization: {value}");
        cases.push(answered(name, "RFC 5849 §3.5.1", 400, get("/x", &line)));
    }
    let form = |body: &str| {
        let length = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: $L";
        format!("POST /x HTTP/1.1\r\nHost: $H\r\n{length}\r\n\r\n{body}")
    };
    for body in ["a=1;oauth_token=x", "oauth.token=x", "a=1&%6Fauth_token"] {
        cases.push(answered(body, "the readers of queries", 400, form(body)));
    }
    stage.play(40, &cases);
    // A consumer signs these, to have a provider that searches the field read those of another one.
    for (name, value) in [("xoauth_token", "t"), ("a", "oauth_consumer_key=k")] {
        let call = Call::get("/x").of(&stage.caller).parameter(name, value);
        stage.proxy.rejects(call, 400, "parameter_rejected");
        let call = Call::get(&format!("/x?{name}={value}")).of(&stage.caller);
        stage.proxy.passes(call);
    }
}

#[test]
fn what_is_no_credential_of_oauth_passes() {
    let stage = Stage::new(GUARD);
    let mut cases: Vec<Case> = [
        "X-A: b",
        "Authorization: Basic YTpi",
        "Authorization: Bearer oauth_x-y.z",
        "Authorization: OAuth2 abc",
        "Authorization: Negotiate YII=",
        "X-Auth-Token: 0123",
    ]
    .iter()
    .map(|line| passes(line, "the API's own", "GET /x", get("/x", line)).anonymous())
    .collect();
    for target in [
        "/x?a=1;b=2",
        "/x?a=oauth_token",
        "/x?oauth2_token=1",
        "/x?xoauth_token=1",
    ] {
        let seen = format!("GET {target}");
        cases.push(passes(target, "the API's own", &seen, get(target, "X-A: b")).anonymous());
    }
    for value in [
        "OAuth,$P[GET /x]",
        "OAuth\t $P[GET /x]",
        "oAuTh ,, $P[GET /x]",
    ] {
        let line = format!("Authorization: {value}");
        cases.push(passes(
            value,
            "RFC 9110 §5.6.1.2",
            "GET /x",
            get("/x", &line),
        ));
    }
    stage.play(13, &cases);
}

/// oauthlib reads the parameters of every body that looks like a form, PHP and Django those of parts, Rack those of a body
/// without a type.
#[test]
fn credentials_in_a_body_that_is_not_a_form_never_arrive_whole() {
    let api = Upstream::handling(|exchange| {
        exchange.whole_body()?;
        exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
        Ok(After::Close)
    });
    let stage = Stage::before(api, GUARD);
    let credentials = script::bytes("$B[POST /x]", &stage.proxy, &stage.caller);
    let credentials = String::from_utf8(credentials).unwrap();
    let part = |head: &str, value: &str| {
        format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\n{value}\r\n")
    };
    let parts = |pairs: &str| {
        let pairs = pairs.split('&').filter_map(|pair| pair.split_once('='));
        let parts = pairs.map(|(name, value)| part(&format!("name=\"{name}\""), value));
        parts.collect::<String>() + "--b--\r\n"
    };
    let late = part("name=\"file\"; filename=\"f\"", &"x\n".repeat(100_000)) + &parts(&credentials);
    for (content_type, body) in [
        (None, credentials.clone()),
        (Some("text/plain"), credentials.clone()),
        (Some("application/json"), credentials.clone()),
        (Some("multipart/form-data; boundary=b"), credentials.clone()),
        (Some("multipart/form-data; boundary=b"), parts(&credentials)),
        (
            Some("Multipart/Form-Data; boundary=b"),
            parts(&credentials.replace('_', ".")),
        ),
        (Some("multipart/mixed; boundary=b"), parts(&credentials)),
        (Some("multipart/form-data; boundary=b"), late.clone()),
    ] {
        for is_signed in [false, true] {
            let chunks: Vec<&[u8]> = body.as_bytes().chunks(4_001).collect();
            let mut call = Call::post("/x").chunked(&chunks);
            if let Some(content_type) = content_type {
                call = call.header("Content-Type", content_type);
            }
            if is_signed {
                call = call.of(&stage.caller);
            }
            let before = stage.api.count();
            let answer = stage.proxy.send(call);
            answer.has_status(400);
            assert!(
                answer.text().contains("Authorization%20field"),
                "{answer:?}"
            );
            let seen = stage.api.requests_since(before);
            assert!(
                seen.iter().all(|seen| !seen.whole),
                "{content_type:?} {seen:?}"
            );
        }
    }
    // The same bodies without credentials arrive, and so does a text about them.
    let text = part(
        "name=\"text\"",
        "<input name=\"oauth_token\">\r\nGET /x?a&oauth_token=1",
    );
    for (content_type, body) in [
        ("multipart/form-data; boundary=b", text + "--b--\r\n"),
        (
            "multipart/form-data; boundary=b",
            late.replace("oauth_", "o_"),
        ),
        ("application/json", "{\"oauth_token\": \"x\"}".to_owned()),
    ] {
        let before = stage.api.count();
        stage
            .proxy
            .passes(Call::post("/x").body(content_type, body.as_bytes()));
        let seen = stage.api.requests_since(before);
        assert_eq!(seen[0].text(), body);
    }
    // An API that reads the caller from a header looks for no credentials.
    let api = Upstream::replying(|seen| Reply::ok(&seen.target));
    let trusting = Stage::before(api, "operations.unlisted = 'anonymous'");
    let upload = Call::post("/x").body("text/plain", credentials.as_bytes());
    trusting.proxy.passes(upload);
}
