//! State of one tracked event: a small state machine.
//!
//! ```text
//!               a rule matches            steps done           gone
//!   unmatched ────────────────▶ Preparing ──────────▶ Ready ──────────▶ Over ──▶ Restoring ──▶ Done
//!                                   │ └── one failed ─▶ Withheld ───────▲
//!                                   └────────── gone (cancelled) ───────┘
//! ```
//!
//! Each state carries only the data it needs, so invalid combinations cannot be expressed: an event that is over
//! always has something to undo, and a ready one is prepared. Three aspects are independent: the event's presence in
//! the document ([`Presence`]), whether the VM has booted ([`Boot`]), and progress by the event's rule ([`Course`]).
//!
//! Progress moves backwards only if the event starts over:
//! - it was gone, or no longer this VM's, and is back;
//! - it was for other VMs and is now for this one, so another rule applies;
//! - it still waits after the VM booted, which restarted the stopped services;
//! - a failed step is retried after a reload or a restart;
//! - another event drains the VM during the restore.

use std::time::Duration;

use jiff::Timestamp;
use notbefore_client::document::Event;
use serde::{Deserialize, Serialize};

use super::io::{RunId, Stage};
use crate::rules::{ResourceMatch, Restore, Rule, Step};

/// [`TrackedEvent::phase_name`] of an event after which the VM is not restored, because a step failed.
pub const STRANDED: &str = "stranded";
/// [`TrackedEvent::phase_name`] of an event that is not approved, because a step failed.
pub const WITHHELD: &str = "withheld";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedEvent {
    /// As last seen. Its status never goes back from started.
    pub event: Event,
    /// Whether this VM is among its resources.
    pub mine: bool,
    pub seen_at: Timestamp,
    /// By the last document whose version covers this type of event.
    pub presence: Presence,
    /// Whether the VM has booted since the event was last seen waiting.
    pub boot: Boot,
    /// None if no rule matches, or none yet.
    pub course: Option<Course>,
    /// Whether [`FactKind::Unmatched`](super::io::FactKind::Unmatched) was reported.
    pub is_unmatched_told: bool,
}

/// Presence of an event in the last document whose version covers its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// Listed and not started. `deadline` is the tick of NotBefore; None if the event has none.
    Waiting { deadline: Option<Duration> },
    /// Listed and started.
    Started(Start),
    /// No longer listed.
    Gone(End),
}

/// Whether later documents agree with the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    Said,
    /// A later document shows the event as scheduled. Reported once; the event still counts as started.
    TakenBack,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Presumably cancelled: gone unstarted, unapproved and before its deadline.
    Cancelled,
    /// Presumably it happened.
    Happened,
}

/// Whether the VM has booted since the event was last seen waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Boot {
    None,
    /// Booted, and no document has covered the event since: no preparation starts until one does.
    Unheard,
    /// Like [`Boot::Unheard`], but the event started over since, so it did not cause the boot.
    UnheardAgain,
    /// Booted, and the event has started: it most likely caused the boot.
    Heard,
}

/// How the agent handles an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// Copy of the rule, taken when it matched or when a step was last retried after a reload.
    pub rule: Rule,
    pub phase: Phase,
    pub approval: Approval,
}

/// Progress by the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The steps before the event run.
    Preparing { progress: Progress, undo: Undo },
    /// Prepared; waits for the event, apart from the approval.
    Ready { undo: Undo },
    /// A required step failed. Nothing runs until the event is over or the step is retried. `step` is the index of
    /// the first such step.
    Withheld { step: usize, undo: Undo },
    /// The rule no longer applies and the VM is to be restored, once `waits` allows it.
    Over { waits: RestoreWait, next: AfterRestore },
    /// The steps after the event run.
    Restoring { progress: Progress, next: AfterRestore },
    /// Finished; the event is dropped when it is no longer listed.
    Done,
}

/// Whether the steps after an event have something to undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undo {
    /// No step before the event was ever started.
    Nothing,
    /// A step was started, or the rule has only steps after the event.
    Owed,
}

/// What delays a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestoreWait {
    Nothing,
    /// A step that was asked to stop.
    Stopping(RunId),
    /// Another event; already reported.
    Held,
}

/// What follows a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterRestore {
    Done,
    /// Match another rule: the undone rule was for other VMs' events, or no longer matches after a reload.
    AnotherRule,
}

/// Position in a list of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Index of the step.
    pub step: usize,
    /// Attempt at the step, from 1.
    pub attempt: u32,
    pub doing: StepState,
    /// Limit set by NotBefore.
    pub bound: Bound,
    /// Index of the first step that was required and not done. Before an event: one with `on_failure = "withhold"`
    /// that NotBefore left no time for. After it: any that failed.
    pub flaw: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// Starts at this tick.
    Due(Duration),
    Running(RunId),
    /// Failed; nothing continues until it is retried. Only during a restore.
    Halted,
}

