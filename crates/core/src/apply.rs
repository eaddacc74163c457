//! `apply`: a scope, a command and the circumstances give the scope's next value and the facts of what
//! happened, or a refusal that leaves everything as it was.
//!
//! Each command does its own small thing and nothing more; then [`crate::settle`] starts and ends whatever is
//! due, and last the incarnation is raised if a guest would see a difference. A command that changes nothing
//! gives an equal scope and no facts, and then nothing needs to be written.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;

use crate::actor::Actor;
use crate::cause::{Cause, Notice, Source};
use crate::clock_hold::ClockHold;
use crate::event::{Approval, DriverKind, Event, Past, Phase, Resource, StartReason};
use crate::exec::Ran;
use crate::fact::{CancelReason, EventFact, Fact, Recorded};
use crate::ids::{EventId, OperationId, VmId};
use crate::joint_start::{Blocked, HostPart, HostStanding};
use crate::operation::Release;
use crate::refusal::Refusal;
use crate::scope::{
    EVENTS_MAX, MEMBERS_MAX, Member, MemberState, Policy, Scope, ScopeKind, TERMINATE_NOTICE_MAX,
    TERMINATE_NOTICE_MIN,
};
use crate::settings::{Settings, WhenNotEnabled};
use crate::settle::starter;
use crate::time::{after, round_up};

/// What a command may rely on but not decide.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// What time it is.
    pub now: Timestamp,
    /// Who asks.
    pub by: &'a Actor,
    /// Whether a guest of the scope has asked for events within a day.
    pub enabled: bool,
    /// What the service is set to.
    pub settings: &'a Settings,
    /// The process that runs the scope's commands: this one, or whoever holds the lease where several share a
    /// store. A run that has another owner is taken over in its name.
    pub runner: &'a str,
    /// The scheduled parts of host operations in the scope. Whether such an operation is due or released
    /// depends on other scopes, which this one does not see.
    pub host_parts: &'a [HostPart],
    /// The events to which the passing of time does nothing, while the clock is not trusted.
    pub clock_hold: Option<&'a ClockHold>,
}

/// What can be asked of a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Nothing but to do what is due.
    Pulse,
    /// Announce events, all of them or none. One that is here already, or was lately, is left as it is.
    Open(Vec<NewEvent>),
    /// Let events begin. All of them must be known here, or none is approved.
    Approve(Vec<EventId>),
    /// All other parts of the operation were approved, or are gone.
    Release(OperationId),
    /// A host operation is released: its parts here begin, whatever else is under way.
    StartParts {
        /// The operation.
        operation: OperationId,
        /// What let it start.
        why: StartReason,
    },
    /// Manual driver: a host operation was due and not blocked, so its parts here wait to be started.
    ReadyParts {
        /// The operation.
        operation: OperationId,
        /// What made it due.
        why: StartReason,
    },
    /// Call an event off.
    Cancel(EventId),
    /// Begin an event now.
    Start(EventId),
    /// Say that an event was carried out, and where VMs are now that were moved.
    Complete {
        /// The event.
        event: EventId,
        /// The new host of a redeployed VM.
        hosts: Vec<(VmId, String)>,
    },
    /// Commands of the exec driver have ended.
    Ran(Vec<Ran>),
    /// Try commands anew that have failed.
    Retry(EventId),
    /// Change the owner's settings.
    SetPolicy(Policy),
    /// Add VMs, or change what is known of them; each is known by its id.
    Enrol(Vec<Member>),
    /// Take VMs out.
    Remove(Vec<VmId>),
    /// An evicted VM runs again.
    Revive(VmId),
}

