//! What the parsers of foreign bytes promise, as functions of one input. The fuzz targets (`fuzz/`) run them with libFuzzer;
//! the tests of this crate run them with the corpora and with some mutations of each input.
//!
//! A [`Property`] has a `check`, which says whether an input passes the parser and panics on a violated invariant, and a
//! structure-aware mutation that keeps many inputs valid.
//!
//! Project files are included by `#[path]` where building their crate would take long: the fuzzer compiles everything once
//! more, with flags of its own.

// The included files' own tests run in their crates.
#![cfg(not(test))]

pub mod checks;
pub mod mutate;
mod planted;

pub use planted::{PLANTED_BUG, plant, planted_bug};

use mutate::Mutation;

/// A parser's promise.
#[derive(Clone, Copy)]
pub struct Property {
    /// The fuzz target and the directory of its corpus.
    pub name: &'static str,
    /// Whether an input passes the parser; panics if an invariant does not hold.
    pub check: fn(&[u8]) -> bool,
    /// None: libFuzzer's own mutations of bytes.
    pub mutation: Option<Mutation>,
}

/// All properties, by name.
pub const ALL: [Property; 10] = [
    Property { name: "cursor", check: checks::cursor::check, mutation: Some(checks::cursor::name) },
    Property { name: "dhcp", check: checks::dhcp::check, mutation: Some(checks::dhcp::options) },
    Property { name: "document", check: checks::document::check, mutation: Some(mutate::json) },
    Property { name: "export", check: checks::export::check, mutation: Some(checks::export::records) },
    Property { name: "fleet", check: checks::fleet::check, mutation: Some(mutate::lines) },
    Property { name: "journal", check: checks::journal::check, mutation: Some(mutate::json) },
    Property { name: "lease", check: checks::lease::check, mutation: Some(mutate::lines) },
    Property { name: "operator", check: checks::operator::check, mutation: Some(mutate::json_behind_a_line) },
    Property { name: "request", check: checks::request::check, mutation: None },
    Property { name: "start_requests", check: checks::start_requests::check, mutation: Some(mutate::json) },
];

/// The property of a name.
pub fn named(name: &str) -> Option<Property> {
    ALL.into_iter().find(|property| property.name == name)
}

use agent::{machine, rules};

/// The agent's machine and rules, which the journal contains.
#[path = "../../agent/src"]
#[allow(dead_code, unused_imports)]
mod agent {
    pub mod machine;
    pub mod rules;
}

#[path = "../../agent/src/journal/content.rs"]
#[allow(dead_code)]
mod journal;

use cli::fleet_file;

/// The fleet file with its modules.
#[path = "../../cli/src"]
mod cli {
    pub mod fleet_file;
}

#[path = "../../client/src/discovery/lease.rs"]
#[allow(dead_code)]
mod lease;

#[path = "../../client/src/discovery/packet.rs"]
#[allow(dead_code)]
mod packet;

#[path = "../../settings/src/span.rs"]
#[allow(dead_code)]
mod span;

#[path = "../../service/src/operator/cursor.rs"]
#[allow(dead_code)]
mod cursor;

#[path = "../../service/src/transfer/kinds.rs"]
#[allow(dead_code)]
mod kinds;

#[path = "../../service/src/transfer/lines.rs"]
#[allow(dead_code)]
mod lines;

/// Stub of the command line's times, for the fleet file.
mod time {
    pub use crate::span::parse as parse_duration;
}

/// Stub of suggestions, which change messages only, for the fleet file.
mod suggest {
    /// No suggestion.
    pub fn nearest<'a>(_: &str, _: impl IntoIterator<Item = &'a str>) -> Option<String> {
        None
    }
}

/// Stub of the command line's output, for the fleet file.
mod output {
    /// A file's name in a message.
    pub fn file_name(path: &std::path::Path) -> String {
        notbefore_wire::text::printable(&path.display().to_string())
    }
}
