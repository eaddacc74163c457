//! `notbefore rehearse` as a command: what it refuses before it plays, its verdict in every format, how it ends early,
//! and that no handler outlives it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::support::pages::root;
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
        (&["report", "no.json", "-o", "json"], "-o names the page, as --html does; write --output json"),
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

/// Polls once, then never again.
const ONE_POLL: &str = "curl --silent --noproxy '*' -H Metadata:true \"$NOTBEFORE_ENDPOINT/metadata/scheduledevents?api-version=2020-07-01\" >/dev/null; exec sleep 600";

#[test]
fn report_card_cites_what_proves_a_failure() {
    let dir = tempdir().unwrap();
    let scenario = "summary: x\nvms: [web-0]\npolls_every: 1s\nsteps:\n  - { at: 1s, schedule: { event: restart, cause: user-restart, vms: [web-0] } }\nexpect: [approves: restart]\n";
    fs::write(dir.path().join("mine.yaml"), scenario).unwrap();
    let output = Command::new(binary())
        .args(["rehearse", "doctor", "--only", "mine.yaml", "--compress", "1000", "--floor", "1s"])
        .args(["--", "sh", "-c", ONE_POLL])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    let (_, failure) = stdout.split_once("it never read a document with the event\n").expect(&stdout);
    let lines: Vec<&str> = failure.lines().map(str::trim).collect();
    assert_eq!(lines[0], "to do: poll about once a second, and go on after every error");
    assert!(
        lines[1].contains(" s  poll: 200, incarnation ") && lines[1].ends_with(", no events"),
        "{stdout}"
    );
}

/// A handler that drains and approves events of its VM; `approves-everything` in its arguments: also those of others.
const HANDLER: &str = "import json, os, sys, time, urllib.request as r
url = os.environ['NOTBEFORE_ENDPOINT'] + '/metadata/scheduledevents?api-version=2020-07-01'
name = os.environ.get('NOTBEFORE_VM', 'web-0')
direct = r.build_opener(r.ProxyHandler({}))
def send(body=None):
    return direct.open(r.Request(url, data=body, headers={'Metadata': 'true'})).read()
done = set()
while True:
    for event in json.loads(send())['Events']:
        is_mine = name in event['Resources'] or 'approves-everything' in sys.argv
        if is_mine and event['EventId'] not in done and event['EventStatus'] == 'Scheduled':
            done.add(event['EventId'])
            print('drained', flush=True)
            send(json.dumps({'StartRequests': [{'EventId': event['EventId']}]}).encode())
    time.sleep(0.1)
";

/// Three seconds with a handler that approves at once; the rehearsal itself polls for twenty VMs.
const OWN_EVENT: &str = "summary: x
vms: [web-0, { name: w, count: 20, polled: true }]
rests: 1s
steps:
  - { at: 1s, schedule: { event: restart, cause: user-restart, vms: [web-0], runs: 1s } }
expect:
  - drains: restart
  - approves: restart
";

/// Three seconds as well: the event is cancelled a second after it is read.
const OTHERS_EVENT: &str = "summary: x
vms: [web-0, { name: web-1, handler: false }]
rests: 1s
steps:
  - { at: 1s, schedule: { event: other, cause: host-reboot, vms: [web-1], runs: 1s } }
  - { at: read other + 1s, cancel: other }
expect: [does_not_approve: other]
";

/// Waits of the scenarios above end with the handler's reaction. The floor is how long a slow handler may take.
const QUICK: [&str; 4] = ["--compress", "1000000", "--floor", "20s"];

/// A directory with the handler and the scenarios.
fn scene() -> TempDir {
    let dir = tempdir().unwrap();
    for (file, text) in [("handler.py", HANDLER), ("own.yaml", OWN_EVENT), ("others.yaml", OTHERS_EVENT)] {
        fs::write(dir.path().join(file), text).unwrap();
    }
    dir
}

/// Runs a verb with [`QUICK`], flags, and the handler with an argument. Returns exit code and standard output.
fn judged(dir: &TempDir, verb: &[&str], flags: &[&str], argument: &str) -> (i32, String) {
    let mut command = Command::new(binary());
    command.arg("rehearse").args(verb).args(QUICK).args(["--drained", "line:^drained"]).args(flags);
    let command = command.args(["--", "python3", "handler.py", argument]).current_dir(dir.path());
    let done = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_ne!(done.status.code(), Some(2), "{err}");
    (done.status.code().unwrap(), out.into_owned())
}

