//! Lists of the command line: order, filters, short ids, formats, `--watch`, and completion of names.

use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::terminal::{run_at_columns, run_at_terminal};
use crate::support::{Service, binary};

/// VMs and hosts whose names differ in a number.
const FLEET: &str = "scopes:
  - name: web
    kind: availability-set
    vms:
      - { name: web-10, update_domain: 0, addresses: [127.1.60.1], host: h10 }
      - { name: web-2, update_domain: 1, addresses: [127.1.60.2], host: h2 }
      - { name: web-1, update_domain: 2, addresses: [127.1.60.3], host: h1 }
  - name: db
    kind: standalone
    vms: [ { name: db, addresses: [127.1.60.4] } ]
";

fn service() -> Service {
    let service = Service::start(&["--driver", "manual"]);
    service.apply_fleet(FLEET);
    service
}

/// The values of a field.
fn column(list: &Value, field: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item[field].as_str().unwrap().to_owned()).collect()
}

fn announce(service: &Service, vm: &str, event_type: &str, within: &str) -> Value {
    service.cli_json(&["event", "schedule", "--type", event_type, vm, "--in", within])
}

#[test]
fn names_are_in_natural_order_on_every_page() {
    let service = service();
    assert_eq!(column(&service.cli_json(&["host", "list"]), "host"), ["h1", "h2", "h10"]);
    let vms = service.cli_json(&["vm", "list"]);
    assert_eq!(column(&vms, "name"), ["db", "web-1", "web-2", "web-10"]);
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = service.operator_request("GET", &format!("/v1/vms?limit=1{cursor}"), "", "").json();
        names.extend(column(&page["items"], "name"));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(names, ["db", "web-1", "web-2", "web-10"]);
    assert_eq!(column(&service.cli_json(&["vm", "list", "--limit", "2"]), "name"), ["db", "web-1"]);
}

#[test]
fn rows_of_the_same_time_are_in_natural_order_of_names() {
    let service = service();
    let hosts = ["h10", "h2", "h1"];
    service
        .cli(&[&["host", "maintain", "--type", "reboot", "--not-before", "2099-01-01"], &hosts[..]].concat());
    for (list, names) in [("event", ["web-1", "web-2", "web-10"]), ("operation", ["h1", "h2", "h10"])] {
        let shown = service.cli(&[list, "list"]);
        let places = names.map(|name| shown.find(&format!(" {name} ")).unwrap());
        assert!(places.is_sorted(), "{shown}");
    }
}

