//! The sections of the configuration: every key with its type, its default and the reason for it.
//!
//! This is the one list of keys. Their first lines are also what `config.example.toml` says about them.

use std::{
    net::SocketAddr,
    num::{NonZeroU16, NonZeroU32, NonZeroU64},
    path::PathBuf,
    time::Duration,
};

use http::{HeaderName, Method};
use ipnet::IpNet;

use super::{
    address::*,
    choices::*,
    header::DroppedHeaders,
    moment::{Deprecation, Moment},
    section::section,
    store_url::{Sql, StoreUrl},
    text::{distinct, filled, list, optional, text},
    units::{DAY, KIB, LONGEST, MIB, count, duration, lifetime, optional_seconds, seconds, size},
};
use crate::{
    base::{
        names::{ConsumerKey, Permission},
        settings::{DataPath, plain_values},
    },
    gateway::proxy::Conventions,
    oauth::SignatureMethod,
    provider::{login::http::Encoding, respond::colour::Colour},
    records::{
        nonce::OnLost,
        store::record::{BodyHash, Dialect},
    },
    request::{
        identity::Bind,
        parse::origin::{ForwardedFamily, PrefixMode},
        policy::{
            operations::{Kind, Similar},
            pattern::PathPattern,
            rate::Rate,
        },
        route::FlowPath,
        verify::Advice,
    },
    telemetry::log::{Format, LogLevel},
    wire::{
        origin::{HttpUrl, Origin},
        server::caller::HeaderCase,
    },
};

section! {
    /// The public listener: token endpoints, pages and protected calls.
    Listen["listen"] {
        /// One address or a list of addresses, each with a port. Loopback by default, so that nothing is public before you decide it.
        #[serde(deserialize_with = "filled")] address: Vec<SocketAddr> = "127.0.0.1:8080", restart;
        /// Worker threads, each with its own connections to the API. By default one for each processor that the CPU quota of the cgroup allows, at most 4. A container without a quota sees every processor of its machine: write the number that it may use.
        workers: Option<NonZeroU16> [else "the processors of the quota, at most 4": 2], restart;
        /// Networks whose forwarded fields count; none by default, because callers can send these fields too.
        #[serde(deserialize_with = "distinct")] trusted_proxies: Vec<IpNet> = [], reload;
        /// The fields that these proxies write: "x-forwarded" (X-Forwarded-For, -Proto, -Host) or "forwarded" (RFC 7239). The other family is ignored and dropped from every caller, because a proxy forwards the fields that it does not know.
        forwarded: ForwardedFamily = "x-forwarded", reload;
        /// Every connection comes from one of trusted_proxies and begins with a header of the PROXY protocol, version 1 or 2, that has the caller's address. All others are closed.
        proxy_protocol: bool = false, restart;
        /// SIGTERM: the time running requests may take to finish. The process supervisor should wait longer than this and drain_delay together.
        #[serde(deserialize_with = "duration::<0, LONGEST, _>")] drain: Duration = "30s", reload;
        /// SIGTERM: the time to go on accepting while not ready, so that a load balancer notices.
        #[serde(deserialize_with = "duration::<0, LONGEST, _>")] drain_delay: Duration = "0s", reload;
        /// HTTP/2 beside HTTP/1.1: by ALPN under TLS, by prior knowledge without.
        http2: bool = true, reload;
    }
    with {
        /// TLS on the public listener.
        tls: ListenTls,
    }
}

section! {
    /// TLS on the public listener; without it the listener speaks plain HTTP. Read again on SIGHUP and when a file changes.
    #[derive(Default)]
    ListenTls["listen.tls"] {
        /// The certificate chain, PEM; from a list, the name the peer asks for (SNI) selects one.
        #[serde(default, deserialize_with = "distinct")]
        certificate: Vec<PathBuf> [else "none": "fullchain.pem"], reload;
        /// The private key of each certificate, in the same order, PEM.
        #[serde(default, deserialize_with = "list")] key: Vec<PathBuf> [else "none": "privkey.pem"], reload;
        /// Demands a certificate from peers, signed by one of these authorities, PEM.
        #[serde(default, deserialize_with = "distinct")]
        client_ca: Vec<PathBuf> [else "none": "clients-ca.pem"], reload;
    }
}

