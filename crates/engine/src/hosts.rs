//! Plans that change the records of hosts.
//!
//! A host's record is created in the transaction that puts its first VM on it ([`Draft::create_hosts`]). Operations
//! report what is known about a host, an operator says that it is ok, or removes a host that nothing names.

use std::collections::BTreeSet;

use notbefore_core::{Fact, Host, HostState, Operation, OperationState, Refusal, Scope};

use crate::draft::Draft;
use crate::plan::{Plan, Planner};
use crate::records;
use crate::request::{Answer, Failure, HostChange};
use crate::state::{hosts_of, target_hosts};

impl Planner<'_> {
    pub(crate) fn plan_host(&self, change: &HostChange) -> Result<Plan, Failure> {
        let (HostChange::Ok(host) | HostChange::Forget(host)) = change;
        if !self.state.is_known_host(host) {
            return Err(Refusal::UnknownHost(host.clone()).into());
        }
        let mut draft = self.draft();
        match change {
            HostChange::Ok(host) => self.set_host_state(&mut draft, host, HostState::Ok),
            HostChange::Forget(host) => self.forget_host(&mut draft, host)?,
        }
        Ok(self.write(draft, Answer::Done))
    }

    /// Records the state of a host, if it changes. A host without a record is ok.
    pub(crate) fn set_host_state(&self, draft: &mut Draft<'_>, host: &str, state: HostState) {
        let held = self.state.host(host);
        if held.map_or(HostState::Ok, |held| held.value.state) == state {
            return;
        }
        let record = Host { name: host.to_owned(), state, since: self.now, by: self.by.clone() };
        draft.put(records::host(host), held.map(|held| held.revision), &record);
        let fact = Fact::HostStateChanged { host: host.to_owned(), state };
        draft.facts(None, vec![self.recorded(fact)]);
    }

    /// Records what the end of an operation says about its host.
    pub(crate) fn close_host_operation(&self, draft: &mut Draft<'_>, operation: &Operation) {
        let Some(host) = operation.host.as_deref() else { return };
        let held = self.state.host(host).filter(|_| operation.state == OperationState::Closed);
        if let Some(held) = held {
            self.set_host_state(draft, host, held.value.state.after(operation));
        }
    }

    fn forget_host(&self, draft: &mut Draft<'_>, host: &str) -> Result<(), Refusal> {
        let (vms, operations) = (self.state.vms_on(host), self.state.operations_on(host));
        if vms > 0 || !operations.is_empty() {
            return Err(Refusal::HostInUse { host: host.to_owned(), vms, operations });
        }
        if let Some(held) = self.state.host(host) {
            draft.remove(records::host(host), held.revision);
            draft.facts(None, vec![self.recorded(Fact::HostForgotten { host: host.to_owned() })]);
        }
        Ok(())
    }
}

impl Draft<'_> {
    /// Creates the records of hosts on which the scope has its first VM. Locks a host without VMs, so that it is not
    /// removed while its first VM arrives, or an event starts that moves one there.
    pub(crate) fn create_hosts(&mut self, before: Option<&Scope>, after: &Scope) {
        let known_targets: BTreeSet<&str> = target_hosts(before).collect();
        for host in target_hosts(Some(after)).filter(|host| !known_targets.contains(host)) {
            if self.state().vms_on(host) == 0 {
                self.lock(records::host(host));
            }
        }
        if before.is_some_and(|before| before.members == after.members) {
            return;
        }
        let known = hosts_of(before);
        for host in hosts_of(Some(after)).difference(&known) {
            let key = records::host(host);
            if self.state().vms_on(host) == 0 || self.state().host(host).is_none() {
                self.lock(key.clone());
            }
            if self.state().host(host).is_none() {
                let (since, by) = (self.now(), self.actor());
                let record = Host { name: (*host).to_owned(), state: HostState::Ok, since, by };
                self.accompany(key, &record);
            }
        }
    }
}
