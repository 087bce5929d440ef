//! The metrics of the process that all libraries for Prometheus name alike, read from the system at each scrape.

use std::{fs, io, sync::atomic::Ordering::Relaxed};

use rustix::process::{Resource, getrlimit};

use super::Metrics;

/// The unit of times in `/proc`, the same on each processor that this program is built for. `rustix::param` would read it from
/// a place that valgrind, which counts the instructions of a request, does not have.
const TICKS_PER_SECOND: i64 = 100;

/// Sets the metrics that change; what the system does not tell stays zero.
pub(super) fn refresh(metrics: &Metrics) {
    let ticks = ticks(14).zip(ticks(15)).map(|(user, system)| user + system);
    let seconds = ticks.unwrap_or_default() as f64 / TICKS_PER_SECOND as f64;
    // The bits of two times are in the order of the times, so that another scrape at this moment cannot set it back.
    let cpu = metrics.cpu.inner();
    cpu.fetch_max(seconds.to_bits(), Relaxed);
    let limit = getrlimit(Resource::Nofile).current;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |name| line(&status, name).map(|kib| kib * 1024);
    for (gauge, value) in [
        (&metrics.open_fds, open_descriptors().ok()),
        (
            &metrics.max_fds,
            limit.and_then(|most| most.try_into().ok()),
        ),
        (&metrics.virtual_memory, bytes("VmSize:")),
        (&metrics.resident_memory, bytes("VmRSS:")),
        (&metrics.threads, line(&status, "Threads:")),
    ] {
        gauge.set(value.unwrap_or_default());
    }
}

/// The start of the process in seconds since 1970. The system derives it from its clock, so that it is read once.
pub(super) fn started() -> Option<i64> {
    let booted = line(&fs::read_to_string("/proc/stat").ok()?, "btime ")?;
    Some(booted + ticks(22)? / TICKS_PER_SECOND)
}

fn open_descriptors() -> io::Result<i64> {
    const DIRECTORY: &str = "/proc/self/fd";
    // Since Linux 6.2 the length is their number. Before, the directory must be readable, and adds one to its entries.
    let open = match fs::metadata(DIRECTORY)?.len() {
        0 => fs::read_dir(DIRECTORY)?.count() as u64 - 1,
        open => open,
    };
    Ok(open as i64)
}

/// A field of `/proc/self/stat`, by its number in proc_pid_stat(5).
fn ticks(field: usize) -> Option<i64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second one is the name of the program, which may have spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    fields.nth(field - 3)?.parse().ok()
}

/// The number after this beginning of a line.
fn line(text: &str, beginning: &str) -> Option<i64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(beginning))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn process_has_begun_and_uses_memory_and_descriptors() {
        let metrics = Metrics::default();
        refresh(&metrics);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let age = now.unwrap().as_secs() as i64 - metrics.start_time.get();
        assert!((-1..3600).contains(&age), "{age}");
        let resident = metrics.resident_memory.get();
        assert!((1_000_000..metrics.virtual_memory.get()).contains(&resident));
        let open = metrics.open_fds.get();
        assert!((3..metrics.max_fds.get()).contains(&open), "{open}");
        assert!(metrics.threads.get() >= 2);
        while metrics.cpu.get() == 0.0 {
            refresh(&metrics);
        }
    }
}
