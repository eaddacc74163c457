//! Roles and paths: permissions, visibility, tokens and their lifetime, and the audit trail.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

use crate::support;
use crate::support::http::EventStream;
use crate::support::{Answer, Service, connect, wait_for};
use serde_json::{Value, json};

/// Two tenants with a VM of the same name, on one host.
const FLEET: &str = "scopes:
  - name: web
    subscription: acme
    group: shop
    kind: availability-set
    vms:
      - { name: web-0, addresses: [127.1.40.1], host: h1 }
      - { name: web-1, update_domain: 1, addresses: [127.1.40.2], host: h1, spot: true }
  - name: db
    subscription: acme
    group: core
    kind: standalone
    vms: [ { name: db, addresses: [127.1.40.3], host: h1 } ]
  - name: web
    subscription: globex
    group: shop
    kind: availability-set
    vms:
      - { name: web-0, addresses: [127.1.40.4], host: h1 }
      - { name: web-9, addresses: [127.1.40.5], host: h1 }
  - name: web
    subscription: acme-two
    group: shop
    kind: standalone
    vms: [ { name: solo, addresses: [127.1.40.6] } ]
";

/// A service with the fleet, and a platform event and a user event in each tenant's scope.
struct Fixture {
    service: Service,
}

impl Fixture {
    fn new() -> Self {
        let service = Service::start(&["--driver", "manual", "--always-give-notice"]);
        service.apply_fleet(FLEET);
        Self { service }
    }

    fn token(&self, name: &str, grants: &[&str]) -> String {
        let mut args = vec!["token", "create", name];
        for grant in grants {
            args.extend(["--grant", grant]);
        }
        self.service.cli_json(&args)["secret"].as_str().unwrap().to_owned()
    }

    fn request(&self, token: &str, method: &str, target: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.service.request_with(token, method, target, "", &body)
    }

    fn get(&self, token: &str, target: &str) -> Answer {
        self.request(token, "GET", target, &Value::Null)
    }

    fn schedule(&self, cause: &str, vms: &[&str]) -> Value {
        let mut args = vec!["event", "schedule", "--cause", cause, "--in", "2h"];
        args.extend(vms);
        self.service.cli_json(&args)
    }

    fn event_of(&self, cause: &str, vm: &str) -> String {
        self.schedule(cause, &[vm])["targets"][0]["event"].as_str().unwrap().to_owned()
    }
}

fn code(answer: &Answer) -> String {
    answer.json()["code"].as_str().unwrap_or_default().to_owned()
}

fn column(answer: &Answer, field: &str) -> Vec<String> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let items = answer.json()["items"].clone();
    items.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap().to_owned()).collect()
}

