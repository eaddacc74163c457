//! Plans that change the inventory: create, change and remove scopes and VMs.
//!
//! A scope with a thousand VMs does not fit into one transaction, so a plan takes as many VMs as fit and leaves the
//! rest for the next one. Each step is atomic: a VM, its membership and its addresses appear and vanish together.

use std::collections::{HashMap, HashSet};

use notbefore_core::scope::MEMBERS_MAX;
use notbefore_core::{
    Applied, Command as ScopeCommand, Fact, Member, MemberState, Origin, Policy, Refusal, Scope, ScopeId,
    ScopeKind, ScopePath, VmId,
};
use notbefore_store::{Revision, TXN_OPERATIONS_MAX};

use crate::draft::{Draft, address_taken, encode_scope};
use crate::plan::{Plan, Planner};
use crate::records::{self, Address, Vm};
use crate::request::{
    AddVm, Answer, Failure, FirstRun, InventoryCommand, Progress, PutScope, ScopeChange, VmCommand, VmSpec,
};
use crate::state::{Revisioned, caller_key};

/// Limit on addresses of a VM.
pub const ADDRESSES_MAX: usize = 16;

/// Limit after which a plan takes no further VM. The next VM with all its addresses would still fit, and so do the
/// records that every plan writes.
const OPERATIONS_PER_TXN: usize = TXN_OPERATIONS_MAX - 2 * (ADDRESSES_MAX + 2) - 8;

/// VMs per removal step: each may remove a record, addresses, and write the history of its events.
const REMOVED_PER_STEP: usize = 8;
/// Limit on the records of VMs and claims that a step removes. They go with the change of the scope: if the service
/// ended in between, nothing would remove the rest.
const REMOVALS_PER_STEP: usize = 96;

