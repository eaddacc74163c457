//! The store for everything but the engine's runtime: adds the leader's fence to every transaction.
//!
//! The recorder, the refused requests, the janitor, sessions, keys of the service and the first token write beside the engine. In a cluster they may
//! write only while their node leads, and a transaction that arrives late must not change what the next leader wrote.
//! So nothing but the runtime holds the store itself. A service with an embedded store has one node: it leads from start
//! to end, and its transactions compare nothing more.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use async_trait::async_trait;
use notbefore_engine::Role;
use notbefore_engine::cluster::{FenceNews, is_leader_key};
use notbefore_store::{
    Outcome, ReadError, Refusal, Revision, Snapshot, Store, Txn, Watch, WatchError, WatchLog,
};
use tokio::sync::{mpsc, watch};

/// A store that adds the fence; see the module docs.
pub struct FencedStore {
    store: Arc<dyn Store>,
    role: watch::Receiver<Role>,
    news: mpsc::UnboundedSender<FenceNews>,
    /// The commits that the node has watched; none for an embedded store, whose watches cost nothing.
    watched: Option<WatchLog>,
    /// The newest fence with which a transaction has an unknown outcome. It may land at any time until the leader's record
    /// is rewritten, so nothing more is written with that fence. 0 if there is none.
    unconfirmed: AtomicU64,
}

impl FencedStore {
    /// `role` is the node's role; `news` tells the leadership machine.
    pub fn new(
        store: Arc<dyn Store>,
        role: watch::Receiver<Role>,
        news: mpsc::UnboundedSender<FenceNews>,
    ) -> Self {
        Self { store, role, news, watched: None, unconfirmed: AtomicU64::new(0) }
    }

    /// Lets all readers share the node's own watch: a shared store need not serve one to each console.
    pub fn with_watch_log(self, watched: WatchLog) -> Self {
        Self { watched: Some(watched), ..self }
    }

    /// For the only node of a store.
    pub fn alone(store: Arc<dyn Store>) -> Self {
        // The senders are dropped: the role never changes, and without a fence there is no news.
        Self::new(store, watch::channel(Role::Alone).1, mpsc::unbounded_channel().0)
    }

    fn report(&self, fence: Option<Revision>, outcome: &Outcome) {
        let Some(news) = FenceNews::of(fence, outcome) else { return };
        // Fails when the service has stopped.
        let _ = self.news.send(news);
    }
}

