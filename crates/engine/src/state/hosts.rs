//! Index of hosts: their records, the VMs on them, and the open operations on them.
//!
//! A host is known while it has a record or a VM names it. A VM that is on its way to a host counts there, too.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use notbefore_core::{FreeHost, Host, HostState, Operation, OperationId, Scope, ScopeId};

use super::Revisioned;

#[derive(Debug, Default)]
pub(super) struct HostIndex(HashMap<String, HostEntry>);

#[derive(Debug, Default)]
struct HostEntry {
    record: Option<Revisioned<Host>>,
    /// For each scope: the number of its VMs that are on the host or on their way to it; never 0.
    scopes: BTreeMap<ScopeId, usize>,
    /// Of all scopes.
    vms: usize,
    operations: BTreeSet<OperationId>,
}

impl HostEntry {
    fn is_unused(&self) -> bool {
        self.record.is_none() && self.scopes.is_empty() && self.operations.is_empty()
    }

    fn state(&self) -> HostState {
        self.record.as_ref().map_or(HostState::Ok, |held| held.value.state)
    }
}

impl HostIndex {
    pub(super) fn record(&self, host: &str) -> Option<&Revisioned<Host>> {
        self.0.get(host)?.record.as_ref()
    }

    pub(super) fn records(&self) -> impl Iterator<Item = &Revisioned<Host>> {
        self.0.values().filter_map(|entry| entry.record.as_ref())
    }

    pub(super) fn is_known(&self, host: &str) -> bool {
        self.0.get(host).is_some_and(|entry| entry.record.is_some() || !entry.scopes.is_empty())
    }

    pub(super) fn scopes(&self, host: &str) -> impl Iterator<Item = &ScopeId> {
        self.0.get(host).into_iter().flat_map(|entry| entry.scopes.keys())
    }

    pub(super) fn vms(&self, host: &str) -> usize {
        self.0.get(host).map_or(0, |entry| entry.vms)
    }

    pub(super) fn operations(&self, host: &str) -> impl Iterator<Item = OperationId> {
        self.0.get(host).into_iter().flat_map(|entry| entry.operations.iter().copied())
    }

    /// The hosts that take VMs.
    pub(super) fn free(&self) -> Vec<FreeHost<'_>> {
        let is_free = |entry: &HostEntry| entry.state() == HostState::Ok && entry.operations.is_empty();
        let free = self.0.iter().filter(|(_, entry)| is_free(entry));
        free.map(|(name, entry)| FreeHost { name, vms: entry.vms }).collect()
    }

    pub(super) fn put_record(&mut self, host: &str, held: Option<Revisioned<Host>>) {
        self.change(host, |entry| entry.record = held);
    }

    /// An operation was opened, changed, or left the state.
    pub(super) fn put_operation(
        &mut self,
        id: OperationId,
        before: Option<&Operation>,
        after: Option<&Operation>,
    ) {
        let host = |operation: Option<&Operation>| operation.and_then(|one| one.host.clone());
        let (before, after) = (host(before), host(after));
        if before == after {
            return;
        }
        if let Some(host) = before {
            self.change(&host, |entry| _ = entry.operations.remove(&id));
        }
        if let Some(host) = after {
            self.change(&host, |entry| _ = entry.operations.insert(id));
        }
    }

    pub(super) fn put_scope(&mut self, id: &ScopeId, before: Option<&Scope>, after: Option<&Scope>) {
        let (before, after) = (vms_by_host(before), vms_by_host(after));
        for host in before.keys().filter(|host| !after.contains_key(*host)) {
            self.set_vms(host, id, 0);
        }
        for (host, vms) in after.iter().filter(|(host, vms)| before.get(*host) != Some(*vms)) {
            self.set_vms(host, id, *vms);
        }
    }

    fn set_vms(&mut self, host: &str, scope: &ScopeId, vms: usize) {
        self.change(host, |entry| {
            let before = match vms {
                0 => entry.scopes.remove(scope),
                some => entry.scopes.insert(scope.clone(), some),
            };
            entry.vms = entry.vms + vms - before.unwrap_or(0);
        });
    }

    fn change(&mut self, host: &str, change: impl FnOnce(&mut HostEntry)) {
        if let Some(entry) = self.0.get_mut(host) {
            change(entry);
            if entry.is_unused() {
                self.0.remove(host);
            }
            return;
        }
        let mut entry = HostEntry::default();
        change(&mut entry);
        if !entry.is_unused() {
            self.0.insert(host.to_owned(), entry);
        }
    }
}

