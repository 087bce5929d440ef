//! TLS on the public listener: certificates are chosen by name, and read again when their files change.

use std::{io, path::Path, sync::Arc};

use rustls::{
    HandshakeKind, ServerConfig, ServerConnection,
    crypto::aws_lc_rs,
    pki_types::CertificateDer,
    server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::CertifiedKey,
};
use thiserror::Error;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::settings::{ListenTlsSettings, ProtocolSettings};
use crate::{
    base::network::tls::{TlsFileError, certificates, certified_key, covers, roots},
    wire::{
        stream::{HTTP2, Stream},
        watched::WatchedStream,
    },
};

/// The name of HTTP/1.1 in ALPN (RFC 7301 §6).
const HTTP1: &[u8] = b"http/1.1";

/// Why TLS cannot be set up.
#[derive(Debug, Error)]
#[error("{key}: {source}")]
pub struct TlsError {
    /// The configuration's key.
    key: &'static str,
    /// The file and what is wrong with it, or why the TLS library rejects it.
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl TlsError {
    /// A problem of the file or the setting that `key` of the configuration names.
    pub fn new(
        key: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let source = source.into();
        Self { key, source }
    }

    /// A problem of a certificate or its private key, whose file is `key`; `names` are the keys of the configuration.
    pub fn for_pair(names: [&'static str; 2], key: &Path, source: TlsFileError) -> Self {
        Self::new(names[usize::from(source.path == key)], source)
    }
}

/// The current TLS configuration of the listener.
#[derive(Debug)]
pub struct Tls {
    config: Arc<ServerConfig>,
    peers: Option<Peers>,
}

/// The peers that may connect.
#[derive(Debug)]
struct Peers {
    authorities: Vec<CertificateDer<'static>>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Tls {
    /// Reads the files.
    ///
    /// Peers resume sessions by tickets, on any worker. Tickets given out under `before` stay valid under new certificates
    /// of ours, but not under other authorities, which may not have issued the peer's certificate.
    ///
    /// # Errors
    /// [`TlsError`] names the key and the file at fault.
    pub fn read(
        files: &ListenTlsSettings,
        protocols: ProtocolSettings,
        before: Option<&Self>,
    ) -> Result<Self, TlsError> {
        let peers = Peers::read(files)?;
        let mut config = server_config(files, protocols, peers.as_ref())?;
        let authorities = peers.as_ref().map(|peers| &peers.authorities);
        let is_same =
            |before: &&Self| before.peers.as_ref().map(|peers| &peers.authorities) == authorities;
        match before.filter(is_same) {
            Some(before) => {
                config.ticketer = Arc::clone(&before.config.ticketer);
                config.session_storage = Arc::clone(&before.config.session_storage);
            }
            None => {
                let ticketer = aws_lc_rs::Ticketer::new();
                config.ticketer = ticketer.map_err(|error| TlsError::new("listen.tls", error))?;
            }
        }
        Ok(Self {
            config: Arc::new(config),
            peers,
        })
    }

    /// Performs the TLS handshake. Plain HTTP is answered with 400.
    ///
    /// # Errors
    /// The stream's; a handshake that fails has a [`rustls::Error`] in it.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 1 && first[0].is_ascii_alphabetic() {
            let mut wire = WatchedStream::new(Stream::Tcp(stream));
            if wire.write_all(PLAIN).await.is_ok() {
                Box::pin(wire.linger()).await;
            }
            return Err(io::Error::other("plain HTTP on a port for HTTPS"));
        }
        let stream = TlsAcceptor::from(Arc::clone(&self.config))
            .accept(stream)
            .await?;
        self.check_resumed(stream.get_ref().1)
            .map_err(io::Error::other)?;
        Ok(stream)
    }

    /// Checks the certificate of a resumed session again. It comes from the session's first handshake, and each resumption
    /// gives a new ticket: without this check an expired certificate would stay valid while its peer keeps coming back.
    fn check_resumed(&self, connection: &ServerConnection) -> Result<(), rustls::Error> {
        let Some(peers) = &self.peers else {
            return Ok(());
        };
        if connection.handshake_kind() != Some(HandshakeKind::Resumed) {
            return Ok(());
        }
        let now = self.config.time_provider.current_time();
        match (connection.peer_certificates().unwrap_or_default(), now) {
            ([certificate, intermediates @ ..], Some(now)) => peers
                .verifier
                .verify_client_cert(certificate, intermediates, now)
                .map(drop),
            ([], _) => Err(rustls::Error::NoCertificatesPresented),
            (_, None) => Err(rustls::Error::FailedToGetCurrentTime),
        }
    }
}

