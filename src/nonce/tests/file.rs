//! The file: what is taken up, what is refused, what is emptied.

use std::{
    fs::File,
    os::unix::fs::{FileExt, PermissionsExt},
};

use super::{
    super::{MARK_EVERY, NonceUse, OnLost, map::BLOCK_BYTES, next_high_water_mark},
    *,
};

fn entries(continuity: Continuity) -> Option<u64> {
    match continuity {
        Continuity::Continued { entries, .. } => Some(entries),
        Continuity::New | Continuity::Untrusted { .. } => None,
    }
}

/// A place whose window has held 5,000 nonces of five seconds and was closed.
fn used() -> Place {
    let place = Place::new();
    let window = place.start();
    for number in 0..5_000 {
        assert_eq!(
            insert(&window, NOW.0 + number % 5, number),
            Insertion::Fresh
        );
    }
    place
}

fn holds_all(window: &LocalWindow) -> bool {
    (0..5_000).all(|number| insert(window, NOW.0 + number % 5, number) == Insertion::Used)
}

#[test]
fn a_clean_stop_loses_nothing_even_over_a_boot() {
    let mut place = used();
    assert_eq!(entries(place.continuity()), Some(5_000));
    place.boot = boot(2);
    assert_eq!(entries(place.continuity()), Some(5_000));
    assert!(holds_all(&place.start()));
}

#[test]
fn a_killed_process_loses_nothing() {
    let place = used();
    let window = place.start();
    let killed = place.killed();
    assert_eq!(entries(killed.continuity()), Some(5_000));
    assert!(holds_all(&killed.start()));
    assert!(holds_all(&window));
}

#[test]
fn another_process_can_look_a_nonce_up_while_the_window_is_in_use() {
    let place = used();
    let _window = place.start();
    let was_used = |timestamp, number: u64, consumer: &[u8]| {
        let nonce = NonceUse {
            timestamp,
            consumer,
            token: b"token",
            nonce: &number.to_be_bytes(),
        };
        super::super::was_used(&place.path(), nonce)
    };
    for number in (0..5_000).step_by(97) {
        let second = NOW.0 + number % 5;
        assert_eq!(was_used(second, number, b"consumer"), Some(true));
        assert_eq!(was_used(second + 1, number, b"consumer"), Some(false));
        assert_eq!(was_used(second, number, b"consume"), Some(false));
    }
    fs::write(place.path(), b"SQLite format 3\0").unwrap();
    assert_eq!(was_used(NOW.0, 0, b"consumer"), None);
    fs::remove_file(place.path()).unwrap();
    assert_eq!(was_used(NOW.0, 0, b"consumer"), None);
}

#[test]
fn a_power_loss_empties_the_file_and_leaves_a_gap() {
    let place = used();
    let _window = place.start();
    let mut killed = place.killed();
    killed.boot = boot(2);
    let opened = killed.open().unwrap();
    let expected = Continuity::Untrusted {
        held_until: UnixTime(NOW.0 + 4),
        possible_until: NOW.after(WINDOW),
    };
    assert_eq!(*opened.continuity(), expected);
    // Not settled yet: the next start finds the same, whenever it comes.
    drop(opened);
    let much_later = UnixTime(NOW.0 + 5_000);
    let later = patiently(|| open::open(&killed.params, much_later, killed.boot)).unwrap();
    assert_eq!(*later.continuity(), expected);
    let blackout = Blackout::after(later.continuity(), None, WINDOW, OnLost::Refuse);
    let window = later.start(blackout).unwrap();
    assert_eq!(window.entries(), 0);
    assert_eq!(insert(&window, NOW.0, 1), Insertion::Lost);
    // Settled: a restart goes on with what is left of the blackout.
    let again = killed.killed();
    let continuity = again.continuity();
    assert!(matches!(
        continuity,
        Continuity::Continued { lost_until: Some(lost), .. } if lost == NOW.after(WINDOW)
    ));
    assert_eq!(
        Blackout::after(&continuity, None, WINDOW, OnLost::Refuse),
        blackout
    );
    // And the operator can waive it.
    let waived = again.start();
    assert_eq!(insert(&waived, NOW.0, 1), Insertion::Fresh);
}

#[test]
fn the_wider_of_two_windows_counts_after_a_power_loss() {
    let mut place = Place::new();
    place.params.window = Duration::from_secs(1_000);
    let window = place.start();
    let mut killed = place.killed();
    drop(window);
    killed.boot = boot(2);
    killed.params.window = Duration::from_secs(10);
    assert_eq!(
        killed.continuity(),
        Continuity::Untrusted {
            held_until: UnixTime(0),
            possible_until: UnixTime(NOW.0 + 1_000),
        }
    );
}

#[test]
fn an_unknown_boot_is_another_one() {
    let mut place = Place::new();
    place.boot.id = BootId::from_words([0; 2]);
    let window = place.start();
    let killed = place.killed();
    assert!(matches!(killed.continuity(), Continuity::Untrusted { .. }));
    drop(window);
    assert_eq!(entries(place.continuity()), Some(0));
}

#[test]
fn a_file_that_never_served_is_new_again() {
    let place = Place::new();
    assert_eq!(place.continuity(), Continuity::New);
    assert_eq!(place.continuity(), Continuity::New);
    drop(place.start());
    assert_eq!(entries(place.continuity()), Some(0));
    fs::write(place.path(), []).unwrap();
    assert_eq!(place.continuity(), Continuity::New);
}

