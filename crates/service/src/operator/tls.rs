//! The operator listener's certificate: loaded from files, validated, and reloaded on request.
//!
//! At the start, an invalid pair of certificate and key stops the service. At a reload, an invalid pair is reported and
//! the old pair stays in use. Open connections keep their certificate.
//!
//! The chain is also written to `operator.ca` in the data directory. The command line on the same machine trusts
//! exactly this certificate, whatever its names are: it finds the service by the directory and not by a name.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use notbefore_wire::operator::certificate::ends_at;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use tokio_rustls::TlsAcceptor;

use super::server::TlsSource;
use crate::data_dir::{self, DataDir};
use crate::running::ReloadError;
use crate::secret_file;

/// Longest certificate chain or key that is read; a usual chain has 5 KiB.
const PEM_BYTES_MAX: u64 = 1024 * 1024;

/// Warn when the certificate expires within this time.
const WARN_DAYS: i64 = 14;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain in PEM, the server's certificate first.
    pub cert: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {path}: {error}; check the file and its permissions")]
    Read { path: PathBuf, error: io::Error },
    #[error("{path} holds no certificate in PEM; it should begin with -----BEGIN CERTIFICATE-----")]
    NoCertificate { path: PathBuf },
    #[error(
        "{path} holds no private key in PEM that can be used; it should be PKCS#8, PKCS#1 or SEC1, without a passphrase"
    )]
    NoKey { path: PathBuf },
    #[error("the key in {key} is not that of the certificate in {cert}; use a matching pair")]
    Mismatch { cert: PathBuf, key: PathBuf },
    #[error("the certificate in {cert} with the key in {key} cannot be used: {error}")]
    Unusable { cert: PathBuf, key: PathBuf, error: rustls::Error },
    #[error("the authority's certificates in {path} cannot be used: {error}")]
    Authority { path: PathBuf, error: String },
}

impl CertificateFiles {
    /// The error for a pair that rustls refuses.
    pub(crate) fn unusable(&self, error: rustls::Error) -> TlsError {
        let (cert, key) = (self.cert.clone(), self.key.clone());
        match matches!(error, rustls::Error::InconsistentKeys(_)) {
            true => TlsError::Mismatch { cert, key },
            false => TlsError::Unusable { cert, key, error },
        }
    }
}

/// The pair in use.
pub struct Certificate {
    files: CertificateFiles,
    pair: ArcSwap<Pair>,
}

struct Pair {
    config: Arc<ServerConfig>,
    /// The chain, as read from the file.
    pem: Vec<u8>,
    /// The server's certificate.
    own: Option<CertificateDer<'static>>,
    ends_at: Option<Timestamp>,
}

impl Certificate {
    /// Loads and validates a pair.
    pub fn load(files: CertificateFiles, now: Timestamp) -> Result<Self, TlsError> {
        let pair = Pair::load(&files, now)?;
        Ok(Self { files, pair: ArcSwap::from_pointee(pair) })
    }

    /// Reloads the files and writes the chain to the data directory. On an error the old pair stays in use.
    pub fn reload(&self, dir: &DataDir, now: Timestamp) -> Result<(), ReloadError> {
        self.replace(now)?;
        Ok(self.publish(dir).map_err(|error| format!("cannot write it to the data directory: {error}"))?)
    }

    fn replace(&self, now: Timestamp) -> Result<(), TlsError> {
        self.pair.store(Arc::new(Pair::load(&self.files, now)?));
        Ok(())
    }

    /// When the certificate expires, if known.
    pub fn ends_at(&self) -> Option<Timestamp> {
        self.pair.load().ends_at
    }

    /// Whether the certificate is valid for a name.
    pub fn names(&self, name: &str) -> bool {
        let pair = self.pair.load();
        let parsed = pair.own.as_ref().and_then(|own| ParsedCertificate::try_from(own).ok());
        let both = parsed.zip(ServerName::try_from(name).ok());
        both.is_some_and(|(parsed, name)| rustls::client::verify_server_name(&parsed, &name).is_ok())
    }

    /// Writes the chain to the data directory for the command line.
    pub fn publish(&self, dir: &DataDir) -> io::Result<()> {
        dir.write_atomic(data_dir::AUTHORITY, &self.pair.load().pem, 0o644)
    }
}

impl TlsSource for Certificate {
    fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.pair.load().config))
    }
}

impl Pair {
    fn load(files: &CertificateFiles, now: Timestamp) -> Result<Self, TlsError> {
        let PemPair { pem, chain, secret } = read_pair(files)?;
        let own = chain.first().cloned();
        let ends_at = own.as_ref().and_then(|own| ends_at(own));
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret));
        let mut config = builder.map_err(|error| files.unusable(error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        warn("the operator listener's certificate", files, own.as_ref(), now);
        Ok(Self { config: Arc::new(config), pem, own, ends_at })
    }
}

