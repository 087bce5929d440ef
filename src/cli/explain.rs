//! `countersign explain`: the signature doctor.

mod mask;
mod text;

use std::{io::Read, path::PathBuf};

use clap::Args;
use serde::Serialize;

use self::mask::Mask;
use super::{
    context::{CommandError, Output},
    request::{Request, RequestArgs},
    secrets::{KnownSecrets, Lookup, SecretArgs, option, read_pem},
};
use crate::oauth::{
    MethodSet, Parameters, ProtocolParameter, RsaPublicKey, Selection, ShapeError, SignatureMethod,
    SigningKey,
    diagnosis::{Attempt, Diagnosis, diagnose_thoroughly},
    sign, verify,
};

/// Shows how a request has to be signed, and what is wrong with its signature
#[derive(Debug, Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    request: RequestArgs,

    #[command(flatten)]
    secrets: SecretArgs,

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

/// What is known about a request.
struct Explanation {
    parameters: Parameters,
    base_string: Vec<u8>,
    /// Why the request would be rejected before its signature is checked.
    problem: Option<ShapeError>,
    signature: Option<Examined>,
    mask: Mask,
}

/// What is known about its signature.
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
    /// A wrong signature is what this command explains, and no failure of it.
    ///
    /// # Errors
    /// [`CommandError`]
    pub fn run(
        &self,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
    ) -> Result<Output, CommandError> {
        let request = self.request.request()?;
        let explanation = self.explain(&request, lookup, stdin)?;
        Ok(Output::from(match self.json {
            // Strings under fixed names: all of them can be written.
            true => serde_json::to_string(&explanation.to_json()).unwrap_or_default() + "\n",
            false => text::written(&explanation),
        }))
    }

    fn explain(
        &self,
        request: &Request<'_>,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
    ) -> Result<Explanation, CommandError> {
        let mut parameters = Parameters::new();
        let mut problem = None;
        for value in request.header("Authorization") {
            problem = problem.or(parameters.read_header(value.as_bytes()).err());
        }
        problem = problem.or(request.read_into(&mut parameters).err());

        let mut signature = None;
        match parameters.protocol(MethodSet::ALL) {
            Err(error) => problem = problem.or(Some(error)),
            Ok(protocol) => {
                problem = problem.or(protocol.demand(&[]).err());
                if let Some(method) = protocol.signature_method {
                    let consumer_key = protocol.consumer_key.unwrap_or_default();
                    let rsa = self.rsa_public_key()?;
                    let secrets =
                        self.secrets
                            .read(consumer_key, protocol.token, rsa, lookup, stdin)?;
                    let sent = protocol.signature;
                    signature = Some(examine(request, &parameters, method, sent, secrets));
                }
            }
        }
        let secrets = signature.as_ref().map(|examined| &examined.secrets);
        Ok(Explanation {
            mask: Mask::new(self.show_secrets, secrets),
            base_string: request.base_string(&parameters).to_vec(),
            parameters,
            problem,
            signature,
        })
    }

    fn rsa_public_key(&self) -> Result<Option<RsaPublicKey>, CommandError> {
        let Some(path) = &self.rsa_public_key else {
            return Ok(None);
        };
        match RsaPublicKey::from_pem(&read_pem(path)?) {
            Ok(key) => Ok(Some(key)),
            Err(error) => Err(CommandError::from(error).about(option(path))),
        }
    }
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
            prefix: "",
            other_urls: &[],
            callbacks: &[],
            previous_secret: None,
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
    /// None where nothing is wrong, or nothing is known.
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

    /// What to fix, in one line.
    fn diagnosis(&self) -> Option<String> {
        let examined = self.signature.as_ref();
        let diagnosis = examined.and_then(|examined| examined.diagnosis.as_ref());
        let mistakes = diagnosis
            .into_iter()
            .flat_map(|diagnosis| &diagnosis.mistakes);
        let problem = self.problem.iter().map(ToString::to_string);
        let all: Vec<String> = problem.chain(mistakes.map(ToString::to_string)).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
