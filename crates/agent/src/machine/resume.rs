//! Going on after the agent, or the VM, has been started anew.
//!
//! The boot id tells the two apart. After a restart of the agent the VM is as it was: steps that were done are done, and
//! one that was begun and had not ended follows its `on_interrupt`. After a boot the VM is not as it was: whatever
//! had been stopped may run again. An event that still waits is prepared for from the first step on; for one that
//! has started nothing more is prepared; and what was being put back is put back from the first step on.

use std::time::Duration;

use notbefore_client::clock::Moment;

use super::handled::{Approval, Doing, Handled, Phase, Progress};
use super::io::{Action, What};
use super::read::{PREEMPT_NOTICE, leaves_its_notice_unsaid};
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
        for place in 0..turn.state.events.len() {
            turn.new_ticks(place);
            match booted {
                true => turn.after_a_boot(place),
                false => turn.after_a_restart(place),
            }
        }
        (turn.state, turn.actions)
    }
}

impl Turn<'_> {
    /// The ticks of an agent before this one mean nothing; what was due is due now.
    fn new_ticks(&mut self, place: usize) {
        let now = self.now;
        let handled = &mut self.state.events[place];
        let unsaid = || handled.seen_at.saturating_add(PREEMPT_NOTICE).ok();
        let unsaid = || leaves_its_notice_unsaid(&handled.event).then(unsaid).flatten();
        let not_before = handled.event.not_before.or_else(unsaid);
        handled.deadline = not_before.filter(|_| !handled.started() && handled.listed).map(|at| {
            let left = Duration::try_from(at.duration_since(now.wall)).unwrap_or(Duration::ZERO);
            now.tick.saturating_add(left)
        });
        match &mut handled.phase {
            Phase::Preparing(Progress { doing: Doing::Due(at), .. })
            | Phase::Restoring(Progress { doing: Doing::Due(at), .. }) => *at = now.tick,
            // Whoever was told to stop it is gone. So is what it ran, where systemd sees to that; elsewhere nobody can tell.
            Phase::Over { stopping } => *stopping = None,
            Phase::Preparing(_) | Phase::Restoring(_) | Phase::Unmatched | Phase::Ready | Phase::Done => {}
        }
        // An approval whose answer nobody heard is sent again: approving twice is no error.
        if let Approval::Wanted { failures, .. } | Approval::Sent { failures } = handled.approval {
            handled.approval = Approval::Wanted { failures, due: now.tick };
        }
    }

    fn after_a_restart(&mut self, place: usize) {
        // Whoever restarts the agent may well have seen to what failed.
        self.try_again(place);
        let handled = &mut self.state.events[place];
        let Some((stage, step)) = handled.step() else { return };
        let (name, rerun) = (step.name.clone(), step.on_interrupt == OnInterrupt::Rerun);
        let (Phase::Preparing(progress) | Phase::Restoring(progress)) = &mut handled.phase else { return };
        let Doing::Running(_) = progress.doing else { return };
        progress.doing = Doing::Due(self.now.tick);
        if !rerun {
            *progress = progress.next();
        }
        self.tell(place, What::StepInterrupted { step: name, stage, rerun });
    }

    fn after_a_boot(&mut self, place: usize) {
        let handled: &mut Handled = &mut self.state.events[place];
        handled.booted = true;
        handled.heard = false;
        match handled.phase {
            // Whether there is still a reason, the next document says; until it does nothing is begun.
            Phase::Preparing(_) | Phase::Ready if !handled.started() => {
                handled.phase = Phase::Preparing(Progress::at(0));
                handled.prepared = false;
                // What a step did not manage then, it may manage now.
                if handled.approval != Approval::Given {
                    handled.approval = Approval::Undecided;
                }
            }
            Phase::Preparing(_) => handled.phase = Phase::Ready,
            Phase::Restoring(_) => handled.phase = Phase::Restoring(Progress::at(0)),
            Phase::Ready | Phase::Over { .. } | Phase::Unmatched | Phase::Done => {}
        }
        self.tell(place, What::Booted);
    }
}
