//! The byte stream of a connection, of whatever kind.

use std::{
    io,
    os::fd::AsFd as _,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{RecvFlags, recv},
};
use rustls::{ClientConfig, pki_types::ServerName};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::{TlsConnector, TlsStream};

/// The name of HTTP/2 in ALPN (RFC 9113 §3.2).
pub const HTTP2: &[u8] = b"h2";

/// A connection to a caller, to the API or to another service; one type, so that the code above is compiled once.
#[derive(Debug)]
pub enum Stream {
    /// TCP without TLS.
    Tcp(TcpStream),
    /// TLS over TCP; boxed, since its state is large and the other kinds are not.
    Tls(Box<TlsStream<TcpStream>>),
    /// A Unix socket.
    Unix(UnixStream),
    /// The memory of a test.
    #[cfg(any(test, fuzzing))]
    Memory(tokio::io::DuplexStream),
}

/// What has arrived on a connection and was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// Nothing; the connection is open.
    Nothing,
    /// Bytes, and no end so far.
    Bytes,
    /// The end or an error, perhaps after bytes.
    End,
}

/// The same call for each kind of stream.
macro_rules! each {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream {
            Stream::Tcp($inner) => $call,
            Stream::Tls($inner) => $call,
            Stream::Unix($inner) => $call,
            #[cfg(any(test, fuzzing))]
            Stream::Memory($inner) => $call,
        }
    };
}

/// Why a TLS handshake with a server has failed, where old servers fail, and the fix.
#[derive(Debug, Error)]
#[error("{problem}")]
pub struct HandshakeError {
    problem: &'static str,
    #[source]
    cause: io::Error,
}

impl HandshakeError {
    /// Names the error of a handshake, if it has a name; any other is returned as it is.
    pub fn named(error: io::Error) -> io::Error {
        match tls_error(&error).and_then(handshake_problem) {
            Some(problem) => {
                let kind = error.kind();
                let cause = error;
                io::Error::new(kind, Self { problem, cause })
            }
            None => error,
        }
    }
}

/// The error of TLS inside an error of a connection.
pub fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    let inner = error.get_ref()?;
    match inner.downcast_ref::<HandshakeError>() {
        Some(named) => tls_error(&named.cause),
        None => inner.downcast_ref(),
    }
}

fn handshake_problem(error: &rustls::Error) -> Option<&'static str> {
    use rustls::{
        AlertDescription as Alert,
        CertificateError::{self as Invalid, NotValidForNameContext as OtherName},
        Error::{AlertReceived, InvalidCertificate, InvalidMessage, PeerIncompatible},
        PeerIncompatible as Lacks,
    };
    Some(match error {
        InvalidMessage(_) => {
            "the server does not speak TLS on that port: write http:// (redis:// for Redis), or the port of TLS"
        }
        AlertReceived(Alert::ProtocolVersion)
        | PeerIncompatible(Lacks::ServerDoesNotSupportTls12Or13)
        | PeerIncompatible(Lacks::ServerTlsVersionIsDisabledByOurConfig) => {
            "the server speaks TLS 1.1 or older, and TLS 1.2 is needed: update it, or put a TLS proxy on its machine in front of it"
        }
        AlertReceived(Alert::HandshakeFailure | Alert::InsufficientSecurity) => {
            "the server accepts none of our ciphers, or demands a client certificate: allow TLS 1.3, or ECDHE with AES-GCM \
             or ChaCha20 in TLS 1.2, or put a TLS proxy on its machine in front of it"
        }
        AlertReceived(Alert::CertificateRequired) => "the server demands a client certificate",
        InvalidCertificate(OtherName { presented, .. }) if presented.is_empty() => {
            "the certificate has no subjectAltName, and its common name does not count: make one with subjectAltName, or \
             trust this very certificate"
        }
        InvalidCertificate(Invalid::Other(other)) => match other.0.downcast_ref()? {
            webpki::Error::CaUsedAsEndEntity => {
                "the certificate is an authority's: make one with basicConstraints=CA:FALSE, or trust this very certificate"
            }
            webpki::Error::UnsupportedCertVersion => {
                "the certificate has version 1: make one of version 3, or trust this very certificate"
            }
            _ => return None,
        },
        InvalidCertificate(Invalid::BadSignature) => {
            "a signature is wrong: another authority of the same name made the certificate, its key is another one, or it is RSA with \
             fewer than 2,048 bits: trust the right authority, or make a new key and certificate"
        }
        _ => return None,
    })
}

