//! Program lookup on Windows.
//!
//! A terminal finds `az.cmd` for `az`, and authors of rules expect that; `CreateProcess` finds only `az.exe`. So this
//! module searches and programs are started by full path. Scripts that a terminal opens with another program (`.ps1`,
//! `.vbs`, `.py`) are rejected with a hint.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::hooks::HookError;

/// Executable extensions, in the order of the default `PATHEXT`.
const ENDINGS: [&str; 4] = ["com", "exe", "bat", "cmd"];

/// Finds a program as a terminal would, or explains what is wrong.
pub fn find(name: &str) -> Result<PathBuf, HookError> {
    let ending = Path::new(name).extension().map(|ending| ending.to_string_lossy().to_lowercase());
    let ending = ending.as_deref().unwrap_or_default();
    if ending == "ps1" {
        return Err(HookError(format!(
            "{name} is a script of PowerShell, which Windows does not start by itself; begin the command with \
             \"powershell\", \"-NoProfile\", \"-ExecutionPolicy\", \"Bypass\", \"-File\""
        )));
    }
    let endings = endings(&std::env::var("PATHEXT").unwrap_or_default());
    let places = super::places(name);
    let candidates = places.iter().flat_map(|place| {
        let itself = ENDINGS.contains(&ending).then(|| place.clone());
        itself.into_iter().chain(endings.iter().map(|ending| with_ending(place, ending)))
    });
    match candidates.into_iter().find(|file| file.is_file()) {
        Some(file) => Ok(file),
        None if places.iter().any(|place| place.is_file()) => Err(HookError(format!(
            "{name} is no program: Windows starts what ends in .exe, .com, .bat or .cmd; begin the command with the program \
             that reads it"
        ))),
        None => Err(HookError(format!("no program {name} found"))),
    }
}

/// The full path to start.
pub fn to_start(name: &str) -> Result<OsString, HookError> {
    find(name).map(PathBuf::into_os_string)
}

/// The extensions of `PATHEXT` that can be started, in its order.
fn endings(pathext: &str) -> Vec<&'static str> {
    let listed = pathext.split(';').filter_map(|ending| {
        let ending = ending.trim().trim_start_matches('.').to_lowercase();
        ENDINGS.into_iter().find(|known| *known == ending)
    });
    let listed: Vec<_> = listed.collect();
    if listed.is_empty() { ENDINGS.to_vec() } else { listed }
}

fn with_ending(place: &Path, ending: &str) -> PathBuf {
    let mut file = place.as_os_str().to_owned();
    file.push(".");
    file.push(ending);
    PathBuf::from(file)
}
