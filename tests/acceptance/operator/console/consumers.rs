//! Consumers: made, changed, removed, and handed their secret.

use super::*;

#[test]
fn console_manages_a_consumer_and_shows_its_secret_once() {
    let (_api, proxy) = console(OPERATIONS);
    let operator = Operator::with(&proxy, WRITE);
    let form = operator.open("/consumer/add");
    let sent = |name: &str, permissions: &str| {
        let filled = form.form_with("name").set("name", name);
        let mut filled = filled.set("permissions", permissions);
        for (field, value) in [
            ("callbacks", "https://a.test/x\r\noob"),
            ("dialect", "legacy"),
        ] {
            filled.fields.push((field.to_owned(), value.to_owned()));
        }
        operator.submit(&form, &filled)
    };
    has(&sent("", "").answer.text(), &["name: it is empty"]);
    // The configuration has members.read alone.
    has(
        &sent("x", "members.reed").answer.text(),
        &["Permission members.reed: the configuration has no [[permission]] of that name"],
    );
    has(
        &sent("x", "a b c\"").answer.text(),
        &["permission &#34;c\\&#34;&#34;: a name has only"],
    );
    let asked = sent("Shop <b>&", "members.read");
    has(
        &asked.answer.text(),
        &[
            "Shop &#60;b&#62;&#38;",
            "<dt>Callbacks</dt><dd><bdi>https://a.test/x, oob<",
            "<dt>Permissions</dt><dd><bdi>members.read<",
        ],
    );
    assert!(!asked.answer.text().contains("no [[permission]]"));
    let shown = operator.confirm(&asked);
    let text = shown.answer.has_status(200).text();
    has(&text, &["never shown again"]);
    let fact = |name: &str| {
        let rest = text.split(&format!("{name}: <span>")).nth(1).unwrap();
        rest.split('<').next().unwrap().to_owned()
    };
    let consumer = Consumer::new(fact("Consumer key"), fact("Consumer secret"));
    for (name, url) in [
        ("Request token URL", "/oauth/request_token"),
        ("Authorization URL", "/oauth/authorize"),
        ("Access token URL", "/oauth/access_token"),
        ("API", ""),
    ] {
        assert_eq!(fact(name), format!("{}{url}", proxy.origin()));
    }
    proxy.passes(Call::get("/members/1").by(&consumer));
    let at = |page: &str| format!("/consumer{page}?key={}", consumer.key);
    assert!(!operator.text(&at("")).contains(&consumer.secret));
    // The same form again registers nothing.
    has(
        &operator.confirm(&asked).answer.has_status(409).text(),
        &["there is a consumer with the key"],
    );

    let form = operator.open(&at("/edit"));
    let filled = form.form_with("name").set("name", "Shop");
    let filled = filled.set("permission.members.read", "1");
    let filled = filled.without("permission.members.read");
    let asked = operator.submit(&form, &filled);
    has(
        &asked.answer.text(),
        &[
            "<dt>Name</dt><dd><bdi>Shop<",
            "<dt>Permissions</dt><dd><bdi>none<",
            "It ends members.read for its 0 access tokens",
        ],
    );
    operator.confirm(&asked).answer.has_status(200);
    assert_eq!(proxy.status(Call::get("/members/1").by(&consumer)), 404);
    // The record has changed since it was shown.
    has(
        &operator.confirm(&asked).answer.has_status(403).text(),
        &["no longer valid"],
    );

    let form = operator.open(&at("/rotate"));
    let mut filled = form.form_with("key");
    filled.fields.push(("grace".to_owned(), "1h".to_owned()));
    let asked = operator.submit(&form, &filled);
    has(&asked.answer.text(), &["also verifies until"]);
    let rotated = operator.confirm(&asked);
    has(
        &rotated.answer.has_status(200).text(),
        &["New secret of Shop"],
    );
    // A second click must not rotate again.
    operator.confirm(&asked).answer.has_status(403);

    for (page, status) in [("/disable", "disabled"), ("/enable", "enabled")] {
        let asked = operator.open(&at(page));
        has(
            &operator.confirm(&asked).answer.text(),
            &[&format!(">{status}</span>")],
        );
    }
    let asked = operator.open(&at("/remove"));
    has(&asked.answer.text(), &["never used again"]);
    operator.confirm(&asked).answer.has_status(200);
    proxy.rejects(
        Call::get("/members/1").by(&consumer),
        401,
        "consumer_key_unknown",
    );
    for event in [
        "consumer_registered",
        "consumer_changed",
        "consumer_secret_rotated",
        "consumer_removed",
    ] {
        proxy.logs(&[
            &format!("event=\"{event}\""),
            "by=\"console\"",
            "address=127.0.0.1",
        ]);
    }
}

