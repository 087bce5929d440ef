//! Odd spellings of paths and methods, and methods in parameters, where operations of one path differ, in front of real routers.

use crate::{
    attacks::apis::Api,
    support::{Call, Connection, Proxy, words},
};

const ENFORCED: &str = "{ path = '/write/{id}', methods = ['POST'], enforcement = 'enforce' },
    { path = '/report/{id}', methods = ['GET'], enforcement = 'enforce' }";
const DATA: &str = "paths = { encoded = 'data', parameters = 'data', empty_segments = 'data' }\n";
const READ: &str = ", { path = '/read/{*rest}', enforcement = 'observe' }";
const ALL: &str = ", { path = '/{*all}', enforcement = 'observe' }";

/// The mode of all operations, a line of configuration, and the operations beside those that are enforced.
const CONFIGURATIONS: [(&str, &str, &str); 5] = [
    ("observe", "", ""),
    ("observe", "", ALL),
    ("observe", DATA, ALL),
    ("enforce", "", READ),
    ("enforce", "", ALL),
];

/// Spellings of `/NAME/1`, of which each router takes some for it.
const ODD: &str = r"/NAME/1 /TITLE/1 /CODED/%31 /NAME/1/ /NAME/1. /NAME/1.json /NAME//1 //NAME/1 ///NAME///1// /NAME/./1 /./NAME/1
    /NAME/1/. /NAME/1/x/.. /x/../NAME/1 /x/%2e%2e/NAME/1 /x/..;/NAME/1 /x/..%2fNAME/1 /NAME%2F1 /NAME%2f1 /NAME\1 /NAME%5c1 /NAME/1;x=y
    /NAME;x/1 /;x/NAME/1 /NAME/1; /NAME/1%3Bx /NAME/1%00 /NAME/1%20 /NAME/1%0a /NAME/1%252F /NAME/1%3Fx /NAME/1?x=/../.. /NAME/a%2Fb
    /NAME/%2e/1 /NAME/1%2f /%2FNAME/1 /NAME/%25 /NAME/24%2FMB01 /NAME/1&x /NAME/1,x";

/// Paths that no router takes for those of an enforced operation.
const OTHER: &str = "/read/x /read/24%2FMB01 /read/a;b /read//x /read/a%25b /read/x/ /else /writer/1 /write/1/more /x/write/1";

/// Methods and paths.
fn spellings() -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for (name, [title, coded], methods) in [
        (
            "write",
            ["Write", "%77rite"],
            ["POST", "post", "Post", "PUT"],
        ),
        (
            "report",
            ["REPORT", "repor%74"],
            ["GET", "get", "HEAD", "Head"],
        ),
    ] {
        for path in words(ODD) {
            let path = path.replace("NAME", name).replace("TITLE", title);
            let path = path.replace("CODED", coded);
            all.extend(methods.map(|method| (method, path.clone())));
        }
    }
    all
}

/// Sends every spelling to an API by itself, which takes some for an enforced operation, and without a signature through
/// countersign, which forwards none of these.
fn keeps_what_is_enforced(api: &Api) {
    let is_enforced = |route: Option<&str>| matches!(route, Some("write" | "report"));
    let mut taken = Vec::new();
    for (method, path) in spellings() {
        let answer = api.receives(method, &path);
        if is_enforced(answer.as_ref().and_then(|it| it.header("x-route"))) {
            taken.push(format!("{method} {path}"));
        }
    }
    eprintln!("{}: {}", taken.len(), taken.join(" | "));
    assert!(taken.len() > 12, "{taken:?}");
    for (mode, line, beside) in CONFIGURATIONS {
        let name = format!("{mode} {line}{beside}");
        let config =
            format!("{line}signature.enforcement = '{mode}'\noperation = [{ENFORCED}{beside}]");
        let builder = Proxy::in_front_of_url(&format!("http://{}", api.address));
        let mut proxy = builder.config(&config).start();
        for (method, path) in spellings() {
            let answer = proxy.send(Call::new(method, &path));
            let route = answer.header("x-route");
            assert!(!is_enforced(route), "{name}: {method} {path}: {answer:?}");
            if taken.contains(&format!("{method} {path}")) {
                let is_rejected = (400..500).contains(&answer.status) && route.is_none();
                assert!(is_rejected, "{name}: {method} {path}: {answer:?}");
            }
        }
        for path in words(OTHER) {
            let is_observed = beside != READ || path.starts_with("/read/");
            let answer = proxy.send(Call::get(path));
            let is_forwarded = !answer.text().contains("oauth_problem");
            assert_eq!(is_forwarded, is_observed, "{name}: {path}: {answer:?}");
        }
        let caller = proxy.somebody();
        for (call, route) in [
            (Call::post("/write/1"), "write"),
            (Call::get("/report/1"), "report"),
        ] {
            let answer = proxy.passes(call.of(&caller));
            assert_eq!(answer.header("x-route"), Some(route), "{name}");
        }
        proxy.stop();
    }
}

#[test]
fn flask_receives_nothing_of_an_enforced_operation() {
    keeps_what_is_enforced(&Api::flask());
}

#[test]
fn express_receives_nothing_of_an_enforced_operation() {
    keeps_what_is_enforced(&Api::express());
}

#[test]
fn php_receives_nothing_of_an_enforced_operation() {
    keeps_what_is_enforced(&Api::php());
}

#[test]
fn tomcat_receives_nothing_of_an_enforced_operation() {
    keeps_what_is_enforced(&Api::tomcat());
}

#[test]
fn rails_receives_nothing_of_an_enforced_operation() {
    keeps_what_is_enforced(&Api::rails());
}

