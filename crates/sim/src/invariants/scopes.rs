//! Invariants of one scope's record before and after one commit.

use std::rc::Rc;

use notbefore_core::{
    Actor, DriverKind, Event, EventType, JointStart, Operation, Phase, Release, Run, Scope, ScopeId,
    StartReason,
};
use notbefore_engine::{Command, EventCommand, GuestApproval, OperationCommand};

use super::{Check, commands_go_on, ensure, ensure_also};
use crate::conformance::{Flight, SentRequest, is_approved};
use crate::hosts;
use crate::ledger::Ledger;
use crate::model::{announced, document, must_wait, next_due, started};
use crate::rules;
use crate::view::{Reads, View};

/// A scope's record before and after one commit.
pub struct Transition<'a> {
    pub id: &'a ScopeId,
    /// None if it was created.
    pub before: Option<&'a Scope>,
    /// None if it was removed.
    pub after: Option<&'a Scope>,
    pub flight: &'a Flight,
    /// All committed records before it.
    pub view: &'a View,
}

impl Transition<'_> {
    fn live_before(&self) -> &[Event] {
        self.before.map_or(&[], |scope| &scope.events)
    }

    pub(crate) fn live_after(&self) -> &[Event] {
        self.after.map_or(&[], |scope| &scope.events)
    }

    pub(crate) fn was(&self, event: &Event) -> Option<&Event> {
        self.live_before().iter().find(|one| one.id == event.id)
    }

    /// The events that this commit started.
    fn newly_started(&self) -> impl Iterator<Item = (&Event, Option<&Event>)> {
        let events = self.live_after().iter().map(|event| (event, self.was(event)));
        events.filter(|(event, was)| started(event) && !was.is_some_and(started))
    }
}

/// Checks one scope's change.
pub fn of_transition(change: &Transition<'_>, ledger: &Ledger) -> Check {
    phases_never_go_back(change, ledger)?;
    incarnation_counts_documents(change)?;
    starts_are_justified(change)?;
    update_domains_take_turns(change)?;
    redeployed_vms_get_another_host(change)?;
    only_members_approve(change)?;
    nothing_due_is_left(change)?;
    notice_is_given(change)?;
    commands_go_on(change)?;
    order_of_resources_is_fixed(change, ledger)
}

/// **3: phases never go back.** Scheduled, approved, released, ready, Started, ended: an event only moves down this
/// list, its NotBefore never changes, and an ended event never returns.
pub fn phases_never_go_back(change: &Transition<'_>, ledger: &Ledger) -> Check {
    const WORDS: &str = "phases never go back";
    for event in change.live_after() {
        ensure(!ledger.ended.contains(&event.id), 3, WORDS, || format!("{} is live again", event.id))?;
        let Some(was) = change.was(event) else {
            let elsewhere = ledger.first.contains_key(&event.id);
            ensure(!elsewhere, 3, WORDS, || format!("{} appears a second time", event.id))?;
            continue;
        };
        let onward = match (&was.phase, &event.phase) {
            (
                Phase::Started { at, why, run: Run::Exec(_) },
                Phase::Started { at: at_now, why: why_now, run: Run::Exec(_) },
            ) => (at, why) == (at_now, why_now),
            (Phase::Started { .. }, Phase::Started { .. }) => was.phase == event.phase,
            (Phase::Started { .. }, Phase::Scheduled { .. }) => false,
            // An advisory never starts, and nothing becomes one.
            (Phase::Advisory { .. }, _) | (_, Phase::Advisory { .. }) => was.phase == event.phase,
            (Phase::Scheduled { .. }, Phase::Started { .. }) => true,
            (
                Phase::Scheduled { not_before, approval, released, ready },
                Phase::Scheduled {
                    not_before: not_before_now,
                    approval: approval_now,
                    released: released_now,
                    ready: ready_now,
                },
            ) => {
                not_before == not_before_now
                    && (approval.is_none() || approval == approval_now)
                    && released <= released_now
                    && (ready.is_none() || ready == ready_now)
            }
        };
        ensure(onward, 3, WORDS, || format!("{:?} became {:?}", was.phase, event.phase))?;
    }
    Ok(())
}

