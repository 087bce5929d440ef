//! Only the proxy names the caller and its address: forged names, hop-by-hop abuse, forwarded fields.
//!
//! Promise (Permissions and identity): No caller can forge or remove an identity header, or send one of
//! `upstream.drop_headers`, in any spelling. Also in `tests/acceptance/provider/sessions.rs`,
//! `tests/acceptance/request/permissions.rs`.

use crate::{
    attacks::{
        case::{Case, Stage, answered, passes},
        script::get,
    },
    support::{Call, Proxy, Upstream, rows, words},
};

/// Forged fields; every case checks that none arrives, whatever the spelling.
fn forged() -> Vec<String> {
    let names = ["X-Auth-User", "X-Auth-Consumer", "X-Auth-Kind"];
    let spellings: [fn(&str) -> String; 8] = [
        |name| name.to_owned(),
        |name| name.to_ascii_lowercase(),
        |name| name.to_ascii_uppercase(),
        |name| name.replace('-', "_"),
        |name| name.replacen('-', "_", 1),
        |name| name.replace('-', "."),
        |name| name.replace('-', "~"),
        |name| name.to_ascii_uppercase().replace('-', "_"),
    ];
    names
        .iter()
        .flat_map(|name| spellings.iter().map(move |spell| spell(name)))
        .collect()
}

#[test]
fn forged_identity_never_arrives() {
    let stage = Stage::new("");
    let mut cases = Vec::new();
    for name in forged() {
        cases.push(passes(
            &name,
            "oauth2-proxy CVE-2025-64484",
            "GET /x",
            get(&format!("{name}: root")),
        ));
    }
    for [name, fields] in rows(
        r"
        twice                               | X-Auth-User: root\r\nX-Auth-User: root
        in two spellings                    | X-Auth-User: root\r\nX_Auth_User: root
        empty                               | X-Auth-User:
        a list                              | X-Auth-User: a, b
        permissions                         | X-Auth-Permissions: admin\r\nx_auth_permissions: admin
        named by Connection                 | Connection: X-Auth-User\r\nX-Auth-User: root
        named by Connection in another case | Connection: x-auth-user, x-auth-kind, x-auth-consumer
        named by a second Connection line   | Connection: keep-alive\r\nConnection: X-Auth-User, X-Auth-Consumer
        all named by Connection             | Connection: X-Auth-User, X-Auth-Consumer, X-Auth-Kind, X-Auth-Permissions
    ",
    ) {
        cases.push(passes(name, "Fabio CVE-2025-48865", "GET /x", get(fields)));
    }
    stage.play(33, &cases);
    for seen in stage.api.requests() {
        assert_eq!(seen.fields.all("x-auth-permissions"), [""], "{seen:?}");
    }
}

#[test]
fn forged_identity_never_arrives_on_an_anonymous_call() {
    let stage = Stage::new(
        "operation = [{ path = '/open', access = ['anonymous'] }, { path = '/probe/{id}' }]",
    );
    let cases: Vec<Case> = forged()
        .iter()
        .map(|name| {
            passes(
                name,
                "oauth2-proxy CVE-2025-64484",
                "GET /open",
                format!("GET /open HTTP/1.1\r\nHost: $H\r\n{name}: root\r\n\r\n"),
            )
            .anonymous()
        })
        .collect();
    stage.play(24, &cases);
}

