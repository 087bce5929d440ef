//! Developers ask for consumers on a page, and manage them there.
//!
//! Promise (Flow and pages): A consumer that waits works, and a sensitive permission is granted, only after an operator's
//! approval. Also in `tests/store_contract/registrations.rs`, `tests/store_contract/consumers.rs`.
//! Promise (Flow and pages): With `registration.own_token` the owner of an enabled consumer makes one access token, for their
//! own account.

use serde_json::Value;

use crate::support::{
    Answer, Call, Consumer, Operator, Postgres, Proxy, Token, Upstream, User, Visitor,
    call::form as encoded,
    has,
    legs::{APPLICATIONS, asks, authorization, exchanges, query_value, token_of},
    operator::WRITE,
    program::Ended,
    proxy::race,
    until,
    visitor::{Form, Page},
};

const REGISTER: &str = "/service.oauth?mode=register";

const PERMISSIONS: &str = "
[[permission]]
name = 'photos.read'
title = 'See your photos'

[[permission]]
name = 'photos.print'
title = 'Print your photos'
sensitive = true

[[operation]]
path = '/photos'
access = ['consumer', 'application']
permission = 'photos.read'
";

fn start(api: &Upstream, settings: &str) -> Proxy {
    let config = format!("registration.{settings}\n{PERMISSIONS}");
    Proxy::in_front_of(api)
        .with_console()
        .config(&config)
        .start()
}

/// The form of a new consumer, filled in so far that it is accepted.
fn filled(page: &Page, name: &str) -> Form {
    let form = page.form_with("description").set("name", name);
    let form = form
        .set("description", "Prints photos")
        .set("contact", "dev@shop.example");
    with(
        form,
        &[("permission photos.read", "1"), ("act", "register")],
    )
}

fn with(mut form: Form, fields: &[(&str, &str)]) -> Form {
    let fields = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    form.fields.extend(fields);
    form
}

/// The key and the secret that a page shows.
fn issued(page: &Page) -> Consumer {
    page.answer.has_status(200);
    assert!(
        page.answer
            .header("cache-control")
            .unwrap()
            .contains("no-store")
    );
    let text = page.answer.text();
    let parts = Vec::from_iter(text.split("<pre").skip(1).map(|part| {
        let part = part.split_once('>').unwrap().1;
        part.split('<').next().unwrap().to_owned()
    }));
    Consumer::new(&parts[0], &parts[1])
}

fn ask(visitor: &mut Visitor<'_>, name: &str) -> Consumer {
    let page = visitor.open(REGISTER);
    issued(&visitor.submit(&page, &filled(&page, name)))
}

fn own(visitor: &mut Visitor<'_>, key: &str) -> Page {
    visitor.open(&format!("{REGISTER}&of={key}"))
}

/// Presses a button of the page of one consumer.
fn press(visitor: &mut Visitor<'_>, key: &str, act: &str, fields: &[(&str, &str)]) -> Page {
    let page = own(visitor, key);
    let form = with(button(&page, act), fields);
    visitor.submit(&page, &form)
}

/// The form of a page with this button, pressed.
fn button(page: &Page, act: &str) -> Form {
    let mut forms = page.forms().into_iter();
    let button = ("act".to_owned(), act.to_owned());
    let form = forms.find(|form| form.buttons.contains(&button)).unwrap();
    form.press("act", act)
}

/// What a command says that fails.
fn failed(ended: Ended) -> String {
    assert!(!ended.status.success(), "{ended:?}");
    ended.stderr
}

fn call(consumer: &Consumer) -> Call {
    Call::get("/photos").by(consumer)
}

fn shown(proxy: &Proxy, key: &str) -> Value {
    proxy
        .command(&["consumer", "show", key, "--json"])
        .done()
        .json()
}

fn audited(proxy: &Proxy, key: &str) -> Vec<(String, String)> {
    let page = proxy_api(proxy, "GET", &format!("/v1/audit?consumer={key}"), "");
    let items: Value = serde_json::from_str(&page.text()).unwrap();
    let items = items["items"].as_array().unwrap().iter().rev();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    items
        .map(|one| (text(&one["event"]), text(&one["by"])))
        .collect()
}

fn proxy_api(proxy: &Proxy, method: &str, target: &str, body: &str) -> Answer {
    send_to_api(proxy, Call::new(method, target), body)
}

fn send_to_api(proxy: &Proxy, call: Call, body: &str) -> Answer {
    let call = call.bearer(WRITE);
    let call = if body.is_empty() {
        call
    } else {
        call.json(body)
    };
    Operator::at(proxy).send(call)
}

#[test]
fn closed_there_is_no_page_and_its_alias_is_a_path_of_the_api() {
    let api = Upstream::start();
    let proxy = Proxy::with(
        &api,
        "operation = [{ path = '/oauth/register', access = ['anonymous'] }]",
    );
    proxy.send(Call::get(REGISTER)).has_status(400);
    proxy.send(Call::get("/oauth/register")).has_status(200);
    assert_eq!(api.count(), 1);
    let user = proxy.user("dora");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    assert!(
        !visitor
            .open(APPLICATIONS)
            .answer
            .text()
            .contains("mode=register")
    );
}

