//! `serve --etcd` with one member and one node: its start, moving a fleet into etcd and back, and what a node does while etcd
//! is away. The part `cluster` has several of each.

mod start;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use notbefore_service::clock::Stopwatch;
use regex_lite::Regex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::http::{exchange_within, get};
use crate::support::mounts::Mounts;
use crate::support::{Service, binary, free_address, wait_for};

/// Limit on an answer: a node that starts answers at once, and the machine may be busy.
const ANSWER_MAX: Duration = Duration::from_secs(10);
const GUEST: Ipv4Addr = Ipv4Addr::new(127, 1, 60, 1);

/// One member, which ends with the test.
pub struct Etcd {
    process: Child,
    pub url: String,
    /// For `etcdctl`: its user, or its certificate.
    variables: Vec<(&'static str, String)>,
    _data: TempDir,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Small, so that a test can fill it.
const QUOTA_BYTES: &str = "16777216";
/// The same as a setting of a node.
const QUOTA: &str = "16MiB";

impl Etcd {
    pub fn start() -> Self {
        Self::start_with("http", &[], Vec::new())
    }

    fn start_with(scheme: &str, flags: &[&str], variables: Vec<(&'static str, String)>) -> Self {
        let peer = format!("http://{}", free_address());
        let cluster = format!("m0={peer}");
        let mut etcd = Self::spawn(scheme, "m0", &peer, &cluster, flags, tempfile::tempdir().unwrap());
        etcd.variables = variables;
        etcd.wait_until_healthy();
        etcd
    }

    /// Starts a member with this address for clients.
    fn start_at(client: SocketAddr) -> Self {
        let peer = format!("http://{}", free_address());
        let cluster = format!("m0={peer}");
        let url = format!("http://{client}");
        let etcd = Self::spawn_at(url, "m0", &peer, &cluster, &[], tempfile::tempdir().unwrap());
        etcd.wait_until_healthy();
        etcd
    }

    /// Starts a member of a cluster, which may have no leader yet.
    fn spawn(scheme: &str, name: &str, peer: &str, cluster: &str, flags: &[&str], data: TempDir) -> Self {
        Self::spawn_at(format!("{scheme}://{}", free_address()), name, peer, cluster, flags, data)
    }

    fn spawn_at(url: String, name: &str, peer: &str, cluster: &str, flags: &[&str], data: TempDir) -> Self {
        let process = Command::new("etcd")
            .args(["--name", name, "--log-level", "error", "--unsafe-no-fsync"])
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer])
            .args(["--initial-cluster", cluster, "--quota-backend-bytes", QUOTA_BYTES])
            .args(flags)
            .arg("--data-dir")
            .arg(data.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("Debian's etcd-server is installed");
        Self { process, url, variables: Vec::new(), _data: data }
    }

    fn wait_until_healthy(&self) {
        wait_for("etcd", || self.ctl(&["endpoint", "health"]).status.success().then_some(()));
    }

    /// Writes until the quota is reached.
    fn fill(&self) {
        let junk = "x".repeat(100_000);
        let mut number = 0;
        wait_for("the quota to be reached", || {
            number += 1;
            let put = self.ctl(&["put", &format!("/junk/{number}"), &junk]);
            String::from_utf8_lossy(&put.stderr).contains("database space exceeded").then_some(())
        });
    }

    fn ctl(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").args(["--endpoints", &self.url]).args(arguments);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.output().expect("Debian's etcd-client is installed")
    }

    /// All keys.
    fn keys(&self) -> String {
        let keys = self.ctl(&["get", "", "--from-key", "--keys-only"]);
        assert!(keys.status.success(), "{keys:?}");
        String::from_utf8(keys.stdout).unwrap()
    }

    /// Rises with every write.
    fn revision(&self) -> i64 {
        let answer = self.ctl(&["get", "x", "-w", "json"]);
        assert!(answer.status.success(), "{answer:?}");
        serde_json::from_slice::<Value>(&answer.stdout).unwrap()["header"]["revision"].as_i64().unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }
}

fn notbefore(arguments: &[&str]) -> Output {
    Command::new(binary()).args(arguments).env_remove("NOTBEFORE_DATA").output().unwrap()
}

/// Runs a command that must succeed.
fn done(arguments: &[&str]) -> String {
    let output = notbefore(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Seconds after which a command that should have failed is stopped. A refusal takes some seconds at most.
const REFUSAL_SECONDS_MAX: &str = "120";

/// Runs a command that must fail; returns its message.
fn refused(arguments: &[&str]) -> String {
    let mut command = Command::new("timeout");
    command.args([REFUSAL_SECONDS_MAX, binary()]).args(arguments).env_remove("NOTBEFORE_DATA");
    let output = command.output().unwrap();
    // A node that was stopped ends in order.
    assert!(!matches!(output.status.code(), Some(0 | 124)), "{arguments:?} should have failed");
    String::from_utf8(output.stderr).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The records of an export: key and value, without the revision.
fn records(file: &Path) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let record = |line: Value| Some((line.get("key")?.as_str()?.to_owned(), line.get("value")?.clone()));
    lines.filter_map(record).collect()
}

#[test]
fn fleet_moves_into_etcd_and_back() {
    let (etcd, temp) = (Etcd::start(), tempfile::tempdir().unwrap());
    let file = |name: &str| temp.path().join(name);
    let mut single = Service::start(&["--always-give-notice"]);
    single.cli(&["vm", "add", "web-0", "--address", &GUEST.to_string()]);
    single.cli(&["vm", "restart", "web-0"]);
    let document = single.poll(GUEST, "2020-07-01").body;
    single.cli(&["export", text(&file("single"))]);
    let token = single.data().join("operator.token");
    let single_export = file("single");
    let to_etcd = ["import", text(&single_export), "--etcd", &etcd.url];
    done(&to_etcd);
    let again = refused(&to_etcd);
    assert!(again.contains("is in etcd already") && again.contains("--etcd-prefix"), "{again}");
    // An export without its end, from which a part was written already.
    let cut = std::fs::read_to_string(file("single")).unwrap();
    let cut: Vec<&str> = cut.lines().collect();
    std::fs::write(file("cut"), cut[..cut.len() - 1].join("\n")).unwrap();
    let message = refused(&["import", text(&file("cut")), "--etcd", &etcd.url, "--etcd-prefix", "/cut/"]);
    assert!(message.contains("it was cut off"), "{message}");
    assert!(!etcd.keys().contains("/cut/alive"), "what was imported is removed again");
    single.terminate();

    let node = Service::start(&["--etcd", &etcd.url, "--node", "n1", "--always-give-notice"]);
    assert_eq!(node.poll(GUEST, "2020-07-01").body, document);
    assert!(!node.data().join("operator.token").exists(), "a token with full access was imported");
    let operator = format!("http://{}", node.operator);
    let exported = Command::new(binary())
        .args(["export", text(&file("cluster"))])
        .envs([("NOTBEFORE_OPERATOR", operator.as_str()), ("NOTBEFORE_TOKEN_FILE", text(&token))])
        .output()
        .unwrap();
    assert!(exported.status.success(), "{exported:?}");
    let (before, after) = (records(&file("single")), records(&file("cluster")));
    for (key, value) in before.iter().filter(|(key, _)| !["alive", "swept"].contains(&key.as_str())) {
        // The scope's poll times may be newer.
        if !key.starts_with("heard/") {
            assert!(after.iter().any(|one| one == &(key.clone(), value.clone())), "{key} is the same");
        }
    }
    assert!(after.iter().all(|(key, _)| !key.starts_with("cluster/") && !key.starts_with("secret/")));
    drop(node);
    done(&["import", text(&file("cluster")), "--data", text(&file("back"))]);
    let back = Service::start_in(&file("back"), &[]);
    assert_eq!(back.poll(GUEST, "2020-07-01").body, document);
}

#[test]
fn first_token_of_a_cluster_can_be_created_before_it_starts() {
    let (etcd, temp) = (Etcd::start(), tempfile::tempdir().unwrap());
    let file = temp.path().join("first.token");
    done(&["token", "init", text(&file), "--etcd", &etcd.url]);
    let message = refused(&["token", "init", text(&file), "--etcd", &etcd.url]);
    assert!(message.contains(text(&file)), "{message}");
    let second = temp.path().join("second.token");
    let message = refused(&["token", "init", text(&second), "--etcd", &etcd.url]);
    assert!(message.contains("has a first token already") && !second.exists(), "{message}");
    let node = Service::start(&["--etcd", &etcd.url, "--node", "n1"]);
    let token = std::fs::read_to_string(&file).unwrap();
    assert_eq!(node.request_with(&token, "GET", "/v1/vms", "", "").status, 200);
    assert!(!node.data().join("operator.token").exists());
    let message = refused(&["token", "init", text(&second)]);
    assert!(message.contains("--etcd URL"), "{message}");
}

#[test]
fn node_without_etcd_answers_guests_for_a_while_and_recovers() {
    let etcd = Etcd::start();
    let flags = ["--etcd", &etcd.url, "--node", "n1"];
    let node = Service::start_with(&[("NOTBEFORE_NODE_TRUST_ADDRESSES_FOR", "5s")], &flags);
    node.cli(&["vm", "add", "web-0", "--address", &GUEST.to_string()]);
    let document = node.poll(GUEST, "2020-07-01").body;
    let get = |target: &str| node.operator_request("GET", target, "", "");
    assert_eq!((get("/readyz").status, get("/readyz?changes").status), (200, 200));

    etcd.signal(Signal::STOP);
    wait_for("changes to be refused", || (get("/readyz?changes").status == 503).then_some(()));
    let (ready, poll) = (get("/readyz"), node.poll(GUEST, "2020-07-01"));
    // On a busy machine, the time for which addresses are trusted may be over already.
    if ready.status == 200 {
        assert!(ready.body.contains("changes are refused since 20"), "{ready:?}");
        assert_eq!(poll.body, document);
    }
    let add = node.operator_request("POST", "/v1/vms", "", r#"{"vm":{"name":"web-1"}}"#);
    assert_eq!((add.status, add.header("retry-after").is_some()), (503, true), "{add:?}");
    wait_for("guests to get 503", || (node.poll(GUEST, "2020-07-01").status == 503).then_some(()));
    let stranger = node.poll(Ipv4Addr::new(127, 1, 60, 2), "2020-07-01");
    assert_eq!(stranger.status, 503, "the address may be that of a VM by now: {stranger:?}");
    // The page follows the polls within half a second.
    wait_for("the page to say so", || (get("/readyz").status == 503).then_some(()));

    etcd.signal(Signal::CONT);
    wait_for("guests to be answered", || (node.poll(GUEST, "2020-07-01").body == document).then_some(()));
    let stranger = node.poll(Ipv4Addr::new(127, 1, 60, 2), "2020-07-01");
    assert_eq!(stranger.status, 403);
    wait_for("changes to be taken", || (get("/readyz?changes").status == 200).then_some(()));
    node.cli(&["vm", "add", "web-2"]);
}

#[test]
fn node_answers_guests_while_etcd_takes_no_writes() {
    let etcd = Etcd::start();
    let flags = ["--etcd", &etcd.url, "--node", "n1"];
    let node = Service::start_with(&[("NOTBEFORE_NODE_TRUST_ADDRESSES_FOR", "10s")], &flags);
    node.cli(&["vm", "add", "web-0", "--address", &GUEST.to_string()]);
    let document = node.poll(GUEST, "2020-07-01").body;
    etcd.fill();
    let ready = || node.operator_request("GET", "/readyz", "", "");
    wait_for("the reason", || ready().body.contains("the store takes no writes").then_some(()));
    // Longer than addresses are trusted without an answer of etcd.
    let since = std::cell::Cell::new(None);
    wait_for("heartbeats to be away for long", || {
        assert_eq!((ready().status, node.poll(GUEST, "2020-07-01").body), (200, document.clone()));
        let metrics = node.operator_request("GET", "/metrics", "", "").body;
        let age = metrics.lines().find_map(|line| line.strip_prefix("notbefore_cluster_watch_age_seconds "));
        since.set(age.and_then(|age| age.parse::<f64>().ok()));
        since.get().filter(|age| *age > 13.0)
    });
    etcd.signal(Signal::STOP);
    wait_for("guests to get 503", || (node.poll(GUEST, "2020-07-01").status == 503).then_some(()));
}

/// The value of a metric without labels.
fn metric(node: &Service, name: &str) -> Option<u64> {
    let page = get(node.operator, "/metrics").body;
    page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn size_and_quota_of_etcd_are_shown_and_a_nearly_full_one_is_reported() {
    let etcd = Etcd::start();
    let start = |name: &str, flags: &[&str]| {
        Service::start(&[&["--etcd", &etcd.url, "--node", name], flags].concat())
    };
    let ready = |node: &Service| get(node.operator, "/readyz").body;
    let node = start("n1", &["--etcd-quota", QUOTA]);
    let has = Regex::new("(?m)^the database of etcd has [0-9.]+ [KM]iB of 16.0 MiB$").unwrap();
    wait_for("size and quota", || has.is_match(&ready(&node)).then_some(()));
    assert_eq!(metric(&node, "notbefore_etcd_quota_bytes"), Some(16 << 20));
    assert!(metric(&node, "notbefore_etcd_database_bytes").is_some_and(|bytes| bytes < 16 << 20));
    // It fails if there is a problem.
    let status = || String::from_utf8(node.run(&["cluster", "status"]).stdout).unwrap();
    assert!(status().contains(" of 16.0 MiB") && !status().contains("nearly full"), "{}", status());

    // etcd 3.4 does not report its quota.
    let by_default = start("n2", &[]);
    wait_for("the default quota", || ready(&by_default).contains(" of 2.0 GiB\n").then_some(()));
    assert_eq!(metric(&by_default, "notbefore_etcd_quota_bytes"), Some(2 << 30));
    let without = start("n3", &["--etcd-quota", "none"]);
    let has = Regex::new("(?m)^the database of etcd has [0-9.]+ [KM]iB$").unwrap();
    wait_for("the size", || has.is_match(&ready(&without)).then_some(()));
    assert_eq!(metric(&without, "notbefore_etcd_quota_bytes"), None);

    let junk = "x".repeat(100_000);
    for number in 0..140 {
        assert!(etcd.ctl(&["put", &format!("/junk/{number}"), &junk]).status.success(), "{number}");
    }
    wait_for("the warning", || {
        // The metrics page asks etcd again.
        metric(&node, "notbefore_etcd_database_bytes").filter(|bytes| *bytes > 13 << 20)?;
        ready(&node).contains("\nthe database of etcd is nearly full, ").then_some(())
    });
    assert!(ready(&node).starts_with("ready\n"), "{}", ready(&node));
    assert!(status().contains("nearly full, "), "{}", status());
}

#[test]
fn two_prefixes_on_one_etcd_are_two_fleets() {
    let etcd = Etcd::start();
    let cell = |name: &str| {
        let prefix = format!("/cells/{name}/");
        Service::start(&["--etcd", &etcd.url, "--etcd-prefix", &prefix, "--node", "n1"])
    };
    // Both nodes have one name, and the VMs one address.
    let (east, west) = (cell("east"), cell("west"));
    for (node, vm) in [(&east, "web-east"), (&west, "web-west")] {
        node.cli(&["vm", "add", vm, "--address", &GUEST.to_string()]);
        node.cli(&["vm", "restart", vm]);
    }
    for (node, own, other) in [(&east, "web-east", "web-west"), (&west, "web-west", "web-east")] {
        let vms = node.cli(&["vm", "list"]);
        assert!(vms.contains(own) && !vms.contains(other), "{vms}");
        let document = node.poll(GUEST, "2020-07-01").body;
        assert!(!document.contains(other), "{document}");
        let status = node.cli(&["cluster", "status"]);
        assert!(status.contains("nodes     1 of 1 running"), "{status}");
    }
    let token = |node: &Service| std::fs::read_to_string(node.data().join("operator.token")).unwrap();
    let as_other = east.request_with(token(&west).trim(), "GET", "/v1/vms", "", "");
    assert_eq!(as_other.status, 401, "the token of a cell is unknown to another one");
    let keys = etcd.keys();
    let own =
        |key: &str| key.is_empty() || key.starts_with("/cells/east/") || key.starts_with("/cells/west/");
    assert!(keys.lines().all(own), "{keys}");
}

/// A process of a node, which ends with the test.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Node {
    fn spawn(etcd: &str, data: &Path, [guest, operator]: [SocketAddr; 2], log: &Path) -> Self {
        let mut command = Command::new(binary());
        command.args(["serve", "--guest", &guest.to_string(), "--operator", &operator.to_string()]);
        command.args(["--etcd", etcd, "--node", "n1", "--data", text(data)]);
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        Self(command.stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }

    fn terminate(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        let status = wait_for("the node to stop", || self.0.try_wait().unwrap());
        assert!(status.success(), "{status}");
    }
}

/// The status of a listener that may not be there yet.
fn status(at: SocketAddr, target: &str) -> Option<u16> {
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    exchange_within(Ipv4Addr::UNSPECIFIED, at, &request, ANSWER_MAX).ok().map(|answer| answer.status)
}

/// For so long the lines of the log are counted; one a second is the limit.
const COUNTED_FOR: Duration = Duration::from_secs(4);
const COUNTED_LINES_MAX: usize = 4;

#[test]
fn node_waits_for_an_etcd_that_is_away_and_logs_little_of_it() {
    let (temp, free) = (tempfile::tempdir().unwrap(), free_address());
    let path = temp.path().join("log");
    let at = [free_address(), free_address()];
    let node = Node::spawn(&format!("http://{free}"), &temp.path().join("data"), at, &path);
    let log = || std::fs::read_to_string(&path).unwrap();
    wait_for("the node to say so", || log().contains("this node waits for etcd").then_some(()));
    assert!(log().contains(&format!("http://{free}: nothing listens there")), "{}", log());
    for (at, target) in [(at[0], "/metadata/scheduledevents"), (at[1], "/readyz")] {
        assert_eq!(status(at, target), Some(503), "{target}");
    }
    let etcd = Etcd::start_at(free);
    wait_for("the node to serve", || (status(at[1], "/readyz?changes") == Some(200)).then_some(()));

    drop(etcd);
    wait_for("changes to be refused", || (status(at[1], "/readyz?changes") == Some(503)).then_some(()));
    let (before, since) = (log(), Stopwatch::start());
    wait_for("time to pass", || (since.elapsed() > COUNTED_FOR).then_some(()));
    let lines = log().lines().count() - before.lines().count();
    assert!(lines <= COUNTED_LINES_MAX, "{lines} lines:\n{}", &log()[before.len()..]);
    node.terminate();
}

#[test]
fn full_disk_of_the_data_directory_does_not_stop_a_node() {
    let (etcd, mounts, temp) = (Etcd::start(), Mounts::new(), tempfile::tempdir().unwrap());
    let log = temp.path().join("log");
    let at = [free_address(), free_address()];
    let start = || Node::spawn(&etcd.url, &mounts.data(), at, &log);
    let serves = || (status(at[1], "/readyz?changes") == Some(200)).then_some(());
    let says = |part: &str| std::fs::read_to_string(&log).unwrap().contains(part);
    mounts.run("mkdir fs; mount -t tmpfs -o size=1m none fs");
    mounts.run("cat /dev/zero > fs/fill || true");
    // The first token has no other place.
    let node = start();
    wait_for("the node to say so", || says("cannot write the first token").then_some(()));
    assert_eq!(status(at[1], "/readyz"), Some(503));
    mounts.run("rm fs/fill");
    wait_for("the node to serve", serves);
    assert!(mounts.data().join("operator.token").exists());
    node.terminate();

    // A node that has joined starts, and answers, with nothing but what is in etcd.
    mounts.run("rm -f fs/data/cluster.json fs/data/format; cat /dev/zero > fs/fill || true");
    let node = start();
    wait_for("the node to serve", serves);
    assert_eq!(status(at[0], "/metadata/scheduledevents"), Some(403));
    assert!(says("cannot write") && says("listeners.json"));
    assert!(!mounts.data().join("cluster.json").exists());
    mounts.run("rm fs/fill");
    wait_for("the cluster to be remembered", || mounts.data().join("cluster.json").exists().then_some(()));
    node.terminate();
}

#[test]
fn node_that_starts_while_etcd_has_no_leader_waits_for_it() {
    let peers = [(); 2].map(|()| format!("http://{}", free_address()));
    let cluster = format!("m0={},m1={}", peers[0], peers[1]);
    let spawn = |name, peer| Etcd::spawn("http", name, peer, &cluster, &[], tempfile::tempdir().unwrap());
    let first = spawn("m0", &peers[0]);
    let data = tempfile::tempdir().unwrap();
    let log = data.path().join("log");
    let arguments = ["serve", "--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0", "--node", "n1"];
    let start = || {
        let mut command = Command::new(binary());
        command.args(arguments).args(["--etcd", &first.url, "--data"]).arg(data.path().join("data"));
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap()
    };
    let waits = || {
        let text = std::fs::read_to_string(&log).unwrap();
        text.contains("this node waits for etcd").then_some(())
    };
    // A member that has never had a leader accepts connections and does not answer.
    let member = first.url.trim_start_matches("http://");
    wait_for("etcd to listen", || std::net::TcpStream::connect(member).ok());
    let mut node = start();
    wait_for("the node to wait", waits);
    assert_eq!(node.try_wait().unwrap(), None, "it runs");
    kill_process(Pid::from_child(&node), Signal::TERM).unwrap();
    assert!(node.wait().unwrap().success(), "it stops at once");
    // A member that has lost its leader answers, but no read or write.
    let mut node = start();
    wait_for("the node to wait", waits);
    let second = spawn("m1", &peers[1]);
    let file = data.path().join("data/listeners.json");
    wait_for("the node to serve", || file.exists().then_some(()));
    kill_process(Pid::from_child(&node), Signal::TERM).unwrap();
    assert!(node.wait().unwrap().success());
    drop(second);
    wait_for("etcd to lose its leader", || {
        (!first.ctl(&["get", "x", "--command-timeout", "1s"]).status.success()).then_some(())
    });
    let mut node = start();
    wait_for("the node to wait", waits);
    assert_eq!(node.try_wait().unwrap(), None, "it runs");
    kill_process(Pid::from_child(&node), Signal::TERM).unwrap();
    assert!(node.wait().unwrap().success());
}
