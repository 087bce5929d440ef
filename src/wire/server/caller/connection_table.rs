//! The connections of a worker, and the choice of one to close when another one comes and there is no room.
//!
//! A caller can hold a connection at hardly any cost: with a part of a head or a body, a response that it does not read, an end
//! that it does not answer, or nothing. When a listener is full, such a connection is closed. First comes one that has had its
//! last response, then those on which no call has proved its sender, and last the idle ones of proved callers; each time
//! that of the network that has most, and of these the one that has waited longest. A call that is proved, or permitted and
//! does not wait, is never broken off.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    future::poll_fn,
    pin::Pin,
    rc::{Rc, Weak},
    task::{Poll, Waker},
    time::Duration,
};

use tokio::time::Instant;

use crate::wire::server::bounds::{Bounds, Caller, Slot};

/// The most connections that are considered at once.
const CONSIDERED: usize = 128;

/// The connections that one worker serves under the same [`Bounds`].
#[derive(Default)]
pub struct ConnectionTable(RefCell<Entries>);

#[derive(Default)]
struct Entries {
    by_number: BTreeMap<u64, Rc<ConnectionEntry>>,
    next: u64,
    /// The number at which the next search begins.
    hand: u64,
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::wire::server) enum Stage {
    /// The end of its caller, after the last response.
    Lingering,
    /// The rest of a head.
    Arriving,
    /// The first byte of a first request.
    #[default]
    Silent,
    /// Something that a call without proof waits for: its body, the store, or a caller who reads the response.
    Waiting,
    /// The next request.
    Idle,
}

impl Stage {
    /// The time for which it is spared if its network has at most as many connections as that of the new one: what it waits for
    /// may be on its way, and many callers send the next request soon.
    const fn spared(self) -> Duration {
        match self {
            Self::Lingering | Self::Arriving => Duration::ZERO,
            Self::Silent | Self::Waiting => Duration::from_secs(1),
            Self::Idle => Duration::from_secs(5),
        }
    }
}

/// What is done for a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::wire::server) enum Work {
    /// Nothing: it waits, is over, or there is none.
    #[default]
    Rests,
    /// It is decided on.
    Decides,
    /// It is permitted, and not broken off.
    Works,
}

/// A connection as its worker sees it. By default it is one that is never closed for others.
#[derive(Default)]
pub struct ConnectionEntry {
    connections: Weak<ConnectionTable>,
    number: u64,
    stage: Cell<Stage>,
    /// The time since which it is in its stage.
    since: Cell<Option<Instant>>,
    /// The number of its requests for which each [`Work`] is done.
    work: [Cell<usize>; 3],
    /// One of its calls has proved its sender.
    is_proved: Cell<bool>,
    /// The caller, once it is known.
    caller: Cell<Option<Caller>>,
    /// `None` once it is evicted.
    slot: Cell<Option<Slot>>,
    is_evicted: Cell<bool>,
    /// Wakes the task that serves it.
    waker: RefCell<Option<Waker>>,
}

/// The connection for which another one is closed.
#[derive(Clone, Copy)]
pub(in crate::wire::server) enum Newcomer {
    /// One more of this caller, which has its share: it replaces another one of the same caller.
    WithShare(Caller),
    /// One of this caller, if it is known.
    Other(Option<Caller>),
}

impl ConnectionTable {
    /// Adds a new connection with its slot.
    pub(in crate::wire::server) fn add(
        self: &Rc<Self>,
        slot: Slot,
        caller: Option<Caller>,
    ) -> ConnectionGuard {
        let mut entries = self.0.borrow_mut();
        let number = entries.next;
        entries.next += 1;
        let entry = Rc::new(ConnectionEntry {
            connections: Rc::downgrade(self),
            number,
            since: Cell::new(Some(Instant::now())),
            caller: Cell::new(caller),
            slot: Cell::new(Some(slot)),
            ..ConnectionEntry::default()
        });
        entries.by_number.insert(number, Rc::clone(&entry));
        ConnectionGuard(entry)
    }

    /// Closes a connection that waits, and returns its slot.
    pub(in crate::wire::server) fn evict(
        &self,
        newcomer: Newcomer,
        bounds: &Bounds,
    ) -> Option<Slot> {
        let mut entries = self.0.borrow_mut();
        let entry = entries.candidate(newcomer, bounds)?;
        entries.by_number.remove(&entry.number);
        drop(entries);
        entry.is_evicted.set(true);
        if let Some(waker) = entry.waker.take() {
            waker.wake();
        }
        entry.slot.take()
    }
}

