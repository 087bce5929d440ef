//! The live configuration as one worker uses it.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{Arc, atomic::Ordering},
};

use super::{Live, Served, Shared};
use crate::{
    request::forward::pool::Pool,
    telemetry::metrics::{KnownOperation, Metrics},
    wire::server::caller::stream::Limits,
};

/// The live configuration as one worker uses it.
pub struct Current {
    /// What all workers share.
    pub shared: Arc<Shared>,
    /// The configuration of requests.
    pub live: Arc<Live>,
    /// Its bounds and deadlines, which the connections of the worker share.
    pub(crate) limits: Rc<Limits>,
    /// `None` where there is no API.
    pub(crate) pool: Option<Rc<Pool>>,
    /// The counters of its operations, by their index.
    operations: RefCell<Vec<KnownOperation>>,
}

impl Current {
    /// The configuration of now; connections to the API stay if `before` opened them by the same rules.
    pub(crate) fn load(shared: &Arc<Shared>, before: Option<&Self>) -> (u64, Rc<Self>) {
        let generation = shared.generation.load(Ordering::Acquire);
        let live = shared.live.load_full();
        let pool = match before {
            Some(before) if before.live.upstream == live.upstream => before.pool.clone(),
            _ => {
                let params = live.upstream.clone();
                params.map(|params| Rc::new(Pool::new(params)))
            }
        };
        let limits = Rc::new(live.limits.clone());
        let listed = live.authorizer.operations.labels().len();
        let operations = (0..listed).map(|_| KnownOperation::default());
        let current = Self {
            shared: Arc::clone(shared),
            operations: RefCell::new(operations.collect()),
            live,
            limits,
            pool,
        };
        (generation, Rc::new(current))
    }

    /// Counts a request by its operation.
    pub(crate) fn count_operation(&self, metrics: &Metrics, operation: Served, status: u16) {
        let label = operation.label(&self.live.authorizer.operations);
        let mut known = self.operations.borrow_mut();
        let known = match operation {
            Served::Operation(index) => known.get_mut(index),
            _ => None,
        };
        let mut unknown = KnownOperation::default();
        metrics.operation(label, status, known.unwrap_or(&mut unknown));
    }
}
