//! Operations: one request ("patch host h7 on Friday"), split into one event per scope and update domain.
//!
//! The record lists the parts that are still to be opened, so that a crash in the middle can be completed later. For
//! [`Release::Together`] it also lists the approved parts. That progress is derived state: the scopes hold the
//! approvals, the operation follows, and it is recomputed after a crash. Otherwise every approval on a host with
//! VMs in hundreds of scopes would contend for one hot record.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::apply::NewEvent;
use crate::cause::{Cause, Grouping};
use crate::event::{DriverKind, Outcome, Resource};
use crate::host_command::HostCommand;
use crate::ids::{EventId, OperationId, ScopeId};
use crate::joint_start::JointStart;

/// An operation as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    pub id: OperationId,
    pub cause: Cause,
    pub by: Actor,
    pub requested_at: Timestamp,
    /// Set for an operation on a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Shared by all its events; none for a cause without notice.
    pub not_before: Option<Timestamp>,
    /// Whether the request gave NotBefore.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub time_given: bool,
    /// Expected interruption in seconds, as guests see it.
    pub duration_s: i32,
    /// Shown to guests.
    pub description: String,
    pub driver: DriverKind,
    pub release: Release,
    /// Sorted by scope, then update domain.
    pub targets: Vec<Target>,
    pub state: OperationState,
    /// Whether every part is approved or gone, so that each may start.
    pub released: bool,
    /// Set for host operations only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joint_start: Option<JointStart>,
    /// Set if the exec driver has a command for the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_command: Option<HostCommand>,
    /// The actor that cancelled the whole operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<Actor>,
    /// The actor that completed the whole operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_by: Option<Actor>,
}

/// How approvals let an operation's events start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Release {
    /// Each event may start once it is approved.
    Each,
    /// An early start needs every event approved or gone.
    Together,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationState {
    /// Some scopes may not have their event yet.
    Opening,
    /// Every scope has its event.
    Open,
    /// Every event has ended.
    Closed,
}

/// A part of an operation: its event in one scope and update domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub scope: ScopeId,
    pub update_domain: u32,
    pub event: EventId,
    /// In the order in which guests see them.
    pub resources: Vec<Resource>,
    pub state: TargetState,
    /// The refusal's code, if the scope refused the event. Such a part has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// How its event ended, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

impl Target {
    /// Raises the state; it never goes back.
    pub fn advance(&mut self, to: TargetState) {
        self.state = self.state.max(to);
    }

    pub fn end(&mut self, outcome: Option<Outcome>) {
        self.state = TargetState::Ended;
        self.outcome = outcome;
    }

    /// Records that the scope refused the event.
    pub fn refuse(&mut self, code: &str) {
        self.state = TargetState::Ended;
        self.refused = Some(code.to_owned());
    }
}

/// The state of one part. States only move down this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetState {
    /// Not known to be approved.
    Waiting,
    /// Approved or started.
    Approved,
    Ended,
}

/// A VM that an operation affects, with its place.
#[derive(Clone, Debug)]
pub struct TargetVm {
    pub scope: ScopeId,
    pub update_domain: u32,
    pub resource: Resource,
}

/// Splits the VMs of an operation into parts, sorted by scope and update domain. Within a part the VMs keep
/// their order.
pub fn targets(id: OperationId, grouping: Grouping, reached: Vec<TargetVm>) -> Vec<Target> {
    let mut parts: BTreeMap<(ScopeId, u32, usize), Vec<Resource>> = BTreeMap::new();
    for (position, vm) in reached.into_iter().enumerate() {
        let alone = match grouping {
            Grouping::PerUpdateDomain => 0,
            Grouping::PerVm => position,
        };
        parts.entry((vm.scope, vm.update_domain, alone)).or_default().push(vm.resource);
    }
    parts
        .into_iter()
        .map(|((scope, update_domain, _), resources)| {
            let alone = match grouping {
                Grouping::PerUpdateDomain => None,
                Grouping::PerVm => resources.first().map(|resource| resource.vm),
            };
            let event = EventId::derive(id, &scope, update_domain, alone);
            Target {
                scope,
                update_domain,
                event,
                resources,
                state: TargetState::Waiting,
                refused: None,
                outcome: None,
            }
        })
        .collect()
}

impl Operation {
    /// The event of one of its parts.
    pub fn event(&self, target: &Target) -> NewEvent {
        NewEvent {
            id: target.event,
            operation: self.id,
            cause: self.cause,
            update_domain: target.update_domain,
            resources: target.resources.clone(),
            not_before: self.not_before,
            duration_s: self.duration_s,
            description: self.description.clone(),
            driver: self.driver,
            release: self.release,
            time_given: self.time_given,
            joint_start: self.joint_start.is_some(),
            waits_for_host: self.host_command.is_some(),
            // A single part has no other parts to wait for.
            released: self.released || self.targets.len() == 1,
        }
    }

