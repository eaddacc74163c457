//! Boot id of the VM: tells a reboot from a restart of the agent.
//!
//! Linux has a random id per boot; Windows counts boots in the registry. Without either there is none, and the
//! machine cannot detect reboots.

/// Environment variable that overrides the boot id; tests use it to simulate a reboot.
pub const VARIABLE: &str = "NOTBEFORE_AGENT_BOOT_ID";

/// The id of the current boot.
pub fn id() -> Option<String> {
    let pretended = std::env::var(VARIABLE).ok();
    pretended.or_else(system).map(|id| id.trim().to_owned()).filter(|id| !id.is_empty())
}

#[cfg(not(windows))]
fn system() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

#[cfg(windows)]
fn system() -> Option<String> {
    const KEY: &str =
        r"SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters";
    let key = windows_registry::LOCAL_MACHINE.open(KEY).ok()?;
    key.get_u32("BootId").ok().map(|number| number.to_string())
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_id_is_read_on_linux() {
        assert!(system().is_some_and(|id| id.trim().len() == 36));
    }
}
