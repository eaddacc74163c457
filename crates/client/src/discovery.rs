//! Endpoint discovery.
//!
//! Most VMs have the endpoint at 169.254.169.254; VMs outside a virtual network get it by DHCP, in option 245.
//! Sources, in order:
//!
//! 1. the configured endpoint, or else the environment variable `NOTBEFORE_ENDPOINT`, which rehearsals set: if it does not
//!    answer, no other is tried;
//! 2. the environment variable `SCHEDULEDEVENTSIP`, and on Windows the registry, where the platform's own sample
//!    publishes its result;
//! 3. 169.254.169.254;
//! 4. the cached result of DHCP, if the caller keeps a file for it;
//! 5. option 245 in the lease files of dhclient, systemd-networkd and NetworkManager;
//! 6. a DHCP DISCOVER, on Linux. Any host on the network could answer it, so it comes last, never overrides the
//!    default address, and is broadcast with exponential backoff.
//!
//! Without a port, 80 and then 8080 are tried. A candidate counts only if it answers a real request with a document.
//! One that answers something else for now (410 during an update, 429, 5xx, an empty 200) is retried for
//! [`BUSY_TIME_MAX`] before the next source. The error lists why each candidate failed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::client::{Client, Options, Reading};
use crate::clock::Clock;
use crate::endpoint::Endpoint;
use crate::failure::{Failure, FailureKind};
use crate::poll::backoff_after;
use crate::random;

#[cfg(target_os = "linux")]
mod backoff;
#[cfg(target_os = "linux")]
mod dhcp;
mod lease;
mod leases;
#[cfg(target_os = "linux")]
mod packet;

/// Environment variable with the URL of the endpoint; no other is tried.
pub const ENDPOINT_VARIABLE: &str = "NOTBEFORE_ENDPOINT";
/// Environment variable that the platform's own sample sets.
pub const VARIABLE: &str = "SCHEDULEDEVENTSIP";
/// How long a busy endpoint is retried. The platform's documentation says that an update takes 70 seconds.
pub const BUSY_TIME_MAX: Duration = Duration::from_secs(75);
/// Most lease addresses tried. A VM has one platform; more are leftovers of other networks.
const LEASES_MAX: usize = 4;

/// Settings of a discovery.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// Configured endpoint; no other is tried.
    pub setting: Option<Endpoint>,
    /// Value of [`ENDPOINT_VARIABLE`]; no other is tried.
    pub named: Option<String>,
    /// Value of [`VARIABLE`].
    pub environment: Option<String>,
    /// Cache file for the address from a lease or DHCP; rewritten when that changes.
    pub memory: Option<PathBuf>,
    /// An endpoint that another client polls already; it is skipped, so that the rate limit per VM holds.
    pub besides: Option<Endpoint>,
    /// Options of the resulting client.
    pub options: Options,
    #[cfg(target_os = "linux")]
    dhcp: backoff::Backoff,
}

impl Discovery {
    /// Uses this process's environment, and no cache file.
    pub fn new(setting: Option<Endpoint>, options: Options) -> Self {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        Discovery {
            setting,
            named: variable(ENDPOINT_VARIABLE),
            environment: variable(VARIABLE),
            memory: None,
            besides: None,
            options,
            #[cfg(target_os = "linux")]
            dhcp: backoff::Backoff::new(),
        }
    }

    /// Finds an endpoint that answers; may take minutes. To repeat a search, use the same value or its clones: they
    /// share the backoff of DHCP requests.
    pub async fn find(&self) -> Result<Found, NotFound> {
        let mut search = Search { options: self.options, clock: Clock::start(), tried: Vec::new() };
        if let Some(followed) = &self.besides {
            let (what, reason) = (followed.to_string(), "it is asked already".to_owned());
            search.tried.push(FailedAttempt::new(what, DiscoverySource::Followed, reason));
        }
        let found = match (&self.setting, &self.named) {
            (Some(endpoint), _) => search.each_port(endpoint, DiscoverySource::Setting).await,
            (None, Some(text)) => search.text(text, DiscoverySource::Named).await,
            (None, None) => self.discover(&mut search).await,
        };
        let found = found.ok_or(NotFound { tried: search.tried })?;
        if let (Some(memory), DiscoverySource::Lease(_) | DiscoverySource::Dhcp(_)) =
            (&self.memory, &found.by)
        {
            remember(memory, found.client.endpoint());
        }
        Ok(found)
    }