#[test]
fn role_permissions() {
    let fixture = Fixture::new();
    let tokens = [
        fixture.token("chief", &["operator:/"]),
        fixture.token("keeper", &["operator:acme"]),
        fixture.token("owner", &["tenant:Acme/Shop"]),
        fixture.token("looker", &["viewer:acme/shop/web"]),
        fixture.token("onlooker", &["viewer:/"]),
        fixture.token("stranger", &["operator:globex"]),
        "nb_wrong".to_owned(),
    ];
    let root = std::fs::read_to_string(fixture.service.data().join("operator.token")).unwrap();
    let vm = json!({"scope": "acme/shop/web", "vm": {"name": "web-2"}});
    let scope = json!({"kind": "availability-set", "vms": []});
    let not_before = "2099-01-01T00:00:00Z";
    let announce =
        |cause: &str| json!({"cause": cause, "vms": ["acme/shop/web/web-0"], "not_before": not_before});
    let grant = json!({"name": "more", "grants": [{"role": "viewer", "path": "acme"}]});
    // Expected status per token. A new event is created for each action: `{platform}`, `{user}`.
    let ok = 200;
    type Row<'a> = (&'a str, &'a str, Value, [u16; 7]);
    let rows: Vec<Row<'_>> = vec![
        ("GET", "/v1/scopes", Value::Null, [ok, ok, ok, ok, ok, ok, 401]),
        ("GET", "/v1/scopes/acme/shop/web", Value::Null, [ok, ok, ok, ok, ok, 404, 401]),
        ("PUT", "/v1/scopes/acme/shop/web", scope.clone(), [ok, ok, 403, 403, 403, 404, 401]),
        ("PUT", "/v1/scopes/acme/shop/new", scope.clone(), [ok, ok, 403, 404, 403, 404, 401]),
        ("POST", "/v1/scopes/acme/shop/web/plan", scope.clone(), [ok, ok, 403, 403, 403, 404, 401]),
        ("DELETE", "/v1/scopes/acme/shop/new", Value::Null, [ok, 404, 403, 404, 403, 404, 401]),
        ("GET", "/v1/vms", Value::Null, [ok, ok, ok, ok, ok, ok, 401]),
        ("GET", "/v1/vms/web-1", Value::Null, [ok, ok, ok, ok, ok, 404, 401]),
        ("GET", "/v1/vms/web-1/log", Value::Null, [ok, ok, ok, ok, ok, 404, 401]),
        ("POST", "/v1/vms", vm, [201, 409, 403, 403, 403, 404, 401]),
        ("DELETE", "/v1/vms/web-2", Value::Null, [204, 404, 404, 404, 404, 404, 401]),
        ("DELETE", "/v1/vms/web-1", Value::Null, [0, 0, 403, 403, 403, 404, 401]),
        ("POST", "/v1/vms/web-1/restart", Value::Null, [201, 201, 201, 403, 403, 404, 401]),
        ("POST", "/v1/vms/web-1/redeploy", Value::Null, [201, 201, 201, 403, 403, 404, 401]),
        ("POST", "/v1/vms/web-1/delete", Value::Null, [0, 0, 0, 403, 403, 404, 401]),
        ("POST", "/v1/vms/web-1/evict", Value::Null, [201, 201, 403, 403, 403, 404, 401]),
        ("POST", "/v1/vms/web-1/start", Value::Null, [ok, ok, 403, 403, 403, 404, 401]),
        ("POST", "/v1/events", announce("user-restart"), [201, 201, 201, 403, 403, 404, 401]),
        ("POST", "/v1/events", announce("host-reboot"), [201, 201, 403, 403, 403, 404, 401]),
        ("POST", "/v1/events", announce("host-freeze"), [201, 201, 403, 403, 403, 404, 401]),
        ("GET", "/v1/events", Value::Null, [ok, ok, ok, ok, ok, ok, 401]),
        ("GET", "/v1/events/{platform}", Value::Null, [ok, ok, ok, ok, ok, 404, 401]),
        ("POST", "/v1/events/{platform}/approve", Value::Null, [ok, ok, ok, 403, 403, 404, 401]),
        ("POST", "/v1/events/{platform}/cancel", Value::Null, [ok, ok, 403, 403, 403, 404, 401]),
        ("POST", "/v1/events/{user}/cancel", Value::Null, [ok, ok, ok, 403, 403, 404, 401]),
        ("POST", "/v1/events/{user}/start", Value::Null, [ok, ok, 403, 403, 403, 404, 401]),
        ("POST", "/v1/events/{user}/complete", Value::Null, [409, 409, 403, 403, 403, 404, 401]),
        ("POST", "/v1/events/{user}/nonsense", Value::Null, [404, 404, 404, 404, 404, 404, 401]),
        ("GET", "/v1/operations", Value::Null, [ok, ok, ok, ok, ok, ok, 401]),
        ("GET", "/v1/operations/{operation}", Value::Null, [ok, ok, ok, ok, ok, 404, 401]),
        ("POST", "/v1/operations/{operation}/cancel", Value::Null, [ok, ok, ok, 403, 403, 404, 401]),
        ("GET", "/v1/history", Value::Null, [ok, ok, ok, ok, ok, ok, 401]),
        ("GET", "/v1/status", Value::Null, [ok, ok, ok, ok, ok, ok, 401]),
        ("GET", "/v1", Value::Null, [ok, ok, ok, ok, ok, ok, 401]),
        ("GET", "/v1/openapi.json", Value::Null, [ok, ok, ok, ok, ok, ok, 401]),
        ("GET", "/v1/tokens", Value::Null, [ok, 403, 403, 403, 403, 403, 401]),
        ("POST", "/v1/tokens", grant, [201, 403, 403, 403, 403, 403, 401]),
        ("DELETE", "/v1/tokens/more", Value::Null, [204, 403, 403, 403, 403, 403, 401]),
        ("GET", "/v1/hosts", Value::Null, [ok, 403, 403, 403, 403, 403, 401]),
        ("GET", "/v1/hosts/h1", Value::Null, [ok, 403, 403, 403, 403, 403, 401]),
        ("POST", "/v1/hosts/h1/failed", json!({"dry_run": true}), [ok, 403, 403, 403, 403, 403, 401]),
        ("GET", "/v1/faults", Value::Null, [409, 403, 403, 403, 403, 403, 401]),
        ("POST", "/v1/faults", json!({"kind": "reset"}), [409, 403, 403, 403, 403, 403, 401]),
        ("DELETE", "/v1/faults", Value::Null, [409, 403, 403, 403, 403, 403, 401]),
        ("DELETE", "/v1/faults/1", Value::Null, [409, 403, 403, 403, 403, 403, 401]),
        ("GET", "/v1/cluster", Value::Null, [ok, 403, 403, 403, 403, 403, 401]),
        ("POST", "/v1/cluster/hand-over", Value::Null, [409, 403, 403, 403, 403, 403, 401]),
        ("POST", "/v1/cluster/upgrade/finish", Value::Null, [409, 403, 403, 403, 403, 403, 401]),
        ("POST", "/v1/cluster/forget", json!({"node": "a"}), [409, 403, 403, 403, 403, 403, 401]),
        ("GET", "/v1/audit", Value::Null, [ok, 403, 403, 403, 403, 403, 401]),
        ("GET", "/v1/export", Value::Null, [ok, 403, 403, 403, 403, 403, 401]),
        ("GET", "/v1/nothing", Value::Null, [404, 404, 404, 404, 404, 404, 401]),
    ];
    let made = |cause: &str| fixture.request(&root, "POST", "/v1/events", &announce(cause)).json();
    for (method, target, body, expected) in rows {
        for (token, status) in tokens.iter().zip(expected) {
            if status == 0 {
                continue; // The next rows need the resource.
            }
            let mut target = target.to_owned();
            for (word, cause, field) in [
                ("{platform}", "host-reboot", "/targets/0/event"),
                ("{user}", "user-restart", "/targets/0/event"),
                ("{operation}", "user-restart", "/id"),
            ] {
                if target.contains(word) {
                    target = target.replace(word, made(cause).pointer(field).unwrap().as_str().unwrap());
                }
            }
            let answer = fixture.request(token, method, &target, &body);
            assert_eq!(answer.status, status, "{method} {target} as {token}: {answer:?}");
            if status == 403 {
                let problem = answer.json();
                assert_eq!(problem["code"], "not_permitted");
                let detail = problem["detail"].as_str().unwrap();
                assert!(detail.contains("needs the role "), "{detail}");
            }
        }
    }
}

