//! Host commands: the plan, one operation per host, refused and skipped VMs, and a power failure in the middle of
//! hundreds of scopes.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use crate::support::{Service, binary, wait_for};
use notbefore_core::{Fact, Operation, OperationState, Past, Scope};
use notbefore_engine::records::{self, FactBatch, prefix};
use notbefore_store::redb::RedbStore;
use notbefore_store::{Revision, Store};
use serde_json::Value;

/// A name with all characters that are special in a path or query.
const ODD: &str = "rack 7/Ü%2F#?&+.";

const FLEET: &str = "scopes:
  - name: web
    kind: availability-set
    vms:
      - { name: web-0, update_domain: 0, addresses: [127.1.20.1], host: h1 }
      - { name: web-1, update_domain: 1, addresses: [127.1.20.2], host: h1 }
      - { name: web-2, update_domain: 2, addresses: [127.1.20.3], host: h2 }
  - name: db
    kind: standalone
    vms: [ { name: db, addresses: [127.1.20.4], host: h1 } ]
  - name: spot
    kind: scale-set
    vms:
      - { name: spot_0, spot: true, addresses: [127.1.20.5], host: h1 }
      - { name: spot_1, spot: true, addresses: [127.1.20.6], host: \"rack 7/Ü%2F#?&+.\" }
";

fn guest(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 1, 20, n)
}

fn texts<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap()).collect()
}

/// Starts and completes an event of the manual driver.
fn carry_out(service: &Service, event: &str) {
    service.cli(&["event", "start", event]);
    service.cli(&["event", "complete", event]);
}

#[test]
fn redeployed_vm_moves_and_its_empty_host_stays() {
    let service = Service::start(&[]);
    service.apply_fleet(FLEET);
    let redeploy = |vm: &str| {
        // No guest listens, so it starts at once; the simulated driver would end it after a minute.
        let made = service.cli_json(&["vm", "redeploy", vm]);
        service.cli(&["event", "complete", made["targets"][0]["event"].as_str().unwrap()]);
        service.cli_json(&["vm", "show", vm])["host"].as_str().unwrap().to_owned()
    };
    let host = |name: &str| service.cli_json(&["host", "show", name]);
    assert_eq!(redeploy("db"), "h2", "of two hosts with one VM each, the first by name");
    service.cli(&["host", "degraded", "h2", "--yes"]);
    assert_eq!((&host("h2")["state"], &host("h2")["by"]["name"]), (&"degraded".into(), &"root".into()));
    assert_eq!(redeploy("spot_1"), "h1", "the only other host that takes VMs");

    assert_eq!((&host(ODD)["state"], &host(ODD)["vms"]), (&"ok".into(), &0.into()));
    assert_eq!(texts(&service.cli_json(&["host", "list"]), "host"), ["h1", "h2", ODD]);
    let used = service.cli_refused(&["host", "forget", "h1"]);
    assert!(used.contains("4 VMs") && used.contains("host_in_use"), "{used}");
    service.cli(&["host", "failed", ODD, "--yes"]);
    assert_eq!(host(ODD)["state"], "failed");
    let maintained = service.cli_refused(&["host", "maintain", ODD, "--type", "reboot", "--yes"]);
    assert!(maintained.contains("has no VMs"), "{maintained}");
    // A refused host does not stop the others, and JSON has those that are done.
    let several = |words: &[&str]| {
        let output = service.run(words);
        let failed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{failed}");
        (serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap(), failed)
    };
    let (done, failed) = several(&["host", "forget", "h1", ODD, "h1", ODD, "-o", "json"]);
    assert_eq!(done, serde_json::json!([ODD]));
    assert!(failed.contains("1 of 2 failed, 1 done:\n  h1: ") && failed.contains("host_in_use"), "{failed}");
    let (done, failed) = several(&["host", "ok", "nothing", "h1", "h1", "-o", "json"]);
    assert_eq!(texts(&done, "host"), ["h1"]);
    assert!(failed.contains("1 of 2 failed, 1 done:\n  nothing: "), "{failed}");
    // The file still names the hosts that both VMs have left. It does not move them back.
    service.apply_fleet(FLEET);
    let now_on = |vm: &str| service.cli_json(&["vm", "show", vm])["host"].as_str().unwrap().to_owned();
    assert_eq!((now_on("db").as_str(), now_on("spot_1").as_str()), ("h2", "h1"));
    assert_eq!(texts(&service.cli_json(&["host", "list"]), "host"), ["h1", "h2"]);

    let ok = service.cli(&["host", "ok", "h2"]);
    assert!(ok.contains("host h2 is ok") && ok.contains("is open"), "{ok}");
    service.cli(&["host", "maintain", "h1", "--type", "freeze", "--yes"]);
    let events = service.cli_json(&["event", "list", "--host", "h1", "--type", "freeze"]);
    assert_eq!(host("h1")["state"], "ok");
    service.cli(&["operation", "start", events[0]["operation"].as_str().unwrap()]);
    assert_eq!(host("h1")["state"], "maintenance");
}

