//! The types of the facts in the record of a call, and how each is written and read.

use std::{borrow::Cow, fmt, net::IpAddr, time::Duration};

use http::Version;
use serde::{Serialize, Serializer};

use super::verdict::Verdict;
use crate::oauth::{Deviation, DeviationSet, diagnosis::Diagnosed};

/// A fact of a call.
pub trait Fact: Sized {
    /// The same without borrowed texts.
    type Kept;

    /// The value as records show it; `None` if it is not known.
    fn shown(&self) -> Option<Shown<'_>>;

    /// Reads a value as records show it, without quotation marks; `None` if it is not one.
    fn read(text: String) -> Option<Self::Kept>;

    /// Copies borrowed texts. Those longer than this many bytes are cut.
    fn into_owned(self, max_text: usize) -> Self::Kept;
}

/// A value of a fact. [`Display`](fmt::Display) writes the form of a line of text, serde that of JSON.
#[derive(Debug)]
pub enum Shown<'f> {
    /// A text in quotation marks.
    Text(&'f str),
    /// A text in quotation marks only if it has a character that could end the value or steer a terminal.
    Bare(Cow<'f, str>),
    /// An address.
    Address(IpAddr),
    /// A whole number.
    Whole(i64),
    /// Another number.
    Fraction(f64),
}

impl Shown<'_> {
    /// A text without quotation marks where it needs none, such as a key.
    #[must_use]
    pub fn bare(self) -> Self {
        match self {
            Self::Text(text) => Self::Bare(text.into()),
            other => other,
        }
    }
}

/// Whether a text is one word of visible characters, and has no quotation mark or backslash in it.
fn is_bare(text: &str) -> bool {
    let is_plain = |it: char| match it.is_ascii() {
        true => it.is_ascii_graphic() && it != '"' && it != '\\',
        false => !it.is_whitespace() && it.escape_debug().len() == 1,
    };
    text.chars().all(is_plain)
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bare(text) if is_bare(text) => f.write_str(text),
            // Escapes control characters, quotation marks and backslashes: the text stays one value of one line.
            Self::Bare(text) => write!(f, "{text:?}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Address(address) => write!(f, "{address}"),
            Self::Whole(number) => write!(f, "{number}"),
            Self::Fraction(number) => write!(f, "{number:?}"),
        }
    }
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bare(text) => serializer.serialize_str(text),
            Self::Address(address) => address.serialize(serializer),
            Self::Whole(number) => serializer.serialize_i64(*number),
            Self::Fraction(number) => serializer.serialize_f64(*number),
        }
    }
}

/// What a call proves about its sender.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum SenderProof {
    /// Its signature is right.
    Verified,
    /// Its signature is wrong, and made with the consumer's secret: the diagnosis found the mistake.
    Secrets,
    /// Nothing: anybody can send the key of a consumer.
    #[default]
    None,
}

/// How the consumer of a call proves itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Door {
    /// By a signature of OAuth 1.0a.
    Signature,
    /// By a Bearer token of OAuth 2.
    Bearer,
}

/// A rule about callers, other than `permission`, by its key: of `[[operation]]`, or of the record of the consumer if that
/// is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum OperationRule {
    /// The networks of callers.
    From,
    /// The kinds of callers.
    Access,
}

/// The secret of the consumer with which a call is signed, unless it is the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum OtherSecret {
    /// The previous one, during its grace.
    Previous,
}

/// The version of HTTP that a request came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
pub enum HttpVersion {
    /// HTTP/1.0.
    #[strum(serialize = "1.0")]
    Http10,
    /// HTTP/1.1.
    #[strum(serialize = "1.1")]
    Http11,
    /// HTTP/2.
    #[strum(serialize = "2")]
    Http2,
}

impl HttpVersion {
    /// The version of a head; `None`: no listener here has it.
    pub const fn from_head(version: Version) -> Option<Self> {
        match version {
            Version::HTTP_10 => Some(Self::Http10),
            Version::HTTP_11 => Some(Self::Http11),
            Version::HTTP_2 => Some(Self::Http2),
            _ => None,
        }
    }
}

/// The outcome for a call that asks for another protocol, unless the API decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Upgrade {
    /// The API does not learn that the call asks for it.
    Dropped,
}

/// Why a call was not served as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason<'a> {
    /// The verdict that enforcing would give to a call that was only observed.
    Observed(Verdict),
    /// The head cannot be read: the mistake in it.
    Unreadable(Cow<'a, str>),
}

