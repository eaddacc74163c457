//! The command line at a pseudo-terminal (from Python), which answers the confirmation question.

use std::process::{Command, Stdio};

use super::{Service, binary};

/// Runs a command at a terminal of 100 columns. At the question, an optional other command runs first, then the answer is typed.
const SCRIPT: &str = r#"
import fcntl, os, pty, struct, subprocess, sys, termios
answer, meanwhile = sys.argv[1].encode(), sys.argv[2]
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    os.execv(sys.argv[3], sys.argv[3:])
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

/// Runs the command line at a terminal and answers its question.
pub fn run_at_terminal(service: &Service, args: &[&str], answer: &str) -> TerminalOutput {
    run_at_terminal_while(service, args, answer, &[])
}

/// The same, with another command line run before the answer.
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
    let mut command = Command::new("python3");
    command.args(["-c", SCRIPT, answer, &meanwhile, binary()]).args(args);
    command.env("NOTBEFORE_DATA", service.data()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    TerminalOutput { text, code: output.status.code().unwrap() }
}