#[test]
fn invisible_resources_answer_404() {
    let fixture = Fixture::new();
    let owner = fixture.token("owner", &["tenant:acme/shop"]);
    let keeper = fixture.token("keeper", &["operator:acme/shop"]);
    let root = std::fs::read_to_string(fixture.service.data().join("operator.token")).unwrap();
    let theirs_id = fixture.get(&root, "/v1/vms/globex/shop/web/web-0").status;
    assert_eq!(theirs_id, 404, "a path is one segment, encoded");
    let shown = fixture.get(&root, "/v1/vms/globex%2Fshop%2Fweb%2Fweb-0");
    let vm = shown.json()["id"].as_str().unwrap().to_owned();
    let live = fixture.schedule("host-reboot", &["web-9"]);
    let event = live["targets"][0]["event"].as_str().unwrap().to_owned();
    let operation = live["id"].as_str().unwrap().to_owned();
    let ended = fixture.event_of("host-reboot", "web-9");
    fixture.service.cli(&["event", "cancel", &ended]);

    let unknown = "00000000-0000-4000-8000-000000000000";
    // (method, invisible resource, missing resource, body): the responses differ only in the requested name.
    let mut pairs: Vec<(&str, String, String, Value)> = Vec::new();
    let mut pair =
        |method, foreign: String, missing: String, body| pairs.push((method, foreign, missing, body));
    for (foreign, missing) in [
        ("web-9", "web-7"),
        (vm.as_str(), unknown),
        ("globex%2Fshop%2Fweb%2Fweb-9", "globex%2Fshop%2Fweb%2Fweb-7"),
    ] {
        pair("GET", format!("/v1/vms/{foreign}"), format!("/v1/vms/{missing}"), Value::Null);
        pair("DELETE", format!("/v1/vms/{foreign}"), format!("/v1/vms/{missing}"), Value::Null);
        pair("GET", format!("/v1/events?vm={foreign}"), format!("/v1/events?vm={missing}"), Value::Null);
        for verb in ["restart", "evict", "start"] {
            pair(
                "POST",
                format!("/v1/vms/{foreign}/{verb}"),
                format!("/v1/vms/{missing}/{verb}"),
                Value::Null,
            );
        }
    }
    pair("GET", "/v1/scopes/globex/shop/web".into(), "/v1/scopes/globex/shop/wib".into(), Value::Null);
    pair("DELETE", "/v1/scopes/globex/shop/web".into(), "/v1/scopes/globex/shop/wib".into(), Value::Null);
    let scope = json!({"kind": "availability-set", "vms": []});
    pair("PUT", "/v1/scopes/globex/shop/web".into(), "/v1/scopes/globex/shop/wib".into(), scope.clone());
    let plan = |scope: &str| format!("/v1/scopes/globex/shop/{scope}/plan");
    pair("POST", plan("web"), plan("wib"), scope);
    for id in [&event, &ended] {
        pair("GET", format!("/v1/events/{id}"), format!("/v1/events/{unknown}"), Value::Null);
        for verb in ["approve", "cancel", "start", "complete"] {
            pair(
                "POST",
                format!("/v1/events/{id}/{verb}"),
                format!("/v1/events/{unknown}/{verb}"),
                Value::Null,
            );
        }
    }
    pair("GET", format!("/v1/events/{}", &event[..8]), "/v1/events/00000000".into(), Value::Null);
    pair("GET", format!("/v1/operations/{operation}"), format!("/v1/operations/{unknown}"), Value::Null);
    pair(
        "POST",
        format!("/v1/operations/{operation}/cancel"),
        format!("/v1/operations/{unknown}/cancel"),
        Value::Null,
    );
    let name = |target: &str| {
        let end = target.rsplit_once("vm=").map_or(target, |(_, name)| name);
        let parts: Vec<&str> =
            end.trim_end_matches("/restart").trim_end_matches("/plan").split('/').collect();
        let named = match parts.as_slice() {
            ["", "v1", "scopes", rest @ ..] => rest.join("/"),
            ["", "v1", _, name, ..] => (*name).to_owned(),
            [name] => (*name).to_owned(),
            _ => panic!("{target}"),
        };
        named.replace("%2F", "/")
    };
    let answered = |token: &str, method: &str, target: &str, headers: &str, body: &Value| {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let answer = fixture.service.request_with(token, method, target, headers, &text);
        let head: Vec<&str> =
            answer.head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("date:")).collect();
        (answer.status, head.join("\n"), answer.body.replace(&name(target), "NAME"))
    };
    for token in [&owner, &keeper] {
        for (method, foreign, missing, body) in &pairs {
            for headers in ["", "If-Match: \"1\"\r\n", "Idempotency-Key: same\r\n"] {
                let (one, other) = (
                    answered(token, method, foreign, headers, body),
                    answered(token, method, missing, headers, body),
                );
                assert_eq!(one.0, 404, "{method} {foreign}: {one:?}");
                assert_eq!(one, other, "{method} {foreign} and {missing} with {headers:?}");
            }
        }
    }
    // Named in a body.
    let announce = |vm: &str| json!({"cause": "user-restart", "vms": ["acme/shop/web/web-0", vm]});
    let body =
        |vm: &str| fixture.request(&owner, "POST", "/v1/events", &announce(vm)).body.replace(vm, "NAME");
    assert_eq!(body("web-9"), body("web-7"));
    let add = |scope: &str| json!({"scope": scope, "vm": {"name": "x"}});
    let body =
        |scope: &str| fixture.request(&keeper, "POST", "/v1/vms", &add(scope)).body.replace(scope, "NAME");
    assert_eq!(body("globex/shop/web"), body("globex/shop/wib"));
    // An address of another tenant's VM is taken; its owner is not shown.
    let taken = json!({"scope": "acme/shop/web", "vm": {"name": "x", "addresses": ["127.1.40.4"]}});
    let answer = fixture.request(&keeper, "POST", "/v1/vms", &taken);
    assert_eq!((answer.status, code(&answer).as_str()), (409, "address_taken"));
    assert!(!answer.body.contains(&vm) && !answer.body.contains("globex"), "{answer:?}");
    let plan = json!({"kind": "availability-set", "vms": [taken["vm"]]});
    let answer = fixture.request(&keeper, "POST", "/v1/scopes/acme/shop/web/plan", &plan);
    assert_eq!(answer.json()["taken"][0]["owner"], Value::Null, "{answer:?}");
    assert!(!answer.body.contains(&vm) && !answer.body.contains("globex"), "{answer:?}");
    // Nothing was changed.
    assert_eq!(fixture.service.cli_json(&["event", "show", &event])["status"], "Scheduled");
    assert_eq!(
        fixture.service.cli_json(&["vm", "list", "--scope", "globex/shop/web"]).as_array().unwrap().len(),
        2
    );
}

