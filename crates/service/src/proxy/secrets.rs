//! Secrets that proxies sign with, read from a file.
//!
//! Each line is a secret; surrounding white space is removed. A signature is valid if any of the secrets made it. To
//! rotate a secret: add the new one below the old, reload the service, give the proxies the new one, remove the old
//! one.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::secret_file::{self, FILE_BYTES_MAX};

/// Maximum secrets. A rotation needs two; each request is checked against all, and each is one more to leak.
const SECRETS_MAX: usize = 4;
/// Shorter secrets can be found by brute force; the service warns about them.
const SECRET_BYTES_ADVISED: usize = 16;
/// Bytes of a signature, which has two hex digits for each.
const SIGNATURE_BYTES: usize = 32;

/// Why a file of secrets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// The file cannot be read.
    #[error("cannot read the proxies' secret from {path}: {error}; see --proxy-secret-file")]
    Read { path: PathBuf, error: io::Error },
    /// The file is too large.
    #[error("{0} is larger than {FILE_BYTES_MAX} bytes: is that the file with the proxies' secret?")]
    TooLarge(PathBuf),
    /// The file has no secret.
    #[error("{0} is empty: write the secret that the proxies sign with into it")]
    Empty(PathBuf),
    /// The file has too many secrets.
    #[error("{0} has more than {SECRETS_MAX} secrets: remove those that no proxy uses any more")]
    TooMany(PathBuf),
}

/// Keys derived from the secrets; the secrets cannot be read back.
#[derive(Default)]
pub(super) struct Secrets {
    keys: Vec<Hmac<Sha256>>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("count", &self.keys.len()).finish()
    }
}

impl Secrets {
    pub(super) fn read(path: &Path) -> Result<Secrets, SecretsError> {
        let failed = |error| SecretsError::Read { path: path.to_owned(), error };
        let bytes = secret_file::read(path, "the proxies' secret").map_err(failed)?;
        let bytes = bytes.ok_or_else(|| SecretsError::TooLarge(path.to_owned()))?;
        let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let secrets: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
        match secrets.len() {
            0 => return Err(SecretsError::Empty(path.to_owned())),
            1..=SECRETS_MAX => {}
            _ => return Err(SecretsError::TooMany(path.to_owned())),
        }
        if secrets.iter().any(|secret| secret.len() < SECRET_BYTES_ADVISED) {
            tracing::warn!(
                path = %path.display(),
                "a secret of the proxies is shorter than {SECRET_BYTES_ADVISED} bytes: create one with openssl rand -hex 32"
            );
        }
        // HMAC accepts keys of any length, so none is dropped.
        let keys = secrets.iter().filter_map(|secret| Hmac::new_from_slice(secret).ok()).collect();
        Ok(Secrets { keys })
    }

    /// Whether one of the secrets made this signature in lower-case hex. The comparison is constant-time.
    pub(super) fn verify(&self, id: &[u8], signature: &str) -> bool {
        let Some(signature) = decode(signature) else { return false };
        self.keys.iter().any(|key| key.clone().chain_update(id).verify_slice(&signature).is_ok())
    }

    /// The signature that a proxy would send.
    #[cfg(test)]
    pub(super) fn sign(&self, id: &[u8]) -> String {
        HEXLOWER.encode(&self.keys[0].clone().chain_update(id).finalize().into_bytes())
    }
}

fn decode(text: &str) -> Option<[u8; SIGNATURE_BYTES]> {
    let digits: &[u8; 2 * SIGNATURE_BYTES] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0; SIGNATURE_BYTES];
    HEXLOWER.decode_mut(digits, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: impl AsRef<[u8]>) -> Result<Secrets, SecretsError> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("secret");
        std::fs::write(&file, text).unwrap();
        Secrets::read(&file)
    }

    /// Test case 2 of RFC 4231: a key of four bytes.
    #[test]
    fn signatures_are_hmac_sha256() {
        let signature = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        for file in ["Jefe", "Jefe\n", "  Jefe\r\n\r\n", "another\nJefe\n"] {
            assert!(read(file).unwrap().verify(b"what do ya want for nothing?", signature), "{file:?}");
        }
        assert!(!read("jefe").unwrap().verify(b"what do ya want for nothing?", signature));
        assert!(!read("Jefe").unwrap().verify(b"what do ya want for nothing", signature));
        assert!(!Secrets::default().verify(b"", ""));
    }

    #[test]
    fn secret_file_holds_one_to_four_secrets() {
        assert!(matches!(read("").unwrap_err(), SecretsError::Empty(_)));
        assert!(matches!(read(" \r\n\n").unwrap_err(), SecretsError::Empty(_)));
        assert_eq!(read("a\nb\nc\nd\n").unwrap().keys.len(), 4);
        assert!(matches!(read("a\nb\nc\nd\ne").unwrap_err(), SecretsError::TooMany(_)));
        assert!(matches!(read([b'a'; 4097]).unwrap_err(), SecretsError::TooLarge(_)));
        let error = Secrets::read(Path::new("/nowhere/secret")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/secret"), "{error}");
        assert_eq!(format!("{:?}", read("Jefe").unwrap()), "Secrets { count: 1 }");
    }
}
