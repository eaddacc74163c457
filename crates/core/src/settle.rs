//! Fixpoint settling: repeats automatic changes until none is left, so that the result of [`Scope::apply`]
//! never holds anything overdue. One step ends an event that has run its time or whose commands are done, cancels
//! an event that has lost all its VMs, starts an event that is due and not blocked, or starts due commands.
//!
//! **The gate** between update domains: a planned event (maintenance, predicted failure) does not start while
//!
//! - a platform event of *another* update domain of its scope is Started, or
//! - a host operation is about to start in another update domain of its scope.
//!
//! So the platform never takes down two update domains of an availability set at once. Among blocked events the
//! earliest NotBefore goes first, then the smaller EventId. A part of a host operation never starts here by
//! itself: see [`crate::joint_start`].

use std::collections::HashMap;

use jiff::Timestamp;

use crate::actor::Actor;
use crate::apply::{ApplyContext, Change};
use crate::cause::{Cause, EventType};
use crate::clock_hold::ClockHold;
use crate::event::{DriverKind, Event, Outcome, Past, Phase, Ready, Run, StartReason};
use crate::exec::ExecRun;
use crate::fact::{CancelReason, EventFact, Fact};
use crate::host::choose;
use crate::ids::VmId;
use crate::joint_start::{Blocker, HostPart, StartOrder};
use crate::operation::Release;
use crate::scope::{ENDED_KEPT, ENDED_MAX, Ended, Member, MemberState, Scope};
use crate::time::after;

impl Scope {
    /// What blocks, at `now`, an event that starts by itself.
    pub fn blocker(&self, event: &Event, parts: &[HostPart], now: Timestamp) -> Option<Blocker> {
        if !event.cause.waits_for_other_update_domains() {
            return None;
        }
        self.gate(StartOrder::of(event)?, event.update_domain, parts, now).next()
    }

    /// The gate between update domains: everything that blocks a start with this order at `now`.
    pub fn gate(
        &self,
        order: StartOrder,
        update_domain: u32,
        parts: &[HostPart],
        now: Timestamp,
    ) -> impl Iterator<Item = Blocker> {
        let first = parts.iter().filter(move |part| part.blocks(order, update_domain, now));
        let first = first.map(|part| {
            let HostPart { operation, update_domain, .. } = *part;
            Blocker::HostOperation { operation, update_domain }
        });
        self.active_in_other_domains(update_domain).chain(first)
    }

    /// The started platform events of other update domains.
    pub fn active_in_other_domains(&self, update_domain: u32) -> impl Iterator<Item = Blocker> {
        let busy = move |other: &&Event| {
            other.is_started() && other.is_platform_event() && other.update_domain != update_domain
        };
        let events = self.events.iter().filter(busy);
        events.map(|other| Blocker::Event { event: other.id, update_domain: other.update_domain })
    }

    /// When an automatic change of the event is due. None for a blocked event: the command that ends the blocker
    /// settles it.
    pub(crate) fn due_at(
        &self,
        event: &Event,
        parts: &[HostPart],
        hold: Option<&ClockHold>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        match &event.phase {
            Phase::Started { run: Run::Simulated { ends_at }, .. } => {
                (!is_held(event, hold)).then_some(*ends_at)
            }
            Phase::Started { run: Run::Manual, .. } => None,
            Phase::Started { run: Run::Exec(run), .. } => run.next_due(),
            Phase::Scheduled { ready: Some(_), .. } | Phase::Advisory { .. } => None,
            Phase::Scheduled { .. } if event.joint_start => None,
            Phase::Scheduled { not_before, .. } => {
                // An event that is already due stays due, also when the clock is set back.
                let due = match reason_to_begin(event, hold, now) {
                    Some(StartReason::NotBefore) => *not_before,
                    Some(_) => Timestamp::MIN,
                    None if is_held(event, hold) => return None,
                    None => *not_before,
                };
                self.blocker(event, parts, due.max(now)).is_none().then_some(due)
            }
        }
    }
}

