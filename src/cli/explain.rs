//! `countersign explain`: the signature doctor.

mod mask;
mod text;

use std::{io::Read, path::PathBuf};

use clap::Args;
use serde_json::{Value, json};

use self::mask::Mask;
use super::{
    context::{CommandError, Output},
    output, pasted,
    request::{ParsedRequest, RequestArgs},
    secrets::{Asked, KnownSecrets, Lookup, SecretArgs, ServerView, read_rsa_public_key},
};
use crate::oauth::{
    BaseString, MethodSet, Parameters, Protocol, ProtocolParameter, RsaPublicKey, Scheme,
    Selection, ShapeError, SignatureMethod, SigningKey,
    diagnosis::{self, Attempt, Diagnosis, diagnose_thoroughly},
    is_body_hash, sign, verify,
};
use crate::{
    nonce::NonceUse,
    store::record::Dialect,
    verify::{advice, clock},
};

/// Shows how a request has to be signed, and what is wrong with its signature
#[derive(Debug, Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    request: RequestArgs,

    /// File with the whole request in place of METHOD and URL, or - for standard input: HTTP as it goes over the wire, or a
    /// curl command line
    #[arg(long = "request", value_name = "FILE", conflicts_with_all = ["method", "url", "data", "headers"])]
    pasted: Option<PathBuf>,

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

/// The findings about a request.
struct Explanation {
    parameters: Parameters,
    base_string: Vec<u8>,
    /// Why the request would be rejected before its signature is checked.
    problem: Option<ShapeError>,
    signature: Option<Examined>,
    /// Further reasons why the server rejects it: code and reason.
    rejections: Vec<String>,
    /// Whether the nonce was used, if the server was asked: `Some(None)` if it cannot be known here.
    nonce_used: Option<Option<bool>>,
    mask: Mask,
}

/// The findings about its signature.
struct Examined {
    method: SignatureMethod,
    secrets: KnownSecrets,
    sent: Option<Vec<u8>>,
    expected: Option<String>,
    matches: bool,
    /// The server takes the signature: as the expected one, or as another that it allows this consumer.
    accepted: bool,
    diagnosis: Option<Diagnosis>,
}

impl ExplainArgs {
    /// Explains the request. `lookup` is asked for the secrets if the command line has none.
    ///
    /// The exit code is 1 if the server would reject the request. Time, nonce, accepted methods and the states of consumer
    /// and token count only where the secrets come from the store.
    pub fn run(
        &self,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
    ) -> Result<Output, CommandError> {
        let pasted = self.pasted.as_deref();
        let pasted = pasted.map(|path| pasted::read(path, stdin)).transpose()?;
        let request = pasted.as_ref().unwrap_or(&self.request).request()?;
        let explanation = self.explain(&request, lookup, stdin)?;
        let mut output = Output::from(match self.json {
            true => output::json_line(&explanation.members()),
            false => text::written(&explanation),
        });
        output.code = u8::from(!explanation.is_accepted());
        Ok(output)
    }

    fn explain(
        &self,
        request: &ParsedRequest<'_>,
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
        let mut rejections = Vec::new();
        let mut nonce_used = None;
        match parameters.protocol(MethodSet::ALL) {
            Err(error) => problem = problem.or(Some(error)),
            Ok(protocol) => {
                problem = problem.or(protocol.demand(&[]).err());
                if let Some(method) = protocol.signature_method {
                    let consumer_key = protocol.consumer_key.unwrap_or_default();
                    let path = self.rsa_public_key.as_deref();
                    let rsa = read_rsa_public_key(path, RsaPublicKey::from_pem)?;
                    let asked = Asked {
                        consumer_key,
                        token: protocol.token.filter(|token| !token.is_empty()),
                        nonce: nonce_use(&protocol),
                    };
                    let secrets = self.secrets.read(&asked, rsa, lookup, stdin)?;
                    let server = secrets.server.as_ref();
                    let server_knows = server.map(|server| server.nonce_used);
                    nonce_used = server_knows.filter(|_| asked.nonce.is_some());
                    rejections = rejected(request, &protocol, method, server);
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
            rejections,
            nonce_used,
        })
    }
}

/// The nonce of a request as the nonce window knows it.
fn nonce_use<'a>(protocol: &Protocol<'a>) -> Option<NonceUse<'a>> {
    Some(NonceUse {
        timestamp: protocol.timestamp.as_ref()?.seconds(),
        consumer: protocol.consumer_key?,
        token: protocol.token.unwrap_or_default(),
        nonce: protocol.nonce?.as_bytes(),
    })
}

