//! What the fuzz targets share.
//!
//! A target is a `check`, which says whether an input passes the parser and panics if the parser breaks a promise, and a way
//! to mutate inputs so that many still pass. Inputs that do not pass never join the corpus: the fuzzer mutates valid ones.
//!
//! The files of the project that a target reads are taken in by their paths where their crate would take long to build.

pub mod mutate;
pub mod target;

pub use agent::{machine, rules};

/// The agent's machine and rules, which its journal holds.
#[path = "../../crates/agent/src"]
#[allow(dead_code)]
mod agent {
    pub mod machine;
    pub mod rules;
}

#[path = "../../crates/agent/src/journal/content.rs"]
pub mod journal;

#[path = "../../crates/cli/src/fleet_file.rs"]
pub mod fleet_file;

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

/// What the fleet file needs of the command line's times.
pub mod time {
    pub use crate::span::parse as parse_duration;
}

/// What the fleet file needs of the command line's output.
pub mod output {
    /// A file's name in a message.
    pub fn file_name(path: &std::path::Path) -> String {
        notbefore_wire::text::printable(&path.display().to_string())
    }
}
