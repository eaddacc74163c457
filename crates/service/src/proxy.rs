//! Trusted proxies: callers that send requests for VMs.
//!
//! Sometimes the source address does not identify a guest: one service for many hypervisors, or tenants with
//! overlapping addresses behind one router. Then a proxy near the guest adds the VM's id and a signature:
//!
//! ```text
//! X-Instance-ID: 5ad21dcd-8f70-4f4a-b2b1-f3c1a9a0a4c1
//! X-Instance-ID-Signature: hex(HMAC-SHA256(secret, the id exactly as it is written above))
//! ```
//!
//! This is the convention of OpenStack's metadata proxy. The id counts if the connection comes from a configured proxy
//! address and the signature is valid. Both are required: a guest that knows a signature cannot use it from its own
//! address. A program on the proxy's machine cannot use its address without the secret.
//!
//! The signature covers only the id, no time and no nonce. It is the same for every request of that VM and can be
//! replayed *from the proxy's address*. That is the convention; keep guests off the network between proxy and service.
//!
//! A proxy is never identified as a VM by its own address, even if the fleet has a VM there. Otherwise a request that
//! lost its id would be answered, and approved, as that VM.

mod address;
mod secrets;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use uuid::Uuid;

pub use self::address::{AddressPrefix, ProxyAddress};
use self::secrets::Secrets;
pub use self::secrets::SecretsError;
use crate::guest::caller::{Caller, ListenerIdentity, ProxyClaim};

/// Maximum addresses and prefixes of proxies. Each connection is compared with all of them; a site with more
/// hypervisors uses a prefix.
pub const PROXIES_MAX: usize = 1_000;
/// Length of a GUID with hyphens. The signature covers this spelling only, so other spellings are refused.
const ID_LENGTH: usize = 36;

/// Configuration of trusted proxies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyConfig {
    /// Addresses of proxies; if empty, no proxy is trusted.
    pub addresses: Vec<ProxyAddress>,
    /// The file with the secret. During a rotation it has several, one a line.
    pub secret_file: Option<PathBuf>,
}

impl ProxyConfig {
    /// Refuses incomplete or excessive configuration.
    pub fn check(&self) -> Result<(), ProxyError> {
        match (&self.secret_file, self.addresses.len()) {
            (None, 0) => Ok(()),
            (None, _) => Err(ProxyError::NoSecretFile),
            (Some(_), 0) => Err(ProxyError::NoAddresses),
            (Some(_), many) if many > PROXIES_MAX => Err(ProxyError::TooMany(many)),
            (Some(_), _) => Ok(()),
        }
    }
}

/// Why the configuration of proxies is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// Proxies without a secret.
    #[error(
        "--proxy is given without --proxy-secret-file: set the file with the secret that proxies sign with"
    )]
    NoSecretFile,
    /// A secret without proxies.
    #[error(
        "--proxy-secret-file is given without --proxy: set the addresses of the proxies, or leave both out"
    )]
    NoAddresses,
    /// Too many proxies.
    #[error("{0} proxies are configured, at most {PROXIES_MAX} are allowed: use a prefix of their addresses")]
    TooMany(usize),
    /// The secret file cannot be used.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
}

/// The trusted proxies and their secrets.
#[derive(Debug, Default)]
pub struct TrustedProxies {
    addresses: Vec<ProxyAddress>,
    file: PathBuf,
    secrets: ArcSwap<Secrets>,
    refused: AtomicU64,
}

impl TrustedProxies {
    /// Reads the secrets of a configuration.
    pub fn load(config: &ProxyConfig) -> Result<TrustedProxies, ProxyError> {
        config.check()?;
        let Some(file) = config.secret_file.clone() else { return Ok(TrustedProxies::default()) };
        let secrets = Secrets::read(&file)?;
        Ok(TrustedProxies {
            addresses: config.addresses.clone(),
            file,
            secrets: ArcSwap::from_pointee(secrets),
            refused: AtomicU64::new(0),
        })
    }

