//! The start of a node: what is refused, and with what to do; what the first start creates; which cluster a node belongs to.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use notbefore_etcd::{COMPACT_EVERY, DEFAULT_PREFIX, EtcdConfig};
use notbefore_service::cluster::join::{ClusterConfig, SharedStore};
use notbefore_service::config::ServeConfig;
use notbefore_service::serve::serve_in_background;
use serde_json::Value;
use tempfile::TempDir;

use super::{Etcd, done, refused, text};
use crate::cluster::guide::{block, page};
use crate::support::pages::{as_typed, root};
use crate::support::{Service, binary, free_address, wait_for};

/// A member that asks for client certificates, with the certificates of the cluster guide.
struct WithTls {
    etcd: Etcd,
    certificates: TempDir,
}

impl WithTls {
    fn start() -> Self {
        let certificates = tempfile::tempdir().unwrap();
        let mut make = Command::new(root().join("dist/cluster/certificates"));
        // All free addresses of this process have one IP address.
        make.arg(certificates.path()).arg(format!("a={}", free_address().ip()));
        assert!(make.status().unwrap().success());
        let file = |name: &str| text(&certificates.path().join(name)).to_owned();
        let (member, key, authority) =
            (file("a/etcd/member.pem"), file("a/etcd/member.key"), file("etcd-ca.pem"));
        let flags = ["--cert-file", &member, "--key-file", &key, "--trusted-ca-file", &authority];
        let variables = vec![
            ("ETCDCTL_CACERT", authority.clone()),
            ("ETCDCTL_CERT", file("root.pem")),
            ("ETCDCTL_KEY", file("root.key")),
        ];
        let etcd = Etcd::start_with("https", &[&flags[..], &["--client-cert-auth"]].concat(), variables);
        Self { etcd, certificates }
    }

    /// Flags of a node with an authority and a pair.
    fn flags(&self, authority: &str, pair: &str) -> Vec<String> {
        let file = |name: String| text(&self.certificates.path().join(name)).to_owned();
        let (cert, key) = (file(format!("a/notbefore/{pair}.pem")), file(format!("a/notbefore/{pair}.key")));
        let (etcd, authority) = (self.etcd.url.clone(), file(format!("{authority}.pem")));
        let flags = [("--etcd", etcd), ("--etcd-ca", authority), ("--etcd-cert", cert), ("--etcd-key", key)];
        flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
    }
}

/// A member with the users and rights of the cluster guide.
struct WithPassword {
    etcd: Etcd,
}

impl WithPassword {
    fn start() -> Self {
        let mut etcd = Etcd::start_with("http", &["--bcrypt-cost", "4"], Vec::new());
        let typed = typed(&etcd, Path::new("/"), &block(&page(), "password-rights")).output().unwrap();
        assert!(typed.status.success(), "{typed:?}");
        etcd.variables = vec![("ETCDCTL_USER", "root:ROOT-SECRET".to_owned())];
        Self { etcd }
    }

    fn flags<'a>(&'a self, password: &'a Path) -> Vec<&'a str> {
        let etcd = &self.etcd.url;
        vec!["--etcd", etcd, "--etcd-user", "notbefore", "--etcd-password-file", text(password)]
    }
}

/// Commands of the guide, with the variables that it sets before.
fn typed(etcd: &Etcd, dir: &Path, commands: &str) -> Command {
    let mut shell = Command::new("bash");
    shell.args(["-euc", commands]).current_dir(dir);
    as_typed(&mut shell);
    let bin = Path::new(binary()).parent().unwrap().display().to_string();
    shell.env("PATH", format!("{bin}:{}", std::env::var("PATH").unwrap_or_default()));
    shell.envs([("ETCDCTL_API", "3"), ("ETCDCTL_ENDPOINTS", &etcd.url)]);
    shell
}

