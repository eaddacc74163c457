//! Journal encoding: a format number and the machine's state, as JSON.

use serde::{Deserialize, Serialize};

use crate::machine::{State, format_2};

/// Format that this release writes. Raised whenever [`State`] changes shape: a release that cannot read the journal
/// cannot restore what an older one stopped.
pub const FORMAT: u32 = 3;
/// Oldest format that this release reads. Format 1 was never released.
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

#[derive(Debug)]
pub enum Unreadable {
    /// Written by a release with this other format.
    Format(u64),
    /// Not a journal; the parser's message.
    Corrupt(String),
}

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

pub fn write(state: &State) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Written { format: FORMAT, state })
}
