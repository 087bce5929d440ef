//! The settings of decisions and of the listener for other gateways.

use super::cors::CorsOrigin;
use crate::{
    base::settings::{MIB, choices, distinct, optional_size, section, texts},
    gateway::live::Conventions,
    wire::address::ListenAddress,
};

section! {
    /// Scripts of other origins in browsers.
    CorsSettings["service"] {
        /// Origins whose scripts may make token calls and read rejections (CORS); "*" alone is every origin. For the API's own
        /// paths see operations.preflight.
        #[serde(default, deserialize_with = "distinct")]
        cors_origins: Vec<CorsOrigin> [else "none": ["https://editor.example"]], reload;
    }
}

section! {
    /// Unsigned CORS preflights.
    #[derive(Copy)]
    PreflightSettings["operations"] {
        /// "forward" sends unsigned CORS preflights as anonymous to paths that may be called, for an API that responds to them.
        preflight: Preflight = "reject", reload;
    }
}

section! {
    /// How the API reads paths; for protected calls only.
    #[derive(Copy)]
    ConventionSettings["paths"] {
        /// "log" or "enforce" (400, naming the rule): conventions for paths that a machine can check.
        policy: Conventions = "off", reload;
    }
}

section! {
    /// Decisions for a proxy that forwards the requests itself. See docs/gateways.md.
    ForwardAuthSettings["forward_auth"] {
        /// An IP address and a port, or unix:/path.sock, for this proxy alone: countersign believes its descriptions.
        listen: Option<ListenAddress> [else "none": "127.0.0.1:8083"], restart;
        /// The size at which the proxy cuts bodies (Envoy max_request_bytes, Gateway API maxSize): only smaller ones are
        /// verified. "0B" ignores all.
        #[serde(default, deserialize_with = "optional_size::<0, { 1024 * MIB }, _>")]
        body_bytes: Option<usize> [else "limits.form_bytes": "65535B"], reload;
    }
}

/// The treatment of an unsigned CORS preflight on a path that an operation lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preflight {
    /// It is rejected like any other call without credentials.
    Reject,
    /// The API gets it as an anonymous call.
    Forward,
}

choices!(Conventions, Preflight);
texts! {
    CorsOrigin: "an origin such as \"https://editor.example\", or \"*\"" => |text| Self::parse(text).ok_or("");
}
