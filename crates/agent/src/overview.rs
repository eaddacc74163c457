//! Summary of tracked events for `/events`, `notbefore agent status` and `/drainz`.

use jiff::Timestamp;
use notbefore_wire::text::counted;
use serde::{Deserialize, Serialize};

use crate::machine::State;
use crate::machine::tracked_event::{Approval, End, Presence, STRANDED, TrackedEvent, WITHHELD};

/// [`Overview::approval`] of an event that no rule matches, now or later.
pub const NO_RULE: &str = "none: no rule matches";

/// [`Overview::status`] of a cancelled event.
const CANCELLED: &str = "Cancelled";

/// Beginning of [`Overview::approval`] while a failed approval waits to be sent again.
const FAILED: &str = "failed ";

/// A tracked event and its progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overview {
    pub id: String,
    pub r#type: String,
    /// Scheduled or Started; once the platform no longer lists it, Cancelled or Ended.
    pub status: String,
    /// Earliest start without approval; none once the platform no longer lists the event.
    pub not_before: Option<Timestamp>,
    /// Names of the affected VMs.
    pub resources: Vec<String>,
    /// Whether this VM is one of them.
    pub mine: bool,
    pub seen_at: Timestamp,
    /// Name of its rule.
    pub rule: Option<String>,
    /// unmatched, preparing, ready, withheld, over, restoring, stranded or done.
    pub phase: String,
    /// The running or next step, or the failed one that withholds the approval or the restore.
    pub step: Option<String>,
    /// State of the approval, in words.
    pub approval: String,
    /// Whether this VM gets no new work because of it: its rule drains, or the VM is stranded.
    pub draining: bool,
}

impl Overview {
    /// Whether the VM is not restored after the event, because a step failed.
    pub fn is_stranded(&self) -> bool {
        self.phase == STRANDED
    }

    /// Whether the approval has failed and is sent again.
    pub fn is_approval_failed(&self) -> bool {
        self.approval.starts_with(FAILED)
    }

    /// Whether the event is not approved, because a step failed.
    pub fn is_withheld(&self) -> bool {
        self.phase == WITHHELD
    }
}

pub fn of(state: &State) -> Vec<Overview> {
    state.events().iter().map(one).collect()
}

pub fn one(handled: &TrackedEvent) -> Overview {
    let event = &handled.event;
    let (status, not_before) = match handled.presence {
        Presence::Waiting { .. } | Presence::Started(_) => (event.status.as_str(), event.not_before),
        Presence::Gone(End::Cancelled) => (CANCELLED, None),
        Presence::Gone(End::Happened) => ("Ended", None),
    };
    let approval = match handled.approval() {
        Approval::Undecided if handled.is_unmatched_told => NO_RULE.to_owned(),
        Approval::Undecided if handled.is_waiting_for_another() => {
            "not yet: its rule no longer matches, and the steps are undone after another event".to_owned()
        }
        Approval::Undecided | Approval::Wanted { failures: 0, .. } if status == CANCELLED => {
            "none: the event was cancelled".to_owned()
        }
        Approval::Undecided => "not yet".to_owned(),
        Approval::Wanted { failures: 0, .. } => "due".to_owned(),
        Approval::Wanted { failures, .. } => format!("{FAILED}{}, tried again", counted(*failures, "time")),
        Approval::Sent { .. } => "sent".to_owned(),
        Approval::Given => "given".to_owned(),
        Approval::Moot => "too late to matter".to_owned(),
        Approval::NotMine { reason } | Approval::Withheld { reason } => format!("none: {reason}"),
    };
    Overview {
        id: event.id.as_str().to_owned(),
        r#type: event.kind.as_str().to_owned(),
        status: status.to_owned(),
        not_before,
        resources: event.resources.clone(),
        mine: handled.mine,
        seen_at: handled.seen_at,
        rule: handled.rule().map(|rule| rule.name.clone()),
        phase: handled.phase_name().to_owned(),
        step: handled
            .step()
            .map(|(_, step)| step)
            .or_else(|| handled.withholding_step())
            .map(|step| step.name.clone()),
        approval,
        draining: handled.is_draining() || handled.is_stranded(),
    }
}
