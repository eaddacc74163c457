//! One event that the agent knows of, and how far it has come with it.
//!
//! ```text
//!               a rule matches            steps done, or one failed           gone
//!   Unmatched ────────────────▶ Preparing ────────────────────────▶ Ready ──────────▶ Over ──▶ Restoring ──▶ Done
//!                                   └──────────────── gone (cancelled) ───────────────▲
//! ```
//!
//! Nothing goes back but where it is a new beginning: an event that is there again after it was gone, or this VM's again after it
//! was taken from it; one that was other VMs' and is now this one's, so that another rule is for it; one that still waits when
//! the VM has booted, which started anew all that had been stopped; what failed, when somebody has seen to it; and putting
//! back, when another event takes the VM out meanwhile.

use std::time::Duration;

use jiff::Timestamp;
use notbefore_client::document::{Event, EventStatus};
use serde::{Deserialize, Serialize};

use super::io::{RunId, Stage};
use crate::rules::{Restore, Rule, Step, Whose};

/// An event, and how far the agent has come with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handled {
    /// As it was last seen. It never goes back from started.
    pub event: Event,
    /// Whether this VM is among its resources.
    pub mine: bool,
    /// When it was first seen, by the wall clock.
    pub seen_at: Timestamp,
    /// Its rule, as it was when it matched.
    pub rule: Option<Rule>,
    /// How far it has come.
    pub phase: Phase,
    /// What has become of its approval.
    pub approval: Approval,
    /// Whether every step before it has been dealt with as its rule wants.
    pub prepared: bool,
    /// Whether a step before it was ever begun, or it has none: only then there is something to do after it.
    pub begun: bool,
    /// Whether the VM has booted since the event was last seen waiting.
    pub booted: bool,
    /// Whether a document has said since the last boot how it is with the event.
    pub heard: bool,
    /// Whether the event is in the last document.
    pub listed: bool,
    /// Whether it was cancelled, as far as can be told: gone unstarted, unapproved, and before its time.
    pub cancelled: bool,
    /// Whether it was told that the platform took a start back.
    pub went_back: bool,
    /// Whether it was told that restoring waits for another event.
    pub held: bool,
    /// Whether it has become this VM's, and another rule is for it: what was begun by the first is undone before that.
    pub replaced: bool,
    /// The tick of NotBefore; none where there is no such time.
    pub(super) deadline: Option<Duration>,
}

/// How far the agent has come with an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// No rule is for it, or none yet.
    Unmatched,
    /// The steps before it are run.
    Preparing(Progress),
    /// There is nothing more to do until it is over, but for its approval.
    Ready,
    /// It is over, and the VM is to be put back; a step that still runs has to end first, or another event.
    Over {
        /// The step before it that was told to stop.
        stopping: Option<RunId>,
    },
    /// The steps after it are run.
    Restoring(Progress),
    /// All is done; it is forgotten when it is no longer listed.
    Done,
}

/// Where in a list of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Which step, from 0.
    pub step: usize,
    /// Which attempt at it, from 1.
    pub attempt: u32,
    /// Whether it runs.
    pub doing: Doing,
    /// Until when it may run because of NotBefore.
    pub bound: Bound,
    /// Whether a step of this list has failed.
    pub failed: bool,
    /// Whether there was no time for a step that may not fail: what follows is done, but the VM is not ready.
    pub unready: bool,
}

/// Whether a step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// Not yet: it is begun at this tick.
    Due(Duration),
    /// It does.
    Running(RunId),
    /// It has failed, and nothing goes on until somebody has seen to it. Only when putting back.
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
    /// It is to be sent.
    Wanted {
        /// How often it was sent in vain.
        failures: u32,
        /// At which tick it is sent.
        due: Duration,
    },
    /// It is under way.
    Sent {
        /// How often it was sent in vain before.
        failures: u32,
    },
    /// The platform has taken it.
    Given,
    /// There is nothing to approve any more.
    Moot,
    /// This agent does not approve: it is for another VM to, or for nobody. That may change with the event.
    NotMine {
        /// Why, in a line for a person.
        reason: String,
    },
    /// This agent does not approve: it is not ready for the event.
    Withheld {
        /// Why, in a line for a person.
        reason: String,
        /// Which step it is for, from 0.
        step: usize,
    },
}

