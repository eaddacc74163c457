//! When an event that nobody has read is worth a warning: late enough that its VMs had their chance, early
//! enough that somebody can still do something.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::{Event, EventId, EventType, Phase, ScopePath};

use crate::names::first_of;

/// The most of its notice that is left when an event is warned of. An hour is time to act; a VM that is off for
/// some of the seven days before a predicted failure is no news.
const NOTICE_LEFT_MAX: SignedDuration = SignedDuration::from_hours(1);
/// How long guests have to poll after a start of the service before it complains of events from before.
const AFTER_START_MAX: SignedDuration = SignedDuration::from_secs(10);
/// How many names a warning spells out.
const NAMES_MAX: usize = 10;

/// VMs that have not read an event, and it nears its NotBefore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The event.
    pub event: EventId,
    /// Its type: not every version shows each.
    pub event_type: EventType,
    /// Its scope.
    pub scope: ScopePath,
    /// When it may start whether they have read it or not.
    pub not_before: Timestamp,
    /// The VMs, by name.
    pub vms: Vec<String>,
}

impl Warning {
    /// The VMs, for a log: the first of them, and how many more there are.
    pub fn names(&self) -> String {
        first_of(&self.vms, NAMES_MAX)
    }
}

/// When the unread event is to be warned of: when half of its notice is gone, and not earlier than an hour before
/// its NotBefore. An event from before the service's last start (`since`) is given a moment to be read first. None
/// for one that has started, or that somebody has approved: an approval speaks for all of its VMs.
pub fn due_at(event: &Event, since: Timestamp) -> Option<Timestamp> {
    let not_before = match &event.phase {
        Phase::Scheduled { not_before, approval: None, .. } => *not_before,
        Phase::Scheduled { approval: Some(_), .. } | Phase::Started { .. } => return None,
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
        assert_eq!(due(10, 0, -100), Some(at(10)), "a clock that was set back");
    }

    #[test]
    fn warning_waits_for_polls_after_start() {
        assert_eq!(due(0, 900, 800), Some(at(810)));
        assert_eq!(due(0, 900, 100), Some(at(450)), "there is time enough");
        assert_eq!(due(0, 30, 20), Some(at(25)), "and half of what is left, where that is little");
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
