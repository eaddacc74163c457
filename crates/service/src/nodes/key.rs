//! The key that signs messages between nodes. The first leader creates it; the others read it from the store.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use notbefore_store::Store;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::cluster::Standing;
use crate::lock;
use crate::stored_key::{KeyKind, StoredKey};

/// Minimum interval between reads of the store: forged messages must not cause one each.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of attempts to create the key.
const CREATE_RETRY: Duration = Duration::from_secs(1);

pub struct NodeKey {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    current: ArcSwapOption<StoredKey>,
    /// By the time since boot.
    read_at: Mutex<Option<Duration>>,
}

impl NodeKey {
    /// `store` adds the fence, so that only the leader creates the key.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, current: ArcSwapOption::empty(), read_at: Mutex::new(None) }
    }

    /// The key in memory, or in the store.
    pub async fn get(&self) -> Option<Arc<StoredKey>> {
        match self.current.load_full() {
            Some(key) => Some(key),
            None => self.read_again().await,
        }
    }

    /// Reads the key again, because a signature did not match. None if it was read just now, or there is none.
    pub async fn read_again(&self) -> Option<Arc<StoredKey>> {
        {
            let (mut read_at, now) = (lock(&self.read_at), self.clock.since_boot());
            if read_at.is_some_and(|read_at| now.saturating_sub(read_at) < READ_INTERVAL) {
                return None;
            }
            *read_at = Some(now);
        }
        match StoredKey::load(&*self.store, KeyKind::Node).await {
            Ok(Some(key)) => {
                let key = Arc::new(key);
                self.current.store(Some(Arc::clone(&key)));
                Some(key)
            }
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(%error, "cannot read the key of messages between nodes");
                None
            }
        }
    }

    /// Creates the key whenever the node leads and there is none. Runs until the service stops.
    pub async fn create_when_leading(&self, mut standing: watch::Receiver<Standing>) {
        while standing.wait_for(|standing| standing.role.leads()).await.is_ok() {
            match StoredKey::load_or_create(&*self.store, KeyKind::Node).await {
                Ok(key) => {
                    self.current.store(Some(Arc::new(key)));
                    if standing.wait_for(|standing| !standing.role.leads()).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot create the key of messages between nodes: retrying");
                    tokio::time::sleep(CREATE_RETRY).await;
                }
            }
        }
    }
}
