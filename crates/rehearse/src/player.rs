//! The player: decides what is due in a scenario. Pure; time is the time since the rehearsal began.
//!
//! The stage tells the player what it observes ([`Player::begin`], [`Player::observe`]) and asks what is due
//! ([`Player::due`]). An announced event lives by itself: the service starts it at its approval or at NotBefore; the
//! player ends it `runs` later. If NotBefore is days ahead, the player moves the platform's clock there once the
//! handler had its time to react.
//!
//! A scenario can also come to a standstill: nothing is due, and what its steps wait for does not come
//! ([`Player::standstill`]). An event goes on by itself until it is gone, apart from advice and an event that runs until
//! it is completed. These wait for steps, and a step may wait for the handler to read an event.
//!
//! An operation can have several events, one for each VM or update domain. They are `patch#1`, `patch#2`, …; a step or
//! an expectation about `patch` is about all of them.

use std::collections::BTreeMap;
use std::time::Duration;

use notbefore_wire::operator::FaultKind;
use notbefore_wire::operator::faults::LATE_S;

use crate::pace::{PATIENCE, Pace};
use crate::recording::State;
use crate::scenario::{Action, Announcement, Moment, Scenario, Step, When};

/// How long a standstill lasts before it ends the rehearsal, if only the platform could end it: longer than the service
/// takes to carry out a step on a busy machine.
const STANDSTILL: Duration = Duration::from_secs(10);

/// Longest gap between two polls that a handler is waited for, as a multiple of the allowed one: the judge finds the gap.
const POLLS_WAITED: u32 = 2;

/// Limit of the polls that a fault is expected to affect.
const POLLS_OF_FAULT_MAX: u32 = 100;

/// The name in the scenario of an event of an operation.
pub fn base_name(event: &str) -> &str {
    event.split('#').next().unwrap_or(event)
}

/// Something to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The step with this index.
    Step(usize),
    /// End a started event.
    Complete { event: String },
    /// Move the platform's clock to the event's NotBefore.
    MoveToNotBefore { event: String },
    /// Everything has happened.
    Finish,
}

/// Why nothing can happen any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standstill {
    /// The step with this index waits until a handler reads the event.
    Unread { step: usize, event: String },
    /// The scenario itself cannot go on; in words.
    Impossible(String),
}

/// Where an event stands.
#[derive(Clone, Debug, Default)]
struct Progress {
    scheduled_at: Duration,
    read_at: Option<Duration>,
    approved_at: Option<Duration>,
    started_at: Option<Duration>,
    gone_at: Option<Duration>,
    is_moved: bool,
    is_completed: bool,
}

/// Plays one scenario.
#[derive(Debug)]
pub struct Player {
    scenario: Scenario,
    pace: Pace,
    /// Since the beginning of the timeline, compressed; for each step with a time of its own.
    step_times: Vec<Option<Duration>>,
    is_done: Vec<bool>,
    begun_at: Option<Duration>,
    /// When the last step was done.
    last_step_at: Duration,
    /// When something was done or observed last.
    changed_at: Duration,
    events: BTreeMap<String, Progress>,
    is_finished: bool,
    /// Whether a restored VM ends the rest after the last event.
    restored_at: Option<Duration>,
}

impl Player {
    pub fn new(scenario: Scenario, pace: Pace) -> Self {
        let mut times: Vec<Duration> =
            scenario.steps.iter().filter_map(|step| own_time(&step.when)).collect();
        times.sort_unstable();
        let mut compressed = BTreeMap::new();
        let (mut natural, mut shorter) = (Duration::ZERO, Duration::ZERO);
        for time in times {
            shorter += pace.wait(time - natural);
            natural = time;
            compressed.insert(time, shorter);
        }
        let step_time = |when: &When| own_time(when).and_then(|time| compressed.get(&time).copied());
        let step_times = scenario.steps.iter().map(|step| step_time(&step.when)).collect();
        // Steps before the handlers start are the stage's.
        let is_done = scenario.steps.iter().map(crate::scenario::Step::is_setup).collect();
        Self {
            step_times,
            is_done,
            scenario,
            pace,
            begun_at: None,
            last_step_at: Duration::ZERO,
            changed_at: Duration::ZERO,
            events: BTreeMap::new(),
            is_finished: false,
            restored_at: None,
        }
    }

    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Every handler was answered once: the timeline begins.
    pub fn begin(&mut self, now: Duration) {
        self.begun_at.get_or_insert(now);
        self.changed_at = self.changed_at.max(now);
        self.last_step_at = self.last_step_at.max(now);
    }

