//! Clock jumps: the service does not trust a clock that has jumped, or that does not fit its store. libfaketime sets
//! the clock of the service only.

use std::net::Ipv4Addr;
use std::path::Path;

use crate::support::{Service, wait_for};
use serde_json::{Value, json};

const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// The wall clock of a service.
struct WallClock(tempfile::NamedTempFile);

impl WallClock {
    fn new() -> Self {
        assert!(Path::new(FAKETIME).exists(), "install the Debian package libfaketime");
        let clock = Self(tempfile::NamedTempFile::new().unwrap());
        clock.set("+0");
        clock
    }

    /// Sets the clock to this offset from the real time.
    fn set(&self, offset: &str) {
        let next = self.0.path().with_extension("next");
        std::fs::write(&next, offset).unwrap();
        std::fs::rename(next, self.0.path()).unwrap();
    }

    fn variables(&self) -> [(&str, &str); 5] {
        [
            ("LD_PRELOAD", FAKETIME),
            ("FAKETIME_TIMESTAMP_FILE", self.0.path().to_str().unwrap()),
            ("FAKETIME_NO_CACHE", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
            ("NOTBEFORE_LOG", "warn"),
        ]
    }
}

fn clock(service: &Service) -> Value {
    service.cli_json(&["clock", "show"])
}

/// Waits until the service has detected clock jumps of this many days in total.
fn wait_for_jump(service: &Service, reason: &str) -> Value {
    wait_for(reason, || {
        Some(clock(service)["hold"].clone())
            .filter(|hold| hold["reason"].as_str().is_some_and(|text| text.contains(reason)))
    })
}

fn status(service: &Service, event: &str) -> String {
    service.cli_json(&["event", "show", event])["status"].as_str().unwrap().to_owned()
}

fn ready(service: &Service) -> String {
    let answer = service.operator_request("GET", "/readyz", "", "");
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

const FLEET: &str = "scopes:
  - { name: a, kind: standalone, vms: [ { name: a, addresses: [127.1.40.1] } ] }
  - { name: b, kind: standalone, vms: [ { name: b } ] }
  - { name: c, kind: standalone, vms: [ { name: c } ] }
  - { name: d, kind: standalone, vms: [ { name: d } ] }
";

/// The event of a new operation.
fn event_of(made: &Value) -> String {
    made["targets"][0]["event"].as_str().unwrap_or_else(|| panic!("no event in {made}")).to_owned()
}

fn announce(service: &Service, vm: &str) -> String {
    event_of(&service.cli_json(&["event", "schedule", "--type", "reboot", "--in", "1h", vm]))
}

#[test]
fn clock_jump_starts_and_ends_nothing_until_accepted() {
    let wall = WallClock::new();
    let service = Service::start_with(&wall.variables(), &["--simulated-duration", "1h"]);
    service.apply_fleet(FLEET);
    let poll = service.poll(Ipv4Addr::new(127, 1, 40, 1), "2020-07-01");
    assert_eq!(poll.status, 200, "{poll:?}");
    let (approved, waiting) = (announce(&service, "a"), announce(&service, "b"));
    let running = event_of(&service.cli_json(&["event", "schedule", "--cause", "host-failure", "c"]));
    assert_eq!((ready(&service).as_str(), clock(&service)["hold"].clone()), ("ready\n", Value::Null));

    // A short jump: two days ahead, and back.
    wall.set("+2d");
    let hold = wait_for_jump(&service, "forward by 172800 s");
    assert_eq!(hold["events"], 3, "{hold}");
    wall.set("+0");
    wait_for("the jump back", || {
        clock(&service)["hold"]["reason"].as_str()?.contains("and back").then_some(())
    });
    assert_eq!(status(&service, &waiting), "Scheduled");

    wall.set("+2d");
    wait_for_jump(&service, "forward by 172800 s");
    let reason = ready(&service);
    assert!(reason.starts_with("ready\nthe clock is not trusted since "), "{reason}");
    assert!(service.operator_request("GET", "/metrics", "", "").body.contains("notbefore_clock_held 1\n"));
    assert_eq!(status(&service, &running), "Started", "its simulated end is two days ago");
    // Scope a was polled recently, so its guests get notice; no guest polls in d.
    let [polled, unheard] = ["a", "d"].map(|vm| event_of(&service.cli_json(&["vm", "restart", vm])));
    assert_eq!(status(&service, &polled), "Scheduled");
    assert_eq!(status(&service, &unheard), "Started", "announced since");
    service.cli(&["event", "approve", &approved]);
    assert_eq!(status(&service, &approved), "Started");
    assert_eq!(status(&service, &waiting), "Scheduled");

    let accepted = service.cli_json(&["clock", "accept"]);
    assert_eq!(accepted["hold"], Value::Null, "{accepted}");
    wait_for("the event that is due by the clock", || {
        (status(&service, &waiting) == "Started").then_some(())
    });
    assert_eq!(ready(&service), "ready\n");
    let audit = service.cli(&["audit"]);
    assert!(audit.contains("ClockAccepted"), "{audit}");
    let log = service.log();
    assert!(log.contains("the clock is not trusted: it has jumped forward by 172800 s"), "{log}");
}

#[test]
fn restart_with_clock_100_days_ahead_starts_and_removes_nothing() {
    let wall = WallClock::new();
    let mut service = Service::start_with(&wall.variables(), &["--keep-history", "30d"]);
    service.apply_fleet(FLEET);
    let waiting = announce(&service, "b");
    service.cli(&["vm", "restart", "c"]);
    let trail = |service: &Service| {
        let all = service.cli_json(&["audit", "--since", "200d"]);
        all.as_array().unwrap().iter().filter(|one| one["type"] != "ClockAccepted").count()
    };
    let before = trail(&service);
    assert!(before > 5, "{before}");
    assert!(service.terminate().success());
    wall.set("+100d");
    let service = service.restart();
    assert!(clock(&service)["hold"]["reason"].as_str().unwrap().contains("does not fit"));
    assert_eq!(status(&service, &waiting), "Scheduled");
    service.cli(&["clock", "accept"]);
    wait_for("the event that is due by the clock", || {
        (status(&service, &waiting) != "Scheduled").then_some(())
    });
    assert!(trail(&service) >= before, "the audit trail is whole");
}

/// The jump is less than a day, so it is detected only by the boot id that both starts share.
#[test]
fn restart_during_a_hold_does_not_end_it() {
    let wall = WallClock::new();
    let mut service = Service::start_with(&wall.variables(), &[]);
    service.apply_fleet(FLEET);
    let waiting = announce(&service, "b");
    wall.set("+2h");
    wait_for_jump(&service, "forward by 7200 s");
    assert!(service.terminate().success());
    let mut service = service.restart();
    service.kill();
    let service = service.restart();
    assert!(clock(&service)["hold"]["reason"].as_str().unwrap().contains("does not fit"));
    assert_eq!(status(&service, &waiting), "Scheduled");
    service.cli(&["clock", "accept"]);
    wait_for("the event that is due by the clock", || {
        (status(&service, &waiting) == "Started").then_some(())
    });
}

#[test]
fn restart_with_a_clock_behind_the_store_is_not_trusted() {
    let wall = WallClock::new();
    let mut service = Service::start_with(&wall.variables(), &[]);
    assert_eq!(clock(&service)["hold"], json!(null));
    assert!(service.terminate().success());
    wall.set("-2h");
    let service = service.restart();
    let shown = service.cli(&["clock", "show"]);
    assert!(shown.contains("not trusted since") && shown.contains("notbefore clock accept"), "{shown}");
    assert!(service.cli(&["clock", "accept", "--dry-run"]).contains("nothing was changed (--dry-run)"));
    assert!(service.cli(&["clock", "accept"]).contains(", trusted"));
    let again = service.cli(&["clock", "accept"]);
    assert!(again.contains(", trusted"), "{again}");
}
