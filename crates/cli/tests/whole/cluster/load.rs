//! Clients and guests that run during the faults, and record what they send and receive.
//!
//! Clients send changes with an Idempotency-Key through any node. As the command line does, they repeat a change under
//! its key after 503 and after a lost connection, here until it is answered. An event is changed only by the client that
//! scheduled it, by guests of its scope, and by timers; a setting only by one client.
//!
//! Guests poll with the tag of their last document. Some stay at one node, some move to another one for each poll, some
//! wait for changes. A guest whose address has moved is another VM, and has no tag.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use notbefore_wire::operator as wire;
use serde_json::{Value, json};
use uuid::Uuid;

use super::history::{Attempt, Command, Document, DocumentEvent, History, Made, Outcome, Poll, Record, Verb};
use super::network::guest_address;
use super::nodes::NodeAddress;
use crate::crash::random::Random;
use crate::support::http::{Answer, NoResponse, exchange_within};
use crate::support::pause;

/// Limit of live events of a client.
const LIVE_MAX: usize = 6;
/// Limit of the VMs that a client has added.
const ADDED_MAX: usize = 3;
/// Seconds that a long poll waits.
const WAIT_SECONDS: u64 = 4;
/// Limit of a poll: a guest of a node that is cut off tries another one soon.
const POLL_MAX: Duration = Duration::from_secs(2);
/// Pause between polls, and after a request without a response.
const POLL_PAUSE: Duration = Duration::from_millis(250);
/// Pause between two commands of a client.
const COMMAND_PAUSE: Duration = Duration::from_millis(60);

const EVENTS: &str = "/metadata/scheduledevents?api-version=2020-07-01";

pub struct Vm {
    pub id: Uuid,
    pub name: String,
    pub scope: usize,
}

/// The fleet: `tenants × scopes` with a guest for each VM.
pub struct Fleet {
    pub scopes: Vec<String>,
    pub vms: Vec<Vm>,
    /// As many as VMs. At the start VM and guest have the same number.
    guests: Vec<Owner>,
}

/// Which VM has the address of a guest.
struct Owner {
    vm: AtomicUsize,
    /// Rises when the address begins to move, and when it has moved; odd in between.
    moves: AtomicUsize,
}

impl Fleet {
    /// Creates it through a node that takes changes.
    pub fn create(
        node: NodeAddress,
        history: &History,
        scopes: usize,
        vms_per_scope: usize,
        clients: usize,
    ) -> Self {
        // Two tenants with scopes of the same names.
        let path = |scope: usize| format!("tenant-{}/group/scope-{}", scope % 2, scope / 2);
        let scopes: Vec<String> = (0..scopes).map(path).collect();
        let created = |method: &str, target: &str, body: Value| -> Answer {
            // One for all attempts: the first may have taken effect.
            let key = Uuid::new_v4().to_string();
            let answer = super::eventually(target, || {
                node.request(method, target, &key, &body.to_string())
                    .ok()
                    .filter(|answer| answer.status != 503)
            });
            assert!(answer.status < 300, "{method} {target}: {answer:?}");
            answer
        };
        for scope in scopes.iter().cloned().chain((0..clients).map(pool)) {
            let policy = json!({"kind": "scale-set", "policy": {"terminate_notification_seconds": 300}});
            created("PUT", &format!("/v1/scopes/{scope}"), policy);
        }
        let mut vms = Vec::new();
        let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (place, scope) in scopes.iter().enumerate() {
            for _ in 0..vms_per_scope {
                let name = format!("vm-{}_{}", place, vms.len());
                let body =
                    json!({"scope": scope, "vm": {"name": name, "addresses": [guest_address(vms.len())]}});
                let made: wire::Vm = created("POST", "/v1/vms", body).parsed();
                names.entry(scope.clone()).or_default().push(name.clone());
                vms.push(Vm { id: made.id, name, scope: place });
            }
        }
        history.record(Record::Fleet { scopes: names });
        let owner = |vm| Owner { vm: AtomicUsize::new(vm), moves: AtomicUsize::new(0) };
        let guests = (0..vms.len()).map(owner).collect();
        Self { scopes, vms, guests }
    }

