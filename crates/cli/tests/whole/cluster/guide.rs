//! docs/guide/cluster.md as printed: three members and three nodes from nothing in ten commands, each machine a network
//! namespace.
//!
//! One shell runs everything in namespaces of its own, so that all processes, links and names end with the test.

use std::path::Path;
use std::process::Command;

use crate::support::binary;
use crate::support::pages::{as_typed, root};

/// The block of a name, without the indentation of the list that it is in.
fn block(page: &str, name: &str) -> String {
    let (_, rest) = page.split_once(&format!("```sh {name}\n")).unwrap_or_else(|| panic!("no block {name}"));
    let lines = rest.lines().take_while(|line| line.trim() != "```");
    lines.map(|line| line.trim_start().to_owned() + "\n").collect()
}

#[test]
fn ten_commands_of_the_page_make_a_cluster() {
    let page = std::fs::read_to_string(root().join("docs/guide/cluster.md")).unwrap();
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
until ip netns exec $machine bash -euc 'notbefore cluster status' | grep -q '3 of 3 running'; do sleep 0.2; done
ip netns exec $machine bash -euxc '{usage}'
for n in 1 2 3; do
  curl -sS --fail -H Metadata:true "http://10.9.0.$n:9254/metadata/scheduledevents?api-version=2020-07-01"
  echo
done
"#
    );
    let mut shell = Command::new("timeout");
    shell.args(["--kill-after=1", "120", "unshare", "--net", "--mount", "--propagation=private", "--pid"]);
    shell.args(["--fork", "--kill-child", "bash", "-euc", &script]).current_dir(dir.path());
    as_typed(&mut shell);
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
