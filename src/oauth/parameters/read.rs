//! Reading parameters from where they stand: the Authorization header (RFC 5849 §3.5.1), the query and a form body (§3.4.1.3.1).

use super::{
    ENCODED_EQUALS, Entry, Parameters, Span, Value,
    arena::Arena,
    order::{self, Prefix, Rank},
    position,
};
use crate::oauth::{
    name::{OAUTH_PREFIX, ProtocolParameter},
    percent::{self, ENCODED_PERCENT},
    shape::{Fault, Place, ShapeError},
};

const SCHEME: &[u8] = b"OAuth";

/// The longest input that one request's parameters may come from. Encoded twice a byte takes up to five, and positions are `u32`.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// What is written for one byte at most.
const GROWTH: usize = 5;

/// Whether an Authorization value is of the scheme `OAuth`, in any case (§3.5.1), whatever follows it.
#[must_use]
pub fn is_oauth_scheme(field_value: &[u8]) -> bool {
    split_scheme(field_value).is_some()
}

/// Whether a body with that Content-Type is a form whose parameters are signed (§3.4.1.3.1), in whatever spelling an API
/// may take for one: there are frameworks that cut the type at a space, compare its beginning alone, look for the one
/// word, or know `application/x-url-encoded` too. What only one of them takes for a form has to be signed as one, so the
/// word is looked for among the letters alone.
#[must_use]
pub fn is_form_content_type(content_type: &[u8]) -> bool {
    const WORD: &[u8] = b"urlencoded";
    let letters = content_type
        .iter()
        .filter(|byte| byte.is_ascii_alphabetic());
    let mut matched = 0;
    for letter in letters.map(u8::to_ascii_lowercase) {
        // A `u` is nowhere in the word but at its beginning, so nothing else can begin within it.
        matched = match letter {
            _ if WORD.get(matched) == Some(&letter) => matched + 1,
            b'u' => 1,
            _ => 0,
        };
        if matched == WORD.len() {
            return true;
        }
    }
    false
}

/// Whether a form has more than `limit` fields, told without taking memory for them. Empty ones are none.
#[must_use]
pub fn has_more_fields(form: &[u8], limit: usize) -> bool {
    memchr::memchr_iter(b'&', form).count() >= limit
        && form
            .split(|&byte| byte == b'&')
            .filter(|field| !field.is_empty())
            .nth(limit)
            .is_some()
}

/// What follows the scheme `OAuth`.
fn split_scheme(field_value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = field_value.split_at_checked(SCHEME.len())?;
    let ends = matches!(rest.first(), None | Some(b' ' | b'\t'));
    (scheme.eq_ignore_ascii_case(SCHEME) && ends).then_some(rest)
}

impl Parameters {
    /// Reads a whole Authorization value, scheme included.
    ///
    /// §3.5.1: "Each parameter's name is immediately followed by an '=' character, a '"' character, the parameter value (MAY be
    /// empty), and another '"' character", and "Parameters are separated by a ',' character and OPTIONAL linear whitespace". Empty
    /// list elements are passed over, as RFC 9110 §5.6.1.2 demands of a recipient.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Malformed`] for another scheme and for anything that does not follow that grammar; see [`Parameters`] for
    /// what it leaves behind.
    pub fn read_header(&mut self, field_value: &[u8]) -> Result<(), ShapeError> {
        let read = self.header(field_value);
        self.finish(Place::Header, read)
    }

    /// Reads the query of a request URI as it was sent, without its `?`.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Malformed`] for a `%` without two hexadecimal digits; see [`Parameters`] for what it leaves behind.
    pub fn read_query(&mut self, raw: &[u8]) -> Result<(), ShapeError> {
        let read = self.form(raw, Place::Query);
        self.finish(Place::Query, read)
    }

    /// Reads an `application/x-www-form-urlencoded` body as it was sent.
    ///
    /// # Errors
    ///
    /// As [`Parameters::read_query`].
    pub fn read_body(&mut self, raw: &[u8]) -> Result<(), ShapeError> {
        let read = self.form(raw, Place::Body);
        self.finish(Place::Body, read)
    }

    fn finish(&mut self, place: Place, read: Result<(), Fault>) -> Result<(), ShapeError> {
        order::finish(&mut self.order, &self.arena, &self.entries);
        read.map_err(|fault| {
            let error = ShapeError::Malformed { place, fault };
            self.fault.get_or_insert_with(|| error.clone());
            error
        })
    }

