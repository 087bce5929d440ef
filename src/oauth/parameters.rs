//! The parameters of one request, RFC 5849 §3.4.1.3.
//!
//! Names and values are kept decoded, one after the other in one buffer whose memory the next request uses again. They are
//! encoded while the base string is written: §3.4.1.3.2 encodes each name and value, §3.4.1.1 encodes the joined text
//! again. Nearly all of them have unreserved characters only and are the same encoded, so such a pair is kept as
//! `name%3Dvalue` and copied at once.

mod check;
pub mod deviation;
pub mod name;
mod read;
mod scan;
pub mod shape;
#[cfg(test)]
mod tests;

use std::{cmp::Ordering, fmt, mem::take, ops::Range};

pub use self::{
    read::{fields, has_more_fields, has_other_charset, is_form_content_type, is_oauth_scheme},
    scan::BodyNames,
};
use super::{
    percent::{self, encoded_order},
    sink::Sink,
};
use crate::oauth::parameters::{
    deviation::{Deviation, DeviationSet},
    name::{OAUTH_PREFIX, ParameterNames, ProtocolParameter, folded_name},
    shape::{ParameterLocation, ShapeError},
};

/// The parameters that a signature covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Selection {
    /// All of header, query and form body (RFC 5849 §3.4.1.3.1).
    Rfc5849,
    /// The `oauth_` parameters and those of a form body, as the service describes it: the query is left unsigned.
    Description,
}

/// All request parameters of one request.
///
/// Made to be used again: [`Parameters::clear`] keeps the memory. In the steady state nothing is allocated.
///
/// When a `read_` function fails, the parameters that could be read are kept, so that the kind of caller is still known, and
/// [`Parameters::protocol`] fails with the same error: a request that was not understood cannot be verified by ignoring a result.
#[derive(Default, Clone)]
pub struct Parameters {
    /// For each parameter its name, `%3D` and its value, decoded; and the realm.
    text: Vec<u8>,
    /// The parameters in the order in which they came.
    entries: Vec<Entry>,
    /// The entries that can be signed, sorted after each read.
    order: Vec<Rank>,
    /// The entry of each protocol parameter; the last one if it was repeated, and none there if its value was malformed.
    found: [Option<usize>; ProtocolParameter::ALL.len()],
    /// Locations with an `oauth_` name, known or not, as [`ParameterLocation::bit`]s.
    oauth_locations: u8,
    /// Some other name can be read as an `oauth_` name.
    has_look_alike: bool,
    /// Names of protocol parameters after a `;`, at which some frameworks split a query or a form too.
    after_semicolon: ParameterNames,
    /// The values of `_method` and the like where a `;` begins or ends a pair, at most [`MAX_LATE_METHODS`].
    late_methods: Vec<Vec<u8>>,
    realm: Option<Range<usize>>,
    malformed: Option<ShapeError>,
}

/// One parameter in the text.
#[derive(Debug, Clone, Copy)]
struct Entry {
    start: usize,
    value_start: usize,
    end: usize,
    location: ParameterLocation,
    /// Nothing in name and value has to be encoded.
    is_plain: bool,
    /// The name begins with `oauth_`.
    oauth: bool,
    parameter: Option<ProtocolParameter>,
}

/// An entry's number after the [`prefix`] of its name, so that sorting mostly compares numbers.
#[derive(Debug, Clone, Copy)]
struct Rank {
    prefix: u64,
    entry: usize,
}

/// Memory that an unusually large request needed is released down to these; usual requests stay well below. Every worker
/// keeps some of them, and every request may have this much without its being counted.
const KEPT_BYTES: usize = 8 * 1024;
const KEPT_ENTRIES: usize = 128;

/// A request with more values of `_method` and the like counts as one that hides some.
const MAX_LATE_METHODS: usize = 16;

/// Whether some framework takes a method from a parameter with this name: `_method`, or in ASP.NET the name of the field.
fn names_method(name: &[u8]) -> bool {
    // Nearly every name ends here.
    let may_be = |byte: &u8| !byte.is_ascii_alphanumeric() || matches!(byte, b'x' | b'X');
    name.first().is_some_and(may_be)
        && [&b"_method"[..], b"x-http-method-override"].contains(&&*folded_name(name))
}

