//! `countersign sign`: prints the Authorization header of a request, or the whole `curl` command.

use std::{
    error::Error,
    io::{self, Read, Write},
    process::ExitCode,
};

use aws_lc_rs::rand;
use clap::Args;
use thiserror::Error;

use super::{
    lookup,
    request::{Lookup, Request, RequestArgs, RequestArgsError},
    secret_arg::{SecretArg, SecretArgError},
};
use crate::{
    clock::{Clock, UnixTime},
    oauth::{MethodSet, Parameters, ShapeError, SignatureMethod, SigningKey, percent, sign},
    secret::Secret,
};

/// Signs a request and prints its Authorization header
#[derive(Debug, Args)]
pub struct SignArgs {
    #[command(flatten)]
    request: RequestArgs,

    /// Consumer key
    #[arg(long, value_name = "KEY", required = true, allow_hyphen_values = true)]
    consumer_key: String,

    /// Consumer secret, @FILE, or - for standard input [default: the store's]
    #[arg(long, value_name = "SECRET", allow_hyphen_values = true)]
    consumer_secret: Option<SecretArg>,

    /// Token: none for the request token call
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
    token: Option<String>,

    /// Token secret, @FILE, or - for standard input [default: the store's]
    #[arg(long, value_name = "SECRET", allow_hyphen_values = true)]
    token_secret: Option<SecretArg>,

    /// Signature method: HMAC-SHA1, HMAC-MD5, HMAC-SHA256, HMAC-SHA512 or PLAINTEXT
    #[arg(long = "method", value_name = "NAME", default_value = "HMAC-SHA1")]
    signature_method: String,

    /// oauth_callback, for the request token call: a URL or oob
    #[arg(long, value_name = "URL", allow_hyphen_values = true)]
    callback: Option<String>,

    /// oauth_verifier, for the access token call
    #[arg(long, value_name = "VERIFIER", allow_hyphen_values = true)]
    verifier: Option<String>,

    /// Print the whole curl command
    #[arg(long)]
    curl: bool,
}