/// A certificate chain and its key, as read from files.
pub(crate) struct PemPair {
    /// The chain's file.
    pem: Vec<u8>,
    /// Not empty; the server's certificate is first.
    pub chain: Vec<CertificateDer<'static>>,
    pub secret: PrivateKeyDer<'static>,
}

pub(crate) fn read_pair(files: &CertificateFiles) -> Result<PemPair, TlsError> {
    let CertificateFiles { cert, key } = files;
    let pem = read(cert)?;
    let key_pem = read(key)?;
    let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| TlsError::NoCertificate { path: cert.clone() })?;
    let secret =
        PrivateKeyDer::from_pem_slice(&key_pem).map_err(|_| TlsError::NoKey { path: key.clone() })?;
    Ok(PemPair { pem, chain, secret })
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut bytes = Vec::new();
    let read = secret_file::open(path).and_then(|file| file.take(PEM_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|error| TlsError::Read { path: path.to_owned(), error })?;
    Ok(bytes)
}

/// Logs problems that do not make the pair unusable. `what` names the certificate.
pub(crate) fn warn(what: &str, files: &CertificateFiles, own: Option<&CertificateDer<'_>>, now: Timestamp) {
    let (cert, key) = (files.cert.display(), files.key.display());
    let mode = fs::metadata(&files.key).map(|metadata| metadata.permissions().mode() & 0o777);
    if let Ok(mode) = mode
        && mode & 0o004 != 0
    {
        tracing::warn!(%key, mode = format!("{mode:o}"), "all users of this machine can read the private key; chmod 600 it");
    }
    let Some(ends_at) = own.and_then(|own| ends_at(own)) else { return };
    let days = ends_at.duration_since(now).as_hours() / 24;
    if ends_at <= now {
        tracing::warn!(%cert, %ends_at, "{what} has expired; callers will refuse it");
    } else if days < WARN_DAYS {
        tracing::warn!(%cert, %ends_at, days, "{what} expires soon");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn files(dir: &Path, ends: (i32, u8, u8)) -> CertificateFiles {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["ops.example".to_owned()]).unwrap();
        params.not_after = date_time_ymd(ends.0, ends.1, ends.2);
        let files = CertificateFiles { cert: dir.join("cert.pem"), key: dir.join("key.pem") };
        fs::write(&files.cert, params.self_signed(&key).unwrap().pem()).unwrap();
        fs::write(&files.key, key.serialize_pem()).unwrap();
        files
    }

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn certificate_expiry_parses_both_time_formats() {
        let dir = tempfile::tempdir().unwrap();
        for (ends, at) in [((2031, 2, 3), "2031-02-03T00:00:00Z"), ((2055, 12, 31), "2055-12-31T00:00:00Z")] {
            let loaded = Certificate::load(files(dir.path(), ends), now()).unwrap();
            assert_eq!(loaded.ends_at(), Some(at.parse().unwrap()));
        }
    }

    #[test]
    fn certificate_matches_only_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let loaded = Certificate::load(files(dir.path(), (2031, 2, 3)), now()).unwrap();
        let named = ["ops.example", "evil.example", "ops.example.evil", "not a name", ""];
        assert_eq!(named.map(|name| loaded.names(name)), [true, false, false, false, false]);
    }

    #[test]
    fn failed_reload_keeps_old_certificate() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (ours, theirs) = (files(one.path(), (2031, 2, 3)), files(two.path(), (2032, 2, 3)));
        let certificate = Certificate::load(ours.clone(), now()).unwrap();
        fs::copy(&theirs.key, &ours.key).unwrap();
        let error = certificate.replace(now()).unwrap_err().to_string();
        assert!(error.contains("is not that of the certificate"), "{error}");
        assert_eq!(certificate.ends_at(), Some("2031-02-03T00:00:00Z".parse().unwrap()));
        fs::copy(&theirs.cert, &ours.cert).unwrap();
        certificate.replace(now()).unwrap();
        assert_eq!(certificate.ends_at(), Some("2032-02-03T00:00:00Z".parse().unwrap()));

        fs::write(&ours.cert, "no certificate").unwrap();
        assert!(matches!(certificate.replace(now()), Err(TlsError::NoCertificate { .. })));
        fs::copy(&theirs.cert, &ours.cert).unwrap();
        fs::copy(&theirs.cert, &ours.key).unwrap();
        assert!(matches!(certificate.replace(now()), Err(TlsError::NoKey { .. })));
        fs::remove_file(&ours.key).unwrap();
        assert!(matches!(certificate.replace(now()), Err(TlsError::Read { .. })));
    }
}
