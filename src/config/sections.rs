//! The sections of the configuration: every key with its type, its default and the reason for it.
//!
//! This is the one list of keys. Their first lines are also what `config.example.toml` says about them.

use std::{
    net::SocketAddr,
    num::{NonZeroU16, NonZeroU32, NonZeroU64},
    path::PathBuf,
    time::Duration,
};

use http::HeaderName;
use ipnet::IpNet;

use super::{
    address::{ApiUrl, BaseUrl, ListenAddress, PublicUrl, ServerName, UpstreamHost},
    checks::{between, distinct, filled_and_distinct, quotable, seconds, service_path},
    header::HeaderPattern,
    method::MethodName,
    pattern::PathPattern,
    schema::section,
    store_url::StoreUrl,
    units::{ByteSize, DAY, LONGEST, Lifetime, Rate, SECOND},
    url::HttpUrl,
    words::{
        Advice, CallerKind, Enforcement, ForbiddenStatus, ForwardedFamily, LogFormat, LoginBackend,
        NonceScope, OnLost, PathPolicy, PrefixMode, StoreBackend, Unlisted, UpgradeProtocol,
    },
};
use crate::{
    names::Permission, oauth::SignatureMethod, store::record::Dialect, telemetry::log::LogLevel,
};

const MILLISECOND: Duration = Duration::from_millis(1);

section! {
    /// The public listener: token endpoints, pages and protected calls.
    Listen["listen"] {
        /// Where to listen; a list is allowed. Loopback until somebody decides otherwise.
        address: Vec<SocketAddr> = r#""127.0.0.1:8080""#, check filled_and_distinct;
        /// Worker threads, each with its own connections to the API.
        workers: Option<NonZeroU16> = absent "the number of cores", "4";
        /// Networks whose forwarded fields count; none by default, because callers can send these fields too.
        trusted_proxies: Vec<IpNet> = "[]", check distinct;
        /// The fields that these proxies write: "x-forwarded" (X-Forwarded-For, -Proto, -Host) or "forwarded" (RFC 7239). The other family is ignored and dropped from every caller, because a proxy forwards the fields that it does not know.
        forwarded: ForwardedFamily = r#""x-forwarded""#;
        /// SIGTERM: how long running requests may take to finish. What supervises the process should wait longer than this and drain_delay together.
        drain: Duration = r#""30s""#;
        /// SIGTERM: how long to go on accepting while not ready, so that a load balancer notices.
        drain_delay: Duration = r#""0s""#;
        /// HTTP/2 beside HTTP/1.1: by ALPN under TLS, by prior knowledge without.
        http2: bool = "true";
    }
    with {
        /// TLS on the public listener.
        tls: ListenTls,
    }
}

section! {
    /// TLS on the public listener; without it the listener speaks plain HTTP. Read anew on SIGHUP and when a file changes.
    ListenTls["listen.tls"] {
        /// The certificate chain, PEM; of a list the one that fits the name the peer asks for (SNI).
        certificate: Vec<PathBuf> = absent "none", r#""fullchain.pem""#, check distinct;
        /// The private key of each certificate, in the same order, PEM.
        key: Vec<PathBuf> = absent "none", r#""privkey.pem""#;
        /// Demands a certificate from peers, signed by one of these authorities, PEM.
        client_ca: Vec<PathBuf> = absent "none", r#""clients-ca.pem""#, check distinct;
    }
}

section! {
    /// The service as consumers and browsers see it.
    Service["service"] {
        /// The public origin of the token endpoints and pages. https unless its host is loopback.
        base_url: BaseUrl = absent "the listener, if it is loopback", r#""https://auth.example.com""#;
        /// Lets base_url be http on a host that is not loopback: passwords and session cookies then cross the network in clear.
        allow_http: bool = "false";
        /// The URLs, a path prefix allowed, for which consumers sign protected calls. The signature's origin is taken from here, never from what was received.
        public_api_urls: Vec<PublicUrl> = absent "[service.base_url]", r#"["https://api.example.com"]"#, check filled_and_distinct;
        /// What becomes of such a prefix: "strip" (arrives, is not forwarded), "keep", "restore" (the proxy in front removed it; put back for the signature only).
        prefix: PrefixMode = r#""strip""#;
        /// The realm in WWW-Authenticate.
        realm: String = r#""countersign""#, check quotable;
        /// The path of the token endpoint, under base_url only.
        path: String = r#""/service.oauth""#, check service_path;
        /// Also answers on /oauth/request_token, /oauth/authorize and /oauth/access_token, which many client libraries presume.
        aliases: bool = "true";
    }
}

