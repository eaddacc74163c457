//! The agent as a service of Windows: [`service`] installs it and runs it as one, [`event_log`] is where it then says
//! what it does, [`directory`] is where its configuration and its journal are.

mod directory;
pub mod event_log;
pub mod service;

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};

use super::{flag_values, logs, run_until_stopped};
use crate::args::{Install, Settings};

/// Installs the service with the flags that it shall be started with.
pub fn install(install: &Install) -> Result<()> {
    service::install(service::Installation {
        arguments: arguments(&install.settings)?,
        delayed: install.delayed,
    })
}

/// Runs as the service.
pub fn serve(settings: Settings) -> Result<()> {
    service::run(move |told| run_until_stopped(&settings, logs::start_event_log, told, || Ok(())))
}

/// The flags that say what these settings say. A service is started in a directory of the system's, so paths are
/// made whole.
fn arguments(settings: &Settings) -> Result<Vec<OsString>> {
    let whole =
        |path: &Path| std::path::absolute(path).with_context(|| format!("{} is no path", path.display()));
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
