//! Caller of a connection: listener identity, source address, and proxy claim.
//!
//! A guest sends no credentials: its address identifies it. A listener belongs to one network, since the addresses of
//! different tenants overlap, or it is bound to one VM. The platform resolves the VM at each request, so a moved or
//! removed VM takes effect on open connections.

use std::net::IpAddr;
use std::sync::Arc;

/// How a listener identifies its callers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenerIdentity {
    /// Callers are VMs of this network, identified by source address.
    Network(String),
    /// Every caller is the VM with this path.
    Bound(String),
}

/// The address of a connection's client and the identity of its listener. Each idle connection has one, so it is small.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The listener that accepted the connection.
    pub listener: Arc<ListenerIdentity>,
    /// The caller's address.
    pub source: IpAddr,
    /// The caller is on this machine: it calls from loopback, or from the address that it called.
    pub is_local: bool,
    /// The caller is a trusted proxy: each request is for the VM whose id the proxy signed, and for no other.
    pub is_proxy: bool,
}

impl Caller {
    /// A caller that is no proxy and has connected to `called`. IPv4 addresses from an IPv6 socket are converted to IPv4.
    pub fn new(listener: Arc<ListenerIdentity>, source: IpAddr, called: IpAddr) -> Caller {
        let source = source.to_canonical();
        let is_local = source.is_loopback() || source == called.to_canonical();
        Caller { listener, source, is_local, is_proxy: false }
    }
}

/// `X-Instance-ID` and its signature, which a metadata proxy adds. Any client can send these headers, so they are read
/// only from a trusted proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyClaim<'a> {
    /// The id of the VM that the proxy calls for.
    pub instance_id: Option<&'a str>,
    /// The proxy's signature of the id.
    pub signature: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_canonical_and_local_ones_are_found() {
        let listener = Arc::new(ListenerIdentity::Network("default".to_owned()));
        for (source, called, canonical, is_local) in [
            ("::ffff:10.0.0.4", "::1", "10.0.0.4", false),
            ("::ffff:10.0.0.4", "10.0.0.4", "10.0.0.4", true),
            ("10.0.0.4", "::ffff:10.0.0.4", "10.0.0.4", true),
            ("10.0.0.4", "10.0.0.5", "10.0.0.4", false),
            ("127.0.0.9", "10.0.0.4", "127.0.0.9", true),
            ("::ffff:127.0.0.1", "10.0.0.4", "127.0.0.1", true),
            ("::1", "fd00::1", "::1", true),
            ("fd00::1", "fd00::1", "fd00::1", true),
        ] {
            let caller = Caller::new(Arc::clone(&listener), source.parse().unwrap(), called.parse().unwrap());
            assert_eq!((caller.source, caller.is_local), (canonical.parse().unwrap(), is_local), "{source}");
        }
    }
}
