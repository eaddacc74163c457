//! One event that the agent knows of, and how far it has come with it.
//!
//! ```text
//!               a rule matches            steps done           gone
//!   unmatched ────────────────▶ Preparing ──────────▶ Ready ──────────▶ Over ──▶ Restoring ──▶ Done
//!                                   │ └── one failed ─▶ Withheld ───────▲
//!                                   └────────── gone (cancelled) ───────┘
//! ```
//!
//! Each state carries what only it needs: there is no event that is over with nothing to undo, and none that is ready and
//! not prepared. Three things are independent of each other: where the event is ([`Presence`]), whether
//! the VM has booted meanwhile ([`Boot`]), and how far the agent has come by the event's rule ([`Course`]).
//!
//! Nothing goes back but where it is a new beginning: an event that is there again after it was gone, or this VM's again after it
//! was taken from it; one that was other VMs' and is now this one's, so that another rule is for it; one that still waits when
//! the VM has booted, which started again all that had been stopped; what failed, when an administrator has seen to it; and
//! putting back, when another event takes the VM out meanwhile.

use std::time::Duration;

use jiff::Timestamp;
use notbefore_client::document::Event;
use serde::{Deserialize, Serialize};

use super::io::{RunId, Stage};
use crate::rules::{ResourceMatch, Restore, Rule, Step};

/// An event, and how far the agent has come with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedEvent {
    /// As it was last seen. It never goes back from started.
    pub event: Event,
    /// Whether this VM is among its resources.
    pub mine: bool,
    /// When it was first seen, by the wall clock.
    pub seen_at: Timestamp,
    /// Where it is, by the last document that speaks of it.
    pub presence: Presence,
    /// Whether the VM has booted since the event was last seen to wait.
    pub boot: Boot,
    /// What is done about it. None if no rule is for it, or none yet.
    pub course: Option<Course>,
}

/// Where an event is, by the last document that speaks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// It is listed and has not started. `deadline` is the tick of NotBefore; none where there is no such
    /// time.
    Waiting { deadline: Option<Duration> },
    /// It is listed and has started.
    Started(Start),
    /// It is no longer listed.
    Gone(End),
}

/// Whether the platform stands by a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// It has not said otherwise.
    Said,
    /// It has shown the event as scheduled since. That was told, once, and is not believed.
    TakenBack,
}

/// How an event ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// It was cancelled, as far as can be told: gone unstarted, unapproved, and before its time.
    Cancelled,
    /// It has happened, as far as can be told.
    Happened,
}

/// Whether the VM has booted since an event was last seen to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Boot {
    /// It has not.
    None,
    /// It has, and no document has spoken of the event since: no step before it is begun until one does.
    Unheard,
    /// The same, and the event has begun again since, so that it is not what the VM booted for.
    UnheardAgain,
    /// It has, and the event has started: that is most likely what the VM booted for.
    Heard,
}

/// What is done about an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// The event's rule, as it was when it matched, or when a step of it was last tried again after a reload.
    pub rule: Rule,
    /// How far the agent has come by it.
    pub phase: Phase,
    /// What has become of the approval.
    pub approval: Approval,
}

/// How far the agent has come with an event by its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The steps before it are run.
    Preparing { progress: Progress, undo: Undo },
    /// There is nothing more to do until it is over, but for its approval.
    Ready { undo: Undo },
    /// A step that had to be done was not. Nothing more is done until the event is over, or the step is tried
    /// again. `step` is the first such step, from 0.
    Withheld { step: usize, undo: Undo },
    /// There is no reason for the rule any more, and the VM is to be put back. `waits` is what has to end
    /// before that.
    Over { waits: RestoreWait, next: AfterRestore },
    /// The steps after it are run.
    Restoring { progress: Progress, next: AfterRestore },
    /// All is done; the event is forgotten when it is no longer listed.
    Done,
}

/// Whether there is something to undo by the steps after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undo {
    /// No step before it was ever begun.
    Nothing,
    /// One was, or its rule has none before and some after.
    Owed,
}

/// What has to end before a VM is put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestoreWait {
    /// Nothing that is known of.
    Nothing,
    /// A step that was told to stop.
    Stopping(RunId),
    /// Another event, and that was told.
    Held,
}

/// What comes after a VM was put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterRestore {
    /// Nothing: the event is done with.
    Done,
    /// Another rule: the event has become this VM's, and the one that is undone was for other VMs' events.
    AnotherRule,
}

/// Where in a list of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Which step, from 0.
    pub step: usize,
    /// Which attempt at it, from 1.
    pub attempt: u32,
    /// Whether it runs.
    pub doing: StepState,
    /// Until when it may run because of NotBefore.
    pub bound: Bound,
    /// The first step, from 0, that was to be done and was not. Before an event that is one that may not fail, and for
    /// which there was no time; after it, any that has failed.
    pub flaw: Option<usize>,
}