    /// The VM that has the address of a guest; while it moves, the VM before.
    pub fn owner(&self, guest: usize) -> usize {
        self.guests[guest].vm.load(Ordering::SeqCst)
    }

    fn moves(&self, guest: usize) -> usize {
        self.guests[guest].moves.load(Ordering::SeqCst)
    }

    pub fn begin_move(&self, guest: usize) {
        self.guests[guest].moves.fetch_add(1, Ordering::SeqCst);
    }

    pub fn end_move(&self, guest: usize, vm: usize) {
        self.guests[guest].vm.store(vm, Ordering::SeqCst);
        self.guests[guest].moves.fetch_add(1, Ordering::SeqCst);
    }

    /// A guest of a scope.
    pub fn guest_of(&self, scope: usize) -> usize {
        (0..self.vms.len()).find(|&guest| self.vms[self.owner(guest)].scope == scope).unwrap()
    }

    pub fn of(&self, scope: usize) -> Vec<Uuid> {
        self.vms.iter().filter(|vm| vm.scope == scope).map(|vm| vm.id).collect()
    }
}

/// The scope that one client changes.
pub fn pool(client: usize) -> String {
    format!("pools/group/pool-{client}")
}

/// What clients, guests and the faults share.
pub struct Shared {
    pub nodes: Vec<NodeAddress>,
    pub fleet: Fleet,
    pub history: History,
    stop: AtomicBool,
    /// Number of restored backups; what a client knows of its events is void after one.
    pub restores: AtomicUsize,
}

impl Shared {
    pub fn new(nodes: Vec<NodeAddress>, fleet: Fleet, history: History) -> Self {
        Self { nodes, fleet, history, stop: AtomicBool::new(false), restores: AtomicUsize::new(0) }
    }

    /// Sends a change once, and records it.
    pub fn attempt(
        &self,
        node: usize,
        key: &str,
        is_repeat: bool,
        command: &Command,
        request: &Change,
    ) -> Outcome {
        let begun = self.history.now();
        let answer = match &request.guest {
            Some(guest) => {
                let body = &request.body;
                let head = format!(
                    "Host: x\r\nMetadata: true\r\nConnection: close\r\nContent-Length: {}",
                    body.len()
                );
                let request = format!("POST {EVENTS} HTTP/1.1\r\n{head}\r\n\r\n{body}");
                exchange_within(guest_address(*guest), self.nodes[node].guest(), &request, POLL_MAX * 2)
            }
            None => self.nodes[node].request(request.method, &request.target, key, &request.body),
        };
        let outcome = outcome(answer);
        let (key, command, outcome) = (key.to_owned(), command.clone(), outcome);
        let ended = self.history.now();
        let attempt = Attempt { key, is_repeat, node, command, begun, ended, outcome: outcome.clone() };
        self.history.record(Record::Attempt(attempt));
        outcome
    }
}

/// A change as a request.
pub struct Change {
    pub method: &'static str,
    pub target: String,
    pub body: String,
    /// The guest that sends it, if it is an approval.
    pub guest: Option<usize>,
}

impl Change {
    pub fn schedule(cause: &str, vms: &[Uuid], tag: &str) -> Self {
        let body = json!({"cause": cause, "vms": vms, "description": tag, "duration_seconds": 1}).to_string();
        Self { method: "POST", target: "/v1/events".to_owned(), body, guest: None }
    }
}

