//! `countersign explain`: the signature doctor.

mod mask;
mod text;

use std::{
    error::Error,
    io::{self, Read, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::Args;
use serde::Serialize;
use thiserror::Error;

use self::mask::Mask;
use super::{
    lookup,
    request::{KnownSecrets, Lookup, Request, RequestArgs, RequestArgsError, report},
    secret_arg::{SecretArg, SecretArgError},
};
use crate::{
    oauth::{
        MethodSet, Parameters, ProtocolParameter, RsaPublicKey, Selection, ShapeError,
        SignatureMethod, SigningKey,
        diagnosis::{Attempt, Diagnosis, diagnose_thoroughly},
        rsa::InvalidRsaKey,
        sign, verify,
    },
    secret::Secret,
};

/// Shows how a request has to be signed, and what is wrong with its signature
#[derive(Debug, Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    request: RequestArgs,

    /// Consumer secret, @FILE, or - for standard input [default: the store's]
    #[arg(long, value_name = "SECRET", allow_hyphen_values = true)]
    consumer_secret: Option<SecretArg>,

    /// Token secret, @FILE, or - for standard input [default: the store's]
    #[arg(long, value_name = "SECRET", allow_hyphen_values = true)]
    token_secret: Option<SecretArg>,

    /// PEM file with the consumer's public key, for the RSA methods [default: the store's]
    #[arg(long, value_name = "FILE")]
    rsa_public_key: Option<PathBuf>,

    /// Print secrets too, where the request or PLAINTEXT has them [default: they are hidden]
    #[arg(long)]
    show_secrets: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Error)]
