//! Taking pairs out of a query or form, every other byte left as it is.

use std::{borrow::Cow, collections::HashSet};

use super::ForwardParams;
use crate::{
    oauth::{Deviation, DeviationSet, ParameterLocation, Parameters, parameters::fields, percent},
    request::policy::{call::Call, permit::Permit},
};

/// What is taken out of query and form before they go to the API.
#[derive(Debug, Clone, Copy)]
pub struct Rewriting {
    /// The pairs whose name begins with `oauth_`.
    pub strips_credentials: bool,
    /// All pairs but the last with the same name; a form comes after the query. The signature covers the last alone.
    pub drops_repeats: bool,
}

impl Rewriting {
    /// What is taken out of a permitted call. An observed call goes on as if this program were not there.
    pub fn new(
        call: &Call<'_>,
        permit: &Permit,
        deviations: DeviationSet,
        params: &ForwardParams,
    ) -> Self {
        let is_observed = permit.kind().is_none();
        Self {
            strips_credentials: call.collected.signed
                && !is_observed
                && !params.forwards_authorization(permit),
            drops_repeats: !is_observed && deviations.contains(Deviation::RepeatsOnce),
        }
    }

    /// Whether anything may have to be taken out of the parameters at this place.
    pub fn concerns(self, parameters: &Parameters, place: ParameterLocation) -> bool {
        self.drops_repeats || self.strips_credentials && parameters.has_oauth_name_in(place)
    }

    /// The pairs of a query or a form without what is taken out, each with its `&`; `None` if nothing is. `later` are
    /// those of a form that comes after a query.
    pub fn without(self, pairs: &[u8], later: &[u8]) -> Option<Vec<u8>> {
        let mut known = HashSet::new();
        if self.drops_repeats {
            known.extend(fields(later).map(name));
        }
        let split = || pairs.split(|&byte| byte == b'&');
        let mut remaining: Vec<&[u8]> = Vec::new();
        // The last one of a name comes first here.
        for pair in split().rev() {
            if (!self.strips_credentials || !is_credential(pair))
                && (!self.drops_repeats || pair.is_empty() || known.insert(name(pair)))
            {
                remaining.push(pair);
            }
        }
        if remaining.len() == split().count() {
            return None;
        }
        remaining.reverse();
        Some(remaining.join(&b'&'))
    }
}

/// The name of a pair, decoded as the signature reads it.
fn name(pair: &[u8]) -> Cow<'_, [u8]> {
    let name = pair.split(|&byte| byte == b'=').next().unwrap_or_default();
    percent::decode_form(name).unwrap_or(Cow::Borrowed(name))
}

/// Whether the decoded name of a pair begins with `oauth_`.
fn is_credential(pair: &[u8]) -> bool {
    let name = pair.split(|&byte| byte == b'=').next().unwrap_or_default();
    // The shortest is all six characters as escapes; the usual case needs no decoding.
    if name.starts_with(b"oauth_") {
        return true;
    }
    if !name.contains(&b'%') {
        return false;
    }
    percent::decode(name).is_ok_and(|decoded: Cow<'_, [u8]>| decoded.starts_with(b"oauth_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_every_other_byte() {
        for (pairs, expected) in [
            ("a=1&b=2", None),
            ("", None),
            ("xoauth_a=1&a=oauth_b", None),
            ("oauth_a=1", Some("")),
            ("a=1&oauth_a=1", Some("a=1")),
            ("oauth_a=1&a=1", Some("a=1")),
            ("a=%zz+%41&oauth_a=1&&b", Some("a=%zz+%41&&b")),
            ("&oauth_a&", Some("&")),
            ("o%61uth%5Fnonce=1&a", Some("a")),
            ("oauth_token=x&a=1&oauth_nonce=y&a=1", Some("a=1&a=1")),
        ] {
            let rewriting = Rewriting {
                strips_credentials: true,
                drops_repeats: false,
            };
            let stripped = rewriting.without(pairs.as_bytes(), b"");
            assert_eq!(stripped.as_deref(), expected.map(str::as_bytes), "{pairs}");
        }
    }

    #[test]
    fn leaves_the_last_pair_of_each_name() {
        let rewriting = Rewriting {
            strips_credentials: false,
            drops_repeats: true,
        };
        for (query, form, expected) in [
            ("a=1&b=2", "", None),
            ("a=1&a=2", "", Some("a=2")),
            ("a=1&b=2&%61=3&c&&", "", Some("b=2&%61=3&c&&")),
            ("a+b=1&a%20b=2", "", Some("a%20b=2")),
            ("a=1&b=2", "b=3", Some("a=1")),
            ("a=1", "A=2", None),
        ] {
            let remaining = rewriting.without(query.as_bytes(), form.as_bytes());
            assert_eq!(
                remaining.as_deref(),
                expected.map(str::as_bytes),
                "{query} {form}"
            );
        }
        assert_eq!(
            rewriting.without(b"x=1&x=2&oauth_token=t", b"").as_deref(),
            Some(&b"x=2&oauth_token=t"[..])
        );
    }
}
