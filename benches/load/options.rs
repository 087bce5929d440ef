//! The options of the load generator.

use std::{net::SocketAddr, path::PathBuf};

use clap::Parser;

#[derive(Parser)]
pub(crate) struct Options {
    /// Where the proxy listens.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub(crate) address: SocketAddr,
    /// Host that is sent; requests are signed for this authority.
    #[arg(long)]
    pub(crate) host: String,
    #[arg(long, default_value_t = 64)]
    pub(crate) connections: usize,
    /// At most so many requests at once, taking turns on the connections. Default: one on each.
    #[arg(long)]
    pub(crate) in_flight: Option<usize>,
    #[arg(long, default_value_t = 100_000)]
    pub(crate) requests: usize,
    /// Requests a second in an open loop; a closed one without it.
    #[arg(long)]
    pub(crate) rate: Option<f64>,
    /// A line for each consumer: key, secret, access token and its secret, with spaces between. They take turns.
    #[arg(long)]
    pub(crate) credentials: PathBuf,
    /// The line with which to begin.
    #[arg(long, default_value_t = 0)]
    pub(crate) first: usize,
    #[arg(long, default_value = "/v1/members")]
    pub(crate) path: String,
    /// So many query parameters in place of the usual four.
    #[arg(long)]
    pub(crate) query: Option<usize>,
    /// POST with so many bytes that are no form.
    #[arg(long)]
    pub(crate) upload: Option<usize>,
    /// POST with a signed form of about so many bytes.
    #[arg(long, conflicts_with = "upload")]
    pub(crate) form: Option<usize>,
    /// TLS 1.3, any certificate, X25519 and TLS_AES_128_GCM_SHA256 alone, no resumption.
    #[arg(long)]
    pub(crate) tls: bool,
    /// A new connection for each request.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Only print signed targets, one a line, the oauth_ parameters in the query.
    #[arg(long)]
    pub(crate) print_targets: bool,
}
