//! Tests of the service's parts over real sockets, real files and disks in memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bit_flips;
mod crash_images;
#[path = "../../../store/src/redb/tests/disk.rs"]
#[allow(dead_code, reason = "the store's own tests use the rest of it")]
mod disk;
mod disk_faults;
mod exec_driver;
mod export_import;
mod guest_server;
mod out_of_files;
mod used_data_dir;

use std::time::Duration;

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(20);
