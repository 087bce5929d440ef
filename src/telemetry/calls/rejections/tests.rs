//! Promise (Console): The last rejections, the charts and the sessions take a bounded amount of memory. Also in
//! `src/telemetry/charts.rs`.

use std::time::Duration;

use super::*;
use crate::{
    oauth::diagnosis::{Diagnosed, Mistake},
    telemetry::{calls::facts::Reason, metrics::Verdict, tests},
};

const UNKNOWN: Diagnosed = Diagnosed::Unknown;
const SWAPPED: Diagnosed = Diagnosed::Known(Mistake::SecretsSwapped);

fn of(consumer: &str, diagnosis: Diagnosed, proof: SenderProof) -> KeptCall {
    let call = CallRecord {
        consumer: Some(consumer.into()),
        verdict: Verdict::SignatureInvalid,
        diagnosis,
        proof: Some(proof),
        ..CallRecord::default()
    };
    KeptCall {
        is_registered: true,
        ..KeptCall::from(call)
    }
}

/// A call with another outcome.
fn with(mut one: KeptCall, verdict: Verdict) -> KeptCall {
    one.call.verdict = verdict;
    one
}

/// A call that enforcing would reject with its verdict.
fn observed(mut one: KeptCall) -> KeptCall {
    one.call.reason = Some(Reason::Observed(one.call.verdict));
    with(one, Verdict::Observed)
}

fn unregistered(number: usize) -> KeptCall {
    KeptCall {
        is_registered: false,
        ..of(&format!("invented-{number}"), UNKNOWN, SenderProof::None)
    }
}

fn numbered(number: usize) -> KeptCall {
    let call = CallRecord {
        request_id: Some(format!("id-{number}").into()),
        verdict: Verdict::ParameterAbsent,
        ..CallRecord::default()
    };
    call.into()
}

#[test]
fn calls_of_a_consumer_are_not_displaced_by_other_callers() {
    let clock = Clock::manual(UnixTime(1_000));
    let rejections = Rejections::new(clock.clone());
    rejections.add(of("shop", SWAPPED, SenderProof::Secrets));
    for number in 0..OF_OTHERS + 100 {
        clock.advance(Duration::from_secs(1));
        rejections.add(numbered(number));
        // An invented key belongs to an unauthenticated caller.
        rejections.add(unregistered(number));
        rejections.add(of(
            "loud",
            Diagnosed::Known(Mistake::QueryUnsigned),
            SenderProof::Secrets,
        ));
        let fault = of("shop", UNKNOWN, SenderProof::Verified);
        rejections.add(with(fault, Verdict::Unavailable));
    }
    let shop = rejections.reasons(Some("shop"));
    let [one] = &shop[..] else {
        panic!("{shop:?}");
    };
    assert_eq!(
        (one.count, one.first, one.newest.time),
        (1, UnixTime(1_000), UnixTime(1_000))
    );
    let all = rejections.newest();
    assert_eq!(all.len(), 1 + OF_CONSUMER + 2 * OF_OTHERS);
    assert_eq!(all.last().unwrap().call.mistake(), "secrets_swapped");
    assert!(all.is_sorted_by(|one, next| one.number > next.number));
    assert_eq!(rejections.reasons(None)[0].count, OF_OTHERS as u64 + 100);
    assert!(rejections.reasons(Some("invented-1")).is_empty());
}

#[test]
fn counts_each_reason_since_its_first_call_with_what_it_proves() {
    let clock = Clock::manual(UnixTime(1_000));
    let rejections = Rejections::new(clock.clone());
    for proof in [SenderProof::None, SenderProof::Secrets, SenderProof::None] {
        for _ in 0..OF_CONSUMER {
            clock.advance(Duration::from_secs(1));
            rejections.add(of("shop", UNKNOWN, proof));
        }
    }
    rejections.add(of("shop", SWAPPED, SenderProof::Secrets));
    rejections.add(observed(of("shop", UNKNOWN, SenderProof::None)));
    let found = rejections.reasons(Some("shop"));
    let found = found.iter().map(|one| {
        (
            one.newest.call.mistake(),
            one.is_observed(),
            one.count,
            one.first.0,
            one.proofs,
        )
    });
    assert_eq!(
        Vec::from_iter(found),
        [
            ("signature_invalid", false, 60, 1_001, [0, 20, 40]),
            ("signature_invalid", true, 1, 1_060, [0, 0, 1]),
            ("secrets_swapped", false, 1, 1_060, [0, 1, 0]),
        ]
    );
}

