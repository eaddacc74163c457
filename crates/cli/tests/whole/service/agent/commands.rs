//! Commands to a running agent: a wrong rule is mended while an event waits, and what the commands print.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output};

use serde_json::Value;

use super::vm::{Vm, stderr_text, stdout_text, waits};
use crate::support::administrator::administrator;
use crate::support::agent::AgentDir;
use crate::support::{PATIENCE, binary, free_address};

fn rule(name: &str, step: &str) -> String {
    format!("[[rule]]\nname = \"{name}\"\n[[rule.before]]\n{step}")
}

/// A step that fails until the test creates `go`.
fn fails_until_go() -> String {
    AgentDir::traced("drain", "; [ -e {trace}.go ] || exit 3")
}

/// Asserts the exit code, and gives standard output and standard error.
fn ends(output: &Output, code: i32) -> (String, String) {
    let (stdout_text, stderr_text) = (stdout_text(output), stderr_text(output));
    assert_eq!(output.status.code(), Some(code), "{stdout_text}{stderr_text}");
    (stdout_text, stderr_text)
}

fn json(vm: &Vm, words: &[&str]) -> Value {
    let words = [words, &["--output", "json"]].concat();
    serde_json::from_str(&ends(&vm.agent_cli(&words), 0).0).unwrap()
}

