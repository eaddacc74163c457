//! What a service that runs gives to whoever has started it: where it can be reached, whether it is alive, and what
//! it can read anew.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::config::GuestListener;
use crate::runtime::EngineHandle;

/// A service that runs.
#[derive(Clone)]
pub struct Running {
    /// Where it can be reached.
    pub addresses: Addresses,
    /// Its engine, to be asked for a sign of life.
    pub engine: EngineHandle,
    /// What it can read anew.
    pub reloads: Reloads,
}

/// Where a service that runs can be reached.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// Where guests call. Beside listeners of single VMs, only those at which some VM is known by its address, or
    /// any VM through a proxy.
    pub guest: Vec<GuestListener>,
    /// Where single VMs call.
    pub guest_vms: Vec<(String, SocketAddr)>,
    /// Where operators call.
    pub operator: SocketAddr,
    /// Whether they call by https.
    pub operator_encrypted: bool,
    /// The file with the first token.
    pub token: PathBuf,
    /// The VM that stands in for a fleet, if there is one.
    pub first_run: Option<String>,
}

/// Why a part could not be read anew; the log shows it.
pub type ReloadError = Box<dyn std::error::Error + Send + Sync>;

type Reload = Box<dyn Fn() -> Result<(), ReloadError> + Send>;

/// What can be read anew while the service runs. Each part that can hangs itself in; SIGHUP goes through them all.
#[derive(Clone, Default)]
pub struct Reloads(Arc<Mutex<Vec<(String, Reload)>>>);

impl Reloads {
    /// Hangs in a part under the name that the log shall call it by. Where `reload` fails, the part must go on with
    /// what it had. It may read files.
    pub fn add(&self, what: &str, reload: impl Fn() -> Result<(), ReloadError> + Send + 'static) {
        crate::lock(&self.0).push((what.to_owned(), Box::new(reload)));
    }

    /// Has every part read anew, and gives what became of each.
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
        let words = |(what, became): (String, Result<(), ReloadError>)| {
            (what, became.map_err(|error| error.to_string()))
        };
        let outcomes: Vec<_> = reloads.clone().run().into_iter().map(words).collect();
        assert_eq!(
            outcomes,
            [("bad".to_owned(), Err("no such file".to_owned())), ("good".to_owned(), Ok(()))]
        );
    }
}
