//! Process groups of Unix.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::KILLED_GRACE;

/// How often it is looked whether anything of a group is left.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// What lines are handed to.
pub const SHELL: &str = "/bin/sh";
/// Why a file that is not found may be there all the same.
pub const NOT_FOUND: &str =
    "there is no such file, or the interpreter that its first line names is not there";
/// Why a file that can be run cannot be started, and the cure.
pub const NO_PROGRAM: &str = "it is no program; a script begins with a line such as #!/bin/sh";

/// A line for the shell.
pub fn shell(line: &str) -> Command {
    let mut command = Command::new(SHELL);
    command.args(["-c", line]);
    command
}

/// Gives a program a group of its own, so that all of it can be ended, and a Ctrl-C at the agent's terminal is for the
/// agent. It starts at the root, wherever the agent was started.
pub fn set_process_group(command: &mut Command) {
    command.process_group(0).current_dir("/");
}

/// Sees to it that nothing of a program's group is left: it is asked to end, and killed after a grace.
pub async fn end(child: &mut Child, grace: Duration) {
    let Some(leader) = child.id() else { return };
    send(leader, Signal::TERM);
    let all_gone = async {
        let _ = child.wait().await;
        while is_there(leader) {
            sleep(POLL_EVERY).await;
        }
    };
    if timeout(grace, all_gone).await.is_err() {
        send(leader, Signal::KILL);
        let _ = child.start_kill();
        let _ = timeout(KILLED_GRACE, child.wait()).await;
    }
}

/// Ends what a program that has ended by itself has left in its group.
pub fn kill_group(leader: u32) {
    send(leader, Signal::KILL);
}

/// Whether anything of a group is left.
fn is_there(leader: u32) -> bool {
    pid(leader).is_some_and(|group| test_kill_process_group(group).is_ok())
}

fn send(leader: u32, signal: Signal) {
    if let Some(group) = pid(leader) {
        // A group that is gone needs no signal.
        let _ = kill_process_group(group, signal);
    }
}

fn pid(leader: u32) -> Option<Pid> {
    i32::try_from(leader).ok().and_then(Pid::from_raw)
}

/// Which signal ended a program.
pub fn signal_of(status: ExitStatus) -> String {
    status.signal().map_or("it ended".to_owned(), |signal| format!("killed by signal {signal}"))
}

/// Whether a file could not be started because it is no program.
pub fn is_no_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error())
}
