//! Protected directory of the agent's configuration and journal: access for administrators only.
//!
//! The configuration's hooks run as LocalSystem, and every Windows user may create directories in ProgramData. A user
//! could create this one with a configuration in it, or as a link to a system directory. So the installation uses only
//! a directory that an installation created, and renames any other without opening it.
//!
//! It recognises its own directory by a mark: a UUID in a file that only administrators can read, with its hash in a
//! registry key that only they can write. The owner would also do, but reading it needs unsafe code. Permissions are
//! set with `icacls`, which is part of Windows.

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

/// Well-known SIDs of LocalSystem and Administrators; names depend on the language.
const SYSTEM: &str = "*S-1-5-18";
const ADMINISTRATORS: &str = "*S-1-5-32-544";
/// FILE_ATTRIBUTE_REPARSE_POINT: links and junctions.
const REPARSE_POINT: u32 = 0x400;
/// File with the mark, and its length: a UUID as text.
const MARK: &str = "installation";
const MARK_BYTES: u64 = 36;
/// Registry key and value with the mark's hash.
const KEY: &str = r"Software\notbefore";
const HASH: &str = "DirectoryMark";
/// Limit of renamed directories. More of them suggest an attack; an administrator must look.
const ASIDE_MAX: u32 = 20;

/// `%ProgramData%\notbefore`.
pub fn place() -> Result<PathBuf> {
    let data = std::env::var_os("ProgramData").context("this machine has no %ProgramData%")?;
    Ok(PathBuf::from(data).join("notbefore"))
}

/// Creates the directory with access for administrators only. An existing one that no installation created is renamed;
/// returns its new path.
pub fn make_private(dir: &Path) -> Result<Option<PathBuf>> {
    if is_ours(dir) {
        restrict_access(dir)?;
        return Ok(None);
    }
    let aside = move_aside(dir)?;
    // Fails if another user has just created it again.
    fs::create_dir(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    restrict_access(dir)?;
    let mut entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    if entries.next().is_some() {
        bail!(
            "another user wrote into {} during its creation; find out who, and install again",
            dir.display()
        );
    }
    mark(dir)?;
    Ok(aside)
}

/// Whether an installation created this directory.
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

/// Renames the directory without following links.
fn move_aside(dir: &Path) -> Result<Option<PathBuf>> {
    if is_missing(dir) {
        return Ok(None);
    }
    let names = (1..=ASIDE_MAX).map(|number| dir.with_extension(format!("found-{number}")));
    let Some(aside) = names.into_iter().find(|name| is_missing(name)) else {
        bail!("{} was created by another user, as were {ASIDE_MAX} before it; remove them", dir.display());
    };
    fs::rename(dir, &aside).with_context(|| {
        format!("{} was created by another user and cannot be renamed; remove it", dir.display())
    })?;
    Ok(Some(aside))
}

fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Restricts the directory and its future contents to LocalSystem and Administrators.
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
        bail!("icacls could not set the permissions of {}: {}", path.display(), said.trim());
    }
    Ok(())
}
