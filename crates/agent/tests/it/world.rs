//! Simulated world around the machine: a platform with events, running hooks, pending approvals, clocks and restarts.
//! After every action of the machine it checks the invariants.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use notbefore_agent::machine::io::{
    Action, AfterFailure, ApprovalAnswer, FactKind, Input, Run, RunId, Stage, StepOutcome,
};
use notbefore_agent::machine::tracked_event::{Approval, TrackedEvent};
use notbefore_agent::machine::{RESERVE, Setup, State};
use notbefore_agent::rules::{
    Approve, DurationMatch, DurationRange, Match, OnFailure, OnInterrupt, ResourceMatch, Restore, Rule, Step,
    StepAction,
};
use notbefore_client::clock::Moment;
use notbefore_client::document::{
    Document, Event, EventId, EventKind, EventSource, EventStatus, EventsVersion,
};
use notbefore_client::identity::Identity;

pub const ME: &str = "web-0";

pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub fn step(name: &str) -> Step {
    Step {
        name: name.into(),
        does: StepAction::Command { argv: vec!["true".into()] },
        timeout: seconds(60),
        keep: Duration::ZERO,
        retries: 0,
        retry_delay: seconds(1),
        on_failure: OnFailure::Withhold,
        on_interrupt: OnInterrupt::Rerun,
    }
}

/// A rule for all events of this VM, with two steps before and one after.
pub fn rule(name: &str) -> Rule {
    Rule {
        name: name.into(),
        matches: Match::default(),
        before: vec![step("drain"), step("stop")],
        approve: Approve::WhenDone,
        after: vec![step("start")],
        restore: Restore::Gone,
        drain: true,
    }
}

/// An advisory has a NotBefore too, which is no deadline.
pub fn event(id: &str, kind: EventKind, resources: &[&str], not_before: Timestamp) -> Event {
    let status = match kind == EventKind::SpotRebalanceRecommendation {
        true => EventStatus::Advisory,
        false => EventStatus::Scheduled,
    };
    Event {
        id: EventId::new(id),
        kind,
        status,
        resources: resources.iter().map(|&name| name.into()).collect(),
        not_before: Some(not_before),
        description: String::new(),
        source: Some(EventSource::Platform),
        duration_seconds: None,
        raw: serde_json::Value::Null,
    }
}

/// Rules with every policy, for the property test.
pub fn rules_of_every_sort() -> Vec<Rule> {
    let of = |kind| Match { kinds: vec![kind], ..Match::default() };
    let stubborn = Step { retries: 2, on_failure: OnFailure::GoOn, ..step("stubborn") };
    let once = Step { on_interrupt: OnInterrupt::Skip, ..step("once") };
    let last = Step { keep: seconds(3), timeout: seconds(10), ..step("last") };
    let late = Match {
        time_left: DurationRange { at_least: None, at_most: Some(seconds(60)) },
        ..of(EventKind::Redeploy)
    };
    let short = DurationMatch {
        within: DurationRange { at_least: None, at_most: Some(seconds(10)) },
        unknown: false,
    };
    vec![
        Rule { matches: of(EventKind::Reboot), before: vec![once, stubborn, last], ..rule("reboot") },
        Rule {
            matches: Match { duration: short, ..of(EventKind::Freeze) },
            before: vec![],
            after: vec![],
            drain: false,
            ..rule("short freeze")
        },
        Rule { matches: of(EventKind::Freeze), approve: Approve::Leader, ..rule("freeze") },
        Rule {
            matches: late,
            restore: Restore::Booted,
            after: vec![Step { on_failure: OnFailure::GoOn, ..step("first") }, step("second")],
            ..rule("late redeploy")
        },
        Rule {
            matches: Match {
                kinds: vec![EventKind::SpotRebalanceRecommendation],
                sources: vec![EventSource::User],
                advisory: true,
                ..Match::default()
            },
            ..rule("advisory")
        },
        Rule {
            matches: Match {
                kinds: vec![EventKind::Preempt, EventKind::SpotRebalanceRecommendation],
                advisory: true,
                ..Match::default()
            },
            ..rule("preempt")
        },
        Rule {
            matches: of(EventKind::Terminate),
            approve: Approve::Never,
            after: vec![],
            ..rule("terminate")
        },
        Rule { matches: of(EventKind::Other("Teleport".into())), before: vec![], ..rule("only after") },
        Rule {
            matches: Match { resources: ResourceMatch::Any, ..Match::default() },
            before: vec![step("log")],
            after: vec![step("log the end")],
            drain: false,
            ..rule("log")
        },
    ]
}

