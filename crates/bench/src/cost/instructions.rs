//! Instructions of one poll in the service's own code, counted by callgrind; the kernel's are not among them.

use std::path::Path;

use anyhow::Context;

use super::{Mode, polled};
use crate::service::Binary;

/// No poll takes fewer: one that does was not counted.
const LEAST: f64 = 500.0;
/// How many polls the shorter run makes.
const POLLS: u32 = 2_000;

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

/// All instructions of a run.
fn counted(binary: &Binary, place: &Path, mode: Mode, polls: u32) -> anyhow::Result<f64> {
    let file = place.join("callgrind");
    let out = format!("--callgrind-out-file={}", file.display());
    polled(binary, &["valgrind", "--quiet", "--tool=callgrind", &out], place, mode, polls)?;
    let text = std::fs::read_to_string(&file).context("callgrind has written nothing; is it installed?")?;
    let sum = text.lines().rev().find_map(|line| line.strip_prefix("totals: "));
    let sum = sum.and_then(|rest| rest.split(' ').next()).and_then(|number| number.parse().ok());
    sum.context("callgrind has counted nothing")
}
