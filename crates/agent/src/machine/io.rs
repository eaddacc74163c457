//! Inputs and actions of the state machine.

use std::time::Duration;

use notbefore_client::document::{Document, Event, EventId, EventsVersion};
use serde::{Deserialize, Serialize};

use crate::rules::Step;

#[derive(Clone, Debug)]
pub enum Input {
    /// A new document. Failed or unchanged polls produce no such input. `served_at` is the platform's clock at the
    /// answer; without it, this VM's wall clock is used. Older api-versions do not list every type of event.
    Document { document: Document, served_at: Option<jiff::Timestamp>, version: EventsVersion },
    /// The platform answered without changes; only its time, `served_at`, is new.
    Unchanged { served_at: jiff::Timestamp },
    /// [`Setup`](super::Setup) has a new name for this VM, or its name is now confirmed.
    Named,
    /// The platform answers again after a silence.
    Back,
    /// The rules were reloaded: failed steps are retried with the rules in [`Setup`](super::Setup).
    Retry,
    /// The operator asks to retry what failed of this event: its step, or its approval.
    RetryEvent { event: EventId },
    /// A step ended by itself or was stopped. Not sent for steps stopped by the agent's own shutdown, so that the
    /// next agent finds them begun.
    StepEnded { run: RunId, outcome: StepOutcome },
    /// An approval was answered or could not be sent.
    Answered { event: EventId, answer: ApprovalAnswer },
    /// A deadline has passed.
    Tick,
}

/// One attempt at one step of one event. Unique, also across restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId(pub u64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    Done,
    /// `reason` is one line for people: "exit code 3", "cannot start /usr/bin/drain: no such file".
    Failed {
        reason: String,
    },
    /// Exceeded its budget and was stopped.
    TimedOut,
    /// Stopped by [`Action::Stop`].
    Stopped,
}

/// Outcome of an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalAnswer {
    Accepted,
    /// Refused, but the event has started or is gone: approval no longer matters.
    Moot,
    /// Refused, and the event still waits.
    Refused {
        reason: String,
    },
    /// Could not be sent, or the response is a temporary error.
    Failed {
        reason: String,
    },
}

/// An effect that the driver executes. The state is saved first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Run a step in the background.
    Run(Box<Run>),
    /// Stop a running step; it ends as [`StepOutcome::Stopped`], or with its own outcome if that is sooner.
    Stop(RunId),
    Approve(EventId),
    /// Report a fact to the log, the metrics and the administrator.
    Report(Box<Fact>),
}

/// One attempt at a step, with all that the runner needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub id: RunId,
    /// As last seen.
    pub event: Event,
    /// Name of the rule.
    pub rule: String,
    pub stage: Stage,
    pub step: Step,
    /// Attempt at this step, from 1.
    pub attempt: u32,
    /// How long it may take; the runner stops it then.
    pub budget: Duration,
    /// Tick at which it must have ended, if NotBefore bounds it.
    pub until: Option<Duration>,
    /// Whether the event was cancelled: as far as known, it never started.
    pub cancelled: bool,
}

/// Whether a step prepares the VM or restores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    Before,
    After,
}

impl Stage {
    /// The key of its list in a rule.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Before => "before",
            Stage::After => "after",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub event: Event,
    /// Whether this VM is among its resources.
    pub mine: bool,
    /// The event's rule, if one matched.
    pub rule: Option<String>,
    pub kind: FactKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactKind {
    /// An event was seen for the first time, or again after it was gone. `time_left` is the time until NotBefore, if
    /// known. `mine`: this VM is among its resources.
    Appeared {
        time_left: Option<Duration>,
        mine: bool,
    },
    /// A rule matched: with [`FactKind::Appeared`], or later as NotBefore came closer.
    Matched,
    /// No rule matches this VM's event, now or later. Reported once, and again after a reload.
    Unmatched,
    /// An attempt started; attempts count from 1. `budget` is how long it may take.
    StepBegun {
        step: String,
        stage: Stage,
        attempt: u32,
        budget: Duration,
    },
    StepDone {
        step: String,
        stage: Stage,
    },
    StepFailed {
        step: String,
        stage: Stage,
        reason: String,
        then: AfterFailure,
    },
    /// The previous agent ended while this step ran. `rerun`: whether it runs again.
    StepInterrupted {
        step: String,
        stage: Stage,
        rerun: bool,
    },
    /// A step that had failed is retried after a reload or a restart. `step` may be a new one that now precedes it.
    TriedAgain {
        step: String,
        stage: Stage,
    },
    /// A failed step is not retried: the reloaded rule no longer has it.
    StepDropped {
        step: String,
        stage: Stage,
    },
    /// A failed step is not retried: the reloaded rule no longer matches the event.
    RuleUnmatched,
    /// All steps before the event are done.
    Prepared,
    /// Another VM, or the operator, is to approve this event.
    NotApproving {
        reason: String,
    },
    /// The event is not approved because this VM is not ready for it.
    Withheld {
        reason: String,
    },
    /// The platform accepted the approval.
    Approved,
    /// The approval came too late: the event has started or is gone.
    ApprovalMoot,
    /// An approval failed to send, or was refused while the event waits; it is retried.
    ApprovalFailed {
        reason: String,
        again_in: Duration,
    },
    /// `prepared`: whether this VM was ready.
    Started {
        prepared: bool,
    },
    /// The platform shows a started event as scheduled again. It still counts as started.
    WentBack,
    /// A field of the event changed.
    Changed,
    /// The VM has booted since the event was last seen.
    Booted,
    /// The event disappeared unapproved and before NotBefore.
    Cancelled,
    Ended,
    /// A Preempt continues what the advisory `from` has begun by the same rule.
    TookOver {
        from: EventId,
    },
    /// Restoring waits until the event `by` is over.
    RestoreHeld {
        by: EventId,
    },
    /// The VM is not restored: a step failed, and an operator has to act.
    Stranded {
        step: String,
    },
    /// All steps after the event ran. `whole`: every one succeeded.
    Restored {
        whole: bool,
    },
}

/// Consequence of a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// The step is retried.
    Retry,
    /// The next step runs.
    GoOn,
    /// The remaining steps are skipped. Before an event: it is not approved. After it: the VM is not restored.
    Withhold,
    /// NotBefore left no time: the remaining steps run with the time reserved for them, and the event is not
    /// approved.
    WithholdAndGoOn,
}
