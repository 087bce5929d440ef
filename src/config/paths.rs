//! Relative paths: they belong to the directory of the configuration file.

use std::path::{Path, PathBuf};

use super::Config;

impl Config {
    /// Makes every path absolute; relative ones are resolved against `directory`.
    pub(super) fn resolve_paths(&mut self, directory: &Path) {
        let resolve = |path: &mut PathBuf| *path = directory.join(&path);
        let lists = [
            &mut self.listen.tls.certificate,
            &mut self.listen.tls.key,
            &mut self.listen.tls.client_ca,
            &mut self.upstream.tls.ca,
            &mut self.store.encryption_key_file,
            &mut self.login.ca,
        ];
        lists.into_iter().flatten().for_each(resolve);
        let single = [
            &mut self.upstream.tls.certificate,
            &mut self.upstream.tls.key,
            &mut self.nonce.path,
            &mut self.pages.logo,
            &mut self.pages.stylesheet,
            &mut self.pages.messages,
            &mut self.identity.assertion.key_file,
            &mut self.admin.token_file,
        ];
        single.into_iter().flatten().for_each(resolve);
        self.store.url.resolve(directory);
        if let Some(url) = &mut self.nonce.url {
            url.resolve(directory);
        }
    }
}
