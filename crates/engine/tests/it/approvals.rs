//! Approvals of guests whose VM or address is removed after the call: the caller is looked up again when the approval
//! is applied, after all earlier requests.

use std::net::IpAddr;

use notbefore_core::samples::{now, operation_id, operator, scope_id, vm};
use notbefore_core::{Actor, Cause, EventId, Refusal, ScopeKind, Settings, VmId};
use notbefore_engine::records::Address;
use notbefore_engine::{
    Answer, Command, Effect, Engine, Failure, GuestApproval, Input, JobId, NewOperation, OperationCommand,
    PutScope, Request, RequestId, ScopeChange, TargetSelector, VmCommand, VmSpec,
};
use notbefore_store::{Outcome, Revision, Txn};

use crate::support::started;

const WEB: VmId = vm(1);
const OTHER: VmId = vm(2);
const NETWORK: &str = "blue";
const OPERATOR: RequestId = RequestId(0);
const GUEST: RequestId = RequestId(1);

fn ip() -> IpAddr {
    "10.0.0.1".parse().unwrap()
}

/// A scope with one VM, with or without the address.
fn put(name: &str, vm: VmId, has_address: bool) -> Command {
    let address = Address { network: NETWORK.parse().unwrap(), ip: ip() };
    let addresses = if has_address { vec![address] } else { Vec::new() };
    let vms = vec![VmSpec { addresses, ..VmSpec::with_defaults(vm, name.parse().unwrap()) }];
    let put = PutScope::with_defaults(name.parse().unwrap(), ScopeKind::Standalone, vms);
    ScopeChange::Put(put).into()
}

/// An engine whose commits wait until the test carries them out.
struct Bench {
    engine: Engine,
    revision: Revision,
    commits: Vec<(JobId, Txn)>,
    answers: Vec<Result<Answer, Failure>>,
}

impl Bench {
    /// A VM `web` at the address, with an event that waits for its approval, and a VM `other` without one.
    fn new() -> Self {
        let (engine, _) = started(Settings::default(), Vec::new(), now());
        let mut bench = Self { engine, revision: Revision(0), commits: Vec::new(), answers: Vec::new() };
        bench.submit(put("web", WEB, true));
        bench.submit(put("other", OTHER, false));
        bench.settle();
        bench.feed(Input::Polled(scope_id("web"), now()));
        bench.settle();
        let selector = TargetSelector::Vms(vec![WEB]);
        let new = NewOperation::with_defaults(operation_id(9), Cause::HostReboot, selector);
        bench.submit(OperationCommand::Schedule(new));
        bench.settle();
        bench
    }

    fn feed(&mut self, input: Input) {
        for effect in self.engine.handle(input, now()) {
            match effect {
                Effect::Commit(id, txn) => self.commits.push((id, txn)),
                Effect::Answer(GUEST, answer) => self.answers.push(answer),
                Effect::Answer(..)
                | Effect::Publish(_)
                | Effect::Run(_)
                | Effect::Stop(_)
                | Effect::Resync => {}
            }
        }
    }

    fn submit_as(&mut self, by: Actor, command: impl Into<Command>) {
        let id = if matches!(by, Actor::Vm { .. }) { GUEST } else { OPERATOR };
        self.feed(Input::Request(id, Box::new(Request::new(by, command.into()))));
    }

    fn submit(&mut self, command: impl Into<Command>) {
        self.submit_as(operator(), command);
    }

    fn settle(&mut self) {
        while !self.commits.is_empty() {
            let (id, _) = self.commits.remove(0);
            self.revision = Revision(self.revision.0 + 1);
            self.feed(Input::Committed(id, Outcome::Committed(self.revision)));
        }
    }

    fn event(&self) -> Option<EventId> {
        let held = self.engine.state().scope(&scope_id("web"))?;
        held.value.events.first().map(|event| event.id)
    }

    /// The approval of `web`, identified by its address (`network`) or by a listener or proxy, after all earlier
    /// requests.
    fn approve(&mut self, events: Vec<EventId>, network: Option<&str>) -> Result<Answer, Failure> {
        let by = Actor::Vm { vm: WEB, name: "web".parse().unwrap(), address: ip() };
        let network = network.map(str::to_owned);
        self.submit_as(by, GuestApproval { scope: scope_id("web"), events, network });
        self.settle();
        assert_eq!(self.answers.len(), 1);
        self.answers.remove(0)
    }
}

#[test]
fn approval_from_vm_address_is_accepted() {
    let mut bench = Bench::new();
    let event = bench.event().unwrap();
    assert_eq!(bench.approve(vec![event], Some(NETWORK)), Ok(Answer::Done));
}

#[test]
fn approval_after_address_move_is_refused_as_unknown_caller() {
    for moved_to_another in [false, true] {
        let mut bench = Bench::new();
        let event = bench.event().unwrap();
        bench.submit(put("web", WEB, false));
        if moved_to_another {
            bench.settle();
            bench.submit(put("other", OTHER, true));
        }
        assert!(!bench.commits.is_empty(), "the move is not durable when the guest approves");
        let refused = Err(Failure::Refused(Refusal::UnknownCaller(WEB)));
        assert_eq!(bench.approve(vec![event], Some(NETWORK)), refused);
        assert_eq!(bench.approve(Vec::new(), Some(NETWORK)), refused);
        // A guest that is identified by its own listener or by a proxy has no address to lose.
        assert_eq!(bench.approve(vec![event], None), Ok(Answer::Done));
    }
}

#[test]
fn approval_after_vm_removal_is_refused_as_unknown_caller() {
    for network in [Some(NETWORK), None] {
        let mut bench = Bench::new();
        let event = bench.event().unwrap();
        bench.submit(VmCommand::Remove(WEB));
        assert!(!bench.commits.is_empty(), "the removal is not durable when the guest approves");
        let refused = Err(Failure::Refused(Refusal::UnknownCaller(WEB)));
        assert_eq!(bench.approve(vec![event], network), refused);
        // Another VM has the name and the address now.
        bench.submit(put("web", OTHER, true));
        assert_eq!(bench.approve(vec![event], network), refused);
    }
}
