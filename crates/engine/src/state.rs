//! The committed records that the engine works with, in memory. Nothing gets in here but what the store has
//! made durable, so whatever is published from it is at most what is committed.
//!
//! VMs and their addresses are in the [`inventory`], which readers share.

pub mod host_operations;
pub mod inventory;
pub mod load;
pub mod table;
mod user_operations;

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use notbefore_core::{
    Blocker, ClockHold, EventId, Name, Operation, OperationId, OperationState, Scope, ScopeId, Token, VmId,
};
use notbefore_store::{Key, Revision};

use self::host_operations::HostOperations;
use self::inventory::{Inventory, ScopeSlot};
use self::user_operations::UserOperations;
use crate::keys::{KeyError, RecordKey};
use crate::records::{self, Address, Alive, Boot, DecodeError, LastAt, Vm};

/// A record and the revision that wrote it.
#[derive(Clone, Debug)]
pub struct Revisioned<T> {
    /// The revision.
    pub revision: Revision,
    /// The record, shared with whoever it was published to.
    pub value: Arc<T>,
}

/// A record that this process has made, as a value: it need not read its own writing.
#[derive(Clone, Debug)]
pub enum OwnRecord {
    /// A scope.
    Scope(Arc<Scope>),
    /// An operation.
    Operation(Arc<Operation>),
}

/// An address as maps use it: network folded, and the address.
pub type CallerKey = (String, IpAddr);

/// What those see who read without asking the engine: the guests' snapshot and the operators' lists.
#[derive(Clone, Debug, Default)]
pub struct Publication {
    /// What has changed, in order.
    pub changes: Vec<PublishedChange>,
    /// All VMs and addresses, as they are after that.
    pub inventory: Inventory,
}

impl Publication {
    /// Takes up the one that comes next: the two are then one.
    pub fn append(&mut self, next: Self) {
        self.changes.extend(next.changes);
        self.inventory = next.inventory;
    }
}

/// A change.
#[derive(Clone, Debug)]
pub enum PublishedChange {
    /// A scope is so now, or gone; VMs name it by its number.
    Scope(ScopeId, ScopeSlot, Option<Revisioned<Scope>>),
    /// A VM's record was written, or is gone. What it says is in the inventory.
    Vm(VmId, Option<Revision>),
    /// An address is this VM's now, or nobody's.
    Claim(CallerKey, Option<VmId>),
    /// An operation is so now, or closed.
    Operation(OperationId, Option<Revisioned<Operation>>),
    /// A token is so now, or gone.
    Token(Name, Option<Revisioned<Token>>),
}

impl PublishedChange {
    fn is_removal(&self) -> bool {
        match self {
            Self::Scope(_, _, held) => held.is_none(),
            Self::Vm(_, revision) => revision.is_none(),
            Self::Claim(_, vm) => vm.is_none(),
            Self::Operation(_, held) => held.is_none(),
            Self::Token(_, held) => held.is_none(),
        }
    }
}

/// A VM, as it is known here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownVm<'a> {
    /// When its record was written.
    pub revision: Revision,
    /// Its scope.
    pub scope: &'a ScopeId,
    /// Where it calls from.
    pub addresses: Vec<Address>,
}

/// A scope that is there, or that VMs' records name.
#[derive(Debug)]
struct ScopeEntry {
    slot: ScopeSlot,
    /// How many VMs' records name it.
    vms: u32,
    held: Option<Revisioned<Scope>>,
}