    async fn discover(&self, search: &mut Search) -> Option<Found> {
        if let Some(text) = &self.environment
            && let Some(found) = search.text(text, DiscoverySource::Environment).await
        {
            return Some(found);
        }
        #[cfg(windows)]
        if let Some(text) = crate::registry::published_endpoint()
            && let Some(found) = search.text(&text, DiscoverySource::Registry).await
        {
            return Some(found);
        }
        if let Some(found) = search.each_port(&Endpoint::azure_default(), DiscoverySource::Usual).await {
            return Some(found);
        }
        let remembered = self.memory.as_deref().and_then(|memory| std::fs::read_to_string(memory).ok());
        if let Some(text) = remembered
            && let Some(found) = search.text(text.trim(), DiscoverySource::Memory).await
        {
            return Some(found);
        }
        for (file, address) in leases::find_leases(Path::new("/")).into_iter().take(LEASES_MAX) {
            if let Some(found) = search.text(&address.to_string(), DiscoverySource::Lease(file)).await {
                return Some(found);
            }
        }
        #[cfg(target_os = "linux")]
        for (interface, answer) in self.ask_dhcp().await {
            let source = DiscoverySource::Dhcp(interface);
            match answer {
                Ok(address) => {
                    if let Some(found) = search.text(&address.to_string(), source).await {
                        return Some(found);
                    }
                }
                Err(error) => {
                    search.tried.push(FailedAttempt::new("DHCP".to_owned(), source, error.to_string()))
                }
            }
        }
        None
    }

    /// Sends DHCP requests, if the backoff allows it.
    #[cfg(target_os = "linux")]
    async fn ask_dhcp(&self) -> dhcp::InterfaceResults {
        match self.dhcp.try_start() {
            true => dhcp::ask().await,
            false => Vec::new(),
        }
    }
}

/// An endpoint that answers.
#[derive(Debug)]
#[non_exhaustive]
pub struct Found {
    /// A client of it, with its connection.
    pub client: Client,
    /// The source of the endpoint.
    pub by: DiscoverySource,
    /// Its first document. [`Watch::after`](crate::watch::Watch::after) continues from it.
    pub reading: Reading,
}

/// Source of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoverySource {
    /// Configured.
    Setting,
    /// From [`ENDPOINT_VARIABLE`].
    Named,
    /// From the environment.
    Environment,
    /// From the registry.
    Registry,
    /// The default address.
    Usual,
    /// Cached from DHCP.
    Memory,
    /// From a lease file.
    Lease(PathBuf),
    /// From a DHCP server on this interface.
    Dhcp(String),
    /// Already polled by another client.
    Followed,
}

impl fmt::Display for DiscoverySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiscoverySource::Setting => f.write_str("as set"),
            DiscoverySource::Named => f.write_str(ENDPOINT_VARIABLE),
            DiscoverySource::Environment => f.write_str(VARIABLE),
            DiscoverySource::Registry => f.write_str("the registry"),
            DiscoverySource::Usual => f.write_str("the usual address"),
            DiscoverySource::Memory => f.write_str("DHCP, the last time"),
            DiscoverySource::Lease(file) => write!(f, "the DHCP lease {}", file.display()),
            DiscoverySource::Dhcp(interface) => write!(f, "a DHCP answer on {interface}"),
            DiscoverySource::Followed => f.write_str("as found before"),
        }
    }
}

/// No endpoint answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct NotFound {
    tried: Vec<FailedAttempt>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FailedAttempt {
    what: String,
    source: DiscoverySource,
    reason: String,
    /// Whether the endpoint answered that it does not know the caller.
    is_unknown_caller: bool,
}

impl FailedAttempt {
    fn new(what: String, source: DiscoverySource, reason: String) -> Self {
        Self { what, source, reason, is_unknown_caller: false }
    }
}

