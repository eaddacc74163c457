//! What `serve` is told.

use std::net::SocketAddr;
use std::path::PathBuf;

use jiff::SignedDuration;
use notbefore_core::Settings;

use crate::guest::settings::GuestSettings;
use crate::serve::ServeError;

/// What `serve` is told; the command line makes it.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    /// Where the data is kept.
    pub data: PathBuf,
    /// Where guests call.
    pub guest: Vec<GuestListener>,
    /// Listeners of single VMs.
    pub guest_vms: Vec<GuestVm>,
    /// Where operators call.
    pub operator: SocketAddr,
    /// Whether operators may call from elsewhere although nothing is encrypted.
    pub operator_without_tls: bool,
    /// How the guest door behaves.
    pub guest_settings: GuestSettings,
    /// Whether NotBefore is RFC 1123 at 2017-03-01 too.
    pub rfc1123_everywhere: bool,
    /// The domain's settings.
    pub domain: Settings,
    /// For how long history is kept.
    pub history_kept: SignedDuration,
    /// The name of the VM that stands in for a fleet: the machine's own.
    pub host_name: String,
}

impl ServeConfig {
    /// Refuses settings that contradict each other; whatever needs the machine is found out by running.
    pub fn check(&self) -> Result<(), ServeError> {
        if !self.operator.ip().is_loopback() && !self.operator_without_tls {
            return Err(ServeError::OperatorExposed(self.operator));
        }
        Ok(())
    }
}

/// A listener whose callers are told apart by their source address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestListener {
    /// The network they call from; `default` unless said.
    pub network: String,
    /// Where it listens.
    pub address: SocketAddr,
}

/// A listener whose callers are all one VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestVm {
    /// The VM, by the end of its path.
    pub vm: String,
    /// Where it listens.
    pub address: SocketAddr,
}
