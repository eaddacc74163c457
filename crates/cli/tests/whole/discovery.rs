//! Endpoint discovery: default address, environment, DHCP leases of dhclient and systemd-networkd, and our own
//! DISCOVER, with the real service and a real DHCP server. Also detection of a lost connection.
//!
//! The platform is a network namespace with the service and dnsmasq; the VM is another one, linked to it. Programs in
//! the VM write to temporary file systems that are removed with the test.

use std::io::{BufRead, BufReader};
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use crate::support::in_namespace::{ADDRESS, Service};
use crate::support::namespace::{Namespace, failure_text, require_file};
use crate::support::{binary, wait_for, write_program};
use notbefore_client::clock::Clock;
use serde_json::Value;
use tempfile::TempDir;

/// Address of platforms without a virtual network.
const OTHER_ADDRESS: &str = "168.63.129.16";

/// Script of the VM's DHCP clients on a new lease: sets address and route, and nothing on the test machine.
const LEASE_SCRIPT: &str = "#!/bin/sh
case \"$1$reason\" in
  bound | BOUND)
    ip addr replace 10.0.0.4/24 dev eth0
    ip route replace default via 10.0.0.1
    ;;
esac
";

/// Start of every script: no leases but the test's, and no service at the default address.
const ISOLATED: &str = "mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /var/lib; mkdir /var/lib/dhcp; ip route replace unreachable 169.254.0.0/16;";
/// Sets the VM's address statically.
const CONFIGURED: &str = "ip addr add 10.0.0.4/24 dev eth0; ip route add default via 10.0.0.1;";
/// dhclient as ifupdown starts it, without changes to the machine.
const DHCLIENT: &str =
    "dhclient -1 -cf /dev/null -pf $PWD/pid -sf $PWD/lease.sh -lf /var/lib/dhcp/dhclient.eth0.leases eth0;";

/// A platform and a VM.
struct Network {
    guest: Namespace,
    service: Service,
    dnsmasq: Option<Child>,
    dir: TempDir,
}

impl Network {
    /// With the service at 169.254.169.254, and with these further flags.
    fn new(flags: &[&str]) -> Self {
        for (file, package) in [
            ("/usr/sbin/dnsmasq", "dnsmasq-base"),
            ("/sbin/udhcpc", "udhcpc"),
            ("/sbin/dhclient", "isc-dhcp-client"),
        ] {
            require_file(file, package);
        }
        let (host, guest) = (Namespace::new(), Namespace::new());
        host.ip(&format!("link add vnet0 type veth peer name eth0 netns {}", guest.name()));
        host.ip("link set vnet0 up");
        host.ip("addr add 10.0.0.1/24 dev vnet0");
        host.add_address(OTHER_ADDRESS);
        guest.ip("link set eth0 address 02:00:00:00:00:04 up");
        let service = Service::start_in(host, flags);
        service.apply_fleet(
            "scopes: [{ name: web-0, kind: standalone, vms: [{ name: web-0, addresses: [10.0.0.4] }] }]\n",
        );
        let dir = tempfile::tempdir().unwrap();
        write_program(&dir.path().join("lease.sh"), LEASE_SCRIPT);
        Network { guest, service, dnsmasq: None, dir }
    }

    /// Starts a DHCP server with these further options.
    fn dhcp(mut self, args: &[&str]) -> Self {
        let host = &self.service.namespace;
        let mut dnsmasq = host.command("dnsmasq");
        dnsmasq.args([
            "--keep-in-foreground",
            "--conf-file=/dev/null",
            "--pid-file=",
            "--port=0",
            "--user=root",
        ]);
        dnsmasq.arg(format!("--dhcp-leasefile={}", self.dir.path().join("leases").display()));
        dnsmasq.args(["--interface=vnet0", "--bind-dynamic", "--dhcp-range=10.0.0.0,static", "--no-ping"]);
        dnsmasq.arg("--dhcp-host=02:00:00:00:00:04,10.0.0.4").args(args);
        self.dnsmasq = Some(dnsmasq.spawn().unwrap());
        wait_for("the DHCP server", || {
            let listed = host.command("ss").args(["-lnu"]).output().unwrap();
            String::from_utf8_lossy(&listed.stdout).contains(":67").then_some(())
        });
        self
    }

