//! Settings from file, environment and flags; the samples in `dist/`; systemd notifications.

mod samples;

use std::path::Path;
use std::process::{Command, Output};

use crate::support;
use crate::support::manager::Manager;
use crate::support::{Service, binary};
use serde_json::Value;

/// Runs `serve` with these arguments and only these variables.
fn serve(args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(binary());
    command.arg("serve").args(args).env_clear().envs(variables.iter().copied());
    command.output().unwrap()
}

fn printed(args: &[&str], variables: &[(&str, &str)]) -> String {
    let args: Vec<&str> = args.iter().copied().chain(["--print-config"]).collect();
    let output = serve(&args, variables);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(args: &[&str], variables: &[(&str, &str)]) -> String {
    let output = serve(args, variables);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn file(dir: &Path, text: &str) -> String {
    let path = dir.join("n.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The value of a key (the first of that name) and its source.
fn entry<'a>(printed: &'a str, name: &str) -> (&'a str, &'a str) {
    let begin = format!("{name} = ");
    let found = printed.lines().find_map(|line| line.strip_prefix(&begin)?.split_once('#'));
    let (value, source) = found.unwrap_or_else(|| panic!("no {name} in {printed}"));
    (value.trim(), source.trim())
}

#[test]
fn flags_override_environment_and_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(
        dir.path(),
        "[guest]\nlisten = [\"127.0.0.1:1\", \"blue=127.0.0.1:2\"]\nmode = \"lenient\"\nrate_limit = 5\n\n[guest.limits]\nidle_timeout = \"1h\"\n",
    );
    let args = ["--config", &path, "--guest", "127.0.0.1:7", "--guest", "red=127.0.0.1:8"];
    let config =
        printed(&args, &[("NOTBEFORE_GUEST_RATE_LIMIT", "9"), ("NOTBEFORE_GUEST_LISTEN", "127.0.0.1:5")]);
    assert_eq!(entry(&config, "listen"), ("[\"127.0.0.1:7\", \"red=127.0.0.1:8\"]", "flag --guest"));
    assert_eq!(entry(&config, "rate_limit"), ("9", "environment NOTBEFORE_GUEST_RATE_LIMIT"));
    assert_eq!(entry(&config, "mode"), ("\"lenient\"", &*format!("{path}:3")));
    assert_eq!(entry(&config, "idle_timeout"), ("\"1h\"", &*format!("{path}:7")));
    assert_eq!(entry(&config, "kind"), ("\"simulated\"", "default"));

    // The environment can name the file, and a flag overrides its values.
    let config = printed(&["--strict", "--rate-limit", "none"], &[("NOTBEFORE_CONFIG", &path)]);
    assert_eq!(entry(&config, "mode"), ("\"strict\"", "flag --strict"));
    assert_eq!(entry(&config, "rate_limit"), ("\"none\"", "flag --rate-limit"));
    let on = file(dir.path(), "operator.without_tls = true\n");
    assert!(printed(&["--config", &on], &[]).contains("without_tls = true "));
    assert!(
        printed(&["--config", &on, "--operator-without-tls=false"], &[]).contains("without_tls = false ")
    );
}

#[test]
fn printed_config_round_trips() {
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "--notice",
        "0.25",
        "--guest-vm",
        "web-0=127.0.0.1:9301",
        "--always-give-notice",
        "--data",
        "a \"b\"",
    ];
    let first =
        printed(&args, &[("NOTBEFORE_LOG", "warn,hyper=info"), ("NOTBEFORE_EVENTS_KEEP_HISTORY", "36h")]);
    let path = file(dir.path(), &first);
    let second = printed(&["--config", &path], &[]);
    let values = |text: &str| -> Vec<String> {
        text.lines()
            .filter_map(|line| line.rsplit_once('#'))
            .map(|(value, _)| value.trim_end().to_owned())
            .collect()
    };
    assert_eq!(values(&first)[1..], values(&second)[1..]);
    let json = serve(&["--config", &path, "--print-config", "--output", "json"], &[]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["file"], path);
    let notice =
        json["settings"].as_array().unwrap().iter().find(|one| one["key"] == "events.notice").unwrap();
    assert_eq!(notice["value"], 0.25);
    assert!(notice["source"].as_str().unwrap().starts_with(&format!("{path}:")), "{notice}");
}

#[test]
fn config_errors_name_line_and_fix() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "[guest]\n\nlimts = 3\nrate_limit = true\n");
    let error =
        refused(&["--config", &path], &[("NOTBEFORE_OPERATOR_LISTN", "x"), ("NOTBEFORE_LOG", "loud=very")]);
    assert!(error.contains("the configuration has 4 mistakes"), "{error}");
    assert!(
        error.contains(&format!("{path}:3: unknown key guest.limts; did you mean guest.limits?")),
        "{error}"
    );
    assert!(
        error.contains(&format!("{path}:4: guest.rate_limit: expected a whole number from 1 on")),
        "{error}"
    );
    assert!(
        error.contains(
            "NOTBEFORE_OPERATOR_LISTN: there is no such setting; did you mean NOTBEFORE_OPERATOR_LISTEN?"
        ),
        "{error}"
    );
    assert!(error.contains("NOTBEFORE_LOG: expected a level"), "{error}");

    assert!(refused(&["--config", "/nowhere.toml"], &[]).contains("cannot read /nowhere.toml"));
    let huge = file(dir.path(), &"# a long remark\n".repeat(100_000));
    assert!(refused(&["--config", &huge], &[]).contains("larger than 1048576 bytes"));
    let flags = refused(
        &["--rate-limit", "0", "--guest", "x", "--strict", "--exec-attempts=0"],
        &[("NOTBEFORE_LOG", "loud=very")],
    );
    assert!(
        flags.contains("4 mistakes") && flags.contains("environment NOTBEFORE_LOG: expected a level"),
        "{flags}"
    );
    assert!(
        flags.contains("flag --rate-limit: expected a whole number from 1 on, or \"none\", not \"0\""),
        "{flags}"
    );
    assert!(
        flags.contains("flag --exec-attempts: expected a whole number from 1 to 1000000, not \"0\""),
        "{flags}"
    );
    assert!(refused(&["--check-config", "--print-config"], &[]).contains("cannot be used with"));

    let good = file(dir.path(), "log = \"debug\"\n");
    let output = serve(&["--check-config", "--config", &good], &[]);
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{good}: no errors\n"));
    assert!(serve(&["--check-config"], &[("NOTBEFORE_CONFIG", "")]).status.success(), "says nothing");
}

