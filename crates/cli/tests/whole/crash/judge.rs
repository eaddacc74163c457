//! Compares the service's state after a restart with the responses that clients received before it.
//!
//! | claim | check |
//! |---|---|
//! | no acknowledged command is missing | its operation's events, the fact in its event's trail, its VM, its setting are there |
//! | none is applied twice | one operation a tag; every event belongs to an acknowledged command, or to the one in doubt; no trail has a fact twice; a repeated setting is not applied again |
//! | a refused one had no effect | nothing carries its tag |
//! | nothing is reverted | no event and no incarnation is older than one read before; one incarnation is one document |
//!
//! Timers run while the judge reads, so it checks only lasting properties: a known event is live or ended, an
//! acknowledged approval is in the trail. A check costs as much as has changed since the last one; the final check
//! reads everything.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use notbefore_wire::operator as wire;
use uuid::Uuid;

use super::client::{Client, check_follows, read_document};
use super::fleet::Fleet;
use super::http::{self, Endpoints, Operator};
use super::ledger::{CommandKind, Document, Found, Outcome, Rank, TAG, Verb, Violation};

/// Ended events are listed by end time, which may be slightly before their commit.
const HISTORY_OVERLAP: SignedDuration = SignedDuration::from_secs(5);
/// Responses have times in whole seconds, rounded down.
const DATE_STEP: SignedDuration = SignedDuration::from_secs(1);

/// Counts of verified items, so that a test without checks fails.
#[derive(Debug, Default)]
pub struct Tally {
    pub acknowledged: usize,
    pub refused: usize,
    pub in_doubt: usize,
    /// Commands in doubt that had taken effect.
    pub landed: usize,
    /// Commands in doubt that had no effect.
    pub lost: usize,
    pub trails: usize,
    pub documents: usize,
}

/// Effects of acknowledged commands that an event must show.
#[derive(Clone, Copy, Default)]
struct Expected {
    /// When its approval was first acknowledged, by the service's clock.
    approved_at: Option<Timestamp>,
    /// Whether an approval without an answer may have landed.
    may_be_approved: bool,
    cancelled: bool,
    started: bool,
    completed: bool,
}

/// A VM that a client added.
struct Added {
    name: String,
    address: Ipv4Addr,
    removed: bool,
}

pub struct Judge {
    fleet: Arc<Fleet>,
    /// Number of settled commands of each client that are already collected.
    taken: Vec<usize>,
    /// Acknowledged operations: the idempotency key and the events of each.
    operations: HashMap<Uuid, (String, BTreeSet<Uuid>)>,
    tag_of: HashMap<Uuid, String>,
    refused_tags: HashSet<String>,
    expected: HashMap<Uuid, Expected>,
    added: HashMap<Uuid, Added>,
    notices: HashMap<String, u32>,
    /// The newest version of every event that was read.
    events: HashMap<Uuid, wire::Event>,
    documents: HashMap<String, Document>,
    newest_end: Option<Timestamp>,
    pub tally: Tally,
}

/// Changes since the last check.
#[derive(Default)]
struct Changes {
    operations: Vec<Uuid>,
    events: HashSet<Uuid>,
    vms: HashSet<Uuid>,
}

type CheckResult = Result<(), Violation>;

fn ensure(holds: bool, about: impl ToString, text: impl FnOnce() -> String) -> CheckResult {
    if holds { Ok(()) } else { Err(Violation::new(about, text())) }
}

impl Judge {
    pub fn new(fleet: Arc<Fleet>, clients: usize) -> Self {
        Self {
            fleet,
            taken: vec![0; clients],
            operations: HashMap::new(),
            tag_of: HashMap::new(),
            refused_tags: HashSet::new(),
            expected: HashMap::new(),
            added: HashMap::new(),
            notices: HashMap::new(),
            events: HashMap::new(),
            documents: HashMap::new(),
            newest_end: None,
            tally: Tally::default(),
        }
    }

