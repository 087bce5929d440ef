//! The options of the load generator.

use std::{net::SocketAddr, path::PathBuf};

use clap::Parser;

#[derive(Parser)]
pub(crate) struct Options {
    /// The address of the proxy.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub(crate) address: SocketAddr,
    /// The value of Host; requests are signed for this authority.
    #[arg(long)]
    pub(crate) host: String,
    #[arg(long, default_value_t = 64)]
    pub(crate) connections: usize,
    /// The most requests at once; the connections take turns. Default: one on each.
    #[arg(long)]
    pub(crate) in_flight: Option<usize>,
    #[arg(long, default_value_t = 100_000)]
    pub(crate) requests: usize,
    /// Requests per second in an open loop. Default: a closed loop.
    #[arg(long)]
    pub(crate) rate: Option<f64>,
    /// A line for each consumer: key, secret, access token and its secret, with spaces between. They take turns.
    #[arg(long)]
    pub(crate) credentials: PathBuf,
    /// The first line to use.
    #[arg(long, default_value_t = 0)]
    pub(crate) first: usize,
    #[arg(long, default_value = "/v1/members")]
    pub(crate) path: String,
    /// The number of query parameters, instead of the usual four.
    #[arg(long)]
    pub(crate) query: Option<usize>,
    /// POST this many bytes that are not a form.
    #[arg(long)]
    pub(crate) upload: Option<usize>,
    /// POST a signed form of about this many bytes.
    #[arg(long, conflicts_with = "upload")]
    pub(crate) form: Option<usize>,
    /// The value of Cookie. Default: there is no such field.
    #[arg(long)]
    pub(crate) cookie: Option<String>,
    /// TLS 1.3 with any certificate, only X25519 and TLS_AES_128_GCM_SHA256, no resumption.
    #[arg(long)]
    pub(crate) tls: bool,
    /// A new connection for each request.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Only print signed targets, one per line, with the oauth_ parameters in the query.
    #[arg(long)]
    pub(crate) print_targets: bool,
}