#[async_trait]
impl Store for FencedStore {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        self.store.snapshot().await
    }

    async fn commit(&self, txn: Txn) -> Outcome {
        let role = *self.role.borrow();
        let refused = |why: &str| Outcome::Refused(Refusal::Unavailable(why.to_owned()));
        let is_unconfirmed = role.fence().is_some_and(|fence| fence.0 <= self.unconfirmed.load(Acquire));
        if !role.may_write() || is_unconfirmed {
            return refused("this node does not lead the cluster");
        }
        let outcome = self.store.commit(role.fenced(txn)).await;
        if let (Some(fence), Outcome::Unknown(_)) = (role.fence(), &outcome) {
            self.unconfirmed.fetch_max(fence.0, AcqRel);
        }
        self.report(role.fence(), &outcome);
        match outcome {
            // Nothing was written. Callers know only their own keys, and would take it for a conflict on them.
            Outcome::Conflict(found) if found.iter().any(|one| is_leader_key(&one.key)) => {
                refused("the lead was confirmed or lost meanwhile")
            }
            outcome @ (Outcome::Committed(_)
            | Outcome::Conflict(_)
            | Outcome::Refused(_)
            | Outcome::Unknown(_)) => outcome,
        }
    }

    async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        match &self.watched {
            Some(watched) => watched.watch(after),
            None => self.store.watch(after).await,
        }
    }

    fn damaged(&self) -> u64 {
        self.store.damaged()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use bytes::Bytes;
    use notbefore_engine::cluster::LEADER;
    use notbefore_store::memory::MemoryStore;

    use super::*;

    fn put(key: &str) -> Txn {
        Txn { put: vec![(key.into(), Bytes::from_static(b"1"))], ..Txn::default() }
    }

    async fn committed(store: &dyn Store, txn: Txn) -> Revision {
        match store.commit(txn).await {
            Outcome::Committed(revision) => revision,
            other @ (Outcome::Conflict(_) | Outcome::Refused(_) | Outcome::Unknown(_)) => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn only_the_leader_of_the_record_writes() {
        let raw = Arc::new(MemoryStore::new());
        let fence = committed(&*raw, put(LEADER)).await;
        let (role, roles) = watch::channel(Role::Follow);
        let (news, mut reported) = mpsc::unbounded_channel();
        let store = FencedStore::new(raw.clone(), roles, news);
        for role_without_writes in [Role::Follow, Role::Confirm] {
            role.send_replace(role_without_writes);
            assert!(matches!(store.commit(put("a")).await, Outcome::Refused(Refusal::Unavailable(_))));
        }
        role.send_replace(Role::Lead(fence));
        committed(&store, put("a")).await;
        committed(&*raw, put(LEADER)).await;
        let outcome = store.commit(put("a")).await;
        assert!(
            matches!(outcome, Outcome::Refused(Refusal::Unavailable(_))),
            "another node leads: {outcome:?}"
        );
        assert_eq!(reported.try_recv(), Ok(FenceNews::Lost(fence)));
        assert!(reported.try_recv().is_err());
    }

    /// A store whose next commit has an unknown outcome.
    struct Lossy(MemoryStore, std::sync::atomic::AtomicBool);

    #[async_trait]
    impl Store for Lossy {
        async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
            self.0.snapshot().await
        }

        async fn commit(&self, txn: Txn) -> Outcome {
            match self.1.swap(false, AcqRel) {
                true => Outcome::Unknown("lost".to_owned()),
                false => self.0.commit(txn).await,
            }
        }

        async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
            self.0.watch(after).await
        }
    }

    #[tokio::test]
    async fn nothing_is_written_after_an_unknown_outcome_until_the_lead_is_confirmed() {
        let raw = Arc::new(Lossy(MemoryStore::new(), false.into()));
        let fence = committed(&*raw, put(LEADER)).await;
        let (role, roles) = watch::channel(Role::Lead(fence));
        let (news, mut reported) = mpsc::unbounded_channel();
        let store = FencedStore::new(raw.clone(), roles, news);
        raw.1.store(true, std::sync::atomic::Ordering::Release);
        assert!(matches!(store.commit(put("a")).await, Outcome::Unknown(_)));
        assert_eq!(reported.try_recv(), Ok(FenceNews::Unknown(fence)));
        assert!(matches!(store.commit(put("a")).await, Outcome::Refused(Refusal::Unavailable(_))));
        role.send_replace(Role::Lead(committed(&*raw, put(LEADER)).await));
        committed(&store, put("a")).await;
    }

    #[tokio::test]
    async fn single_node_compares_nothing_and_writes_no_record_of_a_leader() {
        let raw = Arc::new(MemoryStore::new());
        let store = FencedStore::alone(raw.clone());
        committed(&store, put("a")).await;
        committed(&*raw, put(LEADER)).await;
        committed(&store, put("a")).await;
    }

    /// Every file of the service that writes to a store. A new one must get the fenced store. Only the runtime, the
    /// node's heartbeats (`cluster.rs`), and what runs before any node (an import, `token init`) use the store itself.
    #[test]
    fn writers_are_known() {
        const WRITERS: [&str; 11] = [
            "cluster.rs",
            "delivery/recorder.rs",
            "fenced_store.rs",
            "janitor.rs",
            "leveled_store.rs",
            "refusals.rs",
            "runtime.rs",
            "sessions.rs",
            "stored_key.rs",
            "tokens.rs",
            "transfer/import.rs",
        ];
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let (mut folders, mut writers) = (vec![src.clone()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if !path.ends_with("tests.rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let code = text.split("#[cfg(test)]").next().unwrap();
                    let name = path.strip_prefix(&src).unwrap().to_str().unwrap().to_owned();
                    let writes = code.contains("store.commit(") || code.contains("store.commit_all(");
                    writers.extend(Some(name.clone()).filter(|_| writes));
                    if code.contains("raw_store") {
                        assert_eq!(name, "serve.rs", "only the start of the service holds the store itself");
                        let uses = code.matches("raw_store").count();
                        assert_eq!(uses, 4, "it is opened, fenced twice, and given to the engine");
                    }
                }
            }
        }
        writers.sort();
        assert_eq!(writers, WRITERS);
    }
}