    /// Reads the secrets again. If that fails, the old ones stay.
    pub fn reload(&self) -> Result<(), SecretsError> {
        self.secrets.store(Secrets::read(&self.file)?.into());
        Ok(())
    }

    /// Whether a caller is a trusted proxy. A listener bound to one VM has no proxies: all its callers are that VM.
    pub fn contains(&self, caller: &Caller) -> bool {
        match &*caller.listener {
            ListenerIdentity::Network(network) => {
                self.addresses.iter().any(|proxy| proxy.contains(network, caller.source))
            }
            ListenerIdentity::Bound(_) => false,
        }
    }

    /// The VM that a proxy's request is for, if the signature is valid.
    pub fn vm(&self, caller: &Caller, claim: &ProxyClaim<'_>) -> Option<Uuid> {
        self.verify(claim).inspect_err(|why| self.log_refusal(caller, why)).ok()
    }

    fn verify(&self, claim: &ProxyClaim<'_>) -> Result<Uuid, &'static str> {
        let id = claim.instance_id.ok_or("it must have one X-Instance-ID")?;
        let signature = claim.signature.ok_or("it must have one X-Instance-ID-Signature")?;
        if !self.secrets.load().verify(id.as_bytes(), signature) {
            return Err("X-Instance-ID-Signature does not match any secret of the file");
        }
        let guid = Some(id).filter(|id| id.len() == ID_LENGTH).and_then(|id| id.parse().ok());
        guid.ok_or("X-Instance-ID is no GUID")
    }

    /// Logs a refusal: without this, only guests would see that a secret is wrong. Logs the first, second, fourth and
    /// so on, so that a misconfigured proxy does not fill the log.
    pub(crate) fn log_refusal(&self, caller: &Caller, why: &str) {
        let count = self.refused.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if count.is_power_of_two() {
            tracing::warn!(proxy = %caller.source, count, "refused a request of a trusted proxy: {why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;

    const ID: &str = "5ad21dcd-8f70-4f4a-b2b1-f3c1a9a0a4c1";
    /// `printf %s ID | openssl dgst -sha256 -hmac 'correct horse battery staple'`
    const SIGNATURE: &str = "47711c3e9d60317c63b8201ef2beb57b785ec84c84fe5ed0e2641ca8545bc5e5";

    fn caller(listener: ListenerIdentity, source: &str) -> Caller {
        Caller::new(Arc::new(listener), source.parse().unwrap(), "10.9.0.1".parse().unwrap())
    }

    fn network(name: &str, source: &str) -> Caller {
        caller(ListenerIdentity::Network(name.to_owned()), source)
    }

    /// Proxies at these addresses, and the directory with their secret.
    fn proxies(addresses: &[&str]) -> (TrustedProxies, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("secret");
        fs::write(&file, "correct horse battery staple\n").unwrap();
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let config = ProxyConfig { addresses, secret_file: Some(file) };
        (TrustedProxies::load(&config).unwrap(), directory)
    }

    #[test]
    fn proxy_matches_network_and_address() {
        let (proxies, _directory) = proxies(&["10.9.0.2", "blue=10.8.0.0/16", "fd00::/64"]);
        for (caller, expected) in [
            (network("default", "10.9.0.2"), true),
            (network("default", "10.9.0.3"), false),
            (network("blue", "10.9.0.2"), false),
            (network("blue", "10.8.200.1"), true),
            (network("blue", "10.7.255.255"), false),
            (network("default", "fd00::9"), true),
            (network("default", "fd00:0:0:1::9"), false),
            (network("default", "::ffff:10.9.0.2"), true),
            (caller(ListenerIdentity::Bound("web-0".to_owned()), "10.9.0.2"), false),
        ] {
            assert_eq!(proxies.contains(&caller), expected, "{caller:?}");
        }
        assert!(!TrustedProxies::default().contains(&network("default", "10.9.0.2")));
    }

    #[test]
    fn instance_id_requires_its_own_signature() {
        let (proxies, _directory) = proxies(&["10.9.0.2"]);
        let from = network("default", "10.9.0.2");
        let vm = |instance_id, signature| proxies.vm(&from, &ProxyClaim { instance_id, signature });
        assert_eq!(vm(Some(ID), Some(SIGNATURE)), Some(ID.parse().unwrap()));
        let (last, upper) = (format!("{}0", &SIGNATURE[..63]), SIGNATURE.to_uppercase());
        let other = ID.replace("5ad", "6ad");
        for (id, signature) in [
            (None, None),
            (Some(ID), None),
            (None, Some(SIGNATURE)),
            (Some(ID), Some("")),
            (Some(ID), Some(&*last)),
            (Some(ID), Some(&SIGNATURE[..62])),
            (Some(ID), Some(&*upper)),
            (Some(ID), Some("zz")),
            (Some(&*other), Some(SIGNATURE)),
            (Some(&*ID.to_uppercase()), Some(SIGNATURE)),
        ] {
            assert_eq!(vm(id, signature), None, "{id:?} {signature:?}");
        }
    }

    #[test]
    fn signed_instance_id_must_be_a_guid() {
        let (proxies, _directory) = proxies(&["10.9.0.2"]);
        let from = network("default", "10.9.0.2");
        for id in ["", "web-0", "5ad21dcd8f704f4ab2b1f3c1a9a0a4c1", "{5ad21dcd-8f70-4f4a-b2b1-f3c1a9a0a4c1}"]
        {
            let signature = proxies.secrets.load().sign(id.as_bytes());
            let claim = ProxyClaim { instance_id: Some(id), signature: Some(&signature) };
            assert_eq!(proxies.vm(&from, &claim), None, "{id:?}");
        }
        let upper = ID.to_uppercase();
        let signature = proxies.secrets.load().sign(upper.as_bytes());
        let claim = ProxyClaim { instance_id: Some(&upper), signature: Some(&signature) };
        assert_eq!(proxies.vm(&from, &claim), Some(ID.parse().unwrap()), "signed in this spelling");
    }

    #[test]
    fn secrets_rotate_without_downtime() {
        let (proxies, directory) = proxies(&["10.9.0.2"]);
        let from = network("default", "10.9.0.2");
        let claim = ProxyClaim { instance_id: Some(ID), signature: Some(SIGNATURE) };
        let file = directory.path().join("secret");
        fs::write(&file, "the next one, long enough\ncorrect horse battery staple\n").unwrap();
        proxies.reload().unwrap();
        assert!(proxies.vm(&from, &claim).is_some());
        fs::write(&file, "\n").unwrap();
        assert!(proxies.reload().is_err());
        assert!(proxies.vm(&from, &claim).is_some(), "the old secrets stay");
        fs::write(&file, "the next one, long enough\n").unwrap();
        proxies.reload().unwrap();
        assert!(proxies.vm(&from, &claim).is_none());
    }

    #[test]
    fn incomplete_proxy_config_is_refused() {
        let addresses = vec!["10.9.0.2".parse().unwrap()];
        let error = TrustedProxies::load(&ProxyConfig { addresses, secret_file: None }).unwrap_err();
        assert!(matches!(error, ProxyError::NoSecretFile), "{error}");
        let secret_only = ProxyConfig { addresses: Vec::new(), secret_file: Some("secret".into()) };
        let error = TrustedProxies::load(&secret_only).unwrap_err();
        assert!(matches!(error, ProxyError::NoAddresses), "{error}");
        let many = vec!["10.9.0.2".parse().unwrap(); PROXIES_MAX + 1];
        let error = TrustedProxies::load(&ProxyConfig { addresses: many, ..secret_only }).unwrap_err();
        assert!(matches!(error, ProxyError::TooMany(_)), "{error}");
    }
}
