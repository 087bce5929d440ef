//! The protected operations, and which one a request means.

use std::borrow::Cow;

use matchit::Router;
use thiserror::Error;

use crate::{names::Permission, refusal::Refusal};

/// A kind of caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A consumer's signature with an access token: it acts for a user.
    Consumer,
    /// A consumer's signature alone.
    Application,
    /// A user who is logged in directly.
    User,
    /// Nobody known.
    Anonymous,
}

impl Kind {
    /// The word that the API and the configuration use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Consumer => "consumer",
            Self::Application => "application",
            Self::User => "user",
            Self::Anonymous => "anonymous",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Which kinds of caller may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access(u8);

impl Access {
    /// Nobody.
    pub const NOBODY: Self = Self(0);

    /// The kinds in either.
    #[must_use]
    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These kinds.
    #[must_use]
    pub fn of(kinds: &[Kind]) -> Self {
        Self(kinds.iter().fold(0, |bits, kind| bits | kind.bit()))
    }

    /// Whether `kind` is among them.
    #[must_use]
    pub const fn admits(self, kind: Kind) -> bool {
        self.0 & kind.bit() != 0
    }
}

/// One `[[operation]]`.
#[derive(Debug, Clone)]
pub struct Operation {
    /// `/members/{id}`, `/files/{*rest}`.
    pub path: String,
    /// The methods as sent; `GET` covers `HEAD`; none stands for every method.
    pub methods: Vec<String>,
    /// What both token and consumer must have.
    pub permission: Option<Permission>,
    /// Who may.
    pub access: Access,
    /// `Some(true)`: protected calls are enforced; `Some(false)`: observed; `None`: as configured for all.
    pub enforce: Option<bool>,
    /// A WebSocket upgrade passes.
    pub websocket: bool,
}

impl Operation {
    fn has_method(&self, method: &[u8]) -> bool {
        let same =
            |known: &String| known.as_bytes() == method || (method == b"HEAD" && known == "GET");
        self.methods.is_empty() || self.methods.iter().any(same)
    }
}

/// Why the operations cannot be matched.
#[derive(Debug, Error)]
#[error("operation {path}: {reason}")]
pub struct OperationError {
    /// The pattern at fault.
    pub path: String,
    reason: String,
}

/// All operations.
#[derive(Debug)]
pub struct Operations {
    router: Router<Vec<Operation>>,
    any: bool,
    unlisted: Access,
    hide: bool,
}

/// What a request means.
#[derive(Debug)]
pub enum Found<'a> {
    /// This operation.
    Operation(&'a Operation),
    /// A listed path, but none of its methods.
    OtherMethod {
        /// The value of `Allow`.
        allow: String,
        /// The kinds of caller that may use one of the listed methods.
        access: Access,
    },
    /// No listed path.
    Unlisted(Access),
}

impl Found<'_> {
    /// The kinds of caller that may call it; for another method, those that may use one of the listed ones.
    #[must_use]
    pub const fn access(&self) -> Access {
        match self {
            Self::Operation(operation) => operation.access,
            Self::OtherMethod { access, .. } | Self::Unlisted(access) => *access,
        }
    }
}

impl Operations {
    /// Prepares the operations for matching.
    ///
    /// # Errors
    /// A pattern that is malformed, or cannot be told from another one.
    pub fn new(
        operations: Vec<Operation>,
        unlisted: Access,
        hide: bool,
    ) -> Result<Self, OperationError> {
        let any = !operations.is_empty();
        let mut by_shape: Vec<(String, Vec<Operation>)> = Vec::new();
        for operation in operations {
            let shape = shape(&operation.path);
            match by_shape.iter_mut().find(|(known, _)| *known == shape) {
                Some((_, group)) => group.push(operation),
                None => by_shape.push((shape, vec![operation])),
            }
        }
        let mut router = Router::new();
        for (shape, group) in by_shape {
            let path = group
                .first()
                .map(|operation| operation.path.clone())
                .unwrap_or_default();
            router
                .insert(shape, group)
                .map_err(|error| OperationError {
                    path,
                    reason: error.to_string(),
                })?;
        }
        Ok(Self {
            router,
            any,
            unlisted,
            hide,
        })
    }

    /// The refusal of an operation that is not permitted.
    #[must_use]
    pub const fn forbidden(&self) -> Refusal {
        Refusal::NotPermitted { hide: self.hide }
    }

    /// Finds what a request means. Patterns see the path with percent-encoded unreserved characters decoded.
    ///
    /// # Errors
    /// Where operations exist, a path that the API could read as another one.
    pub fn find(&self, path: &[u8], method: &[u8]) -> Result<Found<'_>, Refusal> {
        if !self.any {
            return Ok(Found::Unlisted(self.unlisted));
        }
        let path = matchable(path).map_err(|reason| Refusal::Malformed(reason.into()))?;
        let Ok(matched) = self.router.at(&path) else {
            return Ok(Found::Unlisted(self.unlisted));
        };
        let group = matched.value;
        if let Some(operation) = group.iter().find(|operation| operation.has_method(method)) {
            return Ok(Found::Operation(operation));
        }
        let mut methods: Vec<&str> = group
            .iter()
            .flat_map(|operation| &operation.methods)
            .map(String::as_str)
            .collect();
        if methods.contains(&"GET") && !methods.contains(&"HEAD") {
            methods.push("HEAD");
        }
        methods.sort_unstable();
        methods.dedup();
        Ok(Found::OtherMethod {
            allow: methods.join(", "),
            access: group
                .iter()
                .fold(Access::NOBODY, |kinds, operation| kinds.or(operation.access)),
        })
    }
}

