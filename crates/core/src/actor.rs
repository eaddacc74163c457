//! Actors: who did something. Every fact names its actor.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::ids::{Name, VmId};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// The name of an operator API token.
    Token(String),
    /// A guest, with its name and address at the time of the call.
    Vm { vm: VmId, name: Name, address: IpAddr },
    /// NotBefore passed.
    Timer,
    /// A driver's report, by the driver's name.
    Driver(String),
    /// The service itself: it creates the first-run VM, or continues work that a crash interrupted.
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
