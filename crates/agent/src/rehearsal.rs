//! Rehearsal for `notbefore agent check --run`: the agent of `agent run` with a simulated platform.
//!
//! Sequence:
//! 1. A document announces one event. The machine runs its steps for real, once each.
//! 2. The approval is accepted; a document shows the event as started; the next one is empty.
//! 3. If a step withholds the approval, or at Ctrl-C, the event disappears without a start: it is cancelled and the
//!    machine restores the VM.
//! 4. Ctrl-C during the steps after the event ends the rehearsal.
//!
//! There is no journal, no log output and no notification.

use std::time::Duration;

use jiff::Timestamp;
use notbefore_client::clock::Clock;
use notbefore_client::document::{
    Document, Event, EventId, EventKind, EventSource, EventStatus, EventsVersion,
};
use notbefore_client::watch::Update;
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;

use crate::config::Config;
use crate::driver::Agent;
use crate::hooks::Ended;
use crate::machine::PREEMPT_NOTICE;
use crate::machine::io::{FactKind, Stage, StepOutcome};
use crate::machine::tracked_event::{Approval, Phase, TrackedEvent};
use crate::rules::{Match, ResourceMatch, Rule, Step};
use crate::run::{Order, until};

/// Notice of the sample event; Preempt has its own.
const NOTICE: Duration = Duration::from_secs(15 * 60);
/// Id of the sample event; no platform uses it.
const SAMPLE_ID: &str = "00000000-0000-0000-0000-000000000000";
const DESCRIPTION: &str = "a rehearsal: notbefore agent check --run";

/// Outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepResult {
    pub stage: Stage,
    pub step: String,
    pub outcome: Outcome,
    /// The outcome in words.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Done,
    Failed,
    /// Exceeded its budget.
    TimedOut,
    /// Stopped by Ctrl-C.
    Stopped,
    /// The machine did not reach it.
    NotRun,
}

impl StepResult {
    /// A step that was not reached.
    pub fn not_run(stage: Stage, step: &Step) -> StepResult {
        StepResult { stage, step: step.name.clone(), outcome: Outcome::NotRun, text: "not run".to_owned() }
    }
}

/// Runs a rule for a sample event of this type, as if it were for `vm`. Calls `report` for every step, in order. Any
/// order interrupts.
pub async fn run(
    config: &Config,
    rule: &Rule,
    kind: EventKind,
    vm: &str,
    mut orders: mpsc::Receiver<Order>,
    report: impl FnMut(&StepResult),
) -> Vec<StepResult> {
    let clock = Clock::start();
    let config = Config {
        rules: vec![for_any_event(rule)],
        notify: None,
        name: Some(vm.to_owned()),
        ..config.clone()
    };
    let (agent, mut ends, mut answers) = Agent::for_rehearsal(config, clock);
    let event = sample_event(kind, vm, clock.now().wall);
    let (attempt, tried) = (None, Vec::new());
    let mut rehearsal = Rehearsal { agent, clock, rule, event, is_listed: true, attempt, tried, report };
    rehearsal.show(true).await;
    while !rehearsal.is_over() {
        let due = rehearsal.agent.due();
        tokio::select! {
            biased;
            Some(_) = orders.recv() => if rehearsal.interrupt().await { break },
            Some(ended) = ends.recv() => {
                let is_stopped = ended.outcome == StepOutcome::Stopped;
                rehearsal.ended(ended).await;
                // Repeated interrupts during one step count once.
                while is_stopped && orders.try_recv().is_ok() {}
            }
            Some((event, answer)) = answers.recv() => rehearsal.agent.answered(event, answer).await,
            () = until(clock, due) => rehearsal.agent.run_due().await,
        }
        rehearsal.go_on().await;
    }
    rehearsal.end().await
}

/// A copy of the rule that matches every event and has no retries.
fn for_any_event(rule: &Rule) -> Rule {
    let once = |steps: &[Step]| steps.iter().map(|step| Step { retries: 0, ..step.clone() }).collect();
    let matches = Match { resources: ResourceMatch::Any, advisory: true, ..Match::default() };
    Rule { matches, before: once(&rule.before), after: once(&rule.after), ..rule.clone() }
}

