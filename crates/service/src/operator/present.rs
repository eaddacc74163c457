//! Converts domain types to API types.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use jiff::Timestamp;
use notbefore_core::{
    Blocker, Event, EventFact, ExecRun, JointStart, Operation, OperationId, OperationState, Outcome, Past,
    Phase, Policy, Recorded, Release, Run, Scope, ScopeId, ScopeKind, Target, TargetState, VmId,
};
use notbefore_engine::Address;
use notbefore_engine::state::host_operations::HostOperations;
use notbefore_wire::operator as wire;
use notbefore_wire::text::counted;

use super::access::CommandReasons;
use super::problem::Problem;
use super::wire_names::WireName;
use super::{commands, facts};
use crate::delivery::VmPolls;
use crate::names;
use crate::view::{ScopeView, View};

/// Most blockers listed for an operation.
const BLOCKERS_NAMED_MAX: usize = 3;

pub fn scope(view: &ScopeView) -> wire::Scope {
    let Scope { path, kind, policy, incarnation, members, events, origin, .. } = &*view.scope;
    wire::Scope {
        path: path.to_string(),
        kind: kind.wire_name(),
        policy: wire_policy(policy),
        incarnation: *incarnation,
        vms: members.len(),
        events: events.len(),
        from_fleet: *origin == notbefore_core::Origin::Fleet,
        revision: view.revision,
    }
}

fn wire_policy(policy: &Policy) -> wire::Policy {
    wire::Policy {
        automatically_approve_reboot: policy.automatically_approve_reboot,
        automatically_approve_redeploy: policy.automatically_approve_redeploy,
        terminate_notification_seconds: policy.terminate_notice_s,
    }
}

/// None if the VM is not in the scope.
pub fn vm(
    view: &View,
    scope: &ScopeView,
    id: VmId,
    now: Timestamp,
    reasons: CommandReasons,
) -> Option<wire::Vm> {
    let member = scope.member(id)?;
    let addresses = view.addresses(id).iter().map(Address::to_string).collect();
    let last_poll = view.vm_polls(id).and_then(VmPolls::last_poll);
    Some(wire::Vm {
        id: id.0,
        path: names::path(scope, id),
        name: member.name.to_string(),
        scope: scope.scope.path.to_string(),
        kind: scope.scope.kind.wire_name(),
        state: member.state.wire_name(),
        update_domain: member.update_domain,
        fault_domain: member.fault_domain,
        zone: member.zone.clone(),
        host: reasons.host(member.host.as_deref()),
        spot: member.spot,
        addresses,
        events: scope
            .scope
            .events
            .iter()
            .filter(|event| event.includes_vm(id))
            .map(|event| event.id.0)
            .collect(),
        listening: view.listening(id, now),
        last_poll_at: last_poll.map(|poll| poll.at),
        last_poll_version: last_poll.map(|poll| poll.version.to_string()),
        first_run: scope.scope.first_run,
        revision: scope.revision,
    })
}

/// What the presentation of a page needs: the view, the caller's visibility, the time, and caches.
pub struct PresentContext<'a> {
    view: &'a View,
    sees: Box<dyn Fn(&ScopeId) -> bool + 'a>,
    now: Timestamp,
    reasons: CommandReasons,
    /// Computed when the first event needs it.
    hosts: OnceCell<HostOperations>,
    /// Cache of [`parts_to_approve`], because events of a page are often parts of the same operation.
    to_approve: RefCell<HashMap<OperationId, Option<usize>>>,
}

impl<'a> PresentContext<'a> {
    pub fn new(
        view: &'a View,
        sees: impl Fn(&ScopeId) -> bool + 'a,
        now: Timestamp,
        reasons: CommandReasons,
    ) -> Self {
        let (hosts, to_approve) = (OnceCell::new(), RefCell::default());
        Self { view, sees: Box::new(sees), now, reasons, hosts, to_approve }
    }

    fn hosts(&self) -> &HostOperations {
        self.hosts.get_or_init(|| {
            let mut hosts = HostOperations::default();
            for (id, held) in self.view.operations() {
                hosts.put(*id, Some(&held.value), |scope| self.scope(scope));
            }
            hosts
        })
    }

