//! Values that are written as strings, for `#[serde(deserialize_with)]`: one at a time, or a list of them.

use std::{
    borrow::Cow,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use http::HeaderName;
use ipnet::IpNet;
use serde::de::{Deserialize, Deserializer, Error};

use super::{SettingValue, plain_values};
use crate::base::text::names::{ConsumerKey, Permission};

/// The reason why a text is rejected, without the text itself; empty if [`Text::EXPECTED`] is enough.
pub type Reason = Cow<'static, str>;

/// A type that is written as a string.
pub trait Text: SettingValue + Sized {
    /// The expected text, for error lines.
    const EXPECTED: &'static str;

    /// Reads it.
    ///
    /// # Errors
    /// The reason.
    fn parse(text: &str) -> Result<Self, Reason>;
}

/// Implements [`Text`] and [`SettingValue`] for types without a secret or a path whose errors print as the reason: `type:
/// expected => parse;`. Those that are not any string have a schema too: `type: expected => parse, schema;`.
macro_rules! texts {
    ($($type:ty: $expected:literal => $parse:expr $(, $schema:expr)?;)+) => {$(
        $crate::base::settings::plain_values!($type $(: $schema)?);

        impl $crate::base::settings::Text for $type {
            const EXPECTED: &'static str = $expected;

            fn parse(text: &str) -> Result<Self, $crate::base::settings::Reason> {
                ($parse)(text).map_err(|error| error.to_string().into())
            }
        }
    )+};
}
pub(crate) use texts;

fn parse<T: Text, E: Error>(text: &str) -> Result<T, E> {
    T::parse(text).map_err(|reason| {
        let separator = if reason.is_empty() { "" } else { ": " };
        E::custom(format!("expected {}{separator}{reason}", T::EXPECTED))
    })
}

/// Reads a string.
///
/// # Errors
/// It is something else.
pub fn text<'de, D: Deserializer<'de>, T: Text>(deserializer: D) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer);
    let expected = |_| D::Error::custom(format!("expected {}, in quotes", T::EXPECTED));
    parse(&text.map_err(expected)?)
}

/// Reads a string under a key that may be absent.
///
/// # Errors
/// It is something else.
pub fn optional<'de, D: Deserializer<'de>, T: Text>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    text(deserializer).map(Some)
}

/// Reads a list; a single value is a list of one.
///
/// # Errors
/// It is something else.
pub fn list<'de, D: Deserializer<'de>, T: Text>(deserializer: D) -> Result<Vec<T>, D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum OneOrMore {
        One(String),
        More(Vec<String>),
    }
    let expected = |_| D::Error::custom(format!("expected {}, or a list of such", T::EXPECTED));
    match OneOrMore::deserialize(deserializer).map_err(expected)? {
        OneOrMore::One(text) => Ok(vec![parse(&text)?]),
        OneOrMore::More(texts) => texts.iter().map(|text| parse(text)).collect(),
    }
}

/// Reads a list in which nothing is repeated.
///
/// # Errors
/// It is something else.
pub fn distinct<'de, D: Deserializer<'de>, T: Text + PartialEq>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items: Vec<T> = list(deserializer)?;
    let mut rest = items.iter().enumerate();
    if rest.any(|(index, item)| items[..index].contains(item)) {
        return Err(D::Error::custom(
            "two items of the list are the same; leave one out",
        ));
    }
    Ok(items)
}

/// Reads a list of one item at least, in which nothing is repeated.
///
/// # Errors
/// It is something else.
pub fn filled<'de, D: Deserializer<'de>, T: Text + PartialEq>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items = distinct(deserializer)?;
    if items.is_empty() {
        let message = "the list is empty; name one at least, or leave the key out";
        return Err(D::Error::custom(message));
    }
    Ok(items)
}

/// Lets a type of ours say how it is read, so that its keys need no attribute.
macro_rules! deserialize_text {
    ($($type:ty),+ $(,)?) => {$(
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::base::settings::text(deserializer)
            }
        }
    )+};
}
pub(crate) use deserialize_text;

