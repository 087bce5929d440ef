//! Setting another password.

use super::*;

const NEW: &str = "tr7-kQp9-new";

/// Ada is logged in, and sends the form of the page so.
async fn change(site: &Site, browser: &mut Browser, current: &str, new: &str, again: &str) -> Page {
    let form = browser.get(site, CHANGE).await;
    let csrf = hidden(&form.body, "csrf");
    let fields = [
        ("csrf", csrf.as_str()),
        ("current_password", current),
        ("new_password", new),
        ("new_password_again", again),
    ];
    browser
        .post(site, &attribute(&form.body, "action=\""), &fields)
        .await
}

async fn logged_in(site: &Site) -> Browser {
    site.store.put_user(with_hash("ada"));
    let mut browser = browser();
    browser.log_in(site, LOGIN, "ada", PASSWORD).await;
    browser
}

#[tokio::test]
async fn a_change_rotates_the_session_and_ends_the_others() {
    let site = site();
    let (mut browser, mut elsewhere) = (logged_in(&site).await, logged_in(&site).await);
    let before = browser.session().cloned();
    let page = change(&site, &mut browser, PASSWORD, NEW, NEW).await;
    let next = format!("{APPLICATIONS}&changed=1");
    assert_eq!(location(&page), next);
    assert_ne!(browser.session(), before.as_ref());
    assert_eq!(site.sessions(), 1);
    let page = browser.get(&site, &next).await;
    assert!(page.status == 200 && page.body.contains("Your password is changed"));
    assert!(is_login_form(&elsewhere.get(&site, CHANGE).await));
    let hash = site.store.user_named("ada").password_hash.unwrap();
    assert!(crate::login::password::verify_evenly(
        Some(&hash),
        &[],
        &Secret::from(NEW)
    ));
}

#[tokio::test]
async fn each_mistake_has_its_message_and_its_field() {
    let site = site();
    let mut browser = logged_in(&site).await;
    let long = "x".repeat(1025);
    for (current, new, again, status, message, field) in [
        ("", NEW, NEW, 400, "all three fields", None),
        (PASSWORD, "", NEW, 400, "all three fields", None),
        (PASSWORD, NEW, "", 400, "all three fields", None),
        (
            PASSWORD,
            NEW,
            "tr7-kQp9-nev",
            400,
            "differ",
            Some("new_password_again"),
        ),
        (
            PASSWORD,
            "tr7-kQp",
            "tr7-kQp",
            400,
            "too short",
            Some("new_password"),
        ),
        (
            PASSWORD,
            &long,
            &long,
            400,
            "too long",
            Some("new_password"),
        ),
        (
            PASSWORD,
            PASSWORD,
            PASSWORD,
            400,
            "is the current one",
            Some("new_password"),
        ),
        (
            PASSWORD,
            "Password1",
            "Password1",
            400,
            "most common",
            Some("new_password"),
        ),
        (
            "wrong",
            NEW,
            NEW,
            403,
            "current password is wrong",
            Some("current_password"),
        ),
    ] {
        let page = change(&site, &mut browser, current, new, again).await;
        assert_eq!(page.status, status, "{new}");
        let alert = page.body.split("role=\"alert\">").nth(1).unwrap();
        assert!(
            alert.split('<').next().unwrap().contains(message),
            "{new}: {alert}"
        );
        let invalid = page.body.find(" aria-invalid=\"true\"");
        let invalid = invalid.map(|at| {
            attribute(
                &page.body[page.body[..at].rfind("<input").unwrap()..],
                "name=\"",
            )
        });
        assert_eq!(invalid.as_deref(), field, "{new}");
        assert!(!page.body.contains(NEW) && page.body.contains("autocomplete=\"new-password\""));
    }
    assert_eq!(
        site.store.user_named("ada").password_hash,
        Some(Secret::from("a hash"))
    );
    assert_eq!(site.sessions(), 1);
}

