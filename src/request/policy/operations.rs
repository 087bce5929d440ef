//! The protected operations, and which of them a request matches.

pub mod frame_ancestors;
pub mod pattern;
pub(in crate::request::policy) mod readings;
pub(in crate::request::policy) mod similar;
pub(in crate::request::policy) mod trie;

use std::{borrow::Cow, collections::BTreeSet, net::IpAddr, time::Duration};

use http::{HeaderName, HeaderValue};
use ipnet::IpNet;

use super::{
    PolicyRejection, UnmetRule,
    access::{Access, CallerKind},
    path::{AmbiguousPath, MatchablePath, SegmentData, matchable},
};
use crate::{
    base::{network, text::names::Permission},
    request::policy::operations::{
        frame_ancestors::FrameAncestors,
        pattern::PathPattern,
        readings::readings,
        similar::{also_by_script, folded, is_script, read_by_script, without_extension},
        trie::PathNode,
    },
    telemetry::calls::facts::OperationRule,
};

/// The longest value of a parameter that goes on as a header field, in bytes: servers limit the head of a request.
const MAX_HEADER_BYTES: usize = 4_096;

/// A header field that has the value of a signed parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterHeader {
    /// The name of the field.
    pub name: HeaderName,
    /// The name of the parameter, decoded.
    pub parameter: String,
}

impl ParameterHeader {
    /// The value of the field where the signature covers these values of the parameter: one, or equal copies, with bytes that a
    /// field may have, and no white space at an end, which a recipient would take away.
    pub fn value(&self, values: &[&[u8]]) -> Option<HeaderValue> {
        let (first, others) = values.split_first()?;
        let is_clear = others.iter().all(|other| other == first);
        let fits = first.len() <= MAX_HEADER_BYTES && first.trim_ascii() == *first;
        let value = HeaderValue::from_bytes(first).ok();
        value.filter(|_| is_clear && fits)
    }
}

/// The times that the API has for an operation; `None`: as configured for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ApiTimeouts {
    /// For the head of its response.
    pub response: Option<Duration>,
    /// For which it may send nothing of the body.
    pub silence: Option<Duration>,
}

/// One `[[operation]]`.
#[derive(Debug, Clone)]
pub struct Operation {
    /// `/members/{id}`, `/files/{*rest}`.
    pub path: PathPattern,
    /// Allowed methods; empty means any. `GET` also allows `HEAD`.
    pub methods: Vec<String>,
    /// The permission that both token and consumer must have.
    pub permission: Option<Permission>,
    /// The kinds of caller that may call it.
    pub access: Access,
    /// The networks from which it may be called; empty: callers may be anywhere.
    pub from: Vec<IpNet>,
    /// `Some(true)`: protected calls are enforced; `Some(false)`: observed; `None`: as configured for all.
    pub enforce: Option<bool>,
    /// A WebSocket upgrade passes.
    pub websocket: bool,
    /// A body that is not a form needs `oauth_body_hash`.
    pub needs_body_hash: bool,
    /// The accepted difference of a timestamp from the clock, either way; `None`: as configured for all.
    pub timestamp_window: Option<Duration>,
    /// The times that the API has.
    pub timeouts: ApiTimeouts,
    /// The OAuth credentials go on to the API; `None`: as configured for all.
    pub forward_authorization: Option<bool>,
    /// The signed parameters that the API also gets as header fields.
    pub headers: Vec<ParameterHeader>,
    /// It is launched by a browser's form: its user sees the failure, in a frame of these sites too; `None`: it is not.
    pub launch: Option<FrameAncestors>,
    /// Its place among all operations; [`Operations::new`] sets it.
    pub index: usize,
}

impl Operation {
    /// Its path, with the methods in front where it lists any.
    fn label(&self) -> String {
        match self.methods.as_slice() {
            [] => self.path.to_string(),
            methods => format!("{} {}", methods.join(","), self.path),
        }
    }

