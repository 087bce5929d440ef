//! Detects signed calls, and collects everything that a signature covers.
//!
//! The credentials of a request decide its kind, before any check: with a protocol parameter or the scheme `OAuth` it is a
//! signed call, valid or not, and is never tried as another kind.

use std::{
    cell::RefCell,
    net::IpAddr,
    ops::{Deref, DerefMut},
    time::Duration,
};

use http::{HeaderMap, header};

use super::{ParseRejection, origin::PublicUrl, target::RequestTarget};
use crate::{
    base::network::http_fields::{all, list, single},
    oauth::{
        BaseString, Credentials, DeviationSet, LocationRule, MethodSet, Parameters,
        ProtocolParameter, Selection, ShapeError, has_more_fields, has_other_charset,
        is_form_content_type, is_oauth_scheme, names_parameter,
    },
    request::bearer,
    wire::server::{
        caller::{
            buffered::{Reservation, Shares},
            stream::Limits,
        },
        rejection::BodyRejection,
    },
};

/// A request whose parameters are in shape; nothing about it is proved.
#[derive(Debug)]
pub struct SignedRequest<'r> {
    /// The method as sent.
    pub method: &'r [u8],
    /// The public URL for which it was signed.
    pub url: &'r PublicUrl,
    /// The path for which it was signed.
    pub path: &'r [u8],
    /// The query as sent, for advice alone.
    pub query: &'r [u8],
    /// All parameters.
    pub parameters: &'r Parameters,
    /// The protocol parameters.
    pub credentials: Credentials<'r>,
    /// The body, where it was read: a form, or one with a hash.
    pub body: Option<&'r [u8]>,
    /// The nearest address to the caller that is known.
    pub caller: Option<IpAddr>,
    /// The address of the caller itself, which rules judge, if it is known.
    pub own_address: Option<IpAddr>,
    /// The request came under TLS, here or at a trusted proxy.
    pub secure: bool,
    /// Another proxy forwards it as it is: nothing that is left unsigned can be taken out of it here.
    pub is_described: bool,
    /// The accepted difference of its timestamp from the clock, either way, where it is not the usual one.
    pub window: Option<Duration>,
}

impl<'r> SignedRequest<'r> {
    /// The base string that it has to be signed with.
    pub fn base_string(&self, selection: Selection) -> BaseString<'r> {
        BaseString {
            method: self.method,
            origin: &self.url.encoded,
            path: self.path,
            parameters: self.parameters,
            selection,
            deviations: DeviationSet::NONE,
        }
    }
}

/// The parameters of a request.
#[derive(Debug)]
pub struct Collected {
    /// The parameters of header, query and form.
    pub parameters: Pooled,
    /// The request carries OAuth credentials.
    pub signed: bool,
    /// Its Authorization has the scheme Bearer. It is a call with a Bearer token where these are accepted.
    pub bearer: bool,
    /// Those of a form are among them.
    pub form: bool,
}

impl Collected {
    /// Collects the parameters of header and query; those of a form follow with [`Collected::read_form`].
    ///
    /// # Errors
    /// Two Authorization lines (either could be the one that counts), and [`BodyRejection`] where `memory` has no room left
    /// for the parameters.
    pub fn from_head(
        headers: &HeaderMap,
        target: &RequestTarget<'_>,
        memory: Reservation,
        limits: &Limits,
    ) -> Result<Self, ParseRejection> {
        let authorization = single(headers, &header::AUTHORIZATION)
            .map_err(|_| ParseRejection::Malformed("Authorization is given more than once"))?;
        let is_other = |value: &&[u8]| !is_oauth_scheme(value);
        let other = authorization.filter(is_other);
        let bearer = other.and_then(bearer::token);
        // No parser reads a parameter in a token without an equals sign.
        let is_plain = matches!(bearer, Some(Ok(token)) if !token.contains(&b'='));
        if other.is_some_and(|value| !is_plain && names_parameter(value)) {
            return Err(ParseRejection::Malformed(
                "Authorization names an oauth_ parameter under another scheme than OAuth",
            ));
        }
        let authorization = authorization.filter(|value| !is_other(value));
        let mut parameters = Pooled::take(memory);
        parameters.read_head(authorization, target.query.unwrap_or_default());
        // They are kept until the body has arrived.
        parameters.count(0, limits.form_shares)?;
        Ok(Self {
            signed: authorization.is_some() || parameters.has_protocol_parameter(),
            bearer: bearer.is_some(),
            parameters,
            form: false,
        })
    }

    /// No parameters, of a head that is not read.
    pub fn unread(memory: Reservation) -> Self {
        Self {
            parameters: Pooled::take(memory),
            signed: false,
            bearer: false,
            form: false,
        }
    }