/// An event to be announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// Its id.
    pub id: EventId,
    /// The operation it belongs to.
    pub operation: OperationId,
    /// Why it happens.
    pub cause: Cause,
    /// The update domain of its VMs.
    pub update_domain: u32,
    /// The VMs.
    pub resources: Vec<Resource>,
    /// Not before when; the earliest there is, if none.
    pub not_before: Option<Timestamp>,
    /// How long they will be interrupted, in seconds, or −1.
    pub duration_s: i32,
    /// What guests read.
    pub description: String,
    /// Who carries it out.
    pub driver: DriverKind,
    /// How approvals release it.
    pub release: Release,
    /// Whether a person gave its time.
    pub time_given: bool,
    /// Whether it is part of a host operation.
    pub joint_start: bool,
    /// Whether its operation is released already.
    pub released: bool,
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The scope's next value.
    pub scope: Scope,
    /// What happened, in order.
    pub facts: Vec<Recorded<Fact>>,
    /// The events that ended, for history.
    pub past: Vec<Past>,
    /// Whether the incarnation has risen.
    pub shows: bool,
}

impl Applied {
    /// A scope to which nothing has happened.
    pub fn unchanged(scope: Scope) -> Self {
        Self { scope, facts: Vec::new(), past: Vec::new(), shows: false }
    }

    /// Applies a further command to what came of the ones before, as one change: guests see one, so the
    /// incarnation rises once.
    pub fn apply(&mut self, command: Command, circumstances: Circumstances<'_>) -> Result<(), Refusal> {
        let further = self.scope.apply(command, circumstances)?;
        self.scope = further.scope;
        if self.shows && further.shows {
            self.scope.incarnation -= 1;
        }
        self.shows |= further.shows;
        self.facts.extend(further.facts);
        self.past.extend(further.past);
        Ok(())
    }
}

/// A scope in the middle of a command, and what has happened to it so far.
pub struct Change<'a> {
    pub(crate) scope: Scope,
    pub(crate) facts: Vec<Recorded<Fact>>,
    pub(crate) past: Vec<Past>,
    pub(crate) circumstances: Circumstances<'a>,
}

/// Works out the least notice of a cause under a policy; none where the cause gives none.
pub fn notice(cause: Cause, policy: &Policy, settings: &Settings) -> Option<Duration> {
    match cause.notice() {
        Notice::AtLeast(least) => Some(settings.scaled(least)),
        Notice::None => None,
        Notice::AsPolicySays => policy.terminate_notice().map(|least| settings.scaled(least)),
    }
}

/// Why an event that gives notice begins at once all the same where no time was given for it, if it does: its
/// scope approves such events by itself, or a user asks for it where no guest listens.
pub fn at_once(cause: Cause, policy: &Policy, enabled: bool, settings: &Settings) -> Option<StartReason> {
    let unheard =
        cause.source() == Source::User && !enabled && settings.when_not_enabled == WhenNotEnabled::RunAtOnce;
    if policy.approves(cause) {
        Some(StartReason::AutomaticallyApproved)
    } else if unheard {
        Some(StartReason::NotEnabled)
    } else {
        None
    }
}

/// Decides an event's NotBefore: what was asked for if that leaves the notice, else the refusal that names
/// the earliest; the usual time where nothing was asked for; none for a cause without notice. `enabled` is for
/// the refusal alone.
pub fn not_before(
    cause: Cause,
    asked: Option<Timestamp>,
    policy: &Policy,
    enabled: bool,
    settings: &Settings,
    now: Timestamp,
) -> Result<Option<Timestamp>, Refusal> {
    let Some(least) = notice(cause, policy, settings) else {
        return match asked {
            Some(_) => Err(Refusal::NotBeforeWithoutNotice(cause.event_type())),
            None => Ok(None),
        };
    };
    let earliest = round_up(after(now, least));
    match asked.map(round_up) {
        Some(asked) if asked < earliest => Err(Refusal::NotBeforeTooNear {
            event_type: cause.event_type(),
            asked,
            notice: least,
            earliest,
            at_once: at_once(cause, policy, enabled, settings),
        }),
        Some(asked) => Ok(Some(asked)),
        None => {
            let usual = cause.usual_notice().map_or(least, |usual| settings.scaled(usual));
            Ok(Some(round_up(after(now, usual)).max(earliest)))
        }
    }
}

