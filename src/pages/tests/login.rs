//! Logging in and out.

use super::*;

async fn failed(site: &Site, browser: &mut Browser, name: &str) -> Page {
    browser.log_in(site, LOGIN, name, "wrong").await
}

#[tokio::test]
async fn a_login_opens_a_session_of_its_own() {
    let site = site();
    let mut browser = browser();
    let page = browser.log_in(&site, LOGIN, "ADA", PASSWORD).await;
    assert_eq!(location(&page), APPLICATIONS);
    let cookie = page
        .fields
        .iter()
        .find(|(name, value)| *name == "Set-Cookie" && value.contains("Max-Age=43200"))
        .unwrap();
    assert!(cookie.1.starts_with("__Host-countersign=") && cookie.1.ends_with("; Secure"));
    assert_eq!(
        browser.cookies.len(),
        1,
        "the login cookie has done its work"
    );
    let records = site.store.records();
    let session = records.sessions.values().next().unwrap();
    assert_eq!(session.user.as_str(), "id-ada");
    assert_eq!(
        session.expires_at,
        site.clock.now().after(Duration::from_secs(43_200))
    );
    assert!(!format!("{:?}", session.id_hash).contains(browser.session().unwrap()));
}

#[tokio::test]
async fn a_session_id_from_before_the_login_is_worth_nothing() {
    let site = site();
    // Planted by an attacker: an id of the right form, and the id of a session of the attacker's own.
    let mut attacker = browser();
    attacker.log_in(&site, LOGIN, "bob", PASSWORD).await;
    for planted in ["a".repeat(43), attacker.session().unwrap().clone()] {
        let mut browser = browser();
        browser.get(&site, LOGIN).await;
        browser
            .cookies
            .insert("__Host-countersign".to_owned(), planted.clone());
        // The form cannot be seen while a session is open, but was before.
        let mut before = browser.clone();
        before.cookies.remove("__Host-countersign");
        let csrf = hidden(&before.get(&site, LOGIN).await.body, "csrf");
        let fields = [
            ("csrf", csrf.as_str()),
            ("username", "ada"),
            ("password", PASSWORD),
        ];
        let page = browser.post(&site, LOGIN, &fields).await;
        assert_eq!(page.status, 303);
        assert_ne!(browser.session(), Some(&planted));
        let cookie = format!("__Host-countersign={planted}");
        let session = site
            .pages
            .session(&[cookie.as_bytes()], None, site.clock.now())
            .await
            .unwrap();
        assert!(session.is_none(), "what the browser had before is ended");
    }
}

