//! The operator API against its OpenAPI description: the served description equals the checked-in file, and
//! schemathesis, which generates thousands of requests from it, finds no errors in the responses.

use std::fs;
use std::process::Command;

use crate::support::pages::root;
use crate::support::{Service, binary};
use serde_json::Value;

#[test]
fn served_openapi_matches_checked_in_file() {
    let checked_in = fs::read_to_string(root().join("docs/openapi.json")).unwrap();
    let printed = Command::new(binary()).arg("openapi").output().unwrap();
    assert!(printed.status.success());
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(checked_in == printed, "the program was built from another docs/openapi.json");

    let service = Service::start(&[]);
    let served = service.operator_request("GET", "/v1/openapi.json", "", "");
    assert_eq!(served.status, 200);
    assert_eq!(served.json(), serde_json::from_str::<Value>(&checked_in).unwrap());
}

#[test]
fn operation_ids_are_unique() {
    let description: Value =
        serde_json::from_str(&fs::read_to_string(root().join("docs/openapi.json")).unwrap()).unwrap();
    let calls = description["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap());
    let mut names: Vec<&str> =
        calls.map(|(method, call)| call["operationId"].as_str().expect(method)).collect();
    let many = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), many, "a client generator makes one function of two: {names:?}");
}

/// Existing names and ids, so that requests get past 404; schemathesis also generates unknown ones.
fn known(service: &Service) -> String {
    let operation =
        service.cli_json(&["event", "schedule", "--type", "reboot", "--in", "1h", "web-0", "web-1"]);
    let target = &operation["targets"][0];
    format!(
        "[parameters]\n\"path.vm\" = \"web-1\"\n\"path.subscription\" = \"default\"\n\"path.group\" = \"default\"\n\"path.scope\" = \"web\"\n\"path.host\" = \"h1\"\n\"path.event\" = {}\n\"path.operation\" = {}\n{REJECTED}",
        target["event"], operation["id"]
    )
}

/// Statuses that count as a refusal of invalid data. A stale revision is detected before invalid data.
const REJECTED: &str = "[checks]\nnegative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 406, 409, 412, 415, 422, 428, 429, \"5xx\"]\n";

/// The stream is excluded because it never ends. `positive_data_acceptance` is excluded because the description cannot
/// express every refusal, such as a NotBefore nearer than the notice or an address in use.
#[test]
fn schemathesis_finds_no_errors() {
    let schemathesis = root().join("target/tests-python/bin/schemathesis");
    assert!(schemathesis.exists(), "{} is missing: './dev test api' makes it", schemathesis.display());
    let service = Service::start(&["--simulated-duration", "1s"]);
    let temp = tempfile::tempdir().unwrap();
    service.apply_fleet(
        "scopes: [{ name: web, kind: availability-set, vms: [{ name: web-0, host: h1 }, { name: web-1, update_domain: 1 }] }]",
    );
    let config = temp.path().join("schemathesis.toml");
    fs::write(&config, known(&service)).unwrap();
    let token = fs::read_to_string(service.data().join("operator.token")).unwrap();

    let mut command = Command::new(schemathesis);
    command.arg("--config-file").arg(config).arg("run").arg(root().join("docs/openapi.json"));
    command.args(["--url", &format!("http://{}", service.operator)]);
    command.args(["--header", &format!("Authorization: Bearer {}", token.trim())]);
    command.args(["--exclude-path", "/v1/stream", "--exclude-checks", "positive_data_acceptance"]);
    // A fixed seed sends the same requests in every run, so a failure is reproducible.
    command.args([
        "--seed",
        "7",
        "--generation-deterministic",
        "--max-examples",
        "25",
        "--request-timeout",
        "10",
    ]);
    let found = command.current_dir(temp.path()).env("NO_COLOR", "1").output().unwrap();
    let stdout = String::from_utf8_lossy(&found.stdout);
    assert!(found.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&found.stderr));
    assert!(stdout.contains(" passed"), "it must have tried something: {stdout}");
    assert_eq!(service.operator_request("GET", "/readyz", "", "").status, 200);
}
