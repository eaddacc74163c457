//! Dry runs: what a command would do. Answered from the current state, without changes or writes.

use std::net::IpAddr;

use jiff::Timestamp;
use notbefore_core::{Actor, ScopeId};
use notbefore_store::Revision;

use super::Engine;
use crate::draft::SplitAt;
use crate::fleet::check_revision;
use crate::plan::Planner;
use crate::request::{Failure, NewOperation, Preview, ScopeChange};
use crate::scope_plan::ScopePlan;

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
        }
    }
}
