//! Lines about events in the service's log: scheduled, read, approved, started, ended.
//!
//! A task follows the store's watch, so a line says what is durable, whatever caused it. The number of lines is limited
//! ([`crate::vm_log::lines`]).

use std::ops::ControlFlow;
use std::sync::Arc;

use notbefore_store::{Revision, Store};
use notbefore_wire::operator::{Fact, FactDetail};

use crate::clock::Clock;
use crate::follow::{Followed, follow_commits};
use crate::names::first_of;
use crate::operator::access::CommandReasons;
use crate::operator::facts;
use crate::vm_log::VmLog;

/// Log target.
pub const TARGET: &str = "notbefore::event";
/// Maximum VM names in a line.
const NAMES_MAX: usize = 10;

/// Logs changes of events after a revision, forever. Does nothing if the log's filter excludes them.
pub async fn write(store: Arc<dyn Store>, after: Revision, vm_log: Arc<VmLog>, clock: Arc<dyn Clock>) {
    if !tracing::enabled!(target: TARGET, tracing::Level::INFO) {
        return;
    }
    let mut log = |batch| {
        for (_, fact) in facts::of_batch(&batch, CommandReasons::SHOWN, |_, _| true) {
            let Some((verb, detail)) = described(&fact.what) else { continue };
            if vm_log.admit_event_line(clock.now()) {
                write_line(&fact, verb, &detail);
            }
        }
        ControlFlow::Continue(())
    };
    let mut after = after;
    while let Followed::Compacted { oldest, .. } = follow_commits(&*store, after, || (), &mut log).await {
        tracing::warn!(target: TARGET, "changes of events came too fast for the log: some are missing in it");
        after = oldest;
    }
}

fn write_line(fact: &Fact, verb: &str, detail: &str) {
    let Fact { event, scope, vms, by, .. } = fact;
    let (event, vms) = (event.map(tracing::field::display), first_of(vms, NAMES_MAX));
    let detail = Some(detail).filter(|detail| !detail.is_empty());
    tracing::info!(target: TARGET, event, scope = scope.as_deref(), vms, %by, detail, "event {verb}");
}

/// A step of an event's life as a verb, with details. None for other facts.
fn described(what: &FactDetail) -> Option<(&'static str, String)> {
    Some(match what {
        FactDetail::EventScheduled { cause, not_before: Some(at) } => {
            ("scheduled", format!("{cause}, not before {at}"))
        }
        FactDetail::EventScheduled { cause, not_before: None } => {
            ("scheduled", format!("{cause}, without notice"))
        }
        FactDetail::EventRead { api_version } => ("read", format!("at api-version {api_version}")),
        FactDetail::EventApproved { .. } => ("approved", String::new()),
        FactDetail::EventStarted { why, .. } => ("started", why.clone()),
        FactDetail::EventCompleted { .. } => ("completed", String::new()),
        FactDetail::EventCancelled { why, .. } => ("cancelled", why.clone().unwrap_or_default()),
        FactDetail::EventReleased { .. }
        | FactDetail::EventReady { .. }
        | FactDetail::DriverTookOver { .. }
        | FactDetail::DriverAttemptFailed { .. }
        | FactDetail::DriverFailed { .. }
        | FactDetail::DriverRetried { .. }
        | FactDetail::OperationRequested { .. }
        | FactDetail::OperationCancelled
        | FactDetail::OperationStarted { .. }
        | FactDetail::HostCommandTookOver { .. }
        | FactDetail::HostCommandAttemptFailed { .. }
        | FactDetail::HostCommandFailed { .. }
        | FactDetail::HostCommandRetried { .. }
        | FactDetail::HostCommandStarted { .. }
        | FactDetail::HostCommandSucceeded { .. }
        | FactDetail::OperationCompleted
        | FactDetail::ScopeCreated
        | FactDetail::ScopeRemoved
        | FactDetail::PolicyChanged
        | FactDetail::VmAdded
        | FactDetail::VmChanged
        | FactDetail::VmRemoved
        | FactDetail::VmMoved { .. }
        | FactDetail::HostStateChanged { .. }
        | FactDetail::HostForgotten { .. }
        | FactDetail::VmDeallocated
        | FactDetail::VmStarted
        | FactDetail::TokenCreated { .. }
        | FactDetail::TokenRevoked { .. }
        | FactDetail::SignedIn { .. }
        | FactDetail::SignInLinkCreated
        | FactDetail::ClockAccepted
        | FactDetail::HandOverRequested { .. }
        | FactDetail::UpgradeFinished { .. }
        | FactDetail::NodeForgotten { .. }
        | FactDetail::RequestRefused { .. }
        | FactDetail::FurtherRefusals { .. }
        | FactDetail::Unknown { .. } => return None,
    })
}
