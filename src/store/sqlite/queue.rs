//! The line in front of a thread: bounded, taken from singly or in groups, closed for good.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, PoisonError},
};

/// A bounded queue between many senders and some threads.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
    capacity: usize,
}

struct State<T> {
    waiting: VecDeque<T>,
    is_closed: bool,
}

/// The queue is full, or closed.
#[derive(Debug)]
pub(super) struct Refused;

impl<T> Queue<T> {
    /// An empty queue for at most `capacity` entries.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                is_closed: false,
            }),
            filled: Condvar::new(),
            capacity,
        }
    }

    /// Puts an entry at the end.
    pub(super) fn push(&self, entry: T) -> Result<(), Refused> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_closed || state.waiting.len() >= self.capacity {
            return Err(Refused);
        }
        state.waiting.push_back(entry);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for entries and takes at most `most` of those at the front; none: the queue is closed and empty.
    pub(super) fn take(&self, most: usize) -> Vec<T> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self
            .filled
            .wait_while(state, |state| state.waiting.is_empty() && !state.is_closed)
            .unwrap_or_else(PoisonError::into_inner);
        let count = state.waiting.len().min(most);
        state.waiting.drain(..count).collect()
    }

    /// Takes no more entries; what waits is still given out.
    pub(super) fn close(&self) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_closed = true;
        self.filled.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_entries_out_in_order_and_in_groups() {
        let queue = Queue::new(8);
        for number in 0..5 {
            queue.push(number).unwrap();
        }
        assert_eq!(queue.take(3), [0, 1, 2]);
        assert_eq!(queue.take(3), [3, 4]);
    }

    #[test]
    fn refuses_what_is_too_much() {
        let queue = Queue::new(1);
        assert!(queue.push(1).is_ok());
        assert!(queue.push(2).is_err());
        assert_eq!(queue.take(9), [1]);
        assert!(queue.push(3).is_ok());
    }

    #[test]
    fn gives_out_the_rest_when_closed_and_then_ends() {
        let queue = Queue::new(8);
        queue.push(1).unwrap();
        queue.close();
        assert!(queue.push(2).is_err());
        assert_eq!(queue.take(9), [1]);
        assert!(queue.take(9).is_empty());
    }
}
