//! `countersign sign`: prints the Authorization header of a request, or the whole `curl` command.

use std::{io::Read, path::PathBuf};

use clap::Args;
use zeroize::Zeroizing;

use crate::{
    base::{
        clock::{Clock, UnixTime},
        secret::random,
    },
    cli::{
        arguments::{
            request::RequestArgs,
            signing_secrets::{Lookup, SecretArgs, read_pem},
        },
        context::{About as _, CommandError, Output},
    },
    oauth::{
        BaseString, LocationRule, MethodSet, Parameters, RsaPrivateKey, ShapeError,
        SignatureMethod, SigningKey, body_hash, percent, sign, sign_rsa,
    },
    operator::explain::{Asked, ParsedRequest},
};

/// Signs a request and prints its Authorization header
#[derive(Debug, Default, Args)]
pub struct SignArgs {
    #[command(flatten)]
    pub(in crate::cli) request: RequestArgs,

    /// Consumer key
    #[arg(long, value_name = "KEY", required = true, allow_hyphen_values = true)]
    pub(in crate::cli) consumer_key: String,

    /// Token: none for the request token call
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
    pub(in crate::cli) token: Option<String>,

    #[command(flatten)]
    pub(in crate::cli) secrets: SecretArgs,

    #[arg(long = "method", value_name = "NAME", default_value_t, help = method_help())]
    pub(in crate::cli) signature_method: SignatureMethod,

    /// PEM file with the consumer's private key, for the RSA methods; no secret is needed then
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) rsa_private_key: Option<PathBuf>,

    /// oauth_callback, for the request token call: a URL or oob
    #[arg(long, value_name = "URL", allow_hyphen_values = true)]
    pub(in crate::cli) callback: Option<String>,

    /// oauth_verifier, for the access token call
    #[arg(long, value_name = "VERIFIER", allow_hyphen_values = true)]
    pub(in crate::cli) verifier: Option<String>,

    /// Add oauth_body_hash, the hash of a body that is not a form
    #[arg(long)]
    pub(in crate::cli) body_hash: bool,

    /// Print the whole curl command
    #[arg(long)]
    pub(in crate::cli) curl: bool,
}

fn method_help() -> String {
    let signing = SignatureMethod::names(SignatureMethod::can_sign);
    let others = SignatureMethod::names(|method| !method.can_sign());
    format!("Signature method: {signing}; {others} is only verified")
}

impl SignArgs {
    /// Signs with a fresh nonce and the time of `clock`. `lookup` is asked for the secrets if the command line has none.
    pub fn run(
        &self,
        clock: &Clock,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
    ) -> Result<Output, CommandError> {
        let line = self.signed(clock.now(), &random::identifier()?, lookup, stdin)?;
        let mut output = Output::from(line + "\n");
        if self.signature_method == SignatureMethod::Plaintext {
            let note = "countersign: warning: with PLAINTEXT this header holds both secrets as they are; send it over https only";
            output.notes.push(note.to_owned());
        }
        Ok(output)
    }

    /// The line to print.
    fn signed(
        &self,
        now: UnixTime,
        nonce: &str,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
    ) -> Result<String, CommandError> {
        let request = self.request.request()?;
        let hash = self.hash_of(&request)?;
        let parameters = self.protocol_parameters(now, nonce, hash.as_deref());
        let mut header = format!("OAuth {parameters}");
        let parameters = collected(&request, &header).about("the request cannot be signed")?;
        let base = request.base_string(&parameters);
        let signature = if self.signature_method.is_rsa() {
            self.rsa_signature(&base)?
        } else {
            let asked = Asked {
                consumer_key: self.consumer_key.as_bytes(),
                token: self.token().map(str::as_bytes),
                nonce: None,
            };
            let secrets = self.secrets.read_to_sign(&asked, lookup, stdin)?;
            let key = SigningKey::new(&secrets.consumer_secret, &secrets.token_secret);
            // Every method but the RSA ones makes a signature.
            sign(self.signature_method, &key, &base).unwrap_or_default()
        };
        let signature = percent::encode(signature.as_bytes());
        header += &format!(", oauth_signature=\"{signature}\"");
        Ok(match self.curl {
            true => curl(&request, &header),
            false => format!("Authorization: {header}"),
        })
    }