    pub fn has_begun(&self) -> bool {
        self.begun_at.is_some()
    }

    /// An event was seen in this state for the first time.
    pub fn observe(&mut self, now: Duration, event: &str, state: State) {
        self.changed_at = self.changed_at.max(now);
        let progress = self.events.entry(event.to_owned()).or_default();
        match state {
            State::Scheduled => progress.scheduled_at = now,
            State::Read => _ = progress.read_at.get_or_insert(now),
            State::Approved => _ = progress.approved_at.get_or_insert(now),
            State::Started => _ = progress.started_at.get_or_insert(now),
            State::Gone => _ = progress.gone_at.get_or_insert(now),
        }
    }

    /// All handlers have reported everything that is expected after the events.
    pub fn settle(&mut self, now: Duration) {
        self.restored_at.get_or_insert(now);
    }

    /// What is due at `now`. Each deed is returned once.
    pub fn due(&mut self, now: Duration) -> Vec<Deed> {
        let mut deeds = Vec::new();
        for index in 0..self.is_done.len() {
            if !self.is_done[index] && self.step_due(index).is_some_and(|due| due <= now) {
                self.is_done[index] = true;
                self.last_step_at = now;
                deeds.push(Deed::Step(index));
            }
        }
        let (scenario, pace) = (&self.scenario, self.pace);
        for (name, progress) in &mut self.events {
            let Some(announcement) = scenario.announcement(base_name(name)) else { continue };
            if progress.move_due(announcement, pace).is_some_and(|due| due <= now) {
                progress.is_moved = true;
                deeds.push(Deed::MoveToNotBefore { event: name.clone() });
            }
            if progress.end_due(scenario, announcement, pace).is_some_and(|due| due <= now) {
                progress.is_completed = true;
                deeds.push(Deed::Complete { event: name.clone() });
            }
        }
        if deeds.is_empty() && !self.is_finished && self.finish_due().is_some_and(|due| due <= now) {
            self.is_finished = true;
            deeds.push(Deed::Finish);
        }
        if !deeds.is_empty() {
            self.changed_at = self.changed_at.max(now);
        }
        deeds
    }

    /// When something is due next, if nothing is observed before.
    pub fn next_due(&self) -> Option<Duration> {
        let steps = (0..self.is_done.len()).filter(|index| !self.is_done[*index]);
        let steps = steps.filter_map(|index| self.step_due(index));
        let events = self.events.iter().flat_map(|(name, progress)| {
            let announcement = self.scenario.announcement(base_name(name));
            let dues = announcement.map(|one| {
                [progress.move_due(one, self.pace), progress.end_due(&self.scenario, one, self.pace)]
            });
            dues.into_iter().flatten().flatten()
        });
        steps.chain(events).chain(self.finish_due().filter(|_| !self.is_finished)).min()
    }

    /// The standstill at `now`, if there is one. `has_handlers`: a handler runs, or may still call.
    pub fn standstill(&self, now: Duration, has_handlers: bool) -> Option<Standstill> {
        if self.begun_at.is_none() || self.is_finished || self.next_due().is_some() {
            return None;
        }
        let mut open = self.events.iter().filter(|(_, progress)| progress.gone_at.is_none());
        if open.any(|(name, progress)| self.goes_on(name, progress)) {
            return None;
        }
        let quiet = now.saturating_sub(self.changed_at);
        let unread = (0..self.is_done.len()).filter(|index| !self.is_done[*index]).find_map(|step| {
            let When::After { moment: Moment::Read, event, .. } = &self.scenario.steps[step].when else {
                return None;
            };
            let is_announced = self.events.keys().any(|name| base_name(name) == event);
            is_announced.then(|| Standstill::Unread { step, event: event.clone() })
        });
        match unread {
            Some(unread) => (quiet > self.read_patience() || !has_handlers).then_some(unread),
            None => (quiet > STANDSTILL).then(|| Standstill::Impossible(self.why_impossible())),
        }
    }

