//! Bulk load of all records at the start, with up to a million VMs.
//!
//! It has two stages that can run on two processors: [`prepare`] decodes a record without other data, and
//! [`Loader::take`] adds it to the state. Rows of the inventory are collected and built into tables at the end, since
//! building a table is faster than filling it.

use std::sync::Arc;

use bytes::Bytes;
use notbefore_core::{Scope, ScopeId, VmId};
use notbefore_store::{Key, Revision, Versioned};

use super::inventory::Rows;
use super::{CallerKey, State, bad_key, decode_scope};
use crate::keys::RecordKey;
use crate::records::{self, DecodeError, Vm};

/// A decoded record.
#[derive(Debug)]
pub struct Prepared {
    revision: Revision,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Scope(ScopeId, Arc<Scope>),
    Vm(Vm),
    Claim(CallerKey, VmId),
    /// A record of a rare kind.
    Other(Key, Bytes),
}

pub fn prepare(key: Key, record: Versioned) -> Result<Prepared, DecodeError> {
    let Versioned { revision, value } = record;
    let content = match RecordKey::parse(&key).map_err(|error| bad_key(&key, error))? {
        RecordKey::Scope(id) => Content::Scope(id, Arc::new(decode_scope(&key, &value)?)),
        RecordKey::Vm(_) => Content::Vm(records::decode(&key, &value)?),
        RecordKey::Claim { network, ip } => {
            Content::Claim((network.to_owned(), ip), records::decode(&key, &value)?)
        }
        RecordKey::Operation(_)
        | RecordKey::Host(_)
        | RecordKey::Command { .. }
        | RecordKey::Fact(_)
        | RecordKey::Refused(_)
        | RecordKey::Past(_)
        | RecordKey::Ended { .. }
        | RecordKey::Seen { .. }
        | RecordKey::Heard(_)
        | RecordKey::Alive
        | RecordKey::Swept
        | RecordKey::Token(_)
        | RecordKey::Secret(_)
        | RecordKey::ClusterFormat
        | RecordKey::Leader
        | RecordKey::ClusterNode(_) => Content::Other(Key::clone(&key), value),
    };
    Ok(Prepared { revision, content })
}

/// A state under construction. Scopes should come before their VMs, so that each VM finds its position at once.
#[derive(Debug, Default)]
pub struct Loader {
    state: State,
    rows: Rows,
}

impl Loader {
    /// Adds one record; keys must be unique.
    pub fn take(&mut self, record: Prepared) -> Result<(), DecodeError> {
        let Prepared { revision, content } = record;
        match content {
            Content::Scope(id, scope) => {
                self.state.put_scope(id, revision, Some(scope));
            }
            Content::Vm(vm) => {
                let (slot, position) = self.state.count_member(&vm);
                self.state.inventory.row(&vm, revision, slot, position, &mut self.rows);
            }
            Content::Claim((network, ip), vm) => {
                self.state.inventory.claim_row(&network, ip, vm, revision, &mut self.rows);
            }
            Content::Other(key, value) => {
                self.state.install(&key, revision, Some(&value))?;
            }
        }
        Ok(())
    }

    /// Builds the state.
    pub fn finish(self) -> State {
        let Self { mut state, rows } = self;
        state.inventory.fill(rows);
        state
    }
}

#[cfg(test)]
mod tests {
    use notbefore_core::{Member, Name, Origin, Policy, ScopeKind, ScopePath};
    use uuid::Uuid;

    use super::*;
    use crate::records::Address;

    fn records() -> Vec<(Key, Versioned)> {
        let path: ScopePath = "web".parse().unwrap();
        let mut scope = Scope::new(path.clone(), ScopeKind::ScaleSet, Policy::default(), Origin::Call);
        let mut records = Vec::new();
        for n in 0..300_u16 {
            let vm = VmId(Uuid::from_u128(u128::from(n) * 7_919));
            let name: Name = format!("web_{n}").parse().unwrap();
            let member = Member { host: Some("h1".into()), ..Member::with_defaults(vm, name) };
            scope.members.push(member);
            let [high, low] = n.to_be_bytes();
            let ip = match n % 3 {
                0 => std::net::IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, high, low]),
                _ => std::net::IpAddr::from([10, 0, high, low]),
            };
            let address = Address { network: "default".parse().unwrap(), ip };
            records.push((records::claim(&address), records::encode(&vm)));
            let instance = serde_json::Value::Null;
            let record = Vm { id: vm, scope: path.id(), addresses: vec![address], instance };
            records.push((records::vm(vm), records::encode(&record)));
        }
        records.insert(0, (records::scope(&path.id()), records::encode(&scope)));
        let versioned = |value| Versioned { revision: Revision(3), value };
        records.into_iter().map(|(key, value)| (key, versioned(value))).collect()
    }

    #[test]
    fn loader_equals_installing_records_one_by_one() {
        let mut loader = Loader::default();
        let mut installed = State::default();
        for (key, record) in records() {
            installed.install(&key, record.revision, Some(&record.value)).unwrap();
            loader.take(prepare(key, record).unwrap()).unwrap();
        }
        let loaded = loader.finish();
        assert_eq!(loaded.inventory().vms(), 300);
        for (key, _) in records() {
            assert_eq!(loaded.revision_of(&key), Some(Revision(3)), "{key}");
        }
        for n in 0..300_u128 {
            let vm = VmId(Uuid::from_u128(n * 7_919));
            let known = loaded.vm(vm).unwrap();
            assert_eq!(Some(known.clone()), installed.vm(vm));
            assert_eq!(loaded.claim(&known.addresses[0]), Some(vm));
            assert_eq!(loaded.scope_of(vm).unwrap().2, Some(usize::try_from(n).unwrap()));
            let ip = known.addresses[0].ip;
            for state in [&loaded, &installed] {
                let (found, member_slot) = state.inventory().caller_with_slot("default", ip).unwrap();
                assert_eq!((found, u128::from(member_slot.position)), (vm, n), "the claim says where it is");
            }
        }
        assert_eq!(loaded.scopes_on("h1").count(), 1);
    }

    #[test]
    fn claims_are_updated_when_vm_position_changes() {
        let mut state = State::default();
        let mut scope = None;
        for (key, record) in records() {
            state.install(&key, record.revision, Some(&record.value)).unwrap();
            scope = scope.or_else(|| records::decode::<Scope>(&key, &record.value).ok());
        }
        let before = state.inventory().clone();
        let mut scope = scope.unwrap();
        scope.members.reverse();
        let key = records::scope(&scope.id());
        state.install(&key, Revision(4), Some(&records::encode(&scope))).unwrap();
        for (position, member) in scope.members.iter().enumerate() {
            let ip = state.vm(member.vm).unwrap().addresses[0].ip;
            let (_, member_slot) = state.inventory().caller_with_slot("default", ip).unwrap();
            assert_eq!(usize::from(member_slot.position), position);
            let (_, member_slot) = before.caller_with_slot("default", ip).unwrap();
            assert_eq!(
                usize::from(member_slot.position),
                299 - position,
                "a published inventory does not change"
            );
        }
    }

    #[test]
    fn unreadable_record_is_named_in_error() {
        let record = Versioned { revision: Revision(1), value: Bytes::from_static(b"1 {}") };
        let error = prepare("vm/x".into(), record).unwrap_err();
        assert!(error.to_string().contains("vm/x"), "{error}");
    }
}
