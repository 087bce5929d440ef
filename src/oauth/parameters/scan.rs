//! Looks for protocol parameters in a body of which nothing is kept but the present name.

use percent_encoding::percent_decode;

use crate::oauth::parameters::name::{OAUTH_PREFIX, folded_name};

/// The most bytes of a name that are kept. A longer one counts as one of a protocol parameter if it may still become that.
const MAX_NAME: usize = 256;

/// The most bytes of the head of a part that are kept. A longer one counts as one that names a protocol parameter.
const MAX_PART_HEAD: usize = 8 * 1024;

/// The names of a body that arrives in pieces and is not verified, as some API may read them.
#[derive(Debug)]
pub struct BodyNames {
    /// `None`: no API reads it as a form.
    form: Option<FormNames>,
    /// It is read as a form only as long as it has nothing but characters of one, as oauthlib does with every type.
    is_untyped: bool,
    parts: Option<PartNames>,
}

impl BodyNames {
    /// A form.
    pub fn for_form() -> Self {
        Self {
            form: Some(FormNames::default()),
            is_untyped: false,
            parts: None,
        }
    }

    /// Another body. Rack takes one without a type for a form.
    pub fn for_type(content_type: Option<&[u8]>) -> Self {
        let lower = content_type.unwrap_or_default().to_ascii_lowercase();
        let is_multipart = memchr::memmem::find(&lower, b"multipart").is_some();
        Self {
            is_untyped: content_type.is_some(),
            parts: is_multipart.then(PartNames::default),
            ..Self::for_form()
        }
    }

    /// Whether the next piece shows a name that may be read as that of a protocol parameter.
    pub fn has_protocol_name(&mut self, piece: &[u8]) -> bool {
        let is_form_byte =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-=&;:%+~,*@!()/?'$".contains(byte);
        let end = piece
            .iter()
            .position(|byte| self.is_untyped && !is_form_byte(byte));
        let of_form = &piece[..end.unwrap_or(piece.len())];
        let in_form = self
            .form
            .as_mut()
            .is_some_and(|form| form.has_protocol_name(of_form));
        self.form.take_if(|_| end.is_some());
        in_form
            || self
                .parts
                .as_mut()
                .is_some_and(|parts| parts.has_protocol_name(piece))
    }
}

/// The names in the heads of parts (RFC 7578 §4.2). A line that begins with two hyphens counts as a boundary.
#[derive(Debug, Default)]
struct PartNames {
    /// The present head; outside of heads the beginning of the present line.
    text: Vec<u8>,
    is_head: bool,
}

impl PartNames {
    fn has_protocol_name(&mut self, piece: &[u8]) -> bool {
        for line in piece.split_inclusive(|&byte| byte == b'\n') {
            if !self.is_head {
                let room = 2_usize.saturating_sub(self.text.len());
                self.text.extend_from_slice(&line[..line.len().min(room)]);
                if line.ends_with(b"\n") {
                    self.is_head = self.text == b"--";
                    self.text.clear();
                }
                continue;
            }
            self.text.extend_from_slice(line);
            if self.text.len() > MAX_PART_HEAD {
                return true;
            }
            if matches!(&*self.text, b"\n" | b"\r\n")
                || self.text.ends_with(b"\n\n")
                || self.text.ends_with(b"\n\r\n")
            {
                if has_part_name(&self.text) {
                    return true;
                }
                *self = Self::default();
            }
        }
        false
    }
}