    /// Whether an event that is not gone goes on without a step.
    fn goes_on(&self, name: &str, progress: &Progress) -> bool {
        let Some(announcement) = self.scenario.announcement(base_name(name)) else { return false };
        // The service starts it at NotBefore, or ends it because the player has completed it.
        !announcement.is_advice() && (progress.started_at.is_none() || progress.is_completed)
    }

    /// How long a handler is waited for that polls and does not read an event. Faults may withhold the event from it.
    fn read_patience(&self) -> Duration {
        let every = self.scenario.polls_every * POLLS_WAITED;
        let withheld = self.scenario.steps.iter().map(|step| {
            let Action::AddFault(fault) = &step.action else { return Duration::ZERO };
            let is_slow = [FaultKind::LateFirstAnswer, FaultKind::SlowBody].contains(&fault.kind);
            let delay = if is_slow { fault.seconds.unwrap_or(LATE_S).unsigned_abs() } else { 0 };
            let polls = fault.count.map(|count| every * count.min(POLLS_OF_FAULT_MAX));
            let time = fault.active_seconds.map(|seconds| Duration::from_secs(seconds.into()));
            Duration::from_secs(delay) + polls.into_iter().chain(time).min().unwrap_or_default()
        });
        self.pace.wait(PATIENCE).max(every) + withheld.sum::<Duration>()
    }

    /// What the first open step or event waits for.
    fn why_impossible(&self) -> String {
        let step = self.is_done.iter().position(|is_done| !is_done);
        let open = self.events.iter().find(|(_, progress)| progress.gone_at.is_none());
        match (step.map(|step| (step, &self.scenario.steps[step])), open) {
            (Some((index, Step { when: When::After { moment, event, .. }, action })), _) => format!(
                "step {} ({}) waits for '{} {event}', which cannot come any more; give the step a time, or end {event} by another step",
                index + 1,
                describe(action),
                moment.as_str()
            ),
            (_, Some((name, _))) => {
                let event = base_name(name);
                format!(
                    "event {name} does not end; add a step {{ at: started {event} + 5m, complete: {event} }}"
                )
            }
            (_, None) => "nothing is left to do".to_owned(),
        }
    }

    /// The sum of all waits: no rehearsal takes longer, apart from the handler's start.
    pub fn longest(&self) -> Duration {
        let step = |index: usize| match &self.scenario.steps[index].when {
            When::At(_) => self.step_times[index].unwrap_or_default(),
            When::After { delay, .. } => self.pace.wait(*delay),
        };
        let event = |action: &Action| match action {
            Action::Schedule(one) => {
                let notice = one.notice.map(|notice| self.pace.notice(notice).wait).unwrap_or_default();
                // Events of one operation may take turns.
                let turns = u32::try_from(one.vms.len()).unwrap_or(u32::MAX);
                (notice + run(&self.scenario, one, self.pace).unwrap_or_default()).saturating_mul(turns)
            }
            Action::Approve(_)
            | Action::Start(_)
            | Action::Complete(_)
            | Action::Cancel(_)
            | Action::AddFault(_)
            | Action::ClearFaults
            | Action::AdvanceClock(_)
            | Action::StopHandlers
            | Action::StartHandlers => Duration::ZERO,
        };
        let steps = (0..self.is_done.len()).map(step);
        let events = self.scenario.steps.iter().map(|step| event(&step.action));
        steps.chain(events).sum::<Duration>() + self.scenario.rest(self.pace)
    }

    /// What has not happened yet, in words.
    pub fn waits_for(&self) -> String {
        if self.begun_at.is_none() {
            return "the first request of every handler".to_owned();
        }
        let open = self.events.iter().find(|(_, progress)| progress.gone_at.is_none());
        match (open, self.is_done.iter().position(|is_done| !is_done)) {
            (Some((name, progress)), _) if progress.started_at.is_none() => format!("the start of {name}"),
            (Some((name, _)), _) => format!("the end of {name}"),
            (None, Some(index)) => format!("step {} of the scenario", index + 1),
            (None, None) => "its own end".to_owned(),
        }
    }