section! {
    /// The service as consumers and browsers see it.
    Service["service"] {
        /// The public origin of the token endpoints and pages. https unless its host is loopback.
        base_url: Option<Origin> [else "the listener, if it is loopback": "https://auth.example.com"], reload;
        /// Lets base_url be http on a host that is not loopback: passwords and session cookies then cross the network in clear.
        allow_http: bool = false, reload;
        /// The URLs, a path prefix allowed, for which consumers sign protected calls. The signature's origin is taken from here, never from the request.
        #[serde(default, deserialize_with = "filled")]
        public_api_urls: Vec<HttpUrl> [else "[service.base_url]": ["https://api.example.com"]], reload;
        /// The treatment of such a prefix: "strip" (it arrives and is not forwarded), "keep", "restore" (the proxy in front removed it; put back for the signature only).
        prefix: PrefixMode = "strip", reload;
        /// The realm in WWW-Authenticate.
        realm: String = "countersign", reload;
        /// The path of the token endpoint, under base_url only.
        path: String = "/service.oauth", reload;
        /// Also serves /oauth/request_token, /oauth/authorize, /oauth/authenticate and /oauth/access_token, which many client libraries expect.
        aliases: bool = true, reload;
        /// Further paths of the request token call, under base_url. An entry may have a query that must be there, beside which other parameters may stand; other requests to its path go to the API.
        #[serde(default, deserialize_with = "distinct")]
        request_token_paths: Vec<FlowPath> [else "none": ["/w/index.php?title=Special:OAuth/initiate"]], reload;
        /// Further paths of the authorization page.
        #[serde(default, deserialize_with = "distinct")]
        authorize_paths: Vec<FlowPath> [else "none": ["/w/index.php?title=Special:OAuth/authorize"]], reload;
        /// Further paths of the access token call.
        #[serde(default, deserialize_with = "distinct")]
        access_token_paths: Vec<FlowPath> [else "none": ["/w/index.php?title=Special:OAuth/token"]], reload;
        /// Further origins on which browsers find the pages. A flow stays on the one on which it began, and each has sessions of its own. Token calls are under base_url alone.
        #[serde(default, deserialize_with = "distinct")]
        page_urls: Vec<Origin> [else "none": ["https://www.example.com"]], reload;
        /// Further names of the parameters oauth_token and oauth_consumer_key in the URL of the authorization page, each with the name of the parameter.
        page_parameters: PageParameters = {}, reload;
        /// The page on errors for consumers' developers: docs/errors.md as a web page, or one of your own with its headings. Responses to rejections link to the heading of the mistake in a signature, else of the oauth_problem, else of the verdict in the access log.
        docs_url: Option<WebUrl> [else "none": "https://example.com/docs/errors"], reload;
    }
}

section! {
    /// The API. One process serves one API; run several processes on one store for several APIs.
    Upstream["upstream"] {
        /// http://, https:// or unix:/path.sock; a path goes before that of each request. The one key without a default. It may be absent where forward_auth.listen is set: then countersign decides and forwards nothing.
        api_url: Option<ApiUrl> [required: "http://127.0.0.1:9000", unless "forward_auth.listen"], reload;
        /// The time for which the last good addresses of its host serve while the name cannot be resolved. Each new connection asks for the addresses; all of them are tried.
        #[serde(deserialize_with = "duration::<0, LONGEST, _>")] stale_addresses: Duration = "60s", reload;
        /// Time to connect, for the addresses of the host together. An API that takes longer is down.
        #[serde(deserialize_with = "duration::<1, LONGEST, _>")] connect_timeout: Duration = "2s", reload;
        /// Time from the request's end to the response's head.
        #[serde(deserialize_with = "duration::<1, LONGEST, _>")] response_timeout: Duration = "60s", reload;
        /// The time to keep an unused connection: less than the API's own, or requests meet connections that just closed.
        #[serde(deserialize_with = "duration::<1, LONGEST, _>")] idle_timeout: Duration = "60s", reload;
        /// The age at which a connection is closed as soon as it is unused, less up to a tenth, so that another address of the host takes effect. A connection over HTTP/2 then gets no more requests.
        #[serde(deserialize_with = "duration::<1, LONGEST, _>")] max_age: Duration = "10m", reload;
        /// Maximum of unused connections in each worker.
        max_idle: u32 = 128, reload;
        /// Speaks HTTP/2 to the API: over TLS where ALPN agrees, else by prior knowledge. gRPC needs it.
        http2: bool = false, reload;
        /// The case of field names over HTTP/1.1, to the API and to callers: "title" (Content-Type), or "preserve" for those that compare spellings (about an eighth more CPU).
        header_case: HeaderCase = "title", reload;
        /// The Host that the API gets: "public" (as received), "upstream" (api_url's), or a name.
        host: UpstreamHost = "public", reload;
        /// Sets X-Forwarded-For, -Proto and -Host, so that the API knows the caller's address and builds public links.
        forwarded: bool = true, reload;
        /// Header fields of callers that are dropped, in every spelling that an API may take for them: those that would make it undo the decision made here or believe an identity, an address or a certificate. "*" at the end of a name matches any rest.
        /// A list replaces this one; "default" in it means this one. If a trusted proxy in front sets one of these for the API, write a list of your own without it.
        drop_headers: DroppedHeaders = [
            "X-Original-*", "X-Rewrite-URL", "X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override",
            "X-HTTP-Host-Override", "X-Host", "X-Envoy-*", "X-Middleware-*", "X-Accel-*", "X-Sendfile-Type",
            "Script-Name", "X-Script-Name", "Path-Info", "X-Path-Info", "Request-URI",
            "X-Forwarded*", "Forwarded-*", "X-Real-*", "X-Scheme", "X-URL-Scheme", "Front-End-HTTPS", "Client-IP", "X-Client-IP",
            "X-Cluster-Client-IP", "X-Originating-IP", "X-ProxyUser-IP", "Proxy-Client-IP", "WL-Proxy-*", "HTTP-Client-IP",
            "HTTP-X-*", "HTTP-Forwarded*", "True-Client-*", "CF-Connecting-*", "CF-Access-*", "CF-Pseudo-*", "CF-Cert-*", "CF-Client-Cert-*", "Fastly-Client-*", "Fly-Client-IP",
            "X-Azure-ClientIP", "X-Azure-SocketIP", "X-NF-Client-*", "X-Vercel-Forwarded-For", "X-AppEngine-*",
            "Remote-*", "X-Remote-*", "X-User", "X-User-ID", "X-User-Name", "X-User-Email", "X-Username", "X-WebAuth-*", "X-Auth-Request-*",
            "X-Authenticated-*", "X-Authentik-*", "X-Consumer-*", "X-Credential-*", "X-Anonymous-Consumer", "X-Pomerium-*", "X-Vouch-*",
            "X-MS-Client-Principal*", "X-MS-Token-*", "X-Goog-Authenticated-User-*", "X-Goog-IAP-*", "X-Amzn-OIDC-*", "X-Amzn-MTLS-*",
            "OIDC-*", "Shib-*", "SM-*", "OAM-*", "iv-*", "CAS-User",
            "X-SSL-*", "SSL-*", "SSLClient*", "$WS*", "X-TLS-*", "X-Client-Cert*", "X-Client-DN", "X-Client-Verify", "Client-Cert*", "X-ARR-*",
        ], reload;
    }
    with {
        /// TLS to the API.
        tls: UpstreamTls,
    }
}

