//! Invariants of the service as callers see it: answers, addresses, published data.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use notbefore_core::{Cause, Operation, OperationState, Refusal, ScopeId, VmId};
use notbefore_engine::records;
use notbefore_engine::state::{CallerKey, caller_key};
use notbefore_engine::{
    Answer, Command, EventCommand, Failure, GuestApproval, InventoryCommand, OperationCommand,
    PublishedChange, VmCommand,
};
use notbefore_store::{Key, Revision};

use super::{Check, ensure};
use crate::conformance::{SentRequest, Written, command_key, is_approved};
use crate::ledger::Ledger;
use crate::model::started;
use crate::predict::is_still_target;
use crate::rules;
use crate::store::SimStore;
use crate::view::{Reads, Record, View};

/// **1: acknowledged is durable.** When a request is answered Ok, its effect is in the store and published: persist,
/// publish, answer.
pub fn acknowledged_is_durable(
    sent: &SentRequest,
    answer: &Answer,
    view: &View,
    store: &SimStore,
    ledger: &Ledger,
    shown: &HashMap<Key, usize>,
) -> Check {
    const WORDS: &str = "acknowledged is durable";
    let approved = |event| match view.live(event) {
        Some(event) => is_approved(event),
        None => ledger.ended.contains(&event),
    };
    let no_longer_scheduled =
        |event| view.live(event).is_none_or(started) && ledger.first.contains_key(&event);
    let durable = match &sent.request.command {
        Command::Guest(approval) => approval.events.iter().all(|event| approved(*event)),
        Command::Event(EventCommand::Approve(event)) => approved(*event),
        Command::Event(EventCommand::Start(event)) => no_longer_scheduled(*event),
        Command::Event(EventCommand::Cancel(event) | EventCommand::Complete { event, .. }) => {
            view.live(*event).is_none() && ledger.ended.contains(event)
        }
        Command::Event(EventCommand::Retry(_)) => true,
        Command::Operation(OperationCommand::Schedule(_)) => match answer {
            Answer::Operation(id) => view.operations.get(id).is_some_and(|operation| {
                operation.state != OperationState::Opening
                    || operation.cancelled_by.is_some()
                    || operation.targets.iter().all(|target| {
                        let gone = || {
                            let scope = view.scope(&target.scope).map(|(_, scope)| scope);
                            target.resources.iter().all(|one| {
                                scope.is_none_or(|scope| !is_still_target(operation, one.vm, scope))
                            })
                        };
                        ledger.first.contains_key(&target.event)
                            || ledger.ended.contains(&target.event)
                            || gone()
                            || rules::of(operation.cause).users
                            || evicted(view, target)
                    })
            }),
            Answer::Done | Answer::Vm(_) | Answer::Scope { .. } => false,
        },
        Command::Operation(OperationCommand::Cancel(id)) => {
            view.operations.get(id).is_some_and(|operation| {
                let scheduled = |event| view.live(event).is_some_and(|event| !started(event));
                operation.cancelled_by.is_some()
                    && !operation.targets.iter().any(|target| scheduled(target.event))
            })
        }
        Command::Operation(OperationCommand::Start(id)) => view.operations.get(id).is_some_and(|operation| {
            operation.targets.iter().all(|target| view.live(target.event).is_none_or(started))
        }),
        Command::Operation(OperationCommand::Retry(id)) => view.operations.contains_key(id),
        Command::Operation(OperationCommand::Complete(id)) => {
            view.operations.get(id).is_some_and(|operation| {
                operation.targets.iter().all(|target| view.live(target.event).is_none())
            })
        }
        Command::Inventory(InventoryCommand::AddVm(_)) => match answer {
            Answer::Vm(vm) => ledger.vms.contains(vm),
            Answer::Done | Answer::Operation(_) | Answer::Scope { .. } => false,
        },
        Command::Inventory(InventoryCommand::Vm(VmCommand::Remove(vm))) => view.vm(*vm).is_none(),
        Command::Inventory(
            InventoryCommand::Scope(_)
            | InventoryCommand::Vm(VmCommand::Start(_))
            | InventoryCommand::Host(_)
            | InventoryCommand::FirstRun(_),
        ) => true,
        Command::Token(_) | Command::Clock(_) | Command::Cluster(_) => true,
    };
    ensure(durable, 1, WORDS, || format!("{:?} was answered {answer:?}", sent.request))?;
    shown_before_answer(sent, answer, view, store, ledger, shown, false)
}

