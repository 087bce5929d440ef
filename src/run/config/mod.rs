//! The checked configuration: [`load`] reads the file and the environment into a [`Config`], or reports the problems of
//! all sections at once.
//!
//! # How to add a key
//!
//! Declare it in the settings of the module that uses it, with its type, default, reason, and whether a reload applies it
//! (`base::settings`). Suggestions, environment variables, `config.example.toml`, `config.schema.json` and
//! `docs/configuration.md` follow from that; `COUNTERSIGN_WRITE_EXAMPLE=1 cargo test example_file` writes the files. Rules
//! on more than one key are in `rules` (errors) and
//! `warnings` (advice); values that follow from other keys are in `derived`.
//!
//! A relative path belongs to the directory of the configuration file, wherever the working directory is: in the file, in
//! a variable that sets a key, and in a `_FILE` variable; only the files that the process writes can belong to another one, which
//! `COUNTERSIGN_DATA` names. Every path is made absolute when it is read.

mod derived;
mod lines;
mod process;
mod read;
mod rules;
mod schema;
mod stray;
mod warnings;

use std::{ffi::OsString, fs::File, io, path::Path};

use self::read::Written;
pub use self::{
    derived::FORWARD_AUTH, process::*, read::ConfigErrors, rules::Finding, schema::json_schema,
};
use crate::{
    base::settings::{Section, SectionSchema},
    gateway::settings::{ConventionSettings, CorsSettings, ForwardAuthSettings, PreflightSettings},
    operator::{
        admin::settings::AdminSettings,
        manage::{audit::settings::AuditSettings, setting::EffectiveSetting},
    },
    provider::{
        endpoints::{
            scope::ScopeSettings,
            settings::{ExchangeSettings, TokenLimitSettings, TokenResponseSettings},
        },
        login::settings::{LoginSettings, PasswordCheckSettings},
        pages::settings::{
            AuthorizePageSettings, ConsentSettings, PermissionSettings, RegistrationSettings,
            SessionSettings,
        },
        theme::settings::{PagesSettings, ResponseSettings},
    },
    records::{
        credentials::CacheSettings,
        nonce::settings::NonceSettings,
        store::settings::{EndedTokenSettings, LookupSettings, StoreSettings},
    },
    request::{
        bearer::settings::{BearerSettings, IssuerSettings},
        forward::settings::{UpstreamSettings, UpstreamTlsSettings},
        identity::settings::{AssertionSettings, IdentitySettings},
        parse::settings::{ProxySettings, ServiceSettings},
        policy::{
            rate_limit::RateSettings,
            settings::{OperationSettings, PathSettings, UnlistedSettings},
            sunset::settings::{BrownOutSettings, SunsetSettings},
        },
        route::settings::FlowSettings,
        verify::settings::{SignatureSettings, TokenSettings},
    },
    telemetry::log::LogSettings,
    wire::server::settings::{LimitSettings, ListenTlsSettings, ProtocolSettings},
};

/// Declares the configuration: each section or part of one, in the order of the example, and in brackets those that are
/// written any number of times.
macro_rules! config {
    ($($field:ident: $($type:ident)? $([$item:ident])?,)+) => {
        /// A whole configuration, valid in itself; files, addresses and the API are not checked yet.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Config {
            $($(
                #[doc = concat!("[`", stringify!($type), "`]")]
                pub $field: $type,
            )? $(
                #[doc = concat!("[`", stringify!($item), "`]")]
                pub $field: Vec<$item>,
            )?)+
            /// Every key with its value, without passwords, and the source of the value.
            pub settings: Vec<EffectiveSetting>,
            /// Variables of the environment that look like ours and set nothing.
            stray: Vec<Finding>,
        }

        /// Every section that can be written, or its parts one after the other, in the order of the example.
        const SECTIONS: &[SectionSchema] = &[$($($type::SCHEMA,)? $($item::SCHEMA,)?)+];

        impl Config {
            fn read(written: &mut Written<'_>) -> Option<Self> {
                // Each section is read before the first `?`, so that the problems of all are reported.
                $(let $field = written.$(section::<$type>)? $(list::<$item>)? ();)+
                Some(Self { $($field: $field?,)+ settings: written.settings(), stray: written.stray() })
            }

            /// Takes from `running` the values that only a restart can change, so that this configuration is the one in
            /// effect, and returns the keys that differed. A listener neither starts nor stops using TLS.
            pub fn keep_fixed(&mut self, running: &Self) -> Vec<&'static str> {
                let mut fixed = Vec::new();
                $($(<$type as Section>::keep_fixed(&mut self.$field, &running.$field, &mut fixed);)?)+
                if self.listens_with_tls() != running.listens_with_tls() {
                    self.listen_tls = running.listen_tls.clone();
                    fixed.push("listen.tls.certificate");
                }
                for setting in &mut self.settings {
                    let is_fixed = fixed.contains(&&*setting.key)
                        || fixed.contains(&"listen.tls.certificate") && setting.key.starts_with("listen.tls.");
                    let runs = running.settings.iter().find(|runs| is_fixed && runs.key == setting.key);
                    if let Some(runs) = runs {
                        setting.clone_from(runs);
                    }
                }
                fixed
            }
        }
    };
}

