//! The hypervisor of the page: namespaces, the service in one of them, guests in the others.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::page::block;
use crate::support::namespace::{Namespace, failure_text, require_file};
use crate::support::{binary, wait_for};

/// The address that every published client calls.
pub const ADDRESS: &str = "169.254.169.254";
/// Time to wait for a response that must not come; longer than any response on one machine takes.
const NO_ANSWER_SECONDS: &str = "3";

/// A machine: a namespace and a working directory.
pub struct Machine {
    children: Vec<Child>,
    /// Directory of its files and of the service's data.
    pub dir: TempDir,
    /// Its network. Dropped last: this kills the processes in it.
    pub namespace: Namespace,
}

impl Machine {
    pub fn new() -> Self {
        for (file, package) in [
            ("/usr/sbin/nft", "nftables"),
            ("/usr/sbin/haproxy", "haproxy"),
            ("/usr/sbin/dnsmasq", "dnsmasq-base"),
            ("/sbin/udhcpc", "udhcpc"),
            ("/usr/bin/openssl", "openssl"),
            ("/sbin/sysctl", "procps"),
            ("/usr/bin/curl", "curl"),
        ] {
            require_file(file, package);
        }
        Self { children: Vec::new(), dir: tempfile::tempdir().unwrap(), namespace: Namespace::new() }
    }

    /// The hypervisor of the page's example with its two guests.
    pub fn with_guests() -> (Self, [Machine; 2]) {
        let host = Self::new();
        host.bridge("br0");
        host.namespace.ip("addr add 10.0.0.1/24 dev br0");
        let guests = [4, 5].map(|number| host.guest("br0", &format!("vnet{}", number - 4), number));
        (host, guests)
    }

    pub fn bridge(&self, name: &str) {
        self.namespace.ip(&format!("link add {name} type bridge"));
        self.namespace.ip(&format!("link set {name} up"));
    }

    /// A guest behind a port of a bridge; the last part of its addresses is a number.
    pub fn guest(&self, bridge: &str, port: &str, number: u8) -> Machine {
        let guest = Machine::new();
        let (host, inside) = (&self.namespace, &guest.namespace);
        host.ip(&format!("link add {port} type veth peer name eth0 netns {}", inside.name()));
        host.ip(&format!("link set {port} master {bridge} up"));
        inside.ip(&format!("link set eth0 address 02:00:00:00:00:{number:02x} up"));
        inside.ip(&format!("addr add 10.0.0.{number}/24 dev eth0"));
        inside.ip("route add default via 10.0.0.1");
        guest
    }

    fn prepared(&self, command: &mut Command) {
        let programs = Path::new(binary()).parent().unwrap();
        let path = format!(
            "{}:{}:{}",
            self.dir.path().display(),
            programs.display(),
            std::env::var("PATH").unwrap()
        );
        command
            .current_dir(self.dir.path())
            .env("PATH", path)
            .env("NOTBEFORE_DATA", self.dir.path().join("data"));
    }

    /// A command in the namespace, with a time limit.
    pub fn shell(&self, text: &str) -> Command {
        let mut command = self.namespace.bounded("bash");
        command.args(["-euc", text]);
        self.prepared(&mut command);
        command
    }

