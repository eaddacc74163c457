//! The exec driver: what becomes of commands that behave, and of those that hang, flood, fork away or vanish.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

#[path = "exec/runner.rs"]
mod runner;
#[path = "exec/service.rs"]
mod service;
#[path = "exec/virsh.rs"]
mod virsh;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Makes an executable script, at once and whole.
fn write_script(path: &Path, script: &str) {
    // Written elsewhere and moved: a file that is open for writing anywhere cannot be executed.
    let new = path.with_extension("new");
    std::fs::write(&new, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// How the command line of a script's shell reads in `/proc`. The service has the script's name in its own as well.
fn shell_of(script: &Path) -> String {
    format!("/bin/sh\0{}", script.display())
}
