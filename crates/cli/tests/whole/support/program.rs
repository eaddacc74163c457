//! A client program in a namespace, followed line by line.
//!
//! Our clients print one line per action. A test reads until a line contains the expected text; if the program ends
//! first, the test fails with its whole output. `timeout` limits the program's run time, so reading cannot hang.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A file among the client programs.
pub fn source(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/whole/clients")).join(name)
}

/// A running client.
pub struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    printed: Vec<String>,
}

impl Program {
    /// Starts a client from a command that begins with `timeout`.
    pub fn start(mut command: Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, printed: Vec::new() }
    }

    /// Reads until a line has all these words; returns it.
    pub fn wait_for_line(&mut self, words: &[&str]) -> String {
        while let Some(Ok(line)) = self.lines.next() {
            self.printed.push(line.clone());
            if words.iter().all(|word| line.split(' ').any(|part| part == *word)) {
                return line;
            }
        }
        let printed = std::mem::take(&mut self.printed).join("\n");
        panic!("the client ended without a line with {words:?}; it said:\n{printed}\n{}", self.stderr());
    }

    /// Writes a line to its standard input.
    pub fn send_line(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Reads to the end; the client must succeed.
    pub fn assert_success(mut self) {
        let rest: Vec<String> = self.lines.by_ref().map_while(Result::ok).collect();
        self.printed.extend(rest);
        let stderr = self.stderr();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}; output:\n{}\n{stderr}", self.printed.join("\n"));
    }

    /// Reads to the end; the client must fail. Returns its standard error.
    pub fn fails(mut self) -> String {
        let rest: Vec<String> = self.lines.by_ref().map_while(Result::ok).collect();
        self.printed.extend(rest);
        let stderr = self.stderr();
        let status = self.child.wait().unwrap();
        assert!(!status.success(), "the client should have failed; output:\n{}", self.printed.join("\n"));
        stderr
    }

    /// Its standard error, after it has ended.
    fn stderr(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for Program {
    /// `timeout` forwards the signal to the program, and later kills it.
    fn drop(&mut self) {
        if let (Ok(None), Some(pid)) = (self.child.try_wait(), Pid::from_raw(self.child.id().cast_signed())) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}
