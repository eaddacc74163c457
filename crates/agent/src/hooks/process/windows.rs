//! Process trees on Windows. There are no process groups to kill, and job objects need unsafe code; `taskkill /T`
//! kills a process with its children.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::KILLED_GRACE;

/// Runs `shell` steps.
pub const SHELL: &str = "cmd";
/// The file disappeared after the lookup.
pub const NOT_FOUND: &str = "the file no longer exists";
/// For a file with an executable extension that cannot be started.
pub const NO_PROGRAM: &str = "it is not a program for this version of Windows";
/// CREATE_NEW_PROCESS_GROUP: Ctrl-C in the agent's console reaches only the agent.
const NEW_GROUP: u32 = 0x0000_0200;
/// How long `taskkill` may take: usually tenths of a second. Together with [`super::KILLED_GRACE`] it fits in the
/// shutdown time of all hooks.
const TASKKILL_MAX: Duration = Duration::from_secs(2);
/// ERROR_BAD_EXE_FORMAT
const BAD_FORMAT: i32 = 193;

/// Passes the line verbatim: `/S` removes only the outer quotes.
pub fn shell(line: &str) -> Command {
    let mut command = Command::new(SHELL);
    command.raw_arg("/D /S /C").raw_arg(format!("\"{line}\""));
    command
}

pub fn set_process_group(command: &mut Command) {
    command.creation_flags(NEW_GROUP);
}

/// Kills a program with its children. There is no grace period: a console program cannot be signalled from outside
/// its console. The parent is not reaped before `taskkill` ends, which finds the children by its pid; an unreaped pid
/// is not reused.
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

/// Children of an ended program cannot be found any more, and its pid may be reused.
pub fn kill_group(_leader: u32) {}

/// Windows programs always end with an exit code.
pub fn signal_of(status: ExitStatus) -> String {
    status.to_string()
}

/// Whether the file is not a program (ERROR_BAD_EXE_FORMAT).
pub fn is_no_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(BAD_FORMAT)
}
