//! The ways in which an API may read a path that has more than one reading.

use crate::{oauth::percent, request::policy::path::push_data};

/// The most bytes that all readings of a path have together.
const MAX_BYTES: usize = 128 * 1_024;

/// What an API does to a path, beyond decoding its escapes once. Each may come with each other.
#[derive(Debug, Clone, Copy)]
struct Reading(u8);

/// The mark of a byte that was an escape, and so neither separates nor begins another escape.
const ESCAPED: u16 = 0x100;

impl Reading {
    const SPLITS_AT_ENCODED_SLASH: u8 = 1;
    const SPLITS_AT_BACKSLASH: u8 = 1 << 1;
    const DROPS_PARAMETERS: u8 = 1 << 2;
    const MERGES_SLASHES: u8 = 1 << 3;
    const RESOLVES_DOTS: u8 = 1 << 4;
    const DECODES_AGAIN: u8 = 1 << 5;
    /// At NUL, or at the `?` or `#` that an escape was.
    const ENDS_EARLY: u8 = 1 << 6;
    const ALL: u8 = (1 << 7) - 1;

    const fn does(self, what: u8) -> bool {
        self.0 & what != 0
    }

    /// The path that the API reads, as patterns see it.
    fn read(self, path: &[u8]) -> Vec<u8> {
        let mut decoded = self.decoded(path);
        if self.does(Self::ENDS_EARLY) {
            let end = decoded.iter().position(|it| b"\0?#".contains(&byte(*it)));
            decoded.truncate(end.unwrap_or(decoded.len()));
        }
        let separates = |it: &u16| match byte(*it) {
            b'/' => *it < ESCAPED,
            b'\\' => self.does(Self::SPLITS_AT_BACKSLASH),
            _ => false,
        };
        let mut segments: Vec<&[u16]> = Vec::new();
        for segment in decoded.split(separates).skip(1) {
            let parameters = segment.iter().position(|it| byte(*it) == b';');
            let segment = match parameters {
                Some(at) if self.does(Self::DROPS_PARAMETERS) => &segment[..at],
                _ => segment,
            };
            let are_dots = segment.iter().all(|it| byte(*it) == b'.');
            match segment.len() {
                0 if self.does(Self::MERGES_SLASHES) => {}
                1 if are_dots && self.does(Self::RESOLVES_DOTS) => {}
                2 if are_dots && self.does(Self::RESOLVES_DOTS) => drop(segments.pop()),
                _ => segments.push(segment),
            }
        }
        let mut read = Vec::with_capacity(path.len());
        for segment in &segments {
            read.push(b'/');
            for it in *segment {
                push_data(&mut read, byte(*it));
            }
        }
        if read.is_empty() {
            read.push(b'/');
        }
        read
    }

    /// The path with its escapes decoded once, or until none is left. Those that are not valid stay.
    fn decoded(self, path: &[u8]) -> Vec<u16> {
        let mut decoded: Vec<u16> = Vec::with_capacity(path.len());
        for &byte in path {
            decoded.push(byte.into());
            // A decoded byte may complete another escape.
            while let Some(digits) = last_escape(&decoded)
                && let Ok(byte) = percent::escaped(digits)
            {
                let splits = byte == b'/' && self.does(Self::SPLITS_AT_ENCODED_SLASH);
                let stays = !splits && (byte == b'/' || !self.does(Self::DECODES_AGAIN));
                decoded.truncate(decoded.len() - 3);
                decoded.push(u16::from(byte) | if stays { ESCAPED } else { 0 });
            }
        }
        decoded
    }
}

const fn byte(decoded: u16) -> u8 {
    decoded.to_le_bytes()[0]
}

/// The two bytes after a `%`, if a path ends in them.
fn last_escape(decoded: &[u16]) -> Option<[u8; 2]> {
    let [.., percent, high, low] = decoded else {
        return None;
    };
    let is_one = *percent == u16::from(b'%') && *high < ESCAPED && *low < ESCAPED;
    is_one.then(|| [byte(*high), byte(*low)])
}

/// The path as each API may read it and patterns see it; `None`: it has too many readings.
pub(in crate::request::policy) fn readings(path: &[u8]) -> Option<impl Iterator<Item = Vec<u8>>> {
    let relevant = relevant(path);
    let all = (0..=Reading::ALL).filter(move |what| what & !relevant == 0);
    let bytes = path.len() << relevant.count_ones();
    (bytes <= MAX_BYTES).then(|| all.map(move |what| Reading(what).read(path)))
}

/// What may change the reading of a path.
fn relevant(path: &[u8]) -> u8 {
    let once = Reading(Reading::SPLITS_AT_ENCODED_SLASH).decoded(path);
    let again = Reading(Reading::SPLITS_AT_ENCODED_SLASH | Reading::DECODES_AGAIN).decoded(path);
    let has = |bytes: &[u8]| again.iter().any(|it| bytes.contains(&byte(*it)));
    let slashes = again.iter().filter(|it| byte(**it) == b'/').count();
    let sent = memchr::memchr_iter(b'/', path).count();
    let rules = [
        (Reading::SPLITS_AT_ENCODED_SLASH, slashes > sent),
        (Reading::SPLITS_AT_BACKSLASH, has(b"\\")),
        (Reading::DROPS_PARAMETERS, has(b";")),
        (Reading::MERGES_SLASHES, true),
        (Reading::RESOLVES_DOTS, has(b".")),
        (Reading::DECODES_AGAIN, once.len() != again.len()),
        (Reading::ENDS_EARLY, has(b"\0?#")),
    ];
    let met = rules.into_iter().filter(|(_, is_met)| *is_met);
    met.fold(0, |all, (what, _)| all | what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_those_of_some_api() {
        for (path, read) in [
            ("/r/24%2FMB01", "/r/24/MB01"),
            ("/r/24%2FMB01", "/r/24%2FMB01"),
            ("/r/24%252FMB01", "/r/24/MB01"),
            ("/r/items;jsessionid=AB12", "/r/items"),
            ("/r/items;jsessionid=AB12", "/r/items;jsessionid=AB12"),
            ("//r//items", "/r/items"),
            ("//r//items/", "//r//items/"),
            ("//r//items/", "/r/items"),
            ("/r/24%252FMB01", "/r/24%252FMB01"),
            ("/r/24%252FMB01", "/r/24%2FMB01"),
            ("/r/%2525252e%2525252E/x", "/x"),
            ("/r/%%32fitems", "/r//items"),
            ("/r/items%253Fx=1", "/r/items"),
            ("/r/a%252500b", "/r/a"),
            ("/x/..%2fr/items", "/r/items"),
            ("/x/..;a=b/r/items", "/r/items"),
            ("/r\\items", "/r/items"),
            ("/r%5citems%00.png", "/r/items"),
            ("/%72/%zz", "/r/%25zz"),
            ("/..", "/"),
        ] {
            let mut all = readings(path.as_bytes()).unwrap();
            assert!(all.any(|one| one == read.as_bytes()), "{path} {read}");
        }
        assert!(readings(&[b'/'; MAX_BYTES / 2]).is_some());
        assert!(readings(&[b'/'; MAX_BYTES / 2 + 1]).is_none());
        assert!(readings("/%252e%252e;a%2f%5c%253f".repeat(200).as_bytes()).is_none());
    }
}