fn outcomes(report: &Value) -> Vec<&str> {
    let findings = report["verdict"]["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["outcome"].as_str().unwrap()).collect()
}

fn printed(dir: &TempDir, arguments: &[&str]) -> String {
    let done =
        Command::new(binary()).arg("rehearse").args(arguments).current_dir(dir.path()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{arguments:?}: {err}");
    out.into_owned()
}

fn printed_json(dir: &TempDir, arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(dir, &[arguments, &["--output", "json"]].concat())).unwrap()
}

#[test]
fn verdict_is_written_in_every_format_and_reports_are_merged() {
    let dir = scene();
    let read = |file: &str| fs::read_to_string(dir.path().join(file)).unwrap();
    let flags = ["--output", "json", "--record", "own.json", "--junit", "own.xml", "--html", "own.html"];
    let (code, stdout) = judged(&dir, &["own.yaml"], &flags, "");
    assert_eq!(code, 0, "{stdout}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert!(outcomes(&report).iter().all(|outcome| *outcome == "passed"), "{report:#}");
    let recording = &report["recording"];
    assert_eq!(recording["handled_vms"], serde_json::json!(["web-0"]));
    assert!(recording["events"]["restart"]["approved_at"].is_object(), "{recording:#}");
    let entries = recording["entries"].as_array().unwrap();
    let approval = entries.iter().find(|entry| entry["method"] == "POST").unwrap();
    assert_eq!((&approval["vm"], &approval["status"]), (&"web-0".into(), &200.into()));
    assert_eq!(approval["approves"][0], recording["events"]["restart"]["id"]);
    let crowd = &recording["crowd"];
    assert_eq!((&crowd["vms"], &crowd["failures"]), (&20.into(), &0.into()), "{crowd}");
    assert!(crowd["answers"].as_u64().unwrap() >= 20, "{crowd}");
    assert_eq!(serde_json::from_str::<Value>(&read("own.json")).unwrap(), report);
    assert!(read("own.xml").contains("failures=\"0\""), "{}", read("own.xml"));
    assert!(read("own.html").contains("own"), "{}", read("own.html"));

    let flags = ["--record", "others.json", "--junit", "others.xml"];
    let (code, stdout) = judged(&dir, &["others.yaml"], &flags, "approves-everything");
    assert_eq!(code, 1, "{stdout}");
    assert!(stdout.contains("FAILED"), "{stdout}");
    assert!(read("others.xml").contains("<failure"), "{}", read("others.xml"));

    let both = ["report", "own.json", "others.json"];
    for page in ["--html", "-o"] {
        let said = printed(&dir, &[&both[..], &[page, "both.html"]].concat());
        assert_eq!(said, "both.html: 2 rehearsals\n");
        let html = read("both.html");
        assert!(html.contains("own") && html.contains("others"), "{html}");
        fs::remove_file(dir.path().join("both.html")).unwrap();
    }
    let card = printed_json(&dir, &both);
    assert_eq!((&card["passed"], &card["failed"]), (&1.into(), &1.into()));
    assert_eq!(card["reports"][0], report);
    assert!(!dir.path().join("report.html").exists(), "JSON alone was asked for");
}

#[test]
fn doctor_prints_card_of_chosen_scenarios() {
    let dir = scene();
    let verb = ["doctor", "--only", "own.yaml", "--only", "others.yaml"];
    let (code, card) = judged(&dir, &verb, &["--junit", "card.xml"], "");
    assert_eq!(code, 0, "{card}");
    assert!(card.contains("2 of 2 scenarios passed"), "{card}");
    let junit = fs::read_to_string(dir.path().join("card.xml")).unwrap();
    assert!(junit.contains("own") && junit.contains("others"), "{junit}");

    let (code, card) = judged(&dir, &verb, &["--output", "json"], "approves-everything");
    let card: Value = serde_json::from_str(&card).unwrap();
    assert_eq!((code, &card["passed"], &card["failed"]), (1, &1.into(), &1.into()));
    assert_eq!(card["not_played"], serde_json::json!({}));
    let names: Vec<&Value> = (0..2).map(|index| &card["reports"][index]["verdict"]["scenario"]).collect();
    assert_eq!(names, ["own", "others"], "in the order of --only");
    assert!(outcomes(&card["reports"][1]).contains(&"failed"), "{card:#}");
}

#[test]
fn library_is_listed_shown_and_described() {
    let dir = tempdir().unwrap();
    let files = fs::read_dir(root().join("crates/rehearse/scenarios")).unwrap().count();
    let listed = printed_json(&dir, &["list"]);
    assert_eq!(listed.as_array().unwrap().len(), files);
    let lines = printed(&dir, &["list"]);
    for one in listed.as_array().unwrap() {
        let name = one["name"].as_str().unwrap();
        assert!(lines.lines().any(|line| line.split(' ').next() == Some(name)), "{name}\n{lines}");
    }
    let shown = printed_json(&dir, &["show", "user-reboot"]);
    assert_eq!(shown["steps"][0]["schedule"]["cause"], "user-restart");
    assert_eq!(serde_saphyr::from_str::<Value>(&printed(&dir, &["show", "user-reboot"])).unwrap(), shown);
    // python/tests/test_schema.py checks scenarios with it.
    let schema: Value = serde_json::from_str(&printed(&dir, &["schema"])).unwrap();
    assert_eq!(schema["required"], serde_json::json!(["summary", "vms", "steps"]));
}

#[test]
fn handler_with_fixed_address_is_judged_in_namespace() {
    let dir = scene();
    let program = "NOTBEFORE_ENDPOINT=http://169.254.169.254 exec python3 handler.py";
    let mut command = Command::new(binary());
    command.args(["rehearse", "own.yaml", "--netns"]).args(QUICK).args(["--", "sh", "-c", program]);
    let done = command.current_dir(dir.path()).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
}

#[test]
fn handler_that_another_process_starts_is_judged() {
    let dir = scene();
    let mut command = Command::new(binary());
    command.args(["rehearse", "own.yaml", "--output", "json"]).args(QUICK).current_dir(dir.path());
    let mut rehearsal = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(rehearsal.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("Waiting for handlers."));
    let line = lines.next().unwrap();
    let (vm, url) = line.trim().split_once("  ").unwrap();
    assert_eq!(vm, "web-0");
    let base = url.split_once("/metadata/").unwrap().0;
    let mut command = Command::new("python3");
    command.arg("handler.py").current_dir(dir.path()).env("NOTBEFORE_ENDPOINT", base);
    let mut handler = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let done = rehearsal.wait_with_output();
    handler.kill().unwrap();
    handler.wait().unwrap();
    let done = done.unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(report["recording"]["events"]["restart"]["approved_at"].is_object(), "{report:#}");
    assert!(outcomes(&report).contains(&"not-judged"), "no marker shows that the VM is drained");
}

/// As `server-errors`, with a notice that is not divided: the agent backs off for seven seconds and more.
const ERRORS: &str = "summary: x
vms: [web-0]
steps:
  - { at: 1s, fault: { kind: status, status: 500, count: 3 } }
  - { at: 2s, schedule: { event: restart, cause: user-restart, vms: [web-0], notice: 2m, runs: 5s } }
  - { at: started restart + 1s, fault: { kind: status, status: 500, count: 2 } }
expect:
  - drains: restart
  - approves: restart
  - restores: restart
";

/// The agent of the example drains on advice, and has one rule for advice and eviction. './dev report-cards agent' plays
/// all scenarios, which takes minutes.
#[test]
fn agent_passes_scenarios() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("errors.yaml"), ERRORS).unwrap();
    let agent = root().join("examples/rehearse/agent.sh");
    let place = Path::new(binary()).parent().unwrap().display();
    let path = format!("{place}:{}", std::env::var("PATH").unwrap());
    let mut command = Command::new(binary());
    command.env("PATH", path).current_dir(dir.path()).args([
        "--output",
        "json",
        "rehearse",
        "doctor",
        "--compress",
        "1000",
    ]);
    let advice = ["advisory-preempt", "advisory-nothing", "advisory-date"];
    for scenario in ["user-reboot", "other-vm-only", "two-events", "errors.yaml"].iter().chain(&advice) {
        command.args(["--only", scenario]);
    }
    let output = command.args(["--drained", "call", "--restored", "call", "--"]).arg(agent).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stdout}");
    let card: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let note = |scenario: &str, beginning: &str| {
        let reports = card["reports"].as_array().unwrap();
        let report = reports.iter().find(|report| report["verdict"]["scenario"] == scenario).unwrap();
        let findings = report["verdict"]["findings"].as_array().unwrap();
        let is_it = |one: &&serde_json::Value| one["expectation"].as_str().unwrap().starts_with(beginning);
        findings.iter().find(is_it).unwrap()["note"].as_str().unwrap().to_owned()
    };
    let drained = note("advisory-preempt", "web-0 is drained before eviction");
    assert!(drained.ends_with("before it was announced"), "{drained}");
    for scenario in ["advisory-nothing", "advisory-date"] {
        let restored = note(scenario, "web-0 is restored within");
        assert!(restored.starts_with("after "), "{restored}");
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
