//! The rehearsal as `recipes/README.md` prints it.

use super::vm::lines;
use crate::support::pages::{Rehearsal, blocks, root};
use crate::support::{free_address, wait_for};

#[test]
fn documented_rehearsal_works() {
    let page = std::fs::read_to_string(root().join("recipes/README.md")).unwrap();
    let blocks = blocks(&page, "sh");
    let mut rehearsal = Rehearsal::start(&blocks[1], free_address());
    rehearsal.run_agent(&blocks[2]);
    let (asks, looks) = blocks[3].rsplit_once('\n').unwrap();
    let output = rehearsal.terminal(asks).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("Scheduled"), "{output:?}");
    let log = rehearsal.path("rehearsal/notbefore-events.jsonl");
    wait_for("the event to be over", || (lines(&log).len() == 2).then_some(()));
    let output = rehearsal.terminal(looks).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"stage\":\"after\""), "{output:?}");
}
