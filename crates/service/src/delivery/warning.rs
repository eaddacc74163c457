//! When to warn about an unread event: late enough for its VMs to poll, early enough for an operator to act.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::{Event, EventId, EventType, Phase, ScopePath};

use crate::names::first_of;

/// Longest time before NotBefore at which a warning is due. An hour is enough to act. With seven days of notice, a VM
/// that is off for a day is normal.
const NOTICE_LEFT_MAX: SignedDuration = SignedDuration::from_hours(1);
/// Time for guests to poll after a start of the service, before it warns about older events.
const AFTER_START_MAX: SignedDuration = SignedDuration::from_secs(10);
/// Maximum VM names in a warning.
const NAMES_MAX: usize = 10;

/// VMs that have not read an event that is close to its NotBefore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The event.
    pub event: EventId,
    /// Its type: some versions do not show every type.
    pub event_type: EventType,
    /// Its scope.
    pub scope: ScopePath,
    /// Its NotBefore: it may start then, read or not.
    pub not_before: Timestamp,
    /// Names of the VMs.
    pub vms: Vec<String>,
}

impl Warning {
    /// The VMs for a log line: the first names and the number of the others.
    pub fn names(&self) -> String {
        first_of(&self.vms, NAMES_MAX)
    }
}

/// When to warn about an unread event: after half of its notice, but at most an hour before its NotBefore. An event
/// from before the service's start (`since`) has extra time to be read. None if the event has started or is approved
/// (an approval is for all of its VMs), and for an advisory, which never starts.
pub fn due_at(event: &Event, since: Timestamp) -> Option<Timestamp> {
    let not_before = match &event.phase {
        Phase::Scheduled { not_before, approval: None, .. } => *not_before,
        Phase::Scheduled { approval: Some(_), .. } | Phase::Started { .. } | Phase::Advisory { .. } => {
            return None;
        }
    };
    let announced = event.announced_at()?;
    let half = |span: SignedDuration| span.max(SignedDuration::ZERO) / 2;
    let left = half(not_before.duration_since(announced)).min(NOTICE_LEFT_MAX);
    let by_notice = not_before.checked_sub(left).unwrap_or(not_before);
    let start_grace = half(not_before.duration_since(since)).min(AFTER_START_MAX);
    let reachable_from = match announced < since {
        true => notbefore_core::time::after(since, Duration::try_from(start_grace).unwrap_or_default()),
        false => announced,
    };
    Some(by_notice.max(reachable_from))
}

#[cfg(test)]
mod tests {
    use notbefore_core::{Cause, Run, StartReason};

    use super::super::tests::{approved, at, event, vm};
    use super::*;

    fn due(announced: i64, not_before: i64, since: i64) -> Option<Timestamp> {
        due_at(&event(1, Cause::HostReboot, &[vm(1)], at(announced), at(not_before)), at(since))
    }

    #[test]
    fn warning_is_due_at_half_notice_or_one_hour_left() {
        assert_eq!(due(0, 30, -100), Some(at(15)));
        assert_eq!(due(0, 900, -100), Some(at(450)));
        assert_eq!(due(0, 7 * 86_400, -100), Some(at(7 * 86_400 - 3_600)));
        assert_eq!(due(0, 0, -100), Some(at(0)));
        assert_eq!(due(10, 0, -100), Some(at(10)), "after the clock was set back");
    }

    #[test]
    fn warning_waits_for_polls_after_start() {
        assert_eq!(due(0, 900, 800), Some(at(810)));
        assert_eq!(due(0, 900, 100), Some(at(450)), "enough time left");
        assert_eq!(due(0, 30, 20), Some(at(25)), "half of the remaining time if that is short");
        assert_eq!(due(0, 30, 40), Some(at(40)));
    }

    #[test]
    fn approved_or_started_event_has_no_warning() {
        let mut one = event(1, Cause::HostReboot, &[vm(1)], at(0), at(900));
        one = approved(one);
        assert_eq!(due_at(&one, at(-1)), None);
        one.phase = Phase::Started { at: at(2), why: StartReason::Approved, run: Run::Manual };
        assert_eq!(due_at(&one, at(-1)), None);
    }

    #[test]
    fn warning_names_ten_vms_and_counts_rest() {
        let vms = (0..12).map(|n| format!("web-{n}")).collect();
        let warning = Warning {
            event: EventId(uuid::Uuid::nil()),
            event_type: EventType::Reboot,
            scope: "web".parse().unwrap(),
            not_before: at(0),
            vms,
        };
        assert!(warning.names().ends_with("web-8, web-9 and 2 more"), "{}", warning.names());
        assert_eq!(Warning { vms: vec!["a".into(), "b".into()], ..warning }.names(), "a, b");
    }
}