/// The cure for a 403, which says only that the caller is not known.
const UNKNOWN_CALLER: &str = "\nthe service does not know the address that this request comes from; an operator adds it with \
                              'notbefore vm add NAME --address ADDRESS', or with the VM's addresses in the fleet file";

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_named =
            |tried: &FailedAttempt| matches!(tried.source, DiscoverySource::Setting | DiscoverySource::Named);
        let was_named = self.tried.iter().all(is_named) && !self.tried.is_empty();
        let has_refused = self.tried.iter().any(|tried| tried.is_unknown_caller);
        f.write_str(match was_named {
            true if has_refused => "the endpoint that was named refuses this VM:",
            true => "the endpoint that was named does not answer:",
            false => "no endpoint of scheduled events answers; name one, or see why not:",
        })?;
        self.tried.iter().try_for_each(|FailedAttempt { what, source, reason, .. }| {
            write!(f, "\n  {what} ({source}): {reason}")
        })?;
        match has_refused {
            true => f.write_str(UNKNOWN_CALLER),
            false => Ok(()),
        }
    }
}

/// A search in progress, with the failed candidates.
struct Search {
    options: Options,
    clock: Clock,
    tried: Vec<FailedAttempt>,
}

impl Search {
    /// Tries an endpoint given as text.
    async fn text(&mut self, text: &str, source: DiscoverySource) -> Option<Found> {
        match text.parse() {
            Ok(endpoint) => self.each_port(&endpoint, source).await,
            Err(error) => {
                let error: crate::endpoint::EndpointError = error;
                self.tried.push(FailedAttempt::new(text.to_owned(), source, error.to_string()));
                None
            }
        }
    }

    async fn each_port(&mut self, endpoint: &Endpoint, source: DiscoverySource) -> Option<Found> {
        for endpoint in endpoint.at_each_port() {
            let what = endpoint.to_string();
            if self.tried.iter().any(|tried| tried.what == what) {
                continue;
            }
            let client = Client::new(endpoint, self.options);
            match self.ask(&client).await {
                Ok(reading) => return Some(Found { client, by: source, reading }),
                Err(failure) => {
                    // The endpoint already precedes the message.
                    let reason = failure.text.strip_prefix(&format!("{what}: ")).unwrap_or(&failure.text);
                    self.tried.push(FailedAttempt {
                        what,
                        source: source.clone(),
                        reason: reason.to_owned(),
                        is_unknown_caller: failure.kind == FailureKind::Status(403),
                    });
                }
            }
        }
        None
    }

    /// Requests a document. A busy endpoint is retried, because other candidates are less likely.
    async fn ask(&self, client: &Client) -> Result<Reading, Failure> {
        let give_up_at = self.clock.now().tick.saturating_add(BUSY_TIME_MAX);
        let mut failures = 0_u32;
        loop {
            let failure = match client.get().await {
                Ok(reading) => return Ok(reading),
                Err(failure) => failure,
            };
            let due =
                self.clock.now().tick.saturating_add(backoff_after(&failure, failures, random::number()));
            if !is_busy(failure.kind) || due > give_up_at {
                return Err(failure);
            }
            if failures == 0 {
                tracing::warn!("{failure}; the endpoint is busy, retrying for {BUSY_TIME_MAX:?}");
            }
            failures = failures.saturating_add(1);
            self.clock.until(due).await;
        }
    }
}

/// Whether the endpoint answered and may have a document later.
fn is_busy(kind: FailureKind) -> bool {
    kind.may_pass() && !kind.is_silence()
}

/// Writes a file with mode 0600, regardless of umask.
pub fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    std::io::Write::write_all(&mut options.open(path)?, text.as_bytes())
}

/// Caches the endpoint. A failure only makes the next search longer.
fn remember(memory: &Path, endpoint: &Endpoint) {
    let draft = memory.with_extension("new");
    let written =
        write_private(&draft, &format!("{endpoint}\n")).and_then(|()| std::fs::rename(&draft, memory));
    if let Err(error) = written {
        tracing::warn!("cannot cache the endpoint in {}: {error}", memory.display());
    }
}