#[test]
fn a_confirmation_in_the_console_says_what_the_change_ends() {
    let (_api, proxy) = console("");
    let (consumer, user, token) = caller(&proxy, "Shop", "");
    proxy.token(&consumer, &user);
    let operator = Operator::with(&proxy, WRITE);
    let ends_one = format!(
        "Shop loses access to {}’s account by this token within a second.",
        user.name
    );
    for (page, name, effect) in [
        (
            "/consumer/disable?key",
            &consumer.key,
            "All its calls get 401 within a second",
        ),
        (
            "/consumer/enable?key",
            &consumer.key,
            "accepted again, with its 2 access tokens.",
        ),
        (
            "/consumer/disable?key",
            &consumer.key,
            "Its 2 access tokens work again once you enable it.",
        ),
        ("/token/revoke?token", &token.token, &*ends_one),
        (
            "/consumer/remove?key",
            &consumer.key,
            "It ends 1 access token, and every authorization",
        ),
        (
            "/user/disable?id",
            &user.id,
            "The user cannot log in until the account is enabled.",
        ),
        (
            "/user/enable?id",
            &user.id,
            "The user can log in again. Tokens and sessions that were ended stay",
        ),
    ] {
        let asked = operator.open(&format!("{page}={name}"));
        has(&asked.answer.has_status(200).text(), &[effect]);
        if page.starts_with("/consumer/remove") {
            // A consumer with tokens is not removed by one careless Enter.
            let again = operator.confirm(&typed(&asked, "another"));
            has(
                &again.answer.text(),
                &["This is another key. Nothing was changed."],
            );
            operator
                .confirm(&typed(&again, name))
                .answer
                .has_status(200);
            operator
                .open(&format!("/consumer?key={name}"))
                .answer
                .has_status(404);
        } else {
            operator.confirm(&asked).answer.has_status(200);
        }
    }
}

/// The text of an element of a page.
fn text_of(html: &str, id: &str) -> String {
    let (_, rest) = html
        .split_once(&format!("id=\"{id}\">"))
        .unwrap_or_else(|| panic!("{id} in {html}"));
    crate::support::visitor::unescape(rest.split("</pre>").next().unwrap())
}

#[test]
fn each_program_of_the_page_with_a_new_secret_succeeds() {
    // By default no call succeeds without a user.
    let flow = "print the address (<code>";
    runs_programs("", "Programs that ask for a request token at <code>", flow);
    runs_programs(
        OPERATIONS,
        "Programs that ask for a request token at <code>",
        flow,
    );
    let open = "[[operation]]\npath = '/status/{id}'\nmethods = ['GET']\naccess = ['application']";
    runs_programs(
        open,
        "/status/1</code>, with the key and the secret filled in",
        "",
    );
    let unlisted = "operations.unlisted = 'application'";
    runs_programs(
        unlisted,
        "/</code>, with the key and the secret filled in",
        "",
    );
}

/// Registers a consumer, and runs the programs of the page; `texts` say what they do.
fn runs_programs(config: &str, what: &str, flow: &str) {
    use std::process::Command;

    use crate::support::installed;

    let (api, proxy) = console(config);
    let operator = Operator::with(&proxy, WRITE);
    let form = operator.open("/consumer/add");
    let asked = operator.submit(&form, &form.form_with("name").set("name", "Shop"));
    let page = operator.confirm(&asked).answer.has_status(200).text();
    has(&page, &[what, flow]);
    let directory = proxy.directory().join("programs");
    std::fs::create_dir(&directory).unwrap();
    std::os::unix::fs::symlink(
        installed("clients/node/node_modules"),
        directory.join("node_modules"),
    )
    .unwrap();
    let countersign = std::path::Path::new(env!("CARGO_BIN_EXE_countersign"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", countersign.parent().unwrap().display());
    let python = installed(".tools/venv/bin/python").display().to_string();
    for (id, file, program) in [
        ("python", "call.py", &*python),
        ("node", "call.js", "node"),
        ("php", "call.php", "php"),
        ("java", "Call.java", "java"),
        ("curl", "call.sh", "sh"),
    ] {
        std::fs::write(directory.join(file), text_of(&page, id)).unwrap();
        let before = api.requests().len();
        let run = Command::new(program)
            .arg(file)
            .current_dir(&directory)
            .env("PATH", &path)
            .output()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        assert!(run.status.success(), "{id}: {run:?}");
        let printed = String::from_utf8(run.stdout.clone()).unwrap();
        if flow.is_empty() {
            assert_eq!(api.requests().len(), before + 1, "{id}: {run:?}");
            assert!(!printed.contains("Open "), "{id}: {printed}");
            continue;
        }
        // The address that it prints is that of a page which asks a user.
        let address = printed.lines().find_map(|line| line.strip_prefix("Open "));
        let address = address.unwrap_or_else(|| panic!("{id}: {printed}"));
        let target = address.strip_prefix(&proxy.origin()).unwrap();
        let page = crate::support::visitor::Visitor::to(&proxy).open(target);
        has(&page.answer.has_status(200).text(), &["Shop", "password"]);
    }
}

#[test]
fn disabling_promises_no_rejection_while_calls_are_observed() {
    let (_api, proxy) = console("signature.enforcement = 'observe'");
    let (consumer, _, token) = caller(&proxy, "Shop", "");
    let operator = Operator::with(&proxy, WRITE);
    let asked = operator.open(&format!("/consumer/disable?key={}", consumer.key));
    has(
        &asked.answer.text(),
        &["Signatures are only observed: its calls to the API still pass"],
    );
    operator.confirm(&asked).answer.has_status(200);
    proxy.passes(Call::get("/x").by(&consumer).with(&token));
    // It can be enforced for the consumer alone.
    proxy.run(&format!("consumer update {} --enforce", consumer.key));
    until("the consumer is rejected", || {
        proxy
            .send(Call::get("/x").by(&consumer).with(&token))
            .status
            == 401
    });
    has(
        &operator.text(&format!("/consumer?key={}", consumer.key)),
        &["disabled"],
    );
}
