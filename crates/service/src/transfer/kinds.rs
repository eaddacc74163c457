//! Checks that each record matches its key, and that all records are consistent.
//!
//! Add a new kind of record to [`RecordChecker::check`]. The checks across records hold at every revision, also between
//! the transactions of a change that takes several. For example, while VMs are removed, their records may be gone
//! before their scope drops them, but never the other way round.

use std::collections::{HashMap, HashSet};

use notbefore_core::{EventId, Host, Operation, Past, Scope, ScopeId, Token, VmId};
use notbefore_engine::DecodeError;
use notbefore_engine::records::{
    self, Address, CommandRecord, FactBatch, LastAt, RefusalBatch, Seen, SignInLink, StoredKeyRecord, Vm,
    decode,
};
use notbefore_engine::state::{CallerKey, caller_key};
use notbefore_engine::{KeyError, RecordKey};
use notbefore_store::Key;

/// The checked records, each with its line.
#[derive(Default)]
pub struct RecordChecker {
    members: HashMap<VmId, (ScopeId, u64)>,
    events: HashMap<EventId, u64>,
    vms: HashMap<VmId, (ScopeId, u64)>,
    addresses: HashMap<CallerKey, (VmId, u64)>,
    claims: HashMap<CallerKey, (VmId, u64)>,
    counts: Counts,
}

/// Number of records by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub scopes: u64,
    pub vms: u64,
    pub events: u64,
    pub history: u64,
    pub tokens: u64,
}

/// An inconsistency, and the line of its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inconsistency {
    pub line: u64,
    pub why: String,
}

/// Why a record cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum BadRecord {
    #[error(transparent)]
    Content(#[from] DecodeError),
    #[error("{key} is not a valid key of its kind")]
    Key { key: String },
    #[error("{key} has the content of {expected}")]
    KeyMismatch { key: String, expected: String },
    #[error("{key} is of a kind that this release does not know; use the release that exported it")]
    Kind { key: String },
    #[error("{why}")]
    Inconsistency { why: String },
}

impl RecordChecker {
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Checks one record, and stores what [`RecordChecker::finish`] compares.
    pub fn check(&mut self, line: u64, key: &str, value: &[u8]) -> Result<(), BadRecord> {
        let known = RecordKey::parse(key).map_err(|error| match error {
            KeyError::UnknownKind => BadRecord::Kind { key: key.to_owned() },
            KeyError::Malformed => BadRecord::Key { key: key.to_owned() },
        })?;
        match known {
            RecordKey::Scope(_) => self.scope(line, key, &decode(key, value)?),
            RecordKey::Vm(_) => self.vm(line, key, &decode(key, value)?),
            RecordKey::Claim { network, ip } => {
                let vm = decode::<VmId>(key, value)?;
                check_key(key, &known.encode())?;
                self.claims.insert((network.to_owned(), ip), (vm, line));
                Ok(())
            }
            RecordKey::Operation(_) => {
                check_key(key, &records::operation(decode::<Operation>(key, value)?.id))
            }
            RecordKey::Host(_) => check_key(key, &records::host(&decode::<Host>(key, value)?.name)),
            RecordKey::Command { .. } => Ok(decode::<CommandRecord>(key, value).map(drop)?),
            RecordKey::Fact(_) => Ok(decode::<FactBatch>(key, value).map(drop)?),
            RecordKey::Refused(_) => Ok(decode::<RefusalBatch>(key, value).map(drop)?),
            RecordKey::Past(_) => {
                self.counts.history += 1;
                check_key(key, &records::past(decode::<Past>(key, value)?.event.id))
            }
            RecordKey::Ended { .. } if value.is_empty() => Ok(()),
            RecordKey::Ended { .. } => {
                Err(BadRecord::Inconsistency { why: format!("{key} has a value; index entries have none") })
            }
            RecordKey::Seen { .. } => Ok(decode::<Seen>(key, value).map(drop)?),
            RecordKey::Heard(_) | RecordKey::Alive | RecordKey::Swept => {
                Ok(decode::<LastAt>(key, value).map(drop)?)
            }
            RecordKey::Secret(_) if [records::SESSION_KEY, records::NODE_KEY].contains(&key) => {
                match decode::<StoredKeyRecord>(key, value)?.is_well_formed() {
                    true => Ok(()),
                    false => Err(BadRecord::Inconsistency {
                        why: format!(
                            "{key} is not 64 hexadecimal digits; the next start of the service replaces it"
                        ),
                    }),
                }
            }
            RecordKey::Secret(_) => Ok(decode::<SignInLink>(key, value).map(drop)?),
            RecordKey::Token(_) => {
                self.counts.tokens += 1;
                check_key(key, &records::token(&decode::<Token>(key, value)?.name))
            }
            RecordKey::ClusterFormat | RecordKey::Leader | RecordKey::ClusterNode(_) => {
                Err(BadRecord::Inconsistency {
                    why: format!(
                        "{key} describes running nodes; remove the line, an import does not need it"
                    ),
                })
            }
        }
    }

