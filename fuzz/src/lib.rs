//! Shared code of the fuzz targets.
//!
//! A target has a `check`, which says whether an input passes the parser and panics on a violated invariant, and a
//! structure-aware mutation that keeps many inputs valid. Inputs that do not pass never join the corpus.
//!
//! Project files are included by `#[path]` where building their crate would take long.

pub mod mutate;
pub mod target;

pub use agent::{machine, rules};

/// The agent's machine and rules, which the journal contains.
#[path = "../../crates/agent/src"]
#[allow(dead_code)]
mod agent {
    pub mod machine;
    pub mod rules;
}

#[path = "../../crates/agent/src/journal/content.rs"]
pub mod journal;

pub use cli::fleet_file;

/// The fleet file with its modules.
#[path = "../../crates/cli/src"]
mod cli {
    pub mod fleet_file;
}

#[path = "../../crates/client/src/discovery/lease.rs"]
pub mod lease;

#[path = "../../crates/client/src/discovery/packet.rs"]
pub mod packet;

#[path = "../../crates/settings/src/span.rs"]
#[allow(dead_code)]
pub mod span;

#[path = "../../crates/service/src/operator/cursor.rs"]
pub mod cursor;

#[path = "../../crates/service/src/transfer/kinds.rs"]
pub mod kinds;

#[path = "../../crates/service/src/transfer/lines.rs"]
pub mod lines;

/// Stub of the command line's times, for the fleet file.
pub mod time {
    pub use crate::span::parse as parse_duration;
}

/// Stub of suggestions, which change messages only, for the fleet file.
pub mod suggest {
    /// No suggestion.
    pub fn nearest<'a>(_: &str, _: impl IntoIterator<Item = &'a str>) -> Option<String> {
        None
    }
}

/// Stub of the command line's output, for the fleet file.
pub mod output {
    /// A file's name in a message.
    pub fn file_name(path: &std::path::Path) -> String {
        notbefore_wire::text::printable(&path.display().to_string())
    }
}