/// Why a handshake of a caller failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum HandshakeFailure {
    /// The caller has no certificate that `listen.tls.client_ca` accepts.
    CallerCertificate,
    /// The caller does not accept our certificate.
    OurCertificate,
    /// It took longer than `limits.handshake_timeout`.
    TooSlow,
    /// Anything else, such as plain HTTP or no common version.
    Other,
}

/// Why a handshake failed.
pub fn handshake_failure(error: &io::Error) -> HandshakeFailure {
    use rustls::{AlertDescription as Alert, Error};
    match error.get_ref().and_then(|error| error.downcast_ref()) {
        Some(Error::NoCertificatesPresented | Error::InvalidCertificate(_)) => {
            HandshakeFailure::CallerCertificate
        }
        Some(Error::AlertReceived(
            Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA,
        )) => HandshakeFailure::OurCertificate,
        _ => HandshakeFailure::Other,
    }
}

/// The response to plain HTTP on a port for HTTPS.
const PLAIN: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 48\r\n\
Connection: close\r\n\r\nThis port speaks HTTPS; what came is plain HTTP\n";

impl Peers {
    fn read(files: &ListenTlsSettings) -> Result<Option<Self>, TlsError> {
        if files.client_ca.is_empty() {
            return Ok(None);
        }
        let mut authorities = Vec::new();
        let at_fault = |error: TlsFileError| TlsError::new("listen.tls.client_ca", error);
        for path in &files.client_ca {
            authorities.extend(certificates(path).map_err(at_fault)?);
        }
        authorities.sort_by(|one, other| one.as_ref().cmp(other.as_ref()));
        authorities.dedup();
        let roots = Arc::new(roots(&files.client_ca).map_err(at_fault)?);
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
            .build()
            .map_err(|error| {
                let first = files.client_ca.first().cloned().unwrap_or_default();
                at_fault(TlsFileError::new(&first, error.to_string()))
            })?;
        Ok(Some(Self {
            authorities,
            verifier,
        }))
    }
}

fn server_config(
    files: &ListenTlsSettings,
    protocols: ProtocolSettings,
    peers: Option<&Peers>,
) -> Result<ServerConfig, TlsError> {
    let mut keys = Vec::new();
    for (certificate, key) in files.certificate.iter().zip(&files.key) {
        let names = ["listen.tls.certificate", "listen.tls.key"];
        let pair = certified_key(certificate, key);
        keys.push(Arc::new(
            pair.map_err(|error| TlsError::for_pair(names, key, error))?,
        ));
    }
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::new("listen.tls", error))?;
    let builder = match peers {
        None => builder.with_no_client_auth(),
        Some(peers) => builder.with_client_cert_verifier(Arc::clone(&peers.verifier)),
    };
    let mut config = builder.with_cert_resolver(Arc::new(ByName(keys)));
    if protocols.http2 {
        config.alpn_protocols.push(HTTP2.to_vec());
    }
    config.alpn_protocols.push(HTTP1.to_vec());
    Ok(config)
}

/// The first certificate that is for the name asked for, else the first of all; of several kinds of key, one that the
/// peer can verify.
#[derive(Debug)]
struct ByName(Vec<Arc<CertifiedKey>>);

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let fits = |key: &CertifiedKey| {
            let asked = key.cert.first().zip(hello.server_name());
            asked.is_some_and(|(certificate, host)| covers(certificate, host))
        };
        let verifiable =
            |key: &CertifiedKey| key.key.choose_scheme(hello.signature_schemes()).is_some();
        let usable = || self.0.iter().filter(|key| verifiable(key));
        let named = usable().find(|key| fits(key));
        // If none fits, the library sends the right alert.
        let chosen = named.or_else(|| usable().next());
        chosen.or_else(|| self.0.first()).cloned()
    }
}