#[test]
fn wrong_rule_is_mended_while_event_waits() {
    let vm = Vm::new();
    let (url, heard) = administrator();
    let notify = format!("[notify]\nurl = \"{url}\"\non = [\"unmatched\", \"withheld\", \"approved\"]\n");
    let what = || heard.recv_timeout(PATIENCE).unwrap().1["what"].clone();
    vm.configure(&format!("{notify}[[rule]]\nname = \"spot\"\ntypes = [\"Preempt\"]\n"));
    let checked = ends(&vm.agent_cli(&["check"]), 0).0;
    assert!(
        checked.contains("no rule matches these events of this VM: Freeze, Reboot, Redeploy"),
        "{checked}"
    );
    let _agent = vm.start_ready();
    ends(&vm.agent_cli(&["status"]), 0);

    // No rule is for this event: a warning, a metric, a notification, and an exit code.
    let event = vm.announce("reboot");
    assert_eq!(what(), "unmatched");
    vm.wait_for_log("no rule matches the Reboot of this VM");
    let log = vm.dir.log();
    assert!(log.lines().any(|line| line.contains("WARN") && line.contains("no rule matches")), "{log}");
    vm.wait_for_answer("/metrics", 200, "notbefore_agent_facts_total{what=\"unmatched\"} 1");
    let (status, cure) = ends(&vm.agent_cli(&["status"]), 13);
    assert!(status.contains("none: no rule matches") && cure.contains("'notbefore agent reload'"), "{cure}");
    let (_, cure) = ends(&vm.agent_cli(&["retry", &event]), 1);
    assert!(cure.contains("no rule matches event") && cure.contains("agent.toml"), "{cure}");

    // The first attempt to mend it has a mistake, with its file and line.
    vm.configure(&format!("{notify}[[rule]]\nname = \"all\"\ntipes = [\"Reboot\"]\n"));
    let (_, mistake) = ends(&vm.agent_cli(&["reload"]), 2);
    assert!(mistake.contains("agent.toml:9: unknown key rule.tipes; did you mean rule.types?"), "{mistake}");
    assert!(mistake.contains("the previous rules stay in effect"), "{mistake}");
    ends(&vm.agent_cli(&["status"]), 13);

    // The second has a rule whose hook fails.
    vm.configure(&format!("{notify}{}", rule("all", &fails_until_go())));
    let reloaded = ends(&vm.agent_cli(&["reload"]), 0).0;
    assert!(reloaded.contains("agent.toml: reloaded, 1 rule\n"), "{reloaded}");
    assert!(reloaded.contains(&format!("event {event}: rule all applies")), "{reloaded}");
    assert_eq!(what(), "withheld");
    vm.wait_for_answer("/events", 200, "\"phase\":\"withheld\"");
    let (_, cure) = ends(&vm.agent_cli(&["status"]), 12);
    assert!(cure.contains(&format!("'notbefore agent retry {event}'")), "{cure}");
    assert_eq!(vm.shown(&event)["status"], "Scheduled");

    // A retry ends with the outcome: it fails again.
    let (retried, why) = ends(&vm.agent_cli(&["retry", &event]), 12);
    assert!(retried.contains("step drain before the Reboot failed: exit code 3"), "{retried}");
    assert!(why.contains(&format!("event {event} is not approved by rule all")), "{why}");
    assert_eq!(what(), "withheld");
    ends(&vm.agent_cli(&["retry", &event, "--no-wait"]), 0);
    assert_eq!(what(), "withheld");
    vm.wait_for_answer("/events", 200, "\"phase\":\"withheld\"");

    // The step is corrected in the file, and retried, by the first digits of the event's id.
    vm.configure(&format!("{notify}{}retires = 1\n", rule("all", &AgentDir::traced("drain", ""))));
    let (_, mistake) = ends(&vm.agent_cli(&["retry", &event]), 2);
    assert!(mistake.contains("did you mean rule.before.retries?"), "{mistake}");
    assert!(mistake.contains("nothing is retried, and the previous rules stay in effect"), "{mistake}");
    vm.configure(&format!("{notify}{}", rule("all", &AgentDir::traced("drain", ""))));
    let retried = json(&vm, &["retry", &event[..8].to_lowercase()]);
    assert_eq!(retried["event"], event.as_str());
    assert_eq!(retried["facts"][0]["text"], "step drain before the Reboot is retried");
    assert_eq!(retried["outcome"]["approval"], "given", "{retried}");
    assert_eq!(what(), "approved");
    vm.wait_for_status(&event, "Started");
    assert_eq!(vm.dir.trace(), ["before drain Reboot"; 4]);
    vm.wait_for_answer("/events", 200, "\"status\":\"Started\"");
    ends(&vm.agent_cli(&["status"]), 0);
    let (_, refused) = ends(&vm.agent_cli(&["retry", &event]), 1);
    assert!(refused.contains("has no failed step or approval: it is ready"), "{refused}");
    vm.complete(&event);
    vm.wait_for_log("the Reboot is over");

    let history = json(&vm, &["history"]);
    let past = &history[0];
    assert_eq!((&past["id"], &past["rule"]), (&event.as_str().into(), &"all".into()));
    let steps = past["steps"].as_array().unwrap().iter();
    let steps: Vec<_> = steps.map(|step| (&step["step"], &step["outcome"], &step["reason"])).collect();
    let drain = Value::from("drain");
    let failed = (&drain, &Value::from("failed"), &Value::from("exit code 3"));
    assert_eq!(steps, [failed, failed, failed, (&drain, &"done".into(), &Value::Null)]);
    let facts: Vec<&str> =
        past["facts"].as_array().unwrap().iter().map(|fact| fact["what"].as_str().unwrap()).collect();
    for fact in ["appeared", "unmatched", "matched", "withheld", "step_tried_again", "prepared", "approved"] {
        assert!(facts.contains(&fact), "no {fact} in {facts:?}");
    }
}

