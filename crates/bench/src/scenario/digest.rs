//! Cost of digests: 100,000 VMs, each in a scope of its own, poll a follower every second.
//!
//! Two nodes run in the benchmark's process, each with its engine and its view of the whole fleet. The clock is set
//! forward by a second at a time, so a minute takes as long as the work in it. Polls leave their time in the slots, as
//! the guest listener does; that is not counted. Counted is the CPU time of the process while the follower composes a
//! digest, and while the leader takes it and its engine has handled it. HTTP between the nodes is not part of it: there
//! is one request a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use notbefore_engine::{Engine, EngineSettings, Loader, State, prepare};
use notbefore_service::clock::Clock;
use notbefore_service::delivery::{Delivery, Digests, Ledger};
use notbefore_service::driver::NoCommand;
use notbefore_service::runtime::{self, EngineHandle};
use notbefore_service::view::Views;
use notbefore_service::vm_log::VmLog;
use notbefore_store::Revision;
use notbefore_store::memory::MemoryStore;
use notbefore_wire::guest::version::EventsVersion;

use super::Bench;
use crate::fleet::{Callers, Fleet};
use crate::report::Goal;
use crate::usage;

const VMS: usize = 100_000;
/// Seconds of a round: each VM is noted once.
const ROUND_S: i64 = 60;

struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Relaxed)).unwrap_or_default()
    }
}

struct BenchNode {
    engine: EngineHandle,
    views: Arc<Views>,
    delivery: Arc<Delivery>,
    digests: Digests,
}

/// CPU time of both sides.
#[derive(Default)]
struct Spent {
    sender: Duration,
    leader: Duration,
    bytes: usize,
    digests: usize,
}

/// Measures the CPU of sender and leader, as a share of a core.
pub fn run(bench: &mut Bench) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(measure(bench))
}

async fn measure(bench: &mut Bench) -> anyhow::Result<()> {
    let clock = Arc::new(SetClock(AtomicI64::new(1_800_000_000)));
    bench.progress(&format!("loading {VMS} VMs into two nodes"));
    let leader = BenchNode::new(&clock, true).await?;
    let follower = BenchNode::new(&clock, false).await?;
    leader.digests.take_lead(Revision(2));
    follower.digests.set_leader(Some("leader~1"));

    bench.progress("all VMs begin to poll, within a minute");
    for second in 0..ROUND_S {
        poll_one_second(&clock, &follower, &leader, Some(second)).await?;
    }
    leader.digests.review(["follower~1"]);

    let rounds = if bench.quick { 2 } else { 5 };
    let (mut sender, mut taken, mut last) = (Vec::new(), Vec::new(), Spent::default());
    for round in 1..=rounds {
        bench.progress(&format!("minute {round} of {rounds}"));
        last = Spent::default();
        for _ in 0..ROUND_S {
            let spent = poll_one_second(&clock, &follower, &leader, None).await?;
            last.sender += spent.sender;
            last.leader += spent.leader;
            last.bytes += spent.bytes;
            last.digests += spent.digests;
        }
        let share = |spent: Duration| spent.as_secs_f64() / ROUND_S as f64 * 100.0;
        sender.push(share(last.sender));
        taken.push(share(last.leader));
    }
    let of = format!("{VMS} VMs that poll each second");
    let goal = || Goal::at_most(1.0, 0.5);
    bench.measured(&format!("CPU of the node that sends digests of {of}"), "% of a core", &sender, goal());
    bench.measured(&format!("CPU of the leader that takes digests of {of}"), "% of a core", &taken, goal());
    let per_second = last.bytes as f64 / ROUND_S as f64 / 1024.0;
    bench.measured("digests, per second", "KiB", &[per_second], None);

    bench.progress("another leader gets everything");
    let other = BenchNode::new(&clock, true).await?;
    other.digests.take_lead(Revision(3));
    follower.digests.set_leader(Some("other~1"));
    let spent = exchange(&follower, &other).await?;
    let both = (spent.sender + spent.leader).as_secs_f64() * 1_000.0;
    bench.measured(
        &format!("CPU of everything to a new leader, {} parts", spent.digests),
        "ms",
        &[both],
        None,
    );
    Ok(())
}

/// All VMs poll the follower once; those of `begins` for the first time. Then the nodes talk.
async fn poll_one_second(
    clock: &SetClock,
    follower: &BenchNode,
    leader: &BenchNode,
    begins: Option<i64>,
) -> anyhow::Result<Spent> {
    let now = Timestamp::from_second(clock.0.fetch_add(1, Relaxed) + 1)?;
    let view = follower.views.newest();
    let scopes = (0..view.scope_slots()).filter_map(|slot| Some((slot, view.scope_in_slot(slot)?)));
    let polling = scopes.filter(|(slot, _)| begins.is_none_or(|second| (*slot as i64) % ROUND_S <= second));
    let mut reported = Vec::new();
    for (_, scope) in polling {
        scope.all_vm_polls().for_each(|slot| slot.record_poll(now, EventsVersion::NEWEST));
        if scope.polls.claim_report(now.as_second()) {
            reported.push(scope.scope.id());
        }
    }
    let before = usage::cpu(std::process::id())?;
    reported.iter().for_each(|scope| follower.delivery.record_scope_poll(scope, now));
    let noted = usage::cpu(std::process::id())?.saturating_sub(before);
    let mut spent = exchange(follower, leader).await?;
    spent.sender += noted;
    Ok(spent)
}

/// Carries digests until none is due.
async fn exchange(follower: &BenchNode, leader: &BenchNode) -> anyhow::Result<Spent> {
    let mut spent = Spent::default();
    loop {
        let before = usage::cpu(std::process::id())?;
        let next = follower.digests.next();
        let composed = usage::cpu(std::process::id())?;
        spent.sender += composed.saturating_sub(before);
        let Some((_, digest)) = next else { return Ok(spent) };
        spent.bytes += digest.len();
        spent.digests += 1;
        let answer = leader.digests.take("follower~1", &digest)?.context("the node does not lead")?;
        drop(digest);
        leader.engine.ping().await;
        let taken = usage::cpu(std::process::id())?;
        spent.leader += taken.saturating_sub(composed);
        follower.digests.acknowledge(&answer)?;
        spent.sender += usage::cpu(std::process::id())?.saturating_sub(taken);
    }
}

impl BenchNode {
    async fn new(clock: &Arc<SetClock>, leads: bool) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::clone(clock) as _;
        let settings = EngineSettings::default();
        let (engine, effects) = match leads {
            true => Engine::from_state(settings, fleet()?, Revision(1), clock.now()),
            false => Engine::follower(settings, fleet()?, Revision(1)),
        };
        let (views, store) = (Arc::new(Views::new(false)), Arc::new(MemoryStore::new()));
        let engine = runtime::start(
            engine,
            effects,
            store,
            Revision(0),
            Arc::clone(&views),
            Arc::clone(&clock),
            Arc::new(NoCommand),
        );
        engine.ping().await;
        let (delivery, _) = Delivery::new(Ledger::default());
        let (vm_log, views_too) = (Arc::new(VmLog::default()), Arc::clone(&views));
        let digests = Digests::new(views_too, engine.clone(), Arc::clone(&delivery), vm_log, clock);
        Ok(Self { engine, views, delivery, digests })
    }
}

fn fleet() -> anyhow::Result<State> {
    let mut loader = Loader::default();
    for (key, record) in (Fleet { scopes: VMS, per_scope: 1, callers: Callers::All }).records() {
        loader.take(prepare(key, record)?)?;
    }
    Ok(loader.finish())
}
