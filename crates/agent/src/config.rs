//! What the agent is told, and by whom.
//!
//! Three stages. *As written*: the kernel (`notbefore_settings`) collects what file, environment and flags say; `keys.rs`
//! is the one list of what may be written. *Merged*: for the settings of the agent as a whole a flag goes before the
//! environment (`NOTBEFORE_AGENT_…`), that before the file, that before the default. *Validated*: [`Config`], whose rules
//! are the machine's own (`rules.rs`, `steps.rs`). Rules come from the file alone.
//!
//! Whoever only wants to find an agent asks for its [`find_running_agent`], whatever else is wrong with the configuration.

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
use notbefore_settings::kind::{FileName, Switch};
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

/// Where the signals are served where nobody says: beside the service's own doors, and on loopback only.
const USUAL_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9256);
/// The sample file, which `notbefore agent sample` prints.
pub const SAMPLE: &str = include_str!("../../../dist/agent.toml");

/// What the agent goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The file that it was read from.
    pub file: PathBuf,
    /// The endpoint's URL; none is to be found.
    pub endpoint: Option<Endpoint>,
    /// This VM's name; none is to be found.
    pub name: Option<String>,
    /// The newest api-version to ask for.
    pub api_version: EventsVersion,
    /// The directory of the journal.
    pub state: PathBuf,
    /// Where signals are served, if anywhere.
    pub listen: Option<SocketAddr>,
    /// Whether steps and approvals are only told.
    pub dry_run: bool,
    /// What is logged.
    pub log: String,
    /// Who else is told.
    pub notify: Option<Notify>,
    /// The rules, in their order.
    pub rules: Vec<Rule>,
}

/// The file that somebody has named, if one was.
fn named_file(sources: &Sources) -> Option<PathBuf> {
    let by_variable = || sources.variable(SCHEMA.file_variable).map(PathBuf::from);
    sources.file.clone().or_else(by_variable)
}

fn usual_file(sources: &Sources) -> PathBuf {
    usual(sources, "agent.toml", "/etc/notbefore/agent.toml")
}

/// The directory of the journal where nobody names one.
fn usual_state(sources: &Sources) -> PathBuf {
    usual(sources, "agent", "/var/lib/notbefore-agent")
}

/// A place below ProgramData on Windows, and its place elsewhere.
fn usual(sources: &Sources, windows: &str, elsewhere: &str) -> PathBuf {
    if !cfg!(windows) {
        return elsewhere.into();
    }
    let data = sources.variable("ProgramData").unwrap_or("C:\\ProgramData");
    Path::new(data).join("notbefore").join(windows)
}

/// Reads file, environment and flags.
pub fn load(sources: &Sources) -> Result<Config, ConfigErrors> {
    let (path, text) = open(sources);
    match text {
        Ok(text) => read(&path, &text, sources),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ConfigErrors::one(format!(
            "there is no configuration at {path}; {make}'notbefore agent sample > {path}', or name another with --config",
            path = path.display(),
            make = how_to_create(&path, cfg!(windows) && path == usual_file(sources)),
        ))),
        Err(error) => Err(ConfigErrors::one(unread(&path, &error))),
    }
}

/// The file, and its text. Links are followed, and the file at their end has to be one that the agent trusts.
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

/// Why a file was not read. One that is not trusted says its path itself.
fn unread(path: &Path, error: &io::Error) -> String {
    match Untrusted::is(error) {
        true => error.to_string(),
        false => format!("cannot read {}: {error}", path.display()),
    }
}

/// What comes before the sample. A directory that no installation has made is moved aside by the next one on Windows, with the
/// configuration in it: there the installation makes it.
fn how_to_create(path: &Path, is_installed_there: bool) -> &'static str {
    match path.parent() {
        Some(dir) if dir.as_os_str().is_empty() || dir.is_dir() => "make one with ",
        Some(_) if is_installed_there => {
            "say 'notbefore agent install', which makes its directory, and then "
        }
        Some(_) => "make its directory, and then say ",
        None => "make one with ",
    }
}

/// Reads a file's text, with the environment and the flags over it.
pub fn read(path: &Path, text: &str, sources: &Sources) -> Result<Config, ConfigErrors> {
    let mut reader = Reader::new(&SCHEMA, path, text, sources);
    let (mut told, mut rules) = (None, Vec::new());
    match &DeTable::parse(text) {
        Ok(entries) => {
            let top = reader.top(entries.get_ref());
            told = notify::read(&mut reader, &top);
            rules = rules::read(&mut reader, &top);
            if rules.is_empty() && told.is_none() {
                reader.wrong(0, "there is no [[rule]], so nothing would be done about any event; write one");
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
        log: reader.setting("log", &TEXT).unwrap_or_else(|| "info".to_owned()),
        notify: told,
        rules,
    };
    reader.finish().map(|_| config)
}

#[cfg(test)]
mod tests;
