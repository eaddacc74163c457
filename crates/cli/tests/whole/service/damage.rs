//! A lost or damaged store: the service detects it, names the recovery, and never treats it as an empty fleet. Also the
//! permissions of the service's files.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Service, binary, wait_for};
use serde_json::Value;

const GUEST: Ipv4Addr = Ipv4Addr::new(127, 1, 41, 1);

fn run(args: &[&str]) -> Output {
    Command::new(binary()).args(args).env_remove("NOTBEFORE_DATA").output().unwrap()
}

/// Runs the command line, which must exit with this code; returns its output and errors.
fn ends(code: i32, args: &[&str]) -> (String, String) {
    let output = run(args);
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert_eq!(output.status.code(), Some(code), "{args:?}: {out}{err}");
    (out, err)
}

/// Starts the service, which must refuse; returns its error. A service that does start is stopped.
fn refused(data: &str, flags: &[&str]) -> String {
    refused_with(1, data, flags)
}

fn refused_with(code: i32, data: &str, flags: &[&str]) -> String {
    let doors = ["serve", "--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0", "--data", data];
    let mut command = Command::new("timeout");
    let output = command.args(["20", binary()]).args(doors).args(flags).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{data} {flags:?}: {stderr}");
    stderr
}

/// Data directory of a stopped service with a VM, a cancelled event and a scheduled one.
fn lived_in(data: &Path) {
    let mut service = Service::start_in(data, &["--always-give-notice"]);
    service.cli(&["vm", "add", "lab", "--address", &GUEST.to_string()]);
    let called_off = service.cli_json(&["vm", "redeploy", "lab"])["id"].as_str().unwrap().to_owned();
    service.cli(&["operation", "cancel", &called_off]);
    service.cli(&["vm", "restart", "lab"]);
    assert!(service.terminate().success());
}

/// Flips a bit in every copy of such a record in the store, live or not.
fn damage(data: &Path, says: &str) {
    let store = data.join("store.redb");
    let mut bytes = fs::read(&store).unwrap();
    let found: Vec<usize> =
        (0..bytes.len() - says.len()).filter(|at| bytes[*at..].starts_with(says.as_bytes())).collect();
    assert!(!found.is_empty(), "{says} is nowhere");
    found.iter().for_each(|at| bytes[*at] ^= 1);
    fs::write(store, bytes).unwrap();
}

#[test]
fn missing_store_refuses_start() {
    let temp = tempfile::tempdir().unwrap();
    let (data, backup) = (temp.path().join("data"), temp.path().join("backup.jsonl"));
    let (dir, file) = (data.to_str().unwrap(), backup.to_str().unwrap());
    let mut service = Service::start_in(&data, &[]);
    service.cli(&["vm", "add", "lab"]);
    service.cli(&["export", file]);
    assert!(service.terminate().success());
    assert_eq!(fs::read_to_string(data.join("format")).unwrap(), "2\nstore\n");
    drop(service);

    let store = data.join("store.redb");
    let aside = data.join("aside");
    fs::rename(&store, &aside).unwrap();
    for _ in ["missing", "empty"] {
        let stderr = refused(dir, &[]);
        assert!(
            stderr.contains("store.redb is missing or empty") && stderr.contains("notbefore import"),
            "{stderr}"
        );
        ends(2, &["check", "--data", dir]);
        fs::write(&store, "").unwrap();
    }
    // Two ways to recover: import an export, or restore the file.
    fs::remove_file(&store).unwrap();
    ends(0, &["import", file, "--data", dir]);
    let mut service = Service::start_in(&data, &[]);
    assert_eq!(service.cli_json(&["vm", "list"])[0]["name"], "lab");
    assert!(service.terminate().success());
    fs::rename(&aside, &store).unwrap();
    drop(Service::start_in(&data, &[]));
    // Without store and format file, the directory counts as new.
    fs::remove_file(&store).unwrap();
    fs::remove_file(data.join("format")).unwrap();
    drop(Service::start_in(&data, &[]));
}

