//! The event log of Windows. A service has no terminal, so what the agent would write there goes here: the source
//! `notbefore-agent` in the log `Application`.
//!
//! The log keeps no sentences but the number of a message in some file and what is put into it. Windows itself has a
//! file whose messages, 1 to 1000, are nothing but what is put in: that of `eventcreate`.

use std::io;

use anyhow::{Context, Result};
use notbefore_wire::text::printable;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;
use windows_registry::LOCAL_MACHINE;
use winsafe::{HEVENTLOG, co};

/// What the log calls us.
const SOURCE: &str = "notbefore-agent";
const SOURCES: &str = r"SYSTEM\CurrentControlSet\Services\EventLog\Application";
const MESSAGES: &str = r"%SystemRoot%\System32\EventCreate.exe";
/// Errors, warnings and information.
const TYPES: u32 = 7;
/// The longest text that the log takes is 31,839 characters.
const BYTES_MAX: usize = 31_000;

/// Tells the log who we are.
pub fn register() -> Result<()> {
    let register = || {
        let key = LOCAL_MACHINE.create(format!(r"{SOURCES}\{SOURCE}"))?;
        key.set_expand_string("EventMessageFile", MESSAGES)?;
        key.set_u32("TypesSupported", TYPES)
    };
    register().context("cannot make the agent known to the event log")
}

/// Takes that back. Messages that are in the log stay there.
pub fn unregister() -> Result<()> {
    let remove = || LOCAL_MACHINE.create(SOURCES)?.remove_tree(SOURCE);
    remove().context("cannot take the agent out of the event log's sources")
}

/// One line of the log for a line of ours.
pub fn report(level: Level, text: &str) {
    let end = text.floor_char_boundary(BYTES_MAX);
    // A log that does not take it leaves nowhere to say so.
    let _ = HEVENTLOG::RegisterEventSource(None, SOURCE).and_then(|log| {
        let (kind, number) = match level {
            Level::ERROR => (co::EVENTLOG::ERROR_TYPE, 3),
            Level::WARN => (co::EVENTLOG::WARNING_TYPE, 2),
            _ => (co::EVENTLOG::INFORMATION_TYPE, 1),
        };
        log.ReportEvent(kind, 0, number, None, &[&text[..end]], &[])
    });
}

/// Where a subscriber writes its lines.
#[derive(Clone, Copy, Debug)]
pub struct EventLog;

impl<'a> MakeWriter<'a> for EventLog {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { level: Level::INFO, text: Vec::new() }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Line {
        Line { level: *metadata.level(), text: Vec::new() }
    }
}

/// A line that is being written. It is in the log when it is dropped.
#[derive(Debug)]
pub struct Line {
    level: Level,
    text: Vec<u8>,
}

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        report(self.level, &printable(String::from_utf8_lossy(&self.text).trim_end()));
    }
}
