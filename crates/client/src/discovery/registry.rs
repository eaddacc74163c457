//! Where the platform's own sample publishes on Windows what it has found.

/// The value `ScheduledEventsIp` of `HKLM\Software\ScheduledEvents`, if somebody has set it.
pub fn published() -> Option<String> {
    let key = windows_registry::LOCAL_MACHINE.open("Software\\ScheduledEvents").ok()?;
    key.get_string("ScheduledEventsIp").ok().filter(|value| !value.trim().is_empty())
}