/// **4: the incarnation rises by one exactly when the newest version's document changes**, starts at 1 and never
/// falls.
pub fn incarnation_counts_documents(change: &Transition<'_>) -> Check {
    const WORDS: &str = "incarnation + 1 exactly when the newest version's document changes";
    let Some(after) = change.after else { return Ok(()) };
    let expected = match change.before {
        None => 1,
        Some(before) => before.incarnation + u64::from(document(before) != document(after)),
    };
    let seen = after.incarnation;
    ensure(seen == expected, 4, WORDS, || format!("{} is at {seen}, not {expected}", change.id))
}

/// **A redeployed VM moves to another host**: one that is ok and has no open operation. Without such a host it stays.
pub fn redeployed_vms_get_another_host(change: &Transition<'_>) -> Check {
    const WORDS: &str = "a redeployed VM moves to another host that takes VMs";
    for (event, _) in change.newly_started() {
        let member = |scope: &Scope| {
            let vm = event.resources.first()?.vm;
            scope.members.iter().find(|one| one.vm == vm)?.host.clone()
        };
        // Two redeploys of one VM: the commit that starts one may end the other, and so move the VM.
        let own = [change.before.and_then(member), change.after.and_then(member)];
        let moves = event.cause.event_type() == EventType::Redeploy && event.driver != DriverKind::Manual;
        let free = &change.flight.at.free_hosts;
        let is_right_from = |own: &Option<_>| {
            let mut others = free.iter().filter(|host| moves && own.is_some() && Some(*host) != own.as_ref());
            match &event.target_host {
                None => others.next().is_none(),
                Some(host) => others.any(|other| other == host),
            }
        };
        let fits = own.iter().any(is_right_from);
        ensure_also(fits, WORDS, || format!("{} on {own:?}: {:?} of {free:?}", event.id, event.target_host))?;
    }
    Ok(())
}

/// **5: nothing starts before NotBefore without an approval or a named cause**, by a trusted clock. An approved part of
/// a Together operation starts only once every part is approved or gone.
pub fn starts_are_justified(change: &Transition<'_>) -> Check {
    const WORDS: &str = "no start before NotBefore without approval or a named cause";
    let now = change.flight.at.now;
    for event in change.live_after() {
        let was = change.was(event);
        let (at, why) = match &event.phase {
            Phase::Started { at, why, .. } if !was.is_some_and(started) => (*at, *why),
            Phase::Scheduled { ready: Some(ready), .. } => (ready.at, ready.why),
            Phase::Started { .. } | Phase::Scheduled { .. } | Phase::Advisory { .. } => continue,
        };
        let was_ready = was.is_some_and(|was| matches!(was.phase, Phase::Scheduled { ready: Some(_), .. }));
        if was_ready {
            // Its reason was checked when it became ready.
            continue;
        }
        let policy = change.after.map(|scope| scope.policy.clone()).unwrap_or_default();
        let rule = rules::of(event.cause);
        let (not_before, approved) = match was.map(|was| &was.phase) {
            Some(Phase::Scheduled { not_before, approval, .. }) => (Some(*not_before), approval.is_some()),
            Some(Phase::Started { .. } | Phase::Advisory { .. }) | None => (None, false),
        };
        if event.joint_start {
            ensure(decided(change, event, why), 14, "a part starts only with its host operation", || {
                format!("at {now}: {was:?} became {event:?}")
            })?;
            continue;
        }
        let is_justified = match why {
            StartReason::NotBefore => {
                let is_held = change.flight.at.before_jump.contains(&event.id);
                not_before.is_some_and(|not_before| not_before <= now) && !is_held
            }
            StartReason::Approved => {
                (approved || approves(change, event)) && (!rule.together || all_released(change, event))
            }
            StartReason::Forced => {
                let asks = |command: &Command| {
                    *command == EventCommand::Start(event.id).into()
                        || *command == OperationCommand::Start(event.operation).into()
                };
                change.flight.open_requests.iter().any(|sent| asks(&sent.request.command))
            }
            StartReason::NoNotice => {
                was.is_none() && rules::least_notice(event.cause, &policy, &change.flight.at.setup).is_none()
            }
            StartReason::AutomaticallyApproved => {
                was.is_none() && rules::needs_no_approval(event.cause, &policy)
            }
            StartReason::NotEnabled => {
                was.is_none() && rule.users && !change.flight.at.enabled.contains(change.id)
            }
        };
        ensure(is_justified && at == now, 5, WORDS, || format!("at {now}: {was:?} became {event:?}"))?;
    }
    Ok(())
}