/// All records that decisions are made from.
#[derive(Debug, Default)]
pub struct State {
    scopes: HashMap<ScopeId, ScopeEntry>,
    /// The scopes by their numbers; a number that is free is used again.
    slots: Vec<Option<ScopeId>>,
    free: Vec<ScopeSlot>,
    /// How many scopes there are.
    scopes_held: usize,
    inventory: Inventory,
    operations: HashMap<OperationId, Revisioned<Operation>>,
    host_operations: HostOperations,
    user_operations: UserOperations,
    /// The events that wait while the clock is not trusted.
    clock_hold: Option<Arc<ClockHold>>,
    /// By their folded names.
    tokens: HashMap<String, Revisioned<Token>>,
    last_polls: HashMap<ScopeId, Timestamp>,
    /// Where an event lives, or lived lately.
    event_scopes: HashMap<EventId, ScopeId>,
    /// The scopes that have a VM on a host.
    hosts: HashMap<String, BTreeSet<ScopeId>>,
    alive: Option<Alive>,
    /// The boot in which this process runs, where the system says.
    boot: Option<Boot>,
    /// Records that were removed, and when, until the watch has come so far: what it shows of them from before
    /// is old news.
    tombstones: HashMap<Key, Revision>,
}

impl State {
    /// A scope.
    pub fn scope(&self, id: &ScopeId) -> Option<&Revisioned<Scope>> {
        self.scopes.get(id)?.held.as_ref()
    }

    /// The scope that a key is of.
    pub(crate) fn scope_of_key(&self, key: &str) -> Option<&Revisioned<Scope>> {
        match RecordKey::parse(key) {
            Ok(RecordKey::Scope(id)) => self.scope(&id),
            Ok(_) | Err(_) => None,
        }
    }

    /// All scopes.
    pub fn scopes(&self) -> impl Iterator<Item = (&ScopeId, &Revisioned<Scope>)> {
        self.scopes.iter().filter_map(|(id, place)| Some((id, place.held.as_ref()?)))
    }

