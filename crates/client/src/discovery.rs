//! Finding the endpoint.
//!
//! Most VMs have it at 169.254.169.254; those outside of a virtual network are told by DHCP, in option 245. In this order:
//!
//! 1. what the VM's owner has set: if that does not answer, nothing else is tried, because somebody meant it;
//! 2. the environment variable `SCHEDULEDEVENTSIP`, and on Windows the registry, where the platform's own sample
//!    publishes what it found;
//! 3. what answered the last time, if the caller keeps a file for that;
//! 4. 169.254.169.254;
//! 5. option 245 in the leases of dhclient, systemd-networkd and NetworkManager;
//! 6. a DHCP DISCOVER of our own, on Linux.
//!
//! Where no port is named, 80 is tried and then 8080. Each is tried with a real request, and what answers with a document
//! is it. The error says of every one why it is not.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::client::{Client, Options, Reading};
use crate::endpoint::Endpoint;
use crate::failure::{Failure, FailureKind};

#[cfg(target_os = "linux")]
mod dhcp;
mod lease;
mod leases;
#[cfg(target_os = "linux")]
mod packet;
#[cfg(windows)]
mod registry;

/// The variable that the platform's own sample sets.
pub const VARIABLE: &str = "SCHEDULEDEVENTSIP";
/// How often an endpoint is asked that says it is busy, or being updated, or broken.
const TRIES: u32 = 3;
/// How long to rest in between.
const REST: Duration = Duration::from_secs(1);
/// How many addresses of leases are tried. A VM has one platform; more are left over from other networks.
const LEASES_MAX: usize = 4;

/// What there is to go by.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// What the VM's owner has set.
    pub setting: Option<Endpoint>,
    /// The value of [`VARIABLE`].
    pub environment: Option<String>,
    /// The file that holds what answered the last time, and is written when something else does.
    pub memory: Option<PathBuf>,
    /// How the client that is found behaves.
    pub options: Options,
}

impl Discovery {
    /// With this process's environment, and without a memory.
    pub fn new(setting: Option<Endpoint>, options: Options) -> Self {
        let environment = std::env::var(VARIABLE).ok().filter(|value| !value.trim().is_empty());
        Discovery { setting, environment, memory: None, options }
    }

    /// Finds an endpoint that answers. It may take minutes where none does.
    pub async fn find(&self) -> Result<Found, NotFound> {
        let mut search = Search { options: self.options, tried: Vec::new() };
        let found = match &self.setting {
            Some(endpoint) => search.each_port(endpoint, Way::Setting).await,
            None => self.find_by_itself(&mut search).await,
        };
        let found = found.ok_or(NotFound { tried: search.tried })?;
        if let (Some(memory), true) = (&self.memory, self.setting.is_none() && found.by != Way::Memory) {
            remember(memory, found.client.endpoint());
        }
        Ok(found)
    }

    async fn find_by_itself(&self, search: &mut Search) -> Option<Found> {
        if let Some(text) = &self.environment
            && let Some(found) = search.text(text, Way::Environment).await
        {
            return Some(found);
        }
        #[cfg(windows)]
        if let Some(text) = registry::published()
            && let Some(found) = search.text(&text, Way::Registry).await
        {
            return Some(found);
        }
        let remembered = self.memory.as_deref().and_then(|memory| std::fs::read_to_string(memory).ok());
        if let Some(text) = remembered
            && let Some(found) = search.text(text.trim(), Way::Memory).await
        {
            return Some(found);
        }
        if let Some(found) = search.each_port(&Endpoint::usual(), Way::Usual).await {
            return Some(found);
        }
        for (file, address) in leases::found_below(Path::new("/")).into_iter().take(LEASES_MAX) {
            if let Some(found) = search.text(&address.to_string(), Way::Lease(file)).await {
                return Some(found);
            }
        }
        #[cfg(target_os = "linux")]
        for (interface, answer) in dhcp::ask().await {
            let way = Way::Dhcp(interface);
            match answer {
                Ok(address) => {
                    if let Some(found) = search.text(&address.to_string(), way).await {
                        return Some(found);
                    }
                }
                Err(reason) => search.tried.push(Tried { what: "DHCP".to_owned(), way, reason }),
            }
        }
        None
    }
}