    fn header(&mut self, field_value: &[u8]) -> Result<(), Fault> {
        let mut rest = split_scheme(field_value).ok_or(Fault::Scheme)?;
        self.reserve(rest.len())?;
        loop {
            rest = skip(rest, |byte| matches!(byte, b' ' | b'\t' | b','));
            if rest.is_empty() {
                return Ok(());
            }
            rest = self.header_parameter(rest)?;
            rest = skip(rest, |byte| matches!(byte, b' ' | b'\t'));
            if !matches!(rest.first(), None | Some(b',')) {
                return Err(Fault::Separator);
            }
        }
    }

    /// Reads `name="value"` and returns what follows it.
    fn header_parameter<'r>(&mut self, rest: &'r [u8]) -> Result<&'r [u8], Fault> {
        let start = self.arena.len();
        if let Some((parameter, value)) = as_usually_spelt(rest) {
            let (opening, length) = parameter.opening();
            self.arena.extend_block(opening, length);
            let name = Name {
                prefix: Prefix::of(parameter),
                oauth: true,
                parameter: Some(parameter),
            };
            let opened = self.begin(start, name, Place::Header);
            return self.header_value(opened, value);
        }

        let sent = rest;
        let mut scan = Scan::new(&mut self.arena, rest);
        let recoded = scan.recode(|byte| byte == b'=', Other::HeaderName)?;
        let rest = scan.rest.strip_prefix(b"=\"").ok_or(Fault::Unquoted)?;
        if self.arena.len() == start {
            return Err(Fault::Name);
        }
        // RFC 9110 §11.2 has names of auth-params match without regard to case; `realm` is the only one that is not ours.
        if self.arena[start..].eq_ignore_ascii_case(b"realm") {
            self.arena.truncate(start);
            return self.header_realm(rest);
        }

        let name = self.close_name(start, sent, recoded);
        let opened = self.begin(start, name, Place::Header);
        self.header_value(opened, rest)
    }

    #[inline(always)]
    fn header_value<'r>(
        &mut self,
        opened: OpenParameter,
        rest: &'r [u8],
    ) -> Result<&'r [u8], Fault> {
        let mut scan = Scan::new(&mut self.arena, rest);
        let read = scan.recode(|byte| byte == b'"', Other::HeaderValue);
        let rest = scan.rest;
        self.end(opened, read)?;
        rest.strip_prefix(b"\"").ok_or(Fault::Unterminated)
    }

    /// Reads the realm, a quoted-string of RFC 9110 §5.6.4: it is not percent-encoded, and a backslash takes the next byte as it is.
    fn header_realm<'r>(&mut self, rest: &'r [u8]) -> Result<&'r [u8], Fault> {
        let mut at = 0;
        while let Some(stop) = memchr::memchr2(b'"', b'\\', &rest[at..]) {
            at += stop;
            if rest[at] == b'"' {
                let (realm, rest) = rest.split_at(at);
                let start = self.plain.len();
                self.plain.extend_from_slice(realm);
                self.realm = Some(Span::new(start, self.plain.len()));
                return Ok(&rest[1..]);
            }
            at = (at + 2).min(rest.len());
        }
        Err(Fault::Unterminated)
    }

    /// Reads `name=value` pairs between `&`; a pair without `=` has an empty value, and one without any byte is none.
    ///
    /// A broken escape does not end it: what follows may still tell that the request is a signed one.
    fn form(&mut self, raw: &[u8], place: Place) -> Result<(), Fault> {
        self.reserve(raw.len())?;
        let mut rest = raw;
        let mut outcome = Ok(());
        while let Some(&first) = rest.first() {
            if first == b'&' {
                rest = &rest[1..];
                continue;
            }
            let (read, behind) = self.form_pair(rest, place);
            outcome = outcome.and(read);
            rest = match read {
                Ok(()) => behind,
                Err(_) => skip(behind, |byte| byte != b'&'),
            };
        }
        outcome
    }

    /// Reads one pair and returns what follows it: the `&`, or the place where it went wrong.
    fn form_pair<'r>(&mut self, rest: &'r [u8], place: Place) -> (Result<(), Fault>, &'r [u8]) {
        let start = self.arena.len();
        let sent = rest;
        let mut scan = Scan::new(&mut self.arena, rest);
        let read = scan.recode(|byte| matches!(byte, b'=' | b'&'), Other::Form);
        let rest = scan.rest;
        let recoded = match read {
            Ok(recoded) => recoded,
            Err(fault) => {
                self.arena.truncate(start);
                return (Err(fault), rest);
            }
        };

        let name = self.close_name(start, sent, recoded);
        let opened = self.begin(start, name, place);
        let Some(value) = rest.strip_prefix(b"=") else {
            return (self.end(opened, Ok(Recoded(false))), rest);
        };
        let mut scan = Scan::new(&mut self.arena, value);
        let read = scan.recode(|byte| byte == b'&', Other::Form);
        let rest = scan.rest;
        (self.end(opened, read), rest)
    }

    /// Makes room for what `bytes` of input usually become, so that the arena grows once, if at all.
    fn reserve(&mut self, bytes: usize) -> Result<(), Fault> {
        let fits = bytes
            .checked_mul(GROWTH)
            .and_then(|grown| grown.checked_add(self.arena.len()))
            .is_some_and(|total| total <= MAX_BYTES * GROWTH);
        if !fits {
            return Err(Fault::TooLong);
        }
        self.arena.reserve(bytes + bytes / 4);
        Ok(())
    }

    /// Classifies the name in the arena from `start` on; `sent` begins with the name as it was sent.
    #[inline]
    fn close_name(&mut self, start: usize, sent: &[u8], recoded: Recoded) -> Name {
        let length = self.arena.len() - start;
        // Nearly every name was sent as it is kept. What was written just now is slow to read back.
        let text = if recoded.0 {
            &self.arena[start..]
        } else {
            sent
        };
        let suffix = text[..length].strip_prefix(OAUTH_PREFIX);
        let name = Name {
            prefix: Prefix::new(text, length),
            oauth: suffix.is_some(),
            parameter: suffix.and_then(ProtocolParameter::from_suffix),
        };
        self.arena
            .extend_block(ENCODED_EQUALS, ENCODED_EQUALS.len());
        name
    }

    /// Records the name in the arena from `start` on, with the `=` after it.
    #[inline(always)]
    fn begin(&mut self, start: usize, name: Name, place: Place) -> OpenParameter {
        if name.oauth {
            self.oauth_places |= place.bit();
            match name.parameter {
                Some(parameter) => {
                    self.repeated |= self.sent & parameter.bit();
                    self.sent |= parameter.bit();
                }
                None => self.unknown_oauth = true,
            }
        }
        OpenParameter {
            start,
            value_start: self.arena.len(),
            place,
            name,
        }
    }

    /// Stores the value; removes the parameter if there is none.
    #[inline(always)]
    fn end(&mut self, opened: OpenParameter, value: Result<Recoded, Fault>) -> Result<(), Fault> {
        let OpenParameter {
            start,
            value_start,
            place,
            name,
        } = opened;
        let recoded = match value {
            Ok(recoded) => recoded,
            Err(fault) => {
                self.arena.truncate(start);
                return Err(fault);
            }
        };
        let end = self.arena.len();
        if let Some(parameter) = name.parameter {
            let value = if recoded.0 {
                self.plain_value(value_start)
            } else {
                Value::Arena(Span::new(value_start, end))
            };
            self.found[parameter as usize] = Some(value);
        }
        self.empty_oauth |=
            name.oauth && value_start == end && name.parameter != Some(ProtocolParameter::Token);
        let entry = position(self.entries.len());
        self.entries.push(Entry {
            start: position(start),
            value_start: position(value_start),
            end: position(end),
            place,
            oauth: name.oauth,
        });
        // §3.4.1.3.1: "The "oauth_signature" parameter MUST be excluded from the signature base string".
        if name.parameter != Some(ProtocolParameter::Signature) {
            let rank = Rank {
                prefix: name.prefix,
                entry,
            };
            order::add(&mut self.order, rank, &self.arena, &self.entries);
        }
        Ok(())
    }

    /// Stores the decoded value of the bytes in the arena from `value_start` on.
    fn plain_value(&mut self, value_start: usize) -> Value {
        let start = self.plain.len();
        decode_twice_into(&mut self.plain, &self.arena[value_start..]);
        Value::Plain(Span::new(start, self.plain.len()))
    }
}

