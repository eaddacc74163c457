//! The transaction builder, with splitting of large transactions.
//!
//! Most changes fit into one transaction. Others do not, such as hundreds of events that end in the same second. Then
//! records that only accompany the change, such as history, go first in separate transactions; the one that
//! compares the scope comes last. After a crash in between, the scope is unchanged, the change is computed again, and
//! the same accompanying records are written once more.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use notbefore_core::exec::{HOST_BYTES_MAX, REASON_BYTES_MAX, reason_bytes_max};
use notbefore_core::{
    Actor, Applied, CommandState, DriverKind, Event, EventType, Fact, Operation, OperationId, Recorded,
    Refusal, Release, Scope, ScopeId, ScopeKind, VmId,
};
use notbefore_store::{Expect, Key, Revision, TXN_BYTES_MAX, TXN_OPERATIONS_MAX, Txn, VALUE_BYTES_MAX};

use crate::records::{self, Address, FactBatch, Vm};
use crate::state::{OwnRecord, Revisioned, State};

/// Size at which a list of facts is split, well below the limit of a value.
const FACTS_BYTES: usize = VALUE_BYTES_MAX / 4;

/// Limit on a VM's record: Azure's 64 KB of user data, encoded, and some tags.
const VM_BYTES_MAX: usize = 96 * 1024;
/// Limit on VM records in one transaction, besides their scope.
const VMS_BYTES_PER_TXN: usize = 512 * 1024;

/// Bytes that a live event may still add to its scope's record: an approval and the facts of its trail. A scope
/// reserves this for every live event, so that every announced event can be approved, started and ended.
const EVENT_GROWS_BY: usize = 640;
/// Bytes that an event that moves its VM may add: the chosen host.
const TARGET_HOST_GROWS_BY: usize = HOST_BYTES_MAX + 20;
/// Bytes that the exec driver may add: the newest fact of each kind, one with a reason and a VM name.
const DRIVER_FACTS_GROW_BY: usize = 704 + REASON_BYTES_MAX;
/// Limit on one command's state without its reason: numbers and a time.
const COMMAND_BYTES_MAX: usize = 92;

/// Bytes that each part may still add to an operation's record: another state, a refusal code or an outcome.
const TARGET_GROWS_BY: usize = 48;
/// Bytes that the whole operation may still add: who cancelled, completed and started it, and its host's command.
const OPERATION_GROWS_BY: usize = 1536;

/// Operations reserved in a transaction: two for the idempotency record, one for the leader's fence.
const RESERVED: usize = 3;
/// Bytes for the same: a command's record with its answer, and keys.
const RESERVED_BYTES: usize = 4 * 1024;

/// A transaction under construction, based on the current state.
pub struct Draft<'a> {
    state: &'a State,
    now: Timestamp,
    /// Process id that, with a counter, makes the keys of facts unique.
    node: &'a str,
    count: u64,
    /// The address of the caller; stored with facts.
    from: Option<IpAddr>,
    /// Stored with the hosts that it creates.
    by: Actor,
    expect: BTreeMap<Key, Option<Revision>>,
    /// Compared in separate transactions before the others, and locked until everything is durable.
    expect_first: BTreeMap<Key, Option<Revision>>,
    /// Locked, not compared.
    locks: BTreeSet<Key>,
    writes: Writes,
    accompanying: Writes,
    facts: Vec<(Option<ScopeId>, Vec<Recorded<Fact>>)>,
    own_records: Vec<(Key, OwnRecord)>,
    to_reconcile: Vec<OperationId>,
    vms_changed: bool,
    vm_bytes: usize,
    /// VMs that the change removes: their addresses may go to other VMs.
    leaving: HashSet<VmId>,
    split_at: SplitAt,
}

/// Number of operations from which on a transaction takes no more accompanying records.
#[derive(Clone, Copy, Debug)]
pub struct SplitAt(pub usize);

impl Default for SplitAt {
    fn default() -> Self {
        Self(TXN_OPERATIONS_MAX)
    }
}

