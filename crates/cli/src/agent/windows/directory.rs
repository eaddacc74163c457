//! The directory of the agent's configuration and journal, for administrators alone.
//!
//! What stands in the configuration runs as the system, and every user of a Windows machine may make directories in
//! ProgramData: one of this name with a configuration in it, or one that leads to a directory of the system's. So an
//! installation goes on with no directory but one that an installation has made, and moves any other aside, unopened.
//!
//! It knows its own by a mark: a number in a file that only administrators can read, whose hash is in a part of the registry
//! that only they can write. Who owns a directory would say it as well, but takes unsafe code to find out. `icacls`, which
//! keeps others out, is part of Windows.

use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::windows::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use uuid::Uuid;
use windows_registry::LOCAL_MACHINE;

/// The system, and the administrators, by the numbers that they have in every language.
const SYSTEM: &str = "*S-1-5-18";
const ADMINISTRATORS: &str = "*S-1-5-32-544";
/// Of what leads elsewhere: FILE_ATTRIBUTE_REPARSE_POINT.
const REPARSE_POINT: u32 = 0x400;
/// The file with the mark, and what may be in it: a UUID as text.
const MARK: &str = "installation";
const MARK_BYTES: u64 = 36;
/// Where the mark's hash is.
const KEY: &str = r"Software\notbefore";
const HASH: &str = "DirectoryMark";
/// How many directories of others are kept aside. Whoever makes more wants to keep us from installing, and then somebody
/// should look.
const ASIDE_MAX: u32 = 20;

/// `%ProgramData%\notbefore`.
pub fn place() -> Result<PathBuf> {
    let data = std::env::var_os("ProgramData").context("this machine has no %ProgramData%")?;
    Ok(PathBuf::from(data).join("notbefore"))
}

/// Sees to it that the directory is there and administrators' alone. What is there and was made by somebody else is moved
/// aside; gives where that is then.
pub fn make_private(dir: &Path) -> Result<Option<PathBuf>> {
    if is_ours(dir) {
        restrict_access(dir)?;
        return Ok(None);
    }
    let aside = move_aside(dir)?;
    // If it is there again, somebody has been quick.
    fs::create_dir(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    restrict_access(dir)?;
    let mut entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    if entries.next().is_some() {
        bail!(
            "somebody has put something into {} while it was made; see who, and install again",
            dir.display()
        );
    }
    mark(dir)?;
    Ok(aside)
}

/// Whether an installation has made this directory.
fn is_ours(dir: &Path) -> bool {
    let plain = |found: Metadata| found.is_dir() && found.file_attributes() & REPARSE_POINT == 0;
    if !fs::symlink_metadata(dir).is_ok_and(plain) {
        return false;
    }
    let mut mark = String::new();
    let read = File::open(dir.join(MARK)).and_then(|file| file.take(MARK_BYTES).read_to_string(&mut mark));
    let known = LOCAL_MACHINE.open(KEY).and_then(|key| key.get_string(HASH));
    read.is_ok() && known.is_ok_and(|known| known == hash(&mark))
}

fn mark(dir: &Path) -> Result<()> {
    let mark = Uuid::new_v4().to_string();
    fs::write(dir.join(MARK), &mark).with_context(|| format!("cannot write to {}", dir.display()))?;
    let known = LOCAL_MACHINE.create(KEY).and_then(|key| key.set_string(HASH, hash(&mark)));
    known.context("cannot write to the registry; run this as an administrator")
}

fn hash(mark: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(mark))
}

/// Gives what is there another name, wherever it leads.
fn move_aside(dir: &Path) -> Result<Option<PathBuf>> {
    if is_missing(dir) {
        return Ok(None);
    }
    let names = (1..=ASIDE_MAX).map(|number| dir.with_extension(format!("found-{number}")));
    let Some(aside) = names.into_iter().find(|name| is_missing(name)) else {
        bail!("{} was made by somebody else, as were {ASIDE_MAX} before it; remove them", dir.display());
    };
    fs::rename(dir, &aside).with_context(|| {
        format!("{} was made by somebody else, and cannot be moved aside; remove it", dir.display())
    })?;
    Ok(Some(aside))
}

fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Lets nobody but the system and administrators into the directory and what will be made in it.
fn restrict_access(dir: &Path) -> Result<()> {
    let all = |who: &str| format!("{who}:(OI)(CI)F");
    icacls(dir, &["/setowner", ADMINISTRATORS, "/L", "/Q"])?;
    icacls(dir, &["/inheritance:r", "/grant:r", &all(SYSTEM), &all(ADMINISTRATORS), "/L", "/Q"])
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
