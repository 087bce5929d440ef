//! Malformed HTTP, on either side of the proxy.

use crate::support::{Call, Scene, has, legs::LOGIN};

#[test]
fn a_host_that_is_not_ours_is_421() {
    let Scene { api, proxy, caller } = Scene::start();
    for host in ["evil.test", "127.0.0.1:1", "", "localhost"] {
        let answer = proxy.send(Call::get("/x").of(&caller).host(host));
        assert!(
            answer.status == 421 || (host.is_empty() && answer.status == 400),
            "{host:?}: {answer:?}"
        );
    }
    let login = Call::get(LOGIN).host("evil.test");
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
