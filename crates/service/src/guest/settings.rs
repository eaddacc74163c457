//! What can be set about the server, and its limits.
//!
//! Everything a guest can make grow or wait has a limit here. The sizes are constants, since no published
//! client comes near them; the times and the number of connections depend on the site.

use std::num::{NonZeroU32, NonZeroUsize};
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

/// How many requests of one connection are answered before the others have their turn.
pub const REQUESTS_PER_TURN: usize = 16;

/// How forgiving the server is of requests that Azure would refuse, or once took.
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
    /// Open connections of all listeners together. For a newer one an unknown caller's goes, or one of a VM with several half
    /// heads; then those that have been idle longest, up to 64 of one worker's; where none is idle, those whose polls
    /// have waited longest, with a response; and where none waits, the newer one is closed at once. The default leaves
    /// room for ten thousand VMs that keep theirs open, under the usual limit of files.
    pub connections_max: usize,
    /// Open connections of one source address, so that one VM cannot take every connection from the others; no
    /// limit where it is not set. 127.0.0.1 and ::1 are exempt, and so is a trusted proxy, which calls for many.
    pub connections_per_source_max: Option<usize>,
    /// How long a request's head may take from its first byte to its last.
    pub head_timeout: Duration,
    /// How long a request's body may take.
    pub body_timeout: Duration,
    /// How long a connection may stay open between requests. Longer than the slowest published client's
    /// minute between polls.
    pub idle_timeout: Duration,
    /// How long a write may make no progress.
    pub write_timeout: Duration,
    /// How long requests being served have to finish when the server closes.
    pub shutdown_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 15_000,
            connections_per_source_max: Some(64),
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(180),
            write_timeout: Duration::from_secs(10),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

/// How a server behaves. How documents are rendered is the platform's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestSettings {
    /// How forgiving it is.
    pub mode: Mode,
    /// The most requests a VM may make a second; no limit where it is not set.
    pub rate_limit: Option<NonZeroU32>,
    /// How many threads answer polls; by default one for each processor, four at most.
    pub threads: Option<NonZeroUsize>,
    /// Times and numbers.
    pub limits: Limits,
}

impl GuestSettings {
    /// The requests a second that a VM may make by default: two hundred times what it is asked to.
    pub const RATE_LIMIT: NonZeroU32 = NonZeroU32::new(200).unwrap();
    /// The most threads by default: more than that are not needed for as many VMs as one service has.
    const THREADS_BY_DEFAULT_MAX: usize = 4;

    /// How many threads answer polls.
    pub(super) fn threads(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.threads.map_or_else(|| processors().min(Self::THREADS_BY_DEFAULT_MAX), NonZeroUsize::get)
    }
}

impl Default for GuestSettings {
    fn default() -> Self {
        GuestSettings {
            mode: Mode::Normal,
            rate_limit: Some(Self::RATE_LIMIT),
            threads: None,
            limits: Limits::default(),
        }
    }
}
