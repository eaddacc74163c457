//! A node and a member of etcd as units, with the drop-ins and certificates of docs/guide/cluster.md, on one machine.

use super::machine::Machine;
use super::units::{property, systemctl, wait_until};
use crate::cluster::guide::{block, page};
use crate::support::wait_for;

#[test]
fn units_of_a_cluster_use_the_certificates_of_the_guide() {
    let machine = super::installed_on(Machine::booted(&super::deb()));
    let page = page();
    let run = |blocks: &[&str]| {
        let text: String = blocks.iter().map(|name| block(&page, name)).collect();
        let variables = "cd /usr/share/doc/notbefore; export HOME=/root name=a ip=10.9.0.1";
        machine.stdout("bash", &["-euc", &format!("{variables}\n{text}")])
    };
    machine.stdout("ip", &["address", "add", "10.9.0.1/32", "dev", "lo"]);
    run(&["tls-certificates", "tls-settings", "tls-files"]);
    // One member instead of three.
    let member = "sed -i 's/^\\(initial-cluster: [^,]*\\),.*/\\1/' /etc/etcd/etcd.yml";
    let endpoint = "sed -i 's/^\\(endpoints = [^,]*\\),.*/\\1]/' /etc/notbefore/notbefore.toml";
    machine.stdout("sh", &["-euc", &format!("{member}\n{endpoint}")]);
    systemctl(&machine, &["daemon-reload"]);
    // Both units are Type=notify, so systemctl waits until they are ready.
    systemctl(&machine, &["restart", "etcd"]);
    // The machine may be busy, and rights cannot be granted twice.
    let patience = "export ETCDCTL_DIAL_TIMEOUT=30s ETCDCTL_COMMAND_TIMEOUT=60s\n";
    let one = format!("{patience}export ETCDCTL_ENDPOINTS=https://10.9.0.1:2379\n");
    let rights = [block(&page, "tls-etcdctl"), one, block(&page, "tls-rights")].concat();
    machine.stdout("env", &["HOME=/root", "bash", "-euc", &rights]);
    systemctl(&machine, &["start", "notbefore"]);
    let keys = machine.stdout("stat", &["--format=%a %U %G", "/etc/notbefore/tls/node.key"]);
    assert_eq!(keys, "640 root notbefore-tls\n");
    let status = run(&["tls-status"]);
    assert!(status.contains("1 of 1 running"), "{status}");

    // Renewed certificates need a reload and no restart.
    let before = property(&machine, "notbefore", "MainPID");
    run(&["tls-certificates", "tls-files"]);
    systemctl(&machine, &["reload", "notbefore"]);
    let shown =
        "openssl s_client -connect 10.9.0.1:9255 </dev/null 2>/dev/null | openssl x509 -noout -serial";
    let stored = "openssl x509 -noout -serial -in /etc/notbefore/tls/operator.pem";
    let is_renewed = || machine.holds(&format!("[ \"$({shown})\" = \"$({stored})\" ]")).then_some(());
    wait_for("the new certificate of the operator listener", is_renewed);
    // A new connection to etcd, with the renewed certificates on both sides.
    systemctl(&machine, &["kill", "--signal=KILL", "etcd"]);
    wait_until(&machine, "etcd", "NRestarts", "1");
    wait_until(&machine, "etcd", "ActiveState", "active");
    let add = "notbefore vm add web-0 --data /var/lib/notbefore";
    wait_for("a change", || machine.holds(add).then_some(()));
    assert_eq!(property(&machine, "notbefore", "MainPID"), before);
}
