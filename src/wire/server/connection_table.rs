//! The connections of a worker, and the choice of one to close when another one comes and there is no room.
//!
//! A caller can hold a connection without a request at hardly any cost. When a listener is full, such a connection is closed:
//! first the one whose head has been arriving for the longest time, then one that has sent nothing, then an idle one. A
//! request that is being served is never broken off.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    future::poll_fn,
    net::IpAddr,
    pin::Pin,
    rc::{Rc, Weak},
    task::{Poll, Waker},
    time::Duration,
};

use tokio::time::Instant;

use super::bounds::Slot;
use crate::base::peer::network;

/// A new connection is kept for this long: what its caller sends may be on its way.
const SPARED_SILENT: Duration = Duration::from_secs(1);
/// An idle connection is kept for this long after a response: many callers send the next request soon.
const SPARED_IDLE: Duration = Duration::from_secs(5);

/// The most connections of each kind that are considered at once.
const CONSIDERED: usize = 128;

/// The connections that one worker serves under the same [`Bounds`](super::bounds::Bounds).
#[derive(Default)]
pub struct ConnectionTable(RefCell<Lists>);

/// Each connection is in the list of its stage, by the number that it got when it came there.
#[derive(Default)]
struct Lists {
    by_stage: [BTreeMap<u64, Rc<ConnectionEntry>>; 3],
    next: u64,
    /// The number of the served connection at which the next search for an idle one begins.
    hand: u64,
}

/// The stage of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// A part of a head has arrived.
    Arriving = 0,
    /// Nothing of a first request has arrived.
    Silent = 1,
    /// A request is being served, or was served.
    #[default]
    Served = 2,
}

/// A connection as its worker sees it. By default it is one that is never closed for others.
#[derive(Default)]
pub struct ConnectionEntry {
    connections: Weak<ConnectionTable>,
    number: Cell<u64>,
    stage: Cell<Stage>,
    /// The time since which the connection waits for a request, or for the rest of its head; `None`: one is being served.
    waits_since: Cell<Option<Instant>>,
    /// The network of the caller, once it is known.
    caller: Cell<Option<IpAddr>>,
    /// `None` once it is evicted.
    slot: Cell<Option<Slot>>,
    is_evicted: Cell<bool>,
    /// Wakes the task that serves it.
    waker: RefCell<Option<Waker>>,
}

impl ConnectionTable {
    /// Adds a new connection with its slot.
    pub(super) fn add(self: &Rc<Self>, slot: Slot) -> ConnectionGuard {
        let entry = Rc::new(ConnectionEntry {
            connections: Rc::downgrade(self),
            stage: Cell::new(Stage::Silent),
            waits_since: Cell::new(Some(Instant::now())),
            caller: Cell::new(slot.caller()),
            slot: Cell::new(Some(slot)),
            ..ConnectionEntry::default()
        });
        self.0.borrow_mut().add(Rc::clone(&entry));
        ConnectionGuard(entry)
    }

    /// Closes a connection that waits, one of `caller` if it is given, and returns its slot.
    pub(super) fn evict(&self, caller: Option<IpAddr>) -> Option<Slot> {
        let mut lists = self.0.borrow_mut();
        let entry = lists.candidate(caller)?;
        lists.remove(&entry);
        drop(lists);
        entry.is_evicted.set(true);
        if let Some(waker) = entry.waker.take() {
            waker.wake();
        }
        entry.slot.take()
    }

    /// Counts the connection in `slot` for its caller. If that has too many, one of them that waits is closed. Returns false
    /// if none does.
    pub(super) fn count_for(&self, slot: &mut Slot, caller: IpAddr) -> bool {
        if slot.count_for(caller) {
            return true;
        }
        drop(self.evict(Some(network(caller))));
        slot.count_for(caller)
    }
}