/// The protocol parameter whose name is here without escapes, and what follows the opening quote of its value.
///
/// What comes with nearly every request is found without looking at each byte of it; all else takes the long way.
#[inline]
fn as_usually_spelt(rest: &[u8]) -> Option<(ProtocolParameter, &[u8])> {
    let suffix = rest.strip_prefix(OAUTH_PREFIX)?;
    let parameter = match suffix.first_chunk()? {
        b"co" => ProtocolParameter::ConsumerKey,
        b"to" => ProtocolParameter::Token,
        b"si" if suffix.starts_with(b"signature_") => ProtocolParameter::SignatureMethod,
        b"si" => ProtocolParameter::Signature,
        b"ti" => ProtocolParameter::Timestamp,
        b"no" => ProtocolParameter::Nonce,
        b"ve" if suffix.starts_with(b"version") => ProtocolParameter::Version,
        _ => return None,
    };
    let behind = rest.strip_prefix(parameter.as_str().as_bytes())?;
    Some((parameter, behind.strip_prefix(b"=\"")?))
}

/// What is known of a name.
#[derive(Clone, Copy)]
struct Name {
    prefix: Prefix,
    /// It begins with `oauth_`.
    oauth: bool,
    parameter: Option<ProtocolParameter>,
}

/// A parameter whose name was read.
#[derive(Clone, Copy)]
struct OpenParameter {
    start: usize,
    value_start: usize,
    place: Place,
    name: Name,
}

