//! TLS on the public listener: certificates chosen by name, and made anew when their files change.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier},
    sign::CertifiedKey,
};
use thiserror::Error;
use webpki::EndEntityCert;

/// What HTTP/2 is called in ALPN (RFC 9113 §3.2).
pub const HTTP2: &[u8] = b"h2";
/// What HTTP/1.1 is called there (RFC 7301 §6).
const HTTP1: &[u8] = b"http/1.1";

/// A TLS listener: its files, and what is spoken under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Certificate chains, PEM; the first is used for names that none has.
    pub certificates: Vec<PathBuf>,
    /// The private key of each, PEM.
    pub keys: Vec<PathBuf>,
    /// Authorities that peers must have a certificate of; none: peers need none.
    pub client_ca: Vec<PathBuf>,
    /// HTTP/2 is offered.
    pub http2: bool,
}

/// Why TLS cannot be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read or has not what is needed.
    #[error("{key}: {}: {reason}", path.display())]
    File {
        /// The configuration's key.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and the mend.
        reason: String,
    },
    /// The library refuses.
    #[error("{key}: {source}")]
    Rejected {
        /// The configuration's key.
        key: &'static str,
        /// What it says.
        #[source]
        source: rustls::Error,
    },
}

/// Reads the files.
///
/// # Errors
/// [`TlsError`] names the key and the file at fault.
pub fn server_config(params: &Params) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut keys = Vec::new();
    for (certificate, key) in params.certificates.iter().zip(&params.keys) {
        keys.push(Arc::new(certified_key(
            certificate,
            key,
            "listen.tls.certificate",
            "listen.tls.key",
        )?));
    }
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|source| TlsError::Rejected {
            key: "listen.tls",
            source,
        })?;
    let builder = if params.client_ca.is_empty() {
        builder.with_no_client_auth()
    } else {
        let roots = Arc::new(roots(&params.client_ca, "listen.tls.client_ca")?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
        builder.with_client_cert_verifier(verifier.map_err(|error| TlsError::File {
            key: "listen.tls.client_ca",
            path: params.client_ca.first().cloned().unwrap_or_default(),
            reason: error.to_string(),
        })?)
    };
    let mut config = builder.with_cert_resolver(Arc::new(ByName(keys)));
    if params.http2 {
        config.alpn_protocols.push(HTTP2.to_vec());
    }
    config.alpn_protocols.push(HTTP1.to_vec());
    Ok(config)
}

/// Reads a certificate chain and its key, and checks that they belong together.
///
/// # Errors
/// [`TlsError`] under the given keys of the configuration.
pub fn certified_key(
    certificate: &Path,
    key: &Path,
    certificate_key: &'static str,
    key_key: &'static str,
) -> Result<CertifiedKey, TlsError> {
    let chain = certificates(certificate, certificate_key)?;
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key_key, key, &error))?;
    CertifiedKey::from_der(chain, private, &aws_lc_rs::default_provider()).map_err(|error| {
        TlsError::File {
            key: key_key,
            path: key.to_owned(),
            reason: format!(
                "{error}; it must be the private key of {}",
                certificate.display()
            ),
        }
    })
}

/// Reads the certificates of trusted authorities.
///
/// # Errors
/// [`TlsError::File`]
pub fn roots(paths: &[PathBuf], key: &'static str) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for path in paths {
        for certificate in certificates(path, key)? {
            roots.add(certificate).map_err(|error| TlsError::File {
                key,
                path: path.clone(),
                reason: format!("{error}; it must hold certificates of authorities"),
            })?;
        }
    }
    Ok(roots)
}

fn certificates(path: &Path, key: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates: Vec<_> = read.map_err(|error| unreadable(key, path, &error))?;
    if certificates.is_empty() {
        let reason = "no certificate in it; it must be PEM".to_owned();
        return Err(TlsError::File {
            key,
            path: path.to_owned(),
            reason,
        });
    }
    Ok(certificates)
}

fn unreadable(key: &'static str, path: &Path, error: &rustls::pki_types::pem::Error) -> TlsError {
    let reason = match error {
        rustls::pki_types::pem::Error::Io(error) => {
            format!("{error}; check the path and its rights")
        }
        rustls::pki_types::pem::Error::NoItemsFound => {
            "nothing of that kind in it; it must be PEM".to_owned()
        }
        other => format!("{other}; it must be PEM"),
    };
    TlsError::File {
        key,
        path: path.to_owned(),
        reason,
    }
}

/// The first certificate that is for the name asked for, else the first of all.
#[derive(Debug)]
struct ByName(Vec<Arc<CertifiedKey>>);

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let fits = |name: &ServerName<'_>, key: &CertifiedKey| {
            key.cert.first().is_some_and(|certificate| {
                EndEntityCert::try_from(certificate).is_ok_and(|certificate| {
                    certificate.verify_is_valid_for_subject_name(name).is_ok()
                })
            })
        };
        let asked = hello
            .server_name()
            .and_then(|name| ServerName::try_from(name).ok());
        let named = asked.and_then(|name| self.0.iter().find(|key| fits(&name, key)));
        named.or_else(|| self.0.first()).cloned()
    }
}
