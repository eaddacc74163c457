//! The secrets that proxies sign with, from their file.
//!
//! A line is a secret, without the spaces around it. Usually there is one; while it is being changed there
//! are two: write the new one below the old, have the service read the file again, give the proxies the
//! new one, take the old one away. A signature counts if any of them made it.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The largest file: room for a few secrets of any sensible length, and too little for a mistaken path.
const FILE_BYTES_MAX: u64 = 4 * 1024;
/// The most secrets. Two are needed, a request is checked against each, and each is one more to leak.
const SECRETS_MAX: usize = 4;
/// What is shorter than this can be guessed by a patient program.
const SECRET_BYTES_ADVISED: usize = 16;
/// The bytes of a signature, which is twice as many digits.
const SIGNATURE_BYTES: usize = 32;

/// Why a file of secrets cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum SecretsError {
    /// It cannot be read.
    #[error("cannot read the proxies' secret from {path}: {error}; see --proxy-secret-file")]
    Read { path: PathBuf, error: io::Error },
    /// It is too large.
    #[error("{0} is larger than {FILE_BYTES_MAX} bytes: is that the file with the proxies' secret?")]
    TooLarge(PathBuf),
    /// It has no secret.
    #[error("{0} is empty: write the secret into it that the proxies sign with")]
    Empty(PathBuf),
    /// It has too many.
    #[error("{0} has more than {SECRETS_MAX} secrets: take out those that no proxy uses any more")]
    TooMany(PathBuf),
}

/// Keys made of the secrets; what they were cannot be read back.
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
        let file = File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode();
        if mode & 0o007 != 0 {
            tracing::warn!(path = %path.display(), "the proxies' secret is open to every user: chmod o= it");
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(SecretsError::TooLarge(path.to_owned()));
        }
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
                "a secret of the proxies is shorter than {SECRET_BYTES_ADVISED} bytes: make one with openssl rand -hex 32"
            );
        }
        // HMAC takes keys of any length, so none is left out.
        let keys = secrets.iter().filter_map(|secret| Hmac::new_from_slice(secret).ok()).collect();
        Ok(Secrets { keys })
    }

    /// Whether one of the secrets made this signature, in lower-case digits as the convention writes it. The
    /// comparison takes as long for a wrong one as for a right one.
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

    /// The second test case of RFC 4231: a key of four bytes.
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
