//! The head of a request without a body, as bytes that are written in place of the head that hyper's client writes.
//!
//! hyper's client takes a map of names in lower case, looks into it several times, and spells each name anew byte by byte.
//! Filling the map and writing it take an eighth of the instructions of a proxied request. So hyper gets a
//! [`stand_in`] with the method alone, which is all that it needs to read the response, and
//! [`super::watched::WatchedStream`] writes the [`WrittenHead`] when hyper writes the stand-in. Any other bytes
//! at that place end the connection.

use http::{HeaderName, HeaderValue, Method, Request, uri::PathAndQuery};

/// The end of the stand-in, after its method.
const STAND_IN: &[u8] = b" / HTTP/1.1\r\n\r\n";

/// A connection keeps a buffer of up to this many bytes for its next head.
const KEPT_BYTES: usize = 2 * 1024;

/// The request that hyper gets in place of one with this method and a [`WrittenHead`].
pub fn stand_in<B: Default>(method: &Method) -> Request<B> {
    let mut request = Request::new(B::default());
    *request.method_mut() = method.clone();
    request
}

/// The head of a request without a body.
pub struct WrittenHead {
    bytes: Vec<u8>,
    method_bytes: usize,
    /// That many bytes are written.
    written: usize,
}

impl WrittenHead {
    /// The request line, in the memory of `bytes`.
    pub fn begin(mut bytes: Vec<u8>, method: &Method, target: &PathAndQuery) -> Self {
        let method = method.as_str().as_bytes();
        bytes.clear();
        bytes.extend_from_slice(method);
        bytes.push(b' ');
        bytes.extend_from_slice(target.path().as_bytes());
        if let Some(query) = target.query() {
            bytes.push(b'?');
            bytes.extend_from_slice(query.as_bytes());
        }
        bytes.extend_from_slice(b" HTTP/1.1\r\n");
        Self {
            bytes,
            method_bytes: method.len(),
            written: 0,
        }
    }

    /// Appends a field, its name in Title-Case.
    pub fn push(&mut self, name: &HeaderName, value: &HeaderValue) {
        let (name, value) = (name.as_str().as_bytes(), value.as_bytes());
        let bytes = &mut self.bytes;
        bytes.reserve(name.len() + WORD + value.len() + 4);
        let begin = bytes.len();
        bytes.extend_from_slice(name);
        // Whole words, whatever its length.
        bytes.extend_from_slice(&[0; WORD]);
        title_case(&mut bytes[begin..]);
        bytes.truncate(begin + name.len());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    }

    /// The whole head.
    pub fn end(mut self) -> Self {
        self.bytes.extend_from_slice(b"\r\n");
        self
    }

    /// Its memory, for the next head.
    pub(super) fn into_memory(self) -> Vec<u8> {
        let kept = self.bytes.capacity() <= KEPT_BYTES;
        if kept { self.bytes } else { Vec::new() }
    }

    /// Whether `bytes` are the stand-in of this head.
    pub(super) fn stands_in(&self, bytes: &[u8]) -> bool {
        bytes.strip_prefix(&self.bytes[..self.method_bytes]) == Some(STAND_IN)
    }

    /// The bytes that are not written yet.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// That many bytes more are written.
    pub(super) fn wrote(&mut self, count: usize) {
        self.written += count;
    }
}

/// The bytes that [`title_case`] takes at once.
const WORD: usize = size_of::<u64>();

/// Writes the first letter, and each after a `-`, in upper case. `name` is ASCII; bytes after its last whole word stay.
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
        let is_lower = |first: u8| bytes + ONES * u64::from(0x80 - first);
        let letters = is_lower(b'a') & !is_lower(b'z' + 1) & HIGH;
        *word = (bytes ^ (begins & letters) >> 2).to_le_bytes();
        before = bytes >> (u64::BITS - 8);
    }
}