#[test]
fn etcd_that_cannot_be_used_is_refused_and_nothing_is_written() {
    let (etcd, temp) = (Etcd::start(), tempfile::tempdir().unwrap());
    let (data, with_fleet) = (temp.path().join("data"), temp.path().join("single"));
    drop(Service::start_in(&with_fleet, &[]));
    let fleet_before = files(&with_fleet);
    for (key, value) in [
        ("/foreign/settings", "1"),
        ("/newer/", "notbefore: test"),
        ("/newer/cluster/format", "2 {\"level\":99}"),
    ] {
        assert!(etcd.ctl(&["put", key, value]).status.success());
    }
    let (other, with_tls, with_password) = (Etcd::start(), WithTls::start(), WithPassword::start());
    let all = [&etcd, &other, &with_tls.etcd, &with_password.etcd];
    let before = all.map(Etcd::revision);
    let wrong_password = temp.path().join("wrong.password");
    std::fs::write(&wrong_password, "wrong\n").unwrap();
    let two_clusters = format!("{},{}", etcd.url, other.url);
    let tls = |authority: &str, pair: &str| with_tls.flags(authority, pair);
    let (wrong_authority, wrong_pair) = (tls("operator-ca", "etcd-client"), tls("etcd-ca", "node"));
    let missing = temp.path().join("missing.pem");
    let (etcd_url, missing) = (etcd.url.as_str(), text(&missing));
    let https = etcd_url.replace("http", "https");
    for (flags, parts) in [
        (vec!["--etcd", "127.0.0.1:2379"], vec!["a URL of etcd", "127.0.0.1:2379"]),
        (vec!["--etcd", &https, "--etcd-ca", missing], vec![missing]),
        (vec!["--etcd", &https], vec!["set --etcd-ca FILE"]),
        (vec!["--etcd", etcd_url, "--etcd-ca", missing], vec!["write https, or leave the certificates out"]),
        (vec!["--etcd", etcd_url, "--etcd-user", "nb"], vec!["--etcd-password-file"]),
        (vec!["--etcd", etcd_url, "--etcd-prefix", "/foreign/"], vec!["/foreign/settings", "another prefix"]),
        (vec!["--etcd", etcd_url, "--etcd-prefix", "/newer/"], vec!["format level 99", "newer release"]),
        (vec!["--etcd", etcd_url, "--etcd-prefix", "newer"], vec!["a key that ends with a slash"]),
        (vec!["--etcd", etcd_url, "--node", "a b"], vec!["a name of letters"]),
        (vec!["--node", "a"], vec!["no URL of etcd"]),
        (vec!["--etcd", ""], vec!["names no URL of etcd"]),
        (vec!["--etcd", "http://192.0.2.1:2379"], vec!["would not reach this node", "--node-listen"]),
        (
            vec!["--etcd", "http://192.0.2.1:2379", "--etcd-user", "a"],
            vec!["2 mistakes", "would not reach this node", "belong together"],
        ),
        (vec!["--etcd", etcd_url, "--guest-vm", "web-0=127.0.0.1:0"], vec!["notbefore vm add"]),
        (vec!["--etcd", etcd_url, "--node-listen", "0.0.0.0:0"], vec!["--node-listen"]),
        (
            vec!["--etcd", etcd_url, "--data", text(&with_fleet)],
            vec!["holds the fleet", "notbefore import --etcd"],
        ),
        (
            wrong_authority.iter().map(String::as_str).collect(),
            vec!["not signed by the given authority", "with --etcd-ca"],
        ),
        (
            wrong_pair.iter().map(String::as_str).collect(),
            vec!["client certificate", "set --etcd-cert and --etcd-key", "--trusted-ca-file"],
        ),
        (
            vec!["--etcd", &with_password.etcd.url],
            vec!["etcd requires authentication", "--etcd-user and --etcd-password-file"],
        ),
        (
            with_password.flags(&wrong_password),
            vec!["refuses user notbefore", "wrong name or password", "--etcd-password-file"],
        ),
        (
            vec!["--etcd", &two_clusters],
            vec!["different etcd clusters", &etcd.url, &other.url, "name the members of one"],
        ),
    ] {
        let mut arguments = vec!["serve", "--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0"];
        if !flags.contains(&"--data") {
            arguments.extend(["--data", text(&data)]);
        }
        arguments.extend(flags.iter().copied());
        let message = refused(&arguments);
        for part in parts {
            assert!(message.contains(part), "{flags:?}: {part:?} is not in {message}");
        }
        assert!(!data.exists(), "{flags:?} has created the data directory");
    }
    assert_eq!(all.map(Etcd::revision), before, "etcd is unchanged");
    assert!(files(&with_fleet) == fleet_before, "the directory is unchanged");
}

/// Names and contents of the files in a directory.
fn files(dir: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap());
    files.map(|file| (file.file_name(), std::fs::read(file.path()).unwrap())).collect()
}

