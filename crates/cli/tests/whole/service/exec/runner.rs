//! Single runs of the command runner with the real keeper, without a service.

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use notbefore_core::{Cause, Ending, EventId, EventType, OperationId, VmId};
use notbefore_engine::{CommandId, CommandTarget, DriverRun, RunTarget};
use notbefore_service::driver::{Driver, Report};
use notbefore_service::exec::{Exec, ExecConfig};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use uuid::Uuid;

use super::{shell_of, write_script};
use crate::support::{PATIENCE, binary, processes_with, wait_for};

/// A runner with the test's script.
struct Trial {
    dir: TempDir,
    runtime: Runtime,
    config: ExecConfig,
}

impl Trial {
    fn new(script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let command = dir.path().join("carry-out");
        write_script(&command, script);
        let mut config = ExecConfig::new(command);
        config.keeper = binary().into();
        config.grace = Duration::from_millis(200);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self { dir, runtime, config }
    }

    fn exec(&self) -> Exec {
        let results = self.path("results");
        self.runtime.block_on(Exec::prepare(self.config.clone(), &results, None)).unwrap()
    }

    /// Runs the script once and waits for its end.
    fn run(&self) -> Ending {
        let exec = self.exec();
        let (send, ended) = mpsc::channel();
        let _in = self.runtime.enter();
        exec.run(test_run(1), report(1, &send));
        let (_, ending) = ended.recv_timeout(PATIENCE).expect("the run ends");
        let left: Vec<_> = std::fs::read_dir(self.path("results")).unwrap().collect();
        assert!(left.is_empty(), "results are removed: {left:?}");
        ending
    }

