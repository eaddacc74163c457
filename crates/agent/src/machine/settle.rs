//! Settling: advances every event, to a fixed point, until each one waits for an input or a deadline.

use std::time::Duration;

use notbefore_client::document::{EventKind, EventStatus};

use super::io::{Action, FactKind, Run, RunId};
use super::tracked_event::{
    AfterRestore, Approval, Boot, Bound, Course, End, Phase, Presence, Progress, RestoreWait, StepState,
    TrackedEvent, Undo,
};
use super::{RESERVE, RUNNING_MAX, Setup, Turn};
use crate::rules::Rule;
use crate::rules::matching::{MatchInput, first, may_match};

/// Input of rule matching at the tick `now`.
pub(super) fn match_input(handled: &TrackedEvent, now: Duration) -> MatchInput<'_> {
    MatchInput {
        kind: &handled.event.kind,
        advisory: handled.event.is_advisory(),
        source: handled.event.source.as_ref(),
        mine: handled.mine,
        duration: handled.event.duration_seconds.map(Duration::from_secs),
        time_left: match handled.deadline() {
            Some(deadline) => deadline.saturating_sub(now),
            None if handled.event.is_advisory() => Duration::MAX,
            None => Duration::ZERO,
        },
    }
}

/// Budget split: the share of the time left until NotBefore that a step may use. [`RESERVE`] and the `keep` of later
/// steps are subtracted.
pub fn step_budget(rule: &Rule, step: usize, left: Duration) -> Duration {
    let later = rule.before.iter().skip(step.saturating_add(1)).map(|step| step.keep);
    // Saturating, because the values may come from a damaged journal.
    let kept = later.fold(Duration::ZERO, Duration::saturating_add);
    left.saturating_sub(RESERVE).saturating_sub(kept)
}

/// Budget of the next step if it starts at this tick; None if NotBefore does not bound it.
pub(super) fn time_for_step(handled: &TrackedEvent, now: Duration) -> Option<Duration> {
    let Some(Phase::Preparing { progress, .. }) = handled.phase() else { return None };
    Some(step_budget(handled.rule()?, progress.step, handled.deadline()?.saturating_sub(now)))
}

/// Ticks at which this event needs attention without an input.
pub(super) fn due(handled: &TrackedEvent, setup: &Setup) -> Vec<Duration> {
    match handled.phase() {
        Some(
            Phase::Preparing { progress: Progress { doing: StepState::Due(at), .. }, .. }
            | Phase::Restoring { progress: Progress { doing: StepState::Due(at), .. }, .. },
        ) => vec![at],
        // The runner stops the step at its original limit; the machine stops it earlier if NotBefore moved closer.
        Some(Phase::Preparing { progress, .. }) => {
            let sooner = |at: &Duration| match progress.bound {
                Bound::Open => true,
                Bound::Until(end) => *at < end,
                Bound::Passed => false,
            };
            time_for_step(handled, Duration::ZERO).filter(sooner).into_iter().collect()
        }
        Some(Phase::Ready { .. }) => {
            let Approval::Wanted { due, .. } = handled.approval() else { return vec![] };
            vec![*due]
        }
        None => {
            // A rule with `time_left` may start to match later.
            let Some(deadline) = handled.deadline() else { return vec![] };
            let match_input = match_input(handled, Duration::ZERO);
            let rules = setup.rules.iter().filter(|rule| rule.matches.covers_ignoring_time(&match_input));
            let bounds = rules.filter_map(|rule| rule.matches.time_left.at_most);
            bounds.map(|most| deadline.saturating_sub(most)).collect()
        }
        Some(Phase::Withheld { .. } | Phase::Restoring { .. } | Phase::Over { .. } | Phase::Done) => vec![],
    }
}

