//! TLS to the API.

use std::{path::PathBuf, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore, crypto::aws_lc_rs, pki_types::ServerName, sign::SingleCertAndKey,
};

use crate::server::tls::{HTTP2, TlsError, certified_key, roots};

/// The files of the connection to the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// The authorities to trust; none: the system's.
    pub ca: Vec<PathBuf>,
    /// The key that names them.
    pub ca_key: &'static str,
    /// Our own certificate and key, for an API that demands one.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name that the API's certificate must have.
    pub server_name: String,
    /// HTTP/2 is offered.
    pub http2: bool,
}

/// Reads the files.
///
/// # Errors
/// [`TlsError`] names the key and the file at fault.
pub fn client_config(
    params: &Params,
) -> Result<(Arc<ClientConfig>, ServerName<'static>), TlsError> {
    let trusted = if params.ca.is_empty() {
        system_roots()
    } else {
        roots(&params.ca, params.ca_key)?
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|source| TlsError::Rejected {
            key: "upstream.tls",
            source,
        })?
        .with_root_certificates(trusted);
    let mut config = match &params.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let identity = certified_key(
                certificate,
                key,
                "upstream.tls.certificate",
                "upstream.tls.key",
            )?;
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity)))
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if params.http2 {
        config.alpn_protocols.insert(0, HTTP2.to_vec());
    }
    let host = params
        .server_name
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let name = ServerName::try_from(host).map_err(|_| TlsError::Rejected {
        key: "upstream.tls.server_name",
        source: rustls::Error::General("not a name that a certificate can have".to_owned()),
    })?;
    Ok((Arc::new(config), name))
}

/// The system's authorities. One that cannot be used is left out: it can only make the API untrusted, which is told.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a system certificate cannot be read");
    }
    roots.add_parsable_certificates(found.certs);
    roots
}
