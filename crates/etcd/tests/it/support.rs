//! etcd processes that end with the test, and `etcdctl`.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use notbefore_etcd::{EtcdConfig, EtcdStore};
use notbefore_store::{Batch, Expect, Outcome, Revision, Store, Txn, Versioned, Watch};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Limit on any wait. A working etcd takes a second; the rest is for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Flags for tests in which no process is killed.
pub const NO_FSYNC: &[&str] = &["--unsafe-no-fsync"];

/// One etcd process and its directory. Both are gone when the value is dropped, also after a panic.
pub struct Etcd {
    process: Mutex<Child>,
    pub dir: PathBuf,
    pub name: String,
    pub client_url: String,
    peer_url: String,
    cluster: String,
    token: String,
    flags: Vec<String>,
    _owned_dir: TempDir,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let process = self.process.get_mut().unwrap();
        let _ = process.kill();
        let _ = process.wait();
    }
}

/// A port that is free, and that no other test of this process gets. It is below the ports that the kernel gives to
/// outgoing connections, so that none of these takes it before etcd does.
pub fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_mul(101).wrapping_add(GIVEN.fetch_add(1, Relaxed));
        let port = 12_000 + u16::try_from(number % 20_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// One member with flags of its own, over plain HTTP.
pub async fn etcd(flags: &[&str]) -> Etcd {
    let etcd = Etcd::prepare("http", flags);
    etcd.wait_until_healthy().await;
    etcd
}

/// Three members.
pub async fn three_members() -> [Etcd; 3] {
    let urls: [(String, String); 3] = std::array::from_fn(|_| (local("http"), local("http")));
    let cluster: Vec<String> =
        urls.iter().enumerate().map(|(number, (_, peer))| format!("m{number}={peer}")).collect();
    let cluster = cluster.join(",");
    let mut number = 0;
    let members = urls.map(|(client, peer)| {
        let name = format!("m{number}");
        number += 1;
        Etcd::start(name, client, peer, cluster.clone(), Vec::new())
    });
    for member in &members {
        member.wait_until_healthy().await;
    }
    members
}

fn local(scheme: &str) -> String {
    format!("{scheme}://127.0.0.1:{}", free_port())
}

impl Etcd {
    /// Starts a member of its own cluster, and does not wait for it.
    pub fn prepare(scheme: &str, flags: &[&str]) -> Self {
        let (client, peer) = (local(scheme), local("http"));
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        Self::start("m0".to_owned(), client, peer.clone(), format!("m0={peer}"), flags)
    }

    fn start(
        name: String,
        client_url: String,
        peer_url: String,
        cluster: String,
        flags: Vec<String>,
    ) -> Self {
        let owned_dir = tempfile::tempdir().unwrap();
        let dir = owned_dir.path().to_owned();
        let token = "test".to_owned();
        let process = Mutex::new(spawn(&name, &dir, &client_url, &peer_url, &cluster, &token, &flags));
        Self { process, dir, name, client_url, peer_url, cluster, token, flags, _owned_dir: owned_dir }
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Kills the process with SIGKILL.
    pub fn kill(&mut self) {
        let process = self.process.get_mut().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Starts the process again, after [`Self::kill`].
    pub fn start_again(&mut self) {
        let Self { dir, name, client_url, peer_url, cluster, token, flags, .. } = &*self;
        self.process = Mutex::new(spawn(name, dir, client_url, peer_url, cluster, token, flags));
    }

    pub fn start_with(&mut self, flags: &[&str]) {
        self.flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        self.start_again();
    }

    /// Starts with an empty directory, as a cluster with another token.
    pub fn start_anew(&mut self, token: &str) {
        fs::remove_dir_all(self.data()).unwrap();
        self.token = token.to_owned();
        self.start_again();
    }

    /// Replaces the data by a backup of `etcdctl snapshot save`.
    pub fn restore(&mut self, backup: &Path) {
        fs::remove_dir_all(self.data()).unwrap();
        let mut command = etcdctl_command();
        command.arg("snapshot").arg("restore").arg(backup);
        command.args(["--name", &self.name, "--initial-cluster", &self.cluster]);
        command.args([
            "--initial-cluster-token",
            &self.token,
            "--initial-advertise-peer-urls",
            &self.peer_url,
        ]);
        command.arg("--data-dir").arg(self.data());
        succeed(command);
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process.lock().unwrap()), signal).unwrap();
    }

    pub fn etcdctl(&self, arguments: &[&str]) -> String {
        let mut command = etcdctl_command();
        command.args(["--endpoints", &self.client_url]).args(arguments);
        succeed(command)
    }

    pub fn etcdctl_json(&self, arguments: &[&str]) -> Value {
        let text = self.etcdctl(&[arguments, &["-w", "json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Waits until the member takes part in a commit.
    pub async fn wait_until_healthy(&self) {
        self.wait_for_health(&[]).await;
    }

    /// The same with a user, as `NAME:PASSWORD`.
    pub async fn wait_until_healthy_as(&self, user: &str) {
        self.wait_for_health(&["--user", user]).await;
    }

    async fn wait_for_health(&self, flags: &[&str]) {
        eventually("etcd is healthy", async || {
            if let Some(status) = self.process.lock().unwrap().try_wait().unwrap() {
                panic!("etcd ended: {status}: {}", fs::read_to_string(self.dir.join("log")).unwrap());
            }
            let mut command = etcdctl_command();
            command.args(["--endpoints", &self.client_url, "endpoint", "health", "--command-timeout", "1s"]);
            command.args(flags).output().unwrap().status.success().then_some(())
        })
        .await;
    }

    pub fn config(&self, prefix: &str) -> EtcdConfig {
        EtcdConfig::new([&*self.client_url], prefix)
    }

    pub async fn store(&self, prefix: &str) -> EtcdStore {
        connect(&self.config(prefix)).await
    }
}

fn spawn(
    name: &str,
    dir: &Path,
    client_url: &str,
    peer_url: &str,
    cluster: &str,
    token: &str,
    flags: &[String],
) -> Child {
    let log = fs::OpenOptions::new().create(true).append(true).open(dir.join("log")).unwrap();
    let mut command = Command::new("etcd");
    command.args(["--name", name, "--logger", "zap", "--log-level", "warn"]);
    command.arg("--data-dir").arg(dir.join("data"));
    command.args(["--listen-client-urls", client_url, "--advertise-client-urls", client_url]);
    command.args(["--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url]);
    command.args(["--initial-cluster", cluster, "--initial-cluster-token", token]);
    command.args(["--initial-cluster-state", "new"]).args(flags);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    command.spawn().expect("etcd does not start; install the Debian package etcd-server")
}

pub fn etcdctl_command() -> Command {
    let mut command = Command::new("etcdctl");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("ETCDCTL_API", "3");
    command
}

pub fn succeed(mut command: Command) -> String {
    let output = command.output().expect("etcdctl does not start; install the Debian package etcd-client");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}{errors}");
    text
}

/// Asks again until there is an answer.
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    match tokio::time::timeout(PATIENCE, asking).await {
        Ok(answer) => answer,
        Err(_elapsed) => panic!("not within {} s: {what}", PATIENCE.as_secs()),
    }
}

/// Connects as the first node or a later one.
pub async fn connect(config: &EtcdConfig) -> EtcdStore {
    match EtcdStore::connect(config).await {
        Ok(store) => {
            store.claim("new").await.unwrap();
            store
        }
        Err(error) => panic!("{error}"),
    }
}

/// The message with which a store refuses to start.
pub async fn refusal(config: &EtcdConfig) -> String {
    match EtcdStore::connect(config).await {
        Ok(_) => panic!("the store has started with {config:?}"),
        Err(error) => {
            let mut text = String::new();
            write!(text, "{}: {error}", error.code()).unwrap();
            text
        }
    }
}

pub fn put(key: &str, value: &str) -> Txn {
    Txn { put: vec![(key.into(), Bytes::copy_from_slice(value.as_bytes()))], ..Txn::default() }
}

pub fn delete(key: &str) -> Txn {
    Txn { delete: vec![key.into()], ..Txn::default() }
}

pub fn expecting(key: &str, revision: Option<Revision>, txn: Txn) -> Txn {
    Txn { expect: vec![Expect { key: key.into(), revision }], ..txn }
}

pub async fn committed(store: &EtcdStore, txn: Txn) -> Revision {
    match store.commit(txn).await {
        Outcome::Committed(revision) => revision,
        other @ (Outcome::Conflict(_) | Outcome::Refused(_) | Outcome::Unknown(_)) => panic!("{other:?}"),
    }
}

/// Commits until it works.
pub async fn committed_at_last(store: &EtcdStore, txn: Txn) -> Revision {
    eventually("a commit", async || match store.commit(txn.clone()).await {
        Outcome::Committed(revision) => Some(revision),
        Outcome::Conflict(_) | Outcome::Refused(_) | Outcome::Unknown(_) => None,
    })
    .await
}

pub async fn read(store: &EtcdStore, key: &str) -> Option<Versioned> {
    store.snapshot().await.unwrap().get(key).await.unwrap()
}

pub async fn read_text(store: &EtcdStore, key: &str) -> Option<String> {
    read(store, key).await.map(|record| String::from_utf8(record.value.to_vec()).unwrap())
}

pub async fn next(watch: &mut dyn Watch) -> Batch {
    match tokio::time::timeout(PATIENCE, watch.next()).await {
        Ok(Ok(batch)) => batch,
        Ok(Err(error)) => panic!("the watch ended: {error}"),
        Err(_elapsed) => panic!("the watch shows nothing"),
    }
}