    /// What the API gets of the credentials, where the operation itself says it.
    pub fn credentials(&self) -> Option<&'static str> {
        self.forward_authorization
            .map(|is_forwarded| match is_forwarded {
                true => "the credentials go on to the API",
                false => "the credentials are taken out",
            })
    }

    /// Whether it lists this method; GET does not list HEAD here.
    #[must_use]
    pub fn has_method(&self, method: &[u8]) -> bool {
        let same = |known: &String| known.as_bytes() == method;
        self.methods.is_empty() || self.methods.iter().any(same)
    }

    /// Its rank: observed, as configured for all, enforced.
    const fn enforcement(&self) -> u8 {
        match self.enforce {
            Some(false) => 0,
            None => 1,
            Some(true) => 2,
        }
    }

    /// Whether what `other` asks of a call is enough for this one, which has its method too.
    fn asks_at_most(&self, other: &Self) -> bool {
        let has_permission = self.permission.is_none() || self.permission == other.permission;
        has_permission
            && self.access.admits_all(other.access)
            && (self.from.is_empty() || self.from == other.from)
            && self.enforcement() <= other.enforcement()
            && (other.needs_body_hash || !self.needs_body_hash)
            && (self.websocket || !other.websocket)
            && self.timestamp_window == other.timestamp_window
    }
}

/// All operations.
#[derive(Debug)]
pub struct Operations {
    listed: Vec<Operation>,
    root: PathNode,
    /// The same patterns, each without what [`folded`] leaves out; `None`: similar paths are not looked for.
    similar: Option<PathNode>,
    /// None of the patterns has anything that [`folded`] leaves out.
    is_folded: bool,
    data: SegmentData,
    labels: Vec<String>,
    unlisted: Access,
    hide: bool,
}

/// The treatment of a path that an API may take for one of a more specific pattern than the pattern that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Similar {
    /// It is rejected like a path that no caller may call.
    Reject,
    /// It is what it matches.
    Wider,
}

/// The operation that a request matches.
#[derive(Debug)]
pub enum Found<'a> {
    /// This operation.
    Operation(&'a Operation),
    /// A listed path, but none of its methods: the operations of the others.
    OtherMethod(Vec<&'a Operation>),
    /// No listed path.
    Unlisted(Access),
    /// A path that some API takes for one of an operation, which it does not match.
    Similar {
        /// That operation.
        resembled: &'a Operation,
        /// Those whose pattern it matches, which is a wider one.
        matched: Vec<&'a Operation>,
    },
    /// A path that the API could read as another one, for this reason.
    Ambiguous {
        /// The path.
        path: &'a [u8],
        /// What can be read in more than one way.
        reason: AmbiguousPath,
    },
}

impl<'a> Found<'a> {
    /// The operation, if it is one.
    pub const fn operation(&self) -> Option<&'a Operation> {
        match self {
            Self::Operation(operation) => Some(operation),
            Self::OtherMethod(_)
            | Self::Unlisted(_)
            | Self::Similar { .. }
            | Self::Ambiguous { .. } => None,
        }
    }
}

/// From where callers are allowed by these networks, in words.
pub fn allowed_networks(networks: &[IpNet]) -> String {
    let networks = Vec::from_iter(networks.iter().map(ToString::to_string));
    format!("only from {}", networks.join(" or "))
}

impl Operation {
    /// The rule by which a caller at this address may not call it.
    fn unmet_by(&self, caller: Option<IpAddr>) -> Option<UnmetRule> {
        let is_met = network::admit(&self.from, caller);
        (!is_met).then_some(UnmetRule::Other(OperationRule::From))
    }
}

impl Found<'_> {
    /// The kinds of caller that may call it; for another method, those that may use one of the listed ones.
    pub fn access(&self) -> Access {
        match self {
            Self::Operation(operation) => operation.access,
            Self::OtherMethod(others) => Access::any_of(others.iter().map(|it| it.access)),
            Self::Unlisted(access) => *access,
            Self::Similar { .. } | Self::Ambiguous { .. } => Access::NOBODY,
        }
    }

    /// The rule by which a caller at this address may not call it; for another method, none of the listed ones.
    #[must_use]
    pub fn unmet_by(&self, caller: Option<IpAddr>) -> Option<UnmetRule> {
        match self {
            Self::Operation(operation) => operation.unmet_by(caller),
            Self::OtherMethod(others) => {
                let unmet: Option<Vec<_>> = others.iter().map(|it| it.unmet_by(caller)).collect();
                unmet?.pop()
            }
            Self::Unlisted(_) | Self::Similar { .. } | Self::Ambiguous { .. } => None,
        }
    }

    /// Whether no credentials open it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self {
            Self::Operation(_) => false,
            Self::OtherMethod(_) | Self::Similar { .. } | Self::Ambiguous { .. } => true,
            Self::Unlisted(access) => *access == Access::NOBODY,
        }
    }

    /// # Errors
    /// [`PolicyRejection::Path`] for a path that the API could read as another one.
    pub const fn check_path(&self) -> Result<(), PolicyRejection> {
        match self {
            Self::Ambiguous { reason, .. } => Err(PolicyRejection::Path(*reason)),
            Self::Operation(_)
            | Self::OtherMethod(_)
            | Self::Unlisted(_)
            | Self::Similar { .. } => Ok(()),
        }
    }

    /// # Errors
    /// [`PolicyRejection::MethodNotAllowed`] for a listed path that does not have the method.
    pub fn check_method(&self) -> Result<(), PolicyRejection> {
        match self {
            Self::OtherMethod(others) => Err(PolicyRejection::MethodNotAllowed {
                allow: allowed_methods(others),
            }),
            Self::Operation(_)
            | Self::Unlisted(_)
            | Self::Similar { .. }
            | Self::Ambiguous { .. } => Ok(()),
        }
    }
}

