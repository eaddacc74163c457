//! The agent's configuration: file, environment and flags.
//!
//! Three stages:
//! - *Raw*: `notbefore_settings` collects the values; `keys.rs` is the schema.
//! - *Merged*: for global settings, a flag overrides the environment (`NOTBEFORE_AGENT_…`), that overrides the file,
//!   and that overrides the default. Rules come from the file only.
//! - *Validated*: [`Config`], with the rules in the machine's types (`rules.rs`, `steps.rs`).
//!
//! Commands that only look for a running agent use [`find_running_agent`], which ignores other errors in the
//! configuration.

pub mod keys;
mod kinds;
mod notify;
mod rules;
mod running_agent;
mod steps;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use notbefore_client::document::EventsVersion;
use notbefore_client::endpoint::Endpoint;
use notbefore_settings::kind::{FileName, LOG_FORMAT, LogFilter, LogFormat, Switch};
pub use notbefore_settings::{ConfigErrors, FlagValue, Sources};
use notbefore_settings::{Reader, read_text};
use toml::de::DeTable;

use crate::rules::Rule;
#[cfg(unix)]
use crate::trust;
use crate::trust::Untrusted;
use keys::SCHEMA;
use kinds::{API_VERSION, EndpointUrl, LISTEN, TEXT};
pub use notify::{Notify, NotifyOn};
pub use running_agent::{RunningAgent, find_running_agent};

/// Default address of the status server: next to the service's own ports, loopback only.
const USUAL_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9256);
/// The sample file; `notbefore agent sample` prints it.
pub const SAMPLE: &str = include_str!("../../../dist/agent.toml");

/// The validated configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The file it was read from.
    pub file: PathBuf,
    /// None: discovered.
    pub endpoint: Option<Endpoint>,
    /// This VM's name. None: asked from the instance metadata.
    pub name: Option<String>,
    /// Newest api-version to request.
    pub api_version: EventsVersion,
    /// State directory, with the journal.
    pub state: PathBuf,
    /// Address of the status server, if any.
    pub listen: Option<SocketAddr>,
    /// Log steps and approvals instead of executing them.
    pub dry_run: bool,
    /// Log filter.
    pub log: String,
    /// Log format.
    pub log_format: LogFormat,
    /// The administrator's webhook.
    pub notify: Option<Notify>,
    /// In order of precedence.
    pub rules: Vec<Rule>,
}

/// The file named by a flag or the environment.
fn named_file(sources: &Sources) -> Option<PathBuf> {
    let by_variable = || sources.variable(SCHEMA.file_variable).map(PathBuf::from);
    sources.file.clone().or_else(by_variable)
}

fn usual_file(sources: &Sources) -> PathBuf {
    usual(sources, "agent.toml", "/etc/notbefore/agent.toml")
}

/// Default state directory.
fn usual_state(sources: &Sources) -> PathBuf {
    usual(sources, "agent", "/var/lib/notbefore-agent")
}

/// A path below ProgramData on Windows, else `elsewhere`.
fn usual(sources: &Sources, windows: &str, elsewhere: &str) -> PathBuf {
    if !cfg!(windows) {
        return elsewhere.into();
    }
    let data = sources.variable("ProgramData").unwrap_or("C:\\ProgramData");
    Path::new(data).join("notbefore").join(windows)
}

/// Loads and validates file, environment and flags.
pub fn load(sources: &Sources) -> Result<Config, ConfigErrors> {
    let (path, text) = open(sources);
    match text {
        Ok(text) => read(&path, &text, sources),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ConfigErrors::one(format!(
            "no configuration at {path}; {make}'notbefore agent sample > {path}', or name another with --config",
            path = path.display(),
            make = how_to_create(&path, cfg!(windows) && path == usual_file(sources)),
        ))),
        Err(error) => Err(ConfigErrors::one(unread(&path, &error))),
    }
}

/// The file and its text. Symbolic links are followed; the target must pass the trust check.
fn open(sources: &Sources) -> (PathBuf, io::Result<String>) {
    let named = named_file(sources);
    #[cfg(unix)]
    let rule = if named.is_some() { trust::Rule::NamedConfig } else { trust::Rule::UsualConfig };
    let path = named.unwrap_or_else(|| usual_file(sources));
    let text = std::fs::File::open(&path).and_then(|file| {
        #[cfg(unix)]
        trust::check(rule, &file, &path)?;
        read_text(file)
    });
    (path, text)
}

/// Error text for a file that was not read. An untrusted file's error names its path itself.
fn unread(path: &Path, error: &io::Error) -> String {
    match Untrusted::is(error) {
        true => error.to_string(),
        false => format!("cannot read {}: {error}", path.display()),
    }
}

/// First half of the hint for a missing file. On Windows, the installer moves aside a directory that it did not
/// create, with the configuration in it, so the hint is to install first.
fn how_to_create(path: &Path, is_installed_there: bool) -> &'static str {
    match path.parent() {
        Some(dir) if dir.as_os_str().is_empty() || dir.is_dir() => "create one with ",
        Some(_) if is_installed_there => "run 'notbefore agent install', which creates its directory, then ",
        Some(_) => "create its directory, then run ",
        None => "create one with ",
    }
}

/// Parses a file's text and applies environment and flags.
pub fn read(path: &Path, text: &str, sources: &Sources) -> Result<Config, ConfigErrors> {
    let mut reader = Reader::new(&SCHEMA, path, text, sources);
    let (mut told, mut rules) = (None, Vec::new());
    match &DeTable::parse(text) {
        Ok(entries) => {
            let top = reader.top(entries.get_ref());
            told = notify::read(&mut reader, &top);
            rules = rules::read(&mut reader, &top);
            if rules.is_empty() && told.is_none() {
                reader.wrong(0, "there is no [[rule]], so the agent would handle no event; add one");
            }
        }
        Err(error) => reader.parse_error(error),
    }
    reader.add_sources(sources);
    let config = Config {
        file: path.to_owned(),
        endpoint: reader.setting("endpoint", &EndpointUrl),
        name: reader.setting("name", &TEXT),
        api_version: reader.setting("api_version", &API_VERSION).unwrap_or(EventsVersion::NEWEST),
        state: reader.setting("state", &FileName).unwrap_or_else(|| usual_state(sources)),
        listen: reader.setting("listen", &LISTEN).unwrap_or(Some(USUAL_LISTEN)),
        dry_run: reader.setting("dry_run", &Switch).unwrap_or(false),
        log: reader.setting("log", &LogFilter).unwrap_or_else(|| "info".to_owned()),
        log_format: reader.setting("log_format", &LOG_FORMAT).unwrap_or(LogFormat::Text),
        notify: told,
        rules,
    };
    reader.finish().map(|_| config)
}

#[cfg(test)]
mod tests;
