//! The words that a value can be, for the JSON schema.

use std::fmt::{self, Display};

use serde::{
    Deserialize,
    de::{Deserializer, Error, Visitor},
    forward_to_deserialize_any,
};
use serde_json::{Value, json};

/// The schema of a value that is one of these words.
pub fn one_of(words: &[&str]) -> Value {
    json!({ "enum": words })
}

/// The words of an enum, as its `Deserialize` names them; empty for another type.
pub fn words_of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    T::deserialize(Probe).err().map_or(&[], |words| words.0)
}

/// A deserializer that fails with the words it is asked for.
struct Probe;

/// The words of an enum, as the error of [`Probe`].
#[derive(Debug)]
struct Words(&'static [&'static str]);

impl Display for Words {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "expected one of {:?}", self.0)
    }
}

impl std::error::Error for Words {}

impl Error for Words {
    fn custom<T: Display>(_: T) -> Self {
        Self(&[])
    }
}

impl<'de> Deserializer<'de> for Probe {
    type Error = Words;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Words> {
        Err(Words(words))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Words> {
        Err(Words(&[]))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
