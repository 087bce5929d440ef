//! An issuer of tokens: the check of a token, and what its claims are here.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    HeaderValue, Method, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use jsonwebtoken::{Header, Validation, decode, errors::ErrorKind};
use serde_json::{Map, Value};

use super::{
    BearerError, BearerRejection as Rejection, IssuerFault, OwnTokens, SetupError,
    keys::{KeySet, KeySource, RemoteKeys},
    settings::{ClaimMark, IssuerSettings, TokenAlgorithm},
};
use crate::{
    base::{clock::UnixTime, network::tls::TlsFiles, secret::Secret, text::names::ConsumerKey},
    oauth::percent,
    records::credentials::BearerClaims,
    request::policy::access::CallerKind,
    wire::{
        address::EndpointUrl,
        outbound::{SharedService, tls::remote_service},
    },
};

/// The seconds by which the clock of an issuer may be ahead.
const LEEWAY: u64 = 30;

/// The claims of a token.
pub(super) type Claims = Map<String, Value>;

/// An issuer of tokens.
pub(super) struct Issuer {
    /// The claim `iss` of its tokens.
    pub(super) name: String,
    /// What the claims have to be; the algorithm is that of each token.
    validation: Validation,
    audience: Vec<String>,
    algorithms: Vec<TokenAlgorithm>,
    types: Vec<String>,
    /// The names of the claims with the consumer, the user and the permissions.
    named: [String; 3],
    /// The claims that tell the tokens of users from those of clients alone: `user_mark` and `client_mark`.
    marks: [Option<ClaimMark>; 2],
    /// A response to its introspection has to name the audience.
    needs_audience: bool,
    /// Its tokens are those of the exchange.
    is_own: bool,
    pub(super) check: Check,
    /// As the configuration has it.
    pub(super) url: String,
}

/// How its tokens are checked.
pub(super) enum Check {
    /// By their signatures.
    Keys(KeySource),
    /// It is asked for each, with this Authorization (RFC 7662).
    Asked(Arc<SharedService>, HeaderValue),
}

impl Issuer {
    /// The exchange of this service.
    pub(super) fn own(own: &OwnTokens<'_>) -> Result<Self, IssuerFault> {
        let algorithms = ["EdDSA", "ES256"].map(|name| name.parse().map(TokenAlgorithm));
        Ok(Self {
            validation: validation(&own.issuer, &[own.audience.to_owned()]),
            name: own.issuer.clone(),
            audience: vec![own.audience.to_owned()],
            algorithms: algorithms.into_iter().flatten().collect(),
            types: vec![own.token_type.to_owned()],
            named: ["client_id", "sub", "scope"].map(str::to_owned),
            marks: [None, None],
            needs_audience: true,
            is_own: true,
            check: Check::Keys(KeySource::Here(KeySet::read(own.jwk_set)?)),
            url: String::new(),
        })
    }

    /// The issuer of these settings. `before` is the one that a reload replaces.
    pub(super) fn new(
        settings: &IssuerSettings,
        before: Option<&Self>,
    ) -> Result<Self, SetupError> {
        let service = |url: &EndpointUrl| {
            let files = TlsFiles {
                ca: settings.ca.clone(),
                identity: None,
            };
            let service = remote_service(&url.server, &files, ["bearer.issuer.ca"; 3])?;
            Ok::<_, SetupError>(SharedService::new(
                service,
                url.path.clone(),
                settings.timeout,
            ))
        };
        let url = settings
            .jwks_url
            .as_ref()
            .or(settings.introspection_url.as_ref());
        let url = url.map(ToString::to_string).unwrap_or_default();
        let check = if let Some(url) = &settings.jwks_url {
            let keys = before.filter(|before| before.url == url.to_string());
            let keys = keys.and_then(|before| match &before.check {
                Check::Keys(KeySource::Remote(keys)) => Some(&**keys),
                _ => None,
            });
            let keys = RemoteKeys::new(service(url)?, keys);
            Check::Keys(KeySource::Remote(Arc::new(keys)))
        } else if let Some(url) = &settings.introspection_url {
            let secret = settings.client_secret_file.as_ref().map(|path| {
                let failed = |problem| SetupError::file("client_secret_file", path, problem);
                Secret::read_line(path).map_err(failed)
            });
            let id = settings.client_id.as_ref().map_or("", |id| &id.0);
            let service = Arc::new(service(url)?);
            Check::Asked(service, basic(id, &secret.transpose()?.unwrap_or_default()))
        } else {
            let path = settings.jwks_file.as_deref().unwrap_or("".as_ref());
            let failed = |problem: String| SetupError::file("jwks_file", path, problem);
            let set = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
            let keys = KeySet::read(&set).map_err(|fault| failed(fault.to_string()))?;
            Check::Keys(KeySource::Here(keys))
        };
        let audience = Vec::from_iter(settings.audience.iter().map(|it| it.0.clone()));
        let claims = [
            &settings.consumer_claim,
            &settings.user_claim,
            &settings.permissions_claim,
        ];
        Ok(Self {
            name: settings.issuer.0.clone(),
            validation: validation(&settings.issuer.0, &audience),
            audience,
            algorithms: settings.algorithms.clone(),
            types: settings.token_types.iter().map(|it| it.0.clone()).collect(),
            named: claims.map(|name| name.0.clone()),
            marks: [settings.user_mark.clone(), settings.client_mark.clone()],
            needs_audience: settings.audience_required,
            is_own: false,
            check,
            url,
        })
    }

