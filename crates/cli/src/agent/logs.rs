//! The agent's log: standard error, or the event log for a service of Windows. Levels by module are all that a filter can
//! say here: what matches spans and fields by patterns would be the largest thing in an agent at rest.

use anyhow::Result;
use notbefore_settings::ConfigErrors;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::LogFormat;
use crate::output::Log;

/// Starts logging to standard error.
pub fn start(filter: &str, format: LogFormat) -> Result<()> {
    let registry = tracing_subscriber::registry().with(targets(filter)?);
    match format {
        LogFormat::Json => {
            registry.with(fmt::layer().with_writer(Log::Json).json().flatten_event(true)).init();
        }
        LogFormat::Text => {
            let log = Log::in_words();
            registry.with(fmt::layer().with_writer(log).with_ansi(log.has_colours())).init();
        }
    }
    Ok(())
}

/// Starts logging to the event log, which has times and levels of its own.
#[cfg(windows)]
pub fn start_event_log(filter: &str) -> Result<()> {
    let plain = fmt::layer().with_ansi(false).without_time().with_level(false);
    let told = plain.with_writer(super::windows::event_log::EventLog);
    tracing_subscriber::registry().with(targets(filter)?).with(told).init();
    Ok(())
}

/// A filter that cannot be read is a mistake of the configuration.
pub fn targets(filter: &str) -> Result<Targets, ConfigErrors> {
    filter.parse().map_err(|error| {
        ConfigErrors::one(format!(
            "log: expected a level (error, warn, info, debug, trace), or levels by module, as \
             \"info,notbefore_agent=debug\", not {filter:?} ({error})"
        ))
    })
}
