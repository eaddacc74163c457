//! Plays thousands of histories from a fixed seed; see the crate docs.
//!
//! `NOTBEFORE_HISTORIES` and `NOTBEFORE_CLUSTER_HISTORIES` are their numbers, `NOTBEFORE_SEED` is the seed. They are split into a fixed number of parts, so
//! that the same histories are played on any number of processors.

use notbefore_sim::Stats;
use notbefore_sim::generate::{Failure, search, search_clusters};

/// Enough to combine every pair of faults many times, and few enough to run for every change.
const HISTORIES: u32 = 12_000;
/// Histories of two or three nodes.
const CLUSTER_HISTORIES: u32 = 6_000;
const SEED: u64 = 20_160_919;
const PARTS: u64 = 4;

fn setting<T: std::str::FromStr>(name: &str, usual: T) -> T {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => usual,
    }
}

/// Plays histories in parts, and returns the sum of their statistics.
fn play_all(histories: u32, search: fn(u64, u32) -> Result<Stats, Box<Failure>>) -> Stats {
    let seed = setting("NOTBEFORE_SEED", SEED);
    let each = histories.div_ceil(PARTS as u32);
    let parts: Vec<_> = (0..PARTS)
        .map(|part| std::thread::spawn(move || search(seed.wrapping_mul(PARTS).wrapping_add(part), each)))
        .collect();
    let mut sum = Stats::default();
    let mut failures = Vec::new();
    for part in parts {
        match part.join().expect("a part panicked") {
            Ok(stats) => sum = sum + stats,
            Err(failed) => failures.push(failed.to_string()),
        }
    }
    assert!(failures.is_empty(), "seed {seed}: {}", failures.join("\n\nand in another part: "));
    println!("{} histories: {sum:?}", each * PARTS as u32);
    sum
}

#[test]
fn every_history_of_a_cluster_keeps_every_invariant() {
    let histories = setting("NOTBEFORE_CLUSTER_HISTORIES", CLUSTER_HISTORIES);
    let sum = play_all(histories, search_clusters);
    // The limits are for the usual number of histories.
    let share = |count: u64| count * u64::from(histories) / u64::from(CLUSTER_HISTORIES);
    for (fault, count) in sum.cluster_faults.all() {
        assert!(count >= share(500), "too few {fault}: {sum:?}");
    }
    assert!(sum.take_overs >= share(2_000), "too few nodes take the lead: {sum:?}");
    assert!(sum.late_landings >= share(500) && sum.landed_late > 0, "too few late landings: {sum:?}");
    assert!(sum.resyncs >= share(500), "too few snapshots: {sum:?}");
    assert!(sum.rewrites >= share(500), "too few unknown outcomes are decided: {sum:?}");
    assert!(sum.granted_by_followers >= share(1_000), "too few requests through followers: {sum:?}");
    assert!(sum.digests >= share(50_000), "too few digests of polls: {sum:?}");
    assert!(sum.unknown_by_followers >= share(500), "too few answers are missing: {sum:?}");
    assert!(sum.sent_ahead >= share(500), "too few changes are written in parts: {sum:?}");
    assert!(sum.commits > u64::from(histories) * 5, "too few commits: {sum:?}");
    assert!(sum.events > u64::from(histories), "too few events: {sum:?}");
    assert!(sum.commands > u64::from(histories) / 4, "too few commands: {sum:?}");
}

#[test]
fn every_history_keeps_every_invariant() {
    let histories = setting("NOTBEFORE_HISTORIES", HISTORIES);
    let sum = play_all(histories, search);
    // Uneventful histories would keep every invariant too.
    assert!(sum.commits > u64::from(histories) * 5, "too few commits: {sum:?}");
    assert!(sum.events > u64::from(histories), "too few events: {sum:?}");
    assert!(sum.commands > u64::from(histories) / 2, "too few commands: {sum:?}");
    assert!(sum.host_commands > u64::from(histories) / 50, "too few commands of hosts: {sum:?}");
    assert!(sum.host_starts > u64::from(histories) / 20, "too few host operations: {sum:?}");
    assert!(sum.host_waits > u64::from(histories) / 20, "too few host operations wait: {sum:?}");
    assert!(sum.clock_jumps > u64::from(histories) / 2, "too few clocks jump: {sum:?}");
    assert!(sum.clock_holds > u64::from(histories) / 10, "too few events are held: {sum:?}");
    assert!(sum.granted > u64::from(histories) && sum.refused > 0 && sum.faults > u64::from(histories));
}
