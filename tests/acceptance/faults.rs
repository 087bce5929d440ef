//! HTTP that is broken, on either side of the proxy.

use crate::support::has;
use crate::support::{Call, Proxy, Reply, Scene, Upstream, proxy::Builder, upstream::nobody};

#[test]
fn a_host_that_is_none_of_the_services_is_421() {
    let Scene { api, proxy, caller } = Scene::start();
    for host in ["evil.test", "127.0.0.1:1", "", "localhost"] {
        let answer = proxy.send(Call::get("/x").of(&caller).host(host));
        assert!(
            answer.status == 421 || (host.is_empty() && answer.status == 400),
            "{host:?}: {answer:?}"
        );
    }
    let login = Call::get("/service.oauth?mode=login").host("evil.test");
    proxy.send(login.clone()).has_status(421);
    // Every form of the response names the address to use, and the log line the host that was received.
    for accept in ["*/*", "text/html", "application/json"] {
        let answer = proxy.send(login.clone().header("Accept", accept));
        answer.has_status(421);
        has(&answer.text(), &[&format!("use http://{}", proxy.host())]);
    }
    proxy.log().wait_for("the line", |line| {
        let fields = ["access: ", " status=421 ", " host=evil.test "];
        fields
            .iter()
            .all(|field| line.contains(field))
            .then_some(())
    });
    api.saw_nothing();
}

#[test]
fn an_api_that_is_down_or_broken_is_502() {
    let proxy = Builder::in_front_of_url(&format!("http://{}", nobody())).start();
    let caller = proxy.somebody();
    let answer = proxy.send(Call::get("/x").of(&caller));
    answer.has_status(502);
    assert_eq!(answer.problem(), None);
    assert!(
        !answer.text().contains("127.0.0.1"),
        "nothing of the inside is told: {answer:?}"
    );

    let api = Upstream::replying(|seen| match seen.target.as_str() {
        "/nonsense" => Reply::raw("this is no HTTP\r\n\r\n").closing(),
        "/hang-up" => Reply::hang_up(),
        "/two-lengths" => {
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")
                .closing()
        }
        "/huge" => Reply::raw(format!(
            "HTTP/1.1 200 OK\r\nX: {}\r\n\r\n",
            "x".repeat(1_000_000)
        ))
        .closing(),
        "/half-head" => Reply::raw("HTTP/1.1 200 OK\r\nContent-Le").closing(),
        _ => Reply::ok("fine"),
    });
    let proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    for target in [
        "/nonsense",
        "/hang-up",
        "/two-lengths",
        "/huge",
        "/half-head",
    ] {
        let answer = proxy.send(Call::post(target).json("{}").of(&caller));
        assert_eq!(answer.status, 502, "{target}: {answer:?}");
        proxy.send(Call::get("/fine").of(&caller)).has_status(200);
    }
}
