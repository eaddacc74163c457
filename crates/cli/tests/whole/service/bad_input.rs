//! Invalid input: the error names the item, the limit and the fix, and nothing is changed.

use std::net::Ipv4Addr;
use std::process::Command;

use serde_json::json;

use crate::support;
use crate::support::{Service, binary};

const TARGET: &str = "/metadata/scheduledevents?api-version=2020-07-01";

#[test]
fn bad_guest_requests_are_refused() {
    let service = Service::start(&[]);
    let vm = service.cli_json(&["vm", "list"])[0]["name"].as_str().unwrap().to_owned();
    service.cli(&["vm", "restart", &vm]);
    let before = service.document();
    let own = before["Events"][0]["EventId"].as_str().unwrap();
    let many = format!("{{\"StartRequests\":[{}]}}", vec!["{\"EventId\":\"x\"}"; 1_001].join(","));
    let ten_thousand =
        format!("{{\"StartRequests\":[{}]}}", vec![format!("{{\"EventId\":\"{own}\"}}"); 10_000].join(","));
    for (body, status) in [
        ("", 400),
        ("{", 400),
        ("[]", 400),
        ("null", 400),
        ("{\"StartRequests\":[]}", 400),
        ("{\"StartRequests\":{}}", 400),
        ("{\"StartRequests\":[1]}", 400),
        ("{\"StartRequests\":[{\"EventId\":7}]}", 400),
        ("{\"StartRequests\":[{\"EventId\":\"not a guid\"}]}", 400),
        ("{\"StartRequests\":[{}]}", 400),
        (many.as_str(), 400),
        (ten_thousand.as_str(), 413),
    ] {
        let answer = service.guest_request(Ipv4Addr::LOCALHOST, "POST", TARGET, body);
        assert_eq!(answer.status, status, "{:.60}: {answer:?}", body);
        assert!(answer.json()["error"].is_string(), "{answer:?}");
    }
    let huge =
        format!("POST {TARGET} HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nContent-Length: 65537\r\n\r\n");
    assert_eq!(support::exchange(Ipv4Addr::LOCALHOST.into(), service.guest, huge.as_bytes()).status, 413);
    let flood = format!("GET {TARGET} HTTP/1.1\r\nHost: x\r\n{}\r\n", "X-Header: y\r\n".repeat(1_000));
    assert_eq!(support::exchange(Ipv4Addr::LOCALHOST.into(), service.guest, flood.as_bytes()).status, 431);
    assert_eq!(service.document(), before, "none of it changed anything");
}

