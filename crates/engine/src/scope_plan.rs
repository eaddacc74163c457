//! Dry run of a scope change: a diff by field.
//!
//! It uses the functions that carry out the change (`fleet.rs`): the same checks, comparison and removal of VMs, and
//! the scope's own `apply`. The only difference: an address of a VM in another scope is not refused. A fleet file may
//! release that address in the other scope, so the plan names the owner and the caller decides.

use notbefore_core::{
    Cause, Command as ScopeCommand, EventId, Member, Name, Phase, Policy, Scope, ScopeId, ScopePath, VmId,
};
use notbefore_store::Revision;

use crate::draft::{address_taken, is_kept, vm_bytes};
use crate::fleet::{by_name, member_and_record, unlisted_vms, vms_to_remove};
use crate::plan::Planner;
use crate::records::{Address, Vm};
use crate::request::{Failure, PutScope, ScopeChange};

/// What a change of a scope would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopePlan {
    pub path: ScopePath,
    /// The current revision; 0 if the scope does not exist.
    pub revision: Revision,
    /// Whether the scope is removed.
    pub removed: bool,
    /// Changed settings.
    pub policy: Vec<FieldChange>,
    pub added_vms: Vec<Name>,
    pub changed_vms: Vec<VmChange>,
    pub removed_vms: Vec<Name>,
    /// Number of VMs afterwards.
    pub vms: usize,
    /// Live events that end because all their VMs are removed.
    pub ended: Vec<EndedEvent>,
    /// Addresses of VMs in other scopes: the change is refused while they have them.
    pub taken: Vec<TakenAddress>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// Its name in a fleet file.
    pub field: String,
    /// None also if the state does not hold the value.
    pub from: Option<String>,
    /// None also if the state does not hold the value.
    pub to: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmChange {
    pub name: Name,
    /// Not empty.
    pub fields: Vec<FieldChange>,
}

/// A live event that would end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedEvent {
    pub event: EventId,
    /// May be the first-run scope, which is removed with the first real one.
    pub scope: ScopePath,
    pub cause: Cause,
    /// An event that has not started is cancelled.
    pub phase: Phase,
    pub resources: Vec<Name>,
}

/// An address of a VM in another scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenAddress {
    /// The VM that the address is for.
    pub vm: Name,
    pub address: Address,
    /// The VM that has it.
    pub owner: VmId,
}

