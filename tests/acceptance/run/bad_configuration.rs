//! Bad input from the operator: one line that names the file, the key and the fix; an exit code; nothing half-written.

use std::net::TcpListener;

use crate::support::{
    Call, Proxy, Upstream, has,
    program::{Ended, program, run},
    proxy::Builder,
    rows,
    upstream::refusing_address,
};

fn builder() -> Builder {
    Builder::in_front_of_url("http://127.0.0.1:1")
}

/// The one line on standard error that is not a log line of starting up.
#[track_caller]
fn the_line(ended: &Ended) -> String {
    let lines: Vec<&str> = ended
        .stderr
        .lines()
        .filter(|line| !line.contains(" INFO ") && !line.contains(" WARN "))
        .collect();
    assert_eq!(lines.len(), 1, "one line: {ended:?}");
    lines[0].to_owned()
}

#[test]
fn an_unknown_key_ends_with_2_and_suggests_the_nearest() {
    for [text, key, nearest] in rows(
        r"
        listen.adress = 'x'                             | listen.adress             | address
        [signature]\ntimestamp_windw = '1s'             | signature.timestamp_windw | timestamp_window
        listn.address = 'x'                             | listn                     | listen
        operation = [{ path = '/x', acces = ['user'] }] | acces                     | access
    ",
    ) {
        let builder = builder().config(text);
        for command in ["serve", "check"] {
            let ended = if command == "serve" {
                builder.serve_fails()
            } else {
                builder.run(&[command], "")
            };
            assert_eq!(ended.code(), Some(2), "{command} {text}: {ended:?}");
            let line = the_line(&ended);
            has(&line, &["config.toml", key, nearest]);
        }
        assert!(
            !builder.directory().join("countersign.db").exists(),
            "nothing was begun"
        );
    }
}

#[test]
fn a_configuration_that_is_missing_or_not_toml_ends_with_2() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("broken.toml");
    std::fs::write(&path, "listen = [\n").unwrap();
    for (path, expected) in [
        (path, "broken.toml"),
        (directory.path().join("missing.toml"), "missing.toml"),
    ] {
        let ended = run(program().args(["serve", "--config"]).arg(&path), "");
        assert_eq!(ended.code(), Some(2), "{ended:?}");
        assert!(ended.stderr.contains(expected), "{ended:?}");
    }
    let ended = run(
        program()
            .args(["serve", "--config"])
            .arg(directory.path())
            .arg("--nonsense"),
        "",
    );
    assert_eq!(ended.code(), Some(2), "wrong usage: {ended:?}");
}

#[test]
fn an_api_url_is_required() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.toml");
    std::fs::write(&path, "").unwrap();
    let ended = run(program().args(["serve", "--config"]).arg(&path), "");
    assert_eq!(ended.code(), Some(2), "{ended:?}");
    assert!(the_line(&ended).contains("upstream.api_url"), "{ended:?}");
}

#[test]
fn a_port_in_use_ends_with_1() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for key in ["listen.address", "admin.listen"] {
        let ended = builder()
            .config(&format!("{key} = '{address}'"))
            .serve_fails();
        assert_eq!(ended.code(), Some(1), "{ended:?}");
        let line = the_line(&ended);
        has(&line, &[&address.to_string(), key, "config.toml"]);
    }
}

#[test]
fn second_serve_on_a_port_that_workers_share_ends_with_1() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let ended = builder()
        .config(&format!("listen.address = '{}'", proxy.address()))
        .serve_fails();
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    assert!(
        the_line(&ended).contains(&proxy.address().to_string()),
        "{ended:?}"
    );
}

#[test]
fn an_api_that_is_down_does_not_stop_serve_and_check_says_so() {
    let url = format!("http://{}", refusing_address());
    let builder = Builder::in_front_of_url(&url);
    let ended = builder.run(&["check"], "");
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    has(&ended.stderr, &["upstream.api_url", &url]);
    let proxy = builder.start();
    let caller = proxy.somebody();
    proxy.send(Call::get("/x").of(&caller)).has_status(502);
}

#[test]
fn the_environment_overrides_the_file() {
    let api = Upstream::start();
    let builder = Builder::in_front_of_url("http://127.0.0.1:1");
    let secret = builder.directory().join("url");
    std::fs::write(&secret, format!("\"{}\"", api.url())).unwrap();
    let proxy = builder
        .environment(
            "COUNTERSIGN__UPSTREAM__API_URL_FILE",
            &secret.display().to_string(),
        )
        .environment("COUNTERSIGN__OPERATIONS__UNLISTED", "\"anonymous\"")
        .start();
    proxy.send(Call::get("/x")).has_status(200);
    assert_eq!(api.count(), 1);
    let ended = Builder::in_front_of_url(api.url())
        .environment("COUNTERSIGN__LISTEN__ADRESS", "\"x\"")
        .serve_fails();
    assert_eq!(ended.code(), Some(2), "{ended:?}");
    has(&ended.stderr, &["COUNTERSIGN__LISTEN__ADRESS"]);
}