    /// Checks a service that has just restarted.
    pub fn check(&mut self, endpoints: &Endpoints, clients: &mut [Client]) -> CheckResult {
        let mut operator = Operator::new(endpoints);
        let changes = self.collect_settled(clients)?;
        self.read_events(&mut operator, self.newest_end)?;
        self.check_attribution(clients)?;
        for operation in &changes.operations {
            self.check_operation(*operation)?;
        }
        for event in &changes.events {
            let shown = operator.read(&format!("/v1/events/{event}"));
            self.check_trail(&shown)?;
        }
        self.check_reads(clients)?;
        self.check_documents(endpoints, clients)?;
        self.check_vms(&mut operator, endpoints, clients, &changes.vms)?;
        self.check_notices(&mut operator, clients)?;
        self.check_unknown_outcomes(&mut operator, clients);
        Ok(())
    }

    /// Checks everything; no command may be in doubt.
    pub fn check_all(&mut self, endpoints: &Endpoints, clients: &mut [Client]) -> CheckResult {
        self.check(endpoints, clients)?;
        let mut operator = Operator::new(endpoints);
        let known: HashSet<Uuid> = self.events.keys().copied().collect();
        let read = self.read_events(&mut operator, None)?;
        if let Some(gone) = known.difference(&read).next() {
            return Err(Violation::new(gone, "was read before and is neither live nor in the history"));
        }
        for operation in self.operations.keys().copied().collect::<Vec<_>>() {
            self.check_operation(operation)?;
            let shown: wire::Operation = operator.read(&format!("/v1/operations/{operation}"));
            let (_, targets) = &self.operations[&operation];
            let same = shown.targets.iter().map(|target| target.event).collect::<BTreeSet<_>>() == *targets;
            ensure(same, operation, || format!("acknowledged with {targets:?}, is now {shown:?}"))?;
        }
        for event in known {
            let shown: wire::Event = operator.read(&format!("/v1/events/{event}"));
            self.check_trail(&shown)?;
            self.check_no_other_actor(&shown)?;
        }
        Ok(())
    }

    /// Collects the clients' new commands: the service must keep the acknowledged ones from now on.
    fn collect_settled(&mut self, clients: &[Client]) -> Result<Changes, Violation> {
        let mut changes = Changes::default();
        for (client, taken) in clients.iter().zip(&mut self.taken) {
            for command in &client.ledger.settled[*taken..] {
                let (at, answer) = match &command.outcome {
                    Outcome::Acknowledged { at, answer } => (*at, answer),
                    Outcome::Refused => {
                        self.tally.refused += 1;
                        if let CommandKind::Schedule { tag } = &command.what {
                            self.refused_tags.insert(tag.clone());
                        }
                        // The approval may have landed and ended its VM, which was refused when it repeated it.
                        if let CommandKind::GuestApproval { event, .. } = &command.what
                            && command.log.iter().any(|line| line.contains("Unanswered"))
                        {
                            self.expected.entry(*event).or_default().may_be_approved = true;
                        }
                        continue;
                    }
                    Outcome::InDoubt => continue,
                };
                self.tally.acknowledged += 1;
                match &command.what {
                    CommandKind::Schedule { .. } | CommandKind::Act { .. } => {
                        let made = answer.id.unwrap_or_default();
                        let owned = (command.key.clone(), answer.targets.iter().copied().collect());
                        let other = self.operations.insert(made, owned).map(|(key, _)| key);
                        ensure(other.is_none(), made, || {
                            format!("answers two commands, the other {other:?}")
                        })?;
                        if let CommandKind::Schedule { tag } = &command.what {
                            self.tag_of.insert(made, tag.clone());
                        }
                        changes.operations.push(made);
                    }
                    CommandKind::Event { event, verb } => {
                        let expected = self.expected.entry(*event).or_default();
                        match verb {
                            Verb::Approve => expected.approved_at = expected.approved_at.or(Some(at)),
                            Verb::Cancel => expected.cancelled = true,
                            Verb::Start => expected.started = true,
                            Verb::Complete => expected.completed = true,
                        }
                        changes.events.insert(*event);
                    }
                    CommandKind::GuestApproval { event, .. } => {
                        let expected = self.expected.entry(*event).or_default();
                        expected.approved_at = expected.approved_at.or(Some(at));
                        changes.events.insert(*event);
                    }
                    CommandKind::AddVm { name, address } => {
                        let vm = answer.id.unwrap_or_default();
                        let added = Added { name: name.clone(), address: *address, removed: false };
                        let twice = self.added.insert(vm, added).is_some();
                        ensure(!twice, vm, || "answers two commands".to_owned())?;
                        changes.vms.insert(vm);
                    }
                    CommandKind::RemoveVm { vm } => {
                        let known = self.added.get_mut(vm).map(|added| added.removed = true);
                        ensure(known.is_some(), vm, || "was removed and never added".to_owned())?;
                        changes.vms.insert(*vm);
                    }
                    CommandKind::SetNotice { scope, seconds } => {
                        self.notices.insert(scope.clone(), *seconds);
                    }
                }
            }
            *taken = client.ledger.settled.len();
        }
        Ok(changes)
    }

