//! Instructions of one poll in user space, counted by callgrind.

use std::path::Path;

use anyhow::Context;

use super::{Mode, polled};
use crate::service::Binary;

/// Lower limit: fewer means that the poll was not counted.
const LEAST: f64 = 500.0;
/// Number of polls in the shorter run.
const POLLS: u32 = 2_000;

/// The function that only the guest listener's threads run.
const WORKER: &str = "notbefore_service::guest::worker::Worker<P>::run";

/// Limits: about ten per cent above the current values.
fn limit(mode: Mode) -> f64 {
    match mode {
        Mode::KeepAlive => 2_800.0,
        Mode::ConnectionEach => 3_650.0,
    }
}

/// Counts and compares with the limit.
pub fn check_limit(binary: &Binary, dir: &Path, mode: Mode) -> anyhow::Result<bool> {
    let some = counted(binary, dir, mode, POLLS)?;
    let more = counted(binary, dir, mode, 2 * POLLS)?;
    let each = (more - some) / f64::from(POLLS);
    let limit = limit(mode);
    anyhow::ensure!(each > LEAST, "callgrind has not seen the polls of a {}: {each:.0}", mode.name());
    println!("instructions of a {}: {each:.0}, at most {limit:.0}", mode.name());
    if each > limit {
        println!("  that is more than the limit in crates/bench/src/cost/instructions.rs");
    }
    Ok(each <= limit)
}

/// Instructions of the guest listener's threads in a run. Other threads (store, clock) vary between runs and are
/// excluded.
fn counted(binary: &Binary, dir: &Path, mode: Mode, polls: u32) -> anyhow::Result<f64> {
    let dir = tempfile::tempdir_in(dir)?;
    let out = format!("--callgrind-out-file={}", dir.path().join("callgrind").display());
    let under = ["valgrind", "--quiet", "--tool=callgrind", "--separate-threads=yes", &out];
    polled(binary, &under, dir.path(), mode, polls)?;
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
