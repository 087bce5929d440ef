//! The language of a page: that of `ui_locales`, which goes on with the user, else the browser's.

use super::*;

#[track_caller]
fn has_language(page: &Page, tag: &str) {
    let start = format!("<!doctype html>\n<html lang=\"{tag}\"");
    assert!(page.body.starts_with(&start), "{tag}: {}", page.body);
}

#[tokio::test]
async fn ui_locales_goes_on_from_login_over_consent_to_the_applications() {
    let site = site();
    let mut browser = browser();
    browser.accept_language = Some("ko".to_owned());
    let asked = format!("{AUTHORIZE}&ui_locales=tlh+ar-EG+de");
    let here = format!("{AUTHORIZE}&ui_locales=ar");
    let login = browser.get(&site, &asked).await;
    has_language(&login, "ar");
    assert_eq!(attribute(&login.body, "action=\""), here);
    let wrong = browser.log_in(&site, &asked, "ada", "wrong").await;
    has_language(&wrong, "ar");
    assert_eq!(
        location(&browser.log_in(&site, &asked, "ada", PASSWORD).await),
        here
    );
    let consent = browser.get(&site, &here).await;
    has_language(&consent, "ar");
    assert!(
        consent
            .body
            .contains("تسمح للتطبيق <bdi>Photo Printer</bdi>"),
        "{}",
        consent.body
    );
    let applications = attribute(&consent.body, "<a href=\"");
    assert_eq!(applications, format!("{APPLICATIONS}&ui_locales=ar"));
    has_language(&browser.get(&site, &applications).await, "ar");
    let stale = browser.post(&site, &here, &[("decision", "allow")]).await;
    has_language(&stale, "ar");
    assert_eq!(attribute(&stale.body, "<a href=\""), here);
    browser.decide(&site, &consent, "deny").await;
    has_language(&browser.get(&site, &here).await, "ar");
}

#[tokio::test]
async fn without_ui_locales_the_browser_decides_and_nothing_goes_on() {
    let site = site();
    let mut browser = browser();
    browser.accept_language = Some("tlh, fr-CA;q=0.5, en;q=0.3".to_owned());
    for url in [
        AUTHORIZE.to_owned(),
        format!("{AUTHORIZE}&ui_locales=tlh"),
        format!("{AUTHORIZE}&ui_locales="),
        format!("{AUTHORIZE}&ui_locales=de&ui_locales=de"),
        format!("{AUTHORIZE}&ui_locales=\"><script>"),
    ] {
        let login = browser.get(&site, &url).await;
        has_language(&login, "fr");
        assert_eq!(attribute(&login.body, "action=\""), AUTHORIZE, "{url}");
    }
    browser.accept_language = None;
    has_language(&browser.get(&site, LOGIN).await, "en");
}
