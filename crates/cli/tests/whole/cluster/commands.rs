//! Commands of the exec driver while the lead changes: never two at once, and fences rise.
//!
//! The command records each run. When it begins, it looks for earlier runs for the same event and VM that still live. It
//! ignores SIGTERM, and ends only when the test lets it.

use std::fs;
use std::path::Path;
use std::process::Command;

use notbefore_wire::operator as wire;
use rustix::process::Signal;
use serde_json::json;

use super::faults::{Site, read};
use super::{eventually, in_own_thread};
use crate::support::write_program;

/// A run, as the command recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    pid: u32,
    fence: u64,
    attempt: u32,
    /// The service's process.
    owner: String,
    /// Earlier runs that lived when this one began.
    alive: Vec<u32>,
}

/// Writes the command. A run of a killed process has no end in the file, so the next run looks for processes.
fn write_command(dir: &Path) {
    let dir = dir.display();
    write_program(
        Path::new(&format!("{dir}/command")),
        &format!(
            r#"#!/bin/bash
trap '' TERM
exec 9>>{dir}/lock
flock 9
alive=
while read -r pid event vm _; do
  [ "$event $vm" = "$NOTBEFORE_EVENT_ID $NOTBEFORE_VM" ] && [ "$(tr '\0' ' ' <"/proc/$pid/cmdline")" = "/bin/bash {dir}/command " ] && alive="$alive $pid"
done <{dir}/runs 2>/dev/null
echo "$$ $NOTBEFORE_EVENT_ID $NOTBEFORE_VM $NOTBEFORE_FENCE $NOTBEFORE_ATTEMPT $NOTBEFORE_OWNER$alive" >>{dir}/runs
exec 9>&-
until [ -e {dir}/release ]; do sleep 0.1; done
echo "$$" >>{dir}/ends
"#
        ),
    );
    fs::write(format!("{dir}/runs"), "").unwrap();
    fs::write(format!("{dir}/ends"), "").unwrap();
}

fn runs(dir: &Path) -> Vec<Run> {
    let text = fs::read_to_string(dir.join("runs")).unwrap();
    let run = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        Run {
            pid: words[0].parse().unwrap(),
            fence: words[3].parse().unwrap(),
            attempt: words[4].parse().unwrap(),
            owner: words[5].to_owned(),
            alive: words[6..].iter().map(|word| word.parse().unwrap()).collect(),
        }
    };
    text.lines().map(run).collect()
}

/// The check of the test below can fail: two runs at once are noticed.
#[test]
fn command_records_earlier_runs_that_live() {
    let dir = tempfile::tempdir().unwrap();
    write_command(dir.path());
    let run = |vm: &str| {
        let mut command = Command::new(dir.path().join("command"));
        for (name, value) in
            [("EVENT_ID", "e"), ("VM", vm), ("FENCE", "7"), ("ATTEMPT", "1"), ("OWNER", "n0")]
        {
            command.env(format!("NOTBEFORE_{name}"), value);
        }
        let before = runs(dir.path()).len();
        let mut child = command.spawn().unwrap();
        let recorded = eventually("the run is recorded", || runs(dir.path()).get(before).cloned());
        assert_eq!(recorded.pid, child.id());
        (recorded.alive, move || {
            child.kill().unwrap();
            child.wait().unwrap();
        })
    };
    let (alive, end_first) = run("vm-0");
    assert!(alive.is_empty());
    let (alive, end_second) = run("vm-1");
    assert!(alive.is_empty(), "of another VM");
    let (alive, end_third) = run("vm-0");
    assert_eq!(alive, [runs(dir.path())[0].pid]);
    [end_first, end_second, end_third].into_iter().for_each(|mut end| end());
    let (alive, mut end) = run("vm-0");
    assert!(alive.is_empty());
    end();
}

#[test]
fn command_of_lost_leader_ends_before_its_successor_begins() {
    in_own_thread(|| {
        let dir = tempfile::tempdir().unwrap();
        write_command(dir.path());
        let command = dir.path().join("command");
        let flags = ["--driver", "exec", "--exec", command.to_str().unwrap(), "--exec-attempts", "10"];
        let mut site = Site::start(dir.path(), 1, 1, &flags);
        let node = site.nodes[0].address;
        let scope = "tenant/group/scope";
        let create = |method: &str, target: &str, body: serde_json::Value| {
            let body = body.to_string();
            let answer = eventually(target, || {
                node.request(method, target, "", &body).ok().filter(|one| one.status != 503)
            });
            assert!(answer.status < 300, "{answer:?}");
            answer
        };
        create("PUT", &format!("/v1/scopes/{scope}"), json!({"kind": "scale-set"}));
        let vm: wire::Vm =
            create("POST", "/v1/vms", json!({"scope": scope, "vm": {"name": "vm_0"}})).parsed();
        let operation: wire::Operation =
            create("POST", "/v1/events", json!({"cause": "host-failure", "vms": [vm.id]})).parsed();
        let event = operation.targets[0].event;

        type Begin = fn(&Site, usize);
        let faults: [(&str, Option<Begin>, Option<Begin>); 3] = [
            ("killed", None, None),
            (
                "stopped",
                Some(|site, node| site.nodes[node].signal(Signal::STOP)),
                Some(|site, node| site.nodes[node].signal(Signal::CONT)),
            ),
            (
                "cut off",
                Some(|site, node| site.network.cut_off(site.nodes[node].machine)),
                Some(|site, node| site.network.reconnect(site.nodes[node].machine)),
            ),
        ];
        for (count, (fault, begin, end)) in faults.into_iter().enumerate() {
            let before = eventually("the command runs", || runs(dir.path()).get(count).cloned());
            let leader = site.wait_for_leader();
            match begin {
                Some(begin) => begin(&site, leader.0),
                None => site.kill_and_start_node(leader.0),
            }
            site.wait_for_other_leader(&leader);
            let now = eventually(&format!("the command runs again after its leader was {fault}"), || {
                runs(dir.path()).get(count + 1).cloned()
            });
            assert!(now.alive.is_empty(), "{fault}: earlier runs lived when this one began: {now:?}");
            assert!(now.fence > before.fence, "{fault}: the fence does not rise: {before:?}, {now:?}");
            assert!(
                now.attempt > before.attempt && now.owner != before.owner,
                "{fault}: {before:?}, {now:?}"
            );
            if let Some(end) = end {
                end(&site, leader.0);
            }
            site.wait_until_ready();
        }
        assert_eq!(runs(dir.path()).len(), 4, "a former leader runs no command: {:?}", runs(dir.path()));
        fs::write(dir.path().join("release"), "").unwrap();
        let shown: wire::Event = eventually("the event ends", || {
            let shown: wire::Event = read(site.nodes[0].address, &format!("/v1/events/{event}"));
            (shown.status == wire::EventStatus::Completed).then_some(shown)
        });
        let ends = fs::read_to_string(dir.path().join("ends")).unwrap();
        let last = runs(dir.path()).last().unwrap().pid;
        assert_eq!(ends.trim(), last.to_string(), "only the last run came to its end: {shown:?}");
        drop(site);
    });
}
