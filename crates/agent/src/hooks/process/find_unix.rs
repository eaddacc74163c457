//! Program lookup on Unix: by path, or in the directories of `PATH`.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::hooks::HookError;

/// Finds a program as `execvp` would, or explains what is wrong.
pub fn find(name: &str) -> Result<PathBuf, HookError> {
    let files: Vec<PathBuf> = super::places(name).into_iter().filter(|file| file.is_file()).collect();
    match files.iter().find(|file| is_executable(file)) {
        Some(file) => Ok(file.clone()),
        None if files.is_empty() => Err(HookError(format!("no program {name} found"))),
        None => Err(HookError(format!("{name} is not executable; chmod +x it"))),
    }
}

/// The name to start; on Unix `execvp` does the lookup.
pub fn to_start(name: &str) -> Result<OsString, HookError> {
    Ok(name.into())
}

fn is_executable(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}