    /// Reads all live events, and those that ended since; no event may lose progress. Live events are read first, so
    /// that an event that ends meanwhile is read twice instead of never.
    fn read_events(
        &mut self,
        operator: &mut Operator,
        since: Option<Timestamp>,
    ) -> Result<HashSet<Uuid>, Violation> {
        let live: Vec<wire::Event> = operator.read_all("/v1/events?");
        let since = since.map(|at| format!("since={}", at - HISTORY_OVERLAP)).unwrap_or_default();
        let ended: Vec<wire::Event> = operator.read_all(&format!("/v1/history?{since}"));
        let mut once = HashSet::new();
        for event in &ended {
            ensure(once.insert(event.id), event.id, || "is in the history twice".to_owned())?;
        }
        let mut read = HashSet::new();
        for event in live.into_iter().chain(ended) {
            if let Some(before) = self.events.get(&event.id) {
                let forward = Rank::of(&event) >= Rank::of(before);
                ensure(forward, event.id, || format!("went back from {before:?} to {event:?}"))?;
            }
            self.newest_end = self.newest_end.max(event.ended_at);
            read.insert(event.id);
            self.events.insert(event.id, event);
        }
        Ok(read)
    }

    /// Every event belongs to an acknowledged command, or to one in doubt.
    fn check_attribution(&self, clients: &mut [Client]) -> CheckResult {
        let mut operation_of_tag: HashMap<&str, Uuid> = HashMap::new();
        for event in self.events.values() {
            let id = event.id;
            if event.description.starts_with(TAG) {
                let first = *operation_of_tag.entry(&event.description).or_insert(event.operation);
                let twice = || format!("applied twice: operations {first} and {}", event.operation);
                ensure(first == event.operation, &event.description, twice)?;
                let refused = self.refused_tags.contains(&event.description);
                ensure(!refused, &event.description, || format!("was refused and made event {id}"))?;
            }
            if let Some((key, targets)) = self.operations.get(&event.operation) {
                let own = targets.contains(&id);
                ensure(own, id, || format!("is not one of the events of {key}: {targets:?}"))?;
                continue;
            }
            let asked =
                clients.iter_mut().filter_map(|client| client.ledger.in_doubt.as_mut()).find(|in_doubt| {
                    match &in_doubt.what {
                        CommandKind::Schedule { tag } => *tag == event.description,
                        CommandKind::Act { vm, cause } => {
                            event.cause.as_str() == *cause
                                && event.resources.iter().all(|one| one.vm == *vm)
                                && !event.description.starts_with(TAG)
                        }
                        CommandKind::Event { .. }
                        | CommandKind::GuestApproval { .. }
                        | CommandKind::AddVm { .. }
                        | CommandKind::RemoveVm { .. }
                        | CommandKind::SetNotice { .. } => false,
                    }
                });
            match asked {
                None => return Err(Violation::new(id, format!("not requested by any command: {event:?}"))),
                Some(in_doubt) => match in_doubt.found {
                    Found::Nothing => in_doubt.found = Found::Landed(Some(event.operation)),
                    Found::Landed(found) => {
                        let same = found == Some(event.operation);
                        let twice = || format!("applied twice: operations {found:?} and {}", event.operation);
                        ensure(same, &in_doubt.key, twice)?;
                    }
                },
            }
        }
        Ok(())
    }

