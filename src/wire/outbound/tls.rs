//! TLS to the API.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use rustls::{
    ClientConfig, SignatureScheme, client::ResolvesClientCert, pki_types::ServerName,
    sign::CertifiedKey,
};

use crate::{
    base::network::tls::{TlsContents, TlsFiles},
    wire::{
        address::TcpOrUnix,
        outbound::RemoteService,
        server::tls::TlsError,
        stream::HTTP2,
        url::origin::{Origin, without_brackets},
    },
};

/// The configuration of TLS to a server. It equals one that was read from other files with the same contents.
#[derive(Debug, Clone)]
pub struct ClientTls {
    /// The configuration.
    pub config: Arc<ClientConfig>,
    /// The name that the server's certificate must have.
    pub name: ServerName<'static>,
    contents: TlsContents,
}

impl PartialEq for ClientTls {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.config.alpn_protocols == other.config.alpn_protocols
            && self.contents == other.contents
    }
}

impl ClientTls {
    /// Notes from now on whether the server asks for a certificate of ours. `None`: it gets one.
    pub fn note_demand(&mut self) -> Option<Arc<AtomicBool>> {
        if self.config.client_auth_cert_resolver.has_certs() {
            return None;
        }
        let asked = Arc::new(AtomicBool::new(false));
        let config = Arc::make_mut(&mut self.config);
        config.client_auth_cert_resolver = Arc::new(Demand(Arc::clone(&asked)));
        Some(asked)
    }
}

/// Has no certificate, and notes that one is asked for.
#[derive(Debug)]
struct Demand(Arc<AtomicBool>);

impl ResolvesClientCert for Demand {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.store(true, Ordering::Relaxed);
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

/// Reads the authorities to trust, and our own certificate for a server that demands one. `keys` are those of the
/// configuration that name the authorities, our certificate and its private key; HTTP/2 is offered if `http2`.
///
/// # Errors
/// [`TlsError`] names the key and the file at fault.
pub fn client_config(
    files: &TlsFiles,
    keys: [&'static str; 3],
    server_name: &str,
    http2: bool,
) -> Result<ClientTls, TlsError> {
    let (mut config, contents) = files.read().map_err(|source| {
        let [ca, names @ ..] = keys;
        match &files.identity {
            Some((certificate, key)) if [certificate, key].contains(&&source.path) => {
                TlsError::for_pair(names, key, source)
            }
            _ => TlsError::new(ca, source),
        }
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if http2 {
        config.alpn_protocols.insert(0, HTTP2.to_vec());
    }
    let host = without_brackets(server_name).to_owned();
    let name = ServerName::try_from(host).map_err(|_| {
        let problem = "not a name that a certificate can have";
        TlsError::new("upstream.tls.server_name", problem)
    })?;
    Ok(ClientTls {
        config: Arc::new(config),
        name,
        contents,
    })
}

/// Another service. Over https its certificate is checked with the authorities in `files`, or with the system's if there
/// are none; `keys` are those of [`client_config`].
///
/// # Errors
/// A file of `files`.
pub fn remote_service(
    server: &TcpOrUnix<Origin>,
    files: &TlsFiles,
    keys: [&'static str; 3],
) -> Result<RemoteService, TlsError> {
    let client = |origin: &Origin| client_config(files, keys, origin.bare_host(), false);
    let tls = server.tcp().filter(|origin| origin.is_https()).map(client);
    Ok(RemoteService {
        server: server.clone(),
        tls: tls.transpose()?.map(|tls| (tls.config, tls.name)),
    })
}
