//! Finding the platform, and which VM this is there. It is asked for until it is found: an agent that gave up would be
//! missing when the endpoint comes back. A name that the instance metadata cannot give at first is asked for until it
//! does; meanwhile the VM goes by the name that it had, or by its host name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use notbefore_client::client::{Client, Options, Reading};
use notbefore_client::discovery::{Discovery, Found};
use notbefore_client::identity::{self, Identity};

use crate::config::Config;
use crate::journal;
use crate::signals::Board;
use crate::vm_id::VmId;

/// How long the search rests, at first; it doubles each time, up to [`REST_MAX`].
const REST: Duration = Duration::from_secs(1);
/// An eviction gives half a minute, and a search that rests longer may as well not be there.
const REST_MAX: Duration = Duration::from_secs(10);
/// How often the metadata is asked for a name before another has to do for a while.
const NAME_TRIES: u32 = 5;
/// A search that goes on in vain is said aloud once in so many tries.
const SAID_EVERY: u32 = 30;

/// What was found.
#[derive(Debug)]
pub struct Platform {
    /// A client of its endpoint.
    pub client: Client,
    /// The document that it was found by.
    pub reading: Reading,
    /// This VM.
    pub me: Identity,
    /// Whether that is its name, or only what it goes by until the platform can say.
    pub sure: bool,
}

/// Finds it, however long that takes.
pub fn find(config: &Config, board: Board) -> impl Future<Output = Platform> + use<> {
    let mut discovery = Discovery::new(config.endpoint.clone(), Options { newest: config.api_version });
    discovery.memory = memory(config, journal::ENDPOINT_FILE);
    let (setting, name_file) = (config.name.clone(), name_file(config));
    async move {
        let mut rest = REST;
        let mut tries = 0_u32;
        let (client, reading) = loop {
            match discovery.find().await {
                Ok(Found { client, by, reading }) => {
                    tracing::info!(endpoint = %client.endpoint(), %by, "the platform answers");
                    break (client, reading);
                }
                Err(not_found) => {
                    if tries.is_multiple_of(SAID_EVERY) {
                        tracing::warn!("{not_found}; it is looked for until it is there");
                    }
                    tries = tries.saturating_add(1);
                    board.troubled("not_found", not_found.to_string());
                }
            }
            tokio::time::sleep(rest).await;
            rest = (rest * 2).min(REST_MAX);
        };
        let (me, sure) = match setting {
            Some(set) => (Identity::find(&client, Some(&set), "").await, true),
            None => name(&client, name_file).await,
        };
        tracing::info!(vm = me.name(), sure, "this VM goes by this name");
        Platform { client, reading, me, sure }
    }
}

/// The VM's name, and whether that is sure.
async fn name(client: &Client, file: Option<PathBuf>) -> (Identity, bool) {
    let mut tries = 1;
    let failure = loop {
        match Identity::told(client).await {
            Ok(me) => {
                remember(file.as_deref(), &me);
                return (me, true);
            }
            Err(_) if tries < NAME_TRIES => tries += 1,
            Err(failure) => break failure,
        }
        tokio::time::sleep(REST).await;
    };
    let me = last_name(file.as_deref()).unwrap_or_else(|| Identity::of_host(&identity::host_name()));
    tracing::warn!("the instance metadata has no name for this VM, so it goes by {}: {failure}", me.name());
    (me, false)
}

/// The VM's name, once the platform can say.
pub async fn name_at_last(client: Client, file: Option<PathBuf>) -> Identity {
    let me = Identity::told_at_last(&client).await;
    remember(file.as_deref(), &me);
    me
}

/// Only for the next start, so that its hooks know the name before the platform answers.
fn remember(file: Option<&Path>, me: &Identity) {
    if let Some(file) = file {
        let _ = std::fs::write(file, me.name());
    }
}

/// The name that the platform last gave.
fn last_name(file: Option<&Path>) -> Option<Identity> {
    let text = std::fs::read_to_string(file?).ok()?;
    Some(text.trim()).filter(|name| !name.is_empty()).map(Identity::named)
}

/// Who this VM is until the platform is found: as set, as it was the last time, or by its host name.
pub fn remembered(config: &Config) -> Identity {
    let set = config.name.as_deref().map(Identity::set);
    let before = || last_name(name_file(config).as_deref());
    set.or_else(before).unwrap_or_else(|| Identity::of_host(&identity::host_name()))
}

/// Where the name is kept for the next start.
pub fn name_file(config: &Config) -> Option<PathBuf> {
    memory(config, journal::NAME_FILE)
}

/// A file in the state directory. A dry run leaves no trace; and on a disk that could not be written to what is there may
/// still be another VM's.
fn memory(config: &Config, file: &str) -> Option<PathBuf> {
    (!config.dry_run && journal::is_ours(&config.state, &VmId::here())).then(|| config.state.join(file))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// An endpoint whose metadata is broken for so many requests, and then has a name.
    async fn metadata_broken_for(requests: usize) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        tokio::spawn(async move {
            for request in 0.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = [0; 4_096];
                let _ = stream.read(&mut head).await.unwrap();
                let (status, body) = match request < requests {
                    true if request % 2 == 0 => ("500 Oops", ""),
                    true => ("404 Not Yet", ""),
                    false => ("200 OK", "web_3"),
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

    #[tokio::test(start_paused = true)]
    async fn a_name_that_cannot_be_had_at_first_is_asked_for_until_it_can() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("name");
        std::fs::write(&file, "web_2\n").unwrap();
        let client = metadata_broken_for(7).await;
        let (me, sure) = name(&client, Some(file.clone())).await;
        assert_eq!((me.name(), sure), ("web_2", false), "it goes by the name that it had");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "web_2\n");
        let me = name_at_last(client, Some(file.clone())).await;
        assert_eq!(me.name(), "web_3");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "web_3");
    }
}
