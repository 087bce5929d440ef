//! The signature doctor: how a request has to be signed, and what is wrong with its signature. The command line, the admin
//! API and the console show what [`Reading::explain`] returns.

mod apart;
mod find;
mod mask;
pub mod pasted;
mod request;

use serde::Serialize;

pub use self::{
    apart::{DeveloperCheck, Explained, Explainer, Unexplained},
    find::{FindError, Rules, find},
    mask::Mask,
    request::{InvalidRequest, ParsedRequest, RequestText},
};
use crate::{
    base::{clock::UnixTime, names::Permission, secret::Secret},
    gateway::launch,
    oauth::{
        BaseString, Deviation, DeviationSet, LocationRule, MethodSet, Parameters, Pinned, Protocol,
        ProtocolParameter, RsaPublicKey, Scheme, Selection, ShapeError, SignatureMethod,
        SigningKey,
        diagnosis::{self, Diagnosis, WrongSignature, diagnose_thoroughly},
        has_bare_plus, is_allowed_body_hash, sign, verify,
    },
    records::{
        nonce::NonceUse,
        store::record::{BodyHash, Consumer, Dialect},
    },
    request::verify::{advice, clock},
};

/// The secrets of a consumer and a token, and the consumer's public key.
pub struct KnownSecrets {
    /// The consumer's secret.
    pub consumer_secret: Secret,
    /// The token's; empty without a token.
    pub token_secret: Secret,
    /// The key for the RSA methods.
    pub rsa_public_key: Option<RsaPublicKey>,
    /// The other facts that decide; `None` where neither configuration nor store was read.
    pub server: Option<ServerView>,
}

/// The facts other than secrets for which the server rejects a request.
pub struct ServerView {
    /// The time of the command.
    pub now: UnixTime,
    /// The rules of the server.
    pub rules: Rules,
    /// The consumer.
    pub consumer: Consumer,
    /// Why the consumer or the token is rejected, under a right signature too: the code, and a reason.
    pub state: Option<(&'static str, &'static str)>,
    /// The permissions of the access token; `None` without one.
    pub token_permissions: Option<Vec<Permission>>,
    /// Whether the nonce of the request was used; `None` where that cannot be known.
    pub nonce_used: Option<bool>,
}

impl ServerView {
    /// The operation of a request, and whether consumer and token have its permission, in a sentence; `None` for a token call.
    pub fn permission(&self, request: &ParsedRequest<'_>) -> Option<String> {
        if self.rules.flow.is_token_call(request.uri.path) {
            return None;
        }
        let Some(operation) = self.rules.operation(request) else {
            return Some("No operation lists this path with this method.".to_owned());
        };
        let path = &operation.path;
        let Some(needed) = &operation.permission else {
            return Some(format!("The operation {path} needs no permission."));
        };
        let has = if !self.consumer.permissions.contains(needed) {
            "the consumer does not have it"
        } else if self
            .token_permissions
            .as_ref()
            .is_some_and(|granted| !granted.contains(needed))
        {
            "the consumer has it, and its token does not"
        } else {
            "it is there"
        };
        Some(format!(
            "The operation {path} needs the permission {needed}: {has}."
        ))
    }
}

/// The names in a request by which its secrets are found.
pub struct Asked<'a> {
    /// `oauth_consumer_key`
    pub consumer_key: &'a [u8],
    /// `oauth_token`, not empty.
    pub token: Option<&'a [u8]>,
    /// The nonce, to learn whether it was used.
    pub nonce: Option<NonceUse<'a>>,
}

/// The findings about a request.
pub struct Explanation {
    /// Every parameter, also those that are not signed.
    pub parameters: Parameters,
    /// The base string of RFC 5849, as it is.
    pub base_string: Vec<u8>,
    /// Why the request would be rejected before its signature is checked.
    pub problem: Option<ShapeError>,
    /// The findings about its signature; `None`: it names no known method, or the secrets are not known.
    pub signature: Option<Examined>,
    /// Further reasons why the server rejects it: code and reason.
    pub rejections: Vec<String>,
    /// Whether the nonce was used, if the server was asked: `Some(None)` if it cannot be known here.
    pub nonce_used: Option<Option<bool>>,
    /// The response to a browser if the request is a launch that is rejected; `None`: it is not, or the server was not asked.
    pub launch: Option<String>,
    /// Hides secrets in what is shown.
    pub mask: Mask,
}

