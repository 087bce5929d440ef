//! Users: edited, disabled, their sessions ended, their pauses, their forms.
//!
//! Promise (Console): Every pause after failed logins is listed with its address and its end, also in `GET /v1/login-pauses`; a name that
//! was typed and that no user has is not shown. Also in `src/provider/login/throttle/tests.rs`.

use super::*;

#[test]
fn users_are_disabled_and_their_sessions_ended_in_the_console() {
    let (_api, proxy) = console("");
    let (consumer, user, token) = caller(&proxy, "Shop", "");
    let mut visitor = crate::support::Visitor::logged_in(&proxy, &user);
    let operator = Operator::with(&proxy, WRITE);
    let page = click(&operator, &operator.open("/users"), &user.name);
    has(&page.answer.text(), &["1 open session, the newest first"]);
    let session = proxy
        .run(&format!("user sessions {} --json", user.id))
        .json();
    let members = Vec::from_iter(session.as_object().unwrap().keys());
    assert_eq!(members, ["created_at", "expires_at", "browser", "system"]);
    let asked = click(&operator, &page, "End all sessions");
    has(&asked.answer.text(), &["It ends 1 open session:"]);
    operator.confirm(&asked).answer.has_status(200);
    let applications = visitor.open("/service.oauth?mode=applications");
    applications.form_with("password");
    let asked = click(&operator, &page, "Disable");
    has(&asked.answer.text(), &["revokes 1 access token;"]);
    operator.confirm(&asked).answer.has_status(200);
    proxy.rejects(
        Call::get("/x").by(&consumer).with(&token),
        401,
        "token_revoked",
    );
}

#[test]
fn a_form_about_a_user_who_changed_since_changes_nothing_and_links_to_that_user() {
    let (_api, proxy) = console("");
    let user = proxy.user("ada");
    let operator = Operator::with(&proxy, WRITE);
    for page in ["/user/disable", "/user/end-sessions"] {
        let asked = operator.open(&format!("{page}?id={}", user.id));
        let name = page.replace('/', " ");
        let update = ["user", "update", "ada", "--display-name", name.trim()];
        proxy.command(&update).done();
        let stale = operator.confirm(&asked);
        stale.answer.has_status(403);
        let again = click(&operator, &stale, "Begin again");
        assert_eq!(again.target, format!("{page}?id={}", user.id));
        again.answer.has_status(200);
    }
    // A login may replace the hash of the password, which must not prevent disabling the account.
    let asked = operator.open(&format!("/user/disable?id={}", user.id));
    let passwd = ["user", "passwd", "ada", "--password-stdin"];
    proxy
        .command_with(&passwd, "another long pass phrase\n")
        .done();
    operator.confirm(&asked).answer.has_status(200);
    assert!(operator.text("/users").contains(">disabled</span>"));
}

#[test]
fn the_facts_of_a_user_are_edited_in_the_console() {
    let (_api, proxy) = console("");
    let (user, other) = (proxy.user("ada"), proxy.user("bob"));
    let operator = Operator::with(&proxy, WRITE);
    let page = click(&operator, &operator.open("/users"), "ada");
    let page = click(&operator, &page, "Edit");
    let form = page.form_to("/user/edit");
    let markup = "<b>Ada</b> & Co";
    let named = |form: crate::support::visitor::Form, name: &str, shown: &str| {
        form.set("name", name).set("display_name", shown)
    };
    // The name of somebody else, and one that no account can have.
    for (name, problem) in [("BOB", "BOB"), ("", "name"), ("a\u{7}", "name: ")] {
        let text = operator.submit(&page, &named(form.clone(), name, markup));
        let text = text.answer.has_status(200).text();
        has(&text, &["class=\"note bad\"", problem, "&#60;b&#62;Ada"]);
        assert!(!text.contains(markup), "{text}");
    }
    let shown = |name: &str| proxy.run(&format!("user show {name} --json")).json();
    assert_eq!(shown("ada")["id"], user.id);
    // Forms of others: another session, another user, another site, and the token that reads.
    let foreign = Operator::with(&proxy, WRITE);
    let forged = named(form.clone(), "eve", "");
    foreign.submit(&page, &forged).answer.has_status(403);
    let of_other = forged.clone().set("id", &other.id);
    operator.submit(&page, &of_other).answer.has_status(403);
    let call = operator.call_of(&page, &forged);
    let cross = call.header("Origin", "https://evil.example");
    operator.send(cross).has_status(403);
    let reader = Operator::with(&proxy, READ);
    reader
        .open(&format!("/user/edit?id={}", user.id))
        .answer
        .has_status(403);
    assert!(
        !reader
            .text(&format!("/user?id={}", user.id))
            .contains("/user/edit")
    );
    let done = operator.submit(&page, &named(form.clone(), "lovelace", markup));
    has(
        &done.answer.has_status(200).text(),
        &["The change is made.", "&#60;b&#62;Ada"],
    );
    let changed = shown("lovelace");
    assert_eq!(
        (&changed["id"], &changed["display_name"]),
        (&Value::from(&*user.id), &Value::from(markup))
    );
    proxy.logs(&[
        "event=\"user_changed\"",
        "by=\"console\"",
        "admin_token=\"write\"",
    ]);
    // The same form again is about a user that was.
    let stale = operator.submit(&page, &named(form, "ada", ""));
    stale.answer.has_status(403);
}

