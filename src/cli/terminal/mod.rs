//! What a terminal shows: results as text or JSON, marks, colours, and progress.

pub(super) mod marks;
pub mod output;
pub(super) mod progress;
