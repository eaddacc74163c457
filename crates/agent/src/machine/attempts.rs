//! Attempts at steps that have ended: what comes next, of those that were done, that failed, or that NotBefore left no time for.

use super::handled::{Approval, Bound, Doing, Phase, Progress};
use super::io::{RunId, Stage, StepOutcome, Then, What};
use super::{Turn, settle};
use crate::rules::{Deed, OnFailure};

impl Turn<'_> {
    /// Takes in that an attempt has ended.
    pub(super) fn ended(&mut self, run: RunId, outcome: StepOutcome) {
        let Some(place) = self.state.events.iter().position(|handled| handled.running() == Some(run)) else {
            return;
        };
        let handled = &mut self.state.events[place];
        if let Phase::Over { stopping } = &mut handled.phase {
            *stopping = None;
            return;
        }
        let Some((stage, step)) = handled.step() else { return };
        let name = step.name.clone();
        match outcome {
            StepOutcome::Done => {
                self.tell(place, What::StepDone { step: name, stage });
                self.next_step(place);
            }
            StepOutcome::Failed { reason } => self.failed(place, reason),
            StepOutcome::TimedOut if self.is_out_of_time(place) => {
                self.out_of_time(place, "NotBefore came before it was done")
            }
            StepOutcome::TimedOut => self.failed(place, "it took longer than it may".into()),
            StepOutcome::Stopped => {
                self.out_of_time(place, "it was stopped: NotBefore is nearer than it was")
            }
        }
    }

    /// Whether it is NotBefore that a step has no more time for, and not its own timeout.
    fn is_out_of_time(&self, place: usize) -> bool {
        let handled = &self.state.events[place];
        let Phase::Preparing(progress) = &handled.phase else { return false };
        let left = settle::time_for_step(handled, self.now.tick);
        progress.bound != Bound::Passed && left.is_some_and(|left| left.is_zero())
    }

    /// NotBefore left no time for a step before the event. The event comes all the same, so what follows is done with the time
    /// that was kept for it. Who was only to wait has waited as long as there was time.
    pub(super) fn out_of_time(&mut self, place: usize, reason: &str) {
        let Some((stage, step)) = self.state.events[place].step() else { return };
        let (name, on_failure) = (step.name.clone(), step.on_failure);
        if let Deed::Wait { .. } = step.does {
            self.tell(place, What::StepDone { step: name, stage });
            return self.next_step(place);
        }
        let then = match on_failure {
            OnFailure::GoOn => Then::GoOn,
            OnFailure::Withhold => Then::WithholdAndGoOn,
        };
        self.tell(place, What::StepFailed { step: name.clone(), stage, reason: reason.to_owned(), then });
        if then == Then::WithholdAndGoOn {
            self.withhold(place, &name);
        }
        self.note_failure(place, then == Then::WithholdAndGoOn);
        self.next_step(place);
    }

    /// Does not approve the event because of a step, and says so, once.
    fn withhold(&mut self, place: usize, name: &str) {
        let handled = &mut self.state.events[place];
        let Phase::Preparing(Progress { step, .. }) = handled.phase else { return };
        if let Approval::Undecided = handled.approval {
            let reason = format!("the step `{name}` failed");
            handled.approval = Approval::Withheld { reason: reason.clone(), step };
            self.tell(place, What::Withheld { reason });
        }
    }

    /// Goes to the next step of the list that is being run.
    fn next_step(&mut self, place: usize) {
        match &mut self.state.events[place].phase {
            Phase::Preparing(progress) | Phase::Restoring(progress) => *progress = progress.next(),
            Phase::Unmatched | Phase::Ready | Phase::Over { .. } | Phase::Done => {}
        }
    }

    /// Notes that a step has failed, and that the VM is not ready for the event if that step had to be done.
    fn note_failure(&mut self, place: usize, unready: bool) {
        match &mut self.state.events[place].phase {
            Phase::Preparing(progress) | Phase::Restoring(progress) => {
                progress.failed = true;
                progress.unready |= unready;
            }
            Phase::Unmatched | Phase::Ready | Phase::Over { .. } | Phase::Done => {}
        }
    }

    /// An attempt has failed: it is tried again, or passed over, or it is the end of the list.
    fn failed(&mut self, place: usize, reason: String) {
        let now = self.now.tick;
        let handled = &self.state.events[place];
        let Some((stage, step)) = handled.step() else { return };
        let (Phase::Preparing(progress) | Phase::Restoring(progress)) = &handled.phase else { return };
        let again_at = now.saturating_add(step.retry_delay);
        let in_time = settle::time_for_step(handled, again_at).is_none_or(|left| !left.is_zero());
        let then = if progress.attempt <= step.retries && in_time {
            Then::Retry
        } else {
            match step.on_failure {
                OnFailure::Withhold => Then::Withhold,
                OnFailure::GoOn => Then::GoOn,
            }
        };
        let mut progress = *progress;
        let step = step.name.clone();
        self.tell(place, What::StepFailed { step: step.clone(), stage, reason, then });
        match then {
            Then::Retry => {
                progress.attempt += 1;
                progress.doing = Doing::Due(again_at);
                self.state.events[place].phase = match stage {
                    Stage::Before => Phase::Preparing(progress),
                    Stage::After => Phase::Restoring(progress),
                };
            }
            Then::GoOn => {
                self.note_failure(place, false);
                self.next_step(place);
            }
            Then::Withhold => match stage {
                Stage::Before => {
                    self.withhold(place, &step);
                    self.state.events[place].phase = Phase::Ready;
                }
                Stage::After => {
                    progress.doing = Doing::Halted;
                    self.state.events[place].phase = Phase::Restoring(progress);
                    self.tell(place, What::Stranded { step });
                }
            },
            Then::WithholdAndGoOn => {}
        }
    }

    pub(super) fn restored(&mut self, place: usize, whole: bool) {
        let handled = &mut self.state.events[place];
        let told = handled.begun;
        handled.phase = Phase::Done;
        handled.begun = false;
        handled.held = false;
        if handled.replaced {
            handled.without_rule();
        }
        if told {
            self.tell(place, What::Restored { whole });
        }
    }

    /// Tries again what has failed for good.
    pub(super) fn try_again(&mut self, place: usize) {
        let now = self.now.tick;
        let handled = &mut self.state.events[place];
        let waits = handled.listed && !handled.started() && !handled.is_over();
        match (&mut handled.phase, &handled.approval) {
            (Phase::Ready, Approval::Withheld { step, .. }) if waits => {
                handled.phase = Phase::Preparing(Progress::at(*step));
                handled.approval = Approval::Undecided;
            }
            (Phase::Restoring(progress), _) if progress.doing == Doing::Halted => {
                (progress.doing, progress.attempt) = (Doing::Due(now), 1);
            }
            _ => return,
        }
        let again = handled.step().map(|(stage, step)| What::TriedAgain { step: step.name.clone(), stage });
        if let Some(again) = again {
            self.tell(place, again);
        }
    }
}
