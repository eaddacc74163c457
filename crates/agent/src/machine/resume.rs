//! Going on after the agent, or the VM, has been started again.
//!
//! The boot id tells the two apart. After a restart of the agent the VM is as it was: steps that were done are done, and
//! one that was begun and had not ended follows its `on_interrupt`. After a boot the VM is not as it was: whatever
//! had been stopped may run again. An event that still waits is prepared for from the first step on; for one that
//! has started nothing more is prepared; and what was being put back is put back from the first step on.

use std::time::Duration;

use notbefore_client::clock::Moment;

use super::io::{Action, FactKind};
use super::read::{PREEMPT_NOTICE, has_implicit_notice};
use super::tracked_event::{Approval, Boot, Phase, Presence, Progress, RestoreWait, StepState};
use super::{Setup, State, Turn};
use crate::rules::OnInterrupt;

/// How long what was under way waits for a document after a start, which says whether there is still a reason for it. Where
/// the endpoint is down, the agent goes on with what it knows.
const REST: Duration = Duration::from_secs(5);

impl State {
    /// Goes on with what an agent before this one remembered. To be called once, before anything else.
    pub fn resume(mut self, setup: &Setup, boot: Option<String>, now: Moment) -> (State, Vec<Action>) {
        // Where the system does not tell boots apart, none is assumed: steps are rather done once more than undone.
        let booted = self.boot.is_some() && boot.is_some() && self.boot != boot;
        self.boot = boot;
        self.unheard_boot |= booted;
        self.resting_until = (!self.events.is_empty()).then(|| now.tick.saturating_add(REST));
        let mut turn = Turn { setup, now, state: self, actions: Vec::new() };
        for index in 0..turn.state.events.len() {
            turn.rebase_ticks(index);
            match booted {
                true => turn.after_boot(index),
                false => turn.after_restart(index),
            }
        }
        (turn.state, turn.actions)
    }
}

impl Turn<'_> {
    /// The ticks of an agent before this one mean nothing; what was due is due now.
    fn rebase_ticks(&mut self, index: usize) {
        let now = self.now;
        let handled = &mut self.state.events[index];
        let unsaid = || handled.seen_at.saturating_add(PREEMPT_NOTICE).ok();
        let unsaid = || has_implicit_notice(&handled.event).then(unsaid).flatten();
        let not_before = handled.event.not_before.or_else(unsaid);
        if let Presence::Waiting { deadline } = &mut handled.presence {
            *deadline = not_before.map(|at| {
                let left = Duration::try_from(at.duration_since(now.wall)).unwrap_or(Duration::ZERO);
                now.tick.saturating_add(left)
            });
        }
        let Some(course) = &mut handled.course else { return };
        match &mut course.phase {
            Phase::Preparing { progress: Progress { doing: StepState::Due(at), .. }, .. }
            | Phase::Restoring { progress: Progress { doing: StepState::Due(at), .. }, .. } => *at = now.tick,
            // Whoever was told to stop it is gone. So is what it ran, where systemd sees to that; elsewhere nobody can tell.
            Phase::Over { waits: waits @ RestoreWait::Stopping(_), .. } => *waits = RestoreWait::Nothing,
            Phase::Preparing { .. }
            | Phase::Ready { .. }
            | Phase::Withheld { .. }
            | Phase::Over { .. }
            | Phase::Restoring { .. }
            | Phase::Done => {}
        }
        // An approval whose answer nobody heard is sent again: approving twice is no error.
        if let Approval::Wanted { failures, .. } | Approval::Sent { failures } = course.approval {
            course.approval = Approval::Wanted { failures, due: now.tick };
        }
    }

    fn after_restart(&mut self, index: usize) {
        // Whoever restarts the agent may well have seen to what failed.
        self.retry_step(index);
        let handled = &mut self.state.events[index];
        let Some((stage, step)) = handled.step() else { return };
        let (name, rerun) = (step.name.clone(), step.on_interrupt == OnInterrupt::Rerun);
        let progress = handled.course.as_mut().and_then(|course| course.phase.progress());
        let Some(progress) = progress.filter(|progress| matches!(progress.doing, StepState::Running(_)))
        else {
            return;
        };
        progress.doing = StepState::Due(self.now.tick);
        if !rerun {
            *progress = progress.next(false);
        }
        self.report(index, FactKind::StepInterrupted { step: name, stage, rerun });
    }

    fn after_boot(&mut self, index: usize) {
        let handled = &mut self.state.events[index];
        handled.boot = Boot::Unheard;
        let has_started = handled.is_started();
        let phase = handled.phase();
        match phase {
            // Whether there is still a reason, the next document says; until it does nothing is begun.
            Some(Phase::Preparing { undo, .. } | Phase::Ready { undo } | Phase::Withheld { undo, .. })
                if !has_started =>
            {
                self.set(index, Phase::Preparing { progress: Progress::at(0), undo });
                // What a step did not manage then, it may manage now.
                if let Some(course) = &mut self.state.events[index].course
                    && course.approval != Approval::Given
                {
                    course.approval = Approval::Undecided;
                }
            }
            Some(Phase::Preparing { undo, .. }) => self.ready(index, undo),
            Some(Phase::Restoring { next, .. }) => {
                self.set(index, Phase::Restoring { progress: Progress::at(0), next });
            }
            Some(Phase::Ready { .. } | Phase::Withheld { .. } | Phase::Over { .. } | Phase::Done) | None => {}
        }
        self.report(index, FactKind::Booted);
    }
}