#[test]
fn token_for_a_path_that_holds_nothing_warns() {
    let fixture = Fixture::new();
    let create = |name: &str, path: &str| {
        let done = fixture.service.run(&["token", "create", name, "--role", "tenant", "--on", path]);
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stderr).unwrap()
    };
    let said = create("typo", "acme/shpo");
    assert!(said.starts_with("notbefore: there is nothing on acme/shpo yet;"), "{said}");
    for (name, path) in [("owner", "acme/shop"), ("web", "Acme/Shop/Web"), ("all", "/")] {
        assert_eq!(create(name, path), "");
    }
    let listed =
        json!({"name": "b", "grants": [{"role": "viewer", "path": "a"}, {"role": "viewer", "path": "acme"}]});
    let made = fixture.service.operator_request("POST", "/v1/tokens", "", &listed.to_string());
    assert_eq!(made.json()["empty_paths"], json!(["a"]));
}

#[test]
fn tenants_do_not_see_hosts() {
    let service = Service::start(&["--driver", "manual", "--always-give-notice"]);
    service.apply_fleet(&FLEET.replace("h1", "rack7-h1"));
    let fixture = Fixture { service };
    let tokens = ["tenant:acme", "viewer:acme/shop"].map(|grant| fixture.token(&grant[..4], &[grant]));
    let platform = ["operator:acme", "viewer:/"].map(|grant| fixture.token(&grant[..6], &[grant]));
    let mut streams = Vec::new();
    for token in &tokens {
        streams.push(EventStream::open(&fixture.service, token, ""));
    }
    // Two operations of the host: the second waits for the first. A VM moves.
    let maintain = |at: &str| {
        let args = ["host", "maintain", "rack7-h1", "--type", "reboot", "--yes", "--in", at];
        fixture.service.cli_json(&args)[0].clone()
    };
    let (first, second) = (maintain("1h"), maintain("2h"));
    let part = |operation: &Value| {
        let mut targets = operation["targets"].as_array().unwrap().iter();
        let own = targets.find(|target| target["scope"] == "acme/shop/web").unwrap();
        own["event"].as_str().unwrap().to_owned()
    };
    let moved = fixture.event_of("host-redeploy", "web-1");
    fixture.service.cli(&["event", "start", &moved]);
    fixture.service.cli(&["event", "complete", &moved, "--host", "web-1=rack7-h2"]);
    let paths = [
        "/v1/vms".to_owned(),
        "/v1/vms/web-0".to_owned(),
        "/v1/vms/web-0/log".to_owned(),
        "/v1/scopes".to_owned(),
        "/v1/events".to_owned(),
        format!("/v1/events/{}", part(&first)),
        format!("/v1/events/{}", part(&second)),
        format!("/v1/events/{moved}"),
        "/v1/operations".to_owned(),
        format!("/v1/operations/{}", second["id"].as_str().unwrap()),
        "/v1/history".to_owned(),
        "/v1/history/summary".to_owned(),
        "/v1/status".to_owned(),
    ];
    for path in &paths {
        for token in &tokens {
            let answer = fixture.get(token, path);
            assert!(answer.status == 200 && !answer.body.contains("rack7"), "{path}: {answer:?}");
        }
    }
    for token in &platform {
        for path in ["/v1/vms", "/v1/events", "/v1/operations", "/v1/history", "/v1/vms?host=rack7-h1"] {
            let answer = fixture.get(token, path);
            assert!(answer.status == 200 && answer.body.contains("rack7"), "{path}: {answer:?}");
        }
    }
    let plan = json!({"type": "Reboot", "vms": ["web-0"], "dry_run": true});
    let planned = fixture.request(&tokens[0], "POST", "/v1/vms/web-0/restart", &plan);
    assert!(!planned.body.contains("rack7"), "{planned:?}");
    for list in ["vms", "events", "operations", "history", "history/summary"] {
        let answers =
            ["rack7-h1", "none"].map(|host| fixture.get(&tokens[0], &format!("/v1/{list}?host={host}")));
        let [known, unknown] = &answers;
        assert_eq!((known.status, &known.body), (403, &unknown.body), "{list}: a filter tells where VMs are");
    }
    for stream in &mut streams {
        loop {
            let line = stream.line();
            assert!(!line.contains("rack7"), "{line}");
            if line.contains("VmMoved") {
                break;
            }
        }
    }

    let Fixture { service } = fixture;
    let shown = service.restart_with(&[("NOTBEFORE_OPERATOR_HOSTS_SHOWN", "true")]);
    let listed = shown.request_with(&tokens[0], "GET", "/v1/vms?host=rack7-h1", "", "");
    assert!(listed.status == 200 && listed.body.contains("rack7-h1"), "{listed:?}");
}

