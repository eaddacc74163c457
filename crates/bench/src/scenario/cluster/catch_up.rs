//! Time until a node is up to date that stood still while etcd's history was compacted: it has to read everything again.

use std::time::Duration;

use anyhow::Context;
use notbefore_store::Store;
use rustix::process::Signal;

use super::{PREFIX, Unused};
use crate::clock;
use crate::cluster::Cluster;
use crate::etcd;
use crate::report::{Goal, digits};
use crate::scenario::Bench;
use crate::schedules::{Announcement, announce};

/// How long the node stands still: longer than the 3 s after which a node takes its watch for stalled.
const STOPPED: Duration = Duration::from_secs(5);

/// Commands that the node misses.
const MISSED: usize = 1_000;

/// Most time to catch up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Metric that counts how often a node read everything because of a compaction.
const RESYNCS: &str = "notbefore_cluster_resyncs_total{reason=\"compacted\"}";

/// Stops a follower, changes, compacts, and continues it.
pub fn measure(bench: &mut Bench, cluster: &mut Cluster, unused: &mut Unused) -> anyhow::Result<()> {
    let runtime = etcd::runtime()?;
    let store = cluster.etcd.connect(&runtime, PREFIX)?;
    let mut times = Vec::new();
    for _ in 0..bench.rounds().min(3) {
        let (leader, [stopped, _]) = cluster.roles()?;
        let before = resyncs(cluster, stopped)?;
        cluster.node(stopped).signal(Signal::STOP)?;
        let missed = unused.take(MISSED)?;
        let announcements: Vec<Announcement> =
            missed.iter().map(|scope| unused.announcement(*scope)).collect();
        announce(&cluster.nodes()[leader], &announcements, None)?;
        clock::pause(STOPPED);
        runtime.block_on(async {
            let newest = store.snapshot().await?.revision();
            anyhow::Ok(store.compact(newest).await?)
        })?;
        let last = announcements.last().context("no command")?.address;
        let begun = clock::now();
        cluster.node(stopped).signal(Signal::CONT)?;
        let node = &cluster.nodes()[stopped];
        let is_shown = || {
            let document = node.poll(last)?.json()?;
            anyhow::Ok(document["Events"].as_array().is_some_and(|events| !events.is_empty()))
        };
        while !is_shown()? {
            anyhow::ensure!(begun.elapsed() < PATIENCE, "the node has not caught up after {PATIENCE:?}");
            clock::pause(Duration::from_millis(5));
        }
        let took = begun.elapsed().as_secs_f64();
        anyhow::ensure!(
            resyncs(cluster, stopped)? == before + 1.0,
            "the node caught up without reading everything: its watch was not compacted"
        );
        bench.progress(&format!("caught up after a compaction in {} s", digits(took)));
        times.push(took);
        cluster.wait_until_healthy()?;
    }
    let what = format!("catch-up after a compaction under a stopped node, {} VMs", unused.fleet.vms());
    bench.measured(&what, "s", &times, Goal::at_most(10.0, 5.0));
    Ok(())
}

fn resyncs(cluster: &Cluster, place: usize) -> anyhow::Result<f64> {
    let metrics = cluster.nodes()[place].operator()?.request("GET", "/metrics", "")?;
    let value = metrics.body.lines().find_map(|line| line.strip_prefix(RESYNCS));
    value.and_then(|value| value.trim().parse().ok()).context("no metric of resyncs")
}
