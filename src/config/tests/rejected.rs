//! Bad configurations and the error lines about them.

use super::*;

#[test]
fn names_unknown_keys_and_the_nearest_known_one() {
    rejects(
        "listen.addres = \"127.0.0.1:1\"",
        &["config.toml:2: listen.addres: unknown key, did you mean listen.address?"],
    );
    rejects(
        "[listen]\nrealm = \"x\"",
        &["config.toml:3: listen.realm: unknown key, did you mean service.realm?"],
    );
    rejects(
        "realm = \"x\"",
        &["config.toml:2: realm: unknown key, did you mean service.realm?"],
    );
    rejects(
        "[listen]\ncertificate = \"x\"",
        &["config.toml:3: listen.certificate: unknown key, did you mean listen.tls.certificate?"],
    );
    rejects(
        "[lisen]\naddress = \"127.0.0.1:1\"",
        &["config.toml:2: lisen: unknown section, did you mean [listen]?"],
    );
    rejects(
        "[tls]\ncertificate = \"x\"",
        &["config.toml:2: tls: unknown section, did you mean [listen.tls]?"],
    );
    rejects(
        "[[operations]]\npath = \"/a\"",
        &["config.toml:2: operations: is written once; write [operations], not [[operations]]"],
    );
    rejects(
        "[[permisions]]\nname = \"a\"",
        &["config.toml:2: permisions: unknown section, did you mean [[permission]]?"],
    );
    rejects(
        "[operation]\npath = \"/a\"",
        &[
            "config.toml:2: operation: is written any number of times; write [[operation]] above each one's keys",
        ],
    );
    rejects(
        "[[operation]]\npath = \"/a\"\nmethod = \"GET\"",
        &["config.toml:4: operation[1].method: unknown key, did you mean operation.methods?"],
    );
    rejects(
        "\"log.level\" = \"debug\"",
        &[
            "config.toml:2: \"log.level\": unknown key; a dot between quotes is part of the name, write it bare",
        ],
    );
    rejects(
        "listen = 5",
        &["config.toml:2: listen: is a section; write [listen] and its keys below"],
    );
    rejects(
        "[banana]\nx = 1\n[log]\nbanana = 2",
        &[
            "config.toml:2: banana: unknown section; see config.example.toml",
            "config.toml:5: log.banana: unknown key; see config.example.toml",
        ],
    );
}

