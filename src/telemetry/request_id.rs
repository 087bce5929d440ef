//! The ids of requests: one id joins a response, its log lines and the log of a trusted proxy in front.

use std::{
    cell::{Cell, OnceCell, RefCell},
    rc::Rc,
};

use bytes::BytesMut;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The field that has the id of a request: from a trusted proxy, to the API, and in responses of this program.
pub static X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is kept from a trusted proxy, in bytes.
const MAX_LENGTH: usize = 64;

/// The number of random characters in an id: 95 bits.
const PREFIX_LENGTH: usize = 16;

/// The longest id that is made: the random characters, a hyphen and a number.
const MADE_LENGTH: usize = PREFIX_LENGTH + 1 + 20;

/// The bytes that are allocated at once, for a dozen ids. All of them are kept while one of the ids is, such as that of
/// a long download.
const PIECE_BYTES: usize = 512;

/// Makes the ids of one worker.
#[derive(Debug)]
pub struct RequestIds {
    /// The random characters and the hyphen.
    prefix: String,
    issued: Cell<u64>,
    /// Room for ids.
    room: RefCell<BytesMut>,
}

impl RequestIds {
    /// Ids that begin with the first characters of `random`, which consists of letters and digits.
    pub fn new(random: &str) -> Rc<Self> {
        Rc::new(Self {
            prefix: random.chars().take(PREFIX_LENGTH).chain(['-']).collect(),
            issued: Cell::new(0),
            room: RefCell::default(),
        })
    }

    fn next(&self) -> HeaderValue {
        let number = self.issued.get() + 1;
        self.issued.set(number);
        let mut room = self.room.borrow_mut();
        if room.capacity() < MADE_LENGTH {
            *room = BytesMut::with_capacity(PIECE_BYTES);
        }
        room.extend_from_slice(self.prefix.as_bytes());
        room.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        let id = room.split().freeze();
        HeaderValue::from_maybe_shared(id).unwrap_or_else(|_| number.into())
    }
}

/// The id of a request: the one that a trusted proxy sent, or one that is made when it is first read. No id is made for
/// a request whose id is never read.
#[derive(Debug)]
pub struct RequestId {
    ids: Rc<RequestIds>,
    value: OnceCell<HeaderValue>,
}

impl RequestId {
    /// The id of a request; `received` is the id that a trusted proxy sent.
    pub fn new(ids: &Rc<RequestIds>, received: Option<HeaderValue>) -> Self {
        Self {
            ids: Rc::clone(ids),
            value: received.map_or_else(OnceCell::new, OnceCell::from),
        }
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        self.value().to_str().unwrap_or_default()
    }

    /// The id as a field value.
    pub fn value(&self) -> &HeaderValue {
        self.value.get_or_init(|| self.ids.next())
    }
}

/// The id that a trusted proxy sent, if it is a single one of 1 to 64 letters, digits, `-`, `_` and `.`: any other could
/// change the meaning of a log line.
pub fn acceptable(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut sent = headers.get_all(&X_REQUEST_ID).iter();
    let (Some(id), None) = (sent.next(), sent.next()) else {
        return None;
    };
    let is_safe = |&byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let short = (1..=MAX_LENGTH).contains(&id.len());
    (short && id.as_bytes().iter().all(is_safe)).then(|| id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_an_id_only_when_it_is_read_and_each_one_once() {
        let ids = RequestIds::new("abcdefghijklmnopq");
        let [first, unread, second] = [(); 3].map(|()| RequestId::new(&ids, None));
        assert_eq!(first.as_str(), "abcdefghijklmnop-1");
        assert_eq!(second.as_str(), "abcdefghijklmnop-2");
        assert_eq!(first.as_str(), "abcdefghijklmnop-1");
        assert_eq!(unread.as_str(), "abcdefghijklmnop-3");
        // They need several pieces of memory.
        for number in 4..100 {
            let id = RequestId::new(&ids, None);
            assert_eq!(id.as_str(), format!("abcdefghijklmnop-{number}"));
        }
    }

    #[test]
    fn keeps_a_single_short_id_of_safe_characters() {
        let headers = |ids: &[&str]| {
            let mut headers = HeaderMap::new();
            for id in ids {
                headers.append(&X_REQUEST_ID, HeaderValue::from_str(id).unwrap());
            }
            headers
        };
        let longest = "a".repeat(MAX_LENGTH);
        for id in ["x", "4bf9-2f35_77B3.4d", &longest] {
            assert_eq!(acceptable(&headers(&[id])).unwrap(), id);
        }
        let too_long = "a".repeat(MAX_LENGTH + 1);
        for id in [
            "", "a b", "a=b", "a\"", "a\\n", "a\tb", "é", "a,b", &too_long,
        ] {
            assert_eq!(acceptable(&headers(&[id])), None, "{id:?}");
        }
        assert_eq!(acceptable(&headers(&["a", "a"])), None);
        assert_eq!(acceptable(&HeaderMap::new()), None);
    }
}
