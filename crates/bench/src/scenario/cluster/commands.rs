//! Durable commands a second through a follower, divided by the rate at which a bare client commits the same
//! transactions with the same concurrency.
//!
//! The transactions are read from etcd's history after each round: keys and values are those of the round. A watch does
//! not show comparisons; they follow from the engine's rules. A transaction compares the leader's record and every record
//! that it writes, except facts, whose keys are unique. The bare client writes below another prefix of the same length,
//! where the records of the scopes were put before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use bytes::Bytes;
use notbefore_engine::cluster::LEADER;
use notbefore_engine::records;
use notbefore_etcd::EtcdStore;
use notbefore_store::{Batch, Expect, Key, Outcome, Revision, Store, TXN_OPERATIONS_MAX, Txn};
use tokio::runtime::Runtime;

use super::{PREFIX, Unused};
use crate::clock;
use crate::cluster::Cluster;
use crate::etcd;
use crate::report::{Goal, digits};
use crate::scenario::Bench;
use crate::schedules::{Announcement, announce_with};
use crate::stats::median;
use crate::usage;

/// Numbers of clients, each with one command in flight, and the commands of one round: a second or two.
const CLIENTS: [(usize, usize); 3] = [(1, 250), (16, 1_500), (64, 3_000)];

/// Prefix of the replayed records, as long as that of the nodes.
const REPLAY_PREFIX: &str = "/replaying/";

/// Microseconds of CPU for each command, by process.
#[derive(Clone, Copy, Default)]
struct Prices {
    leader: f64,
    follower: f64,
    other: f64,
    etcd: f64,
}