#[test]
fn names_key_expected_and_found() {
    for (text, line) in [
        (
            "listen.workers = 0",
            "listen.workers: expected a whole number from 1 to 65535, found 0",
        ),
        (
            "listen.workers = \"4\"",
            "listen.workers: expected a whole number from 1 to 65535, found \"4\"",
        ),
        (
            "listen.address = 8080",
            "listen.address: expected an IP address and a port such as \"127.0.0.1:8080\", or a list of such, found 8080",
        ),
        (
            "listen.address = \"localhost:8080\"",
            "listen.address: expected an IP address and a port such as \"127.0.0.1:8080\", found \"localhost:8080\": write 127.0.0.1",
        ),
        (
            "listen.address = []",
            "listen.address: the list is empty; name one at least, or leave the key out",
        ),
        (
            "listen.trusted_proxies = [\"10.0.0.1/8\"]",
            "listen.trusted_proxies: expected a network such as \"10.0.0.0/8\", found \"10.0.0.1/8\": host bits are set; did you mean 10.0.0.0/8?",
        ),
        (
            "service.allow_http = \"true\"",
            "service.allow_http: expected true or false, found \"true\"",
        ),
        (
            "service.realm = \"é\"",
            "service.realm: expected visible ASCII and spaces, found \"é\"",
        ),
        (
            "service.path = \"/\"",
            "service.path: expected a path such as \"/service.oauth\", found \"/\": it has an empty segment",
        ),
        (
            "upstream.connect_timeout = 2",
            "upstream.connect_timeout: expected a duration such as \"300s\", \"10m\" or \"7d\", found 2: put it in quotes",
        ),
        (
            "upstream.connect_timeout = \"never\"",
            "upstream.connect_timeout: expected a duration such as \"300s\", \"10m\" or \"7d\", found \"never\": it does not begin with a whole number",
        ),
        (
            "upstream.connect_timeout = \"0s\"",
            "upstream.connect_timeout: expected \"1ms\" to \"36500d\", found \"0s\"",
        ),
        (
            "upstream.connect_timeout = 1.5",
            "upstream.connect_timeout: expected a duration such as \"300s\", \"10m\" or \"7d\", found a number with a fraction",
        ),
        (
            "signature.timestamp_window = \"2d\"",
            "signature.timestamp_window: expected \"1s\" to \"1d\", found \"2d\"",
        ),
        (
            "signature.timestamp_window = \"1500ms\"",
            "signature.timestamp_window: expected whole seconds, found \"1500ms\"",
        ),
        (
            "signature.methods = [\"HMAC-SHA3\"]",
            "signature.methods: expected \"HMAC-SHA1\", \"HMAC-MD5\", \"HMAC-SHA256\", \"HMAC-SHA512\", \"RSA-SHA1\", \"RSA-SHA256\", \"RSA-SHA512\" or \"PLAINTEXT\", found \"HMAC-SHA3\"",
        ),
        (
            "signature.methods = [\"HMAC-SHA1\", \"hmac_sha1\"]",
            "signature.methods: items 1 and 2 of the list are the same; leave one out",
        ),
        (
            "signature.advice = \"ful\"",
            "signature.advice: expected \"off\", \"hint\" or \"full\", found \"ful\": did you mean \"full\"?",
        ),
        (
            "nonce.max_entries = 99999999999999999999",
            "nonce.max_entries: expected a whole number from 1 to 18446744073709551615, found 99999999999999999999",
        ),
        (
            "tokens.access_ttl = \"always\"",
            "tokens.access_ttl: expected a duration such as \"12h\" or \"30d\", or \"never\", found \"always\": it does not begin with a whole number",
        ),
        (
            "login.max_failures = \"10\"",
            "login.max_failures: expected a rate such as \"10 per 15m\", found \"10\": a rate has a count and a period, both above zero",
        ),
        (
            "operations.forbidden_status = 500",
            "operations.forbidden_status: expected 404 or 403, found 500",
        ),
        (
            "limits.head_bytes = 32768",
            "limits.head_bytes: expected a size such as \"32KiB\" or \"1MiB\", found 32768: put it in quotes",
        ),
        (
            "limits.form_bytes = \"1MB\"",
            "limits.form_bytes: expected a size such as \"32KiB\" or \"1MiB\", found \"1MB\": the unit is one of B, KiB, MiB, GiB",
        ),
        (
            "limits.connections = 0",
            "limits.connections: expected a whole number from 1 to 4294967295, found 0",
        ),
        (
            "log.level = \"inof\"",
            "log.level: expected a level such as \"info\", or levels by target such as \"info,audit=debug\", found \"inof\": the levels are off, error, warn, info, debug and trace",
        ),
        (
            "identity.user_header = \"X Auth\"",
            "identity.user_header: expected the name of a header field such as \"X-Auth-User\", found \"X Auth\"",
        ),
        (
            "store.encryption_key_file = \"a\\nb\"",
            "store.encryption_key_file: expected a path, found \"a\\nb\": a path has no line break in it; give the file's name, not its content",
        ),
    ] {
        rejects(text, &[&format!("config.toml:2: {line}")]);
    }
}

#[test]
fn reports_every_wrong_key_at_once_in_the_order_of_the_file() {
    let text = "\
[listen]
address = [
  \"x\",
  \"127.0.0.1:1\",
  \"y\",
]
[log]
levl = 1
format = 1979-05-27
";
    let expected = "an IP address and a port such as \"127.0.0.1:8080\"";
    assert_eq!(
        parse(
            text,
            "c.toml",
            environment(&[("COUNTERSIGN__LOG__ACCESS", "perhaps")])
        )
        .unwrap_err()
        .to_string()
        .lines()
        .collect::<Vec<_>>(),
        [
            &format!(
                "c.toml:3: listen.address: expected {expected}, found \"x\": the port is missing"
            ),
            "c.toml:8: log.levl: unknown key, did you mean log.level?",
            "c.toml:9: log.format: expected a word in quotes, found a date or time",
            "c.toml: upstream.api_url: missing; write api_url = \"http://127.0.0.1:9000\", or what it is for you",
            "COUNTERSIGN__LOG__ACCESS: log.access: expected true or false, found \"perhaps\"",
        ]
    );
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
        let start = lines[0].split(": ").take(2).collect::<Vec<_>>();
        assert!(start[0].starts_with("config.toml:"), "{lines:?}");
        assert_eq!(start[1], "not valid TOML", "{lines:?}");
    }
}

