//! Discovery of the platform's endpoint and of this VM's name. Both retry until they succeed, so that the agent works
//! as soon as the endpoint does.
//!
//! The name is requested in parallel. It gets a short time before the first document is read; after that nothing
//! waits for it, because a Preempt event gives half a minute. Until the metadata answers, the agent uses the last
//! known name, or the host name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use notbefore_client::client::{Client, Options, Reading};
use notbefore_client::discovery::{Discovery, Found};
use notbefore_client::identity::{self, Identity, Name, NameSource};

use crate::config::Config;
use crate::journal;
use crate::signals::StatusBoard;

/// First delay between searches; doubles each time up to [`REST_MAX`].
const REST: Duration = Duration::from_secs(1);
/// Longest delay between searches; a Preempt event gives only 30 seconds.
const REST_MAX: Duration = Duration::from_secs(10);
/// A failing search is logged once in this many attempts.
const LOGGED_EVERY: u32 = 30;

/// Result of the discovery.
pub struct Platform {
    pub client: Client,
    /// The document that proved the endpoint.
    pub reading: Reading,
    /// This VM's name there.
    pub name: Name,
}

/// Discovery settings. Shared by all searches, so that together they respect the rate limit of DHCP requests.
pub fn discovery(config: &Config) -> Discovery {
    let mut discovery = Discovery::new(config.endpoint.clone(), Options::from(config.api_version));
    discovery.memory = memory(config, journal::ENDPOINT_FILE);
    discovery
}

/// Searches until the endpoint is found, with exponential backoff.
pub fn find(
    discovery: Discovery,
    config: &Config,
    board: StatusBoard,
) -> impl Future<Output = Platform> + use<> {
    let asking = NameLookup::new(config);
    async move {
        let mut rest = REST;
        let mut tries = 0_u32;
        let (client, reading) = loop {
            match discovery.find().await {
                Ok(Found { client, by, reading, .. }) => {
                    tracing::info!(endpoint = %client.endpoint(), %by, "the platform answers");
                    break (client, reading);
                }
                Err(not_found) => {
                    if tries.is_multiple_of(LOGGED_EVERY) {
                        tracing::warn!("{not_found}; the agent keeps searching");
                    }
                    tries = tries.saturating_add(1);
                    board.poll_failed("not_found", not_found.to_string());
                }
            }
            tokio::time::sleep(rest).await;
            rest = (rest * 2).min(REST_MAX);
        };
        let name = asking.begin(client.clone()).await;
        Platform { client, reading, name }
    }
}

/// Sources of the name other than the metadata.
struct NameLookup {
    otherwise: Identity,
    file: Option<PathBuf>,
}

impl NameLookup {
    fn new(config: &Config) -> NameLookup {
        NameLookup { otherwise: initial_identity(config), file: memory(config, journal::NAME_FILE) }
    }

    /// Starts the request; waits a short time for the answer.
    async fn begin(self, client: Client) -> Name {
        Name::start_lookup(self.ask(client)).await
    }

    /// Requests the name until there is an answer.
    async fn ask(self, client: Client) -> Identity {
        let mut is_said = false;
        let me = Identity::from_metadata_with(&client, |failure| {
            if std::mem::replace(&mut is_said, true) {
                return;
            }
            let approves = match self.otherwise.source() {
                NameSource::Setting => "which is configured",
                NameSource::Platform | NameSource::HostName => {
                    "and approves nothing until the metadata answers"
                }
            };
            tracing::warn!(
                "the instance metadata does not report this VM's name; the agent uses {}, {approves}: {failure}",
                self.otherwise.name()
            );
        });
        let me = me.await;
        if let Some(file) = &self.file {
            // Cached for the next start, so that its hooks know the name before the platform answers.
            let _ = notbefore_client::discovery::write_private(file, me.name());
        }
        self.otherwise.corrected_by(me)
    }
}

/// This VM's name until the platform confirms it: as configured, as cached, or the host name.
pub fn initial_identity(config: &Config) -> Identity {
    let before = || remembered_name(&memory(config, journal::NAME_FILE)?);
    let set = config.name.as_deref().map(Identity::set);
    set.or_else(before).unwrap_or_else(|| Identity::of_host(&identity::host_name()))
}

/// The cached name.
fn remembered_name(file: &Path) -> Option<Identity> {
    let text = std::fs::read_to_string(file).ok()?;
    Some(text.trim()).filter(|name| !name.is_empty()).map(Identity::named)
}

/// Path of a cache file. None in a dry run, and on a disk that could not be written, whose files may be another VM's.
fn memory(config: &Config, file: &str) -> Option<PathBuf> {
    if config.dry_run { None } else { journal::memory(&config.state, file) }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// An endpoint whose metadata fails for `broken` requests and then answers `then`; None never answers.
    async fn metadata(broken: usize, then: Option<(&'static str, &'static str)>) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        tokio::spawn(async move {
            let mut kept = Vec::new();
            for request in 0.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = [0; 4_096];
                let _ = stream.read(&mut head).await.unwrap();
                let answer = match request < broken {
                    true if request % 2 == 0 => Some(("500 Oops", "")),
                    true => Some(("404 Not Yet", "")),
                    false => then,
                };
                let Some((status, body)) = answer else {
                    kept.push(stream);
                    continue;
                };
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Client::new(endpoint, Options::default())
    }

    fn asking(set: Option<&str>, file: &Path) -> NameLookup {
        let otherwise = set.map_or(Identity::named("web_2"), Identity::set);
        NameLookup { otherwise, file: Some(file.to_owned()) }
    }

    #[tokio::test(start_paused = true)]
    async fn unavailable_name_is_retried_in_background() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("name");
        let client = metadata(7, Some(("200 OK", "web_3"))).await;
        let Name::Awaited(naming) = asking(None, &file).begin(client).await else {
            panic!("expected a pending name")
        };
        assert!(!file.exists());
        assert_eq!(naming.await, Identity::named("web_3"));
        assert_eq!(remembered_name(&file), Some(Identity::named("web_3")));
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_metadata_does_not_delay_start() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("name");
        for set in [None, Some("web_9")] {
            let client = metadata(0, None).await;
            let clock = notbefore_client::clock::Clock::start();
            let name = asking(set, &file).begin(client).await;
            assert!(matches!(name, Name::Awaited(_)) && clock.now().tick < Duration::from_secs(1));
        }
    }

    #[tokio::test]
    async fn available_name_is_known_before_first_document() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("name");
        for set in [None, Some("web_9"), Some("web000003")] {
            let client = metadata(0, Some(("200 OK", "web_3"))).await;
            let known = asking(set, &file).begin(client).await;
            assert!(matches!(known, Name::Known(me) if me == Identity::named("web_3")), "{set:?}");
            assert_eq!(remembered_name(&file), Some(Identity::named("web_3")));
        }
    }
}
