//! What requests are served with: the configuration that a reload replaces, what all workers share, and what is in flight.

mod current;
mod in_flight;
mod served;
mod shared;
mod waiting;

use std::sync::Arc;

use bytes::Bytes;

use crate::{
    gateway::{authorize::Authorizer, cors::Cors},
    provider::{endpoints::Endpoints, theme::Theme},
    request::{
        forward::{ForwardParams, pool::PoolParams},
        parse::origin::Origins,
        route::{self},
    },
    wire::server::caller::stream::Limits,
};

pub use self::{
    current::Current,
    in_flight::{AnonymousCalls, InFlight},
    served::Served,
    shared::{Phase, Shared},
    waiting::Waiting,
};

/// The configuration of requests, which a reload replaces as a whole.
pub struct Live {
    /// Bounds and deadlines of callers' connections.
    pub limits: Limits,
    /// Public URLs and trusted proxies.
    pub origins: Arc<Origins>,
    /// The paths of the token endpoints.
    pub route: route::RouteRules,
    /// The token endpoints and pages.
    pub endpoints: Endpoints,
    /// Decides on calls to the API.
    pub authorizer: Authorizer,
    /// The origins of scripts.
    pub cors: Cors,
    /// The service's path conventions.
    pub conventions: Conventions,
    /// The rules by which heads are rewritten.
    pub forward: ForwardParams,
    /// The rules by which the API is connected to; `None`: this process forwards nothing.
    pub upstream: Option<PoolParams>,
    /// The common parts of pages, and the realm of challenges.
    pub theme: Arc<Theme>,
    /// The public keys of our signatures, as JSON.
    pub jwk_set: Option<Bytes>,
    /// Names, in addition to addresses and `localhost`, that Host may have on a loopback admin listener.
    pub admin_hosts: Vec<String>,
    /// A log line for each request.
    pub access_log: bool,
    /// The largest body of a described request that is verified, in bytes.
    pub described_body_bytes: usize,
    /// Requests being served at once at most.
    pub concurrent_requests: usize,
}

/// The treatment of a path that breaks the service's conventions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Conventions {
    /// It is served.
    Off,
    /// It is served and logged.
    Log,
    /// It is rejected with 400.
    Enforce,
}
