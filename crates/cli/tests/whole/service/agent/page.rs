//! The rehearsal as `docs/guide/agent.md` prints it.

use super::vm::{free_address, stderr_text, stdout_text};
use crate::support::pages::{Rehearsal, blocks, root};
use crate::support::wait_for;

#[test]
fn documented_rehearsal_works() {
    let page = std::fs::read_to_string(root().join("docs/guide/agent.md")).unwrap();
    let blocks = blocks(&page, "sh");
    let mut rehearsal = Rehearsal::start(&blocks[1], free_address());
    rehearsal.run_agent(&blocks[2]);
    let run = |block: &str| {
        let output = rehearsal.terminal(block).output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
        stdout_text(&output)
    };
    run(&blocks[3]);
    let events = || rehearsal.service.cli_json(&["event", "list"]);
    // The alias of the third terminal is already set.
    let look = format!("{}\n{}", blocks[3].lines().next().unwrap(), blocks[4]);
    let words = ["draining: Reboot", "preparing", "let-work-end", "Scheduled"];
    wait_for("the agent to prepare", || {
        let seen = run(&look);
        words.iter().all(|word| seen.contains(word)).then_some(())
    });
    // The sample waits ten of the ninety seconds, and approves.
    wait_for("the event to start", || (events()[0]["status"] == "Started").then_some(()));
    wait_for("the event to be over", || events().as_array().unwrap().is_empty().then_some(()));
    wait_for("the VM to be in service", || run(&look).starts_with("in service\n").then_some(()));
    let log = std::fs::read_to_string(rehearsal.path("agent.log")).unwrap();
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
}
