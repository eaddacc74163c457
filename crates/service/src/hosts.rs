//! Index from hosts to their records and VMs in the published view, so that lists of hosts or of a host's VMs do not scan
//! the fleet. A host is listed while it has a record or a VM.
//!
//! The index stores positions: the indexes of a host's VMs among the members of their scope. A scope that changes
//! without VMs moving costs one comparison.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;
use notbefore_core::{Host, Scope, ScopeId};
use notbefore_engine::Revisioned;
use notbefore_wire::natural;

/// For each scope with VMs on a host: their indexes among its members.
pub type Placements = OrdMap<ScopeId, Arc<[usize]>>;

/// A name in natural order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HostName(Arc<str>);

impl Ord for HostName {
    fn cmp(&self, other: &Self) -> Ordering {
        natural::compare(&self.0, &other.0)
    }
}

impl PartialOrd for HostName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, Debug, Default)]
pub struct HostEntry {
    /// None only for a host whose VMs an older release recorded.
    pub record: Option<Revisioned<Host>>,
    pub places: Placements,
}

/// Hosts, in the natural order of their names.
#[derive(Clone, Debug, Default)]
pub struct Hosts(OrdMap<HostName, HostEntry>);

impl Hosts {
    /// Updates the index after a change of a scope.
    pub fn change(&mut self, id: &ScopeId, before: Option<&Scope>, after: Option<&Scope>) {
        if before.map(|scope| &scope.members) == after.map(|scope| &scope.members) {
            return;
        }
        let (before, after) = (places(before), places(after));
        for host in before.keys().filter(|host| !after.contains_key(*host)) {
            self.edit(host, |entry| drop(entry.places.remove(id)));
        }
        for (host, positions) in after {
            if before.get(host) != Some(&positions) {
                self.edit(host, |entry| drop(entry.places.insert(id.clone(), positions.into())));
            }
        }
    }

    /// Updates the index after a change of a host's record.
    pub fn set_record(&mut self, host: &str, record: Option<Revisioned<Host>>) {
        self.edit(host, |entry| entry.record = record);
    }

    fn edit(&mut self, host: &str, edit: impl FnOnce(&mut HostEntry)) {
        let name = HostName(host.into());
        let entry = self.0.entry(name.clone()).or_default();
        edit(entry);
        if entry.record.is_none() && entry.places.is_empty() {
            self.0.remove(&name);
        }
    }

    pub fn get(&self, host: &str) -> Option<&HostEntry> {
        self.0.get(&HostName(host.into()))
    }

    /// Hosts after `after`, sorted.
    pub fn after(&self, after: Option<&str>) -> impl Iterator<Item = (&Arc<str>, &HostEntry)> {
        let from = after.map_or(Bound::Unbounded, |host| Bound::Excluded(HostName(host.into())));
        self.0.range((from, Bound::Unbounded)).map(|(host, entry)| (&host.0, entry))
    }
}

fn places(scope: Option<&Scope>) -> BTreeMap<&str, Vec<usize>> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (position, member) in scope.iter().flat_map(|scope| scope.members.iter().enumerate()) {
        if let Some(host) = &member.host {
            places.entry(host).or_default().push(position);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use notbefore_core::samples::{self, member, vm};
    use notbefore_core::{HostState, Member};
    use notbefore_store::Revision;

    use super::*;

    fn scope(hosts: &[Option<&str>]) -> Scope {
        let hosts = hosts.iter().enumerate();
        let member = |(n, host): (usize, &Option<&str>)| Member {
            host: host.map(str::to_owned),
            ..member(vm(n as u128))
        };
        Scope { members: hosts.map(member).collect(), ..samples::scope("web", &[]) }
    }

    #[test]
    fn index_follows_added_moved_and_removed_vms() {
        let mut hosts = Hosts::default();
        let id = scope(&[]).id();
        let on = |hosts: &Hosts, host: &str| {
            hosts.get(host).and_then(|entry| entry.places.get(&id)).map(|places| places.to_vec())
        };
        let names = |hosts: &Hosts| hosts.after(None).map(|(host, _)| host.to_string()).collect::<Vec<_>>();

        let one = scope(&[Some("h2"), Some("h1"), None, Some("h1")]);
        hosts.change(&id, None, Some(&one));
        assert_eq!((on(&hosts, "h1"), on(&hosts, "h2")), (Some(vec![1, 3]), Some(vec![0])));
        assert_eq!(names(&hosts), ["h1", "h2"]);

        // A VM moves to a new host, which leaves its old one empty.
        let two = scope(&[Some("h3"), Some("h1"), None, Some("h1")]);
        hosts.change(&id, Some(&one), Some(&two));
        assert_eq!((on(&hosts, "h2"), on(&hosts, "h3")), (None, Some(vec![0])));
        assert_eq!(names(&hosts), ["h1", "h3"]);
        assert_eq!(hosts.after(Some("h1")).count(), 1);

        // A VM is removed, so the indexes of others change.
        let three = scope(&[Some("h1"), None, Some("h1")]);
        hosts.change(&id, Some(&two), Some(&three));
        assert_eq!(on(&hosts, "h1"), Some(vec![0, 2]));
        hosts.change(&id, Some(&three), None);
        assert!(names(&hosts).is_empty());
    }

    #[test]
    fn host_with_a_record_stays_without_vms() {
        let mut hosts = Hosts::default();
        let one = scope(&[Some("h1")]);
        let host = Host {
            name: "h1".to_owned(),
            state: HostState::Ok,
            since: samples::now(),
            by: samples::operator(),
        };
        hosts.change(&one.id(), None, Some(&one));
        hosts.set_record("h1", Some(Revisioned { revision: Revision(1), value: Arc::new(host) }));
        hosts.change(&one.id(), Some(&one), None);
        assert_eq!(hosts.get("h1").map(|entry| entry.places.len()), Some(0));
        hosts.set_record("h1", None);
        assert!(hosts.get("h1").is_none());
    }

    #[test]
    fn hosts_are_in_natural_order() {
        let mut hosts = Hosts::default();
        let one = scope(&[Some("h10"), Some("h2"), Some("h1")]);
        hosts.change(&one.id(), None, Some(&one));
        let after = |after| hosts.after(after).map(|(host, _)| host.to_string()).collect::<Vec<_>>();
        assert_eq!(after(None), ["h1", "h2", "h10"]);
        assert_eq!(after(Some("h2")), ["h10"]);
        assert_eq!(after(Some("h3")), ["h10"], "the last host shown may be gone");
    }
}
