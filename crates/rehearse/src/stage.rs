//! The stage: carries out what the player decides, on a real service with real handlers, and records what happens.
//!
//! One loop per rehearsal. It waits for a request, for news of a handler, or for the next deed, looks at the events of
//! the service, and asks the player what is due.

use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use notbefore_service::guest::interception::RecordedRequest;
use notbefore_wire::guest::start_requests;
use notbefore_wire::operator::{Event, EventStatus, EventVerb, FaultKind, ScheduleEvents};
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use crate::crowd::Crowd;
use crate::directory::Directory;
use crate::handler::{HandledVm, Handler, HandlerError, HandlerEvent, HandlerSpec, News, Observation};
use crate::judge::judge;
use crate::namespace::{Namespace, NamespaceError};
use crate::operator::OperatorError;
use crate::pace::{Notice, Pace};
use crate::platform::{Elapsed, Platform, PlatformError, PlatformSpec, PlatformVm, Time};
use crate::player::{Deed, Player, Standstill, base_name, describe};
use crate::recording::{
    ENTRIES_MAX, Entry, Marker, RecordedEvent, Recording, RefusedStep, Request, State, Unread, What,
};
use crate::scenario::{Action, Announcement, Expectation, Scenario, Vm};
use crate::verdict::Verdict;

/// Longest time between two looks at the service's events.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How long a handler may take to its first request, beside the delays of faults: a runtime such as Java's starts slowly
/// on a busy machine.
pub const FIRST_REQUEST_MAX: Duration = Duration::from_secs(60);
/// Spare time of a rehearsal beyond its own waits, for a busy machine and slow handlers.
const SPARE: Duration = Duration::from_secs(300);
/// The port and the address of the real endpoint.
const REAL_ENDPOINT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)), 80);

/// Why a rehearsal could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    #[error(transparent)]
    Platform(#[from] PlatformError),
    #[error(transparent)]
    Handler(#[from] HandlerError),
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    #[error("step '{step}' was refused: {why}")]
    Step { step: String, why: String },
    #[error("cannot listen at {REAL_ENDPOINT} in the namespace of {vm}: {error}")]
    Listen { vm: String, error: std::io::Error },
    #[error("cannot create a directory for the handler: {0}; see if TMPDIR is writable and has space")]
    State(std::io::Error),
    #[error("the scenario cannot go on: {0}")]
    Standstill(String),
    #[error("the rehearsal did not end within {} s; it waits for {waits_for}", .limit.as_secs())]
    Stuck { limit: Duration, waits_for: String },
    #[error(
        "more than {ENTRIES_MAX} requests, lines and markers were recorded, too many to judge; let the handler poll and print less often"
    )]
    TooMuch,
    #[error("the rehearsal has a bug: {0}; report it with this message")]
    Panicked(String),
    #[error("event {event} was not {} within {} s", .state.as_str(), .limit.as_secs())]
    Unreached { event: String, state: State, limit: Duration },
    #[error("interrupted")]
    Interrupted,
}

/// How to rehearse.
#[derive(Clone)]
pub struct Options {
    pub pace: Pace,
    /// Longest gap between polls, instead of the scenario's.
    pub polls_every: Option<Duration>,
    /// The handler; without one, the rehearsal waits for requests.
    pub handler: Option<HandlerSpec>,
    /// Whether each handler runs in a network namespace that owns 169.254.169.254.
    pub uses_namespaces: bool,
    /// Called for everything that is recorded, while it happens.
    pub watcher: Option<Watcher>,
}

/// A function that sees what is recorded.
pub type Watcher = Arc<dyn Fn(&StageNews) + Send + Sync>;

/// What a watcher sees.
pub enum StageNews {
    /// The service answers: base URLs by VM.
    Ready(Vec<(String, String)>),
    Entry(Entry),
}

