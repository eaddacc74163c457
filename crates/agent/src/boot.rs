//! Which boot of the VM this is: what tells a reboot from a restart of the agent.
//!
//! Linux gives every boot an id of its own. Windows counts its boots in the registry, which is read with the system's own
//! `reg`. Where the system does not say, there is none, and the machine cannot tell.

/// The variable that stands in for the system's word, so that tests can reboot.
pub const VARIABLE: &str = "NOTBEFORE_AGENT_BOOT_ID";

/// This boot's id.
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
        r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters";
    let output = std::process::Command::new("reg").args(["query", KEY, "/v", "BootId"]).output().ok()?;
    number(&String::from_utf8_lossy(&output.stdout))
}

/// The value in what `reg query` prints: `    BootId    REG_DWORD    0x2f`.
#[cfg(any(windows, test))]
fn number(printed: &str) -> Option<String> {
    let line = printed.lines().find(|line| line.trim_start().starts_with("BootId"))?;
    line.split_whitespace().last().filter(|value| value.starts_with("0x")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_boot_is_found_in_what_reg_prints() {
        let printed = "\r\nHKEY_LOCAL_MACHINE\\SYSTEM\\...\r\n    BootId    REG_DWORD    0x2f\r\n\r\n";
        assert_eq!(number(printed).as_deref(), Some("0x2f"));
        assert_eq!(number("ERROR: The system was unable to find the key"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_says_which_boot_it_is() {
        assert!(system().is_some_and(|id| id.trim().len() == 36));
    }
}