impl Text for PathBuf {
    const EXPECTED: &'static str = "a path";

    fn parse(text: &str) -> Result<Self, Reason> {
        Ok(text.into())
    }
}

plain_values!(IpNet, http::Method);

/// A CIDR; an address alone is the network of that one address.
impl Text for IpNet {
    const EXPECTED: &'static str = "an address or a network such as \"10.0.0.0/8\"";

    fn parse(text: &str) -> Result<Self, Reason> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::from(address.to_canonical()));
        }
        // A name begins with a letter and has no colon.
        if text.starts_with(|first: char| first.is_ascii_alphabetic()) && !text.contains(':') {
            return Err(
                "a name is not looked up here; write addresses or networks such as \"10.0.0.0/8\""
                    .into(),
            );
        }
        let network: Self = text.parse().map_err(|_| "")?;
        // Addresses are compared in their canonical form.
        if network.addr().to_canonical().is_ipv4() && network.addr().is_ipv6() {
            return Err("an IPv4 network is written as one, such as \"10.0.0.0/8\"".into());
        }
        if network.trunc() != network {
            return Err(format!("host bits are set; did you mean {}?", network.trunc()).into());
        }
        Ok(network)
    }
}

texts! {
    SocketAddr: "an IP address and a port such as \"127.0.0.1:8080\", \"0.0.0.0:8080\" for every interface, or \"[::1]:8080\"" =>
        |text: &str| text.parse::<Self>().map_err(|_| "");
    HeaderName: "the name of a header field such as \"X-Auth-User\"" => |text: &str| text.parse::<Self>().map_err(|_| "");
    ConsumerKey: "the key of a consumer" => str::parse::<Self>;
    Permission: "a name such as \"members.read\"" => str::parse::<Self>;
}

/// The methods of operations: any token but CONNECT and TRACE, which are never forwarded.
impl Text for http::Method {
    const EXPECTED: &'static str = "a method such as \"GET\"";

    fn parse(text: &str) -> Result<Self, Reason> {
        /// The standard methods (RFC 9110 §9.3, RFC 5789) that an operation may list.
        const STANDARD: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
        let upper = text.to_ascii_uppercase();
        if ["CONNECT", "TRACE"].contains(&upper.as_str()) {
            return Err("CONNECT and TRACE are never forwarded".into());
        }
        // Methods are compared with case, and no API is known to use `get`.
        if upper != text && STANDARD.contains(&upper.as_str()) {
            return Err(format!("write {upper:?}").into());
        }
        text.parse().map_err(|_| Reason::Borrowed(""))
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn takes_networks_without_host_bits() {
        let network = |text| IpNet::parse(text).map(|network| network.to_string());
        assert_eq!(network("10.0.0.0/8").unwrap(), "10.0.0.0/8");
        assert_eq!(network("10.1.2.3").unwrap(), "10.1.2.3/32");
        assert_eq!(network("::1").unwrap(), "::1/128");
        assert_eq!(
            network("10.0.0.1/8").unwrap_err(),
            "host bits are set; did you mean 10.0.0.0/8?"
        );
        for name in ["nginx", "proxy.internal", "localhost"] {
            assert!(
                network(name)
                    .unwrap_err()
                    .starts_with("a name is not looked up")
            );
        }
        assert!(network("10.0.0.0/33").is_err());
        assert_eq!(network("::ffff:10.1.2.3").unwrap(), "10.1.2.3/32");
        assert!(network("::ffff:10.0.0.0/104").is_err());
    }

    #[test]
    fn takes_methods_with_case() {
        for text in ["connect", "TRACE", "get", "GET POST", ""] {
            assert!(Method::parse(text).is_err(), "{text}");
        }
        for text in ["GET", "PROPFIND", "m-search"] {
            assert_eq!(Method::parse(text).unwrap().as_str(), text);
        }
    }
}
