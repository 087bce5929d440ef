//! Changes of one record, each in the transaction that has read the record.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

use super::{error::ManageError, view};
use crate::{
    records::values::{
        StoreError,
        use_cases::{Guard, Updated},
    },
    telemetry::audit::changed_value,
};

/// The names of the members that differ after a change, and each of them with its value before and after.
pub(super) type Differences = (Vec<String>, String);

/// A change in the store: `change` says why a record is not changed, and that is returned.
pub(super) struct RecordChange<'a, T> {
    guard: Guard<'a, T>,
    change: &'a (dyn Fn(&mut T) -> Result<(), ManageError> + Sync),
    outcome: Mutex<Result<Differences, ManageError>>,
}

impl<'a, T: Serialize> RecordChange<'a, T> {
    pub(super) fn new(
        guard: Guard<'a, T>,
        change: &'a (dyn Fn(&mut T) -> Result<(), ManageError> + Sync),
    ) -> Self {
        Self {
            guard,
            change,
            outcome: Mutex::new(Ok(Differences::default())),
        }
    }

    /// Changes the record in the transaction; `false`: it is not wanted.
    pub(super) fn apply(&self, record: &mut T) -> bool {
        let is_stale = self.guard.is_some_and(|guard| !guard(record));
        let before = view::members(record);
        let result = match is_stale {
            true => Err(ManageError::Stale),
            false => (self.change)(record),
        };
        let mut after = view::members(record);
        after.retain(|name, value| before.get(name) != Some(value));
        let changes = after.iter().map(|(name, value)| {
            let before = before.get(name).unwrap_or(&Value::Null);
            changed_value(name, before, value)
        });
        let changes = Vec::from_iter(changes).join("; ");
        let outcome = result.map(|()| (after.into_iter().map(|(name, _)| name).collect(), changes));
        let is_wanted = outcome.is_ok();
        *self.outcome.lock() = outcome;
        is_wanted
    }

    /// The record after the change, or why it was not changed: `unknown`, what `change` said, or `otherwise`.
    pub(super) fn result(
        self,
        updated: Updated<T>,
        unknown: impl FnOnce() -> ManageError,
        otherwise: impl FnOnce() -> ManageError,
    ) -> Result<(T, Differences), ManageError> {
        let outcome = self.outcome.into_inner();
        match updated {
            Updated::Updated(record) => Ok((*record, outcome?)),
            Updated::Unknown => Err(unknown()),
            Updated::Refused => Err(outcome.err().unwrap_or_else(otherwise)),
        }
    }
}

/// Makes a change for which the record has to pass `guard`; `false`: there is no such record.
///
/// # Errors
/// [`ManageError::Stale`], if the guard rejects the record. The store fails.
pub(super) async fn guarded<T>(
    guard: Guard<'_, T>,
    change: impl AsyncFnOnce(Guard<'_, T>) -> Result<bool, StoreError>,
) -> Result<bool, ManageError> {
    let is_stale = AtomicBool::new(false);
    let check = |record: &T| {
        let passes = guard.is_none_or(|guard| guard(record));
        is_stale.store(!passes, Ordering::Relaxed);
        passes
    };
    match change(Some(&check)).await? {
        false if is_stale.into_inner() => Err(ManageError::Stale),
        is_made => Ok(is_made),
    }
}
