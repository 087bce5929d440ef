//! Follows the frames of an HTTP/2 connection: ends floods that h2 does not end (RFC 9113 §10.5), and knows since when a
//! frame or header block has been incomplete, for which hyper has no deadline.
//!
//! | flood | ended by |
//! |---|---|
//! | PING, PING acknowledged, SETTINGS, PRIORITY, WINDOW_UPDATE, unknown types | here: h2 responds to them or ignores them, in any number |
//! | requests that are reset (CVE-2023-44487) | h2, if 20 of them wait to be accepted; here, if each is accepted before its reset comes |
//! | RST_STREAM of streams that are over | here: h2 ignores them |
//! | errors of streams that make h2 reset them (CVE-2025-8671) | h2: 1,024 |
//! | CONTINUATION (CVE-2024-27316, CVE-2019-9518) | h2: a quarter more than a head of `limits.head_bytes` needs, at least 5 |
//! | DATA of no or few bytes (CVE-2019-9518) | h2: 100 empty ones, and a budget for small ones |
//! | SETTINGS acknowledged, frames of streams that never were | h2: they are errors of the connection |
//! | header blocks that unpack into large heads (CVE-2016-6581) | h2: `limits.head_bytes` |
//!
//! Each frame that is counted here takes from an allowance, which time, requests and written bytes fill up again; the
//! connection of a caller that exceeds it ends. The frames are never changed.

use std::{
    cell::{Cell, RefCell},
    io,
};

use tokio::time::Instant;

/// The client's connection preface (RFC 9113 §3.4).
pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The allowance: this many frames at once.
const FULL: f64 = 1_000.0;
/// Frames that each second adds.
const PER_SECOND: f64 = 100.0;
/// Frames that each request adds: it comes with its own WINDOW_UPDATE, PRIORITY and the like.
const PER_REQUEST: f64 = 4.0;
/// A frame is added for this many bytes that are written, since the caller acknowledges them with WINDOW_UPDATE frames.
/// Usual callers send far fewer.
const BYTES_PER_FRAME: f64 = 512.0;
/// A request that is reset costs more than it added (CVE-2023-44487).
const RESET: f64 = 8.0;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const CONTINUATION: u8 = 0x9;
const END_HEADERS: u8 = 0x4;

const FRAME_HEAD: usize = 9;

/// The frames of a connection, counted.
#[derive(Debug)]
pub(super) struct Frames {
    position: RefCell<Position>,
    allowance: Cell<f64>,
    filled: Cell<Instant>,
    unfinished_since: Cell<Option<Instant>>,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            position: RefCell::default(),
            allowance: Cell::new(FULL),
            filled: Cell::new(Instant::now()),
            unfinished_since: Cell::new(None),
        }
    }
}

impl Frames {
    /// The time since which a header block or another frame than DATA has been incomplete.
    pub(super) const fn unfinished_since(&self) -> Option<Instant> {
        self.unfinished_since.get()
    }

    /// Counts the frames that begin in bytes that have arrived.
    ///
    /// # Errors
    /// More have come than the allowance has room for.
    pub(super) fn arrived(&self, bytes: &[u8]) -> io::Result<()> {
        let now = Instant::now();
        let since = now.duration_since(self.filled.replace(now));
        let mut change = since.as_secs_f64() * PER_SECOND;
        let mut position = self.position.borrow_mut();
        position.follow(bytes, |kind, _, _| change += weight(kind));
        self.change(change);
        let since = self.unfinished_since.get().unwrap_or(now);
        let unfinished = position.is_unfinished().then_some(since);
        self.unfinished_since.set(unfinished);
        if self.allowance.get() < 0.0 {
            return Err(io::Error::other("too many frames that ask for nothing"));
        }
        Ok(())
    }

    /// Counts bytes that were written.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn written(&self, bytes: usize) {
        self.change(bytes as f64 / BYTES_PER_FRAME);
    }

    fn change(&self, by: f64) {
        self.allowance.set((self.allowance.get() + by).min(FULL));
    }
}

/// The number of frames that a frame adds to the allowance; negative: it takes them.
const fn weight(kind: u8) -> f64 {
    match kind {
        HEADERS => PER_REQUEST,
        DATA | CONTINUATION => 0.0,
        RST_STREAM => -RESET,
        _ => -1.0,
    }
}

/// The position in the stream of frames.
#[derive(Debug)]
pub(super) struct Position {
    /// Bytes of the preface or of a payload that are still to come.
    skip: usize,
    head: [u8; FRAME_HEAD],
    head_length: usize,
    /// The payload that comes is that of DATA, which may take its time.
    data: bool,
    /// A header block continues in the next frame.
    block_open: bool,
}

impl Default for Position {
    fn default() -> Self {
        Self {
            skip: PREFACE.len(),
            head: [0; FRAME_HEAD],
            head_length: 0,
            data: false,
            block_open: false,
        }
    }
}

