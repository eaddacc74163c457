//! A running service: its addresses, its engine for liveness checks, and what it can reload.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde::Serialize;

use tokio::sync::watch;

use crate::cluster::Standing;
use crate::config::GuestListener;
use crate::faults::Faults;
use crate::listen::ListenAddress;
use crate::runtime::EngineHandle;
use crate::view::Views;

/// A running service.
#[derive(Clone)]
pub struct Running {
    /// Its addresses.
    pub addresses: Addresses,
    /// Its engine, for liveness checks.
    pub engine: EngineHandle,
    /// What it can reload.
    pub reloads: Reloads,
    /// In a cluster, what it knows of the other nodes.
    pub standing: Option<watch::Receiver<Standing>>,
    /// The faults of its guest listener.
    pub faults: Arc<Faults>,
    pub(crate) views: Arc<Views>,
}

impl Running {
    /// Never frees the newest view, for a process that ends with the service. The system frees its memory at once. To drop
    /// a large fleet record by record would take a core while another node takes the lead.
    pub fn leak_view(&self) {
        std::mem::forget(Arc::clone(&self.views));
    }
}

/// The addresses of a running service.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// Guest listeners. If listeners of single VMs exist, only those where a VM is known by its address, or any VM
    /// through a proxy.
    pub guest: Vec<GuestListener>,
    /// Listeners of single VMs.
    pub guest_vms: Vec<(String, SocketAddr)>,
    /// The operator listener.
    pub operator: SocketAddr,
    /// Whether the operator listener uses https.
    pub operator_encrypted: bool,
    /// The file with the first token.
    pub token: PathBuf,
    /// The code of a sign-in link, if the configuration asks for one. It must not be logged.
    pub sign_in_code: Option<String>,
    /// The first-run VM, if there is one.
    pub first_run: Option<String>,
    /// All listeners, for programs.
    pub listeners: Listeners,
}

/// All listeners, in the form for programs: `listeners.json`, the ready file and `serve --output json`.
#[derive(Clone, Debug, Serialize)]
pub struct Listeners {
    /// The release of the service.
    pub version: &'static str,
    /// Its process id.
    pub pid: u32,
    /// Absolute path of the file with the first token.
    pub token_file: String,
    /// The operator listener.
    pub operator: Listener,
    /// Guest listeners, also those that no known VM can call.
    pub guest: Vec<Listener>,
    /// Listeners of single VMs.
    pub guest_vms: Vec<Listener>,
}

/// One listener.
#[derive(Clone, Debug, Serialize)]
pub struct Listener {
    /// The VM of a listener of one VM, by its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm: Option<String>,
    /// The network of a guest listener.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The address that is bound, with the port that the system chose for port 0.
    pub address: SocketAddr,
    /// The URL for callers on this machine.
    pub url: String,
    /// The device that it is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Whether it takes connections from TPROXY.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tproxy: bool,
}

impl Listener {
    /// A listener at an address, for neither a VM nor a network.
    pub fn new(scheme: &str, at: &ListenAddress) -> Self {
        let mut callable = at.address;
        // A wildcard address cannot be called.
        if callable.ip().is_unspecified() {
            callable.set_ip(match callable.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        Self {
            vm: None,
            network: None,
            address: at.address,
            url: format!("{scheme}://{callable}"),
            device: at.device.clone(),
            tproxy: at.tproxy,
        }
    }
}

/// Why a part could not be reloaded; logged.
pub type ReloadError = Box<dyn std::error::Error + Send + Sync>;

type Reload = Box<dyn Fn() -> Result<(), ReloadError> + Send>;

/// Parts that can be reloaded while the service runs. SIGHUP reloads all of them.
#[derive(Clone, Default)]
pub struct Reloads(Arc<Mutex<Vec<(String, Reload)>>>);

impl Reloads {
    /// Adds a part under its name for the log. If `reload` fails, the part must keep its old value. It may block to
    /// read files.
    pub fn add(&self, what: &str, reload: impl Fn() -> Result<(), ReloadError> + Send + 'static) {
        crate::lock(&self.0).push((what.to_owned(), Box::new(reload)));
    }

    /// Reloads every part; returns the result of each.
    pub fn run(&self) -> Vec<(String, Result<(), ReloadError>)> {
        let parts = crate::lock(&self.0);
        parts.iter().map(|(what, reload)| (what.clone(), reload())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_reloads_run_even_if_one_fails() {
        let reloads = Reloads::default();
        assert!(reloads.run().is_empty());
        reloads.add("bad", || Err("no such file".into()));
        reloads.add("good", || Ok(()));
        let texts = |(what, became): (String, Result<(), ReloadError>)| {
            (what, became.map_err(|error| error.to_string()))
        };
        let outcomes: Vec<_> = reloads.clone().run().into_iter().map(texts).collect();
        assert_eq!(
            outcomes,
            [("bad".to_owned(), Err("no such file".to_owned())), ("good".to_owned(), Ok(()))]
        );
    }
}
