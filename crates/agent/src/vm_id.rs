//! Stable identity of a VM, independent of its name; tells a VM from a clone of its disk.
//!
//! - The hardware UUID (SMBIOS) is best: unique per VM, kept through reboots and redeployments, different in a clone.
//!   On Linux only root can read it.
//! - The system id (`/etc/machine-id`, `MachineGuid`) is readable by all users, but clones of an image that was not
//!   generalised share it. It decides where no hardware UUID is known.
//! - If neither is known, the VM counts as the same: this agent has to restore services that it stopped.

use serde::{Deserialize, Serialize};

/// Environment variable that overrides the hardware UUID; tests use it to simulate a copied disk.
pub const VARIABLE: &str = "NOTBEFORE_AGENT_VM_ID";

/// The known ids of a VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmId {
    hardware: Option<String>,
    system: Option<String>,
}

impl VmId {
    /// Reads the ids of this VM.
    pub fn detect() -> VmId {
        let known = |id: Option<String>| id.map(|id| id.trim().to_lowercase()).filter(|id| !id.is_empty());
        VmId { hardware: known(std::env::var(VARIABLE).ok().or_else(hardware)), system: known(system()) }
    }

    /// Whether both ids can belong to the same VM.
    pub fn may_equal(&self, other: &VmId) -> bool {
        let same = |(here, there): (&String, &String)| here == there || is_swapped(here, there);
        let hardware = self.hardware.as_ref().zip(other.hardware.as_ref()).map(same);
        let system = self.system.as_ref().zip(other.system.as_ref()).map(same);
        hardware.or(system).unwrap_or(true)
    }

    /// Fills missing ids from `other`: a later reader may not run as root and needs the hardware UUID from the file.
    pub fn and(self, other: VmId) -> VmId {
        VmId { hardware: self.hardware.or(other.hardware), system: self.system.or(other.system) }
    }
}

/// Whether two UUIDs differ only in the byte order of their first three groups. SMBIOS versions disagree on that
/// order, and a redeployment may bring newer firmware.
fn is_swapped(uuid: &str, other: &str) -> bool {
    let turned = |(place, group): (usize, &str)| match place {
        0..=2 => group.as_bytes().rchunks(2).map(String::from_utf8_lossy).collect::<String>(),
        _ => group.to_owned(),
    };
    let groups: Vec<String> = uuid.split('-').enumerate().map(turned).collect();
    groups.len() == 5 && groups.join("-") == other
}

#[cfg(not(windows))]
fn hardware() -> Option<String> {
    std::fs::read_to_string("/sys/class/dmi/id/product_uuid").ok()
}

#[cfg(not(windows))]
fn system() -> Option<String> {
    std::fs::read_to_string("/etc/machine-id").ok()
}

/// The SMBIOS UUID is not read on Windows; `sysprep` gives a generalised system a new `MachineGuid`.
#[cfg(windows)]
fn hardware() -> Option<String> {
    None
}

#[cfg(windows)]
fn system() -> Option<String> {
    let key = windows_registry::LOCAL_MACHINE.open(r"SOFTWARE\Microsoft\Cryptography").ok()?;
    key.get_string("MachineGuid").ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(hardware: &str, system: &str) -> VmId {
        let known = |id: &str| Some(id.to_owned()).filter(|id| !id.is_empty());
        VmId { hardware: known(hardware), system: known(system) }
    }

    #[test]
    fn vm_identity_prefers_hardware_then_system_id() {
        assert!(!id("a", "same").may_equal(&id("b", "same")), "image was not generalised");
        assert!(id("a", "new").may_equal(&id("a", "old")), "system id was changed");
        assert!(!id("", "a").may_equal(&id("x", "b")));
        assert!(id("", "a").may_equal(&id("x", "a")), "not read as root");
        assert!(id("", "").may_equal(&id("x", "a")) && id("x", "").may_equal(&id("", "a")));
        assert_eq!(id("", "a").and(id("x", "b")), id("x", "a"));
    }

    #[test]
    fn byte_swapped_uuid_is_equal() {
        let (one, other) = ("12345678-90ab-cdef-1122-334455667788", "78563412-ab90-efcd-1122-334455667788");
        assert!(id(one, "").may_equal(&id(other, "")));
        assert!(!id(one, "").may_equal(&id("78563412-ab90-efcd-1122-334455667789", "")));
    }
}