#[test]
fn paused_logins_are_listed_with_their_address_their_end_and_how_to_end_them() {
    let (_api, proxy) =
        console("login.max_failures = '3 per 15m'\nlisten.trusted_proxies = ['127.0.0.1/32']");
    let (ada, bob) = (proxy.user("ada"), proxy.user("bob"));
    let tries = |name: &str, from: &str| {
        let mut visitor = crate::support::Visitor::to(&proxy);
        let page = visitor.open("/service.oauth?mode=applications");
        let form = page.form_with("password");
        let form = form.set("username", name).set("password", "wrong");
        let origin = proxy.origin();
        let call = Call::new(&form.method, &page.target)
            .header("Origin", &origin)
            .header("X-Forwarded-For", from);
        visitor
            .send(call.form(&crate::support::call::form(&form.fields)))
            .status
    };
    let reader = Operator::with(&proxy, READ);
    has(&reader.text("/users"), &["Paused logins (0)"]);
    has(&reader.text("/users/pauses"), &["No login is paused."]);
    let made_up = "<script>nobody</script>";
    for (name, from) in [
        ("ada", "203.0.113.7"),
        ("ada", "2001:db8::1"),
        (made_up, "203.0.113.8"),
    ] {
        while tries(name, from) != 429 {}
    }
    // An address that fails with many accounts, none of which reaches its own limit.
    let mut names = (0..40).map(|number| format!("somebody-{number}"));
    while tries(&names.next().unwrap(), "203.0.113.9") != 429 {}
    let list = Operator::at(&proxy);
    let list = |target: &str| {
        let call = Call::get(target).header("Authorization", &format!("Bearer {READ}"));
        list.send(call).has_status(200).json()
    };
    let first = list("/v1/login-pauses?limit=3");
    let next = first["next"].as_str().unwrap();
    let rest = list(&format!("/v1/login-pauses?cursor={next}"));
    assert_eq!(rest["next"], Value::Null);
    let items = [&first, &rest].map(|page| page["items"].as_array().unwrap().clone());
    let mut found = Vec::from_iter(items.concat().into_iter().map(|it| {
        assert!(it["until"].as_str().unwrap().starts_with("20"), "{it}");
        let word = |name: &str| it[name].as_str().unwrap_or("-").to_owned();
        ["kind", "name", "address"].map(word).join(" ")
    }));
    found.sort();
    assert_eq!(
        found,
        [
            "account - 203.0.113.8",
            "account ada 2001:db8::",
            "account ada 203.0.113.7",
            "address - 203.0.113.9",
        ]
    );
    let text = reader.text("/users/pauses");
    has(
        &text,
        &[
            "4 pauses of this process",
            "a name of none of the first 20,000 users",
            "every account",
            "<code>203.0.113.9</code>",
            "<code>2001:db8::</code>",
            "it ends by itself",
        ],
    );
    for hidden in ["nobody", "somebody", "end-pauses", &bob.id] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
    let operator = Operator::with(&proxy, WRITE);
    let page = click(&operator, &operator.open("/users"), "Paused logins (4)");
    assert_eq!(page.answer.text().matches(">End the pauses</a>").count(), 2);
    let asked = click(&operator, &page, "End the pauses");
    has(&asked.answer.text(), &["End the pauses of ada?"]);
    operator.confirm(&asked).answer.has_status(200);
    has(
        &operator.text("/users/pauses"),
        &["2 pauses of this process"],
    );
    assert!(!operator.text("/users/pauses").contains(&ada.id));
}
