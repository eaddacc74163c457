//! A fake systemd for `Type=notify`.

use std::os::unix::net::UnixDatagram;

use super::PATIENCE;

/// The received notification datagrams, in order.
pub struct Manager {
    socket: UnixDatagram,
    /// Path of its socket.
    pub path: std::path::PathBuf,
    _dir: tempfile::TempDir,
}

impl Manager {
    /// Creates the socket.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, path, _dir: dir }
    }

    /// Reads datagrams until one has a line with this prefix; returns it.
    pub fn wait_for(&self, begin: &str) -> String {
        let mut buffer = [0; 4_096];
        loop {
            let length = self.socket.recv(&mut buffer).unwrap_or_else(|error| panic!("no {begin}: {error}"));
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if text.lines().any(|line| line.starts_with(begin)) {
                return text;
            }
        }
    }
}
