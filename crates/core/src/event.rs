//! One event: its part of an operation in one scope and one update domain, atomic for its resources.
//!
//! A phase carries exactly what is known in it: NotBefore and approval while Scheduled, the reason and the
//! run once Started. Ended events leave the scope and become a [`Past`]. No phase ever goes back.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::cause::{Cause, Source};
use crate::exec::ExecRun;
use crate::fact::{EventFact, Recorded};
use crate::ids::{EventId, Name, OperationId, ScopeId, VmId};
use crate::operation::Release;
use crate::scope::MemberState;

/// How many facts an event's trail keeps. An event sees a handful; a driver that is retried for days must
/// not grow the scope's record without bound. The first and the newest are kept.
pub const TRAIL_MAX: usize = 32;

/// A live event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its id, the same in every phase.
    pub id: EventId,
    /// The operation it belongs to.
    pub operation: OperationId,
    /// Why it happens.
    pub cause: Cause,
    /// The update domain all its resources are in.
    pub update_domain: u32,
    /// The VMs it happens to, in an order that is fixed here once and for every reader.
    pub resources: Vec<Resource>,
    /// How long they are expected to be interrupted, in seconds; −1 where nobody can tell.
    pub duration_s: i32,
    /// What guests read about it.
    pub description: String,
    /// Who carries it out.
    pub driver: DriverKind,
    /// Whether its approval alone lets it start early.
    pub release: Release,
    /// Whether a person gave its NotBefore: then nothing but an approval or an operator starts it earlier.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub time_given: bool,
    /// Whether it is part of a host operation, which starts as a whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joint_start: bool,
    /// Where it stands.
    pub phase: Phase,
    /// What has happened to it so far, oldest first.
    pub trail: Vec<Recorded<EventFact>>,
}

/// One VM of an event, by the name it had when the event was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// The VM.
    pub vm: VmId,
    /// Its name.
    pub name: Name,
    /// The host it was on when its scope heard of the event, if that is known. An operation's own list of its
    /// parts leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// Where an event stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Announced, not begun.
    Scheduled {
        /// It does not begin before this without an approval; whole seconds.
        not_before: Timestamp,
        /// Who said that it may begin earlier.
        approval: Option<Approval>,
        /// For [`Release::Together`]: every other part of the operation was approved too, or is gone.
        released: bool,
        /// For the manual driver: since when it might begin, if only somebody began it.
        ready: Option<Ready>,
    },
    /// Under way.
    Started { at: Timestamp, why: StartReason, run: Run },
}

/// A guest's or an operator's word that an event may begin; it speaks for all of the event's resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// Who gave it.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
}

/// An event of the manual driver that waits for somebody to start it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Since when.
    pub at: Timestamp,
    /// What made it ready.
    pub why: StartReason,
}

/// What let an event begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartReason {
    /// It was approved.
    Approved,
    /// Its NotBefore passed.
    NotBefore,
    /// An operator started it.
    Forced,
    /// Its cause gives no notice.
    NoNotice,
    /// The scope's policy approves such events by itself.
    AutomaticallyApproved,
    /// A user's operation in a scope where nobody listens.
    NotEnabled,
}

impl StartReason {
    /// Whether the event began when it was announced, without waiting for its NotBefore.
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

/// Who carries an event out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    /// Nobody: it stays Started for its duration and then ends.
    Simulated,
    /// Somebody's automation, which starts and completes it through the API.
    Manual,
    /// A command per resource, which the service runs.
    Exec,
}

words!(DriverKind { Simulated => "simulated", Manual => "manual", Exec => "exec" });

/// How a started event will end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// By itself, at this time.
    Simulated { ends_at: Timestamp },
    /// When somebody completes it.
    Manual,
    /// When its commands have succeeded.
    Exec(ExecRun),
}

/// How an event ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was carried out.
    Completed,
    /// It was called off before it began.
    Cancelled,
}

words!(Outcome { Completed => "Completed", Cancelled => "Cancelled" });

/// An ended event with its whole trail, as history keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// Where it happened.
    pub scope: ScopeId,
    /// How it ended.
    pub outcome: Outcome,
    /// When.
    pub ended_at: Timestamp,
    /// The event as it last was.
    pub event: Event,
}

impl Event {
    /// Adds a fact to the trail. Past [`TRAIL_MAX`] the oldest but the first makes room.
    pub(crate) fn note(&mut self, at: Timestamp, by: Actor, fact: EventFact) {
        if self.trail.len() >= TRAIL_MAX {
            self.trail.remove(1);
        }
        self.trail.push(Recorded { at, by, fact });
    }

    /// Whether it has begun.
    pub fn is_started(&self) -> bool {
        match self.phase {
            Phase::Scheduled { .. } => false,
            Phase::Started { .. } => true,
        }
    }

    /// NotBefore, while that means something.
    pub fn not_before(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Scheduled { not_before, .. } => Some(not_before),
            Phase::Started { .. } => None,
        }
    }

    /// When it was announced: the trail's first fact, which is kept however long the trail grows.
    pub fn announced_at(&self) -> Option<Timestamp> {
        self.trail.first().map(|fact| fact.at)
    }

    /// Who approved it: asked of the trail, which remembers after the start too.
    pub fn approved(&self) -> bool {
        match &self.phase {
            Phase::Scheduled { approval, .. } => approval.is_some(),
            Phase::Started { .. } => {
                self.trail.iter().any(|fact| matches!(fact.fact, EventFact::EventApproved))
            }
        }
    }

    /// Whether it belongs to the platform; such events keep other update domains waiting once Started.
    pub fn is_platform_event(&self) -> bool {
        self.cause.source() == Source::Platform
    }

    /// Whether none of its VMs is left; `state_of` says how a member of the scope is. To what is planned and has not
    /// started a deallocated VM is not there either: there is nothing to reboot or to move.
    pub fn is_without_vms(&self, state_of: impl Fn(VmId) -> Option<MemberState>) -> bool {
        let must_run = self.cause.waits_for_other_update_domains() && !self.is_started();
        !self.resources.iter().any(|resource| match state_of(resource.vm) {
            Some(MemberState::Running) => true,
            Some(MemberState::Deallocated) => !must_run,
            None => false,
        })
    }

    /// Whether it happens to this VM.
    pub fn includes_vm(&self, vm: VmId) -> bool {
        self.resources.iter().any(|resource| resource.vm == vm)
    }
}
