//! Addresses that move: two VMs of two scopes exchange their addresses while guests poll from them.
//!
//! An address first loses its VM, so its guest may get 403. From the moment in which a node acknowledges the new owner,
//! that node answers for the new owner; from the moment in which all nodes show it, all nodes do.

use serde_json::json;
use uuid::Uuid;

use super::eventually;
use super::history::{Move, Record};
use super::load::Shared;
use super::network::guest_address;
use crate::crash::random::Random;

/// Exchanges, so that some guests poll meanwhile.
const EXCHANGES: usize = 5;

pub fn exchange(shared: &Shared, random: &mut Random) {
    (0..EXCHANGES).for_each(|_| exchange_two(shared, random));
}

/// Exchanges the addresses of two VMs of different scopes, and waits until all nodes show it.
fn exchange_two(shared: &Shared, random: &mut Random) {
    let count = shared.fleet.vms.len();
    let owner = |guest| shared.fleet.owner(guest);
    let scope = |guest| shared.fleet.vms[owner(guest)].scope;
    let one = random.index(count);
    let first = random.index(count);
    let other = (first..first + count).map(|guest| guest % count);
    let other = other.into_iter().find(|&guest| scope(guest) != scope(one)).unwrap();
    let (one_vm, other_vm) = (owner(one), owner(other));
    let mut moves = [(one, one_vm, other_vm), (other, other_vm, one_vm)].map(|(guest, from, to)| {
        let path = |vm: usize| shared.fleet.scopes[shared.fleet.vms[vm].scope].clone();
        Move { guest, from: path(from), to: path(to), begun: 0, node: 0, acknowledged: 0, settled: 0 }
    });
    let begun = shared.history.now();
    [one, other].iter().for_each(|&guest| shared.fleet.begin_move(guest));
    set_address(shared, random, one_vm, None);
    let first = set_address(shared, random, other_vm, Some(one));
    let second = set_address(shared, random, one_vm, Some(other));
    for (moved, (node, acknowledged)) in moves.iter_mut().zip([first, second]) {
        (moved.begun, moved.node, moved.acknowledged) = (begun, node, acknowledged);
    }
    for (vm, guest) in [(one_vm, other), (other_vm, one)] {
        let (id, address) = (shared.fleet.vms[vm].id, guest_address(guest).to_string());
        for node in &shared.nodes {
            eventually("every node shows the new address", || {
                let answer = node.get(&format!("/v1/vms/{id}")).filter(|answer| answer.status == 200)?;
                (answer.json()["addresses"] == json!([address])).then_some(())
            });
        }
    }
    [(one, other_vm), (other, one_vm)].iter().for_each(|&(guest, vm)| shared.fleet.end_move(guest, vm));
    let settled = shared.history.now();
    moves.into_iter().for_each(|moved| shared.history.record(Record::Move(Move { settled, ..moved })));
}

/// Gives a VM the address of this guest and no other; returns the node that acknowledged it, and when.
fn set_address(shared: &Shared, random: &mut Random, vm: usize, guest: Option<usize>) -> (usize, u64) {
    let vm = &shared.fleet.vms[vm];
    let addresses: Vec<String> = guest.iter().map(|&guest| guest_address(guest).to_string()).collect();
    let body = json!({
        "kind": "scale-set",
        "policy": {"terminate_notification_seconds": 300},
        "vms": [{"name": vm.name, "addresses": addresses}],
    });
    let target = format!("/v1/scopes/{}", shared.fleet.scopes[vm.scope]);
    let key = Uuid::new_v4().to_string();
    eventually(&format!("{} gets {addresses:?}", vm.name), || {
        let node = random.index(shared.nodes.len());
        let answer = shared.nodes[node].request("PUT", &target, &key, &body.to_string()).ok()?;
        assert!(answer.status < 300 || matches!(answer.status, 429 | 503), "{target}: {answer:?}");
        (answer.status < 300).then(|| (node, shared.history.now()))
    })
}
