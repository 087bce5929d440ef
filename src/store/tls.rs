//! TLS to a store's engine.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use thiserror::Error;

/// Why a file of the connection to the engine cannot be used.
#[derive(Debug, Error)]
#[error("{}: {problem}", path.display())]
pub struct TlsFileError {
    path: PathBuf,
    problem: String,
}

impl TlsFileError {
    fn new(path: &Path, problem: impl ToString) -> Self {
        Self {
            path: path.to_owned(),
            problem: problem.to_string(),
        }
    }
}

/// The files of TLS; without any, the system's authorities are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TlsFiles {
    /// The authorities, in PEM form.
    pub(super) ca: Option<PathBuf>,
    /// The own certificate and its key, in PEM form.
    pub(super) identity: Option<(PathBuf, PathBuf)>,
}

/// Reads the files.
///
/// # Errors
/// [`TlsFileError`] names the file.
pub(super) fn client_config(files: &TlsFiles) -> Result<Arc<ClientConfig>, TlsFileError> {
    let TlsFiles { ca, identity } = files;
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            for certificate in certificates(path)? {
                roots
                    .add(certificate)
                    .map_err(|error| TlsFileError::new(path, error))?;
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            for error in &found.errors {
                tracing::warn!(%error, "a system certificate cannot be read");
            }
            roots.add_parsable_certificates(found.certs);
        }
    }
    client_config_of(roots, identity.as_ref())
}

/// A configuration that trusts `roots` and shows `identity`, a certificate and its key.
///
/// # Errors
/// [`TlsFileError`] names the file.
pub(super) fn client_config_of(
    roots: RootCertStore,
    identity: Option<&(PathBuf, PathBuf)>,
) -> Result<Arc<ClientConfig>, TlsFileError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsFileError::new(Path::new("TLS"), error))?
        .with_root_certificates(roots);
    let Some((certificate, key)) = identity else {
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| TlsFileError::new(key, error))?;
    let config = builder
        .with_client_auth_cert(certificates(certificate)?, private)
        .map_err(|error| TlsFileError::new(certificate, error))?;
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| TlsFileError::new(path, error))?;
    if certificates.is_empty() {
        return Err(TlsFileError::new(path, "holds no certificate in PEM form"));
    }
    Ok(certificates)
}
