//! Crash consistency: power loss at every sync of a script of changes.
//!
//! The script runs on the real engine and the real store, on an in-memory disk that keeps written and synced data
//! apart. At each sync the disk yields images of what a power loss could leave: no unsynced write, all of them, and
//! torn parts of them. Each image is opened as a service would open it, and the unanswered request is repeated with the
//! same key. Then:
//!
//! 1. acknowledged changes are present, with the same answer (invariant 1), and
//! 2. every change has happened exactly once: fleet, events, incarnations and history are the same as without a power
//!    loss, however often the request is repeated (invariant 2).

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use notbefore_core::samples::{self, scope_id};
use notbefore_core::{
    Actor, Cause, Name, OperationId, Origin, Past, Phase, Policy, Scope, ScopeKind, Settings, Token, VmId,
};
use notbefore_engine::records::{self, CommandRecord, LOADED, prefix};
use notbefore_engine::{
    AddVm, Address, Answer, Command, Effect, Engine, EngineSettings, EventCommand, Failure, FirstRun,
    GuestApproval, Idempotency, Input, NewOperation, OperationCommand, PutScope, Request, RequestId,
    ScopeChange, TargetSelector, TokenCommand, VmCommand, VmSpec,
};
use notbefore_service::data_dir::DataDir;
use notbefore_service::tokens;
use notbefore_store::redb::RedbStore;
use notbefore_store::{Key, Outcome, Revision, Snapshot, Store, Versioned, Watch};
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::disk::Disk;

