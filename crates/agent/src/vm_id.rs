//! Which VM this is, whatever it is called: what tells a VM from another that was made of a copy of its disk.
//!
//! The hardware says so best: platforms give every VM a UUID of its own, which stays with it through reboots and
//! redeployments and is another in a copy. Only root can read it on Linux. The system's own id is there for everybody, but
//! an image that was not cleaned has it in all its copies: it decides where nothing better is known. Where neither
//! is known, it is taken for the same VM: what was stopped has to be started again, and by whom but this agent.

use serde::{Deserialize, Serialize};

/// The variable that stands in for the hardware's word, so that tests can copy disks.
pub const VARIABLE: &str = "NOTBEFORE_AGENT_VM_ID";

/// What is known of a VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmId {
    hardware: Option<String>,
    system: Option<String>,
}

impl VmId {
    /// This VM's.
    pub fn detect() -> VmId {
        let known = |id: Option<String>| id.map(|id| id.trim().to_lowercase()).filter(|id| !id.is_empty());
        VmId { hardware: known(std::env::var(VARIABLE).ok().or_else(hardware)), system: known(system()) }
    }

    /// Whether both can be the same VM.
    pub fn may_equal(&self, other: &VmId) -> bool {
        let same = |(here, there): (&String, &String)| here == there || is_swapped(here, there);
        let hardware = self.hardware.as_ref().zip(other.hardware.as_ref()).map(same);
        let system = self.system.as_ref().zip(other.system.as_ref()).map(same);
        hardware.or(system).unwrap_or(true)
    }

    /// This, and what only the other knows: whoever reads it later need not be root.
    pub fn and(self, other: VmId) -> VmId {
        VmId { hardware: self.hardware.or(other.hardware), system: self.system.or(other.system) }
    }
}

/// Whether one is the other with its first three groups turned round, byte by byte. SMBIOS has changed its mind about
/// their order, and a VM whose firmware is a newer one after a redeployment is the same VM.
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

/// Windows keeps what SMBIOS says to itself, but gives a system that was generalised another id.
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
        assert!(!id("a", "same").may_equal(&id("b", "same")), "an image that was not cleaned");
        assert!(id("a", "new").may_equal(&id("a", "old")), "somebody gave the system another id");
        assert!(!id("", "a").may_equal(&id("x", "b")));
        assert!(id("", "a").may_equal(&id("x", "a")), "who asks is not root");
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
