//! The protected operations, and which of them a request matches.

mod found;
pub mod frame_ancestors;
mod operation;
pub mod pattern;
pub(in crate::request::policy) mod readings;
pub(in crate::request::policy) mod similar;
#[cfg(test)]
mod tests;
pub(in crate::request::policy) mod trie;

use std::borrow::Cow;

use super::{
    PolicyRejection, UnmetRule,
    access::{Access, CallerKind},
    path::{AmbiguousPath, MatchablePath, SegmentData, matchable},
    settings::{OperationSettings, PathSettings, Similar},
};
use crate::{
    base::text::names::Permission,
    request::{
        policy::operations::{
            readings::readings,
            similar::{also_by_script, folded, is_script, read_by_script, without_extension},
            trie::PathNode,
        },
        verify::settings::Enforcement,
    },
};

pub use self::{
    found::{Found, allowed_methods},
    operation::{Operation, allowed_networks},
    similar::may_be_read_as,
};

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

impl Operations {
    /// Prepares the operations for matching.
    pub fn new(
        listed: Vec<OperationSettings>,
        unlisted: Access,
        hide: bool,
        paths: PathSettings,
    ) -> Self {
        let mut root = PathNode::default();
        let mut folded = PathNode::default();
        let mut is_folded = true;
        let prepare = |(index, rules): (usize, OperationSettings)| {
            root.insert(&rules.path.shape, index);
            let shape = rules.path.folded_shape();
            is_folded &= shape == rules.path.shape;
            folded.insert(&shape, index);
            Operation {
                access: Access::to(&rules.access),
                rules,
                index,
            }
        };
        let listed = Vec::from_iter(listed.into_iter().enumerate().map(prepare));
        Self {
            labels: listed.iter().map(Operation::label).collect(),
            listed,
            root,
            similar: (paths.similar == Similar::Reject).then_some(folded),
            is_folded,
            data: paths.data(),
            unlisted,
            hide,
        }
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
        let listed = || self.listed.iter().filter(admits);
        let admitting = || listed().map(|it| it.rules.permission.as_ref());
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
        let mut texts = self.listed_at(found).map(|it| &it.rules.path.text);
        texts.any(|text| text.split('/').any(|it| is_script(it.as_bytes())))
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
        let is_enforced = |operation: &Operation| operation.is_enforced(enforces);
        match found {
            Found::Operation(operation) => is_enforced(operation),
            Found::Unlisted(_) => enforces,
            // With its method it is not observed.
            Found::OtherMethod(others) => enforces || others.iter().any(|it| is_enforced(it)),
            Found::Similar { resembled, matched } => {
                is_enforced(resembled) || matched.iter().any(|it| is_enforced(it))
            }
            Found::Ambiguous { path, .. } => {
                match self.listed.iter().any(|it| is_enforced(it) != enforces) {
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
                Some(_) => listed.any(|it| it.is_enforced(enforces)),
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
            None => other.rules.enforcement != Some(Enforcement::Observe),
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
        listed.any(|it| it.rules.path.is_same(&own.rules.path) && self.asks_more(it, own))
    }

    /// Whether an operation with the same path, and with any method, is enforced.
    #[must_use]
    pub fn is_path_enforced(&self, own: &Operation, enforces: bool) -> bool {
        let mut listed = self.listed.iter();
        listed.any(|it| it.is_enforced(enforces) && it.rules.path.is_same(&own.rules.path))
    }

    /// Whether a path is listed literally: it is as specific as any other.
    fn is_exact(&self, found: Option<&[usize]>) -> bool {
        let first = self.listed_at(found).next();
        first.is_some_and(|operation| operation.rules.path.is_literal())
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
            without.filter(|operation| operation.rules.path.ends_in_literal())
        })
    }
}
