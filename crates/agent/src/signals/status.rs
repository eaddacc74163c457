//! Status of the agent, shared between its loop and the status server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use notbefore_client::clock::Clock;
use serde::{Deserialize, Serialize};

use super::metrics::{Gauges, Metrics};
use crate::machine::io::{ApprovalAnswer, Fact, Stage};
use crate::overview::Overview;

/// The agent is ready if the platform answered within this time: two long polls.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// Steps without a program that `/readyz` lists.
const PROGRAMS_SHOWN: usize = 3;

/// Written by the loop, read by the server.
#[derive(Clone, Debug)]
pub struct StatusBoard {
    clock: Clock,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    vm: Option<String>,
    /// Whether the platform has yet to confirm the name.
    unsure: bool,
    endpoint: Option<String>,
    dry_run: bool,
    answered_at: Option<Duration>,
    /// Why the platform does not answer.
    trouble: Option<String>,
    /// Why the last journal write failed.
    journal: Option<String>,
    /// Why the changed configuration is not applied.
    config: Option<String>,
    /// Steps whose program is missing.
    programs: Vec<String>,
    events: Vec<Overview>,
    /// Tick of the next NotBefore of this VM's events.
    next_not_before: Option<Duration>,
    /// Number of deferred changes.
    waiting: usize,
    metrics: Metrics,
}

/// Body of `/events`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Events {
    /// None until known.
    pub vm: Option<String>,
    /// None until discovered.
    pub endpoint: Option<String>,
    /// Steps and approvals are logged, not executed.
    pub dry_run: bool,
    /// Whether this VM should get no new work.
    pub draining: bool,
    pub not_ready: Option<String>,
    pub events: Vec<Overview>,
}

