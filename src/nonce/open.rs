//! Opens the window: creates the file or reads it, and finds out whether its content can be relied on.

use std::{
    fs::{File, TryLockError},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use thiserror::Error;

use super::{
    blackout::{Blackout, Continuity},
    boot::Boot,
    bucket::SHARDS,
    header::{self, Damaged, FORMAT_VERSION, Field, HEADER_BLOCKS, Header, HeaderError, Stage},
    local::LocalWindow,
    map::{BLOCK_BYTES, GROWTH_BLOCKS, Map},
    recover::{Recovered, recover},
    segment::SLOTS,
};
use crate::clock::UnixTime;

/// The longest window that a configuration may ask for.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The name in errors of a window without a file.
pub(super) const ANONYMOUS: &str = "anonymous memory";

/// How a local window is to be.
#[derive(Debug, Clone)]
pub struct Params {
    /// The file; it is made with mode 0600 if it is missing. On a tmpfs it survives the process as well, and no
    /// insertion ever waits for a disk. `None`: anonymous memory, which dies with the process.
    pub path: Option<PathBuf>,
    /// How far a timestamp may be from the clock, either way, until [`LocalWindow::set_length`] changes it.
    pub window: Duration,
    /// How many nonces are held at most; past it insertions are rejected as [`super::Insertion::Full`].
    pub max_entries: u64,
}

/// Why a window cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error(
        "the nonce window {} is in use by another process; stop that one, or set nonce.path to a file of its own",
        path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else. It is left as it is.
    #[error("{} is not a nonce window; set nonce.path to another file", path.display())]
    NotAWindow {
        /// The file.
        path: PathBuf,
    },
    /// A later version of countersign made the file. It is left as it is.
    #[error(
        "the nonce window {} has format {version}, this program knows up to {FORMAT_VERSION}; \
         run the version that made it, or set nonce.path to another file",
        path.display()
    )]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// Its format.
        version: u64,
    },
    /// The operating system reports an error.
    #[error("cannot {action} the nonce window {}; check nonce.path, its directory, and the room there", path.display())]
    Io {
        /// The file; `anonymous memory` if there is none.
        path: PathBuf,
        /// What failed.
        action: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The system gives no random key.
    #[error("the system's random generator fails")]
    Random,
}

/// A window that is open and does not serve yet: first the caller decides what follows from what may have been lost.
pub struct Opened {
    window: LocalWindow,
    continuity: Continuity,
    /// When it was opened.
    now: UnixTime,
}

impl Opened {
    /// What was found of earlier runs; with the store's high-water mark it makes the [`Blackout`].
    #[must_use]
    pub fn continuity(&self) -> &Continuity {
        &self.continuity
    }

    /// Starts to serve. The blackout is kept in the file, so that a restart does not forget it, and enforced by
    /// [`LocalWindow::insert`].
    ///
    /// # Errors
    ///
    /// The header cannot be written to the disk.
    pub fn start(mut self, blackout: Blackout) -> Result<LocalWindow, OpenError> {
        match self.window.start(blackout, self.now) {
            Ok(()) => Ok(self.window),
            Err(source) => Err(io_error(self.window.path(), "write", source)),
        }
    }
}

/// Opens the window of `params` at `now`, on this boot.
pub(super) fn open(params: &Params, now: UnixTime, boot: Boot) -> Result<Opened, OpenError> {
    let Some(path) = &params.path else {
        return begin(params, None, Continuity::New, now, boot);
    };
    let failed = |action| move |source| io_error(path, action, source);
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(failed("open"))?;
    if !file.metadata().map_err(failed("open"))?.is_file() {
        return Err(OpenError::NotAWindow { path: path.into() });
    }
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(OpenError::Locked { path: path.into() }),
        Err(TryLockError::Error(source)) => return Err(io_error(path, "lock", source)),
    }

    let continuity = match read_header(&file, path)? {
        None => Continuity::New,
        Some(Err(Damaged)) => Continuity::Untrusted {
            held_until: UnixTime(0),
            possible_until: now.after(params.window),
        },
        Some(Ok(header)) => {
            let same_boot = boot.id.is(header.boot());
            match header.stage() {
                Stage::New => Continuity::New,
                // Found before and not settled: the bound stays what it was then.
                Stage::Untrusted => Continuity::Untrusted {
                    held_until: UnixTime(header.get(Field::Highest)),
                    possible_until: UnixTime(header.get(Field::Lost)),
                },
                // What a killed process wrote is safe in this kernel; after another boot only a clean stop is.
                Stage::Settled if !same_boot && header.get(Field::Clean) == 0 => {
                    all_lost(&header, params, now)
                }
                Stage::Settled => {
                    match take_up(params, &file, &header, boot, now).map_err(failed("map"))? {
                        Ok(opened) => return Ok(opened),
                        Err(Damaged) => all_lost(&header, params, now),
                    }
                }
            }
        }
    };
    begin(params, Some((path, file)), continuity, now, boot)
}

/// Checks whether the file can be a window; changes nothing.
pub(super) fn check_file(path: &Path) -> Result<(), OpenError> {
    let file = File::options()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|source| io_error(path, "open", source))?;
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return Err(OpenError::NotAWindow { path: path.into() });
    }
    read_header(&file, path).map(drop)
}

