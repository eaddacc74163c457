//! Windows has no process groups that could be ended, and job objects take unsafe code; `taskkill` ends a process with
//! all that it has started.

use std::io;
use std::process::{Command as Plain, ExitStatus, Stdio};

use tokio::process::Command;

/// What lines are handed to.
pub const SHELL: &str = "cmd";
/// So that a Ctrl-C at the agent's console is for the agent: CREATE_NEW_PROCESS_GROUP.
const NEW_GROUP: u32 = 0x0000_0200;
/// ERROR_BAD_EXE_FORMAT
const BAD_FORMAT: i32 = 193;

/// A line for the shell, exactly as it is written: `/S` takes off the outer quotes and no others.
pub fn shell(line: &str) -> Command {
    let mut command = Command::new(SHELL);
    command.raw_arg("/D /S /C").raw_arg(format!("\"{line}\""));
    command
}

/// Gives a program a console group of its own.
pub fn apart(command: &mut Command) {
    command.creation_flags(NEW_GROUP);
}

/// A console program cannot be asked from outside of its console.
pub fn ask_to_end(leader: u32) {
    kill(leader);
}

/// Ends a process and all that it has started. Nobody waits for it here: the loop has other things to do.
pub fn kill(leader: u32) {
    let mut command = Plain::new("taskkill");
    command.args(["/T", "/F", "/PID", &leader.to_string()]);
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

/// Nothing can be asked about what a process has started once it is gone.
pub fn is_there(_leader: u32) -> bool {
    false
}

/// Windows programs always end with a code.
pub fn signal_of(status: ExitStatus) -> String {
    status.to_string()
}

/// Whether a file could not be started because it is no program.
pub fn is_no_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(BAD_FORMAT)
}
