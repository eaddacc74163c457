//! Time from a put to its effect on all nodes, divided by the time until bare watches show it, while 16 clients send
//! commands.
//!
//! Both times are of the same puts. The benchmark's own client puts the record of a scope with the next incarnation. It
//! watches all three members, and a guest waits at each node with a long poll. A time counts from the call of the client
//! to the last of the three.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Context;
use notbefore_engine::records;
use notbefore_etcd::EtcdStore;
use notbefore_store::{Key, Outcome, Revision, Store, Txn};

use super::{PREFIX, Unused};
use crate::clock;
use crate::cluster::Cluster;
use crate::etcd;
use crate::http::{self, Answer};
use crate::load::guests;
use crate::report::{Goal, digits};
use crate::scenario::Bench;
use crate::schedules::{Announcement, announce_with};
use crate::service::POLL;

/// Clients that send commands meanwhile.
const CLIENTS: usize = 16;

/// Commands in a whole run; they last as long as the samples.
const COMMANDS: usize = 20_000;

/// Most time until a put is seen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time for the long polls to arrive.
const PARKING: Duration = Duration::from_millis(3);

/// Runs until the commands are done.
pub fn measure(bench: &mut Bench, cluster: &Cluster, unused: &mut Unused) -> anyhow::Result<()> {
    let count = if bench.quick { COMMANDS / 10 } else { COMMANDS };
    let scope = unused.next()?;
    let scopes = unused.take(count)?;
    let announcements: Vec<Announcement> = scopes.iter().map(|scope| unused.announcement(*scope)).collect();
    let (_, [follower, _]) = cluster.roles()?;
    let follower = &cluster.nodes()[follower];
    let (mut bare, mut visible) = (Vec::new(), Vec::new());
    let outcome = std::thread::scope(|threads| {
        let load = threads.spawn(|| announce_with(CLIENTS, follower, &announcements, None));
        let mut probe = Probe::start(cluster, unused, scope)?;
        while !load.is_finished() {
            let (watched, shown) = probe.sample()?;
            bare.push(watched);
            visible.push(shown);
        }
        anyhow::Ok(load.join().map_err(|_| anyhow::anyhow!("the thread with the load died"))??.0)
    })?;
    let (bare_p99, visible_p99) = (p99(&mut bare), p99(&mut visible));
    let rate = outcome.answers() as f64 / outcome.seconds;
    bench.progress(&format!(
        "{} puts beside {} commands/s: watched p50 {} ms, p99 {} ms; visible p50 {} ms, p99 {} ms",
        bare.len(),
        digits(rate),
        digits(bare[bare.len() / 2]),
        digits(bare_p99),
        digits(visible[visible.len() / 2]),
        digits(visible_p99)
    ));
    let beside = format!("beside {CLIENTS} clients");
    bench.measured(&format!("put to bare watches of all members, p99, {beside}"), "ms", &[bare_p99], None);
    bench.measured(&format!("put to visible on all nodes, p99, {beside}"), "ms", &[visible_p99], None);
    let goal = Goal::at_most(2.0, 1.5);
    bench.measured("put to visible on all nodes ÷ put to watch, p99", "", &[visible_p99 / bare_p99], goal);
    bench.note(&format!(
        "cluster: {} puts beside {} commands/s gave the times to visible.",
        bare.len(),
        digits(rate)
    ));
    Ok(())
}

