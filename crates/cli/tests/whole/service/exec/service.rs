//! The whole service with the test's command.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::{shell_of, write_script};
use crate::support::http::EventStream;
use crate::support::pages::{blocks, root};
use crate::support::{Service, binary, processes_with, wait_for};

const FLEET: &str = "scopes:
  - name: web
    kind: standalone
    vms: [ { name: web, addresses: [127.1.20.1], host: h1 } ]
";

/// A service whose command is a script; `$here` in it is a directory that test and script share.
struct Trial {
    here: TempDir,
    service: Service,
}

impl Trial {
    fn new(script: &str, flags: &[&str]) -> Self {
        Self::new_in(tempfile::tempdir().unwrap(), script, flags)
    }

    fn new_in(here: TempDir, script: &str, flags: &[&str]) -> Self {
        let command = here.path().join("carry-out");
        let trial_script = with_dir(&here, script);
        write_script(&command, &trial_script);
        let mut all = vec!["--driver", "exec", "--exec", command.to_str().unwrap()];
        // A token in the service's environment is not for commands.
        let variables = [("NOTBEFORE_TOKEN", "not-for-commands"), ("NOTBEFORE_LOG", "info")];
        all.extend(if flags.contains(&"--exec-backoff") { &[][..] } else { &["--exec-backoff", "0s"] });
        all.extend(flags);
        let service = Service::start_with(&variables, &all);
        service.apply_fleet(FLEET);
        Self { here, service }
    }

    /// Content of a file that the script wrote.
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.here.path().join(name)).unwrap_or_default()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.here.path().join(name)
    }

    fn rewrite(&self, script: &str) {
        write_script(&self.path("carry-out"), &with_dir(&self.here, script));
    }

    /// Starts an event at once: no guest polls, so a user operation has no notice.
    fn begin(&self, verb: &str) -> String {
        let made = self.service.cli_json(&["vm", verb, "web"]);
        made["targets"][0]["event"].as_str().unwrap().to_owned()
    }

    fn show(&self, event: &str) -> Value {
        self.service.cli_json(&["event", "show", event])
    }

    fn ended(&self, event: &str) -> Value {
        wait_for("the event to end", || Some(self.show(event)).filter(|event| event["status"] == "Completed"))
    }

    /// Waits until the command of the VM has this state; returns the event.
    fn wait_for_state(&self, event: &str, state: &str) -> Value {
        wait_for(&format!("the command to be {state}"), || {
            let command = self.show(event)["exec"]["commands"][0].clone();
            Some(command).filter(|command| command["state"] == state)
        })
    }
}

fn with_dir(here: &TempDir, script: &str) -> String {
    format!("here={}\n{script}", here.path().display())
}

fn facts(event: &Value) -> Vec<&str> {
    event["trail"].as_array().unwrap().iter().map(|fact| fact["type"].as_str().unwrap()).collect()
}

#[test]
fn command_completes_event_and_sets_host() {
    let trial =
        Trial::new("env > $here/env; echo moving $NOTBEFORE_VM; echo host=h9 > \"$NOTBEFORE_RESULT\"", &[]);
    let event = trial.begin("redeploy");
    let shown = trial.ended(&event);
    assert_eq!(facts(&shown), ["EventScheduled", "EventStarted", "EventCompleted"], "{shown}");
    assert_eq!(trial.service.cli_json(&["vm", "show", "web"])["host"], "h9");
    let environment = trial.read("env");
    for line in ["NOTBEFORE_EVENT_TYPE=Redeploy", "NOTBEFORE_CAUSE=user-redeploy", "NOTBEFORE_HOST=h1"] {
        assert!(environment.contains(line), "{line} is missing in {environment}");
    }
    assert!(!environment.contains("not-for-commands"), "{environment}");
    let log = trial.service.log();
    let line = log.lines().find(|line| line.contains("moving web")).unwrap_or_else(|| panic!("{log}"));
    for part in ["notbefore::exec", &format!("event={event}"), "vm=web", "attempt=1", "stream=\"stdout\""] {
        assert!(line.contains(part), "{part} is missing in {line}");
    }
    assert!(log.contains("carry-out is done"), "{log}");
}

