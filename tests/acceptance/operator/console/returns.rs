//! The ways back: from a question to the page that led to it, and from a review to its form.
//!
//! Promise (Console): Cancel and a finished change lead back to the page before, a review to its form with the typed values.

use super::*;

#[test]
fn a_revocation_leads_back_to_the_page_that_it_began_on() {
    let (_api, proxy) = console("");
    let (consumer, user, token) = caller(&proxy, "Shop", "");
    let operator = Operator::with(&proxy, WRITE);
    let user_page = format!("/user?id={}", user.id);
    let consumer_page = format!("/consumer?key={}", consumer.key);
    let list = format!("/tokens?consumer={}", consumer.key);
    for page in [&user_page, &consumer_page, &list] {
        let asked = click(&operator, &operator.open(page), "Revoke");
        assert_eq!(click(&operator, &asked, "Cancel").target, *page);
    }
    let asked = click(&operator, &operator.open(&user_page), "Revoke all tokens");
    assert_eq!(click(&operator, &asked, "Cancel").target, user_page);
    let asked = click(&operator, &operator.open(&consumer_page), "Revoke");
    let done = operator.confirm(&asked);
    assert_eq!(done.target, format!("{consumer_page}&revoked=1"));
    has(
        &done.answer.has_status(200).text(),
        &["Revoked: 1 access token."],
    );
    let revoked = Call::get("/x").by(&consumer).with(&token);
    proxy.rejects(revoked, 401, "token_revoked");
    // What a link of somebody else names is no page of this console.
    proxy.token(&consumer, &user);
    let revoke = format!("/tokens/revoke?user={}", user.id);
    for elsewhere in [
        "https://evil.example/",
        "//evil.example/user",
        "/user/disable",
        "javascript:alert(1)",
        "/user%0D%0AX-Forged:%201",
    ] {
        let asked = operator.open(&format!("{revoke}&back={elsewhere}"));
        assert_eq!(
            click(&operator, &asked, "Cancel").target,
            format!("/tokens?user={}", user.id)
        );
    }
}

#[test]
fn a_review_leads_back_to_the_form_with_what_was_typed() {
    let (_api, proxy) = console(OPERATIONS);
    let operator = Operator::with(&proxy, WRITE);
    let form = operator.open("/consumer/add");
    let mut filled = form.form_with("name").set("name", "Shop & Co");
    for (name, value) in [
        ("callbacks", "https://shop.example/back"),
        ("permission.members.read", "1"),
        ("permissions", "other"),
    ] {
        filled = filled.without(name);
        filled.fields.push((name.to_owned(), value.to_owned()));
    }
    let asked = operator.submit(&form, &filled);
    has(&asked.answer.text(), &["Register Shop &#38; Co?"]);
    let back = asked.form_with("confirmed").press("change", "1");
    let again = operator.submit(&asked, &back);
    let text = again.answer.has_status(200).text();
    has(
        &text,
        &[
            "value=\"Shop &#38; Co\"",
            "https://shop.example/back</textarea>",
            "name=\"permission.members.read\" value=\"1\" checked",
            "name=\"permissions\" aria-describedby=\"permissions-help\" type=\"text\" value=\"other\"",
        ],
    );
    // Nothing is registered before the review is confirmed, and then what the form has.
    assert_eq!(proxy.run("consumer list --json").json_lines().len(), 0);
    let asked = operator.submit(&again, &again.form_with("name"));
    operator.confirm(&asked).answer.has_status(200);
    let listed = proxy.run("consumer list --json").json_lines();
    assert_eq!(listed[0]["name"], "Shop & Co");
    let granted = serde_json::json!(["members.read", "other"]);
    assert_eq!(listed[0]["permissions"], granted);
    let key = listed[0]["key"].as_str().unwrap();
    let form = operator.open(&format!("/consumer/edit?key={key}"));
    let filled = form.form_with("name").set("name", "Store");
    let asked = operator.submit(&form, &filled);
    let back = asked.form_with("confirmed").press("change", "1");
    let again = operator.submit(&asked, &back).answer;
    has(&again.has_status(200).text(), &["value=\"Store\""]);
    let kept = proxy.run(&format!("consumer show {key} --json")).json();
    assert_eq!(kept["name"], "Shop & Co");
}
