//! The heads that pass between caller and API.

use http::HeaderName;

use super::{pool::Pool, *};
use crate::{
    oauth::Authority,
    request::{
        parse::origin::{ForwardedFamily, Origins, PrefixMode, PublicUrl},
        route::{
            FlowPaths,
            settings::{FlowAt, FlowSettings, Role},
        },
    },
    wire::{outbound::Dialer, server::caller::stream::HeaderCase, url::origin::HttpUrl},
};

pub(super) fn params() -> ForwardParams {
    let api = url::Url::parse("http://api.internal:8000/base").expect("a URL");
    ForwardParams {
        api_path: "/base".to_owned(),
        api_origin: Some(api.origin()),
        host: HostMode::Public,
        forwarded: true,
        dropped: FoldedNames::new(["X-Auth-User"]),
        lookalikes: FoldedNames::new(LOOKALIKES),
        identity: Identity {
            user: HeaderName::from_static("x-auth-user"),
            consumer: HeaderName::from_static("x-auth-consumer"),
            permissions: HeaderName::from_static("x-auth-permissions"),
            kind: HeaderName::from_static("x-auth-kind"),
            assertion: None,
            parameters: Vec::new(),
            forward_authorization: false,
        },
        cookies: [
            "__Host-countersign",
            "__Host-countersign-login",
            "countersign-console",
            "__Host-countersign-console",
        ],
        hop: HeaderValue::from_static("this"),
        response_timeout: Duration::from_secs(1),
        silence_timeout: Duration::from_secs(1),
        tunnel_timeout: Duration::from_secs(1),
    }
}

fn public_url(text: &str) -> PublicUrl {
    HttpUrl::parse(text).expect("a URL").into()
}

#[test]
fn a_location_at_the_api_is_made_public_and_no_other() {
    let public = public_url("https://api.example/v1");
    let origins = |prefix_mode| Origins {
        base: public_url("https://api.example:8443"),
        pages: Vec::new(),
        public: vec![public.clone(), public_url("http://api.example:81")],
        prefix_mode,
        trusted_proxies: Vec::new(),
        family: ForwardedFamily::XForwarded,
    };
    let flow = FlowPaths::new(
        &FlowSettings {
            role: Role::Provider,
            path: "/service.oauth".to_owned(),
            aliases: true,
            flow: None,
            request_token_paths: Vec::new(),
            authorize_paths: Vec::new(),
            access_token_paths: Vec::new(),
        },
        FlowAt::Here,
        false,
    );
    let rewrite_at = |value: &str, prefix_mode, api_path: &str| {
        let params = ForwardParams {
            api_path: api_path.to_owned(),
            ..params()
        };
        let places = response::location::PublicPlaces {
            url: &public,
            origins: &origins(prefix_mode),
            flow: &flow,
        };
        response::location::rewrite(&params, places, value.as_bytes())
    };
    let rewrite = |value: &str, prefix_mode| rewrite_at(value, prefix_mode, "/base");
    for [value, expected] in crate::text::rows(
        r"
        http://api.internal:8000/base/x?y#z                   | https://api.example/v1/x?y#z
        HTTP://API.INTERNAL:8000/base                         | https://api.example/v1
        http://api.internal:8000/base?y                       | https://api.example/v1?y
        # The public host under another scheme or port, written by a framework that does not know about us.
        http://api.example/base/x                             | https://api.example/v1/x
        http://API.example:8000/base/x#z                      | https://api.example/v1/x#z
        https://api.example:8000/base                         | https://api.example/v1
        http://api.example/other                              | as it is
        http://user@api.example/base/x                        | as it is
        http://api.example.evil.example/base/x                | as it is
        http://api.example@evil.example/base/x                | as it is
        ftp://api.example/base/x                              | as it is
        //api.example:8000/base/x                             | as it is
        # The same in one that knows about us, which writes the public host or none.
        https://api.example/base/x?y#z                        | https://api.example/v1/x?y#z
        /base/x?y#z                                           | /v1/x?y#z
        /base                                                 | /v1
        /base//evil.example/x                                 | /v1//evil.example/x
        /\t/evil.example/base/x                              | as it is
        /\\evil.example/base/x                               | as it is
        //api.example/base/x                                  | /v1/x
        # It knows the prefix too.
        /v1/x                                                 | as it is
        /v1                                                   | as it is
        https://api.example/v1/x                              | as it is
        http://api.example/v1/x                               | https://api.example/v1/x
        # What is ours there is right.
        https://api.example:8443/base/x                       | as it is
        http://api.example:81/base/x                          | as it is
        # Beside what is published, elsewhere, or only looking alike.
        http://api.internal:8000/other                        | as it is
        http://api.internal:8000/based                        | as it is
        http://api.internal:8001/base/x                       | as it is
        https://api.internal:8000/base/x                      | as it is
        http://api.internal:8000@evil.example/base/x          | as it is
        http://user@api.internal:8000/base/x                  | as it is
        http://api.internal:8000.evil.example/base/x          | as it is
        http://evil.example/?http://api.internal:8000/base/x  | as it is
        /other                                                | as it is
        base/x                                                | as it is
        //api.internal:8000/base/x                            | as it is
                                                              | as it is
    ",
    ) {
        let rewritten = rewrite(value, PrefixMode::Strip);
        assert_eq!(
            rewritten.as_deref().unwrap_or("as it is"),
            expected,
            "{value}"
        );
    }
    let kept = rewrite("http://api.internal:8000/base/v1/x", PrefixMode::Keep);
    assert_eq!(kept.as_deref(), Some("https://api.example/v1/x"));
    // An API without a path of its own.
    for (value, expected) in [
        ("/x?y", Some("/v1/x?y")),
        ("https://api.example/x", Some("https://api.example/v1/x")),
        ("/v1/x", None),
        ("/v10/x", Some("/v1/v10/x")),
        (
            "http://api.internal:8000/v1/x",
            Some("https://api.example/v1/v1/x"),
        ),
    ] {
        let rewritten = rewrite_at(value, PrefixMode::Strip, "");
        assert_eq!(rewritten.as_deref(), expected, "{value}");
        assert_eq!(rewrite_at(value, PrefixMode::Restore, ""), rewritten);
    }
    assert_eq!(rewrite_at("/x y", PrefixMode::Keep, ""), None);
}

