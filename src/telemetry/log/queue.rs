//! The queue between the log and standard error. A thread of its own writes, so that no request waits for the reader of the
//! log.
//!
//! The queue is bounded in bytes. While its reader stalls, it drops access lines first and audit records last. The log then
//! says how many lines are missing. `tracing-appender` bounds the number of lines and not their bytes, treats all
//! lines alike, and gives up after one second at the end of the process.

use std::{
    io::{self, ErrorKind, Write},
    mem, thread,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// The bytes up to which the queue takes every line: some thousand access lines.
const ROOM: usize = 1 << 20;
/// The bytes up to which it takes warnings, errors and audit records.
const ROOM_FOR_PROBLEMS: usize = ROOM + (256 << 10);
/// The bytes up to which it takes audit records.
const ROOM_FOR_AUDIT: usize = ROOM_FOR_PROBLEMS + (256 << 10);

/// The writing thread pauses this long after each write, so that the lines of a busy process are written together and
/// rarely wake it.
const PAUSE: Duration = Duration::from_millis(2);
/// The time between two attempts to write to a non-blocking pipe that is full.
const RETRY: Duration = Duration::from_millis(10);
/// The most bytes of memory that the queue keeps while it is empty.
const KEPT: usize = 64 << 10;

/// Lines that wait to be written.
#[derive(Debug)]
pub(in crate::telemetry) struct Queue {
    state: Mutex<State>,
    /// Notified when the first line waits.
    waiting: Condvar,
    /// Notified when every line is written.
    written: Condvar,
}

#[derive(Debug)]
struct State {
    lines: Vec<u8>,
    is_writing: bool,
    /// Lines that were dropped since the log last reported some.
    unreported: u64,
    /// Lines that were dropped since the start.
    dropped: u64,
}

impl Queue {
    pub(in crate::telemetry) const fn new() -> Self {
        Self {
            state: Mutex::new(State {
                lines: Vec::new(),
                is_writing: false,
                unreported: 0,
                dropped: 0,
            }),
            waiting: Condvar::new(),
            written: Condvar::new(),
        }
    }

    /// The number of lines that were dropped since the start.
    pub(in crate::telemetry) fn dropped(&self) -> u64 {
        self.state.lock().dropped
    }

    /// Whether lines were dropped and the queue has not been written since.
    pub(in crate::telemetry) fn is_stalled(&self) -> bool {
        self.state.lock().unreported > 0
    }

    /// Waits until every line is written, at most for `limit`.
    pub(in crate::telemetry) fn flush(&self, limit: Duration) {
        let mut state = self.state.lock();
        let is_busy = |state: &mut State| state.is_writing || !state.lines.is_empty();
        self.written.wait_while_for(&mut state, is_busy, limit);
    }

    /// Adds a line, or drops it if there are more than `room` bytes with it.
    fn push(&self, line: &[u8], room: usize) {
        let mut state = self.state.lock();
        let before = state.lines.len();
        if before + line.len() > room {
            state.unreported += 1;
            state.dropped += 1;
            return;
        }
        state.lines.extend_from_slice(line);
        drop(state);
        if before == 0 {
            self.waiting.notify_one();
        }
    }

    /// Writes the lines to `out` for as long as the process runs.
    pub(in crate::telemetry) fn write_to(&self, mut out: impl Write) -> ! {
        let mut lines = Vec::new();
        loop {
            self.write_waiting(&mut lines, &mut out);
            thread::sleep(PAUSE);
        }
    }

    /// Waits for lines and writes them; `lines` is a buffer to use again.
    fn write_waiting(&self, lines: &mut Vec<u8>, out: &mut impl Write) {
        let mut state = self.state.lock();
        self.waiting
            .wait_while(&mut state, |state| state.lines.is_empty());
        mem::swap(lines, &mut state.lines);
        state.is_writing = true;
        let unreported = mem::take(&mut state.unreported);
        drop(state);
        if unreported > 0 {
            // It follows the lines that are written now.
            tracing::warn!(
                lines = unreported,
                "log lines dropped: standard error was not read"
            );
        }
        let lost = write_all(out, lines);
        lines.clear();
        lines.shrink_to(KEPT);
        let mut state = self.state.lock();
        state.dropped += lost;
        state.is_writing = false;
        if state.lines.is_empty() {
            self.written.notify_all();
        }
    }
}

/// Writes all bytes, and returns the number of lines that could not be written, such as to a closed pipe.
fn write_all(out: &mut impl Write, mut bytes: &[u8]) -> u64 {
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(written @ 1..) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(RETRY),
            Ok(0) | Err(_) => return memchr::memchr_iter(b'\n', bytes).count() as u64,
        }
    }
    0
}

