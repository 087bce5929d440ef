//! The memory that each caller may take.

use super::*;

const SHARES: Shares = Shares {
    all: 400,
    each: 100,
};

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
        assert_eq!(first.resize(60, SHARES), Ok(()));
        assert_eq!(
            second.resize(41, SHARES),
            Err(BodyRejection::Busy),
            "{last}"
        );
        assert_eq!(second.resize(40, SHARES), Ok(()));
        held.extend([first, second]);
    }
    let mut fifth = memory.reserve(caller("192.0.2.5"));
    assert_eq!(fifth.resize(1, SHARES), Err(BodyRejection::Busy));
    held.truncate(7);
    assert_eq!(fifth.resize(40, SHARES), Ok(()));
    assert_eq!(fifth.resize(41, SHARES), Err(BodyRejection::Busy));
}

#[test]
fn the_body_that_has_been_arriving_for_longest_makes_room() {
    let memory = memory();
    let context = Context::from_waker(Waker::noop());
    let mut bodies: Vec<_> = (0..8)
        .map(|number| memory.reserve(caller(&format!("192.0.2.{}", number / 2))))
        .collect();
    for body in &mut bodies {
        assert_eq!(body.resize(50, SHARES), Ok(()));
        assert_eq!(body.await_more(&context), Ok(()));
    }
    assert_eq!(bodies[0].arrived(), Ok(()), "it is whole");
    let mut other = memory.reserve(caller("192.0.2.99"));
    assert_eq!(other.resize(50, SHARES), Ok(()));
    assert_eq!(bodies[1].await_more(&context), Err(BodyRejection::Busy));
    assert_eq!(bodies[1].resize(60, SHARES), Err(BodyRejection::Busy));
    // A caller that is over its share makes room by itself.
    let mut own = memory.reserve(caller("192.0.2.2"));
    assert_eq!(own.resize(20, SHARES), Ok(()));
    assert_eq!(bodies[4].arrived(), Err(BodyRejection::Busy));
    // The oldest one cannot grow, and stays as it was.
    assert_eq!(bodies[2].resize(51, SHARES), Err(BodyRejection::Busy));
    assert_eq!(bodies[2].await_more(&context), Ok(()));
    drop((bodies, other, own));
    assert_eq!(memory.taken.lock().bytes, 0);
    assert!(memory.taken.lock().by_caller.is_empty() && memory.taken.lock().arriving.is_empty());
}

#[test]
fn a_caller_has_room_for_a_form_and_at_most_a_quarter() {
    const MIB: usize = 1 << 20;
    for (memory, form, each) in [(64, 1, 8), (64, 16, 16), (1024, 1, 64), (64, 4, 16)] {
        assert_eq!(Shares::new(memory * MIB, form * MIB).each, each * MIB);
    }
}

#[test]
fn everything_is_given_back() {
    let memory = memory();
    for address in [caller("192.0.2.1"), caller("2001:db8::1"), None] {
        let mut reservation = memory.reserve(address);
        for bytes in [0, 10, 100, 7, 0, 50] {
            assert_eq!(reservation.resize(bytes, SHARES), Ok(()));
            assert_eq!(memory.taken.lock().bytes, bytes);
        }
        assert_eq!(
            reservation.resize(101, SHARES),
            Err(BodyRejection::TooLarge)
        );
        assert_eq!(memory.taken.lock().bytes, 50);
        drop(reservation);
        assert_eq!(memory.taken.lock().bytes, 0);
        assert!(memory.taken.lock().by_caller.is_empty());
    }
}

/// A caller alone with a form that can never fit is not asked to try again.
#[test]
fn body_above_every_limit_is_too_large_not_too_much_now() {
    let mut reservation = memory().reserve(None);
    assert_eq!(
        reservation.resize(101, SHARES),
        Err(BodyRejection::TooLarge)
    );
    assert_eq!(reservation.resize(100, SHARES), Ok(()));
}

#[test]
fn a_host_of_ipv6_is_one_caller_however_many_addresses_it_has() {
    let memory = memory();
    let mut one = memory.reserve(caller("2001:db8:1:2::1"));
    let mut other = memory.reserve(caller("2001:db8:1:2:ffff:ffff:ffff:ffff"));
    let mut elsewhere = memory.reserve(caller("2001:db8:1:3::1"));
    assert_eq!(one.resize(100, SHARES), Ok(()));
    assert_eq!(other.resize(1, SHARES), Err(BodyRejection::Busy));
    assert_eq!(elsewhere.resize(100, SHARES), Ok(()));
    let mut plain = memory.reserve(caller("192.0.2.1"));
    let mut mapped = memory.reserve(caller("::ffff:192.0.2.1"));
    assert_eq!(plain.resize(100, SHARES), Ok(()));
    assert_eq!(mapped.resize(1, SHARES), Err(BodyRejection::Busy));
}

#[test]
fn limit_lowered_by_a_reload_frees_nothing_and_stops_growth() {
    let lower = Shares { all: 200, each: 50 };
    let mut reservation = memory().reserve(None);
    assert_eq!(reservation.resize(100, SHARES), Ok(()));
    assert_eq!(reservation.resize(100, lower), Ok(()));
    assert_eq!(reservation.resize(90, lower), Ok(()));
    assert_eq!(reservation.resize(91, lower), Err(BodyRejection::TooLarge));
}

#[test]
fn a_body_on_its_way_counts_until_it_is_dropped() {
    let memory = memory();
    let mut body = BufferedBody::with_room(10, memory.reserve(None));
    assert_eq!(body.reservation.resize(3, SHARES), Ok(()));
    body.push(b"abc");
    let bytes = bytes::Bytes::from_owner(body);
    let part = bytes.slice(1..);
    drop(bytes);
    assert_eq!((&*part, memory.taken.lock().bytes), (&b"bc"[..], 3));
    drop(part);
    assert_eq!(memory.taken.lock().bytes, 0);
}

#[test]
fn a_body_grows_beyond_its_first_room_and_is_the_same() {
    let mut body = BufferedBody::with_room(1 << 20, memory().reserve(None));
    assert!(body.bytes.capacity() <= FIRST_ROOM);
    let piece = Vec::from_iter((0..=u8::MAX).cycle().take(10_007));
    for _ in 0..30 {
        body.push(&piece);
    }
    assert_eq!(&*body, piece.repeat(30));
}
