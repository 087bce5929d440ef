//! How a value of the file becomes a typed setting.

use std::{
    borrow::Cow,
    net::{IpAddr, SocketAddr},
    num::{NonZeroU16, NonZeroU32, NonZeroU64},
    path::PathBuf,
    time::Duration,
};

use ipnet::IpNet;

use super::{
    error::Problems,
    tree::{Node, Value},
    units::{ByteSize, InvalidUnit, Lifetime, Rate, parse_duration},
};
use crate::{
    names::{InvalidName, Permission},
    telemetry::log::{InvalidLogLevel, LogLevel},
};

/// A type that a key can have.
pub(super) trait Setting: Sized {
    /// What an error line says was expected.
    fn expected() -> Cow<'static, str>;

    /// Reads the value; what is wrong with it goes to `report`.
    fn read(node: &Node, report: &mut Report<'_>) -> Option<Self>;
}

/// A setting that is written as a string.
pub(super) trait Text: Sized {
    fn expected() -> Cow<'static, str>;

    /// Reads the string.
    ///
    /// # Errors
    ///
    /// The reason in words, without the value itself; empty if `expected` says all there is to say.
    fn parse(text: &str) -> Result<Self, Cow<'static, str>>;
}

/// Takes the problems of one key.
pub(super) struct Report<'a> {
    pub(super) key: &'a str,
    pub(super) problems: &'a mut Problems,
}

impl Report<'_> {
    /// Adds that `node` is not what `T` takes, and why.
    pub(super) fn mismatch<T: Setting>(&mut self, node: &Node, reason: &str) {
        let found = node.found();
        let separator = if reason.is_empty() { "" } else { ": " };
        self.problems.add(
            &node.place,
            self.key,
            format!(
                "expected {}, found {found}{separator}{reason}",
                T::expected()
            ),
        );
    }
}

impl<T: Text> Setting for T {
    fn expected() -> Cow<'static, str> {
        T::expected()
    }

    fn read(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        let Value::Text(text) = &node.value else {
            let reason = match node.value {
                Value::Integer(_) | Value::Boolean(_) => "put it in quotes",
                _ => "",
            };
            report.mismatch::<T>(node, reason);
            return None;
        };
        T::parse(text)
            .inspect_err(|reason| report.mismatch::<T>(node, reason))
            .ok()
    }
}

/// A list; a single value stands for a list of one.
impl<T: Setting> Setting for Vec<T> {
    fn expected() -> Cow<'static, str> {
        format!("{}, or a list of such", T::expected()).into()
    }

    fn read(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        let items = match &node.value {
            Value::List(items) => items,
            Value::Text(_) => std::slice::from_ref(node),
            _ => {
                report.mismatch::<Self>(node, "");
                return None;
            }
        };
        // Every item is read before any failure counts, so that all are reported.
        let read: Vec<_> = items.iter().map(|item| T::read(item, report)).collect();
        read.into_iter().collect()
    }
}

impl<T: Setting> Setting for Option<T> {
    fn expected() -> Cow<'static, str> {
        T::expected()
    }

    fn read(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        T::read(node, report).map(Some)
    }
}

impl Setting for bool {
    fn expected() -> Cow<'static, str> {
        "true or false".into()
    }

    fn read(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        let Value::Boolean(flag) = node.value else {
            report.mismatch::<Self>(node, "");
            return None;
        };
        Some(flag)
    }
}

macro_rules! whole_number {
    ($($type:ty, $low:expr, $high:expr;)*) => {$(
        impl Setting for $type {
            fn expected() -> Cow<'static, str> {
                format!("a whole number from {} to {}", $low, $high).into()
            }

            fn read(node: &Node, report: &mut Report<'_>) -> Option<Self> {
                let read = match node.value {
                    // Above what TOML itself promises to carry, other readers of the file would disagree with us.
                    Value::Integer(number) if number <= i128::from(i64::MAX) => {
                        <$type>::try_from(number).ok()
                    }
                    _ => None,
                };
                if read.is_none() {
                    report.mismatch::<Self>(node, "");
                }
                read
            }
        }
    )*};
}

/// A whole number above zero, read through its plain type.
macro_rules! positive_number {
    ($($type:ty, $plain:ty, $high:expr;)*) => {$(
        impl Setting for $type {
            fn expected() -> Cow<'static, str> {
                format!("a whole number from 1 to {}", $high).into()
            }

            fn read(node: &Node, report: &mut Report<'_>) -> Option<Self> {
                let read = match node.value {
                    Value::Integer(number) if number <= i128::from(i64::MAX) => {
                        <$plain>::try_from(number).ok().and_then(<$type>::new)
                    }
                    _ => None,
                };
                if read.is_none() {
                    report.mismatch::<Self>(node, "");
                }
                read
            }
        }
    )*};
}

