//! Who may use the admin API.
//!
//! Promise (Admin API): Without a right token nothing can be read, with the read token nothing changed; wrong tokens are
//! limited by address. Also in `tests/attacks/console.rs`, `src/operator/admin/tokens.rs`.

use super::*;

#[test]
fn without_a_token_file_there_is_no_admin_api() {
    let upstream = Upstream::start();
    let mut proxy = Proxy::in_front_of(&upstream).start();
    let token = format!("Authorization: Bearer {WRITE}");
    let status = |proxy: &Proxy, token: &str| {
        ask(proxy.admin(), "GET", "/v1/consumers", &[token], "").status
    };
    assert_eq!(status(&proxy, &token), 404);
    // The page of the console says how to switch it on.
    let off = ask(proxy.admin(), "GET", "/", &[], "");
    off.has_status(404);
    has(&off.text(), &["admin.token", "token_file"]);
    let file = proxy.directory().join("token");
    std::fs::write(&file, WRITE).unwrap();
    proxy.reconfigure(&format!("admin.token_file = '{}'", file.display()));
    proxy.signal(Signal::HUP);
    until("the API is on", || status(&proxy, &token) == 200);
    // A broken file changes nothing, and the response says so.
    std::fs::write(&file, "two\nlines").unwrap();
    proxy.signal(Signal::HUP);
    proxy.logs(&[
        "reload failed",
        "admin.token_file",
        "line 1: expected NAME:TOKEN",
    ]);
    assert_eq!(status(&proxy, &token), 200);
    std::fs::write(&file, "a-token-of-31-characters-012345").unwrap();
    proxy.signal(Signal::HUP);
    proxy.logs(&["reload failed"]);
    std::fs::write(&file, READ).unwrap();
    proxy.signal(Signal::HUP);
    until("the old token ends", || status(&proxy, &token) == 401);
    assert_eq!(
        status(&proxy, &format!("Authorization: Bearer {READ}")),
        200
    );
}

#[test]
fn wrong_admin_tokens_of_one_address_are_limited() {
    let upstream = Upstream::start();
    let proxy = with_api(&upstream, "").start();
    let guess = |token: &str| {
        let field = format!("Authorization: Bearer {token}");
        ask(proxy.admin(), "GET", "/v1/consumers", &[&field], "")
    };
    for number in 0..30 {
        guess(&format!("guess-{number}")).has_status(401);
    }
    // Past the limit wrong ones wait. The right ones work, or anybody could lock all operators out that a proxy passes on.
    for right in [WRITE, READ] {
        let answer = guess("guess");
        answer.has_status(429);
        let after: u64 = answer.header("Retry-After").unwrap().parse().unwrap();
        assert!((1..=30).contains(&after), "{after}");
        guess(right).has_status(200);
    }
    assert!(!proxy.log().to_string().contains("guess"));
}
