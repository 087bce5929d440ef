//! Who may take how much.

use super::*;

const LIMIT: usize = 400;

fn memory() -> &'static FormMemory {
    Box::leak(Box::default())
}

fn caller(address: &str) -> Option<IpAddr> {
    Some(address.parse().expect("an address"))
}

#[test]
fn one_caller_gets_a_quarter_and_four_get_it_all() {
    let memory = memory();
    let mut held = Vec::new();
    for last in 1..=4 {
        let address = caller(&format!("192.0.2.{last}"));
        let (mut first, mut second) = (memory.reserve(address), memory.reserve(address));
        assert_eq!(first.resize(60, LIMIT), Ok(()));
        assert_eq!(second.resize(41, LIMIT), Err(BodyRejection::Busy), "{last}");
        assert_eq!(second.resize(40, LIMIT), Ok(()));
        held.extend([first, second]);
    }
    let mut fifth = memory.reserve(caller("192.0.2.5"));
    assert_eq!(fifth.resize(1, LIMIT), Err(BodyRejection::Busy));
    held.truncate(7);
    assert_eq!(fifth.resize(40, LIMIT), Ok(()));
    assert_eq!(fifth.resize(41, LIMIT), Err(BodyRejection::Busy));
}

#[test]
fn everything_is_given_back() {
    let memory = memory();
    for address in [caller("192.0.2.1"), caller("2001:db8::1"), None] {
        let mut reservation = memory.reserve(address);
        for bytes in [0, 10, 100, 7, 0, 50] {
            assert_eq!(reservation.resize(bytes, LIMIT), Ok(()));
            assert_eq!(memory.taken().bytes, bytes);
        }
        assert_eq!(reservation.resize(101, LIMIT), Err(BodyRejection::TooLarge));
        assert_eq!(memory.taken().bytes, 50);
        drop(reservation);
        assert_eq!(memory.taken().bytes, 0);
        assert!(memory.taken().by_caller.is_empty());
    }
}

/// A caller alone with a form that can never fit is not told to try again.
#[test]
fn what_no_caller_may_have_is_too_large_rather_than_too_much_now() {
    let mut reservation = memory().reserve(None);
    assert_eq!(reservation.resize(101, LIMIT), Err(BodyRejection::TooLarge));
    assert_eq!(reservation.resize(100, LIMIT), Ok(()));
}

#[test]
fn a_host_of_ipv6_is_one_caller_however_many_addresses_it_has() {
    let memory = memory();
    let mut one = memory.reserve(caller("2001:db8:1:2::1"));
    let mut other = memory.reserve(caller("2001:db8:1:2:ffff:ffff:ffff:ffff"));
    let mut elsewhere = memory.reserve(caller("2001:db8:1:3::1"));
    assert_eq!(one.resize(100, LIMIT), Ok(()));
    assert_eq!(other.resize(1, LIMIT), Err(BodyRejection::Busy));
    assert_eq!(elsewhere.resize(100, LIMIT), Ok(()));
    let mut plain = memory.reserve(caller("192.0.2.1"));
    let mut mapped = memory.reserve(caller("::ffff:192.0.2.1"));
    assert_eq!(plain.resize(100, LIMIT), Ok(()));
    assert_eq!(mapped.resize(1, LIMIT), Err(BodyRejection::Busy));
}

#[test]
fn a_lower_limit_after_a_reload_takes_nothing_away_and_lets_nothing_grow() {
    let mut reservation = memory().reserve(None);
    assert_eq!(reservation.resize(100, LIMIT), Ok(()));
    assert_eq!(reservation.resize(100, LIMIT / 2), Ok(()));
    assert_eq!(reservation.resize(90, LIMIT / 2), Ok(()));
    assert_eq!(
        reservation.resize(91, LIMIT / 2),
        Err(BodyRejection::TooLarge)
    );
}

#[test]
fn a_body_on_its_way_counts_until_it_is_dropped() {
    let memory = memory();
    let mut body = BufferedBody::with_room(10, memory.reserve(None));
    body.buffer().extend_from_slice(b"abc");
    assert_eq!(body.count(LIMIT), Ok(()));
    let bytes = bytes::Bytes::from_owner(body);
    let part = bytes.slice(1..);
    drop(bytes);
    assert_eq!((&*part, memory.taken().bytes), (&b"bc"[..], 3));
    drop(part);
    assert_eq!(memory.taken().bytes, 0);
}