/// Arguments of a node whose start is refused.
fn serve<'a>(data: &'a Path, flags: &[&'a str]) -> Vec<&'a str> {
    let begin = ["serve", "--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0", "--data", text(data)];
    [&begin, flags].concat()
}

fn succeeded(etcd: &Etcd, arguments: &[&str]) {
    let output = etcd.ctl(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

/// A member with the content of a snapshot, as another cluster.
fn restored(snapshot: &Path) -> Etcd {
    let peer = format!("http://{}", free_address());
    let (data, cluster) = (tempfile::tempdir().unwrap(), format!("m0={peer}"));
    let mut restore = Command::new("etcdctl");
    restore.env("ETCDCTL_API", "3").arg("snapshot").arg("restore").arg(snapshot).arg("--data-dir");
    restore.arg(data.path().join("member-data")).args(["--name", "m0", "--initial-cluster", &cluster]);
    let output = restore.args(["--initial-advertise-peer-urls", &peer]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // etcd takes an empty directory as a new member's.
    std::fs::rename(data.path().join("member-data/member"), data.path().join("member")).unwrap();
    let etcd = Etcd::spawn("http", "m0", &peer, &cluster, &[], data);
    etcd.wait_until_healthy();
    etcd
}

#[test]
fn node_joins_only_the_cluster_that_it_has_joined_before() {
    let (etcd, other, temp) = (Etcd::start(), Etcd::start(), tempfile::tempdir().unwrap());
    let file = |name: &str| temp.path().join(name);
    let (data, joined) = (file("data"), file("data/cluster.json"));
    let on = |etcd: &Etcd| Service::start_in(&data, &["--etcd", &etcd.url, "--node", "n1"]);
    let is_refused = |etcd: &Etcd, flags: &[&str], found: &str| {
        let (files_before, revision) = (files(&data), etcd.revision());
        let message = refused(&serve(&data, &[&["--etcd", &etcd.url, "--node", "n1"], flags].concat()));
        for part in [found, "Correct --etcd or --etcd-prefix", &format!("remove {}", joined.display())] {
            assert!(message.contains(part), "{part:?} is not in {message}");
        }
        assert!(files(&data) == files_before && etcd.revision() == revision, "nothing was written");
    };
    let shows_vm = |node: &Service| node.cli(&["vm", "list", "--output", "name"]).contains("web-0");
    let node = on(&etcd);
    node.cli(&["vm", "add", "web-0"]);
    node.cli(&["export", text(&file("export"))]);
    succeeded(&etcd, &["snapshot", "save", text(&file("snapshot"))]);
    drop(node);

    is_refused(&other, &[], "no fleet");
    drop(Service::start(&["--etcd", &other.url, "--node", "n2"]));
    is_refused(&other, &[], "another one");
    is_refused(&etcd, &["--etcd-prefix", "/else/"], "no fleet");
    assert!(shows_vm(&on(&etcd)));

    // etcd has lost its data; then an export is imported.
    succeeded(&etcd, &["del", "--prefix", DEFAULT_PREFIX]);
    is_refused(&etcd, &[], "no fleet");
    // A new cluster at the same place, with the same cluster id of etcd.
    drop(Service::start(&["--etcd", &etcd.url, "--node", "n2"]));
    is_refused(&etcd, &[], "another one");
    succeeded(&etcd, &["del", "--prefix", DEFAULT_PREFIX]);
    done(&["import", text(&file("export")), "--etcd", &etcd.url]);
    assert!(shows_vm(&on(&etcd)));

    // A snapshot of this cluster, restored as another cluster of etcd.
    succeeded(&etcd, &["snapshot", "save", text(&file("second-snapshot"))]);
    let new = restored(&file("second-snapshot"));
    let id =
        |file: &Path| serde_json::from_slice::<Value>(&std::fs::read(file).unwrap()).unwrap()["etcd"].clone();
    let before = id(&joined);
    assert!(shows_vm(&on(&new)));
    assert_ne!(id(&joined), before, "it remembers the new one");
    // One from before the import has the mark of then.
    assert!(shows_vm(&on(&restored(&file("snapshot")))));
    is_refused(&other, &[], "another one");
    std::fs::remove_file(&joined).unwrap();
    drop(on(&other));
}

#[test]
fn node_ends_when_its_records_are_deleted() {
    let (etcd, temp) = (Etcd::start(), tempfile::tempdir().unwrap());
    let (data, log) = (temp.path().join("data"), temp.path().join("log"));
    let mut command = Command::new(binary());
    command.args(serve(&data, &["--etcd", &etcd.url, "--node", "n1"])).stdout(Stdio::null());
    command.stderr(std::fs::File::create(&log).unwrap());
    let mut node = command.spawn().map(Running).unwrap();
    wait_for("the node to serve", || data.join("listeners.json").exists().then_some(()));
    succeeded(&etcd, &["del", "--prefix", DEFAULT_PREFIX]);
    let status = wait_for("the node to end", || node.0.try_wait().unwrap());
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!status.success() && text.contains("were deleted from etcd"), "{status}: {text}");
}

#[test]
fn data_directory_has_one_node() {
    let etcd = Etcd::start();
    let node = Service::start(&["--etcd", &etcd.url, "--node", "n1"]);
    let message = refused(&serve(node.data(), &["--etcd", &etcd.url, "--node", "n2"]));
    assert!(message.contains("is in use") && message.contains(text(node.data())), "{message}");
    assert!(!etcd.keys().contains("cluster/node/n2"));
}

#[test]
fn node_has_no_first_run_vm() {
    let etcd = Etcd::start();
    let node = Service::start(&["--etcd", &etcd.url, "--node", "n1"]);
    let vms = node.operator_request("GET", "/v1/vms", "", "");
    assert_eq!((vms.status, vms.json()["items"].as_array().map(Vec::len)), (200, Some(0)), "{vms:?}");
    assert_eq!(node.poll(std::net::Ipv4Addr::LOCALHOST, "2020-07-01").status, 403);
}

/// Kills a process at the end.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn node_runs_with_user_and_password_of_the_guide() {
    let (server, temp) = (WithPassword::start(), tempfile::tempdir().unwrap());
    let data = temp.path().join("data");
    let flags = format!(" --guest 127.0.0.1:0 --operator 127.0.0.1:0 --data {}", text(&data));
    let commands = block(&page(), "password-node");
    let node = typed(&server.etcd, temp.path(), &(commands.trim_end().to_owned() + &flags));
    let mut node = { node }.stdout(Stdio::null()).spawn().map(Running).unwrap();
    wait_for("the node to serve", || {
        assert_eq!(node.0.try_wait().unwrap(), None, "it runs");
        data.join("listeners.json").exists().then_some(())
    });
    assert!(server.etcd.keys().contains("/notbefore/cluster/leader"));
    done(&["vm", "add", "web-0", "--data", text(&data)]);
}

/// Forwards connections to etcd, and replaces a text in its answers by one of the same length.
fn rewriting(etcd: &Etcd, from: &str, to: &str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let target = etcd.url.trim_start_matches("http://").to_owned();
    let (from, to) = (from.as_bytes().to_vec(), to.as_bytes().to_vec());
    assert_eq!(from.len(), to.len(), "messages have their length before them");
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(&target)) else { break };
            let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from_client, &mut to_server);
                let _ = to_server.shutdown(Shutdown::Write);
            });
            let (from, to) = (from.clone(), to.clone());
            std::thread::spawn(move || rewrite(server, client, &from, &to));
        }
    });
    address
}

