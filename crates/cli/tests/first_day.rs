//! docs/first-day.md, as printed: from an empty machine to a maintained host with two tenants.
//!
//! The blocks of the page are one script, run by one shell in a network namespace of its own, so that the bridge
//! and the addresses that it makes are the test's alone. The page builds the release binary, which the README's
//! first command builds too.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::process::Command;

use support::pages::{as_typed, blocks, root};

/// A namespace to run it in; whatever the script leaves behind when it fails goes with it.
struct Place(String);

impl Place {
    fn new() -> Self {
        let place = Self(format!("nbt-day-{}", std::process::id()));
        place.ip(&["netns", "add", &place.0]);
        place.ip(&["-n", &place.0, "link", "set", "lo", "up"]);
        place
    }

    fn ip(&self, words: &[&str]) {
        let done = Command::new("ip").args(words).status().expect("Debian's iproute2 is installed");
        assert!(done.success(), "ip {words:?} failed; this test makes network namespaces and needs root");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let listed = Command::new("ip").args(["netns", "pids", &self.0]).output().unwrap();
        for pid in String::from_utf8_lossy(&listed.stdout).lines() {
            let _ = Command::new("kill").args(["-9", pid]).status();
        }
        for left in [&self.0, "nb-web-0", "nb-db-0"] {
            let _ = Command::new("ip").args(["netns", "del", left]).output();
        }
        let _ = std::fs::remove_dir_all(root().join("first-day"));
    }
}

/// What the script printed after a line that it ran, up to the next one.
fn after<'a>(printed: &'a str, line: &str) -> &'a str {
    let rest = printed
        .split_once(&format!("\n+ {line}\n"))
        .unwrap_or_else(|| panic!("{line} was not run:\n{printed}"))
        .1;
    rest.split("\n+ ").next().unwrap_or_default()
}

#[test]
fn the_page_leads_from_an_empty_machine_to_a_maintained_host_with_two_tenants() {
    let page = std::fs::read_to_string(root().join("docs/first-day.md")).unwrap();
    let place = Place::new();
    let mut shell = Command::new("timeout");
    shell.args(["600", "ip", "netns", "exec", &place.0, "bash", "-exc"]);
    shell.arg(format!("exec 2>&1\n{}", blocks(&page, "sh").join("\n"))).current_dir(root());
    as_typed(&mut shell);
    let done = shell.output().unwrap();
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{printed}\n{}", String::from_utf8_lossy(&done.stderr));

    // A tenant sees its own, and of the other not even that it is there.
    let own = after(&printed, "notbefore vm list");
    assert!(own.contains("web-0") && !own.contains("db-0"), "{own}");
    assert!(printed.contains("\nto acme there is no db-0\n"), "{printed}");

    // The plan names both events, and both VMs listen.
    let plan = after(&printed, "notbefore host maintain h1 --type reboot --dry-run");
    assert!(plan.contains("acme/default/web") && plan.contains("globex/default/db"), "{plan}");
    assert!(plan.contains("2 of 2"), "both listen: {plan}");

    // One approval is not enough, two are.
    let lists: Vec<&str> = printed.split("\n+ notbefore event list\n").skip(1).collect();
    let status = |list: &str, word: &str| list.split("\n+ ").next().unwrap().matches(word).count();
    assert_eq!((status(lists[0], "Scheduled"), status(lists[0], "Started")), (2, 0), "{printed}");
    assert_eq!((status(lists[1], "Scheduled"), status(lists[1], "Started")), (0, 2), "{printed}");

    let history = after(&printed, "notbefore event history --host h1");
    assert_eq!(history.matches("Completed").count(), 2, "{history}");
    let own = after(&printed, "notbefore event history");
    assert_eq!(own.matches("Completed").count(), 1, "{own}");
    let audit = after(&printed, "notbefore audit");
    assert!(audit.contains("acme-team") && audit.contains("web-0"), "{audit}");
}