impl Entries {
    /// The connection to close.
    fn candidate(&mut self, newcomer: Newcomer, bounds: &Bounds) -> Option<Rc<ConnectionEntry>> {
        let now = Instant::now();
        let from_hand = self.by_number.range(self.hand..);
        let considered = from_hand.chain(self.by_number.range(..self.hand));
        let considered = Vec::from_iter(considered.take(CONSIDERED));
        let (last, _) = considered.last()?;
        self.hand = **last + 1;
        bounds.with_counts(|count| {
            let count = |caller: Caller| match caller.is_trusted {
                true => 0,
                false => count(caller.network),
            };
            let rank = |entry: &ConnectionEntry| {
                let waited = entry.waited(now)?;
                let (caller, stage) = (entry.caller.get(), entry.stage());
                let of_caller = caller.map_or(0, count);
                let is_displaced = match newcomer {
                    Newcomer::WithShare(own) if caller != Some(own) => return None,
                    Newcomer::WithShare(_) | Newcomer::Other(None) => false,
                    Newcomer::Other(Some(other)) => of_caller > count(other) + 1,
                };
                let is_proved = entry.is_proved.get();
                let is_spared = waited < stage.spared() && (is_proved || !is_displaced);
                let is_first = stage == Stage::Lingering;
                (!is_spared).then_some((is_first, !is_proved, of_caller, waited))
            };
            let ranked = considered.iter();
            let ranked = ranked.filter_map(|(_, entry)| Some((rank(entry)?, entry)));
            // The first of equals.
            let first = ranked.rev().max_by_key(|(rank, _)| *rank);
            first.map(|(_, entry)| Rc::clone(entry))
        })
    }
}

impl ConnectionEntry {
    /// What it waits for; a decision is waited for too.
    fn stage(&self) -> Stage {
        match self.work[Work::Decides as usize].get() {
            0 => self.stage.get(),
            _ => Stage::Waiting,
        }
    }

    /// Is in that stage since then, where nothing is done for a request.
    pub(in crate::wire::server) fn enter(&self, stage: Stage, since: Instant) {
        self.stage.set(stage);
        self.since.set(Some(since));
    }

    /// The work for one of its requests changes.
    pub(in crate::wire::server) fn change_work(&self, before: Work, after: Work) {
        let [before, after] = [before, after].map(|work| &self.work[work as usize]);
        before.set(before.get().saturating_sub(1));
        after.set(after.get() + 1);
    }

    /// A call has proved its sender.
    pub(in crate::wire::server) fn prove(&self) {
        self.is_proved.set(true);
    }

    /// The time for which it has waited, none while a request is decided on; `None` while one is worked on.
    fn waited(&self, now: Instant) -> Option<Duration> {
        let since = self.since.get()?;
        let [_, deciding, working] = self.work.each_ref().map(Cell::get);
        match (deciding, working) {
            (0, 0) => Some(now.saturating_duration_since(since)),
            (_, 0) => Some(Duration::ZERO),
            _ => None,
        }
    }
}

/// A connection that is being served; dropping it gives its slot back.
pub(in crate::wire::server) struct ConnectionGuard(pub(in crate::wire::server) Rc<ConnectionEntry>);

impl ConnectionGuard {
    /// Counts the connection for its caller, now that it is known, which replaces another one of that caller if it has its
    /// share. Returns false if there is no room for one more.
    pub(in crate::wire::server) fn locate(
        &self,
        connections: &ConnectionTable,
        bounds: &Bounds,
        caller: Caller,
    ) -> bool {
        let Some(mut slot) = self.0.slot.take() else {
            return false;
        };
        if !slot.count_for(caller) {
            match connections.evict(Newcomer::WithShare(caller), bounds) {
                Some(replaced) => slot = replaced,
                None => {
                    self.0.slot.set(Some(slot));
                    return false;
                }
            }
        }
        self.0.caller.set(Some(caller));
        self.0.slot.set(Some(slot));
        true
    }

    /// Runs `work`, which serves the connection, to its end or until the connection is evicted. Returns whether it was evicted.
    pub(in crate::wire::server) fn unless_evicted(
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
            let mut entries = connections.0.borrow_mut();
            entries.by_number.remove(&self.0.number);
        }
        drop(self.0.slot.take());
    }
}

#[cfg(test)]
mod tests {
    use std::{net::IpAddr, sync::Arc};

    use tokio::time::advance;

    use super::*;

    struct Setup {
        connections: Rc<ConnectionTable>,
        bounds: Arc<Bounds>,
    }

    fn caller(last: u8) -> Caller {
        Caller::new(IpAddr::from([10, 0, 0, last]), false)
    }

    impl Setup {
        fn new(limit: usize) -> Self {
            Self {
                connections: Rc::default(),
                bounds: Arc::new(Bounds::new(limit, None)),
            }
        }