    /// Runs a block of the page; returns its output.
    pub fn run(&self, name: &str) -> String {
        let output = self.shell(block(name)).output().unwrap();
        assert!(output.status.success(), "{name}: {}", failure_text(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts a block of one command, which keeps running.
    pub fn start(&mut self, name: &str, also: &str) -> u32 {
        let block = block(name);
        let exec = if block.contains("exec ") { "" } else { "exec " };
        let mut command = self.namespace.command("bash");
        command.args(["-euc", &format!("{exec}{block} {also}")]).stdout(Stdio::piped());
        self.prepared(&mut command);
        let child = command.spawn().unwrap();
        self.children.push(child);
        self.children.last().unwrap().id()
    }

    /// Starts the service with a block of the page and waits until it is ready. Events stay Started until the test
    /// completes them. Returns the process id.
    pub fn serve(&mut self, name: &str) -> u32 {
        let id = self.start(name, "--simulated-duration 1h");
        let mut lines = BufReader::new(self.children.last_mut().unwrap().stdout.take().unwrap()).lines();
        let ready =
            |line: std::io::Result<String>| line.is_ok_and(|line| line.trim_start().starts_with("operators"));
        assert!(lines.by_ref().any(ready), "{name}: the service ended before it was ready");
        // Drain later output, so that the pipe does not fill up.
        std::thread::spawn(move || for _ in lines.by_ref() {});
        id
    }

    /// Ends the process that was started last.
    pub fn end_last(&mut self) {
        let mut child = self.children.pop().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Waits until `ss` with these arguments prints this text.
    pub fn wait_for_socket(&self, args: &str, shown: &str) {
        wait_for(&format!("a socket at {shown}"), || {
            let listed = self.namespace.command("ss").args(args.split(' ')).output().unwrap();
            String::from_utf8_lossy(&listed.stdout).contains(shown).then_some(())
        });
    }

    /// Runs the command line; returns its JSON output.
    pub fn cli(&self, args: &[&str]) -> Value {
        let mut command = self.namespace.bounded(binary());
        self.prepared(&mut command);
        let output = command.args(args).args(["--output", "json"]).output().unwrap();
        assert!(output.status.success(), "notbefore {args:?}: {}", failure_text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The id of the VM whose path ends so.
    pub fn id(&self, vm: &str) -> String {
        self.cli(&["vm", "show", vm])["id"].as_str().unwrap().to_owned()
    }

    /// Reads the scheduled events from an address: status and body, or curl's exit code.
    pub fn request(&self, address: &str, args: &[&str]) -> Result<(u16, String), i32> {
        let url = format!("http://{address}/metadata/scheduledevents?api-version=2020-07-01");
        let mut curl = self.namespace.bounded("curl");
        curl.args(["-q", "-s", "-w", "\n%{http_code}", "-H", "Metadata: true", "-m", NO_ANSWER_SECONDS]);
        let output = curl.args(args).arg(url).output().unwrap();
        if !output.status.success() {
            return Err(output.status.code().unwrap());
        }
        let text = String::from_utf8(output.stdout).unwrap();
        let (body, status) = text.rsplit_once('\n').unwrap();
        Ok((status.parse().unwrap(), body.to_owned()))
    }

    /// The ids of the events that this guest sees.
    pub fn events(&self) -> Vec<String> {
        let (status, body) = self.request(ADDRESS, &[]).unwrap();
        assert_eq!(status, 200, "{body}");
        let document: Value = serde_json::from_str(&body).unwrap();
        let id = |event: &Value| event["EventId"].as_str().unwrap().to_owned();
        document["Events"].as_array().unwrap().iter().map(id).collect()
    }

    pub fn approves(&self, event: &str) -> (u16, String) {
        self.request(ADDRESS, &["-d", &format!("{{\"StartRequests\":[{{\"EventId\":\"{event}\"}}]}}")])
            .unwrap()
    }

    /// Its identity, read with the page's command.
    pub fn name(&self) -> String {
        self.run("guest")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Checks of every setup: each guest sees only its own VM's events, and approves as that VM. `service` is the machine
/// of the service; `vms` are the guests' VMs by path suffix, with the address expected in the trail.
pub fn each_guest_is_its_own_vm(service: &Machine, guests: &[Machine; 2], vms: [(&str, &str); 2]) {
    // The first request enables notice for user operations in a scope.
    assert!(guests.iter().all(|guest| guest.events().is_empty()));
    let events = vms.map(|(vm, _)| {
        let operation = service.cli(&["vm", "restart", vm]);
        operation["targets"][0]["event"].as_str().unwrap().to_uppercase()
    });
    for (own, other) in [(0, 1), (1, 0)] {
        let (guest, event) = (&guests[own], &events[own]);
        let ((vm, address), name) = (vms[own], vms[own].0.rsplit('/').next().unwrap());
        assert_eq!(guest.name(), name);
        assert_eq!(guest.events(), std::slice::from_ref(event), "{vm}");
        assert_eq!(guest.approves(&events[other]).0, 400, "{vm} approves another's");
        assert_eq!(guest.approves(event), (200, String::new()), "{vm}");
        let shown = service.cli(&["event", "show", event]);
        assert_eq!(shown["status"], "Started", "{vm}");
        let by = &shown["trail"][1]["by"];
        assert_eq!(*by, serde_json::json!({"kind": "vm", "name": name, "address": address}), "{vm}");
        service.cli(&["event", "complete", event]);
    }
}
