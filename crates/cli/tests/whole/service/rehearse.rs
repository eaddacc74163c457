//! `notbefore rehearse` as a command: what it refuses before it plays, how it ends early, and that no handler outlives
//! it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::tempdir;

use crate::support::terminal::run_at_columns;
use crate::support::{Service, binary, wait_for};

fn rehearse(dir: &Path, arguments: &[&str]) -> (i32, String) {
    let Output { status, stderr, .. } =
        Command::new(binary()).arg("rehearse").args(arguments).current_dir(dir).output().unwrap();
    (status.code().unwrap(), String::from_utf8(stderr).unwrap())
}

/// Nothing is played, so each of these ends at once.
#[test]
fn what_cannot_work_is_refused_before_the_rehearsal() {
    let dir = tempdir().unwrap();
    fs::create_dir(dir.path().join("directory.yaml")).unwrap();
    fs::write(dir.path().join("latin.yaml"), b"summary: x\nvms: [\xff]\n").unwrap();
    fs::write(dir.path().join("text"), "no program").unwrap();
    for (arguments, said) in [
        (&["user-rebot", "--", "true"][..], "there is no scenario \"user-rebot\"; did you mean user-reboot?"),
        (&["user-reboot.yaml", "--", "true"], "did you mean the scenario user-reboot, without a suffix?"),
        (&["show", "user-rebot"], "did you mean user-reboot? 'notbefore rehearse list' lists them"),
        (&["directory.yaml", "--", "true"], "Is a directory (os error 21); name a file in it"),
        (&["latin.yaml", "--", "true"], "line 2 is not UTF-8; save the file as UTF-8"),
        (&["/dev/zero", "--", "true"], "exceeds the limit of 1048576 bytes for a scenario"),
        (&["user-reboot", "--", "no-such-handler"], "\"no-such-handler\" was not found; check its spelling"),
        (&["user-reboot", "--", "./text"], "\"./text\" is not executable; chmod +x it"),
        (
            &["user-reboot", "sh", "x", "--", "y"],
            "unexpected word \"sh\"; write -- before the handler, after all flags: -- sh x y",
        ),
        (&["doctor", "./text"], "unexpected word \"./text\"; write -- before the handler"),
        (&["doctor", "--", "no-such-handler"], "\"no-such-handler\" was not found"),
        (&["doctor"], "doctor needs a handler; name it after --"),
        (
            &["user-reboot", "--html", "no/page.html", "--", "true"],
            "--html: cannot write no/page.html: No such file or directory (os error 2); create its directory first",
        ),
        (
            &["user-reboot", "--record", "directory.yaml", "--", "true"],
            "--record: cannot write directory.yaml: Is a directory",
        ),
        (&["doctor", "--junit", "no/x.xml", "--", "true"], "--junit: cannot write no/x.xml"),
        (
            &["user-reboot", "--junit", "x", "--html", "x", "--", "true"],
            "--junit and --html name the same file x; give each its own",
        ),
        (&["report", "no.json"], "cannot read no.json"),
    ] {
        let (code, stderr) = rehearse(dir.path(), arguments);
        assert_eq!(code, 2, "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    assert!(!dir.path().join("x").exists(), "a check leaves no file");
}

/// A handler with a child in its group, one in a session of its own, and one without environment. None of them ends on
/// SIGTERM.
const STUBBORN: &str = "trap '' TERM
sleep 1000 & a=$!
setsid sleep 1000 & b=$!
env -i sleep 1000 & c=$!
echo $$ $a $b $c >pids.new
mv pids.new pids
while :; do sleep 1000; done";

fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    !state.is_empty() && !state.starts_with(['Z', 'X'])
}

#[test]
fn killed_rehearsal_leaves_no_process_and_no_directory() {
    let bare = "echo $$ >pids.new; /bin/mv pids.new pids; exec /bin/sleep 1000";
    for handler in [
        &["--", "sh", "-c", STUBBORN][..],
        &["--netns", "--", "sh", "-c", STUBBORN],
        // Nothing of it has the variable of the keeper.
        &["--", "env", "-i", "/bin/sh", "-c", bare],
    ] {
        let (dir, temporary) = (tempdir().unwrap(), tempdir().unwrap());
        let mut rehearsal = Command::new(binary())
            .env("TMPDIR", temporary.path())
            .args(["rehearse", "user-reboot"])
            .args(handler)
            .current_dir(dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pids = wait_for("the handler to run", || fs::read_to_string(dir.path().join("pids")).ok());
        let pids: Vec<&str> = pids.split_whitespace().collect();
        assert!(!pids.is_empty() && pids.iter().all(|pid| runs(pid)), "{pids:?}");
        let is_empty = || fs::read_dir(temporary.path()).unwrap().next().is_none().then_some(());
        assert_eq!(is_empty(), None, "the test does not see the rehearsal's directories");
        rehearsal.kill().unwrap();
        rehearsal.wait().unwrap();
        wait_for("the handler's processes to end", || pids.iter().all(|pid| !runs(pid)).then_some(()));
        wait_for("the directories to be removed", is_empty);
    }
}

/// Polls with an api-version that does not show advice, and reports each poll.
const OLD_VERSION: &str = "import os, time, urllib.request as r
url = os.environ['NOTBEFORE_ENDPOINT'] + '/metadata/scheduledevents?api-version=2020-07-01'
while True:
    r.urlopen(r.Request(url, headers={'Metadata': 'true'})).read()
    time.sleep(0.1)
";

#[test]
fn scenario_that_waits_for_an_unread_event_ends_with_a_verdict() {
    let dir = tempdir().unwrap();
    let scenario = "summary: x\nvms: [{ name: web-0, spot: true }]\npolls_every: 1s\nsteps:\n  - { at: 1s, schedule: { event: advice, cause: rebalance, vms: [web-0] } }\n  - { at: read advice, cancel: advice }\nexpect: [does_not_approve: advice]\n";
    fs::write(dir.path().join("mine.yaml"), scenario).unwrap();
    let output = Command::new(binary())
        .args([
            "rehearse",
            "mine.yaml",
            "--compress",
            "1000000",
            "--floor",
            "1s",
            "--",
            "python3",
            "-c",
            OLD_VERSION,
        ])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    for said in [
        "a handler reads advice",
        "polls showed it, and step 2 (cancel advice) waits for that",
        "poll with api-version=2024-07-09: older versions do not show advice",
    ] {
        assert!(stdout.contains(said), "{said}\n{stdout}");
    }
}

#[test]
fn doctor_shows_its_progress_at_a_terminal_only() {
    let dir = tempdir().unwrap();
    let files = ["one.yaml", "two.yaml"].map(|name| dir.path().join(name));
    for file in &files {
        fs::write(file, "summary: x\nvms: [web-0]\nsteps:\n  - { at: 1s, clear_faults: true }\n").unwrap();
    }
    let [one, two] = files.each_ref().map(|file| file.to_str().unwrap());
    // The handler ends at once, and each rehearsal a second later.
    let arguments = ["doctor", "--only", one, "--only", two, "--floor", "1s", "--", "true"];
    let (code, stderr) = rehearse(dir.path(), &arguments);
    assert_eq!(code, 1, "{stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    assert!(lines[0].starts_with("[1/2] ") && lines[1].starts_with("[2/2] "), "{stderr}");
    assert_eq!(lines.len(), 3, "{stderr}");

    let service = Service::start(&[]);
    let shown = run_at_columns(&service, &[&["rehearse"][..], &arguments].concat(), 100);
    assert_eq!(shown.code, 1, "{}", shown.text);
    for part in ["0 of 2 done, ", "playing two, one", "[1/2] ", "[2/2] ", "0 of 2 scenarios passed"] {
        assert!(shown.text.contains(part), "{part}: {}", shown.text);
    }
}
