//! Rules for all names that begin with `oauth_`, known or not.

use super::Parameters;
use crate::oauth::{
    name::{ParameterNames, ProtocolParameter},
    shape::{Place, Reason, ShapeError},
};

impl Parameters {
    /// Checks that everything was read, that no `oauth_` name occurs twice, that all of them are in one place, and that none
    /// but `oauth_token` is empty.
    pub(in crate::oauth) fn check_oauth_names(&self) -> Result<(), ShapeError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        if self.repeated != 0 || self.unknown_oauth {
            reject(self.repeated_names(), Reason::Repeated)?;
        }
        if !matches!(self.oauth_places.count_ones(), 0 | 1) {
            reject(self.scattered_names(), Reason::Scattered)?;
        }
        if self.empty_oauth {
            reject(self.empty_names(), Reason::Empty)?;
        }
        Ok(())
    }

    #[cold]
    fn repeated_names(&self) -> ParameterNames {
        let mut names: ParameterNames = ProtocolParameter::ALL
            .into_iter()
            .filter(|parameter| self.repeated & parameter.bit() != 0)
            .collect();
        // Equal names are next to each other in the order.
        for pair in self.order.windows(2) {
            let [left, right] = [pair[0], pair[1]].map(|rank| &self.entries[rank.entry]);
            if left.oauth && self.name(left) == self.name(right) {
                names.add_unknown(self.name(left));
            }
        }
        names
    }

    /// The names outside the place that §3.5 prefers among those where some stand: header, then body, then query.
    #[cold]
    fn scattered_names(&self) -> ParameterNames {
        let preferred = [Place::Header, Place::Body, Place::Query]
            .into_iter()
            .find(|place| self.oauth_places & place.bit() != 0);
        let mut names = ParameterNames::default();
        for entry in self
            .entries
            .iter()
            .filter(|entry| entry.oauth && Some(entry.place) != preferred)
        {
            names.add_unknown(self.name(entry));
        }
        names
    }

    #[cold]
    fn empty_names(&self) -> ParameterNames {
        let mut names = ParameterNames::default();
        for entry in self
            .entries
            .iter()
            .filter(|entry| entry.oauth && self.value(entry).is_empty())
        {
            if self.name(entry) != ProtocolParameter::Token.as_str().as_bytes() {
                names.add_unknown(self.name(entry));
            }
        }
        names
    }
}

fn reject(names: ParameterNames, reason: Reason) -> Result<(), ShapeError> {
    if names.is_empty() {
        return Ok(());
    }
    Err(ShapeError::Rejected { names, reason })
}