    /// A VM.
    pub fn vm(&self, id: VmId) -> Option<KnownVm<'_>> {
        let row = self.inventory.vm(id)?;
        let addresses = self.inventory.addresses(row);
        Some(KnownVm { revision: row.revision, scope: self.scope_in_slot(row.scope)?, addresses })
    }

    /// The scope of a VM, and where the VM stands among its members, if it does.
    pub fn scope_of(&self, vm: VmId) -> Option<(&ScopeId, &Revisioned<Scope>, Option<usize>)> {
        let row = self.inventory.vm(vm)?;
        let id = self.scope_in_slot(row.scope)?;
        let held = self.scope(id)?;
        Some((id, held, row.position(&held.value.members)))
    }

    /// Whether a VM's record says just this.
    pub fn is_known(&self, vm: &Vm) -> bool {
        let row = self.inventory.vm(vm.id);
        row.is_some_and(|row| {
            self.scope_in_slot(row.scope).is_some_and(|scope| self.inventory.is(row, scope, vm))
        })
    }

    /// Whether a VM's record has just this metadata.
    pub fn has_this_instance(&self, vm: &Vm) -> bool {
        self.inventory.vm(vm.id).is_some_and(|row| self.inventory.has_this_instance(row, vm))
    }

    /// Who has an address.
    pub fn claim(&self, address: &Address) -> Option<VmId> {
        self.inventory.caller(&address.network.folded(), address.ip)
    }

    /// VMs and addresses, as readers may share them.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// An operation that is not closed.
    pub fn operation(&self, id: OperationId) -> Option<&Revisioned<Operation>> {
        self.operations.get(&id)
    }

    /// All operations that are not closed.
    pub fn operations(&self) -> impl Iterator<Item = (&OperationId, &Revisioned<Operation>)> {
        self.operations.iter()
    }

    /// The operations that start a whole host at once.
    pub fn host_operations(&self) -> &HostOperations {
        &self.host_operations
    }

    /// What keeps a host operation from starting at `now`.
    pub fn host_blockers(&self, id: OperationId, now: Timestamp) -> Vec<Blocker> {
        self.host_operations.blockers(id, |scope| self.scope(scope).map(|held| &*held.value), now)
    }

    /// How many operations of users are stored for a scope, those that have ended included.
    pub fn user_operations(&self, scope: &ScopeId) -> usize {
        self.user_operations.stored(scope)
    }

    /// The events that wait while the clock is not trusted, if it is not.
    pub fn clock_hold(&self) -> Option<&ClockHold> {
        self.clock_hold.as_deref()
    }

    /// Begins a clock hold, or ends it.
    pub fn hold_clock(&mut self, hold: Option<ClockHold>) {
        self.clock_hold = hold.map(Arc::new);
        self.host_operations.hold_clock(self.clock_hold.clone());
    }

    /// When something is due by itself in a scope of this state.
    pub fn due_in(&self, id: &ScopeId, held: &Revisioned<Scope>, now: Timestamp) -> Option<Timestamp> {
        held.value.next_due(self.host_operations.parts_in(id), self.clock_hold(), now)
    }

    /// A token.
    pub fn token(&self, name: &Name) -> Option<&Revisioned<Token>> {
        self.tokens.get(&name.folded())
    }

    /// All tokens.
    pub fn tokens(&self) -> impl Iterator<Item = &Revisioned<Token>> {
        self.tokens.values()
    }

    /// The scope an event lives in, or has ended in lately.
    pub fn scope_of_event(&self, event: EventId) -> Option<&ScopeId> {
        self.event_scopes.get(&event)
    }

    /// The scopes that have a VM on a host, in order.
    pub fn scopes_on(&self, host: &str) -> impl Iterator<Item = (&ScopeId, &Revisioned<Scope>)> {
        let scopes = self.hosts.get(host).into_iter().flatten();
        scopes.filter_map(|id| Some((id, self.scope(id)?)))
    }

    /// When a guest of the scope is stored to have last asked.
    pub fn last_polled(&self, id: &ScopeId) -> Option<Timestamp> {
        self.last_polls.get(id).copied()
    }

    /// When each scope is stored to have been heard of.
    pub fn all_last_polled(&self) -> impl Iterator<Item = (&ScopeId, Timestamp)> {
        self.last_polls.iter().map(|(id, at)| (id, *at))
    }

    /// When the service was last known to run.
    pub fn alive(&self) -> Option<Timestamp> {
        self.alive.as_ref().map(|alive| alive.at)
    }

    /// The boot in which this process runs; its time follows the clock while that is trusted.
    pub fn boot(&self) -> Option<&Boot> {
        self.boot.as_ref()
    }

    /// Says in which boot this process runs.
    pub fn set_boot(&mut self, boot: Option<Boot>) {
        self.boot = boot;
    }

    /// The machine was booted at this time, by a clock that is trusted.
    pub fn set_booted_at(&mut self, at: Timestamp) {
        if let Some(boot) = &mut self.boot {
            boot.at = at;
        }
    }

    /// By how much the clock was set since the service last ran, if that was in this boot.
    pub fn clock_set_by(&self) -> Option<SignedDuration> {
        let (last, now) = (self.alive.as_ref()?.boot.as_ref()?, self.boot.as_ref()?);
        (last.id == now.id).then(|| now.at.duration_since(last.at))
    }

    /// Whether there is any VM.
    pub fn is_empty(&self) -> bool {
        self.scopes_held == 0
    }

    /// The scope that stands in for a fleet, if it is there.
    pub fn first_run(&self) -> Option<&Revisioned<Scope>> {
        // With a first-run scope there is no other, so there is nothing to search.
        let only = (self.scopes_held == 1).then(|| self.scopes().next()).flatten();
        only.map(|(_, held)| held).filter(|held| held.value.first_run)
    }

    /// Takes over one record as the store has it, unless what is held is as new. Records of other kinds are
    /// passed over.
    pub fn install(
        &mut self,
        key: &str,
        revision: Revision,
        value: Option<&Bytes>,
    ) -> Result<Option<PublishedChange>, DecodeError> {
        if self.tombstones.get(key).is_some_and(|gone| *gone >= revision) {
            return Ok(None);
        }
        let change = self.install_newer(key, revision, value)?;
        self.record_removal(key, revision, change.as_ref());
        Ok(change)
    }

    /// The same for a record of this process's own making, when it is durable.
    pub fn install_own(
        &mut self,
        key: &str,
        revision: Revision,
        made: &OwnRecord,
    ) -> Option<PublishedChange> {
        if self.tombstones.get(key).is_some_and(|gone| *gone >= revision) {
            return None;
        }
        let change = match made {
            OwnRecord::Scope(scope) => {
                let id = scope.id();
                let known = self.scope(&id).is_some_and(|known| known.revision >= revision);
                (!known).then(|| self.put_scope(id, revision, Some(Arc::clone(scope))))
            }
            OwnRecord::Operation(operation) => {
                let held = Revisioned { revision, value: Arc::clone(operation) };
                self.put_operation(operation.id, revision, Some(held))
            }
        };
        self.record_removal(key, revision, change.as_ref());
        change
    }

    fn record_removal(&mut self, key: &str, revision: Revision, change: Option<&PublishedChange>) {
        match change.map(PublishedChange::is_removal) {
            Some(true) => {
                self.tombstones.insert(key.into(), revision);
            }
            Some(false) => {
                self.tombstones.remove(key);
            }
            None => {}
        }
    }

    /// The watch has shown all up to this revision: nothing older will come any more.
    pub fn prune_tombstones(&mut self, revision: Revision) {
        self.tombstones.retain(|_, gone| *gone > revision);
    }

    /// The revision that is held of a record.
    pub fn revision_of(&self, key: &str) -> Option<Revision> {
        match RecordKey::parse(key).ok()? {
            RecordKey::Scope(id) => self.scope(&id).map(|held| held.revision),
            RecordKey::Vm(id) => self.inventory.vm(id).map(|row| row.revision),
            RecordKey::Claim { network, ip } => self.inventory.claim_revision(network, ip),
            RecordKey::Operation(id) => self.operations.get(&id).map(|held| held.revision),
            RecordKey::Token(name) => self.tokens.get(&name.folded()).map(|held| held.revision),
            RecordKey::Command { .. }
            | RecordKey::Fact(_)
            | RecordKey::Refused(_)
            | RecordKey::Past(_)
            | RecordKey::Ended { .. }
            | RecordKey::Seen { .. }
            | RecordKey::Heard(_)
            | RecordKey::Alive
            | RecordKey::Swept => None,
        }
    }

    fn install_newer(
        &mut self,
        key: &str,
        revision: Revision,
        value: Option<&Bytes>,
    ) -> Result<Option<PublishedChange>, DecodeError> {
        let known = match RecordKey::parse(key) {
            Err(KeyError::UnknownKind) => return Ok(None),
            known => known.map_err(|error| bad_key(key, error))?,
        };
        Ok(match known {
            RecordKey::Scope(id) => {
                if self.scope(&id).is_some_and(|known| known.revision >= revision) {
                    return Ok(None);
                }
                let scope = value.map(|value| decode_scope(key, value).map(Arc::new)).transpose()?;
                Some(self.put_scope(id, revision, scope))
            }
            RecordKey::Vm(id) => {
                if self.inventory.vm(id).is_some_and(|known| known.revision >= revision) {
                    return Ok(None);
                }
                let vm = value.map(|value| records::decode::<Vm>(key, value)).transpose()?;
                self.install_vm(id, vm.as_ref(), revision);
                Some(PublishedChange::Vm(id, vm.map(|_| revision)))
            }
            RecordKey::Claim { network, ip } => {
                if self.inventory.claim_revision(network, ip).is_some_and(|known| known >= revision) {
                    return Ok(None);
                }
                let vm = value.map(|value| records::decode::<VmId>(key, value)).transpose()?;
                match vm {
                    Some(vm) => self.inventory.put_claim(network, ip, vm, revision),
                    None => self.inventory.remove_claim(network, ip),
                }
                Some(PublishedChange::Claim((network.to_owned(), ip), vm))
            }
            RecordKey::Operation(id) => {
                self.put_operation(id, revision, decode::<Operation>(key, revision, value)?)
            }
            RecordKey::Token(name) => {
                let held = decode::<Token>(key, revision, value)?;
                put(&mut self.tokens, name.folded(), revision, held.clone())
                    .then_some(PublishedChange::Token(name, held))
            }
            RecordKey::Heard(id) => {
                match value {
                    Some(value) => self.last_polls.insert(id, records::decode::<LastAt>(key, value)?.at),
                    None => self.last_polls.remove(&id),
                };
                None
            }
            RecordKey::Alive => {
                self.alive = value.map(|value| records::decode::<Alive>(key, value)).transpose()?;
                None
            }
            RecordKey::Command { .. }
            | RecordKey::Fact(_)
            | RecordKey::Refused(_)
            | RecordKey::Past(_)
            | RecordKey::Ended { .. }
            | RecordKey::Seen { .. }
            | RecordKey::Swept => None,
        })
    }

    fn put_operation(
        &mut self,
        id: OperationId,
        revision: Revision,
        held: Option<Revisioned<Operation>>,
    ) -> Option<PublishedChange> {
        self.user_operations.follow(id, held.as_ref().map(|held| &*held.value));
        // A closed operation is history: it stays in the store and leaves memory.
        let held = held.filter(|held| held.value.state != OperationState::Closed);
        if !put(&mut self.operations, id, revision, held.clone()) {
            return None;
        }
        let scopes = &self.scopes;
        let scope = |id: &ScopeId| scopes.get(id)?.held.as_ref().map(|held| &*held.value);
        self.host_operations.put(id, held.as_ref().map(|held| &*held.value), scope);
        Some(PublishedChange::Operation(id, held))
    }

    fn put_scope(&mut self, id: ScopeId, revision: Revision, scope: Option<Arc<Scope>>) -> PublishedChange {
        let before = self.scope(&id).cloned();
        let held = scope.map(|value| Revisioned { revision, value });
        let slot = self.slot(&id);
        if let Some(place) = self.scopes.get_mut(&id) {
            place.held = held.clone();
        }
        self.scopes_held = self.scopes_held + usize::from(held.is_some()) - usize::from(before.is_some());
        let before = before.map(|held| held.value);
        for event in before.iter().flat_map(|scope| scope.event_ids()) {
            self.event_scopes.remove(&event);
        }
        for event in held.iter().flat_map(|held| held.value.event_ids()) {
            self.event_scopes.insert(event, id.clone());
        }
        self.update_indexes(&id, before.as_deref(), held.as_ref().map(|held| &*held.value));
        self.host_operations.scope_changed(&id, held.as_ref().map(|held| &*held.value));
        self.release_slot(&id);
        PublishedChange::Scope(id, slot, held)
    }

    fn install_vm(&mut self, id: VmId, vm: Option<&Vm>, revision: Revision) {
        let before = self.inventory.vm(id).and_then(|row| self.scope_in_slot(row.scope)).cloned();
        match vm {
            Some(vm) => {
                let (slot, position) = self.count_member(vm);
                self.inventory.put_vm(vm, revision, slot, position);
            }
            None => self.inventory.remove_vm(id),
        }
        if let Some(scope) = before {
            if let Some(place) = self.scopes.get_mut(&scope) {
                place.vms = place.vms.saturating_sub(1);
            }
            self.release_slot(&scope);
        }
    }

    /// Counts a VM towards its scope, and says where that is and where the VM stands there.
    fn count_member(&mut self, vm: &Vm) -> (ScopeSlot, Option<usize>) {
        let known = self.scopes.get_mut(&vm.scope);
        let Some(place) = known else {
            let slot = self.slot(&vm.scope);
            self.scopes.entry(vm.scope.clone()).and_modify(|place| place.vms += 1);
            return (slot, None);
        };
        place.vms += 1;
        let members = place.held.as_ref().map(|held| held.value.members.as_slice()).unwrap_or_default();
        (place.slot, members.iter().position(|member| member.vm.0.as_u128() == vm.id.0.as_u128()))
    }

    /// The number of a scope, a new one if it has none.
    fn slot(&mut self, id: &ScopeId) -> ScopeSlot {
        if let Some(place) = self.scopes.get(id) {
            return place.slot;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            // Memory ends long before the numbers do.
            ScopeSlot(u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX))
        });
        if let Some(place) = self.slots.get_mut(slot.0 as usize) {
            *place = Some(id.clone());
        }
        self.scopes.insert(id.clone(), ScopeEntry { slot, vms: 0, held: None });
        slot
    }

    fn scope_in_slot(&self, slot: ScopeSlot) -> Option<&ScopeId> {
        self.slots.get(slot.0 as usize)?.as_ref()
    }

    /// Gives a scope's number back if neither the scope nor a VM of it is there.
    fn release_slot(&mut self, id: &ScopeId) {
        if let Some(slot) =
            self.scopes.get(id).filter(|one| one.held.is_none() && one.vms == 0).map(|one| one.slot)
        {
            self.scopes.remove(id);
            self.free.push(slot);
            if let Some(place) = self.slots.get_mut(slot.0 as usize) {
                *place = None;
            }
        }
    }

    /// Keeps the index of hosts, and where VMs stand, in step with a scope.
    fn update_indexes(&mut self, id: &ScopeId, before: Option<&Scope>, after: Option<&Scope>) {
        if before.map(|scope| &scope.members) == after.map(|scope| &scope.members) {
            return;
        }
        for (position, member) in after.iter().flat_map(|scope| scope.members.iter().enumerate()) {
            self.inventory.set_position(member.vm, position);
        }
        let (before, after) = (hosts(before), hosts(after));
        for gone in before.difference(&after) {
            if let Some(scopes) = self.hosts.get_mut(*gone) {
                scopes.remove(id);
                if scopes.is_empty() {
                    self.hosts.remove(*gone);
                }
            }
        }
        for come in after.difference(&before) {
            self.hosts.entry((*come).to_owned()).or_default().insert(id.clone());
        }
    }

    /// Everything there is, for those who start with nothing.
    pub fn full_publication(&self) -> Publication {
        let scopes = self.scopes.iter().filter_map(|(id, place)| {
            let held = place.held.clone()?;
            Some(PublishedChange::Scope(id.clone(), place.slot, Some(held)))
        });
        let operations =
            self.operations.iter().map(|(id, held)| PublishedChange::Operation(*id, Some(held.clone())));
        let tokens = self
            .tokens
            .values()
            .map(|held| PublishedChange::Token(held.value.name.clone(), Some(held.clone())));
        let changes = scopes.chain(operations).chain(tokens).collect();
        Publication { changes, inventory: self.inventory.clone() }
    }
}

