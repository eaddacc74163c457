//! The committed records in memory, with indexes. It holds only durable data, so everything published from it is
//! committed.
//!
//! VMs and their addresses are in the [`inventory`], which readers share.

pub mod host_operations;
mod hosts;
pub mod inventory;
pub mod load;
pub mod table;
mod user_operations;

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use notbefore_core::{
    Blocker, ClockHold, EventId, FreeHost, FreeHosts, Host, Name, Operation, OperationId, OperationState,
    Scope, ScopeId, Token, VmId,
};
use notbefore_store::{Key, Revision};

use self::host_operations::HostOperations;
use self::hosts::HostIndex;
pub(crate) use self::hosts::{hosts_of, target_hosts};
use self::inventory::{Inventory, ScopeSlot};
use self::user_operations::UserOperations;
use crate::keys::{KeyError, RecordKey};
use crate::records::{self, Address, Alive, Boot, DecodeError, LastAt, Vm};

/// A record and the revision that wrote it.
#[derive(Clone, Debug)]
pub struct Revisioned<T> {
    pub revision: Revision,
    /// Shared with readers.
    pub value: Arc<T>,
}

/// A record that this process wrote, as a value: it need not be decoded.
#[derive(Clone, Debug)]
pub enum OwnRecord {
    Scope(Arc<Scope>),
    Operation(Arc<Operation>),
}

/// An address as a map key: case-folded network and IP address.
pub type CallerKey = (String, IpAddr);

/// An update for readers outside the engine: polls and the operators' lists.
#[derive(Clone, Debug, Default)]
pub struct Publication {
    /// In order.
    pub changes: Vec<PublishedChange>,
    /// All VMs and addresses after these changes.
    pub inventory: Inventory,
}

impl Publication {
    /// Merges the next publication into this one.
    pub fn append(&mut self, next: Self) {
        self.changes.extend(next.changes);
        self.inventory = next.inventory;
    }
}

#[derive(Clone, Debug)]
pub enum PublishedChange {
    /// A scope's new value, or none if removed; VMs refer to it by its slot.
    Scope(ScopeId, ScopeSlot, Option<Revisioned<Scope>>),
    /// A VM's record was written or removed. Its data is in the inventory.
    Vm(VmId, Option<Revision>),
    /// The new owner of an address.
    Claim(CallerKey, Option<VmId>),
    /// An operation's new value, or none if closed.
    Operation(OperationId, Option<Revisioned<Operation>>),
    /// A token's new value, or none if revoked.
    Token(Name, Option<Revisioned<Token>>),
    /// A host's new record, or none if an operator removed it.
    Host(Arc<str>, Option<Revisioned<Host>>),
}

