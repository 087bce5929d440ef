//! Random histories against a set that forgets nothing.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    /// A request whose timestamp is this far from the clock.
    Insert {
        consumer: u8,
        token: u8,
        nonce: u8,
        skew: i64,
    },
    /// Time passes.
    Pass(u64),
    /// The wall clock jumps.
    Jump(i64),
    /// A reload changes the window.
    Reload(u64),
    /// The process ends, cleanly or not, and another one takes over with another window.
    Restart { clean: bool, window: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let insert = (0..2u8, 0..2u8, 0..4u8, -15..15i64).prop_map(|(consumer, token, nonce, skew)| {
        Step::Insert {
            consumer,
            token,
            nonce,
            skew,
        }
    });
    prop_oneof![
        20 => insert,
        6 => (0..8u64).prop_map(Step::Pass),
        1 => (-40..40i64).prop_map(Step::Jump),
        1 => (5..15u64).prop_map(Step::Reload),
        1 => (any::<bool>(), 5..15u64).prop_map(|(clean, window)| Step::Restart { clean, window }),
    ]
}

/// All nonces that were ever accepted, and the most that the window may have dropped by now.
#[derive(Default)]
struct Model {
    accepted: HashSet<(u8, u8, u8, u64)>,
    /// The time of the last insertion, by second.
    live: BTreeMap<u64, u64>,
    droppable: u64,
    /// The last second that had left the window when it became wider.
    left: u64,
}

impl Model {
    /// The window changes: seconds that had left the narrower one stay out. They are dropped however late their last
    /// nonce was inserted, and do not delay a later second.
    fn change(&mut self, wall: u64, window: u64, next: u64) {
        if next > window {
            self.left = self.left.max(wall - window - 1);
            self.droppable = self.droppable.max(self.left);
        }
        self.live = self.live.split_off(&(self.left + 1));
    }

    fn expire(&mut self, wall: u64, steady: u64, window: u64) {
        while let Some((second, touched)) = self.live.first_key_value() {
            if wall <= second + window || steady < touched + window {
                break;
            }
            self.droppable = self.droppable.max(*second);
            self.live.pop_first();
        }
    }
}

fn follow(steps: Vec<Step>) {
    let mut machine = Machine::new();
    machine.params.window = Duration::from_secs(10);
    let mut window = machine.start();
    let mut model = Model::default();
    let (mut wall, mut steady, mut began) = (NOW.0, 0, 0);
    for step in steps {
        let reach = machine.params.window.as_secs();
        match step {
            Step::Insert {
                consumer,
                token,
                nonce,
                skew,
            } => {
                if skew.unsigned_abs() > reach {
                    continue;
                }
                let timestamp = wall.saturating_add_signed(skew);
                let insertion = window.insert(&NonceUse {
                    timestamp,
                    consumer: &[consumer],
                    token: &[token],
                    nonce: &[nonce],
                });
                let known = (consumer, token, nonce, timestamp);
                match insertion {
                    Insertion::Fresh => {
                        assert!(timestamp > model.left, "{known:?} came back");
                        assert!(model.accepted.insert(known), "{known:?} passed twice");
                        model.live.insert(timestamp, steady);
                    }
                    Insertion::Used => assert!(model.accepted.contains(&known)),
                    Insertion::Forgotten => assert!(timestamp <= model.droppable, "dropped early"),
                    Insertion::Full | Insertion::Closed | Insertion::Lost => {
                        panic!("{insertion:?}")
                    }
                }
            }
            Step::Pass(seconds) => {
                wall += seconds;
                steady += seconds;
                model.expire(wall, steady, reach);
                maintain(&window, wall, steady - began);
            }
            Step::Jump(seconds) => wall = wall.saturating_add_signed(seconds),
            Step::Reload(next) => {
                model.change(wall, reach, next);
                machine.params.window = Duration::from_secs(next);
                window
                    .set_length(UnixTime(wall), machine.params.window)
                    .unwrap();
            }
            Step::Restart {
                clean,
                window: next,
            } => {
                if !clean {
                    machine = machine.killed();
                }
                drop(window);
                machine.params.window = Duration::from_secs(next);
                began = steady;
                model.change(wall, reach, next);
                let opened = machine.open().unwrap();
                assert_eq!(opened.continuity, Continuity::Continued);
                let (now, mark) = (UnixTime(wall), None);
                window = opened.start(now, mark, OnLost::Refuse).unwrap();
            }
        }
    }
    // Nothing stays for ever.
    let end = model
        .accepted
        .iter()
        .map(|known| known.3)
        .max()
        .unwrap_or(0)
        + 16;
    for second in 0..60 {
        maintain(&window, end.max(wall) + second, steady - began + second);
    }
    assert_eq!(window.entries(), 0);
}

#[test]
fn a_second_that_had_left_does_not_hold_up_a_later_one() {
    let insert = |skew| Step::Insert {
        consumer: 0,
        token: 0,
        nonce: 0,
        skew,
    };
    follow(vec![
        // Second 10, used at 0.
        insert(10),
        Step::Pass(6),
        Step::Pass(6),
        // Second 2, used at 12. It leaves the window of 10 s at 13, and the wider one keeps it out.
        insert(-10),
        Step::Pass(1),
        Step::Reload(11),
        // Second 2 is dropped at once and, a narrower window after its only use, second 10.
        Step::Restart {
            clean: true,
            window: 5,
        },
        Step::Pass(3),
        // Only a clock that is set back asks for second 10 again.
        Step::Jump(-1),
        insert(-5),
    ]);
}

proptest! {
    #[test]
    fn never_admits_twice_and_never_drops_early(steps in prop::collection::vec(step(), 1..200)) {
        follow(steps);
    }
}