/// Edited rules: unchanged, with other timeouts, or with steps removed.
pub fn rules_as_edited(edit: usize) -> Vec<Rule> {
    let mut rules = rules_of_every_sort();
    for rule in &mut rules {
        for steps in [&mut rule.before, &mut rule.after] {
            match edit {
                0 => {}
                1 => steps.iter_mut().for_each(|step| step.timeout += seconds(1)),
                _ if steps.len() > 1 => drop(steps.remove(steps.len() - 2)),
                _ => {}
            }
        }
    }
    rules
}

/// What the world has recorded of an event, to check later actions.
#[derive(Clone, Debug, Default)]
struct Seen {
    rule: Option<Rule>,
    /// Handled steps of the current preparation.
    handled_steps: BTreeSet<String>,
    /// Whether a required step failed, or had no time.
    withheld: bool,
    /// Whether the steps after such a step must not run.
    halted: bool,
    /// Whether it was for other VMs only when last seen.
    was_others: bool,
    /// Whether another rule may apply: it became this VM's, or its rule no longer matches.
    rule_replaced: bool,
    /// Whether a required step after it failed: nothing of the restore runs until a retry.
    stranded: bool,
    /// Whether a started preparation is not undone.
    is_undo_pending: bool,
    booted: bool,
}

#[derive(Clone)]
pub struct World {
    setup: Setup,
    /// This VM's name as the agent knows it.
    me: String,
    pub state: State,
    pub now: Moment,
    /// Platform time of tick zero.
    ticks_began: Timestamp,
    boot: u32,
    /// Whether the VM has booted and the agent has read no document since.
    is_boot_unread: bool,
    incarnation: u64,
    /// The platform's events with the true tick of NotBefore.
    pub platform: BTreeMap<EventId, (Event, Duration)>,
    /// The last document with each NotBefore as the agent can know it.
    document: Vec<(Event, Option<Duration>)>,
    pub running: BTreeMap<RunId, Run>,
    pub stopping: BTreeSet<RunId>,
    pub approving: Vec<EventId>,
    pub facts: Vec<(EventId, FactKind)>,
    seen: BTreeMap<EventId, Seen>,
    runs: BTreeSet<RunId>,
}

impl World {
    pub fn new(rules: Vec<Rule>) -> World {
        World {
            setup: Setup { rules, me: Identity::named(ME), sure: true },
            me: ME.into(),
            state: State::new(Some("boot 0".into())),
            now: Moment { tick: Duration::ZERO, wall: "2026-11-16T10:00:00Z".parse().unwrap() },
            ticks_began: "2026-11-16T10:00:00Z".parse().unwrap(),
            boot: 0,
            is_boot_unread: false,
            incarnation: 1,
            platform: BTreeMap::new(),
            document: Vec::new(),
            running: BTreeMap::new(),
            stopping: BTreeSet::new(),
            approving: Vec::new(),
            facts: Vec::new(),
            seen: BTreeMap::new(),
            runs: BTreeSet::new(),
        }
    }

    /// The platform announces an event of this VM.
    pub fn announce(&mut self, id: &str, kind: EventKind, notice: Duration) {
        self.announce_for(id, kind, &[ME], notice);
    }

    pub fn announce_for(&mut self, id: &str, kind: EventKind, resources: &[&str], notice: Duration) {
        let event = event(id, kind, resources, self.platform_time() + notice);
        self.announce_event(event, notice);
    }

    pub fn announce_event(&mut self, event: Event, notice: Duration) {
        self.platform.insert(event.id.clone(), (event, self.now.tick + notice));
    }

    /// The platform's clock; independent of this VM's wall clock.
    pub fn platform_time(&self) -> Timestamp {
        self.ticks_began + self.now.tick
    }

    /// The platform's clock as reported: whole seconds.
    pub fn platform_second(&self) -> Timestamp {
        Timestamp::from_second(self.platform_time().as_second()).unwrap()
    }

