//! What holds for the value of one key beyond its type.

use std::{fmt::Display, time::Duration};

use super::{
    units::{ByteSize, format_duration},
    url::plain_path,
};

/// A value with an order that can be written out.
pub(super) trait Bounded: PartialOrd {
    fn written(&self) -> String;
}

impl Bounded for Duration {
    fn written(&self) -> String {
        format!("{:?}", format_duration(*self))
    }
}

impl Bounded for ByteSize {
    fn written(&self) -> String {
        format!("{:?}", self.to_string())
    }
}

impl Bounded for std::num::NonZeroU32 {
    fn written(&self) -> String {
        self.to_string()
    }
}

/// From `low` to `high`, both allowed.
pub(super) fn between<T: Bounded>(low: T, high: T) -> impl Fn(&T) -> Result<(), String> {
    move |value| {
        if *value < low || *value > high {
            return Err(format!(
                "expected {} to {}, found {}",
                low.written(),
                high.written(),
                value.written()
            ));
        }
        Ok(())
    }
}

/// Whole seconds from `low` to `high`: what is compared with timestamps cannot be finer than they are.
pub(super) fn seconds(low: Duration, high: Duration) -> impl Fn(&Duration) -> Result<(), String> {
    let in_range = between(low, high);
    move |value| {
        in_range(value)?;
        if value.subsec_nanos() > 0 {
            return Err(format!("expected whole seconds, found {}", value.written()));
        }
        Ok(())
    }
}

/// At least one item.
fn filled<T>(items: &[T]) -> Result<(), String> {
    if items.is_empty() {
        return Err("the list is empty; name one at least, or leave the key out".to_owned());
    }
    Ok(())
}

/// No item twice.
pub(super) fn distinct<T: PartialEq + Shown>(items: &[T]) -> Result<(), String> {
    for (index, item) in items.iter().enumerate() {
        if items[..index].contains(item) {
            return Err(format!(
                "{} is in the list twice; write it once",
                item.shown()
            ));
        }
    }
    Ok(())
}

/// At least one item, and none twice.
pub(super) fn filled_and_distinct<T: PartialEq + Shown>(items: &[T]) -> Result<(), String> {
    filled(items)?;
    distinct(items)
}

/// An item of a list as an error line shows it.
pub(super) trait Shown {
    fn shown(&self) -> String;
}

macro_rules! shown {
    ($($type:ty, $shown:expr;)*) => {$(
        impl Shown for $type {
            fn shown(&self) -> String {
                let text: fn(&$type) -> String = $shown;
                format!("{:?}", text(self))
            }
        }
    )*};
}

fn display<T: Display>(item: &T) -> String {
    item.to_string()
}

shown! {
    std::net::SocketAddr, display;
    ipnet::IpNet, display;
    std::path::PathBuf, |path| path.display().to_string();
    super::header::HeaderPattern, |pattern| pattern.as_str().to_owned();
    super::address::PublicUrl, |url| url.0.to_string();
    super::method::MethodName, |method| method.as_str().to_owned();
    super::words::CallerKind, |kind| kind.as_str().to_owned();
    super::words::UpgradeProtocol, |protocol| protocol.as_str().to_owned();
    crate::oauth::SignatureMethod, |method| method.as_str().to_owned();
}

/// What can stand between quotes in a header, quotes and backslashes escaped.
pub(super) fn quotable(text: &str) -> Result<(), String> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Ok(());
    }
    Err("expected visible ASCII and spaces".to_owned())
}

/// A path of our own: fixed, and never the root, below which everything else lies.
pub(super) fn service_path(path: &str) -> Result<(), String> {
    plain_path(path)
        .and_then(|()| {
            if path.contains('%') {
                Err("it has an escape")
            } else {
                Ok(())
            }
        })
        .map_err(|reason| format!("expected a path such as \"/service.oauth\": {reason}"))
}
