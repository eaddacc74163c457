//! Windows has no process groups that could be ended, and job objects take unsafe code; `taskkill` ends a process with
//! all that it has started.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::KILLED_GRACE;

/// What lines are handed to.
pub const SHELL: &str = "cmd";
/// Why a file is not found that was there a moment ago.
pub const NOT_FOUND: &str = "there is no such file any more";
/// Why a file with a program's name cannot be started.
pub const NO_PROGRAM: &str = "it is no program for this Windows, whatever it is called";
/// So that a Ctrl-C at the agent's console is for the agent: CREATE_NEW_PROCESS_GROUP.
const NEW_GROUP: u32 = 0x0000_0200;
/// How long `taskkill` may take: some tenths of a second, on a busy machine more. With what a killed process has then, it
/// is within what a stop of all hooks may take.
const TASKKILL_MAX: Duration = Duration::from_secs(2);
/// ERROR_BAD_EXE_FORMAT
const BAD_FORMAT: i32 = 193;

/// A line for the shell, exactly as it is written: `/S` takes off the outer quotes and no others.
pub fn shell(line: &str) -> Command {
    let mut command = Command::new(SHELL);
    command.raw_arg("/D /S /C").raw_arg(format!("\"{line}\""));
    command
}

/// Gives a program a console group of its own.
pub fn set_process_group(command: &mut Command) {
    command.creation_flags(NEW_GROUP);
}

/// Ends a program and all that it has started. There is no grace: a console program cannot be asked from outside of its
/// console. The leader has to live until `taskkill` is done, which finds the others by it; while it is not waited for, its
/// number is nobody else's.
pub async fn end(child: &mut Child, _grace: Duration) {
    if let (Ok(None), Some(leader)) = (child.try_wait(), child.id()) {
        let mut taskkill = Command::new("taskkill");
        taskkill.args(["/T", "/F", "/PID", &leader.to_string()]).kill_on_drop(true);
        taskkill.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _ = timeout(TASKKILL_MAX, taskkill.status()).await;
        let _ = child.start_kill();
        let _ = timeout(KILLED_GRACE, child.wait()).await;
    }
}

/// What a program that has ended by itself has left running cannot be found any more, and its number may be another's.
pub fn kill_group(_leader: u32) {}

/// Windows programs always end with a code.
pub fn signal_of(status: ExitStatus) -> String {
    status.to_string()
}

/// Whether a file could not be started because it is no program.
pub fn is_no_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(BAD_FORMAT)
}
