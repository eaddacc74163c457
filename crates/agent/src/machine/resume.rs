//! Resumes after a restart of the agent or a reboot of the VM; the boot id tells them apart.
//!
//! - After a restart, the VM is unchanged: finished steps stay finished, and an interrupted step follows its
//!   `on_interrupt`.
//! - After a boot, stopped services may run again. Events that still wait are prepared again from the first step;
//!   started events are not; a restore starts over from its first step.

use std::time::Duration;

use notbefore_client::clock::Moment;

use super::io::{Action, FactKind};
use super::read::{PREEMPT_NOTICE, has_implicit_notice};
use super::tracked_event::{Approval, Boot, Phase, Presence, Progress, RestoreWait, StepState};
use super::{Setup, State, Turn};
use crate::rules::OnInterrupt;

/// How long pending work waits for a document after a start, because the document may cancel it. If the endpoint is
/// down, the agent then continues with the state it has.
const REST: Duration = Duration::from_secs(5);

impl State {
    /// Resumes from a saved state. Call once, before any input.
    pub fn resume(mut self, setup: &Setup, boot: Option<String>, now: Moment) -> (State, Vec<Action>) {
        // Without a boot id, assume no boot: repeating a step is safer than undoing it.
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
    /// Ticks of the previous process are meaningless; deadlines that were pending are due now.
    fn rebase_ticks(&mut self, index: usize) {
        let now = self.now;
        let handled = &mut self.state.events[index];
        let unsaid = || handled.seen_at.saturating_add(PREEMPT_NOTICE).ok();
        let unsaid = || has_implicit_notice(&handled.event).then(unsaid).flatten();
        let not_before = handled.event.not_before.or_else(unsaid).filter(|_| !handled.event.is_advisory());
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
            // The runner that was to stop the step is gone. On systemd its processes are gone too; elsewhere this is
            // unknown.
            Phase::Over { waits: waits @ RestoreWait::Stopping(_), .. } => *waits = RestoreWait::Nothing,
            Phase::Preparing { .. }
            | Phase::Ready { .. }
            | Phase::Withheld { .. }
            | Phase::Over { .. }
            | Phase::Restoring { .. }
            | Phase::Done => {}
        }
        // An approval without an answer is sent again; approving twice is no error.
        if let Approval::Wanted { failures, .. } | Approval::Sent { failures } = course.approval {
            course.approval = Approval::Wanted { failures, due: now.tick };
        }
    }

    fn after_restart(&mut self, index: usize) {
        // The operator may have fixed the cause before the restart.
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
            // The next document says whether the event still exists; until then no step starts.
            Some(Phase::Preparing { undo, .. } | Phase::Ready { undo } | Phase::Withheld { undo, .. })
                if !has_started =>
            {
                self.set(index, Phase::Preparing { progress: Progress::at(0), undo });
                // Steps that failed before the boot may succeed now.
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
