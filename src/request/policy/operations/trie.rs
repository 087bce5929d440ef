//! The patterns of all operations, as a tree of segments.

use std::collections::BTreeMap;

use super::pattern::PathSegment;

/// The patterns with the same segments so far; operations by their index.
#[derive(Debug, Default)]
pub(in crate::request::policy) struct PathNode {
    /// The nodes after a literal, decoded.
    literals: BTreeMap<Vec<u8>, PathNode>,
    /// The node after a parameter.
    parameter: Option<Box<PathNode>>,
    /// The operations that end in `{*rest}` here.
    rest: Vec<usize>,
    /// The operations that end here.
    end: Vec<usize>,
}

impl PathNode {
    pub(in crate::request::policy) fn insert(&mut self, shape: &[PathSegment], index: usize) {
        let mut node = self;
        for segment in shape {
            node = match segment {
                PathSegment::Rest => return node.rest.push(index),
                PathSegment::Parameter => node.parameter.get_or_insert_default(),
                PathSegment::Literal(literal) => node.literals.entry(literal.clone()).or_default(),
            };
        }
        node.end.push(index);
    }

    /// The operations of the most specific pattern that matches a decoded path.
    pub(in crate::request::policy) fn find_path(&self, path: &[u8]) -> Option<&[usize]> {
        // The pattern `/` has no segment.
        let rest = path.strip_prefix(b"/")?;
        self.find((!rest.is_empty()).then_some(rest))
    }

    /// The operations of the most specific pattern: at each segment a literal comes before a parameter, and that before
    /// all that is left. A node is visited once at most.
    fn find(&self, path: Option<&[u8]>) -> Option<&[usize]> {
        let some = |operations: &'_ [usize]| !operations.is_empty();
        let Some(path) = path else {
            return Some(self.end.as_slice()).filter(|end| some(end));
        };
        let (segment, path) = match memchr::memchr(b'/', path) {
            Some(end) => (&path[..end], Some(&path[end + 1..])),
            None => (path, None),
        };
        let literal = self.literals.get(segment);
        let found = literal.and_then(|node| node.find(path));
        // A slash at the end begins no segment that a parameter matches.
        if found.is_some() || segment.is_empty() && path.is_none() {
            return found;
        }
        let parameter = self.parameter.as_deref();
        let found = parameter.and_then(|node| node.find(path));
        found.or_else(|| Some(self.rest.as_slice()).filter(|rest| some(rest)))
    }
}
