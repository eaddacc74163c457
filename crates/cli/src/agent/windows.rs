//! The agent as a service of Windows: [`service`] installs it and runs it as one, [`event_log`] is where it then says
//! what it does, [`directory`] is where its configuration and its journal are.

mod directory;
pub mod event_log;
pub mod service;

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};

use super::{logs, said, until_told_to_stop};
use crate::args::{Install, Settings};

/// Installs the service with the flags that it shall be started with.
pub fn install(install: &Install) -> Result<()> {
    service::install(service::Installation { words: words(&install.settings)?, delayed: install.delayed })
}

/// Runs as the service.
pub fn serve(settings: Settings) -> Result<()> {
    service::run(move |told| until_told_to_stop(&settings, logs::start_event_log, told, || Ok(())))
}

/// The flags that say what these settings say. A service is started in a directory of the system's, so paths are
/// made whole.
fn words(settings: &Settings) -> Result<Vec<OsString>> {
    let whole =
        |path: &Path| std::path::absolute(path).with_context(|| format!("{} is no path", path.display()));
    let mut words = Vec::new();
    if let Some(config) = &settings.config {
        words.extend(["--config".into(), whole(config)?.into_os_string()]);
    }
    for said in said(settings) {
        words.push(format!("--{}", said.flag).into());
        match said.key.as_str() {
            "dry_run" => {}
            "state" => words.push(whole(Path::new(&said.text))?.into_os_string()),
            _ => words.push(said.text.into()),
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_started_with_what_was_said_when_it_was_installed() {
        let settings = Settings {
            endpoint: Some("http://10.0.0.1".to_owned()),
            api_version: Some("2019-08-01".to_owned()),
            dry_run: true,
            ..Settings::default()
        };
        let expected = ["--endpoint", "http://10.0.0.1", "--api-version", "2019-08-01", "--dry-run"];
        assert_eq!(words(&settings).unwrap(), expected);
    }
}
