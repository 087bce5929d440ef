//! Error pages link onward, and addresses that people type lead to a page.

use crate::support::{
    Call, Consumer, Proxy, Reply, Upstream, Visitor,
    browser::Browser,
    has,
    http::Answer,
    legs::{APPLICATIONS, LOGIN, LOGOUT, REQUEST_TOKEN, REVOKE_TOKEN, authorization},
    proxy::Builder,
    upstream::refusing_address,
};

/// The response to a browser that navigates to an address.
fn typed(proxy: &Proxy, target: &str) -> Answer {
    let call = Call::get(target)
        .header("Accept", "text/html,*/*;q=0.8")
        .header("Sec-Fetch-Mode", "navigate")
        .header("Sec-Fetch-Dest", "document")
        .header("Sec-Fetch-Site", "none");
    proxy.send(call)
}

#[test]
fn addresses_that_people_type_redirect_to_the_applications() {
    let api = Upstream::start();
    for unlisted in ["consumer", "nobody"] {
        let proxy = Proxy::with(&api, &format!("operations.unlisted = '{unlisted}'"));
        for target in ["/", "/service.oauth"] {
            let answer = typed(&proxy, target);
            assert_eq!(
                (answer.status, answer.header("location")),
                (303, Some(APPLICATIONS)),
                "{target}: {answer:?}"
            );
            // Programs get the same responses as before.
            let plain = proxy.send(Call::get(target));
            assert!([400, 401].contains(&plain.status), "{plain:?}");
        }
        let user = proxy.user("ada");
        let mut visitor = Visitor::logged_in(&proxy, &user);
        has(
            &visitor.open("/").answer.text(),
            &["Connected applications"],
        );
        assert_eq!(typed(&proxy, "/elsewhere").status, 401);
    }
    assert_eq!(api.count(), 0);
    // An operation may list it.
    let proxy = Proxy::with(&api, "operation = [{ path = '/', access = ['anonymous'] }]");
    assert_eq!(typed(&proxy, "/").status, 200);
    // The language of the address goes on to its login.
    let proxy = Proxy::with(
        &api,
        "operation = [{ path = '/account', access = ['user'] }]",
    );
    let answer = typed(&proxy, "/account?ui_locales=de");
    let location = answer.header("location").unwrap();
    has(location, &["mode=login&ui_locales=de&return_to="]);
}

#[test]
fn log_out_by_a_link_asks_first() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let user = proxy.user("ada");
    assert_eq!(typed(&proxy, LOGOUT).header("location"), Some(LOGIN));
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let page = visitor.open(&format!("{LOGOUT}&ui_locales=de"));
    has(&page.answer.text(), &["abmelden?", "Angemeldet bleiben"]);
    let form = page.form_with("here").press("here", "1");
    let after = visitor.submit(&page, &form);
    // In the same language.
    has(
        &after.answer.text(),
        &["<html lang=\"de\"", "Sie sind abgemeldet."],
    );
    assert!(
        visitor
            .open(APPLICATIONS)
            .forms()
            .iter()
            .any(|form| form.fields.iter().any(|(name, _)| name == "password"))
    );
}

#[test]
fn error_page_names_the_application_its_page_and_the_request() {
    let proxy = Proxy::with(
        &Upstream::start(),
        "pages.help_url = 'https://help.example/'",
    );
    let user = proxy.user("ada");
    let consumer = proxy.consumer_with("Printer <1>", "--website https://printer.example/?a");
    let token = proxy.request_token(&consumer, "oob");
    proxy.decision(&token, &user, "deny");
    let answer = typed(&proxy, &authorization(&token));
    let text = answer.text();
    let id = answer.header("x-request-id").unwrap();
    has(
        &text,
        &["<title>Error: This request was answered already ·"],
    );
    has(
        &text,
        &["The application is <bdi>Printer &#60;1&#62;</bdi>."],
    );
    has(
        &text,
        &[
            "href=\"https://printer.example/?a\"",
            "Back to <bdi>printer.example</bdi>",
        ],
    );
    has(
        &text,
        &[
            &format!("<bdi id=\"request-id\">{id}</bdi>"),
            "https://help.example/",
            "Connected applications",
        ],
    );
    proxy.logs(&["access", &format!("request_id={id}")]);
}

#[test]
fn the_way_back_to_the_application_is_read_with_its_space() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let user = proxy.user("ada");
    let consumer = proxy.consumer_with("Printer", "--website https://printer.example/");
    let token = proxy.request_token(&consumer, "oob");
    proxy.decision(&token, &user, "deny");
    let browser = Browser::start();
    browser.open(&format!("{}{}", proxy.origin(), authorization(&token)));
    browser.text("a.button");
    let text = browser.script("return document.querySelector('a.button').innerText");
    assert_eq!(text, "Back to printer.example");
}

