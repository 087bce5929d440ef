//! Opens the window: makes the file or takes it up, and finds out whether its content can be relied on.

use std::{
    fs::{File, TryLockError},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use thiserror::Error;

use super::{
    boot::Boot,
    gap::{Continuity, Gap},
    header::{
        self, Damaged, FORMAT_VERSION, Field, FileKey, HEADER_BLOCKS, Header, Origin, Refusal,
    },
    local::LocalWindow,
    map::{BLOCK_BYTES, GROWTH_BLOCKS, Map},
    recover::{Recovered, recover},
    segment::SLOTS,
    shard::SHARDS,
};
use crate::clock::UnixTime;

/// The longest window that a configuration may ask for.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// How a local window is to be.
#[derive(Debug, Clone)]
pub struct Params {
    /// The file; it is made with mode 0600 if it is missing. On a tmpfs it survives the process as well, and no insertion
    /// ever waits for a disk. `None`: anonymous memory, which dies with the process.
    pub path: Option<PathBuf>,
    /// How far a timestamp may be from the clock, either way, until [`LocalWindow::set_length`] changes it.
    pub window: Duration,
    /// How many nonces are held at most; past it insertions are refused as [`super::Insertion::Full`].
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
    /// The operating system refuses.
    #[error("cannot {action} the nonce window {}; check nonce.path, its directory, and the room there", path.display())]
    Io {
        /// The file; `anonymous memory` if there is none.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The system gives no random key.
    #[error("the system's random generator fails")]
    Random,
}

/// A window that is open and does not serve yet: first it must be settled what may have been lost.
pub struct Opened {
    window: LocalWindow,
    continuity: Continuity,
    path: PathBuf,
    /// When it was opened.
    now: UnixTime,
}

impl Opened {
    /// What was found of earlier runs; with the store's mark it makes the [`Gap`].
    #[must_use]
    pub fn continuity(&self) -> &Continuity {
        &self.continuity
    }

    /// Starts to serve. The gap is kept in the file, so that a restart does not forget it, and enforced by
    /// [`LocalWindow::insert`].
    ///
    /// # Errors
    ///
    /// The header cannot be written to the disk.
    pub fn start(mut self, gap: Gap) -> Result<LocalWindow, OpenError> {
        match self.window.settle(gap, self.now) {
            Ok(()) => Ok(self.window),
            Err(source) => Err(io_error(&self.path, "write", source)),
        }
    }
}

/// Opens the window of `params` at `now`, on this boot.
pub(super) fn open(params: &Params, now: UnixTime, boot: Boot) -> Result<Opened, OpenError> {
    match &params.path {
        Some(path) => open_file(params, path, now, boot),
        None => open_anonymous(params, now, boot),
    }
}

fn open_anonymous(params: &Params, now: UnixTime, boot: Boot) -> Result<Opened, OpenError> {
    let path = PathBuf::from("anonymous memory");
    let header = Header::fresh(random_key()?, boot.id, Origin::New);
    let map = Map::anonymous(HEADER_BLOCKS, reserved_blocks(params))
        .map_err(|source| io_error(&path, "reserve memory for", source))?;
    if let Some(block) = map.block(0) {
        header.write_to(block);
    }
    let window = LocalWindow::new(params, map, header.key, Recovered::empty(), 0, boot);
    Ok(Opened {
        window,
        continuity: Continuity::New,
        path,
        now,
    })
}

fn open_file(params: &Params, path: &Path, now: UnixTime, boot: Boot) -> Result<Opened, OpenError> {
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

    let judgement = judge(&file, params, path, now, boot)?;
    let (lost, facts) = match judgement {
        Judgement::Nothing => (None, None),
        Judgement::Unreliable(lost) => (Some(lost), None),
        Judgement::Content(facts) => (Some(facts.if_damaged), Some(facts)),
    };
    if let Some(facts) = facts {
        let taken_up = take_up(params, &file, &facts, boot)
            .map_err(failed("map"))?
            .map(|window| Opened {
                continuity: facts.continuity(window.entries()),
                window,
                path: path.into(),
                now,
            });
        if let Ok(opened) = taken_up {
            return Ok(opened);
        }
    }
    begin(params, path, file, lost, now, boot)
}

/// Looks whether the file can be a window.
pub(super) fn look_at(path: &Path) -> Result<(), OpenError> {
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

/// The header, if there is one and it is whole.
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
        Err(Refusal::Damaged) => Ok(Some(Err(Damaged))),
        Err(Refusal::Foreign) => Err(OpenError::NotAWindow { path: path.into() }),
        Err(Refusal::Newer(version)) => Err(OpenError::NewerVersion {
            path: path.into(),
            version,
        }),
    }
}

/// What a file turned out to be worth.
enum Judgement {
    /// Empty, or made by a start that never served.
    Nothing,
    /// Not to be relied on.
    Unreliable(Lost),
    /// A header that says that the rest is whole.
    Content(Facts),
}

/// Bounds of the timestamps whose nonces are lost, see [`Continuity::Untrusted`].
#[derive(Clone, Copy)]
struct Lost {
    held_until: u64,
    possible_until: u64,
}

/// What the header tells.
struct Facts {
    key: FileKey,
    floor: u64,
    blocks: u64,
    vouches_until: u64,
    lost_until: u64,
    same_boot: bool,
    if_damaged: Lost,
}

impl Facts {
    fn continuity(&self, entries: u64) -> Continuity {
        Continuity::Continued {
            entries,
            vouches_until: UnixTime(self.vouches_until),
            lost_until: (self.lost_until > 0).then_some(UnixTime(self.lost_until)),
        }
    }
}

fn judge(
    file: &File,
    params: &Params,
    path: &Path,
    now: UnixTime,
    boot: Boot,
) -> Result<Judgement, OpenError> {
    let judged = match read_header(file, path)? {
        None => return Ok(Judgement::Nothing),
        Some(header) => header.and_then(|header| weigh(&header, params, now, boot)),
    };
    Ok(judged.unwrap_or(Judgement::Unreliable(Lost {
        held_until: 0,
        possible_until: now.after(params.window).0,
    })))
}

fn weigh(
    header: &Header,
    params: &Params,
    now: UnixTime,
    boot: Boot,
) -> Result<Judgement, Damaged> {
    // All of them, also what this start does not need: one that is broken puts the rest in doubt.
    for field in Field::ALL {
        header.get(field)?;
    }
    let highest = header.get(Field::Highest)?;
    let lost_until = header.get(Field::Lost)?;
    // The window of the earlier run counts if it was the wider one.
    let earlier_window = Duration::from_secs(header.get(Field::Window)?);
    let reach = now.after(earlier_window.max(params.window)).0;
    let lost = Lost {
        held_until: highest.max(lost_until),
        possible_until: reach.max(highest).max(lost_until),
    };
    let same_boot = boot.id.is(header.boot());
    Ok(match header.origin()? {
        Origin::New => Judgement::Nothing,
        // Found before and not settled: the bound stays what it was then.
        Origin::Untrusted => Judgement::Unreliable(Lost {
            held_until: highest,
            possible_until: lost_until,
        }),
        // What a killed process wrote is safe in this kernel; after another boot only a clean stop is.
        Origin::Settled if !same_boot && header.get(Field::Clean)? == 0 => {
            Judgement::Unreliable(lost)
        }
        Origin::Settled => Judgement::Content(Facts {
            key: header.key,
            floor: header.get(Field::Floor)?,
            blocks: header.get(Field::Blocks)?,
            vouches_until: header.get(Field::Vouches)?,
            lost_until,
            same_boot,
            if_damaged: lost,
        }),
    })
}

/// Makes a window of what the file holds.
fn take_up(
    params: &Params,
    file: &File,
    facts: &Facts,
    boot: Boot,
) -> io::Result<Result<LocalWindow, Damaged>> {
    let length = file.metadata()?.len() / BLOCK_BYTES as u64;
    if length < facts.blocks {
        return Ok(Err(Damaged));
    }
    let blocks = usize::try_from(length).map_err(io::Error::other)?;
    let mut map = Map::of_file(file.try_clone()?, blocks, reserved_blocks(params))?;
    // Ticks of this boot go on; of another boot, or from a clock that was set back, all count from now.
    let began = boot.uptime.unwrap_or(0);
    let tick = |noted: u64| {
        if facts.same_boot {
            noted.min(began)
        } else {
            began
        }
    };
    let Ok(recovered) = recover(&map, &facts.key, facts.floor, tick) else {
        return Ok(Err(Damaged));
    };
    let used = recovered.used_blocks - HEADER_BLOCKS;
    let kept = HEADER_BLOCKS + used.next_multiple_of(GROWTH_BLOCKS);
    if let Some(block) = map.block(0) {
        let blocks = kept.min(map.blocks()) as u64;
        header::write(block, &facts.key, Field::Blocks, blocks);
    }
    map.shrink(kept)?;
    Ok(Ok(LocalWindow::new(
        params,
        map,
        facts.key,
        recovered,
        facts.floor,
        boot,
    )))
}

/// Makes a file without a nonce, or empties one. The new header is on the disk before the rest goes: whenever the machine
/// stops, either the old file is there or one that tells what was lost.
fn begin(
    params: &Params,
    path: &Path,
    file: File,
    lost: Option<Lost>,
    now: UnixTime,
    boot: Boot,
) -> Result<Opened, OpenError> {
    let failed = |action| move |source| io_error(path, action, source);
    let origin = match lost {
        Some(_) => Origin::Untrusted,
        None => Origin::New,
    };
    let mut header = Header::fresh(random_key()?, boot.id, origin);
    if let Some(lost) = lost {
        header.set(Field::Highest, lost.held_until);
        header.set(Field::Lost, lost.possible_until);
    }
    file.write_all_at(&header.page(), 0)
        .and_then(|()| file.sync_all())
        .and_then(|()| file.set_len((HEADER_BLOCKS * BLOCK_BYTES) as u64))
        .map_err(failed("write"))?;
    let map = Map::of_file(file, HEADER_BLOCKS, reserved_blocks(params)).map_err(failed("map"))?;
    let window = LocalWindow::new(params, map, header.key, Recovered::empty(), 0, boot);
    let continuity = lost.map_or(Continuity::New, |lost| Continuity::Untrusted {
        held_until: UnixTime(lost.held_until),
        possible_until: UnixTime(lost.possible_until),
    });
    Ok(Opened {
        window,
        continuity,
        path: path.into(),
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