section! {
    /// TLS to an https:// API. Read again on SIGHUP and when a file changes.
    #[derive(Default)]
    UpstreamTls["upstream.tls"] {
        /// The authorities to trust, PEM.
        #[serde(default, deserialize_with = "distinct")] ca: Vec<PathBuf> [else "the system's": "api-ca.pem"], reload;
        /// Our own certificate, PEM, for an API that demands one.
        certificate: Option<PathBuf> [else "none": "client.pem"], reload;
        /// Its private key, PEM.
        key: Option<PathBuf> [else "none": "client-key.pem"], reload;
        /// The name that the API's certificate is for.
        server_name: Option<ServerName> [else "the host of api_url": "api.internal"], reload;
    }
}

section! {
    /// Rules for signatures.
    Signature["signature"] {
        /// Accepted methods, which also decide about the hash in oauth_body_hash. PLAINTEXT is left out: it sends the secrets themselves.
        #[serde(deserialize_with = "filled")]
        methods: Vec<SignatureMethod> [default SignatureMethod::DEFAULT_LIST], reload;
        /// The error a consumer's clock may have, either way. Every nonce is remembered twice that long. Widening it admits nothing that had left the old window.
        #[serde(deserialize_with = "seconds::<DAY, _>")] timestamp_window: Duration = "300s", reload;
        /// The base string of consumers registered without a dialect: "rfc5849" or "legacy".
        default_dialect: Dialect = "rfc5849", reload;
        /// The token calls also accept the base string and key of the service's own description.
        accept_description: bool = true, reload;
        /// "observe" verifies, counts and logs, but lets protected calls through: for the weeks before switching on.
        enforcement: Enforcement = "enforce", reload;
        /// The help in a response to a wrong signature: "off" (nothing), "hint" (the known mistake that would match), "full" (also the base string computed here).
        advice: Advice = "hint", reload;
    }
}

section! {
    /// The memory of used nonces, by which a replayed request is rejected.
    Nonce["nonce"] {
        /// "local": this process alone; "shared": in the store or in nonce.url, for several replicas.
        scope: Option<NonceScope> [else "local with sqlite, else shared": "local"], restart;
        /// A Redis or Valkey for shared nonces, beside store.backend = "postgres": redis://USER:PASSWORD@HOST/NUMBER, with rediss for TLS, redis+sentinel://HOST,HOST/SERVICE or redis+cluster://HOST,HOST; ca, certificate and key name PEM files.
        url: Option<StoreUrl> [else "none": "redis://nonces.internal"], restart;
        /// Past it signed requests get 503; a nonce that is still valid is never forgotten. 10 to 25 bytes each in memory, and 16 on the disk.
        max_entries: NonZeroU64 = 50_000_000, restart;
        /// The path of the nonce log, for restarts. One process at a time.
        path: Option<DataPath> [else "beside the SQLite file": "countersign.db.nonces"], restart;
        /// When used nonces are lost, with the file or in a failover of the store: "refuse" signed requests until no earlier request could be replayed, or "accept" them at once.
        on_lost: OnLost = "refuse", reload;
    }
}