/// An endpoint that answers.
#[derive(Debug)]
pub struct Found {
    /// A client of it, with its connection.
    pub client: Client,
    /// How it was found.
    pub by: Way,
    /// What it answered. [`Watch::after`](crate::watch::Watch::after) goes on from there.
    pub reading: Reading,
}

/// How an endpoint was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Its owner has set it.
    Setting,
    /// The environment says so.
    Environment,
    /// The registry says so.
    Registry,
    /// It answered the last time.
    Memory,
    /// It is the usual one.
    Usual,
    /// A DHCP client's lease says so.
    Lease(PathBuf),
    /// A DHCP server said so, on this interface.
    Dhcp(String),
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Setting => f.write_str("as set"),
            Way::Environment => f.write_str(VARIABLE),
            Way::Registry => f.write_str("the registry"),
            Way::Memory => f.write_str("as the last time"),
            Way::Usual => f.write_str("the usual address"),
            Way::Lease(file) => write!(f, "the DHCP lease {}", file.display()),
            Way::Dhcp(interface) => write!(f, "a DHCP answer on {interface}"),
        }
    }
}

/// No endpoint answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct NotFound {
    tried: Vec<Tried>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Tried {
    what: String,
    way: Way,
    reason: String,
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let was_named = self.tried.iter().all(|tried| tried.way == Way::Setting) && !self.tried.is_empty();
        f.write_str(match was_named {
            true => "the endpoint that was named does not answer:",
            false => "no endpoint of scheduled events answers; name one, or see why not:",
        })?;
        self.tried
            .iter()
            .try_for_each(|Tried { what, way, reason }| write!(f, "\n  {what} ({way}): {reason}"))
    }
}

/// A search under way: what was tried in vain.
struct Search {
    options: Options,
    tried: Vec<Tried>,
}

impl Search {
    /// Tries an endpoint as somebody has written it.
    async fn text(&mut self, text: &str, way: Way) -> Option<Found> {
        match text.parse() {
            Ok(endpoint) => self.each_port(&endpoint, way).await,
            Err(error) => {
                let error: crate::endpoint::EndpointError = error;
                self.tried.push(Tried { what: text.to_owned(), way, reason: error.to_string() });
                None
            }
        }
    }

    async fn each_port(&mut self, endpoint: &Endpoint, way: Way) -> Option<Found> {
        for endpoint in endpoint.at_each_port() {
            let what = endpoint.to_string();
            if self.tried.iter().any(|tried| tried.what == what) {
                continue;
            }
            let client = Client::new(endpoint, self.options);
            match ask(&client).await {
                Ok(reading) => return Some(Found { client, by: way, reading }),
                Err(failure) => {
                    // The endpoint stands before it already.
                    let reason = failure.text.strip_prefix(&format!("{what}: ")).unwrap_or(&failure.text);
                    self.tried.push(Tried { what, way: way.clone(), reason: reason.to_owned() });
                }
            }
        }
        None
    }
}

/// Asks for a document. Somebody who is there and busy is asked again: what else would be tried is less likely.
async fn ask(client: &Client) -> Result<Reading, Failure> {
    let mut tries = 1;
    loop {
        match client.get().await {
            Ok(reading) => return Ok(reading),
            Err(failure) => match failure.kind {
                FailureKind::Status(_) if failure.kind.may_pass() && tries < TRIES => tries += 1,
                FailureKind::Unreachable
                | FailureKind::TimedOut
                | FailureKind::Broken
                | FailureKind::Status(_)
                | FailureKind::Unreadable => return Err(failure),
            },
        }
        tokio::time::sleep(REST).await;
    }
}

/// Writes down what answered. Without it the next search is longer, and that is all.
fn remember(memory: &Path, endpoint: &Endpoint) {
    let draft = memory.with_extension("new");
    let written =
        std::fs::write(&draft, format!("{endpoint}\n")).and_then(|()| std::fs::rename(&draft, memory));
    if let Err(error) = written {
        tracing::warn!("cannot remember the endpoint in {}: {error}", memory.display());
    }
}