/// A document's event as the platform would send it.
fn sample_event(kind: EventKind, vm: &str, now: Timestamp) -> Event {
    let notice = if kind == EventKind::Preempt { PREEMPT_NOTICE } else { NOTICE };
    let is_advisory = kind == EventKind::SpotRebalanceRecommendation;
    let status = if is_advisory { EventStatus::Advisory } else { EventStatus::Scheduled };
    let not_before = now.checked_add(notice).ok().filter(|_| !is_advisory);
    let shown = not_before.map(|at| at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
    let raw = json!({
        "EventId": SAMPLE_ID,
        "EventType": kind.as_str(),
        "ResourceType": "VirtualMachine",
        "Resources": [vm],
        "EventStatus": status.as_str(),
        "NotBefore": shown.unwrap_or_default(),
        "Description": DESCRIPTION,
        "EventSource": "User",
        "DurationInSeconds": -1,
    });
    Event {
        id: EventId::new(SAMPLE_ID),
        kind,
        status,
        resources: vec![vm.to_owned()],
        not_before,
        description: DESCRIPTION.to_owned(),
        source: Some(EventSource::User),
        duration_seconds: None,
        raw,
    }
}

/// A rehearsal in progress.
struct Rehearsal<'a, R> {
    agent: Agent,
    clock: Clock,
    rule: &'a Rule,
    event: Event,
    /// Whether the last document lists the event.
    is_listed: bool,
    /// The running attempt.
    attempt: Option<Attempt>,
    tried: Vec<StepResult>,
    report: R,
}

struct Attempt {
    stage: Stage,
    step: String,
    /// Whether its budget is less than its own timeout.
    is_cut: bool,
    began: Duration,
}