#[test]
fn rejects_what_does_not_fit_together() {
    for (text, lines) in [
        (
            "admin.listen = \"127.0.0.1:8080\"",
            &[
                "config.toml:2: admin.listen: 127.0.0.1:8080 is listen.address already; write another port",
            ][..],
        ),
        (
            "admin.probe_listen = \"127.0.0.1:8081\"",
            &[
                "config.toml:2: admin.probe_listen: 127.0.0.1:8081 is admin.listen already; write another port",
            ],
        ),
        (
            "listen.tls.certificate = [\"a\", \"b\"]\nlisten.tls.key = \"a\"",
            &[
                "config.toml:3: listen.tls.key: 2 certificates and 1 keys; name one key for each certificate, in the same order",
            ],
        ),
        (
            "listen.tls.key = \"a\"",
            &[
                "config.toml:2: listen.tls.key: 0 certificates and 1 keys; name one key for each certificate, in the same order",
            ],
        ),
        (
            "listen.tls.client_ca = \"a\"",
            &[
                "config.toml:2: listen.tls.client_ca: peers show a certificate over TLS only; set listen.tls.certificate and listen.tls.key",
            ],
        ),
        (
            "listen.address = \"0.0.0.0:80\"",
            &[
                "config.toml: service.base_url: missing, since listen.address 0.0.0.0:80 is not loopback; write the origin that consumers and browsers use, such as \"https://auth.example.com\"",
            ],
        ),
        (
            "service.base_url = \"http://auth.example.com\"",
            &[
                "config.toml:2: service.base_url: http://auth.example.com would carry passwords in clear; write https://, or set service.allow_http = true",
            ],
        ),
        (
            "service.base_url = \"https://auth.example.com/a\"",
            &[
                "config.toml:2: service.base_url: expected an origin such as \"https://auth.example.com\", found \"https://auth.example.com/a\": an origin has no path, query or fragment",
            ],
        ),
        (
            "service.public_api_urls = [\"https://a\", \"https://A:443/\"]",
            &[
                "config.toml:2: service.public_api_urls: items 1 and 2 of the list are the same; leave one out",
            ],
        ),
        (
            "service.prefix = \"restore\"\nservice.public_api_urls = [\"https://a/x\", \"https://a/y\"]",
            &[
                "config.toml:3: service.public_api_urls: https://a/x and https://a/y cannot be told apart once the prefix is removed; give each its own host, or set service.prefix = \"strip\"",
            ],
        ),
        (
            "service.public_api_urls = \"https://a/%C3%A9\"",
            &[
                "config.toml:2: service.public_api_urls: https://a/%C3%A9: a prefix has no percent-encoding; write another path",
            ],
        ),
        (
            "service.path = \"/oauth/authorize\"",
            &[
                "config.toml:2: service.path: this is one of the aliases already; write another path, or set service.aliases = false",
            ],
        ),
        (
            "upstream.tls.ca = \"a\"",
            &[
                "config.toml:2: upstream.tls.ca: upstream.api_url is not https://, so there is no TLS; leave it out, or write https://",
            ],
        ),
        (
            "upstream.drop_headers = [\"Host\"]",
            &[
                "config.toml:2: upstream.drop_headers: no message goes without host; take host off the list",
            ],
        ),
        (
            "upstream.drop_headers = [\"default\", \"Con*\", \"X-*-Y\"]",
            &[
                "config.toml:2: upstream.drop_headers: expected the name of a header field such as \"X-Real-IP\" or \"X-SSL-Client-*\", or \"default\", found \"X-*-Y\": `*` is allowed at the end only",
            ],
        ),
        (
            "upstream.drop_headers = [\"default\", \"Con*\"]",
            &[
                "config.toml:2: upstream.drop_headers: no message goes without connection; take con* off the list",
            ],
        ),
        (
            "store.url = \":memory:\"",
            &[
                "config.toml:2: store.url: a store in memory ends with the process; write the path of a file",
            ],
        ),
        (
            "store.url = \"postgres://u:secret@h/db\"",
            &[
                "config.toml:2: store.url: with backend \"sqlite\" this is the path of a file, not the URL of a server",
            ],
        ),
        (
            "nonce.path = \"countersign.db\"",
            &["config.toml:2: nonce.path: this is the store's own file; write another"],
        ),
        (
            "login.backend = \"http\"",
            &[
                "config.toml: login.url: missing, since login.backend is \"http\"; write the URL that checks passwords",
            ],
        ),
        (
            "login.backend = \"http\"\nlogin.url = \"http://a/check/\"",
            &[
                "config.toml:3: login.url: passwords would cross the network in clear; write https://",
            ],
        ),
        (
            "login.backend = \"header\"",
            &[
                "config.toml: login.user_header: missing, since login.backend is \"header\"; write the name of the field that the proxy in front sets",
                "config.toml: listen.trusted_proxies: nobody is trusted to name users, but login.backend is \"header\"; write the address of the proxy in front",
            ],
        ),
        (
            "login.url = \"https://a\"",
            &[
                "config.toml:2: login.url: login.backend is \"local\", which asks no URL; leave it out, or set login.backend = \"http\"",
            ],
        ),
        (
            "identity.user_header = \"X_Auth_Kind\"",
            &[
                "config.toml: identity.kind_header: an API may take x-auth-kind for the header of identity.user_header; write names that differ in letters or digits",
            ],
        ),
        (
            "identity.user_header = \"Content_Length\"",
            &[
                "config.toml:2: identity.user_header: content_length has a meaning of its own in HTTP; write another name",
            ],
        ),
        (
            "limits.target_bytes = \"64KiB\"",
            &[
                "config.toml:2: limits.target_bytes: limits.target_bytes 64KiB is over limits.head_bytes 32KiB, of which it is a part; lower the one or raise the other",
            ],
        ),
        (
            "limits.form_bytes = \"17MiB\"",
            &[
                "config.toml:2: limits.form_bytes: limits.form_bytes 17MiB is over a quarter of limits.form_memory 64MiB, which is all that one address gets; lower the one or raise the other",
            ],
        ),
        (
            "limits.form_memory = \"3MiB\"",
            &[
                "config.toml:2: limits.form_memory: limits.form_bytes 1MiB is over a quarter of limits.form_memory 3MiB, which is all that one address gets; lower the one or raise the other",
            ],
        ),
        (
            "[[permission]]\nname = \"a\"\n[[permission]]\nname = \"a\"",
            &["config.toml:5: permission[2].name: a is declared twice; declare it once"],
        ),
        (
            "[[permission]]\ntitle = \"a\"",
            &[
                "config.toml:2: permission[1].name: missing; write name = \"members.read\", or what it is for you",
            ],
        ),
        (
            "[[permission]]\nname = \"members.read\"\n[[operation]]\npath = \"/a\"\npermission = \"member.read\"",
            &[
                "config.toml:6: operation[1].permission: no [[permission]] declares \"member.read\"; did you mean \"members.read\"?",
            ],
        ),
        (
            "[[operation]]\npath = \"/a\"\npermission = \"b\"",
            &[
                "config.toml:4: operation[1].permission: no [[permission]] declares \"b\"; add [[permission]] with name = \"b\"",
            ],
        ),
        (
            "[[operation]]\npath = \"/a/\"",
            &[
                "config.toml:3: operation[1].path: expected a path such as \"/members/{id}\" or \"/files/{*rest}\", found \"/a/\": an empty segment never matches; a path does not end with a slash",
            ],
        ),
        (
            "[[operation]]\npath = \"/a/{id}\"\nmethods = [\"GET\", \"PUT\"]\n[[operation]]\npath = \"/a/{name}\"\nmethods = \"PUT\"",
            &[
                "config.toml:6: operation[2].path: /a/{name} PUT is listed already, as /a/{id} of operation 1; list each path and method once",
            ],
        ),
        (
            "[[operation]]\npath = \"/u/%40me\"\nmethods = \"GET\"\n[[operation]]\npath = \"/u/@me\"\nmethods = \"PUT\"",
            &[
                "config.toml:6: operation[2].path: /u/@me is the same path as /u/%40me, since escapes are decoded before paths are compared; write both alike",
            ],
        ),
        (
            "[[operation]]\npath = \"/a\"\n[[operation]]\npath = \"/a\"\nmethods = \"PUT\"",
            &[
                "config.toml:5: operation[2].path: /a (every method) is listed already, as /a of operation 1; list each path and method once",
            ],
        ),
        (
            "[[operation]]\npath = \"/a\"\nmethods = [\"get\", \"TRACE\"]\naccess = \"admin\"\nupgrade = [\"h2c\"]",
            &[
                "config.toml:4: operation[1].methods: expected a method such as \"GET\", found \"get\": write \"GET\"",
                "config.toml:5: operation[1].access: expected \"consumer\", \"application\", \"user\" or \"anonymous\", found \"admin\"",
                "config.toml:6: operation[1].upgrade: expected \"websocket\", found \"h2c\"",
            ],
        ),
        (
            "[[operation]]\npath = \"/a\"\naccess = []",
            &[
                "config.toml:4: operation[1].access: the list is empty; name one at least, or leave the key out",
            ],
        ),
    ] {
        rejects(text, lines);
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
        accepts(text);
    }
}

