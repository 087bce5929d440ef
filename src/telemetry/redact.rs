//! Wrappers for what a log line may show only in part.

use std::fmt;

use http::HeaderMap;

/// How many characters of a token a log line may show.
pub const SHOWN_TOKEN_CHARS: usize = 8;

/// A token as a log line shows it: at most its first [`SHOWN_TOKEN_CHARS`] characters, and at most half of it, so
/// that a short one is not told whole.
#[derive(Clone, Copy)]
pub struct RedactedToken<'a>(pub &'a str);

impl fmt::Display for RedactedToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;

        let length = self.0.chars().count();
        let shown = SHOWN_TOKEN_CHARS.min(length / 2);
        for character in self.0.chars().take(shown) {
            // A token comes from the peer: nothing in it may end the line or steer a terminal.
            if character.is_ascii_graphic() {
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

/// Header fields by name alone, each with how often it occurs if that is more than once.
#[derive(Clone, Copy)]
pub struct HeaderNames<'a>(pub &'a HeaderMap);

impl fmt::Display for HeaderNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.keys().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            f.write_str(name.as_str())?;
            let count = self.0.get_all(name).iter().count();
            if count > 1 {
                write!(f, "*{count}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for HeaderNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The path of a request target, without its query: protocol parameters may stand there.
#[derive(Clone, Copy)]
pub struct PathOnly<'a>(pub &'a str);

impl fmt::Display for PathOnly<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.find(['?', '#']).unwrap_or(self.0.len());
        write!(f, "{}", self.0[..end].escape_debug())
    }
}

impl fmt::Debug for PathOnly<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn shows_at_most_eight_characters_of_a_token() {
        for (token, shown) in [
            ("", "…"),
            ("a", "…"),
            ("abcd", "ab…"),
            ("0123456789abcdef", "01234567…"),
            ("0123456789abcdef0123456789abcdef", "01234567…"),
            ("éé\n\u{1b}aaaaaaaaaaaaaaaaaa", "????aaaa…"),
        ] {
            assert_eq!(RedactedToken(token).to_string(), shown, "{token:?}");
            assert_eq!(format!("{:?}", RedactedToken(token)), shown, "{token:?}");
        }
    }

    #[test]
    fn shows_headers_by_name_only() {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static("OAuth secret"));
        headers.append("cookie", HeaderValue::from_static("a"));
        headers.append("cookie", HeaderValue::from_static("b"));
        assert_eq!(HeaderNames(&headers).to_string(), "authorization cookie*2");
    }

    #[test]
    fn cuts_the_query_off_a_target() {
        assert_eq!(PathOnly("/a/b?oauth_token=x").to_string(), "/a/b");
        assert_eq!(PathOnly("/a\n").to_string(), "/a\\n");
    }
}
