//! Certificates made for a test: authorities, and the certificates that they sign.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use time::{Duration, OffsetDateTime};

use super::tls::write_secret;

/// An authority of its own.
pub struct Authority {
    /// Its certificate, PEM.
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, PEM.
#[derive(Clone)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

/// The validity of a certificate, in seconds from now.
#[derive(Clone, Copy)]
pub struct Good {
    pub from: i64,
    pub until: i64,
}

impl Good {
    pub const NOW: Self = Self::until(60 * 86_400);
    pub const ENDED: Self = Self::until(-60);

    pub const fn until(seconds: i64) -> Self {
        Self {
            from: -86_400,
            until: seconds,
        }
    }
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            pem,
            issuer: Issuer::new(params, key),
        }
    }

    /// A server's certificate for these names.
    pub fn server(&self, names: &[&str]) -> Identity {
        self.sign(names, Good::NOW, KeyPair::generate().unwrap())
    }

    /// A peer's certificate with this validity.
    pub fn peer(&self, good: Good) -> Identity {
        self.sign(&["peer.test"], good, KeyPair::generate().unwrap())
    }

    pub fn sign(&self, names: &[&str], good: Good, key: KeyPair) -> Identity {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names.clone()).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, &names[0]);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let now = OffsetDateTime::now_utc();
        params.not_before = now + Duration::seconds(good.from);
        params.not_after = now + Duration::seconds(good.until);
        params.use_authority_key_identifier_extension = true;
        Identity {
            certificate: params.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    pub fn write(&self, directory: &Path, name: &str) -> PathBuf {
        let path = directory.join(format!("{name}.pem"));
        std::fs::write(&path, &self.pem).unwrap();
        path
    }
}

impl Identity {
    /// Writes both and returns their paths.
    pub fn write(&self, directory: &Path, name: &str) -> (PathBuf, PathBuf) {
        let (certificate, key) = paths(directory, name);
        std::fs::write(&certificate, &self.certificate).unwrap();
        write_secret(&key, &self.key);
        (certificate, key)
    }

    pub fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()
    }

    pub fn private(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap()
    }
}

/// The paths at which [`Identity::write`] puts certificate and key.
pub fn paths(directory: &Path, name: &str) -> (PathBuf, PathBuf) {
    let at = |kind: &str| directory.join(format!("{name}-{kind}.pem"));
    (at("certificate"), at("key"))
}

/// An RSA key, which only the `openssl` command makes here.
pub fn rsa_key() -> KeyPair {
    let made = std::process::Command::new("openssl")
        .args([
            "genpkey",
            "-quiet",
            "-algorithm",
            "RSA",
            "-pkeyopt",
            "rsa_keygen_bits:2048",
        ])
        .output()
        .unwrap();
    KeyPair::from_pem(&String::from_utf8(made.stdout).unwrap()).unwrap()
}