    /// The initial start state: a host's reboot or freeze with several parts starts jointly. It stays a host operation
    /// even if parts leave.
    pub fn new_joint_start(host: Option<&str>, cause: Cause, parts: usize) -> Option<JointStart> {
        (host.is_some() && cause.has_joint_start() && parts > 1).then_some(JointStart::Waiting)
    }

    /// Whether it is a host operation with a decided start.
    pub fn has_joint_release(&self) -> bool {
        matches!(self.joint_start, Some(JointStart::Released { .. }))
    }

    /// Whether all parts can start at one moment: they are in one scope, and in one update domain if the cause waits
    /// for others.
    pub fn starts_in_one_scope(&self) -> bool {
        let waits = self.cause.waits_for_other_update_domains();
        self.targets.windows(2).all(|two| {
            two[0].scope == two[1].scope && (!waits || two[0].update_domain == two[1].update_domain)
        })
    }

    /// The update domains of the operation's other parts in the same scope, with which a part takes turns. Empty for
    /// a joint start, or if the cause does not wait for other update domains.
    pub fn other_update_domains(&self, part: &Target) -> Vec<u32> {
        if self.joint_start.is_some() || !self.cause.waits_for_other_update_domains() {
            return Vec::new();
        }
        // Targets are sorted by scope.
        let first = self.targets.partition_point(|other| other.scope < part.scope);
        let here = self.targets[first..].iter().take_while(|other| other.scope == part.scope);
        let apart = |other: &&Target| other.refused.is_none() && other.update_domain != part.update_domain;
        let mut others: Vec<u32> = here.filter(apart).map(|other| other.update_domain).collect();
        others.dedup();
        others
    }

    /// Every scope has its event.
    pub fn opened(&mut self) {
        if self.state == OperationState::Opening {
            self.state = OperationState::Open;
        }
        self.conclude();
    }

    /// Whether its host's command has begun and is neither done nor given up by an operator. It goes on even if all
    /// events have ended, because VMs were removed: the host must not be left in the middle of a reboot.
    pub fn has_unfinished_host_command(&self) -> bool {
        self.host_run().is_some_and(|run| !run.is_finished()) && self.completed_by.is_none()
    }

