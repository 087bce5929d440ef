//! The signature doctor: how a request has to be signed, and what is wrong with its signature. The command line, the admin
//! API and the console show what [`Reading::explain`] returns.

mod apart;
mod examine;
mod find;
mod forwarded;
mod mask;
pub mod pasted;
mod request;
mod withheld;

use serde::Serialize;

pub use self::{
    apart::{DeveloperCheck, Explained, Explainer},
    examine::Examined,
    find::{FindError, Rules, find},
    mask::Mask,
    request::{InvalidRequest, ParsedRequest, RequestText},
};
use self::{
    examine::{Named, examine},
    forwarded::forwarded,
};
use crate::{
    base::{clock::UnixTime, secret::Secret},
    gateway::launch,
    oauth::{
        Deviation, LocationRule, MethodSet, Parameters, Protocol, ProtocolParameter, RsaPublicKey,
        Selection, ShapeError,
    },
    provider::{
        endpoints::request_token::only_callback,
        issue::{IssueRejection, callback},
    },
    records::{
        credentials::ConsumerCredentials,
        nonce::NonceUse,
        values::record::{AccessToken, Consumer, RequestToken},
    },
    request::{
        policy::{access::CallerKind, body_hash, operations::may_be_read_as},
        verify::{Purpose, VerifyRejection, advice},
    },
};

/// The secrets of a consumer and a token, and the consumer's public key.
#[derive(Clone)]
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
#[derive(Clone)]
pub struct ServerView {
    /// The time of the command.
    pub now: UnixTime,
    /// The rules of the server.
    pub rules: Rules,
    /// The consumer.
    pub consumer: Consumer,
    /// The token that the request names, of either kind.
    pub token: Option<TokenRecord>,
    /// The token is one that the consumer does not have.
    pub is_token_unknown: bool,
    /// The key of the consumer is the id of a user.
    pub is_key_of_user: bool,
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
        let path = &operation.rules.path;
        let (kind, with) = match self.token.is_some() || self.is_token_unknown {
            true => (CallerKind::Consumer, "with the token of a user"),
            false => (CallerKind::Application, "without the token of a user"),
        };
        if !operation.access.admits(kind) {
            return Some(format!(
                "The operation {path} is not open to calls {with}: this call is rejected."
            ));
        }
        let Some(needed) = &operation.rules.permission else {
            return Some(format!("The operation {path} needs no permission."));
        };
        let has = if !self.consumer.permissions.contains(needed) {
            "the consumer does not have it"
        } else if let Some(TokenRecord::Access(token)) = &self.token
            && !token.permissions.contains(needed)
        {
            "the consumer has it, and its token does not"
        } else {
            "nothing is missing"
        };
        Some(format!(
            "The operation {path} needs the permission {needed}: {has}."
        ))
    }
}

/// A token of a consumer, as the store has it.
#[derive(Clone)]
pub enum TokenRecord {
    /// An access token.
    Access(AccessToken),
    /// A request token.
    Request(RequestToken),
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
    /// All reasons for which the request would be rejected before its signature is checked.
    pub problems: Vec<ShapeError>,
    /// The findings about its signature; `None`: it names no known method, or the secrets are not known.
    pub signature: Option<Examined>,
    /// Further reasons why the server rejects it: code and reason.
    pub rejections: Vec<String>,
    /// Whether the nonce was used, if the server was asked: `Some(None)` if it cannot be known here.
    pub nonce_used: Option<Option<bool>>,
    /// The response to a browser if the request is a launch that is rejected; `None`: it is not, or the server was not asked.
    pub launch: Option<String>,
    /// The header fields that the API gets if the call is accepted, and whether it gets the credentials, as its operation says.
    pub forwarded: Vec<String>,
    /// Hides secrets in what is shown.
    pub mask: Mask,
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

    /// The purpose of the call by the rules of the server.
    fn purpose(&self, rules: &Rules) -> Purpose {
        rules.purpose(self.request, &self.parameters)
    }