#[test]
fn with_approval_a_key_works_once_an_operator_has_approved_it() {
    let api = Upstream::start();
    let proxy = start(&api, "mode = 'approval'");
    let user = proxy.user("dora");
    // Whoever is not logged in gets the login, which leads back.
    let mut visitor = Visitor::to(&proxy);
    let login = visitor.open("/oauth/register");
    let page = visitor.log_in(&login, &user);
    assert!(page.target.ends_with("mode=register"), "{}", page.target);
    let consumer = issued(&visitor.submit(&page, &filled(&page, "Photo printer")));
    has(
        &visitor.open(REGISTER).answer.text(),
        &["Photo printer", "Waits for approval"],
    );
    // It waits: refused as a disabled consumer is, to the byte.
    let refused = || {
        [call(&consumer), asks(&consumer, "oob")].map(|call| {
            let answer = proxy.send(call);
            answer.is(401, "consumer_key_refused");
            (
                answer.header("www-authenticate").map(str::to_owned),
                answer.text(),
            )
        })
    };
    let waiting = refused();
    let forged = call(&consumer).signs_method("PUT");
    proxy.send(forged).is(401, "signature_invalid");
    for command in ["consumer enable", "consumer update --rsa-only"] {
        let (command, option) = command
            .split_once(" --")
            .map_or((command, None), |(a, b)| (a, Some(b)));
        let mut words = Vec::from_iter(command.split(' '));
        words.push(&consumer.key);
        let option = option.map(|option| format!("--{option}"));
        words.extend(option.as_deref());
        failed(proxy.command(&words));
    }
    let patched = proxy_api(
        &proxy,
        "PATCH",
        &format!("/v1/consumers/{}", consumer.key),
        r#"{"enabled":true}"#,
    );
    patched.has_status(409);
    let line = format!(
        "{{\"kind\":\"export\",\"version\":1}}\n{{\"kind\":\"consumer\",\"key\":\"{}\",\"name\":\"Photo printer\",\"secret\":\"s\",\"enabled\":true}}\n",
        consumer.key
    );
    for option in ["--update", "--replace"] {
        let imported = failed(proxy.command_with(&["import", "-", option], &line));
        has(&imported, &["no operator has approved it"]);
    }
    assert_eq!(refused(), waiting);
    api.saw_nothing();
    // Each front lists it, and the metric and the console say so.
    let list: Value =
        serde_json::from_str(&proxy_api(&proxy, "GET", "/v1/registrations", "").text()).unwrap();
    assert_eq!(list["items"][0]["key"], Value::from(&*consumer.key));
    assert_eq!(list["items"][0]["registration"], "waiting");
    let list = ["consumer", "list", "--waiting"];
    let listed = proxy.command(&list).done().stdout;
    let wanted = ["dev@shop.example", &*consumer.key, "photos.read"];
    has(&listed, &wanted);
    until("it is counted", || {
        proxy.metric("countersign_registrations_waiting") > 0.0
    });
    let operator = Operator::with(&proxy, WRITE);
    has(
        &operator.text("/"),
        &["Photo printer", "waits for approval", "dev@shop.example"],
    );
    let page = operator.open(&format!("/consumer/approve?key={}", consumer.key));
    let effects = ["Its callbacks: none", "Its permissions: photos.read"];
    has(&page.answer.text(), &effects);
    operator.confirm(&page).answer.has_status(200);
    proxy.passes(call(&consumer));
    has(&own(&mut visitor, &consumer.key).answer.text(), &["Works"]);
    assert_eq!(shown(&proxy, &consumer.key)["contact"], "dev@shop.example");
    let events = audited(&proxy, &consumer.key);
    let expected = [("consumer_asked", "page"), ("consumer_approved", "console")];
    let expected = expected.map(|(event, by)| (event.to_owned(), by.to_owned()));
    assert_eq!(events, expected);
    // A disabled one is refused in the same way.
    proxy.run(&format!("consumer disable {}", consumer.key));
    until("it is disabled", || proxy.status(call(&consumer)) == 401);
    assert_eq!(refused(), waiting);
}

