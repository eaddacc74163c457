//! Configuration of `serve`.

use std::collections::HashMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use notbefore_core::{Name, Settings};

use crate::clock::SharedClock;
use crate::cluster::join::ClusterConfig;
use crate::exec::ExecConfig;
use crate::fleet::FleetFile;
use crate::guest::interception::Recorder;
use crate::guest::settings::GuestSettings;
use crate::janitor::HistoryLimits;
use crate::listen::ListenAddress;
use crate::nodes::NodesConfig;
use crate::operator::change_rate::ChangeRateLimit;
use crate::operator::server::OperatorServerConfig;
use crate::operator::tls::CertificateFiles;
use crate::proxy::ProxyConfig;
use crate::serve::ServeError;

/// Configuration of `serve`, built by the command line.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    /// The data directory.
    pub data: PathBuf,
    /// Whether the store is in memory. The data directory then has only small files, such as the first token.
    pub in_memory: bool,
    /// The cluster of which this is a node; none for the only node of its store.
    pub cluster: Option<ClusterConfig>,
    /// Whether to create a sign-in link of the first token, for a person at a terminal.
    pub sign_in_link: bool,
    /// The file with the first token; none to create a random one.
    pub root_token_file: Option<PathBuf>,
    /// The file to write when the service is ready.
    pub ready_file: Option<PathBuf>,
    /// The fleet file to apply at the start.
    pub fleet: Option<FleetFile>,
    /// Guest listeners.
    pub guest: Vec<GuestListener>,
    /// Listeners of single VMs.
    pub guest_vms: Vec<GuestVm>,
    /// Listeners of single VMs that the caller has bound, for example in another network namespace.
    pub guest_sockets: Vec<BoundSocket>,
    /// Gets every request of guests and its answer.
    pub recorder: Option<Recorder>,
    /// Whether operators may add faults to the guest listener.
    pub faults_allowed: bool,
    /// The service's clock.
    pub clock: SharedClock,
    /// Trusted proxies.
    pub proxy: ProxyConfig,
    /// The operator listener.
    pub operator: SocketAddr,
    /// Allows remote operators without TLS.
    pub operator_without_tls: bool,
    /// The operator listener's certificate; without one there is no TLS.
    pub operator_certificate: Option<CertificateFiles>,
    /// Rate limit for changes of a token that is not operator on `/`.
    pub change_rate_limit: ChangeRateLimit,
    /// Whether tokens of tenants see names of hosts.
    pub hosts_shown: bool,
    /// Connection limits of the operator listener.
    pub operator_server: OperatorServerConfig,
    /// The node listener, for several nodes on one store.
    pub nodes: NodesConfig,
    /// Settings of the guest listener.
    pub guest_settings: GuestSettings,
    /// Whether NotBefore is RFC 1123 at 2017-03-01 too.
    pub rfc1123_everywhere: bool,
    /// Settings of the domain.
    pub domain: Settings,
    /// The exec driver's configuration, if it is the driver.
    pub exec: Option<ExecConfig>,
    pub history: HistoryLimits,
    /// The name of the first-run VM: the machine's host name.
    pub host_name: String,
}

