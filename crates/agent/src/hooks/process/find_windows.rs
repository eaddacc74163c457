//! Where a program is, on Windows, and whether it is one.
//!
//! A terminal finds `az.cmd` for `az`, and so do those who write rules; the system by itself finds `az.exe` and nothing else.
//! So programs are looked for here, and started by their whole path. What a terminal hands to another program by its ending
//! (`.ps1`, `.vbs`, `.py`) is none: the message says how to start it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::hooks::HookError;

/// The endings of what the system, or `cmd` for it, can start, in the order of a Windows where nobody has changed it.
const ENDINGS: [&str; 4] = ["com", "exe", "bat", "cmd"];

/// Finds a program as a terminal would, or says what is in its way.
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
        None => Err(HookError(format!("there is no program {name}"))),
    }
}

/// What the system is to be told to start.
pub fn to_start(name: &str) -> Result<OsString, HookError> {
    find(name).map(PathBuf::into_os_string)
}

/// The endings that a terminal tries, in its order: `PATHEXT` without what is not to be started.
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
