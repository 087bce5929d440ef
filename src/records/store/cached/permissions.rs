//! Lists of permissions, each kept once: most consumers and tokens have one of a few.

use std::{collections::HashSet, sync::Arc};

use parking_lot::Mutex;

use crate::base::names::Permission;

/// The most lists that are shared; beyond that, each entry has its own.
const MOST: usize = 1024;

#[derive(Default)]
pub(super) struct PermissionLists(Mutex<HashSet<Arc<[Permission]>>>);

impl PermissionLists {
    /// The one list with this content.
    pub(super) fn shared(&self, list: &[Permission]) -> Arc<[Permission]> {
        let mut lists = self.0.lock();
        if let Some(known) = lists.get(list) {
            return Arc::clone(known);
        }
        if lists.len() >= MOST {
            lists.retain(|list| Arc::strong_count(list) > 1);
        }
        let list: Arc<[Permission]> = list.into();
        if lists.len() < MOST {
            lists.insert(Arc::clone(&list));
        }
        list
    }
}