/// Returns why the server rejects the request even if its signature is right, in the order of the server's checks.
fn rejected(
    request: &ParsedRequest<'_>,
    protocol: &Protocol<'_>,
    method: SignatureMethod,
    server: Option<&ServerView>,
) -> Vec<String> {
    let mut rejections = Vec::new();
    if let Some(server) = server {
        if !server.methods.contains(method) {
            rejections.push(format!(
                "signature_method_rejected: signature.methods has no {method}"
            ));
        } else if method == SignatureMethod::Plaintext && request.uri.scheme == Scheme::Http {
            rejections.push("signature_method_rejected: PLAINTEXT is for https only".to_owned());
        }
        if server.rsa_only && !method.is_rsa() {
            rejections.push(format!("signature_invalid: {}", advice::RSA_ONLY));
        }
        let (sent, now) = (protocol.timestamp.map(|time| time.seconds()), server.now);
        let accepted = now.before(server.window).0..=now.after(server.window).0;
        if let Some(sent) = sent.filter(|sent| !accepted.contains(sent)) {
            let advice = clock::advice(sent, now.0, server.window);
            rejections.push(format!("timestamp_refused: {advice}"));
        }
    }
    if let Some(sent) = protocol.body_hash {
        let body = request.data.unwrap_or_default().as_bytes();
        if !is_body_hash(method, sent, body) {
            rejections
                .push("signature_invalid: oauth_body_hash is not the hash of the body".to_owned());
        }
    }
    if server.is_some_and(|server| server.nonce_used == Some(true)) {
        let reason = "a request with this nonce was accepted before; each needs a new one";
        rejections.push(format!("nonce_used: {reason}"));
    }
    let state = server.and_then(|server| server.state);
    rejections.extend(state.map(|(code, reason)| format!("{code}: {reason}")));
    rejections
}

/// Whether the server takes the signature in another way than the expected one: under the secret before, while its grace
/// lasts, and where it takes what the service's description says.
fn is_taken_otherwise(
    request: &ParsedRequest<'_>,
    parameters: &Parameters,
    method: SignatureMethod,
    sent: &[u8],
    secrets: &KnownSecrets,
    server: &ServerView,
) -> bool {
    let is_token_call = server.described.iter().any(|path| path == request.uri.path);
    let described = is_token_call || server.dialect == Dialect::Legacy;
    let selections = [
        Some(Selection::Rfc5849),
        described.then_some(Selection::Description),
    ];
    let previous = server.previous_secret.as_ref();
    let previous = previous
        .filter(|(_, until)| server.now < *until)
        .map(|(secret, _)| secret);
    let token_secret = &secrets.token_secret;
    [Some(&secrets.consumer_secret), previous]
        .into_iter()
        .flatten()
        .any(|secret| {
            let joined = SigningKey::new(secret, token_secret);
            let alone = is_token_call && token_secret.expose().is_empty();
            let alone = alone.then(|| SigningKey::consumer_secret_alone(secret));
            [Some(joined), alone].iter().flatten().any(|key| {
                selections.into_iter().flatten().any(|selection| {
                    let base = BaseString {
                        selection,
                        ..request.base_string(parameters)
                    };
                    verify(method, key, secrets.rsa_public_key.as_ref(), &base, sent).is_ok()
                })
            })
        })
}