#[test]
fn a_page_says_how_long_to_wait_and_names_a_wrong_signature() {
    let limits = "limits.requests_per_consumer = '1 per 300s'";
    let api = Upstream::start();
    let proxy = Proxy::with(&api, limits);
    let caller = proxy.somebody();
    let call = || Call::get("/photos").header("Accept", "text/html");
    proxy.passes(call().of(&caller));
    let answer = proxy.send(call().of(&caller));
    let text = answer.has_status(429).text();
    has(&text, &["Too many requests", "Try again in 5 minutes."]);
    let forger = Consumer::new(&caller.consumer.key, "wrong");
    let answer = proxy.send(call().by(&forger).with(&caller.token));
    has(
        &answer.has_status(401).text(),
        &[
            "<h1>The signature is wrong</h1>",
            "<details class=\"small\" open>",
            "signature_invalid",
        ],
    );
}

#[test]
fn a_temporary_failure_has_a_link_to_retry_and_to_no_other_host() {
    let config = "operations.unlisted = 'anonymous'";
    let builder = Builder::in_front_of_url(&format!("http://{}", refusing_address()));
    let proxy = builder.config(config).start();
    let text = typed(&proxy, "/photos?a=1&b=%22").text();
    has(
        &text,
        &["<a class=\"button\" href=\"/photos?a=1&#38;b=%22\">Try again</a>"],
    );
    for target in ["//evil.example/", "/\\evil.example/"] {
        let answer = typed(&proxy, target);
        assert!(answer.status >= 400, "{answer:?}");
        let links = answer.text();
        assert!(
            !links.contains("href=\"//") && !links.contains("href=\"/\\"),
            "{links}"
        );
    }
    // An API that accepts a connection and is silent; a nonce window for one request.
    let silent = Upstream::replying(|_| Reply::silence());
    let limits = "upstream.response_timeout = '200ms'\nnonce.max_entries = 1\noperations.unlisted = 'consumer'";
    let slow = Proxy::with(&silent, limits);
    let caller = slow.somebody();
    for status in [504, 503] {
        let call = Call::get("/photos").of(&caller);
        let answer = slow.send(call.header("Accept", "text/html"));
        assert_eq!(answer.status, status, "{answer:?}");
        let id = answer.header("x-request-id").unwrap();
        let shown = format!("<bdi id=\"request-id\">{id}</bdi>");
        has(&answer.text(), &["href=\"/photos\">Try again</a>", &shown]);
    }
    // A link must not send a form again.
    let posted = Call::post("/photos").header("Accept", "text/html");
    let text = proxy.send(posted).text();
    assert!(!text.contains("href=\"/photos"), "{text}");
}

#[test]
fn a_page_at_a_wrong_address_names_the_right_one() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let call = Call::get(LOGIN)
        .host("elsewhere.test")
        .header("Accept", "text/html");
    let answer = proxy.send(call);
    answer.has_status(421);
    has(&answer.text(), &[&format!("href=\"{}\"", proxy.origin())]);
}

#[test]
fn problems_link_to_their_documentation() {
    let builder = Builder::in_front_of_url(&format!("http://{}", refusing_address()));
    let docs = "service.docs_url = 'https://docs.example/errors'";
    let proxy = builder.config(docs).start();
    let form = proxy.rejects(Call::get("/x"), 401, "parameter_absent");
    assert_eq!(
        form.header("Link"),
        Some("<https://docs.example/errors#parameter_absent>; rel=\"help\"")
    );
    // A token call too; its body has only the members of Problem Reporting.
    let form = proxy.rejects(Call::post(REQUEST_TOKEN), 401, "parameter_absent");
    assert_eq!(
        form.header("Link"),
        Some("<https://docs.example/errors#parameter_absent>; rel=\"help\"")
    );
    assert!(!form.text().contains("docs.example"), "{form:?}");
    let json = Call::get("/x").header("Accept", "application/json");
    let problem = proxy.send(json).json();
    assert_eq!(
        problem["type"],
        "https://docs.example/errors#parameter_absent"
    );
    let html = Call::get("/x").header("Accept", "text/html");
    let text = proxy.send(html).text();
    has(
        &text,
        &[
            "<summary>For developers</summary>",
            "https://docs.example/errors#parameter_absent",
        ],
    );
    // A known mistake in the signature, or a problem without a code of Problem Reporting.
    let caller = proxy.somebody();
    for (call, status, heading) in [
        (
            Call::get("/x").of(&caller).signs_method("POST"),
            401,
            "other_method",
        ),
        (
            Call::get("/x").of(&caller).key("x"),
            401,
            "signature_invalid",
        ),
        (Call::get("/x").of(&caller), 502, "bad_gateway"),
        (Call::get("/x").host("elsewhere.test"), 421, "misdirected"),
        (Call::get(REVOKE_TOKEN), 405, "method_not_allowed"),
    ] {
        let answer = proxy.send(call);
        assert_eq!(answer.status, status, "{heading}: {answer:?}");
        let link = format!("<https://docs.example/errors#{heading}>; rel=\"help\"");
        assert_eq!(answer.header("Link"), Some(&*link), "{answer:?}");
    }
    // A redirect is not an error.
    let proxy = Proxy::with(
        &Upstream::start(),
        "service.docs_url = 'https://docs.example/errors'\n\
         operation = [{ path = '/account', access = ['user'] }]",
    );
    let answer = typed(&proxy, "/account");
    assert_eq!((answer.status, answer.header("Link")), (303, None));
}
