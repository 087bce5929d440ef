//! What a user sees and ends of what was allowed before.

use super::*;

async fn logged_in(site: &Site, name: &str) -> Browser {
    let mut browser = browser();
    let page = browser.log_in(site, APPLICATIONS, name, PASSWORD).await;
    assert_eq!(location(&page), APPLICATIONS);
    browser
}

fn tokens(page: &Page) -> Vec<&str> {
    let buttons = page.body.split("name=\"revoke\" value=\"").skip(1);
    buttons
        .map(|rest| rest.split('"').next().unwrap())
        .collect()
}

/// The value of the form that revokes `token`.
fn revoke_csrf(page: &Page, token: &str) -> String {
    let before = page
        .body
        .split(&format!("name=\"revoke\" value=\"{token}\""))
        .next()
        .unwrap();
    attribute(
        &before[before.rfind("name=\"csrf\"").unwrap()..],
        "value=\"",
    )
}

#[tokio::test]
async fn lists_what_is_alive_and_ones_own() {
    let site = site_with(|params| params.access_idle = Some(Duration::from_secs(20_000_000)));
    let now = site.clock.now();
    site.put_access_token("alive", "ada", |token| {
        token.last_used_at = Some(UnixTime(1_749_000_000));
        token.permissions = vec!["read".parse().unwrap(), "print".parse().unwrap()];
    });
    site.put_access_token("never-used", "ada", |_| {});
    site.put_access_token("of-bob", "bob", |_| {});
    site.put_access_token("revoked", "ada", |token| token.revoked_at = Some(now));
    site.put_access_token("expired", "ada", |token| token.expires_at = Some(now));
    site.put_access_token("not-yet-expired", "ada", |token| {
        token.expires_at = Some(UnixTime(now.0 + 1))
    });
    site.put_access_token("idle", "ada", |token| {
        token.issued_at = UnixTime(1_700_000_000)
    });
    site.put_access_token("old-but-used", "ada", |token| {
        token.issued_at = UnixTime(1_700_000_000);
        token.last_used_at = Some(UnixTime(1_740_000_000));
    });
    site.put_access_token("of-nobody", "ada", |token| {
        token.consumer = "gone".parse().unwrap()
    });
    let page = logged_in(&site, "ada").await.get(&site, APPLICATIONS).await;
    assert_eq!(
        tokens(&page),
        [
            "alive",
            "never-used",
            "not-yet-expired",
            "of-nobody",
            "old-but-used"
        ]
    );
    for part in [
        "Photo Printer",
        "<bdi>See your photos</bdi> · <bdi>print</bdi>",
        "2025-06-04",
        "not used yet",
        "<bdi>gone</bdi>",
        "Log out",
    ] {
        assert!(page.body.contains(part), "{part}: {}", page.body);
    }
    let page = logged_in(&site, "bob").await.get(&site, APPLICATIONS).await;
    assert_eq!(tokens(&page), ["of-bob"]);
}

#[tokio::test]
async fn asks_for_a_login_first() {
    let site = site();
    site.put_access_token("access-token-1", "ada", |_| {});
    let page = browser().get(&site, APPLICATIONS).await;
    assert!(is_login_form(&page) && !page.body.contains("Photo Printer"));
    let mut browser = logged_in(&site, "bob").await;
    assert!(
        browser
            .get(&site, APPLICATIONS)
            .await
            .body
            .contains("No application can act for you")
    );
}

#[tokio::test]
async fn revokes_the_one_that_was_chosen() {
    let site = site();
    for token in ["access-token-1", "access-token-2"] {
        site.put_access_token(token, "ada", |_| {});
    }
    let mut browser = logged_in(&site, "ada").await;
    let page = browser.get(&site, APPLICATIONS).await;
    let csrf = revoke_csrf(&page, "access-token-2");
    let page = browser
        .post(
            &site,
            APPLICATIONS,
            &[("csrf", &csrf), ("revoke", "access-token-2")],
        )
        .await;
    let page = browser.get(&site, location(&page)).await;
    assert_eq!(tokens(&page), ["access-token-1"]);
    assert!(page.body.contains("role=\"status\""));
    let records = site.store.records();
    assert_eq!(
        records.access_tokens["access-token-2"].revoked_at,
        Some(site.clock.now())
    );
    assert_eq!(records.access_tokens["access-token-1"].revoked_at, None);
}

#[tokio::test]
async fn never_revokes_another_users() {
    let site = site();
    site.put_access_token("access-token-1", "bob", |_| {});
    let browser_of_ada = logged_in(&site, "ada").await;
    // With a value that is right for ada's session and this token, as no page of ours shows it.
    let id = Secret::from(browser_of_ada.session().unwrap().as_str());
    let csrf = csrf::value(&id, csrf::FormPurpose::Revoke, "access-token-1");
    let page = browser_of_ada
        .clone()
        .post(
            &site,
            APPLICATIONS,
            &[("csrf", &csrf), ("revoke", "access-token-1")],
        )
        .await;
    assert_eq!(page.status, 404);
    assert_eq!(
        site.store.records().access_tokens["access-token-1"].revoked_at,
        None
    );
    let csrf = csrf::value(&id, csrf::FormPurpose::Revoke, "no-such-token");
    let unknown = browser_of_ada
        .clone()
        .post(
            &site,
            APPLICATIONS,
            &[("csrf", &csrf), ("revoke", "no-such-token")],
        )
        .await;
    assert_eq!(unknown, page, "nobody learns which tokens there are");
}

#[tokio::test]
async fn many_applications_take_several_pages() {
    let site = site();
    for number in 0..2300 {
        site.put_access_token(&format!("{number:04}"), "ada", |token| {
            token.revoked_at = (60..2295).contains(&number).then_some(UnixTime(1));
        });
    }
    let mut browser = logged_in(&site, "ada").await;
    let mut url = APPLICATIONS.to_owned();
    let mut seen = Vec::new();
    let mut pages = 0;
    loop {
        let page = browser.get(&site, &url).await;
        assert!(tokens(&page).len() <= 50);
        seen.extend(tokens(&page).into_iter().map(str::to_owned));
        pages += 1;
        match page.body.split_once(">More</a>") {
            Some((before, _)) => {
                url = attribute(&before[before.rfind("<a ").unwrap()..], "href=\"");
            }
            None => break,
        }
    }
    let expected: Vec<_> = (0..60)
        .chain(2295..2300)
        .map(|number| format!("{number:04}"))
        .collect();
    assert_eq!(seen, expected);
    assert_eq!(pages, 3);
}
