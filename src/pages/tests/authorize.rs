//! The way of a user who decides.

use super::*;

fn verifier_of(site: &Site, token: &str) -> (String, Option<String>) {
    match site.state(token) {
        RequestTokenState::Authorized {
            user,
            verifier,
            redirect_token,
        } => {
            assert_eq!(user, site.store.user_named("ada").id);
            (verifier.expose_text().to_string(), redirect_token)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn leads_from_login_over_consent_to_the_callback() {
    let site = site();
    let mut browser = browser();
    let page = browser.get(&site, AUTHORIZE).await;
    assert!(page.status == 200 && is_login_form(&page) && page.body.contains("Photo Printer"));
    assert!(
        page.body.contains("autocomplete=\"username\"")
            && page.body.contains("autocomplete=\"current-password\"")
    );
    assert!(
        page.body.contains("<label for=\"username\">")
            && page.body.contains("<label for=\"password\">")
    );

    let consent = browser.at_consent(&site, AUTHORIZE).await;
    for part in [
        "Photo Printer",
        "<bdi>ada</bdi>",
        "See your photos",
        "All albums &#38; captions",
        "print",
        "printer.example",
    ] {
        assert!(consent.body.contains(part), "{part}");
    }
    for button in [
        "name=\"decision\" value=\"allow\"",
        "name=\"decision\" value=\"deny\"",
    ] {
        assert!(consent.body.contains(button));
    }
    let policy = field(&consent, "Content-Security-Policy").unwrap();
    assert!(policy.contains("; form-action 'self' https:;"), "{policy}");

    let page = browser.decide(&site, &consent, "allow").await;
    let (verifier, redirect_token) = verifier_of(&site, "request-token-1");
    assert_eq!(redirect_token, None);
    assert_eq!(
        location(&page),
        format!(
            "https://printer.example/ready?job=7&oauth_token=request-token-1&oauth_verifier={verifier}"
        )
    );
    assert!(verifier.len() >= 22);
    check_page_of_redirect(&page, "You have allowed ");
}

/// Whoever does not follow a redirect can go on from its page, and to the applications.
fn check_page_of_redirect(page: &Page, title: &str) {
    assert!(page.body.contains(title), "{}", page.body);
    assert_eq!(attribute(&page.body, "<p><a href=\""), location(page));
    assert_eq!(
        attribute(&page.body, "class=\"small\"><a href=\""),
        APPLICATIONS
    );
}

#[tokio::test]
async fn counts_the_lifetime_anew_when_the_user_agrees() {
    let site = site();
    let mut browser = browser();
    let consent = browser.at_consent(&site, AUTHORIZE).await;
    site.clock.advance(Duration::from_secs(599));
    browser.decide(&site, &consent, "allow").await;
    let expires_at = site.store.records().request_tokens["request-token-1"].expires_at;
    assert_eq!(expires_at, site.clock.now().after(Duration::from_secs(600)));
}

#[tokio::test]
async fn denial_is_told_to_the_callback() {
    let site = site();
    let mut browser = browser();
    let consent = browser.at_consent(&site, AUTHORIZE).await;
    let page = browser.decide(&site, &consent, "deny").await;
    assert_eq!(
        location(&page),
        "https://printer.example/ready?job=7&oauth_token=request-token-1&oauth_problem=permission_denied&denied=request-token-1"
    );
    assert_eq!(site.state("request-token-1"), RequestTokenState::Denied);
    check_page_of_redirect(&page, "You have denied ");
}

#[tokio::test]
async fn out_of_band_shows_the_verifier_to_the_user_who_agreed_until_it_is_used() {
    let site = site();
    site.put_request_token("request-token-1", |token| token.callback = Callback::Oob);
    let mut browser = browser();
    let consent = browser.at_consent(&site, AUTHORIZE).await;
    assert!(
        field(&consent, "Content-Security-Policy")
            .unwrap()
            .contains("; form-action 'self';")
    );
    let decided = browser.decide(&site, &consent, "allow").await;
    assert_eq!((decided.status, location(&decided)), (303, AUTHORIZE));
    let page = browser.get(&site, AUTHORIZE).await;
    let (verifier, _) = verifier_of(&site, "request-token-1");
    let shown = format!("{} {}", &verifier[..4], &verifier[4..]);
    assert_eq!((page.status, verifier.len()), (200, 8));
    assert!(
        page.body.contains(&format!("id=\"verifier\">{shown}</")),
        "{}",
        page.body
    );
    assert!(page.body.contains("10 minutes"));
    let again = browser.decide(&site, &consent, "allow").await;
    assert!(again.status == 403 && !again.body.contains(&shown));
    assert_eq!(browser.get(&site, AUTHORIZE).await.body, page.body);
    // Nobody else sees it, and nobody once it is used.
    let mut stranger = super::browser();
    let hidden = stranger.get(&site, AUTHORIZE).await;
    assert!(hidden.status == 401 && !hidden.body.contains(&shown));
    site.put_request_token("request-token-1", |token| {
        token.callback = Callback::Oob;
        token.state = RequestTokenState::Exchanged;
    });
    assert_eq!(browser.get(&site, AUTHORIZE).await.status, 401);
}

#[tokio::test]
async fn out_of_band_denial_is_a_page() {
    let site = site();
    site.put_request_token("request-token-1", |token| token.callback = Callback::Oob);
    let mut browser = browser();
    let consent = browser.at_consent(&site, AUTHORIZE).await;
    let page = browser.decide(&site, &consent, "deny").await;
    assert!(page.status == 200 && page.body.contains("You have denied"));
    assert_eq!(site.state("request-token-1"), RequestTokenState::Denied);
}

#[tokio::test]
async fn dialect_legacy_puts_a_new_token_on_the_redirect() {
    for own in [true, false] {
        let site = site_with(|params| {
            params.default_dialect = if own {
                Dialect::Rfc5849
            } else {
                Dialect::Legacy
            };
        });
        site.change_consumer(|consumer| consumer.dialect = own.then_some(Dialect::Legacy));
        let mut browser = browser();
        let consent = browser.at_consent(&site, AUTHORIZE).await;
        let page = browser.decide(&site, &consent, "allow").await;
        let (verifier, redirect_token) = verifier_of(&site, "request-token-1");
        let redirect_token = redirect_token.unwrap();
        assert_ne!(redirect_token, "request-token-1");
        assert!(location(&page).ends_with(&format!(
            "&oauth_token={redirect_token}&oauth_verifier={verifier}"
        )));
    }
    let site = site_with(|params| params.default_dialect = Dialect::Legacy);
    site.change_consumer(|consumer| consumer.dialect = Some(Dialect::Rfc5849));
    let mut browser = browser();
    let consent = browser.at_consent(&site, AUTHORIZE).await;
    browser.decide(&site, &consent, "allow").await;
    assert_eq!(
        verifier_of(&site, "request-token-1").1,
        None,
        "the consumer's own dialect counts"
    );
}

#[tokio::test]
async fn consent_is_asked_every_time() {
    let site = site();
    let mut browser = browser();
    let consent = browser.at_consent(&site, AUTHORIZE).await;
    browser.decide(&site, &consent, "allow").await;
    site.put_request_token("request-token-2", |_| {});
    let page = browser
        .get(
            &site,
            "/service.oauth?mode=auth_req_token&oauth_token=request-token-2",
        )
        .await;
    assert!(page.status == 200 && page.body.contains("name=\"decision\""));
}

#[tokio::test]
async fn the_alias_keeps_its_own_path() {
    let site = site();
    let mut browser = browser();
    let alias = "/oauth/authorize?oauth_token=request-token-1";
    let consent = browser.at_consent(&site, alias).await;
    assert_eq!(attribute(&consent.body, "action=\""), alias);
    let page = browser.decide(&site, &consent, "allow").await;
    assert!(location(&page).starts_with("https://printer.example/ready?job=7&"));
}

#[tokio::test]
async fn another_user_can_log_in_instead() {
    let site = site();
    let mut browser = browser();
    let consent = browser.at_consent(&site, AUTHORIZE).await;
    let before = browser.session().cloned().unwrap();
    let page = browser
        .post(
            &site,
            AUTHORIZE,
            &[("csrf", &hidden(&consent.body, "csrf")), ("switch", "user")],
        )
        .await;
    assert_eq!(location(&page), AUTHORIZE);
    assert_eq!((site.sessions(), browser.session()), (0, None));
    let page = browser.get(&site, AUTHORIZE).await;
    assert!(is_login_form(&page));
    // Nor does the old id open anything any more.
    browser
        .cookies
        .insert("__Host-countersign".to_owned(), before);
    assert!(is_login_form(&browser.get(&site, AUTHORIZE).await));
}

#[tokio::test]
async fn a_token_that_cannot_be_decided_leads_nowhere() {
    type Case = (&'static str, fn(&Site), u16, &'static str);
    let cases: [Case; 10] = [
        (
            "unknown",
            |site| site.store.records().request_tokens.clear(),
            401,
            "token_rejected",
        ),
        (
            "expired",
            |site| site.clock.advance(Duration::from_secs(600)),
            401,
            "token_expired",
        ),
        (
            "exchanged",
            |site| {
                site.put_request_token("request-token-1", |token| {
                    token.state = RequestTokenState::Exchanged
                })
            },
            401,
            "token_used",
        ),
        (
            "denied",
            |site| {
                site.put_request_token("request-token-1", |token| {
                    token.state = RequestTokenState::Denied
                })
            },
            401,
            "token_used",
        ),
        (
            "voided",
            |site| {
                site.put_request_token("request-token-1", |token| {
                    token.state = RequestTokenState::Voided
                })
            },
            401,
            "token_rejected",
        ),
        (
            "consumer gone",
            |site| site.store.records().consumers.clear(),
            401,
            "token_rejected",
        ),
        (
            "consumer disabled",
            |site| site.change_consumer(|consumer| consumer.enabled = false),
            401,
            "consumer_key_refused",
        ),
        (
            "callback withdrawn",
            |site| {
                site.change_consumer(|consumer| {
                    consumer.callbacks = vec!["https://printer.example/other".to_owned()]
                })
            },
            400,
            "",
        ),
        (
            "callback forbidden",
            |site| {
                site.change_consumer(|consumer| {
                    consumer.callbacks = vec!["javascript:alert(1)".to_owned()]
                });
                site.put_request_token("request-token-1", |token| {
                    token.callback = Callback::Uri("javascript:alert(1)".to_owned())
                });
            },
            400,
            "",
        ),
        (
            "authorized",
            |site| {
                let user = site.store.user_named("ada").id;
                site.put_request_token("request-token-1", |token| {
                    token.state = RequestTokenState::Authorized {
                        user,
                        verifier: Secret::from("v"),
                        redirect_token: None,
                    };
                });
            },
            401,
            "token_used",
        ),
    ];
    for (name, change, status, problem) in cases {
        // Before a login, after it, and at the decision.
        let site = site();
        let mut stranger = browser();
        let mut browser = browser();
        let consent = browser.at_consent(&site, AUTHORIZE).await;
        change(&site);
        let state = site
            .store
            .records()
            .request_tokens
            .get("request-token-1")
            .map(|token| token.state.clone());
        for page in [
            stranger.get(&site, AUTHORIZE).await,
            browser.get(&site, AUTHORIZE).await,
        ] {
            assert_eq!(page.status, status, "{name}");
            if status == 401 {
                let expected = format!("OAuth realm=\"Photos\", oauth_problem=\"{problem}\"");
                assert_eq!(
                    field(&page, "WWW-Authenticate"),
                    Some(expected.as_str()),
                    "{name}"
                );
            }
            assert!(!page.body.contains("Photo Printer"), "{name}");
        }
        for decision in ["allow", "deny"] {
            let page = browser.decide(&site, &consent, decision).await;
            let expected = if problem == "token_used" { 403 } else { status };
            assert_eq!(page.status, expected, "{name}");
        }
        let after = site
            .store
            .records()
            .request_tokens
            .get("request-token-1")
            .map(|token| token.state.clone());
        assert_eq!(state, after, "{name}");
    }
}

#[tokio::test]
async fn a_link_without_one_token_is_broken() {
    let site = site();
    let long = format!("/oauth/authorize?oauth_token={}", "x".repeat(256));
    for (url, status) in [
        ("/service.oauth?mode=auth_req_token", 400),
        ("/service.oauth?mode=auth_req_token&oauth_token=", 400),
        (
            "/service.oauth?mode=auth_req_token&oauth_token=request-token-1&oauth_token=request-token-1",
            400,
        ),
        (
            "/service.oauth?mode=auth_req_token&oauth_token=request-token-1&oauth%5Ftoken=x",
            400,
        ),
        ("/service.oauth?mode=auth_req_token&oauth_token=%ff", 400),
        ("/service.oauth?mode=auth_req_token&oauth_token=%00", 401),
        (&long, 401),
    ] {
        let page = browser().get(&site, url).await;
        assert_eq!(page.status, status, "{url}");
    }
}

#[tokio::test]
async fn a_callback_on_the_link_is_ignored() {
    let site = site();
    let mut browser = browser();
    let url = format!("{AUTHORIZE}&oauth_callback=https%3A%2F%2Fevil.example%2F");
    browser.log_in(&site, &url, "ada", PASSWORD).await;
    let consent = browser.get(&site, &url).await;
    assert!(!consent.body.contains("evil"));
    let page = browser.decide(&site, &consent, "allow").await;
    assert!(location(&page).starts_with("https://printer.example/ready?job=7&"));
}

#[tokio::test]
async fn an_undecidable_decision_is_refused() {
    let site = site();
    let mut browser = browser();
    let consent = browser.at_consent(&site, AUTHORIZE).await;
    for decision in ["", "ALLOW", "yes", "allow "] {
        assert_eq!(browser.decide(&site, &consent, decision).await.status, 400);
    }
    let csrf = hidden(&consent.body, "csrf");
    let both = [
        ("csrf", csrf.as_str()),
        ("decision", "deny"),
        ("decision", "allow"),
    ];
    assert_eq!(browser.post(&site, AUTHORIZE, &both).await.status, 400);
    assert_eq!(site.state("request-token-1"), RequestTokenState::Issued);
}

#[tokio::test]
async fn a_store_that_is_away_is_told_without_details() {
    let site = site();
    let mut browser = browser();
    let consent = browser.at_consent(&site, AUTHORIZE).await;
    site.store.fail(true);
    for page in [
        browser.get(&site, AUTHORIZE).await,
        browser.decide(&site, &consent, "allow").await,
    ] {
        assert_eq!(page.status, 503);
        assert!(!page.body.contains("switched off"));
    }
    site.store.fail(false);
    assert_eq!(site.state("request-token-1"), RequestTokenState::Issued);
}

#[tokio::test]
async fn names_cannot_bring_html_into_a_page() {
    let evil = "<img src=x onerror=alert(1)>\"'&{{ 1 }}</bdi><script>";
    let site = site_with(|params| {
        params.look = Arc::new(look(evil));
        params.permissions[0].title = evil.to_owned();
        params.permissions[0].description = evil.to_owned();
    });
    site.change_consumer(|consumer| {
        consumer.name = evil.to_owned();
        consumer.description = Some(evil.to_owned());
        consumer.website = Some(format!("https://{evil}"));
    });
    let mut ada = site.store.user_named("ada");
    ada.display_name = Some(evil.to_owned());
    site.store.put_user(ada);
    site.put_access_token("access-token-1", "ada", |_| {});
    let mut browser = browser();
    let consent = browser.at_consent(&site, AUTHORIZE).await;
    let login = super::browser().get(&site, AUTHORIZE).await;
    let applications = browser.get(&site, APPLICATIONS).await;
    let refusal = browser
        .get(&site, "/oauth/authorize?oauth_token=none")
        .await;
    for page in [consent, login, applications, refusal] {
        assert!(
            !page.body.contains("<img") && !page.body.contains("<script"),
            "{}",
            page.body
        );
        assert!(
            page.body
                .contains("&#60;img src=x onerror=alert(1)&#62;&#34;&#39;&#38;{{ 1 }}")
        );
    }
}

#[tokio::test]
async fn a_callback_cannot_bring_a_field_into_the_answer() {
    // Such a callback cannot be registered; here it stands in the store nevertheless.
    let evil = "https://printer.example/ready?\r\nSet-Cookie: a=b";
    let site = site();
    site.put_request_token("request-token-1", |token| {
        token.callback = Callback::Uri(evil.to_owned())
    });
    let mut browser = browser();
    assert_eq!(browser.get(&site, AUTHORIZE).await.status, 400);
    // A token in the link cannot either.
    let page = browser
        .get(
            &site,
            "/oauth/authorize?oauth_token=a%0d%0aSet-Cookie:%20a=b",
        )
        .await;
    assert_eq!(page.status, 401);
}