section! {
    /// The storage of consumers, users and tokens.
    Store["store"] {
        /// "sqlite": one file, no server. "postgres": a server of PostgreSQL, which other machines can share.
        backend: StoreBackend = "sqlite", restart;
        /// The path of the file, or the URL of the server: "postgres://USER:PASSWORD@HOST/DATABASE". The connection is encrypted and the certificate checked unless the server is on this machine; sslrootcert, sslcert and sslkey name PEM files, sslmode=disable turns it off.
        url: StoreUrl = "countersign.db", restart;
        /// The file of a 32-byte key with which secrets are encrypted at rest, or a list: the first key encrypts, all decrypt, and countersign rekey encrypts everything again. Without it a copy of the store is a copy of every secret.
        #[serde(default, deserialize_with = "distinct")]
        encryption_key_file: Vec<PathBuf> [else "none": "store.key"], restart;
    }
    with {
        /// Credentials of an existing system.
        lookup: StoreLookup,
    }
}

section! {
    /// Consumers and access tokens that an existing system keeps in PostgreSQL, with any store.backend: found by queries of your own when they are not registered here. Read only. A key that was removed here, and a token that was revoked here, stay so.
    #[derive(Default)]
    StoreLookup["store.lookup"] {
        /// The URL of the database, in the form of store.url for PostgreSQL. Its role may read the tables of the queries and has no right on the schema countersign: the queries can run code of whoever owns those tables.
        url: Option<StoreUrl> [else "none": "postgres://lookup:PASSWORD@legacy.internal/shop"], restart;
        /// Finds a consumer by its key, $1: columns key, secret, name, permissions, enabled. A row with another key, byte for byte, or an empty secret is not used.
        consumer_sql: Option<Sql> [else "none": "SELECT client_key AS key, secret, name, scopes AS permissions, active AS enabled FROM legacy.clients WHERE client_key = $1"], restart;
        /// Finds an access token, $1: columns token, secret, consumer, user_id, permissions, expires_at, revoked.
        token_sql: Option<Sql> [else "none": "SELECT token, secret, client_key AS consumer, user_id, scopes AS permissions, expires_at, revoked FROM legacy.tokens WHERE token = $1"], restart;
    }
}

section! {
    /// The cache in front of the store: consumers and tokens ready for use.
    Cache["cache"] {
        /// The maximum of consumers, and that of tokens. A consumer and a token take up to 1,200 bytes here and about 2 KB in the whole process: 2 GB with the default, 100 MB with 50,000.
        max_entries: u64 = 1_000_000, restart;
        /// The time to use one without asking the store again; revocations made through countersign arrive within a second regardless.
        #[serde(deserialize_with = "duration::<0, LONGEST, _>")] ttl: Duration = "60s", restart;
        /// The time an unknown name is cached as unknown.
        #[serde(deserialize_with = "duration::<0, LONGEST, _>")] negative_ttl: Duration = "5s", restart;
        /// The time a credential may still be used after the store was last known to answer, whatever `ttl` says; at least 2s. Short, because a revocation cannot arrive then.
        #[serde(deserialize_with = "duration::<0, LONGEST, _>")] stale_if_error: Duration = "10s", restart;
    }
}

section! {
    /// Lifetimes of tokens.
    Tokens["tokens"] {
        /// The time to approve a request token, and the same time again to exchange it.
        #[serde(deserialize_with = "seconds::<LONGEST, _>")] request_ttl: Duration = "10m", reload;
        /// Access tokens expire this long after issue; "never" is usual for OAuth 1.0a.
        #[serde(deserialize_with = "lifetime")] access_ttl: Option<Duration> = "never", reload;
        /// Unused access tokens expire after this.
        #[serde(deserialize_with = "lifetime")] access_idle: Option<Duration> = "never", reload;
        /// The user id's name in the access token response, for consumers that look for another name.
        user_id_parameter: String = "user_id", reload;
        /// The same for the user's name.
        screen_name_parameter: String = "screen_name", reload;
        /// Further facts on the user there: "id", "name" or "display_name", also under another name, as in "fullname=display_name". Every consumer that users authorize gets them; unknown ones are left out.
        #[serde(deserialize_with = "distinct")] profile: Vec<ProfileParameter> = [], reload;
    }
}

