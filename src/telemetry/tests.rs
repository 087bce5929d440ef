//! Captures the log, for tests that read it.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tracing_subscriber::layer::SubscriberExt as _;

/// The lines that `work` logs, without times.
pub(crate) fn logged(work: impl FnOnce()) -> Vec<String> {
    let captured = CapturedLog::default();
    let writer = captured.clone();
    let lines = tracing_subscriber::fmt::layer()
        .without_time()
        .with_ansi(false)
        .with_writer(move || writer.clone());
    let subscriber = tracing_subscriber::registry().with(lines);
    tracing::subscriber::with_default(subscriber, work);
    captured.take().lines().map(str::to_owned).collect()
}

/// Captures what a log writes.
#[derive(Clone, Default)]
pub(super) struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl io::Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl CapturedLog {
    /// Takes out what was written.
    pub(super) fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}
