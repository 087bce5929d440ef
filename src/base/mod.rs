//! The ground: types and functions that know nothing of OAuth, of HTTP's connections or of this program's records.

pub mod clock;
pub mod cold;
pub mod file;
pub mod findings;
pub mod language;
pub mod memory;
pub mod network;
pub mod rate;
pub mod secret;
pub mod settings;
pub mod text;
