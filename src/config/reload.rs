//! What a reload cannot change.

use super::Config;

impl Config {
    /// The keys that differ in `new` and only count after a restart: listeners, workers, store, nonce window.
    #[must_use]
    pub fn needs_restart(&self, new: &Self) -> Vec<&'static str> {
        let changed = [
            ("listen.address", self.listen.address != new.listen.address),
            ("listen.workers", self.listen.workers != new.listen.workers),
            (
                "listen.tls.certificate",
                self.listens_with_tls() != new.listens_with_tls(),
            ),
            ("nonce.scope", self.nonce_scope() != new.nonce_scope()),
            (
                "nonce.max_entries",
                self.nonce.max_entries != new.nonce.max_entries,
            ),
            ("nonce.path", self.nonce_path() != new.nonce_path()),
            ("store.backend", self.store.backend != new.store.backend),
            ("store.url", self.store.url != new.store.url),
            (
                "store.encryption_key_file",
                self.store.encryption_key_file != new.store.encryption_key_file,
            ),
            ("admin.listen", self.admin.listen != new.admin.listen),
            (
                "admin.probe_listen",
                self.admin.probe_listen != new.admin.probe_listen,
            ),
            ("log.format", self.log.format != new.log.format),
        ];
        changed
            .into_iter()
            .filter_map(|(key, changed)| changed.then_some(key))
            .collect()
    }
}
