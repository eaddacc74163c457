//! The command line at a pseudo-terminal (from Python), which answers the confirmation question.

use std::process::{Command, Stdio};

use super::{Service, binary};

/// Runs a command at a terminal. At the question, an optional other command runs first, then the answer is typed.
const SCRIPT: &str = r#"
import fcntl, os, pty, struct, subprocess, sys, termios
answer, meanwhile, columns = sys.argv[1].encode(), sys.argv[2], int(sys.argv[3])
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execv(sys.argv[4], sys.argv[4:])
seen, answered = b"", False
while True:
    try:
        data = os.read(terminal, 4096)
    except OSError:
        break
    if not data:
        break
    seen += data
    if not answered and seen.endswith(b"[y/N] "):
        if meanwhile:
            subprocess.run(["sh", "-c", meanwhile], check=True, stdout=subprocess.DEVNULL)
        os.write(terminal, answer + b"\n")
        answered = True
sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

/// The terminal's output, and the exit code.
#[derive(Debug)]
pub struct TerminalOutput {
    pub text: String,
    pub code: i32,
}

impl TerminalOutput {
    /// Whether the command asked for confirmation.
    pub fn has_prompt(&self) -> bool {
        self.text.contains("[y/N]")
    }
}

/// Columns of the terminal, unless a test needs others.
const COLUMNS: usize = 100;

/// Runs the command line at a terminal and answers its question.
pub fn run_at_terminal(service: &Service, args: &[&str], answer: &str) -> TerminalOutput {
    run_at(service, args, answer, "", COLUMNS)
}

/// Runs a command without a question at a terminal of this width.
pub fn run_at_columns(service: &Service, args: &[&str], columns: usize) -> TerminalOutput {
    run_at(service, args, "", "", columns)
}

/// The same as [`run_at_terminal`], with another command line run before the answer.
pub fn run_at_terminal_while(
    service: &Service,
    args: &[&str],
    answer: &str,
    meanwhile: &[&str],
) -> TerminalOutput {
    let meanwhile = match meanwhile {
        [] => String::new(),
        args => format!("{} {}", binary(), args.join(" ")),
    };
    run_at(service, args, answer, &meanwhile, COLUMNS)
}

fn run_at(service: &Service, args: &[&str], answer: &str, meanwhile: &str, columns: usize) -> TerminalOutput {
    let mut command = Command::new("python3");
    command.args(["-c", SCRIPT, answer, meanwhile, &columns.to_string(), binary()]).args(args);
    command.env("NOTBEFORE_DATA", service.data()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    TerminalOutput { text, code: output.status.code().unwrap() }
}