/// Whether time alone must not change this event.
fn is_held(event: &Event, hold: Option<&ClockHold>) -> bool {
    hold.is_some_and(|hold| hold.holds(event.id))
}

/// Why a scheduled event may start at `now`; none if it may not.
fn reason_to_begin(event: &Event, hold: Option<&ClockHold>, now: Timestamp) -> Option<StartReason> {
    match &event.phase {
        Phase::Started { .. } | Phase::Scheduled { ready: Some(_), .. } | Phase::Advisory { .. } => None,
        Phase::Scheduled { .. } if event.joint_start => None,
        Phase::Scheduled { not_before, approval, released, ready: None } => {
            let approved = approval.is_some()
                && match event.release {
                    Release::Each => true,
                    Release::Together => *released,
                };
            if approved {
                Some(StartReason::Approved)
            } else if *not_before <= now && !is_held(event, hold) {
                Some(StartReason::NotBefore)
            } else {
                None
            }
        }
    }
}

/// The actor of a start: the approver if the event was approved, otherwise `otherwise`.
pub(crate) fn starter(event: &Event, why: StartReason, otherwise: Actor) -> Actor {
    match &event.phase {
        Phase::Scheduled { approval: Some(approval), .. } if why == StartReason::Approved => {
            approval.by.clone()
        }
        Phase::Scheduled { .. } | Phase::Started { .. } | Phase::Advisory { .. } => otherwise,
    }
}