/// Runs the rounds, by turns with the replay.
pub fn measure(bench: &mut Bench, cluster: &Cluster, unused: &mut Unused) -> anyhow::Result<()> {
    let bare = Bare::connect(cluster)?;
    let (leader, [follower, other]) = cluster.roles()?;
    let pids = [leader, follower, other].map(|place| cluster.nodes()[place].pid());
    let rounds = bench.rounds().min(5);
    let mut rows = Vec::new();
    for (clients, count) in CLIENTS {
        let (mut rates, mut replays, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        let (mut prices, mut bare_prices) = (Vec::new(), Vec::new());
        // The first round warms up.
        for round in 0..=rounds {
            let scopes = unused.take(count)?;
            let announcements: Vec<Announcement> =
                scopes.iter().map(|scope| unused.announcement(*scope)).collect();
            let before = bare.revision()?;
            let used = cpu(cluster, pids)?;
            let (outcome, _) = announce_with(clients, &cluster.nodes()[follower], &announcements, None)?;
            let price = price_of(used, cpu(cluster, pids)?, count);
            let txns = bare.recorded(before, count)?;
            let prepared = bare.prepare(unused, &scopes)?;
            let used = cluster.etcd.cpu()?;
            let replay = bare.replay(txns, &prepared, clients)?;
            let bare_price = (cluster.etcd.cpu()? - used).as_secs_f64() * 1e6 / count as f64;
            if round == 0 {
                continue;
            }
            let rate = outcome.answers() as f64 / outcome.seconds;
            bench.progress(&format!(
                "{clients} clients, round {round} of {rounds}: {} commands/s, {} bare/s, ratio {}",
                digits(rate),
                digits(replay),
                digits(rate / replay)
            ));
            rates.push(rate);
            replays.push(replay);
            ratios.push(rate / replay);
            prices.push(price);
            bare_prices.push(bare_price);
        }
        let who = if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") };
        bench.measured(&format!("durable commands through a follower, {who}"), "/s", &rates, None);
        bench.measured(&format!("the same transactions by a bare client, {who}"), "/s", &replays, None);
        let what = format!("durable commands ÷ bare transactions, {who}");
        bench.measured(&what, "", &ratios, Goal::at_least(0.5, 0.7));
        let of = |part: fn(&Prices) -> f64| digits(median(&prices.iter().map(part).collect::<Vec<_>>()));
        rows.push(vec![
            clients.to_string(),
            of(|price| price.follower),
            of(|price| price.leader),
            of(|price| price.other),
            of(|price| price.etcd),
            digits(median(&bare_prices)),
        ]);
    }
    let columns =
        ["clients", "follower", "leader", "other node", "etcd, 3 members", "etcd, bare transactions"];
    bench.table("CPU of a command by process, µs", &columns, rows);
    Ok(())
}

/// Seconds of CPU so far: leader, follower, other node, etcd.
fn cpu(cluster: &Cluster, pids: [u32; 3]) -> anyhow::Result<[f64; 4]> {
    let [leader, follower, other] = pids.map(usage::cpu);
    Ok([leader?, follower?, other?, cluster.etcd.cpu()?].map(|cpu| cpu.as_secs_f64()))
}

fn price_of(before: [f64; 4], after: [f64; 4], count: usize) -> Prices {
    let each = |at: usize| (after[at] - before[at]) * 1e6 / count as f64;
    Prices { leader: each(0), follower: each(1), other: each(2), etcd: each(3) }
}

/// Clients of etcd without the service.
struct Bare {
    runtime: Runtime,
    nodes: EtcdStore,
    replayed: EtcdStore,
    /// Revision of the leader's record below the replay's prefix.
    leader: Revision,
}

impl Bare {
    fn connect(cluster: &Cluster) -> anyhow::Result<Self> {
        let runtime = etcd::runtime()?;
        let nodes = cluster.etcd.connect(&runtime, PREFIX)?;
        let replayed = cluster.etcd.connect(&runtime, REPLAY_PREFIX)?;
        let leader = runtime.block_on(async {
            let record = nodes.snapshot().await?.get(LEADER).await?.context("no node leads")?;
            let put = vec![(LEADER.into(), record.value)];
            committed(&replayed, Txn { put, ..Txn::default() }).await
        })?;
        Ok(Self { runtime, nodes, replayed, leader })
    }

    fn revision(&self) -> anyhow::Result<Revision> {
        Ok(self.runtime.block_on(self.nodes.snapshot())?.revision())
    }

    /// The transactions of the commands after a revision.
    fn recorded(&self, after: Revision, count: usize) -> anyhow::Result<Vec<Batch>> {
        self.runtime.block_on(async {
            let mut watch = self.nodes.watch(after).await?;
            let mut batches = Vec::with_capacity(count);
            while batches.len() < count {
                let batch = watch.next().await?;
                if batch.changes.iter().any(|change| change.key.starts_with(records::prefix::OPERATION)) {
                    batches.push(batch);
                }
            }
            Ok(batches)
        })
    }

    /// Puts the records of scopes as they were before the commands; returns their revisions.
    fn prepare(&self, unused: &Unused, scopes: &[usize]) -> anyhow::Result<HashMap<Key, Revision>> {
        let record = |scope: &usize| -> (Key, Bytes) {
            (records::scope(&unused.fleet.scope_id(*scope)), records::encode(&unused.fleet.scope(*scope)))
        };
        let mut revisions = HashMap::new();
        for some in scopes.chunks(TXN_OPERATIONS_MAX) {
            let put: Vec<_> = some.iter().map(record).collect();
            let keys: Vec<Key> = put.iter().map(|(key, _)| key.clone()).collect();
            let txn = Txn { put, ..Txn::default() };
            let revision = self.runtime.block_on(committed(&self.replayed, txn))?;
            revisions.extend(keys.into_iter().map(|key| (key, revision)));
        }
        Ok(revisions)
    }

    /// Commits the transactions with this many in flight; returns how many a second.
    fn replay(
        &self,
        batches: Vec<Batch>,
        prepared: &HashMap<Key, Revision>,
        clients: usize,
    ) -> anyhow::Result<f64> {
        let count = batches.len();
        let txns: Vec<Txn> = batches.iter().map(|batch| transaction(batch, self.leader, prepared)).collect();
        let queue = Arc::new(Mutex::new(txns));
        let begun = clock::now();
        self.runtime.block_on(async {
            let client = |_| {
                let (store, queue) = (self.replayed.clone(), Arc::clone(&queue));
                tokio::spawn(async move {
                    loop {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
                        let Some(txn) = next else { return anyhow::Ok(()) };
                        committed(&store, txn).await?;
                    }
                })
            };
            for client in (0..clients).map(client).collect::<Vec<_>>() {
                client.await??;
            }
            anyhow::Ok(())
        })?;
        Ok(count as f64 / begun.elapsed().as_secs_f64())
    }
}

/// The transaction of a commit, for the replay.
fn transaction(batch: &Batch, leader: Revision, prepared: &HashMap<Key, Revision>) -> Txn {
    let mut txn = Txn::default();
    for change in batch.changes.iter() {
        if !change.key.starts_with(records::prefix::FACT) {
            txn.expect.push(Expect { key: change.key.clone(), revision: prepared.get(&change.key).copied() });
        }
        match &change.value {
            Some(value) => txn.put.push((change.key.clone(), value.clone())),
            None => txn.delete.push(change.key.clone()),
        }
    }
    txn.expect.push(Expect { key: LEADER.into(), revision: Some(leader) });
    txn
}

async fn committed(store: &EtcdStore, txn: Txn) -> anyhow::Result<Revision> {
    match store.commit(txn).await {
        Outcome::Committed(revision) => Ok(revision),
        other @ (Outcome::Conflict(_) | Outcome::Refused(_) | Outcome::Unknown(_)) => {
            anyhow::bail!("a transaction of the bare client was not committed: {other:?}")
        }
    }
}

#[cfg(test)]
mod tests {
    use notbefore_store::Change;

    use super::*;

    #[test]
    fn replayed_transactions_compare_what_the_engine_compares() {
        let put = |key: &str| Change { key: key.into(), value: Some(Bytes::from_static(b"2 {}")) };
        let changes = [put("fact/1"), put("operation/1"), put("scope/a")].into();
        let batch = Batch { revision: Revision(9), changes };
        let prepared = HashMap::from([("scope/a".into(), Revision(5))]);
        let txn = transaction(&batch, Revision(3), &prepared);
        let expect = |key: &str, revision| Expect { key: key.into(), revision };
        assert_eq!(
            txn.expect,
            [
                expect("operation/1", None),
                expect("scope/a", Some(Revision(5))),
                expect("cluster/leader", Some(Revision(3)))
            ]
        );
        assert_eq!((txn.put.len(), txn.delete.len()), (3, 0));
        assert_eq!(PREFIX.len(), REPLAY_PREFIX.len());
    }
}