fn examine(
    request: &ParsedRequest<'_>,
    parameters: &Parameters,
    method: SignatureMethod,
    sent: Option<&[u8]>,
    secrets: KnownSecrets,
) -> Examined {
    let base = request.base_string(parameters);
    let key = SigningKey::new(&secrets.consumer_secret, &secrets.token_secret);
    let rsa = secrets.rsa_public_key.as_ref();
    let matches = sent.is_some_and(|sent| verify(method, &key, rsa, &base, sent).is_ok());
    let server = secrets.server.as_ref();
    let previous = server.and_then(|server| server.previous_secret.as_ref());
    let accepted = matches
        || sent.zip(server).is_some_and(|(sent, server)| {
            is_taken_otherwise(request, parameters, method, sent, &secrets, server)
        });
    let other_body = if request.form().is_none() {
        request.data.unwrap_or_default()
    } else {
        ""
    };
    let diagnosis = sent.filter(|_| !matches).and_then(|sent| {
        let uri = &request.uri;
        diagnose_thoroughly(&Attempt {
            method: request.method.into(),
            scheme: uri.scheme,
            host: uri.authority.host.to_owned(),
            port: uri.authority.port,
            path: uri.path.into(),
            query: uri.query.unwrap_or_default().into(),
            prefix: String::new(),
            parameters: diagnosis::pairs(parameters),
            realm: parameters.realm().map(<[u8]>::to_vec),
            other_body: other_body.into(),
            consumer_secret: secrets.consumer_secret.clone(),
            previous_secret: previous.map(|(secret, _)| secret.clone()),
            token_secret: secrets.token_secret.clone(),
            rsa: rsa.cloned(),
            other_urls: server.map_or_else(Vec::new, |server| server.other_urls.clone()),
            callbacks: server.map_or_else(Vec::new, |server| server.callbacks.clone()),
            signature_method: method,
            signature: sent.to_vec(),
        })
    });
    Examined {
        method,
        sent: sent.map(<[u8]>::to_vec),
        expected: sign(method, &key, &base),
        matches,
        accepted,
        diagnosis,
        secrets,
    }
}

impl Explanation {
    /// Whether the server accepts the request, as far as that is known here.
    fn is_accepted(&self) -> bool {
        let signature = self.signature.as_ref();
        self.problem.is_none()
            && self.rejections.is_empty()
            && signature.is_some_and(|examined| examined.accepted)
    }

    /// The members that `--json` promises.
    fn members(&self) -> Value {
        let signed = self
            .parameters
            .iter()
            .filter(|parameter| parameter.name != ProtocolParameter::Signature.as_str().as_bytes());
        let (examined, mask) = (self.signature.as_ref(), &self.mask);
        // Every signed pair, decoded, as it came.
        let pairs: Vec<[String; 2]> = signed
            .map(|parameter| {
                let value = mask.value(parameter.name, parameter.value);
                [readable(parameter.name), value]
            })
            .collect();
        // Null without secrets, and for the RSA methods, which only the consumer can make. PLAINTEXT's is the secrets,
        // and hidden without `--show-secrets`.
        let expected = examined.and_then(|examined| {
            let expected = examined.expected.as_deref()?;
            Some(mask.expected(examined.method, expected))
        });
        let normalized = self.parameters.normalized(Selection::Rfc5849);
        json!({
            "parameters": pairs,
            "normalized_parameters": mask.normalized(&normalized),
            "base_string": mask.base_string(&self.base_string),
            "expected_signature": expected,
            "matches": examined.is_some_and(|examined| examined.matches),
            // Null where nothing is wrong, or nothing is known.
            "diagnosis": self.diagnosis(),
        })
    }

    /// The things to fix, in one line.
    fn diagnosis(&self) -> Option<String> {
        let examined = self.signature.as_ref();
        let diagnosis = examined.and_then(|examined| examined.diagnosis.as_ref());
        let mistakes = diagnosis
            .into_iter()
            .flat_map(|diagnosis| &diagnosis.mistakes);
        let problem = self.problem.iter().map(ToString::to_string);
        let rejections = self.rejections.iter().cloned();
        let mistakes = mistakes.map(ToString::to_string);
        let all: Vec<String> = problem.chain(rejections).chain(mistakes).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