    fn scope(&self, id: &ScopeId) -> Option<&'a Scope> {
        self.view.scope(id).map(|scope| &*scope.scope)
    }

    /// What blocks a host operation, as text; none if it is not due or not blocked.
    fn host_waits_for(&self, id: OperationId) -> Option<String> {
        let hosts = self.hosts();
        hosts.due(id).filter(|due| due.reason(self.now).is_some())?;
        let blockers = hosts.blockers(id, |scope| self.scope(scope), self.now);
        let mut words: Vec<String> = blockers.iter().map(|one| self.blocker(*one)).collect();
        words.sort();
        words.dedup();
        let more = words.len().saturating_sub(BLOCKERS_NAMED_MAX);
        words.truncate(BLOCKERS_NAMED_MAX);
        if more > 0 {
            words.push(format!("{more} more"));
        }
        Some(words.join(", ")).filter(|words| !words.is_empty())
    }

    /// A blocker as text, without details about scopes that the caller does not see.
    fn blocker(&self, blocker: Blocker) -> String {
        match blocker {
            Blocker::Event { event, update_domain } => {
                match self.view.scope_of_event(event).filter(|scope| (self.sees)(&scope.scope.id())) {
                    Some(scope) => format!(
                        "the end of event {event} in update domain {update_domain} of {}",
                        scope.scope.path
                    ),
                    None => "the end of an event in another scope".to_owned(),
                }
            }
            Blocker::HostOperation { operation, .. } => {
                let held = self.view.operation(operation);
                let mut targets = held.iter().flat_map(|held| &held.value.targets);
                let held = held.filter(|_| targets.all(|target| (self.sees)(&target.scope)));
                match held.map(|held| self.reasons.host(held.value.host.as_deref())) {
                    Some(Some(host)) => format!("operation {operation} of host {host}, which goes first"),
                    Some(None) => format!("operation {operation} of another host, which goes first"),
                    None => "an operation of another host, which goes first".to_owned(),
                }
            }
        }
    }

    fn parts_to_approve(&self, operation: OperationId) -> Option<usize> {
        let mut known = self.to_approve.borrow_mut();
        *known.entry(operation).or_insert_with(|| parts_to_approve(self.view, operation, &*self.sees))
    }
}

pub fn event(
    context: &PresentContext<'_>,
    scope: &ScopeView,
    event: &Event,
    reasons: CommandReasons,
) -> wire::Event {
    let common = common(&scope.scope.path.to_string(), &scope.scope.id(), event, reasons);
    let operation = event.waits_for_host.then(|| context.view.operation(event.operation)).flatten();
    let host_command = operation.map(|held| commands::of_host(&held.value, reasons));
    wire::Event {
        started_at: match event.phase {
            Phase::Scheduled { .. } | Phase::Advisory { .. } => None,
            Phase::Started { at, .. } => Some(at),
        },
        waits_for: Some(waits_for(context, &scope.scope, event)),
        exec: common.exec.map(|exec| wire::ExecProgress { host_command, ..exec }),
        revision: scope.revision,
        ..common
    }
}

pub fn past(past: &Past, revision: u64, reasons: CommandReasons) -> wire::Event {
    let is_start = |fact: &&Recorded<EventFact>| matches!(fact.fact, EventFact::EventStarted { .. });
    wire::Event {
        status: past.outcome.wire_name(),
        started_at: past.event.trail.iter().find(is_start).map(|fact| fact.at),
        ended_at: Some(past.ended_at),
        not_before: None,
        revision,
        exec: past.event.exec_run().map(|run| commands::last_progress(&past.event, run, reasons)),
        ..common(past.scope.as_str(), &past.scope, &past.event, reasons)
    }
}

