//! The committed records, decoded, and the interface by which the model reads records, from the store or from the
//! engine.

use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use notbefore_core::{EventId, Host, Operation, OperationId, OperationState, Past, Scope, ScopeId, VmId};
use notbefore_engine::records;
use notbefore_engine::state::{CallerKey, caller_key};
use notbefore_engine::{Address, RecordKey, State, Vm};
use notbefore_store::Revision;

/// The records that the model may read.
pub trait Reads {
    /// With its revision.
    fn scope(&self, id: &ScopeId) -> Option<(Revision, &Scope)>;
    fn scope_ids(&self) -> Vec<ScopeId>;
    fn vm(&self, id: VmId) -> Option<Vm>;
    /// The owner of an address.
    fn claim(&self, address: &Address) -> Option<VmId>;
    /// Only if it is not closed.
    fn operation(&self, id: OperationId) -> Option<&Operation>;
    /// All operations that are not closed, sorted by id.
    fn operations(&self) -> Vec<&Operation>;
    /// The record of a host.
    fn host(&self, name: &str) -> Option<&Host>;
    /// The names of the hosts that have records.
    fn recorded_hosts(&self) -> Vec<String>;

    /// The scope in which an event is live or recently ended, by linear search.
    fn scope_of_event(&self, event: EventId) -> Option<ScopeId> {
        self.scope_ids().into_iter().find(|id| {
            self.scope(id).is_some_and(|(_, scope)| {
                scope.events.iter().any(|one| one.id == event)
                    || scope.ended.iter().any(|one| one.event == event)
            })
        })
    }
}

impl Reads for State {
    fn scope(&self, id: &ScopeId) -> Option<(Revision, &Scope)> {
        State::scope(self, id).map(|held| (held.revision, &*held.value))
    }

    fn scope_ids(&self) -> Vec<ScopeId> {
        let mut ids: Vec<_> = self.scopes().map(|(id, _)| id.clone()).collect();
        ids.sort();
        ids
    }

    fn vm(&self, id: VmId) -> Option<Vm> {
        let known = State::vm(self, id)?;
        // No VM of a history has instance metadata.
        let instance = serde_json::Value::Null;
        Some(Vm { id, scope: known.scope.clone(), addresses: known.addresses, instance })
    }

    fn claim(&self, address: &Address) -> Option<VmId> {
        State::claim(self, address)
    }

    fn operation(&self, id: OperationId) -> Option<&Operation> {
        State::operation(self, id).map(|held| &*held.value)
    }

    fn operations(&self) -> Vec<&Operation> {
        let mut all: Vec<&Operation> = State::operations(self).map(|(_, held)| &*held.value).collect();
        all.sort_by_key(|one| one.id);
        all
    }

    fn host(&self, name: &str) -> Option<&Host> {
        State::host(self, name).map(|held| &*held.value)
    }

    fn recorded_hosts(&self) -> Vec<String> {
        self.hosts().map(|held| held.value.name.clone()).collect()
    }
}

/// The committed records, decoded.
#[derive(Debug, Default)]
pub struct View {
    pub scopes: BTreeMap<ScopeId, (Revision, Rc<Scope>)>,
    pub vms: BTreeMap<VmId, Rc<Vm>>,
    /// Owners of addresses.
    pub claims: BTreeMap<CallerKey, VmId>,
    /// Including closed ones.
    pub operations: BTreeMap<OperationId, Rc<Operation>>,
    pub hosts: BTreeMap<String, Rc<Host>>,
    /// Ended events.
    pub past: BTreeMap<EventId, Rc<Past>>,
}

impl Reads for View {
    fn scope(&self, id: &ScopeId) -> Option<(Revision, &Scope)> {
        self.scopes.get(id).map(|(revision, scope)| (*revision, &**scope))
    }

    fn scope_ids(&self) -> Vec<ScopeId> {
        self.scopes.keys().cloned().collect()
    }