    /// Checks the signature of a JWT and all that it says of itself.
    pub(super) async fn claims_of(
        &self,
        jwt: &[u8],
        header: Header,
        keys: &KeySource,
        now: UnixTime,
    ) -> Result<Claims, BearerError> {
        if !self.algorithms.contains(&TokenAlgorithm(header.alg)) {
            return Err(
                Rejection::Token("the algorithm of the Bearer token is not accepted").into(),
            );
        }
        let typ = header.typ.unwrap_or_default().to_ascii_lowercase();
        let typ = typ.strip_prefix("application/").unwrap_or(&typ);
        if !self.types.iter().any(|it| it.eq_ignore_ascii_case(typ)) {
            let wrong = "the Bearer token is of another type: its head has to say that it is an access token";
            return Err(Rejection::Token(wrong).into());
        }
        let key = keys.key(header.kid.as_deref(), header.alg).await?;
        let unknown = "the key of the Bearer token is not one of its issuer's";
        let key = key.ok_or(Rejection::Token(unknown))?;
        let mut validation = self.validation.clone();
        validation.algorithms = vec![header.alg];
        let decoded = decode::<Claims>(jwt, &key, &validation);
        let claims = decoded
            .map_err(|error| Rejection::Token(wrong(error.kind())))?
            .claims;
        if time(&claims, "iat").is_some_and(|at| at > now.0 + LEEWAY) {
            return Err(Rejection::Token("the Bearer token was given out in the future").into());
        }
        Ok(claims)
    }

    /// Asks the issuer for the claims of a token; `None`: it does not vouch for it, or not for its use here.
    pub(super) async fn ask(
        &self,
        token: &[u8],
        (service, authorization): (&Arc<SharedService>, &HeaderValue),
        is_refresh: bool,
    ) -> Result<Option<Claims>, IssuerFault> {
        let body = format!(
            "token={}&token_type_hint=access_token",
            percent::encode(token)
        );
        let request = service
            .request(Method::POST)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(AUTHORIZATION, authorization)
            .body(Bytes::from(body));
        let mut claims: Claims = match service.ask(request, is_refresh).await? {
            (StatusCode::OK, claims) => {
                serde_json::from_slice(&claims).map_err(|_| IssuerFault::NotClaims)?
            }
            (status, _) => return Err(IssuerFault::Status(status)),
        };
        let is_active = claims.get("active") == Some(&Value::Bool(true));
        let lacks_audience = match claims.get("aud") {
            None | Some(Value::Null) => true,
            Some(Value::Array(list)) => list.is_empty(),
            Some(other) => other == "",
        };
        if is_active && lacks_audience {
            if self.needs_audience {
                tracing::info!(
                    issuer = self.name,
                    problem = "the response about it has no aud, so it may be for another API: let the issuer add it, or set \
                               audience_required = false",
                    "a token is not used",
                );
                return Ok(None);
            }
            claims.remove("aud");
        }
        let is_one_of = |name, accepted: &[String]| match claims.get(name) {
            None => true,
            Some(claim) => texts(claim).any(|it| accepted.iter().any(|one| one == it)),
        };
        let is_ours = is_active
            && is_one_of("aud", &self.audience)
            && is_one_of("iss", std::slice::from_ref(&self.name));
        Ok(is_ours.then_some(claims))
    }

