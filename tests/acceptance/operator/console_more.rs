//! The console's page of the consent page, its forms for users, and its answers about one consumer.
//!
//! Promise (Console): The consent page in the console is the real one, and decides nothing.

use crate::support::{
    Call, Consumer, Operator, Postgres, Proxy, Upstream, User, Visitor, has,
    operator::{READ, WRITE},
    until,
};

const CONFIG: &str = "
pages.name = 'Example Photos'

[[permission]]
name = 'photos.read'
title = 'See your photos'

[[permission]]
name = 'photos.print'
title = 'Print your photos'
sensitive = true

[[operation]]
path = '/photos/{id}'
permission = 'photos.read'

[[operation]]
path = '/orders'
methods = ['POST']
permission = 'photos.print'
access = ['consumer', 'application']

[[operation]]
path = '/open'
access = ['anonymous']
";

fn console() -> (Upstream, Proxy) {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).config(CONFIG).with_console();
    (api, proxy.start())
}

fn printer(proxy: &Proxy) -> Consumer {
    let options = "--callback https://printer.example/back --permission photos.read";
    proxy.consumer_with("Photo printer", options)
}

#[test]
fn consent_preview_has_each_language_and_theme_and_no_effect() {
    let (_api, proxy) = console();
    let consumer = printer(&proxy);
    // Also for an operator who may not change anything.
    let operator = Operator::with(&proxy, READ);
    let outer = operator.open(&format!(
        "/consumer/consent?key={}&language=de",
        consumer.key
    ));
    let policy = outer.answer.header("content-security-policy").unwrap();
    assert!(policy.ends_with("frame-src 'self'"), "{policy}");
    let text = outer.answer.has_status(200).text();
    let frames = Vec::from_iter(text.split("<iframe sandbox ").skip(1));
    assert_eq!(frames.len(), 2, "{text}");
    has(
        &text,
        &[
            "<option value=\"ja\">日本語</option>",
            "selected>Deutsch</option>",
        ],
    );
    for (frame, scheme) in frames.iter().zip(["light", "dark"]) {
        let begin = frame.find("src=\"").unwrap() + 5;
        let address = frame[begin..]
            .split('"')
            .next()
            .unwrap()
            .replace("&#38;", "&");
        assert!(address.ends_with(&format!("scheme={scheme}")), "{address}");
        let page = operator.open(&address);
        let text = page.answer.has_status(200).text();
        has(
            &text,
            &[
                "bittet um Zugriff auf Ihr Konto bei",
                "<bdi>Photo printer</bdi>",
                "<bdi>Example Photos</bdi>",
                "See your photos",
                "Erlauben",
                "printer.example",
                "inert",
                &format!("color-scheme:{scheme}"),
            ],
        );
        assert!(
            !text.contains("<form") && !text.contains("prefers-color-scheme"),
            "{text}"
        );
        let policy = page.answer.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "form-action 'none'",
            "frame-ancestors 'self'",
            "; sandbox",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        // The policy has the hash of the style that was sent.
        let style = text
            .split("<style>")
            .nth(1)
            .unwrap()
            .split("</style>")
            .next()
            .unwrap();
        let hash = <sha2::Sha256 as sha2::Digest>::digest(style.as_bytes());
        let hash = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, hash);
        assert!(policy.contains(&format!("'sha256-{hash}'")), "{policy}");
    }
    let silent = proxy.consumer("Silent");
    let text = operator.text(&format!("/consumer/consent?key={}", silent.key));
    has(&text, &["It has no callback, so it cannot ask a user."]);
    for target in ["/consumer/consent?key=x", "/consumer/consent-page?key=x"] {
        operator.open(target).answer.has_status(404);
    }
    let post = Call::post("/consumer/consent-page").header("Sec-Fetch-Site", "same-origin");
    operator.send(post.form("")).has_status(405);
}

