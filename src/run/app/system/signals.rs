//! The signals that are handled: SIGHUP reads the configuration again, SIGTERM and SIGINT end the process, and SIGXFSZ,
//! which would kill it, is ignored.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// The request of a signal.
pub(crate) enum Signal {
    /// To read the configuration again.
    Reload,
    /// To end.
    End,
}

/// The signals that are handled.
pub(crate) struct Signals {
    hangup: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    /// Handled so that it does not kill: a write past the file size limit is an error then, like one to a full disk.
    _file_too_large: tokio::signal::unix::Signal,
}

impl Signals {
    /// Listens from now on.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            _file_too_large: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.hangup.recv() => Signal::Reload,
            _ = self.terminate.recv() => Signal::End,
            _ = self.interrupt.recv() => Signal::End,
        }
    }

    /// Ready with the next one that asks to end. A reload waits until [`Self::next`] asks for it.
    pub(crate) async fn asked_to_end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Ready with the next one that asks to end.
    pub(crate) async fn ended(&mut self) {
        while !matches!(self.next().await, Signal::End) {}
    }
}
