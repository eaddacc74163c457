//! The agent's log, to standard error.

use std::io::IsTerminal;

use anyhow::Result;
use notbefore_agent::config::Mistakes;
use tracing_subscriber::EnvFilter;

use crate::args::LogFormat;

/// Starts logging. A filter that cannot be read is a mistake of the configuration.
pub fn start(filter: &str, format: LogFormat) -> Result<()> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Mistakes::one(format!(
            "log: expected a level (error, warn, info, debug, trace), or levels by module, as \
             \"info,notbefore_agent=debug\", not {filter:?} ({error})"
        ))
    })?;
    let plain = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Json => plain.json().flatten_event(true).init(),
        LogFormat::Text => {
            // Colours are for people; a file or a journal keeps the words.
            let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            plain.with_ansi(colours).init();
        }
    }
    Ok(())
}
