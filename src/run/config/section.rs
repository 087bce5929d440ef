//! The declaration of a section: each key in one place, with its type, default, reason, and the effect of a reload.
//!
//! [`section!`] makes a struct with `#[derive(Deserialize)]` of it, and the list of its keys, the source of
//! suggestions, names of environment variables, defaults and `config.example.toml`.

use serde::de::DeserializeOwned;
use toml::Table;

use super::read::Written;
use crate::base::settings::ValueType;

/// A section as declared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schema {
    /// `listen.tls`, or `operation` for `[[operation]]`.
    pub(super) name: &'static str,
    pub(super) keys: &'static [KeySchema],
    /// `true`: written any number of times, as `[[name]]`.
    pub(super) list: bool,
    #[cfg(test)]
    pub(super) doc: &'static [&'static str],
}

/// A key of a section.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeySchema {
    pub(super) name: &'static str,
    pub(super) unwritten: Unwritten,
    pub(super) value_type: ValueType,
    #[cfg(test)]
    pub(super) when: &'static str,
    #[cfg(test)]
    pub(super) doc: &'static [&'static str],
}

/// The value of a key that is not written; all values are TOML.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unwritten {
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
    Absent(
        &'static str,
        #[cfg_attr(not(test), expect(dead_code, reason = "for config.example.toml"))] &'static str,
    ),
}

impl Schema {
    /// The whole key of each key: `listen.tls.certificate`.
    pub(super) fn full_keys(&self) -> impl Iterator<Item = String> {
        let name = self.name;
        let keys = self.keys.iter();
        keys.map(move |key| format!("{name}.{}", key.name))
    }
}

/// A struct that holds a section.
pub(super) trait Section: DeserializeOwned {
    const SCHEMA: Schema;

    /// Reads a section that is called `name`, and those inside it: `listen.tls` inside `listen`.
    fn read(written: &mut Written<'_>, name: &str, table: Table) -> Option<Self>;

    /// Takes from `running` the values that only a restart can change, and adds the keys that differed.
    fn keep_fixed(&mut self, running: &Self, kept: &mut Vec<&'static str>);
}

/// Declares a section.
///
/// A key is `name: Type = default, when;`, or `name: Type [default CONSTANT], when;`, or `name: Type [required: example], when;` (also
/// `required: example, unless key`), or
/// `name: Type [else "in words": example], when;`, with its documentation, and `#[serde]` where the type alone does not
/// say how it is read. Defaults and examples are TOML. `when` is `reload` if `App::reload` applies a change of the key,
/// else `restart`.
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
        $( with { $( $(#[$inner_doc:meta])* $inner:ident: $inner_type:ty, )+ } )?
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize $(, $derive)?)]
        #[serde(deny_unknown_fields)]
        pub struct $type {
            $($(#[doc = $key_doc])* $(#[serde($($serde)*)])? pub $key: $key_type,)*
            $($($(#[$inner_doc])* #[serde(skip)] pub $inner: $inner_type,)+)?
        }

        impl $crate::run::config::section::Section for $type {
            const SCHEMA: $crate::run::config::section::Schema = $crate::run::config::section::Schema {
                name: $name,
                keys: &[$(
                    $crate::run::config::section::KeySchema {
                        name: stringify!($key),
                        unwritten: $crate::run::config::section::section!(@unwritten $(= $default)? $($($unwritten)*)?),
                        value_type: $crate::base::settings::ValueType::of::<$key_type>(),
                        #[cfg(test)]
                        when: stringify!($when),
                        #[cfg(test)]
                        doc: &[$($key_doc),*],
                    },
                )*],
                list: $crate::run::config::section::section!(@list $($list)?),
                #[cfg(test)]
                doc: &[$($doc),*],
            };

            #[allow(unused_mut, reason = "few sections hold another")]
            fn read(written: &mut $crate::run::config::read::Written<'_>, name: &str, table: toml::Table) -> Option<Self> {
                let read: Option<Self> = written.values(name, table);
                $($(let $inner = written.section();)+)?
                let mut read = read?;
                $($(read.$inner = $inner?;)+)?
                Some(read)
            }

            fn keep_fixed(&mut self, running: &Self, kept: &mut Vec<&'static str>) {
                $(if $crate::run::config::section::section!(@restart $when) && self.$key != running.$key {
                    self.$key.clone_from(&running.$key);
                    kept.push(concat!($name, ".", stringify!($key)));
                })*
                $($(self.$inner.keep_fixed(&running.$inner, kept);)+)?
            }
        }
    };

    (@list) => { false };
    (@list list) => { true };

    (@restart restart) => { true };
    (@restart reload) => { false };

    (@unwritten = $default:tt) => { $crate::run::config::section::Unwritten::Default(stringify!($default)) };
    (@unwritten default $text:expr) => { $crate::run::config::section::Unwritten::Default($text) };
    (@unwritten required: $example:tt) => {
        $crate::run::config::section::Unwritten::Required { example: stringify!($example), unless: None }
    };
    (@unwritten required: $example:tt, unless $key:literal) => {
        $crate::run::config::section::Unwritten::Required { example: stringify!($example), unless: Some($key) }
    };
    (@unwritten else $words:literal: $example:tt) => {
        $crate::run::config::section::Unwritten::Absent($words, stringify!($example))
    };
}

pub(super) use section;