#[derive(Debug, Error)]
enum SignError {
    #[error("{0}")]
    Request(#[from] RequestArgsError),
    #[error("--method {0:?} is not a signature method")]
    UnknownMethod(String),
    #[error(
        "--method {0} needs the consumer's private key, which is not known here; give an HMAC method"
    )]
    PrivateKey(SignatureMethod),
    #[error("{0}")]
    Secret(#[from] SecretArgError),
    #[error("cannot find the secrets of consumer {consumer:?}; give --consumer-secret")]
    Lookup {
        consumer: String,
        #[source]
        source: Box<dyn Error>,
    },
    #[error("the request cannot be signed: {0}")]
    Shape(#[from] ShapeError),
    #[error("no random numbers to be had")]
    Random,
    #[error("cannot write the result")]
    Output(#[from] io::Error),
}

impl SignError {
    /// 2 for wrong usage and an invalid configuration, 1 for everything else.
    fn exit_code(&self) -> u8 {
        match self {
            Self::Lookup { source, .. } => lookup::exit_code(&**source),
            Self::Request(_)
            | Self::UnknownMethod(_)
            | Self::PrivateKey(_)
            | Self::Secret(SecretArgError::StdinTwice) => 2,
            Self::Secret(_) | Self::Shape(_) | Self::Random | Self::Output(_) => 1,
        }
    }
}

impl SignArgs {
    /// Signs with a fresh nonce and the time of `clock`. `lookup` is asked for the secrets if the command line has none.
    pub fn run(
        &self,
        clock: &Clock,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
        stdout: &mut dyn Write,
        stderr: &mut dyn Write,
    ) -> ExitCode {
        let printed = fresh_nonce()
            .and_then(|nonce| self.signed(clock.now(), &nonce, lookup, stdin))
            .and_then(|line| Ok(writeln!(stdout, "{line}")?));
        let method = SignatureMethod::from_wire(self.signature_method.as_bytes());
        match printed {
            Ok(()) => {
                if method == Some(SignatureMethod::Plaintext) {
                    // Where standard error cannot be written, there is nobody to warn.
                    let _ = writeln!(
                        stderr,
                        "countersign: warning: with PLAINTEXT this header holds both secrets as they are; send it over https only"
                    );
                }
                ExitCode::SUCCESS
            }
            // Whoever reads the output has had enough.
            Err(SignError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                ExitCode::SUCCESS
            }
            Err(error) => super::request::report(stderr, &error, error.exit_code()),
        }
    }

    /// The line to print.
    fn signed(
        &self,
        now: UnixTime,
        nonce: &str,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
    ) -> Result<String, SignError> {
        let request = self.request.request()?;
        let method = SignatureMethod::from_wire(self.signature_method.as_bytes())
            .ok_or_else(|| SignError::UnknownMethod(self.signature_method.clone()))?;
        let key = self.key(lookup, stdin)?;

        let mut header = format!("OAuth {}", self.protocol_parameters(now, nonce));
        let mut parameters = Parameters::new();
        parameters.read_header(header.as_bytes())?;
        request.read_into(&mut parameters)?;
        // What the server would refuse is not worth signing: oauth_ parameters in the URL as well, an empty callback.
        parameters.protocol(MethodSet::ALL)?;
        let signature = sign(method, &key, &request.base_string(&parameters))
            .ok_or(SignError::PrivateKey(method))?;
        header += &format!(
            ", oauth_signature=\"{}\"",
            percent::encode(signature.as_bytes())
        );

        Ok(if self.curl {
            curl(&request, &header)
        } else {
            format!("Authorization: {header}")
        })
    }

    fn key(&self, lookup: &mut Lookup<'_>, stdin: &mut dyn Read) -> Result<SigningKey, SignError> {
        let given = [self.consumer_secret.as_ref(), self.token_secret.as_ref()];
        let none = || Secret::from("");
        let (consumer_secret, token_secret) = match SecretArg::read_all(given, stdin)? {
            [None, None] => {
                let known = lookup(
                    self.consumer_key.as_bytes(),
                    self.token().map(str::as_bytes),
                )
                .map_err(|source| SignError::Lookup {
                    consumer: self.consumer_key.clone(),
                    source,
                })?;
                (known.consumer_secret, known.token_secret)
            }
            [consumer_secret, token_secret] => (
                consumer_secret.unwrap_or_else(none),
                token_secret.unwrap_or_else(none),
            ),
        };
        Ok(SigningKey::new(&consumer_secret, &token_secret))
    }

    fn token(&self) -> Option<&str> {
        self.token.as_deref().filter(|token| !token.is_empty())
    }

    /// All but the signature, as they stand in the header.
    fn protocol_parameters(&self, now: UnixTime, nonce: &str) -> String {
        let timestamp = now.0.to_string();
        let pairs = [
            ("oauth_consumer_key", Some(&*self.consumer_key)),
            ("oauth_token", self.token()),
            ("oauth_signature_method", Some(&*self.signature_method)),
            ("oauth_timestamp", Some(&*timestamp)),
            ("oauth_nonce", Some(nonce)),
            ("oauth_version", Some("1.0")),
            ("oauth_callback", self.callback.as_deref()),
            ("oauth_verifier", self.verifier.as_deref()),
        ];
        let written = pairs.iter().filter_map(|(name, value)| {
            let value = percent::encode((*value)?.as_bytes());
            Some(format!("{name}=\"{value}\""))
        });
        written.collect::<Vec<_>>().join(", ")
    }
}

/// 128 random bits as hexadecimal digits.
fn fresh_nonce() -> Result<String, SignError> {
    let mut bits = [0; 16];
    rand::fill(&mut bits).map_err(|_| SignError::Random)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bits)))
}

/// The command that sends the request exactly as it was signed.
fn curl(request: &Request<'_>, authorization: &str) -> String {
    let mut command = vec!["curl".to_owned()];
    if request.method == "HEAD" {
        // With `--request HEAD` curl waits for a body that does not come.
        command.push("--head".into());
    } else {
        command.push(format!("--request {}", quoted(request.method)));
    }
    // curl resolves dot segments and expands brackets unless it is told not to.
    if request.uri.path.contains("/.") {
        command.push("--path-as-is".into());
    }
    let target = [
        request.uri.authority,
        request.uri.path,
        request.uri.query.unwrap_or_default(),
    ]
    .concat();
    if target.contains(['[', ']', '{', '}']) {
        command.push("--globoff".into());
    }
    command.push(format!(
        "--header {}",
        quoted(&format!("Authorization: {authorization}"))
    ));
    for (name, value) in &request.headers {
        // This is how curl is told to send a field without a value.
        let field = if value.is_empty() {
            format!("{name};")
        } else {
            format!("{name}: {value}")
        };
        command.push(format!("--header {}", quoted(&field)));
    }
    if let Some(data) = request.data {
        command.push(format!("--data-raw {}", quoted(data)));
    }
    let query = request
        .uri
        .query
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let (scheme, authority, path) = (request.uri.scheme, request.uri.authority, request.uri.path);
    command.push(quoted(&format!("{scheme}://{authority}{path}{query}")));
    command.join(" ")
}

/// Quotes a word for a POSIX shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