    fn end_dhcp(&mut self) {
        let mut dnsmasq = self.dnsmasq.take().unwrap();
        dnsmasq.kill().unwrap();
        dnsmasq.wait().unwrap();
    }

    /// Runs a script in the VM.
    fn run(&self, script: &str) -> Output {
        let mut command = self.guest.bounded("bash");
        let script = format!("{script} exec {} get --output json", binary());
        command.args(["-euc", &script]).current_dir(self.dir.path()).env_remove("SCHEDULEDEVENTSIP");
        command.output().unwrap()
    }

    /// Runs a script, then discovers the endpoint: the endpoint and its source. The platform must know the VM.
    fn discover(&self, script: &str) -> (String, String) {
        let output = self.run(script);
        assert!(output.status.success(), "{script}: {}", failure_text(&output));
        let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(seen["vm"], "web-0", "{script}");
        let text = |key: &str| seen[key].as_str().unwrap().to_owned();
        (text("endpoint"), text("endpoint_by"))
    }

    /// Runs a script, then discovers no endpoint: the error message.
    fn discovery_error(&self, script: &str) -> String {
        let output = self.run(script);
        assert_eq!(output.status.code(), Some(1), "{script}: {}", failure_text(&output));
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if self.dnsmasq.is_some() {
            self.end_dhcp();
        }
    }
}

fn found(endpoint: &str, by: &str) -> (String, String) {
    (format!("http://{endpoint}"), by.to_owned())
}

#[test]
fn default_address_and_environment_need_no_dhcp() {
    let network = Network::new(&["--guest", &format!("{OTHER_ADDRESS}:80")]);
    assert_eq!(network.discover(CONFIGURED), found(ADDRESS, "the usual address"));
    let variable = format!("export SCHEDULEDEVENTSIP={OTHER_ADDRESS};");
    assert_eq!(network.discover(&variable), found(OTHER_ADDRESS, "SCHEDULEDEVENTSIP"));
    // An endpoint that does not answer is skipped.
    assert_eq!(network.discover("export SCHEDULEDEVENTSIP=10.0.0.1:9;"), found(ADDRESS, "the usual address"));
}

#[test]
fn dhclient_lease_is_read() {
    let option = format!("--dhcp-option-force=245,{OTHER_ADDRESS}");
    let mut network = Network::new(&["--guest", &format!("{OTHER_ADDRESS}:80")]).dhcp(&[&option]);
    // The lease file stays for a later script; DHCP is no longer available.
    let keep = "cp /var/lib/dhcp/dhclient.eth0.leases $PWD/kept;";
    network.discover(&format!("{ISOLATED} {DHCLIENT} {keep}"));
    network.end_dhcp();
    let lease = std::fs::read_to_string(network.dir.path().join("kept")).unwrap();
    assert!(lease.contains("option unknown-245 a8:3f:81:10;"), "{lease}");
    let path = "/var/lib/dhcp/dhclient.eth0.leases";
    let by = found(OTHER_ADDRESS, &format!("the DHCP lease {path}"));
    assert_eq!(network.discover(&format!("{ISOLATED} cp $PWD/kept {path};")), by);
}

/// systemd-networkd alone: without systemd, and without udev, which it skips if `/sys` is read-only.
const NETWORKD: &str = "mkdir -p /run/systemd/network /run/systemd/netif/leases /run/systemd/netif/links /run/systemd/netif/lldp; \
    chown -R systemd-network /run/systemd/netif; \
    printf '[Match]\\nName=eth0\\n[Network]\\nDHCP=ipv4\\nLinkLocalAddressing=no\\nIPv6AcceptRA=no\\n' > /run/systemd/network/10.network; \
    mount -o remount,ro /sys; /lib/systemd/systemd-networkd >$PWD/networkd 2>&1 & \
    until ip route show default | grep -q 10.0.0.1; do sleep 0.05; done;";

