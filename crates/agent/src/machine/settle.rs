//! Going on with every event until there is nothing left to do but wait.

use std::time::Duration;

use notbefore_client::document::EventStatus;

use super::handled::{Approval, Boot, Bound, Course, Doing, Handled, Next, Phase, Progress, Undo, Waits};
use super::io::{Action, Run, RunId, What};
use super::{RESERVE, RUNNING_MAX, Setup, Turn};
use crate::rules::Rule;
use crate::rules::matching::{Sight, first};

/// What rules look at, `now` being a tick.
pub(super) fn sight(handled: &Handled, now: Duration) -> Sight<'_> {
    Sight {
        kind: &handled.event.kind,
        source: handled.event.source.as_ref(),
        mine: handled.mine,
        duration: handled.event.duration_seconds.map(Duration::from_secs),
        time_left: handled.deadline().map_or(Duration::ZERO, |deadline| deadline.saturating_sub(now)),
    }
}

/// What of the time that is left until NotBefore is for a step before it: less the reserve, and less what later steps want
/// kept.
pub fn share(rule: &Rule, step: usize, left: Duration) -> Duration {
    let later = rule.before.iter().skip(step.saturating_add(1)).map(|step| step.keep);
    // The journal may be damaged, and then say anything.
    let kept = later.fold(Duration::ZERO, Duration::saturating_add);
    left.saturating_sub(RESERVE).saturating_sub(kept)
}

/// How long the step that comes next may take if it begins at this tick, as far as NotBefore bounds it.
pub(super) fn time_for_step(handled: &Handled, now: Duration) -> Option<Duration> {
    let Some(Phase::Preparing { progress, .. }) = handled.phase() else { return None };
    Some(share(handled.rule()?, progress.step, handled.deadline()?.saturating_sub(now)))
}

/// The ticks at which there is something to do about this event by itself.
pub(super) fn due(handled: &Handled, setup: &Setup) -> Vec<Duration> {
    match handled.phase() {
        Some(
            Phase::Preparing { progress: Progress { doing: Doing::Due(at), .. }, .. }
            | Phase::Restoring { progress: Progress { doing: Doing::Due(at), .. }, .. },
        ) => vec![at],
        // Whoever runs it ends it when it was told to; sooner, if NotBefore has moved, the machine does.
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
            // A rule may be for the last of an event's time.
            let Some(deadline) = handled.deadline() else { return vec![] };
            let sight = sight(handled, Duration::ZERO);
            let rules = setup.rules.iter().filter(|rule| rule.matches.covers_but_for_time(&sight));
            let bounds = rules.filter_map(|rule| rule.matches.time_left.at_most);
            bounds.map(|most| deadline.saturating_sub(most)).collect()
        }
        Some(Phase::Withheld { .. } | Phase::Restoring { .. } | Phase::Over { .. } | Phase::Done) => vec![],
    }
}