section! {
    /// The login of users.
    Login["login"] {
        /// "local": accounts of the store (argon2id); "http": the credentials are posted to login.url; "header": a trusted proxy in front has authenticated the user.
        backend: LoginBackend = "local", restart;
        /// The URL that checks them; its response has the user's id. https unless its host is loopback.
        url: Option<EndpointUrl> [else "none": "https://accounts.example.com/check"], restart;
        /// The format of name and password there: "form" or "json".
        request: Encoding = "form", restart;
        /// The name of the field that has the user name.
        username_field: String = "username", restart;
        /// The name of the field that has the password.
        password_field: String = "password", restart;
        /// The user's id in the response, which is a JSON object; "user.id" is in an inner one. A text or a whole number; without it the password is wrong, as with every status 4xx and every "error".
        id_field: String = "id", restart;
        /// The user's name there. Without it the id is the name.
        name_field: String = "name", restart;
        /// The name there that pages show.
        display_name_field: String = "display_name", restart;
        /// A member that must be true there, for an endpoint that responds 200 with an id to wrong passwords too.
        success_field: Option<String> [else "none": "success"], restart;
        /// The time a login may take there, all in all.
        #[serde(deserialize_with = "duration::<1, LONGEST, _>")] timeout: Duration = "5s", restart;
        /// The authorities to trust there, PEM.
        #[serde(default, deserialize_with = "distinct")] ca: Vec<PathBuf> [else "the system's": "accounts-ca.pem"], restart;
        /// The field in which a proxy in front names the user's id, on every request to pages and operations of users. Only listen.trusted_proxies are believed; the proxy must drop the field when others send it.
        #[serde(default, deserialize_with = "optional")]
        user_header: Option<HeaderName> [else "none": "X-Auth-Request-User"], reload;
        /// The field with the name that pages show.
        #[serde(default, deserialize_with = "optional")]
        display_name_header: Option<HeaderName> [else "none": "X-Auth-Request-Preferred-Username"], reload;
        /// The time a browser stays logged in.
        #[serde(deserialize_with = "seconds::<LONGEST, _>")] session_ttl: Duration = "12h", reload;
        /// Failed logins of one account from one address before 429; ten times that for an address alone.
        max_failures: Rate = "10 per 15m", reload;
    }
}

section! {
    /// User pages: login, consent, connected applications, errors.
    Pages["pages"] {
        /// The name of the service.
        name: Option<String> [else "service.realm": "Example Photos"], reload;
        /// An image above every page: SVG, PNG, JPEG or WebP, 256 KiB at most. It is 48 pixels high.
        logo: Option<PathBuf> [else "none: the first letter of the name, on the consent page": "logo.svg"], reload;
        /// The same for browsers that prefer dark pages.
        logo_dark: Option<PathBuf> [else "logo": "logo-dark.svg"], reload;
        /// The colour of buttons and links.
        accent: Option<Colour> [else "blue": "#1740b4"], reload;
        /// The same for browsers that prefer dark pages.
        accent_dark: Option<Colour> [else "a lighter shade of accent": "#9ab8ff"], reload;
        /// The colour around the content.
        background: Option<Colour> [else "light grey": "#f3f4f7"], reload;
        /// The same for browsers that prefer dark pages.
        background_dark: Option<Colour> [else "nearly black": "#12151b"], reload;
        /// A style sheet that comes after the built-in one, 256 KiB at most. It can load no font and no image.
        stylesheet: Option<PathBuf> [else "none": "pages.css"], reload;
        /// The terms of use; every page links to them.
        terms_url: Option<WebUrl> [else "none": "https://example.com/terms"], reload;
        /// The page on the use of users' data; every page links there.
        privacy_url: Option<WebUrl> [else "none": "https://example.com/privacy"], reload;
        /// A page with help; every page links there.
        help_url: Option<WebUrl> [else "none": "https://example.com/help"], reload;
        /// The page on which users replace a forgotten password; the login page links there.
        recovery_url: Option<WebUrl> [else "none": "https://example.com/forgot"], reload;
        /// The language of the texts of `[[permission]]` below. Screen readers read them in this language on pages in another one.
        permission_language: Option<Language> [else "not known": "en"], reload;
        /// A directory of Fluent files that are named after languages, such as fr.ftl: each replaces messages of its language, or adds the language. locales/en.ftl in the source has all messages. A message permission-members-read, with an attribute .description, translates the permission members.read; consumer-KEY translates the description of a consumer.
        messages: Option<PathBuf> [else "none: Arabic, Chinese, English, French, German, Japanese, Korean, Portuguese and Spanish are built in": "messages"], reload;
    }
}

section! {
    /// The fields that identify the caller to the API. Fields of these names that a caller sends are dropped.
    Identity["identity"] {
        /// The user's id.
        #[serde(deserialize_with = "text")] user_header: HeaderName = "X-Auth-User", reload;
        /// The consumer's key.
        #[serde(deserialize_with = "text")] consumer_header: HeaderName = "X-Auth-Consumer", reload;
        /// The permissions granted, separated by spaces.
        #[serde(deserialize_with = "text")] permissions_header: HeaderName = "X-Auth-Permissions", reload;
        /// "consumer", "application", "user" or "anonymous"; always sent.
        #[serde(deserialize_with = "text")] kind_header: HeaderName = "X-Auth-Kind", reload;
        /// Lets the oauth_ credentials go on to the API untouched, for one that verifies them itself.
        forward_authorization: bool = false, reload;
    }
    with {
        /// The signed form of the identity.
        assertion: IdentityAssertion,
    }
}

