//! Hosts: their records, and placement, which chooses the host to which a redeployed VM moves.
//!
//! A host's record begins with the first VM on it and stays when its last VM leaves: a host without VMs is a host,
//! until an operator removes it. A host that VMs name and that has no record is ok. *In maintenance* is not stored: it
//! follows from the host's open operations.
//!
//! **Placement** is greedy and stateless. The hosts that take VMs, and how full they are, come from outside, like
//! `enabled`: a scope knows its own VMs only.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::cause::Cause;
use crate::event::Outcome;
use crate::operation::{Operation, OperationState};

/// A host as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    pub name: String,
    pub state: HostState,
    /// The time of the last change of the state; of the first VM, if it never changed.
    pub since: Timestamp,
    /// The actor of that change.
    pub by: Actor,
}

/// What is known about a host's hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// It takes VMs.
    Ok,
    /// It is expected to fail.
    Degraded,
    Failed,
}

words!(HostState { Ok => "ok", Degraded => "degraded", Failed => "failed" });

impl HostState {
    /// The state that a new operation with this cause reports of its host; none if it says nothing about the hardware.
    pub fn reported_by(cause: Cause) -> Option<Self> {
        match cause {
            Cause::PredictedFailure => Some(Self::Degraded),
            Cause::HostFailure => Some(Self::Failed),
            Cause::HostFreeze
            | Cause::HostReboot
            | Cause::HostRedeploy
            | Cause::LiveMigration
            | Cause::Eviction
            | Cause::Rebalance
            | Cause::Deletion
            | Cause::UserRestart
            | Cause::UserRedeploy => None,
        }
    }

    /// The state of the host after an operation on it: a reboot that was carried out repairs it.
    pub fn after(self, operation: &Operation) -> Self {
        let is_over = operation.state == OperationState::Closed;
        let completed = |outcome: Option<Outcome>| outcome == Some(Outcome::Completed);
        let is_done = operation.targets.iter().any(|target| completed(target.outcome));
        match operation.cause == Cause::HostReboot && is_over && is_done {
            true => Self::Ok,
            false => self,
        }
    }
}

/// A host that takes VMs: it is ok, and has no open operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeHost<'a> {
    pub name: &'a str,
    /// The VMs on it and those on their way to it, of all scopes.
    pub vms: usize,
}

/// The hosts that take VMs, as an input. They are listed only when an event that moves a VM starts.
pub trait FreeHosts {
    /// In any order, each once.
    fn free_hosts(&self) -> Vec<FreeHost<'_>>;
}

impl fmt::Debug for dyn FreeHosts + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FreeHosts")
    }
}

/// No host takes a VM.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFreeHosts;

impl FreeHosts for NoFreeHosts {
    fn free_hosts(&self) -> Vec<FreeHost<'_>> {
        Vec::new()
    }
}

/// Chooses the new host of a VM: another than its own; one without a VM of the scope before the others, then the one
/// with the fewest VMs, then by name. None if there is no other host.
pub fn choose<'a>(
    free: impl IntoIterator<Item = FreeHost<'a>>,
    own: &str,
    has_vm_of_scope: impl Fn(&str) -> bool,
) -> Option<&'a str> {
    let others = free.into_iter().filter(|host| host.name != own);
    others.min_by_key(|host| (has_vm_of_scope(host.name), host.vms, host.name)).map(|host| host.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::TargetState;
    use crate::samples::{operation, target, vm};

    #[test]
    fn host_without_vm_of_scope_then_emptiest_then_by_name_is_chosen() {
        type Row<'a> = (&'a str, &'a [(&'a str, usize)], &'a [&'a str], Option<&'a str>);
        let rows: [Row<'_>; 7] = [
            ("no host", &[], &[], None),
            ("only its own", &[("h1", 0)], &[], None),
            ("never its own", &[("h1", 0), ("h2", 9)], &["h2"], Some("h2")),
            ("by name", &[("h3", 2), ("h2", 2)], &[], Some("h2")),
            ("the emptiest", &[("h2", 2), ("h3", 1)], &[], Some("h3")),
            ("without the scope first", &[("h2", 0), ("h3", 7)], &["h2"], Some("h3")),
            ("all have the scope", &[("h2", 4), ("h3", 3)], &["h2", "h3"], Some("h3")),
        ];
        for (name, free, with_scope, expected) in rows {
            let free = free.iter().map(|(name, vms)| FreeHost { name, vms: *vms });
            let chosen = choose(free, "h1", |host| with_scope.contains(&host));
            assert_eq!(chosen, expected, "{name}");
        }
    }

    #[test]
    fn completed_reboot_repairs_a_host() {
        use HostState::{Degraded, Failed, Ok};
        let closed = |cause, outcome| {
            let mut part = target("web", 0, 1, &[vm(1)]);
            (part.state, part.outcome) = (TargetState::Ended, outcome);
            Operation { state: OperationState::Closed, ..operation(1, cause, vec![part]) }
        };
        let done = Some(Outcome::Completed);
        let running = Operation { state: OperationState::Open, ..closed(Cause::HostReboot, done) };
        for (name, before, operation, after) in [
            ("reboot", Degraded, closed(Cause::HostReboot, done), Ok),
            ("reboot after a failure", Failed, closed(Cause::HostReboot, done), Ok),
            ("cancelled", Degraded, closed(Cause::HostReboot, Some(Outcome::Cancelled)), Degraded),
            ("unknown", Degraded, closed(Cause::HostReboot, None), Degraded),
            ("not over", Degraded, running, Degraded),
            ("freeze", Degraded, closed(Cause::HostFreeze, done), Degraded),
            ("its VMs were moved", Degraded, closed(Cause::PredictedFailure, done), Degraded),
            ("its VMs were restarted", Failed, closed(Cause::HostFailure, done), Failed),
        ] {
            assert_eq!(before.after(&operation), after, "{name}");
        }
    }

    #[test]
    fn description_of_the_host_that_a_vm_has_left_does_not_move_it_back() {
        let mut member = crate::samples::member(crate::samples::vm(1));
        let on = |member: &crate::Member| (member.host.clone(), member.moved_from.clone());
        let named = |host: &str| Some(host.to_owned());
        member.place_on(Some("h1"));
        member.move_to("h2");
        member.move_to("h3");
        assert_eq!(on(&member), (named("h3"), named("h1")));
        member.place_on(Some("h1"));
        member.place_on(None);
        assert_eq!(on(&member), (named("h3"), named("h1")), "nothing new is described");
        let mut back = member.clone();
        back.move_to("h1");
        assert_eq!(on(&back), (named("h1"), None));
        member.place_on(Some("h4"));
        assert_eq!(on(&member), (named("h4"), None));
        member.move_to("h2");
        member.place_on(Some("h2"));
        assert_eq!(on(&member), (named("h2"), None), "it is named where it is now");
    }
}
