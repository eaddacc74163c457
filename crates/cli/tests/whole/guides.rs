//! docs/guide/handlers.md and docs/guide/ci.md as printed. Each runs in its own network namespace, so that the ports on
//! the pages are free.

use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::namespace::{Namespace, failure_text};
use crate::support::pages::{as_typed, blocks, root};
use crate::support::{binary, wait_for};

/// A directory in a namespace, with the handler of the page in it and `notbefore` in `PATH`.
struct Terminal {
    namespace: Namespace,
    dir: tempfile::TempDir,
    /// The service and the handler, ended with the test.
    children: Vec<Child>,
}

impl Terminal {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("handler.py"), &blocks(&page("handlers.md"), "python")[0]).unwrap();
        Self { namespace: Namespace::new(), dir, children: Vec::new() }
    }

    /// A script of a page. The reader's build is the test's binary.
    fn shell(&self, script: &str) -> std::process::Command {
        let script =
            script.replace("./dev run", "notbefore serve").replace("./target/debug/notbefore", binary());
        let bin = std::path::Path::new(binary()).parent().unwrap().display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = self.namespace.command("bash");
        shell.args(["-euc", &format!("shopt -s expand_aliases\n{script}")]);
        as_typed(&mut shell);
        shell.current_dir(self.dir.path()).env("PATH", format!("{bin}:{path}"));
        shell
    }

    fn run(&self, script: &str) -> String {
        let done = self.shell(script).output().unwrap();
        assert!(done.status.success(), "{script}\n{}", failure_text(&done));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Starts a script that does not end, with its output in a file.
    fn start(&mut self, script: &str, log: &str) {
        let log = std::fs::File::create(self.dir.path().join(log)).unwrap();
        let mut shell = self.shell(&format!("exec {}", script.replace("./dev run", "notbefore serve")));
        self.children.push(shell.stdout(log).stderr(Stdio::null()).spawn().unwrap());
    }

    /// Ends the child of this number, in the order of their start, as Ctrl-C does.
    fn stop(&mut self, number: usize) {
        let child = &mut self.children[number];
        let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(process, Signal::INT).unwrap();
        assert!(child.wait().unwrap().success(), "the service ends in order");
    }

    fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(name)).unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join("docs/guide").join(name)).unwrap()
}

#[test]
fn handlers_page_handler_approves_every_event_type() {
    let page = page("handlers.md");
    let (commands, shown) = (blocks(&page, "sh"), blocks(&page, "text"));
    let mut terminal = Terminal::new();
    terminal.start(&commands[0], "service.log");
    wait_for("the service to be ready", || terminal.log("service.log").contains("operators").then_some(()));
    assert!(terminal.log("service.log").starts_with(&shown[0]), "{}", terminal.log("service.log"));
    assert_eq!(terminal.run(&commands[1]), blocks(&page, "json")[0]);

    terminal.start(&commands[2], "handler.log");
    assert!(commands[3].ends_with("notbefore event watch"), "the page follows what happens: {}", commands[3]);
    terminal.run(&commands[3].replace("notbefore event watch", "notbefore event list"));
    let words = |line: &str| line.split(' ').take(3).collect::<Vec<_>>().join(" ");
    wait_for("the handler to restore", || {
        let log = terminal.log("handler.log");
        (log.lines().map(words).collect::<Vec<_>>() == shown[1].lines().map(words).collect::<Vec<_>>())
            .then_some(())
    });

    // Every command of the table works, and the VM reads the type of its row.
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `notbefore "))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 11);
    for row in rows {
        let command = row[1].trim_matches('`').replace("vm delete", "vm delete --yes");
        let kind = row[2].split(',').next().unwrap();
        let listed = terminal.run(&format!("{command} >/dev/null\nnotbefore event list"));
        assert!(listed.contains(kind), "{command}: {listed}");
        let over = "notbefore event list --output json | jq -r '.[].id' | xargs -r -n 1 notbefore event cancel || true\n\
                    notbefore event list --output json | jq -r '.[].id' | xargs -r -n 1 notbefore event complete || true\n\
                    notbefore vm start web-0 || true";
        wait_for("the event to be over", || {
            terminal.run(&format!("{over}\nnotbefore event list")).contains("no scheduled").then_some(())
        });
    }
}