#[test]
fn systemd_networkd_lease_is_read() {
    require_file("/lib/systemd/systemd-networkd", "systemd");
    let option = format!("--dhcp-option-force=245,{OTHER_ADDRESS}");
    let network = Network::new(&["--guest", &format!("{OTHER_ADDRESS}:80")]).dhcp(&[&option]);
    let (endpoint, by) = network.discover(&format!("{ISOLATED} {NETWORKD}"));
    assert_eq!(endpoint, format!("http://{OTHER_ADDRESS}"));
    assert!(by.starts_with("the DHCP lease /run/systemd/netif/leases/"), "{by}");
}

/// For `get`, `NOTBEFORE_ENDPOINT` equals `--endpoint`.
#[test]
fn endpoint_without_port_tries_both_ports() {
    let network = Network::new(&["--guest", &format!("{OTHER_ADDRESS}:8080")]);
    let named = format!("{ISOLATED} {CONFIGURED} export NOTBEFORE_ENDPOINT={OTHER_ADDRESS};");
    assert_eq!(network.discover(&named), found(&format!("{OTHER_ADDRESS}:8080"), "as set"));
}

#[test]
fn dhcp_is_queried_without_lease() {
    let option = format!("--dhcp-option-force=245,{OTHER_ADDRESS}");
    let network = Network::new(&["--guest", &format!("{OTHER_ADDRESS}:8080")]).dhcp(&[&option]);
    let by = found(&format!("{OTHER_ADDRESS}:8080"), "a DHCP answer on eth0");
    // udhcpc keeps no lease, and may still use the same port.
    let udhcpc = "udhcpc -i eth0 -s $PWD/lease.sh -n -q -f >&2;";
    assert_eq!(network.discover(&format!("{ISOLATED} {udhcpc}")), by);
    let beside = "udhcpc -i eth0 -s $PWD/lease.sh -f >$PWD/udhcpc 2>&1 & until grep -q obtained $PWD/udhcpc; do sleep 0.05; done;";
    assert_eq!(network.discover(&format!("{ISOLATED} {beside}")), by);
    // dhclient with its lease file at an unknown path.
    let dhclient = DHCLIENT.replace("/var/lib/dhcp/dhclient.eth0.leases", "$PWD/dhclient.leases");
    assert_eq!(network.discover(&format!("{ISOLATED} {dhclient}")), by);
}

#[test]
fn invalid_dhcp_answer_is_reported_and_ignored() {
    for (option, expected) in [
        (
            &["--dhcp-option-force=245,10.0.0.1,10.0.0.2"][..],
            "eth0): a DHCP answer whose option 245 has 8 bytes, where an address has 4",
        ),
        (&["--dhcp-option-force=245,0a:00:00"], "eth0): a DHCP answer whose option 245 has 3 bytes"),
        (&[], "eth0): a DHCP answer without option 245"),
        // An address without a listener.
        (&["--dhcp-option-force=245,10.0.0.1"], "http://10.0.0.1 (a DHCP answer on eth0): cannot connect"),
    ] {
        let network = Network::new(&[]).dhcp(option);
        let error = network.discovery_error(&format!("{ISOLATED} {CONFIGURED}"));
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("http://169.254.169.254 (the usual address): cannot connect"), "{error}");
        assert!(error.contains("http://169.254.169.254:8080 (the usual address): cannot connect"), "{error}");
    }
}

