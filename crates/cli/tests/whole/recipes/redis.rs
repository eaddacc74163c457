//! Redis servers from Debian, for tests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::vm::require_file;
use crate::support::{free_address, wait_for};

/// Time limit of a command; a failover blocks writes for a moment.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A server with its configuration file.
pub struct Redis {
    child: Child,
    config: PathBuf,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Redis {
    /// Starts a server in a directory, with further configuration lines such as `replicaof`.
    pub fn start(directory: &Path, further: &str) -> Self {
        require_file("/usr/bin/redis-server", "redis-server");
        std::fs::create_dir_all(directory).unwrap();
        let (config, address) = (directory.join("redis.conf"), free_address());
        std::fs::write(&config, configuration(directory, address, further)).unwrap();
        let redis = Self { child: Self::spawn(&config), config, address };
        redis.ready();
        redis
    }

    fn spawn(config: &Path) -> Child {
        Command::new("/usr/bin/redis-server").arg(config).stdout(Stdio::null()).spawn().unwrap()
    }

    fn ready(&self) {
        wait_for("Redis", || self.command("PING").ok().filter(|answer| answer == "+PONG"));
    }

    /// Its address, as recipes write it.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Kills it (SIGKILL).
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again with the same configuration file.
    pub fn restart(&mut self) {
        self.child = Self::spawn(&self.config);
        self.ready();
    }

    /// Reinstalls it at the same address: an empty primary without replicas.
    pub fn reinstall(&mut self) {
        self.kill();
        std::fs::write(&self.config, configuration(self.config.parent().unwrap(), self.address, "")).unwrap();
        self.restart();
    }

    /// Sends a command; returns the first line of the response.
    pub fn command(&self, line: &str) -> std::io::Result<String> {
        command(self.address, line)
    }

    /// The elements of a list.
    pub fn list(&self, key: &str) -> Vec<String> {
        let mut stream = connect(self.address).unwrap();
        write!(stream, "LRANGE {key} 0 -1\r\nQUIT\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        // `*2`, then each element after a line with its length, then the response to QUIT.
        let lines: Vec<&str> = text.lines().collect();
        lines[1..lines.len() - 1].iter().skip(1).step_by(2).map(|&element| element.to_owned()).collect()
    }

    /// Whether it is `master` or `slave`.
    pub fn role(&self) -> String {
        self.replication("role")
    }

    /// Stops it with SIGSTOP, or continues it.
    pub fn freeze(&self, frozen: bool) {
        let signal = if frozen { Signal::STOP } else { Signal::CONT };
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// A field of `INFO replication`.
    pub fn replication(&self, field: &str) -> String {
        let mut stream = connect(self.address).unwrap();
        write!(stream, "INFO replication\r\nQUIT\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let value = |line: &str| line.strip_prefix(field)?.strip_prefix(':').map(str::to_owned);
        text.lines().find_map(value).unwrap_or_default()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Configuration without persistence, with additional lines.
fn configuration(directory: &Path, address: SocketAddr, further: &str) -> String {
    let (place, ip, port) = (directory.display(), address.ip(), address.port());
    format!(
        "port {port}\nbind {ip}\nreplica-announce-ip {ip}\ndir {place}\nsave \"\"\nrepl-diskless-sync-delay 0\n{further}\n"
    )
}

/// The first line of the server's response.
pub fn command(address: SocketAddr, line: &str) -> std::io::Result<String> {
    let mut stream = connect(address)?;
    write!(stream, "{line}\r\n")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer.trim_end().to_owned())
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    Ok(stream)
}
