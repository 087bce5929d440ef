//! Users: edited, disabled, their sessions ended, their forms.

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
    assert_eq!(
        members,
        ["created_at", "expires_at", "address", "browser", "system"]
    );
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
fn stale_form_changes_nothing_and_links_to_its_user() {
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
    let passwd = ["user", "passwd", "ada", "--password-stdin", "--permanent"];
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
fn a_weak_password_is_set_only_when_somebody_insists() {
    let (_api, proxy) = console("");
    let user = proxy.user("ada");
    let operator = Operator::with(&proxy, WRITE);
    let page = operator.open(&format!("/user/password?id={}", user.id));
    let typed = |page: &Page, password: &str| {
        let form = page.form_to("/user/password");
        form.set("password", password).set("again", password)
    };
    let changes = || proxy.logged(&["event=\"password_changed\""]);
    let box_of_weak = "Set it all the same: the page for users would reject it";
    assert!(!page.answer.text().contains(box_of_weak));
    for (password, weakness) in [
        ("abc", "is shorter than 8 characters"),
        ("password1", "is one of the most common passwords"),
        ("ada", "is shorter than 8 characters"),
    ] {
        let asked = operator.submit(&page, &typed(&page, password));
        has(
            &asked.answer.has_status(200).text(),
            &[weakness, "Nothing was changed.", box_of_weak],
        );
    }
    assert_eq!(changes(), 0);
    let asked = operator.submit(&page, &typed(&page, "abc"));
    let mut insisted = typed(&asked, "abc");
    insisted.fields.push(("weak".to_owned(), "1".to_owned()));
    let done = operator.submit(&asked, &insisted);
    has(&done.answer.text(), &["The change is made."]);
    assert_eq!(changes(), 1);
    // A random one is shown once, and logs the user in.
    let page = operator.open(&format!("/user/password?id={}", user.id));
    let form = page.form_to("/user/password").press("random", "1");
    let shown = operator.submit(&page, &form).answer.has_status(200).text();
    has(
        &shown,
        &["New password of ada", "never shown again", "For the user"],
    );
    let password = shown.split("Password: <span>").nth(1).unwrap();
    let password = password.split('<').next().unwrap().to_owned();
    assert!(password.len() >= 20, "{password}");
    let user = User { password, ..user };
    crate::support::Visitor::logged_in(&proxy, &user);
    // So does one of a new account.
    let page = operator.open("/user/add");
    let form = page.form_to("/user/add").set("name", "eve");
    let shown = operator.submit(&page, &form.press("random", "1")).answer;
    has(&shown.has_status(200).text(), &["New password of eve"]);
}
