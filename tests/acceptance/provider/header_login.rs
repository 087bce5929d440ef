//! Logins that a proxy in front has checked: its fields count, and those of others do not.

use crate::support::{
    Call, Proxy, Upstream, Visitor, call::form, legs::APPLICATIONS, legs::LOGIN,
    legs::authorization, proxy::Builder, upstream::Seen, visitor::Page, words,
};

fn trusting(api: &Upstream, network: &str) -> Builder {
    Proxy::in_front_of(api).config(&format!(
        "operation = [{{ path = '/account', access = ['user'] }}, {{ path = '/open' }}]\n\
         listen.trusted_proxies = ['{network}']\n\
         [login]\nbackend = 'header'\nuser_header = 'Remote-User'\ndisplay_name_header = 'X-Full-Name'"
    ))
}

fn page(target: &str) -> Call {
    Call::get(target).header("Sec-Fetch-Site", "none")
}

fn account() -> Call {
    Call::get("/account").header("Sec-Fetch-Site", "same-origin")
}

#[test]
fn user_named_by_a_trusted_proxy_is_logged_in_without_a_form() {
    let api = Upstream::start();
    let proxy = trusting(&api, "127.0.0.1").start();
    let as_ada = |call: Call| {
        call.header("Remote-User", "ada")
            .header("X-Full-Name", "Ada L.")
    };
    let mut browser = Visitor::to(&proxy);
    // A session is opened by a page alone.
    browser.send(as_ada(account())).has_status(401);
    let shown = browser.send(as_ada(page(APPLICATIONS)));
    assert!(shown.text().contains("Ada L. (ada)"), "{shown:?}");
    assert!(!shown.text().contains("password"), "{shown:?}");
    let cookies = browser.cookies.clone();
    browser.send(as_ada(page(APPLICATIONS))).has_status(200);
    assert_eq!(browser.cookies, cookies, "the session goes on");
    assert_eq!(browser.send(as_ada(page(LOGIN))).status, 303);
    browser.send(as_ada(account())).has_status(200);
    let seen = api.only_request();
    assert_eq!(seen.header("x-auth-user"), Some("ada"));
    assert_eq!(
        (seen.header("remote-user"), seen.header("x-full-name")),
        (None, None)
    );
}

#[test]
fn only_a_trusted_proxy_names_the_user_in_any_spelling() {
    let api = Upstream::start();
    let proxy = trusting(&api, "192.0.2.1").start();
    let mut browser = Visitor::to(&proxy);
    for name in words("Remote-User remote-user REMOTE_USER Remote.User X-Forwarded-User") {
        let answer = browser.send(page(APPLICATIONS).header(name, "ada"));
        assert_eq!(answer.status, 403, "{name}: {answer:?}");
        browser.send(account().header(name, "ada")).has_status(401);
    }
    assert!(browser.cookies.is_empty());
    // The API gets neither name from an unauthenticated caller: it may believe them too.
    let caller = proxy.somebody();
    for name in words("Remote-User X-Full-Name x_full_name X.Full.Name") {
        proxy
            .send(Call::get("/open").of(&caller).header(name, "Eve"))
            .has_status(200);
        let seen = api.last_request();
        let is_eve = |(_, value): &(String, String)| value == "Eve";
        assert!(!seen.fields.0.iter().any(is_eve), "{name}: {seen:?}");
    }
    // Nor is a trusted proxy believed that names two users, or uses a field of a similar name.
    let proxy = trusting(&api, "127.0.0.1").start();
    let mut browser = Visitor::to(&proxy);
    for (fields, status) in [
        (&[("Remote-User", "ada"), ("Remote-User", "eve")][..], 400),
        (&[("Remote-User", "ada"), ("Remote-User", "ada")], 400),
        (&[("Remote-User", "ada, eve")], 400),
        (&[("Remote-User", "ada eve")], 400),
        (&[("Remote-User", "..")], 400),
        (&[("Remote-User", "")], 403),
        (&[("Remote_User", "ada")], 403),
        (&[("Connection", "Remote-User")], 403),
    ] {
        let call = fields
            .iter()
            .fold(page(APPLICATIONS), |call, (name, value)| {
                call.header(name, value)
            });
        assert_eq!(browser.send(call).status, status, "{fields:?}");
    }
    assert!(browser.cookies.is_empty());
    // There is no login form to send either.
    let form = Call::post(LOGIN)
        .header("Origin", &proxy.origin())
        .header("Remote-User", "ada");
    let answer = browser.send(form.form("username=ada&password=x&csrf=x"));
    assert_eq!(answer.status, 403, "{answer:?}");
    let is_open = |seen: &Seen| seen.target == "/open";
    assert!(api.requests().iter().all(is_open));
}

