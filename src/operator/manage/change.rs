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

/// Changes a record by `update`, which calls what it is given in the transaction that has read the record; `change` says why a
/// record is not changed. Returns the record after the change; `None`: there is no such record.
///
/// # Errors
/// [`ManageError::Stale`], if the guard rejects the record; what `change` says; `otherwise`, if the store does not take the
/// record after the change. The store fails.
pub(super) async fn changed<T: Serialize>(
    guard: Guard<'_, T>,
    change: &(dyn Fn(&mut T) -> Result<(), ManageError> + Sync),
    update: impl AsyncFnOnce(&(dyn Fn(&mut T) -> bool + Sync)) -> Result<Updated<T>, StoreError>,
    otherwise: impl FnOnce() -> ManageError,
) -> Result<Option<(T, Differences)>, ManageError> {
    let outcome = Mutex::new(Ok(Differences::default()));
    let apply = |record: &mut T| {
        let before = view::members(record);
        let result = match guard.is_none_or(|guard| guard(record)) {
            true => change(record),
            false => Err(ManageError::Stale),
        };
        let mut after = view::members(record);
        after.retain(|name, value| before.get(name) != Some(value));
        let changes = after.iter().map(|(name, value)| {
            let before = before.get(name).unwrap_or(&Value::Null);
            changed_value(name, before, value)
        });
        let changes = Vec::from_iter(changes).join("; ");
        let is_wanted = result.is_ok();
        let names = after.into_iter().map(|(name, _)| name);
        *outcome.lock() = result.map(|()| (names.collect(), changes));
        is_wanted
    };
    let updated = update(&apply).await?;
    let outcome = outcome.into_inner();
    match updated {
        Updated::Updated(record) => Ok(Some((*record, outcome?))),
        Updated::Unknown => Ok(None),
        Updated::Refused => Err(outcome.err().unwrap_or_else(otherwise)),
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
