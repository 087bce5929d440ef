//! Insertion: exact, atomic, bounded.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use super::*;

#[test]
fn is_fresh_once_for_each_consumer_token_timestamp_and_nonce() {
    let window = anonymous(100);
    let triples: [[&[u8]; 3]; 5] = [
        [b"a", b"t", b"n"],
        [b"b", b"t", b"n"],
        [b"a", b"u", b"n"],
        [b"a", b"t", b"m"],
        [b"a", b"", b"n"],
    ];
    for timestamp in [NOW.0 - 300, NOW.0, NOW.0 + 300] {
        for [consumer, token, nonce] in triples {
            let nonce = NonceUse {
                timestamp,
                consumer,
                token,
                nonce,
            };
            let insert = || window.insert(&nonce);
            assert_eq!(insert(), Insertion::Fresh);
            assert_eq!(insert(), Insertion::Used);
        }
    }
    assert_eq!(window.entries(), 15);
}

#[test]
fn keeps_many_nonces_of_one_second() {
    let window = anonymous(1_000_000);
    for number in 0..200_000 {
        assert_eq!(insert(&window, NOW.0, number), Insertion::Fresh);
    }
    for number in 0..200_000 {
        assert_eq!(insert(&window, NOW.0, number), Insertion::Used);
    }
    assert_eq!(window.entries(), 200_000);
    assert!(window.bytes() < 200_000 * 24, "{}", window.bytes());
}

#[test]
fn one_of_a_hundred_racing_insertions_is_fresh() {
    let window = anonymous(1_000_000);
    for round in 0..50 {
        let barrier = Barrier::new(100);
        let fresh = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| {
                    barrier.wait();
                    if insert(&window, NOW.0, round) == Insertion::Fresh {
                        fresh.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(fresh.into_inner(), 1);
    }
}

#[test]
fn racing_threads_get_each_nonce_once_while_seconds_expire() {
    let window = anonymous(10_000_000);
    let fresh = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..40_000 {
                    let timestamp = NOW.0 + number % 7;
                    if insert(&window, timestamp, number) == Insertion::Fresh {
                        fresh.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        scope.spawn(|| {
            for second in 0..2_000 {
                // The wall clock stands still at the last second that is not due yet.
                maintain(&window, NOW.0 + 300, second);
            }
        });
    });
    assert_eq!(fresh.into_inner(), 40_000);
    assert_eq!(window.entries(), 40_000);
}

#[test]
fn racing_threads_get_each_nonce_once_while_the_length_changes() {
    const LENGTHS: [u64; 4] = [300, 5, 100, 1];
    let window = anonymous(10_000_000);
    let clock = AtomicU64::new(NOW.0);
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        let inserting = || {
            barrier.wait();
            let mut fresh = Vec::new();
            for number in 0..60_000 {
                let now = clock.load(Ordering::Relaxed);
                // As far back or ahead as the length allows at this moment, on every thread the same.
                let length = window.length().as_secs().min(number % 7);
                let timestamp = NOW.0 + number / 300 + number % 3;
                if timestamp.abs_diff(now) <= length.max(1)
                    && insert(&window, timestamp, number) == Insertion::Fresh
                {
                    fresh.push((timestamp, number));
                }
            }
            fresh
        };
        let threads = [
            scope.spawn(inserting),
            scope.spawn(inserting),
            scope.spawn(inserting),
        ];
        barrier.wait();
        for step in 0..200 {
            let now = NOW.0 + step;
            clock.store(now, Ordering::Relaxed);
            maintain(&window, now, step);
            let length = LENGTHS[usize::try_from(step).unwrap() % 4];
            let length = Duration::from_secs(length);
            window.set_length(UnixTime(now), length).unwrap();
            thread::yield_now();
        }
        let mut seen = std::collections::HashSet::new();
        for nonce in threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
        {
            assert!(seen.insert(nonce), "{nonce:?} was fresh twice");
        }
        assert!(!seen.is_empty());
    });
}

#[test]
fn no_insertion_is_fresh_after_its_second_was_dropped_under_it() {
    for round in 0..50 {
        let window = anonymous(1_000_000);
        assert_eq!(insert(&window, NOW.0, 0), Insertion::Fresh);
        maintain(&window, NOW.0, 1);
        thread::scope(|scope| {
            let inserting = scope.spawn(|| {
                (1..3_000)
                    .filter(|number| insert(&window, NOW.0, *number) == Insertion::Fresh)
                    .collect::<Vec<_>>()
            });
            for second in 0..2 {
                maintain(&window, NOW.0 + 301, 400 + 400 * second + round);
            }
            for number in inserting.join().unwrap() {
                assert_ne!(insert(&window, NOW.0, number), Insertion::Fresh);
            }
        });
    }
}

#[test]
fn refuses_past_the_limit_and_never_forgets_for_it() {
    let window = anonymous(1_000);
    for number in 0..1_000 {
        assert_eq!(
            insert(&window, NOW.0 + number % 10, number),
            Insertion::Fresh
        );
    }
    for number in 1_000..3_000 {
        assert_eq!(
            insert(&window, NOW.0 + number % 10, number),
            Insertion::Full
        );
    }
    for number in 0..1_000 {
        assert_eq!(
            insert(&window, NOW.0 + number % 10, number),
            Insertion::Used
        );
    }
    assert_eq!(window.entries(), 1_000);
}

#[test]
fn racing_threads_never_pass_the_limit() {
    let window = anonymous(5_000);
    let fresh = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..8 {
            let (window, fresh) = (&window, &fresh);
            scope.spawn(move || {
                for number in 0..2_000 {
                    if insert(window, NOW.0, thread << 32 | number) == Insertion::Fresh {
                        fresh.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(fresh.into_inner(), 5_000);
    assert_eq!(window.entries(), 5_000);
}

#[test]
fn forgets_nothing_if_a_bucket_is_no_longer_at_hand() {
    let window = anonymous(100);
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Fresh);
    assert_eq!(insert(&window, NOW.0 + 1_024, 1), Insertion::Fresh);
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Used);
    assert_eq!(insert(&window, NOW.0 + 1_024, 1), Insertion::Used);
}

#[test]
fn refuses_after_the_close() {
    let machine = Machine::new();
    let window = machine.start();
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Fresh);
    window.close().unwrap();
    window.close().unwrap();
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Closed);
    assert_eq!(insert(&window, NOW.0, 2), Insertion::Closed);
    // Another process may go on at once, and nothing that is still called here changes its files.
    let next = machine.start();
    let high_water_mark = UnixTime(NOW.0 + 10_000);
    window.note_high_water_mark(high_water_mark).unwrap();
    window.note_lost(high_water_mark).unwrap();
    window.set_length(NOW, 2 * WINDOW).unwrap();
    maintain(&window, NOW.0 + 10_000, 10_000);
    drop(window);
    assert_eq!(insert(&next, NOW.0, 1), Insertion::Used);
    assert_eq!(insert(&next, NOW.0, 3), Insertion::Fresh);
    drop(next);
    let after = machine.start();
    for number in [1, 3] {
        assert_eq!(insert(&after, NOW.0, number), Insertion::Used);
    }
}