config! {
    listen: ListenSettings,
    proxies: ProxySettings,
    protocols: ProtocolSettings,
    listen_tls: ListenTlsSettings,
    service: ServiceSettings,
    flow: FlowSettings,
    authorize_page: AuthorizePageSettings,
    responses: ResponseSettings,
    cors: CorsSettings,
    upstream: UpstreamSettings,
    upstream_tls: UpstreamTlsSettings,
    signature: SignatureSettings,
    nonce: NonceSettings,
    store: StoreSettings,
    lookup: LookupSettings,
    cache: CacheSettings,
    tokens: TokenSettings,
    ended_tokens: EndedTokenSettings,
    token_response: TokenResponseSettings,
    scope: ScopeSettings,
    password_check: PasswordCheckSettings,
    login: LoginSettings,
    pages: PagesSettings,
    identity: IdentitySettings,
    assertion: AssertionSettings,
    exchange: ExchangeSettings,
    bearer: BearerSettings,
    issuer: [IssuerSettings],
    sunset: SunsetSettings,
    brown_out: [BrownOutSettings],
    consent: ConsentSettings,
    registration: RegistrationSettings,
    permission: [PermissionSettings],
    operation: [OperationSettings],
    operations: UnlistedSettings,
    preflights: PreflightSettings,
    conventions: ConventionSettings,
    paths: PathSettings,
    limits: LimitSettings,
    sessions: SessionSettings,
    rate: RateSettings,
    token_limits: TokenLimitSettings,
    forward_auth: ForwardAuthSettings,
    admin: AdminSettings,
    audit: AuditSettings,
    telemetry: TraceSettings,
    log: LogSettings,
}

/// Reads a configuration from the file at this path, as it was opened, and the environment, the latter over the former.
/// Relative paths are resolved against the directory of the file.
///
/// # Errors
/// Every unknown key, the first problem of each section, and every rule that is broken: each on one line with file, key
/// and fix. A missing file is a problem too.
pub fn load(
    file: io::Result<File>,
    path: &Path,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Config, ConfigErrors> {
    let name = path.display().to_string();
    let text = file
        .and_then(io::read_to_string)
        .map_err(|error| ConfigErrors::for_file(&name, &unreadable(&error)))?;
    let config = parse(&text, &name, environment)?;
    config.identity.encoding.set();
    Ok(config)
}

/// Reads a configuration from a file's text; `name` is the path of the file, as problems call it.
///
/// # Errors
/// As [`load`].
pub fn parse(
    text: &str,
    name: &str,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Config, ConfigErrors> {
    // A link to the file is not followed: the directory of the link counts. Without a working directory, relative paths
    // cannot be opened anyway.
    let file = std::path::absolute(name).unwrap_or_else(|_| name.into());
    let directory = file.parent().unwrap_or(&file);
    let mut written = Written::read(text, name, environment, directory)?;
    let config = Config::read(&mut written);
    for Finding { key, message } in config.iter().flat_map(rules::problems) {
        written.problem(&key, &message);
    }
    written.into_result(config)
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file; copy config.example.toml there and set \
             upstream.api_url, or name another file with --config or COUNTERSIGN_CONFIG"
            .to_owned(),
        io::ErrorKind::InvalidData => "not valid UTF-8; save the file as UTF-8".to_owned(),
        _ => format!("cannot be read: {error}; name a readable file"),
    }
}

#[cfg(test)]
mod tests;
