//! Lists of permissions, each kept once with the value of the field that the API gets: most consumers and tokens have one of a few.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    ops::Deref,
    sync::Arc,
};

use http::HeaderValue;
use parking_lot::Mutex;

use crate::base::names::Permission;

/// The most lists that are shared; beyond that, each entry has its own.
const MOST: usize = 1024;

/// Permissions, and the value of the field that has them.
#[derive(Debug)]
pub struct PermissionList {
    list: Arc<[Permission]>,
    value: Option<HeaderValue>,
}

impl PermissionList {
    /// A list of its own.
    pub(super) fn new(list: &[Permission]) -> Self {
        Self::with_value(list, HeaderValue::try_from(joined(list)).ok())
    }

    fn with_value(list: &[Permission], value: Option<HeaderValue>) -> Self {
        let list = list.into();
        Self { list, value }
    }

    /// The value of a field, separated by spaces; `None` if it is not valid there.
    pub(super) const fn value(&self) -> Option<&HeaderValue> {
        self.value.as_ref()
    }
}

impl Deref for PermissionList {
    type Target = [Permission];

    fn deref(&self) -> &[Permission] {
        &self.list
    }
}

fn joined(list: &[Permission]) -> String {
    let texts: Vec<&str> = list.iter().map(Permission::as_str).collect();
    texts.join(" ")
}

/// The permissions of a call with a token: those that its consumer still has.
pub(super) fn granted<'t>(
    token: &'t [Permission],
    consumer: &[Permission],
) -> Cow<'t, [Permission]> {
    let is_granted = |permission: &&Permission| consumer.contains(permission);
    match token.iter().all(|permission| is_granted(&permission)) {
        true => Cow::Borrowed(token),
        false => token.iter().filter(is_granted).cloned().collect(),
    }
}

#[derive(Default)]
pub(super) struct PermissionLists(Mutex<Lists>);

#[derive(Default)]
struct Lists {
    shared: HashMap<Arc<[Permission]>, Arc<PermissionList>>,
    /// The values of lists that are or were shared.
    values: HashSet<&'static str>,
}

impl PermissionLists {
    /// The one list with this content.
    pub(super) fn shared(&self, list: &[Permission]) -> Arc<PermissionList> {
        let Lists { shared, values } = &mut *self.0.lock();
        if let Some(known) = shared.get(list) {
            return Arc::clone(known);
        }
        if shared.len() >= MOST {
            shared.retain(|_, list| Arc::strong_count(list) > 1);
        }
        let made = match permanent(values, joined(list)) {
            Some(value) => PermissionList::with_value(list, Some(value)),
            None => PermissionList::new(list),
        };
        let made = Arc::new(made);
        if shared.len() < MOST {
            shared.insert(Arc::clone(&made.list), Arc::clone(&made));
        }
        made
    }
}

/// A value that is never freed, of which there are at most [`MOST`]. Workers clone the value of a shared list all the time: this one has
/// no count of its users that they would all write.
fn permanent(values: &mut HashSet<&'static str>, text: String) -> Option<HeaderValue> {
    let known = match values.get(&*text) {
        Some(known) => known,
        None if values.len() < MOST => {
            HeaderValue::from_str(&text).ok()?;
            // Without the room that is not used.
            let kept: &'static str = Box::leak(text.into_boxed_str());
            values.insert(kept);
            kept
        }
        None => return None,
    };
    Some(HeaderValue::from_static(known))
}
