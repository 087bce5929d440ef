//! The consumers that have signed with a previous secret in its grace, in memory, for the operator.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::base::clock::{Clock, UnixTime};

/// The most consumers that are kept.
const KEPT: usize = 1_000;

/// The number of uses of each consumer's previous secret, and the time of the last one.
#[derive(Debug)]
pub struct PreviousSecrets {
    clock: Clock,
    uses: Mutex<HashMap<String, (u64, UnixTime)>>,
}

impl PreviousSecrets {
    /// None was used yet.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            uses: Mutex::default(),
        }
    }

    /// Counts a use at this moment. Above 1,000 consumers, the one with the oldest last use is forgotten.
    pub fn used(&self, consumer: &str) {
        let now = self.clock.now();
        let mut uses = self.uses.lock();
        if let Some((count, last)) = uses.get_mut(consumer) {
            (*count, *last) = (*count + 1, now);
            return;
        }
        let oldest = || uses.iter().min_by_key(|(_, (_, last))| *last);
        if uses.len() == KEPT
            && let Some(oldest) = oldest().map(|(consumer, _)| consumer.clone())
        {
            uses.remove(&oldest);
        }
        uses.insert(consumer.to_owned(), (1, now));
    }

    /// The number of uses by this consumer, and the time of the last one.
    pub fn uses_by(&self, consumer: &str) -> Option<(u64, UnixTime)> {
        let uses = self.uses.lock();
        uses.get(consumer).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn counts_each_consumer_and_forgets_the_one_that_stopped_first() {
        let clock = Clock::manual(UnixTime(1_000));
        let secrets = PreviousSecrets::new(clock.clone());
        secrets.used("first");
        secrets.used("second");
        clock.advance(Duration::from_secs(5));
        secrets.used("first");
        assert_eq!(secrets.uses_by("first"), Some((2, UnixTime(1_005))));
        for number in 0..KEPT - 1 {
            clock.advance(Duration::from_secs(1));
            secrets.used(&number.to_string());
        }
        assert_eq!(secrets.uses_by("second"), None);
        assert!(secrets.uses_by("first").is_some());
    }
}