section! {
    /// The API behind. One process fronts one API; several APIs are several processes on one store.
    Upstream["upstream"] {
        /// http://, https:// or unix:/path.sock; a path goes in front of what is forwarded. The one key without a default.
        api_url: ApiUrl = required r#""http://127.0.0.1:9000""#;
        /// To open a connection. An API that takes longer is down.
        connect_timeout: Duration = r#""2s""#, check between(MILLISECOND, LONGEST);
        /// From the end of the request to the head of the answer.
        response_timeout: Duration = r#""60s""#, check between(MILLISECOND, LONGEST);
        /// How long an unused connection is kept. Keep it below the API's own, or requests meet connections that just closed.
        idle_timeout: Duration = r#""60s""#, check between(MILLISECOND, LONGEST);
        /// How many unused connections each worker keeps.
        max_idle: u32 = "128";
        /// Speaks HTTP/2 to the API: over TLS where ALPN agrees, else by prior knowledge. gRPC needs it.
        http2: bool = "false";
        /// The Host that the API gets: "public" (as received), "upstream" (api_url's), or a name.
        host: UpstreamHost = r#""public""#;
        /// Sets X-Forwarded-For, -Proto and -Host, so that the API knows the caller's address and builds public links.
        forwarded: bool = "true";
        /// Headers of callers that are dropped, whoever sends them and in every spelling that an API may take for them: those by which it would undo the decision made here or believe an identity, an address or a certificate. "*" at the end of a name matches any rest.
        /// A list replaces this one; "default" in it stands for it. If a trusted proxy in front sets one of these for the API, write a list of your own without it.
        drop_headers: Vec<HeaderPattern> = r#"[
    "X-Original-*", "X-Rewrite-URL", "X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override",
    "X-HTTP-Host-Override", "X-Host", "X-Envoy-*", "X-Middleware-*", "X-Accel-*", "X-Sendfile-Type",
    "Script-Name", "X-Script-Name", "Path-Info", "X-Path-Info", "Request-URI",
    "X-Forwarded*", "Forwarded-*", "X-Real-*", "X-Scheme", "X-URL-Scheme", "Front-End-HTTPS", "Client-IP", "X-Client-IP",
    "X-Cluster-Client-IP", "X-Originating-IP", "X-ProxyUser-IP", "Proxy-Client-IP", "WL-Proxy-*", "HTTP-Client-IP",
    "HTTP-X-*", "HTTP-Forwarded*", "True-Client-*", "CF-Connecting-*", "CF-Access-*", "CF-Pseudo-*", "Fastly-Client-*", "Fly-Client-IP",
    "X-Azure-ClientIP", "X-Azure-SocketIP", "X-NF-Client-*", "X-Vercel-Forwarded-For", "X-AppEngine-*",
    "Remote-*", "X-Remote-*", "X-User", "X-User-ID", "X-User-Name", "X-User-Email", "X-Username", "X-WebAuth-*", "X-Auth-Request-*",
    "X-Authenticated-*", "X-Authentik-*", "X-Consumer-*", "X-Credential-*", "X-Anonymous-Consumer", "X-Pomerium-*", "X-Vouch-*",
    "X-MS-Client-Principal*", "X-MS-Token-*", "X-Goog-Authenticated-User-*", "X-Goog-IAP-*", "X-Amzn-OIDC-*", "X-Amzn-MTLS-*",
    "OIDC-*", "Shib-*", "SM-*", "OAM-*", "iv-*", "CAS-User",
    "X-SSL-*", "SSL-*", "X-TLS-*", "X-Client-Cert*", "X-Client-DN", "X-Client-Verify", "Client-Cert*", "X-ARR-*",
]"#, check distinct;
    }
    with {
        /// TLS to the API.
        tls: UpstreamTls,
    }
}