#[tokio::test]
async fn wrong_current_passwords_and_failed_logins_count_together() {
    let site = site();
    let mut browser = logged_in(&site).await;
    for _ in 0..5 {
        assert_eq!(
            change(&site, &mut browser, "wrong", NEW, NEW).await.status,
            403
        );
        assert_eq!(
            super::browser()
                .log_in(&site, LOGIN, "ADA", "wrong")
                .await
                .status,
            403
        );
    }
    let page = change(&site, &mut browser, PASSWORD, NEW, NEW).await;
    assert_eq!(
        (page.status, field(&page, "Retry-After")),
        (429, Some("30"))
    );
    assert!(page.body.contains("30 seconds") && page.body.contains("name=\"new_password\""));
    // What is refused before the password is checked counts nowhere.
    site.clock.advance(Duration::from_secs(30));
    for _ in 0..20 {
        assert_eq!(
            change(&site, &mut browser, PASSWORD, "short", "short")
                .await
                .status,
            400
        );
        let long = "x".repeat(1025);
        assert_eq!(
            change(&site, &mut browser, &long, NEW, NEW).await.status,
            403
        );
    }
    assert_eq!(
        change(&site, &mut browser, PASSWORD, NEW, NEW).await.status,
        303
    );
}

#[tokio::test]
async fn a_busy_or_broken_backend_changes_and_counts_nothing() {
    let site = site();
    let mut browser = logged_in(&site).await;
    for mood in [FakeLogin::BUSY, FakeLogin::BROKEN] {
        site.login.mood.store(mood, Ordering::SeqCst);
        for _ in 0..20 {
            let page = change(&site, &mut browser, PASSWORD, NEW, NEW).await;
            assert!(page.status == 503 && page.body.contains("name=\"new_password\""));
        }
    }
    site.login.mood.store(0, Ordering::SeqCst);
    assert_eq!(
        change(&site, &mut browser, PASSWORD, NEW, NEW).await.status,
        303
    );
}

#[tokio::test]
async fn a_password_that_is_another_meanwhile_is_told() {
    let site = site();
    let mut browser = logged_in(&site).await;
    // The operator's command, which ends the sessions.
    let passwd = |store: &MemoryStore| {
        let mut ada = store.user_named("ada");
        let mut hash = ada.password_hash.unwrap().expose().to_vec();
        hash.push(b'x');
        ada.password_hash = Some(Secret::from(hash));
        store.records().sessions.clear();
        store.put_user(ada);
    };
    *site.login.meanwhile.lock().unwrap() = Some(Box::new(passwd));
    let page = change(&site, &mut browser, PASSWORD, NEW, NEW).await;
    assert!(page.status == 409 && page.body.contains("changed meanwhile"));
    assert_eq!(attribute(&page.body, "<a href=\""), CHANGE);
    assert_eq!(
        site.store.user_named("ada").password_hash,
        Some(Secret::from("a hashxx"))
    );
    assert_eq!(site.sessions(), 0);
    // A login that hashes the same password anew is no such change.
    *site.login.meanwhile.lock().unwrap() = None;
    let mut browser = logged_in(&site).await;
    let first = AtomicU8::new(0);
    let rehash = move |store: &MemoryStore| {
        if first.fetch_add(1, Ordering::SeqCst) == 0 {
            let mut ada = store.user_named("ada");
            ada.password_hash = Some(Secret::from("hashed anew"));
            store.put_user(ada);
        }
    };
    *site.login.meanwhile.lock().unwrap() = Some(Box::new(rehash));
    assert_eq!(
        change(&site, &mut browser, PASSWORD, NEW, NEW).await.status,
        303
    );
}

#[tokio::test]
async fn there_is_no_page_where_another_system_has_the_passwords() {
    let site = site();
    let mut browser = logged_in(&site).await;
    assert!(
        browser
            .get(&site, APPLICATIONS)
            .await
            .body
            .contains("mode=password")
    );
    let services = Services {
        passwords: None,
        ..site.pages.services.clone()
    };
    let site = Site {
        pages: Pages::new(site.pages.params.clone(), services),
        ..site
    };
    assert!(
        !browser
            .get(&site, APPLICATIONS)
            .await
            .body
            .contains("mode=password")
    );
    assert_eq!(browser.get(&site, CHANGE).await.status, 404);
    let fields = [("new_password", NEW)];
    assert_eq!(browser.post(&site, CHANGE, &fields).await.status, 404);
}