/// The hosts to which VMs of a scope are on their way.
pub(crate) fn target_hosts(scope: Option<&Scope>) -> impl Iterator<Item = &str> {
    scope.into_iter().flat_map(|scope| &scope.events).filter_map(|event| event.target_host.as_deref())
}

/// The hosts that VMs of a scope are on.
pub(crate) fn hosts_of(scope: Option<&Scope>) -> BTreeSet<&str> {
    scope.into_iter().flat_map(|scope| &scope.members).filter_map(|member| member.host.as_deref()).collect()
}

fn vms_by_host(scope: Option<&Scope>) -> BTreeMap<&str, usize> {
    let members = scope.into_iter().flat_map(|scope| &scope.members);
    let mut vms = BTreeMap::new();
    for host in members.filter_map(|member| member.host.as_deref()).chain(target_hosts(scope)) {
        *vms.entry(host).or_default() += 1;
    }
    vms
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use notbefore_core::samples::{self, event, operation, operation_id, operator, vm};
    use notbefore_core::{Cause, Event, Member};
    use notbefore_store::Revision;

    use super::*;

    fn scope(hosts: &[&str], target: Option<&str>) -> Scope {
        let member = |(n, host): (usize, &&str)| Member {
            host: Some((*host).to_owned()),
            ..samples::member(vm(n as u128))
        };
        let members: Vec<Member> = hosts.iter().enumerate().map(member).collect();
        let moving = event(1, Cause::HostRedeploy, &[vm(0)]);
        let events = target.map(|host| Event { target_host: Some(host.to_owned()), ..moving });
        Scope { members, events: events.into_iter().collect(), ..samples::scope("web", &[]) }
    }

    fn held(name: &str, state: HostState) -> Option<Revisioned<Host>> {
        let host = Host { name: name.to_owned(), state, since: samples::now(), by: operator() };
        Some(Revisioned { revision: Revision(1), value: Arc::new(host) })
    }

    fn free(hosts: &HostIndex) -> Vec<(String, usize)> {
        let mut free: Vec<_> = hosts.free().iter().map(|host| (host.name.to_owned(), host.vms)).collect();
        free.sort();
        free
    }

    #[test]
    fn hosts_take_vms_while_they_are_ok_and_without_open_operation() {
        let mut hosts = HostIndex::default();
        let one = scope(&["h1", "h1", "h2"], None);
        hosts.put_scope(&one.id(), None, Some(&one));
        assert_eq!(free(&hosts), [("h1".to_owned(), 2), ("h2".to_owned(), 1)], "without records they are ok");

        hosts.put_record("h1", held("h1", HostState::Degraded));
        hosts.put_record("h3", held("h3", HostState::Ok));
        assert_eq!(free(&hosts), [("h2".to_owned(), 1), ("h3".to_owned(), 0)]);

        let moving = scope(&["h1", "h1", "h2"], Some("h3"));
        hosts.put_scope(&one.id(), Some(&one), Some(&moving));
        assert_eq!(free(&hosts)[1], ("h3".to_owned(), 1), "a VM is on its way there");

        let on_h2 = Operation { host: Some("h2".to_owned()), ..operation(1, Cause::HostFreeze, Vec::new()) };
        hosts.put_operation(operation_id(1), None, Some(&on_h2));
        assert_eq!(free(&hosts), [("h3".to_owned(), 1)]);
        assert_eq!(hosts.operations("h2").collect::<Vec<_>>(), [operation_id(1)]);
        hosts.put_operation(operation_id(1), Some(&on_h2), None);
        assert_eq!(free(&hosts).len(), 2);
    }

    #[test]
    fn host_is_known_by_its_record_or_its_vms() {
        let mut hosts = HostIndex::default();
        let one = scope(&["h1"], None);
        hosts.put_scope(&one.id(), None, Some(&one));
        hosts.put_record("h1", held("h1", HostState::Ok));
        assert_eq!((hosts.is_known("h1"), hosts.vms("h1"), hosts.scopes("h1").count()), (true, 1, 1));
        let moved = scope(&["h2"], None);
        hosts.put_scope(&one.id(), Some(&one), Some(&moved));
        assert_eq!((hosts.is_known("h1"), hosts.vms("h1"), hosts.is_known("h2")), (true, 0, true));
        hosts.put_record("h1", None);
        hosts.put_scope(&one.id(), Some(&moved), None);
        assert!(hosts.0.is_empty(), "{hosts:?}");
    }
}
