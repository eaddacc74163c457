//! What can be set about the door, and its limits.
//!
//! Everything a guest can make grow or wait has a limit here. The sizes are constants, since no published
//! client comes near them; the times and the number of connections depend on the site.

use std::num::NonZeroU32;
use std::time::Duration;

/// The largest request head. The largest of a published client is under 500 bytes; 16 KiB is what other
/// servers take, and what one buffer may grow to.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// The most headers in a head. Clients send up to ten; a proxy in between may add some.
pub const HEADERS_MAX: usize = 64;
/// The longest request target. The longest path into instance metadata is under 100 bytes.
pub const TARGET_BYTES_MAX: usize = 8 * 1024;
/// The largest request body: an approval of a thousand events, written compactly, is about 50 KiB.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// How forgiving the door is of requests that Azure would refuse, or once took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `Metadata` without regard to case; a POST without it at 2017-03-01.
    #[default]
    Normal,
    /// `Metadata: true` exactly, on every request: what Azure asks for today.
    Strict,
    /// A POST without `Metadata` at every version, and the paths of 2017 with the version in them.
    Lenient,
}

/// Times and numbers that a site may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections of all listeners together; a newer one is closed at once. The default leaves room
    /// for ten thousand VMs that keep theirs open, under the usual limit of files.
    pub connections_max: usize,
    /// Open connections of one source address, so that one VM cannot take every connection from the others.
    /// Loopback is exempt, and so is a trusted proxy, which calls for many.
    pub connections_per_source_max: usize,
    /// How long a request's head may take from its first byte to its last.
    pub head_timeout: Duration,
    /// How long a request's body may take.
    pub body_timeout: Duration,
    /// How long a connection may stay open between requests. Longer than the slowest published client's
    /// minute between polls.
    pub idle_timeout: Duration,
    /// How long a write may make no progress.
    pub write_timeout: Duration,
    /// How long requests being served have to finish when the door closes.
    pub shutdown_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 15_000,
            connections_per_source_max: 256,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(180),
            write_timeout: Duration::from_secs(10),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

/// How a door behaves. How documents are rendered is the platform's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestSettings {
    /// How forgiving it is.
    pub mode: Mode,
    /// The most requests a VM may make a second; no limit where it is not set.
    pub rate_limit: Option<NonZeroU32>,
    /// Times and numbers.
    pub limits: Limits,
}
