//! Unix process groups.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::KILLED_GRACE;

/// Interval of the check whether a group still has processes.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// Runs `shell` steps.
pub const SHELL: &str = "/bin/sh";
/// A missing interpreter is also reported as a missing file.
pub const NOT_FOUND: &str = "the file, or the interpreter in its first line, does not exist";
/// For an executable file that cannot be started.
pub const NO_PROGRAM: &str = "it is not a program; a script needs a first line such as #!/bin/sh";

pub fn shell(line: &str) -> Command {
    let mut command = Command::new(SHELL);
    command.args(["-c", line]);
    command
}

/// Gives a program its own process group, so that all of it can be killed and Ctrl-C in the agent's terminal reaches
/// only the agent. Its working directory is `/`.
pub fn set_process_group(command: &mut Command) {
    command.process_group(0).current_dir("/");
}

/// Ends a program's group: SIGTERM, then SIGKILL after the grace period.
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

/// Kills what an ended program left in its group.
pub fn kill_group(leader: u32) {
    send(leader, Signal::KILL);
}

fn is_there(leader: u32) -> bool {
    pid(leader).is_some_and(|group| test_kill_process_group(group).is_ok())
}

fn send(leader: u32, signal: Signal) {
    if let Some(group) = pid(leader) {
        // The group may be gone already.
        let _ = kill_process_group(group, signal);
    }
}

fn pid(leader: u32) -> Option<Pid> {
    i32::try_from(leader).ok().and_then(Pid::from_raw)
}

/// The signal that ended a program.
pub fn signal_of(status: ExitStatus) -> String {
    status.signal().map_or("it ended".to_owned(), |signal| format!("killed by signal {signal}"))
}

/// Whether the file is not a program (ENOEXEC).
pub fn is_no_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error())
}