const MULTIPART: &str = "multipart/form-data; boundary=x";

/// Posts that Rails takes for deletions.
fn deletions() -> Vec<Call> {
    let part =
        b"--x\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\ndelete\r\n--x--\r\n";
    let photo = || Call::post("/photos/1");
    vec![
        photo().form("_method=delete"),
        photo().form("a=b&%5Fmethod=DELETE"),
        photo().form("_method=put&_method=Delete"),
        photo().body(MULTIPART, part),
        photo().bytes(b"_method=delete"),
    ]
}

#[test]
fn rails_receives_nothing_of_an_enforced_method_by_a_parameter() {
    let api = Api::rails();
    let builder = Proxy::in_front_of_url(&format!("http://{}", api.address));
    let config = "signature.enforcement = 'observe'
        permission = [{ name = 'write', title = 'Write' }]
        limits.form_bytes = '4KiB'
        operation = [
            { path = '/photos/{id}', methods = ['GET', 'POST'] },
            { path = '/photos/{id}', methods = ['PUT'], permission = 'write' },
            { path = '/photos/{id}', methods = ['DELETE'], enforcement = 'enforce' },
            { path = '/write/{id}', methods = ['POST'] }]";
    let mut proxy = builder.config(config).start();
    let caller = proxy.somebody();
    for call in deletions() {
        let mut connection = Connection::to(api.address);
        connection.send(&call.wire("http://a", "a"));
        let answer = connection.answer("POST");
        assert_eq!(answer.header("x-route"), Some("delete"), "{answer:?}");
    }
    // What other frameworks read, and forms that are too large or malformed to be read here.
    let mut calls = deletions();
    calls.extend([
        Call::post("/photos/1?_method=delete"),
        Call::post("/photos/1?_method=delete&a=%"),
        Call::post("/photos/1").form("%20.method=DELETE&[_method]=delete"),
        Call::post("/photos/1").form(".method=delete"),
        Call::post("/photos/1").json(r#"{"_method":"DELETE"}"#),
        Call::post("/photos/1").form("_method=purge"),
        Call::post("/photos/1").form("_method=put&_method=delete"),
        Call::post("/photos/1").form("a=b;_method=delete"),
        Call::post("/photos/1").form("_method=delete;a=b"),
        Call::post("/photos/1").form("X-HTTP-Method-Override=delete"),
        Call::post("/photos/1?x-http-method-override=DELETE"),
        Call::post("/photos/1?_method=put").body(MULTIPART, b"--x--\r\n"),
        Call::get("/photos/1?_method=DELETE").header("Authorization", "Basic oauth_token=1"),
        Call::get("/photos/1?_method=DELETE"),
        Call::post("/photos/1").form(&format!("a={}&_method=delete", "x".repeat(9_000))),
    ]);
    for call in calls {
        let wire = String::from_utf8_lossy(&call.wire("http://a", "a")).into_owned();
        let answer = proxy.send(call);
        assert!((400..500).contains(&answer.status), "{wire}: {answer:?}");
        assert_eq!(answer.header("x-route"), None, "{wire}");
    }
    for (call, route) in [
        (Call::post("/photos/1"), "post"),
        (
            Call::post("/photos/1").form("a=_method&method=delete"),
            "post",
        ),
        (
            Call::post("/photos/1").form("_method=&_method=POST"),
            "post",
        ),
        (
            Call::post("/write/1").body(MULTIPART, b"--x--\r\n"),
            "write",
        ),
        (Call::new("DELETE", "/photos/1").of(&caller), "delete"),
    ] {
        let answer = proxy.passes(call);
        assert_eq!(answer.header("x-route"), Some(route), "{answer:?}");
    }
    proxy.stop();
}

#[test]
fn rails_receives_nothing_of_an_enforced_rule_by_a_parameter() {
    let api = Api::rails();
    let config = |rule: &str| {
        format!(
            "limits.form_bytes = '4KiB'
            permission = [{{ name = 'write', title = 'Write' }}]
            operation = [
                {{ path = '/photos/{{id}}', methods = ['POST'], access = ['anonymous', 'consumer'] }},
                {{ path = '/photos/{{id}}', methods = ['DELETE'], {rule} }}]"
        )
    };
    let large = format!("a={}&_method=delete", "x".repeat(9_000));
    let photo = || Call::post("/photos/1");
    for rule in ["permission = 'write'", "access = ['consumer', 'user']"] {
        let builder = Proxy::in_front_of_url(&format!("http://{}", api.address));
        let mut proxy = builder.config(&config(rule)).start();
        let caller = proxy.somebody();
        for call in [photo().form("_method=delete"), photo().form(&large)] {
            let answer = proxy.send(call.clone());
            assert!((400..500).contains(&answer.status), "{answer:?}");
            let answer = proxy.send(call.of(&caller));
            assert!((400..500).contains(&answer.status), "{answer:?}");
        }
        let answer = proxy.send(photo().form("_method=patch").of(&caller));
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, Some("DELETE, POST"))
        );
        for call in [photo().form("a=b"), photo().form("a=b").of(&caller)] {
            assert_eq!(proxy.passes(call).header("x-route"), Some("post"));
        }
        proxy.stop();
    }
    let builder = Proxy::in_front_of_url(&format!("http://{}", api.address));
    let same = config("access = ['anonymous', 'consumer']");
    let mut proxy = builder.config(&same).start();
    let answer = proxy.passes(photo().form("_method=delete"));
    assert_eq!(answer.header("x-route"), Some("delete"), "equal rules");
    proxy.stop();
}
