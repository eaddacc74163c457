//! The driver around the state machine: pass an input to the machine, save the new state, then execute the actions.
//!
//! Inputs are documents, ended steps, approval answers and timer ticks. Actions go to their executors: steps to the
//! [`Runner`], approvals to a task each, facts to the log, the metrics and the administrator's webhook. `run.rs`
//! supplies the inputs; in a rehearsal, `rehearsal.rs` does, and simulates the platform.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use notbefore_client::client::{Approval, ApproveError, Client};
use notbefore_client::clock::{Clock, Moment};
use notbefore_client::document::{Document, EventId, EventsVersion};
use notbefore_client::identity::Identity;
use notbefore_client::watch::{Outage, Update};
use notbefore_wire::text::shorten;
use tokio::sync::mpsc;

use crate::admission::{Admission, TokenBucket};
use crate::check::{self, Problem};
use crate::config::{self, Config, Sources};
use crate::control::{Answer, AppliedFile, FactText, Reloaded, Request, Retried};
use crate::history::History;
use crate::hooks::{Ended, Runner};
use crate::journal::{Found, Journal};
use crate::machine::io::{Action, ApprovalAnswer, Fact, FactKind, Input, Run, RunId, Stage, StepOutcome};
use crate::machine::tracked_event::{Phase, TrackedEvent};
use crate::machine::{Setup, State};
use crate::notify::Notifier;
use crate::platform;
use crate::signals::StatusBoard;
use crate::systemd::{self, ServiceState};
use crate::{boot, fact_text, overview};

/// Delay before a failed journal write is retried, if no input causes a write earlier.
const JOURNAL_REST: Duration = Duration::from_secs(5);
/// Interval of the search for programs of steps, while some are missing.
const PROGRAMS_REST: Duration = Duration::from_secs(60);
/// Longest id that an answer repeats.
const ID_CHARACTERS_MAX: usize = 100;
/// Fewest characters of an abbreviated id.
const ID_START_MIN: usize = 4;
/// Capacity of the channel of approval answers. Each event has at most one approval under way.
const ANSWERS_MAX: usize = 64;
/// A lasting outage is logged once in this many failed polls: about every ten minutes.
const FAILURE_LOGGED_EVERY: u32 = 60;
/// Minimum interval between log lines about deferred changes.
const WAITING_LOGGED_EVERY: Duration = Duration::from_secs(60);
/// Token bucket for approvals sent early because the platform answers again. In the long run it allows no more than
/// the regular retries.
const BACK_BURST: u32 = 8;
const BACK_EVERY: Duration = Duration::from_secs(15);
/// Callers that wait for the outcome of a retry. Each is root or the agent's user; more than a few are a script gone
/// wrong.
const WAITERS_MAX: usize = 64;
/// How long the facts of an event that starts wait for the answer to its approval, which often comes by another
/// connection just after the document.
const ANSWER_WAIT: Duration = Duration::from_secs(2);
/// How long the platform may be silent before discovery runs again in parallel with the polls. A Preempt event gives
/// only half a minute.
pub const REDISCOVER_AFTER: Duration = Duration::from_secs(30);

pub struct Agent {
    config: Config,
    sources: Sources,
    clock: Clock,
    board: StatusBoard,
    setup: Setup,
    state: State,
    /// When the machine's next [`Input::Tick`] is due.
    machine_due: Option<Duration>,
    journal: Option<Journal>,
    /// When a failed write is retried.
    journal_due: Option<Duration>,
    /// Steps whose program was missing at the last look.
    missing_programs: Vec<Problem>,
    /// When missing programs are looked for again.
    programs_due: Option<Duration>,
    runner: Runner,
    /// Rule, stage and start of every running attempt.
    begun: BTreeMap<RunId, (String, Stage, Duration)>,
    notifier: Notifier,
    /// Events whose refused approval was already reported to the administrator.
    refused: Vec<EventId>,
    peer: Peer,
    /// Since when polls get no answer.
    silent_since: Option<Duration>,
    admission: Admission,
    /// The newest document, while some of its changes are deferred.
    waiting: Option<(Document, EventsVersion)>,
    has_read: bool,
    /// When deferred changes were last logged.
    waiting_logged_at: Option<Duration>,
    /// Limits approvals sent early because the platform answers again.
    back: TokenBucket,
    /// Whether the platform was unknown or silent since its last answer.
    awaiting_answer: bool,
    answers: mpsc::Sender<(EventId, ApprovalAnswer)>,
    /// Watchdog interval, and when the next keep-alive is due.
    watchdog: Option<(Duration, Duration)>,
    status: String,
    history: Option<History>,
    /// Facts of events that started while their approval is under way, in order: the log says first that an event is
    /// approved.
    early: Vec<(Timestamp, Fact)>,
    /// When they are reported without the answer.
    early_due: Option<Duration>,
    /// Facts since a command, for its answer.
    told: Option<Vec<FactText>>,
    waiters: Vec<Waiter>,
}