/// The 99th percentile in milliseconds; sorts the times.
fn p99(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get((times.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
}

/// A scope whose record is put again and again, its watches, and its guests.
struct Probe<'a> {
    runtime: tokio::runtime::Runtime,
    store: EtcdStore,
    unused: &'a Unused,
    scope: usize,
    incarnation: u64,
    watched: Receiver<(Revision, Instant)>,
    guests: Vec<http::Client>,
}

impl<'a> Probe<'a> {
    fn start(cluster: &Cluster, unused: &'a Unused, scope: usize) -> anyhow::Result<Self> {
        let runtime = etcd::runtime()?;
        let store = cluster.etcd.connect(&runtime, PREFIX)?;
        let key = records::scope(&unused.fleet.scope_id(scope));
        let (seen, watched) = channel();
        // Each watch is opened at the next member.
        for _ in 0..super::MEMBERS {
            let watch = runtime.block_on(async {
                let now = store.snapshot().await?.revision();
                anyhow::Ok(store.watch(now).await?)
            })?;
            runtime.spawn(follow(watch, key.clone(), seen.clone()));
        }
        let guest = |node: &crate::service::Service| node.guest(guests::address(scope));
        let guests = cluster.nodes().iter().map(guest).collect::<anyhow::Result<_>>()?;
        let incarnation = unused.fleet.scope(scope).incarnation;
        Ok(Self { runtime, store, unused, scope, incarnation, watched, guests })
    }

    /// Puts the record once; returns the milliseconds until all watches and all nodes showed it.
    fn sample(&mut self) -> anyhow::Result<(f64, f64)> {
        let headers = format!("Metadata: true\r\nPrefer: wait=60\r\nIf-None-Match: {}\r\n", self.incarnation);
        let request = http::request("GET", POLL, &headers, "");
        for guest in &mut self.guests {
            std::io::Write::write_all(guest.stream(), request.as_bytes())?;
        }
        clock::pause(PARKING);
        self.incarnation += 1;
        let mut scope = self.unused.fleet.scope(self.scope);
        scope.incarnation = self.incarnation;
        let put = vec![(records::scope(&scope.id()), records::encode(&scope))];
        let (incarnation, guests) = (self.incarnation, &mut self.guests);
        let (begun, (revision, shown)) = std::thread::scope(|threads| {
            let reading: Vec<_> =
                guests.iter_mut().map(|guest| threads.spawn(move || read(guest, incarnation))).collect();
            let begun = clock::now();
            let outcome = self.runtime.block_on(self.store.commit(Txn { put, ..Txn::default() }));
            let Outcome::Committed(revision) = outcome else { anyhow::bail!("not committed: {outcome:?}") };
            let mut last = begun;
            for thread in reading {
                last = last.max(thread.join().map_err(|_| anyhow::anyhow!("a guest's thread died"))??);
            }
            anyhow::Ok((begun, (revision, last)))
        })?;
        let mut watched = begun;
        let mut left = super::MEMBERS;
        while left > 0 {
            let (of, at) = self.watched.recv_timeout(PATIENCE).context("a bare watch shows nothing")?;
            if of == revision {
                watched = watched.max(at);
                left -= 1;
            }
        }
        let milliseconds = |at: Instant| at.duration_since(begun).as_secs_f64() * 1e3;
        Ok((milliseconds(watched), milliseconds(shown)))
    }
}

/// Reports when a watch shows the key.
async fn follow(mut watch: Box<dyn notbefore_store::Watch>, key: Key, seen: Sender<(Revision, Instant)>) {
    while let Ok(batch) = watch.next().await {
        let at = clock::now();
        if batch.changes.iter().any(|change| change.key == key) && seen.send((batch.revision, at)).is_err() {
            return;
        }
    }
}

/// Reads the answer to a long poll; returns when it came.
fn read(guest: &mut http::Client, incarnation: u64) -> anyhow::Result<Instant> {
    let mut input = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let length = std::io::Read::read(guest.stream(), &mut piece)?;
        anyhow::ensure!(length > 0, "a node closed the connection of a guest that waits");
        input.extend_from_slice(&piece[..length]);
        if let Some(answer) = Answer::parse(&input)? {
            let at = clock::now();
            let expected = format!("\"DocumentIncarnation\":{incarnation}");
            anyhow::ensure!(
                answer.status == 200 && String::from_utf8_lossy(answer.body).contains(&expected),
                "a guest that waits was answered {}: {}",
                answer.status,
                String::from_utf8_lossy(answer.body)
            );
            return Ok(at);
        }
    }
}