/// The hosts that a scope's VMs are on.
fn hosts(scope: Option<&Scope>) -> BTreeSet<&str> {
    scope.iter().flat_map(|scope| &scope.members).filter_map(|member| member.host.as_deref()).collect()
}

/// An address in the form in which maps hold it.
pub fn caller_key(address: &Address) -> CallerKey {
    (address.network.folded(), address.ip)
}

fn put<K: std::hash::Hash + Eq, V>(
    map: &mut HashMap<K, Revisioned<V>>,
    key: K,
    revision: Revision,
    held: Option<Revisioned<V>>,
) -> bool {
    if map.get(&key).is_some_and(|known| known.revision >= revision) {
        return false;
    }
    match held {
        Some(held) => {
            map.insert(key, held);
        }
        None => {
            map.remove(&key);
        }
    }
    true
}

fn decode<T: serde::de::DeserializeOwned>(
    key: &str,
    revision: Revision,
    value: Option<&Bytes>,
) -> Result<Option<Revisioned<T>>, DecodeError> {
    let held = |value| Revisioned { revision, value: Arc::new(value) };
    value.map(|value| records::decode(key, value).map(held)).transpose()
}

/// A scope, with no more room for its VMs than they take: it will stay for long.
fn decode_scope(key: &str, value: &[u8]) -> Result<Scope, DecodeError> {
    let mut scope: Scope = records::decode(key, value)?;
    // Copied and not cut to size: the room that the parser set aside is then of use for the next.
    scope.members = scope.members.as_slice().to_vec();
    Ok(scope)
}

fn bad_key(key: &str, why: impl std::fmt::Display) -> DecodeError {
    DecodeError::Content { key: key.to_owned(), why: why.to_string() }
}