    /// Derives the state from the parts: released once all are approved or gone, Closed once all have ended and the
    /// command for the host too. A part that is still to be opened is neither.
    fn conclude(&mut self) {
        if self.state == OperationState::Opening {
            return;
        }
        let all_approved = self.targets.iter().all(|target| target.state >= TargetState::Approved);
        if all_approved && self.joint_start.is_none() {
            self.released = true;
        }
        let all_ended = self.targets.iter().all(|target| target.state == TargetState::Ended);
        if all_ended && !self.has_unfinished_host_command() {
            self.state = OperationState::Closed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{operation, operation_id, resource, scope_id, target, vm};

    const WAITING: TargetState = TargetState::Waiting;
    const APPROVED: TargetState = TargetState::Approved;
    const ENDED: TargetState = TargetState::Ended;

    #[test]
    fn vms_are_split_by_scope_and_update_domain() {
        use Grouping::{PerUpdateDomain, PerVm};
        type Parts<'a> = &'a [(&'a str, u32, &'a [u128])];
        let reached = |vms: &[(&str, u32, u128)]| {
            let one = |(scope, update_domain, n): &(&str, u32, u128)| TargetVm {
                scope: scope_id(scope),
                update_domain: *update_domain,
                resource: resource(vm(*n)),
            };
            vms.iter().map(one).collect::<Vec<_>>()
        };
        type Row<'a> = (&'a str, Grouping, &'a [(&'a str, u32, u128)], Parts<'a>);
        let rows: [Row<'_>; 5] = [
            ("one", PerUpdateDomain, &[("a", 0, 1)], &[("a", 0, &[1])]),
            ("shared", PerUpdateDomain, &[("a", 0, 2), ("a", 0, 1)], &[("a", 0, &[2, 1])]),
            ("two domains", PerUpdateDomain, &[("a", 1, 1), ("a", 0, 2)], &[("a", 0, &[2]), ("a", 1, &[1])]),
            ("two scopes", PerUpdateDomain, &[("b", 0, 1), ("a", 0, 2)], &[("a", 0, &[2]), ("b", 0, &[1])]),
            ("each alone", PerVm, &[("a", 0, 2), ("a", 0, 1)], &[("a", 0, &[2]), ("a", 0, &[1])]),
        ];
        for (name, grouping, vms, expected) in rows {
            let parts = targets(operation_id(1), grouping, reached(vms));
            let found: Vec<_> = parts
                .iter()
                .map(|part| (part.scope.clone(), part.update_domain, part.resources.clone()))
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(scope, ud, vms)| {
                    (scope_id(scope), *ud, vms.iter().map(|n| resource(vm(*n))).collect())
                })
                .collect();
            assert_eq!(found, expected, "{name}");
            let again = targets(operation_id(1), grouping, reached(vms));
            assert_eq!(parts, again, "{name}: ids are derived");
            let mut ids: Vec<EventId> = parts.iter().map(|part| part.event).collect();
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), parts.len(), "{name}: each part has its own event");
        }
    }

    #[test]
    fn operation_is_released_and_closed_by_its_parts() {
        use OperationState::{Closed, Open, Opening};
        let whole = Some(JointStart::Waiting);
        type Row<'a> =
            (&'a str, OperationState, &'a [TargetState], Option<JointStart>, (OperationState, bool));
        let rows: [Row<'_>; 8] = [
            ("opened", Opening, &[WAITING, WAITING], None, (Open, false)),
            ("one approved", Open, &[APPROVED, WAITING], None, (Open, false)),
            ("all approved", Open, &[APPROVED, APPROVED], None, (Open, true)),
            ("approved or gone", Open, &[APPROVED, ENDED], None, (Open, true)),
            ("one ended", Open, &[ENDED, WAITING], None, (Open, false)),
            ("all ended", Open, &[ENDED, ENDED], None, (Closed, true)),
            (
                "host operation is decided elsewhere",
                Open,
                &[APPROVED, APPROVED],
                whole.clone(),
                (Open, false),
            ),
            ("host operation closes too", Open, &[ENDED, ENDED], whole, (Closed, false)),
        ];
        for (name, state, parts, joint_start, expected) in rows {
            let part = |state: &TargetState| Target { state: *state, ..target("web", 0, 1, &[vm(1)]) };
            let targets = parts.iter().map(part).collect();
            let mut one = Operation { state, joint_start, ..operation(1, Cause::HostReboot, targets) };
            one.opened();
            assert_eq!((one.state, one.released), expected, "{name}");
        }
    }

    #[test]
    fn parts_in_other_update_domains_of_a_scope_take_turns() {
        let [one, two] = [("a", 0), ("a", 1)];
        let whole = Some(JointStart::Waiting);
        type Rows<'a> = [(&'a str, Cause, &'a [(&'a str, u32)], Option<JointStart>, bool, &'a [u32]); 7];
        let rows: Rows<'_> = [
            ("alone", Cause::HostReboot, &[one], None, true, &[]),
            ("one update domain", Cause::HostReboot, &[one, one], None, true, &[]),
            ("two update domains", Cause::HostReboot, &[one, two], None, false, &[1]),
            ("three", Cause::HostReboot, &[one, two, two, ("a", 2)], None, false, &[1, 2]),
            ("another scope", Cause::HostReboot, &[one, ("b", 1)], None, false, &[]),
            ("user operations do not wait", Cause::UserRestart, &[one, two], None, true, &[]),
            ("host operation starts jointly", Cause::HostReboot, &[one, two], whole, false, &[]),
        ];
        for (name, cause, parts, joint_start, in_one_scope, turns) in rows {
            let part = |(scope, ud): &(&str, u32)| target(scope, *ud, 1, &[vm(1)]);
            let targets = parts.iter().map(part).collect();
            let one = Operation { joint_start, ..operation(1, cause, targets) };
            assert_eq!(one.starts_in_one_scope(), in_one_scope, "{name}");
            assert_eq!(one.other_update_domains(&one.targets[0]), turns, "{name}");
        }
    }

    #[test]
    fn target_state_never_reverts() {
        for (from, to, expected) in
            [(WAITING, APPROVED, APPROVED), (APPROVED, WAITING, APPROVED), (ENDED, APPROVED, ENDED)]
        {
            let mut part = Target { state: from, ..target("web", 0, 1, &[vm(1)]) };
            part.advance(to);
            assert_eq!(part.state, expected, "{from:?} to {to:?}");
        }
    }

    #[test]
    fn host_operation_with_several_parts_starts_jointly() {
        for (host, cause, parts, whole) in [
            (Some("h1"), Cause::HostReboot, 2, true),
            (Some("h1"), Cause::HostFreeze, 2, true),
            (Some("h1"), Cause::HostReboot, 1, false),
            (None, Cause::HostReboot, 2, false),
            (Some("h1"), Cause::HostRedeploy, 2, false),
            (Some("h1"), Cause::HostFailure, 2, false),
        ] {
            let start = Operation::new_joint_start(host, cause, parts);
            assert_eq!(start.is_some(), whole, "{host:?} {cause} {parts}");
        }
    }

    #[test]
    fn single_part_does_not_wait() {
        let part = |n| target("web", 0, n, &[vm(n)]);
        for (parts, released, expected) in [
            (vec![part(1)], false, true),
            (vec![part(1), part(2)], false, false),
            (vec![part(1), part(2)], true, true),
        ] {
            let one = Operation { released, ..operation(1, Cause::HostReboot, parts) };
            assert_eq!(one.event(&one.targets[0]).released, expected, "{} parts", one.targets.len());
        }
    }
}