#[test]
fn a_declined_one_has_the_sentence_of_the_operator() {
    let api = Upstream::start();
    let proxy = start(&api, "mode = 'approval'");
    let user = proxy.user("dora");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let consumer = ask(&mut visitor, "Photo printer");
    let decline = format!("/v1/consumers/{}/decline", consumer.key);
    proxy_api(&proxy, "POST", &decline, r#"{"reason":""}"#).has_status(422);
    proxy_api(&proxy, "POST", &decline, r#"{"reason":"Which <data>?"}"#).has_status(200);
    proxy_api(&proxy, "POST", &decline, r#"{"reason":"again"}"#).has_status(409);
    let page = own(&mut visitor, &consumer.key).answer.text();
    has(&page, &["Declined", "Which &#60;data&#62;?"]);
    proxy.send(call(&consumer)).is(401, "consumer_key_refused");
    // Approved all the same later.
    let approved = proxy
        .command(&["consumer", "approve", &consumer.key])
        .done();
    let told = "Callbacks: none. Permissions: photos.read.\n";
    has(&approved.stdout, &["Approved Photo printer", told]);
    until("it is approved", || proxy.status(call(&consumer)) == 200);
    let line = failed(proxy.command(&["consumer", "approve", &consumer.key]));
    has(&line, &["waits for no decision"]);
    let other = proxy.consumer("Other");
    let line = failed(proxy.command(&["consumer", "decline", &other.key, "--reason", "x"]));
    has(&line, &["waits for no decision"]);
}

#[test]
fn open_a_key_works_at_once_but_not_with_a_sensitive_permission() {
    let api = Upstream::start();
    let proxy = start(&api, "mode = 'open'");
    let user = proxy.user("dora");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let consumer = ask(&mut visitor, "Photo viewer");
    proxy.passes(call(&consumer));
    let record = shown(&proxy, &consumer.key);
    assert_eq!(record["registration"], "unchecked");
    assert_eq!(record["permissions"], serde_json::json!(["photos.read"]));
    let page = visitor.open(REGISTER);
    let form = with(
        filled(&page, "Photo printer"),
        &[("permission photos.print", "1"), ("permission admin", "1")],
    );
    let sensitive = issued(&visitor.submit(&page, &form));
    proxy.send(call(&sensitive)).is(401, "consumer_key_refused");
    let record = shown(&proxy, &sensitive.key);
    assert_eq!(record["registration"], "waiting");
    assert_eq!(
        record["permissions"],
        serde_json::json!(["photos.read", "photos.print"])
    );
}

#[test]
fn a_form_registers_once_and_is_valid_for_its_session_and_act() {
    let api = Upstream::start();
    let proxy = start(&api, "mode = 'open'");
    let [dora, eve] = ["dora", "eve"].map(|name| proxy.user(name));
    let mut visitor = Visitor::logged_in(&proxy, &dora);
    let page = visitor.open(REGISTER);
    let form = filled(&page, "Photo printer");
    let consumer = issued(&visitor.submit(&page, &form));
    // Loaded again: the list, without a secret and without a second consumer.
    let again = visitor.submit(&page, &form);
    again.answer.has_status(200);
    assert!(!again.answer.text().contains(&consumer.secret));
    let listed = proxy.command(&["consumer", "list", "--json"]).done().stdout;
    assert_eq!(listed.lines().count(), 1);
    // A key of the user's choice, a form of another user, and one from another site.
    let page = visitor.open(REGISTER);
    let chosen = filled(&page, "Another").set("key", "chosen");
    visitor.submit(&page, &chosen).answer.has_status(403);
    let mut other = Visitor::logged_in(&proxy, &eve);
    other
        .submit(&page, &filled(&page, "Another"))
        .answer
        .has_status(403);
    let call = Call::post(REGISTER).header("Origin", "https://evil.example");
    let call = call.form(&encoded(&filled(&page, "Another").fields));
    visitor.send(call).has_status(403);
    for act in ["rotate", "callbacks", "rejections", "end"] {
        let form = with(filled(&page, "Another").without("act"), &[("act", act)]);
        let form = form.set("key", &consumer.key);
        let status = visitor.submit(&page, &form).answer.status;
        assert_eq!(status, 403, "{act}");
    }
    // What is another's is not there.
    for parameter in ["of", "end"] {
        let page = other.open(&format!("{REGISTER}&{parameter}={}", consumer.key));
        page.answer.has_status(404);
    }
    let page = visitor.open(REGISTER);
    assert_eq!(page.answer.header("x-frame-options"), Some("DENY"));
    has(
        page.answer.header("content-security-policy").unwrap(),
        &["frame-ancestors 'none'"],
    );
    assert!(!page.answer.text().contains("<script"));
}

#[test]
fn wrong_fields_are_told_and_kept() {
    let api = Upstream::start();
    let proxy = start(&api, "mode = 'approval'");
    let user = proxy.user("dora");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    proxy.consumer("Corner Shop");
    for (field, value, problem) in [
        ("name", "corner SHOP", "Another application has this name"),
        ("name", "P\u{430}yPal", "scripts that look alike"),
        ("name", "a\u{202e}b", "invisible character"),
        ("name", "", "it is empty"),
        ("description", &"d".repeat(256), "longer than 255"),
        ("contact", "nobody", "neither a mail address"),
        ("website", "javascript:alert(1)", "neither https"),
        ("callbacks", "http://a.test/", "unprotected"),
        ("callbacks", "https://a.test/*", "register each address"),
        ("callbacks", "javascript:x", "scheme is forbidden"),
    ] {
        let page = visitor.open(REGISTER);
        let form = match field {
            "callbacks" => with(filled(&page, "Fine"), &[(field, value)]),
            _ => filled(&page, "Fine").set(field, value),
        };
        let page = visitor.submit(&page, &form);
        page.answer.has_status(400);
        has(
            &page.answer.text(),
            &[problem, "aria-invalid=\"true\"", "Prints photos"][..2],
        );
        if field != "description" {
            has(&page.answer.text(), &["Prints photos"]);
        }
    }
    let listed = proxy.command(&["consumer", "list", "--json"]).done().stdout;
    assert_eq!(listed.lines().count(), 1);
}

#[test]
fn a_user_and_all_users_have_bounds() {
    let api = Upstream::start();
    let proxy = start(
        &api,
        "mode = 'open'\nregistration.per_user = 2\nregistration.per_day = 3",
    );
    let [dora, eve, fred] = ["dora", "eve", "fred"].map(|name| proxy.user(name));
    let mut visitor = Visitor::logged_in(&proxy, &dora);
    let first = ask(&mut visitor, "One");
    ask(&mut visitor, "Two");
    // The form is gone, and one that was open does nothing.
    let page = visitor.open(REGISTER);
    assert!(
        page.forms()
            .iter()
            .all(|form| form.fields.iter().all(|(name, _)| name != "description"))
    );
    // Ending one does not help within the day.
    let ended = visitor.open(&format!("{REGISTER}&end={}", first.key));
    let ended = visitor.submit(&ended, &ended.form_with("act").press("act", "end"));
    let refused = visitor.submit(&ended, &filled(&ended, "Three"));
    refused.answer.has_status(400);
    has(&refused.answer.text(), &["too many keys"]);
    proxy.send(call(&first)).is(401, "consumer_key_unknown");
    let mut visitor = Visitor::logged_in(&proxy, &eve);
    ask(&mut visitor, "Three");
    let mut visitor = Visitor::logged_in(&proxy, &fred);
    let page = visitor.open(REGISTER);
    let refused = visitor.submit(&page, &filled(&page, "Four"));
    has(&refused.answer.text(), &["too many keys"]);
}

fn pair(proxy: &Proxy, name: &str) -> (User, Consumer) {
    let user = proxy.user(name);
    let consumer = ask(&mut Visitor::logged_in(proxy, &user), "Photo printer");
    (user, consumer)
}

#[test]
fn an_owner_makes_a_new_secret_once() {
    let api = Upstream::start();
    let proxy = start(&api, "mode = 'open'");
    let (user, before) = pair(&proxy, "dora");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let page = own(&mut visitor, &before.key);
    let form = button(&page, "rotate");
    let after = issued(&visitor.submit(&page, &form));
    assert_eq!(after.key, before.key);
    proxy.passes(call(&after));
    proxy.send(call(&before)).is(401, "signature_invalid");
    // The same form again replaces nothing.
    visitor.submit(&page, &form).answer.has_status(403);
    proxy.passes(call(&after));
    let graced = issued(&press(
        &mut visitor,
        &before.key,
        "rotate",
        &[("grace", "1")],
    ));
    proxy.passes(call(&graced));
    proxy.passes(call(&after));
}

#[test]
fn callbacks_change_at_once_or_are_asked_for() {
    let api = Upstream::start();
    for (mode, is_open) in [("open", true), ("approval", false)] {
        let proxy = start(&api, &format!("mode = '{mode}'"));
        let (user, consumer) = pair(&proxy, "dora");
        if !is_open {
            proxy
                .command(&["consumer", "approve", &consumer.key])
                .done();
        }
        let mut visitor = Visitor::logged_in(&proxy, &user);
        let asked = "https://a.test/back\noob";
        let page = press(
            &mut visitor,
            &consumer.key,
            "callbacks",
            &[("callbacks", asked)],
        );
        page.answer.has_status(200);
        let callbacks = serde_json::json!(["https://a.test/back", "oob"]);
        let record = shown(&proxy, &consumer.key);
        let both = [&record["callbacks"], &record["asked_callbacks"]];
        let empty = serde_json::json!([]);
        match is_open {
            true => assert_eq!(both, [&callbacks, &empty]),
            false => assert_eq!(both, [&empty, &callbacks]),
        }
        assert_eq!(page.answer.text().contains("wait for approval"), !is_open);
        let status = proxy.send(asks(&consumer, "https://a.test/back")).status;
        assert_eq!(status == 200, is_open);
        if !is_open {
            proxy.passes(call(&consumer));
            proxy
                .command(&["consumer", "decline", &consumer.key, "--reason", "No"])
                .done();
            assert_eq!(shown(&proxy, &consumer.key)["asked_callbacks"], empty);
            press(
                &mut visitor,
                &consumer.key,
                "callbacks",
                &[("callbacks", asked)],
            );
            let mut approve = vec!["consumer", "approve", &consumer.key];
            approve.extend(["--callback", "oob", "--callback", "https://a.test/back"]);
            proxy.command(&approve).done();
        }
        until("it is registered", || {
            proxy.status(asks(&consumer, "https://a.test/back")) == 200
        });
        let wrong = press(
            &mut visitor,
            &consumer.key,
            "callbacks",
            &[("callbacks", "http://b.test")],
        );
        wrong.answer.has_status(400);
        has(&wrong.answer.text(), &["unprotected", "http://b.test"]);
    }
}

#[test]
fn an_approval_is_of_the_callbacks_that_were_seen() {
    let api = Upstream::start();
    let proxy = start(&api, "mode = 'approval'");
    let (user, consumer) = pair(&proxy, "dora");
    let key = &*consumer.key;
    proxy.command(&["consumer", "approve", key]).done();
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let (seen, later) = ("https://a.test/back", "https://evil.test/back");
    let page = own(&mut visitor, key);
    let form = with(button(&page, "callbacks"), &[("callbacks", seen)]);
    visitor.submit(&page, &form).answer.has_status(200);
    // The same form again is about another state.
    visitor.submit(&page, &form).answer.has_status(403);
    let events = format!("/v1/audit?consumer={key}&kind=consumer_callbacks_asked");
    let audit = proxy_api(&proxy, "GET", &events, "").text();
    has(&audit, &["asked_callbacks: none → https://a.test/back"]);
    assert_eq!(audit.matches("→").count(), 1, "{audit}");
    let list = proxy_api(&proxy, "GET", "/v1/registrations", "").text();
    has(&list, &[seen]);
    // Now the owner asks for others.
    press(&mut visitor, key, "callbacks", &[("callbacks", later)]);
    let approve = format!("/v1/consumers/{key}/approve");
    let line = failed(proxy.command(&["consumer", "approve", key, "--callback", seen]));
    has(
        &line,
        &["it would have the callbacks https://evil.test/back"],
    );
    has(
        &failed(proxy.command(&["consumer", "approve", key])),
        &[later],
    );
    let body = format!(r#"{{"callbacks":["{seen}"]}}"#);
    proxy_api(&proxy, "POST", &approve, &body).has_status(422);
    proxy_api(&proxy, "POST", &approve, "").has_status(422);
    let record = shown(&proxy, key);
    assert_eq!(record["callbacks"], serde_json::json!([]));
    assert_eq!(record["asked_callbacks"], serde_json::json!([later]));
    let body = format!(r#"{{"callbacks":["{later}"]}}"#);
    proxy_api(&proxy, "POST", &approve, &body).has_status(200);
    assert_eq!(shown(&proxy, key)["callbacks"], serde_json::json!([later]));
    // A form from before the decision asks for nothing.
    let page = own(&mut visitor, key);
    let form = with(button(&page, "callbacks"), &[("callbacks", seen)]);
    visitor.submit(&page, &form).answer.has_status(200);
    let decline = ["consumer", "decline", key, "--reason", "No"];
    proxy.command(&decline).done();
    visitor.submit(&page, &form).answer.has_status(403);
    assert_eq!(shown(&proxy, key)["asked_callbacks"], serde_json::json!([]));
}

/// An entity tag of any record names none that an operator saw.
#[test]
fn an_approval_of_any_record_names_its_callbacks() {
    let api = Upstream::start();
    let proxy = start(&api, "mode = 'approval'");
    let user = proxy.user("dora");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let page = visitor.open(REGISTER);
    let back = "https://a.test/back";
    let form = with(filled(&page, "Photo printer"), &[("callbacks", back)]);
    let consumer = issued(&visitor.submit(&page, &form));
    let record = format!("/v1/consumers/{}", consumer.key);
    let approve = |tags: &[&str], body: &str| {
        let call = Call::post(&format!("{record}/approve"));
        let call = tags
            .iter()
            .fold(call, |call, tag| call.header("If-Match", tag));
        send_to_api(&proxy, call, body)
    };
    let tag = || {
        let read = proxy_api(&proxy, "GET", &record, "");
        read.header("etag").unwrap().to_owned()
    };
    let seen = tag();
    let with_any = format!("{seen}, *");
    for tags in [&["*"][..], &[], &[&seen, "*"], &[&with_any]] {
        let refused = approve(tags, "");
        assert!((400..500).contains(&refused.status), "{tags:?} {refused:?}");
        assert_eq!(shown(&proxy, &consumer.key)["registration"], "waiting");
    }
    approve(&["*"], "").has_status(422);
    let body = format!(r#"{{"callbacks":["{back}"]}}"#);
    approve(&["\"other\""], &body).has_status(412);
    // The record has changed since it was seen.
    let update = [
        "consumer",
        "update",
        &consumer.key,
        "--permission",
        "photos.print",
    ];
    proxy.command(&update).done();
    approve(&[&seen], "").has_status(412);
    assert_eq!(shown(&proxy, &consumer.key)["registration"], "waiting");
    approve(&[&tag()], "").has_status(200);
    assert_eq!(shown(&proxy, &consumer.key)["registration"], "approved");
}

#[test]
fn an_approval_does_not_undo_what_an_operator_disabled() {
    let api = Upstream::start();
    let mut proxy = start(&api, "mode = 'open'");
    let (user, consumer) = pair(&proxy, "dora");
    let key = &*consumer.key;
    proxy.run(&format!("consumer disable {key}"));
    let marked = PERMISSIONS.replace("'See your photos'", "'See your photos'\nsensitive = true");
    proxy.reload(&format!("registration.mode = 'open'\n{marked}"));
    let state = || {
        let record = shown(&proxy, key);
        (record["registration"].clone(), record["enabled"].clone())
    };
    assert_eq!(state(), ("unchecked".into(), false.into()));
    // Enabled again it would have a sensitive permission that no operator has approved.
    let enable = ["consumer", "enable", key];
    has(&failed(proxy.command(&enable)), &["approve it first"]);
    let record = format!("/v1/consumers/{key}");
    proxy_api(&proxy, "PATCH", &record, r#"{"enabled":true}"#).has_status(409);
    let line = format!(
        "{{\"kind\":\"export\",\"version\":1}}\n{{\"kind\":\"consumer\",\"key\":\"{key}\",\"enabled\":true}}\n"
    );
    let imported = failed(proxy.command_with(&["import", "-", "--update"], &line));
    has(&imported, &["no operator has approved it"]);
    assert_eq!(state(), ("unchecked".into(), false.into()));
    let operator = Operator::with(&proxy, WRITE);
    let page = operator.text(&format!("/consumer?key={key}"));
    has(&page, &["/consumer/approve"]);
    assert!(!page.contains("/consumer/enable"));
    let page = operator.text(&format!("/consumer/approve?key={key}"));
    has(
        &page,
        &["It stays disabled.", "Its permissions: photos.read"],
    );
    let approved = proxy.command(&["consumer", "approve", key]).done().stdout;
    has(&approved, &["Permissions: photos.read. It stays disabled"]);
    assert_eq!(state(), ("approved".into(), false.into()));
    proxy.send(call(&consumer)).is(401, "consumer_key_refused");
    proxy.command(&enable).done();
    until("it is enabled", || proxy.status(call(&consumer)) == 200);
    // One that waits is disabled already, and a command that would do nothing says so.
    let waiting = ask(&mut Visitor::logged_in(&proxy, &user), "Another");
    let key = &*waiting.key;
    for declines in [false, true] {
        if declines {
            let decline = ["consumer", "decline", key, "--reason", "No"];
            proxy.command(&decline).done();
        }
        let disable = failed(proxy.command(&["consumer", "disable", key]));
        has(&disable, &["only an approval enables it"]);
        let record = format!("/v1/consumers/{key}");
        let patch = r#"{"enabled":false,"contact":"a@b.test"}"#;
        proxy_api(&proxy, "PATCH", &record, patch).has_status(409);
        proxy_api(&proxy, "PATCH", &record, r#"{"rsa_only":false}"#).has_status(200);
    }
    assert_eq!(shown(&proxy, key)["contact"], "dev@shop.example");
}

#[test]
fn callbacks_asked_for_under_another_mode_do_not_wait_for_ever() {
    let api = Upstream::start();
    let mut proxy = start(&api, "mode = 'open'");
    let (user, consumer) = pair(&proxy, "dora");
    let config = |mode: &str| format!("registration.mode = '{mode}'\n{PERMISSIONS}");
    proxy.reload(&config("approval"));
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let fields = [("callbacks", "https://a.test/back")];
    press(&mut visitor, &consumer.key, "callbacks", &fields);
    proxy.reload(&config("open"));
    let fields = [("callbacks", "https://b.test/back")];
    let mut visitor = Visitor::logged_in(&proxy, &user);
    press(&mut visitor, &consumer.key, "callbacks", &fields);
    let record = shown(&proxy, &consumer.key);
    assert_eq!(
        record["callbacks"],
        serde_json::json!(["https://b.test/back"])
    );
    assert_eq!(record["asked_callbacks"], serde_json::json!([]));
}

#[test]
fn a_permission_that_becomes_sensitive_needs_an_approval() {
    let api = Upstream::start();
    let mut proxy = start(&api, "mode = 'open'");
    let (_, consumer) = pair(&proxy, "dora");
    let plain = proxy.consumer_with("Partner", "--permission photos.read");
    proxy.passes(call(&consumer));
    let marked = PERMISSIONS.replace("'See your photos'", "'See your photos'\nsensitive = true");
    proxy.reload(&format!("registration.mode = 'open'\n{marked}"));
    until("it waits", || proxy.status(call(&consumer)) == 401);
    assert_eq!(shown(&proxy, &consumer.key)["registration"], "waiting");
    proxy.passes(call(&plain));
    let events = audited(&proxy, &consumer.key);
    assert_eq!(events.last().unwrap().0, "consumer_held");
    proxy
        .command(&["consumer", "approve", &consumer.key])
        .done();
    until("it is approved", || proxy.status(call(&consumer)) == 200);
    // An approved one is not held again.
    proxy.reload(&format!("registration.mode = 'approval'\n{marked}"));
    proxy.passes(call(&consumer));
}

#[test]
fn an_owner_sees_rejected_calls_and_ends_the_key() {
    let api = Upstream::start();
    let proxy = start(&api, "mode = 'open'");
    let (user, consumer) = pair(&proxy, "dora");
    let token = proxy.token(&consumer, &user);
    proxy
        .send(call(&consumer).signs_method("PUT"))
        .is(401, "signature_invalid");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let page = press(&mut visitor, &consumer.key, "rejections", &[]);
    assert!(
        page.target.contains("mode=developer&link="),
        "{}",
        page.target
    );
    has(&page.answer.text(), &["Rejected calls of", "Photo printer"]);
    let asked = visitor.open(&format!("{REGISTER}&end={}", consumer.key));
    has(
        &asked.answer.text(),
        &["End the key of", "Nothing brings the key back"],
    );
    visitor
        .submit(&asked, &asked.form_with("act").press("act", "end"))
        .answer
        .has_status(200);
    proxy.send(call(&consumer)).is(401, "consumer_key_unknown");
    proxy
        .send(Call::get("/photos").by(&consumer).with(&token))
        .is(401, "consumer_key_unknown");
    visitor.open(&page.target).answer.has_status(404);
    let events = audited(&proxy, &consumer.key);
    let events = Vec::from_iter(events.iter().map(|(event, by)| format!("{event} {by}")));
    has(
        &events.join("\n"),
        &[
            "consumer_asked page",
            "developer_link_made page",
            "consumer_removed page",
        ],
    );
}

/// The page that asks whether to make a token.
fn asked_token(visitor: &mut Visitor<'_>, key: &str) -> (Page, Form) {
    let page = visitor.open(&format!("{REGISTER}&token={key}"));
    page.answer.has_status(200);
    let form = page.form_with("number").press("act", "token");
    (page, form)
}

/// The token that a page shows.
fn own_token(page: &Page) -> Token {
    let [token, secret] = ["token-value", "secret-value"].map(|id| page.element(id));
    assert!(
        page.answer
            .header("cache-control")
            .unwrap()
            .contains("no-store")
    );
    Token::new(token.expect("a token"), secret.expect("a secret"))
}

/// The tokens of a consumer that are not revoked.
fn tokens(proxy: &Proxy, key: &str) -> Vec<Value> {
    let list = proxy.command(&["token", "list", "--consumer", key, "--json"]);
    let lines = list.done().stdout;
    let all = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|token| token["revoked_at"].is_null()).collect()
}

#[test]
fn an_owner_makes_one_access_token_for_themselves() {
    let api = Upstream::start();
    let proxy = start(&api, "mode = 'open'\nregistration.own_token = true");
    let (user, consumer) = pair(&proxy, "dora");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let link = format!("token={}", consumer.key);
    has(&own(&mut visitor, &consumer.key).answer.text(), &[&link]);
    let (page, form) = asked_token(&mut visitor, &consumer.key);
    has(
        &page.answer.text(),
        &["See your photos", "as if you had allowed it"],
    );
    // The question makes nothing.
    assert_eq!(tokens(&proxy, &consumer.key).len(), 0);
    let shown = visitor.submit(&page, &form);
    let token = own_token(&shown);
    let called = |token: &Token| Call::get("/photos").by(&consumer).with(token);
    proxy.passes(called(&token));
    assert_eq!(api.last_request().header("x-auth-user"), Some(&*user.id));
    let listed = tokens(&proxy, &consumer.key);
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["began"], "own");
    assert_eq!(listed[0]["permissions"], serde_json::json!(["photos.read"]));
    // The same form again makes none, and shows no secret.
    let again = visitor.submit(&page, &form);
    again.answer.has_status(200);
    assert!(!again.answer.text().contains(&token.secret));
    assert!(
        !own(&mut visitor, &consumer.key)
            .answer
            .text()
            .contains(&token.token)
    );
    assert_eq!(tokens(&proxy, &consumer.key), listed);
    // It is shown as one that the user wanted, and is no consent that is remembered.
    let applications = visitor.open(APPLICATIONS).answer.text();
    let is_own = "Your own access token, made on ";
    has(&applications, &["Photo printer", is_own]);
    // A token that the operator issued stays when another own one ends the one before, and is what the page tells.
    let other = proxy.token(&consumer, &user);
    let applications = visitor.open(APPLICATIONS).answer.text();
    has(
        &applications,
        &["Given by the operator on ", "2 connections"],
    );
    assert!(!applications.contains(is_own));
    let (page, form) = asked_token(&mut visitor, &consumer.key);
    let second = own_token(&visitor.submit(&page, &form));
    proxy.send(called(&token)).is(401, "token_revoked");
    for kept in [&second, &other] {
        proxy.passes(called(kept));
    }
    let operator = Operator::with(&proxy, WRITE);
    let listed = operator.text(&format!("/tokens?consumer={}", consumer.key));
    has(&listed, &["made by the owner of its consumer"]);
    let withdraw = visitor.open(&format!("{APPLICATIONS}&withdraw={}", consumer.key));
    let form = withdraw.form_with("revoke").press("revoke", &consumer.key);
    visitor.submit(&withdraw, &form).answer.has_status(200);
    proxy.send(called(&second)).is(401, "token_revoked");
    let events = audited(&proxy, &consumer.key);
    let events = events.iter().map(|(event, by)| format!("{event} {by}"));
    let events = Vec::from_iter(events.filter(|it| it.ends_with(" page")));
    let expected = [
        "consumer_asked",
        "access_token_issued",
        "access_token_issued",
        "token_revoked",
    ];
    assert_eq!(events, expected.map(|event| format!("{event} page")));
}

#[test]
fn own_token_needs_its_user_and_the_form_of_its_page() {
    let api = Upstream::start();
    let proxy = start(&api, "mode = 'approval'\nregistration.own_token = true");
    let (dora, consumer) = pair(&proxy, "dora");
    let eve = proxy.user("eve");
    let key = consumer.key.as_str();
    let mut visitor = Visitor::logged_in(&proxy, &dora);
    let question = format!("{REGISTER}&token={key}");
    // It waits, and so has no such page.
    let offered = |visitor: &mut Visitor<'_>| {
        let text = own(visitor, key).answer.text();
        text.contains(&format!("token={key}"))
    };
    assert!(!offered(&mut visitor));
    let refused = visitor.open(&question).answer;
    assert!(refused.status >= 400, "{refused:?}");
    proxy.command(&["consumer", "approve", key]).done();
    assert!(offered(&mut visitor));
    let (page, form) = asked_token(&mut visitor, key);
    // Another user, who has a page of this kind too, and one without a session.
    let mut other = Visitor::logged_in(&proxy, &eve);
    other.open(&question).answer.has_status(404);
    other.submit(&page, &form).answer.has_status(404);
    let mut logged_out = Visitor::to(&proxy);
    logged_out.submit(&page, &form).answer.has_status(403);
    // Another site, other forms of the same page, another number, and the address alone.
    let hostile = |name: &str, value: &str| {
        let call = Call::post(REGISTER).header(name, value);
        call.form(&encoded(&form.fields))
    };
    for (name, value) in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        visitor.send(hostile(name, value)).has_status(403);
    }
    let page_of_own = own(&mut visitor, key);
    for form in page_of_own
        .forms()
        .into_iter()
        .filter(|it| it.fields.iter().any(|(name, _)| name == "csrf"))
    {
        let form = with(form, &[("act", "token"), ("number", "1")]);
        visitor.submit(&page_of_own, &form).answer.has_status(403);
    }
    for changed in [
        form.clone().set("number", "2"),
        form.clone().without("csrf"),
        form.clone().without("number"),
    ] {
        visitor.submit(&page, &changed).answer.has_status(403);
    }
    let fields = Vec::from_iter(
        form.fields
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    visitor.open(&format!("{REGISTER}&{}", fields.join("&")));
    // Of another consumer of the same user.
    let second = ask(&mut visitor, "Another");
    let foreign = form.clone().set("key", &second.key);
    visitor.submit(&page, &foreign).answer.has_status(403);
    // Disabled since the form was shown; the setting off since then.
    proxy.run(&format!("consumer disable {key}"));
    until("it is disabled", || proxy.status(call(&consumer)) == 401);
    let refused = visitor.submit(&page, &form).answer;
    assert!(refused.status >= 400 && refused.status < 500, "{refused:?}");
    proxy.run(&format!("consumer enable {key}"));
    assert_eq!(
        tokens(&proxy, key).len() + tokens(&proxy, &second.key).len(),
        0
    );
    let cookies = visitor.cookies.clone();
    let mut proxy = proxy;
    proxy.reload("registration.own_token = false");
    let mut visitor = Visitor::to(&proxy);
    visitor.cookies = cookies;
    assert!(
        !visitor
            .open(&format!("{REGISTER}&of={key}"))
            .answer
            .text()
            .contains("token=")
    );
    visitor.open(&question).answer.has_status(404);
    visitor.submit(&page, &form).answer.has_status(404);
    assert_eq!(tokens(&proxy, key).len(), 0);
}

#[test]
fn an_own_token_is_no_consent_that_is_remembered() {
    let api = Upstream::start();
    let config = "mode = 'open'\nregistration.own_token = true\nconsent.remember = 'same'\nlimits.tokens_per_user = 1";
    let proxy = start(&api, config);
    let user = proxy.user("dora");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let page = visitor.open(REGISTER);
    let back = "https://shop.example/back";
    let form = with(filled(&page, "Photo printer"), &[("callbacks", back)]);
    let consumer = issued(&visitor.submit(&page, &form));
    let (page, form) = asked_token(&mut visitor, &consumer.key);
    let own = own_token(&visitor.submit(&page, &form));
    // The first consent of the flow is asked for, and its token does not end the own one.
    let request = proxy.request_token(&consumer, back);
    let asked = visitor.open(&authorization(&request));
    has(&asked.answer.has_status(200).text(), &["asks for access"]);
    let verifier = query_value(
        &visitor.decide(&asked, "allow").redirect(),
        "oauth_verifier",
    );
    let token = token_of(&proxy.send(exchanges(&consumer, &request, &verifier.unwrap())));
    for token in [&own, &token] {
        proxy.passes(Call::get("/photos").by(&consumer).with(token));
    }
}

/// The POST of a form of a page, as a browser with these cookies sends it.
fn posted(proxy: &Proxy, visitor: &Visitor<'_>, form: &Form) -> Vec<u8> {
    let pairs = visitor.cookies.iter();
    let cookies = Vec::from_iter(pairs.map(|(name, value)| format!("{name}={value}")));
    let call = Call::post(REGISTER)
        .header("Origin", &proxy.origin())
        .header("Cookie", &cookies.join("; "));
    proxy.wire(&call.form(&encoded(&form.fields)))
}

#[test]
fn of_forms_at_once_one_own_token_stays() {
    let server = Postgres::start();
    let postgres = format!(
        "store.backend = 'postgres'\nstore.url = '{}'\nnonce.scope = 'local'",
        server.database()
    );
    for store in ["", &postgres] {
        let api = Upstream::start();
        let settings = format!("mode = 'open'\nregistration.own_token = true\n{store}");
        let proxy = start(&api, &settings);
        let (user, consumer) = pair(&proxy, "dora");
        let mut visitor = Visitor::logged_in(&proxy, &user);
        // Each of the forms twice.
        let forms = [(); 8].map(|()| asked_token(&mut visitor, &consumer.key).1);
        let forms = Vec::from_iter(forms.iter().chain(&forms));
        let request = |form: &Form| (&proxy, posted(&proxy, &visitor, form));
        let mut answers = race(forms.iter().map(|form| request(form)).collect());
        for (answer, form) in answers.iter_mut().zip(&forms) {
            // The forms wait for each other in the store; on a busy machine some wait too long.
            while answer.status == 503 {
                *answer = race(vec![request(form)]).remove(0);
            }
        }
        let made = answers.iter().filter(|answer| answer.status == 200);
        let made = Vec::from_iter(made.map(|answer| {
            own_token(&Page {
                target: REGISTER.to_owned(),
                answer: answer.clone(),
            })
        }));
        // A form whose response was lost with the store's, and that was sent again, made a token that no page shows.
        let again = answers.iter().filter(|answer| answer.status == 303);
        assert!(
            made.len() + again.count() == 16 && made.len() <= 8,
            "{answers:?}"
        );
        let [live] = &tokens(&proxy, &consumer.key)[..] else {
            panic!("one token stays");
        };
        let passes = |token: &&Token| {
            let call = Call::get("/photos").by(&consumer).with(token);
            proxy.status(call) == 200
        };
        for valid in made.iter().filter(passes) {
            assert_eq!(valid.token, live["token"].as_str().unwrap());
        }
        let events = audited(&proxy, &consumer.key);
        let count = |name: &str| events.iter().filter(|(event, _)| event == name).count();
        assert_eq!(
            [count("access_token_issued"), count("token_revoked")],
            [8, 7]
        );
    }
}

#[test]
fn no_own_token_is_made_once_grants_have_ended() {
    let api = Upstream::start();
    let mut proxy = start(&api, "mode = 'open'\nregistration.own_token = true");
    let (user, consumer) = pair(&proxy, "dora");
    let key = &*consumer.key;
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let (page, form) = asked_token(&mut visitor, key);
    let cookies = visitor.cookies.clone();
    for (sunset, ends) in [
        ("consumers = ['another']", false),
        (&*format!("consumers = ['another', '{key}']"), true),
    ] {
        proxy.reload(&format!("[sunset]\nnew_grants = false\n{sunset}"));
        let mut visitor = Visitor::to(&proxy);
        visitor.cookies = cookies.clone();
        let link = format!("token={key}");
        let offered = own(&mut visitor, key).answer.text();
        assert_eq!(offered.contains(&link), !ends);
        let question = visitor.open(&format!("{REGISTER}&{link}")).answer;
        assert_eq!(question.status, if ends { 404 } else { 200 });
        if ends {
            visitor.submit(&page, &form).answer.has_status(404);
        }
    }
    assert_eq!(tokens(&proxy, key).len(), 0);
}

#[test]
fn an_own_token_has_the_permissions_that_were_shown() {
    let api = Upstream::start();
    let proxy = start(&api, "mode = 'open'\nregistration.own_token = true");
    let (user, consumer) = pair(&proxy, "dora");
    let key = &*consumer.key;
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let (page, form) = asked_token(&mut visitor, key);
    let widen = "--permission photos.read --permission photos.print";
    proxy.run(&format!("consumer update {key} {widen}"));
    visitor.submit(&page, &form).answer.has_status(403);
    assert_eq!(tokens(&proxy, key).len(), 0);
    let (page, form) = asked_token(&mut visitor, key);
    has(&page.answer.text(), &["Print your photos"]);
    own_token(&visitor.submit(&page, &form));
    // Logged out, disabled, or the consumer of another by now: nothing is made.
    let (page, form) = asked_token(&mut visitor, key);
    let cookies = visitor.cookies.clone();
    proxy.run("user disable dora");
    visitor.submit(&page, &form).answer.has_status(403);
    proxy.run("user enable dora");
    visitor.cookies = cookies;
    visitor.submit(&page, &form).answer.has_status(403);
    assert_eq!(tokens(&proxy, key).len(), 0);
}
