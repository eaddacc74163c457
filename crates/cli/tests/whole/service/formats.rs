//! Format levels: data of every supported level is opened and used by this version. `fixtures/` has a folder per level,
//! written by the last version of that level.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Service, binary};
use serde_json::Value;
use tempfile::TempDir;

/// The fixtures' history would be removed after 90 days by default.
const FLAGS: [&str; 2] = ["--keep-history", "36500d"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/level-1").join(name)
}

/// A copy of a directory of the fixture.
pub fn copied(name: &str) -> TempDir {
    // Not in /tmp, which is in memory on some systems, where an agent keeps no journal.
    let copy = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for entry in fs::read_dir(fixture(name)).unwrap() {
        let from = entry.unwrap().path();
        let to = copy.path().join(from.file_name().unwrap());
        fs::copy(&from, &to).unwrap();
        fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).unwrap();
    }
    copy
}

/// Events as the expectation files list them: id, type, status, approved, VMs.
fn lines(events: &Value) -> Vec<String> {
    let line = |event: &Value| {
        let vms = event["resources"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap());
        let vms: Vec<&str> = vms.collect();
        let word = |key: &str| event[key].as_str().unwrap().to_owned();
        format!("{} {} {} {} {}", word("id"), word("type"), word("status"), event["approved"], vms.join(","))
    };
    let mut lines: Vec<String> = events.as_array().unwrap().iter().map(line).collect();
    lines.sort();
    lines
}

fn expected(name: &str) -> Vec<String> {
    fs::read_to_string(fixture(name)).unwrap().lines().map(str::to_owned).collect()
}

/// Checks that a service has the fixture's data, and accepts changes.
fn holds_what_was_written(service: &Service) {
    assert_eq!(lines(&service.cli_json(&["event", "list"])), expected("events.txt"));
    let history = service.cli_json(&["event", "history", "--since", "2026-01-01T00:00:00Z"]);
    assert_eq!(lines(&history), expected("history.txt"));
    assert_eq!(service.cli_json(&["vm", "list"]).as_array().unwrap().len(), 9);
    let names: Vec<String> = service
        .cli_json(&["token", "list"])
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token["name"].as_str().unwrap().to_owned())
        .collect();
    assert!(names.contains(&"alice".to_owned()) && names.contains(&"shop".to_owned()), "{names:?}");
    // Scheduled events are approved, started and completed by this version.
    let freeze = "850052dc-6274-527e-b52c-48cb4aa8cd52";
    for verb in ["approve", "complete"] {
        service.cli(&["event", verb, freeze]);
    }
    let reboots = ["aac21e74-34db-556d-8d63-2a68d7a9c712", "51414fc2-5fc4-54a8-9aa2-bd606501e9ea"];
    for event in reboots {
        service.cli(&["event", "approve", event]);
        service.cli(&["event", "show", event]);
    }
}

#[test]
fn data_directory_of_level_1_is_opened() {
    let data = copied("data");
    let service = Service::start_in(data.path(), &FLAGS);
    holds_what_was_written(&service);
    // The next start reads new records and old, unchanged ones.
    let service = service.restart();
    assert_eq!(service.cli_json(&["vm", "list"]).as_array().unwrap().len(), 9);
    let shown = service.cli_json(&["event", "show", "850052dc-6274-527e-b52c-48cb4aa8cd52"]);
    assert_eq!(shown["status"], "Completed");
}

#[test]
fn export_of_level_1_is_imported() {
    let dir = tempfile::tempdir().unwrap();
    let (data, export) = (dir.path().join("data"), fixture("export.jsonl"));
    let args = ["import", export.to_str().unwrap(), "--data", data.to_str().unwrap()];
    let imported = Command::new(binary()).args(args).env_remove("NOTBEFORE_DATA").output().unwrap();
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    // An export has no token file; the one of the data directory is for the same root token.
    fs::copy(fixture("data/operator.token"), data.join("operator.token")).unwrap();
    holds_what_was_written(&Service::start_in(&data, &FLAGS));
}
