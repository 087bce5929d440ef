//! Compares a signature with what the server accepts, and looks for the mistake in a wrong one.
//!
//! The server's own code decides what it accepts:
//! [`SignedCall::check_signature`](crate::request::verify::SignedCall::check_signature) and
//! [`SignedCall::rejections`](crate::request::verify::SignedCall::rejections).

use std::sync::Arc;

use super::{KnownSecrets, ParsedRequest, ServerView, TokenRecord};
use crate::{
    base::{clock::UnixTime, secret::Secret},
    oauth::{
        Deviation, DeviationSet, Parameters, Protocol, ProtocolParameter, Scheme, Selection,
        SignatureMethod, SigningKey,
        diagnosis::{self, Diagnosis, WrongSignature, diagnose_thoroughly},
        has_bare_plus, is_body_hash, sign, verify,
    },
    records::credentials::{AccessCredentials, ConsumerCredentials, SecretAge},
    request::{
        parse::signed::SignedRequest,
        verify::{
            Credential, Proof, Purpose, RequestTokenCredentials, SignatureCheck, SignedCall,
            VerifyRejection,
        },
    },
};

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
    /// The proof of the server that the signature holds.
    pub(super) proof: Option<Proof>,
    /// All other reasons for which the server's verification rejects the call.
    pub(super) rejections: Vec<VerifyRejection>,
}

/// A request that names a known signature method.
pub(super) struct Named<'c> {
    pub request: &'c ParsedRequest<'c>,
    pub parameters: &'c Parameters,
    pub protocol: Protocol<'c>,
    pub method: SignatureMethod,
    /// `None`: the rules of the server are not known.
    pub purpose: Option<Purpose>,
}

/// Compares the signature, with the server's own check where the server is known, else with the expected one alone.
pub(super) fn examine(call: &Named<'_>, mut secrets: KnownSecrets) -> Examined {
    let method = call.method;
    if call.purpose == Some(Purpose::RequestToken) {
        // Such a call has no token, even if it sends one.
        secrets.token_secret = Secret::from("");
    }
    let sent = call.protocol.value(ProtocolParameter::Signature);
    let (rsa, server) = (secrets.rsa_public_key.as_ref(), secrets.server.as_ref());
    let key = SigningKey::new(&secrets.consumer_secret, &secrets.token_secret);
    let base = call.request.base_string(call.parameters);
    let matches = sent.is_some_and(|sent| verify(method, &key, rsa, &base, sent).is_ok());
    let known = server.zip(call.purpose);
    let checked = known.map(|(server, purpose)| ServerCall::new(call, purpose, server));
    let check = checked.as_ref().filter(|_| sent.is_some());
    let (proof, needs, accepted) = match check.and_then(ServerCall::signature) {
        Some(SignatureCheck::Holds(proof)) => (Some(proof), None, true),
        Some(SignatureCheck::Needs(deviation)) => (None, Some(deviation), false),
        Some(SignatureCheck::Wrong) => (None, None, false),
        None => (None, None, matches),
    };
    let rejections = match &checked {
        Some(checked) => checked.rejections(proof.as_ref()),
        None => {
            let body = call.request.data.unwrap_or_default().as_bytes();
            let hash = call.protocol.value(ProtocolParameter::BodyHash);
            let wrong = hash.filter(|sent| !is_body_hash(method, sent, body));
            wrong
                .map(|_| VerifyRejection::BodyHashWrong)
                .into_iter()
                .collect()
        }
    };
    let previous = server.and_then(|server| {
        let (secret, until) = server.consumer.previous_secret.as_ref()?;
        Some((secret, *until, server.now < *until))
    });
    let graced = previous.filter(|(.., lasts)| *lasts);
    let expired = previous.filter(|(.., lasts)| !lasts);
    let by_earlier = proof.as_ref().map(|proof| proof.secret) == Some(SecretAge::Previous);
    let diagnose = |sent: &[u8], consumer_secret: &Secret| {
        let expired = expired.map(|(secret, ..)| secret);
        diagnose_thoroughly(&WrongSignature {
            consumer_secret: consumer_secret.clone(),
            // One whose grace lasts is no mistake.
            previous_secret: expired.cloned(),
            ..wrong_signature(call, sent, &secrets)
        })
    };
    let diagnosed = sent.filter(|sent| !by_earlier && (!matches || has_bare_plus(method, sent)));
    let diagnosis = diagnosed.and_then(|sent| diagnose(sent, &secrets.consumer_secret));
    let is_wrong = !accepted && !matches && diagnosis.is_none();
    let of_earlier = || {
        let sent = sent.filter(|_| is_wrong)?;
        let (earlier, ..) = graced?;
        diagnose(sent, earlier)
    };
    let of_earlier = of_earlier();
    let is_earlier = by_earlier || of_earlier.is_some();
    Examined {
        method,
        previous_secret_until: graced.map(|(_, until, _)| until).filter(|_| is_earlier),
        sent: sent.map(<[u8]>::to_vec),
        expected: sign(method, &key, &base),
        matches,
        accepted,
        needs,
        diagnosis: diagnosis.or(of_earlier),
        secrets,
        proof,
        rejections,
    }
}