/// Whether the head of a part has a parameter `name` that is that of a protocol parameter, or is written in sections (RFC
/// 2231 §3).
fn has_part_name(head: &[u8]) -> bool {
    let lower = head.to_ascii_lowercase();
    memchr::memmem::find_iter(&lower, b"name").any(|at| {
        let is_longer = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if lower[..at].last().is_some_and(is_longer) {
            return false;
        }
        let rest = &lower[at + b"name".len()..];
        let (is_extended, rest) = match rest.strip_prefix(b"*") {
            Some([b'0'..=b'9', ..]) => return true,
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let Some(value) = rest.trim_ascii_start().strip_prefix(b"=") else {
            return false;
        };
        let value = value.trim_ascii_start();
        let value = value
            .strip_prefix(b"\"")
            .or(value.strip_prefix(b"'"))
            .unwrap_or(value);
        let value = match is_extended {
            true => value
                .splitn(3, |&byte| byte == b'\'')
                .last()
                .unwrap_or_default(),
            false => value,
        };
        let end = value
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\'' | b';' | b'\r' | b'\n'));
        folded_name(&decoded(&value[..end.unwrap_or(value.len())])).starts_with(OAUTH_PREFIX)
    })
}

/// A name as a form has it, decoded; what is not an escape stays as it is.
pub(super) fn decoded(name: &[u8]) -> Vec<u8> {
    let spaced = name
        .iter()
        .map(|byte| if *byte == b'+' { b' ' } else { *byte });
    let spaced: Vec<u8> = spaced.collect();
    percent_decode(&spaced).collect()
}

/// The names of a form that arrives in pieces.
#[derive(Debug, Default)]
struct FormNames {
    /// The present name as sent.
    name: Vec<u8>,
    /// It has ended, or it is another one whatever follows.
    is_past: bool,
}

impl FormNames {
    /// Whether a name in the next piece, or one that the piece ends with, may be read as that of a protocol parameter:
    /// decoded, and as frameworks fold it, it begins with `oauth_`.
    fn has_protocol_name(&mut self, mut piece: &[u8]) -> bool {
        while !piece.is_empty() {
            if self.is_past {
                let Some(end) = memchr::memchr2(b'&', b';', piece) else {
                    return false;
                };
                piece = &piece[end + 1..];
                self.name.clear();
                self.is_past = false;
                continue;
            }
            let end = memchr::memchr3(b'=', b'&', b';', piece);
            let part = &piece[..end.unwrap_or(piece.len())];
            self.name
                .extend_from_slice(&part[..part.len().min(MAX_NAME - self.name.len())]);
            let is_whole = end.is_some() && self.name.len() < MAX_NAME;
            if self.may_be_protocol(is_whole) {
                return true;
            }
            self.is_past = end.is_some() || self.name.len() == MAX_NAME;
            piece = &piece[part.len()..];
        }
        false
    }