#[test]
fn failed_command_is_retried() {
    let trial = Trial::new(
        "echo $NOTBEFORE_ATTEMPT >> $here/attempts
         [ $NOTBEFORE_ATTEMPT = 3 ] || { echo \"not yet\" >&2; exit 7; }",
        &[],
    );
    let event = trial.begin("restart");
    let shown = trial.ended(&event);
    assert_eq!(trial.read("attempts"), "1\n2\n3\n");
    assert_eq!(facts(&shown), ["EventScheduled", "EventStarted", "EventCompleted"]);
    let log = trial.service.log();
    let failed: Vec<_> = log.lines().filter(|line| line.contains("exit code 7: not yet")).collect();
    assert!(failed.len() == 2 && failed[1].contains("attempt=2"), "{log}");
}

#[test]
fn used_up_attempts_wait_for_retry() {
    let trial =
        Trial::new("[ -e $here/fixed ] || { echo 'no such domain' >&2; exit 1; }", &["--exec-attempts", "2"]);
    let event = trial.begin("restart");
    let failed = trial.wait_for_state(&event, "failed");
    assert_eq!(failed["attempt"], 2);
    let text = trial.service.cli(&["event", "show", &event]);
    assert!(text.contains("DriverFailed") && text.contains("no such domain"), "{text}");
    assert_eq!(trial.show(&event)["status"], "Started");
    let list = trial.service.cli(&["event", "list"]);
    assert!(list.contains("Started, failed"), "{list}");
    let status = trial.service.cli_json(&["status"]);
    assert_eq!(status["events"]["failed"], 1, "{status}");
    let [listed] = status["failed"].as_array().unwrap().as_slice() else { panic!("{status}") };
    assert_eq!(listed["event"], *event);
    assert!(listed["why"].as_str().unwrap().contains("no such domain"), "{status}");
    let metrics = trial.service.operator_request("GET", "/metrics", "", "").body;
    assert!(metrics.contains("notbefore_commands{state=\"failed\"} 1\n"), "{metrics}");
    std::fs::write(trial.path("fixed"), "").unwrap();
    trial.service.cli(&["event", "retry", &event]);
    let shown = trial.ended(&event);
    assert_eq!(facts(&shown)[2..], ["DriverFailed", "DriverRetried", "EventCompleted"]);
}

#[test]
fn failure_reason_is_shown_only_to_operators_on_root() {
    let trial = Trial::new("echo 'no such domain' >&2; exit 1", &["--exec-attempts", "2"]);
    let service = &trial.service;
    let token = |name: &str, grant: &str| {
        let made = service.cli_json(&["token", "create", name, "--grant", grant]);
        made["secret"].as_str().unwrap().to_owned()
    };
    let tokens =
        [token("owner", "tenant:default"), token("looker", "viewer:/"), token("local", "operator:default")];
    let event = trial.begin("restart");
    trial.wait_for_state(&event, "failed");
    let root = std::fs::read_to_string(service.data().join("operator.token")).unwrap();
    let stream = |token: &str| {
        let mut stream = EventStream::open(service, token, "Last-Event-ID: 1\r\n");
        let first = loop {
            let line = stream.line_with("data: ");
            if line.contains("DriverAttemptFailed") {
                break line;
            }
        };
        format!("{first}{}", stream.line_with("data: "))
    };
    let secret = |text: &str| text.contains("no such domain") || text.contains("carry-out");
    let get = |token: &str, target: &str| service.request_with(token, "GET", target, "", "").body;
    let live = |token: &str| {
        let event = get(token, &format!("/v1/events/{event}"));
        event + &get(token, "/v1/events") + &get(token, "/v1/status") + &stream(token)
    };
    let ids = |token: &str| {
        let shown: Value = serde_json::from_str(&get(token, &format!("/v1/events/{event}"))).unwrap();
        shown["trail"].as_array().unwrap().iter().map(|fact| fact["id"].clone()).collect::<Vec<_>>()
    };
    for token in &tokens {
        assert_eq!(ids(token), ids(&root));
        let shown = live(token);
        assert!(!secret(&shown), "{shown}");
        for said in
            ["\"state\":\"failed\",\"attempt\":2}", "\"DriverFailed\"", "\"attempt\":1", "\"attempts\":2"]
        {
            assert!(shown.contains(said), "{said} is missing in {shown}");
        }
    }
    let shown = live(&root) + &get(&root, "/v1/audit");
    assert_eq!(shown.matches("no such domain").count(), 8, "three commands and five facts: {shown}");
    service.cli(&["event", "complete", &event]);
    trial.ended(&event);
    let ended = |token: &str| get(token, &format!("/v1/events/{event}")) + &get(token, "/v1/history");
    for token in &tokens {
        let shown = ended(token);
        assert!(!secret(&shown) && shown.contains("\"DriverFailed\""), "{shown}");
    }
    assert_eq!(ended(&root).matches("no such domain").count(), 3, "two commands and a fact");
}

#[test]
fn hanging_command_is_killed_with_children() {
    let marker = format!("hangs-{}", std::process::id());
    let script = format!("sh -c 'sleep 600; : {marker}' & wait");
    let trial = Trial::new(&script, &["--exec-timeout", "1s", "--exec-attempts", "1"]);
    let event = trial.begin("restart");
    let failed = trial.wait_for_state(&event, "failed");
    let why = failed["why"].as_str().unwrap();
    assert!(why.contains("not done within 1s"), "{why}");
    assert!(trial.service.log().contains("raise --exec-timeout"));
    assert_eq!(processes_with(&marker), Vec::<u32>::new());
}

#[test]
fn flood_of_output_does_not_fill_log() {
    let trial =
        Trial::new("yes again and again | head -c 30000000; yes | tr -d '\\n' | head -c 3000000", &[]);
    let event = trial.begin("restart");
    trial.ended(&event);
    let log = trial.service.log();
    assert_eq!(log.matches("further output was dropped").count(), 1);
    assert!(log.len() < 500_000, "{} bytes of log", log.len());
}

#[test]
fn missing_command_is_reported_and_retried() {
    let trial = Trial::new("rm $here/carry-out; exit 1", &["--exec-attempts", "2"]);
    let event = trial.begin("restart");
    let failed = trial.wait_for_state(&event, "failed");
    let why = failed["why"].as_str().unwrap();
    assert!(why.contains("cannot be run") && why.contains("No such file"), "{why}");
    trial.rewrite("exit 0");
    trial.service.cli(&["event", "retry", &event]);
    trial.ended(&event);
}

#[test]
fn commands_of_killed_service_end_and_are_retried() {
    let marker = format!("outlives-{}", std::process::id());
    let forks_away = format!(
        "echo $NOTBEFORE_ATTEMPT $NOTBEFORE_FENCE >> $here/runs
         [ $NOTBEFORE_ATTEMPT = 1 ] || exit 0
         setsid sh -c 'trap \"\" TERM HUP INT; (setsid sh -c \"sleep 600; : {marker}\" &); sleep 600; : {marker}' \\
           >/dev/null 2>&1 </dev/null &
         sh -c 'sleep 600; : {marker}'"
    );
    let mut trial = Trial::new(&forks_away, &[]);
    let event = trial.begin("restart");
    // The script, and three children that it started in different ways.
    wait_for("all to run", || (processes_with(&marker).len() >= 3).then_some(()));
    trial.service.kill();
    let Trial { here, service } = trial;
    let script = shell_of(&here.path().join("carry-out"));
    wait_for("all to be gone", || {
        (processes_with(&marker).is_empty() && processes_with(&script).is_empty()).then_some(())
    });
    let trial = Trial { here, service: service.restart() };
    let shown = trial.ended(&event);
    assert_eq!(trial.read("runs"), "1 1\n2 2\n", "a further attempt, with a higher fence");
    assert!(facts(&shown).contains(&"DriverTookOver"), "{shown}");
}

/// The keeper of the running command.
fn keeper_of(trial: &Trial) -> Pid {
    let keepers = processes_with("exec-keeper");
    let command = processes_with(trial.path("carry-out").to_str().unwrap());
    let keeper = keepers.into_iter().find(|keeper| command.contains(keeper));
    Pid::from_raw(i32::try_from(keeper.expect("a keeper runs")).unwrap()).unwrap()
}

/// Kills the keeper, then the service before it can react.
fn kill_with_keeper(trial: &mut Trial) {
    let service = Pid::from_raw(i32::try_from(trial.service.pid()).unwrap()).unwrap();
    kill_process(service, Signal::STOP).unwrap();
    kill_process(keeper_of(trial), Signal::KILL).unwrap();
    trial.service.kill();
}

#[test]
fn keeper_survives_terminal_signals() {
    let script =
        ": > $here/begun; while ! [ -e $here/go ]; do sleep 0.02; done; echo host=h9 > $NOTBEFORE_RESULT";
    let trial = Trial::new(script, &["--exec-attempts", "1"]);
    let event = trial.begin("redeploy");
    wait_for("it to run", || trial.path("begun").exists().then_some(()));
    let keeper = keeper_of(&trial);
    let signals = [
        Signal::HUP,
        Signal::INT,
        Signal::QUIT,
        Signal::USR1,
        Signal::USR2,
        Signal::PIPE,
        Signal::ALARM,
        Signal::IO,
        Signal::VTALARM,
        Signal::PROF,
        Signal::XCPU,
        Signal::XFSZ,
        Signal::POWER,
        Signal::TSTP,
        Signal::TTIN,
        Signal::TTOU,
    ];
    for signal in signals {
        kill_process(keeper, signal).unwrap();
    }
    let kept = std::fs::read_dir(trial.service.data().join("exec")).unwrap();
    for file in kept.map(|entry| entry.unwrap()) {
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600, "{file:?}");
    }
    std::fs::write(trial.path("go"), "").unwrap();
    let shown = trial.ended(&event);
    assert_eq!(facts(&shown), ["EventScheduled", "EventStarted", "EventCompleted"], "{shown}");
    assert_eq!(trial.service.cli_json(&["vm", "show", "web"])["host"], "h9");
}

