//! The facts for the API about the caller of a permitted call: the identity headers, and a signed assertion of them.
//! This is the one place where their names and values are made.

mod assertion;
pub mod keys;
pub mod settings;

use http::{HeaderName, HeaderValue};
use thiserror::Error;

pub use self::assertion::{Assertion, Bind, Claims};
use crate::{
    base::text::names::NameEncoding,
    request::policy::{call::Call, permit::Permit},
};

/// The fields that identify callers to the API.
pub struct Identity {
    /// The name of the one with the user's id.
    pub user: HeaderName,
    /// Of the one with the consumer key.
    pub consumer: HeaderName,
    /// Of the one with the permissions, separated by spaces.
    pub permissions: HeaderName,
    /// Of the one with the kind of caller.
    pub kind: HeaderName,
    /// The signed one, if it is configured.
    pub assertion: Option<Assertion>,
    /// The names of the fields that have signed parameters, of all operations.
    pub parameters: Vec<HeaderName>,
    /// The OAuth credentials go on to the API, where no operation says otherwise.
    pub forward_authorization: bool,
}

/// A fault of this program: it cannot describe a caller to the API.
#[derive(Debug, Clone, Copy, Error)]
#[error("{0}")]
pub struct Fault(pub(crate) &'static str);

impl Identity {
    /// The names of all fields, also of those that callers of another kind do not have.
    pub fn names(&self) -> impl Iterator<Item = &HeaderName> {
        let plain = [&self.user, &self.consumer, &self.permissions, &self.kind];
        let signed = self.assertion.as_ref().map(|signed| &signed.header);
        plain.into_iter().chain(signed).chain(&self.parameters)
    }

    /// The value of the field with the assertion, if this call has one: anonymous and observed calls have none.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn assertion(
        &self,
        permit: &Permit,
        call: &Call<'_>,
    ) -> Result<Option<HeaderValue>, Fault> {
        match &self.assertion {
            None => Ok(None),
            Some(assertion) => assertion.value(permit, call),
        }
    }

    /// Gives `put` each field of a permitted call; `assertion` is the value for it that [`Identity::assertion`] returned.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn fields(
        &self,
        permit: &Permit,
        assertion: Option<&HeaderValue>,
        mut put: impl FnMut(&HeaderName, &HeaderValue),
    ) -> Result<(), Fault> {
        if let Some(identity) = permit.identity() {
            let identity = identity.ok_or(Fault("a consumer has no field value"))?;
            if let Some(user) = &identity.user {
                put(&self.user, user);
            }
            put(&self.consumer, &identity.consumer);
            put(&self.permissions, &identity.permissions);
        } else if let Some(user) = permit.user() {
            let user = HeaderValue::from_str(&NameEncoding::field_text(user));
            put(
                &self.user,
                &user.map_err(|_| Fault("a user has no field value"))?,
            );
        }
        if let Some(kind) = permit.kind() {
            put(&self.kind, &HeaderValue::from_static(kind.as_str()));
        }
        if let (Some(signed), Some(value)) = (&self.assertion, assertion) {
            put(&signed.header, value);
        }
        for (name, value) in permit.headers() {
            put(name, value);
        }
        Ok(())
    }
}