/// Plays a scenario and judges the handler. A true `stop` ends it early, without a verdict.
pub async fn rehearse(
    mut scenario: Scenario,
    options: Options,
    mut stop: watch::Receiver<bool>,
) -> Result<(Recording, Verdict), StageError> {
    if let Some(polls_every) = options.polls_every {
        scenario.polls_every = polls_every;
    }
    let mut stage = Stage::set(scenario, options, Time::Running).await?;
    let played = tokio::select! {
        played = stage.play() => played,
        // A dropped sender never stops it.
        () = async { if stop.wait_for(|stop| *stop).await.is_err() { std::future::pending().await } } => {
            Err(StageError::Interrupted)
        }
    };
    let recording = stage.strike().await;
    played?;
    let (scenario, recording) = recording;
    let verdict = judge(&scenario, &recording);
    Ok((recording, verdict))
}

pub(crate) struct Stage {
    pub(crate) platform: Platform,
    time: Time,
    requests: mpsc::UnboundedReceiver<RecordedRequest>,
    namespaces: BTreeMap<String, Namespace>,
    /// Directories of the handlers, by VM. They outlive a handler that is stopped and started.
    states: BTreeMap<String, Directory>,
    player: Player,
    pace: Pace,
    options: Options,
    elapsed: Elapsed,
    pub(crate) recording: Recording,
    handlers: BTreeMap<String, Handler>,
    /// Of the running handlers, for requests that arrive.
    observations: Arc<Mutex<BTreeMap<String, Observation>>>,
    pub(crate) news_sender: mpsc::UnboundedSender<News>,
    news: mpsc::UnboundedReceiver<News>,
    /// VMs whose handler was answered.
    answered: BTreeSet<String>,
    /// VMs whose handler ended by itself, with the time.
    ended: BTreeMap<String, Duration>,
    crowd: Option<Crowd>,
    looked_at: Duration,
}

impl Stage {
    /// Starts the service, carries out the steps before the handlers, and starts these.
    pub(crate) async fn set(scenario: Scenario, options: Options, time: Time) -> Result<Self, StageError> {
        let observations = Arc::<Mutex<BTreeMap<String, Observation>>>::default();
        let (mut vms, mut namespaces) = (Vec::new(), BTreeMap::new());
        for (index, vm) in scenario.vms.iter().enumerate() {
            let mut socket = None;
            if options.uses_namespaces && vm.has_handler {
                let namespace = Namespace::create()?;
                let listener = namespace.bind(REAL_ENDPOINT);
                let listener = listener.map_err(|error| StageError::Listen { vm: vm.name.clone(), error })?;
                socket = Some(Arc::<TcpListener>::new(listener));
                namespaces.insert(vm.name.clone(), namespace);
            }
            vms.push(PlatformVm {
                name: vm.name.clone(),
                update_domain: vm.update_domain,
                is_spot: vm.is_spot,
                socket,
                addresses: if vm.is_polled { vec![Crowd::address(index).to_string()] } else { Vec::new() },
            });
        }
        let spec = PlatformSpec {
            vms,
            kind: scenario.kind.clone(),
            time,
            serves_advice: scenario.serves_advice,
            arrival_hook: Some(Arc::new({
                let observations = Arc::clone(&observations);
                move |vm| {
                    if let Some(observation) = lock(&observations).get(vm) {
                        observation.observe();
                    }
                }
            })),
        };
        let keeper = options.handler.as_ref().and_then(|handler| handler.keeper.as_ref());
        let platform = Platform::start_kept(spec, keeper).await?;
        let requests = platform.take_requests().ok_or(PlatformError::Ended)?;
        let (news_sender, news) = mpsc::unbounded_channel();
        let pace = options.pace;
        let known = options.handler.as_ref().map(|handler| handler.markers.keys().copied().collect());
        let recording = Recording {
            scenario: scenario.name.clone(),
            summary: scenario.summary.clone(),
            pace,
            handled_vms: scenario.handled_vms().map(|vm| vm.name.clone()).collect(),
            events: BTreeMap::new(),
            entries: Vec::new(),
            ended_at: Duration::ZERO,
            markers: known.unwrap_or_default(),
            crowd: None,
            unread: None,
            refused_steps: Vec::new(),
            is_by_hand: matches!(time, Time::ByHand),
        };
        let mut stage = Self {
            requests,
            namespaces,
            states: BTreeMap::new(),
            player: Player::new(scenario, pace),
            pace,
            elapsed: platform.elapsed(),
            recording,
            observations,
            handlers: BTreeMap::new(),
            news_sender,
            news,
            answered: BTreeSet::new(),
            ended: BTreeMap::new(),
            crowd: None,
            looked_at: Duration::ZERO,
            options,
            platform,
            time,
        };
        let scenario = stage.player.scenario().clone();
        for step in scenario.setup() {
            stage.perform(&step.action).await?;
        }
        if let Some(watcher) = &stage.options.watcher {
            let endpoint = |vm: &Vm| Some((vm.name.clone(), stage.platform.endpoint(&vm.name)?.to_owned()));
            watcher(&StageNews::Ready(scenario.handled_vms().filter_map(endpoint).collect()));
        }
        let polled = scenario.vms.iter().enumerate().filter(|(_, vm)| vm.is_polled);
        let polled: Vec<_> = polled.map(|(index, _)| Crowd::address(index)).collect();
        if let Some(address) = stage.platform.guest_address().filter(|_| !polled.is_empty()) {
            stage.crowd = Some(Crowd::start(address, polled));
        }
        stage.start_handlers()?;
        Ok(stage)
    }

