//! A bucket may be dropped once a full window has passed on the monotonic clock since its last insertion.
//!
//! Asking the clock costs more than the rest of an insertion, so an insertion notes the *tick*: the time of the last
//! call of [`Idle::advance`]. When it happened really is known no closer than "before the next call", and that is
//! how it is counted.

use std::collections::VecDeque;

/// How late calls of [`Idle::advance`] may have been in an earlier process, of which only the ticks are known. A later
/// call makes a second be dropped that much too early: its requests are rejected, none is accepted twice.
const LATEST_CALL: u64 = 10;

/// Which ticks lie a window back. All times in seconds since the boot.
pub(super) struct Idle {
    window: u64,
    /// When this process began; smaller ticks are an earlier one's.
    began: u64,
    tick: u64,
    /// Ticks and when they ended, from before a window until now.
    ended: VecDeque<(u64, u64)>,
    /// All ticks up to this one ended over a window ago.
    through: Option<u64>,
}

impl Idle {
    pub(super) fn new(window: u64, began: u64) -> Self {
        Self {
            window,
            began,
            tick: began,
            ended: VecDeque::new(),
            through: None,
        }
    }

    /// Changes the window. A wider one makes what was past wait for a whole window again.
    pub(super) fn set_window(&mut self, window: u64) {
        if window > self.window {
            self.through = None;
        }
        self.window = window;
    }

    /// Ends the tick, if at least a second has passed, and returns the one that insertions are to note.
    pub(super) fn advance(&mut self, now: u64) -> u64 {
        if now > self.tick {
            self.ended.push_back((self.tick, now));
            self.tick = now;
            // Whole seconds hide up to one: more than a window, not just one.
            while let Some((tick, end)) = self.ended.front()
                && end.saturating_add(self.window) < now
            {
                self.through = Some(*tick);
                self.ended.pop_front();
            }
        }
        self.tick
    }

    /// Whether an insertion that noted `touched` is over a window ago.
    pub(super) fn is_past(&self, touched: u64) -> bool {
        let inherited = touched < self.began
            && touched
                .saturating_add(self.window)
                .saturating_add(LATEST_CALL)
                < self.tick;
        inherited || self.through.is_some_and(|through| touched <= through)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_the_end_of_the_tick() {
        let mut idle = Idle::new(10, 100);
        assert_eq!(idle.advance(100), 100);
        // The call came late: what noted 100 may have happened as late as 104.
        assert_eq!(idle.advance(104), 104);
        assert_eq!(idle.advance(114), 114);
        assert!(!idle.is_past(100));
        assert_eq!(idle.advance(115), 115);
        assert!(idle.is_past(100));
        assert!(!idle.is_past(104));
    }

    #[test]
    fn counts_anew_under_a_wider_window_and_by_the_narrower_one_at_once() {
        let mut idle = Idle::new(10, 100);
        idle.advance(104);
        idle.advance(115);
        assert!(idle.is_past(100));
        idle.set_window(20);
        assert!(!idle.is_past(100));
        idle.advance(124);
        assert!(!idle.is_past(100));
        idle.advance(136);
        assert!(idle.is_past(100) && idle.is_past(104) && !idle.is_past(124));
        idle.set_window(5);
        idle.advance(142);
        assert!(idle.is_past(124) && !idle.is_past(136));
    }

    #[test]
    fn keeps_no_more_ticks_than_a_window_has_seconds() {
        let mut idle = Idle::new(10, 0);
        for now in 0..1_000 {
            idle.advance(now);
            idle.advance(now);
        }
        assert!(idle.ended.len() <= 12);
    }

    #[test]
    fn goes_on_with_an_earlier_processs_ticks() {
        let mut idle = Idle::new(10, 100);
        assert!(!idle.is_past(90));
        assert!(idle.is_past(79));
        idle.advance(110);
        assert!(!idle.is_past(90));
        idle.advance(111);
        assert!(idle.is_past(90));
    }
}
