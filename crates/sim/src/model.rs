//! The model of one scope: a second, naive implementation of the rules.
//!
//! It takes a scope's plain data and a list of requests. It returns the next value, or the codes by which the requests
//! are refused. It shares data types with the domain, but none of its functions. It ignores trails of facts: [`bare`]
//! removes them before scopes are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use jiff::Timestamp;
use notbefore_core::event::Ready;
use notbefore_core::scope::Ended;
use notbefore_core::{
    Actor, Approval, Cause, ClockHold, CommandState, DriverKind, Ending, Event, EventId, EventType, ExecRun,
    HostRan, Member, MemberState, OperationId, Outcome, Phase, Policy, Ran, Release, Resource, Run, Scope,
    ScopeId, ScopeKind, StartReason, VmId,
};

use crate::history::Setup;
use crate::hosts::{self, Gate, Gates, Hold};
use crate::rules;

pub type Codes = BTreeSet<&'static str>;

/// The circumstances of a decision.
#[derive(Clone, Debug)]
pub struct At {
    pub now: Timestamp,
    /// The enabled scopes.
    pub enabled: BTreeSet<ScopeId>,
    pub setup: Setup,
    /// The process that decided.
    pub node: Rc<str>,
    /// All reports it had received of commands that it spawned.
    pub reports: Rc<Vec<Ran>>,
    /// The same of commands for hosts.
    pub host_reports: Rc<Vec<(OperationId, HostRan)>>,
    /// The gates of each scope, as that process knew them.
    pub gates: Rc<Gates>,
    /// The due and unblocked host operations, with their reasons.
    pub free: Rc<Vec<(OperationId, StartReason)>>,
    /// The hosts that took VMs.
    pub free_hosts: Rc<BTreeSet<String>>,
    /// The chosen hosts of simulated events that end with the commit: those that start and end at once choose there.
    pub chosen_hosts: Rc<BTreeMap<EventId, String>>,
    /// The events that waited because the clock was not trusted.
    pub clock_hold: Option<Rc<ClockHold>>,
    /// The committed events from before the clock jump, until the clock is trusted again.
    pub before_jump: Rc<BTreeSet<EventId>>,
}

impl At {
    /// The events that waited because the clock was not trusted; none if it was.
    pub fn hold(&self) -> Hold<'_> {
        self.clock_hold.as_deref()
    }

    fn holds(&self, event: &Event) -> bool {
        self.hold().is_some_and(|hold| hold.holds(event.id))
    }

    pub fn gates_of(&self, scope: &Scope) -> &[Gate] {
        self.gates.get(&scope.id()).map(Vec::as_slice).unwrap_or_default()
    }
}

/// A request to a scope.
#[derive(Clone, Debug)]
pub enum ScopeRequest {
    /// Settle only.
    Pulse,
    Open(Vec<Opening>),
    Approve(Vec<EventId>, Actor),
    /// The operation's other parts are approved or gone.
    Release(OperationId),
    /// The parts of a host operation start.
    StartParts(OperationId, StartReason),
    /// The parts of a host operation wait to be started.
    ReadyParts(OperationId, StartReason),
    Cancel(EventId),
    Start(EventId),
    /// The event was carried out; with the new hosts of its VMs.
    Complete(EventId, Vec<(VmId, String)>),
    /// Reports of commands.
    Ran(Rc<Vec<Ran>>),
    /// Retry commands.
    Retry(EventId),
    /// The command of the operation's host is done.
    HostDone(OperationId),
    Policy(Policy),
    /// Members as described.
    AddMembers(Vec<Member>),
    Remove(Vec<VmId>),
    /// A deallocated member runs again.
    Revive(VmId),
}

/// An event to announce.
#[derive(Clone, Debug)]
pub struct Opening {
    pub id: EventId,
    pub operation: OperationId,
    pub cause: Cause,
    pub update_domain: u32,
    pub resources: Vec<Resource>,
    /// None means at once.
    pub not_before: Option<Timestamp>,
    pub duration_s: i32,
    pub description: String,
    /// Whether the request gave the time.
    pub time_given: bool,
    /// Whether it is part of a host operation.
    pub joint_start: bool,
    /// Whether it ends after the command of its host.
    pub waits_for_host: bool,
    /// Whether its operation has no other part, or all others were approved.
    pub released: bool,
}