#[test]
fn bad_operator_requests_are_refused() {
    let service = Service::start(&[]);
    service.apply_fleet(
        "scopes:\n  - { name: a, kind: availability-set, vms: [ { name: same }, { name: one, addresses: [127.1.20.1] } ] }\n  - { name: b, kind: availability-set, vms: [ { name: same } ] }\n",
    );
    let refused = |args: &[&str]| service.cli_refused(args);
    let unknown = refused(&["vm", "restart", "nobody"]);
    assert!(
        unknown.contains("there is no VM nobody; 'notbefore vm list' lists the existing VMs"),
        "{unknown}"
    );
    let ambiguous = refused(&["vm", "restart", "same"]);
    assert!(
        ambiguous.contains("default/default/a/same, default/default/b/same; give more of the path"),
        "{ambiguous}"
    );
    assert!(service.cli(&["vm", "show", "b/same"]).starts_with("default/default/b/same"));
    let near = refused(&["event", "schedule", "--type", "reboot", "one", "--in", "14m"]);
    assert!(near.contains("a Reboot gives 15 min of notice, so the earliest is 20"), "{near}");
    let sort = refused(&["event", "schedule", "--type", "pause", "one"]);
    assert!(
        sort.contains(
            "[possible values: freeze, reboot, redeploy, preempt, terminate, spotrebalancerecommendation]"
        ),
        "{sort}"
    );
    assert!(refused(&["event", "show", "abcd"]).contains("there is no event abcd"));
    assert!(refused(&["event", "cancel", "00000000-0000-4000-8000-000000000000"]).contains("unknown_event"));
    assert!(refused(&["vm", "add", "ONE", "--scope", "a"]).contains("VM name ONE is taken"));
    let taken = refused(&["vm", "add", "two", "--address", "127.1.20.1"]);
    assert!(
        taken.contains("address 127.1.20.1 in network default belongs to VM default/default/a/one;"),
        "{taken}"
    );
    assert!(refused(&["vm", "add", "bad name"]).contains("letters, digits, '-', '_' and '.' are allowed"));
    assert!(refused(&["vm", "add", "x", "--address", "10.0.0"]).contains("is no address; write 10.0.0.4"));
    assert!(refused(&["vm", "add", "x", "--kind", "cluster"]).contains("[possible values: standalone, "));
    let started = service.cli_json(&["event", "schedule", "--cause", "host-failure", "one"]);
    let id = started["targets"][0]["event"].as_str().unwrap();
    assert!(refused(&["event", "cancel", id]).contains("has started; it can be completed"));

    for (method, path, body, code) in [
        ("POST", "/v1/events", "{", "bad_body"),
        ("POST", "/v1/events", "{\"vms\":[\"one\"],\"typ\":\"Reboot\"}", "bad_body"),
        ("POST", "/v1/events", "{\"vms\":[\"one\"]}", "bad_body"),
        ("POST", "/v1/events", "{\"vms\":[],\"type\":\"Reboot\"}", "no_resources"),
        ("POST", "/v1/events", "{\"vms\":[\"one\"],\"type\":\"Reboot\",\"duration_seconds\":-2}", "bad_body"),
        ("GET", "/v1/vms?limit=0", "", "bad_query"),
        ("GET", "/v1/vms?limit=x", "", "bad_query"),
        ("GET", "/v1/stream?scope=web", "", "bad_query"),
        ("POST", "/v1/events", "[]", "bad_body"),
        ("GET", "/v1/operations?foo=1", "", "bad_query"),
        ("GET", "/v1/history?since=yesterday", "", "bad_query"),
        ("GET", "/v1/events?status=Nope", "", "bad_status"),
        ("GET", "/v1/vms?cursor=zz", "", "bad_cursor"),
        // Hosts are listed with such a cursor.
        ("GET", "/v1/vms?cursor=6831", "", "bad_cursor"),
        ("GET", "/v1/events?cursor=6831", "", "bad_cursor"),
        ("GET", "/v1/history?cursor=6831", "", "bad_cursor"),
        ("GET", "/v1/audit?cursor=6831", "", "bad_cursor"),
        ("GET", "/v1/nothing", "", "not_found"),
        ("DELETE", "/v1/events", "", "method_not_allowed"),
        ("POST", "/v1/vms/one/reboot", "", "unknown_verb"),
    ] {
        let answer = service.operator_request(method, path, "", body);
        assert_eq!(answer.json()["code"], code, "{method} {path} {body}: {answer:?}");
        assert!(answer.head.contains("application/problem+json"), "{answer:?}");
    }
}

#[test]
fn events_for_more_than_a_thousand_vms_are_refused() {
    let service = Service::start(&[]);
    let vm = service.cli_json(&["vm", "list"])[0]["name"].as_str().unwrap().to_owned();
    let schedule = |vms: &[String]| {
        let body = serde_json::json!({"type": "Freeze", "vms": vms, "dry_run": true}).to_string();
        service.operator_request("POST", "/v1/events", "", &body)
    };
    let names: Vec<String> = (0..1_001).map(|n| format!("vm-{n}")).collect();
    let refused = schedule(&names);
    assert_eq!((refused.status, refused.code().as_str()), (400, "too_many_vms"), "{refused:?}");
    assert_eq!(schedule(&names[1..]).code(), "unknown_vm", "a thousand names are resolved");
    let twice = schedule(&vec![vm; 1_001]);
    assert_eq!(twice.status, 200, "one VM, named often: {twice:?}");
    let args: Vec<&str> = names.iter().map(String::as_str).collect();
    let said = service.cli_refused(&[&["event", "schedule", "--type", "freeze"][..], &args].concat());
    assert!(
        said.contains("vms names 1001 VMs, the limit is 1000; schedule their events in several"),
        "{said}"
    );
}

#[test]
fn names_of_dots_are_refused() {
    let service = Service::start(&[]);
    for dots in [".", ".."] {
        for (path, body, code) in [
            ("/v1/vms", json!({"vm": {"name": dots}}), "bad_name"),
            ("/v1/vms", json!({"vm": {"name": "x", "host": dots}}), "bad_place"),
            ("/v1/tokens", json!({"name": dots, "grants": [{"role": "viewer", "path": "/"}]}), "bad_name"),
        ] {
            let refused = service.operator_request("POST", path, "", &body.to_string());
            assert_eq!((refused.status, refused.code().as_str()), (400, code), "{body}: {refused:?}");
        }
    }
    service.cli(&["vm", "add", "dotted.vm"]);
}

