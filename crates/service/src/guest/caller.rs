//! Who is calling, as far as a connection can tell.
//!
//! A guest proves nothing: it is known by where it calls from. A listener stands in one network, since the
//! addresses of different tenants overlap, or is bound to one VM. Which VM that is, the platform decides
//! anew at each request, so that a moved or removed VM is seen on connections that are already open.

use std::net::SocketAddr;
use std::sync::Arc;

/// What a listener knows of everyone who connects to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenerIdentity {
    /// Callers are VMs of this network, told apart by their source address.
    Network(String),
    /// Every caller is the VM of this whole path.
    Bound(String),
}

/// One end of a connection: who may be at the other.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The listener that was called.
    pub listener: Arc<ListenerIdentity>,
    /// Where the call comes from.
    pub source: SocketAddr,
    /// The address that was called.
    pub local: SocketAddr,
    /// Whether it is a trusted proxy: then it is the VM that it proves to speak for, and no other.
    pub is_proxy: bool,
}

impl Caller {
    /// A caller that speaks for itself, with IPv4 addresses that arrived on an IPv6 socket written as IPv4.
    pub fn new(listener: Arc<ListenerIdentity>, source: SocketAddr, local: SocketAddr) -> Caller {
        let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        Caller { listener, source: canonical(source), local: canonical(local), is_proxy: false }
    }
}

/// What the request itself says about who it is for: `X-Instance-ID` and its signature, as a metadata proxy
/// adds them. Anybody can send these, so they are looked at only where the caller is a trusted proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyClaim<'a> {
    /// The VM that the proxy says it speaks for.
    pub instance_id: Option<&'a str>,
    /// The proof that it may.
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
