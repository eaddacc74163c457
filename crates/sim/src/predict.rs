//! The model of requests: predicts, from the records, the codes by which a request may be refused or the records it
//! must write. No records means that there is nothing to change.

use std::collections::BTreeMap;

use jiff::Timestamp;
use notbefore_core::{
    Actor, Cause, EventId, JointStart, Member, MemberState, Operation, OperationState, Origin, Policy,
    Release, Resource, Scope, ScopeId, ScopeKind, StartReason, Target, TargetState, VmId,
};
use notbefore_engine::state::caller_key;
use notbefore_engine::{
    AddVm, Address, Command, EventCommand, FirstRun, GuestApproval, InventoryCommand, NewOperation,
    OperationCommand, PutScope, Request, ScopeChange, TargetSelector, VmCommand, VmSpec,
};
use notbefore_store::Revision;

use crate::host_command;
use crate::hosts;
use crate::model::{At, Codes, Opening, ScopeRequest, after, bare};
use crate::requests::DryRun;
use crate::rules;
use crate::view::Reads;

/// The records that a request must write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Writes {
    /// Without trails; none if the record is removed.
    pub scopes: BTreeMap<ScopeId, Option<Scope>>,
    pub operation: Option<Operation>,
    /// Addresses of VMs whose record changes; a VM that leaves its scope loses its record.
    pub addresses: BTreeMap<VmId, Vec<Address>>,
}

