//! A watch over the frames that a caller sends (RFC 9113 §10.5).
//!
//! Some frames cost the caller nothing and the server work: SETTINGS, PING, resets, empty DATA. A stream of them is
//! never refused by the protocol itself. Here each takes from an allowance that time, requests and answered bytes fill
//! up again; a caller that goes past it has its connection ended. The frames are only counted, never changed.

use std::{
    cell::{Cell, RefCell},
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

use super::wire::Wire;

/// The client's connection preface (RFC 9113 §3.4).
pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The allowance: that many frames at once.
const FULL: f64 = 1_000.0;
/// That many more each second.
const PER_SECOND: f64 = 100.0;
/// A request brings its own WINDOW_UPDATE, PRIORITY and the like.
const PER_REQUEST: f64 = 4.0;
/// A caller acknowledges what it is sent with WINDOW_UPDATE frames: one for so many bytes is usual many times over.
const BYTES_PER_FRAME: f64 = 512.0;
/// Beginning a request and breaking it off costs more than the request brought (CVE-2023-44487).
const RESET: f64 = 8.0;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const CONTINUATION: u8 = 0x9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

const FRAME_HEAD: usize = 9;

/// What has been counted on a connection.
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
    /// Whether more has come than is allowed.
    #[must_use]
    pub(super) fn is_flooded(&self) -> bool {
        self.allowance.get() < 0.0
    }

    /// Since when a header block or another frame than DATA has been incomplete.
    #[must_use]
    pub(super) const fn unfinished_since(&self) -> Option<Instant> {
        self.unfinished_since.get()
    }

    fn arrived(&self, bytes: &[u8]) {
        let now = Instant::now();
        let since = now.duration_since(self.filled.replace(now));
        let mut change = since.as_secs_f64() * PER_SECOND;
        let mut position = self.position.borrow_mut();
        position.follow(bytes, |kind, flags, length| {
            change += weight(kind, flags, length);
        });
        self.change(change);
        if position.is_unfinished() {
            if self.unfinished_since.get().is_none() {
                self.unfinished_since.set(Some(now));
            }
        } else {
            self.unfinished_since.set(None);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn written(&self, bytes: usize) {
        if !self.is_flooded() {
            self.change(bytes as f64 / BYTES_PER_FRAME);
        }
    }

    fn change(&self, by: f64) {
        self.allowance.set((self.allowance.get() + by).min(FULL));
    }
}

/// What a frame brings to the allowance, or takes from it.
const fn weight(kind: u8, flags: u8, length: usize) -> f64 {
    match kind {
        HEADERS => PER_REQUEST,
        DATA if length > 0 || flags & END_STREAM != 0 => 0.0,
        RST_STREAM => -RESET,
        _ => -1.0,
    }
}

/// Where in the frames the bytes stand.
#[derive(Debug)]
pub(super) struct Position {
    preface_left: usize,
    head: [u8; FRAME_HEAD],
    head_length: usize,
    payload_left: usize,
    /// The frame whose payload comes is DATA, which may take its time.
    data: bool,
    /// A header block goes on in the next frame.
    block_open: bool,
}

impl Default for Position {
    fn default() -> Self {
        Self {
            preface_left: PREFACE.len(),
            head: [0; FRAME_HEAD],
            head_length: 0,
            payload_left: 0,
            data: false,
            block_open: false,
        }
    }
}

impl Position {
    /// Follows the bytes; `frame` gets type, flags and length of each frame that begins among them.
    pub(super) fn follow(&mut self, mut bytes: &[u8], mut frame: impl FnMut(u8, u8, usize)) {
        let skipped = self.preface_left.min(bytes.len());
        self.preface_left -= skipped;
        bytes = &bytes[skipped..];
        loop {
            let skipped = self.payload_left.min(bytes.len());
            self.payload_left -= skipped;
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
            self.payload_left = length;
            self.data = kind == DATA;
            match kind {
                HEADERS | CONTINUATION => self.block_open = flags & END_HEADERS == 0,
                _ => {}
            }
        }
    }

    pub(super) const fn is_unfinished(&self) -> bool {
        self.preface_left > 0
            || self.block_open
            || self.head_length > 0
            || self.payload_left > 0 && !self.data
    }
}

/// A caller's stream whose frames are counted.
#[derive(Debug)]
pub(super) struct Guarded {
    wire: Wire,
    frames: Rc<Frames>,
}

impl Guarded {
    /// Counts the frames that arrive on `wire`.
    #[must_use]
    pub(super) const fn new(wire: Wire, frames: Rc<Frames>) -> Self {
        Self { wire, frames }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.frames.is_flooded() {
            // Nothing more is read; whoever drives the connection ends it.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let start = buffer.filled().len();
        let read = Pin::new(&mut this.wire).poll_read(context, buffer);
        this.frames.arrived(&buffer.filled()[start..]);
        read
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.wire).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = written {
            this.frames.written(count);
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().wire).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().wire).poll_shutdown(context)
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

    fn watched(frames: &[Vec<u8>]) -> Frames {
        let watch = Frames::default();
        watch.arrived(PREFACE);
        for frame in frames {
            watch.arrived(frame);
        }
        watch
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
            (DATA, 0, 0),
            (CONTINUATION, 0, 0),
            (0x2, 0, 5),
            (0xee, 0, 100),
        ] {
            let one = frame(kind, flags, &vec![0; payload]);
            assert!(!watched(&vec![one.clone(); 1_000]).is_flooded(), "{kind}");
            assert!(watched(&vec![one; 1_001]).is_flooded(), "{kind}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_are_all_broken_off_use_it_up_and_served_ones_do_not() {
        let request = frame(HEADERS, END_HEADERS | END_STREAM, b"x");
        let reset = frame(RST_STREAM, 0, &[0, 0, 0, 8]);
        let mut rapid = Vec::new();
        for _ in 0..300 {
            rapid.extend([request.clone(), reset.clone()]);
        }
        assert!(watched(&rapid).is_flooded());
        let mut usual = Vec::new();
        for _ in 0..3_000 {
            usual.extend([request.clone(), request.clone(), reset.clone()]);
        }
        assert!(!watched(&usual).is_flooded());
    }

    #[tokio::test(start_paused = true)]
    async fn time_and_answered_bytes_fill_it_up_again() {
        let ping = frame(0x6, 0, &[0; 8]);
        let watch = watched(&vec![ping.clone(); 1_000]);
        tokio::time::advance(Duration::from_secs(5)).await;
        for _ in 0..500 {
            watch.arrived(&ping);
        }
        assert!(!watch.is_flooded());
        watch.written(16 * 1024);
        for _ in 0..32 {
            watch.arrived(&ping);
        }
        assert!(!watch.is_flooded());
        watch.arrived(&ping);
        assert!(watch.is_flooded());
        watch.written(1 << 20);
        assert!(watch.is_flooded(), "what is over stays over");
    }

    #[tokio::test(start_paused = true)]
    async fn knows_when_something_is_incomplete() {
        let watch = Frames::default();
        watch.arrived(&PREFACE[..10]);
        assert!(watch.unfinished_since().is_some());
        watch.arrived(&PREFACE[10..]);
        assert!(watch.unfinished_since().is_none());
        let start = Instant::now();
        watch.arrived(&frame(HEADERS, 0, b"abc"));
        tokio::time::advance(Duration::from_secs(3)).await;
        watch.arrived(&frame(CONTINUATION, 0, b"abc"));
        assert_eq!(watch.unfinished_since(), Some(start));
        watch.arrived(&frame(CONTINUATION, END_HEADERS, b"abc"));
        assert!(watch.unfinished_since().is_none());
        let data = frame(DATA, 0, b"abcdef");
        watch.arrived(&data[..12]);
        assert!(watch.unfinished_since().is_none());
        watch.arrived(&data[12..]);
        watch.arrived(&data[..5]);
        assert!(watch.unfinished_since().is_some());
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
