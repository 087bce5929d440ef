//! Settings: how a module declares the keys of the configuration that it uses. Nothing here reads a file.
//!
//! A module declares its keys with `section!`, in its file `settings.rs` or beside the code that uses them: each with its
//! type, default, documentation, and whether a reload applies it. The struct that results is what the module takes.
//! `run::config` lists the sections, reads them, and checks the rules on more than one key.

mod choices;
mod section;
mod text;
mod units;
mod value;

pub use self::{
    choices::{one_of, words_of},
    section::{KeySchema, Section, SectionSchema, Unwritten, paragraph},
    text::{Reason, Text, distinct, filled, list, optional, text},
    units::{
        DAY, KIB, LONGEST, Lifetime, MIB, count, duration, format_duration, format_size,
        optional_duration, optional_seconds, optional_size, rate_pattern, seconds, size,
    },
    value::{DataPath, Directories, SettingValue, ValueType, value_of, without_password},
};
pub(crate) use self::{
    section::section,
    text::{deserialize_text, texts},
    value::{choices, plain_values},
};