/// Whether a step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// Not yet: it is begun at this tick.
    Due(Duration),
    /// It does.
    Running(RunId),
    /// It has failed, and nothing goes on until it is tried again. Only when putting back.
    Halted,
}

/// Until when a step that runs may, because of NotBefore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// NotBefore was not known when it was begun.
    Open,
    /// Whoever runs it ends it at this tick.
    Until(Duration),
    /// NotBefore has no more say: the step was begun after it, or it has been told to stop.
    Passed,
}

/// What has become of an event's approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approval {
    /// It is not yet time.
    Undecided,
    /// It is to be sent at the tick `due`. It was sent in vain so often.
    Wanted { failures: u32, due: Duration },
    /// It is under way. It was sent in vain so often before.
    Sent { failures: u32 },
    /// The platform has taken it.
    Given,
    /// There is nothing to approve any more.
    Moot,
    /// This agent does not approve: it is for another VM to, or for nobody. That may change with the event.
    NotMine { reason: String },
    /// This agent does not approve: it is not ready for the event.
    Withheld { reason: String },
}

impl Progress {
    /// At the first attempt of a step that is due at once.
    pub(super) fn at(step: usize) -> Progress {
        Progress { step, attempt: 1, doing: StepState::Due(Duration::ZERO), bound: Bound::Open, flaw: None }
    }

    /// At the first attempt of the step after this one, which may have failed.
    pub(super) fn next(self, is_flawed: bool) -> Progress {
        let flaw = self.flaw.or(is_flawed.then_some(self.step));
        Progress { flaw, ..Progress::at(self.step.saturating_add(1)) }
    }

    /// Whether the last attempt at the step has failed, for good or until the next.
    pub(super) fn has_failed(&self) -> bool {
        match self.doing {
            StepState::Halted => true,
            StepState::Due(_) => self.attempt > 1,
            StepState::Running(_) => false,
        }
    }
}

impl Phase {
    /// Where in a list of steps it is.
    pub(super) fn progress(&mut self) -> Option<&mut Progress> {
        match self {
            Phase::Preparing { progress, .. } | Phase::Restoring { progress, .. } => Some(progress),
            Phase::Ready { .. } | Phase::Withheld { .. } | Phase::Over { .. } | Phase::Done => None,
        }
    }
}

impl Boot {
    /// Whether a document has spoken of the event since the last boot.
    pub fn is_confirmed(self) -> bool {
        match self {
            Boot::None | Boot::Heard => true,
            Boot::Unheard | Boot::UnheardAgain => false,
        }
    }

    /// Whether the VM may have booted because of the event.
    pub(super) fn may_be_caused_by_event(self) -> bool {
        match self {
            Boot::Unheard | Boot::Heard => true,
            Boot::None | Boot::UnheardAgain => false,
        }
    }

    /// A document speaks of the event. One that still waits is not what the VM booted for.
    pub(super) fn confirmed(self, has_started: bool) -> Boot {
        if has_started && self.may_be_caused_by_event() { Boot::Heard } else { Boot::None }
    }

    /// The event begins again.
    fn for_next_start(self) -> Boot {
        if self.is_confirmed() { Boot::None } else { Boot::UnheardAgain }
    }
}

impl Course {
    /// At the first of the steps before the event.
    pub(super) fn begin(rule: Rule) -> Course {
        let phase = Phase::Preparing { progress: Progress::at(0), undo: Undo::Nothing };
        Course { rule, phase, approval: Approval::Undecided }
    }

    /// Has nothing more to do until the event is over. What there is to do after an event that has nothing before it is no
    /// undoing, and is done whatever was begun.
    pub(super) fn set_ready(&mut self, undo: Undo) {
        let has_only_after = self.rule.before.is_empty() && !self.rule.after.is_empty();
        self.phase = Phase::Ready { undo: if has_only_after { Undo::Owed } else { undo } };
    }

    /// Takes the rule over as it is written now, if it still is, and goes on with the first step that has not been dealt with:
    /// the one that failed, one that was put above it, or the next where it is gone.
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

/// Which step comes next by a rule that was corrected.
pub(super) enum StepAfterReload {
    /// The one that failed.
    Same,
    /// Another, before that one.
    Another,
    /// Another, because the rule has the one of this name no more.
    Dropped(String),
}

impl TrackedEvent {
    /// The event's rule.
    pub fn rule(&self) -> Option<&Rule> {
        self.course.as_ref().map(|course| &course.rule)
    }

    /// How far the agent has come by it.
    pub fn phase(&self) -> Option<Phase> {
        self.course.as_ref().map(|course| course.phase)
    }