/// The header, if the file is not empty.
fn read_header(file: &File, path: &Path) -> Result<Option<Result<Header, Damaged>>, OpenError> {
    let failed = |source| io_error(path, "read", source);
    let length = file.metadata().map_err(failed)?.len();
    if length == 0 {
        return Ok(None);
    }
    let mut page = [0; 4096];
    let read = usize::try_from(length).map_or(page.len(), |length| length.min(page.len()));
    file.read_exact_at(&mut page[..read], 0).map_err(failed)?;
    match Header::parse(&page[..read]) {
        Ok(header) => Ok(Some(Ok(header))),
        Err(HeaderError::Damaged) => Ok(Some(Err(Damaged))),
        Err(HeaderError::Foreign) => Err(OpenError::NotAWindow { path: path.into() }),
        Err(HeaderError::Newer(version)) => Err(OpenError::NewerVersion {
            path: path.into(),
            version,
        }),
    }
}

/// What is found if nothing of the file counts but its header.
fn all_lost(header: &Header, params: &Params, now: UnixTime) -> Continuity {
    let held_until = UnixTime(header.get(Field::Highest).max(header.get(Field::Lost)));
    // The window of the earlier run counts if it was the wider one.
    let earlier = Duration::from_secs(header.get(Field::Window));
    Continuity::Untrusted {
        held_until,
        possible_until: now.after(earlier.max(params.window)).max(held_until),
    }
}

/// Makes a window of what the file holds.
fn take_up(
    params: &Params,
    file: &File,
    header: &Header,
    boot: Boot,
    now: UnixTime,
) -> io::Result<Result<Opened, Damaged>> {
    let length = file.metadata()?.len() / BLOCK_BYTES as u64;
    if length < header.get(Field::Blocks) {
        return Ok(Err(Damaged));
    }
    let blocks = usize::try_from(length).map_err(io::Error::other)?;
    let mut map = Map::of_file(file.try_clone()?, blocks, reserved_blocks(params))?;
    // Ticks of this boot go on; of another boot, or from a clock that was set back, all count from now.
    let began = boot.uptime.unwrap_or(0);
    let same_boot = boot.id.is(header.boot());
    let tick = |noted: u64| if same_boot { noted.min(began) } else { began };
    let floor = header.get(Field::Floor);
    let Ok(recovered) = recover(&map, &header.key, floor, tick) else {
        return Ok(Err(Damaged));
    };
    let used = recovered.used_blocks - HEADER_BLOCKS;
    let kept = HEADER_BLOCKS + used.next_multiple_of(GROWTH_BLOCKS);
    if let Some(block) = map.block(0) {
        let blocks = kept.min(map.blocks()) as u64;
        header::write(block, &header.key, Field::Blocks, blocks);
    }
    map.shrink(kept)?;
    let lost_until = header.get(Field::Lost);
    Ok(Ok(Opened {
        continuity: Continuity::Continued {
            entries: recovered.entries,
            mark: UnixTime(header.get(Field::Mark)),
            lost_until: (lost_until > 0).then_some(UnixTime(lost_until)),
        },
        window: LocalWindow::new(params, map, header.key, recovered, floor, boot),
        now,
    }))
}

/// Makes a window without a nonce, or empties one. The new header is on the disk before the rest goes: whenever the
/// machine stops, either the old file is there or one that says what was lost.
fn begin(
    params: &Params,
    file: Option<(&PathBuf, File)>,
    continuity: Continuity,
    now: UnixTime,
    boot: Boot,
) -> Result<Opened, OpenError> {
    let mut header = Header::fresh(random_key()?, boot.id);
    if let Continuity::Untrusted {
        held_until,
        possible_until,
    } = continuity
    {
        header.set(Field::Stage, Stage::Untrusted as u64);
        header.set(Field::Highest, held_until.0);
        header.set(Field::Lost, possible_until.0);
    }
    let reserved = reserved_blocks(params);
    let map = match file {
        Some((path, file)) => {
            let failed = |action| move |source| io_error(path, action, source);
            file.write_all_at(&header.page(), 0)
                .and_then(|()| file.sync_all())
                .and_then(|()| file.set_len((HEADER_BLOCKS * BLOCK_BYTES) as u64))
                .map_err(failed("write"))?;
            Map::of_file(file, HEADER_BLOCKS, reserved).map_err(failed("map"))?
        }
        None => {
            let map = Map::anonymous(HEADER_BLOCKS, reserved)
                .map_err(|source| io_error(Path::new(ANONYMOUS), "reserve memory for", source))?;
            if let Some(block) = map.block(0) {
                header.write_to(block);
            }
            map
        }
    };
    Ok(Opened {
        window: LocalWindow::new(params, map, header.key, Recovered::default(), 0, boot),
        continuity,
        now,
    })
}

/// Address space for the largest window: segments at half their fill (after a split they have a little more), and the
/// one segment that each shard needs for a second however few nonces it has. Entries stay up to two windows and lie
/// up to one ahead. A reload may change the length, so the longest one counts; what is not used costs no memory.
fn reserved_blocks(params: &Params) -> usize {
    let shards = SHARDS as u64;
    let seconds = params
        .window
        .max(LONGEST)
        .as_secs()
        .saturating_mul(4)
        .saturating_add(1024);
    let begun = params.max_entries.min(seconds.saturating_mul(shards));
    let blocks = (params.max_entries / (SLOTS as u64 / 2))
        .saturating_add(begun)
        .saturating_add((HEADER_BLOCKS + GROWTH_BLOCKS) as u64);
    // Blocks are numbered by 32 bits: two terabytes.
    usize::try_from(blocks.min(u64::from(u32::MAX))).unwrap_or(usize::MAX)
}

fn random_key() -> Result<[u64; 2], OpenError> {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| OpenError::Random)?;
    let (words, _) = bytes.as_chunks();
    Ok([u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])])
}

fn io_error(path: &Path, action: &'static str, source: io::Error) -> OpenError {
    OpenError::Io {
        path: path.into(),
        action,
        source,
    }
}