#[test]
fn events_and_operations_are_in_order_of_time() {
    let service = service();
    for (vm, within) in [("web-10", "3h"), ("web-1", "1h"), ("db", "2h")] {
        announce(&service, vm, "reboot", within);
    }
    let vm_of = |list: &Value| -> Vec<String> {
        let events = list.as_array().unwrap().iter();
        events.map(|event| event["resources"][0]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(vm_of(&service.cli_json(&["event", "list"])), ["web-1", "db", "web-10"]);
    assert_eq!(vm_of(&service.cli_json(&["event", "list", "--sort", "scope"]))[0], "db");
    assert_eq!(vm_of(&service.cli_json(&["event", "list", "--scope", "web"])), ["web-1", "web-10"]);
    let operations = service.cli_json(&["operation", "list"]);
    let vms: Vec<&Value> =
        operations.as_array().unwrap().iter().map(|one| &one["targets"][0]["resources"][0]["name"]).collect();
    assert_eq!(vms, [&json!("web-1"), &json!("db"), &json!("web-10")]);

    // Pages of one, in both lists.
    for list in ["events?sort=time", "operations?"] {
        let (mut ids, mut cursor) = (Vec::new(), String::new());
        loop {
            let target = format!("/v1/{list}&limit=1{cursor}").replace("?&", "?");
            let page = service.operator_request("GET", &target, "", "").json();
            ids.extend(column(&page["items"], "id"));
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let noun = &list[..list.find('s').unwrap()];
        assert_eq!(ids, column(&service.cli_json(&[noun, "list"]), "id"), "{list}");
    }

    // A started event comes first, also with a later NotBefore.
    let last = &service.cli_json(&["event", "list"])[2]["id"];
    service.cli(&["event", "start", last.as_str().unwrap()]);
    assert_eq!(vm_of(&service.cli_json(&["event", "list"])), ["web-10", "web-1", "db"]);
}

#[test]
fn filters_select_and_name_what_is_unknown() {
    let service = service();
    service.cli(&["host", "maintain", "h2", "--type", "freeze", "--in", "1h"]);
    announce(&service, "db", "reboot", "1h");
    let count = |words: &[&str]| service.cli_json(words).as_array().unwrap().len();
    assert_eq!(count(&["event", "list"]), 2);
    assert_eq!(count(&["event", "list", "--host", "h2"]), 1);
    assert_eq!(count(&["event", "list", "--host", "h1"]), 0);
    assert_eq!(count(&["event", "list", "--type", "Reboot"]), 1);
    assert_eq!(count(&["event", "list", "--type", "reboot", "--host", "h2"]), 0);
    assert_eq!(count(&["operation", "list", "--host", "h2"]), 1);
    assert_eq!(count(&["operation", "list", "--type", "freeze"]), 1);
    for (words, expected) in [
        (&["event", "list", "--host", "h22"][..], "did you mean h2"),
        (&["vm", "list", "--host", "h22"], "did you mean h2"),
        (&["operation", "list", "--host", "h22"], "did you mean h2"),
        (&["event", "list", "--scope", "wib"], "unknown_scope"),
        (&["event", "list", "--type", "rebot"], "a similar value exists: 'reboot'"),
        (&["operation", "list", "--type", "rebot"], "a similar value exists: 'reboot'"),
        (&["event", "list", "--sort", "name"], "[possible values: scope, time]"),
    ] {
        let refused = service.cli_refused(words);
        assert!(refused.contains(expected), "{words:?}: {refused}");
    }
    // A tenant is not told of hosts.
    let token =
        service.cli_json(&["token", "create", "db", "--role", "tenant", "--on", "default/default/db"]);
    let asks = |host: &str| {
        let target = format!("/v1/events?host={host}");
        let answer = service.request_with(token["secret"].as_str().unwrap(), "GET", &target, "", "");
        (answer.status, answer.body.replace(host, "HOST"))
    };
    assert_eq!(asks("h2"), asks("h9"));
    assert_eq!(asks("h2").0, 403);
}

#[test]
fn short_ids_name_events_and_operations_also_after_their_end() {
    let service = service();
    let made = announce(&service, "db", "reboot", "1h");
    let operation = made["id"].as_str().unwrap();
    let event = made["targets"][0]["event"].as_str().unwrap();
    for _ in 0..2 {
        for (noun, id) in [("event", event), ("operation", operation)] {
            for digits in [8, 13, 23, 36] {
                assert_eq!(service.cli_json(&[noun, "show", &id[..digits]])["id"], *id, "{noun} {digits}");
            }
            let refused = service.cli_refused(&[noun, "show", &id[..3]]);
            assert!(refused.contains(&format!("unknown_{noun}")), "{refused}");
        }
        // Repeat with the ended event: the second cancellation is refused, the first ends it.
        service.run(&["operation", "cancel", &operation[..8], "--yes"]);
    }
    // Ids of others do not exist, not even by their first digits.
    let token =
        service.cli_json(&["token", "create", "web", "--role", "tenant", "--on", "default/default/web"]);
    for target in [format!("/v1/events/{}", &event[..8]), format!("/v1/operations/{}", &operation[..8])] {
        assert_eq!(
            service.request_with(token["secret"].as_str().unwrap(), "GET", &target, "", "").status,
            404
        );
    }
}

#[test]
fn formats_show_the_same_list() {
    let service = service();
    let json = service.cli(&["vm", "list", "-o", "json"]);
    let yaml = service.cli(&["vm", "list", "-o", "yaml"]);
    let parsed: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), parsed);
    let names = service.cli(&["vm", "list", "-o", "name"]);
    assert_eq!(names.lines().collect::<Vec<_>>(), column(&parsed, "path"));
    let wide = service.cli(&["vm", "list", "-o", "wide"]);
    assert!(wide.lines().next().unwrap().ends_with("ID"), "{wide}");
    assert!(wide.contains(parsed[0]["id"].as_str().unwrap()), "{wide}");
    assert_eq!(service.cli(&["vm", "list"]), service.cli(&["vm", "list", "-o", "table"]));
    let refused = service.run(&["status", "-o", "name"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn table_is_fitted_and_coloured_at_a_terminal_only() {
    let service = service();
    let made = announce(&service, "db", "reboot", "1h");
    let event = made["targets"][0]["event"].as_str().unwrap();
    service.cli(&["event", "start", event]);
    let piped = service.cli(&["event", "list"]);
    assert!(piped.contains(event) && !piped.contains('\x1b'), "{piped}");
    let seen = run_at_terminal(&service, &["event", "list"], "").text;
    assert!(
        !seen.contains(event) && seen.contains(&event[..8]) && seen.contains("\x1b[33mStarted"),
        "{seen}"
    );
}

#[test]
fn tables_fit_narrow_terminals() {
    let service = service();
    let made = announce(&service, "db", "reboot", "30m");
    let (operation, event) = (made["id"].as_str().unwrap(), made["targets"][0]["event"].as_str().unwrap());
    announce(&service, "web-1", "freeze", "30m");
    for command in [
        &["vm", "list"][..],
        &["host", "list"],
        &["event", "list"],
        &["operation", "list"],
        &["token", "list"],
        &["fleet", "show"],
        &["audit"],
        &["event", "cancel", event, "--dry-run"],
        &["host", "maintain", "h1", "--type", "reboot", "--dry-run"],
    ] {
        for columns in [80, 45] {
            let shown = run_at_columns(&service, command, columns)
                .text
                .replace("\x1b[33m", "")
                .replace("\x1b[0m", "");
            // Tables only: sentences may wrap.
            let rows = shown.lines().skip_while(|line| line.trim_start() != line.trim_start().to_uppercase());
            let (longest, row) = rows.map(|row| (row.chars().count(), row)).max().unwrap();
            assert!(longest <= columns, "{command:?} at {columns}: {row:?}");
        }
    }
    let status = run_at_columns(&service, &["status"], 45).text;
    let table: Vec<&str> = status.lines().skip(1).take(3).collect();
    assert!(table[0].starts_with("  WHEN") && table[0].contains("WHERE"), "{status}");
    assert!(table.iter().all(|row| row.chars().count() <= 45), "{status}");
    let shown = run_at_columns(&service, &["operation", "show", operation], 45).text;
    let table = shown.lines().skip_while(|line| !line.starts_with("EVENT"));
    assert!(table.count() == 2 && shown.contains(&event[..8]) && !shown.contains(event), "{shown}");
}

#[test]
fn local_time_is_shown_wherever_people_read_times() {
    let service = service();
    service.cli(&["vm", "add", "here", "--address", "127.0.0.1"]);
    let made = announce(&service, "here", "reboot", "30m");
    let (operation, event) = (made["id"].as_str().unwrap(), made["targets"][0]["event"].as_str().unwrap());
    let guest = format!("http://{}", service.guest);
    let run = |words: &[&str]| {
        let mut command = Command::new(binary());
        command.args(words).arg("--local-time").env("TZ", "NPT-5:45").env("NOTBEFORE_DATA", service.data());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let utc = regex_lite::Regex::new(r"\d\d:\d\d(\.\d+)?Z").unwrap();
    for command in [
        &["get", "--endpoint", &guest][..],
        &["status"],
        &["event", "list"],
        &["event", "show", event],
        &["operation", "list"],
        &["operation", "show", operation],
        &["vm", "show", "here"],
        &["vm", "log", "here"],
        &["token", "list"],
        &["clock", "show"],
        &["audit"],
    ] {
        let text = run(command);
        assert!(text.contains("+05:45") && !utc.is_match(&text), "{command:?}: {text}");
        let json = run(&[command, &["-o", "json"]].concat());
        assert!(!json.contains("+05:45"), "{command:?}: {json}");
    }
}

#[test]
fn watch_shows_the_list_again() {
    let service = service();
    let shown = service.cli(&["host", "list", "--watch", "--count", "1"]);
    assert_eq!(shown, service.cli(&["host", "list"]));
    let shown = service.cli(&["status", "--watch", "--count", "2", "-o", "json"]);
    assert_eq!(shown.matches("\"next\"").count(), 2, "{shown}");
}

/// What bash offers for the last word.
fn completions(service: &Service, words: &[&str]) -> String {
    let script = service.data().join("completions");
    std::fs::write(&script, service.cli(&["completions", "bash"])).unwrap();
    let typed = format!(
        "source {}; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _notbefore_names \"$1\" \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; printf '%s ' \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let mut bash = Command::new("bash");
    bash.args(["-c", &typed, "bash", binary()]).args(words).env("NOTBEFORE_DATA", service.data());
    // The machine may be busy.
    bash.env("NOTBEFORE_COMPLETION_MS", "60000");
    let output = bash.output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn shell_completes_names_of_the_service() {
    let mut service = service();
    let made = announce(&service, "db", "reboot", "1h");
    let (operation, event) = (made["id"].as_str().unwrap(), made["targets"][0]["event"].as_str().unwrap());
    assert_eq!(completions(&service, &["vm", "show", "web"]), "web-1 web-10 web-2 ");
    assert_eq!(completions(&service, &["vm", "list", "--host", "h1"]), "h1 h10 ");
    assert_eq!(completions(&service, &["event", "show", &event[..4]]).trim(), event);
    assert_eq!(completions(&service, &["operation", "wait", ""]).trim(), operation);
    assert!(completions(&service, &["vm", "sh"]).contains("show"));
    assert!(completions(&service, &["vm", "show", "--ou"]).contains("--output"));
    assert_eq!(completions(&service, &["event", "list", "--type", "re"]), "reboot redeploy ");
    let here = service.data().join("my-fle");
    std::fs::write(here.with_extension("yaml"), "").unwrap();
    let file = format!("{} ", here.with_extension("yaml").display());
    for words in [&["fleet", "apply"][..], &["fleet", "apply", "--prune"], &["import"]] {
        assert_eq!(completions(&service, &[words, &[here.to_str().unwrap()]].concat()), file, "{words:?}");
    }
    // No agent runs here; events of the service are not offered for it.
    assert_eq!(completions(&service, &["agent", "retry", &event[..4]]).trim(), "");
    // Without a service there are no names, and no message.
    service.kill();
    assert_eq!(completions(&service, &["vm", "show", "web"]).trim(), "");
}

#[test]
fn completion_does_not_wait_for_a_silent_service() {
    let service = service();
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let output = service.run(&["complete-names", "vms", "--within", "1", "--operator-url", &url]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
}

#[test]
fn document_and_summary_in_each_format() {
    let service = Service::start(&["--simulated-duration", "0s"]);
    let vm = service.cli_json(&["vm", "list"])[0]["name"].as_str().unwrap().to_owned();
    let document = ["vm", "document", &vm, "--output", "yaml"];
    let yaml = service.cli(&document);
    assert!(yaml.contains("DocumentIncarnation: ") && !yaml.contains("RawValue"), "{yaml}");
    let summary = ["event", "history", "--summary"];
    for args in [&document[..3], &summary[..]] {
        let refused = service.cli_refused(&[args, &["--output", "name"]].concat());
        assert!(refused.contains("this command prints no names"), "{refused}");
    }
    assert_eq!(service.cli(&summary), "no events ended in that time\n");
    let made = service.cli_json(&["event", "schedule", "--type", "freeze", &vm, "--in", "1h"]);
    service.cli(&["event", "cancel", made["targets"][0]["event"].as_str().unwrap()]);
    let shown = service.cli(&summary);
    assert!(shown.ends_with("none was approved\n"), "{shown}");
}
