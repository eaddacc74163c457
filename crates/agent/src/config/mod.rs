//! What the agent is told, and by whom.
//!
//! Three stages. *As written*: the file (`file.rs`) is TOML whose every mistake is collected with its line; `keys.rs` is
//! the one list of what may be written. *Merged*: for the settings of the agent as a whole a flag goes before
//! the environment (`NOTBEFORE_AGENT_…`), that before the file, that before the default (`general.rs`). *Validated*:
//! [`Config`], whose rules are the machine's own (`rules.rs`, `steps.rs`). Rules come from the file alone.
//!
//! Whoever only wants to find an agent asks for its [`whereabouts`], whatever else is wrong with the configuration.

mod file;
mod general;
pub mod keys;
mod notify;
mod rules;
mod steps;
mod value;
mod whereabouts;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use notbefore_client::document::EventsVersion;
use notbefore_client::endpoint::Endpoint;
use notbefore_settings::Mistakes;
use toml::de::DeTable;

use crate::rules::Rule;
use crate::trust::Untrusted;
use file::Reader;
use general::General;
pub use notify::{Happening, Notify};
pub use value::Listen;
pub use whereabouts::{Whereabouts, whereabouts};

/// The variable that names another file.
pub const FILE_VARIABLE: &str = "NOTBEFORE_AGENT_CONFIG";
/// Where systemd says that a service shall keep its data.
const STATE_DIRECTORY: &str = "STATE_DIRECTORY";
/// Where the signals are served where nobody says: beside the service's own doors, and on loopback only.
const USUAL_LISTEN: Listen = Listen(Some(SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9256)));
/// The sample file, which `notbefore agent sample` prints.
pub const SAMPLE: &str = include_str!("../../../../dist/agent.toml");

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

/// What is said besides the file.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file that a flag names.
    pub file: Option<PathBuf>,
    /// The variables of this process, as text.
    pub environment: Vec<(String, String)>,
    /// Settings that flags say, by their keys.
    pub flags: Vec<(&'static str, String)>,
}

impl Sources {
    /// The file to be read: the one that is named, or the usual one.
    pub fn file(&self) -> PathBuf {
        let by_variable = || self.variable(FILE_VARIABLE).map(PathBuf::from);
        self.file.clone().or_else(by_variable).unwrap_or_else(|| self.usual_file())
    }

    /// Whether somebody has named the file, and is not left with the usual one.
    fn is_named(&self) -> bool {
        self.file.is_some() || self.variable(FILE_VARIABLE).is_some()
    }

    fn usual_file(&self) -> PathBuf {
        self.usual("agent.toml", "/etc/notbefore/agent.toml")
    }

    fn variable(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().find(|(known, value)| known == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    /// The directory of the journal where nobody names one.
    fn usual_state(&self) -> PathBuf {
        let said = self.variable(STATE_DIRECTORY).map(PathBuf::from);
        said.unwrap_or_else(|| self.usual("agent", "/var/lib/notbefore-agent"))
    }

    /// A place below ProgramData on Windows, and its place elsewhere.
    fn usual(&self, windows: &str, elsewhere: &str) -> PathBuf {
        if !cfg!(windows) {
            return elsewhere.into();
        }
        let data = self.variable("ProgramData").unwrap_or("C:\\ProgramData");
        Path::new(data).join("notbefore").join(windows)
    }
}

/// Reads file, environment and flags.
pub fn load(sources: &Sources) -> Result<Config, Mistakes> {
    let path = sources.file();
    match file::read_text(&path, sources.is_named()) {
        Ok(text) => read(&path, &text, sources),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Mistakes::one(format!(
            "there is no configuration at {path}; {make}'notbefore agent sample > {path}', or name another with --config",
            path = path.display(),
            make = way_to_make(&path, cfg!(windows) && path == sources.usual_file()),
        ))),
        Err(error) => Err(Mistakes::one(unread(&path, &error))),
    }
}

/// Why a file was not read. One that is not trusted says its path itself.
fn unread(path: &Path, error: &std::io::Error) -> String {
    match Untrusted::is(error) {
        true => error.to_string(),
        false => format!("cannot read {}: {error}", path.display()),
    }
}

/// What comes before the sample. A directory that no installation has made is moved aside by the next one on Windows, with the
/// configuration in it: there the installation makes it.
fn way_to_make(path: &Path, is_installed_there: bool) -> &'static str {
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
pub fn read(path: &Path, text: &str, sources: &Sources) -> Result<Config, Mistakes> {
    let mut reader = Reader::new(text);
    let mut general = General::default();
    let (mut told, mut rules) = (None, Vec::new());
    match DeTable::parse(text) {
        Ok(entries) => {
            let top = reader.table(&keys::GENERAL, String::new(), 0, entries.get_ref());
            general.lay_file(&mut reader, &top);
            told = notify::read(&mut reader, &top);
            rules = rules::read(&mut reader, &top);
            if rules.is_empty() && told.is_none() {
                reader.wrong(0, "there is no [[rule]], so nothing would be done about any event; write one");
            }
        }
        Err(error) => reader.wrong(error.span().map_or(0, |span| span.start), error.message()),
    }
    let place = |(line, what): (usize, String)| format!("{}:{line}: {what}", path.display());
    let mut mistakes: Vec<String> = reader.into_mistakes().into_iter().map(place).collect();
    general.lay_environment(&sources.environment, &mut mistakes);
    general.lay_flags(&sources.flags, &mut mistakes);
    if !mistakes.is_empty() {
        return Err(Mistakes(mistakes));
    }
    Ok(Config {
        file: path.to_owned(),
        endpoint: general.endpoint,
        name: general.name,
        api_version: general.api_version.unwrap_or(EventsVersion::NEWEST),
        state: general.state.unwrap_or_else(|| sources.usual_state()),
        listen: general.listen.unwrap_or(USUAL_LISTEN).0,
        dry_run: general.dry_run.unwrap_or(false),
        log: general.log.unwrap_or_else(|| "info".to_owned()),
        notify: told,
        rules,
    })
}

/// The variables of this process, as text; those that are none cannot be settings.
pub fn process_environment() -> Vec<(String, String)> {
    let texts = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        let name = name.into_string().ok()?;
        Some((name, value.to_string_lossy().into_owned()))
    };
    std::env::vars_os().filter_map(texts).collect()
}

#[cfg(test)]
mod tests;
