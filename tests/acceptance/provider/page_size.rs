//! Pages with as much content as they can have, in every language: none is larger than [`MAX_PAGE`], and the rest is on
//! the next page. A consent page is larger by its permissions.
//!
//! Promise (Flow and pages): No page has more than 13 KiB with its style, except a consent page with many permissions. Also in
//! `tests/acceptance/provider/accessibility.rs`.

use serde_json::json;

use crate::{
    acceptance::provider::accessibility::MAX_PAGE,
    support::{
        Call, Proxy, Upstream, Visitor, fresh,
        legs::{APPLICATIONS, LOGIN, LOGOUT, PASSWORD, authorization, pages_not_among},
        visitor::Page,
    },
};

const LANGUAGES: [&str; 11] = [
    "en", "ar", "de", "es", "fr", "ja", "ko", "pt-BR", "pt-PT", "zh-Hans", "zh-Hant",
];

const APPLICATIONS_OF_ONE: usize = 40;
const SESSIONS_OF_ONE: usize = 100;
const PERMISSIONS: usize = 20;

/// Permissions, links, lifetimes and names as long as a service may have them.
fn config() -> String {
    let url = |page| format!("https://www.photos-and-albums.example/company/legal/{page}.html");
    let mut config = format!(
        "login.max_failures = '2 per 15m'
        service.docs_url = '{}'
        tokens.access_ttl = '360d'
        tokens.access_idle = '90d'
        tokens.profile = ['display_name']
        limits.sessions_per_user = 1000
        [pages]
        name = 'Photos and Albums of Springfield'
        accent = '#ffcc00'
        background = '#fdf7fb'
        background_dark = '#999999'
        permission_language = 'tlh'
        terms_url = '{}'
        privacy_url = '{}'
        help_url = '{}'
        recovery_url = '{}'\n",
        url("errors"),
        url("terms"),
        url("privacy"),
        url("help"),
        url("recovery"),
    );
    for number in 0..PERMISSIONS {
        let (sensitive, title) = (number % 4 == 0, "Print photos of one of your albums");
        let description = "All captions and comments too, also those of others.";
        config += &format!(
            "[[permission]]\nname = 'photos.print-{number}'\ntitle = '{title}'\ndescription = '{description}'\nsensitive = {sensitive}\n"
        );
    }
    config
}

/// A name of 255 bytes that begins with a number.
fn name(number: usize) -> String {
    format!("{number:02}.{}", "漢".repeat(84))
}

#[track_caller]
fn fits(page: &Page, place: &str) -> String {
    let size = page.answer.body.len() as u64;
    let status = page.answer.status;
    assert!(
        (1..=MAX_PAGE).contains(&size),
        "{place}, {status}: {size} bytes"
    );
    page.answer.text()
}

/// The address of the first link with this parameter, other than those to the page in other languages.
fn link(text: &str, parameter: &str) -> Option<String> {
    let mut addresses = text
        .split("href=\"/")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap());
    let address = addresses.find(|address| address.contains(parameter))?;
    Some(format!("/{}", address.replace("&#38;", "&")))
}

/// Imports records, one a line.
fn import(proxy: &Proxy, lines: impl Iterator<Item = String>) {
    let head = r#"{"kind":"export","version":1}"#.to_owned();
    let lines: Vec<String> = [head].into_iter().chain(lines).collect();
    proxy
        .command_with(&["import", "-"], &(lines.join("\n") + "\n"))
        .done();
}

