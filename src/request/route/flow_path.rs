//! A path that names a call of the three-legged flow, in addition to `service.path`.

use std::{fmt, str::FromStr};

use thiserror::Error;

use crate::{
    base::network::http_fields,
    oauth::{Parameters, percent},
    request::parse::target,
};

/// Why a text is not a [`FlowPath`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidFlowPath {
    /// It has no slash at its beginning.
    #[error("it begins with no slash")]
    NoSlash,
    /// It is the root.
    #[error("every other path is below /")]
    Root,
    /// A byte of it cannot be in a path or a query.
    #[error("a byte in it must be percent-encoded")]
    Byte,
    /// A part of its path is not the same to every reader.
    #[error("its path has a dot segment, a ; or a \\, or an invalid escape")]
    Path,
    /// A part of its query is not `name=value`.
    #[error(
        "its query is not of the form name=value&name=value, with good escapes and each name once"
    )]
    Query,
    /// Its query has a parameter that token calls read.
    #[error("the parameter {0:?} is one of the call itself")]
    Parameter(String),
}

/// A path of a call of the flow, with the query that has to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowPath {
    text: String,
    path_length: usize,
    /// The parameters that a request to the path must have, decoded, each once; others may be beside them.
    query: Vec<(String, String)>,
}

impl FlowPath {
    /// The path, without the query.
    pub fn path(&self) -> &str {
        &self.text[..self.path_length]
    }

    /// Whether it demands a query.
    pub fn has_query(&self) -> bool {
        !self.query.is_empty()
    }

    /// The names of the parameters in that query.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.query.iter().map(|(name, _)| name.as_str())
    }

    /// Whether some request is for both.
    pub fn overlaps(&self, other: &Self) -> bool {
        let differs = |(name, value): &(String, String)| {
            let mut others = other.query.iter();
            others.any(|(other, another)| other == name && another != value)
        };
        self.path() == other.path() && !self.query.iter().any(differs)
    }

    pub(super) fn matches(&self, target: &target::RequestTarget<'_>) -> bool {
        let query = target.query.unwrap_or_default();
        target.path == self.path().as_bytes()
            && self.query.iter().all(|(name, value)| {
                let sent = http_fields::parameter(query, name);
                sent.is_ok_and(|sent| sent.as_deref() == Some(value))
            })
    }

    /// Whether some API may take a request with these parameters for it: a parameter may be repeated, or in a form. `is_path`:
    /// whether it may read the path that was sent as this one.
    pub(super) fn may_match(
        &self,
        path: &[u8],
        parameters: &Parameters,
        is_path: impl Fn(&[u8], &[u8]) -> bool,
    ) -> bool {
        let is_sent = |(name, value): &(String, String)| {
            let mut sent = parameters.find(name);
            sent.any(|it| it.value.eq_ignore_ascii_case(value.as_bytes()))
        };
        self.query.iter().all(is_sent) && is_path(path, self.path().as_bytes())
    }
}

impl fmt::Display for FlowPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for FlowPath {
    type Err = InvalidFlowPath;

    fn from_str(text: &str) -> Result<Self, InvalidFlowPath> {
        let (path, pairs) = match text.split_once('?') {
            Some((path, pairs)) => (path, Some(pairs)),
            None => (text, None),
        };
        let inner = path.strip_prefix('/').ok_or(InvalidFlowPath::NoSlash)?;
        if inner.is_empty() {
            return Err(InvalidFlowPath::Root);
        }
        let is_uri_byte = |byte: u8| byte.is_ascii_graphic() && !b"\"<>^`{|}#".contains(&byte);
        if !text.bytes().all(is_uri_byte) {
            return Err(InvalidFlowPath::Byte);
        }
        let whole = inner.strip_suffix('/').unwrap_or(inner).as_bytes();
        let decoded = percent::decode(whole).map_err(|_| InvalidFlowPath::Path)?;
        let is_unclear = |segment: &[u8]| {
            matches!(segment, b"." | b"..") || segment.iter().any(|byte| b";\\".contains(byte))
        };
        if decoded.split(|byte| *byte == b'/').any(is_unclear) {
            return Err(InvalidFlowPath::Path);
        }
        let mut query: Vec<(String, String)> = Vec::new();
        for pair in pairs.into_iter().flat_map(|pairs| pairs.split('&')) {
            let (name, value) = pair.split_once('=').ok_or(InvalidFlowPath::Query)?;
            let [name, value] = [name, value].map(|text| {
                let text = percent::decode_form(text.as_bytes()).ok()?;
                String::from_utf8(text.into_owned()).ok()
            });
            let name = name.filter(|name| !name.is_empty());
            let (name, value) = name.zip(value).ok_or(InvalidFlowPath::Query)?;
            if name == "mode" || name.starts_with("oauth_") {
                return Err(InvalidFlowPath::Parameter(name));
            }
            if query.iter().any(|(known, _)| *known == name) {
                return Err(InvalidFlowPath::Query);
            }
            query.push((name, value));
        }
        Ok(Self {
            text: text.to_owned(),
            path_length: path.len(),
            query,
        })
    }
}
