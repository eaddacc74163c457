//! The state transition function of a scope: `(scope, command, context) -> (scope, facts)` or a refusal. Pure;
//! a refusal changes nothing.
//!
//! Each command makes its own change. Then [`crate::settle`] starts and ends what is due. Last, the incarnation
//! rises if a guest would see a difference. A command that changes nothing returns an equal scope and no facts, and
//! needs no write.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;

use crate::actor::Actor;
use crate::cause::{Cause, EventType, Notice, Source};
use crate::clock_hold::ClockHold;
use crate::event::{Approval, DriverKind, Event, Past, Phase, Resource, StartReason};
use crate::exec::Ran;
use crate::fact::{CancelReason, EventFact, Fact, Recorded};
use crate::host::FreeHosts;
use crate::ids::{EventId, Name, OperationId, VmId};
use crate::joint_start::{Blocked, HostPart, HostStartState};
use crate::operation::Release;
use crate::refusal::Refusal;
use crate::scope::{
    EVENTS_MAX, MEMBERS_MAX, Member, MemberState, Policy, Scope, ScopeKind, TERMINATE_NOTICE_MAX,
    TERMINATE_NOTICE_MIN,
};
use crate::settings::{Settings, WhenNotEnabled};
use crate::settle::starter;
use crate::time::{after, round_up};

/// Inputs of a command that it does not decide itself.
#[derive(Clone, Copy, Debug)]
pub struct ApplyContext<'a> {
    pub now: Timestamp,
    pub by: &'a Actor,
    /// Whether a guest of the scope polled within the last day.
    pub enabled: bool,
    pub settings: &'a Settings,
    /// The process that runs the scope's commands: this one, or the lease holder where several share a store.
    /// A run with another owner is taken over in its name.
    pub runner: &'a str,
    /// The scheduled parts of host operations in the scope. Whether such an operation is due or released
    /// depends on other scopes, which this function does not see.
    pub host_parts: &'a [HostPart],
    /// The events that do not start or end by time while the clock is not trusted.
    pub clock_hold: Option<&'a ClockHold>,
    /// The hosts to which VMs may move.
    pub free_hosts: &'a dyn FreeHosts,
}

/// A request to one scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Settle only.
    Pulse,
    /// Announce events, all or none. An event that exists, or ended recently, is left unchanged.
    Open(Vec<NewEvent>),
    /// Let events start early, all or none: every id must be known.
    Approve(Vec<EventId>),
    /// All other parts of the operation are approved or gone.
    Release(OperationId),
    /// A released host operation: its parts start, regardless of other started events.
    StartParts {
        operation: OperationId,
        why: StartReason,
    },
    /// Manual driver: a host operation is due and not blocked; its parts wait to be started.
    ReadyParts {
        operation: OperationId,
        why: StartReason,
    },
    Cancel(EventId),
    /// Start an event now.
    Start(EventId),
    /// An event was carried out; `hosts` are the new hosts of moved VMs.
    Complete {
        event: EventId,
        hosts: Vec<(VmId, String)>,
    },
    /// Reports of ended commands of the exec driver.
    Ran(Vec<Ran>),
    /// Retry failed commands.
    Retry(EventId),
    /// The command of the operation's host is done: its parts may end.
    HostDone(OperationId),
    SetPolicy(Policy),
    /// Add VMs or update them, by id.
    Enrol(Vec<Member>),
    Remove(Vec<VmId>),
    /// Mark a deallocated VM as running.
    Revive(VmId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    pub id: EventId,
    pub operation: OperationId,
    pub cause: Cause,
    /// All resources are in it.
    pub update_domain: u32,
    pub resources: Vec<Resource>,
    /// None means the earliest possible time.
    pub not_before: Option<Timestamp>,
    /// Expected interruption in seconds, or −1 if unknown.
    pub duration_s: i32,
    /// Shown to guests.
    pub description: String,
    pub driver: DriverKind,
    /// How approvals let it start.
    pub release: Release,
    /// Whether the request gave a NotBefore.
    pub time_given: bool,
    /// Whether it is part of a host operation.
    pub joint_start: bool,
    /// Whether it ends only when the command of its operation's host is done.
    pub waits_for_host: bool,
    /// Whether its operation is already released.
    pub released: bool,
}

