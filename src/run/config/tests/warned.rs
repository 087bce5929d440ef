//! Settings that are valid and unwise.

use super::*;

/// The keys of the warnings of a configuration, less those that even the defaults have.
fn warned(text: &str) -> Vec<String> {
    let config = read(&format!("{MINIMAL}{text}"));
    let common = read(MINIMAL).warnings();
    let warnings = config.warnings().into_iter();
    warnings
        .filter(|warning| !common.contains(warning))
        .map(|warning| warning.key)
        .collect()
}

#[test]
fn warns_of_variables_that_look_like_ours_and_set_nothing() {
    let warned = |name: &str| {
        let config = parse(MINIMAL, "c", environment(&[(name, "hunter2")])).unwrap();
        let first = config.warnings().into_iter().next();
        first
            .map(|first| first.to_string())
            .filter(|text| text.starts_with("COUNTERSIGN_"))
    };
    for [name, fix] in crate::text::rows(
        r"
        COUNTERSIGN_LISTEN_ADDRESS | did you mean COUNTERSIGN__LISTEN__ADDRESS?
        COUNTERSIGN_UPSTREAM__API_URL | did you mean COUNTERSIGN__UPSTREAM__API_URL?
        COUNTERSIGN_CONFIGURATION | write COUNTERSIGN__SECTION__KEY, with the keys of config.example.toml, or unset it
    ",
    ) {
        let expected = format!("{name}: this variable sets nothing; {fix}");
        assert_eq!(warned(name), Some(expected));
    }
    for name in crate::text::words(
        "COUNTERSIGN_CONFIG COUNTERSIGN_DATA COUNTERSIGN COUNTERSIGNED
         COUNTERSIGN_SERVICE_HOST COUNTERSIGN_SERVICE_PORT COUNTERSIGN_SERVICE_PORT_HTTP
         COUNTERSIGN_PORT COUNTERSIGN_PORT_80_TCP COUNTERSIGN_PORT_80_TCP_ADDR
         COUNTERSIGN_ADMIN_SERVICE_HOST COUNTERSIGN_ADMIN_PORT_8081_TCP_PROTO",
    ) {
        assert_eq!(warned(name), None);
    }
}

