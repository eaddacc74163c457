//! Exit codes, the same for every command: 0 done, 1 failed or refused, 2 usage error, 3 timeout. `agent status` has
//! further ones for the state of the agent.

use std::process::{Command, Output};

use crate::support;
use crate::support::{Service, binary, wait_for};

fn ends(output: &Output, code: i32, args: &[&str]) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
    stderr
}

/// A service with an operation that stays open.
fn waiting() -> (Service, String) {
    let service = Service::start(&[]);
    service.cli(&["vm", "add", "a", "--host", "h1"]);
    let made = service.cli_json(&["event", "schedule", "--type", "reboot", "--in", "1h", "a"]);
    let operation = made["id"].as_str().unwrap().to_owned();
    (service, operation)
}

fn event_of(service: &Service) -> String {
    service.cli_json(&["event", "list"])[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn closed_standard_error_keeps_the_exit_code() {
    for args in [&["vm", "nothing"][..], &["get", "--nothing"], &["rehearse", "nothing"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = Command::new(binary()).args(args).stderr(writer).status().unwrap();
        assert_eq!(status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn usage_errors_say_what_to_type() {
    let cases: [(&[&str], &str); 3] = [
        (
            &["event", "schedule", "--type", "reboot", "a", "--in", "-5m"],
            "\"-5m\" is in the past; type --in 5m, without a minus sign",
        ),
        (&["host", "maintain", "h1", "--type", "freeze", "--in", "-5m"], "type --in 5m"),
        (&["reherse"], "a similar subcommand exists: 'rehearse'"),
    ];
    for (args, cure) in cases {
        let stderr = ends(&Command::new(binary()).args(args).output().unwrap(), 2, args);
        assert!(stderr.contains(cure) && !stderr.contains("-keeper"), "{args:?}: {stderr}");
    }
}

#[test]
fn exit_codes_are_consistent() {
    let (service, operation) = waiting();
    let bad = service.data().join("bad.yaml");
    std::fs::write(&bad, "scopes:\n  - { name: a, kind: nothing }\n").unwrap();
    let agent = service.data().join("agent.toml");
    std::fs::write(&agent, "nothing = 1\n").unwrap();
    let (bad, agent) = (bad.to_str().unwrap(), agent.to_str().unwrap());
    let guest = format!("http://{}", service.guest);
    let event = event_of(&service);
    let long = "x".repeat(9_000);
    let cases: &[(i32, &[&str])] = &[
        (0, &["vm", "list"]),
        (0, &["completions", "bash"]),
        (0, &["healthy"]),
        (0, &["openapi"]),
        (0, &["--help"]),
        (0, &["--version"]),
        (0, &["agent", "sample"]),
        (0, &["operation", "cancel", &operation, "--dry-run"]),
        (1, &["vm", "show", "nobody"]),
        (1, &["event", "show", "abcd"]),
        (1, &["event", "wait", "abcd"]),
        (1, &["fleet", "apply", "/nowhere.yaml"]),
        (1, &["get", "--endpoint", &guest]),
        (1, &["approve", "--endpoint", &guest, "abcd"]),
        (1, &["agent", "reload", "--state", "/nowhere"]),
        (1, &["agent", "retry", "abcd", "--state", "/nowhere"]),
        (1, &["agent", "history", "--state", "/nowhere"]),
        (1, &["import", "/nowhere.jsonl"]),
        (1, &["healthy", "--operator-url", "http://127.0.0.1:1"]),
        (2, &["vm", "nothing"]),
        (2, &["get", "--nothing"]),
        (2, &["completions", "cobol"]),
        (2, &["fleet", "apply", bad]),
        (2, &["fleet", "apply", bad, "--check"]),
        (2, &["fleet", "diff", bad]),
        (2, &["agent", "check", "--config", agent]),
        (2, &["agent", "install"]),
        (2, &["serve", "--config", agent]),
        (2, &["serve", "--driver", "exec"]),
        (2, &["token", "create", "x", "--role", "viewer"]),
        (2, &["token", "create", "x", "--role", "king", "--on", "/"]),
        (2, &["token", "create", "x", "--grant", "king:/"]),
        (2, &["event", "schedule", "a", "--type", "nothing"]),
        (2, &["event", "schedule", "a", "--cause", "nothing"]),
        (2, &["event", "schedule", "a", "--type", "reboot", "--duration", "nine"]),
        (2, &["vm", "add", "b", "--kind", "nothing"]),
        // The service does not understand these.
        (2, &["vm", "add", "b", "--address", "nowhere"]),
        (2, &["vm", "add", "b c"]),
        (2, &["vm", "add", "b", "--host=-h1"]),
        (2, &["vm", "add", "b", "--zone=-1"]),
        (2, &["vm", "restart", "a", "--not-before", "2962-11-20"]),
        (2, &["vm", "restart", "a", "--in", "90000d"]),
        // It understands these and refuses them.
        (1, &["vm", "restart", "a", "--not-before", "yesterday"]),
        (2, &["vm", "remove", "a"]),
        (2, &["host", "failed", "h1", "--timeout", "1s"]),
        (2, &["event", "wait", &event, "--for", "nothing"]),
        (2, &["agent", "retry"]),
        (2, &["agent", "retry", &long]),
        (2, &["status", "-o", "name"]),
        (10, &["agent", "status", "--listen", "127.0.0.1:1", "--state", "/nowhere"]),
        (3, &["operation", "wait", &operation, "--timeout", "0s"]),
        (3, &["operation", "wait", &operation, "--timeout", "1s", "--output", "json"]),
        (3, &["operation", "wait", &operation, "--for", "read", "--timeout", "0s"]),
        (3, &["event", "wait", &event, "--timeout", "0s"]),
        (3, &["event", "wait", &event[..8], "--for", "approved", "--timeout", "0s"]),
        (3, &["host", "maintain", "h1", "--type", "freeze", "--wait", "--timeout", "0s"]),
    ];
    for (code, args) in cases {
        ends(&service.run(args), *code, args);
    }
}

/// Settings that the service does not understand, however late at its start it reads them.
#[test]
fn settings_not_understood_end_serve_with_2() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let fifo = dir.path().join("fifo").to_str().unwrap().to_owned();
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let (short, text) = (file("short", "too-short"), file("text", "notbefore"));
    let cases: [(&[&str], &str); 10] = [
        (&["--root-token-file", &short], "at least 20 are needed"),
        (&["--root-token-file", &fifo], "name a regular file"),
        (&["--root-token-file", "/dev/zero"], "name a regular file"),
        (&["--proxy", "10.0.0.1", "--proxy-secret-file", &fifo], "name a regular file"),
        (&["--operator-cert", &text, "--operator-key", &text], "holds no certificate"),
        (&["--operator-cert", &fifo, "--operator-key", &fifo], "name a regular file"),
        (&["--ready-file", &text], "is no ready file"),
        (&["--node-listen", "10.0.0.1:1"], "set --node-cert, --node-key and --node-ca"),
        (&["--node-listen", "0.0.0.0:1"], "give the address at which they reach this node"),
        (&["--node-cert", &text, "--node-key", &text], "set all three, or none"),
    ];
    for (flags, message) in cases {
        let mut command = Command::new(binary());
        command.args(["serve", "--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0"]).args(flags);
        command.env("NOTBEFORE_DATA", dir.path().join("data"));
        assert!(ends(&command.output().unwrap(), 2, flags).contains(message), "{flags:?}");
        let output = command.args(["--log-format", "json"]).output().unwrap();
        let stderr = ends(&output, 2, flags);
        let last: serde_json::Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
        assert_eq!(last["level"], "ERROR", "{stderr}");
        assert!(last["message"].as_str().unwrap().contains(message), "{stderr}");
    }
    let output =
        Command::new(binary()).args(["serve", "--log-format=json", "--driver", "magic"]).output().unwrap();
    let stderr = ends(&output, 2, &["--driver", "magic"]);
    let line: serde_json::Value = serde_json::from_str(stderr.trim()).unwrap();
    assert!(line["message"].as_str().unwrap().contains("magic"), "{stderr}");
}

#[test]
fn help_and_manual_list_the_codes() {
    let help = Command::new(binary()).arg("--help").output().unwrap();
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    for line in ["0  done", "1  failed or refused", "2  usage error", "3  timeout"] {
        assert!(help.contains(line), "{help}");
    }
    let page = std::fs::read_to_string(support::pages::root().join("docs/reference/cli.md")).unwrap();
    for line in ["| 0 | done", "| 1 | failed or refused", "| 2 | usage error", "| 3 | timeout"] {
        assert!(page.contains(line), "docs/reference/cli.md has no {line:?}");
    }
    let help = Command::new(binary()).args(["agent", "status", "--help"]).output().unwrap();
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    for (code, word) in
        [(10, "does not run"), (11, "stranded"), (12, "withheld"), (13, "unmatched"), (14, "is not ready")]
    {
        let lists =
            |text: &str, code: &str| text.lines().any(|line| line.contains(code) && line.contains(word));
        assert!(lists(&help, &format!("  {code}  ")), "{help}");
        assert!(lists(&page, &format!("| {code} |")), "docs/reference/cli.md has no {code} {word}");
    }
}

#[test]
fn wait_ends_with_operation_or_timeout() {
    let (service, operation) = waiting();
    let args = ["operation", "wait", &operation, "--timeout", "0s"];
    let stderr = ends(&service.run(&args), 3, &args);
    assert!(
        stderr.contains(&format!("operation {operation} is open")) && stderr.contains("still in progress"),
        "{stderr}"
    );
    service.cli(&["operation", "cancel", &operation]);
    let stdout = service.cli(&["operation", "wait", &operation, "--timeout", "20s"]);
    assert!(stdout.contains("is closed: cancelled"), "{stdout}");
}

#[test]
fn wait_fails_with_reason_of_failed_command() {
    let service = Service::start(&["--driver", "exec", "--exec", "/bin/false", "--exec-attempts", "1"]);
    service.cli(&["vm", "add", "a", "--host", "h1"]);
    let args = ["host", "failed", "h1", "--wait", "--timeout", "20s"];
    let stderr = ends(&service.run(&args), 1, &args);
    assert!(stderr.contains("the command for a failed") && stderr.contains("exit code 1"), "{stderr}");
    assert!(stderr.contains("notbefore event retry"), "{stderr}");
    let operations = service.cli_json(&["operation", "list"]);
    let operation = operations[0]["id"].as_str().unwrap();
    let args = ["operation", "wait", operation, "--timeout", "20s"];
    assert!(ends(&service.run(&args), 1, &args).contains("the command for a failed"));
    let event = operations[0]["targets"][0]["event"].as_str().unwrap();
    service.cli(&["event", "complete", event]);
    wait_for("the operation to close", || {
        service.cli(&["operation", "list"]).contains("no open operations").then_some(())
    });
    assert!(service.cli(&["operation", "wait", operation]).contains("is closed: completed"));
}
