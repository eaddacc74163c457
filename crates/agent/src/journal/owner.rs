//! Owner of the state directory. A VM may be created from a copy of another VM's disk, as in a scale set. The journal
//! in the copy is about the other VM; using it would approve the other VM's events.
//!
//! The file `vm` holds the owner's id. An agent that finds another id there claims the directory: the journal is
//! renamed (`journal.rs`), the cached files and the history are deleted, then `vm` is replaced. This order makes an interrupted claim
//! start over. `vm` is replaced atomically, because an empty file names no owner and any VM would accept the
//! directory.

use std::io;

use super::dir::Dir;
use crate::vm_id::VmId;

/// The owner's [`VmId`].
pub const FILE: &str = "vm";
/// Cache of the VM's name as the platform last reported it.
pub const NAME_FILE: &str = "name";
/// Cache of the endpoint that last answered.
pub const ENDPOINT_FILE: &str = "endpoint";
/// History of events.
pub const HISTORY_FILE: &str = "history.jsonl";

/// Whether the directory can belong to this VM. Without a recorded owner it does.
pub fn is_ours(dir: &Dir, vm: &VmId) -> bool {
    written(dir).is_none_or(|written| vm.may_equal(&written))
}

/// Records this VM as the owner, unless it is already.
pub fn claim(dir: &Dir, vm: &VmId) -> io::Result<()> {
    let before = written(dir);
    let ours = match before.clone() {
        Some(before) if vm.may_equal(&before) => vm.clone().and(before),
        Some(_) => {
            for memory in [NAME_FILE, ENDPOINT_FILE, HISTORY_FILE] {
                dir.remove_if_there(memory)?;
            }
            vm.clone()
        }
        None => vm.clone(),
    };
    if before.as_ref() == Some(&ours) {
        return Ok(());
    }
    dir.replace(FILE, &serde_json::to_vec(&ours).map_err(io::Error::other)?)
}

/// None also for a file that cannot be read.
fn written(dir: &Dir) -> Option<VmId> {
    serde_json::from_slice(&dir.read(FILE).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn failed_claim_keeps_previous_owner() {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::make(place.path()).unwrap();
        let vm = |id: &str| -> VmId { serde_json::from_str(&format!("{{\"hardware\":\"{id}\"}}")).unwrap() };
        claim(&dir, &vm("origin")).unwrap();
        // A directory in place of the temporary file fails the write as a full disk does, before `vm` is touched.
        let draft = place.path().join(".vm.new");
        fs::create_dir(&draft).unwrap();
        claim(&dir, &vm("copy")).unwrap_err();
        assert!(!is_ours(&dir, &vm("copy")) && is_ours(&dir, &vm("origin")));
        fs::remove_dir(&draft).unwrap();
        claim(&dir, &vm("copy")).unwrap();
        assert!(is_ours(&dir, &vm("copy")) && !draft.exists());
    }
}
