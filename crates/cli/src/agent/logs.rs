//! Log of the agent: standard error, or the event log for a Windows service. Filters support only levels per module:
//! matching spans and fields would dominate the memory of an idle agent.

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

/// Starts logging to the event log, which adds time and level itself.
#[cfg(windows)]
pub fn start_event_log(filter: &str) -> Result<()> {
    let plain = fmt::layer().with_ansi(false).without_time().with_level(false);
    let layer = plain.with_writer(super::windows::event_log::EventLog);
    tracing_subscriber::registry().with(targets(filter)?).with(layer).init();
    Ok(())
}

/// Parses a filter; an invalid one is a configuration error.
pub fn targets(filter: &str) -> Result<Targets, ConfigErrors> {
    filter.parse().map_err(|error| {
        ConfigErrors::one(format!(
            "log: expected a level (error, warn, info, debug, trace), or levels per module, for example \
             \"info,notbefore_agent=debug\", not {filter:?} ({error})"
        ))
    })
}