#[test]
fn command_of_killed_keeper_ends_before_retry() {
    let marker = format!("orphan-{}", std::process::id());
    // The lock is free when the last process that inherited it has ended.
    let script = format!(
        "exec 9> $here/lock
         flock -n 9 && echo $NOTBEFORE_ATTEMPT $NOTBEFORE_FENCE >> $here/runs || echo overlap >> $here/runs
         [ $NOTBEFORE_ATTEMPT = 1 ] || exit 0
         sh -c 'trap \"\" TERM HUP INT; : > '$here'/begun; sleep 600; : {marker}'"
    );
    let mut trial = Trial::new(&script, &[]);
    let event = trial.begin("restart");
    wait_for("it to run", || trial.path("begun").exists().then_some(()));
    kill_with_keeper(&mut trial);
    assert!(!processes_with(&marker).is_empty(), "the command goes on without a keeper");
    let Trial { here, service } = trial;
    let trial = Trial { here, service: service.restart() };
    trial.ended(&event);
    assert_eq!(trial.read("runs"), "1 1\n2 2\n");
    assert_eq!(processes_with(&marker), Vec::<u32>::new());
}

#[test]
fn unkillable_command_fails_driver_and_blocks_retries() {
    // The command changes its user, and the next service has no right to kill it.
    let script = "echo $NOTBEFORE_ATTEMPT >> $here/runs
        [ $NOTBEFORE_ATTEMPT = 1 ] || exit 0
        echo $$ > $here/pid.new; mv $here/pid.new $here/pid
        exec setpriv --reuid 65534 --clear-groups sleep 600";
    let mut trial = Trial::new(script, &[]);
    let event = trial.begin("restart");
    let pid = wait_for("it to run", || trial.read("pid").trim().parse().ok());
    wait_for("it to be another user's", || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.contains("Uid:\t65534").then_some(())
    });
    kill_with_keeper(&mut trial);
    let Trial { here, service } = trial;
    let through = ["setpriv", "--bounding-set=-kill", "--inh-caps=-all"];
    let trial = Trial { here, service: service.restart_through(&through) };
    let failed = trial.wait_for_state(&event, "failed");
    let why = failed["why"].as_str().unwrap();
    assert!(why.contains(&format!("cannot be ended: process {pid} (Operation not permitted")), "{why}");
    assert!(facts(&trial.show(&event)).contains(&"DriverFailed"));
    assert_eq!(trial.read("runs"), "1\n", "nothing runs beside it");
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    trial.service.cli(&["event", "retry", &event]);
    trial.ended(&event);
    assert_eq!(trial.read("runs"), "1\n3\n");
}

