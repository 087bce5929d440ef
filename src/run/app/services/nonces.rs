//! The nonce window of this process, the one that replicas share, and the notes on both in the store.

use std::{io, path::PathBuf, time::Duration};

use sd_notify::NotifyState;
use thiserror::Error;
use tokio::time::{Instant, sleep};

use super::Services;
use crate::{
    base::clock::{Clock, UnixTime},
    records::{
        nonce::{self, LocalWindow, Nonces, Opened, SharedWindow, redis, settings::NonceScope},
        store::Store,
        values::StoreError,
    },
    run::{app::system::manager, config::Config},
};

/// The time between two attempts to lock the nonce window.
const LOCK_EVERY: Duration = Duration::from_millis(20);

/// Why a nonce window cannot be opened, or what the store has to know of it cannot be written.
#[derive(Debug, Error)]
pub enum NonceServiceError {
    /// The nonce window cannot be opened.
    #[error("nonce.path: {0}")]
    Window(#[from] nonce::WindowOpenError),
    /// The file of the nonce window cannot be written.
    #[error("nonce.path: {0}")]
    File(#[from] io::Error),
    /// Store and nonce window are one file.
    #[error(
        "nonce.path: {} is the store's own file, store.url; write another, or leave it out",
        .0.display()
    )]
    OneFile(PathBuf),
    /// The Redis for shared nonces cannot be opened.
    #[error("nonce.url: {0}")]
    Redis(#[from] redis::RedisOpenError),
    /// `nonce.url` is not a URL of Redis.
    #[error("nonce.url: {0}")]
    Url(&'static str),
    /// The store cannot share nonces.
    #[error("nonce.scope: this store cannot share nonces between replicas")]
    NotShared,
    /// The store does not respond.
    #[error("store.url: {0}")]
    Store(#[from] StoreError),
}

/// Opens the nonce window. If the previous process is ending, it gives up the lock about a second after its SIGTERM and
/// `listen.drain_delay`; this waits for the lock until `deadline`.
pub(super) async fn open_window(
    params: &nonce::WindowParams,
    deadline: Instant,
) -> Result<Opened, nonce::WindowOpenError> {
    let mut is_logged = false;
    loop {
        match LocalWindow::open(params) {
            Err(nonce::WindowOpenError::Locked { path }) if Instant::now() < deadline => {
                if !std::mem::replace(&mut is_logged, true) {
                    let path = tracing::field::display(path.display());
                    tracing::info!(
                        path,
                        "another process has the nonce window: waiting until it ends"
                    );
                    let status = "waiting for another process to give up the nonce window";
                    manager::tell(&[NotifyState::Status(status)]);
                }
                sleep(LOCK_EVERY).await;
            }
            opened => return opened,
        }
    }
}

/// The Redis for shared nonces, if there is one.
///
/// # Errors
/// [`NonceServiceError::Url`], if `nonce.url` is not a URL of Redis.
pub fn nonce_target(config: &Config) -> Result<Option<redis::RedisUrl>, NonceServiceError> {
    let url = config.nonce.url.as_ref();
    let target = url.map(|url| redis::RedisUrl::parse(url.expose()));
    target.transpose().map_err(NonceServiceError::Url)
}

/// The shared window, if `nonce.scope` asks for one.
pub(super) async fn shared_window(
    config: &Config,
    store: &Store,
    now: UnixTime,
) -> Result<Option<Box<dyn SharedWindow>>, NonceServiceError> {
    match (config.nonce_scope(), nonce_target(config)?) {
        (NonceScope::Local, _) => Ok(None),
        (NonceScope::Shared, Some(target)) => {
            let location = store.nonce_location().await?;
            let length = config.longest_window();
            let (window, id) = redis::open_nonces(target, &location, now, length).await?;
            // Only now: another process that finds the note relies on the window in Redis.
            store.keep_nonces_elsewhere(&id).await?;
            Ok(Some(window))
        }
        (NonceScope::Shared, None) => match store.shared_window() {
            None => Err(NonceServiceError::NotShared),
            shared => Ok(shared),
        },
    }
}

/// Rejects requests that a store whose records were imported may have accepted, unless `nonce.on_lost` waives that.
///
/// # Errors
/// [`NonceServiceError`], if the store cannot be read or the window cannot be written.
pub async fn note_imported(nonces: &Nonces, store: &Store) -> Result<(), NonceServiceError> {
    if let Some(until) = store.imported_nonces_until().await? {
        nonces.note_imported(until)?;
    }
    Ok(())
}

/// Writes into the store the version of the closed files of the nonce window: a start with an older copy of them notices that.
///
/// # Errors
/// [`StoreError`], if the store cannot write it.
pub async fn note_files(services: &Services) -> Result<(), StoreError> {
    let (nonces, store) = (&services.nonces, &services.store);
    match nonces.window().files().filter(|_| !nonces.are_shared()) {
        Some(files) => {
            store
                .set_local_nonces_until(nonces.high_water_mark(), Some(files))
                .await
        }
        None => Ok(()),
    }
}

/// Writes into the store the last timestamp of requests that this run may accept, before it accepts them. A wider
/// configured window takes effect from then on.
///
/// # Errors
/// [`NonceServiceError`], if the mark cannot be written; once the written mark no longer covers the present, signed requests
/// are rejected.
pub async fn write_high_water_mark(
    nonces: &Nonces,
    store: &Store,
    clock: &Clock,
) -> Result<(), NonceServiceError> {
    if !nonces.are_shared() {
        let mark = nonces.next_high_water_mark(clock.now())?;
        let files = nonces.window().files();
        store.set_local_nonces_until(mark, files).await?;
        nonces.note_written_mark(mark, clock.now())?;
    }
    Ok(())
}
