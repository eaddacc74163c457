//! A rehearsal in a Rust test: the test moves the clock, runs its own handler code in the same process, and gets the
//! verdict of the judge. Nothing sleeps, so fifteen minutes of notice take milliseconds.
//!
//! ```
//! # use std::time::Duration;
//! # use notbefore_client::client::{Client, Options};
//! # use notbefore_rehearse::by_hand::Rehearsal;
//! # use notbefore_rehearse::recording::{Marker, State};
//! # use notbefore_rehearse::scenario::Expectation;
//! # async fn my_handler(endpoint: &str, drained: impl Fn()) {
//! #     let client = Client::new(endpoint.parse().unwrap(), Options::default());
//! #     for event in client.get().await.unwrap().document.events {
//! #         drained();
//! #         client.approve(&event.id).await.unwrap();
//! #     }
//! # }
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! let mut rehearsal = Rehearsal::start(["web-0"]).await?;
//! rehearsal.schedule("restart", "user-restart", &["web-0"], Duration::from_secs(900)).await?;
//! // An async fn of your own: it polls, drains, and approves. It may as well run as a task.
//! let reporter = rehearsal.reporter("web-0");
//! my_handler(rehearsal.endpoint("web-0"), || reporter.report(Marker::Drained)).await;
//! rehearsal.wait_for("restart", State::Started).await?;
//! rehearsal.advance(Duration::from_secs(600)).await?;
//! rehearsal.complete("restart").await?;
//! let report = rehearsal.judge([Expectation::drains("restart"), Expectation::approves("restart")]).await?;
//! report.assert_passed();
//! # Ok::<(), notbefore_rehearse::stage::StageError>(()) }).unwrap();
//! ```
//!
//! Times of the recording are those of the clock by hand. Each thing that happens is a microsecond later than the one
//! before, so that its order is known while the clock stands still.

use std::time::Duration;

use notbefore_wire::operator::{Cause, ScopeKind};
use tokio::sync::mpsc;

use crate::handler::{HandlerEvent, News};
use crate::judge::judge;
use crate::pace::Pace;
use crate::platform::{Elapsed, Platform, PlatformError, Time};
use crate::player::base_name;
use crate::recording::{Marker, State, What};
use crate::report::Report;
use crate::scenario::{Action, Announcement, Expectation, POLLS_EVERY, Scenario, Step, Vm, When};
use crate::stage::{Options, Stage, StageError};

/// How long [`Rehearsal::wait_for`] waits for the handler, in real time.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);
/// How long the judge waits for a restored VM, by the clock by hand.
const RESTS: Duration = Duration::from_secs(600);

/// A rehearsal whose clock the test moves.
pub struct Rehearsal {
    stage: Stage,
    scenario: Scenario,
    moved_by: Duration,
    /// Longest allowed gap between two polls, by the clock by hand. None: a handler cannot poll while the clock moves,
    /// so all moves are allowed in one gap.
    pub polls_every: Option<Duration>,
}

/// Reports what the handler of one VM has done to it. It can be cloned and sent to tasks.
#[derive(Clone)]
pub struct Reporter {
    vm: String,
    elapsed: Elapsed,
    news: mpsc::UnboundedSender<News>,
}

impl Reporter {
    pub fn report(&self, marker: Marker) {
        let what = HandlerEvent::Marker(marker);
        // Fails if the rehearsal is over.
        let _ = self.news.send(News { vm: self.vm.clone(), at: self.elapsed.elapsed(), what });
    }
}

