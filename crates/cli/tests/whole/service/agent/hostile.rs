//! A platform that changes everything at each poll: the agent limits its rate, and a real event is not delayed.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::agent::{Agent, AgentDir};
use crate::support::http::get;
use crate::support::scripted::scripted_platform;
use crate::support::{binary, free_address, wait_for};

/// The platform's state, shared with the test.
#[derive(Default)]
struct Platform {
    polls: AtomicUsize,
    is_calm: AtomicBool,
}

fn event(id: &str, vm: &str) -> Value {
    json!({"EventId": id, "EventType": "Reboot", "EventStatus": "Scheduled", "Resources": [vm],
        "NotBefore": "Mon, 19 Sep 2039 18:29:47 GMT"})
}

/// A platform that serves `noise` by poll count, and then one real event of `web-0`.
fn platform(noise: impl Fn(usize) -> Vec<Value> + Send + 'static) -> (Arc<Platform>, String) {
    let platform = Arc::new(Platform::default());
    let shared = platform.clone();
    let endpoint = scripted_platform(move |line| {
        if line.starts_with("GET /metadata/instance/compute/name") {
            return Some(("200 OK", "web-0".to_owned()));
        }
        if line.starts_with("POST") {
            return Some(("200 OK", String::new()));
        }
        let poll = shared.polls.fetch_add(1, Ordering::SeqCst);
        let events = match shared.is_calm.load(Ordering::SeqCst) {
            true => vec![event("real", "web-0")],
            false => noise(poll),
        };
        Some(("200 OK", json!({"DocumentIncarnation": poll, "Events": events}).to_string()))
    });
    (platform, endpoint)
}

/// Starts an agent that logs a line per event; also returns a reader of one metric.
fn agent(dir: &AgentDir, endpoint: &str) -> (Agent, impl Fn(&str) -> u64 + use<>) {
    let rule = "[[rule]]\nname = \"all\"\n[[rule.before]]\n\
        shell = 'echo \"$NOTBEFORE_EVENT_ID\" >> {trace}'\n";
    dir.configure(Some(endpoint), rule);
    let signals = free_address();
    let mut command = Command::new(binary());
    command.env("NOTBEFORE_AGENT_LISTEN", signals.to_string());
    let agent = dir.start_with(command, "boot 1");
    wait_for("the agent to listen", || std::net::TcpStream::connect(signals).ok());
    let metric = move |name: &str| {
        let page = get(signals, "/metrics").body;
        let of = |line: &str| {
            line.strip_prefix("notbefore_agent_")?.strip_prefix(name)?.split(' ').nth(1)?.parse::<u64>().ok()
        };
        page.lines().filter_map(of).sum()
    };
    (agent, metric)
}

#[test]
fn flapping_own_events_are_rate_limited() {
    let noise = |poll: usize| (0..150).map(|one| event(&format!("{poll}-{one}"), "web-0")).collect();
    let (platform, endpoint) = platform(noise);
    let dir = AgentDir::new();
    let (_agent, metric) = agent(&dir, &endpoint);
    wait_for("changes to wait", || (metric("changes_waiting") > 0).then_some(()));
    let started = platform.polls.load(Ordering::SeqCst);
    wait_for("eight more polls", || (platform.polls.load(Ordering::SeqCst) >= started + 8).then_some(()));
    // The limit: a burst of two hundred, then one every ten seconds.
    let seen = metric("events_seen_total");
    assert!((200..210).contains(&seen), "{seen} of more than a thousand events were taken in");
    assert!(dir.trace().len() < 210, "{} hooks were run", dir.trace().len());
    let warnings = dir.log().matches("too many changes from the platform").count();
    assert_eq!(warnings, 1, "logged once a minute");
    // The real event waits for one token at most.
    platform.is_calm.store(true, Ordering::SeqCst);
    wait_for("the real event", || dir.trace().contains(&"real".to_owned()).then_some(()));
    wait_for("nothing to wait any more", || (metric("changes_waiting") == 0).then_some(()));
}

#[test]
fn events_of_other_vms_do_not_delay_own_event() {
    let noise = |poll: usize| {
        let noise = (0..900).map(|one| event(&format!("{poll}-{one}"), "other"));
        let own = (poll > 5).then(|| event("real", "web-0"));
        noise.chain(own).collect()
    };
    let (_platform, endpoint) = platform(noise);
    let dir = AgentDir::new();
    let (_agent, metric) = agent(&dir, &endpoint);
    wait_for("changes to wait", || (metric("changes_waiting") > 0).then_some(()));
    wait_for("the real event", || dir.trace().contains(&"real".to_owned()).then_some(()));
    assert!(metric("changes_waiting") > 0);
    assert!(metric("events_handled") <= 1_001);
}

#[test]
fn hundred_concurrent_events_are_prepared_in_parallel() {
    let noise = |_| (0..100).map(|one| event(&one.to_string(), "web-0")).collect();
    let (_platform, endpoint) = platform(noise);
    let dir = AgentDir::new();
    let (_agent, metric) = agent(&dir, &endpoint);
    dir.wait_for_trace(100);
    assert_eq!(metric("changes_waiting"), 0);
}

#[test]
fn million_odd_values_are_logged_in_few_lines() {
    let noise = |poll: usize| {
        let mut odd = event(&poll.to_string(), "web-0");
        odd["Resources"] = vec![json!(1); 400_000].into();
        vec![odd]
    };
    let (platform, endpoint) = platform(noise);
    let dir = AgentDir::new();
    let (_agent, _) = agent(&dir, &endpoint);
    wait_for("three polls", || (platform.polls.load(Ordering::SeqCst) > 3).then_some(()));
    let (log, polls) = (dir.log(), platform.polls.load(Ordering::SeqCst));
    assert!(log.contains("more warnings about the document"), "{log}");
    assert!(log.matches("cannot be read").count() <= 10 * polls, "{log}");
}
