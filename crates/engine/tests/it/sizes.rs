//! Bytes that a commit writes: the reason for the layout of records.

use notbefore_core::samples::{event, member, now, scope, vm};
use notbefore_core::{Cause, Member, Scope, Settings};
use notbefore_engine::{EventCommand, records};

use crate::support::{commits, request, started, stored};

/// Members are part of the scope's record, so an approval writes them, too. `docs/internals/roads-not-taken.md` says
/// why, and has these numbers.
#[test]
fn approval_writes_the_whole_scope() {
    for (vms, bytes_max) in [(1, 1_600), (100, 10_000), (1_000, 86_000)] {
        let named = |n: u128| Member {
            name: format!("web_{n}").parse().unwrap(),
            host: Some(format!("host-{:04}", n / 20)),
            ..member(vm(n))
        };
        let scope = Scope {
            members: (1..=vms).map(named).collect(),
            events: vec![event(1, Cause::HostReboot, &[vm(1)])],
            ..scope("web", &[])
        };
        let without = records::encode(&Scope { members: Vec::new(), ..scope.clone() }).len();
        let approved = scope.events[0].id;
        let (mut engine, _) = started(Settings::default(), stored([scope]), now());
        let approve = EventCommand::Approve(approved);
        let written = commits(engine.handle(request(approve), now()));
        let of_approval =
            written.iter().find(|(_, txn)| txn.put.iter().any(|(key, _)| key.starts_with("scope/")));
        let bytes = of_approval.unwrap().1.bytes();
        println!("{vms} VMs: {bytes} bytes; the scope without its members has {without}");
        assert!((bytes_max * 3 / 4..=bytes_max).contains(&bytes), "{vms} VMs: {bytes} bytes");
    }
}