#[test]
fn a_consumer_takes_at_most_its_bytes() {
    let rejections = Rejections::new(Clock::manual(UnixTime(1_000)));
    let long = "é".repeat(1_000);
    for mistake in Mistake::ALL.iter().cycle().take(1_000) {
        let call = CallRecord {
            path: Some(long.as_str().into()),
            method: Some(long.as_str().into()),
            problem: Some(long.as_str().into()),
            consumer: Some("shop".into()),
            diagnosis: Diagnosed::Known(*mistake),
            ..tests::call()
        };
        rejections.add(KeptCall {
            is_registered: true,
            ..KeptCall::from(call)
        });
    }
    let kept = rejections.kept.lock();
    let shop = &kept.consumers["shop"];
    assert_eq!(
        (shop.last.0.len(), shop.counts.reasons.len()),
        (OF_CONSUMER, REASONS)
    );
    for one in shop
        .last
        .0
        .iter()
        .chain(shop.counts.reasons.iter().map(|it| &it.newest))
    {
        let shown = serde_json::to_string(&one.call).unwrap();
        assert_eq!(shown.matches(&"é".repeat(128)).count(), 3);
        assert!(!shown.contains(&"é".repeat(129)) && one.call.user.is_none());
    }
    drop(kept);
    // The documents say 150 KiB.
    const { assert!(MOST_BYTES < 150 << 10) };
}