impl ServeConfig {
    /// A service in memory on free loopback ports, with small files in `data` and the usual settings otherwise.
    pub fn in_memory(data: PathBuf) -> Self {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            data,
            in_memory: true,
            cluster: None,
            sign_in_link: false,
            root_token_file: None,
            ready_file: None,
            fleet: None,
            guest: vec![GuestListener { network: "default".to_owned(), at: any_port.into() }],
            guest_vms: Vec::new(),
            guest_sockets: Vec::new(),
            recorder: None,
            faults_allowed: false,
            clock: SharedClock::default(),
            proxy: ProxyConfig::default(),
            operator: any_port,
            operator_without_tls: false,
            operator_certificate: None,
            change_rate_limit: ChangeRateLimit::default(),
            hosts_shown: false,
            operator_server: OperatorServerConfig::default(),
            nodes: NodesConfig::default(),
            guest_settings: GuestSettings::default(),
            rfc1123_everywhere: false,
            domain: Settings::default(),
            exec: None,
            history: HistoryLimits::default(),
            host_name: "localhost".to_owned(),
        }
    }

    /// Refuses contradictory settings. Errors that depend on the machine appear when the service starts.
    pub fn check(&self) -> Result<(), ServeError> {
        let encrypted = self.operator_certificate.is_some();
        if !encrypted && !self.operator.ip().is_loopback() && !self.operator_without_tls {
            return Err(ServeError::OperatorExposed(self.operator));
        }
        self.nodes.check()?;
        if self.cluster.is_some() && (self.fleet.is_some() || self.has_bound_vms()) {
            return Err(ServeError::NotInCluster);
        }
        if self.cluster.is_some() && self.faults_allowed {
            return Err(ServeError::FaultsInCluster);
        }
        self.check_distinct_addresses()?;
        Ok(self.proxy.check()?)
    }

    /// Whether VMs have listeners of their own.
    pub fn has_bound_vms(&self) -> bool {
        !self.guest_vms.is_empty() || !self.guest_sockets.is_empty()
    }

    /// Refuses two listeners with the same address: the system's error would suggest another program.
    fn check_distinct_addresses(&self) -> Result<(), ServeError> {
        let guests = self.guest.iter().map(|guest| (format!("guest.listen ({guest})"), &guest.at));
        let vms = self.guest_vms.iter().map(|one| (format!("guest.vms ({})", one.vm), &one.at));
        let operator = ((self.operator, None), "operator.listen".to_owned());
        let node = ListenAddress::from(self.nodes.listen);
        let all = guests.chain(vms).chain([("node.listen".to_owned(), &node)]);
        let mut taken: HashMap<(SocketAddr, Option<&str>), String> = HashMap::from([operator]);
        for (name, at) in all.filter(|(_, at)| at.address.port() != 0) {
            if let Some(other) = taken.insert((at.address, at.device.as_deref()), name.clone()) {
                return Err(ServeError::DuplicateAddress(other, name, at.clone()));
            }
        }
        Ok(())
    }
}

/// A listener that identifies its callers by source address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestListener {
    /// The network of the callers; `default` if not given.
    pub network: String,
    /// Its address.
    pub at: ListenAddress,
}

impl FromStr for GuestListener {
    type Err = ();

    /// Parses `[NETWORK=]ADDR[%DEVICE][+tproxy]`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (network, at) = text.split_once('=').unwrap_or(("default", text));
        let network = network.parse::<Name>().map_err(|_| ())?.to_string();
        Ok(GuestListener { network, at: at.parse()? })
    }
}

impl fmt::Display for GuestListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.network.as_str() {
            "default" => write!(f, "{}", self.at),
            network => write!(f, "{network}={}", self.at),
        }
    }
}

/// A listener whose callers are all one VM, bound by the caller of `serve`.
#[derive(Clone, Debug)]
pub struct BoundSocket {
    /// The VM, by the end of its path.
    pub vm: String,
    /// The listening socket. The service uses a duplicate.
    pub listener: Arc<TcpListener>,
}

/// A listener whose callers are all one VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestVm {
    /// The VM, by the end of its path.
    pub vm: String,
    /// Its address.
    pub at: ListenAddress,
}

impl FromStr for GuestVm {
    type Err = ();

    /// Parses `NAME=ADDR[%DEVICE][+tproxy]`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (vm, at) = text.split_once('=').ok_or(())?;
        if !vm.split('/').all(|part| part.parse::<Name>().is_ok()) {
            return Err(());
        }
        Ok(GuestVm { vm: vm.to_owned(), at: at.parse()? })
    }
}

impl fmt::Display for GuestVm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.vm, self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_parse_and_display() {
        for (text, network) in [
            ("127.0.0.1:9254", "default"),
            ("blue=169.254.169.254:80%br-blue", "blue"),
            ("blue=127.0.0.1:9254+tproxy", "blue"),
        ] {
            let listener: GuestListener = text.parse().unwrap();
            assert_eq!((listener.network.as_str(), listener.to_string().as_str()), (network, text));
        }
        let text = "shop/web-0=127.0.0.1:9301%tap0";
        assert_eq!(text.parse::<GuestVm>().unwrap().to_string(), text);
        for text in ["127.0.0.1:9301", "=127.0.0.1:9301", "web 0=127.0.0.1:9301", "shop/=127.0.0.1:9301"] {
            assert!(text.parse::<GuestVm>().is_err(), "{text}");
        }
        assert!("b lue=127.0.0.1:9301".parse::<GuestListener>().is_err());
    }
}
