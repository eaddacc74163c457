//! The agent as a Windows service: [`service`] installs and runs it, [`event_log`] is its log, [`directory`] protects
//! its configuration and journal.

mod directory;
mod event_log;
pub mod service;

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};
use notbefore_agent::config::Config;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::{flag_values, run_until_stopped};
use crate::args::{Install, Settings};
use crate::logs::QuotedFields;

/// Installs the service; it starts with the same flags.
pub fn install(install: &Install) -> Result<()> {
    service::install(service::Installation {
        arguments: arguments(&install.settings)?,
        delayed: install.delayed,
    })
}

pub fn serve(settings: Settings) -> Result<()> {
    let log = |config: &Config| start_event_log(&config.log);
    service::run(move |orders| run_until_stopped(&settings, log, orders, || Ok(())))
}

/// Starts logging to the event log, which adds time and level itself.
fn start_event_log(filter: &str) -> Result<()> {
    let plain =
        fmt::layer().fmt_fields(QuotedFields::default()).with_ansi(false).without_time().with_level(false);
    let layer = plain.with_writer(event_log::EventLog);
    tracing_subscriber::registry().with(filter.parse::<Targets>()?).with(layer).init();
    Ok(())
}

/// Converts settings to flags. Paths become absolute, since Windows starts a service in a system directory.
fn arguments(settings: &Settings) -> Result<Vec<OsString>> {
    let whole =
        |path: &Path| std::path::absolute(path).with_context(|| format!("invalid path {}", path.display()));
    let mut arguments = Vec::new();
    if let Some(config) = &settings.config {
        arguments.extend(["--config".into(), whole(config)?.into_os_string()]);
    }
    for value in flag_values(settings) {
        arguments.push(format!("--{}", value.flag).into());
        match value.key.as_str() {
            "dry_run" => {}
            "state" => arguments.push(whole(Path::new(&value.text))?.into_os_string()),
            _ => arguments.push(value.text.into()),
        }
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_starts_with_installation_arguments() {
        let settings = Settings {
            endpoint: Some("http://10.0.0.1".to_owned()),
            api_version: Some("2019-08-01".to_owned()),
            dry_run: true,
            ..Settings::default()
        };
        let expected = ["--endpoint", "http://10.0.0.1", "--api-version", "2019-08-01", "--dry-run"];
        assert_eq!(arguments(&settings).unwrap(), expected);
    }
}