impl Lists {
    fn add(&mut self, entry: Rc<ConnectionEntry>) {
        entry.number.set(self.next);
        self.by_stage[entry.stage.get() as usize].insert(self.next, entry);
        self.next += 1;
    }

    fn remove(&mut self, entry: &ConnectionEntry) -> Option<Rc<ConnectionEntry>> {
        self.by_stage[entry.stage.get() as usize].remove(&entry.number.get())
    }

    /// The connection to close.
    fn candidate(&mut self, caller: Option<IpAddr>) -> Option<Rc<ConnectionEntry>> {
        let now = Instant::now();
        let is_of = |entry: &&Rc<ConnectionEntry>| caller.is_none() || entry.caller.get() == caller;
        let waited = |entry: &Rc<ConnectionEntry>, at_least| {
            let since = entry.waits_since.get()?;
            Some(now.duration_since(since)).filter(|waited| *waited >= at_least)
        };
        let [arriving, silent, served] = &self.by_stage;
        let mut arriving = arriving.values().take(CONSIDERED);
        if let Some(entry) = arriving.find(is_of) {
            return Some(Rc::clone(entry));
        }
        let mut silent = silent.values().take(CONSIDERED).filter(is_of);
        if let Some(entry) = silent.find(|entry| waited(entry, SPARED_SILENT).is_some()) {
            return Some(Rc::clone(entry));
        }
        let from_hand = served.range(self.hand..).chain(served.range(..self.hand));
        let considered = from_hand.take(CONSIDERED);
        let considered = considered.inspect(|(number, _)| self.hand = **number + 1);
        let idle = considered.map(|(_, entry)| entry).filter(is_of);
        let idle = idle.filter_map(|entry| Some((waited(entry, SPARED_IDLE)?, entry)));
        let longest = idle.max_by_key(|(waited, _)| *waited);
        longest.map(|(_, entry)| Rc::clone(entry))
    }
}

impl ConnectionEntry {
    /// A head begins to arrive.
    pub(super) fn arrives(&self) {
        self.waits_since.set(Some(Instant::now()));
        self.enter(Stage::Arriving);
    }

    /// A request is being served.
    pub(super) fn serves(&self) {
        self.waits_since.set(None);
        self.enter(Stage::Served);
    }

    /// Waits for another request since then.
    pub(super) fn idles(&self, since: Instant) {
        self.waits_since.set(Some(since));
    }

    fn enter(&self, stage: Stage) {
        if self.stage.get() == stage {
            return;
        }
        let connections = self.connections.upgrade();
        let mut lists = connections
            .as_ref()
            .map(|connections| connections.0.borrow_mut());
        let entry = lists.as_mut().and_then(|lists| lists.remove(self));
        self.stage.set(stage);
        if let (Some(lists), Some(entry)) = (&mut lists, entry) {
            lists.add(entry);
        }
    }
}

/// A connection that is being served; dropping it gives its slot back.
pub(super) struct ConnectionGuard(pub(super) Rc<ConnectionEntry>);

impl ConnectionGuard {
    /// Counts the connection for its caller, now that it is known. Returns false if there is no room for one more.
    pub(super) fn locate(&self, connections: &ConnectionTable, caller: IpAddr) -> bool {
        let Some(mut slot) = self.0.slot.take() else {
            return false;
        };
        let is_counted = connections.count_for(&mut slot, caller);
        self.0.caller.set(slot.caller());
        self.0.slot.set(Some(slot));
        is_counted
    }