    fn scope(&mut self, line: u64, key: &str, scope: &Scope) -> Result<(), BadRecord> {
        let id = scope.id();
        let inconsistency = |why: String| Err(BadRecord::Inconsistency { why });
        check_key(key, &records::scope(&id))?;
        if scope.incarnation == 0 {
            return inconsistency(format!("{key} has incarnation 0; incarnations begin at 1"));
        }
        let mut names = HashSet::new();
        for member in &scope.members {
            if !names.insert(member.name.folded()) {
                return inconsistency(format!("{key} has two VMs named {}", member.name));
            }
            if let Some((other, _)) = self.members.insert(member.vm, (id.clone(), line)) {
                return inconsistency(format!("VM {} is in scope {other} and in scope {id}", member.vm));
            }
        }
        for event in &scope.events {
            if let Some(first) = self.events.insert(event.id, line) {
                return inconsistency(format!("event {} is also in line {first}", event.id));
            }
        }
        self.counts.scopes += 1;
        self.counts.events += scope.events.len() as u64;
        Ok(())
    }

    fn vm(&mut self, line: u64, key: &str, vm: &Vm) -> Result<(), BadRecord> {
        check_key(key, &records::vm(vm.id))?;
        for address in &vm.addresses {
            if let Some((other, first)) = self.addresses.insert(caller_key(address), (vm.id, line)) {
                let Address { network, ip } = address;
                let why =
                    format!("{key} has address {network}/{ip}, which VM {other} in line {first} also has");
                return Err(BadRecord::Inconsistency { why });
            }
        }
        self.vms.insert(vm.id, (vm.scope.clone(), line));
        self.counts.vms += 1;
        Ok(())
    }

    /// Checks the consistency of all records.
    pub fn finish(&self) -> Result<(), Inconsistency> {
        self.inconsistencies().into_iter().next().map_or(Ok(()), |(_, inconsistency)| Err(inconsistency))
    }

    /// The inconsistent records, by key.
    pub fn inconsistencies(&self) -> Vec<(Key, Inconsistency)> {
        let mut inconsistencies = Vec::new();
        for (vm, (scope, line)) in &self.vms {
            if self.members.get(vm).is_none_or(|(member_of, _)| member_of != scope) {
                let why = format!("VM {vm} has scope {scope}, which does not contain it");
                inconsistencies.push((records::vm(*vm), Inconsistency { line: *line, why }));
            }
        }
        for ((network, ip), (vm, line)) in &self.claims {
            let owner = self.addresses.get(&(network.clone(), *ip));
            let inconsistency = match (self.members.contains_key(vm), self.vms.contains_key(vm), owner) {
                (false, _, _) => {
                    Some(format!("address {network}/{ip} is that of VM {vm}, which does not exist"))
                }
                (true, _, Some((owner, first))) if owner != vm => Some(format!(
                    "address {network}/{ip} is that of VM {vm}, and of VM {owner} in line {first}"
                )),
                (true, true, None) => {
                    Some(format!("address {network}/{ip} is that of VM {vm}, which does not have it"))
                }
                (true, _, _) => None,
            };
            if let Some(why) = inconsistency {
                let key = RecordKey::Claim { network, ip: *ip }.encode();
                inconsistencies.push((key, Inconsistency { line: *line, why }));
            }
        }
        inconsistencies
    }
}