impl Turn<'_> {
    /// Goes on with every event until nothing changes.
    pub(super) fn settle(&mut self) {
        if self.state.resting_until.is_some_and(|until| self.now.tick < until) {
            return;
        }
        self.state.resting_until = None;
        let order = self.by_urgency();
        // What is put back depends on what keeps the VM out, so that is found out first. Both go through all events before
        // they begin again: with a thousand of them, to begin again after each would take seconds.
        while self.advance_all(&order) || self.put_back_all(&order) {}
        let is_done = |handled: &Handled| matches!(handled.phase(), Some(Phase::Done) | None);
        self.state.events.retain(|handled| handled.is_listed() || !is_done(handled));
    }

    fn advance_all(&mut self, order: &[usize]) -> bool {
        let mut has_moved = false;
        for &place in order {
            while self.advance(place) {
                has_moved = true;
            }
        }
        has_moved
    }

    /// Stops where an event starts over: it may keep out the VM that others would put back.
    fn put_back_all(&mut self, order: &[usize]) -> bool {
        let mut has_moved = false;
        for &place in order {
            while self.put_back(place) {
                has_moved = true;
                match self.state.events[place].phase() {
                    None | Some(Phase::Preparing { .. } | Phase::Ready { .. } | Phase::Withheld { .. }) => {
                        return true;
                    }
                    Some(Phase::Over { .. } | Phase::Restoring { .. } | Phase::Done) => {}
                }
            }
        }
        has_moved
    }

    /// This VM's own events first, and of those the one that begins first.
    fn by_urgency(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.state.events.len()).collect();
        order.sort_by_key(|&place| {
            let handled = &self.state.events[place];
            (!handled.mine, handled.deadline().unwrap_or(Duration::MAX))
        });
        order
    }

    /// Goes one step on with an event; false if there is nothing to do.
    fn advance(&mut self, place: usize) -> bool {
        match self.state.events[place].phase() {
            None => self.look_for_a_rule(place),
            Some(Phase::Preparing { progress, undo }) => self.prepare(place, progress, undo),
            Some(Phase::Ready { .. } | Phase::Withheld { .. }) => self.wait_for_the_end(place),
            Some(Phase::Over { .. } | Phase::Restoring { .. } | Phase::Done) => false,
        }
    }

    /// Goes one step on with putting the VM back after an event; false if there is nothing to do.
    fn put_back(&mut self, place: usize) -> bool {
        match self.state.events[place].phase() {
            Some(Phase::Over { waits: Waits::Stopping(_), .. }) => false,
            Some(Phase::Over { waits: Waits::Nothing | Waits::Held, next }) => {
                self.begin_to_restore(place, next)
            }
            Some(Phase::Restoring { progress, next }) => self.restore(place, progress, next),
            None
            | Some(Phase::Preparing { .. } | Phase::Ready { .. } | Phase::Withheld { .. } | Phase::Done) => {
                false
            }
        }
    }

    fn look_for_a_rule(&mut self, place: usize) -> bool {
        let handled = &mut self.state.events[place];
        let rule = first(&self.setup.rules, &sight(handled, self.now.tick));
        let Some(rule) = rule.filter(|_| handled.is_listed()) else { return false };
        handled.course = Some(Course::begin(rule.clone()));
        self.tell(place, What::Matched);
        true
    }

    /// There is no reason for the rule any more: a step that runs is stopped, and what was begun is undone.
    pub(super) fn lapse(&mut self, place: usize, next: Next) {
        let handled = &mut self.state.events[place];
        if !handled.owes() {
            return handled.finish(next);
        }
        let stopping = handled.running();
        self.actions.extend(stopping.map(Action::Stop));
        self.set(place, Phase::Over { waits: stopping.map_or(Waits::Nothing, Waits::Stopping), next });
    }

    fn prepare(&mut self, place: usize, progress: Progress, undo: Undo) -> bool {
        let now = self.now.tick;
        let handled = &mut self.state.events[place];
        if handled.has_lapsed() {
            self.lapse(place, Next::Done);
            return true;
        }
        if handled.boot == Boot::Heard && handled.started() {
            // It is what was prepared for that has happened, prepared or not.
            self.ready(place, undo);
            return true;
        }
        let Doing::Due(at) = progress.doing else {
            return self.cut_short(place, progress, undo);
        };
        if at > now || !handled.boot.is_heard() || self.is_being_put_back(place) || self.has_to_wait(place) {
            return false;
        }
        let handled = &mut self.state.events[place];
        if handled.step().is_none() {
            match progress.flaw {
                Some(step) => self.set(place, Phase::Withheld { step, undo }),
                None => {
                    self.tell(place, What::Prepared);
                    self.ready(place, undo);
                }
            }
            return true;
        }
        // An event may begin later than it might. Once its time has come, what was not done yet is done all the same.
        let late = handled.deadline().is_some_and(|deadline| deadline <= now.saturating_add(RESERVE));
        match time_for_step(handled, now).filter(|_| !late) {
            Some(Duration::ZERO) => self.out_of_time(place, "what time there is, is kept for later steps"),
            left => {
                let budget_bound = left.map_or(Bound::Open, |left| Bound::Until(now.saturating_add(left)));
                let bound = if late { Bound::Passed } else { budget_bound };
                self.begin(place, Progress { bound, ..progress }, left);
            }
        }
        true
    }

    /// A step that runs has less time than it was given, because NotBefore is nearer than it was: it is stopped then.
    fn cut_short(&mut self, place: usize, mut progress: Progress, undo: Undo) -> bool {
        let now = self.now.tick;
        let Doing::Running(run) = progress.doing else { return false };
        let late = time_for_step(&self.state.events[place], now).is_some_and(|left| left.is_zero());
        let ends_by_itself = match progress.bound {
            Bound::Open => false,
            Bound::Until(end) => now >= end,
            Bound::Passed => true,
        };
        if !late || ends_by_itself {
            return false;
        }
        progress.bound = Bound::Passed;
        self.set(place, Phase::Preparing { progress, undo });
        self.actions.push(Action::Stop(run));
        true
    }

    /// Begins an attempt that has so much time, or all it may want.
    fn begin(&mut self, place: usize, mut progress: Progress, left: Option<Duration>) {
        let run = RunId(self.state.next_run);
        self.state.next_run = self.state.next_run.saturating_add(1);
        progress.doing = Doing::Running(run);
        let handled = &mut self.state.events[place];
        let (Some((stage, step)), Some(rule)) = (handled.step(), handled.rule()) else { return };
        let step = step.clone();
        let budget = left.map_or(step.timeout, |left| left.min(step.timeout));
        let begun = What::StepBegun { step: step.name.clone(), stage, attempt: progress.attempt, budget };
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
            Some(Phase::Preparing { .. }) => self.set(place, Phase::Preparing { progress, undo: Undo::Owed }),
            Some(Phase::Restoring { next, .. }) => self.set(place, Phase::Restoring { progress, next }),
            Some(Phase::Ready { .. } | Phase::Withheld { .. } | Phase::Over { .. } | Phase::Done) | None => {}
        }
        self.tell(place, begun);
        self.actions.push(Action::Run(Box::new(run)));
    }

    fn wait_for_the_end(&mut self, place: usize) -> bool {
        let now = self.now.tick;
        let handled = &mut self.state.events[place];
        if handled.is_over() {
            self.lapse(place, Next::Done);
            return true;
        }
        let has_started = handled.started();
        let Some(Course { approval, phase: Phase::Ready { .. }, .. }) = &mut handled.course else {
            return false;
        };
        let Approval::Wanted { failures, due } = *approval else { return false };
        if has_started {
            *approval = Approval::Moot;
            return true;
        }
        if due > now || handled.event.status != EventStatus::Scheduled || !self.setup.sure {
            return false;
        }
        let reason = self.reason_not_to_approve(&self.state.events[place]);
        let handled = &mut self.state.events[place];
        let Some(course) = &mut handled.course else { return false };
        match reason {
            Some(reason) => {
                course.approval = Approval::NotMine { reason: reason.clone() };
                self.tell(place, What::NotApproving { reason });
            }
            None => {
                course.approval = Approval::Sent { failures };
                self.actions.push(Action::Approve(handled.event.id.clone()));
            }
        }
        true
    }

    fn begin_to_restore(&mut self, place: usize, next: Next) -> bool {
        if !self.state.events[place].is_over() {
            // It is there again before anything was put back.
            self.set(place, Phase::Preparing { progress: Progress::at(0), undo: Undo::Owed });
            return true;
        }
        let Some(by) = self.holder(place) else {
            self.set(place, Phase::Restoring { progress: Progress::at(0), next });
            return true;
        };
        let held = Phase::Over { waits: Waits::Held, next };
        if self.state.events[place].phase() != Some(held) {
            let by = self.state.events[by].event.id.clone();
            self.set(place, held);
            self.tell(place, What::RestoreHeld { by });
        }
        false
    }

    /// The event that has to be over, or put back, before this one is put back. What was taken out last is put back
    /// first, as one would by hand; events that do not keep the VM out of service stand in nobody's way.
    fn holder(&self, place: usize) -> Option<usize> {
        if !self.state.events[place].drains() {
            return None;
        }
        let stands_in_the_way = |other: usize| {
            let handled = &self.state.events[other];
            let later = other > place && handled.drains();
            other != place && (handled.keeps_out() || later && handled.owes())
        };
        (0..self.state.events.len()).find(|other| stands_in_the_way(*other))
    }

    /// Whether the step that is due has to wait because as many run as may: it begins when one of them ends. This VM's own
    /// events do not wait for those of others.
    fn has_to_wait(&self, place: usize) -> bool {
        let mine = self.state.events[place].mine;
        let counts = |handled: &&Handled| handled.running().is_some() && (handled.mine || !mine);
        let running = self.state.events.iter().filter(counts).count();
        self.state.events[place].step().is_some() && running >= RUNNING_MAX
    }

    /// Whether a step runs that puts this VM back into the service that this event takes it out of. It has been told to stop.
    fn is_being_put_back(&self, place: usize) -> bool {
        let stopping = |handled: &Handled| {
            matches!(
                handled.phase(),
                Some(Phase::Over { waits: Waits::Stopping(_), .. } | Phase::Restoring { .. })
            )
        };
        let events = self.state.events.iter().enumerate();
        let mut others = events.filter(|(other, handled)| *other != place && handled.drains());
        self.state.events[place].drains()
            && others.any(|(_, handled)| stopping(handled) && handled.running().is_some())
    }

    fn restore(&mut self, place: usize, progress: Progress, next: Next) -> bool {
        let now = self.now.tick;
        let handled = &self.state.events[place];
        let interrupted = !handled.is_over() || self.holder(place).is_some();
        match progress.doing {
            // The event is there again, or another takes the VM out: that is more urgent than putting it back.
            Doing::Running(run) if interrupted => {
                self.set(place, Phase::Over { waits: Waits::Stopping(run), next });
                self.actions.push(Action::Stop(run));
                true
            }
            Doing::Due(_) | Doing::Halted if interrupted => {
                self.set(place, Phase::Over { waits: Waits::Nothing, next });
                true
            }
            Doing::Due(at) if at <= now && !self.has_to_wait(place) => {
                if handled.step().is_some() {
                    self.begin(place, progress, None);
                } else {
                    self.tell(place, What::Restored { whole: progress.flaw.is_none() });
                    self.state.events[place].finish(next);
                }
                true
            }
            Doing::Due(_) | Doing::Running(_) | Doing::Halted => false,
        }
    }
}
