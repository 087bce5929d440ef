//! What the operator wrote, checked: [`load`] reads the file and the environment into a [`Config`] or reports every
//! problem at once.
//!
//! # How to add a key
//!
//! Declare it in `sections`, with its type, default, reason, and whether a reload applies it. Suggestions, environment
//! variables and `config.example.toml` follow from that; `COUNTERSIGN_WRITE_EXAMPLE=1 cargo test example_file` writes
//! the latter. A value that is written as a string implements `text::Text`. What involves more than one key is in
//! `rules` (errors) and `warnings` (advice), and what follows from other keys when it is not written in `derived`.
//!
//! A relative path belongs to the directory of the configuration file, wherever the working directory is: in the file, in
//! a variable that sets a key, and in a `_FILE` variable. [`load`] makes every path absolute.

mod address;
mod choices;
mod derived;
mod environment;
mod header;
mod names;
mod paths;
mod pattern;
mod problem;
mod reader;
mod reload;
mod rules;
mod section;
mod sections;
mod store_url;
mod text;
mod units;
mod warnings;

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use self::{
    address::{ApiUrl, EndpointUrl, ListenAddress, ServerName, TcpOrUnix, UpstreamHost, WebUrl},
    choices::{
        Enforcement, ForbiddenStatus, LoginBackend, NonceScope, Preflight, ProfileParameter,
        StoreBackend, Unlisted, UpgradeProtocol,
    },
    header::HeaderPattern,
    pattern::PathPattern,
    problem::{ConfigErrors, Problem},
    sections::{
        Admin, Cache, Identity, IdentityAssertion, Limits, Listen, ListenTls, Log, Login, Nonce,
        Operation, Operations, Pages, Paths, PermissionEntry, Service, Signature, Store,
        StoreLookup, Tokens, Upstream, UpstreamTls,
    },
    store_url::{Sql, StoreUrl},
    units::{ByteSize, InvalidUnit, Lifetime, format_duration, parse_duration},
    warnings::Warning,
};
use self::{
    problem::{Position, Problems},
    reader::Reader,
    section::{Schema, Section},
};

/// Declares the configuration: each section in the order of the example, with the one inside it, and in brackets what is
/// written any number of times.
macro_rules! config {
    ($($field:ident: $($type:ident $({ $inner:ident })?)? $([$item:ident])?,)+) => {
        /// A whole configuration, valid in itself: what remains to be seen is the world (files, addresses, the API).
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Config {
            $(#[doc = concat!("`", stringify!($field), "`")] pub $field: $($type)? $(Vec<$item>)?,)+
        }

        /// Every section that can be written, in the order of the example.
        const SECTIONS: &[Schema] = &[
            $($($type::SCHEMA, $($inner::SCHEMA,)?)? $($item::SCHEMA,)?)+
        ];

        impl Config {
            fn read(reader: &mut Reader<'_>) -> Option<Self> {
                Some(Self {
                    $($field: reader.$(section::<$type>)? $(list::<$item>)? ()?,)+
                })
            }

            /// Takes from `running` what only a restart can change, and returns the keys that differed.
            fn keep_keys(&mut self, running: &Self) -> Vec<&'static str> {
                let mut kept = Vec::new();
                $($(<$type as Section>::keep_fixed(&mut self.$field, &running.$field, &mut kept);)?)+
                kept
            }
        }
    };
}

config! {
    listen: Listen { ListenTls },
    service: Service,
    upstream: Upstream { UpstreamTls },
    signature: Signature,
    nonce: Nonce,
    store: Store { StoreLookup },
    cache: Cache,
    tokens: Tokens,
    login: Login,
    pages: Pages,
    identity: Identity { IdentityAssertion },
    permission: [PermissionEntry],
    operation: [Operation],
    operations: Operations,
    paths: Paths,
    limits: Limits,
    admin: Admin,
    log: Log,
}

/// Reads a configuration from a file and the environment, the latter over the former.
///
/// # Errors
/// Every problem of either, each on one line with file, line, key and fix. The file's absence is one.
///
/// Relative paths are resolved against the directory of the file.
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
                let place = Position::File(Arc::from(name.as_str()), Some(lines + 1));
                Problem::without_key(&place, "not valid UTF-8; save the file as UTF-8")
            })
        })?;
    let mut config = parse(&text, &name, environment)?;
    config.resolve_paths(&directory(path));
    Ok(config)
}

/// The directory that relative paths belong to. A link to the file is not followed: the directory of the link counts.
fn directory(file: &Path) -> PathBuf {
    // Without a working directory, relative paths cannot be opened anyway.
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    file.parent().map(Path::to_owned).unwrap_or_default()
}

/// Reads a configuration from a file's text; `name` is the path of the file, as problems call it. Paths stay as written.
///
/// # Errors
/// As [`load`].
pub fn parse(
    text: &str,
    name: &str,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Config, ConfigErrors> {
    let mut problems = Problems::default();
    let variables = environment::read(environment, &directory(Path::new(name)), &mut problems);
    let mut reader = Reader::new(text, name, &variables, problems)?;
    reader.check_names();
    let config = Config::read(&mut reader);
    if let Some(config) = &config {
        rules::check(config, &mut reader);
    }
    reader.problems.into_result(config)
}

fn unreadable(name: &str, error: &io::Error) -> Problem {
    let place = Position::File(Arc::from(name), None);
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
