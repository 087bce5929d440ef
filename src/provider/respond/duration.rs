//! Durations in the words of a language.

use std::time::Duration;

use crate::base::language::Texts;

/// A duration in the largest unit that divides it: `10 minutes`.
pub fn in_words(texts: Texts<'_>, duration: Duration) -> String {
    match duration.as_secs().max(1) {
        days if days % 86_400 == 0 => texts.counted("duration-days", days / 86_400),
        hours if hours % 3600 == 0 => texts.counted("duration-hours", hours / 3600),
        minutes if minutes % 60 == 0 => texts.counted("duration-minutes", minutes / 60),
        seconds => texts.counted("duration-seconds", seconds),
    }
}