impl Rehearsal {
    /// Starts the platform with VMs of these names in one availability set, and a clock that stands still.
    pub async fn start<'a>(vms: impl IntoIterator<Item = &'a str>) -> Result<Self, StageError> {
        let vm = |name: &str| Vm {
            name: name.to_owned(),
            update_domain: 0,
            is_spot: false,
            has_handler: true,
            is_polled: false,
        };
        Self::of(vms.into_iter().map(vm).collect(), ScopeKind::AvailabilitySet).await
    }

    /// The same with VMs of other kinds; those without a handler are not judged.
    pub async fn of(vms: Vec<Vm>, kind: ScopeKind) -> Result<Self, StageError> {
        let scenario = Scenario {
            name: "by-hand".to_owned(),
            summary: "A rehearsal in a Rust test".to_owned(),
            kind,
            vms,
            steps: Vec::new(),
            expectations: Vec::new(),
            polls_every: POLLS_EVERY,
            keeps_running: true,
            rests: RESTS,
            serves_advice: true,
            time_zone: None,
        };
        let options = Options {
            pace: Pace { compress: 1.0, floor: Duration::ZERO },
            polls_every: None,
            handler: None,
            uses_namespaces: false,
            watcher: None,
        };
        let mut stage = Stage::set(scenario.clone(), options, Time::ByHand).await?;
        stage.recording.markers = Marker::ALL.to_vec();
        Ok(Self { stage, scenario, moved_by: Duration::ZERO, polls_every: None })
    }

    /// The base URL for a VM's guest, as in `NOTBEFORE_ENDPOINT`; empty for an unknown VM.
    pub fn endpoint(&self, vm: &str) -> &str {
        self.stage.platform.endpoint(vm).unwrap_or_default()
    }

    /// For the handler of a VM.
    pub fn reporter(&self, vm: &str) -> Reporter {
        let (elapsed, news) = (self.stage.platform.elapsed(), self.stage.news_sender.clone());
        Reporter { vm: vm.to_owned(), elapsed, news }
    }

    /// The platform, for its time and its events.
    pub fn platform(&self) -> &Platform {
        &self.stage.platform
    }

    /// Announces an event under a name, with a cause of [`Cause::ALL`] and this notice. An approval starts it, or
    /// [`advance`](Self::advance) to NotBefore; [`complete`](Self::complete) ends it.
    pub async fn schedule(
        &mut self,
        event: &str,
        cause: &str,
        vms: &[&str],
        notice: Duration,
    ) -> Result<(), StageError> {
        let known = Cause::ALL.iter().find(|known| known.as_str() == cause);
        let cause = known.ok_or_else(|| PlatformError::UnknownCause(cause.to_owned()))?.clone();
        self.perform(Action::Schedule(Announcement {
            event: event.to_owned(),
            cause,
            vms: vms.iter().map(|vm| (*vm).to_owned()).collect(),
            notice: Some(notice),
            runs: None,
            duration_seconds: None,
            description: None,
        }))
        .await
    }

    pub async fn cancel(&mut self, event: &str) -> Result<(), StageError> {
        self.perform(Action::Cancel(event.to_owned())).await
    }

    /// Ends a started event.
    pub async fn complete(&mut self, event: &str) -> Result<(), StageError> {
        self.perform(Action::Complete(event.to_owned())).await
    }

    /// Moves the clock, and returns when everything that is due has happened.
    pub async fn advance(&mut self, by: Duration) -> Result<(), StageError> {
        self.perform(Action::AdvanceClock(by)).await
    }

    /// Carries out an action of a scenario. What the platform refuses is a finding of the verdict.
    pub async fn perform(&mut self, action: Action) -> Result<(), StageError> {
        self.catch_up().await?;
        match &action {
            Action::Schedule(one) if self.has_event(&one.event) => {
                let why = "an event of this name exists; give each event its own".to_owned();
                return Err(StageError::Step { step: format!("schedule {}", one.event), why });
            }
            Action::Approve(event)
            | Action::Start(event)
            | Action::Complete(event)
            | Action::Cancel(event)
                if !self.has_event(event) =>
            {
                let step = crate::player::describe(&action);
                return Err(StageError::Step { step, why: format!("there is no event {event}") });
            }
            Action::AdvanceClock(by) => self.moved_by += *by,
            Action::Schedule(_)
            | Action::Approve(_)
            | Action::Start(_)
            | Action::Complete(_)
            | Action::Cancel(_)
            | Action::AddFault(_)
            | Action::ClearFaults
            | Action::StopHandlers
            | Action::StartHandlers => {}
        }
        self.stage.perform(&action).await?;
        self.scenario.steps.push(Step { when: When::At(self.moved_by), action });
        self.catch_up().await
    }

    /// Waits until something has happened to an event: a handler that runs as a task has read or approved it.
    pub async fn wait_for(&mut self, event: &str, state: State) -> Result<(), StageError> {
        let waiting = async {
            loop {
                self.catch_up().await?;
                if self.has_been(event, state) {
                    return Ok(());
                }
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
        };
        let unreached = |_| StageError::Unreached { event: event.to_owned(), state, limit: PATIENCE };
        tokio::time::timeout(PATIENCE, waiting).await.map_err(unreached)?
    }

    /// Stops the platform and judges what has happened, with what always holds and these expectations. End a handler
    /// that runs as a task before.
    pub async fn judge(
        mut self,
        expectations: impl IntoIterator<Item = Expectation>,
    ) -> Result<Report, StageError> {
        self.catch_up().await?;
        self.scenario.polls_every = self.polls_every.unwrap_or(POLLS_EVERY + self.moved_by);
        self.scenario.expectations = expectations.into_iter().collect();
        // Then every request is recorded.
        self.stage.platform.close().await;
        let (_, recording) = self.stage.strike().await;
        let verdict = judge(&self.scenario, &recording);
        Ok(Report::new(recording, verdict))
    }

    /// Records what has happened.
    async fn catch_up(&mut self) -> Result<(), StageError> {
        self.stage.take_all();
        self.stage.look_again().await
    }

    fn has_event(&self, event: &str) -> bool {
        self.stage.recording.events.keys().any(|name| base_name(name) == event)
    }

    fn has_been(&self, event: &str, state: State) -> bool {
        let recording = &self.stage.recording;
        let mut events = recording.events.keys().filter(|name| base_name(name) == event);
        let has_been = |name: &String| {
            let what = What::Event { event: name.clone(), state };
            recording.entries.iter().any(|entry| entry.what == what)
        };
        self.has_event(event) && events.all(has_been)
    }
}
