//! What the registry of Windows says of this machine.

use windows_registry::LOCAL_MACHINE;

/// The value `ScheduledEventsIp` of `HKLM\Software\ScheduledEvents`, where the platform's own sample publishes the endpoint
/// that it has found.
pub fn published_endpoint() -> Option<String> {
    text("Software\\ScheduledEvents", "ScheduledEventsIp")
}

/// The host name, as DNS knows it. The variable `COMPUTERNAME` is the name of an older protocol, which ends after fifteen
/// characters: two VMs of a scale set may have the same.
pub fn host_name() -> Option<String> {
    text("SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters", "Hostname")
}

fn text(key: &str, name: &str) -> Option<String> {
    let value = LOCAL_MACHINE.open(key).ok()?.get_string(name).ok()?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}
