//! The settings of the agent as a whole: the file, the environment over it, the flags over both.

use std::path::PathBuf;

use notbefore_client::document::EventsVersion;
use notbefore_client::endpoint::Endpoint;

use super::file::{Reader, Table};
use super::keys::{GENERAL, TABLES};
use super::value::{Listen, Said};
use notbefore_settings::suggest;

/// What every variable of the agent begins with.
const PREFIX: &str = "NOTBEFORE_AGENT_";
/// Variables that begin so and are no settings: the file's name, and the boot that tests pretend.
const NOT_SETTINGS: [&str; 3] = [super::FILE_VARIABLE, crate::boot::VARIABLE, crate::vm_id::VARIABLE];

/// The variable of a setting.
pub fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.to_ascii_uppercase())
}

/// What somebody has said; none where nobody has.
#[derive(Debug, Default)]
pub struct General {
    pub endpoint: Option<Endpoint>,
    pub name: Option<String>,
    pub api_version: Option<EventsVersion>,
    pub state: Option<PathBuf>,
    pub listen: Option<Listen>,
    pub dry_run: Option<bool>,
    pub log: Option<String>,
}

impl General {
    /// Lays the file's words over what there is.
    pub fn lay_file(&mut self, reader: &mut Reader<'_>, table: &Table<'_, '_>) {
        self.endpoint = reader.value(table, "endpoint");
        self.name = reader.value(table, "name");
        self.api_version = reader.value(table, "api_version");
        self.state = reader.value(table, "state");
        self.listen = reader.value(table, "listen");
        self.dry_run = reader.value(table, "dry_run");
        self.log = reader.value(table, "log");
    }

    /// Lays the variables of the environment over what there is. An empty one says nothing.
    pub fn lay_environment(&mut self, environment: &[(String, String)], mistakes: &mut Vec<String>) {
        for (name, text) in environment {
            let Some(key) = name.strip_prefix(PREFIX) else { continue };
            if NOT_SETTINGS.contains(&name.as_str()) || text.is_empty() {
                continue;
            }
            let key = key.to_ascii_lowercase();
            let settings = || GENERAL.names().filter(|name| !TABLES.contains(name));
            if !settings().any(|known| known == key) {
                let meant = suggest::nearest(&key, settings())
                    .map(|meant| format!("did you mean {}?", variable(&meant)));
                let cure = meant.unwrap_or_else(|| "unset it".to_owned());
                mistakes.push(format!("environment {name}: there is no such setting; {cure}"));
            } else if let Err(wrong) = self.set(&key, text) {
                mistakes.push(format!("environment {name}: {wrong}"));
            }
        }
    }

    /// Lays flags over what there is.
    pub fn lay_flags(&mut self, flags: &[(&'static str, String)], mistakes: &mut Vec<String>) {
        for (key, text) in flags {
            if let Err(wrong) = self.set(key, text) {
                mistakes.push(format!("flag --{}: {wrong}", key.replace('_', "-")));
            }
        }
    }

    fn set(&mut self, key: &str, text: &str) -> Result<(), String> {
        let said = Said::Text(text);
        match key {
            "endpoint" => self.endpoint = Some(said.read()?),
            "name" => self.name = Some(said.read()?),
            "api_version" => self.api_version = Some(said.read()?),
            "state" => self.state = Some(said.read()?),
            "listen" => self.listen = Some(said.read()?),
            "dry_run" => self.dry_run = Some(said.read()?),
            "log" => self.log = Some(said.read()?),
            _ => return Err("there is no such setting".to_owned()),
        }
        Ok(())
    }
}