section! {
    /// TLS to an https:// API. Read anew on SIGHUP and when a file changes.
    UpstreamTls["upstream.tls"] {
        /// The authorities to trust, PEM.
        ca: Vec<PathBuf> = absent "the system's", r#""api-ca.pem""#, check distinct;
        /// Our own certificate, PEM, for an API that demands one.
        certificate: Option<PathBuf> = absent "none", r#""client.pem""#;
        /// Its private key, PEM.
        key: Option<PathBuf> = absent "none", r#""client-key.pem""#;
        /// The name that the API's certificate is for.
        server_name: Option<ServerName> = absent "the host of api_url", r#""api.internal""#;
    }
}

section! {
    /// How requests are signed.
    Signature["signature"] {
        /// Accepted methods. PLAINTEXT is left out: it proves nothing to whoever reads along.
        methods: Vec<SignatureMethod> = r#"["HMAC-SHA1", "HMAC-MD5", "HMAC-SHA256", "HMAC-SHA512", "RSA-SHA1", "RSA-SHA256", "RSA-SHA512"]"#, check filled_and_distinct;
        /// How far a consumer's clock may be off, either way. Every nonce is remembered twice that long. Widening it never admits what had left the old window.
        timestamp_window: Duration = r#""300s""#, check seconds(SECOND, DAY);
        /// The base string of consumers registered without a dialect: "rfc5849" or "legacy".
        default_dialect: Dialect = r#""rfc5849""#;
        /// The token calls also accept the base string and key of the service's own description.
        accept_description: bool = "true";
        /// "observe" verifies, counts and logs, but lets protected calls through: for the weeks before switching on.
        enforcement: Enforcement = r#""enforce""#;
        /// What an answer to a wrong signature tells: "off", "hint" (the known mistake that would match), "full" (also the base string computed here).
        advice: Advice = r#""hint""#;
    }
}

section! {
    /// The memory of used nonces, which is what refuses a replayed request.
    Nonce["nonce"] {
        /// "local": this process alone; "shared": in the store, for several replicas.
        scope: Option<NonceScope> = absent "local with sqlite, else shared", r#""local""#;
        /// Past it signed requests get 503; a nonce that is still valid is never forgotten. 12 to 25 bytes each.
        max_entries: NonZeroU64 = "50_000_000";
        /// Where the window survives a restart. One process at a time.
        path: Option<PathBuf> = absent "beside the SQLite file", r#""countersign.db.nonces""#;
        /// The file is gone though there was an earlier run: "refuse" signed requests until none of that run's could be replayed, or "accept" them at once.
        on_lost: OnLost = r#""refuse""#;
    }
}

section! {
    /// Where consumers, users and tokens are kept.
    Store["store"] {
        /// "sqlite": one file, no server.
        backend: StoreBackend = r#""sqlite""#;
        /// The path of the file.
        url: StoreUrl = r#""countersign.db""#;
        /// The file of a 32-byte key with which secrets are encrypted at rest. Without it a copy of the store is a copy of every secret.
        encryption_key_file: Option<PathBuf> = absent "none", r#""store.key""#;
    }
}

section! {
    /// The cache in front of the store: consumers and tokens ready for use.
    Cache["cache"] {
        /// How many of them at most.
        max_entries: u64 = "1_000_000";
        /// How long one is used without asking the store again; revocations made through countersign arrive within a second regardless.
        ttl: Duration = r#""60s""#;
        /// How long an unknown name stays unknown.
        negative_ttl: Duration = r#""5s""#;
        /// How long a credential may still be used when the store is away. Short, because a revocation cannot arrive then.
        stale_if_error: Duration = r#""10s""#;
    }
}

section! {
    /// Lifetimes of tokens.
    Tokens["tokens"] {
        /// Of a request token: to approve it, and, counted anew, to exchange it.
        request_ttl: Duration = r#""10m""#, check seconds(SECOND, LONGEST);
        /// Of an access token, from issue; "never" as such services have always done.
        access_ttl: Lifetime = r#""never""#, check lifetime;
        /// Of an access token, from its last use.
        access_idle: Lifetime = r#""never""#, check lifetime;
    }
}

