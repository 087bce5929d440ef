//! The number of callers and requests that the process's file descriptors allow.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Descriptors that are not callers': the store, the listeners, the admin listener's connections, a reload.
const OWN: u64 = 64;

/// Those of the store, the nonce windows, the admin listener and one caller; a worker has [`OF_WORKER`], and one for each
/// address.
const AT_LEAST: u64 = 32;
const OF_WORKER: u64 = 4;

/// The number without which the program does not start, if the process may not have as many.
pub(in crate::run::app) fn missing(
    limit: Option<u64>,
    workers: usize,
    addresses: usize,
) -> Option<u64> {
    let needed = AT_LEAST + workers as u64 * (OF_WORKER + addresses as u64);
    limit.filter(|limit| *limit < needed).map(|_| needed)
}

/// Lets the process have as many descriptors as it may.
pub(in crate::run::app) fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the descriptor limit stays as it is");
    }
}

/// The number of descriptors that the process may have, if there is a limit.
pub(in crate::run::app) fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// The number of callers' connections, and of concurrent requests, that `descriptors` allow, at most `wanted`. Each
/// request may need a connection to the API. With more than that, idle callers, or the streams of one HTTP/2 caller,
/// could take the descriptors that other callers and the operator need.
pub(in crate::run::app) fn at_most(wanted: usize, descriptors: Option<u64>) -> usize {
    let Some(descriptors) = descriptors else {
        return wanted;
    };
    let served = descriptors.saturating_sub(OWN) / 2;
    usize::try_from(served).map_or(wanted, |served| wanted.min(served.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_descriptors_serve_is_let_in() {
        for (descriptors, wanted, served) in [
            (None, 10_000, 10_000),
            (Some(1_048_576), 10_000, 10_000),
            (Some(20_064), 10_000, 10_000),
            (Some(1_024), 10_000, 480),
            (Some(1_024), 100, 100),
            (Some(10), 100, 1),
        ] {
            assert_eq!(at_most(wanted, descriptors), served);
        }
    }
}