#[test]
fn discovery_times_out_and_reports_missing_permission() {
    let network = Network::new(&[]);
    let error =
        network.discovery_error(&format!("{ISOLATED} {CONFIGURED} export SCHEDULEDEVENTSIP=10.0.0.1:9;"));
    assert!(error.contains("http://10.0.0.1:9 (SCHEDULEDEVENTSIP): cannot connect"), "{error}");
    assert!(error.contains("DHCP (a DHCP answer on eth0): no DHCP server answers within 10s"), "{error}");
    let unprivileged = format!(
        "{ISOLATED} chmod 755 $PWD; exec setpriv --reuid 65534 --clear-groups --inh-caps=-all {} get;",
        binary()
    );
    let error = network.discovery_error(&unprivileged);
    assert!(error.contains("asking DHCP needs root"), "{error}");
}

/// Without detection, a 30-second long poll on a cut link would miss an eviction.
#[test]
fn cut_link_is_detected_during_long_poll() {
    let network = Network::new(&[]);
    let mut command = network.guest.bounded("bash");
    let script = format!("{CONFIGURED} exec {} get --watch --count 1 --endpoint {ADDRESS}", binary());
    let mut watching =
        command.args(["-euc", &script]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stderr.take().unwrap()).lines().map(Result::unwrap);
    // If the metadata is slow, the host name is printed first.
    lines.find(|line| line.contains("web-0")).unwrap();
    // The first poll has no tag, the second learns that long polls are supported, the third is a long poll.
    let polls = || network.service.cli(&["vm", "show", "web-0"])["last_poll_at"].as_str().map(str::to_owned);
    let first = wait_for("a poll", polls);
    let second = wait_for("a second", || polls().filter(|last| *last != first));
    wait_for("a third", || polls().filter(|last| *last != second));
    let clock = Clock::start();
    network.service.namespace.ip("link set vnet0 down");
    let noticed = lines.next().unwrap();
    assert!(noticed.starts_with(&format!("notbefore: http://{ADDRESS}: ")), "{noticed}");
    assert!(clock.now().tick < Duration::from_secs(15), "noticed after {:?}", clock.now().tick);
    network.service.namespace.ip("link set vnet0 up");
    assert_eq!(lines.next().unwrap(), "notbefore: the platform answers again");
    network.service.cli(&["event", "schedule", "--type", "freeze", "web-0"]);
    let output = watching.wait_with_output().unwrap();
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("Freeze mine: web-0 is Scheduled"),
        "{output:?}"
    );
}

/// A discovered endpoint is not fixed: if it stops answering, the agent discovers the next one. An endpoint from DHCP
/// is tried last, since any machine on the link may have sent it.
#[test]
fn agent_rediscovers_moved_endpoint() {
    let network = Network::new(&["--guest", &format!("{OTHER_ADDRESS}:80")]);
    // Not in /tmp, which is in memory on some systems; the agent refuses a volatile journal.
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (file, state) = (home.path().join("agent.toml"), home.path().join("state"));
    let text = format!("state = \"{}\"\nlisten = \"none\"\n[[rule]]\nname = \"all\"\n", state.display());
    std::fs::write(&file, text).unwrap();
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("endpoint"), format!("http://{OTHER_ADDRESS}\n")).unwrap();
    let script = format!("{CONFIGURED} exec timeout 120 {} agent run --config {}", binary(), file.display());
    let mut command = network.guest.command("bash");
    command.args(["-euc", &script]).env_remove("SCHEDULEDEVENTSIP").env("NO_COLOR", "1");
    let mut agent = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(agent.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut answers = lines.filter(|line| line.contains("the platform answers endpoint="));
    let first = answers.next().unwrap();
    assert!(first.contains(&format!("endpoint=http://{ADDRESS} by=\"the usual address\"")), "{first}");
    network.service.namespace.ip(&format!("addr del {ADDRESS}/32 dev lo"));
    let second = answers.next().expect("the agent has not found the other endpoint within two minutes");
    assert!(
        second.contains(&format!("endpoint=http://{OTHER_ADDRESS} by=\"DHCP, the last time\"")),
        "{second}"
    );
    agent.kill().unwrap();
    agent.wait().unwrap();
}