#[test]
fn stopping_service_ends_its_commands_first() {
    let script = "trap 'echo asked >> $here/asked; exit 1' TERM
        echo $NOTBEFORE_ATTEMPT >> $here/runs
        [ $NOTBEFORE_ATTEMPT = 1 ] || exit 0
        while :; do sleep 0.05; done";
    let mut trial = Trial::new(script, &[]);
    let event = trial.begin("restart");
    wait_for("it to run", || (trial.read("runs") == "1\n").then_some(()));
    let command = shell_of(&trial.path("carry-out"));
    assert!(trial.service.terminate().success());
    assert_eq!(processes_with(&command), Vec::<u32>::new());
    assert_eq!(trial.read("asked"), "asked\n");
    let Trial { here, service } = trial;
    let trial = Trial { here, service: service.restart() };
    let shown = trial.ended(&event);
    assert_eq!(trial.read("runs"), "1\n2\n");
    assert!(!facts(&shown).contains(&"DriverAttemptFailed"), "it was cut off and did not fail: {shown}");
}

#[test]
fn completing_an_event_by_hand_stops_its_command() {
    let trial = Trial::new("echo > $here/begun; sleep 600", &[]);
    let event = trial.begin("restart");
    wait_for("it to run", || trial.path("begun").exists().then_some(()));
    trial.service.cli(&["event", "complete", &event]);
    let shown = trial.ended(&event);
    assert_eq!(shown["exec"]["commands"][0]["state"], "stopped", "it does not run any more: {shown}");
    let command = shell_of(&trial.path("carry-out"));
    wait_for("the command to be gone", || processes_with(&command).is_empty().then_some(()));
    wait_for("the log line", || trial.service.log().contains("carry-out was stopped").then_some(()));
}