/// A scope without the trails of its events, the reasons of failed commands, and the hosts to which VMs move: their
/// choice depends on commits in flight, and has an invariant of its own.
pub fn bare(scope: &Scope) -> Scope {
    let mut scope = scope.clone();
    for event in &mut scope.events {
        event.trail.clear();
        event.target_host = None;
        for command in commands_mut(event) {
            if let CommandState::Waiting { why, .. } | CommandState::Failed { why, .. } = command {
                why.clear();
            }
        }
    }
    scope
}

fn commands_mut(event: &mut Event) -> &mut [CommandState] {
    match &mut event.phase {
        Phase::Started { run: Run::Exec(run), .. } => &mut run.commands,
        Phase::Started { run: Run::Simulated { .. } | Run::Manual, .. }
        | Phase::Scheduled { .. }
        | Phase::Advisory { .. } => &mut [],
    }
}

fn is_over(command: &CommandState) -> bool {
    matches!(command, CommandState::Done { .. } | CommandState::Gone)
}

/// One event as a guest of the newest api-version sees it.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown<'a> {
    id: EventId,
    cause: Cause,
    started: bool,
    not_before: Option<Timestamp>,
    resources: &'a [Resource],
    duration_s: i32,
    description: &'a str,
}

/// The scope's events as a guest of the newest api-version sees them.
pub fn document(scope: &Scope) -> Vec<Shown<'_>> {
    let shown = |event: &'_ Event| match &event.phase {
        Phase::Scheduled { not_before, .. } => (false, Some(*not_before)),
        Phase::Started { .. } => (true, None),
        Phase::Advisory { date } => (false, *date),
    };
    let events = scope.events.iter().map(|event| {
        let (started, not_before) = shown(event);
        Shown {
            id: event.id,
            cause: event.cause,
            started,
            not_before,
            resources: &event.resources,
            duration_s: event.duration_s,
            description: &event.description,
        }
    });
    events.collect()
}

pub fn started(event: &Event) -> bool {
    matches!(event.phase, Phase::Started { .. })
}

/// Whether an event that starts by itself must wait for another update domain of its scope: an event is started there,
/// or a host operation goes first. `announced` has announcement times, which are in the trails.
pub fn must_wait(
    event: &Event,
    scope: &Scope,
    gates: &[Gate],
    announced: &Announced,
    now: Timestamp,
) -> bool {
    let busy = scope.events.iter().any(|other| {
        started(other) && !rules::of(other.cause).users && other.update_domain != event.update_domain
    });
    let Some(not_before) = event.not_before() else { return false };
    let place = (not_before, announced.get(&event.id).copied().unwrap_or(now), event.operation);
    let goes_first = |gate: &Gate| hosts::holds(gate, place, event.update_domain, now);
    rules::of(event.cause).waits && (busy || gates.iter().any(goes_first))
}

/// Announcement times; scopes are compared without the trails that contain them.
pub type Announced = BTreeMap<EventId, Timestamp>;

/// The announcement times of a scope's events.
pub fn announced(scope: &Scope) -> Announced {
    scope.events.iter().filter_map(|event| Some((event.id, event.trail.first()?.at))).collect()
}

/// Whether an exec event's commands are all done, except those of removed VMs, and it does not wait for its host.
fn all_done(event: &Event) -> bool {
    match &event.phase {
        Phase::Started { .. } if event.waits_for_host => false,
        Phase::Started { run: Run::Exec(run), .. } => {
            run.commands.iter().all(is_over)
                && run.commands.iter().any(|one| matches!(one, CommandState::Done { .. }))
        }
        Phase::Started { run: Run::Simulated { .. } | Run::Manual, .. }
        | Phase::Scheduled { .. }
        | Phase::Advisory { .. } => false,
    }
}

