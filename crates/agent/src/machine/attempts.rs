//! Ended attempts at steps: continue after success, retry or give up after failure, and skip steps that NotBefore
//! leaves no time for.

use notbefore_client::document::EventId;
use notbefore_wire::text::shorten;

use super::io::{AfterFailure, FactKind, RunId, Stage, StepOutcome};
use super::tracked_event::{
    AfterRestore, Approval, Bound, Course, Phase, Presence, Progress, RestoreWait, StepAfterReload, StepState,
};
use super::{Turn, settle};
use crate::rules::{OnFailure, StepAction};

/// Longest reason of a failed step that stays in the state, and so in the journal.
const REASON_CHARACTERS_MAX: usize = 200;

impl Turn<'_> {
    pub(super) fn ended(&mut self, run: RunId, outcome: StepOutcome) {
        let Some(index) = self.state.events.iter().position(|handled| handled.running() == Some(run)) else {
            return;
        };
        let handled = &self.state.events[index];
        if let Some(Phase::Over { next, .. }) = handled.phase() {
            return self.set(index, Phase::Over { waits: RestoreWait::Nothing, next });
        }
        let Some((stage, step)) = handled.step() else { return };
        let name = step.name.clone();
        match outcome {
            StepOutcome::Done => {
                self.report(index, FactKind::StepDone { step: name, stage });
                self.next_step(index, false);
            }
            StepOutcome::Failed { reason } => self.failed(index, reason),
            StepOutcome::TimedOut if self.is_out_of_time(index) => {
                self.out_of_time(index, "NotBefore was reached before it ended")
            }
            StepOutcome::TimedOut => self.failed(index, "it exceeded its timeout".into()),
            StepOutcome::Stopped => match stage {
                Stage::Before => self.out_of_time(index, "it was stopped: NotBefore was moved closer"),
                // A restore has no deadline.
                Stage::After => self.failed(index, "it was stopped".into()),
            },
        }
    }

    /// Whether NotBefore, not the step's own timeout, ended the attempt.
    fn is_out_of_time(&self, index: usize) -> bool {
        let handled = &self.state.events[index];
        let Some(Phase::Preparing { progress, .. }) = handled.phase() else { return false };
        let left = settle::time_for_step(handled, self.now.tick);
        progress.bound != Bound::Passed && left.is_some_and(|left| left.is_zero())
    }

    /// NotBefore leaves no time for a step. The event comes regardless, so later steps use the time reserved for
    /// them. A `wait` step counts as done: it has waited as long as it could.
    pub(super) fn out_of_time(&mut self, index: usize, reason: &str) {
        let Some((stage, step)) = self.state.events[index].step() else { return };
        let (name, on_failure) = (step.name.clone(), step.on_failure);
        if let StepAction::Wait { .. } = step.does {
            self.report(index, FactKind::StepDone { step: name, stage });
            return self.next_step(index, false);
        }
        let then = match on_failure {
            OnFailure::GoOn => AfterFailure::GoOn,
            OnFailure::Withhold => AfterFailure::WithholdAndGoOn,
        };
        self.report(
            index,
            FactKind::StepFailed { step: name.clone(), stage, reason: reason.to_owned(), then },
        );
        let had_to_be_done = then == AfterFailure::WithholdAndGoOn;
        if had_to_be_done {
            self.withhold(index, &name, reason);
        }
        self.next_step(index, had_to_be_done);
    }

    /// Withholds approval because a step failed, and reports it once.
    fn withhold(&mut self, index: usize, name: &str, why: &str) {
        let Some(course) = &mut self.state.events[index].course else { return };
        if let Approval::Undecided = course.approval {
            let reason = format!("the step `{name}` failed: {}", shorten(why, REASON_CHARACTERS_MAX));
            course.approval = Approval::Withheld { reason: reason.clone() };
            self.report(index, FactKind::Withheld { reason });
        }
    }

    /// Advances to the next step of the list. `is_flawed`: the current step was required and was not done.
    fn next_step(&mut self, index: usize, is_flawed: bool) {
        self.change_progress(index, |progress| *progress = progress.next(is_flawed));
    }

    fn change_progress(&mut self, index: usize, change: impl FnOnce(&mut Progress)) {
        let course = self.state.events[index].course.as_mut();
        if let Some(progress) = course.and_then(|course| course.phase.progress()) {
            change(progress);
        }
    }

    /// Handles a failed attempt: retry, skip the step, or stop the list.
    fn failed(&mut self, index: usize, reason: String) {
        let now = self.now.tick;
        let handled = &self.state.events[index];
        let Some((stage, step)) = handled.step() else { return };
        let Some(phase) = handled.phase() else { return };
        let (Phase::Preparing { progress, .. } | Phase::Restoring { progress, .. }) = phase else { return };
        let again_at = now.saturating_add(step.retry_delay);
        let in_time = settle::time_for_step(handled, again_at).is_none_or(|left| !left.is_zero());
        let then = if progress.attempt <= step.retries && in_time {
            AfterFailure::Retry
        } else {
            match step.on_failure {
                OnFailure::Withhold => AfterFailure::Withhold,
                OnFailure::GoOn => AfterFailure::GoOn,
            }
        };
        let step = step.name.clone();
        self.report(index, FactKind::StepFailed { step: step.clone(), stage, reason: reason.clone(), then });
        match then {
            AfterFailure::Retry => self.change_progress(index, |progress| {
                progress.attempt = progress.attempt.saturating_add(1);
                progress.doing = StepState::Due(again_at);
            }),
            AfterFailure::GoOn => self.next_step(index, stage == Stage::After),
            AfterFailure::Withhold => match phase {
                Phase::Preparing { undo, .. } => {
                    self.withhold(index, &step, &reason);
                    self.set(index, Phase::Withheld { step: progress.flaw.unwrap_or(progress.step), undo });
                }
                Phase::Restoring { .. } => {
                    self.change_progress(index, |progress| progress.doing = StepState::Halted);
                    self.report(index, FactKind::Stranded { step });
                }
                Phase::Ready { .. } | Phase::Withheld { .. } | Phase::Over { .. } | Phase::Done => {}
            },
            AfterFailure::WithholdAndGoOn => {}
        }
    }

    /// Retries at once what failed of an event, whether it failed for good or waits for its next attempt.
    pub(super) fn retry_now(&mut self, event: &EventId) {
        let now = self.now.tick;
        let Some(index) = self.state.events.iter().position(|handled| handled.event.id == *event) else {
            return;
        };
        self.retry_step(index);
        self.change_progress(index, |progress| {
            if let StepState::Due(at) = &mut progress.doing {
                *at = now.min(*at);
            }
        });
        let course = self.state.events[index].course.as_mut();
        if let Some(Course { approval: Approval::Wanted { due, .. }, .. }) = course {
            *due = now.min(*due);
        }
    }

    /// Retries a failed step with its current rule, whether it failed for good or waits for its next attempt. If that
    /// rule no longer matches the event, what was done by it is undone, and another rule may match. If another event
    /// drains the VM, that happens when the other event is over: a restore would put the VM back into service.
    pub(super) fn retry_step(&mut self, index: usize) {
        let now = self.now.tick;
        let handled = &mut self.state.events[index];
        let waits = matches!(handled.presence, Presence::Waiting { .. }) && !handled.is_over();
        let match_input = settle::match_input(handled, now);
        let mut rules =
            self.setup.rules.iter().filter(|rule| !rule.matches.covers_ignoring_time(&match_input));
        let is_unmatched = waits && rules.any(|rule| handled.rule().is_some_and(|own| own.name == rule.name));
        let Some(course) = &mut handled.course else { return };
        let stage = match course.phase {
            Phase::Withheld { .. } if waits => Stage::Before,
            Phase::Preparing { progress, .. } if progress.has_failed() => Stage::Before,
            Phase::Restoring { progress, .. } if progress.has_failed() => Stage::After,
            Phase::Preparing { .. }
            | Phase::Ready { .. }
            | Phase::Withheld { .. }
            | Phase::Over { .. }
            | Phase::Restoring { .. }
            | Phase::Done => return,
        };
        if is_unmatched && stage == Stage::Before {
            course.approval = Approval::Undecided;
            self.report(index, FactKind::RuleUnmatched);
            return self.lapse(index, AfterRestore::AnotherRule);
        }
        let corrected = course.apply_rules(&self.setup.rules);
        let is_for_good = match &mut course.phase {
            Phase::Withheld { step, undo } => {
                course.phase = Phase::Preparing { progress: Progress::at(*step), undo: *undo };
                if let Approval::Withheld { .. } = course.approval {
                    course.approval = Approval::Undecided;
                }
                true
            }
            Phase::Preparing { progress, .. } | Phase::Restoring { progress, .. } => {
                let is_halted = progress.doing == StepState::Halted;
                if is_halted || !matches!(corrected, StepAfterReload::Same) {
                    (progress.doing, progress.attempt) = (StepState::Due(now), 1);
                }
                is_halted
            }
            Phase::Ready { .. } | Phase::Over { .. } | Phase::Done => return,
        };
        let next = handled.step().map(|(_, step)| step.name.clone());
        match (corrected, next) {
            (StepAfterReload::Dropped(step), _) => self.report(index, FactKind::StepDropped { step, stage }),
            (StepAfterReload::Same | StepAfterReload::Another, Some(step)) if is_for_good => {
                self.report(index, FactKind::TriedAgain { step, stage });
            }
            (StepAfterReload::Same | StepAfterReload::Another, _) => {}
        }
    }
}
