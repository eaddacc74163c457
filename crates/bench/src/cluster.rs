//! Three nodes of the service on one etcd, all on loopback.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use crate::clock;
use crate::etcd::Etcd;
use crate::service::{Binary, Rate, Service, Starting};

/// Names of the nodes.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Most time until a condition of the cluster holds.
const PATIENCE: Duration = Duration::from_secs(120);

/// The nodes and their etcd. Fields are dropped in this order.
pub struct Cluster {
    nodes: Vec<Service>,
    pub etcd: Etcd,
    binary: Binary,
    dir: PathBuf,
    token: PathBuf,
}

impl Cluster {
    /// Three nodes that are started at once. Also returns when each was ready, in seconds since the start.
    pub fn start(binary: &Binary, dir: &Path, etcd: Etcd) -> anyhow::Result<(Self, Vec<f64>)> {
        let token = dir.join("first.token");
        std::fs::write(&token, "the-first-token-of-the-benchmark")?;
        let mut cluster =
            Self { nodes: Vec::new(), etcd, binary: binary.clone(), dir: dir.to_owned(), token };
        let begun = clock::now();
        // By this thread, with which they end.
        let starting = NAMES.map(|name| cluster.start_node(name));
        let started = std::thread::scope(|scope| {
            let ready = |node: anyhow::Result<Starting>| {
                scope.spawn(move || {
                    let node = node?.wait()?;
                    node.wait_until_ready()?;
                    anyhow::Ok((node, begun.elapsed().as_secs_f64()))
                })
            };
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().map_err(|_| anyhow::anyhow!("a thread that waits for a node died"))?
            };
            starting.map(ready).into_iter().map(join).collect::<anyhow::Result<Vec<_>>>()
        })?;
        let (nodes, times) = started.into_iter().unzip();
        cluster.nodes = nodes;
        cluster.wait_until_healthy()?;
        Ok((cluster, times))
    }

    fn start_node(&self, name: &str) -> anyhow::Result<Starting> {
        let flags = ["--etcd", &self.etcd.urls(), "--node", name];
        Starting::node(&self.binary, &self.dir.join(name), Rate::Unlimited, &self.token, &flags)
    }

    pub fn nodes(&self) -> &[Service] {
        &self.nodes
    }

    /// A node by its place.
    pub fn node(&mut self, place: usize) -> &mut Service {
        &mut self.nodes[place]
    }

    /// Two nodes by their places, the first to end.
    pub fn pair(&mut self, one: usize, other: usize) -> anyhow::Result<(&mut Service, &Service)> {
        let [one, other] = self.nodes.get_disjoint_mut([one, other]).context("no such nodes")?;
        Ok((one, other))
    }

    /// Starts a node again that has ended, and waits until the cluster is whole.
    pub fn restart(&mut self, place: usize) -> anyhow::Result<()> {
        self.nodes[place] = self.start_node(NAMES[place])?.wait()?;
        self.wait_until_healthy()
    }

    /// The place of the leader, by what a node knows.
    pub fn leader(&self) -> anyhow::Result<usize> {
        let shown = self.nodes[0].operate("GET", "/v1/cluster", &serde_json::Value::Null)?;
        let leader = shown["leader"].as_str().context("no node leads")?;
        NAMES.iter().position(|name| *name == leader).context("an unknown node leads")
    }

    /// The places of the leader and of both followers.
    pub fn roles(&self) -> anyhow::Result<(usize, [usize; 2])> {
        let leader = self.leader()?;
        Ok((leader, [(leader + 1) % 3, (leader + 2) % 3]))
    }

    /// Waits until every node knows a leader and three nodes that could lead.
    pub fn wait_until_healthy(&self) -> anyhow::Result<()> {
        let is_healthy = |node: &Service| {
            let shown = node.operate("GET", "/v1/cluster", &serde_json::Value::Null)?;
            let nodes = shown["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
            let can_lead = nodes.iter().filter(|node| node["can_lead"] == true).count();
            anyhow::Ok(shown["leader"].is_string() && can_lead == NAMES.len())
        };
        let begun = clock::now();
        for node in &self.nodes {
            while !is_healthy(node)? {
                anyhow::ensure!(begun.elapsed() < PATIENCE, "the cluster is not whole after {PATIENCE:?}");
                clock::pause(Duration::from_millis(20));
            }
        }
        Ok(())
    }
}