#[test]
fn oversized_vm_is_refused_without_store_error() {
    let service = Service::start(&[]);
    let body = serde_json::json!({ "vm": { "name": "x", "instance": { "user_data": "x".repeat(600_000) } } });
    let answer = service.operator_request("POST", "/v1/vms", "", &body.to_string());
    assert_eq!((answer.status, answer.json()["code"].clone()), (409, "vm_too_large".into()));
    assert_eq!(service.operator_request("GET", "/readyz", "", "").status, 200);
}

#[test]
fn bad_fleet_files_are_refused() {
    let service = Service::start(&[]);
    let file = service.data().join("f.yaml");
    let refused = |text: &str| {
        std::fs::write(&file, text).unwrap();
        service.cli_refused(&["fleet", "apply", file.to_str().unwrap()])
    };
    let twice = refused(
        "scopes:\n  - name: a\n    kind: availability-set\n    vms:\n      - name: x\n      - name: X\n",
    );
    assert!(twice.contains("f.yaml:6: VM X is in scope default/default/a twice"), "{twice}");
    let key = refused("scopes:\n  - name: a\n    kind: standalone\n    vmss: []\n");
    assert!(key.contains("f.yaml:4: unknown key vmss of a scope; did you mean vms?"), "{key}");
    let notice = refused("scopes:\n  - { name: a, kind: scale-set, terminate_notification: 1m }\n");
    assert!(
        notice.contains("f.yaml:2: terminate_notification must be 5m to 15m (PT5M to PT15M), not 1m"),
        "{notice}"
    );
    let alone = refused("scopes:\n  - { name: a, kind: standalone, vms: [ { name: x }, { name: y } ] }\n");
    assert!(
        alone.contains("f.yaml:2: scope default/default/a is standalone and can have only one VM"),
        "{alone}"
    );
    let address =
        refused("scopes:\n  - { name: a, kind: standalone, vms: [ { name: x, addresses: [300.1.1.1] } ] }\n");
    assert!(address.contains("f.yaml:2: invalid address \"300.1.1.1\""), "{address}");
    assert!(service.cli_refused(&["fleet", "apply", "/nowhere.yaml"]).contains("cannot read /nowhere.yaml"));
    assert_eq!(service.cli_json(&["vm", "list"])[0]["first_run"], true, "nothing was changed");
}

/// The error of `fleet apply --check` for an invalid file, with 2 GB of address space.
fn fleet_check_refused(file: &std::path::Path) -> String {
    let limited = format!("ulimit -v 2000000 && exec {} fleet apply --check {}", binary(), file.display());
    let output = Command::new("sh").args(["-c", &limited]).output().expect("sh starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{stderr:.2000}");
    assert!(stderr.len() < 4_000, "{} bytes of complaint: {stderr:.2000}", stderr.len());
    stderr
}

#[test]
fn yaml_bombs_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let refused = |text: &str| {
        let file = place.path().join("f.yaml");
        std::fs::write(&file, text).unwrap();
        fleet_check_refused(&file)
    };
    // Every scope is an alias of the first one's VMs: a million VMs in 70 kB.
    let vms: String = (0..1_000).map(|n| format!("{{ name: v{n} }}, ")).collect();
    let scopes: String =
        (1..1_000).map(|n| format!("  - {{ name: s{n}, kind: scale-set, vms: *v }}\n")).collect();
    let squared =
        refused(&format!("scopes:\n  - {{ name: s0, kind: scale-set, vms: &v [ {vms} ] }}\n{scopes}"));
    assert!(
        squared.contains("its anchors and aliases (&, *) expand to more than a file of this size"),
        "{squared}"
    );
    // The "billion laughs" attack: each line repeats the one before nine times.
    let line = |[a, b]: [char; 2]| format!("{b}: &{b} [{}]\n", vec![format!("*{a}"); 9].join(","));
    let laughs: String = "abcdefgh".chars().zip("bcdefghi".chars()).map(|(a, b)| line([a, b])).collect();
    let laughs = format!("a: &a [{}]\n{laughs}", ["x"; 9].join(","));
    let laughed = refused(&format!("{laughs}scopes: *i\n"));
    assert!(
        laughed.contains("its anchors and aliases (&, *) expand to more than a file of this size"),
        "{laughed}"
    );
    let inside = laughs.lines().map(|line| format!("            {line}\n")).collect::<String>();
    let vm = "scopes:\n  - name: a\n    kind: scale-set\n    vms:\n      - name: x\n        instance:\n          tags:\n";
    assert!(refused(&format!("{vm}{inside}")).contains("f.yaml is not a fleet file"));
    assert!(refused("scopes: &a [ *a ]\n").contains("line 1 column 14"));
    for open in ["[", "{ a: ", "- ", "&a [", "? "] {
        let deep = refused(&format!("scopes: {}", open.repeat(200_000)));
        assert!(deep.contains("f.yaml is not a fleet file"), "{deep}");
    }
    let key = refused(&format!("scopes: []\n? {}\n: 1\n", "x".repeat(100_000)));
    assert!(key.contains("f.yaml:2: unknown key xxx"), "{key}");
    // It never ends.
    let endless = fleet_check_refused(std::path::Path::new("/dev/zero"));
    assert!(endless.contains("/dev/zero exceeds the limit of 268435456 bytes; split it"), "{endless}");
}