impl PublishedChange {
    pub(crate) fn is_removal(&self) -> bool {
        match self {
            Self::Scope(_, _, held) => held.is_none(),
            Self::Vm(_, revision) => revision.is_none(),
            Self::Claim(_, vm) => vm.is_none(),
            Self::Operation(_, held) => held.is_none(),
            Self::Token(_, held) => held.is_none(),
            Self::Host(_, held) => held.is_none(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownVm<'a> {
    /// The revision of its record.
    pub revision: Revision,
    pub scope: &'a ScopeId,
    /// The addresses from which it polls.
    pub addresses: Vec<Address>,
}

/// A scope that exists, or that VM records refer to.
#[derive(Debug)]
struct ScopeEntry {
    slot: ScopeSlot,
    /// Number of VM records that refer to it.
    vms: u32,
    held: Option<Revisioned<Scope>>,
}

/// All records that decisions depend on.
#[derive(Debug, Default)]
pub struct State {
    scopes: HashMap<ScopeId, ScopeEntry>,
    /// Scopes by slot; free slots are reused.
    slots: Vec<Option<ScopeId>>,
    free: Vec<ScopeSlot>,
    /// Number of existing scopes.
    scopes_held: usize,
    inventory: Inventory,
    operations: HashMap<OperationId, Revisioned<Operation>>,
    host_operations: HostOperations,
    user_operations: UserOperations,
    /// The events that wait while the clock is not trusted.
    clock_hold: Option<Arc<ClockHold>>,
    /// By case-folded name.
    tokens: HashMap<String, Revisioned<Token>>,
    last_polls: HashMap<ScopeId, Timestamp>,
    /// The scope of each live or recently ended event.
    event_scopes: HashMap<EventId, ScopeId>,
    /// The scopes with live events.
    with_events: HashSet<ScopeId>,
    hosts: HostIndex,
    alive: Option<Alive>,
    /// The current boot, if the system has boot ids.
    boot: Option<Boot>,
    /// Revisions of removals, until the watch has passed them: older versions of these records in the watch are
    /// ignored.
    tombstones: HashMap<Key, Revision>,
}

impl State {
    pub fn scope(&self, id: &ScopeId) -> Option<&Revisioned<Scope>> {
        self.scopes.get(id)?.held.as_ref()
    }

    /// The scope with this record key.
    pub(crate) fn scope_of_key(&self, key: &str) -> Option<&Revisioned<Scope>> {
        match RecordKey::parse(key) {
            Ok(RecordKey::Scope(id)) => self.scope(&id),
            Ok(_) | Err(_) => None,
        }
    }

    pub fn scopes(&self) -> impl Iterator<Item = (&ScopeId, &Revisioned<Scope>)> {
        self.scopes.iter().filter_map(|(id, place)| Some((id, place.held.as_ref()?)))
    }

    /// The scopes with live events. Few of a large fleet have any, so a node that takes the lead looks at these alone.
    pub fn scopes_with_events(&self) -> impl Iterator<Item = (&ScopeId, &Revisioned<Scope>)> {
        self.with_events.iter().filter_map(|id| Some((id, self.scope(id)?)))
    }

    pub fn vm(&self, id: VmId) -> Option<KnownVm<'_>> {
        let row = self.inventory.vm(id)?;
        let addresses = self.inventory.addresses(row);
        Some(KnownVm { revision: row.revision, scope: self.scope_in_slot(row.scope)?, addresses })
    }

    /// The scope of a VM, and the VM's index among its members.
    pub fn scope_of(&self, vm: VmId) -> Option<(&ScopeId, &Revisioned<Scope>, Option<usize>)> {
        let row = self.inventory.vm(vm)?;
        let id = self.scope_in_slot(row.scope)?;
        let held = self.scope(id)?;
        Some((id, held, row.position(&held.value.members)))
    }

    /// Whether a VM's record is equal to this one.
    pub fn is_known(&self, vm: &Vm) -> bool {
        let row = self.inventory.vm(vm.id);
        row.is_some_and(|row| {
            self.scope_in_slot(row.scope).is_some_and(|scope| self.inventory.is(row, scope, vm))
        })
    }

    /// Whether a VM's record has this metadata.
    pub fn has_this_instance(&self, vm: &Vm) -> bool {
        self.inventory.vm(vm.id).is_some_and(|row| self.inventory.has_this_instance(row, vm))
    }

    /// The owner of an address.
    pub fn claim(&self, address: &Address) -> Option<VmId> {
        self.inventory.caller(&address.network.folded(), address.ip)
    }

    /// VMs and addresses; cheap to clone.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Closed operations are not held.
    pub fn operation(&self, id: OperationId) -> Option<&Revisioned<Operation>> {
        self.operations.get(&id)
    }

    /// All operations that are not closed.
    pub fn operations(&self) -> impl Iterator<Item = (&OperationId, &Revisioned<Operation>)> {
        self.operations.iter()
    }

    pub fn host_operations(&self) -> &HostOperations {
        &self.host_operations
    }

    /// What blocks the start of a host operation at `now`.
    pub fn host_blockers(&self, id: OperationId, now: Timestamp) -> Vec<Blocker> {
        self.host_operations.blockers(id, |scope| self.scope(scope).map(|held| &*held.value), now)
    }

    /// Number of stored user operations of a scope, ended ones included.
    pub fn user_operations(&self, scope: &ScopeId) -> usize {
        self.user_operations.stored(scope)
    }

    /// The held events; none if the clock is trusted.
    pub fn clock_hold(&self) -> Option<&ClockHold> {
        self.clock_hold.as_deref()
    }

    /// Starts or ends a clock hold.
    pub fn hold_clock(&mut self, hold: Option<ClockHold>) {
        self.clock_hold = hold.map(Arc::new);
        self.host_operations.hold_clock(self.clock_hold.clone());
    }

    /// When the next automatic change of a scope is due.
    pub fn due_in(&self, id: &ScopeId, held: &Revisioned<Scope>, now: Timestamp) -> Option<Timestamp> {
        held.value.next_due(self.host_operations.parts_in(id), self.clock_hold(), now)
    }

    pub fn token(&self, name: &Name) -> Option<&Revisioned<Token>> {
        self.tokens.get(&name.folded())
    }

    pub fn tokens(&self) -> impl Iterator<Item = &Revisioned<Token>> {
        self.tokens.values()
    }

    /// The scope of a live or recently ended event.
    pub fn scope_of_event(&self, event: EventId) -> Option<&ScopeId> {
        self.event_scopes.get(&event)
    }

    /// The scopes with a VM on a host or on its way there, in order.
    pub fn scopes_on(&self, host: &str) -> impl Iterator<Item = (&ScopeId, &Revisioned<Scope>)> {
        self.hosts.scopes(host).filter_map(|id| Some((id, self.scope(id)?)))
    }

    /// The record of a host.
    pub fn host(&self, host: &str) -> Option<&Revisioned<Host>> {
        self.hosts.record(host)
    }

    /// The records of all hosts, unordered.
    pub fn hosts(&self) -> impl Iterator<Item = &Revisioned<Host>> {
        self.hosts.records()
    }

    /// Whether the host has a record, or a VM names it.
    pub fn is_known_host(&self, host: &str) -> bool {
        self.hosts.is_known(host)
    }

    /// Number of VMs on a host or on their way to it.
    pub fn vms_on(&self, host: &str) -> usize {
        self.hosts.vms(host)
    }

    /// The open operations on a host.
    pub fn operations_on(&self, host: &str) -> Vec<OperationId> {
        self.hosts.operations(host).collect()
    }

    /// The stored time of the scope's last poll.
    pub fn last_polled(&self, id: &ScopeId) -> Option<Timestamp> {
        self.last_polls.get(id).copied()
    }

    /// The stored times of all last polls.
    pub fn all_last_polled(&self) -> impl Iterator<Item = (&ScopeId, Timestamp)> {
        self.last_polls.iter().map(|(id, at)| (id, *at))
    }

    /// The last heartbeat.
    pub fn alive(&self) -> Option<Timestamp> {
        self.alive.as_ref().map(|alive| alive.at)
    }

    /// The current boot; its time follows the wall clock while that is trusted.
    pub fn boot(&self) -> Option<&Boot> {
        self.boot.as_ref()
    }

    pub fn set_boot(&mut self, boot: Option<Boot>) {
        self.boot = boot;
    }

    /// Sets the boot time by a trusted clock.
    pub fn set_booted_at(&mut self, at: Timestamp) {
        if let Some(boot) = &mut self.boot {
            boot.at = at;
        }
    }

    /// By how much the clock was set since the last heartbeat, if that was in this boot.
    pub fn clock_set_by(&self) -> Option<SignedDuration> {
        let (last, now) = (self.alive.as_ref()?.boot.as_ref()?, self.boot.as_ref()?);
        (last.id == now.id).then(|| now.at.duration_since(last.at))
    }

    /// Whether there are no VMs.
    pub fn is_empty(&self) -> bool {
        self.scopes_held == 0
    }

    pub fn first_run(&self) -> Option<&Revisioned<Scope>> {
        // A first-run scope is always the only scope.
        let only = (self.scopes_held == 1).then(|| self.scopes().next()).flatten();
        only.map(|(_, held)| held).filter(|held| held.value.first_run)
    }

    /// Installs a record from the store, unless the held one is as new. Ignores kinds that the engine does not hold.
    pub fn install(
        &mut self,
        key: &str,
        revision: Revision,
        value: Option<&Bytes>,
    ) -> Result<Option<PublishedChange>, DecodeError> {
        if self.has_as_new(key, revision) {
            return Ok(None);
        }
        let change = self.install_newer(key, revision, value)?;
        self.record_removal(key, revision, change.as_ref());
        Ok(change)
    }

    /// Like [`Self::install`], for a durable record that this process wrote.
    pub fn install_own(
        &mut self,
        key: &str,
        revision: Revision,
        made: &OwnRecord,
    ) -> Option<PublishedChange> {
        if self.has_as_new(key, revision) {
            return None;
        }
        let change = match made {
            OwnRecord::Scope(scope) => self.put_scope(scope.id(), revision, Some(Arc::clone(scope))),
            OwnRecord::Operation(operation) => {
                let held = Revisioned { revision, value: Arc::clone(operation) };
                self.put_operation(operation.id, Some(held))
            }
        };
        self.record_removal(key, revision, Some(&change));
        Some(change)
    }

    /// Whether the held record, or its removal, is at least as new.
    fn has_as_new(&self, key: &str, revision: Revision) -> bool {
        self.tombstones.get(key).copied().max(self.revision_of(key)).is_some_and(|known| known >= revision)
    }

    fn record_removal(&mut self, key: &str, revision: Revision, change: Option<&PublishedChange>) {
        match change.map(PublishedChange::is_removal) {
            Some(true) => drop(self.tombstones.insert(key.into(), revision)),
            Some(false) => drop(self.tombstones.remove(key)),
            None => {}
        }
    }

    /// The watch has passed this revision: older tombstones are no longer needed.
    pub fn prune_tombstones(&mut self, revision: Revision) {
        self.tombstones.retain(|_, gone| *gone > revision);
    }

    /// The keys of all held records except closed operations, unordered.
    pub fn held_keys(&self) -> Vec<Key> {
        let scopes = self.scopes().map(|(id, _)| records::scope(id));
        let operations = self.operations.keys().map(|id| records::operation(*id));
        let tokens = self.tokens.values().map(|held| records::token(&held.value.name));
        let polls = self.last_polls.keys().map(records::heard);
        let hosts = self.hosts.records().map(|held| records::host(&held.value.name));
        scopes
            .chain(operations)
            .chain(hosts)
            .chain(tokens)
            .chain(polls)
            .chain(self.inventory.keys())
            .collect()
    }

    /// Closed user operations whose records are stored.
    pub fn closed_operations(&self) -> impl Iterator<Item = OperationId> {
        self.user_operations.ids().filter(|id| !self.operations.contains_key(id))
    }

    /// The held revision of a record.
    pub fn revision_of(&self, key: &str) -> Option<Revision> {
        match RecordKey::parse(key).ok()? {
            RecordKey::Scope(id) => self.scope(&id).map(|held| held.revision),
            RecordKey::Vm(id) => self.inventory.vm(id).map(|row| row.revision),
            RecordKey::Claim { network, ip } => self.inventory.claim_revision(network, ip),
            RecordKey::Operation(id) => self.operations.get(&id).map(|held| held.revision),
            RecordKey::Token(name) => self.tokens.get(&name.folded()).map(|held| held.revision),
            RecordKey::Host(name) => self.hosts.record(name).map(|held| held.revision),
            RecordKey::Command { .. }
            | RecordKey::Fact(_)
            | RecordKey::Refused(_)
            | RecordKey::Past(_)
            | RecordKey::Ended { .. }
            | RecordKey::Seen { .. }
            | RecordKey::Heard(_)
            | RecordKey::Alive
            | RecordKey::Swept
            | RecordKey::Secret(_)
            | RecordKey::ClusterFormat
            | RecordKey::Leader
            | RecordKey::ClusterNode(_) => None,
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
                let scope = value.map(|value| decode_scope(key, value).map(Arc::new)).transpose()?;
                Some(self.put_scope(id, revision, scope))
            }
            RecordKey::Vm(id) => {
                let vm = value.map(|value| records::decode::<Vm>(key, value)).transpose()?;
                self.install_vm(id, vm.as_ref(), revision);
                Some(PublishedChange::Vm(id, vm.map(|_| revision)))
            }
            RecordKey::Claim { network, ip } => {
                let vm = value.map(|value| records::decode::<VmId>(key, value)).transpose()?;
                match vm {
                    Some(vm) => self.inventory.put_claim(network, ip, vm, revision),
                    None => self.inventory.remove_claim(network, ip),
                }
                Some(PublishedChange::Claim((network.to_owned(), ip), vm))
            }
            RecordKey::Operation(id) => {
                Some(self.put_operation(id, decode::<Operation>(key, revision, value)?))
            }
            RecordKey::Token(name) => {
                let held = decode::<Token>(key, revision, value)?;
                put(&mut self.tokens, name.folded(), held.clone());
                Some(PublishedChange::Token(name, held))
            }
            RecordKey::Host(name) => {
                let held = decode::<Host>(key, revision, value)?;
                self.hosts.put_record(name, held.clone());
                Some(PublishedChange::Host(name.into(), held))
            }
            RecordKey::Heard(id) => {
                let last = value.map(|value| records::decode::<LastAt>(key, value)).transpose()?;
                put(&mut self.last_polls, id, last.map(|last| last.at));
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
            | RecordKey::Swept
            | RecordKey::Secret(_)
            | RecordKey::ClusterFormat
            | RecordKey::Leader
            | RecordKey::ClusterNode(_) => None,
        })
    }

    fn put_operation(&mut self, id: OperationId, held: Option<Revisioned<Operation>>) -> PublishedChange {
        self.user_operations.follow(id, held.as_ref().map(|held| &*held.value));
        // A closed operation is history: it stays in the store and leaves memory.
        let held = held.filter(|held| held.value.state != OperationState::Closed);
        let before = self.operations.get(&id).map(|held| Arc::clone(&held.value));
        self.hosts.put_operation(id, before.as_deref(), held.as_ref().map(|held| &*held.value));
        put(&mut self.operations, id, held.clone());
        let scopes = &self.scopes;
        let scope = |id: &ScopeId| scopes.get(id)?.held.as_ref().map(|held| &*held.value);
        self.host_operations.put(id, held.as_ref().map(|held| &*held.value), scope);
        PublishedChange::Operation(id, held)
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
        match held.as_ref().is_some_and(|held| !held.value.events.is_empty()) {
            true => _ = self.with_events.insert(id.clone()),
            false => _ = self.with_events.remove(&id),
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

    /// Counts a VM towards its scope; returns the scope's slot and the VM's index there.
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

    /// The slot of a scope; allocates one if needed.
    fn slot(&mut self, id: &ScopeId) -> ScopeSlot {
        if let Some(place) = self.scopes.get(id) {
            return place.slot;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            // Memory runs out long before slots do.
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

    /// Frees a scope's slot if neither the scope nor a VM of it exists.
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

    /// Updates the host index and the positions of VMs after a scope changed.
    fn update_indexes(&mut self, id: &ScopeId, before: Option<&Scope>, after: Option<&Scope>) {
        let is_same = before.map(|scope| &scope.members) == after.map(|scope| &scope.members);
        if is_same && hosts::target_hosts(before).eq(hosts::target_hosts(after)) {
            return;
        }
        self.hosts.put_scope(id, before, after);
        if is_same {
            return;
        }
        for (position, member) in after.iter().flat_map(|scope| scope.members.iter().enumerate()) {
            self.inventory.set_position(member.vm, position);
        }
    }

    /// A publication of everything, for a reader that starts empty.
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
        let hosts = self
            .hosts
            .records()
            .map(|held| PublishedChange::Host(held.value.name.as_str().into(), Some(held.clone())));
        let changes = scopes.chain(operations).chain(tokens).chain(hosts).collect();
        Publication { changes, inventory: self.inventory.clone() }
    }
}

impl FreeHosts for State {
    fn free_hosts(&self) -> Vec<FreeHost<'_>> {
        self.hosts.free()
    }
}

/// An address as a map key.
pub fn caller_key(address: &Address) -> CallerKey {
    (address.network.folded(), address.ip)
}

fn put<K: std::hash::Hash + Eq, V>(map: &mut HashMap<K, V>, key: K, held: Option<V>) {
    match held {
        Some(held) => drop(map.insert(key, held)),
        None => drop(map.remove(&key)),
    }
}

fn decode<T: serde::de::DeserializeOwned>(
    key: &str,
    revision: Revision,
    value: Option<&Bytes>,
) -> Result<Option<Revisioned<T>>, DecodeError> {
    let held = |value| Revisioned { revision, value: Arc::new(value) };
    value.map(|value| records::decode(key, value).map(held)).transpose()
}

/// Decodes a scope without spare capacity for its VMs, since it is kept for long.
fn decode_scope(key: &str, value: &[u8]) -> Result<Scope, DecodeError> {
    let mut scope: Scope = records::decode(key, value)?;
    // Copied, not shrunk: the parser's allocation can then be reused for the next record.
    scope.members = scope.members.as_slice().to_vec();
    Ok(scope)
}

fn bad_key(key: &str, why: impl std::fmt::Display) -> DecodeError {
    DecodeError::Content { key: key.to_owned(), why: why.to_string() }
}