        /// A connection of the caller `10.0.0.{last}`.
        fn open(&self, last: u8) -> ConnectionGuard {
            let slot = self.bounds.enter(Some(caller(last)));
            let slot = slot.expect("there is room");
            self.connections.add(slot, Some(caller(last)))
        }

        /// The name of the connection that is closed for another one.
        fn evicted<'s>(
            &self,
            newcomer: Newcomer,
            among: &[(&'s str, &ConnectionGuard)],
        ) -> Option<&'s str> {
            let open = |(_, guard): &&(_, &ConnectionGuard)| !guard.0.is_evicted.get();
            let before: Vec<_> = among.iter().filter(open).collect();
            drop(self.connections.evict(newcomer, &self.bounds)?);
            let mut closed = before.into_iter().filter(|one| !open(one));
            let (name, _) = closed.next().expect("a connection of these");
            assert!(closed.next().is_none());
            Some(name)
        }
    }

    fn now(guard: &ConnectionGuard, stage: Stage) {
        guard.0.enter(stage, Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn ended_connection_closes_first_a_proved_last_a_request_never() {
        let setup = Setup::new(20);
        let [idle, longer_idle, serving, silent, second, first, ended] =
            [1, 2, 3, 4, 5, 6, 7].map(|caller| setup.open(caller));
        for served in [&idle, &longer_idle, &serving] {
            served.0.prove();
        }
        serving.0.change_work(Work::Rests, Work::Works);
        now(&first, Stage::Arriving);
        now(&longer_idle, Stage::Idle);
        advance(Duration::from_millis(1)).await;
        now(&second, Stage::Arriving);
        now(&idle, Stage::Idle);
        now(&ended, Stage::Lingering);
        let among = [
            ("idle", &idle),
            ("longer idle", &longer_idle),
            ("serving", &serving),
            ("silent", &silent),
            ("second", &second),
            ("first", &first),
            ("ended", &ended),
        ];
        let evicted = || setup.evicted(Newcomer::Other(Some(caller(99))), &among);
        assert_eq!(evicted(), Some("ended"));
        assert_eq!(evicted(), Some("first"));
        assert_eq!(evicted(), Some("second"));
        assert_eq!(evicted(), None, "the others are new");
        advance(Stage::Silent.spared()).await;
        assert_eq!(evicted(), Some("silent"));
        assert_eq!(evicted(), None);
        advance(Stage::Idle.spared()).await;
        assert_eq!(evicted(), Some("longer idle"));
        // A next head in parts.
        now(&idle, Stage::Arriving);
        assert_eq!(evicted(), Some("idle"));
        assert_eq!(evicted(), None);
        assert_eq!(setup.bounds.open(), 7 - 6);
        drop(serving);
        assert_eq!(setup.bounds.open(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn largest_network_makes_room_at_once_for_a_smaller_one() {
        let setup = Setup::new(10);
        let [slow, one, two, three] = [1, 2, 2, 2].map(|caller| setup.open(caller));
        advance(Duration::from_millis(10)).await;
        now(&slow, Stage::Waiting);
        for (guard, stage) in [(&one, Stage::Waiting), (&two, Stage::Idle)] {
            now(guard, stage);
            advance(Duration::from_millis(1)).await;
        }
        three.0.prove();
        now(&three, Stage::Idle);
        let among = [
            ("slow", &slow),
            ("one", &one),
            ("two", &two),
            ("three", &three),
        ];
        let evicted = |newcomer| setup.evicted(Newcomer::Other(newcomer), &among);
        assert_eq!(evicted(None), None, "all are spared");
        assert_eq!(evicted(Some(caller(2))), None);
        assert_eq!(evicted(Some(caller(3))), Some("one"));
        assert_eq!(evicted(Some(caller(3))), Some("two"));
        assert_eq!(evicted(Some(caller(3))), None, "it was proved");
        advance(Stage::Waiting.spared()).await;
        assert_eq!(evicted(Some(caller(3))), Some("slow"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_with_its_share_replaces_its_own_connections() {
        let setup = Setup::new(10);
        let [longest, one, other] = [1, 2, 2].map(|caller| setup.open(caller));
        for guard in [&longest, &one, &other] {
            now(guard, Stage::Arriving);
            advance(Duration::from_millis(1)).await;
        }
        let among = [("longest", &longest), ("one", &one), ("other", &other)];
        let evicted = || setup.evicted(Newcomer::WithShare(caller(2)), &among);
        assert_eq!(evicted(), Some("one"));
        other.0.change_work(Work::Rests, Work::Works);
        assert_eq!(evicted(), None);
        other.0.change_work(Work::Works, Work::Rests);
        assert_eq!(evicted(), Some("other"));
    }
}
