//! Logins that another system checks.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, mpsc::channel},
    thread,
};

use crate::support::{
    Answer, Call, PATIENCE, Proxy, Reply, Upstream, User, Visitor,
    call::form,
    legs::LOGIN,
    proxy::Builder,
    until,
    upstream::{Seen, refusing_address},
};

/// The accounts of another system: name and password to the response.
fn system(accounts: &[(&str, &str, &str)]) -> Upstream {
    let accounts: BTreeMap<_, _> = accounts
        .iter()
        .map(|(name, password, body)| {
            (
                format!("username={name}&password={password}"),
                (*body).to_owned(),
            )
        })
        .collect();
    Upstream::replying(move |seen| match accounts.get(&seen.text()) {
        Some(body) => Reply::ok(body).header("Content-Type", "application/json"),
        None => Reply::status("401 Unauthorized").body(r#"{"id":"ada"}"#),
    })
}

/// A proxy that asks this system.
fn asking(api: &Upstream, system: &Upstream) -> Builder {
    Proxy::in_front_of(api).config(&format!(
        "operation = [{{ path = '/account', access = ['user'] }}]\n[login]\nbackend = 'http'\nurl = '{}/check/'",
        system.url()
    ))
}

fn log_in<'a>(proxy: &'a Proxy, name: &str, password: &str) -> (Visitor<'a>, Answer) {
    let mut visitor = Visitor::to(proxy);
    let page = visitor.open(LOGIN);
    let user = User::new(name, password);
    let answer = visitor.log_in(&page, &user).answer;
    (visitor, answer)
}