    fn step_due(&self, index: usize) -> Option<Duration> {
        let begun_at = self.begun_at?;
        match &self.scenario.steps[index].when {
            When::At(_) => Some(begun_at + self.step_times[index]?),
            When::After { moment, event, delay } => {
                Some(self.moment(*moment, event)? + self.pace.wait(*delay))
            }
        }
    }

    /// When the moment came, for all events of an operation. An event that is gone has had all its moments.
    fn moment(&self, moment: Moment, base: &str) -> Option<Duration> {
        let mut of_base = self.events.iter().filter(|(name, _)| base_name(name) == base).peekable();
        of_base.peek()?;
        of_base.try_fold(Duration::ZERO, |latest, (_, progress)| {
            let own = match moment {
                Moment::Scheduled => Some(progress.scheduled_at),
                Moment::Read => progress.read_at,
                Moment::Approved => progress.approved_at.or(progress.started_at),
                Moment::Started => progress.started_at,
                Moment::Gone => None,
            };
            Some(latest.max(own.or(progress.gone_at)?))
        })
    }

    /// When the rehearsal ends: some time after the last step and the last event.
    fn finish_due(&self) -> Option<Duration> {
        self.begun_at?;
        if self.is_done.iter().any(|is_done| !is_done) {
            return None;
        }
        let mut last = self.last_step_at;
        for (name, progress) in &self.events {
            let is_advice = self.scenario.announcement(base_name(name)).is_some_and(Announcement::is_advice);
            match progress.gone_at {
                Some(gone_at) => last = last.max(gone_at),
                None if is_advice => {}
                None => return None,
            }
        }
        let rest = self.scenario.rest(self.pace);
        // A handler that does something wrong after the event gets time for it.
        let short = rest.min(self.pace.floor);
        Some(match self.restored_at {
            Some(restored_at) => (last + rest).min(restored_at.max(last) + short),
            None => last + rest,
        })
    }
}

impl Progress {
    /// When the platform's clock moves to NotBefore.
    fn move_due(&self, announcement: &Announcement, pace: Pace) -> Option<Duration> {
        let notice = pace.notice(announcement.notice?);
        let is_open = self.started_at.is_none() && self.gone_at.is_none();
        let moves = is_open && !self.is_moved && !announcement.is_advice() && notice.wait < notice.shown;
        moves.then(|| self.scheduled_at + notice.wait)
    }

    /// When the event ends.
    fn end_due(&self, scenario: &Scenario, announcement: &Announcement, pace: Pace) -> Option<Duration> {
        let is_running = self.gone_at.is_none() && !self.is_completed;
        Some(self.started_at? + run(scenario, announcement, pace).filter(|_| is_running)?)
    }
}

/// How long an event stays Started. The seconds of faults are not divided, so a fault that the event outlasts in real
/// time would outlast the event at a fast pace. The event then stays until the fault is over, and the rest of its time.
fn run(scenario: &Scenario, announcement: &Announcement, pace: Pace) -> Option<Duration> {
    let runs = announcement.runs?;
    let outlasted = scenario.steps.iter().filter_map(|step| {
        let When::After { moment: Moment::Started, event, delay } = &step.when else { return None };
        let Action::AddFault(fault) = &step.action else { return None };
        let active = Duration::from_secs(fault.active_seconds?.into());
        let rest = runs.checked_sub(*delay + active).filter(|_| *event == announcement.event)?;
        Some(pace.wait(*delay) + active + pace.wait(rest))
    });
    Some(outlasted.fold(pace.wait(runs), Duration::max))
}

fn own_time(when: &When) -> Option<Duration> {
    match when {
        When::At(at) => Some(*at),
        When::After { .. } => None,
    }
}

