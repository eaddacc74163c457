//! Compares the service's state after a restart with the responses that clients received before it.
//!
//! | claim | check |
//! |---|---|
//! | no acknowledged command is missing | its operation's events, the fact in its event's trail, its VM, its setting are there |
//! | none is applied twice | one operation a tag; every event belongs to an acknowledged command, or to the one in doubt that its client still asks about; no trail has a fact twice; a repeated setting does not come back |
//! | a refused one had no effect | nothing carries its tag |
//! | nothing goes back | no event and no incarnation is older than one read before; one incarnation is one document |
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

use super::client::{Client, follows, read_document};
use super::fleet::Fleet;
use super::http::{self, Endpoints, Operator};
use super::ledger::{Document, Found, Rank, Standing, TAG, Verb, Violation, What};

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
    /// Commands in doubt whose effect was there after the restart.
    pub landed: usize,
    /// Commands in doubt of which there was nothing.
    pub lost: usize,
    pub trails: usize,
    pub documents: usize,
}

/// Effects of acknowledged commands that an event must show.
#[derive(Clone, Copy, Default)]
struct Owed {
    /// When its approval was first acknowledged, by the service's clock.
    approved_at: Option<Timestamp>,
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
    /// How many settled commands of each client are taken over.
    taken: Vec<usize>,
    /// Acknowledged operations: by which key, and of which events.
    operations: HashMap<Uuid, (String, BTreeSet<Uuid>)>,
    tag_of: HashMap<Uuid, String>,
    refused_tags: HashSet<String>,
    owed: HashMap<Uuid, Owed>,
    added: HashMap<Uuid, Added>,
    notices: HashMap<String, u32>,
    /// Every event that was ever read, as it was last.
    events: HashMap<Uuid, wire::Event>,
    documents: HashMap<String, Document>,
    newest_end: Option<Timestamp>,
    pub tally: Tally,
}

/// Changes since the last check.
#[derive(Default)]
struct News {
    operations: Vec<Uuid>,
    events: HashSet<Uuid>,
    vms: HashSet<Uuid>,
}

type CheckResult = Result<(), Violation>;