section! {
    /// A JWT that tells the API who calls, and that nobody else can make; see docs/assertion.md. Anonymous calls have none.
    #[derive(Default)]
    IdentityAssertion["identity.assertion"] {
        /// The field that has it. A caller's own is dropped, as are the names above.
        #[serde(default, deserialize_with = "optional")] header: Option<HeaderName> [else "none": "X-Auth-Assertion"], reload;
        /// Files with a private key each, Ed25519 or P-256, PEM. The first signs; the public keys of all are at /jwks.json of the admin listener and /.well-known/jwks.json of service.base_url, where APIs keep them for 5 minutes: add a key some time before it signs, and keep the old one as long after. Read again on SIGHUP.
        #[serde(default, deserialize_with = "distinct")] key_files: Vec<PathBuf> [else "none": ["assertion.pem"]], reload;
        /// The recipient: the claim aud, which the API has to check. Required where upstream.api_url is a Unix socket or absent.
        audience: Option<String> [else "the origin of upstream.api_url": "https://api.internal"], reload;
        /// The lifetime of a JWT.
        #[serde(deserialize_with = "seconds::<DAY, _>")] ttl: Duration = "60s", reload;
        /// "request": each is signed for the method and the URL of one request; "none": one serves a token for half its life, which costs less.
        bind: Bind = "request", reload;
    }
}

section! {
    /// The exchange of OAuth 1.0a for OAuth 2: with mode=exchange a consumer gets an access token (RFC 9068) for the next gateway.
    #[derive(Default)]
    Exchange["exchange"] {
        /// The recipient: the claim aud. Without it there is no exchange. It needs identity.assertion.key_files.
        audience: Option<String> [else "none: no exchange": "https://api.example.com"], reload;
        /// The lifetime of such a token, at most that of the token that signs.
        #[serde(deserialize_with = "seconds::<LONGEST, _>")] ttl: Duration = "15m", reload;
    }
}

section! {
    /// The planned end of OAuth 1.0a; see docs/leaving.md. Once any part of it is set, responses to rightly signed calls announce it.
    #[derive(Default)]
    Sunset["sunset"] {
        /// The start of the deprecation: the field Deprecation (RFC 9745). "now", or a date and a time with an offset, not later than date.
        deprecation: Option<Deprecation> [else "now: when the configuration was read": "2026-09-01T00:00:00Z"], reload;
        /// The end: the field Sunset (RFC 8594). Nothing ends by itself; disable the consumers then.
        date: Option<Moment> [else "none": "2027-03-31T00:00:00Z"], reload;
        /// A page about it: the field Link with the relation sunset.
        link: Option<WebUrl> [else "none": "https://example.com/oauth2"], reload;
        /// The keys of the consumers that get this.
        #[serde(default, deserialize_with = "filled")] consumers: Vec<ConsumerKey> [else "all": ["dpf43f3p2l4k3l03"]], reload;
    }
}

section! {
    /// A brown-out: for a planned time, rightly signed calls get 503 with Retry-After, so that those who still send them notice.
    BrownOut["sunset.brownout", list] {
        /// The beginning.
        from: Moment [required: "2027-02-01T09:00:00Z"], reload;
        /// The end.
        until: Moment [required: "2027-02-01T09:15:00Z"], reload;
        /// The keys of the consumers that get it.
        #[serde(default, deserialize_with = "filled")] consumers: Vec<ConsumerKey> [else "sunset.consumers": ["dpf43f3p2l4k3l03"]], reload;
    }
}

section! {
    /// Settings of all operations.
    Operations["operations"] {
        /// Kinds of callers allowed on paths in no `[[operation]]`: a list of "consumer", "application", "user" and "anonymous"; "nobody" is the empty list.
        unlisted: Option<Unlisted> [else "consumer while there is no [[operation]], else nobody": ["consumer", "application"]], reload;
        /// The status of a call that is not permitted: 404 hides that the path exists, 403 does not.
        forbidden_status: u16 = 404, reload;
        /// "forward" sends unsigned CORS preflights on listed paths to the API, as anonymous; only for an API that responds to them itself.
        preflight: Preflight = "reject", reload;
    }
}

