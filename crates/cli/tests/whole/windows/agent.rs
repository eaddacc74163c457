//! A whole event through the agent on Windows: as a program that is killed and restarted, and as a service.

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::machine::{set, write, written};
use super::wine::{Windows, stdout_text};
use crate::support::{Service, first_event, processes_with, wait_for};

/// Lock for `ProgramData\notbefore`, which an installation may rename.
static PROGRAM_DATA: Mutex<()> = Mutex::new(());

/// A service whose events stay Started until the test completes them.
fn service() -> Service {
    super::service(&["--always-give-notice", "--simulated-duration", "1h"])
}

fn wait_until_written(name: &str, text: &str) {
    wait_for(&format!("{text:?} in {name}"), || written(name).contains(text).then_some(()));
}

fn wait_until(service: &Service, status: &str) {
    wait_for(status, || (service.document()["Events"][0]["EventStatus"] == status).then_some(()));
}

/// An agent at a terminal, with the file in ProgramData.
struct Agent(Child);

impl Agent {
    fn start(args: &[&str]) -> Self {
        let mut command = Windows::get().notbefore_unbounded(args);
        command.env_remove("NOTBEFORE_AGENT_BOOT_ID").stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// Kills it (SIGKILL).
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sets the boot number in the registry, as Windows does.
fn boots(number: u32) {
    let key = r"SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters";
    set(key, "BootId", "REG_DWORD", &number.to_string());
}

#[test]
fn agent_killed_twice_prepares_approves_and_restores_once() {
    let _alone = PROGRAM_DATA.lock().unwrap_or_else(PoisonError::into_inner);
    let service = service();
    let config = format!(
        r#"
endpoint = "http://{}"
name = "web-0"
listen = "none"

[[rule]]
name = "drain"

[[rule.before]]
name = "note"
shell = 'echo %NOTBEFORE_STAGE% %NOTBEFORE_EVENT_TYPE% of %NOTBEFORE_VM%>>C:\run.log'

[[rule.before]]
name = "words"
command = ["cmd", "/V:ON", "/D", "/C", 'echo !NOTBEFORE_DESCRIPTION!>>C:\words.log']

[[rule.before]]
name = "facts"
command = ["cmd", "/C", 'more >C:\facts.json']

[[rule.before]]
name = "gate"
wait_for = ["cmd", "/C", 'echo tried>>C:\tried.log & if exist C:\gate.txt (exit 0) else (exit 1)']

[[rule.after]]
name = "back"
shell = 'echo %NOTBEFORE_STAGE% %NOTBEFORE_CANCELLED%>>C:\run.log'
"#,
        service.guest
    );
    write("ProgramData/notbefore/agent.toml", &config);
    boots(47);
    let first = Agent::start(&["agent", "run"]);
    service.cli(&["event", "schedule", "--type", "reboot", "--description", "memory & more", "web-0"]);
    let event = first_event(&service.document());
    wait_until_written("facts.json", &event);
    assert_eq!(written("words.log").trim_end(), "memory & more");
    let journal = Windows::get().drive_c("ProgramData/notbefore/agent/journal.json");
    let journal = || fs::read_to_string(&journal).unwrap_or_default();
    wait_until_written("tried.log", "tried");
    assert!(journal().contains(&event));
    // In the middle of a step.
    first.kill();

    let second = Agent::start(&["agent", "run"]);
    write("gate.txt", "open");
    wait_until(&service, "Started");
    // The reboot itself.
    second.kill();

    boots(48);
    let last_poll = || service.cli_json(&["vm", "show", "web-0"])["last_poll_at"].clone();
    let before = last_poll();
    let third = Agent::start(&["agent", "run"]);
    // The agent knows that this is another boot, and has polled the running event more than once.
    wait_for("the new boot in the journal", || journal().contains(r#""boot":"48""#).then_some(()));
    let first_poll = wait_for("a poll", || Some(last_poll()).filter(|last| *last != before));
    wait_for("another", || Some(last_poll()).filter(|last| *last != first_poll));
    let now = journal();
    assert!(!now.contains("restoring") && !written("run.log").contains("after"), "it is not over: {now}");
    service.cli(&["event", "complete", &event]);
    wait_until_written("run.log", "after");
    wait_for("an empty journal", || (!journal().contains(&event)).then_some(()));
    third.kill();
    assert_eq!(written("run.log"), "before Reboot of web-0\r\nafter false\r\n");
}

/// The first step fails, the second hangs in a child of a shell until its timeout. `taskkill` is slow here
/// (`taskkill.c`): if the shell were killed first, it would find no children.
#[test]
fn hanging_hook_is_killed_with_children() {
    let service = service();
    // A program that waits forever.
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let hangs = format!("get --endpoint http://{}", door.local_addr().unwrap());
    let config = format!(
        r#"
endpoint = "http://{}"
name = "web-0"
listen = "none"

[[rule]]
name = "drain"
[[rule.before]]
shell = 'exit 3'
on_failure = "go-on"
[[rule.before]]
shell = '"{}" {hangs}'
timeout = "2s"
on_failure = "go-on"
"#,
        service.guest,
        Windows::get().exe(),
    );
    write("hangs/agent.toml", &config);
    let args = ["agent", "run", "--config", r"C:\hangs\agent.toml", "--state", r"C:\hangs\state"];
    let _agent = Agent::start(&args);
    service.cli(&["vm", "restart", "web-0"]);
    wait_for("the hook to run", || (!processes_with(&hangs).is_empty()).then_some(()));
    wait_until(&service, "Started");
    wait_for("the hook to be gone", || processes_with(&hangs).is_empty().then_some(()));
    // A step that has ended must not be killed. The other must still run, so that its children are found.
    wait_until_written("taskkill.log", "\n");
    let calls = written("taskkill.log");
    assert!(calls.lines().count() == 1 && calls.trim_end().ends_with(": there"), "{calls}");
}

/// The Windows service, removed on drop.
struct Installed;

impl Drop for Installed {
    fn drop(&mut self) {
        let _ = Windows::get().notbefore(&["agent", "uninstall"]).output();
    }
}

#[test]
fn windows_service_handles_event_and_writes_event_log() {
    let _alone = PROGRAM_DATA.lock().unwrap_or_else(PoisonError::into_inner);
    let windows = Windows::get();
    let service = service();
    let config = format!(
        r#"
endpoint = "http://{}"
name = "web-0"
listen = "none"

[[rule]]
name = "drain"
[[rule.before]]
shell = 'echo %NOTBEFORE_STAGE% %NOTBEFORE_RULE%>>C:\service.log'
[[rule.after]]
shell = 'echo %NOTBEFORE_STAGE%>>C:\service.log'
"#,
        service.guest
    );
    write("service/agent.toml", &config);
    let args = ["agent", "install", "--config", r"C:\service\agent.toml", "--state", r"C:\service\state"];
    // A configuration that another user may have put into ProgramData.
    write("ProgramData/notbefore/agent.toml", "# a trap");
    let installed = stdout_text(&mut windows.notbefore(&args));
    let _installed = Installed;
    let kept = r"C:\ProgramData\notbefore.found-";
    assert!(installed.contains(kept), "{installed}");
    assert_eq!(written("ProgramData/notbefore/agent.toml"), "");
    assert_eq!(written("ProgramData/notbefore.found-1/agent.toml"), "# a trap");
    assert!(
        installed.contains("notbefore-agent installed") && installed.contains("net start notbefore-agent"),
        "{installed}"
    );
    write("ProgramData/notbefore/agent.toml", "# ours");
    let again = stdout_text(&mut windows.notbefore(&args));
    assert!(again.contains("updated") && !again.contains(kept), "{again}");
    assert_eq!(written("ProgramData/notbefore/agent.toml"), "# ours");

    stdout_text(&mut windows.wine(&["net", "start", "notbefore-agent"]));
    assert!(state().contains("RUNNING"), "{}", state());
    service.cli(&["vm", "redeploy", "web-0"]);
    let event = first_event(&service.document());
    wait_until_written("service.log", "before drain");
    wait_until(&service, "Started");
    assert!(windows.drive_c("service/state/journal.json").exists());
    service.cli(&["event", "complete", &event]);
    wait_until_written("service.log", "after");

    // The agent reads changed rules on request.
    write("service/agent.toml", &config.replace(r#"name = "drain""#, r#"name = "new""#));
    stdout_text(&mut windows.helper("paramchange.exe", &["notbefore-agent"]));
    wait_for("a log line about the new rules", || {
        windows.event_log().contains("rules are reloaded").then_some(())
    });
    service.cli(&["vm", "redeploy", "web-0"]);
    wait_until_written("service.log", "before new");
    let command =
        |verb: &str| stdout_text(&mut windows.notbefore(&["agent", verb, "--state", r"C:\service\state"]));
    let reloaded = command("reload");
    assert!(reloaded.contains(r"C:\service\agent.toml: reloaded, 1 rule"), "{reloaded}");
    assert!(command("history").contains(&event), "{}", command("history"));

    stdout_text(&mut windows.wine(&["net", "stop", "notbefore-agent"]));
    assert!(state().contains("STOPPED"), "{}", state());
    let events = windows.event_log();
    for args in [event.as_str(), "Redeploy", "approve", "stopping"] {
        assert!(events.contains(args), "the event log has no {args}:\n{events}");
    }
    // Configuration errors are also logged there, and set the service's exit code.
    write("service/agent.toml", "rules = 1");
    let _ = windows.wine(&["net", "start", "notbefore-agent"]).output();
    wait_for("an error in the event log", || windows.event_log().contains("rules").then_some(()));
    wait_for("the exit code", || state().contains("SERVICE_EXIT_CODE  : 2").then_some(()));
    assert!(stdout_text(&mut windows.notbefore(&["agent", "uninstall"])).contains("removed"));
    assert!(!state().contains("STATE"), "{}", state());
    assert!(windows.drive_c("service/agent.toml").exists(), "what the site wrote stays");
}

/// The service's state in Windows.
fn state() -> String {
    let mut command: Command = Windows::get().wine(&["sc", "query", "notbefore-agent"]);
    String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
}
