//! Which boot of the machine this is, and how long it has been up.
//!
//! Pages that a killed process wrote are safe in the kernel as long as the kernel lives. The boot id shows whether
//! it is still the same kernel; the uptime is a clock that no jump of the wall clock moves and that goes on from one
//! process to the next.

use std::fs;

/// The identity of one boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BootId(Option<[u64; 2]>);

/// What the kernel reports about the running boot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Boot {
    pub(super) id: BootId,
    /// Whole seconds since the boot; `None` where the kernel does not report it.
    pub(super) uptime: Option<u64>,
}

impl Boot {
    /// Asks the kernel; what it does not report stays unknown.
    pub(super) fn read() -> Self {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        let uptime = fs::read_to_string("/proc/uptime").ok();
        Self {
            id: BootId(id.as_deref().and_then(parse_id)),
            uptime: uptime.as_deref().and_then(parse_uptime),
        }
    }
}

impl BootId {
    /// Whether both are known and the same: an unknown boot is never the same one.
    pub(super) fn is(self, other: Self) -> bool {
        self.0.is_some() && self == other
    }

    pub(super) fn words(self) -> [u64; 2] {
        self.0.unwrap_or_default()
    }

    pub(super) fn from_words(words: [u64; 2]) -> Self {
        Self((words != [0; 2]).then_some(words))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "cut in two halves")]
fn parse_id(text: &str) -> Option<[u64; 2]> {
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    let number = u128::from_str_radix(&digits, 16).ok()?;
    let words = [(number >> 64) as u64, number as u64];
    (digits.len() == 32).then_some(words)
}

fn parse_uptime(text: &str) -> Option<u64> {
    text.split(['.', ' ']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_linux_writes() {
        assert_eq!(
            parse_id("01234567-89ab-cdef-0011-223344556677\n"),
            Some([0x0123_4567_89ab_cdef, 0x0011_2233_4455_6677])
        );
        assert_eq!(parse_id("nonsense"), None);
        assert_eq!(parse_uptime("1860.42 3600.11\n"), Some(1860));
        assert_eq!(parse_uptime(""), None);
    }

    #[test]
    fn an_unknown_boot_is_not_the_same_one() {
        let known = BootId::from_words([1, 2]);
        assert!(known.is(BootId::from_words([1, 2])));
        assert!(!known.is(BootId::from_words([1, 3])));
        assert!(!BootId(None).is(BootId(None)));
        assert_eq!(BootId::from_words(BootId(None).words()), BootId(None));
    }
}
