//! Bad configurations and the error lines about them.

use super::*;

#[test]
fn names_unknown_keys_and_the_nearest_known_one() {
    for [text, line] in crate::text::rows(
        r#"
        listen.addres = "127.0.0.1:1"              | 2: listen.addres: unknown key, did you mean listen.address?
        [listen]\nrealm = "x"                      | 3: listen.realm: unknown key, did you mean service.realm?
        realm = "x"                                | 2: realm: unknown key, did you mean service.realm?
        [listen]\ncertificate = "x"                | 3: listen.certificate: unknown key, did you mean listen.tls.certificate?
        [lisen]\naddress = "127.0.0.1:1"           | 3: lisen.address: unknown key, did you mean listen.address?
        [[operations]]\npath = "/a"                | 2: operations: unknown key, did you mean [[operation]]?
        [[operatons]]\npath = "/a"                 | 2: operatons: unknown key, did you mean [[operation]]?
        [[permissions]]\nname = "a"                | 2: permissions: unknown key, did you mean [[permission]]?
        [[banana]]\nname = "a"                     | 2: banana: unknown key; see config.example.toml
        operation = { path = "/a" }\nlog.x = 1     | 3: log.x: unknown key; see config.example.toml$2: operation: write [[operation]] above the keys of each
        [operation]\npath = "/a"                   | 2: operation: write [[operation]] above the keys of each
        [[operation]]\npath = "/a"\n[[operation]]\npath = "/b"\nmethod = "GET" | 6: operation[2].method: unknown key, did you mean operation.methods?
        "log.level" = "debug"                      | 2: "log.level": unknown key, did you mean log.level?
        [log]\n\n# é\nbanana = 2                   | 5: log.banana: unknown key; see config.example.toml
        [[operation]]\npermission = "b"            | 2: operation[1].path: missing; write path = "/members/{id}", or what it is for you
        [banana]                                   | 2: banana: unknown key; see config.example.toml
        listen.admin = "127.0.0.1:1"               | 2: listen.admin: unknown key, did you mean admin.listen?
        listen.admin_address = "127.0.0.1:1"       | 2: listen.admin_address: unknown key, did you mean admin.listen?
        admin.address = "127.0.0.1:1"              | 2: admin.address: unknown key, did you mean admin.listen?
        listen.port = 8080                         | 2: listen.port: unknown key, did you mean listen.address?
        upstream.url = "http://h"                  | 2: upstream.url: unknown key, did you mean upstream.api_url?
        store.path = "a.db"                        | 2: store.path: unknown key, did you mean store.url?
    "#,
    ) {
        let lines = line.split('$').map(|line| format!("config.toml:{line}"));
        assert_eq!(errors(text), lines.collect::<Vec<_>>(), "{text}");
    }
    assert_eq!(errors("log = 5").len(), 1);
}

