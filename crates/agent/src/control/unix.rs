//! Commands by a Unix socket in the state directory. The directory's permissions keep other users out, and so do the
//! socket's. The uid of the other side is checked too: between the creation of the socket and its permissions, the
//! umask decides.

use std::io;
use std::path::Path;

use tokio::net::{UnixListener, UnixStream};

use crate::journal::{self, Journal};
use crate::trust;

/// The caller's side of a connection.
pub type Client = UnixStream;

pub struct Listener(UnixListener);

impl Listener {
    pub fn open(journal: &Journal) -> io::Result<Listener> {
        journal.control_socket().map(Listener)
    }

    /// The next connection of root or the agent's user.
    pub async fn accept(&mut self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.0.accept().await?;
            let uid = stream.peer_cred()?.uid();
            if uid == 0 || uid == trust::user() {
                return Ok(stream);
            }
            tracing::warn!(uid, "refused a command: only root and the agent's user may command the agent");
        }
    }
}

pub async fn connect(state: &Path) -> io::Result<Client> {
    journal::connect_to_control(state).await
}
