//! Reads parameters from the Authorization header (RFC 5849 §3.5.1), the query and a form body (§3.4.1.3.1).

use super::{
    ENCODED_EQUALS, Entry, MAX_LATE_METHODS, Parameters, Rank, names_method, prefix, scan::decoded,
};
use crate::oauth::{
    parameters::{
        name::{OAUTH_PREFIX, ProtocolParameter, is_look_alike},
        shape::{ParameterLocation, ShapeError},
    },
    percent,
};

const SCHEME: &[u8] = b"OAuth";

const INVALID_NAME: &str = "a parameter name is missing or has a forbidden character";
const UNTERMINATED: &str = "a double quote is not closed";

/// Whether an Authorization value is of the scheme `OAuth`, in any case (§3.5.1), whatever follows it.
#[must_use]
pub fn is_oauth_scheme(field_value: &[u8]) -> bool {
    split_scheme(field_value).is_some()
}

/// Whether a body with that Content-Type is a form whose parameters are signed (§3.4.1.3.1), in every spelling that an
/// API may accept as one: some frameworks cut the type at a space, compare its beginning alone, look for `urlencoded`,
/// or know `application/x-url-encoded` too. A type that only one of them accepts has to be signed as a form, so this
/// looks for `urlencoded` among the letters alone.
#[must_use]
pub fn is_form_content_type(content_type: &[u8]) -> bool {
    const WORD: &[u8] = b"urlencoded";
    let letters = content_type
        .iter()
        .filter(|byte| byte.is_ascii_alphabetic());
    let mut matched = 0;
    for letter in letters.map(u8::to_ascii_lowercase) {
        // The text has a `u` only at its beginning, so no other match can begin within it.
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

/// Whether a form with that Content-Type has, to some framework, another charset than UTF-8, or US-ASCII or ISO-8859-1,
/// whose names of parameters are the same bytes.
#[must_use]
pub fn has_other_charset(content_type: &[u8]) -> bool {
    const KNOWN: [&[u8]; 7] = [
        b"utf-8",
        b"utf8",
        b"us-ascii",
        b"ascii",
        b"iso-8859-1",
        b"latin1",
        b"",
    ];
    let lower = content_type.to_ascii_lowercase();
    memchr::memmem::find_iter(&lower, b"charset").any(|at| {
        let rest = lower[at + b"charset".len()..].trim_ascii_start();
        let Some(value) = rest.strip_prefix(b"=") else {
            return false;
        };
        let ends = |byte: &u8| matches!(byte, b';' | b',' | b'"' | b'\'' | ..=b' ');
        let value = value.trim_ascii_start();
        let value = value
            .strip_prefix(b"\"")
            .or(value.strip_prefix(b"'"))
            .unwrap_or(value);
        let value = value.split(ends).next().unwrap_or_default();
        !KNOWN.contains(&value)
    })
}

/// The fields of a form or a query, as they were sent; empty ones are left out.
pub fn fields(form: &[u8]) -> impl Iterator<Item = &[u8]> {
    form.split(|&byte| byte == b'&')
        .filter(|field| !field.is_empty())
}

/// Whether a form has more than `limit` fields; takes no memory for them.
#[must_use]
pub fn has_more_fields(form: &[u8], limit: usize) -> bool {
    memchr::memchr_iter(b'&', form).count() >= limit && fields(form).nth(limit).is_some()
}

/// The text after the scheme `OAuth`.
fn split_scheme(field_value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = field_value.split_at_checked(SCHEME.len())?;
    // Old signers write a comma after the scheme: an empty element of the list.
    let ends = matches!(rest.first(), None | Some(b' ' | b'\t' | b','));
    (scheme.eq_ignore_ascii_case(SCHEME) && ends).then_some(rest)
}

impl Parameters {
    /// Reads a whole Authorization value, scheme included.
    ///
    /// §3.5.1: "Each parameter's name is immediately followed by an '=' character, a '"' character, the parameter value (MAY be
    /// empty), and another '"' character", and "Parameters are separated by a ',' character and OPTIONAL linear
    /// whitespace". Empty list elements are passed over, as RFC 9110 §5.6.1.2 demands of a recipient.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Malformed`] for another scheme and for anything that does not follow that grammar; [`Parameters`] says
    /// what is kept then.
    pub fn read_header(&mut self, field_value: &[u8]) -> Result<(), ShapeError> {
        let read = self.header(field_value);
        self.sort();
        self.note_outcome(ParameterLocation::Header, read)
    }

    /// Reads an Authorization value, if there is one, and then a query: as [`Parameters::read_header`] and
    /// [`Parameters::read_query`], but sorts once. [`Parameters::protocol`] returns their errors.
    pub fn read_head(&mut self, field_value: Option<&[u8]>, query: &[u8]) {
        if let Some(field_value) = field_value {
            let read = self.header(field_value);
            let _ = self.note_outcome(ParameterLocation::Header, read);
        }
        let _ = self.read_query(query);
    }

    /// Reads the query of a request URI as it was sent, without its `?`.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Malformed`] for a `%` without two hexadecimal digits; [`Parameters`] says what is kept then.
    pub fn read_query(&mut self, raw: &[u8]) -> Result<(), ShapeError> {
        let read = self.form(raw, ParameterLocation::Query);
        self.sort();
        self.note_outcome(ParameterLocation::Query, read)
    }

    /// Reads an `application/x-www-form-urlencoded` body as it was sent.
    ///
    /// # Errors
    ///
    /// As [`Parameters::read_query`].
    pub fn read_body(&mut self, raw: &[u8]) -> Result<(), ShapeError> {
        let read = self.form(raw, ParameterLocation::Body);
        self.sort();
        self.note_outcome(ParameterLocation::Body, read)
    }

    fn note_outcome(
        &mut self,
        location: ParameterLocation,
        read: Result<(), &'static str>,
    ) -> Result<(), ShapeError> {
        read.map_err(|reason| {
            let error = ShapeError::Malformed { location, reason };
            self.malformed.get_or_insert_with(|| error.clone());
            error
        })
    }

    fn header(&mut self, field_value: &[u8]) -> Result<(), &'static str> {
        let mut rest = split_scheme(field_value).ok_or("the scheme is not OAuth")?;
        loop {
            rest = skip(rest, |byte| matches!(byte, b' ' | b'\t' | b','));
            if rest.is_empty() {
                return Ok(());
            }
            rest = self.header_parameter(rest)?;
            rest = skip(rest, |byte| matches!(byte, b' ' | b'\t'));
            if !matches!(rest.first(), None | Some(b',')) {
                return Err("parameters are not separated by commas");
            }
        }
    }

    /// Reads `name="value"` and returns what follows it.
    fn header_parameter<'r>(&mut self, rest: &'r [u8]) -> Result<&'r [u8], &'static str> {
        let (opened, rest) = match as_usually_spelt(rest) {
            Some((parameter, rest)) => {
                let start = self.text.len();
                self.text.extend_from_slice(parameter.as_str().as_bytes());
                let opened = Entry {
                    start,
                    value_start: start,
                    end: start,
                    location: ParameterLocation::Header,
                    is_plain: true,
                    oauth: true,
                    parameter: Some(parameter),
                };
                (opened, rest)
            }
            None => {
                let (name, rest) = Part::until(rest, |byte| !is_token_character(byte));
                if !matches!(rest.first(), None | Some(b'=')) {
                    return Err(INVALID_NAME);
                }
                let opened = self.open(name, false, ParameterLocation::Header)?;
                let rest = rest
                    .strip_prefix(b"=\"")
                    .ok_or("a parameter value is not in double quotes")?;
                if name.sent.is_empty() {
                    return Err(INVALID_NAME);
                }
                // RFC 9110 §11.2: names of auth-params match without regard to case; `realm` is the only one that is not ours.
                if self.text[opened.start..].eq_ignore_ascii_case(b"realm") {
                    return self.header_realm(rest);
                }
                (opened, rest)
            }
        };
        self.note(&opened);
        let (value, rest) = Part::until(rest, |byte| byte == b'"');
        // Recipients read these differently. Without a branch: the compiler looks at many bytes at once.
        let is_ambiguous = |byte: u8| byte < b' ' || byte == b'\\' || byte == 0x7f;
        let has_ambiguous = |sent: &[u8]| {
            sent.iter()
                .fold(false, |any, &byte| any | is_ambiguous(byte))
        };
        if !value.is_plain && has_ambiguous(value.sent) {
            return Err("a parameter value has a control character or a backslash in it");
        }
        self.close(opened, value, false)?;
        rest.strip_prefix(b"\"").ok_or(UNTERMINATED)
    }

    /// Reads the realm, a quoted-string of RFC 9110 §5.6.4: it is not percent-encoded, and a backslash takes the next byte
    /// as it is.
    fn header_realm<'r>(&mut self, rest: &'r [u8]) -> Result<&'r [u8], &'static str> {
        let mut at = 0;
        while let Some(stop) = memchr::memchr2(b'"', b'\\', &rest[at..]) {
            at += stop;
            if rest[at] == b'"' {
                let start = self.text.len();
                self.text.extend_from_slice(&rest[..at]);
                self.realm = Some(start..self.text.len());
                return Ok(&rest[at + 1..]);
            }
            at = (at + 2).min(rest.len());
        }
        Err(UNTERMINATED)
    }

    /// Reads `name=value` pairs between `&`; a pair without `=` has an empty value, and an empty pair is left out.
    ///
    /// A broken escape does not end the reading: what follows may still show that the request is a signed one.
    fn form(&mut self, raw: &[u8], location: ParameterLocation) -> Result<(), &'static str> {
        self.text.reserve(raw.len());
        if memchr::memchr(b';', raw).is_some() {
            self.note_after_semicolons(raw);
        }
        let mut rest = raw;
        let mut outcome = Ok(());
        while !rest.is_empty() {
            let (name, remainder) = Part::until(rest, |byte| matches!(byte, b'=' | b'&'));
            let (value, remainder) = match remainder.strip_prefix(b"=") {
                Some(remainder) => Part::until(remainder, |byte| byte == b'&'),
                None => (Part::default(), remainder),
            };
            if remainder.len() < rest.len() {
                outcome = outcome.and(self.form_pair(name, value, location));
            }
            rest = remainder.strip_prefix(b"&").unwrap_or(remainder);
        }
        outcome
    }

    /// Notes names of protocol parameters, and values of `_method`, after a `;`, where Rack and older Pythons begin a pair
    /// (HTML 4.01 B.2.2). They end the value there of any pair.
    #[cold]
    fn note_after_semicolons(&mut self, raw: &[u8]) {
        for pair in raw.split(|&byte| matches!(byte, b'&' | b';')) {
            let (name, value) = pair.split_at(memchr::memchr(b'=', pair).unwrap_or(pair.len()));
            if self.late_methods.len() < MAX_LATE_METHODS && names_method(&decoded(name)) {
                let value = decoded(value.get(1..).unwrap_or_default());
                // No method is longer.
                if value.len() <= 32 && !self.late_methods.contains(&value) {
                    self.late_methods.push(value);
                }
            }
        }
        for pair in raw.split(|&byte| byte == b';').skip(1) {
            let name = pair.split(|byte| matches!(byte, b'=' | b'&')).next();
            let name = decoded(name.unwrap_or_default());
            if ProtocolParameter::resembled_by(&name).is_some() {
                self.after_semicolon.add(&name);
                self.has_look_alike = true;
            }
        }
    }

    fn form_pair(
        &mut self,
        name: Part<'_>,
        value: Part<'_>,
        location: ParameterLocation,
    ) -> Result<(), &'static str> {
        let opened = self.open(name, true, location)?;
        self.note(&opened);
        self.close(opened, value, true)
    }

    /// Adds a name to the text; in a form `+` is a space. Its entry is open until [`Parameters::close`] adds a value.
    #[inline(always)]
    fn open(
        &mut self,
        name: Part<'_>,
        form: bool,
        location: ParameterLocation,
    ) -> Result<Entry, &'static str> {
        let start = self.text.len();
        self.decode(name, form, start)?;
        let suffix = self.text[start..].strip_prefix(OAUTH_PREFIX);
        let parameter = suffix.and_then(ProtocolParameter::from_suffix);
        self.has_look_alike |= parameter.is_none() && is_look_alike(&self.text[start..]);
        Ok(Entry {
            start,
            value_start: start,
            end: start,
            location,
            is_plain: name.is_plain,
            oauth: suffix.is_some(),
            parameter,
        })
    }

    /// Records that the name was sent, whatever its value.
    #[inline(always)]
    fn note(&mut self, opened: &Entry) {
        if opened.oauth {
            self.oauth_locations |= opened.location.bit();
        }
        if let Some(parameter) = opened.parameter {
            self.found[parameter as usize] = Some(self.entries.len());
        }
    }

    /// Adds the value to the text after its name; without a valid one the name is removed.
    #[inline(always)]
    fn close(&mut self, mut entry: Entry, value: Part<'_>, form: bool) -> Result<(), &'static str> {
        let name_end = self.text.len();
        self.text.extend_from_slice(ENCODED_EQUALS);
        entry.value_start = self.text.len();
        self.decode(value, form, entry.start)?;
        entry.end = self.text.len();
        // §3.4.1.3.1: "The "oauth_signature" parameter MUST be excluded from the signature base string".
        if entry.parameter != Some(ProtocolParameter::Signature) {
            let prefix = prefix(&self.text[entry.start..name_end], entry.is_plain);
            let entry = self.entries.len();
            self.order.push(Rank { prefix, entry });
        }
        entry.is_plain &= value.is_plain;
        self.entries.push(entry);
        Ok(())
    }

    /// Adds decoded bytes to the text; if they have a broken escape, the text is cut at `start`.
    #[inline(always)]
    fn decode(&mut self, part: Part<'_>, form: bool, start: usize) -> Result<(), &'static str> {
        if part.is_plain {
            self.text.extend_from_slice(part.sent);
            return Ok(());
        }
        percent::decode_into(&mut self.text, part.sent, form).map_err(|_| {
            self.text.truncate(start);
            "a '%' is not followed by two hexadecimal digits"
        })
    }
}

/// The protocol parameter whose name is here without escapes, and what follows the opening quote of its value.
///
/// Those that come with nearly every request are found without looking at each byte.
#[inline]
fn as_usually_spelt(rest: &[u8]) -> Option<(ProtocolParameter, &[u8])> {
    use ProtocolParameter as P;
    let suffix = rest.strip_prefix(OAUTH_PREFIX)?;
    Some(match suffix.first_chunk()? {
        b"co" => (P::ConsumerKey, after(b"consumer_key=\"", suffix)?),
        b"to" => (P::Token, after(b"token=\"", suffix)?),
        b"si" => match after(b"signature=\"", suffix) {
            Some(rest) => (P::Signature, rest),
            None => (P::SignatureMethod, after(b"signature_method=\"", suffix)?),
        },
        b"ti" => (P::Timestamp, after(b"timestamp=\"", suffix)?),
        b"no" => (P::Nonce, after(b"nonce=\"", suffix)?),
        b"ve" => (P::Version, after(b"version=\"", suffix)?),
        _ => return None,
    })
}

/// What follows a text whose length is known to the compiler, which then compares words.
#[inline(always)]
fn after<'r, const N: usize>(begin: &[u8; N], text: &'r [u8]) -> Option<&'r [u8]> {
    let (begun, rest) = text.split_first_chunk::<N>()?;
    (begun == begin).then_some(rest)
}

/// A name or a value as it was sent.
#[derive(Clone, Copy, Default)]
struct Part<'r> {
    sent: &'r [u8],
    /// All its bytes are unreserved, as nearly always: it is the same decoded and encoded.
    is_plain: bool,
}

impl<'r> Part<'r> {
    /// Splits at the first byte that `ends` it; an unreserved byte never does.
    #[inline(always)]
    fn until(bytes: &'r [u8], ends: impl Fn(u8) -> bool) -> (Self, &'r [u8]) {
        let run = percent::unreserved_run(bytes);
        let more = bytes[run..].iter().position(|&byte| ends(byte));
        let (sent, rest) = bytes.split_at(more.map_or(bytes.len(), |more| run + more));
        let is_plain = sent.len() == run;
        (Self { sent, is_plain }, rest)
    }
}

fn skip(bytes: &[u8], skipped: impl Fn(u8) -> bool) -> &[u8] {
    let at = bytes.iter().position(|&byte| !skipped(byte));
    &bytes[at.unwrap_or(bytes.len())..]
}

fn is_token_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
