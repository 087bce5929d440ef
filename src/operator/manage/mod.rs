//! The use cases of operators with consumers, users and access tokens: the rules, the audit record, and the view of each record.
//!
//! [`Operator`] has one function for each thing that an operator can change. The command line, the admin API and the console
//! are fronts of it: they read arguments, call a function and show a [`view`]. A function that changes one record takes a
//! [`Guard`](crate::records::values::use_cases::Guard), which looks at the record in the transaction of the change.

pub mod audit;
mod change;
mod consumers;
mod error;
mod input;
mod record_fields;
pub mod setting;
mod tokens;
pub(crate) mod transfer;
mod users;
pub mod view;

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use parking_lot::Mutex;

pub use self::{
    audit::Tool,
    consumers::{
        SECRET_ROTATED, check_secret,
        lti_key_sign::{KeySignError, LaunchClaims},
        new_consumer, patched,
    },
    error::ManageError,
    input::{InvalidInput, distinct_members, members, read},
    record_fields::{
        ASKED_MEMBERS, CONSUMER_FIELDS, FieldKind, RecordField, USER_FIELDS, check_items,
        check_members,
    },
    users::new_user,
};
pub use crate::telemetry::audit::Actor;
use crate::{
    base::clock::{Clock, UnixTime},
    records::{credentials::feed::ChangeHub, store::Store, values::StoreError},
    request::verify::settings::{SignatureSettings, TokenSettings},
};

/// The records of a store as operators see them.
pub struct Management {
    /// The records. Fronts read them here; changes go through [`Operator`], which records them.
    pub store: Arc<Store>,
    clock: Clock,
    signature: SignatureSettings,
    tokens: TokenSettings,
    feed: Option<Arc<ChangeHub>>,
    unrecorded: Mutex<Option<StoreError>>,
    has_changed: AtomicBool,
}

impl Management {
    /// Manages the records of `store`. `feed`: this process follows the store's feed, which logs the audit records, its own
    /// among them, and makes changes take effect here at once.
    pub fn new(
        store: Arc<Store>,
        clock: Clock,
        (signature, tokens): (SignatureSettings, TokenSettings),
        feed: Option<Arc<ChangeHub>>,
    ) -> Self {
        Self {
            store,
            clock,
            signature,
            tokens,
            feed,
            unrecorded: Mutex::default(),
            has_changed: AtomicBool::new(false),
        }
    }

    /// Changes the records as this actor.
    pub const fn operator(&self, actor: Actor) -> Operator<'_> {
        Operator {
            manage: self,
            actor,
        }
    }

    /// The latest last use of a record that is unused for this long.
    pub fn unused_since(&self, unused_for: Option<Duration>) -> Option<UnixTime> {
        unused_for.map(|duration| self.clock.now().before(duration))
    }
}

/// Everything that an operator can do with the records of a store. Each change has an audit record with the actor.
pub struct Operator<'m> {
    manage: &'m Management,
    actor: Actor,
}
