//! A client under load: schedules, restarts, approves, cancels, adds and removes as fast as it is answered, and records
//! requests and responses.
//!
//! An event is changed only by the client that scheduled it and by the service's timers; a pool of VMs only by its
//! owner. So each client knows the order of its commands, while scopes are shared by all. When a connection is cut, the
//! command in flight is in doubt. The client sends nothing else until that command is answered, in this round or a
//! later one.

use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use notbefore_wire::operator as wire;
use serde_json::{Value, json};
use uuid::Uuid;

use super::fleet::{Fleet, pool, pool_name};
use super::http::{self, Endpoints, NoResponse, Operator, Reply};
use super::ledger::{Answer, Command, CommandKind, Document, Found, Ledger, Outcome, Rank, TAG, Verb};
use super::random::Random;

/// Limit of live events per client; above it, the client ends some before it schedules more.
const LIVE_MAX: usize = 8;
/// Limit of VMs in a client's pool.
const POOL_MAX: usize = 4;
/// Age limit, in commands, of an answered command that is repeated.
const REPEATED_FROM_LAST: usize = 150;

/// `Break` stops a client because the service has ended.
type Flow = ControlFlow<()>;

/// A live event that this client scheduled.
struct OwnEvent {
    id: Uuid,
    rank: Rank,
    /// Source addresses of its guests.
    guests: Vec<Ipv4Addr>,
}

/// A VM that this client added.
struct PoolVm {
    id: Uuid,
    address: Ipv4Addr,
    /// Whether its deletion is scheduled, so that the service may remove it.
    going: bool,
}

pub struct Client {
    number: usize,
    random: Random,
    fleet: Arc<Fleet>,
    /// Prefix of this run's idempotency keys.
    run: String,
    count: u32,
    own_events: Vec<OwnEvent>,
    pool: Vec<PoolVm>,
    round: usize,
    pub ledger: Ledger,
}

/// Shared state of all clients during a round.
#[derive(Default)]
pub struct Load {
    /// Whether the service is being stopped; before that, no connection may be cut.
    pub ending: AtomicBool,
    /// Number of steps of all clients.
    pub steps: AtomicU64,
}

/// A client's context during a round.
struct Session<'a> {
    endpoints: &'a Endpoints,
    operator: Operator,
    load: &'a Load,
}

impl Client {
    pub fn new(number: usize, random: Random, fleet: Arc<Fleet>, seed: u64) -> Self {
        let run = format!("{seed:x}-{number}");
        let (own_events, pool) = (Vec::new(), Vec::new());
        Self { number, random, fleet, run, count: 0, own_events, pool, round: 0, ledger: Ledger::default() }
    }

