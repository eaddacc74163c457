//! Converts a step's small numbers into a real request. Numbers are taken modulo the number of existing things, live
//! ones first, so that any step is valid in any world.

use std::net::{IpAddr, Ipv4Addr};

use jiff::{SignedDuration, Timestamp};
use notbefore_core::cause::CAUSES;
use notbefore_core::scope::SCOPE_KINDS;
use notbefore_core::{
    Actor, EventId, Name, OperationId, Origin, Policy, ScopeId, ScopeKind, ScopePath, VmId,
};
use notbefore_engine::{
    AddVm, Address, Command, EventCommand, FirstRun, GuestApproval, InventoryCommand, NewOperation,
    OperationCommand, PutScope, ScopeChange, TargetSelector, VmCommand, VmSpec,
};
use uuid::Uuid;

use crate::history::{RequestKind, Setup, Spec, When};
use crate::ledger::Ledger;
use crate::rules;
use crate::view::{Reads, View};

/// Number of scopes.
pub const SCOPES: u8 = 4;
/// Number of causes, from the first, that apply to hosts.
const HOST_CAUSES: usize = 6;
/// Numbers of events and VMs from here on include removed ones.
const ANY_FROM: u8 = 200;
/// The number of an event that never existed.
const UNKNOWN: u8 = 255;

/// A deterministic source of unique ids.
#[derive(Debug, Default)]
pub struct IdSource(u128);

impl IdSource {
    pub fn uuid(&mut self) -> Uuid {
        self.0 += 1;
        // Spread over the whole range, so that the order of ids is not the order of creation.
        Uuid::from_u128(self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
    }
}

/// The request of a step.
#[derive(Clone, Debug)]
pub enum RequestOrDryRun {
    Change(Command),
    /// A dry run.
    DryRun(DryRun),
}

/// A dry run.
#[derive(Clone, Debug)]
pub enum DryRun {
    Preview(NewOperation),
    ScopePlan(ScopeChange),
}

/// What numbers can refer to.
pub struct Naming<'a> {
    /// The committed records.
    pub view: &'a View,
    /// Everything that ever existed.
    pub ledger: &'a Ledger,
    pub now: Timestamp,
    pub setup: &'a Setup,
}

fn name(text: String) -> Name {
    // All names come from this file and consist of letters, digits and `_`.
    text.parse().unwrap_or_else(|error| unreachable!("{error}"))
}

pub fn path(scope: u8) -> ScopePath {
    // One in upper case, since scope names ignore case.
    let text = if scope % SCOPES == 1 { "S1".to_owned() } else { format!("s{}", scope % SCOPES) };
    let default = || name("default".to_owned());
    ScopePath { subscription: default(), group: default(), name: name(text) }
}

fn kind(kind: u8) -> ScopeKind {
    SCOPE_KINDS[usize::from(kind) % SCOPE_KINDS.len()]
}

fn policy(which: u8) -> Policy {
    match which % 6 {
        0 => Policy::default(),
        1 => Policy { terminate_notice_s: Some(300), ..Policy::default() },
        2 => Policy { terminate_notice_s: Some(900), ..Policy::default() },
        3 => Policy { automatically_approve_reboot: true, ..Policy::default() },
        4 => Policy { automatically_approve_redeploy: true, ..Policy::default() },
        _ => Policy { terminate_notice_s: Some(60), ..Policy::default() },
    }
}

/// One of eight addresses: two networks with the same four.
pub fn address(bit: u8) -> Address {
    Address {
        network: name(if bit < 4 { "n0".to_owned() } else { "N1".to_owned() }),
        ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, bit % 4)),
    }
}

fn spec(spec: &Spec, fresh: &mut IdSource) -> VmSpec {
    VmSpec {
        vm: VmId(fresh.uuid()),
        name: name(format!("vm_{}", spec.name % 6)),
        update_domain: u32::from(spec.update_domain % 3),
        fault_domain: 0,
        zone: None,
        host: spec.host.map(|host| host_name(host % 3)),
        spot: spec.spot,
        addresses: (0..8).filter(|bit| spec.addresses >> bit & 1 == 1).map(address).collect(),
        instance: serde_json::Value::Null,
    }
}

/// The name of a host; descriptions put VMs on the first three.
fn host_name(host: u8) -> String {
    format!("h{}", host % 4)
}

