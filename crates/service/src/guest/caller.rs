//! Caller of a connection: listener identity, source address, and proxy claim.
//!
//! A guest sends no credentials: its address identifies it. A listener belongs to one network, since the addresses of
//! different tenants overlap, or it is bound to one VM. The platform resolves the VM at each request, so a moved or
//! removed VM takes effect on open connections.

use std::net::SocketAddr;
use std::sync::Arc;

/// How a listener identifies its callers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenerIdentity {
    /// Callers are VMs of this network, identified by source address.
    Network(String),
    /// Every caller is the VM with this path.
    Bound(String),
}

/// The addresses of a connection and the identity of its listener.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The listener that accepted the connection.
    pub listener: Arc<ListenerIdentity>,
    /// The caller's address.
    pub source: SocketAddr,
    /// The address that the caller connected to.
    pub local: SocketAddr,
    /// The caller is a trusted proxy: each request is for the VM whose id the proxy signed, and for no other.
    pub is_proxy: bool,
}

impl Caller {
    /// A caller that is no proxy. IPv4 addresses from an IPv6 socket are converted to IPv4.
    pub fn new(listener: Arc<ListenerIdentity>, source: SocketAddr, local: SocketAddr) -> Caller {
        let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        Caller { listener, source: canonical(source), local: canonical(local), is_proxy: false }
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
    fn ipv4_mapped_caller_is_canonical() {
        let listener = Arc::new(ListenerIdentity::Network("default".to_owned()));
        let mapped =
            Caller::new(listener, "[::ffff:10.0.0.4]:5".parse().unwrap(), "[::1]:80".parse().unwrap());
        assert_eq!(mapped.source, "10.0.0.4:5".parse().unwrap());
        assert_eq!(mapped.local, "[::1]:80".parse().unwrap());
    }
}