    /// An acknowledged operation has each of its events, once a scope, update domain and, where each VM has
    /// its own, VM.
    fn check_operation(&self, operation: Uuid) -> CheckResult {
        let (key, targets) = &self.operations[&operation];
        ensure(!targets.is_empty(), key, || {
            format!("operation {operation} was acknowledged without events")
        })?;
        let mut places = HashSet::new();
        for target in targets {
            let Some(event) = self.events.get(target) else {
                let text = format!("acknowledged and missing: event {target} of operation {operation}");
                return Err(Violation::new(key, text));
            };
            let tag = self.tag_of.get(&operation);
            let tagged = tag.is_none_or(|tag| *tag == event.description);
            ensure(tagged && event.operation == operation, key, || format!("has become another: {event:?}"))?;
            let vms: Vec<Uuid> = event.resources.iter().map(|one| one.vm).collect();
            let first = places.insert((event.scope.clone(), event.update_domain, vms));
            ensure(first, key, || format!("has two events in one place, one of them {event:?}"))?;
        }
        Ok(())
    }

    /// An event's trail is consistent, and has every acknowledged change.
    fn check_trail(&mut self, event: &wire::Event) -> CheckResult {
        self.tally.trails += 1;
        let count = |fact: &str| event.trail.iter().filter(|entry| entry.what.kind() == fact).count();
        let counts = ["EventScheduled", "EventApproved", "EventReleased", "EventStarted"].map(count);
        let (completed, cancelled) = (count("EventCompleted"), count("EventCancelled"));
        let [scheduled, approved, _, started] = counts;
        let wrong = |what: &str| {
            let line = |entry: &wire::Fact| format!("{} {} by {}", entry.at, entry.what.kind(), entry.by);
            let trail: Vec<String> = event.trail.iter().map(line).collect();
            format!("{what}: {} with the trail {}", event.status, trail.join(", "))
        };
        let once = counts.iter().all(|count| *count <= 1) && scheduled == 1 && completed + cancelled <= 1;
        ensure(once, event.id, || wrong("has a fact twice, or lacks its first fact"))?;
        let ends = match event.status {
            wire::EventStatus::Completed => (completed, cancelled, started) == (1, 0, 1),
            wire::EventStatus::Cancelled => (completed, cancelled, started) == (0, 1, 0),
            wire::EventStatus::Started => (completed, cancelled, started) == (0, 0, 1),
            wire::EventStatus::Scheduled | wire::EventStatus::Advisory => {
                (completed, cancelled, started) == (0, 0, 0)
            }
            wire::EventStatus::Unknown(_) => false,
        };
        ensure(ends, event.id, || wrong("its status is not what its trail says"))?;
        let order = event.trail.iter().is_sorted_by_key(|entry| match entry.what.kind().as_str() {
            "EventScheduled" => 0,
            "EventApproved" | "EventReleased" => 1,
            "EventStarted" => 2,
            _ => 3,
        });
        ensure(order, event.id, || wrong("its trail is out of order"))?;

        let Expected { approved_at, may_be_approved: _, cancelled, started, completed } =
            self.expected.get(&event.id).copied().unwrap_or_default();
        if let Some(at) = approved_at {
            // An approval of a started or ended event adds no fact; an earlier approval always does.
            let too_late = event.trail.iter().any(|entry| {
                let over = matches!(
                    entry.what.kind().as_str(),
                    "EventStarted" | "EventCancelled" | "EventCompleted"
                );
                over && entry.at < at + DATE_STEP
            });
            let kept = approved == 1 || too_late;
            ensure(kept, event.id, || wrong(&format!("the approval acknowledged at {at} is missing")))?;
        }
        let rank = Rank::of(event);
        ensure(!cancelled || event.status == wire::EventStatus::Cancelled, event.id, || {
            wrong("the cancel is missing")
        })?;
        ensure(!started || rank >= Rank::Started, event.id, || wrong("the start is missing"))?;
        ensure(!completed || event.status == wire::EventStatus::Completed, event.id, || {
            wrong("the completion is missing")
        })
    }