    pub fn start(&mut self, id: &str) {
        if let Some((event, _)) = self.platform.get_mut(&EventId::new(id)) {
            event.status = EventStatus::Started;
            event.not_before = None;
        }
    }

    pub fn revert_to_scheduled(&mut self, id: &str, notice: Duration) {
        let not_before = self.platform_time() + notice;
        let tick = self.now.tick + notice;
        if let Some((event, at)) = self.platform.get_mut(&EventId::new(id)) {
            event.status = EventStatus::Scheduled;
            event.not_before = Some(not_before);
            *at = tick;
        }
    }

    pub fn remove(&mut self, id: &str) {
        self.platform.remove(&EventId::new(id));
    }

    /// The agent polls and reads a document.
    pub fn poll(&mut self) {
        self.poll_served_at(Some(self.platform_second()));
    }

    pub fn poll_served_at(&mut self, served_at: Option<Timestamp>) {
        self.read(served_at, EventsVersion::NEWEST);
    }

    /// The agent polls and reads a document of an older version, which omits newer types.
    pub fn poll_at(&mut self, version: EventsVersion) {
        self.read(None, version);
    }

    fn read(&mut self, served_at: Option<Timestamp>, version: EventsVersion) {
        self.incarnation += 1;
        let knows = served_at.is_some() || self.clock_agrees();
        // Events that the version does not cover keep their last state.
        let is_shown = |event: &Event| event.kind.is_shown_at(version);
        let news: Vec<_> = self.platform.values().filter(|(event, _)| is_shown(event)).cloned().collect();
        let is_news = |event: &Event| news.iter().any(|(new, _)| new.id == event.id);
        self.document.retain(|(event, _)| !is_shown(event) && !is_news(event));
        let events = news.iter().map(|(event, _)| event.clone()).collect();
        self.document.extend(news.into_iter().map(|(event, at)| (event, knows.then_some(at))));
        let document = Document { incarnation: self.incarnation.to_string(), events };
        self.record_ownership();
        self.handle(Input::Document { document, served_at, version });
        self.is_boot_unread = false;
    }