#[test]
fn a_user_is_added_and_gets_another_password() {
    let (_api, proxy) = console();
    let operator = Operator::with(&proxy, WRITE);
    let fill = |page: &str, fields: &[(&str, &str)]| {
        let page = operator.open(page);
        let form = page.form_with("password");
        let filled = fields
            .iter()
            .fold(form, |form, (name, value)| form.set(name, value));
        operator.submit(&page, &filled)
    };
    let first = "correct horse battery";
    let named = [("name", "ada"), ("display_name", "Ada <L>")];
    for (password, again, problem) in [
        (first, "other", "The two passwords differ."),
        (&*"x".repeat(1_100), &*"x".repeat(1_100), "Password:"),
    ] {
        let fields = [&named[..], &[("password", password), ("again", again)]].concat();
        let text = fill("/user/add", &fields).answer.has_status(200).text();
        has(&text, &[problem, "value=\"ada\""]);
        assert!(!text.contains(password), "{text}");
    }
    let fields = [&named[..], &[("password", first), ("again", first)]].concat();
    let text = fill("/user/add", &fields).answer.has_status(200).text();
    has(&text, &["The change is made.", "Ada &#60;L&#62;"]);
    let again = fill("/user/add", &fields).answer.has_status(200).text();
    has(&again, &["there is a user"]);
    drop(Visitor::logged_in(&proxy, &User::new("ada", first)));

    let id = proxy.run("user show ada --json").json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let second = "another horse battery";
    let page = format!("/user/password?id={id}");
    let asks = operator.text(&page);
    has(&asks, &["1 open session"]);
    let text = fill(&page, &[("password", ""), ("again", "")])
        .answer
        .text();
    has(&text, &["Password:"]);
    let set = fill(&page, &[("password", second), ("again", second)]);
    has(
        &set.answer.text(),
        &["The change is made.", "No session is open."],
    );
    drop(Visitor::logged_in(&proxy, &User::new("ada", second)));
    let audit = operator.text("/audit?user=ad");
    has(&audit, &["User added", "Password changed"]);
    assert!(!audit.contains(first) && !audit.contains(second), "{audit}");

    let reader = Operator::with(&proxy, READ);
    for page in ["/user/add", &page] {
        reader.open(page).answer.has_status(403);
    }
    assert!(!reader.text("/users").contains("Add a user"));
}

#[test]
fn the_audit_page_finds_a_consumer_by_a_part_of_its_name() {
    let (_api, proxy) = console();
    let [printer, planner] = [printer(&proxy), proxy.consumer("Wall calendar")];
    let removed = proxy.consumer("Removed");
    proxy.run(&format!("consumer disable {}", planner.key));
    proxy.run(&format!("consumer remove {} --yes", removed.key));
    let operator = Operator::with(&proxy, READ);
    let found = operator.text("/audit?consumer=calen");
    has(&found, &["Consumer disabled", &planner.key]);
    assert!(!found.contains(&printer.key), "{found}");
    // A key of one that is gone is still one.
    let found = operator.text(&format!("/audit?consumer={}", removed.key));
    has(&found, &["Consumer removed"]);
    let one = proxy.consumer("Calendar of walls");
    let several = operator.text("/audit?consumer=CALEN");
    has(
        &several,
        &[
            "2 have this in their name, choose one",
            &planner.key,
            &one.key,
        ],
    );
}

#[test]
fn a_path_is_tried_as_one_consumer() {
    let (_api, proxy) = console();
    let consumer = printer(&proxy);
    let operator = Operator::with(&proxy, READ);
    for (target, outcome) in [
        (
            "path=/photos/7",
            "Photo printer is forwarded with the token of a user; a token needs photos.read too.",
        ),
        (
            "method=POST&path=/orders",
            "Photo printer is rejected: it does not have the permission photos.print.",
        ),
        ("path=/orders", "Photo printer is rejected."),
    ] {
        for name in [&consumer.key, "printer"] {
            let text = operator.text(&format!("/operations?{target}&consumer={name}"));
            has(&text, &[outcome]);
        }
    }
    proxy.run(&format!("consumer disable {}", consumer.key));
    let text = operator.text("/operations?path=/photos/7&consumer=printer");
    has(&text, &["Photo printer gets 401: it is disabled."]);
    let text = operator.text("/operations?path=/photos/7&consumer=absent");
    has(
        &text,
        &[
            "No consumer has “absent” as its key or in its name.",
            "value=\"/photos/7\"",
        ],
    );
    proxy.consumer("Large printer");
    let text = operator.text("/operations?path=/photos/7&consumer=printer");
    has(
        &text,
        &[
            "2 have this in their name, choose one",
            "value=\"/photos/7\"",
        ],
    );
    assert!(!text.contains("No consumer has"), "{text}");
}

