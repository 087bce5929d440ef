//! What is recorded, and what no record may hold.

use std::{
    io,
    sync::{LazyLock, Mutex},
};

use super::*;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// Takes everything that is logged until the guard is dropped.
    fn listen(&self) -> tracing::subscriber::DefaultGuard {
        // While there is one dispatcher alone, tracing asks only the thread that comes first to a line of the program
        // whether the line is wanted, and that may be the thread of another test.
        static ANOTHER: LazyLock<tracing::Dispatch> =
            LazyLock::new(|| tracing::Dispatch::new(tracing_subscriber::registry()));
        LazyLock::force(&ANOTHER);
        let writer = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .with_max_level(tracing::Level::TRACE)
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[tokio::test]
async fn a_fault_is_found_by_the_id_on_its_page() {
    let lines = Lines::default();
    let _guard = lines.listen();
    let site = site();
    site.store.fail(true);
    let page = browser().get(&site, AUTHORIZE).await;
    let (_, rest) = page.body.split_once("id=\"request-id\">").unwrap();
    let (id, _) = rest.split_once('<').unwrap();
    assert!(id.len() > 16, "{id}");
    let text = lines.text();
    assert!(
        text.contains(&format!("request_id={id}")) && text.contains("switched off"),
        "{text}"
    );
    // What is the caller's doing has none.
    site.store.fail(false);
    let refused = browser()
        .get(&site, &AUTHORIZE.replace("token-1", "token-9"))
        .await;
    assert!(refused.status == 401 && !refused.body.contains("request-id"));
}

#[tokio::test]
async fn each_event_is_one_line_without_secrets() {
    let lines = Lines::default();
    let _guard = lines.listen();

    let site = site();
    site.store.put_user(with_hash("ada"));
    site.put_access_token("access-token-1", "ada", |_| {});
    let mut browser = browser();
    // A password in the wrong field.
    browser
        .log_in(&site, LOGIN, "my-secret-password", "wrong-password")
        .await;
    browser.log_in(&site, LOGIN, "ada", "wrong-password").await;
    let consent = browser.at_consent(&site, AUTHORIZE).await;
    let granted = browser.decide(&site, &consent, "allow").await;
    site.put_request_token("request-token-2", |_| {});
    let url = AUTHORIZE.replace("token-1", "token-2");
    let consent = browser.get(&site, &url).await;
    browser.decide(&site, &consent, "deny").await;
    let id = Secret::from(browser.session().unwrap().as_str());
    let csrf = csrf::value(&id, csrf::FormPurpose::Revoke, "access-token-1");
    browser
        .post(
            &site,
            APPLICATIONS,
            &[("csrf", &csrf), ("revoke", "access-token-1")],
        )
        .await;
    let csrf = csrf::value(&id, csrf::FormPurpose::ChangePassword, "");
    let mut fields = [
        ("csrf", csrf.as_str()),
        ("current_password", PASSWORD),
        ("new_password", "my-secret-password"),
        ("new_password_again", "my-secret-password"),
    ];
    let changed = browser.post(&site, CHANGE, &fields).await;
    assert_eq!(location(&changed), format!("{APPLICATIONS}&changed=1"));
    let id = Secret::from(browser.session().unwrap().as_str());
    let csrf = csrf::value(&id, csrf::FormPurpose::ChangePassword, "");
    (fields[0].1, fields[1].1) = (&csrf, "wrong-password");
    assert_eq!(browser.post(&site, CHANGE, &fields).await.status, 403);
    let csrf = csrf::value(&id, csrf::FormPurpose::LogOut, "");
    browser.post(&site, LOGOUT, &[("csrf", &csrf)]).await;
    let mut guesser = super::browser();
    for _ in 0..11 {
        guesser.log_in(&site, LOGIN, "bob", "wrong-password").await;
    }

    let text = lines.text();
    let of = |event: &str| {
        let event = format!("event=\"{event}\"");
        text.lines()
            .filter(|line| line.contains(" audit: ") && line.contains(&event))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("login_succeeded").len(), 1, "{text}");
    assert!(of("login_succeeded")[0].contains("user=id-ada address=192.0.2.1"));
    assert_eq!(of("login_failed").len(), 13);
    assert!(
        !of("login_failed")[0].contains("user="),
        "an unknown name is nobody's"
    );
    assert!(of("login_failed")[1].contains("user=\"id-ada\""));
    assert!(of("login_failed")[2].contains("user=\"id-ada\""));
    assert_eq!(of("password_changed").len(), 1);
    assert!(of("password_changed")[0].contains("user=id-ada address=192.0.2.1"));
    assert_eq!(of("login_throttled").len(), 1);
    assert_eq!(of("consent_granted").len(), 1);
    assert!(
        of("consent_granted")[0]
            .contains("consumer=printer user=id-ada token=request… permissions=\"read print\"")
    );
    assert_eq!(of("consent_denied").len(), 1);
    assert_eq!(of("token_revoked").len(), 1);
    assert_eq!(of("logged_out").len(), 1);

    let verifier = location(&granted).rsplit('=').next().unwrap();
    for secret in [
        verifier,
        "request-token",
        "access-token",
        "my-secret-password",
        "wrong-password",
        PASSWORD,
        str::from_utf8(id.expose()).unwrap(),
        csrf.as_str(),
    ] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}
