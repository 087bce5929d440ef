//! Paths with data in their segments: `%2F`, `%25`, `;parameters` and empty segments, in front of APIs that read them otherwise.
//!
//! Promise (Permissions and identity): Where `paths.encoded`, `paths.parameters` or `paths.empty_segments` permit such paths, an API
//! that splits, merges, drops or decodes them again finds no operation there that asks more of the caller, and no dot segment. Also in
//! `src/request/policy/operations.rs`.

use std::{
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
};

use crate::support::{Call, Connection, PATIENCE, Proxy, Scene, free_port, within, words};

const DATA: &str = "paths = { encoded = 'data', parameters = 'data', empty_segments = 'data' }\n";

const OPERATIONS: &str = "permission = [{ name = 'admin', title = 'Admin' }]
    operation = [
        { path = '/{*rest}', access = ['anonymous'] },
        { path = '/open/{*rest}', access = ['anonymous'] },
        { path = '/items/{id}', access = ['anonymous'] },
        { path = '/open/admin', permission = 'admin' },
        { path = '/admin', permission = 'admin' },
        { path = '/items/{id}/secret', permission = 'admin' }]";

/// What an API calls `secret` is what only the permission opens.
struct Api {
    process: Child,
    address: SocketAddr,
}

impl Drop for Api {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Api {
    fn start(name: &str, command: impl FnOnce(u16) -> Command) -> Self {
        let port = free_port();
        let mut command = command(port);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.stderr(Stdio::null()).spawn();
        let api = Self {
            process: process
                .unwrap_or_else(|error| panic!("{error}: {name}; tests/run installs it")),
            address: ([127, 0, 0, 1], port).into(),
        };
        within(PATIENCE, name, || TcpStream::connect(api.address).ok());
        api
    }