#[test]
fn lists_contain_only_visible_resources() {
    let fixture = Fixture::new();
    let owner = fixture.token("owner", &["tenant:acme/shop"]);
    let both = fixture.token("both", &["viewer:globex", "tenant:acme/shop/web", "viewer:acme"]);
    fixture.schedule("host-reboot", &["acme/shop/web/web-0", "globex/shop/web/web-0", "web-9", "db"]);
    fixture.schedule("host-freeze", &["web-9"]);

    assert_eq!(column(&fixture.get(&owner, "/v1/scopes"), "path"), ["acme/shop/web"]);
    assert_eq!(column(&fixture.get(&owner, "/v1/vms"), "name"), ["web-0", "web-1"]);
    // A hidden scope and a missing one have the same answer.
    let filtered = |scope: &str| {
        let answer = fixture.get(&owner, &format!("/v1/vms?scope=globex/shop/{scope}"));
        (answer.status, answer.body.replace(scope, "SCOPE"))
    };
    assert_eq!((filtered("web").0, filtered("web")), (404, filtered("wib")));
    assert_eq!(column(&fixture.get(&owner, "/v1/events"), "scope"), ["acme/shop/web"]);
    assert_eq!(
        column(&fixture.get(&both, "/v1/scopes"), "path"),
        ["acme/core/db", "acme/shop/web", "globex/shop/web"]
    );
    // With one item a page, each item is listed once, and the last page has no next.
    let mut seen = Vec::new();
    let mut target = "/v1/vms?limit=1".to_owned();
    loop {
        let page = fixture.get(&both, &target);
        seen.extend(column(&page, "path"));
        match page.json()["next"].as_str() {
            Some(next) => target = format!("/v1/vms?limit=1&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(
        seen,
        [
            "acme/core/db/db",
            "acme/shop/web/web-0",
            "acme/shop/web/web-1",
            "globex/shop/web/web-0",
            "globex/shop/web/web-9"
        ]
    );
    assert_eq!(fixture.get(&owner, "/v1/vms?limit=2").json()["next"], Value::Null);
    // A cursor of another token is refused.
    let foreign = fixture.service.operator_request("GET", "/v1/vms?limit=3", "", "").json()["next"].clone();
    let page = fixture.get(&owner, &format!("/v1/vms?cursor={}", foreign.as_str().unwrap()));
    assert!(column(&page, "path").iter().all(|path| path.starts_with("acme/shop/")));

    // A name of two VMs is unique for a token that sees one; a token that sees both gets both listed.
    assert_eq!(fixture.get(&owner, "/v1/vms/web-0").json()["path"], "acme/shop/web/web-0");
    let ambiguous = fixture.get(&both, "/v1/vms/web-0");
    assert_eq!(ambiguous.json()["candidates"], json!(["acme/shop/web/web-0", "globex/shop/web/web-0"]));

    // An operation shows the visible parts only.
    let operations = fixture.get(&owner, "/v1/operations");
    let shown = operations.json()["items"].clone();
    assert_eq!(shown.as_array().unwrap().len(), 1);
    assert_eq!(shown[0]["targets"].as_array().unwrap().len(), 1);
    assert!(!operations.body.contains("globex") && !operations.body.contains("acme/core"), "{operations:?}");
    let id = shown[0]["id"].as_str().unwrap();
    let event = shown[0]["targets"][0]["event"].as_str().unwrap();
    let approved =
        fixture.request(&owner, "POST", &format!("/v1/events/{event}/approve"), &Value::Null).json();
    let waits = approved["waits_for"].as_str().unwrap();
    assert!(waits.starts_with("the approval of other parts"), "{waits}");
    // An operator of one part may not cancel the others.
    let keeper = fixture.token("keeper", &["operator:acme/shop"]);
    let cancel = fixture.request(&keeper, "POST", &format!("/v1/operations/{id}/cancel"), &Value::Null);
    assert_eq!((cancel.status, code(&cancel).as_str()), (403, "not_permitted"));

    // History, its pages too.
    for vm in ["web-9", "acme/shop/web/web-0", "web-9", "acme/shop/web/web-1"] {
        let event = fixture.event_of("user-restart", vm);
        fixture.service.cli(&["event", "cancel", &event]);
    }
    let page = fixture.get(&owner, "/v1/history?limit=1");
    assert_eq!(column(&page, "scope"), ["acme/shop/web"]);
    let next = page.json()["next"].as_str().unwrap().to_owned();
    let page = fixture.get(&owner, &format!("/v1/history?limit=1&cursor={next}"));
    assert_eq!(column(&page, "scope"), ["acme/shop/web"]);
    assert_eq!(page.json()["next"], Value::Null, "there is nothing more of one's own");
}

#[test]
fn stream_is_filtered_and_ends_with_token() {
    let fixture = Fixture::new();
    let owner = fixture.token("owner", &["tenant:acme/shop"]);
    let mut own = EventStream::open(&fixture.service, &owner, "");
    fixture.event_of("user-restart", "web-9");
    fixture.token("another", &["viewer:globex"]);
    fixture.event_of("user-restart", "web-1");
    let first = own.line_with("data: ");
    assert!(first.contains("acme/shop/web") && first.contains("web-1"), "{first}");
    assert!(!first.contains("127.0.0.1"), "an operator's address is hidden from others: {first}");
    fixture.service.cli(&["token", "revoke", "owner"]);
    let rest = own.read_to_end();
    assert!(!rest.contains("globex") && !rest.contains("TokenCreated"), "{rest}");

    // It can start from before the token's creation, and ends at its expiry.
    let brief = fixture.service.cli_json(&[
        "token",
        "create",
        "owner",
        "--role",
        "viewer",
        "--on",
        "acme/shop",
        "--expires",
        "3s",
    ]);
    let mut again =
        EventStream::open(&fixture.service, brief["secret"].as_str().unwrap(), "Last-Event-ID: 1\r\n");
    assert!(again.line_with("data: ").contains("acme/shop/web"));
    again.read_to_end();
    let answer = fixture.get(brief["secret"].as_str().unwrap(), "/v1/vms");
    assert_eq!((answer.status, code(&answer).as_str()), (401, "token_refused"));
}

#[test]
fn tokens_are_created_listed_revoked_and_limited() {
    let fixture = Fixture::new();
    let service = &fixture.service;
    let secret = fixture.token("Bob", &["tenant:acme/shop", "viewer:globex"]);
    let refused = |args: &[&str], part: &str| {
        let stderr = service.cli_refused(args);
        assert!(stderr.contains(part), "{args:?}: {stderr}");
    };
    refused(&["token", "create", "bob", "--role", "operator"], "token_taken");
    refused(&["token", "create", "x", "--role", "tenant"], "--on");
    refused(
        &["token", "create", "x", "--role", "king", "--on", "/"],
        "[possible values: operator, tenant, viewer]",
    );
    refused(&["token", "create", "x", "--role", "viewer", "--on", "a/b/c/d"], "more than three parts");
    refused(&["token", "create", "x/y", "--role", "operator"], "bad_name");
    // An empty path may be an unset variable: it must grant nothing.
    for args in
        [&["--role", "operator", "--on", ""][..], &["--role", "viewer", "--on="], &["--grant", "operator:"]]
    {
        let output = service.run(&[&["token", "create", "x"], args].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains("/ for everywhere"), "{args:?}: {stderr}");
    }
    for grant in [
        json!({"role": "operator", "path": ""}),
        json!({"role": "operator", "path": "//"}),
        json!({"role": "operator"}),
    ] {
        let body = json!({"name": "x", "grants": [grant]}).to_string();
        let answer = service.operator_request("POST", "/v1/tokens", "", &body);
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert!(answer.body.contains("path"), "{answer:?}");
    }
    refused(&["token", "revoke", "nobody"], "unknown_token");
    refused(&["token", "revoke", "root"], "create another such token first");
    let many: Vec<Value> = (0..33).map(|n| json!({"role": "viewer", "path": format!("s{n}")})).collect();
    let answer =
        service.operator_request("POST", "/v1/tokens", "", &json!({"name": "x", "grants": many}).to_string());
    assert_eq!((answer.status, code(&answer).as_str()), (400, "bad_grants"));
    let past = json!({"name": "x", "grants": [{"role": "viewer", "path": "/"}], "expires_at": "2020-01-01T00:00:00Z"});
    let answer = service.operator_request("POST", "/v1/tokens", "", &past.to_string());
    assert_eq!((answer.status, code(&answer).as_str()), (400, "bad_expiry"));

    // A retry does not return the secret, which is not stored.
    let body = json!({"name": "twice", "grants": [{"role": "viewer", "path": "/"}]}).to_string();
    let make = || service.operator_request("POST", "/v1/tokens", "Idempotency-Key: one\r\n", &body);
    assert_eq!(make().status, 201);
    let again = make();
    assert_eq!((again.status, code(&again).as_str()), (409, "secret_lost"));

    assert_eq!(fixture.get(&secret, "/v1/vms").status, 200);
    let list = service.cli_json(&["token", "list"]);
    let names: Vec<&str> = list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Bob", "root", "twice"]);
    assert_eq!(list[0]["created_by"], "token root");
    // A path is shown as given.
    assert_eq!(list[1]["grants"], json!([{"role": "operator", "path": "/"}]));
    assert!(list[0]["last_used_at"].is_string() && list[2]["last_used_at"].is_null(), "{list}");

    // Revocation also applies to an open connection.
    let mut stream = connect(Ipv4Addr::LOCALHOST.into(), service.operator).unwrap();
    let request =
        format!("GET /v1/scopes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n\r\n");
    let mut status = || {
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        let mut rest = vec![0; 64 * 1024];
        let _ = stream.read(&mut rest).unwrap();
        String::from_utf8_lossy(&head).into_owned()
    };
    assert_eq!(status(), "HTTP/1.1 200");
    // Idempotency keys of a revoked token do not apply to a new token of the same name.
    let restart = |secret: &str| {
        service.request_with(secret, "POST", "/v1/vms/web-1/restart", "Idempotency-Key: mine\r\n", "")
    };
    let first = restart(&secret).json()["id"].clone();
    service.cli(&["token", "revoke", "BOB"]);
    assert_eq!(status(), "HTTP/1.1 401");
    let other = fixture.token("bob", &["tenant:acme"]);
    let second = restart(&other);
    assert_eq!(second.status, 201);
    assert_ne!(second.json()["id"], first);

    // The root token can be revoked when another token has all its rights; its file is removed and not recreated.
    let chief = fixture.token("chief", &["operator:/"]);
    service.cli(&["token", "revoke", "root"]);
    assert!(!service.data().join("operator.token").exists());
    let output = Command::new(support::binary())
        .args(["token", "revoke", "chief"])
        .env("NOTBEFORE_DATA", service.data())
        .env("NOTBEFORE_TOKEN", &chief)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("last_operator"), "{output:?}");
    let Fixture { service } = fixture;
    let service = service.restart();
    assert!(!service.data().join("operator.token").exists());
    let file = service.data().join("chief");
    std::fs::write(&file, format!("{chief}\n")).unwrap();
    let listed = Command::new(support::binary())
        .args(["token", "list", "-o", "json"])
        .env("NOTBEFORE_DATA", service.data())
        .env("NOTBEFORE_TOKEN_FILE", &file)
        .output()
        .unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["bob", "chief", "twice"]);
}