    /// The same in a word.
    pub fn phase_name(&self) -> &'static str {
        match self.phase() {
            None => "unmatched",
            Some(Phase::Preparing { .. }) => "preparing",
            Some(Phase::Ready { .. }) => "ready",
            Some(Phase::Withheld { .. }) => "withheld",
            Some(Phase::Over { .. }) => "over",
            Some(Phase::Restoring { .. }) if self.is_stranded() => "stranded",
            Some(Phase::Restoring { .. }) => "restoring",
            Some(Phase::Done) => "done",
        }
    }

    /// Whether a step after it has kept the VM from being put back.
    pub fn is_stranded(&self) -> bool {
        matches!(
            self.phase(),
            Some(Phase::Restoring { progress: Progress { doing: StepState::Halted, .. }, .. })
        )
    }

    /// What has become of its approval.
    pub fn approval(&self) -> &Approval {
        self.course.as_ref().map_or(&Approval::Undecided, |course| &course.approval)
    }

    /// Whether the event is in the last document that speaks of it.
    pub fn is_listed(&self) -> bool {
        match self.presence {
            Presence::Waiting { .. } | Presence::Started(_) => true,
            Presence::Gone(_) => false,
        }
    }

    /// Whether it is listed, and has started.
    pub fn is_started(&self) -> bool {
        matches!(self.presence, Presence::Started(_))
    }

    /// The tick of NotBefore, if it waits for one.
    pub(super) fn deadline(&self) -> Option<Duration> {
        match self.presence {
            Presence::Waiting { deadline } => deadline,
            Presence::Started(_) | Presence::Gone(_) => None,
        }
    }

    /// Whether the event will not happen to this VM: it was cancelled, or is other VMs' now.
    pub(super) fn is_cancelled(&self) -> bool {
        match self.presence {
            Presence::Waiting { .. } | Presence::Started(_) => self.is_reassigned(),
            Presence::Gone(end) => end == End::Cancelled,
        }
    }

    /// Whether this VM is as ready for the event as its rule wants. For one that is other VMs' now it need not be.
    pub(super) fn is_prepared(&self) -> bool {
        self.is_reassigned() || matches!(self.phase(), Some(Phase::Ready { .. }))
    }

    /// Whether this VM should get no new work because of it.
    pub fn is_draining(&self) -> bool {
        let wanted = self.rule().is_some_and(|rule| rule.drain) && (self.mine || self.is_reassigned());
        wanted && self.phase() != Some(Phase::Done)
    }

    /// Whether the VM is out of service for it, or soon will be, and the event is still to come, or under way.
    pub(super) fn blocks_restore(&self) -> bool {
        self.is_draining() && !self.is_over()
    }

    /// Whether there is something to undo when it is over.
    pub(super) fn has_undo(&self) -> bool {
        match self.phase() {
            Some(Phase::Preparing { undo, .. } | Phase::Ready { undo } | Phase::Withheld { undo, .. }) => {
                undo == Undo::Owed
            }
            Some(Phase::Over { .. } | Phase::Restoring { .. }) => true,
            Some(Phase::Done) | None => false,
        }
    }

    /// Whether the event is now for other VMs only, though it was this one's when its rule matched.
    pub(super) fn is_reassigned(&self) -> bool {
        !self.mine && self.rule().is_some_and(|rule| rule.matches.resources == ResourceMatch::Mine)
    }

    /// Whether there is no reason for its rule any more: it is gone, or no longer for this VM, or another rule is for it.
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

    /// Whether the VM may be put back: there is no reason for its rule, or it was this boot that it was about, if that is
    /// enough.
    pub(super) fn is_over(&self) -> bool {
        let enough = self.rule().is_some_and(|rule| rule.restore == Restore::Booted);
        self.has_lapsed() || enough && self.boot.may_be_caused_by_event() && self.is_started()
    }

    /// Begins again with an event that was over: by the same rule, if there is something to undo by it.
    pub(super) fn begin_again(&mut self) {
        self.boot = self.boot.for_next_start();
        self.course.take_if(|course| course.phase == Phase::Done);
        if let Some(course) = &mut self.course {
            course.approval = Approval::Undecided;
        }
    }

    /// Takes leave of its rule, with nothing left to undo by it.
    pub(super) fn finish(&mut self, next: AfterRestore) {
        if let Some(course) = &mut self.course {
            course.phase = Phase::Done;
        }
        match next {
            AfterRestore::Done => {}
            AfterRestore::AnotherRule => self.begin_again(),
        }
    }

    /// The step that runs or comes next, and of which list.
    pub fn step(&self) -> Option<(Stage, &Step)> {
        let course = self.course.as_ref()?;
        let (stage, step) = match course.phase {
            Phase::Preparing { progress, .. } => (Stage::Before, progress.step),
            Phase::Restoring { progress, .. } => (Stage::After, progress.step),
            Phase::Ready { .. } | Phase::Withheld { .. } | Phase::Over { .. } | Phase::Done => return None,
        };
        Some((stage, course.rule.steps(stage).get(step)?))
    }

    /// The attempt that runs.
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