#[test]
fn handlers_page_handler_restores_only_after_events_that_were_prepared() {
    let commands = blocks(&page("handlers.md"), "sh");
    let mut terminal = Terminal::new();
    // Events end only when the test completes them.
    terminal.start(&commands[0].replace("--simulated-duration 5s", "--simulated-duration 1h"), "service.log");
    wait_for("the service to be ready", || terminal.log("service.log").contains("operators").then_some(()));
    let schedule = |terminal: &Terminal, flags: &str| {
        let id = "--output json | jq -r '.targets[0].event'";
        terminal.run(&format!("notbefore event schedule {flags} web-0 {id}")).trim().to_uppercase()
    };

    // The handler first reads this event as Started, so it has prepared nothing.
    let failure = schedule(&terminal, "--cause host-failure");
    terminal.start(&commands[2], "handler.log");
    let read = format!("notbefore event show {failure} --output json | jq -r '.seen[0].first_read_at'");
    wait_for("the first read", || (terminal.run(&read) != "null\n").then_some(()));
    terminal.run(&format!("notbefore event complete {failure}"));

    // A second handler restores after the event for which the first one prepared.
    let reboot = schedule(&terminal, "--type reboot");
    let status = format!("notbefore event show {reboot} --output json | jq -r .status");
    wait_for("the approval", || (terminal.run(&status) == "Started\n").then_some(()));
    let first = terminal.children.last_mut().unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    terminal.start(&commands[2], "second.log");
    terminal.run(&format!("notbefore event complete {reboot}"));
    wait_for("the second handler to restore", || {
        terminal.log("second.log").contains("restore").then_some(())
    });
    assert_eq!(terminal.log("handler.log"), format!("prepare for Reboot {reboot}\n"));
    assert_eq!(terminal.log("second.log"), format!("restore after Reboot {reboot}\n"));
}

#[test]
fn handlers_page_output_matches_guest_view() {
    let page = page("handlers.md");
    let commands = blocks(&page, "sh");
    let mut terminal = Terminal::new();
    terminal.start(&commands[0], "service.log");
    wait_for("the service to be ready", || terminal.log("service.log").contains("operators").then_some(()));
    terminal.run("notbefore event schedule --type reboot web-0");
    let look = commands[4].replace("--watch", "--watch --count 1");
    let seen = terminal.run(&look);
    assert!(seen.contains("MINE") && seen.contains("appeared"), "{seen}");
    assert!(seen.contains("\"DocumentIncarnation\":2") && seen.ends_with(": approved\n"), "{seen}");
}

#[test]
fn handlers_page_shared_document_and_test_script_work() {
    let page = page("handlers.md");
    let commands = blocks(&page, "sh");
    let mut terminal = Terminal::new();
    let ready = |terminal: &Terminal, log: &str| {
        wait_for("the service to be ready", || terminal.log(log).contains("operators").then_some(()));
    };
    terminal.start(&commands[0], "first.log");
    terminal.start(&commands[2], "handler.log");
    ready(&terminal, "first.log");
    terminal.run(&commands[7]);

    terminal.run(&commands[5]);
    // The shell execs the service, so its process id is the service's.
    terminal.stop(0);
    terminal.start(&commands[6], "second.log");
    ready(&terminal, "second.log");
    assert_eq!(terminal.log("second.log").matches("guest default/default/web/web-").count(), 2);
    let document =
        terminal.run(&format!("notbefore event schedule --type reboot web-b >/dev/null\n{}", commands[1]));
    assert!(document.contains("\"Resources\":[\"web-b\"]"), "{document}");
}

#[test]
fn ci_script_fails_without_handler() {
    let page = page("ci.md");
    let script = &blocks(&page, "sh")[0];
    let terminal = Terminal::new();
    let printed = terminal.run(script);
    let shown = &blocks(&page, "text")[0];
    let outcomes: Vec<&str> = printed.lines().filter(|line| line.contains("approved=")).collect();
    assert_eq!(outcomes, shown.lines().collect::<Vec<_>>(), "{printed}");

    let terminal = Terminal::new();
    std::fs::write(terminal.dir.path().join("handler.py"), "import time\ntime.sleep(60)\n").unwrap();
    let done = terminal.shell(&script.replace("--notice 0.1", "--notice 0.001")).output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", failure_text(&done));
    assert!(String::from_utf8_lossy(&done.stdout).contains("Freeze Completed approved=false"), "{done:?}");
}
