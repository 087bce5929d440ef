//! One read of the store for all who wait for the same record.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::OnceCell;

use super::epoch::Epoch;

/// The reads under way, by key.
pub(super) struct Flights<T>(Mutex<ByKey<T>>);

type ByKey<T> = HashMap<Arc<[u8]>, Arc<Flight<T>>>;

/// One read.
struct Flight<T> {
    /// The record's state from before the read.
    epoch: Epoch,
    outcome: OnceCell<T>,
}

/// A part in a read. Who gives up leaves the read to the others; the last one out takes it off the list.
pub(super) struct Passenger<'a, T> {
    flights: &'a Flights<T>,
    key: Arc<[u8]>,
    flight: Arc<Flight<T>>,
}

impl<T: Clone> Flights<T> {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Joins the read of `key` that is under way, or begins one. A read from before the last change is not joined.
    pub(super) fn join(&self, key: &[u8], epoch: Epoch) -> Passenger<'_, T> {
        let mut flights = self.lock();
        let (key, flight) = match flights.get_key_value(key) {
            Some((key, flight)) if flight.epoch == epoch => (Arc::clone(key), Arc::clone(flight)),
            _ => {
                let outcome = OnceCell::new();
                let (key, flight) = (Arc::from(key), Arc::new(Flight { epoch, outcome }));
                flights.insert(Arc::clone(&key), Arc::clone(&flight));
                (key, flight)
            }
        };
        Passenger {
            flights: self,
            key,
            flight,
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }
}

impl<T> Flights<T> {
    fn lock(&self) -> MutexGuard<'_, ByKey<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> Passenger<'_, T> {
    /// The key, to keep.
    pub(super) fn key(&self) -> Arc<[u8]> {
        Arc::clone(&self.key)
    }

    /// Waits for the read, or does it if nobody does.
    ///
    /// # Cancel safety
    /// If the future that reads is dropped, one that waits begins anew.
    pub(super) async fn outcome<F: Future<Output = T>>(&self, read: impl FnOnce() -> F) -> T {
        let read = async {
            let outcome = read().await;
            self.land();
            outcome
        };
        self.flight.outcome.get_or_init(|| read).await.clone()
    }

    /// Takes the read off the list: it is over, and who comes now finds its outcome in the cache or reads anew.
    fn land(&self) {
        self.leave(|_| true);
    }
}

impl<T> Passenger<'_, T> {
    /// Takes the read off the list, if it is on it and `ends` says so.
    fn leave(&self, ends: impl Fn(&Arc<Flight<T>>) -> bool) {
        let mut flights = self.flights.lock();
        let listed = flights.get(&self.key);
        if listed.is_some_and(|listed| Arc::ptr_eq(listed, &self.flight) && ends(listed)) {
            flights.remove(&self.key);
        }
    }
}

impl<T> Drop for Passenger<'_, T> {
    fn drop(&mut self) {
        // Two hold it: the list and this one. Nobody can join meanwhile, for the list is locked.
        self.leave(|flight| Arc::strong_count(flight) <= 2);
    }
}
