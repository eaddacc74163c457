//! Three nodes on three members of etcd, all on loopback and on the same two cores as the load.
//!
//! | file | content |
//! |---|---|
//! | `commands` | durable commands a second through a follower, compared with the same transactions of a bare client |
//! | `visibility` | time from a put to its effect on all nodes, compared with bare watches |
//! | `take_over` | gap in changes when the leader is killed or stopped |
//! | `catch_up` | time until a node is up to date whose watch was compacted while it stood still |

mod catch_up;
mod commands;
mod take_over;
mod visibility;

use std::ops::Range;
use std::time::Duration;

use super::schedule::years_from_now;
use super::{Bench, million};
use crate::clock;
use crate::cluster::Cluster;
use crate::etcd::{self, Etcd};
use crate::fleet::{Callers, Fleet};
use crate::load::guests;
use crate::report::{Goal, digits};
use crate::schedules::Announcement;
use crate::usage;

/// Number of members of etcd.
const MEMBERS: usize = 3;

/// VMs, each in a scope of its own.
const VMS: usize = 100_000;

/// Time before memory is measured. A node works all the time, so its allocator returns what the load needed.
const SETTLING: Duration = Duration::from_secs(5);

/// Prefix of the nodes' records.
const PREFIX: &str = notbefore_etcd::DEFAULT_PREFIX;

/// Scopes that have no event yet. Each command uses one, so that no two depend on each other.
struct Unused {
    fleet: Fleet,
    scopes: Range<usize>,
}

impl Unused {
    /// The next scope.
    fn next(&mut self) -> anyhow::Result<usize> {
        self.scopes.next().ok_or_else(|| anyhow::anyhow!("the fleet is too small: no scope is left"))
    }

    /// The next scopes.
    fn take(&mut self, count: usize) -> anyhow::Result<Vec<usize>> {
        (0..count).map(|_| self.next()).collect()
    }

    fn announcement(&self, scope: usize) -> Announcement {
        Announcement {
            vm: self.fleet.first_vm(scope),
            address: guests::address(scope),
            not_before: years_from_now(),
        }
    }
}

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    bench.cores.use_both()?;
    let done = measure(bench);
    bench.cores.pin_to_load_core()?;
    done
}

fn measure(bench: &mut Bench) -> anyhow::Result<()> {
    let vms = if bench.quick { VMS / 2 } else { VMS };
    let fleet = Fleet { scopes: vms, per_scope: 1, callers: Callers::All };
    let mut cluster = start(bench, fleet, Goal::at_most(20.0, 10.0))?;
    let mut unused = Unused { fleet, scopes: 0..fleet.scopes };
    take_over::measure(bench, &mut cluster, &mut unused)?;
    commands::measure(bench, &cluster, &mut unused)?;
    visibility::measure(bench, &cluster, &mut unused)?;
    catch_up::measure(bench, &mut cluster, &mut unused)?;
    take_over::measure_with_events(bench, &mut cluster, &mut unused)
}

/// A million VMs, for the figures in the docs.
pub fn million(bench: &mut Bench) -> anyhow::Result<()> {
    bench.cores.use_both()?;
    let fleet = million::fleet(bench);
    let done = start(bench, fleet, None).map(|_| ());
    bench.cores.pin_to_load_core()?;
    done
}

/// Imports a fleet into a new etcd and starts three nodes at once. Measures both, and what they need.
fn start(bench: &mut Bench, fleet: Fleet, goal: Option<Goal>) -> anyhow::Result<Cluster> {
    let dir = bench.directory(bench.scenario)?;
    let vms = fleet.vms();
    let etcd = Etcd::start(&dir, MEMBERS)?;
    let took = fleet.import_into_etcd(&bench.binary, &dir.join("fleet.jsonl"), &etcd.urls())?;
    bench.progress(&format!("imported {vms} VMs into etcd in {} s", digits(took.as_secs_f64())));
    bench.measured(&format!("import into etcd, {vms} VMs"), "s", &[took.as_secs_f64()], None);
    let (cluster, times) = Cluster::start(&bench.binary, &dir, etcd)?;
    let last = times.into_iter().fold(0.0, f64::max);
    bench.progress(&format!("three nodes are ready after {} s", digits(last)));
    bench.measured(&format!("three nodes started at once, all ready, {vms} VMs"), "s", &[last], goal);
    let mib = |bytes: u64| bytes as f64 / 1048576.0;
    let mut memory = Vec::new();
    clock::pause(SETTLING);
    for node in cluster.nodes() {
        memory.push(mib(usage::memory(node.pid())?));
    }
    bench.measured(&format!("memory of a node, {vms} VMs"), "MiB", &memory, None);
    bench.measured(
        &format!("memory of a member of etcd, {vms} VMs"),
        "MiB",
        &[mib(cluster.etcd.memory()?)],
        None,
    );
    let runtime = etcd::runtime()?;
    let store = cluster.etcd.connect(&runtime, PREFIX)?;
    let (release, bytes) = etcd::release_and_bytes(&runtime, &store)?;
    bench.measured(&format!("database of etcd, {vms} VMs"), "MiB", &[mib(bytes)], None);
    bench.note(&format!(
        "{}: {MEMBERS} members of etcd {release}, three nodes, all on loopback.",
        bench.scenario
    ));
    Ok(cluster)
}
