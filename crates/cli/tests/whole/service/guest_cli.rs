//! `notbefore get` and `notbefore approve` against the real service in strict mode.

mod names;

use std::process::{Command, Output};

use crate::support::program::Program;
use crate::support::{Service, binary, first_event, free_address, wait_for};
use serde_json::Value;
use tempfile::TempDir;

/// Time limit for changes, including a restart of the service on a busy machine.
const WATCH_SECONDS_MAX: &str = "60";

/// Two VMs that share a document.
const FLEET: &str = "scopes:
  - name: web
    kind: availability-set
    vms:
      - { name: web-0, update_domain: 0, addresses: [127.0.1.1] }
      - { name: web-1, update_domain: 1, addresses: [127.0.1.2] }
";

/// A service with a bound listener per VM, at ports that stay the same after a restart.
fn service(data: &TempDir) -> Service {
    Service::start_in(data.path(), &[]).apply_fleet(FLEET);
    let listener = |vm: &str| format!("web/{vm}={}", free_address());
    let (first, second) = (listener("web-0"), listener("web-1"));
    let doors = ["--guest-vm", &first, "--guest-vm", &second];
    Service::start_in(data.path(), &[&doors[..], &["--strict", "--simulated-duration", "1h"]].concat())
}

/// Runs the command line as the VM of a listener.
fn guest(service: &Service, listener: usize, args: &[&str]) -> Output {
    let endpoint = format!("http://{}", service.guest_vms[listener]);
    let mut command = Command::new(binary());
    // An unreachable proxy must not be used.
    command.env("http_proxy", "http://127.0.0.1:9").env("HTTP_PROXY", "http://127.0.0.1:9");
    command.args(args).args(["--endpoint", &endpoint]).output().unwrap()
}

fn stdout_text(output: Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {out}{err}", output.status);
    out.into_owned()
}

fn refused(output: Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn json(output: Output) -> Value {
    serde_json::from_str(&stdout_text(output)).unwrap()
}

#[test]
fn get_and_approve_follow_event() {
    let data = tempfile::tempdir().unwrap();
    let service = service(&data);
    assert_eq!(stdout_text(guest(&service, 0, &["get"])), "no scheduled or started events\n");
    service.cli(&["event", "schedule", "--type", "reboot", "web-0"]);

    let table = stdout_text(guest(&service, 0, &["get"]));
    let lines: Vec<&str> = table.lines().collect();
    let head = [
        "EVENT",
        "TYPE",
        "STATUS",
        "NOT",
        "BEFORE",
        "MINE",
        "RESOURCES",
        "SOURCE",
        "DURATION",
        "DESCRIPTION",
    ];
    assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), head);
    let event = lines[1].split_whitespace().next().unwrap();
    for cell in ["Reboot", "Scheduled", "(in 1", " min)", "yes", "web-0", "Platform"] {
        assert!(lines[1].contains(cell), "{table}");
    }

    // The other VM of the scope sees the same event, marked as not its own.
    let seen = json(guest(&service, 1, &["get", "-o", "json"]));
    assert_eq!((&seen["vm"], &seen["api_version"]), (&"web-1".into(), &"2024-07-09".into()));
    assert_eq!(seen["events"][0]["id"], event);
    assert_eq!((&seen["events"][0]["mine"], &seen["events"][0]["type"]), (&false.into(), &"Reboot".into()));
    assert_eq!(
        stdout_text(guest(&service, 1, &["approve", "--all-mine"])),
        "no event of this VM waits for approval\n"
    );
    assert_eq!(
        json(guest(&service, 1, &["get", "-o", "json", "--name", "WEB-0"]))["events"][0]["mine"],
        true
    );

    assert_eq!(
        stdout_text(guest(&service, 0, &["approve", "--all-mine"])),
        format!("event {event}: approved\n")
    );
    assert_eq!(json(guest(&service, 0, &["get", "-o", "json"]))["events"][0]["status"], "Started");
    assert_eq!(
        stdout_text(guest(&service, 0, &["approve", "--all-mine"])),
        "no event of this VM waits for approval\n"
    );
    // Again by id: the platform answers 200 for a started event.
    assert_eq!(json(guest(&service, 0, &["approve", event, "-o", "json"]))[0]["outcome"], "approved");
    service.cli(&["event", "complete", event]);
    assert_eq!(json(guest(&service, 0, &["get", "-o", "json"]))["events"], Value::Array(vec![]));
}

#[test]
fn raw_document_is_unchanged_at_every_version() {
    let data = tempfile::tempdir().unwrap();
    let service = service(&data);
    service.cli(&["event", "schedule", "--type", "freeze", "web-0"]);
    for version in ["2017-03-01", "2019-01-01", "2020-07-01", "2024-07-09"] {
        let raw = stdout_text(guest(&service, 0, &["get", "--raw", "--api-version", version]));
        assert_eq!(raw, service.poll([127, 0, 1, 1].into(), version).body, "{version}");
    }
    let old = json(guest(&service, 0, &["get", "-o", "json", "--api-version", "2017-03-01"]));
    assert_eq!(old["events"][0]["resources"][0], "web-0", "without the underscore");
    assert_eq!(old["events"][0]["mine"], true);
    assert_eq!(old["events"][0]["source"], Value::Null);
    let event = first_event(&service.poll([127, 0, 1, 1].into(), "2020-07-01").json());
    assert_eq!(
        json(guest(
            &service,
            0,
            &["approve", &event.to_lowercase(), "-o", "json", "--api-version", "2017-08-01"]
        ))[0]["outcome"],
        "approved"
    );
}