#[test]
fn user_locked_out_by_failed_logins_is_marked_and_let_in_again() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api)
        .config("login.max_failures = '3 per 15m'")
        .with_console()
        .start();
    let (user, other) = (proxy.user("ada"), proxy.user("bob"));
    let tries = |password: &str| {
        let mut visitor = Visitor::to(&proxy);
        let page = visitor.open("/service.oauth?mode=applications");
        let form = page.form_with("password");
        let form = form.set("username", &user.name).set("password", password);
        visitor.submit(&page, &form).answer.status
    };
    let operator = Operator::with(&proxy, WRITE);
    let reader = Operator::with(&proxy, READ);
    let at = format!("/user?id={}", user.id);
    let end = format!("/user/end-pauses?id={}", user.id);
    for way in ["console", "command"] {
        assert!(!reader.text(&at).contains("is paused at"), "{way}");
        while tries("wrong") != 429 {}
        assert_eq!(tries(&user.password), 429, "{way}");
        has(
            &reader.text(&at),
            &["After failed logins this account is paused at 1 address, the last pause ends "],
        );
        assert!(!reader.text(&at).contains("end-pauses"), "{way}");
        let list = reader.text("/users");
        assert_eq!(list.matches(">login paused</span>").count(), 1, "{list}");
        reader.open(&end).answer.has_status(403);
        match way {
            "console" => {
                let asked = operator.open(&end);
                // A form of another session ends nothing.
                let foreign = Operator::with(&proxy, WRITE);
                foreign.confirm(&asked).answer.has_status(403);
                assert_eq!(tries(&user.password), 429);
                operator.confirm(&asked).answer.has_status(200);
            }
            _ => {
                proxy.run("user unlock ada");
                until("the process reads it", || {
                    !reader.text("/users").contains("login paused")
                });
            }
        }
        assert!(tries(&user.password) < 400, "{way}");
    }
    has(
        &operator.text("/audit"),
        &["<code class=\"soft\">login_pauses_ended</code>"],
    );
    let page = operator.open(&format!("/user/end-pauses?id={}", other.id));
    has(
        &page.answer.text(),
        &["End the pauses of bob?", "class=\"main\""],
    );
}

#[test]
fn the_page_of_rejections_says_how_to_see_those_of_all_replicas() {
    let (api, postgres) = (Upstream::start(), Postgres::start());
    let shared = format!(
        "store.backend = 'postgres'\nstore.url = '{}'",
        postgres.database()
    );
    for (store, is_shared) in [("", false), (&*shared, true)] {
        let builder = Proxy::in_front_of(&api).with_console();
        let proxy = builder.config(store).start();
        for page in ["/rejections", "/rejections?kind=observed"] {
            let text = Operator::with(&proxy, READ).text(page);
            assert_eq!(
                text.contains("| countersign why KEY -"),
                is_shared,
                "{text}"
            );
        }
    }
}

#[test]
fn rejections_of_a_removed_consumer_are_dropped() {
    let (_api, proxy) = console();
    let (consumer, user) = (printer(&proxy), proxy.user("ada"));
    let token = proxy.token(&consumer, &user);
    let forger = Consumer::new(&consumer.key, "wrong");
    proxy.rejects(
        Call::get("/photos/7").by(&forger).with(&token),
        401,
        "signature_invalid",
    );
    let operator = Operator::with(&proxy, READ);
    has(
        &operator.text("/rejections"),
        &["<caption>1 call</caption>", "Photo printer"],
    );
    proxy.run(&format!("consumer remove {} --yes", consumer.key));
    until("its rejections are dropped", || {
        operator
            .text("/rejections")
            .contains("Nothing was rejected.")
    });
}

#[test]
fn the_login_names_the_setting_of_the_token_and_no_path() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api)
        .config("admin.hosts = ['ops.example']")
        .with_console()
        .start();
    let operator = Operator::at(&proxy);
    let elsewhere = operator.send(Call::get("/login").host("ops.example"));
    for text in [operator.text("/login"), elsewhere.has_status(200).text()] {
        has(&text, &["<code>admin.token_file</code>"]);
        assert!(!text.contains("admin.token</code>"), "{text}");
    }
}

