//! `health`: asks the running process for its state, for container health checks.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    time::Duration,
};

use crate::{
    cli::context::{CommandError, ConfigArgs, Output},
    run::app::listeners::api_loop,
    wire::address::ListenAddress,
};

/// Asks the running process; exit code 0 if it is healthy, else 1, or 2 if the configuration is invalid.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Ask whether it is ready for work, not only alive
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
    match open_page(&address, page)? {
        (200, _) => Ok(Output::default()),
        (status, reason) => Err(CommandError::failed(format!(
            "{page} answers {status}: {reason}"
        ))),
    }
}

/// Status and body of a page of the admin listener that needs no token.
///
/// # Errors
/// The connection fails.
pub(in crate::cli) fn open_page(
    address: &ListenAddress,
    page: &str,
) -> Result<(u16, String), CommandError> {
    ask(address, page, "").map_err(|error| {
        let text = format!("{page} on {address}: {error}; is serve running?");
        CommandError::failed(text)
    })
}

/// Asks the admin listener for a page, by a request with these fields, and returns status and body.
///
/// # Errors
/// The connection fails.
pub(in crate::cli) fn ask(
    address: &ListenAddress,
    page: &str,
    fields: &str,
) -> std::io::Result<(u16, String)> {
    let line = format!("GET {page} HTTP/1.1");
    match address {
        ListenAddress::Tcp(address) => {
            // A wildcard address is reached by loopback.
            let address = SocketAddr::new(api_loop::reached(address.ip()), address.port());
            let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            exchange(stream, &line, &address.to_string(), fields)
        }
        ListenAddress::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            exchange(stream, &line, "localhost", fields)
        }
    }
}

/// Sends a request with these `fields`, each with its line end, and returns status and body of the response, which ends the
/// connection.
///
/// # Errors
/// The connection fails.
pub(in crate::cli) fn exchange(
    mut stream: impl Read + Write,
    line: &str,
    host: &str,
    fields: &str,
) -> std::io::Result<(u16, String)> {
    /// The longest response: the reasons of a consumer, each with its longest texts.
    const LONGEST: u64 = 1 << 20;

    write!(
        stream,
        "{line}\r\nHost: {host}\r\nConnection: close\r\n{fields}\r\n"
    )?;
    let mut response = String::new();
    stream.take(LONGEST).read_to_string(&mut response)?;
    let status = response.split(' ').nth(1);
    let status = status.and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = response.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok((status, body.trim().to_owned()))
}
