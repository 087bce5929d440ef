//! Errors in the log.

use std::error::Error;

/// An error with its causes, each once: a transparent error repeats the text of its source.
pub fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let below = std::iter::successors(error.source(), |cause| (*cause).source());
    for cause in below.map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}