    fn reads(&self, target: &str) -> String {
        let mut connection = Connection::to(self.address);
        let host = self.address;
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        connection.send(request.as_bytes());
        connection.answer("GET").text()
    }
}

/// Spellings of the paths of secrets.
fn hostile() -> Vec<String> {
    let begins = words(
        "/ // /%2F /;x/ /%5C /open/..%2F /open/..;x/ /open/%252e%252e/ /x%2F..%2F /open/%2e%2e;/ /%2e%2F /open/..%252f",
    );
    let joins = words("/ // %2F %2f %5C %252F ;x/ /;/ /.%2F ;%2F /x;/..%2F");
    let ends = words(
        "- ;x ;x=/ %3Bx %253Bx %25 %2500 %2F // %2500.png %253Fx=1 ;.json %3B.json /%2e%3b %252e",
    );
    let mut all = Vec::new();
    for begin in &begins {
        for join in &joins {
            for end in &ends {
                let end = end.trim_start_matches('-');
                for path in ["open|admin", "items|7|secret"] {
                    all.push(format!("{begin}{}{end}", path.replace('|', join)));
                }
            }
        }
    }
    let admins = begins.iter().flat_map(|begin| {
        let end = |end: &&str| format!("{begin}admin{}", end.trim_start_matches('-'));
        ends.iter().map(end).collect::<Vec<_>>()
    });
    all.extend(admins);
    all
}

/// Sends every spelling to an API by itself, which has to fall for some, and through countersign, where it may fall for none.
fn finds_no_secret(api: &Api) {
    let mut proxy = Proxy::in_front_of_url(&format!("http://{}", api.address))
        .config(&format!("{DATA}{OPERATIONS}"))
        .start();
    let (mut passed, mut fallen) = (0, 0);
    for (index, target) in hostile().into_iter().enumerate() {
        let call = Call::get(&target);
        let (status, text) = {
            let answer = proxy.send(call);
            (answer.status, answer.text())
        };
        assert!(!text.starts_with("secret"), "{target}: {status} {text}");
        passed += usize::from(!text.contains("oauth_problem"));
        fallen += usize::from(index % 7 == 0 && api.reads(&target).starts_with("secret"));
    }
    assert!(passed > 20 && fallen > 0, "{passed} {fallen}");
    for (target, route) in [("/items/24", "item"), ("/open/x/y", "open")] {
        let answer = proxy.passes(Call::get(target));
        assert!(answer.text().starts_with(route), "{target}: {answer:?}");
    }
    proxy.stop();
}

fn file(name: &str) -> String {
    format!("{}/tests/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn flask_finds_no_secret_behind_data_of_a_segment() {
    let api = Api::start("flask", |port| {
        let mut command = Command::new(file(".tools/venv/bin/python"));
        command.args([file("attacks/apis/flask.py"), port.to_string()]);
        command
    });
    finds_no_secret(&api);
}

#[test]
fn express_finds_no_secret_behind_data_of_a_segment() {
    let api = Api::start("express", |port| {
        let mut command = Command::new("node");
        command.args([file("attacks/apis/express.js"), port.to_string(), file("")]);
        command
    });
    finds_no_secret(&api);
}

#[test]
fn php_finds_no_secret_behind_data_of_a_segment() {
    let api = Api::start("php", |port| {
        let mut command = Command::new("php");
        command.args([
            "-S",
            &format!("127.0.0.1:{port}"),
            &file("attacks/apis/front.php"),
        ]);
        command
    });
    finds_no_secret(&api);
}

#[test]
fn nginx_finds_no_secret_behind_data_of_a_segment() {
    let directory = tempfile::tempdir().unwrap();
    let api = Api::start("nginx", |port| {
        let text = std::fs::read_to_string(file("attacks/apis/nginx.conf")).unwrap();
        let here = directory.path().display().to_string();
        let text = text
            .replace("PORT", &port.to_string())
            .replace("DIRECTORY", &here);
        let path = directory.path().join("nginx.conf");
        std::fs::write(&path, text).unwrap();
        let mut command = Command::new("/usr/sbin/nginx");
        command.arg("-c").arg(path).arg("-p").arg(directory.path());
        command
    });
    finds_no_secret(&api);
}

const SHOP: &str = "permission = [{ name = 'write', title = 'Write' }]
    operation = [
        { path = '/products/{sku}' },
        { path = '/products/{sku}/media', permission = 'write' },
        { path = '/r/{*rest}' },
        { path = '/r/{id}/photos', permission = 'write' }]";

#[test]
fn data_of_a_segment_reaches_the_api_as_it_was_sent() {
    let paths = [
        (
            "encoded",
            "/products/24%2FMB01 /products/24%2fMB01 /products/50%25 /products/a%3Bb%5Cc /r/a%252Fb/c /r/%2F",
        ),
        (
            "parameters",
            "/r/items;jsessionid=AB12 /products/7;v=1;w /r/;x/y /r/a;b/c;d",
        ),
        (
            "empty_segments",
            "/r//items /products//media/x /r///x /r/x// /products//",
        ),
    ];
    for (key, permitted) in paths {
        let Scene { api, proxy, caller } = Scene::with(&format!(
            "paths.{key} = 'data'\n{}",
            SHOP.replace("'/r/{*rest}' }", "'/r/{*rest}' }, { path = '/products/{a}/{b}/{*rest}' }, { path = '/products/{sku}/' }")
        ));
        for path in words(permitted) {
            proxy.passes(Call::get(path).of(&caller));
            assert_eq!(api.last_request().target, path);
        }
        let before = api.count();
        for (other, rejected) in paths.iter().filter(|(other, _)| *other != key) {
            for path in words(rejected) {
                let answer = proxy.send(Call::get(path).of(&caller));
                assert_eq!(answer.status, 400, "{path} with {key}");
                assert!(!answer.text().contains("paths."), "{answer:?}");
            }
            proxy.logs(&[
                "400",
                &format!("cause=\"the setting paths.{other} rejects it\""),
            ]);
        }
        assert_eq!(api.count(), before);
    }
}

#[test]
fn dot_segments_stay_rejected_in_any_encoding() {
    let Scene { api, proxy, caller } = Scene::with(&format!("{DATA}{SHOP}"));
    for path in words(
        r"/r/.. /r/x/../y /r/%2e%2e/x /r/a/%2E./x /r/..%2Fx /r/x%2F..%2Fy /r/x%2f%2e%2e /r/..%5Cx /r/x%5c.. /r/%252e%252e/x
         /r/%25252e%25252e/x /r/..%252Fx /r/x%252F..%252Fy /r/..;x/y /r/..;/y /r/..%3Bx/y /r/..%253Bx/y /r/.;x/y /r/.%2Fx /r/%252e/x
         /r/x/..;x=y /products/..%2F7 /products/%2e%2e%2f7 /r/..%2500/x /r/..%253Fx /r/%25%32%65%25%32%65/x /r/;/../x
         /r//../x /r/%c0%ae%c0%ae%2Fx /r/.%2520./x",
    ) {
        let answer = proxy.send(Call::get(path).of(&caller));
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
    }
    api.saw_nothing();
}

#[test]
fn another_reading_of_a_path_is_not_permitted_more() {
    let Scene { api, proxy, caller } = Scene::with(&format!("{DATA}{SHOP}"));
    let read_as_others = words(
        r"/products/7%2Fmedia /products/7%2fmedia /products/7%5Cmedia /products/7%252Fmedia /r/7%2Fphotos /r/7/photos;x
         /r/7/photos%3Bx /r/7;x/photos;y /r//7/photos /r/7//photos //r/7/photos /r/7/;x/photos /r/7/photos%2500 /r/7/Photos;x
         /r/7/photos.json;x /r/7/photos%2F",
    );
    for path in read_as_others.iter().copied() {
        proxy.rejects(Call::get(path).of(&caller), 404, "permission_denied");
    }
    api.saw_nothing();
    for path in words("/products/7%2Fphotos /r/7%2Fmedia /r/7/photos2;x /r/a//photos/x") {
        proxy.passes(Call::get(path).of(&caller));
    }
    // The operator says that the API compares paths exactly.
    let wider = DATA.replace(" }", ", similar = 'wider' }") + SHOP;
    let Scene { api, proxy, caller } = Scene::with(&wider);
    for path in read_as_others.iter().copied() {
        if !path.starts_with("//") {
            proxy.passes(Call::get(path).of(&caller));
            assert_eq!(api.last_request().target, path);
        }
    }
}

#[test]
fn another_reading_of_a_path_keeps_its_enforcement() {
    for similar in ["reject", "wider"] {
        let Scene { api, proxy, .. } = Scene::with(&format!(
            "signature.enforcement = 'observe'
            paths = {{ encoded = 'data', parameters = 'data', empty_segments = 'data', similar = '{similar}' }}
            operation = [{{ path = '/r/{{*rest}}' }}, {{ path = '/r/{{id}}/photos', enforcement = 'enforce' }}]"
        ));
        for path in words(
            "/r/7/photos /r/7%2Fphotos /r/7/photos;x /r/7/photos%3Bx /r//7/photos /r/7//photos //r/7/photos /r/7/photos%2500",
        ) {
            let answer = proxy.send(Call::get(path));
            assert_eq!(answer.status, 401, "{similar} {path}");
        }
        api.saw_nothing();
        for path in words("/r/7%2Fx /r/7/x;y /r/7/x%25 /none;x //none") {
            proxy.passes(Call::get(path));
        }
        // What is not listed stays enforced too.
        let Scene { api, proxy, .. } = Scene::with(&format!(
            "{DATA}operation = [{{ path = '/r/{{id}}', enforcement = 'observe' }}, {{ path = '/{{a}}/{{b}}/c' }}]"
        ));
        for path in words("//r/7 /r//7 /r/7/c;x /r/7%2Fc /r/7%2Fc;x") {
            assert_eq!(proxy.send(Call::get(path)).status, 401, "{path}");
        }
        api.saw_nothing();
        proxy.passes(Call::get("/r/7%2Fx"));
    }
}

#[test]
fn patterns_have_data_of_segments_where_it_is_permitted() {
    let operations = "permission = [{ name = 'write', title = 'Write' }]
        operation = [
            { path = '//v1/{id}', permission = 'write' },
            { path = '/v1/{id}', permission = 'write' },
            { path = '/a%2Fb/{id}' },
            { path = '/v;1/x' }]";
    let Scene { api, proxy, caller } = Scene::with(&format!("{DATA}{operations}"));
    for path in words("/a%2Fb/7 /a%2fb/7 /v;1/x") {
        proxy.passes(Call::get(path).of(&caller));
        assert_eq!(api.last_request().target, path);
    }
    for path in words("//v1/7 /v1/7 /a%2FB/7 /a/b/7 /a%252Fb/7 /v%3B1/y /v;2/x") {
        proxy.rejects(Call::get(path).of(&caller), 404, "permission_denied");
    }
}
