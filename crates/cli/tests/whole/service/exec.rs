//! The exec driver: what becomes of commands that behave, and of those that hang, flood, fork away or vanish.

mod runner;
mod service;
mod virsh;

use crate::support;
use std::path::Path;

/// Makes an executable script.
fn write_script(path: &Path, script: &str) {
    support::write_program(path, &format!("#!/bin/sh\n{script}\n"));
}

/// How the command line of a script's shell reads in `/proc`. The service has the script's name in its own as well.
fn shell_of(script: &Path) -> String {
    format!("/bin/sh\0{}", script.display())
}