/// One step of the script.
#[derive(Clone)]
enum Step {
    /// A request with an idempotency key. Ids that the command creates differ in each attempt.
    Ask(Arc<dyn Fn(&Service) -> Command>),
    /// A guest approves all events of its scope.
    Approve(&'static str),
    /// Time passes.
    Pass(SignedDuration),
    /// Guests of a scope poll.
    Poll(&'static str),
    /// The service creates the first token and the example VM, as at every start.
    Begin,
}

/// An engine with a store, driven synchronously: it is idle between two calls.
struct Service {
    runtime: Arc<Runtime>,
    /// The directory of the first token's file.
    dir: DataDir,
    store: RedbStore,
    watch: Box<dyn Watch>,
    watched: Revision,
    engine: Engine,
    now: Timestamp,
    requests: u64,
    answers: BTreeMap<RequestId, Result<Answer, Failure>>,
}

impl Service {
    fn open(runtime: &Arc<Runtime>, dir: &DataDir, disk: Disk, node: &str, now: Timestamp) -> Self {
        let store = RedbStore::open_with("disk", move || disk.open()).unwrap();
        let (records, revision) = runtime.block_on(load(&store));
        let settings = EngineSettings { domain: Settings::default(), node: node.into() };
        let (engine, effects) = Engine::new(settings, records, revision, now).unwrap();
        let watch = runtime.block_on(store.watch(revision)).unwrap();
        let mut service = Self {
            runtime: Arc::clone(runtime),
            dir: dir.clone(),
            store,
            watch,
            watched: revision,
            engine,
            now,
            requests: 0,
            answers: BTreeMap::new(),
        };
        service.carry_out(effects);
        service.handle(Input::Tick);
        service
    }

    fn handle(&mut self, input: Input) {
        let effects = self.engine.handle(input, self.now);
        self.carry_out(effects);
    }

    /// Carries out effects and those that follow, until there are none.
    fn carry_out(&mut self, effects: Vec<Effect>) {
        let mut waiting: VecDeque<Effect> = effects.into();
        while let Some(effect) = waiting.pop_front() {
            match effect {
                Effect::Commit(id, txn) => {
                    let outcome = self.runtime.block_on(self.store.commit(txn));
                    let committed = match outcome {
                        Outcome::Committed(revision) => revision,
                        Outcome::Conflict(_) => self.watched,
                        Outcome::Refused(_) | Outcome::Unknown(_) => panic!("{outcome:?}"),
                    };
                    waiting.extend(self.engine.handle(Input::Committed(id, outcome), self.now));
                    while self.watched < committed {
                        let batch = self.runtime.block_on(self.watch.next()).unwrap();
                        self.watched = batch.revision;
                        waiting.extend(self.engine.handle(Input::Watched(batch), self.now));
                    }
                }
                Effect::Publish(_) | Effect::Resync => {}
                Effect::Answer(id, answer) => drop(self.answers.insert(id, answer)),
                Effect::Run(_) | Effect::Stop(_) => panic!("the script has no exec commands"),
            }
        }
        assert!(self.engine.is_idle(), "the engine is not idle");
    }

    fn submit(
        &mut self,
        by: Actor,
        key: Option<&str>,
        command: impl Into<Command>,
    ) -> Result<Answer, Failure> {
        let idempotency =
            key.map(|key| Idempotency { principal: "root".into(), key: key.into(), hash: key.into() });
        self.requests += 1;
        let id = RequestId(self.requests);
        let request = Request { idempotency, ..Request::new(by, command.into()) };
        self.handle(Input::Request(id, Box::new(request)));
        self.answers.remove(&id).unwrap()
    }

    /// Does a step with its key. A client without an answer does the same again.
    fn take(&mut self, key: &str, step: &Step) -> Option<Answer> {
        match step {
            Step::Ask(command) => {
                let command = command(self);
                let answer = self.submit(Actor::Token("root".into()), Some(key), command);
                Some(answer.unwrap_or_else(|failure| panic!("{key}: {failure}")))
            }
            Step::Approve(scope) => {
                let id = scope_id(scope);
                let events = self.scope(scope).events.iter().map(|event| event.id).collect();
                let by = Actor::Service;
                self.submit(by, None, GuestApproval { scope: id, events, network: None }).unwrap();
                None
            }
            Step::Pass(_) => {
                self.handle(Input::Tick);
                // A tick may make further work due immediately.
                self.handle(Input::Tick);
                None
            }
            Step::Begin => {
                let first =
                    tokens::ensure_first(&self.store, &self.dir, None, tokens::LostToken::Replace, self.now);
                self.runtime.block_on(first).unwrap();
                let first_run = FirstRun { vm: VmId(Uuid::new_v4()), name: "lab".parse().unwrap() };
                self.submit(Actor::Service, None, first_run).unwrap();
                None
            }
            Step::Poll(scope) => {
                self.handle(Input::Polled(scope_id(scope), self.now));
                None
            }
        }
    }

    fn scope(&self, name: &str) -> &Scope {
        &self.engine.state().scope(&scope_id(name)).unwrap().value
    }

    fn vms(&self, scope: &str, names: &[&str]) -> Vec<VmId> {
        let members = &self.scope(scope).members;
        let one = |name: &&str| members.iter().find(|member| member.name.as_str() == *name).unwrap().vm;
        names.iter().map(one).collect()
    }

    fn snapshot(&self) -> Box<dyn Snapshot> {
        self.runtime.block_on(self.store.snapshot()).unwrap()
    }

    /// The visible state, without ids that differ after a retry.
    fn shape(&self) -> Vec<String> {
        let state = self.engine.state();
        let mut shape: Vec<String> = state.scopes().map(|(_, held)| scope_shape(&held.value)).collect();
        let snapshot = self.snapshot();
        let all = |prefix| self.runtime.block_on(snapshot.scan(prefix, None, usize::MAX)).unwrap().records;
        for (key, record) in all(prefix::PAST) {
            let past: Past = records::decode(&key, &record.value).unwrap();
            let trail: Vec<String> = past.event.trail.iter().map(|one| format!("{:?}", one.fact)).collect();
            shape.push(format!("past {} {} {trail:?} {:?}", past.scope, past.event.cause, past.outcome));
        }
        for (key, record) in all(prefix::OPERATION) {
            let operation: notbefore_core::Operation = records::decode(&key, &record.value).unwrap();
            shape.push(format!("operation {} {:?}", operation.cause, operation.state));
        }
        shape.extend(all(prefix::CLAIM).iter().map(|(key, _)| key.to_string()));
        for kind in [prefix::VM, prefix::ENDED, prefix::TOKEN] {
            shape.push(format!("{} of {kind}", all(kind).len()));
        }
        shape.sort();
        shape
    }
}

fn scope_shape(scope: &Scope) -> String {
    let member = |one: &notbefore_core::Member| format!("{} {:?} {:?}", one.name, one.host, one.state);
    let members: Vec<String> = scope.members.iter().map(member).collect();
    let event = |event: &notbefore_core::Event| {
        let phase = match &event.phase {
            Phase::Scheduled { not_before, approval, .. } => {
                format!("scheduled {not_before} {}", approval.is_some())
            }
            Phase::Started { at, why, .. } => format!("started {at} {why}"),
            Phase::Advisory { date } => format!("advisory {date:?}"),
        };
        let names: Vec<&str> = event.resources.iter().map(|one| one.name.as_str()).collect();
        format!("{} {names:?} {phase}", event.cause)
    };
    let mut events: Vec<String> = scope.events.iter().map(event).collect();
    events.sort();
    let (path, incarnation) = (&scope.path, scope.incarnation);
    format!("{path} {incarnation} {:?} {members:?} {events:?} {} ended", scope.policy, scope.ended.len())
}

async fn load(store: &RedbStore) -> (Vec<(Key, Versioned)>, Revision) {
    let snapshot = store.snapshot().await.unwrap();
    let mut loaded = Vec::new();
    for prefix in LOADED {
        loaded.extend(snapshot.scan(prefix, None, usize::MAX).await.unwrap().records);
    }
    loaded.extend(snapshot.get(records::ALIVE).await.unwrap().map(|one| (records::ALIVE.into(), one)));
    (loaded, snapshot.revision())
}

fn scope(name: &str, kind: ScopeKind, vms: std::ops::Range<u8>, network: u8, prune: bool) -> ScopeChange {
    let vm = |n: u8| VmSpec {
        update_domain: u32::from(n % 2),
        host: Some(format!("h{}", n % 3)),
        spot: kind == ScopeKind::ScaleSet,
        addresses: vec![Address { network: "default".parse().unwrap(), ip: [10, 0, network, n].into() }],
        ..VmSpec::with_defaults(VmId(Uuid::new_v4()), format!("{name}_{n}").parse::<Name>().unwrap())
    };
    ScopeChange::Put(PutScope {
        policy: Policy { terminate_notice_s: Some(300), ..Policy::default() },
        origin: Origin::Fleet,
        prune,
        ..PutScope::with_defaults(name.parse().unwrap(), kind, vms.map(vm).collect())
    })
}

fn submit<C: Into<Command>>(command: impl Fn(&Service) -> C + 'static) -> Step {
    Step::Ask(Arc::new(move |service| command(service).into()))
}

/// Schedules an event for VMs, given by scope.
fn schedule(cause: Cause, vms: &'static [(&'static str, &'static [&'static str])]) -> Step {
    submit(move |service| {
        let selector =
            TargetSelector::Vms(vms.iter().flat_map(|(scope, names)| service.vms(scope, names)).collect());
        OperationCommand::Schedule(NewOperation::with_defaults(OperationId(Uuid::new_v4()), cause, selector))
    })
}

