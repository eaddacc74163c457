//! What scripts and containers use: the listeners in a file, the ready file, one line of JSON, the first token from a
//! file, and `notbefore healthy`.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::scripted::scripted_platform;
use crate::support::{Service, binary};

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Runs a service that must not start; returns its exit code and what it says.
fn refused(data: &Path, flags: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(binary());
    command.args(["serve", "--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0", "--data"]).arg(data);
    let output = command.args(flags).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn listeners_file_and_ready_file_name_every_listener_while_service_runs() {
    let place = tempfile::tempdir().unwrap();
    let ready = place.path().join("ready.json");
    let flags = ["--guest", "0.0.0.0:0", "--guest", "blue=127.0.0.1:0", "--guest-vm", "web-0=127.0.0.1:0"];
    let flags: Vec<&str> = flags.into_iter().chain(["--ready-file", ready.to_str().unwrap()]).collect();
    let mut service = Service::start(&flags);
    let listeners = service.data().join("listeners.json");
    let found = read_json(&listeners);
    assert_eq!(found, read_json(&ready));
    assert_eq!(fs::metadata(&ready).unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(found["pid"], service.pid());
    assert_eq!(found["token_file"], service.data().join("operator.token").to_str().unwrap());
    assert_eq!(found["operator"]["address"], service.operator.to_string());
    assert_eq!(found["operator"]["url"], format!("http://{}", service.operator));
    // Guest listeners are all there, although no VM has an address in their networks.
    let guest = &found["guest"];
    assert_eq!((&guest[0]["network"], &guest[1]["network"]), (&"default".into(), &"blue".into()));
    let address = guest[0]["address"].as_str().unwrap();
    let port = address.strip_prefix("0.0.0.0:").unwrap();
    assert_eq!(guest[0]["url"], format!("http://127.0.0.1:{port}"), "a wildcard address cannot be called");
    assert_ne!(port, "0");
    assert_eq!(found["guest_vms"][0]["vm"], "default/default/web-0/web-0");
    assert_eq!(found["guest_vms"][0]["address"], service.guest_vms[0].to_string());

    // Another service that cannot start here leaves the files alone.
    let (code, said) = refused(service.data(), &["--ready-file", ready.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(read_json(&ready)["pid"], service.pid());

    // A killed service leaves its files, and the next one replaces them.
    service.kill();
    assert!(ready.exists() && listeners.exists());
    let mut service = service.restart();
    assert_eq!(read_json(&ready)["pid"], service.pid());
    assert!(service.terminate().success());
    assert!(!ready.exists() && !listeners.exists() && !service.data().join("operator.url").exists());
}

#[test]
fn empty_token_variables_are_not_set() {
    let service = Service::start(&[]);
    for name in ["NOTBEFORE_TOKEN", "NOTBEFORE_TOKEN_FILE"] {
        let mut command = Command::new(binary());
        command.args(["token", "show", "-o", "name"]).env("NOTBEFORE_DATA", service.data()).env(name, "");
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "root\n", "{name}: {output:?}");
    }
}

#[test]
fn negative_span_says_what_to_type() {
    for (command, what) in [
        ("token create a --role operator --expires -5m", "'--expires <SPAN>': \"-5m\" is negative; type 5m"),
        ("operation wait abcd --timeout -5", "'--timeout <SPAN>': \"-5\" is negative; type 5"),
        ("host maintain h --type freeze --not-before -5m", "\"-5m\" is in the past; type --in 5m"),
        ("event history --since -5m", "\"-5m\" has a minus sign; type 5m for that long ago"),
        ("audit --until -5m", "\"-5m\" has a minus sign; type 5m for that long ago"),
    ] {
        let output = Command::new(binary()).args(command.split(' ')).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {stderr}");
        assert!(stderr.contains(what) && !stderr.contains("tip:"), "{command}: {stderr}");
    }
}

/// A script that reads only the error must not repeat the change.
#[test]
fn full_standard_output_is_named_after_a_change() {
    let service = Service::start(&[]);
    service.cli(&["vm", "add", "b", "--host", "h8"]);
    let run = |args: &str| {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(binary());
        command.args(args.split(' ')).env("NOTBEFORE_DATA", service.data()).stdout(full);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let cause = "cannot write to standard output: No space left on device";
    assert_eq!(run("vm list"), format!("notbefore: {cause} (os error 28)\n"));
    let changed = "the change is made, but its result is not printed; do not repeat it: ";
    for (args, why) in [
        ("host maintain h8 --type freeze --yes -o json", changed),
        ("host ok h8 -o json", changed),
        ("vm add a -o json", changed),
        ("event schedule a --type reboot", changed),
        ("host ok h8", "h8 and those before it are done, those after it are not: "),
        ("token create t --role viewer --on /", "run 'notbefore token revoke t', then create it again: "),
    ] {
        let stderr = run(args);
        assert!(stderr.contains(&format!("{why}{cause}")), "{args}: {stderr}");
    }
}

#[test]
fn ready_file_replaces_no_other_file() {
    let place = tempfile::tempdir().unwrap();
    let (data, other) = (place.path().join("data"), place.path().join("fleet.yaml"));
    fs::write(&other, "scopes: []\n").unwrap();
    let is_kept = |file: &Path| {
        let (code, stderr) = refused(&data, &["--ready-file", file.to_str().unwrap()]);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains("the file exists and is no ready file of a service"), "{stderr}");
        assert!(file.exists(), "{}", file.display());
    };
    is_kept(&other);
    assert_eq!(fs::read_to_string(&other).unwrap(), "scopes: []\n");
    // The service creates these itself before it is ready.
    is_kept(&data.join("operator.token"));
    is_kept(&data.join("store.redb"));
    is_kept(&data);
}

#[test]
fn ready_file_that_cannot_be_written_stops_the_service() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let (code, said) = refused(&data, &["--ready-file", "/nowhere/ready"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot write /nowhere/ready: No such file or directory"), "{said}");
    assert!(!data.join("operator.url").exists() && !data.join("listeners.json").exists());
}

#[test]
fn json_output_of_serve_is_one_line_when_ready() {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(binary());
    command.args(["serve", "-o", "json", "--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0", "--data"]);
    let mut child = command.arg(place.path()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&line).unwrap(),
        read_json(&place.path().join("listeners.json"))
    );
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(rest, "", "one line");
}

#[test]
fn first_token_comes_from_a_file() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("token");
    let put = |token: &str, mode: u32| {
        fs::write(&file, token).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    };
    let variables = [("NOTBEFORE_ROOT_TOKEN_FILE", file.to_str().unwrap()), ("NOTBEFORE_LOG", "warn")];
    put("my-own-first-token-0001\n", 0o640);
    let service = Service::start_with(&variables, &[]);
    let answers =
        |service: &Service, token: &str| service.request_with(token, "GET", "/v1/vms", "", "").status;
    assert_eq!(answers(&service, "my-own-first-token-0001"), 200);
    service.cli(&["vm", "list"]);
    assert_eq!(
        fs::read_to_string(service.data().join("operator.token")).unwrap(),
        "my-own-first-token-0001\n"
    );
    assert_eq!(service.log(), "", "a file that only owner and group can read");

    // A token that exists stays; the log says so.
    put("my-own-first-token-0002\n", 0o644);
    let mut service = service.restart();
    let log = service.log();
    assert!(log.contains("every user can read the first token: run chmod o= on the file"), "{log}");
    assert!(log.contains("this file does not hold the token root, which exists and stays as it is"), "{log}");
    assert!(!log.contains("first-token-0002") && !log.contains("first-token-0001"), "{log}");
    assert_eq!(answers(&service, "my-own-first-token-0001"), 200);
    assert_eq!(answers(&service, "my-own-first-token-0002"), 401);

    // As the log says: without its copy it is made again, from the file.
    service.kill();
    fs::remove_file(service.data().join("operator.token")).unwrap();
    let service = service.restart();
    assert_eq!(answers(&service, "my-own-first-token-0001"), 401);
    assert_eq!(answers(&service, "my-own-first-token-0002"), 200);
}

#[test]
fn unusable_first_token_is_refused_before_it_is_stored() {
    let place = tempfile::tempdir().unwrap();
    let (data, file) = (place.path().join("data"), place.path().join("token"));
    let path = file.to_str().unwrap();
    for (token, says) in [
        ("nineteen-characters\n".to_owned(), "holds a first token of 19 characters, at least 20 are needed"),
        ("two-lines-of-a-token\nare not one header\n".to_owned(), "cannot be sent in a header"),
        ("t\u{f6}ken-with-an-umlaut-in-it\n".to_owned(), "cannot be sent in a header"),
        ("x".repeat(5_000), "it is too large for a token"),
    ] {
        fs::write(&file, token).unwrap();
        let (code, said) = refused(&data, &["--root-token-file", path]);
        assert!(code == Some(2) && said.contains(path) && said.contains(says), "{said}");
        assert!(!data.join("operator.token").exists(), "{said}");
        let (code, said) = refused(&data, &["--root-token-file", path, "--check-config"]);
        assert!(code == Some(2) && said.contains(says), "{said}");
    }
    let (_, said) = refused(&data, &["--root-token-file", "/nowhere/token"]);
    assert!(said.contains("cannot read the first token from /nowhere/token: No such file"), "{said}");
    assert!(said.contains("NOTBEFORE_ROOT_TOKEN_FILE"), "{said}");
}

/// Runs `notbefore healthy` without any variable, so without a token.
fn healthy(words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(binary());
    let Output { status, stdout, stderr } = command.arg("healthy").args(words).env_clear().output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn healthy_exits_with_zero_while_the_service_is_ready() {
    let mut service = Service::start(&[]);
    let data = service.data().to_str().unwrap().to_owned();
    let url = format!("http://{}", service.operator);
    // It needs no token.
    fs::remove_file(service.data().join("operator.token")).unwrap();
    let done = |text: &str| (Some(0), text.to_owned(), String::new());
    assert_eq!(healthy(&["--data", &data]), done("ready\n"));
    assert_eq!(healthy(&["--data", &data, "--alive"]), done("ok\n"));
    assert_eq!(healthy(&["--operator-url", &url]), done("ready\n"));
    let (_, json, _) = healthy(&["--data", &data, "-o", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json, serde_json::json!({ "healthy": true, "url": url, "answer": ["ready"] }));

    service.kill();
    let (code, out, said) = healthy(&["--data", &data]);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{said}");
    assert!(said.contains(&format!("cannot connect to the service at {url}: ")), "{said}");
    fs::remove_file(service.data().join("operator.url")).unwrap();
    let (code, _, said) = healthy(&["--data", &data]);
    assert!(code == Some(1) && said.contains("no service runs here: there is no "), "{said}");
}

#[test]
fn healthy_says_why_the_service_is_not_ready() {
    let url = scripted_platform(|line| match line.split(' ').nth(1) {
        Some("/readyz") => Some(("503 Service Unavailable", "store is read-only: disk full\n")),
        Some("/healthz") => Some(("200 OK", "<html>a proxy\u{1b}[31m</html>")),
        _ => None,
    });
    let (code, out, said) = healthy(&["--operator-url", &url]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(
        said,
        format!("notbefore: the service at {url} is not ready: store is read-only: disk full\n")
    );
    let (code, _, said) = healthy(&["--operator-url", &url, "--alive"]);
    assert!(
        code == Some(1) && said.contains("/healthz answered 200 OK, but not as notbefore does"),
        "{said}"
    );
}
