//! Whose state directory this is. A VM may be made of a copy of another's disk, as every member of a scale set may be:
//! what an agent remembered there is about the other VM, and whoever believed it would approve the other's events.
//!
//! The file `vm` says which VM the rest is of. An agent that finds another one there takes nothing over: the journal is
//! kept aside (by `journal.rs`), the memories beside it go, and then the directory is its own. In that order, so that one that
//! is interrupted begins again; and the file is replaced as a whole, since one that is empty says nothing, and the directory
//! would be anybody's.

use std::io;

use super::dir::Dir;
use crate::vm_id::VmId;

/// The file that names the VM.
pub const FILE: &str = "vm";
/// Where the name is that the platform gave this VM.
pub const NAME_FILE: &str = "name";
/// Where the endpoint is that answered the last time.
pub const ENDPOINT_FILE: &str = "endpoint";

/// Whether what is in the directory can be this VM's. Where nobody has said whose it is, it is.
pub fn is_ours(dir: &Dir, vm: &VmId) -> bool {
    written(dir).is_none_or(|written| vm.may_equal(&written))
}

/// Makes the directory this VM's, if it is not.
pub fn claim(dir: &Dir, vm: &VmId) -> io::Result<()> {
    let before = written(dir);
    let ours = match before.clone() {
        Some(before) if vm.may_equal(&before) => vm.clone().and(before),
        Some(_) => {
            for memory in [NAME_FILE, ENDPOINT_FILE] {
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

/// What cannot be read says nothing.
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
        // What is in the way of the draft fails as a full disk does, before the file itself is touched.
        let draft = place.path().join(".vm.new");
        fs::create_dir(&draft).unwrap();
        claim(&dir, &vm("copy")).unwrap_err();
        assert!(!is_ours(&dir, &vm("copy")) && is_ours(&dir, &vm("origin")));
        fs::remove_dir(&draft).unwrap();
        claim(&dir, &vm("copy")).unwrap();
        assert!(is_ours(&dir, &vm("copy")) && !draft.exists());
    }
}
