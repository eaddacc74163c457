//! What the agent handles, for people and programs: `/events`, `notbefore agent status`, the words of `/drainz`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::machine::State;
use crate::machine::tracked_event::{Approval, TrackedEvent};

/// One event, and how far the agent has come with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overview {
    /// Its id.
    pub id: String,
    /// What it does.
    pub r#type: String,
    /// Scheduled or Started.
    pub status: String,
    /// Not before this time without approval.
    pub not_before: Option<Timestamp>,
    /// The VMs it happens to.
    pub resources: Vec<String>,
    /// Whether this VM is one of them.
    pub mine: bool,
    /// When it was first seen.
    pub seen_at: Timestamp,
    /// Its rule.
    pub rule: Option<String>,
    /// How far the agent has come: unmatched, preparing, ready, withheld, over, restoring, stranded, done.
    pub phase: String,
    /// The step that runs or comes next.
    pub step: Option<String>,
    /// What has become of its approval.
    pub approval: String,
    /// Whether this VM gets no new work because of it.
    pub draining: bool,
}

/// Every event that the agent knows of.
pub fn of(state: &State) -> Vec<Overview> {
    state.events().iter().map(one).collect()
}

fn one(handled: &TrackedEvent) -> Overview {
    let event = &handled.event;
    let approval = match handled.approval() {
        Approval::Undecided => "not yet".to_owned(),
        Approval::Wanted { failures: 0, .. } => "due".to_owned(),
        Approval::Wanted { failures, .. } => format!("failed {failures} times, tried again"),
        Approval::Sent { .. } => "sent".to_owned(),
        Approval::Given => "given".to_owned(),
        Approval::Moot => "too late to matter".to_owned(),
        Approval::NotMine { reason } | Approval::Withheld { reason } => format!("none: {reason}"),
    };
    Overview {
        id: event.id.as_str().to_owned(),
        r#type: event.kind.as_str().to_owned(),
        status: event.status.as_str().to_owned(),
        not_before: event.not_before,
        resources: event.resources.clone(),
        mine: handled.mine,
        seen_at: handled.seen_at,
        rule: handled.rule().map(|rule| rule.name.clone()),
        phase: handled.phase_name().to_owned(),
        step: handled.step().map(|(_, step)| step.name.clone()),
        approval,
        draining: handled.is_draining(),
    }
}
