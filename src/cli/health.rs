//! `health`: asks the running process for its state, for container health checks.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    time::Duration,
};

use super::context::{CommandError, ConfigArgs, Output};
use crate::{app::own, config::ListenAddress};

/// Asks the running process; exit code 0 if it is healthy, else 1.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Whether it is ready for work, rather than merely alive
    #[arg(long)]
    ready: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

const TIMEOUT: Duration = Duration::from_secs(3);

/// Asks.
///
/// # Errors
/// The configuration is invalid, or the process is not healthy or not ready.
pub fn run(args: &Args) -> Result<Output, CommandError> {
    let address = args.config.load()?.admin.listen;
    let page = if args.ready { "/readyz" } else { "/healthz" };
    match ask(&address, page) {
        Ok((200, _)) => Ok(Output::default()),
        Ok((status, reason)) => Err(CommandError::failed(format!(
            "{page} answers {status}: {reason}"
        ))),
        Err(error) => Err(CommandError::failed(format!(
            "{page} on {address}: {error}; is serve running?"
        ))),
    }
}

fn ask(address: &ListenAddress, page: &str) -> std::io::Result<(u16, String)> {
    match address {
        ListenAddress::Tcp(address) => {
            // A wildcard address is reached by loopback.
            let address = SocketAddr::new(own::reached(address.ip()), address.port());
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

fn exchange(
    mut stream: impl Read + Write,
    host: &str,
    page: &str,
) -> std::io::Result<(u16, String)> {
    write!(
        stream,
        "GET {page} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut response = String::new();
    stream.take(64 * 1024).read_to_string(&mut response)?;
    let status = response.split(' ').nth(1);
    let status = status.and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = response.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok((status, body.trim().to_owned()))
}