fn token(now: Timestamp) -> Token {
    // Every attempt creates a new secret, like other ids.
    let hash = tokens::hash(&tokens::new_secret().unwrap());
    Token { hash, grants: Vec::new(), created_at: now, ..samples::token("ci") }
}

/// Maintains a host with all its VMs.
fn host_down(host: &str) -> OperationCommand {
    let selector = TargetSelector::Host(host.to_owned());
    OperationCommand::Schedule(NewOperation::with_defaults(
        OperationId(Uuid::new_v4()),
        Cause::HostReboot,
        selector,
    ))
}

/// Acts on the first live event of a scope; in a repeated step, on the same event as in the first attempt.
fn first_event(scope: &'static str, act: fn(notbefore_core::EventId) -> EventCommand) -> Step {
    submit(move |service| {
        let scope = service.scope(scope);
        let ended = || scope.ended.last().map(|ended| ended.event);
        act(scope.events.first().map(|event| event.id).or_else(ended).unwrap())
    })
}

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// A script with all kinds of changes.
fn day() -> Vec<Step> {
    use ScopeKind::{AvailabilitySet, ScaleSet};
    let add = |name: &str| {
        let vm = VmSpec::with_defaults(VmId(Uuid::new_v4()), name.parse().unwrap());
        AddVm { path: name.parse().unwrap(), kind: None, vm }
    };
    let redeployed = |event| EventCommand::Complete { event, hosts: Vec::new() };
    vec![
        Step::Begin,
        submit(|_| scope("web", AvailabilitySet, 0..4, 1, false)),
        // More than one transaction can hold.
        submit(|_| scope("batch", ScaleSet, 0..30, 2, false)),
        submit(move |_| add("db")),
        submit(move |_| add("cache")),
        Step::Poll("web"),
        Step::Poll("batch"),
        Step::Poll("db"),
        Step::Pass(MINUTE),
        // A user restart, approved and completed.
        schedule(Cause::UserRestart, &[("db", &["db"])]),
        Step::Approve("db"),
        Step::Pass(MINUTE * 2),
        // Maintenance of a host with VMs of three scopes: all approve, all start, one update domain at a time.
        schedule(
            Cause::HostReboot,
            &[("web", &["web_0", "web_1"]), ("batch", &["batch_0"]), ("db", &["db"])],
        ),
        Step::Approve("web"),
        Step::Approve("batch"),
        Step::Approve("db"),
        Step::Pass(MINUTE * 2),
        Step::Pass(MINUTE * 2),
        // Another one is announced and cancelled; a third starts at NotBefore.
        schedule(Cause::HostFreeze, &[("web", &["web_2"]), ("batch", &["batch_1", "batch_2"])]),
        submit(|service| {
            let open = service.engine.state().operations().next().map(|(id, _)| *id);
            OperationCommand::Cancel(open.unwrap_or(OperationId(Uuid::nil())))
        }),
        schedule(Cause::HostFreeze, &[("web", &["web_3"]), ("db", &["db"])]),
        Step::Pass(MINUTE * 20),
        Step::Pass(MINUTE),
        // All VMs of a host, in several scopes.
        submit(|_| host_down("h1")),
        Step::Approve("web"),
        Step::Pass(MINUTE * 20),
        Step::Pass(MINUTE * 2),
        Step::Pass(MINUTE * 2),
        // An eviction, then the VM is started again.
        schedule(Cause::Eviction, &[("batch", &["batch_3", "batch_4"])]),
        Step::Pass(MINUTE),
        Step::Pass(MINUTE * 2),
        submit(|service| VmCommand::Start(service.vms("batch", &["batch_3"])[0])),
        // A redeploy by an operator.
        schedule(Cause::UserRedeploy, &[("db", &["db"])]),
        first_event("db", EventCommand::Start),
        first_event("db", redeployed),
        // A token is created and revoked.
        submit(|service| TokenCommand::Create(token(service.now))),
        submit(|service| TokenCommand::Revoke(token(service.now).name)),
        // VMs are deleted, with notice and immediately; a scope loses VMs, another is removed.
        schedule(Cause::Deletion, &[("batch", &["batch_5", "batch_6", "batch_7"])]),
        Step::Pass(MINUTE * 6),
        Step::Pass(MINUTE * 2),
        submit(|_| scope("web", AvailabilitySet, 1..4, 1, true)),
        submit(|_| scope("batch", ScaleSet, 10..28, 2, true)),
        submit(|_| {
            let (scope, fleet_only) = (scope_id("cache"), false);
            ScopeChange::Remove { scope, fleet_only }
        }),
        Step::Pass(MINUTE * 61),
    ]
}