#[test]
fn the_lists_have_the_members_of_the_api_alone() {
    let names = |value: serde_json::Value| {
        let members = value.as_object().unwrap().clone();
        members
            .into_iter()
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let one = KeptCall::default();
    assert_eq!(
        names(serde_json::to_value(&one).unwrap()),
        "time request_id method path operation consumer proof previous_secret token verdict observed diagnosis parameters problem status address"
    );
    assert_eq!(
        names(serde_json::to_value(ReasonCount::new(&Arc::new(one))).unwrap()),
        "consumer reason verdict count first last proof previous_secret"
    );
}

#[test]
fn a_call_that_proves_nothing_replaces_only_its_like() {
    let rejections = Rejections::new(Clock::manual(UnixTime(1_000)));
    rejections.add(of("shop", UNKNOWN, SenderProof::Verified));
    for mistake in Mistake::ALL.iter().take(16).cycle().take(3 * OF_CONSUMER) {
        let known = Diagnosed::Known(*mistake);
        rejections.add(of("shop", known, SenderProof::None));
    }
    let proved = |one: &Arc<KeptCall>| one.call.proof == Some(SenderProof::Verified);
    assert_eq!(
        rejections.newest().iter().filter(|one| proved(one)).count(),
        1
    );
    let found = rejections.reasons(Some("shop"));
    assert_eq!(found.len(), REASONS);
    assert!(
        found
            .iter()
            .any(|one| one.newest.call.mistake() == "signature_invalid")
    );
    // Newer calls of the consumer itself replace its older ones.
    for _ in 0..OF_CONSUMER {
        rejections.add(of("shop", SWAPPED, SenderProof::Secrets));
    }
    assert!(!rejections.newest().iter().any(proved));
}

#[test]
fn invented_calls_do_not_displace_what_enforcing_would_break() {
    let clock = Clock::manual(UnixTime(1_000));
    let rejections = Rejections::new(clock.clone());
    let nightly = || observed(numbered(0));
    let made_up = || {
        for mistake in Mistake::ALL.iter().take(3 * REASONS) {
            let mut one = numbered(0);
            one.call.diagnosis = Diagnosed::Known(*mistake);
            rejections.add(one);
        }
    };
    let kept = || {
        let all = rejections.reasons_of_unsigned();
        let nightly = all.into_iter().find(ReasonCount::is_observed);
        nightly.map(|nightly| nightly.count)
    };
    for count in 1..=3 {
        rejections.add(nightly());
        made_up();
        assert_eq!(kept(), Some(count));
        clock.advance(Duration::from_secs(23 * 60 * 60));
    }
    // It has not come for more than a day.
    clock.advance(Duration::from_secs(2 * 60 * 60));
    made_up();
    assert_eq!(kept(), None);
}

#[test]
fn unauthenticated_callers_with_every_key_take_bounded_memory() {
    let rejections = Rejections::new(Clock::manual(UnixTime(1_000)));
    rejections.add(of("late", UNKNOWN, SenderProof::None));
    rejections.add(of("late", UNKNOWN, SenderProof::Secrets));
    rejections.add(of("proved", UNKNOWN, SenderProof::Secrets));
    for number in 0..MOST_UNPROVED + 10 {
        rejections.add(of(&format!("key-{number}"), UNKNOWN, SenderProof::None));
    }
    let is_kept = |key: &str| !rejections.reasons(Some(key)).is_empty();
    assert!(is_kept("late") && is_kept("proved"));
    assert!(
        !is_kept("key-0") && is_kept("key-11") && is_kept(&format!("key-{}", MOST_UNPROVED + 9))
    );
    assert!(rejections.reasons(None).len() <= MOST_UNPROVED + 2);
}

#[test]
fn calls_enforcing_would_reject_are_counted_by_sender_for_a_day() {
    let clock = Clock::manual(UnixTime(1_790_164_800));
    let rejections = Rejections::new(clock.clone());
    // More unsigned calls than are kept.
    for number in 0..OF_OTHERS + 100 {
        rejections.add(observed(numbered(number)));
    }
    for number in 0..3 {
        rejections.add(observed(of("shop", UNKNOWN, SenderProof::Secrets)));
        rejections.add(observed(of("bank", UNKNOWN, SenderProof::Secrets)));
        rejections.add(observed(unregistered(number)));
    }
    // The API failed: enforcing would have rejected it all the same.
    let failed = observed(of("shop", UNKNOWN, SenderProof::Secrets));
    rejections.add(with(failed, Verdict::BadGateway));
    let fault = of("shop", UNKNOWN, SenderProof::None);
    rejections.add(observed(with(fault, Verdict::Unavailable)));
    // The API rejected these two as well: enforcing changes nothing.
    for sent in [of("quiet", UNKNOWN, SenderProof::Secrets), numbered(0)] {
        let mut too = observed(sent);
        too.call.status = 404;
        rejections.add(too);
    }
    // Those that were rejected are others.
    rejections.add(of("other", UNKNOWN, SenderProof::Secrets));
    rejections.add(numbered(0));
    let found = rejections.observed_in_last_day();
    let expected = ObservedCalls {
        registered: 6 + 1,
        consumers: 2,
        unregistered: 3,
        unsigned: 1_100,
        faults: 1,
        rejected_by_api: 2,
    };
    assert_eq!(found, expected);
    assert_eq!(found.all(), 1_100 + 9 + 2 + 2);
    let unsigned = rejections.reasons_of_unsigned();
    let unsigned = unsigned.iter().map(|one| (one.is_observed(), one.count));
    assert_eq!(
        Vec::from_iter(unsigned),
        [(true, 1_100), (false, 1), (true, 1)]
    );
    let shop = rejections.reasons(Some("shop"));
    let [one] = &shop[..] else {
        panic!("{shop:?}");
    };
    // The summary of the API says observed whatever the last one met.
    let shown = serde_json::to_value(one).unwrap();
    assert_eq!((one.count, &shown["verdict"]), (4, &"observed".into()));
    clock.advance(Duration::from_secs(25 * 60 * 60));
    rejections.add(observed(of("shop", UNKNOWN, SenderProof::Secrets)));
    let found = rejections.observed_in_last_day();
    assert_eq!((found.all(), found.consumers), (1, 1));
    let shop = &rejections.reasons(Some("shop"))[0];
    assert_eq!((shop.last_day(clock.now()), shop.count), (1, 5));
}

#[test]
fn missing_token_and_unknown_token_are_different_reasons() {
    let rejections = Rejections::new(Clock::manual(UnixTime(1_000)));
    for token in [None, Some(""), Some("acc0212b"), Some("b7c4e0aa")] {
        let mut one = of("shop", UNKNOWN, SenderProof::Verified);
        one.call.token = token.map(Into::into);
        rejections.add(with(one, Verdict::TokenRejected));
    }
    let reasons = rejections.reasons(Some("shop"));
    let reasons = reasons
        .iter()
        .map(|one| (one.newest.call.lacks_token(), one.count));
    assert_eq!(Vec::from_iter(reasons), [(false, 2), (true, 2)]);
}
