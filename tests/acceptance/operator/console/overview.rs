//! The first page: what needs attention, and the charts.
//!
//! Promise (Console): The overview says whether the process is ready, and why not, the use of the nonce window, and which
//! certificate ends soon. Also in `tests/acceptance/operator/console/truth.rs`, `src/operator/admin/console/calls/minute.rs`.

use super::*;

#[test]
fn overview_says_since_when_it_is_not_ready_and_how_full() {
    let (_api, proxy) = console("nonce.max_entries = 10");
    let caller = proxy.somebody();
    until("the window is full", || {
        proxy.send(Call::get("/x").of(&caller)).status == 503
    });
    let overview = Operator::with(&proxy, READ).text("/");
    has(
        &overview,
        &[
            "Not ready since 20",
            "nonce_window_full: ",
            "raise nonce.max_entries",
            "Degraded since 20",
            "nonce_window_filling: 10 of 10 nonces",
            "<strong>100.00 %</strong> <span>10 of 10 nonces",
            "<strong>Not ready</strong>",
        ],
    );
    assert!(!overview.contains("<strong>Ready</strong>"));
    // Our own fault needs no person at the consumer.
    has(
        &overview,
        &["No consumer’s calls were rejected since this process started"],
    );
}

#[test]
fn the_overview_marks_a_certificate_that_ends_soon() {
    let api = Upstream::start();
    for (days, state) in [(10, "days left; renew it<"), (60, "days left<")] {
        let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_after = time::OffsetDateTime::now_utc() + time::Duration::days(days);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = Certificate {
            certificate: params.self_signed(&key).unwrap().pem(),
            key: key.serialize_pem(),
        };
        let proxy = builder(&api, "").at_https_localhost(&certificate).start();
        let overview = Operator::with(&proxy, READ).text("/");
        let rows = Vec::from_iter(overview.split("<tr "));
        let row = rows.iter().find(|row| row.contains("certificate.pem"));
        has(row.unwrap(), &["listen.tls.certificate", state]);
    }
}

#[test]
fn the_overview_names_who_uses_a_secret_in_its_grace() {
    let (_api, proxy) = console("");
    let (old, _, token) = caller(&proxy, "Shop", "");
    let silent = proxy.consumer("Silent");
    let none = "No previous secret is in its grace, so no old secret verifies.";
    has(
        &Operator::with(&proxy, READ).text("/consumers"),
        &[none, ">Silent</a>"],
    );
    for key in [&old.key, &silent.key] {
        proxy.run(&format!("consumer rotate-secret {key} --grace 1h"));
    }
    proxy.passes(Call::get("/x").by(&old).with(&token));
    let operator = Operator::with(&proxy, WRITE);
    has(
        &operator.text("/consumers"),
        &["2 previous secrets are in their grace: <a href=\"/\">the overview</a> says"],
    );
    let overview = operator.text("/");
    let row = |key: &str| {
        let rows = overview.split("<tr ");
        let row = rows
            .filter(|row| row.contains("key=") && row.contains(key))
            .last();
        row.unwrap_or_else(|| panic!("{key} in {overview}"))
            .to_owned()
    };
    assert!(
        row(&old.key).contains("1 call, the last <time"),
        "{}",
        row(&old.key)
    );
    assert!(
        row(&silent.key).contains("not seen since"),
        "{}",
        row(&silent.key)
    );
    let at = format!("/consumer/end-grace?key={}", old.key);
    let asked = operator.open(&at);
    has(&asked.answer.text(), &["get 401 at once", "1 call with it"]);
    has(
        &operator.text(&format!("/consumer?key={}", old.key)),
        &[
            "The old secret works until 20",
            "This process has seen 1 call with it",
        ],
    );
    operator.confirm(&asked).answer.has_status(200);
    proxy.rejects(
        Call::get("/x").by(&old).with(&token),
        401,
        "signature_invalid",
    );
}

#[test]
fn charts_of_the_last_hour_and_day_are_described_in_words() {
    let (_api, proxy) = console("");
    let caller = proxy.somebody();
    for _ in 0..2 {
        proxy.passes(Call::get("/x").of(&caller));
    }
    proxy.send(Call::get("/x")).has_status(401);
    let operator = Operator::with(&proxy, READ);
    for (target, period) in [("/", "minute"), ("/?span=day", "quarter of an hour")] {
        until("the calls are counted", || {
            let text = operator.text(target);
            let is_counted = text.contains("2 served, 0 observed, 1 rejected");
            let described = format!("Each bar is a {period}");
            assert!(
                !is_counted || text.matches(&described).count() == 2,
                "{text}"
            );
            is_counted
        });
    }
}