#[test]
fn audit_trail_has_every_change_and_refusal_and_no_secret() {
    let flags = ["--driver", "manual", "--always-give-notice"];
    let service = Service::start_with(&[("NOTBEFORE_LOG", "trace")], &flags);
    let fixture = Fixture { service };
    fixture.service.apply_fleet(FLEET);
    let owner = fixture.token("owner", &["tenant:acme/shop"]);

    // Refusals, from a separate address.
    let from: IpAddr = Ipv4Addr::new(127, 0, 0, 9).into();
    let refused = |token: &str, target: &str, method: &str| {
        let authorization =
            if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\n{authorization}Connection: close\r\nContent-Length: 0\r\n\r\n"
        );
        support::exchange(from, fixture.service.operator, request.as_bytes()).status
    };
    assert_eq!(refused("", "/v1/vms", "GET"), 401);
    assert_eq!(refused("nb_guess", "/v1/vms?x=1", "GET"), 401);
    assert_eq!(refused(&owner, "/v1/vms/web-1/evict", "POST"), 403);
    assert_eq!(refused(&owner, "/v1/tokens", "GET"), 403);
    assert_eq!(refused(&owner, "/v1/vms/web-9", "GET"), 404);
    assert_eq!(refused(&owner, "/v1/vms/never", "GET"), 404);
    let entries = wait_for("the refusals to be written", || {
        let all = fixture.service.cli_json(&["audit", "--refused"]);
        (all.as_array().unwrap().len() >= 5).then_some(all)
    });
    let brief = |entry: &Value| {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let detail = |field: &str| entry["detail"][field].as_str().unwrap().to_owned();
        [support::actor(entry), text("from"), detail("code"), detail("request")].join(" | ")
    };
    let lines: Vec<String> = entries.as_array().unwrap().iter().map(brief).collect();
    assert_eq!(
        lines,
        [
            "unauthenticated | 127.0.0.9 | token_missing | GET /v1/vms",
            "unauthenticated | 127.0.0.9 | token_refused | GET /v1/vms",
            "token owner | 127.0.0.9 | not_permitted | POST /v1/vms/web-1/evict",
            "token owner | 127.0.0.9 | not_permitted | GET /v1/tokens",
            "token owner | 127.0.0.9 | hidden | GET /v1/vms/web-9",
        ]
    );

    // Changes, each with its actor and source address.
    fixture.service.cli(&["vm", "add", "x", "--scope", "acme/shop/web", "--address", "127.1.40.9"]);
    let put = |policy: Value, address: &str| {
        let vm = json!({"name": "x", "addresses": [address]});
        let body = json!({"kind": "availability-set", "policy": policy, "vms": [vm]});
        assert_eq!(
            fixture.service.operator_request("PUT", "/v1/scopes/acme/shop/web", "", &body.to_string()).status,
            200
        );
    };
    put(json!({}), "127.1.40.10");
    put(json!({"automatically_approve_redeploy": true}), "127.1.40.10");
    let restarted = fixture.request(&owner, "POST", "/v1/vms/web-1/restart", &Value::Null).json();
    let event = restarted["targets"][0]["event"].as_str().unwrap();
    fixture.request(&owner, "POST", &format!("/v1/events/{event}/approve"), &Value::Null);
    fixture.service.cli(&["event", "start", event]);
    fixture.service.cli(&["event", "complete", event]);
    let operation = fixture.schedule("host-reboot", &["web-9"]);
    fixture.service.cli(&["operation", "cancel", operation["id"].as_str().unwrap()]);
    let evicted = fixture.service.cli_json(&["vm", "evict", "web-1"]);
    let event = evicted["targets"][0]["event"].as_str().unwrap();
    fixture.service.cli(&["event", "start", event]);
    fixture.service.cli(&["event", "complete", event]);
    fixture.service.cli(&["vm", "start", "web-1"]);
    fixture.service.cli(&["vm", "remove", "--yes", "x"]);
    fixture.service.operator_request("DELETE", "/v1/scopes/acme/core/db", "", "");
    fixture.service.cli(&["token", "revoke", "owner"]);
    let changes = fixture.service.cli_json(&["audit", "--changed"]);
    let token = |name: &str| json!({"kind": "token", "name": name});
    let by = |actor: &str| -> Vec<String> {
        let all = changes.as_array().unwrap().iter().filter(|entry| entry["by"] == token(actor));
        all.map(|entry| {
            let what = entry["type"].as_str().unwrap().to_owned();
            // Cancellations that an operation applies to its scopes later have no source address.
            assert!(what == "EventCancelled" || entry["from"] == "127.0.0.1", "{entry}");
            what
        })
        .collect()
    };
    // An event may become ready when it is approved; the approver is then the actor.
    assert_eq!(by("owner")[..3], ["OperationRequested", "EventScheduled", "EventApproved"]);
    let root = by("root");
    for what in [
        "ScopeCreated",
        "VmAdded",
        "TokenCreated",
        "VmChanged",
        "PolicyChanged",
        "EventStarted",
        "EventCompleted",
        "OperationRequested",
        "OperationCancelled",
        "VmDeallocated",
        "VmStarted",
        "VmRemoved",
        "ScopeRemoved",
        "TokenRevoked",
    ] {
        assert!(root.iter().any(|one| one == what), "{what} is missing in {root:?}");
    }
    assert_eq!(root.iter().filter(|what| *what == "VmChanged").count(), 1, "of an address");
    let of_owner = fixture.service.cli_json(&["audit", "--actor", "owner"]);
    assert!(of_owner.as_array().unwrap().iter().all(|entry| entry["by"] == token("owner")));
    assert!(of_owner.as_array().unwrap().iter().any(|entry| entry["outcome"] == "refused"));
    let table = fixture.service.cli(&["audit"]);
    assert!(table.contains("TokenCreated") && table.contains("owner: tenant on acme/shop"), "{table}");

    // A flood is counted and logged in few lines.
    for _ in 0..100 {
        refused("nb_flood", "/v1/vms", "GET");
    }
    let counted = wait_for("the flood to be written", || {
        let all = fixture.service.cli_json(&["audit", "--refused"]);
        let count: u64 = all.as_array().unwrap().iter().map(|one| one["count"].as_u64().unwrap()).sum();
        (count == 105).then_some(all)
    });
    assert!(counted.as_array().unwrap().len() < 105, "{counted}");
    // The audit trail in pages, in both orders.
    let in_pages = |query: &str| {
        let (mut entries, mut target) = (Vec::new(), format!("/v1/audit?limit=7{query}"));
        loop {
            let page = fixture.service.operator_request("GET", &target, "", "").json();
            entries.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next"].as_str() {
                Some(next) => target = format!("/v1/audit?limit=7{query}&cursor={next}"),
                None => return Value::from(entries),
            }
        }
    };
    let reversed = |entries: &Value| -> Value { entries.as_array().unwrap().iter().rev().cloned().collect() };
    let audit = fixture.service.cli_json(&["audit"]);
    assert_eq!(in_pages(""), audit);
    assert_eq!(in_pages("&order=newest"), reversed(&audit));
    assert_eq!(fixture.service.cli_json(&["audit", "--newest"]), reversed(&audit));
    let entries = audit.as_array().unwrap();
    let at = |n: usize| entries[n]["at"].as_str().unwrap();
    let (since, until) = (at(entries.len() / 3), at(entries.len() / 3 * 2));
    let part = in_pages(&format!("&since={since}&until={until}"));
    assert!(part.as_array().unwrap().len() > 7, "{part}");
    assert_eq!(in_pages(&format!("&since={since}&until={until}&order=newest")), reversed(&part));
    let last = fixture.service.cli_json(&["audit", "--newest", "--limit", "1"]);
    assert_eq!(last[0], entries[entries.len() - 1]);

    let metrics = fixture.service.operator_request("GET", "/metrics", "", "").body;
    assert!(metrics.contains("notbefore_operator_refusals_total{code=\"hidden\"} 1"), "{metrics}");

    // No secret is stored or logged anywhere.
    let root = std::fs::read_to_string(fixture.service.data().join("operator.token")).unwrap();
    let export = fixture.service.operator_request("GET", "/v1/export", "", "").body;
    let list = fixture.service.cli(&["token", "list"]);
    let Fixture { mut service } = fixture;
    assert!(service.terminate().success());
    let log = service.log();
    let store = std::fs::read(service.data().join("store.redb")).unwrap();
    for secret in [root.trim(), &owner] {
        for (what, text) in [("log", &log), ("export", &export), ("list", &list)] {
            assert!(!text.contains(secret), "a secret is in the {what}");
        }
        let found = store.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
        assert!(!found, "a secret is in the store");
    }
    assert!(log.contains("notbefore::audit") && log.contains("hidden"), "{log}");
    assert!(log.contains("further refusals"), "{log}");
}

