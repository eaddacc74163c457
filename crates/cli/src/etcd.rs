//! etcd as the settings of `serve` and the flags of other commands describe it.

use std::sync::Arc;

use anyhow::{Result, bail};
use notbefore_etcd::{ClientCertificateFiles, EtcdConfig, EtcdTlsFiles, EtcdUser, Password};
use notbefore_service::cluster::join::{ConnectedStore, SharedStore};
use notbefore_service::cluster::joined::Claimant;
use notbefore_store::Store;
use tokio::runtime::Runtime;

use crate::args::EtcdArgs;
use crate::config;

/// Checks settings of etcd; none if no URL is given.
pub fn checked(etcd: config::Etcd) -> Result<Option<EtcdConfig>> {
    let config::Etcd { endpoints, node, prefix, ca, cert, key, user, password_file, quota, compact: _ } =
        etcd;
    if endpoints.is_empty() {
        let unused = [
            ("etcd.ca", ca.is_some()),
            ("etcd.cert", cert.is_some()),
            ("etcd.key", key.is_some()),
            ("etcd.user", user.is_some()),
            ("etcd.password_file", password_file.is_some()),
            ("etcd.node", node.is_some()),
        ];
        return match unused.into_iter().find(|(_, is_set)| *is_set) {
            Some((key, _)) => bail!(
                "{key} is set, but no URL of etcd is; name etcd's members with --etcd URL,URL,URL (etcd.endpoints), or leave {key} out"
            ),
            None => Ok(None),
        };
    }
    let client = match (cert, key) {
        (Some(cert), Some(key)) => Some(ClientCertificateFiles { cert, key }),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            bail!("etcd.cert and etcd.key (--etcd-cert, --etcd-key) belong together; set both, or none")
        }
    };
    let tls = match (ca, client) {
        (Some(authority), client) => Some(EtcdTlsFiles { authority, client }),
        (None, None) => None,
        (None, Some(_)) => bail!(
            "etcd.cert (--etcd-cert) is set but etcd.ca (--etcd-ca) is not; set it to the authority of etcd's certificates"
        ),
    };
    let user = match (user, password_file) {
        (Some(name), Some(file)) => Some(EtcdUser { name, password: Password::File(file) }),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => bail!(
            "etcd.user and etcd.password_file (--etcd-user, --etcd-password-file) belong together; set both, or none"
        ),
    };
    let etcd = EtcdConfig { endpoints, prefix, tls, user, quota_bytes: quota };
    etcd.check()?;
    Ok(Some(etcd))
}

impl EtcdArgs {
    /// Connects to etcd to write to it, if a URL is given, and checks what it holds.
    pub fn connect(self, claimant: Claimant) -> Result<Option<(Runtime, Arc<dyn Store>)>> {
        let EtcdArgs { etcd, etcd_prefix, etcd_ca, etcd_cert, etcd_key, etcd_user, etcd_password_file } =
            self;
        let Some(config) = checked(config::Etcd {
            endpoints: etcd,
            node: None,
            prefix: etcd_prefix,
            ca: etcd_ca,
            cert: etcd_cert,
            key: etcd_key,
            user: etcd_user,
            password_file: etcd_password_file,
            quota: None,
            compact: false,
        })?
        else {
            return Ok(None);
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let store = runtime.block_on(async {
            let connected = ConnectedStore::connect(&SharedStore::Etcd(config)).await?;
            connected.claim(claimant).await?;
            anyhow::Ok(connected.store)
        })?;
        Ok(Some((runtime, store)))
    }
}
