//! Daily operation: restarts, commands beside a running proxy, probes, metrics, logs, signals.

use rustix::process::Signal;

use crate::support::{Call, Proxy, Scene, Upstream, http, until};

#[test]
fn only_the_admin_listener_serves_probes_and_draining_is_not_ready() {
    let api = Upstream::start();
    let mut proxy = Proxy::with(&api, "listen.drain_delay = '5s'");
    proxy.ask_admin("/healthz").has_status(200);
    proxy.ask_admin("/readyz").has_status(200);
    // Only the admin listener serves them.
    for target in ["/healthz", "/readyz", "/metrics"] {
        proxy.send(Call::get(target)).is(401, "parameter_absent");
    }
    proxy.signal(Signal::TERM);
    let admin = proxy.admin();
    until("not ready while draining", || {
        http::get(admin, "/readyz").status == 503
    });
    assert!(proxy.wait().success());
}

#[test]
fn the_access_log_can_be_switched_off() {
    let (_api, proxy, caller) = Scene::with("log.access = false").into_parts();
    proxy.send(Call::get("/quiet").of(&caller)).has_status(200);
    assert!(!proxy.log().to_string().contains("/quiet"));
}
