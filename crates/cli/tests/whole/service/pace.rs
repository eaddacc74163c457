//! A tenant cannot fill the disk: changes are rate-limited, and stored operations per scope are limited.

use crate::support::{Answer, Service, binary, wait_for};
use serde_json::json;

const FLEET: &str = "scopes:
  - { name: a, group: shop, kind: standalone, vms: [ { name: a } ] }
  - { name: b, group: shop, kind: standalone, vms: [ { name: b } ] }
";

/// A tenant's token for both scopes.
fn tenant(service: &Service, name: &str) -> String {
    let made = service.cli_json(&["token", "create", name, "--role", "tenant", "--on", "default/shop"]);
    made["secret"].as_str().unwrap().to_owned()
}

/// Restarts VM a with a tenant's token.
fn restart(service: &Service, token: &str, key: &str) -> Answer {
    service.request_with(token, "POST", "/v1/vms/a/restart", &format!("Idempotency-Key: {key}\r\n"), "{}")
}

#[test]
fn tenant_changes_are_rate_limited_except_repeats() {
    let limits =
        [("NOTBEFORE_OPERATOR_CHANGES_AT_ONCE", "3"), ("NOTBEFORE_OPERATOR_CHANGES_PER_SECOND", "1")];
    let service = Service::start_with(&limits, &["--simulated-duration", "1s"]);
    service.apply_fleet(FLEET);
    let (token, other) = (tenant(&service, "shop"), tenant(&service, "desk"));
    let first = restart(&service, &token, "k0");
    assert_eq!(first.status, 201, "{first:?}");
    // On a slow machine the limit refills meanwhile.
    let (done, refused) = (1..200)
        .find_map(|n| {
            Some((n, restart(&service, &token, &format!("k{n}")))).filter(|(_, one)| one.status == 429)
        })
        .unwrap();
    assert!(done >= 3, "{done} were made");
    assert!(
        refused.head.contains("Retry-After: 1") || refused.head.contains("retry-after: 1"),
        "{refused:?}"
    );
    assert_eq!(refused.json()["code"], "too_many_changes");
    for _ in 0..20 {
        let again = restart(&service, &token, "k0");
        assert_eq!((again.status, again.json()["id"].clone()), (201, first.json()["id"].clone()));
    }
    assert_eq!(restart(&service, &other, "k").status, 201, "each token has its own");
    for n in 0..5 {
        service.cli(&["vm", "restart", if n % 2 == 0 { "a" } else { "b" }]);
    }
    // The command line waits for the Retry-After time.
    let waited = std::process::Command::new(binary())
        .args(["vm", "restart", "a", "-o", "json"])
        .env("NOTBEFORE_DATA", service.data())
        .env("NOTBEFORE_TOKEN", &token)
        .output()
        .unwrap();
    assert!(waited.status.success(), "{waited:?}");
}

#[test]
fn costly_reads_of_a_token_are_rate_limited() {
    let service = Service::start(&[]);
    let token = tenant(&service, "shop");
    let ask = |path: &str| service.request_with(&token, "GET", path, "", "");
    // On a slow machine the limit refills meanwhile.
    let refused = (0..200).map(|_| ask("/v1/history/summary")).find(|one| one.status == 429).unwrap();
    assert_eq!(refused.json()["code"], "too_many_costly_reads");
    assert!(refused.head.to_ascii_lowercase().contains("retry-after: 1"), "{refused:?}");
    assert_eq!(ask("/v1/vms").status, 200, "other reads are not limited");
    // Exports count, too, also those of an operator on '/'.
    let refused =
        (0..200).map(|_| service.operator_request("GET", "/v1/export", "", "")).find(|one| one.status == 429);
    assert_eq!(refused.unwrap().code(), "too_many_costly_reads");
}

#[test]
fn user_operations_per_scope_are_limited() {
    let limit = [("NOTBEFORE_EVENTS_STORED_USER_OPERATIONS_MAX", "2")];
    let service = Service::start_with(&limit, &["--simulated-duration", "1s"]);
    service.apply_fleet(FLEET);
    let token = tenant(&service, "shop");
    for n in 0..2 {
        let made = restart(&service, &token, &format!("k{n}"));
        assert_eq!(made.status, 201, "{made:?}");
    }
    wait_for("both to end", || (service.cli_json(&["event", "list"]) == json!([])).then_some(()));
    let service = service.restart();
    let refused = restart(&service, &token, "k2");
    assert_eq!((refused.status, refused.json()["code"].clone()), (409, json!("too_many_stored_operations")));
    assert!(refused.body.contains("2 user operations are stored for scope"), "{refused:?}");
    let elsewhere = service.request_with(&token, "POST", "/v1/vms/b/restart", "", "{}");
    assert_eq!(elsewhere.status, 201, "{elsewhere:?}");
    // Platform and operator requests are not limited, and no record was removed to make room.
    service.cli(&["event", "schedule", "--cause", "host-failure", "a"]);
    service.cli(&["vm", "restart", "a"]);
    assert!(service.cli_json(&["event", "history"]).as_array().unwrap().len() >= 2);
}
