//! Questions: what something would come to. They are answered from the state as it is, change nothing and are never
//! stored.

use std::net::IpAddr;

use jiff::Timestamp;
use notbefore_core::{Actor, ScopeId};
use notbefore_store::Revision;

use super::Engine;
use crate::fleet::check_revision;
use crate::plan::Planner;
use crate::request::{Failure, NewOperation, Preview, ScopeChange};
use crate::scope_plan::ScopePlan;

impl Engine {
    /// What announcing an operation would come to.
    pub fn preview(&self, by: &Actor, new: &NewOperation, now: Timestamp) -> Result<Preview, Failure> {
        self.planner(by, None, &|scope| self.is_enabled(scope, now), now).preview(new)
    }

    /// What a change of a scope would come to, if the scope still has the revision that the caller saw.
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

    /// What plans are made from.
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
            count: self.facts_written,
            from,
        }
    }
}