impl Writes {
    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Predicts the result of a request.
pub fn request(reads: &dyn Reads, request: &Request, at: &At) -> Result<Writes, Codes> {
    let mut codes = Codes::new();
    if let (Some(seen), Some(id)) = (request.if_revision, compared(reads, &request.command))
        && reads.scope(&id).map_or(Revision(0), |(revision, _)| revision) != seen
    {
        codes.insert("revision_differs");
    }
    match command(reads, request, at) {
        Err(more) => Err(codes.into_iter().chain(more).collect()),
        Ok(writes) if codes.is_empty() => Ok(writes),
        Ok(_) => Err(codes),
    }
}

/// Predicts the refusal codes of a dry run. It is refused like the change itself, except for addresses of other
/// scopes.
pub fn dry_run(
    reads: &dyn Reads,
    by: &Actor,
    dry_run: &DryRun,
    if_revision: Option<Revision>,
    at: &At,
) -> Result<(), Codes> {
    let command: Command = match dry_run {
        DryRun::Preview(new) => OperationCommand::Schedule(new.clone()).into(),
        DryRun::ScopePlan(change) => change.clone().into(),
    };
    // An operation has no revision to compare.
    let if_revision = if_revision.filter(|_| matches!(dry_run, DryRun::ScopePlan(_)));
    let mut wanted = Request { if_revision, ..Request::new(by.clone(), command) };
    let mut twice = false;
    if let Command::Inventory(InventoryCommand::Scope(ScopeChange::Put(put))) = &mut wanted.command {
        twice = descriptions(reads, put).contains("address_twice");
        let id = put.path.id();
        let elsewhere = |address: &Address| {
            let owner = reads.claim(address).and_then(|vm| reads.vm(vm).map(|vm| vm.scope.clone()));
            owner.is_some_and(|scope| scope != id)
        };
        put.vms.iter_mut().for_each(|vm| vm.addresses.retain(|address| !elsewhere(address)));
    }
    match request(reads, &wanted, at) {
        Err(codes) => Err(codes),
        Ok(_) if twice => Err(Codes::from(["address_twice"])),
        Ok(_) => Ok(()),
    }
}

fn compared(reads: &dyn Reads, command: &Command) -> Option<ScopeId> {
    match command {
        Command::Guest(approval) => Some(approval.scope.clone()),
        Command::Event(command) => reads.scope_of_event(command.event()),
        Command::Operation(OperationCommand::Schedule(new)) => match &new.selector {
            TargetSelector::Vms(vms) => reads.vm(*vms.first()?).map(|vm| vm.scope.clone()),
            TargetSelector::Host(_) => None,
        },
        Command::Inventory(InventoryCommand::Scope(ScopeChange::Put(put))) => Some(put.path.id()),
        Command::Inventory(InventoryCommand::Scope(ScopeChange::Remove { scope, .. })) => Some(scope.clone()),
        Command::Inventory(InventoryCommand::AddVm(add)) => Some(add.path.id()),
        Command::Inventory(InventoryCommand::Vm(VmCommand::Remove(vm) | VmCommand::Start(vm))) => {
            reads.vm(*vm).map(|vm| vm.scope.clone())
        }
        Command::Operation(
            OperationCommand::Cancel(_)
            | OperationCommand::Start(_)
            | OperationCommand::Complete(_)
            | OperationCommand::Retry(_),
        )
        | Command::Inventory(InventoryCommand::FirstRun(_) | InventoryCommand::Host(_))
        | Command::Token(_)
        | Command::Clock(_)
        | Command::Cluster(_) => None,
    }
}

fn command(reads: &dyn Reads, request: &Request, at: &At) -> Result<Writes, Codes> {
    let by = &request.by;
    match &request.command {
        Command::Guest(GuestApproval { scope, events, network }) => {
            let calls = match by {
                Actor::Vm { vm, address, .. } => reads.vm(*vm).is_some_and(|record| {
                    let has = |one: &Address| Some(one.network.folded()) == *network && one.ip == *address;
                    record.scope == *scope && (network.is_none() || record.addresses.iter().any(has))
                }),
                Actor::Token(_) | Actor::Timer | Actor::Driver(_) | Actor::Service => true,
            };
            match (calls, events.is_empty()) {
                (false, _) => Err(Codes::from(["unknown_caller"])),
                (true, true) => Ok(Writes::default()),
                (true, false) => {
                    on_scope(reads, scope, &[ScopeRequest::Approve(events.clone(), by.clone())], at)
                }
            }
        }
        Command::Event(command) => {
            let scope_request = match command {
                EventCommand::Approve(event) => ScopeRequest::Approve(vec![*event], by.clone()),
                EventCommand::Cancel(event) => ScopeRequest::Cancel(*event),
                EventCommand::Start(event) => ScopeRequest::Start(*event),
                EventCommand::Complete { event, hosts } => ScopeRequest::Complete(*event, hosts.clone()),
                EventCommand::Retry(event) => ScopeRequest::Retry(*event),
            };
            let scope = reads.scope_of_event(command.event()).ok_or(Codes::from(["unknown_event"]))?;
            on_scope(reads, &scope, &[scope_request], at)
        }
        Command::Operation(OperationCommand::Schedule(new)) => schedule(reads, new, request, at),
        Command::Operation(OperationCommand::Cancel(id)) => match reads.operation(*id) {
            None => Err(Codes::from(["unknown_operation"])),
            Some(operation) if operation.cancelled_by.is_some() => Ok(Writes::default()),
            Some(operation) if is_released(operation) => Err(Codes::from(["event_started"])),
            // Nothing is left that could be cancelled.
            Some(operation)
                if operation.state == OperationState::Open
                    && hosts::scheduled(reads, operation).is_empty() =>
            {
                Err(Codes::from(["event_started"]))
            }
            Some(operation) => {
                let cancelled = Operation { cancelled_by: Some(by.clone()), ..operation.clone() };
                Ok(Writes { operation: Some(cancelled), ..Writes::default() })
            }
        },
        Command::Operation(OperationCommand::Start(id)) => match reads.operation(*id) {
            None => Err(Codes::from(["unknown_operation"])),
            Some(operation) => start(reads, operation, by, at),
        },
        Command::Operation(OperationCommand::Complete(id)) => match reads.operation(*id) {
            None => Err(Codes::from(["unknown_operation"])),
            Some(operation) if operation.completed_by.is_some() => Ok(Writes::default()),
            Some(operation) => {
                let unstarted = operation.state == OperationState::Opening
                    || !hosts::scheduled(reads, operation).is_empty();
                if unstarted && !is_released(operation) {
                    return Err(Codes::from(["event_not_started"]));
                }
                let completed = Operation { completed_by: Some(by.clone()), ..operation.clone() };
                Ok(Writes { operation: Some(completed), ..Writes::default() })
            }
        },
        Command::Operation(OperationCommand::Retry(id)) => match reads.operation(*id) {
            None => Err(Codes::from(["unknown_operation"])),
            Some(operation) => {
                let retried = host_command::retried(operation, at)?;
                Ok(Writes { operation: Some(retried), ..Writes::default() })
            }
        },
        // Histories do not contain commands for hosts, tokens, the clock or the cluster.
        Command::Inventory(InventoryCommand::Host(_))
        | Command::Token(_)
        | Command::Clock(_)
        | Command::Cluster(_) => Ok(Writes::default()),
        Command::Inventory(InventoryCommand::Vm(VmCommand::Start(vm))) => {
            let (scope, _) = scope_of_event(reads, *vm).ok_or(Codes::from(["unknown_vm"]))?;
            on_scope(reads, &scope, &[ScopeRequest::Revive(*vm)], at)
        }
        Command::Inventory(InventoryCommand::Vm(VmCommand::Remove(vm))) => {
            let (scope, _) = scope_of_event(reads, *vm).ok_or(Codes::from(["unknown_vm"]))?;
            on_scope(reads, &scope, &[ScopeRequest::Remove(vec![*vm])], at)
        }
        Command::Inventory(InventoryCommand::Scope(ScopeChange::Remove { scope, fleet_only })) => {
            remove_scope(reads, scope, *fleet_only, at)
        }
        Command::Inventory(InventoryCommand::Scope(ScopeChange::Put(put))) => put_scope(reads, put, at),
        Command::Inventory(InventoryCommand::AddVm(AddVm { path, kind, vm })) => {
            let known = reads.scope(&path.id()).map(|(_, scope)| scope.kind);
            let kind = kind.or(known).unwrap_or(ScopeKind::Standalone);
            let put = PutScope::with_defaults(path.clone(), kind, vec![vm.clone()]);
            add_vm(reads, &put, vm, at)
        }
        Command::Inventory(InventoryCommand::FirstRun(FirstRun { vm, name })) => {
            if !reads.scope_ids().is_empty() {
                return Ok(Writes::default());
            }
            let path: notbefore_core::ScopePath =
                name.as_str().parse().map_err(|_| Codes::from(["bad_name"]))?;
            let policy = Policy { terminate_notice_s: Some(300), ..Policy::default() };
            let mut scope = Scope::new(path.clone(), ScopeKind::Standalone, policy, Origin::Call);
            scope.first_run = true;
            scope.members.push(Member { spot: true, ..Member::with_defaults(*vm, name.clone()) });
            Ok(Writes {
                scopes: BTreeMap::from([(path.id(), Some(scope))]),
                addresses: BTreeMap::from([(*vm, Vec::new())]),
                ..Writes::default()
            })
        }
    }
}

fn is_released(operation: &Operation) -> bool {
    matches!(operation.joint_start, Some(JointStart::Released { .. }))
}

/// Predicts an operator's start of an operation: a host operation starts jointly, any other in its only scope.
fn start(reads: &dyn Reads, operation: &Operation, by: &Actor, at: &At) -> Result<Writes, Codes> {
    let parts = hosts::scheduled(reads, operation);
    let why = match &operation.joint_start {
        Some(JointStart::Released { .. }) => return Err(Codes::from(["event_started"])),
        Some(JointStart::Ready { why }) => *why,
        Some(JointStart::Waiting) | None => StartReason::Forced,
    };
    let waits = rules::of(operation.cause).waits;
    let first = &operation.targets[0];
    let alone = operation
        .targets
        .iter()
        .all(|target| target.scope == first.scope && (!waits || target.update_domain == first.update_domain));
    if operation.joint_start.is_none() && !alone {
        return Err(Codes::from(["starts_apart"]));
    }
    let Some((scope, ..)) = parts.first() else { return Err(Codes::from(["nothing_to_start"])) };
    if operation.joint_start.is_none() {
        let scope_requests: Vec<ScopeRequest> =
            parts.iter().map(|(_, _, event)| ScopeRequest::Start(event.id)).collect();
        return on_scope(reads, scope, &scope_requests, at);
    }
    if operation.state == OperationState::Opening || operation.cancelled_by.is_some() {
        return Err(Codes::from(["nothing_to_start"]));
    }
    if hosts::is_blocked(reads, at.hold(), operation, at.now) {
        return Err(Codes::from(["update_domain_busy"]));
    }
    let joint_start = Some(JointStart::Released { why, by: by.clone() });
    Ok(Writes { operation: Some(Operation { joint_start, ..operation.clone() }), ..Writes::default() })
}

/// Predicts changes of one scope; a standalone scope is removed with its VM.
pub fn on_scope(
    reads: &dyn Reads,
    id: &ScopeId,
    scope_requests: &[ScopeRequest],
    at: &At,
) -> Result<Writes, Codes> {
    let mut writes = Writes::default();
    if let Some((_, before)) = reads.scope(id) {
        let next = after(before, scope_requests, at)?;
        if next != bare(before) {
            writes.scopes.insert(id.clone(), kept(next));
        }
    }
    Ok(writes)
}

fn kept(scope: Scope) -> Option<Scope> {
    let gone = scope.kind == ScopeKind::Standalone && scope.members.is_empty() && scope.events.is_empty();
    (!gone).then_some(scope)
}

fn scope_of_event(reads: &dyn Reads, vm: VmId) -> Option<(ScopeId, &Member)> {
    let id = reads.vm(vm)?.scope.clone();
    let (_, scope) = reads.scope(&id)?;
    scope.members.iter().find(|one| one.vm == vm).map(|member| (id, member))
}

/// The event of a part. Its NotBefore is the operation's, later if that has become too near, or none if the scope
/// gives no notice. An advisory has the requested date.
pub fn opening(operation: &Operation, target: &Target, scope: &Scope, at: &At) -> Opening {
    let earliest = rules::least_notice(operation.cause, &scope.policy, &at.setup)
        .map(|least| rules::whole_second(rules::plus(at.now, least)));
    let is_advisory = rules::of(operation.cause).notice == rules::Notice::Never;
    Opening {
        id: target.event,
        operation: operation.id,
        cause: operation.cause,
        update_domain: target.update_domain,
        resources: target.resources.clone(),
        not_before: match is_advisory {
            true => operation.not_before,
            false => earliest.map(|earliest| operation.not_before.unwrap_or(earliest).max(earliest)),
        },
        duration_s: operation.duration_s,
        description: operation.description.clone(),
        time_given: operation.time_given,
        joint_start: operation.joint_start.is_some(),
        waits_for_host: operation.host_command.is_some(),
        released: operation.released || operation.targets.len() == 1,
    }
}

/// The running VMs of a host, by linear search. Only what says that the hardware is bad is said of a host without any.
fn on_host(reads: &dyn Reads, host: &str, cause: Cause) -> Result<Vec<VmId>, Codes> {
    let ids = reads.scope_ids();
    let scopes = ids.iter().filter_map(|id| reads.scope(id));
    let all: Vec<&Member> =
        scopes.flat_map(|(_, one)| &one.members).filter(|one| one.host.as_deref() == Some(host)).collect();
    let running: Vec<VmId> =
        all.iter().filter(|one| one.state == MemberState::Running).map(|one| one.vm).collect();
    let is_coming =
        |scope: &Scope| scope.events.iter().any(|event| event.target_host.as_deref() == Some(host));
    let exists = !all.is_empty()
        || reads.host(host).is_some()
        || ids.iter().filter_map(|id| reads.scope(id)).any(|(_, scope)| is_coming(scope));
    let reports = matches!(cause, Cause::PredictedFailure | Cause::HostFailure);
    match (exists, running.is_empty()) {
        (false, _) => Err(Codes::from(["unknown_host"])),
        (true, true) if !reports => Err(Codes::from(["nothing_runs"])),
        (true, _) => Ok(running),
    }
}

/// The event of a part when its scope is opened: for the VMs that still exist and are still on the host; none if no VM
/// is left.
pub fn late_opening(operation: &Operation, target: &Target, scope: &Scope, at: &At) -> Option<Opening> {
    let mut opening = opening(operation, target, scope, at);
    opening.resources.retain(|resource| is_still_target(operation, resource.vm, scope));
    Some(opening).filter(|opening| !opening.resources.is_empty())
}

/// Whether an operation still affects a VM.
pub fn is_still_target(operation: &Operation, vm: VmId, scope: &Scope) -> bool {
    let Some(member) = scope.members.iter().find(|one| one.vm == vm) else { return false };
    let elsewhere = operation.host.is_some() && operation.host != member.host;
    member.state == MemberState::Running && !elsewhere
}

/// A part and its VMs: the scope, the update domain, and the VM's index if each VM has its own event.
type Part = ((ScopeId, u32, usize), Vec<Resource>);

fn schedule(reads: &dyn Reads, new: &NewOperation, request: &Request, at: &At) -> Result<Writes, Codes> {
    let rule = rules::of(new.cause);
    let mut codes = Codes::new();
    let mut parts: Vec<Part> = Vec::new();
    let mut named: Vec<VmId> = Vec::new();
    let (vms, host) = match &new.selector {
        TargetSelector::Vms(vms) => (vms.clone(), None),
        TargetSelector::Host(host) => (on_host(reads, host, new.cause)?, Some(host.clone())),
    };
    for vm in &vms {
        if named.contains(vm) {
            continue;
        }
        named.push(*vm);
        let Some((scope, member)) = scope_of_event(reads, *vm) else {
            codes.insert("unknown_vm");
            continue;
        };
        // Only Spot VMs are evicted or advised of it, unless forced.
        if matches!(new.cause, Cause::Eviction | Cause::Rebalance) && !new.force && !member.spot {
            codes.insert("not_spot");
        }
        let place = (scope, member.update_domain, if rule.per_vm { named.len() } else { 0 });
        let resource = Resource { vm: *vm, name: member.name.clone(), host: None };
        match parts.iter_mut().find(|(known, _)| *known == place) {
            Some((_, resources)) => resources.push(resource),
            None => parts.push((place, vec![resource])),
        }
    }
    if parts.is_empty() && host.is_none() {
        codes.insert("no_resources");
        return Err(codes);
    }
    parts.sort_by(|(one, _), (two, _)| one.cmp(two));
    let not_before = common_not_before(reads, new, &parts, at, &mut codes);
    if !codes.is_empty() {
        return Err(codes);
    }
    let targets: Vec<Target> = parts
        .into_iter()
        .map(|((scope, update_domain, _), resources)| {
            let alone = resources.first().map(|one| one.vm).filter(|_| rule.per_vm);
            let event = EventId::derive(new.id, &scope, update_domain, alone);
            let (state, refused, outcome) = (TargetState::Waiting, None, None);
            Target { scope, update_domain, event, resources, state, refused, outcome }
        })
        .collect();
    let mut operation = Operation {
        id: new.id,
        cause: new.cause,
        by: request.by.clone(),
        requested_at: at.now,
        joint_start: hosts::is_whole(host.as_deref(), new.cause, targets.len())
            .then_some(JointStart::Waiting),
        host_command: host_command::first(host.as_deref(), new.cause, &at.setup),
        host,
        not_before,
        time_given: new.not_before.is_some(),
        duration_s: new.duration_s.unwrap_or(rule.duration_s),
        description: new.description.clone().unwrap_or_else(|| new.cause.description().to_owned()),
        driver: at.setup.driver(),
        release: if rule.together { Release::Together } else { Release::Each },
        targets,
        state: OperationState::Opening,
        released: false,
        cancelled_by: None,
        completed_by: None,
    };
    // An operation must be possible as a whole: every scope is tried with all of its parts. Scopes here are never
    // so full that they refuse a part of a host's operation.
    let mut tried: BTreeMap<ScopeId, Scope> = BTreeMap::new();
    for target in &operation.targets {
        let Some((_, scope)) = reads.scope(&target.scope).filter(|_| !tried.contains_key(&target.scope))
        else {
            continue;
        };
        let here = operation.targets.iter().filter(|one| one.scope == target.scope);
        let scope_request = ScopeRequest::Open(here.map(|one| opening(&operation, one, scope, at)).collect());
        tried.insert(target.scope.clone(), after(scope, &[scope_request], at)?);
    }
    let mut writes = Writes::default();
    if tried.len() == 1 {
        // An operation in one scope is created together with its events.
        operation.state = OperationState::Open;
        writes.scopes = tried.into_iter().map(|(id, scope)| (id, kept(scope))).collect();
    }
    if operation.targets.is_empty() {
        // There is nothing to wait for.
        (operation.state, operation.released) = (OperationState::Closed, true);
    }
    writes.operation = Some(operation);
    Ok(writes)
}

fn common_not_before(
    reads: &dyn Reads,
    new: &NewOperation,
    parts: &[Part],
    at: &At,
    codes: &mut Codes,
) -> Option<Timestamp> {
    let mut scopes: Vec<&ScopeId> = parts.iter().map(|((scope, ..), _)| scope).collect();
    scopes.dedup();
    let from = rules::counted_from(at.now, scopes.len(), &at.setup);
    if rules::of(new.cause).notice == rules::Notice::Never {
        return new.not_before.map(rules::whole_second);
    }
    let mut latest = None;
    for ((id, ..), _) in parts {
        let Some((_, scope)) = reads.scope(id) else { continue };
        let least = rules::least_notice(new.cause, &scope.policy, &at.setup);
        let usual = rules::usual_notice(new.cause, &scope.policy, &at.setup);
        match (least, usual, new.not_before.map(rules::whole_second)) {
            (Some(least), Some(usual), wanted) => {
                let earliest = rules::whole_second(rules::plus(from, least));
                let own = wanted.unwrap_or(rules::whole_second(rules::plus(from, usual)));
                if wanted.is_some_and(|wanted| wanted < earliest) {
                    codes.insert("not_before_too_near");
                }
                latest = latest.max(Some(own.max(earliest)));
            }
            (_, _, Some(_)) => {
                codes.insert("not_before_without_notice");
            }
            (_, _, None) => {}
        }
    }
    latest
}

/// The scope to which a description is applied, with the removal of the first-run scope.
fn base(reads: &dyn Reads, put: &PutScope, at: &At, writes: &mut Writes) -> Result<Scope, Codes> {
    let id = put.path.id();
    let fresh = Scope::new(put.path.clone(), put.kind, Policy::default(), put.origin);
    let mut base = reads.scope(&id).map_or(fresh.clone(), |(_, scope)| scope.clone());
    for one in reads.scope_ids() {
        let Some((_, scope)) = reads.scope(&one).filter(|(_, scope)| scope.first_run) else { continue };
        let all = scope.members.iter().map(|one| one.vm).collect();
        let retired = after(scope, &[ScopeRequest::Remove(all)], at)?;
        if one == id {
            base = Scope { incarnation: retired.incarnation, ended: retired.ended, ..fresh.clone() };
        } else {
            writes.scopes.insert(one, kept(retired));
        }
    }
    Ok(base)
}

/// The members that pruning removes.
fn leaving<'a>(put: &'a PutScope, scope: &'a Scope) -> impl Iterator<Item = &'a Member> {
    scope.members.iter().filter(|one| {
        put.prune && one.origin == Origin::Fleet && !put.vms.iter().any(|spec| spec.name == one.name)
    })
}

fn descriptions(reads: &dyn Reads, put: &PutScope) -> Codes {
    let mut codes = Codes::new();
    let here = reads.scope(&put.path.id()).map(|(_, scope)| scope);
    if here.is_some_and(|scope| scope.kind != put.kind && !scope.first_run) {
        codes.insert("kind_differs");
    }
    if put.kind == ScopeKind::Standalone && put.vms.len() > 1 {
        codes.insert("standalone_holds_one");
    }
    let mut seen = Vec::new();
    for (position, spec) in put.vms.iter().enumerate() {
        if put.vms[..position].iter().any(|one| one.name == spec.name) {
            codes.insert("name_taken");
        }
        for address in &spec.addresses {
            let mine = here.and_then(|scope| scope.members.iter().find(|one| one.name == spec.name));
            let leaves = |owner| here.is_some_and(|scope| leaving(put, scope).any(|one| one.vm == owner));
            let is_taken = |owner| mine.is_none_or(|mine| mine.vm != owner) && !leaves(owner);
            if reads.claim(address).is_some_and(is_taken) {
                codes.insert("address_taken");
            }
            let key = caller_key(address);
            if seen.contains(&key) {
                codes.insert("address_twice");
            }
            seen.push(key);
        }
    }
    codes
}

fn member(spec: &VmSpec, known: Option<&Member>, origin: Origin) -> Member {
    let fresh = Member {
        vm: spec.vm,
        name: spec.name.clone(),
        update_domain: spec.update_domain,
        fault_domain: spec.fault_domain,
        zone: spec.zone.clone(),
        host: spec.host.clone(),
        moved_from: None,
        spot: spec.spot,
        state: MemberState::Running,
        origin,
    };
    match known {
        None => fresh,
        Some(known) => {
            // A description without a host, or with the one that the VM has left, says nothing new.
            let is_new = spec.host.as_ref().is_some_and(|host| known.moved_from.as_ref() != Some(host));
            let (host, moved_from) = match is_new {
                true => (fresh.host.clone(), None),
                false => (known.host.clone(), known.moved_from.clone()),
            };
            Member {
                vm: known.vm,
                name: known.name.clone(),
                host,
                moved_from,
                state: known.state,
                origin: known.origin,
                ..fresh
            }
        }
    }
}

fn remove_scope(reads: &dyn Reads, id: &ScopeId, fleet_only: bool, at: &At) -> Result<Writes, Codes> {
    let (_, scope) = reads.scope(id).ok_or(Codes::from(["unknown_scope"]))?;
    let goes = |one: &&Member| !fleet_only || one.origin == Origin::Fleet;
    let leave: Vec<VmId> = scope.members.iter().filter(goes).map(|one| one.vm).collect();
    let (is_emptied, is_unchanged) = (leave.len() == scope.members.len(), leave.is_empty());
    let next = after(scope, &[ScopeRequest::Remove(leave)], at)?;
    let scopes = match (is_emptied, is_unchanged && next == bare(scope)) {
        (true, _) => BTreeMap::from([(id.clone(), None)]),
        (false, true) => BTreeMap::new(),
        (false, false) => BTreeMap::from([(id.clone(), kept(next))]),
    };
    Ok(Writes { scopes, ..Writes::default() })
}

fn put_scope(reads: &dyn Reads, put: &PutScope, at: &At) -> Result<Writes, Codes> {
    let codes = descriptions(reads, put);
    if !codes.is_empty() {
        return Err(codes);
    }
    let id = put.path.id();
    let mut writes = Writes::default();
    let base = base(reads, put, at, &mut writes)?;
    let known = |spec: &VmSpec| base.members.iter().find(|one| one.name == spec.name);
    let members: Vec<Member> = put.vms.iter().map(|spec| member(spec, known(spec), put.origin)).collect();
    let removed = leaving(put, &base).map(|one| one.vm).collect();
    let specs = put.vms.iter().zip(&members).map(|(spec, member)| (member.vm, spec));
    changed_addresses(reads, &id, specs, &mut writes);
    let scope_requests = [
        ScopeRequest::Policy(put.policy.clone()),
        ScopeRequest::Remove(removed),
        ScopeRequest::AddMembers(members),
    ];
    finish(reads, &id, &base, &scope_requests, at, writes)
}

fn add_vm(reads: &dyn Reads, put: &PutScope, spec: &VmSpec, at: &At) -> Result<Writes, Codes> {
    let mut codes = descriptions(reads, put);
    let id = put.path.id();
    let mut writes = Writes::default();
    let base = base(reads, put, at, &mut writes)?;
    if base.members.iter().any(|one| one.name == spec.name) {
        codes.insert("name_taken");
    }
    if !codes.is_empty() {
        return Err(codes);
    }
    let member = member(spec, None, Origin::Call);
    changed_addresses(reads, &id, [(member.vm, spec)].into_iter(), &mut writes);
    finish(reads, &id, &base, &[ScopeRequest::AddMembers(vec![member])], at, writes)
}

fn changed_addresses<'a>(
    reads: &dyn Reads,
    id: &ScopeId,
    specs: impl Iterator<Item = (VmId, &'a VmSpec)>,
    writes: &mut Writes,
) {
    for (vm, spec) in specs {
        let same = |known: &notbefore_engine::Vm| {
            known.scope == *id && known.addresses == spec.addresses && known.instance == spec.instance
        };
        if !reads.vm(vm).as_ref().is_some_and(same) {
            writes.addresses.insert(vm, spec.addresses.clone());
        }
    }
}

fn finish(
    reads: &dyn Reads,
    id: &ScopeId,
    base: &Scope,
    scope_requests: &[ScopeRequest],
    at: &At,
    mut writes: Writes,
) -> Result<Writes, Codes> {
    let next = after(base, scope_requests, at)?;
    if reads.scope(id).is_none_or(|(_, before)| bare(before) != next) {
        writes.scopes.insert(id.clone(), kept(next));
    }
    Ok(writes)
}