#[test]
fn a_session_is_valid_only_for_the_user_it_was_opened_for() {
    let api = Upstream::start();
    let proxy = trusting(&api, "127.0.0.1").start();
    let mut browser = Visitor::to(&proxy);
    browser.send(page(APPLICATIONS).header("Remote-User", "ada"));
    let of_ada = browser.cookies.clone();
    browser
        .send(account().header("Remote-User", "ada"))
        .has_status(200);
    // Another user has the same browser, or a user is no longer named.
    browser
        .send(account().header("Remote-User", "bob"))
        .has_status(401);
    browser.send(account()).has_status(401);
    let unnamed = browser.send(page(APPLICATIONS));
    assert_eq!(unnamed.status, 403, "{unnamed:?}");
    let shown = browser.send(page(APPLICATIONS).header("Remote-User", "bob"));
    assert!(
        shown.text().contains("bob") && !shown.text().contains("ada"),
        "{shown:?}"
    );
    assert_ne!(browser.cookies, of_ada);
    // This has ended the session of the first one.
    browser.cookies = of_ada;
    browser
        .send(account().header("Remote-User", "ada"))
        .has_status(401);
    // A user disabled here stays locked out.
    proxy.run("user disable bob");
    let answer = browser.send(page(APPLICATIONS).header("Remote-User", "bob"));
    assert_eq!(answer.status, 403, "{answer:?}");
    assert_eq!(api.requests().len(), 1);
}

#[test]
fn get_without_a_form_opens_no_session_and_sessions_are_bounded() {
    let api = Upstream::start();
    let proxy = trusting(&api, "127.0.0.1")
        .config("limits.sessions_per_user = 3")
        .start();
    let opens = |target: &str| {
        let mut browser = Visitor::to(&proxy);
        let answer = browser.send(page(target).header("Remote-User", "ada"));
        assert!(answer.status < 400, "{target}: {answer:?}");
        browser.cookies
    };
    assert!(opens(LOGIN).is_empty());
    // The redirect back into the API needs one.
    let first = opens(&format!("{LOGIN}&return_to=/account"));
    assert!(!first.is_empty());
    let more = (0..4).map(|_| opens(APPLICATIONS));
    let opened: Vec<_> = [first].into_iter().chain(more).collect();
    let is_open = |cookies: &std::collections::BTreeMap<String, String>| {
        let mut browser = Visitor::to(&proxy);
        browser.cookies.clone_from(cookies);
        browser.send(account().header("Remote-User", "ada")).status == 200
    };
    // Sessions of the same second have no order, but the newest one stays.
    assert_eq!(opened.iter().filter(|one| is_open(one)).count(), 3);
    assert!(is_open(&opened[4]));
    // The verifier is shown without a form too.
    let consumer = proxy.consumer("Printer");
    let request = proxy.request_token(&consumer, "oob");
    let mut browser = Visitor::to(&proxy);
    let target = authorization(&request);
    let consent = browser.send(page(&target).header("Remote-User", "ada"));
    let consent = Page {
        target: target.clone(),
        answer: consent,
    };
    let fields = consent.form_with("decision").fields;
    let allow: Vec<(String, String)> = fields
        .into_iter()
        .chain([("decision".to_owned(), "allow".to_owned())])
        .collect();
    let decided = Call::post(&target)
        .header("Origin", &proxy.origin())
        .header("Remote-User", "ada")
        .form(&form(&allow));
    browser.send(decided).has_status(303);
    assert!(opens(&target).is_empty());
}
