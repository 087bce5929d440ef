//! The PROXY protocol, versions 1 and 2: before everything else, even TLS, a trusted proxy names the caller whose
//! connection it passes on (<https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>).

use std::{io, net::IpAddr};

use ppp::{v1, v2};
use thiserror::Error;
use tokio::{io::AsyncReadExt as _, net::TcpStream};

/// The first bytes, which distinguish the versions. No header is shorter.
const FIRST: usize = v2::PROTOCOL_PREFIX.len();
/// The longest header of version 1, in bytes.
const MAX_V1: usize = 107;
/// The longest header of version 2 that is read, in bytes: addresses, and extensions such as a caller's certificate names.
const MAX_V2: usize = 2048;

/// Why a connection has no usable header.
#[derive(Debug, Error)]
pub(in crate::wire::server) enum HeaderError {
    /// It begins with something else.
    #[error("it does not begin with a PROXY header")]
    Missing,
    /// It is longer than is read.
    #[error("its PROXY header is too long")]
    TooLong,
    /// It is malformed.
    #[error("its PROXY header is malformed: {0}")]
    V1(#[from] v1::BinaryParseError),
    /// It is malformed.
    #[error("its PROXY header is malformed: {0}")]
    V2(#[from] v2::ParseError),
    /// The connection ended.
    #[error("its PROXY header cannot be read: {0}")]
    Read(#[from] io::Error),
}

/// Reads the header, and no byte more. Returns the caller's address, unless the connection is the proxy's own, as for a health
/// check, or the caller has no IP address.
///
/// # Errors
/// [`HeaderError`]
pub(in crate::wire::server) async fn read(
    stream: &mut TcpStream,
) -> Result<Option<IpAddr>, HeaderError> {
    let mut header = vec![0; FIRST];
    stream.read_exact(&mut header).await?;
    let source = if header == v2::PROTOCOL_PREFIX {
        read_v2(stream, &mut header).await?;
        let header = v2::Header::try_from(&header[..])?;
        match (header.command, header.protocol, header.addresses) {
            (v2::Command::Proxy, v2::Protocol::Stream, v2::Addresses::IPv4(ends)) => {
                Some(IpAddr::from(ends.source_address))
            }
            (v2::Command::Proxy, v2::Protocol::Stream, v2::Addresses::IPv6(ends)) => {
                Some(IpAddr::from(ends.source_address))
            }
            _ => None,
        }
    } else if header.starts_with(b"PROXY ") {
        read_v1(stream, &mut header).await?;
        match v1::Header::try_from(&header[..])?.addresses {
            v1::Addresses::Tcp4(ends) => Some(IpAddr::from(ends.source_address)),
            v1::Addresses::Tcp6(ends) => Some(IpAddr::from(ends.source_address)),
            v1::Addresses::Unknown => None,
        }
    } else {
        return Err(HeaderError::Missing);
    };
    Ok(source.map(|source| source.to_canonical()))
}

async fn read_v2(stream: &mut TcpStream, header: &mut Vec<u8>) -> Result<(), HeaderError> {
    header.resize(FIRST + 4, 0);
    stream.read_exact(&mut header[FIRST..]).await?;
    let length = usize::from(u16::from_be_bytes([header[FIRST + 2], header[FIRST + 3]]));
    if header.len() + length > MAX_V2 {
        return Err(HeaderError::TooLong);
    }
    header.resize(FIRST + 4 + length, 0);
    stream.read_exact(&mut header[FIRST + 4..]).await?;
    Ok(())
}

async fn read_v1(stream: &mut TcpStream, header: &mut Vec<u8>) -> Result<(), HeaderError> {
    while !header.ends_with(b"\n") {
        let known = header.len();
        if known == MAX_V1 {
            return Err(HeaderError::TooLong);
        }
        header.resize(MAX_V1, 0);
        // The bytes after the line belong to others.
        let arrived = stream.peek(&mut header[known..]).await?;
        let line = header[known..known + arrived]
            .iter()
            .position(|&byte| byte == b'\n');
        header.truncate(known + line.map_or(arrived.max(1), |end| end + 1));
        stream.read_exact(&mut header[known..]).await?;
    }
    Ok(())
}
