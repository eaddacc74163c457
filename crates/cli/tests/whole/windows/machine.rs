//! What the program reads from the machine: program paths, the registry, the owner of a directory.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

use super::wine::{Windows, stderr_text, stdout_text};

/// Writes a file on drive C:.
pub fn write(path: &str, text: &str) {
    let path = Windows::get().drive_c(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Content of a file on drive C:; empty if missing.
pub fn written(name: &str) -> String {
    fs::read_to_string(Windows::get().drive_c(name)).unwrap_or_default()
}

/// Sets a registry value under HKEY_LOCAL_MACHINE.
pub fn set(key: &str, name: &str, kind: &str, value: &str) {
    let key = format!(r"HKLM\{key}");
    stdout_text(&mut Windows::get().wine(&["reg", "add", &key, "/v", name, "/t", kind, "/d", value, "/f"]));
}

/// `agent check` without a platform, with C:\tools on the path.
fn check(config: &str, args: &[&str]) -> Output {
    let args = [&["agent", "check", "--offline", "--config", config, "--state", r"C:\tools\state"], args];
    Windows::get().notbefore(&args.concat()).env("WINEPATH", r"C:\tools").output().unwrap()
}

/// As at a prompt, `tool` is `tool.cmd`, even if a script for another system is next to it.
#[test]
fn programs_are_found_like_at_a_prompt() {
    write("tools/tool.cmd", "@echo %1 for %NOTBEFORE_VM%>>C:\\tools\\log\r\n");
    write("tools/tool", "#!/bin/sh\n");
    // Longer than COMPUTERNAME allows.
    set(r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters", "Hostname", "REG_SZ", "web-frontend-blue-0");
    write(
        "tools/agent.toml",
        r#"
listen = "none"
[[rule]]
name = "drain"
[[rule.before]]
command = ["tool", "one"]
[[rule.before]]
command = ['C:\tools\tool', "two"]
[[rule.before]]
command = ['C:\tools\tool.cmd', "three"]
"#,
    );
    let config = r"C:\tools\agent.toml";
    let checked = check(config, &[]);
    assert!(checked.status.success(), "{}", stderr_text(&checked));
    let run = check(config, &["--run", "drain", "--yes"]);
    assert!(run.status.success(), "{}", stderr_text(&run));
    let wanted = ["one", "two", "three"].map(|word| format!("{word} for web-frontend-blue-0\r\n")).concat();
    assert_eq!(written("tools/log"), wanted);
}

/// A program that passes the check can be started by an event; otherwise the check names the fix.
#[test]
fn unstartable_program_is_reported_by_check_and_run() {
    write("tools/drain.ps1", "exit 0\r\n");
    write("tools/notes.txt", "nothing\r\n");
    write("tools/broken.exe", "nothing\r\n");
    for (number, (step, check_says, run_says)) in [
        (r"command = ['C:\tools\drain.ps1']", r#""-ExecutionPolicy", "Bypass", "-File""#, "-ExecutionPolicy"),
        (
            r"command = ['C:\tools\notes.txt']",
            "begin the command with the program that reads it",
            "is no program",
        ),
        (r"command = ['no-such-program']", "no program no-such-program", "no program"),
        (r"command = ['C:\tools\broken.exe']", "", "it is not a program for this version of Windows"),
        (r"stop_unit = 'nginx.service'", "net stop", "no program systemctl"),
    ]
    .into_iter()
    .enumerate()
    {
        let rule = "listen = 'none'\n[[rule]]\nname = 'drain'\n[[rule.before]]\non_failure = 'go-on'\n";
        write(&format!("tools/bad-{number}.toml"), &format!("{rule}{step}\n"));
        let config = format!(r"C:\tools\bad-{number}.toml");
        let checked = check(&config, &[]);
        assert_eq!(checked.status.success(), check_says.is_empty(), "{step}: {}", stderr_text(&checked));
        assert!(stderr_text(&checked).contains(check_says), "{step}: {}", stderr_text(&checked));
        let run = check(&config, &["--run", "drain", "--yes"]);
        assert!(
            !run.status.success() && stderr_text(&run).contains(run_says),
            "{step}: {}",
            stderr_text(&run)
        );
        assert!(!stderr_text(&run).contains("#!/bin/sh"), "{step}: {}", stderr_text(&run));
    }
}

/// No endpoint is configured, so this must not run where one can be discovered: `./dev test windows` uses a network
/// namespace.
#[test]
fn endpoint_is_read_from_registry() {
    let way = Command::new("ip").args(["route", "get", "169.254.169.254"]).output().unwrap();
    assert!(!way.status.success(), "169.254.169.254 is reachable from here; run './dev test windows'");
    let service = super::service(&[]);
    let key = r"Software\ScheduledEvents";
    set(key, "ScheduledEventsIp", "REG_SZ", &service.guest.to_string());
    let found =
        stdout_text(Windows::get().notbefore(&["get", "--output", "json"]).env_remove("SCHEDULEDEVENTSIP"));
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["endpoint"], format!("http://{}", service.guest));
    assert_eq!(found["endpoint_by"], "the registry");
    stdout_text(&mut Windows::get().wine(&["reg", "delete", &format!(r"HKLM\{key}"), "/f"]));
}