#[test]
fn reload_tells_settings_that_need_a_restart_and_missing_programs() {
    let vm = Vm::new();
    vm.configure(
        "[[rule]]\nname = \"all\"\n[[rule.before]]\nname = \"drain\"\ncommand = [\"/nowhere/drain\"]\n",
    );
    let _agent = vm.start();
    let missing = "programs of steps are missing (rule all, step drain before)";
    let red = vm.wait_for_answer("/readyz", 503, missing);
    assert!(!red.body.contains("nowhere"), "{red:?}");
    vm.wait_for_log("rule all, step drain before: no program /nowhere/drain found");
    vm.wait_for_answer("/events", 200, "\"endpoint\":\"http");
    let (_, why) = ends(&vm.agent_cli(&["status"]), 14);
    assert!(why.contains(missing), "{why}");

    let file = vm.dir.path("agent.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("log = \"debug\"\n{text}")).unwrap();
    let (_, warnings) = ends(&vm.agent_cli(&["reload"]), 0);
    assert!(
        warnings.contains("warning: rule all, step drain before: no program /nowhere/drain found"),
        "{warnings}"
    );
    assert!(warnings.contains("warning: settings other than rules and notify have changed"), "{warnings}");
    vm.configure(&rule("all", &AgentDir::traced("drain", "")));
    let reloaded = json(&vm, &["reload"]);
    assert_eq!((&reloaded["rules"], &reloaded["missing_programs"]), (&1.into(), &Value::Array(Vec::new())));
    vm.wait_for_answer("/readyz", 200, "ready");
}

#[test]
fn history_survives_kill() {
    let vm = Vm::new();
    vm.configure(&rule("all", &waits()));
    let agent = vm.start_ready();
    let event = vm.announce("freeze");
    vm.dir.wait_for_trace(1);
    let ends_of_steps = || -> Vec<String> {
        let history = json(&vm, &["history"]);
        let steps = history[0]["steps"].as_array().cloned().unwrap_or_default();
        steps.iter().map(|step| step["outcome"].as_str().unwrap().to_owned()).collect()
    };
    crate::support::wait_for("the step in the history", || (ends_of_steps() == ["running"]).then_some(()));
    agent.kill();
    assert_eq!(ends_of_steps(), ["running"], "after kill -9");
    let (_, cure) = ends(&vm.agent_cli(&["status"]), 10);
    assert!(cure.contains("start the agent"), "{cure}");
    vm.release_step();
    let agent = vm.start();
    vm.wait_for_status(&event, "Started");
    vm.complete(&event);
    vm.wait_for_log("the Freeze is over");
    assert!(agent.terminate().success());
    assert_eq!(ends_of_steps(), ["interrupted", "done"]);
    let shown = ends(&vm.agent_cli(&["history", &event[..8]]), 0).0;
    assert!(shown.starts_with(&format!("Freeze {event}: rule all, restored\n")), "{shown}");
    assert!(shown.contains("step slow before the Freeze was running when the agent stopped"), "{shown}");
    let (_, unknown) = ends(&vm.agent_cli(&["history", "nothing"]), 1);
    assert!(unknown.contains("the history has no event nothing"), "{unknown}");
}

#[test]
fn status_needs_no_listener_for_the_agents_user() {
    let vm = Vm::new();
    vm.configure(&rule("all", &fails_until_go()));
    let _agent = vm.start_ready();
    vm.announce("reboot");
    vm.wait_for_answer("/events", 200, "\"phase\":\"withheld\"");
    let (status, _) = ends(&vm.agent_cli(&["status", "--listen", "none"]), 12);
    assert!(status.contains("withheld") && !status.contains("not running"), "{status}");
}

