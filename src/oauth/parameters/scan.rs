//! Looks for protocol parameters in a form of which nothing is kept but the present name.

use percent_encoding::percent_decode;

use crate::oauth::name::{OAUTH_PREFIX, folded_name};

/// The most bytes of a name that are kept. A longer one counts as one of a protocol parameter if it may still become that.
const MAX_NAME: usize = 256;

/// The names of a form that arrives in pieces.
#[derive(Debug, Default)]
pub struct FormNames {
    /// The present name as sent.
    name: Vec<u8>,
    /// It has ended, or it is another one whatever follows.
    is_past: bool,
}

impl FormNames {
    /// Whether a name in the next piece, or one that the piece ends with, may be read as that of a protocol parameter: decoded, and
    /// as frameworks fold it, it begins with `oauth_`.
    pub fn has_protocol_name(&mut self, mut piece: &[u8]) -> bool {
        while !piece.is_empty() {
            if self.is_past {
                let Some(end) = memchr::memchr(b'&', piece) else {
                    return false;
                };
                piece = &piece[end + 1..];
                self.name.clear();
                self.is_past = false;
                continue;
            }
            let end = memchr::memchr2(b'=', b'&', piece);
            let part = &piece[..end.unwrap_or(piece.len())];
            self.name
                .extend_from_slice(&part[..part.len().min(MAX_NAME - self.name.len())]);
            let is_whole = end.is_some() && self.name.len() < MAX_NAME;
            if self.is_of_protocol(is_whole) {
                return true;
            }
            self.is_past = end.is_some() || self.name.len() == MAX_NAME;
            piece = &piece[part.len()..];
        }
        false
    }

    /// Whether the present name, or what there is of it, begins like that of a protocol parameter.
    fn is_of_protocol(&self, is_whole: bool) -> bool {
        // Nearly every name ends here.
        let first = self.name.first();
        if first.is_none_or(|byte| byte.is_ascii_alphanumeric() && !matches!(byte, b'o' | b'O')) {
            return false;
        }
        let spaced = self
            .name
            .iter()
            .map(|byte| if *byte == b'+' { b' ' } else { *byte });
        let mut spaced: Vec<u8> = spaced.collect();
        // An escape that has not arrived whole.
        if let Some(after) = spaced.iter().rev().take(2).position(|byte| *byte == b'%') {
            spaced.truncate(spaced.len() - after - 1);
        }
        let decoded: Vec<u8> = percent_decode(&spaced).collect();
        let folded = folded_name(&decoded);
        let may_become_one = self.name.len() == MAX_NAME && OAUTH_PREFIX.starts_with(&folded);
        folded.starts_with(OAUTH_PREFIX) || !is_whole && may_become_one
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::oauth::{ParameterLocation, Parameters};

    /// What is found in a form that arrives in pieces of this many bytes.
    fn found(form: &[u8], bytes: usize) -> bool {
        let mut names = FormNames::default();
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
