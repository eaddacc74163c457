//! Finds a running agent: its status address and its journal. Diagnostic commands use it when something is wrong,
//! possibly without read access to the configuration or with a broken one. So it reads nothing else, and an
//! unreadable file is no error.

use std::net::SocketAddr;
use std::path::PathBuf;

use notbefore_settings::kind::FileName;
use notbefore_settings::{ConfigErrors, Reader, Sources};
use toml::de::DeTable;

use super::keys::SCHEMA;
use super::kinds::LISTEN;
use super::{USUAL_LISTEN, open, unread, usual_state};
use crate::trust::Untrusted;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningAgent {
    /// Address of its status server, if any.
    pub listen: Option<SocketAddr>,
    /// Its state directory.
    pub state: PathBuf,
    /// Why the configuration file, which may override these values, could not be read.
    pub unread: Option<String>,
    /// Whether the file was rejected by the trust check.
    pub is_untrusted: bool,
}

/// Flags override the environment, that overrides the readable part of the file, that overrides the defaults.
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
    let is_ours = |name: &String| ["listen", "state"].map(|key| SCHEMA.variable(key)).contains(name);
    let mut sources = sources.clone();
    let state = usual_state(&sources);
    sources.environment.retain(|(name, _)| is_ours(name));
    sources.not_text.retain(is_ours);
    reader.add_sources(&sources);
    let listen = reader.setting("listen", &LISTEN).unwrap_or(Some(USUAL_LISTEN));
    let state = reader.setting("state", &FileName).unwrap_or(state);
    reader.ignore_file_errors();
    reader.finish()?;
    Ok(RunningAgent { listen, state, unread, is_untrusted })
}
