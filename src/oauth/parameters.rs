//! The parameters of one request, RFC 5849 §3.4.1.3, kept the way the base string needs them.
//!
//! Names and values are decoded and encoded again in one pass over what was sent, into memory that is used again for the next
//! request. They are kept encoded *twice*, because that is how the base string shows them: §3.4.1.3.2 encodes each name and value,
//! §3.4.1.1 encodes the joined text again. An entry is one stretch of bytes, `name%3Dvalue`, that goes into the hash as it lies.
//!
//! Sorting the doubly encoded bytes gives the order that §3.4.1.3.2 asks of the singly encoded ones: the second encoding replaces
//! each `%` by `%25` and changes nothing else, `%` is smaller than every unreserved character, and where both sides have one the
//! inserted `25` is equal on both.

mod arena;
mod check;
mod order;
mod read;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, cmp::Ordering, fmt, ops::Range};

pub use self::read::{has_more_fields, is_form_content_type, is_oauth_scheme};
use self::{arena::Arena, order::Rank};
use super::{
    name::{OAUTH_PREFIX, ProtocolParameter},
    percent::ENCODED_PERCENT,
    shape::{Place, ShapeError},
    sink::Sink,
};

/// Which parameters a signature covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Selection {
    /// All of header, query and form body, as RFC 5849 §3.4.1.3.1 has it.
    Rfc5849,
    /// The `oauth_` parameters and those of a form body, as the service's description has it: the query is left unsigned.
    Description,
}

/// All request parameters of one request.
///
/// Made to be used again: [`Parameters::clear`] keeps the memory. In the steady state nothing is allocated.
///
/// When a `read_` function fails, the parameters that could be read are kept, so that the kind of caller can still be told, and
/// [`Parameters::protocol`] fails with the same error: a request that was not understood cannot be verified by forgetting to look
/// at a result.
#[derive(Default)]
pub struct Parameters {
    /// `name%3Dvalue` of one parameter after the other, each part encoded twice.
    arena: Arena,
    /// The realm, and decoded values of protocol parameters where they differ from the bytes in the arena.
    plain: Vec<u8>,
    /// As they came.
    entries: Vec<Entry>,
    /// The entries that can be signed, sorted after each read.
    order: Vec<Rank>,
    found: [Option<Value>; ProtocolParameter::ALL.len()],
    /// Protocol parameters that were sent, also where their value was malformed.
    sent: u16,
    /// Protocol parameters that were sent again.
    repeated: u16,
    /// Places with an `oauth_` name, known or not, as [`Place::bit`]s.
    oauth_places: u8,
    /// Whether there is an `oauth_` name that is no [`ProtocolParameter`].
    unknown_oauth: bool,
    /// Whether an `oauth_` name other than `oauth_token` has an empty value.
    empty_oauth: bool,
    realm: Option<Span>,
    fault: Option<ShapeError>,
}

/// One parameter in the arena: the name, `%3D`, the value.
#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u32,
    value_start: u32,
    end: u32,
    place: Place,
    /// The name begins with `oauth_`.
    oauth: bool,
}

/// Where the decoded value of a protocol parameter lies.
#[derive(Debug, Clone, Copy)]
enum Value {
    /// In the arena: nothing in it had to be encoded.
    Arena(Span),
    /// Beside it.
    Plain(Span),
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    end: u32,
}