/// Checks an image that was taken during a step.
fn check_image(image: Vec<u8>, day: &Day<'_>, number: usize) {
    let Day { runtime, dir, now, acknowledged, answers, shape, key, step } = day;
    let mut service = Service::open(runtime, dir, Disk::holding(image), "image", *now);
    let snapshot = service.snapshot();
    let place = format!("image {number} of {key}");
    assert!(snapshot.revision() >= *acknowledged, "{place} lacks acknowledged changes");
    for (key, answer) in answers.iter() {
        let name = records::command("root", key);
        let record = runtime.block_on(snapshot.get(&name)).unwrap();
        let record = record.unwrap_or_else(|| panic!("{place} has lost {key}"));
        let record: CommandRecord = records::decode(&name, &record.value).unwrap();
        assert_eq!(record.answer, *answer, "{place} answers {key} differently");
    }
    drop(snapshot);

    let first = service.take(key, step);
    assert_eq!(service.shape(), *shape, "{place}: a change did not happen exactly once");
    let revision = service.snapshot().revision();
    assert_eq!(service.take(key, step), first, "{place}: the repeated request has another answer");
    assert_eq!(service.shape(), *shape, "{place}: the repeated request changed something");
    if first.is_some() {
        assert_eq!(service.snapshot().revision(), revision, "{place}: the repeated request wrote something");
    }
}

