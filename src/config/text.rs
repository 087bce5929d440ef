//! Values that are written as strings, for `#[serde(deserialize_with)]`: one at a time, or a list of them.
//!
//! serde's own errors say "expected a string"; these say which string, and what is wrong with the one that was found.

use std::{
    borrow::Cow,
    fmt,
    marker::PhantomData,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    path::PathBuf,
};

use http::HeaderName;
use ipnet::IpNet;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use super::{
    address::{ApiUrl, EndpointUrl, ListenAddress, ServerName, UpstreamHost, WebUrl},
    pattern::PathPattern,
    store_url::{Sql, StoreUrl},
    units::Lifetime,
};
use crate::{
    names::Permission,
    oauth::SignatureMethod,
    origin::{HttpUrl, Origin, plain_path},
    policy::{operations::Kind, rate::Rate},
    respond::colour::Colour,
    telemetry::log::LogLevel,
};

/// Why a text is not what it should be, without the text itself; empty where [`Text::EXPECTED`] says it all.
pub(super) type Reason = Cow<'static, str>;

/// A type that is written as a string.
pub(super) trait Text: Sized {
    /// What an error line says was expected.
    const EXPECTED: &'static str;

    fn parse(text: &str) -> Result<Self, Reason>;
}

/// Implements [`Text`] for types whose errors print as the reason: `type: expected => parse;`.
macro_rules! texts {
    ($($type:ty: $expected:literal => $parse:expr;)+) => {$(
        impl $crate::config::text::Text for $type {
            const EXPECTED: &'static str = $expected;

            fn parse(text: &str) -> Result<Self, $crate::config::text::Reason> {
                ($parse)(text).map_err(|error| error.to_string().into())
            }
        }
    )+};
}
pub(super) use texts;

/// Reads a string.
pub(super) fn text<'de, D: Deserializer<'de>, T: Text>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_str(TextVisitor(PhantomData))
}

/// Reads a string under a key that may be absent.
pub(super) fn optional<'de, D: Deserializer<'de>, T: Text>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    text(deserializer).map(Some)
}

/// Reads a list; a single value is a list of one.
pub(super) fn list<'de, D: Deserializer<'de>, T: Text>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_any(ListVisitor(PhantomData))
}

/// Reads a list in which nothing is repeated.
pub(super) fn distinct<'de, D: Deserializer<'de>, T: Text + PartialEq>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items: Vec<T> = list(deserializer)?;
    for (index, item) in items.iter().enumerate() {
        if let Some(first) = items[..index].iter().position(|other| other == item) {
            return Err(D::Error::custom(format!(
                "items {} and {} of the list are the same; leave one out",
                first + 1,
                index + 1
            )));
        }
    }
    Ok(items)
}

/// Reads a list of one item at least, in which nothing is repeated.
pub(super) fn filled<'de, D: Deserializer<'de>, T: Text + PartialEq>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items = distinct(deserializer)?;
    if items.is_empty() {
        return Err(D::Error::custom(
            "the list is empty; name one at least, or leave the key out",
        ));
    }
    Ok(items)
}

/// Reads text that can be quoted in a header field.
pub(super) fn quotable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text: String = text(deserializer)?;
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Ok(text);
    }
    Err(D::Error::custom("expected visible ASCII and spaces"))
}

/// Reads the name of a response's parameter: none of the protocol's, and one that needs no escape.
pub(super) fn parameter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name: String = text(deserializer)?;
    if is_parameter(&name) {
        return Ok(name);
    }
    Err(D::Error::custom(format!("expected {PARAMETER}")))
}

/// What [`is_parameter`] demands.
pub(super) const PARAMETER: &str =
    "a name of 1 to 64 letters, digits, -, ., _ and ~ that does not begin with \"oauth_\"";

pub(super) fn is_parameter(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_name = (1..=64).contains(&name.len()) && name.bytes().all(is_plain);
    is_name && !name.starts_with("oauth_")
}

/// Reads a path of our own: fixed, and never the root, below which everything else is.
pub(super) fn service_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let path: String = text(deserializer)?;
    let checked = match plain_path(&path) {
        Ok(()) if path.contains('%') => Err("it has an escape".into()),
        checked => checked.map_err(|error| error.to_string()),
    };
    let expected = "a path such as \"/service.oauth\"";
    checked.map_err(|reason| D::Error::custom(mismatch(expected, &reason)))?;
    Ok(path)
}

/// The message of an error about a value: what was expected and, after `: `, why the value is wrong. The reader puts the
/// value between the two if it may be shown.
pub(super) fn mismatch(expected: &str, reason: &str) -> String {
    let separator = if reason.is_empty() { "" } else { ": " };
    format!("expected {expected}{separator}{reason}")
}

/// Lets a type of ours say how it is read, so that its keys need no attribute.
macro_rules! deserialize {
    ($($type:ty),+) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                text(deserializer)
            }
        }
    )+};
}

deserialize! {
    ApiUrl, Colour, EndpointUrl, HttpUrl, Lifetime, ListenAddress, LogLevel, Origin, PathPattern, Rate, ServerName, Sql,
    StoreUrl, UpstreamHost, WebUrl
}

struct TextVisitor<T>(PhantomData<T>);