/// The value of `Allow` where these operations list the path.
pub fn allowed_methods(operations: &[&Operation]) -> String {
    let listed = operations.iter().flat_map(|operation| &operation.methods);
    let mut methods: BTreeSet<&str> = listed.map(String::as_str).collect();
    if methods.contains("GET") {
        methods.insert("HEAD");
    }
    Vec::from_iter(methods).join(", ")
}

impl Operations {
    /// Prepares the operations for matching.
    pub fn new(mut listed: Vec<Operation>, unlisted: Access, hide: bool, similar: Similar) -> Self {
        let labels = listed.iter().map(Operation::label).collect();
        let mut root = PathNode::default();
        let mut folded = PathNode::default();
        let mut is_folded = true;
        for (index, operation) in listed.iter_mut().enumerate() {
            operation.index = index;
            root.insert(&operation.path.shape, index);
            let shape = operation.path.folded_shape();
            is_folded &= shape == operation.path.shape;
            folded.insert(&shape, index);
        }
        Self {
            listed,
            root,
            similar: (similar == Similar::Reject).then_some(folded),
            is_folded,
            data: SegmentData::default(),
            labels,
            unlisted,
            hide,
        }
    }

    /// The same, with this as data of segments.
    #[must_use]
    pub fn with_data(self, data: SegmentData) -> Self {
        Self { data, ..self }
    }

    /// The label of each operation in logs and metrics: its path, with the methods in front where it lists any.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// All operations, in the order of the configuration.
    pub fn listed(&self) -> &[Operation] {
        &self.listed
    }

    /// The kinds of caller that may call a path that no operation lists.
    pub const fn unlisted(&self) -> Access {
        self.unlisted
    }

    /// The permissions, of these of a consumer, with which it may call operations without a user: all, if it may call paths that
    /// no operation lists.
    ///
    /// # Errors
    /// [`PolicyRejection::TokenMissing`] if it may call nothing without a user.
    pub fn application_permissions(
        &self,
        permissions: &[Permission],
    ) -> Result<Vec<Permission>, PolicyRejection> {
        if self.unlisted.admits(CallerKind::Application) {
            return Ok(permissions.to_vec());
        }
        let admits = |it: &&Operation| it.access.admits(CallerKind::Application);
        let admitting = || {
            self.listed
                .iter()
                .filter(admits)
                .map(|it| it.permission.as_ref())
        };
        let is_enough = |it: &&Permission| admitting().any(|needed| needed == Some(*it));
        let enough = Vec::from_iter(permissions.iter().filter(is_enough).cloned());
        let is_any = !enough.is_empty() || admitting().any(|needed| needed.is_none());
        is_any
            .then_some(enough)
            .ok_or(PolicyRejection::TokenMissing)
    }

    /// The rejection of an operation that is not permitted, because of its rule `unmet` if it is that.
    pub const fn forbidden(&self, unmet: Option<UnmetRule>) -> PolicyRejection {
        PolicyRejection::NotPermitted {
            hide: self.hide,
            unmet,
        }
    }