    /// Every fact of a client in a trail was acknowledged. Valid only if no command is in doubt.
    fn check_no_other_actor(&self, event: &wire::Event) -> CheckResult {
        let expected = self.expected.get(&event.id).copied().unwrap_or_default();
        for entry in event.trail.iter().filter(|entry| entry.by.kind != wire::ActorKind::Timer) {
            #[allow(clippy::wildcard_enum_match_arm, reason = "no client does anything else")]
            let acknowledged = match &entry.what {
                wire::FactDetail::EventApproved { .. } => {
                    expected.approved_at.is_some() || expected.may_be_approved
                }
                wire::FactDetail::EventCancelled { why: None, .. } => expected.cancelled,
                wire::FactDetail::EventStarted { .. } if is_forced(entry) => expected.started,
                wire::FactDetail::EventCompleted { .. } if is_by_token(entry) => expected.completed,
                _ => true,
            };
            ensure(acknowledged, event.id, || format!("not acknowledged: {entry:?}"))?;
        }
        Ok(())
    }

    /// Every event that a client read before the crash exists, with at least the same progress.
    fn check_reads(&self, clients: &mut [Client]) -> CheckResult {
        for client in clients {
            for (event, seen) in client.ledger.seen.drain() {
                let now = self.events.get(&event).map(Rank::of);
                ensure(now >= Some(seen), event, || format!("was read as {seen:?} and is {now:?}"))?;
            }
        }
        Ok(())
    }

    fn check_documents(&mut self, endpoints: &Endpoints, clients: &[Client]) -> CheckResult {
        for scope in &self.fleet.scopes {
            let Some(vm) = self.fleet.of(scope).next() else { continue };
            let reply =
                http::poll(endpoints, vm.address).map_err(|why| Violation::new(scope, format!("{why:?}")))?;
            let (now, _) = read_document(&reply).map_err(|text| Violation::new(scope, text))?;
            let read = clients.iter().map(|client| client.ledger.documents.get(scope));
            for before in read.chain([self.documents.get(scope)]) {
                check_follows(before, &now).map_err(|text| Violation::new(scope, text))?;
                self.tally.documents += 1;
            }
            self.documents.insert(scope.clone(), now);
        }
        Ok(())
    }

    /// Exactly the VMs that were added and not removed exist, with their addresses.
    fn check_vms(
        &self,
        operator: &mut Operator,
        endpoints: &Endpoints,
        clients: &[Client],
        changes: &HashSet<Uuid>,
    ) -> CheckResult {
        let listed: Vec<wire::Vm> = operator.read_all("/v1/vms?");
        let present: HashSet<Uuid> = listed.iter().map(|vm| vm.id).collect();
        let unanswered = || {
            clients.iter().filter_map(|client| client.ledger.in_doubt.as_ref()).map(|in_doubt| &in_doubt.what)
        };
        for vm in &listed {
            let being_added =
                |what: &CommandKind| matches!(what, CommandKind::AddVm { name, .. } if *name == vm.name);
            let known =
                self.fleet.has(vm.id) || self.added.contains_key(&vm.id) || unanswered().any(being_added);
            ensure(known, vm.id, || format!("not added by any client: {vm:?}"))?;
        }
        for vm in &self.fleet.vms {
            ensure(present.contains(&vm.id), vm.id, || "is gone, but no client removed it".to_owned())?;
        }
        for (vm, added) in &self.added {
            let mut deleted = self.deletions(*vm).any(|event| event.status == wire::EventStatus::Completed);
            let is_present = present.contains(vm);
            let gone = added.removed || deleted;
            ensure(!(is_present && gone), vm, || format!("{} was removed and is there", added.name))?;
            if !is_present && !gone {
                // The VM may have been deleted since the events were read.
                for event in self.deletions(*vm) {
                    let now: wire::Event = operator.read(&format!("/v1/events/{}", event.id));
                    deleted |= now.status == wire::EventStatus::Completed;
                }
                let being_removed = unanswered().any(|what| *what == CommandKind::RemoveVm { vm: *vm });
                let missing = || format!("{} was added and is missing", added.name);
                ensure(deleted || being_removed, vm, missing)?;
            }
            if changes.contains(vm) && self.deletions(*vm).next().is_none() {
                let reply = http::poll(endpoints, added.address);
                let status = reply.map(|reply| reply.status).unwrap_or(0);
                let expected = if is_present { 200 } else { 403 };
                let text = || format!("{}'s address is answered {status}, not {expected}", added.name);
                ensure(status == expected, vm, text)?;
            }
        }
        Ok(())
    }

    /// The deletion events of a VM.
    fn deletions(&self, vm: Uuid) -> impl Iterator<Item = &wire::Event> {
        let touches = move |event: &wire::Event| event.resources.iter().any(|one| one.vm == vm);
        self.events.values().filter(move |event| event.cause == wire::Cause::Deletion && touches(event))
    }