#[test]
fn invalid_exec_config_refuses_start() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("plain");
    std::fs::write(&file, "").unwrap();
    let (plain, nowhere) = (file.to_str().unwrap(), dir.path().join("nowhere"));
    let cases: [(&[&str], &str); 8] = [
        (&["--exec-host", "/bin/true"], "--driver exec"),
        (&["--driver", "exec", "--exec", "/bin/true", "--exec-host", plain], "--exec-host"),
        (&["--driver", "exec"], "--exec"),
        (&["--exec", "/bin/true"], "--driver exec"),
        (&["--driver", "manual", "--exec", "/bin/true"], "--driver exec"),
        (&["--driver", "exec", "--exec", plain], "chmod +x"),
        (&["--driver", "exec", "--exec", nowhere.to_str().unwrap()], "No such file"),
        (&["--driver", "exec", "--exec", "/bin/true", "--exec-env", "NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE"),
    ];
    for (flags, expected) in cases {
        let data = dir.path().join("data");
        let output =
            Command::new(binary()).arg("serve").arg("--data").arg(&data).args(flags).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(expected), "{flags:?}: {error}");
        assert!(!data.exists(), "{flags:?} leaves nothing behind");
    }
}

const HOSTS: &str = "scopes:
  - name: shop
    kind: availability-set
    vms:
      - { name: web-0, addresses: [127.1.20.2], host: h7, update_domain: 0 }
      - { name: web-1, addresses: [127.1.20.3], host: h7, update_domain: 1 }
  - name: db
    kind: standalone
    vms: [ { name: db, addresses: [127.1.20.4], host: h7 } ]