    /// Plays until the player is finished.
    async fn play(&mut self) -> Result<(), StageError> {
        let limit = self.player.longest() + SPARE;
        if self.recording.handled_vms.is_empty() {
            self.player.begin(self.elapsed.elapsed());
        }
        loop {
            self.look(self.elapsed.elapsed()).await?;
            for deed in self.player.due(self.elapsed.elapsed()) {
                if deed == Deed::Finish {
                    return Ok(());
                }
                self.carry_out(deed).await?;
            }
            if self.recording.entries.len() >= ENTRIES_MAX {
                return Err(StageError::TooMuch);
            }
            let now = self.elapsed.elapsed();
            if self.is_over(now) {
                return Ok(());
            }
            match self.player.standstill(now, self.has_handlers()) {
                None => {}
                Some(Standstill::Unread { step, event }) => {
                    let waits = describe(&self.player.scenario().steps[step].action);
                    self.record(
                        None,
                        What::Step {
                            text: format!("end: step {} ({waits}) waits until {event} is read", step + 1),
                        },
                    );
                    self.recording.unread = Some(Unread { event, step: step + 1, action: waits });
                    return Ok(());
                }
                Some(Standstill::Impossible(why)) => return Err(StageError::Standstill(why)),
            }
            // A person may take any time to point a handler at the rehearsal.
            if now > limit && (self.player.has_begun() || self.options.handler.is_some()) {
                return Err(StageError::Stuck { limit, waits_for: self.player.waits_for() });
            }
            let due = self.player.next_due().map(|due| due.saturating_sub(now));
            let wait = due.unwrap_or(LOOK_INTERVAL).min(LOOK_INTERVAL);
            tokio::select! {
                Some(request) = self.requests.recv() => self.take_request(request),
                Some(news) = self.news.recv() => self.take_news(news),
                () = tokio::time::sleep(wait) => {}
            }
            self.take_all();
        }
    }

    /// Records the requests and the news that are there.
    pub(crate) fn take_all(&mut self) {
        while let Ok(request) = self.requests.try_recv() {
            self.take_request(request);
        }
        while let Ok(news) = self.news.try_recv() {
            self.take_news(news);
        }
    }

    /// Whether a handler runs, or may call from elsewhere.
    fn has_handlers(&self) -> bool {
        match &self.options.handler {
            None => true,
            Some(handler) => {
                handler.repeat.is_some() && !self.handlers.is_empty()
                    || self.handlers.keys().any(|vm| !self.ended.contains_key(vm))
            }
        }
    }

