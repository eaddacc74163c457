//! A node that starts: what its callers get while it waits, and what does not keep it from serving.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use notbefore_service::config::{GuestListener, ServeConfig};
use notbefore_service::running::Running;
use notbefore_service::serve::serve_in_background;
use notbefore_store::memory::MemoryStore;
use notbefore_store::{Outcome, ReadError, Refusal, Revision, Snapshot, Store, Txn, Watch, WatchError};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::harness::{self, exchange};
use crate::PATIENCE;

/// A store that can be out of reach.
#[derive(Default)]
struct Reachable {
    store: MemoryStore,
    is_reached: AtomicBool,
}

impl Reachable {
    fn reach(&self) -> Result<&MemoryStore, String> {
        self.is_reached.load(Relaxed).then_some(&self.store).ok_or_else(|| "the store is away".to_owned())
    }
}

#[async_trait::async_trait]
impl Store for Reachable {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        self.reach().map_err(ReadError::Unavailable)?.snapshot().await
    }

    async fn commit(&self, txn: Txn) -> Outcome {
        match self.reach() {
            Ok(store) => store.commit(txn).await,
            Err(why) => Outcome::Refused(Refusal::Unavailable(why)),
        }
    }

    async fn watch(&self, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        self.reach().map_err(|_| WatchError::Closed)?.watch(after).await
    }
}

fn config(data: PathBuf, store: Arc<Reachable>, at: [SocketAddr; 2]) -> ServeConfig {
    let [guest, operator] = at;
    let guest = vec![GuestListener { network: "default".to_owned(), at: guest.into() }];
    ServeConfig { guest, operator, ..harness::config(data, store, "node-0") }
}

/// Asks until the listener is there.
async fn ask(at: SocketAddr, method: &str, target: &str, body: &str) -> String {
    let listening = async {
        while tokio::net::TcpStream::connect(at).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        exchange(at, method, target, "Metadata: true\r\n", body).await
    };
    timeout(PATIENCE, listening).await.expect("no answer")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_a_node_that_waits_get_503_at_once() {
    let data = tempfile::tempdir().unwrap();
    let store = Arc::new(Reachable::default());
    let [guest, operator] = ["127.0.62.1:9254", "127.0.62.1:9255"].map(|at| at.parse().unwrap());
    let (stop, stopped) = watch::channel(false);
    let (send_running, mut running) = oneshot::channel();
    let ready = Box::new(|running: &Running| drop(send_running.send(running.clone())));
    let config = config(data.path().join("data"), Arc::clone(&store), [guest, operator]);
    let served = serve_in_background(config, stopped, ready);

    let document = "/metadata/scheduledevents?api-version=2020-07-01";
    for (method, body) in [("GET", ""), ("POST", "{\"StartRequests\":[]}")] {
        let answer = ask(guest, method, document, body).await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.contains("connection: close") && answer.contains("retry-after: 1"), "{answer}");
        assert!(
            answer.ends_with(
                "{\"error\":\"Service unavailable. The request cannot be answered now: send it again\"}"
            ),
            "{answer}"
        );
    }
    let refused = ask(operator, "POST", "/v1/vms", "{}").await;
    assert!(
        refused.starts_with("HTTP/1.1 503 ") && refused.contains("\"code\":\"unavailable\""),
        "{refused}"
    );
    assert!(ask(operator, "GET", "/readyz", "").await.starts_with("HTTP/1.1 503 "));
    assert!(ask(operator, "GET", "/healthz", "").await.starts_with("HTTP/1.1 200 "));
    assert!(running.try_recv().is_err(), "it waits");

    store.is_reached.store(true, Relaxed);
    timeout(PATIENCE, running).await.expect("the node is not ready").unwrap();
    assert!(ask(guest, "GET", document, "").await.starts_with("HTTP/1.1 403 "), "the caller is no VM");
    assert!(ask(operator, "GET", "/readyz", "").await.starts_with("HTTP/1.1 200 "));
    let page = ask(operator, "GET", "/metrics", "").await;
    let heartbeats =
        page.lines().find_map(|line| line.strip_prefix("notbefore_cluster_heartbeat_seconds_count "));
    assert!(heartbeats.is_some_and(|count| count != "0"), "{page}");
    stop.send(true).unwrap();
    timeout(PATIENCE, served).await.expect("the node goes on").unwrap().unwrap();
}