#[test]
fn fleet_apply_says_which_role_is_missing_where() {
    let fixture = Fixture::new();
    let file = fixture.service.data().join("fleet.yaml");
    let apply = |token: &str| {
        let mut command = Command::new(support::binary());
        command.args(["fleet", "apply", file.to_str().unwrap()]).env("NOTBEFORE_TOKEN", token);
        let output = command.env("NOTBEFORE_DATA", fixture.service.data()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    std::fs::write(&file, FLEET).unwrap();
    let said = apply(&fixture.token("owner", &["tenant:acme"]));
    let says = [
        "acme/shop/web: this needs the role operator on acme/shop/web; token owner has tenant there (not_permitted)",
        "globex/shop/web: token owner has no role on globex/shop/web and does not see it; this needs the role operator there (unknown_scope)",
        "4 of 4 scopes refused: this token may not change them; use one with the role operator there (an operator creates it with 'notbefore token create NAME --role operator --on PATH')",
    ];
    for line in says {
        assert!(said.contains(line), "{line}: {said}");
    }
    // A scope that does not exist gets the same words as one that the caller does not see.
    let file_of = |name: &str| {
        format!(
            "scopes:\n  - {{ name: {name}, subscription: globex, group: shop, kind: availability-set }}\n"
        )
    };
    std::fs::write(&file, file_of("web")).unwrap();
    let hidden = apply(&fixture.token("one", &["tenant:acme"]));
    std::fs::write(&file, file_of("bew")).unwrap();
    assert_eq!(
        apply(&fixture.token("two", &["tenant:acme"])).replace("bew", "web").replace("two", "one"),
        hidden
    );
    assert!(hidden.contains("--on globex/shop/web'"), "{hidden}");
}
