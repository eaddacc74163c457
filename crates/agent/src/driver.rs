//! The agent around its machine: something has happened, the machine says what it means, the state is saved, and then it
//! is done.
//!
//! The machine is told of documents, of ends and answers, and of the time it asked to be woken at; of nothing else. What it
//! wants done goes to whoever does it: steps to the [`Runner`], approvals to a task of their own, facts to the log, the
//! metrics and the administrator. `run.rs` waits for what happens next. So does `rehearsal.rs`, which has an agent of the
//! same kind, and plays the platform.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use notbefore_client::client::{Approval, ApproveError, Client};
use notbefore_client::clock::{Clock, Moment};
use notbefore_client::document::{Document, EventId, EventsVersion};
use notbefore_client::identity::Identity;
use notbefore_client::watch::{Outage, Update};
use tokio::sync::mpsc;

use crate::admission::{Admission, TokenBucket};
use crate::config::{self, Config, Sources};
use crate::hooks::{Ended, Runner};
use crate::journal::{Found, Journal};
use crate::machine::io::{Action, ApprovalAnswer, Fact, Input, Run, RunId, Stage, StepOutcome};
use crate::machine::tracked_event::TrackedEvent;
use crate::machine::{Setup, State};
use crate::notify::Notifier;
use crate::platform;
use crate::signals::{Readiness, StatusBoard};
use crate::systemd::{self, ServiceState};
use crate::{boot, fact_text, overview};

/// How long the journal rests after a write that failed, if nothing changes before.
const JOURNAL_REST: Duration = Duration::from_secs(5);
/// How many answers to approvals may wait to be taken in; each event has one under way at most.
const ANSWERS_MAX: usize = 64;
/// Outage that goes on is said aloud once in so many polls: about every ten minutes.
const FAILURE_LOGGED_EVERY: u32 = 60;
/// How often it is said at most that changes wait.
const WAITING_LOGGED_EVERY: Duration = Duration::from_secs(60);
/// How often at once, and then how often, approvals are sent before their time because the platform is back: no more often
/// in the long run than they are sent anyway.
const BACK_BURST: u32 = 8;
const BACK_EVERY: Duration = Duration::from_secs(15);
/// How long the platform may be silent before it is looked for anew, beside the polls that go on: an eviction gives half a
/// minute.
pub const REDISCOVER_AFTER: Duration = Duration::from_secs(30);

/// An agent that runs.
pub struct Agent {
    config: Config,
    sources: Sources,
    clock: Clock,
    board: StatusBoard,
    setup: Setup,
    state: State,
    /// When the machine wants to be told that time has passed.
    machine_due: Option<Duration>,
    journal: Option<Journal>,
    /// When a write that failed is tried again.
    journal_due: Option<Duration>,
    runner: Runner,
    /// Of each attempt that runs the rule, the stage, and when it began.
    begun: BTreeMap<RunId, (String, Stage, Duration)>,
    notifier: Notifier,
    /// The events whose approval was refused, as the administrator knows.
    refused: Vec<EventId>,
    peer: Peer,
    /// Since when nobody answers polls, if nobody does.
    silent_since: Option<Duration>,
    admission: Admission,
    /// The newest document, while some of its changes wait.
    waiting: Option<(Document, EventsVersion)>,
    /// Whether a document was read.
    has_read: bool,
    /// When it may be said again that changes wait.
    waiting_logged_at: Option<Duration>,
    /// How often approvals are sent because the platform is back.
    back: TokenBucket,
    /// Whether the platform has been silent, or not been there, since it last answered.
    awaiting_answer: bool,
    answers: mpsc::Sender<(EventId, ApprovalAnswer)>,
    /// How often systemd wants a sign of life, and when the next is due.
    watchdog: Option<(Duration, Duration)>,
    status: String,
}

