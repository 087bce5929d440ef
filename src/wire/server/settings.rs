//! The settings of listeners and of callers' connections.

use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use crate::{
    base::settings::{DAY, KIB, MIB, choices, count, distinct, duration, list, section, size},
    wire::server::caller::{
        buffered::Shares,
        stream::{HeaderCase, Limits},
    },
};

section! {
    /// The protocols of the public listener.
    #[derive(Copy)]
    ProtocolSettings["listen"] {
        /// Every connection comes from trusted_proxies and begins with a PROXY header, version 1 or 2; others are closed.
        proxy_protocol: bool = false, restart;
        /// HTTP/2 beside HTTP/1.1: by ALPN under TLS, by prior knowledge without.
        http2: bool = true, reload;
    }
}

section! {
    /// TLS on the public listener, else plain HTTP. Read again on SIGHUP and when a file changes.
    ListenTlsSettings["listen.tls"] {
        /// The certificate chain, PEM; from a list, SNI selects one.
        #[serde(default, deserialize_with = "distinct")]
        certificate: Vec<PathBuf> [else "none": "fullchain.pem"], reload;
        /// The key of each certificate, in the same order, PEM.
        #[serde(default, deserialize_with = "list")] key: Vec<PathBuf> [else "none": "privkey.pem"], reload;
        /// Demands a certificate of one of these authorities from peers, PEM.
        #[serde(default, deserialize_with = "distinct")]
        client_ca: Vec<PathBuf> [else "none": "clients-ca.pem"], reload;
    }
}

section! {
    /// Bounds of every wait and every buffer.
    #[derive(Copy)]
    LimitSettings["limits"] {
        /// Request line and headers together; 431 past it.
        #[serde(deserialize_with = "size::<KIB, { 16 * MIB }, _>")] head_bytes: usize = "32KiB", reload;
        /// Header fields; 431 past it.
        #[serde(deserialize_with = "count::<10_000, _>")] head_fields: NonZeroU32 = 100, reload;
        /// Path and query; 414 past it.
        #[serde(deserialize_with = "size::<64, { 16 * MIB }, _>")] target_bytes: usize = "16KiB", reload;
        /// A form that may be signed, or a body with oauth_body_hash; 413 past it. A form without credentials in the head is
        /// streamed past it if the operation admits its caller without a signature.
        #[serde(deserialize_with = "size::<1, { 1024 * MIB }, _>")] form_bytes: usize = "1MiB", reload;
        /// Fields of a form; 413 past it.
        form_fields: NonZeroU32 = 2_000, reload;
        /// The memory of all these and their parameters. One address (an IPv6 /64) gets a sixteenth of it, or eight times
        /// form_bytes if that is more, but at most a quarter. Without room, the form that has been arriving for longest is
        /// dropped (503). Forms of the pages, at most 16 KiB each, have 16 MiB of their own, 256 KiB for one address.
        #[serde(deserialize_with = "size::<1, { 1024 * 1024 * MIB }, _>")] form_memory: usize = "64MiB", reload;
        /// For the whole head, and for the first byte of a new connection.
        #[serde(deserialize_with = "duration::<1, DAY, _>")] head_timeout: Duration = "10s", reload;
        /// For a whole signed form.
        #[serde(deserialize_with = "duration::<1, DAY, _>")] form_timeout: Duration = "30s", reload;
        /// For a whole form of a page.
        #[serde(deserialize_with = "duration::<1, DAY, _>")] page_form_timeout: Duration = "5s", reload;
        /// For any other body, without progress.
        #[serde(deserialize_with = "duration::<1, DAY, _>")] body_timeout: Duration = "30s", reload;
        /// Time between requests of a connection.
        #[serde(deserialize_with = "duration::<1, DAY, _>")] idle_timeout: Duration = "60s", reload;
        /// Time for which both sides of an upgraded connection may be silent. For a side that does not read, body_timeout
        /// applies.
        #[serde(deserialize_with = "duration::<1, DAY, _>")] tunnel_timeout: Duration = "10m", reload;
        /// For the TLS handshake.
        #[serde(deserialize_with = "duration::<1, DAY, _>")] handshake_timeout: Duration = "10s", reload;
        /// Connections at once. A new one past it closes a waiting one, or gets 503: docs/health.md.
        connections: NonZeroU32 = 10_000, reload;
        /// The same for one address (an IPv6 /64); only without a proxy in front.
        connections_per_address: Option<NonZeroU32> [else "no limit": 100], reload;
        /// Requests at once. Past it unproved waiting requests make room, or a new one gets 503: docs/health.md.
        concurrent_requests: NonZeroU32 = 10_000, reload;
        /// Streams of an HTTP/2 connection; further requests wait at the caller.
        #[serde(deserialize_with = "count::<10_000, _>")] http2_streams: NonZeroU32 = 100, reload;
    }
}

impl LimitSettings {
    /// The limits of callers' connections.
    pub fn limits(&self, protocols: ProtocolSettings, header_case: HeaderCase) -> Limits {
        Limits {
            head_bytes: self.head_bytes,
            head_fields: self.head_fields.get() as usize,
            target_bytes: self.target_bytes,
            handshake_timeout: self.handshake_timeout,
            head_timeout: self.head_timeout,
            idle_timeout: self.idle_timeout,
            body_timeout: self.body_timeout,
            form_timeout: self.form_timeout,
            form_bytes: self.form_bytes,
            page_form_timeout: self.page_form_timeout,
            form_shares: Shares::new(self.form_memory, self.form_bytes),
            form_fields: self.form_fields.get() as usize,
            header_case,
            streams: protocols.http2.then_some(self.http2_streams),
        }
    }
}

choices!(HeaderCase);
