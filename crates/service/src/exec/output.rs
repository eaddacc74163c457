//! Logs the output of a command line by line, within limits. A command with much output must not block for want of a
//! reader, and must not use up the service's memory, the log or a CPU core.

use std::sync::Mutex;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

use notbefore_engine::DriverRun;
use notbefore_wire::text::{printable, shorten};

use super::LogFields;

/// Most bytes of a command's output in the log: enough for the messages of a failed migration, too few to fill a disk.
const LOGGED_BYTES_MAX: usize = 64 * 1024;
/// Most lines of a command's output in the log, which adds about 200 bytes to each.
const LOGGED_LINES_MAX: usize = 1_000;
/// Most bytes of one line.
const LINE_BYTES_MAX: usize = 1_024;
/// Most characters of the last line of standard error in the reason of a failure.
const LAST_LINE_CHARS_MAX: usize = 200;
/// Bytes per read.
const CHUNK: usize = 64 * 1024;
/// Pause after each dropped chunk: limits reading to about 40 MiB/s.
const TRUNCATED_READ_PAUSE: Duration = Duration::from_millis(1);

/// The rest of a command's output limit, shared by both streams.
#[derive(Debug)]
pub(super) struct Budget(Mutex<Remaining>);

#[derive(Debug)]
struct Remaining {
    bytes: usize,
    lines: usize,
    is_exhausted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineAction {
    Log,
    LogTruncation,
    Drop,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Remaining { bytes: LOGGED_BYTES_MAX, lines: LOGGED_LINES_MAX, is_exhausted: false }))
    }

    fn spend(&self, bytes: usize) -> LineAction {
        let mut left = crate::lock(&self.0);
        if left.is_exhausted {
            return LineAction::Drop;
        }
        if left.lines == 0 || left.bytes < bytes {
            left.is_exhausted = true;
            return LineAction::LogTruncation;
        }
        left.lines -= 1;
        left.bytes -= bytes;
        LineAction::Log
    }

    fn is_spent(&self) -> bool {
        crate::lock(&self.0).is_exhausted
    }
}

/// Logs a stream until it ends, and returns its last line that is not empty.
pub(super) async fn read_lines(
    mut stream: impl AsyncRead + Unpin,
    name: &'static str,
    budget: &Budget,
    run: &DriverRun,
) -> String {
    let mut last = String::new();
    let mut take = |line: Line| {
        let LogFields { event, vm, operation, host, attempt } = LogFields::of(run);
        let text = line.text();
        if text.is_empty() {
            return;
        }
        match budget.spend(text.len()) {
            LineAction::Log => {
                tracing::info!(
                    target: "notbefore::exec", event, vm, operation, host, attempt, stream = name, "{text}"
                );
            }
            LineAction::LogTruncation => {
                tracing::warn!(
                    target: "notbefore::exec", event, vm, operation, host, attempt,
                    "further output was dropped (limit {} KiB or {LOGGED_LINES_MAX} lines a command)",
                    LOGGED_BYTES_MAX / 1024
                );
            }
            LineAction::Drop => {}
        }
        last = text;
    };
    let mut line = Line::default();
    let mut chunk = vec![0; CHUNK];
    while let Ok(length @ 1..) = stream.read(&mut chunk).await {
        for &byte in &chunk[..length] {
            if byte == b'\n' {
                take(std::mem::take(&mut line));
            } else {
                line.push(byte);
            }
        }
        if budget.is_spent() {
            tokio::time::sleep(TRUNCATED_READ_PAUSE).await;
        }
    }
    take(line);
    shorten(&last, LAST_LINE_CHARS_MAX)
}

/// One line, truncated to the limit.
#[derive(Debug, Default)]
struct Line {
    kept: Vec<u8>,
    cut: bool,
}

impl Line {
    fn push(&mut self, byte: u8) {
        if self.kept.len() < LINE_BYTES_MAX {
            self.kept.push(byte);
        } else {
            self.cut = true;
        }
    }

    fn text(&self) -> String {
        let text = printable(String::from_utf8_lossy(&self.kept).trim_end());
        if self.cut { format!("{text}… (line cut at {LINE_BYTES_MAX} bytes)") } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn last_of(bytes: &[u8], budget: &Budget) -> String {
        read_lines(bytes, "stderr", budget, &crate::exec::tests::some_run()).await
    }

    #[tokio::test]
    async fn last_non_empty_line_is_kept() {
        let budget = Budget::new();
        assert_eq!(last_of(b"one\ntwo\r\n\n  \n", &budget).await, "two");
        assert_eq!(last_of(b"one\ntwo", &budget).await, "two");
        assert_eq!(last_of(b"", &budget).await, "");
        assert_eq!(last_of(b"\xff\x1b[31mred", &budget).await, "\u{fffd}\\u{1b}[31mred");
        assert_eq!(last_of(&[b'x'; 300], &budget).await, format!("{}…", "x".repeat(200)));
    }

    #[test]
    fn long_line_is_truncated_with_marker() {
        let mut line = Line::default();
        (0..LINE_BYTES_MAX).for_each(|_| line.push(b'x'));
        assert_eq!(line.text().len(), LINE_BYTES_MAX);
        line.push(b'x');
        assert!(line.text().ends_with("(line cut at 1024 bytes)"));
        assert_eq!(line.kept.len(), LINE_BYTES_MAX);
    }

    #[test]
    fn budget_exhaustion_is_logged_once() {
        let bytes = Budget::new();
        assert_eq!(bytes.spend(LOGGED_BYTES_MAX), LineAction::Log);
        assert_eq!(bytes.spend(1), LineAction::LogTruncation);
        assert_eq!(bytes.spend(1), LineAction::Drop);
        let lines = Budget::new();
        assert!((0..LOGGED_LINES_MAX).all(|_| lines.spend(1) == LineAction::Log));
        assert_eq!(lines.spend(1), LineAction::LogTruncation);
        assert!(lines.is_spent());
    }

    #[tokio::test]
    async fn large_output_is_read_to_end() {
        let mut flood = b"again and again\n".repeat(20_000);
        flood.extend_from_slice(b"and out");
        let budget = Budget::new();
        assert_eq!(last_of(&flood, &budget).await, "and out");
        assert!(budget.is_spent());
    }
}
