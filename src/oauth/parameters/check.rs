//! Rules for all names that begin with `oauth_`, known or not.

use std::collections::HashSet;

use super::{Entry, Parameters};
use crate::oauth::{
    name::{ParameterNames, ProtocolParameter},
    shape::ShapeError,
};

impl Parameters {
    /// Checks that everything was read, that no `oauth_` name occurs twice, that all of them are in one place, and that none
    /// but `oauth_token` is empty.
    pub(in crate::oauth) fn check_oauth_names(&self) -> Result<(), ShapeError> {
        if let Some(error) = &self.malformed {
            return Err(error.clone());
        }
        let mut entries = self.entries.iter().enumerate();
        let is_usual = entries.all(|(at, entry)| {
            let is_last = |parameter| self.found[parameter as usize] == Some(at);
            !entry.oauth || entry.parameter.is_some_and(is_last) && !is_empty(entry)
        });
        match is_usual && self.oauth_places.count_ones() < 2 {
            true => Ok(()),
            false => self.check_each_name(),
        }
    }

    #[cold]
    fn check_each_name(&self) -> Result<(), ShapeError> {
        // §3.1: each parameter "MUST NOT appear more than once per request".
        let mut known = HashSet::new();
        self.reject("given more than once", |entry| {
            !known.insert(self.name(entry))
        })?;
        // §3.5 prefers the header, then the body, then the query.
        let oauth = self.entries.iter().filter(|entry| entry.oauth);
        let preferred = oauth.map(|entry| entry.place).min();
        self.reject(
            "not in one place with the other oauth_ parameters",
            |entry| Some(entry.place) != preferred,
        )?;
        self.reject("empty", is_empty)
    }

    /// Rejects the names of the entries that `is_wrong` is true for.
    fn reject(
        &self,
        reason: &'static str,
        mut is_wrong: impl FnMut(&Entry) -> bool,
    ) -> Result<(), ShapeError> {
        let mut names = ParameterNames::default();
        for entry in self.entries.iter().filter(|entry| entry.oauth) {
            if is_wrong(entry) {
                names.add(self.name(entry));
            }
        }
        match names.is_empty() {
            true => Ok(()),
            false => Err(ShapeError::Rejected { names, reason }),
        }
    }
}

fn is_empty(entry: &Entry) -> bool {
    entry.value_start == entry.end && entry.parameter != Some(ProtocolParameter::Token)
}
