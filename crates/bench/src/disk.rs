//! Baseline of the disk: sequential append and fsync, as fast as possible.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use crate::clock;

/// Bytes appended before each sync: a page, about the size of a small change.
const APPENDED: [u8; 4096] = [0x5A; 4096];

/// Syncs a second of a new file in this directory.
pub fn syncs_a_second(directory: &Path, span: Duration) -> anyhow::Result<f64> {
    let path = directory.join("syncs");
    let mut file = File::create(&path)?;
    let begin = clock::now();
    let mut syncs = 0;
    while begin.elapsed() < span {
        file.write_all(&APPENDED)?;
        file.sync_data().context("syncing a file")?;
        syncs += 1;
    }
    let seconds = begin.elapsed().as_secs_f64();
    std::fs::remove_file(&path)?;
    Ok(f64::from(syncs) / seconds)
}