fn pick<T: Copy>(live: &[T], ever: &[T], number: u8) -> Option<T> {
    let from = if number >= ANY_FROM || live.is_empty() { ever } else { live };
    from.get(usize::from(number).checked_rem(from.len())?).copied()
}

impl Naming<'_> {
    fn vm(&self, number: u8) -> VmId {
        let live: Vec<VmId> = self
            .view
            .scopes
            .values()
            .flat_map(|(_, scope)| scope.members.iter().map(|member| member.vm))
            .collect();
        pick(&live, &self.ledger.vms, number).unwrap_or(VmId(Uuid::nil()))
    }

    fn operation(&self, number: u8) -> OperationId {
        let ever = &self.ledger.operations;
        let live = ever.iter().copied().filter(|id| Reads::operation(self.view, *id).is_some());
        pick(&live.collect::<Vec<_>>(), ever, number).unwrap_or(OperationId(Uuid::nil()))
    }

    fn event(&self, number: u8) -> EventId {
        let live: Vec<EventId> = self
            .view
            .scopes
            .values()
            .flat_map(|(_, scope)| scope.events.iter().map(|event| event.id))
            .collect();
        match number {
            UNKNOWN => EventId(Uuid::nil()),
            _ => pick(&live, &self.ledger.events, number).unwrap_or(EventId(Uuid::nil())),
        }
    }

    /// The caller and the request.
    pub fn request(&self, what: &RequestKind, fresh: &mut IdSource) -> (Actor, RequestOrDryRun) {
        let operator = Actor::Token("operator".to_owned());
        let command = match what {
            RequestKind::PutScope { scope, kind: of_kind, policy: of_policy, fleet, prune, vms } => {
                let origin = if *fleet { Origin::Fleet } else { Origin::Call };
                let vms = vms.iter().map(|vm| spec(vm, fresh)).collect();
                let policy = policy(*of_policy);
                let bare = PutScope::with_defaults(path(*scope), kind(*of_kind), vms);
                ScopeChange::Put(PutScope { policy, origin, prune: *prune, ..bare }).into()
            }
            RequestKind::AddVm { scope, kind: of_kind, vm } => {
                let (path, kind) = (path(*scope), of_kind.map(kind));
                AddVm { path, kind, vm: spec(vm, fresh) }.into()
            }
            RequestKind::RemoveVm { vm } => VmCommand::Remove(self.vm(*vm)).into(),
            RequestKind::RemoveScope { scope, fleet } => {
                let (scope, fleet_only) = (path(*scope).id(), *fleet);
                ScopeChange::Remove { scope, fleet_only }.into()
            }
            RequestKind::PlanScope(what) => match self.request(what, fresh) {
                (by, RequestOrDryRun::Change(Command::Inventory(InventoryCommand::Scope(change)))) => {
                    return (by, RequestOrDryRun::DryRun(DryRun::ScopePlan(change)));
                }
                // Only these have a dry run.
                request => return request,
            },
            RequestKind::StartVm { vm } => VmCommand::Start(self.vm(*vm)).into(),
            RequestKind::FirstRun => FirstRun { vm: VmId(fresh.uuid()), name: name("s0".to_owned()) }.into(),
            RequestKind::Schedule { cause, vms, when, duration_s, force } => {
                let cause = CAUSES[usize::from(*cause) % CAUSES.len()];
                let vms: Vec<VmId> = vms.iter().map(|vm| self.vm(*vm)).collect();
                OperationCommand::Schedule(NewOperation {
                    not_before: self.not_before(cause, &vms, *when),
                    duration_s: *duration_s,
                    force: *force,
                    ..NewOperation::with_defaults(OperationId(fresh.uuid()), cause, TargetSelector::Vms(vms))
                })
                .into()
            }
            RequestKind::Host { host, cause, when, preview } => {
                let cause = CAUSES[usize::from(*cause) % HOST_CAUSES];
                let selector = TargetSelector::Host(host_name(*host));
                let new = NewOperation {
                    not_before: self.not_before(cause, &[], *when),
                    ..NewOperation::with_defaults(OperationId(fresh.uuid()), cause, selector)
                };
                if *preview {
                    return (operator, RequestOrDryRun::DryRun(DryRun::Preview(new)));
                }
                OperationCommand::Schedule(new).into()
            }
            RequestKind::GuestApprove { vm, events } => return self.guest_approves(*vm, events),
            RequestKind::Approve { event } => EventCommand::Approve(self.event(*event)).into(),
            RequestKind::Cancel { event } => EventCommand::Cancel(self.event(*event)).into(),
            RequestKind::Start { event } => EventCommand::Start(self.event(*event)).into(),
            RequestKind::Complete { event, moved } => {
                let event = self.event(*event);
                let live = self.view.live(event).filter(|_| *moved);
                let resources = live.iter().flat_map(|event| &event.resources);
                let hosts = resources.map(|resource| (resource.vm, host_name(3))).collect();
                EventCommand::Complete { event, hosts }.into()
            }
            RequestKind::RetryEvent { event } => EventCommand::Retry(self.event(*event)).into(),
            RequestKind::CancelOperation { operation } => {
                OperationCommand::Cancel(self.operation(*operation)).into()
            }
            RequestKind::StartOperation { operation } => {
                OperationCommand::Start(self.operation(*operation)).into()
            }
            RequestKind::CompleteOperation { operation } => {
                OperationCommand::Complete(self.operation(*operation)).into()
            }
            RequestKind::RetryOperation { operation } => {
                OperationCommand::Retry(self.operation(*operation)).into()
            }
        };
        (operator, RequestOrDryRun::Change(command))
    }

    fn not_before(&self, cause: notbefore_core::Cause, vms: &[VmId], when: When) -> Option<Timestamp> {
        let When::NoticePlus { ms } = when else { return None };
        let scope = vms.first().and_then(|vm| self.view.vms.get(vm)).map(|vm| &vm.scope);
        let policy = scope
            .and_then(|scope| self.view.scopes.get(scope))
            .map(|(_, scope)| scope.policy.clone())
            .unwrap_or_default();
        let notice = rules::least_notice(cause, &policy, self.setup).unwrap_or(SignedDuration::ZERO);
        Some(rules::plus(rules::plus(self.now, notice), SignedDuration::from_millis(ms)))
    }

    fn guest_approves(&self, vm: u8, events: &[u8]) -> (Actor, RequestOrDryRun) {
        let vm = self.vm(vm);
        let record = self.view.vms.get(&vm);
        let scope: ScopeId = record.map_or_else(|| path(0).id(), |record| record.scope.clone());
        let member = self
            .view
            .scopes
            .get(&scope)
            .and_then(|(_, scope)| scope.members.iter().find(|member| member.vm == vm));
        // A VM without an address has its own listener.
        let address = record.and_then(|record| record.addresses.first());
        let by = Actor::Vm {
            vm,
            name: member.map_or_else(|| name("gone".to_owned()), |member| member.name.clone()),
            address: address.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip),
        };
        let events = events.iter().map(|event| self.event(*event)).collect();
        let network = address.map(|address| address.network.folded());
        (by, RequestOrDryRun::Change(GuestApproval { scope, events, network }.into()))
    }
}