/// Checks that a record has the key that follows from its content.
fn check_key(key: &str, expected: &str) -> Result<(), BadRecord> {
    match key == expected {
        true => Ok(()),
        false => Err(BadRecord::KeyMismatch { key: key.to_owned(), expected: expected.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_record_kind_is_refused() {
        let other = RecordChecker::default().check(1, "other/x", b"1 {}").unwrap_err().to_string();
        assert!(other.contains("does not know"), "{other}");
    }

    #[test]
    fn stored_keys_have_64_hexadecimal_digits() {
        for record in [records::SESSION_KEY, records::NODE_KEY] {
            let check = |key: &str| {
                let value = format!("1 {{\"key\":\"{key}\"}}");
                RecordChecker::default().check(1, record, value.as_bytes())
            };
            check(&"0a".repeat(32)).unwrap();
            for wrong in [&"0a".repeat(31), &"0g".repeat(32), ""] {
                let why = check(wrong).unwrap_err().to_string();
                assert!(why.contains(record) && why.contains("64 hexadecimal digits"), "{why}");
            }
        }
    }

    const VM_1: &str = "00000000-0000-0000-0000-000000000001";
    const VM_2: &str = "00000000-0000-0000-0000-000000000002";

    fn scope(name: &str, vms: &[&str]) -> (String, String) {
        let member = |vm: &&str| {
            format!(
                "{{\"vm\":\"{vm}\",\"name\":\"{}\",\"state\":\"running\",\"origin\":\"fleet\"}}",
                &vm[30..]
            )
        };
        let members: Vec<String> = vms.iter().map(member).collect();
        let value = format!(
            "1 {{\"path\":{{\"subscription\":\"default\",\"group\":\"default\",\"name\":\"{name}\"}},\"kind\":\"availability-set\",\"incarnation\":3,\"members\":[{}],\"events\":[],\"ended\":[],\"origin\":\"fleet\"}}",
            members.join(",")
        );
        (format!("scope/default/default/{name}"), value)
    }

    fn vm(id: &str, scope: &str, address: &str) -> (String, String) {
        let value = format!(
            "1 {{\"id\":\"{id}\",\"scope\":\"default/default/{scope}\",\"addresses\":[{{\"network\":\"default\",\"ip\":\"{address}\"}}]}}"
        );
        (format!("vm/{id}"), value)
    }

    fn claim(address: &str, vm: &str) -> (String, String) {
        (format!("claim/default/{address}"), format!("1 \"{vm}\""))
    }

    fn inconsistency(records: &[(String, String)]) -> String {
        let mut checker = RecordChecker::default();
        for (line, (key, value)) in records.iter().enumerate() {
            if let Err(why) = checker.check(line as u64 + 1, key, value.as_bytes()) {
                return format!("{}: {why}", line + 1);
            }
        }
        checker.finish().map_or_else(
            |inconsistency| format!("{}: {}", inconsistency.line, inconsistency.why),
            |()| "none".to_owned(),
        )
    }

    #[test]
    fn inconsistent_records_are_reported() {
        let web = scope("web", &[VM_1, VM_2]);
        let (one, two) = (vm(VM_1, "web", "10.0.0.1"), vm(VM_2, "web", "10.0.0.2"));
        let claims = [claim("10.0.0.1", VM_1), claim("10.0.0.2", VM_2)];
        let whole = [&claims[0], &claims[1], &web, &one, &two].map(Clone::clone);
        assert_eq!(inconsistency(&whole), "none");
        // Possible while the VMs are removed.
        assert_eq!(inconsistency(&[claims[0].clone(), web.clone()]), "none");
        assert_eq!(inconsistency(&[web.clone(), one.clone()]), "none");

        for (records, expected) in [
            (vec![claim("10.0.0.1", VM_1), scope("web", &[])], "1: address default/10.0.0.1 is that of VM"),
            (
                vec![claim("10.0.0.9", VM_1), web.clone(), one.clone()],
                "1: address default/10.0.0.9 is that of VM",
            ),
            (
                vec![claim("10.0.0.1", VM_2), web.clone(), one.clone(), two.clone()],
                "1: address default/10.0.0.1",
            ),
            (
                vec![web.clone(), vm(VM_1, "db", "10.0.0.1")],
                "2: VM 00000000-0000-0000-0000-000000000001 has scope",
            ),
            (
                vec![web.clone(), one.clone(), vm(VM_2, "web", "10.0.0.1")],
                "3: vm/00000000-0000-0000-0000-000000000002 has address",
            ),
            (
                vec![web.clone(), scope("db", &[VM_1])],
                "2: VM 00000000-0000-0000-0000-000000000001 is in scope",
            ),
            (
                vec![("scope/default/default/db".to_owned(), web.1.clone())],
                "1: scope/default/default/db has the content of scope/default/default/web",
            ),
            (
                vec![(web.0.clone(), web.1.replace("\"incarnation\":3", "\"incarnation\":0"))],
                "1: scope/default/default/web has incarnation 0",
            ),
            (
                vec![(
                    "host/h1".to_owned(),
                    "1 {\"name\":\"h2\",\"state\":\"ok\",\"since\":\"2026-11-15T12:00:00Z\",\"by\":\"service\"}".to_owned(),
                )],
                "1: host/h1 has the content of host/h2",
            ),
            (vec![("vm/x".to_owned(), "1 {}".to_owned())], "1: vm/x is not a valid key of its kind"),
            (
                vec![("heard/a/b/c/d".to_owned(), "1 {\"at\":\"2026-11-15T12:00:00Z\"}".to_owned())],
                "1: heard/a/b/c/d is not a valid key",
            ),
        ] {
            let found = inconsistency(&records);
            assert!(found.starts_with(expected), "{found}");
        }
    }
}
