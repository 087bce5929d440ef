//! The files of `deploy/providers` themselves.

use std::{collections::BTreeSet, path::Path};

use crate::{
    providers::stage::file,
    support::{Proxy, Upstream},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn providers() -> BTreeSet<String> {
    let entries = std::fs::read_dir(root().join("deploy/providers")).unwrap();
    entries
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".toml").map(str::to_owned)
        })
        .collect()
}

#[test]
fn every_provider_file_passes_check() {
    let api = Upstream::start();
    for provider in providers() {
        let mut builder = Proxy::in_front_of(&api).config(&file(&provider));
        builder.set("upstream.api_url", api.url().into());
        let ended = builder.run(&["check"], "");
        assert_eq!(ended.code(), Some(0), "{provider}: {ended:?}");
    }
}

#[test]
fn every_provider_file_is_named_in_the_documents() {
    for provider in providers() {
        let is_guard = provider.starts_with("guard-");
        let pages = ["deploy/providers/README.md", "docs/guard.md"];
        for document in pages.into_iter().take(1 + usize::from(is_guard)) {
            let text = std::fs::read_to_string(root().join(document)).unwrap();
            assert!(
                text.contains(&format!("[{provider}.toml]")),
                "{document}: {provider}.toml"
            );
        }
    }
}