#[tokio::test]
async fn unknown_names_wrong_passwords_and_disabled_users_look_alike() {
    let site = site();
    let mut bob = site.store.user_named("bob");
    bob.enabled = false;
    site.store.put_user(bob);
    let mut pages = Vec::new();
    for (name, password) in [
        ("ada", "wrong"),
        ("eve", "wrong"),
        ("eve", PASSWORD),
        ("bob", PASSWORD),
    ] {
        let mut browser = browser();
        browser
            .cookies
            .insert("__Host-countersign-login".to_owned(), "b".repeat(43));
        let mut page = browser.log_in(&site, LOGIN, name, password).await;
        assert!(page.status == 403 && is_login_form(&page) && browser.session().is_none());
        assert!(
            page.body.contains("role=\"alert\"") && page.body.contains("aria-invalid=\"true\"")
        );
        assert!(
            page.body.contains(&format!("value=\"{name}\"")),
            "the name stays in the form"
        );
        page.body = page.body.replace(&format!("value=\"{name}\""), "");
        pages.push(page);
    }
    assert!(pages.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(site.sessions(), 0);
}

#[tokio::test]
async fn impossible_fields_are_refused_before_anybody_is_asked() {
    let site = site();
    let mut browser = browser();
    let (long_name, long_password) = ("n".repeat(256), "p".repeat(1025));
    let calls = site.store.calls();
    for (name, password, status) in [
        ("", PASSWORD, 400),
        ("ada", "", 400),
        ("ada", long_password.as_str(), 403),
        (long_name.as_str(), PASSWORD, 403),
    ] {
        for _ in 0..20 {
            let page = browser.log_in(&site, LOGIN, name, password).await;
            assert!(page.status == status && is_login_form(&page));
        }
    }
    assert_eq!(site.store.calls(), calls, "no look-up, and so no hashing");
    assert_eq!(
        browser.log_in(&site, LOGIN, "ada", PASSWORD).await.status,
        303,
        "nothing was counted"
    );
}

#[tokio::test]
async fn a_user_name_cannot_bring_html_into_the_form() {
    let site = site();
    let page = failed(&site, &mut browser(), "\"><script>alert(1)</script>").await;
    assert!(page.status == 403 && page.body.contains("value=\"&#34;&#62;&#60;script&#62;"));
}

#[tokio::test]
async fn failures_are_throttled_by_account_and_address() {
    let site = site();
    let mut browser = browser();
    for name in ["ada", "nobody"] {
        for _ in 0..10 {
            assert_eq!(failed(&site, &mut browser, name).await.status, 403);
        }
        // Known or not, right password or not.
        let page = browser
            .log_in(&site, LOGIN, &name.to_uppercase(), PASSWORD)
            .await;
        assert_eq!(
            (page.status, field(&page, "Retry-After")),
            (429, Some("30")),
            "{name}"
        );
        assert!(is_login_form(&page) && page.body.contains("30 seconds"));
    }
    let mut elsewhere = super::browser();
    elsewhere.peer = "192.0.2.2".parse().unwrap();
    assert_eq!(
        elsewhere.log_in(&site, LOGIN, "ada", PASSWORD).await.status,
        303
    );
    site.clock.advance(Duration::from_secs(30));
    assert_eq!(
        browser.log_in(&site, LOGIN, "ada", PASSWORD).await.status,
        303
    );
}

#[tokio::test]
async fn forged_forms_do_not_throttle_the_users_address() {
    let site = site();
    let mut browser = browser();
    for _ in 0..200 {
        let fields = [("username", "ada"), ("password", "wrong"), ("csrf", "x")];
        assert_eq!(browser.post(&site, LOGIN, &fields).await.status, 403);
    }
    assert_eq!(
        browser.log_in(&site, LOGIN, "ada", PASSWORD).await.status,
        303
    );
}

#[tokio::test]
async fn a_busy_or_broken_backend_is_told_and_not_counted() {
    let site = site();
    let mut browser = browser();
    for mood in [FakeLogin::BUSY, FakeLogin::BROKEN] {
        site.login.mood.store(mood, Ordering::SeqCst);
        for _ in 0..20 {
            let page = failed(&site, &mut browser, "ada").await;
            assert!(page.status == 503 && is_login_form(&page));
        }
    }
    site.login.mood.store(0, Ordering::SeqCst);
    assert_eq!(
        browser.log_in(&site, LOGIN, "ada", PASSWORD).await.status,
        303
    );
}

#[tokio::test]
async fn forms_in_two_tabs_are_both_good() {
    let site = site();
    let mut browser = browser();
    let first = hidden(&browser.get(&site, LOGIN).await.body, "csrf");
    browser.get(&site, AUTHORIZE).await;
    let fields = [
        ("csrf", first.as_str()),
        ("username", "ada"),
        ("password", PASSWORD),
    ];
    assert_eq!(browser.post(&site, LOGIN, &fields).await.status, 303);
}

#[tokio::test]
async fn returns_only_to_a_path_of_our_own() {
    let site = site();
    for (wanted, next) in [
        ("%2Fmembers%3Fa%3Db", "/members?a=b"),
        ("/members", "/members"),
        ("https%3A%2F%2Fevil.example", APPLICATIONS),
        ("//evil.example", APPLICATIONS),
        ("/%5Cevil.example", APPLICATIONS),
        ("/%09/evil.example", APPLICATIONS),
        ("/.//evil.example", APPLICATIONS),
        ("javascript:alert(1)", APPLICATIONS),
        ("", APPLICATIONS),
    ] {
        let url = format!("{LOGIN}&return_to={wanted}");
        let mut browser = browser();
        assert_eq!(
            location(&browser.log_in(&site, &url, "ada", PASSWORD).await),
            next,
            "{wanted}"
        );
        // Whoever is logged in already goes there at once.
        assert_eq!(location(&browser.get(&site, &url).await), next, "{wanted}");
    }
    let twice = format!("{LOGIN}&return_to=/a&return_to=/b");
    assert_eq!(browser().get(&site, &twice).await.status, 400);
}

#[tokio::test]
async fn logout_is_a_post_and_ends_the_session() {
    let site = site();
    let mut browser = browser();
    browser.log_in(&site, LOGIN, "ada", PASSWORD).await;
    let page = browser.get(&site, LOGOUT).await;
    assert_eq!(
        (page.status, field(&page, "Allow"), site.sessions()),
        (405, Some("POST"), 1)
    );
    let csrf = hidden(&browser.get(&site, APPLICATIONS).await.body, "csrf");
    let old = browser.cookies.clone();
    let page = browser.post(&site, LOGOUT, &[("csrf", &csrf)]).await;
    assert_eq!(location(&page), LOGIN);
    assert_eq!((site.sessions(), browser.session()), (0, None));
    browser.cookies = old;
    assert!(is_login_form(&browser.get(&site, APPLICATIONS).await));
    assert_eq!(
        location(&super::browser().post(&site, LOGOUT, &[]).await),
        LOGIN,
        "nothing to end"
    );
}

#[tokio::test]
async fn a_dead_session_cookie_is_taken_back() {
    let site = site();
    let mut browser = browser();
    for dead in ["a".repeat(43), "nonsense".to_owned()] {
        browser
            .cookies
            .insert("__Host-countersign".to_owned(), dead);
        assert!(is_login_form(&browser.get(&site, LOGIN).await));
        assert_eq!(browser.session(), None);
    }
}

#[tokio::test]
async fn on_plain_http_cookies_have_their_plain_names() {
    let site = site_with(|params| {
        params.secure = false;
        params.origin = "http://127.0.0.1:8080".to_owned();
    });
    let mut browser = browser();
    browser.origin = Some("http://127.0.0.1:8080".to_owned());
    browser.log_in(&site, LOGIN, "ada", PASSWORD).await;
    assert_eq!(browser.cookies.keys().collect::<Vec<_>>(), ["countersign"]);
}

/// Gives Ada another password hash.
fn rehash(store: &MemoryStore) {
    let mut ada = store.user_named("ada");
    let mut hash = ada
        .password_hash
        .map_or(vec![], |hash| hash.expose().to_vec());
    hash.push(b'x');
    ada.password_hash = Some(Secret::from(hash));
    store.put_user(ada);
}

#[tokio::test]
async fn a_password_that_changes_during_its_check_opens_nothing() {
    let site = site();
    let disable = |store: &MemoryStore| {
        let mut ada = store.user_named("ada");
        ada.enabled = false;
        store.put_user(ada);
    };
    let mut bob = browser();
    bob.log_in(&site, LOGIN, "bob", PASSWORD).await;
    // Neither at the first check nor at the second, to which the changed hash leads.
    for (meanwhile, checks) in [(Box::new(rehash) as Meanwhile, 2), (Box::new(disable), 2)] {
        *site.login.meanwhile.lock().unwrap() = Some(meanwhile);
        site.login.checks.store(0, Ordering::SeqCst);
        let mut browser = bob.clone();
        let mut before = super::browser();
        let csrf = hidden(&before.get(&site, LOGIN).await.body, "csrf");
        browser.cookies.extend(before.cookies);
        let fields = [
            ("csrf", csrf.as_str()),
            ("username", "ada"),
            ("password", PASSWORD),
        ];
        let page = browser.post(&site, LOGIN, &fields).await;
        assert!(page.status == 403 && is_login_form(&page), "{}", page.body);
        assert_eq!(site.login.checks.load(Ordering::SeqCst), checks);
        // The session that the browser had goes on.
        assert_eq!((site.sessions(), browser.session()), (1, bob.session()));
    }
    // Such an attempt counts as a failure: eight more, and the pause begins.
    *site.login.meanwhile.lock().unwrap() = None;
    for _ in 0..8 {
        assert_eq!(failed(&site, &mut browser(), "ada").await.status, 403);
    }
    assert_eq!(failed(&site, &mut browser(), "ada").await.status, 429);
}

#[tokio::test]
async fn two_logins_at_once_that_hash_the_password_anew_both_succeed() {
    let site = site();
    let first = AtomicU8::new(0);
    let once = move |store: &MemoryStore| {
        if first.fetch_add(1, Ordering::SeqCst) == 0 {
            rehash(store);
        }
    };
    *site.login.meanwhile.lock().unwrap() = Some(Box::new(once));
    let page = browser().log_in(&site, LOGIN, "ada", PASSWORD).await;
    assert_eq!(location(&page), APPLICATIONS);
    assert_eq!(site.login.checks.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_store_that_fails_under_a_right_password_counts_no_failure() {
    let site = site();
    *site.login.meanwhile.lock().unwrap() = Some(Box::new(|store: &MemoryStore| store.fail(true)));
    for _ in 0..20 {
        let page = browser().log_in(&site, LOGIN, "ada", PASSWORD).await;
        assert_eq!(page.status, 503);
        site.store.fail(false);
    }
    *site.login.meanwhile.lock().unwrap() = None;
    let page = browser().log_in(&site, LOGIN, "ada", PASSWORD).await;
    assert_eq!(page.status, 303);
}
