//! A call to the API, from its route to the request that the API gets.
//!
//! It is one value, which each step reads: the authorizer and the rules of the operation decide on it, an assertion is bound to
//! it, and its head and body go on. What the steps prove of it are values of their own:
//! [`SignedRequest`](crate::request::parse::signed::SignedRequest), [`Verified`](crate::request::verify::Verified) and
//! [`Permit`](super::permit::Permit).

use std::{borrow::Cow, mem};

use http::{Method, header, request::Parts};
use http_body::Body as _;

use super::operations::{Found, Operations};
use crate::{
    oauth::LocationRule,
    request::{
        parse::{
            ParseRejection,
            head::{FieldNames, Head},
            origin::PublicUrl,
            signed::{Collected, is_multipart},
            unseen_body::UnseenBody,
        },
        route::TokenCall,
        verify::{Purpose, UnreadBody},
    },
    wire::server::{rejection::BodyRejection, request::RequestBody},
};

/// A call to the API, whether this process received it or another proxy describes it.
pub struct Call<'c> {
    /// Its head as sent.
    pub head: &'c Head<'c>,
    /// The names of its fields.
    pub names: &'c FieldNames,
    /// The public URL for which it was signed.
    pub url: &'c PublicUrl,
    /// The path to match and to forward.
    pub path: &'c [u8],
    /// The path for which it was signed.
    pub signed_path: Cow<'c, [u8]>,
    /// All operations.
    pub operations: &'c Operations,
    /// The one that it matches.
    pub found: Found<'c>,
    /// The token call of an API that stays the provider, if it is one.
    pub token_call: Option<TokenCall>,
    /// Its signature is enforced, where the consumer's record does not say so.
    pub is_enforced: bool,
    /// Why its head is not read, if it is malformed and only observed.
    pub malformed: Option<ParseRejection>,
    /// Its parameters.
    pub collected: Collected,
    /// Its body.
    pub body: CallBody<'c>,
}

/// The body of a call. What is read of it before the decision stays in it.
pub enum CallBody<'c> {
    /// This process received it, and forwards it if the call is permitted.
    Received(RequestBody),
    /// Another proxy describes the call and forwards it; the description came with the whole body.
    Shown(&'c RequestBody),
    /// Another proxy describes the call and forwards it, without the body or with one that may not be the whole.
    Unseen(UnseenBody),
}

impl Call<'_> {
    /// The method as sent.
    pub fn method(&self) -> &[u8] {
        self.head.parts.method.as_str().as_bytes()
    }

    /// The purpose for which it is verified. The token of an access token call is one of the API's.
    pub const fn purpose(&self) -> Purpose {
        match self.token_call {
            Some(TokenCall::RequestToken) => Purpose::RequestToken,
            _ => Purpose::Api,
        }
    }

    /// Where its protocol parameters may be.
    pub const fn location_rule(&self) -> LocationRule {
        match self.token_call {
            Some(_) => LocationRule::FlowApart,
            None => LocationRule::OneLocation,
        }
    }

    /// Another proxy describes it and forwards it.
    pub const fn is_described(&self) -> bool {
        !matches!(self.body, CallBody::Received(_))
    }

    /// Why its body is not here, if the description does not show all of it.
    pub const fn unseen(&self) -> Option<UnseenBody> {
        match self.body {
            CallBody::Unseen(unseen) => Some(unseen),
            CallBody::Received(_) | CallBody::Shown(_) => None,
        }
    }

    /// Its body, if it was read.
    ///
    /// # Errors
    /// The [`BodyRejection`] of a body that could not be read.
    pub fn held(&self) -> Result<Option<&[u8]>, BodyRejection> {
        self.body.readable().map_or(Ok(None), RequestBody::held)
    }

    /// Takes the body out to send it, if this process received it.
    pub fn take_body(&mut self) -> Option<RequestBody> {
        match mem::replace(&mut self.body, CallBody::Unseen(UnseenBody::Absent)) {
            CallBody::Received(body) => Some(body),
            CallBody::Shown(_) | CallBody::Unseen(_) => None,
        }
    }

    /// Whether there are bytes of its body that were not read.
    pub fn has_unread_body(&self) -> bool {
        self.body.has_unread(self.head.parts)
    }

    /// Whether it has a body that was not read as a form.
    ///
    /// # Errors
    /// The [`BodyRejection`] of a body that could not be read.
    pub fn has_other_body(&self) -> Result<bool, BodyRejection> {
        Ok(!self.collected.form && (self.has_unread_body() || self.held()?.is_some()))
    }

    /// The body that no signature covers, if it may be read for the advice. A caller that waits for `100 Continue` is not
    /// asked for a body that would be dropped.
    pub fn unread_body(&self) -> Option<UnreadBody<'_>> {
        let headers = &self.head.parts.headers;
        let body = self.body.readable()?;
        let is_readable =
            self.has_unread_body() && !self.names.present.has(headers, &header::EXPECT);
        is_readable.then(|| UnreadBody {
            body,
            is_multipart: is_multipart(headers),
        })
    }
}

impl CallBody<'_> {
    /// The body, if it can be read here.
    pub const fn readable(&self) -> Option<&RequestBody> {
        match self {
            Self::Received(body) => Some(body),
            Self::Shown(body) => Some(body),
            Self::Unseen(_) => None,
        }
    }

    /// Whether there are bytes that were not read. A description without a body does not say whether the request has one: it
    /// counts as one where it has a type, and where the method gives a body a meaning (RFC 9110 §9.3).
    fn has_unread(&self, parts: &Parts) -> bool {
        match self {
            Self::Received(body) => !body.is_end_stream(),
            Self::Shown(body) => !body.is_end_stream(),
            Self::Unseen(UnseenBody::Cut | UnseenBody::NoLength | UnseenBody::TooLarge { .. }) => {
                true
            }
            Self::Unseen(UnseenBody::Absent) => {
                let is_bodiless = matches!(
                    parts.method,
                    Method::GET | Method::HEAD | Method::DELETE | Method::OPTIONS
                );
                !is_bodiless || parts.headers.contains_key(header::CONTENT_TYPE)
            }
        }
    }
}
