//! A listener, as workers share it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;
use tokio::net::TcpListener;

use super::caller::{Caller, ListenerIdentity};

/// A socket that is called at, and what it knows of the callers.
pub(super) struct Listener {
    socket: OwnedFd,
    caller_of: Arc<ListenerIdentity>,
    /// A number for the identity: listeners of one network have the same.
    pub identity: usize,
    /// The address that all callers have called, where there is one only.
    local: Option<SocketAddr>,
}

impl Listener {
    /// Takes listeners over from the runtime.
    pub(super) fn share(listeners: Vec<(TcpListener, ListenerIdentity)>) -> io::Result<Vec<Arc<Listener>>> {
        let mut identities: Vec<Arc<ListenerIdentity>> = Vec::new();
        let mut shared = Vec::new();
        for (listener, identity) in listeners {
            let known = identities.iter().position(|known| **known == identity);
            let identity = known.unwrap_or_else(|| {
                identities.push(Arc::new(identity));
                identities.len() - 1
            });
            let caller_of = Arc::clone(&identities[identity]);
            let local = fixed_address(&listener)?;
            // Answers are written whole: waiting to fill a packet would only delay them. Connections inherit
            // this; a socket that refuses the option is slower, not wrong.
            let _ = SockRef::from(&listener).set_tcp_nodelay(true);
            let socket = listener.into_std()?.into();
            shared.push(Arc::new(Listener { socket, caller_of, identity, local }));
        }
        Ok(shared)
    }

    /// Whether somebody waits to be accepted.
    pub(super) fn has_pending(&self) -> bool {
        let mut asked = [PollFd::new(&self.socket, PollFlags::IN)];
        // Whatever cannot be found out is found out by accepting.
        poll(&mut asked, Some(&Timespec::default())).map_or(true, |called| called > 0)
    }

    /// Who has connected, unless it is gone already.
    pub(super) fn caller(&self, source: SocketAddr, socket: &OwnedFd) -> Option<Caller> {
        let local = match self.local {
            Some(local) => local,
            None => rustix::net::getsockname(socket).ok()?.try_into().ok()?,
        };
        Some(Caller::new(Arc::clone(&self.caller_of), source, local))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The address that all callers of a listener have called: its own, unless that stands for several.
fn fixed_address(listener: &TcpListener) -> io::Result<Option<SocketAddr>> {
    let local = listener.local_addr()?;
    let socket = SockRef::from(listener);
    let is_transparent = match local {
        SocketAddr::V4(_) => socket.ip_transparent_v4(),
        SocketAddr::V6(_) => socket.ip_transparent_v6(),
    };
    let is_wildcard = local.ip().is_unspecified() || is_transparent.unwrap_or(true);
    Ok((!is_wildcard).then_some(local))
}