    /// Runs the script once; returns the reason of its failure.
    fn failure(&self) -> String {
        match self.run() {
            Ending::Failed { why } => why,
            other @ (Ending::Succeeded { .. } | Ending::Blocked { .. }) => {
                panic!("it should have failed: {other:?}")
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

const DONE: Ending = Ending::Succeeded { host: None };

fn id(event: u128) -> CommandId {
    let (event, vm) = (EventId(Uuid::from_u128(event)), VmId(Uuid::from_u128(event + 2)));
    CommandId { target: CommandTarget::Vm { event, vm }, fence: 6, attempt: 5 }
}

pub(super) fn report(event: u128, to: &mpsc::Sender<(u128, Ending)>) -> Report {
    let to = to.clone();
    Report::new(id(event), move |report| to.send((event, report.ending)).unwrap())
}

pub(super) fn test_run(event: u128) -> DriverRun {
    DriverRun {
        id: id(event),
        operation: OperationId(Uuid::from_u128(2)),
        event_type: EventType::Redeploy,
        cause: Cause::HostRedeploy,
        duration_s: -1,
        owner: "node".to_owned(),
        target: RunTarget::Vm {
            event: EventId(Uuid::from_u128(event)),
            vm: VmId(Uuid::from_u128(event + 2)),
            scope: "shop/web".parse().unwrap(),
            name: "web-0".parse().unwrap(),
            host: Some("h1".to_owned()),
            target_host: Some("h2".to_owned()),
            update_domain: 4,
        },
    }
}

/// The same for a host, with two VMs.
fn host_run(operation: u128) -> DriverRun {
    let operation = OperationId(Uuid::from_u128(operation));
    let run = test_run(1);
    let vms = vec!["default/shop/web/web-0".to_owned(), "default/shop/web/web-1".to_owned()];
    DriverRun {
        id: CommandId { target: CommandTarget::Host(operation), ..run.id },
        operation,
        target: RunTarget::Host { host: "h1".to_owned(), vms },
        ..run
    }
}

#[test]
fn exit_code_0_completes_and_result_sets_host() {
    assert_eq!(Trial::new("exit 0").run(), DONE);
    let trial = Trial::new("echo host=h9 > \"$NOTBEFORE_RESULT\"");
    assert_eq!(trial.run(), Ending::Succeeded { host: Some("h9".to_owned()) });
}

#[test]
fn command_environment_contains_only_event_variables() {
    let mut trial = Trial::new("");
    let seen = trial.path("seen");
    write_script(&trial.config.command, &format!("env > {}; pwd >> {0}", seen.display()));
    trial.config.extra_environment = vec![("LIBVIRT_DEFAULT_URI".into(), "test:///default".into())];
    assert_eq!(trial.run(), DONE);
    let seen = std::fs::read_to_string(seen).unwrap();
    for line in [
        "LIBVIRT_DEFAULT_URI=test:///default",
        "NOTBEFORE_EVENT_ID=00000000-0000-0000-0000-000000000001",
        "NOTBEFORE_EVENT_TYPE=Redeploy",
        "NOTBEFORE_CAUSE=host-redeploy",
        "NOTBEFORE_SUBSCRIPTION=default",
        "NOTBEFORE_GROUP=shop",
        "NOTBEFORE_SCOPE=web",
        "NOTBEFORE_VM=web-0",
        "NOTBEFORE_HOST=h1",
        "NOTBEFORE_TARGET_HOST=h2",
        "NOTBEFORE_UPDATE_DOMAIN=4",
        "NOTBEFORE_ATTEMPT=5",
        "NOTBEFORE_FENCE=6",
        "NOTBEFORE_OWNER=node",
        "/",
    ] {
        assert!(seen.lines().any(|found| found == line), "{line} is missing in {seen}");
    }
    // Cargo's variables are in the environment of this test; they represent the operator's secrets.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!seen.contains("CARGO"), "{seen}");
}

#[test]
fn failure_reports_exit_and_last_output() {
    let trial = Trial::new("echo one >&2; echo 'no such \u{1b}domain' >&2; echo fine; exit 3");
    let reason = trial.failure();
    assert!(reason.starts_with("exit code 3: no such \\u{1b}domain (/"), "{reason}");
    assert!(Trial::new("kill -SEGV $$").failure().contains("killed by signal 11 (SIGSEGV"));
}

#[test]
fn command_that_kills_its_keeper_fails() {
    let reason = Trial::new("kill -9 $PPID; exit 0").failure();
    assert!(reason.starts_with("unknown exit status"), "{reason}");
}

#[test]
fn killed_keeper_children_are_ended() {
    // A child in the group of a command that ends; a child in its own session below a command that keeps running.
    for (marker, end) in [("group", "exit 0"), ("session", "sleep 600")] {
        let marker = format!("{marker}-{}", std::process::id());
        let leave = if end == "exit 0" { "sh" } else { "setsid sh" };
        let trial = Trial::new("");
        let up = trial.path("up").display().to_string();
        let script = format!(
            "{leave} -c ': >{up}; sleep 600; : {marker}' >/dev/null 2>&1 &
             while ! [ -e {up} ]; do sleep 0.02; done; kill -9 $PPID; {end}"
        );
        write_script(&trial.config.command, &script);
        assert!(trial.failure().starts_with("unknown exit status"));
        assert_eq!(processes_with(&marker), Vec::<u32>::new());
    }
}

#[test]
fn command_has_default_signal_handlers() {
    let trial = Trial::new("");
    let seen = trial.path("seen");
    write_script(&trial.config.command, &format!("grep SigIgn: /proc/self/status > {}", seen.display()));
    assert_eq!(trial.run(), DONE);
    let seen = std::fs::read_to_string(seen).unwrap();
    let ignored = u64::from_str_radix(seen.trim_start_matches("SigIgn:").trim(), 16).unwrap();
    assert_eq!(ignored & 0x7fff_ffff, 0, "{seen}");
}

#[test]
fn missing_command_is_reported() {
    let trial = Trial::new("exit 0");
    std::fs::remove_file(&trial.config.command).unwrap();
    let reason = trial.failure();
    assert!(reason.contains("No such file or directory") && reason.contains("restore it"), "{reason}");
    std::fs::write(&trial.config.command, "x").unwrap();
    assert!(trial.failure().contains("make it executable"));
    write_script(&trial.config.command, "exit 0");
    assert_eq!(trial.run(), DONE, "and runs again when it is back");
}

#[test]
fn invalid_results_fail() {
    for (script, expected) in [
        ("echo h9 > \"$NOTBEFORE_RESULT\"", "unknown line \"h9\""),
        ("head -c 100000 /dev/zero > \"$NOTBEFORE_RESULT\"", "more than 4 KiB"),
        ("mkfifo \"$NOTBEFORE_RESULT\"", "not a regular file"),
        ("mkdir -p \"$NOTBEFORE_RESULT/a\"", "not a regular file"),
        ("ln -s /etc/passwd \"$NOTBEFORE_RESULT\"", "not a regular file"),
    ] {
        let reason = Trial::new(script).failure();
        assert!(reason.contains("exit code 0, but") && reason.contains(expected), "{script}: {reason}");
    }
}

/// The failure of a hanging command, with a manual clock. The timeout passes when the command creates the file `up`,
/// the grace period when it creates `asked`.
fn failure_of_hanging_command(script: &str, goes_on: bool) -> String {
    let mut trial = Trial::new("");
    let here = format!("here={}\n", trial.dir.path().display());
    write_script(&trial.config.command, &(here + script));
    trial.config.timeout = Duration::from_mins(5);
    trial.config.grace = Duration::from_mins(1);
    trial.runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let exec = trial.exec();
    // A paused clock does not advance while a blocking task runs.
    let made = |name: &str| {
        let (name, path) = (name.to_owned(), trial.path(name));
        async move {
            tokio::task::spawn_blocking(move || wait_for(&name, || path.exists().then_some(())))
                .await
                .unwrap();
        }
    };
    let ending = trial.runtime.block_on(async {
        let (send, ended) = mpsc::channel();
        exec.run(test_run(1), report(1, &send));
        made("up").await;
        tokio::time::advance(trial.config.timeout).await;
        if goes_on {
            made("asked").await;
            tokio::time::advance(trial.config.grace).await;
        }
        tokio::task::spawn_blocking(move || ended.recv_timeout(PATIENCE).unwrap().1).await.unwrap()
    });
    match ending {
        Ending::Failed { why } => why,
        other @ (Ending::Succeeded { .. } | Ending::Blocked { .. }) => {
            panic!("it should have failed: {other:?}")
        }
    }
}

#[test]
fn hanging_command_gets_sigterm_then_sigkill() {
    // It records the signal and keeps running; so do its children.
    let ignores_signals =
        "trap 'echo asked >&2; : >$here/asked' TERM; : >$here/up; sleep 600 & while :; do sleep 0.05; done";
    let reason = failure_of_hanging_command(ignores_signals, true);
    assert!(reason.contains("not done within 5m"), "{reason}");
    assert!(reason.contains("--exec-timeout: asked ("), "{reason}");
    // A command that handles SIGTERM has time to clean up. It leaves no child to wait for: a child that is just being
    // started may miss the signal.
    let obeys = "trap 'sleep 0.1; echo tidied >&2; exit 0' TERM; : >$here/up; while :; do sleep 0.05; done";
    let reason = failure_of_hanging_command(obeys, false);
    assert!(reason.contains(": tidied ("), "{reason}");
}

#[test]
fn large_output_is_bounded_and_tail_kept() {
    let trial =
        Trial::new("yes flood | head -c 6000000; yes flood | head -c 6000000 >&2; echo out >&2; exit 4");
    let reason = trial.failure();
    assert!(reason.starts_with("exit code 4: out ("), "{reason}");
}

#[test]
fn background_processes_end_with_command() {
    // A daemon: forked twice, own session and group, all signals ignored, output redirected.
    let marker = format!("left-{}", std::process::id());
    let daemon = format!(
        "setsid sh -c 'trap \"\" TERM HUP INT; (sh -c \"sleep 600; : {marker}\" &) ; sleep 600; : {marker}' \
         >/dev/null 2>&1 & sleep 0.2"
    );
    let trial = Trial::new(&daemon);
    assert_eq!(trial.run(), DONE);
    assert_eq!(processes_with(&marker), Vec::<u32>::new(), "nothing is left when the run is over");
}

#[test]
fn concurrent_commands_are_limited_and_waiting_ones_stoppable() {
    let mut trial = Trial::new("");
    let (log, go) = (trial.path("log"), trial.path("go"));
    write_script(
        &trial.config.command,
        &format!(
            "echo $NOTBEFORE_EVENT_ID >> {}; while ! [ -e {} ]; do sleep 0.02; done",
            log.display(),
            go.display()
        ),
    );
    trial.config.concurrency = 2;
    let exec = trial.exec();
    let (send, endings) = mpsc::channel();
    let _in = trial.runtime.enter();
    for event in 1..=5 {
        exec.run(test_run(event), report(event, &send));
    }
    let begun = || -> Vec<u128> {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.lines().map(|id| id.parse::<Uuid>().unwrap().as_u128()).collect()
    };
    let running = wait_for("two to begin", || Some(begun()).filter(|begun| begun.len() == 2));
    let waiting = (1..=5).find(|event| !running.contains(event)).unwrap();
    // Stopping a waiting command removes it; stopping a running one ends it, and the next one starts.
    exec.stop(id(waiting));
    exec.stop(id(running[0]));
    wait_for("a third to begin", || (begun().len() == 3).then_some(()));
    std::fs::write(go, "").unwrap();
    let mut done: Vec<_> = (0..3).map(|_| endings.recv_timeout(PATIENCE).unwrap().0).collect();
    done.sort_unstable();
    let expected: Vec<u128> = (1..=5).filter(|event| ![waiting, running[0]].contains(event)).collect();
    assert_eq!(done, expected);
    drop(send);
    assert!(endings.recv_timeout(PATIENCE).is_err(), "a stopped command is not reported");
    assert!(!begun().contains(&waiting), "what was stopped while it waited never ran");
}

#[test]
fn commands_of_one_vm_take_turns() {
    let trial = Trial::new("");
    let busy = trial.path("busy");
    let script = format!("mkdir {0} || exit 1; sleep 0.2; rmdir {0}", busy.display());
    write_script(&trial.config.command, &script);
    let exec = trial.exec();
    let (send, endings) = mpsc::channel();
    let _in = trial.runtime.enter();
    for event in 1..=3 {
        let mut run = test_run(event);
        if let RunTarget::Vm { vm, .. } = &mut run.target {
            *vm = VmId(Uuid::from_u128(1));
        }
        exec.run(run, report(event, &send));
    }
    for _ in 0..3 {
        assert_eq!(endings.recv_timeout(PATIENCE).unwrap().1, DONE);
    }
}

#[test]
fn command_of_a_host_gets_its_vms_and_takes_turns() {
    let mut trial = Trial::new("exit 1");
    let (busy, seen) = (trial.path("busy"), trial.path("seen"));
    let script = format!(
        "mkdir {0} || exit 1; env | grep NOTBEFORE_HOST= > {1}; cat \"$NOTBEFORE_VMS\" >> {1}; sleep 0.2; rmdir {0}",
        busy.display(),
        seen.display()
    );
    let command = trial.path("host");
    write_script(&command, &script);
    trial.config.host_command = Some(command);
    let exec = trial.exec();
    let (send, endings) = mpsc::channel();
    let _in = trial.runtime.enter();
    for operation in 1..=2 {
        exec.run(host_run(operation), report(operation, &send));
    }
    for _ in 0..2 {
        assert_eq!(endings.recv_timeout(PATIENCE).unwrap().1, DONE);
    }
    let seen = std::fs::read_to_string(seen).unwrap();
    assert_eq!(seen, "NOTBEFORE_HOST=h1\ndefault/shop/web/web-0\ndefault/shop/web/web-1\n");
    let left: Vec<_> = std::fs::read_dir(trial.path("results")).unwrap().collect();
    assert!(left.is_empty(), "files are removed: {left:?}");
}

#[test]
fn host_without_a_command_fails_with_the_cure() {
    let trial = Trial::new("exit 0");
    let exec = trial.exec();
    let (send, endings) = mpsc::channel();
    let _in = trial.runtime.enter();
    exec.run(host_run(1), report(1, &send));
    let ending = endings.recv_timeout(PATIENCE).unwrap().1;
    assert!(matches!(&ending, Ending::Failed { why } if why.contains("--exec-host")), "{ending:?}");
}

#[test]
fn closing_ends_commands_without_results() {
    let trial = Trial::new("sleep 600 & sleep 601");
    let exec = trial.exec();
    let (send, endings) = mpsc::channel();
    let _in = trial.runtime.enter();
    exec.run(test_run(1), report(1, &send));
    let script = shell_of(&trial.config.command);
    wait_for("it to run", || (!processes_with(&script).is_empty()).then_some(()));
    trial.runtime.block_on(exec.close());
    assert_eq!(processes_with(&script), Vec::<u32>::new());
    exec.run(test_run(2), report(2, &send));
    drop(send);
    assert!(endings.recv_timeout(PATIENCE).is_err(), "it has not failed, and nothing is begun any more");
}
