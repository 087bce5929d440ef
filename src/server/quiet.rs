//! A waker that can be silenced while what it wakes is being polled.
//!
//! hyper connects its halves by channels. Where both ends are polled by one task, each message wakes the task that is
//! running already, and it would run once more for nothing.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

#[derive(Debug, Default)]
struct QuietState {
    /// Somebody polls: waking is noted instead.
    silenced: AtomicBool,
    woken: AtomicBool,
    outer: Mutex<Option<Waker>>,
}

impl Wake for QuietState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.silenced.load(Ordering::Acquire) {
            self.woken.store(true, Ordering::Release);
        } else {
            self.wake_outer();
        }
    }
}

impl QuietState {
    fn wake_outer(&self) {
        // Not under the lock: the thread that is woken takes it first.
        let outer = self
            .outer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(outer) = outer {
            outer.wake();
        }
    }
}

/// The waker that everything polled by one task shares.
#[derive(Debug)]
pub struct Quiet {
    shared: Arc<QuietState>,
    waker: Waker,
}

impl Default for Quiet {
    fn default() -> Self {
        let shared = Arc::new(QuietState::default());
        Self {
            waker: Waker::from(Arc::clone(&shared)),
            shared,
        }
    }
}

impl Quiet {
    /// Polls with a waker that is silenced meanwhile, and again as long as polling woke somebody without being ready.
    pub fn poll<T>(
        &self,
        context: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let shared = &self.shared;
        {
            let mut outer = shared.outer.lock().unwrap_or_else(PoisonError::into_inner);
            match &*outer {
                Some(known) if known.will_wake(context.waker()) => {}
                _ => *outer = Some(context.waker().clone()),
            }
        }
        let mut inner = Context::from_waker(&self.waker);
        shared.silenced.store(true, Ordering::Release);
        let mut polled = poll(&mut inner);
        for _ in 1..MAX_ROUNDS {
            if polled.is_ready() || !shared.woken.swap(false, Ordering::AcqRel) {
                break;
            }
            polled = poll(&mut inner);
        }
        shared.silenced.store(false, Ordering::Release);
        if shared.woken.swap(false, Ordering::AcqRel) && polled.is_pending() {
            shared.wake_outer();
        }
        polled
    }
}

/// After so many rounds others have their turn.
const MAX_ROUNDS: usize = 8;

#[cfg(test)]
mod tests {
    use std::{cell::Cell, sync::atomic::AtomicUsize};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn waking_while_polling_costs_one_round_and_no_wake() {
        let quiet = Quiet::default();
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let rounds = Cell::new(0);
        let kept = Cell::new(None);
        let polled = quiet.poll(&mut context, |context| {
            rounds.set(rounds.get() + 1);
            if rounds.get() == 1 {
                context.waker().wake_by_ref();
            }
            kept.set(Some(context.waker().clone()));
            Poll::<()>::Pending
        });
        assert!(polled.is_pending());
        assert_eq!(rounds.get(), 2);
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        // Between two polls it wakes as usual.
        kept.take().expect("a waker").wake();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_ring_of_wakes_ends_and_goes_on_later() {
        let quiet = Quiet::default();
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let polled = quiet.poll(&mut Context::from_waker(&waker), |context| {
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert!(polled.is_pending());
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }
}
