//! Export and import: a service moves to another data directory while guests poll, operators work and events are live,
//! without a visible change.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use crate::support::{Service, binary, first_event, wait_for};
use serde_json::Value;

const FLEET: &str = "scopes:
  - name: web
    kind: availability-set
    vms:
      - { name: web-0, update_domain: 0, addresses: [127.1.20.1], host: h1 }
      - { name: web-1, update_domain: 1, addresses: [127.1.20.2], host: h1, instance: { vm_size: Standard_D2s_v3 } }
  - name: db
    kind: standalone
    vms: [ { name: db, addresses: [127.1.20.3], host: h1 } ]
  - name: cache
    kind: standalone
    vms: [ { name: cache, addresses: [127.1.20.4] } ]
  - name: batch
    kind: scale-set
    terminate_notification: 5m
    vms:
      - { name: batch_0, spot: true, addresses: [127.1.20.5] }
      - { name: batch_1, spot: true, addresses: [127.1.20.6] }
";

/// A tenth of the default notice: an eviction is due after 3 seconds. Started events stay Started.
const FLAGS: [&str; 4] = ["--notice", "0.1", "--simulated-duration", "1h"];

const GUESTS: u8 = 6;

fn guest(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 1, 20, n)
}

fn import(arguments: &[&str]) -> Output {
    Command::new(binary()).arg("import").args(arguments).env_remove("NOTBEFORE_DATA").output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn exported_service_resumes_after_import() {
    let temp = tempfile::tempdir().unwrap();
    let (file, data) = (temp.path().join("backup.jsonl"), temp.path().join("new"));
    let mut old = Service::start(&FLAGS);
    old.apply_fleet(FLEET);
    // A poll enables the scope: user operations give notice.
    let versions = ["2017-03-01", "2019-08-01", "2020-07-01"];
    for n in 1..=GUESTS {
        assert_eq!(old.poll(guest(n), "2020-07-01").status, 200);
    }
    let desk = old.cli_json(&["token", "create", "desk", "--role", "viewer", "--on", "/"]);
    let desk = desk["secret"].as_str().unwrap().to_owned();
    // Scheduled over two scopes, and approved by one of them.
    let reboot = ["event", "schedule", "--cause", "host-reboot", "web-0", "web-1", "db", "--in", "1h"];
    let reboot = old.cli_json(&reboot)["id"].as_str().unwrap().to_owned();
    for event in old.poll(guest(1), "2020-07-01").json()["Events"].as_array().unwrap() {
        assert_eq!(old.approve(guest(1), event["EventId"].as_str().unwrap()).status, 200);
    }
    // One started, one cancelled, one completed event.
    old.cli(&["vm", "restart", "cache"]);
    let started = first_event(&old.poll(guest(4), "2020-07-01").json());
    assert_eq!(old.approve(guest(4), &started).status, 200);
    let redeploy =
        old.cli_json(&["vm", "redeploy", "db"])["targets"][0]["event"].as_str().unwrap().to_owned();
    old.cli(&["event", "cancel", &redeploy]);
    let body = "{\"cause\":\"user-redeploy\",\"vms\":[\"batch_1\"]}";
    let key = "Idempotency-Key: moved\r\n";
    let asked = old.operator_request("POST", "/v1/events", key, body);
    assert_eq!(asked.status, 201, "{asked:?}");
    let done = first_event(&old.poll(guest(6), "2020-07-01").json());
    old.cli(&["event", "start", &done]);
    old.cli(&["event", "complete", &done, "--host", "batch_1=h9"]);
    // Due in three seconds, under the old or the new service.
    let incarnation = |document: &Value| document["DocumentIncarnation"].as_u64().unwrap();
    let before_eviction = incarnation(&old.poll(guest(5), "2020-07-01").json());
    let evicted = old.cli_json(&["vm", "evict", "batch_0"])["targets"][0]["event"].clone();

    let documents = |service: &Service, n: u8| versions.map(|version| service.poll(guest(n), version).body);
    let before: Vec<_> = (1..=4).map(|n| documents(&old, n)).collect();
    let lists = [["event", "history", "--since", "1h"].as_slice(), &["operation", "show", &reboot]];
    let listed = lists.map(|args| old.cli_json(args));
    let shown = old.cli_json(&["vm", "show", "web-1"]);
    let stdout = old.cli(&["export", text(&file)]);
    assert!(stdout.contains("complete and verified"), "{stdout}");
    old.kill();

    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let output = import(&[text(&file), "--data", text(&data)]);
    assert!(output.status.success(), "{output:?}");
    // With the token file, the first token stays valid.
    std::fs::copy(old.data().join("operator.token"), data.join("operator.token")).unwrap();
    let new = Service::start_in(&data, &FLAGS);

    for (n, before) in (1..=4).zip(&before) {
        assert_eq!(documents(&new, n), *before, "guest {n} reads something else");
    }
    let begun = wait_for("the eviction to begin", || {
        let document = new.poll(guest(5), "2020-07-01").json();
        (document["Events"][0]["EventStatus"] == "Started").then_some(document)
    });
    assert_eq!(first_event(&begun).to_lowercase(), evicted);
    assert_eq!(incarnation(&begun), before_eviction + 2, "announced and begun once each");
    for (args, before) in lists.iter().zip(listed) {
        assert_eq!(new.cli_json(args), before, "{args:?}");
    }
    for field in ["id", "revision", "addresses", "host", "update_domain"] {
        assert_eq!(new.cli_json(&["vm", "show", "web-1"])[field], shown[field], "{field}");
    }
    // A token stays valid with the same rights.
    let run_as_desk = |args: &[&str]| {
        let mut command = Command::new(binary());
        command.args(args).env("NOTBEFORE_DATA", new.data()).env("NOTBEFORE_TOKEN", &desk);
        command.output().unwrap()
    };
    assert!(run_as_desk(&["vm", "show", "web-1"]).status.success());
    let refused = String::from_utf8(run_as_desk(&["export"]).stderr).unwrap();
    assert!(refused.contains("needs the role operator everywhere"), "{refused}");
    // The same request with the same key, after the move, returns the same operation.
    let again = new.operator_request("POST", "/v1/events", key, body);
    assert_eq!((again.status, &again.json()["id"]), (asked.status, &asked.json()["id"]));
    assert_eq!(new.approve(guest(6), &done).status, 200, "a late approval is known too");
    // The operation that waited for one more approval still waits, and starts with it.
    let last = first_event(&new.poll(guest(3), "2020-07-01").json());
    assert_eq!(new.approve(guest(3), &last).status, 200);
    wait_for("the operation to begin", || {
        // Which of its two update domains goes first depends on their events' ids.
        let web = new.poll(guest(1), "2020-07-01").json();
        let mut events = web["Events"].as_array().into_iter().flatten();
        events.any(|event| event["EventStatus"] == "Started").then_some(())
    });
}

/// Every export under load is a consistent snapshot: it has all changes acknowledged before it began, and a later
/// change only with all earlier ones.
#[test]
fn export_under_load_is_consistent() {
    let service = Service::start(&["--notice", "0.1"]);
    service.apply_fleet(FLEET);
    let (stop, made) = (AtomicBool::new(false), AtomicUsize::new(0));
    let exports: Vec<(usize, String)> = std::thread::scope(|threads| {
        threads.spawn(|| {
            while !stop.load(SeqCst) {
                let n = made.load(SeqCst);
                let body = format!(
                    "{{\"scope\":\"load-{n}\",\"vm\":{{\"name\":\"load-{n}\",\"addresses\":[\"10.9.{}.{}\"]}}}}",
                    n / 250,
                    n % 250
                );
                let added = service.operator_request("POST", "/v1/vms", "", &body);
                assert_eq!(added.status, 201, "{added:?}");
                made.store(n + 1, SeqCst);
            }
        });
        threads.spawn(|| {
            while !stop.load(SeqCst) {
                let body = "{\"cause\":\"host-reboot\",\"vms\":[\"web-0\",\"web-1\",\"db\"]}";
                let asked = service.operator_request("POST", "/v1/events", "", body);
                assert_eq!(asked.status, 201, "{asked:?}");
                let operation = asked.json()["id"].as_str().unwrap().to_owned();
                let cancel = format!("/v1/operations/{operation}/cancel");
                assert!(service.operator_request("POST", &cancel, "", "").status < 300);
            }
        });
        let exports = (0..8)
            .map(|n| {
                wait_for("the load to go on", || (made.load(SeqCst) >= n * 5).then_some(()));
                let before = made.load(SeqCst);
                (before, service.cli(&["export"]))
            })
            .collect();
        stop.store(true, SeqCst);
        exports
    });
    for (before, text) in exports {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("export.jsonl");
        std::fs::write(&file, &text).unwrap();
        let checked = import(&["--check", file.to_str().unwrap()]);
        assert!(checked.status.success(), "{checked:?}");
        assert_consistent(&text, before);
    }
}

fn assert_consistent(text: &str, made_before: usize) {
    let records: BTreeMap<String, Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|mut line| Some((line["key"].as_str()?.to_owned(), line["value"].take())))
        .collect();
    let of = |kind: &str| {
        let kind = kind.to_owned();
        records.iter().filter(move |(key, _)| key.starts_with(&kind))
    };
    let loads = of("scope/default/default/load-").count();
    assert!(loads >= made_before, "{made_before} were made before, {loads} are there");
    for n in 0..loads {
        assert!(
            records.contains_key(&format!("scope/default/default/load-{n}")),
            "{n} of {loads} is missing"
        );
    }
    let mut members = BTreeSet::new();
    for (key, scope) in of("scope/") {
        for member in scope["members"].as_array().unwrap() {
            let vm = member["vm"].as_str().unwrap();
            assert!(records.contains_key(&format!("vm/{vm}")), "{key} has a VM without a record");
            members.insert(vm.to_owned());
        }
        for event in scope["events"].as_array().unwrap() {
            let operation = event["operation"].as_str().unwrap();
            assert!(records.contains_key(&format!("operation/{operation}")), "{key} has an event of nothing");
        }
    }
    assert_eq!(of("vm/").count(), members.len());
    for (key, vm) in of("claim/") {
        assert!(members.contains(vm.as_str().unwrap()), "{key} has no owner");
    }
    // An ended event is in the history exactly when its scope no longer has it.
    let past: BTreeSet<&str> = of("past/").map(|(key, _)| &key["past/".len()..]).collect();
    let ended: BTreeSet<&str> = of("ended/").map(|(key, _)| key.rsplit('/').next().unwrap()).collect();
    assert_eq!(past, ended);
}