#[test]
fn missing_data_directory_refuses_changes() {
    let temp = tempfile::tempdir().unwrap();
    let (data, aside) = (temp.path().join("data"), temp.path().join("aside"));
    let service = Service::start_in(&data, &[]);
    service.cli(&["vm", "add", "lab", "--address", &GUEST.to_string()]);
    let token = fs::read_to_string(data.join("operator.token")).unwrap();
    let add = |name: &str| {
        let body = format!("{{\"vm\":{{\"name\":\"{name}\"}}}}");
        service.request_with(&token, "POST", "/v1/vms", &format!("Idempotency-Key: {name}\r\n"), &body)
    };
    let document = service.poll(GUEST, "2020-07-01").body;

    fs::rename(&data, &aside).unwrap();
    for name in ["a", "b"] {
        let answer = add(name);
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.body.contains("the store cannot write (/readyz and the log say why)"), "{answer:?}");
    }
    let ready = service.request_with(&token, "GET", "/readyz", "", "");
    assert!(ready.body.contains("store.redb was removed while it was open"), "{ready:?}");
    assert!(ready.status == 503 && ready.body.contains("put the same file back"), "{ready:?}");
    assert_eq!(service.poll(GUEST, "2020-07-01").body, document, "guests go on");
    // If the file is lost, the running service still has all data and can export it.
    let export = service.request_with(&token, "GET", "/v1/export", "", "");
    assert!(export.status == 200 && export.body.contains("notbefore_export_end"), "{export:?}");

    fs::rename(&aside, &data).unwrap();
    wait_for("the service to detect it", || {
        (service.request_with(&token, "GET", "/readyz", "", "").status == 200).then_some(())
    });
    assert_eq!((add("a").status, add("b").status), (201, 201));

    // Remove the file permanently.
    fs::remove_dir_all(&data).unwrap();
    assert_eq!(add("c").status, 503);
}

/// The file is the same but its content is not: further changes would be lost.
#[test]
fn overwritten_store_refuses_changes() {
    let temp = tempfile::tempdir().unwrap();
    for cut in [true, false] {
        let data = temp.path().join(format!("data-{cut}"));
        let (store, copy) = (data.join("store.redb"), temp.path().join("older"));
        let service = Service::start_in(&data, &[]);
        service.cli(&["vm", "add", "one"]);
        fs::copy(&store, &copy).unwrap();
        service.cli(&["vm", "add", "two"]);
        match cut {
            true => fs::OpenOptions::new().write(true).open(&store).unwrap().set_len(4096).unwrap(),
            // Overwrite the same inode, as cp does.
            false => fs::write(&store, fs::read(&copy).unwrap()).unwrap(),
        }
        let answer = service.operator_request("POST", "/v1/vms", "", "{\"vm\":{\"name\":\"three\"}}");
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.body.contains("the store cannot write (/readyz and the log say why)"), "{answer:?}");
        let ready = service.operator_request("GET", "/readyz", "", "");
        assert!(ready.body.contains("was changed by another process while it was open"), "{ready:?}");
    }
}

