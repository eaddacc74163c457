//! Approvals: whether this agent gives one, and what becomes of it.

use std::time::Duration;

use notbefore_client::document::EventId;

use super::Turn;
use super::io::{ApprovalAnswer, FactKind};
use super::tracked_event::{Approval, Course, TrackedEvent, Undo};
use crate::rules::Approve;

/// How long an approval that did not get through rests, at first; it doubles each time, up to [`APPROVAL_REST_MAX`].
const APPROVAL_REST: Duration = Duration::from_millis(500);
/// The same for one that was refused though the event still waits: the platform has to change its mind.
const REFUSED_REST: Duration = Duration::from_secs(5);
/// The longest that an approval rests. Shorter than any notice but that of Preempt.
const APPROVAL_REST_MAX: Duration = Duration::from_secs(15);

impl Turn<'_> {
    /// There is nothing more to do until the event is over but to approve it, where that still matters.
    pub(super) fn ready(&mut self, index: usize, undo: Undo) {
        let handled = &mut self.state.events[index];
        let has_started = handled.is_started();
        let Some(course) = &mut handled.course else { return };
        course.set_ready(undo);
        // Prepared again after a boot, it was approved before.
        if course.approval == Approval::Undecided {
            course.approval = match has_started {
                true => Approval::Moot,
                false => Approval::Wanted { failures: 0, due: self.now.tick },
            };
        }
    }

    /// Why this agent does not approve an event that it is prepared for. Asked again whenever an approval is sent: the
    /// platform may have changed whom an event is for.
    pub(super) fn reason_not_to_approve(&self, handled: &TrackedEvent) -> Option<String> {
        let leader = handled.event.leader().unwrap_or_default();
        match handled.rule()?.approve {
            Approve::Never => Some("its rule says never".into()),
            Approve::WhenDone | Approve::Leader if !handled.mine => {
                Some("it is for other VMs to approve".into())
            }
            Approve::Leader if !self.setup.me.is(leader) => {
                Some(format!("{leader} is the first of its VMs, and approves"))
            }
            Approve::WhenDone | Approve::Leader => None,
        }
    }

    /// Takes in what became of an approval.
    pub(super) fn on_approval_answer(&mut self, event: &EventId, answer: ApprovalAnswer) {
        let now = self.now.tick;
        let Some(index) = self.state.events.iter().position(|handled| handled.event.id == *event) else {
            return;
        };
        let Some(course) = &mut self.state.events[index].course else { return };
        let Approval::Sent { failures } = course.approval else { return };
        let (reason, first) = match answer {
            ApprovalAnswer::Accepted => {
                course.approval = Approval::Given;
                return self.report(index, FactKind::Approved);
            }
            ApprovalAnswer::Moot => {
                course.approval = Approval::Moot;
                return self.report(index, FactKind::ApprovalMoot);
            }
            ApprovalAnswer::Refused { reason } => (reason, REFUSED_REST),
            ApprovalAnswer::Failed { reason } => (reason, APPROVAL_REST),
        };
        let again_in = first.saturating_mul(1 << failures.min(8)).min(APPROVAL_REST_MAX);
        course.approval =
            Approval::Wanted { failures: failures.saturating_add(1), due: now.saturating_add(again_in) };
        self.report(index, FactKind::ApprovalFailed { reason, again_in });
    }

    /// What could not be sent while the platform was silent is sent now.
    pub(super) fn send_approvals(&mut self) {
        let courses = self.state.events.iter_mut().filter_map(|handled| handled.course.as_mut());
        for Course { approval, .. } in courses {
            if let Approval::Wanted { due, .. } = approval {
                *due = self.now.tick;
            }
        }
    }
}