fn outcome(answer: Result<Answer, NoResponse>) -> Outcome {
    let answer = match answer {
        Ok(answer) => answer,
        Err(NoResponse::NotSent) => return Outcome::NotSent,
        Err(NoResponse::Unanswered) => return Outcome::Unanswered,
    };
    match answer.status {
        200..=299 => {
            let body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
            let id = |value: &Value| value.as_str().and_then(|text| Uuid::parse_str(text).ok());
            let events = body["targets"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|one| id(&one["event"]))
                .collect();
            Outcome::Acknowledged(Made { id: id(&body["id"]), events })
        }
        429 | 503 => Outcome::Unavailable { code: answer.code() },
        status => Outcome::Refused { status, code: answer.code() },
    }
}

/// Threads that run until [`Load::stop`], also after a panic of the test.
pub struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts guests, one for each VM, and clients. Call it on the machine of the clients.
    pub fn start(shared: &Arc<Shared>, clients: usize, random: &mut Random) -> Self {
        let mut threads = Vec::new();
        for number in 0..shared.fleet.vms.len() {
            let mut guest =
                Guest { number, shared: Arc::clone(shared), random: random.fork(), tag: None, moves: 0 };
            threads.push(std::thread::spawn(move || guest.run()));
        }
        for number in 0..clients {
            let mut client = Client::new(number, Arc::clone(shared), random.fork());
            threads.push(std::thread::spawn(move || client.run()));
        }
        Self { shared: Arc::clone(shared), threads }
    }

    /// Ends all threads; commands that were begun are answered first.
    pub fn stop(mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for thread in std::mem::take(&mut self.threads) {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }

    /// Fails if a thread has failed.
    pub fn check(&mut self) {
        if let Some(place) = self.threads.iter().position(JoinHandle::is_finished)
            && let Err(panic) = self.threads.swap_remove(place).join()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
    }
}

struct Guest {
    number: usize,
    shared: Arc<Shared>,
    random: Random,
    tag: Option<u64>,
    /// How often its address had moved when it got the tag.
    moves: usize,
}

impl Guest {
    fn run(&mut self) {
        while !self.shared.stop.load(Ordering::SeqCst) {
            let node = match self.number % 3 {
                0 => self.number / 3 % self.shared.nodes.len(),
                _ => self.random.index(self.shared.nodes.len()),
            };
            let waits = self.number % 3 == 1;
            let status = self.poll(node, waits);
            // A guest whose address is moving keeps no tag, and would get the same document at once.
            let is_new = status == 200 && self.tag.is_some();
            let has_waited = waits && status == 304;
            if !(is_new || has_waited) {
                pause(POLL_PAUSE, "a guest polls a few times a second");
            }
        }
    }

    fn poll(&mut self, node: usize, waits: bool) -> u16 {
        let shared = &self.shared;
        let moves = shared.fleet.moves(self.number);
        let scope = shared.fleet.vms[shared.fleet.owner(self.number)].scope;
        self.tag = self.tag.filter(|_| self.moves == moves);
        self.moves = moves;
        let tag = self.tag.map(|tag| format!("If-None-Match: {tag}\r\n")).unwrap_or_default();
        let wait = if waits { format!("Prefer: wait={WAIT_SECONDS}\r\n") } else { String::new() };
        let request = format!(
            "GET {EVENTS} HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nConnection: close\r\n{tag}{wait}\r\n"
        );
        let limit = if waits { POLL_MAX + Duration::from_secs(WAIT_SECONDS) } else { POLL_MAX };
        let begun = shared.history.now();
        let answer = exchange_within(guest_address(self.number), shared.nodes[node].guest(), &request, limit);
        let ended = shared.history.now();
        let status = answer.as_ref().map_or(0, |answer| answer.status);
        let document = answer.ok().filter(|answer| answer.status == 200).map(|answer| document(&answer));
        let poll = Poll {
            guest: self.number,
            scope: shared.fleet.scopes[scope].clone(),
            node,
            tag: self.tag,
            begun,
            ended,
            status,
            document: document.clone(),
        };
        shared.history.record(Record::Poll(poll));
        let stays = moves.is_multiple_of(2) && shared.fleet.moves(self.number) == moves;
        if let Some(document) = document.filter(|_| stays) {
            self.tag = Some(document.incarnation);
            let mut scheduled = document.events.iter().filter(|event| event.status == "Scheduled");
            if let Some(event) = scheduled.next_back().map(|event| event.id)
                && self.random.chance(15)
            {
                self.approve(event);
            }
        }
        status
    }