/// The other half of **1**: readers of the node that answers see the effect. `lost_removals` says that the node's watch has
/// lost removals of records, which it notices later.
pub fn shown_before_answer(
    sent: &SentRequest,
    answer: &Answer,
    view: &View,
    store: &SimStore,
    ledger: &Ledger,
    shown: &HashMap<Key, usize>,
    lost_removals: bool,
) -> Check {
    let mut shown_at_least: BTreeMap<Key, Revision> = BTreeMap::new();
    for revision in ledger.effects.get(&sent.id).into_iter().flatten() {
        let batch = store.log().iter().find(|batch| batch.revision == *revision);
        let changes = batch.iter().flat_map(|batch| batch.changes.iter());
        for change in changes.filter(|change| !lost_removals || change.value.is_some()) {
            shown_at_least.insert(change.key.clone(), *revision);
        }
    }
    if let (Command::Operation(OperationCommand::Schedule(_)), Answer::Operation(id)) =
        (&sent.request.command, answer)
    {
        for target in view.operations.get(id).iter().flat_map(|operation| &operation.targets) {
            if let Some(first) = ledger.first.get(&target.event) {
                shown_at_least.insert(records::scope(&target.scope), first.revision);
            }
        }
    }
    for (key, revision) in shown_at_least {
        let is_shown = records::LOADED.iter().any(|prefix| key.starts_with(prefix))
            && !key.starts_with(records::prefix::HEARD);
        let value = |revision: Revision| {
            let written = store.versions(&key).iter().find(|version| version.revision == revision);
            written.and_then(|version| version.value.as_ref())
        };
        let shown = store.revision_shown(shown, &key);
        // A snapshot publishes no value that readers have, and no closed operation.
        let is_closed =
            |one: &Operation| one.state == OperationState::Closed && key == records::operation(one.id);
        let is_same = value(shown) == value(revision) || view.operations.values().any(|one| is_closed(one));
        ensure(!is_shown || shown >= revision || is_same, 1, "persist, then publish, then answer", || {
            format!("{:?} was answered while readers of {key} are at {shown}, not {revision}", sent.request)
        })?;
    }
    Ok(())
}

fn evicted(view: &View, target: &notbefore_core::Target) -> bool {
    view.past.values().any(|past| {
        past.event.cause == Cause::Eviction
            && past.event.resources.iter().any(|one| target.resources.iter().any(|two| one.vm == two.vm))
    })
}

/// **2: a command takes effect at most once.** The effect of a request with a key includes the idempotency record in
/// the same transaction, and all attempts with one key create one operation or VM.
pub fn at_most_once(carries: &[Rc<SentRequest>], written: &Written, ledger: &mut Ledger) -> Check {
    const WORDS: &str = "a command takes effect at most once";
    for sent in carries {
        let Some(key) = command_key(&sent.request) else { continue };
        let recorded = written.command.as_ref().is_some_and(|(known, _)| *known == key);
        ensure(recorded, 2, WORDS, || format!("{key} took effect without an idempotency record"))?;
        let made = match &sent.request.command {
            Command::Operation(OperationCommand::Schedule(new)) => new.id.0,
            Command::Inventory(InventoryCommand::AddVm(add)) => add.vm.vm.0,
            Command::Operation(
                OperationCommand::Cancel(_)
                | OperationCommand::Start(_)
                | OperationCommand::Complete(_)
                | OperationCommand::Retry(_),
            )
            | Command::Inventory(
                InventoryCommand::Scope(_)
                | InventoryCommand::Vm(_)
                | InventoryCommand::Host(_)
                | InventoryCommand::FirstRun(_),
            )
            | Command::Guest(_)
            | Command::Event(_)
            | Command::Token(_)
            | Command::Clock(_)
            | Command::Cluster(_) => continue,
        };
        let all = ledger.made.entry(key.clone()).or_default();
        all.insert(made);
        ensure(all.len() == 1, 2, WORDS, || format!("{key} made {all:?}"))?;
    }
    Ok(())
}

/// The other half of **7**: resources that a guest may not touch are answered as unknown.
pub fn foreign_is_unknown(sent: &SentRequest, result: &Result<Answer, Failure>, ledger: &Ledger) -> Check {
    let Command::Guest(GuestApproval { scope, events, .. }) = &sent.request.command else { return Ok(()) };
    let is_theirs = |id| ledger.first.get(id).is_some_and(|first| first.scope == *scope);
    let foreign = !events.iter().all(is_theirs);
    let refused = match result {
        Ok(_) => false,
        Err(Failure::Refused(Refusal::UnknownEvent(id))) => events.contains(id),
        Err(Failure::Refused(Refusal::UnknownCaller(_))) => true,
        Err(Failure::Refused(_)) => false,
        Err(Failure::Unavailable(_) | Failure::OutcomeUnknown(_) | Failure::KeyReused) => true,
    };
    ensure(!foreign || refused, 7, "a foreign event is refused like an unknown one", || {
        format!("{:?} was answered {result:?}", sent.request)
    })
}