    fn check_notices(&self, operator: &mut Operator, clients: &mut [Client]) -> CheckResult {
        let scopes: Vec<wire::Scope> = operator.read_all("/v1/scopes?");
        let set: HashMap<&str, Option<u32>> =
            scopes.iter().map(|one| (one.path.as_str(), one.policy.terminate_notification_seconds)).collect();
        for (scope, expected) in &self.notices {
            let now = set.get(scope.as_str()).copied().flatten();
            let in_doubt = clients.iter().filter_map(|client| client.ledger.in_doubt.as_ref()).any(|in_doubt| {
                matches!(&in_doubt.what, CommandKind::SetNotice { scope: of, seconds } if of == scope && Some(*seconds) == now)
            });
            let kept = now == Some(*expected) || in_doubt;
            ensure(kept, scope, || format!("its notification was set to {expected} and is {now:?}"))?;
        }
        Ok(())
    }

    /// Finds out which commands in doubt took effect. Their clients then know which response to a repeat is correct.
    fn check_unknown_outcomes(&mut self, operator: &mut Operator, clients: &mut [Client]) {
        let unanswered = clients.iter_mut().filter_map(|client| client.ledger.in_doubt.as_mut());
        for in_doubt in unanswered.filter(|in_doubt| !in_doubt.is_checked) {
            let mut trail = |event: &Uuid| operator.read::<wire::Event>(&format!("/v1/events/{event}")).trail;
            let expected = |event: &Uuid| self.expected.get(event).copied().unwrap_or_default();
            let landed = match &in_doubt.what {
                // Already found with the operation.
                CommandKind::Schedule { .. } | CommandKind::Act { .. } => {
                    matches!(in_doubt.found, Found::Landed(_))
                }
                CommandKind::Event { event, verb: Verb::Approve }
                | CommandKind::GuestApproval { event, .. } => {
                    let approved = trail(event).iter().any(|entry| entry.what.kind() == "EventApproved");
                    approved && expected(event).approved_at.is_none()
                }
                CommandKind::Event { event, verb: Verb::Cancel } => trail(event)
                    .iter()
                    .any(|entry| entry.what.kind() == "EventCancelled" && is_by_token(entry)),
                CommandKind::Event { event, verb: Verb::Start } => trail(event).iter().any(is_forced),
                CommandKind::Event { event, verb: Verb::Complete } => trail(event)
                    .iter()
                    .any(|entry| entry.what.kind() == "EventCompleted" && is_by_token(entry)),
                CommandKind::AddVm { name, .. } => {
                    let vms: Vec<wire::Vm> = operator.read_all("/v1/vms?");
                    let made = vms.into_iter().find(|vm| vm.name == *name).map(|vm| vm.id);
                    in_doubt.found = made.map_or(in_doubt.found, |id| Found::Landed(Some(id)));
                    made.is_some()
                }
                CommandKind::RemoveVm { vm } => {
                    let reply = operator.request("GET", &format!("/v1/vms/{vm}"), "", "");
                    // The service may have removed a VM whose deletion was scheduled.
                    reply.is_ok_and(|reply| reply.status == 404) && self.deletions(*vm).next().is_none()
                }
                CommandKind::SetNotice { scope, seconds } => {
                    let shown: wire::Scope = operator.read(&format!("/v1/scopes/{scope}"));
                    shown.policy.terminate_notification_seconds == Some(*seconds)
                }
            };
            in_doubt.is_checked = true;
            self.tally.in_doubt += 1;
            match (landed, in_doubt.found) {
                (true, Found::Nothing) => {
                    self.tally.landed += 1;
                    in_doubt.found = Found::Landed(None);
                }
                (true, Found::Landed(_)) => self.tally.landed += 1,
                (false, _) => self.tally.lost += 1,
            }
        }
    }
}

fn is_by_token(fact: &wire::Fact) -> bool {
    fact.by.kind == wire::ActorKind::Token
}

fn is_forced(fact: &wire::Fact) -> bool {
    matches!(&fact.what, wire::FactDetail::EventStarted { why, .. } if why == "started by an operator")
}