impl Scope {
    /// The scope's next value; see the module's page.
    pub fn apply(&self, command: Command, circumstances: Circumstances<'_>) -> Result<Applied, Refusal> {
        let mut change = Change { scope: self.clone(), facts: Vec::new(), past: Vec::new(), circumstances };
        match command {
            Command::Pulse => {}
            Command::Open(events) => events.into_iter().try_for_each(|event| change.open(event))?,
            Command::Approve(events) => change.approve(&events)?,
            Command::Release(operation) => change.release(operation),
            Command::StartParts { operation, why } => change.start_parts(operation, why),
            Command::ReadyParts { operation, why } => change.ready_parts(operation, why),
            Command::Cancel(event) => change.cancel(event)?,
            Command::Start(event) => change.start_by_hand(event)?,
            Command::Complete { event, hosts } => change.complete(event, &hosts)?,
            Command::Ran(reports) => change.ran(reports),
            Command::Retry(event) => change.retry(event)?,
            Command::SetPolicy(policy) => change.set_policy(policy)?,
            Command::Enrol(members) => change.enrol(members)?,
            Command::Remove(vms) => change.remove(&vms)?,
            Command::Revive(vm) => change.revive(vm)?,
        }
        change.settle();
        let shows = !change.scope.shows_the_same(self);
        if shows {
            change.scope.incarnation += 1;
        }
        Ok(Applied { scope: change.scope, facts: change.facts, past: change.past, shows })
    }
}

