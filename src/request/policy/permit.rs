//! The proof that a request may go to the API, and the identity it carries.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};

use super::{
    PolicyRejection, UnmetRule,
    access::{Access, CallerKind},
    call::Call,
    operations::Found,
    settings::ParameterHeader,
};
use crate::{
    base::{
        clock::UnixTime,
        text::names::{ConsumerKey, Permission, UserId},
    },
    oauth::Parameters,
    records::credentials::{BearerCredentials, ConsumerCredentials, FieldValues, LocalAccess},
    request::verify::{Credential, Verified},
    telemetry::calls::facts::OperationRule,
};

/// The proof that a request may be forwarded. `forward` sends nothing without one; only this file makes one.
#[derive(Debug)]
pub struct Permit {
    caller: Caller,
    /// The signed parameters that the API gets as header fields.
    headers: Vec<(HeaderName, HeaderValue)>,
    forward_authorization: Option<bool>,
}

#[derive(Debug)]
enum Caller {
    Consumer(LocalAccess),
    Application(Arc<ConsumerCredentials>),
    Bearer(Arc<BearerCredentials>),
    User(UserId),
    Anonymous,
    Observed,
}

impl Call<'_> {
    /// Checks every rule of the operation, after the credentials.
    fn check(&self, caller: &Caller) -> Result<(), PolicyRejection> {
        self.found.check_method()?;
        if !self.found.access().admits(caller.kind()) {
            // Of a path that no operation lists, no key of one decides.
            let unmet = self
                .found
                .operation()
                .map(|_| UnmetRule::Other(OperationRule::Access));
            return Err(self.operations.forbidden(unmet));
        }
        if let Some(permission) = self.found.rules().and_then(|it| it.permission.as_ref())
            && !caller.has(permission)
        {
            let unmet = UnmetRule::Permission(permission.clone());
            return Err(self.operations.forbidden(Some(unmet)));
        }
        self.check_caller()
    }

    fn check_caller(&self) -> Result<(), PolicyRejection> {
        match self.found.unmet_by(self.head.received.own_address) {
            None => Ok(()),
            unmet => Err(self.operations.forbidden(unmet)),
        }
    }
}

impl Permit {
    const fn without_headers(caller: Caller) -> Self {
        Self {
            caller,
            headers: Vec::new(),
            forward_authorization: None,
        }
    }

    /// Permits a verified call, if the operation is open to it.
    ///
    /// # Errors
    /// [`PolicyRejection::NotPermitted`], [`PolicyRejection::MethodNotAllowed`], or [`PolicyRejection::TokenMissing`] for a
    /// call without a token wherever `application` is not admitted, listed or not: such a caller does not learn what
    /// exists.
    pub fn for_verified(verified: Verified, call: &Call<'_>) -> Result<Self, PolicyRejection> {
        let rules = call.found.rules();
        let named = rules.map_or(&[][..], |it| &it.headers.0);
        let headers = headers(&verified, &call.collected.parameters, named);
        let forward_authorization = rules.and_then(|it| it.forward_authorization);
        let caller = match verified.into_credential() {
            Credential::AccessToken(access) => Caller::Consumer(access),
            Credential::Application(consumer) => Caller::Application(consumer),
            Credential::Bearer(bearer) => Caller::Bearer(bearer),
            Credential::Consumer(consumer) if call.token_call.is_some() => {
                Caller::Application(consumer)
            }
            // They sign token calls, which are not for the API.
            Credential::Consumer(_) | Credential::RequestToken(_) => {
                return Err(PolicyRejection::TokenMissing);
            }
        };
        // No operation lists a token call, and whoever may call the API may make it.
        if call.token_call.is_none() {
            let admits = |kind| call.found.access().admits(kind);
            if matches!(caller, Caller::Application(_)) && !admits(CallerKind::Application) {
                return Err(PolicyRejection::TokenMissing);
            }
            call.check(&caller)?;
        }
        Ok(Self {
            caller,
            headers,
            forward_authorization,
        })
    }

    /// Permits a request of a directly logged-in user, after the check that no other site caused it.
    ///
    /// # Errors
    /// [`PolicyRejection::NotPermitted`] or [`PolicyRejection::MethodNotAllowed`].
    pub fn for_session(user: UserId, call: &Call<'_>) -> Result<Self, PolicyRejection> {
        let caller = Caller::User(user);
        call.check(&caller)?;
        Ok(Self::without_headers(caller))
    }

    /// Permits a request without credentials, if the operation is open to everyone.
    ///
    /// # Errors
    /// [`PolicyRejection::NoCredentials`] wherever it is not: an unauthenticated caller does not learn what exists, nor with
    /// which methods. [`PolicyRejection::MethodNotAllowed`] only where one of the listed methods is open to everyone, and
    /// [`PolicyRejection::NotPermitted`] only where the operation is, but not from the caller's address.
    pub fn for_anonymous(call: &Call<'_>) -> Result<Self, PolicyRejection> {
        if !call.found.access().admits(CallerKind::Anonymous) {
            return Err(PolicyRejection::NoCredentials);
        }
        call.check(&Caller::Anonymous)?;
        Ok(Self::without_headers(Caller::Anonymous))
    }

