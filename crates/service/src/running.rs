//! A running service: its addresses, its engine for liveness checks, and what it can reload.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::config::GuestListener;
use crate::runtime::EngineHandle;

/// A running service.
#[derive(Clone)]
pub struct Running {
    /// Its addresses.
    pub addresses: Addresses,
    /// Its engine, for liveness checks.
    pub engine: EngineHandle,
    /// What it can reload.
    pub reloads: Reloads,
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
    /// The first-run VM, if there is one.
    pub first_run: Option<String>,
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