/// Writes the records of a log to a queue.
pub(in crate::telemetry) struct ToQueue(pub(in crate::telemetry) &'static Queue);

impl<'w> MakeWriter<'w> for ToQueue {
    type Writer = Line;

    fn make_writer(&'w self) -> Line {
        Line {
            queue: self.0,
            room: ROOM,
        }
    }

    fn make_writer_for(&'w self, record: &Metadata<'_>) -> Line {
        let room = match record.target() {
            "audit" => ROOM_FOR_AUDIT,
            _ if *record.level() <= Level::WARN => ROOM_FOR_PROBLEMS,
            _ => ROOM,
        };
        Line {
            queue: self.0,
            room,
        }
    }
}

/// Takes a record, which the library writes at once.
pub(in crate::telemetry) struct Line {
    queue: &'static Queue,
    room: usize,
}

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.queue.push(line, self.room);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tracing_subscriber::{fmt::layer, layer::SubscriberExt as _, registry};

    use super::*;
    use crate::telemetry::log::lines::ACCESS;

    /// Logs as this queue takes it.
    fn with_log(queue: &'static Queue, work: impl FnOnce()) {
        let lines = layer().with_ansi(false).with_writer(ToQueue(queue));
        tracing::subscriber::with_default(registry().with(lines), work);
    }

    fn for_test() -> &'static Queue {
        Box::leak(Box::new(Queue::new()))
    }

    /// Whether the queue takes what `log` logs.
    fn takes(queue: &Queue, log: impl FnOnce()) -> bool {
        let before = queue.dropped();
        log();
        queue.dropped() == before
    }

    #[test]
    fn drops_access_lines_first_and_audit_records_last() {
        let queue = for_test();
        let text = "x".repeat(1_000);
        let access = || tracing::info!(target: ACCESS, text);
        let error = || tracing::error!(text);
        let audit = || tracing::info!(target: "audit", text);
        with_log(queue, || {
            while takes(queue, access) {}
            assert!(queue.is_stalled());
            assert!(takes(queue, error) && takes(queue, audit) && !takes(queue, access));
            while takes(queue, error) {}
            assert!(takes(queue, audit) && !takes(queue, access));
            while takes(queue, audit) {}
            assert!(!takes(queue, error));
        });
        assert!(queue.state.lock().lines.len() <= ROOM_FOR_AUDIT);
        let (dropped, mut written) = (queue.dropped(), Vec::new());
        with_log(queue, || {
            queue.write_waiting(&mut Vec::new(), &mut written);
            assert!(!queue.is_stalled());
            queue.write_waiting(&mut Vec::new(), &mut written);
        });
        let written = String::from_utf8(written).expect("text");
        let last = written.lines().last().expect("a line");
        let report = format!("log lines dropped: standard error was not read lines={dropped}");
        assert!(last.contains("WARN") && last.ends_with(&report), "{last}");
    }

    #[test]
    fn waits_for_the_lines_until_the_limit() {
        struct Reader(mpsc::Receiver<()>, mpsc::Sender<Vec<u8>>);
        impl Write for Reader {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let _ = self.0.recv();
                let _ = self.1.send(bytes[..1].to_vec());
                Ok(1)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let queue = for_test();
        let (reads, stalled) = mpsc::channel();
        let (writes, written) = mpsc::channel();
        thread::spawn(|| queue.write_to(Reader(stalled, writes)));
        queue.push(b"a\n", ROOM);
        queue.flush(Duration::from_millis(1));
        assert!(written.try_recv().is_err(), "there is no reader");
        drop(reads);
        queue.flush(Duration::from_secs(30));
        assert_eq!(written.try_iter().flatten().collect::<Vec<_>>(), b"a\n");
    }

    #[test]
    fn counts_lost_lines_and_reports_none_to_a_closed_pipe() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let queue = for_test();
        queue.push(b"a\nb\n", ROOM);
        queue.write_waiting(&mut Vec::new(), &mut Closed);
        assert_eq!((queue.dropped(), queue.is_stalled()), (2, false));
    }
}