#[test]
fn rejects_what_is_not_yet_available() {
    for (text, line) in [
        (
            "admin.token_file = \"a\"",
            "admin.token_file: not yet available; leave it out",
        ),
        (
            "identity.assertion.header = \"X-A\"",
            "identity.assertion.header: not yet available; leave it out",
        ),
        (
            "identity.assertion.key_file = \"a\"",
            "identity.assertion.key_file: not yet available; leave it out",
        ),
        (
            "store.backend = \"redis\"\nstore.url = \"redis://u:secret@h/1\"",
            "store.backend: Redis keeps shared nonces only (nonce.url): records live in SQLite or PostgreSQL; write \"sqlite\" or \"postgres\"",
        ),
        (
            "store.url = \"countersign.db\"\nstore.backend = \"postgres\"\nnonce.scope = \"local\"",
            "store.url: not a URL of PostgreSQL (it does not begin with postgres://); write postgres://USER:PASSWORD@HOST/DATABASE, and escape special characters in it",
        ),
        (
            "nonce.scope = \"shared\"",
            "nonce.scope: a SQLite file is for one process; leave it out, or set store.backend = \"postgres\"",
        ),
        (
            "store.lookup.token_sql = \"SELECT 1\"",
            "store.lookup.token_sql: the query runs in PostgreSQL; leave it out, or set store.backend = \"postgres\"",
        ),
        (
            "store.lookup.consumer_sql = \" \"",
            "store.lookup.consumer_sql: expected a query such as \"SELECT … WHERE key = $1\", found \" \": it is empty",
        ),
        (
            "nonce.url = \"redis://h\"",
            "nonce.url: shared nonces are for store.backend = \"postgres\"; leave it out: SQLite is for one process",
        ),
        (
            "nonce.url = \"redis://h\"\nnonce.scope = \"local\"\nstore.backend = \"postgres\"\nstore.url = \"postgres://h/d\"",
            "nonce.url: nonce.scope is \"local\", so no replicas share nonces; leave it out, or set nonce.scope = \"shared\"",
        ),
        (
            "nonce.url = \"redis://u:secret@h/x\"\nstore.backend = \"postgres\"\nstore.url = \"postgres://h/d\"",
            "nonce.url: the database is a number",
        ),
    ] {
        rejects(text, &[&format!("config.toml:2: {line}")]);
    }
    assert_eq!(
        errors_with("", &[("COUNTERSIGN__NONCE__SCOPE", "shared")]),
        [
            "COUNTERSIGN__NONCE__SCOPE: nonce.scope: a SQLite file is for one process; leave it out, or set store.backend = \"postgres\""
        ]
    );
}

#[test]
fn never_repeats_a_password() {
    for text in [
        "upstream.api_url = \"http://u:hunter2@h\"",
        "upstream.api_url = \"u:hunter2@h\"",
        "service.base_url = \"https:u:hunter2@h\"",
        "[login]\nurl = \"https://u:hunter2@h\"",
        "[store]\nurl = \"postgres://u:hunter2@h/db\"",
        "[nonce]\nurl = \"redis://u:hunter2@h/db\"\n[store]\nbackend = \"postgres\"",
    ] {
        let error = parse(text, "c", no_environment()).unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