#[test]
fn full_pages_are_no_larger_than_others_and_lead_to_the_rest() {
    let proxy = Proxy::with(&Upstream::start(), &config());
    let permissions: Vec<_> = (0..PERMISSIONS)
        .map(|number| format!("photos.print-{number}"))
        .collect();
    let user = proxy.user(&"u".repeat(200));
    let store = rusqlite::Connection::open(proxy.directory().join("countersign.db")).unwrap();
    store
        .execute("UPDATE users SET display_name = ?1", [name(0)])
        .unwrap();
    let key = |number: usize| format!("shop-{number}{}", "{".repeat(20));
    let lines = (0..APPLICATIONS_OF_ONE).flat_map(|number| {
        let key = key(number);
        let consumer = json!({
            "kind": "consumer", "key": key, "secret": "s", "name": name(number), "permissions": permissions,
            "description": name(0), "website": format!("https://www.photos-and-albums.example/{}", "w".repeat(120)),
        });
        let token = json!({
            "kind": "token", "token": format!("token-{number}"), "token_secret": "s", "consumer": key, "user": user.id,
            "permissions": permissions[..3], "issued_at": "2026-11-22T00:00:00Z",
        });
        [consumer.to_string(), token.to_string()]
    });
    import(&proxy, lines);
    let consumer = crate::support::Consumer::new(key(0), "s");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let more = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
        INSERT INTO sessions (id_hash, user, created_at, expires_at, address, browser, system)
        SELECT randomblob(32), user, created_at - i, expires_at, '2001:db8:1234:5678:9abc:def0:1234:5678', 'Samsung Internet', 'Windows' FROM sessions, n";
    store.execute(more, [SESSIONS_OF_ONE as i64 - 1]).unwrap();

    for language in LANGUAGES {
        let place = |what: &str| format!("{what} in {language}");
        let at = |target: &str| format!("{target}&ui_locales={language}");
        // Each application is on one page, and each session.
        let mut seen: Vec<usize> = Vec::new();
        let mut next = Some(at(APPLICATIONS));
        let mut ends = None;
        while let Some(target) = next {
            let text = fits(&visitor.open(&target), &place("applications"));
            let names = text.split("<h2 id=\"a").skip(1);
            let names = names.map(|rest| rest.split("<bdi>").nth(1).unwrap());
            seen.extend(
                names.map(|rest| rest.split('.').next().unwrap().parse::<usize>().unwrap()),
            );
            ends = ends.or_else(|| link(&text, "sessions=0"));
            next = link(&text, "from=");
        }
        seen.sort_unstable();
        assert_eq!(seen, Vec::from_iter(0..APPLICATIONS_OF_ONE), "{language}");
        let (mut sessions, mut next) = (0, ends);
        assert!(next.is_some(), "a link to all sessions");
        while let Some(target) = next {
            let text = fits(&visitor.open(&target), &place("sessions"));
            sessions += text.matches("name=\"session\"").count();
            next = link(&text, "&#38;sessions=");
        }
        assert_eq!(sessions, SESSIONS_OF_ONE - 1, "{language}");

        let withdraw = format!("{APPLICATIONS}&withdraw={}", key(0).replace('{', "%7B"));
        fits(&visitor.open(&at(&withdraw)), &place("withdraw"));
        fits(&visitor.open(&at(PASSWORD)), &place("password"));
        fits(&visitor.open(&at(LOGOUT)), &place("logout"));
        let callback = "oob";
        let token = proxy.request_token(&consumer, callback);
        let asked = at(&authorization(&token));
        // It lists everything, whatever the size.
        let page = visitor.open(&asked);
        let size = page.answer.body.len() as u64;
        let most = MAX_PAGE + 300 * PERMISSIONS as u64;
        assert!(size <= most, "{}: {size} bytes", place("consent"));
        let text = page.answer.text();
        assert_eq!(text.matches("Print photos of").count(), PERMISSIONS);
        let page = visitor.open(&asked);
        let denied = visitor.decide(&page, "deny");
        fits(&denied, &place("denied"));
        fits(&visitor.open(&asked), &place("answered"));

        let mut logged_out = Visitor::to(&proxy);
        let asked = at(&authorization(&proxy.request_token(&consumer, callback)));
        let page = logged_out.open(&asked);
        let wrong = page.form_with("password").set("username", &"&".repeat(255));
        let page = logged_out.submit(&page, &wrong.set("password", "wrong"));
        fits(&page, &place("login"));
        let long = format!("{LOGIN}&return_to=/{}", "a%20".repeat(300));
        fits(
            &logged_out.open(&at(&long)),
            &place("login for a long path"),
        );
        for target in [
            "/a?oauth_token=x",
            "/service.oauth?mode=auth_req_token",
            "/b",
        ] {
            let joint = if target.contains('?') { "" } else { "?" };
            let target = format!("{target}{joint}&{}={}", fresh("x"), "&".repeat(700));
            fits(&logged_out.open(&at(&target)), &place("error"));
        }
        let lost = Call::get(&format!("/lost?{}", "&".repeat(1500)));
        let answer = logged_out.send(lost.header("Accept-Language", language));
        assert!(answer.body.len() as u64 <= MAX_PAGE, "{answer:?}");
        visitor.opened.extend(logged_out.opened);
    }
    // The page of a developer shows requests: `accessibility.rs` has its limit.
    assert_eq!(pages_not_among(&proxy, &visitor.opened), ["developer"]);
}