/// **8: an address maps to at most one VM.** Claims, VMs and members agree: each address of a VM has a claim for it,
/// there are no other claims, and each VM is a member of exactly the scope that its record names.
///
/// Claims and records of VMs that are `leaving` may be gone already, and their addresses may have other owners.
pub fn addresses_are_unambiguous(view: &View, leaving: &BTreeSet<VmId>) -> Check {
    const WORDS: &str = "an address maps to at most one VM, and every record of it agrees";
    let mut expected: BTreeMap<CallerKey, VmId> = BTreeMap::new();
    for vm in view.vms.values() {
        for address in &vm.addresses {
            if leaving.contains(&vm.id) && view.claim(address) != Some(vm.id) {
                continue;
            }
            let other = expected.insert(caller_key(address), vm.id);
            ensure(other.is_none(), 8, WORDS, || format!("{address:?} is {:?}'s and {other:?}'s", vm.id))?;
        }
    }
    ensure(expected == view.claims, 8, WORDS, || {
        format!("VMs have {expected:?} and claims say {:?}", view.claims)
    })?;
    let members: Vec<(VmId, &ScopeId)> = view
        .scopes
        .iter()
        .flat_map(|(id, (_, scope))| scope.members.iter().map(move |member| (member.vm, id)))
        .filter(|(vm, _)| !leaving.contains(vm) || view.vms.contains_key(vm))
        .collect();
    let mut sorted = members.clone();
    sorted.sort();
    let records: Vec<(VmId, &ScopeId)> = view.vms.values().map(|vm| (vm.id, &vm.scope)).collect();
    ensure(sorted == records, 8, WORDS, || format!("members {sorted:?}, records {records:?}"))
}

/// **9: published ≤ committed.** A published version of a record was committed, and is never older than one published
/// before.
pub fn published_is_committed(
    published: &PublishedChange,
    store: &SimStore,
    shown: &mut HashMap<Key, usize>,
) -> Check {
    const WORDS: &str = "published is committed, and never goes back";
    let (key, revision, value) = match published {
        PublishedChange::Scope(id, _, held) => {
            let value = held.as_ref().map(|held| records::encode(&*held.value));
            (records::scope(id), held.as_ref().map(|held| held.revision), value)
        }
        PublishedChange::Vm(id, revision) => {
            // The record's content is in the inventory, which is compared at the end.
            let key = records::vm(*id);
            let written = store.versions(&key).iter().find(|version| Some(version.revision) == *revision);
            let value = written.and_then(|version| version.value.clone());
            (key, *revision, value)
        }
        PublishedChange::Claim((network, ip), vm) => {
            (Key::from(format!("claim/{network}/{ip}")), None, vm.as_ref().map(records::encode))
        }
        PublishedChange::Operation(id, held) => {
            let value = held.as_ref().map(|held| records::encode(&*held.value));
            (records::operation(*id), held.as_ref().map(|held| held.revision), value)
        }
        PublishedChange::Host(name, held) => {
            let value = held.as_ref().map(|held| records::encode(&*held.value));
            (records::host(name), held.as_ref().map(|held| held.revision), value)
        }
        PublishedChange::Token(name, held) => {
            let value = held.as_ref().map(|held| records::encode(&*held.value));
            (records::token(name), held.as_ref().map(|held| held.revision), value)
        }
    };
    let versions = store.versions(&key);
    if versions.is_empty() && value.is_none() {
        // No such record ever existed, and none is published.
        return Ok(());
    }
    let from = shown.get(&key).copied().unwrap_or(0);
    let fits = |index: &usize| {
        let version = &versions[*index];
        revision.is_none_or(|revision| revision == version.revision)
            && match (&version.value, &value) {
                // A closed operation leaves the readers' lists while its record stays.
                (Some(closed), None) => {
                    key.starts_with(records::prefix::OPERATION)
                        && matches!(Record::read(&key, Some(closed)), Ok(Record::Operation(_, Some(one)))
                            if one.state == OperationState::Closed)
                }
                (committed, published) => committed == published,
            }
    };
    let found = (from..versions.len()).find(fits);
    ensure(found.is_some(), 9, WORDS, || {
        format!("readers of {key} at {from} of {versions:?}: {published:?}")
    })?;
    shown.insert(key, found.unwrap_or(from));
    Ok(())
}