enum ExplainError {
    #[error("{0}")]
    Request(#[from] RequestArgsError),
    #[error("{0}")]
    Secret(#[from] SecretArgError),
    #[error("cannot read {}", .path.display())]
    KeyFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}", .path.display())]
    Key {
        path: PathBuf,
        #[source]
        source: InvalidRsaKey,
    },
    #[error("cannot find the secrets of consumer {consumer:?}; give --consumer-secret")]
    Lookup {
        consumer: String,
        #[source]
        source: Box<dyn Error>,
    },
    #[error("cannot write the result")]
    Output(#[from] io::Error),
}

impl ExplainError {
    /// 2 for wrong usage and an invalid configuration, 1 for everything else.
    fn exit_code(&self) -> u8 {
        match self {
            Self::Lookup { source, .. } => lookup::exit_code(&**source),
            Self::Request(_) | Self::Secret(SecretArgError::StdinTwice) => 2,
            Self::Secret(_) | Self::KeyFile { .. } | Self::Key { .. } | Self::Output(_) => 1,
        }
    }
}

/// What there is to tell about a request.
struct Explanation {
    parameters: Parameters,
    base_string: Vec<u8>,
    /// Why the request would be refused before its signature is looked at.
    problem: Option<ShapeError>,
    signature: Option<Examined>,
    mask: Mask,
}

/// What there is to tell about a signature.
struct Examined {
    method: SignatureMethod,
    secrets: KnownSecrets,
    sent: Option<Vec<u8>>,
    expected: Option<String>,
    matches: bool,
    diagnosis: Option<Diagnosis>,
}

impl ExplainArgs {
    /// Explains the request. `lookup` is asked for the secrets if the command line has none.
    ///
    /// A signature that does not match is what this command is for, and no failure of it.
    pub fn run(
        &self,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
        stdout: &mut dyn Write,
        stderr: &mut dyn Write,
    ) -> ExitCode {
        match self.print(lookup, stdin, stdout) {
            Ok(()) => ExitCode::SUCCESS,
            // Whoever reads the output has had enough.
            Err(ExplainError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                ExitCode::SUCCESS
            }
            Err(error) => report(stderr, &error, error.exit_code()),
        }
    }

    fn print(
        &self,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
        stdout: &mut dyn Write,
    ) -> Result<(), ExplainError> {
        let request = self.request.request()?;
        let explanation = self.explain(&request, lookup, stdin)?;
        if self.json {
            let object = serde_json::to_string(&explanation.to_json()).map_err(io::Error::from)?;
            writeln!(stdout, "{object}")?;
        } else {
            text::write(&explanation, stdout)?;
        }
        Ok(())
    }

    fn explain(
        &self,
        request: &Request<'_>,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
    ) -> Result<Explanation, ExplainError> {
        let mut parameters = Parameters::new();
        let mut problem = None;
        for value in request.header("Authorization") {
            problem = problem.or(parameters.read_header(value.as_bytes()).err());
        }
        problem = problem.or(request.read_into(&mut parameters).err());

        let examined = match parameters.protocol(MethodSet::ALL) {
            Err(error) => {
                problem = problem.or(Some(error));
                None
            }
            Ok(protocol) => {
                problem = problem.or(protocol.demand(&[]).err());
                match protocol.signature_method {
                    None => None,
                    Some(method) => {
                        let secrets =
                            self.secrets(protocol.consumer_key, protocol.token, lookup, stdin)?;
                        Some(examine(
                            request,
                            &parameters,
                            method,
                            protocol.signature,
                            secrets,
                        ))
                    }
                }
            }
        };
        let secrets = examined.as_ref().map(|examined| &examined.secrets);
        Ok(Explanation {
            mask: Mask::new(self.show_secrets, secrets),
            base_string: request.base_string(&parameters).to_vec(),
            parameters,
            problem,
            signature: examined,
        })
    }

    fn secrets(
        &self,
        consumer_key: Option<&[u8]>,
        token: Option<&[u8]>,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
    ) -> Result<KnownSecrets, ExplainError> {
        let given = [self.consumer_secret.as_ref(), self.token_secret.as_ref()];
        let [consumer_secret, token_secret] = SecretArg::read_all(given, stdin)?;
        let rsa_public_key = self.rsa_public_key.as_ref().map(read_key).transpose()?;
        if consumer_secret.is_none() && token_secret.is_none() && rsa_public_key.is_none() {
            let consumer_key = consumer_key.unwrap_or_default();
            let token = token.filter(|token| !token.is_empty());
            return lookup(consumer_key, token).map_err(|source| ExplainError::Lookup {
                consumer: String::from_utf8_lossy(consumer_key).into_owned(),
                source,
            });
        }
        let none = || Secret::from("");
        Ok(KnownSecrets {
            consumer_secret: consumer_secret.unwrap_or_else(none),
            token_secret: token_secret.unwrap_or_else(none),
            rsa_public_key,
        })
    }
}

fn read_key(path: &PathBuf) -> Result<RsaPublicKey, ExplainError> {
    let pem = std::fs::read_to_string(path).map_err(|source| ExplainError::KeyFile {
        path: path.clone(),
        source,
    })?;
    RsaPublicKey::from_pem(&pem).map_err(|source| ExplainError::Key {
        path: path.clone(),
        source,
    })
}

fn examine(
    request: &Request<'_>,
    parameters: &Parameters,
    method: SignatureMethod,
    sent: Option<&[u8]>,
    secrets: KnownSecrets,
) -> Examined {
    let base = request.base_string(parameters);
    let key = SigningKey::new(&secrets.consumer_secret, &secrets.token_secret);
    let rsa = secrets.rsa_public_key.as_ref();
    let matches = sent.is_some_and(|sent| verify(method, &key, rsa, &base, sent).is_ok());
    let other_body = if request.form().is_none() {
        request.data.unwrap_or_default()
    } else {
        ""
    };
    let diagnosis = sent.filter(|_| !matches).and_then(|sent| {
        diagnose_thoroughly(&Attempt {
            method: request.method.as_bytes(),
            scheme: request.uri.scheme,
            authority: request.uri.authority,
            path: request.uri.path.as_bytes(),
            query: request.uri.query.unwrap_or_default().as_bytes(),
            parameters,
            other_body: other_body.as_bytes(),
            consumer_secret: &secrets.consumer_secret,
            token_secret: &secrets.token_secret,
            rsa,
            signature_method: method,
            signature: sent,
        })
    });
    Examined {
        method,
        sent: sent.map(<[u8]>::to_vec),
        expected: sign(method, &key, &base),
        matches,
        diagnosis,
        secrets,
    }
}

/// The members that `--json` promises.
#[derive(Serialize)]
struct Json {
    /// Every signed pair, decoded, as it came.
    parameters: Vec<[String; 2]>,
    normalized_parameters: String,
    base_string: String,
    /// None without secrets, and for the RSA methods, which only the consumer can make. PLAINTEXT's is the secrets, and
    /// hidden without `--show-secrets`.
    expected_signature: Option<String>,
    matches: bool,
    /// None where there is nothing to mend, or nothing known.
    diagnosis: Option<String>,
}

impl Explanation {
    fn to_json(&self) -> Json {
        let signed = self.parameters.iter().filter(|parameter| {
            *parameter.name != *ProtocolParameter::Signature.as_str().as_bytes()
        });
        let (examined, mask) = (self.signature.as_ref(), &self.mask);
        Json {
            parameters: signed
                .map(|parameter| [mask.text(&parameter.name), mask.text(&parameter.value)])
                .collect(),
            normalized_parameters: mask.text(&self.parameters.normalized(Selection::Rfc5849)),
            base_string: mask.text(&self.base_string),
            expected_signature: examined.and_then(|examined| {
                let expected = examined.expected.as_deref()?;
                Some(mask.expected(examined.method, expected))
            }),
            matches: examined.is_some_and(|examined| examined.matches),
            diagnosis: self.diagnosis(),
        }
    }

    /// What to mend, in one line.
    fn diagnosis(&self) -> Option<String> {
        let mistakes = self
            .signature
            .as_ref()
            .and_then(|examined| examined.diagnosis.as_ref())
            .map(|diagnosis| {
                let mistakes: Vec<String> =
                    diagnosis.mistakes.iter().map(ToString::to_string).collect();
                mistakes.join("; ")
            });
        let problem = self.problem.as_ref().map(ToString::to_string);
        match (problem, mistakes) {
            (Some(problem), Some(mistakes)) => Some(format!("{problem}; {mistakes}")),
            (problem, mistakes) => problem.or(mistakes),
        }
    }
}

fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
