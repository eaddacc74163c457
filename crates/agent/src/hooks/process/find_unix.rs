//! Where a program is, on Unix: as it is named, or in the directories of `PATH`.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::hooks::HookError;

/// Finds a program the way the system would, or says what is in its way.
pub fn find(name: &str) -> Result<PathBuf, HookError> {
    let files: Vec<PathBuf> = super::places(name).into_iter().filter(|file| file.is_file()).collect();
    match files.iter().find(|file| is_executable(file)) {
        Some(file) => Ok(file.clone()),
        None if files.is_empty() => Err(HookError(format!("there is no program {name}"))),
        None => Err(HookError(format!("{name} is not executable; chmod +x it"))),
    }
}

/// What the system is to be told to start: the name, for it finds programs itself and knows best.
pub fn to_start(name: &str) -> Result<OsString, HookError> {
    Ok(name.into())
}

fn is_executable(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}
