//! The check of a server's certificate: an authority that is trusted has signed it for the name of the server, or the
//! operator has named this very certificate.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, verify_tls13_signature_with_raw_key},
    pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime},
    server::VerifierBuilderError,
};
use webpki::RawPublicKeyEntity;
use x509_cert::{
    der::{Decode as _, Encode as _},
    time::Time,
};

/// A certificate that the operator has named among the trusted ones. A server that shows the same bytes and has the key is
/// the one that is meant, so its name is not compared, nor who signed it, whether it is an authority's, or its version. Its
/// dates are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCertificate {
    der: CertificateDer<'static>,
    key: SubjectPublicKeyInfoDer<'static>,
    /// The first and the last second in which it is valid.
    valid: (u64, u64),
}

impl NamedCertificate {
    /// Reads a certificate; `None`: it can be an authority alone.
    pub fn new(der: &CertificateDer<'static>) -> Option<Self> {
        let parsed = x509_cert::Certificate::from_der(der).ok()?.tbs_certificate;
        let at = |time: Time| time.to_unix_duration().as_secs();
        Some(Self {
            der: der.clone(),
            key: parsed.subject_public_key_info.to_der().ok()?.into(),
            valid: (
                at(parsed.validity.not_before),
                at(parsed.validity.not_after),
            ),
        })
    }

    fn check_dates(&self, now: UnixTime) -> Result<(), CertificateError> {
        let (from, until) = self.valid;
        match now.as_secs() {
            now if now < from => Err(CertificateError::NotValidYet),
            now if now > until => Err(CertificateError::Expired),
            _ => Ok(()),
        }
    }
}

/// Trusts the authorities and, by their bytes, the certificates of some servers.
#[derive(Debug)]
pub(super) struct NamedOrSigned {
    provider: Arc<CryptoProvider>,
    signed: Arc<WebPkiServerVerifier>,
    named: Vec<NamedCertificate>,
}

impl NamedOrSigned {
    /// A check that trusts `roots` as authorities and `named` as servers.
    ///
    /// # Errors
    /// If there are no roots.
    pub(super) fn new(
        provider: Arc<CryptoProvider>,
        roots: Arc<RootCertStore>,
        named: Vec<NamedCertificate>,
    ) -> Result<Self, VerifierBuilderError> {
        let signed = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider));
        Ok(Self {
            provider,
            signed: signed.build()?,
            named,
        })
    }

    fn named(&self, certificate: &CertificateDer<'_>) -> Option<&NamedCertificate> {
        self.named.iter().find(|one| one.der == *certificate)
    }
}

impl ServerCertVerifier for NamedOrSigned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.named(certificate) {
            Some(named) => {
                named.check_dates(now)?;
                Ok(ServerCertVerified::assertion())
            }
            None => {
                let signed = &self.signed;
                signed.verify_server_cert(certificate, intermediates, name, ocsp, now)
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let Some(named) = self.named(certificate) else {
            let signed = &self.signed;
            return signed.verify_tls12_signature(message, certificate, signature);
        };
        let invalid = || Error::from(CertificateError::BadSignature);
        let key = RawPublicKeyEntity::try_from(&named.key).map_err(|_| invalid())?;
        let mut known = self
            .provider
            .signature_verification_algorithms
            .mapping
            .iter();
        let scheme = known.find(|(scheme, _)| *scheme == signature.scheme);
        let (_, algorithms) = scheme.ok_or_else(invalid)?;
        // One of them is for the curve of the key.
        let is_valid = algorithms.iter().any(|&algorithm| {
            let verified = key.verify_signature(algorithm, message, signature.signature());
            verified.is_ok()
        });
        match is_valid {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => Err(invalid()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.named(certificate) {
            Some(named) => {
                let algorithms = &self.provider.signature_verification_algorithms;
                verify_tls13_signature_with_raw_key(message, &named.key, signature, algorithms)
            }
            None => {
                let signed = &self.signed;
                signed.verify_tls13_signature(message, certificate, signature)
            }
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}
