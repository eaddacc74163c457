//! Finding the endpoint.
//!
//! Most VMs have it at 169.254.169.254; those outside of a virtual network are told by DHCP, in option 245. In this order:
//!
//! 1. what the VM's owner has set: if that does not answer, nothing else is tried, because somebody meant it;
//! 2. the environment variable `SCHEDULEDEVENTSIP`, and on Windows the registry, where the platform's own sample
//!    publishes what it found;
//! 3. 169.254.169.254;
//! 4. what DHCP said the last time, if the caller keeps a file for that;
//! 5. option 245 in the leases of dhclient, systemd-networkd and NetworkManager;
//! 6. a DHCP DISCOVER of our own, on Linux. Whoever is first on the wire may answer that: so it comes last, what it says
//!    never goes before the usual address, and it is broadcast ever more rarely.
//!
//! Where no port is named, 80 is tried and then 8080. Each is tried with a real request, and what answers with a document
//! is it. Whoever answers something else for the time being (410 while it is updated, 429, 5xx, nothing in a 200) is asked
//! again for [`BUSY_TIME_MAX`], before anything less likely is tried. The error says of every one why it is not.

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

/// The variable that the platform's own sample sets.
pub const VARIABLE: &str = "SCHEDULEDEVENTSIP";
/// How long somebody is asked again who is there, and has no document: an update of a platform takes 70 seconds, as its
/// documents say.
pub const BUSY_TIME_MAX: Duration = Duration::from_secs(75);
/// How many addresses of leases are tried. A VM has one platform; more are left over from other networks.
const LEASES_MAX: usize = 4;

/// What there is to go by.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// What the VM's owner has set.
    pub setting: Option<Endpoint>,
    /// The value of [`VARIABLE`].
    pub environment: Option<String>,
    /// The file that holds what a lease or DHCP said the last time, and is written when they say something else.
    pub memory: Option<PathBuf>,
    /// An endpoint that somebody follows already, and that is left out: two clients would ask it twice as often as one may.
    pub besides: Option<Endpoint>,
    /// How the client that is found behaves.
    pub options: Options,
    #[cfg(target_os = "linux")]
    dhcp: backoff::Backoff,
}

impl Discovery {
    /// With this process's environment, and without a memory.
    pub fn new(setting: Option<Endpoint>, options: Options) -> Self {
        let environment = std::env::var(VARIABLE).ok().filter(|value| !value.trim().is_empty());
        Discovery {
            setting,
            environment,
            memory: None,
            besides: None,
            options,
            #[cfg(target_os = "linux")]
            dhcp: backoff::Backoff::new(),
        }
    }

    /// Finds an endpoint that answers. It may take minutes where none does. Whoever calls it again and again does so with one
    /// of these, or with clones of it, which know when DHCP was asked last.
    pub async fn find(&self) -> Result<Found, NotFound> {
        let mut search = Search { options: self.options, clock: Clock::start(), tried: Vec::new() };
        if let Some(followed) = &self.besides {
            let (what, reason) = (followed.to_string(), "it is asked already".to_owned());
            search.tried.push(FailedAttempt { what, source: DiscoverySource::Followed, reason });
        }
        let found = match &self.setting {
            Some(endpoint) => search.each_port(endpoint, DiscoverySource::Setting).await,
            None => self.discover(&mut search).await,
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
                Err(error) => search.tried.push(FailedAttempt {
                    what: "DHCP".to_owned(),
                    source,
                    reason: error.to_string(),
                }),
            }
        }
        None
    }

    /// Asks DHCP, unless that was done a moment ago.
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
    /// How it was found.
    pub by: DiscoverySource,
    /// What it answered. [`Watch::after`](crate::watch::Watch::after) goes on from there.
    pub reading: Reading,
}

/// How an endpoint was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoverySource {
    /// Its owner has set it.
    Setting,
    /// The environment says so.
    Environment,
    /// The registry says so.
    Registry,
    /// It is the usual one.
    Usual,
    /// DHCP said so the last time.
    Memory,
    /// A DHCP client's lease says so.
    Lease(PathBuf),
    /// A DHCP server said so, on this interface.
    Dhcp(String),
    /// Somebody follows it already.
    Followed,
}

impl fmt::Display for DiscoverySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiscoverySource::Setting => f.write_str("as set"),
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
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let was_named =
            self.tried.iter().all(|tried| tried.source == DiscoverySource::Setting) && !self.tried.is_empty();
        f.write_str(match was_named {
            true => "the endpoint that was named does not answer:",
            false => "no endpoint of scheduled events answers; name one, or see why not:",
        })?;
        self.tried.iter().try_for_each(|FailedAttempt { what, source, reason }| {
            write!(f, "\n  {what} ({source}): {reason}")
        })
    }
}

/// A running search: what was tried in vain.
struct Search {
    options: Options,
    clock: Clock,
    tried: Vec<FailedAttempt>,
}

impl Search {
    /// Tries an endpoint as somebody has written it.
    async fn text(&mut self, text: &str, source: DiscoverySource) -> Option<Found> {
        match text.parse() {
            Ok(endpoint) => self.each_port(&endpoint, source).await,
            Err(error) => {
                let error: crate::endpoint::EndpointError = error;
                self.tried.push(FailedAttempt { what: text.to_owned(), source, reason: error.to_string() });
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
                    // The endpoint stands before it already.
                    let reason = failure.text.strip_prefix(&format!("{what}: ")).unwrap_or(&failure.text);
                    self.tried.push(FailedAttempt {
                        what,
                        source: source.clone(),
                        reason: reason.to_owned(),
                    });
                }
            }
        }
        None
    }

    /// Asks for a document. Somebody who is there and busy is asked again: what else would be tried is less likely.
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
                tracing::warn!("{failure}; somebody is there, and is asked again for {BUSY_TIME_MAX:?}");
            }
            failures = failures.saturating_add(1);
            self.clock.until(due).await;
        }
    }
}

/// Whether somebody has answered who may have a document in a while.
fn is_busy(kind: FailureKind) -> bool {
    kind.may_pass() && !kind.is_silence()
}

/// Writes a file that only its owner can read and write, whatever the umask is.
pub fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    std::io::Write::write_all(&mut options.open(path)?, text.as_bytes())
}

/// Writes down what answered. Without it the next search is longer, and that is all.
fn remember(memory: &Path, endpoint: &Endpoint) {
    let draft = memory.with_extension("new");
    let written =
        write_private(&draft, &format!("{endpoint}\n")).and_then(|()| std::fs::rename(&draft, memory));
    if let Err(error) = written {
        tracing::warn!("cannot remember the endpoint in {}: {error}", memory.display());
    }
}