impl Change<'_> {
    /// Applies all due changes, to a fixpoint. Every round ends or starts an event, or starts its commands. No change
    /// is reverted, so an event takes a few rounds at most.
    pub(crate) fn settle(&mut self) {
        loop {
            if let Some(index) = self.next_to_end() {
                self.complete_event(index, Actor::Driver(DriverKind::Simulated.to_string()), &[]);
            } else if let Some(index) = self.next_without_resources() {
                match self.scope.events[index].is_started() {
                    true => self.complete_event(index, Actor::Service, &[]),
                    false => self.cancel_event(index, Actor::Service, CancelReason::ResourcesGone),
                }
            } else if let Some(index) = self.next_finished() {
                self.complete_event(index, Actor::Driver(DriverKind::Exec.to_string()), &[]);
            } else if let Some((index, why)) = self.next_to_begin() {
                self.start_or_mark_ready(index, why);
            } else if !self.drive() {
                break;
            }
        }
        self.drop_old_endings();
    }

    /// The earliest end first, so that the history is in order of time.
    fn next_to_end(&self) -> Option<usize> {
        let ends = self.scope.events.iter().enumerate().filter_map(|(index, event)| {
            let Phase::Started { run: Run::Simulated { ends_at }, .. } = event.phase else { return None };
            let ApplyContext { now, clock_hold, .. } = self.context;
            (ends_at <= now && !is_held(event, clock_hold)).then_some((ends_at, index))
        });
        ends.min().map(|(_, index)| index)
    }

    fn next_without_resources(&self) -> Option<usize> {
        let members: HashMap<VmId, MemberState> =
            self.scope.members.iter().map(|member| (member.vm, member.state)).collect();
        let gone = |event: &Event| event.is_without_vms(|vm| members.get(&vm).copied());
        self.scope.events.iter().position(gone)
    }

    fn next_to_begin(&self) -> Option<(usize, StartReason)> {
        let due = self.scope.events.iter().enumerate().filter_map(|(index, event)| {
            let ApplyContext { now, host_parts, clock_hold, .. } = self.context;
            let why = reason_to_begin(event, clock_hold, now)?;
            let is_free = self.scope.blocker(event, host_parts, now).is_none();
            is_free.then_some(((event.not_before(), event.id), index, why))
        });
        due.min_by_key(|(order, ..)| *order).map(|(_, index, why)| (index, why))
    }

    /// Starts an event; with the manual driver, marks it as ready.
    fn start_or_mark_ready(&mut self, index: usize, why: StartReason) {
        let by = starter(&self.scope.events[index], why, Actor::Timer);
        match self.scope.events[index].driver {
            DriverKind::Simulated | DriverKind::Exec => self.begin(index, why, by),
            DriverKind::Manual => self.mark_ready(index, why, by),
        }
    }

    /// Manual driver: records that the event may start.
    pub(crate) fn mark_ready(&mut self, index: usize, why: StartReason, by: Actor) {
        let now = self.context.now;
        let mut event = self.scope.events[index].clone();
        if let Phase::Scheduled { ready: ready @ None, .. } = &mut event.phase {
            *ready = Some(Ready { at: now, why });
            self.note(&mut event, by, EventFact::EventReady { why });
            self.scope.events[index] = event;
        }
    }

    /// Moves an event to Started. The caller has checked that nothing blocks it.
    pub(crate) fn begin(&mut self, index: usize, why: StartReason, by: Actor) {
        let now = self.context.now;
        let mut event = self.scope.events[index].clone();
        let run = match event.driver {
            DriverKind::Simulated => Run::Simulated { ends_at: after(now, self.simulated_span(&event)) },
            DriverKind::Manual => Run::Manual,
            DriverKind::Exec => {
                let ApplyContext { runner, settings, .. } = self.context;
                Run::Exec(ExecRun::new(runner, event.resources.len(), &settings.exec, now))
            }
        };
        event.target_host = self.target_host(&event);
        event.phase = Phase::Started { at: now, why, run };
        self.note(&mut event, by, EventFact::EventStarted { why });
        let by_event = event.id;
        let redeployed = match event.cause == Cause::UserRedeploy {
            true => event.resources.clone(),
            false => Vec::new(),
        };
        self.scope.events[index] = event;
        for resource in redeployed {
            self.cancel_predicted_failure(resource.vm, by_event);
        }
    }

    /// The host to which a starting event moves its VM. None for an event that moves nothing, a VM without a host, or if
    /// no other host takes VMs. With the manual driver the operator chooses.
    fn target_host(&self, event: &Event) -> Option<String> {
        let moves = match event.driver {
            DriverKind::Simulated | DriverKind::Exec => event.cause.event_type() == EventType::Redeploy,
            DriverKind::Manual => false,
        };
        let vm = event.resources.first().filter(|_| moves)?.vm;
        let own = self.scope.member(vm)?.host.as_deref()?;
        let free = self.context.free_hosts.free_hosts();
        choose(free, own, |host| self.scope.is_on_host(host)).map(str::to_owned)
    }

    fn simulated_span(&self, event: &Event) -> std::time::Duration {
        let settings = self.context.settings;
        match u64::try_from(event.duration_s) {
            Ok(seconds) if !settings.ignores_announced_duration => std::time::Duration::from_secs(seconds),
            Ok(_) | Err(_) => settings.simulated_duration,
        }
    }

    /// Cancels a predicted failure for a VM whose owner moves it away from that host.
    fn cancel_predicted_failure(&mut self, vm: VmId, by_event: crate::ids::EventId) {
        let predicted = |event: &Event| {
            event.cause == Cause::PredictedFailure && !event.is_started() && event.includes_vm(vm)
        };
        while let Some(index) = self.scope.events.iter().position(predicted) {
            self.cancel_event(index, self.context.by.clone(), CancelReason::Redeployed { by_event });
        }
    }

    /// Cancels the advisories of a VM that an announced Preempt replaces.
    pub(crate) fn cancel_advisories(&mut self, vm: VmId, by_event: crate::ids::EventId) {
        let advisory = |event: &Event| event.is_advisory() && event.includes_vm(vm);
        while let Some(index) = self.scope.events.iter().position(advisory) {
            self.cancel_event(index, self.context.by.clone(), CancelReason::Preempted { by_event });
        }
    }

    pub(crate) fn cancel_event(&mut self, index: usize, by: Actor, why: CancelReason) {
        self.end(index, by, Outcome::Cancelled, EventFact::EventCancelled { why });
    }

    /// Completes an event and updates its VMs: moved, removed or deallocated.
    pub(crate) fn complete_event(&mut self, index: usize, by: Actor, hosts: &[(VmId, String)]) {
        let event = self.end(index, by.clone(), Outcome::Completed, EventFact::EventCompleted);
        // The first-run VM survives a simulated deletion.
        let spared = self.scope.first_run && event.driver == DriverKind::Simulated;
        // Hosts in the command override those that exec commands reported, and that of the simulated driver.
        for (vm, host) in event.new_hosts().iter().chain(hosts) {
            self.move_to(*vm, host, &by);
        }
        match event.cause.event_type() {
            EventType::Freeze
            | EventType::Reboot
            | EventType::Redeploy
            | EventType::SpotRebalanceRecommendation => {}
            EventType::Preempt | EventType::Terminate if spared => {}
            EventType::Preempt => event.resources.iter().for_each(|one| self.deallocate(one.vm, &by)),
            EventType::Terminate => {
                event.resources.iter().for_each(|one| self.drop_member(one.vm, by.clone()))
            }
        }
    }

    fn end(&mut self, index: usize, by: Actor, outcome: Outcome, fact: EventFact) -> Event {
        let now = self.context.now;
        let mut event = self.scope.events.remove(index);
        self.note(&mut event, by, fact);
        self.scope.ended.push(Ended { event: event.id, at: now, outcome });
        self.past.push(Past { scope: self.scope.id(), outcome, ended_at: now, event: event.clone() });
        event
    }

    fn move_to(&mut self, vm: VmId, host: &str, by: &Actor) {
        let elsewhere = |member: &&mut Member| member.vm == vm && member.host.as_deref() != Some(host);
        if let Some(member) = self.scope.members.iter_mut().find(elsewhere) {
            member.move_to(host);
            let fact = Fact::VmMoved { vm, name: member.name.clone(), host: host.to_owned() };
            self.record_by(by.clone(), fact);
        }
    }

    fn deallocate(&mut self, vm: VmId, by: &Actor) {
        if let Some(member) = self.scope.members.iter_mut().find(|member| member.vm == vm) {
            member.state = MemberState::Deallocated;
            let fact = Fact::VmDeallocated { vm, name: member.name.clone() };
            self.record_by(by.clone(), fact);
        }
    }

    /// Removes a VM. Events without VMs end when the command settles.
    pub(crate) fn drop_member(&mut self, vm: VmId, by: Actor) {
        if let Some(index) = self.scope.members.iter().position(|member| member.vm == vm) {
            let member = self.scope.members.remove(index);
            self.record_by(by, Fact::VmRemoved { vm, name: member.name });
        }
    }

    /// Whether the approval of an event that ended then still answers 200.
    pub(crate) fn is_recent(&self, ended_at: Timestamp) -> bool {
        self.context.clock_hold.is_some() || self.context.now.duration_since(ended_at) < ENDED_KEPT
    }

    /// Called only when an event ends, so that a command that changes nothing writes nothing.
    fn drop_old_endings(&mut self) {
        if self.past.is_empty() {
            return;
        }
        let excess = self.scope.ended.len().saturating_sub(ENDED_MAX);
        self.scope.ended.drain(..excess);
        let ended = std::mem::take(&mut self.scope.ended);
        self.scope.ended = ended.into_iter().filter(|ended| self.is_recent(ended.at)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::{Applied, Command};
    use crate::samples::{
        ContextFixture, approved, at, event, event_id, operation_id, outcome_text, scope, started, vm,
    };
    use crate::scope::ENDED_KEPT;

    const REBOOT: Cause = Cause::HostReboot;

    fn web(events: &[Event]) -> Scope {
        Scope { events: events.to_vec(), ..scope("web", &[vm(1), vm(2), vm(3)]) }
    }

    fn one(cause: Cause) -> Event {
        event(1, cause, &[vm(1)])
    }

    fn in_domain(update_domain: u32, event: Event) -> Event {
        Event { update_domain, ..event }
    }

    fn due_at(seconds: i64, mut event: Event) -> Event {
        if let Phase::Scheduled { not_before, .. } = &mut event.phase {
            *not_before = at(seconds);
        }
        event
    }

    fn manual(event: Event) -> Event {
        Event { driver: DriverKind::Manual, ..event }
    }

    fn then(seconds: i64) -> ContextFixture {
        ContextFixture { now: at(seconds), ..ContextFixture::default() }
    }

    #[test]
    fn pulse_starts_due_unblocked_events() {
        let held = |seconds| ContextFixture {
            clock_hold: Some(ClockHold::from_iter([event_id(1)])),
            ..then(seconds)
        };
        let other = |cause| in_domain(1, started(event(2, cause, &[vm(2)])));
        let first_run = Scope { first_run: true, ..web(&[started(one(Cause::Deletion))]) };
        let gone = |mut scope: Scope| {
            scope.members.remove(0);
            scope
        };
        let stopped = |mut scope: Scope| {
            scope.members[0].state = MemberState::Deallocated;
            scope
        };
        let part = Event { joint_start: true, ..one(REBOOT) };
        let start = crate::joint_start::HostStartState::Released;
        let host_parts = vec![HostPart { operation: operation_id(9), update_domain: 1, start }];
        let spare = [event(2, Cause::PredictedFailure, &[vm(1)]), approved(one(Cause::UserRedeploy))];
        let rows: Vec<(&str, Scope, ContextFixture, &str)> = vec![
            ("before NotBefore", web(&[one(REBOOT)]), then(899), ""),
            ("at NotBefore", web(&[one(REBOOT)]), then(900), "EventStarted(NotBefore) 1"),
            ("clock not trusted", web(&[one(REBOOT)]), held(900), ""),
            (
                "approved, clock not trusted",
                web(&[approved(one(REBOOT))]),
                held(0),
                "EventStarted(Approved) 1",
            ),
            ("manual becomes ready", web(&[manual(one(REBOOT))]), then(900), "EventReady(NotBefore) 1"),
            ("part of a host operation", web(&[part]), then(900), ""),
            ("before its end", web(&[started(one(REBOOT))]), then(59), ""),
            ("at its end", web(&[started(one(REBOOT))]), then(60), "EventCompleted 1"),
            ("at its end, clock not trusted", web(&[started(one(REBOOT))]), held(60), ""),
            (
                "another update domain, ending now",
                web(&[one(REBOOT), manual(other(REBOOT))]),
                then(900),
                "EventCompleted 2, EventStarted(NotBefore) 1",
            ),
            (
                "another update domain, still under way",
                web(&[one(REBOOT), started(manual(other(REBOOT)))]),
                then(900),
                "",
            ),
            (
                "the same update domain",
                web(&[one(REBOOT), started(manual(event(2, REBOOT, &[vm(2)])))]),
                then(900),
                "EventStarted(NotBefore) 1",
            ),
            (
                "user event in another update domain",
                web(&[one(REBOOT), started(manual(other(Cause::UserRestart)))]),
                then(900),
                "EventStarted(NotBefore) 1",
            ),
            (
                "user events do not wait",
                web(&[one(Cause::UserRestart), started(manual(other(REBOOT)))]),
                then(900),
                "EventStarted(NotBefore) 1",
            ),
            (
                "released host operation in another update domain",
                web(&[one(REBOOT)]),
                ContextFixture { host_parts, ..then(900) },
                "",
            ),
            (
                "earlier NotBefore goes first",
                web(&[due_at(20, one(REBOOT)), in_domain(1, due_at(10, event(2, REBOOT, &[vm(2)])))]),
                then(30),
                "EventStarted(NotBefore) 2",
            ),
            (
                "smaller id goes first",
                web(&[in_domain(1, due_at(10, event(2, REBOOT, &[vm(2)]))), due_at(10, one(REBOOT))]),
                then(30),
                "EventStarted(NotBefore) 1",
            ),
            ("its VM is gone", gone(web(&[one(REBOOT)])), then(0), "EventCancelled(ResourcesGone) 1"),
            ("its VM is gone, under way", gone(web(&[started(one(REBOOT))])), then(0), "EventCompleted 1"),
            ("VM is deallocated", stopped(web(&[one(REBOOT)])), then(0), "EventCancelled(ResourcesGone) 1"),
            ("user event of a deallocated VM", stopped(web(&[one(Cause::UserRestart)])), then(0), ""),
            ("evicted", web(&[started(one(Cause::Eviction))]), then(60), "EventCompleted 1, VmDeallocated"),
            ("deleted", web(&[started(one(Cause::Deletion))]), then(60), "EventCompleted 1, VmRemoved"),
            ("the first-run VM stays", first_run, then(60), "EventCompleted 1"),
            (
                "moved away in time",
                web(&spare),
                then(0),
                "EventStarted(Approved) 1, EventCancelled(Redeployed) 2",
            ),
        ];
        for (name, scope, given, expected) in rows {
            let result = scope.apply(Command::Pulse, given.context());
            if let Ok(Applied { scope, .. }) = &result {
                let due = scope.next_due(&given.host_parts, given.clock_hold.as_ref(), given.now);
                assert!(due.is_none_or(|due| due > given.now), "{name}: something is overdue");
            }
            assert_eq!(outcome_text(result), expected, "{name}");
        }
    }

    #[test]
    fn redeploy_moves_its_vm_to_another_host() {
        let on = |hosts: &[(u128, Option<&str>)], events: &[Event]| {
            let mut scope = web(events);
            for (n, host) in hosts {
                let member = scope.members.iter_mut().find(|member| member.vm == vm(*n));
                member.unwrap().host = host.map(str::to_owned);
            }
            scope
        };
        let h1 = [(1, Some("h1")), (2, Some("h2")), (3, None)];
        let redeploy = || approved(one(Cause::HostRedeploy));
        let exec = Event { driver: DriverKind::Exec, ..redeploy() };
        let moving = Event { target_host: Some("h3".to_owned()), ..started(event(2, REBOOT, &[vm(3)])) };
        let free = [("h1", 0), ("h2", 0), ("h3", 5)];
        type Row<'a> = (&'a str, Scope, &'a [(&'static str, usize)], Option<&'a str>, Option<&'a str>);
        let rows: Vec<Row<'_>> = vec![
            ("simulated", on(&h1, &[redeploy()]), &free, Some("h3"), Some("h3")),
            (
                "degraded host",
                on(&h1, &[approved(one(Cause::PredictedFailure))]),
                &free,
                Some("h3"),
                Some("h3"),
            ),
            ("by its owner", on(&h1, &[approved(one(Cause::UserRedeploy))]), &free, Some("h3"), Some("h3")),
            ("another VM is on its way there", on(&h1, &[redeploy(), moving]), &free, Some("h2"), Some("h2")),
            ("no other host", on(&h1, &[redeploy()]), &[("h1", 0)], None, Some("h1")),
            ("VM without a host", on(&[(1, None)], &[redeploy()]), &free, None, None),
            ("reboot", on(&h1, &[approved(one(REBOOT))]), &free, None, Some("h1")),
            ("a command reports the host", on(&h1, &[exec]), &free, Some("h3"), Some("h1")),
        ];
        for (name, scope, free, chosen, reached) in rows {
            let given = |seconds| ContextFixture {
                free_hosts: crate::samples::FreeHostList(free.to_vec()),
                ..then(seconds)
            };
            let started = scope.apply(Command::Pulse, given(0).context()).unwrap().scope;
            let target = started.event(event_id(1)).unwrap().target_host.clone();
            assert_eq!(target.as_deref(), chosen, "{name}");
            let complete = Command::Complete { event: event_id(1), hosts: Vec::new() };
            let ended = started.apply(complete, given(1).context()).unwrap();
            let member = ended.scope.member(vm(1)).unwrap();
            assert_eq!(member.host.as_deref(), reached, "{name}");
            let left = scope.member(vm(1)).unwrap().host.clone().filter(|left| reached != Some(left));
            assert_eq!(member.moved_from, left, "{name}");
            let moved = ended.facts.iter().any(|one| matches!(one.fact, Fact::VmMoved { .. }));
            assert_eq!(moved, reached != scope.member(vm(1)).unwrap().host.as_deref(), "{name}");
        }
        let started = on(&h1, &[redeploy()]).apply(
            Command::Pulse,
            ContextFixture { free_hosts: crate::samples::FreeHostList(free.to_vec()), ..then(0) }.context(),
        );
        let by_hand = Command::Complete { event: event_id(1), hosts: vec![(vm(1), "h9".to_owned())] };
        let ended = started.unwrap().scope.apply(by_hand, then(1).context()).unwrap().scope;
        assert_eq!(ended.member(vm(1)).unwrap().host.as_deref(), Some("h9"), "the operator knows better");
    }

    #[test]
    fn next_due_is_next_automatic_change() {
        let other = in_domain(1, started(manual(event(2, REBOOT, &[vm(2)]))));
        let hold = ClockHold::from_iter([event_id(1)]);
        type Row<'a> = (&'a str, &'a [Event], Option<&'a ClockHold>, Option<Timestamp>);
        let rows: [Row<'_>; 9] = [
            ("nothing", &[], None, None),
            ("NotBefore", &[one(REBOOT)], None, Some(at(900))),
            ("the earlier", &[one(REBOOT), due_at(800, event(2, REBOOT, &[vm(1)]))], None, Some(at(800))),
            ("an end", &[started(one(REBOOT))], None, Some(at(60))),
            ("held", &[one(REBOOT)], Some(&hold), None),
            ("an end held", &[started(one(REBOOT))], Some(&hold), None),
            ("blocked", &[one(REBOOT), other], None, None),
            ("part of a host operation", &[Event { joint_start: true, ..one(REBOOT) }], None, None),
            ("by hand", &[started(manual(one(REBOOT)))], None, None),
        ];
        for (name, events, hold, expected) in rows {
            assert_eq!(web(events).next_due(&[], hold, at(0)), expected, "{name}");
        }
    }

    #[test]
    fn old_endings_are_dropped_on_new_ending() {
        let ended = |at| Ended { event: event_id(9), at, outcome: Outcome::Completed };
        let old = at(0).checked_sub(ENDED_KEPT).unwrap();
        let rows = [
            ("old", vec![ended(old)], 1),
            ("recent", vec![ended(at(-1))], 2),
            ("many", vec![ended(at(-1)); ENDED_MAX], ENDED_MAX),
        ];
        for (name, ended, left) in rows {
            let scope = Scope { ended: ended.clone(), ..web(&[started(one(REBOOT))]) };
            let still = scope.apply(Command::Pulse, then(0).context()).unwrap().scope;
            assert_eq!(still.ended, ended, "{name}: written without a new ending");
            let after = scope.apply(Command::Pulse, then(60).context()).unwrap().scope;
            assert_eq!(after.ended.len(), left, "{name}");
            assert_eq!(after.ended.last().map(|one| one.event), Some(event_id(1)), "{name}");
        }
    }
}