section! {
    /// How users prove who they are.
    Login["login"] {
        /// "local": accounts of the store (argon2id); "http": the credentials are posted to login.url.
        backend: LoginBackend = r#""local""#;
        /// Answers with the user's id. https unless its host is loopback.
        url: Option<HttpUrl> = absent "none", r#""https://accounts.example.com/check""#;
        /// How long a browser stays logged in.
        session_ttl: Duration = r#""12h""#, check seconds(SECOND, LONGEST);
        /// Failed logins of one account from one address before 429; ten times that for an address alone.
        max_failures: Rate = r#""10 per 15m""#;
    }
}

section! {
    /// What the API is told about the caller. Whatever a caller sends under these names is dropped.
    Identity["identity"] {
        /// The user's id.
        user_header: HeaderName = r#""X-Auth-User""#;
        /// The consumer's key.
        consumer_header: HeaderName = r#""X-Auth-Consumer""#;
        /// The permissions granted, separated by spaces.
        permissions_header: HeaderName = r#""X-Auth-Permissions""#;
        /// "consumer", "application", "user" or "anonymous"; always sent.
        kind_header: HeaderName = r#""X-Auth-Kind""#;
        /// Lets the oauth_ credentials go on to the API untouched, for one that verifies them itself.
        forward_authorization: bool = "false";
    }
    with {
        /// A proof of the identity that the API can verify.
        assertion: IdentityAssertion,
    }
}

section! {
    /// A short-lived signed JWT beside the identity headers, for an API that others could reach too.
    IdentityAssertion["identity.assertion"] {
        /// The header that carries it.
        header: Option<HeaderName> = absent "none", r#""X-Auth-Assertion""#;
        /// The Ed25519 key that signs it, PEM.
        key_file: Option<PathBuf> = absent "none", r#""assertion.key""#;
    }
}

section! {
    /// What holds for all operations.
    Operations["operations"] {
        /// Who may call what no `[[operation]]` lists: "consumer", "application", "user", "anonymous" or "nobody".
        unlisted: Option<Unlisted> = absent "consumer while there is no [[operation]], else nobody", r#""nobody""#;
        /// 404 hides what may not be seen, 403 tells.
        forbidden_status: ForbiddenStatus = "404";
    }
}

section! {
    /// One protected operation. The most specific pattern wins; a listed path with an unlisted method is 405.
    Operation["operation", list] {
        /// {name} is one segment, {*rest} what is left.
        path: PathPattern = required r#""/members/{id}""#;
        /// GET covers HEAD.
        methods: Vec<MethodName> = absent "every method", r#"["GET"]"#, check filled_and_distinct;
        /// What the token and the consumer must both have.
        permission: Option<Permission> = absent "none is needed", r#""members.read""#;
        /// Who may call it: "consumer" (with an access token), "application" (a consumer without one), "user" (logged in directly), "anonymous".
        access: Vec<CallerKind> = r#"["consumer"]"#, check filled_and_distinct;
        /// "enforce" or "observe" for this operation alone.
        enforcement: Option<Enforcement> = absent "signature.enforcement", r#""observe""#;
        /// Protocols that it may switch to: "websocket".
        upgrade: Vec<UpgradeProtocol> = absent "none", r#"["websocket"]"#, check filled_and_distinct;
    }
}

section! {
    /// What consumers can ask for, as the consent page shows it.
    PermissionEntry["permission", list] {
        /// What operations, consumers and tokens call it.
        name: Permission = required r#""members.read""#;
        /// What the user reads.
        title: Option<String> = absent "the name", r#""Read your profile""#;
        /// What it means, in a sentence.
        description: Option<String> = absent "none", r#""Your name and your picture, no addresses.""#;
    }
}

section! {
    /// The service's path conventions, on protected paths only.
    Paths["paths"] {
        /// "log" or "enforce" (400 with the rule named) what a machine can decide; off, since an API that is there has its paths.
        policy: PathPolicy = r#""off""#;
    }
}