#[test]
fn damaged_live_record_refuses_start() {
    let temp = tempfile::tempdir().unwrap();
    let (data, rest, new) =
        (temp.path().join("data"), temp.path().join("rest.jsonl"), temp.path().join("new"));
    let (dir, file, new_dir) = (data.to_str().unwrap(), rest.to_str().unwrap(), new.to_str().unwrap());
    lived_in(&data);
    let (whole, _) = ends(0, &["check", "--data", dir]);
    assert!(whole.contains("1 live event, 1 ended") && whole.contains("no damage found"), "{whole}");
    assert_eq!(
        ends(0, &["check", "--data", dir, "--output", "json"]).0.parse::<Value>().unwrap()["whole"],
        true
    );

    damage(&data, "\"members\":[{");
    let stderr = refused(dir, &[]);
    let recovery =
        ["record scope/default/default/lab is damaged", "notbefore check --data", "--skip-damaged"];
    assert!(recovery.iter().all(|line| stderr.contains(line)), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    let (listed, stderr) = ends(1, &["check", "--data", dir]);
    assert!(listed.contains("scope/default/default/lab: its checksum does not match"), "{listed}");
    assert!(stderr.contains("is damaged") && stderr.contains("--skip-damaged"), "{stderr}");
    let json: Value = ends(1, &["check", "--data", dir, "--output", "json"]).0.parse().unwrap();
    assert_eq!(json["whole"], false);
    assert!(json["findings"].as_array().unwrap().iter().any(|one| one["key"] == "scope/default/default/lab"));

    let (stdout, left_out) = ends(0, &["export", file, "--data", dir, "--skip-damaged"]);
    assert!(stdout.contains(file) && left_out.contains("scope/default/default/lab"), "{stdout}{left_out}");
    assert_eq!(fs::metadata(&rest).unwrap().permissions().mode() & 0o777, 0o600);
    ends(0, &["import", file, "--data", new_dir]);
    fs::copy(data.join("operator.token"), new.join("operator.token")).unwrap();
    let service = Service::start_in(&new, &[]);
    let history = service.cli_json(&["event", "history", "--since", "1h"]);
    assert_eq!(history.as_array().unwrap().len(), 1, "the rest is there");
}

#[test]
fn damaged_history_is_skipped_and_counted() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let dir = data.to_str().unwrap();
    lived_in(&data);
    damage(&data, "\"scope\":\"default/default/lab\",\"outcome\"");
    let mut service = Service::start_in(&data, &[]);
    let history = service.cli_json(&["event", "history", "--since", "1h"]);
    assert_eq!(history.as_array().unwrap().len(), 0, "{history}");
    let metrics = service.operator_request("GET", "/metrics", "", "").body;
    assert!(metrics.contains("notbefore_store_damaged_records 1"), "{metrics}");
    let cut = service.cli_refused(&["export", temp.path().join("cut.jsonl").to_str().unwrap()]);
    assert!(cut.contains("the export is incomplete") && cut.contains("--skip-damaged"), "{cut}");
    assert!(!temp.path().join("cut.jsonl").exists());
    // The service only reads the file, so others may, too.
    ends(1, &["check", "--data", dir]);
    assert!(service.terminate().success());
    let (listed, _) = ends(1, &["check", "--data", dir]);
    assert!(listed.contains("past/") && listed.contains("its checksum does not match"), "{listed}");
}

/// A damaged page of the file: no invented data, and no panic.
#[test]
fn damaged_page_error_names_recovery() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let dir = data.to_str().unwrap();
    lived_in(&data);
    let store = data.join("store.redb");
    let whole = fs::read(&store).unwrap();
    let pages = whole.chunks(4096).enumerate().filter(|(_, page)| page.iter().any(|byte| *byte != 0));
    for (number, _) in pages.skip(1).collect::<Vec<_>>() {
        let mut holed = whole.clone();
        holed[number * 4096..(number + 1) * 4096].fill(0xff);
        fs::write(&store, holed).unwrap();
        let output = run(&["check", "--data", dir]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!stderr.contains("panicked"), "page {number}: {stderr}");
        assert!([0, 1].contains(&output.status.code().unwrap()), "page {number}: {stderr}");
    }
}