impl<R: FnMut(&StepResult)> Rehearsal<'_, R> {
    /// Sends the agent a document, with or without the event.
    async fn show(&mut self, is_listed: bool) {
        self.is_listed = is_listed;
        let events = if is_listed { vec![self.event.clone()] } else { Vec::new() };
        let document = Document { incarnation: "1".to_owned(), events };
        let version = EventsVersion::NEWEST;
        self.agent.update(Update::Document { document, served_at: None, version }).await;
        self.hear(None);
    }

    /// Simulates the platform: an approved event, or one that this agent does not approve, starts and ends. One with
    /// withheld approval is cancelled, and so is an advisory.
    async fn go_on(&mut self) {
        let handled = self.agent.events().first();
        let Some((phase, approval)) = handled.map(|handled| (handled.phase(), handled.approval())) else {
            return;
        };
        let is_answered = matches!(approval, Approval::Given | Approval::Moot | Approval::NotMine { .. });
        let is_ready = is_answered && matches!(phase, Some(Phase::Ready { .. }));
        if is_ready && !self.event.is_advisory() {
            self.event.status = EventStatus::Started;
            self.event.not_before = None;
            self.event.raw["EventStatus"] = json!("Started");
            self.event.raw["NotBefore"] = json!("");
            self.show(true).await;
            self.show(false).await;
        } else if is_ready || matches!(phase, Some(Phase::Withheld { .. })) {
            self.show(false).await;
        }
    }

    /// Whether the rehearsal is finished: the event is dropped, or a failed step prevents the restore.
    fn is_over(&self) -> bool {
        self.agent.events().iter().all(TrackedEvent::is_stranded)
    }

    /// Cancels the event: running steps are stopped and the VM is restored. Returns true if it was cancelled before,
    /// so the rehearsal ends.
    async fn interrupt(&mut self) -> bool {
        if self.is_listed {
            self.show(false).await;
            return false;
        }
        // A step before the event is being stopped.
        self.attempt.as_ref().is_none_or(|attempt| attempt.stage == Stage::After)
    }

    async fn ended(&mut self, ended: Ended) {
        let outcome = ended.outcome.clone();
        self.agent.ended(ended).await;
        self.hear(Some(outcome));
    }

    /// Processes new facts of the machine; an attempt may have ended meanwhile.
    fn hear(&mut self, outcome: Option<StepOutcome>) {
        let facts = self.agent.facts();
        let mut ended = outcome.and_then(|outcome| Some((self.attempt.take()?, outcome)));
        let is_end =
            |what: &FactKind| matches!(what, FactKind::StepDone { .. } | FactKind::StepFailed { .. });
        if !facts.iter().any(|fact| is_end(&fact.kind))
            && let Some((attempt, outcome)) = ended.take()
        {
            // The machine reports nothing more about a step that it stopped.
            self.add(attempt.stage, attempt.step.clone(), Some((attempt, outcome)), false);
        }
        for fact in facts {
            if let FactKind::StepBegun { step, stage, budget, .. } = fact.kind {
                let timeout =
                    self.rule.steps(stage).iter().find(|one| one.name == step).map(|one| one.timeout);
                let is_cut = timeout.is_some_and(|timeout| budget < timeout);
                self.attempt = Some(Attempt { stage, step, is_cut, began: self.clock.now().tick });
            } else if let FactKind::StepDone { step, stage } = fact.kind {
                self.add(stage, step, ended.take(), true);
            } else if let FactKind::StepFailed { step, stage, .. } = fact.kind {
                self.add(stage, step, ended.take(), false);
            }
        }
    }

    /// Reports a step and whether the machine counts it as done. A step without an attempt had no time.
    fn add(&mut self, stage: Stage, step: String, ended: Option<(Attempt, StepOutcome)>, is_done: bool) {
        let now = self.clock.now().tick;
        let (outcome, is_cut, took) = match ended {
            Some((attempt, outcome)) => (outcome, attempt.is_cut, now.saturating_sub(attempt.began)),
            None => (StepOutcome::TimedOut, true, Duration::ZERO),
        };
        let took = took.as_secs_f64();
        let (outcome, text) = match outcome {
            StepOutcome::Done => (Outcome::Done, format!("done in {took:.1} s")),
            StepOutcome::Failed { reason } => (Outcome::Failed, reason),
            StepOutcome::TimedOut if is_done => {
                (Outcome::Done, format!("done: cut to {took:.1} s by the notice"))
            }
            StepOutcome::TimedOut if is_cut => {
                (Outcome::TimedOut, format!("not done in the {took:.1} s that the notice allows"))
            }
            StepOutcome::TimedOut => (Outcome::TimedOut, format!("not done in {took:.1} s")),
            StepOutcome::Stopped => (Outcome::Stopped, format!("stopped after {took:.1} s")),
        };
        if stage == Stage::After {
            self.leave(Stage::Before);
        }
        self.push(StepResult { stage, step, outcome, text });
    }

    /// Reports the remaining steps of a stage as not run.
    fn leave(&mut self, stage: Stage) {
        let is_tried = |step: &Step| self.tried.iter().any(|one| one.stage == stage && one.step == step.name);
        let left: Vec<&Step> = self.rule.steps(stage).iter().filter(|step| !is_tried(step)).collect();
        left.into_iter().for_each(|step| self.push(StepResult::not_run(stage, step)));
    }

    fn push(&mut self, tried: StepResult) {
        (self.report)(&tried);
        self.tried.push(tried);
    }

    /// Stops a running step, if any.
    async fn end(mut self) -> Vec<StepResult> {
        self.agent.stop_steps().await;
        if let Some(attempt) = self.attempt.take() {
            self.add(attempt.stage, attempt.step.clone(), Some((attempt, StepOutcome::Stopped)), false);
        }
        self.leave(Stage::Before);
        self.leave(Stage::After);
        self.tried
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Sources};

    /// Outcomes of a rule's steps for a Preempt event, optionally with an interrupt.
    async fn rehearsed(steps: &str, orders: mpsc::Receiver<Order>) -> Vec<String> {
        let text = format!("[[rule]]\nname = 'all'\ntypes = ['Reboot']\nsources = ['Platform']\n{steps}");
        let mut config = config::read("a.toml".as_ref(), &text, &Sources::default()).unwrap();
        // The configuration rejects a `wait` longer than its timeout.
        let Rule { before, after, .. } = &mut config.rules[0];
        for step in before.iter_mut().chain(after).filter(|step| step.name.starts_with("slow")) {
            step.timeout = Duration::from_secs(4);
        }
        let mut reported = Vec::new();
        let report = |tried: &StepResult| reported.push(tried.clone());
        let tried = run(&config, &config.rules[0], EventKind::Preempt, "web-0", orders, report).await;
        assert_eq!(reported, tried);
        tried.iter().map(|one| format!("{:?} {}: {}", one.stage, one.step, one.text)).collect()
    }

    async fn undisturbed(steps: &str) -> Vec<String> {
        let (_orders, told) = mpsc::channel(1);
        rehearsed(steps, told).await
    }

    const BACK: &str = "[[rule.after]]\nname = 'back'\nwait = '2s'\n";

    #[tokio::test(start_paused = true)]
    async fn steps_share_notice_like_an_event() {
        let steps = "[[rule.before]]\nname = 'long'\nwait = '1h'\n\
                     [[rule.before]]\nname = 'short'\nwait = '3s'\nkeep = '5s'\n";
        let expected = [
            "Before long: done: cut to 24.5 s by the notice",
            "Before short: done in 3.0 s",
            "After back: done in 2.0 s",
        ];
        assert_eq!(undisturbed(&format!("{steps}{BACK}")).await, expected);
        assert_eq!(undisturbed(&format!("approve = 'never'\n{steps}{BACK}")).await, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn steps_without_time_are_not_started() {
        let steps = "[[rule.before]]\nname = 'none'\ncommand = ['never-run']\n\
                     [[rule.before]]\nname = 'wait'\nwait = '1s'\n\
                     [[rule.before]]\nname = 'kept'\nwait = '3s'\nkeep = '1m'\n";
        let expected = [
            "Before none: not done in the 0.0 s that the notice allows",
            "Before wait: done: cut to 0.0 s by the notice",
            "Before kept: done in 3.0 s",
            "After back: done in 2.0 s",
        ];
        assert_eq!(undisturbed(&format!("{steps}{BACK}")).await, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn step_has_own_timeout_and_no_retries() {
        let steps = "[[rule.before]]\nname = 'slow'\nwait = '1m'\nretries = 3\n\
                     [[rule.before]]\nname = 'next'\nwait = '1s'\n\
                     [[rule.after]]\nname = 'slowly'\nwait = '1m'\n";
        let expected = [
            "Before slow: not done in 4.0 s",
            "Before next: not run",
            "After slowly: not done in 4.0 s",
            "After back: not run",
        ];
        assert_eq!(undisturbed(&format!("{steps}{BACK}")).await, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn first_interrupt_cancels_second_aborts() {
        let steps = "[[rule.before]]\nname = 'first'\nwait = '10s'\n\
                     [[rule.before]]\nname = 'next'\nwait = '1s'\n\
                     [[rule.after]]\nname = 'undo'\nwait = '10s'\n";
        let (orders, told) = mpsc::channel(8);
        let first = ["Before first: stopped after 3.0 s", "Before next: not run"];
        let send = |after: u64| {
            let orders = orders.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(after)).await;
                // Two interrupts during one step count once.
                for _ in 0..2 {
                    orders.send(Order::Stop).await.unwrap();
                }
            }
        };
        let text = format!("{steps}{BACK}");
        let (said, ()) = tokio::join!(rehearsed(&text, told), send(3));
        assert_eq!(said, [&first[..], &["After undo: done in 10.0 s", "After back: done in 2.0 s"]].concat());
        let (orders, told) = mpsc::channel(8);
        let send = |after: u64| {
            let orders = orders.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(after)).await;
                orders.send(Order::Stop).await.unwrap();
            }
        };
        let (said, (), ()) = tokio::join!(rehearsed(&text, told), send(3), send(5));
        assert_eq!(said, [&first[..], &["After undo: stopped after 2.0 s", "After back: not run"]].concat());
    }
}