#[test]
fn names_key_and_what_is_expected() {
    for [text, line] in crate::text::rows(
        r#"
        listen.workers = 0                               | listen.workers: expected a whole number above 0
        listen.workers = "4"                             | listen.workers: expected a whole number above 0
        listen.address = []                              | listen.address: the list is empty; name one at least, or leave the key out
        listen.trusted_proxies = ["10.0.0.1/8"]          | listen.trusted_proxies: expected an address or a network such as "10.0.0.0/8": host bits are set; did you mean 10.0.0.0/8?
        service.allow_http = "true"                      | service.allow_http: expected true or false
        service.realm = "é"                              | service.realm: expected visible ASCII and spaces
        service.path = "/"                               | service.path: expected a path such as "/service.oauth": it has an empty segment
        upstream.connect_timeout = 2                     | upstream.connect_timeout: expected a duration such as "300s", "10m" or "7d", in quotes
        upstream.connect_timeout = "never"               | upstream.connect_timeout: expected a duration such as "300s", "10m" or "7d": write a whole number and ms, s, m, h or d, 36500d at most
        upstream.connect_timeout = "0s"                  | upstream.connect_timeout: expected "1ms" to "36500d"
        signature.timestamp_window = "1500ms"            | signature.timestamp_window: expected whole seconds
        signature.methods = ["HMAC-SHA1", "hmac_sha1"]   | signature.methods: two items of the list are the same; leave one out
        [[operation]]\npath = "/a"\ntimestamp_window = "1500ms" | operation[1].timestamp_window: expected whole seconds
        [[operation]]\npath = "/a"\nfrom = "10.0.0.1/8" | operation[1].from: expected an address or a network such as "10.0.0.0/8": host bits are set; did you mean 10.0.0.0/8?
        [[operation]]\npath = "/a"\nfrom = "office"     | operation[1].from: expected an address or a network such as "10.0.0.0/8": a name is not looked up here; write addresses or networks such as "10.0.0.0/8"
        [[operation]]\npath = "/a"\nfrom = "::ffff:10.0.0.0/104" | operation[1].from: expected an address or a network such as "10.0.0.0/8": an IPv4 network is written as one, such as "10.0.0.0/8"
        [[operation]]\npath = "/a"\nfrom = []           | operation[1].from: the list is empty; name one at least, or leave the key out
        [[operation]]\npath = "/a"\nbody_hash = "always" | operation[1].body_hash: expected `optional` or `required`
        [[operation]]\npath = "/a"\nheaders = "X-A"     | operation[1].headers: expected a table of names, such as { X-LTI-Context = "context_id" }
        [[operation]]\npath = "/a"\nheaders = { "X A" = "a" } | operation[1].headers: "X A" is not the name of a header field
        [[operation]]\npath = "/a"\nheaders = { X-A = "oauth_token" } | operation[1].headers: x-a: oauth_token is one of the credentials; identity.consumer_header has the consumer key, and forward_authorization = true keeps the credentials
        [[operation]]\npath = "/a"\nheaders = { X_Auth_User = "a" } | operation[1].headers: x_auth_user is the header of identity.user_header; write another name
        [[operation]]\npath = "/a"\nheaders = { X-Real-IP = "a" } | operation[1].headers: x-real-ip is in upstream.drop_headers; write another name
        [[operation]]\npath = "/a"\nheaders = { Cookie = "a" } | operation[1].headers: cookie is a field of HTTP or of countersign itself; write another name
        [[operation]]\npath = "/a"\nheaders = { X_Request_Id = "a" } | operation[1].headers: x_request_id is a field of HTTP or of countersign itself; write another name
        [[operation]]\npath = "/a"\nheaders = { X-A = "a", X_A = "b" } | operation[1].headers: x_a is there twice, to an API that folds names; leave one out
        [[operation]]\npath = "/a"\nlaunch = true\nframed_by = "https://*.com" | operation[1].framed_by: expected a site such as "https://lms.example" or "https://*.lms.example": after *. comes a domain of two labels or more
        [[operation]]\npath = "/a"\nlaunch = true\nframed_by = "lms.example" | operation[1].framed_by: expected a site such as "https://lms.example" or "https://*.lms.example": it must start with http:// or https://
        [[operation]]\npath = "/a"\nlaunch = true\nframed_by = [] | operation[1].framed_by: the list is empty; name one at least, or leave the key out
        [[operation]]\npath = "/a"\nframed_by = "https://lms.example" | operation[1].framed_by: only the page of a failed launch may be framed; set launch = true, or leave it out
        [[operation]]\npath = "/a"\nlaunch = true\nmethods = "GET" | operation[1].launch: a browser launches it with POST, which methods does not have; add it, or leave launch out
        service = { role = "guard", flow = "here" }      | service.flow: service.role is "guard", so that the flow is the API's; leave it out, or set service.role = "provider"
        service.role = "guard"\nidentity.forward_authorization = false | identity.forward_authorization: service.role is "guard": the API verifies its calls itself and needs the credentials; leave it out
        service.role = "guard"\noperations.unlisted = "user" | operations.unlisted: service.role is "guard": users log in at the API, and to this program they are "anonymous"; leave "user" out
        service.role = "guard"\nforward_auth.listen = "127.0.0.1:1" | forward_auth.listen: service.role is "guard": the API may read credentials in a body, which another gateway does not show whole; let the gateway send the requests through listen.address instead
        service.role = "guard"\n[[operation]]\npath = "/a"\nforward_authorization = false | operation[1].forward_authorization: service.role is "guard": the API verifies its calls itself and needs the credentials; leave it out
        service.role = "guard"\n[[operation]]\npath = "/a"\naccess = "user" | operation[1].access: service.role is "guard": users log in at the API, and to this program they are "anonymous"; leave "user" out
        service.role = "gard"                            | service.role: expected `provider` or `guard`
        signature.advice = "ful"                         | signature.advice: expected one of `off`, `hint`, `full`
        operations.forbidden_status = 500                | operations.forbidden_status: expected 404 or 403
        limits.form_bytes = "1MB"                        | limits.form_bytes: expected a size such as "32KiB" or "1MiB": write a whole number and B, KiB, MiB or GiB
        forward_auth.body_bytes = "2GiB"                 | forward_auth.body_bytes: expected "0B" to "1GiB"
        store.backend = "redis"\nstore.url = "redis://u:secret@h/1" | store.backend: expected "sqlite" or "postgres": Redis keeps shared nonces only (nonce.url): records live in SQLite or PostgreSQL
        listen.tls.key = "-----BEGIN PRIVATE KEY-----\\nMII\\n" | listen.tls.key: it has a control character in it
        nonce.path = ""                                  | nonce.path: it is empty; name the file
        [[permission]]\ntitle = "a"                      | permission[1].name: missing; write name = "members.read", or what it is for you
        [[operation]]\npath = "/a"\nmethods = ["get", "TRACE"] | operation[1].methods: expected a method such as "GET": write "GET"
    "#,
    ) {
        let errors = errors(text);
        let start = |error: &String| {
            let (file, rest) = error.split_once(": ").unwrap_or_default();
            assert!(file.starts_with("config.toml:"), "{error}");
            rest.to_owned()
        };
        assert_eq!(
            errors.iter().map(start).collect::<Vec<_>>(),
            [line],
            "{text}"
        );
    }
}