/// Pages of the file are as an older commit wrote them, after lost writes. `crates/service/tests/it/lost_writes.rs` tries
/// all of them.
#[test]
fn lost_write_is_named_and_never_served() {
    const PAGE_BYTES: usize = 4096;
    let temp = tempfile::tempdir().unwrap();
    let (data, rest) = (temp.path().join("data"), temp.path().join("rest.jsonl"));
    let (dir, file) = (data.to_str().unwrap(), rest.to_str().unwrap());
    let store = data.join("store.redb");
    let mut service = Service::start_in(&data, &["--always-give-notice"]);
    let mut images = Vec::new();
    for command in ["vm add a", "vm add b", "vm restart a", "vm redeploy b", "vm add c", "vm restart c"] {
        service.cli(&command.split(' ').collect::<Vec<_>>());
        images.push(fs::read(&store).unwrap());
    }
    let shown = |service: &Service| {
        let list = |noun: &str, key: &str| -> Vec<String> {
            let found = service.cli_json(&[noun, "list"]);
            let mut ids: Vec<String> =
                found.as_array().unwrap().iter().map(|one| one[key].to_string()).collect();
            ids.sort();
            ids
        };
        [list("vm", "name"), list("event", "id")]
    };
    let acknowledged = shown(&service);
    assert_eq!(acknowledged[1].len(), 3, "{acknowledged:?}");
    assert!(service.terminate().success());

    let last = fs::read(&store).unwrap();
    let mut lost = BTreeSet::new();
    for (number, page) in images.iter().flat_map(|image| image.chunks(PAGE_BYTES).enumerate().skip(1)) {
        // The file shrinks when it is closed.
        if last.chunks(PAGE_BYTES).nth(number).is_some_and(|last| last != page) {
            lost.insert((number, page));
        }
    }
    let mut named = 0;
    for (number, page) in (0..7).flat_map(|first| lost.iter().skip(first).step_by(7)) {
        let mut image = last.clone();
        image[number * PAGE_BYTES..][..page.len()].copy_from_slice(page);
        fs::write(&store, &image).unwrap();
        let checked = run(&["check", "--data", dir]);
        if checked.status.success() {
            // The newest commit does not use the page.
            continue;
        }
        assert_eq!(checked.status.code(), Some(1), "page {number}");
        assert!(!checked.stdout.is_empty(), "page {number}");
        let export = run(&["export", file, "--data", dir, "--skip-damaged"]);
        assert!(!export.stderr.is_empty(), "page {number}: the export names nothing");
        assert_eq!(export.status.success(), rest.exists(), "page {number}");
        let _ = fs::remove_file(&rest);
        let started = std::panic::catch_unwind(|| Service::start_in(&data, &[]));
        match started {
            Ok(service) => {
                assert_eq!(shown(&service), acknowledged, "page {number}: the past is served");
                let change = r#"{"type": "Reboot", "vms": ["a"]}"#;
                let refused = service.operator_request("POST", "/v1/events", "", change);
                assert_eq!(refused.status, 503, "page {number}: {refused:?}");
                let ready = service.operator_request("GET", "/readyz", "", "");
                assert_eq!(ready.status, 503, "page {number}: {ready:?}");
                assert!(ready.body.contains("the checksums of its pages do not match"), "{ready:?}");
            }
            Err(_) => {
                let why = refused(dir, &[]);
                assert!(why.contains("notbefore check --data DIR"), "page {number}: {why}");
            }
        }
        assert!(fs::read(&store).unwrap() == image, "page {number}: a damaged file is written");
        named += 1;
        if named == 10 {
            return;
        }
    }
    panic!("only {named} of {} pages are used", lost.len());
}

#[test]
fn check_reports_unknown_records() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().to_str().unwrap();
    let (_, stderr) = ends(2, &["check", "--data", dir]);
    assert!(stderr.contains("is not a data directory"), "{stderr}");
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0, "nothing was touched");
    fs::write(temp.path().join("format"), "9\n").unwrap();
    ends(2, &["check", "--data", dir]);
    let service = Service::start(&[]);
    let (_, stderr) = ends(2, &["check", "--data", service.data().to_str().unwrap()]);
    assert!(stderr.contains("is in use"), "{stderr}");
    assert_eq!(stderr.matches("store.redb").count(), 1, "{stderr}");
}

