//! TLS to etcd: the files are read for each new connection.
//!
//! If the files cannot be used, for example while they are being replaced, the last usable ones stay in use. At the
//! start, files that cannot be used are an error.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::OFlags;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::config::EtcdTlsFiles;

/// Longest file that is read; a usual chain has 5 KiB.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Why certificates for etcd cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {path}: {error}; check the file and its permissions")]
    Read { path: PathBuf, error: String },
    #[error("{path} holds no certificate in PEM; it should begin with -----BEGIN CERTIFICATE-----")]
    NoCertificate { path: PathBuf },
    #[error(
        "{path} holds no private key in PEM that can be used; it should be PKCS#8, PKCS#1 or SEC1, without a passphrase"
    )]
    NoKey { path: PathBuf },
    #[error("the certificate in {cert} with the key in {key} cannot be used: {error}; use a matching pair")]
    Pair { cert: PathBuf, key: PathBuf, error: String },
}

/// The TLS settings for new connections.
pub(crate) struct TlsConfig {
    files: EtcdTlsFiles,
    last: Mutex<Arc<ClientConfig>>,
}

impl TlsConfig {
    pub(crate) fn load(files: EtcdTlsFiles) -> Result<Self, TlsError> {
        let last = Mutex::new(Arc::new(load(&files)?));
        Ok(Self { files, last })
    }

    /// With the files as they are now, or else with the last usable ones.
    pub(crate) fn current(&self) -> Arc<ClientConfig> {
        match load(&self.files) {
            Ok(config) => {
                let config = Arc::new(config);
                *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&config);
                config
            }
            Err(error) => {
                tracing::warn!(%error, "the certificates for etcd cannot be used: the earlier ones stay in use");
                Arc::clone(&self.last.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }
}

fn load(files: &EtcdTlsFiles) -> Result<ClientConfig, TlsError> {
    let EtcdTlsFiles { authority, client } = files;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(read_certificates(authority)?);
    if roots.is_empty() {
        return Err(TlsError::NoCertificate { path: authority.clone() });
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Read { path: authority.clone(), error: error.to_string() })?
        .with_root_certificates(roots);
    let mut config = match client {
        Some(files) => {
            let chain = read_certificates(&files.cert)?;
            let secret = PrivateKeyDer::from_pem_slice(&read(&files.key)?)
                .map_err(|_| TlsError::NoKey { path: files.key.clone() })?;
            builder.with_client_auth_cert(chain, secret).map_err(|error| TlsError::Pair {
                cert: files.cert.clone(),
                key: files.key.clone(),
                error: error.to_string(),
            })?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

/// Not empty.
fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    let certificates = certificates.ok().filter(|certificates| !certificates.is_empty());
    certificates.ok_or_else(|| TlsError::NoCertificate { path: path.to_owned() })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    read_file(path, FILE_BYTES_MAX)
        .map_err(|error| TlsError::Read { path: path.to_owned(), error: error.to_string() })
}

/// Reads a regular file of at most `bytes_max` bytes.
pub(crate) fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 <= bytes_max {
        true => Ok(bytes),
        false => {
            Err(io::Error::new(io::ErrorKind::InvalidData, format!("it has more than {bytes_max} bytes")))
        }
    }
}

/// Opens a regular file. Opening a FIFO would wait for its writer, and a device may never end.
fn open(path: &Path) -> io::Result<File> {
    // The flags of open(2) are an int; none of them uses the sign.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a pipe, a device or a directory; name a regular file",
        )),
    }
}
