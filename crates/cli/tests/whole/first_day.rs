//! docs/guide/first-hour.md as printed: from an empty machine to a maintained host with two tenants.
//!
//! The blocks of the page form one script, run by one shell in its own namespaces, so that its bridge, addresses and
//! named namespaces are removed with the test. The page builds the binary as the README's first command does.

use std::process::Command;

use crate::support::pages::{as_typed, blocks, root};

/// Names of network namespaces are files under /run. The shell is process 1, so all others end with it.
const IN_NAMESPACES: [&str; 7] =
    ["unshare", "--net", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child"];

/// The script's output after one command, up to the next.
fn after<'a>(printed: &'a str, line: &str) -> &'a str {
    let rest = printed
        .split_once(&format!("\n+ {line}\n"))
        .unwrap_or_else(|| panic!("{line} was not run:\n{printed}"))
        .1;
    rest.split("\n+ ").next().unwrap_or_default()
}

#[test]
fn first_day_page_commands_work() {
    let page = std::fs::read_to_string(root().join("docs/guide/first-hour.md")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (printed, here) = ("mkdir -p first-hour && cd first-hour", format!("cd {}", dir.path().display()));
    assert!(page.contains(printed), "the page works in a directory of its own");
    let script = blocks(&page, "sh").join("\n").replace(printed, &here);
    let mut shell = Command::new("timeout");
    shell.args(["--kill-after=1", "600"]).args(IN_NAMESPACES).args(["bash", "-exc"]);
    shell
        .arg(format!("exec 2>&1\nmount -t tmpfs none /run\nip link set lo up\n{script}"))
        .current_dir(root());
    as_typed(&mut shell);
    let done = shell.output().unwrap();
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{printed}\n{}", String::from_utf8_lossy(&done.stderr));

    // A tenant sees only its own scopes; others do not exist for it.
    let own = after(&printed, "notbefore vm list");
    assert!(own.contains("web-0") && !own.contains("db-0"), "{own}");
    assert!(printed.contains("\nto acme there is no db-0\n"), "{printed}");

    // The plan names both events, and both VMs poll.
    let plan = after(&printed, "notbefore host maintain h1 --type reboot --dry-run");
    assert!(plan.contains("acme/default/web") && plan.contains("globex/default/db"), "{plan}");
    assert!(plan.contains("2 of 2"), "both listen: {plan}");

    // One approval is not enough, two are.
    let lists: Vec<&str> = printed.split("\n+ notbefore event list\n").skip(1).collect();
    let status = |list: &str, word: &str| list.split("\n+ ").next().unwrap().matches(word).count();
    assert_eq!((status(lists[0], "Scheduled"), status(lists[0], "Started")), (2, 0), "{printed}");

    let history = after(&printed, "notbefore event history --host h1");
    assert_eq!(history.matches("Completed").count(), 2, "{history}");
    let own = after(&printed, "notbefore event history");
    assert_eq!(own.matches("Completed").count(), 1, "{own}");
    let audit = after(&printed, "notbefore audit");
    let lines = |fact: &str| {
        audit.lines().enumerate().filter(|(_, line)| line.contains(fact)).map(|(n, _)| n).collect()
    };
    let (approved, started): (Vec<usize>, Vec<usize>) = (lines("EventApproved"), lines("EventStarted"));
    assert_eq!((approved.len(), started.len()), (2, 2), "{audit}");
    assert!(approved.iter().max() < started.iter().min(), "{audit}");
    assert!(audit.contains("acme-team") && audit.contains("web-0"), "{audit}");
}
