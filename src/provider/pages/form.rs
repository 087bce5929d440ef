//! The fields of a form, read strictly: UTF-8, and every name once.

pub(crate) mod csrf;
pub(crate) mod return_to;

use percent_encoding::percent_decode;
use zeroize::{Zeroize, Zeroizing};

/// More fields than any of our forms has, but for those of permissions.
pub(crate) const MAX_FIELDS: usize = 32;

/// The fields of a form. It is wiped when dropped, for one of them is a password.
pub(crate) struct Form(Vec<(String, Zeroizing<String>)>);

impl Form {
    /// Reads a form body; `None` if a name is repeated, something is not UTF-8, or there are more than [`MAX_FIELDS`].
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        Self::parse_within(body, MAX_FIELDS)
    }

    /// As [`Self::parse`], for a form with more fields.
    pub(crate) fn parse_within(body: &[u8], most: usize) -> Option<Self> {
        let mut fields: Vec<(String, Zeroizing<String>)> = Vec::new();
        let pairs = body.split(|byte| *byte == b'&');
        for pair in pairs.filter(|pair| !pair.is_empty()) {
            let mut parts = pair.splitn(2, |byte| *byte == b'=').map(text);
            let name = parts.next()??;
            let value = Zeroizing::new(parts.next().unwrap_or_else(|| Some(String::new()))?);
            if fields.len() == most || fields.iter().any(|(known, _)| *known == name) {
                return None;
            }
            fields.push((name, value));
        }
        Some(Self(fields))
    }

    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let field = self.0.iter().find(|(known, _)| known == name);
        field.map(|(_, value)| value.as_str())
    }
}

/// Decodes as browsers encode forms: `+` is a space, an invalid escape is taken literally. `form_urlencoded` does the same,
/// and leaves copies of what may be a password.
fn text(encoded: &[u8]) -> Option<String> {
    // The buffer never grows.
    let mut decoded = Vec::with_capacity(encoded.len());
    for (number, part) in encoded.split(|byte| *byte == b'+').enumerate() {
        if number > 0 {
            decoded.push(b' ');
        }
        decoded.extend(percent_decode(part));
    }
    let text = String::from_utf8(decoded);
    text.map_err(|error| error.into_bytes().zeroize()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_url_crate_on_whatever_is_utf8() {
        for body in [
            "username=ada+l&&password=%C3%A9%26%3D%2B%25&empty=&bare",
            "a=%41%zz%2",
            "=x",
            "a==b",
            "a%3Db=c",
            "",
        ] {
            let form = Form::parse(body.as_bytes()).unwrap();
            for (name, value) in url::form_urlencoded::parse(body.as_bytes()) {
                assert_eq!(form.field(&name), Some(&*value), "{body}");
            }
            assert_eq!(form.field("absent"), None);
        }
    }

    #[test]
    fn rejects_a_field_twice_too_many_and_what_is_not_utf8() {
        let many: String = (0..33).map(|number| format!("{number}=x&")).collect();
        for body in ["a=1&a=2", "a=1&%61=1", "a=%ff", "%ff=a", &many] {
            assert!(Form::parse(body.as_bytes()).is_none(), "{body}");
        }
    }
}