/// Limit of a running step set by NotBefore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// NotBefore was unknown when the step started.
    Open,
    /// The runner stops it at this tick.
    Until(Duration),
    /// No limit any more: the step started after NotBefore, or it has been asked to stop.
    Passed,
}

/// State of an event's approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approval {
    /// Preparation is not complete.
    Undecided,
    /// To be sent at the tick `due`. `failures` counts attempts so far.
    Wanted { failures: u32, due: Duration },
    /// Being sent. `failures` counts earlier attempts.
    Sent { failures: u32 },
    /// Accepted by the platform.
    Given,
    /// No longer needed.
    Moot,
    /// Not approved by this agent: another VM or the operator approves. May change with the event.
    NotMine { reason: String },
    /// Not approved, because this VM is not ready for the event.
    Withheld { reason: String },
}

impl Progress {
    /// First attempt at a step, due at once.
    pub(super) fn at(step: usize) -> Progress {
        Progress { step, attempt: 1, doing: StepState::Due(Duration::ZERO), bound: Bound::Open, flaw: None }
    }

    /// First attempt at the next step. `is_flawed`: the current one failed.
    pub(super) fn next(self, is_flawed: bool) -> Progress {
        let flaw = self.flaw.or(is_flawed.then_some(self.step));
        Progress { flaw, ..Progress::at(self.step.saturating_add(1)) }
    }

    /// Whether the last attempt at the step failed, for good or until a retry.
    pub(super) fn has_failed(&self) -> bool {
        match self.doing {
            StepState::Halted => true,
            StepState::Due(_) => self.attempt > 1,
            StepState::Running(_) => false,
        }
    }
}

impl Phase {
    pub(super) fn progress(&mut self) -> Option<&mut Progress> {
        match self {
            Phase::Preparing { progress, .. } | Phase::Restoring { progress, .. } => Some(progress),
            Phase::Ready { .. } | Phase::Withheld { .. } | Phase::Over { .. } | Phase::Done => None,
        }
    }
}

impl Boot {
    /// Whether a document has covered the event since the last boot.
    pub fn is_confirmed(self) -> bool {
        match self {
            Boot::None | Boot::Heard => true,
            Boot::Unheard | Boot::UnheardAgain => false,
        }
    }

    /// Whether the event may have caused the boot.
    pub(super) fn may_be_caused_by_event(self) -> bool {
        match self {
            Boot::Unheard | Boot::Heard => true,
            Boot::None | Boot::UnheardAgain => false,
        }
    }

    /// A document covers the event. One that still waits did not cause the boot.
    pub(super) fn confirmed(self, has_started: bool) -> Boot {
        if has_started && self.may_be_caused_by_event() { Boot::Heard } else { Boot::None }
    }

    /// The event starts over.
    fn for_next_start(self) -> Boot {
        if self.is_confirmed() { Boot::None } else { Boot::UnheardAgain }
    }
}

impl Course {
    /// Starts at the first step before the event.
    pub(super) fn begin(rule: Rule) -> Course {
        let phase = Phase::Preparing { progress: Progress::at(0), undo: Undo::Nothing };
        Course { rule, phase, approval: Approval::Undecided }
    }

    /// Marks the preparation complete. A rule without steps before the event still owes its steps after it.
    pub(super) fn set_ready(&mut self, undo: Undo) {
        let has_only_after = self.rule.before.is_empty() && !self.rule.after.is_empty();
        self.phase = Phase::Ready { undo: if has_only_after { Undo::Owed } else { undo } };
    }

    /// Applies the reloaded rule, if it still exists, and continues at the first step not yet handled. That is the
    /// failed step, one inserted above it, or its successor if it was removed.
    pub(super) fn apply_rules(&mut self, rules: &[Rule]) -> StepAfterReload {
        let Some(rule) = rules.iter().find(|rule| rule.name == self.rule.name) else {
            return StepAfterReload::Same;
        };
        let before = std::mem::replace(&mut self.rule, rule.clone());
        let (stage, step, flaw) = match &mut self.phase {
            Phase::Withheld { step, .. } => (Stage::Before, step, None),
            Phase::Preparing { progress, .. } => (Stage::Before, &mut progress.step, progress.flaw.as_mut()),
            Phase::Restoring { progress, .. } => (Stage::After, &mut progress.step, progress.flaw.as_mut()),
            Phase::Ready { .. } | Phase::Over { .. } | Phase::Done => return StepAfterReload::Same,
        };
        let (old, new) = (before.steps(stage), rule.steps(stage));
        let find = |name: &str| new.iter().position(|one| one.name == name);
        let dealt_with = old.iter().take(*step);
        let is_left = |one: &Step| dealt_with.clone().all(|done| done.name != one.name);
        let failed = old.get(*step).map(|one| one.name.as_str());
        *step = new.iter().position(is_left).unwrap_or(new.len());
        if let Some(flaw) = flaw {
            *flaw = old.get(*flaw).and_then(|one| find(&one.name)).unwrap_or(*step);
        }
        match failed {
            Some(name) if find(name).is_none() => StepAfterReload::Dropped(name.to_owned()),
            Some(name) if find(name) != Some(*step) => StepAfterReload::Another,
            Some(_) | None => StepAfterReload::Same,
        }
    }
}

