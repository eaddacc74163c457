//! Events as state machines: the part of an operation in one scope and one update domain, atomic for its resources.
//!
//! Each phase holds only the data that exists in it: NotBefore and approval while Scheduled, reason and run once
//! Started. An ended event leaves the scope and becomes a [`Past`]. Phases never go back. An Advisory is a phase of its
//! own: such an event never starts, blocks nothing and ends by a cancellation.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::cause::{Cause, Source};
use crate::exec::ExecRun;
use crate::fact::{EventFact, Recorded};
use crate::ids::{EventId, Name, OperationId, ScopeId, VmId};
use crate::operation::Release;
use crate::scope::MemberState;

/// Limit on the facts in a trail. An event has a handful; a driver that is retried for days must
/// not grow the scope's record without bound. The first and the newest facts are kept.
pub const TRAIL_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The same in every phase.
    pub id: EventId,
    pub operation: OperationId,
    pub cause: Cause,
    /// All resources are in it.
    pub update_domain: u32,
    /// In the fixed order that every reader sees.
    pub resources: Vec<Resource>,
    /// Expected interruption in seconds; −1 if unknown.
    pub duration_s: i32,
    /// Shown to guests.
    pub description: String,
    pub driver: DriverKind,
    /// Whether its approval alone lets it start early.
    pub release: Release,
    /// The request gave NotBefore: only an approval or an operator starts the event earlier.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub time_given: bool,
    /// Part of a host operation, which starts as a whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joint_start: bool,
    /// Exec driver: it ends only when the command of its operation's host is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_host: bool,
    /// The host to which its only VM moves; chosen when the event starts. The simulated driver moves the VM there, a
    /// command of the exec driver may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_host: Option<String>,
    pub phase: Phase,
    /// Its facts, oldest first.
    pub trail: Vec<Recorded<EventFact>>,
}

/// One VM of an event, with its name at the time of the announcement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    pub vm: VmId,
    pub name: Name,
    /// Its host at the time of the announcement, if known. An operation's own target list leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Announced, not started.
    Scheduled {
        /// The event does not start earlier without an approval; whole seconds.
        not_before: Timestamp,
        /// Permission to start before NotBefore.
        approval: Option<Approval>,
        /// For [`Release::Together`]: every other part of the operation is approved or gone.
        released: bool,
        /// Manual driver: since when the event may start; an operator has to start it.
        ready: Option<Ready>,
    },
    Started {
        at: Timestamp,
        why: StartReason,
        run: Run,
    },
    /// A hint. Nothing happens at any time.
    Advisory {
        /// Shown to guests in place of NotBefore; no deadline. Whole seconds.
        date: Option<Timestamp>,
    },
}

/// Permission to start an event before NotBefore; valid for all its resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub by: Actor,
    pub at: Timestamp,
}

/// Manual driver: the event may start and waits for `event start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    pub at: Timestamp,
    pub why: StartReason,
}

/// Why an event started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartReason {
    Approved,
    NotBefore,
    Forced,
    NoNotice,
    /// The scope's policy approves such events automatically.
    AutomaticallyApproved,
    /// A user operation in a scope that is not enabled.
    NotEnabled,
}

impl StartReason {
    /// Whether the event started on announcement, without waiting for NotBefore.
    pub fn is_at_once(self) -> bool {
        match self {
            Self::NoNotice | Self::AutomaticallyApproved | Self::NotEnabled => true,
            Self::Approved | Self::NotBefore | Self::Forced => false,
        }
    }
}

words!(StartReason {
    Approved => "approved",
    NotBefore => "NotBefore passed",
    Forced => "started by an operator",
    NoNotice => "its cause gives no notice",
    AutomaticallyApproved => "approved automatically by the scope's policy",
    NotEnabled => "no guest of the scope listens",
});

/// What carries out an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    /// Nothing: the event stays Started for its duration, then ends.
    Simulated,
    /// External automation, which starts and completes the event through the API.
    Manual,
    /// The service runs one command per resource.
    Exec,
}

words!(DriverKind { Simulated => "simulated", Manual => "manual", Exec => "exec" });

/// What ends a started event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// The simulated driver, at this time.
    Simulated { ends_at: Timestamp },
    /// An operator or automation, with `event complete`.
    Manual,
    /// The success of its commands.
    Exec(ExecRun),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was carried out.
    Completed,
    /// It was cancelled before it started.
    Cancelled,
}

words!(Outcome { Completed => "Completed", Cancelled => "Cancelled" });

/// An ended event with its whole trail, as stored in the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    pub scope: ScopeId,
    pub outcome: Outcome,
    pub ended_at: Timestamp,
    /// In its last state.
    pub event: Event,
}

impl Event {
    /// Adds a fact to the trail. Beyond [`TRAIL_MAX`], drops the oldest fact except the first.
    pub(crate) fn note(&mut self, at: Timestamp, by: Actor, fact: EventFact) {
        if self.trail.len() >= TRAIL_MAX {
            self.trail.remove(1);
        }
        self.trail.push(Recorded { at, by, fact });
    }

    pub fn is_started(&self) -> bool {
        match self.phase {
            Phase::Scheduled { .. } | Phase::Advisory { .. } => false,
            Phase::Started { .. } => true,
        }
    }

    /// Whether it never starts.
    pub fn is_advisory(&self) -> bool {
        match self.phase {
            Phase::Advisory { .. } => true,
            Phase::Scheduled { .. } | Phase::Started { .. } => false,
        }
    }

    /// None once the event has started, and for an advisory, which never does.
    pub fn not_before(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Scheduled { not_before, .. } => Some(not_before),
            Phase::Started { .. } | Phase::Advisory { .. } => None,
        }
    }

    /// From the trail's first fact, which is never dropped.
    pub fn announced_at(&self) -> Option<Timestamp> {
        self.trail.first().map(|fact| fact.at)
    }

    /// From the trail, which keeps the approval after the start.
    pub fn approved(&self) -> bool {
        match &self.phase {
            Phase::Scheduled { approval, .. } => approval.is_some(),
            Phase::Advisory { .. } => false,
            Phase::Started { .. } => {
                self.trail.iter().any(|fact| matches!(fact.fact, EventFact::EventApproved))
            }
        }
    }

    /// Started platform events block other update domains.
    pub fn is_platform_event(&self) -> bool {
        self.cause.source() == Source::Platform
    }

    /// Whether none of its VMs is left; `state_of` looks up a member. For an advisory, and for a planned event that has
    /// not started, a deallocated VM counts as gone: there is nothing to evict, reboot or move.
    pub fn is_without_vms(&self, state_of: impl Fn(VmId) -> Option<MemberState>) -> bool {
        let is_planned = self.cause.waits_for_other_update_domains() && !self.is_started();
        let must_run = is_planned || self.is_advisory();
        !self.resources.iter().any(|resource| match state_of(resource.vm) {
            Some(MemberState::Running) => true,
            Some(MemberState::Deallocated) => !must_run,
            None => false,
        })
    }

    pub fn includes_vm(&self, vm: VmId) -> bool {
        self.resources.iter().any(|resource| resource.vm == vm)
    }
}
