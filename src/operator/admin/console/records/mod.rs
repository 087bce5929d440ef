//! Pages on records: consumers, users, tokens, what changes them, and the audit.

mod audit;
mod change;
mod consumer;
mod consumer_changes;
mod consumer_state;
mod consumers;
mod handover;
mod preview;
mod tokens;
mod user_changes;
mod users;
