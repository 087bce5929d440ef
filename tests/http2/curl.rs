//! A caller in wide use: curl, by prior knowledge and by ALPN.

use std::process::Command;

use crate::support::{Call, Proxy, Upstream, tls::Certificate};

fn curl(proxy: &Proxy, call: &Call, arguments: &[&str]) -> String {
    let wire = proxy.wire(call);
    let head = String::from_utf8(wire).unwrap();
    let authorization = head
        .lines()
        .find(|line| line.starts_with("Authorization"))
        .unwrap();
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "20"])
        .args(["--write-out", " %{http_version} %{http_code}"])
        .args(["--header", authorization])
        .args(arguments)
        .output()
        .expect("curl is installed");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn curl_speaks_http2_by_alpn() {
    let api = Upstream::start();
    let directory = tempfile::TempDir::new().unwrap();
    let (certificate, key) = Certificate::for_names(&["localhost"]).write(directory.path());
    for (http2, version) in [(true, "2"), (false, "1.1")] {
        let proxy = Proxy::with(
            &api,
            &format!(
                "[listen]\nhttp2 = {http2}\n[listen.tls]\ncertificate = {certificate:?}\nkey = {key:?}\n\
                 [service]\nbase_url = 'https://localhost:8443'"
            ),
        );
        let caller = proxy.somebody();
        let connect = format!("localhost:8443:127.0.0.1:{}", proxy.address().port());
        let ca = certificate.display().to_string();
        for allowed in ["--http2", "--http1.1"] {
            let call = Call::get("/x").of(&caller);
            let told = curl(
                &proxy,
                &call,
                &[
                    "--connect-to",
                    &connect,
                    "--cacert",
                    &ca,
                    allowed,
                    "https://localhost:8443/x",
                ],
            );
            let spoken = if allowed == "--http2" { version } else { "1.1" };
            assert_eq!(told, format!("hello from the API\n {spoken} 200"));
        }
    }
}
