//! The settings of the API.

use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use http::{HeaderName, HeaderValue};

use super::{
    FoldedNames, ForwardParams, HTTPOXY, HostMode, LOOKALIKES,
    header::DroppedHeaders,
    pool::{Address, PoolParams},
};
use crate::{
    base::{
        network::tls::TlsFiles,
        settings::{
            LONGEST, Reason, Text, count, deserialize_text, distinct, duration, plain_values,
            section, texts,
        },
    },
    request::identity::Identity,
    wire::{
        address::{ServerName, TcpOrUnix, tcp_or_unix},
        outbound::{
            Dialer,
            tls::{ClientTls, client_config},
        },
        server::{caller::stream::HeaderCase, tls::TlsError},
        url::origin::{HttpUrl, authority},
    },
};

/// Fields by which an API, framework or gateway in wide use lets the sender of a request change what was decided about it: its
/// method, host and path; the address and scheme of the caller; the user, as gateways and login proxies name one; the caller's
/// certificate. A field that no such program reads is not in it, since dropping it would break callers.
const DROP_HEADERS: &str = r#"["X-Original-*", "X-Rewrite-URL", "X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override",
    "X-HTTP-Host-Override", "X-Host", "X-Envoy-*", "X-Middleware-*", "X-Accel-*", "X-Sendfile-Type",
    "Script-Name", "X-Script-Name", "Path-Info", "X-Path-Info", "Request-URI",
    "X-Forwarded*", "Forwarded-*", "X-Real-*", "X-Scheme", "X-URL-Scheme", "Front-End-HTTPS", "Client-IP", "X-Client-IP",
    "X-Cluster-Client-IP", "X-Originating-IP", "X-ProxyUser-IP", "Proxy-Client-IP", "WL-Proxy-*", "HTTP-Client-IP",
    "HTTP-X-*", "HTTP-Forwarded*", "True-Client-*", "CF-Connecting-*", "CF-Access-*", "CF-Pseudo-*", "CF-Cert-*",
    "CF-Client-Cert-*", "Fastly-Client-*", "Fly-Client-IP",
    "X-Azure-ClientIP", "X-Azure-SocketIP", "X-NF-Client-*", "X-Vercel-Forwarded-For", "X-AppEngine-*",
    "Remote-*", "X-Remote-*", "X-User", "X-User-ID", "X-User-Name", "X-User-Email", "X-Username", "X-WebAuth-*",
    "X-Auth-Request-*", "X-Authenticated-*", "X-Authentik-*", "X-Consumer-*", "X-Credential-*", "X-Anonymous-Consumer",
    "X-Pomerium-*", "X-Vouch-*", "X-Userinfo", "X-Endpoint-API-UserInfo", "X-Apigateway-Api-Userinfo", "Tailscale-User-*", "X-ID-Token",
    "X-JWT-Assertion",
    "X-MS-Client-Principal*", "X-MS-Token-*", "X-Goog-Authenticated-User-*", "X-Goog-IAP-*", "X-Amzn-OIDC-*", "X-Amzn-MTLS-*",
    "OIDC-*", "Shib-*", "SM-*", "OAM-*", "iv-*", "CAS-User",
    "X-SSL-*", "SSL-*", "SSLClient*", "$WS*", "X-TLS-*", "X-Client-Cert*", "X-Client-DN", "X-Client-Verify", "Client-Cert*",
    "X-ARR-*"]"#;