    /// What these claims are here.
    pub(super) fn read(&self, claims: &Claims, rules: u64) -> Result<BearerClaims, Rejection> {
        if claims.contains_key("cnf") {
            // RFC 7800: whoever has it alone may not use it.
            return Err(Rejection::Token(
                "the Bearer token is bound to a key (cnf), whose proof is not checked here",
            ));
        }
        if is_other_kind(claims) {
            return Err(Rejection::Token("the Bearer token is not an access token"));
        }
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let [consumer, user, scope] = &self.named;
        let key = text(consumer).and_then(|key| key.parse::<ConsumerKey>().ok());
        let key = key.ok_or(Rejection::Token("the Bearer token names no consumer"))?;
        let exchanged = text("oauth_token").filter(|_| self.is_own);
        let is_clients = match self.is_own {
            true => exchanged.is_none(),
            false => self.is_clients(claims, &key),
        };
        let user = match claims.get(user).filter(|_| !is_clients) {
            None => None,
            Some(user) => {
                let user = user.as_str().and_then(|user| user.parse().ok());
                Some(user.ok_or(Rejection::Token(
                    "the user of the Bearer token cannot be one here",
                ))?)
            }
        };
        let is_clear = match (self.is_own, &self.marks[0]) {
            // The exchange says what it gives out.
            (true, _) => user.is_some() != (text("kind") == Some(CallerKind::Application.as_str())),
            (false, Some(mark)) => is_clients || user.is_some() == mark.is_in(claims),
            (false, None) => true,
        };
        if !is_clear {
            return Err(Rejection::Token(match self.is_own {
                true => "the Bearer token does not say what it was exchanged for; exchange again",
                false => "the Bearer token does not say whether it is a user's or its client's own",
            }));
        }
        let scope = claims.get(scope).into_iter().flat_map(texts);
        let scope = scope.flat_map(|text| text.split(' '));
        Ok(BearerClaims {
            rules,
            // A JWT has it, and the word of an issuer counts for a minute.
            expires_at: UnixTime(time(claims, "exp").unwrap_or(u64::MAX)),
            consumer: key,
            user,
            scope: scope.filter_map(|name| name.parse().ok()).collect(),
            exchanged: exchanged.map(Into::into),
            id: text("jti").map(Into::into),
        })
    }

    /// Whether a token is the own one of this client, rather than a user's. RFC 9068 §2.2 lets its `sub` be any name of the
    /// client; a user can have chosen the key as a name, so a mark decides where there is one.
    fn is_clients(&self, claims: &Claims, key: &ConsumerKey) -> bool {
        let [_, user, _] = &self.named;
        let user = claims.get(user).and_then(Value::as_str);
        let is_key = |user: &str| user.strip_suffix("@clients").unwrap_or(user) == key.as_str();
        match &self.marks {
            [_, Some(client)] => client.is_in(claims),
            [Some(user), None] if user.is_in(claims) => false,
            _ => user.is_some_and(is_key),
        }
    }
}

fn validation(issuer: &str, audience: &[String]) -> Validation {
    let mut validation = Validation::default();
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    validation.set_issuer(&[issuer]);
    validation.set_audience(audience);
    validation.leeway = LEEWAY;
    validation.validate_nbf = true;
    // It is compared with our clock, without leeway.
    validation.validate_exp = false;
    validation
}

/// Whether claims are those of a refresh token, an ID token, or a token that is used with a proof of a key. Servers sign and
/// know them too.
fn is_other_kind(claims: &Claims) -> bool {
    let kinds = ["typ", "token_use", "token_type"].into_iter();
    let mut kinds = kinds.filter_map(|name| claims.get(name)?.as_str());
    let is_other = |kind: &str| {
        let kind = kind.to_ascii_lowercase();
        ["refresh", "id", "offline", "logout", "dpop"]
            .iter()
            .any(|other| kind.starts_with(other))
    };
    kinds.any(is_other) || claims.contains_key("at_hash")
}

/// What is wrong with a JWT.
const fn wrong(error: &ErrorKind) -> &'static str {
    match error {
        ErrorKind::InvalidSignature => "the signature of the Bearer token is wrong",
        ErrorKind::InvalidAudience => "the Bearer token is for another audience",
        ErrorKind::ImmatureSignature => "the Bearer token is not valid yet",
        ErrorKind::MissingRequiredClaim(_) => {
            "the Bearer token lacks one of the claims exp, iss and aud"
        }
        _ => "the Bearer token is malformed",
    }
}

/// A claim that is a time, in seconds since 1970.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number that does not fit becomes the nearest one that does"
)]
fn time(claims: &Claims, name: &str) -> Option<u64> {
    let number = claims.get(name)?;
    number
        .as_u64()
        .or_else(|| number.as_f64().map(|it| it as u64))
}

/// The texts of a claim: one, or those of a list.
fn texts(claim: &Value) -> impl Iterator<Item = &str> {
    let list = claim
        .as_array()
        .map_or(std::slice::from_ref(claim), Vec::as_slice);
    list.iter().filter_map(Value::as_str)
}

/// The field of a client with a secret (RFC 6749 §2.3.1).
fn basic(id: &str, secret: &Secret) -> HeaderValue {
    let pair = [
        percent::encode(id.as_bytes()),
        percent::encode(secret.expose()),
    ]
    .join(":");
    let value = format!("Basic {}", STANDARD.encode(pair));
    // Letters and digits are always a field value.
    let mut value = HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static("Basic"));
    value.set_sensitive(true);
    value
}