/// The endpoint does not respond to the logins of one address, which take a quarter of the places.
#[test]
fn one_address_does_not_take_all_places_of_outside_logins() {
    let api = Upstream::start();
    let system = Upstream::replying(|seen| match seen.text().contains("=hang") {
        true => Reply::silence(),
        false => Reply::ok(r#"{"id":"ada"}"#),
    });
    let proxy = asking(&api, &system)
        .config("listen.trusted_proxies = ['127.0.0.1']\nlogin.max_failures = '1000 per 15m'")
        .start();
    let mut visitor = Visitor::to(&proxy);
    let page = visitor.open(LOGIN);
    let cookie = visitor.cookies.iter().next().unwrap();
    let cookie = format!("{}={}", cookie.0, cookie.1);
    let log_in = |address: &str, password: &str| {
        let filled = page
            .form_with("password")
            .set("username", "ada")
            .set("password", password);
        let call = Call::post(LOGIN)
            .header("Origin", &proxy.origin())
            .header("Cookie", &cookie)
            .header("X-Forwarded-For", address);
        let mut connection = proxy.connect();
        connection.send(&proxy.wire(&call.form(&form(&filled.fields))));
        connection
    };
    let (answered, answers) = channel();
    for _ in 0..64 {
        let (mut connection, answered) = (log_in("203.0.113.1", "hang"), answered.clone());
        // Those that still hang at the end get no response.
        thread::spawn(move || {
            let answer = connection.try_answer("POST").ok().flatten()?;
            answered.send(answer.status).ok()
        });
    }
    system.wait_for(16);
    log_in("203.0.113.2", "enchantress")
        .answer("POST")
        .has_status(303);
    for _ in 16..64 {
        assert_eq!(answers.recv_timeout(PATIENCE), Ok(503));
    }
    assert_eq!(system.count(), 16 + 1, "a quarter of 64 places");
}

fn account(visitor: &mut Visitor<'_>) -> Answer {
    visitor.send(Call::get("/account").header("Sec-Fetch-Site", "same-origin"))
}

#[test]
fn a_login_gets_the_user_of_the_outside_system() {
    let api = Upstream::start();
    let system = system(&[
        (
            "ada",
            "enchantress",
            r#"{"id":4711,"name":"ada","display_name":"Ada Lovelace"}"#,
        ),
        ("%C3%A9%26", "a%2Bb+%25", r#"{"id":"e","name":"é&"}"#),
    ]);
    let proxy = asking(&api, &system).start();
    let (mut visitor, answer) = log_in(&proxy, "ada", "enchantress");
    assert!(answer.text().contains("Ada Lovelace (ada)"), "{answer:?}");
    account(&mut visitor).has_status(200);
    assert_eq!(api.only_request().header("x-auth-user"), Some("4711"));
    let asked = system.only_request();
    assert_eq!(
        (asked.method.as_str(), asked.target.as_str()),
        ("POST", "/check/")
    );
    assert_eq!(
        asked.header("content-type"),
        Some("application/x-www-form-urlencoded")
    );
    // Characters that a form would decode are escaped.
    let (mut visitor, _) = log_in(&proxy, "é&", "a+b %");
    account(&mut visitor).has_status(200);
    // The store knows them: they can be disabled, and are then logged out and kept out.
    proxy.run("user disable ada");
    let (mut visitor, answer) = log_in(&proxy, "ada", "enchantress");
    assert_eq!(answer.status, 403);
    account(&mut visitor).has_status(401);
    // Removed for good.
    proxy.run("user remove ada");
    let (_, answer) = log_in(&proxy, "ada", "enchantress");
    assert_eq!(answer.status, 403);
    assert!(!proxy.log().lines().join("\n").contains("enchantress"));
}

#[test]
fn an_outside_login_by_json_has_the_configured_names() {
    let api = Upstream::start();
    let seen: Arc<Mutex<Option<Seen>>> = Arc::default();
    let keep = Arc::clone(&seen);
    let system = Upstream::replying(move |request| {
        *keep.lock().unwrap() = Some(request.clone());
        Reply::ok(r#"{"ok":true,"user":{"uid":"u-1","login":"ada"}}"#)
    });
    let proxy = asking(&api, &system)
        .config(
            "[login]\nrequest = 'json'\nusername_field = 'login'\npassword_field = 'pass'\n\
             id_field = 'user.uid'\nname_field = 'user.login'\nsuccess_field = 'ok'",
        )
        .start();
    let (mut visitor, _) = log_in(&proxy, "a\"b", "p\\w");
    account(&mut visitor).has_status(200);
    let seen = seen.lock().unwrap().take().unwrap();
    assert_eq!(seen.header("content-type"), Some("application/json"));
    let sent: serde_json::Value = serde_json::from_str(&seen.text()).unwrap();
    assert_eq!(sent, serde_json::json!({ "login": "a\"b", "pass": "p\\w" }));
}

#[test]
fn a_password_that_the_outside_system_rejects_is_counted() {
    let api = Upstream::start();
    let system = system(&[("ada", "enchantress", r#"{"id":"ada"}"#)]);
    let proxy = asking(&api, &system)
        .config("login.max_failures = '3 per 15m'")
        .start();
    for _ in 0..3 {
        let (mut visitor, answer) = log_in(&proxy, "ada", "wrong");
        assert_eq!(answer.status, 403, "{answer:?}");
        account(&mut visitor).has_status(401);
    }
    let (_, answer) = log_in(&proxy, "ada", "enchantress");
    assert_eq!(answer.status, 429);
    assert_eq!(system.requests().len(), 3);
}

#[test]
fn any_other_response_of_the_outside_system_is_a_page_with_503() {
    let right = r#"{"id":"ada"}"#;
    let big = format!(r#"{{"id":"ada","filler":"{}"}}"#, "x".repeat(8 << 20));
    for (what, reply) in [
        (
            "a redirect",
            Reply::status("302 Found")
                .header("Location", "/home")
                .body(right),
        ),
        ("an error", Reply::status("500 Oops").body(right)),
        (
            "its own throttle",
            Reply::status("429 Slow down").body(right),
        ),
        ("a page", Reply::ok("<h1>Welcome</h1>")),
        ("megabytes", Reply::ok(&big)),
        ("megabytes without end", Reply::ok("").until_close(&big)),
        (
            "a cut body",
            Reply::raw(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{right}"
            ))
            .closing(),
        ),
        (
            "an odd id",
            Reply::ok(r#"{"id":"ada\r\nX-Auth-Kind: user"}"#),
        ),
        ("no HTTP", Reply::raw("SSH-2.0-x\r\n").closing()),
        ("nothing", Reply::hang_up()),
        ("silence", Reply::silence()),
    ] {
        let api = Upstream::start();
        let system = Upstream::replying(move |_| reply.clone());
        let proxy = asking(&api, &system)
            .config("login.timeout = '1s'\nlogin.max_failures = '2 per 15m'")
            .start();
        for _ in 0..2 {
            let (mut visitor, answer) = log_in(&proxy, "ada", "enchantress");
            assert_eq!(answer.status, 503, "{what}: {answer:?}");
            assert!(answer.header("retry-after").is_some(), "{what}");
            account(&mut visitor).has_status(401);
        }
        // The system may have checked the password: requests to it must be limited.
        assert_eq!(log_in(&proxy, "ada", "enchantress").1.status, 429, "{what}");
        assert_eq!(system.requests().len(), 2, "{what}");
    }
}

#[test]
fn outside_system_that_is_down_counts_no_failed_login() {
    let api = Upstream::start();
    let url = format!("http://{}/check", refusing_address());
    let proxy = asking(&api, &Upstream::start())
        .config(&format!(
            "[login]\nmax_failures = '1 per 15m'\nurl = '{url}'"
        ))
        .start();
    for _ in 0..3 {
        assert_eq!(log_in(&proxy, "ada", "enchantress").1.status, 503);
    }
}

#[test]
fn outside_user_takes_over_no_name_or_record_of_another() {
    let api = Upstream::start();
    let system = system(&[
        ("ada", "enchantress", r#"{"id":"1","name":"ada"}"#),
        ("eve", "apple", r#"{"id":"2","name":"ADA"}"#),
    ]);
    let proxy = asking(&api, &system).start();
    let (mut ada, _) = log_in(&proxy, "ada", "enchantress");
    // She is admitted under her id, as often as she comes.
    for _ in 0..2 {
        let (mut eve, _) = log_in(&proxy, "eve", "apple");
        account(&mut eve).has_status(200);
        assert_eq!(api.last_request().header("x-auth-user"), Some("2"));
    }
    until("each admission is logged", || {
        proxy.logged(&[" WARN ", "the name of another user", "user=2"]) == 2
    });
    account(&mut ada).has_status(200);
    assert_eq!(api.last_request().header("x-auth-user"), Some("1"));
    let shown = proxy.run("user show 2 --json").stdout;
    assert!(shown.contains(r#""name":"2""#), "{shown}");
}

#[test]
fn an_outside_login_is_asked_over_a_unix_socket() {
    let api = Upstream::start();
    let system = Upstream::replying_on_unix_socket(|seen| match &*seen.target {
        "/check/" => Reply::ok(r#"{"id":"4711","display_name":"Ada Lovelace"}"#),
        _ => Reply::status("404 Not Found"),
    });
    let url = format!("{}:/check/", system.url());
    let proxy = Proxy::with(
        &api,
        &format!("login.backend = 'http'\nlogin.url = '{url}'"),
    );
    let (_, answer) = log_in(&proxy, "ada", "enchantress");
    assert!(answer.has_status(200).text().contains("Ada Lovelace"));
    assert!(
        proxy
            .run("check")
            .stdout
            .contains(&format!("{url} takes connections"))
    );
}
