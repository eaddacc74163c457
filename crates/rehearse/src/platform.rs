//! The platform of a rehearsal: the real service, in memory and in this process, with a clock that can be moved and a
//! record of every request.
//!
//! `notbefore rehearse` uses it for scenarios. A Rust test can use it by itself, without a judge: with [`Time::ByHand`],
//! fifteen minutes of notice pass in a moment. [`by_hand`](crate::by_hand) adds the judge.
//!
//! ```
//! # use std::time::Duration;
//! # use notbefore_rehearse::platform::{Platform, PlatformSpec, Time};
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! let platform = Platform::start(PlatformSpec::of_vms(["web-0"]).with_time(Time::ByHand)).await?;
//! let restart = platform.schedule("user-restart", &["web-0"], Some(Duration::from_secs(900))).await?;
//! // Here a handler polls platform.endpoint("web-0"), prepares, and approves.
//! assert!(!platform.is_started(restart[0].id).await?);
//! platform.advance(Duration::from_secs(900)).await;
//! assert!(platform.is_started(restart[0].id).await?);
//! platform.close().await;
//! # Ok::<(), notbefore_rehearse::platform::PlatformError>(()) }).unwrap();
//! ```

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use notbefore_core::Settings;
use notbefore_core::time::round_up;
use notbefore_service::clock::{Clock, MovableClock, SharedClock, Stopwatch};
use notbefore_service::fleet::{FleetFile, FleetScope};
use notbefore_service::guest::interception::{RecordedRequest, RecordedVm, Recorder, RequestSink};
use notbefore_service::guest::settings::GuestSettings;
use notbefore_service::running::Running;
use notbefore_service::{BoundSocket, ServeConfig, ServeError, serve_in_background};
use notbefore_wire::guest::version::EventsVersion;
use notbefore_wire::operator::faults::NewFault;
use notbefore_wire::operator::{
    Cause, Event, EventStatus, EventVerb, FaultKind, FaultRequests, Policy, ScheduleEvents, ScopeKind,
    ScopeSpec, VmSpec,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::directory::Directory;
use crate::keeper::Keeper;
use crate::operator::{Operator, OperatorError};

/// The scope of all VMs of a rehearsal.
const SCOPE: &str = "rehearsal";
/// Factor on the least notice: a scenario gives every NotBefore itself, as near as it likes.
const NOTICE_SCALE: f64 = 1e-6;
/// Longer than any rehearsal: it ends its events itself.
const EVENT_DURATION: Duration = Duration::from_secs(365 * 86_400);
/// The least notice of a deletion that a policy can have.
const TERMINATE_NOTICE_SECONDS: u32 = 300;

/// Why a platform did not start, or refused something.
#[derive(Debug, thiserror::Error)]
pub enum PlatformError {
    #[error("cannot create a directory for the rehearsal: {0}")]
    Directory(std::io::Error),
    #[error("cannot listen on a loopback address: {0}")]
    Listen(std::io::Error),
    #[error("the service of the rehearsal did not start: {0}")]
    Serve(#[from] ServeError),
    #[error("the service of the rehearsal ended before it was ready")]
    Ended,
    #[error("there is no cause {0:?}; 'notbefore event schedule --help' lists them")]
    UnknownCause(String),
    #[error(transparent)]
    Operator(#[from] OperatorError),
    #[error("{0}")]
    Fault(String),
}

/// How time passes at a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Like the system's.
    Running,
    /// It stands still until [`Platform::advance`].
    ByHand,
}

/// A VM of a platform.
#[derive(Clone, Debug, Default)]
pub struct PlatformVm {
    pub name: String,
    pub update_domain: u32,
    pub is_spot: bool,
    /// A listening socket for this VM's guest. None: one on a loopback port, if the VM has no addresses.
    pub socket: Option<Arc<TcpListener>>,
    /// Addresses from which it calls the common guest listener.
    pub addresses: Vec<String>,
}

/// What a platform consists of.
#[derive(Clone)]
pub struct PlatformSpec {
    pub vms: Vec<PlatformVm>,
    pub kind: ScopeKind,
    pub time: Time,
    /// Whether it serves api-version 2024-07-09.
    pub serves_advice: bool,
    pub arrival_hook: Option<ArrivalHook>,
}

impl PlatformSpec {
    /// VMs of these names in one availability set.
    pub fn of_vms<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let vm = |name: &str| PlatformVm { name: name.to_owned(), ..PlatformVm::default() };
        Self {
            vms: names.into_iter().map(vm).collect(),
            kind: ScopeKind::AvailabilitySet,
            time: Time::Running,
            serves_advice: true,
            arrival_hook: None,
        }
    }

    #[must_use]
    pub fn with_time(self, time: Time) -> Self {
        Self { time, ..self }
    }
}

/// Time since a platform began. By hand, it is how far the clock was moved, and a microsecond for each reading: what
/// happens later has a later time.
#[derive(Clone)]
pub struct Elapsed {
    /// For handlers as processes.
    pub(crate) stopwatch: Stopwatch,
    by_hand: Option<Arc<ByHand>>,
}

struct ByHand {
    clock: Arc<MovableClock>,
    began_at: Timestamp,
    readings: AtomicU64,
}

impl Elapsed {
    fn start(time: Time, clock: &Arc<MovableClock>) -> Self {
        let by_hand =
            || ByHand { clock: Arc::clone(clock), began_at: clock.now(), readings: AtomicU64::new(0) };
        let by_hand = (time == Time::ByHand).then(|| Arc::new(by_hand()));
        Self { stopwatch: Stopwatch::start(), by_hand }
    }

    pub fn elapsed(&self) -> Duration {
        let Some(ByHand { clock, began_at, readings }) = self.by_hand.as_deref() else {
            return self.stopwatch.elapsed();
        };
        let reading = Duration::from_micros(readings.fetch_add(1, Relaxed));
        Duration::try_from(clock.now().duration_since(*began_at)).unwrap_or_default() + reading
    }
}

/// A running platform.
pub struct Platform {
    operator: Operator,
    running: Running,
    clock: Arc<MovableClock>,
    /// How far the clock was moved.
    moved_by: Mutex<Duration>,
    /// The fault that hides the moves of the clock from guests.
    compensation: Mutex<Option<u64>>,
    /// Base URLs by VM.
    endpoints: BTreeMap<String, String>,
    elapsed: Elapsed,
    requests: Mutex<Option<mpsc::UnboundedReceiver<RecordedRequest>>>,
    stop: watch::Sender<bool>,
    /// None once it is stopped.
    served: Mutex<Option<JoinHandle<Result<(), ServeError>>>>,
    /// Where the service has its files.
    _directory: Directory,
}

/// A function that is called with the name of a VM when a request of it arrives.
pub type ArrivalHook = Arc<dyn Fn(&str) + Send + Sync>;

struct Sink {
    elapsed: Elapsed,
    requests: mpsc::UnboundedSender<RecordedRequest>,
    arrival_hook: Option<ArrivalHook>,
}

impl RequestSink for Sink {
    fn arrived(&self, vm: &RecordedVm) -> Duration {
        if let Some(hook) = &self.arrival_hook {
            hook(vm.path.rsplit('/').next().unwrap_or_default());
        }
        // What the hook has found in the handler's output is before this.
        self.elapsed.elapsed()
    }

    /// Not at [`record`](RequestSink::record): a test that has the answer may move the clock before.
    fn answering(&self) -> Duration {
        self.elapsed.elapsed()
    }

    fn record(&self, request: RecordedRequest) {
        // Fails when the reader of the record is gone.
        let _ = self.requests.send(request);
    }
}

impl Platform {
    /// Starts the service and returns when it answers guests.
    pub async fn start(spec: PlatformSpec) -> Result<Self, PlatformError> {
        Self::start_kept(spec, None).await
    }

    /// The same; a keeper removes the service's files if this process is killed.
    pub(crate) async fn start_kept(
        spec: PlatformSpec,
        keeper: Option<&Keeper>,
    ) -> Result<Self, PlatformError> {
        let directory =
            Directory::create("notbefore-rehearsal-", keeper).map_err(PlatformError::Directory)?;
        let (sender, requests) = mpsc::unbounded_channel();
        let clock = Arc::new(match spec.time {
            Time::Running => MovableClock::running(),
            // At a whole second: NotBefore is rounded up to one, and is then exactly the notice ahead.
            Time::ByHand => MovableClock::standing_at(round_up(MovableClock::running().now())),
        });
        let elapsed = Elapsed::start(spec.time, &clock);
        let (mut sockets, mut endpoints) = (Vec::new(), BTreeMap::new());
        for vm in spec.vms.iter().filter(|vm| vm.addresses.is_empty()) {
            let listener = match &vm.socket {
                Some(socket) => Arc::clone(socket),
                None => {
                    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                    Arc::new(TcpListener::bind(free).map_err(PlatformError::Listen)?)
                }
            };
            let address = listener.local_addr().map_err(PlatformError::Listen)?;
            let url = if address.port() == 80 {
                format!("http://{}", address.ip())
            } else {
                format!("http://{address}")
            };
            endpoints.insert(vm.name.clone(), url);
            sockets.push(BoundSocket { vm: format!("{SCOPE}/{}", vm.name), listener });
        }
        let fleet = FleetFile { name: PathBuf::from("the scenario"), scopes: vec![scope(&spec)] };
        let base = ServeConfig::in_memory(directory.path().to_owned());
        let config = ServeConfig {
            fleet: Some(fleet),
            guest_sockets: sockets,
            guest_settings: GuestSettings {
                newest_version: if spec.serves_advice {
                    EventsVersion::NEWEST
                } else {
                    EventsVersion::V2020_07_01
                },
                // One rehearsal has few guests, and a report card many rehearsals.
                threads: Some(NonZeroUsize::MIN),
                // A test that moves the clock by hand polls as fast as it can.
                rate_limit: GuestSettings::default().rate_limit.filter(|_| spec.time == Time::Running),
                ..GuestSettings::default()
            },
            recorder: Some(Recorder(Arc::new(Sink {
                elapsed: elapsed.clone(),
                requests: sender,
                arrival_hook: spec.arrival_hook.clone(),
            }))),
            faults_allowed: true,
            clock: SharedClock(Arc::clone(&clock) as _),
            domain: Settings {
                notice_scale: NOTICE_SCALE,
                simulated_duration: EVENT_DURATION,
                ignores_announced_duration: true,
                ..Settings::default()
            },
            ..base
        };
        let (stop, stopped) = watch::channel(false);
        let (ready, is_ready) = oneshot::channel();
        let ready = Box::new(move |running: &Running| {
            // Fails if the caller is gone.
            let _ = ready.send(running.clone());
        });
        let served = serve_in_background(config, stopped, ready);
        let Ok(running) = is_ready.await else {
            served.await.map_err(|_| PlatformError::Ended)??;
            return Err(PlatformError::Ended);
        };
        let token = std::fs::read_to_string(&running.addresses.token).map_err(PlatformError::Directory)?;
        let operator = Operator::new(running.addresses.operator, token.trim().to_owned());
        Ok(Self {
            operator,
            running,
            clock,
            moved_by: Mutex::default(),
            compensation: Mutex::default(),
            endpoints,
            elapsed,
            requests: Mutex::new(Some(requests)),
            stop,
            served: Mutex::new(Some(served)),
            _directory: directory,
        })
    }

    /// The base URL for a VM's guest: `http://127.0.0.1:PORT`.
    pub fn endpoint(&self, vm: &str) -> Option<&str> {
        self.endpoints.get(vm).map(String::as_str)
    }

    /// Runs since the platform began.
    pub fn elapsed(&self) -> Elapsed {
        self.elapsed.clone()
    }

    /// The address of the common guest listener, for VMs with addresses.
    pub fn guest_address(&self) -> Option<SocketAddr> {
        self.running.addresses.listeners.guest.first().map(|listener| listener.address)
    }

    /// The record of requests; whole the first time, then empty.
    pub fn take_requests(&self) -> Option<mpsc::UnboundedReceiver<RecordedRequest>> {
        lock(&self.requests).take()
    }

    /// Announces events for VMs, with a notice of the platform's time; returns them.
    pub async fn schedule(
        &self,
        cause: &str,
        vms: &[&str],
        notice: Option<Duration>,
    ) -> Result<Vec<Event>, PlatformError> {
        let known = Cause::ALL.iter().find(|known| known.as_str() == cause);
        let known = known.ok_or_else(|| PlatformError::UnknownCause(cause.to_owned()))?;
        let request = ScheduleEvents {
            cause: Some(known.clone()),
            vms: vms.iter().map(|vm| format!("{SCOPE}/{vm}")).collect(),
            not_before: notice.and_then(|notice| self.clock.now().checked_add(notice).ok()),
            force: true,
            ..ScheduleEvents::default()
        };
        self.announce(&request).await
    }

    /// Announces events; returns them. VMs are named with their scope.
    pub async fn announce(&self, request: &ScheduleEvents) -> Result<Vec<Event>, PlatformError> {
        let operation = self.operator.schedule(request).await?;
        let mut events = self.operator.events().await?;
        events.retain(|event| event.operation == operation.id);
        Ok(events)
    }

    /// A VM's name as the operator API takes it.
    pub fn vm_path(vm: &str) -> String {
        format!("{SCOPE}/{vm}")
    }

    pub async fn act(&self, event: Uuid, verb: &EventVerb) -> Result<Event, PlatformError> {
        Ok(self.operator.act(event, verb).await?)
    }

    /// All live events.
    pub async fn events(&self) -> Result<Vec<Event>, PlatformError> {
        Ok(self.operator.events().await?)
    }

    pub async fn is_started(&self, event: Uuid) -> Result<bool, PlatformError> {
        let events = self.events().await?;
        Ok(events.iter().any(|live| live.id == event && live.status == EventStatus::Started))
    }

    /// The time at the platform.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Moves the platform's clock, and returns when everything that is due has happened.
    pub async fn advance(&self, by: Duration) {
        self.clock.advance(by);
        *lock(&self.moved_by) += by;
        self.running.engine.settle().await;
    }

    /// Moves the platform's clock; guests go on seeing the time of their own clock.
    pub async fn advance_unseen(&self, by: Duration) -> Result<(), PlatformError> {
        self.advance(by).await;
        self.compensate()
    }

    /// Shifts the times that guests see back by what the clock was moved.
    fn compensate(&self) -> Result<(), PlatformError> {
        let seconds = i64::try_from(lock(&self.moved_by).as_secs()).unwrap_or(i64::MAX);
        let mut current = lock(&self.compensation);
        if let Some(id) = current.take() {
            self.running.faults.clear(Some(id));
        }
        if seconds > 0 {
            let fault = NewFault {
                seconds: Some(-seconds),
                requests: Some(FaultRequests::All),
                ..NewFault::new(FaultKind::ClockSkew)
            };
            *current = Some(self.add_fault(fault)?);
        }
        Ok(())
    }

    /// Adds a fault of the guest listener; returns its id.
    pub fn add_fault(&self, mut fault: NewFault) -> Result<u64, PlatformError> {
        fault.vm = fault.vm.as_deref().map(Self::vm_path);
        let added =
            self.running.faults.add(fault).map_err(|error| PlatformError::Fault(error.to_string()))?;
        Ok(added.id)
    }

    /// Ends all faults.
    pub fn clear_faults(&self) -> Result<(), PlatformError> {
        self.running.faults.clear(None);
        *lock(&self.compensation) = None;
        self.compensate()
    }

    /// Whether guests see shifted times because the clock was moved.
    pub fn is_compensated(&self) -> bool {
        lock(&self.compensation).is_some()
    }

    /// Stops the service, once. Afterwards every request that it has answered is in the record.
    pub async fn close(&self) {
        let _ = self.stop.send(true);
        let served = lock(&self.served).take();
        if let Some(served) = served {
            // The rehearsal is over; an error of the end has no consequence.
            let _ = served.await;
        }
    }
}

fn scope(spec: &PlatformSpec) -> FleetScope {
    let vm = |vm: &PlatformVm| VmSpec {
        name: vm.name.clone(),
        update_domain: vm.update_domain,
        spot: vm.is_spot,
        addresses: vm.addresses.clone(),
        ..VmSpec::default()
    };
    let policy =
        Policy { terminate_notification_seconds: Some(TERMINATE_NOTICE_SECONDS), ..Policy::default() };
    let vms = spec.vms.iter().map(vm).collect();
    FleetScope {
        path: ["default".to_owned(), "default".to_owned(), SCOPE.to_owned()],
        spec: ScopeSpec { kind: spec.kind.clone(), policy, vms },
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
