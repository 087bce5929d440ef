//! The names and texts that people and other systems give, and how long they may be.

pub mod hexadecimal;
pub mod longest;
pub mod names;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

/// Percent-encodes a text: all but the unreserved characters of RFC 3986 §2.3.
pub fn percent_encoded(text: &str) -> PercentEncode<'_> {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~');
    utf8_percent_encode(text, ESCAPED)
}

/// How many things there are: `1 day`, `2 days`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_day_is_not_a_plural() {
        let said = [0, 1, 2].map(|count| counted(count, "day"));
        assert_eq!(said, ["0 days", "1 day", "2 days"]);
    }
}
