//! The declaration of a section: each key in one place, with its type, default, reason, and the effect of a reload.
//!
//! [`section!`] makes a struct with `#[derive(Deserialize)]` of it, and the list of its keys, the source of
//! suggestions, names of environment variables, defaults, `config.example.toml` and the JSON schema. The keys of one
//! section of the file can be declared in several parts, each by the module that uses them.

use serde::de::DeserializeOwned;

use super::ValueType;

/// A section as declared.
#[derive(Debug, Clone, Copy)]
pub struct SectionSchema {
    /// `listen.tls`, or `operation` for `[[operation]]`.
    pub name: &'static str,
    /// Its keys, or those of a part, in the order of the documentation.
    pub keys: &'static [KeySchema],
    /// `true`: written any number of times, as `[[name]]`.
    pub list: bool,
    /// Its documentation.
    pub doc: &'static [&'static str],
}

/// A key of a section.
#[derive(Debug, Clone, Copy)]
pub struct KeySchema {
    /// Its name in the section.
    pub name: &'static str,
    /// Its value where it is not written.
    pub unwritten: Unwritten,
    /// The behaviour of its type.
    pub value_type: ValueType,
    /// `reload` or `restart`: what applies a change.
    pub when: &'static str,
    /// Its documentation.
    pub doc: &'static [&'static str],
}

/// The value of a key that is not written; all values are TOML.
#[derive(Debug, Clone, Copy)]
pub enum Unwritten {
    /// This value.
    Default(&'static str),
    /// It must be written.
    Required {
        /// A value of it.
        example: &'static str,
        /// It may be absent if this key is written.
        unless: Option<&'static str>,
    },
    /// No value, or one that follows from other keys: its description, and an example.
    Absent(&'static str, &'static str),
}

impl SectionSchema {
    /// The whole key of each key: `listen.tls.certificate`.
    pub fn full_keys(&self) -> impl Iterator<Item = String> {
        let name = self.name;
        let keys = self.keys.iter();
        keys.map(move |key| format!("{name}.{}", key.name))
    }
}

/// A documentation as one paragraph.
pub fn paragraph(doc: &[&str]) -> String {
    let words = doc.iter().flat_map(|line| line.split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

/// A struct that holds a section, or a part of one.
pub trait Section: DeserializeOwned {
    /// Its declaration.
    const SCHEMA: SectionSchema;

    /// Takes from `running` the values that only a restart can change, and adds the keys that differed to `fixed`.
    fn keep_fixed(&mut self, running: &Self, fixed: &mut Vec<&'static str>);
}

/// Declares a section.
///
/// A key is `name: Type = default, when;`, or `name: Type [default CONSTANT], when;`, or `name: Type [required:
/// example], when;` (also `required: example, unless key`), or `name: Type [else "in words": example], when;`, with its
/// documentation, and `#[serde]` where the type alone does not say how it is read. Defaults and examples are TOML.
/// `when` is `reload` if `App::reload` applies a change of the key, else `restart`.
macro_rules! section {
    (
        $(#[doc = $doc:literal])*
        $(#[derive($derive:ident)])?
        $type:ident[$name:literal $(, $list:ident)?] {
            $(
                $(#[doc = $key_doc:literal])*
                $(#[serde($($serde:tt)*)])?
                $key:ident: $key_type:ty $(= $default:tt)? $([$($unwritten:tt)*])?, $when:ident;
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize $(, $derive)?)]
        #[serde(deny_unknown_fields)]
        pub struct $type {
            $($(#[doc = $key_doc])* $(#[serde($($serde)*)])? pub $key: $key_type,)*
        }

        impl $crate::base::settings::Section for $type {
            const SCHEMA: $crate::base::settings::SectionSchema = $crate::base::settings::SectionSchema {
                name: $name,
                keys: &[$(
                    $crate::base::settings::KeySchema {
                        name: stringify!($key),
                        unwritten: $crate::base::settings::section!(@unwritten $(= $default)? $($($unwritten)*)?),
                        value_type: $crate::base::settings::ValueType::new::<$key_type>(),
                        when: stringify!($when),
                        doc: &[$($key_doc),*],
                    },
                )*],
                list: $crate::base::settings::section!(@list $($list)?),
                doc: &[$($doc),*],
            };

            #[allow(unused_variables, reason = "some sections have no such key")]
            fn keep_fixed(&mut self, running: &Self, fixed: &mut Vec<&'static str>) {
                $(if $crate::base::settings::section!(@restart $when) && self.$key != running.$key {
                    self.$key.clone_from(&running.$key);
                    fixed.push(concat!($name, ".", stringify!($key)));
                })*
            }
        }
    };

    (@list) => { false };
    (@list list) => { true };

    (@restart restart) => { true };
    (@restart reload) => { false };

    (@unwritten = $default:tt) => { $crate::base::settings::Unwritten::Default(stringify!($default)) };
    (@unwritten default $text:expr) => { $crate::base::settings::Unwritten::Default($text) };
    (@unwritten required: $example:tt) => {
        $crate::base::settings::Unwritten::Required { example: stringify!($example), unless: None }
    };
    (@unwritten required: $example:tt, unless $key:literal) => {
        $crate::base::settings::Unwritten::Required { example: stringify!($example), unless: Some($key) }
    };
    (@unwritten else $words:literal: $example:tt) => {
        $crate::base::settings::Unwritten::Absent($words, stringify!($example))
    };
}

pub(crate) use section;