/// The answer of the configured agent would be taken for that of the agent in question.
#[test]
fn status_asks_only_the_place_that_is_given() {
    let vm = Vm::new();
    vm.configure("[[rule]]\nname = \"all\"\n");
    let file = vm.dir.path("agent.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"none\"", &format!("\"{}\"", vm.signals))).unwrap();
    let _agent = vm.start_ready();
    let state = vm.dir.path("state");
    let (state, listen, closed) =
        (state.to_str().unwrap(), vm.signals.to_string(), free_address().to_string());
    type Variables<'a> = &'a [(&'a str, &'a str)];
    let rows: [(u8, Variables<'_>, &[&str]); 11] = [
        (0, &[], &[]),
        (0, &[], &["--listen", &listen]),
        (0, &[("NOTBEFORE_AGENT_LISTEN", &closed)], &["--listen", &listen]),
        (0, &[], &["--state", state]),
        (0, &[("NOTBEFORE_AGENT_LISTEN", &closed)], &["--state", state]),
        (0, &[("NOTBEFORE_AGENT_STATE", state)], &[]),
        (10, &[], &["--listen", &closed]),
        (10, &[("NOTBEFORE_AGENT_LISTEN", &closed)], &[]),
        (10, &[], &["--state", "/nowhere"]),
        (10, &[("NOTBEFORE_AGENT_LISTEN", &listen)], &["--state", "/nowhere"]),
        (10, &[("NOTBEFORE_AGENT_STATE", "/nowhere")], &[]),
    ];
    for (code, variables, args) in rows {
        let mut command = Command::new(binary());
        command.args(["agent", "status", "--config", file.to_str().unwrap()]).args(args);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(code.into()), "{variables:?} {args:?}: {output:?}");
        let place = [closed.as_str(), "/nowhere"]
            .into_iter()
            .find(|place| format!("{variables:?}{args:?}").contains(place));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(code == 0 || stderr.contains(place.unwrap()), "{variables:?} {args:?}: {stderr}");
        assert!(code == 0 || !String::from_utf8_lossy(&output.stdout).contains("in service"), "{output:?}");
    }
}

#[test]
fn only_root_and_the_agents_user_command_the_agent() {
    let vm = Vm::new();
    vm.configure(&rule("all", &fails_until_go()));
    let _agent = vm.start_ready();
    let state = vm.dir.path("state");
    let as_other_user = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "1000", "--clear-groups", binary(), "agent"]).args(words);
        command.args(["--state", state.to_str().unwrap()]).output().unwrap()
    };
    for words in [&["reload"][..], &["retry", "a"], &["history"]] {
        let (_, denied) = ends(&as_other_user(words), 1);
        assert!(denied.contains("run this as root, or as the agent's user"), "{words:?}: {denied}");
    }
    // Also if the permissions of directory and socket let other users in.
    let open = |path: &std::path::Path, mode| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let socket = state.join("control");
    open(vm.dir.path(".").as_path(), 0o755);
    open(&state, 0o755);
    open(&socket, 0o666);
    let answer = std::thread::spawn(move || {
        use std::io::Write;
        // The user of this thread only.
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(1000)).unwrap();
        let mut stream = UnixStream::connect(socket).unwrap();
        let mut answer = String::new();
        // The agent may close the connection before the request is sent.
        let _ = stream.write_all(b"\"reload\"\n");
        let _ = stream.read_to_string(&mut answer);
        answer
    });
    assert_eq!(answer.join().unwrap(), "");
    vm.wait_for_log("refused a command: only root and the agent's user may command the agent");
    assert!(!vm.dir.log().contains("rules are reloaded"), "{}", vm.dir.log());
    // And it takes the commands of the agent's user afterwards.
    ends(&vm.agent_cli(&["reload"]), 0);
}

#[test]
fn commands_without_agent_fail() {
    let vm = Vm::new();
    vm.configure(&rule("all", &fails_until_go()));
    for words in [&["reload"][..], &["retry", "a"]] {
        let (_, why) = ends(&vm.agent_cli(words), 1);
        assert!(why.contains("no agent takes commands in") && why.contains("start it"), "{words:?}: {why}");
    }
    let agent = vm.start_ready();
    let (_, why) = ends(&vm.agent_cli(&["retry", "nothing"]), 1);
    assert!(why.contains("the agent handles no event nothing; 'notbefore agent status' lists them"), "{why}");
    assert_eq!(ends(&vm.agent_cli(&["history"]), 0).0, "no events\n");
    agent.kill();
    // The socket is left, and no agent listens there.
    let (_, why) = ends(&vm.agent_cli(&["reload"]), 1);
    assert!(why.contains("no agent takes commands in"), "{why}");
    let _agent = vm.start_ready();
    ends(&vm.agent_cli(&["reload"]), 0);
}
