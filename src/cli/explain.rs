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
use crate::{
    nonce::NonceUse,
    oauth::{
        BaseString, MethodSet, Parameters, Protocol, ProtocolParameter, RsaPublicKey, Scheme,
        Selection, ShapeError, SignatureMethod, SigningKey,
        diagnosis::{self, Attempt, Diagnosis, diagnose_thoroughly},
        is_body_hash, sign, verify,
    },
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
        let text = match self.json {
            true => output::json_line(&explanation.members()),
            false => text::written(&explanation),
        };
        let code = u8::from(!explanation.is_accepted());
        Ok(Output {
            code,
            ..text.into()
        })
    }

    fn explain(
        &self,
        request: &ParsedRequest<'_>,
        lookup: &mut Lookup<'_>,
        stdin: &mut dyn Read,
    ) -> Result<Explanation, CommandError> {
        let mut parameters = Parameters::new();
        // `Parameters::protocol` returns the error of a `read_` function.
        for value in request.header("Authorization") {
            let _ = parameters.read_header(value.as_bytes());
        }
        let _ = request.read_into(&mut parameters);
        let protocol = parameters.protocol(MethodSet::ALL);
        let demanded = protocol.as_ref().map(|protocol| protocol.demand(&[]));
        let problem = match demanded {
            Ok(demanded) => demanded.err(),
            Err(error) => Some(error.clone()),
        };
        let named = protocol.ok();
        let named = named.and_then(|protocol| Some((protocol.signature_method?, protocol)));
        let (mut signature, mut rejections, mut nonce_used) = (None, Vec::new(), None);
        if let Some((method, protocol)) = named {
            let path = self.rsa_public_key.as_deref();
            let rsa = read_rsa_public_key(path, RsaPublicKey::from_pem)?;
            let asked = Asked {
                consumer_key: protocol
                    .value(ProtocolParameter::ConsumerKey)
                    .unwrap_or_default(),
                token: protocol
                    .value(ProtocolParameter::Token)
                    .filter(|token| !token.is_empty()),
                nonce: nonce_use(&protocol),
            };
            let secrets = self.secrets.read(&asked, rsa, lookup, stdin)?;
            let server = secrets.server.as_ref();
            let server_knows = server.map(|server| server.nonce_used);
            nonce_used = server_knows.filter(|_| asked.nonce.is_some());
            rejections = rejected(request, &protocol, method, server);
            let sent = protocol.value(ProtocolParameter::Signature);
            signature = Some(examine(request, &parameters, method, sent, secrets));
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
        consumer: protocol.value(ProtocolParameter::ConsumerKey)?,
        token: protocol.value(ProtocolParameter::Token).unwrap_or_default(),
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
    let mut reject = |code: &str, reason: &str| rejections.push(format!("{code}: {reason}"));
    if let Some(server) = server {
        if !server.rules.methods.contains(method) {
            let reason = format!("signature.methods has no {method}");
            reject("signature_method_rejected", &reason);
        } else if method == SignatureMethod::Plaintext && request.uri.scheme == Scheme::Http {
            reject("signature_method_rejected", "PLAINTEXT is for https only");
        }
        if server.consumer.rsa_only && !method.is_rsa() {
            reject("signature_invalid", advice::RSA_ONLY);
        }
        let (sent, now) = (protocol.timestamp.map(|time| time.seconds()), server.now);
        let accepted = now.before(server.window).0..=now.after(server.window).0;
        if let Some(sent) = sent.filter(|sent| !accepted.contains(sent)) {
            let advice = clock::advice(sent, now.0, server.window);
            reject("timestamp_refused", &advice);
        }
    }
    let body = request.data.unwrap_or_default().as_bytes();
    let hash = protocol.value(ProtocolParameter::BodyHash);
    if hash.is_some_and(|sent| !is_body_hash(method, sent, body)) {
        let reason = "oauth_body_hash is not the hash of the body";
        reject("signature_invalid", reason);
    }
    if server.is_some_and(|server| server.nonce_used == Some(true)) {
        let reason = "a request with this nonce was accepted before; each needs a new one";
        reject("nonce_used", reason);
    }
    if let Some((code, reason)) = server.and_then(|server| server.state) {
        reject(code, reason);
    }
    rejections
}

/// Compares the signature with what the server accepts, and looks for the mistake in a wrong one.
fn examine(
    request: &ParsedRequest<'_>,
    parameters: &Parameters,
    method: SignatureMethod,
    sent: Option<&[u8]>,
    secrets: KnownSecrets,
) -> Examined {
    let (consumer_secret, token_secret) = (&secrets.consumer_secret, &secrets.token_secret);
    let (rsa, server) = (secrets.rsa_public_key.as_ref(), secrets.server.as_ref());
    let is_made_with = |key: &SigningKey, selection| {
        let base = BaseString {
            selection,
            ..request.base_string(parameters)
        };
        sent.is_some_and(|sent| verify(method, key, rsa, &base, sent).is_ok())
    };
    let key = SigningKey::new(consumer_secret, token_secret);
    let matches = is_made_with(&key, Selection::Rfc5849);
    let previous = server.and_then(|server| server.consumer.previous_secret.as_ref());
    // Also under the secret before, while its grace lasts, and where the service's description is followed.
    let accepted = matches
        || server.is_some_and(|server| {
            let (rules, consumer) = (&server.rules, &server.consumer);
            let mut paths = server.token_calls.iter();
            let is_token_call =
                rules.accept_description && paths.any(|path| path == request.uri.path);
            let is_legacy = consumer.dialect.unwrap_or(rules.default_dialect) == Dialect::Legacy;
            let graced = previous.filter(|(_, until)| server.now < *until);
            let secrets = [Some(consumer_secret), graced.map(|(secret, _)| secret)];
            secrets.into_iter().flatten().any(|secret| {
                let alone = is_token_call && token_secret.is_empty();
                let alone = alone.then(|| SigningKey::consumer_secret_alone(secret));
                let joined = SigningKey::new(secret, token_secret);
                [Some(joined), alone].iter().flatten().any(|key| {
                    is_made_with(key, Selection::Rfc5849)
                        || (is_token_call || is_legacy) && is_made_with(key, Selection::Description)
                })
            })
        });
    let diagnose = |sent: &[u8]| {
        let uri = &request.uri;
        let other_body = request.data.filter(|_| request.form().is_none());
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
            other_body: other_body.unwrap_or_default().into(),
            consumer_secret: consumer_secret.clone(),
            previous_secret: previous.map(|(secret, _)| secret.clone()),
            token_secret: token_secret.clone(),
            rsa: rsa.cloned(),
            other_urls: server.map_or_else(Vec::new, |server| server.rules.other_urls.clone()),
            callbacks: server.map_or_else(Vec::new, |server| server.consumer.callbacks.clone()),
            signature_method: method,
            signature: sent.to_vec(),
        })
    };
    Examined {
        method,
        sent: sent.map(<[u8]>::to_vec),
        expected: sign(method, &key, &request.base_string(parameters)),
        matches,
        accepted,
        diagnosis: sent.filter(|_| !matches).and_then(diagnose),
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
        let (examined, mask) = (self.signature.as_ref(), &self.mask);
        let is_signed = |name: &[u8]| name != ProtocolParameter::Signature.as_str().as_bytes();
        let signed = self.parameters.iter();
        let signed = signed.filter(|parameter| is_signed(parameter.name));
        // Every signed pair, decoded, as it came.
        let pairs = signed.map(|parameter| {
            let value = mask.value(parameter.name, parameter.value);
            [readable(parameter.name), value]
        });
        // Null without secrets, and for the RSA methods, which only the consumer can make.
        let expected = examined.and_then(|examined| {
            let expected = examined.expected.as_deref()?;
            Some(mask.expected(examined.method, expected))
        });
        let diagnosis = examined.and_then(|examined| examined.diagnosis.as_ref());
        let mistakes = diagnosis.map_or(&[][..], |diagnosis| &diagnosis.mistakes);
        let problem = self.problem.iter().map(ToString::to_string);
        let wrong: Vec<String> = problem
            .chain(self.rejections.iter().cloned())
            .chain(mistakes.iter().map(ToString::to_string))
            .collect();
        let normalized = self.parameters.normalized(Selection::Rfc5849);
        json!({
            "parameters": Vec::from_iter(pairs),
            "normalized_parameters": mask.normalized(&normalized),
            "base_string": mask.base_string(&self.base_string),
            "expected_signature": expected,
            "matches": examined.is_some_and(|examined| examined.matches),
            // Null where nothing is wrong, or nothing is known.
            "diagnosis": (!wrong.is_empty()).then(|| wrong.join("; ")),
        })
    }
}

fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
