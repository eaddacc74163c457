//! Disk checks for the state directory. The journal must survive events, so these are rejected: file systems in
//! memory, and the ephemeral disk of an Azure VM, which a redeployment empties. Azure marks that disk with a warning
//! file at its root. Also tells disk errors, which may pass, from a wrong directory.

use std::io;
use std::path::{Path, PathBuf};

/// File at the root of Azure's ephemeral disk.
const WARNING: &str = "DATALOSS_WARNING_README.txt";

/// Why a directory cannot hold a journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsuitableDisk {
    /// `tmpfs` or `ramfs`.
    #[error("is in memory ({kind})")]
    InMemory { kind: String },
    /// On the ephemeral disk, mounted at `root`.
    #[error("is on the ephemeral disk ({} has {WARNING})", root.display())]
    Ephemeral { root: PathBuf },
}

/// Error code of a failing device.
#[cfg(unix)]
const DEVICE_ERROR: i32 = rustix::io::Errno::IO.raw_os_error();
#[cfg(not(unix))]
const DEVICE_ERROR: i32 = 1117;

/// Whether the disk itself is at fault: full, failing, or remounted read-only.
pub fn is_device_error(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let of_the_disk = [QuotaExceeded, ReadOnlyFilesystem, StorageFull].contains(&error.kind());
    of_the_disk || error.raw_os_error() == Some(DEVICE_ERROR)
}

/// Checks the disk that holds a directory. An unknown disk is accepted.
#[cfg(target_os = "linux")]
pub fn check(dir: &Path) -> Result<(), UnsuitableDisk> {
    use std::os::unix::fs::MetadataExt;
    let Ok(device) = std::fs::metadata(dir).map(|metadata| metadata.dev()) else { return Ok(()) };
    let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    check_mounts(&mounts, &device, |root| root.join(WARNING).exists())
}

/// On Windows the ephemeral disk is a drive of its own, with the warning file at its root.
#[cfg(not(target_os = "linux"))]
pub fn check(dir: &Path) -> Result<(), UnsuitableDisk> {
    let full = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let root: PathBuf = full.components().take(2).collect();
    let is_ephemeral = root.join(WARNING).exists();
    if is_ephemeral { Err(UnsuitableDisk::Ephemeral { root }) } else { Ok(()) }
}

/// Checks the mounts of a device in `mountinfo`. Matches by device number, not by path, so that symbolic links do not
/// matter.
#[cfg(any(target_os = "linux", test))]
fn check_mounts(mounts: &str, device: &str, warned: impl Fn(&Path) -> bool) -> Result<(), UnsuitableDisk> {
    for line in mounts.lines() {
        // 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let mut left = left.split(' ').skip(2);
        let (Some(of), Some(root), Some(at)) = (left.next(), left.next(), left.next()) else { continue };
        if of != device {
            continue;
        }
        let kind = right.split(' ').next().unwrap_or_default();
        if ["tmpfs", "ramfs"].contains(&kind) {
            return Err(UnsuitableDisk::InMemory { kind: kind.to_owned() });
        }
        let at = PathBuf::from(at.replace("\\040", " "));
        if root == "/" && warned(&at) {
            return Err(UnsuitableDisk::Ephemeral { root: at });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:5 / /run rw,nosuid shared:2 - tmpfs tmpfs rw,size=1k
24 22 8:17 / /mnt/with\\040room rw shared:3 - ext4 /dev/sdb1 rw
25 22 8:1 /srv /srv/again rw shared:4 - ext4 /dev/sda1 rw
";

    #[test]
    fn memory_and_the_ephemeral_disk_are_refused() {
        let warned = |root: &Path| root == Path::new("/mnt/with room");
        assert_eq!(check_mounts(MOUNTS, "8:1", warned), Ok(()));
        assert_eq!(
            check_mounts(MOUNTS, "0:5", warned),
            Err(UnsuitableDisk::InMemory { kind: "tmpfs".to_owned() })
        );
        assert_eq!(
            check_mounts(MOUNTS, "8:17", warned),
            Err(UnsuitableDisk::Ephemeral { root: "/mnt/with room".into() })
        );
        assert_eq!(check_mounts(MOUNTS, "9:9", warned), Ok(()), "unknown device is accepted");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn tmpfs_is_detected_on_kernel_mounts() {
        // Every Linux system mounts a tmpfs here.
        if Path::new("/dev/shm").is_dir() {
            assert!(matches!(check(Path::new("/dev/shm")), Err(UnsuitableDisk::InMemory { .. })));
        }
        assert_eq!(check(Path::new(env!("CARGO_MANIFEST_DIR"))), Ok(()));
    }
}