    /// Runs `work`, which serves the connection, to its end or until the connection is evicted. Returns whether it was evicted.
    pub(super) fn unless_evicted(
        &self,
        mut work: Pin<&mut impl Future<Output = ()>>,
    ) -> impl Future<Output = bool> {
        poll_fn(move |context| {
            if self.0.is_evicted.get() {
                return Poll::Ready(true);
            }
            // A task has one waker in all its life.
            self.0
                .waker
                .borrow_mut()
                .get_or_insert_with(|| context.waker().clone());
            work.as_mut().poll(context).map(|()| false)
        })
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        if let Some(connections) = self.0.connections.upgrade() {
            connections.0.borrow_mut().remove(&self.0);
        }
        drop(self.0.slot.take());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::advance;

    use super::*;
    use crate::wire::server::bounds::Bounds;

    /// Adds a connection of the caller `10.0.0.{caller}`.
    fn open(
        connections: &Rc<ConnectionTable>,
        bounds: &Arc<Bounds>,
        caller: u8,
    ) -> ConnectionGuard {
        let mut slot = bounds.enter().expect("there is room");
        assert!(slot.count_for(IpAddr::from([10, 0, 0, caller])));
        connections.add(slot)
    }

    fn evicted<'s>(
        connections: &ConnectionTable,
        among: &[(&'s str, &ConnectionGuard)],
    ) -> Option<&'s str> {
        let open = |(_, guard): &&(_, &ConnectionGuard)| !guard.0.is_evicted.get();
        let before: Vec<_> = among.iter().filter(open).collect();
        connections.evict(None)?;
        let mut closed = before.into_iter().filter(|one| !open(one));
        let (name, _) = closed.next().expect("a connection of these");
        assert!(closed.next().is_none());
        Some(name)
    }

    #[tokio::test(start_paused = true)]
    async fn heads_that_arrive_go_first_then_silent_connections_then_idle_ones_and_requests_never()
    {
        let (connections, bounds) = (
            Rc::<ConnectionTable>::default(),
            Arc::new(Bounds::new(10, None)),
        );
        let [idle, longer_idle, serving, silent, second, first] =
            [1, 2, 3, 4, 5, 6].map(|caller| open(&connections, &bounds, caller));
        for served in [&idle, &longer_idle, &serving] {
            served.0.serves();
        }
        first.0.arrives();
        longer_idle.0.idles(Instant::now());
        advance(Duration::from_millis(1)).await;
        second.0.arrives();
        idle.0.idles(Instant::now());
        let among = [
            ("idle", &idle),
            ("longer idle", &longer_idle),
            ("serving", &serving),
            ("silent", &silent),
            ("second", &second),
            ("first", &first),
        ];
        assert_eq!(evicted(&connections, &among), Some("first"));
        assert_eq!(evicted(&connections, &among), Some("second"));
        assert_eq!(evicted(&connections, &among), None, "the others are new");
        advance(SPARED_SILENT).await;
        assert_eq!(evicted(&connections, &among), Some("silent"));
        assert_eq!(evicted(&connections, &among), None);
        advance(SPARED_IDLE).await;
        assert_eq!(evicted(&connections, &among), Some("longer idle"));
        // A next head in parts.
        idle.0.arrives();
        assert_eq!(evicted(&connections, &among), Some("idle"));
        assert_eq!(evicted(&connections, &among), None);
        assert_eq!(bounds.open(), 1);
        drop(serving);
        assert_eq!(bounds.open(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_makes_room_by_its_own_connections() {
        let (connections, bounds) = (
            Rc::<ConnectionTable>::default(),
            Arc::new(Bounds::new(10, Some(2))),
        );
        let longest = open(&connections, &bounds, 1);
        let [one, other] = [2, 2].map(|caller| open(&connections, &bounds, caller));
        for guard in [&longest, &one, &other] {
            guard.0.arrives();
        }
        let mut slot = bounds.enter().expect("there is room");
        assert!(connections.count_for(&mut slot, IpAddr::from([10, 0, 0, 2])));
        let closed = [&longest, &one, &other].map(|guard| guard.0.is_evicted.get());
        assert_eq!(closed, [false, true, false]);
        other.0.serves();
        let mut slot = bounds.enter().expect("there is room");
        assert!(!connections.count_for(&mut slot, IpAddr::from([10, 0, 0, 2])));
    }
}
