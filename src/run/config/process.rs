//! The settings of the process itself.

use std::{net::SocketAddr, num::NonZeroU16, time::Duration};

use crate::{
    base::settings::{LONGEST, duration, filled, section},
    wire::url::origin::HttpUrl,
};

section! {
    /// The public listener: token endpoints, pages and protected calls.
    ListenSettings["listen"] {
        /// An address with a port, or a list of them.
        #[serde(deserialize_with = "filled")] address: Vec<SocketAddr> = "127.0.0.1:8080", restart;
        /// Worker threads, each with its own connections to the API. Set it in a container without a CPU quota.
        workers: Option<NonZeroU16> [else "the processors of the quota, at most 4": 2], restart;
        /// SIGTERM: time for running requests to finish. The supervisor should wait longer than this and drain_delay together.
        #[serde(deserialize_with = "duration::<0, LONGEST, _>")] drain: Duration = "30s", reload;
        /// SIGTERM: time to go on accepting while not ready, so that a load balancer notices.
        #[serde(deserialize_with = "duration::<0, LONGEST, _>")] drain_delay: Duration = "0s", reload;
    }
}

section! {
    /// Traces, by OTLP over HTTP: a span for each request and each step. Never a secret, a query or a token.
    TraceSettings["telemetry"] {
        /// The collector; its path gets /v1/traces.
        otlp_endpoint: Option<HttpUrl> [else "none": "http://127.0.0.1:4318"], restart;
    }
}