/// `=` encoded once more, between name and value.
const ENCODED_EQUALS: &[u8] = b"%3D";

impl Parameters {
    /// No parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes of memory that this request needed beyond those that [`Parameters::clear`] keeps.
    pub fn extra_bytes(&self) -> usize {
        let entries = |capacity: usize| capacity.saturating_sub(KEPT_ENTRIES);
        self.text.capacity().saturating_sub(KEPT_BYTES)
            + entries(self.entries.capacity()) * size_of::<Entry>()
            + entries(self.order.capacity()) * size_of::<Rank>()
    }

    /// Forgets the request and keeps the memory, up to about 16 KiB of it.
    pub fn clear(&mut self) {
        let Self {
            mut text,
            mut entries,
            mut order,
            ..
        } = take(self);
        text.clear();
        text.shrink_to(KEPT_BYTES);
        entries.clear();
        entries.shrink_to(KEPT_ENTRIES);
        order.clear();
        order.shrink_to(KEPT_ENTRIES);
        *self = Self {
            text,
            entries,
            order,
            ..Self::default()
        };
    }

    /// Whether a protocol parameter was sent anywhere: this makes a request a signed one, right or wrong.
    #[must_use]
    pub fn has_protocol_parameter(&self) -> bool {
        self.found.iter().any(Option::is_some)
    }

    /// Whether that protocol parameter was sent anywhere, right or wrong.
    #[must_use]
    pub fn was_sent(&self, parameter: ProtocolParameter) -> bool {
        self.found[parameter as usize].is_some()
    }

    /// Whether there is a name that begins with `oauth_`, known or not, in that location.
    #[must_use]
    pub fn has_oauth_name_in(&self, location: ParameterLocation) -> bool {
        self.oauth_locations & location.bit() != 0
    }

    /// The realm of the Authorization value, which is never signed (§3.4.1.3.1).
    pub fn realm(&self) -> Option<&[u8]> {
        self.realm.clone().map(|range| &self.text[range])
    }