";

/// A service with a command for hosts, and a host with three VMs in two scopes. Both commands write a line to `$here/log`.
fn with_host_command(flags: &[&str], host_script: &str) -> Trial {
    let here = tempfile::tempdir().unwrap();
    let command = here.path().join("carry-out-host");
    write_script(&command, &with_dir(&here, host_script));
    let mut all = vec!["--exec-host", command.to_str().unwrap()];
    all.extend(flags);
    let trial = Trial::new_in(here, "echo vm $NOTBEFORE_VM >> $here/log", &all);
    trial.service.apply_fleet(HOSTS);
    trial
}

impl Trial {
    fn maintain(&self) -> String {
        let made = self.service.cli_json(&["host", "maintain", "h7", "--type", "reboot", "--yes"]);
        let id = made[0]["id"].as_str().unwrap().to_owned();
        self.service.cli(&["operation", "start", &id]);
        id
    }
}

#[test]
fn host_command_runs_once_after_the_vms_and_before_their_events_end() {
    let script = "sort $NOTBEFORE_VMS >> $here/log
        echo \"$NOTBEFORE_EVENT_TYPE $NOTBEFORE_HOST $NOTBEFORE_OPERATION_ID\" >> $here/log
        while [ ! -e $here/booted ]; do sleep 0.05; done";
    let trial = with_host_command(&[], script);
    let id = trial.maintain();
    let running = wait_for("the command of the host", || {
        let operation = trial.service.cli_json(&["operation", "show", &id]);
        Some(operation).filter(|one| one["host_command"]["state"] == "running")
    });
    assert_eq!(running["progress"]["started"], 3, "{running}");
    let shown = trial.service.cli(&["operation", "show", &id]);
    assert!(shown.contains("host command") && shown.contains("running, attempt 1"), "{shown}");
    let event = running["targets"][0]["event"].as_str().unwrap();
    let shown = trial.show(event);
    assert!(shown["waits_for"].as_str().unwrap().contains("the command for host h7"), "{shown}");
    std::fs::write(trial.path("booted"), "").unwrap();
    trial.service.cli(&["operation", "wait", &id, "--timeout", "60s"]);
    let log = trial.read("log");
    let mut lines: Vec<&str> = log.lines().collect();
    lines[..3].sort_unstable();
    let reboot = format!("Reboot h7 {id}");
    let expected = [
        "vm db",
        "vm web-0",
        "vm web-1",
        "default/default/db/db",
        "default/default/shop/web-0",
        "default/default/shop/web-1",
        &reboot,
    ];
    assert_eq!(lines, expected);
}