/// Which step is next after a reload.
pub(super) enum StepAfterReload {
    /// The step that failed.
    Same,
    /// A step inserted before the failed one.
    Another,
    /// The successor: the rule no longer has the failed step, of this name.
    Dropped(String),
}

impl TrackedEvent {
    pub fn rule(&self) -> Option<&Rule> {
        self.course.as_ref().map(|course| &course.rule)
    }

    /// Progress by its rule.
    pub fn phase(&self) -> Option<Phase> {
        self.course.as_ref().map(|course| course.phase)
    }

    /// The phase as a word for logs and status.
    pub fn phase_name(&self) -> &'static str {
        match self.phase() {
            None => "unmatched",
            Some(Phase::Preparing { .. }) => "preparing",
            Some(Phase::Ready { .. }) => "ready",
            Some(Phase::Withheld { .. }) => WITHHELD,
            Some(Phase::Over { .. }) => "over",
            Some(Phase::Restoring { .. }) if self.is_stranded() => STRANDED,
            Some(Phase::Restoring { .. }) => "restoring",
            Some(Phase::Done) => "done",
        }
    }

    /// Whether a failed step keeps the VM from being restored.
    pub fn is_stranded(&self) -> bool {
        matches!(
            self.phase(),
            Some(Phase::Restoring { progress: Progress { doing: StepState::Halted, .. }, .. })
        )
    }

    /// Whether there is something to retry: a failed step that the event still allows, or a failed approval.
    pub fn can_retry(&self) -> bool {
        let Some(course) = &self.course else { return false };
        match course.phase {
            Phase::Withheld { .. } => matches!(self.presence, Presence::Waiting { .. }) && !self.is_over(),
            Phase::Preparing { progress, .. } | Phase::Restoring { progress, .. } => progress.has_failed(),
            Phase::Ready { .. } => matches!(course.approval, Approval::Wanted { failures: 1.., .. }),
            Phase::Over { .. } | Phase::Done => false,
        }
    }

    /// Whether a step or the approval is under way, or follows without a further input. One that waits for a retry is.
    pub fn is_under_way(&self) -> bool {
        let Some(course) = &self.course else { return false };
        match course.phase {
            Phase::Preparing { .. } => true,
            Phase::Ready { .. } => self.awaits_answer(),
            Phase::Over { waits, .. } => waits != RestoreWait::Held,
            Phase::Restoring { .. } => !self.is_stranded(),
            Phase::Withheld { .. } | Phase::Done => false,
        }
    }

    pub fn approval(&self) -> &Approval {
        self.course.as_ref().map_or(&Approval::Undecided, |course| &course.approval)
    }

    /// Whether its approval is sent and has no answer yet.
    pub fn awaits_answer(&self) -> bool {
        matches!(self.approval(), Approval::Sent { .. })
    }

    /// Whether the last document that covers the event lists it.
    pub fn is_listed(&self) -> bool {
        match self.presence {
            Presence::Waiting { .. } | Presence::Started(_) => true,
            Presence::Gone(_) => false,
        }
    }

    /// Whether it is listed and has started.
    pub fn is_started(&self) -> bool {
        matches!(self.presence, Presence::Started(_))
    }

    /// The tick of NotBefore, if the event waits for one.
    pub(super) fn deadline(&self) -> Option<Duration> {
        match self.presence {
            Presence::Waiting { deadline } => deadline,
            Presence::Started(_) | Presence::Gone(_) => None,
        }
    }

    /// Whether the event will not happen to this VM: it was cancelled, or is now for other VMs only.
    pub(super) fn is_cancelled(&self) -> bool {
        match self.presence {
            Presence::Waiting { .. } | Presence::Started(_) => self.is_reassigned(),
            Presence::Gone(end) => end == End::Cancelled,
        }
    }

    /// Whether this VM is as ready as the rule requires. Always true if the event is now for other VMs only.
    pub(super) fn is_prepared(&self) -> bool {
        self.is_reassigned() || matches!(self.phase(), Some(Phase::Ready { .. }))
    }

    /// Whether this VM should get no new work because of the event.
    pub fn is_draining(&self) -> bool {
        let wanted = self.rule().is_some_and(|rule| rule.drain) && (self.mine || self.is_reassigned());
        wanted && self.phase() != Some(Phase::Done)
    }

    /// Whether the event drains the VM, now or soon, and is not over.
    pub(super) fn blocks_restore(&self) -> bool {
        self.is_draining() && !self.is_over()
    }

    /// Whether a restore is needed when it is over.
    pub(super) fn has_undo(&self) -> bool {
        match self.phase() {
            Some(Phase::Preparing { undo, .. } | Phase::Ready { undo } | Phase::Withheld { undo, .. }) => {
                undo == Undo::Owed
            }
            Some(Phase::Over { .. } | Phase::Restoring { .. }) => true,
            Some(Phase::Done) | None => false,
        }
    }

    /// Whether the event was this VM's when its rule matched and is now for other VMs only.
    pub(super) fn is_reassigned(&self) -> bool {
        !self.mine && self.rule().is_some_and(|rule| rule.matches.resources == ResourceMatch::Mine)
    }

    /// Whether the rule no longer applies: the event is gone, reassigned, or matched by another rule.
    pub(super) fn has_lapsed(&self) -> bool {
        let is_replaced = matches!(
            self.phase(),
            Some(
                Phase::Over { next: AfterRestore::AnotherRule, .. }
                    | Phase::Restoring { next: AfterRestore::AnotherRule, .. }
            )
        );
        !self.is_listed() || self.is_reassigned() || is_replaced
    }

    /// Whether the VM may be restored: the rule has lapsed, or has `restore = "booted"` and this boot was the
    /// event's.
    pub(super) fn is_over(&self) -> bool {
        let enough = self.rule().is_some_and(|rule| rule.restore == Restore::Booted);
        self.has_lapsed() || enough && self.boot.may_be_caused_by_event() && self.is_started()
    }

    /// Starts over with an event that was over; by the same rule if that has something to undo.
    pub(super) fn begin_again(&mut self) {
        self.boot = self.boot.for_next_start();
        self.course.take_if(|course| course.phase == Phase::Done);
        if let Some(course) = &mut self.course {
            course.approval = Approval::Undecided;
        }
    }

    /// Drops the rule; nothing is left to undo.
    pub(super) fn finish(&mut self, next: AfterRestore) {
        if let Some(course) = &mut self.course {
            course.phase = Phase::Done;
        }
        match next {
            AfterRestore::Done => {}
            AfterRestore::AnotherRule => self.begin_again(),
        }
    }

    /// The running or next step and its list.
    pub fn step(&self) -> Option<(Stage, &Step)> {
        let course = self.course.as_ref()?;
        let (stage, step) = match course.phase {
            Phase::Preparing { progress, .. } => (Stage::Before, progress.step),
            Phase::Restoring { progress, .. } => (Stage::After, progress.step),
            Phase::Ready { .. } | Phase::Withheld { .. } | Phase::Over { .. } | Phase::Done => return None,
        };
        Some((stage, course.rule.steps(stage).get(step)?))
    }

    /// Whether it is matched by another rule only when another event, which drains the VM, is over: what was done by
    /// its own rule cannot be undone before.
    pub fn is_waiting_for_another(&self) -> bool {
        self.phase() == Some(Phase::Over { waits: RestoreWait::Held, next: AfterRestore::AnotherRule })
    }

    /// The failed step that withholds the approval.
    pub fn withholding_step(&self) -> Option<&Step> {
        match self.phase()? {
            Phase::Withheld { step, .. } => self.rule()?.before.get(step),
            Phase::Preparing { .. }
            | Phase::Ready { .. }
            | Phase::Over { .. }
            | Phase::Restoring { .. }
            | Phase::Done => None,
        }
    }

    /// The running attempt.
    pub(super) fn running(&self) -> Option<RunId> {
        match self.phase()? {
            Phase::Preparing { progress, .. } | Phase::Restoring { progress, .. } => match progress.doing {
                StepState::Running(run) => Some(run),
                StepState::Due(_) | StepState::Halted => None,
            },
            Phase::Over { waits: RestoreWait::Stopping(run), .. } => Some(run),
            Phase::Over { waits: RestoreWait::Nothing | RestoreWait::Held, .. }
            | Phase::Ready { .. }
            | Phase::Withheld { .. }
            | Phase::Done => None,
        }
    }
}