section! {
    /// One protected operation. The most specific pattern wins; a listed path with an unlisted method is 405.
    Operation["operation", list] {
        /// {name} is one segment, {*rest} is the rest. /members/ with a slash at the end is another path than /members; {*rest} matches either. A path that differs from a narrower pattern in nothing else is rejected (paths.similar).
        path: PathPattern [required: "/members/{id}"], reload;
        /// GET covers HEAD.
        #[serde(default, deserialize_with = "filled")] methods: Vec<Method> [else "every method": ["GET"]], reload;
        /// The token and the consumer must both have it.
        #[serde(default, deserialize_with = "optional")]
        permission: Option<Permission> [else "none is needed": "members.read"], reload;
        /// Callers allowed: "consumer" (with an access token), "application" (a consumer without one), "user" (logged in directly), "anonymous".
        #[serde(deserialize_with = "filled")] access: Vec<Kind> = ["consumer"], reload;
        /// "enforce" or "observe" for this operation alone.
        enforcement: Option<Enforcement> [else "signature.enforcement": "observe"], reload;
        /// Protocols that it may switch to: "websocket".
        #[serde(default, deserialize_with = "filled")]
        upgrade: Vec<UpgradeProtocol> [else "none": ["websocket"]], reload;
        /// "required": a body that is not a form needs oauth_body_hash, else it is not signed. A consumer can have the same.
        body_hash: BodyHash = "optional", reload;
        /// The error that a consumer's clock may have here, either way, such as "90m" for LTI launches. Nonces are remembered for twice the longest of these windows.
        #[serde(default, deserialize_with = "optional_seconds::<DAY, _>")]
        timestamp_window: Option<Duration> [else "signature.timestamp_window": "90m"], reload;
        /// Lets the oauth_ credentials of this operation's calls go on to the API untouched, or not. Libraries of LTI tools read oauth_consumer_key from the form.
        forward_authorization: Option<bool> [else "identity.forward_authorization": true], reload;
        /// Signed parameters that the API also gets as header fields, such as { X-LTI-Context = "context_id" }. Callers' own copies are dropped on every path. A parameter that is absent, repeated with another value, longer than 4096 bytes or not fit for a field is left out.
        headers: ParameterHeaders = {}, reload;
    }
}

section! {
    /// A permission for consumers, as the consent page shows it.
    PermissionEntry["permission", list] {
        /// Its name in operations, consumers and tokens.
        #[serde(deserialize_with = "text")] name: Permission [required: "members.read"], reload;
        /// Its name for users.
        title: Option<String> [else "the name": "Read your profile"], reload;
        /// Its meaning, in a sentence.
        description: Option<String> [else "none": "Your name and your picture, no addresses."], reload;
        /// The consent page marks it and lists it last.
        sensitive: bool = false, reload;
    }
}

section! {
    /// The service's path conventions, on protected paths only.
    Paths["paths"] {
        /// "log" or "enforce" (400, naming the rule) rules a machine can check; off, since an existing API has its paths already.
        policy: Conventions = "off", reload;
        /// Some APIs ignore letter case, white space or a dot at the end of a segment, or the slash at the end of a path, and so read a path as one of a more specific pattern. "reject" refuses such a path like one that nobody may call; "wider" treats it as the pattern that it matches, for an API that compares paths exactly.
        similar: Similar = "reject", reload;
    }
}

section! {
    /// Bounds of every wait and every buffer.
    Limits["limits"] {
        /// Request line and headers together; 431 past it.
        #[serde(deserialize_with = "size::<KIB, { 16 * MIB }, _>")] head_bytes: usize = "32KiB", reload;
        /// Header fields; 431 past it.
        #[serde(deserialize_with = "count::<10_000, _>")] head_fields: NonZeroU32 = 100, reload;
        /// Path and query; 414 past it.
        #[serde(deserialize_with = "size::<64, { 16 * MIB }, _>")] target_bytes: usize = "16KiB", reload;
        /// A signed form, or a body with oauth_body_hash: held back until it is verified; 413 past it.
        #[serde(deserialize_with = "size::<1, { 1024 * MIB }, _>")] form_bytes: usize = "1MiB", reload;
        /// Fields of such a form; 413 past it.
        form_fields: NonZeroU32 = 2_000, reload;
        /// All of these and their parsed parameters together, in the whole process. One address (an IPv6 /64) gets a sixteenth of it or eight times form_bytes, whichever is more, but never over a quarter. Where there is no room, the form that has been arriving for longest is dropped (503). Forms of the pages, at most 16 KiB each, have 16 MiB of their own, 256 KiB for one address.
        #[serde(deserialize_with = "size::<1, { 1024 * 1024 * MIB }, _>")] form_memory: usize = "64MiB", reload;
        /// For the whole head, and for the first byte of a new connection.
        #[serde(deserialize_with = "duration::<1, DAY, _>")] head_timeout: Duration = "10s", reload;
        /// For a whole signed form.
        #[serde(deserialize_with = "duration::<1, DAY, _>")] form_timeout: Duration = "30s", reload;
        /// For a whole form of a page.
        #[serde(deserialize_with = "duration::<1, DAY, _>")] page_form_timeout: Duration = "5s", reload;
        /// For any other body, without progress.
        #[serde(deserialize_with = "duration::<1, DAY, _>")] body_timeout: Duration = "30s", reload;
        /// The time a connection may wait between requests.
        #[serde(deserialize_with = "duration::<1, DAY, _>")] idle_timeout: Duration = "60s", reload;
        /// The time both sides of an upgraded connection may be silent. For a side that does not read, body_timeout applies.
        #[serde(deserialize_with = "duration::<1, DAY, _>")] tunnel_timeout: Duration = "10m", reload;
        /// For the TLS handshake.
        #[serde(deserialize_with = "duration::<1, DAY, _>")] handshake_timeout: Duration = "10s", reload;
        /// Connections at once. Past it, one without a request is closed for each new one; where all have one, a new one gets 503.
        connections: NonZeroU32 = 10_000, reload;
        /// Connections at once from one address (an IPv6 /64); set it only without a proxy in front.
        connections_per_address: Option<NonZeroU32> [else "no limit": 100], reload;
        /// Requests being served at once; 503 past it.
        concurrent_requests: NonZeroU32 = 10_000, reload;
        /// Streams of one HTTP/2 connection; further requests wait at the caller.
        #[serde(deserialize_with = "count::<10_000, _>")] http2_streams: NonZeroU32 = 100, reload;
        /// Browser sessions of one user; past it the oldest ends.
        sessions_per_user: NonZeroU32 = 100, reload;
        /// Requests of one consumer, token calls included; 429 past it.
        requests_per_consumer: Option<Rate> [else "no limit": "100 per 1s"], reload;
        /// Request tokens of one consumer that can still be exchanged; 429 past it.
        request_tokens_per_consumer: NonZeroU32 = 10_000, reload;
    }
}