/// The next due time in a scope with its trails.
pub fn next_due(scope: &Scope, gates: &[Gate], hold: Hold<'_>, now: Timestamp) -> Option<Timestamp> {
    let announced = announced(scope);
    let held = |event: &Event| hold.is_some_and(|hold| hold.holds(event.id));
    let waits = |event: &Event, at: Timestamp| must_wait(event, scope, gates, &announced, at.max(now));
    let due = |event: &Event| match &event.phase {
        Phase::Started { run: Run::Simulated { ends_at }, .. } if !held(event) => Some(*ends_at),
        Phase::Started { run: Run::Simulated { .. }, .. } => None,
        Phase::Scheduled { not_before, ready: None, .. }
            if !event.joint_start && !held(event) && !waits(event, *not_before) =>
        {
            Some(*not_before)
        }
        Phase::Started { run: Run::Exec(run), .. } => {
            let waiting = run.commands.iter().filter_map(|command| match command {
                CommandState::Waiting { due_at, .. } => Some(*due_at),
                CommandState::Running { .. }
                | CommandState::Done { .. }
                | CommandState::Failed { .. }
                | CommandState::Gone => None,
            });
            waiting.min()
        }
        Phase::Started { run: Run::Manual, .. } | Phase::Scheduled { .. } | Phase::Advisory { .. } => None,
    };
    scope.events.iter().filter_map(due).min()
}

/// The scope after some requests, each followed by everything due.
pub fn after(before: &Scope, scope_requests: &[ScopeRequest], at: &At) -> Result<Scope, Codes> {
    let targets = before.events.iter().filter(|event| event.driver == DriverKind::Simulated);
    let targets = targets.filter_map(|event| Some((event.id, event.target_host.clone()?))).collect();
    let mut naive =
        Naive { scope: bare(before), at, has_ended: false, announced: announced(before), targets };
    for scope_request in scope_requests {
        let codes = naive.grant(scope_request);
        if !codes.is_empty() {
            return Err(codes);
        }
        while naive.one_due_thing() {}
    }
    if naive.has_ended {
        naive.forget();
    }
    let changed = document(&naive.scope) != document(&bare(before));
    naive.scope.incarnation = before.incarnation + u64::from(changed);
    Ok(naive.scope)
}

struct Naive<'a> {
    scope: Scope,
    at: &'a At,
    has_ended: bool,
    announced: Announced,
    /// The hosts to which the simulated driver moves VMs.
    targets: BTreeMap<EventId, String>,
}

