//! The directory of the agent's configuration and journal, for administrators alone.
//!
//! What stands in the configuration runs as the system, and every user of a Windows machine may make directories in
//! ProgramData: so an installation takes this one over, whoever has made it, and lets nobody else write there or read
//! the secrets that are kept there. `icacls` is part of Windows.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The system, and the administrators, by the numbers that they have in every language.
const SYSTEM: &str = "*S-1-5-18";
const ADMINISTRATORS: &str = "*S-1-5-32-544";

/// `%ProgramData%\notbefore`.
pub fn place() -> Result<PathBuf> {
    let data = std::env::var_os("ProgramData").context("this machine has no %ProgramData%")?;
    Ok(PathBuf::from(data).join("notbefore"))
}

/// Makes the directory, or takes over the one that is there, and all that is in it.
pub fn make_private(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let all = |who: &str| format!("{who}:(OI)(CI)F");
    icacls(dir, &["/setowner", ADMINISTRATORS, "/T", "/C", "/Q"])?;
    icacls(dir, &["/inheritance:r", "/grant:r", &all(SYSTEM), &all(ADMINISTRATORS), "/Q"])?;
    if std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        icacls(&dir.join("*"), &["/reset", "/T", "/C", "/Q"])?;
    }
    Ok(())
}

fn icacls(path: &Path, words: &[&str]) -> Result<()> {
    let output = Command::new("icacls").arg(path).args(words).output();
    let output = output.context("cannot run icacls, which is part of Windows")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("icacls could not keep others out of {}: {}", path.display(), said.trim());
    }
    Ok(())
}