    /// Collects the parameters of a form.
    ///
    /// # Errors
    /// [`BodyRejection::TooLarge`] past `form_fields`, and [`BodyRejection::Busy`] where there is no memory left for the
    /// parameters.
    pub fn read_form(&mut self, form: &[u8], limits: &Limits) -> Result<(), BodyRejection> {
        if has_more_fields(form, limits.form_fields) {
            return Err(BodyRejection::TooLarge);
        }
        let _ = self.parameters.read_body(form);
        self.parameters.count(form.len(), limits.form_shares)?;
        self.signed |= self.parameters.has_protocol_parameter();
        self.form = true;
        Ok(())
    }

    /// Whether a body that is not a form has to be read before the call can be verified: the parameters have a hash of it.
    ///
    /// # Errors
    /// [`ShapeError`]: parameters that are not in shape are rejected before the body has arrived.
    pub fn needs_body(&self, methods: MethodSet, rule: LocationRule) -> Result<bool, ShapeError> {
        if self.form || !self.parameters.was_sent(ProtocolParameter::BodyHash) {
            return Ok(false);
        }
        self.parameters.protocol(methods, rule)?;
        Ok(true)
    }
}

/// Whether any Content-Type says that the body is a form (RFC 5849 §3.4.1.3.1), in whatever spelling an API may take
/// for one ([`is_form_content_type`]).
///
/// # Errors
/// A second Content-Type line, a form with a Content-Encoding, and one in a charset whose names would be read otherwise here.
pub fn is_form(headers: &HeaderMap) -> Result<bool, ParseRejection> {
    let types = || all(headers, &header::CONTENT_TYPE);
    if !types().any(is_form_content_type) {
        return Ok(false);
    }
    if types().nth(1).is_some() {
        return Err(ParseRejection::Malformed(
            "Content-Type is given more than once",
        ));
    }
    if types().any(has_other_charset) {
        return Err(ParseRejection::Malformed(
            "a form has a charset other than UTF-8, US-ASCII and ISO-8859-1",
        ));
    }
    let encoded = all(headers, &header::CONTENT_ENCODING)
        .flat_map(list)
        .any(|coding| !coding.eq_ignore_ascii_case(b"identity"));
    if encoded {
        // The API would decode the form; the encoded bytes cannot be read here.
        return Err(ParseRejection::Malformed(
            "a form with a Content-Encoding cannot be verified",
        ));
    }
    Ok(true)
}

/// Whether the body consists of parts (RFC 7578).
pub fn is_multipart(headers: &HeaderMap) -> bool {
    const TYPE: &[u8] = b"multipart/form-data";
    let mut types = all(headers, &header::CONTENT_TYPE);
    types.any(|it| {
        let begins = it.get(..TYPE.len());
        begins.is_some_and(|begins| begins.eq_ignore_ascii_case(TYPE))
    })
}

thread_local! {
    #[expect(clippy::vec_box, reason = "they are lent boxed, so that what holds one stays small")]
    static FREE: RefCell<Vec<Box<Parameters>>> = const { RefCell::new(Vec::new()) };
}

/// The most that are kept for each worker.
const MAX_KEPT: usize = 256;

/// [`Parameters`] that return to their worker when dropped, so that their memory is used again. Memory that they take
/// beyond that counts as memory of forms.
#[derive(Debug)]
pub struct Pooled {
    parameters: Option<Box<Parameters>>,
    reservation: Reservation,
}

impl Pooled {
    fn take(reservation: Reservation) -> Self {
        let free = FREE.with_borrow_mut(Vec::pop);
        Self {
            parameters: Some(free.unwrap_or_default()),
            reservation,
        }
    }

    /// Counts the memory of the parameters, in addition to a body of `beside` bytes.
    ///
    /// # Errors
    /// [`BodyRejection::TooLarge`] if it is more than one caller may ever have, [`BodyRejection::Busy`] if too much is in
    /// use now.
    fn count(&mut self, beside: usize, shares: Shares) -> Result<(), BodyRejection> {
        let bytes = self.extra_bytes();
        match self.reservation.resize(bytes, shares) {
            Err(BodyRejection::Busy) if bytes + beside > shares.each => {
                Err(BodyRejection::TooLarge)
            }
            counted => counted,
        }
    }
}

const LENT: &str = "only `drop` takes it out";

impl Deref for Pooled {
    type Target = Parameters;

    #[expect(clippy::expect_used, reason = "only `drop` takes it out")]
    fn deref(&self) -> &Parameters {
        self.parameters.as_deref().expect(LENT)
    }
}

impl DerefMut for Pooled {
    #[expect(clippy::expect_used, reason = "only `drop` takes it out")]
    fn deref_mut(&mut self) -> &mut Parameters {
        self.parameters.as_deref_mut().expect(LENT)
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some(mut parameters) = self.parameters.take() {
            parameters.clear();
            let _ = FREE.try_with(|free| {
                let mut free = free.borrow_mut();
                if free.len() < MAX_KEPT {
                    free.push(parameters);
                }
            });
        }
    }
}