impl<T: Text> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::parse(text).map_err(|reason| E::custom(mismatch(T::EXPECTED, &reason)))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<T, E> {
        Err(E::custom(mismatch(T::EXPECTED, "put it in quotes")))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<T, E> {
        self.visit_i64(0)
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Text> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, or a list of such", T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
        Ok(vec![TextVisitor(PhantomData).visit_str(text)?])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut read = Vec::new();
        while let Some(Item(item)) = items.next_element()? {
            read.push(item);
        }
        Ok(read)
    }
}

struct Item<T>(T);

impl<'de, T: Text> Deserialize<'de> for Item<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer).map(Self)
    }
}

/// Text on one line.
impl Text for String {
    const EXPECTED: &'static str = "a text";

    fn parse(text: &str) -> Result<Self, Reason> {
        if text.chars().any(char::is_control) {
            return Err("it has a control character in it".into());
        }
        Ok(text.to_owned())
    }
}

impl Text for PathBuf {
    const EXPECTED: &'static str = "a path";

    fn parse(text: &str) -> Result<Self, Reason> {
        if text.is_empty() {
            return Err("it is empty".into());
        }
        // A key pasted where its file's name belongs would otherwise end up in a "no such file" message.
        if text.chars().any(char::is_control) {
            return Err(
                "a path has no line break in it; give the file's name, not its content".into(),
            );
        }
        Ok(text.into())
    }
}

/// A CIDR; an address alone is the network of that one address.
impl Text for IpNet {
    const EXPECTED: &'static str = "a network such as \"10.0.0.0/8\"";

    fn parse(text: &str) -> Result<Self, Reason> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::from(address));
        }
        let network: Self = text.parse().map_err(|_| "")?;
        if network.trunc() != network {
            return Err(format!("host bits are set; did you mean {}?", network.trunc()).into());
        }
        Ok(network)
    }
}

impl Text for SocketAddr {
    const EXPECTED: &'static str = "an IP address and a port such as \"127.0.0.1:8080\"";

    fn parse(text: &str) -> Result<Self, Reason> {
        text.parse().map_err(|_| {
            match text.rsplit_once(':') {
                Some(("", _)) => "for every interface write \"0.0.0.0:PORT\" or \"[::]:PORT\"",
                Some((host, _)) if host.eq_ignore_ascii_case("localhost") => "write 127.0.0.1",
                Some((host, _)) if host.parse::<Ipv6Addr>().is_ok() => {
                    "put the IPv6 address in brackets"
                }
                None => "the port is missing",
                Some(_) => "",
            }
            .into()
        })
    }
}

texts! {
    HeaderName: "the name of a header field such as \"X-Auth-User\"" => |text: &str| text.parse::<Self>().map_err(|_| "");
    Permission: "a name such as \"members.read\"" => str::parse::<Self>;
    LogLevel: "a level such as \"info\", or levels by target such as \"info,audit=debug\"" => str::parse::<Self>;
    // Every spelling that a request may use.
    SignatureMethod: "\"HMAC-SHA1\", \"HMAC-MD5\", \"HMAC-SHA256\", \"HMAC-SHA512\", \"RSA-SHA1\", \"RSA-SHA256\", \
        \"RSA-SHA512\" or \"PLAINTEXT\"" => |text: &str| Self::from_wire(text.as_bytes()).ok_or("");
    Kind: "\"consumer\", \"application\", \"user\" or \"anonymous\"" =>
        |text| Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or("");
}

/// The methods of operations: any token but CONNECT and TRACE, which are never forwarded.
impl Text for http::Method {
    const EXPECTED: &'static str = "a method such as \"GET\"";

    fn parse(text: &str) -> Result<Self, Reason> {
        /// The standard methods (RFC 9110 §9.3, RFC 5789) that an operation may list.
        const STANDARD: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
        let upper = text.to_ascii_uppercase();
        if matches!(upper.as_str(), "CONNECT" | "TRACE") {
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
        assert!(network("10.0.0.0/33").is_err());
    }

    #[test]
    fn rejects_a_key_in_the_place_of_its_path() {
        assert!(PathBuf::parse("-----BEGIN PRIVATE KEY-----\nMII\n").is_err());
        assert!(PathBuf::parse("").is_err());
        assert!(PathBuf::parse("key.pem").is_ok());
    }

    #[test]
    fn takes_methods_with_case() {
        for (text, reason) in [
            ("connect", "CONNECT and TRACE are never forwarded"),
            ("TRACE", "CONNECT and TRACE are never forwarded"),
            ("get", "write \"GET\""),
            ("GET POST", ""),
            ("", ""),
        ] {
            assert_eq!(Method::parse(text).unwrap_err(), reason, "{text}");
        }
        for text in ["GET", "PROPFIND", "m-search"] {
            assert_eq!(Method::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn folds_the_spelling_of_signature_methods() {
        for text in ["HMAC-SHA1", "hmac_sha1", "HmacSha1"] {
            assert_eq!(
                SignatureMethod::parse(text),
                Ok(SignatureMethod::HmacSha1),
                "{text}"
            );
        }
        assert!(SignatureMethod::parse("HMAC SHA1").is_err());
        for method in SignatureMethod::ALL {
            assert!(SignatureMethod::EXPECTED.contains(&format!("\"{method}\"")));
        }
    }
}
