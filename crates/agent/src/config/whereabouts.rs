//! Where an agent is to be found that runs already: its signals, and its journal. Whoever looks at an agent does so when
//! something is wrong, may not read its configuration, or stands before one that was just broken; so nothing else of the
//! file matters here, and a file that cannot be read is no mistake.

use std::net::SocketAddr;
use std::path::PathBuf;

use notbefore_settings::Mistakes;
use toml::de::DeTable;

use super::file::{self, Reader};
use super::general::{General, variable};
use super::{Sources, USUAL_LISTEN, keys, unread};
use crate::trust::Untrusted;

/// The settings that say where an agent is.
const KEYS: [&str; 2] = ["listen", "state"];

/// Where an agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whereabouts {
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
pub fn whereabouts(sources: &Sources) -> Result<Whereabouts, Mistakes> {
    let (path, mut general) = (sources.file(), General::default());
    let mut is_untrusted = false;
    let unread = match file::read_text(&path, sources.is_named()) {
        Ok(text) => {
            let (entries, mut reader) = (DeTable::parse_recoverable(&text).0, Reader::new(&text));
            let top = reader.table(&keys::GENERAL, String::new(), 0, entries.get_ref());
            general.lay_file(&mut reader, &top);
            None
        }
        Err(error) => {
            is_untrusted = Untrusted::is(&error);
            Some(unread(&path, &error))
        }
    };
    let mut mistakes = Vec::new();
    let ours = |(name, _): &&(String, String)| KEYS.iter().any(|key| *name == variable(key));
    let environment: Vec<_> = sources.environment.iter().filter(ours).cloned().collect();
    general.lay_environment(&environment, &mut mistakes);
    general.lay_flags(&sources.flags, &mut mistakes);
    if !mistakes.is_empty() {
        return Err(Mistakes(mistakes));
    }
    Ok(Whereabouts {
        listen: general.listen.unwrap_or(USUAL_LISTEN).0,
        state: general.state.unwrap_or_else(|| sources.usual_state()),
        unread,
        is_untrusted,
    })
}
