//! Faults of the guest listener, as operators and rehearsals add them: names of VMs are resolved here.
//!
//! Faults live in memory: a restart ends them.

use std::ops::Bound;
use std::sync::Arc;

use notbefore_core::VmId;
use notbefore_core::access::Prefix;
use notbefore_wire::operator::faults::{Fault, FaultEffect, FaultError, NewFault};

use crate::clock::Clock;
use crate::guest::faults::FAULTS_MAX;
use crate::guest::interception::Interception;
use crate::names::{self, NameError};
use crate::runtime::EngineHandle;
use crate::view::{ScopeView, Views};
use crate::wait_queues::Affected;

/// Why a fault was not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddFaultError {
    #[error(transparent)]
    Fault(#[from] FaultError),
    #[error(transparent)]
    Vm(#[from] NameError),
    #[error(
        "{FAULTS_MAX} faults are active, the most that there may be; end some with 'notbefore fault clear'"
    )]
    TooMany,
}

/// The faults of a service's guest listener.
pub struct Faults {
    interception: Arc<Interception>,
    views: Arc<Views>,
    engine: EngineHandle,
    clock: Arc<dyn Clock>,
}

impl Faults {
    pub(crate) fn new(
        interception: Arc<Interception>,
        views: Arc<Views>,
        engine: EngineHandle,
        clock: Arc<dyn Clock>,
    ) -> Faults {
        Faults { interception, views, engine, clock }
    }

    /// Adds a fault. Polls of its VM that are held are answered at once, so that the next ones are affected.
    pub fn add(&self, fault: NewFault) -> Result<Fault, AddFaultError> {
        let (mut fault, effect) = fault.check()?;
        let view = self.views.newest();
        let vm = fault.vm.as_deref().map(|name| names::resolve(&view, name)).transpose()?;
        fault.vm = vm.map(|vm| view.scope_of(vm).map_or(vm.to_string(), |scope| names::path(scope, vm)));
        let now = self.clock.now();
        let id = vm.map(|VmId(id)| id);
        let added = self.interception.with_faults(|faults| faults.add(fault, effect, id, now));
        let added = added.ok_or(AddFaultError::TooMany)?;
        self.views.wait_queues().notify(id.map_or(Affected::All, Affected::Vm));
        if effect == FaultEffect::NotEnabled {
            match vm {
                Some(vm) => view.scope_of(vm).into_iter().for_each(|scope| self.forget_polls(scope)),
                None => {
                    let root = Prefix::root();
                    let all = view.scopes_below(&root, Bound::Unbounded);
                    all.for_each(|(_, scope)| self.forget_polls(scope));
                }
            }
        }
        let vm = added.fault.vm.as_deref().unwrap_or("all VMs");
        tracing::warn!(fault = added.id, kind = %added.fault.kind, vm, "guest listener: fault added");
        Ok(added)
    }

    /// Makes a scope not enabled until its next poll.
    fn forget_polls(&self, scope: &ScopeView) {
        self.engine.forget_polls(scope.scope.id());
        // Afterwards, so that the next report reaches the engine later.
        scope.polls.release_report();
    }

    /// The active faults, in the order in which they were added.
    pub fn list(&self) -> Vec<Fault> {
        let now = self.clock.now();
        self.interception.with_faults(|faults| faults.list(now))
    }

    /// Ends a fault, or all of them, and releases requests that wait because of it; returns how many faults.
    pub fn clear(&self, id: Option<u64>) -> usize {
        let cleared = self.interception.clear_faults(id, self.clock.now());
        if cleared > 0 {
            tracing::warn!(cleared, "guest listener: faults ended");
        }
        cleared
    }

    /// Requests that were affected, by kind of fault.
    pub fn interception(&self) -> &Interception {
        &self.interception
    }
}