/// The pattern with its parameters' names taken out, so that `/a/{x}` and `/a/{y}` are one.
fn shape(pattern: &str) -> String {
    let segments = pattern.split('/').enumerate().map(|(index, segment)| {
        match segment
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
        {
            Some(name) if name.starts_with('*') => format!("{{*p{index}}}"),
            Some(_) => format!("{{p{index}}}"),
            None => segment.to_owned(),
        }
    });
    segments.collect::<Vec<_>>().join("/")
}

/// The path as patterns see it.
fn matchable(path: &[u8]) -> Result<Cow<'_, str>, &'static str> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'%' | b';' | b'\\');
    let decoded: Cow<'_, [u8]> = if path.iter().copied().all(plain) {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(decode_unreserved(path)?)
    };
    // The root is the one path with an empty segment.
    if decoded.len() > 1 {
        for segment in decoded.split(|&byte| byte == b'/').skip(1) {
            match segment {
                b"." | b".." => return Err("the path has a dot segment"),
                b"" => return Err("the path has an empty segment"),
                _ => {}
            }
        }
    }
    match decoded {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map(Cow::Borrowed),
        Cow::Owned(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Cow::Owned(text)),
            Err(error) => Err(error.utf8_error()),
        },
    }
    .map_err(|_| "the path is not ASCII")
}

fn decode_unreserved(path: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match byte {
            b'%' => {
                let (&[high, low], tail) = rest
                    .split_first_chunk()
                    .ok_or("the path has an invalid escape")?;
                rest = tail;
                let (Some(high), Some(low)) = (hex(high), hex(low)) else {
                    return Err("the path has an invalid escape");
                };
                match high << 4 | low {
                    b'/' | b'\\' | b';' | b'%' => {
                        return Err("the path has an encoded / \\ ; or %");
                    }
                    0..=0x1f | 0x7f => return Err("the path has an encoded control byte"),
                    plain if plain.is_ascii_alphanumeric() || b"-._~".contains(&plain) => {
                        decoded.push(plain);
                    }
                    _ => {
                        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                        decoded.push(b'%');
                        decoded.push(DIGITS[usize::from(high)]);
                        decoded.push(DIGITS[usize::from(low)]);
                    }
                }
            }
            b';' | b'\\' => return Err("the path has a ; or \\"),
            byte if byte.is_ascii_graphic() => decoded.push(*byte),
            _ => return Err("the path has a control byte"),
        }
    }
    Ok(decoded)
}

const fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(path: &str, methods: &[&str]) -> Operation {
        Operation {
            path: path.to_owned(),
            methods: methods.iter().map(ToString::to_string).collect(),
            permission: None,
            access: Access::of(&[Kind::Consumer]),
            enforce: None,
            websocket: false,
        }
    }

    fn operations() -> Operations {
        let list = vec![
            operation("/members/{id}", &["GET"]),
            operation("/members/{name}", &["DELETE"]),
            operation("/members/me", &["GET"]),
            operation("/members/{id}/photos", &["GET", "POST"]),
            operation("/files/{*rest}", &["GET"]),
            operation("/", &["GET"]),
        ];
        Operations::new(list, Access::NOBODY, true).expect("good patterns")
    }

    fn found(path: &str, method: &str) -> String {
        match operations().find(path.as_bytes(), method.as_bytes()) {
            Ok(Found::Operation(operation)) => operation.path.clone(),
            Ok(Found::OtherMethod { allow, .. }) => format!("405 {allow}"),
            Ok(Found::Unlisted(_)) => "unlisted".to_owned(),
            Err(_) => "400".to_owned(),
        }
    }

    #[test]
    fn the_most_specific_pattern_wins() {
        for (path, method, expected) in [
            ("/", "GET", "/"),
            ("/members/1", "GET", "/members/{id}"),
            ("/members/1", "HEAD", "/members/{id}"),
            ("/members/1", "DELETE", "/members/{name}"),
            ("/members/1", "POST", "405 DELETE, GET, HEAD"),
            ("/members/me", "GET", "/members/me"),
            ("/members/me", "DELETE", "405 GET, HEAD"),
            ("/members/%6De", "GET", "/members/me"),
            ("/members/1/photos", "POST", "/members/{id}/photos"),
            ("/members/%c3%a9/photos", "GET", "/members/{id}/photos"),
            ("/files/a/b", "GET", "/files/{*rest}"),
            ("/members", "GET", "unlisted"),
            ("/members/1/", "GET", "400"),
            ("/Members/1", "GET", "unlisted"),
            ("/members/1", "get", "405 DELETE, GET, HEAD"),
        ] {
            assert_eq!(found(path, method), expected, "{method} {path}");
        }
    }

    #[test]
    fn refuses_paths_that_the_api_could_read_as_others() {
        for path in [
            "/members/1;x",
            "/members\\1",
            "/members/a%2fb",
            "/members/a%2Fb",
            "/members/a%5cb",
            "/members/a%3Bb",
            "/members/a%25b",
            "/members//1",
            "//members/1",
            "/members/./1",
            "/members/../1",
            "/members/%2e%2e/1",
            "/members/.%2E",
            "/members/%",
            "/members/%4",
            "/members/%zz",
            "/members/%00",
            "/members/%0a",
            "/members/%7f",
        ] {
            assert_eq!(found(path, "GET"), "400", "{path}");
        }
    }

    #[test]
    fn passes_any_path_on_where_no_operation_is_listed() {
        let operations =
            Operations::new(Vec::new(), Access::of(&[Kind::Consumer]), true).expect("none");
        for path in ["/a//../%2f;x\\%zz", "/"] {
            let found = operations.find(path.as_bytes(), b"GET");
            assert!(matches!(found, Ok(Found::Unlisted(access)) if access.admits(Kind::Consumer)));
        }
    }
}
