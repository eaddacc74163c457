//! Finding the platform, and which VM this is there. It is asked for until it is found: an agent that gave up would be
//! missing when the endpoint comes back.

use std::path::PathBuf;
use std::time::Duration;

use notbefore_client::client::{Client, Options};
use notbefore_client::discovery::Discovery;
use notbefore_client::identity::{self, Identity};

use crate::config::Config;
use crate::signals::Board;

/// How long the search rests, at first; it doubles each time, up to [`REST_MAX`].
const REST: Duration = Duration::from_secs(1);
/// An eviction gives half a minute, and a search that rests longer may as well not be there.
const REST_MAX: Duration = Duration::from_secs(10);
/// A search that goes on in vain is said aloud once in so many tries.
const SAID_EVERY: u32 = 30;

/// What was found.
#[derive(Debug)]
pub struct Platform {
    /// A client of its endpoint.
    pub client: Client,
    /// This VM.
    pub me: Identity,
}

/// Finds it, however long that takes.
pub fn find(config: &Config, board: Board) -> impl Future<Output = Platform> + use<> {
    let mut discovery = Discovery::new(config.endpoint.clone(), Options { newest: config.api_version });
    discovery.memory = (!config.dry_run).then(|| config.state.join("endpoint"));
    let (setting, name_file) = (config.name.clone(), name_file(config));
    async move {
        let mut rest = REST;
        let mut tries = 0_u32;
        let client = loop {
            match discovery.find().await {
                Ok(found) => {
                    tracing::info!(endpoint = %found.client.endpoint(), by = %found.by, "the platform answers");
                    break found.client;
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
        let me = Identity::find(&client, setting.as_deref(), &identity::host_name()).await;
        tracing::info!(vm = me.name(), "this VM is known by its name");
        if let Some(file) = name_file {
            // Only for the next start, so that its hooks know the name before the platform answers.
            let _ = std::fs::write(file, me.name());
        }
        Platform { client, me }
    }
}

/// Who this VM is until the platform is found: as set, as it was the last time, or by its host name.
pub fn remembered(config: &Config) -> Identity {
    let before = || name_file(config).and_then(|file| std::fs::read_to_string(file).ok());
    match config.name.clone().or_else(before) {
        Some(name) if !name.trim().is_empty() => Identity::named(name.trim()),
        Some(_) | None => Identity::of_host(&identity::host_name()),
    }
}

fn name_file(config: &Config) -> Option<PathBuf> {
    (!config.dry_run).then(|| config.state.join("name"))
}