section! {
    /// The API. Several APIs need a process each, which may share a store.
    UpstreamSettings["upstream"] {
        /// http://, https:// or unix:/path.sock, with a path or without. Without the key nothing is forwarded;
        /// forward_auth.listen must then be set.
        api_url: Option<ApiUrl> [required: "http://127.0.0.1:9000", unless "forward_auth.listen"], reload;
        /// Time for which the last good addresses of its host serve while the name cannot be resolved.
        #[serde(deserialize_with = "duration::<0, LONGEST, _>")] stale_addresses: Duration = "60s", reload;
        /// Time to connect, for the addresses of the host together.
        #[serde(deserialize_with = "duration::<1, LONGEST, _>")] connect_timeout: Duration = "2s", reload;
        /// Time from the request's end to the response's head.
        #[serde(deserialize_with = "duration::<1, LONGEST, _>")] response_timeout: Duration = "60s", reload;
        /// Time for which the API may be silent in a response, which then ends with the verdict gateway_timeout.
        #[serde(deserialize_with = "duration::<1, LONGEST, _>")] silence_timeout: Duration = "5m", reload;
        /// Time to keep an unused connection: less than the API's own.
        #[serde(deserialize_with = "duration::<1, LONGEST, _>")] idle_timeout: Duration = "60s", reload;
        /// Age at which an unused connection is closed, less up to a tenth, or gets no further requests (HTTP/2), so that a new
        /// address takes effect.
        #[serde(deserialize_with = "duration::<1, LONGEST, _>")] max_age: Duration = "10m", reload;
        /// Unused connections of each worker, at most.
        max_idle: u32 = 128, reload;
        /// Fields of a response over HTTP/1.1; 502 past it. At 100 or less a request takes about 1 % less CPU time.
        #[serde(deserialize_with = "count::<10_000, _>")] response_fields: NonZeroU32 = 200, reload;
        /// Speaks HTTP/2 to the API: over TLS where ALPN agrees, else by prior knowledge. gRPC needs it.
        http2: bool = false, reload;
        /// The case of field names over HTTP/1.1, to the API and to callers: "title" (Content-Type), or "preserve" for those that
        /// compare spellings (about an eighth more CPU time).
        header_case: HeaderCase = "title", reload;
        /// The Host that the API gets: "public" (as received), "upstream" (api_url's), or a name.
        host: UpstreamHost = "public", reload;
        /// Sets X-Forwarded-For, -Proto and -Host, and X-Forwarded-Prefix if a prefix was stripped and api_url has no path.
        forwarded: bool = true, reload;
        /// Header fields of callers that are dropped, in every spelling that an API may take for them: they could undo the
        /// decision, or claim an identity, an address or a certificate. "*" at the end matches any rest. A list replaces the
        /// default one (config.example.toml), which "default" in it includes. If a trusted proxy sets one of these for the API,
        /// write a list without it.
        drop_headers: DroppedHeaders [default DROP_HEADERS], reload;
    }
}

section! {
    /// TLS to an https:// API. Read again on SIGHUP and when a file changes.
    UpstreamTlsSettings["upstream.tls"] {
        /// Authorities to trust, PEM, and certificates of the API itself, whose name is not compared.
        #[serde(default, deserialize_with = "distinct")] ca: Vec<PathBuf> [else "the system's": "api-ca.pem"], reload;
        /// Our own certificate, PEM, for an API that demands one.
        certificate: Option<PathBuf> [else "none": "client.pem"], reload;
        /// Its private key, PEM.
        key: Option<PathBuf> [else "none": "client-key.pem"], reload;
        /// The name that the API's certificate is for.
        server_name: Option<ServerName> [else "the host of api_url": "api.internal"], reload;
    }
}

impl UpstreamSettings {
    /// The rules for connections to the API; `None`: there is no API. An API that takes nothing of a body may have
    /// `body_timeout`, and each worker keeps at most `most_idle` unused connections.
    ///
    /// # Errors
    /// The files of its TLS.
    pub fn pool(
        &self,
        tls: &UpstreamTlsSettings,
        body_timeout: Duration,
        most_idle: usize,
    ) -> Result<Option<PoolParams>, TlsError> {
        let (address, tls) = match &self.api_url {
            None => return Ok(None),
            Some(ApiUrl::Unix(path)) => (Address::Unix(path.clone()), None),
            Some(ApiUrl::Tcp(url)) => {
                let host = url.origin.bare_host().to_owned();
                let client = || tls.client(&host, self.http2);
                let client = url.origin.is_https().then(client).transpose()?;
                (Address::Tcp(host, url.origin.port), client)
            }
        };
        Ok(Some(PoolParams {
            address,
            tls,
            dialer: Dialer {
                stale_addresses: self.stale_addresses,
                user_timeout: Dialer::default().user_timeout.max(body_timeout),
            },
            http2: self.http2,
            header_case: self.header_case,
            connect_timeout: self.connect_timeout,
            idle_timeout: self.idle_timeout,
            max_age: self.max_age,
            max_idle: most_idle.min(self.max_idle as usize),
            head_fields: self.response_fields.get() as usize,
        }))
    }