/// The findings about its signature.
pub struct Examined {
    /// The method that it names.
    pub method: SignatureMethod,
    /// The secrets that it is compared with.
    pub secrets: KnownSecrets,
    /// The signature that was sent.
    pub sent: Option<Vec<u8>>,
    /// The signature that is expected: it would sign for the consumer.
    pub expected: Option<String>,
    /// Whether the two are the same.
    pub matches: bool,
    /// The server takes the signature: as the expected one, or as another that it allows this consumer.
    pub accepted: bool,
    /// The deviation with which the server would take the signature if it was accepted from the consumer.
    pub needs: Option<Deviation>,
    /// It is made, rightly or wrongly, with the consumer's previous secret, whose grace ends then.
    pub previous_secret_until: Option<UnixTime>,
    /// The mistake that makes a wrong signature, or one that is accepted although its `+` was not escaped.
    pub diagnosis: Option<Diagnosis>,
}

/// A request whose parameters were read.
pub struct Reading<'r, 'a> {
    request: &'r ParsedRequest<'a>,
    parameters: Parameters,
}

impl<'r, 'a> Reading<'r, 'a> {
    /// Reads the parameters.
    pub fn new(request: &'r ParsedRequest<'a>) -> Self {
        let mut parameters = Parameters::new();
        // `Parameters::protocol` returns the error of a `read_` function.
        for value in request.header("Authorization") {
            let _ = parameters.read_header(value.as_bytes());
        }
        let _ = request.read_into(&mut parameters);
        Self {
            request,
            parameters,
        }
    }

