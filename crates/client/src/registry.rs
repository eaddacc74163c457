//! Values of the Windows registry.

use windows_registry::LOCAL_MACHINE;

/// The value `ScheduledEventsIp` of `HKLM\Software\ScheduledEvents`, where the platform's own sample publishes the
/// endpoint.
pub fn published_endpoint() -> Option<String> {
    text("Software\\ScheduledEvents", "ScheduledEventsIp")
}

/// The DNS host name. `COMPUTERNAME` is the NetBIOS name, cut to fifteen characters: two VMs of a scale set may share
/// it.
pub fn host_name() -> Option<String> {
    text("SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters", "Hostname")
}

fn text(key: &str, name: &str) -> Option<String> {
    let value = LOCAL_MACHINE.open(key).ok()?.get_string(name).ok()?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}
