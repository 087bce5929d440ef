//! Values that a log line shows only in part.

use std::fmt;

/// The number of characters of a token that a log line may show.
pub const SHOWN_TOKEN_CHARS: usize = 8;

/// A token as a log line shows it: at most its first [`SHOWN_TOKEN_CHARS`] characters, and at most half of it, so
/// that a short one is not shown whole.
#[derive(Clone, Copy)]
pub struct RedactedToken<'a>(pub &'a str);

impl fmt::Display for RedactedToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;

        let length = self.0.chars().count();
        let shown = SHOWN_TOKEN_CHARS.min(length / 2);
        for character in self.0.chars().take(shown) {
            // A token comes from the peer: nothing in it may end the line or a field, or steer a terminal.
            if character.is_ascii_graphic() && !"\"'=,\\".contains(character) {
                f.write_char(character)?;
            } else {
                f.write_char('?')?;
            }
        }
        f.write_char('…')
    }
}

impl fmt::Debug for RedactedToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_at_most_eight_characters_of_a_token() {
        for (token, shown) in [
            ("", "…"),
            ("a", "…"),
            ("abcd", "ab…"),
            ("0123456789abcdef", "01234567…"),
            ("0123456789abcdef0123456789abcdef", "01234567…"),
            ("a=\"b,'\\cdefghijk", "a??b???c…"),
            ("éé\n\u{1b}aaaaaaaaaaaaaaaaaa", "????aaaa…"),
        ] {
            assert_eq!(RedactedToken(token).to_string(), shown, "{token:?}");
            assert_eq!(format!("{:?}", RedactedToken(token)), shown, "{token:?}");
        }
    }
}
