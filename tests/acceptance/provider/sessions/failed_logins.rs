//! Failed logins, and the pauses that they cause.
//!
//! Promise (Flow and pages): Failed logins are limited by account and address; no caller locks out a user elsewhere or delays
//! signed calls. Also in `tests/acceptance/records/shared_nonces.rs`, `src/provider/login/throttle/tests.rs`,
//! `tests/faults/logins.rs`, `src/provider/login/pool.rs`, `tests/acceptance/provider/passwords.rs`,
//! `tests/acceptance/provider/outside_login.rs`, `src/provider/login/pending_checks.rs`.

use super::*;

#[test]
fn failed_logins_are_throttled_by_account_together_with_address() {
    let proxy = with_user_operations(&Upstream::start())
        .config("login.max_failures = '3 per 15m'")
        .start();
    let (user, other) = (proxy.user("alice"), proxy.user("bob"));
    let mut visitor = Visitor::to(&proxy);
    for name in [user.name.as_str(), "nobody"] {
        let page = visitor.open(LOGIN);
        let wrong = page
            .form_with("password")
            .set("username", name)
            .set("password", "wrong");
        let statuses: Vec<u16> = (0..4)
            .map(|_| visitor.submit(&page, &wrong).answer.status)
            .collect();
        assert!(
            statuses[..3].iter().all(|&status| status != 429),
            "{name}: {statuses:?}"
        );
        assert_eq!(statuses[3], 429, "{name}, known or not: {statuses:?}");
    }
    // Past the limit, even the right password is not checked, and the answer gives the waiting time.
    let page = visitor.open(LOGIN);
    let right = page
        .form_with("password")
        .set("username", &user.name)
        .set("password", &user.password);
    let answer = visitor.submit(&page, &right).answer;
    assert_eq!(
        (answer.status, answer.header("retry-after").is_some()),
        (429, true),
        "{answer:?}"
    );
    // Another account from the same address still works.
    let after = visitor.log_in(&page, &other);
    assert!(after.answer.status < 400, "{after:?}");
}

/// A failed login of this name that says where it comes from.
fn fails_from(visitor: &mut Visitor<'_>, name: &str, forwarded_for: &str) -> u16 {
    fails_saying(visitor, name, &[("X-Forwarded-For", forwarded_for)])
}

/// A failed login of this name with these fields.
fn fails_saying(visitor: &mut Visitor<'_>, name: &str, fields: &[(&str, &str)]) -> u16 {
    let page = visitor.open(LOGIN);
    let form = page
        .form_with("password")
        .set("username", name)
        .set("password", "wrong");
    let call = Call::post(LOGIN)
        .header("Sec-Fetch-Site", "same-origin")
        .form(&crate::support::call::form(&form.fields));
    let call = fields
        .iter()
        .fold(call, |call, (name, value)| call.header(name, value));
    visitor.send(call).status
}

#[test]
fn failed_logins_count_for_the_address_from_a_trusted_proxy() {
    let api = Upstream::start();
    let behind = with_user_operations(&api)
        .config("login.max_failures = '2 per 15m'\nlisten.trusted_proxies = ['127.0.0.0/8', '10.0.0.0/8']")
        .start();
    let mut visitor = Visitor::to(&behind);
    // Whatever addresses the caller puts before the one that the proxy adds, it counts as one address.
    for forwarded in ["203.0.113.9", "198.51.100.1, 203.0.113.9"] {
        assert_eq!(fails_from(&mut visitor, "alice", forwarded), 403);
    }
    for forwarded in [
        "203.0.113.9",
        "10.9.9.9, 203.0.113.9, 10.1.1.1",
        "garbage, 203.0.113.9",
        "198.51.100.7, 127.0.0.1, 203.0.113.9:4711",
        "::ffff:203.0.113.9",
        "198.51.100.8, [::ffff:203.0.113.9]:80",
    ] {
        assert_eq!(
            fails_from(&mut visitor, "alice", forwarded),
            429,
            "{forwarded}"
        );
    }
    // Another user there is not locked out by it, and neither is alice at another address.
    assert_eq!(
        fails_from(&mut visitor, "alice", "203.0.113.9, 203.0.113.10"),
        403
    );
    // One IPv6 host has a whole /64.
    for forwarded in ["2001:db8:1:2::1", "[2001:db8:1:2:ffff::2]:99"] {
        assert_eq!(fails_from(&mut visitor, "bob", forwarded), 403);
    }
    assert_eq!(fails_from(&mut visitor, "bob", "2001:db8:1:2:3:4:5:6"), 429);
    assert_eq!(fails_from(&mut visitor, "bob", "2001:db8:1:3::1"), 403);

    let alone = with_user_operations(&api)
        .config("login.max_failures = '2 per 15m'")
        .start();
    let mut visitor = Visitor::to(&alone);
    let statuses: Vec<u16> = (1..=3)
        .map(|host| fails_from(&mut visitor, "alice", &format!("203.0.113.{host}")))
        .collect();
    assert_eq!(
        statuses,
        [403, 403, 429],
        "only a trusted proxy names another caller"
    );
}