/// With whom the agent talks.
enum Peer {
    /// The platform, once it is found; facts are for the log, the metrics and the administrator.
    Platform(Option<Client>),
    /// A rehearsal, which takes every approval, and is told these facts.
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
        };
        (agent, ends, answered)
    }

    /// An agent that rehearses by these rules. It has no journal.
    pub fn for_rehearsal(config: Config, clock: Clock) -> (Agent, mpsc::Receiver<Ended>, Answers) {
        let board = StatusBoard::new(clock, config.dry_run);
        let (agent, ends, answers) = Agent::new(config, Sources::default(), clock, board);
        (Agent { peer: Peer::Rehearsal(Vec::new()), ..agent }, ends, answers)
    }

    /// The facts since this was last asked, of a rehearsal.
    pub fn facts(&mut self) -> Vec<Fact> {
        match &mut self.peer {
            Peer::Rehearsal(facts) => std::mem::take(facts),
            Peer::Platform(_) => Vec::new(),
        }
    }

    /// The events that it knows of.
    pub fn events(&self) -> &[TrackedEvent] {
        self.state.events()
    }

    /// Takes up what an agent before this one has left.
    pub async fn begin(&mut self, opened: Option<(Journal, Found)>) {
        let Some((journal, found)) = opened else { return };
        self.journal = Some(journal);
        let before = match found {
            Found::State(before) => *before,
            Found::Nothing => self.state.clone(),
            Found::Corrupt { aside, why } => {
                let text = format!(
                    "the journal cannot be read ({why}); it is kept aside, and this agent begins anew: \
                     see to it that whatever was stopped before it runs again"
                );
                tracing::error!(aside = %aside.display(), "{text}");
                self.notify_problem(text, None);
                self.state.clone()
            }
            Found::AnotherVms { aside } => {
                tracing::warn!(
                    aside = %aside.display(),
                    "the journal is of another VM, of whose disk this one's is a copy; it is kept aside, and this agent \
                     begins anew"
                );
                self.state.clone()
            }
        };
        let now = self.clock.now();
        let (state, actions) = before.resume(&self.setup, boot::id(), now);
        self.apply_state(state, actions, now).await;
    }

    /// What the agent is set to do.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// A client of the platform, once that is found.
    pub fn client(&self) -> Option<Client> {
        match &self.peer {
            Peer::Platform(client) => client.clone(),
            Peer::Rehearsal(_) => None,
        }
    }

    /// The platform was found: from now on its documents come.
    pub fn follow(&mut self, client: &Client) {
        self.silent_since = None;
        self.peer = Peer::Platform(Some(client.clone()));
        self.board.found(client.endpoint().to_string());
        self.board.named(self.setup.me.name(), self.setup.sure);
    }

    /// The platform says what this VM is called. What is known of events is looked at with these eyes before anything else is
    /// done: an event of the name that it had may be another VM's.
    pub async fn set_identity(&mut self, me: Identity) {
        tracing::info!(vm = me.name(), "this VM goes by this name");
        self.board.named(me.name(), true);
        (self.setup.me, self.setup.sure) = (me, true);
        self.handle_input(Input::Named).await;
    }

    /// Ends what runs; the next agent goes on with it. What the administrator has yet to hear has a moment to be said.
    pub async fn stop(mut self) {
        tokio::join!(self.runner.stop_all(), self.notifier.finish());
    }

    /// Ends what runs, of a rehearsal.
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
                // A VM that stood still learns by this how late it is. Without events there is nothing to be late for.
                if let Some(served_at) = served_at.filter(|_| !self.state.events().is_empty()) {
                    self.handle_input(Input::Unchanged { served_at }).await;
                }
                self.on_platform_answer().await;
            }
            Update::Outage(Outage { kind, text, since: _, tries }) => {
                self.awaiting_answer = true;
                // Whoever answers is there, whatever the answer: it is not looked for elsewhere.
                match kind.is_silence() {
                    true => _ = self.silent_since.get_or_insert(self.clock.now().tick),
                    false => self.silent_since = None,
                }
                if tries % FAILURE_LOGGED_EVERY == 1 {
                    tracing::warn!(tries, "{text}; what was last read holds until there is an answer");
                }
                self.board.poll_failed(kind.as_str(), text);
            }
        }
    }

    /// Takes a document in, as much of it as the pace allows. One that changes nothing says no more than what time it is.
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
                    "the platform changes more than an agent takes in: these changes wait, this VM's own events first"
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

    /// The platform has answered. What could not be sent to it until now is sent; but a platform that fails every other
    /// poll is not sent everything at every other.
    async fn on_platform_answer(&mut self) {
        self.silent_since = None;
        let now = self.clock.now().tick;
        if std::mem::replace(&mut self.awaiting_answer, false) && self.back.take(now) {
            self.handle_input(Input::Back).await;
        }
    }

    /// Whether the platform has been silent for so long that it may be somewhere else by now. One that was set is not.
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

    /// Takes in what became of an approval. That it is refused is told once for each event, however often it is sent.
    pub async fn answered(&mut self, event: EventId, answer: ApprovalAnswer) {
        self.board.approved(&answer);
        let known = |id: &EventId| self.state.events().iter().any(|handled| handled.event.id == *id);
        self.refused.retain(known);
        if let ApprovalAnswer::Refused { reason } = &answer
            && known(&event)
            && !self.refused.contains(&event)
        {
            self.refused.push(event.clone());
            let text = format!("the platform refuses to take the approval: {reason}; it is sent again");
            self.notify_problem(text, Some(&event));
        }
        self.handle_input(Input::Answered { event, answer }).await;
    }

    /// Tells the administrator what no fact says.
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

    /// Tells the machine something, and does what it says.
    async fn handle_input(&mut self, input: Input) {
        let state = std::mem::replace(&mut self.state, State::new(None));
        let now = self.clock.now();
        let (state, actions) = state.handle(&self.setup, input, now);
        self.apply_state(state, actions, now).await;
    }

    /// Takes the machine's word, of that moment. The state is on disk before anything is done about it.
    async fn apply_state(&mut self, state: State, actions: Vec<Action>, now: Moment) {
        // Asked for now: what falls due while the state is being saved must not be passed over.
        self.machine_due = state.next_due(&self.setup, now);
        self.state = state;
        self.board.handles(overview::of(&self.state));
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
    }

    fn report(&mut self, fact: Fact) {
        match &mut self.peer {
            Peer::Rehearsal(facts) => facts.push(fact),
            Peer::Platform(_) => {
                fact_text::log(&fact, self.config.dry_run);
                self.board.count(&fact);
                if let Some(to) = &self.config.notify {
                    self.notifier.send_fact(to, &fact, self.setup.me.name(), self.config.dry_run);
                }
            }
        }
    }

    async fn save(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        match journal.save(&self.state).await {
            Ok(()) => {
                if self.journal_due.take().is_some() {
                    tracing::info!("the journal is on disk again");
                    self.board.journal(None);
                }
            }
            Err(error) => {
                if self.journal_due.is_none() {
                    let text = format!(
                        "{error}; the agent goes on without its journal, and would forget everything if it ended now"
                    );
                    tracing::error!("{text}");
                    self.notify_problem(text, None);
                }
                self.journal_due = Some(self.clock.now().tick.saturating_add(JOURNAL_REST));
                self.board.journal(Some(error.to_string()));
            }
        }
    }

    /// Approves in the background; the answer comes back to the loop.
    fn approve(&self, event: EventId) {
        let (answers, client) = (self.answers.clone(), self.client());
        let pretends = self.config.dry_run || matches!(self.peer, Peer::Rehearsal(_));
        tokio::spawn(async move {
            let answer = match client {
                _ if pretends => ApprovalAnswer::Accepted,
                None => ApprovalAnswer::Failed { reason: "the platform is not found yet".to_owned() },
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

    /// When something is to be done although nothing happens.
    pub fn due(&self) -> Option<Duration> {
        [self.machine_due, self.journal_due, self.watchdog.map(|(_, due)| due)].into_iter().flatten().min()
    }

    pub async fn run_due(&mut self) {
        let now = self.clock.now();
        if let Some((every, due)) = self.watchdog.filter(|(_, due)| *due <= now.tick) {
            systemd::notify(ServiceState::Alive);
            self.watchdog = Some((every, due.max(now.tick).saturating_add(every)));
        }
        if self.machine_due.is_some_and(|due| due <= now.tick) {
            self.handle_input(Input::Tick).await;
        } else if self.journal_due.is_some_and(|due| due <= now.tick) {
            self.save().await;
        }
    }

    /// Reads the file anew. Rules and the administrator's webhook are for what comes; the rest takes a restart.
    pub async fn reload(&mut self) {
        systemd::notify(ServiceState::Reloading);
        match config::load(&self.sources) {
            Ok(config) => {
                let rest = |config: &Config| Config { rules: Vec::new(), notify: None, ..config.clone() };
                if rest(&config) != rest(&self.config) {
                    tracing::warn!(
                        "settings other than rules and notify have changed; they take a restart of the agent"
                    );
                }
                tracing::info!(rules = config.rules.len(), "rules are read anew, for events to come");
                self.setup.rules.clone_from(&config.rules);
                self.config.rules = config.rules;
                self.config.notify = config.notify;
                self.board.config(None);
                // An event that no rule was for may have one now, and what has failed may not fail again.
                self.handle_input(Input::Retry).await;
            }
            Err(mistakes) => {
                tracing::error!("{mistakes}; the rules stay as they were");
                // Whoever can ask need not be who may read the configuration.
                self.board.config(Some(mistakes.count()));
            }
        }
        systemd::notify(ServiceState::Ready);
    }

    /// Keeps systemd's status line true.
    pub fn update_status(&mut self) {
        let vm = self.setup.me.name();
        let status = match (self.board.ready(), self.board.in_service()) {
            (Readiness::No(why), _) => format!("{vm}: {why}"),
            (Readiness::Yes(_), Readiness::No(draining)) => format!("{vm}: {draining}"),
            (Readiness::Yes(_), Readiness::Yes(in_service)) => format!("{vm}: {in_service}"),
        };
        if status != self.status {
            systemd::notify(ServiceState::Status(&status));
            self.status = status;
        }
    }
}

/// How long an attempt may take that begins now: the disk may have been slow since the machine decided on it, and NotBefore
/// does not wait. A step's own timeout begins with it.
fn remaining_budget(run: &Run, now: Duration) -> Duration {
    run.until.map_or(run.budget, |until| run.budget.min(until.saturating_sub(now)))
}

#[cfg(test)]
mod tests;
