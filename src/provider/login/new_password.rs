//! The requirements of a new password. The page enforces them; the operator's commands only warn.
//!
//! This follows NIST SP 800-63B-4 §3.1.1.2: a length, a list of passwords that an attacker tries first, and no rule about
//! kinds of characters. Its 15 characters for a password that is the only factor are not required: 8 is what it allows
//! where there is another factor, and what users of existing accounts expect.

use thiserror::Error;

use crate::{
    base::{secret::Secret, text::longest},
    records::values::record::User,
};

/// The fewest characters (Unicode code points).
pub const MIN_CHARACTERS: usize = 8;

/// The 3,000 passwords of at least [`MIN_CHARACTERS`] that leaked most often, in lower case. They are the first ones of the
/// list that Royce Williams made of Pwned Passwords, as Django distributes it (`common-passwords.txt`, BSD-3-Clause).
static COMMON: &str = include_str!("common_passwords.txt");

/// Why a password is not good enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Weakness {
    /// It has fewer than [`MIN_CHARACTERS`].
    #[error("is shorter than 8 characters")]
    Short,
    /// It has more than [`longest::PASSWORD`].
    #[error("is longer than 1024 bytes")]
    Long,
    /// It is the current password.
    #[error("is the current one")]
    Current,
    /// It is a name or the id of its user, in any ASCII case.
    #[error("is the name of the user")]
    Name,
    /// It is on the list, in any ASCII case.
    #[error("is one of the most common passwords")]
    Common,
}

/// Checks a new password of `user`, instead of `current` where that is known.
///
/// # Errors
///
/// The first [`Weakness`].
pub fn check(new: &Secret, current: Option<&Secret>, user: &User) -> Result<(), Weakness> {
    if new.expose().len() > longest::PASSWORD {
        return Err(Weakness::Long);
    }
    let text = new.expose_text();
    let is_new = |known: &str| known.eq_ignore_ascii_case(&text);
    let names = [user.name.as_str(), user.id.as_str()];
    if text.chars().count() < MIN_CHARACTERS {
        Err(Weakness::Short)
    } else if current == Some(new) {
        Err(Weakness::Current)
    } else if names
        .into_iter()
        .chain(user.display_name.as_deref())
        .any(is_new)
    {
        Err(Weakness::Name)
    } else if COMMON.lines().any(is_new) {
        Err(Weakness::Common)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::store::test_double::user;

    #[test]
    fn names_what_is_wrong() {
        let long = "x".repeat(1025);
        for (password, found) in [
            ("", Err(Weakness::Short)),
            ("tr7-kQp", Err(Weakness::Short)),
            ("tr7-kQp9", Ok(())),
            // Characters count, not bytes.
            ("äöüßÄÖÜ", Err(Weakness::Short)),
            ("äöüßÄÖÜé", Ok(())),
            ("秘密の合言葉です", Ok(())),
            (&long[1..], Ok(())),
            (&long, Err(Weakness::Long)),
            ("the one before", Err(Weakness::Current)),
            ("The one before", Ok(())),
            ("Ada@Example.org", Err(Weakness::Name)),
            ("ID-Ada@Example.org", Err(Weakness::Name)),
            ("ada lovelace", Err(Weakness::Name)),
            ("ada@example.org 1", Ok(())),
            ("password", Err(Weakness::Common)),
            ("PassWord1", Err(Weakness::Common)),
            ("correct horse battery", Ok(())),
        ] {
            let current = Secret::from("the one before");
            let mut ada = user("ada@example.org");
            ada.display_name = Some("Ada Lovelace".to_owned());
            let checked = check(&Secret::from(password), Some(&current), &ada);
            assert_eq!(checked, found, "{password}");
        }
    }

    #[test]
    fn the_list_has_what_it_says() {
        let list: Vec<&str> = COMMON.lines().collect();
        assert_eq!(list.len(), 3000);
        assert!(
            list.is_sorted_by(|one, next| one < next),
            "and no line twice"
        );
        for line in list {
            assert!(
                line.len() >= MIN_CHARACTERS && line == line.to_ascii_lowercase(),
                "{line}"
            );
            assert!(line.bytes().all(|byte| byte.is_ascii_graphic()), "{line}");
        }
        assert!(
            Weakness::Short
                .to_string()
                .contains(&MIN_CHARACTERS.to_string())
        );
        assert!(
            Weakness::Long
                .to_string()
                .contains(&longest::PASSWORD.to_string())
        );
    }
}