#[test]
fn warns_of_what_is_valid_and_unwise() {
    let public = "pages.name = \"A\"\nservice.base_url = \"https://a\"\n";
    for [text, keys] in crate::text::rows(
        r#"
                                                         |
        service.base_url = "https://a"                   | service.base_url pages.name service.public_api_urls
        pages.name = "A"\nservice.base_url = "https://a"\nservice.public_api_urls = ["https://b"]\nlisten.trusted_proxies = "10.0.0.0/8" |
        pages.name = "A"\nservice.base_url = "https://a"\nservice.public_api_urls = "https://b"\nlisten.trusted_proxies = "10.0.0.0/8"\n[[operation]]\npath = "/x"\naccess = ["user"] | service.public_api_urls
        pages.name = "A"\nservice.base_url = "https://a"\nservice.public_api_urls = ["http://b", "https://a/x"] | service.base_url service.public_api_urls
        service.public_api_urls = ["http://127.0.0.1:9000", "http://127.0.0.1:9001"] | service.public_api_urls
        pages.name = "A"\nservice.base_url = "http://a"\nservice.allow_http = true\nservice.public_api_urls = "https://b" | service.base_url
        listen.trusted_proxies = "0.0.0.0/0"             | listen.trusted_proxies
        signature.methods = ["HMAC-SHA1", "PLAINTEXT"]   | signature.methods
        signature.methods = ["HMAC-MD5"]                 | signature.methods
        signature.timestamp_window = "2h"                | signature.timestamp_window
        signature.default_dialect = "legacy"             | signature.default_dialect
        signature.enforcement = "observe"                | signature.enforcement
        signature.advice = "full"                        | signature.advice
        nonce.on_lost = "accept"                         | nonce.on_lost
        nonce.path = "/tmp/n"                            | nonce.path
        cache.stale_if_error = "1h"                      | cache.stale_if_error
        operations.unlisted = "anonymous"                | operations.unlisted
        operations.unlisted = "consumer"\n[[operation]]\npath = "/a" | operations.unlisted
        service.role = "guard"                           |
        service.role = "guard"\nservice.base_url = "https://a"\nlisten.trusted_proxies = "10.0.0.0/8"\n[[operation]]\npath = "/a" |
        service.role = "guard"\nupstream.host = "upstream"\nupstream.forwarded = false | upstream.host upstream.forwarded
        service.role = "guard"\nservice.public_api_urls = "https://a/api" | service.prefix
        service.role = "guard"\nservice.prefix = "keep"\nservice.public_api_urls = "https://a/api" |
        admin.listen = "0.0.0.0:1"                       | admin.listen
        paths = { encoded = "data", parameters = "data", empty_segments = "data" }\n[[operation]]\npath = "//a%2F;b" | paths.encoded paths.parameters paths.empty_segments
        log.access = false                               | log.access
        [[operation]]\npath = "/a"\nenforcement = "observe" | operation[1].enforcement
        [[operation]]\npath = "/a"\nenforcement = "observe"\nfrom = ["10.0.0.0/8"] | operation[1].enforcement operation[1].from
        signature.enforcement = "observe"\n[[operation]]\npath = "/a"\nfrom = ["10.0.0.0/8"] | signature.enforcement operation[1].from
        signature.enforcement = "observe"\n[[operation]]\npath = "/a"\nmethods = ["POST"]\n[[operation]]\npath = "/a"\nmethods = ["DELETE"]\nenforcement = "enforce" | signature.enforcement operation[1].methods
        signature.enforcement = "observe"\n[[operation]]\npath = "/a"\nmethods = ["GET"]\n[[operation]]\npath = "/a"\nmethods = ["DELETE"]\nenforcement = "enforce" | signature.enforcement
        signature.enforcement = "observe"\n[[operation]]\npath = "/a"\nenforcement = "enforce"\nfrom = ["10.0.0.0/8"] | signature.enforcement
        [[operation]]\npath = "/u/me"\nfrom = ["10.0.0.0/8"]\n[[operation]]\npath = "/u/{id}" | operation[2].path
        [[operation]]\npath = "/a"\naccess = "application"\nlaunch = true\nframed_by = ["https://a", "http://localhost:1"] |
        [[operation]]\npath = "/a"\naccess = "application"\nlaunch = true\nframed_by = ["https://a", "http://b"] | operation[1].framed_by
        [[operation]]\npath = "/a"\nlaunch = true | operation[1].launch
        [[permission]]\nname = "a"\n[[operation]]\npath = "/a"\npermission = "a"\naccess = ["consumer", "anonymous"] | operation[1].access
        [[permission]]\nname = "a"\n[[operation]]\npath = "/u/{id}"\npermission = "a"\n[[operation]]\npath = "/u/%40me" | operation[2].path
        [[operation]]\npath = "/u/me"\nmethods = "HEAD"\naccess = "user"\n[[operation]]\npath = "/u/{*rest}"\nmethods = ["POST", "GET"] | operation[2].path
        [[operation]]\npath = "/u/me"\nmethods = "PUT"\naccess = "user"\n[[operation]]\npath = "/u/{id}"\nmethods = "GET" |
    "#,
    ) {
        let keys = &crate::text::words(keys)[..];
        assert_eq!(warned(text), keys, "{text}");
    }
    let open =
        format!("{public}listen.address = \"0.0.0.0:1\"\nservice.public_api_urls = \"https://b\"");
    assert_eq!(warned(&open), ["listen.address"]);
    assert_eq!(
        warned(&format!("{open}\nlisten.trusted_proxies = \"10.0.0.0/8\"")),
        [""; 0]
    );
    for warning in read(&format!("{MINIMAL}{open}")).warnings() {
        assert_eq!(warning.to_string().lines().count(), 1);
    }
    let stores = "store.backend = \"postgres\"\nstore.url = \"postgres://db/c?sslmode=disable\"\n\
        nonce.url = \"redis://h\"";
    let warnings = read(&format!("{MINIMAL}{stores}")).warnings();
    for key in ["store.url", "nonce.url"] {
        let is_warned = warnings.iter().any(|warning| warning.key == key);
        assert!(is_warned, "{key}: {warnings:?}");
    }
    let far = read("upstream.api_url = \"http://api:80\"\nidentity.forward_authorization = true");
    let keys: Vec<_> = far
        .warnings()
        .into_iter()
        .map(|warning| warning.key)
        .collect();
    assert_eq!(
        keys[..2],
        ["upstream.api_url", "identity.forward_authorization"]
    );
}