/// The result of one or more commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    pub scope: Scope,
    /// In the order in which they happened.
    pub facts: Vec<Recorded<Fact>>,
    /// Ended events, for the history.
    pub past: Vec<Past>,
    /// Whether the incarnation rose.
    pub shows: bool,
}

impl Applied {
    /// The result of no commands.
    pub fn unchanged(scope: Scope) -> Self {
        Self { scope, facts: Vec::new(), past: Vec::new(), shows: false }
    }

    /// Applies a further command, as part of the same change: the incarnation rises at most once.
    pub fn apply(&mut self, command: Command, context: ApplyContext<'_>) -> Result<(), Refusal> {
        let further = self.scope.apply(command, context)?;
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

/// A scope in the middle of a command, with its facts so far.
pub struct Change<'a> {
    pub(crate) scope: Scope,
    pub(crate) facts: Vec<Recorded<Fact>>,
    pub(crate) past: Vec<Past>,
    pub(crate) context: ApplyContext<'a>,
}

/// The least notice of a cause under a policy; none for a cause without notice.
pub fn notice(cause: Cause, policy: &Policy, settings: &Settings) -> Option<Duration> {
    match cause.notice() {
        Notice::AtLeast(least) => Some(settings.scaled(least)),
        Notice::None | Notice::NeverStarts => None,
        Notice::AsPolicySays => policy.terminate_notice().map(|least| settings.scaled(least)),
    }
}

/// Why an event with notice starts at once if the request gives no time: the scope's policy approves it, or
/// a user requests it in a scope that is not enabled.
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

/// Computes NotBefore. A requested time is refused, with the earliest, if it leaves too little notice. Without a
/// requested time it is the cause's usual notice from now. None for a cause without notice. For an advisory it is the
/// requested date, whatever that is. `enabled` only affects the refusal's text.
pub fn not_before(
    cause: Cause,
    asked: Option<Timestamp>,
    policy: &Policy,
    enabled: bool,
    settings: &Settings,
    now: Timestamp,
) -> Result<Option<Timestamp>, Refusal> {
    if cause.is_advisory() {
        return Ok(asked.map(round_up));
    }
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
    /// Applies one command; see the module docs.
    pub fn apply(&self, command: Command, context: ApplyContext<'_>) -> Result<Applied, Refusal> {
        let mut change = Change { scope: self.clone(), facts: Vec::new(), past: Vec::new(), context };
        match command {
            Command::Pulse => {}
            Command::Open(events) => events.into_iter().try_for_each(|event| change.open(event))?,
            Command::Approve(events) => change.approve(&events)?,
            Command::Release(operation) => change.release(operation),
            Command::StartParts { operation, why } => change.start_parts(operation, why),
            Command::ReadyParts { operation, why } => change.ready_parts(operation, why),
            Command::Cancel(event) => change.cancel(event)?,
            Command::Start(event) => change.start_manually(event)?,
            Command::Complete { event, hosts } => change.complete(event, &hosts)?,
            Command::Ran(reports) => change.ran(reports),
            Command::Retry(event) => change.retry(event)?,
            Command::HostDone(operation) => change.host_done(operation),
            Command::SetPolicy(policy) => change.set_policy(policy)?,
            Command::Enrol(members) => change.add_members(members)?,
            Command::Remove(vms) => change.remove(&vms)?,
            Command::Revive(vm) => change.revive(vm)?,
        }
        change.settle();
        let shows = !change.scope.has_same_document(self);
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
        let ApplyContext { now, by, enabled, settings, .. } = self.context;
        let users = new.cause.source() == Source::User;
        let limit = settings.user_operations_max;
        let others = self.scope.events.iter().filter(|event| !event.is_platform_event());
        let others: HashSet<OperationId> = others.map(|event| event.operation).collect();
        if users && !others.contains(&new.operation) && others.len() >= limit {
            return Err(Refusal::TooManyUserOperations { limit });
        }

        let policy = &self.scope.policy;
        let not_before = not_before(new.cause, new.not_before, policy, enabled, settings, now)?;
        let is_advisory = new.cause.is_advisory();
        let at_once = match not_before {
            _ if is_advisory => None,
            None => Some(StartReason::NoNotice),
            // A requested time is kept.
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
            waits_for_host: new.waits_for_host,
            target_host: None,
            phase: match is_advisory {
                true => Phase::Advisory { date: not_before },
                false => Phase::Scheduled {
                    not_before: not_before.unwrap_or(now),
                    approval: None,
                    released: new.released,
                    ready: None,
                },
            },
            trail: Vec::new(),
        };
        let announced = if at_once.is_some() { None } else { not_before };
        self.note(&mut event, by.clone(), EventFact::EventScheduled { not_before: announced });
        let (by_event, vms) = (event.id, event.resources.iter().map(|one| one.vm).collect::<Vec<_>>());
        self.scope.events.push(event);
        if new.cause.event_type() == EventType::Preempt {
            vms.into_iter().for_each(|vm| self.cancel_advisories(vm, by_event));
        }
        if let Some(why) = at_once {
            let last = self.scope.events.len() - 1;
            // Causes without notice never wait for another update domain.
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
        let ApplyContext { now, by, .. } = self.context;
        for id in events {
            let Some(index) = self.position(*id) else { continue };
            let mut event = self.scope.events[index].clone();
            if let Phase::Scheduled { approval: approval @ None, .. } = &mut event.phase {
                *approval = Some(Approval { by: by.clone(), at: now });
                self.note(&mut event, by.clone(), EventFact::EventApproved);
                self.scope.events[index] = event;
            }
        }
        Ok(())
    }

    fn release(&mut self, operation: OperationId) {
        let by = self.context.by;
        for index in 0..self.scope.events.len() {
            let mut event = self.scope.events[index].clone();
            if event.operation != operation {
                continue;
            }
            if let Phase::Scheduled { released: released @ false, .. } = &mut event.phase {
                *released = true;
                self.note(&mut event, by.clone(), EventFact::EventReleased);
                self.scope.events[index] = event;
            }
        }
    }

    /// The indexes of the scheduled parts of a host operation here.
    fn parts_of(&self, operation: OperationId) -> Vec<usize> {
        let part = |event: &Event| event.operation == operation && event.joint_start && !event.is_started();
        let events = self.scope.events.iter().enumerate().filter(|(_, event)| part(event));
        events.map(|(index, _)| index).collect()
    }

    fn start_parts(&mut self, operation: OperationId, why: StartReason) {
        for index in self.parts_of(operation) {
            let by = starter(&self.scope.events[index], why, self.context.by.clone());
            self.begin(index, why, by);
        }
    }

    fn ready_parts(&mut self, operation: OperationId, why: StartReason) {
        for index in self.parts_of(operation) {
            self.mark_ready(index, why, self.context.by.clone());
        }
    }

    /// Whether the event's host operation is released; then the event cannot be cancelled any more.
    fn is_released(&self, event: &Event) -> bool {
        let released = |part: &&HostPart| part.start == HostStartState::Released;
        event.joint_start
            && self.context.host_parts.iter().filter(released).any(|part| part.operation == event.operation)
    }

    fn cancel(&mut self, id: EventId) -> Result<(), Refusal> {
        let index = self.live(id)?;
        let event = &self.scope.events[index];
        if event.is_started() || self.is_released(event) {
            return Err(Refusal::EventStarted(id));
        }
        self.cancel_event(index, self.context.by.clone(), CancelReason::Asked);
        Ok(())
    }

    fn start_manually(&mut self, id: EventId) -> Result<(), Refusal> {
        let index = self.live(id)?;
        let event = &self.scope.events[index];
        let why = match &event.phase {
            Phase::Started { .. } => return Err(Refusal::EventStarted(id)),
            Phase::Advisory { .. } => return Err(Refusal::Advisory(id)),
            Phase::Scheduled { .. } if event.joint_start => {
                return Err(Refusal::PartOfHostOperation { event: id, operation: event.operation });
            }
            Phase::Scheduled { ready: Some(ready), .. } => ready.why,
            Phase::Scheduled { ready: None, .. } => StartReason::Forced,
        };
        let ApplyContext { now, host_parts, .. } = self.context;
        if let Some(blocker) = self.scope.blocker(event, host_parts, now) {
            let waiting = Blocked::Event(id);
            return Err(Refusal::UpdateDomainBusy { waiting, blockers: vec![blocker] });
        }
        self.begin(index, why, self.context.by.clone());
        Ok(())
    }

    fn complete(&mut self, id: EventId, hosts: &[(VmId, String)]) -> Result<(), Refusal> {
        let index = self.live(id)?;
        if !self.scope.events[index].is_started() {
            return Err(Refusal::EventNotStarted(id));
        }
        if let Some((stranger, _)) = hosts.iter().find(|(vm, _)| !self.scope.events[index].includes_vm(*vm)) {
            return Err(Refusal::UnknownVm(*stranger));
        }
        self.complete_event(index, self.context.by.clone(), hosts);
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

    fn add_members(&mut self, members: Vec<Member>) -> Result<(), Refusal> {
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
            self.drop_member(*vm, self.context.by.clone());
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

    /// Records a fact by the command's actor.
    fn record(&mut self, fact: Fact) {
        self.record_by(self.context.by.clone(), fact);
    }

    pub(crate) fn record_by(&mut self, by: Actor, fact: Fact) {
        self.facts.push(Recorded { at: self.context.now, by, fact });
    }

    /// Records a fact in the event's trail and in the scope's facts.
    pub(crate) fn note(&mut self, event: &mut Event, by: Actor, what: EventFact) {
        event.note(self.context.now, by.clone(), what.clone());
        let resources = event.resources.iter().map(|resource| resource.name.clone()).collect();
        self.audit(event, by, resources, what);
    }

    /// Records a fact in the scope's facts only.
    pub(crate) fn audit(&mut self, event: &Event, by: Actor, resources: Vec<Name>, what: EventFact) {
        let Event { id, operation, cause, .. } = *event;
        self.record_by(by, Fact::Event { event: id, operation, cause, resources, what });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::Ending;
    use crate::joint_start::StartOrder;
    use crate::samples::{
        ContextFixture, advisory, approved, at, event, event_id, member, new_event, now, operation_id,
    };
    use crate::samples::{outcome_text, scope, standalone, started, vm};
    use crate::scope::Ended;

    fn web(events: impl IntoIterator<Item = Event>) -> Scope {
        Scope { events: events.into_iter().collect(), ..scope("web", &[vm(1), vm(2)]) }
    }

    fn reboot() -> Event {
        event(1, Cause::HostReboot, &[vm(1)])
    }

    fn open(cause: Cause) -> Command {
        Command::Open(vec![new_event(1, cause, &[vm(1)])])
    }

    fn with_policy(policy: Policy) -> Scope {
        Scope { policy, ..web([]) }
    }

    /// Each row: name, scope, context, command, expected facts or refusal.
    fn check(rows: Vec<(&str, Scope, ContextFixture, Command, &str)>) {
        for (name, scope, given, command, expected) in rows {
            let result = scope.apply(command, given.context());
            if let Ok(applied) = &result {
                assert_eq!(applied.shows, applied.scope.incarnation == scope.incarnation + 1, "{name}");
                assert!(!applied.facts.is_empty() || applied.scope == scope, "{name}: change without a fact");
            }
            assert_eq!(outcome_text(result), expected, "{name}");
        }
    }

    #[test]
    fn open_announces_or_refuses() {
        let given = ContextFixture::default;
        let evicted = Member { state: MemberState::Deallocated, ..member(vm(1)) };
        let deallocated = Scope { members: vec![evicted], ..web([]) };
        let full = web((2..).take(EVENTS_MAX).map(|n| event(n, Cause::HostReboot, &[vm(1)])));
        let unheard = || ContextFixture { enabled: false, ..ContextFixture::default() };
        let approves = Policy { automatically_approve_reboot: true, ..Policy::default() };
        let lone = |change: fn(&mut NewEvent)| {
            let mut new = new_event(1, Cause::HostReboot, &[vm(1)]);
            change(&mut new);
            Command::Open(vec![new])
        };
        let ended = Ended { event: event_id(1), at: now(), outcome: crate::event::Outcome::Completed };
        let one_each = Settings { user_operations_max: 1, ..Settings::default() };
        let notices = Settings { when_not_enabled: WhenNotEnabled::GiveNotice, ..Settings::default() };
        let others = event(9, Cause::UserRestart, &[vm(2)]);
        let restart = "EventScheduled(at once) 1, EventStarted(NotEnabled) 1";
        check(vec![
            ("usual notice", web([]), given(), open(Cause::HostReboot), "EventScheduled(+900) 1"),
            ("a week", web([]), given(), open(Cause::PredictedFailure), "EventScheduled(+604800) 1"),
            (
                "time that leaves the notice",
                web([]),
                given(),
                lone(|new| new.not_before = Some(at(901))),
                "EventScheduled(+901) 1",
            ),
            (
                "time too near",
                web([]),
                given(),
                lone(|new| new.not_before = Some(at(899))),
                "not_before_too_near",
            ),
            (
                "failure starts at once",
                web([]),
                given(),
                open(Cause::HostFailure),
                "EventScheduled(at once) 1, EventStarted(NoNotice) 1",
            ),
            (
                "failure takes no time",
                web([]),
                given(),
                Command::Open(vec![NewEvent {
                    not_before: Some(at(999)),
                    ..new_event(1, Cause::HostFailure, &[vm(1)])
                }]),
                "not_before_without_notice",
            ),
            (
                "deletion without a policy starts at once",
                web([]),
                given(),
                open(Cause::Deletion),
                "EventScheduled(at once) 1, EventStarted(NoNotice) 1",
            ),
            (
                "deletion with a policy gives notice",
                with_policy(Policy::for_first_run()),
                given(),
                open(Cause::Deletion),
                "EventScheduled(+300) 1",
            ),
            ("guests listen", web([]), given(), open(Cause::UserRestart), "EventScheduled(+900) 1"),
            ("not enabled", web([]), unheard(), open(Cause::UserRestart), restart),
            (
                "not enabled, configured to give notice",
                web([]),
                ContextFixture { settings: notices, ..unheard() },
                open(Cause::UserRestart),
                "EventScheduled(+900) 1",
            ),
            (
                "not enabled, platform event",
                web([]),
                unheard(),
                open(Cause::HostReboot),
                "EventScheduled(+900) 1",
            ),
            (
                "approved by policy",
                with_policy(approves.clone()),
                given(),
                open(Cause::UserRestart),
                "EventScheduled(at once) 1, EventStarted(AutomaticallyApproved) 1",
            ),
            (
                "policy does not approve platform events",
                with_policy(approves),
                given(),
                open(Cause::HostReboot),
                "EventScheduled(+900) 1",
            ),
            (
                "requested time is kept",
                web([]),
                unheard(),
                Command::Open(vec![NewEvent {
                    time_given: true,
                    ..new_event(1, Cause::UserRestart, &[vm(1)])
                }]),
                "EventScheduled(+900) 1",
            ),
            ("here already", web([reboot()]), given(), open(Cause::HostReboot), ""),
            ("ended lately", Scope { ended: vec![ended], ..web([]) }, given(), open(Cause::HostReboot), ""),
            (
                "no VM",
                web([]),
                given(),
                Command::Open(vec![new_event(1, Cause::HostReboot, &[])]),
                "no_resources",
            ),
            (
                "VM of another scope",
                web([]),
                given(),
                Command::Open(vec![new_event(1, Cause::HostReboot, &[vm(3)])]),
                "unknown_vm",
            ),
            ("deallocated VM", deallocated, given(), open(Cause::HostReboot), "vm_deallocated"),
            ("event limit reached", full, given(), open(Cause::HostReboot), "too_many_events"),
            (
                "user operation limit reached",
                web([others.clone()]),
                ContextFixture { settings: one_each.clone(), ..given() },
                open(Cause::UserRestart),
                "too_many_user_operations",
            ),
            (
                "platform events do not count",
                web([others]),
                ContextFixture { settings: one_each, ..given() },
                open(Cause::HostReboot),
                "EventScheduled(+900) 1",
            ),
            (
                "all or none",
                web([]),
                given(),
                Command::Open(vec![
                    new_event(1, Cause::HostReboot, &[vm(1)]),
                    new_event(2, Cause::HostReboot, &[]),
                ]),
                "no_resources",
            ),
        ]);
    }

    #[test]
    fn approval_starts_released_events() {
        let given = ContextFixture::default;
        let approve = |events: &[u128]| Command::Approve(events.iter().copied().map(event_id).collect());
        let together = || Event { release: Release::Together, ..reboot() };
        let manual = Event { driver: DriverKind::Manual, ..reboot() };
        let ended_at = |hours: i64| {
            let at = at(-hours * 3_600);
            Scope {
                ended: vec![Ended { event: event_id(1), at, outcome: crate::event::Outcome::Completed }],
                ..web([])
            }
        };
        let release = || Command::Release(operation_id(1));
        check(vec![
            ("each", web([reboot()]), given(), approve(&[1]), "EventApproved 1, EventStarted(Approved) 1"),
            ("together waits for other parts", web([together()]), given(), approve(&[1]), "EventApproved 1"),
            ("approved twice", web([approved(together())]), given(), approve(&[1]), ""),
            ("started", web([started(reboot())]), given(), approve(&[1]), ""),
            (
                "manual event becomes ready",
                web([manual]),
                given(),
                approve(&[1]),
                "EventApproved 1, EventReady(Approved) 1",
            ),
            ("ended within a day", ended_at(23), given(), approve(&[1]), ""),
            ("ended before", ended_at(24), given(), approve(&[1]), "unknown_event"),
            ("one unknown, none approved", web([reboot()]), given(), approve(&[1, 2]), "unknown_event"),
            (
                "released and approved",
                web([approved(together())]),
                given(),
                release(),
                "EventReleased 1, EventStarted(Approved) 1",
            ),
            ("released, not approved", web([together()]), given(), release(), "EventReleased 1"),
            (
                "another operation",
                web([Event { operation: operation_id(2), ..together() }]),
                given(),
                release(),
                "",
            ),
        ]);
    }

    #[test]
    fn advisory_never_starts_and_ends_with_a_preempt() {
        let given = ContextFixture::default;
        let later = || ContextFixture { now: at(1_000_000), ..ContextFixture::default() };
        let spot = || web([advisory(1, vm(1))]);
        let dated =
            |second| NewEvent { not_before: Some(at(second)), ..new_event(1, Cause::Rebalance, &[vm(1)]) };
        let evict = |n| Command::Open(vec![new_event(9, Cause::Eviction, &[vm(n)])]);
        let started = started(event(2, Cause::HostReboot, &[vm(2)]));
        let planned = event(2, Cause::HostReboot, &[vm(2)]);
        let evicted = Member { state: MemberState::Deallocated, ..member(vm(1)) };
        let asleep = Scope { members: vec![evicted], ..spot() };
        check(vec![
            ("no notice, no start", web([]), given(), open(Cause::Rebalance), "EventScheduled(at once) 1"),
            ("a date", web([]), given(), Command::Open(vec![dated(5)]), "EventScheduled(+5) 1"),
            ("any date", web([]), given(), Command::Open(vec![dated(-5)]), "EventScheduled(+-5) 1"),
            ("time starts nothing", spot(), later(), Command::Pulse, ""),
            ("approved without an effect", spot(), given(), Command::Approve(vec![event_id(1)]), ""),
            ("not by an operator", spot(), given(), Command::Start(event_id(1)), "advisory"),
            (
                "not completed",
                spot(),
                given(),
                Command::Complete { event: event_id(1), hosts: vec![] },
                "event_not_started",
            ),
            ("cancelled", spot(), given(), Command::Cancel(event_id(1)), "EventCancelled(Asked) 1"),
            (
                "its VM is removed",
                spot(),
                given(),
                Command::Remove(vec![vm(1)]),
                "VmRemoved, EventCancelled(ResourcesGone) 1",
            ),
            ("its VM does not run", asleep, given(), Command::Pulse, "EventCancelled(ResourcesGone) 1"),
            (
                "replaced by a Preempt",
                spot(),
                given(),
                evict(1),
                "EventScheduled(+30) 9, EventCancelled(Preempted) 1",
            ),
            ("Preempt of another VM", spot(), given(), evict(2), "EventScheduled(+30) 9"),
            (
                "blocks no other update domain",
                web([advisory(1, vm(1)), Event { update_domain: 1, ..planned }]),
                given(),
                Command::Start(event_id(2)),
                "EventStarted(Forced) 2",
            ),
            (
                "is not blocked",
                web([Event { update_domain: 1, ..started }]),
                given(),
                open(Cause::Rebalance),
                "EventScheduled(at once) 1",
            ),
        ]);
        assert_eq!(spot().next_due(&[], None, at(0)), None);
        let dated = web([]).apply(Command::Open(vec![dated(5)]), given().context()).unwrap().scope;
        assert_eq!((dated.next_due(&[], None, at(0)), dated.incarnation), (None, 2));
    }

    #[test]
    fn event_commands_check_phase() {
        let given = ContextFixture::default;
        let id = event_id(1);
        let cancel = || Command::Cancel(id);
        let start = || Command::Start(id);
        let complete = |hosts: &[(VmId, &str)]| Command::Complete {
            event: id,
            hosts: hosts.iter().map(|(vm, host)| (*vm, (*host).to_owned())).collect(),
        };
        let part = || Event { joint_start: true, ..reboot() };
        let (operation, update_domain) = (operation_id(1), 0);
        let released = HostPart { operation, update_domain, start: HostStartState::Released };
        let order = StartOrder { not_before: at(0), requested_at: at(0), operation: operation_id(2) };
        let first = HostPart {
            operation: operation_id(2),
            update_domain: 1,
            start: HostStartState::Waiting { due_at: at(0), order },
        };
        let on = |part| ContextFixture { host_parts: vec![part], ..ContextFixture::default() };
        let ended = Ended { event: id, at: now(), outcome: crate::event::Outcome::Cancelled };
        let elsewhere = started(Event { update_domain: 1, ..event(2, Cause::HostReboot, &[vm(2)]) });
        let started_by = |cause| web([started(event(1, cause, &[vm(1)]))]);
        let ready = || Command::ReadyParts { operation, why: StartReason::Approved };
        let parts = || Command::StartParts { operation, why: StartReason::NotBefore };
        check(vec![
            ("called off", web([reboot()]), given(), cancel(), "EventCancelled(Asked) 1"),
            ("too late", web([started(reboot())]), given(), cancel(), "event_started"),
            ("ended", Scope { ended: vec![ended], ..web([]) }, given(), cancel(), "event_ended"),
            ("never there", web([]), given(), cancel(), "unknown_event"),
            ("a part, not decided", web([part()]), given(), cancel(), "EventCancelled(Asked) 1"),
            ("a part, decided", web([part()]), on(released), cancel(), "event_started"),
            ("forced", web([reboot()]), given(), start(), "EventStarted(Forced) 1"),
            ("started twice", web([started(reboot())]), given(), start(), "event_started"),
            ("part of a host operation", web([part()]), given(), start(), "part_of_host_operation"),
            (
                "another update domain",
                web([reboot(), elsewhere.clone()]),
                given(),
                start(),
                "update_domain_busy",
            ),
            ("host operation goes first", web([reboot()]), on(first), start(), "update_domain_busy"),
            (
                "user events do not wait",
                web([event(1, Cause::UserRestart, &[vm(1)]), elsewhere]),
                given(),
                start(),
                "EventStarted(Forced) 1",
            ),
            ("all parts start", web([part()]), given(), parts(), "EventStarted(NotBefore) 1"),
            ("parts only", web([reboot()]), given(), parts(), ""),
            (
                "all parts are ready",
                web([Event { driver: DriverKind::Manual, ..part() }]),
                given(),
                ready(),
                "EventReady(Approved) 1",
            ),
            ("not begun", web([reboot()]), given(), complete(&[]), "event_not_started"),
            (
                "moved VM is not a resource",
                started_by(Cause::HostRedeploy),
                given(),
                complete(&[(vm(2), "h2")]),
                "unknown_vm",
            ),
            (
                "moved",
                started_by(Cause::HostRedeploy),
                given(),
                complete(&[(vm(1), "h2")]),
                "EventCompleted 1, VmMoved",
            ),
            (
                "evicted",
                started_by(Cause::Eviction),
                given(),
                complete(&[]),
                "EventCompleted 1, VmDeallocated",
            ),
            ("deleted", started_by(Cause::Deletion), given(), complete(&[]), "EventCompleted 1, VmRemoved"),
            ("not an exec event", started_by(Cause::HostReboot), given(), Command::Retry(id), "not_exec"),
            (
                "empty report",
                web([]),
                given(),
                Command::Ran(vec![Ran {
                    event: id,
                    vm: vm(1),
                    fence: 1,
                    attempt: 1,
                    ending: Ending::Succeeded { host: None },
                }]),
                "",
            ),
        ]);
    }

    #[test]
    fn member_and_policy_limits() {
        let given = ContextFixture::default;
        let policy = |seconds| Policy { terminate_notice_s: Some(seconds), ..Policy::default() };
        let renamed = |n, name: &str| Member { name: name.parse().unwrap(), ..member(vm(n)) };
        let many: Vec<VmId> = (0..MEMBERS_MAX as u128).map(vm).collect();
        let moved = Member { host: Some("h1".to_owned()), ..member(vm(1)) };
        let evicted = Member { state: MemberState::Deallocated, ..member(vm(1)) };
        let asleep = Scope { members: vec![evicted], ..web([]) };
        check(vec![
            ("a policy", web([]), given(), Command::SetPolicy(policy(300)), "PolicyChanged"),
            ("same policy", web([]), given(), Command::SetPolicy(Policy::default()), ""),
            ("too short", web([]), given(), Command::SetPolicy(policy(299)), "terminate_notice_out_of_range"),
            ("too long", web([]), given(), Command::SetPolicy(policy(901)), "terminate_notice_out_of_range"),
            ("new VM", web([]), given(), Command::Enrol(vec![member(vm(3))]), "VmAdded"),
            ("unchanged VM", web([]), given(), Command::Enrol(vec![member(vm(1))]), ""),
            ("another host", web([]), given(), Command::Enrol(vec![moved]), "VmChanged"),
            (
                "name in another case",
                web([]),
                given(),
                Command::Enrol(vec![renamed(3, "VM-1")]),
                "name_taken",
            ),
            ("name of another VM", web([]), given(), Command::Enrol(vec![renamed(1, "vm-2")]), "name_taken"),
            (
                "second VM in standalone scope",
                standalone("web", vm(1)),
                given(),
                Command::Enrol(vec![member(vm(2))]),
                "standalone_holds_one",
            ),
            (
                "member limit reached",
                scope("web", &many),
                given(),
                Command::Enrol(vec![renamed(5_000, "more")]),
                "too_many_members",
            ),
            ("gone", web([]), given(), Command::Remove(vec![vm(2)]), "VmRemoved"),
            (
                "removed together with its event",
                web([reboot()]),
                given(),
                Command::Remove(vec![vm(1)]),
                "VmRemoved, EventCancelled(ResourcesGone) 1",
            ),
            ("never there", web([]), given(), Command::Remove(vec![vm(3)]), "unknown_vm"),
            ("runs again", asleep, given(), Command::Revive(vm(1)), "VmStarted"),
            ("runs", web([]), given(), Command::Revive(vm(1)), ""),
            ("unknown VM", web([]), given(), Command::Revive(vm(3)), "unknown_vm"),
        ]);
    }

    #[test]
    fn several_commands_bump_incarnation_once() {
        let given = ContextFixture::default();
        let mut applied = Applied::unchanged(web([]));
        for (n, cause) in [(1, Cause::HostReboot), (2, Cause::UserRestart)] {
            let open = Command::Open(vec![new_event(n, cause, &[vm(n)])]);
            applied.apply(open, given.context()).unwrap();
        }
        assert_eq!((applied.scope.incarnation, applied.facts.len()), (2, 2));
    }
}
