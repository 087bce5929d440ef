//! HTTP/1.1 in the obvious way, over whole inputs only: what the incremental parsers are compared with.

/// A first line and the field lines, names as sent and values trimmed.
#[derive(Debug, PartialEq, Eq)]
pub struct Head<'a> {
    pub first_line: Vec<&'a [u8]>,
    pub fields: Vec<(&'a [u8], &'a [u8])>,
    /// How many bytes it has, the empty line included.
    pub length: usize,
}

/// What stands at the front of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<T> {
    /// It is whole.
    Whole(T),
    /// More must arrive.
    Incomplete,
    /// It is wrong whatever arrives.
    Wrong,
}

/// Where a head ends: every line ends with CRLF, and the last one is empty.
pub fn head_end(input: &[u8]) -> Found<usize> {
    let mut before = 0;
    for (at, &byte) in input.iter().enumerate() {
        if byte == b'\n' {
            if at == before || input[at - 1] != b'\r' {
                return Found::Wrong;
            }
            if at == before + 1 {
                return Found::Whole(at + 1);
            }
            before = at + 1;
        }
    }
    Found::Incomplete
}

fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}

fn trimmed(mut bytes: &[u8]) -> &[u8] {
    while bytes.first().is_some_and(|byte| b" \t".contains(byte)) {
        bytes = &bytes[1..];
    }
    while bytes.last().is_some_and(|byte| b" \t".contains(byte)) {
        bytes = &bytes[..bytes.len() - 1];
    }
    bytes
}

fn lines(head: &[u8]) -> Option<Vec<&[u8]>> {
    let text = head.strip_suffix(b"\r\n\r\n")?;
    let mut lines = Vec::new();
    let mut rest = text;
    loop {
        match rest.windows(2).position(|pair| pair == b"\r\n") {
            Some(at) => {
                lines.push(&rest[..at]);
                rest = &rest[at + 2..];
            }
            None => {
                lines.push(rest);
                return Some(lines);
            }
        }
    }
}

fn fields<'a>(lines: &[&'a [u8]]) -> Option<Vec<(&'a [u8], &'a [u8])>> {
    lines
        .iter()
        .map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            let (name, value) = (&line[..colon], &line[colon + 1..]);
            (is_token(name) && is_text(value)).then(|| (name, trimmed(value)))
        })
        .collect()
}

/// A request's head: method, target and version, each parted by one space.
pub fn request_head(head: &[u8]) -> Option<Head<'_>> {
    let lines = lines(head)?;
    let first_line: Vec<&[u8]> = lines[0].split(|&byte| byte == b' ').collect();
    let [method, target, version] = first_line[..] else {
        return None;
    };
    let good_target = !target.is_empty() && target.iter().all(|&byte| (0x21..0x7f).contains(&byte) && byte != b'#');
    if !is_token(method) || !good_target || ![&b"HTTP/1.0"[..], b"HTTP/1.1"].contains(&version) {
        return None;
    }
    Some(Head {
        first_line,
        fields: fields(&lines[1..])?,
        length: head.len(),
    })
}

/// An answer's head: version, status, and a reason that may be missing with its space.
pub fn response_head(head: &[u8]) -> Option<Head<'_>> {
    let lines = lines(head)?;
    let first_line: Vec<&[u8]> = lines[0].splitn(3, |&byte| byte == b' ').collect();
    let (version, status, reason) = match first_line[..] {
        [version, status] => (version, status, &b""[..]),
        [version, status, reason] => (version, status, reason),
        _ => return None,
    };
    let good_status = status.len() == 3 && status[0] != b'0' && status.iter().all(u8::is_ascii_digit);
    if !good_status || !is_text(reason) || ![&b"HTTP/1.0"[..], b"HTTP/1.1"].contains(&version) {
        return None;
    }
    Some(Head {
        first_line: vec![version, status, reason],
        fields: fields(&lines[1..])?,
        length: head.len(),
    })
}

impl<'a> Head<'a> {
    /// The values of all lines of a name.
    pub fn all(&self, name: &str) -> Vec<&'a [u8]> {
        let same = |found: &[u8]| found.eq_ignore_ascii_case(name.as_bytes());
        self.fields.iter().filter(|(found, _)| same(found)).map(|&(_, value)| value).collect()
    }
}

/// How long a body is.
#[derive(Debug, PartialEq, Eq)]
pub enum Length {
    Unsaid,
    Bytes(u64),
    Chunked,
}

/// Reads Content-Length and Transfer-Encoding, or nothing if anybody could read them differently.
pub fn length(head: &Head<'_>, http10: bool) -> Option<Length> {
    let lengths = head.all("content-length");
    let codings = head.all("transfer-encoding");
    match (&lengths[..], &codings[..]) {
        ([], []) => Some(Length::Unsaid),
        ([length], []) => {
            let digits = length.iter().all(u8::is_ascii_digit) && (1..=18).contains(&length.len());
            let text = std::str::from_utf8(length).ok()?;
            digits.then(|| text.parse().ok().map(Length::Bytes)).flatten()
        }
        ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") && !http10 => Some(Length::Chunked),
        _ => None,
    }
}

/// Whether the connection stays open, or nothing if `Connection` is malformed.
pub fn keeps_alive(head: &Head<'_>, http10: bool) -> Option<bool> {
    let joined = head.all("connection").join(&b","[..]);
    let options: Vec<Vec<u8>> = joined
        .split(|&byte| byte == b',')
        .map(|option| trimmed(option).to_ascii_lowercase())
        .filter(|option| !option.is_empty())
        .collect();
    if !options.iter().all(|option| is_token(option)) {
        return None;
    }
    let has = |name: &[u8]| options.iter().any(|option| option == name);
    Some(!has(b"close") && (!http10 || has(b"keep-alive")))
}

/// Takes a chunked body off the front: its data and how many bytes it has.
pub fn chunked(input: &[u8]) -> Found<(Vec<u8>, usize)> {
    let mut data = Vec::new();
    let mut at = 0;
    loop {
        // chunk-size [ chunk-ext ] CRLF
        let digits = input[at..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits > 15 {
            return Found::Wrong;
        }
        let size = std::str::from_utf8(&input[at..at + digits]).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
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

/// Steps over the rest of a line and its CRLF; how long the rest was.
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

/// Cuts `input` into pieces whose lengths `cuts` tells: each byte of it one length, over and over.
pub fn pieces<'a>(input: &'a [u8], cuts: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut rest = input;
    let mut cuts = cuts.iter().cycle();
    while !rest.is_empty() {
        let length = cuts.next().map_or(rest.len(), |&cut| usize::from(cut % 16) + 1).min(rest.len());
        let (piece, behind) = rest.split_at(length);
        pieces.push(piece);
        rest = behind;
    }
    pieces
}