impl Change<'_> {
    fn open(&mut self, new: NewEvent) -> Result<(), Refusal> {
        if self.scope.event(new.id).is_some() || self.scope.ended.iter().any(|ended| ended.event == new.id) {
            return Ok(());
        }
        if new.resources.is_empty() {
            return Err(Refusal::NoResources);
        }
        let mut resources = new.resources;
        for resource in &mut resources {
            let member = self.scope.member(resource.vm).ok_or(Refusal::UnknownVm(resource.vm))?;
            match member.state {
                MemberState::Deallocated => return Err(Refusal::Deallocated(resource.name.clone())),
                MemberState::Running => resource.host = member.host.clone(),
            }
        }
        if self.scope.events.len() >= EVENTS_MAX {
            return Err(Refusal::TooManyEvents);
        }
        let Circumstances { now, by, enabled, settings, .. } = self.circumstances;
        let users = new.cause.source() == Source::User;
        let limit = settings.user_operations_max;
        let others = self.scope.events.iter().filter(|event| !event.is_platforms());
        let others: HashSet<OperationId> = others.map(|event| event.operation).collect();
        if users && !others.contains(&new.operation) && others.len() >= limit {
            return Err(Refusal::TooManyUserOperations { limit });
        }

        let policy = &self.scope.policy;
        let not_before = not_before(new.cause, new.not_before, policy, enabled, settings, now)?;
        let at_once = match not_before {
            None => Some(StartReason::NoNotice),
            // A time that a person gave is kept.
            Some(_) if new.time_given => None,
            Some(_) => at_once(new.cause, policy, enabled, settings),
        };
        let mut event = Event {
            id: new.id,
            operation: new.operation,
            cause: new.cause,
            update_domain: new.update_domain,
            resources,
            duration_s: new.duration_s,
            description: new.description,
            driver: new.driver,
            release: new.release,
            time_given: new.time_given,
            joint_start: new.joint_start,
            phase: Phase::Scheduled {
                not_before: not_before.unwrap_or(now),
                approval: None,
                released: new.released,
                ready: None,
            },
            trail: Vec::new(),
        };
        let announced = if at_once.is_some() { None } else { not_before };
        self.note(&mut event, now, by.clone(), EventFact::EventScheduled { not_before: announced });
        self.scope.events.push(event);
        if let Some(why) = at_once {
            let last = self.scope.events.len() - 1;
            // The causes that begin without notice are never made to wait for another update domain.
            self.begin(last, why, by.clone());
        }
        Ok(())
    }

    fn approve(&mut self, events: &[EventId]) -> Result<(), Refusal> {
        for id in events {
            let known = self.scope.event(*id).is_some()
                || self.scope.ended.iter().any(|ended| ended.event == *id && self.is_recent(ended.at));
            if !known {
                return Err(Refusal::UnknownEvent(*id));
            }
        }
        let Circumstances { now, by, .. } = self.circumstances;
        for id in events {
            let Some(index) = self.position(*id) else { continue };
            let mut event = self.scope.events[index].clone();
            if let Phase::Scheduled { approval: approval @ None, .. } = &mut event.phase {
                *approval = Some(Approval { by: by.clone(), at: now });
                self.note(&mut event, now, by.clone(), EventFact::EventApproved);
                self.scope.events[index] = event;
            }
        }
        Ok(())
    }

    fn release(&mut self, operation: OperationId) {
        let Circumstances { now, by, .. } = self.circumstances;
        for index in 0..self.scope.events.len() {
            let mut event = self.scope.events[index].clone();
            if event.operation != operation {
                continue;
            }
            if let Phase::Scheduled { released: released @ false, .. } = &mut event.phase {
                *released = true;
                self.note(&mut event, now, by.clone(), EventFact::EventReleased);
                self.scope.events[index] = event;
            }
        }
    }

    /// The scheduled parts of a host operation here.
    fn parts_of(&self, operation: OperationId) -> Vec<usize> {
        let part = |event: &Event| event.operation == operation && event.joint_start && !event.is_started();
        let events = self.scope.events.iter().enumerate().filter(|(_, event)| part(event));
        events.map(|(index, _)| index).collect()
    }

    fn start_parts(&mut self, operation: OperationId, why: StartReason) {
        for index in self.parts_of(operation) {
            let by = starter(&self.scope.events[index], why, self.circumstances.by.clone());
            self.begin(index, why, by);
        }
    }

    fn ready_parts(&mut self, operation: OperationId, why: StartReason) {
        for index in self.parts_of(operation) {
            self.become_ready(index, why, self.circumstances.by.clone());
        }
    }

    /// Whether the event's host operation is released, so that nothing can call the event off any more.
    fn is_released(&self, event: &Event) -> bool {
        let released = |part: &&HostPart| part.standing == HostStanding::Released;
        event.joint_start
            && self
                .circumstances
                .host_parts
                .iter()
                .filter(released)
                .any(|part| part.operation == event.operation)
    }

    fn cancel(&mut self, id: EventId) -> Result<(), Refusal> {
        let index = self.live(id)?;
        let event = &self.scope.events[index];
        if event.is_started() || self.is_released(event) {
            return Err(Refusal::EventStarted(id));
        }
        self.call_off(index, self.circumstances.by.clone(), CancelReason::Asked);
        Ok(())
    }

    fn start_by_hand(&mut self, id: EventId) -> Result<(), Refusal> {
        let index = self.live(id)?;
        let event = &self.scope.events[index];
        let why = match &event.phase {
            Phase::Started { .. } => return Err(Refusal::EventStarted(id)),
            Phase::Scheduled { .. } if event.joint_start => {
                return Err(Refusal::PartOfHostOperation { event: id, operation: event.operation });
            }
            Phase::Scheduled { ready: Some(ready), .. } => ready.why,
            Phase::Scheduled { ready: None, .. } => StartReason::Forced,
        };
        let Circumstances { now, host_parts, .. } = self.circumstances;
        if let Some(blocker) = self.scope.blocker(event, host_parts, now) {
            let waiting = Blocked::Event(id);
            return Err(Refusal::UpdateDomainBusy { waiting, blockers: vec![blocker] });
        }
        self.begin(index, why, self.circumstances.by.clone());
        Ok(())
    }

    fn complete(&mut self, id: EventId, hosts: &[(VmId, String)]) -> Result<(), Refusal> {
        let index = self.live(id)?;
        if !self.scope.events[index].is_started() {
            return Err(Refusal::EventNotStarted(id));
        }
        if let Some((stranger, _)) = hosts.iter().find(|(vm, _)| !self.scope.events[index].touches(*vm)) {
            return Err(Refusal::UnknownVm(*stranger));
        }
        self.carried_out(index, self.circumstances.by.clone(), hosts);
        Ok(())
    }

    fn set_policy(&mut self, policy: Policy) -> Result<(), Refusal> {
        if let Some(notice) = policy.terminate_notice()
            && !(TERMINATE_NOTICE_MIN..=TERMINATE_NOTICE_MAX).contains(&notice)
        {
            return Err(Refusal::TerminateNoticeOutOfRange(notice));
        }
        if self.scope.policy != policy {
            self.scope.policy = policy;
            self.record(Fact::PolicyChanged);
        }
        Ok(())
    }

    fn enrol(&mut self, members: Vec<Member>) -> Result<(), Refusal> {
        for new in members {
            let known = self.scope.members.iter().position(|member| member.vm == new.vm);
            let named = self.scope.members.iter().position(|member| member.name == new.name);
            let (vm, name) = (new.vm, new.name.clone());
            match (known, named) {
                (known, Some(named)) if known != Some(named) => return Err(Refusal::NameTaken(new.name)),
                (Some(index), _) if self.scope.members[index] == new => {}
                (Some(index), _) => {
                    self.scope.members[index] = new;
                    self.record(Fact::VmChanged { vm, name });
                }
                (None, _) => {
                    if self.scope.kind == ScopeKind::Standalone && !self.scope.members.is_empty() {
                        return Err(Refusal::StandaloneHoldsOne(self.scope.path.clone()));
                    }
                    if self.scope.members.len() >= MEMBERS_MAX {
                        return Err(Refusal::TooManyMembers);
                    }
                    self.scope.members.push(new);
                    self.record(Fact::VmAdded { vm, name });
                }
            }
        }
        Ok(())
    }

    fn remove(&mut self, vms: &[VmId]) -> Result<(), Refusal> {
        for vm in vms {
            if self.scope.member(*vm).is_none() {
                return Err(Refusal::UnknownVm(*vm));
            }
            self.drop_member(*vm, self.circumstances.by.clone());
        }
        Ok(())
    }

    fn revive(&mut self, vm: VmId) -> Result<(), Refusal> {
        let member =
            self.scope.members.iter_mut().find(|member| member.vm == vm).ok_or(Refusal::UnknownVm(vm))?;
        if member.state == MemberState::Deallocated {
            member.state = MemberState::Running;
            let name = member.name.clone();
            self.record(Fact::VmStarted { vm, name });
        }
        Ok(())
    }

    pub(crate) fn live(&self, id: EventId) -> Result<usize, Refusal> {
        self.position(id).ok_or_else(|| match self.scope.ended.iter().any(|ended| ended.event == id) {
            true => Refusal::EventEnded(id),
            false => Refusal::UnknownEvent(id),
        })
    }

    fn position(&self, id: EventId) -> Option<usize> {
        self.scope.events.iter().position(|event| event.id == id)
    }

    /// Writes down what the command's own actor did.
    fn record(&mut self, fact: Fact) {
        let Circumstances { now, by, .. } = self.circumstances;
        self.facts.push(Recorded { at: now, by: by.clone(), fact });
    }

    /// Writes a fact of an event into its own trail and into the scope's list.
    pub(crate) fn note(&mut self, event: &mut Event, at: Timestamp, by: Actor, what: EventFact) {
        event.note(at, by.clone(), what.clone());
        let resources = event.resources.iter().map(|resource| resource.name.clone()).collect();
        let fact = Fact::Event {
            event: event.id,
            operation: Some(event.operation),
            cause: event.cause,
            resources,
            what,
        };
        self.facts.push(Recorded { at, by, fact });
    }
}
