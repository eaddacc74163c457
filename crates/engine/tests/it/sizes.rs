//! Bytes that a commit writes: the reason for the layout of records.

use std::net::{IpAddr, Ipv4Addr};

use notbefore_core::samples::{event, member, now, scope, vm};
use notbefore_core::{Cause, Member, Scope, Settings};
use notbefore_engine::fleet::ADDRESSES_MAX;
use notbefore_engine::records::Vm;
use notbefore_engine::{Address, EventCommand, ScopeChange, records};
use notbefore_store::{Revision, Versioned};

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

/// A request that removes VMs removes their records and claims together with the change of the scope, also if each VM
/// has as many addresses as possible. Nobody would repeat the rest after a crash.
#[test]
fn removals_of_a_request_go_with_the_scope() {
    let members = (1..=12).map(|n| Member { name: format!("web_{n}").parse().unwrap(), ..member(vm(n)) });
    let scope = Scope { members: members.collect(), ..scope("web", &[]) };
    let mut all = stored([scope.clone()]);
    let mut put = |key, value| all.push((key, Versioned { revision: Revision(1), value }));
    for (n, member) in (1u8..).zip(&scope.members) {
        let address = |bit: usize| Address {
            network: "blue".parse().unwrap(),
            ip: IpAddr::V4(Ipv4Addr::new(10, 0, n, u8::try_from(bit).unwrap())),
        };
        let addresses: Vec<Address> = (0..ADDRESSES_MAX).map(address).collect();
        for address in &addresses {
            put(records::claim(address), records::encode(&member.vm));
        }
        let vm = Vm { id: member.vm, scope: scope.id(), addresses, instance: Default::default() };
        put(records::vm(vm.id), records::encode(&vm));
    }
    let (mut engine, _) = started(Settings::default(), all, now());
    let remove = ScopeChange::Remove { scope: scope.id(), fleet_only: false };
    let written = commits(engine.handle(request(remove), now()));
    let (_, first) = written.iter().find(|(_, txn)| !txn.delete.is_empty()).unwrap();
    assert!(first.put.iter().any(|(key, _)| key.starts_with("scope/")), "{first:?}");
}