/// The expected state for an image.
struct Day<'a> {
    runtime: &'a Arc<Runtime>,
    dir: &'a DataDir,
    now: Timestamp,
    /// The newest acknowledged revision before the step.
    acknowledged: Revision,
    /// Answers before the step, by key.
    answers: &'a BTreeMap<String, Answer>,
    /// The visible state after the step.
    shape: &'a [String],
    key: &'a str,
    step: &'a Step,
}

#[test]
fn every_crash_image_holds_acknowledged_changes_once() {
    let runtime = Arc::new(Runtime::new().unwrap());
    let place = tempfile::tempdir().unwrap();
    let dir = DataDir::prepare(place.path()).unwrap();
    let disk = Disk::new();
    let mut now: Timestamp = "2026-11-15T08:00:00Z".parse().unwrap();
    let mut service = Service::open(&runtime, &dir, disk.clone(), "day", now);
    disk.keep_images();

    let mut answers = BTreeMap::new();
    let mut images = 0;
    for (number, step) in day().iter().enumerate() {
        let key = &*format!("step-{number:02}");
        if let Step::Pass(span) = step {
            now = now.checked_add(*span).unwrap();
            service.now = now;
        }
        let acknowledged = service.snapshot().revision();
        let answer = service.take(key, step);
        let shape = &*service.shape();
        // Many images are identical: with a single unsynced write there are only two.
        let mut seen = HashSet::new();
        for image in disk.take_images().into_iter().filter(|image| seen.insert(digest(image))) {
            let answers = &answers;
            let day = Day { runtime: &runtime, dir: &dir, now, acknowledged, answers, shape, key, step };
            check_image(image, &day, images);
            images += 1;
        }
        // After the answer, the step's effect is durable too.
        answers.extend(answer.map(|answer| (key.to_owned(), answer)));
        let acknowledged = service.snapshot().revision();
        let answers = &answers;
        let day = Day { runtime: &runtime, dir: &dir, now, acknowledged, answers, shape, key, step };
        check_image(disk.image(), &day, images);
        images += 1;
    }
    println!("{images} images, {} answers", answers.len());
    assert!(images > 300, "there were only {images} images");
    assert!(shape_has(&service, "past") && shape_has(&service, "operation"), "{:#?}", service.shape());
}

fn shape_has(service: &Service, what: &str) -> bool {
    service.shape().iter().filter(|line| line.starts_with(what)).count() > 5
}

fn digest(image: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(image);
    hasher.finish()
}