/// Fields that a `Connection` line names are removed, except those that the proxy itself sets.
#[test]
fn connection_removes_no_field_that_the_proxy_sets() {
    let stage = Stage::new("");
    let body = |fields: &str| {
        format!(
            "POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /x]\r\n{fields}\r\nContent-Length: 3\r\n\r\nabc"
        )
    };
    let mut cases = Vec::new();
    for name in words(
        "Host Content-Length Transfer-Encoding Authorization X-Forwarded-For X-Forwarded-Proto
         X-Forwarded-Host X-Auth-User X-Auth-Kind Connection close-not Expect Date",
    ) {
        cases.push(passes(
            &format!("Connection: {name}"),
            "RFC 9110 §7.6.1; Traefik CVE-2024-45410; Fabio CVE-2025-48865",
            "POST /x | abc",
            body(&format!("Connection: {name}")),
        ));
    }
    cases.push(passes(
        "Connection names the framing of a chunked body",
        "RFC 9110 §7.6.1",
        "POST /x | abc",
        "POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /x]\r\nConnection: Transfer-Encoding, Content-Length\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    ));
    cases.push(passes(
        "empty options",
        "RFC 9110 §5.6.1",
        "GET /x",
        get("Connection: , ,"),
    ));
    for value in ["\"close\"", "a b", "close;x", "X-A:", "@", "\u{e9}"] {
        cases.push(crate::attacks::case::refused(
            &format!("Connection: {value}"),
            "RFC 9110 §7.6.1",
            400,
            get(&format!("Connection: {value}")),
        ));
    }
    cases.push(
        answered(
            "close among others",
            "RFC 9112 §9.6",
            200,
            get("Connection: keep-alive, close") + crate::attacks::script::SMUGGLED,
        )
        .closed()
        .seen(&["GET /x"]),
    );
    cases.push(
        answered(
            "close in a second line",
            "RFC 9112 §9.6",
            200,
            get("Connection: keep-alive\r\nConnection: CLOSE") + crate::attacks::script::SMUGGLED,
        )
        .closed()
        .seen(&["GET /x"]),
    );
    stage.play(23, &cases);
}

#[test]
fn forwarded_fields_of_a_peer_that_is_not_trusted_never_count() {
    let stage = Stage::new("");
    let fields = [
        "X-Forwarded-For: 10.0.0.1",
        "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-For: 10.0.0.2",
        "x-forwarded-for: 10.0.0.1",
        "X_Forwarded_For: 10.0.0.1",
        "X-Forwarded_For: 10.0.0.1",
        "X.Forwarded.For: 10.0.0.1",
        "X-Forwarded-Proto: https",
        "X_Forwarded_Proto: https",
        "X-FORWARDED_PROTO: https",
        "X-Forwarded-Host: evil.test",
        "X_Forwarded_Host: evil.test",
        "Forwarded: for=10.0.0.1;proto=https;host=evil.test",
        "Forwarded: for=10.0.0.1\r\nForwarded: for=10.0.0.2",
        "X-Forwarded-Prefix: /admin",
        "X_Forwarded_Prefix: /admin",
        "x.forwarded-prefix: /admin",
        "X-Forwarded-Host: a b",
        "X-Forwarded-Proto: \"",
        "X-Forwarded-For: nonsense",
        "X-Original-URL: /admin",
        "X_Original_URL: /admin",
        "X-Rewrite-URL: /admin",
        "x_rewrite_url: /admin",
        "X-HTTP-Method-Override: DELETE",
        "X_HTTP_METHOD_OVERRIDE: DELETE",
        "X-HTTP-Method: DELETE",
        "X-Method-Override: DELETE",
        "Proxy: http://evil.test",
        "PROXY: http://evil.test",
        "proxy: evil.test",
    ];
    let cases: Vec<Case> = fields
        .iter()
        .map(|fields| {
            passes(
                fields,
                "Traefik GHSA-5m6w-wvh7-57vm, GHSA-6384-m2mw-rf54; CVE-2016-5385",
                "GET /x",
                get(fields),
            )
        })
        .collect();
    stage.play(30, &cases);
    let host = stage.proxy.host();
    for seen in stage.api.requests() {
        assert_eq!(
            seen.fields.all("x-forwarded-for"),
            ["127.0.0.1"],
            "{seen:?}"
        );
        assert_eq!(seen.fields.all("x-forwarded-proto"), ["http"], "{seen:?}");
        assert_eq!(
            seen.fields.all("x-forwarded-host"),
            [host.as_str()],
            "{seen:?}"
        );
        for (name, value) in &seen.fields.0 {
            let folded = name
                .to_ascii_lowercase()
                .replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            let never = [
                "forwarded",
                "x-forwarded-prefix",
                "x-original-url",
                "x-rewrite-url",
                "x-http-method",
                "x-http-method-override",
                "x-method-override",
                "proxy",
            ];
            assert!(
                !never.contains(&folded.as_str()),
                "{name}: {value} arrives: {seen:?}"
            );
        }
    }
}

/// CVE-2026-40575: a forwarded field never decides whether to verify, whatever its sender.
#[test]
fn forwarded_fields_never_choose_whether_to_verify() {
    for trusted in ["", "listen.trusted_proxies = ['127.0.0.0/8']\n"] {
        let stage = Stage::new(&format!(
            "{trusted}operation = [{{ path = '/public/{{*rest}}', access = ['anonymous'] }}, {{ path = '/admin' }}, {{ path = '/probe/{{id}}' }}]"
        ));
        let mut cases = Vec::new();
        for field in [
            "X-Forwarded-Uri: /public/x",
            "X-Original-URI: /public/x",
            "X-Original-URL: /public/x",
            "X-Rewrite-URL: /public/x",
            "X-Forwarded-Method: OPTIONS",
            "X-Original-Method: OPTIONS",
            "X-HTTP-Method-Override: OPTIONS",
            "X-Forwarded-Path: /public/x",
            "X-Forwarded-Prefix: /public",
            "X-Envoy-Original-Path: /public/x",
            "X-Auth-User: root",
            "X-Forwarded-User: root",
            "Forwarded: path=/public/x",
            "X-Real-IP: 127.0.0.1",
            "X-Client-Cert: x",
        ] {
            cases.push(answered(
                field,
                "oauth2-proxy CVE-2026-40575",
                401,
                format!("GET /admin HTTP/1.1\r\nHost: $H\r\n{field}\r\n\r\n"),
            ));
        }
        stage.play(15, &cases);
    }
}

/// CVE-2026-33496: a proof that was cached for one use is not valid for another.
#[test]
fn a_cached_token_is_valid_only_for_its_consumer_and_permission() {
    let api = Upstream::start();
    let proxy = Proxy::with(
        &api,
        "permission = [{ name = 'read', title = 'Read' }, { name = 'write', title = 'Write' }]\n\
             operation = [{ path = '/read', permission = 'read' }, { path = '/write', permission = 'write' }]",
    );
    let both = "--permission read --permission write";
    let (shop, other) = (
        proxy.consumer_with("Shop", both),
        proxy.consumer_with("Other", both),
    );
    let user = proxy.user("alice");
    let token = proxy.token_with(&shop, &user, "--permission read");
    let call = |target: &str| Call::get(target).by(&shop).with(&token);
    proxy.send(call("/read")).has_status(200);
    proxy.send(call("/write")).is(404, "permission_denied");
    proxy
        .send(Call::get("/read").by(&other).with(&token))
        .is(401, "token_rejected");
    proxy
        .send(
            Call::get("/read")
                .by(&other)
                .with(&token)
                .key(&format!("{}&{}", shop.secret, token.secret)),
        )
        .is(401, "token_rejected");
    proxy.send(call("/read")).has_status(200);
    assert_eq!(api.count(), 2);
}

/// Fields that an API, or a server in front of it, trusts as set by its own proxy. Their sources: nginx, Apache and
/// HAProxy examples, Envoy, Traefik, oauth2-proxy, Authelia, authentik, Kong, Pomerium, Vouch, Grafana, Kubernetes,
/// Azure, Google Cloud, AWS, Cloudflare, F5, WebSphere, Akamai, Fastly, Fly, Netlify, WebLogic, Shibboleth, `SiteMinder`,
/// WebSEAL, RFC 9440; gunicorn (PATH_INFO, SCRIPT_NAME), Rack (CVE-2025-61780), Next.js (CVE-2025-29927).
const BELIEVED: &str = "X-Original-URL X-Original-URI X-Original-Path X-Original-Host X-Original-Method X-Rewrite-URL \
    X-HTTP-Method X-HTTP-Method-Override X-Method-Override X-HTTP-Host-Override X-Host X-Envoy-Original-Path \
    X-Middleware-Subrequest X-Accel-Mapping X-Sendfile-Type Path-Info Script-Name X-Script-Name Request-URI \
    X-Real-IP X-Client-IP Client-IP True-Client-IP CF-Connecting-IP CF-Connecting-IPv6 X-Cluster-Client-IP \
    X-Originating-IP Fastly-Client-IP Fly-Client-IP X-NF-Client-Connection-IP X-Azure-ClientIP X-ProxyUser-IP \
    Proxy-Client-IP WL-Proxy-Client-IP WL-Proxy-SSL HTTP-Client-IP HTTP-X-Forwarded-For Remote-Addr X-Remote-Addr \
    X-Envoy-External-Address X-AppEngine-User-IP X-Forwarded X-Forwarded-By X-Forwarded-Port X-Forwarded-Server \
    X-Forwarded-Scheme X-Forwarded-Ssl X-Forwarded-Uri X-Forwarded-Method Forwarded-For X-Scheme X-URL-Scheme \
    Front-End-Https X-Vercel-Forwarded-For X-Original-Forwarded-For \
    Remote-User Remote-Groups Remote-Name Remote-Email X-Remote-User X-Remote-Group X-Remote-Extra-Scopes \
    X-Forwarded-User X-Forwarded-Email X-Forwarded-Groups X-Forwarded-Preferred-Username X-Forwarded-Access-Token \
    X-User X-User-Id X-User-Name X-User-Email X-Username X-WEBAUTH-USER X-WEBAUTH-ROLE X-Auth-Request-User \
    X-Auth-Request-Groups X-Authenticated-User X-Authenticated-Userid X-Authentik-Username X-Consumer-Username \
    X-Consumer-Custom-ID X-Credential-Identifier X-Anonymous-Consumer X-Pomerium-Jwt-Assertion X-Vouch-User \
    X-MS-CLIENT-PRINCIPAL X-MS-CLIENT-PRINCIPAL-NAME X-MS-TOKEN-AAD-ID-TOKEN X-Goog-Authenticated-User-Email \
    X-Goog-IAP-JWT-Assertion X-Amzn-Oidc-Identity X-Amzn-Oidc-Data Cf-Access-Authenticated-User-Email \
    X-AppEngine-User-Email X-AppEngine-Cron OIDC_CLAIM_sub Shib-Identity-Provider SM_USER OAM_REMOTE_USER iv-user \
    iv-groups CAS-User \
    X-SSL-Client-Cert X-SSL-Client-Verify X-SSL-Client-S-DN X-SSL-Cert SSL-Client-Verify SSL_CLIENT_S_DN X-Client-Cert \
    X-Client-Certificate X-Client-Verify X-Client-DN Client-Cert Client-Cert-Chain X-TLS-Client-Subject \
    X-Forwarded-Client-Cert X-Forwarded-Tls-Client-Cert-Info X-Amzn-Mtls-Clientcert-Subject X-ARR-ClientCert \
    Cf-Cert-Verified Cf-Cert-Subject-Dn Cf-Client-Cert-Der-Base64 SSLClientCertStatus $WSRU $WSCC";

#[test]
fn fields_that_apis_trust_from_a_proxy_never_come_from_a_caller() {
    let names: Vec<&str> = BELIEVED.split_ascii_whitespace().collect();
    assert_eq!(names.len(), 125);
    let spellings: [fn(&str) -> String; 4] = [
        |name| name.to_owned(),
        |name| name.replace('-', "_").to_ascii_uppercase(),
        |name| name.replace('-', ".").to_ascii_lowercase(),
        |name| name.replacen('-', "_", 1),
    ];
    // No sender of these is trusted: a proxy in front passes on the fields that it does not know.
    for trusted in ["", "listen.trusted_proxies = '127.0.0.1'\n"] {
        let stage = Stage::new(&format!(
            "{trusted}operation = [{{ path = '/x' }}, {{ path = '/open', access = ['anonymous'] }}]"
        ));
        for spell in spellings {
            // Fewer than a head may have.
            for names in names.chunks(60) {
                let fields: Vec<String> = names
                    .iter()
                    .map(|name| format!("{}: forged", spell(name)))
                    .collect();
                let fields = fields.join("\r\n");
                let open = format!("GET /open HTTP/1.1\r\nHost: $H\r\n{fields}\r\n\r\n");
                for request in [get(&fields), open] {
                    let mut connection = stage.proxy.connect();
                    connection.send(&stage.bytes(&request));
                    connection.answer("GET").has_status(200);
                    let seen = stage.api.last_request();
                    let forged: Vec<_> = seen
                        .fields
                        .0
                        .iter()
                        .filter(|(_, v)| v == "forged")
                        .collect();
                    assert!(forged.is_empty(), "{forged:?}");
                }
            }
        }
    }
}

#[test]
fn useful_fields_of_callers_are_forwarded() {
    let stage = Stage::new("");
    let names = "Accept Accept-Language User-Agent X-Requested-With X-Api-Key X-CSRF-Token X-Client-Version \
        X-User-Agent X-Auth-Token X-Correlation-ID Traceparent Range If-None-Match Idempotency-Key Origin DNT Via Hostname \
        Prefer X-Amz-Date X-Goog-Meta-A X-MS-Version Remote SSL X-Realm Forward Paths";
    let fields: Vec<String> = names
        .split_ascii_whitespace()
        .map(|name| format!("{name}: kept"))
        .collect();
    let mut connection = stage.proxy.connect();
    connection.send(&stage.bytes(&get(&fields.join("\r\n"))));
    connection.answer("GET").has_status(200);
    let seen = stage.api.only_request();
    for name in names.split_ascii_whitespace() {
        assert_eq!(seen.fields.all(name), ["kept"], "{name}");
    }
}

/// An operator's own list replaces the default, and `"default"` in it includes the default.
#[test]
fn operators_dropped_fields_replace_or_extend_the_default() {
    for [list, dropped, arrives] in rows(
        r"
        []                      |                                      | X-Mine X-Real-IP X-Mine-2
        ['X-Mine']              | X-Mine x_mine                        | X-Real-IP X-Mine-2
        ['X-Mine*']             | X-Mine x_mine X-Mine-2 X.MINED       | X-Real-IP
        ['default', 'X-Mine-*'] | X-Real-IP X_Mine_2 X-SSL-Client-Cert | X-Mine
    ",
    ) {
        let stage = Stage::new(&format!("upstream.drop_headers = {list}"));
        let names = || format!("{dropped} {arrives}");
        let fields: Vec<String> = names()
            .split_ascii_whitespace()
            .map(|name| format!("{name}: 1"))
            .collect();
        let mut connection = stage.proxy.connect();
        connection.send(&stage.bytes(&get(&fields.join("\r\n"))));
        connection.answer("GET").has_status(200);
        let seen = stage.api.only_request();
        for name in dropped.split_ascii_whitespace() {
            assert!(!seen.fields.has(name), "{list}: {name}");
        }
        for name in arrives.split_ascii_whitespace() {
            assert!(seen.fields.has(name), "{list}: {name}");
        }
        // Whatever is listed, fields that the proxy sets keep its values.
        assert_eq!(seen.fields.all("x-forwarded-for"), ["127.0.0.1"], "{list}");
    }
}