impl Planner<'_> {
    pub(crate) fn plan_inventory(
        &self,
        command: &InventoryCommand,
        progress: Progress,
    ) -> Result<Plan, Failure> {
        match command {
            InventoryCommand::Scope(ScopeChange::Put(put)) => self.put_scope(put, progress),
            InventoryCommand::Scope(ScopeChange::Remove { scope, fleet_only }) => {
                self.remove_scope(scope, *fleet_only, progress)
            }
            InventoryCommand::AddVm(add) => self.add_vm(add),
            InventoryCommand::Vm(VmCommand::Remove(vm)) => {
                self.on_scope(&self.scope_of_vm(*vm)?.0, ScopeCommand::Remove(vec![*vm]))
            }
            InventoryCommand::Vm(VmCommand::Start(vm)) => {
                self.on_scope(&self.scope_of_vm(*vm)?.0, ScopeCommand::Revive(*vm))
            }
            InventoryCommand::Host(change) => self.plan_host(change),
            InventoryCommand::FirstRun(first_run) => self.create_first_run(first_run),
        }
    }

    fn put_scope(&self, put: &PutScope, mut progress: Progress) -> Result<Plan, Failure> {
        let id = put.path.id();
        let leaving = self.leaving(put);
        self.check_description(&id, put, &mut |_, address, owner| match leaving.contains(&owner) {
            true => Ok(()),
            false => Err(address_taken(self.state, address, owner)),
        })?;
        let mut draft = self.draft();
        let mut base = self.base(&mut draft, &put.path, put.kind, put.origin)?;
        draft.release(leaving.clone());
        let held = self.state.scope(&id);
        progress.created |= held.is_none();

        if progress.seen == 0 {
            // Checks that everything fits before the first part is written.
            self.apply_put(put, base.clone())?;
        }
        let known = by_name(&base.scope);
        let mut members = Vec::new();
        let mut removed = Vec::new();
        for spec in &put.vms[progress.seen..] {
            if draft.operations() > OPERATIONS_PER_TXN || draft.is_full() {
                break;
            }
            progress.seen += 1;
            let before = known.get(&spec.name.folded()).copied();
            let (member, record) = member_and_record(&id, spec, before, put.origin);
            match before.map(|before| (before, self.differences(before, &member, &record))) {
                None => progress.added += 1,
                Some((_, fields)) if fields.is_empty() => {}
                Some((before, _)) => {
                    progress.changed += 1;
                    if *before == member {
                        // Its addresses or metadata changed, which the scope does not see; so the fact is recorded
                        // here.
                        let fact = Fact::VmChanged { vm: member.vm, name: member.name.clone() };
                        base.facts.push(self.recorded(fact));
                    }
                }
            }
            draft.vm(&record)?;
            members.push(member);
            // A VM whose address goes to another one is removed in the same transaction.
            let owners = spec.addresses.iter().filter_map(|address| self.state.claim(address));
            removed.extend(owners.filter(|owner| leaving.contains(owner)));
        }
        removed.sort();
        removed.dedup();
        let all_seen = progress.seen == put.vms.len();
        if all_seen {
            let others = unlisted_vms(&base.scope, &put.vms).into_iter().filter(|vm| leaving.contains(vm));
            removed.extend(self.removed_in_a_step(others.filter(|vm| !removed.contains(vm)).collect()));
        }
        progress.removed += removed.len();

        let context = self.context(&id, self.by);
        let is_last = all_seen && removed.len() == leaving.len();
        base.apply(ScopeCommand::SetPolicy(put.policy.clone()), context)?;
        base.apply(ScopeCommand::Remove(removed), context)?;
        base.apply(ScopeCommand::Enrol(members), context)?;
        draft.scope(held, base)?;
        let answer = Answer::Scope { scope: id, progress };
        if is_last {
            return Ok(self.write(draft, answer));
        }
        Ok(Plan::Write { drafted: draft.finish(), answer, rest: Some(progress) })
    }

    /// With pruning: the VMs that leave the scope, because an earlier fleet file added them and this one does not list
    /// them.
    pub(crate) fn leaving(&self, put: &PutScope) -> HashSet<VmId> {
        let held = self.state.scope(&put.path.id()).filter(|_| put.prune);
        held.map(|held| unlisted_vms(&held.value, &put.vms).into_iter().collect()).unwrap_or_default()
    }

    /// The scope with a whole description applied, before removals. The VM of a standalone scope makes room first: the
    /// scope holds only one.
    pub(crate) fn apply_put(&self, put: &PutScope, mut base: Applied) -> Result<Applied, Refusal> {
        let id = put.path.id();
        let known = by_name(&base.scope);
        let one = |spec: &VmSpec| member(spec, known.get(&spec.name.folded()).copied(), put.origin);
        let all = put.vms.iter().map(one).collect();
        let context = self.context(&id, self.by);
        base.apply(ScopeCommand::SetPolicy(put.policy.clone()), context)?;
        if put.kind == ScopeKind::Standalone {
            base.apply(ScopeCommand::Remove(self.leaving(put).into_iter().collect()), context)?;
        }
        base.apply(ScopeCommand::Enrol(all), context)?;
        encode_scope(self.state.scope(&id).map(|held| &*held.value), &base.scope)?;
        Ok(base)
    }

    /// The scope to change, or an empty one. The first-run scope is removed when the first real scope is created: from
    /// then on a caller from this machine is no longer taken for its VM.
    pub(crate) fn base(
        &self,
        draft: &mut Draft<'_>,
        path: &ScopePath,
        kind: ScopeKind,
        origin: Origin,
    ) -> Result<Applied, Refusal> {
        let id = path.id();
        let fresh = Scope::new(path.clone(), kind, Policy::default(), origin);
        let retired = match self.state.first_run() {
            Some(held) => {
                let of = held.value.id();
                let vms = held.value.members.iter().map(|member| member.vm).collect();
                let context = self.context(&of, self.by);
                Some((held, held.value.apply(ScopeCommand::Remove(vms), context)?))
            }
            None => None,
        };
        match (retired, self.state.scope(&id)) {
            (Some((held, retired)), _) if held.value.id() == id => {
                // The same path: the record becomes another scope, and its incarnation does not go back.
                let incarnation = retired.scope.incarnation;
                let ended = retired.scope.ended.clone();
                Ok(Applied { scope: Scope { incarnation, ended, ..fresh }, ..retired })
            }
            (retired, held) => {
                if let Some((held, retired)) = retired {
                    draft.scope(Some(held), retired)?;
                }
                match held {
                    Some(held) => Ok(Applied::unchanged((*held.value).clone())),
                    None => {
                        let created = self.recorded(Fact::ScopeCreated { path: path.clone() });
                        Ok(Applied { facts: vec![created], ..Applied::unchanged(fresh) })
                    }
                }
            }
        }
    }

    /// Refuses a description that could not be applied completely, before the first change.
    pub(crate) fn check_description(
        &self,
        id: &ScopeId,
        put: &PutScope,
        taken: OnTaken<'_>,
    ) -> Result<(), Refusal> {
        self.check_kind(&put.path, put.kind)?;
        if put.kind == ScopeKind::Standalone && put.vms.len() > 1 {
            return Err(Refusal::StandaloneHoldsOne(put.path.clone()));
        }
        if put.vms.len() > MEMBERS_MAX {
            return Err(Refusal::TooManyMembers);
        }
        self.check_addresses(id, &put.vms, taken)
    }

    fn check_kind(&self, path: &ScopePath, asked: ScopeKind) -> Result<(), Refusal> {
        match self.state.scope(&path.id()) {
            Some(held) if held.value.kind != asked && !held.value.first_run => {
                Err(Refusal::KindDiffers { path: path.clone(), is: held.value.kind, asked })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Finds addresses that occur twice or belong to another VM, before the first write.
    fn check_addresses(&self, id: &ScopeId, vms: &[VmSpec], taken: OnTaken<'_>) -> Result<(), Refusal> {
        let mut names = HashSet::new();
        let mut seen = HashSet::new();
        for spec in vms {
            if !names.insert(spec.name.folded()) {
                return Err(Refusal::NameTaken(spec.name.clone()));
            }
            if spec.addresses.len() > ADDRESSES_MAX {
                return Err(Refusal::TooManyAddresses { name: spec.name.clone(), limit: ADDRESSES_MAX });
            }
            for address in &spec.addresses {
                let owner = self.state.claim(address);
                let elsewhere = owner.filter(|owner| {
                    let here = self.state.scope(id).and_then(|held| held.value.member(*owner).cloned());
                    here.is_none_or(|member| member.name != spec.name)
                });
                if let Some(owner) = elsewhere {
                    taken(spec, address, owner)?;
                }
                if !seen.insert(caller_key(address)) {
                    return Err(Refusal::AddressTwice {
                        address: address.ip,
                        network: address.network.clone(),
                        name: spec.name.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    fn add_vm(&self, add: &AddVm) -> Result<Plan, Failure> {
        let AddVm { path, kind, vm: spec } = add;
        let id = path.id();
        if let Some(kind) = kind {
            self.check_kind(path, *kind)?;
        }
        self.check_addresses(&id, std::slice::from_ref(spec), &mut |_, address, owner| {
            Err(address_taken(self.state, address, owner))
        })?;
        let mut draft = self.draft();
        let kind = kind.unwrap_or(ScopeKind::Standalone);
        let mut base = self.base(&mut draft, path, kind, Origin::Call)?;
        if base.scope.members.iter().any(|member| member.name == spec.name) {
            return Err(Refusal::NameTaken(spec.name.clone()).into());
        }
        let (member, record) = member_and_record(&id, spec, None, Origin::Call);
        base.apply(ScopeCommand::Enrol(vec![member]), self.context(&id, self.by))?;
        draft.scope(self.state.scope(&id), base)?;
        draft.vm(&record)?;
        Ok(self.write(draft, Answer::Vm(record.id)))
    }

    pub(crate) fn known_scope(&self, id: &ScopeId) -> Result<&'_ Revisioned<Scope>, Refusal> {
        match self.state.scope(id) {
            Some(held) => Ok(held),
            None => Err(Refusal::UnknownScope(id.as_str().parse::<ScopePath>()?)),
        }
    }

    fn remove_scope(&self, id: &ScopeId, fleet_only: bool, mut progress: Progress) -> Result<Plan, Failure> {
        let held = self.known_scope(id)?;
        let some = vms_to_remove(&held.value, fleet_only);
        let all = some.len();
        let some = self.removed_in_a_step(some);
        let last = some.len() == all;
        let empties = last && all == held.value.members.len();
        progress.removed += some.len();
        let mut draft = self.draft();
        let mut applied = held.value.apply(ScopeCommand::Remove(some), self.context(id, self.by))?;
        if empties {
            applied.facts.push(self.recorded(Fact::ScopeRemoved { path: held.value.path.clone() }));
        }
        draft.write_or_expect_scope(held, applied)?;
        let answer = Answer::Scope { scope: id.clone(), progress };
        if empties {
            draft.remove_scope(id);
        }
        if last {
            return Ok(self.write(draft, answer));
        }
        Ok(Plan::Write { drafted: draft.finish(), answer, rest: Some(progress) })
    }

    /// The first of these VMs: those whose records and addresses one transaction can remove.
    fn removed_in_a_step(&self, mut vms: Vec<VmId>) -> Vec<VmId> {
        let mut removals = 0;
        let mut fits = |vm: &VmId| {
            removals += 1 + self.state.vm(*vm).map_or(0, |known| known.addresses.len());
            removals <= REMOVALS_PER_STEP
        };
        let fitting = vms.iter().take(REMOVED_PER_STEP).take_while(|vm| fits(vm)).count();
        vms.truncate(fitting);
        vms
    }

    fn create_first_run(&self, first_run: &FirstRun) -> Result<Plan, Failure> {
        let FirstRun { vm, name } = first_run;
        if !self.state.is_empty() {
            return Ok(Plan::Settled(Answer::Done));
        }
        let path = name.as_str().parse::<ScopePath>().map_err(Refusal::from)?;
        let id = path.id();
        let mut fresh = Scope::new(path, ScopeKind::Standalone, Policy::for_first_run(), Origin::Call);
        fresh.first_run = true;
        let spec = VmSpec { spot: true, ..VmSpec::with_defaults(*vm, name.clone()) };
        let (member, record) = member_and_record(&id, &spec, None, Origin::Call);
        let applied = fresh.apply(ScopeCommand::Enrol(vec![member]), self.context(&id, self.by))?;
        let mut draft = self.draft();
        draft.scope(None, applied)?;
        draft.vm(&record)?;
        Ok(self.write(draft, Answer::Done))
    }
}

impl Draft<'_> {
    /// Like [`Draft::scope`], but compares the scope even if it is unchanged, since its record is about to be removed.
    fn write_or_expect_scope(&mut self, held: &Revisioned<Scope>, applied: Applied) -> Result<(), Refusal> {
        let id = held.value.id();
        let facts = match *held.value == applied.scope {
            true => applied.facts.clone(),
            false => Vec::new(),
        };
        self.expect(records::scope(&id), Some(held.revision));
        self.scope(Some(held), applied)?;
        self.facts(Some(id), facts);
        Ok(())
    }
}

/// What to do about a taken address: the VM that wants it, the address, and its owner.
pub(crate) type OnTaken<'a> = &'a mut dyn FnMut(&VmSpec, &Address, VmId) -> Result<(), Refusal>;

/// Members by case-folded name.
pub(crate) fn by_name(scope: &Scope) -> HashMap<String, &Member> {
    scope.members.iter().map(|member| (member.name.folded(), member)).collect()
}

/// The VMs to remove with a scope: all, or those that a fleet file added.
pub(crate) fn vms_to_remove(scope: &Scope, fleet_only: bool) -> Vec<VmId> {
    let leaves = |member: &&Member| !fleet_only || member.origin == Origin::Fleet;
    scope.members.iter().filter(leaves).map(|member| member.vm).collect()
}

/// VMs that an earlier fleet file added and this one does not list.
pub(crate) fn unlisted_vms(scope: &Scope, vms: &[VmSpec]) -> Vec<VmId> {
    let named: HashSet<String> = vms.iter().map(|spec| spec.name.folded()).collect();
    let unnamed = |member: &&Member| member.origin == Origin::Fleet && !named.contains(&member.name.folded());
    scope.members.iter().filter(unnamed).map(|member| member.vm).collect()
}

/// A described VM: the scope's member and the VM's own record.
pub(crate) fn member_and_record(
    id: &ScopeId,
    spec: &VmSpec,
    known: Option<&Member>,
    origin: Origin,
) -> (Member, Vm) {
    let member = member(spec, known, origin);
    let (addresses, instance) = (spec.addresses.clone(), spec.instance.clone());
    let record = Vm { id: member.vm, scope: id.clone(), addresses, instance };
    (member, record)
}

/// A member from its description. Omitted fields keep their values.
fn member(spec: &VmSpec, known: Option<&Member>, origin: Origin) -> Member {
    let mut member = Member {
        vm: known.map_or(spec.vm, |known| known.vm),
        name: known.map_or_else(|| spec.name.clone(), |known| known.name.clone()),
        update_domain: spec.update_domain,
        fault_domain: spec.fault_domain,
        zone: spec.zone.clone(),
        host: known.and_then(|known| known.host.clone()),
        moved_from: known.and_then(|known| known.moved_from.clone()),
        spot: spec.spot,
        state: known.map_or(MemberState::Running, |known| known.state),
        origin: known.map_or(origin, |known| known.origin),
    };
    member.place_on(spec.host.as_deref());
    member
}

/// Compares the caller's revision with the current one; 0 means that the record does not exist.
pub(crate) fn check_revision<T>(seen: Revision, held: Option<&Revisioned<T>>) -> Result<(), Refusal> {
    match held.map_or(Revision(0), |held| held.revision) {
        found if found == seen => Ok(()),
        found => Err(Refusal::RevisionDiffers { expected: seen.0, found: found.0 }),
    }
}
