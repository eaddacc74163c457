//! Approvals: the decision, and retries with exponential backoff.

use std::time::Duration;

use notbefore_client::document::EventId;

use super::Turn;
use super::io::{ApprovalAnswer, FactKind};
use super::tracked_event::{Approval, Course, TrackedEvent, Undo};
use crate::rules::Approve;

/// First delay after an approval that failed to send; doubles each time up to [`APPROVAL_REST_MAX`].
const APPROVAL_REST: Duration = Duration::from_millis(500);
/// First delay after a refused approval of an event that still waits; retries help only if the platform changes its
/// answer.
const REFUSED_REST: Duration = Duration::from_secs(5);
/// Longest delay between attempts. Shorter than any notice except Preempt's.
const APPROVAL_REST_MAX: Duration = Duration::from_secs(15);

impl Turn<'_> {
    /// Preparation is complete: wait for the end of the event, and approve it if that still matters.
    pub(super) fn ready(&mut self, index: usize, undo: Undo) {
        let handled = &mut self.state.events[index];
        let has_started = handled.is_started();
        let Some(course) = &mut handled.course else { return };
        course.set_ready(undo);
        // After a boot the event is prepared a second time and may be approved already.
        if course.approval == Approval::Undecided {
            course.approval = match has_started {
                true => Approval::Moot,
                false => Approval::Wanted { failures: 0, due: self.now.tick },
            };
        }
    }

    /// Why this agent does not approve an event that it is prepared for. Checked before every send, because the
    /// platform may change an event's resources.
    pub(super) fn reason_not_to_approve(&self, handled: &TrackedEvent) -> Option<String> {
        let leader = handled.event.leader().unwrap_or_default();
        if handled.event.is_advisory() {
            return Some("it is an advisory, which starts nothing".into());
        }
        match handled.rule()?.approve {
            Approve::Never => Some("its rule has approve = \"never\"".into()),
            Approve::WhenDone | Approve::Leader if !handled.mine => {
                Some("it is for other VMs to approve".into())
            }
            Approve::Leader if !self.setup.me.is(leader) => {
                Some(format!("{leader} is first of the event's VMs and approves it"))
            }
            Approve::WhenDone | Approve::Leader => None,
        }
    }

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

    /// Sends approvals that failed while the platform did not answer.
    pub(super) fn send_approvals(&mut self) {
        let courses = self.state.events.iter_mut().filter_map(|handled| handled.course.as_mut());
        for Course { approval, .. } in courses {
            if let Approval::Wanted { due, .. } = approval {
                *due = self.now.tick;
            }
        }
    }
}