/// A caller that waits for the outcome of a retry.
struct Waiter {
    event: EventId,
    answers: mpsc::Sender<Answer>,
}

/// The other side of the agent.
enum Peer {
    /// The platform, once found. Facts go to the log, the metrics and the administrator's webhook.
    Platform(Option<Client>),
    /// A rehearsal: every approval is accepted, and facts are collected.
    Rehearsal(Vec<Fact>),
}

type Answers = mpsc::Receiver<(EventId, ApprovalAnswer)>;

impl Agent {
    pub fn new(
        config: Config,
        sources: Sources,
        clock: Clock,
        board: StatusBoard,
    ) -> (Agent, mpsc::Receiver<Ended>, Answers) {
        let (runner, ends) = Runner::new(config.dry_run);
        let (answers, answered) = mpsc::channel(ANSWERS_MAX);
        let setup = Setup {
            rules: config.rules.clone(),
            me: platform::initial_identity(&config),
            sure: config.name.is_some(),
        };
        let watchdog = systemd::watchdog_interval().map(|every| (every, clock.now().tick));
        let agent = Agent {
            config,
            sources,
            clock,
            board,
            setup,
            state: State::new(boot::id()),
            machine_due: None,
            journal: None,
            journal_due: None,
            missing_programs: Vec::new(),
            programs_due: None,
            runner,
            begun: BTreeMap::new(),
            notifier: Notifier::start(),
            refused: Vec::new(),
            peer: Peer::Platform(None),
            silent_since: None,
            admission: Admission::new(),
            waiting: None,
            has_read: false,
            waiting_logged_at: None,
            back: TokenBucket::new(BACK_BURST, BACK_EVERY),
            awaiting_answer: true,
            answers,
            watchdog,
            status: String::new(),
            history: None,
            early: Vec::new(),
            early_due: None,
            told: None,
            waiters: Vec::new(),
        };
        (agent, ends, answered)
    }

    /// An agent for a rehearsal: simulated platform, no journal.
    pub fn for_rehearsal(config: Config, clock: Clock) -> (Agent, mpsc::Receiver<Ended>, Answers) {
        let board = StatusBoard::new(clock, config.dry_run);
        let (agent, ends, answers) = Agent::new(config, Sources::default(), clock, board);
        (Agent { peer: Peer::Rehearsal(Vec::new()), ..agent }, ends, answers)
    }

    /// Takes the facts collected since the last call. Empty outside a rehearsal.
    pub fn facts(&mut self) -> Vec<Fact> {
        match &mut self.peer {
            Peer::Rehearsal(facts) => std::mem::take(facts),
            Peer::Platform(_) => Vec::new(),
        }
    }

    pub fn events(&self) -> &[TrackedEvent] {
        self.state.events()
    }

    /// Resumes from the journal of the previous agent.
    pub async fn begin(&mut self, opened: Option<(Journal, Found)>) {
        let Some((journal, found)) = opened else { return };
        self.journal = Some(journal);
        self.history = Some(History::start(&self.config.state));
        let before = match found {
            Found::State(before) => *before,
            Found::Nothing => self.state.clone(),
            Found::Corrupt { aside, why } => {
                let text = format!(
                    "the journal cannot be read ({why}); it was renamed, and this agent starts with an empty one: \
                     start again any service that the previous agent stopped"
                );
                tracing::error!(aside = %aside.display(), "{text}");
                self.notify_problem(text, None);
                self.state.clone()
            }
            Found::AnotherVms { aside } => {
                tracing::warn!(
                    aside = %aside.display(),
                    "the journal belongs to another VM, of whose disk this one is a copy; it was renamed, and this agent \
                     starts with an empty one"
                );
                self.state.clone()
            }
        };
        let now = self.clock.now();
        let (state, actions) = before.resume(&self.setup, boot::id(), now);
        self.apply_state(state, actions, now).await;
    }