    fn vm(&self, id: VmId) -> Option<Vm> {
        self.vms.get(&id).map(|vm| Vm::clone(vm))
    }

    fn claim(&self, address: &Address) -> Option<VmId> {
        self.claims.get(&caller_key(address)).copied()
    }

    fn operation(&self, id: OperationId) -> Option<&Operation> {
        self.operations.get(&id).map(|one| &**one).filter(|one| one.state != OperationState::Closed)
    }

    fn operations(&self) -> Vec<&Operation> {
        self.operations.values().map(|one| &**one).filter(|one| one.state != OperationState::Closed).collect()
    }

    fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.get(name).map(|host| &**host)
    }

    fn recorded_hosts(&self) -> Vec<String> {
        self.hosts.keys().cloned().collect()
    }
}

/// A decoded record.
#[derive(Clone, Debug)]
pub enum Record {
    Scope(ScopeId, Option<Rc<Scope>>),
    Vm(VmId, Option<Rc<Vm>>),
    Claim(CallerKey, Option<VmId>),
    Operation(OperationId, Option<Rc<Operation>>),
    Host(String, Option<Rc<Host>>),
    /// An ended event.
    Past(EventId, Option<Rc<Past>>),
    /// A record that is not checked.
    Other,
}

impl Record {
    /// Decodes one record; the error says what is wrong with it.
    pub fn read(key: &str, value: Option<&Bytes>) -> Result<Self, String> {
        fn decoded<T: serde::de::DeserializeOwned>(
            key: &str,
            value: Option<&Bytes>,
        ) -> Result<Option<Rc<T>>, String> {
            value
                .map(|value| records::decode(key, value).map(Rc::new).map_err(|error| error.to_string()))
                .transpose()
        }
        Ok(match RecordKey::parse(key).map_err(|error| format!("{key}: {error}"))? {
            RecordKey::Scope(id) => Self::Scope(id, decoded(key, value)?),
            RecordKey::Vm(id) => Self::Vm(id, decoded(key, value)?),
            RecordKey::Claim { network, ip } => {
                Self::Claim((network.to_owned(), ip), decoded::<VmId>(key, value)?.map(|vm| *vm))
            }
            RecordKey::Operation(id) => Self::Operation(id, decoded(key, value)?),
            RecordKey::Host(name) => Self::Host(name.to_owned(), decoded(key, value)?),
            RecordKey::Past(id) => Self::Past(id, decoded(key, value)?),
            RecordKey::Command { .. }
            | RecordKey::Fact(_)
            | RecordKey::Refused(_)
            | RecordKey::Ended { .. }
            | RecordKey::Seen { .. }
            | RecordKey::Heard(_)
            | RecordKey::Alive
            | RecordKey::Swept
            | RecordKey::Token(_)
            | RecordKey::Secret(_)
            | RecordKey::ClusterFormat
            | RecordKey::Leader
            | RecordKey::ClusterNode(_) => Self::Other,
        })
    }
}

fn set<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => {
            map.insert(key, value);
        }
        None => {
            map.remove(&key);
        }
    }
}

impl View {
    /// Applies one record of a commit.
    pub fn take(&mut self, revision: Revision, record: Record) {
        match record {
            Record::Scope(id, scope) => set(&mut self.scopes, id, scope.map(|scope| (revision, scope))),
            Record::Vm(id, vm) => set(&mut self.vms, id, vm),
            Record::Claim(key, vm) => set(&mut self.claims, key, vm),
            Record::Operation(id, operation) => set(&mut self.operations, id, operation),
            Record::Host(name, host) => set(&mut self.hosts, name, host),
            Record::Past(id, past) => set(&mut self.past, id, past),
            Record::Other => {}
        }
    }

    /// A live event in any scope.
    pub fn live(&self, event: EventId) -> Option<&notbefore_core::Event> {
        self.scopes.values().find_map(|(_, scope)| scope.events.iter().find(|one| one.id == event))
    }
}
