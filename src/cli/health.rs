//! `health`: asks the running process how it is, for container health checks.

use std::{
    io::{Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use super::{context::config_path, serve::say};
use crate::config::{self, ListenAddress};

/// Asks the running process; exit code 0 if it is well, else 1.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Whether it is ready for work, rather than merely alive
    #[arg(long)]
    ready: bool,
    /// The configuration file [default: $COUNTERSIGN_CONFIG, else ./config.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

const TIMEOUT: Duration = Duration::from_secs(3);

/// Asks.
#[must_use]
pub fn run(args: Args) -> ExitCode {
    let config = match config::load(&config_path(args.config), std::env::vars_os()) {
        Ok(config) => config,
        Err(problems) => {
            say(&problems.to_string());
            return ExitCode::from(2);
        }
    };
    let page = if args.ready { "/readyz" } else { "/healthz" };
    match ask(&config.admin.listen, page) {
        Ok((200, _)) => ExitCode::SUCCESS,
        Ok((status, reason)) => {
            say(&format!("countersign: {page} answers {status}: {reason}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            say(&format!(
                "countersign: {page} on {}: {error}; is serve running?",
                config.admin.listen
            ));
            ExitCode::FAILURE
        }
    }
}

fn ask(address: &ListenAddress, page: &str) -> std::io::Result<(u16, String)> {
    match address {
        ListenAddress::Tcp(address) => {
            let address = reachable(*address);
            let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            exchange(stream, &address.to_string(), page)
        }
        ListenAddress::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            exchange(stream, "localhost", page)
        }
    }
}

/// Where a listener on every address is reached from the same machine.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    address
}

fn exchange(
    mut stream: impl Read + Write,
    host: &str,
    page: &str,
) -> std::io::Result<(u16, String)> {
    write!(
        stream,
        "GET {page} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.take(64 * 1024).read_to_string(&mut answer)?;
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok((status, body.trim().to_owned()))
}