impl Progress {
    /// At the first attempt of a step that is due at once.
    pub(super) fn at(step: usize) -> Progress {
        let (doing, bound) = (Doing::Due(Duration::ZERO), Bound::Open);
        Progress { step, attempt: 1, doing, bound, failed: false, unready: false }
    }

    /// At the first attempt of the step after this one.
    pub(super) fn next(self) -> Progress {
        Progress { failed: self.failed, unready: self.unready, ..Progress::at(self.step.saturating_add(1)) }
    }
}

impl Phase {
    /// The phase in a word.
    pub fn word(&self) -> &'static str {
        match self {
            Phase::Unmatched => "unmatched",
            Phase::Preparing(_) => "preparing",
            Phase::Ready => "ready",
            Phase::Over { .. } => "over",
            Phase::Restoring(Progress { doing: Doing::Halted, .. }) => "stranded",
            Phase::Restoring(_) => "restoring",
            Phase::Done => "done",
        }
    }
}

impl Handled {
    /// Whether the platform says that it has started.
    pub fn started(&self) -> bool {
        self.event.status == EventStatus::Started
    }

    /// Whether this VM should get no new work because of it.
    pub fn drains(&self) -> bool {
        let wanted = self.rule.as_ref().is_some_and(|rule| rule.drain) && (self.mine || self.is_lost());
        wanted && !matches!(self.phase, Phase::Unmatched | Phase::Done)
    }

    /// Whether the VM is out of service for it, or soon will be, and the event is still to come, or under way.
    pub(super) fn keeps_out(&self) -> bool {
        self.drains() && !self.is_over()
    }

    /// Whether the event is now for other VMs only, though it was this one's when its rule matched.
    pub(super) fn is_lost(&self) -> bool {
        !self.mine && self.rule.as_ref().is_some_and(|rule| rule.matches.resources == Whose::Mine)
    }

    /// Whether there is no reason for its rule any more: it is gone, or no longer for this VM, or another rule is for it.
    pub(super) fn has_lapsed(&self) -> bool {
        !self.listed || self.is_lost() || self.replaced
    }

    /// Whether the VM may be put back: there is no reason for its rule, or it was this boot that it was about, if that is
    /// enough.
    pub(super) fn is_over(&self) -> bool {
        let enough = self.rule.as_ref().is_some_and(|rule| rule.restore == Restore::Booted);
        self.has_lapsed() || enough && self.booted && self.started()
    }

    /// Begins anew with an event that was over: by the same rule, if there is something to undo by it.
    pub(super) fn begin_anew(&mut self) {
        self.cancelled = false;
        self.booted = false;
        self.went_back = false;
        self.held = false;
        self.approval = Approval::Undecided;
        self.prepared = false;
        if self.phase == Phase::Done {
            self.phase = Phase::Unmatched;
            self.rule = None;
        }
    }

    /// Takes leave of the rule that is not for it any more, with nothing left to undo.
    pub(super) fn without_rule(&mut self) {
        self.phase = Phase::Done;
        self.replaced = false;
        self.begin_anew();
    }

    /// Whether there is something to do after the event though there is nothing before it: then that is no undoing.
    pub(super) fn has_only_after(&self) -> bool {
        self.rule.as_ref().is_some_and(|rule| rule.before.is_empty() && !rule.after.is_empty())
    }

    /// The step that runs or comes next, and of which list.
    pub fn step(&self) -> Option<(Stage, &Step)> {
        let rule = self.rule.as_ref()?;
        match &self.phase {
            Phase::Preparing(progress) => Some((Stage::Before, rule.before.get(progress.step)?)),
            Phase::Restoring(progress) => Some((Stage::After, rule.after.get(progress.step)?)),
            Phase::Unmatched | Phase::Ready | Phase::Over { .. } | Phase::Done => None,
        }
    }

    /// The attempt that runs.
    pub(super) fn running(&self) -> Option<RunId> {
        match &self.phase {
            Phase::Preparing(Progress { doing: Doing::Running(run), .. })
            | Phase::Restoring(Progress { doing: Doing::Running(run), .. }) => Some(*run),
            Phase::Over { stopping } => *stopping,
            Phase::Preparing(_) | Phase::Restoring(_) | Phase::Unmatched | Phase::Ready | Phase::Done => None,
        }
    }
}
