//! Settings: what each module declares about the keys of the configuration that it uses. Nothing here reads a file.

mod value;

pub(crate) use value::plain_values;
pub use value::{DataPath, Directories, SettingValue, ValueType, value_of, without_password};
