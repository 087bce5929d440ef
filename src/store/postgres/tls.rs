//! rustls under tokio-postgres.

use std::{
    convert::Infallible,
    error::Error,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustls::{ClientConfig, pki_types::ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Socket,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// Makes a connector for each host. Without a configuration it is never asked to connect.
#[derive(Clone)]
pub(super) struct MakeTls(pub(super) Option<Arc<ClientConfig>>);

pub(super) struct Connect {
    tls: Option<Arc<ClientConfig>>,
    host: String,
}

/// An encrypted connection.
pub(super) struct Encrypted(Box<TlsStream<Socket>>);

impl MakeTlsConnect<Socket> for MakeTls {
    type Stream = Encrypted;
    type TlsConnect = Connect;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<Connect, Infallible> {
        Ok(Connect {
            tls: self.0.clone(),
            host: host.to_owned(),
        })
    }
}

impl TlsConnect<Socket> for Connect {
    type Stream = Encrypted;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Encrypted, Self::Error>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let tls = self.tls.ok_or("the connection is not to be encrypted")?;
            let name = ServerName::try_from(self.host)?;
            let stream = TlsConnector::from(tls).connect(name, socket).await?;
            Ok(Encrypted(Box::new(stream)))
        })
    }
}

impl tokio_postgres::tls::TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        // The name in the certificate is checked; binding would need the hash of the certificate's own signature.
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}
