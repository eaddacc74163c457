//! Log of the service and the agent on standard error. Filters support only levels per module: matching spans and
//! fields would dominate the memory of an idle agent.

use anyhow::Result;
use notbefore_settings::kind::LogFormat;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::output::Log;

/// Starts logging to standard error.
pub fn start(filter: &str, format: LogFormat) -> Result<()> {
    let registry = tracing_subscriber::registry().with(filter.parse::<Targets>()?);
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