    fn approve(&mut self, event: Uuid) {
        let body = json!({"StartRequests": [{"EventId": event.to_string()}]}).to_string();
        let change = Change { method: "POST", target: String::new(), body, guest: Some(self.number) };
        let node = self.random.index(self.shared.nodes.len());
        let key = format!("g{}-{}", self.number, self.random.next());
        self.shared.attempt(
            node,
            &key,
            false,
            &Command::GuestApproval { guest: self.number, event },
            &change,
        );
    }
}

pub fn document(answer: &Answer) -> Document {
    let shown = answer.json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let event = |event: &Value| DocumentEvent {
        id: text(&event["EventId"]).parse().unwrap(),
        status: text(&event["EventStatus"]),
        not_before: text(&event["NotBefore"]),
        description: text(&event["Description"]),
        resources: event["Resources"].as_array().into_iter().flatten().map(text).collect(),
    };
    Document {
        incarnation: shown["DocumentIncarnation"].as_u64().unwrap(),
        events: shown["Events"].as_array().unwrap().iter().map(event).collect(),
    }
}

/// The document of a guest at a node, without a tag.
pub fn read_document(shared: &Shared, guest: usize, node: usize) -> Option<Document> {
    let request = format!("GET {EVENTS} HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nConnection: close\r\n\r\n");
    let answer =
        exchange_within(guest_address(guest), shared.nodes[node].guest(), &request, POLL_MAX).ok()?;
    (answer.status == 200).then(|| document(&answer))
}

struct Client {
    number: usize,
    shared: Arc<Shared>,
    random: Random,
    count: usize,
    /// Own events that are live, as far as the client knows.
    events: Vec<Uuid>,
    /// Own VMs: id and name.
    added: Vec<(Uuid, String)>,
    /// The last acknowledged commands, to repeat them.
    acknowledged: Vec<(String, Command, Change, Made)>,
    restores: usize,
}

impl Client {
    fn new(number: usize, shared: Arc<Shared>, random: Random) -> Self {
        let (events, added, acknowledged) = (Vec::new(), Vec::new(), Vec::new());
        Self { number, shared, random, count: 0, events, added, acknowledged, restores: 0 }
    }

    fn run(&mut self) {
        while !self.shared.stop.load(Ordering::SeqCst) {
            let restores = self.shared.restores.load(Ordering::SeqCst);
            if restores != self.restores {
                self.restores = restores;
                (self.events, self.added, self.acknowledged) = (Vec::new(), Vec::new(), Vec::new());
            }
            self.step();
            pause(COMMAND_PAUSE, "the rate of a client");
        }
    }

    fn step(&mut self) {
        self.count += 1;
        match self.random.within(0..=99) {
            0..=34 if self.events.len() < LIVE_MAX => self.schedule(),
            35..=49 => self.set_notice(),
            50..=64 => self.change_vms(),
            65..=74 => self.repeat(),
            _ => self.change_event(),
        }
    }

    fn schedule(&mut self) {
        const CAUSES: [&str; 5] =
            ["host-freeze", "host-reboot", "host-redeploy", "user-restart", "host-failure"];
        let scope = self.random.index(self.shared.fleet.scopes.len());
        let vms = self.shared.fleet.of(scope);
        let vm = *self.random.pick(&vms);
        let tag = format!("c{}-{} {}", self.number, self.count, self.shared.fleet.scopes[scope]);
        let cause = self.random.pick::<&str>(&CAUSES);
        let change = Change::schedule(cause, &[vm], &tag);
        if let Some(made) = self.send(Command::Schedule { tag }, change) {
            self.events.extend(made.events);
        }
    }