#[test]
fn transfer_errors_name_fix() {
    let service = Service::start(&[]);
    let temp = tempfile::tempdir().unwrap();
    let (file, data) = (temp.path().join("backup.jsonl"), temp.path().join("data"));
    service.cli(&["export", text(&file)]);
    service.cli(&["export", text(&file)]);
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1, "an export leaves nothing beside itself");

    // Something that is not a regular file, such as /dev/null, is not replaced.
    let socket = temp.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let stderr = service.cli_refused(&["export", text(&socket)]);
    assert!(stderr.contains("exists and is not a regular file") && !socket.is_file(), "{stderr}");

    let refused = |arguments: &[&str]| {
        let output = import(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let running = refused(&[text(&file), "--data", text(service.data())]);
    assert!(running.contains("exists already; choose another --data, or move it away first"), "{running}");
    let whole = std::fs::read_to_string(&file).unwrap();
    let cut = temp.path().join("cut.jsonl");
    std::fs::write(&cut, &whole[..whole.len() - 10]).unwrap();
    for arguments in [&[text(&cut), "--data", text(&data)][..], &["--check", text(&cut)]] {
        let stderr = refused(arguments);
        assert!(
            stderr.contains(text(&cut)) && stderr.contains("it was cut off; use a whole one"),
            "{stderr}"
        );
    }
    assert!(!data.join("store.redb").exists());
    assert!(refused(&["/nonexistent", "--data", text(&data)]).contains("cannot read /nonexistent"));

    // Without tokens only the new first token is valid.
    service.cli(&["export", text(&file), "--without-tokens"]);
    assert!(!std::fs::read_to_string(&file).unwrap().contains("\"key\":\"token/"));
    assert!(import(&[text(&file), "--data", text(&data)]).status.success());
    let moved = Service::start_in(&data, &[]);
    let vms = moved.cli_json(&["vm", "list"]);
    assert_eq!((vms.as_array().unwrap().len(), &vms[0]["first_run"]), (1, &Value::Bool(true)));
    assert_eq!(vms[0]["id"], service.cli_json(&["vm", "list"])[0]["id"]);

    let unknown = service.operator_request("GET", "/v1/export?secrets=yes", "", "");
    assert_eq!((unknown.status, unknown.json()["code"].as_str()), (400, Some("bad_query")));
}