#[test]
fn approve_accepts_id_prefix_and_refuses_unknown_event() {
    let data = tempfile::tempdir().unwrap();
    let service = service(&data);
    let unknown = "602D9444-D2CD-49C7-8624-8643E7171297";
    let stderr = refused(guest(&service, 0, &["approve", unknown]), 1);
    assert!(stderr.contains(&format!("event {unknown} was not approved")), "{stderr}");
    assert!(stderr.contains("no such event; scheduled events: none"), "{stderr}");

    service.cli(&["event", "schedule", "--type", "reboot", "web-0"]);
    service.cli(&["event", "schedule", "--type", "reboot", "web-1"]);
    let ids = || -> Vec<(String, String)> {
        let seen = json(guest(&service, 0, &["get", "-o", "json"]));
        let text = |event: &Value, key: &str| event[key].as_str().unwrap().to_owned();
        let events = seen["events"].as_array().unwrap().iter();
        events.map(|event| (text(event, "id"), text(event, "status"))).collect()
    };
    let [(first, _), (second, _)] = ids().try_into().unwrap();
    // An empty text, as from an unset variable, and a very short prefix match no event.
    for not_an_id in ["", &first[..3], unknown, "no-such-event"] {
        let stderr = refused(guest(&service, 0, &["approve", not_an_id]), 1);
        assert!(stderr.contains(&first) && stderr.contains(&second), "{not_an_id:?}: {stderr}");
    }
    assert!(ids().iter().all(|(_, status)| status == "Scheduled"), "{:?}", ids());

    // The id as operator commands print it. Another, invalid id does not prevent its approval.
    let outcome = guest(&service, 0, &["approve", &first[..8].to_lowercase(), unknown]);
    assert_eq!(String::from_utf8_lossy(&outcome.stdout), format!("event {first}: approved\n"));
    assert!(refused(outcome, 1).contains(unknown));
    assert_eq!(ids().iter().filter(|(_, status)| status == "Started").count(), 1, "{:?}", ids());
    service.cli(&["event", "complete", &first]);
    assert!(refused(guest(&service, 0, &["approve", &first]), 1).contains(&second), "it is over");
}

#[test]
fn errors_have_exit_codes() {
    let data = tempfile::tempdir().unwrap();
    let service = service(&data);
    for (args, expected) in [
        (&["approve"][..], "required"),
        (&["approve", "a", "--all-mine"], "cannot be used with"),
        (&["get", "--api-version", "latest"], "known versions: 2017-03-01"),
        (&["get", "--raw", "--watch"], "cannot be used with"),
        (&["get", "--count", "1"], "--watch"),
        (&["get", "--name", ""], "value is required"),
    ] {
        let stderr = refused(guest(&service, 0, args), 2);
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
    }
    let bad = Command::new(binary()).args(["get", "--endpoint", "https://169.254.169.254"]).output().unwrap();
    assert!(refused(bad, 2).contains("plain HTTP only"));
    let bad =
        Command::new(binary()).args(["get", "--endpoint", "http://127.0.0.1:9254/events"]).output().unwrap();
    assert!(refused(bad, 2).contains("it has a path"));
    let whole = format!("http://{}/metadata/scheduledevents?api-version=2020-07-01", service.guest_vms[0]);
    stdout_text(Command::new(binary()).args(["get", "--endpoint", &whole]).output().unwrap());
    let closed = free_address().to_string();
    let there = Command::new(binary()).args(["get", "--endpoint", &closed]).output().unwrap();
    assert!(refused(there, 1).contains("cannot connect"), "nothing listens there");
    // An unknown caller is refused, and does not see an empty document.
    let unknown =
        Command::new(binary()).args(["get", "--endpoint", &service.guest.to_string()]).output().unwrap();
    let stderr = refused(unknown, 1);
    assert!(stderr.contains("403 Forbidden") && stderr.contains("refuses this VM"), "{stderr}");
    assert!(stderr.contains("'notbefore vm add NAME --address ADDRESS'"), "{stderr}");
}

#[test]
fn changes_stream_survives_service_restart() {
    let data = tempfile::tempdir().unwrap();
    let service = service(&data);
    let mut command = Command::new("timeout");
    let endpoint = service.guest_vms[1].to_string();
    command.args(["--kill-after=1", WATCH_SECONDS_MAX, binary()]);
    // With --name, no change is printed again when the metadata is slow.
    command.args([
        "get",
        "--watch",
        "--count",
        "4",
        "-o",
        "json",
        "--name",
        "web-1",
        "--endpoint",
        &endpoint,
    ]);
    let mut watching = Program::start(command);
    let mut next = || serde_json::from_str::<Value>(&watching.wait_for_line(&[])).unwrap();
    // The first poll enables notice.
    wait_for("the first poll", || service.cli(&["vm", "show", "web-1"]).contains("listening").then_some(()));
    service.cli(&["event", "schedule", "--type", "reboot", "web-1"]);
    let change = next();
    assert_eq!((&change["change"], &change["event"]["mine"]), (&"appeared".into(), &true.into()));
    let event = change["event"]["id"].as_str().unwrap().to_owned();
    let service = service.restart();
    service.cli(&["event", "start", &event]);
    assert_eq!(next()["change"], "started");
    service.cli(&["event", "complete", &event]);
    assert_eq!(next()["change"], "gone");
    service.cli(&["event", "schedule", "--type", "freeze", "web-0"]);
    let change = next();
    assert_eq!((&change["change"], &change["event"]["mine"]), (&"appeared".into(), &false.into()));
    watching.assert_success();
}