#[test]
fn host_maintenance_shows_plan_first() {
    let service = Service::start(&["--driver", "manual"]);
    service.apply_fleet(FLEET);
    let evicted = service.cli_json(&["vm", "evict", "spot_0"]);
    carry_out(&service, evicted["targets"][0]["event"].as_str().unwrap());
    service.poll(guest(1), "2020-07-01");

    let hosts = service.cli_json(&["host", "list"]);
    assert_eq!(texts(&hosts, "host"), ["h1", "h2", ODD]);
    let h1 = &hosts[0];
    assert_eq!((&h1["vms"], &h1["deallocated"], &h1["scopes"]), (&4.into(), &1.into(), &3.into()));
    assert_eq!((&h1["listening"], &h1["events"]), (&1.into(), &0.into()), "{h1}");
    assert_eq!(
        texts(&service.cli_json(&["vm", "list", "--host", "h1"]), "name"),
        ["db", "spot_0", "web-0", "web-1"]
    );

    // The dry run shows the plan and changes nothing.
    let args = ["host", "maintain", "h1", "--type", "reboot", "--dry-run"];
    let plan = &service.cli_json(&args)["hosts"][0];
    assert_eq!((&plan["vms"], &plan["deallocated"], &plan["scopes"]), (&3.into(), &1.into(), &2.into()));
    assert_eq!((&plan["listening"], &plan["release"]), (&1.into(), &"together".into()), "{plan}");
    let silent: Vec<&str> = plan["silent"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(silent, ["default/default/db/db", "default/default/web/web-1"]);
    let notice = plan["notice_seconds"].as_u64().unwrap();
    assert!((900..=906).contains(&notice), "{notice}");
    assert_eq!(
        texts(&plan["events"], "scope"),
        ["default/default/db", "default/default/web", "default/default/web"]
    );
    assert!(plan["events"][1].get("waits_for").is_none(), "all events of a host start together: {plan}");
    let shown = service.cli(&args);
    for part in [
        "host h1: Reboot (host-reboot) of 3 VMs in 2 scopes, 3 events",
        "1 of 3 VMs",
        "skipped",
        "nothing was scheduled",
    ] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    assert_eq!(service.cli_json(&["event", "list"]), Value::Array(Vec::new()));

    // One operation for each host, each with its own NotBefore and parts.
    let made = service.cli_json(&["host", "maintain", "h1", "h2", "h1", ODD, "--type", "reboot"]);
    assert_eq!(texts(&made, "host"), ["h1", "h2", ODD]);
    assert_eq!((&made[0]["progress"]["events"], &made[2]["progress"]["events"]), (&3.into(), &1.into()));
    assert_eq!(service.cli_json(&["host", "show", ODD])["operations"][0], made[2]["id"]);
    let listed = service.cli_json(&["event", "list", "--vm", "web-0"]);
    assert_eq!(listed[0]["resources"][0]["host"], "h1");
    let again = service.cli(&["host", "maintain", "h1", "--type", "freeze", "--dry-run"]);
    assert!(again.contains("is still open"), "{again}");

    // A host reboots once for all its VMs.
    let h2 = made[1]["targets"][0]["event"].as_str().unwrap();
    assert_eq!(service.approve(guest(3), h2).status, 200);
    let waits = |event: &str| service.cli_json(&["event", "show", event])["waits_for"].to_string();
    wait_for("the event of h2 to be ready", || waits(h2).contains("an operator to start it").then_some(()));
    let db = made[0]["targets"][0]["event"].as_str().unwrap();
    assert_eq!(service.approve(guest(4), db).status, 200);
    assert!(waits(db).contains("2 more parts"), "{}", waits(db));

    // The operation is cancelled, and the history has the host.
    carry_out(&service, h2);
    let operation = made[0]["id"].as_str().unwrap();
    let cancelled = service.cli(&["operation", "cancel", operation]);
    assert!(cancelled.contains("cancelled") && cancelled.contains("3 ended"), "{cancelled}");
    let waited = service.cli(&["operation", "wait", operation, made[1]["id"].as_str().unwrap()]);
    assert!(waited.contains("is closed: cancelled") && waited.contains("is closed: completed"), "{waited}");
    let history = |args: &[&str]| {
        let args: Vec<&str> = ["event", "history"].into_iter().chain(args.iter().copied()).collect();
        service.cli_json(&args).as_array().unwrap().len()
    };
    assert_eq!(history(&["--host", "h1"]), 4, "three cancelled, and an eviction");
    assert_eq!(history(&["--host", "h1", "--type", "reboot", "--outcome", "cancelled"]), 3);
    assert_eq!(history(&["--host", "h2", "--outcome", "completed"]), 1);
    assert_eq!(history(&["--until", "1h"]), 0);
    assert_eq!(history(&["--newest", "--limit", "2"]), 2);
    assert_eq!(history(&["--vm", "web/web-1"]), 1);
}

#[test]
fn host_command_errors_name_next_step() {
    let service = Service::start(&[]);
    service.apply_fleet(FLEET);
    let unknown = service.cli_refused(&["host", "maintain", "h1", "h11", "--type", "freeze"]);
    assert!(unknown.contains("there is no host \"h11\"") && unknown.contains("did you mean h1"), "{unknown}");
    assert_eq!(service.cli_json(&["event", "list"]), Value::Array(Vec::new()), "nor is the first announced");
    let problem = service.operator_request("GET", "/v1/hosts/H2", "", "");
    assert_eq!((problem.status, &problem.json()["code"]), (404, &"unknown_host".into()));
    assert_eq!(problem.json()["candidates"][0], "h2");
    let near = service.cli_refused(&["host", "maintain", "h1", "--type", "reboot", "--in", "1m"]);
    assert!(near.contains("not_before_too_near"), "{near}");
    let post = |verb: &str, body: &str| {
        let answer = service.operator_request("POST", &format!("/v1/hosts/h1/{verb}"), "", body);
        (answer.status, answer.json()["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(post("maintain", "{}"), (400, "bad_type".into()));
    assert_eq!(post("maintain", "{\"type\":\"paint\"}"), (400, "bad_type".into()));
    assert_eq!(post("failed", "{\"type\":\"reboot\"}"), (400, "bad_type".into()));
    assert_eq!(post("failed", "{\"in_seconds\":900}"), (400, "not_before_without_notice".into()));
    assert_eq!(post("burn", ""), (404, "unknown_verb".into()));
    assert_eq!(post("degraded", "{\"dryrun\":true}"), (400, "bad_body".into()));

    // The remaining kinds: a failure starts at once, a predicted failure has a week of notice.
    let failed = &service.cli_json(&["host", "failed", "h2"])[0];
    assert_eq!(
        (&failed["not_before"], &failed["progress"]["started"]),
        (&Value::Null, &1.into()),
        "{failed}"
    );
    let degraded = &service.cli_json(&["host", "degraded", "h1"])[0];
    assert_eq!(
        (&degraded["cause"], &degraded["progress"]["events"]),
        (&"predicted-failure".into(), &4.into())
    );
    let plan = &service.cli_json(&["host", "degraded", ODD, "--in", "3d", "--dry-run"])["hosts"][0];
    assert!((259_000..259_300).contains(&plan["notice_seconds"].as_u64().unwrap()), "{plan}");
}

#[test]
fn host_command_asks_at_terminal() {
    let service = Service::start(&[]);
    service.apply_fleet(FLEET);
    let at_terminal = |answer: &str| {
        let mut person = Command::new("script")
            .args(["-qec", &format!("{} host maintain h2 --type freeze", binary()), "/dev/null"])
            .env("NOTBEFORE_DATA", service.data())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(person.stdin.take().unwrap(), "{answer}").unwrap();
        let output = person.wait_with_output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (done, shown) = at_terminal("n");
    assert!(
        !done && shown.contains("Schedule this? [y/N]") && shown.contains("nothing was scheduled"),
        "{shown}"
    );
    assert_eq!(service.cli_json(&["event", "list"]), Value::Array(Vec::new()));
    let (done, shown) = at_terminal("y");
    assert!(done && shown.contains("host h2: Freeze") && shown.contains("operation "), "{shown}");
    assert_eq!(service.cli_json(&["event", "list"]).as_array().unwrap().len(), 1);
}

const SCOPES: usize = 500;

/// A fleet of standalone VMs and availability sets on one host.
fn many_scopes() -> String {
    let one = |n: usize| match n % 2 {
        0 => format!("  - {{ name: s{n}, kind: standalone, vms: [{{ name: vm-{n}, host: big }}] }}\n"),
        _ => format!("  - {{ name: s{n}, kind: availability-set, vms: [{{ name: vm-{n}, host: big }}] }}\n"),
    };
    "scopes:\n".to_owned() + &(0..SCOPES).map(one).collect::<String>()
}

/// The stored state of a crashed service.
struct Image {
    revision: Revision,
    scopes: Vec<Scope>,
    /// The newest operation, if any.
    operation: Option<Operation>,
    past: Vec<Past>,
    /// Number of records of each fact of an event.
    facts: BTreeMap<String, usize>,
}

impl Image {
    fn read(service: &Service) -> Self {
        let store = RedbStore::open(service.data().join("store.redb")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let snapshot = store.snapshot().await.unwrap();
            let all = |page: notbefore_store::Page| page.records.into_iter();
            let scopes = all(snapshot.scan(prefix::SCOPE, None, 10_000).await.unwrap());
            let past = all(snapshot.scan(prefix::PAST, None, 10_000).await.unwrap());
            let mut operations: Vec<Operation> =
                all(snapshot.scan(prefix::OPERATION, None, 10_000).await.unwrap())
                    .map(|(key, record)| records::decode(&key, &record.value).unwrap())
                    .collect();
            operations.sort_by_key(|one| one.requested_at);
            let mut facts = BTreeMap::new();
            for (key, record) in all(snapshot.scan(prefix::FACT, None, 100_000).await.unwrap()) {
                let batch: FactBatch = records::decode(&key, &record.value).unwrap();
                for fact in batch.facts {
                    if let Fact::Event { event, what, .. } = fact.fact {
                        let what = format!("{what:?}");
                        let what = what.split(' ').next().unwrap_or_default();
                        *facts.entry(format!("{event} {what}")).or_default() += 1;
                    }
                }
            }
            Self {
                revision: snapshot.revision(),
                scopes: scopes.map(|(key, record)| records::decode(&key, &record.value).unwrap()).collect(),
                operation: operations.pop(),
                past: past.map(|(key, record)| records::decode(&key, &record.value).unwrap()).collect(),
                facts,
            }
        })
    }

    fn operation(&self) -> &Operation {
        self.operation.as_ref().unwrap()
    }

    /// Number of scopes with a live event of the newest operation.
    fn live_scopes(&self) -> usize {
        let newest = self.operation().id;
        let of_it = |scope: &&Scope| scope.events.iter().any(|one| one.operation == newest);
        self.scopes.iter().filter(of_it).count()
    }
}

/// Durable transactions at the crash: more than those of a start and an operation, fewer than the scopes, each of which
/// is a transaction.
const COMMITS_UNTIL_CRASH: u64 = 100;

/// Runs a command that changes every scope, with a service that crashes in the middle of it.
fn crash_in_the_middle(mut service: Service, args: &[&str]) -> (Service, Image) {
    service.kill();
    let before = Image::read(&service).revision.0;
    let variable = ("NOTBEFORE_ABORT_AFTER_COMMITS", &*COMMITS_UNTIL_CRASH.to_string());
    service = service.restart_with(&[variable]);
    // The service may crash before it has answered, or after it.
    service.run(args);
    service.aborted();
    let image = Image::read(&service);
    assert_eq!(image.revision.0, before + COMMITS_UNTIL_CRASH);
    assert!(
        (1..SCOPES).contains(&image.live_scopes()),
        "{} of {SCOPES} scopes have an event",
        image.live_scopes()
    );
    (service.restart_with(&[]), image)
}

/// Whether no event was opened or cancelled twice.
fn has_no_duplicates(image: &Image) -> bool {
    image.facts.values().all(|count| *count == 1)
}

#[test]
fn crash_during_500_scope_operation_is_recovered() {
    let service = Service::start(&[]);
    service.apply_fleet(&many_scopes());
    let maintain = ["host", "maintain", "big", "--type", "reboot", "--in", "2h"];
    let (service, found) = crash_in_the_middle(service, &maintain);
    assert_eq!(found.operation().state, OperationState::Opening);
    let id = found.operation().id.to_string();
    let shown = wait_for("the operation to be open", || {
        let shown = service.cli_json(&["operation", "show", &id]);
        (shown["state"] == "open").then_some(shown)
    });
    assert_eq!(shown["progress"]["scopes_told"], SCOPES, "{}", shown["progress"]);
    assert_eq!(shown["progress"]["waiting"], SCOPES, "{}", shown["progress"]);
    let events = service.cli_json(&["event", "list"]);
    let mut scopes = texts(&events, "scope");
    scopes.sort_unstable();
    scopes.dedup();
    assert_eq!((events.as_array().unwrap().len(), scopes.len()), (SCOPES, SCOPES), "one event in each");
    let not_before = found.operation().not_before.unwrap().to_string();
    assert!(texts(&events, "not_before").iter().all(|time| *time == not_before), "and one NotBefore");

    // Crash again during the cancellation.
    let (mut service, found) = crash_in_the_middle(service, &["operation", "cancel", &id]);
    assert!(found.operation().cancelled_by.is_some());
    wait_for("the operation to close", || {
        (service.cli_json(&["operation", "show", &id])["state"] == "closed").then_some(())
    });
    assert_eq!(service.cli_json(&["event", "list"]), Value::Array(Vec::new()));
    service.kill();
    let image = Image::read(&service);
    assert!(has_no_duplicates(&image), "{:?}", image.facts.iter().find(|(_, count)| **count != 1));
    let of_it = image.past.iter().filter(|past| past.event.operation == image.operation().id).count();
    assert_eq!((of_it, image.live_scopes()), (SCOPES, 0));
}

#[test]
fn many_hosts_and_operations_are_shown_as_totals() {
    let service = Service::start(&["--driver", "manual"]);
    let vm = |scope: usize, n: usize| format!("{{ name: s{scope}-{n}, host: h{n} }}");
    let vms = |scope: usize| (0..8).map(|n| vm(scope, n)).collect::<Vec<_>>().join(", ");
    let scope =
        |scope: usize| format!("  - {{ name: s{scope}, kind: availability-set, vms: [ {} ] }}\n", vms(scope));
    service.apply_fleet(&format!("scopes:\n{}", (0..3).map(scope).collect::<String>()));
    let said = |args: &[&str], ids: &[String]| {
        let args: Vec<&str> = args.iter().copied().chain(ids.iter().map(String::as_str)).collect();
        let done = service.run(&args);
        let text = [done.stdout, done.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        assert!(done.status.success(), "{text}");
        text
    };
    let hosts: Vec<String> = (0..8).map(|n| format!("h{n}")).collect();
    let maintain = ["host", "maintain", "--type", "reboot", "--in", "1h"];
    let wide = said(&[&maintain[..], &["--dry-run", "--output", "wide"]].concat(), &hosts);
    assert!(wide.matches("host h").count() >= 8 && wide.lines().count() > 60, "{wide}");
    let made = said(&maintain, &hosts);
    assert!(
        made.starts_with("8 hosts: Reboot (host-reboot) of 24 of 24 VMs in 3 scopes, 24 events\n"),
        "{made}"
    );
    assert!(made.contains("\n8 operations: 8 open\n") && made.lines().count() < 24, "{made}");

    let ids = service.cli_json(&["operation", "list"]);
    let ids: Vec<String> = texts(&ids, "id").into_iter().map(str::to_owned).collect();
    // One event has started: it cannot be cancelled.
    service.cli(&["operation", "start", &ids[0]]);
    let planned = said(&["operation", "cancel", "--dry-run"], &ids);
    assert!(planned.contains("7 operations with 21 events: all are cancelled\n"), "{planned}");
    let cancelled = service.run(&[&["operation", "cancel"][..], &texts_of(&ids)].concat());
    let text = [&cancelled.stdout, &cancelled.stderr].map(|text| String::from_utf8_lossy(text)).concat();
    assert_eq!(cancelled.status.code(), Some(1), "{text}");
    assert!(text.contains("7 operations: all closed") && text.contains("1 of 8 failed, 7 done"), "{text}");
    assert!(text.lines().count() < 14, "{text}");

    let waited = said(&["operation", "wait"], &ids[1..]);
    assert!(waited.contains("7 of 7 operations ended, 21 of 21 events\n"), "{waited}");
    assert!(waited.lines().count() < 4, "{waited}");
}

fn texts_of(ids: &[String]) -> Vec<&str> {
    ids.iter().map(String::as_str).collect()
}
