//! What the machine is told, and what it wants done.

use std::time::Duration;

use notbefore_client::document::{Document, Event, EventId, EventsVersion};
use serde::{Deserialize, Serialize};

use crate::rules::Step;

/// What the machine is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// A document was read. Polls that fail, or bring nothing new, tell the machine nothing. `served_at` is
    /// what the platform's own clock said when it answered; without it this VM's wall clock is believed.
    /// Documents of older versions do not speak of every kind of event.
    Document { document: Document, served_at: Option<jiff::Timestamp>, version: EventsVersion },
    /// The platform has answered, at `served_at` by its own clock, and nothing has changed but the time.
    Unchanged { served_at: jiff::Timestamp },
    /// The [`Setup`](super::Setup) has another name for this VM than before, or the same and now it is sure.
    Named,
    /// The platform answers again after it was silent for a while.
    Back,
    /// The rules were read again: what has failed is tried again, as the [`Setup`](super::Setup) has it now.
    Retry,
    /// A step has ended, by itself or because it was stopped. One that is stopped because the agent itself ends has not:
    /// nothing is told, so that the next agent finds it begun.
    StepEnded { run: RunId, outcome: StepOutcome },
    /// An approval was answered, or could not be sent.
    Answered { event: EventId, answer: ApprovalAnswer },
    /// Time has passed: what is due is done.
    Tick,
}

/// One attempt at one step of one event. Never used twice, not even after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId(pub u64);

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// It did what it should.
    Done,
    /// It did not. The reason is a line for a person: "exit code 3", "cannot start /usr/bin/drain: no such
    /// file".
    Failed { reason: String },
    /// It took longer than it might, and was stopped.
    TimedOut,
    /// It was stopped because the machine said so.
    Stopped,
}

/// What became of an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// The platform has taken it.
    Accepted,
    /// Refused, and the event has started or is gone: there is nothing left to approve.
    Moot,
    /// Refused, and the event still waits.
    Refused { reason: String },
    /// It could not be sent, or the answer says to try again.
    Failed { reason: String },
}

/// What the machine wants done. State is saved before any of it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Run a step, in the background.
    Run(Box<Run>),
    /// Stop a step that runs; it ends as [`StepOutcome::Stopped`], or as it would have if that was sooner.
    Stop(RunId),
    /// Approve this event and no other.
    Approve(EventId),
    /// Say what happened: to the log, to the metrics, to an administrator.
    Report(Box<Fact>),
}

/// One attempt at a step, with all that it needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which attempt this is, of all there ever were.
    pub id: RunId,
    /// The event, as it was last seen.
    pub event: Event,
    /// The rule's name.
    pub rule: String,
    /// Whether it prepares or restores.
    pub stage: Stage,
    /// The step.
    pub step: Step,
    /// Which attempt at this step, from 1.
    pub attempt: u32,
    /// How long it may take. It is stopped by whoever runs it.
    pub budget: Duration,
    /// The tick at which it has to have ended whenever it begins, where NotBefore bounds it.
    pub until: Option<Duration>,
    /// Whether the event is over because it was cancelled: it never started, as far as anybody saw.
    pub cancelled: bool,
}

/// Whether a step prepares or restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Before the event.
    Before,
    /// After it.
    After,
}

impl Stage {
    /// The key of its list of steps.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Before => "before",
            Stage::After => "after",
        }
    }
}

/// What happened, in the past tense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The event it happened to.
    pub event: Event,
    /// The rule it is for, if any.
    pub rule: Option<String>,
    /// What.
    pub kind: FactKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactKind {
    /// An event was seen for the first time, or again after it had been gone. `time_left` is the time until
    /// NotBefore, if that is known. `mine` says whether this VM is among its resources.
    Appeared { time_left: Option<Duration>, mine: bool },
    /// A rule matched the event. Told at once after [`FactKind::Appeared`], or later, as its time drew near.
    Matched,
    /// A step was begun. Attempts count from 1. `budget` is how long it may take.
    StepBegun { step: String, stage: Stage, attempt: u32, budget: Duration },
    /// A step ended as it should.
    StepDone { step: String, stage: Stage },
    /// An attempt failed.
    StepFailed { step: String, stage: Stage, reason: String, then: AfterFailure },
    /// The agent found a step that it had begun before it ended itself. `rerun` says whether it is run again.
    StepInterrupted { step: String, stage: Stage, rerun: bool },
    /// A step that had failed for good is tried again, because the rules were read again or the agent was
    /// restarted. `step` may be one that has come to stand above it.
    TriedAgain { step: String, stage: Stage },
    /// A step that had failed is not tried again, because its rule has it no more.
    StepDropped { step: String, stage: Stage },
    /// All steps before the event are done.
    Prepared,
    /// The event is not this agent's to approve, as its rule has it, and why.
    NotApproving { reason: String },
    /// The event is not approved because this VM is not ready for it, and why.
    Withheld { reason: String },
    /// The platform has taken the approval.
    Approved,
    /// The approval came too late to matter: the event has started or is gone.
    ApprovalMoot,
    /// An approval did not get through, or was refused though the event waits; it is sent again.
    ApprovalFailed { reason: String, again_in: Duration },
    /// The event has started. `prepared` says whether this VM was ready for it.
    Started { prepared: bool },
    /// The platform shows an event that had started as scheduled again. It is taken for started.
    WentBack,
    /// Something about the event is another than before.
    Changed,
    /// The VM has booted since.
    Booted,
    /// The event is gone before anybody approved it and before its time.
    Cancelled,
    /// The event is over.
    Ended,
    /// The VM is put back only when this other event is over, too.
    RestoreHeld { by: EventId },
    /// The VM is not put back: a step failed, and somebody has to see to it.
    Stranded { step: String },
    /// All steps after the event are done. `whole` says whether every one of them succeeded.
    Restored { whole: bool },
}

/// What comes of a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// It is tried again.
    Retry,
    /// The next step runs.
    GoOn,
    /// The rest is not run, and the event not approved; nor is the VM put back, if it was a step after it.
    Withhold,
    /// There was no time for it: the rest is run with what is left, and the event not approved.
    WithholdAndGoOn,
}