/// Whether the event's host operation is decided, or ready, for this reason.
fn decided(change: &Transition<'_>, event: &Event, why: StartReason) -> bool {
    let operation = change.view.operations.get(&event.operation);
    operation.is_some_and(|operation| match (&operation.joint_start, started(event)) {
        (Some(JointStart::Released { why: decided, .. }), true) => *decided == why,
        (Some(JointStart::Ready { why: decided }), false) => *decided == why,
        // It was ready when the whole operation was started.
        (Some(JointStart::Released { .. }), false) => true,
        (Some(JointStart::Waiting | JointStart::Ready { .. }) | None, _) => false,
    })
}

/// The other half of **6**, and of **14**: a host operation is released only while no other operation's platform
/// event of another update domain is Started or released in the scopes of its scheduled parts.
pub fn hosts_start_as_a_whole(after: &Operation, view: &View) -> Check {
    const WORDS: &str = "a host operation is released only while other update domains are free";
    let was_released =
        |operation: &Operation| matches!(operation.joint_start, Some(JointStart::Released { .. }));
    let before = view.operations.get(&after.id);
    if !was_released(after) || before.is_some_and(|before| was_released(before)) {
        return Ok(());
    }
    for (id, update_domain, event) in hosts::scheduled(view, after) {
        let Some((_, scope)) = view.scope(id) else { continue };
        let busy = hosts::is_busy(scope, after.id, update_domain);
        ensure(!busy, 6, WORDS, || format!("{event:?} of {after:?} in {scope:?}"))?;
        for other in view.operations.values().filter(|one| one.id != after.id && was_released(one)) {
            let parts = hosts::scheduled(view, other);
            let apart = parts.iter().all(|(scope, other, _)| *scope != id || *other == update_domain);
            ensure(apart, 6, WORDS, || format!("{after:?} was released beside {other:?}"))?;
        }
    }
    Ok(())
}

fn approves(change: &Transition<'_>, event: &Event) -> bool {
    change.flight.open_requests.iter().any(|sent| match &sent.request.command {
        Command::Guest(GuestApproval { scope, events, .. }) => {
            scope == change.id && events.contains(&event.id)
        }
        Command::Event(command) => *command == EventCommand::Approve(event.id),
        Command::Operation(_)
        | Command::Inventory(_)
        | Command::Token(_)
        | Command::Clock(_)
        | Command::Cluster(_) => false,
    })
}

fn all_released(change: &Transition<'_>, event: &Event) -> bool {
    let Some(operation) = change.view.operations.get(&event.operation) else { return false };
    operation.targets.iter().filter(|target| target.event != event.id).all(|target| {
        let live = change.view.live(target.event);
        live.is_none_or(|other| is_approved(other) || change.live_after().iter().any(|one| one == other))
            && live.is_none_or(is_approved)
    })
}

/// **6: no planned event enters Started while a platform event of another update domain of its scope is Started.**
/// Events that start in the same commit are ordered by NotBefore, then EventId. So an event that never waits may start
/// after a planned one, not before it; an operator's start goes first.
pub fn update_domains_take_turns(change: &Transition<'_>) -> Check {
    const WORDS: &str = "no planned event starts while an event of another update domain is started";
    let by_itself = |event: &Event| rules::of(event.cause).waits && !event.joint_start;
    for (event, was) in change.newly_started().filter(|(event, _)| by_itself(event)) {
        for other in change.view.operations.values().filter(|one| one.id != event.operation) {
            if !matches!(other.joint_start, Some(JointStart::Released { .. })) {
                continue;
            }
            for (scope, update_domain, part) in hosts::scheduled(change.view, other) {
                let apart = scope != change.id || update_domain == event.update_domain;
                ensure(apart, 6, WORDS, || format!("{event:?} began while {part:?} is released"))?;
            }
        }
        for other in change.live_after().iter().filter(|other| {
            started(other)
                && !rules::of(other.cause).users
                && other.update_domain != event.update_domain
                && other.id != event.id
        }) {
            let key = |one: Option<&Event>| one.and_then(|one| one.not_before().map(|at| (at, one.id)));
            let began_later = match (key(was), key(change.was(other))) {
                (Some(mine), Some(others)) => {
                    !rules::of(other.cause).waits && (others > mine || is_forced(event))
                }
                (_, _) => false,
            };
            ensure(began_later, 6, WORDS, || format!("{event:?} started while {other:?} is started"))?;
        }
    }
    Ok(())
}

