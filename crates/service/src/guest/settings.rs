//! Settings and limits of the guest server.
//!
//! Every size and wait that a guest can influence has a limit here. Sizes are constants, since no published client
//! comes near them. Times and numbers of connections are settings, since they depend on the site.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use notbefore_wire::guest::version::EventsVersion;

/// Largest request head. Heads of published clients have under 500 bytes; other servers accept 16 KiB. One buffer may
/// grow to this size.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Maximum headers in a head. Clients send up to ten; a proxy may add some.
pub const HEADERS_MAX: usize = 64;
/// Longest request target. The longest path of instance metadata has under 100 bytes.
pub const TARGET_BYTES_MAX: usize = 8 * 1024;
/// Largest request body: an approval of a thousand events in compact form has about 50 KiB.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// Requests of one connection that are answered before other connections have their turn.
pub const REQUESTS_PER_TURN: usize = 16;

/// How strictly the server checks requests, compared with Azure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `Metadata` in any case; a POST at 2017-03-01 may omit it.
    #[default]
    Normal,
    /// `Metadata: true` exactly, on every request, as Azure requires today.
    Strict,
    /// A POST may omit `Metadata` at every version; the 2017 paths with the version in them are served.
    Lenient,
}

/// Times and numbers that a site can set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections of all listeners together. At the limit, a new connection evicts, in this order:
    ///
    /// 1. a connection of an unknown caller, or an incomplete head of a VM that has several;
    /// 2. the longest idle connections, up to 64 of one worker;
    /// 3. the longest held polls, which are answered first.
    ///
    /// If there are none of these, the new connection is closed at once. The default has room for ten thousand VMs with
    /// open connections, under the usual limit of file descriptors.
    pub connections_max: usize,
    /// Open connections of one source address, so that one VM cannot use up the server; none is no limit. 127.0.0.1,
    /// ::1 and trusted proxies are exempt.
    pub connections_per_source_max: Option<usize>,
    /// Time for a request's head, from its first byte to its last.
    pub head_timeout: Duration,
    /// Time for a request's body.
    pub body_timeout: Duration,
    /// How long a connection may stay open between requests. Longer than the minute between polls of the slowest
    /// published client.
    pub idle_timeout: Duration,
    /// How long a write may make no progress.
    pub write_timeout: Duration,
    /// How long requests have to finish at shutdown.
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

/// Settings of a server. The platform determines how documents are rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestSettings {
    /// How strictly requests are checked.
    pub mode: Mode,
    /// The newest api-version of scheduled events that is served. Newer ones are 404.
    pub newest_version: EventsVersion,
    /// Requests a second that a VM may make; none is no limit.
    pub rate_limit: Option<NonZeroU32>,
    /// Number of threads that answer polls; by default one for each processor, four at most.
    pub threads: Option<NonZeroUsize>,
    /// Times and numbers.
    pub limits: Limits,
}

impl GuestSettings {
    /// Default rate limit: two hundred times the expected poll rate.
    pub const RATE_LIMIT: NonZeroU32 = NonZeroU32::new(200).unwrap();
    /// Most threads by default; one service needs no more.
    const THREADS_BY_DEFAULT_MAX: usize = 4;

    /// Number of threads that answer polls.
    pub(super) fn threads(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.threads.map_or_else(|| processors().min(Self::THREADS_BY_DEFAULT_MAX), NonZeroUsize::get)
    }
}

impl Default for GuestSettings {
    fn default() -> Self {
        GuestSettings {
            mode: Mode::Normal,
            newest_version: EventsVersion::NEWEST,
            rate_limit: Some(Self::RATE_LIMIT),
            threads: None,
            limits: Limits::default(),
        }
    }
}
