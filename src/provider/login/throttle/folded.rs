//! The spellings of a name that count as one account.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};

/// A name without what account systems ignore: NFKD without marks, in lower case, without white space and invisible
/// characters. The usual collations of databases, such as the default of MySQL, take accented letters for the plain ones.
pub(super) fn folded(account: &str) -> String {
    let seen: String = account.nfkd().filter(|one| is_seen(*one)).collect();
    // Some letters are one only in upper case, such as the two of `\u{df}`.
    let lower = seen.to_uppercase().to_lowercase();
    lower.chars().map(without_stroke).collect()
}

/// Whether a reader sees the character. Of those that Unicode calls default ignorable, all are marks, format characters or
/// unassigned, except the two fillers of Hangul, which are letters. U+2800 is blank, although Unicode takes it for a symbol.
fn is_seen(character: char) -> bool {
    let is_blank = matches!(character, '\u{115f}' | '\u{1160}' | '\u{2800}');
    let is_mark = character.general_category_group() == GeneralCategoryGroup::Mark;
    let is_ignorable = matches!(
        character.general_category(),
        GeneralCategory::Control | GeneralCategory::Format | GeneralCategory::Unassigned
    );
    !(character.is_whitespace() || is_blank || is_mark || is_ignorable)
}

/// The plain letter instead of one that Unicode does not decompose, although collations take it for the plain one.
fn without_stroke(letter: char) -> Cow<'static, str> {
    match letter {
        '\u{e6}' => "ae".into(),
        '\u{f0}' | '\u{111}' => "d".into(),
        '\u{f8}' => "o".into(),
        '\u{127}' => "h".into(),
        '\u{131}' => "i".into(),
        '\u{142}' => "l".into(),
        '\u{153}' => "oe".into(),
        '\u{167}' => "t".into(),
        '\u{3c2}' => "\u{3c3}".into(),
        letter => letter.to_string().into(),
    }
}
