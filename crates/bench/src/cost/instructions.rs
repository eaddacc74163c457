//! Instructions of one poll in user space, counted by callgrind.

use std::path::Path;

use anyhow::Context;

use super::{Mode, Store, polled};
use crate::etcd::Etcd;
use crate::service::Binary;

/// Lower limit: fewer means that the poll was not counted.
const LEAST: f64 = 500.0;
/// Number of polls in the shorter run.
const POLLS: u32 = 2_000;

/// Times that a cost above the limit is counted.
const COUNTS_MAX: usize = 3;

/// The function that only the guest listener's threads run.
const WORKER: &str = "notbefore_service::guest::worker::Worker<P>::run";

/// Limits: about ten per cent above the current values.
fn limit(mode: Mode) -> f64 {
    match mode {
        Mode::KeepAlive => 2_500.0,
        // How many connections one wake-up serves depends on what else the machine does: 2,750 to 4,200 were seen.
        Mode::ConnectionEach => 4_600.0,
    }
}

/// Largest difference between a node of a cluster and a single service, as a share. Both run the same code; counts vary
/// by one per cent between runs.
const DIFFERENCE_MAX: f64 = 0.03;

/// Counts and compares with the limit: one service, and a node on etcd, which must cost the same. Only sequential polls
/// are compared with each other: their number per wake-up is always one.
pub fn check_limits(binary: &Binary, dir: &Path, mode: Mode, etcd: &Etcd) -> anyhow::Result<bool> {
    let limit = limit(mode);
    let alone = least(limit, || each(binary, dir, (Store::Redb, mode)))?;
    let node = least(limit, || each(binary, dir, (Store::Etcd(etcd), mode)))?;
    println!(
        "instructions of a {}: {alone:.0}, at a node of a cluster {node:.0}, at most {limit:.0}",
        mode.name()
    );
    let is_within = alone <= limit && node <= limit;
    if !is_within {
        println!("  that is more than the limit in crates/bench/src/cost/instructions.rs");
    }
    let is_same = mode == Mode::ConnectionEach || (node - alone).abs() <= alone * DIFFERENCE_MAX;
    if !is_same {
        println!("  a node of a cluster does something else for a poll than a single service");
    }
    Ok(is_within && is_same)
}

/// The smallest of up to three counts; one is enough if it is within the limit. What else the machine does only adds to
/// the number of wake-ups.
fn least(limit: f64, mut count: impl FnMut() -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    let mut least = count()?;
    for _ in 1..COUNTS_MAX {
        if least > limit {
            least = least.min(count()?);
        }
    }
    Ok(least)
}

/// Instructions of one poll.
fn each(binary: &Binary, dir: &Path, of: (Store<'_>, Mode)) -> anyhow::Result<f64> {
    let some = counted(binary, dir, of, POLLS)?;
    let more = counted(binary, dir, of, 2 * POLLS)?;
    let each = (more - some) / f64::from(POLLS);
    let (store, mode) = (of.0.name(), of.1.name());
    anyhow::ensure!(each > LEAST, "callgrind has not seen the polls of a {mode}{store}: {each:.0}");
    Ok(each)
}

/// Instructions of the guest listener's threads in a run. Other threads (store, clock) vary between runs and are
/// excluded.
fn counted(binary: &Binary, dir: &Path, of: (Store<'_>, Mode), polls: u32) -> anyhow::Result<f64> {
    let dir = tempfile::tempdir_in(dir)?;
    let out = format!("--callgrind-out-file={}", dir.path().join("callgrind").display());
    let under = ["valgrind", "--quiet", "--tool=callgrind", "--separate-threads=yes", &out];
    polled(binary, &under, dir.path(), of, polls)?;
    let mut sum = None;
    for file in std::fs::read_dir(dir.path())? {
        let file = file?;
        if file.file_type()?.is_file() {
            let text = std::fs::read_to_string(file.path())?;
            if text.lines().any(|line| line.ends_with(WORKER)) {
                *sum.get_or_insert(0.0) += total(&text)?;
            }
        }
    }
    sum.context("callgrind has seen no thread of the guest listener; is it installed?")
}

/// All instructions of a thread, from callgrind's output file.
fn total(text: &str) -> anyhow::Result<f64> {
    let sum = text.lines().rev().find_map(|line| line.strip_prefix("totals: "));
    let sum = sum.and_then(|rest| rest.split(' ').next()).and_then(|number| number.parse().ok());
    sum.context("callgrind has counted nothing")
}
