//! The rehearsal as `docs/guide/agent.md` prints it.

use super::vm::{complaint, free_address, printed};
use crate::support::pages::{Rehearsal, blocks, root};
use crate::support::wait_for;

#[test]
fn documented_rehearsal_works() {
    let page = std::fs::read_to_string(root().join("docs/guide/agent.md")).unwrap();
    let blocks = blocks(&page, "sh");
    let mut rehearsal = Rehearsal::start(&blocks[1], free_address());
    rehearsal.run_agent(&blocks[2]);
    let said = |block: &str| {
        let output = rehearsal.terminal(block).output().unwrap();
        assert!(output.status.success(), "{}", complaint(&output));
        printed(&output)
    };
    said(&blocks[3]);
    let events = || rehearsal.service.cli_json(&["event", "list"]);
    // The third terminal has its alias already.
    let look = format!("{}\n{}", blocks[3].lines().next().unwrap(), blocks[4]);
    let words = ["draining: Reboot", "preparing", "let-work-end", "Scheduled"];
    wait_for("the agent to prepare", || {
        let seen = said(&look);
        words.iter().all(|word| seen.contains(word)).then_some(())
    });
    // The sample waits for ten seconds of the ninety that there are, and approves.
    wait_for("the event to start", || (events()[0]["status"] == "Started").then_some(()));
    wait_for("the event to be over", || events().as_array().unwrap().is_empty().then_some(()));
    wait_for("the VM to be in service", || said(&look).starts_with("in service\n").then_some(()));
    let log = std::fs::read_to_string(rehearsal.path("agent.log")).unwrap();
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
}
