//! The ground: types and functions that know nothing of OAuth, of HTTP's connections or of this program's records.

pub mod clock;
pub mod cold;
pub mod findings;
pub mod hashed;
pub mod hexadecimal;
pub mod http_fields;
pub mod language;
pub mod longest;
pub mod memory;
pub mod names;
pub mod network;
pub mod new_file;
pub mod peer;
pub mod random;
pub mod rate;
pub mod secret;
pub mod settings;
pub mod tls;
pub mod zip;
