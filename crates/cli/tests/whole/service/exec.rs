//! The exec driver: commands that succeed, hang, flood, fork or vanish.

mod lease;
mod runner;
mod service;
mod virsh;

use crate::support;
use std::path::Path;

/// Creates an executable script.
fn write_script(path: &Path, script: &str) {
    support::write_program(path, &format!("#!/bin/sh\n{script}\n"));
}

/// The command line of a script's shell in `/proc`. The service's command line also has the script's name.
fn shell_of(script: &Path) -> String {
    format!("/bin/sh\0{}", script.display())
}
