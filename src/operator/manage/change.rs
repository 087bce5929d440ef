//! Changes of one record, each in the transaction that has read the record.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

use super::{error::ManageError, view};
use crate::{
    records::values::use_cases::{Guard, Updated},
    telemetry::audit::changed_value,
};

/// A change in the store: `change` says why a record is not changed, and that is returned.
pub(super) struct RecordChange<'a, T> {
    guard: Guard<'a, T>,
    change: &'a (dyn Fn(&mut T) -> Result<(), ManageError> + Sync),
    refused: Mutex<Option<ManageError>>,
    /// The names of the members that differ after the change.
    pub(super) members: Mutex<Vec<String>>,
    /// Each of them with its value before and after.
    changes: Mutex<String>,
}

impl<'a, T: Serialize> RecordChange<'a, T> {
    pub(super) fn new(
        guard: Guard<'a, T>,
        change: &'a (dyn Fn(&mut T) -> Result<(), ManageError> + Sync),
    ) -> Self {
        Self {
            guard,
            change,
            refused: Mutex::new(None),
            members: Mutex::default(),
            changes: Mutex::default(),
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
        let after = view::members(record).into_iter();
        let differ = after.filter(|(name, value)| before.get(name) != Some(value));
        let differ = Vec::from_iter(differ);
        let changes = differ.iter().map(|(name, value)| {
            let before = before.get(name).unwrap_or(&Value::Null);
            changed_value(name, before, value)
        });
        *self.changes.lock() = Vec::from_iter(changes).join("; ");
        *self.members.lock() = differ.into_iter().map(|(name, _)| name).collect();
        let refused = result.err();
        let is_wanted = refused.is_none();
        *self.refused.lock() = refused;
        is_wanted
    }

    /// The names of the members that differ after the change, and their values before and after.
    pub(super) fn differences(&self) -> (Vec<String>, String) {
        (self.members.lock().clone(), self.changes.lock().clone())
    }

    /// The record after the change, or why it was not changed: `unknown`, what `change` said, or `otherwise`.
    pub(super) fn result(
        self,
        updated: Updated<T>,
        unknown: impl FnOnce() -> ManageError,
        otherwise: impl FnOnce() -> ManageError,
    ) -> Result<T, ManageError> {
        match updated {
            Updated::Updated(record) => Ok(*record),
            Updated::Unknown => Err(unknown()),
            Updated::Refused => Err(self.refused.into_inner().unwrap_or_else(otherwise)),
        }
    }
}

/// Notes whether a guard has found another record than the change is for.
pub(super) struct WatchedGuard<'a, T> {
    guard: Guard<'a, T>,
    is_stale: AtomicBool,
}

impl<'a, T> WatchedGuard<'a, T> {
    pub(super) const fn new(guard: Guard<'a, T>) -> Self {
        Self {
            guard,
            is_stale: AtomicBool::new(false),
        }
    }

    pub(super) fn check(&self, record: &T) -> bool {
        let passes = self.guard.is_none_or(|guard| guard(record));
        self.is_stale.store(!passes, Ordering::Relaxed);
        passes
    }

    /// That the record is another one, if that is why nothing was changed.
    pub(super) fn stale(&self) -> Option<ManageError> {
        let is_stale = self.is_stale.load(Ordering::Relaxed);
        is_stale.then_some(ManageError::Stale)
    }
}
