//! The kernel's data about the running program.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use rustix::process::Pid;

use crate::support::{Proxy, until};

/// The program as a process.
pub(crate) struct Process(PathBuf);

impl Process {
    pub(crate) fn of(proxy: &Proxy) -> Self {
        Self(format!("/proc/{}", proxy.pid().as_raw_nonzero()).into())
    }

    /// The number of open descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(self.0.join("fd")).unwrap().count()
    }

    /// The names of its threads.
    pub(crate) fn threads(&self) -> Vec<String> {
        let tasks = fs::read_dir(self.0.join("task")).unwrap().flatten();
        // A thread may end meanwhile.
        let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
        tasks
            .filter_map(name)
            .map(|name| name.trim_end().to_owned())
            .collect()
    }

    /// Waits until there are at most `at_most` descriptors.
    #[track_caller]
    pub(crate) fn falls_to(&self, at_most: usize) {
        let limit = Duration::from_secs(60);
        let start = Instant::now();
        while self.descriptors() > at_most {
            let open = self.descriptors();
            assert!(
                start.elapsed() < limit,
                "{open} descriptors stay open, of which there were {at_most}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Processor time so far, in ticks of a hundredth of a second.
    pub(crate) fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(self.0.join("stat")).unwrap();
        let after_name = stat.rsplit_once(')').unwrap().1;
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// Processor time that the process uses during `period`.
    pub(crate) fn ticks_within(&self, period: Duration) -> u64 {
        let before = self.ticks();
        std::thread::sleep(period);
        self.ticks() - before
    }

    /// Memory in use, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.status("VmRSS:")
    }

    /// The most memory that was in use since [`Self::forget_peak`], in bytes.
    pub(crate) fn peak_memory(&self) -> usize {
        self.status("VmHWM:")
    }

    /// Resets the measured peak.
    pub(crate) fn forget_peak(&self) {
        fs::write(self.0.join("clear_refs"), "5").unwrap();
    }

    fn status(&self, name: &str) -> usize {
        let status = fs::read_to_string(self.0.join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kibibytes = line.unwrap().split_whitespace().next().unwrap();
        kibibytes.parse::<usize>().unwrap() * 1024
    }
}

/// Waits until the proxy counts this many open connections of callers.
#[track_caller]
pub(crate) fn connections_become(proxy: &Proxy, count: f64) {
    let what = format!("countersign_connections is {count}");
    until(&what, || proxy.metric("countersign_connections") == count);
}

/// Raises the descriptor limit of this process, which plays all the callers, as far as it may.
pub(crate) fn allow_many_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// A thread of the program that does not run until this is dropped, while all others do. A signal would stop them all, so it
/// is stopped as a debugger does.
pub(crate) struct HungThread(Pid);

impl HungThread {
    /// Stops the thread of this name.
    #[track_caller]
    pub(crate) fn of(proxy: &Proxy, name: &str) -> Self {
        let threads = Process::of(proxy).0.join("task");
        let threads = fs::read_dir(threads).unwrap().map(Result::unwrap);
        let is_named = |thread: &fs::DirEntry| {
            fs::read_to_string(thread.path().join("comm"))
                .unwrap()
                .trim_end()
                == name
        };
        let mut named = threads.filter(is_named);
        let thread = named.next().expect("the thread").file_name();
        let thread = Self(Pid::from_raw(thread.to_str().unwrap().parse().unwrap()).unwrap());
        thread.trace(libc::PTRACE_SEIZE);
        thread.trace(libc::PTRACE_INTERRUPT);
        let mut status = 0;
        #[expect(unsafe_code, reason = "no crate waits for threads that it traces")]
        // SAFETY: `status` lives longer than the call.
        let stopped =
            unsafe { libc::waitpid(thread.0.as_raw_nonzero().get(), &mut status, libc::__WALL) };
        assert!(
            stopped > 0 && libc::WIFSTOPPED(status),
            "{stopped} {status}"
        );
        thread
    }

    fn trace(&self, request: libc::c_uint) {
        #[expect(unsafe_code, reason = "no crate traces threads")]
        // SAFETY: none of the requests made here reads or writes memory.
        let traced = unsafe { libc::ptrace(request, self.0.as_raw_nonzero().get(), 0, 0) };
        assert_eq!(traced, 0, "{}", std::io::Error::last_os_error());
    }
}

impl Drop for HungThread {
    fn drop(&mut self) {
        self.trace(libc::PTRACE_DETACH);
    }
}