/// Records to write; none removes one.
type Writes = BTreeMap<Key, Option<Bytes>>;

/// Finished transactions.
#[derive(Debug, Default)]
pub struct DraftedTxns {
    /// To commit one after the other; the last one compares and decides.
    pub txns: Vec<Txn>,
    /// Records of the last transaction as values, so that the engine need not decode its own writes.
    pub own_records: Vec<(Key, OwnRecord)>,
    /// Operations to reconcile when it is durable.
    pub to_reconcile: Vec<OperationId>,
    /// Records to lock until it is durable, besides those that the last transaction compares.
    pub locks: Vec<Key>,
}

impl DraftedTxns {
    /// Downgrades everything to a format level. The engine then decodes what it has written: without what is left out.
    pub fn downgrade(&mut self, level: u32) {
        for txn in &mut self.txns {
            if records::downgrade_txn(txn, level) {
                self.own_records.clear();
            }
        }
    }
}

impl<'a> Draft<'a> {
    pub fn new(state: &'a State, now: Timestamp, node: &'a str, count: u64, from: Option<IpAddr>) -> Self {
        Self {
            state,
            now,
            node,
            count,
            from,
            by: Actor::Service,
            expect: BTreeMap::new(),
            expect_first: BTreeMap::new(),
            locks: BTreeSet::new(),
            writes: Writes::new(),
            accompanying: Writes::new(),
            facts: Vec::new(),
            own_records: Vec::new(),
            to_reconcile: Vec::new(),
            vms_changed: false,
            vm_bytes: 0,
            leaving: HashSet::new(),
            split_at: SplitAt::default(),
        }
    }

    /// Sets the actor; default: the service.
    pub fn by(&mut self, by: &Actor) {
        self.by = by.clone();
    }

    pub(crate) fn actor(&self) -> Actor {
        self.by.clone()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn state(&self) -> &'a State {
        self.state
    }

    /// Splits earlier than at the store's limit.
    pub fn split_at(&mut self, operations: SplitAt) {
        self.split_at = operations;
    }

    /// Lets VMs take over the addresses of these ones. A caller that adds such a VM removes the owner in the same draft.
    pub fn release(&mut self, leaving: HashSet<VmId>) {
        self.leaving = leaving;
    }

    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Whether VM records fill one transaction.
    pub fn is_full(&self) -> bool {
        self.vm_bytes > VMS_BYTES_PER_TXN
    }

    /// The number of operations so far, so that callers can stop in time.
    pub fn operations(&self) -> usize {
        self.expect.len() + self.writes.len() + self.accompanying.len()
    }

    /// Adds a scope's next value, its facts and its history, if it differs from the current value.
    pub fn scope(&mut self, before: Option<&Revisioned<Scope>>, applied: Applied) -> Result<(), Refusal> {
        self.scope_with_bytes(before, applied, None)
    }

    /// Like [`Self::scope`], with the encoded next value from `encode_scope`.
    pub fn scope_with_bytes(
        &mut self,
        before: Option<&Revisioned<Scope>>,
        applied: Applied,
        bytes: Option<Bytes>,
    ) -> Result<(), Refusal> {
        let Applied { mut scope, facts, past, shows: _ } = applied;
        // A change of VM records raises the scope's revision even if the scope is equal: the removal of a VM
        // compares the scope, and must know which addresses to release.
        if before.is_some_and(|before| *before.value == scope) && !self.vms_changed {
            return Ok(());
        }
        let id = scope.id();
        let key = records::scope(&id);
        self.expect.insert(key.clone(), before.map(|held| held.revision));
        let is_kept = is_kept(&scope);
        if !is_kept {
            self.remove_scope(&id);
        } else {
            let bytes = match bytes {
                Some(bytes) => bytes,
                None => encode_scope(before.map(|held| &*held.value), &scope)?,
            };
            self.writes.insert(key.clone(), Some(bytes));
        }
        for past in past {
            self.accompanying.insert(records::ended(past.ended_at, past.event.id), Some(Bytes::new()));
            self.accompanying.insert(records::past(past.event.id), Some(records::encode(&past)));
        }
        if let Some(before) = before {
            for gone in before.value.members.iter().filter(|member| scope.member(member.vm).is_none()) {
                self.forget_vm(gone.vm);
            }
            let state = self.state;
            let is_alone =
                |id| state.operation(id).is_some_and(|operation| operation.value.targets.len() == 1);
            self.to_reconcile.extend(to_reconcile(&before.value, Some(&scope), is_alone));
        }
        self.create_hosts(before.map(|held| &*held.value), &scope);
        if is_kept {
            // It is kept in memory for long.
            scope.members.shrink_to_fit();
            self.own_records.push((key, OwnRecord::Scope(Arc::new(scope))));
        }
        self.facts(Some(id), facts);
        Ok(())
    }