fn demand(holds: bool, about: impl ToString, text: impl FnOnce() -> String) -> CheckResult {
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
            owed: HashMap::new(),
            added: HashMap::new(),
            notices: HashMap::new(),
            events: HashMap::new(),
            documents: HashMap::new(),
            newest_end: None,
            tally: Tally::default(),
        }
    }

    /// Looks at a service that has just come back.
    pub fn check(&mut self, endpoints: &Endpoints, clients: &mut [Client]) -> CheckResult {
        let mut operator = Operator::new(endpoints);
        let news = self.take_over(clients)?;
        self.read_events(&mut operator, self.newest_end)?;
        self.check_attribution(clients)?;
        for operation in &news.operations {
            self.check_operation(*operation)?;
        }
        for event in &news.events {
            let shown = operator.read(&format!("/v1/events/{event}"));
            self.check_trail(&shown)?;
        }
        self.check_reads(clients)?;
        self.check_documents(endpoints, clients)?;
        self.check_vms(&mut operator, endpoints, clients, &news.vms)?;
        self.check_notices(&mut operator, clients)?;
        self.check_unknown_outcomes(&mut operator, clients);
        Ok(())
    }

    /// Looks at everything once more, when nothing is in doubt.
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
            demand(same, operation, || format!("acknowledged with {targets:?}, is now {shown:?}"))?;
        }
        for event in known {
            let shown: wire::Event = operator.read(&format!("/v1/events/{event}"));
            self.check_trail(&shown)?;
            self.check_no_other_actor(&shown)?;
        }
        Ok(())
    }

    /// Takes the clients' new stories over: what is acknowledged is owed from now on.
    fn take_over(&mut self, clients: &[Client]) -> Result<News, Violation> {
        let mut news = News::default();
        for (client, taken) in clients.iter().zip(&mut self.taken) {
            for command in &client.ledger.settled[*taken..] {
                let (at, answer) = match &command.standing {
                    Standing::Acknowledged { at, answer } => (*at, answer),
                    Standing::Refused => {
                        self.tally.refused += 1;
                        if let What::Schedule { tag } = &command.what {
                            self.refused_tags.insert(tag.clone());
                        }
                        continue;
                    }
                    Standing::InDoubt => continue,
                };
                self.tally.acknowledged += 1;
                match &command.what {
                    What::Schedule { .. } | What::Act { .. } => {
                        let made = answer.id.unwrap_or_default();
                        let owned = (command.key.clone(), answer.targets.iter().copied().collect());
                        let other = self.operations.insert(made, owned).map(|(key, _)| key);
                        demand(other.is_none(), made, || {
                            format!("answers two commands, the other {other:?}")
                        })?;
                        if let What::Schedule { tag } = &command.what {
                            self.tag_of.insert(made, tag.clone());
                        }
                        news.operations.push(made);
                    }
                    What::Event { event, verb } => {
                        let owed = self.owed.entry(*event).or_default();
                        match verb {
                            Verb::Approve => owed.approved_at = owed.approved_at.or(Some(at)),
                            Verb::Cancel => owed.cancelled = true,
                            Verb::Start => owed.started = true,
                            Verb::Complete => owed.completed = true,
                        }
                        news.events.insert(*event);
                    }
                    What::GuestApproval { event, .. } => {
                        let owed = self.owed.entry(*event).or_default();
                        owed.approved_at = owed.approved_at.or(Some(at));
                        news.events.insert(*event);
                    }
                    What::AddVm { name, address } => {
                        let vm = answer.id.unwrap_or_default();
                        let added = Added { name: name.clone(), address: *address, removed: false };
                        let twice = self.added.insert(vm, added).is_some();
                        demand(!twice, vm, || "answers two commands".to_owned())?;
                        news.vms.insert(vm);
                    }
                    What::RemoveVm { vm } => {
                        let known = self.added.get_mut(vm).map(|added| added.removed = true);
                        demand(known.is_some(), vm, || "was removed and never added".to_owned())?;
                        news.vms.insert(*vm);
                    }
                    What::SetNotice { scope, seconds } => {
                        self.notices.insert(scope.clone(), *seconds);
                    }
                }
            }
            *taken = client.ledger.settled.len();
        }
        Ok(news)
    }

    /// Reads all that is live and what has ended since; no event may be behind what it was. Live ones come
    /// first, so that one that ends meanwhile is read twice rather than not at all.
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
            demand(once.insert(event.id), event.id, || "is in the history twice".to_owned())?;
        }
        let mut read = HashSet::new();
        for event in live.into_iter().chain(ended) {
            if let Some(before) = self.events.get(&event.id) {
                let forward = Rank::of(&event) >= Rank::of(before);
                demand(forward, event.id, || format!("went back from {before:?} to {event:?}"))?;
            }
            self.newest_end = self.newest_end.max(event.ended_at);
            read.insert(event.id);
            self.events.insert(event.id, event);
        }
        Ok(read)
    }

    /// Every event belongs to an acknowledged command, or to the one that a client still asks about.
    fn check_attribution(&self, clients: &mut [Client]) -> CheckResult {
        let mut operation_of_tag: HashMap<&str, Uuid> = HashMap::new();
        for event in self.events.values() {
            let id = event.id;
            if event.description.starts_with(TAG) {
                let first = *operation_of_tag.entry(&event.description).or_insert(event.operation);
                let twice = || format!("applied twice: operations {first} and {}", event.operation);
                demand(first == event.operation, &event.description, twice)?;
                let refused = self.refused_tags.contains(&event.description);
                demand(!refused, &event.description, || format!("was refused and made event {id}"))?;
            }
            if let Some((key, targets)) = self.operations.get(&event.operation) {
                let own = targets.contains(&id);
                demand(own, id, || format!("is not one of those that {key} was told of: {targets:?}"))?;
                continue;
            }
            let asked =
                clients.iter_mut().filter_map(|client| client.ledger.doubt.as_mut()).find(
                    |doubt| match &doubt.what {
                        What::Schedule { tag } => *tag == event.description,
                        What::Act { vm, cause } => {
                            event.cause.as_str() == *cause
                                && event.resources.iter().all(|one| one.vm == *vm)
                                && !event.description.starts_with(TAG)
                        }
                        What::Event { .. }
                        | What::GuestApproval { .. }
                        | What::AddVm { .. }
                        | What::RemoveVm { .. }
                        | What::SetNotice { .. } => false,
                    },
                );
            match asked {
                None => return Err(Violation::new(id, format!("not requested by any command: {event:?}"))),
                Some(doubt) => match doubt.found {
                    Found::Nothing => doubt.found = Found::Landed(Some(event.operation)),
                    Found::Landed(found) => {
                        let same = found == Some(event.operation);
                        let twice = || format!("applied twice: operations {found:?} and {}", event.operation);
                        demand(same, &doubt.key, twice)?;
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
        demand(!targets.is_empty(), key, || {
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
            demand(tagged && event.operation == operation, key, || format!("has become another: {event:?}"))?;
            let vms: Vec<Uuid> = event.resources.iter().map(|one| one.vm).collect();
            let first = places.insert((event.scope.clone(), event.update_domain, vms));
            demand(first, key, || format!("has two events in one place, one of them {event:?}"))?;
        }
        Ok(())
    }

    /// An event's trail holds together, and has what was acknowledged.
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
        demand(once, event.id, || wrong("has a fact twice, or none of its beginning"))?;
        let ends = match event.status {
            wire::EventStatus::Completed => (completed, cancelled, started) == (1, 0, 1),
            wire::EventStatus::Cancelled => (completed, cancelled, started) == (0, 1, 0),
            wire::EventStatus::Started => (completed, cancelled, started) == (0, 0, 1),
            wire::EventStatus::Scheduled => (completed, cancelled, started) == (0, 0, 0),
            wire::EventStatus::Unknown(_) => false,
        };
        demand(ends, event.id, || wrong("its status is not what its trail says"))?;
        let order = event.trail.iter().is_sorted_by_key(|entry| match entry.what.kind().as_str() {
            "EventScheduled" => 0,
            "EventApproved" | "EventReleased" => 1,
            "EventStarted" => 2,
            _ => 3,
        });
        demand(order, event.id, || wrong("its trail is out of order"))?;

        let Owed { approved_at, cancelled, started, completed } =
            self.owed.get(&event.id).copied().unwrap_or_default();
        if let Some(at) = approved_at {
            // An approval that came when the event had begun or ended leaves no fact; one that came before
            // does, however the event went on.
            let too_late = event.trail.iter().any(|entry| {
                let over = matches!(
                    entry.what.kind().as_str(),
                    "EventStarted" | "EventCancelled" | "EventCompleted"
                );
                over && entry.at < at + DATE_STEP
            });
            let kept = approved == 1 || too_late;
            demand(kept, event.id, || wrong(&format!("the approval acknowledged at {at} is missing")))?;
        }
        let rank = Rank::of(event);
        demand(!cancelled || event.status == wire::EventStatus::Cancelled, event.id, || {
            wrong("the cancel is missing")
        })?;
        demand(!started || rank >= Rank::Started, event.id, || wrong("the start is missing"))?;
        demand(!completed || event.status == wire::EventStatus::Completed, event.id, || {
            wrong("the completion is missing")
        })
    }

    /// Every fact of a client in a trail was acknowledged. Valid only if no command is in doubt.
    fn check_no_other_actor(&self, event: &wire::Event) -> CheckResult {
        let owed = self.owed.get(&event.id).copied().unwrap_or_default();
        for entry in event.trail.iter().filter(|entry| entry.by.kind != wire::ActorKind::Timer) {
            #[allow(clippy::wildcard_enum_match_arm, reason = "no client does anything else")]
            let acknowledged = match &entry.what {
                wire::What::EventApproved { .. } => owed.approved_at.is_some(),
                wire::What::EventCancelled { why: None, .. } => owed.cancelled,
                wire::What::EventStarted { .. } if is_forced(entry) => owed.started,
                wire::What::EventCompleted { .. } if is_by_token(entry) => owed.completed,
                _ => true,
            };
            demand(acknowledged, event.id, || format!("not acknowledged: {entry:?}"))?;
        }
        Ok(())
    }

    /// Nothing that a client read before the crash is missing or behind.
    fn check_reads(&self, clients: &mut [Client]) -> CheckResult {
        for client in clients {
            for (event, seen) in client.ledger.seen.drain() {
                let now = self.events.get(&event).map(Rank::of);
                demand(now >= Some(seen), event, || format!("was read as {seen:?} and is {now:?}"))?;
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
                follows(before, &now).map_err(|text| Violation::new(scope, text))?;
                self.tally.documents += 1;
            }
            self.documents.insert(scope.clone(), now);
        }
        Ok(())
    }

    /// The VMs that were added and not removed are there, with their addresses, and no others.
    fn check_vms(
        &self,
        operator: &mut Operator,
        endpoints: &Endpoints,
        clients: &[Client],
        news: &HashSet<Uuid>,
    ) -> CheckResult {
        let listed: Vec<wire::Vm> = operator.read_all("/v1/vms?");
        let present: HashSet<Uuid> = listed.iter().map(|vm| vm.id).collect();
        let doubts =
            || clients.iter().filter_map(|client| client.ledger.doubt.as_ref()).map(|doubt| &doubt.what);
        for vm in &listed {
            let being_added = |what: &What| matches!(what, What::AddVm { name, .. } if *name == vm.name);
            let known = self.fleet.has(vm.id) || self.added.contains_key(&vm.id) || doubts().any(being_added);
            demand(known, vm.id, || format!("not added by any client: {vm:?}"))?;
        }
        for vm in &self.fleet.vms {
            demand(present.contains(&vm.id), vm.id, || "is gone, but no client removed it".to_owned())?;
        }
        for (vm, added) in &self.added {
            let mut deleted = self.deletions(*vm).any(|event| event.status == wire::EventStatus::Completed);
            let is_present = present.contains(vm);
            let gone = added.removed || deleted;
            demand(!(is_present && gone), vm, || format!("{} was removed and is there", added.name))?;
            if !is_present && !gone {
                // It may have been deleted since the events were read.
                for event in self.deletions(*vm) {
                    let now: wire::Event = operator.read(&format!("/v1/events/{}", event.id));
                    deleted |= now.status == wire::EventStatus::Completed;
                }
                let being_removed = doubts().any(|what| *what == What::RemoveVm { vm: *vm });
                let missing = || format!("{} was added and is missing", added.name);
                demand(deleted || being_removed, vm, missing)?;
            }
            if news.contains(vm) && self.deletions(*vm).next().is_none() {
                let reply = http::poll(endpoints, added.address);
                let status = reply.map(|reply| reply.status).unwrap_or(0);
                let expected = if is_present { 200 } else { 403 };
                let text = || format!("{}'s address is answered {status}, not {expected}", added.name);
                demand(status == expected, vm, text)?;
            }
        }
        Ok(())
    }

    /// The events that delete a VM.
    fn deletions(&self, vm: Uuid) -> impl Iterator<Item = &wire::Event> {
        let touches = move |event: &wire::Event| event.resources.iter().any(|one| one.vm == vm);
        self.events.values().filter(move |event| event.cause == wire::Cause::Deletion && touches(event))
    }

    fn check_notices(&self, operator: &mut Operator, clients: &mut [Client]) -> CheckResult {
        let scopes: Vec<wire::Scope> = operator.read_all("/v1/scopes?");
        let set: HashMap<&str, Option<u32>> =
            scopes.iter().map(|one| (one.path.as_str(), one.policy.terminate_notification_seconds)).collect();
        for (scope, owed) in &self.notices {
            let now = set.get(scope.as_str()).copied().flatten();
            let in_doubt = clients.iter().filter_map(|client| client.ledger.doubt.as_ref()).any(|doubt| {
                matches!(&doubt.what, What::SetNotice { scope: of, seconds } if of == scope && Some(*seconds) == now)
            });
            let kept = now == Some(*owed) || in_doubt;
            demand(kept, scope, || format!("its notification was set to {owed} and is {now:?}"))?;
        }
        Ok(())
    }

    /// Finds out which of the commands in doubt have had their effect, so that their clients know what the
    /// answer must be when they ask again.
    fn check_unknown_outcomes(&mut self, operator: &mut Operator, clients: &mut [Client]) {
        let doubts = clients.iter_mut().filter_map(|client| client.ledger.doubt.as_mut());
        for doubt in doubts.filter(|doubt| !doubt.looked_for) {
            let mut trail = |event: &Uuid| operator.read::<wire::Event>(&format!("/v1/events/{event}")).trail;
            let owed = |event: &Uuid| self.owed.get(event).copied().unwrap_or_default();
            let landed = match &doubt.what {
                // Found already, with the operation.
                What::Schedule { .. } | What::Act { .. } => matches!(doubt.found, Found::Landed(_)),
                What::Event { event, verb: Verb::Approve } | What::GuestApproval { event, .. } => {
                    let approved = trail(event).iter().any(|entry| entry.what.kind() == "EventApproved");
                    approved && owed(event).approved_at.is_none()
                }
                What::Event { event, verb: Verb::Cancel } => trail(event)
                    .iter()
                    .any(|entry| entry.what.kind() == "EventCancelled" && is_by_token(entry)),
                What::Event { event, verb: Verb::Start } => trail(event).iter().any(is_forced),
                What::Event { event, verb: Verb::Complete } => trail(event)
                    .iter()
                    .any(|entry| entry.what.kind() == "EventCompleted" && is_by_token(entry)),
                What::AddVm { name, .. } => {
                    let vms: Vec<wire::Vm> = operator.read_all("/v1/vms?");
                    let made = vms.into_iter().find(|vm| vm.name == *name).map(|vm| vm.id);
                    doubt.found = made.map_or(doubt.found, |id| Found::Landed(Some(id)));
                    made.is_some()
                }
                What::RemoveVm { vm } => {
                    let reply = operator.ask("GET", &format!("/v1/vms/{vm}"), "", "");
                    // One that was to be deleted anyway may have gone by itself.
                    reply.is_ok_and(|reply| reply.status == 404) && self.deletions(*vm).next().is_none()
                }
                What::SetNotice { scope, seconds } => {
                    let shown: wire::Scope = operator.read(&format!("/v1/scopes/{scope}"));
                    shown.policy.terminate_notification_seconds == Some(*seconds)
                }
            };
            doubt.looked_for = true;
            self.tally.in_doubt += 1;
            match (landed, doubt.found) {
                (true, Found::Nothing) => {
                    self.tally.landed += 1;
                    doubt.found = Found::Landed(None);
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
    matches!(&fact.what, wire::What::EventStarted { why, .. } if why == "started by an operator")
}