whole_number! {
    u32, 0, u32::MAX;
    u64, 0, i64::MAX;
}

positive_number! {
    NonZeroU16, u16, u16::MAX;
    NonZeroU32, u32, u32::MAX;
    NonZeroU64, u64, i64::MAX;
}

/// Implements [`Text`] for types whose own parser gives the reason.
macro_rules! text {
    ($($type:ty, $expected:expr, $parse:expr;)*) => {$(
        impl Text for $type {
            fn expected() -> Cow<'static, str> {
                $expected.into()
            }

            fn parse(text: &str) -> Result<Self, Cow<'static, str>> {
                $parse(text)
            }
        }
    )*};
}

text! {
    String, "a text", plain_text;
    PathBuf, "a path", path;
    Duration, "a duration such as \"300s\", \"10m\" or \"7d\"", |text| parse_duration(text).map_err(unit);
    Lifetime, "a duration such as \"12h\" or \"30d\", or \"never\"", lifetime;
    ByteSize, "a size such as \"32KiB\" or \"1MiB\"", |text| ByteSize::parse(text).map_err(unit);
    Rate, "a rate such as \"10 per 15m\"", |text| Rate::parse(text).map_err(unit);
    IpNet, "a network such as \"10.0.0.0/8\"", network;
    SocketAddr, "an IP address and a port such as \"127.0.0.1:8080\"", socket_address;
    Permission, "a name such as \"members.read\"", |text: &str| text.parse().map_err(name);
    LogLevel, "a level such as \"info\", or levels by target such as \"info,audit=debug\"", log_level;
}

fn unit(error: InvalidUnit) -> Cow<'static, str> {
    error.to_string().into()
}

fn name(error: InvalidName) -> Cow<'static, str> {
    error.to_string().into()
}

fn log_level(text: &str) -> Result<LogLevel, Cow<'static, str>> {
    text.parse()
        .map_err(|error: InvalidLogLevel| error.to_string().into())
}

fn lifetime(text: &str) -> Result<Lifetime, Cow<'static, str>> {
    if text == "never" {
        return Ok(Lifetime::Never);
    }
    parse_duration(text).map(Lifetime::For).map_err(unit)
}

/// Text that stands on one line.
fn plain_text(text: &str) -> Result<String, Cow<'static, str>> {
    if text.chars().any(char::is_control) {
        return Err("it has a control character in it".into());
    }
    Ok(text.to_owned())
}

fn path(text: &str) -> Result<PathBuf, Cow<'static, str>> {
    if text.is_empty() {
        return Err("it is empty".into());
    }
    // A key pasted where its file's name belongs would otherwise end up in a "no such file" message.
    if text.chars().any(char::is_control) {
        return Err("a path has no line break in it; give the file's name, not its content".into());
    }
    Ok(PathBuf::from(text))
}

/// A CIDR; an address alone is the network of that one address.
fn network(text: &str) -> Result<IpNet, Cow<'static, str>> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(IpNet::from(address));
    }
    let network: IpNet = text.parse().map_err(|_| "")?;
    if network.trunc() != network {
        return Err(format!("it has bits behind the prefix, write {}", network.trunc()).into());
    }
    Ok(network)
}

fn socket_address(text: &str) -> Result<SocketAddr, Cow<'static, str>> {
    text.parse().map_err(|_| {
        match text.rsplit_once(':') {
            Some(("", _)) => "for every interface write \"0.0.0.0:PORT\" or \"[::]:PORT\"",
            Some((host, _)) if host.eq_ignore_ascii_case("localhost") => "write 127.0.0.1",
            Some((host, _)) if host.parse::<std::net::Ipv6Addr>().is_ok() => {
                "put the IPv6 address in brackets"
            }
            None => "the port is missing",
            Some(_) => "",
        }
        .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_networks_without_host_bits() {
        assert_eq!(network("10.0.0.0/8").unwrap().to_string(), "10.0.0.0/8");
        assert_eq!(network("10.1.2.3").unwrap().to_string(), "10.1.2.3/32");
        assert_eq!(network("::1").unwrap().to_string(), "::1/128");
        assert_eq!(
            network("10.0.0.1/8").unwrap_err(),
            "it has bits behind the prefix, write 10.0.0.0/8"
        );
        assert!(network("10.0.0.0/33").is_err());
    }

    #[test]
    fn refuses_a_key_in_the_place_of_its_path() {
        assert!(path("-----BEGIN PRIVATE KEY-----\nMII\n").is_err());
        assert!(path("").is_err());
        assert!(path("key.pem").is_ok());
    }
}
