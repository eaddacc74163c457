//! The package's units under a running systemd: an event passes from service to agent, and systemd restarts both.

use super::machine::{Machine, status_and_output};
use crate::support::wait_for;

const CONFIG: &str = r#"
endpoint = "http://127.0.0.1:9254"

[[rule]]
name = "drain"
[[rule.before]]
write_file = { path = "/run/work.state", content = "{EVENT_TYPE}" }
[[rule.before]]
stop_unit = "work.service"
[[rule.after]]
start_unit = "work.service"
"#;

/// One property of a unit.
pub fn property(machine: &Machine, unit: &str, name: &str) -> String {
    machine.stdout("systemctl", &["show", "--value", "--property", name, unit]).trim().to_owned()
}

/// Runs systemctl on a unit; prints the journal on failure.
pub fn systemctl(machine: &Machine, args: &[&str]) {
    let output = machine.command("systemctl", args).output().unwrap();
    let journal = || machine.stdout("journalctl", &["--no-pager", "--lines=30"]);
    assert!(output.status.success(), "systemctl {args:?}: {}\n{}", status_and_output(&output), journal());
}

pub fn wait_until(machine: &Machine, unit: &str, name: &str, value: &str) {
    wait_for(&format!("{unit}: {name}={value}"), || (property(machine, unit, name) == value).then_some(()));
}

/// Runs the command line against the machine's service.
fn operator(machine: &Machine, args: &[&str]) -> String {
    machine.stdout("notbefore", &[args, &["--data", "/var/lib/notbefore"]].concat())
}

/// Schedules a Redeploy of the machine itself.
fn redeploy(machine: &Machine) {
    let name = machine.stdout("uname", &["-n"]);
    operator(machine, &["vm", "redeploy", name.trim()]);
}

/// Waits until an event has started, and completes it.
fn complete(machine: &Machine) {
    let started = || {
        let events = operator(machine, &["event", "list", "--output", "json"]);
        let events: serde_json::Value = serde_json::from_str(&events).unwrap();
        let event = events.as_array()?.iter().find(|event| event["status"] == "Started")?;
        Some(event["id"].as_str()?.to_owned())
    };
    let event = wait_for("the event to start", started);
    operator(machine, &["event", "complete", &event]);
}

/// A whole Redeploy event: the work is stopped while it lasts.
fn run_redeploy_event(machine: &Machine) {
    redeploy(machine);
    wait_until(machine, "work", "ActiveState", "inactive");
    complete(machine);
    wait_until(machine, "work", "ActiveState", "active");
}

/// The drop-in that removes rights which hooks without commands do not need.
fn confine(machine: &Machine) {
    let sample = "/usr/share/doc/notbefore/dist/systemd/notbefore-agent.service.d";
    machine.stdout("cp", &["-r", sample, "/etc/systemd/system/"]);
    systemctl(machine, &["daemon-reload"]);
}