    /// Runs until the service ends.
    pub fn work(&mut self, round: usize, endpoints: &Endpoints, load: &Load) {
        self.round = round;
        let mut session = Session { endpoints, operator: Operator::new(endpoints), load };
        let mut flow = self.resolve_in_doubt(&mut session);
        while flow.is_continue() && self.ledger.violations.is_empty() {
            flow = self.step(&mut session);
            load.steps.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Only resolves the command in doubt.
    pub fn resolve_unknown(&mut self, round: usize, endpoints: &Endpoints) {
        self.round = round;
        let load = Load::default();
        let _ = self.resolve_in_doubt(&mut Session {
            endpoints,
            operator: Operator::new(endpoints),
            load: &load,
        });
    }

    fn resolve_in_doubt(&mut self, session: &mut Session<'_>) -> Flow {
        match self.ledger.in_doubt.take() {
            Some(in_doubt) => self.send(session, in_doubt),
            None => Flow::Continue(()),
        }
    }

    fn step(&mut self, session: &mut Session<'_>) -> Flow {
        let is_full = self.own_events.len() >= LIVE_MAX;
        match self.random.within(0..=99) {
            0..=29 if !is_full => self.schedule(session),
            30..=39 if !is_full => self.restart(session),
            40..=54 => self.change_pool(session),
            55..=64 => self.poll(session),
            65..=69 => self.repeat(session),
            _ => self.advance(session),
        }
    }

    fn command(&mut self, what: CommandKind, method: &'static str, target: String, body: String) -> Command {
        self.count += 1;
        let key = format!("{}-{}", self.run, self.count);
        let (outcome, found, log) = (Outcome::InDoubt, Found::Nothing, Vec::new());
        Command { what, key, method, target, body, outcome, found, is_checked: false, log }
    }

    fn schedule(&mut self, session: &mut Session<'_>) -> Flow {
        const CAUSES: [&str; 7] = [
            "host-freeze",
            "host-reboot",
            "host-redeploy",
            "live-migration",
            "host-failure",
            "user-restart",
            "user-redeploy",
        ];
        let tag = format!("{TAG}{}-{}", self.run, self.count + 1);
        let (cause, vms) = (*self.random.pick(&CAUSES), self.fleet.some(&mut self.random));
        let body = json!({"cause": cause, "vms": vms, "description": tag, "duration_seconds": 1});
        let command =
            self.command(CommandKind::Schedule { tag }, "POST", "/v1/events".to_owned(), body.to_string());
        self.send(session, command)
    }

    fn restart(&mut self, session: &mut Session<'_>) -> Flow {
        // No other client restarts this VM, so the VM identifies an operation without a tag.
        let own: Vec<Uuid> =
            self.fleet.vms.iter().skip(self.number).step_by(super::CLIENTS).map(|vm| vm.id).collect();
        let vm = *self.random.pick(&own);
        let what = CommandKind::Act { vm, cause: "user-restart" };
        let command = self.command(what, "POST", format!("/v1/vms/{vm}/restart"), String::new());
        self.send(session, command)
    }

    fn change_pool(&mut self, session: &mut Session<'_>) -> Flow {
        let scope = pool(self.number);
        if self.random.chance(30) {
            // Never the current value, so every request is a change, and a reverted one is detected.
            let seconds = 301 + self.count % 600;
            let policy = json!({"kind": "scale-set", "policy": {"terminate_notification_seconds": seconds}});
            let what = CommandKind::SetNotice { scope: scope.clone(), seconds };
            let command = self.command(what, "PUT", format!("/v1/scopes/{scope}"), policy.to_string());
            return self.send(session, command);
        }
        if self.pool.len() < POOL_MAX {
            let n = self.count + 1;
            let name = format!("{}-{n}", pool_name(self.number));
            let address = Ipv4Addr::new(127, 2 + self.number as u8, (n / 250) as u8, (n % 250) as u8 + 1);
            let body = json!({"scope": scope, "vm": {"name": name, "addresses": [address]}});
            let what = CommandKind::AddVm { name, address };
            let command = self.command(what, "POST", "/v1/vms".to_owned(), body.to_string());
            return self.send(session, command);
        }
        let vm = self.random.index(self.pool.len());
        let PoolVm { id, going, .. } = self.pool[vm];
        let command = match going || self.random.chance(60) {
            true => self.command(
                CommandKind::RemoveVm { vm: id },
                "DELETE",
                format!("/v1/vms/{id}"),
                String::new(),
            ),
            false => {
                let what = CommandKind::Act { vm: id, cause: "deletion" };
                self.command(what, "POST", format!("/v1/vms/{id}/delete"), String::new())
            }
        };
        self.send(session, command)
    }

    /// Advances one of its events, or reads it.
    fn advance(&mut self, session: &mut Session<'_>) -> Flow {
        if self.own_events.is_empty() {
            return self.poll(session);
        }
        let OwnEvent { id, rank, guests } = &self.own_events[self.random.index(self.own_events.len())];
        let (event, from) = (*id, *self.random.pick(guests));
        let roll = self.random.within(0..=99);
        let verb = match (rank, roll) {
            (_, 0..=9) => return self.read_event(session, event).map_continue(|_| ()),
            (Rank::Scheduled, 10..=49) => {
                let command = self.command(
                    CommandKind::GuestApproval { event, from },
                    "POST",
                    format!("StartRequest {event}"),
                    String::new(),
                );
                return self.send(session, command);
            }
            (Rank::Scheduled, 50..=69) => Verb::Approve,
            (Rank::Scheduled | Rank::Approved, 70..=84) => Verb::Cancel,
            (Rank::Scheduled, _) => Verb::Start,
            (Rank::Approved, 10..=24) => Verb::Approve,
            (Rank::Approved, 25..=49) => Verb::Start,
            (Rank::Started, _) => Verb::Complete,
            (Rank::Approved | Rank::Ended, _) => return self.read_event(session, event).map_continue(|_| ()),
        };
        let target = format!("/v1/events/{event}/{}", verb.name());
        let command = self.command(CommandKind::Event { event, verb }, "POST", target, String::new());
        self.send(session, command)
    }

    /// Repeats an acknowledged command: the response must be the same.
    fn repeat(&mut self, session: &mut Session<'_>) -> Flow {
        let settled = &self.ledger.settled;
        let recent = &settled[settled.len().saturating_sub(REPEATED_FROM_LAST)..];
        if recent.is_empty() {
            return Flow::Continue(());
        }
        let first = self.random.pick(recent).clone();
        let Outcome::Acknowledged { answer, .. } = &first.outcome else { return Flow::Continue(()) };
        let is_skipped = match &first.what {
            CommandKind::GuestApproval { .. } => true,
            // A VM that was removed since cannot be returned again.
            CommandKind::AddVm { .. } => !self.pool.iter().any(|vm| Some(vm.id) == answer.id && !vm.going),
            CommandKind::RemoveVm { .. }
            | CommandKind::Act { .. }
            | CommandKind::Schedule { .. }
            | CommandKind::Event { .. }
            | CommandKind::SetNotice { .. } => false,
        };
        if is_skipped {
            return Flow::Continue(());
        }
        let reply = match session.operator.request(first.method, &first.target, &first.key, &first.body) {
            Ok(reply) => reply,
            Err(no_response) => return self.cut(session, no_response),
        };
        self.ledger.repeats += 1;
        // An approval that changes nothing is not recorded, so a repeat may be refused.
        let is_unrecorded =
            matches!(first.what, CommandKind::Event { verb: Verb::Approve, .. }) && reply.status >= 400;
        if !is_unrecorded && answer_of(&reply) != *answer {
            let (status, body) = (reply.status, &reply.body);
            let text = format!("acknowledged with {answer:?}, repeated it got {status} {body}");
            self.ledger.report_violation(&first.key, text);
        }
        Flow::Continue(())
    }

    /// A guest's poll, anywhere in the fleet.
    fn poll(&mut self, session: &mut Session<'_>) -> Flow {
        let vm = &self.fleet.vms[self.random.index(self.fleet.vms.len())];
        let (scope, from) = (vm.scope.clone(), vm.address);
        let reply = match http::poll(session.endpoints, from) {
            Ok(reply) => reply,
            Err(no_response) => return self.cut(session, no_response),
        };
        match read_document(&reply) {
            Ok((document, events)) => {
                for (event, rank) in events {
                    self.ledger.record_read(event, rank);
                }
                if let Err(text) = check_follows(self.ledger.documents.get(&scope), &document) {
                    self.ledger.report_violation(&scope, text);
                }
                self.ledger.documents.insert(scope, document);
            }
            Err(text) => self.ledger.report_violation(from, text),
        }
        Flow::Continue(())
    }

    /// Reads an event and its progress.
    fn read_event(&mut self, session: &mut Session<'_>, event: Uuid) -> ControlFlow<(), Rank> {
        let reply = match session.operator.request("GET", &format!("/v1/events/{event}"), "", "") {
            Ok(reply) => reply,
            Err(no_response) => return self.cut(session, no_response).map_continue(|()| Rank::Scheduled),
        };
        if reply.status != 200 {
            self.ledger.report_violation(event, format!("cannot be read: {} {}", reply.status, reply.body));
            return ControlFlow::Break(());
        }
        let shown: wire::Event = reply.parsed();
        self.record_event(&shown);
        ControlFlow::Continue(Rank::of(&shown))
    }

    fn record_event(&mut self, event: &wire::Event) {
        let rank = Rank::of(event);
        self.ledger.record_read(event.id, rank);
        if let Some(own) = self.own_events.iter_mut().find(|own| own.id == event.id) {
            own.rank = rank.max(own.rank);
        }
        self.own_events.retain(|own| own.rank != Rank::Ended);
    }

    /// A connection without a response: expected only while the service is being stopped.
    fn cut(&mut self, session: &Session<'_>, no_response: NoResponse) -> Flow {
        if !session.load.ending.load(Ordering::SeqCst) {
            let text =
                format!("client {}: no response ({no_response:?}) from a running service", self.number);
            self.ledger.report_violation(self.run.clone(), text);
        }
        Flow::Break(())
    }

    /// Sends or repeats a command until it is answered or the service is gone.
    fn send(&mut self, session: &mut Session<'_>, mut command: Command) -> Flow {
        let reply = match &command.what {
            CommandKind::GuestApproval { event, from } => http::approve(session.endpoints, *from, *event),
            CommandKind::Schedule { .. }
            | CommandKind::Act { .. }
            | CommandKind::Event { .. }
            | CommandKind::AddVm { .. }
            | CommandKind::RemoveVm { .. }
            | CommandKind::SetNotice { .. } => {
                session.operator.request(command.method, &command.target, &command.key, &command.body)
            }
        };
        let reply = match reply {
            Ok(reply) => reply,
            Err(no_response) => {
                command.log_line(self.round, &format!("{no_response:?}"));
                let sent_before = command.log.len() > 1;
                if no_response == NoResponse::Unanswered || sent_before {
                    command.is_checked &= no_response == NoResponse::NotSent;
                    self.ledger.in_doubt = Some(command);
                }
                return self.cut(session, no_response);
            }
        };
        command.log_line(self.round, &format!("{} {}", reply.status, reply.body));
        match reply.status {
            200..=299 => self.acknowledged(command, &reply),
            500..=599 if reply.code() != "unavailable" => {
                // The outcome is unknown: a retry finds out.
                self.ledger.in_doubt = Some(command);
                return match session.load.ending.load(Ordering::SeqCst) {
                    true => Flow::Break(()),
                    false => self.resolve_in_doubt(session),
                };
            }
            _ => return self.refused(session, command, &reply),
        }
        Flow::Continue(())
    }

    fn acknowledged(&mut self, mut command: Command, reply: &Reply) {
        let answer = answer_of(reply);
        if let Found::Landed(Some(id)) = command.found
            && answer.id != Some(id)
        {
            let text =
                format!("had made {id} before the crash, and was answered {:?} when repeated", answer.id);
            self.ledger.report_violation(&command.key, text);
        }
        match &command.what {
            CommandKind::Schedule { .. } | CommandKind::Act { .. } => {
                let operation: wire::Operation = reply.parsed();
                if let CommandKind::Act { vm, cause: "deletion" } = command.what {
                    self.pool.iter_mut().filter(|one| one.id == vm).for_each(|one| one.going = true);
                }
                for target in &operation.targets {
                    let mut guests: Vec<_> = self.fleet.of(&target.scope).map(|vm| vm.address).collect();
                    let own =
                        self.pool.iter().filter(|vm| target.resources.iter().any(|one| one.vm == vm.id));
                    guests.extend(own.map(|vm| vm.address));
                    self.own_events.push(OwnEvent { id: target.event, rank: Rank::Scheduled, guests });
                }
            }
            CommandKind::Event { verb, .. } => {
                let event: wire::Event = reply.parsed();
                let is_done = match verb {
                    Verb::Approve => event.approved || Rank::of(&event) >= Rank::Started,
                    Verb::Start => Rank::of(&event) >= Rank::Started,
                    Verb::Cancel => event.status == wire::EventStatus::Cancelled,
                    Verb::Complete => event.status == wire::EventStatus::Completed,
                };
                if !is_done {
                    self.ledger.report_violation(
                        event.id,
                        format!("{} was acknowledged: {}", verb.name(), reply.body),
                    );
                }
                self.record_event(&event);
            }
            CommandKind::GuestApproval { event, .. } => {
                let approved = self.own_events.iter_mut().filter(|own| own.id == *event);
                approved.for_each(|own| own.rank = own.rank.max(Rank::Approved));
            }
            CommandKind::AddVm { address, .. } => {
                let id = answer.id.unwrap_or_default();
                self.pool.push(PoolVm { id, address: *address, going: false });
            }
            CommandKind::RemoveVm { vm } => self.pool.retain(|one| one.id != *vm),
            CommandKind::SetNotice { .. } => {}
        }
        command.outcome = Outcome::Acknowledged { at: reply.date(), answer };
        self.ledger.settled.push(command);
    }

    /// A refusal must have its reason, and a command that took effect before the crash is not refused.
    fn refused(&mut self, session: &mut Session<'_>, mut command: Command, reply: &Reply) -> Flow {
        let code = reply.code();
        // A deleted VM is an unknown caller, and its events have ended.
        let is_unknown = |from| reply.status == 403 && !self.fleet.calls_from(from);
        let is_deleted = matches!(command.what, CommandKind::GuestApproval { from, .. } if is_unknown(from));
        if matches!(command.found, Found::Landed(_)) && !is_deleted {
            let text =
                format!("had taken effect before the crash and was refused when repeated: {}", reply.body);
            self.ledger.report_violation(&command.key, text);
        }
        // The least progress of the event that justifies this refusal. An unexpected refusal is reported.
        let due = match (&command.what, code.as_str()) {
            (CommandKind::GuestApproval { event, .. }, _) if reply.status == 400 => {
                Some((*event, Rank::Ended))
            }
            (CommandKind::GuestApproval { event, .. }, _) if is_deleted => Some((*event, Rank::Ended)),
            (CommandKind::Event { event, .. }, "event_ended" | "unknown_event") => {
                Some((*event, Rank::Ended))
            }
            (CommandKind::Event { event, verb: Verb::Cancel | Verb::Start }, "event_started") => {
                Some((*event, Rank::Started))
            }
            (CommandKind::Event { event, verb: Verb::Complete }, "event_not_started")
            | (CommandKind::Event { event, verb: Verb::Start }, "update_domain_busy") => {
                Some((*event, Rank::Scheduled))
            }
            (CommandKind::RemoveVm { vm }, "unknown_vm") => {
                if !self.pool.iter().any(|one| one.id == *vm && one.going) {
                    self.ledger.report_violation(
                        &command.key,
                        format!("is not there to be removed: {}", reply.body),
                    );
                }
                self.pool.retain(|one| one.id != *vm);
                None
            }
            _ => {
                self.ledger
                    .report_violation(&command.key, format!("refused: {} {}", reply.status, reply.body));
                None
            }
        };
        command.outcome = Outcome::Refused;
        self.ledger.settled.push(command);
        match due {
            None => Flow::Continue(()),
            Some((event, due)) => {
                let rank = self.read_event(session, event)?;
                if rank < due {
                    let text = format!("a command was refused as if it were {due:?}, and it is {rank:?}");
                    self.ledger.report_violation(event, text);
                }
                Flow::Continue(())
            }
        }
    }
}

/// The part of a response that must be equal when the request is repeated.
fn answer_of(reply: &Reply) -> Answer {
    let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    let id = |value: &Value| value.as_str().and_then(|text| Uuid::parse_str(text).ok());
    let targets =
        body["targets"].as_array().into_iter().flatten().filter_map(|one| id(&one["event"])).collect();
    Answer { status: reply.status, id: id(&body["id"]), targets }
}

/// A document and the progress of its events.
pub fn read_document(reply: &Reply) -> Result<(Document, Vec<(Uuid, Rank)>), String> {
    if reply.status != 200 {
        return Err(format!("a poll got {} {}", reply.status, reply.body));
    }
    let document: Value = reply.parsed();
    let rank = |event: &Value| {
        let started = event["EventStatus"] == "Started";
        let id = event["EventId"].as_str().and_then(|text| Uuid::parse_str(text).ok())?;
        Some((id, if started { Rank::Started } else { Rank::Scheduled }))
    };
    let events = document["Events"].as_array().into_iter().flatten().filter_map(rank).collect();
    let incarnation = document["DocumentIncarnation"].as_u64().unwrap_or(0);
    Ok((Document { incarnation, body: reply.body.clone() }, events))
}

/// Whether a document may follow another: the incarnation never decreases, and changes exactly if the document does.
pub fn check_follows(before: Option<&Document>, now: &Document) -> Result<(), String> {
    match before {
        Some(before) if now.incarnation < before.incarnation => {
            Err(format!("the document went back:\n  {}\n  {}", before.body, now.body))
        }
        Some(before) if now.incarnation == before.incarnation && now.body != before.body => {
            Err(format!("two documents of one incarnation:\n  {}\n  {}", before.body, now.body))
        }
        Some(_) | None => Ok(()),
    }
}
