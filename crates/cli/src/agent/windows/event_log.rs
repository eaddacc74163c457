//! Log writer for the Windows event log: source `notbefore-agent` in the log `Application`.
//!
//! The event log stores a message number of a message file, and its parameters. The message file of `eventcreate`, part
//! of Windows, has messages 1 to 1000 that consist of the parameter only.

use std::io;

use anyhow::{Context, Result};
use notbefore_wire::text::printable;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;
use windows_registry::LOCAL_MACHINE;
use winsafe::{HEVENTLOG, co};

const SOURCE: &str = "notbefore-agent";
const SOURCES: &str = r"SYSTEM\CurrentControlSet\Services\EventLog\Application";
const MESSAGES: &str = r"%SystemRoot%\System32\EventCreate.exe";
/// Supported types: errors, warnings and information.
const TYPES: u32 = 7;
/// The longest text that the log takes is 31,839 characters.
const BYTES_MAX: usize = 31_000;

/// Registers the source.
pub fn register() -> Result<()> {
    let register = || {
        let key = LOCAL_MACHINE.create(format!(r"{SOURCES}\{SOURCE}"))?;
        key.set_expand_string("EventMessageFile", MESSAGES)?;
        key.set_u32("TypesSupported", TYPES)
    };
    register().context("cannot register the agent as an event log source")
}

/// Removes the source. Existing messages stay in the log.
pub fn unregister() -> Result<()> {
    let remove = || LOCAL_MACHINE.create(SOURCES)?.remove_tree(SOURCE);
    remove().context("cannot remove the agent's event log source")
}

/// Writes one event.
pub fn report(level: Level, text: &str) {
    let end = text.floor_char_boundary(BYTES_MAX);
    // An error cannot be reported anywhere else.
    let _ = HEVENTLOG::RegisterEventSource(None, SOURCE).and_then(|log| {
        let (kind, number) = match level {
            Level::ERROR => (co::EVENTLOG::ERROR_TYPE, 3),
            Level::WARN => (co::EVENTLOG::WARNING_TYPE, 2),
            _ => (co::EVENTLOG::INFORMATION_TYPE, 1),
        };
        log.ReportEvent(kind, 0, number, None, &[&text[..end]], &[])
    });
}

/// Writer for the tracing subscriber.
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

/// A line in progress; written to the log on drop.
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
