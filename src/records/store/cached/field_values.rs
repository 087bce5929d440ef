//! The values of the identity headers of a call, which a consumer or an access token keeps ready.

use std::ops::Range;

use arc_swap::ArcSwapOption;
use http::HeaderValue;

use crate::base::clock::UnixTime;

/// The values of the identity headers of a call, which requests clone.
#[derive(Debug, Clone, Copy)]
pub struct FieldValues<'a> {
    /// The user's id.
    pub user: Option<&'a HeaderValue>,
    /// The consumer key.
    pub consumer: &'a HeaderValue,
    /// The permissions, separated by spaces.
    pub permissions: &'a HeaderValue,
    /// The last assertion about the caller, if one assertion serves several calls.
    pub assertion: &'a ArcSwapOption<CachedAssertion>,
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