/// A step in words, for the timeline.
pub fn describe(action: &Action) -> String {
    match action {
        Action::Schedule(one) => {
            format!("schedule {}: {} of {}", one.event, one.cause.as_str(), one.vms.join(", "))
        }
        Action::Approve(event) => format!("another VM approves {event}"),
        Action::Start(event) => format!("start {event}"),
        Action::Complete(event) => format!("complete {event}"),
        Action::Cancel(event) => format!("cancel {event}"),
        Action::AddFault(fault) => format!("fault {}", fault.kind.as_str()),
        Action::ClearFaults => "clear all faults".to_owned(),
        Action::AdvanceClock(span) => {
            format!("{} pass", notbefore_settings::span::show(span.as_secs()))
        }
        Action::StopHandlers => "stop the handlers".to_owned(),
        Action::StartHandlers => "start the handlers".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;

    const fn s(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn player(steps: &str) -> Player {
        let text = format!("summary: x\nvms: [a]\nrests: 5m\nsteps:\n{steps}");
        Player::new(parse("f", "f", &text).unwrap(), Pace { compress: 60.0, floor: s(5) })
    }

    const RESTART: &str = "  - { at: 1m, schedule: { event: e, cause: user-restart, vms: [a] } }\n";

    #[test]
    fn timeline_begins_with_the_first_answer() {
        let mut player = player(RESTART);
        assert_eq!((player.next_due(), player.due(s(100))), (None, vec![]));
        player.begin(s(10));
        assert_eq!((player.next_due(), player.due(s(14))), (Some(s(15)), vec![]));
        assert_eq!((player.due(s(15)), player.due(s(16))), (vec![Deed::Step(0)], vec![]));
    }

    #[test]
    fn event_ends_after_its_run_and_the_rehearsal_after_a_rest() {
        let mut player = player(RESTART);
        player.begin(s(0));
        assert_eq!(player.due(s(5)), [Deed::Step(0)]);
        player.observe(s(5), "e", State::Scheduled);
        assert_eq!(player.next_due(), None, "the service starts it");
        player.observe(s(9), "e", State::Started);
        assert_eq!(player.next_due(), Some(s(19)));
        assert_eq!(player.due(s(19)), [Deed::Complete { event: "e".into() }]);
        player.observe(s(20), "e", State::Gone);
        assert_eq!((player.due(s(24)), player.next_due()), (vec![], Some(s(25))));
        assert_eq!((player.due(s(25)), player.due(s(26))), (vec![Deed::Finish], vec![]));
    }

    #[test]
    fn event_outlasts_its_timed_fault_at_every_pace() {
        let vanishing = crate::library::find("vanishing-event").unwrap().unwrap();
        for compress in [1.0, 2.0, 60.0, 120.0, 300.0, 1_000.0] {
            for floor in [1, 5, 20] {
                let pace = Pace { compress, floor: s(floor) };
                let mut player = Player::new(vanishing.clone(), pace);
                player.begin(s(0));
                player.observe(s(1_000), "restart", State::Scheduled);
                player.observe(s(1_000), "restart", State::Started);
                let (mut faulted_at, mut ended_at) = (None, None);
                while ended_at.is_none() {
                    let due = player.next_due().unwrap();
                    for deed in player.due(due) {
                        match deed {
                            Deed::Step(1) => faulted_at = Some(due),
                            Deed::Complete { .. } => ended_at = Some(due),
                            Deed::Step(_) | Deed::MoveToNotBefore { .. } | Deed::Finish => {}
                        }
                    }
                }
                let returned_at = faulted_at.unwrap() + s(4);
                let shown_again = ended_at.unwrap().saturating_sub(returned_at);
                assert!(shown_again >= s(floor), "{compress} {floor}: {shown_again:?}");
            }
        }
        let real = Player::new(vanishing, Pace { compress: 1.0, floor: s(5) });
        let announcement = real.scenario.announcement("restart").unwrap();
        assert_eq!(run(&real.scenario, announcement, real.pace), announcement.runs);
    }

    #[test]
    fn step_after_a_moment_that_never_comes_waits_for_the_end_of_the_event() {
        let mut player = player(&format!("{RESTART}  - {{ at: started e + 5s, fault: reset }}\n"));
        player.begin(s(0));
        player.due(s(5));
        player.observe(s(5), "e", State::Scheduled);
        assert_eq!(player.due(s(1_000)), []);
        player.observe(s(1_000), "e", State::Gone);
        assert_eq!(player.due(s(1_004)), []);
        assert_eq!(player.due(s(1_005)), [Deed::Step(1)]);
    }

    #[test]
    fn clock_moves_to_a_far_date_only_without_a_reaction() {
        let degraded = "  - { at: 1m, schedule: { event: e, cause: predicted-failure, vms: [a] } }\n";
        for approves in [false, true] {
            let mut player = player(degraded);
            player.begin(s(0));
            player.due(s(5));
            player.observe(s(5), "e", State::Scheduled);
            if approves {
                player.observe(s(7), "e", State::Started);
            }
            let moves = player.due(s(20)).contains(&Deed::MoveToNotBefore { event: "e".into() });
            assert_eq!(moves, !approves);
        }
    }

    #[test]
    fn moments_of_an_operation_are_those_of_its_last_event() {
        let mut player = player(&format!("{RESTART}  - {{ at: gone e, clear_faults: true }}\n"));
        player.begin(s(0));
        player.due(s(5));
        for event in ["e#1", "e#2"] {
            player.observe(s(5), event, State::Scheduled);
        }
        player.observe(s(8), "e#1", State::Gone);
        assert_eq!(player.due(s(9)), []);
        player.observe(s(9), "e#2", State::Gone);
        assert_eq!(player.due(s(9)), [Deed::Step(1)]);
    }

    #[test]
    fn event_that_is_never_read_is_a_standstill() {
        let advice = "  - { at: 1m, schedule: { event: e, cause: rebalance, vms: [a] } }\n  - { at: read e, cancel: e }\n";
        let mut player = player(advice);
        player.begin(s(0));
        assert_eq!(player.standstill(s(4), true), None, "a step is due");
        player.due(s(5));
        player.observe(s(5), "e", State::Scheduled);
        let unread = Some(Standstill::Unread { step: 1, event: "e".into() });
        assert_eq!(player.standstill(s(5), false), unread, "without a handler");
        // Twice the longest allowed gap between polls.
        assert_eq!(player.standstill(s(35), true), None);
        assert_eq!(player.standstill(s(36), true), unread);
        player.observe(s(40), "e", State::Read);
        assert_eq!(player.standstill(s(1_000), true), None, "the cancel is due");
    }

    #[test]
    fn faults_that_withhold_an_event_delay_the_standstill() {
        let faults = "  - { fault: { kind: status, status: 500, count: 2 } }\n  - { at: 1m, schedule: { event: e, cause: rebalance, vms: [a] } }\n  - { at: read e, cancel: e }\n";
        let mut player = player(faults);
        player.begin(s(0));
        player.due(s(5));
        player.observe(s(5), "e", State::Scheduled);
        assert_eq!(player.standstill(s(95), true), None);
        assert!(player.standstill(s(96), true).is_some());
    }

    #[test]
    fn event_that_goes_on_by_itself_is_no_standstill() {
        let mut player = player(&format!("{RESTART}  - {{ at: read e, fault: reset }}\n"));
        player.begin(s(0));
        player.due(s(5));
        player.observe(s(5), "e", State::Scheduled);
        assert_eq!(player.standstill(s(10_000), false), None, "the service starts it");
        player.observe(s(20), "e", State::Started);
        assert_eq!(player.due(s(10_000)), [Deed::Complete { event: "e".into() }]);
        assert_eq!(player.standstill(s(20_000), false), None, "the service ends it");
    }

    #[test]
    fn event_that_no_step_ends_any_more_is_a_standstill_of_the_scenario() {
        let steps = "  - { at: 1m, schedule: { event: e, cause: user-restart, vms: [a], runs: until-completed } }\n  - { at: scheduled e, cancel: e }\n";
        let mut player = player(steps);
        player.begin(s(0));
        player.due(s(5));
        player.observe(s(5), "e", State::Scheduled);
        player.observe(s(5), "e", State::Started);
        // The platform refuses to cancel a started event.
        assert_eq!(player.due(s(5)), [Deed::Step(1)]);
        assert_eq!(player.standstill(s(15), true), None);
        let Some(Standstill::Impossible(why)) = player.standstill(s(16), true) else { panic!() };
        assert_eq!(why, "event e does not end; add a step { at: started e + 5m, complete: e }");
    }
}