#[test]
fn checked_request_names_its_operation_and_missing_permission() {
    let (_api, proxy) = console();
    let consumer = printer(&proxy);
    let user = proxy.user("ada");
    let token = proxy.token_with(&consumer, &user, "--permission photos.read");
    let operator = Operator::with(&proxy, WRITE);
    let said = |call: Call| {
        let page = operator.open("/signature");
        let mut form = page.form_to("/signature");
        let wire = String::from_utf8(proxy.wire(&call.by(&consumer).with(&token))).unwrap();
        form.fields.push(("request".to_owned(), wire));
        operator.submit(&page, &form).answer.text()
    };
    for (call, line) in [
        (
            Call::get("/photos/7"),
            "The operation /photos/{id} needs the permission photos.read: nothing is missing.",
        ),
        (
            Call::post("/orders"),
            "needs the permission photos.print: the consumer does not have it.",
        ),
        (
            Call::get("/open"),
            "The operation /open is not open to calls with the token of a user: this call is rejected.",
        ),
        (
            Call::get("/elsewhere"),
            "No operation lists this path with this method.",
        ),
    ] {
        has(&said(call), &[line]);
    }
    let unsigned = Call::get("/photos/7").by(&consumer);
    proxy.rejects(unsigned, 401, "token_rejected");
    let page = operator.open("/signature");
    let mut form = page.form_to("/signature");
    let wire = proxy.wire(&Call::get("/photos/7").by(&consumer));
    let wire = String::from_utf8(wire).unwrap();
    form.fields.push(("request".to_owned(), wire));
    has(
        &operator.submit(&page, &form).answer.text(),
        &[
            "The signature is right.",
            "The operation /photos/{id} is not open to calls without the token of a user: this call is rejected.",
        ],
    );
    let more = "consumer update KEY --permission photos.read --permission photos.print";
    proxy.run(&more.replace("KEY", &consumer.key));
    has(
        &said(Call::post("/orders")),
        &["the consumer has it, and its token does not."],
    );
}

#[test]
fn a_consumer_without_a_record_has_no_link() {
    let (_api, proxy) = console();
    let (shop, gone) = (proxy.consumer("Shop"), proxy.consumer("Gone"));
    let made_up = Consumer::new("made-up", "s");
    for (consumer, problem) in [
        (&shop, "token_rejected"),
        (&gone, "token_rejected"),
        (&made_up, "consumer_key_unknown"),
    ] {
        proxy.rejects(Call::get("/photos/1").by(consumer), 401, problem);
    }
    proxy.run(&format!("consumer remove {} --yes", gone.key));
    let operator = Operator::with(&proxy, WRITE);
    let link = |key: &str| format!("\"/consumer?key={key}\"");
    for page in ["/", "/rejections", "/audit"] {
        let text = operator.text(page);
        for key in [&*gone.key, "made-up"] {
            assert!(!text.contains(&link(key)), "{key} on {page}: {text}");
        }
    }
    // Those that are registered have one beside them.
    let text = operator.text("/rejections");
    has(&text, &[&link(&shop.key), "made-up"]);
    operator
        .open("/consumer?key=made-up")
        .answer
        .has_status(404);
}

#[test]
fn console_says_of_method_token_and_body_what_the_response_says() {
    let (_api, proxy) = console();
    let caller = proxy.somebody();
    let photo = || Call::get("/photos/1").of(&caller);
    let order = Call::post("/orders").of(&caller).json("{}");
    let told = [
        (
            proxy.rejects(
                photo().method("PLAINTEXT"),
                400,
                "signature_method_rejected",
            ),
            "this service accepts",
        ),
        (
            proxy.rejects(
                Call::get("/photos/1").by(&caller.consumer),
                401,
                "token_rejected",
            ),
            "no oauth_token was sent",
        ),
        (
            proxy.rejects(
                order.parameter("oauth_body_hash", "0JQeaNqPOBUf+Gph/Fn3xc+fyqI="),
                401,
                "signature_invalid",
            ),
            "is not the hash of the body",
        ),
    ];
    let operator = Operator::with(&proxy, READ);
    for (answer, expected) in told {
        let advice = answer.form("oauth_problem_advice").unwrap();
        assert!(advice.contains(expected), "{advice}");
        let id = answer.header("x-request-id").unwrap();
        let page = operator.text(&format!("/rejections?request_id={id}"));
        has(&page, &[&advice]);
        proxy.logs(&[&format!("request_id={id}"), "problem=", &advice]);
    }
}
