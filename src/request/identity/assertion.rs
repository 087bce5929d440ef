//! The identity assertion: a JWT (RFC 7519) that tells the API who calls, and that only this process can make.

use std::{sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue};
use serde::Serialize;

use super::{Fault, keys::Signer};
use crate::{
    base::{
        clock::{Clock, UnixTime},
        secret::random,
    },
    records::credentials::CachedAssertion,
    request::policy::{access::CallerKind, call::Call, permit::Permit},
};

/// `typ` of an assertion, by which an API tells it from the other JWTs of the same keys (RFC 8725 §3.11).
pub(super) const TYP: &str = "countersign+jwt";

/// The binding of an assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bind {
    /// Method and URL of one request.
    #[default]
    Request,
    /// Nothing: one assertion serves all calls of a credential for half its life.
    None,
}

/// The claims of a JWT about a caller; those that do not apply are left out.
#[derive(Debug, Serialize)]
pub struct Claims<'a> {
    /// The service.
    pub iss: &'a str,
    /// The recipient.
    pub aud: &'a str,
    /// The user's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub: Option<&'a str>,
    /// The consumer key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<&'a str>,
    /// The permissions, separated by spaces.
    pub scope: &'a str,
    /// The kind of caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// The access token of OAuth 1.0a that it was exchanged for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth_token: Option<&'a str>,
    /// The time of signing, in seconds since 1970.
    pub iat: u64,
    /// The time from which it is expired.
    pub exp: u64,
    /// Its own id.
    pub jti: &'a str,
    /// The method of the request, as in RFC 9449 §4.2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub htm: Option<&'a str>,
    /// The URL of the request without query, in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub htu: Option<&'a str>,
}

/// Makes assertions.
pub struct Assertion {
    /// The field that has them.
    pub header: HeaderName,
    /// `service.base_url`
    pub issuer: String,
    /// `identity.assertion.audience`
    pub audience: String,
    /// The time for which one is valid.
    pub ttl: Duration,
    /// The binding of one.
    pub bind: Bind,
    /// The clock.
    pub clock: Clock,
    pub(super) signer: Signer,
    /// A number that no other value of this type has: each value uses only assertions that it has signed.
    pub(super) number: u64,
}

impl Assertion {
    /// The value of the field; `None` for anonymous and observed calls.
    ///
    /// # Errors
    /// [`Fault`]
    pub(super) fn value(
        &self,
        permit: &Permit,
        call: &Call<'_>,
    ) -> Result<Option<HeaderValue>, Fault> {
        let kind = match permit.kind() {
            None | Some(CallerKind::Anonymous) => return Ok(None),
            Some(kind) => kind,
        };
        let now = self.clock.now();
        // It is kept with the other values of the credential, and ends with them.
        let cell = permit.identity().flatten().map(|values| &values.assertion);
        let cell = cell.filter(|_| self.bind == Bind::None);
        if let Some(cell) = cell
            && let Some(signed) = &*cell.load()
            && signed.signer == self.number
            && signed.usable.contains(&now)
        {
            return Ok(Some(signed.value.clone()));
        }
        let value = self.sign(permit, kind, call, now)?;
        if let Some(cell) = cell {
            cell.store(Some(Arc::new(CachedAssertion {
                value: value.clone(),
                signer: self.number,
                usable: now..now.after(self.ttl / 2),
            })));
        }
        Ok(Some(value))
    }

    fn sign(
        &self,
        permit: &Permit,
        kind: CallerKind,
        call: &Call<'_>,
        now: UnixTime,
    ) -> Result<HeaderValue, Fault> {
        const UNWRITABLE: Fault = Fault("an assertion has no field value");
        let permissions = permit
            .identity()
            .flatten()
            .map(|values| &values.permissions);
        let scope = permissions.map_or(Ok(""), HeaderValue::to_str);
        let jti = random::identifier().map_err(|_| Fault("the random generator failed"))?;
        let htu = (self.bind == Bind::Request).then(|| {
            let path = str::from_utf8(&call.signed_path).map_err(|_| UNWRITABLE)?;
            Ok(format!("{}{path}", call.url.origin))
        });
        let htu = htu.transpose()?;
        let claims = Claims {
            iss: &self.issuer,
            aud: &self.audience,
            sub: permit.user(),
            client_id: permit.consumer().map(AsRef::as_ref),
            scope: scope.map_err(|_| UNWRITABLE)?,
            kind: Some(kind.as_str()),
            oauth_token: None,
            iat: now.0,
            exp: now.after(self.ttl).0,
            jti: &jti,
            htm: htu.as_ref().map(|_| call.head.parts.method.as_str()),
            htu: htu.as_deref(),
        };
        let jwt = self.signer.sign(&claims)?;
        let mut value = HeaderValue::try_from(jwt).map_err(|_| UNWRITABLE)?;
        value.set_sensitive(true);
        Ok(value)
    }
}