impl Planner<'_> {
    /// Computes what a change of a scope would do.
    pub(crate) fn plan_scope(&self, change: &ScopeChange) -> Result<ScopePlan, Failure> {
        match change {
            ScopeChange::Put(put) => self.plan_put(put),
            ScopeChange::Remove { scope, fleet_only } => self.plan_remove(scope, *fleet_only),
        }
    }

    fn plan_put(&self, put: &PutScope) -> Result<ScopePlan, Failure> {
        let id = put.path.id();
        let mut taken = Vec::new();
        let leaving = self.leaving(put);
        self.check_description(&id, put, &mut |spec, address, owner| match self.state.scope_of(owner) {
            Some(_) if leaving.contains(&owner) => Ok(()),
            // Refused: one change cannot move an address between VMs that stay in a scope.
            Some((scope, ..)) if *scope == id => Err(address_taken(self.state, address, owner)),
            Some(_) | None => {
                taken.push(TakenAddress { vm: spec.name.clone(), address: address.clone(), owner });
                Ok(())
            }
        })?;
        let base = self.base(&mut self.draft(), &put.path, put.kind, put.origin)?;
        let mut whole = self.apply_put(put, base.clone())?;
        let removed = if put.prune { unlisted_vms(&base.scope, &put.vms) } else { Vec::new() };
        let still_there = removed.iter().copied().filter(|vm| whole.scope.member(*vm).is_some()).collect();
        whole.apply(ScopeCommand::Remove(still_there), self.context(&id, self.by))?;

        let held = self.state.scope(&id).map(|held| (held.revision, &*held.value));
        let policy = held.map_or(Vec::new(), |(_, held)| policy_changes(&held.policy, &put.policy));
        let mut plan = ScopePlan { taken, policy, ..self.outcome(put.path.clone(), &base.scope, &removed) };
        let first_run = self.state.first_run().map(|held| &*held.value).filter(|scope| scope.id() != id);
        plan.revision = held.map_or(Revision(0), |(revision, _)| revision);
        plan.vms = whole.scope.members.len();
        plan.removed = held.is_some() && !is_kept(&whole.scope);
        if let Some((_, held)) = held {
            plan.ended.extend(ended(held, &whole.scope.members));
        }
        plan.ended.extend(first_run.iter().flat_map(|scope| ended(scope, &[])));
        let known = by_name(&base.scope);
        for spec in &put.vms {
            let before = known.get(&spec.name.folded()).copied();
            let (member, record) = member_and_record(&id, spec, before, put.origin);
            if !self.state.is_known(&record) {
                vm_bytes(&record)?;
            }
            match before.map(|before| self.differences(before, &member, &record)) {
                None => plan.added_vms.push(member.name),
                Some(fields) if fields.is_empty() => {}
                Some(fields) => plan.changed_vms.push(VmChange { name: member.name, fields }),
            }
        }
        Ok(plan)
    }

    fn plan_remove(&self, id: &ScopeId, fleet_only: bool) -> Result<ScopePlan, Failure> {
        let held = self.known_scope(id)?;
        let removed = vms_to_remove(&held.value, fleet_only);
        let command = ScopeCommand::Remove(removed.clone());
        let after = held.value.apply(command, self.context(id, self.by))?.scope;
        let plan = self.outcome(held.value.path.clone(), &held.value, &removed);
        Ok(ScopePlan {
            revision: held.revision,
            removed: after.members.is_empty(),
            vms: after.members.len(),
            ended: ended(&held.value, &after.members).collect(),
            ..plan
        })
    }

    /// A plan with only the removed VMs.
    fn outcome(&self, path: ScopePath, scope: &Scope, removed: &[VmId]) -> ScopePlan {
        let names = removed.iter().filter_map(|vm| scope.member(*vm)).map(|member| member.name.clone());
        ScopePlan {
            path,
            revision: Revision(0),
            removed: false,
            policy: Vec::new(),
            added_vms: Vec::new(),
            changed_vms: Vec::new(),
            removed_vms: names.collect(),
            vms: 0,
            ended: Vec::new(),
            taken: Vec::new(),
        }
    }

    /// The differences between a VM and its description.
    pub(crate) fn differences(&self, before: &Member, member: &Member, record: &Vm) -> Vec<FieldChange> {
        let mut fields = Vec::new();
        let mut compare = |field: &str, from: Option<String>, to: Option<String>| {
            fields.push(FieldChange { field: field.to_owned(), from, to });
        };
        if before.update_domain != member.update_domain {
            let [from, to] = [before, member].map(|one| Some(one.update_domain.to_string()));
            compare("update_domain", from, to);
        }
        if before.fault_domain != member.fault_domain {
            let [from, to] = [before, member].map(|one| Some(one.fault_domain.to_string()));
            compare("fault_domain", from, to);
        }
        if before.zone != member.zone {
            compare("zone", before.zone.clone(), member.zone.clone());
        }
        if before.host != member.host {
            compare("host", before.host.clone(), member.host.clone());
        }
        if before.spot != member.spot {
            compare("spot", Some(before.spot.to_string()), Some(member.spot.to_string()));
        }
        if !self.state.is_known(record) {
            let known = self.state.vm(record.id).map(|known| known.addresses).unwrap_or_default();
            if known != record.addresses {
                compare("addresses", listed(&known), listed(&record.addresses));
            }
            if !self.state.has_this_instance(record) {
                // The state holds a fingerprint of the metadata, not the metadata.
                compare("instance", None, None);
            }
        }
        fields
    }
}

fn listed(addresses: &[Address]) -> Option<String> {
    let texts: Vec<String> = addresses.iter().map(Address::to_string).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn policy_changes(from: &Policy, to: &Policy) -> Vec<FieldChange> {
    let notice = |policy: &Policy| policy.terminate_notice_s.map(|seconds| format!("{seconds}s"));
    let all = [
        (
            "automatically_approve_reboot",
            [from, to].map(|policy| Some(policy.automatically_approve_reboot.to_string())),
        ),
        (
            "automatically_approve_redeploy",
            [from, to].map(|policy| Some(policy.automatically_approve_redeploy.to_string())),
        ),
        ("terminate_notification", [from, to].map(notice)),
    ];
    let changed = all.into_iter().filter(|(_, [from, to])| from != to);
    changed.map(|(field, [from, to])| FieldChange { field: field.to_owned(), from, to }).collect()
}

/// The events of a scope that end when only these members are left.
fn ended<'a>(before: &'a Scope, members: &'a [Member]) -> impl Iterator<Item = EndedEvent> + 'a {
    let state_of = |vm| members.iter().find(|member| member.vm == vm).map(|member| member.state);
    let gone = before.events.iter().filter(move |event| event.is_without_vms(state_of));
    gone.map(|event| EndedEvent {
        event: event.id,
        scope: before.path.clone(),
        cause: event.cause,
        phase: event.phase.clone(),
        resources: event.resources.iter().map(|one| one.name.clone()).collect(),
    })
}