#[test]
fn systemd_starts_service_and_agent_and_event_completes() {
    let machine = super::installed_on(Machine::booted(&super::deb()));
    machine.write("/etc/systemd/system/work.service", "[Service]\nExecStart=/bin/sleep infinity\n");
    machine.write("/etc/notbefore/agent.toml", CONFIG);
    systemctl(&machine, &["daemon-reload"]);
    systemctl(&machine, &["start", "work"]);
    // Both units are Type=notify, so systemctl waits until they are ready.
    systemctl(&machine, &["start", "notbefore"]);
    machine.stdout("notbefore", &["agent", "check"]);
    systemctl(&machine, &["enable", "--now", "notbefore-agent"]);
    assert_eq!(machine.stdout("stat", &["--format=%a %U", "/var/lib/notbefore-agent"]), "700 root\n");
    run_redeploy_event(&machine);

    // An upgrade restarts running units only.
    let pids = || ["notbefore", "notbefore-agent"].map(|unit| property(&machine, unit, "MainPID"));
    let before = pids();
    machine.stdout("dpkg", &["--install", "/root/package.deb"]);
    for unit in ["notbefore", "notbefore-agent"] {
        wait_until(&machine, unit, "ActiveState", "active");
    }
    let after = pids();
    assert!(before.iter().zip(&after).all(|(before, after)| before != after), "{before:?} {after:?}");
    systemctl(&machine, &["stop", "notbefore-agent"]);
    machine.stdout("dpkg", &["--install", "/root/package.deb"]);
    assert_eq!(property(&machine, "notbefore-agent", "ActiveState"), "inactive");
    systemctl(&machine, &["start", "notbefore-agent"]);

    // Kill it.
    systemctl(&machine, &["kill", "--signal=KILL", "notbefore-agent"]);
    wait_until(&machine, "notbefore-agent", "NRestarts", "1");
    wait_until(&machine, "notbefore-agent", "ActiveState", "active");

    // The confined agent can still replace a file that only its owner may read.
    let anothers =
        "echo before >/run/work.state; chmod 0640 /run/work.state; chown games:games /run/work.state";
    machine.stdout("sh", &["-ec", anothers]);
    confine(&machine);
    systemctl(&machine, &["restart", "notbefore-agent"]);
    run_redeploy_event(&machine);
    assert_eq!(machine.stdout("cat", &["/run/work.state"]), "Redeploy");
    assert_eq!(machine.stdout("stat", &["--format=%a %U %G", "/run/work.state"]), "640 games games\n");

    systemctl(&machine, &["reload", "notbefore-agent"]);
    systemctl(&machine, &["stop", "notbefore-agent"]);
    assert_eq!(property(&machine, "notbefore-agent", "Result"), "success");

    // An invalid configuration is not retried.
    machine.write("/etc/notbefore/agent.toml", "rules = 1\n");
    assert!(!machine.holds("systemctl start notbefore-agent 2>/dev/null"));
    assert_eq!(property(&machine, "notbefore-agent", "ExecMainStatus"), "2");
    assert_eq!(property(&machine, "notbefore-agent", "ActiveState"), "failed");

    // Removing the package stops running units.
    machine.stdout("dpkg", &["--remove", "notbefore"]);
    assert_eq!(property(&machine, "notbefore", "ActiveState"), "inactive");
}

#[test]
fn confined_agent_can_query_dhcp() {
    let machine = super::installed_on(Machine::booted(&super::deb()));
    // An empty network.
    machine.stdout("ip", &["link", "add", "eth0", "type", "veth", "peer", "name", "eth1"]);
    for end in ["eth0", "eth1"] {
        machine.stdout("ip", &["link", "set", end, "up"]);
    }
    confine(&machine);
    systemctl(&machine, &["start", "notbefore-agent"]);
    // The packaged configuration names no endpoint. Port 68 in /proc/net notation:
    let asks = || machine.holds("grep -q ' 00000000:0044 ' /proc/net/udp").then_some(());
    wait_for("a socket on the DHCP client port", asks);
}

/// Installs the recipe from the package, as its page says.
#[test]
fn job_started_by_recipe_outlives_agent() {
    let machine = super::installed_on(Machine::booted(&super::deb()));
    let install = "cd /usr/share/doc/notbefore
        install -D -t /usr/local/lib/notbefore recipes/process recipes/checkpoint/batch-job
        { echo 'endpoint = \"http://127.0.0.1:9254\"'; cat recipes/checkpoint/agent.toml; } >/etc/notbefore/agent.toml";
    machine.stdout("sh", &["-ec", install]);
    systemctl(&machine, &["start", "notbefore", "notbefore-agent"]);
    let process = "/usr/local/lib/notbefore/process";
    machine.stdout(
        process,
        &["start", "/var/lib/batch", "/usr/local/lib/notbefore/batch-job", "/var/lib/batch"],
    );
    wait_for("the job", || machine.holds("grep -q '^from 1$' /var/lib/batch/log").then_some(()));
    redeploy(&machine);
    complete(&machine);
    let resumed = "test \"$(grep -c ^from /var/lib/batch/log)\" = 2";
    wait_for("the job to go on", || machine.holds(resumed).then_some(()));

    let groups = machine.stdout("sh", &["-c", "read -r pid _ </var/lib/batch/pid; cat /proc/$pid/cgroup"]);
    assert!(groups.contains(".scope") && !groups.contains("notbefore-agent"), "{groups}");
    systemctl(&machine, &["restart", "notbefore-agent"]);
    assert!(!machine.holds(&format!("{process} ended /var/lib/batch")), "it has ended with the agent");
    // A program that cannot start is reported, and not counted as running.
    let refused =
        "mv /usr/bin/systemd-run /root; ! /usr/local/lib/notbefore/process start /var/lib/none sleep 1h 2>&1";
    assert!(machine.stdout("sh", &["-c", refused]).contains("systemd-run did not start it"));
    machine.stdout(process, &["ended", "/var/lib/none"]);
}