    /// Explains the request with the secrets of what it asks for, or with the reason why there are none. Takes as long as
    /// several thousand checks of a signature, so it does not belong on a worker.
    pub fn explain(self, known: Result<KnownSecrets, String>, show_secrets: bool) -> Explanation {
        let Self {
            request,
            parameters,
        } = self;
        let server = known.as_ref().ok().and_then(|known| known.server.as_ref());
        let purpose = server.map(|server| server.rules.purpose(request, &parameters));
        let placement = purpose.map_or(LocationRule::FlowApart, Purpose::location_rule);
        let mut problems = Vec::new();
        let protocol = parameters.protocol_with(MethodSet::ALL, placement, &mut problems);
        let protocol = protocol.ok().filter(|_| problems.is_empty());
        if let Some(protocol) = &protocol {
            let demanded = protocol.demand(purpose.map_or(&[], Purpose::needed));
            problems.extend(demanded.err());
        }
        let named = protocol.and_then(|protocol| {
            Some(Named {
                request,
                parameters: &parameters,
                method: protocol.signature_method?,
                protocol,
                purpose,
            })
        });
        let server_of_api = server.filter(|_| purpose == Some(Purpose::Api));
        let operation = server_of_api.and_then(|server| server.rules.operation(request));
        let launched = operation.map(|it| &it.rules).filter(|it| it.launch);
        let launched = launched.filter(|_| request.method == "POST" && request.form().is_some());
        let launch = launched.map(|it| launch::described(&parameters, &it.framed_by));
        let (mut signature, mut rejections, mut nonce_used) = (None, Vec::new(), None);
        match (named, known) {
            (Some(call), Ok(secrets)) => {
                let server = secrets.server.as_ref();
                let server_knows = server.map(|server| server.nonce_used);
                nonce_used = server_knows.filter(|_| nonce_use(&call.protocol).is_some());
                let examined = examine(&call, secrets);
                rejections = rejected(&call, &examined);
                signature = Some(examined);
            }
            (Some(_), Err(reason)) => rejections.push(reason),
            (None, _) => {}
        }
        let secrets = signature.as_ref().map(|examined| &examined.secrets);
        let mask = Mask::new(show_secrets, secrets);
        let of_api = signature.as_ref().filter(|_| purpose == Some(Purpose::Api));
        let forwarded = of_api.and_then(|examined| {
            let server = examined.secrets.server.as_ref()?;
            let operation = server.rules.operation(request)?;
            Some(forwarded(operation, &parameters, examined, &mask))
        });
        Explanation {
            mask,
            forwarded: forwarded.unwrap_or_default(),
            base_string: request.base_string(&parameters).to_vec(),
            parameters,
            problems,
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
fn rejected(call: &Named<'_>, examined: &Examined) -> Vec<String> {
    let (request, parameters, method) = (call.request, call.parameters, call.method);
    let verification = examined.rejections.iter().map(told);
    let Some((server, purpose)) = examined.secrets.server.as_ref().zip(call.purpose) else {
        return verification.collect();
    };
    let mut rejections = Vec::new();
    let told = |code: &str, reason: &str| format!("{code}: {reason}");
    let is_api_call = purpose == Purpose::Api;
    if is_api_call && request.uri.path == server.rules.flow.endpoint {
        let reason = "the query or the form has to name a token call";
        rejections.push(told("mode", reason));
    }
    let methods = server.rules.verify.signature.methods;
    let read = parameters.protocol(methods, purpose.location_rule());
    if let Err(ShapeError::MethodRejected { .. }) = read {
        let reason = format!("signature.methods has no {method}");
        rejections.push(told("signature_method_rejected", &reason));
    }
    let consumer = ConsumerCredentials::outside_cache(server.consumer.clone());
    if purpose == Purpose::RequestToken {
        let sent = call.protocol.value(ProtocolParameter::Callback);
        let requested = sent.or_else(|| Some(only_callback(&consumer).ok()?.as_bytes()));
        match requested.map(|requested| callback::accept(&consumer.callbacks, requested)) {
            None => rejections.push(told(
                "parameter_absent",
                "oauth_callback is missing; the only registered one stands in for a consumer with --accept callback_absent",
            )),
            Some(Err(error)) => rejections.push(told("parameter_rejected", &error.to_string())),
            Some(Ok(_)) => {}
        }
    }
    rejections.extend(verification);
    if purpose == Purpose::Exchange && server.token.is_none() {
        let operations = &server.rules.operations;
        let granted = operations.application_permissions(&server.consumer.permissions);
        rejections.extend(granted.err().map(|rejection| {
            let reason = "without oauth_token it is for the consumer alone, which no operation with access = [\"application\"] admits";
            told(rejection.verdict().as_str(), reason)
        }));
        if server.is_key_of_user {
            let verdict = IssueRejection::KeyOfUser.verdict();
            rejections.push(told(verdict.as_str(), "the key is the id of a user"));
        }
    }
    let is_by_secret = !method.is_rsa() && examined.matches && !examined.accepted;
    if is_by_secret && server.consumer.secret.is_empty() {
        let reason = "the consumer has no secret, so anybody can make this signature";
        rejections.push(told("signature_invalid", reason));
    }
    if let Some(sunset) = &server.rules.sunset {
        let key = &server.consumer.key;
        let call = server.rules.token_call(request, parameters);
        let (flow, path) = (&server.rules.flow, request.uri.path.as_bytes());
        let may_be_grant = || flow.may_be_grant(path, parameters, may_be_read_as);
        let signed = sunset.check_signed(key.as_str(), call, may_be_grant);
        let checks = [sunset.check(key), signed];
        rejections.extend(checks.into_iter().filter_map(Result::err).map(|rejection| {
            let advice = rejection.problem().advice;
            let reason = advice.unwrap_or_else(|| rejection.to_string().into());
            told(rejection.verdict().as_str(), &reason)
        }));
    }
    let rules = server.rules.operation(request).map(|it| &it.rules);
    let has_other_body = request.data.is_some() && request.form().is_none();
    if is_api_call
        && body_hash::check_is_sent(&consumer, rules, parameters, has_other_body).is_err()
    {
        let reason = "oauth_body_hash is needed, because the body is not a form";
        rejections.push(told("parameter_absent", reason));
    }
    if is_api_call && has_other_body {
        let pinned = body_hash::check_pinned(&consumer, rules);
        rejections.extend(pinned.err().map(|rejection| self::told(&rejection)));
    }
    rejections
}

/// A rejection by the verification: its code and a reason.
fn told(rejection: &VerifyRejection) -> String {
    use VerifyRejection as Rejection;

    let problem = rejection.problem();
    let reason = match rejection {
        Rejection::SignatureMethodRejected => "PLAINTEXT is for https only".into(),
        Rejection::SignatureWrong(_) => advice::rsa_only().into(),
        Rejection::ConsumerDisabled => "the consumer is disabled".into(),
        Rejection::ConsumerOutside => "the consumer may not call from there".into(),
        Rejection::TokenExpired => "the token is expired".into(),
        Rejection::TokenRevoked => "the token was revoked".into(),
        Rejection::NonceUsed => {
            "a request with this nonce was accepted before; each needs a new one".into()
        }
        other => problem.advice.unwrap_or_else(|| other.to_string().into()),
    };
    format!("{}: {reason}", problem.verdict.as_str())
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
    /// The header fields that the API gets of this call if it is accepted, and whether it gets the credentials, by the rules of
    /// its operation.
    pub forwarded: Vec<String>,
    /// The end of the grace of the consumer's previous secret, if the request is signed with that one.
    pub previous_secret_until: Option<UnixTime>,
}

impl Explanation {
    /// Whether the server accepts the request, as far as that is known here.
    pub fn is_accepted(&self) -> bool {
        let signature = self.signature.as_ref();
        self.problems.is_empty()
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
        let problems = self.problems.iter().map(ToString::to_string);
        let wrong: Vec<String> = problems
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
            forwarded: self.forwarded.clone(),
            previous_secret_until: examined.and_then(|examined| examined.previous_secret_until),
        }
    }
}

/// Bytes as text.
pub fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