    /// Looks for the programs of all steps. Reports those that are missing and were not at the last look.
    pub fn check_programs(&mut self) {
        let missing = check::missing_programs(&self.config.rules);
        let is_new = |problem: &&Problem| !self.missing_programs.contains(problem);
        let new: Vec<String> = missing.iter().filter(is_new).map(ToString::to_string).collect();
        for problem in &new {
            tracing::warn!("{problem}; the step would fail: install the program or correct the rule");
        }
        if !new.is_empty() {
            self.notify_problem(format!("programs of steps are missing: {}", new.join("; ")), None);
        }
        if missing.is_empty() && !self.missing_programs.is_empty() {
            tracing::info!("the programs of all steps are there");
        }
        self.board.programs(missing.iter().map(|problem| problem.step.clone()).collect());
        let now = self.clock.now().tick;
        self.programs_due = (!missing.is_empty()).then(|| now.saturating_add(PROGRAMS_REST));
        self.missing_programs = missing;
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The platform's client, once the endpoint is found.
    pub fn client(&self) -> Option<Client> {
        match &self.peer {
            Peer::Platform(client) => client.clone(),
            Peer::Rehearsal(_) => None,
        }
    }

    /// Switches to a platform that discovery found.
    pub fn follow(&mut self, client: &Client) {
        self.silent_since = None;
        self.peer = Peer::Platform(Some(client.clone()));
        self.board.found(client.endpoint().to_string());
        self.board.named(self.setup.me.name(), self.setup.sure);
    }

    /// Sets the name that the platform reports for this VM. The machine re-evaluates ownership of all events before
    /// anything else: events of the previous name may belong to another VM.
    pub async fn set_identity(&mut self, me: Identity) {
        tracing::info!(vm = me.name(), "the name of this VM is known");
        self.board.named(me.name(), true);
        (self.setup.me, self.setup.sure) = (me, true);
        self.handle_input(Input::Named).await;
    }

    /// Stops all running steps; the next agent resumes them. Pending notifications get a short time to be sent.
    pub async fn stop(mut self) {
        self.report_early(|_| true);
        let history = self.history.take();
        let write_history = async move {
            if let Some(history) = history {
                history.finish().await;
            }
        };
        tokio::join!(self.runner.stop_all(), self.notifier.finish(), write_history);
    }

    /// Stops all running steps, in a rehearsal.
    pub async fn stop_steps(&mut self) {
        self.runner.stop_all().await;
    }

    pub async fn update(&mut self, update: Update) {
        match update {
            Update::Document { document, served_at, version } => {
                self.board.answered("document");
                self.read_document(document, served_at, version).await;
                self.on_platform_answer().await;
            }
            Update::Unchanged { served_at } => {
                self.board.answered("unchanged");
                if let Some((document, version)) = self.waiting.take() {
                    self.read_document(document, served_at, version).await;
                }
                // A VM that was frozen learns the current time from this. It matters only if there are events.
                if let Some(served_at) = served_at.filter(|_| !self.state.events().is_empty()) {
                    self.handle_input(Input::Unchanged { served_at }).await;
                }
                self.on_platform_answer().await;
            }
            Update::Outage(Outage { kind, text, since: _, tries }) => {
                self.awaiting_answer = true;
                // Any answer proves that the endpoint exists, so discovery is not needed.
                match kind.is_silence() {
                    true => _ = self.silent_since.get_or_insert(self.clock.now().tick),
                    false => self.silent_since = None,
                }
                if tries % FAILURE_LOGGED_EVERY == 1 {
                    tracing::warn!(tries, "{text}; the last document stays valid until there is an answer");
                }
                self.board.poll_failed(kind.as_str(), text);
            }
        }
    }

    /// Applies a document, as far as the rate limit (`admission.rs`) allows. One without changes only reports the
    /// platform's time.
    async fn read_document(
        &mut self,
        document: Document,
        served_at: Option<Timestamp>,
        version: EventsVersion,
    ) {
        let now = self.clock.now().tick;
        let admitted = self.admission.admit(&document, version, self.state.events(), &self.setup.me, now);
        self.board.waiting(admitted.held);
        if admitted.held > 0 {
            if self.waiting_logged_at.is_none_or(|at| now >= at.saturating_add(WAITING_LOGGED_EVERY)) {
                self.waiting_logged_at = Some(now);
                tracing::warn!(
                    held = admitted.held,
                    "too many changes from the platform: these are deferred, events of this VM are applied first"
                );
            }
            self.waiting = Some((document, version));
        } else {
            self.waiting = None;
        }
        if admitted.changes > 0 || !self.has_read {
            self.has_read = true;
            self.handle_input(Input::Document { document: admitted.document, served_at, version }).await;
        } else if let Some(served_at) = served_at {
            self.handle_input(Input::Unchanged { served_at }).await;
        }
    }

    /// Sends approvals that waited for the platform to answer. The token bucket limits this if every other poll
    /// fails.
    async fn on_platform_answer(&mut self) {
        self.silent_since = None;
        let now = self.clock.now().tick;
        if std::mem::replace(&mut self.awaiting_answer, false) && self.back.take(now) {
            self.handle_input(Input::Back).await;
        }
    }

    /// Whether the platform was silent long enough to run discovery again. Never with a configured endpoint.
    pub fn should_rediscover(&self) -> bool {
        let now = self.clock.now().tick;
        let silent = self.silent_since.map(|since| now.saturating_sub(since));
        self.config.endpoint.is_none() && silent.is_some_and(|silent| silent >= REDISCOVER_AFTER)
    }

    pub async fn ended(&mut self, Ended { run, outcome }: Ended) {
        self.runner.forget(run);
        if let Some((rule, stage, begun)) = self.begun.remove(&run) {
            let word = match &outcome {
                StepOutcome::Done => "done",
                StepOutcome::Failed { .. } => "failed",
                StepOutcome::TimedOut => "timed_out",
                StepOutcome::Stopped => "stopped",
            };
            self.board.ran(&rule, stage, word, self.clock.now().tick.saturating_sub(begun));
        }
        self.handle_input(Input::StepEnded { run, outcome }).await;
    }

    /// Handles the answer to an approval. A refusal is reported to the administrator once per event.
    pub async fn answered(&mut self, event: EventId, answer: ApprovalAnswer) {
        self.board.approved(&answer);
        let known = |id: &EventId| self.state.events().iter().any(|handled| handled.event.id == *id);
        self.refused.retain(known);
        if let ApprovalAnswer::Refused { reason } = &answer
            && known(&event)
            && !self.refused.contains(&event)
        {
            self.refused.push(event.clone());
            let text = format!("the platform refuses the approval: {reason}; the agent sends it again");
            self.notify_problem(text, Some(&event));
        }
        self.handle_input(Input::Answered { event: event.clone(), answer }).await;
        self.report_early(|fact| fact.event.id == event);
    }

    /// Notifies the administrator of a problem that is not a [`Fact`].
    fn notify_problem(&self, text: String, about: Option<&EventId>) {
        let Some(to) = &self.config.notify else { return };
        let handled = |id: &EventId| self.state.events().iter().find(|handled| handled.event.id == *id);
        self.notifier.send_problem(
            to,
            text,
            about.and_then(handled),
            self.setup.me.name(),
            self.config.dry_run,
        );
    }

    /// Passes an input to the machine and executes its actions.
    async fn handle_input(&mut self, input: Input) {
        let state = std::mem::replace(&mut self.state, State::new(None));
        let now = self.clock.now();
        let (state, actions) = state.handle(&self.setup, input, now);
        self.apply_state(state, actions, now).await;
    }

    /// Applies the machine's result of time `now`. The state is saved before any action is executed.
    async fn apply_state(&mut self, state: State, actions: Vec<Action>, now: Moment) {
        // Computed before the save, with the same `now`: a deadline that passes during the save must not be lost.
        self.machine_due = state.next_due(&self.setup, now);
        self.state = state;
        self.board.handles(overview::of(&self.state), self.state.next_not_before());
        self.save().await;
        for action in actions {
            match action {
                Action::Run(mut run) => {
                    let begins = self.clock.now().tick;
                    run.budget = remaining_budget(&run, begins);
                    self.begun.insert(run.id, (run.rule.clone(), run.stage, begins));
                    self.runner.start(*run, self.setup.me.name());
                }
                Action::Stop(run) => self.runner.stop(run),
                Action::Approve(event) => self.approve(event),
                Action::Report(fact) => self.report(*fact),
            }
        }
        self.answer_waiters();
    }

    /// Tells the outcome to each caller whose event waits, or is over. Drops callers that have left.
    fn answer_waiters(&mut self) {
        self.waiters.retain(|Waiter { event, answers }| {
            let handled = self.state.events().iter().find(|handled| handled.event.id == *event);
            if handled.is_some_and(TrackedEvent::is_under_way) {
                return !answers.is_closed();
            }
            let _ = answers.try_send(Answer::Outcome(handled.map(overview::one).map(Box::new)));
            false
        });
    }

    fn report(&mut self, fact: Fact) {
        match &mut self.peer {
            Peer::Rehearsal(facts) => facts.push(fact),
            Peer::Platform(_) => {
                let now = self.clock.now();
                match self.is_early(&fact) {
                    true => {
                        self.early.push((now.wall, fact));
                        self.early_due.get_or_insert(now.tick.saturating_add(ANSWER_WAIT));
                    }
                    false => self.publish(&fact, now.wall),
                }
            }
        }
    }

    /// Whether the fact follows from the start or end of an event whose approval has no answer yet.
    fn is_early(&self, fact: &Fact) -> bool {
        let answers = matches!(
            fact.kind,
            FactKind::Approved | FactKind::ApprovalMoot | FactKind::ApprovalFailed { .. }
        );
        let is_asked = |handled: &TrackedEvent| handled.event.id == fact.event.id && handled.awaits_answer();
        let moves = matches!(fact.kind, FactKind::Started { .. } | FactKind::Ended | FactKind::Cancelled);
        let starts = moves && self.events().iter().any(is_asked);
        let follows = || self.early.iter().any(|(_, early)| early.event.id == fact.event.id);
        !answers && (starts || follows())
    }

    /// Reports the early facts that `which` selects.
    fn report_early(&mut self, which: impl Fn(&Fact) -> bool) {
        let (due, left) = std::mem::take(&mut self.early).into_iter().partition(|(_, fact)| which(fact));
        self.early = left;
        if self.early.is_empty() {
            self.early_due = None;
        }
        let due: Vec<(Timestamp, Fact)> = due;
        due.iter().for_each(|(at, fact)| self.publish(fact, *at));
    }

    /// Passes a fact on to the log, the metrics, the history, callers and the administrator.
    fn publish(&mut self, fact: &Fact, at: Timestamp) {
        fact_text::log(fact, self.config.dry_run);
        self.board.count(fact);
        if let Some(history) = &mut self.history {
            history.record(fact, at);
        }
        let text = || {
            let (event, text) = (fact.event.id.as_str().to_owned(), fact_text::sentence(fact));
            FactText { event, text }
        };
        if let Some(told) = &mut self.told {
            told.push(text());
        }
        // A caller that reads nothing is dropped.
        self.waiters.retain(|Waiter { event, answers }| {
            *event != fact.event.id || answers.try_send(Answer::Fact(text())).is_ok()
        });
        if let Some(to) = &self.config.notify {
            self.notifier.send_fact(to, fact, self.setup.me.name(), self.config.dry_run);
        }
    }

    async fn save(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        match journal.save(&self.state).await {
            Ok(()) => {
                if self.journal_due.take().is_some() {
                    tracing::info!("the journal is saved again");
                    self.board.journal(None);
                }
            }
            Err(error) => {
                if self.journal_due.is_none() {
                    let text = format!(
                        "{error}; the agent continues without a journal; its state is lost if it stops now"
                    );
                    tracing::error!("{text}");
                    self.notify_problem(text, None);
                }
                self.journal_due = Some(self.clock.now().tick.saturating_add(JOURNAL_REST));
                self.board.journal(Some(error.to_string()));
            }
        }
    }

    /// Sends an approval from a background task; the answer arrives in the loop.
    fn approve(&self, event: EventId) {
        let (answers, client) = (self.answers.clone(), self.client());
        let pretends = self.config.dry_run || matches!(self.peer, Peer::Rehearsal(_));
        tokio::spawn(async move {
            let answer = match client {
                _ if pretends => ApprovalAnswer::Accepted,
                None => ApprovalAnswer::Failed { reason: "the endpoint is not found yet".to_owned() },
                Some(client) => match client.approve(&event).await {
                    Ok(Approval::Accepted) => ApprovalAnswer::Accepted,
                    Ok(Approval::Moot) => ApprovalAnswer::Moot,
                    Err(ApproveError::Refused(reason)) => ApprovalAnswer::Refused { reason },
                    Err(ApproveError::Transient(failure)) => ApprovalAnswer::Failed { reason: failure.text },
                },
            };
            let _ = answers.send((event, answer)).await;
        });
    }

    /// When the next timer is due: machine, journal retry, missing programs, early facts or watchdog.
    pub fn due(&self) -> Option<Duration> {
        let watchdog = self.watchdog.map(|(_, due)| due);
        let own = [self.machine_due, self.journal_due, self.programs_due, self.early_due];
        own.into_iter().chain([watchdog]).flatten().min()
    }

    pub async fn run_due(&mut self) {
        let now = self.clock.now();
        if let Some((every, due)) = self.watchdog.filter(|(_, due)| *due <= now.tick) {
            systemd::notify(ServiceState::Alive);
            self.watchdog = Some((every, due.max(now.tick).saturating_add(every)));
        }
        if self.early_due.is_some_and(|due| due <= now.tick) {
            self.report_early(|_| true);
        }
        if self.programs_due.is_some_and(|due| due <= now.tick) {
            self.check_programs();
        }
        if self.machine_due.is_some_and(|due| due <= now.tick) {
            self.handle_input(Input::Tick).await;
        } else if self.journal_due.is_some_and(|due| due <= now.tick) {
            self.save().await;
        }
    }

    /// Carries out a command of root or the agent's user.
    pub async fn obey(&mut self, request: Request, answers: &mpsc::Sender<Answer>) {
        let (answer, awaited) = match request {
            Request::Reload => (self.reload().await, None),
            Request::Retry { wait: true, .. } if self.waiters.len() >= WAITERS_MAX => {
                (Answer::Refused(format!("{WAITERS_MAX} callers wait for a retry; use --no-wait")), None)
            }
            Request::Retry { event, wait } => match self.retry(&event).await {
                Ok(retried) => {
                    let event = EventId::new(retried.event.clone());
                    (Answer::Retried(retried), wait.then_some(event))
                }
                Err(refused) => (refused, None),
            },
            Request::Status => (Answer::Status(self.board.events()), None),
        };
        // A caller that has left gets no answer.
        let _ = answers.try_send(answer);
        if let Some(event) = awaited {
            self.waiters.push(Waiter { event, answers: answers.clone() });
            self.answer_waiters();
        }
    }

    /// Reads the configuration again and retries what failed of an event by it, or says why there is nothing to retry.
    /// `wanted` is the event's id, or the beginning of one.
    async fn retry(&mut self, wanted: &str) -> Result<Retried, Answer> {
        let id = self.retriable(wanted).map_err(Answer::Refused)?;
        let file = self.apply_file().map_err(Answer::Mistakes)?;
        tracing::info!(event = id.to_string(), "a command asks to retry what failed of this event");
        self.told = Some(Vec::new());
        self.handle_input(Input::RetryEvent { event: id.clone() }).await;
        let facts = self.told.take().unwrap_or_default();
        Ok(Retried { event: id.as_str().to_owned(), file, facts })
    }

    /// The id of the event of which something can be retried.
    fn retriable(&self, wanted: &str) -> Result<EventId, String> {
        let event = self.find_event(wanted)?;
        let id = event.event.id.clone();
        if !event.can_retry() {
            return Err(match event.phase() {
                None => format!(
                    "no rule matches event {id}; add one to {} and run 'notbefore agent reload'",
                    self.config.file.display()
                ),
                Some(Phase::Withheld { .. }) => {
                    format!("event {id} has started: its steps before the event are not retried")
                }
                Some(
                    Phase::Preparing { .. }
                    | Phase::Ready { .. }
                    | Phase::Over { .. }
                    | Phase::Restoring { .. }
                    | Phase::Done,
                ) => format!("event {id} has no failed step or approval: it is {}", event.phase_name()),
            });
        }
        Ok(id)
    }

    /// The event with this id, or the only one whose id begins so; upper or lower case.
    fn find_event(&self, wanted: &str) -> Result<&TrackedEvent, String> {
        let begins = |handled: &&TrackedEvent| {
            let id = handled.event.id.as_str().as_bytes();
            id.get(..wanted.len()).is_some_and(|start| start.eq_ignore_ascii_case(wanted.as_bytes()))
        };
        let found: Vec<&TrackedEvent> = self.state.events().iter().filter(begins).collect();
        let exact = found.iter().find(|handled| handled.event.id.as_str().len() == wanted.len());
        if exact.is_none() && wanted.len() < ID_START_MIN {
            return Err(format!(
                "{wanted:?} is too short for an event; give {ID_START_MIN} characters or more of the id"
            ));
        }
        let wanted = shorten(wanted, ID_CHARACTERS_MAX);
        match (exact, found.as_slice()) {
            (Some(event), _) | (None, [event]) => Ok(event),
            (None, []) => {
                Err(format!("the agent handles no event {wanted}; 'notbefore agent status' lists them"))
            }
            (None, several) => {
                Err(format!("{} events begin with {wanted}; give more of the id", several.len()))
            }
        }
    }

    /// Reloads the configuration, and retries what failed of all events.
    pub async fn reload(&mut self) -> Answer {
        let file = match self.apply_file() {
            Ok(file) => file,
            Err(mistakes) => return Answer::Mistakes(mistakes),
        };
        self.told = Some(Vec::new());
        // An unmatched event may match now, and a failed step may succeed.
        self.handle_input(Input::Retry).await;
        Answer::Reloaded(Reloaded { file, facts: self.told.take().unwrap_or_default() })
    }

    /// Reads the configuration again. Rules apply to future events and to what is retried, and so does `notify`; other
    /// settings need a restart. A file with mistakes, which are returned, changes nothing.
    fn apply_file(&mut self) -> Result<AppliedFile, String> {
        systemd::notify(ServiceState::Reloading);
        let applied = match config::load(&self.sources) {
            Ok(config) => {
                let rest = |config: &Config| Config { rules: Vec::new(), notify: None, ..config.clone() };
                let restart_needed = rest(&config) != rest(&self.config);
                if restart_needed {
                    tracing::warn!(
                        "settings other than rules and notify have changed; restart the agent to apply them"
                    );
                }
                tracing::info!(rules = config.rules.len(), "rules are reloaded and apply to future events");
                if config.rules.is_empty() {
                    tracing::warn!("{}", check::NO_RULES);
                }
                self.setup.rules.clone_from(&config.rules);
                self.config.rules = config.rules;
                self.config.notify = config.notify;
                self.board.config(None);
                self.missing_programs.clear();
                self.check_programs();
                Ok(AppliedFile {
                    file: self.config.file.display().to_string(),
                    rules: self.config.rules.len(),
                    restart_needed,
                    missing_programs: self.missing_programs.iter().map(ToString::to_string).collect(),
                })
            }
            Err(mistakes) => {
                tracing::error!("{mistakes}; the previous rules stay in effect");
                // Publish only the count: readers of the status need not have access to the configuration.
                self.board.config(Some(mistakes.count()));
                Err(mistakes.to_string())
            }
        };
        systemd::notify(ServiceState::Ready);
        applied
    }

    /// Updates systemd's status line if it changed.
    pub fn update_status(&mut self) {
        let vm = self.setup.me.name();
        let (Ok(status) | Err(status)) = self.board.ready().and_then(|_| self.board.in_service());
        let status = format!("{vm}: {status}");
        if status != self.status {
            systemd::notify(ServiceState::Status(&status));
            self.status = status;
        }
    }
}

/// Budget of an attempt that starts now. The journal write since the decision may have been slow, and NotBefore does
/// not move. The step's own timeout starts with the attempt.
fn remaining_budget(run: &Run, now: Duration) -> Duration {
    run.until.map_or(run.budget, |until| run.budget.min(until.saturating_sub(now)))
}

#[cfg(test)]
mod tests;
