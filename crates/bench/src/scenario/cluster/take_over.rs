//! The gap in changes that a client sees when the leader is killed, and when it is stopped in order.
//!
//! The client sends one change after the other through a follower. A refused change is sent again after a millisecond.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Unused;
use crate::clock;
use crate::cluster::Cluster;
use crate::report::{Goal, digits};
use crate::scenario::Bench;
use crate::service::Service;
use crate::stats::median;

/// Times that the leader is killed.
const KILLS: usize = 20;
/// Times that the leader is stopped in order.
const STOPS: usize = 10;

/// The client works for so long before the leader ends, and after a leader that ends in order has ended.
const AROUND: Duration = Duration::from_millis(300);

/// Pause after a refused change.
const RETRY_AFTER: Duration = Duration::from_millis(1);

/// Most time without a leader.
const PATIENCE: Duration = Duration::from_secs(60);

/// How the leader ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Killed,
    Stopped,
}

/// Ends the leader again and again; the node is started again each time.
pub fn measure(bench: &mut Bench, cluster: &mut Cluster, unused: &mut Unused) -> anyhow::Result<()> {
    let share = if bench.quick { 5 } else { 1 };
    let stops = gaps(bench, cluster, unused, Ending::Stopped, STOPS / share)?;
    let kills = gaps(bench, cluster, unused, Ending::Killed, KILLS / share)?;
    let worst = |gaps: &[f64]| gaps.iter().copied().fold(0.0, f64::max);
    let (killed, stopped) = (kills.len(), stops.len());
    bench.measured("gap in changes, leader killed, median", "s", &[median(&kills)], None);
    let goal = Goal::at_most(6.0, 5.0);
    bench.measured(&format!("gap in changes, leader killed, worst of {killed}"), "s", &[worst(&kills)], goal);
    let stops: Vec<f64> = stops.iter().map(|gap| gap * 1e3).collect();
    bench.measured("gap in changes, leader stopped with SIGTERM, median", "ms", &[median(&stops)], None);
    let what = format!("gap in changes, leader stopped with SIGTERM, worst of {stopped}");
    bench.measured(&what, "ms", &[worst(&stops)], Goal::at_most(100.0, 50.0));
    Ok(())
}

/// The same with events in most scopes, for which the next leader has to start timers. Also how long a node needs to start
/// then.
pub fn measure_with_events(
    bench: &mut Bench,
    cluster: &mut Cluster,
    unused: &mut Unused,
) -> anyhow::Result<()> {
    let events = unused.scopes.start;
    let stops = gaps(bench, cluster, unused, Ending::Stopped, bench.rounds().min(3))?;
    let stops: Vec<f64> = stops.iter().map(|gap| gap * 1e3).collect();
    let what = format!("gap in changes, leader stopped with SIGTERM, {events} live events");
    bench.measured(&what, "ms", &stops, None);
    let (leader, _) = cluster.roles()?;
    cluster.node(leader).terminate()?;
    let begun = clock::now();
    cluster.restart(leader)?;
    let what = format!("node started again, {events} live events");
    bench.measured(&what, "s", &[begun.elapsed().as_secs_f64()], None);
    Ok(())
}

/// Seconds of the gap at each end of a leader.
fn gaps(
    bench: &Bench,
    cluster: &mut Cluster,
    unused: &mut Unused,
    ending: Ending,
    count: usize,
) -> anyhow::Result<Vec<f64>> {
    let mut gaps = Vec::new();
    for round in 1..=count {
        let (place, [follower, _]) = cluster.roles()?;
        let (leader, follower) = cluster.pair(place, follower)?;
        let done = AtomicBool::new(false);
        let gap = std::thread::scope(|threads| {
            let client = threads.spawn(|| change(follower, unused, &done));
            clock::pause(AROUND);
            let ended = end(leader, ending);
            done.store(true, Relaxed);
            let changes = client.join().map_err(|_| anyhow::anyhow!("the client's thread died"))??;
            anyhow::Ok(longest_gap(&changes, ended?))
        })?;
        let what = match ending {
            Ending::Killed => "killed",
            Ending::Stopped => "stopped",
        };
        bench.progress(&format!("leader {what}, {round} of {count}: no change for {} ms", digits(gap * 1e3)));
        gaps.push(gap);
        cluster.restart(place)?;
    }
    Ok(gaps)
}

/// Ends the leader; returns when.
fn end(leader: &mut Service, ending: Ending) -> anyhow::Result<Instant> {
    let at = clock::now();
    match ending {
        Ending::Killed => leader.kill(),
        Ending::Stopped => {
            leader.terminate()?;
            clock::pause(AROUND);
        }
    }
    Ok(at)
}

/// Sends changes until one is acknowledged after `done`; returns the times of all acknowledgements.
fn change(follower: &Service, unused: &mut Unused, done: &AtomicBool) -> anyhow::Result<Vec<Instant>> {
    let mut client = follower.operator()?;
    let mut acknowledged = vec![clock::now()];
    let mut scope = unused.next()?;
    loop {
        let announcement = unused.announcement(scope);
        let body =
            json!({ "type": "Reboot", "vms": [announcement.vm], "not_before": announcement.not_before });
        let was_done = done.load(Relaxed);
        let answer = client.request("POST", "/v1/events", &body.to_string())?;
        let now = clock::now();
        match answer.status {
            200..300 => {
                acknowledged.push(now);
                if was_done {
                    return Ok(acknowledged);
                }
                scope = unused.next()?;
            }
            503 => {
                let since = acknowledged.last().map_or(Duration::ZERO, |last| now.duration_since(*last));
                anyhow::ensure!(since < PATIENCE, "no change for {PATIENCE:?}: {}", answer.body);
                if answer.body.contains("outcome_unknown") {
                    scope = unused.next()?;
                }
                clock::pause(RETRY_AFTER);
            }
            status => anyhow::bail!("a change was answered {status}: {}", answer.body),
        }
    }
}

/// Seconds of the longest time between two acknowledgements, of those that end after an instant.
fn longest_gap(acknowledged: &[Instant], after: Instant) -> f64 {
    let pairs = acknowledged.windows(2).filter(|pair| pair[1] >= after);
    pairs.map(|pair| pair[1].duration_since(pair[0]).as_secs_f64()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_is_the_longest_after_the_end() {
        let begun = clock::now();
        let at = |ms: u64| begun + Duration::from_millis(ms);
        let acknowledged = [0, 900, 950, 1_250, 1_300].map(at);
        assert_eq!(longest_gap(&acknowledged, at(960)), 0.3);
        assert_eq!(longest_gap(&acknowledged, at(100)), 0.9, "the change in flight counts");
        assert_eq!(longest_gap(&acknowledged, at(2_000)), 0.0);
    }
}