impl Turn<'_> {
    /// Advances all events until no event changes.
    pub(super) fn settle(&mut self) {
        if self.state.resting_until.is_some_and(|until| self.now.tick < until) {
            return;
        }
        self.state.resting_until = None;
        let order = self.by_urgency();
        // Restores depend on which events keep the VM out of service, so preparations go first. Each pass visits all
        // events before it repeats: restarting after each change would take seconds for a thousand events.
        while self.advance_all(&order) || self.advance_restores(&order) {}
        let is_done = |handled: &TrackedEvent| matches!(handled.phase(), Some(Phase::Done) | None);
        self.state.events.retain(|handled| handled.is_listed() || !is_done(handled));
    }

    fn advance_all(&mut self, order: &[usize]) -> bool {
        let mut has_moved = false;
        for &index in order {
            while self.advance(index) {
                has_moved = true;
            }
        }
        has_moved
    }

    /// Stops when an event starts over: it may keep the VM out of service that other events would restore.
    fn advance_restores(&mut self, order: &[usize]) -> bool {
        let mut has_moved = false;
        for &index in order {
            while self.advance_restore(index) {
                has_moved = true;
                match self.state.events[index].phase() {
                    None | Some(Phase::Preparing { .. } | Phase::Ready { .. } | Phase::Withheld { .. }) => {
                        return true;
                    }
                    Some(Phase::Over { .. } | Phase::Restoring { .. } | Phase::Done) => {}
                }
            }
        }
        has_moved
    }

    /// This VM's own events first, then by deadline. Advisories last, so that a Preempt can take over from one.
    fn by_urgency(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.state.events.len()).collect();
        order.sort_by_key(|&index| {
            let handled = &self.state.events[index];
            let is_advisory = handled.event.is_advisory();
            (!handled.mine, is_advisory, handled.deadline().unwrap_or(Duration::MAX))
        });
        order
    }

    /// Advances an event by one transition; false if it waits.
    fn advance(&mut self, index: usize) -> bool {
        match self.state.events[index].phase() {
            None => self.match_rule(index),
            Some(Phase::Preparing { progress, undo }) => self.prepare(index, progress, undo),
            Some(Phase::Ready { .. } | Phase::Withheld { .. }) => self.await_end(index),
            Some(Phase::Over { .. } | Phase::Restoring { .. } | Phase::Done) => false,
        }
    }

    /// Advances the restore of an event by one transition; false if it waits.
    fn advance_restore(&mut self, index: usize) -> bool {
        match self.state.events[index].phase() {
            Some(Phase::Over { waits: RestoreWait::Stopping(_), .. }) => false,
            Some(Phase::Over { waits: RestoreWait::Nothing | RestoreWait::Held, next }) => {
                self.begin_restore(index, next)
            }
            Some(Phase::Restoring { progress, next }) => self.restore(index, progress, next),
            None
            | Some(Phase::Preparing { .. } | Phase::Ready { .. } | Phase::Withheld { .. } | Phase::Done) => {
                false
            }
        }
    }

    fn match_rule(&mut self, index: usize) -> bool {
        let is_replaced = self.preempt_instead_of(index).is_some();
        let handled = &mut self.state.events[index];
        if !handled.is_listed() || is_replaced {
            return false;
        }
        let match_input = match_input(handled, self.now.tick);
        if let Some(rule) = first(&self.setup.rules, &match_input) {
            handled.course = Some(Course::begin(rule.clone()));
            handled.is_unmatched_told = false;
            self.report(index, FactKind::Matched);
            self.take_over(index);
            return true;
        }
        // An advisory may be ignored.
        let is_news = handled.mine && !handled.is_unmatched_told && !match_input.advisory;
        if is_news && !may_match(&self.setup.rules, &match_input) {
            handled.is_unmatched_told = true;
            self.report(index, FactKind::Unmatched);
        }
        false
    }

    /// The Preempt of this VM that an advisory for it warned of.
    fn preempt_instead_of(&self, index: usize) -> Option<usize> {
        let advisory = &self.state.events[index];
        if !advisory.event.is_advisory() || !advisory.mine {
            return None;
        }
        let evicts = |handled: &TrackedEvent| {
            handled.event.kind == EventKind::Preempt && handled.mine && !handled.is_over()
        };
        self.state.events.iter().position(evicts)
    }

    /// A Preempt continues what an advisory has begun by the same rule, so that nothing is done twice.
    fn take_over(&mut self, index: usize) {
        let handled = &self.state.events[index];
        if handled.event.kind != EventKind::Preempt || !handled.mine {
            return;
        }
        let is_begun = |other: &TrackedEvent| {
            let is_before = matches!(
                other.phase(),
                Some(Phase::Preparing { .. } | Phase::Ready { .. } | Phase::Withheld { .. })
            );
            // An event that had started under another type counts as ready without its steps.
            let has_not_started =
                matches!(other.presence, Presence::Waiting { .. } | Presence::Gone(End::Cancelled));
            let has_begun = is_before && has_not_started && other.rule() == handled.rule();
            other.event.is_advisory() && other.mine && has_begun
        };
        let Some(from) = self.state.events.iter().position(is_begun) else { return };
        let Some(Course { rule, phase, approval }) = self.state.events[from].course.take() else { return };
        let (phase, approval) = match phase {
            // What failed may succeed now.
            Phase::Withheld { step, undo } => {
                (Phase::Preparing { progress: Progress::at(step), undo }, Approval::Undecided)
            }
            // A required step has failed. The list goes on after it, or begins again there.
            Phase::Preparing { progress: Progress { flaw: Some(flaw), step, .. }, undo } => {
                match step < rule.before.len() {
                    true => (phase, approval),
                    false => (Phase::Preparing { progress: Progress::at(flaw), undo }, Approval::Undecided),
                }
            }
            Phase::Preparing { .. }
            | Phase::Ready { .. }
            | Phase::Over { .. }
            | Phase::Restoring { .. }
            | Phase::Done => (phase, Approval::Undecided),
        };
        self.state.events[index].course = Some(Course { rule, phase, approval: approval.clone() });
        let from = self.state.events[from].event.id.clone();
        self.report(index, FactKind::TookOver { from });
        if let Approval::Withheld { reason } = approval {
            self.report(index, FactKind::Withheld { reason });
        }
        if let Phase::Ready { undo } = phase {
            self.ready(index, undo);
        }
    }

    /// The rule no longer applies: stops a running step and undoes preparations.
    pub(super) fn lapse(&mut self, index: usize, next: AfterRestore) {
        let handled = &mut self.state.events[index];
        if !handled.has_undo() {
            return handled.finish(next);
        }
        let stopping = handled.running();
        self.actions.extend(stopping.map(Action::Stop));
        self.set(
            index,
            Phase::Over { waits: stopping.map_or(RestoreWait::Nothing, RestoreWait::Stopping), next },
        );
    }

    fn prepare(&mut self, index: usize, progress: Progress, undo: Undo) -> bool {
        let now = self.now.tick;
        let handled = &mut self.state.events[index];
        if handled.has_lapsed() {
            self.lapse(index, AfterRestore::Done);
            return true;
        }
        if handled.boot == Boot::Heard && handled.is_started() {
            // The event has started; preparation ends, complete or not.
            self.ready(index, undo);
            return true;
        }
        let StepState::Due(at) = progress.doing else {
            return self.cut_short(index, progress, undo);
        };
        if at > now || !handled.boot.is_confirmed() || self.is_restoring(index) || self.must_wait(index) {
            return false;
        }
        let handled = &mut self.state.events[index];
        if handled.step().is_none() {
            match progress.flaw {
                Some(step) => self.set(index, Phase::Withheld { step, undo }),
                None => {
                    self.report(index, FactKind::Prepared);
                    self.ready(index, undo);
                }
            }
            return true;
        }
        // The platform may start an event later than NotBefore. Steps not done by then still run, without a bound.
        let late = handled.deadline().is_some_and(|deadline| deadline <= now.saturating_add(RESERVE));
        match time_for_step(handled, now).filter(|_| !late) {
            Some(Duration::ZERO) => self.out_of_time(index, "the remaining time is reserved for later steps"),
            left => {
                let budget_bound = left.map_or(Bound::Open, |left| Bound::Until(now.saturating_add(left)));
                let bound = if late { Bound::Passed } else { budget_bound };
                self.begin(index, Progress { bound, ..progress }, left);
            }
        }
        true
    }

    /// Stops a running step when NotBefore has moved closer than its budget.
    fn cut_short(&mut self, index: usize, mut progress: Progress, undo: Undo) -> bool {
        let now = self.now.tick;
        let StepState::Running(run) = progress.doing else { return false };
        let late = time_for_step(&self.state.events[index], now).is_some_and(|left| left.is_zero());
        let ends_by_itself = match progress.bound {
            Bound::Open => false,
            Bound::Until(end) => now >= end,
            Bound::Passed => true,
        };
        if !late || ends_by_itself {
            return false;
        }
        progress.bound = Bound::Passed;
        self.set(index, Phase::Preparing { progress, undo });
        self.actions.push(Action::Stop(run));
        true
    }

    /// Starts an attempt with the budget `left`; None is unbounded.
    fn begin(&mut self, index: usize, mut progress: Progress, left: Option<Duration>) {
        let run = RunId(self.state.next_run);
        self.state.next_run = self.state.next_run.saturating_add(1);
        progress.doing = StepState::Running(run);
        let handled = &mut self.state.events[index];
        let (Some((stage, step)), Some(rule)) = (handled.step(), handled.rule()) else { return };
        let step = step.clone();
        let budget = left.map_or(step.timeout, |left| left.min(step.timeout));
        let begun = FactKind::StepBegun { step: step.name.clone(), stage, attempt: progress.attempt, budget };
        let run = Run {
            id: run,
            event: handled.event.clone(),
            rule: rule.name.clone(),
            stage,
            step,
            attempt: progress.attempt,
            budget,
            until: left.map(|left| self.now.tick.saturating_add(left)),
            cancelled: handled.is_cancelled(),
        };
        match handled.phase() {
            Some(Phase::Preparing { .. }) => self.set(index, Phase::Preparing { progress, undo: Undo::Owed }),
            Some(Phase::Restoring { next, .. }) => self.set(index, Phase::Restoring { progress, next }),
            Some(Phase::Ready { .. } | Phase::Withheld { .. } | Phase::Over { .. } | Phase::Done) | None => {}
        }
        self.report(index, begun);
        self.actions.push(Action::Run(Box::new(run)));
    }

    fn await_end(&mut self, index: usize) -> bool {
        let now = self.now.tick;
        let handled = &mut self.state.events[index];
        if handled.is_over() {
            self.lapse(index, AfterRestore::Done);
            return true;
        }
        let has_started = handled.is_started();
        let Some(Course { approval, phase: Phase::Ready { .. }, .. }) = &mut handled.course else {
            return false;
        };
        let Approval::Wanted { failures, due } = *approval else { return false };
        if has_started {
            *approval = Approval::Moot;
            return true;
        }
        let may_send = handled.event.status == EventStatus::Scheduled && self.setup.sure;
        if due > now || !may_send && !handled.event.is_advisory() {
            return false;
        }
        let reason = self.reason_not_to_approve(&self.state.events[index]);
        let handled = &mut self.state.events[index];
        let Some(course) = &mut handled.course else { return false };
        match reason {
            Some(reason) => {
                course.approval = Approval::NotMine { reason: reason.clone() };
                self.report(index, FactKind::NotApproving { reason });
            }
            None => {
                course.approval = Approval::Sent { failures };
                self.actions.push(Action::Approve(handled.event.id.clone()));
            }
        }
        true
    }

    fn begin_restore(&mut self, index: usize, next: AfterRestore) -> bool {
        if !self.state.events[index].is_over() {
            // The event is back before its restore began.
            self.set(index, Phase::Preparing { progress: Progress::at(0), undo: Undo::Owed });
            return true;
        }
        let Some(by) = self.restore_blocker(index) else {
            self.set(index, Phase::Restoring { progress: Progress::at(0), next });
            return true;
        };
        let held = Phase::Over { waits: RestoreWait::Held, next };
        if self.state.events[index].phase() != Some(held) {
            let by = self.state.events[by].event.id.clone();
            self.set(index, held);
            self.report(index, FactKind::RestoreHeld { by });
        }
        false
    }

    /// The event that must be over or restored before this one. Restores run in reverse order of preparation (LIFO).
    /// Events that do not drain the VM block none, except that nothing is undone between an advisory and its Preempt.
    fn restore_blocker(&self, index: usize) -> Option<usize> {
        let preempt = self.preempt_instead_of(index);
        if preempt.is_some() {
            return preempt;
        }
        if !self.state.events[index].is_draining() {
            return None;
        }
        let stands_in_the_way = |other: usize| {
            let handled = &self.state.events[other];
            let later = other > index && handled.is_draining();
            other != index && (handled.blocks_restore() || later && handled.has_undo())
        };
        (0..self.state.events.len()).find(|other| stands_in_the_way(*other))
    }

    /// Whether the step must wait because [`RUNNING_MAX`] steps run. This VM's own events do not wait for steps of
    /// other VMs' events.
    fn must_wait(&self, index: usize) -> bool {
        let mine = self.state.events[index].mine;
        let counts = |handled: &&TrackedEvent| handled.running().is_some() && (handled.mine || !mine);
        let running = self.state.events.iter().filter(counts).count();
        self.state.events[index].step().is_some() && running >= RUNNING_MAX
    }

    /// Whether a restore step still runs that would undo this event's drain. It has been asked to stop.
    fn is_restoring(&self, index: usize) -> bool {
        let stopping = |handled: &TrackedEvent| {
            matches!(
                handled.phase(),
                Some(Phase::Over { waits: RestoreWait::Stopping(_), .. } | Phase::Restoring { .. })
            )
        };
        let events = self.state.events.iter().enumerate();
        let mut others = events.filter(|(other, handled)| *other != index && handled.is_draining());
        self.state.events[index].is_draining()
            && others.any(|(_, handled)| stopping(handled) && handled.running().is_some())
    }

    fn restore(&mut self, index: usize, progress: Progress, next: AfterRestore) -> bool {
        let now = self.now.tick;
        let handled = &self.state.events[index];
        let interrupted = !handled.is_over() || self.restore_blocker(index).is_some();
        match progress.doing {
            // The event is back, or another event drains the VM: that takes precedence over the restore.
            StepState::Running(run) if interrupted => {
                self.set(index, Phase::Over { waits: RestoreWait::Stopping(run), next });
                self.actions.push(Action::Stop(run));
                true
            }
            StepState::Due(_) | StepState::Halted if interrupted => {
                self.set(index, Phase::Over { waits: RestoreWait::Nothing, next });
                true
            }
            StepState::Due(at) if at <= now && !self.must_wait(index) => {
                if handled.step().is_some() {
                    self.begin(index, progress, None);
                } else {
                    self.report(index, FactKind::Restored { whole: progress.flaw.is_none() });
                    self.state.events[index].finish(next);
                }
                true
            }
            StepState::Due(_) | StepState::Running(_) | StepState::Halted => false,
        }
    }
}
