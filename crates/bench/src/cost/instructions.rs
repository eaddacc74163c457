//! Instructions of one poll in the service's own code, counted by callgrind; the kernel's are not among them.

use std::path::Path;

use anyhow::Context;

use super::{Mode, polled};
use crate::service::Binary;

/// No poll takes fewer: one that does was not counted.
const LEAST: f64 = 500.0;
/// How many polls the shorter run makes.
const POLLS: u32 = 2_000;

/// The function that each thread of the guest listener runs, and no other.
const WORKER: &str = "notbefore_service::guest::worker::Worker<P>::run";

/// What a poll may take: some ten per cent above what it takes as this is written.
fn limit(mode: Mode) -> f64 {
    match mode {
        Mode::KeepAlive => 3_100.0,
        Mode::ConnectionEach => 4_100.0,
    }
}

/// Counts them and says whether they are within the limit.
pub fn hold(binary: &Binary, place: &Path, mode: Mode) -> anyhow::Result<bool> {
    let some = counted(binary, place, mode, POLLS)?;
    let more = counted(binary, place, mode, 2 * POLLS)?;
    let each = (more - some) / f64::from(POLLS);
    let limit = limit(mode);
    anyhow::ensure!(each > LEAST, "callgrind has not seen the polls of a {}: {each:.0}", mode.name());
    println!("instructions of a {}: {each:.0}, at most {limit:.0}", mode.name());
    if each > limit {
        println!("  that is more than the limit in crates/bench/src/cost/instructions.rs");
    }
    Ok(each <= limit)
}

/// The instructions of the guest listener's own threads in a run. What the others do meanwhile (the store writes, the clock
/// ticks) is not the poll's, and is more in one run than in the next.
fn counted(binary: &Binary, place: &Path, mode: Mode, polls: u32) -> anyhow::Result<f64> {
    let place = tempfile::tempdir_in(place)?;
    let out = format!("--callgrind-out-file={}", place.path().join("callgrind").display());
    let under = ["valgrind", "--quiet", "--tool=callgrind", "--separate-threads=yes", &out];
    polled(binary, &under, place.path(), mode, polls)?;
    let mut sum = None;
    for file in std::fs::read_dir(place.path())? {
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

/// All instructions of a thread, from the file that callgrind has written of it.
fn total(text: &str) -> anyhow::Result<f64> {
    let sum = text.lines().rev().find_map(|line| line.strip_prefix("totals: "));
    let sum = sum.and_then(|rest| rest.split(' ').next()).and_then(|number| number.parse().ok());
    sum.context("callgrind has counted nothing")
}
