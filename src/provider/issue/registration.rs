//! The rules for names, tokens and keys that are registered, beyond what their types check: the same on the command line
//! and in an import.

use thiserror::Error;

use crate::{
    base::text::longest,
    oauth::{RsaPublicKey, method::rsa::InvalidRsaKey},
    wire::url::web_page::{InvalidWebPage, web_page},
};

/// Why a text cannot be registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidText {
    /// It is empty.
    #[error("it is empty")]
    Empty,
    /// It is too long.
    #[error("it is longer than {0} {1}")]
    TooLong(usize, &'static str),
    /// It has a line break or another control character in it.
    #[error("it has a control character in it")]
    Control,
    /// An invisible character that changes how the text around it is shown or compared.
    #[error("it has an invisible character in it that changes how text is shown")]
    Invisible,
    /// White space that is invisible and would have to be typed.
    #[error("it begins or ends with white space")]
    Edge,
    /// It has other characters than visible ASCII in it, which headers and command lines need.
    #[error("it has other than visible ASCII characters in it")]
    NotVisible,
}

/// Checks and returns the name of a consumer or a user on pages.
///
/// # Errors
/// Every [`InvalidText`] but `NotVisible`.
pub fn shown_name(text: &str) -> Result<String, InvalidText> {
    if text.chars().count() > longest::SHOWN_CHARACTERS {
        return Err(InvalidText::TooLong(
            longest::SHOWN_CHARACTERS,
            "characters",
        ));
    }
    readable(text)
}

/// Why a text is not the contact of a developer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidContact {
    /// It is not a text to show.
    #[error(transparent)]
    Text(#[from] InvalidText),
    /// It is the address of a web page, with a mistake.
    #[error(transparent)]
    WebPage(#[from] InvalidWebPage),
    /// It is neither.
    #[error(
        "it is neither a mail address nor the address of a web page; write ops@example.com or https://example.com/support"
    )]
    Neither,
}

/// Checks and returns the contact of a developer: a mail address, of which only the form is checked, or the address of a
/// web page.
///
/// # Errors
/// [`InvalidContact`]
pub fn contact(text: &str) -> Result<String, InvalidContact> {
    if text.contains("://") {
        return Ok(web_page(text)?);
    }
    if text.len() > longest::CONTACT {
        return Err(InvalidText::TooLong(longest::CONTACT, "bytes").into());
    }
    let is_mailbox_character =
        |character: char| !character.is_whitespace() && !"\"(),:;<>[\\]@".contains(character);
    let is_host_character = |character: char| character.is_alphanumeric() || character == '-';
    let is_host = |host: &str| {
        host.split('.')
            .all(|label| !label.is_empty() && label.chars().all(is_host_character))
    };
    let is_mail = text.rsplit_once('@').is_some_and(|(mailbox, host)| {
        !mailbox.is_empty() && mailbox.chars().all(is_mailbox_character) && is_host(host)
    });
    match is_mail {
        true => Ok(readable(text)?),
        false => Err(InvalidContact::Neither),
    }
}

/// Checks and returns a name to log in with; its length is counted in bytes, as the login page counts it.
///
/// # Errors
/// Every [`InvalidText`] but `NotVisible`.
pub fn login_name(text: &str) -> Result<String, InvalidText> {
    if text.len() > longest::LOGIN_NAME {
        return Err(InvalidText::TooLong(longest::LOGIN_NAME, "bytes"));
    }
    readable(text)
}

/// Checks the identifier of a token that another system issued.
///
/// # Errors
/// [`InvalidText::Empty`], `TooLong` and `NotVisible`.
pub fn token(text: &str) -> Result<(), InvalidText> {
    if text.is_empty() {
        Err(InvalidText::Empty)
    } else if text.len() > longest::TOKEN {
        Err(InvalidText::TooLong(longest::TOKEN, "bytes"))
    } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Err(InvalidText::NotVisible)
    } else {
        Ok(())
    }
}

