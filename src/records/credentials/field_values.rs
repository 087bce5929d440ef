//! The values of the identity headers of a call, which a consumer or an access token keeps ready.

use std::ops::Range;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::{HeaderValue, header::InvalidHeaderValue};

use crate::base::{
    clock::UnixTime,
    text::names::{ConsumerKey, NameEncoding, Permission, UserId},
};

/// The values of the identity headers of a call, which requests clone. Each credential has values of its own: a clone
/// writes a count, and only workers that serve the same credential write the same one.
#[derive(Debug)]
pub struct FieldValues {
    /// The user's id.
    pub user: Option<HeaderValue>,
    /// The consumer key.
    pub consumer: HeaderValue,
    /// The permissions, separated by spaces.
    pub permissions: HeaderValue,
    /// The last assertion about the caller, if one assertion serves several calls.
    pub assertion: ArcSwapOption<CachedAssertion>,
}

/// A signed assertion that serves several calls.
#[derive(Debug)]
pub struct CachedAssertion {
    /// The value of its field.
    pub value: HeaderValue,
    /// The number of the signer that made it.
    pub signer: u64,
    /// The times at which it may be used.
    pub usable: Range<UnixTime>,
}

impl FieldValues {
    /// # Errors
    /// A name is not valid in a field.
    pub(super) fn new(
        user: Option<&UserId>,
        consumer: &ConsumerKey,
        permissions: &[Permission],
    ) -> Result<Self, InvalidHeaderValue> {
        let user = NameEncoding::field_text(user.map_or("", UserId::as_str));
        let consumer = NameEncoding::field_text(consumer.as_str());
        let permissions: Vec<&str> = permissions.iter().map(Permission::as_str).collect();
        // One piece of memory for all three: a process may have a million of them.
        let mut text = Bytes::from([&*user, &*consumer, &permissions.join(" ")].concat());
        let mut next = |length| HeaderValue::from_maybe_shared(text.split_to(length));
        Ok(Self {
            user: (!user.is_empty()).then(|| next(user.len())).transpose()?,
            consumer: next(consumer.len())?,
            permissions: HeaderValue::from_maybe_shared(text)?,
            assertion: ArcSwapOption::empty(),
        })
    }
}
