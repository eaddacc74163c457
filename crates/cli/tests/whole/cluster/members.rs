//! The members of etcd, each on a machine of its own, and `etcdctl` on the machine of the clients.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::eventually;
use super::network::{Machine, Network};

const MIB: u64 = 1024 * 1024;
/// Small, so that a test can fill it.
const QUOTA_BYTES: u64 = 48 * MIB;
/// What the load of `./dev chaos` may store in a minute; it has stored 6 MiB.
const CHAOS_BYTES_A_MINUTE: u64 = 16 * MIB;
/// Size of a value that fills etcd. etcd takes requests of up to 1.5 MiB.
const JUNK_BYTES: usize = 1024 * 1024;
/// Not below the prefix of the nodes.
const JUNK: &str = "/junk/";

pub struct Member {
    process: Option<Child>,
    name: String,
    address: Ipv4Addr,
    pub machine: usize,
    dir: PathBuf,
    cluster: String,
}

fn quota_bytes() -> u64 {
    QUOTA_BYTES + super::chaos::minutes().unwrap_or(0) * CHAOS_BYTES_A_MINUTE
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

fn peer_url(address: Ipv4Addr) -> String {
    format!("http://{address}:2380")
}

/// Starts members on these machines.
pub fn start(network: &Network, machines: &[usize], dir: &Path) -> Vec<Member> {
    let cluster: Vec<String> = machines
        .iter()
        .map(|&machine| format!("m{machine}={}", peer_url(network.machines[machine].address)))
        .collect();
    let cluster = cluster.join(",");
    let member = |&machine: &usize| {
        let (name, address) = (format!("m{machine}"), network.machines[machine].address);
        let dir = dir.join(&name);
        fs::create_dir(&dir).unwrap();
        let mut member = Member { process: None, name, address, machine, dir, cluster: cluster.clone() };
        member.start(&network.machines[machine]);
        member
    };
    machines.iter().map(member).collect()
}

impl Member {
    pub fn client_url(&self) -> String {
        format!("http://{}:2379", self.address)
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    pub fn start(&mut self, machine: &Machine) {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.dir.join("log")).unwrap();
        let (client, peer) = (self.client_url(), peer_url(self.address));
        let mut command = machine.namespace.command("etcd");
        command.args(["--name", &self.name, "--logger", "zap", "--log-level", "warn"]);
        command.arg("--data-dir").arg(self.data());
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &self.cluster, "--initial-cluster-state", "new"]);
        command.args(["--quota-backend-bytes", &quota_bytes().to_string()]);
        // 'ip netns exec' must find it: fail here with the name of the package.
        crate::support::namespace::require_file("/usr/bin/etcd", "etcd-server");
        crate::support::namespace::require_file("/usr/bin/etcdctl", "etcd-client");
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.process = Some(command.spawn().unwrap());
    }

    /// Kills the process with SIGKILL, if it runs.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.process.as_ref().unwrap()), signal).unwrap();
    }

    /// Replaces the data of a killed member by a backup.
    pub fn restore(&self, backup: &Path) {
        fs::remove_dir_all(self.data()).unwrap();
        let mut command = etcdctl();
        command.arg("snapshot").arg("restore").arg(backup);
        command.args(["--name", &self.name, "--initial-cluster", &self.cluster]);
        command.args(["--initial-advertise-peer-urls", &peer_url(self.address)]);
        command.arg("--data-dir").arg(self.data());
        succeed(command);
    }

    /// Runs `etcdctl` against this member.
    pub fn etcdctl(&self, arguments: &[&str]) -> Option<String> {
        let mut command = etcdctl();
        command.args(["--endpoints", &self.client_url(), "--command-timeout", "5s"]).args(arguments);
        let output = command.stdin(Stdio::null()).output().unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn json(&self, arguments: &[&str]) -> Option<Value> {
        serde_json::from_str(&self.etcdctl(&[arguments, &["-w", "json"]].concat())?).ok()
    }

    /// Whether the member takes part in a commit.
    pub fn is_healthy(&self) -> bool {
        self.etcdctl(&["endpoint", "health", "--command-timeout", "1s"]).is_some()
    }

    /// Its own id, and that of the leader that it knows.
    fn status(&self) -> Option<(u64, u64)> {
        let shown = self.json(&["endpoint", "status", "--command-timeout", "1s"])?;
        let status = &shown[0]["Status"];
        Some((status["header"]["member_id"].as_u64()?, status["leader"].as_u64().filter(|id| *id != 0)?))
    }
}

pub fn etcdctl() -> Command {
    let mut command = Command::new("etcdctl");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("ETCDCTL_API", "3");
    command
}

fn succeed(mut command: Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", crate::support::namespace::failure_text(&output));
}

/// Index of the leader among the members that answer; `except` is not asked.
pub fn leader(members: &[Member], except: Option<usize>) -> Option<usize> {
    let asked = members.iter().enumerate().filter(|(index, _)| Some(*index) != except);
    let status: Vec<(usize, (u64, u64))> =
        asked.filter_map(|(index, one)| Some((index, one.status()?))).collect();
    status
        .iter()
        .find(|(_, (id, _))| status.iter().any(|(_, (_, leader))| leader == id))
        .map(|(index, _)| *index)
}

pub fn wait_until_healthy(members: &[Member]) {
    for member in members {
        eventually("the member of etcd is healthy", || member.is_healthy().then_some(()));
    }
}

/// A record below the prefix of the nodes, without its format level.
pub fn record(members: &[Member], key: &str) -> Option<Value> {
    let get = ["get", &format!("/notbefore/{key}"), "--print-value-only", "--command-timeout", "1s"];
    let text = members.iter().find_map(|member| member.etcdctl(&get))?;
    serde_json::from_str(text.split_once(' ')?.1).ok()
}

/// How often a record below the prefix of the nodes was written.
pub fn version(members: &[Member], key: &str) -> Option<u64> {
    let get = ["get", &format!("/notbefore/{key}"), "--command-timeout", "1s"];
    members.iter().find_map(|member| member.json(&get))?["kvs"][0]["version"].as_u64()
}

/// The newest revision.
pub fn revision(members: &[Member]) -> Option<u64> {
    members[0].json(&["get", "/none"])?["header"]["revision"].as_u64()
}

/// Writes until the quota is reached.
pub fn fill(members: &[Member]) {
    let junk = vec![b'x'; JUNK_BYTES];
    for number in 0..u64::MAX {
        let mut command = etcdctl();
        command.args(["--endpoints", &members[0].client_url(), "put", &format!("{JUNK}{number}")]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // etcdctl may end before it has read everything.
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), &junk);
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        if errors.contains("database space exceeded") {
            return;
        }
        assert!(number < quota_bytes() / JUNK_BYTES as u64 * 4, "etcd takes more than its quota: {errors}");
    }
}

/// Makes room again, as etcd's manual says: delete, compact, defragment, disarm.
pub fn clear(members: &[Member]) {
    eventually("the junk is deleted", || members[0].etcdctl(&["del", "--prefix", JUNK]));
    compact(members);
    for member in members {
        eventually("the member is defragmented", || member.etcdctl(&["defrag", "--command-timeout", "20s"]));
    }
    eventually("the alarm is disarmed", || {
        members[0].etcdctl(&["alarm", "disarm"])?;
        members[0].etcdctl(&["alarm", "list"]).filter(|alarms| alarms.trim().is_empty())
    });
}

/// Compacts all history.
pub fn compact(members: &[Member]) {
    eventually("the history is compacted", || {
        let revision = revision(members)?;
        members[0].etcdctl(&["compaction", &revision.to_string(), "--physical"])
    });
}