fn skip(bytes: &[u8], mut skipped: impl FnMut(u8) -> bool) -> &[u8] {
    let at = bytes
        .iter()
        .position(|&byte| !skipped(byte))
        .unwrap_or(bytes.len());
    &bytes[at..]
}

/// What becomes of a byte that is neither unreserved nor the start of an escape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Other {
    /// It is literal, and `+` is a space.
    Form,
    /// It is literal if a name may have it (a `tchar` of RFC 9110 §5.6.2).
    HeaderName,
    /// It is literal. Control characters and the backslash are errors: recipients read them differently.
    HeaderValue,
}

/// One pass over what was sent: decodes it and writes it encoded twice.
struct Scan<'a, 'r> {
    out: &'a mut Arena,
    rest: &'r [u8],
}

/// Whether the bytes that were written differ from those that were sent.
#[derive(Clone, Copy)]
struct Recoded(bool);

impl<'a, 'r> Scan<'a, 'r> {
    fn new(out: &'a mut Arena, rest: &'r [u8]) -> Self {
        Self { out, rest }
    }

    /// Goes on to a byte that `ends`, or to the end.
    #[inline(always)]
    fn recode(&mut self, ends: impl Fn(u8) -> bool, other: Other) -> Result<Recoded, Fault> {
        let mut recoded = Recoded(false);
        loop {
            self.rest = self.out.extend_unreserved(self.rest);
            let Some((&byte, behind)) = self.rest.split_first() else {
                return Ok(recoded);
            };
            if ends(byte) {
                return Ok(recoded);
            }
            self.rest = behind;
            let plain = match (byte, other) {
                (b'%', _) => self.escape()?,
                (b'+', Other::Form) => b' ',
                (_, Other::Form) => byte,
                (_, Other::HeaderName) if is_token_character(byte) => byte,
                (_, Other::HeaderName) => return Err(Fault::Name),
                (_, Other::HeaderValue) if byte < b' ' || matches!(byte, b'\\' | 0x7f) => {
                    return Err(Fault::Value);
                }
                (_, Other::HeaderValue) => byte,
            };
            recoded = Recoded(true);
            let (encoded, length) = percent::twice(plain);
            self.out.extend_block(encoded, length);
        }
    }

    fn escape(&mut self) -> Result<u8, Fault> {
        let (digits, rest) = self.rest.split_first_chunk().ok_or(Fault::Escape)?;
        let plain = percent::escaped(*digits).map_err(|_| Fault::Escape)?;
        self.rest = rest;
        Ok(plain)
    }
}

fn is_token_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Appends the plain bytes of text that [`Scan::recode`] wrote.
pub(super) fn decode_twice_into(plain: &mut Vec<u8>, twice: &[u8]) {
    let mut rest = twice;
    loop {
        let (run, escape) = rest.split_at(percent::unreserved_run(rest));
        plain.extend_from_slice(run);
        // `%25XX`; the pass before wrote nothing else that is not unreserved.
        let digits = escape.strip_prefix(ENCODED_PERCENT);
        let Some((digits, behind)) = digits.and_then(<[u8]>::split_first_chunk) else {
            return;
        };
        plain.extend(percent::escaped(*digits));
        rest = behind;
    }
}
