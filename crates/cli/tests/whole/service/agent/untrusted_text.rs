//! A platform that sends control characters: they must not reach the terminal.

use std::process::Command;

use notbefore_wire::text::is_unprintable;

use super::vm::{stderr_text, stdout_text, waits};
use crate::support::agent::AgentDir;
use crate::support::http::get;
use crate::support::scripted::scripted_platform;
use crate::support::{binary, free_address, wait_for};

/// An id that clears the screen, a type that sets the window title, and a VM name with bidirectional text.
const DOCUMENT: &str = "{\"DocumentIncarnation\":1,\"Events\":[{\"EventId\":\"aa\\u001b[2Jbb\\u2066\\nc\",\"EventStatus\":\"Scheduled\",\
    \"EventType\":\"Re\\u001b]0;boot\\u0007\",\"ResourceType\":\"VirtualMachine\",\"Resources\":[\"web-0\",\"a\\u202eb\"],\
    \"Description\":\"two\\nlines\",\"NotBefore\":\"\"}]}";

#[test]
fn control_characters_are_escaped_in_all_output() {
    let endpoint = scripted_platform(|line| match line {
        _ if line.starts_with("GET /metadata/instance/compute/name") => Some(("200 OK", "web-0")),
        _ if line.starts_with("GET") => Some(("200 OK", DOCUMENT)),
        _ => Some(("400 Bad Request", "no\u{1b}[2Jt now")),
    });
    let (dir, signals) = (AgentDir::new(), free_address());
    dir.configure(Some(&endpoint), &format!("[[rule]]\nname = \"all\"\n[[rule.before]]\n{}", waits()));
    let mut agent = Command::new(binary());
    agent.env("NOTBEFORE_AGENT_LISTEN", signals.to_string());
    let _agent = dir.start_with(agent, "boot 1");
    dir.wait_for_trace(1);

    let run = |args: &[&str]| Command::new(binary()).args(args).output().unwrap();
    let status = run(&["agent", "status", "--listen", &signals.to_string()]);
    let got = run(&["get", "--endpoint", &endpoint]);
    let watched = run(&["get", "--watch", "--count", "1", "--endpoint", &endpoint]);
    let approved = run(&["approve", "--all-mine", "--endpoint", &endpoint]);
    let meant = run(&["approve", "nothing", "--endpoint", &endpoint]);
    let drains = wait_for("the agent to drain", || {
        let answer = get(signals, "/drainz");
        (answer.status == 503).then_some(answer.body)
    });
    let seen =
        [&status, &got, &watched, &approved, &meant].map(|output| stdout_text(output) + &stderr_text(output));
    for text in seen.into_iter().chain([drains, dir.log()]) {
        assert!(text.replace("\\x1b", "\\u{1b}").contains("aa\\u{1b}[2Jbb\\u{2066}\\nc"), "{text:?}");
        assert!(!text.chars().any(|c| is_unprintable(c) && c != '\n'), "{text:?}");
    }
    assert!(
        stdout_text(&got).contains("two\\nlines") && stdout_text(&got).contains("a\\u{202e}b"),
        "{got:?}"
    );
    // Programs get the text unchanged.
    let json = run(&["get", "--endpoint", &endpoint, "--output", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["events"][0]["id"], "aa\u{1b}[2Jbb\u{2066}\nc");
}