impl<T: Fact> Fact for Option<T> {
    type Kept = Option<T::Kept>;

    fn shown(&self) -> Option<Shown<'_>> {
        self.as_ref()?.shown()
    }

    fn read(text: String) -> Option<Self::Kept> {
        T::read(text).map(Some)
    }

    fn into_owned(self, max_text: usize) -> Self::Kept {
        self.map(|fact| fact.into_owned(max_text))
    }
}

/// Facts that own what they have: how each is shown and read.
macro_rules! owned {
    ($($type:ty: |$fact:ident| $shown:expr, |$text:ident| $read:expr;)+) => {
        $(impl Fact for $type {
            type Kept = Self;

            fn shown(&self) -> Option<Shown<'_>> {
                let $fact = *self;
                $shown
            }

            fn read($text: String) -> Option<Self> {
                $read
            }

            fn into_owned(self, _: usize) -> Self {
                self
            }
        })+
    };
}

/// Facts that are one word of an enum.
macro_rules! words {
    ($($type:ty),+) => {
        owned! { $($type: |fact| Some(Shown::Text(fact.into())), |text| text.parse().ok();)+ }
    };
}

words!(
    Verdict,
    SenderProof,
    Door,
    OperationRule,
    OtherSecret,
    HttpVersion,
    Upgrade,
    Deviation
);

owned! {
    u16: |number| Some(Shown::Whole(number.into())), |text| text.parse().ok();
    i64: |number| Some(Shown::Whole(number)), |text| text.parse().ok();
    IpAddr: |address| Some(Shown::Address(address)), |text| text.parse().ok();
    // In milliseconds, to the microsecond.
    Duration: |time| Some(Shown::Fraction((time.as_secs_f64() * 1e6).round() / 1e3)),
        |text| Self::try_from_secs_f64(text.parse::<f64>().ok()? / 1e3).ok();
    Diagnosed: |diagnosis| diagnosis.word().map(Shown::Text), |text| Some(Self::from_word(&text));
    DeviationSet: |deviations| {
            let words = Vec::from_iter(deviations.iter().map(Deviation::as_str));
            (!words.is_empty()).then(|| Shown::Bare(words.join(" ").into()))
        },
        |text| Some(text.split(' ').filter_map(|word| word.parse().ok()).collect());
}

impl Fact for Cow<'_, str> {
    type Kept = Cow<'static, str>;

    fn shown(&self) -> Option<Shown<'_>> {
        Some(Shown::Text(self))
    }

    fn read(text: String) -> Option<Self::Kept> {
        Some(text.into())
    }

    fn into_owned(self, max_text: usize) -> Self::Kept {
        let mut text = self.into_owned();
        text.truncate(text.floor_char_boundary(max_text));
        text.shrink_to_fit();
        text.into()
    }
}

impl Fact for Reason<'_> {
    type Kept = Reason<'static>;

    fn shown(&self) -> Option<Shown<'_>> {
        Some(Shown::Text(match self {
            Self::Observed(verdict) => verdict.as_str(),
            Self::Unreadable(text) => text,
        }))
    }

    fn read(text: String) -> Option<Self::Kept> {
        let known = text.parse().map(Reason::Observed);
        Some(known.unwrap_or_else(|_| Reason::Unreadable(text.into())))
    }

    fn into_owned(self, max_text: usize) -> Self::Kept {
        match self {
            Self::Observed(verdict) => Reason::Observed(verdict),
            Self::Unreadable(text) => Reason::Unreadable(Fact::into_owned(text, max_text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_could_end_its_value_or_steer_a_terminal_is_quoted() {
        for (text, shown) in [
            ("shop", "shop"),
            ("acc0212b…", "acc0212b…"),
            ("key==", "key=="),
            ("é&a=b'", "é&a=b'"),
            ("two words", "\"two words\""),
            ("a\"b", "\"a\\\"b\""),
            ("a\\b", "\"a\\\\b\""),
            ("a\nb", "\"a\\nb\""),
            ("\u{1b}[31m", "\"\\u{1b}[31m\""),
            ("\u{9b}31m", "\"\\u{9b}31m\""),
            ("a\u{a0}b", "\"a\\u{a0}b\""),
            ("a\u{202e}b", "\"a\\u{202e}b\""),
            ("a\u{2028}b", "\"a\\u{2028}b\""),
        ] {
            assert_eq!(Shown::Text(text).bare().to_string(), shown);
        }
        assert_eq!(Shown::Text("shop").to_string(), "\"shop\"");
    }
}
