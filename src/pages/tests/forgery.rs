//! Forms that did not come from our own page in this browser.

use super::*;

/// Every form there is: where it is posted to, and its fields without `csrf`.
fn forms() -> [(&'static str, Vec<(&'static str, &'static str)>); 9] {
    let login = || vec![("username", "ada"), ("password", PASSWORD)];
    [
        (AUTHORIZE, vec![("decision", "allow")]),
        (AUTHORIZE, vec![("decision", "deny")]),
        (AUTHORIZE, vec![("switch", "user")]),
        (AUTHORIZE, login()),
        (LOGIN, login()),
        (APPLICATIONS, vec![("revoke", "access-token-1")]),
        (LOGOUT, vec![]),
        (LOGOUT, vec![("everywhere", "1")]),
        (
            CHANGE,
            vec![
                ("current_password", PASSWORD),
                ("new_password", "another one"),
                ("new_password_again", "another one"),
            ],
        ),
    ]
}

/// The right value for a form, taken from the page that shows it.
async fn right_value(
    site: &Site,
    browser: &mut Browser,
    url: &str,
    fields: &[(&str, &str)],
) -> String {
    let is_login = fields.iter().any(|(name, _)| *name == "username");
    let mut visitor = browser.clone();
    if is_login {
        // The form is only shown to those without a session.
        visitor.cookies.remove("__Host-countersign");
    }
    let page = match url {
        LOGOUT => visitor.get(site, APPLICATIONS).await,
        url => visitor.get(site, url).await,
    };
    if is_login {
        browser.cookies.extend(visitor.cookies);
    }
    match url {
        APPLICATIONS if !is_login => {
            let form = page.body.split("aria-label=\"Withdraw").next().unwrap();
            let at = form.rfind("name=\"csrf\"").unwrap();
            attribute(&form[at..], "value=\"")
        }
        LOGOUT if !fields.is_empty() => {
            let form = page.body.split("name=\"everywhere\"").next().unwrap();
            let at = form.rfind("name=\"csrf\"").unwrap();
            attribute(&form[at..], "value=\"")
        }
        _ => hidden(&page.body, "csrf"),
    }
}

async fn prepared() -> (Site, Browser) {
    let site = site();
    site.store.put_user(with_hash("ada"));
    site.put_access_token("access-token-1", "ada", |_| {});
    let mut browser = browser();
    browser.at_consent(&site, AUTHORIZE).await;
    (site, browser)
}

fn unchanged(site: &Site) -> bool {
    site.state("request-token-1") == RequestTokenState::Issued
        && site.sessions() == 1
        && site.store.records().access_tokens["access-token-1"]
            .revoked_at
            .is_none()
}

#[tokio::test]
async fn every_form_works_with_its_own_value() {
    for (url, fields) in forms() {
        let (site, mut browser) = prepared().await;
        let csrf = right_value(&site, &mut browser, url, &fields).await;
        let before = browser.cookies.clone();
        let page = browser
            .post(&site, url, &[&fields[..], &[("csrf", &csrf)]].concat())
            .await;
        assert_eq!(page.status, 303, "{url} {fields:?}: {}", page.body);
        assert!(
            !unchanged(&site) || browser.cookies != before,
            "{url} {fields:?}"
        );
    }
}

#[tokio::test]
async fn every_form_is_refused_without_its_value() {
    for (url, fields) in forms() {
        let (site, mut browser) = prepared().await;
        let csrf = right_value(&site, &mut browser, url, &fields).await;
        let damaged = format!("{}A", &csrf[..csrf.len() - 2]);
        for csrf in [None, Some(""), Some(damaged.as_str()), Some("undefined")] {
            let csrf: Vec<_> = csrf.map(|csrf| ("csrf", csrf)).into_iter().collect();
            let page = browser
                .post(&site, url, &[&fields[..], &csrf[..]].concat())
                .await;
            assert_eq!(page.status, 403, "{url} {fields:?} {csrf:?}");
            assert!(unchanged(&site));
        }
    }
}

#[tokio::test]
async fn the_value_of_another_form_does_not_serve() {
    for (at, (url, fields)) in forms().into_iter().enumerate() {
        for (other_at, (other_url, other_fields)) in forms().into_iter().enumerate() {
            // The three buttons of the consent page share a form, as far as the value goes.
            if at == other_at || (at < 3 && other_at < 3) {
                continue;
            }
            let (site, mut browser) = prepared().await;
            let csrf = right_value(&site, &mut browser, other_url, &other_fields).await;
            let page = browser
                .post(&site, url, &[&fields[..], &[("csrf", &csrf)]].concat())
                .await;
            assert_eq!(
                page.status, 403,
                "{other_url} {other_fields:?} for {url} {fields:?}"
            );
            assert!(unchanged(&site));
        }
    }
}

#[tokio::test]
async fn the_value_of_another_browser_does_not_serve() {
    for (url, fields) in forms() {
        let (site, mut browser) = prepared().await;
        // An attacker with an account and a session of their own.
        let mut attacker = super::browser();
        attacker.log_in(&site, AUTHORIZE, "bob", PASSWORD).await;
        site.put_access_token("access-token-1", "bob", |_| {});
        let csrf = right_value(&site, &mut attacker, url, &fields).await;
        site.put_access_token("access-token-1", "ada", |_| {});
        browser.get(&site, LOGIN).await;
        let page = browser
            .post(&site, url, &[&fields[..], &[("csrf", &csrf)]].concat())
            .await;
        assert_eq!(page.status, 403, "{url} {fields:?}");
        assert_eq!(site.state("request-token-1"), RequestTokenState::Issued);
        assert_eq!(site.sessions(), 2);
    }
}

#[tokio::test]
async fn the_value_of_another_token_does_not_serve() {
    let (site, mut browser) = prepared().await;
    site.put_request_token("request-token-2", |_| {});
    site.put_access_token("access-token-0", "ada", |_| {});
    let other = "/service.oauth?mode=auth_req_token&oauth_token=request-token-2";
    let csrf = hidden(&browser.get(&site, other).await.body, "csrf");
    for fields in [("decision", "allow"), ("switch", "user")] {
        assert_eq!(
            browser
                .post(&site, AUTHORIZE, &[fields, ("csrf", &csrf)])
                .await
                .status,
            403
        );
    }
    // Nor does the token's own, posted to the other's address.
    let own = hidden(&browser.get(&site, AUTHORIZE).await.body, "csrf");
    assert_eq!(
        browser
            .post(&site, other, &[("decision", "allow"), ("csrf", &own)])
            .await
            .status,
        403
    );
    assert_eq!(site.state("request-token-2"), RequestTokenState::Issued);
    let first = right_value(
        &site,
        &mut browser,
        APPLICATIONS,
        &[("revoke", "access-token-0")],
    )
    .await;
    let page = browser
        .post(
            &site,
            APPLICATIONS,
            &[("revoke", "access-token-1"), ("csrf", &first)],
        )
        .await;
    assert_eq!(page.status, 403);
    assert!(unchanged(&site));
}

#[tokio::test]
async fn a_form_from_before_a_new_login_is_stale() {
    let (site, mut browser) = prepared().await;
    let consent = browser.get(&site, AUTHORIZE).await;
    let mut visitor = browser.clone();
    visitor.cookies.remove("__Host-countersign");
    visitor.log_in(&site, LOGIN, "ada", PASSWORD).await;
    browser.cookies = visitor.cookies;
    let page = browser.decide(&site, &consent, "allow").await;
    assert_eq!(page.status, 403);
    assert!(page.body.contains("Start again"));
    assert_eq!(site.state("request-token-1"), RequestTokenState::Issued);
}

#[tokio::test]
async fn a_decision_without_a_session_is_stale() {
    let (site, mut browser) = prepared().await;
    let consent = browser.get(&site, AUTHORIZE).await;
    let mut logged_out = browser.clone();
    logged_out.cookies.clear();
    assert_eq!(
        logged_out.decide(&site, &consent, "allow").await.status,
        403
    );
    site.clock.advance(Duration::from_secs(43_200));
    site.put_request_token("request-token-1", |_| {});
    assert_eq!(
        browser.decide(&site, &consent, "allow").await.status,
        403,
        "the session has ended"
    );
    assert_eq!(site.state("request-token-1"), RequestTokenState::Issued);
}

#[tokio::test]
async fn a_disabled_user_decides_nothing() {
    let (site, mut browser) = prepared().await;
    let consent = browser.get(&site, AUTHORIZE).await;
    let mut ada = site.store.user_named("ada");
    ada.enabled = false;
    site.store.put_user(ada);
    assert_eq!(browser.decide(&site, &consent, "allow").await.status, 403);
    assert!(is_login_form(&browser.get(&site, AUTHORIZE).await));
}

#[tokio::test]
async fn what_a_browser_calls_foreign_is_refused_even_with_the_right_value() {
    let foreign: [(Option<&str>, Option<&str>); 12] = [
        (Some("cross-site"), Some(ORIGIN)),
        (Some("same-site"), Some(ORIGIN)),
        (Some("cross-site"), None),
        (Some("Same-Origin"), Some(ORIGIN)),
        (Some(""), Some(ORIGIN)),
        (Some("same-origin"), Some("https://evil.example")),
        (None, Some("https://evil.example")),
        (None, Some("null")),
        (None, Some("")),
        (None, Some("http://service.example")),
        (None, Some("https://service.example:8443")),
        (None, Some("https://service.example.evil")),
    ];
    for (url, fields) in forms() {
        let (site, mut browser) = prepared().await;
        let csrf = right_value(&site, &mut browser, url, &fields).await;
        for (sec_fetch_site, origin) in foreign {
            browser.sec_fetch_site = sec_fetch_site.map(str::to_owned);
            browser.origin = origin.map(str::to_owned);
            let page = browser
                .post(&site, url, &[&fields[..], &[("csrf", &csrf)]].concat())
                .await;
            assert_eq!(
                page.status, 403,
                "{url} {fields:?} {sec_fetch_site:?} {origin:?}"
            );
            assert!(unchanged(&site));
        }
    }
}

#[tokio::test]
async fn a_browser_that_names_no_site_is_left_to_the_forms_value() {
    for (sec_fetch_site, origin) in [
        (None, None),
        (Some("none"), None),
        (Some("same-origin"), None),
        (None, Some(ORIGIN)),
    ] {
        let (site, mut browser) = prepared().await;
        let consent = browser.get(&site, AUTHORIZE).await;
        browser.sec_fetch_site = sec_fetch_site.map(str::to_owned);
        browser.origin = origin.map(str::to_owned);
        assert_eq!(browser.decide(&site, &consent, "allow").await.status, 303);
    }
}

#[tokio::test]
async fn nothing_is_changed_by_any_other_method() {
    for (url, fields) in forms() {
        let (site, mut browser) = prepared().await;
        let csrf = right_value(&site, &mut browser, url, &fields).await;
        let form = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&fields)
            .append_pair("csrf", &csrf)
            .finish();
        for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "post", "TRACE"] {
            let page = browser.clone().send(&site, method, url, &form).await;
            assert_eq!(
                (page.status, field(&page, "Allow")),
                (405, Some("GET, HEAD, POST")),
                "{method} {url}"
            );
        }
        for method in ["GET", "HEAD"] {
            // The fields in the query do not count either.
            let mut visitor = browser.clone();
            visitor
                .send(&site, method, &format!("{url}&{form}"), &form)
                .await;
            assert!(unchanged(&site), "{method} {url}");
        }
    }
}

