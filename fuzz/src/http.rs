//! HTTP/1.1 read in the obvious way, from whole inputs only, as the API of the fuzz target `service` reads it.

/// The message at the front of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<T> {
    /// It is complete.
    Whole(T),
    /// More must arrive.
    Incomplete,
    /// It is malformed, whatever follows.
    Wrong,
}

fn is_text(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}

/// Reads a chunked body from the front: its data and its length in bytes.
pub fn chunked(input: &[u8]) -> Found<(Vec<u8>, usize)> {
    let mut data = Vec::new();
    let mut at = 0;
    loop {
        // chunk-size [ chunk-ext ] CRLF
        let digits = input[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        if digits > 15 {
            return Found::Wrong;
        }
        let size = std::str::from_utf8(&input[at..at + digits])
            .ok()
            .and_then(|text| u64::from_str_radix(text, 16).ok());
        at += digits;
        match (input.get(at), size) {
            (None, _) => return Found::Incomplete,
            (Some(b'\r' | b';'), Some(_)) => {}
            _ => return Found::Wrong,
        }
        match line(input, &mut at) {
            Found::Whole(_) => {}
            Found::Incomplete => return Found::Incomplete,
            Found::Wrong => return Found::Wrong,
        }
        let size = size.unwrap_or_default();
        if size == 0 {
            break;
        }
        let left = (input.len() - at) as u64;
        if left < size {
            return Found::Incomplete;
        }
        let end = at + usize::try_from(size).unwrap_or(usize::MAX);
        data.extend_from_slice(&input[at..end]);
        at = end;
        for expected in b"\r\n" {
            match input.get(at) {
                None => return Found::Incomplete,
                Some(byte) if byte == expected => at += 1,
                Some(_) => return Found::Wrong,
            }
        }
    }
    // The trailers up to an empty line.
    loop {
        match line(input, &mut at) {
            Found::Whole(0) => return Found::Whole((data, at)),
            Found::Whole(_) => {}
            Found::Incomplete => return Found::Incomplete,
            Found::Wrong => return Found::Wrong,
        }
    }
}

/// Skips the rest of a line and its CRLF; returns the length of the rest.
fn line(input: &[u8], at: &mut usize) -> Found<usize> {
    let start = *at;
    while let Some(&byte) = input.get(*at) {
        *at += 1;
        match byte {
            b'\r' => {
                return match input.get(*at) {
                    None => Found::Incomplete,
                    Some(b'\n') => {
                        *at += 1;
                        Found::Whole(*at - 2 - start)
                    }
                    Some(_) => Found::Wrong,
                };
            }
            byte if !is_text(&[byte]) => return Found::Wrong,
            _ => {}
        }
    }
    Found::Incomplete
}

/// Cuts `input` into pieces of the lengths in `cuts`: one byte is one length, used in turn again and again.
pub fn pieces<'a>(input: &'a [u8], cuts: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut rest = input;
    let mut cuts = cuts.iter().cycle();
    while !rest.is_empty() {
        let length = cuts
            .next()
            .map_or(rest.len(), |&cut| usize::from(cut % 16) + 1)
            .min(rest.len());
        let (piece, behind) = rest.split_at(length);
        pieces.push(piece);
        rest = behind;
    }
    pieces
}