impl Naive<'_> {
    fn grant(&mut self, scope_request: &ScopeRequest) -> Codes {
        let mut codes = Codes::new();
        match scope_request {
            ScopeRequest::Pulse => {}
            // All of them before anything due.
            ScopeRequest::Open(openings) => {
                codes = openings.iter().flat_map(|opening| self.open(opening)).collect()
            }
            ScopeRequest::Approve(events, by) => {
                let known = |id: &EventId| {
                    self.find(*id).is_some()
                        || self.scope.ended.iter().any(|one| one.event == *id && self.is_fresh(one))
                };
                if !events.iter().all(known) {
                    return Codes::from(["unknown_event"]);
                }
                for id in events {
                    if let Some(index) = self.find(*id)
                        && let Phase::Scheduled { approval, .. } = &mut self.scope.events[index].phase
                        && approval.is_none()
                    {
                        *approval = Some(Approval { by: by.clone(), at: self.at.now });
                    }
                }
            }
            ScopeRequest::Release(operation) => {
                for event in self.scope.events.iter_mut().filter(|event| event.operation == *operation) {
                    if let Phase::Scheduled { released, .. } = &mut event.phase {
                        *released = true;
                    }
                }
            }
            ScopeRequest::StartParts(operation, why) => {
                while let Some(index) = self.part_of(*operation, true) {
                    self.begin(index, *why);
                }
            }
            ScopeRequest::ReadyParts(operation, why) => {
                while let Some(index) = self.part_of(*operation, false) {
                    if let Phase::Scheduled { ready, .. } = &mut self.scope.events[index].phase {
                        *ready = Some(Ready { at: self.at.now, why: *why });
                    }
                }
            }
            ScopeRequest::HostDone(operation) => {
                for event in &mut self.scope.events {
                    event.waits_for_host &= event.operation != *operation;
                }
            }
            ScopeRequest::Cancel(id) => match self.live(*id) {
                Ok(index) if started(&self.scope.events[index]) || self.is_released(index) => {
                    codes = Codes::from(["event_started"]);
                }
                Ok(index) => self.end(index, Outcome::Cancelled),
                Err(code) => codes = Codes::from([code]),
            },
            ScopeRequest::Start(id) => match self.live(*id) {
                Ok(index) => {
                    let event = &self.scope.events[index];
                    let why = match &event.phase {
                        Phase::Started { .. } => return Codes::from(["event_started"]),
                        Phase::Advisory { .. } => return Codes::from(["advisory"]),
                        Phase::Scheduled { .. } if event.joint_start => {
                            return Codes::from(["part_of_host_operation"]);
                        }
                        Phase::Scheduled { ready, .. } => {
                            ready.map_or(StartReason::Forced, |ready| ready.why)
                        }
                    };
                    if self.must_wait(event) {
                        return Codes::from(["update_domain_busy"]);
                    }
                    self.begin(index, why);
                }
                Err(code) => codes = Codes::from([code]),
            },
            ScopeRequest::Complete(id, hosts) => match self.live(*id) {
                Ok(index) => {
                    let event = &self.scope.events[index];
                    if !started(event) {
                        codes.insert("event_not_started");
                    }
                    if hosts.iter().any(|(vm, _)| !event.resources.iter().any(|one| one.vm == *vm)) {
                        codes.insert("unknown_vm");
                    }
                    if codes.is_empty() {
                        self.carried_out(index);
                        for (vm, host) in hosts {
                            self.is_on(*vm, host);
                        }
                    }
                }
                Err(code) => codes = Codes::from([code]),
            },
            ScopeRequest::Ran(reports) => reports.iter().for_each(|report| self.ran(report)),
            ScopeRequest::Retry(id) => match self.live(*id) {
                Ok(index) => codes = self.retry(index),
                Err(code) => codes = Codes::from([code]),
            },
            ScopeRequest::Policy(policy) => {
                if policy.terminate_notice_s.is_some_and(|seconds| !(300..=900).contains(&seconds)) {
                    return Codes::from(["terminate_notice_out_of_range"]);
                }
                self.scope.policy = policy.clone();
            }
            ScopeRequest::AddMembers(members) => return self.add_members(members),
            ScopeRequest::Remove(vms) => {
                if vms.iter().any(|vm| self.scope.members.iter().all(|one| one.vm != *vm)) {
                    return Codes::from(["unknown_vm"]);
                }
                self.scope.members.retain(|one| !vms.contains(&one.vm));
            }
            ScopeRequest::Revive(vm) => match self.scope.members.iter_mut().find(|one| one.vm == *vm) {
                Some(member) => member.state = MemberState::Running,
                None => codes = Codes::from(["unknown_vm"]),
            },
        }
        codes
    }

    fn must_wait(&self, event: &Event) -> bool {
        must_wait(event, &self.scope, self.at.gates_of(&self.scope), &self.announced, self.at.now)
    }

    /// A scheduled part of a host operation; with `also_ready`, also one that is ready.
    fn part_of(&self, operation: OperationId, also_ready: bool) -> Option<usize> {
        self.scope.events.iter().position(|event| {
            let waits = match &event.phase {
                Phase::Scheduled { ready, .. } => also_ready || ready.is_none(),
                Phase::Started { .. } | Phase::Advisory { .. } => false,
            };
            event.operation == operation && event.joint_start && waits
        })
    }

    fn is_released(&self, index: usize) -> bool {
        let event = &self.scope.events[index];
        let gates = self.at.gates_of(&self.scope);
        event.joint_start
            && gates.iter().any(|gate| gate.operation == event.operation && gate.waits.is_none())
    }

    fn ran(&mut self, report: &Ran) {
        let (now, most) = (self.at.now, self.at.setup.attempts);
        let Some(index) = self.find(report.event) else { return };
        let event = &mut self.scope.events[index];
        let Some(nth) = event.resources.iter().position(|one| one.vm == report.vm) else { return };
        let Phase::Started { run: Run::Exec(run), .. } = &mut event.phase else { return };
        let CommandState::Running { attempt, left } = run.commands[nth] else { return };
        if run.fence != report.fence || attempt != report.attempt {
            return;
        }
        let why = String::new();
        run.commands[nth] = match &report.ending {
            Ending::Succeeded { host } if host.as_ref().is_none_or(|host| !host.is_empty()) => {
                CommandState::Done { host: host.clone() }
            }
            Ending::Blocked { .. } => CommandState::Failed { attempt, why },
            Ending::Succeeded { .. } | Ending::Failed { .. } if left == 0 => {
                CommandState::Failed { attempt, why }
            }
            Ending::Succeeded { .. } | Ending::Failed { .. } => {
                CommandState::Waiting { attempt, left, due_at: rules::retry_at(now, most - left), why }
            }
        };
    }

    fn retry(&mut self, index: usize) -> Codes {
        let (now, most) = (self.at.now, self.at.setup.attempts);
        let event = &mut self.scope.events[index];
        let mut codes = Codes::new();
        if event.driver != DriverKind::Exec {
            codes.insert("not_exec");
        } else if !started(event) {
            codes.insert("event_not_started");
        }
        if !codes.is_empty() {
            return codes;
        }
        codes.insert("nothing_failed");
        for command in commands_mut(event) {
            if let CommandState::Failed { attempt, .. } | CommandState::Waiting { attempt, .. } = command {
                let why = String::new();
                *command = CommandState::Waiting { attempt: *attempt, left: most, due_at: now, why };
                codes.clear();
            }
        }
        codes
    }

    /// Applies the first due change of a command: take it over from another process, drop it because its VM was
    /// removed, or run it.
    fn one_due_command(&mut self) -> bool {
        let members: Vec<VmId> = self.scope.members.iter().map(|one| one.vm).collect();
        for event in &mut self.scope.events {
            let Phase::Started { run: Run::Exec(run), .. } = &mut event.phase else { continue };
            if *run.owner != *self.at.node {
                run.owner = self.at.node.to_string();
                run.fence += 1;
                for command in &mut run.commands {
                    let CommandState::Running { attempt, left } = *command else { continue };
                    *command = match left {
                        0 => CommandState::Failed { attempt, why: String::new() },
                        left => CommandState::Running { attempt: attempt + 1, left: left - 1 },
                    };
                }
                return true;
            }
            for (resource, command) in event.resources.iter().zip(&mut run.commands) {
                if !is_over(command) && !members.contains(&resource.vm) {
                    *command = CommandState::Gone;
                    return true;
                }
                if let CommandState::Waiting { attempt, left, due_at, .. } = *command
                    && due_at <= self.at.now
                {
                    *command = CommandState::Running { attempt: attempt + 1, left: left - 1 };
                    return true;
                }
            }
        }
        false
    }

    fn is_on(&mut self, vm: VmId, host: &str) {
        let elsewhere = |one: &&mut Member| one.vm == vm && one.host.as_deref() != Some(host);
        let Some(member) = self.scope.members.iter_mut().find(elsewhere) else { return };
        // A VM that is moved twice was named to be on the first host.
        if member.moved_from.is_none() {
            member.moved_from = member.host.clone();
        } else if member.moved_from.as_deref() == Some(host) {
            member.moved_from = None;
        }
        member.host = Some(host.to_owned());
    }

    fn open(&mut self, opening: &Opening) -> Codes {
        let mut codes = Codes::new();
        let known = self.find(opening.id).is_some();
        if known || self.scope.ended.iter().any(|one| one.event == opening.id) {
            return codes;
        }
        if opening.resources.is_empty() {
            codes.insert("no_resources");
        }
        let mut resources = opening.resources.clone();
        for resource in &mut resources {
            match self.scope.members.iter().find(|one| one.vm == resource.vm) {
                None => {
                    codes.insert("unknown_vm");
                }
                Some(member) if member.state == MemberState::Deallocated => {
                    codes.insert("vm_deallocated");
                }
                // Its current host is recorded with the event.
                Some(member) => resource.host = member.host.clone(),
            };
        }
        let rule = rules::of(opening.cause);
        let mut users: Vec<_> = self
            .scope
            .events
            .iter()
            .filter(|one| rules::of(one.cause).users)
            .map(|one| one.operation)
            .collect();
        users.sort();
        users.dedup();
        let is_another = !users.contains(&opening.operation);
        if rule.users && is_another && users.len() >= self.at.setup.user_operations_max {
            codes.insert("too_many_user_operations");
        }
        if !codes.is_empty() {
            return codes;
        }
        let listens = self.scope.first_run || self.at.enabled.contains(&self.scope.id());
        let is_advisory = rule.notice == rules::Notice::Never;
        let at_once = if is_advisory {
            None
        } else if opening.not_before.is_none() {
            Some(StartReason::NoNotice)
        } else if opening.time_given {
            None
        } else if rules::needs_no_approval(opening.cause, &self.scope.policy) {
            Some(StartReason::AutomaticallyApproved)
        } else if rule.users && !listens && self.at.setup.run_at_once {
            Some(StartReason::NotEnabled)
        } else {
            None
        };
        self.scope.events.push(Event {
            id: opening.id,
            operation: opening.operation,
            cause: opening.cause,
            update_domain: opening.update_domain,
            resources,
            duration_s: opening.duration_s,
            description: opening.description.clone(),
            driver: self.at.setup.driver(),
            release: if rule.together { Release::Together } else { Release::Each },
            time_given: opening.time_given,
            joint_start: opening.joint_start,
            waits_for_host: opening.waits_for_host,
            target_host: None,
            phase: match is_advisory {
                true => Phase::Advisory { date: opening.not_before },
                false => Phase::Scheduled {
                    not_before: opening.not_before.unwrap_or(self.at.now),
                    approval: None,
                    released: opening.released,
                    ready: None,
                },
            },
            trail: Vec::new(),
        });
        if let Some(why) = at_once {
            self.begin(self.scope.events.len() - 1, why);
        }
        // An announced eviction takes the place of the advisories of its VMs.
        let evicted = |one: &Resource| {
            opening.cause == Cause::Eviction && opening.resources.iter().any(|other| other.vm == one.vm)
        };
        while let Some(replaced) = self
            .scope
            .events
            .iter()
            .position(|one| one.cause == Cause::Rebalance && one.resources.iter().any(evicted))
        {
            self.end(replaced, Outcome::Cancelled);
        }
        codes
    }

    fn add_members(&mut self, members: &[Member]) -> Codes {
        for new in members {
            let same_name = self.scope.members.iter().find(|one| one.name == new.name);
            if same_name.is_some_and(|one| one.vm != new.vm) {
                return Codes::from(["name_taken"]);
            }
            if let Some(member) = self.scope.members.iter_mut().find(|one| one.vm == new.vm) {
                *member = new.clone();
            } else if self.scope.kind == ScopeKind::Standalone && !self.scope.members.is_empty() {
                return Codes::from(["standalone_holds_one"]);
            } else {
                self.scope.members.push(new.clone());
            }
        }
        Codes::new()
    }

    /// Applies the first due change: ends come before starts, and events without VMs in between.
    fn one_due_thing(&mut self) -> bool {
        let now = self.at.now;
        let mut over: Vec<(Timestamp, usize)> = Vec::new();
        let mut may_begin: Vec<(Timestamp, EventId, usize, StartReason)> = Vec::new();
        for (index, event) in self.scope.events.iter().enumerate() {
            match &event.phase {
                Phase::Started { run: Run::Simulated { ends_at }, .. }
                    if *ends_at <= now && !self.at.holds(event) =>
                {
                    over.push((*ends_at, index));
                }
                Phase::Started { .. } | Phase::Scheduled { ready: Some(_), .. } | Phase::Advisory { .. } => {}
                // Events of a host start together, not by the scope's own decision.
                Phase::Scheduled { .. } if event.joint_start => {}
                Phase::Scheduled { not_before, approval, released, ready: None } => {
                    let together = rules::of(event.cause).together;
                    if self.must_wait(event) {
                        continue;
                    }
                    if approval.is_some() && (*released || !together) {
                        may_begin.push((*not_before, event.id, index, StartReason::Approved));
                    } else if *not_before <= now && !self.at.holds(event) {
                        may_begin.push((*not_before, event.id, index, StartReason::NotBefore));
                    }
                }
            }
        }
        let member = |resource: &Resource| self.scope.members.iter().find(|one| one.vm == resource.vm);
        // Planned events and advisories need running VMs.
        let is_reached = |event: &Event, resource: &Resource| match member(resource) {
            None => false,
            Some(one) if one.state == MemberState::Running => true,
            Some(_) => started(event) || !rules::of(event.cause).waits && event.cause != Cause::Rebalance,
        };
        let is_alone = |event: &Event| !event.resources.iter().any(|one| is_reached(event, one));
        let alone = self.scope.events.iter().position(is_alone);
        over.sort();
        may_begin.sort_by_key(|(not_before, id, ..)| (*not_before, *id));
        if let Some((_, index)) = over.first() {
            self.carried_out(*index);
        } else if let Some(index) = alone {
            match started(&self.scope.events[index]) {
                true => self.carried_out(index),
                false => self.end(index, Outcome::Cancelled),
            }
        } else if let Some(index) = self.scope.events.iter().position(all_done) {
            self.carried_out(index);
        } else if let Some((.., index, why)) = may_begin.first() {
            match (self.at.setup.manual, &mut self.scope.events[*index].phase) {
                (true, Phase::Scheduled { ready, .. }) => *ready = Some(Ready { at: now, why: *why }),
                (_, _) => self.begin(*index, *why),
            }
        } else {
            return self.one_due_command();
        }
        true
    }

    fn begin(&mut self, index: usize, why: StartReason) {
        let event = &mut self.scope.events[index];
        let run = match event.driver {
            DriverKind::Manual => Run::Manual,
            DriverKind::Exec => Run::Exec(ExecRun {
                owner: self.at.node.to_string(),
                fence: 1,
                commands: vec![
                    CommandState::Waiting {
                        attempt: 0,
                        left: self.at.setup.attempts,
                        due_at: self.at.now,
                        why: String::new(),
                    };
                    event.resources.len()
                ],
            }),
            DriverKind::Simulated => {
                Run::Simulated { ends_at: rules::ends_at(self.at.now, event.duration_s) }
            }
        };
        event.phase = Phase::Started { at: self.at.now, why, run };
        if event.cause == Cause::UserRedeploy {
            // A VM that moves away is no longer affected by the predicted failure of its old host.
            let moved: Vec<VmId> = event.resources.iter().map(|one| one.vm).collect();
            while let Some(spared) = self.scope.events.iter().position(|one| {
                one.cause == Cause::PredictedFailure
                    && !started(one)
                    && one.resources.iter().any(|resource| moved.contains(&resource.vm))
            }) {
                self.end(spared, Outcome::Cancelled);
            }
        }
    }

    fn carried_out(&mut self, index: usize) {
        let event = self.scope.events[index].clone();
        self.end(index, Outcome::Completed);
        if let Phase::Started { run: Run::Exec(run), .. } = &event.phase {
            for (resource, command) in event.resources.iter().zip(&run.commands) {
                if let CommandState::Done { host: Some(host) } = command {
                    self.is_on(resource.vm, host);
                }
            }
        }
        let target = self.targets.get(&event.id).or_else(|| self.at.chosen_hosts.get(&event.id)).cloned();
        if let (Some(host), Some(resource)) = (target, event.resources.first()) {
            self.is_on(resource.vm, &host);
        }
        if self.scope.first_run && event.driver == DriverKind::Simulated {
            return;
        }
        let vms: Vec<VmId> = event.resources.iter().map(|one| one.vm).collect();
        match event.cause.event_type() {
            EventType::Freeze
            | EventType::Reboot
            | EventType::Redeploy
            | EventType::SpotRebalanceRecommendation => {}
            EventType::Preempt => {
                for member in self.scope.members.iter_mut().filter(|one| vms.contains(&one.vm)) {
                    member.state = MemberState::Deallocated;
                }
            }
            EventType::Terminate => self.scope.members.retain(|one| !vms.contains(&one.vm)),
        }
    }

    fn end(&mut self, index: usize, outcome: Outcome) {
        let event = self.scope.events.remove(index);
        self.scope.ended.push(Ended { event: event.id, at: self.at.now, outcome });
        self.has_ended = true;
    }

    fn forget(&mut self) {
        let many = self.scope.ended.len().saturating_sub(rules::REMEMBERED_MAX);
        let ended = self.scope.ended.split_off(many);
        self.scope.ended = ended.into_iter().filter(|one| self.is_fresh(one)).collect();
    }

    fn is_fresh(&self, ended: &Ended) -> bool {
        // Nothing expires while the clock is not trusted.
        self.at.clock_hold.is_some() || self.at.now.duration_since(ended.at) < rules::DAY
    }

    fn find(&self, id: EventId) -> Option<usize> {
        self.scope.events.iter().position(|event| event.id == id)
    }

    fn live(&self, id: EventId) -> Result<usize, &'static str> {
        match self.scope.ended.iter().any(|one| one.event == id) {
            true => Err("event_ended"),
            false => self.find(id).ok_or("unknown_event"),
        }
    }
}
