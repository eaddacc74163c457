//! A listening socket that all workers share.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;
use tokio::net::TcpListener;

use super::caller::{Caller, ListenerIdentity};

pub(super) struct Listener {
    socket: OwnedFd,
    listener_identity: Arc<ListenerIdentity>,
    /// Number of the identity; listeners of one network have the same number.
    pub identity: u32,
    /// The local address of all connections, if it is the same for all.
    local: Option<IpAddr>,
}

impl Listener {
    /// Converts the runtime's listeners to shared ones.
    pub(super) fn share(listeners: Vec<(TcpListener, ListenerIdentity)>) -> io::Result<Vec<Arc<Listener>>> {
        let mut identities: Vec<Arc<ListenerIdentity>> = Vec::new();
        let mut shared = Vec::new();
        for (listener, identity) in listeners {
            let known = identities.iter().position(|known| **known == identity);
            let identity = known.unwrap_or_else(|| {
                identities.push(Arc::new(identity));
                identities.len() - 1
            });
            let listener_identity = Arc::clone(&identities[identity]);
            let local = fixed_address(&listener)?;
            // Responses are written whole, so Nagle's algorithm would only delay them. Connections inherit the option.
            // If setting it fails, responses are slower but correct.
            let _ = SockRef::from(&listener).set_tcp_nodelay(true);
            let socket = listener.into_std()?.into();
            let identity = u32::try_from(identity).map_err(io::Error::other)?;
            shared.push(Arc::new(Listener { socket, listener_identity, identity, local }));
        }
        Ok(shared)
    }

    /// Whether a connection waits to be accepted.
    pub(super) fn has_pending(&self) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        // If poll fails, try to accept.
        poll(&mut fds, Some(&Timespec::default())).map_or(true, |ready| ready > 0)
    }

    /// The caller of an accepted connection; none if the client is gone.
    pub(super) fn caller(&self, source: IpAddr, socket: &OwnedFd) -> Option<Caller> {
        let local = match self.local {
            Some(local) => local,
            None => SocketAddr::try_from(rustix::net::getsockname(socket).ok()?).ok()?.ip(),
        };
        Some(Caller::new(Arc::clone(&self.listener_identity), source, local))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The listener's own address, unless it is a wildcard address or the socket is transparent.
fn fixed_address(listener: &TcpListener) -> io::Result<Option<IpAddr>> {
    let local = listener.local_addr()?;
    let socket = SockRef::from(listener);
    let is_transparent = match local {
        SocketAddr::V4(_) => socket.ip_transparent_v4(),
        SocketAddr::V6(_) => socket.ip_transparent_v6(),
    };
    let is_wildcard = local.ip().is_unspecified() || is_transparent.unwrap_or(true);
    Ok((!is_wildcard).then_some(local.ip()))
}
