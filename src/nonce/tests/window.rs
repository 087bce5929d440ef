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
            let insert = || window.insert(NOW, timestamp, consumer, token, nonce);
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
    assert!(window.bytes() < 200_000 * 16, "{}", window.bytes());
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
fn racing_threads_get_each_nonce_once_while_segments_split_and_expire() {
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
                // The clock of expiry stands on the last second that is not due yet.
                window.expire_at(UnixTime(NOW.0 + 300), at(second));
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
            window.expire_at(UnixTime(now), at(step));
            let length = LENGTHS[usize::try_from(step).unwrap() % 4];
            window.set_length(UnixTime(now), at(length)).unwrap();
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
        window.expire_at(NOW, at(1));
        thread::scope(|scope| {
            let inserting = scope.spawn(|| {
                (1..3_000)
                    .filter(|number| insert(&window, NOW.0, *number) == Insertion::Fresh)
                    .collect::<Vec<_>>()
            });
            for second in 0..2 {
                window.expire_at(UnixTime(NOW.0 + 301), at(400 + 400 * second + round));
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
fn refuses_within_the_blackout_and_below_what_is_lost() {
    let params = Params {
        path: None,
        window: WINDOW,
        max_entries: 100,
    };
    let until = UnixTime(NOW.0 + 700);
    let window = LocalWindow::open(&params, NOW)
        .unwrap()
        .start(Blackout::Until(until))
        .unwrap();
    assert_eq!(window.blackout(), Blackout::Until(until));
    let insert =
        |now: u64, timestamp: u64| window.insert(UnixTime(now), timestamp, b"c", b"t", b"n");
    assert_eq!(insert(NOW.0, NOW.0 + 300), Insertion::Lost);
    assert_eq!(insert(until.0, until.0 + 300), Insertion::Lost);
    assert_eq!(insert(until.0 + 1, until.0 - 299), Insertion::Fresh);
    // A clock that goes back once the blackout is over does not let in what may have been used.
    assert_eq!(insert(until.0 + 1, until.0 - 300), Insertion::Forgotten);
    assert_eq!(insert(until.0, until.0), Insertion::Lost);
}

#[test]
fn refuses_after_the_close() {
    let place = Place::new();
    let window = place.start();
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Fresh);
    window.close().unwrap();
    window.close().unwrap();
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Full);
    assert_eq!(insert(&window, NOW.0, 2), Insertion::Full);
    window.expire_at(UnixTime(NOW.0 + 10_000), at(10_000));
    drop(window);
    assert_eq!(insert(&place.start(), NOW.0, 1), Insertion::Used);
}
