//! Descriptions that are incomplete, or can be read in two ways.

use super::*;

#[test]
fn every_permission_has_all_identity_headers() {
    let api = Upstream::start();
    let proxy = Proxy::with(&api, CONFIG);
    let caller = proxy.somebody_with("--permission members");
    let (consumer, user, token) = caller.into_parts();
    let visitor = Visitor::logged_in(&proxy, &user);
    let cookie: Vec<String> = visitor
        .cookies
        .iter()
        .map(|(n, v)| format!("{n}={v}"))
        .collect();
    for way in WAYS {
        for (call, expected) in [
            (
                Call::get("/members/7").by(&consumer).with(&token),
                [&*user.id, &consumer.key, "members", "consumer"],
            ),
            (
                Call::get("/app").by(&consumer),
                ["", &consumer.key, "members", "application"],
            ),
            (Call::get("/open"), ["", "", "", "anonymous"]),
            (
                Call::get("/account").header("Cookie", &cookie.join("; ")),
                [&user.id, "", "", "user"],
            ),
        ] {
            let call = call
                .header("X-Auth-User", "root")
                .header("X_Auth_Kind", "user");
            assert_eq!(identity(&proxy.asks(way, &call)), expected, "{way:?}");
        }
    }
    api.saw_nothing();
}

#[test]
fn a_description_has_each_field_once_and_not_empty() {
    let Scene { api, proxy, .. } = Scene::with(CONFIG);
    let origin = proxy.origin();
    for way in WAYS {
        let whole = way.description(&origin, "GET", "/open");
        assert_eq!(
            identity(&raw(&proxy, &format!("{whole}\r\n")))[3],
            "anonymous"
        );
        let mut lines: Vec<&str> = whole.split_terminator("\r\n").collect();
        let first = lines.remove(0);
        let own = lines.iter().enumerate().filter(|(_, line)| match way {
            Way::Verify => true,
            Way::Nginx | Way::Forwarded => line.starts_with("X-"),
        });
        for (index, line) in own {
            let name = line.split(':').next().unwrap();
            let empty = format!("{name}:");
            let tab = format!("{name}: \t ");
            let upper = line.replacen(name, &name.to_uppercase(), 1);
            for other in [
                vec![],
                vec![&*empty],
                vec![&tab],
                vec![line, line],
                vec![line, &upper],
            ] {
                let is_optional = way == Way::Verify && name != "Host" && other.is_empty();
                let count = other.len();
                let mut lines = lines.clone();
                lines.splice(index..=index, other);
                let head = format!("{first}\r\n{}\r\n\r\n", lines.join("\r\n"));
                let answer = raw(&proxy, &head);
                let expected = if is_optional { 200 } else { 400 };
                assert_eq!(status(way, &answer), expected, "{head}{answer:?}");
                let wrong = match count {
                    0 => "missing",
                    1 => "empty",
                    _ => "repeated",
                };
                if !is_optional {
                    let told = match way {
                        Way::Nginx => answer.header("WWW-Authenticate").unwrap().to_owned(),
                        _ => answer.told("oauth_problem_advice").unwrap(),
                    };
                    let wrong = format!("{name} is {wrong}");
                    has(&told, &[&wrong]);
                    proxy.logs(&["verdict=\"bad_request\"", &wrong]);
                }
            }
        }
        // The fields of other ways are ignored, and no way has a default.
        let mine = way.description(&origin, "GET", "/mine");
        for other in WAYS.into_iter().filter(|other| *other != way) {
            let (_, description) = other
                .description(&origin, "GET", "/open")
                .split_once("\r\n")
                .map(|(line, rest)| (line.to_owned(), rest.to_owned()))
                .unwrap();
            let fields: Vec<&str> = description
                .split_terminator("\r\n")
                .filter(|line| !mine.contains(line.split(':').next().unwrap()))
                .collect();
            let answer = raw(&proxy, &format!("{mine}{}\r\n\r\n", fields.join("\r\n")));
            assert_eq!(status(way, &answer), 401, "{way:?} {other:?}: {answer:?}");
            let answer = raw(
                &proxy,
                &format!("{first}\r\nHost: gate\r\n{}\r\n\r\n", fields.join("\r\n")),
            );
            assert_ne!(status(way, &answer), 200, "{way:?} {other:?}: {answer:?}");
        }
    }
    for path in [
        "/",
        "/verify",
        "/nginx/",
        "/Nginx",
        "/verifyx/open",
        "/forwarded/open",
        "/healthz",
    ] {
        let fields = WAYS.map(|way| {
            let whole = way.description(&origin, "GET", "/open");
            let lines = whole
                .split_terminator("\r\n")
                .filter(|line| line.starts_with("X-"));
            lines.map(|line| format!("{line}\r\n")).collect::<String>()
        });
        let answer = raw(
            &proxy,
            &format!(
                "GET {path} HTTP/1.1\r\nHost: gate\r\n{}\r\n",
                fields.concat()
            ),
        );
        answer.has_status(404);
        let ways = ["/nginx", "/forwarded", "/verify/"];
        has(&answer.text(), &ways);
        proxy.logs(&[
            &format!("path={path:?}"),
            "verdict=\"not_found\"",
            "/nginx, /forwarded or /verify",
        ]);
    }
    api.saw_nothing();
}

