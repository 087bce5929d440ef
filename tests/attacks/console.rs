//! Attacks on the operator's console: other hosts and sites, forged and stale forms, stolen rights, markup, and bytes that no
//! browser sends.
//!
//! Promise (Console): A change needs an unchanged record and a confirmed form of a session that no other host, site or port can
//! use. Also in `tests/acceptance/operator/console.rs`, `src/operator/admin/console/session.rs`.

use crate::support::{
    Answer, Call, Connection, Consumer, Operator, Proxy, Reply, Upstream,
    operator::{READ, WRITE},
    visitor::{Form, Page},
};

fn console(config: &str) -> (Upstream, Proxy) {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api)
        .config(config)
        .with_console()
        .start();
    (api, proxy)
}

/// The page that asks whether a new consumer is to be disabled, and its form.
fn asked(proxy: &Proxy, operator: &Operator<'_>) -> (Consumer, Page, Form) {
    let consumer = proxy.consumer("Shop");
    let page = operator.open(&format!("/consumer/disable?key={}", consumer.key));
    let form = page.form_with("confirmed");
    (consumer, page, form)
}

fn is_enabled(proxy: &Proxy, consumer: &Consumer) -> bool {
    let shown = proxy.run(&format!("consumer show {} --json", consumer.key));
    shown.json()["enabled"] == true
}

#[test]
fn the_console_opens_under_no_other_host_name() {
    for (config, name) in [
        ("", 421),
        ("admin.hosts = ['console.test']", 303),
        ("admin.listen = '0.0.0.0:0'", 421),
    ] {
        let (_api, proxy) = console(config);
        let port = proxy.admin().port();
        for (host, status) in [
            (format!("127.0.0.1:{port}"), 303),
            (format!("localhost:{port}"), 303),
            (format!("countersign.localhost:{port}"), 303),
            (format!("a.b.LOCALHOST:{port}"), 303),
            (format!("localhost.test:{port}"), 421),
            (format!("notlocalhost:{port}"), 421),
            (format!("console.test:{port}"), name),
            ("rebound.test".to_owned(), 421),
            (format!("127.0.0.1.rebound.test:{port}"), 421),
            (format!("user@127.0.0.1:{port}"), 400),
            (String::new(), 400),
        ] {
            let mut connection = Connection::to(([127, 0, 0, 1], port).into());
            connection.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
            let answer = connection.answer("GET");
            assert_eq!(answer.status, status, "{config} {host:?}: {answer:?}");
        }
    }
}

/// RFC 9112 section 3.2.2: the host of an absolute target counts, whatever Host says.
#[test]
fn the_host_of_a_target_does_not_open_the_console() {
    let (_api, proxy) = console("");
    let own = proxy.admin().to_string();
    for (target, host, status) in [
        ("http://evil.test/", &*own, 421),
        ("http://evil.test/v1/consumers", &own, 421),
        ("http://evil.test:80/metrics", &own, 421),
        ("http://user@127.0.0.1/", &own, 400),
        ("http://localhost/", "evil.test", 421),
        ("http://localhost/", "", 400),
        ("http://localhost/v1/consumers", &own, 200),
        ("https://countersign.localhost/v1/consumers", &own, 200),
    ] {
        let mut connection = Connection::to(proxy.admin());
        let head = format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {READ}\r\n\r\n"
        );
        connection.send(head.as_bytes());
        let answer = connection.answer("GET");
        assert_eq!(answer.status, status, "{target} {host}: {answer:?}");
    }
}

