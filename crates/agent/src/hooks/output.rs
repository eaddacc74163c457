//! Captures a hook's output: lines go to the log at debug level, and the tail is kept for error messages. A tail that
//! is in the log already is not logged again. Output beyond the limits is read and dropped at a limited rate, so a
//! flood neither blocks the hook nor uses memory or a core.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use notbefore_wire::text::{printable, shorten};
use tokio::io::{AsyncRead, AsyncReadExt};
use tracing::Level;

/// Bytes kept of each stream.
const KEPT_BYTES_MAX: usize = 16 * 1024;
/// Bytes logged of each stream at debug level: enough for a verbose script, too little for a loop to fill a disk.
const LOGGED_BYTES_MAX: usize = 64 * 1024;
/// Most characters of a line shown.
const LINE_CHARS_MAX: usize = 400;
/// Read size.
const CHUNK: usize = 16 * 1024;
/// Pause after each chunk beyond the logged ones; limits reading to about 15 MiB a second.
const FLOOD_PAUSE: Duration = Duration::from_millis(1);

/// Ring buffer with the end of a stream.
#[derive(Clone, Debug, Default)]
pub struct Tail(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    bytes: VecDeque<u8>,
    /// Whether all bytes are in the log.
    is_logged: bool,
}

impl Tail {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the log has these lines already.
    pub fn is_logged(&self) -> bool {
        self.kept().is_logged
    }

    fn push(&self, bytes: &[u8]) {
        let kept = &mut self.kept().bytes;
        let bytes = &bytes[bytes.len().saturating_sub(KEPT_BYTES_MAX)..];
        let too_many = (kept.len() + bytes.len()).saturating_sub(KEPT_BYTES_MAX);
        kept.drain(..too_many);
        kept.extend(bytes);
    }

    /// The last non-empty lines, in order.
    pub fn lines(&self, most: usize) -> Vec<String> {
        let kept: Vec<u8> = self.kept().bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&kept).into_owned();
        let said: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        said[said.len().saturating_sub(most)..].iter().map(|line| shown(line)).collect()
    }
}

fn shown(line: &str) -> String {
    shorten(&printable(line.trim_end()), LINE_CHARS_MAX)
}

pub async fn follow(mut stream: impl AsyncRead + Unpin, name: &'static str, tail: Tail) {
    let mut chunk = vec![0; CHUNK];
    let (mut line, mut logged) = (Vec::new(), 0_usize);
    tail.kept().is_logged = tracing::enabled!(target: "notbefore_agent::hook", Level::DEBUG);
    while let Ok(length @ 1..) = stream.read(&mut chunk).await {
        tail.push(&chunk[..length]);
        logged = logged.saturating_add(length);
        if logged > LOGGED_BYTES_MAX {
            tail.kept().is_logged = false;
            if !line.is_empty() {
                tracing::debug!(target: "notbefore_agent::hook", stream = name, "further output is not logged");
                line = Vec::new();
            }
            tokio::time::sleep(FLOOD_PAUSE).await;
            continue;
        }
        line.extend_from_slice(&chunk[..length]);
        while let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            let rest = line.split_off(end + 1);
            log(name, &line);
            line = rest;
        }
    }
    log(name, &line);
}

fn log(stream: &'static str, line: &[u8]) {
    let text = shown(&String::from_utf8_lossy(line));
    if !text.is_empty() {
        tracing::debug!(target: "notbefore_agent::hook", stream, "{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tail_keeps_last_lines_with_or_without_newline() {
        let tail = Tail::default();
        follow(&b"one\r\n\n two\n\xff\x1b[31mthree"[..], "stdout", tail.clone()).await;
        assert_eq!(tail.lines(2), [" two", "\u{fffd}\\u{1b}[31mthree"]);
        assert_eq!(tail.lines(9).len(), 3);
        assert!(Tail::default().lines(3).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn large_output_is_read_in_bounded_memory() {
        let mut flood = b"again and again\n".repeat(200_000);
        flood.extend_from_slice(b"and out");
        let tail = Tail::default();
        follow(&flood[..], "stderr", tail.clone()).await;
        assert_eq!(tail.lines(1), ["and out"]);
        assert!(tail.kept().bytes.len() <= KEPT_BYTES_MAX);
    }
}
