//! Rules for all names that begin with `oauth_`, known or not.

use std::collections::HashMap;

use super::{Entry, Parameters};
use crate::{
    base::findings::Findings,
    oauth::parameters::{
        name::{ParameterNames, ProtocolParameter, is_look_alike, names_parameter},
        shape::{LocationRule, ParameterLocation, ShapeError},
    },
};

impl Parameters {
    /// Checks that everything was read, that no `oauth_` name occurs twice, that all of them are in the `rule`, that none
    /// but `oauth_token` is empty, and that no other name can be read as one of them.
    #[inline]
    pub(crate) fn check_oauth_names(
        &self,
        rule: LocationRule,
        findings: &mut impl Findings<ShapeError>,
    ) -> Result<(), ShapeError> {
        if let Some(error) = &self.malformed {
            findings.add(error.clone())?;
        }
        let mut entries = self.entries.iter().enumerate();
        let is_usual = entries.all(|(at, entry)| {
            let is_last = |parameter| self.found[parameter as usize] == Some(at);
            !entry.oauth || entry.parameter.is_some_and(is_last) && !is_empty(entry)
        });
        match is_usual && self.oauth_locations.count_ones() < 2 && !self.has_look_alike {
            true => Ok(()),
            false => self.check_each_name(rule, findings),
        }
    }

    #[cold]
    fn check_each_name(
        &self,
        rule: LocationRule,
        findings: &mut impl Findings<ShapeError>,
    ) -> Result<(), ShapeError> {
        let is_free = |entry: &Entry| rule.frees(entry.parameter);
        // §3.1: each parameter "MUST NOT appear more than once per request".
        let mut known = HashMap::new();
        let repeated = self.reject("given more than once", |entry| {
            let earlier = known.insert(self.name(entry), self.value(entry));
            earlier.is_some_and(|value| !is_free(entry) || value != self.value(entry))
        });
        findings.take(repeated)?;
        // §3.5 prefers the header, then the body, then the query.
        let bound = self
            .entries
            .iter()
            .filter(|entry| entry.oauth && !is_free(entry));
        let preferred = bound.map(|entry| entry.location).min();
        let apart = "not in one place with the other oauth_ parameters";
        let apart = self.reject(apart, |entry| {
            !is_free(entry) && Some(entry.location) != preferred
        });
        findings.take(apart)?;
        findings.take(self.reject("empty", is_empty))?;
        findings.take(self.reject_look_alikes(is_look_alike))?;
        Ok(())
    }

    /// Checks that an API finds no protocol parameter in a call that has none.
    ///
    /// # Errors
    /// [`ShapeError::Rejected`]: some frameworks read a name as that of one.
    pub fn check_unsigned(&self) -> Result<(), ShapeError> {
        match self.has_look_alike {
            true => self.reject_look_alikes(|name| ProtocolParameter::resembled_by(name).is_some()),
            false => Ok(()),
        }
    }

    /// Checks that a search for `oauth_` names finds no other protocol parameters in the Authorization value than a reader
    /// of its grammar, as PECL's and that of OAuth.php do.
    ///
    /// # Errors
    /// [`ShapeError::Malformed`]
    pub fn check_header_hides_none(&self) -> Result<(), ShapeError> {
        let in_header =
            |entry: &&Entry| !entry.oauth && entry.location == ParameterLocation::Header;
        let mut others = self.entries.iter().filter(in_header);
        let is_hidden = self.realm().is_some_and(names_parameter)
            || others.any(|it| names_parameter(self.name(it)) || names_parameter(self.value(it)));
        match is_hidden {
            true => Err(ShapeError::Malformed {
                location: ParameterLocation::Header,
                reason: "the name of an oauth_ parameter is in another name, in a value or in the realm",
            }),
            false => Ok(()),
        }
    }

    /// Rejects names that some frameworks read as names of protocol parameters: the API would find credentials that were
    /// not checked here.
    #[cold]
    fn reject_look_alikes(&self, is_one: impl Fn(&[u8]) -> bool) -> Result<(), ShapeError> {
        let mut names = self.after_semicolon.clone();
        let others = self.entries.iter().filter(|it| it.parameter.is_none());
        for entry in others {
            if is_one(self.name(entry)) {
                names.add(self.name(entry));
            }
        }
        let reason = "the API could read it as a name that begins with oauth_";
        match names.is_empty() {
            true => Ok(()),
            false => Err(ShapeError::Rejected { names, reason }),
        }
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
