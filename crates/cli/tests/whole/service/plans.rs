//! Plans and confirmations: what a destructive command shows, when it asks, when it requires `--yes`, and that it does
//! what it has shown.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Output;

use crate::support::terminal::{run_at_terminal, run_at_terminal_while};
use crate::support::{Service, binary, wait_for};
use serde_json::{Value, json};

const FLEET: &str = "
scopes:
  - { name: web, kind: availability-set, vms: [ { name: web-0, addresses: [10.0.0.1] }, { name: web-1, update_domain: 1 } ] }
  - { name: db, kind: standalone, vms: [ { name: db } ] }
";

/// Another web-0, no web-1, no db, and a new scope with web-0's address.
const SMALLER: &str = "
scopes:
  - { name: new, kind: standalone, vms: [ { name: new, addresses: [10.0.0.1] } ] }
  - { name: web, kind: availability-set, automatically_approve_reboot: true, vms: [ { name: web-0, update_domain: 3, addresses: [10.0.0.2] } ] }
";

fn file(service: &Service, name: &str, text: &str) -> String {
    let path: PathBuf = service.data().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A service with a fleet and a live event of web-1.
fn service_with_event() -> (Service, String) {
    let service = Service::start(&[]);
    service.apply_fleet(FLEET);
    let made = service.cli_json(&["event", "schedule", "--type", "reboot", "--in", "1h", "web-1"]);
    let event = made["targets"][0]["event"].as_str().unwrap().to_owned();
    (service, event)
}

fn vms(service: &Service) -> Vec<String> {
    let listed = service.cli_json(&["vm", "list"]);
    listed.as_array().unwrap().iter().map(|vm| vm["name"].as_str().unwrap().to_owned()).collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn diff_shows_scopes_vms_fields_and_live_events() {
    let (service, event) = service_with_event();
    let smaller = file(&service, "smaller.yaml", SMALLER);
    let before = service.cli_json(&["fleet", "show"]);
    let expected = format!(
        "~ default/default/web: 1 changed, 1 removed
    ~ automatically_approve_reboot false -> true
    - web-1
    ~ web-0: update_domain 0 -> 3, addresses 10.0.0.1 -> 10.0.0.2
- default/default/db: removed, 1 VM
    - db
+ default/default/new: created, 1 VM
    + new
! event {event} (Reboot of web-1 in default/default/web) is cancelled
scopes: 1 created, 1 changed, 1 removed; VMs: 1 added, 1 changed, 2 removed; live events: 1 ended
"
    );
    assert_eq!(service.cli(&["fleet", "diff", &smaller, "--prune"]), expected);
    let dry = service.cli(&["fleet", "apply", &smaller, "--prune", "--dry-run"]);
    assert_eq!(dry, format!("{expected}nothing was applied (--dry-run)\n"));
    let unpruned = service.cli(&["fleet", "diff", &smaller]);
    assert!(!unpruned.contains("removed") && !unpruned.contains("is cancelled"), "{unpruned}");

    let plan = service.cli_json(&["fleet", "diff", &smaller, "--prune"]);
    assert_eq!((&plan["differs"], &plan["refused"]), (&json!(true), &json!([])));
    let web = plan["scopes"].as_array().unwrap().iter().find(|one| one["scope"] == "default/default/web");
    let web = web.unwrap();
    assert_eq!(web["removed_vms"], json!(["web-1"]));
    assert_eq!(web["ended"][0]["event"], event.as_str());
    assert_eq!(
        web["changed_vms"][0]["fields"][0],
        json!({ "field": "update_domain", "from": "0", "to": "3" })
    );
    assert_eq!(service.cli_json(&["fleet", "show"]), before, "nothing has changed");

    let same = file(&service, "same.yaml", FLEET);
    assert_eq!(service.cli(&["fleet", "diff", &same, "--prune"]), "no differences in 2 scopes\n");
    assert_eq!(service.cli_json(&["fleet", "diff", &same])["differs"], false);
}

#[test]
fn diff_names_scopes_that_would_be_refused() {
    let (service, _) = service_with_event();
    let bad = "scopes:
  - { name: web, kind: scale-set, vms: [ { name: web-0 } ] }
  - { name: new, kind: standalone, vms: [ { name: new, addresses: [10.0.0.1] } ] }
  - { name: fine, kind: standalone, vms: [ { name: fine } ] }
";
    let bad = file(&service, "bad.yaml", bad);
    let output = service.run(&["fleet", "diff", &bad]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    assert!(stdout.contains("! default/default/web: refused: "), "{stdout}");
    assert!(
        stdout.contains(
            "! default/default/new: refused: address 10.0.0.1 of new is taken by default/default/web/web-0"
        ),
        "{stdout}"
    );
    assert!(stdout.contains("+ default/default/fine: created, 1 VM"), "{stdout}");
    assert!(stderr(&output).contains("2 of 3 scopes would be refused"), "{}", stderr(&output));
}

/// A scope that takes several transactions, with events of removed VMs, of kept VMs, and of both.
#[test]
fn change_matches_its_plan() {
    let service = Service::start(&[]);
    let scope = |vms: std::ops::Range<usize>, domain: usize| {
        let mut yaml = "scopes:\n  - name: big\n    kind: availability-set\n    vms:\n".to_owned();
        for n in vms {
            writeln!(
                yaml,
                "      - {{ name: v{n}, update_domain: {}, addresses: [10.9.0.{n}] }}",
                n % domain
            )
            .unwrap();
        }
        yaml
    };
    service.apply_fleet(&scope(0..150, 1));
    let schedule = |vms: &[&str]| {
        let made =
            service.cli_json(&[&["event", "schedule", "--type", "freeze", "--in", "1h"], vms].concat());
        made["targets"][0]["event"].as_str().unwrap().to_owned()
    };
    let [gone, both, left] = [&["v0", "v39"][..], &["v1", "v100"], &["v101"]].map(schedule);
    let smaller = file(&service, "smaller.yaml", &scope(40..200, 2));
    let plan = service.cli_json(&["fleet", "diff", "--prune", &smaller])["scopes"][0].clone();
    let count = |field: &str| plan[field].as_array().unwrap().len();
    assert_eq!(["added_vms", "changed_vms", "removed_vms", "ended"].map(count), [50, 55, 40, 1]);
    assert_eq!(plan["ended"][0]["event"], gone.as_str());
    let outcome = service.cli_json(&["fleet", "apply", "--prune", "--yes", &smaller])["scopes"][0].clone();
    let counts = ["added", "changed", "removed"].map(|field| outcome[field].as_u64().unwrap());
    assert_eq!(counts, [50, 55, 40]);
    let live = service.cli_json(&["event", "list"]);
    let mut live: Vec<&str> =
        live.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    live.sort_unstable();
    let mut expected = [both.as_str(), left.as_str()];
    expected.sort_unstable();
    assert_eq!(live, expected);
    assert_eq!(service.cli_json(&["fleet", "diff", "--prune", &smaller])["differs"], false);
}

#[test]
fn pruning_without_terminal_requires_yes() {
    let (service, event) = service_with_event();
    let smaller = file(&service, "smaller.yaml", SMALLER);
    let refused = service.run(&["fleet", "apply", &smaller, "--prune"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("nothing was applied") && stderr(&refused).contains("--yes"));
    assert!(String::from_utf8_lossy(&refused.stdout).contains(&event), "the plan is shown");
    assert_eq!(vms(&service), ["db", "web-0", "web-1"]);

    let more = file(
        &service,
        "more.yaml",
        &format!("{FLEET}  - {{ name: x, kind: standalone, vms: [ {{ name: x }} ] }}\n"),
    );
    service.cli(&["fleet", "apply", &more, "--prune"]);
    assert_eq!(vms(&service).len(), 4, "what only adds and changes needs no --yes");
    let done = service.cli(&["fleet", "apply", &smaller, "--prune", "--yes"]);
    assert!(done.contains("default/default/web: 1 changed, 1 removed; 1 live event ended\n"), "{done}");
    assert_eq!(vms(&service), ["new", "web-0"]);
}

#[test]
fn empty_file_requires_allow_empty() {
    let (service, _) = service_with_event();
    let empty = file(&service, "empty.yaml", "scopes: []\n");
    for args in [&["--prune", "--yes"][..], &["--prune"], &["--yes"], &["--prune", "--allow-empty"]] {
        let output = service.run(&[&["fleet", "apply", &empty], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
    }
    let checked = service.run(&["fleet", "apply", &empty, "--check", "--prune"]);
    assert_eq!(checked.status.code(), Some(2));
    assert!(stderr(&checked).contains(&format!("fleet diff {empty} --prune")), "{}", stderr(&checked));
    assert!(service.cli(&["fleet", "apply", &empty, "--check"]).contains("requires --allow-empty"));
    let diff = service.cli(&["fleet", "diff", &empty, "--prune"]);
    assert!(diff.contains("scopes: 2 removed; VMs: 3 removed; live events: 1 ended"), "{diff}");
    assert_eq!(vms(&service).len(), 3);
    service.cli(&["fleet", "apply", &empty, "--prune", "--yes", "--allow-empty"]);
    assert_eq!(service.cli_json(&["fleet", "show"]), json!([]));
}

#[test]
fn fleet_apply_asks_at_terminal_before_removal() {
    let (service, event) = service_with_event();
    let smaller = file(&service, "smaller.yaml", SMALLER);
    let args = ["fleet", "apply", &smaller, "--prune"];
    for answer in ["n", "", "yep"] {
        let terminal = run_at_terminal(&service, &args, answer);
        assert_eq!(terminal.code, 1, "{terminal:?}");
        assert!(
            terminal.has_prompt()
                && terminal.text.contains(&event)
                && terminal.text.contains("nothing was applied"),
            "{terminal:?}"
        );
    }
    assert_eq!(vms(&service).len(), 3);
    let terminal = run_at_terminal(&service, &args, "y");
    assert_eq!(terminal.code, 0, "{terminal:?}");
    assert_eq!(vms(&service), ["new", "web-0"]);
    let more = format!("{SMALLER}  - {{ name: more, kind: standalone, vms: [ {{ name: more }} ] }}\n");
    let args = ["fleet", "apply", &file(&service, "more.yaml", &more), "--prune"];
    let terminal = run_at_terminal(&service, &args, "n");
    assert!(
        terminal.code == 0 && !terminal.has_prompt(),
        "what only adds and changes does not ask: {terminal:?}"
    );
}

#[test]
fn scope_changed_after_plan_is_refused() {
    let (service, _) = service_with_event();
    let smaller = file(&service, "smaller.yaml", SMALLER);
    let args = ["fleet", "apply", &smaller, "--prune"];
    let terminal = run_at_terminal_while(&service, &args, "y", &["vm", "add", "late", "--scope", "web"]);
    assert_eq!(terminal.code, 1, "{terminal:?}");
    assert!(
        terminal.text.contains("default/default/web: it has changed since the plan was made; run it again"),
        "{terminal:?}"
    );
    assert!(vms(&service).contains(&"web-1".to_owned()), "nothing was done to it");

    // A scope that was created after the plan, and one that is pruned.
    let (service, _) = service_with_event();
    let smaller = file(&service, "smaller.yaml", SMALLER);
    let args = ["fleet", "apply", &smaller, "--prune"];
    let terminal = run_at_terminal_while(&service, &args, "y", &["vm", "add", "new"]);
    assert_eq!(terminal.code, 1, "{terminal:?}");
    assert!(
        terminal.text.contains("default/default/new: it has changed since the plan was made; run it again"),
        "{terminal:?}"
    );
    let empty = file(&service, "empty.yaml", "scopes: []\n");
    let args = ["fleet", "apply", &empty, "--prune", "--allow-empty"];
    let meanwhile = ["event", "schedule", "--type", "reboot", "db"];
    let terminal = run_at_terminal_while(&service, &args, "y", &meanwhile);
    assert_eq!(terminal.code, 1, "{terminal:?}");
    assert!(
        terminal.text.contains("default/default/db: it has changed since the plan was made; run it again"),
        "{terminal:?}"
    );
    assert!(vms(&service).contains(&"db".to_owned()), "{terminal:?}");
}

#[test]
fn vm_remove_and_delete_show_live_events_and_ask() {
    let (service, event) = service_with_event();
    for (verb, shown) in [("remove", "is removed at once"), ("delete", "is deleted at once")] {
        let refused = service.run(&["vm", verb, "web-1"]);
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        let stdout = String::from_utf8_lossy(&refused.stdout);
        assert!(stdout.contains("default/default/web/web-1") && stdout.contains(shown), "{stdout}");
        assert!(stdout.contains(&format!("event {event} (Reboot, Scheduled) is cancelled")), "{stdout}");
        assert!(stderr(&refused).contains("--yes"), "{}", stderr(&refused));
        let dry: Value = service.cli_json(&["vm", verb, "web-1", "--dry-run"]);
        let one = if verb == "delete" { &dry[0] } else { &dry };
        assert_eq!(
            (&one["scope"], &one["events"][0]["event"]),
            (&json!("default/default/web"), &json!(event))
        );
        let terminal = run_at_terminal(&service, &["vm", verb, "web-1"], "n");
        assert!(
            terminal.has_prompt() && terminal.code == 1 && terminal.text.contains(&event),
            "{terminal:?}"
        );
    }
    assert_eq!(vms(&service).len(), 3);
    let meanwhile = ["vm", "add", "late", "--scope", "web"];
    let terminal = run_at_terminal_while(&service, &["vm", "remove", "web-1"], "y", &meanwhile);
    assert!(
        terminal.code == 1 && terminal.text.contains("it has changed since the plan was made; run it again"),
        "{terminal:?}"
    );
    let terminal = run_at_terminal(&service, &["vm", "remove", "web-1"], "y");
    assert!(terminal.code == 0 && terminal.text.contains("removed web-1"), "{terminal:?}");
    let terminal = run_at_terminal(&service, &["vm", "delete", "late"], "yes");
    assert!(terminal.code == 0 && terminal.text.contains("deletion of late"), "{terminal:?}");
    service.cli(&["vm", "remove", "web-0", "--yes"]);
    assert!(!vms(&service).contains(&"web-0".to_owned()));
}

#[test]
fn deletion_plan_shows_notice() {
    let service = Service::start(&[]);
    service.apply_fleet(
        "scopes:
  - { name: web, kind: scale-set, terminate_notification: PT7M, vms: [ { name: web-0 } ] }
",
    );
    let plan = service.cli(&["vm", "delete", "web-0", "--dry-run"]);
    assert!(
        plan.contains(
            "is deleted by a Terminate event with 7 min notice (times the service's events.notice), or at once if no guest of its scope polled within a day"
        ),
        "{plan}"
    );
    // No guest has polled, so there is no notice.
    let deleted = service.cli_json(&["vm", "delete", "web-0", "--yes"]);
    assert_eq!(deleted["targets"][0]["status"], "Started", "{deleted}");
}

#[test]
fn token_revoke_and_operation_cancel_ask_at_terminal_only() {
    let (service, event) = service_with_event();
    service.cli(&["token", "create", "shop", "--role", "tenant", "--on", "default/default"]);
    let shown = service.cli(&["token", "revoke", "shop", "--dry-run"]);
    assert!(shown.contains("tenant on default/default") && shown.contains("last used  not since"), "{shown}");
    let terminal = run_at_terminal(&service, &["token", "revoke", "shop"], "n");
    assert!(
        terminal.has_prompt() && terminal.code == 1 && terminal.text.contains("nothing was revoked"),
        "{terminal:?}"
    );
    assert_eq!(service.cli_json(&["token", "list"]).as_array().unwrap().len(), 2);
    service.cli(&["token", "revoke", "shop"]);
    assert!(service.cli_refused(&["token", "revoke", "shop", "--dry-run"]).contains("unknown_token"));

    let started =
        service.cli_json(&["event", "schedule", "--cause", "host-reboot", "--in", "1h", "web-0", "db"]);
    let operation = started["id"].as_str().unwrap();
    let of_db =
        started["targets"].as_array().unwrap().iter().find(|part| part["scope"] == "default/default/db");
    service.cli(&["event", "start", of_db.unwrap()["event"].as_str().unwrap()]);
    let shown = service.cli(&["operation", "cancel", operation, "--dry-run"]);
    assert_eq!(shown.matches("is cancelled").count(), 1, "{shown}");
    assert_eq!(shown.matches("no: already started").count(), 1, "{shown}");
    let terminal = run_at_terminal(&service, &["operation", "cancel", operation], "n");
    assert!(
        terminal.has_prompt() && terminal.code == 1 && terminal.text.contains("nothing was cancelled"),
        "{terminal:?}"
    );
    assert_eq!(service.cli_json(&["operation", "show", operation])["cancelled"], false);
    service.cli(&["operation", "cancel", operation]);
    assert_eq!(service.cli_json(&["operation", "show", operation])["cancelled"], true);
    assert_eq!(service.cli_json(&["event", "show", &event])["status"], "Scheduled", "another operation's");
}

#[test]
fn event_cancel_shows_one_plan_for_all_and_asks_at_terminal_only() {
    let (service, first) = service_with_event();
    let schedule = |vm: &str| {
        let made = service.cli_json(&["event", "schedule", "--type", "freeze", "--in", "1h", vm]);
        made["targets"][0]["event"].as_str().unwrap().to_owned()
    };
    let (second, started) = (schedule("web-0"), schedule("db"));
    service.cli(&["event", "start", &started]);
    let words = ["event", "cancel", &first, &second, &started];
    let shown = service.cli(&[&words[..], &["--dry-run"]].concat());
    assert_eq!(shown.matches("is cancelled").count(), 2, "{shown}");
    assert_eq!(shown.matches("no: already started").count(), 1, "{shown}");
    let seen = run_at_terminal(&service, &words, "n");
    assert!(seen.has_prompt() && seen.code == 1 && seen.text.contains("nothing was cancelled"), "{seen:?}");
    assert_eq!(service.cli_json(&["event", "list"]).as_array().unwrap().len(), 3);
    // An unknown id does not keep the plan of the others.
    let unknown = "00000000-0000-0000-0000-00000000ffff";
    let output = service.run(&["event", "cancel", &first, unknown, "--dry-run"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("is cancelled"), "{output:?}");
    assert!(stderr(&output).contains(&format!("{unknown}: there is no event")), "{output:?}");

    let output = service.run(&[&words[..], &["--output", "json"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let done: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ids: Vec<&Value> = done.as_array().unwrap().iter().map(|event| &event["id"]).collect();
    assert_eq!(ids, [&json!(first), &json!(second)]);
    assert!(stderr(&output).contains("1 of 3 failed, 2 done"), "{}", stderr(&output));
    assert!(stderr(&output).contains(&format!("{started}: event {started} has started")));
}

#[test]
fn operation_cancel_takes_several_ids() {
    let service = Service::start(&[]);
    let operations = ["a", "b"].map(|vm| {
        service.cli(&["vm", "add", vm, "--host", vm]);
        let made = service.cli_json(&["host", "maintain", vm, "--type", "reboot", "--yes"]);
        made[0]["id"].as_str().unwrap().to_owned()
    });
    let [one, two] = operations.each_ref().map(String::as_str);
    let done = service.cli_json(&["operation", "cancel", one, two]);
    let is_cancelled = |one: &Value| one["cancelled"] == true;
    assert_eq!(done.as_array().unwrap().iter().filter(|one| is_cancelled(one)).count(), 2, "{done}");
}

#[test]
fn host_commands_ask_at_terminal_only() {
    let service = Service::start(&[]);
    service.cli(&["vm", "add", "a", "--host", "h1"]);
    let args = ["host", "maintain", "h1", "--type", "reboot"];
    let terminal = run_at_terminal(&service, &args, "n");
    assert!(
        terminal.has_prompt() && terminal.code == 1 && terminal.text.contains("nothing was scheduled"),
        "{terminal:?}"
    );
    let terminal = run_at_terminal(&service, &[&args[..], &["--yes"]].concat(), "n");
    assert!(!terminal.has_prompt() && terminal.code == 0, "{terminal:?}");
}

#[test]
fn confirmed_plan_is_refused_if_it_has_changed() {
    let service = Service::start(&[]);
    service.apply_fleet(FLEET);
    service.cli(&["vm", "add", "a", "--host", "h1"]);
    service.cli(&["token", "create", "shop", "--role", "tenant", "--on", "default/default"]);
    let again = ["token", "revoke", "shop", "&&", binary(), "token", "create", "shop", "--role", "operator"];
    let cases: [(&[&str], &[&str]); 3] = [
        (&["vm", "delete", "web-0", "db"], &["event", "schedule", "--type", "freeze", "--in", "1h", "db"]),
        (&["token", "revoke", "shop"], &again),
        (&["host", "maintain", "h1", "--type", "reboot"], &["vm", "add", "b", "--host", "h1"]),
    ];
    for (words, meanwhile) in cases {
        let seen = run_at_terminal_while(&service, words, "y", meanwhile);
        assert_eq!(seen.code, 1, "{seen:?}");
        assert!(seen.text.contains("it has changed since the plan was made; run it again"), "{seen:?}");
    }
    assert_eq!(vms(&service).len(), 5);
    assert_eq!(service.cli_json(&["token", "list"]).as_array().unwrap().len(), 2);
    assert_eq!(service.cli_json(&["event", "list"]).as_array().unwrap().len(), 1);
    for (words, _) in cases {
        let seen = run_at_terminal(&service, words, "y");
        assert_eq!(seen.code, 0, "{seen:?}");
    }
}

#[test]
fn plans_of_nothing_say_so() {
    let service = Service::start(&[]);
    service.apply_fleet(FLEET);
    assert!(
        service
            .cli(&["clock", "accept", "--dry-run"])
            .ends_with("trusted\nnothing was changed (--dry-run)\n")
    );
    let made = service.cli_json(&["event", "schedule", "--type", "reboot", "--in", "1h", "db"]);
    let operation = made["id"].as_str().unwrap();
    service.cli(&["operation", "cancel", operation]);
    let closed = || service.cli_json(&["operation", "show", operation])["state"] == "closed";
    wait_for("the operation to close", || closed().then_some(()));
    let refused = service.cli_refused(&["operation", "cancel", operation, "--dry-run"]);
    assert!(refused.contains("is closed; there is nothing to cancel"), "{refused}");
    for noun in ["vm", "event"] {
        let refused = service.cli_refused(&[noun, "list", "--scope", "webb"]);
        assert!(refused.contains("there is no scope"), "{refused}");
        assert!(refused.contains("did you mean web?"), "{refused}");
    }
    assert!(service.cli(&["event", "list", "--scope", "web"]).contains("no scheduled or started events"));
}

#[test]
fn if_none_match_creates_only_missing_scope() {
    let service = Service::start(&[]);
    let put = |headers: &str| {
        service.operator_request(
            "PUT",
            "/v1/scopes/default/default/s",
            headers,
            "{\"kind\":\"availability-set\",\"vms\":[{\"name\":\"x\"}]}",
        )
    };
    assert_eq!(put("If-Match: \"7\"\r\n").status, 412);
    assert_eq!(put("If-None-Match: *\r\n").status, 200);
    let again = put("If-None-Match: *\r\n");
    assert_eq!((again.status, again.json()["code"].clone()), (412, "revision_differs".into()));
    assert!(again.body.contains("it exists already"), "{again:?}");
    assert_eq!(put("If-None-Match: \"7\"\r\n").json()["code"], "bad_if_none_match");
    let plan = |body: &str| {
        service.operator_request("POST", "/v1/scopes/default/default/s/plan?fleet=true", "", body).json()
    };
    let nothing = plan("");
    assert_eq!((&nothing["removed"], &nothing["vms"]), (&json!(false), &json!(1)), "no file has made it");
    assert_eq!(plan("{\"kind\":\"availability-set\"}")["revision"], nothing["revision"]);
}

#[test]
fn dry_run_of_a_restart_shows_what_the_restart_does() {
    let service = Service::start(&[]);
    service.apply_fleet(FLEET);
    // No guest of the scope polls, so a restart gives no notice.
    let at_once = service.cli_json(&["vm", "restart", "db", "--dry-run"]);
    assert_eq!(at_once["not_before"], Value::Null, "{at_once}");
    assert_eq!(at_once["events"][0]["starts_because"], "no guest of the scope listens");
    assert_eq!(at_once["silent"], json!(["default/default/db/db"]));
    let shown = service.cli(&["vm", "restart", "db", "--dry-run"]);
    assert!(shown.contains("starts at once: no guest") && shown.contains("nothing was scheduled"), "{shown}");
    // A time that was given is kept.
    let later = service.cli_json(&["vm", "restart", "db", "--in", "1h", "--dry-run"]);
    assert!(later["not_before"].is_string() && later["events"][0]["starts_because"].is_null(), "{later}");
    assert_eq!(service.cli_json(&["event", "list"]), json!([]), "a dry run changes nothing");
    let done = service.cli(&["vm", "restart", "db"]);
    assert!(done.contains("started at once: no guest of the scope listens"), "{done}");
}