#[test]
fn reports_problems_of_all_sections_and_environment_together() {
    let text = "\
[listen]
address = \"x\"
workers = 0
[log]
levl = 1
format = 1.5
[[operation]]
path = \"a\"
[[operation]]
access = \"nobody\"
path = \"/a\"
";
    let variables = environment(&[("COUNTERSIGN__LIMITS__FORM_FIELDS", "many")]);
    let errors = parse(text, "c.toml", variables).unwrap_err();
    let starts = [
        "c.toml:5: log.levl: unknown key",
        "c.toml:2: listen.address: expected an IP address",
        "c.toml: upstream.api_url: missing",
        "c.toml:8: operation[1].path: expected a path",
        "c.toml:10: operation[2].access: expected \"consumer\"",
        "COUNTERSIGN__LIMITS__FORM_FIELDS: limits.form_fields: expected a whole number",
        "c.toml:6: log.format: ",
    ];
    assert_eq!(errors.0.len(), starts.len(), "{errors}");
    for (line, start) in errors.0.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn reports_syntax_errors_on_one_line() {
    for text in [
        "[listen",
        "a = ",
        "a = 1\na = 2",
        "[a]\n[a]",
        "\"",
        "a = [1,\n2",
        "a = {b = 1",
        "\u{0}",
    ] {
        let lines = errors(text);
        assert_eq!(lines.len(), 1, "{text:?}: {lines:?}");
        assert!(lines[0].contains(": not valid TOML: "), "{lines:?}");
    }
    let toml = "the file is TOML";
    for (text, hint) in [
        ("upstream {\n  api_url http://h;\n}", toml),
        ("listen = 8080;", toml),
        ("upstream:\n  api_url: http://h", toml),
        ("{\"upstream\": 1}", toml),
        ("[log]\nlevel = “debug”", "straight quotation marks"),
    ] {
        let lines = errors(text);
        assert!(lines.len() == 1 && lines[0].contains(hint), "{lines:?}");
    }
    assert!(!errors("a = 1\na = 2")[0].contains(toml));
    let lines = errors("[a]\nb = \n");
    assert!(lines[0].starts_with("config.toml:3: "), "{lines:?}");
}

#[test]
fn rejects_what_does_not_fit_together() {
    for [text, key] in crate::text::rows(
        r#"
        admin.listen = "127.0.0.1:8080"                  | admin.listen
        admin.probe_listen = "127.0.0.1:8081"            | admin.probe_listen
        listen.address = ["127.0.0.1:1", "0.0.0.0:1"]\nservice.base_url = "https://a" | listen.address
        listen.tls.certificate = ["a", "b"]\nlisten.tls.key = "a" | listen.tls.key
        listen.tls.client_ca = "a"                       | listen.tls.client_ca
        listen.address = "0.0.0.0:80"                    | service.base_url
        service.base_url = "http://auth.example.com"     | service.base_url
        service.prefix = "restore"\nservice.public_api_urls = ["https://a/x", "https://a/y"] | service.public_api_urls
        service.public_api_urls = "https://a/%C3%A9"     | service.public_api_urls
        service.path = "/oauth/authorize"                | service.path
        [[operation]]\npath = "/a//b"                    | operation[1].path
        [[operation]]\npath = "/a;b"                     | operation[1].path
        [[operation]]\npath = "/a%2Fb"                   | operation[1].path
        paths.encoded = "data"\npaths.parameters = "data"\n[[operation]]\npath = "/a//b" | operation[1].path
        tokens.user_id_parameter = "screen_name"         | tokens.user_id_parameter
        tokens.profile = ["user_id=name"]                | tokens.profile
        upstream.tls.ca = "a"                            | upstream.tls.ca
        upstream.drop_headers = ["default", "Con*"]      | upstream.drop_headers
        store.url = ":memory:"                           | store.url
        store.url = "postgres://u:secret@h/db"           | store.url
        store.backend = "postgres"\nnonce.scope = "local" | store.url
        store.lookup.secret_file = "a"                   | store.lookup.url
        store.lookup.url = "http://127.0.0.1/a"          | store.lookup.secret_file
        store.lookup.url = "http://shop/a"\nstore.lookup.secret_file = "a" | store.lookup.url
        store.lookup.url = "postgres://h/d"\nstore.lookup.secret_file = "a" | store.lookup.url
        store.lookup.url = "unix:run/a.sock:/a"\nstore.lookup.secret_file = "a" | store.lookup.url
        store.lookup.url = "unix:/run/a.sock:/a/../b"\nstore.lookup.secret_file = "a" | store.lookup.url
        store.lookup.url = "unix:/run/a.sock"\nstore.lookup.secret_file = "a"\nstore.lookup.ca = "a" | store.lookup.ca
        store.lookup.url = "https://a/b"\nstore.lookup.secret_file = "a"\nstore.lookup.certificate = "a" | store.lookup.private_key
        nonce.path = "countersign.db"                    | nonce.path
        nonce.scope = "shared"                           | nonce.scope
        nonce.url = "redis://h"                          | nonce.url
        nonce.url = "redis://u:secret@h/x"\nstore.backend = "postgres"\nstore.url = "postgres://h/d" | nonce.url
        login.backend = "http"                           | login.url
        login.backend = "http"\nlogin.url = "http://a/check/" | login.url
        login.url = "https://a"                          | login.url
        login.backend = "header"\nlogin.user_header = "X-User" | listen.trusted_proxies
        identity.user_header = "X_Auth_Kind"             | identity.kind_header
        identity.user_header = "Content_Length"          | identity.user_header
        identity.user_header = "X_Request_Id"            | identity.user_header
        limits.target_bytes = "64KiB"                    | limits.target_bytes
        limits.form_bytes = "17MiB"                      | limits.form_bytes
        [[permission]]\nname = "a"\n[[permission]]\nname = "a" | permission[2].name
        [[permission]]\nname = "a.b"\n[[permission]]\nname = "a-b" | permission[2].name
        [[operation]]\npath = "/a"\npermission = "b"     | operation[1].permission
        [[operation]]\npath = "/a/{id}"\nmethods = ["GET", "PUT"]\n[[operation]]\npath = "/a/{name}"\nmethods = "PUT" | operation[2].path
        [[operation]]\npath = "/@a"\n[[operation]]\npath = "/%40a"\nmethods = "PUT" | operation[2].path
    "#,
    ) {
        let lines = errors(text);
        let names_key = |line: &String| {
            let rest = line.split_once(": ").map(|(_, rest)| rest);
            rest.is_some_and(|rest| rest.starts_with(&format!("{key}: ")))
        };
        assert!(
            lines.len() == 1 && names_key(&lines[0]),
            "{text}: {lines:?}"
        );
    }
}

#[test]
fn accepts_what_only_looks_wrong() {
    for text in [
        "service.base_url = \"http://localhost:8080\"",
        "service.base_url = \"http://auth.example.com\"\nservice.allow_http = true",
        "service.base_url = \"https://a\"\nlisten.address = \"0.0.0.0:80\"",
        "service.prefix = \"restore\"\nservice.public_api_urls = [\"https://a/x\", \"http://a/x\", \"https://b/x\"]",
        "service.public_api_urls = [\"https://a/x\", \"https://a/y\"]",
        "listen.address = [\"127.0.0.1:0\", \"[::1]:0\"]\nadmin.listen = \"127.0.0.1:0\"",
        "nonce.scope = \"local\"\nstore.backend = \"sqlite\"",
        "nonce.url = \"rediss+cluster://h\"\nstore.backend = \"postgres\"\nstore.url = \"postgres://h/d\"",
        "[[operation]]\npath = \"/a/{id}\"\nmethods = [\"GET\"]\n[[operation]]\npath = \"/a/{name}\"\nmethods = [\"PUT\"]",
    ] {
        rejects(text, &[]);
    }
}

#[test]
fn an_assertion_needs_an_audience_where_the_api_has_no_origin() {
    let text = "[forward_auth]\nlisten = \"127.0.0.1:8083\"\n[identity.assertion]\n\
                header = \"X-Assertion\"\nkey_files = [\"a.pem\"]\n";
    let error = parse(text, "c", no_environment()).unwrap_err().to_string();
    let expected = "c: identity.assertion.audience: missing, since upstream.api_url has no origin";
    assert!(error.starts_with(expected), "{error}");
    let text = format!("{text}audience = \"api\"\n");
    assert!(parse(&text, "c", no_environment()).is_ok());
}

#[test]
fn never_repeats_a_value() {
    for text in [
        "upstream.api_url = \"http://u:hunter2@h\"",
        "upstream.api_url = \"u:hunter2@h\"",
        "service.base_url = \"https:u:hunter2@h\"",
        "[login]\nurl = \"https://u:hunter2@h\"",
        "[login]\nbackend = \"hunter2, expected hunter\"",
        "[limits]\nform_fields = \"hunter2\"",
        "[store]\nurl = \"postgres://u:hunter2@h/db\"",
        "[store]\nurl = \"hunter2",
        "[nonce]\nurl = \"redis://u:hunter2@h/db\"\n[store]\nbackend = \"postgres\"",
    ] {
        let error = parse(text, "c", no_environment()).unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
