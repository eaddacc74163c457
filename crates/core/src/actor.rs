//! Who did something. Every fact names its actor.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::ids::{Name, VmId};

/// Who did something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// Somebody who holds a token for the operator API.
    Token(String),
    /// A guest, from the address it called from, by its name at that time.
    Vm { vm: VmId, name: Name, address: IpAddr },
    /// Time: NotBefore passed.
    Timer,
    /// A driver reported.
    Driver(String),
    /// The service itself, as when it makes the first-run VM or goes on with what a crash cut short.
    Service,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(name) => write!(f, "token {name}"),
            Self::Vm { name, address, .. } => write!(f, "vm {name} at {address}"),
            Self::Timer => f.write_str("timer"),
            Self::Driver(name) => write!(f, "driver {name}"),
            Self::Service => f.write_str("service"),
        }
    }
}