impl Position {
    /// Follows the bytes; `frame` gets type, flags and length of each frame that begins in them.
    pub(super) fn follow(&mut self, mut bytes: &[u8], mut frame: impl FnMut(u8, u8, usize)) {
        loop {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            if bytes.is_empty() {
                return;
            }
            let taken = (FRAME_HEAD - self.head_length).min(bytes.len());
            self.head[self.head_length..self.head_length + taken].copy_from_slice(&bytes[..taken]);
            self.head_length += taken;
            bytes = &bytes[taken..];
            if self.head_length < FRAME_HEAD {
                return;
            }
            self.head_length = 0;
            let [high, middle, low, kind, flags, ..] = self.head;
            let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
            frame(kind, flags, length);
            self.skip = length;
            self.data = kind == DATA;
            if matches!(kind, HEADERS | CONTINUATION) {
                self.block_open = flags & END_HEADERS == 0;
            }
        }
    }

    pub(super) const fn is_unfinished(&self) -> bool {
        self.block_open || self.head_length > 0 || self.skip > 0 && !self.data
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).expect("short");
        let mut frame = length.to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags, 0, 0, 0, 1]);
        frame.extend(payload);
        frame
    }

    fn preface() -> Frames {
        let frames = Frames::default();
        frames.arrived(PREFACE).expect("no flood");
        frames
    }

    fn is_flood(frames: &[Vec<u8>]) -> bool {
        let counted = preface();
        frames.iter().any(|frame| counted.arrived(frame).is_err())
    }

    #[tokio::test(start_paused = true)]
    async fn each_kind_of_flood_uses_the_allowance_up() {
        const PING: u8 = 0x6;
        const SETTINGS: u8 = 0x4;
        const WINDOW_UPDATE: u8 = 0x8;
        for (kind, flags, payload) in [
            (PING, 0, 8),
            (PING, 1, 8),
            (SETTINGS, 0, 0),
            (SETTINGS, 1, 0),
            (WINDOW_UPDATE, 0, 4),
            (0x2, 0, 5),
            (0xee, 0, 100),
        ] {
            let one = frame(kind, flags, &vec![0; payload]);
            assert!(!is_flood(&vec![one.clone(); 1_000]), "{kind}");
            assert!(is_flood(&vec![one; 1_001]), "{kind}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn aborted_requests_use_the_budget_up_and_served_ones_do_not() {
        let request = frame(HEADERS, END_HEADERS, b"x");
        let reset = frame(RST_STREAM, 0, &[0, 0, 0, 8]);
        let mut rapid = Vec::new();
        for _ in 0..300 {
            rapid.extend([request.clone(), reset.clone()]);
        }
        assert!(is_flood(&rapid));
        let mut usual = Vec::new();
        for _ in 0..3_000 {
            usual.extend([request.clone(), request.clone(), reset.clone()]);
        }
        assert!(!is_flood(&usual));
    }

    #[tokio::test(start_paused = true)]
    async fn time_and_answered_bytes_fill_it_up_again() {
        let ping = frame(0x6, 0, &[0; 8]);
        let frames = preface();
        let pings = |count: usize| (0..count).all(|_| frames.arrived(&ping).is_ok());
        assert!(pings(1_000));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(pings(500));
        frames.written(16 * 1024);
        assert!(pings(32));
        assert!(!pings(1));
    }

    #[tokio::test(start_paused = true)]
    async fn knows_when_something_is_incomplete() {
        let frames = Frames::default();
        frames.arrived(&PREFACE[..10]).expect("no flood");
        assert!(frames.unfinished_since().is_some());
        frames.arrived(&PREFACE[10..]).expect("no flood");
        assert!(frames.unfinished_since().is_none());
        let start = Instant::now();
        frames
            .arrived(&frame(HEADERS, 0, b"abc"))
            .expect("no flood");
        tokio::time::advance(Duration::from_secs(3)).await;
        frames
            .arrived(&frame(CONTINUATION, 0, b"abc"))
            .expect("no flood");
        assert_eq!(frames.unfinished_since(), Some(start));
        frames
            .arrived(&frame(CONTINUATION, END_HEADERS, b"abc"))
            .expect("no flood");
        assert!(frames.unfinished_since().is_none());
        let data = frame(DATA, 0, b"abcdef");
        frames.arrived(&data[..12]).expect("no flood");
        assert!(frames.unfinished_since().is_none());
        frames.arrived(&data[12..]).expect("no flood");
        frames.arrived(&data[..5]).expect("no flood");
        assert!(frames.unfinished_since().is_some());
    }

    proptest! {
        #[test]
        fn frames_are_the_same_however_the_bytes_are_split(
            frames in prop::collection::vec((0u8..12, any::<u8>(), prop::collection::vec(any::<u8>(), 0..40)), 0..20),
            cuts in prop::collection::vec(1usize..30, 1..200),
        ) {
            let mut bytes = PREFACE.to_vec();
            for (kind, flags, payload) in &frames {
                bytes.extend(frame(*kind, *flags, payload));
            }
            let mut found = Vec::new();
            let mut state = Position::default();
            let mut rest = &bytes[..];
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (front, back) = rest.split_at(rest.len().min(*cut));
                state.follow(front, |kind, flags, length| found.push((kind, flags, length)));
                rest = back;
            }
            let expected: Vec<_> = frames.iter().map(|(kind, flags, payload)| (*kind, *flags, payload.len())).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