/// 1 says that there is damage.
#[test]
fn check_of_unreadable_store_is_a_usage_error() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let (dir, store) = (data.to_str().unwrap(), data.join("store.redb"));
    lived_in(&data);
    let whole = fs::read(&store).unwrap();
    let known = fs::read_to_string(data.join("format")).unwrap();
    for format in [known.as_str(), known.strip_suffix("store\n").unwrap()] {
        fs::write(data.join("format"), format).unwrap();
        fs::write(&store, "").unwrap();
        assert!(ends(2, &["check", "--data", dir]).1.contains("store.redb is missing or empty"), "{format}");
        fs::remove_file(&store).unwrap();
        assert!(ends(2, &["check", "--data", dir]).1.contains("store.redb is missing or empty"), "{format}");
    }
    fs::write(&store, "not a store any more").unwrap();
    ends(1, &["check", "--data", dir]);
    fs::write(&store, whole).unwrap();
    ends(0, &["check", "--data", dir]);
    fs::set_permissions(&store, fs::Permissions::from_mode(0o600)).unwrap();
    // Root without these capabilities has the rights of an ordinary user.
    std::os::unix::fs::chown(&store, Some(1000), None).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-dac_override,-dac_read_search", binary(), "check", "--data", dir]);
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("store.redb; notbefore must be able to read and write it"), "{stderr}");
}

#[test]
fn second_service_is_refused_without_store() {
    let service = Service::start(&[]);
    let data = service.data().to_str().unwrap();
    assert!(refused(data, &[]).contains("is in use: another notbefore serve has it open"));
    fs::rename(service.data().join("store.redb"), service.data().join("aside")).unwrap();
    fs::write(service.data().join("format"), "2\n").unwrap();
    assert!(refused(data, &[]).contains("is in use: another notbefore serve has it open"));
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn files_are_private_regardless_of_umask() {
    for umask in ["000", "277"] {
        let temp = tempfile::tempdir().unwrap();
        let (data, url) = (temp.path().join("a/b"), temp.path().join("a/b/operator.url"));
        let script = format!(
            "umask {umask}; exec {} serve --guest 127.0.0.1:0 --operator 127.0.0.1:0 --driver exec --exec /bin/true --data {}",
            binary(),
            data.display()
        );
        let mut child =
            Command::new("sh").args(["-c", &script]).stdout(std::process::Stdio::null()).spawn().unwrap();
        wait_for("the service to start", || url.exists().then_some(()));
        let modes =
            ["", "exec", "store.redb", "lock", "operator.token", "operator.url", "format", "listeners.json"];
        let found = modes.map(|name| format!("{:o}", mode(&data.join(name))));
        let _ = (child.kill(), child.wait());
        assert_eq!(found, ["700", "700", "600", "600", "600", "644", "644", "644"], "umask {umask}");
        assert_eq!(mode(&temp.path().join("a")), 0o700, "umask {umask}");
    }
}

#[test]
fn short_first_token_and_linked_exec_directory_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let (data, elsewhere) = (temp.path().join("data"), temp.path().join("elsewhere"));
    let dir = data.to_str().unwrap();
    fs::create_dir(&data).unwrap();
    for (token, chars) in [("", "0"), ("nineteen-characters", "19")] {
        fs::write(data.join("operator.token"), format!("{token}\n")).unwrap();
        let stderr = refused_with(2, dir, &[]);
        let says =
            format!("operator.token holds a first token of {chars} characters, at least 20 are needed");
        assert!(stderr.contains(&says), "{stderr}");
    }
    fs::write(data.join("operator.token"), "twenty-characters-it\n").unwrap();
    let service = Service::start_in(&data, &[]);
    service.cli(&["vm", "list"]);
    drop(service);

    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("precious"), "").unwrap();
    std::os::unix::fs::symlink(&elsewhere, data.join("exec")).unwrap();
    let stderr = refused(dir, &["--driver", "exec", "--exec", "/bin/true"]);
    assert!(stderr.contains("exec is a symbolic link") && stderr.contains("remove the link"), "{stderr}");
    assert!(elsewhere.join("precious").exists());
}

#[test]
fn refused_import_leaves_no_files() {
    let temp = tempfile::tempdir().unwrap();
    let export = temp.path().join("cut.jsonl");
    fs::write(&export, "{\"notbefore_export\":1}\n").unwrap();
    let data = temp.path().join("a/b");
    ends(1, &["import", export.to_str().unwrap(), "--data", data.to_str().unwrap()]);
    assert!(!temp.path().join("a").exists());
}