    /// Adds a record that accompanies the change.
    pub(crate) fn accompany<T: serde::Serialize>(&mut self, key: Key, record: &T) {
        self.accompanying.insert(key, Some(records::encode(record)));
    }

    /// Locks a record until the draft is durable, without a comparison: this process alone writes it.
    pub(crate) fn lock(&mut self, key: Key) {
        self.locks.insert(key);
    }

    /// Removes a scope's record; it must have no members.
    pub fn remove_scope(&mut self, id: &ScopeId) {
        self.writes.insert(records::scope(id), None);
        if self.state.last_polled(id).is_some() {
            self.accompanying.insert(records::heard(id), None);
        }
    }

    fn forget_vm(&mut self, vm: VmId) {
        for address in self.state.vm(vm).iter().flat_map(|known| &known.addresses) {
            let key = records::claim(address);
            // Another VM may have taken it over, in this draft or after an earlier attempt released it.
            if !self.writes.contains_key(&key) && self.state.claim(address) == Some(vm) {
                self.accompanying.insert(key, None);
            }
        }
        self.accompanying.insert(records::vm(vm), None);
    }

    /// Adds a VM's record and the changes of its address claims.
    pub fn vm(&mut self, vm: &Vm) -> Result<(), Refusal> {
        let before = self.state.vm(vm.id);
        if self.state.is_known(vm) {
            return Ok(());
        }
        self.vms_changed = true;
        self.expect.insert(records::vm(vm.id), before.as_ref().map(|known| known.revision));
        let bytes = vm_bytes(vm)?;
        self.vm_bytes += bytes.len();
        self.writes.insert(records::vm(vm.id), Some(bytes));
        for address in &vm.addresses {
            let key = records::claim(address);
            match self.state.claim(address) {
                Some(owner) if owner == vm.id => {}
                // The scope's revision says that the owner still has it.
                Some(owner) if self.leaving.contains(&owner) => {
                    self.writes.insert(key, Some(records::encode(&vm.id)));
                }
                Some(owner) => return Err(address_taken(self.state, address, owner)),
                None => {
                    self.expect.insert(key.clone(), None);
                    self.writes.insert(key, Some(records::encode(&vm.id)));
                }
            }
        }
        for address in before.iter().flat_map(|known| &known.addresses) {
            if !vm.addresses.contains(address) {
                self.writes.insert(records::claim(address), None);
            }
        }
        Ok(())
    }

    /// Adds a new operation; refuses one whose record would be too large.
    pub fn new_operation(&mut self, operation: Operation) -> Result<(), Refusal> {
        let bytes = encode_operation(&operation)?;
        self.operation_with_bytes(operation, bytes);
        Ok(())
    }

    pub fn operation(&mut self, operation: Operation) {
        let bytes = records::encode(&operation);
        self.operation_with_bytes(operation, bytes);
    }

    fn operation_with_bytes(&mut self, operation: Operation, bytes: Bytes) {
        let key = records::operation(operation.id);
        let before = self.state.operation(operation.id);
        self.expect.insert(key.clone(), before.map(|held| held.revision));
        self.writes.insert(key.clone(), Some(bytes));
        self.own_records.push((key, OwnRecord::Operation(Arc::new(operation))));
    }