#[test]
fn nothing_in_a_described_url_can_be_read_in_two_ways() {
    let Scene { proxy, .. } = Scene::with(
        "forward_auth.listen = '127.0.0.1:0'\noperations.unlisted = 'anonymous'\n\
         service.public_api_urls = ['https://api.example.com/v1', 'http://[::1]:8080/v1']\n\
         service.base_url = 'https://auth.example.com'",
    );
    for [url, expected] in rows(
        r"https://api.example.com/v1 | 200
          HTTPS://API.Example.COM/v1/a?b#c | 400
          HTTPS://API.Example.COM/v1/a?b | 200
          https://api.example.com:443/v1/a?https://other/#/ | 400
          https://api.example.com:443/v1/a?https://other/ | 200
          http://[::1]:8080/v1/ | 200
          https://api.example.com/v10 | 421
          https://api.example.com/ | 421
          https://api.example.com/v1/../admin | 400
          https://api.example.com/v1/%2e%2e/admin | 400
          https://api.example.com/v1/..%2fadmin | 400
          https://api.example.com/v1/..;/admin | 400
          https://api.example.com/v1/\\..\\..\\admin | 400
          https://other.example/v1 | 421
          https://api.example.com.other.example/v1 | 421
          https://api.example.com:8443/v1 | 421
          https://user@api.example.com/v1 | 400
          https://api.example.com@other.example/v1 | 400
          https://other.example\\@api.example.com/v1 | 400
          https://api.example.com,other.example/v1 | 421
          https://api.example.com /v1 | 400
          https:///v1 | 400
          https://:443/v1 | 400
          https://api.example.com:/v1 | 400
          https://api.example.com:0443/v1 | 200
          https://api.example.com:99999/v1 | 400
          https://[::1/v1 | 400
          https://api.example.com | 400
          https://api.example.com?/v1 | 400
          https://api.example.com#/v1 | 400
          https:/api.example.com/v1 | 400
          //api.example.com/v1 | 400
          /v1 | 400
          * | 400
          ftp://api.example.com/v1 | 400
          javascript://api.example.com/v1 | 400
          https://https://api.example.com/v1 | 400
          https://api.example.com/v1 /a | 400
          https://api.example.com/v1\t/a | 400
          https://api.example.com/v1/\xe9 | 400
          https://api.example.com/v1?\xff | 400
          https://api.example.com/v1, https://api.example.com/v1 | 400
        ",
    ) {
        let head = format!(
            "GET /nginx HTTP/1.1\r\nHost: api.example.com\r\nX-Original-Method: GET\r\nX-Original-URL: {url}\r\n\r\n"
        );
        let answer = raw(&proxy, &head);
        assert_eq!(
            status(Way::Nginx, &answer).to_string(),
            expected,
            "{url}: {answer:?}"
        );
    }
    for [method, expected] in rows(
        "GET | 200\nget | 200\nM-SEARCH | 200\nTRACE | 405\nconnect | 405\nG ET | 400\nGET, GET | 400\nGÉT | 400",
    ) {
        let head = format!(
            "GET /nginx HTTP/1.1\r\nHost: g\r\nX-Original-Method: {method}\r\nX-Original-URL: https://api.example.com/v1\r\n\r\n"
        );
        let answer = raw(&proxy, &head);
        assert_eq!(
            status(Way::Nginx, &answer).to_string(),
            expected,
            "{method}: {answer:?}"
        );
    }
    for [proto, host, uri, expected] in rows(
        r"https | api.example.com | /v1 | 200
          https, http | api.example.com | /v1 | 400
          HTTPS | api.example.com | /v1 | 200
          wss | api.example.com | /v1 | 200
          wsx | api.example.com | /v1 | 400
          https | api.example.com, other | /v1 | 400
          https | u@api.example.com | /v1 | 400
          https | api.example.com/v1 | /v1 | 400
          https | api.example.com | https://api.example.com/v1 | 400
          https | api.example.com | v1 | 400
          https | api.example.com | //v1 | 421
          https | api.example.com | /v1#a | 400
          https | api.example.com | /v1 HTTP/1.1 | 400
        ",
    ) {
        let head = format!(
            "GET /forwarded HTTP/1.1\r\nHost: g\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Proto: {proto}\r\n\
             X-Forwarded-Host: {host}\r\nX-Forwarded-Uri: {uri}\r\n\r\n"
        );
        let answer = raw(&proxy, &head);
        assert_eq!(
            answer.status.to_string(),
            expected,
            "{proto} {host} {uri}: {answer:?}"
        );
    }
    // The target of the request itself is a path.
    for target in [
        "http://api.example.com/verify/v1",
        "http://api.example.com/nginx",
    ] {
        let head = format!("GET {target} HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
        raw(&proxy, &head).has_status(404);
    }
}

#[test]
fn a_missing_described_scheme_comes_from_the_public_urls() {
    let proxy = Builder::for_forward_auth()
        .config(
            "service.base_url = 'https://auth.example.com'\n\
             service.public_api_urls = ['https://api.example.com', 'http://both.example.com', 'https://both.example.com']",
        )
        .start();
    let caller = proxy.somebody();
    for [host, signed, expected] in rows(
        "api.example.com | https://api.example.com | 200
         api.example.com | http://api.example.com | 401
         both.example.com | https://both.example.com | 400
         other.example.com | https://api.example.com | 421",
    ) {
        let wire = Call::get("/").of(&caller).wire(signed, host);
        let wire = String::from_utf8(wire)
            .unwrap()
            .replace("GET /", "GET /verify/");
        assert_eq!(
            raw(&proxy, &wire).status.to_string(),
            expected,
            "{host} {signed}"
        );
    }
    for (scheme, expected) in [("https", 200), ("http", 200)] {
        let origin = format!("{scheme}://both.example.com");
        let wire = Call::get("/").of(&caller).wire(&origin, "both.example.com");
        assert_eq!(proxy.asks_by(Way::Verify, &origin, &wire).status, expected);
    }
}

#[test]
fn a_request_id_in_a_description_is_the_callers() {
    let proxy = Builder::for_forward_auth()
        .config("listen.trusted_proxies = ['127.0.0.1']\noperations.unlisted = 'nobody'")
        .start();
    let call = Call::get("/").header("X-Request-Id", "mine-0123456789");
    let answer = proxy.asks(Way::Verify, &call);
    assert_ne!(answer.header("X-Request-Id"), Some("mine-0123456789"));
}

#[test]
fn a_permission_has_the_request_id_of_the_log_for_the_api() {
    let Scene { proxy, caller, .. } = Scene::with(CONFIG);
    for way in WAYS {
        let call = Call::get("/mine").of(&caller);
        let answer = proxy.asks(way, &call.header("X-Request-Id", "of-the-caller"));
        let ids = answer.has_status(200).fields.all("X-Request-Id");
        assert!(ids.len() == 1 && ids[0] != "of-the-caller", "{answer:?}");
        proxy.logs(&["path=\"/mine\"", &format!("request_id={}", ids[0])]);
    }
    assert!(!proxy.log().to_string().contains("of-the-caller"));
}

#[test]
fn the_user_whom_a_description_names_is_the_callers_word() {
    let api = Upstream::start();
    let proxy = Proxy::with(
        &api,
        "forward_auth.listen = '127.0.0.1:0'\nlisten.trusted_proxies = ['127.0.0.1']\n\
         operation = [{ path = '/account', access = ['user'] }]\n\
         login = { backend = 'header', user_header = 'Remote-User' }",
    );
    let as_ada = |target: &str| {
        let call = Call::get(target).header("Sec-Fetch-Site", "none");
        call.header("Remote-User", "ada")
    };
    let mut browser = Visitor::to(&proxy);
    browser.send(as_ada(APPLICATIONS)).has_status(200);
    browser.send(as_ada("/account")).has_status(200);
    let cookies = browser.cookies.iter();
    let cookies: Vec<String> = cookies
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    for way in WAYS {
        let call = as_ada("/account").header("Cookie", &cookies.join("; "));
        assert_eq!(status(way, &proxy.asks(way, &call)), 401, "{way:?}");
    }
}