#[test]
fn an_old_copy_is_told_by_the_mark() {
    let place = Place::new();
    let window = place.start();
    let first = next_high_water_mark(NOW, WINDOW);
    window.note_high_water_mark(first);
    let copy = place.killed();
    let blackout = |place: &Place, mark: UnixTime| {
        Blackout::after(&place.continuity(), Some(mark), WINDOW, OnLost::Refuse)
    };
    assert_eq!(blackout(&copy, first), Blackout::None);
    // Another process on the same store may have written a little later.
    assert_eq!(
        blackout(&copy, next_high_water_mark(NOW.after(MARK_EVERY), WINDOW)),
        Blackout::None
    );
    let mark = next_high_water_mark(NOW.after(3 * MARK_EVERY), WINDOW);
    window.note_high_water_mark(mark);
    window.note_high_water_mark(first);
    assert_eq!(blackout(&copy, mark), Blackout::Until(mark.after(WINDOW)));
    drop(window);
    assert_eq!(blackout(&place, mark), Blackout::None);
}

#[test]
fn a_second_process_is_locked_out() {
    let place = Place::new();
    let window = place.start();
    let before = fs::read(place.path()).unwrap();
    let error = open::open(&place.params, NOW, place.boot).err().unwrap();
    assert!(matches!(error, OpenError::Locked { .. }));
    assert!(error.to_string().contains("window.nonces"));
    assert!(error.to_string().contains("nonce.path"));
    assert_eq!(fs::read(place.path()).unwrap(), before);
    drop(window);
    assert!(place.open().is_ok());
}

#[test]
fn a_foreign_file_is_left_alone() {
    let place = Place::new();
    for content in [&b"x"[..], b"SQLite format 3\0 and more", &[0; 10_000]] {
        fs::write(place.path(), content).unwrap();
        let error = place.open().err().unwrap();
        assert!(matches!(error, OpenError::NotAWindow { .. }));
        assert!(error.to_string().contains("window.nonces"));
        assert_eq!(fs::read(place.path()).unwrap(), content);
    }
    let mut directory = Place::new();
    directory.params.path = Some(directory.directory.path().into());
    assert!(matches!(directory.open(), Err(OpenError::Io { .. })));
    let mut missing = Place::new();
    missing.params.path = Some(missing.directory.path().join("no/such/file"));
    let error = missing.open().err().unwrap();
    assert!(error.to_string().contains("no/such/file"));
}

#[test]
fn the_file_is_for_its_owner_only() {
    let place = used();
    let mode = fs::metadata(place.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_broken_header_or_label_is_noticed() {
    let place = used();
    let image = fs::read(place.path()).unwrap();
    // The header's words, and the label of every segment that is in use.
    let mut words: Vec<usize> = (0..=6).chain(8..=15).skip(2).collect();
    for block in 8..image.len() / BLOCK_BYTES {
        let at = block * BLOCK_BYTES;
        if image[at..at + 8] != [0; 8] {
            words.extend([at / 8, at / 8 + 1]);
        }
    }
    for (turn, word) in words.iter().enumerate() {
        let copy = Place::new();
        let mut broken = image.clone();
        broken[word * 8 + turn % 8] ^= 1 << (turn % 7);
        fs::write(copy.path(), &broken).unwrap();
        match copy.open() {
            Ok(opened) => assert!(
                matches!(opened.continuity(), Continuity::Untrusted { .. }),
                "word {word}"
            ),
            Err(error) => panic!("word {word}: {error}"),
        }
    }
}

#[test]
fn a_misplaced_fingerprint_is_noticed() {
    let place = used();
    let image = fs::read(place.path()).unwrap();
    let block = (8..)
        .find(|block| image[block * BLOCK_BYTES..][..8] != [0; 8])
        .unwrap();
    let file = File::options().write(true).open(place.path()).unwrap();
    for slot in 3..64 {
        let at = block * BLOCK_BYTES + slot * 8;
        if image[at..at + 8] != [0; 8] {
            // Another shard: the highest bits.
            let mut fingerprint = u64::from_ne_bytes(image[at..at + 8].try_into().unwrap());
            fingerprint ^= 1 << 63;
            file.write_all_at(&fingerprint.to_ne_bytes(), at as u64)
                .unwrap();
            break;
        }
    }
    assert!(matches!(place.continuity(), Continuity::Untrusted { .. }));
}

#[test]
fn a_cut_file_is_noticed() {
    for length in [1, 16, 4_095, 4_096, 100_000] {
        let place = used();
        let file = File::options().write(true).open(place.path()).unwrap();
        file.set_len(length).unwrap();
        match place.open() {
            Ok(opened) => assert!(
                matches!(opened.continuity(), Continuity::Untrusted { .. }),
                "{length}"
            ),
            // One byte of the magic number could be anybody's.
            Err(error) => assert!(length < 16, "{length}: {error}"),
        }
    }
}

#[test]
fn gives_memory_back_at_the_next_start() {
    let place = Place::new();
    let window = place.start();
    for number in 0..400_000 {
        assert_eq!(insert(&window, NOW.0, number), Insertion::Fresh);
    }
    for second in 0..400 {
        window.expire_at(UnixTime(NOW.0 + second), at(second));
    }
    assert_eq!(insert(&window, NOW.0 + 400, 1), Insertion::Fresh);
    let full = window.bytes();
    assert!(full > 4 << 20);
    drop(window);
    let window = place.start();
    assert!(window.bytes() <= full);
    assert_eq!(fs::metadata(place.path()).unwrap().len(), window.bytes());
    for number in 0..400_000 {
        assert_ne!(insert(&window, NOW.0 + 401, number), Insertion::Full);
    }
    assert_eq!(insert(&window, NOW.0 + 400, 1), Insertion::Used);
}

#[test]
fn a_lower_limit_keeps_what_is_there_and_takes_no_more() {
    let mut place = used();
    place.params.max_entries = 100;
    let window = place.start();
    assert!(holds_all(&window));
    assert_eq!(insert(&window, NOW.0, 9_999), Insertion::Full);
}