    /// Whether nothing more can come: no handler has called in time, or all have ended by themselves.
    fn is_over(&self, now: Duration) -> bool {
        let Some(handler) = &self.options.handler else { return false };
        let faults = self.player.scenario().setup();
        let late = faults.filter_map(|step| {
            let Action::AddFault(fault) = &step.action else { return None };
            let is_late = fault.kind == FaultKind::LateFirstAnswer;
            is_late.then(|| fault.seconds.unwrap_or(notbefore_wire::operator::faults::LATE_S))
        });
        let late =
            Duration::from_secs(late.max().and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0));
        if !self.player.has_begun() && now > FIRST_REQUEST_MAX + late {
            return true;
        }
        let vms = &self.recording.handled_vms;
        let all_ended = !vms.is_empty() && vms.iter().all(|vm| self.ended.contains_key(vm));
        let last = self.ended.values().max().copied().unwrap_or_default();
        all_ended && handler.repeat.is_none() && now > last + self.pace.floor.min(Duration::from_secs(5))
    }

    /// Stops the handlers and the service, and completes the recording.
    pub(crate) async fn strike(mut self) -> (Scenario, Recording) {
        let ended_at = self.elapsed.elapsed();
        self.take_all();
        for handler in self.handlers.values_mut() {
            handler.stop().await;
        }
        self.recording.ended_at = ended_at;
        self.recording.crowd = self.crowd.take().map(Crowd::stop);
        self.recording.entries.retain(|entry| entry.at <= ended_at);
        self.recording.entries.sort_by_key(|entry| entry.at);
        self.platform.close().await;
        (self.player.scenario().clone(), self.recording)
    }

    fn start_handlers(&mut self) -> Result<(), StageError> {
        let Some(spec) = &self.options.handler else { return Ok(()) };
        let time_zone = self.player.scenario().time_zone.as_deref();
        for vm in self.recording.handled_vms.clone() {
            let endpoint = self.platform.endpoint(&vm).unwrap_or_default().to_owned();
            let state = match self.states.entry(vm.clone()) {
                Slot::Occupied(known) => known.into_mut(),
                Slot::Vacant(new) => {
                    let created = Directory::create("notbefore-state-", spec.keeper.as_ref());
                    new.insert(created.map_err(StageError::State)?)
                }
            };
            let namespace = self.namespaces.get(&vm);
            let place =
                HandledVm { name: &vm, endpoint: &endpoint, state: state.path(), namespace, time_zone };
            let handler = Handler::start(spec, place, self.elapsed.stopwatch, self.news_sender.clone())?;
            lock(&self.observations).insert(vm.clone(), handler.observation());
            self.handlers.insert(vm.clone(), handler);
            self.ended.remove(&vm);
        }
        Ok(())
    }

    async fn stop_handler(&mut self, vm: &str, is_gone: bool) {
        let Some(mut handler) = self.handlers.remove(vm) else { return };
        lock(&self.observations).remove(vm);
        self.record(Some(vm), What::HandlerStopped);
        if is_gone {
            handler.kill().await;
        } else {
            handler.stop().await;
        }
    }

    async fn carry_out(&mut self, deed: Deed) -> Result<(), StageError> {
        match deed {
            Deed::Step(index) => {
                let action = self.player.scenario().steps[index].action.clone();
                self.perform(&action).await
            }
            Deed::Complete { event } => {
                let announcement = self.player.scenario().announcement(base_name(&event));
                let is_last = announcement.is_some_and(Announcement::ends_vm);
                let Some(recorded) = self.recording.events.get(&event).cloned() else { return Ok(()) };
                if is_last {
                    for vm in &recorded.resources {
                        self.stop_handler(vm, true).await;
                    }
                }
                self.act(&event, &EventVerb::Complete, &format!("end {event}")).await.map(|_| ())
            }
            Deed::MoveToNotBefore { event } => {
                let Some(id) = self.recording.events.get(&event).map(|event| event.id) else { return Ok(()) };
                let live = self.platform.events().await?;
                let not_before = live.iter().find(|live| live.id == id).and_then(|live| live.not_before);
                let by = not_before.map(|at| at.duration_since(self.platform.now()));
                if let Some(Ok(by)) = by.map(Duration::try_from) {
                    self.record(None, What::Step { text: format!("the time of {event} has come") });
                    self.platform.advance_unseen(by + Duration::from_secs(1)).await?;
                }
                Ok(())
            }
            Deed::Finish => Ok(()),
        }
    }

    pub(crate) async fn perform(&mut self, action: &Action) -> Result<(), StageError> {
        let text = describe(action);
        match action {
            Action::Schedule(announcement) => {
                self.record(None, What::Step { text });
                self.announce(announcement).await
            }
            Action::Approve(event) => self.act_all(event, &EventVerb::Approve, &text).await,
            Action::Start(event) => self.act_all(event, &EventVerb::Start, &text).await,
            Action::Complete(event) => self.act_all(event, &EventVerb::Complete, &text).await,
            Action::Cancel(event) => self.act_all(event, &EventVerb::Cancel, &text).await,
            Action::AddFault(fault) => {
                self.record(None, What::Step { text });
                self.platform.add_fault(fault.clone())?;
                Ok(())
            }
            Action::ClearFaults => {
                self.record(None, What::Step { text });
                Ok(self.platform.clear_faults()?)
            }
            Action::AdvanceClock(by) => {
                self.record(None, What::Step { text });
                match self.time {
                    Time::Running => self.platform.advance_unseen(*by).await?,
                    // Guests have no clock of their own.
                    Time::ByHand => self.platform.advance(*by).await,
                }
                Ok(())
            }
            Action::StopHandlers => {
                self.record(None, What::Step { text });
                for vm in self.recording.handled_vms.clone() {
                    self.stop_handler(&vm, false).await;
                }
                Ok(())
            }
            Action::StartHandlers => {
                self.record(None, What::Step { text });
                self.start_handlers()
            }
        }
    }

    async fn announce(&mut self, announcement: &Announcement) -> Result<(), StageError> {
        let notice = announcement.notice.map(|natural| match self.time {
            Time::Running => self.pace.notice(natural),
            Time::ByHand => Notice { shown: natural, wait: natural },
        });
        let not_before = notice.and_then(|notice| self.platform.now().checked_add(notice.shown).ok());
        let request = ScheduleEvents {
            cause: Some(announcement.cause.clone()),
            vms: announcement.vms.iter().map(|vm| Platform::vm_path(vm)).collect(),
            not_before,
            description: announcement.description.clone(),
            duration_seconds: announcement.duration_seconds,
            force: true,
            ..ScheduleEvents::default()
        };
        let refused = |why| StageError::Step { step: format!("schedule {}", announcement.event), why };
        // A guest may see the event before this request is answered.
        let begun = self.elapsed.elapsed();
        let events = self.platform.announce(&request).await.map_err(|error| refused(error.to_string()))?;
        if events.is_empty() {
            return Err(refused("no event was announced; its VM may be gone".to_owned()));
        }
        let count = events.len();
        for (index, event) in events.into_iter().enumerate() {
            let name = match count {
                1 => announcement.event.clone(),
                _ => format!("{}#{}", announcement.event, index + 1),
            };
            let wait = notice.filter(|_| !announcement.is_advice());
            let recorded = RecordedEvent {
                id: event.id,
                event_type: event.event_type.clone(),
                resources: event.resources.iter().map(|resource| resource.name.clone()).collect(),
                scheduled_at: begun,
                not_before: wait.map(|notice| begun + notice.wait),
                approved_at: None,
                started_at: None,
                gone_at: None,
                is_cancelled: false,
            };
            self.recording.events.insert(name.clone(), recorded);
            self.enter(begun, &name, State::Scheduled);
        }
        self.looked_at = Duration::ZERO;
        // An event without notice may have been seen Started before this answer. Another one starts later, after its
        // approval: on a busy machine, a quick handler has approved already.
        let at = if announcement.notice.is_none() { begun } else { self.elapsed.elapsed() };
        self.look(at).await
    }

    /// Compares the recorded events with those of the service, now.
    pub(crate) async fn look_again(&mut self) -> Result<(), StageError> {
        self.looked_at = Duration::ZERO;
        self.look(self.elapsed.elapsed()).await
    }

    /// Does something with all events of an operation.
    async fn act_all(&mut self, base: &str, verb: &EventVerb, text: &str) -> Result<(), StageError> {
        let names: Vec<String> =
            self.recording.events.keys().filter(|name| base_name(name) == base).cloned().collect();
        if names.is_empty() {
            self.record(None, What::Step { text: format!("{text}: nothing to do, it is not announced yet") });
        }
        for name in names {
            if let Some(why) = self.act(&name, verb, text).await? {
                self.recording.refused_steps.push(RefusedStep { step: text.to_owned(), why });
            }
        }
        Ok(())
    }

    /// Does something with an event. Returns why the platform refused it, if it did: the handler may have been faster.
    async fn act(&mut self, name: &str, verb: &EventVerb, text: &str) -> Result<Option<String>, StageError> {
        let Some(id) = self.recording.events.get(name).map(|event| event.id) else { return Ok(None) };
        // A guest may see the effect before this request is answered.
        let begun = self.elapsed.elapsed();
        let refused = match self.platform.act(id, verb).await {
            Ok(_) => {
                self.record(None, What::Step { text: text.to_owned() });
                if *verb == EventVerb::Cancel
                    && let Some(event) = self.recording.events.get_mut(name)
                {
                    event.is_cancelled = true;
                }
                None
            }
            Err(PlatformError::Operator(OperatorError::Refused(why))) => {
                self.record(None, What::Step { text: format!("{text}: refused, {why}") });
                Some(why)
            }
            Err(error) => return Err(error.into()),
        };
        self.looked_at = Duration::ZERO;
        self.look(begun).await?;
        Ok(refused)
    }

    /// Compares the recorded events with those of the service. What is new counts from `at` on.
    async fn look(&mut self, at: Duration) -> Result<(), StageError> {
        let now = self.elapsed.elapsed();
        let is_live = self.recording.events.values().any(|event| event.gone_at.is_none());
        if !is_live || now.saturating_sub(self.looked_at) < LOOK_INTERVAL && !self.looked_at.is_zero() {
            return Ok(());
        }
        self.looked_at = now;
        let live = self.platform.events().await?;
        let open = self.recording.events.iter().filter(|(_, event)| event.gone_at.is_none());
        let open: Vec<(String, Uuid)> = open.map(|(name, event)| (name.clone(), event.id)).collect();
        for (name, id) in open {
            for state in states(live.iter().find(|live| live.id == id)) {
                self.enter(at, &name, *state);
            }
        }
        Ok(())
    }

    /// Records a state of an event, once.
    fn enter(&mut self, at: Duration, name: &str, state: State) {
        let Some(event) = self.recording.events.get_mut(name) else { return };
        let slot = match state {
            State::Scheduled | State::Read => None,
            State::Approved => Some(&mut event.approved_at),
            State::Started => Some(&mut event.started_at),
            State::Gone => Some(&mut event.gone_at),
        };
        if let Some(slot) = slot {
            if slot.is_some() {
                return;
            }
            *slot = Some(at);
        }
        self.player.observe(at, name, state);
        self.record_at(at, None, What::Event { event: name.to_owned(), state });
    }

    fn record(&mut self, vm: Option<&str>, what: What) {
        self.record_at(self.elapsed.elapsed(), vm, what);
    }

    fn record_at(&mut self, at: Duration, vm: Option<&str>, what: What) {
        let entry = Entry { at, vm: vm.map(str::to_owned), what };
        if let Some(watcher) = &self.options.watcher {
            watcher(&StageNews::Entry(entry.clone()));
        }
        if self.recording.entries.len() < ENTRIES_MAX {
            self.recording.entries.push(entry);
        }
    }

    fn take_request(&mut self, request: RecordedRequest) {
        let answered_at = request.answering_at.unwrap_or(request.arrived_at);
        let vm = request.vm.as_ref().and_then(|vm| vm.path.rsplit('/').next()).map(str::to_owned);
        let Some(vm) = vm.filter(|vm| self.recording.handled_vms.contains(vm)) else { return };
        let recorded = recorded(&request, answered_at, self.platform.is_compensated());
        // Handlers may ask for other things first, such as the name of the VM.
        let is_answered_poll = recorded.is_poll() && recorded.status.is_some();
        if is_answered_poll && self.answered.insert(vm.clone()) {
            let vms = &self.recording.handled_vms;
            if vms.iter().all(|vm| self.answered.contains(vm)) {
                self.player.begin(answered_at);
            }
        }
        let read: Vec<String> = recorded
            .shows
            .iter()
            .flatten()
            .filter_map(|id| self.recording.event_name(*id).map(str::to_owned))
            .collect();
        if recorded.is_approval() {
            // Look at once whether it started the event.
            self.looked_at = Duration::ZERO;
        }
        self.record_at(request.arrived_at, Some(&vm), What::Request(Box::new(recorded)));
        for name in read {
            let is_new = !self
                .recording
                .entries
                .iter()
                .any(|entry| entry.what == What::Event { event: name.clone(), state: State::Read });
            if is_new {
                self.enter(self.elapsed.elapsed(), &name, State::Read);
            }
        }
    }

    fn take_news(&mut self, News { vm, at, what }: News) {
        match what {
            HandlerEvent::Started => self.record_at(at, Some(&vm), What::HandlerStarted),
            HandlerEvent::Line(line) => self.record_at(at, Some(&vm), What::Output { line }),
            HandlerEvent::Marker(marker) => {
                self.record_at(at, Some(&vm), What::Marker { marker });
                self.settle_if_restored();
            }
            HandlerEvent::Exited { code, signal } => {
                // An exit of a handler that the rehearsal has stopped is not the handler's own.
                if self.handlers.contains_key(&vm) {
                    self.record_at(at, Some(&vm), What::HandlerExited { code, signal });
                    self.ended.insert(vm, at);
                }
            }
        }
    }

    /// Tells the player when every expected restore was reported after its event.
    fn settle_if_restored(&mut self) {
        let scenario = self.player.scenario();
        let mut expected = scenario.expectations.iter().filter_map(|one| {
            let Expectation::Restores { event, .. } = one else { return None };
            Some(event.as_str())
        });
        let is_restored = |base: &str| {
            let events = self.recording.events.iter().filter(|(name, _)| base_name(name) == base);
            events.clone().count() > 0
                && events.clone().all(|(_, event)| {
                    let vms = self.recording.handled_vms.iter().filter(|vm| event.resources.contains(vm));
                    event.gone_at.is_some_and(|gone_at| {
                        vms.clone().all(|vm| {
                            self.recording.markers(vm, Marker::Restored).any(|(_, at)| at >= gone_at)
                        })
                    })
                })
        };
        if expected.all(is_restored) {
            self.player.settle(self.elapsed.elapsed());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The states that an event has had, as far as the service shows them.
fn states(live: Option<&Event>) -> &'static [State] {
    match live {
        None => &[State::Gone],
        Some(event) if event.status == EventStatus::Started && event.approved => {
            &[State::Approved, State::Started]
        }
        Some(event) if event.status == EventStatus::Started => &[State::Started],
        Some(event) if event.approved => &[State::Approved],
        Some(_) => &[],
    }
}

/// A request as the recording has it.
fn recorded(request: &RecordedRequest, answered_at: Duration, is_compensated: bool) -> Request {
    let mut recorded = Request {
        method: request.method.clone(),
        target: request.target.clone(),
        metadata: request.metadata.clone(),
        user_agent: request.user_agent.clone(),
        body: String::from_utf8_lossy(&request.body).into_owned(),
        status: request.status,
        answered_at,
        incarnation: request.incarnation,
        shows: None,
        approves: start_requests::parse(&request.body).unwrap_or_default(),
        faults: request
            .faults
            .iter()
            .filter(|kind| !(is_compensated && **kind == FaultKind::ClockSkew))
            .map(|kind| kind.as_str().to_owned())
            .collect(),
    };
    if recorded.is_poll() && recorded.status == Some(200) {
        recorded.shows = events_of(&request.response_body);
    }
    recorded
}

/// The EventIds of a document, as a tolerant client reads it.
fn events_of(body: &[u8]) -> Option<Vec<Uuid>> {
    let text = String::from_utf8_lossy(body).replace(['\n', '\r'], " ");
    let document: serde_json::Value = serde_json::from_str(&text).ok()?;
    let events = document.get("Events")?.as_array()?;
    Some(events.iter().filter_map(|event| event.get("EventId")?.as_str()?.parse().ok()).collect())
}