fn rewrite(mut server: TcpStream, mut client: TcpStream, from: &[u8], to: &[u8]) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = server.read(&mut bytes) {
        let bytes = &mut bytes[..read];
        while let Some(at) = bytes.windows(from.len()).position(|text| text == from) {
            bytes[at..at + from.len()].copy_from_slice(to);
        }
        if client.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Write);
}

#[test]
fn release_of_etcd_with_a_known_fault_is_warned_of_at_the_start() {
    let (etcd, temp) = (Etcd::start(), tempfile::tempdir().unwrap());
    let status = etcd.ctl(&["endpoint", "status", "-w", "json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let version = status[0]["Status"]["version"].as_str().unwrap();
    let faulty = if version.len() == "3.5.4".len() { "3.5.4" } else { "3.4.21" };
    let url = format!("http://{}", rewriting(&etcd, version, faulty));
    let log = temp.path().join("log");
    let _node = Service::start_logged(&log, &["--etcd", &url, "--node", "n1"]);
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains(&format!("etcd {faulty} has a known fault")) && log.contains("or later"), "{log}");
}

#[test]
fn node_compacts_the_history_of_etcd() {
    let (etcd, temp) = (Etcd::start(), tempfile::tempdir().unwrap());
    let store = SharedStore::Etcd(EtcdConfig::new([&*etcd.url], DEFAULT_PREFIX));
    let cluster = ClusterConfig::new("n1".to_owned(), store);
    assert_eq!(cluster.compact_every, Some(COMPACT_EVERY));
    let cluster = ClusterConfig { compact_every: Some(Duration::from_millis(500)), ..cluster };
    let config = ServeConfig {
        in_memory: false,
        cluster: Some(cluster),
        ..ServeConfig::in_memory(temp.path().join("data"))
    };
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let on_runtime = runtime.enter();
    let service = serve_in_background(config, stopping, Box::new(|_| ()));
    drop(on_runtime);
    wait_for("the first revision to be compacted", || {
        let read = etcd.ctl(&["get", "x", "--rev", "1"]);
        String::from_utf8_lossy(&read.stderr).contains("has been compacted").then_some(())
    });
    stop.send_replace(true);
    runtime.block_on(service).unwrap().unwrap();
}
