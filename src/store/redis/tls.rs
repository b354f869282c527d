//! Certificates for connections that speak TLS.

use std::path::{Path, PathBuf};
use std::{env, fs};

use redis::{ClientTlsConfig, TlsCertificates};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Whose certificates a server may show.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Roots {
    /// Those of the public authorities, as compiled in.
    #[default]
    Bundled,
    /// Those that the system trusts.
    System,
    /// Those that the authorities in this PEM file have signed, and no others.
    File(PathBuf),
}

/// The TLS options as the user gives them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TlsOptions {
    /// Whom to trust.
    pub roots: Roots,
    /// A PEM file with our own certificate.
    pub cert: Option<PathBuf>,
    /// A PEM file with its private key.
    pub key: Option<PathBuf>,
}

impl TlsOptions {
    /// Whether anything was asked for.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Reads the files.
    ///
    /// # Errors
    ///
    /// A file that is missing or holds something else, with its path.
    pub fn load(&self) -> Result<TlsCertificates, String> {
        let root_cert = match &self.roots {
            Roots::Bundled => None,
            Roots::System => Some(system_roots()?),
            Roots::File(path) => Some(authority(path)?),
        };
        let client_tls = match (&self.cert, &self.key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some(ClientTlsConfig {
                client_cert: pem(cert, "--tls-cert", "CERTIFICATE-----")?,
                client_key: pem(key, "--tls-key", "PRIVATE KEY-----")?,
            }),
            (Some(_), None) => return Err("--tls-cert needs --tls-key too".to_owned()),
            (None, Some(_)) => return Err("--tls-key needs --tls-cert too".to_owned()),
        };
        Ok(TlsCertificates {
            client_tls,
            root_cert,
        })
    }
}

/// Chooses the implementation of the ciphers, once in a process.
pub fn install_provider() {
    // It fails only where one is installed, which is then the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn read(path: &Path, option: &str) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|err| format!("cannot read {} for {option}: {err}", path.display()))
}

fn pem(path: &Path, option: &str, marker: &str) -> Result<Vec<u8>, String> {
    let bytes = read(path, option)?;
    if String::from_utf8_lossy(&bytes).contains(marker) {
        Ok(bytes)
    } else {
        Err(format!(
            "{} for {option} is no PEM file with a {}",
            path.display(),
            marker.trim_end_matches('-').to_lowercase()
        ))
    }
}

fn authority(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = read(path, "--tls-ca")?;
    let mut store = RootCertStore::empty();
    for cert in CertificateDer::pem_slice_iter(&bytes) {
        cert.ok()
            .and_then(|cert| store.add(cert).ok())
            .ok_or_else(|| format!("{} for --tls-ca has a damaged certificate", path.display()))?;
    }
    if store.is_empty() {
        return Err(format!(
            "{} for --tls-ca has no certificate in PEM form",
            path.display()
        ));
    }
    Ok(bytes)
}

/// Where systems keep the bundle of what they trust.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

fn system_roots() -> Result<Vec<u8>, String> {
    let bytes = if let Some(path) = env::var_os("SSL_CERT_FILE").filter(|path| !path.is_empty()) {
        read(Path::new(&path), "--tls-ca system (SSL_CERT_FILE)")?
    } else {
        BUNDLES
            .iter()
            .find_map(|path| fs::read(path).ok())
            .ok_or("--tls-ca system: no bundle of trusted certificates on this system; install ca-certificates or set SSL_CERT_FILE")?
    };
    usable(&String::from_utf8_lossy(&bytes))
        .ok_or_else(|| "--tls-ca system: the bundle of trusted certificates is empty".to_owned())
}

/// The certificates that can be used: one that cannot must not spoil the rest.
fn usable(bundle: &str) -> Option<Vec<u8>> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let mut store = RootCertStore::empty();
    let mut good = Vec::new();
    for block in bundle.split_inclusive(END) {
        let Some(start) = block.find(BEGIN) else {
            continue;
        };
        let block = &block[start..];
        let cert = CertificateDer::from_pem_slice(block.as_bytes()).ok();
        if cert.is_some_and(|cert| store.add(cert).is_ok()) {
            good.extend_from_slice(block.as_bytes());
            good.push(b'\n');
        }
    }
    (!good.is_empty()).then_some(good)
}