#[tokio::test]
async fn two_session_cookies_are_refused() {
    let (site, browser) = prepared().await;
    let id = browser.session().unwrap();
    let one = format!("__Host-countersign={id}");
    let two = format!("{one}; {one}");
    let request_id = RequestId::new(&RequestIds::new("id-of-a-page-request"), None);
    let request = |cookies| PageRequest {
        request_id: &request_id,
        trusted_fields: None,
        method: "GET",
        path: PATH,
        query: b"mode=auth_req_token&oauth_token=request-token-1",
        form: b"",
        accept_language: None,
        cookies,
        origin: None,
        sec_fetch_site: None,
        peer: browser.peer,
        now: site.clock.now(),
    };
    let now = site.clock.now();
    for cookies in [vec![two.as_bytes()], vec![one.as_bytes(), one.as_bytes()]] {
        let page = Page::from(site.pages.authorize(request(cookies.clone())).await);
        assert_eq!(page.status, 400);
        assert!(!page.body.contains("decision"));
        assert_eq!(
            site.pages
                .applications(request(cookies.clone()))
                .await
                .status,
            400
        );
        assert!(
            site.pages
                .session(&cookies, None, now)
                .await
                .unwrap()
                .is_none()
        );
        assert!(site.pages.has_session_cookie(&cookies));
    }
    let (session, user) = site
        .pages
        .session(&[one.as_bytes()], None, now)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((session.user, user.name.as_str()), (user.id.clone(), "ada"));
    assert!(
        !site
            .pages
            .has_session_cookie(&[b"__Host-countersign-login=x"])
    );
    site.store.fail(true);
    assert!(
        site.pages
            .session(&[one.as_bytes()], None, now)
            .await
            .is_err()
    );
}