    /// Permits a CORS preflight as anonymous on every path that somebody may call, whatever its methods and callers: a
    /// browser can neither sign it nor log in with it.
    ///
    /// # Errors
    /// [`PolicyRejection::NotPermitted`] where no operation of the path may be called from the caller's address. On other paths
    /// those of [`Permit::for_anonymous`].
    pub fn for_preflight(call: &Call<'_>) -> Result<Self, PolicyRejection> {
        match call.found {
            Found::Operation(_) | Found::OtherMethod(_) => {
                call.check_caller()?;
                Ok(Self::without_headers(Caller::Anonymous))
            }
            Found::Unlisted(access) if access != Access::NOBODY => {
                Ok(Self::without_headers(Caller::Anonymous))
            }
            Found::Unlisted(_) | Found::Similar { .. } | Found::Ambiguous { .. } => {
                Self::for_anonymous(call)
            }
        }
    }

    /// Permits a call that is only observed: without an identity, whatever verification found.
    pub fn danger_without_verification() -> Self {
        Self::without_headers(Caller::Observed)
    }

    /// The kind of caller; `None` for an observed call, which is sent without an identity.
    pub fn kind(&self) -> Option<CallerKind> {
        match self.caller {
            Caller::Observed => None,
            ref caller => Some(caller.kind()),
        }
    }

    /// Whether nothing is known of the caller.
    #[must_use]
    pub const fn is_anonymous(&self) -> bool {
        matches!(self.caller, Caller::Anonymous | Caller::Observed)
    }

    /// The user that the call acts for.
    pub fn user(&self) -> Option<&str> {
        match &self.caller {
            Caller::Consumer(access) => Some(access.user.as_str()),
            Caller::Bearer(bearer) => bearer.user.as_ref().map(UserId::as_str),
            Caller::User(user) => Some(user.as_str()),
            Caller::Application(_) | Caller::Anonymous | Caller::Observed => None,
        }
    }

    /// The consumer that signed, or whose token it is.
    pub fn consumer(&self) -> Option<&ConsumerKey> {
        match &self.caller {
            Caller::Consumer(access) => Some(&access.consumer.key),
            Caller::Application(consumer) => Some(&consumer.key),
            Caller::Bearer(bearer) => Some(&bearer.consumer.key),
            Caller::User(_) | Caller::Anonymous | Caller::Observed => None,
        }
    }

    /// The name of the access token that signed, or of the Bearer token.
    pub fn token(&self) -> Option<&str> {
        match &self.caller {
            Caller::Consumer(access) => Some(&access.token),
            Caller::Bearer(bearer) => bearer.name.as_deref(),
            Caller::Application(_) | Caller::User(_) | Caller::Anonymous | Caller::Observed => None,
        }
    }

    /// The end of that token; `None`: it has none.
    pub fn token_end(&self) -> Option<UnixTime> {
        match &self.caller {
            Caller::Consumer(access) => access.expires_at,
            Caller::Application(_)
            | Caller::Bearer(_)
            | Caller::User(_)
            | Caller::Anonymous
            | Caller::Observed => None,
        }
    }

    /// The signed parameters that the API gets as header fields, as the operation names them.
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }

    /// Whether the OAuth credentials go on to the API, if the operation says it.
    pub const fn forward_authorization(&self) -> Option<bool> {
        self.forward_authorization
    }

    /// The values of the identity headers of a consumer's call; `Some(None)` if they are not valid in a field.
    pub fn identity(&self) -> Option<Option<&FieldValues>> {
        match &self.caller {
            Caller::Consumer(access) => Some(access.field_values()),
            Caller::Application(consumer) => Some(consumer.field_values()),
            Caller::Bearer(bearer) => Some(bearer.field_values()),
            Caller::User(_) | Caller::Anonymous | Caller::Observed => None,
        }
    }
}

/// The fields of the operation that have a value here.
fn headers(
    verified: &Verified,
    parameters: &Parameters,
    named: &[ParameterHeader],
) -> Vec<(HeaderName, HeaderValue)> {
    let field = |header: &ParameterHeader| {
        let value = header.value(&verified.values(parameters, header.parameter.as_bytes()))?;
        Some((header.name.clone(), value))
    };
    named.iter().filter_map(field).collect()
}

impl Caller {
    fn kind(&self) -> CallerKind {
        match self {
            Self::Consumer(_) => CallerKind::Consumer,
            Self::Bearer(bearer) if bearer.user.is_some() => CallerKind::Consumer,
            Self::Bearer(_) => CallerKind::Application,
            Self::Application(_) => CallerKind::Application,
            Self::User(_) => CallerKind::User,
            Self::Anonymous | Self::Observed => CallerKind::Anonymous,
        }
    }

    /// Whether it has a permission. Only consumers need any: the others need nothing but the operation's `access`.
    fn has(&self, permission: &Permission) -> bool {
        match self {
            Self::Consumer(access) => access.granted.contains(permission),
            Self::Application(consumer) => consumer.permissions.contains(permission),
            Self::Bearer(bearer) => bearer.granted.contains(permission),
            Self::User(_) | Self::Anonymous | Self::Observed => true,
        }
    }
}