#[test]
fn pages_with_usual_names_hold_8_applications_20_permissions() {
    let proxy = Proxy::with(&Upstream::start(), "");
    let user = proxy.user("ada");
    let permissions: Vec<_> = (0..20)
        .map(|number| format!("photos.albums.print-{number}"))
        .collect();
    let lines = (0..40).flat_map(|number| {
        let key = format!("shop-{number}");
        let consumer = json!({ "kind": "consumer", "key": key, "secret": "s", "name": "Photo printer",
            "permissions": permissions });
        let token = json!({ "kind": "token", "token": format!("token-{number}"), "token_secret": "s", "consumer": key,
            "user": user.id, "permissions": permissions[..2] });
        [consumer.to_string(), token.to_string()]
    });
    import(&proxy, lines);
    let consumer = crate::support::Consumer::new("shop-0", "s");
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let text = fits(&visitor.open(APPLICATIONS), "applications");
    let shown = text.matches("class=\"row\"").count() - 1;
    assert!(shown >= 8, "{shown} applications on one page");
    let token = proxy.request_token(&consumer, "oob");
    let text = fits(&visitor.open(&authorization(&token)), "consent");
    assert_eq!(text.matches("photos.albums.print-").count(), 20);
}

#[test]
fn a_user_with_thousands_of_tokens_sees_every_application() {
    let proxy = Proxy::with(&Upstream::start(), "");
    let user = proxy.user("ada");
    let lines = (0..30).flat_map(|number| {
        let (key, name) = (format!("shop-{number:02}"), format!("Shop {number:02}."));
        let consumer = json!({ "kind": "consumer", "key": key, "secret": "s", "name": name });
        let token = json!({ "kind": "token", "token": format!("token-{number:02}"), "token_secret": "s", "consumer": key,
            "user": user.id });
        [consumer.to_string(), token.to_string()]
    });
    import(&proxy, lines);
    // The first tokens in the order of the store are of one application; all of those in the first read are expired.
    let store = rusqlite::Connection::open(proxy.directory().join("countersign.db")).unwrap();
    let copy = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4500)
        INSERT INTO access_tokens (token, secret, consumer, user, permissions, issued_at, expires_at)
        SELECT printf('a-%05d', i), secret, consumer, user, permissions, issued_at, iif(i <= 2000, issued_at, NULL)
        FROM access_tokens, n WHERE token = 'token-00'";
    assert_eq!(store.execute(copy, []).unwrap(), 4500);
    let mut visitor = Visitor::logged_in(&proxy, &user);
    let first = visitor.open(APPLICATIONS).answer.text();
    assert!(first.contains("None of these can act for you."), "{first}");
    let mut seen: Vec<usize> = Vec::new();
    let mut pages = 0;
    let mut next = Some(APPLICATIONS.to_owned());
    while let Some(target) = next {
        let text = fits(&visitor.open(&target), "applications");
        let names = text.split("<bdi>Shop ").skip(1);
        seen.extend(names.map(|rest| rest[..2].parse::<usize>().unwrap()));
        next = link(&text, "from=").or_else(|| link(&text, "after="));
        pages += 1;
    }
    seen.sort_unstable();
    // The first application is on a page of each read that has tokens of it.
    seen.dedup();
    assert_eq!(seen, Vec::from_iter(0..30));
    assert!(pages >= 4, "{pages}");
}
