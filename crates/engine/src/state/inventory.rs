//! The inventory: compact copy-on-write tables of VMs, their addresses and scopes. It is the part of the state that
//! grows with the fleet.
//!
//! The engine changes it and publishes a clone with every change; polls look up their caller in that clone. The tables
//! are shared, so there is one copy in memory for any number of readers.
//!
//! A VM usually has one IPv4 address and no metadata; then its row is all there is. Other data is stored beside the
//! rows. Instance metadata stays in the store and is read on request; the inventory keeps a fingerprint to detect
//! changes.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Arc;

use notbefore_core::{Name, ScopeId, VmId};
use notbefore_store::{Key, Revision};

use super::table::{Row, Table};
use crate::records::{self, Address, Vm};

/// A scope's index, valid while the scope or a VM of it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeSlot(pub u32);

/// A network's index, from 1. Networks are few, and are kept while the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct NetworkSlot(NonZeroU32);

#[derive(Clone, Copy, Debug)]
pub struct VmRow {
    pub id: VmId,
    /// The revision of its record.
    pub revision: Revision,
    pub scope: ScopeSlot,
    /// Hint: its probable index among the scope's members.
    position: u16,
    /// Whether there is data beside the row; then its addresses are there, too.
    has_extra: bool,
    /// Its only address.
    network: Option<NetworkSlot>,
    ip: Ipv4Addr,
}

/// Data that most VMs do not have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ExtraFields {
    addresses: Box<[Address]>,
    instance: Fingerprint,
}

/// A hash of a VM's instance metadata; none if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint(Option<u64>);

impl Fingerprint {
    fn of(instance: &serde_json::Value) -> Self {
        // Object keys are sorted, so equal objects have equal text.
        let of_text = || {
            let mut hasher = DefaultHasher::new();
            instance.to_string().hash(&mut hasher);
            hasher.finish()
        };
        Self((!instance.is_null()).then(of_text))
    }
}

/// An address and its owner.
#[derive(Clone, Copy, Debug)]
struct ClaimRow<A> {
    network: NetworkSlot,
    /// The address as a number.
    ip: A,
    vm: VmId,
    revision: Revision,
    /// Hint: the VM's probable position, so that a poll need not look it up.
    member_slot: MemberSlot,
}

/// A hint: a VM's probable scope and index among the members. Readers verify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberSlot {
    pub scope: ScopeSlot,
    pub position: u16,
}

impl MemberSlot {
    /// A position that no VM can have.
    const NONE: MemberSlot = MemberSlot { scope: ScopeSlot(u32::MAX), position: u16::MAX };

    fn of(row: &VmRow) -> Self {
        Self { scope: row.scope, position: row.position }
    }
}

impl<A> ClaimRow<A> {
    fn owner(&self) -> (VmId, MemberSlot, Revision) {
        (self.vm, self.member_slot, self.revision)
    }

    fn set_member_slot(&mut self, vm: VmId, member_slot: MemberSlot) {
        if self.vm == vm {
            self.member_slot = member_slot;
        }
    }
}

/// Rows for the initial tables.
#[derive(Debug, Default)]
pub(super) struct Rows {
    vms: Vec<VmRow>,
    v4: Vec<ClaimRow<u32>>,
    v6: Vec<ClaimRow<IpV6>>,
}

/// An IPv6 address in two halves, so that rows need no 16-byte alignment.
type IpV6 = (u64, u64);

fn halves(ip: Ipv6Addr) -> IpV6 {
    let number = ip.to_bits();
    ((number >> 64) as u64, number as u64)
}

fn joined((high, low): IpV6) -> Ipv6Addr {
    Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low))
}

impl Row for VmRow {
    /// The id as a number, which compares faster than its bytes.
    type Key = u128;

    fn key(&self) -> u128 {
        self.id.0.as_u128()
    }
}

impl<A: Copy + Ord + Hash> Row for ClaimRow<A> {
    type Key = (A, NetworkSlot);

    fn key(&self) -> Self::Key {
        (self.ip, self.network)
    }
}

/// Networks by index. A network may have several, one for each spelling; claims use the case-folded one.
#[derive(Clone, Debug, Default)]
struct Networks {
    names: Vec<Name>,
    /// Sorted: each poll looks a network up, most services have one, and a comparison is cheaper than a hash.
    slots: BTreeMap<String, NetworkSlot>,
}

