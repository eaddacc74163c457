//! Dry runs: what a command would do. Answered from the current state, without changes or writes.

use std::collections::HashMap;
use std::net::IpAddr;

use jiff::Timestamp;
use notbefore_core::{Actor, FreeHost, FreeHosts, ScopeId};
use notbefore_store::Revision;

use super::Engine;
use crate::draft::SplitAt;
use crate::fleet::check_revision;
use crate::plan::Planner;
use crate::request::{Failure, NewOperation, Preview, ScopeChange};
use crate::scope_plan::ScopePlan;
use crate::state::OwnRecord;

impl Engine {
    /// What announcing an operation would do.
    pub fn preview(&self, by: &Actor, new: &NewOperation, now: Timestamp) -> Result<Preview, Failure> {
        self.planner(by, None, &|scope| self.is_enabled(scope, now), now).preview(new)
    }

    /// What a change of a scope would do, if the scope still has the caller's revision.
    pub fn plan_scope(
        &self,
        by: &Actor,
        change: &ScopeChange,
        if_revision: Option<Revision>,
        now: Timestamp,
    ) -> Result<ScopePlan, Failure> {
        if let Some(seen) = if_revision {
            check_revision(seen, self.state.scope(&change.scope()))?;
        }
        self.planner(by, None, &|scope| self.is_enabled(scope, now), now).plan_scope(change)
    }

    /// The input of plans.
    pub(super) fn planner<'a>(
        &'a self,
        by: &'a Actor,
        from: Option<IpAddr>,
        enabled: &'a dyn Fn(&ScopeId) -> bool,
        now: Timestamp,
    ) -> Planner<'a> {
        Planner {
            state: &self.state,
            settings: &self.settings.domain,
            enabled,
            now,
            by,
            node: &self.settings.node,
            runner: &self.runner,
            count: self.facts_written,
            from,
            split_at: SplitAt::default(),
            free_hosts: self,
        }
    }
}

/// The hosts that take VMs, with the VMs that commits in flight move there: events that start in the same second do not all
/// choose the same host.
impl FreeHosts for Engine {
    fn free_hosts(&self) -> Vec<FreeHost<'_>> {
        let mut moving: HashMap<&str, usize> = HashMap::new();
        let records =
            self.jobs.values().filter(|job| job.in_flight.is_some()).flat_map(|job| &job.own_records);
        for (_, record) in records {
            let OwnRecord::Scope(scope) = record else { continue };
            let before = self.state.scope(&scope.id()).map(|held| &held.value);
            for event in &scope.events {
                let Some(host) = event.target_host.as_deref() else { continue };
                let is_counted =
                    before.and_then(|scope| scope.event(event.id)?.target_host.as_ref()).is_some();
                *moving.entry(host).or_default() += usize::from(!is_counted);
            }
        }
        let mut free = self.state.free_hosts();
        free.iter_mut().for_each(|host| host.vms += moving.get(host.name).copied().unwrap_or(0));
        free
    }
}
