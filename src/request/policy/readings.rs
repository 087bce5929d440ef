//! The ways in which an API may read a path that has more than one reading.

use crate::oauth::percent;

/// A longer path is not read in every way.
const MAX_BYTES: usize = 1_024;

/// An empty segment of a reading that is not the last one.
const EMPTY: &[u8] = b"%";

/// What an API does to a path, beyond decoding its escapes once. Each may come with each other.
#[derive(Debug, Clone, Copy)]
struct Reading(u8);

impl Reading {
    const SPLITS_AT_ENCODED_SLASH: u8 = 1;
    const SPLITS_AT_BACKSLASH: u8 = 1 << 1;
    const DROPS_PARAMETERS: u8 = 1 << 2;
    const MERGES_SLASHES: u8 = 1 << 3;
    const RESOLVES_DOTS: u8 = 1 << 4;
    const DECODES_AGAIN: u8 = 1 << 5;
    const ENDS_AT_NUL: u8 = 1 << 6;
    const ALL: u8 = (1 << 7) - 1;

    const fn does(self, what: u8) -> bool {
        self.0 & what != 0
    }

    fn read(self, path: &[u8]) -> Vec<u8> {
        let mut decoded = self.decoded(path);
        while self.does(Self::DECODES_AGAIN) {
            let again = self.decoded(&decoded);
            if again == decoded {
                break;
            }
            decoded = again;
        }
        if self.does(Self::ENDS_AT_NUL) {
            let end = decoded.iter().position(|byte| *byte == 0);
            decoded.truncate(end.unwrap_or(decoded.len()));
        }
        let is_slash = |byte: &u8| match byte {
            b'/' => true,
            b'\\' => self.does(Self::SPLITS_AT_BACKSLASH),
            _ => false,
        };
        let mut segments: Vec<&[u8]> = Vec::new();
        let mut parts = decoded.split(is_slash).skip(1).peekable();
        while let Some(segment) = parts.next() {
            let parameters = segment.iter().position(|byte| *byte == b';');
            let segment = match parameters {
                Some(at) if self.does(Self::DROPS_PARAMETERS) => &segment[..at],
                _ => segment,
            };
            match segment {
                b"" if self.does(Self::MERGES_SLASHES) => {}
                // It counts as a segment, so that a pattern's parameter has to match it.
                b"" if parts.peek().is_some() => segments.push(EMPTY),
                b"." if self.does(Self::RESOLVES_DOTS) => {}
                b".." if self.does(Self::RESOLVES_DOTS) => drop(segments.pop()),
                segment => segments.push(segment),
            }
        }
        let mut read = vec![b'/'];
        read.extend_from_slice(&segments.join(&b'/'));
        read
    }

    /// The path with its escapes decoded once. Those that are not valid stay, and so does an encoded slash that does not split.
    fn decoded(self, path: &[u8]) -> Vec<u8> {
        let mut decoded = Vec::with_capacity(path.len());
        let mut rest = path;
        while let [byte, tail @ ..] = rest {
            rest = tail;
            let escaped = match (byte, tail.first_chunk()) {
                (b'%', Some(digits)) => percent::escaped(*digits).ok(),
                _ => None,
            };
            match escaped {
                Some(b'/') if !self.does(Self::SPLITS_AT_ENCODED_SLASH) => decoded.push(*byte),
                Some(byte) => {
                    decoded.push(byte);
                    rest = &tail[2..];
                }
                None => decoded.push(*byte),
            }
        }
        decoded
    }
}

/// The path as each API may read it; `None`: it is too long to be read in every way.
pub(super) fn readings(path: &[u8]) -> Option<impl Iterator<Item = Vec<u8>>> {
    let relevant = relevant(path);
    let all = (0..=Reading::ALL).filter(move |what| what & !relevant == 0);
    (path.len() <= MAX_BYTES).then(|| all.map(move |what| Reading(what).read(path)))
}

/// What may change the reading of a path.
fn relevant(path: &[u8]) -> u8 {
    let lower = path.to_ascii_lowercase();
    let has = |text: &str| memchr::memmem::find(&lower, text.as_bytes()).is_some();
    if has("%25") {
        return Reading::ALL;
    }
    let rules: [(u8, &[&str]); 5] = [
        (Reading::SPLITS_AT_ENCODED_SLASH, &["%2f"]),
        (Reading::SPLITS_AT_BACKSLASH, &["\\", "%5c"]),
        (Reading::DROPS_PARAMETERS, &[";", "%3b"]),
        (Reading::RESOLVES_DOTS, &[".", "%2e"]),
        (Reading::ENDS_AT_NUL, &["%00"]),
    ];
    let met = rules
        .iter()
        .filter(|(_, texts)| texts.iter().any(|text| has(text)));
    met.fold(Reading::MERGES_SLASHES, |all, (what, _)| all | what)
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
            ("//r//items/", "/%/r/%/items/"),
            ("/x/..%2fr/items", "/r/items"),
            ("/x/..;a=b/r/items", "/r/items"),
            ("/r\\items", "/r/items"),
            ("/r%5citems%00.png", "/r/items"),
            ("/%72/%zz", "/r/%zz"),
            ("/..", "/"),
        ] {
            let mut all = readings(path.as_bytes()).unwrap();
            assert!(all.any(|one| one == read.as_bytes()), "{path} {read}");
        }
        assert!(readings(&[b'/'; MAX_BYTES + 1]).is_none());
    }
}