fn is_forced(event: &Event) -> bool {
    matches!(event.phase, Phase::Started { why: StartReason::Forced, .. })
}

/// **7: a VM sees and touches only its scope.** Events that a guest approved are in its own scope; a foreign id is
/// refused like an unknown one, see [`super::foreign_is_unknown`].
pub fn only_members_approve(change: &Transition<'_>) -> Check {
    const WORDS: &str = "a VM touches only its scope";
    for event in change.live_after() {
        let Phase::Scheduled { approval: Some(approval), .. } = &event.phase else { continue };
        let had = change.was(event).is_some_and(is_approved);
        if let (false, Actor::Vm { vm, .. }) = (had, &approval.by) {
            let sent = |sent: &Rc<SentRequest>| {
                sent.request.by == approval.by
                    && matches!(&sent.request.command, Command::Guest(approval) if approval.scope == *change.id)
            };
            let own = change.flight.open_requests.iter().any(sent);
            ensure(own, 7, WORDS, || format!("{vm} approved {} in {}", event.id, change.id))?;
        }
    }
    Ok(())
}

/// **10: `next_due` is later than now after apply**: nothing that is due and not blocked is left undone.
pub fn nothing_due_is_left(change: &Transition<'_>) -> Check {
    const WORDS: &str = "next_due > now after apply";
    let Some(after) = change.after else { return Ok(()) };
    let now = change.flight.at.now;
    let gates = change.flight.at.gates_of(after);
    let due = next_due(after, gates, change.flight.at.hold(), now);
    let announced = announced(after);
    ensure(due.is_none_or(|due| due > now), 10, WORDS, || format!("{due:?} at {now} in {after:?}"))?;
    for event in &after.events {
        let Phase::Scheduled { approval: Some(_), released, ready: None, .. } = &event.phase else {
            continue;
        };
        let free = (*released || event.release == Release::Each)
            && !event.joint_start
            && !must_wait(event, after, gates, &announced, now);
        ensure(!free, 10, WORDS, || {
            format!("approved and not blocked, but not started at {now}: {event:?}")
        })?;
    }
    Ok(())
}

/// **11: NotBefore − scheduled ≥ the notice of its kind**, and NotBefore is a whole second.
pub fn notice_is_given(change: &Transition<'_>) -> Check {
    const WORDS: &str = "NotBefore - scheduled >= the notice of its kind";
    let now = change.flight.at.now;
    let Some(after) = change.after else { return Ok(()) };
    for event in after.events.iter().filter(|event| change.was(event).is_none()) {
        let Phase::Scheduled { not_before, .. } = event.phase else { continue };
        let least = rules::least_notice(event.cause, &after.policy, &change.flight.at.setup);
        let enough = least.is_some_and(|least| not_before.duration_since(now) >= least);
        let whole = not_before.subsec_nanosecond() == 0;
        ensure(enough && whole, 11, WORDS, || format!("scheduled at {now}, {least:?}: {event:?}"))?;
    }
    Ok(())
}

/// **13: the order of Resources is fixed on announcement, and the same for every reader**: the operation's order,
/// without VMs that had left by then, in every version of the record.
pub fn order_of_resources_is_fixed(change: &Transition<'_>, ledger: &Ledger) -> Check {
    const WORDS: &str = "the order of Resources is fixed";
    for event in change.live_after() {
        if let Some(first) = ledger.first.get(&event.id) {
            ensure(first.resources == event.resources, 13, WORDS, || format!("{first:?}, {event:?}"))?;
        } else if let Some(operation) = change.view.operations.get(&event.operation) {
            let target = operation.targets.iter().find(|target| target.event == event.id);
            let mut named = target.iter().flat_map(|target| &target.resources).map(|one| one.vm);
            let same = event.resources.iter().all(|one| named.any(|vm| vm == one.vm));
            ensure(same, 13, WORDS, || format!("{target:?}, {event:?}"))?;
        }
    }
    Ok(())
}
