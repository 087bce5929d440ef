//! Access tokens: found, revoked, and in no address.

use super::*;

#[test]
fn two_clicks_lead_to_unused_tokens_and_revoke_them() {
    let (_api, proxy) = console("");
    let (consumer, user, token) = caller(&proxy, "Shop", "");
    proxy.token(&consumer, &user);
    let store = rusqlite::Connection::open(proxy.directory().join("countersign.db")).unwrap();
    let old = "UPDATE access_tokens SET issued_at = issued_at - 91 * 86400 WHERE token = ?1";
    store.execute(old, [&token.token]).unwrap();
    let operator = Operator::with(&proxy, WRITE);
    let unused = click(&operator, &operator.open("/"), "Tokens unused for 90 days");
    has(&unused.answer.text(), &[&token.token[..8]]);
    let asked = click(&operator, &unused, "Revoke all of these");
    has(
        &asked.answer.text(),
        &["It revokes 1 access token unused for 90d"],
    );
    let done = operator.confirm(&asked);
    has(&done.answer.text(), &["Revoked: 1 access token."]);
    proxy.rejects(
        Call::get("/x").by(&consumer).with(&token),
        401,
        "token_revoked",
    );
    proxy.logs(&[
        "event=\"tokens_revoked\"",
        "by=\"console\"",
        "admin_token=\"write\"",
        "revoked=1",
    ]);
}

#[test]
fn last_use_of_a_token_is_shown_with_the_callers_address() {
    let (_api, proxy) = console("listen.trusted_proxies = ['127.0.0.1/32']");
    let (consumer, user, token) = caller(&proxy, "Shop", "");
    // The caller can write what it likes before the address that the trusted proxy adds.
    let from = |address: &str| {
        let call = Call::get("/x").by(&consumer).with(&token);
        call.header("X-Forwarded-For", &format!("192.0.2.1, {address}"))
    };
    proxy.send(from("203.0.113.9")).has_status(200);
    // A call whose signature is wrong is no use.
    let stolen = Token::new(token.token.clone(), "guessed");
    let wrong = Call::get("/x").by(&consumer).with(&stolen);
    let wrong = wrong.header("X-Forwarded-For", "203.0.113.66");
    proxy.rejects(wrong, 401, "signature_invalid");
    let last = within(PATIENCE, "the use is written", || {
        let shown = proxy.run("token list --json").json_lines().remove(0);
        (!shown["last_used_at"].is_null()).then_some(shown)
    });
    assert_eq!(last["last_used_from"], "203.0.113.9");
    let operator = Operator::with(&proxy, WRITE);
    for page in [
        "/tokens".to_owned(),
        format!("/consumer?key={}", consumer.key),
        format!("/user?id={}", user.id),
    ] {
        has(&operator.text(&page), &["from <code>203.0.113.9</code>"]);
    }
    let exported = proxy.run("export -").stdout;
    has(&exported, &["\"last_used_from\":\"203.0.113.9\""]);
}

#[test]
fn the_token_that_was_used_last_is_the_first_of_the_list() {
    let (_api, proxy) = console("");
    let (consumer, user, _) = caller(&proxy, "Shop", "");
    let mut lines = "{\"kind\":\"export\",\"version\":1}\n".to_owned();
    for number in 100..350 {
        // All were used in one hour of 2025, one after the other, but for one.
        let used = match number {
            217 => "2025-06-01T13:00:00Z".to_owned(),
            _ => format!(
                "2025-06-01T12:{:02}:{:02}Z",
                (number - 100) / 60,
                (number - 100) % 60
            ),
        };
        lines += &format!(
            "{{\"kind\":\"token\",\"token\":\"{number}-imported\",\"token_secret\":\"s\",\"consumer\":\"{}\",\"user\":\"{}\",\
             \"issued_at\":\"2025-05-01T00:00:00Z\",\"last_used_at\":\"{used}\",\"last_used_from\":\"203.0.113.{}\"}}\n",
            consumer.key,
            user.id,
            number - 100
        );
    }
    std::fs::write(proxy.directory().join("tokens"), lines).unwrap();
    let file = proxy.directory().join("tokens").display().to_string();
    proxy.command(&["import", &file]).done();
    let operator = Operator::with(&proxy, READ);
    let mut page = operator.open(&format!("/tokens?consumer={}", consumer.key));
    let mut addresses = Vec::new();
    loop {
        let text = page.answer.has_status(200).text();
        let rows = text.split("from <code>203.0.113.").skip(1);
        addresses.extend(rows.map(|row| row.split('<').next().unwrap().parse::<u32>().unwrap()));
        if !text.contains(">Next page</a>") {
            break;
        }
        page = click(&operator, &page, "Next page");
    }
    let mut expected = Vec::from_iter((0..250).rev());
    expected.retain(|it| *it != 117);
    expected.insert(0, 117);
    assert_eq!(addresses, expected);
    for at in [
        format!("/consumer?key={}", consumer.key),
        format!("/user?id={}", user.id),
    ] {
        let text = operator.text(&at);
        // The one that `caller` issued was not used; it is new.
        has(
            &text,
            &["from <code>203.0.113.117</code>", "2025-06-01 13:00:00 UTC"],
        );
        assert!(!text.contains("from <code>203.0.113.100</code>"), "{text}");
    }
}

#[test]
fn no_url_of_the_console_contains_a_whole_token() {
    let (_api, proxy) = console("");
    let (consumer, user, _) = caller(&proxy, "Shop", "");
    let mut lines = "{\"kind\":\"export\",\"version\":1}\n".to_owned();
    for number in 100..250 {
        lines += &format!(
            "{{\"kind\":\"token\",\"token\":\"imported-{number}\",\"token_secret\":\"s\",\"consumer\":\"{}\",\"user\":\"{}\"}}\n",
            consumer.key, user.id
        );
    }
    std::fs::write(proxy.directory().join("tokens"), lines).unwrap();
    let file = proxy.directory().join("tokens").display().to_string();
    proxy.command(&["import", &file]).done();
    let operator = Operator::with(&proxy, WRITE);
    let mut page = operator.open("/tokens");
    let first = operator.open("/tokens");
    let mut rows = 0;
    for _ in 0..2 {
        let text = page.answer.has_status(200).text();
        assert!(!text.contains("imported-1"), "{text}");
        rows += text.matches(">import…<").count();
        assert_eq!(text.contains(">First page</a>"), rows == 150, "{text}");
        if rows == 100 || rows == 99 {
            page = click(&operator, &page, "Next page");
        }
    }
    assert_eq!(rows, 150);
    // The link of one session is not valid in another.
    let other = Operator::with(&proxy, WRITE);
    let html = first.answer.text();
    let revoke = html
        .split("href=\"")
        .find(|rest| rest.contains("/token/revoke"));
    let revoke = revoke.unwrap().split('"').next().unwrap();
    other.open(revoke).answer.has_status(404);
    let asked = operator.open(revoke);
    // The link back from a form that is no longer valid leads to the same token.
    let forged = asked.form_with("confirmed").set("csrf", "x");
    let stale = operator.submit(&asked, &forged);
    assert!(!stale.answer.has_status(403).text().contains("imported-1"));
    let asked = click(&operator, &stale, "Begin again");
    let done = operator.confirm(&asked);
    assert!(done.answer.has_status(200).text().contains("Revoked: 1"));
}
