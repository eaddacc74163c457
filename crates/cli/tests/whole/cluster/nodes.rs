//! The nodes: `notbefore serve --etcd`, each on a machine of its own, with mutual TLS between them and a wall clock of its
//! own (libfaketime).

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::process::{Pid, Signal, kill_process};

use super::network::{Machine, Network};
use crate::support::binary;
use crate::support::http::{Answer, NoResponse, exchange_within};
use crate::support::namespace::require_file;

/// The first token of all nodes.
pub const TOKEN: &str = "the-first-token-of-the-cluster";
/// Limit of a request: longer than the deadline of a forwarded change.
pub const REQUEST_MAX: Duration = Duration::from_secs(8);

const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
/// For how many seconds a process keeps the offset of its clock before it reads the file again.
const CLOCK_READ_EVERY: &str = "1";

/// Where a node answers.
#[derive(Clone, Copy, Debug)]
pub struct NodeAddress(pub Ipv4Addr);

impl NodeAddress {
    pub fn guest(self) -> SocketAddr {
        SocketAddr::from((self.0, 80))
    }

    pub fn operator(self) -> SocketAddr {
        SocketAddr::from((self.0, 9255))
    }

    /// A request of an operator, with an idempotency key unless it is empty.
    pub fn request(self, method: &str, target: &str, key: &str, body: &str) -> Result<Answer, NoResponse> {
        let key = if key.is_empty() { String::new() } else { format!("Idempotency-Key: {key}\r\n") };
        let (host, length) = (self.0, body.len());
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: {host}:9255\r\nAuthorization: Bearer {TOKEN}\r\n{key}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        exchange_within(Ipv4Addr::UNSPECIFIED, self.operator(), &request, REQUEST_MAX)
    }

    pub fn get(self, target: &str) -> Option<Answer> {
        self.request("GET", target, "", "").ok()
    }

    /// Whether the node answers guests, and takes changes or knows a leader that does.
    pub fn takes_changes(self) -> bool {
        let request =
            format!("GET /readyz?changes HTTP/1.1\r\nHost: {}:9255\r\nConnection: close\r\n\r\n", self.0);
        exchange_within(Ipv4Addr::UNSPECIFIED, self.operator(), &request, Duration::from_secs(1))
            .is_ok_and(|answer| answer.status == 200)
    }
}

pub struct Node {
    process: Option<Child>,
    pub name: String,
    pub address: NodeAddress,
    pub machine: usize,
    dir: PathBuf,
    pub flags: Vec<String>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts nodes on these machines, with further flags.
pub fn start(network: &Network, machines: &[usize], etcd: &str, dir: &Path, further: &[&str]) -> Vec<Node> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let token = dir.join("first.token");
    fs::write(&token, TOKEN).unwrap();
    let node = |(number, &machine): (usize, &usize)| {
        let (name, address) = (format!("n{number}"), network.machines[machine].address);
        let dir = dir.join(&name);
        fs::create_dir(&dir).unwrap();
        let path = |file: &str| dir.join(file).to_str().unwrap().to_owned();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![address.to_string()]).unwrap();
        fs::write(path("cert"), params.signed_by(&key, &authority).unwrap().pem()).unwrap();
        fs::write(path("key"), key.serialize_pem()).unwrap();
        fs::write(path("ca"), authority.pem()).unwrap();
        let own = [
            ("--etcd", etcd.to_owned()),
            ("--node", name.clone()),
            ("--data", path("data")),
            ("--guest", format!("{address}:80")),
            ("--operator", format!("{address}:9255")),
            ("--node-listen", format!("{address}:9256")),
            ("--node-cert", path("cert")),
            ("--node-key", path("key")),
            ("--node-ca", path("ca")),
            ("--root-token-file", token.to_str().unwrap().to_owned()),
        ];
        let own = own.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]);
        let flags = own.chain(["--operator-without-tls".to_owned()]);
        let flags = flags.chain(further.iter().map(|&flag| flag.to_owned())).collect();
        let mut node = Node { process: None, name, address: NodeAddress(address), machine, dir, flags };
        node.set_clock(0.0);
        node.start(&network.machines[machine]);
        node
    };
    machines.iter().enumerate().map(node).collect()
}

impl Node {
    pub fn start(&mut self, machine: &Machine) {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log_path()).unwrap();
        let mut command = machine.namespace.command(binary());
        command.arg("serve").args(&self.flags).env("NOTBEFORE_LOG", "info").env("NO_COLOR", "1");
        require_file(FAKETIME, "libfaketime");
        command.env("LD_PRELOAD", FAKETIME).env("FAKETIME_TIMESTAMP_FILE", self.clock_path());
        command.env("FAKETIME_CACHE_DURATION", CLOCK_READ_EVERY).env("DONT_FAKE_MONOTONIC", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.process = Some(command.spawn().unwrap());
    }

    fn clock_path(&self) -> PathBuf {
        self.dir.join("clock")
    }

    /// Sets the node's wall clock to this many seconds from the true one, also while it runs.
    pub fn set_clock(&self, offset: f64) {
        let next = self.dir.join("clock.next");
        fs::write(&next, format!("{offset:+}")).unwrap();
        fs::rename(next, self.clock_path()).unwrap();
    }

    fn log_path(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// The log of all processes of this node.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log_path()).unwrap_or_default()).into_owned()
    }

    /// Kills the process with SIGKILL, if it runs.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
            // libfaketime of a killed process leaves them, and fails if a later process of this id finds them.
            for file in ["sem.faketime_sem", "faketime_shm"] {
                let _ = fs::remove_file(format!("/dev/shm/{file}_{}", process.id()));
            }
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.process.as_ref().unwrap()), signal).unwrap();
    }

    /// Sends SIGTERM and waits for the end.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.process.take().unwrap().wait().unwrap()
    }

    /// The exit status of a process that has ended by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process.as_mut()?.try_wait().unwrap()
    }
}