/// Browsers send a cookie to every port of its host name: the console gets a name of its own.
#[test]
fn browser_at_a_shared_host_is_redirected_once_to_the_console() {
    let (_api, proxy) = console("");
    let port = proxy.admin().port();
    let open = |host: &str, fields: &str| {
        let mut connection = Connection::to(proxy.admin());
        let head = format!("GET /tokens?user=a HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
        connection.send(head.as_bytes());
        let answer = connection.answer("GET");
        answer.has_status(303);
        (answer.header("location").unwrap().to_owned(), answer)
    };
    let (navigates, login) = ("Sec-Fetch-Mode: navigate\r\n", "/login?to=");
    for (host, port) in [
        (format!("127.0.0.1:{port}"), format!(":{port}")),
        (format!("LocalHost:{port}"), format!(":{port}")),
        ("localhost".to_owned(), String::new()),
    ] {
        let (sent, answer) = open(&host, navigates);
        let own = format!("//countersign.localhost{port}/tokens?user=a&from=");
        assert!(sent.starts_with(&own), "{sent}");
        let cookie = answer.header("set-cookie").unwrap();
        assert!(
            cookie.contains("; HttpOnly; SameSite=Strict; Max-Age=600"),
            "{cookie}"
        );
        // The browser may not know the name: the person comes back, and stays.
        let cookie = cookie.split(';').next().unwrap();
        let again = format!("{navigates}Cookie: {cookie}\r\n");
        let (there, _) = open(&host, &again);
        assert!(there.starts_with(login), "{there}");
        // It does know the name: it is sent there each time.
        let mut connection = Connection::to(proxy.admin());
        let (_, target) = sent.rsplit_once('/').unwrap();
        connection.send(
            format!("GET /{target} HTTP/1.1\r\nHost: countersign.localhost\r\n\r\n").as_bytes(),
        );
        let answer = connection.answer("GET");
        assert!(answer.header("location").unwrap().starts_with(login));
        assert_eq!(open(&host, &again).0, sent);
    }
    for (host, fields) in [
        (&*format!("countersign.localhost:{port}"), navigates),
        ("[::1]", navigates),
        ("192.0.2.1", navigates),
        // Programs stay.
        ("127.0.0.1", ""),
        ("127.0.0.1", "Sec-Fetch-Mode: cors\r\n"),
    ] {
        let (there, _) = open(host, fields);
        assert!(there.starts_with(login), "{host} {fields}: {there}");
    }
    // A browser with a session stays.
    let operator = Operator::with(&proxy, WRITE);
    operator
        .send(Call::get("/tokens").header("Sec-Fetch-Mode", "navigate"))
        .has_status(200);
}

#[test]
fn the_console_cookie_needs_https_unless_the_host_is_loopback() {
    let (_api, proxy) = console("admin.hosts = ['console.test']");
    let form = format!("to=/&token={WRITE}");
    for (host, expected) in [
        ("console.test", ("__Host-countersign-console=", true)),
        ("127.0.0.2", ("countersign-console=", false)),
        (
            "countersign.localhost:8443",
            ("countersign-console=", false),
        ),
        ("[::1]:8443", ("countersign-console=", false)),
        ("192.0.2.1", ("__Host-countersign-console=", true)),
    ] {
        let mut connection = Connection::to(proxy.admin());
        let length = form.len();
        let head = format!(
            "POST /login HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n"
        );
        connection.send(format!("{head}{form}").as_bytes());
        let answer = connection.answer("POST");
        let cookie = answer.header("set-cookie").unwrap();
        let (name, is_secure) = expected;
        assert!(cookie.starts_with(name), "{host}: {cookie}");
        assert_eq!(cookie.contains("; Secure"), is_secure, "{host}: {cookie}");
    }
}

#[test]
fn no_other_site_or_port_can_send_a_form_of_the_console() {
    let (_api, proxy) = console("");
    let operator = Operator::with(&proxy, WRITE);
    let (consumer, _, form) = asked(&proxy, &operator);
    let (admin, body) = (proxy.admin(), crate::support::call::form(&form.fields));
    let own = format!("http://{admin}");
    for fields in [
        &[("Sec-Fetch-Site", "cross-site")][..],
        &[("Sec-Fetch-Site", "same-site")],
        &[
            ("Sec-Fetch-Site", "same-origin"),
            ("Origin", "https://evil.test"),
        ],
        &[("Origin", "null")],
        &[("Origin", "")],
        &[("Origin", "http://127.0.0.1:1")],
        &[("Origin", "http://localhost")],
        &[("Origin", &format!("{own}.evil.test"))],
        &[("Origin", &format!("{own}/"))],
        &[("Origin", &format!("ftp://{admin}"))],
        &[("Origin", &own), ("Origin", &own)],
        &[("Origin", &own), ("Sec-Fetch-Site", "cross-site")],
    ] {
        let call = Call::post("/consumer/disable").form(&body);
        let call = fields
            .iter()
            .fold(call, |call, (name, value)| call.header(name, value));
        let answer = operator.send(call);
        assert_eq!(answer.status, 403, "{fields:?}: {answer:?}");
        assert!(is_enabled(&proxy, &consumer), "{fields:?}");
    }
    operator
        .send(
            Call::post("/consumer/disable")
                .header("Origin", &own)
                .form(&body),
        )
        .has_status(303);
    assert!(!is_enabled(&proxy, &consumer));
}

#[test]
fn only_a_form_of_the_same_session_about_the_record_changes_it() {
    let (_api, proxy) = console("");
    let (operator, other) = (Operator::with(&proxy, WRITE), Operator::with(&proxy, WRITE));
    let (consumer, page, form) = asked(&proxy, &operator);
    let (second, _, of_second) = asked(&proxy, &operator);
    let value = |form: &Form| {
        form.fields
            .iter()
            .find(|(name, _)| name == "csrf")
            .unwrap()
            .1
            .clone()
    };
    let of_remove = operator
        .open(&format!("/consumer/remove?key={}", consumer.key))
        .form_with("confirmed");
    let of_other = other.open(&page.target).form_with("confirmed");
    let of_logout = page.form_to("/logout");
    let unsigned = form.clone().without("csrf");
    let mut forged = vec![unsigned];
    for wrong in [
        "",
        "x",
        &value(&of_second),
        &value(&of_remove),
        &value(&of_other),
        &value(&of_logout),
    ] {
        forged.push(form.clone().set("csrf", wrong));
    }
    for forged in forged {
        let answer = operator.send(operator.call_of(&page, &forged));
        assert_eq!(answer.status, 403, "{forged:?}: {answer:?}");
    }
    // A link cannot replace the form.
    let query = crate::support::call::form(&form.fields);
    operator
        .send(Call::get(&format!("/consumer/disable?{query}")))
        .has_status(200);
    assert!(is_enabled(&proxy, &consumer) && is_enabled(&proxy, &second));
    // Without a session, and in an ended session.
    Operator::at(&proxy)
        .send(operator.call_of(&page, &form))
        .has_status(403);
    operator
        .send(operator.call_of(&page, &of_logout))
        .has_status(303);
    operator
        .send(operator.call_of(&page, &form))
        .has_status(403);
    assert!(is_enabled(&proxy, &consumer));
}

#[test]
fn read_token_session_and_foreign_cookie_change_nothing() {
    let (_api, proxy) = console("");
    let (writer, mut reader) = (Operator::with(&proxy, WRITE), Operator::with(&proxy, READ));
    let (consumer, page, form) = asked(&proxy, &writer);
    reader.send(reader.call_of(&page, &form)).has_status(403);
    let (mine, own) = (
        reader.cookie.clone().unwrap(),
        writer.cookie.clone().unwrap(),
    );
    for cookie in [
        "countersign-console=".to_owned(),
        format!("countersign-console={}", "a".repeat(43)),
        format!("{own}x"),
        format!("{own}; {own}"),
        format!("{own}; {mine}"),
        own.replace("countersign-console", "countersign"),
        own.replace("countersign-console", "__Host-countersign-console"),
    ] {
        reader.cookie = Some(cookie.clone());
        let answer = reader.send(reader.call_of(&page, &form));
        assert_eq!(answer.status, 403, "{cookie}: {answer:?}");
        assert_eq!(reader.open("/").answer.status, 303, "{cookie}");
    }
    assert!(is_enabled(&proxy, &consumer));
}

/// Whether a page contains markup that was sent in.
#[track_caller]
fn is_harmless(answer: &Answer, sent: &str) {
    let text = answer.text();
    assert!(!text.contains(sent), "{sent} in {text}");
    for part in ["<script", "<img", "onerror=\"", "javascript:"] {
        assert!(!text.contains(part), "{part} in {text}");
    }
}

#[test]
fn markup_in_foreign_text_is_escaped_in_the_console() {
    const MARKUP: &str = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>";
    let (_api, proxy) = console("signature.enforcement = 'observe'");
    let added = [
        "consumer",
        "add",
        "--json",
        "--name",
        MARKUP,
        "--description",
        MARKUP,
        "--callback",
        "app:/x'(alert(1))",
    ];
    let consumer = proxy.command(&added).done().json();
    let key = consumer["key"].as_str().unwrap();
    let user = proxy
        .command_with(
            &["user", "add", MARKUP, "--json", "--password-stdin"],
            "a long pass phrase\n",
        )
        .done()
        .json();
    let user = user["id"].as_str().unwrap();
    let issue = ["token", "issue", "--consumer", key, "--user", user];
    proxy.command(&issue).done();
    let escaped = "%22%27%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%3Cscript%3E";
    for target in [
        format!("/{escaped}?{escaped}"),
        format!(
            "/x?oauth_consumer_key={escaped}&oauth_token={escaped}&oauth_signature_method=HMAC-SHA1&oauth_signature=x&oauth_timestamp=1&oauth_nonce={escaped}"
        ),
    ] {
        proxy.send(
            Call::get(&target)
                .header("X-Request-Id", "<script>")
                .header("User-Agent", MARKUP),
        );
    }
    proxy.send(Call::new("X'!|~", "/x"));
    let operator = Operator::with(&proxy, WRITE);
    for page in [
        "/",
        "/consumers",
        &format!("/consumer?key={key}"),
        &format!("/consumer/edit?key={key}"),
        &format!("/consumer/remove?key={key}"),
        "/users",
        &format!("/user?id={user}"),
        &format!("/user/disable?id={user}"),
        "/tokens",
        "/rejections",
        &format!(
            "/rejections?request_id={escaped}&consumer={escaped}&reason={escaped}&kind={escaped}"
        ),
        &format!("/consumers?q={escaped}&enabled={escaped}&cursor={escaped}"),
        &format!("/tokens?consumer={escaped}"),
        &format!("/tokens?unused_for={escaped}"),
        &format!("/tokens?revoked={escaped}"),
        &format!("/operations?path={escaped}&method={escaped}"),
        &format!("/configuration?q={escaped}"),
        &format!("/{escaped}"),
        &format!("/?span={escaped}"),
        &format!("/user?id={escaped}"),
    ] {
        is_harmless(&operator.open(page).answer, MARKUP);
    }
    let page = operator.open("/signature");
    let mut form = page.form_to("/signature");
    form.fields.push(("request".to_owned(), format!("GET /?a={escaped} HTTP/1.1\r\nHost: a.test\r\nAuthorization: OAuth oauth_consumer_key=\"{key}\",oauth_signature_method=\"HMAC-SHA1\",oauth_signature=\"{MARKUP}\",oauth_nonce=\"a\",oauth_timestamp=\"1\"\r\n\r\n")));
    is_harmless(&operator.submit(&page, &form).answer, MARKUP);
    // A path to return to after the login leads nowhere else.
    for to in [
        "//evil.test",
        "/\\evil.test",
        "https://evil.test/",
        "javascript:alert(1)",
        "x",
    ] {
        let page =
            Operator::at(&proxy).open(&format!("/login?to={}", crate::support::signer::encode(to)));
        let form = page.form_with("token");
        assert!(
            form.fields.contains(&("to".to_owned(), "/".to_owned())),
            "{to}: {form:?}"
        );
        let mut form = form.set("token", WRITE).set("to", to);
        form.action = "/login".to_owned();
        let visitor = Operator::at(&proxy);
        let answer = visitor.send(visitor.call_of(&page, &form));
        assert_eq!(answer.header("location"), Some("/login?opened=1"), "{to}");
    }
}

#[test]
fn the_console_finds_nothing_by_an_invented_request_id() {
    let (_api, proxy) = console("");
    proxy
        .send(Call::get("/x").header("X-Request-Id", "chosen-by-the-caller"))
        .has_status(401);
    let operator = Operator::with(&proxy, READ);
    let found = operator.text("/rejections?request_id=chosen-by-the-caller");
    assert!(found.contains("Nothing was rejected."), "{found}");
}

#[test]
fn forms_of_the_console_are_bounded_and_parsed_strictly() {
    let (_api, proxy) = console("");
    let operator = Operator::with(&proxy, WRITE);
    let post = |body: &str| operator.send(Call::post("/consumer/add").form(body)).status;
    assert_eq!(post(&format!("name={}", "a".repeat(70_000))), 413);
    assert_eq!(
        post(
            &(0..300)
                .map(|number| format!("f{number}=x&"))
                .collect::<String>()
        ),
        400
    );
    assert_eq!(post("name=a&name=b"), 400);
    assert_eq!(post("name=%ff"), 400);
    let page = operator.send(Call::post("/consumer/add").json("{\"name\": \"a\"}"));
    page.has_status(400);
    operator.open("/consumers?q=a&q=b").answer.has_status(400);
    operator.open("/consumers?q=%ff").answer.has_status(400);
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "X"] {
        for (page, allow) in [
            ("/consumers", "GET, HEAD"),
            ("/consumer/edit", "GET, HEAD, POST"),
            ("/logout", "POST"),
        ] {
            let answer = operator.send(Call::new(method, page));
            answer.has_status(405);
            assert_eq!(answer.header("allow"), Some(allow), "{method} {page}");
        }
    }
    for target in [
        "/",
        "/consumers",
        "/consumer",
        "/rejections",
        "/configuration",
        "/login",
    ] {
        let answer = operator.send(Call::post(target).form("a=b"));
        assert!([303, 405].contains(&answer.status), "{target}: {answer:?}");
    }
    operator
        .send(Call::new("HEAD", "/consumers"))
        .has_status(200);
}

