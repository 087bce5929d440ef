//! The rules for what users write about their consumers, beyond those for operators.

use unicode_normalization::is_nfkc;

use crate::provider::issue::{callback, registration};

/// The most callbacks of a consumer that a user asks for.
const CALLBACKS: usize = 10;
/// The most characters of its name.
pub(super) const NAME: usize = 60;

/// Checks the name of a consumer that a user asks for. Users see it, so it does not pass for the name of the service, nor
/// with letters that look like others.
pub(super) fn own_name(name: &str, service: &str) -> Result<String, String> {
    let name = registration::shown_name(name).map_err(|problem| problem.to_string())?;
    let (folded, service) = (name.to_lowercase(), service.trim().to_lowercase());
    let is_latin =
        |letter: char| letter.is_ascii_alphabetic() || ('\u{c0}'..'\u{250}').contains(&letter);
    let looks_latin = |letter: char| matches!(letter, '\u{250}'..'\u{2b0}' | '\u{370}'..'\u{590}' | '\u{13a0}'..'\u{1400}' | '\u{1c80}'..'\u{1c90}' | '\u{2c80}'..'\u{2e00}' | '\u{a640}'..'\u{a6a0}');
    if name.chars().count() > NAME {
        Err(format!("it is longer than {NAME} characters"))
    } else if service.chars().count() > 2 && folded.contains(&service) {
        Err("it has the name of the service in it".to_owned())
    } else if name.contains("  ") {
        Err("it has two spaces in succession".to_owned())
    } else if name.chars().any(is_unseen)
        || name.chars().any(is_joiner) && !name.chars().any(is_joined)
    {
        Err("it has invisible characters in it".to_owned())
    } else if !is_nfkc(&name) {
        Err("it has characters in it that look like others; write the usual ones".to_owned())
    } else if name.chars().any(is_latin) && name.chars().any(looks_latin) {
        Err("it mixes letters of scripts that look alike".to_owned())
    } else {
        Ok(name)
    }
}

/// Marks of direction, selectors of variants, fillers and tags: what shows nothing, and is not rejected in every name.
const fn is_unseen(character: char) -> bool {
    matches!(
        character,
        '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200e}' | '\u{200f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}'
    )
}

const fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200c}' | '\u{200d}')
}

/// Letters of the scripts that need joiners: Arabic, and those of India.
const fn is_joined(character: char) -> bool {
    matches!(character, '\u{600}'..='\u{77f}' | '\u{8a0}'..='\u{dff}')
}

/// Checks the callbacks that a user asks for, one in a line. What an operator is only warned of is rejected here.
pub(super) fn own_callbacks(text: &str) -> Result<Vec<String>, String> {
    let mut callbacks = Vec::new();
    for text in text.split_ascii_whitespace() {
        match callback::check_registration(text) {
            Err(problem) => return Err(format!("{text}: {problem}")),
            Ok(Some(warning)) => return Err(format!("{text}: {warning}")),
            Ok(None) if callbacks.iter().any(|known| known == text) => {}
            Ok(None) => callbacks.push(text.to_owned()),
        }
    }
    match callbacks.len() {
        ..=CALLBACKS => Ok(callbacks),
        count => Err(format!("{count} are given, and at most {CALLBACKS} fit")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_not_pass_for_another() {
        for name in [
            "Photo printer",
            "Фото принтер",
            "写真プリンタ",
            "Ünïcode 2",
            "Συσκευή",
        ] {
            assert_eq!(own_name(name, "Example").as_deref(), Ok(name));
        }
        for (name, problem) in [
            ("", "empty"),
            ("my EXAMPLE app", "name of the service"),
            ("Рaypal", "mixes letters"),
            ("ＰayＰal", "look like others"),
            ("𝐏rinter", "look like others"),
            ("a\u{202e}b", "invisible"),
            (&"n".repeat(61), "longer than 60"),
        ] {
            let found = own_name(name, "Example").unwrap_err();
            assert!(found.contains(problem), "{name:?}: {found}");
        }
    }

    #[test]
    fn callbacks_are_stricter_than_those_of_operators() {
        let found = own_callbacks("https://a.test/x\r\n oob\nhttps://a.test/x").unwrap();
        assert_eq!(found, ["https://a.test/x", "oob"]);
        for text in [
            "http://a.test/",
            "https://a.test/*",
            "javascript:x",
            "//a.test",
        ] {
            assert!(own_callbacks(text).is_err(), "{text}");
        }
        let many = (0..11).map(|number| format!("https://a.test/{number} "));
        assert!(own_callbacks(&many.collect::<String>()).is_err());
    }
}
