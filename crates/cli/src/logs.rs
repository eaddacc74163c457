//! Log of the service and the agent on standard error. Filters support only levels per module: matching spans and
//! fields would dominate the memory of an idle agent.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Error, Result};
use notbefore_settings::Sources;
use notbefore_settings::kind::LogFormat;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::output::{self, Log};
use crate::time;

/// Whether the log of this process is JSON.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Starts logging to standard error.
pub fn start(filter: &str, format: LogFormat) -> Result<()> {
    set_format(format);
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

/// Sets the format of [`fatal`].
pub fn set_format(format: LogFormat) {
    IS_JSON.store(format == LogFormat::Json, Relaxed);
}

/// Sets the format by the flag or this variable: mistakes in the configuration are reported in it too.
pub fn expect_format(sources: &Sources, variable: &str) {
    let flag = sources.flags.iter().rev().find(|flag| flag.key == "log_format");
    let said = flag.map(|flag| flag.text.as_str()).or_else(|| sources.variable(variable));
    if said == Some("json") {
        set_format(LogFormat::Json);
    }
}

/// Prints the error that ends the program: as a line of the log if that is JSON, so that its reader understands it.
pub fn fatal(error: &Error) {
    match IS_JSON.load(Relaxed) {
        true => output::eprint_json(&serde_json::json!({
            "timestamp": format!("{:.6}", time::now()),
            "level": "ERROR",
            "message": format!("{error:#}"),
            "target": "notbefore",
        })),
        false => output::eprint(&format!("notbefore: {error:#}")),
    }
}
