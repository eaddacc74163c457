//! Journal encoding: a format number and the machine's state, as JSON.

use serde::{Deserialize, Serialize};

use crate::machine::State;

/// Format that this release writes and reads. Raised when [`State`] changes shape; then the format of the release before
/// is still read, because an upgraded agent restores what that one stopped. Until the first release is tagged it stays: a
/// new field has a default instead (`#[serde(default)]`).
pub const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Written<'a> {
    format: u32,
    state: &'a State,
}

#[derive(Deserialize)]
struct Content {
    state: State,
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
    if level.format != u64::from(FORMAT) {
        return Err(Unreadable::Format(level.format));
    }
    let content: Content = serde_json::from_slice(bytes).map_err(corrupt)?;
    Ok(content.state)
}

pub fn write(state: &State) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Written { format: FORMAT, state })
}
