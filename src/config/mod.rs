//! What the operator wrote, checked: [`load`] reads the file and the environment into a [`Config`] or tells every
//! problem at once.
//!
//! # How a key comes to be
//!
//! `sections` declares each key once, with its type, default and reason. From there
//! `shape` knows which keys exist, `environment` which variables, `config.example.toml` what to say
//! ([`example()`] holds it equal), and `schema::Reader` how to read it. What involves more than one key is in
//! `rules` (errors) and `warnings` (advice); what follows from other keys when it is not written, in `derived`;
//! what cannot be set yet, in `available`.
//!
//! Relative paths are taken as they stand, relative to the working directory: the same on the command line, in a
//! variable and in the file.

mod address;
mod available;
mod checks;
mod derived;
mod environment;
mod error;
mod example;
mod header;
mod method;
mod pattern;
mod reload;
mod rules;
mod schema;
mod sections;
mod setting;
mod shape;
mod store_url;
mod suggest;
mod tree;
mod units;
mod url;
mod warnings;
mod words;

use std::{ffi::OsString, fs, io, path::Path, sync::Arc};

pub use self::{
    address::{ApiUrl, BaseUrl, ListenAddress, PublicUrl, ServerName, UpstreamHost},
    error::{ConfigErrors, Problem},
    example::example,
    header::HeaderPattern,
    method::MethodName,
    pattern::PathPattern,
    sections::{
        Admin, Cache, Identity, IdentityAssertion, Limits, Listen, ListenTls, Log, Login, Nonce,
        Operation, Operations, Paths, PermissionEntry, Service, Signature, Store, Tokens, Upstream,
        UpstreamTls,
    },
    store_url::StoreUrl,
    units::{ByteSize, InvalidUnit, Lifetime, Rate, format_duration, parse_duration},
    url::{HttpUrl, Origin, Scheme},
    warnings::Warning,
    words::{
        Advice, CallerKind, Enforcement, ForbiddenStatus, ForwardedFamily, LogFormat, LoginBackend,
        NonceScope, OnLost, PathPolicy, PrefixMode, StoreBackend, Unlisted, UpgradeProtocol,
    },
};
use self::{
    error::{Place, Problems},
    schema::{Section, SectionSchema, read_list, read_section},
    tree::Table,
};

/// A whole configuration, valid in itself: what remains to be seen is the world (files, addresses, the API).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The public listener.
    pub listen: Listen,
    /// The service as consumers and browsers see it.
    pub service: Service,
    /// The API behind.
    pub upstream: Upstream,
    /// How requests are signed.
    pub signature: Signature,
    /// The memory of used nonces.
    pub nonce: Nonce,
    /// Where consumers, users and tokens are kept.
    pub store: Store,
    /// The cache in front of the store.
    pub cache: Cache,
    /// Lifetimes of tokens.
    pub tokens: Tokens,
    /// How users prove who they are.
    pub login: Login,
    /// What the API is told about the caller.
    pub identity: Identity,
    /// What holds for all operations.
    pub operations: Operations,
    /// The protected operations.
    pub operation: Vec<Operation>,
    /// What consumers can ask for.
    pub permission: Vec<PermissionEntry>,
    /// The path conventions.
    pub paths: Paths,
    /// Bounds of every wait and every buffer.
    pub limits: Limits,
    /// Health, metrics and administration.
    pub admin: Admin,
    /// The log.
    pub log: Log,
}

/// Every section that can be written, in the order of the example.
const SECTIONS: &[SectionSchema] = &[
    Listen::SCHEMA,
    ListenTls::SCHEMA,
    Service::SCHEMA,
    Upstream::SCHEMA,
    UpstreamTls::SCHEMA,
    Signature::SCHEMA,
    Nonce::SCHEMA,
    Store::SCHEMA,
    Cache::SCHEMA,
    Tokens::SCHEMA,
    Login::SCHEMA,
    Identity::SCHEMA,
    IdentityAssertion::SCHEMA,
    PermissionEntry::SCHEMA,
    Operation::SCHEMA,
    Operations::SCHEMA,
    Paths::SCHEMA,
    Limits::SCHEMA,
    Admin::SCHEMA,
    Log::SCHEMA,
];

impl Config {
    fn read(tree: &Table, file: &Place, problems: &mut Problems) -> Self {
        Self {
            listen: read_section(tree, file, problems),
            service: read_section(tree, file, problems),
            upstream: read_section(tree, file, problems),
            signature: read_section(tree, file, problems),
            nonce: read_section(tree, file, problems),
            store: read_section(tree, file, problems),
            cache: read_section(tree, file, problems),
            tokens: read_section(tree, file, problems),
            login: read_section(tree, file, problems),
            identity: read_section(tree, file, problems),
            operations: read_section(tree, file, problems),
            operation: read_list(tree, problems),
            permission: read_list(tree, problems),
            paths: read_section(tree, file, problems),
            limits: read_section(tree, file, problems),
            admin: read_section(tree, file, problems),
            log: read_section(tree, file, problems),
        }
    }
}

/// Reads a configuration from a file and the environment, the latter over the former.
///
/// # Errors
///
/// Every problem of either, each on one line with file, line, key and mend. The file's absence is one.
pub fn load(
    path: &Path,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Config, ConfigErrors> {
    let name = path.display().to_string();
    let text = fs::read(path)
        .map_err(|error| unreadable(&name, &error))
        .and_then(|bytes| {
            String::from_utf8(bytes).map_err(|error| {
                let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let lines = valid.iter().filter(|byte| **byte == b'\n').count();
                let line = u32::try_from(lines).map_or(u32::MAX, |lines| lines.saturating_add(1));
                let place = Place::line(&Arc::from(name.as_str()), line);
                Problem::without_key(&place, "not valid UTF-8; save the file as UTF-8")
            })
        })?;
    parse(&text, &name, environment)
}

/// Reads a configuration from a file's text; `name` is what problems call it.
///
/// # Errors
///
/// As [`load`].
pub fn parse(
    text: &str,
    name: &str,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Config, ConfigErrors> {
    let name = Arc::from(name);
    let file = Place::file(&name);
    let mut tree = tree::parse(text, &name)?;
    let mut problems = Problems::default();
    environment::overlay(&mut tree, environment, &mut problems);
    shape::check(&tree, &mut problems);
    let config = Config::read(&tree, &file, &mut problems);
    available::check(&tree, &mut problems);
    rules::check(&config, &tree, &file, &mut problems);
    problems.into_result(config)
}

fn unreadable(name: &str, error: &io::Error) -> Problem {
    let place = Place::file(&Arc::from(name));
    let message = match error.kind() {
        io::ErrorKind::NotFound => "no such file; copy config.example.toml there and set \
             upstream.api_url, or name another file with --config or COUNTERSIGN_CONFIG"
            .to_owned(),
        io::ErrorKind::IsADirectory => "this is a directory; name the file in it".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "permission denied; make the file readable for the user that countersign runs as"
                .to_owned()
        }
        _ => format!("cannot be read: {error}"),
    };
    Problem::without_key(&place, message)
}

#[cfg(test)]
mod tests;