#[test]
fn our_own_cookies_stay_here() {
    let params = params();
    for (sent, passed) in [
        ("a=1; b=2", None),
        ("__Host-countersign=x", Some("")),
        ("a=1;__Host-countersign=x ; b=2", Some("a=1; b=2")),
        (
            "__Host-countersign-login=x; a=1; __Host-countersign=y",
            Some("a=1"),
        ),
        ("__Host-countersign2=x", None),
    ] {
        let without = request::without_ours(sent.as_bytes(), &params);
        assert_eq!(without.as_deref(), passed.map(str::as_bytes), "{sent}");
    }
    for (set, ours) in [
        ("__Host-countersign=x; Path=/", true),
        (" __Host-countersign-login = x", true),
        ("=__Host-countersign=x", true),
        ("= __Host-countersign=x", true),
        ("session=__Host-countersign", false),
        ("__Host-countersignx=1", false),
    ] {
        assert_eq!(
            params.is_reserved_cookie(response::cookie_name(set.as_bytes())),
            ours,
            "{set}"
        );
    }
}

#[test]
fn host_is_kept_only_if_it_equals_the_authority_as_written() {
    for (host, port, sent, kept) in [
        ("api.test", None, "api.test", true),
        ("api.test", Some(8080), "api.test:8080", true),
        ("[::1]", Some(80), "[::1]:80", true),
        ("api.test", Some(80), "api.test:080", false),
        ("api.test", Some(80), "api.test:+80", false),
        ("api.test", Some(80), "api.test", false),
        ("api.test", Some(80), "api.test:81", false),
        ("api.test", None, "api.test:80", false),
        ("api.test", None, "other.test", false),
    ] {
        let authority = Authority { host, port };
        let is_written = request::is_written(&authority, sent.as_bytes());
        assert_eq!(is_written, kept, "{sent}");
    }
}

#[test]
fn a_kept_connection_that_has_ended_or_is_too_old_is_not_used() {
    let minute = Duration::from_secs(60);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())
        .expect("a runtime");
    for (http2, ends) in [(false, true), (false, false), (true, true), (true, false)] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let pool = Pool::new(pool::PoolParams {
            address: pool::Address::Tcp("127.0.0.1".to_owned(), port),
            dialer: Dialer::default(),
            tls: None,
            http2,
            header_case: HeaderCase::Title,
            connect_timeout: minute,
            idle_timeout: minute,
            max_age: minute,
            max_idle: 1,
            head_fields: 100,
        });
        runtime.block_on(async {
            let lease = pool.connect(false).await.expect("a connection");
            let (api, _) = listener.accept().expect("a connection");
            pool.give_back(lease);
            let now = tokio::time::Instant::now();
            let lease = loop {
                // hyper's task makes it ready.
                tokio::task::yield_now().await;
                if let Some(lease) = pool.reuse(false, now) {
                    break lease;
                }
            };
            pool.give_back(lease);
            // From here on no task runs.
            if ends {
                drop(api);
                assert!(pool.reuse(false, now).is_none(), "{http2}");
            } else {
                let young = now + minute * 9 / 10 - Duration::from_secs(1);
                let lease = pool.reuse(false, young).expect("it is young");
                pool.give_back(lease);
                assert!(pool.reuse(false, now + minute).is_none(), "{http2}");
            }
        });
    }
}