impl Span {
    fn new(start: usize, end: usize) -> Self {
        Self {
            start: position(start),
            end: position(end),
        }
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// `=` encoded once more, between name and value.
const ENCODED_EQUALS: &[u8; 3] = b"%3D";
/// `&` encoded once more, between parameters.
const ENCODED_AMPERSAND: &[u8] = b"%26";

/// Memory that an unusually large request needed is given back down to these; usual ones stay well below. Every worker
/// keeps some of them, and every request may have as much without its being counted.
const KEPT_BYTES: usize = 8 * 1024;
const KEPT_ENTRIES: usize = 128;

impl Parameters {
    /// No parameters.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many bytes of memory this request needed beyond those that [`Parameters::clear`] keeps.
    #[must_use]
    pub fn extra_bytes(&self) -> usize {
        let entries = |capacity: usize| capacity.saturating_sub(KEPT_ENTRIES);
        self.arena.capacity().saturating_sub(KEPT_BYTES)
            + self.plain.capacity().saturating_sub(KEPT_BYTES)
            + entries(self.entries.capacity()) * size_of::<Entry>()
            + entries(self.order.capacity()) * size_of::<Rank>()
    }

    /// Forgets the request and keeps the memory, up to about 20 KiB of it.
    pub fn clear(&mut self) {
        self.arena.clear(KEPT_BYTES);
        self.plain.clear();
        self.plain.shrink_to(KEPT_BYTES);
        self.entries.clear();
        self.entries.shrink_to(KEPT_ENTRIES);
        self.order.clear();
        self.order.shrink_to(KEPT_ENTRIES);
        self.found = Default::default();
        self.sent = 0;
        self.repeated = 0;
        self.oauth_places = 0;
        self.unknown_oauth = false;
        self.empty_oauth = false;
        self.realm = None;
        self.fault = None;
    }

    /// Whether a protocol parameter was sent anywhere: what makes a request a signed one, right or wrong.
    #[must_use]
    pub fn has_protocol_parameter(&self) -> bool {
        self.sent != 0
    }

    /// Whether that protocol parameter was sent anywhere, right or wrong.
    #[must_use]
    pub fn was_sent(&self, parameter: ProtocolParameter) -> bool {
        self.sent & parameter.bit() != 0
    }

    /// Whether there is a name that begins with `oauth_`, known or not, in that place.
    #[must_use]
    pub fn has_oauth_name_in(&self, place: Place) -> bool {
        self.oauth_places & place.bit() != 0
    }

    /// The realm of the Authorization value, which is never signed (§3.4.1.3.1).
    #[must_use]
    pub fn realm(&self) -> Option<&[u8]> {
        self.realm.map(|span| &self.plain[span.range()])
    }

    /// All parameters as they came, `oauth_signature` included, `realm` not.
    pub fn iter(&self) -> impl Iterator<Item = Parameter<'_>> {
        self.entries.iter().map(|entry| Parameter {
            place: entry.place,
            name: decode_twice(self.name(entry)),
            value: decode_twice(self.value(entry)),
        })
    }

    /// The values of the parameters with that name, as they came.
    pub fn find<'a>(&'a self, name: &str) -> impl Iterator<Item = Parameter<'a>> {
        self.iter()
            .filter(move |parameter| *parameter.name == *name.as_bytes())
    }

    /// The normalized parameters, §3.4.1.3.2.
    #[must_use]
    pub fn normalized(&self, selection: Selection) -> Vec<u8> {
        let mut once = Vec::with_capacity(self.arena.len());
        let mut separator: &[u8] = b"";
        for entry in self.signed(selection) {
            once.write(separator);
            decode_once(&mut once, self.name(entry));
            once.write(b"=");
            decode_once(&mut once, self.value(entry));
            separator = b"&";
        }
        once
    }

    /// Writes the normalized parameters, encoded once more.
    pub(super) fn write_encoded(&self, selection: Selection, sink: &mut impl Sink) {
        let mut first = true;
        for entry in self.signed(selection) {
            if !first {
                sink.write(ENCODED_AMPERSAND);
            }
            first = false;
            sink.write(&self.arena[entry.start as usize..entry.end as usize]);
        }
    }

    /// The entries that the signature covers, sorted.
    fn signed(&self, selection: Selection) -> impl Iterator<Item = &Entry> {
        self.order
            .iter()
            .map(|rank| &self.entries[rank.entry as usize])
            .filter(move |entry| match selection {
                Selection::Rfc5849 => true,
                Selection::Description => entry.oauth || entry.place == Place::Body,
            })
    }

    fn name(&self, entry: &Entry) -> &[u8] {
        &self.arena[entry.name()]
    }

    fn value(&self, entry: &Entry) -> &[u8] {
        &self.arena[entry.value()]
    }

    /// The decoded value of a protocol parameter.
    pub(super) fn protocol_value(&self, parameter: ProtocolParameter) -> Option<&[u8]> {
        self.found[parameter as usize].map(|value| match value {
            Value::Arena(span) => &self.arena[span.range()],
            Value::Plain(span) => &self.plain[span.range()],
        })
    }
}

impl fmt::Debug for Parameters {
    /// Says how many there are and no more: values are credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parameters")
            .field("count", &self.entries.len())
            .finish_non_exhaustive()
    }
}

impl Entry {
    fn name(&self) -> Range<usize> {
        self.start as usize..self.value_start as usize - ENCODED_EQUALS.len()
    }

    fn value(&self) -> Range<usize> {
        self.value_start as usize..self.end as usize
    }
}

fn compare(arena: &[u8], left: &Entry, right: &Entry) -> Ordering {
    let by_name = arena[left.name()].cmp(&arena[right.name()]);
    by_name.then_with(|| arena[left.value()].cmp(&arena[right.value()]))
}

/// Positions fit: reading bounds the arena, and nothing has more parts than the arena has bytes.
fn position(at: usize) -> u32 {
    debug_assert!(u32::try_from(at).is_ok());
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the arena is bounded below u32::MAX before anything is written"
    )]
    let position = at as u32;
    position
}

/// A request parameter, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter<'a> {
    /// Where it stood.
    pub place: Place,
    /// Its name.
    pub name: Cow<'a, [u8]>,
    /// Its value.
    pub value: Cow<'a, [u8]>,
}

impl Parameter<'_> {
    /// Whether the name begins with `oauth_`.
    #[must_use]
    pub fn is_oauth(&self) -> bool {
        self.name.starts_with(OAUTH_PREFIX)
    }
}

/// Takes the outer encoding off what [`read`] wrote.
fn decode_once(out: &mut Vec<u8>, twice: &[u8]) {
    let mut rest = twice;
    while let Some(at) = memchr::memchr(b'%', rest) {
        // `%25`, the only escape that an outer encoding of encoded text has.
        let (plain, escape) = rest.split_at(at);
        out.extend_from_slice(plain);
        out.push(b'%');
        rest = &escape[ENCODED_PERCENT.len()..];
    }
    out.extend_from_slice(rest);
}

/// Takes both encodings off what [`read`] wrote.
fn decode_twice(twice: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'%', twice).is_none() {
        return Cow::Borrowed(twice);
    }
    let mut plain = Vec::with_capacity(twice.len());
    read::decode_twice_into(&mut plain, twice);
    Cow::Owned(plain)
}