    fn change_event(&mut self) {
        if self.events.is_empty() {
            return;
        }
        let place = self.random.index(self.events.len());
        let event = self.events[place];
        let verb = *self.random.pick(&[Verb::Approve, Verb::Cancel, Verb::Start, Verb::Complete]);
        let target = format!("/v1/events/{event}/{}", verb.name());
        let change = Change { method: "POST", target, body: String::new(), guest: None };
        let is_done = self.send(Command::Event { event, verb }, change).is_some();
        // Of events that refuse a change, some have ended.
        if !is_done && verb != Verb::Complete
            || matches!(verb, Verb::Cancel)
            || is_done && verb == Verb::Complete
        {
            self.events.retain(|own| *own != event);
        }
    }

    fn set_notice(&mut self) {
        let scope = pool(self.number);
        // Each client counts up, so a value returns after 599 commands. The longest notification is 15 minutes.
        let seconds = 301 + u32::try_from(self.count % 599).unwrap();
        let body =
            json!({"kind": "scale-set", "policy": {"terminate_notification_seconds": seconds}}).to_string();
        let change = Change { method: "PUT", target: format!("/v1/scopes/{scope}"), body, guest: None };
        self.send(Command::SetNotice { scope, seconds }, change);
    }

    fn change_vms(&mut self) {
        if self.added.len() < ADDED_MAX {
            let name = format!("pool-{}_{}", self.number, self.count);
            let body = json!({"scope": pool(self.number), "vm": {"name": name, "addresses": []}}).to_string();
            let change = Change { method: "POST", target: "/v1/vms".to_owned(), body, guest: None };
            if let Some(Made { id: Some(id), .. }) = self.send(Command::AddVm { name: name.clone() }, change)
            {
                self.added.push((id, name));
            }
        } else {
            let place = self.random.index(self.added.len());
            let (id, name) = self.added.swap_remove(place);
            let target = format!("/v1/vms/{id}");
            let change = Change { method: "DELETE", target, body: String::new(), guest: None };
            self.send(Command::RemoveVm { name }, change);
        }
    }

    /// Sends an acknowledged command again, once.
    fn repeat(&mut self) {
        if self.acknowledged.is_empty() {
            return;
        }
        let place = self.random.index(self.acknowledged.len());
        let (key, command, change, _) = &self.acknowledged[place];
        // A VM that was removed since cannot be returned again.
        if !matches!(command, Command::AddVm { .. }) {
            let node = self.random.index(self.shared.nodes.len());
            self.shared.attempt(node, key, true, command, change);
        }
    }

    /// Sends a command until it is answered.
    fn send(&mut self, command: Command, change: Change) -> Option<Made> {
        let key = format!("c{}-{}", self.number, self.count);
        let made = send(&self.shared, &mut self.random, &key, &command, &change)?;
        self.acknowledged.push((key, command, change, made.clone()));
        if self.acknowledged.len() > 50 {
            self.acknowledged.remove(0);
        }
        Some(made)
    }
}

/// Sends a command through any node until it is answered; none if it is refused.
pub fn send(
    shared: &Shared,
    random: &mut Random,
    key: &str,
    command: &Command,
    change: &Change,
) -> Option<Made> {
    super::eventually(&format!("an answer to {key}, {command:?}"), || {
        let node = random.index(shared.nodes.len());
        match shared.attempt(node, key, false, command, change) {
            Outcome::Acknowledged(made) => Some(Some(made)),
            Outcome::Refused { .. } => Some(None),
            Outcome::NotSent | Outcome::Unanswered | Outcome::Unavailable { .. } => {
                pause(POLL_PAUSE, "the pause of a client before another attempt");
                None
            }
        }
    })
}
