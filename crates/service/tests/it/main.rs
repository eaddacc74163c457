//! Tests of parts of the service, with real sockets, real files and in-memory disks.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bit_flips;
mod cluster;
mod crash_images;
mod digests;
#[path = "../../../store/src/redb/tests/disk.rs"]
#[allow(dead_code, reason = "the store's tests use the rest of it")]
mod disk;
mod disk_faults;
mod exec_driver;
mod export_import;
mod guest_server;
mod lost_writes;
mod moved_clock;
mod nodes;
mod out_of_files;
mod used_data_dir;

use std::time::Duration;

/// Time limit of every wait in a test.
const PATIENCE: Duration = Duration::from_secs(20);