#[test]
fn contradictory_settings_fail_check() {
    let twice = ["--guest", "127.0.0.1:1", "--guest-vm", "a=127.0.0.1:1"];
    let no_secret = ["--proxy", "10.9.0.2", "--proxy-secret-file", "/nowhere.secret"];
    let cases: [(&[&str], &str); 6] = [
        (&["--operator", "0.0.0.0:9255"], "--operator-without-tls"),
        (&["--driver", "exec"], "set it with --exec FILE"),
        (&["--driver", "exec", "--exec", "/nowhere"], "--exec /nowhere: No such file"),
        (&twice, "guest.listen (127.0.0.1:1) and guest.vms (a) have the same address, 127.0.0.1:1"),
        (&["--guest-vm", "web 0=127.0.0.1:1"], "expected a VM name and an address"),
        (&no_secret, "/nowhere.secret"),
    ];
    for (args, expected) in cases {
        let args: Vec<&str> = args.iter().copied().chain(["--check-config"]).collect();
        let error = refused(&args, &[]);
        assert!(error.contains(expected), "{error}");
    }
    // The source of each value is still shown.
    let output = serve(&["--print-config", "--operator", "0.0.0.0:9255"], &[]);
    assert_eq!(output.status.code(), Some(2));
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("listen = \"0.0.0.0:9255\""), "{shown}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("without encryption"));
}

#[test]
fn service_uses_config_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "[guest]\nmode = \"strict\"\n[guest.limits]\nconnections_max = 7\n");
    let service = Service::start(&["--config", &path]);
    let loose = "GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\nMetadata: True\r\nConnection: close\r\n\r\n";
    let answer = support::exchange([127, 0, 0, 1].into(), service.guest, loose.as_bytes());
    assert_eq!(answer.status, 400, "{answer:?}");
}

#[test]
fn systemd_is_notified() {
    let manager = Manager::new();
    let socket = manager.path.to_str().unwrap();
    let mut service = Service::start_with(&[("NOTIFY_SOCKET", socket), ("WATCHDOG_USEC", "200000")], &[]);
    let ready = manager.wait_for("READY=1");
    let status = format!("STATUS=guests at {}, operators at {}", service.guest, service.operator);
    assert!(ready.contains(&status), "{ready}");
    manager.wait_for("WATCHDOG=1");
    manager.wait_for("WATCHDOG=1");

    let pid = rustix::process::Pid::from_raw(service.pid().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    assert!(manager.wait_for("RELOADING=1").contains("MONOTONIC_USEC="));
    manager.wait_for("READY=1");
    assert_eq!(service.document()["DocumentIncarnation"], 1, "it runs on");

    assert!(service.terminate().success());
    manager.wait_for("STOPPING=1");
}
