//! Invariants of the records of hosts, for each commit.

use notbefore_core::{Cause, HostState, Operation, OperationState, Outcome};

use super::{Check, ensure_also};
use crate::conformance::Written;
use crate::view::{Record, View};

/// **A host with a VM has a record**: it is created with the first VM, or before it.
pub fn hosts_have_records(written: &Written, view: &View) -> Check {
    const WORDS: &str = "a host with a VM has a record";
    let creates = |host: &str| {
        let created = |record: &Record| matches!(record, Record::Host(name, Some(_)) if name == host);
        written.records.iter().any(created)
    };
    let scopes = written.scopes.values().flatten();
    for host in scopes.flat_map(|scope| &scope.members).filter_map(|member| member.host.as_deref()) {
        ensure_also(view.hosts.contains_key(host) || creates(host), WORDS, || host.to_owned())?;
    }
    Ok(())
}

/// **A host's state is what an operation said last**: a degraded or failed host, or a reboot that was carried out.
pub fn host_states_follow_operations(written: &Written, view: &View) -> Check {
    const WORDS: &str = "a host's state is what an operation said last";
    let before = |name: &str| view.hosts.get(name).map_or(HostState::Ok, |host| host.state);
    let said = |name: &str| {
        let of_host = |one: &&std::rc::Rc<Operation>| one.host.as_deref() == Some(name);
        written.operations.values().filter(of_host).find_map(|one| said_by(one, view))
    };
    for record in &written.records {
        let Record::Host(name, host) = record else { continue };
        let after = host.as_ref().map(|host| host.state);
        let expected = said(name).unwrap_or(before(name));
        ensure_also(after == Some(expected), WORDS, || format!("{name}: {after:?}, not {expected:?}"))?;
    }
    for name in written.operations.values().filter_map(|one| one.host.as_deref()) {
        let expected = said(name).unwrap_or(before(name));
        let is_written = |record: &Record| matches!(record, Record::Host(host, _) if host == name);
        let is_same = expected == before(name) || written.records.iter().any(is_written);
        ensure_also(is_same, WORDS, || format!("{name} is not {expected:?}"))?;
    }
    Ok(())
}

fn said_by(operation: &Operation, view: &View) -> Option<HostState> {
    let is_new = !view.operations.contains_key(&operation.id);
    let is_done = operation.targets.iter().any(|target| target.outcome == Some(Outcome::Completed));
    let is_closed = operation.state == OperationState::Closed;
    if is_new && operation.cause == Cause::PredictedFailure {
        Some(HostState::Degraded)
    } else if is_new && operation.cause == Cause::HostFailure {
        Some(HostState::Failed)
    } else {
        (operation.cause == Cause::HostReboot && is_closed && is_done).then_some(HostState::Ok)
    }
}
