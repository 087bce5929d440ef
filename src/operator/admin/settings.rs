//! The settings of the admin listener.

use std::path::{Path, PathBuf};

use super::tokens::{TokenFileError, Tokens};
use crate::{
    base::{
        secret::Secret,
        settings::{distinct, section},
    },
    wire::address::{ListenAddress, ServerName},
};

section! {
    /// Health, metrics, admin API and console: not for the public.
    AdminSettings["admin"] {
        /// An IP address and a port, or unix:/path.sock. Loopback, because metrics show who calls.
        listen: ListenAddress = "127.0.0.1:8081", restart;
        /// /healthz and /readyz alone, under any Host, for kubelets and load balancers.
        probe_listen: Option<ListenAddress> [else "none": "0.0.0.0:8082"], restart;
        /// Further names that the Host may have; addresses, localhost and names under it always count.
        #[serde(deserialize_with = "distinct")] hosts: Vec<ServerName> = [], reload;
        /// The file of the token that can read and change everything, or a line NAME:TOKEN for each operator. See
        /// docs/admin-api.md. Read again on SIGHUP.
        token_file: Option<PathBuf> [else "none: the admin API and the console are off": "admin.token"], reload;
        /// The same for tokens that can only read.
        read_token_file: Option<PathBuf> [else "none": "admin-read.token"], reload;
    }
}

impl AdminSettings {
    /// Reads the tokens of the admin API and the console, if they are on.
    ///
    /// # Errors
    /// The files.
    pub fn tokens(&self) -> Result<Option<Tokens>, TokenFileError> {
        let [write, read] = [&self.token_file, &self.read_token_file].map(Option::as_deref);
        write.map(|write| Tokens::read(write, read)).transpose()
    }

    /// The first token of the files, one that only reads if there is such a file; `None`: the admin API is off.
    ///
    /// # Errors
    /// The file.
    pub fn any_token(&self) -> Result<Option<Secret>, TokenFileError> {
        let is_on = self.token_file.is_some();
        let file = self.token_files().filter(|_| is_on).last();
        file.map(|(key, path)| Tokens::first(key, path)).transpose()
    }

    /// The files of the tokens, with their keys.
    pub fn token_files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let write = ("admin.token_file", self.token_file.as_deref());
        let read = ("admin.read_token_file", self.read_token_file.as_deref());
        let files = [write, read].into_iter();
        files.filter_map(|(key, file)| Some((key, file?)))
    }
}