/// Runs `serve` where it must fail; returns its error.
fn serve_refused(args: &[&str]) -> String {
    let output = Command::new(binary()).arg("serve").args(args).output().expect("the binary starts");
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn start_failures_are_explained() {
    let service = Service::start(&[]);
    let data = service.data().to_str().unwrap();
    let in_use = serve_refused(&["--data", data, "--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0"]);
    assert!(in_use.contains(data) && in_use.contains("stop it or choose another --data"), "{in_use}");

    let elsewhere = tempfile::tempdir().unwrap();
    let other = elsewhere.path().join("data");
    let other = other.to_str().unwrap();
    let (guest, operator) = (service.guest.to_string(), service.operator.to_string());
    let port = serve_refused(&["--data", other, "--guest", &guest, "--operator", "127.0.0.1:0"]);
    assert!(
        port.contains(&format!("cannot listen at {guest} for guests")) && port.contains("--guest"),
        "{port}"
    );
    let port = serve_refused(&["--data", other, "--guest", "127.0.0.1:0", "--operator", &operator]);
    assert!(
        port.contains(&format!("cannot listen at {operator} for operators")) && port.contains("--operator"),
        "{port}"
    );
    assert!(!elsewhere.path().join("data").exists(), "a port in use leaves nothing behind");

    std::fs::create_dir(other).unwrap();
    std::fs::write(format!("{other}/format"), "7\n").unwrap();
    std::fs::write(format!("{other}/store.redb"), "of another time").unwrap();
    let format = serve_refused(&["--data", other, "--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0"]);
    assert!(
        format.contains("has format \"7\"; this release reads formats 1 and 2 and has touched nothing"),
        "{format}"
    );
    assert_eq!(std::fs::read_to_string(format!("{other}/store.redb")).unwrap(), "of another time");
    std::fs::write(format!("{other}/format"), "1\n").unwrap();
    let garbage = serve_refused(&["--data", other, "--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0"]);
    assert!(garbage.contains("store.redb"), "{garbage}");
    assert_eq!(std::fs::read_to_string(format!("{other}/store.redb")).unwrap(), "of another time");
}

#[test]
fn commands_without_service_fail_with_hint() {
    let nowhere = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let output =
            Command::new(binary()).args(args).env("NOTBEFORE_DATA", nowhere.path()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, stderr) = run(&["vm", "list"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("no token at") && stderr.contains("notbefore serve"), "{stderr}");
    std::fs::write(nowhere.path().join("operator.url"), "http://127.0.0.1:1\n").unwrap();
    let (code, stderr) = run(&["cluster", "status"]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("on the node that led first") && stderr.contains("NOTBEFORE_TOKEN_FILE"),
        "{stderr}"
    );
    std::fs::write(nowhere.path().join("operator.token"), "nb_x\n").unwrap();
    let (code, stderr) = run(&["vm", "restart", "x"]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("cannot connect to the service at http://127.0.0.1:1")
            && stderr.contains("notbefore serve"),
        "{stderr}"
    );
    let (code, stderr) = run(&["event", "schedule", "x"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--type") && stderr.contains("--help"), "{stderr}");
    assert_eq!(run(&["serve", "--notice", "-1"]).0, Some(2));
    assert_eq!(run(&["serve", "--strict", "--lenient"]).0, Some(2));
}
