//! The advice that a response carries when the timestamp is outside the window: how far the consumer's clock is off.

use std::time::Duration;

use crate::base::clock::offset;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// A clock with only a wrong time zone is off by whole half hours, and by at most the time the request took.
const MAX_DELAY: u64 = 5;

/// Other units that clocks count in, as parts of a second.
const UNITS: [(u64, &str); 3] = [
    (1_000, "milliseconds"),
    (1_000_000, "microseconds"),
    (1_000_000_000, "nanoseconds"),
];

/// The advice while the clocks of several consumers agree that ours is wrong.
pub const OURS: &str = "the clocks of several consumers differ from the clock of this service in the same way: it is \
                        probably the service that is wrong, and its operator has been warned; try again later";

/// Describes how to correct the clock that made the timestamp `sent`. Both times are seconds since 1970; `accepted` is
/// the window, either way.
pub fn advice(sent: u64, now: u64, accepted: Duration) -> String {
    for (parts, unit) in UNITS {
        if (sent / parts).abs_diff(now) < DAY {
            return format!("oauth_timestamp is in {unit}: send whole seconds since 1970");
        }
    }
    let off = sent.abs_diff(now);
    let ahead = i128::from(sent) - i128::from(now);
    let (offset, accepted) = (offset(ahead), accepted.as_secs());
    let clock = format!("your clock is {offset}, and {accepted} s are accepted");
    match zone(off) {
        Some(zone) => {
            format!("{clock}: this is {zone}, as with a time zone: count oauth_timestamp in UTC")
        }
        None if off > 365 * DAY => {
            format!("{clock}: oauth_timestamp counts the seconds since 1970-01-01 00:00:00 UTC")
        }
        None if sent < now => format!("{clock}: set it, or sign the request again if it is old"),
        None => format!("{clock}: set it"),
    }
}

/// The difference as hours, if two time zones can differ by that: half hours up to a day.
fn zone(off: u64) -> Option<String> {
    if !(HOUR - MAX_DELAY..=DAY + MAX_DELAY).contains(&off) {
        return None;
    }
    let halves = (off + MAX_DELAY) / (HOUR / 2);
    if off.abs_diff(halves * HOUR / 2) > MAX_DELAY {
        return None;
    }
    Some(match (halves / 2, halves % 2) {
        (1, 0) => "exactly one hour".to_owned(),
        (hours, 0) => format!("exactly {hours} hours"),
        (hours, _) => format!("exactly {hours}.5 hours"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    #[test]
    fn tells_by_how_much_the_clock_is_off() {
        for (sent, advice) in [
            (
                NOW - 412,
                "412 s behind, and 300 s are accepted: set it, or sign",
            ),
            (NOW + 412, "412 s ahead, and 300 s are accepted: set it"),
            (
                NOW - 3600,
                "3600 s behind, and 300 s are accepted: this is exactly one hour, as with a time zone",
            ),
            (NOW - 3605, ": this is exactly one hour"),
            (NOW - 3606, "3606 s behind, and 300 s are accepted: set it"),
            (NOW - 3594, "3594 s behind, and 300 s are accepted: set it"),
            (
                NOW + 2 * 3600 - 4,
                "7196 s ahead, and 300 s are accepted: this is exactly 2 hours",
            ),
            (NOW + 19_800, ": this is exactly 5.5 hours"),
            (NOW + 1800, "1800 s ahead, and 300 s are accepted: set it"),
            (
                NOW - 25 * 3600,
                "90000 s behind, and 300 s are accepted: set it",
            ),
            (1, "since 1970-01-01 00:00:00 UTC"),
            (u64::MAX, "since 1970-01-01 00:00:00 UTC"),
            (NOW * 1000 + 7, "oauth_timestamp is in milliseconds: "),
            (
                (NOW - 400) * 1_000_000,
                "oauth_timestamp is in microseconds: ",
            ),
            (NOW * 1_000_000_000, "oauth_timestamp is in nanoseconds: "),
        ] {
            let given = super::advice(sent, NOW, Duration::from_secs(300));
            assert!(given.contains(advice), "{sent}: {given}");
        }
    }
}