section! {
    /// Bounds of every wait and every buffer.
    Limits["limits"] {
        /// Request line and headers together; 431 past it.
        head_bytes: ByteSize = r#""32KiB""#, check between(ByteSize::new(1 << 10), ByteSize::new(16 << 20));
        /// Header fields; 431 past it.
        head_fields: NonZeroU32 = "100", check between(NonZeroU32::MIN, MAX_HEAD_FIELDS);
        /// Path and query; 414 past it.
        target_bytes: ByteSize = r#""16KiB""#, check between(ByteSize::new(64), ByteSize::new(16 << 20));
        /// A signed form, or a body with oauth_body_hash: held back until proved; 413 past it.
        form_bytes: ByteSize = r#""1MiB""#, check between(ByteSize::new(1), ByteSize::new(1 << 30));
        /// Fields of such a form; 413 past it.
        form_fields: NonZeroU32 = "2_000";
        /// All of these and their parsed parameters together, in the whole process, and a quarter of it for one address (an IPv6 /64); 503 past it. Forms of the pages, at most 16 KiB each, have 4 MiB of their own.
        form_memory: ByteSize = r#""64MiB""#, check between(ByteSize::new(1), ByteSize::new(1 << 40));
        /// For the whole head, and for the first byte of a new connection.
        head_timeout: Duration = r#""10s""#, check between(MILLISECOND, DAY);
        /// For a whole signed form.
        form_timeout: Duration = r#""30s""#, check between(MILLISECOND, DAY);
        /// For any other body, without progress.
        body_timeout: Duration = r#""30s""#, check between(MILLISECOND, DAY);
        /// How long a connection may wait between requests.
        idle_timeout: Duration = r#""60s""#, check between(MILLISECOND, DAY);
        /// How long both sides of an upgraded connection may be silent. One of them that takes nothing has body_timeout.
        tunnel_timeout: Duration = r#""10m""#, check between(MILLISECOND, DAY);
        /// For the TLS handshake.
        handshake_timeout: Duration = r#""10s""#, check between(MILLISECOND, DAY);
        /// Connections at once; 503 past it.
        connections: NonZeroU32 = "10_000";
        /// Connections at once from one address (an IPv6 /64); set it where no proxy stands in front.
        connections_per_address: Option<NonZeroU32> = absent "no limit", "100";
        /// Requests being served at once; 503 past it.
        concurrent_requests: NonZeroU32 = "10_000";
        /// Of them on one HTTP/2 connection; the caller is told and waits.
        http2_streams: NonZeroU32 = "100", check between(NonZeroU32::MIN, MAX_STREAMS);
        /// Requests of one consumer; 429 past it.
        requests_per_consumer: Option<Rate> = absent "no limit", r#""100 per 1s""#;
    }
}

section! {
    /// Health, metrics, forward-auth and the admin API: not for the public.
    Admin["admin"] {
        /// An IP address and a port, or unix:/path.sock. Loopback, because metrics tell who calls.
        listen: ListenAddress = r#""127.0.0.1:8081""#;
        /// /healthz and /readyz alone, under any Host, for kubelets and load balancers.
        probe_listen: Option<ListenAddress> = absent "none", r#""0.0.0.0:8082""#;
        /// The file of the bearer token that the admin API demands; without it that API is off.
        token_file: Option<PathBuf> = absent "none", r#""admin.token""#;
    }
}

section! {
    /// The log, on standard error. Never a query, a form, a secret, or more than 8 characters of a token.
    Log["log"] {
        /// "text" for people, "json" for machines.
        format: LogFormat = r#""text""#;
        /// "off", "error", "warn", "info", "debug" or "trace", also by target: "info,audit=debug".
        level: LogLevel = r#""info""#;
        /// A line for each request.
        access: bool = "true";
    }
}

/// As many as a head of the largest size can hold.
const MAX_HEAD_FIELDS: NonZeroU32 = match NonZeroU32::new(10_000) {
    Some(fields) => fields,
    None => NonZeroU32::MIN,
};

/// More than any caller has use for, and few enough that their bounds together stay one.
const MAX_STREAMS: NonZeroU32 = match NonZeroU32::new(10_000) {
    Some(streams) => streams,
    None => NonZeroU32::MIN,
};

fn lifetime(lifetime: &Lifetime) -> Result<(), String> {
    match lifetime {
        Lifetime::Never => Ok(()),
        Lifetime::For(duration) => seconds(SECOND, LONGEST)(duration),
    }
}