    /// Whether the present name, or what there is of it, begins like that of a protocol parameter.
    fn may_be_protocol(&self, is_whole: bool) -> bool {
        // Nearly every name ends here.
        let first = self.name.first();
        if first.is_none_or(|byte| byte.is_ascii_alphanumeric() && !matches!(byte, b'o' | b'O')) {
            return false;
        }
        // Without an escape that has not arrived whole.
        let escape = self
            .name
            .iter()
            .rev()
            .take(2)
            .position(|byte| *byte == b'%');
        let whole = escape.map_or(self.name.len(), |after| self.name.len() - after - 1);
        let folded = folded_name(&decoded(&self.name[..whole]));
        let may_become_one = self.name.len() == MAX_NAME && OAUTH_PREFIX.starts_with(&folded);
        folded.starts_with(OAUTH_PREFIX) || !is_whole && may_become_one
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::oauth::{ParameterLocation, Parameters};

    #[test]
    fn names_are_found_in_bodies_of_every_type_as_apis_read_them() {
        let part = |head: &str| format!("--x\r\n{head}\r\n\r\nvalue\r\n--x--\r\n");
        let parts = "multipart/form-data; boundary=x";
        let name = |value: &str| part(&format!("Content-Disposition: form-data; {value}"));
        let long = format!("a=\"{}\"; name=\"oauth_token\"", "b".repeat(MAX_PART_HEAD));
        for (content_type, body, expected) in [
            (None, "a=1&oauth_token=1".to_owned(), true),
            (None, "{\"a\": 1}&oauth_token=1".to_owned(), true),
            (Some("text/plain"), "a=1;oauth_token=1".to_owned(), true),
            (Some("text/plain"), "see a&oauth_token=1".to_owned(), false),
            (
                Some("application/json"),
                "{\"u\":\"?a&oauth_token=1\"}".to_owned(),
                false,
            ),
            (Some("Multipart/Mixed"), "oauth_token=1".to_owned(), true),
            (Some(parts), name("name=\"oauth_token\""), true),
            (
                Some(parts),
                name("name=\"a\"").replace("--x--", "") + &name("NAME='OAuth.token'"),
                true,
            ),
            (Some(parts), name("filename=a; name = oauth[token"), true),
            (Some(parts), name("\r\n name=\r\n\toauth_token"), true),
            (Some(parts), name("name*=utf-8''oauth%5Ftoken"), true),
            (Some(parts), name("name*0=oau; name*1=th_token"), true),
            (
                Some(parts),
                part("X: y\r\njunk\r\nContent-Disposition: form-data; name=oauth_x")
                    .replace('\r', ""),
                true,
            ),
            (Some(parts), name(&long), true),
            (
                Some(parts),
                name("name=\"a\"; filename=\"oauth_token\""),
                false,
            ),
            (
                Some(parts),
                name("name=\"text\"").replace("value", "<input name=\"oauth_token\">"),
                false,
            ),
            (
                Some(parts),
                name("name=\"text\"").replace("value", "-\n\noauth_token=1"),
                false,
            ),
        ] {
            for bytes in [1, 2, 7, body.len()] {
                let mut names = BodyNames::for_type(content_type.map(str::as_bytes));
                let mut pieces = body.as_bytes().chunks(bytes);
                let found = pieces.any(|piece| names.has_protocol_name(piece));
                assert_eq!(found, expected, "{content_type:?} {body} by {bytes}");
            }
        }
    }

    /// What is found in a form that arrives in pieces of this many bytes.
    fn found(form: &[u8], bytes: usize) -> bool {
        let mut names = BodyNames::for_form();
        form.chunks(bytes)
            .any(|piece| names.has_protocol_name(piece))
    }

    #[test]
    fn a_protocol_name_is_found_wherever_it_is_cut() {
        let blank = |bytes: usize| format!("{}oauth_token=1", "%20".repeat(bytes));
        for (form, expected) in [
            ("oauth_token=1", true),
            ("a=1&oauth_", true),
            ("a=oauth_token&%6fauth%5Ftoken=1", true),
            ("a&&%6F%61%75%74%68%5f", true),
            ("a=%&oauth_token=1", true),
            ("%6&oauth_token=1", true),
            ("a=1&OAuth.Token=x", true),
            ("a=1&+oauth_token[%zz]", true),
            ("a=1&%5Boauth_token", true),
            ("a=1;b;oauth_token=1", true),
            (&blank(5), true),
            (&blank(500), true),
            ("a=1&oauth=2&oauth%5=&xoauth_token=oauth_token", false),
            ("%256fauth_token=1&o%zzauth_=1&oauth2_token=1", false),
            ("", false),
        ] {
            for bytes in 1..=form.len().max(1) {
                assert_eq!(found(form.as_bytes(), bytes), expected, "{form} by {bytes}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_name_that_makes_a_form_signed_is_found(
            parts in prop::collection::vec(
                prop::sample::select(vec!["oauth_", "%6f", "auth_token", "&", "=", "%", "a", "+", "%5F", "o", "%26"]),
                0..12,
            ),
            bytes in 1_usize..9,
        ) {
            let form = parts.concat();
            let mut parameters = Parameters::default();
            let _ = parameters.read_body(form.as_bytes());
            if parameters.has_protocol_parameter() || parameters.has_oauth_name_in(ParameterLocation::Body) {
                prop_assert!(found(form.as_bytes(), bytes), "{}", form);
            }
        }
    }
}
