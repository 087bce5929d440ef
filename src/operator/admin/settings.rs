//! The settings of the admin listener.

use std::path::PathBuf;

use crate::{
    base::settings::{distinct, section},
    wire::address::{ListenAddress, ServerName},
};

section! {
    /// Health, metrics, the admin API and the console: not for the public.
    AdminSettings["admin"] {
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
