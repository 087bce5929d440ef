//! Proxies that serve TLS, and callers that speak it.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
};

use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, ProtocolVersion, RootCertStore, StreamOwned,
    SupportedProtocolVersion,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
    version::{TLS12, TLS13},
};

use crate::support::{
    PATIENCE, Proxy, Upstream,
    authority::{Authority, Identity, paths},
    proxy::Builder,
};

/// A caller that remembers its sessions from one connection to the next.
pub(crate) struct Caller(Arc<ClientConfig>);

/// The result of a request over TLS.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) answer: String,
    pub(crate) kind: HandshakeKind,
    pub(crate) version: ProtocolVersion,
    /// The server's own certificate.
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) protocol: Option<Vec<u8>>,
}

impl Heard {
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert!(self.answer.starts_with("HTTP/1.1 200 "), "{self:?}");
        self
    }
}

impl Caller {
    pub(crate) fn trusting(authority: &Authority) -> Self {
        Self::new(authority, None, &[&TLS12, &TLS13])
    }

    pub(crate) fn new(
        authority: &Authority,
        identity: Option<&Identity>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Self {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap();
        roots.add(root).unwrap();
        let builder =
            ClientConfig::builder_with_protocol_versions(versions).with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(vec![identity.der()], identity.private())
                .unwrap(),
        };
        Self(Arc::new(config))
    }

    /// Offers these protocols.
    pub(crate) fn offering(self, protocols: &[&str]) -> Self {
        let mut config = Arc::unwrap_or_clone(self.0);
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        Self(Arc::new(config))
    }

    /// Sends no server name.
    pub(crate) fn nameless(self) -> Self {
        let mut config = Arc::unwrap_or_clone(self.0);
        config.enable_sni = false;
        Self(Arc::new(config))
    }

    /// Performs the TLS handshake on a connection of its own.
    pub(crate) fn connect(
        &self,
        address: SocketAddr,
        name: &str,
    ) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let connection = ClientConnection::new(Arc::clone(&self.0), name).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(stream)
    }

    /// Asks for `/open` on a connection of its own, and reads to a proper end.
    pub(crate) fn ask(&self, address: SocketAddr, name: &str) -> io::Result<Heard> {
        let mut stream = self.connect(address, name)?;
        stream.write_all(b"GET /open HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        // An end without close_notify is an error here.
        stream.read_to_end(&mut answer)?;
        let certificates = stream.conn.peer_certificates().unwrap();
        Ok(Heard {
            answer: String::from_utf8_lossy(&answer).into_owned(),
            kind: stream.conn.handshake_kind().unwrap(),
            version: stream.conn.protocol_version().unwrap(),
            certificate: certificates[0].clone().into_owned(),
            protocol: stream.conn.alpn_protocol().map(<[u8]>::to_vec),
        })
    }

    /// Asks a proxy under the name `localhost`.
    pub(crate) fn ask_proxy(&self, proxy: &Proxy) -> io::Result<Heard> {
        self.ask(proxy.address(), "localhost")
    }
}

/// A proxy with this certificate and `/open` for everybody, to be configured further.
pub(crate) fn with_tls(api: &Upstream, identity: &Identity) -> Builder {
    with_certificates(api, &[("server", identity)])
}

/// A proxy with several certificates.
pub(crate) fn with_certificates(api: &Upstream, identities: &[(&str, &Identity)]) -> Builder {
    let builder = Proxy::in_front_of(api).config(
        "listen.workers = 2\nservice.base_url = 'https://localhost'\noperation = [{ path = '/open', access = ['anonymous'] }]",
    );
    let list = |paths: Vec<String>| format!("[{}]", paths.join(","));
    let mut certificates = Vec::new();
    let mut keys = Vec::new();
    for (name, identity) in identities {
        identity.write(builder.directory(), name);
        let (certificate, key) = paths(builder.directory(), name);
        certificates.push(format!("'{}'", certificate.display()));
        keys.push(format!("'{}'", key.display()));
    }
    builder.config(&format!(
        "listen.tls.certificate = {}\nlisten.tls.key = {}",
        list(certificates),
        list(keys)
    ))
}

/// A proxy that lets in only peers with a certificate of this authority.
pub(crate) fn for_peers_of(api: &Upstream, identity: &Identity, authority: &Authority) -> Builder {
    let builder = with_tls(api, identity);
    let path = authority.write(builder.directory(), "peers");
    builder.config(&format!("listen.tls.client_ca = '{}'", path.display()))
}
