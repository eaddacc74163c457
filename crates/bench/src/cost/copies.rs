//! Where the poll is compiled: in one crate, whose optimisation level is then that of the poll.
//!
//! The guest server is generic over its platform, so the crate that starts it compiles it. If a second crate did, the
//! linker would choose one of the copies, perhaps that of a crate which is built small.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

/// The crate that starts the guest server.
const HOME: &str = "libnotbefore_service";
/// The loop of a worker, and the fast path of a poll.
const FUNCTIONS: [&str; 2] = ["guest::worker::Worker", "guest::fast_path::serve"];

/// Checks the libraries of the release build; false if a function is compiled in another place than its home.
pub fn check(root: &Path) -> anyhow::Result<bool> {
    let libraries = libraries(root)?;
    let mut good = true;
    for function in FUNCTIONS {
        let mut homes = Vec::new();
        for library in &libraries {
            if defines(library, function)? {
                homes.push(library.file_name().unwrap_or_default().to_string_lossy().into_owned());
            }
        }
        let is_home = |name: &String| name.split('-').next() == Some(HOME);
        let is_good = matches!(&homes[..], [one] if is_home(one));
        println!(
            "{function} is compiled in {}: {}",
            homes.join(", "),
            if is_good { "good" } else { "WRONG" }
        );
        if !is_good {
            println!(
                "  it must be compiled in {HOME} alone: another crate names GuestServer or awaits a function that does"
            );
        }
        good &= is_good;
    }
    Ok(good)
}

/// The libraries that the release binary is linked from, as cargo lists them.
fn libraries(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let build = ["build", "--release", "--locked", "--quiet", "-p", "notbefore", "--message-format", "json"];
    let built = Command::new(std::env::var_os("CARGO").as_deref().unwrap_or(OsStr::new("cargo")))
        .args(build)
        .current_dir(root)
        .output()
        .context("cannot run cargo")?;
    ensure!(built.status.success(), "the release build failed: {}", String::from_utf8_lossy(&built.stderr));
    let mut libraries = Vec::new();
    for line in built.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let message: Value = serde_json::from_slice(line)?;
        let files = message["filenames"].as_array().into_iter().flatten().filter_map(Value::as_str);
        libraries.extend(files.filter(|file| file.ends_with(".rlib")).map(PathBuf::from));
    }
    ensure!(
        libraries.iter().any(|library| library.to_string_lossy().contains(HOME)),
        "cargo lists no {HOME}"
    );
    Ok(libraries)
}

/// Whether a library has the code of a function: a name in its symbols that ends with the function's, or with its method `run`.
fn defines(library: &Path, function: &str) -> anyhow::Result<bool> {
    let nm = Command::new("nm").args(["--defined-only", "--demangle"]).arg(library).output();
    let nm = nm.context("cannot run nm, of Debian's binutils")?;
    let is_function = |line: &str| {
        let mut words = line.splitn(3, ' ').skip(1);
        let is_code = matches!(words.next(), Some("t" | "T" | "w" | "W"));
        let name = words.next().unwrap_or_default();
        is_code && name.contains(function) && (name.ends_with(function) || name.ends_with(">::run"))
    };
    Ok(String::from_utf8_lossy(&nm.stdout).lines().any(is_function))
}
