//! The head of a request without a body, as bytes that are written instead of the head that hyper's client writes.
//!
//! hyper's client takes a map of names in lower case, looks into it several times, and spells each name again byte by byte.
//! Filling the map and writing it take an eighth of the instructions of a proxied request. So hyper gets a
//! [`stand_in`] with the method alone, which is all that it needs to read the response, and
//! [`super::watched::WatchedStream`] writes the [`WrittenHead`] when hyper writes the stand-in. Any other bytes
//! at that place end the connection.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, uri::PathAndQuery};

/// The end of the stand-in, after its method.
const STAND_IN: &[u8] = b" / HTTP/1.1\r\n\r\n";

/// The least room that a head gets, in bytes; enough for usual heads.
const FIRST_BYTES: usize = 1024;

/// A connection keeps a buffer of up to this many bytes for its next head.
const KEPT_BYTES: usize = 2 * 1024;

/// The request that hyper gets instead of one with this method and a [`WrittenHead`]. hyper reads the fields of the response
/// into the memory of `fields`, which is empty.
#[inline]
pub fn stand_in<B: Default>(method: &Method, fields: HeaderMap) -> Request<B> {
    debug_assert!(fields.is_empty());
    let mut request = Request::new(B::default());
    *request.method_mut() = method.clone();
    *request.headers_mut() = fields;
    request
}

/// The head of a request without a body.
pub struct WrittenHead {
    /// The head, and room that is filled next.
    bytes: Vec<u8>,
    filled: usize,
    method_bytes: usize,
    /// That many bytes are written.
    written: usize,
}

impl WrittenHead {
    /// The request line, in the memory of `bytes`.
    pub fn begin(bytes: Vec<u8>, method: &Method, target: &PathAndQuery) -> Self {
        let method = method.as_str().as_bytes();
        let mut head = Self {
            bytes,
            filled: 0,
            method_bytes: method.len(),
            written: 0,
        };
        head.put(method);
        head.put(b" ");
        head.put(target.path().as_bytes());
        if let Some(query) = target.query() {
            head.put(b"?");
            head.put(query.as_bytes());
        }
        head.put(b" HTTP/1.1\r\n");
        head
    }

    /// Appends a field, its name in Title-Case.
    pub fn push(&mut self, name: &HeaderName, value: &HeaderValue) {
        let (name, value) = (name.as_str().as_bytes(), value.as_bytes());
        let length = name.len() + b": ".len() + value.len() + b"\r\n".len();
        // Whole words of the name, whatever its length.
        let room = self.room(length + WORD);
        room[..name.len()].copy_from_slice(name);
        title_case(&mut room[..(name.len() / WORD + 1) * WORD]);
        let (_, room) = room.split_at_mut(name.len());
        let (separator, room) = room.split_at_mut(b": ".len());
        separator.copy_from_slice(b": ");
        let (field_value, room) = room.split_at_mut(value.len());
        field_value.copy_from_slice(value);
        room[..b"\r\n".len()].copy_from_slice(b"\r\n");
        self.filled += length;
    }

    /// The whole head.
    pub fn end(mut self) -> Self {
        self.put(b"\r\n");
        self
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }

    /// At least `count` bytes that are not filled. They are initialized once for many heads, so they may have any values.
    #[inline]
    fn room(&mut self, count: usize) -> &mut [u8] {
        if self.bytes.len() < self.filled + count {
            self.grow(count);
        }
        &mut self.bytes[self.filled..]
    }

    #[cold]
    fn grow(&mut self, count: usize) {
        let needed = (self.filled + count).next_power_of_two();
        self.bytes.resize(needed.max(FIRST_BYTES), 0);
    }

    /// Its memory, for the next head.
    pub(super) fn into_memory(self) -> Vec<u8> {
        let kept = self.bytes.len() <= KEPT_BYTES;
        if kept { self.bytes } else { Vec::new() }
    }

    /// Whether `bytes` are the stand-in of this head.
    pub(super) fn stands_in(&self, bytes: &[u8]) -> bool {
        bytes.strip_prefix(&self.bytes[..self.method_bytes]) == Some(STAND_IN)
    }

    /// The bytes that are not written yet.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.written..self.filled]
    }

    /// That many bytes more are written.
    pub(super) fn wrote(&mut self, count: usize) {
        self.written += count;
    }
}

/// The bytes that [`title_case`] takes at once.
const WORD: usize = size_of::<u64>();

/// Writes the first letter, and each after a `-`, in upper case. `name` is ASCII, with any bytes after it up to a whole word.
fn title_case(name: &mut [u8]) {
    const ONES: u64 = u64::from_ne_bytes([1; WORD]);
    const HIGH: u64 = ONES << 7;
    let (words, _) = name.as_chunks_mut::<WORD>();
    let mut before = u64::from(b'-');
    for word in words {
        let bytes = u64::from_le_bytes(*word);
        // The highest bit of each byte: the one before it is `-`, and it is a lower-case letter.
        let other_than_dash = (bytes << 8 | before) ^ (ONES * u64::from(b'-'));
        let begins = !((other_than_dash | HIGH) - ONES) & HIGH;
        // A byte that is not ASCII changes only bytes after it.
        let is_lower = |first: u8| bytes.wrapping_add(ONES * u64::from(0x80 - first));
        let letters = is_lower(b'a') & !is_lower(b'z' + 1) & HIGH;
        *word = (bytes ^ (begins & letters) >> 2).to_le_bytes();
        before = bytes >> (u64::BITS - 8);
    }
}
