//! The commands over the store, as processes: what they print, what they refuse, what they leave behind. What takes a
//! running proxy to see is in `tests/acceptance/commands.rs`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#[path = "../support/text.rs"]
mod text;

mod consumers;
mod failures;
mod guides;
mod manual;
mod paths;
mod place;
mod rekey;
mod signing;
mod terminal;
mod tokens;
mod transfer;
mod users;