    /// Adds a record that must not exist yet.
    pub fn create<T: serde::Serialize>(&mut self, key: Key, record: &T) {
        self.expect.insert(key.clone(), None);
        self.writes.insert(key, Some(records::encode(record)));
    }

    /// Writes a record that must have this revision, or not exist.
    pub fn put<T: serde::Serialize>(&mut self, key: Key, revision: Option<Revision>, record: &T) {
        self.expect.insert(key.clone(), revision);
        self.writes.insert(key, Some(records::encode(record)));
    }

    /// Writes a record whatever is there.
    pub fn replace<T: serde::Serialize>(&mut self, key: Key, record: &T) {
        self.writes.insert(key, Some(records::encode(record)));
    }

    /// Removes a record whatever is there.
    pub fn clear(&mut self, key: Key) {
        self.writes.insert(key, None);
    }

    /// Removes a record if it still has this revision.
    pub fn remove(&mut self, key: Key, revision: Revision) {
        self.expect.insert(key.clone(), Some(revision));
        self.writes.insert(key, None);
    }

    /// Adds a comparison: the record must have this revision, or not exist.
    pub fn expect(&mut self, key: Key, revision: Option<Revision>) {
        self.expect.insert(key, revision);
    }

    /// Makes the transaction depend on a scope that it does not write. Any number is possible: they are compared in
    /// separate transactions before it, and stay locked until it is durable.
    pub fn depend_on(&mut self, scope: &ScopeId) {
        let revision = self.state.scope(scope).map(|held| held.revision);
        self.expect_first.insert(records::scope(scope), revision);
    }

    /// Reconciles an operation once this is durable.
    pub fn reconcile_after(&mut self, operation: OperationId) {
        self.to_reconcile.push(operation);
    }

    pub fn facts(&mut self, scope: Option<ScopeId>, facts: Vec<Recorded<Fact>>) {
        if !facts.is_empty() {
            self.facts.push((scope, facts));
        }
    }

    /// Splits the draft into transactions.
    pub fn finish(mut self) -> DraftedTxns {
        let (mut n, mut first) = (0, 0);
        for (scope, facts) in std::mem::take(&mut self.facts) {
            for facts in chunks_of_facts(facts) {
                let key = records::fact(self.now, self.node, self.count + n);
                let count = facts.len() as u64;
                let batch = FactBatch { scope: scope.clone(), from: self.from, first, facts };
                let batch = records::encode(&batch);
                first += count;
                // The first goes with the change itself, so that both are visible together.
                let writes = if n == 0 { &mut self.writes } else { &mut self.accompanying };
                writes.insert(key, Some(batch));
                n += 1;
            }
        }
        // What is compared as missing is written with the comparison: an event that opens and ends at once is not
        // taken for one that ended before.
        let is_compared = |(key, _): &(Key, Option<Bytes>)| self.expect.contains_key(key);
        let (compared, accompanying): (Writes, Writes) = self.accompanying.into_iter().partition(is_compared);
        self.writes.extend(compared);
        let expect: Vec<Expect> =
            self.expect.into_iter().map(|(key, revision)| Expect { key, revision }).collect();
        let mut last = Txn { expect, ..Txn::default() };
        fill(&mut last, self.writes);
        let mut ahead = Vec::new();
        // Removals come first and so find room beside the scope: VMs, then the claims of their addresses. Then, in key
        // order: the index of ended events, facts, and the ended events themselves. Records without room in the last
        // transaction are written before it, in reverse order: a reader of the index finds the events that it names,
        // and a claim is removed before the VM's record, which names it for the next attempt.
        let (puts, deletes): (Vec<_>, Vec<_>) =
            accompanying.into_iter().partition(|(_, value)| value.is_some());
        for (key, value) in deletes.into_iter().rev().chain(puts) {
            let bytes = key.len() + value.as_ref().map_or(0, Bytes::len) + RESERVED_BYTES;
            let room = |txn: &Txn| {
                txn.expect.len() + txn.put.len() + txn.delete.len() + RESERVED < self.split_at.0
                    && txn.bytes() + bytes <= TXN_BYTES_MAX
            };
            let one = [(key, value.clone())];
            if room(&last) {
                fill(&mut last, one);
                continue;
            }
            match ahead.last_mut().filter(|txn| room(txn)) {
                Some(txn) => fill(txn, one),
                None => {
                    let mut txn = Txn::default();
                    fill(&mut txn, one);
                    ahead.push(txn);
                }
            }
        }
        ahead.reverse();
        let locks: Vec<Key> = self.expect_first.keys().cloned().chain(self.locks).collect();
        let compares = self.expect_first.into_iter().map(|(key, revision)| Expect { key, revision });
        let compares: Vec<Expect> = compares.collect();
        let compares = compares.chunks(TXN_OPERATIONS_MAX - RESERVED);
        ahead.splice(0..0, compares.map(|some| Txn { expect: some.to_vec(), ..Txn::default() }));
        ahead.push(last);
        self.to_reconcile.sort();
        self.to_reconcile.dedup();
        DraftedTxns { txns: ahead, own_records: self.own_records, to_reconcile: self.to_reconcile, locks }
    }
}

