//! TLS for the harness: a throwaway certificate, a server's and a caller's end.

use std::{
    net::TcpStream,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};

/// A self-signed certificate and its key, as PEM.
pub struct Certificate {
    pub certificate: String,
    pub key: String,
}

impl Certificate {
    /// Makes one that is good for these names.
    pub fn for_names(names: &[&str]) -> Self {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        Self {
            certificate: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
        }
    }

    /// Writes both into `directory` and returns their paths.
    pub fn write(&self, directory: &Path) -> (PathBuf, PathBuf) {
        let (certificate, key) = (directory.join("certificate.pem"), directory.join("key.pem"));
        std::fs::write(&certificate, &self.certificate).unwrap();
        write_secret(&key, &self.key);
        (certificate, key)
    }

    /// A server's configuration that shows this certificate.
    pub fn server(&self) -> Arc<ServerConfig> {
        let chain = vec![CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        Arc::new(
            ServerConfig::builder()
                .with_no_client_auth()
                .with_single_cert(chain, key)
                .unwrap(),
        )
    }
}

/// Writes a file that its owner alone can open, as a private key has to be.
pub fn write_secret(path: &Path, content: impl AsRef<[u8]>) {
    use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
    let mut options = std::fs::OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path).unwrap();
    file.write_all(content.as_ref()).unwrap();
}

/// The server's end of TLS on an accepted connection.
pub fn accept(
    stream: TcpStream,
    config: Arc<ServerConfig>,
) -> StreamOwned<ServerConnection, TcpStream> {
    StreamOwned::new(ServerConnection::new(config).unwrap(), stream)
}

/// The caller's end of TLS, trusting only `roots`.
pub fn connect(
    stream: TcpStream,
    name: &str,
    roots: &str,
) -> StreamOwned<ClientConnection, TcpStream> {
    let mut store = RootCertStore::empty();
    store
        .add(CertificateDer::from_pem_slice(roots.as_bytes()).unwrap())
        .unwrap();
    let config = ClientConfig::builder()
        .with_root_certificates(store)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    StreamOwned::new(
        ClientConnection::new(Arc::new(config), name).unwrap(),
        stream,
    )
}