fn common(path: &str, scope: &ScopeId, event: &Event, reasons: CommandReasons) -> wire::Event {
    wire::Event {
        id: event.id.0,
        operation: event.operation.0,
        event_type: event.cause.event_type().wire_name(),
        status: event.phase.wire_name(),
        cause: event.cause.wire_name(),
        source: event.cause.source().wire_name(),
        scope: path.to_owned(),
        update_domain: event.update_domain,
        resources: event.resources.iter().map(|one| resource(one, reasons)).collect(),
        scheduled_at: event.trail.first().map(|fact| fact.at),
        not_before: event.not_before(),
        approved: event.approved(),
        time_given: event.time_given,
        started_at: None,
        ended_at: None,
        description: event.description.clone(),
        duration_seconds: event.duration_s,
        driver: event.driver.wire_name(),
        waits_for: None,
        exec: event.exec_run().map(|run| commands::progress(event, run, reasons)),
        unread_by: Vec::new(),
        seen: Vec::new(),
        trail: facts::trail(scope, event, reasons),
        revision: 0,
    }
}

pub fn resource(resource: &notbefore_core::Resource, reasons: CommandReasons) -> wire::Resource {
    let host = reasons.host(resource.host.as_deref());
    wire::Resource { vm: resource.vm.0, name: resource.name.to_string(), host }
}

/// What an event waits for, as text, with the command that continues it.
fn waits_for(context: &PresentContext<'_>, scope: &Scope, event: &Event) -> String {
    match &event.phase {
        Phase::Started { run: Run::Simulated { ends_at }, .. } => {
            format!("its simulated end at {ends_at:.0}, or 'notbefore event complete'")
        }
        Phase::Started { run: Run::Manual, .. } => {
            "an operator to complete it: 'notbefore event complete'".to_owned()
        }
        Phase::Started { run: Run::Exec(_), .. } if event.is_ready_for_host() => {
            let operation = context.view.operation(event.operation);
            operation.and_then(|held| commands::host_waits_for(&held.value, context.reasons)).unwrap_or_else(
                || format!("the command for its host: 'notbefore operation show {}'", event.operation),
            )
        }
        Phase::Started { run: Run::Exec(run), .. } => commands::waits_for(event, run),
        Phase::Advisory { .. } => {
            "nothing: it never starts; 'notbefore event cancel' or an eviction of its VM ends it".to_owned()
        }
        Phase::Scheduled { ready: Some(_), .. } if event.joint_start => {
            format!("an operator to start its operation: 'notbefore operation start {}'", event.operation)
        }
        Phase::Scheduled { ready: Some(_), .. } => {
            "an operator to start it: 'notbefore event start'".to_owned()
        }
        Phase::Scheduled { .. } if event.joint_start => host_part_waits_for(context, event),
        Phase::Scheduled { not_before, approval, released, .. } => {
            let parts = context.hosts().parts_in(&scope.id());
            if let Some(blocker) = scope.blocker(event, parts, context.now) {
                let first = context.blocker(blocker);
                return match approval {
                    Some(_) => format!("{first}; then it starts"),
                    None => format!("{first}; then approval, or {not_before}"),
                };
            }
            if approval.is_some() && event.release == Release::Together && !released {
                return format!("{}, or {not_before}", other_approvals(context, event.operation));
            }
            format!("approval, or {not_before}")
        }
    }
}

/// What an event of a host operation waits for: the whole operation waits for the same.
fn host_part_waits_for(context: &PresentContext<'_>, event: &Event) -> String {
    let Some(due) = context.hosts().due(event.operation) else {
        return "its operation, which starts as a whole".to_owned();
    };
    match context.host_waits_for(event.operation) {
        Some(blockers) => format!("{blockers}; then all events of its operation start together"),
        None if due.reason(context.now).is_some() => "its operation, which starts now".to_owned(),
        None => {
            let latest = due.order.not_before;
            match event.approved() {
                true => format!("{}, or {latest}", other_approvals(context, event.operation)),
                false => format!("approval by every scope of its operation, or {latest}"),
            }
        }
    }
}

fn other_approvals(context: &PresentContext<'_>, operation: OperationId) -> String {
    match context.parts_to_approve(operation) {
        Some(open) => format!("the approval of {} of its operation", counted(open, "more part")),
        None => "the approval of other parts of its operation".to_owned(),
    }
}

