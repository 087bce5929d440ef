//! Reads the fields of a form or a query, strictly: UTF-8, and no name twice where it matters.

use percent_encoding::percent_decode;
use zeroize::{Zeroize, Zeroizing};

/// More fields than any of our forms has.
const MAX_FIELDS: usize = 32;

/// A form or query that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable;

/// The fields of a form; wiped when dropped, for one of them is a password.
pub(super) struct Form(Vec<(String, Zeroizing<String>)>);

impl Form {
    /// Reads a form body: every name at most once, all of it UTF-8.
    pub(super) fn parse(body: &[u8]) -> Result<Self, Unreadable> {
        let mut fields: Vec<(String, Zeroizing<String>)> = Vec::new();
        for (name, value) in pairs(body) {
            let (name, value) = (text(name)?, Zeroizing::new(text(value)?));
            if fields.len() == MAX_FIELDS || fields.iter().any(|(known, _)| *known == name) {
                return Err(Unreadable);
            }
            fields.push((name, value));
        }
        Ok(Self(fields))
    }

    /// The value of a field.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let field = self.0.iter().find(|(known, _)| known == name);
        field.map(|(_, value)| value.as_str())
    }
}

/// The one value of a query's parameter, its name however escaped; twice is unreadable. Other parameters are ignored.
pub(super) fn parameter(query: &[u8], name: &str) -> Result<Option<String>, Unreadable> {
    let mut values = pairs(query).filter(|(known, _)| decode(known) == name.as_bytes());
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some((_, value)), None) => text(value).map(Some),
        (Some(_), Some(_)) => Err(Unreadable),
    }
}

fn pairs(encoded: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let pairs = encoded
        .split(|byte| *byte == b'&')
        .filter(|pair| !pair.is_empty());
    pairs.map(|pair| match pair.iter().position(|byte| *byte == b'=') {
        Some(at) => (&pair[..at], &pair[at + 1..]),
        None => (pair, &pair[pair.len()..]),
    })
}

fn text(encoded: &[u8]) -> Result<String, Unreadable> {
    String::from_utf8(decode(encoded)).map_err(|error| {
        error.into_bytes().zeroize();
        Unreadable
    })
}

/// As browsers write forms: `+` is a space, an invalid escape is taken literally.
fn decode(encoded: &[u8]) -> Vec<u8> {
    // One buffer that never grows, for what it holds may be a password.
    let mut decoded = Vec::with_capacity(encoded.len());
    for (number, part) in encoded.split(|byte| *byte == b'+').enumerate() {
        if number > 0 {
            decoded.push(b' ');
        }
        for byte in percent_decode(part) {
            decoded.push(byte);
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_browsers_write() {
        let form = Form::parse(b"username=ada+l&&password=%C3%A9%26%3D%2B%25&empty=&bare").unwrap();
        assert_eq!(form.field("username"), Some("ada l"));
        assert_eq!(form.field("password"), Some("\u{e9}&=+%"));
        assert_eq!(form.field("empty"), Some(""));
        assert_eq!(form.field("bare"), Some(""));
        assert_eq!(form.field("absent"), None);
        assert!(Form::parse(b"").is_ok());
    }

    #[test]
    fn agrees_with_the_url_crate_on_whatever_is_utf8() {
        for body in [
            "a=b",
            "a=%41%zz%2",
            "a=+%2B",
            "=x",
            "a==b",
            "a%3Db=c",
            "%C3%A9=%E2%82%AC",
        ] {
            let form = Form::parse(body.as_bytes()).unwrap();
            for (name, value) in url::form_urlencoded::parse(body.as_bytes()) {
                assert_eq!(form.field(&name), Some(&*value), "{body}");
            }
        }
    }

    #[test]
    fn rejects_a_field_twice_too_many_and_what_is_no_utf8() {
        assert!(Form::parse(b"a=1&a=2").is_err());
        assert!(Form::parse(b"a=1&%61=1").is_err());
        assert!(Form::parse(b"a=%ff").is_err());
        assert!(Form::parse(b"%ff=a").is_err());
        let many: String = (0..33).map(|number| format!("{number}=x&")).collect();
        assert!(Form::parse(many.as_bytes()).is_err());
    }

    #[test]
    fn takes_a_parameter_once_however_it_is_spelt() {
        assert_eq!(
            parameter(b"mode=x&oauth_token=t%2B", "oauth_token"),
            Ok(Some("t+".to_owned()))
        );
        assert_eq!(
            parameter(b"oauth%5Ftoken=t", "oauth_token"),
            Ok(Some("t".to_owned()))
        );
        assert_eq!(parameter(b"mode=x&mode=y", "oauth_token"), Ok(None));
        assert_eq!(
            parameter(b"oauth_token=a&oauth%5ftoken=b", "oauth_token"),
            Err(Unreadable)
        );
        assert_eq!(
            parameter(b"oauth_token=%ff", "oauth_token"),
            Err(Unreadable)
        );
    }
}