#[test]
fn right_admin_token_works_while_wrong_ones_are_locked_out() {
    let (_api, proxy) = console("");
    let mut operator = Operator::at(&proxy);
    for number in 0..30 {
        operator.log_in(&format!("guess-{number}")).has_status(403);
    }
    let answer = operator.log_in("guess");
    answer.has_status(429);
    assert!(answer.header("retry-after").is_some());
    operator.log_in(WRITE).has_status(303);
    // It is no longer counted against those before it.
    Operator::at(&proxy).log_in("guess").has_status(429);
}

#[test]
fn the_api_never_gets_the_consoles_cookie_and_cannot_set_it() {
    let api = Upstream::replying(|_| {
        Reply::ok("x").header("Set-Cookie", "countersign-console=planted; Path=/")
    });
    let proxy = Proxy::in_front_of(&api)
        .config("operations.unlisted = 'anonymous'")
        .with_console()
        .start();
    let operator = Operator::with(&proxy, WRITE);
    let cookie = operator.cookie.clone().unwrap();
    let answer = proxy.send(Call::get("/x").header("Cookie", &format!("a=b; {cookie}")));
    answer.has_status(200);
    assert_eq!(answer.header("set-cookie"), None);
    let sent = api.requests().pop().unwrap();
    assert_eq!(sent.fields.get("cookie"), Some("a=b"));
}

#[test]
fn without_a_token_file_there_is_no_console() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    for target in ["/", "/login", "/consumers"] {
        Operator::at(&proxy).open(target).answer.has_status(404);
    }
}
