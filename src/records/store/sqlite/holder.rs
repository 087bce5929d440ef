//! Names the process that writes to the file, for those that wait for it.

use std::{fs, os::unix::fs::MetadataExt, path::Path, time::Duration};

use rustix::param::clock_ticks_per_second;

use crate::{base::clock::Clock, telemetry::log::lines::visible};

/// The byte of the `-shm` file that SQLite locks for the one that writes (`WAL_WRITE_LOCK`).
const WRITE_LOCK: u64 = 120;

/// The process that holds the lock of the writer; `None` if the kernel does not tell, as other than Linux and other
/// containers do not.
///
/// The list of locks is read, and the file is not opened: the process would lose its own locks when it closed the file again.
pub(super) fn writer(path: &Path) -> Option<String> {
    let mut shared = path.as_os_str().to_owned();
    shared.push("-shm");
    let inode = fs::metadata(shared).ok()?.ino();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let pid = locks.lines().find_map(|lock| holder(lock, inode))?;
    let command = command(&fs::read(format!("/proc/{pid}/cmdline")).ok()?);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split(' ').next()?.parse().ok()?;
    // The name of the program is in parentheses and may have spaces; the 20th word after it is the start.
    let started: f64 = stat.rsplit(") ").next()?.split(' ').nth(19)?.parse().ok()?;
    let age = uptime - started / clock_ticks_per_second() as f64;
    let since = Clock::system()
        .now()
        .before(Duration::from_secs_f64(age.max(0.0)));
    Some(format!("{command} (process {pid}, since {since})"))
}

/// The process of a line such as `1: POSIX  ADVISORY  WRITE 4711 fe:00:5678 120 120`, if it holds the lock of the writer of
/// this file.
fn holder(lock: &str, inode: u64) -> Option<u32> {
    let words: Vec<_> = lock.split_whitespace().collect();
    let [_, "POSIX", _, "WRITE", pid, file, first, last] = words[..] else {
        return None;
    };
    let is_file = file.rsplit(':').next()?.parse() == Ok(inode);
    let covered = first.parse().ok()?..=last.parse().ok()?;
    (is_file && covered.contains(&WRITE_LOCK)).then_some(pid.parse().ok()?)
}

/// The name of the program and its words before the first option, whose value may be a secret.
fn command(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let mut words = line.split('\0').filter(|word| !word.is_empty());
    let program = words.next().unwrap_or_default().rsplit('/').next();
    let words = words.take_while(|word| !word.starts_with('-'));
    let words: Vec<_> = program.into_iter().chain(words).collect();
    visible(&words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_the_process_that_has_the_byte_of_the_writer() {
        for (lock, expected) in [
            (
                "1: POSIX  ADVISORY  WRITE 4711 fe:00:5678 120 120",
                Some(4711),
            ),
            (
                "7: POSIX  ADVISORY  WRITE 4711 fe:00:5678 120 121",
                Some(4711),
            ),
            ("1: -> POSIX  ADVISORY  WRITE 4711 fe:00:5678 120 120", None),
            ("1: POSIX  ADVISORY  READ 4711 fe:00:5678 124 124", None),
            ("1: POSIX  ADVISORY  WRITE 4711 fe:00:5679 120 120", None),
            ("1: FLOCK  ADVISORY  WRITE 4711 fe:00:5678 0 EOF", None),
            ("1: POSIX  ADVISORY  WRITE 4711 fe:00:5678 0 EOF", None),
        ] {
            assert_eq!(holder(lock, 5678), expected, "{lock}");
        }
    }

    #[test]
    fn a_command_is_shown_without_its_options() {
        let line = b"/usr/bin/countersign\0import\0\x1b[2Jfile\0--token\0secret\0";
        let shown = command(line);
        assert!(
            shown.starts_with("countersign import ") && shown.ends_with("file"),
            "{shown}"
        );
        assert!(!shown.contains('\x1b'), "{shown}");
    }
}
