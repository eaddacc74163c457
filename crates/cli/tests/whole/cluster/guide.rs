//! docs/guide/cluster.md as printed: three members and three nodes from nothing in ten commands, each machine a network
//! namespace. Other modules run the rest of the page: `tls.sh`, `reach.sh`, and `service/etcd/start.rs`.
//!
//! One shell runs everything in namespaces of its own, so that all processes, links and names end with the test.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::binary;
use crate::support::namespace::{failure_text, require_file};
use crate::support::pages::{as_typed, root};

/// Limit of a script, in seconds. The longest takes half a minute on two idle cores; several run side by side.
const SCRIPT_SECONDS_MAX: &str = "900";
/// Lines of each log that a failure shows.
const LOG_LINES: usize = 8;

pub fn page() -> String {
    std::fs::read_to_string(root().join("docs/guide/cluster.md")).unwrap()
}

/// The directory of the scripts.
fn scripts() -> PathBuf {
    root().join("crates/cli/tests/whole/cluster")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(scripts().join(name)).unwrap()
}

/// A shell in namespaces of its own, which runs a script in a directory.
fn shell(script: &str, dir: &Path) -> Command {
    let mut shell = Command::new("timeout");
    shell.args(["--kill-after=1", SCRIPT_SECONDS_MAX, "unshare", "--net", "--mount"]);
    shell.args(["--propagation=private", "--pid", "--fork", "--kill-child"]);
    shell.args(["bash", "-euo", "pipefail", "-c", script, "bash"]).current_dir(dir);
    as_typed(&mut shell);
    shell
}

/// Runs a script of this directory on the machines of `machines.sh`. Programs are files with their packages.
pub fn run_script(script: &str, programs: &[(&str, &str)]) {
    for (file, package) in programs {
        require_file(file, package);
    }
    let dir = tempfile::tempdir().unwrap();
    let mut shell = shell(&(read("machines.sh") + &read(script)), dir.path());
    let output = shell.arg(binary()).arg(root()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    println!("{printed}");
    let succeeded = output.status.success() && printed.ends_with("== done\n");
    assert!(succeeded, "{script}: {}\n{}", failure_text(&output), logs(dir.path()));
}

/// The last lines of all logs in a directory.
fn logs(dir: &Path) -> String {
    let mut shown = String::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let log = String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).into_owned();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
        shown += &format!("== {}\n{last}\n", path.display());
    }
    shown
}

/// A block that no test runs would be unverified.
#[test]
fn every_named_block_of_the_page_is_typed() {
    let page = page();
    let named = page.lines().filter_map(|line| line.trim_start().strip_prefix("```sh "));
    let tests = ["guide.rs", "machines.sh", "tls.sh", "reach.sh", "../service/etcd/start.rs"];
    let tests = tests.map(read).concat();
    let is_word = |c: char| c.is_alphanumeric() || c == '-';
    let words: Vec<&str> = tests.split(|c: char| !is_word(c)).collect();
    let missing: Vec<&str> = named.clone().filter(|name| !words.contains(name)).collect();
    assert!(missing.is_empty() && named.count() > 15, "no test runs {missing:?}");
}

/// The block of a name, without the indentation of the list that it is in.
pub fn block(page: &str, name: &str) -> String {
    let (_, rest) = page.split_once(&format!("```sh {name}\n")).unwrap_or_else(|| panic!("no block {name}"));
    let lines = rest.lines().take_while(|line| line.trim() != "```");
    lines.map(|line| line.trim_start().to_owned() + "\n").collect()
}

#[test]
fn ten_commands_of_the_page_make_a_cluster() {
    let page = page();
    let [certificates, member, node, usage] =
        ["certificates", "member", "node", "use"].map(|name| block(&page, name));
    let commands = certificates.lines().count() + 3 * (member.lines().count() + node.lines().count());
    assert_eq!(commands + usage.lines().count(), 10, "the heading says ten commands");
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        r#"
mount -t tmpfs none /run
ip link set lo up
ip link add bridge type bridge
ip addr add 10.9.0.50/24 dev bridge
ip link set bridge up
for n in 1 2 3; do
  ip netns add machine$n
  ip link add port$n type veth peer name eth0 netns machine$n
  ip link set port$n master bridge up
  ip -n machine$n link set lo up
  ip -n machine$n addr add 10.9.0.$n/24 dev eth0
  ip -n machine$n link set eth0 up
done
{certificates}
start() {{ # MACHINE IP NAME
  mkdir $3
  cp ca.pem $2.pem $2.key $3
  (cd $3 && ip=$2 name=$3 exec ip netns exec $1 bash -c 'exec {member}' >etcd.log 2>&1) &
  (cd $3 && ip=$2 name=$3 exec ip netns exec $1 bash -c 'until exec_node; do sleep 0.2; done' >node.log 2>&1) &
}}
exec_node() {{ {node} }}
export -f exec_node
start machine1 10.9.0.1 a
start machine2 10.9.0.2 b
start machine3 10.9.0.3 c
# The nodes are ready, and one of them has the first token.
until ls */notbefore-data/operator.token && [ $(ls */notbefore-data/listeners.json | wc -l) = 3 ]; do sleep 0.2; done 2>/dev/null
cd "$(dirname "$(ls */notbefore-data/operator.token)")/.."
case $PWD in */a) machine=machine1 ;; */b) machine=machine2 ;; */c) machine=machine3 ;; esac
# A node that has just joined is a problem for some seconds.
until ip netns exec $machine bash -euc 'notbefore cluster status' >status && grep -q '3 of 3 running' status; do sleep 0.2; done
ip netns exec $machine bash -euxc '{usage}'
for n in 1 2 3; do
  # A follower may be milliseconds behind.
  until curl -sS --fail -H Metadata:true "http://10.9.0.$n:9254/metadata/scheduledevents?api-version=2020-07-01"; do sleep 0.2; done
  echo
done
"#
    );
    let mut shell = shell(&script, dir.path());
    let bin = Path::new(binary()).parent().unwrap().display().to_string();
    shell.env("PATH", format!("{bin}:{}", std::env::var("PATH").unwrap_or_default()));
    let done = shell.output().unwrap();
    let (printed, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let log = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap_or_default();
    assert!(done.status.success(), "{printed}\n{errors}\n{}\n{}", log("a/node.log"), log("a/etcd.log"));
    assert_eq!(
        printed.matches("{\"DocumentIncarnation\":1,\"Events\":[]}").count(),
        3,
        "{printed}\n{errors}"
    );
    assert!(printed.contains("added default/default/web-0/web-0"), "{printed}");
}