    /// The consumer, the token and the nonce that the request names; `None`: it names no known signature method.
    pub fn asked(&self) -> Option<Asked<'_>> {
        let protocol = self
            .parameters
            .protocol(MethodSet::ALL, LocationRule::FlowApart)
            .ok()?;
        protocol.signature_method?;
        Some(Asked {
            consumer_key: protocol
                .value(ProtocolParameter::ConsumerKey)
                .unwrap_or_default(),
            token: protocol
                .value(ProtocolParameter::Token)
                .filter(|token| !token.is_empty()),
            nonce: nonce_use(&protocol),
        })
    }

    /// Explains the request with the secrets of what it asks for, or with the reason why there are none. Takes as long as
    /// several thousand checks of a signature, so it does not belong on a worker.
    pub fn explain(self, known: Result<KnownSecrets, String>, show_secrets: bool) -> Explanation {
        let Self {
            request,
            parameters,
        } = self;
        let server = known.as_ref().ok().and_then(|known| known.server.as_ref());
        let is_api_call =
            server.is_some_and(|server| !server.rules.flow.is_token_call(request.uri.path));
        let placement = match is_api_call {
            true => LocationRule::OneLocation,
            false => LocationRule::FlowApart,
        };
        let protocol = parameters.protocol(MethodSet::ALL, placement);
        let demanded = protocol.as_ref().map(|protocol| protocol.demand(&[]));
        let problem = match demanded {
            Ok(demanded) => demanded.err(),
            Err(error) => Some(error.clone()),
        };
        let named = protocol.ok();
        let named = named.and_then(|protocol| Some((protocol.signature_method?, protocol)));
        let operation = server.and_then(|server| server.rules.operation(request));
        let sites = operation.and_then(|operation| operation.launch.as_ref());
        let sites = sites.filter(|_| request.method == "POST" && request.form().is_some());
        let launch = sites.map(|sites| launch::described(&parameters, sites));
        let (mut signature, mut rejections, mut nonce_used) = (None, Vec::new(), None);
        match (named, known) {
            (Some((method, protocol)), Ok(secrets)) => {
                let server = secrets.server.as_ref();
                let server_knows = server.map(|server| server.nonce_used);
                nonce_used = server_knows.filter(|_| nonce_use(&protocol).is_some());
                rejections = rejected(request, &parameters, &protocol, method, server);
                let sent = protocol.value(ProtocolParameter::Signature);
                signature = Some(examine(request, &parameters, method, sent, secrets));
            }
            (Some(_), Err(reason)) => rejections.push(reason),
            (None, _) => {}
        }
        let secrets = signature.as_ref().map(|examined| &examined.secrets);
        Explanation {
            mask: Mask::new(show_secrets, secrets),
            base_string: request.base_string(&parameters).to_vec(),
            parameters,
            problem,
            signature,
            rejections,
            nonce_used,
            launch,
        }
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

/// Returns all reasons why the server rejects the request even if its signature is right; the server names the first that it
/// finds.
fn rejected(
    request: &ParsedRequest<'_>,
    parameters: &Parameters,
    protocol: &Protocol<'_>,
    method: SignatureMethod,
    server: Option<&ServerView>,
) -> Vec<String> {
    let mut rejections = Vec::new();
    let mut reject = |code: &str, reason: &str| rejections.push(format!("{code}: {reason}"));
    let operation = server.and_then(|server| server.rules.operation(request));
    if let Some(server) = server {
        let is_token_call = server.rules.flow.is_token_call(request.uri.path);
        let by_consumer = server.consumer.body_hash == Some(BodyHash::Required) && !is_token_call;
        let is_needed = by_consumer || operation.is_some_and(|it| it.needs_body_hash);
        let has_other_body = request.data.is_some() && request.form().is_none();
        if is_needed && has_other_body && !parameters.was_sent(ProtocolParameter::BodyHash) {
            let reason = "oauth_body_hash is needed, because the body is not a form";
            reject("parameter_absent", reason);
        }
        if !server.rules.verify.signature.methods.contains(method) {
            let reason = format!("signature.methods has no {method}");
            reject("signature_method_rejected", &reason);
        } else if method == SignatureMethod::Plaintext && request.uri.scheme == Scheme::Http {
            reject("signature_method_rejected", "PLAINTEXT is for https only");
        }
        let (consumer, uri) = (&server.consumer, &request.uri);
        let accepts = consumer.accept.contains(&Deviation::CallbackAbsent);
        if protocol.value(ProtocolParameter::Callback).is_none()
            && server.rules.flow.is_request_token_call(uri.path, uri.query)
            && !(accepts && consumer.callbacks.len() == 1)
        {
            let reason = "oauth_callback is missing; the only registered one stands in for a consumer with --accept callback_absent";
            reject("parameter_absent", reason);
        }
        if server.consumer.rsa_only && !method.is_rsa() {
            reject("signature_invalid", &advice::rsa_only());
        }
        let (sent, now) = (protocol.timestamp.map(|time| time.seconds()), server.now);
        let window = operation.and_then(|operation| operation.timestamp_window);
        let window = window.unwrap_or(server.rules.verify.signature.timestamp_window);
        let accepted = now.before(window).0..=now.after(window).0;
        if let Some(sent) = sent.filter(|sent| !accepted.contains(sent)) {
            let advice = clock::advice(sent, now.0, window);
            reject("timestamp_refused", &advice);
        }
    }
    let body = request.data.unwrap_or_default().as_bytes();
    let hash = protocol.value(ProtocolParameter::BodyHash);
    let accepted = server.map_or(MethodSet::ALL, |server| {
        server.rules.verify.signature.methods
    });
    if hash.is_some_and(|sent| !is_allowed_body_hash(method, accepted, sent, body)) {
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
    let pinned = server.filter(|server| !server.rules.flow.is_token_call(request.uri.path));
    let pinned = pinned.map_or(&[][..], |server| &server.consumer.pinned);
    let values =
        |name: &[u8]| parameters.signed_values(Selection::Rfc5849, DeviationSet::NONE, name);
    if let Some(wrong) = Pinned::not_held(pinned, values) {
        let reason = format!(
            "{} does not have the value that is pinned",
            wrong.written_name()
        );
        reject("consumer_key_refused", &reason);
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
    let is_made_with = |key: &SigningKey, selection, accept| {
        let text = |deviations| BaseString {
            selection,
            deviations,
            ..request.base_string(parameters)
        };
        let texts = parameters.deviations_in_text(accept).subsets();
        let mut texts = texts.map(text);
        sent.is_some_and(|sent| texts.any(|base| verify(method, key, rsa, &base, sent).is_ok()))
    };
    let key = SigningKey::new(consumer_secret, token_secret);
    let matches = is_made_with(&key, Selection::Rfc5849, DeviationSet::NONE);
    let previous = server.and_then(|server| {
        let (secret, until) = server.consumer.previous_secret.as_ref()?;
        Some((secret, *until, server.now < *until))
    });
    let graced = previous.filter(|(.., lasts)| *lasts);
    // Also under the previous secret, while its grace lasts, where the service's description is followed, and with the
    // deviations that the consumer is allowed.
    let is_accepted = |secret: Option<&Secret>, accept: DeviationSet| {
        server.is_some_and(|server| {
            let (rules, consumer) = (&server.rules, &server.consumer);
            let is_token_call = rules.flow.is_token_call(request.uri.path);
            let accept = match is_token_call && parameters.has_equal_copies() {
                true => accept.with(Deviation::RepeatsOnce),
                false => accept,
            };
            let is_token_call = is_token_call && rules.verify.signature.accept_description;
            let is_legacy = consumer
                .dialect
                .unwrap_or(rules.verify.signature.default_dialect)
                == Dialect::Legacy;
            secret.is_some_and(|secret| {
                let is_bare = is_token_call || accept.contains(Deviation::KeyWithoutAmpersand);
                let alone = is_bare && token_secret.is_empty();
                let alone = alone.then(|| SigningKey::consumer_secret_alone(secret));
                let joined = SigningKey::new(secret, token_secret);
                [Some(joined), alone].iter().flatten().any(|key| {
                    let is_made_with = |selection| is_made_with(key, selection, accept);
                    is_made_with(Selection::Rfc5849)
                        || (is_token_call || is_legacy) && is_made_with(Selection::Description)
                })
            })
        })
    };
    let accept = server.map(|server| server.consumer.accept.iter().copied());
    let accept: DeviationSet = accept.into_iter().flatten().collect();
    let (current, earlier) = (Some(consumer_secret), graced.map(|(secret, ..)| secret));
    let by_current = matches || is_accepted(current, accept);
    let by_earlier = !by_current && is_accepted(earlier, accept);
    let accepted = by_current || by_earlier;
    let mut others = Deviation::ALL.iter().copied();
    let needs = others.find(|other| {
        let accept = accept.with(*other);
        !accepted && (is_accepted(current, accept) || is_accepted(earlier, accept))
    });
    let diagnose = |sent: &[u8], consumer_secret: &Secret| {
        let uri = &request.uri;
        let other_body = request.data.filter(|_| request.form().is_none());
        diagnose_thoroughly(&WrongSignature {
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
            // One whose grace lasts is no mistake.
            previous_secret: previous
                .filter(|(.., lasts)| !lasts)
                .map(|(secret, ..)| secret.clone()),
            token_secret: token_secret.clone(),
            rsa: rsa.cloned(),
            other_urls: server
                .map_or_else(Vec::new, |server| server.rules.verify.other_urls.clone()),
            token_paths: server.map_or_else(Vec::new, |server| {
                server.rules.verify.token_paths_for(uri.path.as_bytes())
            }),
            callbacks: server.map_or_else(Vec::new, |server| server.consumer.callbacks.clone()),
            signature_method: method,
            signature: sent.to_vec(),
        })
    };
    let diagnosed = sent.filter(|sent| !by_earlier && (!matches || has_bare_plus(method, sent)));
    let diagnosis = diagnosed.and_then(|sent| diagnose(sent, consumer_secret));
    let is_wrong = !accepted && diagnosis.is_none();
    let of_earlier = || {
        let sent = sent.filter(|_| is_wrong)?;
        diagnose(sent, earlier?)
    };
    let of_earlier = of_earlier();
    let is_earlier = by_earlier || of_earlier.is_some();
    Examined {
        method,
        previous_secret_until: graced.map(|(_, until, _)| until).filter(|_| is_earlier),
        sent: sent.map(<[u8]>::to_vec),
        expected: sign(method, &key, &request.base_string(parameters)),
        matches,
        accepted,
        needs,
        diagnosis: diagnosis.or(of_earlier),
        secrets,
    }
}

/// An explanation as a front shows it. The expected signature is not in it.
#[derive(Debug, Serialize)]
pub struct ExplanationView {
    /// Every signed pair, decoded, in the order of the request.
    pub parameters: Vec<[String; 2]>,
    /// The normalized parameters (RFC 5849 §3.4.1.3.2).
    pub normalized_parameters: String,
    /// The signature base string (RFC 5849 §3.4.1).
    pub base_string: String,
    /// Whether the signature is the expected one.
    pub matches: bool,
    /// The mistake; null where nothing is wrong, or nothing is known.
    pub diagnosis: Option<String>,
    /// The deviation from RFC 5849 with which the signature would be accepted, if the consumer was allowed it.
    pub needs: Option<Deviation>,
    /// The response to a browser if this launch is rejected; null where the request is not a launch.
    pub launch: Option<String>,
    /// The end of the grace of the consumer's previous secret, if the request is signed with that one.
    pub previous_secret_until: Option<UnixTime>,
}

impl Explanation {
    /// Whether the server accepts the request, as far as that is known here.
    pub fn is_accepted(&self) -> bool {
        let signature = self.signature.as_ref();
        self.problem.is_none()
            && self.rejections.is_empty()
            && signature.is_some_and(|examined| examined.accepted)
    }

    /// The base string that the consumer has signed, where a known mistake makes it another one than the right one.
    pub fn consumer_base_string(&self) -> Option<String> {
        let examined = self
            .signature
            .as_ref()
            .filter(|examined| !examined.accepted);
        let signed = &examined?.diagnosis.as_ref()?.base_string;
        (*signed != self.base_string).then(|| self.mask.base_string(signed))
    }

    /// The part that a front shows, without secrets.
    pub fn view(&self) -> ExplanationView {
        let mask = &self.mask;
        let is_signed = |name: &[u8]| name != ProtocolParameter::Signature.as_str().as_bytes();
        let signed = self.parameters.iter();
        let signed = signed.filter(|parameter| is_signed(parameter.name));
        let pairs = signed.map(|parameter| {
            let value = mask.value(parameter.name, parameter.value);
            [readable(parameter.name), value]
        });
        let examined = self.signature.as_ref();
        let diagnosis = examined.and_then(|examined| examined.diagnosis.as_ref());
        let mistakes = diagnosis.map_or(&[][..], |diagnosis| &diagnosis.mistakes);
        let problem = self.problem.iter().map(ToString::to_string);
        let wrong: Vec<String> = problem
            .chain(self.rejections.iter().cloned())
            .chain(mistakes.iter().map(ToString::to_string))
            .collect();
        let normalized = self.parameters.normalized(Selection::Rfc5849);
        ExplanationView {
            parameters: pairs.collect(),
            normalized_parameters: mask.normalized(&normalized),
            base_string: mask.base_string(&self.base_string),
            matches: examined.is_some_and(|examined| examined.matches),
            diagnosis: (!wrong.is_empty()).then(|| wrong.join("; ")),
            needs: self.signature.as_ref().and_then(|examined| examined.needs),
            launch: self.launch.clone(),
            previous_secret_until: examined.and_then(|examined| examined.previous_secret_until),
        }
    }
}

/// Bytes as text.
pub fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