/// The request once more, as from a client that does not know the first outcome: the ids that a server generates are
/// new.
pub fn again(command: &Command, fresh: &mut IdSource) -> Command {
    let mut command = command.clone();
    match &mut command {
        Command::Operation(OperationCommand::Schedule(new)) => new.id = OperationId(fresh.uuid()),
        Command::Inventory(InventoryCommand::AddVm(add)) => add.vm.vm = VmId(fresh.uuid()),
        Command::Inventory(InventoryCommand::Scope(ScopeChange::Put(put))) => {
            put.vms.iter_mut().for_each(|spec| spec.vm = VmId(fresh.uuid()))
        }
        Command::Inventory(InventoryCommand::FirstRun(first_run)) => first_run.vm = VmId(fresh.uuid()),
        Command::Operation(
            OperationCommand::Cancel(_)
            | OperationCommand::Start(_)
            | OperationCommand::Complete(_)
            | OperationCommand::Retry(_),
        )
        | Command::Inventory(
            InventoryCommand::Scope(ScopeChange::Remove { .. })
            | InventoryCommand::Vm(_)
            | InventoryCommand::Host(_),
        )
        | Command::Guest(_)
        | Command::Event(_)
        | Command::Token(_)
        | Command::Clock(_)
        | Command::Cluster(_) => {}
    }
    command
}
