//! The settings of the process itself.

use std::{net::SocketAddr, num::NonZeroU16, time::Duration};

use crate::{
    base::settings::{LONGEST, duration, filled, section},
    wire::url::origin::HttpUrl,
};

section! {
    /// The public listener: token endpoints, pages and protected calls.
    ListenSettings["listen"] {
        /// An address with a port, or a list of them. Loopback by default, so that nothing is public.
        #[serde(deserialize_with = "filled")] address: Vec<SocketAddr> = "127.0.0.1:8080", restart;
        /// Worker threads, each with its own connections to the API. A container without a CPU quota sees every processor of
        /// its machine: write the number that it may use.
        workers: Option<NonZeroU16> [else "the processors of the quota, at most 4": 2], restart;
        /// SIGTERM: the time running requests may take to finish. The supervisor should wait longer than this and drain_delay
        /// together.
        #[serde(deserialize_with = "duration::<0, LONGEST, _>")] drain: Duration = "30s", reload;
        /// SIGTERM: the time to go on accepting while not ready, so that a load balancer notices.
        #[serde(deserialize_with = "duration::<0, LONGEST, _>")] drain_delay: Duration = "0s", reload;
    }
}

section! {
    /// Traces, by OTLP over HTTP: a span for each request and for each of its steps. Never a secret, a query or a token.
    TraceSettings["telemetry"] {
        /// The collector, such as http://127.0.0.1:4318; its path gets /v1/traces.
        otlp_endpoint: Option<HttpUrl> [else "none": "http://127.0.0.1:4318"], restart;
    }
}