/// Whether an empty scope's record is kept: a standalone scope is removed with its VM.
pub(crate) fn is_kept(scope: &Scope) -> bool {
    scope.kind != ScopeKind::Standalone || !scope.members.is_empty() || !scope.events.is_empty()
}

/// Encodes a VM within its size limit.
pub(crate) fn vm_bytes(vm: &Vm) -> Result<Bytes, Refusal> {
    let bytes = records::encode(vm);
    match bytes.len() > VM_BYTES_MAX {
        true => Err(Refusal::VmTooLarge { vm: vm.id, bytes: bytes.len(), limit: VM_BYTES_MAX }),
        false => Ok(bytes),
    }
}

/// Encodes a scope within its size limit. A scope that gains VMs or events must leave room for their growth; other
/// changes may use that room.
pub(crate) fn encode_scope(before: Option<&Scope>, scope: &Scope) -> Result<Bytes, Refusal> {
    let bytes = records::encode(scope);
    let grows = before.is_none_or(|before| {
        scope.members.len() > before.members.len() || scope.events.len() > before.events.len()
    });
    let reserve = if grows { scope.events.iter().map(growth_bytes).sum() } else { 0 };
    match bytes.len() + reserve > VALUE_BYTES_MAX {
        true => Err(Refusal::ScopeTooLarge { bytes: bytes.len() + reserve, limit: VALUE_BYTES_MAX }),
        false => Ok(bytes),
    }
}

/// Bytes that an event may still add to its scope's record.
fn growth_bytes(event: &Event) -> usize {
    let moves = event.cause.event_type() == EventType::Redeploy && event.target_host.is_none();
    let target_host = if moves { TARGET_HOST_GROWS_BY } else { 0 };
    target_host + driver_growth_bytes(event)
}

fn driver_growth_bytes(event: &Event) -> usize {
    match event.driver {
        DriverKind::Simulated | DriverKind::Manual => EVENT_GROWS_BY,
        DriverKind::Exec => {
            let commands = event.exec_run().map(|run| run.commands.as_slice()).unwrap_or_default();
            // A command's result, a host, is shorter than a reason.
            let each = COMMAND_BYTES_MAX + reason_bytes_max(event.resources.len());
            let taken: usize = commands.iter().map(|command| bytes_not_needed(command, each)).sum();
            let commands = (event.resources.len() * each).saturating_sub(taken);
            EVENT_GROWS_BY + DRIVER_FACTS_GROW_BY + commands
        }
    }
}

/// The part of a command's maximum size, `most`, that it already uses or will never need.
fn bytes_not_needed(command: &CommandState, most: usize) -> usize {
    match command {
        CommandState::Waiting { why, .. } | CommandState::Failed { why, .. } => why.len(),
        CommandState::Done { .. } | CommandState::Gone => most,
        CommandState::Running { .. } => 0,
    }
}