/// A call as the server checks it.
pub(super) struct ServerCall<'c> {
    server: &'c ServerView,
    purpose: Purpose,
    signed: SignedRequest<'c>,
    consumer: Arc<ConsumerCredentials>,
    /// The credentials that the server finds; `None`: there are none, as the token is missing or of another kind.
    credential: Option<Credential>,
}

impl<'c> ServerCall<'c> {
    pub(super) fn new(call: &Named<'c>, purpose: Purpose, server: &'c ServerView) -> Self {
        let request = call.request;
        let consumer = ConsumerCredentials::outside_cache(server.consumer.clone());
        let consumer = Arc::new(consumer);
        let operation = server.rules.operation(request);
        let operation = operation.filter(|_| purpose == Purpose::Api);
        Self {
            // A parameter that is missing is reported apart.
            signed: SignedRequest {
                method: request.method.as_bytes(),
                url: &request.url,
                path: request.uri.path.as_bytes(),
                query: request.uri.query.unwrap_or_default().as_bytes(),
                parameters: call.parameters,
                credentials: call.protocol.credentials(call.method),
                body: request.data.map(str::as_bytes),
                caller: None,
                own_address: None,
                secure: request.uri.scheme == Scheme::Https,
                is_described: false,
                window: operation.and_then(|it| it.rules.timestamp_window),
            },
            credential: credential(purpose, server, &consumer),
            consumer,
            purpose,
            server,
        }
    }

    fn call(&self) -> SignedCall<'_> {
        SignedCall {
            rules: &self.server.rules.verify,
            purpose: self.purpose,
            request: &self.signed,
            now: self.server.now,
        }
    }

    /// The check of the signature alone; `None`: the server has no credentials for the call.
    pub(super) fn signature(&self) -> Option<SignatureCheck> {
        Some(self.call().check_signature(self.credential.as_ref()?))
    }

    /// All other reasons for which the verification rejects the call; `proof` is that of the signature, if it holds.
    fn rejections(&self, proof: Option<&Proof>) -> Vec<VerifyRejection> {
        let (server, parameters) = (self.server, self.signed.parameters);
        let values = |name: &[u8]| match proof {
            Some(proof) => proof.values(parameters, name),
            None => parameters.signed_values(Selection::Rfc5849, DeviationSet::NONE, name),
        };
        let unless = |is_rejected: bool, rejection| match is_rejected {
            true => Err(rejection),
            false => Ok(()),
        };
        let is_unknown = self.credential.is_none() || server.is_token_unknown;
        let waited = [
            unless(is_unknown, VerifyRejection::TokenUnknown),
            unless(server.nonce_used == Some(true), VerifyRejection::NonceUsed),
        ];
        let alone = Credential::Consumer(Arc::clone(&self.consumer));
        let credential = self.credential.as_ref().unwrap_or(&alone);
        self.call().rejections(credential, waited, values)
    }
}

fn credential(
    purpose: Purpose,
    server: &ServerView,
    consumer: &Arc<ConsumerCredentials>,
) -> Option<Credential> {
    let consumer = Arc::clone(consumer);
    Some(match (purpose, &server.token) {
        (
            Purpose::Api | Purpose::OwnToken | Purpose::Exchange,
            Some(TokenRecord::Access(token)),
        ) => {
            let access = AccessCredentials::outside_cache(token.clone(), consumer);
            Credential::AccessToken(Arc::new(access).into())
        }
        (Purpose::Api | Purpose::Exchange, None) => Credential::Application(consumer),
        (Purpose::RequestToken, _) => Credential::Consumer(consumer),
        (Purpose::AccessToken, Some(TokenRecord::Request(token))) => {
            let token = token.clone();
            Credential::RequestToken(Box::new(RequestTokenCredentials { token, consumer }))
        }
        (Purpose::Api | Purpose::OwnToken | Purpose::Exchange, Some(TokenRecord::Request(_)))
        | (Purpose::OwnToken, None)
        | (Purpose::AccessToken, Some(TokenRecord::Access(_)) | None) => return None,
    })
}

/// The request as one whose signature is wrong, for the search for the mistake.
fn wrong_signature(call: &Named<'_>, sent: &[u8], secrets: &KnownSecrets) -> WrongSignature {
    let (request, parameters) = (call.request, call.parameters);
    let (uri, server) = (&request.uri, secrets.server.as_ref());
    let other_body = request.data.filter(|_| request.form().is_none());
    WrongSignature {
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
        consumer_secret: secrets.consumer_secret.clone(),
        previous_secret: None,
        token_secret: secrets.token_secret.clone(),
        rsa: secrets.rsa_public_key.clone(),
        other_urls: server.map_or_else(Vec::new, |server| server.rules.verify.other_urls.clone()),
        token_paths: server.map_or_else(Vec::new, |server| {
            server.rules.verify.token_paths_for(uri.path.as_bytes())
        }),
        callbacks: server.map_or_else(Vec::new, |server| server.consumer.callbacks.clone()),
        signature_method: call.method,
        signature: sent.to_vec(),
    }
}