impl Networks {
    fn name(&self, slot: NetworkSlot) -> Option<&Name> {
        self.names.get(slot.0.get() as usize - 1)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Inventory {
    vms: Table<VmRow>,
    v4: Table<ClaimRow<u32>>,
    v6: Table<ClaimRow<IpV6>>,
    networks: Arc<Networks>,
    extra: imbl::HashMap<VmId, Arc<ExtraFields>>,
}

impl VmRow {
    /// The VM's index among its scope's members.
    pub fn position(&self, members: &[notbefore_core::Member]) -> Option<usize> {
        let probably = usize::from(self.position);
        match members.get(probably).is_some_and(|member| member.vm == self.id) {
            true => Some(probably),
            false => members.iter().position(|member| member.vm == self.id),
        }
    }
}

impl Inventory {
    pub fn vm(&self, id: VmId) -> Option<&VmRow> {
        self.vms.get(&id.0.as_u128())
    }

    pub fn vms(&self) -> usize {
        self.vms.len()
    }

    /// The addresses from which a VM polls.
    pub fn addresses(&self, row: &VmRow) -> Vec<Address> {
        match self.extra.get(&row.id).filter(|_| row.has_extra) {
            Some(extra) => extra.addresses.to_vec(),
            None => {
                let name = row.network.and_then(|network| self.networks.name(network));
                let address = name.map(|name| Address { network: name.clone(), ip: row.ip.into() });
                address.into_iter().collect()
            }
        }
    }

    /// Whether a VM has instance metadata.
    pub fn has_instance(&self, row: &VmRow) -> bool {
        self.instance(row).0.is_some()
    }

    fn instance(&self, row: &VmRow) -> Fingerprint {
        let extra = self.extra.get(&row.id).filter(|_| row.has_extra);
        extra.map_or(Fingerprint(None), |extra| extra.instance)
    }

    /// The VM with an address in a network; the network's name must be case-folded.
    pub fn caller(&self, network: &str, ip: IpAddr) -> Option<VmId> {
        self.caller_with_slot(network, ip).map(|(vm, _)| vm)
    }

    /// Like [`Self::caller`], with the VM's probable position.
    pub fn caller_with_slot(&self, network: &str, ip: IpAddr) -> Option<(VmId, MemberSlot)> {
        self.claimed(network, ip).map(|(vm, member_slot, _)| (vm, member_slot))
    }

    /// The keys of all VMs and claims, unordered.
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        let claim = |network: NetworkSlot, ip: IpAddr| {
            let network = self.networks.name(network)?;
            Some(records::claim(&Address { network: network.clone(), ip }))
        };
        let vms = self.vms.iter().map(|row| records::vm(row.id));
        let v4 = self.v4.iter().filter_map(move |row| claim(row.network, Ipv4Addr::from_bits(row.ip).into()));
        let v6 = self.v6.iter().filter_map(move |row| claim(row.network, joined(row.ip).into()));
        vms.chain(v4).chain(v6)
    }

    /// Whether a row is equal to this record.
    pub(super) fn is(&self, row: &VmRow, scope: &ScopeId, vm: &Vm) -> bool {
        *scope == vm.scope && self.has_this_instance(row, vm) && self.addresses(row) == vm.addresses
    }

    /// Whether a row has this record's metadata.
    pub(super) fn has_this_instance(&self, row: &VmRow, vm: &Vm) -> bool {
        self.instance(row) == Fingerprint::of(&vm.instance)
    }

    /// The revision of an address's claim.
    pub(super) fn claim_revision(&self, network: &str, ip: IpAddr) -> Option<Revision> {
        self.claimed(network, ip).map(|(_, _, revision)| revision)
    }

    fn claimed(&self, network: &str, ip: IpAddr) -> Option<(VmId, MemberSlot, Revision)> {
        let network = *self.networks.slots.get(network)?;
        match ip {
            IpAddr::V4(ip) => self.v4.get(&(ip.to_bits(), network)).map(ClaimRow::owner),
            IpAddr::V6(ip) => self.v6.get(&(halves(ip), network)).map(ClaimRow::owner),
        }
    }

    pub(super) fn put_claim(&mut self, network: &str, ip: IpAddr, vm: VmId, revision: Revision) {
        let Some(network) = self.folded_network(network) else { return };
        let member_slot = self.vm(vm).map_or(MemberSlot::NONE, MemberSlot::of);
        match ip {
            IpAddr::V4(ip) => {
                self.v4.insert(ClaimRow { network, ip: ip.to_bits(), vm, revision, member_slot })
            }
            IpAddr::V6(ip) => self.v6.insert(ClaimRow { network, ip: halves(ip), vm, revision, member_slot }),
        }
    }

    pub(super) fn remove_claim(&mut self, network: &str, ip: IpAddr) {
        let Some(network) = self.networks.slots.get(network).copied() else { return };
        match ip {
            IpAddr::V4(ip) => self.v4.remove(&(ip.to_bits(), network)),
            IpAddr::V6(ip) => self.v6.remove(&(halves(ip), network)),
        }
    }

    pub(super) fn put_vm(&mut self, vm: &Vm, revision: Revision, scope: ScopeSlot, position: Option<usize>) {
        let row = self.row_of(vm, revision, scope, position);
        self.vms.insert(row);
        self.update_claims(&row);
    }

    /// Adds a VM to the initial rows.
    pub(super) fn row(
        &mut self,
        vm: &Vm,
        revision: Revision,
        scope: ScopeSlot,
        position: Option<usize>,
        rows: &mut Rows,
    ) {
        rows.vms.push(self.row_of(vm, revision, scope, position));
    }

    /// Adds a claim to the initial rows.
    pub(super) fn claim_row(
        &mut self,
        network: &str,
        ip: IpAddr,
        vm: VmId,
        revision: Revision,
        rows: &mut Rows,
    ) {
        let Some(network) = self.folded_network(network) else { return };
        let member_slot = MemberSlot::NONE;
        match ip {
            IpAddr::V4(ip) => rows.v4.push(ClaimRow { network, ip: ip.to_bits(), vm, revision, member_slot }),
            IpAddr::V6(ip) => rows.v6.push(ClaimRow { network, ip: halves(ip), vm, revision, member_slot }),
        }
    }

    /// Builds the tables from the initial rows; they must be empty.
    pub(super) fn fill(&mut self, rows: Rows) {
        let Rows { vms, mut v4, mut v6 } = rows;
        self.vms = Table::of(vms);
        v4.iter_mut()
            .for_each(|claim| claim.member_slot = self.vm(claim.vm).map_or(MemberSlot::NONE, MemberSlot::of));
        v6.iter_mut()
            .for_each(|claim| claim.member_slot = self.vm(claim.vm).map_or(MemberSlot::NONE, MemberSlot::of));
        self.v4 = Table::of(v4);
        self.v6 = Table::of(v6);
    }

    fn row_of(&mut self, vm: &Vm, revision: Revision, scope: ScopeSlot, position: Option<usize>) -> VmRow {
        let instance = Fingerprint::of(&vm.instance);
        let mut row = VmRow {
            id: vm.id,
            revision,
            scope,
            position: position.and_then(|at| u16::try_from(at).ok()).unwrap_or(u16::MAX),
            has_extra: false,
            network: None,
            ip: Ipv4Addr::UNSPECIFIED,
        };
        match (vm.addresses.as_slice(), instance) {
            ([], Fingerprint(None)) => {}
            ([Address { network, ip: IpAddr::V4(ip) }], Fingerprint(None)) => {
                (row.network, row.ip) = (Some(self.network(network)), *ip);
            }
            (addresses, instance) => {
                row.has_extra = true;
                self.extra.insert(vm.id, Arc::new(ExtraFields { addresses: addresses.into(), instance }));
            }
        }
        if !row.has_extra && !self.extra.is_empty() {
            self.extra.remove(&vm.id);
        }
        row
    }

    pub(super) fn remove_vm(&mut self, id: VmId) {
        self.vms.remove(&id.0.as_u128());
        self.extra.remove(&id);
    }

    /// Sets a VM's index among its scope's members.
    pub(super) fn set_position(&mut self, vm: VmId, position: usize) {
        if let Ok(position) = u16::try_from(position)
            && self.vms.get(&vm.0.as_u128()).is_some_and(|row| row.position != position)
        {
            self.vms.update(&vm.0.as_u128(), |row| row.position = position);
            if let Some(row) = self.vm(vm).copied() {
                self.update_claims(&row);
            }
        }
    }

    /// Updates the hints in a VM's claims.
    fn update_claims(&mut self, row: &VmRow) {
        for Address { network, ip } in self.addresses(row) {
            let Some(network) = self.networks.slots.get(&network.folded()).copied() else { continue };
            let (vm, member_slot) = (row.id, MemberSlot::of(row));
            match ip {
                IpAddr::V4(ip) => {
                    self.v4.update(&(ip.to_bits(), network), |claim| claim.set_member_slot(vm, member_slot))
                }
                IpAddr::V6(ip) => {
                    self.v6.update(&(halves(ip), network), |claim| claim.set_member_slot(vm, member_slot))
                }
            }
        }
    }

    fn folded_network(&mut self, folded: &str) -> Option<NetworkSlot> {
        let known = self.networks.slots.get(folded).copied();
        // An invalid name is not a network, and no guest polls from there.
        known.or_else(|| folded.parse::<Name>().ok().map(|name| self.network(&name)))
    }

    fn network(&mut self, name: &Name) -> NetworkSlot {
        if let Some(slot) = self.networks.slots.get(name.as_str()) {
            return *slot;
        }
        let networks = Arc::make_mut(&mut self.networks);
        networks.names.push(name.clone());
        // Each network needs a VM address; memory runs out long before indexes do.
        let count = u32::try_from(networks.names.len()).ok().and_then(NonZeroU32::new);
        let slot = NetworkSlot(count.unwrap_or(NonZeroU32::MAX));
        networks.slots.insert(name.as_str().to_owned(), slot);
        slot
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn vm(n: u128, addresses: &[&str], instance: serde_json::Value) -> Vm {
        let address = |text: &&str| {
            let (network, ip) = text.split_once('/').unwrap();
            Address { network: network.parse().unwrap(), ip: ip.parse().unwrap() }
        };
        let scope = "web".parse::<notbefore_core::ScopePath>().unwrap().id();
        Vm {
            id: VmId(Uuid::from_u128(n)),
            scope,
            addresses: addresses.iter().map(address).collect(),
            instance,
        }
    }

    #[test]
    fn row_sizes() {
        assert_eq!(size_of::<VmRow>(), 40);
        assert_eq!(size_of::<ClaimRow<u32>>(), 40);
    }

    #[test]
    fn vm_row_round_trips() {
        let null = serde_json::Value::Null;
        let mut inventory = Inventory::default();
        for (n, vm) in [
            vm(1, &[], null.clone()),
            vm(2, &["Blue/10.0.0.1"], null.clone()),
            vm(3, &["blue/10.0.0.2", "blue/fd00::2"], null.clone()),
            vm(4, &["green/fd00::3"], null.clone()),
            vm(5, &["green/10.0.0.1"], json!({"tags": {"a": "b"}})),
        ]
        .into_iter()
        .enumerate()
        {
            inventory.put_vm(&vm, Revision(7), ScopeSlot(0), Some(n));
            let row = *inventory.vm(vm.id).unwrap();
            assert_eq!(inventory.addresses(&row), vm.addresses);
            assert!(inventory.is(&row, &vm.scope, &vm));
            let other = Vm { instance: json!({"tags": {"a": "c"}}), ..vm.clone() };
            assert!(!inventory.is(&row, &vm.scope, &other), "its metadata differs");
            let moved =
                Vm { addresses: super::tests::vm(9, &["red/10.9.9.9"], null.clone()).addresses, ..vm };
            assert!(!inventory.is(&row, &moved.scope, &moved), "its addresses differ");
        }
        let plain = vm(5, &["green/10.0.0.1"], null);
        inventory.put_vm(&plain, Revision(8), ScopeSlot(0), None);
        let row = *inventory.vm(plain.id).unwrap();
        assert!(inventory.is(&row, &plain.scope, &plain), "what it had beside its row is gone");
        assert_eq!(inventory.extra.len(), 2);
    }

    #[test]
    fn caller_lookup_by_network_and_address() {
        let mut inventory = Inventory::default();
        let [a, b, c] = [1, 2, 3].map(|n| VmId(Uuid::from_u128(n)));
        let (v4, v6) = ("10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap());
        inventory.put_claim("blue", v4, a, Revision(1));
        inventory.put_claim("green", v4, b, Revision(1));
        inventory.put_claim("blue", v6, c, Revision(1));
        let before = inventory.clone();
        inventory.remove_claim("blue", v4);
        inventory.remove_claim("blue", v6);
        for (network, ip, was, is) in [
            ("blue", v4, Some(a), None),
            ("green", v4, Some(b), Some(b)),
            ("blue", v6, Some(c), None),
            ("green", v6, None, None),
            ("red", v4, None, None),
        ] {
            assert_eq!(before.caller(network, ip), was, "{network} {ip}");
            assert_eq!(inventory.caller(network, ip), is, "{network} {ip}");
        }
    }
}
