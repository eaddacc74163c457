//! The bytes of a journal: a format level and the machine's state, as JSON.

use serde::{Deserialize, Serialize};

use crate::machine::{State, format_2};

/// The level that this release writes. It is raised whenever [`State`] takes another shape: what one release has stopped,
/// only a release that can read of it starts again.
pub const FORMAT: u32 = 3;
/// The oldest level that this release reads. Level 1 was never released.
pub const OLDEST_FORMAT: u32 = 2;

#[derive(Serialize)]
struct Written<'a> {
    format: u32,
    state: &'a State,
}

#[derive(Deserialize)]
struct Content<S> {
    state: S,
}

#[derive(Deserialize)]
struct Level {
    format: u64,
}

/// Why a journal cannot be read.
#[derive(Debug)]
pub enum Unreadable {
    /// Another release has written it, at this level.
    Format(u64),
    /// It is no journal, for this reason.
    Corrupt(String),
}

/// The state in a journal's bytes.
pub fn read(bytes: &[u8]) -> Result<State, Unreadable> {
    let corrupt = |error: serde_json::Error| Unreadable::Corrupt(error.to_string());
    let level: Level = serde_json::from_slice(bytes).map_err(corrupt)?;
    match u32::try_from(level.format) {
        Ok(FORMAT) => serde_json::from_slice(bytes).map(|content: Content<State>| content.state),
        Ok(OLDEST_FORMAT) => {
            serde_json::from_slice(bytes).map(|content: Content<format_2::State>| content.state.into())
        }
        Ok(_) | Err(_) => return Err(Unreadable::Format(level.format)),
    }
    .map_err(corrupt)
}

/// A journal's bytes with this state.
pub fn write(state: &State) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Written { format: FORMAT, state })
}
