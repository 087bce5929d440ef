//! TCP connections to other hosts: all their addresses are tried, and a peer that is gone is noticed.

use std::{io, net::SocketAddr, time::Duration};

use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep},
};

use super::resolve;

/// RFC 8305 §5: "One recommended value for a default delay is 250 milliseconds."
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// The most addresses of a host that are tried.
const MAX_ADDRESSES: usize = 16;
/// A connection that was silent for this long is probed, and again at each interval.
const KEEP_ALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// The rules of connections to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialer {
    /// The time for which its last good addresses serve while its name cannot be resolved.
    pub stale_addresses: Duration,
    /// The time after which a peer that acknowledges nothing, not even a probe, or takes nothing, is gone.
    pub user_timeout: Duration,
}

impl Default for Dialer {
    fn default() -> Self {
        Self {
            stale_addresses: Duration::from_secs(60),
            user_timeout: Duration::from_secs(15),
        }
    }
}

impl Dialer {
    /// Connects to a host at the first of its addresses that responds. They share the time until `deadline`, at which the
    /// caller gives up.
    ///
    /// # Errors
    /// That of the lookup, or of the last address.
    pub async fn connect(&self, host: &str, port: u16, deadline: Instant) -> io::Result<TcpStream> {
        let addresses = resolve::addresses(host, self.stale_addresses).await?;
        let remaining = deadline.saturating_duration_since(Instant::now());
        let stream = race(in_turn(&addresses, port), remaining).await?;
        stream.set_nodelay(true)?;
        let socket = SockRef::from(&stream);
        let probes = TcpKeepalive::new()
            .with_time(KEEP_ALIVE_IDLE)
            .with_interval(KEEP_ALIVE_INTERVAL);
        socket.set_tcp_keepalive(&probes)?;
        // Linux also ends a connection by this time when probes stay without a response.
        socket.set_tcp_user_timeout(Some(self.user_timeout))?;
        Ok(stream)
    }
}

/// The addresses with their port, IPv6 and IPv4 in turn, beginning with the family of the first (RFC 8305 §4).
fn in_turn(addresses: &[SocketAddr], port: u16) -> Vec<SocketAddr> {
    let is_ipv6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<SocketAddr>, Vec<_>) = addresses
        .iter()
        .copied()
        .partition(|address| address.is_ipv6() == is_ipv6);
    let mut others = second.into_iter();
    let mut all = Vec::with_capacity(addresses.len());
    for address in first {
        all.push(address);
        all.extend(others.next());
    }
    all.extend(others);
    all.truncate(MAX_ADDRESSES);
    for address in &mut all {
        address.set_port(port);
    }
    all
}

/// Connects to the first address that responds; all are tried within `time`. Each attempt gets [`ATTEMPT_DELAY`] before the
/// next one begins beside it, or less if all of them could not begin in time otherwise.
///
/// `HttpConnector` of hyper-util tries the addresses of one family one after the other, each for its share of the time:
/// one dead address of two would cost each connection half of `upstream.connect_timeout`.
async fn race(addresses: Vec<SocketAddr>, time: Duration) -> io::Result<TcpStream> {
    let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    let delay = ATTEMPT_DELAY.min(time / count);
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let mut attempts = JoinSet::new();
    let mut waiting = addresses.into_iter();
    loop {
        match waiting.next() {
            Some(address) => drop(attempts.spawn(TcpStream::connect(address))),
            None if attempts.is_empty() => return Err(last),
            None => {}
        }
        let is_last = waiting.len() == 0;
        tokio::select! {
            Some(ended) = attempts.join_next() => match ended {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = error,
                Err(_) => {}
            },
            () = sleep(delay), if !is_last => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn families_take_turns() {
        let addresses = |text: &str| -> Vec<SocketAddr> {
            let parse = |address: &str| SocketAddr::new(address.parse().unwrap(), 0);
            text.split(' ').map(parse).collect()
        };
        for (found, order) in [
            ("::1 ::2 ::3 10.0.0.1", "::1 10.0.0.1 ::2 ::3"),
            (
                "10.0.0.1 10.0.0.2 ::1 ::2 ::3",
                "10.0.0.1 ::1 10.0.0.2 ::2 ::3",
            ),
            ("10.0.0.2 10.0.0.1", "10.0.0.2 10.0.0.1"),
        ] {
            assert_eq!(in_turn(&addresses(found), 0), addresses(order), "{found}");
        }
        let many = vec![SocketAddr::from(([10, 0, 0, 1], 0)); 100];
        let tried = in_turn(&many, 80);
        assert_eq!(tried.len(), MAX_ADDRESSES);
        assert!(tried.iter().all(|address| address.port() == 80));
    }

    #[tokio::test]
    async fn a_connection_has_probes_and_a_limit_on_silence() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let dialer = Dialer {
            user_timeout: Duration::from_secs(42),
            ..Dialer::default()
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        let stream = dialer.connect("127.0.0.1", port, deadline).await.unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEP_ALIVE_IDLE);
        assert_eq!(
            socket.tcp_keepalive_interval().unwrap(),
            KEEP_ALIVE_INTERVAL
        );
        let limit = socket.tcp_user_timeout().unwrap();
        assert_eq!(limit, Some(dialer.user_timeout));
        assert!(stream.nodelay().unwrap());
    }
}