    /// Finds the operation that a request matches. Patterns and paths are compared with every escape decoded, since an API
    /// decodes before it routes: another spelling of a path matches the same operation.
    pub fn find<'a>(&'a self, path: &'a [u8], method: &[u8]) -> Found<'a> {
        if self.labels.is_empty() {
            return Found::Unlisted(self.unlisted);
        }
        let ambiguous = |reason| Found::Ambiguous { path, reason };
        let MatchablePath { text, has_data } = match matchable(path, self.data) {
            Ok(matchable) => matchable,
            Err(reason) => return ambiguous(reason),
        };
        let found = self.root.find_path(&text);
        let mut resembled = self.similar_to(&text, found);
        if has_data && resembled.is_none() {
            let Some(readings) = readings(path) else {
                return ambiguous(AmbiguousPath::TooLong);
            };
            resembled = match self.lists_script(found) {
                true => self.read_as(readings, found, method),
                false => self.read_as(also_by_script(readings), found, method),
            };
        }
        if resembled.is_none()
            && let Some(read) = read_by_script(&text)
            && !self.lists_script(found)
        {
            resembled = self.read_as(read.into_iter(), found, method);
        }
        let group = || self.listed_at(found);
        if let Some(resembled) = resembled {
            let matched = group().collect();
            return Found::Similar { resembled, matched };
        }
        if found.is_none() {
            return Found::Unlisted(self.unlisted);
        }
        match self.with_method(found, method) {
            Some(operation) => Found::Operation(operation),
            None => Found::OtherMethod(group().collect()),
        }
    }

    fn listed_at(&self, found: Option<&[usize]>) -> impl Iterator<Item = &Operation> {
        let indices = found.unwrap_or_default().iter();
        indices.filter_map(|index| self.listed.get(*index))
    }

    /// Whether the pattern that was found has the name of a script.
    fn lists_script(&self, found: Option<&[usize]>) -> bool {
        let mut listed = self.listed_at(found);
        listed.any(|it| it.path.text.split('/').any(|it| is_script(it.as_bytes())))
    }

    fn with_method(&self, found: Option<&[usize]>, method: &[u8]) -> Option<&Operation> {
        let with = |method: &[u8]| self.listed_at(found).find(|it| it.has_method(method));
        // GET covers HEAD only where HEAD is not listed.
        let covering = || with(b"GET").filter(|_| method == b"HEAD");
        with(method).or_else(covering)
    }

    /// Whether the signatures of calls to it are enforced; `enforces`: they are where no operation says otherwise. If an API may
    /// read the path as that of an operation with enforced signatures, they are.
    #[must_use]
    pub fn is_enforced(&self, found: &Found<'_>, enforces: bool) -> bool {
        let is_enforced = |operation: &Operation| operation.enforce.unwrap_or(enforces);
        match found {
            Found::Operation(operation) => is_enforced(operation),
            Found::Unlisted(_) => enforces,
            // With its method it is not observed.
            Found::OtherMethod(others) => enforces || others.iter().any(|it| is_enforced(it)),
            Found::Similar { resembled, matched } => {
                is_enforced(resembled) || matched.iter().any(|it| is_enforced(it))
            }
            Found::Ambiguous { path, .. } => {
                let is_other = |it: &Operation| it.enforce.is_some_and(|it| it != enforces);
                match self.listed.iter().any(is_other) {
                    true => self.may_be_enforced(path, enforces),
                    false => enforces,
                }
            }
        }
    }

    fn may_be_enforced(&self, path: &[u8], enforces: bool) -> bool {
        let Some(readings) = readings(path) else {
            return true;
        };
        also_by_script(readings).any(|reading| {
            let found = self.root.find_path(&reading);
            let mut listed = self
                .listed_at(found)
                .chain(self.similar_to(&reading, found))
                .peekable();
            match listed.peek() {
                None => enforces,
                Some(_) => listed.any(|it| it.enforce.unwrap_or(enforces)),
            }
        })
    }

    /// An operation that some API finds under a path, since it does not take for data what is data here, and that asks more of a
    /// call than those found here; if any is enforced, one that is.
    fn read_as(
        &self,
        readings: impl Iterator<Item = Vec<u8>>,
        found: Option<&[usize]>,
        method: &[u8],
    ) -> Option<&Operation> {
        if self.is_exact(found) {
            return None;
        }
        let own = self.with_method(found, method);
        let asks_more = |other: &&Operation| match own {
            Some(own) => self.asks_more(other, own),
            // What is observed admits every call.
            None => other.enforce != Some(false),
        };
        let others = readings.filter_map(|reading| {
            let read = self.root.find_path(&reading);
            let other = match self.with_method(read, method) {
                _ if read == found => None,
                Some(other) => Some(other).filter(asks_more),
                // No call with its method goes there.
                None => self
                    .listed_at(read)
                    .find(|it| own.is_some() || asks_more(it)),
            };
            other.or_else(|| self.similar_to(&reading, read).filter(asks_more))
        });
        others.max_by_key(|other| other.enforcement())
    }

    /// Whether an operation, as which an API may read a call to `own`, asks more of the call.
    fn asks_more(&self, other: &Operation, own: &Operation) -> bool {
        match self.similar {
            Some(_) => !other.asks_at_most(own),
            None => other.enforcement() > own.enforcement(),
        }
    }