/// Number of an operation's parts that are not approved yet, according to their scopes; none if the caller does not
/// see all parts.
fn parts_to_approve(view: &View, operation: OperationId, sees: &dyn Fn(&ScopeId) -> bool) -> Option<usize> {
    let Some(operation) = view.operation(operation) else { return Some(0) };
    if !operation.value.targets.iter().all(|target| sees(&target.scope)) {
        return None;
    }
    let waiting = |target: &&notbefore_core::Target| {
        let part = view.scope(&target.scope).and_then(|scope| scope.scope.event(target.event));
        part.is_some_and(|part| !part.approved() && !part.is_started() && !part.is_advisory())
    };
    Some(operation.value.targets.iter().filter(waiting).count())
}

/// An operation, with the current state of its parts.
pub fn operation(
    context: &PresentContext<'_>,
    operation: &Operation,
    reasons: CommandReasons,
) -> wire::Operation {
    let of = |one| target(context, operation, one, reasons);
    let targets: Vec<_> = operation.targets.iter().map(of).collect();
    // The scopes know the end of their events before the operation's record does.
    let closed;
    let mut operation = operation;
    if operation.state != OperationState::Closed
        && targets.iter().all(|one| has_ended(&one.state))
        && !operation.has_unfinished_host_command()
    {
        closed = Operation { state: OperationState::Closed, ..operation.clone() };
        operation = &closed;
    }
    wire::Operation {
        id: operation.id.0,
        cause: operation.cause.wire_name(),
        host: reasons.host(operation.host.as_deref()),
        by: operation.by.to_string(),
        requested_at: operation.requested_at,
        state: operation.state.wire_name(),
        release: operation.release.wire_name(),
        not_before: operation
            .not_before
            .filter(|_| !operation.cause.is_advisory() && !began_at_once(context, operation)),
        time_given: operation.time_given,
        cancelled: operation.cancelled_by.is_some(),
        completed: operation.completed_by.is_some(),
        host_start: operation.joint_start.as_ref().map(WireName::wire_name),
        host_command: operation.host_command.as_ref().map(|_| commands::of_host(operation, reasons)),
        waits_for: match &operation.joint_start {
            _ if operation.state == OperationState::Closed => None,
            Some(JointStart::Waiting) => context.host_waits_for(operation.id),
            Some(JointStart::Ready { .. }) => {
                Some(format!("an operator to start it: 'notbefore operation start {}'", operation.id))
            }
            Some(JointStart::Released { .. }) | None => commands::host_waits_for(operation, reasons),
        },
        progress: wire::OperationProgress::of(&targets),
        targets,
    }
}

/// Whether all live events of an operation started without waiting for NotBefore; then NotBefore is not shown.
fn began_at_once(context: &PresentContext<'_>, operation: &Operation) -> bool {
    let events =
        operation.targets.iter().filter_map(|target| context.scope(&target.scope)?.event(target.event));
    let mut events = events.peekable();
    events.peek().is_some()
        && events.all(|event| match &event.phase {
            Phase::Started { why, .. } => why.is_at_once(),
            Phase::Scheduled { .. } | Phase::Advisory { .. } => false,
        })
}

fn has_ended(state: &wire::TargetState) -> bool {
    use wire::TargetState as State;
    match state {
        State::Completed | State::Cancelled | State::Refused | State::Ended => true,
        State::Opening
        | State::Waiting
        | State::Approved
        | State::Started
        | State::Advisory
        | State::Unknown(_) => false,
    }
}

