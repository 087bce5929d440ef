//! Certificates and keys in PEM files, and TLS to other servers.

mod named;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{
        CertificateDer, PrivateKeyDer, ServerName,
        pem::{self, PemObject},
    },
    sign::{CertifiedKey, SingleCertAndKey},
};
use thiserror::Error;
use webpki::EndEntityCert;

use self::named::{NamedCertificate, NamedOrSigned};

/// Why a file of TLS cannot be used, and the fix.
#[derive(Debug, Error)]
#[error("{}: {problem}", path.display())]
pub struct TlsFileError {
    /// The file.
    pub path: PathBuf,
    problem: String,
}

impl TlsFileError {
    /// A problem of a file.
    pub fn new(path: &Path, problem: String) -> Self {
        Self {
            path: path.to_owned(),
            problem,
        }
    }

    fn unreadable(path: &Path, error: &pem::Error) -> Self {
        let problem = match error {
            pem::Error::Io(error) => format!("{error}; check the path and its rights"),
            pem::Error::NoItemsFound => {
                "nothing of that kind in it; it must be PEM, and a private key unencrypted"
                    .to_owned()
            }
            other => format!("{other}; it must be PEM"),
        };
        Self::new(path, problem)
    }
}

/// The files of the connection to another server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authorities to trust, and certificates of servers themselves; none: the system's authorities.
    pub ca: Vec<PathBuf>,
    /// Our own certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// The certificates of a configuration. Configurations with equal ones trust the same servers and show them the same
/// certificate, whose key is then the same too.
#[derive(Debug, Clone)]
pub struct TlsContents {
    roots: Arc<RootCertStore>,
    named: Vec<NamedCertificate>,
    chain: Vec<CertificateDer<'static>>,
}

impl PartialEq for TlsContents {
    fn eq(&self, other: &Self) -> bool {
        self.chain == other.chain
            && self.named == other.named
            && self.roots.roots == other.roots.roots
    }
}

impl TlsFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsFileError`] names the file.
    pub fn client_config(&self) -> Result<ClientConfig, TlsFileError> {
        self.read().map(|(config, _)| config)
    }

    /// Reads the files, and returns their certificates too.
    ///
    /// # Errors
    /// [`TlsFileError`] names the file.
    pub fn read(&self) -> Result<(ClientConfig, TlsContents), TlsFileError> {
        let (roots, named) = match self.ca.as_slice() {
            [] => (system_roots(), Vec::new()),
            ca => {
                let mut named = Vec::new();
                for path in ca {
                    named.extend(certificates(path)?.iter().filter_map(NamedCertificate::new));
                }
                (roots(ca)?, named)
            }
        };
        client_config(roots, named, self.identity.as_ref())
    }
}

/// A configuration that trusts `roots` as authorities and `named` as servers, and shows `identity`, a certificate and its key.
///
/// # Errors
/// [`TlsFileError`] names the file.
pub fn client_config(
    roots: RootCertStore,
    named: Vec<NamedCertificate>,
    identity: Option<&(PathBuf, PathBuf)>,
) -> Result<(ClientConfig, TlsContents), TlsFileError> {
    let roots = Arc::new(roots);
    let failed =
        |error: &dyn std::error::Error| TlsFileError::new(Path::new("TLS"), error.to_string());
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    let builder = match named.is_empty() {
        true => builder.with_root_certificates(Arc::clone(&roots)),
        false => {
            let verifier = NamedOrSigned::new(provider, Arc::clone(&roots), named.clone());
            let verifier = Arc::new(verifier.map_err(|error| failed(&error))?);
            builder
                .dangerous()
                .with_custom_certificate_verifier(verifier)
        }
    };
    let (config, chain) = match identity {
        None => (builder.with_no_client_auth(), Vec::new()),
        Some((certificate, key)) => {
            let identity = certified_key(certificate, key)?;
            let chain = identity.cert.clone();
            let identity = Arc::new(SingleCertAndKey::from(identity));
            (builder.with_client_cert_resolver(identity), chain)
        }
    };
    Ok((
        config,
        TlsContents {
            roots,
            named,
            chain,
        },
    ))
}

/// Reads a certificate chain and its key, and checks that they belong together.
///
/// # Errors
/// [`TlsFileError`] names the file at fault.
pub fn certified_key(certificate: &Path, key: &Path) -> Result<CertifiedKey, TlsFileError> {
    let chain = certificates(certificate)?;
    let private = private_key(key)?;
    CertifiedKey::from_der(chain, private, &aws_lc_rs::default_provider()).map_err(|error| {
        let certificate = certificate.display();
        TlsFileError::new(
            key,
            format!("{error}; it must be the private key of {certificate}"),
        )
    })
}

/// Reads a private key.
///
/// # Errors
/// [`TlsFileError`] names the file.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFileError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| TlsFileError::unreadable(path, &error))
}

/// Reads the certificates of trusted authorities.
///
/// # Errors
/// [`TlsFileError`] names the file.
pub fn roots(paths: &[PathBuf]) -> Result<RootCertStore, TlsFileError> {
    let mut roots = RootCertStore::empty();
    for path in paths {
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|error| {
                let problem = format!("{error}; it must hold certificates of authorities");
                TlsFileError::new(path, problem)
            })?;
        }
    }
    Ok(roots)
}

/// Reads the certificates of a file, one at least.
///
/// # Errors
/// [`TlsFileError`] names the file.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| TlsFileError::unreadable(path, &error))?;
    if certificates.is_empty() {
        return Err(TlsFileError::unreadable(path, &pem::Error::NoItemsFound));
    }
    Ok(certificates)
}

/// Whether a certificate is for this host, whose address is without brackets.
pub fn covers(certificate: &CertificateDer<'_>, host: &str) -> bool {
    let name = ServerName::try_from(host).ok();
    let certificate = EndEntityCert::try_from(certificate).ok();
    let both = certificate.zip(name);
    both.is_some_and(|(it, name)| it.verify_is_valid_for_subject_name(&name).is_ok())
}

/// The system's authorities. One that cannot be used is left out: it can only make a server untrusted, and that fails with
/// a reason of its own.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a system certificate cannot be read");
    }
    roots.add_parsable_certificates(found.certs);
    roots
}