#[test]
fn failed_host_command_is_shown_and_retried() {
    let script = "[ -e $here/fixed ] || { echo 'no power' >&2; exit 3; }";
    let trial = with_host_command(&["--exec-attempts", "1"], script);
    let id = trial.maintain();
    let waited = trial.service.run(&["operation", "wait", &id, "--timeout", "60s"]);
    let said = String::from_utf8_lossy(&waited.stderr).into_owned();
    assert_eq!(waited.status.code(), Some(1), "{said}");
    assert!(said.contains("the command for the host failed at attempt 1: exit code 3: no power"), "{said}");
    assert!(said.contains("use 'notbefore operation retry OPERATION'"), "{said}");
    // A tenant with a VM on the host sees the failure, and neither its reason nor the host.
    let tenant =
        trial.service.cli_json(&["token", "create", "owner", "--grant", "tenant:default/default/db"]);
    let tenant = tenant["secret"].as_str().unwrap();
    let mut stream = EventStream::open(&trial.service, tenant, "Last-Event-ID: 1\r\n");
    let fact = loop {
        let line = stream.line_with("data: ");
        if line.contains("HostCommandFailed") {
            break line;
        }
    };
    let status = trial.service.request_with(tenant, "GET", "/v1/status", "", "").body;
    for shown in [&fact, &status] {
        assert!(!shown.contains("h7") && !shown.contains("no power"), "{shown}");
    }
    let status = trial.service.cli(&["status"]);
    assert!(status.contains("host-reboot of host h7: exit code 3: no power"), "{status}");
    let metrics = trial.service.operator_request("GET", "/metrics", "", "").body;
    assert!(metrics.contains("notbefore_commands{state=\"failed\"} 1"), "{metrics}");
    let shown = trial.service.cli(&["operation", "show", &id]);
    assert!(shown.contains("failed, attempt 1: exit code 3: no power"), "{shown}");
    std::fs::write(trial.path("fixed"), "").unwrap();
    trial.service.cli(&["operation", "retry", &id]);
    trial.service.cli(&["operation", "wait", &id, "--timeout", "60s"]);
    let shown = trial.service.cli_json(&["operation", "show", &id]);
    assert_eq!(
        (&shown["state"], &shown["host_command"]["state"]),
        (&"closed".into(), &"done".into()),
        "{shown}"
    );
    let audit = trial.service.cli(&["audit"]);
    assert!(audit.contains("HostCommandFailed") && audit.contains("HostCommandRetried"), "{audit}");
}

#[test]
fn completed_operation_is_closed_and_stops_the_command_of_its_host() {
    let trial = with_host_command(&[], "touch $here/begun; sleep 600");
    let id = trial.maintain();
    wait_for("the command of the host", || trial.path("begun").exists().then_some(()));
    let shown = trial.service.cli_json(&["operation", "complete", &id]);
    assert_eq!(shown[0]["state"], "closed", "{shown}");
    assert_eq!(shown[0]["host_command"]["state"], "stopped", "{shown}");
    assert_eq!(shown[0].get("waits_for"), None, "{shown}");
    let command = shell_of(&trial.path("carry-out-host"));
    wait_for("the command to be gone", || processes_with(&command).is_empty().then_some(()));
}

#[test]
fn loop_of_the_guide_stops_at_the_first_host_that_fails() {
    let page = std::fs::read_to_string(root().join("docs/guide/several-hosts.md")).unwrap();
    let script = blocks(&page, "sh").into_iter().find(|script| script.contains("for host in")).unwrap();
    let trial = Trial::new("test $NOTBEFORE_HOST != hv02", &["--exec-attempts", "1", "--notice", "0.0001"]);
    let vms = "vms: [ { name: a, host: hv01 }, { name: b, host: hv02 }, { name: c, host: hv03 } ]";
    trial.service.apply_fleet(&format!("scopes:\n  - {{ name: many, kind: availability-set, {vms} }}\n"));

    let programs = std::path::Path::new(binary()).parent().unwrap().display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).env("PATH", path).env("NOTBEFORE_DATA", trial.service.data());
    let done = shell.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("the command for b failed"), "{said}");
    let open = trial.service.cli_json(&["operation", "list"]);
    assert_eq!((open.as_array().unwrap().len(), &open[0]["host"]), (1, &"hv02".into()), "{open}");
    let ended = trial.service.cli_json(&["event", "history"]);
    assert_eq!((ended.as_array().unwrap().len(), &ended[0]["resources"][0]["host"]), (1, &"hv01".into()));
}