    /// The hash of the body, with `--body-hash`.
    fn hash_of(&self, request: &ParsedRequest<'_>) -> Result<Option<String>, CommandError> {
        if !self.body_hash {
            return Ok(None);
        }
        let wrong = |problem: &str| Err(CommandError::usage(format!("--body-hash: {problem}")));
        if request.form().is_some() {
            return wrong(
                "a form is signed without a hash; name the type of another body with --header 'Content-Type: …'",
            );
        }
        if self.signature_method == SignatureMethod::Plaintext {
            return wrong("PLAINTEXT covers no body; use another --method");
        }
        let body = request.data.unwrap_or_default().as_bytes();
        Ok(Some(body_hash(self.signature_method, body)))
    }

    fn rsa_signature(&self, base: &BaseString<'_>) -> Result<String, CommandError> {
        let wrong = |problem: &str| {
            let method = self.signature_method;
            CommandError::usage(format!("--method {method} {problem}"))
        };
        let path = self.rsa_private_key.as_ref().ok_or_else(|| {
            wrong("needs the consumer's private key: give --rsa-private-key FILE")
        })?;
        let option = format!("--rsa-private-key {}", path.display());
        let pem = Zeroizing::new(read_pem(path, &option)?);
        let key = RsaPrivateKey::from_pem(&pem).about(option)?;
        sign_rsa(self.signature_method, &key, base).ok_or_else(|| {
            let others = SignatureMethod::names(|method| method.is_rsa() && method.can_sign());
            wrong(&format!("is verified and not made here; use {others}"))
        })
    }

    fn token(&self) -> Option<&str> {
        self.token.as_deref().filter(|token| !token.is_empty())
    }

    /// All protocol parameters but the signature, in the form of the header.
    fn protocol_parameters(&self, now: UnixTime, nonce: &str, hash: Option<&str>) -> String {
        let timestamp = now.0.to_string();
        let pairs = [
            ("oauth_consumer_key", Some(&*self.consumer_key)),
            ("oauth_token", self.token()),
            (
                "oauth_signature_method",
                Some(self.signature_method.as_str()),
            ),
            ("oauth_timestamp", Some(&*timestamp)),
            ("oauth_nonce", Some(nonce)),
            ("oauth_version", Some("1.0")),
            ("oauth_callback", self.callback.as_deref()),
            ("oauth_verifier", self.verifier.as_deref()),
            ("oauth_body_hash", hash),
        ];
        let written = pairs.iter().filter_map(|(name, value)| {
            let value = percent::encode((*value)?.as_bytes());
            Some(format!("{name}=\"{value}\""))
        });
        written.collect::<Vec<_>>().join(", ")
    }
}

/// All parameters, but for a request that the server would reject: `oauth_` parameters in the URL too, an empty callback.
fn collected(request: &ParsedRequest<'_>, header: &str) -> Result<Parameters, ShapeError> {
    let mut parameters = Parameters::new();
    parameters.read_header(header.as_bytes())?;
    request.read_into(&mut parameters)?;
    parameters.protocol(MethodSet::ALL, LocationRule::OneLocation)?;
    Ok(parameters)
}

/// The command that sends the request exactly as it was signed.
fn curl(request: &ParsedRequest<'_>, authorization: &str) -> String {
    let uri = &request.uri;
    let query = uri.query.map(|query| format!("?{query}"));
    let port = uri.authority.port.map(|port| format!(":{port}"));
    let [port, query] = [port, query].map(Option::unwrap_or_default);
    let target = [uri.authority.host, &port, uri.path, &query].concat();
    let mut command = vec!["curl".to_owned()];
    if request.method == "HEAD" {
        // With `--request HEAD` curl waits for a body that does not come.
        command.push("--head".into());
    } else {
        command.push(format!("--request {}", quoted(request.method)));
    }
    // Without these options curl resolves dot segments and expands brackets.
    if uri.path.contains("/.") {
        command.push("--path-as-is".into());
    }
    if target.contains(['[', ']', '{', '}']) {
        command.push("--globoff".into());
    }
    let authorization = ("Authorization", authorization);
    for (name, value) in std::iter::once(&authorization).chain(&request.headers) {
        let field = match value {
            // With this form curl sends a field without a value.
            &"" => format!("{name};"),
            value => format!("{name}: {value}"),
        };
        command.push(format!("--header {}", quoted(&field)));
    }
    if let Some(data) = request.data {
        command.push(format!("--data-raw {}", quoted(data)));
    }
    command.push(quoted(&format!("{}://{target}", uri.scheme)));
    command.join(" ")
}

/// Quotes a word for a POSIX shell.
pub(in crate::cli) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