    /// The rules by which heads are rewritten. `login_headers` are the fields that only a proxy in front may send, `cookies` the
    /// names of our own cookies, and `instance_id` is the name of this process; a tunnel may be silent for `tunnel_timeout`.
    pub fn rewriting(
        &self,
        identity: Identity,
        login_headers: impl IntoIterator<Item = HeaderName>,
        cookies: [&'static str; 4],
        instance_id: &str,
        tunnel_timeout: Duration,
    ) -> ForwardParams {
        let ours = identity.names().cloned().chain(login_headers);
        let listed = self.drop_headers.0.iter().map(|name| name.as_str());
        let dropped = ours.map(|name| name.to_string());
        let dropped = dropped.chain(listed.chain([HTTPOXY]).map(str::to_owned));
        let url = self.api_url.as_ref().and_then(ApiUrl::tcp);
        let api_host = url.map_or("localhost".to_owned(), |url| url.origin.authority());
        let parsed = url.and_then(|url| url::Url::parse(&url.to_string()).ok());
        ForwardParams {
            api_path: url.map(|url| url.path.clone()).unwrap_or_default(),
            api_origin: parsed.map(|url| url.origin()),
            host: match &self.host {
                UpstreamHost::Public => HostMode::Public,
                UpstreamHost::Upstream => HostMode::Fixed(field_value(&api_host)),
                UpstreamHost::Name(name) => HostMode::Fixed(field_value(name)),
            },
            forwarded: self.forwarded,
            dropped: FoldedNames::new(dropped),
            lookalikes: FoldedNames::new(LOOKALIKES),
            identity,
            cookies,
            hop: field_value(instance_id),
            response_timeout: self.response_timeout,
            silence_timeout: self.silence_timeout,
            tunnel_timeout,
        }
    }
}

/// A host that the configuration has checked, or our own id, as a field has it.
fn field_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

impl UpstreamTlsSettings {
    /// TLS to an API at this host.
    fn client(&self, host: &str, http2: bool) -> Result<ClientTls, TlsError> {
        let name = self.server_name.as_ref().map_or(host, |name| &name.0);
        let files = TlsFiles {
            ca: self.ca.clone(),
            identity: self.certificate.clone().zip(self.key.clone()),
        };
        let keys = [
            "upstream.tls.ca",
            "upstream.tls.certificate",
            "upstream.tls.key",
        ];
        client_config(&files, keys, name, http2)
    }
}

/// The address of the API. Over TCP it is a URL, with or without TLS, whose path goes in front of each forwarded path.
pub type ApiUrl = TcpOrUnix<HttpUrl>;

/// The Host field that the API gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamHost {
    /// As received.
    Public,
    /// `upstream.api_url`'s.
    Upstream,
    /// This name, with a port if one is written.
    Name(String),
}

texts! {
    ApiUrl: "a URL such as \"http://127.0.0.1:9000\" or \"unix:/run/api.sock\"" => tcp_or_unix;
}
plain_values!(UpstreamHost);
deserialize_text!(ApiUrl, UpstreamHost);

impl Text for UpstreamHost {
    const EXPECTED: &'static str = "\"public\", \"upstream\" or a host name";

    fn parse(text: &str) -> Result<Self, Reason> {
        match text {
            "public" => Ok(Self::Public),
            "upstream" => Ok(Self::Upstream),
            _ => {
                let (host, port) = authority(text).map_err(|error| error.to_string())?;
                Ok(Self::Name(match port {
                    Some(port) => format!("{host}:{port}"),
                    None => host,
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_the_places_where_an_api_can_be() {
        assert_eq!(
            ApiUrl::parse("unix:/run/a.sock"),
            Ok(ApiUrl::Unix("/run/a.sock".into()))
        );
        assert!(ApiUrl::parse("unix:a.sock").is_err());
        let Ok(ApiUrl::Tcp(url)) = ApiUrl::parse("https://api:8443/v1/") else {
            panic!("no URL");
        };
        assert_eq!((url.origin.port, url.path.as_str()), (8443, "/v1"));
        assert_eq!(
            UpstreamHost::parse("API:80"),
            Ok(UpstreamHost::Name("api:80".to_owned()))
        );
        assert!(UpstreamHost::parse("a b").is_err());
    }

    proptest! {
        #[test]
        fn never_panics_on_any_text(text: String) {
            let _ = (ApiUrl::parse(&text), UpstreamHost::parse(&text));
        }
    }
}