/// Encodes an operation; refuses one whose record could grow over the limit until its last part ends.
pub(crate) fn encode_operation(operation: &Operation) -> Result<Bytes, Refusal> {
    let parts = operation.targets.len();
    let record = records::encode(operation);
    let bytes = record.len() + parts * TARGET_GROWS_BY + OPERATION_GROWS_BY;
    match bytes > VALUE_BYTES_MAX {
        true => Err(Refusal::OperationTooLarge { parts, bytes, limit: VALUE_BYTES_MAX }),
        false => Ok(record),
    }
}

/// The refusal for a taken address, with the owner's path.
pub(crate) fn address_taken(state: &State, address: &Address, owner: VmId) -> Refusal {
    let known_as = state.scope_of(owner).and_then(|(_, scope, position)| {
        let member = scope.value.members.get(position?)?;
        Some(format!("{}/{}", scope.value.path, member.name))
    });
    Refusal::AddressTaken {
        address: address.ip,
        network: address.network.clone(),
        owner: known_as.unwrap_or_else(|| owner.to_string()),
    }
}

fn fill(txn: &mut Txn, writes: impl IntoIterator<Item = (Key, Option<Bytes>)>) {
    for (key, value) in writes {
        match value {
            Some(value) => txn.put.push((key, value)),
            None => txn.delete.push(key),
        }
    }
}

fn chunks_of_facts(facts: Vec<Recorded<Fact>>) -> Vec<Vec<Recorded<Fact>>> {
    let mut chunks = vec![Vec::new()];
    let mut bytes = 0;
    for fact in facts {
        let names = match &fact.fact {
            Fact::Event { resources, .. } => resources.len(),
            Fact::OperationRequested { .. }
            | Fact::OperationCancelled { .. }
            | Fact::OperationStarted { .. }
            | Fact::OperationCompleted { .. }
            | Fact::HostCommand { .. }
            | Fact::HostStateChanged { .. }
            | Fact::HostForgotten { .. }
            | Fact::ScopeCreated { .. }
            | Fact::PolicyChanged
            | Fact::ScopeRemoved { .. }
            | Fact::VmAdded { .. }
            | Fact::VmChanged { .. }
            | Fact::VmRemoved { .. }
            | Fact::VmMoved { .. }
            | Fact::VmDeallocated { .. }
            | Fact::VmStarted { .. }
            | Fact::ClockAccepted
            | Fact::SignedIn { .. }
            | Fact::SignInLinkCreated
            | Fact::HandOverRequested { .. }
            | Fact::UpgradeFinished { .. }
            | Fact::NodeForgotten { .. }
            | Fact::TokenRevoked { .. } => 1,
            Fact::TokenCreated { grants, .. } => grants.len() * 4,
        };
        let size = 400 + names * (notbefore_core::ids::NAME_CHARS_MAX + 3);
        if bytes + size > FACTS_BYTES && bytes > 0 {
            chunks.push(Vec::new());
            bytes = 0;
        }
        bytes += size;
        if let Some(chunk) = chunks.last_mut() {
            chunk.push(fact);
        }
    }
    chunks
}

/// The operations to reconcile after a change of a scope: an event of theirs ended, became ready for its host's command
/// or, if approvals are counted, was approved or started. A start does not matter to an operation with one part.
pub(crate) fn to_reconcile(
    before: &Scope,
    after: Option<&Scope>,
    is_alone: impl Fn(OperationId) -> bool,
) -> Vec<OperationId> {
    let moved = |event: &&Event| match after.and_then(|after| after.event(event.id)) {
        None => true,
        Some(now) => {
            let has_begun = || now.is_started() != event.is_started() && !is_alone(event.operation);
            // The engine tracks host operations separately.
            let is_counted = event.release == Release::Together && !event.joint_start;
            let is_ready = || now.is_ready_for_host() && !event.is_ready_for_host();
            is_ready() || is_counted && (now.approved() != event.approved() || has_begun())
        }
    };
    before.events.iter().filter(moved).map(|event| event.operation).collect()
}