    /// All parameters as they came, `oauth_signature` included, `realm` not.
    pub fn iter(&self) -> impl Iterator<Item = Parameter<'_>> + Clone {
        self.entries.iter().map(|entry| Parameter {
            location: entry.location,
            name: self.name(entry),
            value: self.value(entry),
        })
    }

    /// The parameters with that name, as they came.
    pub fn find<'a>(&'a self, name: &str) -> impl Iterator<Item = Parameter<'a>> {
        self.iter()
            .filter(move |parameter| parameter.name == name.as_bytes())
    }

    /// Whether there may be values that [`Self::method_overrides`] does not have.
    #[must_use]
    pub const fn hides_methods(&self) -> bool {
        self.late_methods.len() >= MAX_LATE_METHODS
    }

    /// Whether some framework may find a method in a parameter.
    #[must_use]
    pub fn may_name_method(&self) -> bool {
        self.hides_methods() || self.method_overrides().next().is_some()
    }

    /// The values of `_method` and the like in upper case, which some frameworks take for the method of the call. They ignore
    /// what is not a word.
    pub fn method_overrides(&self) -> impl Iterator<Item = Vec<u8>> {
        let named = self.iter().filter(|parameter| names_method(parameter.name));
        let late = self.late_methods.iter().map(Vec::as_slice);
        let values = named.map(|parameter| parameter.value).chain(late);
        let words = values.map(<[u8]>::trim_ascii).filter(|value| {
            // What ends at a `;` for those who split there is the whole value for others.
            !value.is_empty() && value.iter().all(u8::is_ascii_alphabetic)
        });
        words.map(<[u8]>::to_ascii_uppercase)
    }

    /// The normalized parameters, §3.4.1.3.2.
    pub fn normalized(&self, selection: Selection) -> Vec<u8> {
        let mut normalized = Vec::with_capacity(self.text.len());
        for entry in self.signed(selection) {
            if !normalized.is_empty() {
                normalized.push(b'&');
            }
            percent::encode_to(&mut normalized, self.name(entry));
            normalized.push(b'=');
            percent::encode_to(&mut normalized, self.value(entry));
        }
        normalized
    }

    /// Writes the normalized parameters, encoded once more.
    pub(super) fn write_encoded(
        &self,
        selection: Selection,
        deviations: DeviationSet,
        sink: &mut impl Sink,
    ) {
        if !deviations.is_empty() {
            return self.write_deviating(selection, deviations, sink);
        }
        let mut separator: &[u8] = b"";
        for entry in self.signed(selection) {
            sink.write(separator);
            self.write_entry(entry, sink);
            separator = b"%26";
        }
    }

    #[inline(always)]
    fn write_entry(&self, entry: &Entry, sink: &mut impl Sink) {
        if entry.is_plain {
            sink.write(&self.text[entry.start..entry.end]);
        } else {
            percent::encode_twice_to(sink, self.name(entry));
            sink.write(ENCODED_EQUALS);
            percent::encode_twice_to(sink, self.value(entry));
        }
    }

    /// Writes them as a consumer signs them that is allowed [`Deviation::RepeatsOnce`] or [`Deviation::ValuesUnencoded`].
    #[cold]
    fn write_deviating(
        &self,
        selection: Selection,
        deviations: DeviationSet,
        sink: &mut impl Sink,
    ) {
        let entries = Vec::from_iter(self.signed(selection));
        // Equal names stand next to each other.
        let named = entries.chunk_by(|one, other| self.name(one) == self.name(other));
        let mut separator: &[u8] = b"";
        for named in named {
            let last = named.iter().max_by_key(|entry| entry.start);
            let signed = match last {
                Some(last) if deviations.contains(Deviation::RepeatsOnce) => {
                    std::slice::from_ref(last)
                }
                _ => named,
            };
            for entry in signed {
                sink.write(separator);
                if entry.parameter.is_some() && deviations.contains(Deviation::ValuesUnencoded) {
                    sink.write(self.name(entry));
                    sink.write(ENCODED_EQUALS);
                    percent::encode_to(sink, self.value(entry));
                } else {
                    self.write_entry(entry, sink);
                }
                separator = b"%26";
            }
        }
    }

    /// Whether some parameter is repeated, and every copy of a name has the same value.
    #[must_use]
    pub fn has_equal_copies(&self) -> bool {
        let repeated = self.repeated();
        let mut repeated = repeated.peekable();
        repeated.peek().is_some()
            && repeated.all(|[one, other]| self.value(one) == self.value(other))
    }

    /// Entries of one name, in pairs.
    fn repeated(&self) -> impl Iterator<Item = [&Entry; 2]> {
        let pairs = self.order.array_windows();
        let pairs = pairs.map(|pair: &[Rank; 2]| pair.map(|rank| &self.entries[rank.entry]));
        pairs.filter(|[one, other]| self.name(one) == self.name(other))
    }

    /// The deviations of `accepted` that change the base string of these parameters.
    #[must_use]
    pub fn deviations_in_text(&self, accepted: DeviationSet) -> DeviationSet {
        if accepted.is_empty() {
            return accepted;
        }
        let applies = |deviation: &Deviation| match deviation {
            Deviation::RepeatsOnce => self.repeated().next().is_some(),
            Deviation::ValuesUnencoded => self.can_be_unencoded(),
            Deviation::CallbackAbsent | Deviation::KeyWithoutAmpersand | Deviation::EmptySecret => {
                false
            }
        };
        accepted.iter().filter(applies).collect()
    }

    /// Whether [`Deviation::ValuesUnencoded`] changes the base string, and leaves it with one meaning: a value with an `&`
    /// would read as two parameters.
    fn can_be_unencoded(&self) -> bool {
        let mut known = self
            .entries
            .iter()
            .filter(|entry| entry.parameter.is_some());
        let is_signature = |entry: &Entry| entry.parameter == Some(ProtocolParameter::Signature);
        let is_changed = |entry: &Entry| !entry.is_plain && !is_signature(entry);
        known.clone().any(is_changed) && !known.any(|entry| self.value(entry).contains(&b'&'))
    }

    /// The values of the parameters with that name that a signature with this selection and these deviations covers.
    pub fn signed_values(
        &self,
        selection: Selection,
        deviations: DeviationSet,
        name: &[u8],
    ) -> Vec<&[u8]> {
        let named = self
            .signed(selection)
            .filter(|entry| self.name(entry) == name);
        let value = |entry| self.value(entry);
        match deviations.contains(Deviation::RepeatsOnce) {
            true => named
                .max_by_key(|entry| entry.start)
                .map(value)
                .into_iter()
                .collect(),
            false => named.map(value).collect(),
        }
    }

    /// The entries that the signature covers, sorted.
    fn signed(&self, selection: Selection) -> impl Iterator<Item = &Entry> {
        let entries = self.order.iter().map(|rank| &self.entries[rank.entry]);
        entries.filter(move |entry| match selection {
            Selection::Rfc5849 => true,
            Selection::Description => entry.oauth || entry.location == ParameterLocation::Body,
        })
    }

    fn name(&self, entry: &Entry) -> &[u8] {
        &self.text[entry.start..entry.value_start - ENCODED_EQUALS.len()]
    }

    fn value(&self, entry: &Entry) -> &[u8] {
        &self.text[entry.value_start..entry.end]
    }

    /// The value of a protocol parameter.
    pub(super) fn protocol_value(&self, parameter: ProtocolParameter) -> Option<&[u8]> {
        let entry = self.entries.get(self.found[parameter as usize]?)?;
        Some(self.value(entry))
    }

    /// Sorts by encoded name, then by encoded value (§3.4.1.3.2).
    fn sort(&mut self) {
        let mut order = take(&mut self.order);
        // Equal names and values are equal bytes: their order cannot be seen in the base string.
        order.sort_unstable_by(|left, right| {
            let by_prefix = left.prefix.cmp(&right.prefix);
            by_prefix.then_with(|| self.compare(left, right))
        });
        self.order = order;
    }

    #[cold]
    fn compare(&self, left: &Rank, right: &Rank) -> Ordering {
        let [left, right] = [left, right].map(|rank| &self.entries[rank.entry]);
        if left.is_plain && right.is_plain {
            // `%` sorts before all unreserved bytes, so that a name ends before one that goes on.
            return self.text[left.start..left.end].cmp(&self.text[right.start..right.end]);
        }
        fn encoded(text: &[u8]) -> impl Iterator<Item = (bool, u8)> {
            text.iter().map(|&byte| encoded_order(byte))
        }
        let by_name = encoded(self.name(left)).cmp(encoded(self.name(right)));
        by_name.then_with(|| encoded(self.value(left)).cmp(encoded(self.value(right))))
    }
}

impl fmt::Debug for Parameters {
    /// Shows only the number of parameters: values are credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parameters")
            .field("count", &self.entries.len())
            .finish_non_exhaustive()
    }
}

/// The first eight bytes of an encoded name, as a number; zeros fill up a shorter name, and all after its first `%`.
#[inline]
fn prefix(name: &[u8], is_plain: bool) -> u64 {
    let run = if is_plain {
        name.len()
    } else {
        percent::unreserved_run(name)
    };
    let mut prefix = [0; size_of::<u64>()];
    let length = run.min(prefix.len());
    prefix[..length].copy_from_slice(&name[..length]);
    if let Some(after) = prefix.get_mut(run).filter(|_| run < name.len()) {
        *after = b'%';
    }
    u64::from_be_bytes(prefix)
}

/// A request parameter, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter<'a> {
    /// Its location in the request.
    pub location: ParameterLocation,
    /// Its name.
    pub name: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
}

impl Parameter<'_> {
    /// Whether the name begins with `oauth_`.
    #[must_use]
    pub fn is_oauth(&self) -> bool {
        self.name.starts_with(OAUTH_PREFIX)
    }
}