impl StatusBoard {
    pub fn new(clock: Clock, dry_run: bool) -> StatusBoard {
        StatusBoard { clock, inner: Arc::new(Mutex::new(Inner { dry_run, ..Inner::default() })) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn found(&self, endpoint: String) {
        self.inner().endpoint = Some(endpoint);
    }

    /// Sets this VM's name, and whether it is confirmed.
    pub fn named(&self, vm: &str, sure: bool) {
        let mut inner = self.inner();
        inner.vm = Some(vm.to_owned());
        inner.unsure = !sure;
    }

    pub fn answered(&self, result: &'static str) {
        let now = self.clock.now().tick;
        let mut inner = self.inner();
        inner.answered_at = Some(now);
        inner.trouble = None;
        inner.metrics.polled(result);
    }

    pub fn poll_failed(&self, kind: &'static str, why: String) {
        let mut inner = self.inner();
        inner.trouble = Some(why);
        inner.metrics.polled(kind);
    }

    /// Sets the journal's state; None is healthy.
    pub fn journal(&self, why_not: Option<String>) {
        let mut inner = self.inner();
        if why_not.is_some() {
            inner.metrics.journal_failed();
        }
        inner.journal = why_not;
    }

    /// Sets the configuration's state; None is healthy.
    pub fn config(&self, why_not: Option<String>) {
        self.inner().config = why_not;
    }

    /// Sets the steps whose program is missing.
    pub fn programs(&self, steps: Vec<String>) {
        self.inner().programs = steps;
    }

    /// Sets the tracked events, and the tick of the next NotBefore among those of this VM.
    pub fn handles(&self, events: Vec<Overview>, next_not_before: Option<Duration>) {
        let mut inner = self.inner();
        (inner.events, inner.next_not_before) = (events, next_not_before);
    }

    /// Sets the number of deferred changes.
    pub fn waiting(&self, changes: usize) {
        self.inner().waiting = changes;
    }

    pub fn count(&self, fact: &Fact) {
        self.inner().metrics.count(fact);
    }

    pub fn ran(&self, rule: &str, stage: Stage, outcome: &'static str, took: Duration) {
        self.inner().metrics.ran(rule, stage, outcome, took);
    }

    pub fn approved(&self, answer: &ApprovalAnswer) {
        self.inner().metrics.approved(answer);
    }

    /// `/readyz`: whether the agent can do its work, as text.
    pub fn ready(&self) -> Result<String, String> {
        let why_not = self.inner().why_not_ready(self.clock.now().tick);
        why_not.map_or_else(|| Ok("ready".to_owned()), Err)
    }

    /// `/drainz`: whether this VM may get new work, as text.
    pub fn in_service(&self) -> Result<String, String> {
        let inner = self.inner();
        let draining: Vec<String> = inner
            .events
            .iter()
            .filter(|event| event.draining)
            .map(|event| {
                let at = event.not_before.map(|at| format!(", not before {at}")).unwrap_or_default();
                format!("{} {} ({}{at})", event.r#type, event.id, event.phase)
            })
            .collect();
        let events = draining.join("; ");
        match (inner.stranded().next(), draining.is_empty()) {
            (Some(_), _) => Err(format!("stranded: {events}")),
            (None, false) => Err(format!("draining: {events}")),
            (None, true) => Ok("in service".to_owned()),
        }
    }

    /// `/events`.
    pub fn events(&self) -> Events {
        let now = self.clock.now().tick;
        let inner = self.inner();
        Events {
            vm: inner.vm.clone(),
            endpoint: inner.endpoint.clone(),
            dry_run: inner.dry_run,
            draining: inner.events.iter().any(|event| event.draining),
            not_ready: inner.why_not_ready(now),
            events: inner.events.clone(),
        }
    }

    /// `/metrics`.
    pub fn metrics(&self) -> String {
        let now = self.clock.now().tick;
        let inner = &mut *self.inner();
        inner.metrics.page(&Gauges {
            silent: inner.answered_at.map(|at| now.saturating_sub(at)),
            draining: inner.events.iter().any(|event| event.draining),
            stranded: inner.events.iter().any(Overview::is_stranded),
            handled: inner.events.len(),
            waiting: inner.waiting,
            until_not_before: inner.next_not_before.map(|at| at.saturating_sub(now)),
        })
    }
}

impl Inner {
    /// The events after which this VM is not restored.
    fn stranded(&self) -> impl Iterator<Item = &Overview> {
        self.events.iter().filter(|event| event.is_stranded())
    }

    fn why_not_ready(&self, now: Duration) -> Option<String> {
        let mut reasons = Vec::new();
        let silent = self.answered_at.map(|at| now.saturating_sub(at));
        if silent.is_none_or(|silent| silent > READY_WITHIN) {
            let since = silent.map_or("has not answered yet".to_owned(), |silent| {
                format!("has not answered for {} s", silent.as_secs())
            });
            let why = self.trouble.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            reasons.push(format!("the platform {since}{why}"));
        }
        if self.unsure {
            let vm = self.vm.as_deref().unwrap_or("its host name");
            reasons.push(format!(
                "the platform has not confirmed this VM's name: the agent uses {vm} and approves nothing until it does, or until name is set"
            ));
        }
        if let Some(why) = &self.journal {
            reasons.push(format!("the journal cannot be written: {why}"));
        }
        if let Some(why) = &self.config {
            reasons.push(format!("the changed configuration is not applied: {why}"));
        }
        if let Some(Overview { id, r#type: kind, rule, step, .. }) = self.stranded().next() {
            let [rule, step] = [rule, step].map(|name| name.as_deref().unwrap_or("none"));
            let more = self.stranded().count() - 1;
            let more = if more > 0 { format!(", nor after {more} more") } else { String::new() };
            reasons.push(format!(
                "this VM is not restored after the {kind} {id}{more}: rule {rule}, step {step} after has failed; fix the \
                 cause and run 'notbefore agent retry {id}'"
            ));
        }
        if !self.programs.is_empty() {
            let shown: Vec<&str> = self.programs.iter().take(PROGRAMS_SHOWN).map(String::as_str).collect();
            let more = self.programs.len() - shown.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            // Not the program's name: readers of the status need not have access to the configuration.
            reasons.push(format!(
                "programs of steps are missing ({}{more}): 'notbefore agent check' names them",
                shown.join("; ")
            ));
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ready_requires_platform_answer_and_saved_journal() {
        let board = StatusBoard::new(Clock::start(), false);
        board.poll_failed("unreachable", "connection refused".to_owned());
        assert_eq!(board.ready(), Err("the platform has not answered yet (connection refused)".to_owned()));
        board.answered("document");
        assert_eq!(board.ready(), Ok("ready".to_owned()));
        tokio::time::advance(Duration::from_secs(121)).await;
        assert_eq!(board.ready(), Err("the platform has not answered for 121 s".to_owned()));
        board.answered("unchanged");
        board.named("web-0", false);
        assert_eq!(
            board.ready(),
            Err(
                "the platform has not confirmed this VM's name: the agent uses web-0 and approves nothing until it does, or until name is set"
                    .to_owned()
            )
        );
        board.named("web_0", true);
        board.journal(Some("no space".to_owned()));
        board.config(Some("line 3".to_owned()));
        assert_eq!(
            board.ready(),
            Err("the journal cannot be written: no space; the changed configuration is not applied: line 3"
                .to_owned())
        );
        board.journal(None);
        board.config(None);
        board.programs(["a", "b", "c", "d", "e"].map(|step| format!("rule r, step {step} before")).to_vec());
        assert_eq!(
            board.ready(),
            Err(
                "programs of steps are missing (rule r, step a before; rule r, step b before; rule r, step c before \
                 and 2 more): 'notbefore agent check' names them"
                    .to_owned()
            )
        );
        board.programs(Vec::new());
        assert_eq!(board.ready(), Ok("ready".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn time_until_not_before_is_a_metric_while_an_event_waits() {
        let clock = Clock::start();
        let board = StatusBoard::new(clock, false);
        let name = "notbefore_agent_next_not_before_seconds";
        let shown = || board.metrics().lines().find(|line| line.starts_with(name)).map(str::to_owned);
        assert_eq!(shown(), None);
        board.handles(Vec::new(), Some(clock.now().tick + Duration::from_secs(900)));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(shown(), Some(format!("{name}{{}} 840.0")));
        tokio::time::advance(Duration::from_secs(3_600)).await;
        assert_eq!(shown(), Some(format!("{name}{{}} 0.0")), "not below zero");
        board.handles(Vec::new(), None);
        assert_eq!(shown(), None);
    }
}
