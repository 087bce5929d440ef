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
        if let Some((key, flight)) = flights.get_key_value(key)
            && flight.epoch == epoch
        {
            return Passenger {
                flights: self,
                key: Arc::clone(key),
                flight: Arc::clone(flight),
            };
        }
        let key: Arc<[u8]> = key.into();
        let flight = Arc::new(Flight {
            epoch,
            outcome: OnceCell::new(),
        });
        flights.insert(Arc::clone(&key), Arc::clone(&flight));
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
        let mut flights = self.flights.lock();
        if flights
            .get(&self.key)
            .is_some_and(|found| Arc::ptr_eq(found, &self.flight))
        {
            flights.remove(&self.key);
        }
    }
}

impl<T> Drop for Passenger<'_, T> {
    fn drop(&mut self) {
        let mut flights = self.flights.lock();
        let listed = flights
            .get(&self.key)
            .is_some_and(|found| Arc::ptr_eq(found, &self.flight));
        // Two hold it: the list and this one. Nobody can join meanwhile, for the list is locked.
        if listed && Arc::strong_count(&self.flight) <= 2 {
            flights.remove(&self.key);
        }
    }
}
