//! The rehearsal, as `recipes/README.md` prints it.

use std::process::{Child, Command, Stdio};

use super::ground::lines;
use super::support::pages::{blocks, root};
use super::support::{Service, binary, wait_for};

/// Ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The page's commands are run where its reader would be, but for what has to be the test's own: the build, the ports, and
/// the place of the service's token.
#[test]
fn the_rehearsal_does_as_the_page_says() {
    let page = std::fs::read_to_string(root().join("recipes/README.md")).unwrap();
    let blocks = blocks(&page, "sh");
    let flags: Vec<&str> = blocks[1].strip_prefix("./dev run ").unwrap().split(' ').collect();
    let service = Service::start(&flags);

    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::os::unix::fs::symlink(root().join("recipes"), dir.path().join("recipes")).unwrap();
    let shell = |block: &str| {
        // With exec, ending the shell ends the agent.
        let agent = format!("exec {} agent run --listen none", binary());
        let block = block
            .replace("./target/release/notbefore", binary())
            .replace("127.0.0.1:9254", &service.guest.to_string())
            .replace("notbefore agent run", &agent);
        let mut shell = Command::new("bash");
        shell.args(["-euc", &format!("shopt -s expand_aliases\n{block}")]);
        shell.current_dir(dir.path()).env("NOTBEFORE_DATA", service.data());
        shell
    };
    let _agent = Ended(shell(&blocks[2]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_for("the agent to listen", || {
        let listed = service.cli_json(&["vm", "list"]);
        (listed[0]["listening"] == "yes").then_some(())
    });

    let (asks, looks) = blocks[3].rsplit_once('\n').unwrap();
    let said = shell(asks).output().unwrap();
    assert!(String::from_utf8_lossy(&said.stdout).contains("Scheduled"), "{said:?}");
    let log = dir.path().join("rehearsal/notbefore-events.jsonl");
    wait_for("the event to be over", || (lines(&log).len() == 2).then_some(()));
    let said = shell(looks).output().unwrap();
    assert!(String::from_utf8_lossy(&said.stdout).contains("\"stage\":\"after\""), "{said:?}");
}
