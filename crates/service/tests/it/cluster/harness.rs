//! Nodes in this process, each in a tokio runtime of its own, so that it can be killed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use jiff::SignedDuration;
use notbefore_core::{Actor, ScopeKind, VmId};
use notbefore_engine::cluster::{NODE, NodeRecord, Role};
use notbefore_engine::records::{self, Address};
use notbefore_engine::{AddVm, Request, VmSpec};
use notbefore_service::cluster::Standing;
use notbefore_service::cluster::join::{ClusterConfig, SharedStore};
use notbefore_service::config::ServeConfig;
use notbefore_service::janitor::HistoryLimits;
use notbefore_service::operator::change_rate::ChangeRateLimit;
use notbefore_service::running::Running;
use notbefore_service::serve::{ServeError, serve};
use notbefore_store::memory::MemoryStore;
use notbefore_store::{Outcome, Store, Txn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};

use crate::PATIENCE;

pub struct TestCluster {
    pub store: Arc<dyn Store>,
    pub nodes: Vec<TestNode>,
}

impl TestCluster {
    /// Starts nodes `node-0`, `node-1`, … at the same time.
    pub async fn start(count: usize) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let names: Vec<String> = (0..count).map(|n| format!("node-{n}")).collect();
        let starting = names.iter().map(|name| TestNode::start(&store, name));
        let nodes = futures_util::future::join_all(starting).await;
        Self { store, nodes: nodes.into_iter().map(Result::unwrap).collect() }
    }

    /// The first token.
    pub fn token(&self) -> String {
        let file = self.nodes.iter().map(TestNode::token_file).find(|file| file.exists());
        std::fs::read_to_string(file.expect("a node has the token")).unwrap().trim().to_owned()
    }

    /// The format levels of all records.
    pub async fn levels(&self) -> std::collections::BTreeSet<u8> {
        let snapshot = self.store.snapshot().await.unwrap();
        let records = snapshot.scan("", None, 10_000).await.unwrap().records;
        records.iter().filter_map(|(_, record)| record.value.first().copied()).collect()
    }

    /// Writes the heartbeat of another process under a node's name.
    pub async fn replace_heartbeat(&self, name: &str) {
        let key = format!("{NODE}{name}");
        let found = self.store.snapshot().await.unwrap().get(&key).await.unwrap().unwrap();
        let record: NodeRecord = records::decode(&key, &found.value).unwrap();
        let other = NodeRecord { epoch: "other".to_owned(), claimed_at: None, ..record };
        let put = vec![(key.into(), records::encode(&other))];
        let outcome = self.store.commit(Txn { put, ..Txn::default() }).await;
        assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
    }

    /// Waits until the leader knows that every node could lead, and returns the leader.
    pub async fn leader_of_able_nodes(&self, token: &str) -> usize {
        let able = async {
            loop {
                let leader = self.leader().await;
                let shown = self.nodes[leader].show("/v1/cluster", token).await;
                let nodes = shown["nodes"].as_array().cloned().unwrap_or_default();
                if nodes.len() == self.nodes.len() && nodes.iter().all(|node| node["can_lead"] == true) {
                    return leader;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, able).await.expect("a node cannot lead")
    }

    /// Waits until one node leads and the others know it.
    pub async fn leader(&self) -> usize {
        let agreed = async {
            loop {
                let standings: Vec<Standing> = self.nodes.iter().map(TestNode::standing).collect();
                let leading = standings.iter().position(|one| matches!(one.role, Role::Lead(_)));
                if let Some(index) = leading {
                    let me = &standings[index].me;
                    let knows =
                        |one: &Standing| one.leader.as_ref().is_some_and(|leader| leader.epoch == me.epoch);
                    if standings.iter().all(knows) {
                        return index;
                    }
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, agreed).await.expect("no node leads")
    }
}

pub struct TestNode {
    pub name: String,
    running: Running,
    stop: watch::Sender<bool>,
    served: oneshot::Receiver<Result<(), ServeError>>,
    /// Dropping it kills the node.
    kill: oneshot::Sender<()>,
    thread: JoinHandle<()>,
    _data: tempfile::TempDir,
}

impl TestNode {
    pub async fn start(store: &Arc<dyn Store>, name: &str) -> Result<Self, ServeError> {
        Self::start_at_level(store, name, ClusterConfig::FORMAT_LEVEL).await
    }

    /// A node that writes this format level at most, like one of an older release.
    pub async fn start_at_level(store: &Arc<dyn Store>, name: &str, level: u32) -> Result<Self, ServeError> {
        let data = tempfile::tempdir().unwrap();
        let mut config = config(data.path().join("data"), Arc::clone(store), name);
        config.cluster.iter_mut().for_each(|cluster| cluster.format_level = level);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let (stop, stopped) = watch::channel(false);
        let (send_running, running) = oneshot::channel();
        let (send_served, mut served) = oneshot::channel();
        let (kill, killed) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                let ready = Box::new(|running: &Running| drop(send_running.send(running.clone())));
                tokio::select! {
                    ended = serve(config, stopped, ready) => drop(send_served.send(ended)),
                    _ = killed => {}
                }
            });
            runtime.shutdown_background();
        });
        let started = tokio::time::timeout(PATIENCE, async {
            tokio::select! {
                Ok(running) = running => Ok(running),
                Ok(ended) = &mut served => Err(ended.expect_err("it ended before it was ready")),
            }
        });
        let running = started.await.expect("the node is not ready")?;
        Ok(Self { name: name.to_owned(), running, stop, served, kill, thread, _data: data })
    }

    /// Ends all its tasks at once, as `kill -9` would.
    pub fn kill(self) {
        // A dropped `stop` would stop it in an orderly way.
        drop(self.kill);
        self.thread.join().unwrap();
    }

    pub async fn stop(mut self) {
        self.stop.send(true).unwrap();
        let served = tokio::time::timeout(PATIENCE, &mut self.served);
        served.await.expect("the node does not stop").unwrap().unwrap();
    }

    /// Waits until it has stopped by itself.
    pub async fn ended(mut self) -> Result<(), ServeError> {
        tokio::time::timeout(PATIENCE, &mut self.served).await.expect("the node goes on").unwrap()
    }

    pub fn standing(&self) -> Standing {
        self.running.standing.as_ref().unwrap().borrow().clone()
    }

    pub fn token_file(&self) -> PathBuf {
        self.running.addresses.token.clone()
    }

    /// Adds a VM to the scope `web`, as a command to this node's engine.
    pub async fn add_vm(&self, name: &str, ip: &str) {
        let address = Address { network: "default".parse().unwrap(), ip: ip.parse().unwrap() };
        let id = VmId(uuid::Uuid::new_v4());
        let vm = VmSpec { addresses: vec![address], ..VmSpec::with_defaults(id, name.parse().unwrap()) };
        let add = AddVm { path: "web".parse().unwrap(), kind: Some(ScopeKind::AvailabilitySet), vm };
        self.running.engine.ask(Request::new(Actor::Service, add)).await.unwrap();
    }

    /// Polls as the VM at 127.0.0.1.
    pub async fn poll(&self) -> String {
        self.guest("GET", "").await
    }

    /// Repeated as guests do when no node leads for a moment: nothing was carried out then.
    pub async fn approve(&self, body: &str) -> String {
        let answered = async {
            loop {
                let answer = self.guest("POST", body).await;
                if !answer.starts_with("HTTP/1.1 503") || !answer.contains("was not kept: send it again") {
                    return answer;
                }
            }
        };
        tokio::time::timeout(PATIENCE, answered).await.expect("no node leads")
    }

    async fn guest(&self, method: &str, body: &str) -> String {
        let target = "/metadata/scheduledevents?api-version=2020-07-01";
        let address = self.running.addresses.guest[0].at.address;
        exchange(address, method, target, "Metadata: true\r\n", body).await
    }

    /// A change of an operator. On a busy machine a leader may lose the lead for a moment; then nothing was carried out,
    /// and the request is repeated.
    pub async fn change(&self, target: &str, token: &str, body: &str) -> (u16, String) {
        self.change_with(target, token, "", body).await
    }

    /// The same with more headers.
    pub async fn change_with(&self, target: &str, token: &str, headers: &str, body: &str) -> (u16, String) {
        let answered = async {
            loop {
                let (status, response) = self.request("POST", target, token, headers, body).await;
                if status != 503 || !response.contains("\"code\":\"unavailable\"") {
                    return (status, response);
                }
            }
        };
        tokio::time::timeout(PATIENCE, answered).await.expect("no node leads")
    }

    /// A request of an operator: the status and the whole response.
    pub async fn operator(&self, method: &str, target: &str, token: &str, body: &str) -> (u16, String) {
        self.request(method, target, token, "", body).await
    }

    /// The body of a read.
    pub async fn show(&self, target: &str, token: &str) -> serde_json::Value {
        let (_, response) = self.operator("GET", target, token, "").await;
        serde_json::from_str(response.split("\r\n\r\n").nth(1).unwrap()).expect(&response)
    }

    async fn request(
        &self,
        method: &str,
        target: &str,
        token: &str,
        headers: &str,
        body: &str,
    ) -> (u16, String) {
        let headers = format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n{headers}");
        let response = exchange(self.running.addresses.operator, method, target, &headers, body).await;
        (response[9..12].parse().unwrap(), response)
    }

    /// Reads until the response has this part.
    pub async fn wait_for_answer(&self, target: &str, token: &str, part: &str) {
        let shown = async {
            while !self.operator("GET", target, token, "").await.1.contains(part) {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, shown).await.expect("the response never has it");
    }

    pub async fn wait_for_document(&self, part: &str) {
        let shown = async {
            while !self.poll().await.contains(part) {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, shown).await.expect("the document is not shown");
    }

    pub async fn wait_for_vms(&self, count: usize) {
        let known = async {
            let vms = |engine: &notbefore_engine::Engine, _| Ok(engine.state().inventory().vms());
            while self.running.engine.query(vms).await.unwrap() != count {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, known).await.expect("the VMs are not known");
    }
}

pub async fn exchange(address: SocketAddr, method: &str, target: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

pub fn config(data: PathBuf, store: Arc<dyn Store>, name: &str) -> ServeConfig {
    ServeConfig {
        in_memory: false,
        cluster: Some(ClusterConfig::new(name.to_owned(), SharedStore::Given(store))),
        change_rate_limit: ChangeRateLimit {
            burst: 1_000.try_into().unwrap(),
            per_second: 1_000.try_into().unwrap(),
        },
        history: HistoryLimits { retention: SignedDuration::from_hours(24), bytes_max: None },
        ..ServeConfig::in_memory(data)
    }
}