/// Checks a public key and returns the stored part of its file: the first PEM block, which is the one that counts. A
/// private key may follow it.
///
/// # Errors
/// [`InvalidRsaKey`]
pub fn rsa_public_key(file: &str) -> Result<String, InvalidRsaKey> {
    RsaPublicKey::from_pem(file)?;
    let start = file.find("-----BEGIN ").ok_or(InvalidRsaKey::NoPem)?;
    let block = &file[start..];
    let last = block.find("-----END ").ok_or(InvalidRsaKey::NoPem)?;
    let end = block[last..]
        .find(['\r', '\n'])
        .map_or(block.len(), |length| last + length);
    if end > longest::PUBLIC_KEY {
        return Err(InvalidRsaKey::TooLong);
    }
    Ok(format!("{}\n", block[..end].trim_end()))
}

fn readable(text: &str) -> Result<String, InvalidText> {
    if text.is_empty() {
        Err(InvalidText::Empty)
    } else if text.chars().any(char::is_control) {
        Err(InvalidText::Control)
    } else if text.chars().any(is_invisible) {
        Err(InvalidText::Invisible)
    } else if text.trim() != text {
        Err(InvalidText::Edge)
    } else {
        Ok(text.to_owned())
    }
}

/// Characters by which one name passes for another on a consent page: they turn the direction of later text, break
/// lines, or take no room. Those that scripts need to be written (joiners, the marks of direction) are not among them.
const fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{200b}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_names_of_any_script_and_nothing_that_steers_a_terminal() {
        for (text, expected) in [
            ("Ünïcode's \"shop\" 商店", Ok(())),
            ("", Err(InvalidText::Empty)),
            (" ", Err(InvalidText::Edge)),
            ("alice ", Err(InvalidText::Edge)),
            ("a\nb", Err(InvalidText::Control)),
            ("\u{1b}[31m", Err(InvalidText::Control)),
            ("می\u{200c}خواهم", Ok(())),
            ("\u{202e}elppA", Err(InvalidText::Invisible)),
            ("Bank\u{200b}", Err(InvalidText::Invisible)),
            ("a\u{2066}b\u{2069}", Err(InvalidText::Invisible)),
            ("a\u{2028}b", Err(InvalidText::Invisible)),
            ("\u{feff}Shop", Err(InvalidText::Invisible)),
        ] {
            assert_eq!(shown_name(text).map(drop), expected, "{text:?}");
            assert_eq!(login_name(text).map(drop), expected, "{text:?}");
        }
    }

    #[test]
    fn bounds_what_is_shown_in_characters_and_the_rest_in_bytes() {
        let long = "é".repeat(255);
        assert!(shown_name(&long).is_ok());
        assert!(shown_name(&format!("{long}é")).is_err());
        assert!(login_name(&long).is_err());
        assert!(login_name(&"e".repeat(255)).is_ok());
        assert_eq!(token(&"e".repeat(255)), Ok(()));
        assert!(token(&"e".repeat(256)).is_err());
    }

    #[test]
    fn takes_tokens_of_visible_ascii() {
        assert_eq!(token("a/b+c=~!"), Ok(()));
        for text in ["a b", "é", "a\n", "\u{7f}"] {
            assert_eq!(token(text), Err(InvalidText::NotVisible), "{text:?}");
        }
        assert_eq!(token(""), Err(InvalidText::Empty));
    }

    const KEY: &str = include_str!("registration/public_key.pem");

    #[test]
    fn keeps_the_block_that_counts_of_a_key_file() {
        assert_eq!(rsa_public_key(KEY).unwrap(), KEY);
        let kept = KEY.trim_end();
        for file in [
            kept.to_owned(),
            format!("Bag Attributes\n{KEY}"),
            format!("{KEY}-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
        ] {
            assert_eq!(rsa_public_key(&file).unwrap(), KEY, "{file}");
        }
        assert!(rsa_public_key("no key").is_err());
        let padded = KEY.replacen('\n', &"\n".repeat(longest::PUBLIC_KEY), 1);
        assert!(matches!(
            rsa_public_key(&padded),
            Err(InvalidRsaKey::TooLong)
        ));
    }
}
