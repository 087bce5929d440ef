//! The changes that an import makes, for the person or program that runs it.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Write},
};

use serde_json::{Value, json};

use crate::records::values::transfer::{Difference, Record};

/// Writes each change as a line, and remembers all of them as one hash.
pub(super) struct Differences<W> {
    to: W,
    as_json: bool,
    hash: DefaultHasher,
    /// The number of consumers that are removed.
    pub(super) removed: u64,
    /// The first error of the output.
    written: io::Result<()>,
}

impl<W: Write> Differences<W> {
    pub(super) fn new(to: W, as_json: bool) -> Self {
        Self {
            to,
            as_json,
            hash: DefaultHasher::new(),
            removed: 0,
            written: Ok(()),
        }
    }

    /// Writes a change.
    pub(super) fn write(&mut self, difference: Difference<'_>) {
        let line = match self.as_json {
            true => object(difference).to_string(),
            false => text(difference),
        };
        line.hash(&mut self.hash);
        self.removed += u64::from(matches!(difference, Difference::Removed(..)));
        if self.written.is_ok() {
            self.written = writeln!(self.to, "{line}");
        }
    }

    /// Writes what is not written yet; returns the hash.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.written?;
        self.to.flush()?;
        Ok(self.hash.finish())
    }

    /// The changes up to now, as one value that other changes do not have.
    pub(super) fn hash(&self) -> u64 {
        self.hash.finish()
    }
}

/// The members that differ, each with its value before and after if neither is a secret.
fn members(before: &Record, after: &Record) -> Vec<(String, Option<[Value; 2]>)> {
    let values = [before.compared(), after.compared()];
    let names = before.differing(after).into_iter();
    let value = |name: &String| {
        let values = values.each_ref().map(|members| members.get(name).cloned());
        match values {
            [None, None] => None,
            values => Some(values.map(Option::unwrap_or_default)),
        }
    };
    names.map(|name| (name.clone(), value(&name))).collect()
}

fn text(difference: Difference<'_>) -> String {
    match difference {
        Difference::Added(record) => format!("+ {}", record.name()),
        Difference::Changed(before, after) => {
            let members = members(before, after).into_iter();
            let members = members.map(|(name, values)| match values {
                Some([before, after]) => format!("{name} {before} -> {after}"),
                None => format!("another {name}"),
            });
            let members = members.collect::<Vec<_>>().join(", ");
            format!("~ {}: {members}", before.name())
        }
        Difference::Removed(key, tokens) => {
            format!("- consumer {:?} with {tokens} access tokens", key.as_str())
        }
    }
}

fn object(difference: Difference<'_>) -> Value {
    match difference {
        Difference::Added(record) => {
            let (kind, key) = record.identity();
            json!({ "change": "added", "kind": kind, "name": key })
        }
        Difference::Changed(before, after) => {
            let (kind, key) = before.identity();
            let members = members(before, after).into_iter();
            let members = members.map(|(name, values)| match values {
                Some([before, after]) => json!({ "name": name, "before": before, "after": after }),
                None => json!({ "name": name }),
            });
            let members: Vec<_> = members.collect();
            json!({ "change": "changed", "kind": kind, "name": key, "members": members })
        }
        Difference::Removed(key, tokens) => {
            json!({ "change": "removed", "kind": "consumer", "name": key, "tokens": tokens })
        }
    }
}
