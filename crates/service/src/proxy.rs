//! Trusted proxies: callers that speak for VMs other than themselves.
//!
//! Where guests cannot be told apart by their source address (one service for many hypervisors, tenants whose
//! addresses overlap behind one router), a proxy near the guest knows which VM it talks to and says so:
//!
//! ```text
//! X-Instance-ID: 5ad21dcd-8f70-4f4a-b2b1-f3c1a9a0a4c1
//! X-Instance-ID-Signature: hex(HMAC-SHA256(secret, the id exactly as it is written above))
//! ```
//!
//! This is the convention of OpenStack's metadata proxy. Two things must hold before the id counts: the
//! connection comes from an address that is configured as a proxy's, and the signature is right. Either alone
//! is not enough: a guest that learnt a signature cannot use it from its own address, and a program beside
//! the proxy cannot use its address without the secret.
//!
//! The signature covers the id and nothing else, no time and no number, so it is the same for every request
//! of that VM. Whoever can repeat it *from the proxy's address* is the proxy, as far as anyone can tell; that is
//! the convention, and the reason to keep guests off the network between proxy and service.
//!
//! A proxy is never taken for a VM by its own address, also where the fleet has a VM there: a request whose
//! id was lost on the way would otherwise be answered with, and approved in the name of, that VM.

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

/// The most addresses and prefixes of proxies. A connection is compared with each; a site with more
/// hypervisors than this has a prefix for them.
pub const PROXIES_MAX: usize = 1_000;
/// How a GUID with its hyphens is written. Other spellings of the same id have no signature of their own in
/// the convention, so they are no ids here.
const ID_LENGTH: usize = 36;

/// Who is trusted to speak for VMs, as it is configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyConfig {
    /// Where proxies call from; none where nobody is trusted.
    pub addresses: Vec<ProxyAddress>,
    /// The file with the secret, or, while it is being changed, the secrets, one a line.
    pub secret_file: Option<PathBuf>,
}

impl ProxyConfig {
    /// Refuses what cannot be meant.
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

/// Why proxies cannot be trusted as configured.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// A proxy is named, and no secret.
    #[error("--proxy is given without --proxy-secret-file: say where the secret is that proxies sign with")]
    NoSecretFile,
    /// A secret is named, and no proxy.
    #[error(
        "--proxy-secret-file is given without --proxy: say from which addresses proxies call, or leave both out"
    )]
    NoAddresses,
    /// There are too many.
    #[error("{0} proxies are named, the most is {PROXIES_MAX}: name a prefix of their addresses instead")]
    TooMany(usize),
    /// The file cannot be used.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
}

/// Who is trusted to speak for VMs.
#[derive(Debug, Default)]
pub struct TrustedProxies {
    addresses: Vec<ProxyAddress>,
    file: PathBuf,
    secrets: ArcSwap<Secrets>,
    refused: AtomicU64,
}

impl TrustedProxies {
    /// The proxies of a configuration, with their secrets read.
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

    /// Reads the secrets again. If that fails, those that were read before stay.
    pub fn reload(&self) -> Result<(), SecretsError> {
        self.secrets.store(Secrets::read(&self.file)?.into());
        Ok(())
    }

    /// Whether a caller is a proxy. A listener that is bound to one VM has no proxies: all its callers are
    /// that VM.
    pub fn contains(&self, caller: &Caller) -> bool {
        match &*caller.listener {
            ListenerIdentity::Network(network) => {
                self.addresses.iter().any(|proxy| proxy.contains(network, caller.source.ip()))
            }
            ListenerIdentity::Bound(_) => false,
        }
    }

    /// The VM that a proxy speaks for, if it proves that it may.
    pub fn vm(&self, caller: &Caller, claim: &ProxyClaim<'_>) -> Option<Uuid> {
        self.verify(claim).inspect_err(|why| self.log_refusal(caller, why)).ok()
    }

    fn verify(&self, claim: &ProxyClaim<'_>) -> Result<Uuid, &'static str> {
        let id = claim.instance_id.ok_or("it has not exactly one X-Instance-ID")?;
        let signature = claim.signature.ok_or("it has not exactly one X-Instance-ID-Signature")?;
        if !self.secrets.load().verify(id.as_bytes(), signature) {
            return Err("its X-Instance-ID-Signature was made with no secret of the file");
        }
        let guid = Some(id).filter(|id| id.len() == ID_LENGTH).and_then(|id| id.parse().ok());
        guid.ok_or("its X-Instance-ID is no GUID")
    }

    /// Leaves word of a refusal, since a wrong secret on one side is otherwise seen by guests only. The first,
    /// the second, the fourth and so on: a proxy that is set up wrongly must not fill the log.
    pub(crate) fn log_refusal(&self, caller: &Caller, why: &str) {
        let count = self.refused.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if count.is_power_of_two() {
            tracing::warn!(proxy = %caller.source.ip(), count, "a request of a trusted proxy was refused: {why}");
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
        Caller::new(
            Arc::new(listener),
            format!("{source}:5").parse().unwrap(),
            "10.9.0.1:80".parse().unwrap(),
        )
    }

    fn network(name: &str, source: &str) -> Caller {
        caller(ListenerIdentity::Network(name.to_owned()), source)
    }

    /// The proxies at these addresses, and the directory with their secret.
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
            (network("default", "[fd00::9]"), true),
            (network("default", "[fd00:0:0:1::9]"), false),
            (network("default", "[::ffff:10.9.0.2]"), true),
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
        assert_eq!(proxies.vm(&from, &claim), Some(ID.parse().unwrap()), "signed as it is written");
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
        assert!(proxies.vm(&from, &claim).is_some(), "what was read before stays");
        fs::write(&file, "the next one, long enough\n").unwrap();
        proxies.reload().unwrap();
        assert!(proxies.vm(&from, &claim).is_none());
    }

    #[test]
    fn incomplete_proxy_config_is_refused() {
        let addresses = vec!["10.9.0.2".parse().unwrap()];
        let error = TrustedProxies::load(&ProxyConfig { addresses, secret_file: None }).unwrap_err();
        assert!(matches!(error, ProxyError::NoSecretFile), "{error}");
        let lone = ProxyConfig { addresses: Vec::new(), secret_file: Some("secret".into()) };
        let error = TrustedProxies::load(&lone).unwrap_err();
        assert!(matches!(error, ProxyError::NoAddresses), "{error}");
        let many = vec!["10.9.0.2".parse().unwrap(); PROXIES_MAX + 1];
        let error = TrustedProxies::load(&ProxyConfig { addresses: many, ..lone }).unwrap_err();
        assert!(matches!(error, ProxyError::TooMany(_)), "{error}");
    }
}