    /// What a call to `own`, which was found for this path, matches where the API takes its method from a parameter;
    /// `None`: nothing that asks more.
    pub fn find_overridden<'a>(
        &'a self,
        path: &'a [u8],
        own: &'a Operation,
        method: &[u8],
    ) -> Option<Found<'a>> {
        match self.find(path, method) {
            Found::Operation(other) => self.asks_more(other, own).then(|| Found::Similar {
                resembled: other,
                matched: vec![own],
            }),
            found => self.similar.is_some().then_some(found),
        }
    }

    /// Whether an operation with the same path and another method asks more of a call.
    #[must_use]
    pub fn has_stricter_method(&self, own: &Operation) -> bool {
        let mut listed = self.listed.iter();
        listed.any(|it| it.path.shape == own.path.shape && self.asks_more(it, own))
    }

    /// Whether an operation with the same path, and with any method, is enforced.
    #[must_use]
    pub fn is_path_enforced(&self, own: &Operation, enforces: bool) -> bool {
        let mut listed = self.listed.iter();
        listed.any(|it| it.enforce.unwrap_or(enforces) && it.path.shape == own.path.shape)
    }

    /// Whether a path is listed literally: it is as specific as any other.
    fn is_exact(&self, found: Option<&[usize]>) -> bool {
        let first = self.listed_at(found).next();
        first.is_some_and(|operation| operation.path.is_literal())
    }

    /// An operation that some API finds under a path, and that is more specific than those found here.
    fn similar_to(&self, path: &[u8], found: Option<&[usize]>) -> Option<&Operation> {
        if self.is_exact(found) {
            return None;
        }
        let similar = self.similar.as_ref()?;
        let folded = folded(path);
        let resembled = |path: &[u8]| {
            let similar = similar.find_path(path)?;
            let first = found.and_then(<[usize]>::first);
            match first.is_some_and(|first| similar.contains(first)) {
                true => None,
                false => self.listed.get(*similar.first()?),
            }
        };
        // Nearly always: the same patterns would be searched for the same path again.
        let is_same = self.is_folded && matches!(folded, Cow::Borrowed(_));
        let whole = (!is_same).then(|| resembled(&folded)).flatten();
        whole.or_else(|| {
            let without = without_extension(&folded).and_then(resembled);
            without.filter(|operation| operation.path.ends_in_literal())
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::text::words;
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::{oauth::percent, request::parse::target};

    fn operation(path: &str, methods: &[&str]) -> Operation {
        Operation {
            path: path.parse().unwrap(),
            methods: methods.iter().map(ToString::to_string).collect(),
            permission: None,
            access: Access::to(&[CallerKind::Consumer]),
            from: Vec::new(),
            enforce: None,
            websocket: false,
            needs_body_hash: false,
            timestamp_window: None,
            timeouts: ApiTimeouts::default(),
            forward_authorization: None,
            headers: Vec::new(),
            launch: None,
            index: 0,
        }
    }

    fn operations() -> Operations {
        let list = vec![
            operation("/members/{id}", &["GET"]),
            operation("/members/{name}", &["DELETE"]),
            operation("/members/me", &["GET"]),
            operation("/members/{id}/photos", &["GET", "POST"]),
            operation("/members/{id}/photos/", &["GET"]),
            operation("/files/{*rest}", &["GET"]),
            operation("/", &["GET"]),
            operation("/items:purge", &["POST"]),
            operation("/{kind}", &["POST"]),
            operation("/members/%40all", &["GET"]),
            operation("/members/%7Bid%7D", &["GET"]),
            operation("/members/a%20b", &["GET"]),
            operation("/members/%C3%A9", &["GET"]),
            operation("/both", &["GET"]),
            operation("/both", &["HEAD", "POST"]),
        ];
        Operations::new(list, Access::NOBODY, true, Similar::Wider)
    }

    fn found(path: &str, method: &str) -> String {
        match operations().find(path.as_bytes(), method.as_bytes()) {
            Found::Operation(operation) if operation.path.to_string() == "/both" => {
                format!("/both {}", operation.methods[0])
            }
            Found::Operation(operation) => operation.path.to_string(),
            Found::OtherMethod(others) => format!("405 {}", allowed_methods(&others)),
            Found::Unlisted(_) => "unlisted".to_owned(),
            Found::Similar { resembled, .. } => format!("similar to {}", resembled.path),
            Found::Ambiguous { .. } => "400".to_owned(),
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
            ("/members/@all", "GET", "/members/%40all"),
            ("/members/%40all", "GET", "/members/%40all"),
            ("/members/%40%61ll", "HEAD", "/members/%40all"),
            ("/items%3Apurge", "POST", "/items:purge"),
            ("/items%3apurge", "POST", "/items:purge"),
            ("/items%3apurge", "GET", "405 POST"),
            ("/items%21purge", "POST", "/{kind}"),
            ("/members/%7bid%7D", "GET", "/members/%7Bid%7D"),
            ("/members/{id}", "GET", "/members/%7Bid%7D"),
            ("/members/{id}/photos", "GET", "/members/{id}/photos"),
            ("/members/a%20b", "GET", "/members/a%20b"),
            ("/members/a+b", "GET", "/members/{id}"),
            ("/members/%c3%a9", "GET", "/members/%C3%A9"),
            ("/members/%c3%a8", "GET", "/members/{id}"),
            ("/members/%e9", "GET", "/members/{id}"),
            ("/both", "HEAD", "/both HEAD"),
            ("/both", "GET", "/both GET"),
            ("/members/1/photos", "POST", "/members/{id}/photos"),
            ("/members/%c3%a9/photos", "GET", "/members/{id}/photos"),
            ("/files/a/b", "GET", "/files/{*rest}"),
            ("/members", "GET", "405 POST"),
            ("/none/at/all", "GET", "unlisted"),
            ("/members/1/", "GET", "unlisted"),
            ("/files/a/", "GET", "/files/{*rest}"),
            ("/files/", "GET", "unlisted"),
            ("/members/1/photos/", "GET", "/members/{id}/photos/"),
            ("/members/1//photos", "GET", "400"),
            ("/Members/1", "GET", "unlisted"),
            ("/members/1", "get", "405 DELETE, GET, HEAD"),
        ] {
            assert_eq!(found(path, method), expected, "{method} {path}");
        }
    }

    #[test]
    fn a_parameter_may_stand_beside_all_that_is_left() {
        let list = words("/{*all} /{kind}/{id} /files/{*rest} /files/{id}/meta");
        let list = list.iter().map(|path| operation(path, &[])).collect();
        let operations = Operations::new(list, Access::NOBODY, true, Similar::Wider);
        for (path, expected) in [
            ("/", None),
            ("/a", Some("/{*all}")),
            ("/a/b", Some("/{kind}/{id}")),
            ("/a/b/c", Some("/{*all}")),
            ("/files", Some("/{*all}")),
            ("/files/1", Some("/files/{*rest}")),
            ("/files/1/meta", Some("/files/{id}/meta")),
            ("/files/1/meta/x", Some("/files/{*rest}")),
        ] {
            let found = match operations.find(path.as_bytes(), b"GET") {
                Found::Operation(operation) => Some(&*operation.path.text),
                _ => None,
            };
            assert_eq!(found, expected, "{path}");
        }
    }

    /// What a path is found to be where everything is data of a segment.
    fn found_with_data(path: &str, similar: Similar) -> String {
        let list = [
            ("/items/{id}", Some(false)),
            ("/items/{id}/secret", Some(true)),
            ("/items/me", None),
            ("//v1/{id}", None),
            ("/v1/{id}", None),
            ("/{*rest}", None),
            ("/a%2Fb", None),
        ];
        let list = list.into_iter().map(|(path, enforce)| Operation {
            enforce,
            ..operation(path, &["GET"])
        });
        let operations = Operations::new(list.collect(), Access::NOBODY, true, similar);
        match operations
            .with_data(SegmentData::ALL)
            .find(path.as_bytes(), b"GET")
        {
            Found::Operation(operation) => operation.path.to_string(),
            Found::Similar { resembled, .. } => format!("similar to {}", resembled.path),
            Found::OtherMethod(_) => "405".to_owned(),
            Found::Unlisted(_) => "unlisted".to_owned(),
            Found::Ambiguous { reason, .. } => reason.to_string(),
        }
    }

    #[test]
    fn data_stays_in_its_segment() {
        for (path, found, exactly) in [
            (
                "/items/24%2FMB01",
                "similar to /{*rest}",
                "similar to /{*rest}",
            ),
            ("/v1/24%2FMB01", "/v1/{id}", "/v1/{id}"),
            ("/v1/a%25b%5C;c%3b", "/v1/{id}", "/v1/{id}"),
            ("//v1/7", "//v1/{id}", "//v1/{id}"),
            ("//v1/7;x", "//v1/{id}", "//v1/{id}"),
            ("/a%2fb", "/a%2Fb", "/a%2Fb"),
            ("/a%252fb", "/{*rest}", "/{*rest}"),
            ("/x//y", "/{*rest}", "/{*rest}"),
            ("//", "/{*rest}", "/{*rest}"),
            ("//items/7", "/{*rest}", "/{*rest}"),
            (
                "/x%2F..;y",
                "the path has a dot segment",
                "the path has a dot segment",
            ),
            (
                "/items/7%2Fsecret",
                "similar to /items/{id}/secret",
                "similar to /items/{id}/secret",
            ),
            (
                "/items/7/secret;x",
                "similar to /items/{id}/secret",
                "similar to /items/{id}/secret",
            ),
            ("/v1/ME;x", "/v1/{id}", "/v1/{id}"),
            ("/items/ME;x", "similar to /items/me", "/items/{id}"),
            (
                "/items/7%00",
                "the path has an encoded control byte",
                "the path has an encoded control byte",
            ),
        ] {
            assert_eq!(found_with_data(path, Similar::Reject), found, "{path}");
            assert_eq!(found_with_data(path, Similar::Wider), exactly, "{path}");
        }
    }

    /// The specificity of each segment of a pattern where it matches a path; `None` if it does not.
    fn match_slowly(pattern: &str, path: &str) -> Option<Vec<u8>> {
        let mut segments = path.split('/').peekable();
        let mut specific = Vec::new();
        for part in pattern.split('/') {
            let segment = segments.next()?;
            let ends = segment.is_empty() && segments.peek().is_none();
            specific.push(match part.as_bytes() {
                [b'{', ..] if ends => return None,
                [b'{', b'*', ..] => {
                    specific.push(0);
                    return Some(specific);
                }
                [b'{', ..] => 1,
                literal if percent(literal) == percent(segment.as_bytes()) => 2,
                _ => return None,
            });
        }
        segments.next().is_none().then_some(specific)
    }

    /// The pattern with a name of its own for each parameter.
    fn numbered(pattern: &str) -> String {
        let segments = pattern.split('/').enumerate();
        let segments =
            segments.map(|(index, segment)| segment.replace("{x}", &format!("{{x{index}}}")));
        segments.collect::<Vec<_>>().join("/")
    }

    fn percent(bytes: &[u8]) -> Cow<'_, [u8]> {
        percent::decode(bytes).expect("good escapes")
    }

    proptest! {
        #[test]
        fn finds_what_a_slow_search_finds(
            patterns in prop::collection::btree_set("(/(a|%40|@a|ab|\\{x\\})){1,3}(/\\{\\*r\\})?", 1..8),
            paths in prop::collection::vec("(/(a|%61|@|%40|@a|%40%61|ab|b)){1,4}", 8),
        ) {
            let mut known = BTreeSet::new();
            let decoded = |pattern: &str| percent(pattern.as_bytes()).into_owned();
            let patterns = patterns.iter().filter(|pattern| known.insert(decoded(pattern)));
            let patterns: Vec<String> = patterns.map(|pattern| numbered(pattern)).collect();
            let list = patterns.iter().map(|pattern| operation(pattern, &[])).collect();
            let operations = Operations::new(list, Access::NOBODY, true, Similar::Wider);
            for path in &paths {
                let matching = |pattern: &&String| match_slowly(pattern, path);
                let best = patterns.iter().max_by_key(matching);
                let best = best.filter(|pattern| matching(pattern).is_some()).map(|best| best.as_str());
                let found = match operations.find(path.as_bytes(), b"GET") {
                    Found::Operation(operation) => Some(&*operation.path.text),
                    _ => None,
                };
                prop_assert_eq!(found, best, "{} in {:?}", path, patterns);
            }
        }
    }

    proptest! {
        /// Splits at each slash of a path as it was sent, and decodes once.
        #[test]
        fn data_of_segments_is_found_as_a_slow_search_finds_it(
            patterns in prop::collection::btree_set("(/(a|a;b|a%2Fb|%25|\\{x\\})?){1,3}(/\\{\\*r\\})?", 1..6),
            paths in prop::collection::vec("(/(a|a;b|a%2fb|%25|b%252F)?){1,4}", 8),
        ) {
            let read: Vec<String> = patterns.iter().map(|pattern| numbered(pattern)).collect();
            let list = read.iter().map(|pattern| operation(pattern, &[])).collect();
            let operations = Operations::new(list, Access::NOBODY, true, Similar::Wider);
            let operations = operations.with_data(SegmentData::ALL);
            for path in &paths {
                let matching = |pattern: &&String| match_slowly(pattern, path);
                let best = read.iter().max_by_key(matching).filter(|it| matching(it).is_some());
                let found = match operations.find(path.as_bytes(), b"GET") {
                    Found::Operation(operation) => Some(&operation.path.text),
                    _ => None,
                };
                prop_assert_eq!(found, best, "{} in {:?}", path, read);
            }
        }

        /// However an API reads a path, each operation that it finds asks at most what the one that was found here asks.
        #[test]
        fn no_reading_finds_an_operation_that_asks_more(
            path in "(/|//|%2F|%5c|%25(2F|25|2e|5C)|;|%3b|a|b|\\.|%2e|%00){1,12}",
        ) {
            let path = format!("/{path}");
            let list = words("/a /a/b /{x} /{x}/b /{*rest} /b/{*rest}");
            let list = list.iter().enumerate().map(|(index, path)| Operation {
                permission: (index % 2 == 0).then(|| format!("p{index}").parse().unwrap()),
                ..operation(path, &[])
            });
            let operations = Operations::new(list.collect(), Access::NOBODY, true, Similar::Reject);
            let operations = operations.with_data(SegmentData::ALL);
            if let Found::Operation(own) = operations.find(path.as_bytes(), b"GET") {
                for reading in readings(path.as_bytes()).unwrap() {
                    for other in operations.listed_at(operations.root.find_path(&reading)) {
                        let asks = other.permission.is_some() && other.permission != own.permission;
                        let is_literal = own.path.is_literal();
                        prop_assert!(!asks || is_literal, "{} is {} and {}", path, own.path, other.path);
                    }
                }
                for segment in path.split('/') {
                    prop_assert!(!target::has_dot_segment(segment.as_bytes()), "{}", path);
                }
            }
        }
    }

    #[test]
    fn rejects_paths_that_the_api_could_read_as_others() {
        for path in words(
            r"/members/1;x /members\1 /members/a%2fb /members/a%2Fb /members/a%5cb /members/a%3Bb
             /members/a%25b /members//1 //members/1 /members/./1 /members/../1 /members/%2e%2e/1
             /members/.%2E /members/% /members/%4 /members/%zz /members/%00 /members/%0a
             /members/%7f",
        ) {
            assert_eq!(found(path, "GET"), "400", "{path}");
        }
    }

    #[test]
    fn passes_any_path_on_where_no_operation_is_listed() {
        let operations = Operations::new(
            Vec::new(),
            Access::to(&[CallerKind::Consumer]),
            true,
            Similar::Reject,
        );
        for path in ["/a//../%2f;x\\%zz", "/"] {
            let found = operations.find(path.as_bytes(), b"GET");
            assert!(
                matches!(found, Found::Unlisted(access) if access.admits(CallerKind::Consumer))
            );
        }
    }

    #[test]
    fn admits_the_addresses_of_its_networks_alone() {
        for (networks, address, is_admitted) in [
            ("", Some("192.0.2.1"), true),
            ("", None, true),
            ("10.0.0.0/8", None, false),
            ("10.0.0.0/8", Some("10.255.0.1"), true),
            ("10.0.0.0/8", Some("11.0.0.1"), false),
            ("10.0.0.0/8", Some("::ffff:10.0.0.1"), true),
            ("10.0.0.0/8", Some("::ffff:11.0.0.1"), false),
            ("10.0.0.0/8", Some("::10.0.0.1"), false),
            ("0.0.0.0/0", Some("2001:db8::1"), false),
            ("::/0", Some("::ffff:10.0.0.1"), false),
            ("192.0.2.1/32 2001:db8::/32", Some("2001:db8::1"), true),
            ("192.0.2.1/32 2001:db8::/32", Some("192.0.2.1"), true),
            ("192.0.2.1/32 2001:db8::/32", Some("192.0.2.2"), false),
        ] {
            let all = words(networks).into_iter();
            let from = all.map(|text| text.parse().unwrap()).collect();
            let address = address.map(|text| text.parse().unwrap());
            let operation = Operation {
                from,
                ..operation("/", &[])
            };
            let unmet = operation.unmet_by(address);
            let expected = (!is_admitted).then_some(UnmetRule::Other(OperationRule::From));
            assert_eq!(unmet, expected, "{address:?} in {networks}");
        }
    }
}
