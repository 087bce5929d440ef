//! The addresses to which a user may be redirected back.
//!
//! Promise (Flow and pages): Browsers are sent only to registered callbacks that run no script, to known hosts, and to own
//! paths. Also in `src/provider/issue/callback/tests.rs`, `tests/acceptance/provider/error_pages.rs`,
//! `tests/acceptance/provider/sessions/navigations.rs`, `src/provider/pages/form/return_to.rs`.

use crate::support::{Proxy, Upstream, has, legs::asks, proxy::CALLBACK, words};

#[test]
fn callback_is_checked_against_the_registered_one() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let options = "--callback https://shop.example/ready --callback http://127.0.0.1/back \
                   --callback http://localhost:1/back --callback com.example.shop:/done \
                   --callback http://[::1]:3000/back --callback myapp://host/cb --callback https://root.example";
    let consumer = proxy.consumer_with("Shop", options);
    for good in words(
        "https://shop.example/ready https://shop.example/ready?any=query http://127.0.0.1/back
         http://127.0.0.1:49152/back?x=1 http://localhost:49152/back com.example.shop:/done?x=1
         https://shop.example/ready? https://shop.example/ready?next=https://else.example/?a
         https://shop.example:443/ready HTTPS://SHOP.example/ready http://[::1]/back
         http://[::1]:65535/back myapp://host/cb?x=1 https://root.example/ https://root.example?x",
    ) {
        proxy.send(asks(&consumer, good)).has_status(200);
    }
    for bad in [
        "https://shop.example/ready/",
        "https://shop.example/READY",
        "https://shop.example:8443/ready",
        "https://shop.example.evil.example/ready",
        "https://evil.example/ready",
        "http://shop.example/ready",
        "https://user@shop.example/ready",
        "https://shop.example@evil.example/ready",
        "https://shop.example/ready#fragment",
        "https://shop.example\\@evil.example/ready",
        "https://shop.example/ready\r\nSet-Cookie: a=b",
        "https://shop.example/ready?\u{7f}",
        "https://shop.example/ready?é",
        "https://shop.example/ready/../evil",
        "//shop.example/ready",
        "/ready",
        "ready",
        "http://127.0.0.1:49152/else",
        "http://127.0.0.2/back",
        "https://127.0.0.1/back",
        "myapp://HOST/cb",
        "myapp://host:1/cb",
        "com.example.shop:done",
        "com.example.shop:///done",
        "https://shop.example./ready",
        "https://evil-shop.example/ready",
        "https://shop.example/ready/x",
        "https://shop.example//ready",
        "https://shop.example/%72eady",
        "https://shop.example/ready;x",
        "https://evil.example/?https://shop.example/ready",
        "https://[::ffff:1.2.3.4]/ready",
        "https+x://shop.example/ready",
        "com.example.shop:/else",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "blob:https://shop.example/ready",
        "vbscript:x",
        "OOB",
        "oob ",
        " oob",
        "o%6fb",
        "oob:",
        "oob",
    ] {
        let answer = proxy.send(asks(&consumer, bad));
        answer.is(400, "parameter_rejected");
        answer.tells("oauth_parameters_rejected", "oauth_callback");
    }
}

#[test]
fn oob_is_admitted_if_it_or_nothing_is_registered() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    let nothing = proxy.consumer("nothing");
    proxy.passes(asks(&nothing, "oob"));
    for callback in ["OOB", "oob:", CALLBACK] {
        proxy.rejects(asks(&nothing, callback), 400, "parameter_rejected");
    }
    proxy
        .send(asks(&proxy.consumer_with("oob", "--callback oob"), "oob"))
        .has_status(200);
    let both = proxy.consumer_with("both", &format!("--callback oob --callback {CALLBACK}"));
    proxy.send(asks(&both, "oob")).has_status(200);
    proxy.send(asks(&both, CALLBACK)).has_status(200);
    let only_url = proxy.consumer_with("url", &format!("--callback {CALLBACK}"));
    proxy.rejects(asks(&only_url, "oob"), 400, "parameter_rejected");
}

#[test]
fn callbacks_that_could_run_something_are_never_registered() {
    let proxy = Proxy::in_front_of(&Upstream::start()).start();
    for callback in [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "blob:https://shop.example/x",
        "vbscript:x",
        "https://user:pass@shop.example/",
        "https://shop.example/#fragment",
        "https://shop.example/\u{1}",
        "ready",
    ] {
        let ended = proxy.command(&["consumer", "add", "--name", "Shop", "--callback", callback]);
        assert!(matches!(ended.code(), Some(1 | 2)), "{callback}: {ended:?}");
        assert!(!ended.stderr.is_empty(), "{callback}");
    }
    assert_eq!(proxy.run("consumer list --json").stdout, "");
    let warned = proxy.run("consumer add --name Shop --callback http://shop.example/");
    has(&warned.stderr, &["http://shop.example/"]);
}