    /// Time passes; the machine gets its ticks.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now.tick + time;
        while let Some(due) = self.state.next_due(&self.setup, self.now).filter(|due| *due <= end) {
            self.move_to(due);
            self.handle(Input::Tick);
        }
        self.move_to(end);
    }

    fn move_to(&mut self, tick: Duration) {
        self.now.wall += tick - self.now.tick;
        self.now.tick = tick;
    }

    /// Sets this VM's name, and whether it is confirmed.
    pub fn set_name(&mut self, name: &str, sure: bool) {
        (self.setup.me, self.setup.sure) = (Identity::named(name), sure);
        self.me = name.into();
        self.record_ownership();
        self.handle(Input::Named);
    }

    /// Records the owners of the document's events.
    fn record_ownership(&mut self) {
        for (event, _) in &self.document {
            let mine = event.resources.contains(&self.me);
            let seen = self.seen.entry(event.id.clone()).or_default();
            seen.rule_replaced |= mine && seen.was_others;
            seen.was_others = !mine;
        }
    }

    /// Sets this VM's wall clock.
    pub fn step_clock(&mut self, by: SignedDuration) {
        self.now.wall = self.now.wall.checked_add(by).unwrap();
    }

    /// The only running step.
    pub fn only_run(&self) -> &Run {
        assert_eq!(self.running.len(), 1, "{:?}", self.running);
        self.running.values().next().unwrap()
    }

    /// Ends the only running step.
    pub fn end(&mut self, outcome: StepOutcome) {
        let run = self.only_run().id;
        self.end_run(run, outcome);
    }

    pub fn end_run(&mut self, run: RunId, outcome: StepOutcome) {
        let Some(_) = self.running.remove(&run) else { return };
        self.stopping.remove(&run);
        self.handle(Input::StepEnded { run, outcome });
    }

    pub fn answer(&mut self, answer: ApprovalAnswer) {
        if !self.approving.is_empty() {
            let event = self.approving.remove(0);
            self.handle(Input::Answered { event, answer });
        }
    }

    /// Restarts the agent, which ends its steps; optionally reboots the VM.
    pub fn restart(&mut self, boots: bool) {
        self.boot += u32::from(boots);
        self.is_boot_unread |= boots;
        for seen in self.seen.values_mut().filter(|_| boots) {
            seen.booted = true;
            seen.handled_steps.clear();
            seen.withheld = false;
            seen.halted = false;
            seen.stranded = false;
        }
        self.running.clear();
        self.stopping.clear();
        self.approving.clear();
        // Ticks restart at zero, the platform's clock does not.
        self.ticks_began = self.platform_time();
        for (_, at) in self.platform.values_mut() {
            *at = at.saturating_sub(self.now.tick);
        }
        let knows = self.clock_agrees();
        for (_, at) in &mut self.document {
            *at = at.filter(|_| knows).map(|at| at.saturating_sub(self.now.tick));
        }
        self.now.tick = Duration::ZERO;
        let text = serde_json::to_string(&self.state).unwrap();
        let state: State = serde_json::from_str(&text).unwrap();
        assert_eq!(state, self.state, "a state survives its journal");
        let boot = Some(format!("boot {}", self.boot));
        let (state, actions) = state.resume(&self.setup, boot, self.now);
        self.state = state;
        self.check_actions(actions);
    }

    /// Reverts to the last journal write. The platform keeps its state.
    pub fn restore_journal_of(&mut self, written: &World) {
        let forgotten = std::mem::replace(self, written.clone());
        (self.now, self.ticks_began) = (forgotten.now, forgotten.ticks_began);
        self.platform = forgotten.platform;
        // Ticks may have restarted since.
        for (_, at) in &mut self.document {
            let since = |at: &mut Duration| (written.ticks_began + *at).duration_since(self.ticks_began);
            *at = at.as_mut().map(|at| Duration::try_from(since(at)).unwrap_or_default());
        }
    }

    pub fn handle(&mut self, input: Input) {
        let state = self.state.clone();
        let (state, actions) = state.handle(&self.setup, input, self.now);
        self.state = state;
        self.check_actions(actions);
        for handled in self.state.events().iter().filter(|handled| handled.is_stranded()) {
            assert!(self.seen[&handled.event.id].stranded, "stranded without a failure: {handled:?}");
        }
        let due = self.state.next_due(&self.setup, self.now);
        assert!(
            due.is_none_or(|due| due > self.now.tick),
            "settled, and something is due: {due:?} {:?}",
            self.state
        );
        let (again, more) = self.state.clone().handle(&self.setup, Input::Tick, self.now);
        assert_eq!((&again, more), (&self.state, vec![]), "a further tick changes nothing");
    }

    fn listed(&self, id: &EventId) -> Option<&Event> {
        self.document.iter().map(|(event, _)| event).find(|event| event.id == *id)
    }

    /// Reloads the rules; failed steps are retried.
    pub fn reload(&mut self, rules: Vec<Rule>) {
        self.edit(rules);
        self.handle(Input::Retry);
    }

    /// Edits the rules; the agent loads them at a reload or restart.
    pub fn edit(&mut self, rules: Vec<Rule>) {
        self.setup.rules = rules;
    }

    /// A rule may change only to its written form.
    fn follow_corrections(&mut self) {
        for handled in self.state.events() {
            let Some(before) = self.seen.get_mut(&handled.event.id).and_then(|seen| seen.rule.as_mut())
            else {
                continue;
            };
            if let Some(rule) = handled.rule().filter(|rule| rule.name == before.name && *rule != before) {
                assert!(self.setup.rules.contains(rule), "a rule that was never configured: {rule:?}");
                *before = rule.clone();
            }
        }
    }

    fn check_actions(&mut self, actions: Vec<Action>) {
        self.follow_corrections();
        for action in actions {
            match action {
                Action::Run(run) => self.check_run(*run),
                Action::Stop(run) => {
                    assert!(self.running.contains_key(&run), "stops what does not run: {run:?}");
                    self.stopping.insert(run);
                }
                Action::Approve(id) => self.check_approval(id),
                Action::Report(fact) => self.record_fact(fact.event.id.clone(), fact.kind),
            }
        }
    }

    fn check_run(&mut self, run: Run) {
        assert!(self.runs.insert(run.id), "an attempt's number is used twice: {run:?}");
        let id = run.event.id.clone();
        let elsewhere = self.running.values().find(|other| other.event.id == id);
        assert!(elsewhere.is_none(), "two steps of one event at once: {run:?} {elsewhere:?}");
        assert!(run.budget <= run.step.timeout && !run.budget.is_zero(), "{run:?}");
        let listed = self.listed(&id).cloned();
        let seen = &self.seen[&id];
        let rule = seen.rule.clone().expect("a step belongs to a rule");
        match run.stage {
            Stage::Before => {
                assert!(listed.is_some(), "prepares for what is gone: {run:?}");
                let deadline = self.document.iter().find(|(event, _)| event.id == id).and_then(|(_, at)| *at);
                if run.event.is_advisory() {
                    assert!(run.until.is_none() && run.budget == run.step.timeout, "a deadline: {run:?}");
                }
                let deadline = deadline.filter(|_| !run.event.is_advisory());
                if let Some(deadline) = deadline.filter(|_| run.event.status == EventStatus::Scheduled) {
                    let later = rule.before.iter().skip_while(|step| step.name != run.step.name).skip(1);
                    let kept: Duration = later.map(|step| step.keep).sum();
                    let left = deadline.saturating_sub(self.now.tick);
                    // A late step still runs; with a wrong clock it is late up to a second early.
                    assert!(
                        left <= RESERVE + seconds(1) || run.budget + RESERVE + kept <= left,
                        "{run:?} has only {left:?}"
                    );
                }
                let position = rule.before.iter().position(|step| step.name == run.step.name).unwrap();
                for earlier in &rule.before[..position] {
                    assert!(seen.handled_steps.contains(&earlier.name), "{run:?} before {}", earlier.name);
                }
                assert!(!seen.halted, "goes on after a failure that withholds: {run:?}");
            }
            Stage::After => {
                assert!(!seen.stranded, "restores further after a failure that strands: {run:?}");
                let early = rule.restore == Restore::Booted && seen.booted;
                let lost = |event: &Event| {
                    rule.matches.resources == ResourceMatch::Mine && !event.resources.contains(&self.me)
                };
                let over = listed.as_ref().is_none_or(lost);
                assert!(over || early || seen.rule_replaced, "restores before the event is over: {run:?}");
                assert!(
                    seen.is_undo_pending || rule.before.is_empty(),
                    "undoes without a preparation: {run:?}"
                );
                if run.event.is_advisory() && run.event.resources.contains(&self.me) {
                    for preempt in self.document.iter().map(|(event, _)| event) {
                        let mine = preempt.resources.contains(&self.me);
                        let theirs = self.seen.get(&preempt.id);
                        let is_over = theirs.is_some_and(|theirs| {
                            let at_boot = |rule: &Rule| rule.restore == Restore::Booted && theirs.booted;
                            theirs.rule.as_ref().is_some_and(at_boot) || theirs.rule_replaced
                        });
                        let follows = preempt.kind == EventKind::Preempt && mine && !is_over;
                        assert!(!follows, "{run:?} although {preempt:?} follows");
                    }
                }
                for (other, theirs) in &self.seen {
                    let Some(their_rule) = &theirs.rule else { continue };
                    let mine = self.listed(other).is_some_and(|event| event.resources.contains(&self.me));
                    let over_early = their_rule.restore == Restore::Booted && theirs.booted;
                    let is_over = over_early || theirs.rule_replaced;
                    let keeps_out = mine && their_rule.drain && theirs.is_undo_pending && !is_over;
                    let held = rule.drain && run.event.resources.contains(&self.me);
                    assert!(*other == id || !held || !keeps_out, "{run:?} although {other} drains the VM");
                }
            }
        }
        if run.stage == Stage::Before {
            self.seen.get_mut(&id).unwrap().is_undo_pending = true;
        }
        self.running.insert(run.id, run);
    }

    /// Whether this VM's clock agrees with the platform's.
    fn clock_agrees(&self) -> bool {
        self.now.wall.duration_since(self.platform_time()).abs() < SignedDuration::from_millis(1)
    }

    fn check_approval(&mut self, id: EventId) {
        let event = self.listed(&id).expect("approves what is not listed").clone();
        let seen = &self.seen[&id];
        let rule = seen.rule.as_ref().expect("approves without a rule");
        assert!(!event.is_advisory(), "approves an advisory");
        assert_eq!(event.status, EventStatus::Scheduled, "approves what has started");
        assert!(event.resources.contains(&self.me), "approves for others");
        assert!(self.setup.sure, "approves by a name that may be another VM's");
        match rule.approve {
            Approve::WhenDone => {}
            Approve::Leader => assert_eq!(event.leader(), Some(self.me.as_str())),
            Approve::Never => panic!("approves despite approve = never: {event:?}"),
        }
        for step in &rule.before {
            assert!(
                seen.handled_steps.contains(&step.name),
                "approves before `{}` is done: {event:?}",
                step.name
            );
        }
        assert!(!seen.withheld, "approves although a step failed: {event:?}");
        self.approving.push(id);
    }

    fn record_fact(&mut self, id: EventId, what: FactKind) {
        let seen = self.seen.entry(id.clone()).or_default();
        match &what {
            FactKind::Appeared { .. } => {
                let event = self.document.iter().map(|(event, _)| event).find(|event| event.id == id);
                let started = event.is_some_and(|event| event.status == EventStatus::Started);
                (seen.withheld, seen.halted) = (false, false);
                // An event that is back interrupts its restore; one that names this VM too, by now, does not.
                let mut handled = self.state.events().iter().filter(|handled| handled.event.id == id);
                seen.stranded &= handled.any(TrackedEvent::is_stranded);
                seen.handled_steps.clear();
                seen.booted = self.is_boot_unread && started;
            }
            FactKind::Unmatched => {
                let handled = self.state.events().iter().find(|handled| handled.event.id == id);
                assert!(handled.is_some_and(|handled| handled.mine && handled.rule().is_none()), "{what:?}");
            }
            FactKind::Matched => {
                let handled = self.state.events().iter().find(|handled| handled.event.id == id);
                let handled = handled.expect("an event that has a rule is handled");
                seen.rule = handled.rule().cloned();
                seen.rule_replaced = false;
                seen.handled_steps.clear();
            }
            FactKind::TookOver { from } => {
                let Seen { handled_steps, is_undo_pending, rule, withheld, halted, .. } =
                    std::mem::take(self.seen.get_mut(from).expect("an event that was seen"));
                let seen = self.seen.entry(id.clone()).or_default();
                assert_eq!(seen.rule, rule, "continues by another rule");
                (seen.handled_steps, seen.is_undo_pending) = (handled_steps, is_undo_pending);
                // A list that halted, or is at its end, begins again at the failed step.
                let steps = seen.rule.as_ref().map_or(0, |rule| rule.before.len());
                seen.withheld = withheld && !halted && seen.handled_steps.len() < steps;
                for run in self.running.values_mut().filter(|run| run.event.id == *from) {
                    run.event.id = id.clone();
                }
            }
            FactKind::StepDone { step, stage: Stage::Before }
            | FactKind::StepFailed { step, stage: Stage::Before, then: AfterFailure::GoOn, .. } => {
                seen.handled_steps.insert(step.clone());
            }
            FactKind::StepFailed {
                step, stage: Stage::Before, then: AfterFailure::WithholdAndGoOn, ..
            } => {
                seen.handled_steps.insert(step.clone());
                seen.withheld = true;
            }
            FactKind::StepFailed { stage: Stage::Before, then: AfterFailure::Withhold, .. } => {
                (seen.withheld, seen.halted) = (true, true);
            }
            FactKind::StepDropped { stage: Stage::Before, .. } => {
                (seen.withheld, seen.halted) = (false, false)
            }
            FactKind::RuleUnmatched => {
                (seen.withheld, seen.halted, seen.rule_replaced) = (false, false, true);
            }
            FactKind::TriedAgain { step, stage: Stage::Before } => {
                let written = |rule: &&Rule| seen.rule.as_ref().is_some_and(|seen| seen.name == rule.name);
                let written = self.setup.rules.iter().find(written);
                assert!(
                    written.is_none() || written == seen.rule.as_ref(),
                    "tried again as it was: {what:?}"
                );
                let steps = seen.rule.as_ref().map(|rule| rule.before.as_slice()).unwrap_or_default();
                let earlier = steps.iter().map(|step| &step.name).take_while(|name| *name != step);
                let earlier: BTreeSet<String> = earlier.cloned().collect();
                assert!(seen.withheld, "tries again what did not fail: {what:?}");
                assert!(earlier.is_subset(&seen.handled_steps), "begins again after {earlier:?}");
                (seen.withheld, seen.halted) = (false, false);
            }
            FactKind::StepInterrupted { step, stage: Stage::Before, rerun: false } => {
                seen.handled_steps.insert(step.clone());
            }
            FactKind::Prepared => {
                let only_after = |rule: &Rule| rule.before.is_empty() && !rule.after.is_empty();
                assert!(!seen.withheld, "ready although a step failed");
                seen.is_undo_pending |= seen.rule.as_ref().is_some_and(only_after);
            }
            FactKind::StepFailed { stage: Stage::After, then: AfterFailure::Withhold, .. } => {
                seen.stranded = true;
            }
            FactKind::StepFailed { stage: Stage::After, then: AfterFailure::WithholdAndGoOn, .. } => {
                panic!("a restore has no deadline: {what:?}");
            }
            FactKind::Stranded { .. } => assert!(seen.stranded, "stranded without a failure: {what:?}"),
            // The restore begins again after the other event.
            FactKind::RestoreHeld { .. }
            | FactKind::TriedAgain { stage: Stage::After, .. }
            | FactKind::StepDropped { stage: Stage::After, .. } => seen.stranded = false,
            FactKind::Restored { .. } => {
                assert!(!seen.stranded, "in service although a step failed");
                seen.is_undo_pending = false;
            }
            FactKind::StepBegun { .. }
            | FactKind::StepDone { .. }
            | FactKind::StepFailed { .. }
            | FactKind::StepInterrupted { .. }
            | FactKind::NotApproving { .. }
            | FactKind::Withheld { .. }
            | FactKind::Approved
            | FactKind::ApprovalMoot
            | FactKind::ApprovalFailed { .. }
            | FactKind::Started { .. }
            | FactKind::WentBack
            | FactKind::Changed
            | FactKind::Booted
            | FactKind::Cancelled
            | FactKind::Ended => {}
        }
        self.facts.push((id, what));
    }

    /// All steps succeed, all approvals are accepted, and time passes until nothing is due for an hour.
    fn succeed_until_idle(&mut self) {
        for _ in 0..10_000 {
            let due = self.state.next_due(&self.setup, self.now);
            if let Some(run) = self.running.keys().next().copied() {
                self.end_run(run, StepOutcome::Done);
            } else if !self.approving.is_empty() {
                self.answer(ApprovalAnswer::Accepted);
            } else if let Some(due) = due.filter(|due| *due <= self.now.tick + seconds(3_600)) {
                self.pass(due - self.now.tick);
            } else {
                return;
            }
        }
        panic!("it never settles: {:?}", self.state);
    }

    /// Liveness: if everything succeeds, every event that this VM is ready for and should approve is approved.
    pub fn check_approvals(&mut self) {
        let me = self.me.clone();
        self.set_name(&me, true);
        self.poll();
        self.handle(Input::Retry);
        self.succeed_until_idle();
        for handled in
            self.state.events().iter().filter(|handled| handled.is_listed() && !handled.is_started())
        {
            let Some(rule) = handled.rule().filter(|_| !handled.event.is_advisory()) else { continue };
            let others = rule.matches.resources == ResourceMatch::Others;
            assert!(!handled.mine || !others, "this VM's event by a rule for others: {handled:?}");
            let to_approve = match rule.approve {
                Approve::WhenDone => handled.mine,
                Approve::Leader => handled.event.leader() == Some(self.me.as_str()),
                Approve::Never => false,
            };
            let withheld = matches!(handled.approval(), Approval::Withheld { .. });
            let settled = matches!(handled.approval(), Approval::Given | Approval::Moot);
            // Undone, and matched again, after the event that drains the VM; `check_cleanup` ends that one.
            let waits = handled.is_waiting_for_another() && self.state.is_draining();
            assert!(!to_approve || withheld || settled || waits, "never approved: {handled:?}");
        }
    }

    /// Liveness: when everything is over and all steps succeed, nothing is left.
    pub fn check_cleanup(&mut self) {
        self.platform.clear();
        self.poll();
        self.handle(Input::Retry);
        self.succeed_until_idle();
        assert_eq!(self.state.events(), [], "events are left");
        assert!(!self.state.is_draining());
        let owing: Vec<&EventId> =
            self.seen.iter().filter(|(_, seen)| seen.is_undo_pending).map(|(id, _)| id).collect();
        assert!(owing.is_empty(), "never undone: {owing:?}");
    }
}