fn target(
    context: &PresentContext<'_>,
    operation: &Operation,
    target: &Target,
    reasons: CommandReasons,
) -> wire::OperationTarget {
    let scope = context.scope(&target.scope);
    let event = scope.and_then(|scope| scope.event(target.event));
    // The scope has an event's outcome before the operation has it.
    let ended = scope.and_then(|scope| scope.ended.iter().find(|one| one.event == target.event));
    let outcome = target.outcome.or(ended.map(|one| one.outcome));
    let is_over = target.state == TargetState::Ended || ended.is_some() || scope.is_none();
    let host_failed = operation.host_run().is_some_and(ExecRun::has_failed);
    use wire::{TargetState as State, TargetStatus as Status};
    let (status, state) = match event.map(|event| &event.phase) {
        Some(Phase::Scheduled { approval: Some(_), .. }) => (Status::Scheduled, State::Approved),
        Some(Phase::Scheduled { .. }) => (Status::Scheduled, State::Waiting),
        Some(Phase::Started { .. }) => (Status::Started, State::Started),
        Some(Phase::Advisory { .. }) => (Status::Advisory, State::Advisory),
        None if target.refused.is_some() => (Status::Refused, State::Refused),
        None if outcome == Some(Outcome::Completed) => (Status::Completed, State::Completed),
        None if outcome == Some(Outcome::Cancelled) => (Status::Cancelled, State::Cancelled),
        // Cancelled before its scope had the event.
        None if operation.cancelled_by.is_some() => (Status::Cancelled, State::Cancelled),
        None if operation.state == OperationState::Opening && !is_over => (Status::Opening, State::Opening),
        None => (Status::Ended, State::Ended),
    };
    wire::OperationTarget {
        event: target.event.0,
        scope: target.scope.to_string(),
        update_domain: target.update_domain,
        resources: target.resources.iter().map(|one| resource(one, reasons)).collect(),
        state,
        status,
        failed: event.is_some_and(|event| event.has_failed() || event.is_ready_for_host() && host_failed),
        refused: target.refused.clone(),
        started_because: event.and_then(|event| match &event.phase {
            Phase::Started { why, .. } => Some(why.to_string()),
            Phase::Scheduled { .. } | Phase::Advisory { .. } => None,
        }),
    }
}

/// Parses the kind of a scope in a request.
pub fn kind(word: &wire::ScopeKind) -> Result<ScopeKind, Problem> {
    word.as_str().parse().map_err(|error| Problem::bad_request("bad_kind", format!("kind {error}")))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use notbefore_core::{Actor, Cause, DriverKind, EventId};
    use notbefore_engine::{Publication, PublishedChange, Revisioned};
    use notbefore_store::Revision;
    use uuid::Uuid;

    use super::*;
    use crate::view::Views;

    #[test]
    fn hosts_are_for_those_who_may_see_them() {
        let (vm, name) = (VmId(Uuid::nil()), "web-0".parse().unwrap());
        let on_host = notbefore_core::Resource { vm, name, host: Some("h1".to_owned()) };
        assert_eq!(resource(&on_host, CommandReasons::SHOWN).host.as_deref(), Some("h1"));
        assert_eq!(resource(&on_host, CommandReasons::HIDDEN).host, None);
        assert_eq!(CommandReasons::HIDDEN.host_or_empty("h1"), "");
    }

    #[test]
    fn parts_to_approve_are_counted_once_per_page() {
        const PARTS: u128 = 500;
        let path: notbefore_core::ScopePath = "web".parse().unwrap();
        let part = |n| Target {
            scope: path.id(),
            update_domain: 0,
            event: EventId(Uuid::from_u128(n)),
            resources: Vec::new(),
            state: TargetState::Waiting,
            refused: None,
            outcome: None,
        };
        let operation = Operation {
            id: OperationId(Uuid::from_u128(7)),
            cause: Cause::HostReboot,
            by: Actor::Service,
            requested_at: Timestamp::UNIX_EPOCH,
            host: None,
            not_before: None,
            time_given: false,
            duration_s: -1,
            description: String::new(),
            driver: DriverKind::Manual,
            release: Release::Together,
            targets: (0..PARTS).map(part).collect(),
            state: OperationState::Open,
            released: false,
            joint_start: None,
            host_command: None,
            cancelled_by: None,
            completed_by: None,
        };
        let id = operation.id;
        let held = Revisioned { revision: Revision(1), value: Arc::new(operation) };
        let changes = vec![PublishedChange::Operation(id, Some(held))];
        let views = Views::new(false);
        views.publish(Publication { changes, ..Publication::default() }, Timestamp::UNIX_EPOCH);

        let (view, looks) = (views.newest(), Cell::new(0));
        let sees = |_: &ScopeId| {
            looks.set(looks.get() + 1);
            true
        };
        let context = PresentContext::new(&view, sees, Timestamp::UNIX_EPOCH, CommandReasons::SHOWN);
        for _ in 0..PARTS {
            assert_eq!(context.parts_to_approve(id), Some(0), "none of its scopes exists");
        }
        assert_eq!(looks.get(), PARTS);
    }
}
