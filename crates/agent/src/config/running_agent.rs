//! Where an agent is to be found that runs already: its signals, and its journal. Whoever looks at an agent does so when
//! something is wrong, may not read its configuration, or stands before one that was just broken; so nothing else of the
//! file matters here, and a file that cannot be read is no mistake.

use std::net::SocketAddr;
use std::path::PathBuf;

use notbefore_settings::kind::FileName;
use notbefore_settings::{ConfigErrors, Reader, Sources};
use toml::de::DeTable;

use super::keys::SCHEMA;
use super::kinds::LISTEN;
use super::{USUAL_LISTEN, open, unread, usual_state};
use crate::trust::Untrusted;

/// Where an agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningAgent {
    /// Where its signals are served, if anywhere.
    pub listen: Option<SocketAddr>,
    /// The directory of its journal.
    pub state: PathBuf,
    /// The file that may say otherwise and could not be read, and why.
    pub unread: Option<String>,
    /// Whether that is because the agent would not trust the file.
    pub is_untrusted: bool,
}

/// Finds out: flags go before the environment, that before as much of the file as can be read, that before the defaults.
pub fn find_running_agent(sources: &Sources) -> Result<RunningAgent, ConfigErrors> {
    let (path, text) = open(sources);
    let (unread, is_untrusted) = match &text {
        Ok(_) => (None, false),
        Err(error) => (Some(unread(&path, error)), Untrusted::is(error)),
    };
    let text = text.unwrap_or_default();
    let entries = DeTable::parse_recoverable(&text).0;
    let mut reader = Reader::new(&SCHEMA, &path, &text, sources);
    reader.top(entries.get_ref());
    let is_ours =
        |(name, _): &(String, String)| ["listen", "state"].map(|key| SCHEMA.variable(key)).contains(name);
    let mut sources = sources.clone();
    let state = usual_state(&sources);
    sources.environment.retain(is_ours);
    reader.add_sources(&sources);
    let listen = reader.setting("listen", &LISTEN).unwrap_or(Some(USUAL_LISTEN));
    let state = reader.setting("state", &FileName).unwrap_or(state);
    reader.ignore_file_errors();
    reader.finish()?;
    Ok(RunningAgent { listen, state, unread, is_untrusted })
}
