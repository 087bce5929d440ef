//! The requests that are being served, of which the process has at most `limits.concurrent_requests`.

use std::{
    cell::Cell,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use crate::telemetry::metrics::per_thread::Counter;

/// A worker borrows one of at least this many parts of all places at once, so that it rarely writes what others read. With
/// fewer places than parts, it borrows and returns each one.
const BLOCKS: usize = 512;
/// The fewest parts for each worker: all workers together keep at most a quarter of the places unused.
const BLOCKS_PER_WORKER: usize = 8;

/// The places of all workers.
#[derive(Debug, Default)]
pub struct Places {
    /// Those that workers have borrowed, at most as many as there are.
    borrowed: AtomicUsize,
    workers: AtomicUsize,
    serving: Counter,
}

impl Places {
    /// The number of requests being served.
    pub fn in_flight(&self) -> u64 {
        self.serving.get()
    }

    /// Borrows `count` places, if so many of `all` are left.
    fn borrow(&self, count: usize, all: usize) -> bool {
        let borrow = |borrowed: usize| Some(borrowed + count).filter(|after| *after <= all);
        self.borrowed.fetch_update(Relaxed, Relaxed, borrow).is_ok()
    }

    fn give_back(&self, count: usize) {
        self.borrowed.fetch_sub(count, Relaxed);
    }

    /// The number of places that a worker borrows at once.
    fn block(&self, limit: usize) -> usize {
        limit / BLOCKS.max(BLOCKS_PER_WORKER * self.workers.load(Relaxed))
    }
}

/// The places that a worker has borrowed.
#[derive(Debug)]
pub(super) struct WorkerPlaces {
    all: Arc<Places>,
    unused: Cell<usize>,
    /// The limit under which the unused places were borrowed.
    limit: Cell<usize>,
}

impl WorkerPlaces {
    /// None of the places yet.
    pub(super) fn new(all: Arc<Places>) -> Rc<Self> {
        all.workers.fetch_add(1, Relaxed);
        let (unused, limit) = (Cell::new(0), Cell::new(0));
        Rc::new(Self { all, unused, limit })
    }

    /// A place for one more request, if fewer than `limit` are served by all workers together. A few places may be unused at
    /// other workers.
    pub(super) fn take(self: &Rc<Self>, limit: usize) -> Option<InFlight> {
        if self.limit.replace(limit) != limit {
            // More places may be borrowed than there are now.
            self.give_back_unused();
        }
        let block = self.all.block(limit);
        let unused = match self.unused.get() {
            0 => {
                let borrow = |count| (count > 0 && self.all.borrow(count, limit)).then_some(count);
                borrow(block).or_else(|| borrow(1))?
            }
            unused => unused,
        };
        self.unused.set(unused - 1);
        self.all.serving.inc();
        Some(InFlight {
            places: Rc::clone(self),
            limit,
            most_unused: 2 * block,
        })
    }

    /// Returns the places that no request has, for the other workers. To be called now and then: an idle worker needs none.
    pub(super) fn give_back_unused(&self) {
        match self.unused.take() {
            0 => {}
            unused => self.all.give_back(unused),
        }
    }
}

impl Drop for WorkerPlaces {
    fn drop(&mut self) {
        self.give_back_unused();
        self.all.workers.fetch_sub(1, Relaxed);
    }
}

/// The place of a request.
#[derive(Debug)]
pub(super) struct InFlight {
    places: Rc<WorkerPlaces>,
    /// The limit when it began.
    limit: usize,
    /// The number of unused places that its worker keeps while the limit is the same.
    most_unused: usize,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let WorkerPlaces { all, unused, limit } = &*self.places;
        let (left, half) = (unused.get() + 1, self.most_unused / 2);
        let kept = match limit.get() == self.limit {
            true if left > self.most_unused => half,
            true => left,
            // More places may be borrowed than there are now.
            false => unused.get(),
        };
        if left > kept {
            all.give_back(left - kept);
        }
        unused.set(kept);
        all.serving.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workers(count: usize) -> (Arc<Places>, Vec<Rc<WorkerPlaces>>) {
        let places = Arc::new(Places::default());
        let workers = (0..count).map(|_| WorkerPlaces::new(Arc::clone(&places)));
        let workers = workers.collect();
        (places, workers)
    }

    #[test]
    fn all_workers_together_have_as_many_as_the_limit() {
        for limit in [1, 2, 7, 511, 512, 10_000] {
            let (places, workers) = workers(3);
            let taken = |served: &mut Vec<InFlight>| {
                let mut all = workers.iter().cycle();
                let mut failures = 0;
                while failures < workers.len() {
                    match all.next().and_then(|worker| worker.take(limit)) {
                        Some(place) => served.push(place),
                        None => failures += 1,
                    }
                    assert!(served.len() <= limit);
                }
            };
            let mut served = Vec::new();
            taken(&mut served);
            assert!(served.len() > limit - limit.min(3 * limit / BLOCKS + 1));
            assert_eq!(places.in_flight(), served.len() as u64);
            // Every place comes back, and can be taken again.
            for _ in 0..3 {
                served.truncate(served.len() / 3);
                taken(&mut served);
                assert_eq!(places.in_flight(), served.len() as u64);
            }
            drop(served);
            assert_eq!(places.in_flight(), 0);
            drop(workers);
            assert_eq!(places.borrowed.load(Relaxed), 0);
        }
    }

    #[test]
    fn an_idle_worker_keeps_a_place_from_nobody_where_there_are_few() {
        let (_, workers) = workers(2);
        for _ in 0..3 {
            let places = [workers[0].take(2), workers[0].take(2)];
            assert!(places.iter().all(Option::is_some));
            assert!(workers[1].take(2).is_none());
            drop(places);
            assert!(workers[1].take(2).is_some());
        }
    }

    #[test]
    fn a_lower_limit_counts_at_once() {
        for (limit, lower) in [(10, 5), (10_000, 64)] {
            let (places, workers) = workers(1);
            let served = Vec::from_iter((0..lower).map_while(|_| workers[0].take(limit)));
            assert_eq!(served.len(), lower);
            assert!(workers[0].take(lower).is_none());
            drop(served);
            assert!(workers[0].take(lower).is_some());
            assert!(places.borrowed.load(Relaxed) <= lower);
        }
    }

    #[test]
    fn requests_that_end_after_the_limit_was_lowered_leave_no_places_above_it() {
        let (places, workers) = workers(2);
        let served = Vec::from_iter((0..400).map_while(|_| workers[0].take(100_000)));
        assert!(workers[0].take(64).is_none());
        drop(served);
        assert!(places.borrowed.load(Relaxed) <= 64);
        let served = Vec::from_iter((0..400).map_while(|_| workers[0].take(64)));
        assert_eq!(served.len(), 64);
    }

    #[test]
    fn an_idle_worker_returns_its_places_so_that_a_lower_limit_rejects_nothing() {
        let (places, workers) = workers(3);
        for worker in &workers {
            drop(worker.take(100_000));
        }
        assert!(places.borrowed.load(Relaxed) > 64);
        workers.iter().for_each(|worker| worker.give_back_unused());
        assert_eq!(places.borrowed.load(Relaxed), 0);
        let served = Vec::from_iter((0..64).map_while(|_| workers[0].take(64)));
        assert_eq!(served.len(), 64);
    }

    #[test]
    fn many_workers_leave_three_quarters_of_the_places_to_one() {
        let limit = 4_000;
        let (_, workers) = workers(100);
        // Each keeps as many as it may.
        for worker in &workers {
            let block = Vec::from_iter((0..20).map_while(|_| worker.take(limit)));
            drop(block);
        }
        let served = Vec::from_iter((0..limit).map_while(|_| workers[0].take(limit)));
        assert!(served.len() >= limit * 3 / 4, "{}", served.len());
    }

    #[test]
    fn a_busy_worker_seldom_writes_what_others_read() {
        let (places, workers) = workers(1);
        let borrowed = || places.borrowed.load(Relaxed);
        let mut changes = 0;
        for _ in 0..100 {
            let mut served = Vec::new();
            for _ in 0..64 {
                let before = borrowed();
                served.extend(workers[0].take(100_000));
                changes += usize::from(borrowed() != before);
            }
            assert_eq!(served.len(), 64);
        }
        assert!(changes <= 100, "{changes}");
    }
}