impl Stream {
    /// Performs the TLS handshake with a server whose certificate must have `name`.
    ///
    /// # Errors
    /// The connection's, and a [`rustls::Error`] inside.
    pub async fn secure(
        stream: TcpStream,
        config: &Arc<ClientConfig>,
        name: &ServerName<'static>,
    ) -> io::Result<Self> {
        let connector = TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(name.clone(), stream).await;
        let stream = stream.map_err(HandshakeError::named)?;
        Ok(Self::Tls(Box::new(stream.into())))
    }

    /// The TCP connection below, if there is one.
    pub fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Tls(stream) => Some(stream.get_ref().0),
            Self::Unix(_) => None,
            #[cfg(any(test, fuzzing))]
            Self::Memory(_) => None,
        }
    }

    /// Whether ALPN agreed on HTTP/2; `None` without TLS.
    pub(super) fn alpn_http2(&self) -> Option<bool> {
        match self {
            Self::Tls(stream) => Some(stream.get_ref().1.alpn_protocol() == Some(HTTP2)),
            _ => None,
        }
    }

    /// Asks the system what has arrived, since a task that reads may not have run yet. Nothing is read, and nothing waits.
    pub(super) fn unread_now(&self) -> Unread {
        let socket = match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Tls(stream) => stream.get_ref().0.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            #[cfg(any(test, fuzzing))]
            Self::Memory(_) => return Unread::Nothing,
        };
        // Takes two thirds of the time of `poll`, but does not see an end after bytes.
        let peeked = recv(socket, &mut [0], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        if peeked.is_err_and(|error| error == Errno::AGAIN) {
            return Unread::Nothing;
        }
        let mut socket = [PollFd::from_borrowed_fd(
            socket,
            PollFlags::IN | PollFlags::RDHUP,
        )];
        let no_wait = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let found = poll(&mut socket, Some(&no_wait)).map(|_| socket[0].revents());
        match found {
            Ok(events) if events == PollFlags::IN => Unread::Bytes,
            _ => Unread::End,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self.get_mut(), stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self.get_mut(), stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self.get_mut(), stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self.get_mut(), stream => Pin::new(stream).poll_shutdown(context))
    }
}

#[cfg(test)]
mod tests {
    use rustls::RootCertStore;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;
    use crate::base::network::tls::client_config;

    #[tokio::test]
    async fn a_server_without_tls_is_told_from_one_that_closes() {
        for (answer, is_plain) in [
            (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], true),
            (b"", false),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let server = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.write_all(answer).await.unwrap();
            });
            let (config, _) = client_config(RootCertStore::empty(), Vec::new(), None).unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            let stream = TcpStream::connect(address).await.unwrap();
            let error = Stream::secure(stream, &Arc::new(config), &name)
                .await
                .unwrap_err();
            let told = error.to_string();
            assert_eq!(told.contains("does not speak TLS"), is_plain, "{told}");
            server.await.unwrap();
        }
    }

    #[tokio::test]
    async fn what_has_arrived_is_known_until_it_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut stream = Stream::Tcp(TcpStream::connect(address).await.unwrap());
        let (mut server, _) = listener.accept().await.unwrap();
        assert_eq!(stream.unread_now(), Unread::Nothing);
        for byte in 1..3 {
            server.write_u8(byte).await.unwrap();
            // The event loop has not looked since.
            assert_eq!(stream.unread_now(), Unread::Bytes);
            assert_eq!(stream.read_u8().await.unwrap(), byte);
            assert_eq!(stream.unread_now(), Unread::Nothing);
        }
        server.write_u8(3).await.unwrap();
        drop(server);
        assert_eq!(stream.unread_now(), Unread::End);
        assert_eq!(stream.read_u8().await.unwrap(), 3);
        assert_eq!(stream.unread_now(), Unread::End);
    }
}