section! {
    /// Decisions for another proxy (nginx auth_request, Traefik, Caddy, HAProxy, Envoy, Apache), which forwards the requests itself. See docs/gateways.md.
    #[derive(Default)]
    ForwardAuth["forward_auth"] {
        /// An IP address and a port, or unix:/path.sock, that only this proxy can reach: countersign believes its descriptions.
        listen: Option<ListenAddress> [else "none": "127.0.0.1:8083"], restart;
    }
}

section! {
    /// Health, metrics, the admin API and the console: not for the public.
    Admin["admin"] {
        /// An IP address and a port, or unix:/path.sock. Loopback, because metrics show who calls.
        listen: ListenAddress = "127.0.0.1:8081", restart;
        /// /healthz and /readyz alone, under any Host, for kubelets and load balancers.
        probe_listen: Option<ListenAddress> [else "none": "0.0.0.0:8082"], restart;
        /// Names that the Host of a request may have, in addition to addresses, localhost and names under it, such as countersign.localhost. On an address that is not loopback, /healthz, /readyz and /metrics answer under any Host.
        #[serde(deserialize_with = "distinct")] hosts: Vec<ServerName> = [], reload;
        /// The file of the bearer token that reads and changes everything by the admin API and the console: one line of at least 32 characters, as openssl rand -hex 32 makes it. A reload reads it again.
        token_file: Option<PathBuf> [else "none: the admin API and the console are off": "admin.token"], reload;
        /// The file of a second token, which can only read.
        read_token_file: Option<PathBuf> [else "none": "admin-read.token"], reload;
    }
}

section! {
    /// Traces, by OTLP over HTTP: a span for each request and for each of its steps. Never a secret, a query or a token.
    Telemetry["telemetry"] {
        /// The collector, such as http://127.0.0.1:4318; its path gets /v1/traces. traceparent of listen.trusted_proxies is continued, that of others is replaced, and the API gets the result.
        otlp_endpoint: Option<HttpUrl> [else "none": "http://127.0.0.1:4318"], restart;
    }
}

section! {
    /// The log, on standard error. Never a query, a form, a secret, or more than 8 characters of a token.
    Log["log"] {
        /// "text" for people, "json" for machines.
        format: Format = "text", restart;
        /// "off", "error", "warn", "info", "debug" or "trace", also by target: "info,audit=debug". Libraries write nothing below "info", whatever is set.
        level: LogLevel = "info", reload;
        /// A line for each request. Requests never wait for the reader of standard error: while it stalls, these lines are dropped first, and counted.
        access: bool = true, reload;
    }
}

plain_values!(
    ForwardedFamily,
    Origin,
    HttpUrl,
    PrefixMode,
    FlowPath,
    PageParameters,
    WebUrl,
    ApiUrl,
    HeaderCase,
    UpstreamHost,
    ServerName,
    SignatureMethod,
    Dialect,
    Enforcement,
    Advice,
    NonceScope,
    OnLost,
    StoreBackend,
    ProfileParameter,
    LoginBackend,
    EndpointUrl,
    Encoding,
    Rate,
    Colour,
    Language,
    Bind,
    Deprecation,
    Moment,
    ConsumerKey,
    Unlisted,
    Preflight,
    PathPattern,
    Permission,
    Kind,
    BodyHash,
    UpgradeProtocol,
    ParameterHeaders,
    Conventions,
    Similar,
    ListenAddress,
    Format,
    LogLevel,
);
